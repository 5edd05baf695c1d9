//! The dual variables of one example over the outputs it has met, its *corners*, and their exact solution.
//!
//! ```text
//! max over α   Σ_a (α_a − α⁰_a) v_a − ½ Σ_ab (α_a − α⁰_a) (α_b − α⁰_b) G_ab   s.t.   α ≥ 0,  Σ_a α_a ≤ C
//! ```
//! This is by how much the dual value rises. v_a is the value of the plane of corner a at the current weights, which belong
//! to α⁰, and G the products of the slopes of planes by the weights. The truth is one more corner with plane 0, whose
//! variable is what the others leave of C. Pairs of variables are changed as in sequential minimal optimisation: the one
//! with the largest derivative grows, and the one with the smallest shrinks.

use crate::structured::{Plane, Scores};

/// An output with its variable.
#[derive(Clone, Debug)]
pub(super) struct Corner {
    pub(super) output: Vec<u32>,
    pub(super) plane: Plane,
    pub(super) alpha: f64,
    /// Searches since its variable was above zero.
    idle: u32,
}

/// Corners of an example, and corners kept with no variable above zero for so many searches.
const MOST_CORNERS: usize = 64;
const IDLE_SEARCHES: u32 = 10;

/// The corners of an example.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// C · weight of the example.
    pub(super) cost: f64,
    pub(super) corners: Vec<Corner>,
    /// Products of slopes: those of corner a with the corners up to a are at a(a + 1)/2.
    gram: Vec<f64>,
    /// The gap that the last visit met, before it solved the block.
    pub(super) gap: f64,
}

/// Buffers of a visit.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Values of the planes at the start, and derivatives during the steps; those of the truth are zero.
    pub(super) values: Vec<f64>,
    slopes: Vec<f64>,
    /// The change of each variable.
    pub(super) steps: Vec<f64>,
}

fn triangle(a: usize) -> usize {
    a * (a + 1) / 2
}

impl Block {
    /// A block without corners.
    pub(super) fn new(cost: f64) -> Block {
        Block { cost, ..Block::default() }
    }

    fn product(&self, a: usize, b: usize) -> f64 {
        self.gram[triangle(a.max(b)) + a.min(b)]
    }

    /// What the variables leave to the truth.
    fn rest(&self) -> f64 {
        (self.cost - self.corners.iter().map(|corner| corner.alpha).sum::<f64>()).max(0.0)
    }

    /// Σ α · loss
    pub(super) fn gain(&self) -> f64 {
        self.corners.iter().map(|corner| corner.alpha * corner.plane.loss).sum()
    }

    /// Whether this output is a corner.
    pub(super) fn holds(&self, output: &[u32]) -> bool {
        self.corners.iter().any(|corner| corner.output == output)
    }

    /// Adds a corner, given the products of its slopes with those of the corners and with themselves.
    pub(super) fn push(&mut self, output: Vec<u32>, plane: Plane, products: &[f64]) {
        debug_assert_eq!(products.len(), self.corners.len() + 1);
        self.gram.extend_from_slice(products);
        self.corners.push(Corner { output, plane, alpha: 0.0, idle: 0 });
    }

    /// Drops corners that were idle for long, and the most idle of too many.
    pub(super) fn tidy(&mut self) {
        for corner in &mut self.corners {
            corner.idle = if corner.alpha > 0.0 { 0 } else { corner.idle + 1 };
        }
        let mut limit = IDLE_SEARCHES;
        let excess = |limit: u32, corners: &[Corner]| corners.iter().filter(|corner| corner.idle <= limit).count();
        while limit > 1 && excess(limit, &self.corners) > MOST_CORNERS {
            limit -= 1;
        }
        if self.corners.iter().all(|corner| corner.idle <= limit) {
            return;
        }
        let kept: Vec<usize> = (0..self.corners.len()).filter(|&a| self.corners[a].idle <= limit).collect();
        let mut gram = Vec::with_capacity(triangle(kept.len()));
        for (at, &a) in kept.iter().enumerate() {
            gram.extend(kept[..=at].iter().map(|&b| self.product(a, b)));
        }
        self.gram = gram;
        self.corners.retain(|corner| corner.idle <= limit);
    }

    /// Writes the values of the planes at these scores, and returns the gap over the corners.
    pub(super) fn judge(&self, at: Scores<'_>, work: &mut Work) -> f64 {
        work.values.clear();
        work.values.extend(self.corners.iter().map(|corner| corner.plane.value(at)));
        let highest = work.values.iter().copied().fold(0.0, f64::max);
        self.gap_below(highest, &work.values)
    }

