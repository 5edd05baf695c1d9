//! [`LinearRisk`]: an objective over the scores of a linear function, seen from its weights.
//!
//! It owns the loop over the data: scores of a part, the task's slopes, and Xᵀ·slope while the rows are still in cache,
//! so that a value and gradient read the matrix once. Parts are gathered into lanes that depend on the data alone and are
//! reduced in order, so that threads never change a bit. A part too long for a lane is handled on its own, its rows cut
//! into chunks for the two products.

use super::normal_matrix::{BATCH, sum_of_squares};
use super::{CurvedRisk, Preconditioner, Risk};
use crate::data::{Design, Folded, STRETCH, Span, lanes, narrow_scores};
use crate::parallel;
use crate::run::Cancel;
use crate::task::{Curvature, Objective, Roundable};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};
use std::ops::Range;

/// A part with more rows than this is worth several threads of its own.
pub(crate) const LONG_PART: usize = 32 * 1024;

/// The exact Hessian is formed up to this many coordinates: its n·d² product then costs less than the many products
/// of conjugate gradients on the nearly collinear features that few-feature data have.
const EXACT_HESSIAN_DIM: usize = 600;

/// And only while a part's dense tile stays below this many numbers.
pub(crate) const TILE: usize = 4 << 20;

/// Conjugate gradients over more coordinates than [`EXACT_HESSIAN_DIM`], and up to so many, are preconditioned by the Hessian
/// of a sample of the rows, where these are not too short. Every step forms and factors it anew, which is why they are not
/// more.
pub(crate) const SAMPLED_HESSIAN_DIM: usize = 2048;

/// Rows of that sample for each coordinate.
const SAMPLED_ROWS: usize = 2;

/// See the top of the file.
pub struct LinearRisk<'a, T: Objective> {
    task: &'a T,
    design: &'a Design,
    penalise_thresholds: bool,
    cancel: &'a Cancel,
    lanes: Vec<Lane<T::Memo>>,
    point: Vec<f64>,
    /// Scores of the rows in part order.
    scores: Vec<f64>,
    direction: Vec<f64>,
    /// What the scores change by along the direction, as shares of [`Lane::spans`]: a search along a line needs no more
    /// digits, since the point where it ends is evaluated anew. Empty where no score changes.
    direction_scores: Vec<f32>,
    /// Whether the memos are those of the point.
    remembers: bool,
    /// What the lanes sum their part of a Hessian in, kept from one to the next.
    products: Vec<Vec<f64>>,
}

/// Neighbouring parts that one thread handles, or one long part.
struct Lane<M> {
    parts: Range<usize>,
    /// Where the lane's rows stand in the scores.
    slots: Range<usize>,
    memos: Vec<M>,
    /// Of the scores along a line, one for each [`STRETCH`] of each part.
    spans: Vec<Span>,
}

/// The most lanes that so many rows are gathered into, `long` of their parts being longer than [`LONG_PART`]. A lane ends
/// before the part that would overfill it, so that two neighbours always hold more than one lane should; a long part is a
/// lane and cuts off the one before.
pub(crate) fn most_lanes(lanes: usize, long: usize) -> usize {
    2 * (lanes + long) + 1
}

/// What a lane's work gives.
struct Sums {
    value: f64,
    /// Over stored rows, before unfolding; the thresholds behind.
    gradient: Vec<f64>,
    total: f64,
}

