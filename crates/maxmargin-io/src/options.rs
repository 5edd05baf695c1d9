//! What a reader is asked for and what it says it found.

use crate::pairs::Items;
use maxmargin::data::Dataset;
use maxmargin::run::Cancel;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `target [qid:ID] [cost:W] index:value …`
    Svmlight,
    /// Comma-separated with a header.
    Csv,
    /// Tab-separated with a header.
    Tsv,
    /// Parquet.
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
    /// Our own memory-mapped cache.
    Mmd,
}

impl Format {
    /// Every format there is.
    pub const ALL: [Format; 6] =
        [Format::Svmlight, Format::Csv, Format::Tsv, Format::Parquet, Format::Arrow, Format::Mmd];

    /// The name used in flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Svmlight => "svmlight",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Mmd => "mmd",
        }
    }

    /// The format a file name's extension stands for, compression extensions left off.
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let name = [".gz", ".bz2", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let extension = name.rsplit_once('.')?.1;
        Some(match extension {
            "svm" | "txt" | "svmlight" | "libsvm" | "dat" | "letor" => Format::Svmlight,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "parquet" => Format::Parquet,
            "arrow" | "feather" | "ipc" | "arrows" => Format::Arrow,
            "mmd" => Format::Mmd,
            _ => return None,
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How feature values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Four bytes, correctly rounded from the text.
    #[default]
    F32,
    /// Eight bytes.
    F64,
}

/// What to do about an empty cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Refuse, naming the cell.
    #[default]
    Error,
    /// Take zero.
    Zero,
    /// Take the mean of the column's other values.
    Mean,
    /// Take these values, one a feature: the means a model was trained with.
    Fill(Vec<f64>),
}

/// Which columns of a table are no features. Unset ones are found by their common names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The target.
    pub target: Option<String>,
    /// The group (query).
    pub group: Option<String>,
    /// The row weight.
    pub weight: Option<String>,
    /// The row id.
    pub id: Option<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
}

impl Columns {
    /// Whether any column is named.
    pub fn is_empty(&self) -> bool {
        *self == Columns::default()
    }
}

/// What the rows of a file have to do with pairs of two rows.
#[derive(Clone, Debug, Default)]
pub enum Pairing {
    /// Nothing.
    #[default]
    None,
    /// A table with columns `better.NAME` and `worse.NAME`, or `left.NAME`, `right.NAME` and `outcome`, holds a pair in
    /// each row.
    Sides,
    /// The file holds comparisons: a pair in each row as above where there are such columns, and otherwise pairs of items
    /// without features. These are named in columns `left`, `right` and `outcome` (or `better` and `worse`), and each
    /// has one feature of its own, which is 1. Ids that [`ReadOptions::features`] does not name become rows of zeros.
    Comparisons,
    /// They are items that pairs will name. What is called weight is a feature of theirs: it is pairs that have weights.
    ItemRows,
    /// The file is a table of pairs of these items.
    Of(Arc<Items>),
}

/// What a reader is asked for.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format, where it shall not be detected.
    pub format: Option<Format>,
    /// How to store values.
    pub precision: Precision,
    /// The roles of table columns.
    pub columns: Columns,
    /// The same roles as a model's training data had them: used where `columns` says nothing and the file has such a
    /// column.
    pub remembered: Columns,
    /// Empty cells of tables.
    pub missing: Missing,
    /// The model's features, for data that will be scored: table columns are matched by these names, and an svmlight
    /// file gets at least this many columns.
    pub features: Option<ModelFeatures>,
    /// Whether items without features that `features` does not name become features too, behind its own: data that a model
    /// will learn from.
    pub features_grow: bool,
    /// The index base of svmlight files, where it shall not be detected.
    pub index_base: Option<u8>,
    /// The least number of features of an svmlight file: the last ones may be zero in all of its rows.
    pub least_features: usize,
    /// Whether the file holds pairs, or items that pairs name.
    pub pairing: Pairing,
    /// Whether pairs of a left and a right item may come without a column `outcome`: data that will be scored. Their
    /// outcomes are then those of [`maxmargin::data::Pairs::new`] and say nothing.
    pub outcomes_optional: bool,
    /// Polled while reading.
    pub cancel: Cancel,
}

/// What a model expects of the features of new data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFeatures {
    /// How many.
    pub count: usize,
    /// Their names, where the training data had any.
    pub names: Option<Vec<String>>,
    /// The index base of the svmlight file it was trained on.
    pub index_base: Option<u8>,
}

/// What a reader found, for the user to see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The file as the user named it.
    pub file: String,
    /// The format.
    pub format: Option<Format>,
    /// `gzip`, `bzip2` or `zstd`.
    pub compression: Option<&'static str>,
    /// The lowest index of an svmlight file counts as feature 1 (`1`) or as feature 0 (`0`).
    pub index_base: Option<u8>,
    /// Further findings, one short phrase each: which columns serve as what, side files used, cells filled.
    pub notes: Vec<String>,
    /// The values that stood in for missing cells, one a feature.
    pub fill: Option<Vec<f64>>,
    /// Bytes of the file as stored, where it is a file.
    pub bytes: Option<u64>,
}

/// Data and what was found about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The data.
    pub data: Dataset,
    /// The findings.
    pub facts: Facts,
}
