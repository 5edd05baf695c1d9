//! Names of metrics: `base[@K][:variant]`. This file parses, prints and suggests them.

use super::{Metric, Variant};
use crate::error::{Code, Error, Result};
use crate::suggest::nearest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Whether a name takes `@K`.
#[derive(Clone, Copy, PartialEq)]
enum Cutoff {
    Never,
    Optional,
    Always,
}

struct Entry {
    base: &'static str,
    cutoff: Cutoff,
    variants: bool,
    description: &'static str,
}

const fn entry(base: &'static str, cutoff: Cutoff, variants: bool, description: &'static str) -> Entry {
    Entry { base, cutoff, variants, description }
}

/// The only list of names. [`build`] and [`Metric::base`] convert in the two directions.
const ENTRIES: &[Entry] = &[
    entry("accuracy", Cutoff::Never, false, "fraction of rows predicted correctly"),
    entry("error", Cutoff::Never, false, "fraction of rows predicted wrongly"),
    entry("precision", Cutoff::Never, false, "of the rows predicted positive, the fraction that is positive"),
    entry("recall", Cutoff::Never, false, "of the positive rows, the fraction predicted positive"),
    entry("f1", Cutoff::Never, false, "harmonic mean of precision and recall of the positive class"),
    entry("f1-micro", Cutoff::Never, false, "F1 from counts summed over classes"),
    entry("f1-macro", Cutoff::Never, false, "mean of the F1 of each class"),
    entry("precision-macro", Cutoff::Never, false, "mean of the precision of each class"),
    entry("recall-macro", Cutoff::Never, false, "mean of the recall of each class"),
    entry("top-accuracy", Cutoff::Always, false, "fraction of rows whose class has one of the K largest scores"),
    entry("qwk", Cutoff::Never, false, "kappa with quadratic weights, over classes in the order of their labels"),
    entry("auc", Cutoff::Never, false, "area under the ROC curve; of each class against the rest, the mean"),
    entry("auc-weighted", Cutoff::Never, false, "area under the ROC curve of each class, weighed by its rows"),
    entry("log-loss", Cutoff::Never, false, "mean of minus the logarithm of the probability of the target"),
    entry("calibration-error", Cutoff::Never, false, "distance of probabilities from shares of right predictions"),
    entry("average-precision", Cutoff::Never, false, "area under the precision-recall steps, over all rows"),
    entry("prbep", Cutoff::Never, false, "precision of as many of the highest scores as rows are positive"),
    entry("map", Cutoff::Never, true, "mean over queries of average precision"),
    entry("ndcg", Cutoff::Optional, true, "normalised discounted cumulative gain of the first K rows, or of all"),
    entry("mean-ndcg", Cutoff::Never, true, "mean of NDCG@1, NDCG@2, ... to the end of the list"),
    entry("mrr", Cutoff::Optional, false, "mean over queries of one over the position of the first relevant row"),
    entry("p", Cutoff::Always, true, "fraction of relevant rows among the first K"),
    entry("err", Cutoff::Optional, false, "expected reciprocal rank: one over the position where a reader stops"),
    entry("kendall-tau", Cutoff::Never, false, "Kendall's tau-b of scores and targets: by query, or over all ranks"),
    entry("pair-accuracy", Cutoff::Never, false, "fraction of pairs of a query in the right order, ties counting half"),
    entry("mae", Cutoff::Never, false, "mean absolute difference of prediction and target"),
    entry("rmse", Cutoff::Never, false, "root of the mean squared difference of prediction and target"),
    entry("token-accuracy", Cutoff::Never, false, "fraction of rows of sequences whose tag is right"),
    entry("sequence-accuracy", Cutoff::Never, false, "fraction of sequences all of whose tags are right"),
    entry("span-f1", Cutoff::Never, false, "F1 of the spans that tags such as B-NP and I-NP mark"),
    entry("hamming-loss", Cutoff::Never, false, "share of the labels of sets that are predicted wrongly"),
    entry("subset-accuracy", Cutoff::Never, false, "fraction of rows whose predicted set of labels is right"),
    entry("one-error", Cutoff::Never, false, "fraction of rows whose first label is not one of theirs"),
    entry("coverage", Cutoff::Never, false, "mean number of labels, from the top, that hold all labels of a row"),
    entry(
        "ranking-loss",
        Cutoff::Never,
        false,
        "share of the pairs of a label of the row and another one in the wrong order",
    ),
    entry(
        "label-ranking-average-precision",
        Cutoff::Never,
        false,
        "mean over the labels of a row of the precision down to each",
    ),
    entry("labelled-precision", Cutoff::Never, false, "of the predicted brackets of trees, the fraction that is right"),
    entry("labelled-recall", Cutoff::Never, false, "of the true brackets of trees, the fraction that is predicted"),
    entry("labelled-f1", Cutoff::Never, false, "harmonic mean of precision and recall of the brackets of trees"),
    entry("exact-match", Cutoff::Never, false, "fraction of trees all of whose brackets are right"),
    entry("tag-accuracy", Cutoff::Never, false, "fraction of words of trees whose tag is right"),
];

