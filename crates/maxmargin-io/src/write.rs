//! [`write`]: data to any format, as a whole or not at all.

use crate::atomic::{WriteError, write_atomically};
use crate::options::{Format, Loaded};
use crate::svmlight::{SvmlightWriteOptions, write_dataset};
use crate::{cache, csv};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use std::io::Write;
use std::path::Path;

/// The compression a file name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// The format to write a file in: what was asked for, else what its name says.
pub fn output_format(file: &str, asked: Option<Format>) -> Result<Format> {
    asked.or_else(|| Format::of_name(file)).ok_or_else(|| {
        Error::new(Code::UnknownFormat, "the name of the output does not tell its format")
            .in_file(file)
            .help("end it in .svm, .txt, .csv, .tsv, .parquet, .arrow or .mmd (the text ones also .gz or .zst), or give --to FORMAT")
    })
}

/// Writes data to a file, compressed where its name ends in `.gz` or `.zst`.
pub fn write(loaded: &Loaded, file: &str, format: Format, cancel: &Cancel) -> Result<()> {
    let path = Path::new(file);
    let binary = matches!(format, Format::Parquet | Format::Arrow | Format::Mmd);
    let packing = packing(file)?;
    if binary && packing != Packing::Plain {
        return Err(Error::new(Code::UnknownFormat, format!("{format} files are not compressed as a whole"))
            .in_file(file)
            .help("leave the .gz or .zst off"));
    }
    write_atomically(path, |out| -> std::result::Result<(), WriteError> {
        match format {
            Format::Mmd => cache::write(loaded, out)?,
            #[cfg(feature = "tables")]
            Format::Parquet => crate::parquet::write(&loaded.data, out)?,
            #[cfg(feature = "tables")]
            Format::Arrow => crate::arrow::write(&loaded.data, out)?,
            _ => packed(out, packing, |out| write_text(loaded, format, out, cancel))?,
        }
        Ok(())
    })
    .map_err(|error| error.in_file(file))
}

fn write_text(loaded: &Loaded, format: Format, out: &mut dyn Write, cancel: &Cancel) -> Result<()> {
    match format {
        Format::Svmlight => {
            let index_base = loaded.facts.index_base.unwrap_or(1);
            write_dataset(&loaded.data, out, &SvmlightWriteOptions { index_base, cancel: cancel.clone() })
        }
        Format::Csv => csv::write(&loaded.data, b',', out),
        Format::Tsv => csv::write(&loaded.data, b'\t', out),
        other => Err(Error::new(Code::UnknownFormat, format!("this build does not write {other}"))),
    }
}

/// Writes text to a file as a whole, compressed where its name says so.
pub fn write_text_file(file: &str, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let packing = packing(file)?;
    write_atomically(Path::new(file), |out| packed(out, packing, content)).map_err(|error| error.in_file(file))
}

fn packing(file: &str) -> Result<Packing> {
    let name = file.to_ascii_lowercase();
    if name.ends_with(".gz") {
        Ok(Packing::Gzip)
    } else if name.ends_with(".zst") {
        Ok(Packing::Zstd)
    } else if name.ends_with(".bz2") {
        Err(Error::new(Code::UnknownFormat, "bzip2 is read but not written")
            .in_file(file)
            .help("end the name in .gz or .zst"))
    } else {
        Ok(Packing::Plain)
    }
}

fn packed(
    out: &mut impl Write,
    packing: Packing,
    content: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> std::result::Result<(), WriteError> {
    match packing {
        Packing::Plain => content(out)?,
        Packing::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            content(&mut encoder)?;
            encoder.finish()?;
        }
        Packing::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(out, 0)?;
            content(&mut encoder)?;
            encoder.finish()?;
        }
    }
    Ok(())
}
