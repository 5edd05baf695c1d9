//! [`Decoder`]: from scores to answers.

use crate::task::Classes;
use serde::{Deserialize, Serialize};

/// What a score means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The sign tells the class; zero counts as positive.
    Sign(Classes),
    /// Higher is better.
    Rank,
}

impl Decoder {
    /// The label a score stands for, where scores stand for labels.
    pub fn label(&self, score: f64) -> Option<&str> {
        match self {
            Decoder::Sign(classes) => Some(if score >= 0.0 { &classes.positive } else { &classes.negative }),
            Decoder::Rank => None,
        }
    }
}
