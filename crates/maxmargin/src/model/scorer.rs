//! [`Scorer`]: from features to scores.

use crate::data::Design;

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

    /// Scores of all rows.
    pub(crate) fn scores(&self, design: &Design) -> Vec<f64> {
        match self {
            Scorer::Linear { weights, intercept } => {
                let mut scores = design.all_scores(weights);
                if let Some(intercept) = intercept {
                    scores.iter_mut().for_each(|score| *score += intercept);
                }
                scores
            }
        }
    }
}
