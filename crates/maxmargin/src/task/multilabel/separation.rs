//! [`Separation`]: label sets by calibrated separation ranking, one problem over all labels.
//!
//! ```text
//! min  ½ Σ_m ‖w_m‖² + Σ_i C_i · loss_i,   s_m = w_m·x_i + b_m,   s_0 the calibration score
//!
//! hinge      loss_i = max(0, max_(l∈Y) 1 + s_0 − s_l) + max(0, max_(k∉Y) 1 + s_k − s_0)
//! logistic   loss_i = ln(1 + Σ_(l∈Y) e^(s_0 − s_l)) + ln(1 + Σ_(k∉Y) e^(s_k − s_0))
//! ```
//! Y is the set of labels of row i. The calibration score is one more output, the last one. Labels with a score above it
//! are predicted. An empty set has no first term, and a full one no second. C_i is C times the row's weight, and 0 for
//! rows left out. The constants b_m are absent, free, or penalised like weights; a number added to all of them changes no
//! loss.
//!
//! **Nothing learned.** With W = 0 each row with labels and without all of them costs 2 C_i with the hinge. Where labels
//! are uncertain, that may be the optimum at every C: the dual then proves it. The logistic form learns there.
//!
//! **Solvers.** The hinge has a block of dual variables for each row, whose exact step is in `step.rs`. The logistic form,
//! and the hinge rounded as in `task/largest.rs`, are solved by Newton's method: the second derivatives of each half are
//! those of one largest violation.
//!
//! Reference: Guo & Schuurmans, Adaptive large margin training for multilabel classification, AAAI (2011).

use super::super::largest::{RowPoint, rounded_largest};
use super::super::{Curvature, Directions, LearningTask, Objective, Place, Roundable, Slopes, rounding_terms};
use crate::certificate::Decoder;
use crate::data::{Dataset, LabelSets, Labels, Subset, counts};
use crate::error::Result;
use crate::loss::{Curve, Loss};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a part.
const PART: usize = 1024;

/// The task: the labels and the weight of each row.
#[derive(Clone, Debug)]
pub struct Separation {
    sets: LabelSets,
    /// The weight of each row; 0 if the row is left out. `None` if all weights are 1.
    weights: Option<Arc<[f64]>>,
    labels: Arc<Labels>,
    curve: Curve,
    c: f64,
    constants: bool,
}

/// The labels of a row, or the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The labels of the row, whose scores are to lie above the calibration score.
    Own,
    /// The others, whose scores are to lie below it.
    Others,
}

impl Side {
    /// The sign of a score of this side in its violation.
    fn sign(self) -> f64 {
        match self {
            Side::Own => -1.0,
            Side::Others => 1.0,
        }
    }
}

const SIDES: [Side; 2] = [Side::Own, Side::Others];

/// One side of a row: its labels.
#[derive(Clone, Copy)]
struct Half<'a> {
    own: &'a [u32],
    labels: usize,
    side: Side,
    curve: Curve,
    scores: &'a [f64],
}

