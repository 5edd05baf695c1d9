//! A [`RankingLearner`] as a [`Model`], and back.

use super::{Learner, made};
use crate::certificate::{Decoder, Scorer};
use crate::data::{Dataset, Names};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{Progress, RankingLearner};
use crate::settings::Settings;
use std::ops::Range;

impl RankingLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from its weights, with all counts at zero. The scaling of columns is multiplied into
    /// the weights.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<RankingLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return RankingLearner::resume(settings, state, &learned);
        }
        if model.decoder != Decoder::Rank {
            let message = format!("the model does not rank: its task is `{}`", model.settings.task.name());
            return Err(
                Error::new(Code::BadSetting, message).help("continue from a model of `train rank` or `learn rank`")
            );
        }
        RankingLearner::beginning(settings, model.plain_linear()?.weights)
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let scorer = Scorer::linear(self.weights(), None);
        let counts = (self.seen(), self.pairs());
        made(settings, scorer, Decoder::Rank, (self.totals(), counts), self.state(), (feature_names, reading))
    }
}

impl Learner for RankingLearner {
    fn features(&self) -> usize {
        RankingLearner::features(self)
    }

    fn seen(&self) -> u64 {
        RankingLearner::seen(self)
    }

    fn examples(&self, data: &Dataset) -> usize {
        RankingLearner::examples(self, data)
    }

    fn batch(&self) -> usize {
        RankingLearner::batch(self)
    }

    fn wanted(&self) -> usize {
        RankingLearner::wanted(self)
    }

    fn until_wanted(&self) -> u64 {
        RankingLearner::until_wanted(self)
    }

    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()> {
        RankingLearner::learn(self, data, examples)
    }

    fn decoder(&self) -> Result<Decoder> {
        Ok(Decoder::Rank)
    }

    fn progress(&self) -> Progress {
        RankingLearner::progress(self)
    }

    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        RankingLearner::model(self, settings, feature_names, reading)
    }
}
