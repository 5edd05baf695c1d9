//! [`BadRows`]: rows of a stream that cannot be read, counted and written to a file with the reason.

use maxmargin::error::{Code, Error, Result};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// See the top of the file. Each bad row becomes two lines: a comment with its place, code and reason, and the row as it
/// stands in the input. Copies share the file and the count.
#[derive(Clone, Debug)]
pub struct BadRows {
    file: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    out: File,
    count: u64,
}

impl BadRows {
    /// Begins a new file; an earlier one with this name is replaced.
    pub fn create(file: &str) -> Result<BadRows> {
        let out = File::create(file).map_err(|error| {
            Error::new(Code::OutputUnwritable, format!("the file cannot be written: {error}"))
                .in_file(file)
                .help("check the path and its permissions")
        })?;
        Ok(BadRows { file: file.to_string(), shared: Arc::new(Mutex::new(Shared { out, count: 0 })) })
    }

    /// Number of bad rows so far.
    pub fn count(&self) -> u64 {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Writes a row and why it cannot be read.
    pub(crate) fn put(&self, reason: &Error, row: &[u8]) -> Result<()> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.count += 1;
        let place = reason.place().map(|place| {
            let number = |number: Option<u64>| number.map_or(String::new(), |number| format!(":{number}"));
            format!("{}{}{}: ", place.file, number(place.line), number(place.column))
        });
        let mut text = format!("# {}{}: {}\n", place.unwrap_or_default(), reason.code(), reason.message()).into_bytes();
        text.extend_from_slice(row.strip_suffix(b"\n").unwrap_or(row));
        text.push(b'\n');
        shared.out.write_all(&text).map_err(|error| {
            Error::new(Code::OutputUnwritable, format!("a bad row cannot be written: {error}"))
                .in_file(&self.file)
                .help("check the free space of the disk")
        })
    }
}
