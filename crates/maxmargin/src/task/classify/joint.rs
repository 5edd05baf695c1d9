//! [`Joint`]: several classes in one problem, with a score for each class.
//!
//! ```text
//! min  ½ Σ_m ‖w_m‖² + Σ_i C_i · loss_i,   s_m = w_m·x_i + b_m,   v_m = d_im + s_m − s_y for every m ≠ y
//!
//! largest  (Crammer & Singer)    loss_i = max(0, max_m v_m)
//! sum      (Weston & Watkins)    loss_i = Σ_m ℓ(v_m),   ℓ the hinge or the squared hinge
//! softmax                        loss_i = ln Σ_m e^(s_m) − s_y,   m = y included
//! ```
//! y is the class of row i and m runs over the others. d_im is the margin: 1, or what a cost matrix charges for class m
//! in place of y, times the row's weight where weights are margins. C_i is C times the row's weight times its class weight, and 0
//! for rows left out. The constants b_m are absent, free, or penalised like weights. A number added to all of them
//! changes no loss. The class with the largest score is predicted.
//!
//! **Rounding off the hinge.** The largest violation is rounded as in `task/largest.rs`. C_i·q is a feasible dual point of
//! the hinge itself.
//!
//! References: Crammer & Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2
//! (2001); Weston & Watkins, Support vector machines for multi-class pattern recognition, ESANN (1999).

use super::super::largest::{RowPoint, rounded_largest};
use super::super::{Curvature, Directions, LearningTask, Objective, Place, Roundable, Slopes, rounding_terms};
use super::{ClassRows, ClassWeight, PART, rows_of_classes};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels, Subset};
use crate::error::Result;
use crate::loss::{Curve, Loss};
use std::ops::Range;
use std::sync::Arc;

/// The loss of a row over all its classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointForm {
    /// The largest violation.
    Largest,
    /// The sum of the losses of all violations.
    Sum,
    /// The negative logarithm of the probability of the right class.
    Softmax,
}

/// The task: the class and the weight of each row.
#[derive(Clone, Debug)]
pub struct Joint {
    codes: Arc<[u32]>,
    /// The row's weight times its class weight; 0 if the row is left out. `None` if all weights are 1.
    weights: Option<Arc<[f64]>>,
    labels: Arc<Labels>,
    form: JointForm,
    loss: Loss,
    curve: Curve,
    c: f64,
    constants: bool,
    margins: Margins,
}

/// The margins of rows over classes.
#[derive(Clone, Debug, Default)]
struct Margins {
    /// By the class of the row and the other class. `None` if all are 1.
    table: Option<Arc<[f64]>>,
    /// A factor of each row. `None` if all are 1.
    rows: Option<Arc<[f64]>>,
}

impl Joint {
    /// The task with C = 1 over all rows, or over some of them: the others cost nothing.
    pub fn on(
        data: &Dataset,
        labels: &Labels,
        class_weight: &ClassWeight,
        (form, loss): (JointForm, Loss),
        constants: bool,
        subset: Option<&Subset>,
    ) -> Result<Joint> {
        let ClassRows { codes, weights, .. } = rows_of_classes(data, labels, class_weight, subset)?;
        Ok(Joint {
            codes,
            weights,
            labels: Arc::new(labels.clone()),
            form,
            loss,
            curve: Curve::Sharp(loss),
            c: 1.0,
            constants,
            margins: Margins::default(),
        })
    }

    /// The same with margins by the class of the row and then by the other class, in place of 1.
    pub fn with_costs(mut self, table: Option<Vec<f64>>) -> Joint {
        self.margins.table = table.map(Into::into);
        self
    }

