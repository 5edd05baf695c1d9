//! What is set about a ranker.

use crate::certificate::Decoder;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::task::comparison::{PAIR_WEIGHT_AS, PairWeightAs};
use crate::task::{Abilities, Input, Profile, is_default};
use crate::wish::{LEARNING, Regularisation, STOCHASTIC, Sample, Setting, Value, Wish};
use serde::{Deserialize, Serialize};

/// How much a pair counts beside the weights of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairWeight {
    /// Every pair alike: long queries count for more.
    #[default]
    Equal,
    /// Every query alike: the pairs of a query share a weight of 1.
    PerQuery,
    /// By the difference of the two targets.
    GradeGap,
}

impl PairWeight {
    /// Every one there is.
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

/// What is set about a ranker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RankSettings {
    /// How much each pair of graded rows counts.
    #[serde(skip_serializing_if = "is_default")]
    pub pair_weight: PairWeight,
    /// What the weights of explicit pairs do.
    #[serde(skip_serializing_if = "is_default")]
    pub pair_weight_as: PairWeightAs,
}

/// `rank`
pub(in crate::task) const PROFILE: Profile = Profile {
    name: "rank",
    about: "Order the rows of each query, or items by pairs of a better and a worse one",
    settings: &[
        Setting {
            name: "pair-weight",
            heading: LEARNING,
            aliases: &[],
            help: "How much each pair of graded rows counts: alike, as a share of its query, or by the difference of its \
                   grades [default: equal]",
            placeholder: "",
            value: Value::Name(|| PairWeight::ALL.map(PairWeight::name).to_vec()),
            place: "task.pair-weight",
        },
        PAIR_WEIGHT_AS,
        Setting {
            name: "sample",
            heading: STOCHASTIC,
            aliases: &[],
            help: "What is equally likely when pairs are drawn: every pair, or every query, which is for \
                   [[pair-weight=per-query]] [default: pairs]",
            placeholder: "",
            value: Value::Name(|| Sample::ALL.map(Sample::name).to_vec()),
            place: "stochastic.sample",
        },
    ],
    without: &[],
    loss: Loss::SquaredHinge,
    regularisation: Regularisation::C(1.0),
    input: Input::Ranked,
    streamed: &[],
    untunable: None,
};

impl RankSettings {
    /// Refuses weights that contradict how pairs are drawn, or margins that nu sets.
    pub(in crate::task) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        if wish.stochastic.sample == Some(Sample::Queries) && self.pair_weight == PairWeight::GradeGap {
            return Err(Error::new(
                Code::BadSetting,
                "[[sample=queries]] lets every query count the same, which [[pair-weight=grade-gap]] does not",
            )
            .help("leave [[sample]] out, or use [[pair-weight=per-query]]"));
        }
        if wish.regularisation.is_nu() && self.pair_weight_as == PairWeightAs::Margin {
            return Err(Error::new(
                Code::BadSetting,
                "with [[nu]] all margins are the same, and weights cannot set them",
            )
            .help("leave [[pair-weight-as]] out, or use [[c]] instead of [[nu]]"));
        }
        Ok(())
    }

    /// Whether a model of it answers so.
    pub(in crate::task) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        *decoder == Decoder::Rank && intercept.is_none()
    }

    /// Explicit pairs are listed; those of graded rows are not.
    pub(in crate::task) fn abilities(&self, pairs: bool) -> Abilities {
        if pairs { Abilities::LISTED } else { Abilities::SUMMED }
    }
}
