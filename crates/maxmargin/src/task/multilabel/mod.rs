//! Label sets: a row has any number of labels. By calibrated separation ranking ([`Separation`]), or each label on its
//! own.

mod separation;
mod step;

pub use separation::Separation;
pub(crate) use step::solve_sides;

use super::classify::COLUMNS;
use super::{Abilities, Input, Profile};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::wish::{Intercept, LEARNING, Regularisation, Setting, Value, Wish};
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

/// The settings of label sets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MultilabelSettings {
    /// How labels are told apart.
    pub multilabel: Multilabel,
    /// The constant term of each score.
    pub intercept: Intercept,
}

/// `multilabel`
pub(super) const PROFILE: Profile = Profile {
    name: "multilabel",
    about: "Predict sets of labels",
    settings: &[
        Setting {
            name: "multilabel",
            heading: LEARNING,
            aliases: &[],
            help: "How labels are told apart: `calibrated`, one problem in which a calibration score lies between the labels \
                   of a row and the others, or `one-vs-rest`, each label on its own [default: calibrated]",
            placeholder: "FORM",
            value: Value::Name(|| Multilabel::ALL.map(Multilabel::name).to_vec()),
            place: "task.multilabel",
        },
        Setting {
            name: "intercept",
            heading: LEARNING,
            aliases: &[],
            help: "The constant terms: how common each label is [default: free]",
            placeholder: "",
            value: Value::Name(|| Intercept::ALL.map(Intercept::name).to_vec()),
            place: "task.intercept",
        },
    ],
    without: &["nu", "margin", "budget", "schedule", "rate", "batch", "project", "early-stopping"],
    loss: Loss::Logistic,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &[],
    untunable: None,
};

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
        if wish.solver.is_stochastic() {
            return bad("label sets are not learned from one random row after the other here", "leave ⟦solver⟧ out");
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
            Multilabel::OneVsRest => COLUMNS,
        }
    }
}
