//! What is shown about models of sequences and trees: their metrics, tags, transitions, rules and the features of each
//! tag.

use crate::format;
use maxmargin::data::{Dataset, Labels};
use maxmargin::error::Result;
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Grammar, Model, Predictions};
use maxmargin::structured::trees_of;
use serde_json::{Value, json};
use std::ops::Range;

/// A weight with its words.
pub(crate) type Named = (String, f64);

/// The same metrics, or the defaults for sequences if none were named and the model predicts tags.
pub(crate) fn fitting(metrics: Vec<Metric>, names: &[String], tags: Option<&Labels>) -> Vec<Metric> {
    match tags {
        Some(tags) if names.is_empty() => Metric::sequence_defaults(tags.names()),
        _ => metrics,
    }
}

/// What a group of rows is called.
pub(crate) const SEQUENCES: (&str, &str) = ("sequence", "sequences");
pub(crate) const SENTENCES: (&str, &str) = ("sentence", "sentences");

/// What a model calls a group of rows, if it decodes them together.
pub(crate) fn noun(decoder: &Decoder) -> Option<(&'static str, &'static str)> {
    match decoder {
        Decoder::Sequence { .. } => Some(SEQUENCES),
        Decoder::Tree { .. } => Some(SENTENCES),
        _ => None,
    }
}

/// `8,936 sequences`, if rows have groups.
pub(crate) fn counted(data: &Dataset, (one, many): (&str, &str)) -> Vec<String> {
    data.groups().map(|groups| format::counted(groups.len() as u64, one, many)).into_iter().collect()
}

/// `45 tags, 26 labels, 2,101 rules`
pub(crate) fn size_of(grammar: &Grammar) -> String {
    [
        format::counted(grammar.tags().len() as u64, "tag", "tags"),
        format::counted(grammar.labels().len() as u64, "label", "labels"),
        format::counted((grammar.binary().len() + grammar.unary().len()) as u64, "rule", "rules"),
    ]
    .join(", ")
}

/// What is said about sentences that the grammar does not parse.
pub(crate) fn flat_trees(unparsed: u64) -> Option<String> {
    let sentences = format::counted(unparsed, "sentence", "sentences");
    (unparsed > 0).then(|| format!("note: the grammar has no tree for {sentences}: a flat tree stands in for it"))
}

/// What is said about trees beside their metrics.
pub(crate) struct TreeFacts {
    /// Brackets whose label or tag the grammar does not know.
    unknown: u64,
    /// Sentences without a tree of the grammar.
    unparsed: u64,
}

impl TreeFacts {
    /// For data with true trees, if the model parses.
    pub(crate) fn of(model: &Model, data: &Dataset) -> Result<Option<TreeFacts>> {
        let Some(grammar) = model.decoder.grammar() else { return Ok(None) };
        let known = |names: &[String], name: &String| names.contains(name);
        let mut unknown = 0;
        for tree in trees_of(data, None)?.iter().flatten() {
            let tags = tree.tags.iter().filter(|tag| !known(grammar.tags(), tag)).count();
            let labels = tree.phrases.iter().filter(|phrase| !known(grammar.labels(), &phrase.label)).count();
            unknown += (tags + labels) as u64;
        }
        let unparsed = match model.predict(data)? {
            Predictions::Trees { unparsed, .. } => unparsed as u64,
            _ => 0,
        };
        Ok(Some(TreeFacts { unknown, unparsed }))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let brackets = format::counted(self.unknown, "bracket has", "brackets have");
        let unknown = (self.unknown > 0)
            .then(|| format!("note: {brackets} a label or tag that the model does not know: each is missed"));
        unknown.into_iter().chain(flat_trees(self.unparsed)).collect()
    }

    pub(crate) fn add_to(&self, object: &mut Value) {
        object["unparsed"] = json!(self.unparsed);
        if self.unknown > 0 {
            object["unknown_labels"] = json!(self.unknown);
        }
    }
}

