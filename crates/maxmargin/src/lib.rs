//! Large-margin learning: rank, compare and classify, with a certificate of how close to optimal the result is.

pub mod data;
pub mod error;
pub mod loss;
pub mod metric;
pub mod model;
mod random;
pub mod run;
pub mod settings;
pub mod simulate;
pub mod solve;
pub mod suggest;
pub mod task;
pub mod train;

pub use error::{Code, Error, Result};
