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

use super::{
    Abilities, Constraint, Curvature, Directions, Independent, Input, LearningTask, Objective, Place, Profile,
    Roundable, Slopes, rounding_terms,
};
use crate::certificate::Decoder;
use crate::data::row_loops::for_this_machine;
use crate::data::{Classes, Dataset, Subset, counts, same_number};
use crate::error::{Code, Error, Result};
use crate::loss::{Curve, CurvePoint, Loss};
use crate::wish::{Intercept, LEARNING, Regularisation, Setting, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Number of rows in a part.
const PART: usize = 1024;

/// How much the rows of each class count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeight {
    /// All rows count the same.
    #[default]
    Equal,
    /// Inversely to the frequency of the class: rows / (classes · rows of the class), with rows counted by their
    /// weights.
    Balanced,
    /// By label. Labels that are not named have weight 1.
    ByLabel(BTreeMap<String, f64>),
}

/// The settings of a classifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClassifySettings {
    /// The constant term.
    pub intercept: Intercept,
    /// The positive label, if it is not the second one in the order of the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// How much each class counts.
    pub class_weight: ClassWeight,
}

/// `classify`
pub(super) const PROFILE: Profile = Profile {
    name: "classify",
    about: "Tell two classes apart",
    settings: &[
        Setting {
            name: "intercept",
            heading: LEARNING,
            aliases: &[],
            help: "The constant term [default: free]",
            placeholder: "",
            value: Value::Name(|| Intercept::ALL.map(Intercept::name).to_vec()),
            place: "task.intercept",
        },
        Setting {
            name: "class-weight",
            heading: LEARNING,
            aliases: &[],
            help: "Weights of the classes: `balanced`, or LABEL=W,LABEL=W",
            placeholder: "WEIGHTS",
            value: Value::ClassWeights,
            place: "task.class-weight",
        },
        Setting {
            name: "positive",
            heading: LEARNING,
            aliases: &[],
            help: "The label that counts as positive [default: the larger one]",
            placeholder: "LABEL",
            value: Value::Label,
            place: "task.positive",
        },
    ],
    without: &[],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &[],
    untunable: None,
};

impl ClassifySettings {
    /// Refuses invalid class weights.
    pub(super) fn refuse(&self, hard: bool) -> Result<()> {
        if let ClassWeight::ByLabel(weights) = &self.class_weight
            && let Some((label, weight)) = weights.iter().find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0))
        {
            return Err(Error::new(
                Code::BadSetting,
                format!("the weight of class `{label}` is {weight}, and must be zero or a positive number"),
            ));
        }
        if hard && self.class_weight != ClassWeight::Equal {
            return Err(Error::new(Code::BadSetting, "a hard margin has no costs, so class weights do not apply")
                .help("leave ⟦class-weight⟧ out, or use a soft margin: leave ⟦solver⟧ out"));
        }
        Ok(())
    }

    /// The meaning of the scores.
    pub(super) fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        Classes::find(data.targets(), self.positive.as_deref()).map(Decoder::Sign)
    }

    /// Whether a model of this task has such a decoder and intercept.
    pub(super) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        matches!(decoder, Decoder::Sign(_)) && intercept.is_some() == (self.intercept != Intercept::None)
    }

    /// Each row is one constraint.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities::LISTED
    }
}

impl ClassWeight {
    /// The weights of the negative and the positive class. `totals` gives the total weights of their rows: a row of
    /// weight 2 is as common as two rows.
    pub(crate) fn shares(&self, classes: &Classes, totals: impl FnOnce() -> (f64, f64)) -> Result<(f64, f64)> {
        match self {
            ClassWeight::Equal => Ok((1.0, 1.0)),
            ClassWeight::Balanced => {
                let (negatives, positives) = totals();
                let share = |own: f64| if own > 0.0 { (negatives + positives) / (2.0 * own) } else { 1.0 };
                Ok((share(negatives), share(positives)))
            }
            ClassWeight::ByLabel(weights) => {
                let is = |class: &str, label: &str| class == label || same_number(class, label);
                let unknown =
                    weights.keys().find(|label| !is(&classes.negative, label) && !is(&classes.positive, label));
                if let Some(unknown) = unknown {
                    return Err(Error::new(
                        Code::UnknownLabel,
                        format!(
                            "a weight for class `{unknown}`, but the classes are `{}` and `{}`",
                            classes.negative, classes.positive
                        ),
                    )
                    .help("name classes as in the data: ⟦class-weight=LABEL=W,LABEL=W⟧"));
                }
                let of = |class: &str| weights.iter().find(|(label, _)| is(class, label)).map_or(1.0, |(_, w)| *w);
                Ok((of(&classes.negative), of(&classes.positive)))
            }
        }
    }
}

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
            margin: self.loss.margin(),
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
            weights: self.weights.as_ref().map_or(&ONES[..rows.len()], |weights| &weights[rows]),
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
    scores: &'a [f64],
    c: f64,
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
    let mut run = |signs: &[i8; LANES], weights: &[f64; LANES], scores: &[f64; LANES]| {
        let (mut slope, mut curvature) = ([0.0; LANES], [0.0f32; LANES]);
        for lane in 0..LANES {
            let (sign, cost) = (f64::from(signs[lane]), c * weights[lane]);
            let point = at(margin - sign * (scores[lane] + threshold));
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
    let given = signs.iter().zip(weights).zip(scores);
    for (((signs, weights), scores), (slope, curvature)) in given.zip(slopes.iter_mut().zip(curvatures)) {
        (*slope, *curvature) = run(signs, weights, scores);
    }
    // The last lanes are filled up with rows that cost nothing.
    let count = last_scores.len();
    let (mut signs, mut weights, mut scores) = ([1; LANES], [0.0; LANES], [0.0; LANES]);
    signs[..count].copy_from_slice(last_signs);
    weights[..count].copy_from_slice(last_weights);
    scores[..count].copy_from_slice(last_scores);
    let (slope, curvature) = run(&signs, &weights, &scores);
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

    fn rounding(&self, _part: usize, memo: &RowMemo) -> [f64; 3] {
        memo.rounding
    }
}
