//! [`Setting`]: one setting, declared once for the command, settings files and other front ends.

use super::{EarlyStopping, Margin, Schedule, Solver};
use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::kernel::Approximation;
use crate::kernel::KernelKind;
use crate::loss::Loss;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name: `pair-weight` is the flag `--pair-weight`, the key of settings files, and the reference
    /// `⟦pair-weight⟧`.
    pub name: &'static str,
    /// Its heading in the help of the command.
    pub heading: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// What it does, and its default. Other settings are named by references.
    pub help: &'static str,
    /// The placeholder for the value in help texts; empty if the value is one of some names.
    pub placeholder: &'static str,
    /// The values that it accepts.
    pub value: Value,
    /// Its path in [`crate::settings::Settings`] as JSON: keys from outside to inside, separated by dots. A last part
    /// in brackets replaces the existing value instead of being added to it.
    pub place: &'static str,
}

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// One of some names.
    Name(fn() -> Vec<&'static str>),
    /// On or off.
    Switch,
    /// A number, with the words for its range.
    Number(Range),
    /// A whole number from the first to the last.
    Whole(u64, u64),
    /// A number of bytes, such as 4GiB.
    Size,
    /// Text that a function checks.
    Parsed(fn(&str) -> Result<()>),
    /// Some words, separated by commas.
    Words,
    /// The name of a class, which may be a number.
    Label,
    /// `balanced`, or LABEL=W,LABEL=W.
    ClassWeights,
}

/// The range of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Above zero.
    Positive,
    /// Zero or above.
    NotNegative,
    /// Above 0 and at most 1.
    Share,
    /// Above 0 and below 1.
    Fraction,
    /// Any number that is finite.
    Finite,
}

impl Range {
    /// Whether a number is in the range.
    pub fn holds(self, number: f64) -> bool {
        number.is_finite()
            && match self {
                Range::Positive => number > 0.0,
                Range::NotNegative => number >= 0.0,
                Range::Share => number > 0.0 && number <= 1.0,
                Range::Fraction => number > 0.0 && number < 1.0,
                Range::Finite => true,
            }
    }

    /// The range in words, to follow "must be".
    pub fn words(self) -> &'static str {
        match self {
            Range::Positive => "a positive number",
            Range::NotNegative => "zero or a positive number",
            Range::Share => "above 0 and at most 1",
            Range::Fraction => "between 0 and 1",
            Range::Finite => "a finite number",
        }
    }
}

/// A value as a front end passes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// On or off.
    Switch(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A name, or any text.
    Text(String),
    /// Some words.
    Words(Vec<String>),
    /// A weight for each label.
    Weights(BTreeMap<String, f64>),
}

/// Settings by their names.
pub type Chosen = BTreeMap<String, Choice>;

impl Setting {
    /// Returns the value as the settings store it, or an error if it has the wrong kind or is out of range.
    pub fn checked(&self, choice: &Choice) -> Result<serde_json::Value> {
        let name = self.name;
        let bad = |message: String, help: String| Err(Error::new(Code::BadSetting, message).help(help));
        let json = |value: serde_json::Value| Ok(value);
        match (self.value, choice) {
            (Value::Name(names), Choice::Text(text)) if names().contains(&text.as_str()) => json(text.as_str().into()),
            (Value::Name(names), _) => {
                bad(format!("{name} = {} is not known", choice.shown()), format!("use one of {}", names().join(", ")))
            }
            (Value::Switch, Choice::Switch(on)) => json((*on).into()),
            (Value::Number(range), Choice::Number(number)) if range.holds(*number) => json((*number).into()),
            (Value::Number(range), Choice::Whole(number)) if range.holds(*number as f64) => {
                json((*number as f64).into())
            }
            (Value::Number(range), _) => bad(
                format!("{} is {}, and must be {}", self.reference(), choice.shown(), range.words()),
                format!("give {} {}", self.reference(), self.example()),
            ),
            (Value::Whole(low, high), Choice::Whole(number)) if (low..=high).contains(number) => json((*number).into()),
            (Value::Whole(low, high), _) => {
                let most = if high >= u64::from(u32::MAX) { String::from("on") } else { format!("to {high}") };
                bad(
                    format!("{} is {}, and must be a whole number from {low} {most}", self.reference(), choice.shown()),
                    format!("give {} {}", self.reference(), self.example()),
                )
            }
            (Value::Size, Choice::Whole(bytes)) if *bytes > 0 => json((*bytes).into()),
            (Value::Size, Choice::Text(text)) => match text.parse::<crate::wording::Size>() {
                Ok(size) => json(size.0.into()),
                Err(why) => bad(format!("{} = `{text}`: {why}", self.reference()), "write 4GiB or 512MiB".to_string()),
            },
            (Value::Parsed(check), Choice::Text(text)) => {
                check(text)?;
                json(text.as_str().into())
            }
            (Value::Label, Choice::Text(text)) => json(text.as_str().into()),
            (Value::Words, Choice::Words(words)) => json(words.clone().into()),
            (Value::Words, Choice::Text(text)) => json(text.split(',').collect::<Vec<_>>().into()),
            (Value::Label, Choice::Whole(number)) => json(number.to_string().into()),
            (Value::Label, Choice::Number(number)) => json(number.to_string().into()),
            (Value::ClassWeights, Choice::Text(text)) => class_weights(text),
            (Value::ClassWeights, Choice::Weights(weights)) => {
                weights.iter().try_for_each(|(label, weight)| finite_weight(label, *weight))?;
                json(serde_json::json!({ "by-label": weights }))
            }
            _ => bad(format!("{} cannot be {}", self.reference(), choice.shown()), format!("give {}", self.example())),
        }
    }

