//! [`Cutter`]: cuts a stream at whole steps, wherever the blocks of the reader end.

use maxmargin::data::Dataset;
use maxmargin::error::Result;

/// Keeps the examples at the end of a block that do not fill a step, and puts them before the next block.
#[derive(Default)]
pub(super) struct Cutter {
    /// Examples that were not used yet. Several blocks are joined only when they are used.
    kept: Vec<Dataset>,
}

impl Cutter {
    /// Number of rows that are kept.
    pub(super) fn rows(&self) -> usize {
        self.kept.iter().map(Dataset::rows).sum()
    }

    /// Keeps rows.
    pub(super) fn keep(&mut self, data: Dataset) {
        if data.rows() > 0 {
            self.kept.push(data);
        }
    }

    /// All rows that were kept, in one piece.
    pub(super) fn take(&mut self) -> Result<Option<Dataset>> {
        let mut parts = std::mem::take(&mut self.kept);
        // Neighbours are joined, and then neighbours of these, so that no row is copied often.
        while parts.len() > 1 {
            let pairs = parts.chunks(2).map(|pair| match pair {
                [first, second] => first.followed_by(second),
                rest => Ok(rest[0].clone()),
            });
            parts = pairs.collect::<Result<_>>()?;
        }
        Ok(parts.pop())
    }
}
