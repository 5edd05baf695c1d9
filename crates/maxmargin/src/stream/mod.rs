//! Learning from a stream: one example after the other, in memory that does not grow with their number.
//!
//! A [`Learner`] takes examples as they come. Each is predicted before it is learned from, and [`Progressive`] counts
//! the results. At any moment it can be made into a [`Model`]. A learner that continues from such a model ends with the
//! same bytes as one that was never interrupted. The steps themselves are in [`crate::online`].

mod comparison;

use crate::certificate::Decoder;
use crate::data::{Dataset, Names};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{ComparisonLearner, Progressive};
use crate::settings::{Settings, Task};
use std::ops::Range;

/// A learner for a stream of examples.
pub trait Learner: Send {
    /// Number of features seen so far.
    fn features(&self) -> usize;

    /// Predicts some of the examples and then learns from them, one after the other in the order of the data.
    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()>;

    /// The current meaning of its scores.
    fn decoder(&self) -> Decoder;

    /// How well examples were predicted before they were learned from.
    fn progress(&self) -> &Progressive;

    /// The current model, which can be saved and continued. `settings` are those of the learner, `reading` is how the
    /// data were read.
    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model>;
}

/// A learner for these settings. If a model is given, it continues from that.
pub fn learner(settings: &Settings, from: Option<&Model>) -> Result<Box<dyn Learner>> {
    match settings.task.task() {
        Task::Compare => Ok(Box::new(match from {
            Some(model) => ComparisonLearner::from_model(model, settings)?,
            None => ComparisonLearner::new(settings)?,
        })),
        task => Err(Error::new(Code::Unsupported, format!("`{}` cannot be learned from a stream", task.name()))
            .help("learn comparisons, or train on stored data")),
    }
}
