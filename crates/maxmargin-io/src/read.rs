//! [`read`]: reads any file; its format is detected by content and name.

use crate::delimiter::delimiter_of;
use crate::growing::Growing;
use crate::hashing::Hashing;
use crate::mapped::MappedFile;
use crate::options::{Format, Loaded, Pairing, ReadOptions};
use crate::sides::add_side_files;
use crate::source::{Compression, Pipe, open, read_error};
use crate::stamps::Stamps;
use crate::temporary::Spool;
use crate::{cache, column_text, csv, svmlight, trees};
use maxmargin::error::{Code, Error, Mark, Place, Result};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

/// How much of a file is used to detect its format.
const HEAD: usize = 64 << 10;

/// Reads a data file; `-` is standard input. Format and compression are detected unless the options set them.
pub fn read(file: &str, options: &ReadOptions) -> Result<Loaded> {
    // After a cancel, the reader may return any error. The cancel is reported instead.
    read_any(file, options).map_err(|error| options.cancel.check().err().unwrap_or(error))
}

/// The size of a file that is held in memory completely when it is read; `None` for a cache, which is mapped, and for
/// anything that is not a file.
pub fn stored_size(file: &str, options: &ReadOptions) -> Result<Option<u64>> {
    let path = Path::new(file);
    if !path.is_file() {
        return Ok(None);
    }
    let opened = open(file, path)?;
    let bytes = opened.metadata().ok().map(|metadata| metadata.len());
    let (head, _) = peek(opened, file, false)?;
    let mapped = Compression::of_content(&head).is_none() && format(file, &head, options)? == Format::Mmd;
    Ok(bytes.filter(|_| !mapped))
}

fn read_any(file: &str, options: &ReadOptions) -> Result<Loaded> {
    read_input(Input::open(file, options)?, options)
}

/// Reads an opened input completely.
pub(crate) fn read_input(input: Input, options: &ReadOptions) -> Result<Loaded> {
    let (stamps, lasting) = (input.stamps.clone(), input.lasting_stamps(options));
    let mut loaded = stamps.confirm(read_content(input, options))?;
    loaded.facts.stamps = lasting;
    Ok(loaded)
}

fn read_content(input: Input, options: &ReadOptions) -> Result<Loaded> {
    let Input { file, format, delimiter, compression, content, path, bytes, .. } = input;
    let mut loaded = match (format, content) {
        (Format::Svmlight, Content::Stream(stream)) => svmlight::read_stream(&file, stream, options)?,
        (Format::Csv | Format::Tsv, Content::Stream(stream)) => csv::read(&file, stream, delimiter, options)?,
        (Format::Columns, Content::Stream(mut stream)) => {
            let mut text = Vec::new();
            stream.read_to_end(&mut text).map_err(|error| read_error(&error).in_file(&file))?;
            column_text::read(&file, &text, options)?
        }
        (Format::Trees, Content::Stream(mut stream)) => {
            let mut text = Vec::new();
            stream.read_to_end(&mut text).map_err(|error| read_error(&error).in_file(&file))?;
            trees::read(&file, &text, options)?
        }
        (binary, Content::Stream(_)) => return Err(unread(&file, binary)),
        (Format::Svmlight | Format::Csv | Format::Tsv | Format::Columns | Format::Trees, Content::File(place)) => {
            let mapped = MappedFile::open(&file, place.path())?;
            match format {
                Format::Svmlight => svmlight::read_text(&file, mapped.bytes(), options)?,
                Format::Columns => column_text::read(&file, mapped.bytes(), options)?,
                Format::Trees => trees::read(&file, mapped.bytes(), options)?,
                _ => csv::read(&file, mapped.bytes(), delimiter, options)?,
            }
        }
        (binary, Content::File(place)) => read_binary(&file, place.path(), binary, options)?,
    };
    loaded.facts.compression = compression.map(Compression::name);
    loaded.facts.bytes = bytes.or(loaded.facts.bytes);
    match path {
        // Pairs hold their own weights and groups, and their items are already read.
        Some(path) if loaded.data.pairs().is_none() => add_side_files(&path, loaded),
        _ => Ok(loaded),
    }
}

/// An opened input with its detected format.
pub(crate) struct Input {
    /// The user's name for it.
    pub(crate) file: String,
    pub(crate) format: Format,
    /// What stands between the columns, if it is a table of text.
    pub(crate) delimiter: u8,
    pub(crate) compression: Option<Compression>,
    pub(crate) content: Content,
    /// The path, if it is a file that may have side files.
    pub(crate) path: Option<PathBuf>,
    /// Size as stored, if it is a file.
    pub(crate) bytes: Option<u64>,
    /// Detects changes of the file, of its side files, and of the items that pairs name.
    pub(crate) stamps: Stamps,
}

