//! [`Sigmoid`]: the probability as a logistic function of the score.
//!
//! ```text
//! min over a, b   Σ_i u_i (−t_i ln p_i − (1 − t_i) ln(1 − p_i)),   p_i = σ(a s_i + b)
//! ```
//! u_i is the weight of row i. The target t_i is (N₊ + 1) / (N₊ + 2) for a positive and 1 / (N₋ + 2) for a negative
//! row, with the total weights N₊ and N₋: outcomes of certainty would make a infinite where scores separate the rows.
//! The problem is convex with two variables. Newton's method with step halving starts at a = 0; scores are first
//! centred and scaled, so that the Hessian does not depend on their units. It stops when the gradient is below 1e-10 of
//! the total weight, or no step lowers the value. Cost: O(n) for each of about ten steps.
//!
//! References: Platt, Probabilistic outputs for support vector machines (1999); Lin, Lin & Weng, A note on Platt's
//! probabilistic outputs for support vector machines, Machine Learning 68 (2007).

use super::Sample;
use serde::{Deserialize, Serialize};

/// σ(slope · score + offset)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sigmoid {
    /// The factor of the score.
    pub slope: f64,
    /// The log-odds at a score of 0.
    pub offset: f64,
}

/// The largest number of Newton steps; about ten are usual.
const STEPS: usize = 100;

/// The gradient at which Newton's method stops, as a share of the total weight.
const SMALL: f64 = 1e-10;

impl Sigmoid {
    /// The probability at a score.
    pub fn probability(&self, score: f64) -> f64 {
        logistic(self.slope * score + self.offset)
    }

    pub(super) fn is_valid(&self) -> bool {
        self.slope.is_finite() && self.offset.is_finite()
    }

    /// The sigmoid with the smallest loss.
    pub(crate) fn fit(sample: &Sample) -> Sigmoid {
        let [negatives, positives] = sample.totals();
        let total = negatives + positives;
        let start = ((positives + 1.0) / (negatives + 1.0)).ln();
        if total == 0.0 {
            return Sigmoid { slope: 0.0, offset: start };
        }
        let weighted = sample.numbers.iter().zip(&sample.weights);
        let mean = weighted.clone().map(|(number, weight)| number * (weight / total)).sum::<f64>();
        let spread = weighted.map(|(number, weight)| (number - mean).powi(2) * (weight / total)).sum::<f64>().sqrt();
        if !(spread > 0.0 && spread.is_finite()) {
            // All scores are equal: only the offset can be learned, from the smoothed targets.
            let share = (positives * high(positives) + negatives * low(negatives)) / total;
            return Sigmoid { slope: 0.0, offset: (share / (1.0 - share)).ln() };
        }
        let numbers: Vec<f64> = sample.numbers.iter().map(|number| (number - mean) / spread).collect();
        let targets = sample.positive.iter().map(|&positive| if positive { high(positives) } else { low(negatives) });
        let problem = Problem { numbers, targets: targets.collect(), weights: &sample.weights };
        let (slope, offset) = problem.solve(start, SMALL * total);
        Sigmoid { slope: slope / spread, offset: offset - slope * mean / spread }
    }
}

/// The target of a positive row.
fn high(positives: f64) -> f64 {
    (positives + 1.0) / (positives + 2.0)
}

/// The target of a negative row.
fn low(negatives: f64) -> f64 {
    1.0 / (negatives + 2.0)
}

/// 1 / (1 + e^(−z)), without overflow.
fn logistic(z: f64) -> f64 {
    if z >= 0.0 {
        1.0 / (1.0 + (-z).exp())
    } else {
        let odds = z.exp();
        odds / (1.0 + odds)
    }
}

struct Problem<'a> {
    numbers: Vec<f64>,
    targets: Vec<f64>,
    weights: &'a [f64],
}

