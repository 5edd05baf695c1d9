//! [`Cutter`]: cuts a stream between steps and between lists, wherever the blocks of the reader end.

use maxmargin::data::{Dataset, Pairs};
use maxmargin::error::{Code, Error, Result};
use std::ops::Range;

/// Keeps the examples that were not used yet. Blocks are joined only if they must be.
#[derive(Default)]
pub(super) struct Cutter {
    pub(super) pieces: Vec<Dataset>,
    /// Number of examples of the first piece that were used.
    pub(super) used: usize,
    /// Whether pairs name rows of one table of items, which all blocks share.
    pub(super) items: bool,
}

/// Number of pairs, or of lists if examples are lists, or of rows.
pub(super) fn examples(data: &Dataset, lists: bool) -> usize {
    match (data.pairs(), data.groups()) {
        (Some(pairs), _) => pairs.len(),
        (None, Some(groups)) if lists => groups.len(),
        _ => data.rows(),
    }
}

impl Cutter {
    /// Takes a block.
    pub(super) fn keep(&mut self, data: Dataset) {
        self.pieces.push(data);
    }

    /// Number of examples at hand that are complete. The last list of a stream is complete only at its end.
    pub(super) fn ready(&self, lists: bool, ended: bool) -> usize {
        let all: usize = self.pieces.iter().map(|piece| examples(piece, lists)).sum();
        // A list that continues in the next block was counted twice.
        let cut = self.pieces.windows(2).filter(|pair| lists && continues(&pair[0], &pair[1])).count();
        let open = usize::from(lists && !ended && all > 0);
        (all - cut).saturating_sub(self.used + open)
    }

    /// All examples that were not used yet, in one piece, and which of its examples they are.
    pub(super) fn joined(&mut self, lists: bool) -> Result<Option<(&Dataset, Range<usize>)>> {
        if self.pieces.len() > 1 {
            let first = self.pieces.remove(0);
            let count = examples(&first, lists);
            if self.used < count {
                self.pieces.insert(0, self.part(&first, self.used..count, lists)?);
            }
            self.used = 0;
        }
        let mut parts = std::mem::take(&mut self.pieces);
        // Neighbours are joined, and then neighbours of these, so that no row is copied often.
        while parts.len() > 1 {
            let pairs = parts.chunks(2).map(|pair| match pair {
                [first, second] => self.followed(first, second, lists),
                rest => Ok(rest[0].clone()),
            });
            parts = pairs.collect::<Result<_>>()?;
        }
        self.pieces = parts;
        let used = self.used;
        Ok(self.pieces.first().map(|data| (data, used..examples(data, lists))))
    }

    /// Marks examples of the joined piece as used.
    pub(super) fn advance(&mut self, count: usize, lists: bool) {
        self.used += count;
        if self.pieces.first().is_some_and(|data| self.used >= examples(data, lists)) && self.pieces.len() == 1 {
            self.pieces.clear();
            self.used = 0;
        }
    }

    /// Some of the examples of a piece.
    fn part(&self, data: &Dataset, range: Range<usize>, lists: bool) -> Result<Dataset> {
        match (data.pairs(), data.groups()) {
            (Some(pairs), _) if self.items => {
                let picked: Vec<usize> = range.collect();
                data.clone().with_pairs(pairs.select(&picked))
            }
            (Some(pairs), _) => {
                let sides = |pair: usize| [pairs.left()[pair] as usize, pairs.right()[pair] as usize];
                let mut rows: Vec<usize> = range.flat_map(sides).collect();
                rows.sort_unstable();
                rows.dedup();
                data.subset(&rows)
            }
            (None, Some(groups)) if lists => data.run(groups.range(range.start).start..groups.range(range.end - 1).end),
            _ => data.run(range),
        }
    }

    fn followed(&self, first: &Dataset, second: &Dataset, lists: bool) -> Result<Dataset> {
        if let (true, Some(own), Some(others)) = (self.items, first.pairs(), second.pairs()) {
            return second.clone().with_pairs(Pairs::followed_by(own, others, 0)?);
        }
        let merged = lists && continues(first, second);
        let joined = first.followed_by(second)?;
        let Some(groups) = joined.groups().filter(|_| merged) else { return Ok(joined) };
        let seam = first.groups().map_or(0, |groups| groups.len());
        let starts: Vec<u64> =
            groups.starts().iter().enumerate().filter(|(place, _)| *place != seam).map(|(_, start)| *start).collect();
        let names =
            (0..groups.len()).filter(|group| *group != seam).map(|group| groups.names().get_bytes(group)).collect();
        let groups = maxmargin::data::Groups::new(starts, names)?;
        joined.with_groups(groups)
    }
}

/// Whether the last list of a block continues in the next block.
fn continues(first: &Dataset, second: &Dataset) -> bool {
    let (Some(own), Some(others)) = (first.groups(), second.groups()) else { return false };
    let last = own.len().checked_sub(1).map(|last| own.names().get_bytes(last));
    last.is_some() && !others.is_empty() && last == Some(others.names().get_bytes(0))
}

/// Refuses lists whose rows are scattered over a block.
pub(super) fn check_lists(data: &Dataset) -> Result<()> {
    if data.input_order().is_none() {
        return Ok(());
    }
    Err(Error::new(
        Code::MixedGroups,
        "the rows of a query do not stand together, and a stream is learned list by list",
    )
    .help("sort the rows by their query"))
}
