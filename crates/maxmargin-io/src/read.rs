//! [`read`]: any file, recognised by content and name.

use crate::mapped::MappedFile;
use crate::options::{Format, Loaded, Pairing, ReadOptions};
use crate::source::{Compression, Pipe, open, read_error};
use crate::{cache, csv, svmlight};
use maxmargin::data::{Groups, Names};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// How much of a file is looked at to tell its format.
const HEAD: usize = 64 << 10;

/// Reads a data file; `-` is standard input. Format and compression are recognised unless the options say so.
pub fn read(file: &str, options: &ReadOptions) -> Result<Loaded> {
    // Whatever a reader made of being stopped: the user knows why it stopped.
    read_any(file, options).map_err(|error| options.cancel.check().err().unwrap_or(error))
}

fn read_any(file: &str, options: &ReadOptions) -> Result<Loaded> {
    if file == "-" {
        return read_pipe("standard input", io::stdin(), None, options);
    }
    let path = Path::new(file);
    let opened = open(file, path)?;
    let regular = opened.metadata().is_ok_and(|metadata| metadata.is_file());
    if !regular {
        return read_pipe(file, opened, Some(path), options);
    }
    drop(opened);
    let mapped = MappedFile::open(file, path)?;
    let bytes = mapped.bytes();
    let compression = Compression::of_content(bytes);
    let mut loaded = match compression {
        Some(compression) => {
            let stream = compression.decoder(open(file, path)?)?;
            read_decoded(file, stream, Some(path), options)?
        }
        None => match format(file, &bytes[..bytes.len().min(HEAD)], options)? {
            Format::Svmlight => svmlight::read_text(file, bytes, options)?,
            Format::Csv => csv::read(file, bytes, b',', options)?,
            Format::Tsv => csv::read(file, bytes, b'\t', options)?,
            binary => read_binary(file, path, binary, options)?,
        },
    };
    loaded.facts.compression = compression.map(Compression::name);
    loaded.facts.bytes = Some(bytes.len() as u64);
    // Pairs carry their weights and groups themselves, and their items were read before.
    if loaded.data.pairs().is_some() { Ok(loaded) } else { add_side_files(path, loaded) }
}

/// Reads from something that cannot be mapped.
fn read_pipe(
    file: &str,
    input: impl Read + Send + 'static,
    path: Option<&Path>,
    options: &ReadOptions,
) -> Result<Loaded> {
    let (head, stream) = peek(Pipe::new(input, options.cancel.clone()), file)?;
    match Compression::of_content(&head) {
        Some(compression) => {
            let mut loaded = read_decoded(file, compression.decoder(stream)?, path, options)?;
            loaded.facts.compression = Some(compression.name());
            Ok(loaded)
        }
        None => read_decoded(file, stream, path, options),
    }
}

fn read_decoded(
    file: &str,
    stream: impl Read + Send + 'static,
    path: Option<&Path>,
    options: &ReadOptions,
) -> Result<Loaded> {
    let (head, mut stream) = peek(stream, file)?;
    let name = path.map_or(file, |path| path.to_str().unwrap_or(file));
    match format(name, &head, options).map_err(|error| error.in_file(file))? {
        Format::Svmlight => svmlight::read_stream(file, stream, options),
        Format::Csv => csv::read(file, stream, b',', options),
        Format::Tsv => csv::read(file, stream, b'\t', options),
        binary => {
            // Formats with an index at their end need a file to seek in.
            let mut spooled = tempfile::NamedTempFile::new().map_err(|error| {
                Error::new(Code::WriteFailed, format!("no temporary file could be made: {error}"))
                    .help("free some space, or name a folder for temporary files in TMPDIR")
            })?;
            io::copy(&mut stream, &mut spooled).map_err(|error| read_error(&error).in_file(file))?;
            read_binary(file, spooled.path(), binary, options)
        }
    }
}

fn read_binary(file: &str, path: &Path, format: Format, options: &ReadOptions) -> Result<Loaded> {
    match format {
        #[cfg(feature = "tables")]
        Format::Parquet => crate::parquet::read(file, path, options),
        #[cfg(feature = "tables")]
        Format::Arrow => crate::arrow::read(file, path, options),
        Format::Mmd => cache::open(file, path),
        other => Err(Error::new(Code::UnknownFormat, format!("this build does not read {other}")).in_file(file)),
    }
}

