//! The file formats of maxmargin: what people have, in and out.
//!
//! [`read`] recognises the format by content and name, decompresses, validates and says what it found; [`write`] is
//! the way back. Each format is one file of this crate.

mod options;
pub mod svmlight_writer;

pub use options::{Columns, Facts, Format, Loaded, Missing, ModelFeatures, Precision, ReadOptions};
