//! The steps on rows with sets of labels: by gradients, and passive-aggressive ones.

use super::super::descent::Descent;
use super::super::linear::LinearPoint;
use crate::data::Rows;
use crate::data::row_loops::for_this_machine;
use crate::loss::Loss;
use crate::task::{LANES, Multilabel, SetStep, separation_loss, solve_sides, two_labels};

/// What is counted and summed over the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Rows seen.
    pub(super) seen: u64,
    /// Rows with a weight above zero.
    pub(super) counted: u64,
    /// Rows with a label that did not lie above another one.
    pub(super) mistakes: u64,
    /// Steps made.
    pub(super) steps: u64,
    /// The weighted sum of the losses before each row was learned from, and the sum of the weights.
    pub(super) loss: f64,
    pub(super) weight: f64,
    /// Sums over rows: average precision, ranking loss.
    pub(super) precision: f64,
    pub(super) ranking: f64,
    /// D, R², and the least weight of a row that is not zero.
    pub(super) rise: f64,
    pub(super) length: f64,
    pub(super) least: f64,
}

impl Tally {
    /// Counts a row that was predicted with these scores of the labels.
    #[inline(always)]
    fn judge(&mut self, own: &[u32], scores: &[f64], weight: f64) {
        let (precision, ranking) = judged(own, scores);
        self.counted += 1;
        self.mistakes += u64::from(ranking > 0.0);
        self.precision += precision;
        self.ranking += ranking;
        self.weight += weight;
        self.least = self.least.min(weight);
    }
}

/// The labels and the weight of each row of a batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) start: usize,
    pub(super) own: Vec<u32>,
    pub(super) ends: Vec<usize>,
    pub(super) weights: Vec<f64>,
}

impl Batch {
    /// The labels of a row.
    #[inline(always)]
    fn set(&self, place: usize) -> &[u32] {
        let from = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.own[from..self.ends[place]]
    }
}

/// Work buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    pub(super) own: Vec<u32>,
    pub(super) scores: Vec<f64>,
    pub(super) predicted: Vec<f64>,
    pub(super) slopes: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) spare: Vec<f64>,
    pub(super) moves: Vec<(u32, f64)>,
}

/// The loss of a row with these labels, and its derivative by each score.
#[inline(always)]
pub(super) fn slopes_of((form, loss): (Multilabel, Loss), own: &[u32], scores: &[f64], slopes: &mut [f64]) -> f64 {
    if form == Multilabel::Calibrated {
        return separation_loss(loss, own, scores, slopes);
    }
    let (mut total, mut next) = (0.0, own.iter().peekable());
    for (label, (slope, score)) in slopes.iter_mut().zip(scores).enumerate() {
        let sign = if next.next_if(|&&own| own as usize == label).is_some() { 1.0 } else { -1.0 };
        let violation = loss.margin() - sign * score;
        total += loss.value(violation);
        *slope = -sign * loss.derivative(violation);
    }
    total
}

for_this_machine! {
    /// See [`descend_plainly`].
    pub(super) fn descend[R: Rows](
        rows: &R, batch: &Batch, rule: (Multilabel, Descent), point: &mut LinearPoint, tally: &mut Tally, work: &mut Work,
    ) -> bool = descend_plainly
}

/// Predicts the rows of a batch and makes a gradient step on them. Returns whether all numbers were finite.
#[inline(always)]
fn descend_plainly<R: Rows>(
    rows: &R,
    batch: &Batch,
    (form, descent): (Multilabel, Descent),
    point: &mut LinearPoint,
    tally: &mut Tally,
    work: &mut Work,
) -> bool {
    let (outputs, count) = (point.outputs(), batch.ends.len());
    let labels = outputs - usize::from(form == Multilabel::Calibrated);
    let Work { scores, predicted, slopes, spare, moves, .. } = work;
    scores.resize(outputs, 0.0);
    predicted.resize(outputs, 0.0);
    spare.resize(outputs, 0.0);
    slopes.clear();
    slopes.resize(count * outputs, 0.0);
    let mut finite = true;
    for (place, slopes) in slopes.chunks_exact_mut(outputs.max(1)).enumerate() {
        let (own, weight) = (batch.set(place), batch.weights[place]);
        let averaged = point.all_scores(rows, batch.start + place, scores, predicted);
        finite &= scores.iter().all(|score| score.is_finite());
        if weight > 0.0 {
            tally.judge(own, &if averaged { &*predicted } else { &*scores }[..labels], weight);
            tally.loss += weight * slopes_of((form, descent.loss()), own, scores, slopes);
        }
    }
    tally.seen += count as u64;
    let rate = descent.rate(tally.steps);
    point.shrink(descent.shrinking(rate));
    let each = 1.0 / count as f64;
    for (place, slopes) in slopes.chunks_exact_mut(outputs.max(1)).enumerate() {
        let (row, weight) = (batch.start + place, batch.weights[place]);
        if weight == 0.0 {
            continue;
        }
        let rate = match descent.is_limited() {
            true => descent.limited(rate, rows.squared_norm(row), weight),
            false => rate,
        };
        let constant_rate = point.constant_rate(rate);
        moves.clear();
        for (output, slope) in slopes.iter_mut().enumerate().filter(|(_, slope)| **slope != 0.0) {
            point.move_constant(output, -each * constant_rate * weight * *slope);
            *slope *= -each * rate * weight;
            moves.push((output as u32, *slope));
        }
        match moves.len() {
            0 => {}
            few if 4 * few < outputs => point.add_some(rows, row, moves),
            _ => point.add_all(rows, row, slopes, spare),
        }
    }
    if let Some(share) = descent.share(tally.steps) {
        point.include(share);
    }
    tally.steps += 1;
    finite && point.is_finite() && tally.loss.is_finite()
}

