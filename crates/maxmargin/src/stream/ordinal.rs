//! A [`OrdinalLearner`] as a [`Model`], and back.

use super::{Learner, made};
use crate::certificate::{Decoder, Scorer};
use crate::data::{Dataset, Names};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{OrdinalLearner, Progress};
use crate::settings::Settings;
use std::ops::Range;

impl OrdinalLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from its weights, with all counts at zero. The scaling of columns is multiplied into
    /// the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<OrdinalLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return OrdinalLearner::resume(settings, state, &learned);
        }
        let Decoder::Cuts { cuts, ranks } = &model.decoder else {
            let message = format!("the model does not rate: its task is `{}`", model.settings.task.name());
            return Err(Error::new(Code::BadSetting, message)
                .help("continue from a model of `train ordinal` or `learn ordinal`"));
        };
        let plain = model.plain_linear()?;
        let shift = plain.intercept.unwrap_or(0.0);
        let cuts: Vec<f64> = cuts.iter().map(|cut| cut - shift).collect();
        OrdinalLearner::beginning(settings, plain.weights, &cuts, ranks)
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let scorer = Scorer::linear(self.weights(), None);
        let (decoder, counts) = (OrdinalLearner::decoder(self)?, (self.seen(), None));
        made(settings, scorer, decoder, (self.totals(), counts), self.state(), (feature_names, reading))
    }
}

impl Learner for OrdinalLearner {
    fn features(&self) -> usize {
        OrdinalLearner::features(self)
    }

    fn seen(&self) -> u64 {
        OrdinalLearner::seen(self)
    }

    fn examples(&self, data: &Dataset) -> usize {
        data.rows()
    }

    fn batch(&self) -> usize {
        OrdinalLearner::batch(self)
    }

    fn wanted(&self) -> usize {
        OrdinalLearner::wanted(self)
    }

    fn until_wanted(&self) -> u64 {
        OrdinalLearner::until_wanted(self)
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        OrdinalLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Result<Decoder> {
        OrdinalLearner::decoder(self)
    }

    fn progress(&self) -> Progress {
        OrdinalLearner::progress(self)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        OrdinalLearner::model(self, settings, feature_names, reading)
    }
}
