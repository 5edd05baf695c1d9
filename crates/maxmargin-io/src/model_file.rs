//! Model files: errors while reading come with a remedy, and files are written completely or not at all.

use crate::atomic::write_atomically;
use crate::source::read_whole;
use maxmargin::error::Result;
use maxmargin::model::Model;
use std::io::Write;
use std::path::Path;

/// Reads a model file.
pub fn load_model(file: &str) -> Result<Model> {
    let bytes = read_whole(file)?;
    Model::from_bytes(&bytes).map_err(|error| {
        let advised = error.remedy().is_some();
        let error = error.in_file(file);
        if advised { error } else { error.help("a model file is what `maxmargin train … -o MODEL` writes") }
    })
}

/// Writes a model file completely or not at all. Returns its size.
pub fn save_model(model: &Model, file: &str) -> Result<u64> {
    let bytes = model.to_bytes()?;
    write_atomically(Path::new(file), |out| out.write_all(&bytes))?;
    Ok(bytes.len() as u64)
}
