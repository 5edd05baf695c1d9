//! The rows that one core works on, and how two cores work side by side.

use super::coordinate::{Fixed, Slot, Sums, View, Visited};
use crate::data::row_loops::for_this_machine;
use crate::data::{Design, Residency, Rows, Visits, prefetch};
use crate::parallel;
use crate::random::Random;
use crate::task::Independent;
use std::ops::Range;

/// All blocks, or every second one.
pub(super) struct Half {
    number: usize,
    halves: usize,
    /// The slot of block `number + halves · k` is at `k`.
    pub(super) slots: Vec<Slot>,
    /// In the order of visits. During a pass, blocks that stay move to the front.
    pub(super) active: Vec<u32>,
    /// How many of the visited blocks stay active.
    kept: usize,
    random: Random,
    /// The weights as this half sees them within a round.
    pub(super) v: Vec<f64>,
    /// The visits of the current round whose blocks stay, with the dual variables before.
    undo: Vec<(u32, f64)>,
}

/// Which blocks are active, one bit each.
pub(super) struct Packed(Vec<u64>);

/// Two halves pay off from this many entries.
const HALVES_FROM: u64 = 1 << 20;
/// The maximum number of rounds per pass over all rows.
const ROUNDS: u64 = 200;
const LEAST_ROUNDS: u64 = 8;
/// Entries of a round per weight, at least: each round also costs a few passes over the weights to add up the halves.
const ENTRIES_A_WEIGHT: u64 = 8;

/// Blocks of a round, both halves together, or none if one core is faster.
pub(super) fn round_length(design: &Design, blocks: usize) -> Option<usize> {
    let matrix = design.matrix();
    if design.factor().is_some() || design.shift().is_some() || matrix.entries() < HALVES_FROM {
        return None;
    }
    let rounds = (matrix.entries() / (ENTRIES_A_WEIGHT * matrix.cols().max(1) as u64)).min(ROUNDS);
    (rounds >= LEAST_ROUNDS).then(|| blocks.div_ceil(rounds as usize).max(2))
}

/// How many visits ahead slots and rows are prefetched.
const SLOTS_AHEAD: usize = 16;
const ROWS_AHEAD: usize = 5;

/// How often the cancel flag is checked, in visits.
const POLL: usize = 512;

impl Half {
    pub(super) fn new(number: usize, halves: usize, slots: Vec<Slot>, random: Random, weights: usize) -> Half {
        Half { number, halves, slots, active: Vec::new(), kept: 0, random, v: vec![0.0; weights], undo: Vec::new() }
    }

    /// The position of the slot of a block. There are one or two halves, so a shift replaces a division.
    #[inline(always)]
    fn place(&self, block: u32) -> usize {
        (block >> (self.halves - 1)) as usize
    }

    /// Puts all blocks with a positive cost back into the active set.
    pub(super) fn reactivate<T: Independent>(&mut self, task: &T) {
        let blocks = (self.number..task.blocks()).step_by(self.halves);
        self.active.clear();
        self.active.reserve_exact(self.slots.len());
        self.active.extend(blocks.filter(|&block| task.constraint(block).cost > 0.0).map(|block| block as u32));
    }

    /// Releases the memory of the order, which the next pass shuffles anyway, but keeps which blocks are active.
    pub(super) fn pack(&mut self) -> Packed {
        let mut bits = vec![0u64; self.slots.len().div_ceil(64)];
        for block in std::mem::take(&mut self.active) {
            let place = self.place(block);
            bits[place / 64] |= 1 << (place % 64);
        }
        Packed(bits)
    }

    /// Restores the active set.
    pub(super) fn unpack(&mut self, packed: &Packed) {
        let is_active = |place: &usize| packed.0[place / 64] >> (place % 64) & 1 == 1;
        self.active.reserve_exact(packed.0.iter().map(|bits| bits.count_ones() as usize).sum());
        let (number, halves) = (self.number, self.halves);
        self.active.extend((0..self.slots.len()).filter(is_active).map(|place| (number + halves * place) as u32));
    }

    /// Before a pass: a new random order, one block of rows after the other if memory is limited.
    pub(super) fn shuffle<T: Independent>(&mut self, task: &T, visits: &Visits, residency: &Residency<'_>) {
        self.random.shuffle(&mut self.active);
        visits.arrange(residency, &mut self.active, |block| task.constraint(block as usize).row);
        self.kept = 0;
    }

    /// The row that is visited after `visits` visits.
    pub(super) fn next_row<T: Independent>(&self, task: &T, visits: usize) -> Option<usize> {
        self.active.get(visits).map(|&block| task.constraint(block as usize).row)
    }

    /// The same after `round` of `rounds` rounds.
    pub(super) fn next_round<T: Independent>(&self, task: &T, round: usize, rounds: usize) -> Option<usize> {
        self.next_row(task, self.active.len() * round / rounds)
    }

