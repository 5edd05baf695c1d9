//! The solution of a problem: the model, the meaning of its scores, its distance from the optimum and the proof of
//! that.

mod calibration;
mod decoder;
mod decoding;
mod grammar;
mod predictions;
mod scorer;
mod viterbi;
mod witness;

pub use calibration::{
    Bin, Calibration, Coupling, Map, Probability, Scored, Sigmoid, Steps, coupled_pairs, reliability_curve,
};
pub(crate) use calibration::{binned, of_cuts};
pub use decoder::Decoder;
pub use decoding::{CodeDecoder, Decoding};
pub use grammar::{Grammar, Markov, Symbol, Unary};
pub(crate) use grammar::{Marks, Place as PlaceOfScore, Wrong};
pub use predictions::{Compared, Predictions};
pub(crate) use scorer::Ready;
pub use scorer::{Expansion, Mapped, Scorer};
pub(crate) use viterbi::Chain;
pub use witness::{ClassDual, ColumnWitness, Cut, OutputDual, SparseDual, Witness};

use crate::data::Dataset;
use crate::error::{Code, Error};
use crate::wish::Solver;
use serde::{Deserialize, Serialize};

/// How close to the optimum a model is, and on which data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Certificate {
    /// The primal objective.
    pub objective: f64,
    /// A proven lower bound on the optimum, if the method gives one.
    pub lower_bound: Option<f64>,
    /// Number of margin constraints.
    pub constraints: u64,
    /// The hash of the training data.
    pub data_hash: u64,
    /// Rows of the training data.
    pub rows: u64,
    /// Number of explicit pairs in the training data, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u64>,
    /// Number of these pairs that are ties with a second constraint, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ties: Option<u64>,
    /// Number of dual variables. Absent if there is one per row, or one per pair and a second one per tie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Whether the gap reached the tolerance.
    pub converged: bool,
    /// Number of passes over the data.
    pub passes: u64,
    /// The weight of the sum of losses. It is 0 for a hard margin, which has no loss.
    pub c: f64,
    /// The same in the mean form. It is 0 for a hard margin.
    pub lambda: f64,
    /// The solver that `auto` or the user chose, if the file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solver: Option<Solver>,
}

impl Certificate {
    /// What is known about the data before training.
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

    /// Number of blocks of the problem, each with one dual variable. A block is a row or a pair; a tie counts as two
    /// blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.unwrap_or_else(|| self.pairs.unwrap_or(self.rows).saturating_add(self.ties.unwrap_or(0)))
    }
}

/// `(primal − lower bound) / primal`, never negative. It is 0 if both are 0.
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

/// What to do about a certificate that does not hold.
pub(crate) const ALTERED: &str =
    "the model file was altered, or was made by an earlier or a defective program; train it again";

/// The error for a witness that proves nothing.
pub(crate) fn infeasible(why: &str) -> Error {
    Error::new(Code::CertificateMismatch, format!("the witness proves nothing: {why}")).help(ALTERED)
}