impl Problem<'_> {
    fn rows(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let rows = self.numbers.iter().zip(&self.targets).zip(self.weights);
        rows.map(|((&number, &target), &weight)| (number, target, weight))
    }

    fn value(&self, slope: f64, offset: f64) -> f64 {
        self.rows()
            .map(|(number, target, weight)| {
                let z = slope * number + offset;
                // −t ln σ(z) − (1 − t) ln σ(−z), from the side that does not overflow.
                let tail = (-z.abs()).exp().ln_1p();
                weight * (tail + if z >= 0.0 { (1.0 - target) * z } else { -target * z })
            })
            .sum()
    }

    fn solve(&self, start: f64, small: f64) -> (f64, f64) {
        const RIDGE: f64 = 1e-12;
        let (mut slope, mut offset) = (0.0, start);
        let mut value = self.value(slope, offset);
        for _ in 0..STEPS {
            let (mut gradient, mut hessian) = ([0.0; 2], [RIDGE, 0.0, RIDGE]);
            for (number, target, weight) in self.rows() {
                let share = logistic(slope * number + offset);
                let (first, second) = (weight * (share - target), weight * share * (1.0 - share));
                gradient[0] += first * number;
                gradient[1] += first;
                hessian[0] += second * number * number;
                hessian[1] += second * number;
                hessian[2] += second;
            }
            if gradient[0].abs().max(gradient[1].abs()) <= small {
                break;
            }
            let determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1];
            let step = [
                -(hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant,
                -(hessian[0] * gradient[1] - hessian[1] * gradient[0]) / determinant,
            ];
            let falls = gradient[0] * step[0] + gradient[1] * step[1];
            let lower = (0..40).map(|halvings| 0.5f64.powi(halvings)).find_map(|length| {
                let at = (slope + length * step[0], offset + length * step[1]);
                let found = self.value(at.0, at.1);
                (found < value + 1e-4 * length * falls).then_some((at, found))
            });
            // The limit of double precision.
            let Some((at, found)) = lower else { break };
            (slope, offset) = at;
            value = found;
        }
        (slope, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(rows: &[(f64, bool, f64)]) -> Sample {
        let mut sample = Sample::default();
        rows.iter().for_each(|&(number, positive, weight)| sample.push(number, positive, weight));
        sample
    }

    /// The loss by its definition.
    fn loss(rows: &[(f64, bool, f64)], slope: f64, offset: f64) -> f64 {
        let total = |class: bool| rows.iter().filter(|row| row.1 == class).map(|row| row.2).sum::<f64>();
        let (positives, negatives) = (total(true), total(false));
        rows.iter()
            .map(|&(number, positive, weight)| {
                let target = if positive { (positives + 1.0) / (positives + 2.0) } else { 1.0 / (negatives + 2.0) };
                let z = slope * number + offset;
                let (yes, no) = (1.0 + (-z).exp(), 1.0 + z.exp());
                weight * (target * yes.ln() + (1.0 - target) * no.ln())
            })
            .sum()
    }

    /// The minimum by trying the neighbours of a point on a grid that gets finer.
    fn searched(rows: &[(f64, bool, f64)]) -> f64 {
        let (mut at, mut step) = ((0.0, 0.0), 4.0);
        let mut best = loss(rows, 0.0, 0.0);
        while step > 1e-9 {
            let mut moved = false;
            for (a, b) in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1), (1, -2), (-1, 2)] {
                let next = (at.0 + step * f64::from(a), at.1 + step * f64::from(b));
                let value = loss(rows, next.0, next.1);
                if value < best {
                    (at, best, moved) = (next, value, true);
                }
            }
            if !moved {
                step /= 2.0;
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sigmoid_has_the_smallest_loss(
            rows in prop::collection::vec((-20..20i32, any::<bool>(), 1..4i32), 1..25),
        ) {
            let rows: Vec<(f64, bool, f64)> =
                rows.into_iter().map(|(number, positive, weight)| (f64::from(number) / 8.0, positive, weight.into())).collect();
            let found = Sigmoid::fit(&sample(&rows));
            let (value, twin) = (loss(&rows, found.slope, found.offset), searched(&rows));
            prop_assert!(value <= twin + 1e-7 * (1.0 + twin), "{value} {twin} {found:?}");
        }

        #[test]
        fn units_of_scores_do_not_matter(
            rows in prop::collection::vec((-20..20i32, any::<bool>()), 3..20), factor in 1e-6..1e6f64,
        ) {
            let plain: Vec<_> = rows.iter().map(|row| (f64::from(row.0), row.1, 1.0)).collect();
            let scaled: Vec<_> = plain.iter().map(|row| (row.0 * factor + 3.0, row.1, 1.0)).collect();
            let (plain_fit, scaled_fit) = (Sigmoid::fit(&sample(&plain)), Sigmoid::fit(&sample(&scaled)));
            for (a, b) in plain.iter().zip(&scaled) {
                let (a, b) = (plain_fit.probability(a.0), scaled_fit.probability(b.0));
                prop_assert!((a - b).abs() < 1e-5, "{a} {b}");
            }
        }
    }

    #[test]
    fn separable_scores_and_single_classes_stay_below_certainty() {
        let rows: Vec<_> = (0..20).map(|row| (f64::from(row), row >= 10, 1.0)).collect();
        let found = Sigmoid::fit(&sample(&rows));
        assert!(found.slope > 0.0 && found.probability(19.0) < 1.0 && found.probability(0.0) > 0.0);
        let single: Vec<_> = (0..8).map(|row| (f64::from(row), false, 1.0)).collect();
        let found = Sigmoid::fit(&sample(&single));
        assert!((found.probability(3.0) - 0.1).abs() < 1e-6, "{found:?}");
        assert_eq!(Sigmoid::fit(&Sample::default()).probability(1.0), 0.5);
    }
}
