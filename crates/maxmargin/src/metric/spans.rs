//! Metrics over whole sequences of tags: sequence accuracy, and the F1 of spans by the rules of the CoNLL evaluation.
//!
//! A tag such as `B-NP` is a prefix and a type; a tag without a hyphen is a prefix alone. With the prefixes of one row and
//! of the row before it, or `O` at the ends of a sequence:
//!
//! - a span starts at `B`, at `I` or `E` after `O` or `E`, and at any tag but `O` whose type differs from the one before;
//! - a span ends before `B` or `O`, and after `E`; and where the type changes.
//!
//! So `I-VP` after `B-NP` starts a span. A predicted span is right if a true one has the same rows and type. F1 is
//! 2 · right / (predicted + true) over all sequences, and 0 where there are no spans. Weights of rows are not used.
//!
//! Tjong Kim Sang & Buchholz, Introduction to the CoNLL-2000 shared task: chunking, CoNLL 2000.

use super::judged::mismatch;
use super::rows::RowMetric;
use super::{Judged, Metric};
use crate::error::Result;
use std::collections::HashMap;

/// The true tags of rows, and the names of all tags, predicted ones included.
#[derive(Clone, Copy, Debug)]
pub struct TagNames<'a> {
    /// The true tag of each row, as a place in `names`.
    pub truth: &'a [u32],
    /// The names. The first ones are those of predicted codes.
    pub names: &'a [String],
}

/// The first part of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    Outside,
    Begin,
    Inside,
    End,
    Other,
}

/// A tag in its two parts; types have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    prefix: Prefix,
    kind: u32,
}

const OUTSIDE: Tag = Tag { prefix: Prefix::Outside, kind: 0 };

impl Tag {
    /// The parts of tags.
    fn all(names: &[String]) -> Vec<Tag> {
        // A tag without a type has the empty one.
        let mut kinds = HashMap::from([("", 0u32)]);
        let part = |name: &String| name.find('-').map_or(name.len(), |at| at);
        names
            .iter()
            .map(|name| {
                let (prefix, kind) = name.split_at(part(name));
                let count = kinds.len() as u32;
                let kind = *kinds.entry(kind.strip_prefix('-').unwrap_or(kind)).or_insert(count);
                let prefix = match prefix {
                    "O" => Prefix::Outside,
                    "B" => Prefix::Begin,
                    "I" => Prefix::Inside,
                    "E" => Prefix::End,
                    _ => Prefix::Other,
                };
                Tag { prefix, kind }
            })
            .collect()
    }

    /// Whether a span starts at this tag.
    fn starts(self, before: Tag) -> bool {
        use Prefix::{Begin, End, Inside, Outside};
        match self.prefix {
            Outside => false,
            _ if self.kind != before.kind => true,
            Begin => matches!(before.prefix, Begin | Inside | Outside),
            Inside | End => matches!(before.prefix, End | Outside),
            Prefix::Other => false,
        }
    }

    /// Whether a span that reaches the tag before ends there.
    fn ends(self, before: Tag) -> bool {
        use Prefix::{Begin, End, Inside, Outside};
        match before.prefix {
            Outside => false,
            _ if self.kind != before.kind => true,
            Begin | Inside => matches!(self.prefix, Begin | Outside),
            End => matches!(self.prefix, End | Inside | Outside),
            Prefix::Other => false,
        }
    }
}

/// Writes the spans of one sequence: first row, row after the last, type.
fn spans(tags: impl Iterator<Item = Tag>, found: &mut Vec<(usize, usize, u32)>) {
    found.clear();
    let (mut before, mut open) = (OUTSIDE, None);
    for (row, tag) in tags.chain([OUTSIDE]).enumerate() {
        if tag.ends(before)
            && let Some((start, kind)) = open.take()
        {
            found.push((start, row, kind));
        }
        if tag.starts(before) {
            open = Some((row, tag.kind));
        }
        before = tag;
    }
}

/// Counts of each sequence: right, true and predicted units.
pub(super) struct BySequence<'a> {
    metric: &'a Metric,
    counts: Vec<[u32; 3]>,
}

