//! Recomputes a model's certificate from the model, the data and the stored witness.

use super::ratings::{Rated, rate};
use super::{BuiltIn, Posed, Poses, copies, decoder_by_scores};
use crate::certificate::{Scorer, Witness, relative_gap};
use crate::data::{Dataset, Scaling};
use crate::error::{Code, Error, Result};
use crate::kernel::KernelKind;
use crate::model::Model;
use crate::run::{Cancel, Silent};
use crate::settings::{Method, Regularisation};
use crate::solve::{ALTERED, KERNEL_ROUNDING, ROUNDING, Solution, Stated, Values, infeasible};
use crate::wording::{count, counted};

/// The values that `verify` recomputed.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The primal objective.
    pub objective: f64,
    /// The lower bound, if the model contains its proof.
    pub lower_bound: Option<f64>,
    /// Why no bound could be recomputed although the model claims one.
    pub unproved: Option<&'static str>,
}

impl Verification {
    /// The relative gap.
    pub fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }
}

impl Model {
    /// Recomputes everything the certificate claims from the training data. An error if the data differ, or if a claim
    /// does not hold.
    pub fn verify(&self, data: &Dataset) -> Result<Verification> {
        self.verify_until(data, &Cancel::new())
    }

    /// The same, until a cancel.
    pub fn verify_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Verification> {
        self.verify_own(&BuiltIn, data, cancel)
    }

