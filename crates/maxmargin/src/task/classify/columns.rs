//! [`Columns`]: several classes by the columns of an output code, each a problem of two classes.
//!
//! ```text
//! min  Σ_j ( ½‖w_j‖² + Σ_{i: R(y_i, j) ≠ 0} C_i · loss(m − R(y_i, j) (w_j·x_i + b_j)) )
//! ```
//! with R the code. The columns have nothing in common but the rows, so each is a [`Binary`] task of its own over the
//! rows that it does not leave out, and the objective is the sum of theirs. C_i is C times the row's weight times the
//! weight of its class, the same in every column.
//!
//! **Label sets** have a column for each label: the rows with the label against all others.
//!
//! **Columns with one side.** In a fold a class may have no rows, or its rows may weigh nothing. A column may then have
//! one side only, and is no part of the problem. A matrix loses such columns, and one-vs-one keeps them with scores of
//! zero; the decoder knows the absent classes, which it does not predict. One-vs-rest by the largest score has a score
//! for each class: with a free constant w_j = 0 and b_j = −[`SURE`]. Otherwise the column of an absent class is an
//! ordinary problem, in which weights are penalised.

use super::super::LearningTask;
use super::{Binary, ClassRows, ClassWeight, Intercept, rows_of_classes};
use crate::certificate::{CodeDecoder, Decoder};
use crate::data::{Dataset, LabelSets, Labels, OutputCode, Subset, counts};
use crate::error::Result;
use crate::loss::Loss;
use std::sync::Arc;

/// The constant score of a column that has rows on one side only, where classes have the scores of columns.
pub(crate) const SURE: f64 = 100.0;

/// What says on which side of a column a row lies.
#[derive(Clone, Debug)]
enum Sides {
    /// The class of the row, by the code.
    Classes {
        /// The class of each row.
        codes: Arc<[u32]>,
        /// The rows of each class, if a column leaves classes out.
        rows: Arc<[Vec<u32>]>,
        /// Number of rows of each class with a positive weight.
        counted: Arc<[u64]>,
    },
    /// Whether the row has the label of the column.
    Sets {
        /// The labels of each row.
        sets: LabelSets,
        /// Number of rows with each label and a positive weight.
        counted: Arc<[u64]>,
        /// Number of rows with a positive weight.
        all: u64,
    },
}

/// The task: the class, or the labels, and the weight of each row, and a code.
#[derive(Clone, Debug)]
pub struct Columns {
    by: Sides,
    /// The row's weight times its class weight; 0 if the row is left out. `None` if all weights are 1.
    weights: Option<Arc<[f64]>>,
    /// The margin of each row, if not 1.
    margins: Option<Arc<[f64]>>,
    /// For label sets, each label against its absence.
    code: Arc<OutputCode>,
    decoder: Decoder,
    loss: Loss,
    c: f64,
    rule: Intercept,
}

/// What a column of the problem is.
pub(crate) enum Column {
    /// A problem of two classes, over all rows, or over some of them.
    Learned(Binary, Option<Vec<usize>>),
    /// A constant score. Nothing is to be learned.
    Constant(f64),
}

impl Columns {
    /// The task with C = 1 over all rows, or over some of them: the others cost nothing. `decoder` says what the scores
    /// of the columns mean.
    pub(crate) fn on(
        data: &Dataset,
        (labels, code, decoder): (&Labels, OutputCode, Decoder),
        class_weight: &ClassWeight,
        loss: Loss,
        rule: Intercept,
        subset: Option<&Subset>,
    ) -> Result<Columns> {
        let ClassRows { codes, weights, counted } = rows_of_classes(data, labels, class_weight, subset)?;
        let (code, decoder) = without_absent(labels, &counted, code, decoder)?;
        let sparse = (0..code.columns()).any(|column| code.leaves_out(column));
        let mut rows = vec![Vec::new(); if sparse { labels.len() } else { 0 }];
        if sparse {
            for (row, &class) in codes.iter().enumerate() {
                rows[class as usize].push(row as u32);
            }
        }
        Ok(Columns {
            by: Sides::Classes { codes, rows: rows.into(), counted: counted.into() },
            weights,
            margins: None,
            code: Arc::new(code),
            decoder,
            loss,
            c: 1.0,
            rule,
        })
    }

