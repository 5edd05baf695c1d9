//! [`Decoder`]: from scores to answers.

use crate::task::Classes;
use serde::{Deserialize, Serialize};

/// What a score means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The sign tells the class; zero counts as positive.
    Sign(Classes),
    /// The sign tells rows like the ones seen (positive) from outliers; every other label than the first is one of those.
    OneClass(Classes),
    /// Higher is better.
    Rank,
}

impl Decoder {
    /// The two labels, where scores stand for labels.
    pub fn classes(&self) -> Option<&Classes> {
        match self {
            Decoder::Sign(classes) | Decoder::OneClass(classes) => Some(classes),
            Decoder::Rank => None,
        }
    }

    /// The label a score stands for, where scores stand for labels.
    pub fn label(&self, score: f64) -> Option<&str> {
        self.classes().map(|classes| if score >= 0.0 { classes.positive.as_str() } else { classes.negative.as_str() })
    }
}