    /// The same for a model of your own task.
    pub fn verify_own(&self, poses: &dyn Poses, data: &Dataset, cancel: &Cancel) -> Result<Verification> {
        let certificate = &self.certificate;
        if self.online.is_some() {
            return Err(Error::new(
                Code::Unsupported,
                "the model was learned from a stream in one pass, and claims no bound that could be verified",
            )
            .help("measure it with `maxmargin evaluate`, or learn it with `maxmargin train compare`"));
        }
        self.check_whole()?;
        // A hash stored with the data proves nothing about them.
        if data.rows() as u64 != certificate.rows || data.computed_hash()? != certificate.data_hash {
            return Err(self.other_data(data));
        }
        if data.cols() != self.features() {
            return Err(Error::new(
                Code::OtherData,
                format!(
                    "the data have {}, and the model {}",
                    counted(data.cols() as u64, "feature", "features"),
                    self.features()
                ),
            )
            .help(SAME_FILE));
        }
        let rounding = match self.scorer {
            Scorer::Linear { .. } if self.settings.kernel.kind != KernelKind::Precomputed => ROUNDING,
            _ => KERNEL_ROUNDING,
        };
        let close = |a: f64, b: f64| (a - b).abs() <= rounding * a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
        cancel.check()?;
        if self.settings.is_rating() {
            return self.verify_ratings(data, close, cancel);
        }
        let copied = copies(data, &self.settings)?;
        let (given, mut data) = (data, copied.as_ref().unwrap_or(data));
        let mut posed = Posed::new(poses, data, &self.settings)?;
        if let (Some(_), Some(Witness::Dual(alpha))) = (&copied, &self.witness)
            && alpha.len() != posed.problem.shape().blocks
        {
            // Before copies were made, a pair stood for them.
            data = given;
            posed = Posed::new(poses, data, &self.settings)?;
        }
        if self.settings.regularisation.is_nu() {
            // Training found this C. The dual point proves that it belongs to ν.
            posed.set_regularisation(Regularisation::C(certificate.c));
        }
        cancel.check()?;
        if posed.task().decoder(&self.stated_free()) != self.decoder {
            return Err(Error::new(Code::CertificateMismatch, "the classes of the model are not those of the data")
                .help(ALTERED));
        }
        for (what, found, claimed) in [
            ("constraints", posed.task().constraints() as f64, certificate.constraints as f64),
            ("C", posed.c, certificate.c),
            ("lambda", posed.lambda, certificate.lambda),
        ] {
            if !close(found, claimed) {
                return Err(mismatch(what, found, claimed));
            }
        }
        let found = self.recompute(data, &posed, cancel)?;
        cancel.check_wanted()?;
        if let (Some(claimed), Some(pairs), Some(Method::Rank | Method::Rank2)) =
            (self.decoder.threshold(), given.pairs(), self.settings.method())
        {
            let best = decoder_by_scores(&self.settings, self.decoder.clone(), &self.scores(given)?, pairs);
            let best = best.threshold().unwrap_or(0.0);
            if !close(best, claimed) {
                return Err(mismatch("threshold", best, claimed));
            }
        }
        if !close(found.objective, certificate.objective) {
            return Err(mismatch("objective", found.objective, certificate.objective));
        }
        if let Some(claimed) = certificate.lower_bound {
            let slack = rounding * certificate.objective.abs();
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
                "the model claims to have converged, but its gap is too large",
            )
            .help(ALTERED));
        }
        Ok(found)
    }

    /// Rates the items again: the same pairs give the same ratings.
    fn verify_ratings(
        &self,
        data: &Dataset,
        close: impl Fn(f64, f64) -> bool,
        cancel: &Cancel,
    ) -> Result<Verification> {
        let Rated { solution, decoder, c, lambda } = rate(data, &self.settings, &mut Silent, cancel)?;
        let Solution { weights, objective, lower_bound, .. } = solution;
        cancel.check()?;
        let certificate = &self.certificate;
        let thresholds = (decoder.threshold().unwrap_or(0.0), self.decoder.threshold().unwrap_or(f64::NAN));
        let bounds = (lower_bound.unwrap_or(0.0), certificate.lower_bound.unwrap_or(0.0));
        let claims = [
            ("objective", objective, certificate.objective),
            ("lower bound", bounds.0, bounds.1),
            ("threshold", thresholds.0, thresholds.1),
            ("C", c, certificate.c),
            ("lambda", lambda, certificate.lambda),
        ];
        let ratings = weights.iter().zip(self.scorer.numbers()).map(|(&found, &claimed)| ("rating", found, claimed));
        match claims.into_iter().chain(ratings).find(|(_, found, claimed)| !close(*found, *claimed)) {
            Some((what, found, claimed)) => Err(mismatch(what, found, claimed)),
            None => Ok(Verification { objective, lower_bound, unproved: None }),
        }
    }

    /// The error for data that are not the training data: it names what differs.
    pub(super) fn other_data(&self, data: &Dataset) -> Error {
        let certificate = &self.certificate;
        let (rows, pairs) = (data.rows() as u64, data.pairs().map(|pairs| pairs.len() as u64));
        let (one, many) = if certificate.pairs.is_some() { ("item", "items") } else { ("row", "rows") };
        let (differs, help) = match (certificate.pairs, pairs) {
            (Some(_), None) => (
                "these are rows, and the model was trained on explicit pairs".to_string(),
                "give `verify` the pairs, and their items with ⟦items⟧",
            ),
            (None, Some(_)) => ("these are explicit pairs, and the model was trained on rows".to_string(), SAME_FILE),
            _ if rows != certificate.rows => {
                (format!("{} here, {} there", counted(rows, one, many), count(certificate.rows)), SAME_FILE)
            }
            (Some(there), Some(here)) if here != there => {
                (format!("{} here, {} there", counted(here, "pair", "pairs"), count(there)), SAME_FILE)
            }
            _ if data.cols() != self.features() && !self.settings.is_rating() => {
                let (here, there) = (data.cols() as u64, self.features() as u64);
                (format!("{} here, {} there", counted(here, "feature", "features"), count(there)), SAME_FILE)
            }
            (Some(_), _) => ("the same number of items and pairs, but other values".to_string(), SAME_FILE),
            (None, _) => ("the same number of rows, but other values".to_string(), SAME_FILE),
        };
        Error::new(Code::OtherData, format!("these are not the data the model was trained on: {differs}")).help(help)
    }

    /// Objective and bound from the model's own numbers.
    fn recompute(&self, data: &Dataset, posed: &Posed, cancel: &Cancel) -> Result<Verification> {
        let mut design = self.scaling.apply(data.matrix(), data.groups())?;
        cancel.check()?;
        if let Scorer::Mapped(mapped) = &self.scorer {
            // Maps the rows again; from here on these are weights like any others.
            design = Scaling::default().apply(&mapped.map.map(&design, cancel)?, None)?;
        }
        // For a model without a claimed bound, only the objective is checked.
        let claims = self.certificate.lower_bound.is_some();
        let free = self.free_scalars();
        let stated = Stated {
            scorer: &self.scorer,
            free: &free,
            witness: self.witness.as_ref(),
            claims,
            by_weights: claims && self.proved_by_weights(),
        };
        let Values { objective, lower_bound } = posed.problem.certify(&stated, &design, &self.settings, cancel)?;
        cancel.check()?;
        if lower_bound.is_none() && (stated.by_weights || claims && stated.witness.is_some()) {
            return Err(infeasible("no bound follows from it"));
        }
        let unproved = (claims && lower_bound.is_none()).then_some("the model was saved without its witness");
        // At the optimum, rounding may put the bound above the objective. The smaller of the two is a bound as well.
        let lower_bound = lower_bound.map(|bound| if bound > objective { objective } else { bound });
        Ok(Verification { objective, lower_bound, unproved })
    }
}

const SAME_FILE: &str = "give `verify` the file that the model was trained on, read with the same settings";

fn mismatch(what: &str, found: f64, claimed: f64) -> Error {
    Error::new(Code::CertificateMismatch, format!("the {what} is {found:e}, and the model claims {claimed:e}"))
        .help(ALTERED)
}
