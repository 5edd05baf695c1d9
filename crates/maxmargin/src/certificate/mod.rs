//! What problems state about themselves: a point, what its scores mean, how close to optimal it is and what proves it.

mod decoder;
mod predictions;
mod scorer;
mod witness;

pub use decoder::Decoder;
pub use predictions::{Compared, Predictions};
pub(crate) use scorer::Ready;
pub use scorer::{Expansion, Mapped, Scorer};
pub use witness::{Cut, Witness};

use crate::data::Dataset;
use crate::wish::Solver;
use serde::{Deserialize, Serialize};

/// How close to optimal a model is, and for which data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Certificate {
    /// The primal objective.
    pub objective: f64,
    /// A proven lower bound on the optimum, where the method gives one.
    pub lower_bound: Option<f64>,
    /// Margin constraints.
    pub constraints: u64,
    /// The hash of the training data.
    pub data_hash: u64,
    /// Rows of the training data.
    pub rows: u64,
    /// Explicit pairs of the training data, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u64>,
    /// Of these the ties with a second constraint, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ties: Option<u64>,
    /// Dual variables, where they are not one a row, or one a pair and one more for a tie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Whether the gap reached the tolerance.
    pub converged: bool,
    /// Passes made.
    pub passes: u64,
    /// The weight of the sum of losses; 0 where the margin is hard, since there is no loss.
    pub c: f64,
    /// The same in the mean form; 0 where the margin is hard.
    pub lambda: f64,
    /// The solver that `auto` chose, or that was asked for, where files say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solver: Option<Solver>,
}

impl Certificate {
    /// What is known of data before anything is learned from them.
    pub(crate) fn of(data: &Dataset) -> Certificate {
        Certificate {
            objective: 0.0,
            lower_bound: None,
            constraints: 0,
            data_hash: 0,
            rows: data.rows() as u64,
            pairs: data.pairs().map(|pairs| pairs.len() as u64),
            ties: None,
            blocks: None,
            converged: false,
            passes: 0,
            c: 0.0,
            lambda: 0.0,
            solver: None,
        }
    }

    /// `(objective − lower bound) / objective`.
    pub fn gap(&self) -> Option<f64> {
        self.lower_bound.map(|bound| relative_gap(self.objective, bound))
    }

    /// Blocks of the problem, each with a dual variable: pairs, the ties among them with two, or rows.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.unwrap_or_else(|| self.pairs.unwrap_or(self.rows).saturating_add(self.ties.unwrap_or(0)))
    }
}

/// `(primal − lower bound) / primal`, never negative; 0 where both are 0.
pub fn relative_gap(primal: f64, lower_bound: f64) -> f64 {
    let difference = primal - lower_bound;
    if difference <= 0.0 {
        0.0
    } else if primal > 0.0 {
        difference / primal
    } else {
        f64::INFINITY
    }
}