impl<'a> Half<'a> {
    /// The labels of this side, in order.
    fn labels(self) -> impl Iterator<Item = usize> + Clone + 'a {
        let (own, labels, is_own) = (self.own, self.labels, self.side == Side::Own);
        // The gaps between the labels of the row, or these labels themselves.
        let gaps = if is_own { own.len() } else { own.len() + 1 };
        (0..gaps).flat_map(move |at| match is_own {
            true => own[at] as usize..own[at] as usize + 1,
            false => {
                let from = if at == 0 { 0 } else { own[at - 1] as usize + 1 };
                from..own.get(at).map_or(labels, |&next| next as usize)
            }
        })
    }

    /// By how much a label misses its margin.
    #[inline]
    fn violation(self, label: usize) -> f64 {
        let margin = match self.curve {
            Curve::Sharp(loss) => loss.margin(),
            Curve::Rounded(_) => 1.0,
        };
        margin + self.side.sign() * (self.scores[label] - self.scores[self.labels])
    }

    /// Value and slopes; those of the labels are written, and that of the calibration score is added to.
    fn point(self, slopes: &mut [f64]) -> RowPoint {
        let (sign, middle) = (self.side.sign(), self.labels);
        let mut sum = 0.0;
        let mut share = |label: usize, share: f64| {
            slopes[label] = sign * share;
            sum += share;
        };
        let point = match self.curve {
            Curve::Rounded(width) => rounded_largest(width, self.labels(), |label| self.violation(label), share),
            Curve::Sharp(Loss::Logistic) => {
                let largest = self.labels().map(|label| self.violation(label)).fold(0.0, f64::max);
                let others: f64 = self.labels().map(|label| (self.violation(label) - largest).exp()).sum();
                let total = others + (-largest).exp();
                let kept = largest + total.ln();
                self.labels().for_each(|label| share(label, (self.violation(label) - largest).exp() / total));
                // A small loss would lose its digits.
                let value = if largest == 0.0 { others.ln_1p() } else { kept };
                RowPoint { value, rounding: [0.0; 2], kept }
            }
            Curve::Sharp(_) => {
                let worst = self.largest();
                match worst {
                    Some((label, violation)) if violation > 0.0 => {
                        share(label, 1.0);
                        RowPoint { value: violation, rounding: [violation, 0.0], kept: 0.0 }
                    }
                    _ => RowPoint::default(),
                }
            }
        };
        slopes[middle] -= sign * sum;
        point
    }

    /// The label with the largest violation, the first of equal ones.
    fn largest(self) -> Option<(usize, f64)> {
        let with = |label: usize| (label, self.violation(label));
        self.labels().map(with).reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// How likely each label is the largest violation, and that none is above zero, for the logistic form.
    fn shares(self, kept: f64) -> (Vec<(usize, f64)>, f64) {
        (self.labels().map(|label| (label, (self.violation(label) - kept).exp())).collect(), (-kept).exp())
    }

    /// The labels within the rounding.
    fn inside(self, kept: f64) -> Vec<usize> {
        self.labels().filter(|&label| self.violation(label) > kept).collect()
    }

    /// The second derivatives, for any number of directions. `kept` is what [`Half::point`] found.
    fn bend(self, kept: f64) -> Bend<'a> {
        let (parts, none, width) = match self.curve {
            Curve::Sharp(Loss::Logistic) => {
                let (shares, none) = self.shares(kept);
                (shares, none, None)
            }
            Curve::Sharp(_) => (Vec::new(), 0.0, Some(1.0)),
            Curve::Rounded(width) => {
                (self.inside(kept).into_iter().map(|label| (label, 1.0)).collect(), 0.0, Some(width))
            }
        };
        Bend { half: self, parts, none, width, mean: kept > 0.0 }
    }

    /// Visits the second derivatives by two violations of this side, each pair once, and each label with itself.
    fn each_pair(self, kept: f64, mut visit: impl FnMut(usize, usize, f64)) {
        match self.curve {
            Curve::Sharp(Loss::Logistic) => {
                let (shares, none) = self.shares(kept);
                let all: f64 = shares.iter().map(|(_, share)| share).sum();
                for (at, &(a, share)) in shares.iter().enumerate() {
                    shares[..at].iter().for_each(|&(b, other)| visit(a, b, -share * other));
                    // No digits are lost if all but this one are rare.
                    let rest = if share > 0.5 {
                        shares.iter().filter(|(b, _)| *b != a).map(|(_, other)| other).sum::<f64>() + none
                    } else {
                        all - share + none
                    };
                    visit(a, a, share * rest);
                }
            }
            Curve::Sharp(_) => {}
            Curve::Rounded(width) => {
                let inside = self.inside(kept);
                let mean = if kept > 0.0 { 1.0 / inside.len() as f64 } else { 0.0 };
                for (at, &a) in inside.iter().enumerate() {
                    if kept > 0.0 {
                        inside[..at].iter().for_each(|&b| visit(a, b, -mean / width));
                    }
                    visit(a, a, (1.0 - mean) / width);
                }
            }
        }
    }

    /// Adds the second derivative by each score.
    fn bends(self, kept: f64, out: &mut [f64]) {
        let middle = self.labels;
        match self.curve {
            Curve::Sharp(Loss::Logistic) => {
                let (shares, none) = self.shares(kept);
                let all: f64 = shares.iter().map(|(_, share)| share).sum();
                for &(label, share) in &shares {
                    let others = shares.iter().filter(|(other, _)| *other != label).map(|(_, other)| other);
                    let rest = if share > 0.5 { others.sum::<f64>() + none } else { all - share + none };
                    out[label] += share * rest;
                }
                out[middle] += all * none;
            }
            Curve::Sharp(_) => {}
            Curve::Rounded(width) => {
                let inside = self.inside(kept);
                let count = inside.len() as f64;
                let (own, together) = if kept > 0.0 { (1.0 - 1.0 / count, 0.0) } else { (1.0, count) };
                inside.into_iter().for_each(|label| out[label] += own / width);
                out[middle] += together / width;
            }
        }
    }
}

