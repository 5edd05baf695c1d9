//! A learner as a [`Model`], and back: settings become a [`Rule`], and everything a step depends on is stored, bit for bit.
//!
//! `online.numbers`: τ, the sum of losses, the sum of weights, D; for an average also f, E and its threshold (`weights.rs`).
//! `online.counts`: what [`Progressive`] has counted. `online.weights`: W, where D is not always 1; `online.average`: A.

use super::comparison::{ComparisonLearner, OnlineState, Rule};
use super::progressive::Progressive;
use super::weights::{Average, Weights};
use crate::data::{Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::{Certificate, Decoder, Model, Scorer};
use crate::settings::{Regularisation, Settings, Solver, Stochastic, Task};
use crate::solve::Schedule;

/// η₀ unless given.
const USUAL_RATE: f64 = 0.1;

impl Rule {
    /// How these settings learn, or why they do not learn from a stream.
    pub(super) fn of(settings: &Settings) -> Result<Rule> {
        settings.validate()?;
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let Some(task) = settings.comparison().filter(|task| task.learns_threshold()) else {
            return bad("what is learned from a stream are comparisons".to_string(), "use `learn compare`");
        };
        if settings.scale != Scale::None {
            return bad(
                "a stream is not scaled: nothing is known of rows that are still to come".to_string(),
                "leave --scale out, and bring features to a common size before",
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
                        "over a stream steps are of one pair each, and shrink by Bottou's schedule".to_string(),
                        "leave out all stochastic settings but --rate",
                    );
                }
                let rate = rate.unwrap_or(USUAL_RATE);
                if rate * lambda >= 1.0 {
                    return bad(
                        format!(
                            "--rate {rate} times --lambda {lambda} is not below 1, and steps would turn the weights round"
                        ),
                        "take a smaller --rate or --lambda",
                    );
                }
                let averaged = settings.solver == Solver::AveragedSgd;
                Ok(Rule::Gradient { lambda, rate, loss: settings.loss, averaged })
            }
            (Solver::Sgd | Solver::AveragedSgd, _) => bad(
                format!(
                    "`{}` over a stream takes --lambda: -c weighs a sum whose length nobody knows",
                    settings.solver.name()
                ),
                "give --lambda, such as 1e-4, instead of -c",
            ),
            (solver, _) => bad(
                format!("`{}` does not learn from a stream", solver.name()),
                "use --solver passive-aggressive, sgd or averaged-sgd",
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

    /// A learner that goes on where a model stopped: exactly there where the model was learned from a stream by the same
    /// settings, and otherwise from its weights and threshold, with nothing counted. The scaling of columns is multiplied
    /// into the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<ComparisonLearner> {
        let rule = Rule::of(settings)?;
        if let (Some(state), true) = (&model.online, model.settings == *settings) {
            return Ok(ComparisonLearner::go_on(rule, state.clone()));
        }
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let Scorer::Linear { weights, .. } = &model.scorer else {
            return bad(
                "the model has no weights to go on with: it is one of a kernel".to_string(),
                "begin without --from",
            );
        };
        let (Task::Compare, Some(threshold)) = (model.settings.task.task(), model.decoder.threshold()) else {
            return bad(
                format!("the model does not compare: its task is `{}`", model.settings.task.name()),
                "go on from a model of `train compare` or `learn compare`",
            );
        };
        let mut weights = weights.clone();
        match (model.scaling.kind(), model.scaling.factor()) {
            (Scale::None, _) => {}
            // A shift is the same on both sides.
            (Scale::Standard | Scale::MinMax | Scale::MaxAbs, Some(factor)) => {
                weights.iter_mut().zip(factor).for_each(|(w, factor)| *w *= factor);
            }
            (scale, _) => {
                return bad(
                    format!("the model scales rows (`{}`), and a stream is not scaled", scale.name()),
                    "go on from a model without --scale",
                );
            }
        }
        // Weights and threshold that grow together predict the same; one of zero or below means nothing to a tie.
        let mut threshold = threshold;
        let least = rule.least_threshold();
        if threshold > 0.0 && threshold < least {
            weights.iter_mut().for_each(|w| *w *= least / threshold);
        }
        threshold = threshold.max(least);
        if weights.iter().any(|w| !w.is_finite()) {
            return bad("the model's threshold is too small to go on from".to_string(), "begin without --from");
        }
        Ok(ComparisonLearner::start(rule, weights, threshold))
    }

    /// What has been learned so far, as a model that can be saved and taken up again. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let OnlineState { loss, weight, progress, .. } = &self.state;
        if *weight == 0.0 {
            return Err(Error::new(
                Code::NoPairs,
                "there was no pair with a weight above zero, and nothing was learned",
            )
            .help("give at least one pair"));
        }
        let weights = self.weights();
        let (c, lambda) = (settings.regularisation.c(*weight), settings.regularisation.lambda(*weight));
        let certificate = Certificate {
            // Losses are those before each pair was learned from.
            objective: 0.5 * weights.iter().map(|w| w * w).sum::<f64>() + c * loss,
            lower_bound: None,
            constraints: progress.pairs() + progress.ties(),
            data_hash: 0,
            rows: 2 * progress.pairs(),
            pairs: Some(progress.pairs()),
            ties: Some(progress.ties()).filter(|ties| *ties > 0),
            blocks: None,
            converged: false,
            passes: 1,
            c,
            lambda,
            solver: Some(settings.solver),
        };
        let model = Model {
            settings: settings.clone(),
            scorer: Scorer::linear(weights, None),
            decoder: Decoder::Compare { threshold: self.threshold() },
            scaling: Default::default(),
            feature_names,
            certificate,
            witness: None,
            reading,
            version: env!("CARGO_PKG_VERSION").to_string(),
            compacted: None,
            online: Some(self.state.clone()),
        };
        Ok(model)
    }
}

impl OnlineState {
    /// How well pairs were foretold.
    pub fn progress(&self) -> &Progressive {
        &self.progress
    }

    /// Numbers beside the vectors.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.threshold, self.loss, self.weight, self.weights.divisor];
        if let Some(average) = &self.weights.average {
            numbers.extend([average.fraction, average.divisor, average.threshold]);
        }
        numbers
    }

    /// W, where the model's own weights are not the same.
    pub(crate) fn stored_weights(&self) -> Option<&[f64]> {
        (self.weights.divisor != 1.0 || self.weights.average.is_some()).then_some(&self.weights.vector)
    }

    /// A, where there is an average.
    pub(crate) fn stored_average(&self) -> Option<&[f64]> {
        self.weights.average.as_ref().map(|average| &average.vector[..])
    }

    /// The state from what was stored, or none where it cannot be one.
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

    /// Whether the state is that of a model: the model says what the state predicts.
    pub(crate) fn belongs_to(&self, model: &Model) -> bool {
        let Ok(rule) = Rule::of(&model.settings) else { return false };
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
            && Some(learner.weights().as_slice()) == model.scorer.weights()
            && Some(learner.threshold()) == model.decoder.threshold()
            && model.certificate.pairs == Some(self.progress.pairs())
    }
}
