//! A [`SetLearner`] as a [`Model`], and back.

use super::{Learner, Value};
use crate::certificate::{Certificate, Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{Progress, SetLearner};
use crate::settings::Settings;
use std::ops::Range;

impl SetLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from its weights, with all counts at zero.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<SetLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return SetLearner::resume(settings, state, &learned);
        }
        match (&model.scorer, &model.decoder, model.scaling.kind()) {
            (Scorer::Linear { weights, intercepts, .. }, Decoder::Sets { labels, calibrated: true }, Scale::None) => {
                SetLearner::beginning(settings, labels, weights.clone(), intercepts)
            }
            _ => Err(Error::new(
                Code::BadSetting,
                "the model is no linear, calibrated model of label sets without scaling",
            )
            .help("continue from a model of `train multilabel` or `learn multilabel`, without ⟦scale⟧")),
        }
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let (loss, weight) = self.totals();
        let decoder = SetLearner::decoder(self)?;
        if weight == 0.0 {
            return Err(Error::new(Code::NoRows, "there was no row with a weight above zero, so nothing was learned")
                .help("give at least one row"));
        }
        let (weights, intercepts) = self.point();
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
            scorer: Scorer::Linear { weights, outputs: self.outputs(), intercepts },
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

impl Learner for SetLearner {
    fn features(&self) -> usize {
        SetLearner::features(self)
    }

    fn seen(&self) -> u64 {
        SetLearner::seen(self)
    }

    fn examples(&self, data: &Dataset) -> usize {
        data.rows()
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        SetLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Result<Decoder> {
        SetLearner::decoder(self)
    }

    fn progress(&self) -> Progress {
        SetLearner::progress(self)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        SetLearner::model(self, settings, feature_names, reading)
    }
}