impl<'a, T: Objective> LinearRisk<'a, T> {
    /// A risk over all parts of the task.
    pub fn new(task: &'a T, design: &'a Design, penalise_thresholds: bool, cancel: &'a Cancel) -> LinearRisk<'a, T> {
        let dim = design.cols() + task.thresholds();
        let rows: usize = (0..task.parts()).map(|part| task.rows(part).len()).sum();
        let lane_rows = rows.div_ceil(lanes(rows, design.matrix()).len()).max(1);
        let mut made: Vec<Lane<T::Memo>> = Vec::new();
        let (mut first, mut slot, mut start_slot, mut long_parts) = (0, 0, 0, 0);
        let close = |made: &mut Vec<Lane<T::Memo>>, parts: Range<usize>, slots: Range<usize>| {
            if !parts.is_empty() {
                let memos = parts.clone().map(|_| T::Memo::default()).collect();
                made.push(Lane { parts, slots, memos, spans: Vec::new() });
            }
        };
        for part in 0..task.parts() {
            let length = task.rows(part).len();
            let long = length > LONG_PART;
            if long || slot + length - start_slot > lane_rows {
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
        debug_assert!(made.len() <= most_lanes(lanes(rows, design.matrix()).len(), long_parts));
        LinearRisk {
            task,
            design,
            penalise_thresholds,
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

    fn features(&self) -> usize {
        self.design.cols()
    }

    fn half_square(&self, w: &[f64]) -> f64 {
        0.5 * w[..self.penalised()].iter().map(|w| w * w).sum::<f64>()
    }

    /// Runs `work` on every lane, in parallel, with the lane's part of a vector over the rows. Results come in lane order.
    fn each_lane<N: Send, R: Send>(
        lanes: &mut [Lane<T::Memo>],
        numbers: &mut [N],
        work: impl Fn(&mut Lane<T::Memo>, &mut [N]) -> R + Sync,
    ) -> Vec<R>
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
        parallel::map_each(jobs, |_, (lane, own)| work(lane, own))
    }

    /// Σ over parts in a lane of Xᵀ·slope, where `slope` holds the slopes of the lane's rows.
    fn accumulate(&self, rows: Range<usize>, slope: &mut [f64], sum: &mut [f64]) -> f64 {
        let features = self.features();
        if rows.len() <= LONG_PART {
            return self.design.accumulate(rows, slope, &mut sum[..features]);
        }
        let cuts = lanes(rows.len(), self.design.matrix());
        let mut jobs = Vec::with_capacity(cuts.len());
        let mut rest = slope;
        for cut in cuts {
            let (own, after) = rest.split_at_mut(cut.len());
            jobs.push((rows.start + cut.start..rows.start + cut.end, own));
            rest = after;
        }
        let parts: Vec<(Vec<f64>, f64)> = parallel::map_each(jobs, |_, (rows, slope)| {
            let mut sum = vec![0.0; features];
            let total = self.design.accumulate(rows, slope, &mut sum);
            (sum, total)
        });
        let mut total = 0.0;
        for (part, part_total) in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            total += part_total;
        }
        total
    }

    fn part_scores(&self, rows: Range<usize>, folded: &Folded, out: &mut [f64]) {
        if rows.len() <= LONG_PART {
            self.design.scores(rows, folded, out);
        } else {
            parallel::chunks(out, STRETCH, |stretch, out| {
                let start = rows.start + stretch * STRETCH;
                self.design.scores(start..start + out.len(), folded, out);
                self.design.passed(start..start + out.len());
            });
        }
    }

    /// Adds up the lanes and turns the sum over stored rows into a gradient by the weights.
    fn reduce(&self, sums: Vec<Sums>, gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let (mut value, mut total) = (0.0, 0.0);
        for part in sums {
            gradient.iter_mut().zip(part.gradient).for_each(|(sum, part)| *sum += part);
            value += part.value;
            total += part.total;
        }
        self.design.unfold(&mut gradient[..self.design.cols()], total);
        value
    }
}

impl<T: Objective> LinearRisk<'_, T> {
    /// The scores of all rows at the last evaluation, where the parts hold each of them once and in order.
    pub(super) fn row_scores(&self) -> Option<&[f64]> {
        let mut end = 0;
        let in_order = (0..self.task.parts()).all(|part| {
            let rows = self.task.rows(part);
            std::mem::replace(&mut end, rows.end) == rows.start
        });
        (in_order && end == self.design.rows()).then_some(&self.scores)
    }

    /// The parts of a lane, with their scores at the last evaluation and what they remember of it.
    fn remembered<'l>(&'l self, lane: &'l Lane<T::Memo>) -> impl Iterator<Item = (usize, &'l [f64], &'l T::Memo)> {
        debug_assert!(self.remembers, "curvature is asked for after a line");
        let mut scores = &self.scores[lane.slots.clone()];
        lane.parts.clone().zip(&lane.memos).map(move |(part, memo)| {
            let (own, rest) = scores.split_at(self.task.rows(part).len());
            scores = rest;
            (part, own, memo)
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
        if self.penalise_thresholds { self.dim() } else { self.features() }
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> f64 {
        let features = self.features();
        self.point.copy_from_slice(w);
        // The line is left behind.
        self.direction_scores = Vec::new();
        let folded = self.design.fold(&w[..features]);
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut scores = std::mem::take(&mut self.scores);
        let this = &*self;
        let sums = Self::each_lane(&mut lanes, &mut scores, |lane, scores| {
            let mut sums = Sums { value: 0.0, gradient: vec![0.0; w.len()], total: 0.0 };
            let mut slope = Vec::new();
            let mut at = 0;
            for (part, memo) in lane.parts.clone().zip(&mut lane.memos) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let scores = &mut scores[at..at + rows.len()];
                at += rows.len();
                this.part_scores(rows.clone(), &folded, scores);
                slope.clear();
                slope.resize(rows.len(), 0.0);
                let (by_feature, by_threshold) = sums.gradient.split_at_mut(features);
                sums.value += this.task.evaluate(part, scores, &w[features..], &mut slope, by_threshold, memo);
                sums.total += this.accumulate(rows, &mut slope, by_feature);
            }
            sums
        });
        let value = self.reduce(sums, gradient);
        self.lanes = lanes;
        self.scores = scores;
        self.remembers = true;
        let penalised = self.penalised();
        gradient[..penalised].iter_mut().zip(w).for_each(|(gradient, w)| *gradient += w);
        value + self.half_square(w)
    }

    fn line(&mut self, direction: &[f64]) {
        self.direction = direction.to_vec();
        self.direction_scores = Vec::new();
        if direction[..self.features()].iter().all(|&along| along == 0.0) {
            return;
        }
        self.remembers = false;
        let folded = self.design.fold(&direction[..self.features()]);
        let mut lanes = std::mem::take(&mut self.lanes);
        let mut shares = vec![0.0; self.scores.len()];
        let this = &*self;
        Self::each_lane(&mut lanes, &mut shares, |lane, shares| {
            lane.memos.fill_with(T::Memo::default);
            lane.spans.clear();
            let mut at = 0;
            for part in lane.parts.clone() {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let own = at..at + rows.len();
                at = own.end;
                let long = rows.len() > LONG_PART;
                narrow_scores(this.design, rows, &folded, &mut shares[own], long, &mut lane.spans);
            }
        });
        self.lanes = lanes;
        self.direction_scores = shares;
    }

    fn along(&mut self, step: f64) -> (f64, f64) {
        let features = self.features();
        let thresholds: Vec<f64> =
            self.point[features..].iter().zip(&self.direction[features..]).map(|(t, d)| t + step * d).collect();
        let this = &*self;
        let sums: Vec<(f64, f64)> = parallel::map(this.lanes.len(), |lane| {
            let lane = &this.lanes[lane];
            let mut by_threshold = vec![0.0; thresholds.len()];
            let (mut value, mut slope, mut at) = (0.0, 0.0, 0);
            let (mut scores, mut slopes, mut memo) = (Vec::new(), Vec::new(), T::Memo::default());
            let mut spans = &lane.spans[..];
            for part in lane.parts.clone() {
                if this.cancel.is_raised() {
                    break;
                }
                let length = this.task.rows(part).len();
                let here = lane.slots.start + at..lane.slots.start + at + length;
                at += length;
                scores.clear();
                scores.extend_from_slice(&this.scores[here.clone()]);
                // Nothing where no score changes.
                let moved = this.direction_scores.get(here).unwrap_or_default();
                let own = spans.split_off(..moved.len().div_ceil(STRETCH)).unwrap_or_default();
                for ((scores, shares), span) in scores.chunks_mut(STRETCH).zip(moved.chunks(STRETCH)).zip(own) {
                    scores.iter_mut().zip(shares).for_each(|(score, &share)| *score += step * span.number(share));
                }
                // None where no score changes.
                let rates = || {
                    let decoded = moved.chunks(STRETCH).zip(own);
                    decoded.flat_map(|(shares, span)| shares.iter().map(|&share| span.number(share))).collect()
                };
                if let Some(found) = this.task.along(part, &scores, &rates, &thresholds, &mut by_threshold) {
                    (value, slope) = (value + found.0, slope + found.1);
                    continue;
                }
                slopes.resize(length, 0.0);
                value += this.task.evaluate(part, &scores, &thresholds, &mut slopes, &mut by_threshold, &mut memo);
                for ((slopes, shares), span) in slopes.chunks(STRETCH).zip(moved.chunks(STRETCH)).zip(own) {
                    slope += span.weighted_sum(shares, slopes);
                }
            }
            slope += by_threshold.iter().zip(&this.direction[features..]).map(|(s, d)| s * d).sum::<f64>();
            (value, slope)
        });
        let (mut value, mut slope) = (0.0, 0.0);
        for (lane_value, lane_slope) in sums {
            value += lane_value;
            slope += lane_slope;
        }
        for (w, d) in self.point.iter().zip(&self.direction).take(self.penalised()) {
            let moved = w + step * d;
            value += 0.5 * moved * moved;
            slope += moved * d;
        }
        (value, slope)
    }
}

/// Sums the lower triangle of Tᵀ·O over tiles T and O of several neighbouring parts.
struct Product {
    dim: usize,
    features: usize,
    rows: usize,
    tile: Vec<f64>,
    out: Vec<f64>,
}

impl Product {
    fn new(dim: usize, features: usize) -> Product {
        Product { dim, features, rows: 0, tile: Vec::new(), out: Vec::new() }
    }

    /// Zeroed tiles for so many more rows, to be filled.
    fn next(&mut self, rows: usize, sum: &mut [f64]) -> (&mut [f64], &mut [f64]) {
        if self.rows > 0 && self.rows + rows > BATCH {
            self.flush(sum);
        }
        let before = self.rows * self.dim;
        self.rows += rows;
        self.tile.resize(self.rows * self.dim, 0.0);
        self.out.resize(self.rows * self.dim, 0.0);
        (&mut self.tile[before..], &mut self.out[before..])
    }

    /// Adds what has gathered to the first `features` rows of `sum`.
    fn flush(&mut self, sum: &mut [f64]) {
        let (rows, dim, features) = (self.rows, self.dim, self.features);
        if rows > 0 {
            triangular::matmul(
                MatMut::from_row_major_slice_mut(&mut sum[..features * dim], features, dim).subcols_mut(0, features),
                BlockStructure::TriangularLower,
                Accum::Add,
                MatRef::from_row_major_slice(&self.tile, rows, dim).subcols(0, features).transpose(),
                BlockStructure::Rectangular,
                MatRef::from_row_major_slice(&self.out, rows, dim).subcols(0, features),
                BlockStructure::Rectangular,
                1.0,
                Par::Seq,
            );
        }
        self.rows = 0;
        self.tile.clear();
        self.out.clear();
    }
}

impl<T: Objective> LinearRisk<'_, T> {
    /// Adds up symmetric matrices of all lanes, of which `work` fills the lower triangle of the features and the rows of
    /// the thresholds, and the penalty.
    fn sum_products(&mut self, work: impl Fn(&Self, &Lane<T::Memo>, &mut [f64], &mut [f64]) + Sync) -> Vec<f64> {
        let (dim, features) = (self.dim(), self.features());
        let mut products = std::mem::take(&mut self.products);
        products.resize_with(self.lanes.len(), Vec::new);
        let this = &*self;
        parallel::update(&mut products, 1, |lane, sum| {
            sum.clear();
            sum.resize(dim * dim, 0.0);
            let (by_feature, by_threshold) = sum.split_at_mut(features * dim);
            work(this, &this.lanes[lane], by_feature, by_threshold);
        });
        let mut matrix = vec![0.0; dim * dim];
        for part in &products {
            matrix.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        self.products = products;
        for row in 0..dim {
            for column in 0..row {
                matrix[column * dim + row] = matrix[row * dim + column];
            }
        }
        for coordinate in 0..self.penalised() {
            matrix[coordinate * dim + coordinate] += 1.0;
        }
        matrix
    }
}

/// Short rows are multiplied entry by entry, up to this share of the columns; longer ones as dense tiles, where an entry
/// costs that much less.
const SHORT_ROW: u64 = 4;

/// A row whose score curves the objective.
#[derive(Clone, Copy)]
pub(super) struct Curved {
    row: usize,
    /// The second derivative by its score, above zero,
    weight: f64,
    /// and that by its score and the threshold, where there is one.
    cross: f64,
}

/// At most so many, evenly spread.
fn spread(curved: Vec<Curved>, most: usize) -> Vec<Curved> {
    let (count, taken) = (curved.len(), curved.len().min(most));
    (0..taken).map(|at| curved[at * count / taken]).collect()
}

impl<T: Curvature> LinearRisk<'_, T> {
    fn has_short_rows(&self) -> bool {
        let matrix = self.design.matrix();
        self.design.shift().is_none() && matrix.entries() * SHORT_ROW < matrix.rows() as u64 * self.dim() as u64
    }

    /// A sample of about so many of the rows that curve, by part: at most so many, evenly spread over all of them, where rows
    /// are separate; else whole parts, or rows evenly spread over one that is too long. Second derivatives are brought up to those of all.
    pub(super) fn curved_sample(&self, most: usize) -> Vec<Vec<Curved>> {
        let separate = self.task.rows_are_separate();
        let by_lane: Vec<Vec<Vec<Curved>>> = parallel::map(self.lanes.len(), |lane| {
            let lane = &self.lanes[lane];
            let (mut found, mut weights, mut cross) = (Vec::new(), Vec::new(), Vec::new());
            for (part, scores, memo) in self.remembered(lane) {
                if self.cancel.is_raised() {
                    break;
                }
                let rows = self.task.rows(part);
                weights.resize(rows.len(), 0.0);
                cross.clear();
                cross.resize(rows.len(), 0.0);
                self.task.diagonal(part, scores, memo, &mut weights);
                if separate && self.task.thresholds() > 0 {
                    self.task.by_threshold(part, scores, memo, &mut cross);
                }
                let all = rows.zip(&weights).zip(&cross);
                let curved = all.filter(|((_, weight), _)| **weight > 0.0);
                found.push(curved.map(|((row, &weight), &cross)| Curved { row, weight, cross }).collect());
            }
            found
        });
        let mut parts: Vec<Vec<Curved>> =
            by_lane.into_iter().flatten().filter(|part: &Vec<Curved>| !part.is_empty()).collect();
        if separate {
            parts = vec![parts.concat()];
        }
        let count: usize = parts.iter().map(Vec::len).sum();
        let mut sample: Vec<Vec<Curved>> =
            parts.into_iter().step_by((count / most).max(1)).map(|part| spread(part, most)).collect();
        let taken: usize = sample.iter().map(Vec::len).sum();
        let counted = count as f64 / taken.max(1) as f64;
        for curved in sample.iter_mut().flatten() {
            (curved.weight, curved.cross) = (counted * curved.weight, counted * curved.cross);
        }
        sample
    }

    /// Something like the Hessian: Σ h (x − x̄)(x − x̄)ᵀ over a sample of the rows that curve, with x̄ the mean of a part,
    /// weighted by h, where only differences of scores count. The lower triangle of it.
    pub(super) fn sampled_hessian(&self, most: usize) -> Vec<f64> {
        let (dim, features) = (self.dim(), self.features());
        let parts = self.curved_sample(most);
        let means: Vec<Vec<f64>> = match self.task.only_differences_count() {
            true => parallel::map(parts.len(), |part| self.mean_of(&parts[part])),
            false => Vec::new(),
        };
        let sample: Vec<(usize, Curved)> = parts
            .into_iter()
            .enumerate()
            .flat_map(|(part, rows)| rows.into_iter().map(move |row| (part, row)))
            .collect();
        let fill = |number: usize, values: &mut [f64]| {
            let (part, Curved { row, weight, cross }) = sample[number];
            self.design.fill_scaled_row(row, &mut values[..features]);
            if let Some(mean) = means.get(part) {
                values.iter_mut().zip(mean).for_each(|(value, mean)| *value -= mean);
            }
            // There is one threshold at the most. With a feature like this it has the right products with the others.
            values[features..].fill(cross / weight);
            let root = weight.sqrt();
            values.iter_mut().for_each(|value| *value *= root);
        };
        let passed = |numbers: Range<usize>| {
            self.design.passed(sample[numbers.start].1.row..sample[numbers.end - 1].1.row + 1);
        };
        let mut matrix = sum_of_squares(sample.len(), dim, fill, passed, self.cancel);
        // That of the penalty; a free threshold is then sure to have a scale.
        (0..dim).for_each(|coordinate| matrix[coordinate * dim + coordinate] += 1.0);
        matrix
    }

    /// The mean of the scaled features of rows, weighted by their second derivatives.
    fn mean_of(&self, rows: &[Curved]) -> Vec<f64> {
        let (mut mean, mut values) = (vec![0.0; self.features()], vec![0.0; self.features()]);
        let total: f64 = rows.iter().map(|curved| curved.weight).sum();
        for curved in rows {
            if self.cancel.is_raised() {
                break;
            }
            values.fill(0.0);
            self.design.fill_scaled_row(curved.row, &mut values);
            let share = curved.weight / total;
            mean.iter_mut().zip(&values).for_each(|(mean, value)| *mean += share * value);
        }
        mean
    }

    /// The Hessian where rows are separate: Σ h x xᵀ over the rows that curve.
    fn hessian_of_separate_rows(&mut self) -> Vec<f64> {
        let (dim, features) = (self.dim(), self.features());
        let short = self.has_short_rows();
        self.sum_products(|this, lane, sum, thresholds| {
            let mut product = Product::new(dim, features);
            let (mut weights, mut cross, mut entries) = (Vec::new(), Vec::new(), Vec::new());
            for (part, scores, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                weights.clear();
                weights.resize(rows.len(), 0.0);
                this.task.diagonal(part, scores, memo, &mut weights);
                cross.clear();
                cross.resize(rows.len(), 0.0);
                // There is one threshold at the most.
                if let Some(corner) = thresholds.last_mut() {
                    *corner += this.task.by_threshold(part, scores, memo, &mut cross);
                }
                for ((row, &weight), &cross) in rows.clone().zip(&weights).zip(&cross) {
                    if weight == 0.0 {
                        continue;
                    }
                    if short {
                        this.design.scaled_entries(row, &mut entries);
                        for (at, &(column, value)) in entries.iter().enumerate() {
                            // A mapped file that changes meanwhile may hold any index, in any order.
                            let Some(line) = sum.get_mut(column * dim..).and_then(|sum| sum.get_mut(..=column)) else {
                                continue;
                            };
                            let weighted = weight * value;
                            // Columns rise within a row, so that this is the lower triangle.
                            for &(other, value) in &entries[..=at] {
                                if let Some(sum) = line.get_mut(other) {
                                    *sum += weighted * value;
                                }
                            }
                        }
                        for line in thresholds.chunks_exact_mut(dim) {
                            for &(column, value) in &entries {
                                if let Some(sum) = line.get_mut(column) {
                                    *sum += cross * value;
                                }
                            }
                        }
                    } else {
                        let (values, out) = product.next(1, sum);
                        this.design.fill_scaled_row(row, &mut values[..features]);
                        out.iter_mut().zip(&*values).for_each(|(out, value)| *out = weight * value);
                        for line in thresholds.chunks_exact_mut(dim) {
                            line[..features].iter_mut().zip(&*values).for_each(|(line, value)| *line += cross * value);
                        }
                    }
                }
                this.design.passed(rows);
            }
            product.flush(sum);
        })
    }
}

impl<T: Curvature> CurvedRisk for LinearRisk<'_, T> {
    fn has_exact_hessian(&self) -> bool {
        let longest = (0..self.task.parts()).map(|part| self.task.rows(part).len()).max().unwrap_or(0);
        self.dim() <= EXACT_HESSIAN_DIM && (longest * self.dim() <= TILE || self.task.rows_are_separate())
    }

    fn hessian(&mut self) -> Vec<f64> {
        if self.task.rows_are_separate() {
            return self.hessian_of_separate_rows();
        }
        let (dim, features) = (self.dim(), self.features());
        // The threshold columns of the tile: no score moves, one threshold does.
        let mut threshold_directions = vec![0.0; (dim - features) * dim];
        for threshold in 0..dim - features {
            threshold_directions[threshold * dim + features + threshold] = 1.0;
        }
        self.sum_products(|this, lane, sum, thresholds| {
            let mut product = Product::new(dim, features);
            for (part, scores, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let (tile, out) = product.next(rows.len(), sum);
                for (row, values) in rows.clone().zip(tile.chunks_exact_mut(dim)) {
                    this.design.fill_scaled_row(row, &mut values[..features]);
                }
                this.design.passed(rows);
                this.task.curvature(part, scores, memo, dim, tile, &threshold_directions, out, thresholds);
            }
            product.flush(sum);
        })
    }

    /// Thresholds move no score: this costs no pass over the features.
    fn free_curvature(&mut self, coordinate: usize) -> f64 {
        let (dim, features) = (self.dim(), self.features());
        let mut along = vec![0.0; dim - features];
        along[coordinate - features] = 1.0;
        let this = &*self;
        let parts: Vec<f64> = parallel::map(this.lanes.len(), |lane| {
            let lane = &this.lanes[lane];
            let (mut sums, mut still, mut out) = (vec![0.0; along.len()], Vec::new(), Vec::new());
            for (part, scores, memo) in this.remembered(lane) {
                // An evaluation cut short left nothing to remember of the rest.
                if this.cancel.is_raised() {
                    break;
                }
                still.resize(scores.len(), 0.0);
                out.resize(scores.len(), 0.0);
                this.task.curvature(part, scores, memo, 1, &still, &along, &mut out, &mut sums);
            }
            sums[coordinate - features]
        });
        parts.iter().sum()
    }

    fn preconditioner(&mut self) -> Preconditioner {
        let (dim, features) = (self.dim(), self.features());
        let this = &*self;
        if dim > EXACT_HESSIAN_DIM {
            if dim <= SAMPLED_HESSIAN_DIM && !self.has_short_rows() {
                return Preconditioner::Matrix(self.sampled_hessian(SAMPLED_ROWS * dim));
            }
            let mut squares = vec![1.0; dim];
            let parts: Vec<Vec<f64>> = parallel::map(self.lanes.len(), |lane| {
                let lane = &self.lanes[lane];
                let mut sum = vec![0.0; features];
                for (part, scores, memo) in this.remembered(lane) {
                    if this.cancel.is_raised() {
                        break;
                    }
                    let rows = this.task.rows(part);
                    let mut weights = vec![0.0; rows.len()];
                    this.task.diagonal(part, scores, memo, &mut weights);
                    for (row, weight) in rows.clone().zip(weights) {
                        this.design.add_squares(row, weight, &mut sum);
                    }
                    this.design.passed(rows);
                }
                sum
            });
            for part in parts {
                squares.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            return Preconditioner::Diagonal(squares);
        }
        // Σ_i h_i (x_i − x̄)(x_i − x̄)ᵀ, with x̄ the part's mean weighted by h where only differences of scores count.
        let mut matrix = self.sum_products(|this, lane, sum, _| {
            let mut product = Product::new(dim, features);
            for (part, scores, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                let mut weights = vec![0.0; rows.len()];
                this.task.diagonal(part, scores, memo, &mut weights);
                let mut mean = vec![0.0; features];
                if this.task.only_differences_count() {
                    let total: f64 = weights.iter().sum();
                    let mut shares: Vec<f64> =
                        weights.iter().map(|h| if total > 0.0 { h / total } else { 0.0 }).collect();
                    let count = this.accumulate(rows.clone(), &mut shares, &mut mean);
                    this.design.unfold(&mut mean, count);
                }
                for (chunk, weights) in weights.chunks(BATCH).enumerate() {
                    if this.cancel.is_raised() {
                        break;
                    }
                    let start = rows.start + chunk * BATCH;
                    let (tile, out) = product.next(weights.len(), sum);
                    let slots = tile.chunks_exact_mut(dim).zip(out.chunks_exact_mut(dim));
                    for ((row, &weight), (values, out)) in (start..).zip(weights).zip(slots) {
                        this.design.fill_scaled_row(row, &mut values[..features]);
                        values.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
                        out.iter_mut().zip(&*values).for_each(|(out, value)| *out = weight * value);
                    }
                    this.design.passed(start..start + weights.len());
                }
            }
            product.flush(sum);
        });
        // Free thresholds keep what scale they have.
        (self.penalised()..dim).for_each(|threshold| matrix[threshold * dim + threshold] = 1.0);
        Preconditioner::Matrix(matrix)
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) {
        let features = self.features();
        let folded = self.design.fold(&direction[..features]);
        let this = &*self;
        let sums: Vec<Sums> = parallel::map(this.lanes.len(), |lane| {
            let lane = &this.lanes[lane];
            let mut sums = Sums { value: 0.0, gradient: vec![0.0; direction.len()], total: 0.0 };
            let (mut moved, mut curved) = (Vec::new(), Vec::new());
            for (part, scores, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(part);
                moved.resize(rows.len(), 0.0);
                this.part_scores(rows.clone(), &folded, &mut moved);
                curved.clear();
                curved.resize(rows.len(), 0.0);
                let (by_feature, by_threshold) = sums.gradient.split_at_mut(features);
                this.task.curvature(part, scores, memo, 1, &moved, &direction[features..], &mut curved, by_threshold);
                sums.total += this.accumulate(rows, &mut curved, by_feature);
            }
            sums
        });
        self.reduce(sums, out);
        let penalised = self.penalised();
        out[..penalised].iter_mut().zip(direction).for_each(|(out, d)| *out += d);
    }
}
