//! A [`ClassificationLearner`] as a [`Model`], and back.

use super::{Learner, Value};
use crate::certificate::{Certificate, Decoder, Scorer};
use crate::data::{Dataset, Names};
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
        let Some(classes) = model.decoder.classes() else {
            let message =
                format!("the model does not tell two classes apart: its task is `{}`", model.settings.task.name());
            return Err(Error::new(Code::BadSetting, message)
                .help("continue from a model of `train classify` or `learn classify` with two classes"));
        };
        let plain = model.plain_linear()?;
        ClassificationLearner::beginning(settings, classes, plain.weights, plain.intercept.unwrap_or(0.0))
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let (loss, weight) = self.totals();
        let decoder = ClassificationLearner::decoder(self)?;
        if weight == 0.0 {
            return Err(Error::new(Code::NoRows, "there was no row with a weight above zero, so nothing was learned")
                .help("give at least one row"));
        }
        let (weights, constant) = self.point();
        let Value { objective, c, lambda } = Value::of(settings, &weights, loss, weight)?;
        let certificate = Certificate {
            objective,
            lower_bound: None,
            constraints: self.seen(),
            data_hash: 0,
            rows: self.seen(),
            pairs: None,
            ties: None,
            blocks: None,
            converged: false,
            passes: 1,
            c,
            lambda,
            solver: Some(settings.solver),
        };
        Ok(Model {
            settings: settings.clone(),
            scorer: Scorer::linear(weights, constant),
            decoder,
            scaling: Default::default(),
            feature_names,
            certificate,
            witness: None,
            reading,
            version: env!("CARGO_PKG_VERSION").to_string(),
            compacted: None,
            calibration: None,
            online: Some(self.state()),
        })
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
