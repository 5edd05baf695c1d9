//! What stochastic solvers and learners of streams share: how long steps are ([`schedule`]), and weights that shrink at
//! every step, with their average ([`weights`]).

pub(crate) mod schedule;
pub(crate) mod weights;
