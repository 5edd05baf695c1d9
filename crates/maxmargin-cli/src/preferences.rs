//! Whether explicit pairs agree with each other, as text and as JSON.

use crate::format::{count, counted, significant};
use crate::report::{Report, Tone};
use maxmargin::data::{Consistency, Dataset};
use serde_json::{Value, json};

/// Pairs and whether any scoring function can satisfy them all.
pub(crate) struct Preferences {
    pairs: u64,
    weighted: bool,
    /// Pairs of weight 0.
    silent: u64,
    /// Decided pairs of two items with the same features.
    indistinct: u64,
    found: Consistency,
}

impl Preferences {
    /// The pairs of a data set, if it has any.
    pub(crate) fn of(data: &Dataset) -> Option<Preferences> {
        let pairs = data.pairs()?;
        let silent = pairs.weights().map_or(0, |weights| weights.iter().filter(|weight| **weight == 0.0).count());
        Some(Preferences {
            pairs: pairs.len() as u64,
            weighted: pairs.weights().is_some(),
            silent: silent as u64,
            // If the file cannot be read any more, a later step reports the error.
            indistinct: data.indistinct_pairs().unwrap_or(0),
            found: pairs.consistency(),
        })
    }

    /// `12,034 pairs over 530 items · 31 contradicted · 4 preference cycles`
    pub(crate) fn parts(&self) -> Vec<String> {
        let Consistency { items, contradictions, cyclic_groups, .. } = &self.found;
        let mut parts =
            vec![format!("{} over {}", counted(self.pairs, "pair", "pairs"), counted(*items, "item", "items"))];
        if self.silent > 0 {
            parts.push(format!("{} of weight 0", count(self.silent)));
        }
        if self.found.ties > 0 {
            parts.push(counted(self.found.ties, "tie", "ties"));
        }
        if *contradictions > 0 {
            parts.push(format!("{} contradicted", count(*contradictions)));
        }
        if *cyclic_groups > 0 {
            parts.push(counted(*cyclic_groups, "preference cycle", "preference cycles"));
        }
        parts
    }

    /// The consequences, one sentence each; empty if all pairs can be satisfied.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let found = &self.found;
        let mut sentences = Vec::new();
        let weight =
            |value: f64| if self.weighted { format!(" of weight {}", significant(value, 4)) } else { String::new() };
        if found.contradictions > 0 {
            let lost = if self.weighted {
                format!("a weight of at least {}", significant(found.contradicted_weight, 6))
            } else {
                format!("at least {}", counted(found.contradicted_weight as u64, "pair", "pairs"))
            };
            sentences.push(format!(
                "{} ({}): the same two items in both orders, so every scoring function violates {lost}",
                counted(found.contradictions, "contradiction", "contradictions"),
                counted(found.contradicted_pairs, "pair", "pairs"),
            ));
        }
        if found.disputes > found.contradictions {
            sentences.push(format!(
                "{} ({}): the same two items with different outcomes, including ties",
                counted(found.disputes, "disagreement", "disagreements"),
                counted(found.disputed_pairs, "pair", "pairs"),
            ));
        }
        if found.cyclic_groups > 0 {
            sentences.push(format!(
                "{} ({}, {}{} among them): no scoring function satisfies all of these pairs",
                counted(found.cyclic_groups, "preference cycle", "preference cycles"),
                counted(found.cyclic_items, "item", "items"),
                counted(found.cyclic_pairs, "pair", "pairs"),
                weight(found.cyclic_weight),
            ));
        }
        if self.indistinct > 0 {
            sentences.push(format!(
                "{} two items with the same features: no score can tell them apart",
                counted(self.indistinct, "decided pair compares", "decided pairs compare"),
            ));
        }
        sentences
    }

    /// For `--json`.
    pub(crate) fn as_json(&self) -> Value {
        let found = &self.found;
        json!({
            "count": self.pairs,
            "items": found.items,
            "contradictions": found.contradictions,
            "contradicted_pairs": found.contradicted_pairs,
            "contradicted_weight": found.contradicted_weight,
            "ties": found.ties,
            "disputes": found.disputes,
            "disputed_pairs": found.disputed_pairs,
            "cyclic_groups": found.cyclic_groups,
            "cyclic_items": found.cyclic_items,
            "cyclic_pairs": found.cyclic_pairs,
            "cyclic_weight": found.cyclic_weight,
            "indistinct": self.indistinct,
            "consistent": found.is_consistent(),
        })
    }

    /// For a report.
    pub(crate) fn report(&self, report: &mut Report) {
        let sentences = self.sentences();
        if sentences.is_empty() {
            let text = format!("{}; some order of the items satisfies all of them.", self.parts().join(", "));
            report.callout(Tone::Good, "Preferences", text);
        } else {
            report.callout(
                Tone::Warning,
                "Preferences",
                format!("{}. {}.", self.parts().join(", "), sentences.join(". ")),
            );
        }
    }
}
