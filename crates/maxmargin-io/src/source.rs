//! Opens files: mapped or streamed, decompressed according to their content, with clear errors.

use crate::stamps::Stamps;
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A compression, detected by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Bzip2,
    Zstd,
}

impl Compression {
    pub(crate) fn of_content(head: &[u8]) -> Option<Compression> {
        if head.starts_with(&[0x1f, 0x8b]) {
            Some(Compression::Gzip)
        } else if head.starts_with(b"BZh") && head.get(3).is_some_and(|level| (b'1'..=b'9').contains(level)) {
            Some(Compression::Bzip2)
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Compression::Zstd)
        } else {
            None
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Zstd => "zstd",
        }
    }

    /// Wraps a stream of compressed bytes. Several members one after the other are read as one.
    pub(crate) fn decoder(self, input: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
        let input = io::BufReader::with_capacity(1 << 20, input);
        Ok(match self {
            Compression::Gzip => Box::new(Decoder(flate2::bufread::MultiGzDecoder::new(input))),
            Compression::Bzip2 => Box::new(Decoder(bzip2::bufread::MultiBzDecoder::new(input))),
            Compression::Zstd => {
                Box::new(Decoder(zstd::stream::read::Decoder::with_buffer(input).map_err(|error| read_error(&error))?))
            }
        })
    }
}

/// Opens a regular file (or a pipe) for reading.
pub(crate) fn open(file: &str, path: &Path) -> Result<File> {
    let opened = File::open(path).and_then(|opened| Ok((opened.metadata()?, opened)));
    match opened {
        Ok((metadata, _)) if metadata.is_dir() => {
            Err(Error::new(Code::FileUnreadable, "this is a directory, and a file is needed")
                .in_file(file)
                .help("name a file inside it"))
        }
        Ok((_, opened)) => Ok(opened),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::new(Code::FileNotFound, "there is no such file").in_file(file).help(nearest_file(path)))
        }
        Err(error) => Err(Error::new(Code::FileUnreadable, format!("the file cannot be opened: {error}"))
            .in_file(file)
            .help("check its permissions")),
    }
}

/// A text that people write, such as settings, is smaller than this.
const LARGEST_TEXT: u64 = 16 << 20;

/// All bytes of a small file.
pub fn read_whole(file: &str) -> Result<Vec<u8>> {
    read_unchanged(file, |opened| {
        let mut bytes = Vec::new();
        opened.take(LARGEST_TEXT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
    .and_then(|bytes| match bytes.len() as u64 > LARGEST_TEXT {
        false => Ok(bytes),
        true => Err(Error::new(Code::FileUnreadable, format!("the file is larger than {} MiB", LARGEST_TEXT >> 20))
            .in_file(file)
            .help("name a text file that a person wrote")),
    })
}

/// What `read` reads from a file. Returns an error if the file changes while it is read.
pub(crate) fn read_unchanged<T>(file: &str, read: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
    let path = Path::new(file);
    let mut opened = open(file, path)?;
    let stamps = Stamps::of_file(file, path, &opened);
    let outcome = read(&mut opened).map_err(|error| {
        Error::new(Code::FileUnreadable, format!("reading failed: {error}"))
            .in_file(file)
            .help("check the device it is on, then try again")
    });
    stamps.confirm(outcome)
}

/// A file in the same folder with a similar name, as a suggestion.
fn nearest_file(path: &Path) -> String {
    let fallback = "check the path".to_string();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return fallback };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("the folder {} does not exist", folder.display());
    };
    let similar = entries
        .flatten()
        .take(10_000)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|other| (maxmargin::suggest::edit_distance(name, &other), other))
        .filter(|(distance, other)| *distance <= 2 || (other.starts_with(name) && other.len() <= name.len() + 4))
        .min();
    similar.map_or(fallback, |(_, other)| format!("did you mean {}?", path.with_file_name(other).display()))
}

/// Reads from a pipe that may be silent for a long time, and still stops soon after the flag is raised: a thread waits
/// for the pipe, and the reader waits for the thread.
pub(crate) struct Pipe {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Cursor<Vec<u8>>,
    cancel: Cancel,
}

impl Pipe {
    const BLOCK: usize = 1 << 20;
    const POLL: Duration = Duration::from_millis(50);

    pub(crate) fn new(mut input: impl Read + Send + 'static, cancel: Cancel) -> Result<Pipe> {
        let (sender, blocks) = sync_channel(2);
        let started = std::thread::Builder::new().spawn(move || {
            loop {
                let mut block = vec![0; Pipe::BLOCK];
                let read = input.read(&mut block).map(|read| block.truncate(read));
                let last = read.is_err() || block.is_empty();
                // The reader may already have stopped.
                if sender.send(read.map(|()| block)).is_err() || last {
                    break;
                }
            }
        });
        started.map_err(|error| no_thread(&error))?;
        Ok(Pipe { blocks, block: Cursor::new(Vec::new()), cancel })
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.block.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.blocks.recv_timeout(Pipe::POLL) {
                Ok(block) => self.block = Cursor::new(block?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => self.cancel.check().map_err(io::Error::other)?,
            }
        }
    }
}

/// The error if a thread could not be started. A thread takes addresses for its stack.
pub fn no_thread(error: &io::Error) -> Error {
    Error::new(Code::OutOfMemory, format!("a thread could not be started: {error}"))
        .help("use fewer ⟦threads⟧, or raise the limits of memory and of processes (`ulimit -a`)")
}

/// A decoder whose errors can be distinguished from those of the underlying device.
struct Decoder<R>(R);

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match (error.raw_os_error(), ours(&error)) {
            (None, None) => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
            _ => error,
        })
    }
}

/// The meaning of a failed read. Only decoders report invalid data; plain files never do.
pub(crate) fn read_error(error: &io::Error) -> Error {
    if let Some(ours) = ours(error) {
        return Error::new(ours.code(), ours.raw_message());
    }
    if error.kind() == io::ErrorKind::InvalidData {
        return Error::new(Code::DamagedArchive, format!("the compressed data end early or are damaged ({error})"))
            .help("download or compress the file again; `gzip -t`, `bzip2 -t` or `zstd -t` test it");
    }
    Error::new(Code::FileUnreadable, format!("reading failed: {error}"))
        .help("check the device or the program the data come from, then try again")
}

/// An error of this crate that an inner reader passed on, such as an interrupt.
fn ours(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}
