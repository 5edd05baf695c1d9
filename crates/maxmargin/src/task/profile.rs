//! The list of tasks: what is known of each before there are data.

use super::{
    ClassifySettings, CompareSettings, Method, OneClassSettings, RankSettings, binary, comparison, one_class, ranking,
};
use crate::certificate::Decoder;
use crate::data::Dataset;
use crate::error::Result;
use crate::loss::Loss;
use crate::wish::{COMMON, Intercept, Regularisation, Setting, Wish};
use serde::{Deserialize, Serialize};

/// What is known of a task before there are data: its line in help texts, what can be set about it, and what is set unless
/// told.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name used in commands and files.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The settings of this task alone.
    pub settings: &'static [Setting],
    /// Common settings that mean nothing to it.
    pub without: &'static [&'static str],
    /// The loss unless given.
    pub loss: Loss,
    /// The weight of the loss unless given.
    pub regularisation: Regularisation,
    /// What it learns from.
    pub input: Input,
    /// What learning it from a stream takes; empty where it is not learned so.
    pub streamed: &'static [Setting],
    /// Why it is not tuned by held-out data, with what to do instead.
    pub untunable: Option<(&'static str, &'static str)>,
}

impl Profile {
    /// All that can be set about it, its own settings first.
    pub fn all_settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        let without = self.without;
        self.settings.iter().chain(COMMON.iter().filter(move |setting| !without.contains(&setting.name)))
    }

    /// The setting of this name.
    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.all_settings().find(|setting| setting.name == name || setting.aliases.contains(&name))
    }
}

/// What a task learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Rows, one by one.
    Rows,
    /// Rows in groups, or pairs of a better and a worse row.
    Ranked,
    /// Pairs of rows with an outcome, or rows in groups.
    Compared,
}

/// What a task offers to solvers: the columns of the support matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether constraints are listed, one a block and known without scores. Otherwise the task is a sum over parts.
    pub listed: bool,
    /// Whether it is known as a sum over parts with slopes and curvature.
    pub curved: bool,
    /// Whether it is learned as weights of the features. Otherwise through a kernel alone, if only the linear one.
    pub weights: bool,
    /// Whether constraints can be drawn at random.
    pub drawn: bool,
    /// Whether it is learned through kernels.
    pub kernel: bool,
    /// Whether a barrier keeps its free scalar above zero, which Newton's method alone knows.
    pub barrier: bool,
    /// Whether its free scalar is a threshold for ties.
    pub threshold: bool,
}

impl Abilities {
    /// One constraint a block, known without scores.
    pub const LISTED: Abilities = Abilities {
        listed: true,
        curved: true,
        weights: true,
        drawn: true,
        kernel: true,
        barrier: false,
        threshold: false,
    };

    /// A sum over parts, each a function of the scores of its rows.
    pub const SUMMED: Abilities = Abilities { listed: false, ..Abilities::LISTED };
}

/// What is to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Tell two classes apart.
    Classify,
    /// Order the rows of each group.
    Rank,
    /// Tell which of two rows is better, or that neither is.
    Compare,
    /// Tell rows like the ones seen from others.
    OneClass,
    /// A task of the user's own.
    Own,
}

impl Task {
    /// Every task of this crate.
    pub const ALL: [Task; 4] = [Task::Classify, Task::Rank, Task::Compare, Task::OneClass];

    /// What is known of it.
    pub fn profile(self) -> &'static Profile {
        match self {
            Task::Classify => &binary::PROFILE,
            Task::Rank => &ranking::PROFILE,
            Task::Compare => &comparison::PROFILE,
            Task::OneClass => &one_class::PROFILE,
            Task::Own => &OWN,
        }
    }

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// The forms it comes in, as far as solvers tell them apart: what is set, whether there are explicit pairs, and words.
    pub(crate) fn forms(self) -> Vec<(TaskSettings, bool, &'static str)> {
        let usual = self.settings();
        let compared = |method, ties_from_grades| {
            TaskSettings::Compare(CompareSettings { method, ties_from_grades, ..CompareSettings::default() })
        };
        match self.profile().input {
            Input::Rows => vec![(usual, false, self.name())],
            Input::Ranked => vec![(usual.clone(), false, "rank, graded rows"), (usual, true, "rank, explicit pairs")],
            Input::Compared => vec![
                (usual, true, "compare"),
                (compared(Method::Rank, false), true, "compare, method rank or rank2"),
                (compared(Method::Compare, true), false, "compare, ties from grades"),
            ],
        }
    }

    /// What is set about it unless told.
    pub fn settings(self) -> TaskSettings {
        match self {
            Task::Classify => TaskSettings::Classify(ClassifySettings::default()),
            Task::Rank => TaskSettings::Rank(RankSettings::default()),
            Task::Compare => TaskSettings::Compare(CompareSettings::default()),
            Task::OneClass => TaskSettings::OneClass(OneClassSettings::default()),
            Task::Own => TaskSettings::Own(OwnSettings::default()),
        }
    }
}

