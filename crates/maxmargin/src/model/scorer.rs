//! [`Scorer`]: from features to scores.

use crate::data::{Design, Folded};

/// How a row is scored.
#[derive(Clone, Debug, PartialEq)]
pub enum Scorer {
    /// w · x + b
    Linear {
        /// One weight a feature, of the scaled features.
        weights: Vec<f64>,
        /// The constant term.
        intercept: Option<f64>,
    },
}

impl Scorer {
    /// Number of features.
    pub fn features(&self) -> usize {
        match self {
            Scorer::Linear { weights, .. } => weights.len(),
        }
    }

    /// The weights with a scaling folded in, as [`Scorer::scores`] takes them: once for many blocks of rows.
    pub(crate) fn fold(&self, design: &Design) -> Folded {
        match self {
            Scorer::Linear { weights, .. } => design.fold(weights),
        }
    }

    /// Scores of all rows.
    pub(crate) fn scores(&self, design: &Design, folded: &Folded) -> Vec<f64> {
        match self {
            Scorer::Linear { intercept, .. } => {
                let mut scores = design.all_scores_folded(folded);
                if let Some(intercept) = intercept {
                    scores.iter_mut().for_each(|score| *score += intercept);
                }
                scores
            }
        }
    }
}
