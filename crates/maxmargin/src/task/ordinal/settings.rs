//! The settings of ratings.

use super::super::classify::PROBABILITY;
use super::super::weight_as::{WEIGHT_AS, WeightAs};
use super::super::{Abilities, ClassWeight, Input, Profile, is_default};
use crate::certificate::{Decoder, Probability};
use crate::data::{Dataset, Labels};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::wish::{
    LEARNING, Regularisation, STREAM_BATCH, STREAM_C, STREAM_EARLY_STOPPING, STREAM_JUDGE_EVERY, STREAM_LAMBDA,
    STREAM_LOSS, STREAM_RATE, STREAM_RECALIBRATE, STREAM_SCALE, STREAM_SCHEDULE, Setting, Solver, Value, Wish,
};
use serde::{Deserialize, Serialize};

/// Which cuts count for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrdinalForm {
    /// All of them: a rank that is further off costs more.
    #[default]
    Implicit,
    /// The two next to its rank, and the cuts are kept in order.
    Explicit,
}

impl OrdinalForm {
    /// Both.
    pub const ALL: [OrdinalForm; 2] = [OrdinalForm::Implicit, OrdinalForm::Explicit];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            OrdinalForm::Implicit => "implicit",
            OrdinalForm::Explicit => "explicit",
        }
    }
}

/// The settings of ratings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OrdinalSettings {
    /// Which cuts count for a row.
    pub form: OrdinalForm,
    /// How much each rank counts.
    pub class_weight: ClassWeight,
    /// How the weights of rows are used.
    #[serde(skip_serializing_if = "is_default")]
    pub weight_as: WeightAs,
    /// How scores become probabilities of ranks, if that is to be fitted.
    #[serde(skip_serializing_if = "is_default")]
    pub probability: Option<Probability>,
    /// For a stream: its ranks, if no others may appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
}

/// `ordinal`
pub(in crate::task) const PROFILE: Profile = Profile {
    name: "ordinal",
    about: "Predict ratings: ranks in order",
    settings: &[
        FORM,
        Setting {
            name: "class-weight",
            heading: LEARNING,
            aliases: &[],
            help: "Weights of the ranks: `balanced`, or RANK=W,RANK=W",
            placeholder: "WEIGHTS",
            value: Value::ClassWeights,
            place: "task.class-weight",
        },
        WEIGHT_AS,
        PROBABILITY,
    ],
    without: &["budget", "schedule", "rate", "batch", "project", "early-stopping", "judge-every", "nu"],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &STREAMED,
    untunable: None,
};

/// Which cuts count for a row.
const FORM: Setting = Setting {
    name: "form",
    heading: LEARNING,
    aliases: &[],
    help: "Which cuts count for a row: all of them, so that a rank further off costs more, or the two next to \
           its rank [default: implicit]",
    placeholder: "",
    value: Value::Name(|| OrdinalForm::ALL.map(OrdinalForm::name).to_vec()),
    place: "task.form",
};

/// The settings for learning ratings from a stream.
const STREAMED: [Setting; 14] = [
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "How to step [default: averaged-sgd]",
        placeholder: "",
        value: Value::Name(|| {
            [Solver::AveragedSgd, Solver::Sgd, Solver::Pegasos, Solver::PassiveAggressive].map(Solver::name).to_vec()
        }),
        place: "solver",
    },
    STREAM_LOSS,
    STREAM_C,
    STREAM_LAMBDA,
    FORM,
    Setting {
        name: "class-weight",
        heading: LEARNING,
        aliases: &[],
        help: "Weights of the ranks: RANK=W,RANK=W",
        placeholder: "WEIGHTS",
        value: Value::ClassWeights,
        place: "task.class-weight",
    },
    Setting {
        name: "classes",
        heading: LEARNING,
        aliases: &[],
        help: "The ranks, separated by commas; another rank is then an error [default: ranks appear in the course of the \
               stream]",
        placeholder: "RANKS",
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

impl OrdinalSettings {
    /// Refuses invalid weights, and solvers that do not keep cuts in order.
    pub(in crate::task) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        self.class_weight.refuse()?;
        if wish.regularisation.is_nu() {
            return Err(Error::new(Code::BadSetting, "ratings have no ⟦nu⟧").help("use ⟦c⟧ instead"));
        }
        self.weight_as.refuse(wish.loss, false)?;
        if self.form == OrdinalForm::Explicit && wish.solver == Solver::CuttingPlane {
            return Err(Error::new(
                Code::BadSetting,
                "cutting planes do not keep the cuts of the explicit form in order",
            )
            .help("leave ⟦solver⟧ out, or use ⟦form=implicit⟧"));
        }
        Ok(())
    }

    /// The meaning of the scores, with all cuts at zero.
    pub(in crate::task) fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        let ranks = Labels::ranks(data.targets())?;
        Ok(Decoder::Cuts { cuts: vec![0.0; ranks.len() - 1], ranks })
    }

    /// Whether a model of this task has such a decoder and intercepts.
    pub(in crate::task) fn makes(&self, decoder: &Decoder, intercepts: usize) -> bool {
        let Decoder::Cuts { cuts, ranks } = decoder else { return false };
        let whole = ranks.len() > 1 && cuts.len() + 1 == ranks.len() && ranks.values().is_some();
        whole && intercepts == 0 && cuts.is_sorted() && cuts.iter().all(|cut| cut.is_finite())
    }

    /// What it offers to solvers.
    pub(in crate::task) fn abilities(&self) -> Abilities {
        Abilities { drawn: false, cuts: true, ..Abilities::LISTED }
    }
}
