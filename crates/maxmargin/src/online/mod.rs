//! The steps of learning from a stream, and the state they leave. [`crate::stream`] makes models of them.
//!
//! Every example is predicted before it is learned from, which gives the [`Progress`]. Learners are made for a task:
//! [`ComparisonLearner`] takes pairs of rows with the outcomes left, tie and right; [`ClassificationLearner`] takes rows of
//! classes, [`OrdinalLearner`] rows with ranks, and [`RankingLearner`] pairs or whole lists. What a learner must keep to continue is an [`OnlineState`], which a model file holds by name.
//!
//! A rule says how examples change the weights: one file for each family. Rows of two classes have the interface
//! [`two_classes::TwoClassRule`].

#[cfg(test)]
mod beside_a_solver;
mod classification;
#[cfg(test)]
mod classification_tests;
mod comparison;
mod descent;
mod gradient;
mod label_sets;
mod labels;
mod linear;
mod many_classes;
mod ordinal;
mod pair_steps;
mod passive_aggressive;
mod progress;
mod progressive;
mod ranking;
#[cfg(test)]
mod several_tests;
mod state;
mod stored;
#[cfg(test)]
mod tests;
mod two_classes;

pub use classification::ClassificationLearner;
pub use comparison::ComparisonLearner;
pub use label_sets::SetLearner;
pub use ordinal::OrdinalLearner;
pub use progress::{Aggression, Measured, Progress, RECENT};
pub use progressive::{Auc, Progressive};
pub use ranking::RankingLearner;
pub(crate) use state::unfit;
pub use state::{Learned, OnlineState};

use crate::error::{Code, Error, Result};
use crate::settings::{Settings, Task};

/// Checks that a state belongs to a model, so that learning can continue from it.
pub(crate) fn check_state(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<()> {
    if !state.is_finite() {
        return Err(unfit());
    }
    match settings.task.task() {
        Task::Compare => ComparisonLearner::resume(settings, state, learned).map(drop),
        Task::Classify => ClassificationLearner::resume(settings, state, learned).map(drop),
        Task::Multilabel => SetLearner::resume(settings, state, learned).map(drop),
        Task::Rank => RankingLearner::resume(settings, state, learned).map(drop),
        Task::Ordinal => OrdinalLearner::resume(settings, state, learned).map(drop),
        task => Err(Error::new(Code::DamagedModel, format!("`{}` does not learn from a stream", task.name()))),
    }
}

/// How well the examples of a stream were predicted before they were learned from, for a state that belongs to a model.
pub fn progress(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Option<Progress> {
    match settings.task.task() {
        Task::Compare => ComparisonLearner::resume(settings, state, learned).ok().map(|learner| learner.measured()),
        Task::Classify => {
            ClassificationLearner::resume(settings, state, learned).ok().map(|learner| learner.progress())
        }
        Task::Multilabel => SetLearner::resume(settings, state, learned).ok().map(|learner| learner.progress()),
        Task::Rank => RankingLearner::resume(settings, state, learned).ok().map(|learner| learner.progress()),
        Task::Ordinal => OrdinalLearner::resume(settings, state, learned).ok().map(|learner| learner.progress()),
        _ => None,
    }
}