/// The first bytes of a stream, and the whole stream again.
fn peek(mut stream: impl Read + Send + 'static, file: &str) -> Result<(Vec<u8>, impl Read + Send + 'static)> {
    let mut head = Vec::with_capacity(HEAD);
    stream.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(|error| read_error(&error).in_file(file))?;
    Ok((head.clone(), Cursor::new(head).chain(stream)))
}

/// The format of a file: what was asked for, what its first bytes say, what its name says, what its first line looks like.
fn format(name: &str, head: &[u8], options: &ReadOptions) -> Result<Format> {
    let found = match options.format.or_else(|| of_magic(head)) {
        Some(format) => format,
        None if is_model(head) => {
            return Err(Error::new(Code::UnknownFormat, "this is a model file, and data are needed")
                .in_file(name)
                .help("`maxmargin inspect FILE` shows what it is"));
        }
        None if head.iter().take(4096).any(|byte| byte.is_ascii_control() && !TEXT_CONTROLS.contains(byte)) => {
            return Err(Error::new(Code::NotText, "this is a binary file of no known format")
                .in_file(name)
                .help(KNOWN));
        }
        None => match Format::of_name(name) {
            Some(format @ (Format::Svmlight | Format::Csv | Format::Tsv)) => format,
            Some(binary) if !head.is_empty() => {
                return Err(Error::new(
                    Code::UnknownFormat,
                    format!("the name says {binary}, but the content is something else"),
                )
                .in_file(name)
                .help("name the format with --input-format"));
            }
            _ => of_first_line(name, head)?,
        },
    };
    let tabular = !matches!(found, Format::Svmlight | Format::Mmd);
    if !tabular && matches!(options.pairing, Pairing::Of(_)) {
        return Err(Error::new(Code::UnknownFormat, format!("pairs are a table, and this file is {found}"))
            .in_file(name)
            .help("give a table with columns `better` and `worse`; the items they name go with --items"));
    }
    if !tabular && !options.columns.is_empty() {
        return Err(Error::new(Code::BadSetting, format!("columns are named for a table, and this file is {found}"))
            .in_file(name)
            .help("leave --target, --group, --weight, --id and --ignore out"));
    }
    Ok(found)
}

/// Control characters that text files do hold: tab, line and page ends, and the end-of-file mark of old systems.
const TEXT_CONTROLS: &[u8] = b"\t\n\x0b\x0c\r\x1a";

const KNOWN: &str =
    "known are svmlight, CSV, TSV, Parquet, Arrow IPC and .mmd, each also compressed by gzip, bzip2 or zstd";

fn of_magic(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if head.starts_with(b"ARROW1") || head.starts_with(&[0xff; 4]) {
        Some(Format::Arrow)
    } else if head.starts_with(&cache::MAGIC) {
        Some(Format::Mmd)
    } else {
        None
    }
}

fn is_model(head: &[u8]) -> bool {
    head.get(8..).is_some_and(|rest| rest.starts_with(b"{\"__metadata__\":{\"maxmargin\""))
}

/// svmlight where the line after the target has colons or nothing; a table where it has separators.
fn of_first_line(name: &str, head: &[u8]) -> Result<Format> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let line = head
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let Some(line) = line else { return Ok(Format::Svmlight) };
    let mut tokens = line.split(|byte| byte.is_ascii_whitespace()).filter(|token| !token.is_empty());
    let target = tokens.next().unwrap_or_default();
    let second = tokens.next();
    let numeric =
        std::str::from_utf8(target).is_ok_and(|target| target.split(',').all(|part| part.parse::<f64>().is_ok()));
    let has_colon = |token: &[u8]| token.contains(&b':');
    if second.is_some_and(has_colon) || has_colon(target) || (second.is_none() && numeric && !target.contains(&b',')) {
        return Ok(Format::Svmlight);
    }
    if line.contains(&b'\t') {
        return Ok(Format::Tsv);
    }
    if line.contains(&b',') {
        return Ok(Format::Csv);
    }
    if numeric {
        return Ok(Format::Svmlight);
    }
    Err(Error::new(Code::UnknownFormat, "neither the name nor the first line tells the format")
        .at(Place { file: name.to_string(), line: Some(1), ..Place::default() })
        .help(format!("name it with --input-format; {KNOWN}")))
}

