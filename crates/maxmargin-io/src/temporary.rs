//! Files that have no name while they are written, so that no way of ending the program leaves one behind.
//!
//! [`Temporary`] becomes a file of the user: it gets its name when it is complete. [`Spool`] holds a stream that must be
//! read more than once. Where the system has no unnamed files, both have a name, and a later run deletes those of a
//! process that was killed: every named file is locked for as long as its process lives.

use maxmargin::error::{Code, Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

/// Temporary names are `.maxmargin-`, this many random letters and digits, and `.tmp`.
const PREFIX: &str = ".maxmargin-";
const RANDOM: usize = 12;
const SUFFIX: &str = ".tmp";

/// A folder with more entries than this is not searched for files of killed processes, which would take long.
#[cfg(unix)]
const MOST_ENTRIES: usize = 10_000;

/// A file to be completed and then named.
pub(crate) enum Temporary {
    Unnamed(File),
    Named(File, TempPath),
}

impl Temporary {
    /// A new file in the folder, with the permissions of ordinary files.
    pub(crate) fn new(folder: &Path) -> io::Result<Temporary> {
        match unnamed(folder) {
            Some(file) => Ok(Temporary::Unnamed(file)),
            None => Temporary::named(folder),
        }
    }

    fn named(folder: &Path) -> io::Result<Temporary> {
        // Another process may delete the file before it is locked. It is then made again.
        for _ in 0..16 {
            let (file, name) = builder().make_in(folder, create)?.into_parts();
            if lock(&file) && name.exists() {
                return Ok(Temporary::Named(file, name));
            }
        }
        Err(io::Error::other("temporary files are deleted by another program"))
    }

    pub(crate) fn file(&self) -> &File {
        let (Temporary::Unnamed(file) | Temporary::Named(file, _)) = self;
        file
    }

    /// Gives the file its name. A file that has the name is replaced.
    pub(crate) fn put(self, path: &Path) -> io::Result<()> {
        match self {
            Temporary::Named(_file, name) => Ok(name.persist(path)?),
            Temporary::Unnamed(file) => {
                let folder = folder_of(path);
                match link(&file, path) {
                    Ok(()) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        // Only a rename replaces a file, so the new one needs a name for a moment.
                        lock(&file);
                        let linked = builder().make_in(folder, |name| link(&file, name))?;
                        Ok(linked.into_temp_path().persist(path)?)
                    }
                    // Some file systems have unnamed files that cannot be named.
                    Err(_) => copied(file, folder)?.put(path),
                }
            }
        }
    }
}

