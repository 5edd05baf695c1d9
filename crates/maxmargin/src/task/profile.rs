//! The list of tasks, and what is known about each before there are data.

use super::{
    ClassifySettings, CompareSettings, Method, Multilabel, MultilabelSettings, OneClassSettings, OrdinalForm,
    OrdinalSettings, RankSettings, SequenceSettings, TreeSettings, classify, comparison, multilabel, one_class,
    ordinal, ranking, sequence, tree,
};
use crate::certificate::Decoder;
use crate::data::Dataset;
use crate::error::Result;
use crate::loss::Loss;
use crate::structured::{ClassMeasure, RankMeasure, Rescale, Variant};
use crate::task::WeightAs;
use crate::wish::{COMMON, Intercept, Regularisation, Setting, Value, Wish};
use serde::{Deserialize, Serialize};

/// What is known about a task before there are data: its line in help texts, its settings and their defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name used in commands and files.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The settings that only this task has.
    pub settings: &'static [Setting],
    /// Common settings that this task does not use.
    pub without: &'static [&'static str],
    /// The default loss.
    pub loss: Loss,
    /// The default weight of the loss.
    pub regularisation: Regularisation,
    /// The input of the task.
    pub input: Input,
    /// The settings for learning from a stream; empty if this task cannot.
    pub streamed: &'static [Setting],
    /// Why it cannot be tuned on held-out data, and what to do instead.
    pub untunable: Option<(&'static str, &'static str)>,
}

impl Profile {
    /// All settings of the task, its own first.
    pub fn all_settings(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        let without = self.without;
        self.settings.iter().chain(COMMON.iter().filter(move |setting| !without.contains(&setting.name)))
    }

    /// The setting with this name.
    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.all_settings().find(|setting| setting.name == name || setting.aliases.contains(&name))
    }
}

/// The input of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Independent rows.
    Rows,
    /// Rows in groups, or pairs of a better and a worse row.
    Ranked,
    /// Pairs of rows with an outcome, or rows in groups.
    Compared,
    /// The words of sentences with their trees.
    Sentences,
}

/// What a task offers to solvers. These are the columns of the support matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether constraints are listed, with one per block, known without scores. Otherwise the task is a sum over
    /// parts.
    pub listed: bool,
    /// Whether it is available as a sum over parts with slopes and curvature.
    pub curved: bool,
    /// Whether it can be learned as weights of the features. Otherwise it needs a kernel, which may be the linear one.
    pub weights: bool,
    /// Whether constraints can be drawn at random.
    pub drawn: bool,
    /// Whether it can be learned with kernels.
    pub kernel: bool,
    /// Whether a barrier keeps its free scalar above zero. Only Newton's method supports that.
    pub barrier: bool,
    /// Whether its free scalar is a threshold for ties.
    pub threshold: bool,
    /// Whether each of several classes has a score. Such a task has curvature with the logistic loss, too.
    pub several: bool,
    /// Whether its free scalars are cuts between ranks. Such a task has curvature with the logistic loss, too.
    pub cuts: bool,
    /// Whether outputs are structured: a search finds the most violated one.
    pub structured: bool,
}

impl Abilities {
    /// One constraint per block, known without scores.
    pub const LISTED: Abilities = Abilities {
        listed: true,
        curved: true,
        weights: true,
        drawn: true,
        kernel: true,
        barrier: false,
        threshold: false,
        several: false,
        cuts: false,
        structured: false,
    };

    /// A sum over parts, each a function of the scores of its rows.
    pub const SUMMED: Abilities = Abilities { listed: false, ..Abilities::LISTED };

    /// Structured outputs: a sum over examples without curvature.
    pub const STRUCTURED: Abilities = Abilities { structured: true, curved: false, ..Abilities::SUMMED };
}

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Tell classes apart.
    Classify,
    /// Order the rows of each group.
    Rank,
    /// Predict which of two rows is better, or that they tie.
    Compare,
    /// Predict ratings, which are ranks in order.
    Ordinal,
    /// Predict sets of labels.
    Multilabel,
    /// Separate rows like the training rows from others.
    OneClass,
    /// Tag the rows of sequences.
    Sequence,
    /// Parse the words of sentences.
    Tree,
    /// A user's own task.
    Own,
}

