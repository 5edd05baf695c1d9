//! Properties that must hold for any bytes. These functions are the bodies of the fuzz targets; tests also run them
//! over the stored corpus.

use crate::svmlight::{SvmlightWriteOptions, read_stream, read_text, write_dataset};
#[cfg(feature = "tables")]
use crate::{BlockOptions, Format, Step, read, read_blocks};
use crate::{
    Columns, Hashing, Items, Missing, ModelFeatures, Pairing, Precision, ReadOptions, Templates, cache, column_text,
    csv, trees,
};
use maxmargin::data::{Csr, Dataset, Matrix, Targets, Tree, bracketed};
#[cfg(feature = "tables")]
use maxmargin::error::Result;
use maxmargin::model::{Model, Scorer};
use std::sync::Arc;

/// If the largest index needs more columns than this, the file is read but not used further: the weights alone would
/// fill the memory of a fuzzer.
const FEW_COLUMNS: usize = 1 << 20;

/// The reader accepts or refuses the text, a stream is read like a file, and accepted data survive printing.
pub fn svmlight(bytes: &[u8]) {
    names(bytes);
    let options = ReadOptions { precision: Precision::F64, ..ReadOptions::default() };
    let whole = read_text("fuzz", bytes, &options);
    let streamed = read_stream("fuzz", bytes, &options);
    assert_eq!(whole.is_ok(), streamed.is_ok());
    let (Ok(whole), Ok(streamed)) = (whole, streamed) else { return };
    let hash = whole.data.hash().expect("owned data are sound");
    assert_eq!(hash, streamed.data.hash().expect("owned data are sound"));
    let mut text = Vec::new();
    let index_base = whole.facts.index_base.unwrap_or(1);
    let write_options = SvmlightWriteOptions { index_base, ..SvmlightWriteOptions::default() };
    // Label words and unusual query ids can be read but not printed.
    if write_dataset(&whole.data, &mut text, &write_options).is_ok() {
        let options = ReadOptions { index_base: Some(index_base), ..options };
        let again = read_text("fuzz", &text, &options).expect("what was written can be read");
        assert_eq!(again.data.hash().expect("owned data are sound"), hash);
    }
}

/// The same text with names in place of numbers, read as a file and as a stream.
fn names(bytes: &[u8]) {
    let options = ReadOptions { hash: Hashing::new(8).ok(), ..ReadOptions::default() };
    let whole = read_text("fuzz", bytes, &options);
    let streamed = read_stream("fuzz", bytes, &options);
    assert_eq!(whole.is_ok(), streamed.is_ok());
    if let (Ok(whole), Ok(streamed)) = (whole, streamed) {
        assert_eq!(whole.data.cols(), 256);
        assert_eq!(whole.data.computed_hash().ok(), streamed.data.computed_hash().ok());
    }
}

/// The table reader accepts or refuses the text, under each rule for missing cells, and with cells that are hashed.
pub fn csv(bytes: &[u8]) {
    for missing in [Missing::Error, Missing::Zero, Missing::Mean] {
        let options = ReadOptions { missing, columns: Columns::default(), ..ReadOptions::default() };
        let hashed = ReadOptions { hash: Hashing::new(8).ok(), ..options.clone() };
        for delimiter in [b',', b'\t'] {
            if let Ok(loaded) = csv::read("fuzz", bytes, delimiter, &hashed) {
                assert_eq!(loaded.data.cols(), 256);
            }
            if let Ok(loaded) = csv::read("fuzz", bytes, delimiter, &options) {
                let mut text = Vec::new();
                csv::write(&loaded.data, delimiter, &mut text).expect("what was read can be written");
            }
        }
    }
}

/// Templates, then a line `==`, then text in columns: both are accepted or refused. Names of templates read back as the
/// same templates, and a model with all features of the text gets the same rows.
pub fn columns(bytes: &[u8]) {
    let cut = bytes.windows(4).position(|window| window == b"\n==\n");
    let (templates, text) = cut.map_or((&b"word[-1..1]\n"[..], bytes), |at| (&bytes[..at], &bytes[at + 4..]));
    let Ok(templates) = std::str::from_utf8(templates) else { return };
    let Ok(templates) = Templates::parse(templates, "fuzz") else { return };
    let names: String = templates.names().map(|name| format!("{name}\n")).collect();
    let again = Templates::parse(&names, "fuzz").expect("names are templates");
    assert!(again.names().eq(templates.names()));
    let options = ReadOptions { templates: Some(Arc::new(templates)), ..ReadOptions::default() };
    let Ok(loaded) = column_text::read("fuzz", text, &options) else { return };
    let names = loaded.data.feature_names().expect("features have names");
    let known = ModelFeatures {
        count: loaded.data.cols(),
        names: Some(names.iter().map(|name| name.into_owned()).collect()),
        index_base: None,
    };
    let scored = ReadOptions { features: Some(known), text_columns: loaded.facts.text_columns, ..options };
    let again = column_text::read("fuzz", text, &scored).expect("the same text");
    assert_eq!(again.data.hash().expect("owned data are sound"), loaded.data.hash().expect("owned data are sound"));
}

