//! A [`SetLearner`] as a [`Model`], and back.

use super::{Learner, made};
use crate::certificate::{Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{Progress, SetLearner};
use crate::settings::{Multilabel, Settings, TaskSettings};
use std::ops::Range;

/// Whether a border lies between the labels of a row and the others.
fn is_calibrated(settings: &Settings) -> bool {
    matches!(&settings.task, TaskSettings::Multilabel(task) if task.multilabel == Multilabel::Calibrated)
}

impl SetLearner {
    /// A learner that continues from a model. It continues exactly if the model was learned from a stream with the same
    /// settings. Otherwise it starts from its weights, with all counts at zero.
    pub fn from_model(model: &Model, settings: &Settings) -> Result<SetLearner> {
        if let (Some(state), Some(learned), true) = (&model.online, model.learned(), model.settings == *settings) {
            return SetLearner::resume(settings, state, &learned);
        }
        match (&model.scorer, &model.decoder, model.scaling.kind()) {
            (Scorer::Linear { weights, intercepts, .. }, Decoder::Sets { labels, calibrated }, Scale::None)
                if *calibrated == is_calibrated(settings) =>
            {
                SetLearner::beginning(settings, labels, weights.clone(), intercepts)
            }
            _ => Err(Error::new(
                Code::BadSetting,
                "the model is no linear model of label sets of the same form, without scaling",
            )
            .help(
                "continue from a model of `train multilabel` or `learn multilabel` with the same ⟦multilabel⟧, without \
                 ⟦scale⟧",
            )),
        }
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner.
    pub fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model> {
        let (weights, intercepts) = self.point();
        let scorer = Scorer::Linear { weights, outputs: self.outputs(), intercepts };
        let (decoder, counts) = (SetLearner::decoder(self)?, (self.seen(), None));
        made(settings, scorer, decoder, (self.totals(), counts), self.state(), (feature_names, reading))
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

    fn batch(&self) -> usize {
        SetLearner::batch(self)
    }

    fn wanted(&self) -> usize {
        SetLearner::wanted(self)
    }

    fn until_wanted(&self) -> u64 {
        SetLearner::until_wanted(self)
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
