//! [`Buffer`]: a read-only slice that keeps its memory alive, no matter how it was allocated.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A slice kept alive by a shared owner: a `Vec`, a mapped file or an array of another language. It is cheap to clone
/// and has no lifetime parameter.
pub struct Buffer<T> {
    ptr: *const T,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

impl<T> Buffer<T> {
    /// Wraps memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` must be aligned and valid for reads of `len` values of `T` for as long as `owner` lives. The memory must
    /// not be written during that time.
    pub unsafe fn from_raw(ptr: *const T, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Buffer<T> {
        Buffer { ptr, len, owner }
    }

    /// A part of the buffer, sharing its memory.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Buffer<T> {
        let part = &self[range];
        Buffer { ptr: part.as_ptr(), len: part.len(), owner: Arc::clone(&self.owner) }
    }
}

// SAFETY: a `Buffer` is an immutable `&[T]` whose owner is `Send + Sync`; sharing it is sharing `&[T]`.
unsafe impl<T: Sync> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Send + Sync + 'static> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Buffer<T> {
        let (ptr, len) = (values.as_ptr(), values.len());
        Buffer { ptr, len, owner: Arc::new(values) }
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        Buffer { ptr: self.ptr, len: self.len, owner: Arc::clone(&self.owner) }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the promise of `from_raw`, or the `Vec` moved into `owner`, whose heap memory does not move.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self[..self.len.min(8)];
        write!(f, "Buffer(len {}, {:?}{})", self.len, shown, if self.len > 8 { "…" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_outlives_its_buffer() {
        let part = Buffer::from(vec![1, 2, 3, 4]).slice(1..3);
        assert_eq!(&*part, &[2, 3]);
    }
}
