//! Files that are written completely or not at all.
//!
//! [`write_atomically`] writes to a file in the folder of the target that has no name yet, makes it durable and gives it
//! the name. A full disk, an interrupt, a crash or a signal that kills the process never leaves half a file.

use crate::temporary::{Temporary, remove_stale};
use maxmargin::error::{Code, Error, Mark, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;

/// The number of links that systems usually follow before they report a loop.
const MOST_LINKS: usize = 40;

/// Why content could not be written: the device failed, or the content could not be made.
#[derive(Debug)]
pub enum WriteError {
    /// The device failed.
    Io(io::Error),
    /// The content could not be made.
    Content(Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> WriteError {
        WriteError::Content(error)
    }
}

impl WriteError {
    /// The error to show, with the user's name of the file.
    pub fn in_file(self, file: impl Into<String>) -> Error {
        match self {
            WriteError::Content(error) => error,
            WriteError::Io(error) => write_failed(&file.into(), &error),
        }
    }
}

fn write_failed(file: &str, error: &io::Error) -> Error {
    let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    let (what, help) = match error.kind() {
        ErrorKind::StorageFull => ("no space left on device".to_string(), "free some space"),
        ErrorKind::BrokenPipe => ("the program reading it has ended".to_string(), "write to a file"),
        _ => (error.to_string(), if full { "free some space" } else { "write to another place" }),
    };
    let failed =
        Error::new(Code::WriteFailed, format!("`{file}` could not be written: {what}")).in_file(file).help(help);
    reader_ended(failed, error)
}

/// Marks the error if the program that reads the output has ended.
fn reader_ended(failed: Error, error: &io::Error) -> Error {
    if error.kind() == ErrorKind::BrokenPipe { failed.marked(Mark::ReaderEnded) } else { failed }
}

/// The error for a failed write, for the writers of formats, which do not know the file name.
pub fn refused_write(error: &io::Error) -> Error {
    let failed = Error::new(Code::WriteFailed, format!("the output could not be written: {error}"))
        .help("free some space, or write to another place");
    reader_ended(failed, error)
}

fn unwritable(file: &str, what: &str, help: &str) -> Error {
    Error::new(Code::OutputUnwritable, format!("`{file}` cannot be written: {what}")).in_file(file).help(help)
}

/// Where the content is written.
enum Target {
    /// A regular file, existing or not, with links followed.
    Regular { path: PathBuf, existing: Option<fs::Permissions> },
    /// A device, a pipe or an open descriptor. Nothing can be renamed there, so content is written directly.
    Stream(PathBuf),
}

fn resolve(file: &str, path: &Path) -> Result<Target> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return if path.file_name().is_some() {
                    Ok(Target::Regular { path, existing: None })
                } else {
                    Err(unwritable(file, "that is not a file name", "name a file"))
                };
            }
            Err(error) => return Err(unwritable(file, &error.to_string(), "name a file in another directory")),
        };
        if about.is_symlink() {
            // Links such as /proc/self/fd/1 (the target of /dev/stdout) stand for an open descriptor. It may be shared
            // or opened for appending even if it is a regular file, so the file must not be replaced.
            if folder_of(&path).canonicalize().is_ok_and(|folder| folder.starts_with("/proc")) {
                return Ok(Target::Stream(path));
            }
            let link = fs::read_link(&path).map_err(|error| unwritable(file, &error.to_string(), "name a file"))?;
            path = folder_of(&path).join(link);
        } else if about.is_dir() {
            return Err(unwritable(file, "it is a directory", "name a file inside it"));
        } else if !about.is_file() {
            return Ok(Target::Stream(path));
        } else if about.permissions().readonly() {
            return Err(unwritable(file, "it is marked read-only", "remove it or name another file"));
        } else {
            return Ok(Target::Regular { path, existing: Some(about.permissions()) });
        }
    }
    Err(unwritable(file, "its links form a loop", "name a regular file"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary_beside(file: &str, path: &Path) -> Result<Temporary> {
    let folder = folder_of(path);
    Temporary::new(folder).map_err(|error| {
        let shown = folder.display();
        match error.kind() {
            ErrorKind::NotFound => {
                unwritable(file, &format!("the directory `{shown}` does not exist"), "create it first")
            }
            ErrorKind::NotADirectory => unwritable(file, &format!("`{shown}` is not a directory"), "name another one"),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                unwritable(file, &format!("the directory `{shown}` is not writable"), "write to another directory")
            }
            ErrorKind::InvalidFilename => unwritable(file, "the file name is not valid", "choose a shorter name"),
            _ => write_failed(file, &strip_path(error)),
        }
    })
}

/// Removes the name of the temporary file from the error, because it means nothing to the user.
fn strip_path(error: io::Error) -> io::Error {
    error.raw_os_error().map_or(error, io::Error::from_raw_os_error)
}

/// Checks before a long job whether its result can be written to `path`. Leaves nothing behind and does not change an
/// existing file.
pub fn ensure_writable(path: &Path) -> Result<()> {
    let file = path.display().to_string();
    match resolve(&file, path)? {
        Target::Regular { path, .. } => temporary_beside(&file, &path).map(drop),
        // Opening a pipe would block until there is a reader.
        Target::Stream(_) => Ok(()),
    }
}

/// Writes a complete file: `write` fills a temporary file in the same directory, which is then made durable and named
/// `path`. After an error or a panic, the temporary file is deleted and an existing file at `path` is unchanged.
///
/// A link is followed, and its target is replaced. A new file gets the usual permissions; an existing one keeps its
/// own. If `path` is a device, a pipe or an open descriptor (`/dev/null`, `/dev/stdout`), content is written directly
/// to it.
pub fn write_atomically<T, E: Into<WriteError>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::result::Result<T, E>,
) -> Result<T> {
    let file = path.display().to_string();
    let failed = |error: io::Error| write_failed(&file, &strip_path(error));
    match resolve(&file, path)? {
        Target::Stream(path) => {
            // Appending neither truncates a shared file nor overwrites what other processes wrote.
            let stream = OpenOptions::new().append(true).open(&path).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => {
                    unwritable(&file, "there is no permission to write to it", "write to another place")
                }
                _ => failed(error),
            })?;
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, stream);
            let made = write(&mut out).map_err(|error| error.into().in_file(&file))?;
            out.flush().map_err(failed)?;
            Ok(made)
        }
        Target::Regular { path, existing } => {
            remove_stale(folder_of(&path));
            let temporary = temporary_beside(&file, &path)?;
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, temporary.file().try_clone().map_err(failed)?);
            let made = write(&mut out).map_err(|error| error.into().in_file(&file))?;
            drop(out.into_inner().map_err(|error| failed(error.into_error()))?);
            if let Some(permissions) = existing {
                // Some file systems have no permissions. The file is written anyway.
                let _ = temporary.file().set_permissions(permissions);
            }
            temporary.file().sync_all().map_err(failed)?;
            temporary.put(&path).map_err(failed)?;
            sync_folder(folder_of(&path)).map_err(failed)?;
            Ok(made)
        }
    }
}

