//! Classification: two classes by the sign of one score ([`Binary`]), several by the largest of their scores
//! ([`Joint`]) or by the columns of an output code ([`Columns`]).

mod binary;
mod columns;
mod cost_matrix;
mod joint;

pub use binary::Binary;
pub(crate) use columns::Column;
pub use columns::Columns;
pub use cost_matrix::CostMatrix;
pub use joint::{Joint, JointForm};

use super::class_rows::ClassRows;
use super::weight_as::{WEIGHT_AS, WeightAs};
use super::{Abilities, Input, Profile, is_default};
use crate::certificate::{CodeDecoder, Decoder, Decoding, Probability};
use crate::data::{Classes, CodeChoice, Dataset, Labels, OutputCode, Subset, same_number};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::structured::ClassMeasure;
use crate::wish::{
    Intercept, LEARNING, PA_VARIANT, Regularisation, STREAM_AVERAGE, STREAM_BATCH, STREAM_C, STREAM_EARLY_STOPPING,
    STREAM_JUDGE_EVERY, STREAM_LAMBDA, STREAM_LOSS, STREAM_RATE, STREAM_RECALIBRATE, STREAM_RESERVOIR, STREAM_SCALE,
    STREAM_SCHEDULE, Setting, Solver, Value, Wish,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Number of rows in a part.
const PART: usize = 1024;

/// How much the rows of each class count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeight {
    /// All rows count the same.
    #[default]
    Equal,
    /// Inversely to the frequency of the class: rows / (classes · rows of the class), with rows counted by their
    /// weights.
    Balanced,
    /// By label. Labels that are not named have weight 1.
    ByLabel(BTreeMap<String, f64>),
}

/// The settings of a classifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClassifySettings {
    /// The constant term.
    pub intercept: Intercept,
    /// The positive label, if it is not the second one in the order of the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// How much each class counts.
    pub class_weight: ClassWeight,
    /// How more than two classes are told apart; the default depends on the loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiclass: Option<Multiclass>,
    /// The code of [`Multiclass::Code`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeChoice>,
    /// How the scores of columns become those of classes, if not as usual for the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoding: Option<Decoding>,
    /// For several classes in one problem: what each wrong class costs, which is the margin over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_matrix: Option<CostMatrix>,
    /// How the weights of rows are used.
    #[serde(skip_serializing_if = "is_default")]
    pub weight_as: WeightAs,
    /// How scores become probabilities, if that is to be fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<Probability>,
    /// The measure of all rows to optimise, instead of a sum over rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimize: Option<ClassMeasure>,
    /// For a stream: its classes, if no others may appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
}

/// How more than two classes are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multiclass {
    /// One problem over all classes. Hinge: the largest violation of a row counts (Crammer and Singer). Logistic: the
    /// softmax.
    Joint,
    /// One problem over all classes, in which every violation of a row counts.
    WestonWatkins,
    /// Each class against all others, as two classes.
    OneVsRest,
    /// Each class against each other one, as two classes.
    OneVsOne,
    /// Two classes for each column of an output code.
    Code,
}

impl Multiclass {
    /// All of them.
    pub const ALL: [Multiclass; 5] =
        [Multiclass::Joint, Multiclass::WestonWatkins, Multiclass::OneVsRest, Multiclass::OneVsOne, Multiclass::Code];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Multiclass::Joint => "joint",
            Multiclass::WestonWatkins => "weston-watkins",
            Multiclass::OneVsRest => "one-vs-rest",
            Multiclass::OneVsOne => "one-vs-one",
            Multiclass::Code => "code",
        }
    }

    /// Whether it is one problem over all classes.
    pub(crate) fn is_joint(self) -> bool {
        matches!(self, Multiclass::Joint | Multiclass::WestonWatkins)
    }

    /// The loss of a row over all its classes, or an error if the form does not have this loss.
    pub(crate) fn joint_form(self, loss: Loss) -> Result<JointForm> {
        match (self, loss) {
            (Multiclass::Joint, Loss::Hinge) => Ok(JointForm::Largest),
            (Multiclass::Joint, Loss::Logistic) => Ok(JointForm::Softmax),
            (Multiclass::Joint, Loss::SquaredHinge) => Err(Error::new(
                Code::BadSetting,
                "the joint form counts the largest violation of a row, and has no squared hinge",
            )
            .help("use ⟦multiclass=weston-watkins⟧, or ⟦loss=hinge⟧ or ⟦loss=logistic⟧")),
            (Multiclass::WestonWatkins, Loss::Hinge | Loss::SquaredHinge) => Ok(JointForm::Sum),
            (Multiclass::WestonWatkins, Loss::Logistic) => Err(Error::new(
                Code::BadSetting,
                "the form of Weston and Watkins sums violations, and has no logistic loss",
            )
            .help("use ⟦multiclass=joint⟧ for the softmax, or ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧")),
            (Multiclass::OneVsRest | Multiclass::OneVsOne | Multiclass::Code, _) => {
                Err(Error::new(Code::Internal, format!("`{}` is not one problem", self.name())))
            }
        }
    }
}