for_this_machine! {
    /// See [`correct_plainly`].
    pub(super) fn correct[R: Rows](
        rows: &R, batch: &Batch, rule: (SetStep, f64), point: &mut LinearPoint, tally: &mut Tally, work: &mut Work,
    ) -> bool = correct_plainly
}

/// Predicts the rows of a batch, and makes a passive-aggressive step after each. Returns whether all numbers were finite.
#[inline(always)]
fn correct_plainly<R: Rows>(
    rows: &R,
    batch: &Batch,
    (step, c): (SetStep, f64),
    point: &mut LinearPoint,
    tally: &mut Tally,
    work: &mut Work,
) -> bool {
    let (outputs, middle) = (point.outputs(), point.outputs() - 1);
    let Work { scores, z, spare, moves, .. } = work;
    scores.resize(outputs, 0.0);
    let mut finite = true;
    for (place, &weight) in batch.weights.iter().enumerate() {
        let (row, own) = (batch.start + place, batch.set(place));
        point.all_scores(rows, row, scores, &mut []);
        finite &= scores.iter().all(|score| score.is_finite());
        tally.seen += 1;
        tally.steps += 1;
        if weight == 0.0 {
            continue;
        }
        tally.judge(own, &scores[..middle], weight);
        let q = rows.squared_norm(row) + f64::from(u8::from(point.has_constants()));
        tally.length = tally.length.max(q);
        // Violations; those of the border, and numbers after it, are −∞.
        z.clear();
        z.extend(scores[..middle].iter().map(|score| 1.0 + score - scores[middle]));
        own.iter().for_each(|&label| z[label as usize] = 2.0 - z[label as usize]);
        let (mine, others) = (worst(own, z, true), worst(own, z, false));
        tally.loss += weight * (mine.1.max(0.0) + others.1.max(0.0));
        moves.clear();
        let cost = c * weight;
        match step {
            SetStep::TwoLabels => {
                let (alpha, beta) = two_labels(mine.1, others.1, q, cost);
                let pairs = [(mine.0, alpha), (others.0, beta)];
                moves.extend(pairs.into_iter().filter(|(_, by)| *by > 0.0).map(|(label, by)| (label as u32, by)));
            }
            SetStep::Exact => {
                z.resize(outputs.next_multiple_of(LANES), f64::NEG_INFINITY);
                let violations = z.clone();
                solve_sides(z, own, (q, cost), 0.0, spare);
                moves.extend((0..middle).filter(|&label| z[label] > 0.0).map(|label| (label as u32, z[label])));
                z.copy_from_slice(&violations);
            }
        }
        let (mut squares, mut shift) = (0.0, 0.0);
        for (label, by) in moves.iter_mut() {
            tally.rise += *by * z[*label as usize];
            squares += *by * *by;
            // The labels of the row rise, the others fall, and the border moves against them.
            *by = if own.binary_search(label).is_ok() { *by } else { -*by };
            shift -= *by;
        }
        tally.rise -= 0.5 * q * (squares + shift * shift);
        if !moves.is_empty() {
            moves.push((middle as u32, shift));
            moves.iter().for_each(|&(output, by)| point.move_constant(output as usize, by));
            point.add_some(rows, row, moves);
        }
    }
    finite && point.is_finite() && tally.rise.is_finite() && tally.loss.is_finite()
}

/// The label with the largest violation among those of a row, or among the others; −∞ if there is none.
#[inline(always)]
fn worst(own: &[u32], z: &[f64], mine: bool) -> (usize, f64) {
    let is_mine = |label: usize| own.binary_search(&(label as u32)).is_ok();
    let labels = (0..z.len()).filter(|&label| is_mine(label) == mine);
    labels.fold((0, f64::NEG_INFINITY), |best, label| if z[label] > best.1 { (label, z[label]) } else { best })
}

/// The average precision and the ranking loss of a row, with equal scores in the wrong order.
fn judged(own: &[u32], scores: &[f64]) -> (f64, f64) {
    let others = scores.len() - own.len();
    if own.is_empty() || others == 0 {
        return (1.0, 0.0);
    }
    let (mut precision, mut wrong) = (0.0, 0.0);
    for &label in own {
        let score = scores[label as usize];
        let above = scores.iter().filter(|&&other| other >= score).count() as f64;
        let right = own.iter().filter(|&&other| scores[other as usize] >= score).count() as f64;
        precision += right / above;
        wrong += above - right;
    }
    (precision / own.len() as f64, wrong / (own.len() * others) as f64)
}
