//! [`Regularisation`]: how much the loss weighs against the size of the weights.

use serde::{Deserialize, Serialize};

/// How much the loss weighs against the size of the weights: one quantity, said in one of two ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regularisation {
    /// The weight of the **sum** of losses.
    C(f64),
    /// The mean form: `lambda = 1 / (C · n)`, n the total weight of all blocks.
    Lambda(f64),
    /// The largest share of the blocks that may miss the margin, and the least that are support vectors: the C at which
    /// that holds is found in training. Until then it is the share that stands for lambda.
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
