//! Examples of the user's own oracle as a task: training, and verifying a model of them.

use super::{HeldOut, Poses, Trained, Verification, train_own_from};
use crate::certificate::Decoder;
use crate::data::{Dataset, Subset};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::run::{Cancel, Observer};
use crate::settings::{Settings, TaskSettings};
use crate::solve::{ByJointFeature, Problem, Start};
use crate::structured::{Examples, Oracle, Rescale};

impl<O: Oracle + 'static> Poses for Examples<O> {
    fn pose(&self, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>> {
        ByJointFeature::check(settings)?;
        if data.rows() != self.len() || data.cols() != self.dimension() {
            let message = format!("{} rows of data stand for {} examples", data.rows(), self.len());
            return Err(Error::new(Code::OtherData, message).help("give the data set of the examples themselves"));
        }
        let rescale = match &settings.task {
            TaskSettings::Own(own) => own.rescale,
            _ => Rescale::Margin,
        };
        let meaning = |_: &[f64]| Decoder::Score { free: Vec::new() };
        Ok(Box::new(ByJointFeature::new(self.structure(rescale, subset), "example", Box::new(meaning))))
    }
}

impl<O: Oracle + 'static> Examples<O> {
    /// Trains a model, whose weights are those of the joint features.
    pub fn train(&self, settings: &Settings, observer: &mut dyn Observer, cancel: &Cancel) -> Result<Trained> {
        self.train_from(settings, None, None, observer, cancel)
    }

    /// The same from a stored model, by [`Model::start_for`] with [`Examples::data`], or judged on held-out examples, for
    /// example by [`Examples::mean_loss`]. With [`EarlyStopping::Validation`](crate::wish::EarlyStopping) training stops
    /// when the measure gets worse.
    pub fn train_from(
        &self,
        settings: &Settings,
        start: Option<&Start>,
        held_out: Option<HeldOut<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Trained> {
        train_own_from(self, self.data(), settings, start, held_out, observer, cancel)
    }

    /// Recomputes everything that the certificate of a model claims. An error if the examples differ from those that the
    /// model was trained on, or if a claim does not hold.
    pub fn verify(&self, model: &Model, cancel: &Cancel) -> Result<Verification> {
        model.verify_own(self, self.data(), cancel)
    }
}