/// How scores become probabilities.
pub(in crate::task) const PROBABILITY: Setting = Setting {
    name: "probability",
    heading: LEARNING,
    aliases: &[],
    help: "Fit probabilities of the classes on five held-out folds, which takes five more trainings: `platt`, \
           sigmoids of the scores, or `isotonic`, functions of the scores that never fall",
    placeholder: "FORM",
    value: Value::Name(|| Probability::ALL.map(Probability::name).to_vec()),
    place: "task.probability",
};

/// The constant term.
const INTERCEPT: Setting = Setting {
    name: "intercept",
    heading: LEARNING,
    aliases: &[],
    help: "The constant term [default: free]",
    placeholder: "",
    value: Value::Name(|| Intercept::ALL.map(Intercept::name).to_vec()),
    place: "task.intercept",
};

/// How much each class counts.
const CLASS_WEIGHT: Setting = Setting {
    name: "class-weight",
    heading: LEARNING,
    aliases: &[],
    help: "Weights of the classes: `balanced`, or LABEL=W,LABEL=W",
    placeholder: "WEIGHTS",
    value: Value::ClassWeights,
    place: "task.class-weight",
};

/// How more than two classes are told apart.
const MULTICLASS: Setting = Setting {
    name: "multiclass",
    heading: LEARNING,
    aliases: &[],
    help: "How to tell more than two classes apart. Two classes take one score unless this is given [default: \
           joint; weston-watkins with ⟦loss=squared-hinge⟧]",
    placeholder: "FORM",
    value: Value::Name(|| Multiclass::ALL.map(Multiclass::name).to_vec()),
    place: "task.multiclass",
};

/// The positive label.
const POSITIVE: Setting = Setting {
    name: "positive",
    heading: LEARNING,
    aliases: &[],
    help: "The label that counts as positive [default: the larger one]",
    placeholder: "LABEL",
    value: Value::Label,
    place: "task.positive",
};

/// `classify`
pub(in crate::task) const PROFILE: Profile = Profile {
    name: "classify",
    about: "Tell classes apart",
    settings: &[
        INTERCEPT,
        CLASS_WEIGHT,
        POSITIVE,
        MULTICLASS,
        Setting {
            name: "code",
            heading: LEARNING,
            aliases: &[],
            help: "The output code of ⟦multiclass=code⟧: one-vs-rest, one-vs-one, random-dense[:COLUMNS], \
                   random-sparse[:COLUMNS], exhaustive, bch[:COLUMNS], or a file with a line for each class: its name, \
                   and -1, 0 or 1 for each column",
            placeholder: "CODE",
            value: Value::Parsed(|text| text.parse::<CodeChoice>().map(drop)),
            place: "task.code",
        },
        Setting {
            name: "decoding",
            heading: LEARNING,
            aliases: &[],
            help: "How columns of an output code become a class: by the smallest sum of these losses; hamming counts \
                   votes, and the hinge loss decides between equal ones [default: that of ⟦loss⟧; hamming for one-vs-one]",
            placeholder: "",
            value: Value::Name(|| Decoding::ALL.map(Decoding::name).to_vec()),
            place: "task.decoding",
        },
        Setting {
            name: "cost-matrix",
            heading: LEARNING,
            aliases: &[],
            help: "For several classes in one problem: a table of what it costs to predict the class of a column for a row \
                   of the class that a line begins with. Costs are the margins [default: 1 for every wrong class]",
            placeholder: "FILE",
            value: Value::Parsed(|text| text.parse::<CostMatrix>().map(drop)),
            place: "task.cost-matrix",
        },
        WEIGHT_AS,
        PROBABILITY,
        Setting {
            name: "optimize",
            heading: LEARNING,
            aliases: &[],
            help: "For two classes: optimise a measure of all rows at once, with the hinge: f1, prbep (the break-even point \
                   of precision and recall), p@K, auc or error. The constant term is then penalised [default: a sum over \
                   rows]",
            placeholder: "MEASURE",
            value: Value::Parsed(|text| text.parse::<ClassMeasure>().map(drop)),
            place: "task.optimize",
        },
    ],
    without: &[],
    loss: Loss::Hinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Rows,
    streamed: &STREAMED,
    untunable: None,
};

