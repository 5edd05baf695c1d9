//! Learning from a stream: one example after the other, in memory that does not grow with their number.
//!
//! [`ComparisonLearner`] takes pairs of rows with the outcomes left, tie and right. Each pair is predicted before it is
//! learned from, which [`Progressive`] counts. At any moment it can be made into a [`Model`](crate::model::Model), and
//! such a model taken up again gives the same bytes as a run that was never interrupted.

mod comparison;
mod differences;
mod progressive;
mod stored;
#[cfg(test)]
mod tests;
mod weights;

pub use comparison::{ComparisonLearner, OnlineState};
pub use progressive::{Auc, Progressive, RECENT};