/// The same content in a file with a name.
fn copied(mut file: File, folder: &Path) -> io::Result<Temporary> {
    let named = Temporary::named(folder)?;
    file.seek(SeekFrom::Start(0))?;
    io::copy(&mut file, &mut named.file())?;
    // Some file systems have no permissions. The file is written anyway.
    let _ = named.file().set_permissions(file.metadata()?.permissions());
    named.file().sync_all()?;
    Ok(named)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).rand_bytes(RANDOM).suffix(SUFFIX);
    builder
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Locks the file until it is closed. Returns false if another process holds the lock, which is about to delete it.
fn lock(file: &File) -> bool {
    // Where files cannot be locked, no process can take this one for that of a killed process either.
    !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// An unnamed file that can be named later; `None` if the system or the file system has none.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = OpenOptions::new().read(true).write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder).ok()?;
    // It is named through this folder, which need not be there.
    path_of(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path) -> Option<File> {
    None
}

/// Where the system shows an open file.
#[cfg(target_os = "linux")]
fn path_of(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let from = std::ffi::CString::new(path_of(file).as_os_str().as_bytes())?;
    let to = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both are strings that end in zero, and the call only makes a name.
    let made =
        unsafe { libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if made == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Deletes the temporary files of killed processes: files of this user in the folder, with a name as above, that no
/// process holds locked.
#[cfg(unix)]
pub(crate) fn remove_stale(folder: &Path) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let Ok(entries) = fs::read_dir(folder) else { return };
    // SAFETY: the call only looks a number up.
    let user = unsafe { libc::geteuid() };
    for entry in entries.take(MOST_ENTRIES).flatten() {
        if !entry.file_name().to_str().is_some_and(is_ours) {
            continue;
        }
        // Neither a link nor a pipe of that name may be followed or waited for.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let path = entry.path();
        let Ok(file) = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path) else { continue };
        let Ok(about) = file.metadata() else { continue };
        let owned = about.is_file() && about.uid() == user;
        if owned && file.try_lock().is_ok() && fs::symlink_metadata(&path).is_ok_and(|now| now.ino() == about.ino()) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn remove_stale(_folder: &Path) {}

/// Whether this is a name of a temporary file of this program.
#[cfg(unix)]
fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|random| random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// A temporary file that can be opened by path.
pub(crate) enum Spool {
    #[cfg(target_os = "linux")]
    Unnamed(File, PathBuf),
    Named(NamedTempFile),
}

impl Spool {
    pub(crate) fn new() -> Result<Spool> {
        let failed = |error: io::Error| {
            Error::new(Code::WriteFailed, format!("a temporary file could not be created: {error}"))
                .help("free some space, or name a folder for temporary files in TMPDIR")
        };
        #[cfg(target_os = "linux")]
        {
            let file = tempfile::tempfile().map_err(failed)?;
            let path = path_of(&file);
            if path.exists() {
                return Ok(Spool::Unnamed(file, path));
            }
        }
        Ok(Spool::Named(NamedTempFile::new().map_err(failed)?))
    }

    pub(crate) fn file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Spool::Unnamed(file, _) => file,
            Spool::Named(file) => file.as_file(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            #[cfg(target_os = "linux")]
            Spool::Unnamed(_, path) => path,
            Spool::Named(file) => file.path(),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_have_no_name_until_they_are_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        for content in ["new", "newer"] {
            let before = names(folder.path());
            let made = Temporary::new(folder.path()).expect("a file");
            made.file().write_all(content.as_bytes()).expect("written");
            if matches!(made, Temporary::Unnamed(_)) {
                assert_eq!(names(folder.path()), before);
            }
            made.put(&path).expect("named");
            assert_eq!(fs::read_to_string(&path).expect("read"), content);
            assert_eq!(names(folder.path()), ["out"]);
        }
    }

    #[test]
    fn a_file_with_a_name_or_one_that_cannot_be_linked_is_put_in_place_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let named = Temporary::named(folder.path()).expect("a file");
        named.file().write_all(b"one").expect("written");
        assert_eq!(names(folder.path()).len(), 1);
        named.put(&path).expect("named");
        assert_eq!(fs::read_to_string(&path).expect("read"), "one");
        let mut plain = tempfile::tempfile().expect("a file");
        plain.write_all(b"two").expect("written");
        copied(plain, folder.path()).expect("copied").put(&path).expect("named");
        assert_eq!(fs::read_to_string(&path).expect("read"), "two");
        drop(Temporary::named(folder.path()).expect("a file"));
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn only_files_that_no_process_holds_are_deleted() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = Temporary::named(folder.path()).expect("a file");
        let mut left: Vec<String> = names(folder.path());
        let others = [".maxmargin-short.tmp", ".maxmargin-abcdefghij_l.tmp", "maxmargin-abcdefghijkl.tmp", ".a.tmp"];
        for other in others {
            fs::write(folder.path().join(other), "").expect("written");
        }
        std::os::unix::fs::symlink("/", folder.path().join(".maxmargin-abcdefghijkl.tmp")).expect("linked");
        left.extend(others.map(str::to_string));
        left.push(".maxmargin-abcdefghijkl.tmp".to_string());
        left.sort();
        fs::write(folder.path().join(".maxmargin-0123456789ab.tmp"), "half").expect("written");
        remove_stale(folder.path());
        assert_eq!(names(folder.path()), left);
        drop(held);
    }

    #[test]
    fn a_spooled_stream_has_no_name_and_can_be_opened_again_and_again() {
        let spool = Spool::new().expect("a file");
        spool.file().write_all(b"text").expect("written");
        for _ in 0..2 {
            assert_eq!(fs::read_to_string(spool.path()).expect("read"), "text");
        }
        assert!(matches!(spool, Spool::Unnamed(..)));
    }
}
