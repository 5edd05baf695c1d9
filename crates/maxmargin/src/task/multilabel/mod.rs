//! Label sets: a row has any number of labels. By calibrated separation ranking ([`Separation`]), or each label on its
//! own.

mod separation;
mod step;

pub use separation::Separation;
pub(crate) use separation::separation_loss;
pub(crate) use step::{solve_sides, two_labels};

use super::classify::COLUMNS;
use super::{Abilities, Input, Profile, is_default};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::wish::{
    Intercept, LEARNING, Regularisation, STREAM_BATCH, STREAM_C, STREAM_EARLY_STOPPING, STREAM_JUDGE_EVERY,
    STREAM_LAMBDA, STREAM_LOSS, STREAM_RATE, STREAM_RECALIBRATE, STREAM_SCALE, STREAM_SCHEDULE, Setting, Solver, Value,
    Wish,
};
use serde::{Deserialize, Serialize};

/// How labels are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multilabel {
    /// One problem: a calibration score lies between the labels of a row and the others.
    #[default]
    Calibrated,
    /// Each label on its own, as two classes.
    OneVsRest,
}

impl Multilabel {
    /// Both.
    pub const ALL: [Multilabel; 2] = [Multilabel::Calibrated, Multilabel::OneVsRest];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Multilabel::Calibrated => "calibrated",
            Multilabel::OneVsRest => "one-vs-rest",
        }
    }
}

/// Which labels a passive-aggressive step moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetStep {
    /// All that the exact step moves.
    #[default]
    Exact,
    /// The worst label of the row, and the worst other one.
    TwoLabels,
}

impl SetStep {
    /// Both.
    pub const ALL: [SetStep; 2] = [SetStep::Exact, SetStep::TwoLabels];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            SetStep::Exact => "exact",
            SetStep::TwoLabels => "two-labels",
        }
    }
}

/// The settings of label sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MultilabelSettings {
    /// How labels are told apart.
    pub multilabel: Multilabel,
    /// The constant term of each score.
    pub intercept: Intercept,
    /// For streams: which labels a step moves.
    #[serde(skip_serializing_if = "is_default")]
    pub step: SetStep,
    /// For streams: the labels, if no others may appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
}

impl Default for MultilabelSettings {
    /// Constants are penalised: a free one has no optimum with the logistic loss if no row has the label, or every row.
    fn default() -> MultilabelSettings {
        MultilabelSettings {
            multilabel: Multilabel::default(),
            intercept: Intercept::Penalised,
            step: SetStep::default(),
            classes: None,
        }
    }
}

/// `multilabel`
pub(super) const PROFILE: Profile = Profile {
    name: "multilabel",
    about: "Predict sets of labels",
    settings: &[FORM, INTERCEPT],
    without: &["nu", "margin", "budget", "schedule", "rate", "batch", "project", "early-stopping", "judge-every"],
    loss: Loss::Logistic,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &STREAMED,
    untunable: None,
};

/// How labels are told apart.
const FORM: Setting = Setting {
    name: "multilabel",
    heading: LEARNING,
    aliases: &[],
    help: "How labels are told apart: `calibrated`, one problem in which a calibration score lies between the labels of a row \
           and the others, or `one-vs-rest`, each label on its own [default: calibrated]",
    placeholder: "FORM",
    value: Value::Name(|| Multilabel::ALL.map(Multilabel::name).to_vec()),
    place: "task.multilabel",
};

/// The constant terms.
const INTERCEPT: Setting = Setting {
    name: "intercept",
    heading: LEARNING,
    aliases: &[],
    help: "The constant terms: how common each label is [default: penalised]",
    placeholder: "",
    value: Value::Name(|| Intercept::ALL.map(Intercept::name).to_vec()),
    place: "task.intercept",
};

/// The settings for learning label sets from a stream.
const STREAMED: [Setting; 15] = [
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "How to step [default: passive-aggressive]",
        placeholder: "",
        value: Value::Name(|| {
            [Solver::PassiveAggressive, Solver::AveragedSgd, Solver::Sgd, Solver::Pegasos].map(Solver::name).to_vec()
        }),
        place: "solver",
    },
    FORM,
    Setting {
        help: "What a missed margin costs [default: hinge for passive-aggressive steps, which take no other; else logistic]",
        ..STREAM_LOSS
    },
    Setting {
        help: "The most that a row may move each side of the border: the aggressiveness of passive-aggressive steps [default: \
               0.1]",
        ..STREAM_C
    },
    STREAM_LAMBDA,
    INTERCEPT,
    Setting {
        name: "step",
        heading: LEARNING,
        aliases: &[],
        help: "Which labels a passive-aggressive step moves: all that the exact step moves, or the worst label of the row and \
               the worst other one [default: exact]",
        placeholder: "",
        value: Value::Name(|| SetStep::ALL.map(SetStep::name).to_vec()),
        place: "task.step",
    },
    Setting {
        name: "classes",
        heading: LEARNING,
        aliases: &[],
        help: "The labels, separated by commas; another label is then an error [default: labels appear in the course of the \
               stream]",
        placeholder: "LABELS",
        value: Value::Words,
        place: "task.classes",
    },
    STREAM_SCHEDULE,
    STREAM_RATE,
    STREAM_RECALIBRATE,
    STREAM_BATCH,
    STREAM_SCALE,
    STREAM_EARLY_STOPPING,
    STREAM_JUDGE_EVERY,
];

/// What the calibrated form offers to solvers.
const CALIBRATED: Abilities = Abilities { drawn: false, several: true, ..Abilities::SUMMED };

impl MultilabelSettings {
    /// Refuses what label sets do not have.
    pub(super) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if wish.hard {
            return bad("label sets have no hard margin", "leave ⟦solver⟧ out, or set a large ⟦c⟧");
        }
        if wish.regularisation.is_nu() {
            return bad("⟦nu⟧ is for one score, and every label has one", "use ⟦c⟧ or ⟦lambda⟧ instead");
        }
        if self.multilabel == Multilabel::Calibrated && wish.loss == Loss::SquaredHinge {
            return bad(
                "the calibrated form counts the largest violation of a row, and has no squared hinge",
                "use ⟦loss=logistic⟧ or ⟦loss=hinge⟧, or ⟦multilabel=one-vs-rest⟧",
            );
        }
        Ok(())
    }

    /// The meaning of the scores.
    pub(super) fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        let labels = Labels::of_sets(data.targets())?;
        Ok(Decoder::Sets { labels, calibrated: self.multilabel == Multilabel::Calibrated })
    }

    /// Whether a model of this task has such a decoder and intercepts.
    pub(super) fn makes(&self, decoder: &Decoder, intercepts: usize) -> bool {
        let Decoder::Sets { calibrated, .. } = decoder else { return false };
        *calibrated == (self.multilabel == Multilabel::Calibrated)
            && intercepts == if self.intercept == Intercept::None { 0 } else { decoder.outputs() }
    }

    /// What it offers to solvers.
    pub(super) fn abilities(&self) -> Abilities {
        match self.multilabel {
            Multilabel::Calibrated => CALIBRATED,
            Multilabel::OneVsRest => Abilities { drawn: false, ..COLUMNS },
        }
    }
}
