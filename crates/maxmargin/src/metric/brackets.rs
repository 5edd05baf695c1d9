//! Metrics of bracketed trees, by the rules of the PARSEVAL evaluation as it is customary for English newspaper text.
//!
//! - A bracket is the label of a phrase with its words. Tags are no brackets. Brackets over the same words with the same
//!   label count as often as they occur in both trees.
//! - Words whose true tag is one of `,` `.` `:` ` `` ` `''` are left out of both trees, and phrases without other words too.
//!   The predicted tag of a word does not matter for this.
//! - Brackets with the labels TOP, ROOT and S1 do not count. ADVP and PRT are the same label.
//!
//! Precision is right / predicted, recall right / true, F1 2 · right / (predicted + true), each over all sentences, and 0 if
//! the denominator is. `exact-match` counts the trees all of whose brackets are right, and `tag-accuracy` the words that
//! are not left out whose tag is right. Weights are not used.
//!
//! Black and others, A procedure for quantitatively comparing the syntactic coverage of English grammars, Speech and
//! Natural Language, 1991; Collins, Three generative, lexicalised models for statistical parsing, ACL 1997.

use super::judged::mismatch;
use super::rows::RowMetric;
use super::{Judged, Metric};
use crate::data::Tree;
use crate::error::Result;
use std::borrow::Cow;
use std::ops::Range;

const LEFT_OUT_TAGS: [&str; 5] = [",", ".", ":", "``", "''"];
const LEFT_OUT_LABELS: [&str; 3] = ["TOP", "ROOT", "S1"];

/// The counts of one sentence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    right: u32,
    truth: u32,
    predicted: u32,
    right_tags: u32,
    words: u32,
    exact: bool,
}

/// The counts of each sentence.
pub(super) struct Brackets<'a> {
    metric: &'a Metric,
    counts: Vec<Counts>,
}

/// The brackets that count, with words numbered without those left out, sorted.
fn brackets<'t>(tree: &'t Tree, places: &[u32]) -> Vec<(u32, u32, &'t str)> {
    let of = |label: &'t str, rows: &Range<usize>| {
        let label = if label == "PRT" { "ADVP" } else { label };
        (places[rows.start], places[rows.end], label)
    };
    let counted = tree.phrases.iter().filter(|phrase| !LEFT_OUT_LABELS.contains(&phrase.label.as_str()));
    let mut brackets: Vec<_> = counted.map(|phrase| of(&phrase.label, &phrase.rows)).collect();
    brackets.retain(|(start, end, _)| start < end);
    brackets.sort_unstable();
    brackets
}

impl Counts {
    fn of(truth: &Tree, predicted: &Tree) -> Counts {
        let kept: Vec<bool> = truth.tags.iter().map(|tag| !LEFT_OUT_TAGS.contains(&tag.as_str())).collect();
        let mut places = vec![0u32];
        places.extend(kept.iter().scan(0, |count, &kept| {
            *count += u32::from(kept);
            Some(*count)
        }));
        let (right, own) = (brackets(truth, &places), brackets(predicted, &places));
        let (mut both, mut a, mut b) = (0, 0, 0);
        while let (Some(x), Some(y)) = (right.get(a), own.get(b)) {
            both += u32::from(x == y);
            a += usize::from(x <= y);
            b += usize::from(y <= x);
        }
        let tags = truth.tags.iter().zip(&predicted.tags).zip(&kept).filter(|(_, kept)| **kept);
        Counts {
            right: both,
            truth: right.len() as u32,
            predicted: own.len() as u32,
            right_tags: tags.filter(|((right, own), _)| right == own).count() as u32,
            words: places[kept.len()],
            exact: right == own,
        }
    }
}

