//! The settings of a ranker.

use crate::certificate::Decoder;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::structured::{OrderScore, RankMeasure};
use crate::task::weight_as::{PAIR_WEIGHT_AS, WeightAs, as_for_pairs};
use crate::task::{Abilities, Input, Profile, is_default};
use crate::wish::{
    LEARNING, Regularisation, STOCHASTIC, STREAM_BATCH, STREAM_C, STREAM_EARLY_STOPPING, STREAM_JUDGE_EVERY,
    STREAM_LAMBDA, STREAM_LOSS, STREAM_RATE, STREAM_RECALIBRATE, STREAM_SCALE, STREAM_SCHEDULE, Sample, Setting,
    Solver, Value, Wish,
};
use serde::{Deserialize, Serialize};

/// The weight of a pair, in addition to the weights of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairWeight {
    /// All pairs count the same, so long queries count more.
    #[default]
    Equal,
    /// All queries count the same: the pair weights of a query sum to 1.
    PerQuery,
    /// The difference of the two targets.
    GradeGap,
}

impl PairWeight {
    /// All choices.
    pub const ALL: [PairWeight; 3] = [PairWeight::Equal, PairWeight::PerQuery, PairWeight::GradeGap];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            PairWeight::Equal => "equal",
            PairWeight::PerQuery => "per-query",
            PairWeight::GradeGap => "grade-gap",
        }
    }
}

/// What the targets of rows say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetsAre {
    /// Grades: a row with a higher one is better.
    #[default]
    Grades,
    /// Weights of clicks: a clicked row is better than every other row of its list, by as much.
    Clicks,
}

impl TargetsAre {
    /// All choices.
    pub const ALL: [TargetsAre; 2] = [TargetsAre::Grades, TargetsAre::Clicks];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            TargetsAre::Grades => "grades",
            TargetsAre::Clicks => "clicks",
        }
    }
}

/// The settings of a ranker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RankSettings {
    /// What the targets of rows say.
    #[serde(skip_serializing_if = "is_default")]
    pub targets_are: TargetsAre,
    /// The weight of each pair of graded rows.
    #[serde(skip_serializing_if = "is_default")]
    pub pair_weight: PairWeight,
    /// How the weights of explicit pairs are used.
    #[serde(
        rename = "pair-weight-as",
        alias = "weight-as",
        serialize_with = "as_for_pairs",
        skip_serializing_if = "is_default"
    )]
    pub weight_as: WeightAs,
    /// The measure of whole orders to optimise, instead of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimize: Option<RankMeasure>,
    /// The score of an order, for such a measure.
    #[serde(skip_serializing_if = "is_default")]
    pub order_score: OrderScore,
}

/// `rank`
pub(in crate::task) const PROFILE: Profile = Profile {
    name: "rank",
    about: "Order the rows of each query, or items by pairs of a better and a worse one",
    settings: &[
        Setting {
            name: "targets-are",
            heading: LEARNING,
            aliases: &[],
            help: "What targets say: grades, or weights of clicks, which put a row above every other row of its query by as \
                   much [default: grades; clicks for a click log]",
            placeholder: "",
            value: Value::Name(|| TargetsAre::ALL.map(TargetsAre::name).to_vec()),
            place: "task.targets-are",
        },
        Setting {
            name: "pair-weight",
            heading: LEARNING,
            aliases: &[],
            help: "The weight of each pair of graded rows: the same for all, a share of its query, or the difference \
                   of its grades [default: equal]",
            placeholder: "",
            value: Value::Name(|| PairWeight::ALL.map(PairWeight::name).to_vec()),
            place: "task.pair-weight",
        },
        PAIR_WEIGHT_AS,
        Setting {
            name: "optimize",
            heading: LEARNING,
            aliases: &[],
            help: "Optimise a measure of the whole order of a query, with the hinge: map, ndcg, ndcg@K, auc, p@K, mrr or \
                   mrr@K, and `:mslr` behind it where relevant means grade 2 or more [default: all pairs]",
            placeholder: "MEASURE",
            value: Value::Parsed(|text| text.parse::<RankMeasure>().map(drop)),
            place: "task.optimize",
        },
        Setting {
            name: "order-score",
            heading: LEARNING,
            aliases: &[],
            help: "For ⟦optimize⟧: the score of an order is the mean or the sum of the differences of scores over pairs of a \
                   relevant row and another one [default: mean]",
            placeholder: "",
            value: Value::Name(|| OrderScore::ALL.map(OrderScore::name).to_vec()),
            place: "task.order-score",
        },
        Setting {
            name: "sample",
            heading: STOCHASTIC,
            aliases: &[],
            help: "What is drawn with equal probability: every pair, or every query, which is for \
                   ⟦pair-weight=per-query⟧ [default: pairs]",
            placeholder: "",
            value: Value::Name(|| Sample::ALL.map(Sample::name).to_vec()),
            place: "stochastic.sample",
        },
    ],
    without: &[],
    loss: Loss::SquaredHinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Ranked,
    streamed: &STREAMED,
    untunable: None,
};