    /// What it is called in messages: a reference, see [`crate::wording::render`].
    pub fn reference(&self) -> String {
        format!("⟦{}⟧", self.name)
    }

    fn example(&self) -> &'static str {
        match self.value {
            Value::Name(_) => "one of its names",
            Value::Switch => "true or false",
            Value::Number(Range::Share | Range::Fraction) => "a value such as 0.1",
            Value::Number(_) => "a value such as 1 or 0.01",
            Value::Whole(..) => "a whole number",
            Value::Size => "a size such as 4GiB",
            Value::Parsed(_) => "text",
            Value::Words => "words, separated by commas",
            Value::Label => "a label",
            Value::ClassWeights => "`balanced`, or LABEL=W,LABEL=W",
        }
    }
}

impl Choice {
    fn shown(&self) -> String {
        match self {
            Choice::Text(_) | Choice::Words(_) => format!("`{self}`"),
            Choice::Weights(_) => "a table of weights".to_string(),
            _ => self.to_string(),
        }
    }
}

/// The value as a user types it.
impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Choice::Switch(on) => on.fmt(f),
            Choice::Whole(number) => number.fmt(f),
            Choice::Number(number) => number.fmt(f),
            Choice::Text(text) => f.write_str(text),
            Choice::Words(words) => f.write_str(&words.join(",")),
            Choice::Weights(weights) => {
                let weights: Vec<String> = weights.iter().map(|(label, weight)| format!("{label}={weight}")).collect();
                f.write_str(&weights.join(","))
            }
        }
    }
}

/// Refuses weights that JSON cannot hold.
fn finite_weight(label: &str, weight: f64) -> Result<()> {
    if weight.is_finite() {
        return Ok(());
    }
    let message = format!("the weight of class `{label}` is {weight}, and must be zero or a positive number");
    Err(Error::new(Code::BadSetting, message).help("give it a weight such as 1 or 5"))
}

fn class_weights(text: &str) -> Result<serde_json::Value> {
    if matches!(text, "balanced" | "equal") {
        return Ok(text.into());
    }
    let mut weights = BTreeMap::new();
    for part in text.split(',') {
        let parsed =
            part.rsplit_once('=').and_then(|(label, weight)| Some((label, weight.trim().parse::<f64>().ok()?)));
        let Some((label, weight)) = parsed else {
            return Err(Error::new(Code::BadSetting, format!("`{part}` is not a class weight"))
                .help("write ⟦class-weight=balanced⟧, or LABEL=W,LABEL=W such as spam=5,ham=1"));
        };
        finite_weight(label.trim(), weight)?;
        if weights.insert(label.trim().to_string(), weight).is_some() {
            return Err(Error::new(Code::BadSetting, format!("class `{}` is given two weights", label.trim()))
                .help("give each class one weight"));
        }
    }
    Ok(serde_json::json!({ "by-label": weights }))
}