/// The metric of a base name. `cutoff` is present if the entry says `Always`.
fn build(base: &str, cutoff: Option<NonZeroUsize>, variant: Variant) -> Option<Metric> {
    Some(match base {
        "accuracy" => Metric::Accuracy,
        "error" => Metric::Error,
        "precision" => Metric::Precision,
        "recall" => Metric::Recall,
        "f1" => Metric::F1,
        "f1-micro" => Metric::F1Micro,
        "f1-macro" => Metric::F1Macro,
        "precision-macro" => Metric::PrecisionMacro,
        "recall-macro" => Metric::RecallMacro,
        "top-accuracy" => Metric::TopAccuracy { cutoff: cutoff? },
        "qwk" => Metric::QuadraticKappa,
        "auc" => Metric::Auc,
        "auc-weighted" => Metric::AucWeighted,
        "calibration-error" => Metric::CalibrationError,
        "average-precision" => Metric::AveragePrecision,
        "prbep" => Metric::BreakEven,
        "map" => Metric::Map { variant },
        "ndcg" => Metric::Ndcg { cutoff, variant },
        "mean-ndcg" => Metric::MeanNdcg { variant },
        "mrr" => Metric::Mrr { cutoff },
        "p" => Metric::PrecisionAt { cutoff: cutoff?, variant },
        "err" => Metric::ExpectedReciprocalRank { cutoff },
        "kendall-tau" => Metric::KendallTau,
        "log-loss" => Metric::LogLoss,
        "pair-accuracy" => Metric::PairAccuracy,
        "mae" => Metric::Mae,
        "rmse" => Metric::Rmse,
        "token-accuracy" => Metric::TokenAccuracy,
        "sequence-accuracy" => Metric::SequenceAccuracy,
        "span-f1" => Metric::SpanF1,
        "hamming-loss" => Metric::HammingLoss,
        "subset-accuracy" => Metric::SubsetAccuracy,
        "one-error" => Metric::OneError,
        "coverage" => Metric::Coverage,
        "ranking-loss" => Metric::RankingLoss,
        "label-ranking-average-precision" => Metric::LabelRankingAveragePrecision,
        "labelled-precision" => Metric::LabelledPrecision,
        "labelled-recall" => Metric::LabelledRecall,
        "labelled-f1" => Metric::LabelledF1,
        "exact-match" => Metric::ExactMatch,
        "tag-accuracy" => Metric::TagAccuracy,
        _ => return None,
    })
}

