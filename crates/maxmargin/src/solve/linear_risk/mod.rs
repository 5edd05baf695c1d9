//! [`LinearRisk`]: an objective of the scores of linear functions, as a function of their weights.
//!
//! ```text
//! f(W, b) = ½‖W‖² [+ ½‖b‖²] + Σ_parts value(X_part W, b)
//! ```
//! X has a row for each row of the data and a column for each feature, W a row for each feature and a column for each
//! score that a row has ([`Objective::outputs`], mostly one), and b are the free scalars. As a vector, W is stored row
//! by row: the weight of feature j for score o is number `j · outputs + o`, and the free scalars follow.
//!
//! It owns the loop over the data: scores of a part, the task's slopes, and Xᵀ·slope while the rows are still in cache.
//! So one evaluation of value and gradient reads the matrix once. Parts are gathered into lanes, which depend on the
//! data alone and are reduced in order, so the number of threads never changes the result. A part too long for a lane
//! is handled separately: its rows are cut into chunks for the two products.

mod hessian;
mod preconditioner;

use super::{Risk, Sizes};
use crate::data::{Design, Folded, STRETCH, Span, lanes_of_outputs, narrow_scores};
use crate::error::Result;
use crate::parallel;
use crate::run::Cancel;
use crate::task::{Objective, Place, Roundable, Slopes};
use std::ops::Range;

/// A part with more rows than this is split among several threads.
pub(crate) const LONG_PART: usize = 32 * 1024;

/// The exact Hessian is formed only while a part's dense tile stays below this many numbers.
pub(crate) const TILE: usize = 4 << 20;

/// Above the limit of the exact Hessian and up to this many coordinates, conjugate gradients are preconditioned by the
/// Hessian of a sample of the rows, if the rows are not too short. Every step forms and factors it again, hence the
/// limit.
pub(crate) const SAMPLED_HESSIAN_DIM: usize = 2048;

/// See the top of the file.
pub struct LinearRisk<'a, T: Objective> {
    task: &'a T,
    design: &'a Design,
    /// Number of scores per row.
    outputs: usize,
    penalise_thresholds: bool,
    /// What the penalty ½‖·‖² is multiplied by: 1, or 0 where the data are a part of a larger set.
    penalty: f64,
    cancel: &'a Cancel,
    lanes: Vec<Lane<T::Memo>>,
    point: Vec<f64>,
    /// Scores of the rows in part order. The scores of one row are side by side.
    scores: Vec<f64>,
    direction: Vec<f64>,
    /// How the scores change along the direction, as shares of [`Lane::spans`]. A line search needs no more digits,
    /// since its end point is evaluated again. Empty if no score changes.
    direction_scores: Vec<f32>,
    /// Whether the memos belong to the current point.
    remembers: bool,
    /// Buffers in which the lanes sum their part of a Hessian, kept for reuse.
    products: Vec<Vec<f64>>,
}

/// Neighbouring parts that one thread handles, or one long part.
struct Lane<M> {
    parts: Range<usize>,
    /// The position of the lane's scores in the vector of all scores.
    slots: Range<usize>,
    memos: Vec<M>,
    /// Scales of the scores along a line, one for each [`STRETCH`] of rows of each part.
    spans: Vec<Span>,
}

/// The maximum number of lanes, where `long` parts are longer than [`LONG_PART`]. A lane ends before the part that
/// would overfill it, so two neighbours together always exceed the target size of a lane. A long part is a lane by
/// itself and ends the one before.
pub(crate) fn most_lanes(lanes: usize, long: usize) -> usize {
    2 * (lanes + long) + 1
}

/// The result of a lane's work.
struct Sums {
    value: f64,
    /// The gradient over stored rows, before unfolding, followed by the thresholds.
    gradient: Vec<f64>,
    /// Σ of the slopes, for each output.
    totals: Vec<f64>,
}

/// Bytes a row: rows in target order, levels, weights, memos of each query, scores, scores along a line; or signs, costs,
/// curvature and the dual point of the weights.
const ROW_BYTES: u64 = 96;

/// What training over parts allocates beside the features.
pub(super) fn bytes(sizes: &Sizes) -> u64 {
    ROW_BYTES * sizes.rows_and_pairs()
}

