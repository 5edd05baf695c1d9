//! [`Share`]: how much of a file was learned from, when reading ends before its end.

use std::collections::VecDeque;

/// Counts examples, and remembers where in the file they are.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Size of the file, if it is known.
    size: Option<u64>,
    /// Examples read up to the end of each block, and the position of that end. Blocks that were used up are forgotten,
    /// except for the last of them.
    ends: VecDeque<(u64, u64)>,
    /// Examples read.
    read: u64,
    /// Examples used.
    used: u64,
}

impl Share {
    /// A block of examples was read. `place` says where it ends, and the size of the file.
    pub(super) fn read(&mut self, examples: usize, place: Option<(u64, u64)>) {
        self.read += examples as u64;
        let Some((end, size)) = place else { return };
        self.size = Some(size);
        self.ends.push_back((self.read, end));
    }

    /// Examples were used.
    pub(super) fn used(&mut self, examples: usize) {
        self.used += examples as u64;
        while self.ends.get(1).is_some_and(|(read, _)| *read <= self.used) {
            self.ends.pop_front();
        }
    }

    /// The share of the file, if its size and the place in it are known.
    pub(super) fn of_file(&self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        let (before, start) = self.ends.front().copied().filter(|(read, _)| *read <= self.used).unwrap_or_default();
        let &(after, end) = self.ends.iter().find(|(read, _)| *read >= self.used)?;
        let part = if after > before { (self.used - before) as f64 / (after - before) as f64 } else { 1.0 };
        Some(((start as f64 + part * (end - start) as f64) / size as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_examples_used() {
        let mut share = Share::default();
        assert_eq!(share.of_file(), None);
        share.read(10, Some((100, 1000)));
        share.read(20, Some((500, 1000)));
        let mut found = Vec::new();
        for used in [5, 5, 5, 15] {
            share.used(used);
            found.extend(share.of_file());
        }
        assert_eq!(found, [0.05, 0.1, 0.2, 0.5]);
        share.read(5, Some((600, 1000)));
        share.used(5);
        assert_eq!(share.of_file(), Some(0.6));
        assert!(share.ends.len() <= 2);
        let mut unknown = Share::default();
        unknown.read(10, None);
        unknown.used(3);
        assert_eq!(unknown.of_file(), None);
    }
}
