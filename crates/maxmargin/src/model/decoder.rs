//! [`Decoder`]: from scores to answers.

use crate::data::Outcome;
use crate::metric::outcome_of;
use crate::task::Classes;
use serde::{Deserialize, Serialize};

/// What a score means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decoder {
    /// The sign tells the class; zero counts as positive.
    Sign(Classes),
    /// The sign tells rows like the ones seen (positive) from outliers; every other label than the first is one of those.
    OneClass(Classes),
    /// Higher is better.
    Rank,
    /// Higher is better, and neither is where two scores differ by no more than a threshold.
    Compare {
        /// The threshold.
        threshold: f64,
    },
}

impl Decoder {
    /// The two labels, where scores stand for labels.
    pub fn classes(&self) -> Option<&Classes> {
        match self {
            Decoder::Sign(classes) | Decoder::OneClass(classes) => Some(classes),
            Decoder::Rank | Decoder::Compare { .. } => None,
        }
    }

    /// The difference of two scores up to which neither is better, where there is one.
    pub fn threshold(&self) -> Option<f64> {
        match self {
            Decoder::Compare { threshold } => Some(*threshold),
            Decoder::Sign(_) | Decoder::OneClass(_) | Decoder::Rank => None,
        }
    }

    /// Which of two scored rows is better, where that is what scores are for. The same from the other side.
    pub fn outcome(&self, left: f64, right: f64) -> Option<Outcome> {
        self.threshold().map(|threshold| outcome_of(right - left, threshold))
    }

    /// The label a score stands for, where scores stand for labels.
    pub fn label(&self, score: f64) -> Option<&str> {
        self.classes().map(|classes| if score >= 0.0 { classes.positive.as_str() } else { classes.negative.as_str() })
    }
}