impl Metric {
    /// Parses a name such as `ndcg@10`, `map:trec` or `auc`. Case does not matter, and `_` means the same as `-`.
    pub fn parse(name: &str) -> Result<Metric> {
        let plain = name.trim().to_ascii_lowercase().replace('_', "-");
        let (head, variant) = match plain.split_once(':') {
            Some((head, variant)) => (head, Some(variant)),
            None => (plain.as_str(), None),
        };
        let (base, cutoff) = match head.split_once('@') {
            Some((base, cutoff)) => (base, Some(cutoff)),
            None => (head, None),
        };
        let Some(entry) = ENTRIES.iter().find(|entry| entry.base == base) else {
            return Err(unknown(name, base, &plain[base.len()..]));
        };
        let cutoff = match (cutoff, entry.cutoff) {
            (None, Cutoff::Always) => {
                return Err(refuse(format!("the metric `{name}` lacks its number of positions"))
                    .help(format!("write, for example, `{base}@10`")));
            }
            (Some(_), Cutoff::Never) => {
                // Some people write precision@10 for P@10, and accuracy@5 for top-accuracy@5.
                let remedy = match base {
                    "precision" => head.replacen(base, "p", 1),
                    "accuracy" => format!("top-{head}"),
                    _ => base.to_owned(),
                };
                return Err(refuse(format!("`{name}`: the metric `{base}` takes no number of positions"))
                    .help(format!("write `{remedy}`")));
            }
            (None, _) => None,
            (Some(text), _) => Some(text.parse::<NonZeroUsize>().map_err(|_| {
                refuse(format!("`{name}`: `{text}` is not a number of positions"))
                    .help(format!("write a whole number from 1, for example `{base}@10`"))
            })?),
        };
        let variant = match variant {
            None => Variant::default(),
            Some(_) if !entry.variants => {
                return Err(
                    refuse(format!("`{name}`: the metric `{base}` has no variants")).help(format!("write `{head}`"))
                );
            }
            Some(text) => Variant::ALL.iter().copied().find(|variant| variant.name() == text).ok_or_else(|| {
                let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
                let guess =
                    nearest(text, &names).map_or(String::new(), |guess| format!("did you mean `{head}:{guess}`? "));
                refuse(format!("`{name}`: there is no variant `{text}`"))
                    .help(format!("{guess}the variants are {}", names.join(", ")))
            })?,
        };
        build(base, cutoff, variant)
            .ok_or_else(|| Error::new(Code::Internal, format!("the metric `{base}` is listed but not built")))
    }

    /// The name without cutoff and variant.
    fn base(&self) -> &'static str {
        match self {
            Metric::Accuracy => "accuracy",
            Metric::Error => "error",
            Metric::Precision => "precision",
            Metric::Recall => "recall",
            Metric::F1 => "f1",
            Metric::F1Micro => "f1-micro",
            Metric::F1Macro => "f1-macro",
            Metric::PrecisionMacro => "precision-macro",
            Metric::RecallMacro => "recall-macro",
            Metric::TopAccuracy { .. } => "top-accuracy",
            Metric::QuadraticKappa => "qwk",
            Metric::Auc => "auc",
            Metric::AucWeighted => "auc-weighted",
            Metric::CalibrationError => "calibration-error",
            Metric::AveragePrecision => "average-precision",
            Metric::BreakEven => "prbep",
            Metric::Map { .. } => "map",
            Metric::Ndcg { .. } => "ndcg",
            Metric::MeanNdcg { .. } => "mean-ndcg",
            Metric::Mrr { .. } => "mrr",
            Metric::PrecisionAt { .. } => "p",
            Metric::ExpectedReciprocalRank { .. } => "err",
            Metric::KendallTau => "kendall-tau",
            Metric::LogLoss => "log-loss",
            Metric::PairAccuracy => "pair-accuracy",
            Metric::Mae => "mae",
            Metric::Rmse => "rmse",
            Metric::TokenAccuracy => "token-accuracy",
            Metric::SequenceAccuracy => "sequence-accuracy",
            Metric::HammingLoss => "hamming-loss",
            Metric::SubsetAccuracy => "subset-accuracy",
            Metric::OneError => "one-error",
            Metric::Coverage => "coverage",
            Metric::RankingLoss => "ranking-loss",
            Metric::LabelRankingAveragePrecision => "label-ranking-average-precision",
            Metric::SpanF1 => "span-f1",
            Metric::LabelledPrecision => "labelled-precision",
            Metric::LabelledRecall => "labelled-recall",
            Metric::LabelledF1 => "labelled-f1",
            Metric::ExactMatch => "exact-match",
            Metric::TagAccuracy => "tag-accuracy",
        }
    }

    /// The number of positions that count, if the metric has a cutoff.
    pub fn cutoff(&self) -> Option<NonZeroUsize> {
        match self {
            Metric::Ndcg { cutoff, .. } | Metric::Mrr { cutoff } | Metric::ExpectedReciprocalRank { cutoff } => *cutoff,
            Metric::PrecisionAt { cutoff, .. } | Metric::TopAccuracy { cutoff } => Some(*cutoff),
            _ => None,
        }
    }

    /// The name with the variant spelled out, even if it is the default: `ndcg@10 (variant standard)`.
    pub fn describe(&self) -> String {
        match self.variant() {
            Some(variant) => format!("{} (variant {variant})", self.without_variant()),
            None => self.to_string(),
        }
    }

    /// The metric in one line.
    pub fn description(&self) -> &'static str {
        let base = self.base();
        ENTRIES.iter().find(|entry| entry.base == base).map_or("", |entry| entry.description)
    }

    /// The metric in one line, as it is computed for pairs of items with outcomes.
    pub fn description_for_pairs(&self) -> &'static str {
        match self {
            Metric::Accuracy => "fraction of pairs whose outcome is predicted correctly",
            Metric::Error => "fraction of pairs whose outcome is predicted wrongly",
            Metric::F1Micro => "F1 from counts summed over the three outcomes",
            Metric::F1Macro => "mean of the F1 of each outcome",
            Metric::Auc => {
                "area under the curve of decided pairs found, with the right side, against ties called decided; \
                 guessing gives 0.25"
            }
            Metric::LogLoss => "mean of minus the logarithm of the probability of the outcome",
            Metric::PairAccuracy => "fraction of decided pairs in the right order, equal scores counting half",
            _ => self.description(),
        }
    }

    /// All names, with `K` for a number of positions. Metrics that have a [`Metric::variant`] also take `:variant` at
    /// the end.
    pub fn all_names() -> Vec<String> {
        Metric::all_described().into_iter().map(|(name, _)| name).collect()
    }

    /// All names with their one-line descriptions, for help texts.
    pub fn all_described() -> Vec<(String, &'static str)> {
        let mut names = Vec::new();
        for entry in ENTRIES {
            if entry.cutoff != Cutoff::Always {
                names.push((entry.base.to_owned(), entry.description));
            }
            if entry.cutoff != Cutoff::Never {
                names.push((format!("{}@K", entry.base), entry.description));
            }
        }
        names
    }

    fn without_variant(&self) -> String {
        match self.cutoff() {
            Some(cutoff) => format!("{}@{cutoff}", self.base()),
            None => self.base().to_owned(),
        }
    }
}

