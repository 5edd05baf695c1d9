//! Sequences: every row of a group has a tag, and neighbouring tags depend on each other.
//!
//! ```text
//! score(y) = start[y_1] + Σ_t (score_t[y_t] + bias[y_t]) + Σ_t transition[y_t, y_t+1] + end[y_T]
//! loss(y)  = Σ_t [y_t ≠ truth_t], or this divided by T
//! ```
//! The rows of a group, in order, are the sequence. A row has a score for each tag, which the features make. The bias of a
//! tag and the weights of start, end and transitions are shared scores, penalised like the weights of features. An output
//! is the tag of each row. The most violated output is found by the algorithm of Viterbi, since the loss is a sum over
//! rows: T·k² steps for k tags (see `certificate/viterbi.rs`).
//!
//! Taskar, Guestrin & Koller, Max-margin Markov networks, NIPS 2003; Altun, Tsochantaridis & Hofmann, Hidden Markov
//! support vector machines, ICML 2003. Slack rescaling is not supported: its search is no sum over rows.

use super::{Plane, Scores, Structure, not_an_output};
use crate::certificate::Chain;
use crate::data::{Dataset, Groups, Labels, Subset, counts};
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the loss of a sequence grows with its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossScale {
    /// It is the number of wrong tags.
    #[default]
    Token,
    /// It is the share of wrong tags.
    Length,
}

impl LossScale {
    /// Both.
    pub const ALL: [LossScale; 2] = [LossScale::Token, LossScale::Length];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            LossScale::Token => "token",
            LossScale::Length => "length",
        }
    }
}

/// More tags than this are refused: each pair of them has a weight.
const MOST_TAGS: usize = 4096;

/// The tags in the data.
pub fn tags_of(data: &Dataset) -> Result<Labels> {
    let labels = Labels::find(data.targets())?;
    if labels.len() > MOST_TAGS {
        return Err(Error::new(
            Code::TooManyClasses,
            format!("{} tags, and sequences take at most {MOST_TAGS}: each pair of tags has a weight", labels.len()),
        )
        .help("check the target column"));
    }
    Ok(labels)
}

/// The sequences of data, or the error that there are none.
pub fn sequences_of(data: &Dataset) -> Result<&Groups> {
    data.groups().ok_or_else(|| {
        Error::new(Code::NoGroups, "the rows do not say which sequence they belong to").help(
            "give each row the id of its sequence (`qid:` or ⟦group⟧), or text in columns with ⟦templates⟧; with \
             ⟦one-group⟧ all rows are one sequence",
        )
    })
}

/// Sequences with their true tags.
#[derive(Clone, Debug)]
pub struct Sequences {
    chain: Chain,
    groups: Groups,
    truth: Vec<u32>,
    /// The weight of each sequence, unless all weights are 1.
    weights: Option<Vec<f64>>,
    scale: LossScale,
}

impl Sequences {
    /// The sequences of some rows, or of all. Those of other rows have weight zero.
    pub fn on(data: &Dataset, labels: &Labels, scale: LossScale, subset: Option<&Subset>) -> Result<Sequences> {
        let groups = sequences_of(data)?.clone();
        let truth = labels.codes(data.targets())?;
        let weighed = data.weights().is_some() || subset.is_some();
        let weights = weighed.then(|| groups.ranges().map(|rows| weight_of(data, &groups, rows, subset)).collect());
        Ok(Sequences { chain: Chain { tags: labels.len() }, groups, truth, weights: weights.transpose()?, scale })
    }

    /// The loss of one wrong tag.
    fn loss(&self, length: usize) -> f64 {
        match self.scale {
            LossScale::Token => 1.0,
            LossScale::Length => 1.0 / length as f64,
        }
    }
}

/// The weight of a sequence, which all its rows have.
pub(super) fn weight_of(data: &Dataset, groups: &Groups, rows: Range<usize>, subset: Option<&Subset>) -> Result<f64> {
    let first = rows.start;
    if !counts(subset, first) {
        return Ok(0.0);
    }
    let Some(weights) = data.weights() else { return Ok(1.0) };
    match rows.clone().find(|&row| weights[row] != weights[first]) {
        None => Ok(weights[first]),
        Some(row) => {
            let group = groups.starts().partition_point(|&start| start <= first as u64) - 1;
            let name = groups.names().get(group).into_owned();
            let message = format!("rows of sequence `{name}` have the weights {} and {}", weights[first], weights[row]);
            Err(Error::new(Code::BadWeight, message).help("give all rows of a sequence the same weight"))
        }
    }
}

