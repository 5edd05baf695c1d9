//! What only the stochastic solvers take: how steps shrink, what they learn from, and when they end.

use serde::{Deserialize, Serialize};

/// How the length of a step falls with the number of steps t made before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// η₀ / (1 + λη₀t), or its power ¾ where iterates are averaged: long steps first, 1/(λt) in the end.
    #[default]
    Bottou,
    /// η₀ / √(t + 1): no regret on any convex loss.
    InverseSquareRoot,
    /// η₀ / (t + 1): for strongly convex problems, such as these.
    Inverse,
    /// η₀ for ever.
    Constant,
}

impl Schedule {
    /// Every schedule there is.
    pub const ALL: [Schedule; 4] =
        [Schedule::Bottou, Schedule::InverseSquareRoot, Schedule::Inverse, Schedule::Constant];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Bottou => "bottou",
            Schedule::InverseSquareRoot => "inverse-square-root",
            Schedule::Inverse => "inverse",
            Schedule::Constant => "constant",
        }
    }
}

/// How the number of passes is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyStopping {
    /// All passes asked for are made.
    #[default]
    None,
    /// Held-out data are judged after every pass; the best model is kept, and training ends once it is a few passes old.
    Validation,
    /// Two disjoint samples are taken: one is learned from until the loss on the other rises; then all data get as many
    /// passes.
    Subsamples,
}

impl EarlyStopping {
    /// Every way there is.
    pub const ALL: [EarlyStopping; 3] = [EarlyStopping::None, EarlyStopping::Validation, EarlyStopping::Subsamples];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            EarlyStopping::None => "none",
            EarlyStopping::Validation => "validation",
            EarlyStopping::Subsamples => "subsamples",
        }
    }
}

/// What is equally likely when pairs are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// Every pair.
    #[default]
    Pairs,
    /// Every query, and within it every pair.
    Queries,
}

impl Sample {
    /// Every way there is.
    pub const ALL: [Sample; 2] = [Sample::Pairs, Sample::Queries];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Sample::Pairs => "pairs",
            Sample::Queries => "queries",
        }
    }
}

/// What only the stochastic solvers take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Stochastic {
    /// How the length of the steps falls; that of Bottou unless given. Pegasos has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The first rate η₀; found on a sample unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Constraints a step.
    pub batch: u32,
    /// Whether weights are kept within ‖w‖ ≤ 1/√λ, where the optimum is.
    pub project: bool,
    /// How the number of passes is found.
    pub early_stopping: EarlyStopping,
    /// What is equally likely when a ranker draws pairs; pairs unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

impl Default for Stochastic {
    fn default() -> Stochastic {
        Stochastic {
            schedule: None,
            rate: None,
            batch: 1,
            project: false,
            early_stopping: EarlyStopping::None,
            sample: None,
        }
    }
}

impl Stochastic {
    /// The names of what is set.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let set = [
            (self.schedule.is_some(), "schedule"),
            (self.rate.is_some(), "rate"),
            (self.batch != 1, "batch"),
            (self.project, "project"),
            (self.early_stopping != EarlyStopping::None, "early-stopping"),
            (self.sample.is_some(), "sample"),
        ];
        set.into_iter().filter_map(|(set, name)| set.then_some(name)).collect()
    }
}
