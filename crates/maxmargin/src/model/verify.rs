//! Recomputes a model's certificate from the model, the data and the stored witness.

use super::{Expansion, Mapped, Model, Scorer};
use crate::data::{Dataset, Design, Scaling};
use crate::error::{Code, Error, Result};
use crate::kernel::{Kernel, KernelKind, Points, expansion_scores};
use crate::loss::Loss;
use crate::run::{Cancel, Silent};
use crate::settings::{Method, Regularisation, Solver};
use crate::solve::{
    Cut, Hard, KERNEL_ROUNDING, LinearRisk, Risk, Witness, balanced_values, bound_of_cuts, dual_of_square, dual_value,
    hard_primal, imbalance, in_box, lower_bound, primal_of_scores, proven_by_multipliers, relative_gap,
    rounded_certificate, rounded_values, smooth_bound, stated_violation, value_and_slopes,
};
use crate::task::{Independent, Intercept, Objective, Ranking};
use crate::train::{Problem, Ratings, Tasks, by_row, check_values, decoder_by_scores, rate};
use crate::wording::{count, counted};

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
        self.verify_until(data, &Cancel::new())
    }

    /// The same, until somebody asks for an end.
    pub fn verify_until(&self, data: &Dataset, cancel: &Cancel) -> Result<Verification> {
        let certificate = &self.certificate;
        if self.online.is_some() {
            return Err(Error::new(
                Code::Unsupported,
                "the model was learned from a stream in one pass, and claims no bound that could be verified",
            )
            .help("measure it with `maxmargin evaluate`, or learn it with `maxmargin train compare`"));
        }
        self.check_whole()?;
        // A hash kept with the data proves nothing about them.
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
        if self.settings.method.is_rating() {
            return self.verify_ratings(data, close, cancel);
        }
        let mut problem = Problem::new(data, &self.settings)?;
        if self.settings.regularisation.is_nu() {
            // Training found it: that it is the one which ν asks for is proved by the dual point.
            problem.set_regularisation(Regularisation::C(certificate.c));
        }
        cancel.check()?;
        if problem.decoder(self.decoder.threshold().unwrap_or(0.0)) != self.decoder {
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
        let found = self.recompute(data, &problem, cancel)?;
        cancel.check_wanted()?;
        if let (Some(claimed), Some(pairs), Method::Rank | Method::Rank2) =
            (self.decoder.threshold(), data.pairs(), self.settings.method)
        {
            let best = decoder_by_scores(&self.settings, self.decoder.clone(), &self.scores(data)?, pairs);
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
                "the model claims to have converged, and its gap does not",
            )
            .help(ALTERED));
        }
        Ok(found)
    }

    /// Rates the items anew: the same pairs give the same ratings.
    fn verify_ratings(
        &self,
        data: &Dataset,
        close: impl Fn(f64, f64) -> bool,
        cancel: &Cancel,
    ) -> Result<Verification> {
        let Ratings { weights, decoder, objective, lower_bound, c, lambda, .. } =
            rate(data, &self.settings, &mut Silent, cancel)?;
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

    /// The error for data that are not those of the training run: what differs.
    fn other_data(&self, data: &Dataset) -> Error {
        let certificate = &self.certificate;
        let (rows, pairs) = (data.rows() as u64, data.pairs().map(|pairs| pairs.len() as u64));
        let (one, many) = if certificate.pairs.is_some() { ("item", "items") } else { ("row", "rows") };
        let (differs, help) = match (certificate.pairs, pairs) {
            (Some(_), None) => (
                "these are rows, and the model was trained on explicit pairs".to_string(),
                "give `verify` the pairs, and their items with --items",
            ),
            (None, Some(_)) => ("these are explicit pairs, and the model was trained on rows".to_string(), SAME_FILE),
            _ if rows != certificate.rows => {
                (format!("{} here, {} there", counted(rows, one, many), count(certificate.rows)), SAME_FILE)
            }
            (Some(there), Some(here)) if here != there => {
                (format!("{} here, {} there", counted(here, "pair", "pairs"), count(there)), SAME_FILE)
            }
            _ if data.cols() != self.features() && !self.settings.method.is_rating() => {
                let (here, there) = (data.cols() as u64, self.features() as u64);
                (format!("{} here, {} there", counted(here, "feature", "features"), count(there)), SAME_FILE)
            }
            (Some(_), _) => ("as many items and pairs, but other values".to_string(), SAME_FILE),
            (None, _) => ("as many rows, but other values".to_string(), SAME_FILE),
        };
        Error::new(Code::OtherData, format!("these are not the data the model was trained on: {differs}")).help(help)
    }

    /// Objective and bound from the model's own numbers.
    pub(crate) fn recompute(&self, data: &Dataset, problem: &Problem, cancel: &Cancel) -> Result<Verification> {
        let mut design = self.scaling.apply(data.matrix(), data.groups())?;
        let threshold = self.free_scalar();
        cancel.check()?;
        let weights = match &self.scorer {
            Scorer::Linear { weights, .. } if self.settings.kernel.kind == KernelKind::Precomputed => {
                let expanded = Expanded::new(Kernel::Precomputed, None, weights, &design, cancel)?;
                return self.recompute_expanded(&expanded, problem, cancel);
            }
            Scorer::Linear { weights, .. } => weights,
            Scorer::Expansion(expansion) => {
                let Expansion { kernel, coefficients, .. } = expansion;
                let expanded = Expanded::new(kernel.clone(), Some(expansion), coefficients, &design, cancel)?;
                return self.recompute_expanded(&expanded, problem, cancel);
            }
            Scorer::Mapped(Mapped { map, weights, .. }) => {
                // The map anew, and from there on weights like any others.
                design = Scaling::default().apply(&map.map(&design, cancel)?, None)?;
                weights
            }
        };
        // A model that claims no bound is checked for its objective alone.
        let claims = self.certificate.lower_bound.is_some();
        let by_weights = claims && self.proved_by_weights();
        let (objective, bound) = match &problem.task {
            Tasks::Ranking(task) => {
                let mut risk = LinearRisk::new(task, &design, false, cancel);
                let mut gradient = vec![0.0; weights.len()];
                let objective = risk.evaluate(weights, &mut gradient)?;
                // A value cut short is none.
                cancel.check()?;
                let bound = match &self.witness {
                    Some(Witness::Cuts(cuts)) => Some(proven_by_cuts(&mut risk, cuts, cancel)?),
                    Some(Witness::Rounded(width)) if self.settings.loss == Loss::Hinge => {
                        Some(rounded_certificate(task, &design, weights, *width, cancel)?.1)
                    }
                    Some(Witness::Dual(_) | Witness::Rounded(_)) => return Err(infeasible("it is not of this task")),
                    _ if by_weights => lower_bound(&mut risk, weights, objective, &gradient)?,
                    _ => None,
                };
                (objective, bound)
            }
            Tasks::Graded(task) => {
                let penalised = self.settings.intercept == Intercept::Penalised;
                let values = |width| balanced_values(task, &design, weights, threshold, width, penalised, cancel);
                match &self.witness {
                    Some(Witness::Cuts(cuts)) => {
                        let mut risk = LinearRisk::new(task, &design, penalised, cancel);
                        let mut gradient = vec![0.0; weights.len() + 1];
                        let objective = risk.evaluate(&[&weights[..], &[threshold]].concat(), &mut gradient)?;
                        (objective, Some(proven_by_cuts(&mut risk, cuts, cancel)?))
                    }
                    Some(Witness::Rounded(width)) if self.settings.loss == Loss::Hinge => {
                        let (objective, bound) = values(Some(*width))?;
                        (objective, Some(bound))
                    }
                    Some(Witness::Dual(_) | Witness::Rounded(_)) => return Err(infeasible("it is not of this task")),
                    Some(Witness::Weights) | None => {
                        let (objective, bound) = values(None)?;
                        (objective, Some(bound).filter(|_| by_weights))
                    }
                }
            }
            Tasks::Binary(task, _) if problem.hard => self.recompute_hard(task, &design, weights, threshold, cancel)?,
            Tasks::Pairs(task) if problem.hard => self.recompute_hard(task, &design, weights, threshold, cancel)?,
            Tasks::Binary(task, _) => self.recompute_soft(task, &design, weights, threshold, cancel)?,
            Tasks::Pairs(task) => self.recompute_soft(task, &design, weights, threshold, cancel)?,
            Tasks::OneClass(..) => return Err(infeasible("it is not of this task")),
        };
        cancel.check()?;
        let unproved = (claims && bound.is_none()).then_some("the model was saved without its witness");
        Ok(Verification { objective, lower_bound: bound, unproved })
    }

    /// The objective and the bound of a model learned through a kernel.
    fn recompute_expanded(&self, expanded: &Expanded<'_>, problem: &Problem, cancel: &Cancel) -> Result<Verification> {
        match &problem.task {
            Tasks::Binary(task, _) => self.recompute_kernel(task, expanded, cancel),
            Tasks::OneClass(task, _) => self.recompute_kernel(task, expanded, cancel),
            Tasks::Pairs(task) => self.recompute_kernel(task, expanded, cancel),
            Tasks::Ranking(task) => self.recompute_ranked(task, expanded, cancel),
            Tasks::Graded(_) => Err(infeasible("it is not of this task")),
        }
    }

    /// Where the expansion alone proves the bound: f is 1-strongly convex in the norm of the kernel, and with g the slopes
    /// by the scores its gradient is Σ β φ + Σ g φ.
    fn recompute_ranked(&self, task: &Ranking, expanded: &Expanded<'_>, cancel: &Cancel) -> Result<Verification> {
        if self.witness.is_some() {
            return Err(infeasible("it is not of this task"));
        }
        let (scores, square) = expanded.values(cancel)?;
        let (loss, slopes) = value_and_slopes(task, &scores, cancel)?;
        let (ids, slopes): (Vec<usize>, Vec<f64>) =
            slopes.into_iter().enumerate().filter(|(_, slope)| *slope != 0.0).unzip();
        let images = expanded.images(&ids, &slopes, cancel)?;
        let (mut cross, mut bent) = (0.0, 0.0);
        for (&row, slope) in ids.iter().zip(&slopes) {
            cross += slope * scores[row];
            bent += slope * images[row];
        }
        let objective = 0.5 * square + loss;
        let gap = 0.5 * (square + 2.0 * cross + bent);
        if gap.is_nan() || gap < -KERNEL_ROUNDING * objective.abs() {
            return Err(infeasible("the kernel is not positive definite"));
        }
        let bound = (objective - gap.max(0.0)).max(0.0);
        let claims = self.certificate.lower_bound.is_some();
        Ok(Verification { objective, lower_bound: claims.then_some(bound), unproved: None })
    }

    /// Where a dual point proves the bound.
    fn recompute_kernel<T: Independent>(
        &self,
        task: &T,
        expanded: &Expanded<'_>,
        cancel: &Cancel,
    ) -> Result<Verification> {
        let (rule, threshold) = (self.settings.intercept, self.free_scalar());
        let (scores, square) = expanded.values(cancel)?;
        let objective = 0.5 * square + primal_of_scores(task, &[], &scores, threshold, rule);
        let lower_bound = match &self.witness {
            None => None,
            Some(Witness::Dual(alpha)) => {
                self.check_dual(task, alpha)?;
                let (ids, coefficients): (Vec<usize>, Vec<f64>) = by_row(task, alpha).into_iter().unzip();
                let images = expanded.images(&ids, &coefficients, cancel)?;
                let square: f64 = ids.iter().zip(&coefficients).map(|(&row, c)| c * images[row]).sum();
                Some(dual_of_square(task, |block| alpha[block], square, rule))
            }
            Some(_) => return Err(infeasible("it is not of this task")),
        };
        let claims = self.certificate.lower_bound.is_some();
        let unproved = (claims && lower_bound.is_none()).then_some("the model was saved without its witness");
        Ok(Verification { objective, lower_bound, unproved })
    }

    fn recompute_soft<T: Independent + Objective>(
        &self,
        task: &T,
        design: &Design,
        weights: &[f64],
        threshold: f64,
        cancel: &Cancel,
    ) -> Result<(f64, Option<f64>)> {
        let rule = self.settings.intercept;
        let scores = design.scores_until(weights, cancel)?;
        let objective = primal_of_scores(task, weights, &scores, threshold, rule);
        let bound = match &self.witness {
            Some(Witness::Dual(alpha)) => Some(self.dual_bound(task, design, alpha)?),
            Some(Witness::Cuts(cuts)) => {
                let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
                Some(proven_by_cuts(&mut risk, cuts, cancel)?)
            }
            Some(Witness::Rounded(width)) if self.settings.loss == Loss::Hinge => {
                Some(rounded_values(task, design, weights, &scores, threshold, *width, rule, cancel)?.1)
            }
            Some(Witness::Rounded(_)) => return Err(infeasible("it is not of this task")),
            _ if self.proved_by_weights() => Some(smooth_bound(task, design, &scores, threshold, rule, cancel)?),
            _ => None,
        };
        Ok((objective, bound))
    }

    /// Every margin must be reached: then the weights bound the optimum from above, as the witness does from below.
    fn recompute_hard<T: Independent>(
        &self,
        task: &T,
        design: &Design,
        weights: &[f64],
        threshold: f64,
        cancel: &Cancel,
    ) -> Result<(f64, Option<f64>)> {
        if self.settings.solver == Solver::LinearProgram {
            let objective = stated_violation(task, design, weights);
            let bound = match &self.witness {
                Some(Witness::Dual(multipliers)) => {
                    let proven = proven_by_multipliers(task, design, weights, multipliers);
                    Some(proven.ok_or_else(|| infeasible("its multipliers do not add up to one"))?)
                }
                Some(_) => return Err(infeasible("it is not of this task")),
                None => None,
            };
            return Ok((objective, bound));
        }
        let (objective, shortfall) = hard_primal(task, design, weights, threshold, self.settings.intercept);
        if shortfall.is_nan() || shortfall > ROUNDING {
            return Err(Error::new(
                Code::CertificateMismatch,
                format!("a margin that should be reached is missed by {shortfall:e} of itself"),
            )
            .help(ALTERED));
        }
        cancel.check()?;
        let bound = match &self.witness {
            Some(Witness::Dual(alpha)) => Some(self.dual_bound(&Hard(task), design, alpha)?),
            Some(_) => return Err(infeasible("it is not of this task")),
            None => None,
        };
        Ok((objective, bound))
    }

    /// The bound that a dual point proves, where it is feasible.
    fn dual_bound<T: Independent>(&self, task: &T, design: &Design, alpha: &[f64]) -> Result<f64> {
        self.check_dual(task, alpha)?;
        Ok(dual_value(task, design, |block| alpha[block], self.settings.intercept))
    }

    /// Refuses a dual point that is not feasible.
    fn check_dual<T: Independent>(&self, task: &T, alpha: &[f64]) -> Result<()> {
        if alpha.len() != task.blocks() || !in_box(task, alpha) {
            return Err(infeasible("a dual variable lies outside its box"));
        }
        if self.settings.intercept == Intercept::Free && imbalance(task, alpha) > BALANCED {
            return Err(infeasible("its two sides do not balance"));
        }
        if let Regularisation::Nu(nu) = self.settings.regularisation {
            // Σα = ν·C·n says that C is the one at which a share ν is held.
            let (sum, limits) = (0..task.blocks())
                .fold((0.0, 0.0), |(sum, limits), block| (sum + alpha[block], limits + task.constraint(block).cost));
            if (sum - nu * limits).abs() > ROUNDING * sum.abs() {
                return Err(infeasible("it is of another nu"));
            }
        }
        Ok(())
    }
}

