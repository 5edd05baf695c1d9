//! The options of a reader, and what it reports.

use crate::bad_rows::BadRows;
use crate::hashing::Hashing;
use crate::pairs::Items;
use crate::stamps::Stamps;
use crate::templates::Templates;
use maxmargin::data::{Dataset, Names};
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
    /// The memory-mapped cache of this project.
    Mmd,
    /// Text in columns, with sequences between empty lines.
    Columns,
    /// Bracketed trees, or plain sentences.
    Trees,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 8] = [
        Format::Svmlight,
        Format::Csv,
        Format::Tsv,
        Format::Parquet,
        Format::Arrow,
        Format::Mmd,
        Format::Columns,
        Format::Trees,
    ];

    /// The name used in flags and messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Svmlight => "svmlight",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Mmd => "mmd",
            Format::Columns => "columns",
            Format::Trees => "trees",
        }
    }

    /// The format of a file name's extension, ignoring extensions for compression.
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
            "conll" | "iob" | "bio" => Format::Columns,
            "mrg" | "ptb" | "psd" | "trees" => Format::Trees,
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

/// How to handle an empty cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Return an error that names the cell.
    #[default]
    Error,
    /// Use zero.
    Zero,
    /// Use the mean of the column's other values.
    Mean,
    /// Use these values, one per feature: the means of the model's training data.
    Fill(Vec<f64>),
}

/// Which columns of a table are not features. Unset ones are found by their common names.
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
    /// Columns that hold 1 for rows with the label of this name, and 0 for the others.
    pub labels: Vec<String>,
}

impl Columns {
    /// Whether any column is named.
    pub fn is_empty(&self) -> bool {
        *self == Columns::default()
    }
}

/// How the rows of a file relate to pairs of two rows.
#[derive(Clone, Debug, Default)]
pub enum Pairing {
    /// They are not pairs.
    #[default]
    None,
    /// A table with columns `better.NAME` and `worse.NAME`, or `left.NAME`, `right.NAME` and `outcome`, holds a pair in
    /// each row.
    Sides,
    /// The file holds comparisons. If it has columns as above, each row is a pair. Otherwise it holds pairs of items
    /// without features, named in columns `left`, `right` and `outcome` (or `better` and `worse`). Each item has one
    /// feature of its own, with value 1. Ids that [`ReadOptions::features`] does not name become rows of zeros.
    Comparisons,
    /// The rows are items for pairs. A column called weight is a feature, because only pairs have weights.
    ItemRows,
    /// The file is a table of pairs of these items.
    Of(Arc<Items>),
}

/// The options of a reader.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format, unless it is to be detected.
    pub format: Option<Format>,
    /// How to store values.
    pub precision: Precision,
    /// The roles of table columns.
    pub columns: Columns,
    /// The roles of the columns in a model's training data. They are used if `columns` says nothing and the file has
    /// such a column.
    pub remembered: Columns,
    /// What separates the labels of a target cell, if such a cell holds a set of labels.
    pub label_separator: Option<u8>,
    /// How to handle empty cells of tables.
    pub missing: Missing,
    /// The model's features, for data to be scored. Table columns are matched by these names, and an svmlight file gets
    /// at least this many columns.
    pub features: Option<ModelFeatures>,
    /// Whether items without features that are not in `features` become new features after these. This is for data to
    /// train on.
    pub features_grow: bool,
    /// The index base of svmlight files, unless it is to be detected.
    pub index_base: Option<u8>,
    /// For a stream: how rows are stored must depend on no later row. Rows of svmlight text are then sparse, and those of
    /// tables dense; if the index base is not known, it is 0, so that column j is the feature with index j.
    pub steady: bool,
    /// For a stream: rows are used as soon as they arrive, and are not collected until a block is full.
    pub live: bool,
    /// Whether more is appended to the file while it is read. Its end is then waited for, until the reader is cancelled.
    pub follow: bool,
    /// Where rows that cannot be read go. Without it, the first one is an error.
    pub bad_rows: Option<BadRows>,
    /// Whether features have names that choose their columns, in text and in tables.
    pub hash: Option<Hashing>,
    /// The minimum number of features of an svmlight file, whose last features may be zero in all rows.
    pub least_features: usize,
    /// What makes the features of text in columns. With templates, text whose format is not named is taken for that.
    pub templates: Option<Arc<Templates>>,
    /// The least number of rows in which a new feature of a template occurs.
    pub least_count: u32,
    /// Whether the data are sentences with trees: text whose format neither its name nor the caller says is taken for
    /// bracketed trees or plain sentences.
    pub sentences: bool,
    /// Sentences with more words are left out of bracketed trees.
    pub max_words: Option<u32>,
    /// The number of columns that a model knows in text in columns, without the tag.
    pub text_columns: Option<usize>,
    /// Whether the file holds pairs, or items for pairs.
    pub pairing: Pairing,
    /// Whether pairs of a left and a right item may lack a column `outcome`, for data to be scored. Their outcomes are
    /// then those of [`maxmargin::data::Pairs::new`] and have no meaning.
    pub outcomes_optional: bool,
    /// Checked while reading.
    pub cancel: Cancel,
}

/// The features that a model expects in new data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFeatures {
    /// Number of features.
    pub count: usize,
    /// Their names, if the training data had names.
    pub names: Option<Vec<String>>,
    /// The index base of the svmlight file that it was trained on.
    pub index_base: Option<u8>,
}

/// What a reader found, to be shown to the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The file as the user named it.
    pub file: String,
    /// The format.
    pub format: Option<Format>,
    /// `gzip`, `bzip2` or `zstd`.
    pub compression: Option<&'static str>,
    /// Whether the indices of an svmlight file count from 1 or from 0.
    pub index_base: Option<u8>,
    /// Further findings, one short phrase each: roles of columns, side files used, cells filled.
    pub notes: Vec<String>,
    /// The values used for missing cells, one per feature.
    pub fill: Option<Vec<f64>>,
    /// The number of columns of text in columns, without the tag.
    pub text_columns: Option<usize>,
    /// The empty lines of such text: before the first sequence, and after each one. For sentences, those that are left
    /// out.
    pub blank_lines: Option<Arc<[u32]>>,
    /// The words of sentences, in order.
    pub words: Option<Arc<Names>>,
    /// Size of the file as stored, if it is a file.
    pub bytes: Option<u64>,
    /// Detects changes of mapped files, which are read for as long as the data are used.
    pub stamps: Stamps,
}

/// Data and the findings about them.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The data.
    pub data: Dataset,
    /// The findings.
    pub facts: Facts,
}
