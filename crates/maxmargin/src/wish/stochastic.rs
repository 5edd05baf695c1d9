//! The settings of the stochastic solvers: how steps shrink, how constraints are drawn, and when training stops.

use serde::{Deserialize, Serialize};

/// How the step length falls with the number t of earlier steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// η₀ / (1 + λη₀t), or its power ¾ if iterates are averaged: long steps at first, about 1/(λt) in the end.
    #[default]
    Bottou,
    /// η₀ / √(t + 1): the average regret tends to 0 for any convex loss.
    InverseSquareRoot,
    /// η₀ / (t + 1): for strongly convex problems, such as these.
    Inverse,
    /// η₀ at every step.
    Constant,
}

impl Schedule {
    /// All schedules.
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

/// How the number of passes is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyStopping {
    /// All given passes are made.
    #[default]
    None,
    /// Evaluates held-out data after every pass and keeps the best model. Training stops once that model is a few
    /// passes old.
    Validation,
    /// Draws two disjoint samples. Trains on one until the loss on the other rises, then uses the same number of passes
    /// on all data.
    Subsamples,
}

impl EarlyStopping {
    /// All rules.
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

/// What has equal probability when pairs are drawn.
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
    /// All choices.
    pub const ALL: [Sample; 2] = [Sample::Pairs, Sample::Queries];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Sample::Pairs => "pairs",
            Sample::Queries => "queries",
        }
    }
}

/// What a missed margin costs a passive-aggressive step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variant {
    /// PA: no missed margin is accepted, whatever that costs.
    #[serde(rename = "pa")]
    Pa,
    /// PA-I: C times the slack.
    #[default]
    #[serde(rename = "pa-1")]
    PaI,
    /// PA-II: C times the squared slack.
    #[serde(rename = "pa-2")]
    PaIi,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 3] = [Variant::Pa, Variant::PaI, Variant::PaIi];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Pa => "pa",
            Variant::PaI => "pa-1",
            Variant::PaIi => "pa-2",
        }
    }
}

/// The settings of the stochastic solvers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Stochastic {
    /// How the step length falls; Bottou's schedule by default. Pegasos has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The first step length η₀; by default it is found on a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Number of constraints per step.
    pub batch: u32,
    /// Whether to keep the weights within ‖w‖ ≤ 1/√λ, where the optimum lies.
    pub project: bool,
    /// How the number of passes is chosen.
    pub early_stopping: EarlyStopping,
    /// What has equal probability when a ranker draws pairs; pairs by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// For passive-aggressive steps: what a missed margin costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pa_variant: Option<Variant>,
    /// For passive-aggressive steps on batches: how many of the most recent rows of each class are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservoir: Option<u32>,
    /// For passive-aggressive steps: the weights to predict with are the mean of those after each row, but for this many
    /// rows at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_from: Option<u64>,
    /// Judge after this many examples, and not at the end of each pass only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_every: Option<u64>,
    /// For a stream: the number of steps after which the first rate is found anew; by default it is found once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalibrate: Option<u64>,
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
            pa_variant: None,
            reservoir: None,
            average_from: None,
            recalibrate: None,
            judge_every: None,
        }
    }
}

impl Stochastic {
    /// The names of the settings that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let set = [
            (self.schedule.is_some(), "schedule"),
            (self.rate.is_some(), "rate"),
            (self.batch != 1, "batch"),
            (self.project, "project"),
            (self.early_stopping != EarlyStopping::None, "early-stopping"),
            (self.sample.is_some(), "sample"),
            (self.pa_variant.is_some(), "pa-variant"),
            (self.reservoir.is_some(), "reservoir"),
            (self.average_from.is_some(), "average-from"),
            (self.recalibrate.is_some(), "recalibrate"),
            (self.judge_every.is_some(), "judge-every"),
        ];
        set.into_iter().filter_map(|(set, name)| set.then_some(name)).collect()
    }
}