    /// C · highest − Σ α · value
    pub(super) fn gap_below(&self, highest: f64, values: &[f64]) -> f64 {
        let reached: f64 = self.corners.iter().zip(values).map(|(corner, value)| corner.alpha * value).sum();
        (self.cost * highest.max(0.0) - reached).max(0.0)
    }

    /// Solves the block for the values in `work` to a share of its gap, and leaves the changes in `work.steps`. Returns
    /// by how much the dual value rises.
    pub(super) fn solve(&mut self, share: f64, work: &mut Work) -> f64 {
        let count = self.corners.len();
        let Work { values, slopes, steps } = work;
        slopes.clone_from(values);
        steps.clear();
        steps.resize(count, 0.0);
        let mut rest = self.rest();
        let mut gain = 0.0;
        let mut enough = None;
        for _ in 0..20 + 10 * count {
            // The truth is corner `count`.
            let (mut up, mut high) = (count, 0.0);
            let (mut down, mut low) = if rest > 0.0 { (count, 0.0) } else { (usize::MAX, f64::INFINITY) };
            for (a, &slope) in slopes.iter().enumerate() {
                if slope > high {
                    (up, high) = (a, slope);
                }
                if slope < low && self.corners[a].alpha > 0.0 {
                    (down, low) = (a, slope);
                }
            }
            let lead = high - low;
            let enough = *enough.get_or_insert(share * lead);
            if down == usize::MAX || up == down || lead <= enough || lead <= 0.0 {
                break;
            }
            let own = |a: usize| if a == count { 0.0 } else { self.product(a, a) };
            let both = if up == count || down == count { 0.0 } else { self.product(up, down) };
            let bend = own(up) + own(down) - 2.0 * both;
            let most = if down == count { rest } else { self.corners[down].alpha };
            let step = if bend * most > lead { lead / bend } else { most };
            gain += step * (lead - 0.5 * step * bend);
            for (a, slope) in slopes.iter_mut().enumerate() {
                let grown = if up == count { 0.0 } else { self.product(a, up) };
                let shrunk = if down == count { 0.0 } else { self.product(a, down) };
                *slope -= step * (grown - shrunk);
            }
            match up {
                up if up == count => rest += step,
                up => {
                    self.corners[up].alpha += step;
                    steps[up] += step;
                }
            }
            // A variable that gives all it has becomes exactly zero.
            match down {
                down if down == count => rest = if step == most { 0.0 } else { rest - step },
                down => {
                    let alpha = &mut self.corners[down].alpha;
                    *alpha = if step == most { 0.0 } else { *alpha - step };
                    steps[down] -= step;
                }
            }
        }
        gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The dual value of a block at its variables: Σ α v − ½ Σ α α G, where v are the values at α = 0.
    fn value(block: &Block, values: &[f64], alpha: &[f64]) -> f64 {
        let count = alpha.len();
        let bent: f64 =
            (0..count).map(|a| (0..count).map(|b| alpha[a] * alpha[b] * block.product(a, b)).sum::<f64>()).sum();
        alpha.iter().zip(values).map(|(alpha, value)| alpha * value).sum::<f64>() - 0.5 * bent
    }

    #[test]
    fn no_feasible_change_raises_the_value_of_a_solved_block() {
        let mut random = Random::new(3, 1, 0);
        for case in 0..500 {
            let count = 1 + random.below(6) as usize;
            let vectors: Vec<Vec<f64>> = (0..count).map(|_| (0..3).map(|_| random.normal()).collect()).collect();
            let mut block = Block { cost: 0.2 + random.uniform(), ..Block::default() };
            for a in 0..count {
                let products: Vec<f64> =
                    (0..=a).map(|b| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum()).collect();
                block.push(vec![a as u32], Plane::default(), &products);
            }
            let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
            let mut work = Work { values: values.clone(), ..Work::default() };
            let gain = block.solve(1e-13, &mut work);
            let alpha: Vec<f64> = block.corners.iter().map(|corner| corner.alpha).collect();
            assert_eq!(alpha, work.steps, "{case}");
            let best = value(&block, &values, &alpha);
            assert!((gain - best).abs() < 1e-9 * (1.0 + best.abs()), "{case}: {gain} {best}");
            assert!(alpha.iter().sum::<f64>() <= block.cost * (1.0 + 1e-12));
            for _ in 0..200 {
                let mut other: Vec<f64> = alpha.iter().map(|a| (a + 0.05 * random.normal()).max(0.0)).collect();
                let sum: f64 = other.iter().sum();
                if sum > block.cost {
                    other.iter_mut().for_each(|a| *a *= block.cost / sum);
                }
                assert!(value(&block, &values, &other) <= best + 1e-9, "{case}");
            }
        }
    }
}
