//! The dual variables of one row over all its classes: the exact optimum while all other rows are fixed.
//!
//! ```text
//! min over β   ½ A ‖β‖² + Σ_m B_m β_m,   β_y = Σ_(m≠y) α_m,   β_m = −α_m,   B = s + e − A β before
//! largest      α ≥ 0,  Σ_m α_m ≤ C          sum      0 ≤ α_m ≤ C
//! ```
//! y is the class of the row, s its scores, A = k(x, x), and e is 1 for every class but y.
//!
//! *Largest.* With D = B + A·C at class y, α_m = max(0, D_m − θ)/A where these numbers add up to C over all classes, y
//! included. Their sum is convex and falls with θ: a step of Newton's method from anywhere ends left of the root, and
//! the next ones never pass it. *Sum.* α_m = v_m − γ within its box, v_m = (1 + s_m − s_y)/A + α_m + Σα before, and
//! γ = Σ α: a root between bounds. Each takes O(k) a step and no sort (Keerthi et al., A sequential dual method for
//! large scale multi-class linear SVMs, KDD 2008).

use crate::task::JointForm;

/// A row whose kernel value with itself is below this share of one has scores that its own variables do not move.
const FLAT: f64 = 1e-12;

/// Steps of the search for γ, which usually takes five.
const MOST_STEPS: usize = 200;

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// y
    pub(crate) class: usize,
    /// C
    pub(crate) cost: f64,
    /// A
    pub(crate) own: f64,
    pub(crate) form: JointForm,
}

/// The loss of a row, and how far its dual variables are from the optimum at these scores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlockGap {
    /// The loss, with its cost.
    pub(crate) loss: f64,
    /// The part of the duality gap that belongs to the row. Never negative.
    pub(crate) gap: f64,
}

impl Block {
    /// The loss and the gap. `beta` holds β.
    pub(crate) fn gap(&self, scores: &[f64], beta: &[f64]) -> BlockGap {
        let &Block { class, cost, form, .. } = self;
        if cost == 0.0 {
            return BlockGap::default();
        }
        let own = scores[class];
        // Σ α_m v_m = −Σ β_m v_m
        let (mut worst, mut sum, mut met) = (0.0f64, 0.0, 0.0);
        for (m, (score, beta)) in scores.iter().zip(beta).enumerate() {
            if m != class {
                let violation = 1.0 + score - own;
                worst = worst.max(violation);
                sum += violation.max(0.0);
                met -= beta * violation;
            }
        }
        let loss = cost * if form == JointForm::Largest { worst } else { sum };
        BlockGap { loss, gap: (loss - met).max(0.0) }
    }

    /// Writes the optimal β. `hint` is where the search starts: what the last one of this row returned.
    pub(crate) fn solve(&self, scores: &[f64], beta: &mut [f64], hint: f64) -> f64 {
        let hint = match self.form {
            _ if self.own <= FLAT => self.at_a_corner(scores, beta),
            JointForm::Largest => self.largest(scores, beta, hint),
            JointForm::Sum | JointForm::Softmax => self.sum(scores, beta),
        };
        let own: f64 = beta.iter().enumerate().filter(|(m, _)| *m != self.class).map(|(_, beta)| beta).sum();
        beta[self.class] = -own;
        hint
    }

    /// The scores do not depend on β: the dual function is linear.
    fn at_a_corner(&self, scores: &[f64], beta: &mut [f64]) -> f64 {
        let others = (0..scores.len()).filter(|&m| m != self.class);
        let worst = others.reduce(|worst, m| if scores[m] > scores[worst] { m } else { worst }).unwrap_or(self.class);
        let violation = 1.0 + scores[worst] - scores[self.class];
        for (m, beta) in beta.iter_mut().enumerate() {
            let counts = match self.form {
                JointForm::Largest => m == worst && violation > 0.0,
                _ => 1.0 + scores[m] - scores[self.class] > 0.0,
            };
            *beta = if counts { -self.cost } else { 0.0 };
        }
        f64::NAN
    }

    fn largest(&self, scores: &[f64], beta: &mut [f64], hint: f64) -> f64 {
        let &Block { class, cost, own, .. } = self;
        let mass = own * cost;
        // D takes the place of β.
        let mut top = f64::NEG_INFINITY;
        for (m, (beta, score)) in beta.iter_mut().zip(scores).enumerate() {
            let before = *beta;
            *beta = if m == class { score - own * before + mass } else { score + 1.0 - own * before };
            top = top.max(*beta);
        }
        // At the root the largest D exceeds θ by A·C at most, and by something.
        let lowest = top - mass;
        let mut theta = if hint >= lowest && hint < top { hint } else { lowest };
        let above = |theta: f64| {
            beta.iter().filter(|d| **d > theta).fold((0.0, 0.0), |(sum, count), d| (sum + (d - theta), count + 1.0))
        };
        // The first step may go down, all others go up.
        for step in 0.. {
            let (sum, count) = above(theta);
            let next = theta + (sum - mass) / count;
            if step > 0 && next <= theta || count == 0.0 {
                break;
            }
            theta = next.max(lowest);
        }
        for (m, d) in beta.iter_mut().enumerate() {
            let share = ((*d - theta) / own).clamp(0.0, cost);
            *d = if m == class { 0.0 } else { -share };
        }
        // Rounding must not make the sum exceed C.
        let total: f64 = -beta.iter().sum::<f64>();
        if total > cost {
            beta.iter_mut().for_each(|beta| *beta *= cost / total);
        }
        theta
    }

