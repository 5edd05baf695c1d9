//! The cuts of ratings: loss and dual point at given scores and cuts.
//!
//! ```text
//! α_ik = C_i · loss'(v_ik)       above_k = Σ_{t_ik = +1} α_ik       below_k = Σ_{t_ik = −1} α_ik
//! ```
//! A dual point is feasible if it lies in its box and its pulls G_k = above_k − below_k agree with the cuts:
//!
//! | cuts | condition |
//! |---|---|
//! | free | G_k = 0 |
//! | in order | S_k = G_0 + … + G_k ≤ 0, and S = 0 at the last cut; −S_k is the multiplier of b_k ≤ b_{k+1} |
//! | tied together | Σ G_k = 0 over the cuts of a group |
//!
//! [`Shares`] makes any point of the box feasible: it scales down one side of each cut, which keeps every variable in
//! its box. For cuts in order the wanted sums are T_k = min(S_k, 0), raised from the last cut backwards to T_k − above_k
//! where the side above could not reach them. Then −below_k ≤ T_k − T_{k−1} ≤ above_k for every cut.

use super::Ordinal;
use crate::loss::Curve;
use crate::parallel;

/// Rows summed together. The number is fixed, so the result does not depend on the number of threads.
const CHUNK: usize = 4096;

/// The point of a task at given scores and cuts.
pub(crate) struct AtCuts<'a> {
    pub(crate) task: &'a Ordinal,
    /// The score of each row.
    pub(crate) scores: &'a [f64],
    pub(crate) cuts: &'a [f64],
    /// The width over which the hinge is rounded off, for the dual point.
    pub(crate) width: Option<f64>,
}

/// By how much the two sides of each cut are scaled down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shares {
    above: Vec<f64>,
    below: Vec<f64>,
}

impl Shares {
    /// The shares that make a point feasible, given the sums of its variables on the two sides of each cut.
    pub(crate) fn of(task: &Ordinal, above: &[f64], below: &[f64]) -> Shares {
        let count = above.len();
        let share = |wanted: f64, whole: f64| if whole > 0.0 { (wanted / whole).clamp(0.0, 1.0) } else { 1.0 };
        let mut shares = Shares { above: vec![1.0; count], below: vec![1.0; count] };
        if task.is_ordered() {
            let mut wanted = vec![0.0; count];
            let mut sum = 0.0;
            for cut in 0..count {
                sum += above[cut] - below[cut];
                wanted[cut] = sum.min(0.0);
            }
            wanted[count - 1] = 0.0;
            for cut in (1..count).rev() {
                wanted[cut - 1] = wanted[cut - 1].max(wanted[cut] - above[cut]).min(0.0);
            }
            for cut in 0..count {
                let pull = wanted[cut] - if cut > 0 { wanted[cut - 1] } else { 0.0 };
                if pull < above[cut] - below[cut] {
                    shares.above[cut] = share(below[cut] + pull, above[cut]);
                } else {
                    shares.below[cut] = share(above[cut] - pull, below[cut]);
                }
            }
            return shares;
        }
        let (mut whole_above, mut whole_below) = (vec![0.0; count], vec![0.0; count]);
        for cut in 0..count {
            whole_above[task.holder(cut)] += above[cut];
            whole_below[task.holder(cut)] += below[cut];
        }
        for cut in 0..count {
            let (up, down) = (whole_above[task.holder(cut)], whole_below[task.holder(cut)]);
            (shares.above[cut], shares.below[cut]) = (share(down, up), share(up, down));
        }
        shares
    }

    /// The share of a constraint, given its cut and t.
    #[inline]
    pub(crate) fn at(&self, cut: usize, side: f64) -> f64 {
        if side > 0.0 { self.above[cut] } else { self.below[cut] }
    }
}

impl AtCuts<'_> {
    fn curve(&self) -> Curve {
        self.width.map_or(Curve::Sharp(self.task.loss), Curve::Rounded)
    }

    /// The loss of all rows; infinite where cuts that must be in order are not.
    pub(crate) fn loss(&self) -> f64 {
        if self.task.is_ordered() && !self.cuts.is_sorted() {
            return f64::INFINITY;
        }
        let [sum] = self.sums(1, |row, sums| {
            let cost = self.task.cost(row);
            self.task.each_violation(row, self.scores[row], self.cuts, |_, _, violation| {
                sums[0] += cost * self.task.loss.value(violation);
            });
        })[..] else {
            return f64::NAN;
        };
        sum
    }

    /// The variables on the two sides of each cut, summed up.
    pub(crate) fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        let (count, curve) = (self.cuts.len(), self.curve());
        let mut sums = self.sums(2 * count, |row, sums| {
            let cost = self.task.cost(row);
            self.task.each_violation(row, self.scores[row], self.cuts, |cut, side, violation| {
                let at = if side > 0.0 { cut } else { count + cut };
                sums[at] += cost * curve.at(violation).derivative;
            });
        });
        let below = sums.split_off(count);
        (sums, below)
    }

    /// Σ_k t_ik α_ik of a row, scaled.
    pub(crate) fn coefficient(&self, row: usize, shares: &Shares) -> f64 {
        let (cost, curve) = (self.task.cost(row), self.curve());
        let mut sum = 0.0;
        self.task.each_violation(row, self.scores[row], self.cuts, |cut, side, violation| {
            sum += side * shares.at(cut, side) * cost * curve.at(violation).derivative;
        });
        sum
    }

    /// Σ α m_i − Σ cost · loss*(α / cost) of the scaled point.
    pub(crate) fn gain(&self, shares: &Shares) -> f64 {
        let (loss, curve) = (self.task.loss, self.curve());
        self.sums(1, |row, sums| {
            let (cost, margin) = (self.task.cost(row), self.task.margin(row));
            self.task.each_violation(row, self.scores[row], self.cuts, |cut, side, violation| {
                let alpha = shares.at(cut, side) * cost * curve.at(violation).derivative;
                let alpha = alpha.min(loss.dual_limit(cost));
                sums[0] += alpha * margin - loss.dual_cost(alpha, cost);
            });
        })[0]
    }

    /// Adds up `count` numbers over all rows that cost anything, in a fixed order.
    fn sums(&self, count: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let rows = self.task.len();
        let chunks = parallel::map(rows.div_ceil(CHUNK), |chunk| {
            let mut sums = vec![0.0; count];
            for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(rows) {
                if self.task.cost(row) > 0.0 {
                    add(row, &mut sums);
                }
            }
            sums
        });
        let mut sums = vec![0.0; count];
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, own)| *sum += own);
        }
        sums
    }
}