impl<'a, T: Objective> LinearRisk<'a, T> {
    /// A risk over all parts of the task.
    pub fn new(task: &'a T, design: &'a Design, penalise_thresholds: bool, cancel: &'a Cancel) -> LinearRisk<'a, T> {
        let outputs = task.outputs().max(1);
        let dim = design.cols() * outputs + task.thresholds();
        let rows: usize = (0..task.parts()).map(|part| task.rows(part).len()).sum();
        let count = lanes_of_outputs(rows, design.matrix(), outputs).len();
        let lane_scores = rows.div_ceil(count).max(1) * outputs;
        let mut made: Vec<Lane<T::Memo>> = Vec::new();
        let (mut first, mut slot, mut start_slot, mut long_parts) = (0, 0, 0, 0);
        let close = |made: &mut Vec<Lane<T::Memo>>, parts: Range<usize>, slots: Range<usize>| {
            if !parts.is_empty() {
                let memos = parts.clone().map(|_| T::Memo::default()).collect();
                made.push(Lane { parts, slots, memos, spans: Vec::new() });
            }
        };
        for part in 0..task.parts() {
            let rows = task.rows(part).len();
            let (length, long) = (rows * outputs, rows > LONG_PART);
            if long || slot + length - start_slot > lane_scores {
                close(&mut made, first..part, start_slot..slot);
                (first, start_slot) = (part, slot);
            }
            slot += length;
            if long {
                long_parts += 1;
                close(&mut made, part..part + 1, start_slot..slot);
                (first, start_slot) = (part + 1, slot);
            }
        }
        close(&mut made, first..task.parts(), start_slot..slot);
        debug_assert!(made.len() <= most_lanes(count, long_parts));
        LinearRisk {
            task,
            design,
            outputs,
            penalise_thresholds,
            penalty: 1.0,
            cancel,
            lanes: made,
            point: vec![0.0; dim],
            scores: vec![0.0; slot],
            direction: Vec::new(),
            direction_scores: Vec::new(),
            remembers: false,
            products: Vec::new(),
        }
    }

    /// The sum over parts alone, to be added up with those of other rows: the penalty counts once for all of them.
    pub(crate) fn without_penalty(self) -> LinearRisk<'a, T> {
        LinearRisk { penalty: 0.0, ..self }
    }

    /// How many coordinates are weights; the rest are free scalars.
    fn weights(&self) -> usize {
        self.design.cols() * self.outputs
    }

    /// The view of a part for the task: the given scores, and the free scalars of the last evaluation.
    fn place<'p>(&'p self, part: usize, scores: &'p [f64]) -> Place<'p> {
        Place { part, scores, thresholds: &self.point[self.weights()..], cancel: self.cancel }
    }

    fn sums(&self) -> Sums {
        Sums { value: 0.0, gradient: vec![0.0; self.point.len()], totals: vec![0.0; self.outputs] }
    }

    fn half_square(&self, w: &[f64]) -> f64 {
        0.5 * self.penalty * w[..self.penalised()].iter().map(|w| w * w).sum::<f64>()
    }

    /// Runs `work` on every lane, in parallel, with the lane's part of a vector over the scores. Results come in lane
    /// order. An error is that of the first part that has one, since a lane stops at its first error.
    fn each_lane<N: Send, R: Send>(
        lanes: &mut [Lane<T::Memo>],
        numbers: &mut [N],
        work: impl Fn(&mut Lane<T::Memo>, &mut [N]) -> Result<R> + Sync,
    ) -> Result<Vec<R>>
    where
        T: 'a,
    {
        let mut jobs = Vec::with_capacity(lanes.len());
        let mut rest = numbers;
        for lane in lanes {
            let (own, after) = rest.split_at_mut(lane.slots.len());
            jobs.push((lane, own));
            rest = after;
        }
        parallel::map_each(jobs, |_, (lane, own)| work(lane, own)).into_iter().collect()
    }

