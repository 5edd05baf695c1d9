//! The input of learners: features, targets, groups and weights, from any kind of memory.

mod buffer;
mod classes;
mod dataset;
mod differences;
mod groups;
mod matrix;
mod names;
mod narrow;
mod pairs;
mod residency;
pub(crate) mod row_loops;
mod scale;
mod split;
mod subset;
mod targets;

pub use buffer::Buffer;
pub use classes::Classes;
pub(crate) use classes::same_number;
pub use dataset::{BlockHash, Dataset, Shape, check_features};
pub use groups::Groups;
pub use matrix::{Csr, Dense, Guard, Matrix, Starts};
pub(crate) use matrix::{Rows, with_rows};
pub use names::Names;
pub(crate) use narrow::{NarrowScores, Span, narrow_scores};
pub use pairs::{Consistency, Outcome, PairCounts, Pairs, outcome_of, score_differences};
pub use residency::Residency;
pub(crate) use residency::Visits;
pub(crate) use row_loops::prefetch;
pub use row_loops::{Index, Value};
pub use scale::{Design, Scale, Scaling};
pub(crate) use scale::{Folded, MOST_LANES, STRETCH, lanes, lanes_of_outputs};
pub use split::{complement, folds, hold_out, holdout};
pub use subset::Subset;
pub(crate) use subset::counts;
pub use targets::Targets;
pub(crate) use targets::several_labels;