impl<'a> BySequence<'a> {
    pub(super) fn new(metric: &'a Metric, judged: &Judged<'a>) -> Result<BySequence<'a>> {
        let groups = judged.needed_groups(metric)?;
        let predicted = judged.needed_predictions(metric)?;
        let (truth, _) = judged.needed_classes(metric)?;
        if *metric == Metric::SequenceAccuracy {
            let right = |rows: std::ops::Range<usize>| truth[rows.clone()] == predicted[rows];
            let counts = groups.ranges().map(|rows| [u32::from(right(rows)), 1, 1]).collect();
            return Ok(BySequence { metric, counts });
        }
        let named = judged.tags.ok_or_else(|| {
            mismatch(format!("{metric} compares spans of tags, and these are no tags of sequences"))
                .help("use it with models of `train sequence`")
        })?;
        let tags = Tag::all(named.names);
        let (mut own, mut right) = (Vec::new(), Vec::new());
        let counts = groups.ranges().map(|rows| {
            spans(named.truth[rows.clone()].iter().map(|&code| tags[code as usize]), &mut right);
            spans(predicted[rows].iter().map(|&code| tags[code as usize]), &mut own);
            // Both are in the order of their first rows, which no two share.
            let found = own.iter().filter(|span| right.binary_search(span).is_ok()).count();
            [found, right.len(), own.len()].map(|count| count as u32)
        });
        Ok(BySequence { metric, counts: counts.collect() })
    }

    fn totals(&self, times: Option<&[u32]>) -> [f64; 3] {
        let mut totals = [0.0; 3];
        for (sequence, counts) in self.counts.iter().enumerate() {
            let times = times.map_or(1.0, |times| f64::from(times[sequence]));
            totals.iter_mut().zip(counts).for_each(|(total, count)| *total += times * f64::from(*count));
        }
        totals
    }
}