/// Where the content comes from.
pub(crate) enum Content {
    /// Text that can be read once, already decompressed.
    Stream(Box<dyn Read + Send>),
    /// A file that can be read again and again.
    File(Spot),
}

/// A file of the user, or a temporary one that is deleted with this value.
pub(crate) enum Spot {
    Own(PathBuf),
    Spooled(Spool),
}

impl Spot {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Spot::Own(path) => path,
            Spot::Spooled(spool) => spool.path(),
        }
    }
}

impl Input {
    /// Opens a file or standard input and detects compression and format. Formats with an index at their end are copied
    /// to a temporary file if they are compressed or come from a pipe.
    pub(crate) fn open(file: &str, options: &ReadOptions) -> Result<Input> {
        let mut input = Input::opened(file, options)?;
        if let Pairing::Of(items) = &options.pairing {
            input.stamps.extend(items.stamps());
        }
        Ok(input)
    }

    /// The stamps of the files that must not change for as long as the data are used. Only a cache is still read then; a
    /// text may change once it is read.
    pub(crate) fn lasting_stamps(&self, options: &ReadOptions) -> Stamps {
        match &options.pairing {
            _ if self.format == Format::Mmd => self.stamps.clone(),
            Pairing::Of(items) => items.stamps().clone(),
            _ => Stamps::default(),
        }
    }

    fn opened(file: &str, options: &ReadOptions) -> Result<Input> {
        if file == "-" {
            let name = "standard input";
            let stamps = Stamps::of_standard_input(name);
            return Ok(Input { stamps, ..Input::of_pipe(name, io::stdin(), None, options)? });
        }
        let path = Path::new(file);
        let opened = open(file, path)?;
        let metadata = opened.metadata().ok().filter(std::fs::Metadata::is_file);
        let Some(metadata) = metadata else {
            return Input::of_pipe(file, opened, Some(path), options);
        };
        if options.follow {
            return Input::of_pipe(file, Growing::new(opened, options.cancel.clone()), Some(path), options);
        }
        let stamps = Stamps::of_data(file, path, &opened);
        let (head, stream) = peek(opened, file, false)?;
        let compression = Compression::of_content(&head);
        let mut input = match compression {
            Some(compression) => Input::of_decoded(file, compression.decoder(stream)?, Some(path), options)?,
            None => {
                let content = Content::File(Spot::Own(path.to_path_buf()));
                Input::new(file, format(file, &head, options)?, &head, content)
            }
        };
        input.compression = compression;
        input.bytes = Some(metadata.len());
        input.path = Some(path.to_path_buf());
        input.stamps = stamps;
        Ok(input)
    }

    fn new(file: &str, format: Format, head: &[u8], content: Content) -> Input {
        Input {
            file: file.to_string(),
            format,
            delimiter: delimiter_of(format, head),
            compression: None,
            content,
            path: None,
            bytes: None,
            stamps: Stamps::default(),
        }
    }

    /// An input that cannot be mapped.
    fn of_pipe(
        file: &str,
        input: impl Read + Send + 'static,
        path: Option<&Path>,
        options: &ReadOptions,
    ) -> Result<Input> {
        let (head, stream) = peek(Pipe::new(input, options.cancel.clone())?, file, options.live)?;
        match Compression::of_content(&head) {
            Some(compression) => {
                let input = Input::of_decoded(file, compression.decoder(stream)?, path, options)?;
                Ok(Input { compression: Some(compression), ..input })
            }
            None => Input::of_decoded(file, stream, path, options),
        }
    }

    fn of_decoded(
        file: &str,
        stream: impl Read + Send + 'static,
        path: Option<&Path>,
        options: &ReadOptions,
    ) -> Result<Input> {
        let (head, stream) = peek(stream, file, options.live)?;
        let name = path.map_or(file, |path| path.to_str().unwrap_or(file));
        let format = format(name, &head, options).map_err(|error| error.in_file(file))?;
        let input = Input::new(file, format, &head, Content::Stream(Box::new(stream)));
        let text = matches!(format, Format::Svmlight | Format::Csv | Format::Tsv | Format::Columns | Format::Trees);
        if text { Ok(input) } else { input.spooled() }
    }

    /// The same input, readable more than once: a stream is copied to a temporary file.
    pub(crate) fn spooled(mut self) -> Result<Input> {
        if let Content::Stream(stream) = &mut self.content {
            let spooled = Spool::new()?;
            io::copy(stream, &mut spooled.file()).map_err(|error| read_error(&error).in_file(&self.file))?;
            self.content = Content::File(Spot::Spooled(spooled));
        }
        Ok(self)
    }
}

