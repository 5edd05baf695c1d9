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
mod judgements;
mod label_sets;
mod labels;
mod linear;
mod many_classes;
mod moments;
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
pub use judgements::Judgements;
pub use label_sets::SetLearner;
pub(crate) use moments::{RunningMoments, Scaler};
pub use ordinal::OrdinalLearner;
pub use progress::{Aggression, Measured, Progress, RECENT};
pub use progressive::{Auc, Progressive};
pub use ranking::RankingLearner;
pub(crate) use state::unfit;
pub use state::{Learned, OnlineState};

use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::settings::{Settings, Stochastic, Task};
use crate::wish::EarlyStopping;

/// Checks that a state belongs to a model, so that learning can continue from it.
pub(crate) fn check_state(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Result<()> {
    if !state.is_finite() {
        return Err(unfit());
    }
    let scaled = settings.scale == Scale::Standard;
    let fits = |moments: RunningMoments| learned.weights.len().is_multiple_of(moments.features().max(1));
    if scaled && !RunningMoments::take(state).is_some_and(fits) {
        return Err(unfit());
    }
    let judged = settings.stochastic.early_stopping == EarlyStopping::Validation;
    if judged && Judgements::take(state, 1).is_none() {
        return Err(unfit());
    }
    let settings = &inner_settings(settings, if scaled { Scale::None } else { settings.scale });
    match settings.task.task() {
        Task::Compare => ComparisonLearner::resume(settings, state, learned).map(drop),
        Task::Classify => ClassificationLearner::resume(settings, state, learned).map(drop),
        Task::Multilabel => SetLearner::resume(settings, state, learned).map(drop),
        Task::Rank => RankingLearner::resume(settings, state, learned).map(drop),
        Task::Ordinal => OrdinalLearner::resume(settings, state, learned).map(drop),
        task => Err(Error::new(Code::DamagedModel, format!("`{}` does not learn from a stream", task.name()))),
    }
}

/// The settings of a learner inside another one, which scales its rows or judges it.
pub(crate) fn inner_settings(settings: &Settings, scale: Scale) -> Settings {
    let stochastic =
        Stochastic { early_stopping: EarlyStopping::None, judge_every: None, ..settings.stochastic.clone() };
    Settings { scale, stochastic, ..settings.clone() }
}

/// How well the examples of a stream were predicted before they were learned from, for a state that belongs to a model.
pub fn progress(settings: &Settings, state: &OnlineState, learned: &Learned<'_>) -> Option<Progress> {
    let scale = if settings.scale == Scale::Standard { Scale::None } else { settings.scale };
    let settings = &inner_settings(settings, scale);
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
