//! Learning from a stream: examples as they come, in memory that does not grow with their number.
//!
//! A [`Learner`] takes examples of its task: pairs, rows, or whole lists. Each is predicted before it is learned from,
//! and the results are its [`Progress`]. At any moment it can be made into a [`Model`]. A learner that continues from such
//! a model ends with the same bytes as one that was never interrupted. The steps themselves are in [`crate::online`].

mod classification;
mod comparison;
mod judged;
mod label_sets;
mod ordinal;
mod ranking;
mod standardised;

pub use crate::online::Judgements;
pub use judged::Judge;

use crate::certificate::{Certificate, Decoder, Scorer};
use crate::data::{Dataset, Names, Scale};
use crate::error::{Code, Error, Result};
use crate::model::Model;
use crate::online::{
    ClassificationLearner, ComparisonLearner, OnlineState, OrdinalLearner, Progress, Progressive, RankingLearner,
    SetLearner,
};
use crate::settings::{Settings, Task};
use crate::wish::EarlyStopping;
use judged::Judged;
use standardised::Standardised;
use std::ops::Range;

/// A learner for a stream of examples.
pub trait Learner: Send {
    /// Number of features seen so far.
    fn features(&self) -> usize;

    /// Number of examples seen so far.
    fn seen(&self) -> u64;

    /// Number of examples in data: of pairs, rows or groups.
    fn examples(&self, data: &Dataset) -> usize;

    /// Number of examples in a step. Only a stream that is cut at multiples of it gives the bytes of one that is not cut.
    fn batch(&self) -> usize {
        1
    }

    /// How many examples should follow the first one of the next call of [`Learner::learn`] in its data, if the stream has
    /// as many: a first rate is found with them. 0 if none is due.
    fn wanted(&self) -> usize {
        0
    }

    /// How many examples may be learned from before [`Learner::wanted`] may be above 0. A call should not go beyond.
    fn until_wanted(&self) -> u64 {
        u64::MAX
    }

    /// Predicts some of the examples and then learns from them, step by step in the order of the data. The last step
    /// may have fewer examples than the others.
    fn learn(&mut self, data: &Dataset, examples: Range<usize>) -> Result<()>;

    /// The current meaning of its scores, or an error if too little was seen.
    fn decoder(&self) -> Result<Decoder>;

    /// How well examples were predicted before they were learned from.
    fn progress(&self) -> Progress;

    /// The same in detail for comparisons.
    fn compared(&self) -> Option<&Progressive> {
        None
    }

    /// How it was judged, if it stops early. A learner that has stopped learns no more.
    fn judged(&self) -> Option<&Judgements> {
        None
    }

    /// The current model, which can be saved and continued. `settings` are those of the learner, `reading` is how the
    /// data were read.
    fn model(&self, settings: &Settings, feature_names: Option<Names>, reading: Option<String>) -> Result<Model>;
}

/// A learner for these settings. If a model is given, it continues from that. With [`Scale::Standard`] every row is scaled
/// by the means and deviations of the rows up to it.
pub fn learner(settings: &Settings, from: Option<&Model>) -> Result<Box<dyn Learner>> {
    let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
    match settings.stochastic.early_stopping {
        EarlyStopping::None => {}
        EarlyStopping::Validation => return judged_learner(settings, from, None),
        EarlyStopping::Subsamples => {
            return bad(
                "the number of passes is found on samples of stored data, and a stream is read once",
                "use ⟦early-stopping=validation⟧, or `train` with a solver such as averaged-sgd",
            );
        }
    }
    match settings.scale {
        Scale::None => {}
        Scale::Standard => return Ok(Box::new(Standardised::of(settings, from)?)),
        other => {
            let message = format!("⟦scale={}⟧ needs rows that a stream has not seen yet", other.name());
            return Err(Error::new(Code::BadSetting, message)
                .help("use ⟦scale=standard⟧, which scales by the rows so far, or scale the features beforehand"));
        }
    }
    match settings.task.task() {
        Task::Compare => Ok(Box::new(match from {
            Some(model) => ComparisonLearner::from_model(model, settings)?,
            None => ComparisonLearner::new(settings)?,
        })),
        Task::Classify => Ok(Box::new(match from {
            Some(model) => ClassificationLearner::from_model(model, settings)?,
            None => ClassificationLearner::new(settings)?,
        })),
        Task::Multilabel => Ok(Box::new(match from {
            Some(model) => SetLearner::from_model(model, settings)?,
            None => SetLearner::new(settings)?,
        })),
        Task::Rank => Ok(Box::new(match from {
            Some(model) => RankingLearner::from_model(model, settings)?,
            None => RankingLearner::new(settings)?,
        })),
        Task::Ordinal => Ok(Box::new(match from {
            Some(model) => OrdinalLearner::from_model(model, settings)?,
            None => OrdinalLearner::new(settings)?,
        })),
        task => Err(Error::new(Code::Unsupported, format!("`{}` cannot be learned from a stream", task.name()))
            .help("learn another task, or train on stored data")),
    }
}

