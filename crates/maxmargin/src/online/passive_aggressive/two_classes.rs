//! [`TwoClasses`]: passive-aggressive learning of two classes from rows as they come.

use super::bounds::Bounds;
use super::step::{Average, Member, Point, Steps};
use super::store::{Store, square_of};
use super::{Rule, Variant};
use crate::data::row_loops::for_this_machine;
use crate::data::{Matrix, Rows, with_rows};
use std::ops::Range;

/// How many rows ahead rows are prefetched.
const AHEAD: usize = 8;

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ways {
    pub(crate) rule: Rule,
    pub(crate) variant: Variant,
    pub(crate) c: f64,
    pub(crate) intercept: bool,
    /// Rows of a batch, an even number.
    pub(crate) batch: usize,
    /// The most rows of each class that are kept.
    pub(crate) reservoir: usize,
    /// After how many rows the weights are averaged, if they are.
    pub(crate) average: Option<u64>,
}

/// The learned weights, with everything needed to continue exactly where it stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TwoClassState {
    pub(crate) point: Point,
    /// Rows for batches; none if every row is learned from alone.
    pub(crate) store: Option<Store>,
    pub(crate) bounds: Bounds,
    /// The weighted sum of the losses of rows before each was learned from.
    pub(crate) loss: f64,
    /// The sum of the weights of the rows.
    pub(crate) weight: f64,
}

/// See the top of the file.
#[derive(Clone, Debug)]
pub(crate) struct TwoClasses {
    pub(crate) state: TwoClassState,
    half: usize,
    steps: Steps,
    batch: Vec<Member>,
}

/// The rows to learn from, with what is known of them.
pub(crate) struct Labelled<'a> {
    pub(crate) matrix: &'a Matrix,
    /// Whether each row is of the positive class.
    pub(crate) positive: &'a [bool],
    pub(crate) weights: Option<&'a [f64]>,
}

impl TwoClasses {
    /// Starts from weights and a constant, with all counts at zero.
    pub(crate) fn start(ways: Ways, vector: Vec<f64>, constant: f64) -> TwoClasses {
        let average =
            ways.average.map(|before| Average { late: vec![0.0; vector.len()], before, ..Average::default() });
        let point = Point { vector, constant, average };
        let store = (ways.rule != Rule::Single).then(|| Store::new(ways.reservoir));
        TwoClasses::resume(ways, TwoClassState { point, store, bounds: Bounds::default(), loss: 0.0, weight: 0.0 })
    }

    /// Continues exactly from a state.
    pub(crate) fn resume(ways: Ways, state: TwoClassState) -> TwoClasses {
        let steps = Steps::new(ways.rule, ways.variant, ways.c, ways.intercept);
        TwoClasses { state, half: ways.batch / 2, steps, batch: Vec::new() }
    }

    /// Scores rows and then learns from them, one after the other. Adds each score to `scores`. Rows of weight zero are
    /// not learned from. Returns whether all numbers were finite; if not, the learner is unusable.
    pub(crate) fn learn(&mut self, rows: &Labelled<'_>, range: Range<usize>, scores: &mut Vec<f64>) -> bool {
        self.state.point.grow(rows.matrix.cols());
        let dense = rows.matrix.is_dense();
        with_rows!(rows.matrix, matrix => learn_rows(matrix, dense, rows, range, self, scores))
    }

    #[inline(always)]
    fn learn_one<R: Rows>(&mut self, rows: &R, dense: bool, row: usize, (positive, weight): (bool, f64)) -> f64 {
        let TwoClassState { point, store, bounds, loss, weight: total } = &mut self.state;
        let sign = if positive { 1.0 } else { -1.0 };
        point.count();
        let score = point.score(rows, row);
        bounds.count(positive, score);
        if weight == 0.0 {
            return score;
        }
        let violation = (1.0 - sign * score).max(0.0);
        *total += weight;
        *loss += weight * if self.steps.variant == Variant::PaIi { violation * violation } else { violation };
        let Some(store) = store else {
            // The step is for the weights themselves, and not for their average.
            let margin = if point.average.is_some() {
                sign * (rows.dot(row, &point.vector) + point.constant)
            } else {
                sign * score
            };
            if margin < 1.0 {
                let member = Member { row, sign, weight, square: square(rows, row) };
                bounds.add(self.steps.single(rows, member, margin, point));
            } else {
                bounds.add(Default::default());
            }
            return score;
        };
        store.keep(rows, row, dense, positive, weight);
        if store.batch(self.half, &mut self.batch) && !self.batch.is_empty() {
            bounds.add(self.steps.step(&*store, &self.batch, point));
        }
        score
    }
}

