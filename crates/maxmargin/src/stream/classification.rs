//! A [`ClassificationLearner`] as a [`Model`], and back.

use super::{Learner, made};
use crate::certificate::{Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{ClassificationLearner, Progress};
use crate::settings::Settings;
use std::ops::Range;

impl ClassificationLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from its weights, with all counts at zero. The scaling of columns is multiplied into
    /// the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<ClassificationLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return ClassificationLearner::resume(settings, state, &learned);
        }
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let (Some(names), Decoder::Sign(_) | Decoder::Largest(_)) = (model.decoder.class_names(), &model.decoder)
        else {
            return bad(
                format!("the model does not give scores to classes: its task is `{}`", model.settings.task.name()),
                "continue from a model of `train classify` or `learn classify`",
            );
        };
        if model.scorer.outputs() == 1 {
            let plain = model.plain_linear()?;
            let constants: Vec<f64> = plain.intercept.into_iter().collect();
            return ClassificationLearner::beginning(settings, &names, plain.weights, &constants);
        }
        let (Scorer::Linear { weights, intercepts, .. }, Scale::None) = (&model.scorer, model.scaling.kind()) else {
            return bad(
                "the model of several classes has a kernel or scales features".to_string(),
                "continue from a linear model without ⟦scale⟧",
            );
        };
        ClassificationLearner::beginning(settings, &names, weights.clone(), intercepts)
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let (decoder, (weights, intercepts)) = (ClassificationLearner::decoder(self)?, self.point());
        let scorer = Scorer::Linear { weights, outputs: self.outputs(), intercepts };
        let counts = (self.seen(), None);
        made(settings, scorer, decoder, (self.totals(), counts), self.state(), (feature_names, reading))
    }
}

impl Learner for ClassificationLearner {
    fn features(&self) -> usize {
        ClassificationLearner::features(self)
    }

    fn seen(&self) -> u64 {
        ClassificationLearner::seen(self)
    }

    fn examples(&self, data: &Dataset) -> usize {
        data.rows()
    }

    fn batch(&self) -> usize {
        ClassificationLearner::batch(self)
    }

    fn wanted(&self) -> usize {
        ClassificationLearner::wanted(self)
    }

    fn until_wanted(&self) -> u64 {
        ClassificationLearner::until_wanted(self)
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        ClassificationLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Result<Decoder> {
        ClassificationLearner::decoder(self)
    }

    fn progress(&self) -> Progress {
        ClassificationLearner::progress(self)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        ClassificationLearner::model(self, settings, feature_names, reading)
    }
}
