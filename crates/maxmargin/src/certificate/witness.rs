//! [`Witness`]: what proves a lower bound.

/// What proves the lower bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// The weights alone: the loss is smooth, and `½‖gradient‖²` bounds the distance to the optimum.
    Weights,
    /// A feasible dual point, with one variable per block.
    Dual(Vec<f64>),
    /// The weights, and the width over which the kink of the hinge is smoothed to get a dual point.
    Rounded(f64),
    /// Cuts that bound the loss from below: where each was made, and its multiplier.
    Cuts(Vec<Cut>),
}

/// A cut that a bound uses: where it was made, and its multiplier.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The weights and the free scalars.
    pub point: Vec<f64>,
    /// Its share of the bound; the shares add up to one.
    pub multiplier: f64,
}
