//! The steps of learning from a stream, and the state they leave. [`crate::stream`] makes models of them.
//!
//! [`ComparisonLearner`] takes pairs of rows with the outcomes left, tie and right. Each pair is predicted before it is
//! learned from, which [`Progressive`] counts.

mod comparison;
mod pair_steps;
mod passive_aggressive;
mod progressive;
mod stored;
#[cfg(test)]
mod tests;
mod weights;

pub use comparison::{ComparisonLearner, OnlineState};
pub use progressive::{Auc, Progressive, RECENT};