/// Weights of one kind that belong to no feature, those with the largest absolute values first.
pub(crate) struct List {
    /// The kind, for people and for JSON.
    pub(crate) title: &'static str,
    key: &'static str,
    /// What one of them is called in JSON.
    item: &'static str,
    pub(crate) named: Vec<Named>,
}

/// The weights that belong to no feature: of transitions, ends and biases, or of rules, tops and lengths.
pub(crate) struct Shared {
    pub(crate) lists: Vec<List>,
}

impl Shared {
    /// Those of a model of sequences or trees.
    pub(crate) fn of(model: &Model) -> Option<Shared> {
        let list = |title, (key, item), named: Vec<Named>| List { title, key, item, named: sorted(named) };
        let lists = match &model.decoder {
            Decoder::Sequence { tags, shared } => {
                let count = tags.len();
                let of = |first: usize| -> Vec<Named> {
                    (0..count).map(|tag| (tags.name(tag).to_string(), shared[first + tag])).collect()
                };
                let transition = |place: usize| format!("{} → {}", tags.name(place / count), tags.name(place % count));
                let transitions =
                    shared[3 * count..].iter().enumerate().map(|(place, &weight)| (transition(place), weight));
                vec![
                    list("transitions", ("transitions", "transition"), transitions.collect()),
                    list("first tag", ("start", "tag"), of(count)),
                    list("last tag", ("end", "tag"), of(2 * count)),
                    list("bias", ("bias", "tag"), of(0)),
                ]
            }
            Decoder::Tree { grammar, shared } => {
                let rules = grammar.binary().len() + grammar.unary().len();
                let tops = rules + grammar.roots().len();
                let of = |places: Range<usize>| -> Vec<Named> {
                    places.map(|place| (grammar.shared_name(place), shared[place])).collect()
                };
                vec![
                    list("rules", ("rules", "rule"), of(0..rules)),
                    list("tops", ("tops", "top"), of(rules..tops)),
                    list("lengths", ("lengths", "length"), of(tops..shared.len())),
                ]
            }
            _ => return None,
        };
        Some(Shared { lists })
    }

    /// For JSON.
    pub(crate) fn as_json(&self, top: usize) -> Value {
        let list = |list: &List| {
            let named = list.named.iter().take(top);
            let items: Vec<Value> = named.map(|(name, weight)| json!({ list.item: name, "weight": weight })).collect();
            (list.key.to_string(), Value::Array(items))
        };
        Value::Object(self.lists.iter().map(list).collect())
    }
}

fn sorted(mut named: Vec<Named>) -> Vec<Named> {
    named.retain(|(_, weight)| *weight != 0.0);
    named.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    named
}

/// The features with the largest weights of each score of a row: of each tag, and of each border of phrases.
pub(crate) fn features_by_output(model: &Model, base: usize, top: usize) -> Vec<(String, Vec<Named>)> {
    let Some(weights) = model.scorer.weights() else { return Vec::new() };
    let names: Vec<String> = match &model.decoder {
        Decoder::Sequence { tags, .. } => tags.names().to_vec(),
        Decoder::Tree { grammar, .. } => (0..grammar.outputs()).map(|output| grammar.output_name(output)).collect(),
        _ => return Vec::new(),
    };
    let count = names.len();
    let of = |(output, name): (usize, String)| {
        let own = weights.iter().skip(output).step_by(count).enumerate();
        let mut own: Vec<(usize, f64)> =
            own.map(|(feature, weight)| (feature, *weight)).filter(|w| w.1 > 0.0).collect();
        own.sort_by(|a, b| b.1.total_cmp(&a.1));
        own.truncate(top);
        let named = own.into_iter().map(|(feature, weight)| (model.feature_name(feature, base), weight));
        (name, named.collect())
    };
    names.into_iter().enumerate().map(of).collect()
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