    /// After a pass: keeps only the blocks that stay.
    pub(super) fn shrink(&mut self) {
        self.active.truncate(self.kept);
    }

    /// The pass of one core over all blocks, against the weights themselves. None after a cancel.
    pub(super) fn pass<T: Independent, R: Rows>(
        &mut self,
        fixed: &Fixed<'_, T, R>,
        v: &mut [f64],
        sums: &mut Sums,
        view: &View,
        visits: &mut Visits,
        cancelled: impl Fn() -> bool,
    ) -> Option<Visited> {
        let mut visited = Visited::NOTHING;
        let residency = fixed.rows.design().matrix().residency();
        let count = self.active.len();
        for start in (0..count).step_by(POLL) {
            if cancelled() {
                return None;
            }
            visits.moved(&residency, std::iter::once(self.next_row(fixed.task, start)));
            visit_run(self, start..(start + POLL).min(count), fixed, v, sums, view, &mut visited);
        }
        visits.moved(&residency, std::iter::once(None));
        Some(visited)
    }

    #[inline(always)]
    fn look_ahead<T: Independent, R: Rows>(&self, fixed: &Fixed<'_, T, R>, at: usize) {
        if let Some(&block) = self.active.get(at + SLOTS_AHEAD) {
            prefetch(&self.slots, self.place(block));
            fixed.prefetch_start(block as usize);
        }
        if let Some(&block) = self.active.get(at + ROWS_AHEAD) {
            fixed.prefetch(block as usize);
        }
    }

    /// Steps on one round's share of the blocks. Returns the sums as this half sees them, and what the visits recorded.
    pub(super) fn round<T: Independent, R: Rows>(
        &mut self,
        round: usize,
        rounds: usize,
        fixed: &Fixed<'_, T, R>,
        sums: Sums,
        view: &View,
    ) -> (Sums, Visited) {
        self.undo.clear();
        let (mut sums, mut visited) = (sums, Visited::NOTHING);
        let mut v = std::mem::take(&mut self.v);
        let count = self.active.len();
        let visits = count * round / rounds..count * (round + 1) / rounds;
        visit_run(self, visits, fixed, &mut v, &mut sums, view, &mut visited);
        self.v = v;
        (sums, visited)
    }

    /// Undoes the last round.
    pub(super) fn undo(&mut self, v: &[f64]) {
        while let Some((visit, before)) = self.undo.pop() {
            self.kept -= 1;
            self.active.swap(self.kept, visit as usize);
            let place = self.place(self.active[visit as usize]);
            self.slots[place].alpha = before;
        }
        self.v.copy_from_slice(v);
    }
}

for_this_machine! {
    /// Steps on a range of the active blocks, and records what a half may have to undo.
    #[allow(clippy::too_many_arguments)] // what a step reads and what it writes, handed through
    fn visit_run[T: Independent, R: Rows](
        half: &mut Half,
        visits: Range<usize>,
        fixed: &Fixed<'_, T, R>,
        v: &mut [f64],
        sums: &mut Sums,
        view: &View,
        visited: &mut Visited,
    ) -> () = visit_run_here
}

#[inline(always)]
fn visit_run_here<T: Independent, R: Rows>(
    half: &mut Half,
    visits: Range<usize>,
    fixed: &Fixed<'_, T, R>,
    v: &mut [f64],
    sums: &mut Sums,
    view: &View,
    visited: &mut Visited,
) {
    for at in visits {
        half.look_ahead(fixed, at);
        let block = half.active[at];
        let place = half.place(block);
        let slot = &mut half.slots[place];
        let before = slot.alpha;
        if fixed.step(block as usize, slot, v, sums, view, visited) {
            half.active.swap(half.kept, at);
            half.kept += 1;
            if half.halves == 2 {
                half.undo.push((at as u32, before));
            }
        }
    }
}

/// Adds the changes of both halves, whose copies hold 1/share times as much, and leaves the sum in both copies. Returns
/// its squared length.
pub(in crate::solve) fn merge(v: &[f64], even: &mut [f64], odd: &mut [f64], share: f64) -> f64 {
    /// Below this many weights a second thread costs more than it saves.
    const ALONE: usize = 8 * 1024;
    if v.len() > ALONE {
        let middle = v.len() / 2;
        let (even_low, even_high) = even.split_at_mut(middle);
        let (odd_low, odd_high) = odd.split_at_mut(middle);
        let (low, high) = parallel::join(
            || merge_run(&v[..middle], even_low, odd_low, share),
            || merge_run(&v[middle..], even_high, odd_high, share),
        );
        return low + high;
    }
    merge_run(v, even, odd, share)
}

