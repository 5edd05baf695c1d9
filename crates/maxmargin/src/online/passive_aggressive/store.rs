//! [`Store`]: the most recent rows of both classes, so that every mini-batch is balanced though the stream is not.
//!
//! A new row is copied into the ring of its class, where it replaces the oldest one. A batch of n rows is due as soon as
//! there are n/2 new rows. It takes these, and fills up with stored rows until it has n/2 of each class; the stored ones
//! of a class take turns. With n = 2, every new row is learned from together with one row of the other class. With a rare
//! class of one in a thousand, each of its stored rows then serves about 1000 / `capacity` times as often as a row of the
//! other class. Until both classes have come, rows are stored and not learned from.
//!
//! Memory: 12 bytes for each entry of a sparse row (8 of a dense one), of at most 2 · `capacity` rows. A place that is
//! used again allocates only if the new row is longer than all before in this place. Nothing is random.

use super::step::Member;
use crate::data::Rows;
use crate::data::row_loops::{dense_axpy, dense_dot, sparse_axpy, sparse_dot};
use crate::online::state::OnlineState;

/// A copy of a row. Dense rows have no indices.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StoredRow {
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<f64>,
    pub(crate) weight: f64,
    square: f64,
}

impl StoredRow {
    fn is_dense(&self) -> bool {
        self.indices.is_empty()
    }
}

/// The rows of one class. The newest one is at `next − 1`, cyclically.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ring {
    pub(crate) rows: Vec<StoredRow>,
    /// Where the next row goes.
    pub(crate) next: usize,
    /// Which stored row takes its turn next.
    pub(crate) turn: usize,
    /// How many of the newest rows were not learned from yet.
    pub(crate) waiting: usize,
}

impl Ring {
    /// How many rows were stored after the one at this place.
    fn age(&self, place: usize) -> usize {
        let length = self.rows.len();
        (self.next + length - 1 - place) % length
    }
}

/// See the top of the file. Rows are numbered: those of the first ring from 0, those of the second one from `capacity`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Store {
    pub(crate) capacity: usize,
    /// The positive class and the negative one.
    pub(crate) rings: [Ring; 2],
}

/// Σ v², in four sums.
#[inline(always)]
pub(super) fn square_of(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|value| value * value).sum::<f64>()
}

impl Store {
    pub(super) fn new(capacity: usize) -> Store {
        Store { capacity, rings: Default::default() }
    }

    /// Bytes of the rows that are stored.
    pub(crate) fn bytes(&self) -> u64 {
        let rows = self.rings.iter().flat_map(|ring| &ring.rows);
        rows.map(|row| (4 * row.indices.capacity() + 8 * row.values.capacity()) as u64).sum()
    }

    /// Number of stored rows of the positive class and of the negative one.
    pub(crate) fn lengths(&self) -> [usize; 2] {
        [self.rings[0].rows.len(), self.rings[1].rows.len()]
    }

    /// Copies a row into the ring of its class.
    #[inline]
    pub(super) fn keep<R: Rows>(&mut self, rows: &R, row: usize, positive: bool, weight: f64) {
        let ring = &mut self.rings[usize::from(!positive)];
        if ring.rows.len() < self.capacity {
            ring.rows.push(StoredRow::default());
        }
        let kept = &mut ring.rows[ring.next];
        kept.indices.clear();
        kept.values.clear();
        let mut dense = true;
        rows.each(row, |column, value| {
            dense &= column == kept.values.len();
            kept.indices.push(column as u32);
            kept.values.push(value);
        });
        // A row whose columns are 0, 1, 2 … needs no indices.
        if dense {
            kept.indices.clear();
        }
        (kept.square, kept.weight) = (square_of(&kept.values), weight);
        ring.next = (ring.next + 1) % self.capacity;
        ring.waiting += 1;
    }

    /// Puts everything into a state. For each class: `rows-places` has where the next row goes, whose turn it is, how many
    /// wait, and how many rows there are; `rows-lengths` has the number of indices and of values of each row.
    pub(super) fn put(&self, state: &mut OnlineState) {
        let rows = || self.rings.iter().flat_map(|ring| &ring.rows);
        let places = self.rings.iter().flat_map(|ring| [ring.next, ring.turn, ring.waiting, ring.rows.len()]);
        state.put_counts("rows-places", places.map(|place| place as u64).collect());
        let lengths = rows().flat_map(|row| [row.indices.len(), row.values.len()]);
        state.put_counts("rows-lengths", lengths.map(|length| length as u64).collect());
        state.put_counts("rows-indices", rows().flat_map(|row| &row.indices).map(|&index| u64::from(index)).collect());
        state.put_reals("rows-values", rows().flat_map(|row| &row.values).copied().collect());
        state.put_reals("rows-weights", rows().map(|row| row.weight).collect());
    }

