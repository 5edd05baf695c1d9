//! [`Names`]: many short strings in one arena.

use super::Buffer;
use std::borrow::Cow;

/// A list of strings stored as one run of bytes and the end of each string. It holds millions of row ids without
/// millions of allocations, and it can be mapped from a file.
#[derive(Clone, Debug)]
pub struct Names {
    bytes: Buffer<u8>,
    ends: Buffer<u64>,
}

impl Names {
    /// Builds the list from its parts. Ends that do not fit the bytes give empty names, never a panic.
    pub fn from_parts(bytes: Buffer<u8>, ends: Buffer<u64>) -> Names {
        Names { bytes, ends }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name at `index`. Bytes that are not UTF-8 are shown as �.
    pub fn get(&self, index: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.get_bytes(index))
    }

    /// The bytes of the name at `index`.
    pub fn get_bytes(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        self.bytes.get(start..self.ends[index] as usize).unwrap_or_default()
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The position of a name, by a linear search.
    pub fn position(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|&index| self.get_bytes(index) == name.as_bytes())
    }

    /// A run of neighbouring names; the bytes are shared.
    pub fn run(&self, range: std::ops::Range<usize>) -> Names {
        let start = if range.start == 0 { 0 } else { self.ends[range.start - 1] };
        let ends: Vec<u64> = self.ends[range].iter().map(|&end| end.saturating_sub(start)).collect();
        let from = (start as usize).min(self.bytes.len());
        let to = from.saturating_add(ends.last().map_or(0, |&end| end as usize)).min(self.bytes.len());
        Names { bytes: self.bytes.slice(from..to), ends: ends.into() }
    }

    /// The arena itself: all bytes, and the end of each name.
    pub fn parts(&self) -> (&[u8], &[u64]) {
        (&self.bytes, &self.ends)
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Names {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for name in names {
            bytes.extend_from_slice(name.as_ref());
            ends.push(bytes.len() as u64);
        }
        Names { bytes: bytes.into(), ends: ends.into() }
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.parts() == other.parts()
    }
}