/// The second derivatives of one half of a row.
struct Bend<'a> {
    half: Half<'a>,
    /// The labels that matter, each with its share for the logistic form.
    parts: Vec<(usize, f64)>,
    /// The share of no violation, for the logistic form.
    none: f64,
    /// The width of the rounding, unless it is the logistic form.
    width: Option<f64>,
    /// Whether the rounded shares add up to one.
    mean: bool,
}

impl Bend<'_> {
    /// Adds the second derivatives along a direction: the change of each score, `step` numbers apart.
    fn along(&self, (along, step): (&[f64], usize), out: &mut [f64]) {
        let (sign, middle) = (self.half.side.sign(), self.half.labels);
        let border = along[middle * step];
        let change = |label: usize| sign * (along[label * step] - border);
        let mut sum = 0.0;
        let mut add = |label: usize, bent: f64| {
            out[label] += sign * bent;
            sum += bent;
        };
        match self.width {
            None => {
                // Only differences count. From the most likely one, no digits are lost if the others are rare.
                let best = self.parts.iter().fold((0.0, self.none), |best, &(label, share)| {
                    if share > best.1 { (change(label), share) } else { best }
                });
                let origin = best.0;
                let each = self.parts.iter().map(|&(label, share)| share * (change(label) - origin));
                let mean = each.sum::<f64>() - self.none * origin;
                self.parts.iter().for_each(|&(label, share)| add(label, share * ((change(label) - origin) - mean)));
            }
            Some(width) => {
                let whole: f64 = self.parts.iter().map(|&(label, _)| change(label)).sum();
                let mean = if self.mean { whole / self.parts.len() as f64 } else { 0.0 };
                self.parts.iter().for_each(|&(label, _)| add(label, (change(label) - mean) / width));
            }
        }
        out[middle] -= sign * sum;
    }
}

impl Separation {
    /// The task with C = 1 over all rows, or over some of them: the others cost nothing.
    pub fn on(
        data: &Dataset,
        labels: &Labels,
        loss: Loss,
        constants: bool,
        subset: Option<&Subset>,
    ) -> Result<Separation> {
        let sets = LabelSets::of(labels, data.targets())?;
        let weight = |row: usize| match counts(subset, row) {
            true => data.weights().map_or(1.0, |weights| weights[row]),
            false => 0.0,
        };
        let plain = data.weights().is_none() && subset.is_none();
        let weights = (!plain).then(|| (0..sets.len()).map(weight).collect());
        Ok(Separation { sets, weights, labels: Arc::new(labels.clone()), curve: Curve::Sharp(loss), c: 1.0, constants })
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.sets.len()
    }

    /// The labels of a row.
    #[inline]
    pub fn set(&self, row: usize) -> &[u32] {
        self.sets.row(row)
    }

    /// Whether the loss is the hinge, rounded or not.
    pub(crate) fn is_hinge(&self) -> bool {
        self.curve != Curve::Sharp(Loss::Logistic)
    }

