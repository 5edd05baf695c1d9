//! Large-margin learning: rank, compare and classify, with a certificate of how close to optimal the result is.

pub mod data;
pub mod error;
mod random;
pub mod run;
pub mod simulate;

pub use error::{Code, Error, Result};