/// A model learned through a kernel beside the rows it was learned from.
struct Expanded<'a> {
    kernel: Kernel,
    design: &'a Design,
    /// All rows.
    rows: Points,
    /// The model's vectors, as exact as the rows; none where rows are kernel values with all of them.
    vectors: Option<(&'a Expansion, Points)>,
    coefficients: &'a [f64],
}

impl<'a> Expanded<'a> {
    fn new(
        kernel: Kernel,
        expansion: Option<&'a Expansion>,
        coefficients: &'a [f64],
        design: &'a Design,
        cancel: &Cancel,
    ) -> Result<Expanded<'a>> {
        kernel.check_known()?;
        check_values(&kernel, design)?;
        let rows = Points::until(design, &kernel, cancel);
        let vectors = expansion.map(|expansion| Ok((expansion, expansion.points_like(&rows, cancel)?))).transpose()?;
        Ok(Expanded { kernel, design, rows, vectors, coefficients })
    }

    /// The scores of all rows without the constant term, and ‖Σ β φ‖².
    fn values(&self, cancel: &Cancel) -> Result<(Vec<f64>, f64)> {
        let values = match &self.vectors {
            Some((expansion, points)) => {
                (expansion.scores(points, self.design, cancel), expansion.squared_norm(points, cancel))
            }
            None => {
                let (before, own) = self.coefficients.split_at(self.design.cols() - self.design.rows());
                if before.iter().any(|weight| *weight != 0.0) {
                    return Err(infeasible("the numbers of the rows have a weight"));
                }
                let all: Vec<usize> = (0..own.len()).collect();
                let scores = self.images(&all, own, cancel)?;
                let square = scores.iter().zip(own).map(|(score, coefficient)| score * coefficient).sum();
                (scores, square)
            }
        };
        // Values cut short are none.
        cancel.check()?;
        Ok(values)
    }

    /// Σ_i coefficient_i k(row_i, ·) over all rows.
    fn images(&self, ids: &[usize], coefficients: &[f64], cancel: &Cancel) -> Result<Vec<f64>> {
        let images = expansion_scores(&self.kernel, &self.rows, ids, coefficients, &self.rows, cancel);
        cancel.check()?;
        Ok(images)
    }
}

/// The bound of cuts taken anew, a pass each.
fn proven_by_cuts(risk: &mut dyn Risk, cuts: &[Cut], cancel: &Cancel) -> Result<f64> {
    let bound = bound_of_cuts(risk, cuts, cancel)?;
    // What was cut short proves nothing either way.
    cancel.check()?;
    bound.map_err(infeasible)
}

const SAME_FILE: &str = "give `verify` the very file of the training run, read with the same settings";

const ALTERED: &str = "the model file was altered, or was made by a defective program; train it again";

fn infeasible(why: &str) -> Error {
    Error::new(Code::CertificateMismatch, format!("the witness proves nothing: {why}")).help(ALTERED)
}

fn mismatch(what: &str, found: f64, claimed: f64) -> Error {
    Error::new(Code::CertificateMismatch, format!("the {what} is {found:e}, and the model claims {claimed:e}"))
        .help(ALTERED)
}