    /// The same with a factor for the margins of each row.
    pub fn with_margins(mut self, rows: Option<Arc<[f64]>>) -> Joint {
        self.margins.rows = rows;
        self
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.labels.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The class of a row.
    #[inline]
    pub(crate) fn class(&self, row: usize) -> usize {
        self.codes[row] as usize
    }

    /// The weight of a row's loss.
    #[inline]
    pub(crate) fn cost(&self, row: usize) -> f64 {
        self.c * self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The margin by which the class of a row must lead over another class. 0 for the class itself.
    #[inline]
    pub(crate) fn margin(&self, row: usize, class: usize) -> f64 {
        let own = self.codes[row] as usize;
        if own == class {
            return 0.0;
        }
        let cost = self.margins.table.as_ref().map_or(1.0, |table| table[own * self.labels.len() + class]);
        cost * self.margins.rows.as_ref().map_or(1.0, |rows| rows[row])
    }

    /// The margin of a row, if it is the same over every class.
    #[inline]
    pub(crate) fn equal_margin(&self, row: usize) -> Option<f64> {
        let own = self.margins.rows.as_ref().map_or(1.0, |rows| rows[row]);
        self.margins.table.is_none().then_some(own)
    }

    /// The loss of a row over all its classes.
    pub(crate) fn form(&self) -> JointForm {
        self.form
    }

    /// The loss of one violation.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// By how much a row misses its margin over another class.
    #[inline]
    fn violation(&self, row: usize, scores: &[f64], class: usize) -> f64 {
        self.margin(row, class) + scores[class] - scores[self.class(row)]
    }

    /// The class over which a row misses its margin most, and by how much. The first of equal ones.
    pub(crate) fn largest(&self, row: usize, scores: &[f64]) -> (usize, f64) {
        let own = self.class(row);
        let mut found = (own, f64::NEG_INFINITY);
        for m in (0..scores.len()).filter(|&m| m != own) {
            let violation = self.violation(row, scores, m);
            if violation > found.1 {
                found = (m, violation);
            }
        }
        found
    }

    /// Value of a row without its cost. Writes its derivative by each score, also without the cost.
    fn row(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> RowPoint {
        let class = self.class(row);
        match self.form {
            JointForm::Softmax => softmax(class, scores, slopes),
            JointForm::Sum => {
                let mut point = RowPoint::default();
                let mut own = 0.0;
                for (m, slope) in slopes.iter_mut().enumerate() {
                    if m != class {
                        let at = self.curve.at(self.violation(row, scores, m));
                        point.value += at.value;
                        point.rounding[0] += at.rounding[0];
                        point.rounding[1] += at.rounding[1];
                        *slope = at.derivative;
                        own -= at.derivative;
                    }
                }
                slopes[class] = own;
                point
            }
            JointForm::Largest => match self.curve {
                Curve::Rounded(width) => self.rounded_largest(width, row, scores, slopes),
                Curve::Sharp(_) => {
                    slopes.fill(0.0);
                    let (worst, violation) = self.largest(row, scores);
                    if violation <= 0.0 {
                        return RowPoint::default();
                    }
                    (slopes[worst], slopes[class]) = (1.0, -1.0);
                    RowPoint { value: violation, rounding: [violation, 0.0], kept: 0.0 }
                }
            },
        }
    }

    /// The loss of a row, with its cost. `slopes` is a work buffer.
    pub(crate) fn loss_of_row(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64 {
        let cost = self.cost(row);
        if cost == 0.0 { 0.0 } else { cost * self.row(row, scores, slopes).value }
    }

    /// The loss of a row without its cost, and its derivative by each score.
    pub(crate) fn value_and_slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]) -> f64 {
        self.row(row, scores, slopes).value
    }

    /// The most that the slope of a row's loss changes along a unit of scores, without its cost, or none if slopes are
    /// bounded. For the sum over k − 1 pairs of classes that is k times the curvature of one.
    pub(crate) fn most_curved(&self) -> Option<f64> {
        match (self.form, self.curve) {
            (JointForm::Sum, Curve::Sharp(Loss::SquaredHinge)) => Some(2.0 * self.classes() as f64),
            _ => None,
        }
    }

    /// The derivative of the loss of a row by each score, without its cost.
    pub(crate) fn slopes(&self, row: usize, scores: &[f64], slopes: &mut [f64]) {
        self.row(row, scores, slopes);
    }

    /// The second derivatives of a row along a direction, without the cost. `kept` is what [`Joint::row`] found.
    fn bend(&self, row: usize, scores: &[f64], kept: f64, along: &[f64], out: &mut [f64]) {
        let class = self.class(row);
        match self.form {
            JointForm::Softmax => {
                // Only differences count. From the most probable class, no digits are lost if the others are rare.
                let origin = along[most_probable(scores)];
                let mut mean = 0.0;
                for ((out, &score), &along) in out.iter_mut().zip(scores).zip(along) {
                    *out = (score - kept).exp();
                    mean += *out * (along - origin);
                }
                out.iter_mut().zip(along).for_each(|(out, &along)| *out *= (along - origin) - mean);
            }
            JointForm::Sum => {
                let mut own = 0.0;
                for (m, out) in out.iter_mut().enumerate() {
                    *out = 0.0;
                    if m != class {
                        let curvature = self.curve.at(self.violation(row, scores, m)).curvature;
                        *out = curvature * (along[m] - along[class]);
                        own -= *out;
                    }
                }
                out[class] = own;
            }
            JointForm::Largest => {
                out.fill(0.0);
                let Curve::Rounded(width) = self.curve else { return };
                let is_in = |m: usize| m != class && self.violation(row, scores, m) > kept;
                let (mut sum, mut count) = (0.0, 0.0);
                for m in (0..scores.len()).filter(|&m| is_in(m)) {
                    sum += along[m] - along[class];
                    count += 1.0;
                }
                let mean = if kept > 0.0 { sum / count } else { 0.0 };
                let mut own = 0.0;
                for m in (0..scores.len()).filter(|&m| is_in(m)) {
                    out[m] = (along[m] - along[class] - mean) / width;
                    own -= out[m];
                }
                out[class] = own;
            }
        }
    }

    /// The second derivative of a row by each score, without the cost: what [`Joint::bend`] gives along each of them.
    fn bends(&self, row: usize, scores: &[f64], kept: f64, out: &mut [f64]) {
        let class = self.class(row);
        match (self.form, self.curve) {
            (JointForm::Softmax, _) => {
                out.iter_mut().zip(scores).for_each(|(out, &score)| *out = (score - kept).exp());
                // No digits are lost if all classes but the most probable one are rare.
                let best = most_probable(scores);
                let rest = out.iter().enumerate().filter(|(m, _)| *m != best).map(|(_, share)| share).sum();
                out.iter_mut().enumerate().for_each(|(m, out)| *out *= if m == best { rest } else { 1.0 - *out });
            }
            (JointForm::Sum, curve) => {
                out[class] = 0.0;
                for m in (0..scores.len()).filter(|&m| m != class) {
                    out[m] = curve.at(self.violation(row, scores, m)).curvature;
                    out[class] += out[m];
                }
            }
            (JointForm::Largest, Curve::Sharp(_)) => out.fill(0.0),
            (JointForm::Largest, Curve::Rounded(width)) => {
                let is_in = |m: usize| m != class && self.violation(row, scores, m) > kept;
                let count = (0..scores.len()).filter(|&m| is_in(m)).count() as f64;
                let (own, others) = if kept > 0.0 { (0.0, 1.0 - 1.0 / count) } else { (count, 1.0) };
                out.iter_mut().enumerate().for_each(|(m, out)| *out = if is_in(m) { others / width } else { 0.0 });
                out[class] = own / width;
            }
        }
    }

    /// [`Joint::row`] of the largest violation, rounded over a width.
    fn rounded_largest(&self, width: f64, row: usize, scores: &[f64], slopes: &mut [f64]) -> RowPoint {
        let class = self.class(row);
        slopes.fill(0.0);
        let mut own = 0.0;
        let share = |m: usize, share: f64| {
            slopes[m] = share;
            own -= share;
        };
        let others = (0..scores.len()).filter(|&m| m != class);
        let point = rounded_largest(width, others, |m| self.violation(row, scores, m), share);
        slopes[class] = own;
        point
    }

    /// The scores of a row of a part with its constants, in a buffer.
    fn with_constants(&self, at: &Place<'_>, number: usize, out: &mut [f64]) {
        let classes = self.classes();
        out.copy_from_slice(&at.scores[number * classes..(number + 1) * classes]);
        out.iter_mut().zip(at.thresholds).for_each(|(score, constant)| *score += constant);
    }
}

/// The class with the largest score, the first of equal ones.
fn most_probable(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, m| if scores[m] > scores[best] { m } else { best })
}

fn softmax(class: usize, scores: &[f64], slopes: &mut [f64]) -> RowPoint {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (slope, score) in slopes.iter_mut().zip(scores) {
        *slope = (score - highest).exp();
        sum += *slope;
    }
    slopes.iter_mut().for_each(|slope| *slope /= sum);
    // The probability less one, without losing the digits of rare classes.
    slopes[class] = 0.0;
    slopes[class] = -slopes.iter().sum::<f64>();
    let kept = highest + sum.ln();
    // If the right class has nearly all of the probability, the difference would lose its digits.
    let others: f64 =
        scores.iter().enumerate().filter(|(m, _)| *m != class).map(|(_, s)| (s - scores[class]).exp()).sum();
    let value = if others < 1.0 { others.ln_1p() } else { kept - scores[class] };
    RowPoint { value, rounding: [0.0; 2], kept }
}

/// What is remembered of a part.
#[derive(Clone, Debug, Default)]
pub struct JointMemo {
    /// [`RowPoint::kept`] of each row.
    kept: Vec<f64>,
    /// The result of [`Roundable::rounding`].
    rounding: [f64; 3],
}

impl LearningTask for Joint {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        (0..self.rows()).map(|row| self.cost(row)).sum()
    }

