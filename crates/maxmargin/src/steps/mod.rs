//! What stochastic solvers and learners of streams share: how long steps are ([`schedule`]), the search for their first
//! length ([`calibrate`]), and weights that shrink at every step, with their average ([`weights`]).

pub(crate) mod calibrate;
pub(crate) mod schedule;
pub(crate) mod weights;
