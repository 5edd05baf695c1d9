//! [`CodeError`]: how well the columns of an output code tell classes apart, and the bound that follows.

use super::{CodeDecoder, Decoder, Decoding, Model};
use crate::data::{Dataset, OutputCode};
use crate::error::Result;
use crate::settings::TaskSettings;
use crate::task::Multiclass;

/// Errors of a model with an output code on some data.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeError {
    /// The share of rows whose class is predicted wrongly, by weight.
    pub error: f64,
    /// A bound on this share: the mean of Σ_j loss(R(y, j)·s_j), divided by ρ·loss(0). Rows of classes that the model
    /// does not know, or had no rows of, count as one error each. See [`CodeDecoder`].
    pub bound: f64,
    /// ρ, the smallest distance of two classes.
    pub separation: f64,
    /// For each column, the share of the rows that it does not leave out that lie on the wrong side.
    pub columns: Vec<f64>,
}

impl Model {
    /// The code by which the model tells classes apart, if it does. One-vs-rest with the largest score counts as decoded
    /// by the loss of training, which predicts the same.
    pub fn output_code(&self) -> Option<CodeDecoder> {
        let TaskSettings::Classify(task) = &self.settings.task else { return None };
        match &self.decoder {
            Decoder::Code(decoder) => Some(decoder.clone()),
            Decoder::Largest(labels) => {
                // The settings name one-vs-rest, or a code that is the same.
                let by_columns = matches!(task.form(), Some(Multiclass::OneVsRest | Multiclass::Code));
                let code = OutputCode::OneVsRest { classes: labels.len() };
                let decoding = Decoding::of(self.settings.loss);
                by_columns.then(|| CodeDecoder { labels: labels.clone(), code, decoding, absent: Vec::new() })
            }
            _ => None,
        }
    }

    /// The errors of the columns and of the classes on some data, and the bound of the second by the first.
    pub fn code_error(&self, data: &Dataset) -> Result<Option<CodeError>> {
        let Some(decoder) = self.output_code() else { return Ok(None) };
        let scores = self.scores(data)?;
        let codes = decoder.labels.known_codes(data.targets())?;
        let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
        let columns = decoder.code.columns();
        let predictions = self.decoder.predictions(scores.clone(), columns, None, None);
        let (mut wrong, mut distance, mut total) = (0.0, 0.0, 0.0);
        let (mut missed, mut asked) = (vec![0.0; columns], vec![0.0; columns]);
        let separation = decoder.separation();
        let scale = separation * decoder.decoding.loss(0.0);
        for (row, scores) in scores.chunks_exact(columns).enumerate() {
            let weight = weight(row);
            total += weight;
            let known = codes[row].map(|class| class as usize).filter(|&class| !decoder.is_absent(class));
            let Some(class) = known else {
                (wrong, distance) = (wrong + weight, distance + weight * scale);
                continue;
            };
            wrong += if predictions.class(row) == Some(class) { 0.0 } else { weight };
            distance += weight * decoder.distance(class, scores);
            for (column, score) in scores.iter().enumerate() {
                let side = decoder.code.entry(class, column);
                if side != 0 {
                    asked[column] += weight;
                    missed[column] += if (*score >= 0.0) == (side > 0) { 0.0 } else { weight };
                }
            }
        }
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Ok(Some(CodeError {
            error: share(wrong, total),
            bound: share(distance / scale, total),
            separation,
            columns: missed.into_iter().zip(asked).map(|(missed, asked)| share(missed, asked)).collect(),
        }))
    }
}