    fn constraints(&self) -> u64 {
        let rows = (0..self.rows()).filter(|&row| self.cost(row) > 0.0).count() as u64;
        rows * (self.classes() as u64 - 1)
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Largest(Labels::clone(&self.labels))
    }

    fn shifts(&self) -> bool {
        true
    }

    fn adds_free(&self) -> bool {
        true
    }
}

impl Objective for Joint {
    type Memo = JointMemo;

    fn parts(&self) -> usize {
        self.rows().div_ceil(PART)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * PART..((part + 1) * PART).min(Joint::rows(self))
    }

    fn outputs(&self) -> usize {
        self.classes()
    }

    fn thresholds(&self) -> usize {
        if self.constants { self.classes() } else { 0 }
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut JointMemo) -> Result<f64> {
        let classes = self.classes();
        let (mut scores, mut value, mut rounding) = (vec![0.0; classes], 0.0, [0.0; 2]);
        memo.kept.clear();
        for (number, (row, slopes_of_row)) in
            Objective::rows(self, at.part).zip(slopes.scores.chunks_exact_mut(classes)).enumerate()
        {
            let cost = self.cost(row);
            if cost == 0.0 {
                slopes_of_row.fill(0.0);
                memo.kept.push(0.0);
                continue;
            }
            self.with_constants(at, number, &mut scores);
            let point = self.row(row, &scores, slopes_of_row);
            value += cost * point.value;
            rounding[0] += cost * point.rounding[0];
            rounding[1] += cost * point.rounding[1];
            memo.kept.push(point.kept);
            slopes_of_row.iter_mut().for_each(|slope| *slope *= cost);
            slopes.thresholds.iter_mut().zip(&*slopes_of_row).for_each(|(sum, slope)| *sum += slope);
        }
        memo.rounding = rounding_terms(rounding);
        Ok(value)
    }
}

