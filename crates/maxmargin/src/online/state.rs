//! [`OnlineState`]: everything that a learner of a stream keeps, by name, so that a model file can hold it bit for bit.
//!
//! A learner puts its numbers and counts in when a model is made, and takes them out when it continues. Each entry is
//! the tensor `online.NAME` of the model file. What a name means belongs to the learner; docs/file-formats.md lists all.

use crate::certificate::Decoder;
use crate::error::{Code, Error, Result};
use std::collections::BTreeMap;

/// See the top of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnlineState {
    reals: BTreeMap<String, Vec<f64>>,
    counts: BTreeMap<String, Vec<u64>>,
}

impl OnlineState {
    /// Adds real numbers.
    pub fn put_reals(&mut self, name: &str, values: Vec<f64>) {
        self.reals.insert(name.to_string(), values);
    }

    /// Adds counts.
    pub fn put_counts(&mut self, name: &str, values: Vec<u64>) {
        self.counts.insert(name.to_string(), values);
    }

    /// Real numbers by their name.
    pub fn reals(&self, name: &str) -> Option<&[f64]> {
        self.reals.get(name).map(Vec::as_slice)
    }

    /// Exactly this many real numbers.
    pub fn numbers<const N: usize>(&self, name: &str) -> Option<[f64; N]> {
        self.reals(name)?.try_into().ok()
    }

    /// Counts by their name.
    pub fn counts(&self, name: &str) -> Option<&[u64]> {
        self.counts.get(name).map(Vec::as_slice)
    }

    /// All real numbers, in the order of their names.
    pub fn all_reals(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.reals.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// All counts, in the order of their names.
    pub fn all_counts(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.counts.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.reals.is_empty() && self.counts.is_empty()
    }

    /// Whether all real numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.reals.values().flatten().all(|value| value.is_finite())
    }
}

/// The parts of a model that a state must fit, so that both predict the same.
#[derive(Clone, Copy, Debug)]
pub struct Learned<'a> {
    /// The weights, those of one feature next to each other.
    pub weights: &'a [f64],
    /// The constant terms.
    pub intercepts: &'a [f64],
    /// The meaning of the scores.
    pub decoder: &'a Decoder,
    /// The number of pairs, if the model was learned from pairs.
    pub pairs: Option<u64>,
    /// The number of rows.
    pub rows: u64,
}

/// The error for a state that does not fit its model.
pub(crate) fn unfit() -> Error {
    Error::new(Code::DamagedModel, "the model file is damaged: the state of its stream does not fit the model")
        .help("copy the model again or train it again")
}

/// The value, or an error that says that the state is damaged.
pub(super) fn sound<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(unfit)
}
