//! The file formats of maxmargin: what people have, in and out.
//!
//! [`read()`] recognises the format by content and name, decompresses, validates and says what it found; [`write()`] is
//! the way back. Each format is one file of this crate.

#[cfg(feature = "tables")]
pub mod arrow;
pub mod atomic;
mod blocks;
pub mod cache;
mod cells;
mod columns;
pub mod csv;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod kept;
mod mapped;
mod number;
mod options;
mod output;
mod pair_blocks;
mod pairs;
#[cfg(feature = "tables")]
pub mod parquet;
mod read;
#[cfg(feature = "tables")]
mod record_batch;
mod records;
mod sides;
mod source;
pub mod svmlight;
mod table;
mod wide;
mod write;

pub use blocks::{Block, BlockOptions, Found, Step, read_blocks};
pub use options::{Columns, Facts, Format, Loaded, Missing, ModelFeatures, Pairing, Precision, ReadOptions};
pub use pair_blocks::PairBlocks;
pub use pairs::{Items, read_pairs};
pub use read::{read, stored_size};
pub use records::{BadCell, RecordWriter, TakeRecords, read_records, write_records};
pub use source::read_whole;
pub use write::{output_format, write, write_text_file};
