//! The settings that tasks share when they learn from a stream.

use super::{EarlyStopping, LEARNING, Range, STOCHASTIC, Schedule, Setting, Value, Variant};
use crate::data::Scale;
use crate::loss::Loss;

/// What a missed margin costs.
pub(crate) const STREAM_LOSS: Setting = Setting {
    name: "loss",
    heading: LEARNING,
    aliases: &[],
    help: "What a missed margin costs [default: hinge]",
    placeholder: "",
    value: Value::Name(|| Loss::ALL.map(Loss::name).to_vec()),
    place: "loss",
};

/// The limit of passive-aggressive steps.
pub(crate) const STREAM_C: Setting = Setting {
    name: "c",
    heading: LEARNING,
    aliases: &[],
    help: "The most that one example may move the weights: the aggressiveness of passive-aggressive steps [default: 0.1]",
    placeholder: "C",
    value: Value::Number(Range::Positive),
    place: "regularisation.(c)",
};

/// The weight of the penalty. A stream has no known number of examples, so that C would have no meaning for gradient
/// steps.
pub(crate) const STREAM_LAMBDA: Setting = Setting {
    name: "lambda",
    heading: LEARNING,
    aliases: &[],
    help: "The strength of regularisation, against the mean of losses [default: 1e-4]",
    placeholder: "L",
    value: Value::Number(Range::Positive),
    place: "regularisation.(lambda)",
};

/// How gradient steps shrink.
pub(crate) const STREAM_SCHEDULE: Setting = Setting {
    name: "schedule",
    heading: STOCHASTIC,
    aliases: &[],
    help: "How steps shrink, for sgd and averaged-sgd: bottou is E/(1 + lambda·E·t), inverse-square-root E/√t, inverse \
           E/t [default: bottou]",
    placeholder: "",
    value: Value::Name(|| Schedule::ALL.map(Schedule::name).to_vec()),
    place: "stochastic.schedule",
};

/// Their first length.
pub(crate) const STREAM_RATE: Setting = Setting {
    name: "rate",
    heading: STOCHASTIC,
    aliases: &[],
    help: "The first rate E of the schedule, for sgd and averaged-sgd [default: found on the \
           first examples]",
    placeholder: "E",
    value: Value::Number(Range::Positive),
    place: "stochastic.rate",
};

/// Examples per step.
pub(crate) const STREAM_BATCH: Setting = Setting {
    name: "batch",
    heading: STOCHASTIC,
    aliases: &[],
    help: "Examples per step [default: 1]",
    placeholder: "N",
    value: Value::Whole(1, u32::MAX as u64),
    place: "stochastic.batch",
};

/// When the first length is found anew.
pub(crate) const STREAM_RECALIBRATE: Setting = Setting {
    name: "recalibrate",
    heading: STOCHASTIC,
    aliases: &[],
    help: "Find the first rate anew after every N steps, such as 100000, for streams that drift [default: once]",
    placeholder: "N",
    value: Value::Whole(1, u64::MAX >> 1),
    place: "stochastic.recalibrate",
};

/// What a missed margin costs such a step.
pub(crate) const PA_VARIANT: Setting = Setting {
    name: "pa-variant",
    heading: STOCHASTIC,
    aliases: &[],
    help: "What a missed margin costs a passive-aggressive step: pa accepts none, pa-1 pays C times the slack, pa-2 C \
           times its square [default: pa-1]",
    placeholder: "",
    value: Value::Name(|| Variant::ALL.map(Variant::name).to_vec()),
    place: "stochastic.pa-variant",
};

/// Rows for balanced batches.
pub(crate) const STREAM_RESERVOIR: Setting = Setting {
    name: "reservoir",
    heading: STOCHASTIC,
    aliases: &[],
    help: "How many of the most recent rows of each class the paired solvers keep, to fill batches with as many rows of \
           one class as of the other; 12 bytes for each value of a sparse row [default: 128]",
    placeholder: "N",
    value: Value::Whole(1, 1 << 24),
    place: "stochastic.reservoir",
};

/// Averaged passive-aggressive steps.
pub(crate) const STREAM_AVERAGE: Setting = Setting {
    name: "average-from",
    heading: STOCHASTIC,
    aliases: &[],
    help: "Predict with the mean of the weights after each row instead of the last ones, leaving out the first N rows; for \
           passive-aggressive steps",
    placeholder: "N",
    value: Value::Whole(0, 1 << 53),
    place: "stochastic.average-from",
};

/// Scaling by the rows so far.
pub(crate) const STREAM_SCALE: Setting = Setting {
    name: "scale",
    heading: LEARNING,
    aliases: &[],
    help: "standard divides every feature by its standard deviation over the rows so far, and subtracts its mean from rows of \
           tables, but not from sparse rows; the model keeps the scaling [default: none]",
    placeholder: "",
    value: Value::Name(|| [Scale::None, Scale::Standard].map(Scale::name).to_vec()),
    place: "scale",
};

/// When reading ends.
pub(crate) const STREAM_EARLY_STOPPING: Setting = Setting {
    name: "early-stopping",
    heading: STOCHASTIC,
    aliases: &[],
    help: "validation ends the stream when it does not get better any more: at the third judgement in a row that is no \
           better than the best one, by ⟦validation⟧, or else by the mean loss of the examples since the last judgement, \
           each predicted before it is learned from [default: none]",
    placeholder: "",
    value: Value::Name(|| EarlyStopping::ALL.map(EarlyStopping::name).to_vec()),
    place: "stochastic.early-stopping",
};

/// How often that is found out.
pub(crate) const STREAM_JUDGE_EVERY: Setting = Setting {
    name: "judge-every",
    heading: STOCHASTIC,
    aliases: &[],
    help: "Examples between two judgements of ⟦early-stopping=validation⟧ [default: 10000]",
    placeholder: "N",
    value: Value::Whole(1, u64::MAX >> 1),
    place: "stochastic.judge-every",
};
