//! [`Residency`]: which rows of a mapped matrix stay in memory, where memory is short.
//!
//! A limited matrix ([`super::Matrix::limited`]) gives rows back once a pass is done with them. Passes in row order say so
//! by [`Residency::passed`], row by row or stretch by stretch; the memory goes back in grains of about a megabyte, so that
//! a few grains a thread are resident. A solver that visits rows at random goes through [`Visits`] instead: rows in a
//! random order within a block, the next block fetched meanwhile and each block given back once all workers have left it.
//! Blocks are drawn anew for each pass, from small runs of rows: were they the same rows every time, coordinate descent on
//! problems with a constant feature would need many times the passes (Lee & Wright, Random permutations fix a worst case
//! for cyclic coordinate descent, IMA Journal of Numerical Analysis 39, 2019). Of a matrix without a limit nothing is ever
//! given back, and every call is a comparison.

use super::{Guard, Matrix};
use crate::error::Result;
use crate::random::Random;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of rows that are given back together.
const GRAIN: u64 = 1 << 20;

/// Runs of rows that make a block of random visits, and the least bytes of a run.
const RUNS: u64 = 64;
const LEAST_RUN: u64 = 32 << 10;

/// A guard with a limit on how much is in memory at a time.
#[derive(Debug)]
pub(super) struct Limited {
    inner: Arc<dyn Guard>,
    rows_a_block: usize,
    rows_a_grain: usize,
    rows_a_run: usize,
    rows: usize,
}

impl Limited {
    pub(super) fn new(inner: Arc<dyn Guard>, rows: usize, bytes: u64, block_bytes: u64) -> Limited {
        let rows_of = |part: u64| (u128::from(part) * rows as u128 / u128::from(bytes.max(1))) as usize;
        let rows_a_block = rows_of(block_bytes).clamp(1, rows.max(1));
        let part = |bytes: u64| rows_of(bytes).clamp(1, rows_a_block);
        let rows_a_run = part((block_bytes / RUNS).clamp(LEAST_RUN, GRAIN));
        Limited { inner, rows_a_block, rows_a_grain: part(GRAIN), rows_a_run, rows }
    }
}

impl Guard for Limited {
    fn check(&self, rows: Range<usize>) -> Result<()> {
        // Verifying reads: a block at a time, given back after.
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
        Some(Residency {
            guard: Some(&*self.inner),
            rows_a_block: self.rows_a_block,
            rows_a_grain: self.rows_a_grain,
            rows_a_run: self.rows_a_run,
            rows: self.rows,
        })
    }
}

/// See the top of the file.
#[derive(Clone, Copy, Debug)]
pub struct Residency<'m> {
    guard: Option<&'m dyn Guard>,
    rows_a_block: usize,
    rows_a_grain: usize,
    rows_a_run: usize,
    rows: usize,
}

impl<'m> Residency<'m> {
    /// That of a matrix that may be in memory as a whole.
    pub(super) fn unlimited(matrix: &Matrix) -> Residency<'m> {
        let all = usize::MAX;
        Residency { guard: None, rows_a_block: all, rows_a_grain: all, rows_a_run: all, rows: matrix.rows() }
    }

    /// Whether rows are given back at all.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.guard.is_some()
    }

    /// How many blocks there are; one without a limit.
    pub(crate) fn blocks(&self) -> usize {
        self.runs().div_ceil(self.runs_a_block()).max(1)
    }

    fn runs(&self) -> usize {
        self.rows.div_ceil(self.rows_a_run)
    }

    fn runs_a_block(&self) -> usize {
        (self.rows_a_block / self.rows_a_run).max(1)
    }

    fn rows_of(&self, run: usize) -> Range<usize> {
        let start = run * self.rows_a_run;
        start..(start + self.rows_a_run).min(self.rows)
    }

    /// Says that a pass in row order is done with these rows, and with those before them in the same grain.
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

/// The blocks in which a pass visits the rows of a limited matrix, and how far it has come.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// The runs of rows of each block, in order of visit.
    blocks: Vec<Vec<usize>>,
    /// The block of each run.
    block_of: Vec<usize>,
    /// Blocks that were given back, and the one that was fetched last.
    left: usize,
    fetched: usize,
}