    /// Each label of sets on its own, with C = 1 over all rows, or over some of them.
    pub(crate) fn of_sets(
        data: &Dataset,
        labels: &Labels,
        loss: Loss,
        rule: Intercept,
        subset: Option<&Subset>,
    ) -> Result<Columns> {
        let sets = LabelSets::of(labels, data.targets())?;
        let weight = |row: usize| match counts(subset, row) {
            true => data.weights().map_or(1.0, |weights| weights[row]),
            false => 0.0,
        };
        let (mut counted, mut all) = (vec![0; labels.len()], 0);
        for (_, own) in sets.iter().enumerate().filter(|(row, _)| weight(*row) > 0.0) {
            own.iter().for_each(|&label| counted[label as usize] += 1);
            all += 1;
        }
        let plain = data.weights().is_none() && subset.is_none();
        let weights = (!plain).then(|| (0..sets.len()).map(weight).collect());
        Ok(Columns {
            by: Sides::Sets { sets, counted: counted.into(), all },
            weights,
            margins: None,
            code: Arc::new(OutputCode::OneVsRest { classes: labels.len() }),
            decoder: Decoder::Sets { labels: labels.clone(), calibrated: false },
            loss,
            c: 1.0,
            rule,
        })
    }

    /// The same with a margin for each row in place of 1, for a loss that has a margin.
    pub(crate) fn with_margins(self, margins: Option<Arc<[f64]>>) -> Columns {
        Columns { margins, ..self }
    }

    /// All rows, those of one class side by side.
    pub(crate) fn by_class(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.rows()).collect();
        match &self.by {
            Sides::Classes { codes, .. } => rows.sort_by_key(|&row| codes[row]),
            Sides::Sets { sets, .. } => rows.sort_by_key(|&row| sets.row(row).first()),
        }
        rows
    }

    /// The code.
    pub fn code(&self) -> &OutputCode {
        &self.code
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match &self.by {
            Sides::Classes { codes, .. } => codes.len(),
            Sides::Sets { sets, .. } => sets.len(),
        }
    }

    /// Whether scores have constant terms.
    pub(crate) fn has_constants(&self) -> bool {
        self.rule != Intercept::None
    }

    /// How constant terms are treated.
    pub(crate) fn rule(&self) -> Intercept {
        self.rule
    }

    /// Number of constraints on the negative and on the positive side of a column.
    fn sides(&self, column: usize) -> (u64, u64) {
        let counted = match &self.by {
            Sides::Classes { counted, .. } => counted,
            Sides::Sets { counted, all, .. } => return (all - counted[column], counted[column]),
        };
        let (mut negative, mut positive) = (0, 0);
        self.code.each_in_column(column, |class, side| {
            *(if side > 0 { &mut positive } else { &mut negative }) += counted[class];
        });
        (negative, positive)
    }

    /// The score of a column that has nothing to learn.
    pub(crate) fn constant(&self, column: usize) -> Option<f64> {
        match self.sides(column) {
            (0, 0) => Some(0.0),
            (0, _) | (_, 0) if matches!(self.decoder, Decoder::Code(_)) => Some(0.0),
            (0, _) if self.rule == Intercept::Free => Some(SURE),
            (_, 0) if self.rule == Intercept::Free => Some(-SURE),
            _ => None,
        }
    }

    /// The loss of the rows of each class in a column whose weights are zero; of label sets, the loss of all rows.
    pub(crate) fn losses_at_zero(&self) -> Vec<f64> {
        let mut losses = vec![0.0; self.code.classes()];
        for row in 0..self.rows() {
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[row]);
            let margin = self.margins.as_ref().map_or(self.loss.margin(), |margins| margins[row]);
            let class = match &self.by {
                Sides::Classes { codes, .. } => codes[row] as usize,
                Sides::Sets { .. } => 0,
            };
            losses[class] += self.c * weight * self.loss.value(margin);
        }
        losses
    }

    /// The objective of a column whose weights are zero, given these losses; 0 if it has nothing to learn.
    pub(crate) fn value_at_zero(&self, column: usize, losses: &[f64]) -> f64 {
        let mut value = 0.0;
        if let (Sides::Sets { .. }, None) = (&self.by, self.constant(column)) {
            return losses.first().copied().unwrap_or(0.0);
        }
        if self.constant(column).is_none() {
            self.code.each_in_column(column, |class, _| value += losses[class]);
        }
        value
    }

    /// A column, as a problem of two classes with the cost of this one.
    pub(crate) fn column(&self, column: usize) -> Column {
        if let Some(score) = self.constant(column) {
            return Column::Constant(score);
        }
        let (codes, rows_of_classes) = match &self.by {
            Sides::Classes { codes, rows, .. } => (codes, rows),
            Sides::Sets { sets, .. } => {
                let signs = (0..sets.len()).map(|row| if sets.has(row, column) { 1 } else { -1 }).collect();
                let task = Binary::of_column(signs, self.weights.clone(), self.loss, self.has_constants());
                return Column::Learned(task.with_cost(self.c), None);
            }
        };
        let mut side = vec![0; self.code.classes()];
        self.code.each_in_column(column, |class, sign| side[class] = sign);
        let rows = self.code.leaves_out(column).then(|| {
            let members = (0..side.len()).filter(|&class| side[class] != 0);
            let mut rows: Vec<usize> =
                members.flat_map(|class| rows_of_classes[class].iter().map(|&row| row as usize)).collect();
            rows.sort_unstable();
            rows
        });
        let sign = |&class: &u32| side[class as usize];
        let (signs, weights): (Vec<i8>, Option<Arc<[f64]>>) = match &rows {
            None => (codes.iter().map(sign).collect(), self.weights.clone()),
            Some(rows) => {
                let weights = self.weights.as_ref().map(|weights| rows.iter().map(|&row| weights[row]).collect());
                // As for a task over these rows alone, weights of 1 are none.
                let weights = weights.filter(|weights: &Arc<[f64]>| weights.iter().any(|&weight| weight != 1.0));
                (rows.iter().map(|&row| sign(&codes[row])).collect(), weights)
            }
        };
        let margins = match (&self.margins, &rows) {
            (Some(margins), Some(rows)) => Some(rows.iter().map(|&row| margins[row]).collect()),
            (margins, _) => margins.clone(),
        };
        let task = Binary::of_column(signs, weights, self.loss, self.has_constants());
        let task = task.with_margins(margins).with_cost(self.c);
        Column::Learned(task, rows)
    }
}