    /// Takes everything out again; none if it is invalid.
    pub(super) fn take(state: &OnlineState, capacity: usize, half: usize) -> Option<Store> {
        let places = state.counts("rows-places")?.as_chunks::<4>();
        let mut lengths = state.counts("rows-lengths")?.chunks_exact(2);
        let (mut indices, mut values) = (state.counts("rows-indices")?, state.reals("rows-values")?);
        let mut weights = state.reals("rows-weights")?.iter();
        let mut store = Store::new(capacity);
        let ([first, second], []) = places else { return None };
        for (ring, place) in store.rings.iter_mut().zip([first, second]) {
            let [next, turn, waiting, count] = place.map(|place| usize::try_from(place).ok());
            (ring.next, ring.turn, ring.waiting) = (next?, turn?, waiting?);
            let count = count.filter(|&count| count <= capacity)?;
            for _ in 0..count {
                let &[own, length] = lengths.next()? else { return None };
                let (own, rest) = indices.split_at_checked(usize::try_from(own).ok()?)?;
                let (row, left) = values.split_at_checked(usize::try_from(length).ok()?)?;
                (indices, values) = (rest, left);
                let weight = weights.next().copied().filter(|weight| *weight > 0.0)?;
                let own = own.iter().map(|&index| u32::try_from(index).ok()).collect::<Option<Vec<u32>>>()?;
                if !own.is_empty() && own.len() != row.len() {
                    return None;
                }
                let square = square_of(row);
                ring.rows.push(StoredRow { indices: own, values: row.to_vec(), weight, square });
            }
            let fits = ring.waiting <= half.min(count)
                && ring.turn <= count
                && ring.next < capacity
                && (count == capacity || ring.next == count);
            if !fits {
                return None;
            }
        }
        let all = lengths.next().is_none() && indices.is_empty() && values.is_empty() && weights.next().is_none();
        all.then_some(store)
    }

    /// Puts the next batch of at most 2 · `half` rows into `batch`, if it is due: positive and negative rows in turn.
    /// Returns whether it is due. It stays empty as long as a class has no row.
    #[inline]
    pub(super) fn batch(&mut self, half: usize, batch: &mut Vec<Member>) -> bool {
        batch.clear();
        if self.rings[0].waiting + self.rings[1].waiting < half {
            return false;
        }
        if self.rings.iter().any(|ring| ring.rows.is_empty()) {
            self.rings.iter_mut().for_each(|ring| ring.waiting = 0);
            return true;
        }
        let sizes = [0, 1].map(|class| half.min(self.rings[class].rows.len()));
        for place in 0..sizes[0].max(sizes[1]) {
            for (class, &size) in sizes.iter().enumerate() {
                if place < size {
                    let row = self.member(class, place);
                    batch.push(row);
                }
            }
        }
        self.rings.iter_mut().for_each(|ring| ring.waiting = 0);
        true
    }

    /// The new rows of a class first, oldest first, and then stored ones in turn.
    #[inline]
    fn member(&mut self, class: usize, place: usize) -> Member {
        let (ring, from) = (&mut self.rings[class], class * self.capacity);
        let length = ring.rows.len();
        let at = if place < ring.waiting {
            (ring.next + length - ring.waiting + place) % length
        } else {
            // At most `waiting` rows are new, and fewer than all: one of the others comes up.
            loop {
                let at = ring.turn % length;
                ring.turn = (at + 1) % length;
                if ring.age(at) >= ring.waiting {
                    break at;
                }
            }
        };
        let sign = if class == 0 { 1.0 } else { -1.0 };
        Member { row: from + at, sign, weight: ring.rows[at].weight, square: ring.rows[at].square }
    }

    #[inline(always)]
    fn at(&self, row: usize) -> &StoredRow {
        let class = usize::from(row >= self.capacity);
        &self.rings[class].rows[row - class * self.capacity]
    }
}

impl Rows for Store {
    #[inline(always)]
    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let row = self.at(row);
        if row.is_dense() { dense_dot(&row.values, w) } else { sparse_dot(&row.indices, &row.values, w) }
    }
    #[inline(always)]
    fn axpy(&self, row: usize, scale: f64, w: &mut [f64]) {
        let row = self.at(row);
        if row.is_dense() {
            dense_axpy(scale, &row.values, w);
        } else {
            sparse_axpy(scale, &row.indices, &row.values, w);
        }
    }
    fn dots(&self, row: usize, w: &[f64], out: &mut [f64]) {
        let outputs = out.len();
        out.fill(0.0);
        self.each(row, |column, value| {
            out.iter_mut().zip(&w[column * outputs..]).for_each(|(out, w)| *out += value * w);
        });
    }
    fn axpys(&self, row: usize, scales: &[f64], w: &mut [f64]) {
        let outputs = scales.len();
        self.each(row, |column, value| {
            w[column * outputs..].iter_mut().zip(scales).for_each(|(w, scale)| *w += value * scale);
        });
    }
    #[inline(always)]
    fn each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        let row = self.at(row);
        if row.is_dense() {
            row.values.iter().enumerate().for_each(|(column, &value)| visit(column, value));
        } else {
            row.indices.iter().zip(&row.values).for_each(|(&column, &value)| visit(column as usize, value));
        }
    }
    #[inline]
    fn prefetch(&self, _row: usize) {}
    fn squared_norm(&self, row: usize) -> f64 {
        self.at(row).square
    }
}
