//! Learning from a stream: one example after the other, in memory that does not grow with their number.
//!
//! A [`Learner`] takes examples as they come. Each is predicted before it is learned from, which
//! [`Progressive`] counts. At any moment it can be made into a [`Model`], and a learner that goes on from such a model ends in
//! the same bytes as one that was never interrupted. The steps themselves are in [`crate::online`].

mod comparison;

use crate::certificate::Decoder;
use crate::data::{Dataset, Names};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{ComparisonLearner, Progressive};
use crate::settings::{Settings, Task};
use std::ops::Range;

/// What learns from a stream.
pub trait Learner: Send {
    /// Features met so far.
    fn features(&self) -> usize;

    /// Predicts some of the examples and then learns from them, one after the other in the order of the data.
    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()>;

    /// What its scores mean by now.
    fn decoder(&self) -> Decoder;

    /// How well examples were foretold.
    fn progress(&self) -> &Progressive;

    /// What has been learned so far, as a model that can be saved and taken up again. `settings` are those of the learner,
    /// `reading` how the data were read.
    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model>;
}

/// A learner for these settings, which goes on from a model where one is given.
pub fn learner(settings: &Settings, from: Option<&Model>) -> Result<Box<dyn Learner>> {
    match settings.task.task() {
        Task::Compare => Ok(Box::new(match from {
            Some(model) => ComparisonLearner::from_model(model, settings)?,
            None => ComparisonLearner::new(settings)?,
        })),
        task => Err(Error::new(Code::Unsupported, format!("`{}` is not learned from a stream", task.name()))
            .help("learn a comparison, or train on data at hand")),
    }
}