impl<'a> Brackets<'a> {
    pub(super) fn new(metric: &'a Metric, judged: &Judged<'a>) -> Result<Brackets<'a>> {
        let groups = judged.needed_groups(metric)?;
        let predicted = judged.needed_predictions(metric)?;
        let no_trees = |why: String| {
            mismatch(format!("{metric} compares bracketed trees, and these are none{why}"))
                .help("use it with models of `train tree`")
        };
        let named = judged.tags.ok_or_else(|| no_trees(String::new()))?;
        let tree = |codes: &[u32]| {
            let pieces = codes.iter().map(|&code| named.names[code as usize].as_str());
            Tree::of_pieces(pieces).map_err(|error| no_trees(format!(": {}", error.raw_message())))
        };
        let counts =
            groups.ranges().map(|rows| Ok(Counts::of(&tree(&named.truth[rows.clone()])?, &tree(&predicted[rows])?)));
        Ok(Brackets { metric, counts: counts.collect::<Result<_>>()? })
    }

    /// What the metric divides, and by what, for one sentence.
    fn share(&self, counts: &Counts) -> (f64, f64) {
        let Counts { right, truth, predicted, right_tags, words, exact } = *counts;
        let (part, whole) = match self.metric {
            Metric::LabelledPrecision => (right, predicted),
            Metric::LabelledRecall => (right, truth),
            Metric::TagAccuracy => (right_tags, words),
            Metric::ExactMatch => (u32::from(exact), 1),
            _ => (2 * right, truth + predicted),
        };
        (f64::from(part), f64::from(whole))
    }
}

impl RowMetric for Brackets<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let mut sums = (0.0, 0.0);
        for (sentence, counts) in self.counts.iter().enumerate() {
            let times = times.map_or(1.0, |times| f64::from(times[sentence]));
            let (part, whole) = self.share(counts);
            sums = (sums.0 + times * part, sums.1 + times * whole);
        }
        Some(if sums.1 > 0.0 { sums.0 / sums.1 } else { 0.0 })
    }

    fn units(&self) -> Option<usize> {
        Some(self.counts.len())
    }

    fn counted(&self) -> Option<usize> {
        Some(self.counts.len())
    }
}