impl Task {
    /// All tasks of this crate.
    pub const ALL: [Task; 8] = [
        Task::Classify,
        Task::Rank,
        Task::Compare,
        Task::Ordinal,
        Task::Multilabel,
        Task::OneClass,
        Task::Sequence,
        Task::Tree,
    ];

    /// The profile of the task.
    pub fn profile(self) -> &'static Profile {
        match self {
            Task::Classify => &classify::PROFILE,
            Task::Rank => &ranking::PROFILE,
            Task::Compare => &comparison::PROFILE,
            Task::Ordinal => &ordinal::PROFILE,
            Task::Multilabel => &multilabel::PROFILE,
            Task::OneClass => &one_class::PROFILE,
            Task::Sequence => &sequence::PROFILE,
            Task::Tree => &tree::PROFILE,
            Task::Own => &OWN,
        }
    }

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// The forms of the task that solvers treat differently: its settings, whether there are explicit pairs, and a
    /// description.
    pub(crate) fn forms(self) -> Vec<(TaskSettings, bool, &'static str)> {
        let usual = self.settings();
        let compared = |method, ties_from_grades| {
            TaskSettings::Compare(CompareSettings { method, ties_from_grades, ..CompareSettings::default() })
        };
        match self.profile().input {
            Input::Rows if self == Task::Ordinal => {
                let of = |form| TaskSettings::Ordinal(OrdinalSettings { form, ..OrdinalSettings::default() });
                vec![
                    (usual, false, "ordinal, implicit form"),
                    (of(OrdinalForm::Explicit), false, "ordinal, explicit form"),
                ]
            }
            Input::Rows if self == Task::Classify => {
                let optimize = Some(ClassMeasure::F1);
                let at_once = ClassifySettings { optimize, intercept: Intercept::Penalised, ..Default::default() };
                vec![(usual, false, self.name()), (at_once.into(), false, "classify, a measure of all rows")]
            }
            Input::Rows if self == Task::Multilabel => {
                let apart = MultilabelSettings { multilabel: Multilabel::OneVsRest, ..MultilabelSettings::default() };
                vec![(usual, false, "multilabel, calibrated"), (apart.into(), false, "multilabel, one-vs-rest")]
            }
            Input::Rows | Input::Sentences => vec![(usual, false, self.name())],
            Input::Ranked => {
                let optimize = Some(RankMeasure::Map(Variant::default()));
                let orders = RankSettings { optimize, ..RankSettings::default() };
                vec![
                    (usual.clone(), false, "rank, graded rows"),
                    (usual, true, "rank, explicit pairs"),
                    (orders.into(), false, "rank, a measure of whole orders"),
                ]
            }
            Input::Compared => vec![
                (usual, true, "compare"),
                (compared(Method::Rank, false), true, "compare, method rank or rank2"),
                (compared(Method::Compare, true), false, "compare, ties from grades"),
            ],
        }
    }

    /// The default settings of the task.
    pub fn settings(self) -> TaskSettings {
        match self {
            Task::Classify => TaskSettings::Classify(ClassifySettings::default()),
            Task::Rank => TaskSettings::Rank(RankSettings::default()),
            Task::Compare => TaskSettings::Compare(CompareSettings::default()),
            Task::Ordinal => TaskSettings::Ordinal(OrdinalSettings::default()),
            Task::Multilabel => TaskSettings::Multilabel(MultilabelSettings::default()),
            Task::OneClass => TaskSettings::OneClass(OneClassSettings::default()),
            Task::Sequence => TaskSettings::Sequence(SequenceSettings::default()),
            Task::Tree => TaskSettings::Tree(TreeSettings::default()),
            Task::Own => TaskSettings::Own(OwnSettings::default()),
        }
    }
}

