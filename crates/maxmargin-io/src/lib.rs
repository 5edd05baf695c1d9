//! The file formats of maxmargin: what people have, in and out.
//!
//! [`read`] recognises the format by content and name, decompresses, validates and says what it found; [`write`] is
//! the way back. Each format is one file of this crate.

#[cfg(feature = "tables")]
pub mod arrow;
mod cells;
mod columns;
pub mod csv;
mod kept;
mod options;
mod output;
#[cfg(feature = "tables")]
pub mod parquet;
#[cfg(feature = "tables")]
mod record_batch;
mod table;

pub use options::{Columns, Facts, Format, Loaded, Missing, ModelFeatures, Precision, ReadOptions};