fn read_binary(file: &str, path: &Path, format: Format, options: &ReadOptions) -> Result<Loaded> {
    match format {
        #[cfg(feature = "tables")]
        Format::Parquet => crate::parquet::read(file, path, options),
        #[cfg(feature = "tables")]
        Format::Arrow => crate::arrow::read(file, path, options),
        Format::Mmd => cache::open(file, path).and_then(|loaded| Hashing::check_stored(loaded, options)),
        other => Err(unread(file, other)),
    }
}

pub(crate) fn unread(file: &str, format: Format) -> Error {
    Error::new(Code::UnknownFormat, format!("this build does not read {format}")).in_file(file)
}

/// The first bytes of a stream, and the complete stream. For a live stream these are no more than what arrives with the
/// first line.
fn peek(
    mut stream: impl Read + Send + 'static,
    file: &str,
    live: bool,
) -> Result<(Vec<u8>, impl Read + Send + 'static)> {
    let mut head = vec![0; HEAD];
    let mut length = 0;
    while length < HEAD && !(live && head[..length].contains(&b'\n')) {
        match stream.read(&mut head[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(&error).in_file(file)),
        }
    }
    head.truncate(length);
    Ok((head.clone(), Cursor::new(head).chain(stream)))
}

/// The format of a file: set by the user, or detected from its first bytes, from its name, or from its first line.
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
        None if options.sentences => match Format::of_name(name) {
            Some(table @ (Format::Columns | Format::Csv | Format::Tsv)) => table,
            _ => Format::Trees,
        },
        None if options.templates.is_some() => match Format::of_name(name) {
            Some(Format::Trees) => Format::Trees,
            _ => Format::Columns,
        },
        None => match Format::of_name(name) {
            Some(format @ (Format::Columns | Format::Trees | Format::Svmlight | Format::Csv | Format::Tsv)) => format,
            Some(binary) if !head.is_empty() => {
                return Err(Error::new(
                    Code::UnknownFormat,
                    format!("the name says {binary}, but the content is something else"),
                )
                .in_file(name)
                .help("name the format with ⟦input-format⟧"));
            }
            _ => of_first_line(name, head)?,
        },
    };
    let tabular = !matches!(found, Format::Svmlight | Format::Mmd | Format::Columns | Format::Trees);
    if !tabular && needs_table(found, &options.pairing) {
        return Err(Error::new(Code::UnknownFormat, format!("pairs are a table, and this file is {found}"))
            .marked(Mark::NoTableOfPairs)
            .in_file(name)
            .help("give a table with columns `left`, `right` and `outcome`, or `better` and `worse`; the items they name go with ⟦items⟧"));
    }
    if options.hash.is_some() && matches!(found, Format::Columns | Format::Trees) {
        return Err(Error::new(
            Code::BadSetting,
            format!("names are hashed in svmlight text and tables, and this file is {found}"),
        )
        .in_file(name)
        .help("leave ⟦hash⟧ out"));
    }
    if !tabular && !options.columns.is_empty() {
        return Err(Error::new(
            Code::BadSetting,
            format!("columns can be named only for a table, and this file is {found}"),
        )
        .in_file(name)
        .help("leave ⟦target⟧, ⟦group⟧, ⟦weight⟧, ⟦id⟧ and ⟦ignore⟧ out"));
    }
    Ok(found)
}

/// Whether pairs of this kind need a format with columns. A cache may hold pairs itself.
fn needs_table(format: Format, pairing: &Pairing) -> bool {
    match pairing {
        Pairing::Of(_) => true,
        Pairing::Comparisons => matches!(format, Format::Svmlight | Format::Columns | Format::Trees),
        Pairing::None | Pairing::Sides | Pairing::ItemRows => false,
    }
}

/// Control characters that occur in text files: tab, line and page ends, and the end-of-file mark of old systems.
const TEXT_CONTROLS: &[u8] = b"\t\n\x0b\x0c\r\x1a";

const KNOWN: &str = "known formats are svmlight, CSV, TSV, Parquet, Arrow IPC, .mmd, text in columns and bracketed trees, each also compressed by gzip, \
     bzip2 or zstd";

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

/// svmlight if the line has colons or nothing after the target; a table if it has separators.
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
    if line.iter().any(|byte| matches!(byte, b',' | b';' | b'|')) {
        return Ok(Format::Csv);
    }
    if numeric {
        return Ok(Format::Svmlight);
    }
    Err(Error::new(Code::UnknownFormat, "the format cannot be recognised by the name or the first line")
        .at(Place { file: name.to_string(), line: Some(1), ..Place::default() })
        .help(format!("name it with ⟦input-format⟧; {KNOWN}")))
}