/// The settings for learning an order from a stream.
const STREAMED: [Setting; 11] = [
    Setting {
        name: "solver",
        heading: LEARNING,
        aliases: &[],
        help: "How to step; passive-aggressive needs no rate and takes pairs, not lists [default: averaged-sgd]",
        placeholder: "",
        value: Value::Name(|| {
            [Solver::AveragedSgd, Solver::Sgd, Solver::Pegasos, Solver::PassiveAggressive].map(Solver::name).to_vec()
        }),
        place: "solver",
    },
    Setting { help: "What a missed margin costs; logistic is for pairs [default: squared-hinge]", ..STREAM_LOSS },
    STREAM_C,
    STREAM_LAMBDA,
    STREAM_SCHEDULE,
    STREAM_RATE,
    STREAM_RECALIBRATE,
    STREAM_BATCH,
    STREAM_SCALE,
    STREAM_EARLY_STOPPING,
    STREAM_JUDGE_EVERY,
];

impl RankSettings {
    /// Refuses pair weights that contradict how pairs are drawn, and margins that contradict nu.
    pub(in crate::task) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        if wish.stochastic.sample == Some(Sample::Queries) && self.pair_weight == PairWeight::GradeGap {
            return Err(Error::new(
                Code::BadSetting,
                "⟦sample=queries⟧ gives every query the same weight, and ⟦pair-weight=grade-gap⟧ does not",
            )
            .help("leave ⟦sample⟧ out, or use ⟦pair-weight=per-query⟧"));
        }
        self.refuse_beside_clicks(wish)?;
        self.refuse_beside_measure(wish)?;
        self.weight_as.refuse(wish.loss, wish.regularisation.is_nu())
    }

    /// Refuses settings of grades beside clicks.
    fn refuse_beside_clicks(&self, wish: &Wish<'_>) -> Result<()> {
        if self.targets_are == TargetsAre::Grades {
            return Ok(());
        }
        let setting = if self.optimize.is_some() {
            "⟦optimize⟧"
        } else if self.pair_weight == PairWeight::GradeGap {
            "⟦pair-weight=grade-gap⟧"
        } else if self.weight_as != WeightAs::default() {
            "⟦weight-as⟧"
        } else if wish.stochastic.sample.is_some() {
            "⟦sample⟧"
        } else {
            return Ok(());
        };
        Err(Error::new(Code::BadSetting, format!("{setting} is for grades, and ⟦targets-are=clicks⟧ has none"))
            .help("leave one of them out"))
    }

    /// Refuses settings of pairs beside a measure of whole orders, and the other way round.
    fn refuse_beside_measure(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let Some(measure) = self.optimize else {
            return match self.order_score {
                OrderScore::Mean => Ok(()),
                OrderScore::Sum => bad(
                    "⟦order-score⟧ is for the order of a whole query".to_string(),
                    "add ⟦optimize=map⟧, or leave ⟦order-score⟧ out",
                ),
            };
        };
        if wish.loss != Loss::Hinge {
            return bad(
                format!("`{measure}` is optimised with the hinge, and the loss is {}", wish.loss.name()),
                "leave ⟦loss⟧ out, or leave ⟦optimize⟧ out to learn from pairs",
            );
        }
        if self.pair_weight != PairWeight::Equal || self.weight_as != WeightAs::default() {
            let setting = if self.pair_weight == PairWeight::Equal { "⟦weight-as⟧" } else { "⟦pair-weight⟧" };
            return bad(
                format!("{setting} is for pairs, and `{measure}` judges the whole order of a query"),
                "leave one of them out; the weight of a query is the one that all its rows have",
            );
        }
        Ok(())
    }

    /// Whether a model of this task has such a decoder and intercept.
    pub(in crate::task) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        *decoder == Decoder::Rank && intercept.is_none()
    }

    /// Explicit pairs are listed; those of graded rows are not, and a measure of whole orders is searched.
    pub(in crate::task) fn abilities(&self, pairs: bool) -> Abilities {
        match self.optimize {
            Some(_) => Abilities::STRUCTURED,
            None if pairs => Abilities::LISTED,
            None if self.targets_are == TargetsAre::Clicks => Abilities { drawn: false, ..Abilities::SUMMED },
            None => Abilities::SUMMED,
        }
    }
}