    /// The weight of a row's loss.
    #[inline]
    pub(crate) fn cost(&self, row: usize) -> f64 {
        self.c * self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    fn halves<'a>(&'a self, row: usize, scores: &'a [f64]) -> [Half<'a>; 2] {
        let (own, labels, curve) = (self.sets.row(row), self.labels(), self.curve);
        SIDES.map(|side| Half { own, labels, side, curve, scores })
    }

    /// Values of the two halves of a row, without its cost. Writes the derivative by each score.
    fn row(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> [RowPoint; 2] {
        slopes.fill(0.0);
        self.halves(row, scores).map(|half| half.point(slopes))
    }

    /// The loss of a row, with its cost. `slopes` is a work buffer.
    pub(crate) fn loss_of_row(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64 {
        match self.cost(row) {
            0.0 => 0.0,
            cost => cost * self.row(row, scores, slopes).iter().map(|half| half.value).sum::<f64>(),
        }
    }

    /// The derivative of the loss of a row by each score, without its cost.
    pub(crate) fn slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]) {
        self.row(row, scores, slopes);
    }

    /// The scores of a row of a part with its constants, in a buffer.
    fn with_constants(&self, at: &Place<'_>, number: usize, out: &mut [f64]) {
        let outputs = out.len();
        out.copy_from_slice(&at.scores[number * outputs..(number + 1) * outputs]);
        out.iter_mut().zip(at.thresholds).for_each(|(score, constant)| *score += constant);
    }
}

/// The loss of one row, its labels in order, and its derivative by each score; the calibration score is the last one.
pub(crate) fn separation_loss(loss: Loss, own: &[u32], scores: &[f64], slopes: &mut [f64]) -> f64 {
    slopes.fill(0.0);
    let (labels, curve) = (scores.len() - 1, Curve::Sharp(loss));
    SIDES.iter().map(|&side| Half { own, labels, side, curve, scores }.point(slopes).value).sum()
}

/// What is remembered of a part.
#[derive(Clone, Debug, Default)]
pub struct SeparationMemo {
    /// What the second derivatives of the two halves of each row need.
    kept: Vec<[f64; 2]>,
    /// The result of [`Roundable::rounding`].
    rounding: [f64; 3],
}

impl LearningTask for Separation {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        (0..self.rows()).map(|row| self.cost(row)).sum()
    }

    fn constraints(&self) -> u64 {
        let rows = (0..self.rows()).filter(|&row| self.cost(row) > 0.0).count() as u64;
        rows * self.labels() as u64
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Sets { labels: Labels::clone(&self.labels), calibrated: true }
    }

    fn shifts(&self) -> bool {
        true
    }

    fn adds_free(&self) -> bool {
        true
    }

    /// With equal scores, a side that has labels costs the margin.
    fn cost_of_equal_scores(&self) -> Option<f64> {
        let cost = |row: usize| {
            let count = self.set(row).len();
            self.cost(row) * f64::from(u8::from(count > 0) + u8::from(count < self.labels()))
        };
        self.is_hinge().then(|| (0..self.rows()).map(cost).sum())
    }
}

impl Objective for Separation {
    type Memo = SeparationMemo;

    fn parts(&self) -> usize {
        self.rows().div_ceil(PART)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * PART..((part + 1) * PART).min(Separation::rows(self))
    }

    fn outputs(&self) -> usize {
        self.labels() + 1
    }

    fn thresholds(&self) -> usize {
        if self.constants { self.outputs() } else { 0 }
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut SeparationMemo) -> Result<f64> {
        let outputs = self.outputs();
        let (mut scores, mut value, mut rounding) = (vec![0.0; outputs], 0.0, [0.0; 2]);
        memo.kept.clear();
        for (number, (row, slopes_of_row)) in
            Objective::rows(self, at.part).zip(slopes.scores.chunks_exact_mut(outputs)).enumerate()
        {
            let cost = self.cost(row);
            if cost == 0.0 {
                slopes_of_row.fill(0.0);
                memo.kept.push([0.0; 2]);
                continue;
            }
            self.with_constants(at, number, &mut scores);
            let halves = self.row(row, &scores, slopes_of_row);
            for half in &halves {
                value += cost * half.value;
                rounding[0] += cost * half.rounding[0];
                rounding[1] += cost * half.rounding[1];
            }
            memo.kept.push(halves.map(|half| half.kept));
            slopes_of_row.iter_mut().for_each(|slope| *slope *= cost);
            slopes.thresholds.iter_mut().zip(&*slopes_of_row).for_each(|(sum, slope)| *sum += slope);
        }
        memo.rounding = rounding_terms(rounding);
        Ok(value)
    }
}

