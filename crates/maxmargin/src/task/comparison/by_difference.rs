//! [`ByDifference`]: the same comparisons with every pair stored as one row, right minus left.
//!
//! Let z be the score of such a row: the score of the right row minus that of the left one. A decided pair of sign y
//! has the constraint y·z − τ ≥ m, and a tie has the two constraints −z + τ ≥ m and z + τ ≥ m. The terms of a row
//! depend only on its own score, so all loops run over neighbouring numbers, several at a time.

use super::{Comparison, PairMemo, TiesAs};
use crate::data::row_loops::for_this_machine;
use crate::error::Result;
use crate::loss::{Curve, CurvePoint, Loss};
use crate::task::{
    Barrier, Constraint, Curvature, Directions, Independent, Objective, Place, Roundable, Slopes, rounding_terms,
};
use std::ops::Range;
use std::sync::Arc;

/// Number of rows in a part.
const PART: usize = 1024;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct ByDifference {
    /// −1, 0 or 1: the outcome.
    signs: Arc<[i8]>,
    /// The cost of either constraint of a pair for C = 1.
    costs: Arc<[f64]>,
    /// The margin of each pair, if they differ.
    margins: Option<Arc<[f64]>>,
    /// The ties with a second constraint. These constraints come after those of the pairs.
    ties: Arc<[u32]>,
    /// 1 if there is a threshold, 0 otherwise.
    threshold: f64,
    loss: Loss,
    curve: Curve,
    c: f64,
}

impl Comparison {
    /// The same task over rows that are differences, right minus left, see [`crate::data::Design::differences`].
    pub(crate) fn over_differences(&self) -> ByDifference {
        let unit = Comparison { c: 1.0, ..self.clone() };
        let count = self.pairs.len();
        let margins = (self.weight_as == crate::task::WeightAs::Margin)
            .then(|| (0..count).map(|pair| self.margin(pair)).collect::<Vec<_>>().into());
        ByDifference {
            signs: (0..count).map(|pair| self.pairs.outcome(pair).sign()).collect(),
            costs: (0..count).map(|pair| unit.cost(pair)).collect(),
            margins,
            ties: Arc::clone(&self.ties),
            threshold: if self.ties_as == TiesAs::Threshold { 1.0 } else { 0.0 },
            loss: self.loss,
            curve: self.curve,
            c: self.c,
        }
    }
}

impl ByDifference {
    fn margin(&self, pair: usize) -> f64 {
        self.margins.as_ref().map_or(self.loss.margin(), |margins| margins[pair])
    }
}

impl Independent for ByDifference {
    fn blocks(&self) -> usize {
        self.signs.len() + self.ties.len()
    }

    fn loss(&self) -> Loss {
        self.loss
    }

    #[inline]
    fn constraint(&self, block: usize) -> Constraint {
        let pair = block.checked_sub(self.signs.len()).map_or(block, |tie| self.ties[tie] as usize);
        let sign = self.signs[pair];
        Constraint {
            row: pair,
            against: None,
            coefficient: match sign {
                0 if block == pair => -1.0,
                0 => 1.0,
                sign => f64::from(sign),
            },
            threshold: if sign == 0 { self.threshold } else { -self.threshold },
            margin: self.margin(pair),
            cost: self.c * self.costs[pair],
        }
    }

    fn barrier(&self) -> f64 {
        if self.threshold == 0.0 || self.loss != Loss::Logistic {
            return 0.0;
        }
        self.ties.iter().map(|&pair| self.c * self.costs[pair as usize]).sum()
    }
}

/// What the value of a run of rows depends on.
struct Run<'a> {
    signs: &'a [i8],
    costs: &'a [f64],
    margins: Option<&'a [f64]>,
    scores: &'a [f64],
    c: f64,
    margin: f64,
    /// τ, and whether there is one.
    value: f64,
    threshold: f64,
}

/// Sums over a run of rows.
#[derive(Default)]
struct RunSums {
    value: f64,
    by_threshold: f64,
    threshold_curvature: f64,
    tie_costs: f64,
    rounding: [f64; 2],
}

/// What is written for each row.
struct Out<'a> {
    slope: &'a mut [f64],
    curvature: &'a mut [f64],
    cross: &'a mut [f64],
}

for_this_machine! {
    /// Writes slope and curvatures of each row, and sums.
    fn evaluate_run[](run: &Run<'_>, curve: Curve, out: Out<'_>) -> RunSums = evaluate_run_plainly
}

#[inline(always)]
fn evaluate_run_plainly(run: &Run<'_>, curve: Curve, out: Out<'_>) -> RunSums {
    // One loop for each curve, so that the compiler can specialise it.
    match curve {
        Curve::Rounded(width) => evaluate_each(run, |v| Curve::Rounded(width).at(v), out),
        Curve::Sharp(Loss::Hinge) => evaluate_each(run, |v| Curve::Sharp(Loss::Hinge).at(v), out),
        Curve::Sharp(Loss::SquaredHinge) => evaluate_each(run, |v| Curve::Sharp(Loss::SquaredHinge).at(v), out),
        Curve::Sharp(Loss::Logistic) => evaluate_each(run, |v| Curve::Sharp(Loss::Logistic).at(v), out),
    }
}