impl fmt::Display for Metric {
    /// The shortest name that parses as this metric. The default variant is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_variant())?;
        match self.variant() {
            Some(variant) if variant != Variant::default() => write!(f, ":{variant}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(name: &str) -> Result<Metric> {
        Metric::parse(name)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Metric, D::Error> {
        let name = String::deserialize(deserializer)?;
        Metric::parse(&name).map_err(serde::de::Error::custom)
    }
}

fn refuse(message: String) -> Error {
    Error::new(Code::UnknownMetric, message)
}

/// The error for an unknown base name. `rest` is what followed it; the suggestion keeps it if it fits.
fn unknown(name: &str, base: &str, rest: &str) -> Error {
    let bases: Vec<&str> = ENTRIES.iter().filter(|entry| entry.base.len() > 1).map(|entry| entry.base).collect();
    // `precision-at-10` and `prec@10` mean P@K, which no edit distance would find.
    let guess = match (nearest(base, &bases), rest.starts_with('@')) {
        // Other names of the same metrics.
        _ if base.starts_with("top-") => {
            let cutoff = base[4..].parse::<NonZeroUsize>().ok().map(|cutoff| cutoff.to_string());
            let given = rest.strip_prefix('@').filter(|given| given.parse::<NonZeroUsize>().is_ok());
            Some(format!("top-accuracy@{}", cutoff.as_deref().or(given).unwrap_or("5")))
        }
        _ if base.contains("kappa") => Some("qwk".to_owned()),
        _ if base == "lrap" || base == "label-ranking-loss" && rest.is_empty() => {
            Some(if base == "lrap" { "label-ranking-average-precision" } else { "ranking-loss" }.to_owned())
        }
        _ if base == "hamming" => Some("hamming-loss".to_owned()),
        _ if base == "ece" => Some("calibration-error".to_owned()),
        (Some(guess), _) if Metric::parse(&format!("{guess}{rest}")).is_ok() => Some(format!("{guess}{rest}")),
        (_, true) if base.starts_with('p') && Metric::parse(&format!("p{rest}")).is_ok() => Some(format!("p{rest}")),
        (guess, _) => guess,
    };
    let guess = guess.map_or(String::new(), |guess| format!("did you mean `{guess}`? "));
    refuse(format!("there is no metric `{name}`"))
        .help(format!("{guess}the metrics are {}", Metric::all_names().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_of(name: &str) -> String {
        let error = Metric::parse(name).expect_err("not a metric");
        assert_eq!(error.code(), Code::UnknownMetric, "{name}");
        assert!(error.message().contains(name), "{}", error.message());
        error.remedy().expect("a remedy").into_owned()
    }

    #[test]
    fn every_name_reads_back_as_printed() {
        for pattern in Metric::all_names() {
            let name = pattern.replace('K', "7");
            let metric = Metric::parse(&name).expect("listed");
            assert_eq!(metric.to_string(), name);
            assert!(!metric.description().is_empty());
            assert_eq!(metric.variant().is_some(), Metric::parse(&format!("{name}:trec")).is_ok(), "{name}");
            for variant in Variant::ALL.iter().filter(|_| metric.variant().is_some()) {
                let metric = Metric::parse(&format!("{name}:{variant}")).expect("listed");
                assert_eq!(metric.variant(), Some(*variant));
                assert_eq!(Metric::parse(&metric.to_string()).expect("printed"), metric);
            }
        }
    }

    #[test]
    fn the_default_variant_is_named_in_full_form_only() {
        let metric = Metric::parse("NDCG@10:standard").expect("known");
        assert_eq!(metric.to_string(), "ndcg@10");
        assert_eq!(metric.describe(), "ndcg@10 (variant standard)");
        assert_eq!(Metric::parse("p@5:letor").expect("known").describe(), "p@5 (variant letor)");
        assert_eq!(Metric::parse("mrr@3").expect("known").describe(), "mrr@3");
        assert_eq!(Metric::parse("Average_Precision").expect("known"), Metric::AveragePrecision);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_a_suggestion() {
        assert!(help_of("ndgc@10").starts_with("did you mean `ndcg@10`?"));
        assert!(help_of("acuracy").starts_with("did you mean `accuracy`?"));
        assert!(help_of("mpa").starts_with("did you mean `map`?"));
        assert!(help_of("precison@5").starts_with("did you mean `p@5`?"));
        assert!(help_of("top-3").starts_with("did you mean `top-accuracy@3`?"));
        assert!(help_of("top-k@4").starts_with("did you mean `top-accuracy@4`?"));
        assert!(help_of("quadratic-kappa").starts_with("did you mean `qwk`?"));
        assert!(help_of("qwc").starts_with("did you mean `qwk`?"));
        assert!(help_of("ece").starts_with("did you mean `calibration-error`?"));
        assert!(help_of("xylophone").starts_with("the metrics are accuracy, error"));
        assert!(help_of("").starts_with("the metrics are"));
        assert!(help_of("ndcg@10:letro").starts_with("did you mean `ndcg@10:letor`?"));
    }

    #[test]
    fn a_name_with_the_wrong_parts_says_which() {
        assert!(help_of("p").contains("`p@10`"));
        assert!(help_of("ndcg@0").contains("from 1"));
        assert!(help_of("ndcg@ten").contains("from 1"));
        assert!(help_of("map@10").contains("`map`"));
        assert!(help_of("precision@10").contains("`p@10`"));
        assert!(help_of("accuracy@5").contains("`top-accuracy@5`"));
        assert!(help_of("top-accuracy").contains("`top-accuracy@10`"));
        assert!(help_of("auc:trec").contains("`auc`"));
        assert!(help_of("ndcg:").contains("the variants are standard, letor, mslr, trec, sklearn"));
    }

    #[test]
    fn a_metric_is_its_name_in_json() {
        let metric = Metric::parse("ndcg@5:trec").expect("known");
        let json = serde_json::to_string(&metric).expect("writable");
        assert_eq!(json, "\"ndcg@5:trec\"");
        assert_eq!(serde_json::from_str::<Metric>(&json).expect("readable"), metric);
        assert!(serde_json::from_str::<Metric>("\"nonsense\"").is_err());
    }
}