/// The code without columns that have one side, if it is a matrix, and the decoder that knows the absent classes.
fn without_absent(
    labels: &Labels,
    counted: &[u64],
    code: OutputCode,
    decoder: Decoder,
) -> Result<(OutputCode, Decoder)> {
    let has_rows: Vec<bool> = counted.iter().map(|&count| count > 0).collect();
    let Decoder::Code(decoder) = decoder else { return Ok((code, decoder)) };
    if !has_rows.contains(&false) || !has_rows.contains(&true) {
        return Ok((code, Decoder::Code(decoder)));
    }
    let absent = (0..).zip(&has_rows).filter(|(_, has)| !**has).map(|(class, _)| class).collect();
    let code = match code {
        OutputCode::Matrix(matrix) => {
            OutputCode::Matrix(matrix.two_sided(&has_rows, |class| labels.name(class).to_string())?)
        }
        regular => regular,
    };
    Ok((code.clone(), Decoder::Code(CodeDecoder { code, absent, ..decoder })))
}

impl LearningTask for Columns {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    /// Each row counts once, whatever the number of columns, so that the mean form is that of one column.
    fn total_cost(&self) -> f64 {
        let total = self.weights.as_ref().map_or(self.rows() as f64, |weights| weights.iter().sum());
        self.c * total
    }

    fn constraints(&self) -> u64 {
        let of = |column: usize| match self.constant(column) {
            Some(_) => 0,
            None => {
                let (negative, positive) = self.sides(column);
                negative + positive
            }
        };
        (0..self.code.columns()).map(of).sum()
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        self.decoder.clone()
    }

    fn adds_free(&self) -> bool {
        true
    }
}