/// Number of rows at a time.
const LANES: usize = 8;

/// Some neighbouring rows.
struct Lanes {
    signs: [i8; LANES],
    costs: [f64; LANES],
    margins: [f64; LANES],
    scores: [f64; LANES],
}

/// Slope, curvature and cross derivative of some rows; adds to the sums. It is inlined, so that it is compiled for the
/// instruction set of the caller.
#[inline(always)]
fn lanes(
    run: &Run<'_>,
    rows: &Lanes,
    at: &impl Fn(f64) -> CurvePoint,
    sums: &mut [[f64; LANES]; 6],
) -> ([f64; LANES], [f64; LANES], [f64; LANES]) {
    let (mut slope, mut curvature, mut cross) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let (sign, z) = (f64::from(rows.signs[lane]), rows.scores[lane]);
        let is_tie = if rows.signs[lane] == 0 { 1.0 } else { 0.0 };
        // The first constraint of a tie uses −z, the second one z.
        let side = sign - is_tie;
        let t = run.threshold * (2.0 * is_tie - 1.0);
        let first = run.c * rows.costs[lane];
        let second = is_tie * first;
        let reach = rows.margins[lane] - t * run.value;
        let (one, other) = (at(reach - side * z), at(reach - z));
        let (pull_one, pull_other) = (first * one.derivative, second * other.derivative);
        let (bend_one, bend_other) = (first * one.curvature, second * other.curvature);
        slope[lane] = -side * pull_one - pull_other;
        curvature[lane] = bend_one + bend_other;
        cross[lane] = t * (side * bend_one + bend_other);
        sums[0][lane] += first * one.value + second * other.value;
        sums[1][lane] -= t * (pull_one + pull_other);
        sums[2][lane] += t * t * (bend_one + bend_other);
        sums[3][lane] += second;
        sums[4][lane] += first * one.rounding[0] + second * other.rounding[0];
        sums[5][lane] += first * one.rounding[1] + second * other.rounding[1];
    }
    (slope, curvature, cross)
}

#[inline(always)]
fn evaluate_each(run: &Run<'_>, at: impl Fn(f64) -> CurvePoint, out: Out<'_>) -> RunSums {
    let mut sums = [[0.0; LANES]; 6];
    let count = run.scores.len();
    for start in (0..count).step_by(LANES) {
        let here = start..(start + LANES).min(count);
        // The last lanes are filled up with rows that cost nothing.
        let mut rows =
            Lanes { signs: [1; LANES], costs: [0.0; LANES], margins: [run.margin; LANES], scores: [0.0; LANES] };
        let length = here.len();
        rows.signs[..length].copy_from_slice(&run.signs[here.clone()]);
        rows.costs[..length].copy_from_slice(&run.costs[here.clone()]);
        rows.scores[..length].copy_from_slice(&run.scores[here.clone()]);
        if let Some(margins) = run.margins {
            rows.margins[..length].copy_from_slice(&margins[here.clone()]);
        }
        let (slope, curvature, cross) = lanes(run, &rows, &at, &mut sums);
        out.slope[here.clone()].copy_from_slice(&slope[..length]);
        out.curvature[here.clone()].copy_from_slice(&curvature[..length]);
        out.cross[here].copy_from_slice(&cross[..length]);
    }
    let [value, by_threshold, threshold_curvature, tie_costs, hinge, excess] = sums.map(|lanes| lanes.iter().sum());
    RunSums { value, by_threshold, threshold_curvature, tie_costs, rounding: [hinge, excess] }
}

impl Objective for ByDifference {
    type Memo = PairMemo;

    fn parts(&self) -> usize {
        self.signs.len().div_ceil(PART)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * PART..((part + 1) * PART).min(self.signs.len())
    }

    fn thresholds(&self) -> usize {
        usize::from(self.threshold != 0.0)
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut PairMemo) -> Result<f64> {
        let rows = self.rows(at.part);
        let value = at.thresholds.first().copied().unwrap_or(0.0);
        let run = Run {
            signs: &self.signs[rows.clone()],
            costs: &self.costs[rows.clone()],
            margins: self.margins.as_ref().map(|margins| &margins[rows.clone()]),
            scores: at.scores,
            c: self.c,
            margin: self.loss.margin(),
            value,
            threshold: self.threshold,
        };
        memo.curvature.resize(at.scores.len(), 0.0);
        memo.cross.resize(at.scores.len(), 0.0);
        let out = Out { slope: slopes.scores, curvature: &mut memo.curvature, cross: &mut memo.cross };
        let mut sums = evaluate_run(&run, self.curve, out);
        if self.loss == Loss::Logistic && self.threshold != 0.0 && sums.tie_costs > 0.0 {
            let Barrier { value, slope, curvature } = Barrier::at(value);
            sums.value += sums.tie_costs * value;
            sums.by_threshold += sums.tie_costs * slope;
            sums.threshold_curvature += sums.tie_costs * curvature;
        }
        (memo.threshold, memo.rounding) = (sums.threshold_curvature, sums.rounding);
        slopes.thresholds.iter_mut().for_each(|slope| *slope += sums.by_threshold);
        Ok(sums.value)
    }
}