/// ‖x‖²
#[inline(always)]
fn square<R: Rows>(rows: &R, row: usize) -> f64 {
    let (mut lanes, mut lane) = ([0.0; 8], 0);
    rows.each(row, |_, value| {
        lanes[lane & 7] += value * value;
        lane += 1;
    });
    lanes.iter().sum()
}

for_this_machine! {
    /// See [`learn_rows_plainly`].
    fn learn_rows[R: Rows](
        matrix: &R, dense: bool, rows: &Labelled<'_>, range: Range<usize>, learner: &mut TwoClasses, scores: &mut Vec<f64>,
    ) -> bool = learn_rows_plainly
}

/// Learns from the rows, and returns whether all scores were finite.
#[inline(always)]
fn learn_rows_plainly<R: Rows>(
    matrix: &R,
    dense: bool,
    rows: &Labelled<'_>,
    range: Range<usize>,
    learner: &mut TwoClasses,
    scores: &mut Vec<f64>,
) -> bool {
    let (mut finite, end) = (true, rows.positive.len());
    for row in range {
        if row + AHEAD < end {
            matrix.prefetch(row + AHEAD);
        }
        let weight = rows.weights.map_or(1.0, |weights| weights[row]);
        let score = learner.learn_one(matrix, dense, row, (rows.positive[row], weight));
        finite &= score.is_finite();
        scores.push(score);
    }
    finite && learner.state.loss.is_finite() && learner.state.point.constant.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};
    use crate::random::Random;

    #[test]
    fn squares_are_sums_of_squares() {
        let values: Vec<f64> = (0..37).map(|at| f64::from(at) * 0.5 - 9.0).collect();
        let expected: f64 = values.iter().map(|value| value * value).sum();
        assert!((square_of(&values) - expected).abs() < 1e-9);
        let dense = Dense::new(values.clone(), 1, 37).expect("a row");
        let indices: Vec<u32> = (0..37).collect();
        let sparse = Csr::new(vec![0u64, 37], indices, values, 37).expect("a row");
        assert!((square(&dense, 0) - expected).abs() < 1e-9 && (square(&sparse, 0) - expected).abs() < 1e-9);
    }

    /// How many rows a second are learned from, 150 of 47,152 features each.
    #[test]
    #[ignore = "a measurement"]
    fn speed() {
        let (rows, features, entries) = (20_000usize, 47_152u64, 150usize);
        let mut random = Random::new(1, 1, 1);
        let (mut starts, mut indices, mut values) = (vec![0u64], Vec::<u16>::new(), Vec::<f32>::new());
        let mut positive = Vec::new();
        for row in 0..rows {
            let mut own: Vec<u16> = (0..entries).map(|_| (features as f64 * random.uniform().powi(3)) as u16).collect();
            own.sort_unstable();
            own.dedup();
            values.extend(own.iter().map(|_| (1.0 / (entries as f64).sqrt()) as f32));
            indices.extend(own);
            starts.push(indices.len() as u64);
            positive.push(row % 2 == 0);
        }
        let matrix = Matrix::Csr16F32(Csr::new(starts, indices, values, features as usize).expect("rows"));
        for rule in Rule::ALL {
            for batch in [2, 8] {
                let ways =
                    Ways { rule, variant: Variant::PaI, c: 1.0, intercept: true, batch, reservoir: 64, average: None };
                let mut learner = TwoClasses::start(ways, Vec::new(), 0.0);
                let labelled = Labelled { matrix: &matrix, positive: &positive, weights: None };
                let mut scores = Vec::with_capacity(rows);
                let start = std::time::Instant::now();
                for _ in 0..5 {
                    scores.clear();
                    assert!(learner.learn(&labelled, 0..rows, &mut scores));
                }
                let seconds = start.elapsed().as_secs_f64();
                println!("{rule:?} {batch}: {:.2} million rows a second", 5e-6 * rows as f64 / seconds);
            }
        }
    }
}
