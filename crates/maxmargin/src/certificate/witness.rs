//! [`Witness`]: what proves a lower bound.

/// What proves the lower bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// The weights suffice: the loss is smooth, and `½‖gradient‖²` bounds the distance to the optimum.
    Weights,
    /// A feasible dual point, one variable a block.
    Dual(Vec<f64>),
    /// The weights, and the width over which the kink of the hinge is rounded off to give a dual point.
    Rounded(f64),
    /// Cuts below the loss: where each was taken, and its multiplier.
    Cuts(Vec<Cut>),
}

/// A cut that a bound rests on: where it was taken, and how much it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The weights and the free scalars.
    pub point: Vec<f64>,
    /// Its share of the bound; the shares add up to one.
    pub multiplier: f64,
}
