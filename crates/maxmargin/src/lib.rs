//! Large-margin learning: rank, compare and classify, with a certificate of how close to optimal the result is.

pub mod data;
pub mod error;
pub mod metric;
pub mod run;

pub use error::{Code, Error, Result};