    /// Adds Xᵀ·slope of some rows to the first entries of `sum`, and the slopes themselves to `totals`.
    fn accumulate(&self, rows: Range<usize>, slope: &mut [f64], sum: &mut [f64], totals: &mut [f64]) {
        let weights = self.weights();
        if rows.len() <= LONG_PART {
            return self.design.accumulate_outputs(rows, slope, &mut sum[..weights], totals);
        }
        let cuts = lanes_of_outputs(rows.len(), self.design.matrix(), self.outputs);
        let mut jobs = Vec::with_capacity(cuts.len());
        let mut rest = slope;
        for cut in cuts {
            let (own, after) = rest.split_at_mut(cut.len() * self.outputs);
            jobs.push((rows.start + cut.start..rows.start + cut.end, own));
            rest = after;
        }
        let parts: Vec<(Vec<f64>, Vec<f64>)> = parallel::map_each(jobs, |_, (rows, slope)| {
            let (mut sum, mut totals) = (vec![0.0; weights], vec![0.0; self.outputs]);
            self.design.accumulate_outputs(rows, slope, &mut sum, &mut totals);
            (sum, totals)
        });
        // First the totals of a part, then those of all parts: the same order as in sums over short parts.
        let mut own = vec![0.0; self.outputs];
        for (part, part_totals) in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            own.iter_mut().zip(part_totals).for_each(|(own, part)| *own += part);
        }
        totals.iter_mut().zip(own).for_each(|(total, own)| *total += own);
    }

    fn part_scores(&self, rows: Range<usize>, folded: &Folded, out: &mut [f64]) {
        if rows.len() <= LONG_PART {
            self.design.scores(rows, folded, out);
        } else {
            parallel::chunks(out, STRETCH * self.outputs, |stretch, out| {
                let start = rows.start + stretch * STRETCH;
                let rows = start..start + out.len() / self.outputs;
                self.design.scores(rows.clone(), folded, out);
                self.design.passed(rows);
            });
        }
    }

    /// Adds up the lanes and turns the sum over stored rows into a gradient by the weights.
    fn reduce(&self, sums: Vec<Sums>, gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let (mut value, mut totals) = (0.0, vec![0.0; self.outputs]);
        for part in sums {
            gradient.iter_mut().zip(part.gradient).for_each(|(sum, part)| *sum += part);
            value += part.value;
            totals.iter_mut().zip(part.totals).for_each(|(sum, part)| *sum += part);
        }
        self.design.unfold_outputs(&mut gradient[..self.weights()], &totals);
        value
    }
}

impl<T: Objective> LinearRisk<'_, T> {
    /// The scores of all rows at the last evaluation, if the parts hold each row once and in order.
    pub(super) fn row_scores(&self) -> Option<&[f64]> {
        let mut end = 0;
        let in_order = (0..self.task.parts()).all(|part| {
            let rows = self.task.rows(part);
            std::mem::replace(&mut end, rows.end) == rows.start
        });
        (in_order && end == self.design.rows()).then_some(&self.scores)
    }

    /// The parts of a lane at the last evaluation, each with its memo.
    fn remembered<'l>(&'l self, lane: &'l Lane<T::Memo>) -> impl Iterator<Item = (Place<'l>, &'l T::Memo)> {
        debug_assert!(self.remembers, "curvature is asked for after a line");
        let mut scores = &self.scores[lane.slots.clone()];
        lane.parts.clone().zip(&lane.memos).map(move |(part, memo)| {
            let (own, rest) = scores.split_at(self.task.rows(part).len() * self.outputs);
            scores = rest;
            (self.place(part, own), memo)
        })
    }
}

