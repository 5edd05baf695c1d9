//! Model files: read with a remedy where they are not what they should be, written as a whole or not at all.

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

/// Writes a model file as a whole or not at all; returns its size.
pub fn save_model(model: &Model, file: &str) -> Result<u64> {
    let bytes = model.to_bytes()?;
    write_atomically(Path::new(file), |out| out.write_all(&bytes))?;
    Ok(bytes.len() as u64)
}
