//! [`BoxQuadratic`]: the maximum of b·α − ½αᵀKα over 0 ≤ α_i ≤ c_i, for the few variables of a mini-batch.
//!
//! One variable: α = clip(b/K, 0, c). Two: α = K⁻¹b if that lies in the box; otherwise the maximum lies on one of the four
//! edges, where one variable is at a limit and the other one is a clipped quotient; the best edge is taken. More: each
//! variable in turn is set to its best value, the others fixed (coordinate ascent). Now and then the equations of the
//! variables between their limits are solved exactly; if the solution satisfies all conditions of the maximum, it ends.
//! K is positive semidefinite. A limit may be infinite; then there may be no maximum.

/// K is taken as singular if a pivot is smaller than this part of its diagonal.
const SINGULAR: f64 = 1e-13;

/// The most passes of coordinate ascent.
const MOST_PASSES: usize = 1024;

/// The conditions of a maximum hold if no slope violates them by more than this part of the largest |b|.
const ACCURACY: f64 = 1e-12;

/// Work buffers, kept so that a step allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct BoxQuadratic {
    slope: Vec<f64>,
    free: Vec<usize>,
    factor: Vec<f64>,
    right: Vec<f64>,
}

/// The best value of one variable, or none if it is unbounded.
#[inline(always)]
pub(super) fn one(b: f64, k: f64, most: f64) -> Option<f64> {
    if b <= 0.0 {
        return Some(0.0);
    }
    let best = if k > 0.0 { (b / k).min(most) } else { most };
    best.is_finite().then_some(best)
}

/// The best values of two variables, or none if they are unbounded.
#[inline(always)]
pub(super) fn two(b: [f64; 2], [k11, k22, k12]: [f64; 3], most: [f64; 2]) -> Option<[f64; 2]> {
    if b[0] <= 0.0 && b[1] <= 0.0 {
        return Some([0.0; 2]);
    }
    let determinant = k11 * k22 - k12 * k12;
    let regular = determinant > SINGULAR * k11 * k22;
    if regular {
        let alpha = [(k22 * b[0] - k12 * b[1]) / determinant, (k11 * b[1] - k12 * b[0]) / determinant];
        if (0..2).all(|i| alpha[i] >= 0.0 && alpha[i] <= most[i]) {
            return Some(alpha);
        }
    }
    let k = [k11, k22];
    let mut best = None;
    for fixed in 0..2 {
        let other = 1 - fixed;
        for at in [0.0, most[fixed]] {
            if !at.is_finite() {
                continue;
            }
            let Some(value) = one(b[other] - k12 * at, k[other], most[other]) else {
                // Along this edge it rises without end.
                return None;
            };
            let mut alpha = [0.0; 2];
            (alpha[fixed], alpha[other]) = (at, value);
            let gain = alpha[0] * b[0] + alpha[1] * b[1]
                - 0.5 * (k11 * alpha[0] * alpha[0] + k22 * alpha[1] * alpha[1])
                - k12 * alpha[0] * alpha[1];
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, alpha));
            }
        }
    }
    let (_, alpha) = best?;
    // Two opposite directions of which both can grow: K is singular, and b rises along the direction that K ignores.
    let endless = !regular && k12 < 0.0 && most.iter().all(|most| most.is_infinite());
    if endless && k22.sqrt() * b[0] + k11.sqrt() * b[1] > SINGULAR.sqrt() * (k11.sqrt() + k22.sqrt()) {
        return None;
    }
    Some(alpha)
}

impl BoxQuadratic {
    /// Finds the maximum for any number of variables. `gram` is K, row by row. Returns whether there is one.
    pub(super) fn maximise(&mut self, gram: &[f64], b: &[f64], most: &[f64], alpha: &mut [f64]) -> bool {
        let n = b.len();
        alpha.fill(0.0);
        self.slope.clear();
        self.slope.extend_from_slice(b);
        let scale = b.iter().fold(0.0, |most: f64, b| most.max(b.abs()));
        let mut solve_at = 2;
        for pass in 1..=MOST_PASSES {
            let mut moved = 0.0f64;
            for i in 0..n {
                let k = gram[i * n + i];
                let Some(best) = one(alpha[i] * k + self.slope[i], k, most[i]) else { return false };
                let step = best - alpha[i];
                if step != 0.0 {
                    alpha[i] = best;
                    self.slope.iter_mut().zip(&gram[i * n..(i + 1) * n]).for_each(|(slope, k)| *slope -= step * k);
                    moved = moved.max(step.abs() * k);
                }
            }
            if moved <= 1e-2 * ACCURACY * scale {
                return true;
            }
            if pass == solve_at {
                solve_at *= 2;
                if self.solve_between_limits(gram, b, most, alpha, scale) {
                    return true;
                }
            }
        }
        // With limits, the last point is good to a few digits. Without them, slopes that stay show that there is no maximum.
        let rises = |i: usize| most[i].is_infinite() && self.slope[i] > 1e-6 * scale;
        !(0..n).any(rises)
    }