/// Makes the new name durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot sync a directory, and some directories may be written to but not be opened.
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) =>
        {
            return Err(error);
        }
        _ => {}
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &'static str) -> impl FnOnce(&mut BufWriter<File>) -> io::Result<()> {
        move |out| out.write_all(content.as_bytes())
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_created_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.txt");
        ensure_writable(&path).expect("writable");
        assert!(entries(folder.path()).is_empty());
        write_atomically(&path, text("one")).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "one");
        write_atomically(&path, text("two")).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "two");
        assert_eq!(entries(folder.path()), ["out.txt"]);
    }

    #[test]
    fn a_failure_or_a_panic_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.txt");
        write_atomically(&path, text("old")).expect("written");
        let error = write_atomically(&path, |out| -> Result<()> {
            out.write_all(&[0; 1 << 21]).expect("buffered");
            Err(Error::new(Code::BadValue, "no"))
        });
        assert_eq!(error.expect_err("the content failed").code(), Code::BadValue);
        let error = write_atomically(&path, |_| -> io::Result<()> { Err(ErrorKind::StorageFull.into()) });
        let error = error.expect_err("the device failed");
        assert_eq!(error.code(), Code::WriteFailed);
        assert!(error.message().contains("no space left on device"));
        let panicked = std::panic::catch_unwind(|| {
            write_atomically(&path, |out| -> io::Result<()> {
                out.write_all(b"half")?;
                panic!("on purpose");
            })
        });
        assert!(panicked.is_err());
        assert_eq!(fs::read_to_string(&path).expect("read"), "old");
        assert_eq!(entries(folder.path()), ["out.txt"]);
    }

    #[test]
    fn places_that_cannot_hold_a_file_are_named_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("no/such/out.txt");
        for path in [folder.path(), &missing, Path::new("/"), Path::new("")] {
            assert_eq!(ensure_writable(path).expect_err("unwritable").code(), Code::OutputUnwritable, "{path:?}");
            let error = write_atomically(path, |_| -> io::Result<()> { panic!("must not be called") });
            assert_eq!(error.expect_err("unwritable").code(), Code::OutputUnwritable, "{path:?}");
        }
        let file = folder.path().join("file");
        write_atomically(&file, text("x")).expect("written");
        assert_eq!(ensure_writable(&file.join("out")).expect_err("not a folder").code(), Code::OutputUnwritable);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_ordinary_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write_atomically(&ours, text("x")).expect("written");
        fs::write(&plain, "x").expect("written");
        assert_eq!(mode(&ours), mode(&plain));
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o600)).expect("set");
        write_atomically(&ours, text("y")).expect("written");
        assert_eq!(mode(&ours), 0o600);
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o400)).expect("set");
        assert_eq!(write_atomically(&ours, text("z")).expect_err("read-only").code(), Code::OutputUnwritable);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_even_to_files_that_are_not_there_yet() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link, second) =
            (folder.path().join("target"), folder.path().join("link"), folder.path().join("second"));
        symlink("target", &link).expect("linked");
        symlink(&link, &second).expect("linked");
        for content in ["new", "newer"] {
            write_atomically(&second, text(content)).expect("written");
            assert_eq!(fs::read_to_string(&target).expect("read"), content);
        }
        assert!(fs::symlink_metadata(&second).expect("there").is_symlink());
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        symlink(&a, &b).expect("linked");
        symlink(&b, &a).expect("linked");
        assert_eq!(ensure_writable(&a).expect_err("a circle").code(), Code::OutputUnwritable);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_pipes_and_descriptors_are_written_straight_through() {
        use std::os::fd::AsRawFd;
        write_atomically(Path::new("/dev/null"), text("gone")).expect("written");
        ensure_writable(Path::new("/dev/null")).expect("writable");
        let error = write_atomically(Path::new("/dev/full"), text("too much")).expect_err("full");
        assert_eq!(error.code(), Code::WriteFailed);
        assert!(error.message().contains("no space left on device"), "{error}");

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shared");
        let mut shared = OpenOptions::new().append(true).create(true).open(&path).expect("opened");
        shared.write_all(b"before ").expect("written");
        for name in ["/proc/self/fd", "/dev/fd"] {
            let descriptor = format!("{name}/{}", shared.as_raw_fd());
            write_atomically(Path::new(&descriptor), text("ours ")).expect("written");
        }
        shared.write_all(b"after").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "before ours ours after");
        assert_eq!(entries(folder.path()), ["shared"]);
    }
}
