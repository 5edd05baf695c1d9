//! A [`ComparisonLearner`] as a [`Model`], and back.

use super::Learner;
use crate::certificate::{Certificate, Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{ComparisonLearner, Progressive};
use crate::settings::{Settings, Task};
use std::ops::Range;

impl ComparisonLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from the weights and threshold, with all counts at zero. The scaling of columns is
    /// multiplied into the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<ComparisonLearner> {
        if let (Some(state), true) = (&model.online, model.settings == *settings) {
            return ComparisonLearner::resume(settings, state.clone());
        }
        let least = ComparisonLearner::new(settings)?.least_threshold();
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let Scorer::Linear { weights, .. } = &model.scorer else {
            return bad(
                "the model uses a kernel, and has no weights to continue from".to_string(),
                "start without ⟦from⟧",
            );
        };
        let (Task::Compare, Some(threshold)) = (model.settings.task.task(), model.decoder.threshold()) else {
            return bad(
                format!("the model does not compare: its task is `{}`", model.settings.task.name()),
                "continue from a model of `train compare` or `learn compare`",
            );
        };
        let mut weights = weights.clone();
        match (model.scaling.kind(), model.scaling.factor()) {
            (Scale::None, _) => {}
            // A shift cancels in the difference of both sides.
            (Scale::Standard | Scale::MinMax | Scale::MaxAbs, Some(factor)) => {
                weights.iter_mut().zip(factor).for_each(|(w, factor)| *w *= factor);
            }
            (scale, _) => {
                return bad(
                    format!("the model scales rows (`{}`), and a stream cannot be scaled", scale.name()),
                    "continue from a model without ⟦scale⟧",
                );
            }
        }
        // Scaling weights and threshold together changes no prediction. A threshold of zero or below never predicts a
        // tie.
        let mut threshold = threshold;
        if threshold > 0.0 && threshold < least {
            weights.iter_mut().for_each(|w| *w *= least / threshold);
        }
        threshold = threshold.max(least);
        if weights.iter().any(|w| !w.is_finite()) {
            return bad("the model's threshold is too small to continue from".to_string(), "start without ⟦from⟧");
        }
        ComparisonLearner::beginning(settings, weights, threshold)
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let (loss, weight, progress) = (self.loss(), self.weight(), self.progress());
        if weight == 0.0 {
            return Err(Error::new(
                Code::NoPairs,
                "there was no pair with a weight above zero, so nothing was learned",
            )
            .help("give at least one pair"));
        }
        let weights = self.weights();
        let (c, lambda) = (settings.regularisation.c(weight), settings.regularisation.lambda(weight));
        // The losses are those before each pair was learned from.
        let objective = 0.5 * weights.iter().map(|w| w * w).sum::<f64>() + c * loss;
        let positive = |number: f64| number > 0.0 && number.is_finite();
        if !(positive(c) && positive(lambda)) {
            return Err(Error::new(
                Code::Overflow,
                format!("double precision cannot hold C · n and its inverse: C is {c:e}, and the weights of all pairs add up to {weight:e}"),
            )
            .help("give pairs weights around 1, or another ⟦c⟧"));
        }
        if !objective.is_finite() {
            return Err(Error::new(Code::Overflow, "the objective is not a finite number")
                .help("give a smaller ⟦c⟧, or bring features to a common size, such as 0 to 1"));
        }
        let certificate = Certificate {
            objective,
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
            decoder: Learner::decoder(self),
            scaling: Default::default(),
            feature_names,
            certificate,
            witness: None,
            reading,
            version: env!("CARGO_PKG_VERSION").to_string(),
            compacted: None,
            calibration: None,
            online: Some(self.state().clone()),
        };
        Ok(model)
    }
}

impl Learner for ComparisonLearner {
    fn features(&self) -> usize {
        ComparisonLearner::features(self)
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        ComparisonLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Decoder {
        Decoder::Compare { threshold: self.threshold() }
    }

    fn progress(&self) -> &Progressive {
        ComparisonLearner::progress(self)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        ComparisonLearner::model(self, settings, feature_names, reading)
    }
}