impl Curvature for Joint {
    fn diagonal(&self, at: &Place<'_>, memo: &JointMemo, out: &mut [f64]) -> Result<()> {
        let classes = self.classes();
        let mut scores = vec![0.0; classes];
        for (number, (row, out)) in Objective::rows(self, at.part).zip(out.chunks_exact_mut(classes)).enumerate() {
            let cost = self.cost(row);
            if cost == 0.0 {
                out.fill(0.0);
                continue;
            }
            self.with_constants(at, number, &mut scores);
            self.bends(row, &scores, memo.kept[number], out);
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

    fn block(&self, at: &Place<'_>, memo: &JointMemo, number: usize, visit: &mut dyn FnMut(usize, usize, f64)) {
        let row = Objective::rows(self, at.part).start + number;
        let (class, cost, kept) = (self.class(row), self.cost(row), memo.kept[number]);
        let mut scores = vec![0.0; self.classes()];
        self.with_constants(at, number, &mut scores);
        let mut both = |a: usize, b: usize, value: f64| visit(a.max(b), a.min(b), cost * value);
        // Every violation v_m = d_im + s_m − s_y has a curvature of its own.
        let mut separate = |bent: &[(usize, f64)]| {
            for &(m, curvature) in bent {
                both(m, m, curvature);
                both(m, class, -curvature);
            }
            both(class, class, bent.iter().map(|(_, curvature)| curvature).sum());
        };
        let violation = |m: usize| self.violation(row, &scores, m);
        let others = || (0..scores.len()).filter(|&m| m != class);
        match (self.form, self.curve) {
            _ if cost == 0.0 => {}
            (JointForm::Softmax, _) => {
                let shares: Vec<f64> = scores.iter().map(|score| (score - kept).exp()).collect();
                for (a, &share) in shares.iter().enumerate() {
                    (0..a).for_each(|b| both(a, b, -share * shares[b]));
                    let rest: f64 = shares[..a].iter().chain(&shares[a + 1..]).sum();
                    both(a, a, share * rest);
                }
            }
            (JointForm::Sum, curve) => {
                let bent = others().map(|m| (m, curve.at(violation(m)).curvature)).filter(|(_, bent)| *bent != 0.0);
                separate(&bent.collect::<Vec<_>>());
            }
            (JointForm::Largest, Curve::Sharp(_)) => {}
            (JointForm::Largest, Curve::Rounded(width)) => {
                let inside: Vec<usize> = others().filter(|&m| violation(m) > kept).collect();
                if kept <= 0.0 {
                    return separate(&inside.iter().map(|&m| (m, 1.0 / width)).collect::<Vec<_>>());
                }
                // The shares add up to one, so that moving all violations together changes none of them.
                let mean = 1.0 / inside.len() as f64;
                for (at, &a) in inside.iter().enumerate() {
                    inside[..at].iter().for_each(|&b| both(a, b, -mean / width));
                    both(a, a, (1.0 - mean) / width);
                }
            }
        }
    }

    fn curvature(&self, at: &Place<'_>, memo: &JointMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let (classes, count) = (self.classes(), along.count);
        let (mut scores, mut change, mut bent) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
        for (number, row) in Objective::rows(self, at.part).enumerate() {
            let own = number * classes * count..(number + 1) * classes * count;
            let (given, written) = (&along.scores[own.clone()], &mut out.scores[own]);
            let cost = self.cost(row);
            if cost == 0.0 {
                written.fill(0.0);
                continue;
            }
            self.with_constants(at, number, &mut scores);
            for direction in 0..count {
                for (m, change) in change.iter_mut().enumerate() {
                    let constant = if self.constants { along.thresholds[m * count + direction] } else { 0.0 };
                    *change = given[m * count + direction] + constant;
                }
                self.bend(row, &scores, memo.kept[number], &change, &mut bent);
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

impl Roundable for Joint {
    fn rounded(&self, width: f64) -> Joint {
        debug_assert!(self.loss == Loss::Hinge);
        Joint { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let row = |row: usize| self.margins.rows.as_ref().map_or(1.0, |rows| rows[row]);
        let table = self.margins.table.as_ref().map_or(1.0, |table| table.iter().copied().fold(0.0, f64::max));
        let rows = self
            .margins
            .rows
            .as_ref()
            .map_or(1.0, |rows| (0..rows.len()).filter(|&i| self.cost(i) > 0.0).map(row).fold(0.0, f64::max));
        let largest = table * rows;
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &JointMemo) -> [f64; 3] {
        memo.rounding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Targets};
    use crate::random::Random;
    use crate::run::Cancel;

    /// Rows of so many classes without features.
    fn joint(classes: usize, rows: usize, form: JointForm, loss: Loss) -> Joint {
        let matrix = Matrix::DenseF64(Dense::new(Vec::<f64>::new(), rows, 0).expect("empty"));
        let targets: Vec<f64> = (0..rows.max(classes)).map(|row| (row % classes) as f64).collect();
        let labels = Labels::find(&Targets::Real(targets.clone().into())).expect("classes");
        let data = Dataset::new(matrix, Targets::Real(targets[..rows].to_vec().into())).expect("rows");
        Joint::on(&data, &labels, &ClassWeight::Equal, (form, loss), false, None).expect("a task")
    }

    #[test]
    fn second_derivatives_by_each_score_are_those_along_it() {
        let mut random = Random::new(3, 0, 0);
        for (form, loss) in [
            (JointForm::Softmax, Loss::Logistic),
            (JointForm::Sum, Loss::SquaredHinge),
            (JointForm::Sum, Loss::Hinge),
            (JointForm::Largest, Loss::Hinge),
        ] {
            for (width, spread) in [(0.5, 0.5), (0.5, 4.0), (4.0, 1.0), (1e-3, 30.0)] {
                let sharp = joint(5, 5, form, loss);
                let task = if loss == Loss::Hinge { sharp.rounded(width) } else { sharp };
                for row in (0..5).cycle().take(100) {
                    let scores: Vec<f64> = (0..5).map(|_| spread * random.normal()).collect();
                    let (mut slopes, mut found, mut along) = ([0.0; 5], [0.0; 5], [0.0; 5]);
                    let kept = task.row(row, &scores, &mut slopes).kept;
                    task.bends(row, &scores, kept, &mut found);
                    for m in 0..5 {
                        let mut bent = [0.0; 5];
                        along[m] = 1.0;
                        task.bend(row, &scores, kept, &along, &mut bent);
                        along[m] = 0.0;
                        let apart = (found[m] - bent[m]).abs();
                        assert!(apart <= 1e-14 * bent[m].abs(), "{form:?} {scores:?} {} {}", found[m], bent[m]);
                    }
                }
            }
        }
    }

    #[test]
    fn the_diagonal_takes_time_in_proportion_to_the_classes() {
        const CLASSES: usize = 4000;
        let task = joint(CLASSES, CLASSES, JointForm::Softmax, Loss::Logistic);
        let scores: Vec<f64> = (0..CLASSES * PART).map(|at| (at % 7) as f64).collect();
        let place = Place { part: 0, scores: &scores, thresholds: &[], cancel: &Cancel::new() };
        let memo = JointMemo { kept: vec![8.0; PART], rounding: [0.0; 3] };
        let mut out = vec![0.0; CLASSES * PART];
        let began = std::time::Instant::now();
        task.diagonal(&place, &memo, &mut out).expect("no errors");
        // One step for each pair of classes would be 1.6e10 steps.
        assert!(out.iter().all(|bent| *bent > 0.0) && began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
    }

    #[test]
    fn a_hinge_rounded_by_less_than_its_last_digit_is_the_hinge() {
        let largest = joint(4, 4, JointForm::Largest, Loss::Hinge);
        for scores in [[0.0, 1e6, 5.0, 1e6], [0.0, 1e6, 1e6 - 1.0, 0.0], [0.0, 3.0, 2.9, 2.8], [0.0, -5.0, -6.0, 0.0]] {
            for width in (0..120).map(|step| 2f64.powi(-step) * 1.3) {
                let rounded = largest.rounded(width);
                let mut slopes = [0.0; 4];
                let point = rounded.row(0, &scores, &mut slopes);
                let sharp = largest.largest(0, &scores).1.max(0.0);
                let context = format!("{scores:?} {width:e} {point:?} {slopes:?}");
                assert!(point.value <= sharp && point.value >= sharp - 0.5 * width - 1e-15 * sharp, "{context}");
                assert!(slopes[1..].iter().all(|slope| *slope >= 0.0), "{context}");
                assert!(slopes[1..].iter().sum::<f64>() <= 1.0 + 1e-15, "{context}");
                assert_eq!(point.rounding[0], sharp, "{context}");
            }
        }
    }
}