    fn sum(&self, scores: &[f64], beta: &mut [f64]) -> f64 {
        let &Block { class, cost, own, .. } = self;
        let before: f64 = beta.iter().enumerate().filter(|(m, _)| *m != class).map(|(_, beta)| -beta).sum();
        // v takes the place of β; that of the row's class stays below everything.
        let mut top = f64::NEG_INFINITY;
        for (m, (beta, score)) in beta.iter_mut().zip(scores).enumerate() {
            *beta = match m == class {
                true => f64::NEG_INFINITY,
                false => (1.0 + score - scores[class]) / own - *beta + before,
            };
            top = top.max(*beta);
        }
        let (mut low, mut high) = (0.0, top.min((scores.len() as f64 - 1.0) * cost).max(0.0));
        let mut total = before.clamp(low, high);
        for _ in 0..MOST_STEPS {
            let (mut sum, mut inside) = (0.0, 0.0);
            for v in &*beta {
                let alpha = v - total;
                if alpha > 0.0 && alpha < cost {
                    inside += 1.0;
                }
                sum += alpha.clamp(0.0, cost);
            }
            let off = total - sum;
            if off == 0.0 {
                break;
            }
            *(if off > 0.0 { &mut high } else { &mut low }) = total;
            let next = total - off / (1.0 + inside);
            let next = if next > low && next < high { next } else { 0.5 * (low + high) };
            if next <= low || next >= high {
                break;
            }
            total = next;
        }
        beta.iter_mut().for_each(|v| *v = -(*v - total).clamp(0.0, cost));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const FORMS: [JointForm; 2] = [JointForm::Largest, JointForm::Sum];

    /// β somewhere in its domain.
    fn feasible(random: &mut Random, block: &Block, classes: usize) -> Vec<f64> {
        let mut beta: Vec<f64> =
            (0..classes).map(|_| if random.chance(0.5) { -block.cost * random.uniform() } else { 0.0 }).collect();
        beta[block.class] = 0.0;
        let total: f64 = -beta.iter().sum::<f64>();
        if block.form == JointForm::Largest && total > block.cost {
            beta.iter_mut().for_each(|beta| *beta *= block.cost / total);
        }
        beta[block.class] = -beta.iter().sum::<f64>();
        beta
    }

    #[test]
    fn the_optimum_of_a_row_has_no_gap_at_the_scores_it_makes() {
        let mut random = Random::new(7, 1, 0);
        for trial in 0..4000 {
            let classes = 2 + trial % 7;
            let block = Block {
                class: random.below(classes as u64) as usize,
                cost: [0.1, 1.0, 10.0][random.below(3) as usize],
                own: [0.01, 1.0, 30.0][random.below(3) as usize],
                form: FORMS[trial % 2],
            };
            let scores: Vec<f64> = (0..classes).map(|_| (6.0 * random.uniform() - 3.0).round() * 0.7).collect();
            let before = feasible(&mut random, &block, classes);
            let mut after = before.clone();
            block.solve(&scores, &mut after, [f64::NAN, 0.3, -5.0][trial % 3]);
            let moved = |after: &[f64]| -> Vec<f64> {
                (0..classes).map(|m| scores[m] + block.own * (after[m] - before[m])).collect()
            };
            let BlockGap { loss, gap } = block.gap(&moved(&after), &after);
            let size = loss.max(block.cost);
            assert!(gap <= 1e-11 * size, "{block:?} {gap} {loss} {after:?}");
            let total: f64 = -after.iter().enumerate().filter(|(m, _)| *m != block.class).map(|(_, b)| b).sum::<f64>();
            assert!(after.iter().enumerate().all(|(m, beta)| m == block.class || (-block.cost..=0.0).contains(beta)));
            assert!(block.form == JointForm::Sum || total <= block.cost * (1.0 + 1e-15));
            assert!(after.iter().sum::<f64>().abs() < 1e-12 * size);
        }
    }

    #[test]
    fn the_gap_is_the_difference_of_primal_and_dual() {
        let mut random = Random::new(8, 1, 0);
        for trial in 0..200 {
            let block = Block { class: trial % 4, cost: 2.0, own: 1.5, form: FORMS[trial % 2] };
            // With a single row, the scores are its own.
            let beta = feasible(&mut random, &block, 4);
            let scores: Vec<f64> = beta.iter().map(|beta| 1.5 * beta).collect();
            let square: f64 = beta.iter().zip(&scores).map(|(beta, score)| beta * score).sum();
            let violations = (0..4).filter(|m| *m != block.class).map(|m| 1.0 + scores[m] - scores[block.class]);
            let loss: f64 = match block.form {
                JointForm::Largest => 2.0 * violations.fold(0.0, f64::max),
                _ => violations.map(|v| 2.0 * v.max(0.0)).sum(),
            };
            let found = block.gap(&scores, &beta);
            assert!((found.loss - loss).abs() < 1e-12);
            assert!((found.gap - (square + loss - beta[block.class])).abs() < 1e-12);
        }
    }
}