/// The settings for learning classes from a stream.
const STREAMED: [Setting; 19] = [
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "How to step: by gradients; or by the least change that is right about a row (pa), or about a batch with \
               as many rows of one class as of the other (the other pa-…) [default: averaged-sgd]",
        placeholder: "",
        value: Value::Name(|| {
            let own = [Solver::AveragedSgd, Solver::Sgd, Solver::Pegasos, Solver::PassiveAggressive];
            own.into_iter().chain(Solver::PAIRED).map(Solver::name).collect()
        }),
        place: "solver",
    },
    STREAM_LOSS,
    STREAM_C,
    STREAM_LAMBDA,
    INTERCEPT,
    Setting { help: "Weights of the classes: LABEL=W,LABEL=W", ..CLASS_WEIGHT },
    POSITIVE,
    Setting {
        help: "How to tell more than two classes apart: joint, weston-watkins or one-vs-rest. Two classes take one score \
               unless this is given [default: joint; weston-watkins with ⟦loss=squared-hinge⟧]",
        ..MULTICLASS
    },
    Setting {
        name: "classes",
        heading: LEARNING,
        aliases: &[],
        help: "The classes, separated by commas; another label is then an error [default: classes appear in the course of \
               the stream]",
        placeholder: "LABELS",
        value: Value::Words,
        place: "task.classes",
    },
    STREAM_SCHEDULE,
    STREAM_RATE,
    STREAM_RECALIBRATE,
    STREAM_BATCH,
    PA_VARIANT,
    STREAM_RESERVOIR,
    STREAM_AVERAGE,
    STREAM_SCALE,
    STREAM_EARLY_STOPPING,
    STREAM_JUDGE_EVERY,
];