impl Curvature for ByDifference {
    fn diagonal(&self, _at: &Place<'_>, memo: &PairMemo, out: &mut [f64]) -> Result<()> {
        out.copy_from_slice(&memo.curvature);
        Ok(())
    }

    fn rows_are_separate(&self) -> bool {
        true
    }

    fn by_threshold(&self, _at: &Place<'_>, memo: &PairMemo, out: &mut [f64]) -> Result<f64> {
        out.copy_from_slice(&memo.cross);
        Ok(memo.threshold)
    }

    fn curvature(&self, _at: &Place<'_>, memo: &PairMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let curved = memo.curvature.iter().zip(&memo.cross);
        let lines = along.scores.chunks_exact(along.count).zip(out.scores.chunks_exact_mut(along.count));
        for ((directions, line), (&curvature, &cross)) in lines.zip(curved) {
            for (column, (line, direction)) in line.iter_mut().zip(directions).enumerate() {
                *line = curvature * direction + along.thresholds.get(column).map_or(0.0, |along| cross * along);
                if let Some(out) = out.thresholds.get_mut(column) {
                    *out += cross * direction;
                }
            }
        }
        for (out, direction) in out.thresholds.iter_mut().zip(along.thresholds) {
            *out += memo.threshold * direction;
        }
        Ok(())
    }
}

impl Roundable for ByDifference {
    fn rounded(&self, width: f64) -> ByDifference {
        debug_assert!(self.loss == Loss::Hinge);
        ByDifference { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let counted = (0..self.signs.len()).filter(|&pair| self.costs[pair] > 0.0);
        let largest = counted.map(|pair| self.margin(pair)).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &PairMemo) -> [f64; 3] {
        rounding_terms(memo.rounding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Dense, Matrix, Outcome, Pairs, Targets};
    use crate::random::Random;
    use crate::run::Cancel;
    use crate::task::WeightAs;
    use crate::testing::{check_curvature, check_independent, check_objective};

    #[test]
    fn differences_cost_what_their_pairs_cost() {
        let mut random = Random::new(4, 1, 0);
        let count = 2100;
        let pairs = Pairs::new(
            (0..count).map(|p| 2 * p).collect::<Vec<u32>>(),
            (0..count).map(|p| 2 * p + 1).collect::<Vec<u32>>(),
        );
        let outcomes: Vec<Outcome> = (0..count).map(|_| Outcome::of_sign(random.below(3) as i8 - 1)).collect();
        let weights: Vec<f64> = (0..count).map(|_| random.below(4) as f64).collect();
        let pairs = pairs.and_then(|pairs| pairs.with_outcomes(outcomes)?.with_weights(weights)).expect("valid");
        let rows = 2 * count as usize;
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1).expect("valid"));
        let data = Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("valid");
        let scores: Vec<f64> = (0..rows).map(|_| 4.0 * random.uniform() - 2.0).collect();
        let differences: Vec<f64> = scores.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
        for loss in Loss::ALL {
            for ties_as in [TiesAs::Nothing, TiesAs::Contradiction, TiesAs::Threshold] {
                for weight_as in WeightAs::ALL {
                    let Ok(task) = Comparison::new(&data, ties_as, weight_as, loss, 0.7) else { continue };
                    let seen = task.over_differences();
                    let thresholds = vec![0.6; Objective::thresholds(&task)];
                    let by_rows = whole(&task, &scores, &thresholds);
                    let by_differences = whole(&seen, &differences, &thresholds);
                    assert!((by_rows.0 - by_differences.0).abs() <= 1e-11 * by_rows.0.abs().max(1.0));
                    assert!(
                        by_rows.1.iter().zip(&by_differences.1).all(|(a, b)| (a - b).abs() <= 1e-9 * a.abs().max(1.0))
                    );
                    check_objective(&seen, &differences, &thresholds).expect("conforms");
                    check_curvature(&seen, &differences, &thresholds).expect("conforms");
                    if seen.barrier() == 0.0 {
                        check_independent(&seen, &differences, &thresholds).expect("conforms");
                    }
                    assert_eq!(seen.barrier(), task.barrier());
                }
            }
        }
    }

    /// The value, and its slopes by the thresholds.
    fn whole<T: Objective>(task: &T, scores: &[f64], thresholds: &[f64]) -> (f64, Vec<f64>) {
        let mut slopes = vec![0.0; thresholds.len()];
        let value = (0..task.parts())
            .map(|part| {
                let rows = task.rows(part);
                let at = Place { part, scores: &scores[rows.clone()], thresholds, cancel: &Cancel::new() };
                let slopes = Slopes { scores: &mut vec![0.0; rows.len()], thresholds: &mut slopes };
                task.evaluate(&at, slopes, &mut T::Memo::default()).expect("a value")
            })
            .sum();
        (value, slopes)
    }
}