/// A task with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TaskSettings {
    /// Tell classes apart.
    Classify(ClassifySettings),
    /// Order the rows of each group.
    Rank(RankSettings),
    /// Predict which of two rows is better, or that they tie.
    Compare(CompareSettings),
    /// Predict ratings, which are ranks in order.
    Ordinal(OrdinalSettings),
    /// Predict sets of labels.
    Multilabel(MultilabelSettings),
    /// Separate rows like the training rows from others.
    OneClass(OneClassSettings),
    /// Tag the rows of sequences.
    Sequence(SequenceSettings),
    /// Parse the words of sentences.
    Tree(TreeSettings),
    /// A user's own task.
    Own(OwnSettings),
}

/// A user's own task. The model stores its name, but not its code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OwnSettings {
    /// The name of the task.
    pub name: String,
    /// For oracles: how the loss of an output enters.
    #[serde(skip_serializing_if = "is_margin")]
    pub rescale: Rescale,
}

fn is_margin(rescale: &Rescale) -> bool {
    *rescale == Rescale::Margin
}

impl OwnSettings {
    /// The settings of a task with this name.
    pub fn named(name: &str) -> OwnSettings {
        OwnSettings { name: name.to_string(), ..OwnSettings::default() }
    }
}

/// The setting that only oracles have.
const RESCALE: Setting = Setting {
    name: "rescale",
    heading: "Task",
    aliases: &[],
    help: "For oracles: the loss of an output is its margin, or what a unit of slack costs",
    placeholder: "",
    value: Value::Name(|| Rescale::ALL.map(Rescale::name).to_vec()),
    place: "task.rescale",
};

/// The profile of users' own tasks.
const OWN: Profile = Profile {
    name: "own",
    about: "A task of your own",
    settings: &[RESCALE],
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
    Ordinal(OrdinalSettings),
    Multilabel(MultilabelSettings),
    OneClass(OneClassSettings),
    Sequence(SequenceSettings),
    Tree(TreeSettings),
    Own(OwnSettings)
);

impl TaskSettings {
    /// Changes the rule for the free scalar, if the task has one.
    pub fn with_free(mut self, rule: Intercept) -> TaskSettings {
        match &mut self {
            TaskSettings::Classify(settings) => settings.intercept = rule,
            TaskSettings::Compare(settings) => settings.threshold = rule,
            TaskSettings::Multilabel(settings) => settings.intercept = rule,
            TaskSettings::Rank(_)
            | TaskSettings::Ordinal(_)
            | TaskSettings::OneClass(_)
            | TaskSettings::Sequence(_)
            | TaskSettings::Tree(_)
            | TaskSettings::Own(_) => {}
        }
        self
    }

    /// Which task it is.
    pub fn task(&self) -> Task {
        match self {
            TaskSettings::Classify(_) => Task::Classify,
            TaskSettings::Rank(_) => Task::Rank,
            TaskSettings::Compare(_) => Task::Compare,
            TaskSettings::Ordinal(_) => Task::Ordinal,
            TaskSettings::Multilabel(_) => Task::Multilabel,
            TaskSettings::OneClass(_) => Task::OneClass,
            TaskSettings::Sequence(_) => Task::Sequence,
            TaskSettings::Tree(_) => Task::Tree,
            TaskSettings::Own(_) => Task::Own,
        }
    }