impl ClassifySettings {
    /// Refuses invalid class weights, and forms without the loss.
    pub(in crate::task) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let (hard, loss) = (wish.hard, wish.loss);
        self.refuse_beside_measure(loss)?;
        self.weight_as.refuse(loss, wish.regularisation.is_nu())?;
        self.refuse_code()?;
        if let Some(classes) = &self.classes {
            let distinct: BTreeSet<&String> = classes.iter().collect();
            if classes.len() < 2 || distinct.len() < classes.len() {
                let message =
                    format!("⟦classes⟧ names {}, and a classifier needs two or more that differ", classes.join(", "));
                return Err(Error::new(Code::BadSetting, message).help("name each class once, separated by commas"));
            }
        }
        if let Some(multiclass) = self.form() {
            if multiclass.is_joint() {
                multiclass.joint_form(loss)?;
            } else if self.cost_matrix.is_some() {
                let message = format!("`{}` learns columns of two classes, which have no costs", multiclass.name());
                return Err(Error::new(Code::BadSetting, message)
                    .help("leave ⟦cost-matrix⟧ out, or use ⟦multiclass=joint⟧ or weston-watkins"));
            }
            if let Some(positive) = &self.positive {
                let message = format!("`{positive}` is positive, and several classes have none");
                return Err(Error::new(Code::BadSetting, message).help("leave ⟦positive⟧ or ⟦multiclass⟧ out"));
            }
        }
        if self.cost_matrix.is_some() {
            if loss == Loss::Logistic {
                return Err(Error::new(Code::BadSetting, "costs of classes are margins, and the softmax has none")
                    .help("leave ⟦cost-matrix⟧ out, or use ⟦loss=hinge⟧"));
            }
            if self.positive.is_some() {
                let message = "one class is positive, and several classes with costs have none";
                return Err(Error::new(Code::BadSetting, message).help("leave ⟦positive⟧ or ⟦cost-matrix⟧ out"));
            }
        }
        self.class_weight.refuse()?;
        if hard && self.class_weight != ClassWeight::Equal {
            return Err(Error::new(Code::BadSetting, "a hard margin has no costs, so class weights do not apply")
                .help("leave ⟦class-weight⟧ out, or use a soft margin: leave ⟦margin⟧ and ⟦solver⟧ out"));
        }
        Ok(())
    }

    /// Refuses what a measure of all rows does not know.
    fn refuse_beside_measure(&self, loss: Loss) -> Result<()> {
        let Some(measure) = self.optimize else { return Ok(()) };
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let apart = [
            (self.form().is_some(), "⟦multiclass⟧", "is for several classes"),
            (self.cost_matrix.is_some(), "⟦cost-matrix⟧", "is for several classes"),
            (self.decoding.is_some(), "⟦decoding⟧", "is for several classes"),
            (self.probability.is_some(), "⟦probability⟧", "fits the scores of single rows"),
            (self.class_weight != ClassWeight::Equal, "⟦class-weight⟧", "weighs single rows"),
            (self.weight_as != WeightAs::default(), "⟦weight-as⟧", "weighs single rows"),
        ];
        if let Some((_, setting, what)) = apart.into_iter().find(|(given, ..)| *given) {
            let message = format!("{setting} {what}, and `{measure}` judges all rows of two classes at once");
            return bad(message, "leave one of the two out");
        }
        if loss != Loss::Hinge {
            return bad(
                format!("`{measure}` is optimised with the hinge, and the loss is {}", loss.name()),
                "leave ⟦loss⟧ or ⟦optimize⟧ out",
            );
        }
        if self.intercept == Intercept::Free {
            return bad(
                format!(
                    "for `{measure}` the constant term is a weight like any other, and a free one is not penalised"
                ),
                "use ⟦intercept=penalised⟧, which is the default here, or ⟦intercept=none⟧",
            );
        }
        Ok(())
    }

    /// Refuses a code where none is used, and a code that is not named.
    fn refuse_code(&self) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        match (self.form(), &self.code) {
            (Some(Multiclass::Code), None) => {
                bad("⟦multiclass=code⟧ needs a code", "add ⟦code=random-dense⟧, ⟦code=bch⟧ or another code")
            }
            (Some(Multiclass::Code), Some(_)) | (_, None) => match (self.decoding, self.form()) {
                (Some(_), Some(form)) if !form.is_joint() => Ok(()),
                (None, _) => Ok(()),
                _ => bad(
                    "⟦decoding⟧ is for the columns of output codes",
                    "leave it out, or add ⟦multiclass=one-vs-rest⟧, one-vs-one or code",
                ),
            },
            _ => bad("⟦code⟧ is for ⟦multiclass=code⟧", "leave one of the two out"),
        }
    }

    /// The way that was asked for, if any. A code alone asks for it.
    pub(crate) fn form(&self) -> Option<Multiclass> {
        self.multiclass.or_else(|| self.code.as_ref().map(|_| Multiclass::Code))
    }

    /// The code and the meaning of its columns, if that is how these classes are told apart.
    pub(crate) fn columns(&self, labels: &Labels, loss: Loss, seed: u64) -> Result<Option<(OutputCode, Decoder)>> {
        let choice = match (self.form(), &self.code) {
            (Some(Multiclass::OneVsRest), _) => CodeChoice::OneVsRest,
            (Some(Multiclass::OneVsOne), _) => CodeChoice::OneVsOne,
            (Some(Multiclass::Code), Some(code)) => code.clone(),
            _ => return Ok(None),
        };
        let code = choice.build(labels, seed)?;
        let decoder = match (&choice, self.decoding) {
            // The largest score is also the one of the class with the smallest sum of losses.
            (CodeChoice::OneVsRest, None) => Decoder::Largest(labels.clone()),
            (choice, decoding) => {
                let usual = if *choice == CodeChoice::OneVsOne { Decoding::Hamming } else { Decoding::of(loss) };
                let decoding = decoding.unwrap_or(usual);
                Decoder::Code(CodeDecoder { labels: labels.clone(), code: code.clone(), decoding, absent: Vec::new() })
            }
        };
        Ok(Some((code, decoder)))
    }

    /// The meaning of the scores.
    pub(in crate::task) fn decoder(&self, data: &Dataset, loss: Loss, seed: u64) -> Result<Decoder> {
        let labels = Labels::find(data.targets())?;
        if let Some((_, decoder)) = self.columns(&labels, loss, seed)? {
            return Ok(decoder);
        }
        match self.several(labels.len()) {
            true => Ok(Decoder::Largest(labels)),
            false => Classes::find(data.targets(), self.positive.as_deref()).map(Decoder::Sign),
        }
    }

    /// Whether this many classes have a score each. Two classes share one score unless asked otherwise.
    pub(crate) fn several(&self, classes: usize) -> bool {
        classes > 2 || self.form().is_some() || self.cost_matrix.is_some()
    }

    /// How several classes are told apart.
    pub(crate) fn multiclass(&self, loss: Loss) -> Multiclass {
        self.form().unwrap_or(if loss == Loss::SquaredHinge { Multiclass::WestonWatkins } else { Multiclass::Joint })
    }

    /// Whether a model of this task has such a decoder and intercepts.
    pub(in crate::task) fn makes(&self, decoder: &Decoder, intercepts: usize) -> bool {
        let scores = match decoder {
            Decoder::Sign(_) if !self.several(2) => 1,
            Decoder::Largest(labels) if self.several(labels.len()) => labels.len(),
            Decoder::Code(decoder) if self.form().is_some_and(|form| !form.is_joint()) && decoder.is_whole() => {
                decoder.code.columns()
            }
            _ => return false,
        };
        intercepts == if self.intercept == Intercept::None { 0 } else { scores }
    }

    /// What one constraint a row offers, a joint problem over all classes, or the columns of a code.
    pub(in crate::task) fn abilities(&self) -> Abilities {
        match self.form() {
            _ if self.optimize.is_some() => Abilities::STRUCTURED,
            None if self.cost_matrix.is_none() => Abilities::LISTED,
            Some(form) if !form.is_joint() => COLUMNS,
            _ => JOINT,
        }
    }
}