/// Sums [`Roundable::rounding`] over all parts of a risk, at the point of its last evaluation.
pub(super) fn rounding<T: Roundable>(risk: &LinearRisk<'_, T>) -> [f64; 3] {
    debug_assert!(risk.remembers);
    let mut sums = [0.0; 3];
    for lane in &risk.lanes {
        for (part, memo) in lane.parts.clone().zip(&lane.memos) {
            let terms = risk.task.rounding(part, memo);
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
    sums
}

impl<T: Objective> Risk for LinearRisk<'_, T> {
    fn dim(&self) -> usize {
        self.point.len()
    }

    fn penalised(&self) -> usize {
        if self.penalise_thresholds { self.dim() } else { self.weights() }
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let weights = self.weights();
        self.point.copy_from_slice(w);
        // The prepared line is no longer valid.
        self.direction_scores = Vec::new();
        // The slice that the searches see, by whose address an oracle may know it again.
        self.task.prepare(&self.point[weights..])?;
        let folded = self.design.fold_outputs(&w[..weights], self.outputs);
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut scores = std::mem::take(&mut self.scores);
        let this = &*self;
        let sums = Self::each_lane(&mut lanes, &mut scores, |lane, scores| {
            let mut sums = this.sums();
            let mut slope = Vec::new();
            let mut rest = scores;
            for (part, memo) in lane.parts.clone().zip(&mut lane.memos) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let (scores, after) = rest.split_at_mut(rows.len() * this.outputs);
                rest = after;
                this.part_scores(rows.clone(), &folded, scores);
                slope.clear();
                slope.resize(scores.len(), 0.0);
                let (by_weight, by_threshold) = sums.gradient.split_at_mut(weights);
                let slopes = Slopes { scores: &mut slope, thresholds: by_threshold };
                sums.value += this.task.evaluate(&this.place(part, scores), slopes, memo)?;
                this.accumulate(rows, &mut slope, by_weight, &mut sums.totals);
            }
            Ok(sums)
        });
        self.lanes = lanes;
        self.scores = scores;
        self.remembers = sums.is_ok();
        let value = self.reduce(sums?, gradient);
        let (penalised, penalty) = (self.penalised(), self.penalty);
        gradient[..penalised].iter_mut().zip(w).for_each(|(gradient, w)| *gradient += penalty * w);
        Ok(value + self.half_square(w))
    }

    fn line(&mut self, direction: &[f64]) -> Result<()> {
        self.direction = direction.to_vec();
        self.direction_scores = Vec::new();
        let along = &direction[..self.weights()];
        if along.iter().all(|&along| along == 0.0) {
            return Ok(());
        }
        self.remembers = false;
        let folded = self.design.fold_outputs(along, self.outputs);
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut shares = vec![0.0; self.scores.len()];
        let this = &*self;
        let done = Self::each_lane(&mut lanes, &mut shares, |lane, shares| {
            lane.memos.fill_with(T::Memo::default);
            lane.spans.clear();
            let mut rest = shares;
            for part in lane.parts.clone() {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let (own, after) = rest.split_at_mut(rows.len() * this.outputs);
                rest = after;
                let long = rows.len() > LONG_PART;
                narrow_scores(this.design, rows, &folded, own, long, &mut lane.spans);
            }
            Ok(())
        });
        self.lanes = lanes;
        self.direction_scores = shares;
        done.map(drop)
    }

    fn along(&mut self, step: f64) -> Result<(f64, f64)> {
        let weights = self.weights();
        let thresholds: Vec<f64> =
            self.point[weights..].iter().zip(&self.direction[weights..]).map(|(t, d)| t + step * d).collect();
        self.task.prepare(&thresholds)?;
        let this = &*self;
        let lanes = this.lanes.len();
        let sums = parallel::try_map(lanes, |lane| this.lane_along(&this.lanes[lane], step, &thresholds))?;
        let (mut value, mut slope) = (0.0, 0.0);
        for (lane_value, lane_slope) in sums {
            value += lane_value;
            slope += lane_slope;
        }
        for (w, d) in self.point.iter().zip(&self.direction).take(self.penalised()) {
            let moved = w + step * d;
            value += 0.5 * self.penalty * moved * moved;
            slope += self.penalty * moved * d;
        }
        Ok((value, slope))
    }
}

impl<T: Objective> LinearRisk<'_, T> {
    /// Value and slope of a lane at a step along the line, where the free scalars are `thresholds`.
    fn lane_along(&self, lane: &Lane<T::Memo>, step: f64, thresholds: &[f64]) -> Result<(f64, f64)> {
        let stretch = STRETCH * self.outputs;
        let mut by_threshold = vec![0.0; thresholds.len()];
        let (mut value, mut slope, mut at) = (0.0, 0.0, lane.slots.start);
        let (mut scores, mut slopes, mut memo) = (Vec::new(), Vec::new(), T::Memo::default());
        let mut spans = &lane.spans[..];
        for part in lane.parts.clone() {
            if self.cancel.is_raised() {
                break;
            }
            let here = at..at + self.task.rows(part).len() * self.outputs;
            at = here.end;
            scores.clear();
            scores.extend_from_slice(&self.scores[here.clone()]);
            // Empty if no score changes.
            let moved = self.direction_scores.get(here).unwrap_or_default();
            let own = spans.split_off(..moved.len().div_ceil(stretch)).unwrap_or_default();
            for ((scores, shares), span) in scores.chunks_mut(stretch).zip(moved.chunks(stretch)).zip(own) {
                scores.iter_mut().zip(shares).for_each(|(score, &share)| *score += step * span.number(share));
            }
            // None if no score changes.
            let rates = || {
                let decoded = moved.chunks(stretch).zip(own);
                decoded.flat_map(|(shares, span)| shares.iter().map(|&share| span.number(share))).collect()
            };
            let place = Place { part, scores: &scores, thresholds, cancel: self.cancel };
            if let Some(found) = self.task.along(&place, &rates, &mut by_threshold)? {
                (value, slope) = (value + found.0, slope + found.1);
                continue;
            }
            slopes.resize(scores.len(), 0.0);
            let out = Slopes { scores: &mut slopes, thresholds: &mut by_threshold };
            value += self.task.evaluate(&place, out, &mut memo)?;
            for ((slopes, shares), span) in slopes.chunks(stretch).zip(moved.chunks(stretch)).zip(own) {
                slope += span.weighted_sum(shares, slopes);
            }
        }
        let along = &self.direction[self.weights()..];
        slope += by_threshold.iter().zip(along).map(|(s, d)| s * d).sum::<f64>();
        Ok((value, slope))
    }
}