    /// The name used in flags and files.
    pub fn name(&self) -> &'static str {
        self.task().name()
    }

    /// The rule for the free scalar.
    pub fn free(&self) -> Intercept {
        match self {
            TaskSettings::Classify(settings) => settings.intercept,
            TaskSettings::Compare(settings) => settings.free(),
            TaskSettings::Multilabel(settings) => settings.intercept,
            TaskSettings::Ordinal(_) => Intercept::Free,
            TaskSettings::Rank(_)
            | TaskSettings::OneClass(_)
            | TaskSettings::Sequence(_)
            | TaskSettings::Tree(_)
            | TaskSettings::Own(_) => Intercept::None,
        }
    }

    /// What it offers to solvers. `pairs` says whether it learns from explicit pairs.
    pub fn abilities(&self, loss: Loss, pairs: bool) -> Abilities {
        match self {
            TaskSettings::Classify(settings) => settings.abilities(),
            TaskSettings::Rank(settings) => settings.abilities(pairs),
            TaskSettings::Compare(settings) => settings.abilities(loss, pairs),
            TaskSettings::Ordinal(settings) => settings.abilities(),
            TaskSettings::Multilabel(settings) => settings.abilities(),
            TaskSettings::OneClass(settings) => settings.abilities(),
            TaskSettings::Sequence(settings) => settings.abilities(),
            TaskSettings::Tree(settings) => settings.abilities(),
            // The problem itself states its abilities.
            TaskSettings::Own(_) => Abilities { curved: false, ..Abilities::LISTED },
        }
    }

    /// The meaning of the scores of a model trained on these data. Free scalars that are not yet learned are set to 1.
    pub fn decoder(&self, data: &Dataset, loss: Loss, seed: u64) -> Result<Decoder> {
        Ok(match self {
            TaskSettings::Classify(settings) => settings.decoder(data, loss, seed)?,
            TaskSettings::Rank(_) => Decoder::Rank,
            TaskSettings::Compare(_) => Decoder::Compare { threshold: 1.0 },
            TaskSettings::Ordinal(settings) => settings.decoder(data)?,
            TaskSettings::Multilabel(settings) => settings.decoder(data)?,
            TaskSettings::OneClass(settings) => settings.decoder(data),
            TaskSettings::Sequence(settings) => settings.decoder(data)?,
            TaskSettings::Tree(settings) => settings.decoder(data)?,
            TaskSettings::Own(_) => Decoder::Score { free: Vec::new() },
        })
    }

    /// Whether a model of this task has such a decoder and intercepts. Model files are checked with this.
    pub(crate) fn makes(&self, decoder: &Decoder, intercepts: &[f64]) -> bool {
        let intercept = intercepts.first().copied().filter(|_| intercepts.len() == 1);
        match self {
            TaskSettings::Classify(settings) => settings.makes(decoder, intercepts.len()),
            TaskSettings::Rank(settings) => settings.makes(decoder, intercept),
            TaskSettings::Compare(settings) => settings.makes(decoder, intercept),
            TaskSettings::Ordinal(settings) => settings.makes(decoder, intercepts.len()),
            TaskSettings::Multilabel(settings) => settings.makes(decoder, intercepts.len()),
            TaskSettings::OneClass(settings) => settings.makes(decoder, intercept),
            TaskSettings::Sequence(settings) => settings.makes(decoder, intercepts.len()),
            TaskSettings::Tree(settings) => settings.makes(decoder, intercepts.len()),
            TaskSettings::Own(_) => true,
        }
    }

    /// The measure of whole outputs that it optimises, by name.
    pub fn optimized(&self) -> Option<String> {
        match self {
            TaskSettings::Classify(settings) => settings.optimize.map(|measure| measure.to_string()),
            TaskSettings::Rank(settings) => settings.optimize.map(|measure| measure.to_string()),
            _ => None,
        }
    }

    /// How the weights of rows or pairs are used.
    pub(crate) fn weight_as(&self) -> WeightAs {
        match self {
            TaskSettings::Classify(settings) => settings.weight_as,
            TaskSettings::Rank(settings) => settings.weight_as,
            TaskSettings::Compare(settings) => settings.weight_as,
            TaskSettings::Ordinal(settings) => settings.weight_as,
            TaskSettings::Multilabel(_)
            | TaskSettings::OneClass(_)
            | TaskSettings::Sequence(_)
            | TaskSettings::Tree(_)
            | TaskSettings::Own(_) => WeightAs::Slack,
        }
    }

    /// Refuses settings that do not fit together.
    pub(crate) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        match self {
            TaskSettings::Classify(settings) => settings.refuse(wish),
            TaskSettings::Rank(settings) => settings.refuse(wish),
            TaskSettings::Compare(settings) => settings.refuse(wish),
            TaskSettings::Ordinal(settings) => settings.refuse(wish),
            TaskSettings::Multilabel(settings) => settings.refuse(wish),
            TaskSettings::OneClass(settings) => settings.refuse(wish),
            TaskSettings::Sequence(settings) => settings.refuse(wish),
            TaskSettings::Tree(settings) => settings.refuse(wish),
            TaskSettings::Own(_) => Ok(()),
        }
    }
}