/// The rows of several classes, or an error if all that count are of one class.
fn rows_of_classes(
    data: &Dataset,
    labels: &Labels,
    class_weight: &ClassWeight,
    subset: Option<&Subset>,
) -> Result<ClassRows> {
    let rows = ClassRows::on(data, labels, class_weight, subset)?;
    if rows.have_a_single_class() {
        return Err(Error::new(Code::SingleClass, "the rows of all classes but one have weight zero")
            .help("a classifier needs rows of two classes; give these rows, or their class, a weight above zero"));
    }
    Ok(rows)
}

/// What a joint problem over all classes offers to solvers.
pub(crate) const JOINT: Abilities = Abilities { several: true, ..Abilities::SUMMED };

/// What the columns of an output code offer to solvers: what two classes do.
pub(crate) const COLUMNS: Abilities = Abilities { several: true, ..Abilities::LISTED };

impl ClassWeight {
    /// Refuses weights that are no weights.
    pub(in crate::task) fn refuse(&self) -> Result<()> {
        if let ClassWeight::ByLabel(weights) = self
            && let Some((label, weight)) = weights.iter().find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0))
        {
            return Err(Error::new(
                Code::BadSetting,
                format!("the weight of class `{label}` is {weight}, and must be zero or a positive number"),
            ));
        }
        Ok(())
    }

    /// The weight of each class, given the total weight of the rows of each.
    pub(crate) fn of_labels(&self, labels: &Labels, totals: &[f64]) -> Result<Vec<f64>> {
        match self {
            ClassWeight::Equal => Ok(vec![1.0; labels.len()]),
            ClassWeight::Balanced => {
                let (sum, classes) = (totals.iter().sum::<f64>(), labels.len() as f64);
                Ok(totals.iter().map(|&own| if own > 0.0 { sum / (classes * own) } else { 1.0 }).collect())
            }
            ClassWeight::ByLabel(weights) => {
                let (places, mut shares) = (labels.places(), vec![1.0; labels.len()]);
                for (label, weight) in weights {
                    let class = places.of(label).ok_or_else(|| {
                        let message = format!("a weight for class `{label}`, which is not among the classes");
                        Error::new(Code::UnknownLabel, message)
                            .help("name classes as in the data: ⟦class-weight=LABEL=W,LABEL=W⟧")
                    })?;
                    shares[class] = *weight;
                }
                Ok(shares)
            }
        }
    }

    /// The weights of the negative and the positive class. `totals` gives the total weights of their rows: a row of
    /// weight 2 is as common as two rows.
    pub(crate) fn shares(&self, classes: &Classes, totals: impl FnOnce() -> (f64, f64)) -> Result<(f64, f64)> {
        match self {
            ClassWeight::Equal => Ok((1.0, 1.0)),
            ClassWeight::Balanced => {
                let (negatives, positives) = totals();
                let share = |own: f64| if own > 0.0 { (negatives + positives) / (2.0 * own) } else { 1.0 };
                Ok((share(negatives), share(positives)))
            }
            ClassWeight::ByLabel(weights) => {
                let is = |class: &str, label: &str| class == label || same_number(class, label);
                let unknown =
                    weights.keys().find(|label| !is(&classes.negative, label) && !is(&classes.positive, label));
                if let Some(unknown) = unknown {
                    return Err(Error::new(
                        Code::UnknownLabel,
                        format!(
                            "a weight for class `{unknown}`, but the classes are `{}` and `{}`",
                            classes.negative, classes.positive
                        ),
                    )
                    .help("name classes as in the data: ⟦class-weight=LABEL=W,LABEL=W⟧"));
                }
                let of = |class: &str| weights.iter().find(|(label, _)| is(class, label)).map_or(1.0, |(_, w)| *w);
                Ok((of(&classes.negative), of(&classes.positive)))
            }
        }
    }
}