/// Headings of the command's help.
pub(crate) const LEARNING: &str = "Learning";
const KERNEL: &str = "Kernels";
pub(crate) const STOCHASTIC: &str = "Stochastic solvers (sgd, averaged-sgd, pegasos)";

/// The settings of all tasks. A task may leave some of them out.
pub const COMMON: &[Setting] = &[
    Setting {
        name: "loss",
        heading: LEARNING,
        aliases: &[],
        help: "What a violated margin costs",
        placeholder: "",
        value: Value::Name(|| Loss::ALL.map(Loss::name).to_vec()),
        place: "loss",
    },
    Setting {
        name: "c",
        heading: LEARNING,
        aliases: &[],
        help: "The weight of the sum of losses against ½‖w‖²",
        placeholder: "C",
        value: Value::Number(Range::Positive),
        place: "regularisation.(c)",
    },
    Setting {
        name: "lambda",
        heading: LEARNING,
        aliases: &[],
        help: "The same in the mean form: lambda = 1 / (C · n)",
        placeholder: "L",
        value: Value::Number(Range::Positive),
        place: "regularisation.(lambda)",
    },
    Setting {
        name: "nu",
        heading: LEARNING,
        aliases: &[],
        help: "Instead of ⟦c⟧: the largest share of rows or pairs that may miss the margin; training finds the \
               matching C. For the hinge loss, with any kernel",
        placeholder: "NU",
        value: Value::Number(Range::Share),
        place: "regularisation.(nu)",
    },
    Setting {
        name: "margin",
        heading: LEARNING,
        aliases: &[],
        help: "`hard` reaches every margin with the smallest weights, without ⟦c⟧ and ⟦loss⟧, or names the rows that \
               contradict each other; `soft` lets margins be missed at a cost [default: soft]",
        placeholder: "",
        value: Value::Name(|| Margin::ALL.map(Margin::name).to_vec()),
        place: "margin",
    },
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "The solver; `quadratic-program` and `linear-program` are for ⟦margin=hard⟧, and imply it [default: auto]",
        placeholder: "",
        value: Value::Name(|| Solver::ALL.map(Solver::name).to_vec()),
        place: "solver",
    },
    Setting {
        name: "scale",
        heading: LEARNING,
        aliases: &[],
        help: "How to scale features, learned on the training data and kept in the model [default: none]",
        placeholder: "",
        value: Value::Name(|| Scale::ALL.map(Scale::name).to_vec()),
        place: "scale",
    },
    Setting {
        name: "tolerance",
        heading: LEARNING,
        aliases: &[],
        help: "Stop at this relative gap between objective and lower bound [default: 1e-3]",
        placeholder: "GAP",
        value: Value::Number(Range::NotNegative),
        place: "tolerance",
    },
    Setting {
        name: "max-passes",
        heading: LEARNING,
        aliases: &[],
        help: "The largest number of passes over the data [default: 1000; 20 for sgd, averaged-sgd and pegasos, which \
               make all of them; 1 for lasvm]",
        placeholder: "N",
        value: Value::Whole(0, u64::MAX),
        place: "max-passes",
    },
    Setting {
        name: "max-seconds",
        heading: LEARNING,
        aliases: &[],
        help: "Stop at the end of the pass that exceeds this time, with the best model so far. The same seed then no longer \
               gives the same bytes [default: no limit]",
        placeholder: "S",
        value: Value::Number(Range::Positive),
        place: "max-seconds",
    },
    Setting {
        name: "polish",
        heading: LEARNING,
        aliases: &[],
        help: "Continue to the last digits of double precision, whatever that costs. Without it, small problems are \
               polished if that costs no more than the training",
        placeholder: "",
        value: Value::Switch,
        place: "polish",
    },
    Setting {
        name: "seed",
        heading: LEARNING,
        aliases: &[],
        help: "Seeds everything random: the same seed gives the same bytes [default: 0]",
        placeholder: "S",
        value: Value::Whole(0, u64::MAX),
        place: "seed",
    },
    Setting {
        name: "kernel",
        heading: KERNEL,
        aliases: &[],
        help: "How two rows are compared: `linear` learns weights, the others a sum over support vectors [default: linear]",
        placeholder: "",
        value: Value::Name(|| KernelKind::ALL.map(KernelKind::name).to_vec()),
        place: "kernel.kind",
    },
    Setting {
        name: "gamma",
        heading: KERNEL,
        aliases: &[],
        help: "γ of the kernel, as in exp(−γ‖x − z‖²); found on a sample of the rows if not given",
        placeholder: "G",
        value: Value::Number(Range::Finite),
        place: "kernel.gamma",
    },
    Setting {
        name: "degree",
        heading: KERNEL,
        aliases: &[],
        help: "The power of the polynomial kernel, (γ x·z + r)^d [default: 3]",
        placeholder: "D",
        value: Value::Whole(0, u32::MAX as u64),
        place: "kernel.degree",
    },
    Setting {
        name: "coef0",
        heading: KERNEL,
        aliases: &[],
        help: "r of the polynomial and the sigmoid kernel [default: 0]",
        placeholder: "R",
        value: Value::Number(Range::Finite),
        place: "kernel.coef0",
    },
    Setting {
        name: "approximate",
        heading: KERNEL,
        aliases: &[],
        help: "Approximate the kernel by new features, so that any linear solver can be used: nystrom:M, kernel \
               values with M random rows, or fourier:D, D random waves (gaussian kernel only); the approximation \
               error is measured and printed",
        placeholder: "MAP",
        value: Value::Parsed(|text| text.parse::<Approximation>().map(drop)),
        place: "kernel.approximate",
    },
    Setting {
        name: "kernel-cache",
        heading: KERNEL,
        aliases: &[],
        help: "Memory for kernel rows, such as 2GiB; it affects only the time [default: 4GiB]",
        placeholder: "SIZE",
        value: Value::Size,
        place: "kernel.cache",
    },
    Setting {
        name: "budget",
        heading: KERNEL,
        aliases: &[],
        help: "The largest number of support vectors, for ⟦solver=sgd⟧ or pegasos; beyond it, those with the \
               smallest coefficients are merged [default: no limit]",
        placeholder: "N",
        value: Value::Whole(0, u32::MAX as u64),
        place: "kernel.budget",
    },
    Setting {
        name: "schedule",
        heading: STOCHASTIC,
        aliases: &[],
        help: "How steps shrink: bottou is E/(1 + lambda·E·t), inverse-square-root E/√t, inverse E/t [default: bottou]",
        placeholder: "",
        value: Value::Name(|| Schedule::ALL.map(Schedule::name).to_vec()),
        place: "stochastic.schedule",
    },
    Setting {
        name: "rate",
        heading: STOCHASTIC,
        aliases: &[],
        help: "The first rate of the schedule; found on a sample of the data if not given",
        placeholder: "E",
        value: Value::Number(Range::Positive),
        place: "stochastic.rate",
    },
    Setting {
        name: "batch",
        heading: STOCHASTIC,
        aliases: &[],
        help: "Rows or pairs per step [default: 1]",
        placeholder: "N",
        value: Value::Whole(1, u32::MAX as u64),
        place: "stochastic.batch",
    },
    Setting {
        name: "project",
        heading: STOCHASTIC,
        aliases: &[],
        help: "Keep the weights in the ball of radius 1/√lambda, which contains the optimum",
        placeholder: "",
        value: Value::Switch,
        place: "stochastic.project",
    },
    Setting {
        name: "early-stopping",
        heading: STOCHASTIC,
        aliases: &[],
        help: "Stop when the result on held-out data gets worse and keep the best model (validation), or find \
               the number of passes on two samples of the training data (subsamples) [default: none]",
        placeholder: "",
        value: Value::Name(|| EarlyStopping::ALL.map(EarlyStopping::name).to_vec()),
        place: "stochastic.early-stopping",
    },
    Setting {
        name: "judge-every",
        heading: STOCHASTIC,
        aliases: &[],
        help: "For ⟦early-stopping=validation⟧: judge the held-out data after every N rows or pairs, and not after passes \
               only, so that training may end within the first one [default: after each pass]",
        placeholder: "N",
        value: Value::Whole(1, u64::MAX >> 1),
        place: "stochastic.judge-every",
    },
];
