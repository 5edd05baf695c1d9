//! Converts settings to a [`Rule`], and stores everything a step depends on, bit for bit.
//!
//! `online.numbers`: τ, the sum of losses, the sum of weights, D; for an average also f, E and its threshold
//! (`weights.rs`). `online.counts`: the counts of [`Progressive`]. `online.weights`: W, if D is not always 1;
//! `online.average`: A.

use super::comparison::{ComparisonLearner, OnlineState, Rule};
use super::progressive::Progressive;
use super::weights::{Average, Weights};
use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::settings::{Regularisation, Settings, Solver, Stochastic};
use crate::wish::Schedule;

/// The default η₀.
const USUAL_RATE: f64 = 0.1;

impl Rule {
    /// The rule for these settings, or an error that explains why they cannot learn from a stream.
    pub(super) fn of(settings: &Settings) -> Result<Rule> {
        settings.validate()?;
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let Some(task) = settings.comparison().filter(|task| task.learns_threshold()) else {
            return bad("only comparisons can be learned from a stream".to_string(), "use `learn compare`");
        };
        if settings.scale != Scale::None {
            return bad(
                "a stream cannot be scaled, because later rows are not known yet".to_string(),
                "leave ⟦scale⟧ out, and scale the features beforehand",
            );
        }
        match (settings.solver, settings.regularisation) {
            (Solver::PassiveAggressive, Regularisation::C(c)) => Ok(Rule::PassiveAggressive {
                c,
                kappa: task.kappa,
                squared: settings.loss == crate::loss::Loss::SquaredHinge,
            }),
            (Solver::Sgd | Solver::AveragedSgd, Regularisation::Lambda(lambda)) => {
                let Stochastic { schedule, rate, .. } = settings.stochastic;
                let plain = Stochastic { schedule, rate, ..Stochastic::default() };
                if plain != settings.stochastic || !matches!(schedule, None | Some(Schedule::Bottou)) {
                    return bad(
                        "on a stream, each step uses one pair, and steps shrink by Bottou's schedule".to_string(),
                        "leave out all stochastic settings but ⟦rate⟧",
                    );
                }
                let rate = rate.unwrap_or(USUAL_RATE);
                if rate * lambda >= 1.0 {
                    return bad(
                        format!(
                            "⟦rate={rate}⟧ times ⟦lambda={lambda}⟧ is not below 1, so steps would reverse the \
                             weights"
                        ),
                        "use a smaller ⟦rate⟧ or ⟦lambda⟧",
                    );
                }
                let averaged = settings.solver == Solver::AveragedSgd;
                Ok(Rule::Gradient { lambda, rate, loss: settings.loss, averaged })
            }
            (Solver::Sgd | Solver::AveragedSgd, _) => bad(
                format!("`{}` on a stream takes ⟦lambda⟧: ⟦c⟧ needs a known number of pairs", settings.solver.name()),
                "give ⟦lambda⟧, such as 1e-4, instead of ⟦c⟧",
            ),
            (solver, _) => bad(
                format!("`{}` does not learn from a stream", solver.name()),
                "use ⟦solver=passive-aggressive⟧, sgd or averaged-sgd",
            ),
        }
    }
}

impl ComparisonLearner {
    /// A learner that has seen nothing.
    pub fn new(settings: &Settings) -> Result<ComparisonLearner> {
        let rule = Rule::of(settings)?;
        Ok(ComparisonLearner::start(rule, Vec::new(), 1.0))
    }
}

impl OnlineState {
    /// How well pairs were predicted before they were learned from.
    pub fn progress(&self) -> &Progressive {
        &self.progress
    }

    /// The scalars of the state, without the vectors.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.threshold, self.loss, self.weight, self.weights.divisor];
        if let Some(average) = &self.weights.average {
            numbers.extend([average.fraction, average.divisor, average.threshold]);
        }
        numbers
    }

    /// W, if it differs from the model's weights.
    pub(crate) fn stored_weights(&self) -> Option<&[f64]> {
        (self.weights.divisor != 1.0 || self.weights.average.is_some()).then_some(&self.weights.vector)
    }

    /// A, if there is an average.
    pub(crate) fn stored_average(&self) -> Option<&[f64]> {
        self.weights.average.as_ref().map(|average| &average.vector[..])
    }

    /// The state from stored numbers, or none if they are invalid.
    pub(crate) fn from_stored(
        numbers: &[f64],
        counts: &[u64],
        weights: &[f64],
        (vector, average): (Option<Vec<f64>>, Option<Vec<f64>>),
    ) -> Option<OnlineState> {
        let (&[threshold, loss, weight, divisor], rest) = numbers.split_first_chunk::<4>()?;
        let vector = vector.unwrap_or_else(|| weights.to_vec());
        let average = match (average, rest) {
            (None, []) => None,
            (Some(average), &[fraction, divisor, threshold]) if average.len() == vector.len() => {
                Some(Average { vector: average, fraction, divisor, threshold })
            }
            _ => return None,
        };
        let weights = Weights { vector, divisor, average };
        let progress = Progressive::from_numbers(counts)?;
        Some(OnlineState { weights, threshold, loss, weight, progress })
    }

    /// Whether the state belongs to a model with these settings, weights, threshold and number of pairs, so that both
    /// predict the same.
    pub(crate) fn belongs_to(
        &self,
        settings: &Settings,
        weights: Option<&[f64]>,
        threshold: Option<f64>,
        pairs: Option<u64>,
    ) -> bool {
        let Ok(rule) = Rule::of(settings) else { return false };
        let learner = ComparisonLearner::go_on(rule, self.clone());
        let averaged = matches!(rule, Rule::Gradient { averaged: true, .. });
        let plain = matches!(rule, Rule::Gradient { .. }) || self.weights.divisor == 1.0;
        self.weights.average.is_some() == averaged
            && plain
            && self.weights.divisor >= 1.0
            && self.weights.average.as_ref().is_none_or(|average| average.divisor >= 1.0 && average.fraction >= 0.0)
            && self.threshold >= rule.least_threshold()
            && self.weight > 0.0
            && self.loss >= 0.0
            && Some(learner.weights().as_slice()) == weights
            && Some(learner.threshold()) == threshold
            && pairs == Some(self.progress.pairs())
    }
}
