//! [`RankMeasure`]: the measure of an order that a ranker optimises, and [`OrderScore`]: what the score of an order is.

use super::Variant;
use crate::error::{Code, Error, Result};
use crate::suggest::nearest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// A measure of the order of the rows of a query. What is optimised is 1 − measure, or the best that the query allows
/// − measure where that is below 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankMeasure {
    /// Average precision.
    Map(Variant),
    /// Normalised discounted cumulative gain of the first rows, or of all.
    Ndcg(Option<NonZeroUsize>, Variant),
    /// The share of pairs of a relevant and another row in the right order.
    Auc,
    /// The share of relevant rows among the first.
    PrecisionAt(NonZeroUsize, Variant),
    /// One over the position of the first relevant row, or 0 beyond the cutoff.
    Mrr(Option<NonZeroUsize>),
}

/// The names without cutoff and variant, and whether they take either.
const NAMES: [(&str, Cutoff, bool); 5] = [
    ("map", Cutoff::Never, true),
    ("ndcg", Cutoff::Maybe, true),
    ("auc", Cutoff::Never, false),
    ("p", Cutoff::Always, true),
    ("mrr", Cutoff::Maybe, false),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cutoff {
    Never,
    Maybe,
    Always,
}

impl RankMeasure {
    /// The rule for gain, discount and relevance.
    pub fn variant(self) -> Variant {
        match self {
            RankMeasure::Map(variant) | RankMeasure::Ndcg(_, variant) | RankMeasure::PrecisionAt(_, variant) => variant,
            RankMeasure::Auc | RankMeasure::Mrr(_) => Variant::Standard,
        }
    }

    /// The number of positions that count, if it is limited.
    pub fn cutoff(self) -> Option<NonZeroUsize> {
        match self {
            RankMeasure::Ndcg(cutoff, _) | RankMeasure::Mrr(cutoff) => cutoff,
            RankMeasure::PrecisionAt(cutoff, _) => Some(cutoff),
            RankMeasure::Map(_) | RankMeasure::Auc => None,
        }
    }

    /// The name without cutoff and variant.
    fn base(self) -> &'static str {
        match self {
            RankMeasure::Map(_) => "map",
            RankMeasure::Ndcg(..) => "ndcg",
            RankMeasure::Auc => "auc",
            RankMeasure::PrecisionAt(..) => "p",
            RankMeasure::Mrr(_) => "mrr",
        }
    }
}

impl fmt::Display for RankMeasure {
    /// The shortest name that parses as this measure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base())?;
        if let Some(cutoff) = self.cutoff() {
            write!(f, "@{cutoff}")?;
        }
        if self.variant() != Variant::default() {
            write!(f, ":{}", self.variant())?;
        }
        Ok(())
    }
}

impl FromStr for RankMeasure {
    type Err = Error;

    fn from_str(text: &str) -> Result<RankMeasure> {
        let lower = text.trim().to_ascii_lowercase();
        let (name, variant) = match lower.split_once(':') {
            Some((name, variant)) => (name, Some(variant)),
            None => (lower.as_str(), None),
        };
        let (base, cutoff) = match name.split_once('@') {
            Some((base, cutoff)) => (base, Some(cutoff)),
            None => (name, None),
        };
        let Some((base, takes, has_variants)) = NAMES.into_iter().find(|known| known.0 == base) else {
            let similar = nearest(base, NAMES.map(|known| known.0)).filter(|_| base.len() > 1);
            let guess = similar.map_or(String::new(), |similar| format!("did you mean `{similar}`? "));
            return Err(refuse(format!("⟦optimize⟧ of a ranker takes no `{text}`"))
                .help(format!("{guess}use one of map, ndcg, ndcg@K, auc, p@K, mrr and mrr@K")));
        };
        let cutoff = match (cutoff, takes) {
            (Some(_), Cutoff::Never) => {
                return Err(refuse(format!("`{base}` counts all positions, and `{text}` limits them"))
                    .help(format!("use `{base}`, ndcg@K, p@K or mrr@K")));
            }
            (None, Cutoff::Always) => {
                return Err(
                    refuse(format!("`{base}` needs a number of positions")).help(format!("write it as `{base}@10`"))
                );
            }
            (None, _) => None,
            (Some(cutoff), _) => Some(cutoff.parse::<NonZeroUsize>().map_err(|_| {
                refuse(format!("`{cutoff}` in ⟦optimize⟧ is no number of positions"))
                    .help("give a whole number from 1, such as 10")
            })?),
        };
        let variant = match variant {
            None => Variant::default(),
            Some(_) if !has_variants => {
                return Err(refuse(format!("`{base}` has no variants")).help(format!("write it as `{base}`")));
            }
            Some(name) => Variant::ALL.iter().copied().find(|variant| variant.name() == name).ok_or_else(|| {
                let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
                refuse(format!("`{text}` names no known variant"))
                    .help(format!("the variants are {}", names.join(", ")))
            })?,
        };
        Ok(match (base, cutoff) {
            ("map", _) => RankMeasure::Map(variant),
            ("ndcg", cutoff) => RankMeasure::Ndcg(cutoff, variant),
            ("mrr", cutoff) => RankMeasure::Mrr(cutoff),
            ("p", Some(cutoff)) => RankMeasure::PrecisionAt(cutoff, variant),
            _ => RankMeasure::Auc,
        })
    }
}

impl Serialize for RankMeasure {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RankMeasure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<RankMeasure, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

fn refuse(message: String) -> Error {
    Error::new(Code::BadSetting, message)
}

/// The score of an order: over pairs of a relevant row i and another row j, ±(s_i − s_j), positive where i comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderScore {
    /// The mean over the pairs, so that long queries have no larger scores than short ones.
    #[default]
    Mean,
    /// The sum over the pairs.
    Sum,
}

impl OrderScore {
    /// All choices.
    pub const ALL: [OrderScore; 2] = [OrderScore::Mean, OrderScore::Sum];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            OrderScore::Mean => "mean",
            OrderScore::Sum => "sum",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_printed() {
        for name in ["map", "map:mslr", "ndcg", "ndcg@10", "ndcg@5:trec", "auc", "p@3", "p@10:mslr", "mrr", "mrr@4"] {
            let measure: RankMeasure = name.parse().expect("known");
            assert_eq!(measure.to_string(), name);
            let json = serde_json::to_string(&measure).expect("writable");
            assert_eq!(serde_json::from_str::<RankMeasure>(&json).expect("readable"), measure);
        }
        assert_eq!("NDCG@7:standard".parse::<RankMeasure>().expect("known").to_string(), "ndcg@7");
    }

    #[test]
    fn a_wrong_name_is_answered_with_a_remedy() {
        for (name, help) in [
            ("mpa", "did you mean `map`?"),
            ("ndgc@10", "did you mean `ndcg`?"),
            ("p", "`p@10`"),
            ("map@3", "use `map`"),
            ("ndcg@0", "from 1"),
            ("ndcg:letro", "the variants are standard"),
            ("auc:mslr", "`auc`"),
            ("", "use one of map"),
        ] {
            let error = name.parse::<RankMeasure>().expect_err(name);
            assert_eq!(error.code(), Code::BadSetting);
            assert!(error.remedy().is_some_and(|remedy| remedy.contains(help)), "{name}: {:?}", error.remedy());
        }
    }
}
