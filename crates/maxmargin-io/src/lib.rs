//! The file formats of maxmargin, for reading and writing.
//!
//! [`read()`] detects the format by content and name, decompresses, validates and reports what it found; [`write()`]
//! does the reverse. Each format is one file of this crate. [`gather()`] reads all input of a task. The crate also
//! handles files about models: [`load_model`] and [`save_model`], settings files ([`SettingsFile`]), and how a model's
//! data were read ([`Reading`]).

#[cfg(feature = "tables")]
pub mod arrow;
pub mod atomic;
mod bad_rows;
mod blocks;
pub mod cache;
mod cells;
#[cfg(feature = "tables")]
mod claims;
mod clicks;
mod column_text;
mod columns;
pub mod csv;
mod delimiter;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod growing;
mod hashing;
mod ids;
mod kept;
mod label_sets;
mod mapped;
mod model_file;
mod number;
mod options;
mod output;
mod pair_blocks;
mod pairs;
#[cfg(feature = "tables")]
pub mod parquet;
mod read;
mod reading;
#[cfg(feature = "tables")]
mod record_batch;
mod records;
mod row_blocks;
mod settings_file;
mod sides;
mod source;
mod source_stream;
mod stamps;
pub mod svmlight;
mod table;
mod templates;
mod temporary;
mod trees;
mod wide;
mod write;

pub use bad_rows::BadRows;
pub use blocks::{Block, BlockOptions, Found, Step, read_blocks};
pub use clicks::{LoadedClicks, read_clicks};
pub use gather::{
    Gathered, Timed, asking_for_pairs, expect_features, expect_known_items, gather, gather_for, input_of, load,
    load_items, load_pairs, options_for, options_like, pair_options, pairing_of,
};
pub use hashing::{Hashing, Spot};
pub use model_file::{load_model, save_model};
pub use options::{Columns, Facts, Format, Loaded, Missing, ModelFeatures, Pairing, Precision, ReadOptions};
pub use pair_blocks::PairBlocks;
pub use pairs::{Items, read_pairs};
pub use read::{read, stored_size};
pub use reading::{ClickReading, READING, ReadSettings, Reading, scoring_options};
pub use records::{BadCell, RecordWriter, TakeRecords, read_records, write_records};
pub use row_blocks::RowBlocks;
pub use settings_file::{RUN, RunSettings, SettingsFile, alone, laid_over, named};
pub use sides::side_files;
pub use source::{no_thread, read_whole};
pub use stamps::Stamps;
pub use templates::Templates;
pub use trees::read_sentences;
pub use write::{output_format, write, write_text_file};