/// Group sizes from `FILE.query` and weights from `FILE.weight`, where such files stand beside the data and the rows do
/// not say it themselves.
fn add_side_files(path: &Path, mut loaded: Loaded) -> Result<Loaded> {
    if let Some((side, numbers)) = side_file(path, "query")? {
        if loaded.data.groups().is_some() {
            loaded.facts.notes.push(format!("{side} ignored: rows carry their query"));
        } else {
            let mut starts = vec![0u64];
            let mut total = 0u64;
            for SideLine { line, text, number } in &numbers {
                if *number < 1.0 || number.fract() != 0.0 || *number > 4_294_967_295.0 {
                    let message = format!("the group size `{text}` is not a positive whole number");
                    return Err(side_error(&side, *line, text, message, "how many rows the group has"));
                }
                total += *number as u64;
                starts.push(total);
            }
            if total != loaded.data.rows() as u64 {
                return Err(Error::new(
                    Code::SideFileMismatch,
                    format!("the group sizes add up to {total}, and the data have {} rows", loaded.data.rows()),
                )
                .in_file(&side)
                .help(
                    "one size a line, adding up to the number of rows; remove the file if it belongs to other data",
                ));
            }
            let names: Names = (1..=numbers.len()).map(|group| group.to_string()).collect();
            loaded.data = loaded.data.with_groups(Groups::new(starts, names)?)?;
            loaded.facts.notes.push(format!("groups from {side}"));
        }
    }
    if let Some((side, weights)) = side_file(path, "weight")? {
        if loaded.data.weights().is_some() {
            loaded.facts.notes.push(format!("{side} ignored: rows carry their weight"));
        } else {
            if let Some(SideLine { line, text, .. }) = weights.iter().find(|weight| weight.number < 0.0) {
                let message = format!("the weight `{text}` is negative");
                return Err(side_error(&side, *line, text, message, "the weight of a row, zero or more"));
            }
            if weights.len() != loaded.data.rows() {
                return Err(Error::new(
                    Code::SideFileMismatch,
                    format!("{} weights for {} rows", weights.len(), loaded.data.rows()),
                )
                .in_file(&side)
                .help("one weight a line, as many as rows; remove the file if it belongs to other data"));
            }
            let stored = (0..weights.len()).map(|row| weights[loaded.data.input_row(row)].number).collect::<Vec<_>>();
            loaded.data = loaded.data.with_weights(stored)?;
            loaded.facts.notes.push(format!("weights from {side}"));
        }
    }
    Ok(loaded)
}

/// A line of a side file.
struct SideLine {
    /// From 0.
    line: usize,
    text: String,
    number: f64,
}

/// The numbers of a side file, one a line, if there is one: beside `data.txt.gz` it is `data.txt.query` or
/// `data.txt.gz.query`.
fn side_file(path: &Path, kind: &str) -> Result<Option<(String, Vec<SideLine>)>> {
    let with = |path: &Path| PathBuf::from(format!("{}.{kind}", path.display()));
    let mut candidates = vec![with(path)];
    if path.extension().is_some_and(|extension| ["gz", "bz2", "zst"].iter().any(|known| extension == *known)) {
        candidates.push(with(&path.with_extension("")));
    }
    let Some(found) = candidates.into_iter().find(|candidate| candidate.is_file()) else { return Ok(None) };
    let name = found.display().to_string();
    let text = std::fs::read_to_string(&found).map_err(|error| {
        Error::new(Code::FileUnreadable, format!("the side file cannot be read: {error}"))
            .in_file(&name)
            .help("correct it, or remove it if it belongs to other data")
    })?;
    let mut numbers = Vec::new();
    for (line, token) in text.lines().enumerate() {
        let token = token.trim();
        if token.is_empty() {
            continue;
        }
        match token.parse::<f64>() {
            Ok(number) if number.is_finite() => numbers.push(SideLine { line, text: token.to_string(), number }),
            _ => {
                let message = format!("`{}` is not a number", shortened(token));
                return Err(side_error(&name, line, token, message, "one number a line"));
            }
        }
    }
    Ok(Some((name, numbers)))
}

fn side_error(file: &str, line: usize, token: &str, message: String, expected: &str) -> Error {
    let excerpt = Excerpt::of_line(token.as_bytes(), 0..token.len(), format!("expected {expected}"));
    Error::new(Code::SideFileMismatch, message)
        .at(Place { file: file.to_string(), line: Some(line as u64 + 1), column: Some(1), excerpt: Some(excerpt) })
        .help("a side file has one number a line; remove it if it belongs to other data")
}

fn shortened(token: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = token.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if token.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