/// The pieces of trees as codes, and their names: those of predicted trees first.
pub(crate) fn with_true_pieces<'a>(
    predicted: &[String],
    truth: impl Iterator<Item = Cow<'a, str>>,
) -> (Vec<u32>, Vec<String>) {
    let mut names = predicted.to_vec();
    let mut known: std::collections::HashMap<String, u32> = predicted.iter().cloned().zip(0..).collect();
    let codes = truth.map(|piece| {
        if let Some(&code) = known.get(piece.as_ref()) {
            return code;
        }
        names.push(piece.clone().into_owned());
        known.insert(piece.into_owned(), names.len() as u32 - 1);
        names.len() as u32 - 1
    });
    (codes.collect(), names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Groups, random_trees};
    use crate::metric::TagNames;
    use crate::random::Random;

    /// The same by the definition: brackets are lists of words, matched one by one.
    fn plainly(truth: &Tree, own: &Tree) -> Counts {
        let kept = |word: &usize| !LEFT_OUT_TAGS.contains(&truth.tags[*word].as_str());
        let of = |tree: &Tree| -> Vec<(Vec<usize>, String)> {
            let brackets = tree.phrases.iter().filter(|phrase| !LEFT_OUT_LABELS.contains(&phrase.label.as_str()));
            let brackets = brackets.map(|phrase| {
                let label = if phrase.label == "PRT" { "ADVP".to_string() } else { phrase.label.clone() };
                (phrase.rows.clone().filter(kept).collect::<Vec<usize>>(), label)
            });
            brackets.filter(|(words, _)| !words.is_empty()).collect()
        };
        let (mut left, predicted) = (of(truth), of(own));
        let mut counts = Counts { truth: left.len() as u32, predicted: predicted.len() as u32, ..Counts::default() };
        for bracket in &predicted {
            if let Some(at) = left.iter().position(|other| other == bracket) {
                left.swap_remove(at);
                counts.right += 1;
            }
        }
        for word in (0..truth.tags.len()).filter(kept) {
            counts.words += 1;
            counts.right_tags += u32::from(truth.tags[word] == own.tags[word]);
        }
        counts.exact = counts.right == counts.truth && counts.right == counts.predicted;
        counts
    }

    /// Metrics of trees by their pieces.
    fn values(pairs: &[(Tree, Tree)]) -> Vec<f64> {
        let predicted: Vec<String> = pairs.iter().flat_map(|(_, own)| own.pieces()).collect();
        let own: Vec<u32> = (0..predicted.len() as u32).collect();
        let truth: Vec<String> = pairs.iter().flat_map(|(truth, _)| truth.pieces()).collect();
        let (codes, names) = with_true_pieces(&predicted, truth.iter().map(|piece| Cow::Borrowed(piece.as_str())));
        let mut starts = vec![0u64];
        pairs.iter().for_each(|(truth, _)| starts.push(starts[starts.len() - 1] + truth.tags.len() as u64));
        let groups = Groups::new(starts, (0..pairs.len()).map(|at| at.to_string()).collect()).expect("rising");
        let tags = TagNames { truth: &codes, names: &names };
        let judged = Judged::classes(&codes, names.len(), &own).with_tags(tags, &groups);
        METRICS.iter().map(|metric| metric.evaluate(&judged).expect("trees").value).collect()
    }

    const METRICS: [Metric; 5] = [
        Metric::LabelledPrecision,
        Metric::LabelledRecall,
        Metric::LabelledF1,
        Metric::ExactMatch,
        Metric::TagAccuracy,
    ];

    #[test]
    fn values_are_those_of_the_definition() {
        let mut random = Random::new(9, 1, 0);
        let rename = |tree: &mut Tree| {
            for phrase in &mut tree.phrases {
                phrase.label = match phrase.label.as_str() {
                    "A" => "ADVP".to_string(),
                    "B" => "PRT".to_string(),
                    "C" => "TOP".to_string(),
                    other => other.to_string(),
                };
            }
            tree.tags.iter_mut().filter(|tag| *tag == "a").for_each(|tag| *tag = ",".to_string());
        };
        for case in 0..1000 {
            let pairs: Vec<(Tree, Tree)> = (0..1 + case % 4)
                .map(|_| {
                    let rows = 1 + random.below(7) as usize;
                    let mut pair =
                        (random_trees::tree(&mut random, rows, 5, 3), random_trees::tree(&mut random, rows, 5, 3));
                    rename(&mut pair.0);
                    rename(&mut pair.1);
                    if random.below(3) == 0 { (pair.0.clone(), pair.0) } else { pair }
                })
                .collect();
            let mut sums = [0.0; 6];
            for (truth, own) in &pairs {
                let counts = plainly(truth, own);
                assert_eq!(Counts::of(truth, own), counts, "{case}: {truth:?} {own:?}");
                let of = [counts.right, counts.truth, counts.predicted, counts.right_tags, counts.words];
                sums.iter_mut().zip(of).for_each(|(sum, own)| *sum += f64::from(own));
                sums[5] += f64::from(u8::from(counts.exact));
            }
            let [right, truth, predicted, tags, words, exact] = sums;
            let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
            let wanted = [
                share(right, predicted),
                share(right, truth),
                share(2.0 * right, truth + predicted),
                exact / pairs.len() as f64,
                share(tags, words),
            ];
            let found = values(&pairs);
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{case}: {found:?} {wanted:?}");
        }
    }

    #[test]
    fn punctuation_and_tops_do_not_count() {
        let tree = |pieces: &[&str]| Tree::of_pieces(pieces.iter().copied()).expect("a tree");
        let truth = tree(&["(TOP(S(NP(DT*)", "(NN*))", "(VP(V*)", "(PRT(RP*)))", "(.*)))"]);
        // The full stop stands elsewhere and has another tag, the particle is an adverb phrase, and one tag is wrong.
        let own = tree(&["(S(NP(DT*)", "(JJ*))", "(VP(V*)", "(ADVP(RP*))", "(NN*)))"]);
        assert_eq!(values(&[(truth.clone(), own)]), [1.0, 1.0, 1.0, 1.0, 0.75]);
        let flat = tree(&["(S(DT*)", "(NN*)", "(V*)", "(RP*)", "(.*))"]);
        assert_eq!(values(&[(truth, flat)]), [1.0, 0.25, 0.4, 0.0, 1.0]);
    }

    #[test]
    fn tags_of_sequences_are_no_trees() {
        let names = ["B-NP".to_string(), "O".to_string()];
        let codes = [0, 1];
        let groups = Groups::one(2);
        let judged = Judged::classes(&codes, 2, &codes).with_tags(TagNames { truth: &codes, names: &names }, &groups);
        let error = Metric::LabelledF1.evaluate(&judged).expect_err("no trees");
        assert_eq!(error.code(), crate::error::Code::MetricMismatch);
    }
}
