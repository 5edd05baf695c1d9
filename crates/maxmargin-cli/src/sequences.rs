//! What is shown about models of sequences: their metrics, tags, transitions and the features of each tag.

use crate::format;
use maxmargin::data::{Dataset, Labels};
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Model};
use serde_json::{Value, json};

/// A weight with its words.
pub(crate) type Named = (String, f64);

/// The same metrics, or the defaults for sequences if none were named and the model predicts tags.
pub(crate) fn fitting(metrics: Vec<Metric>, names: &[String], tags: Option<&Labels>) -> Vec<Metric> {
    match tags {
        Some(tags) if names.is_empty() => Metric::sequence_defaults(tags.names()),
        _ => metrics,
    }
}

/// `8,936 sequences`, if the rows are those of sequences.
pub(crate) fn counted(data: &Dataset) -> Vec<String> {
    data.groups().map(|groups| format::counted(groups.len() as u64, "sequence", "sequences")).into_iter().collect()
}

/// The weights that belong to no feature: those of transitions, of the ends, and the biases.
pub(crate) struct Shared {
    pub(crate) transitions: Vec<Named>,
    pub(crate) starts: Vec<Named>,
    pub(crate) ends: Vec<Named>,
    pub(crate) biases: Vec<Named>,
}

impl Shared {
    /// Those of a model of sequences, each list with the largest absolute values first.
    pub(crate) fn of(model: &Model) -> Option<Shared> {
        let Decoder::Sequence { tags, shared } = &model.decoder else { return None };
        let count = tags.len();
        let of =
            |first: usize| sorted((0..count).map(|tag| (tags.name(tag).to_string(), shared[first + tag])).collect());
        let transition = |place: usize| format!("{} → {}", tags.name(place / count), tags.name(place % count));
        let transitions = shared[3 * count..].iter().enumerate().map(|(place, &weight)| (transition(place), weight));
        Some(Shared {
            transitions: sorted(transitions.collect()),
            starts: of(count),
            ends: of(2 * count),
            biases: of(0),
        })
    }

    /// For JSON.
    pub(crate) fn as_json(&self, top: usize) -> Value {
        let list = |named: &[Named], key: &str| -> Vec<Value> {
            named.iter().take(top).map(|(name, weight)| json!({ key: name, "weight": weight })).collect()
        };
        json!({
            "transitions": list(&self.transitions, "transition"),
            "start": list(&self.starts, "tag"),
            "end": list(&self.ends, "tag"),
            "bias": list(&self.biases, "tag"),
        })
    }
}

fn sorted(mut named: Vec<Named>) -> Vec<Named> {
    named.retain(|(_, weight)| *weight != 0.0);
    named.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    named
}

/// The features with the largest weights of each tag.
pub(crate) fn features_by_tag(model: &Model, base: usize, top: usize) -> Vec<(String, Vec<Named>)> {
    let (Some(tags), Some(weights)) = (model.decoder.tags(), model.scorer.weights()) else { return Vec::new() };
    let count = tags.len();
    let of = |tag: usize| {
        let own = weights.iter().skip(tag).step_by(count).enumerate();
        let mut own: Vec<(usize, f64)> =
            own.map(|(feature, weight)| (feature, *weight)).filter(|w| w.1 > 0.0).collect();
        own.sort_by(|a, b| b.1.total_cmp(&a.1));
        own.truncate(top);
        let named = own.into_iter().map(|(feature, weight)| (model.feature_name(feature, base), weight));
        (tags.name(tag).to_string(), named.collect())
    };
    (0..count).map(of).collect()
}

/// `B-NP → I-NP 1.2, …`
pub(crate) fn line(named: &[Named], top: usize) -> String {
    let shown: Vec<String> = named
        .iter()
        .take(top)
        .map(|(name, weight)| format!("{} {}", format::shortened(name, 40), format::significant(*weight, 3)))
        .collect();
    if shown.is_empty() { "none".to_string() } else { shown.join(", ") }
}
