//! Ratings of items from the games they played, and what turns any rating into a comparison with ties.
//!
//! [`best_threshold`] finds how far apart two scores must be before one of the items counts as better.

mod threshold;

pub use threshold::{Threshold, best_threshold, decide};