/// The reader accepts or refuses bracketed trees and plain sentences. Printed trees read back as the same trees.
pub fn trees(bytes: &[u8]) {
    let options = ReadOptions { max_words: Some(50), ..ReadOptions::default() };
    let known = ModelFeatures { count: 1, names: Some(vec!["word=a".to_string()]), index_base: None };
    let scored = ReadOptions { features: Some(known), ..ReadOptions::default() };
    let plain = trees::read("fuzz", bytes, &scored);
    let Ok(loaded) = trees::read("fuzz", bytes, &options) else { return };
    assert!(plain.is_ok());
    let words = loaded.facts.words.as_ref().expect("sentences have words");
    let targets = loaded.data.targets();
    let mut text = String::new();
    for rows in loaded.data.groups().expect("sentences are groups").ranges() {
        let pieces: Vec<String> = rows.clone().map(|row| targets.label_of(row)).collect();
        Tree::of_pieces(pieces.iter().map(String::as_str)).expect("a tree");
        let words: Vec<_> = rows.map(|row| words.get(row)).collect();
        text.push_str(&bracketed(pieces.iter().map(String::as_str).zip(words.iter().map(|word| word.as_ref()))));
        text.push('\n');
    }
    let again = trees::read("fuzz", text.as_bytes(), &options).expect("what was read can be printed");
    assert_eq!(again.data.hash().expect("owned data are sound"), loaded.data.hash().expect("owned data are sound"));
}

/// The reader accepts or refuses pairs over a few items, comparisons of items without features, and a table that may
/// hold a pair in each row. Accepted pairs name rows that exist, and tables with two items per row survive printing.
pub fn pairs(bytes: &[u8]) {
    let items = "id,x,y\na,1,2\nb,3,0\n\"c d\",5,1\n7,0,0\n";
    let item_rows = ReadOptions { pairing: Pairing::ItemRows, ..ReadOptions::default() };
    let items = csv::read("items", items.as_bytes(), b',', &item_rows).expect("these items are sound");
    let items = Arc::new(Items::new(&items).expect("every one has an id"));
    for pairing in [Pairing::Of(items), Pairing::Sides, Pairing::Comparisons] {
        for delimiter in [b',', b'\t'] {
            let options = ReadOptions { pairing: pairing.clone(), missing: Missing::Zero, ..ReadOptions::default() };
            let read = csv::read("fuzz", bytes, delimiter, &options);
            let scored = ReadOptions { outcomes_optional: true, ..options.clone() };
            assert!(read.is_err() || csv::read("fuzz", bytes, delimiter, &scored).is_ok());
            let Ok(loaded) = read else { continue };
            let Some(pairs) = loaded.data.pairs() else { continue };
            assert!(!pairs.is_empty() && pairs.rows() <= loaded.data.rows());
            let found = pairs.consistency();
            assert!(found.items <= loaded.data.rows() as u64 && found.cyclic_pairs <= pairs.len() as u64);
            let hash = loaded.data.hash().expect("owned data are sound");
            assert!(found.contradictions <= found.disputes && found.disputed_pairs <= pairs.len() as u64);
            // Items that are in no pair are not written.
            let two_a_row = loaded.data.rows() == 2 * pairs.len()
                && (0..pairs.len() as u32)
                    .zip(pairs.left().iter().zip(pairs.right()))
                    .all(|(pair, (&left, &right))| (left, right) == (2 * pair, 2 * pair + 1));
            // Names with spaces around them, or that look quoted, may be read back differently.
            let mut text = Vec::new();
            csv::write(&loaded.data, b',', &mut text).expect("what was read can be written");
            let again = ReadOptions { pairing: Pairing::Sides, ..ReadOptions::default() };
            if two_a_row && let Ok(again) = csv::read("fuzz", &text[..], b',', &again) {
                assert_eq!(again.data.hash().expect("owned data are sound"), hash);
            }
        }
    }
}