impl Curvature for Separation {
    fn diagonal(&self, at: &Place<'_>, memo: &SeparationMemo, out: &mut [f64]) -> Result<()> {
        let outputs = self.outputs();
        let mut scores = vec![0.0; outputs];
        for (number, (row, out)) in Objective::rows(self, at.part).zip(out.chunks_exact_mut(outputs)).enumerate() {
            let cost = self.cost(row);
            out.fill(0.0);
            if cost == 0.0 {
                continue;
            }
            self.with_constants(at, number, &mut scores);
            let halves = self.halves(row, &scores);
            halves.iter().zip(memo.kept[number]).for_each(|(half, kept)| half.bends(kept, out));
            out.iter_mut().for_each(|bent| *bent *= cost);
        }
        Ok(())
    }

    fn rows_are_separate(&self) -> bool {
        true
    }

    fn has_blocks(&self) -> bool {
        true
    }

    fn block(&self, at: &Place<'_>, memo: &SeparationMemo, number: usize, visit: &mut dyn FnMut(usize, usize, f64)) {
        let row = Objective::rows(self, at.part).start + number;
        let cost = self.cost(row);
        if cost == 0.0 {
            return;
        }
        let (mut scores, middle) = (vec![0.0; self.outputs()], self.labels());
        self.with_constants(at, number, &mut scores);
        for (half, kept) in self.halves(row, &scores).into_iter().zip(memo.kept[number]) {
            // Violations are differences with the calibration score, which is the last output.
            let mut with_middle = vec![0.0; middle];
            let mut all = 0.0;
            half.each_pair(kept, |a, b, bent| {
                visit(a.max(b), a.min(b), cost * bent);
                with_middle[a] -= bent;
                all += bent;
                if a != b {
                    with_middle[b] -= bent;
                    all += bent;
                }
            });
            for (label, bent) in with_middle.into_iter().enumerate().filter(|(_, bent)| *bent != 0.0) {
                visit(middle, label, cost * bent);
            }
            visit(middle, middle, cost * all);
        }
    }

    fn curvature(&self, at: &Place<'_>, memo: &SeparationMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let (outputs, count) = (self.outputs(), along.count);
        let (mut scores, mut change, mut bent) = (vec![0.0; outputs], vec![0.0; outputs * count], vec![0.0; outputs]);
        for (number, row) in Objective::rows(self, at.part).enumerate() {
            let own = number * outputs * count..(number + 1) * outputs * count;
            let (given, written) = (&along.scores[own.clone()], &mut out.scores[own]);
            let cost = self.cost(row);
            if cost == 0.0 {
                written.fill(0.0);
                continue;
            }
            self.with_constants(at, number, &mut scores);
            change.copy_from_slice(given);
            if self.constants {
                change.iter_mut().zip(along.thresholds).for_each(|(change, constant)| *change += constant);
            }
            let halves = self.halves(row, &scores).into_iter().zip(memo.kept[number]);
            let bends: Vec<Bend<'_>> = halves.map(|(half, kept)| half.bend(kept)).collect();
            for direction in 0..count {
                bent.fill(0.0);
                bends.iter().for_each(|bend| bend.along((&change[direction..], count), &mut bent));
                for (m, bent) in bent.iter().enumerate() {
                    written[m * count + direction] = cost * bent;
                    if self.constants {
                        out.thresholds[m * count + direction] += cost * bent;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Roundable for Separation {
    fn rounded(&self, width: f64) -> Separation {
        debug_assert!(self.is_hinge());
        Separation { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn rounding(&self, _part: usize, memo: &SeparationMemo) -> [f64; 3] {
        memo.rounding
    }
}
