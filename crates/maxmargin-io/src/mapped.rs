//! [`MappedFile`]: the one place that maps files into memory, and typed views of what is there.

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

mod sealed {
    pub(crate) trait Sealed {}
}

/// Numbers that may be read from any bytes and written as they are.
///
/// Sealed, because the casts below rely on it: no padding, and no bit pattern that is not a value.
pub(crate) trait Plain: sealed::Sealed + Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => { $(impl sealed::Sealed for $type {} impl Plain for $type {})* };
}
plain!(u8, u16, u32, u64, f32, f64);

/// The bytes of plain numbers, as they stand in a file.
pub(crate) fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a `Plain` value has no padding, so each of its bytes is initialised, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A file mapped into memory, read-only.
///
/// Pages are left to come in by faults, which the system answers several pages at a time: asking for a stretch of them
/// beforehand made a pass over a file in the page cache slower by a third.
///
/// Programs replace their files by renaming, which leaves a map as it was. A file that somebody else shortens
/// meanwhile cannot be read any further: the system then raises a signal that the program has to catch.
#[derive(Debug)]
pub(crate) struct MappedFile {
    /// None where the file is empty, which many systems refuse to map.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a whole file; `file_name` is what the user calls it.
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
        // SAFETY: the map is private to this process and nobody here writes to it. Another process that rewrites the
        // file in place could change values under our feet; that is the known price of mapping, and every writer of
        // this project replaces files by renaming.
        let map = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
        Ok(Arc::new(MappedFile { map: Some(map) }))
    }

    /// Everything in the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Takes bytes out of this process's memory; they come back by faults when they are touched again. What the system
    /// does not do, it need not: then nothing is given back.
    pub(crate) fn release(&self, bytes: Range<u64>) {
        if let Some((map, bytes)) = self.part(bytes) {
            // SAFETY: the map is read-only and backed by a file, so that a page dropped is read again from the file. If
            // somebody rewrote the file meanwhile, numbers change, as they may under any map: the loops over mapped rows
            // stay in bounds whatever they read, and the command refuses to save what came of a changed file.
            #[cfg(unix)]
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, bytes.start, bytes.len()) };
            let _ = (map, bytes);
        }
    }

    /// Asks the system to read bytes from the disk meanwhile, where they are not in its memory.
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

    /// `count` numbers from byte `offset` on, or nothing where they are not wholly inside the file or not aligned.
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
        // SAFETY: `part` is exactly `count` values long, aligned, and any bytes are a `T`. It lies in the map that
        // `owner` keeps alive and that nobody writes to.
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