/// A cache opens or is refused. After a successful check, every row can be used.
pub fn cache(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("writes");
    let checked = cache::check(file.path());
    let Ok(loaded) = cache::open("fuzz", file.path()) else { return };
    let rows = loaded.data.rows();
    if loaded.data.matrix().check(0..rows).is_ok() && loaded.data.cols() <= FEW_COLUMNS {
        let weights = vec![1.0; loaded.data.cols()];
        let mut scores = vec![0.0; rows];
        loaded.data.matrix().scores(0..rows, &weights, &mut scores);
        for row in 0..rows {
            let _ = loaded.data.input_row(row);
        }
    } else {
        assert!(checked.is_err() || loaded.data.cols() > FEW_COLUMNS);
    }
}

/// A Parquet file is accepted or refused, with or without values for missing cells, as a whole or in blocks. Accepted data
/// survive writing.
#[cfg(feature = "tables")]
pub fn parquet(bytes: &[u8]) {
    table(bytes, Format::Parquet, |data, out| crate::parquet::write(data, out));
}

/// The same for an Arrow file or stream.
#[cfg(feature = "tables")]
pub fn arrow(bytes: &[u8]) {
    table(bytes, Format::Arrow, |data, out| crate::arrow::write(data, out));
}

#[cfg(feature = "tables")]
fn table(bytes: &[u8], format: Format, write: impl Fn(&Dataset, &mut Vec<u8>) -> Result<()>) {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let name = file.path().to_str().expect("a path in UTF-8");
    std::fs::write(name, bytes).expect("writes");
    for missing in [Missing::Error, Missing::Zero, Missing::Mean] {
        let options =
            ReadOptions { format: Some(format), missing, precision: Precision::F64, ..ReadOptions::default() };
        let whole = read(name, &options);
        let mut rows = 0;
        let put = &mut |step: Step<usize>| {
            match step {
                Step::Block(block) => rows += block,
                Step::Again => rows = 0,
            }
            Ok(())
        };
        let blocks = BlockOptions { bytes: 64, ..BlockOptions::default() };
        let found = read_blocks(name, &options, &blocks, &|block| Ok(block.data.rows()), put);
        let Ok(whole) = whole else { continue };
        assert_eq!(
            (rows, found.expect("blocks of a sound file").rows as usize),
            (whole.data.rows(), whole.data.rows())
        );
        if whole.data.cols() > FEW_COLUMNS {
            continue;
        }
        let hash = whole.data.hash().expect("owned data are sound");
        let mut written = Vec::new();
        write(&whole.data, &mut written).expect("what was read can be written");
        let copy = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(copy.path(), written).expect("writes");
        let again =
            read(copy.path().to_str().expect("a path in UTF-8"), &options).expect("what was written can be read");
        assert_eq!(again.data.hash().expect("owned data are sound"), hash);
    }
}

/// A model loads or is refused. A loaded model can be written and read again, and gives the same model. If the file has
/// the newest format, the bytes are also the same.
pub fn model(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let written = model.to_bytes().expect("a loaded model can be written");
    // Checksums are not compared while fuzzing.
    if format_version(bytes) != Some(1) && !cfg!(fuzzing) {
        assert_eq!(written, bytes);
    }
    let again = Model::from_bytes(&written).expect("what was written can be read");
    assert_eq!(again.to_bytes().expect("a loaded model can be written"), written);
    // A row of two features takes little memory, however many the vectors of the model claim to have.
    if let Scorer::Expansion(expansion) = &model.scorer
        && let Some(last) = expansion.vectors.cols().checked_sub(1).filter(|&last| last > 0)
    {
        let row = Csr::new(vec![0, 2], vec![0, last as u32], vec![1.0f32, 1.0], last + 1).expect("a row");
        let row = Dataset::new(Matrix::Csr32F32(row), Targets::Absent).expect("one row");
        // It may not fit the scaling of the model.
        let _ = model.scores(&row);
    }
}

/// The version that a model file states.
fn format_version(bytes: &[u8]) -> Option<u64> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let header: serde_json::Value =
        serde_json::from_slice(bytes.get(8..)?.get(..usize::try_from(length).ok()?)?).ok()?;
    let about: serde_json::Value = serde_json::from_str(header["__metadata__"]["maxmargin"].as_str()?).ok()?;
    about["format-version"].as_u64()
}