impl Visits {
    /// Blocks drawn anew; nothing without a limit.
    pub(crate) fn new(residency: &Residency<'_>, random: &mut Random) -> Visits {
        if !residency.is_limited() {
            return Visits::default();
        }
        let mut runs: Vec<usize> = (0..residency.runs()).collect();
        random.shuffle(&mut runs);
        let mut block_of = vec![0; runs.len()];
        let blocks: Vec<Vec<usize>> = runs.chunks(residency.runs_a_block()).map(<[usize]>::to_vec).collect();
        for (block, runs) in blocks.iter().enumerate() {
            runs.iter().for_each(|&run| block_of[run] = block);
        }
        Visits { blocks, block_of, left: 0, fetched: 0 }
    }

    /// The place of a row's block in the order of visit.
    fn place(&self, residency: &Residency<'_>, row: usize) -> usize {
        self.block_of[row / residency.rows_a_run]
    }

    /// Brings shuffled items into the order of their rows' blocks, as they come within each.
    pub(crate) fn arrange(&self, residency: &Residency<'_>, items: &mut Vec<u32>, row: impl Fn(u32) -> usize) {
        if self.blocks.is_empty() {
            return;
        }
        let mut starts = vec![0usize; self.blocks.len() + 1];
        items.iter().for_each(|&item| starts[self.place(residency, row(item)) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut arranged = vec![0u32; items.len()];
        for &item in items.iter() {
            let place = &mut starts[self.place(residency, row(item))];
            arranged[*place] = item;
            *place += 1;
        }
        *items = arranged;
    }

    /// Says which row each worker visits next, none at its end: blocks that all have left are given back, and the one
    /// behind the foremost worker is fetched.
    pub(crate) fn moved(&mut self, residency: &Residency<'_>, next: impl Iterator<Item = Option<usize>>) {
        let Some(guard) = residency.guard.filter(|_| !self.blocks.is_empty()) else { return };
        let end = self.blocks.len();
        let (mut first, mut last) = (end, 0);
        for row in next {
            let at = row.map_or(end, |row| self.place(residency, row));
            (first, last) = (first.min(at), last.max(at));
        }
        for runs in &self.blocks[self.left.min(first)..first] {
            runs.iter().for_each(|&run| guard.release(residency.rows_of(run)));
        }
        self.left = self.left.max(first);
        if last + 1 > self.fetched && last + 1 < end {
            self.fetched = last + 1;
            self.blocks[self.fetched].iter().for_each(|&run| guard.will_need(residency.rows_of(run)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dense;
    use super::*;
    use std::sync::Mutex;

    /// Keeps which rows are in memory.
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

    /// 1,000 rows of a thousandth of so many megabytes.
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
        let (memory, matrix) = limited(10_000, 10, GRAIN);
        let residency = matrix.residency();
        assert_eq!((residency.rows_a_run, residency.runs_a_block(), residency.blocks()), (31, 32, 11));
        let mut random = Random::new(1, 2, 3);
        let mut visits = Visits::new(&residency, &mut random);
        let mut halves: Vec<Vec<u32>> = (0..2u32).map(|half| (half..10_000).step_by(2).collect()).collect();
        for items in &mut halves {
            random.shuffle(items);
            visits.arrange(&residency, items, |item| item as usize);
        }
        for at in 0..5000 {
            halves.iter().for_each(|items| memory.touch(items[at] as usize..items[at] as usize + 1));
            visits.moved(&residency, halves.iter().map(|items| items.get(at + 1).map(|&item| item as usize)));
            assert!(memory.resident() <= 2 * 1000, "{at}: {}", memory.resident());
        }
        assert_eq!(memory.resident(), 0);
        let blocks: Vec<usize> = halves[0].iter().map(|&item| visits.place(&residency, item as usize)).collect();
        assert!(blocks.is_sorted() && blocks.last() == Some(&10), "each block is visited once");
        assert!(halves[0][..50].windows(2).any(|pair| pair[0] > pair[1]), "at random within a block");
        let other = Visits::new(&residency, &mut random);
        let stayed = (0..10_000).filter(|&row| other.place(&residency, row) == visits.place(&residency, row)).count();
        assert!(stayed < 2500, "the next pass draws other blocks: {stayed} rows are in the same place");
        let mut all = halves.concat();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..10_000), "every row is visited");
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
