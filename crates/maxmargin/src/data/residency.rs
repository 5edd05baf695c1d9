//! [`Residency`]: which rows of a mapped matrix stay in memory when memory is limited.
//!
//! A limited matrix ([`super::Matrix::limited`]) releases the memory of rows after a pass has used them. Passes in row
//! order report this with [`Residency::passed`], one row or one stretch at a time. The memory is released in grains of
//! about a megabyte, so that a few grains per thread are resident. A solver that visits rows at random uses [`Visits`]
//! instead. Each pass cuts the rows into pieces and builds blocks from randomly chosen pieces, so that no two rows are
//! always visited together. Within a block, rows come in random order. The next block is loaded meanwhile, and each
//! block is released once all workers have left it. A matrix without a limit releases nothing, and each call costs one
//! comparison.

use super::{Guard, Matrix};
use crate::error::Result;
use crate::random::Random;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of rows that are released together.
const GRAIN: u64 = 1 << 20;

/// A guard with a limit on how much is in memory at a time.
#[derive(Debug)]
pub(super) struct Limited {
    inner: Arc<dyn Guard>,
    rows_a_block: usize,
    rows_a_grain: usize,
    rows: usize,
}

impl Limited {
    pub(super) fn new(inner: Arc<dyn Guard>, rows: usize, bytes: u64, block_bytes: u64) -> Limited {
        let rows_of = |part: u64| (u128::from(part) * rows as u128 / u128::from(bytes.max(1))) as usize;
        let rows_a_block = rows_of(block_bytes).clamp(1, rows.max(1));
        Limited { inner, rows_a_block, rows_a_grain: rows_of(GRAIN).clamp(1, rows_a_block), rows }
    }
}

impl Guard for Limited {
    fn check(&self, rows: Range<usize>) -> Result<()> {
        // Verification reads the rows one block at a time and then releases the block.
        let mut start = rows.start;
        while start < rows.end {
            let block = start..(start + self.rows_a_block).min(rows.end);
            self.inner.check(block.clone())?;
            self.inner.release(block.clone());
            start = block.end;
        }
        if rows.is_empty() { self.inner.check(rows) } else { Ok(()) }
    }

    fn is_checked(&self, row: usize) -> bool {
        self.inner.is_checked(row)
    }

    fn will_need(&self, rows: Range<usize>) {
        self.inner.will_need(rows);
    }

    fn release(&self, rows: Range<usize>) {
        self.inner.release(rows);
    }

    fn residency(&self) -> Option<Residency<'_>> {
        let Limited { inner, rows_a_block, rows_a_grain, rows } = self;
        Some(Residency { guard: Some(&**inner), rows_a_block: *rows_a_block, rows_a_grain: *rows_a_grain, rows: *rows })
    }
}

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Residency<'m> {
    guard: Option<&'m dyn Guard>,
    rows_a_block: usize,
    rows_a_grain: usize,
    rows: usize,
}

impl<'m> Residency<'m> {
    /// The residency of a matrix that may be in memory as a whole.
    pub(super) fn unlimited(matrix: &Matrix) -> Residency<'m> {
        Residency { guard: None, rows_a_block: usize::MAX, rows_a_grain: usize::MAX, rows: matrix.rows() }
    }

    /// Whether the memory of rows is released at all.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.guard.is_some()
    }

    /// Number of blocks; one if there is no limit.
    pub(crate) fn blocks(&self) -> usize {
        self.rows.div_ceil(self.rows_a_block).max(1)
    }

    fn rows_a_piece(&self) -> usize {
        (self.rows_a_block / PIECES).max(1)
    }

    /// The piece of a row.
    fn piece_of(&self, row: usize) -> usize {
        row / self.rows_a_piece()
    }

    fn rows_of(&self, piece: usize) -> Range<usize> {
        let start = piece.saturating_mul(self.rows_a_piece());
        start.min(self.rows)..start.saturating_add(self.rows_a_piece()).min(self.rows)
    }

    /// Reports that a pass in row order has finished with these rows and with those before them in the same grain.
    #[inline]
    pub(crate) fn passed(&self, rows: Range<usize>) {
        if self.guard.is_some() {
            self.give_back(rows);
        }
    }

    #[cold]
    fn give_back(&self, rows: Range<usize>) {
        let grain = self.rows_a_grain;
        let end = if rows.end >= self.rows { self.rows } else { rows.end / grain * grain };
        let start = rows.start / grain * grain;
        if let (Some(guard), true) = (self.guard, start < end) {
            guard.release(start..end);
        }
    }
}

/// Number of pieces in a block.
const PIECES: usize = 16;

/// The order in which a pass visits the pieces of a limited matrix, and its current position.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// Pieces in order of visit; [`PIECES`] of them are a block.
    order: Vec<usize>,
    /// The block of each piece in the order of visit.
    rank: Vec<usize>,
    /// Number of blocks that were released, and the last block that was loaded.
    left: usize,
    fetched: usize,
}