/// A task with what is set about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TaskSettings {
    /// Tell two classes apart.
    Classify(ClassifySettings),
    /// Order the rows of each group.
    Rank(RankSettings),
    /// Tell which of two rows is better, or that neither is.
    Compare(CompareSettings),
    /// Tell rows like the ones seen from others.
    OneClass(OneClassSettings),
    /// A task of the user's own.
    Own(OwnSettings),
}

/// A task of the user's own: models keep its name, and its code stays with the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OwnSettings {
    /// What it is called.
    pub name: String,
}

/// What is known of tasks of the user's own.
const OWN: Profile = Profile {
    name: "own",
    about: "A task of your own",
    settings: &[],
    without: &[],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &[],
    untunable: None,
};

macro_rules! task_settings_from {
    ($($variant:ident($settings:ty)),+) => {
        $(impl From<$settings> for TaskSettings {
            fn from(settings: $settings) -> TaskSettings {
                TaskSettings::$variant(settings)
            }
        })+
    };
}

task_settings_from!(
    Classify(ClassifySettings),
    Rank(RankSettings),
    Compare(CompareSettings),
    OneClass(OneClassSettings),
    Own(OwnSettings)
);

impl TaskSettings {
    /// The same with another rule for the free scalar, where the task has one.
    pub fn with_free(mut self, rule: Intercept) -> TaskSettings {
        match &mut self {
            TaskSettings::Classify(settings) => settings.intercept = rule,
            TaskSettings::Compare(settings) => settings.threshold = rule,
            TaskSettings::Rank(_) | TaskSettings::OneClass(_) | TaskSettings::Own(_) => {}
        }
        self
    }

    /// Which task it is.
    pub fn task(&self) -> Task {
        match self {
            TaskSettings::Classify(_) => Task::Classify,
            TaskSettings::Rank(_) => Task::Rank,
            TaskSettings::Compare(_) => Task::Compare,
            TaskSettings::OneClass(_) => Task::OneClass,
            TaskSettings::Own(_) => Task::Own,
        }
    }

    /// The name used in flags and files.
    pub fn name(&self) -> &'static str {
        self.task().name()
    }

    /// What is done about the free scalar beside the scores.
    pub fn free(&self) -> Intercept {
        match self {
            TaskSettings::Classify(settings) => settings.intercept,
            TaskSettings::Compare(settings) => settings.free(),
            TaskSettings::Rank(_) | TaskSettings::OneClass(_) | TaskSettings::Own(_) => Intercept::None,
        }
    }

    /// What it offers to solvers; `pairs` says whether it learns from explicit pairs.
    pub fn abilities(&self, loss: Loss, pairs: bool) -> Abilities {
        match self {
            TaskSettings::Classify(settings) => settings.abilities(),
            TaskSettings::Rank(settings) => settings.abilities(pairs),
            TaskSettings::Compare(settings) => settings.abilities(loss, pairs),
            TaskSettings::OneClass(settings) => settings.abilities(),
            // The problem knows better.
            TaskSettings::Own(_) => Abilities { curved: false, ..Abilities::LISTED },
        }
    }

    /// What scores of a model learned from these data will mean, with free scalars of 1 in the place of those to be learned.
    pub fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        Ok(match self {
            TaskSettings::Classify(settings) => settings.decoder(data)?,
            TaskSettings::Rank(_) => Decoder::Rank,
            TaskSettings::Compare(_) => Decoder::Compare { threshold: 1.0 },
            TaskSettings::OneClass(settings) => settings.decoder(data),
            TaskSettings::Own(_) => Decoder::Score { free: Vec::new() },
        })
    }

    /// Whether a model of it answers so: what must hold between the parts of a model file.
    pub(crate) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        match self {
            TaskSettings::Classify(settings) => settings.makes(decoder, intercept),
            TaskSettings::Rank(settings) => settings.makes(decoder, intercept),
            TaskSettings::Compare(settings) => settings.makes(decoder, intercept),
            TaskSettings::OneClass(settings) => settings.makes(decoder, intercept),
            TaskSettings::Own(_) => true,
        }
    }

    /// Refuses what does not go together.
    pub(crate) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        match self {
            TaskSettings::Classify(settings) => settings.refuse(wish.solver.is_hard_margin()),
            TaskSettings::Rank(settings) => settings.refuse(wish),
            TaskSettings::Compare(settings) => settings.refuse(wish),
            TaskSettings::OneClass(settings) => settings.refuse(wish),
            TaskSettings::Own(_) => Ok(()),
        }
    }
}
