//! The file formats of maxmargin: what people have, in and out.
//!
//! [`read`] recognises the format by content and name, decompresses, validates and says what it found; [`write`] is
//! the way back. Each format is one file of this crate.

pub mod atomic;
pub mod cache;
mod mapped;
mod number;
mod options;
mod source;
pub mod svmlight;

pub use options::{Columns, Facts, Format, Loaded, Missing, ModelFeatures, Precision, ReadOptions};
