//! Recomputes a model's certificate from the model, the data and the stored witness.

use super::{Model, Scorer};
use crate::data::Dataset;
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use crate::solve::{
    Hard, LinearRisk, Risk, dual_value, hard_primal, imbalance, in_box, lower_bound, primal_value, relative_gap,
    smooth_bound,
};
use crate::task::{Independent, Intercept};
use crate::train::{Problem, Tasks};

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
    /// Recomputes everything the certificate claims from the training data: an error where the data are others, or
    /// where a claim does not hold.
    pub fn verify(&self, data: &Dataset) -> Result<Verification> {
        let certificate = &self.certificate;
        // A hash kept with the data proves nothing about them.
        if data.rows() as u64 != certificate.rows || data.computed_hash()? != certificate.data_hash {
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
            .help(match (certificate.pairs, data.pairs()) {
                (Some(_), None) => {
                    "it was trained on explicit pairs: give `verify` these, and their items with --items"
                }
                _ => "give `verify` the very file of the training run, read with the same settings",
            }));
        }
        let Scorer::Linear { weights, .. } = &self.scorer;
        if data.cols() != weights.len() {
            return Err(Error::new(
                Code::OtherData,
                format!("the data have {} features, and the model {}", data.cols(), weights.len()),
            )
            .help("give `verify` the very file of the training run, read with the same settings"));
        }
        let close = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
        let problem = Problem::new(data, &self.settings)?;
        if problem.decoder() != self.decoder {
            return Err(Error::new(
                Code::CertificateMismatch,
                "the model answers with other classes than the data have",
            )
            .help(ALTERED));
        }
        for (what, found, claimed) in [
            ("constraints", problem.constraints() as f64, certificate.constraints as f64),
            ("C", problem.c, certificate.c),
            ("lambda", problem.lambda, certificate.lambda),
        ] {
            if !close(found, claimed) {
                return Err(mismatch(what, found, claimed));
            }
        }
        let found = self.recompute(data, &problem)?;
        if !close(found.objective, certificate.objective) {
            return Err(mismatch("objective", found.objective, certificate.objective));
        }
        if let Some(claimed) = certificate.lower_bound {
            let slack = ROUNDING * certificate.objective.abs();
            if claimed > certificate.objective + slack {
                return Err(mismatch("lower bound", certificate.objective, claimed));
            }
            match found.lower_bound {
                Some(found) if found < claimed - slack => return Err(mismatch("lower bound", found, claimed)),
                _ => {}
            }
        }
        if certificate.converged && certificate.gap().is_none_or(|gap| gap > self.settings.tolerance + ROUNDING) {
            return Err(Error::new(
                Code::CertificateMismatch,
                "the model claims to have converged, and its gap does not",
            )
            .help(ALTERED));
        }
        Ok(found)
    }

    fn recompute(&self, data: &Dataset, problem: &Problem) -> Result<Verification> {
        let Scorer::Linear { weights, intercept } = &self.scorer;
        let design = self.scaling.apply(data.matrix(), data.groups())?;
        let threshold = intercept.unwrap_or(0.0);
        match &problem.task {
            Tasks::Ranking(task) => {
                let cancel = Cancel::new();
                let mut risk = LinearRisk::new(task, &design, false, &cancel);
                let mut gradient = vec![0.0; weights.len()];
                let objective = risk.evaluate(weights, &mut gradient);
                let bound = lower_bound(&mut risk, weights, objective, &gradient);
                Ok(Verification { objective, lower_bound: bound, unproved: None })
            }
            Tasks::Binary(task, _) if problem.hard => self.recompute_hard(task, &design, weights, threshold),
            Tasks::Pairs(task) if problem.hard => self.recompute_hard(task, &design, weights, threshold),
            Tasks::Binary(task, _) => self.recompute_soft(task, &design, weights, threshold),
            Tasks::Pairs(task) => self.recompute_soft(task, &design, weights, threshold),
        }
    }

    fn recompute_soft<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        weights: &[f64],
        threshold: f64,
    ) -> Result<Verification> {
        let rule = self.settings.intercept;
        let objective = primal_value(task, design, weights, threshold, rule);
        let bound = match self.witness_value(task, design)? {
            None if self.settings.loss.is_smooth() => Some(smooth_bound(task, design, weights, threshold, rule)),
            witnessed => witnessed,
        };
        Ok(Verification { objective, lower_bound: bound, unproved: bound.is_none().then_some(NO_WITNESS) })
    }

    /// Every margin must be reached: then the weights bound the optimum from above, as the witness does from below.
    fn recompute_hard<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        weights: &[f64],
        threshold: f64,
    ) -> Result<Verification> {
        let (objective, shortfall) = hard_primal(task, design, weights, threshold, self.settings.intercept);
        if shortfall.is_nan() || shortfall > ROUNDING {
            return Err(Error::new(
                Code::CertificateMismatch,
                format!("a margin that should be reached is missed by {shortfall:e} of itself"),
            )
            .help(ALTERED));
        }
        let bound = self.witness_value(&Hard(task), design)?;
        Ok(Verification { objective, lower_bound: bound, unproved: bound.is_none().then_some(NO_WITNESS) })
    }

    /// The bound that the witness proves, where there is one.
    fn witness_value<T: Independent>(&self, task: &T, design: &Design) -> Result<Option<f64>> {
        let Some(alpha) = &self.witness else { return Ok(None) };
        let rule = self.settings.intercept;
        if alpha.len() != task.blocks() || !in_box(task, alpha) {
            return Err(infeasible("a dual variable lies outside its box"));
        }
        if rule == Intercept::Free && imbalance(task, alpha) > BALANCED {
            return Err(infeasible("its two sides do not balance"));
        }
        Ok(Some(dual_value(task, design, alpha, rule)))
    }
}

const NO_WITNESS: &str = "the model was saved without its witness";

const ALTERED: &str = "the model file was altered, or was made by a defective program; train it again";

fn infeasible(why: &str) -> Error {
    Error::new(Code::CertificateMismatch, format!("the witness proves nothing: {why}")).help(ALTERED)
}

fn mismatch(what: &str, found: f64, claimed: f64) -> Error {
    Error::new(Code::CertificateMismatch, format!("the {what} is {found:e}, and the model claims {claimed:e}"))
        .help(ALTERED)
}
