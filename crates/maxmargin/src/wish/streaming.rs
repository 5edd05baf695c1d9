//! The settings that tasks share when they learn from a stream.

use super::{LEARNING, Range, STOCHASTIC, Schedule, Setting, Value};
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
    help: "The first rate E of the schedule, for sgd and averaged-sgd [default: 0.1]",
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
