//! Binary classification.
//!
//! ```text
//! min  ½‖w‖² + Σ_i C_i · loss(m − y_i (w·x_i + b)),   y_i ∈ {−1, +1}
//! ```
//! The margin m is 1, or 0 for the logistic loss, which has no kink. C_i is C times the row's weight times its class
//! weight, and 0 for rows left out. b is absent, free, or penalised like any other weight (it is then the weight of a
//! constant feature of value 1). There is one block per row. Parts are runs of rows, because rows do not interact.
//!
//! Reference: Cortes & Vapnik, Support-vector networks, Machine Learning 20 (1995).

use super::super::{
    Constraint, Curvature, Directions, Independent, LearningTask, Objective, Place, Roundable, Slopes, rounding_terms,
};
use super::{ClassWeight, PART};
use crate::certificate::Decoder;
use crate::data::row_loops::for_this_machine;
use crate::data::{Classes, Dataset, Subset, counts};
use crate::error::Result;
use crate::loss::{Curve, CurvePoint, Loss};
use std::ops::Range;
use std::sync::Arc;

/// What is remembered of a part.
#[derive(Clone, Debug, Default)]
pub struct RowMemo {
    /// The curvature by the score of each row, without the row's cost. Steps need only few digits of it, so f32 is
    /// enough.
    curvature: Vec<f32>,
    /// The result of [`Roundable::rounding`].
    rounding: [f64; 3],
}

/// The task: a sign and a weight for each row.
#[derive(Clone, Debug)]
pub struct Binary {
    signs: Arc<[i8]>,
    /// The row's weight times its class weight; 0 if the row is left out. `None` if all weights are 1.
    weights: Option<Arc<[f64]>>,
    /// The margin of each row. `None` if all margins are those of the loss.
    margins: Option<Arc<[f64]>>,
    c: f64,
    loss: Loss,
    curve: Curve,
    intercept: bool,
    classes: Classes,
}

impl Binary {
    /// A task from signs, the weight C of the loss and the data's weights. `intercept` says whether there is a term b.
    pub fn new(
        data: &Dataset,
        classes: &Classes,
        class_weight: &ClassWeight,
        loss: Loss,
        c: f64,
        intercept: bool,
    ) -> Result<Binary> {
        Binary::on(data, classes, class_weight, loss, intercept, None).map(|task| task.with_cost(c))
    }

    /// The same with C = 1 over some of the rows. The others cost nothing, and `balanced` does not count them.
    pub fn on(
        data: &Dataset,
        classes: &Classes,
        class_weight: &ClassWeight,
        loss: Loss,
        intercept: bool,
        subset: Option<&Subset>,
    ) -> Result<Binary> {
        let signs = classes.signs(data.targets())?;
        let shares = class_weight.shares(classes, || {
            let (mut negatives, mut positives) = (0.0, 0.0);
            for row in (0..signs.len()).filter(|&row| counts(subset, row)) {
                let weight = data.weights().map_or(1.0, |weights| weights[row]);
                *(if signs[row] > 0 { &mut positives } else { &mut negatives }) += weight;
            }
            (negatives, positives)
        })?;
        Ok(Binary::weighted(data, classes, signs, shares, loss, intercept, subset))
    }

    /// A part of a larger data set: classes and their weights are those of the whole.
    pub(crate) fn of_part(
        data: &Dataset,
        classes: &Classes,
        shares: (f64, f64),
        loss: Loss,
        intercept: bool,
    ) -> Result<Binary> {
        let signs = classes.signs(data.targets())?;
        Ok(Binary::weighted(data, classes, signs, shares, loss, intercept, None))
    }

    /// A column of an output code with C = 1, given the side and the weight of each row.
    pub(crate) fn of_column(signs: Vec<i8>, weights: Option<Arc<[f64]>>, loss: Loss, intercept: bool) -> Binary {
        let classes = Classes { negative: "-".to_string(), positive: "+".to_string() };
        Binary {
            signs: signs.into(),
            weights,
            margins: None,
            c: 1.0,
            loss,
            curve: Curve::Sharp(loss),
            intercept,
            classes,
        }
    }

