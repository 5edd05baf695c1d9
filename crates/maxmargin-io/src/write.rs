//! [`write`]: writes data in any format, completely or not at all.

use crate::atomic::{WriteError, write_atomically};
use crate::options::{Format, Loaded};
use crate::svmlight::{SvmlightWriteOptions, write_dataset};
use crate::{cache, csv};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use std::io::{self, Write};
use std::path::Path;

/// The compression given by a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// The format of an output file: the requested one, otherwise that of its name.
pub fn output_format(file: &str, asked: Option<Format>) -> Result<Format> {
    asked.or_else(|| Format::of_name(file)).ok_or_else(|| {
        Error::new(Code::UnknownFormat, "the name of the output does not determine its format")
            .in_file(file)
            .help("end it in .svm, .txt, .csv, .tsv, .parquet, .arrow or .mmd (the text ones also .gz or .zst), or give ⟦to=FORMAT⟧")
    })
}

/// Writes data to a file. It is compressed if its name ends in `.gz` or `.zst`.
pub fn write(loaded: &Loaded, file: &str, format: Format, cancel: &Cancel) -> Result<()> {
    let table = !matches!(format, Format::Svmlight | Format::Mmd);
    if table && loaded.data.cols() > MOST_TABLE_COLUMNS {
        return Err(Error::new(
            Code::BadSetting,
            format!("a {format} table of {} columns is too wide", loaded.data.cols()),
        )
        .in_file(file)
        .help("write sparse data to svmlight (.svm) or .mmd"));
    }
    if matches!(format, Format::Columns | Format::Trees) {
        let what = if format == Format::Trees { "bracketed trees are" } else { "text in columns is" };
        return Err(Error::new(Code::UnknownFormat, format!("{what} read and not written"))
            .in_file(file)
            .help("write the features to svmlight (.svm) or .mmd"));
    }
    if format == Format::Svmlight && loaded.data.pairs().is_some() {
        return Err(Error::new(Code::BadSetting, "svmlight text cannot hold pairs")
            .in_file(file)
            .help("write them to .csv, .parquet, .arrow or .mmd"));
    }
    let path = output_path(file);
    let binary = matches!(format, Format::Parquet | Format::Arrow | Format::Mmd);
    let packing = packing(file)?;
    if binary && packing != Packing::Plain {
        return Err(Error::new(Code::UnknownFormat, format!("{format} files are not compressed as a whole"))
            .in_file(file)
            .help("leave the .gz or .zst off"));
    }
    let written = write_atomically(path, |out| -> std::result::Result<(), WriteError> {
        let mut out = Interruptible { out, cancel };
        match format {
            Format::Mmd => cache::write(loaded, &mut out)?,
            #[cfg(feature = "tables")]
            Format::Parquet => crate::parquet::write(&loaded.data, &mut out)?,
            #[cfg(feature = "tables")]
            Format::Arrow => crate::arrow::write(&loaded.data, &mut out)?,
            _ => packed(&mut out, packing, |out| write_text(loaded, format, out, cancel))?,
        }
        // After a cancel, or if mapped data have changed, the file is not put in place.
        cancel.check()?;
        loaded.facts.stamps.check()?;
        Ok(())
    });
    // A write that fails after an interrupt is reported as the interrupt, whatever error the writer returns.
    if written.is_err() {
        cancel.check()?;
    }
    written.map_err(|error| error.in_file(file))
}

/// A table with more columns than this is a sparse matrix in the wrong format.
const MOST_TABLE_COLUMNS: usize = 1 << 20;

/// The path of the output; `-` is standard output.
fn output_path(file: &str) -> &Path {
    Path::new(if file == "-" { "/dev/stdout" } else { file })
}

/// Returns an error for every write after the flag is raised.
struct Interruptible<'a, W> {
    out: W,
    cancel: &'a Cancel,
}

impl<W: Write> Write for Interruptible<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cancel.check().map_err(io::Error::other)?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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

/// Writes a complete text file, compressed if its name says so.
pub fn write_text_file(file: &str, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let packing = packing(file)?;
    write_atomically(output_path(file), |out| packed(out, packing, content)).map_err(|error| error.in_file(file))
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
