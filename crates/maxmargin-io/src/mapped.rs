//! [`MappedFile`]: the only place that maps files into memory, and typed views of their content.

use maxmargin::data::Buffer;
use maxmargin::error::{Code, Error, Result};
use memmap2::Mmap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("files are mapped as they are stored, which is little-endian: big-endian machines are not supported");

/// A map takes addresses, which `ulimit -v` limits, and not memory.
fn no_memory(bytes: u64) -> Error {
    Error::new(Code::OutOfMemory, format!("the system refused to map the {bytes} bytes of the file"))
        .help("raise the limit of virtual memory (`ulimit -v`), which covers mapped files too, or close other programs")
}

mod sealed {
    pub(crate) trait Sealed {}
}

/// Numbers that can be read from any bytes and written without conversion.
///
/// Sealed, because the casts below rely on it: there is no padding, and every bit pattern is a value.
pub(crate) trait Plain: sealed::Sealed + Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Plain for $type {})* };
}
plain!(u8, u16, u32, u64, f32, f64);

/// The bytes of plain numbers, as in a file.
pub(crate) fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a `Plain` value has no padding, so each of its bytes is initialised, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A file mapped into memory, read-only.
///
/// Pages are loaded by page faults, and the system loads several pages per fault. Prefetching a range made a pass over
/// a file in the page cache slower by a third.
///
/// The writers of this project replace files by renaming, which does not affect a map. If another process shortens the
/// file, it can no longer be read: the system then raises a signal that the program has to catch.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// `None` if the file is empty, which many systems refuse to map.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file. `file_name` is the user's name for it.
    pub(crate) fn open(file_name: &str, path: &Path) -> Result<Arc<MappedFile>> {
        let unreadable = |error: std::io::Error| {
            let code = if error.kind() == ErrorKind::NotFound { Code::FileNotFound } else { Code::FileUnreadable };
            Error::new(code, format!("`{file_name}` cannot be read: {error}"))
                .in_file(file_name)
                .help("check the path and the permissions")
        };
        let file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            let what = if about.is_dir() { "a directory" } else { "not a regular file" };
            return Err(Error::new(Code::FileUnreadable, format!("`{file_name}` is {what}"))
                .in_file(file_name)
                .help("name a file that is stored on a disk"));
        }
        if about.len() == 0 {
            return Ok(Arc::new(MappedFile { map: None }));
        }
        // SAFETY: the map is private to this process, and this process does not write to it. Another process that
        // rewrites the file in place could change values while they are used. That is the known cost of mapping, and
        // every writer of this project replaces files by renaming.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| match error.kind() {
            ErrorKind::OutOfMemory => no_memory(about.len()).in_file(file_name),
            _ => unreadable(error),
        })?;
        Ok(Arc::new(MappedFile { map: Some(map) }))
    }

    /// All bytes of the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Releases bytes from this process's memory. They are loaded by page faults when they are used again. If the
    /// system does not support this, nothing is released.
    pub(crate) fn release(&self, bytes: Range<u64>) {
        if let Some((map, bytes)) = self.part(bytes) {
            // SAFETY: the map is read-only and backed by a file, so a dropped page is read again from the file. If
            // another process rewrote the file, numbers change, as they may under any map. The loops over mapped rows
            // stay in bounds for any content, and the command refuses to save a result from a changed file.
            #[cfg(unix)]
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, bytes.start, bytes.len()) };
            let _ = (map, bytes);
        }
    }

    /// Asks the system to read bytes from disk in advance, if they are not in its memory.
    pub(crate) fn will_need(&self, bytes: Range<u64>) {
        if let Some((map, bytes)) = self.part(bytes) {
            #[cfg(unix)]
            let _ = map.advise_range(memmap2::Advice::WillNeed, bytes.start, bytes.len());
            let _ = (map, bytes);
        }
    }

    fn part(&self, bytes: Range<u64>) -> Option<(&Mmap, Range<usize>)> {
        let map = self.map.as_ref()?;
        let end = usize::try_from(bytes.end).ok()?.min(map.len());
        let start = usize::try_from(bytes.start).ok()?;
        (start < end).then_some((map, start..end))
    }

    /// `count` numbers from byte `offset` on; `None` if they are not completely inside the file or not aligned.
    pub(crate) fn view<T: Plain>(self: &Arc<MappedFile>, offset: u64, count: u64) -> Option<Buffer<T>> {
        let count = usize::try_from(count).ok()?;
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(count.checked_mul(size_of::<T>())?)?;
        let part = self.bytes().get(start..end)?;
        if count == 0 {
            return Some(Vec::new().into());
        }
        let ptr = part.as_ptr().cast::<T>();
        if !ptr.is_aligned() {
            return None;
        }
        let owner = Arc::clone(self);
        // SAFETY: `part` is exactly `count` values long and aligned, and any bytes are a valid `T`. It lies in the map
        // that `owner` keeps alive and that is never written.
        Some(unsafe { Buffer::from_raw(ptr, count, owner) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(bytes: &[u8]) -> (tempfile::NamedTempFile, Arc<MappedFile>) {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), bytes).expect("written");
        let map = MappedFile::open("it", file.path()).expect("mapped");
        (file, map)
    }

    #[test]
    fn views_outside_the_file_or_unaligned_are_refused() {
        let (_file, map) = mapped(&[1, 0, 0, 0, 2, 0, 0, 0, 9]);
        assert_eq!(map.view::<u32>(0, 2).as_deref(), Some(&[1, 2][..]));
        assert_eq!(map.view::<u32>(4, 1).as_deref(), Some(&[2][..]));
        assert!(map.view::<u32>(0, 3).is_none());
        assert!(map.view::<u32>(2, 1).is_none());
        assert!(map.view::<u64>(u64::MAX - 3, 1).is_none());
        assert!(map.view::<u64>(0, u64::MAX / 4).is_none());
        assert_eq!(map.view::<u8>(9, 0).as_deref(), Some(&[][..]));
    }

    #[test]
    fn a_view_outlives_the_handle_and_the_file_name() {
        let (file, map) = mapped(&[7, 8, 9]);
        let view = map.view::<u8>(1, 2).expect("inside");
        drop((map, file));
        assert_eq!(&*view, &[8, 9]);
    }

    #[test]
    fn an_empty_file_maps_to_nothing() {
        let (_file, map) = mapped(&[]);
        assert!(map.bytes().is_empty());
        assert_eq!(map.view::<u64>(0, 0).as_deref(), Some(&[][..]));
    }

    #[test]
    fn missing_files_and_directories_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = MappedFile::open("x.mmd", &folder.path().join("x.mmd")).expect_err("missing");
        assert_eq!(missing.code(), Code::FileNotFound);
        assert_eq!(missing.place().map(|place| place.file.as_str()), Some("x.mmd"));
        let directory = MappedFile::open("x", folder.path()).expect_err("a directory");
        assert_eq!(directory.code(), Code::FileUnreadable);
    }
}