    /// The task with C = 1, given the weights of the negative and the positive class.
    fn weighted(
        data: &Dataset,
        classes: &Classes,
        signs: Vec<i8>,
        (negative, positive): (f64, f64),
        loss: Loss,
        intercept: bool,
        subset: Option<&Subset>,
    ) -> Binary {
        let weight = |row: usize| {
            let class = if signs[row] > 0 { positive } else { negative };
            let own = data.weights().map_or(1.0, |weights| weights[row]);
            if counts(subset, row) { class * own } else { 0.0 }
        };
        let equal = (negative, positive) == (1.0, 1.0) && data.weights().is_none() && subset.is_none();
        let weights = (!equal).then(|| (0..signs.len()).map(weight).collect());
        Binary {
            signs: signs.into(),
            weights,
            margins: None,
            c: 1.0,
            loss,
            curve: Curve::Sharp(loss),
            intercept,
            classes: classes.clone(),
        }
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> Binary {
        Binary { c, ..self }
    }

    /// The same with a margin for each row in place of 1, for a loss that has a margin.
    pub fn with_margins(self, margins: Option<Arc<[f64]>>) -> Binary {
        Binary { margins, ..self }
    }

    /// The weight of a row's loss.
    #[inline]
    fn cost(&self, row: usize) -> f64 {
        self.c * self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The total weight of the loss.
    pub fn total_cost(&self) -> f64 {
        (0..self.signs.len()).map(|row| self.cost(row)).sum()
    }

    /// The label of a class in which no row has a positive cost, if there is one.
    pub(crate) fn class_without_weight<'c>(&self, classes: &'c Classes) -> Option<&'c str> {
        let has = |sign: i8| (0..self.signs.len()).any(|row| self.signs[row] == sign && self.cost(row) > 0.0);
        if !has(1) {
            Some(&classes.positive)
        } else if !has(-1) {
            Some(&classes.negative)
        } else {
            None
        }
    }

    /// Number of rows with a positive cost.
    pub fn constraints(&self) -> u64 {
        (0..self.signs.len()).filter(|&row| self.cost(row) > 0.0).count() as u64
    }
}

impl LearningTask for Binary {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        Binary::total_cost(self)
    }

    fn constraints(&self) -> u64 {
        Binary::constraints(self)
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Sign(self.classes.clone())
    }

    fn adds_free(&self) -> bool {
        true
    }
}

impl Independent for Binary {
    fn blocks(&self) -> usize {
        self.signs.len()
    }

    fn loss(&self) -> Loss {
        self.loss
    }

    fn blocks_are_rows(&self) -> bool {
        true
    }

    #[inline]
    fn constraint(&self, block: usize) -> Constraint {
        let coefficient = f64::from(self.signs[block]);
        Constraint {
            row: block,
            against: None,
            coefficient,
            threshold: if self.intercept { coefficient } else { 0.0 },
            margin: self.margins.as_ref().map_or(self.loss.margin(), |margins| margins[block]),
            cost: self.cost(block),
        }
    }
}

impl Objective for Binary {
    type Memo = RowMemo;

    fn parts(&self) -> usize {
        self.signs.len().div_ceil(PART)
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * PART..((part + 1) * PART).min(self.signs.len())
    }

    fn thresholds(&self) -> usize {
        usize::from(self.intercept)
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut RowMemo) -> Result<f64> {
        let rows = self.rows(at.part);
        let rows = Rows {
            signs: &self.signs[rows.clone()],
            weights: self.weights.as_ref().map_or(&ONES[..rows.len()], |weights| &weights[rows.clone()]),
            margins: self.margins.as_ref().map(|margins| &margins[rows]),
            scores: at.scores,
            c: self.c,
            margin: self.loss.margin(),
            threshold: at.thresholds.first().copied().unwrap_or(0.0),
        };
        memo.curvature.resize(at.scores.len(), 0.0);
        let sums = evaluate_rows(&rows, self.curve, slopes.scores, &mut memo.curvature);
        memo.rounding = rounding_terms(sums.rounding);
        if let Some(total) = slopes.thresholds.first_mut() {
            *total += sums.slope;
        }
        Ok(sums.value)
    }
}

/// Weights for a part in which all weights are 1.
static ONES: [f64; PART] = [1.0; PART];

/// What the value of a run of rows depends on.
struct Rows<'a> {
    signs: &'a [i8],
    weights: &'a [f64],
    /// The margin of each row, if they differ.
    margins: Option<&'a [f64]>,
    scores: &'a [f64],
    c: f64,
    /// The margin of all rows otherwise.
    margin: f64,
    threshold: f64,
}

/// Sums over a run of rows.
#[derive(Default)]
struct RowSums {
    value: f64,
    slope: f64,
    rounding: [f64; 2],
}