impl Visits {
    /// A new random order; empty if there is no limit.
    pub(crate) fn new(residency: &Residency<'_>, random: &mut Random) -> Visits {
        if !residency.is_limited() {
            return Visits::default();
        }
        let mut order: Vec<usize> = (0..residency.rows.div_ceil(residency.rows_a_piece())).collect();
        random.shuffle(&mut order);
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &piece)| rank[piece] = at / PIECES);
        Visits { order, rank, left: 0, fetched: 0 }
    }

    fn blocks(&self) -> usize {
        self.order.len().div_ceil(PIECES)
    }

    /// The pieces of a range of blocks.
    fn pieces(&self, blocks: Range<usize>) -> &[usize] {
        &self.order[(blocks.start * PIECES).min(self.order.len())..(blocks.end * PIECES).min(self.order.len())]
    }

    /// Sorts shuffled items by the block of their row. Within a block, the items keep their order.
    pub(crate) fn arrange(&self, residency: &Residency<'_>, items: &mut Vec<u32>, row: impl Fn(u32) -> usize) {
        if self.order.is_empty() {
            return;
        }
        let rank = |item: u32| self.rank[residency.piece_of(row(item))];
        let mut starts = vec![0usize; self.blocks() + 1];
        items.iter().for_each(|&item| starts[rank(item) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut arranged = vec![0u32; items.len()];
        for &item in items.iter() {
            let place = &mut starts[rank(item)];
            arranged[*place] = item;
            *place += 1;
        }
        *items = arranged;
    }

    /// Tells which row each worker visits next, or `None` at its end. Releases the blocks that all workers have left,
    /// and loads the block after that of the worker that is furthest ahead.
    pub(crate) fn moved(&mut self, residency: &Residency<'_>, next: impl Iterator<Item = Option<usize>>) {
        let Some(guard) = residency.guard.filter(|_| !self.order.is_empty()) else { return };
        let end = self.blocks();
        let (mut first, mut last) = (end, 0);
        for row in next {
            let at = row.map_or(end, |row| self.rank[residency.piece_of(row)]);
            (first, last) = (first.min(at), last.max(at));
        }
        for &piece in self.pieces(self.left.min(first)..first) {
            guard.release(residency.rows_of(piece));
        }
        self.left = self.left.max(first);
        if last + 1 > self.fetched && last + 1 < end {
            self.fetched = last + 1;
            for &piece in self.pieces(self.fetched..self.fetched + 1) {
                guard.will_need(residency.rows_of(piece));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dense;
    use super::*;
    use std::sync::Mutex;

    /// Records which rows are in memory.
    #[derive(Debug)]
    struct Memory(Mutex<Vec<bool>>);

    impl Guard for Memory {
        fn check(&self, rows: Range<usize>) -> Result<()> {
            self.touch(rows);
            Ok(())
        }
        fn is_checked(&self, _: usize) -> bool {
            true
        }
        fn release(&self, rows: Range<usize>) {
            self.0.lock().expect("alone").get_mut(rows).expect("inside").fill(false);
        }
    }

    impl Memory {
        fn touch(&self, rows: Range<usize>) {
            self.0.lock().expect("alone").get_mut(rows).expect("inside").fill(true);
        }

        fn resident(&self) -> usize {
            self.0.lock().expect("alone").iter().filter(|&&there| there).count()
        }
    }

    /// A matrix of `rows` rows whose total size is `grains` megabytes.
    fn limited(rows: usize, grains: u64, block_bytes: u64) -> (Arc<Memory>, Matrix) {
        let memory = Arc::new(Memory(Mutex::new(vec![false; rows])));
        let guard = Arc::new(Limited::new(memory.clone(), rows, grains * GRAIN, block_bytes));
        (memory, Matrix::DenseF32(Dense::new(vec![0.0; rows], rows, 1).expect("valid").guarded(guard)))
    }

    #[test]
    fn a_pass_in_order_keeps_a_grain() {
        let (memory, matrix) = limited(1000, 10, 4 * GRAIN);
        let residency = matrix.residency();
        for start in (0..1000).step_by(7) {
            let rows = start..(start + 7).min(1000);
            memory.touch(rows.clone());
            residency.passed(rows);
            assert!(memory.resident() <= 100, "{start}: {}", memory.resident());
        }
        assert_eq!(memory.resident(), 0);
    }

    #[test]
    fn verifying_leaves_nothing_behind() {
        let (memory, matrix) = limited(1000, 10, 4 * GRAIN);
        matrix.check(3..996).expect("sound");
        assert_eq!(memory.resident(), 0);
    }

    #[test]
    fn random_visits_keep_the_blocks_that_workers_are_in() {
        let (memory, matrix) = limited(1000, 10, GRAIN);
        let residency = matrix.residency();
        assert_eq!(residency.blocks(), 10);
        let mut random = Random::new(1, 2, 3);
        let mut visits = Visits::new(&residency, &mut random);
        let mut halves: Vec<Vec<u32>> = (0..2u32).map(|half| (half..1000).step_by(2).collect()).collect();
        for items in &mut halves {
            random.shuffle(items);
            visits.arrange(&residency, items, |item| item as usize);
        }
        for at in 0..500 {
            halves.iter().for_each(|items| memory.touch(items[at] as usize..items[at] as usize + 1));
            visits.moved(&residency, halves.iter().map(|items| items.get(at + 1).map(|&item| item as usize)));
            assert!(memory.resident() <= 100, "{at}: {}", memory.resident());
        }
        assert_eq!(memory.resident(), 0);
        let mut all = halves.concat();
        let first: Vec<usize> = halves[0][..48].iter().map(|&item| residency.piece_of(item as usize)).collect();
        assert!(first.iter().all(|piece| visits.pieces(0..1).contains(piece)), "one block after the other");
        assert_eq!(visits.pieces(0..1).len(), PIECES);
        assert!(halves[0][..50].windows(2).any(|pair| pair[0] > pair[1]), "at random within a block");
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..1000), "every row is visited");
    }

    #[test]
    fn without_a_limit_nothing_is_given_back_and_nothing_moved() {
        let matrix = Matrix::DenseF32(Dense::new(vec![0.0; 10], 10, 1).expect("valid"));
        let residency = matrix.residency();
        assert!(!residency.is_limited() && residency.blocks() == 1);
        let visits = Visits::new(&residency, &mut Random::new(1, 2, 3));
        let mut items = vec![3, 1, 2];
        visits.arrange(&residency, &mut items, |item| item as usize);
        assert_eq!(items, [3, 1, 2]);
    }
}