impl Structure for Sequences {
    fn examples(&self) -> usize {
        self.groups.len()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.groups.range(example)
    }

    fn outputs(&self) -> usize {
        self.chain.tags
    }

    fn shared(&self) -> usize {
        self.chain.shared()
    }

    fn weight(&self, example: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[example])
    }

    fn largest_loss(&self) -> f64 {
        match self.scale {
            LossScale::Token => self.groups.ranges().map(|rows| rows.len()).max().unwrap_or(0) as f64,
            LossScale::Length => 1.0,
        }
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        let rows = self.groups.range(example);
        let loss = self.loss(rows.len());
        self.chain.best(at.rows, at.shared, Some((&self.truth[rows], loss)), output);
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        let Chain { tags } = self.chain;
        let truth = &self.truth[self.groups.range(example)];
        if output.len() != truth.len() || output.iter().any(|&tag| tag as usize >= tags) {
            return Err(not_an_output(example, "a tag is unknown, or some are missing"));
        }
        plane.clear();
        let mut wrong = 0;
        let share = |place: usize, slope: f64, plane: &mut Plane| plane.shared.push((place as u32, slope));
        for (row, (&own, &right)) in output.iter().zip(truth).enumerate().filter(|(_, (own, right))| own != right) {
            let first = (row * tags) as u32;
            let entries = if own < right { [(own, 1.0), (right, -1.0)] } else { [(right, -1.0), (own, 1.0)] };
            plane.rows.extend(entries.map(|(tag, slope)| (first + tag, slope)));
            share(self.chain.bias(own as usize), 1.0, plane);
            share(self.chain.bias(right as usize), -1.0, plane);
            wrong += 1;
        }
        plane.loss = f64::from(wrong) * self.loss(truth.len());
        let last = truth.len().saturating_sub(1);
        for (tags, slope) in [(output, 1.0), (truth, -1.0)] {
            if output.first() != truth.first() {
                share(self.chain.start(tags[0] as usize), slope, plane);
            }
            if output.last() != truth.last() {
                share(self.chain.end(tags[last] as usize), slope, plane);
            }
        }
        for (own, right) in output.windows(2).zip(truth.windows(2)).filter(|(own, right)| own != right) {
            share(self.chain.transition(own[0] as usize, own[1] as usize), 1.0, plane);
            share(self.chain.transition(right[0] as usize, right[1] as usize), -1.0, plane);
        }
        plane.tidy();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Targets};
    use crate::random::Random;

    fn data(lengths: &[usize], tags: &[f64], weights: Option<Vec<f64>>) -> Dataset {
        let rows: usize = lengths.iter().sum();
        let mut starts = vec![0u64];
        lengths.iter().for_each(|length| starts.push(starts.last().expect("one") + *length as u64));
        let matrix = Matrix::DenseF64(Dense::new(vec![1.0; rows], rows, 1).expect("whole rows"));
        let names = (0..lengths.len()).map(|group| format!("s{group}")).collect();
        let data = Dataset::new(matrix, Targets::Real(tags.to_vec().into())).expect("valid");
        let data = data.with_groups(Groups::new(starts, names).expect("rising")).expect("valid");
        match weights {
            Some(weights) => data.with_weights(weights).expect("valid"),
            None => data,
        }
    }

    /// The score of an output by the formula at the top of the file.
    fn score(chain: Chain, at: Scores<'_>, output: &[u32]) -> f64 {
        let tag = |row: usize| output[row] as usize;
        let rows: f64 =
            (0..output.len()).map(|row| at.rows[row * chain.tags + tag(row)] + at.shared[chain.bias(tag(row))]).sum();
        let between: f64 = (1..output.len()).map(|row| at.shared[chain.transition(tag(row - 1), tag(row))]).sum();
        at.shared[chain.start(tag(0))] + rows + between + at.shared[chain.end(tag(output.len() - 1))]
    }

    #[test]
    fn the_search_finds_the_largest_plane_of_all_outputs() {
        let mut random = Random::new(5, 1, 0);
        for case in 0..1500 {
            let count = 2 + random.below(3) as usize;
            let length = 1 + random.below(if count == 4 { 4 } else { 5 }) as usize;
            // Another sequence holds all tags.
            let mut tags: Vec<f64> = (0..length).map(|_| random.below(count as u64) as f64).collect();
            tags.extend((0..count).map(|tag| tag as f64));
            let data = data(&[length, count], &tags, None);
            let labels = tags_of(&data).expect("tags");
            let scale = LossScale::ALL[case % 2];
            let sequences = Sequences::on(&data, &labels, scale, None).expect("sequences");
            let rows: Vec<f64> = (0..length * count).map(|_| random.normal()).collect();
            let shared: Vec<f64> = (0..sequences.shared()).map(|_| random.normal()).collect();
            let at = Scores { rows: &rows, shared: &shared };
            let (mut found, mut plane) = (Vec::new(), Plane::default());
            sequences.most_violated(0, at, &mut found).expect("found");
            sequences.plane(0, &found, &mut plane).expect("an output");
            let highest = plane.value(at);
            let truth = &sequences.truth[..length];
            let mut output = vec![0u32; length];
            loop {
                sequences.plane(0, &output, &mut plane).expect("an output");
                let wrong = output.iter().zip(truth).filter(|(own, right)| own != right).count() as f64;
                let loss = if scale == LossScale::Token { wrong } else { wrong / length as f64 };
                let value = loss + score(sequences.chain, at, &output) - score(sequences.chain, at, truth);
                assert!((plane.value(at) - value).abs() < 1e-10 && (plane.loss - loss).abs() < 1e-12, "{case}");
                assert!(value <= highest + 1e-10, "{case}: {value} {highest}");
                assert!(plane.loss <= sequences.largest_loss());
                assert!(plane.rows.is_sorted_by_key(|entry| entry.0) && plane.shared.is_sorted_by_key(|entry| entry.0));
                let Some(place) = output.iter().rposition(|tag| (*tag as usize) + 1 < count) else { break };
                output[place] += 1;
                output[place + 1..].fill(0);
            }
            sequences.plane(0, truth, &mut plane).expect("the truth");
            assert_eq!(plane, Plane::default());
        }
    }

    #[test]
    fn a_sequence_has_one_weight_and_held_out_ones_have_none() {
        let tags = [0.0, 1.0, 1.0, 0.0, 1.0];
        let weighed = data(&[2, 3], &tags, Some(vec![2.0, 2.0, 0.5, 0.5, 0.5]));
        let labels = tags_of(&weighed).expect("tags");
        let subset = Subset::without(&[2, 3, 4], 5);
        let own = |data: &Dataset, subset| {
            let sequences = Sequences::on(data, &labels, LossScale::Token, subset).expect("sequences");
            [sequences.weight(0), sequences.weight(1)]
        };
        assert_eq!(own(&weighed, None), [2.0, 0.5]);
        assert_eq!(own(&weighed, Some(&subset)), [2.0, 0.0]);
        assert_eq!(own(&data(&[2, 3], &tags, None), Some(&subset)), [1.0, 0.0]);
        let uneven = data(&[2, 3], &tags, Some(vec![2.0, 1.0, 0.5, 0.5, 0.5]));
        let error = Sequences::on(&uneven, &labels, LossScale::Token, None).expect_err("uneven weights");
        assert!(error.code() == Code::BadWeight && error.to_string().contains("`s0`"), "{error}");
    }

    #[test]
    fn numbers_that_are_no_tags_are_refused() {
        let data = data(&[2, 2], &[0.0, 1.0, 1.0, 0.0], None);
        let labels = tags_of(&data).expect("tags");
        let sequences = Sequences::on(&data, &labels, LossScale::Token, None).expect("sequences");
        let mut plane = Plane::default();
        for output in [&[0][..], &[0, 2], &[0, 1, 0]] {
            let error = sequences.plane(0, output, &mut plane).expect_err("no output");
            assert_eq!(error.code(), Code::CertificateMismatch);
        }
        let at = Scores { rows: &[0.0; 4], shared: &[0.0; 10] };
        let error = sequences.most_violated_by_slack(0, at, &mut Vec::new()).expect_err("not supported");
        assert_eq!(error.code(), Code::Unsupported);
    }
}