impl RowMetric for BySequence<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let [right, truth, predicted] = self.totals(times);
        Some(if truth + predicted > 0.0 { 2.0 * right / (truth + predicted) } else { 0.0 })
    }

    fn units(&self) -> Option<usize> {
        Some(self.counts.len())
    }

    fn counted(&self) -> Option<usize> {
        Some(self.counts.len())
    }

    fn notes(&self) -> Vec<String> {
        let [_, truth, _] = self.totals(None);
        let none = truth == 0.0 && *self.metric == Metric::SpanF1;
        none.then(|| "no true tag starts a span: span-f1 reads tags such as B-NP, I-NP and O".to_string())
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Groups, Names};
    use crate::random::Random;

    /// The rules as the evaluation script of the shared task states them, one row after the other, with counters.
    #[derive(Default)]
    struct Script {
        right: u32,
        truth: u32,
        predicted: u32,
        inside: bool,
    }

    fn parts(tag: &str) -> (&str, &str) {
        tag.split_once('-').unwrap_or((tag, ""))
    }

    fn ends((tag, kind): (&str, &str), (next, next_kind): (&str, &str)) -> bool {
        let pairs = [("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")];
        pairs.contains(&(tag, next)) || (tag != "O" && kind != next_kind)
    }

    fn starts((tag, kind): (&str, &str), (next, next_kind): (&str, &str)) -> bool {
        let pairs = [("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")];
        pairs.contains(&(tag, next)) || (next != "O" && kind != next_kind)
    }

    impl Script {
        fn add(&mut self, truth: &[&str], predicted: &[&str]) {
            let mut before = (("O", ""), ("O", ""));
            let rows = truth.iter().zip(predicted).map(|(truth, own)| (parts(truth), parts(own)));
            for row in rows.chain([(("O", ""), ("O", ""))]) {
                let ended = (ends(before.0, row.0), ends(before.1, row.1));
                if self.inside {
                    if ended == (true, true) && before.0.1 == before.1.1 {
                        self.inside = false;
                        self.right += 1;
                    } else if ended.0 != ended.1 || row.0.1 != row.1.1 {
                        self.inside = false;
                    }
                }
                let started = (starts(before.0, row.0), starts(before.1, row.1));
                if started == (true, true) && row.0.1 == row.1.1 {
                    self.inside = true;
                }
                self.truth += u32::from(started.0);
                self.predicted += u32::from(started.1);
                before = row;
            }
        }
    }

    #[test]
    fn spans_are_those_of_the_evaluation_script() {
        let mut random = Random::new(2, 1, 0);
        let names: Vec<String> =
            ["B-A", "I-A", "O", "B-B", "I-B", "B", "I", "E-A", "S-A", "E"].map(str::to_string).to_vec();
        for case in 0..5000 {
            // Most cases hold the usual tags alone.
            let kinds = [3, 5, 5, 5, names.len()][case % 5];
            let (mut truth, mut own, mut starts) = (Vec::new(), Vec::new(), vec![0u64]);
            for _ in 0..1 + random.below(4) {
                for _ in 0..1 + random.below(8) {
                    let code = random.below(kinds as u64) as u32;
                    truth.push(code);
                    own.push(if random.uniform() < 0.7 { code } else { random.below(kinds as u64) as u32 });
                }
                starts.push(truth.len() as u64);
            }
            let sequences = starts.len() - 1;
            let names_of_groups: Names = (0..sequences).map(|group| group.to_string()).collect();
            let groups = Groups::new(starts, names_of_groups).expect("rising");
            let mut script = Script::default();
            for rows in groups.ranges() {
                let named = |codes: &[u32]| -> Vec<&str> {
                    codes[rows.clone()].iter().map(|&code| names[code as usize].as_str()).collect()
                };
                script.add(&named(&truth), &named(&own));
            }
            let tags = TagNames { truth: &truth, names: &names };
            let judged = Judged::classes(&truth, kinds, &own).with_tags(tags, &groups);
            let metric = BySequence::new(&Metric::SpanF1, &judged).expect("tags");
            let counts = metric.totals(None);
            assert_eq!(
                counts,
                [script.right, script.truth, script.predicted].map(f64::from),
                "{case} {truth:?} {own:?}"
            );
            let same = groups.ranges().filter(|rows| truth[rows.clone()] == own[rows.clone()]).count();
            let value = Metric::SequenceAccuracy.evaluate(&judged).expect("defined").value;
            assert!((value - same as f64 / sequences as f64).abs() < 1e-12, "{case}");
        }
    }

    #[test]
    fn a_span_needs_all_its_rows_and_its_type() {
        let f1 = |truth: &[&str], own: &[&str]| {
            let names: Vec<String> = truth.iter().chain(own).map(|tag| tag.to_string()).collect();
            let count = truth.len() as u32;
            let groups = Groups::one(truth.len());
            let (truth, own): (Vec<u32>, Vec<u32>) = ((0..count).collect(), (count..2 * count).collect());
            let tags = TagNames { truth: &truth, names: &names };
            let judged = Judged::classes(&truth, names.len(), &own).with_tags(tags, &groups);
            Metric::SpanF1.evaluate(&judged).expect("defined")
        };
        assert_eq!(f1(&["B-NP", "I-NP", "O"], &["B-NP", "I-NP", "O"]).value, 1.0);
        assert_eq!(f1(&["B-NP", "I-NP", "O"], &["B-NP", "O", "O"]).value, 0.0);
        // I after another type starts a span, and I at the start does.
        assert_eq!(f1(&["B-NP", "B-VP"], &["B-NP", "I-VP"]).value, 1.0);
        assert_eq!(f1(&["B-NP", "I-NP"], &["I-NP", "I-NP"]).value, 1.0);
        assert_eq!(f1(&["B-NP", "B-NP"], &["B-NP", "I-NP"]).value, 0.0);
        assert_eq!(f1(&["B-NP", "B-NP", "O"], &["B-NP", "B-NP", "B-VP"]).value, 0.8);
        let none = f1(&["O", "O"], &["O", "O"]);
        assert!(none.value == 0.0 && none.notes.len() == 1, "{none:?}");
    }
}