/// The same with [`EarlyStopping::Validation`], judged by held-out data if a judge is given.
pub fn judged_learner<'a>(
    settings: &Settings,
    from: Option<&Model>,
    judge: Option<Judge<'a>>,
) -> Result<Box<dyn Learner + 'a>> {
    if settings.stochastic.early_stopping != EarlyStopping::Validation {
        return Err(Error::new(Code::BadSetting, "held-out data tell when to stop, and nothing asks for that")
            .help("add ⟦early-stopping=validation⟧, or leave ⟦validation⟧ out"));
    }
    Ok(Box::new(Judged::of(settings, from, judge)?))
}

/// The objective and both forms of the weight of the loss, for a sum of losses that were measured before each example was
/// learned from.
struct Value {
    objective: f64,
    c: f64,
    lambda: f64,
}

impl Value {
    fn of(settings: &Settings, weights: &[f64], loss: f64, weight: f64) -> Result<Value> {
        let (c, lambda) = (settings.regularisation.c(weight), settings.regularisation.lambda(weight));
        let objective = 0.5 * weights.iter().map(|w| w * w).sum::<f64>() + c * loss;
        let positive = |number: f64| number > 0.0 && number.is_finite();
        if !(positive(c) && positive(lambda)) {
            let message = format!(
                "double precision cannot hold C · n and its inverse: C is {c:e}, and the weights of all examples add up \
                 to {weight:e}"
            );
            return Err(Error::new(Code::Overflow, message).help("give weights around 1, or another ⟦c⟧"));
        }
        if !objective.is_finite() {
            return Err(Error::new(Code::Overflow, "the objective is not a finite number")
                .help("give a smaller ⟦c⟧, or bring features to a common size, such as 0 to 1"));
        }
        Ok(Value { objective, c, lambda })
    }
}

/// The model of a learner: its scores and what they mean, the sum of losses and of weights, the number of examples and of
/// pairs, its state, and the names and the reading of its data.
fn made(
    settings: &Settings,
    scorer: Scorer,
    decoder: Decoder,
    ((loss, weight), (seen, pairs)): ((f64, f64), (u64, Option<u64>)),
    state: OnlineState,
    (feature_names, reading): (Option<Names>, Option<String>),
) -> Result<Model> {
    if weight == 0.0 {
        return Err(Error::new(Code::NoRows, "there was no example with a weight above zero, so nothing was learned")
            .help("give at least one example to learn from"));
    }
    let Value { objective, c, lambda } = Value::of(settings, scorer.weights().unwrap_or_default(), loss, weight)?;
    let certificate = Certificate {
        objective,
        lower_bound: None,
        constraints: seen,
        data_hash: 0,
        rows: if pairs.is_some() { 2 * seen } else { seen },
        pairs,
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
        scorer,
        decoder,
        scaling: Default::default(),
        feature_names,
        certificate,
        witness: None,
        reading,
        version: env!("CARGO_PKG_VERSION").to_string(),
        compacted: None,
        calibration: None,
        online: Some(state),
    })
}
