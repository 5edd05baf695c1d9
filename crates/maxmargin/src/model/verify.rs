//! Recomputes a model's certificate from the model, the data and the stored witness.

use super::{Decoder, Model, Scorer};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use crate::solve::{LinearRisk, Risk, dual_value, imbalance, lower_bound, primal_value, relative_gap};
use crate::task::{Binary, Intercept, Ranking};

/// What `verify` recomputed.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The primal objective.
    pub objective: f64,
    /// The lower bound, where the model carries what proves it.
    pub lower_bound: Option<f64>,
    /// Why no bound could be recomputed though the model claims one.
    pub unproved: Option<&'static str>,
}

/// Recomputed values may differ in the last digits on another kind of processor.
const ROUNDING: f64 = 1e-9;

/// A dual point counts as balanced where rounding alone keeps it from being so.
const BALANCED: f64 = 1e-12;

impl Verification {
    /// The relative gap.
    pub fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }
}

impl Model {
    /// Recomputes objective and bound on the training data and compares them with what the model claims: an error
    /// where the data are others, or where a claim does not hold.
    pub fn verify(&self, data: &Dataset) -> Result<Verification> {
        let certificate = &self.certificate;
        if data.hash()? != certificate.data_hash {
            return Err(Error::new(
                Code::OtherData,
                if data.rows() as u64 == certificate.rows {
                    "these are not the data the model was trained on: as many rows, but other values".to_string()
                } else {
                    format!(
                        "these are not the data the model was trained on: {} rows here, {} there",
                        data.rows(),
                        certificate.rows
                    )
                },
            )
            .help("give `verify` the very file of the training run, read with the same settings"));
        }
        let found = self.recompute(data)?;
        let close = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
        if !close(found.objective, certificate.objective) {
            return Err(mismatch("objective", found.objective, certificate.objective));
        }
        if let (Some(found), Some(claimed)) = (found.lower_bound, certificate.lower_bound)
            && found < claimed - ROUNDING * certificate.objective.abs()
        {
            return Err(mismatch("lower bound", found, claimed));
        }
        Ok(found)
    }

    fn recompute(&self, data: &Dataset) -> Result<Verification> {
        let Scorer::Linear { weights, intercept } = &self.scorer;
        if data.cols() != weights.len() {
            return Err(Error::new(
                Code::TooManyFeatures,
                format!("the data have {} features, and the model {}", data.cols(), weights.len()),
            ));
        }
        let settings = &self.settings;
        let design = self.scaling.apply(data.matrix(), data.groups())?;
        let cancel = Cancel::new();
        let c = self.certificate.c;
        let threshold = intercept.unwrap_or(0.0);
        let smooth = |risk: &mut dyn crate::solve::CurvedRisk, point: Vec<f64>| {
            let mut gradient = vec![0.0; point.len()];
            let objective = risk.evaluate(&point, &mut gradient);
            let bound = lower_bound(risk, &point, objective, &gradient);
            let unproved =
                bound.is_none().then_some("the intercept is not at its minimum for these weights, so no bound follows");
            Verification { objective, lower_bound: bound, unproved }
        };
        match &self.decoder {
            Decoder::Rank => {
                let task = Ranking::new(data, c)?;
                Ok(smooth(&mut LinearRisk::new(&task, &design, false, &cancel), weights.clone()))
            }
            Decoder::Sign(classes) => {
                let has_threshold = settings.intercept != Intercept::None;
                let task = Binary::new(data, classes, &settings.class_weight, settings.loss, c, has_threshold)?;
                match &self.witness {
                    Some(alpha) => {
                        let objective = primal_value(&task, &design, weights, threshold, settings.intercept);
                        let balanced = settings.intercept != Intercept::Free || imbalance(&task, alpha) <= BALANCED;
                        Ok(if balanced {
                            let bound = dual_value(&task, &design, alpha, settings.intercept);
                            Verification { objective, lower_bound: Some(bound), unproved: None }
                        } else {
                            let unproved = Some("the witness is not feasible: its two sides do not balance");
                            Verification { objective, lower_bound: None, unproved }
                        })
                    }
                    None if settings.loss.is_smooth() => {
                        let penalise = settings.intercept == Intercept::Penalised;
                        let mut point = weights.clone();
                        point.extend(intercept);
                        let mut risk = LinearRisk::new(&task, &design, penalise, &cancel);
                        debug_assert!(risk.dim() == point.len());
                        Ok(smooth(&mut risk, point))
                    }
                    None => {
                        let objective = primal_value(&task, &design, weights, threshold, settings.intercept);
                        let unproved = Some("the model was saved without its witness");
                        Ok(Verification { objective, lower_bound: None, unproved })
                    }
                }
            }
        }
    }
}

fn mismatch(what: &str, found: f64, claimed: f64) -> Error {
    Error::new(Code::CertificateMismatch, format!("the {what} is {found}, and the model claims {claimed}"))
        .help("the model file was altered, or was made by a defective program; train it again")
}
