//! A [`ComparisonLearner`] as a [`Model`], and back.

use super::{Learner, Value};
use crate::certificate::{Certificate, Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{ComparisonLearner, Progress, Progressive};
use crate::settings::{Settings, Task};
use std::ops::Range;

impl ComparisonLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from the weights and threshold, with all counts at zero. The scaling of columns is
    /// multiplied into the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<ComparisonLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return ComparisonLearner::resume(settings, state, &learned);
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
        let Value { objective, c, lambda } = Value::of(settings, &weights, loss, weight)?;
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
            decoder: Learner::decoder(self)?,
            scaling: Default::default(),
            feature_names,
            certificate,
            witness: None,
            reading,
            version: env!("CARGO_PKG_VERSION").to_string(),
            compacted: None,
            calibration: None,
            online: Some(self.state()),
        };
        Ok(model)
    }
}

impl Learner for ComparisonLearner {
    fn features(&self) -> usize {
        ComparisonLearner::features(self)
    }

    fn seen(&self) -> u64 {
        ComparisonLearner::progress(self).pairs()
    }

    fn examples(&self, data: &Dataset) -> usize {
        data.pairs().map_or(0, |pairs| pairs.len())
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        ComparisonLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Result<Decoder> {
        Ok(Decoder::Compare { threshold: self.threshold() })
    }

    fn progress(&self) -> Progress {
        self.measured()
    }

    fn compared(&self) -> Option<&Progressive> {
        Some(ComparisonLearner::progress(self))
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        ComparisonLearner::model(self, settings, feature_names, reading)
    }
}
