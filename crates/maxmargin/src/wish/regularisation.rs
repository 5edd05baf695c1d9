//! [`Regularisation`]: the weight of the loss relative to the size of the weights.

use serde::{Deserialize, Serialize};

/// The weight of the loss relative to the size of the weights: one quantity, given in one of three ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regularisation {
    /// The weight of the **sum** of losses.
    C(f64),
    /// The mean form: `lambda = 1 / (C · n)`, where n is the total weight of all blocks.
    Lambda(f64),
    /// The largest share of the blocks that may violate the margin, and the smallest share that are support vectors.
    /// Training finds the C for which that holds. Until then, the share is used as lambda.
    Nu(f64),
}

impl Regularisation {
    /// The weight of the sum, given the total block weight.
    pub fn c(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => c,
            Regularisation::Lambda(lambda) | Regularisation::Nu(lambda) => 1.0 / (lambda * total_weight),
        }
    }

    /// The mean form, given the total block weight.
    pub fn lambda(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => 1.0 / (c * total_weight),
            Regularisation::Lambda(lambda) | Regularisation::Nu(lambda) => lambda,
        }
    }

    /// Whether C is found in training.
    pub fn is_nu(self) -> bool {
        matches!(self, Regularisation::Nu(_))
    }
}