fn merge_run(v: &[f64], even: &mut [f64], odd: &mut [f64], share: f64) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let mut add = |lane: usize, v: f64, even: &mut f64, odd: &mut f64| {
        let merged = v + share * ((*even - v) + (*odd - v));
        (*even, *odd) = (merged, merged);
        lanes[lane] += merged * merged;
    };
    let (v_runs, v_rest) = v.as_chunks::<LANES>();
    let (even_runs, even_rest) = even.as_chunks_mut::<LANES>();
    let (odd_runs, odd_rest) = odd.as_chunks_mut::<LANES>();
    for ((v, even), odd) in v_runs.iter().zip(even_runs).zip(odd_runs) {
        for lane in 0..LANES {
            add(lane, v[lane], &mut even[lane], &mut odd[lane]);
        }
    }
    for ((&v, even), odd) in v_rest.iter().zip(even_rest).zip(odd_rest) {
        add(0, v, even, odd);
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Scaling};
    use crate::loss::Loss;
    use crate::run::Cancel;
    use crate::task::{Constraint, Intercept};

    /// Rows of two classes; every seventh has cost zero.
    struct Rows {
        signs: Vec<f64>,
    }

    impl Independent for Rows {
        fn blocks(&self) -> usize {
            self.signs.len()
        }

        fn loss(&self) -> Loss {
            Loss::Hinge
        }

        fn constraint(&self, block: usize) -> Constraint {
            let (sign, cost) = (self.signs[block], if block % 7 == 3 { 0.0 } else { 0.5 });
            Constraint { row: block, against: None, coefficient: sign, threshold: sign, margin: 1.0, cost }
        }
    }

    fn made(rows: usize, cols: usize) -> (Rows, Design, Dense<f64>) {
        let mut random = Random::new(2, 0, 0);
        let values: Vec<f64> = (0..rows * cols).map(|_| random.normal()).collect();
        let noisy = |row: usize, noise: f64| if values[row * cols] + noise > 0.0 { 1.0 } else { -1.0 };
        let signs = (0..rows).map(|row| noisy(row, 0.5 * random.normal())).collect();
        let dense = Dense::new(values, rows, cols).expect("rows of one length");
        let design = Scaling::default().apply(&Matrix::DenseF64(dense.clone()), None).expect("no scaling");
        (Rows { signs }, design, dense)
    }

    #[test]
    fn an_undone_round_leaves_no_trace() {
        for rows in [41, 400, 401] {
            let (task, design, dense) = made(rows, 5);
            let (fixed, slots) =
                Fixed::new(Intercept::Penalised, &task, &design, &dense, &Cancel::new()).expect("finite");
            for number in [0, 1] {
                let own = slots.iter().skip(number).step_by(2).copied().collect();
                let mut half = Half::new(number, 2, own, Random::new(5, 0, number as u64), design.cols());
                half.reactivate(&task);
                let residency = design.matrix().residency();
                // A block that is stuck at a bound leaves at once.
                let view = View { centre: 0.0, sigma: 1.5, shrink_above: 0.0, shrink_below: 0.0 };
                let mut left = 0;
                for _ in 0..4 {
                    half.shuffle(&task, &Visits::default(), &residency);
                    let (mut sums, rounds) = (Sums::default(), 5);
                    for round in 0..rounds {
                        let state = |half: &Half| {
                            let alphas: Vec<f64> = half.slots.iter().map(|slot| slot.alpha).collect();
                            (half.active.clone(), half.kept, alphas, half.v.clone())
                        };
                        let before = state(&half);
                        let (once, _) = half.round(round, rounds, &fixed, sums, &view);
                        let after = state(&half);
                        half.undo(&before.3);
                        assert_eq!(state(&half), before, "{rows} rows, round {round}");
                        let (again, _) = half.round(round, rounds, &fixed, sums, &view);
                        assert_eq!(state(&half), after);
                        assert_eq!((once.gain, once.pull), (again.gain, again.pull));
                        sums = again;
                    }
                    let visited = half.active.len();
                    half.shrink();
                    left += visited - half.active.len();
                    assert!(half.active.iter().all(|&block| block as usize % 2 == number));
                    let mut distinct = half.active.clone();
                    distinct.sort_unstable();
                    distinct.dedup();
                    assert_eq!(distinct.len(), half.active.len());
                }
                assert!(left > 0 && !half.active.is_empty(), "some leave and some stay");
            }
        }
    }

    #[test]
    fn packing_forgets_nothing_but_the_order() {
        for (rows, halves) in [(1, 1), (63, 1), (64, 1), (65, 2), (130, 2)] {
            let (task, ..) = made(rows, 1);
            for number in 0..halves {
                let slots = vec![Slot::default(); (number..rows).step_by(halves).count()];
                let mut half = Half::new(number, halves, slots, Random::new(1, 0, 0), 0);
                half.reactivate(&task);
                half.active.retain(|block| block % 5 != 1);
                let expected = half.active.clone();
                half.random.shuffle(&mut half.active);
                let packed = half.pack();
                assert!(half.active.is_empty());
                half.unpack(&packed);
                assert_eq!(half.active, expected, "{rows} rows, half {number} of {halves}");
            }
        }
    }
}
