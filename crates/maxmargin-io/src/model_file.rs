//! Model files: errors while reading come with a remedy, and files are written completely or not at all.

use crate::atomic::write_atomically;
use crate::source::read_unchanged;
use maxmargin::error::Result;
use maxmargin::model::Model;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Reads a model file.
pub fn load_model(file: &str) -> Result<Model> {
    let bytes = read_unchanged(file, read_stated)?;
    Model::from_bytes(&bytes).map_err(|error| {
        let advised = error.remedy().is_some();
        let error = error.in_file(file);
        if advised { error } else { error.help("a model file is what `maxmargin train … -o MODEL` writes") }
    })
}

/// The longest header that the format allows.
const LONGEST_HEADER: u64 = 100_000_000;

/// Reads as many bytes as the header states, and one more if there is one, so that a device or a pipe without end is
/// not read until memory is full. If the header makes no sense, only the beginning is read; it is refused later.
fn read_stated(input: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(8).read_to_end(&mut bytes)?;
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    input.take(length.min(LONGEST_HEADER)).read_to_end(&mut bytes)?;
    #[derive(Deserialize)]
    struct Entry {
        data_offsets: Option<(u64, u64)>,
    }
    let header: Option<HashMap<String, Entry>> = bytes.get(8..).and_then(|text| serde_json::from_slice(text).ok());
    let end = header.iter().flat_map(HashMap::values).filter_map(|entry| entry.data_offsets).map(|(_, end)| end).max();
    input.take(end.map_or(1, |end| end.saturating_add(1))).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a model file completely or not at all. Returns its size.
pub fn save_model(model: &Model, file: &str) -> Result<u64> {
    let bytes = model.to_bytes()?;
    write_atomically(Path::new(file), |out| out.write_all(&bytes))?;
    Ok(bytes.len() as u64)
}
