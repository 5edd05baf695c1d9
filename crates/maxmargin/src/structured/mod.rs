//! Structured outputs: each example has very many possible outputs, such as every order of its rows or every sequence of
//! tags, of which one is right.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_examples weight · max_y [ loss(y) + score(y) − score(truth) ]
//! ```
//! The maximum is over all outputs y of the example. At y = truth the bracket is zero, so no term is negative. The score
//! of an output is a weighted sum of *part scores*: the scores of the rows of the example (words, documents), with one or
//! several numbers a row, and *shared scores*, which are weights that belong to no feature, such as those of transitions
//! between tags. A [`Structure`] sees these scores and no features. For one output the bracket is a linear function of
//! the scores, its [`Plane`].
//!
//! References: Tsochantaridis, Joachims, Hofmann & Altun, Large margin methods for structured and interdependent output
//! variables, JMLR 6, 2005; Yue, Finley, Radlinski & Joachims, A support vector method for optimizing average precision,
//! SIGIR 2007.

mod labellings;
mod oracle;
mod rankings;
mod sequence;
mod slack;
mod tree;

pub use crate::certificate::{Grammar, Markov};
pub use labellings::{ClassMeasure, Labellings};
pub use oracle::{Encoded, Examples, Features, Oracle};
pub(crate) use rankings::Ties;
pub use rankings::{OrderScore, RankMeasure, Rankings, Variant};
pub use sequence::{LossScale, Sequences, sequences_of, tags_of};
pub use slack::Rescale;
pub use tree::{Trees, trees_of};

use crate::certificate::infeasible;
use crate::error::{Error, Result};
use std::ops::Range;

/// The outputs of examples, seen through scores.
///
/// An output is a list of numbers, `&[u32]`, whose meaning belongs to the structure: the tag of each row, or the rows in
/// the order of a ranking. Model files keep outputs in this form as proof of the lower bound.
pub trait Structure: Send + Sync {
    /// Number of examples.
    fn examples(&self) -> usize;

    /// The rows of an example. Rows of different examples do not overlap, and examples are in the order of their rows.
    fn rows(&self, example: usize) -> Range<usize>;

    /// Number of scores per row. The scores of one row are next to each other.
    fn outputs(&self) -> usize {
        1
    }

    /// Number of shared scores. They are weights of their own, penalised like those of features.
    fn shared(&self) -> usize {
        0
    }

    /// The weight of an example.
    fn weight(&self, _example: usize) -> f64 {
        1.0
    }

    /// The largest loss of an output, over all examples. The number of rounds of cutting planes grows with it.
    fn largest_loss(&self) -> f64 {
        1.0
    }

    /// Called before searches at new shared scores, for what is computed once for all of them. A solver calls it whenever
    /// these scores have changed.
    fn prepare(&self, _shared: &[f64]) -> Result<()> {
        Ok(())
    }

    /// Writes the output with the largest loss + score. The same scores give the same output.
    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()>;

    /// Writes the output with the largest loss · (1 + score − score of the truth), for slack rescaling.
    fn most_violated_by_slack(&self, _example: usize, _at: Scores<'_>, _output: &mut Vec<u32>) -> Result<()> {
        Err(oracle::no_slack_search())
    }

    /// Writes the plane of an output. An error if the numbers are no output of the example: they may come from a file.
    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()>;
}

/// The scores that an example sees.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a> {
    /// Those of its rows in order, with [`Structure::outputs`] numbers per row.
    pub rows: &'a [f64],
    /// The shared scores, [`Structure::shared`] of them.
    pub shared: &'a [f64],
}

/// What an output costs as a function of the scores: `loss + Σ slope · score`. It is zero for the truth at any scores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plane {
    /// The loss of the output.
    pub loss: f64,
    /// Positions in [`Scores::rows`], rising, with their slopes.
    pub rows: Vec<(u32, f64)>,
    /// Positions in [`Scores::shared`], rising, with their slopes.
    pub shared: Vec<(u32, f64)>,
}

/// The error for numbers that are no output of an example: those of a model file may be altered.
pub fn not_an_output(example: usize, why: &str) -> Error {
    infeasible(&format!("example {example} has no such output: {why}"))
}

impl Plane {
    /// Makes it the plane of the truth.
    pub fn clear(&mut self) {
        self.loss = 0.0;
        self.rows.clear();
        self.shared.clear();
    }

    /// Sorts the entries, adds up those with the same position, and drops zeros.
    pub fn tidy(&mut self) {
        for entries in [&mut self.rows, &mut self.shared] {
            entries.sort_by_key(|entry| entry.0);
            entries.dedup_by(|later, first| {
                let same = later.0 == first.0;
                first.1 += if same { later.1 } else { 0.0 };
                same
            });
            entries.retain(|entry| entry.1 != 0.0);
        }
    }

    /// Σ slope · score.
    pub fn product(&self, at: Scores<'_>) -> f64 {
        let of = |entries: &[(u32, f64)], scores: &[f64]| -> f64 {
            entries.iter().map(|&(place, slope)| slope * scores[place as usize]).sum()
        };
        of(&self.rows, at.rows) + of(&self.shared, at.shared)
    }

    /// What the output costs at these scores.
    pub fn value(&self, at: Scores<'_>) -> f64 {
        self.loss + self.product(at)
    }
}