    /// Solves the equations of the variables between their limits. Keeps the solution if it is the maximum.
    fn solve_between_limits(&mut self, gram: &[f64], b: &[f64], most: &[f64], alpha: &mut [f64], scale: f64) -> bool {
        let n = b.len();
        // From scratch, without the rounding of all steps so far.
        for (i, slope) in self.slope.iter_mut().enumerate() {
            *slope = b[i] - gram[i * n..(i + 1) * n].iter().zip(&*alpha).map(|(k, a)| k * a).sum::<f64>();
        }
        self.free.clear();
        self.free.extend((0..n).filter(|&i| alpha[i] > 0.0 && alpha[i] < most[i]));
        self.factorise(gram, n);
        let size = self.free.len();
        self.right.clear();
        self.right.extend(self.free.iter().map(|&i| self.slope[i]));
        // L y = slope, Lᵀ x = y: x is the change of the variables.
        for row in 0..size {
            let sum: f64 = (0..row).map(|column| self.factor[row * size + column] * self.right[column]).sum();
            let pivot = self.factor[row * size + row];
            self.right[row] = if pivot > 0.0 { (self.right[row] - sum) / pivot } else { 0.0 };
        }
        for row in (0..size).rev() {
            let sum: f64 = (row + 1..size).map(|below| self.factor[below * size + row] * self.right[below]).sum();
            let pivot = self.factor[row * size + row];
            self.right[row] = if pivot > 0.0 { (self.right[row] - sum) / pivot } else { 0.0 };
        }
        let inside = self.free.iter().zip(&self.right).all(|(&i, step)| {
            let value = alpha[i] + step;
            value >= 0.0 && value <= most[i]
        });
        if !inside {
            return false;
        }
        let slope = |i: usize| {
            let steps = self.free.iter().zip(&self.right);
            self.slope[i] - steps.map(|(&j, step)| gram[i * n + j] * step).sum::<f64>()
        };
        let accurate = (0..n).all(|i| {
            let slope = slope(i);
            let limit = ACCURACY * (scale + gram[i * n + i] * alpha[i]);
            (slope <= limit || alpha[i] == most[i]) && (slope >= -limit || alpha[i] == 0.0)
        });
        if accurate {
            self.free.iter().zip(&self.right).for_each(|(&i, step)| alpha[i] += step);
        }
        accurate
    }

    /// The Cholesky factor of K over the free variables. A variable whose row depends on those before gets a pivot of
    /// zero, and keeps its value.
    fn factorise(&mut self, gram: &[f64], n: usize) {
        let size = self.free.len();
        self.factor.clear();
        self.factor.resize(size * size, 0.0);
        for row in 0..size {
            let i = self.free[row];
            for column in 0..=row {
                let j = self.free[column];
                let products = (0..column).map(|at| self.factor[row * size + at] * self.factor[column * size + at]);
                let rest = gram[i * n + j] - products.sum::<f64>();
                self.factor[row * size + column] = if column == row {
                    if rest > SINGULAR * gram[i * n + i] { rest.sqrt() } else { 0.0 }
                } else if self.factor[column * size + column] > 0.0 {
                    rest / self.factor[column * size + column]
                } else {
                    0.0
                };
            }
        }
    }
}

#[cfg(test)]
pub(super) fn value(gram: &[f64], b: &[f64], alpha: &[f64]) -> f64 {
    let n = b.len();
    let quadratic: f64 =
        (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| alpha[i] * gram[i * n + j] * alpha[j]).sum();
    b.iter().zip(alpha).map(|(b, a)| b * a).sum::<f64>() - 0.5 * quadratic
}
