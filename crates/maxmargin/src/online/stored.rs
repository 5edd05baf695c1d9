//! Comparisons: converts settings to a [`Rule`], and stores everything a step depends on, bit for bit.
//!
//! `online.numbers`: τ, the sum of losses, the sum of weights, D; for an average also f, E and its threshold
//! (`steps/weights.rs`). `online.counts`: the counts of [`Progressive`]. `online.weights`: W, if D is not always 1;
//! `online.average`: A.

use super::comparison::{ComparisonLearner, ComparisonState, Rule};
use super::progressive::Progressive;
use super::state::{Learned, OnlineState, sound};
use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::settings::{Regularisation, Settings, Solver, Stochastic};
use crate::steps::weights::{Average, Weights};
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

/// The names of the entries.
const NUMBERS: &str = "numbers";
const COUNTS: &str = "counts";
const WEIGHTS: &str = "weights";
const AVERAGE: &str = "average";

impl ComparisonState {
    /// Everything, by name. Weights are left out if they are those of the model.
    pub(super) fn stored(&self) -> OnlineState {
        let mut state = OnlineState::default();
        let mut numbers = vec![self.threshold, self.loss, self.weight, self.weights.divisor];
        if let Some(average) = &self.weights.average {
            numbers.extend([average.fraction, average.divisor, self.average]);
            state.put_reals(AVERAGE, average.vector.clone());
        }
        state.put_reals(NUMBERS, numbers);
        state.put_counts(COUNTS, self.progress.numbers());
        if self.weights.divisor != 1.0 || self.weights.average.is_some() {
            state.put_reals(WEIGHTS, self.weights.vector.clone());
        }
        state
    }

    /// The state of a model with these weights, or none if it is invalid.
    fn restored(state: &OnlineState, weights: &[f64]) -> Option<ComparisonState> {
        let (&[threshold, loss, weight, divisor], rest) = state.reals(NUMBERS)?.split_first_chunk::<4>()?;
        let vector = state.reals(WEIGHTS).unwrap_or(weights).to_vec();
        let (average, mean) = match (state.reals(AVERAGE), rest) {
            (None, []) => (None, threshold),
            (Some(average), &[fraction, divisor, threshold]) => {
                (Some(Average { vector: average.to_vec(), fraction, divisor }), threshold)
            }
            _ => return None,
        };
        let weights = Weights { vector, divisor, average };
        let progress = Progressive::from_numbers(state.counts(COUNTS)?)?;
        Some(ComparisonState { weights, threshold, average: mean, loss, weight, progress })
    }
}

impl ComparisonLearner {
    /// A learner that continues exactly from the state of a model.
    pub(crate) fn resume(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<ComparisonLearner> {
        let rule = Rule::of(settings)?;
        sound(ComparisonLearner::restored(rule, state, learned))
    }

    /// The learner, or none if the state does not belong to a model with this rule, so that both predict the same.
    fn restored(rule: Rule, state: &OnlineState, learned: &Learned<'_>) -> Option<ComparisonLearner> {
        let state = ComparisonState::restored(state, learned.weights)?;
        let averaged = matches!(rule, Rule::Gradient { averaged: true, .. });
        let plain = matches!(rule, Rule::Gradient { .. }) || state.weights.divisor == 1.0;
        let fits = state.weights.average.is_some() == averaged
            && plain
            && state.weights.is_sound()
            && state.threshold >= rule.least_threshold()
            && state.weight > 0.0
            && state.loss >= 0.0
            && learned.pairs == Some(state.progress.pairs());
        let learner = fits.then(|| ComparisonLearner::go_on(rule, state))?;
        let same = learner.weights() == learned.weights && Some(learner.threshold()) == learned.decoder.threshold();
        same.then_some(learner)
    }
}