for_this_machine! {
    /// Writes the slope of each row and its curvature without the cost, and returns sums.
    fn evaluate_rows[](rows: &Rows<'_>, curve: Curve, slope: &mut [f64], curvature: &mut [f32]) -> RowSums = evaluate_rows_plainly
}

#[inline(always)]
fn evaluate_rows_plainly(rows: &Rows<'_>, curve: Curve, slope: &mut [f64], curvature: &mut [f32]) -> RowSums {
    // One loop for each curve, so that the compiler can specialise it.
    match curve {
        Curve::Rounded(width) => evaluate_each(rows, |v| Curve::Rounded(width).at(v), slope, curvature),
        Curve::Sharp(Loss::Hinge) => evaluate_each(rows, |v| Curve::Sharp(Loss::Hinge).at(v), slope, curvature),
        Curve::Sharp(Loss::SquaredHinge) => {
            evaluate_each(rows, |v| Curve::Sharp(Loss::SquaredHinge).at(v), slope, curvature)
        }
        Curve::Sharp(Loss::Logistic) => evaluate_each(rows, |v| Curve::Sharp(Loss::Logistic).at(v), slope, curvature),
    }
}

#[inline(always)]
fn evaluate_each(rows: &Rows<'_>, at: impl Fn(f64) -> CurvePoint, slope: &mut [f64], curvature: &mut [f32]) -> RowSums {
    const LANES: usize = 8;
    let Rows { c, margin, threshold, .. } = *rows;
    let mut lanes = [[0.0; LANES]; 4];
    let mut run = |signs: &[i8; LANES], weights: &[f64; LANES], margins: &[f64; LANES], scores: &[f64; LANES]| {
        let (mut slope, mut curvature) = ([0.0; LANES], [0.0f32; LANES]);
        for lane in 0..LANES {
            let (sign, cost) = (f64::from(signs[lane]), c * weights[lane]);
            let point = at(margins[lane] - sign * (scores[lane] + threshold));
            slope[lane] = -sign * cost * point.derivative;
            curvature[lane] = point.curvature as f32;
            lanes[0][lane] += cost * point.value;
            lanes[1][lane] += slope[lane];
            lanes[2][lane] += cost * point.rounding[0];
            lanes[3][lane] += cost * point.rounding[1];
        }
        (slope, curvature)
    };
    let (signs, last_signs) = rows.signs.as_chunks::<LANES>();
    let (weights, last_weights) = rows.weights.as_chunks::<LANES>();
    let (scores, last_scores) = rows.scores.as_chunks::<LANES>();
    let (slopes, last_slopes) = slope.as_chunks_mut::<LANES>();
    let (curvatures, last_curvatures) = curvature.as_chunks_mut::<LANES>();
    let (flat, own) = ([margin; LANES], rows.margins.unwrap_or_default().as_chunks::<LANES>());
    let given = signs.iter().zip(weights).zip(scores).enumerate();
    for ((at, ((signs, weights), scores)), (slope, curvature)) in given.zip(slopes.iter_mut().zip(curvatures)) {
        (*slope, *curvature) = run(signs, weights, own.0.get(at).unwrap_or(&flat), scores);
    }
    // The last lanes are filled up with rows that cost nothing.
    let count = last_scores.len();
    let (mut signs, mut weights, mut scores) = ([1; LANES], [0.0; LANES], [0.0; LANES]);
    signs[..count].copy_from_slice(last_signs);
    weights[..count].copy_from_slice(last_weights);
    scores[..count].copy_from_slice(last_scores);
    let mut margins = flat;
    margins[..own.1.len()].copy_from_slice(own.1);
    let (slope, curvature) = run(&signs, &weights, &margins, &scores);
    last_slopes.copy_from_slice(&slope[..count]);
    last_curvatures.copy_from_slice(&curvature[..count]);
    let [value, slope, hinge, excess] = lanes.map(|lanes| lanes.iter().sum());
    RowSums { value, slope, rounding: [hinge, excess] }
}

impl Curvature for Binary {
    fn diagonal(&self, at: &Place<'_>, memo: &RowMemo, out: &mut [f64]) -> Result<()> {
        for ((out, &curvature), row) in out.iter_mut().zip(&memo.curvature).zip(self.rows(at.part)) {
            *out = self.cost(row) * f64::from(curvature);
        }
        Ok(())
    }

    fn rows_are_separate(&self) -> bool {
        true
    }

    fn curvature(&self, at: &Place<'_>, memo: &RowMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let curved = memo.curvature.iter().zip(self.rows(at.part));
        let lines = along.scores.chunks_exact(along.count).zip(out.scores.chunks_exact_mut(along.count));
        for ((&curvature, row), (directions, line)) in curved.zip(lines) {
            let curvature = self.cost(row) * f64::from(curvature);
            for (column, (line, &direction)) in line.iter_mut().zip(directions).enumerate() {
                *line = curvature * (direction + along.thresholds.get(column).copied().unwrap_or(0.0));
            }
            if self.intercept {
                out.thresholds.iter_mut().zip(line.iter()).for_each(|(total, line)| *total += line);
            }
        }
        Ok(())
    }
}

impl Roundable for Binary {
    fn rounded(&self, width: f64) -> Binary {
        debug_assert!(self.loss == Loss::Hinge);
        Binary { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let Some(margins) = &self.margins else { return 1.0 };
        let largest =
            (0..margins.len()).filter(|&row| self.cost(row) > 0.0).map(|row| margins[row]).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &RowMemo) -> [f64; 3] {
        memo.rounding
    }
}
