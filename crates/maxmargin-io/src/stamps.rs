//! [`Stamps`]: detects that another process changed an input while it was read.
//!
//! A stamp is the size and the modification time of an open file. Readers compare it at the end of their work. A mapped
//! file is read for as long as its data are used, so whoever saves a result of mapped data compares the stamp once more
//! ([`Stamps::check`]). A file that is replaced by renaming another one keeps its content for those who have it open.

use crate::sides::side_files;
use maxmargin::error::{Code, Error, Result};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The stamps of all files that some data come from. Pipes and devices have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stamps(Vec<Stamp>);

#[derive(Clone, Debug)]
struct Stamp {
    /// The user's name for the file.
    file: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// The file itself, whatever has its name by now.
    handle: Arc<File>,
    seen: Seen,
}

impl PartialEq for Stamp {
    fn eq(&self, other: &Stamp) -> bool {
        (&self.file, &self.path, &self.seen) == (&other.file, &other.path, &other.seen)
    }
}

/// Size and time.
type Seen = (u64, SystemTime);

impl Stamps {
    /// The stamp of an opened file, and of its side files.
    pub(crate) fn of_data(file: &str, path: &Path, opened: &File) -> Stamps {
        let mut stamps = Stamps::of_file(file, path, opened);
        for side in side_files(path).iter().filter(|side| side.is_file()) {
            if let Ok(opened) = File::open(side) {
                stamps.extend(&Stamps::of_file(&side.display().to_string(), side, &opened));
            }
        }
        stamps
    }

    /// The stamp of an opened file that has no side files.
    pub(crate) fn of_file(file: &str, path: &Path, opened: &File) -> Stamps {
        Stamps::of(file, Some(path), opened.try_clone())
    }

    /// The stamp of standard input, which may be a regular file.
    pub(crate) fn of_standard_input(file: &str) -> Stamps {
        Stamps::of(file, None, standard_input())
    }

    fn of(file: &str, path: Option<&Path>, handle: io::Result<File>) -> Stamps {
        let stamp = handle.ok().and_then(|handle| {
            let seen = seen(&handle.metadata().ok()?)?;
            let path = path.map(Path::to_path_buf);
            Some(Stamp { file: file.to_string(), path, handle: Arc::new(handle), seen })
        });
        Stamps(stamp.into_iter().collect())
    }

    /// Adds the files of other data.
    pub fn extend(&mut self, other: &Stamps) {
        let new: Vec<Stamp> = other.0.iter().filter(|stamp| !self.0.contains(stamp)).cloned().collect();
        self.0.extend(new);
    }

    /// Returns an error if one of the files has changed since it was opened.
    pub fn check(&self) -> Result<()> {
        self.each(|stamp| stamp.handle.metadata().ok())
    }

    /// The result of reading these files. If one of them has changed, that is the error: it also explains any other.
    pub(crate) fn confirm<T>(&self, outcome: Result<T>) -> Result<T> {
        // A reader may have opened a file twice, so the name must have stood for the same file all the time.
        self.check()?;
        self.each(|stamp| match &stamp.path {
            Some(path) => std::fs::metadata(path).ok(),
            None => stamp.handle.metadata().ok(),
        })?;
        outcome
    }

    fn each(&self, now: impl Fn(&Stamp) -> Option<Metadata>) -> Result<()> {
        match self.0.iter().find(|stamp| now(stamp).and_then(|about| seen(&about)) != Some(stamp.seen)) {
            None => Ok(()),
            Some(stamp) => {
                Err(Error::new(Code::FileShrank, "the file was changed while it was read; nothing was saved")
                    .in_file(&stamp.file)
                    .help("keep data files unchanged while a command reads them, then run it again"))
            }
        }
    }
}

/// `None` for anything that is not a regular file.
fn seen(about: &Metadata) -> Option<Seen> {
    about.is_file().then(|| about.modified().ok()).flatten().map(|time| (about.len(), time))
}

#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn standard_input() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the time explicitly, because two writes may be closer than the clock of the file system can tell.
    fn rewrite(path: &Path, content: &str) {
        std::fs::write(path, content).expect("written");
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        File::options().write(true).open(path).and_then(|file| file.set_modified(later)).expect("a time");
    }

    #[test]
    fn a_changed_file_or_side_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, side) = (folder.path().join("data.txt"), folder.path().join("data.txt.weight"));
        std::fs::write(&data, "1 1:1\n").expect("written");
        std::fs::write(&side, "1\n").expect("written");
        let stamps = Stamps::of_data("data.txt", &data, &File::open(&data).expect("there"));
        stamps.check().expect("nothing has changed");
        rewrite(&side, "2\n");
        let error = stamps.check().expect_err("the side file has changed");
        assert_eq!(error.code(), Code::FileShrank);
        assert!(error.place().is_some_and(|place| place.file.ends_with("data.txt.weight")));
        rewrite(&data, "1 1:2\n");
        let error = stamps.confirm::<()>(Err(Error::new(Code::NoRows, "no rows"))).expect_err("both");
        assert_eq!(
            (error.code(), error.place().map(|place| place.file.as_str())),
            (Code::FileShrank, Some("data.txt"))
        );
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_content_once_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, new) = (folder.path().join("data.txt"), folder.path().join("new.txt"));
        std::fs::write(&data, "1 1:1\n").expect("written");
        let stamps = Stamps::of_data("data.txt", &data, &File::open(&data).expect("there"));
        rewrite(&new, "1 1:2\n");
        std::fs::rename(&new, &data).expect("renamed");
        stamps.check().expect("the open file is the same");
        assert_eq!(stamps.confirm(Ok(())).expect_err("the name is not").code(), Code::FileShrank);
    }
}
