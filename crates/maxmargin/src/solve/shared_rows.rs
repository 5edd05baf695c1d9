//! [`SharedRows`]: kernel values between all rows of a data set, for many problems over some of the rows each.
//!
//! A kernel row is computed once, by whichever thread needs it first, together with its neighbours: always the same
//! rows together, so that its values do not depend on who asks. Rows are kept in an order in which the rows of a problem
//! lie side by side, such as by class, so that a problem reads short stretches of a row. The first rows are kept as far
//! as their bytes allow; each problem computes its part of the others by itself.

use super::Gram;
use crate::kernel::{Element, Kernel, Points};
use crate::parallel;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rows computed together.
const TOGETHER: usize = 64;

/// Values of a row computed at a time: with the rows they meet, these fit in the second-level cache.
const STRETCH: usize = 1024;

/// See the top of the file.
#[derive(Debug)]
pub(super) struct SharedRows<V> {
    kernel: Kernel,
    /// The rows in the order of the kernel values.
    points: Points,
    /// The place of each row in that order.
    place: Vec<u32>,
    /// k(x, x), in that order.
    own: Vec<f64>,
    /// Kernel rows, `TOGETHER` at a time.
    kept: Vec<OnceLock<Box<[V]>>>,
}

impl<V: Element> SharedRows<V> {
    /// The rows of these points. `order` lists all of them, those of one problem as near to each other as possible.
    pub(super) fn new(kernel: Kernel, points: &Points, order: &[usize], bytes: u64) -> SharedRows<V> {
        let points = points.select(order);
        let mut place = vec![0u32; order.len()];
        order.iter().enumerate().for_each(|(at, &row)| place[row] = at as u32);
        let block = (TOGETHER * points.rows().max(1) * size_of::<V>()) as u64;
        let most = usize::try_from(bytes / block).unwrap_or(usize::MAX);
        let kept = (0..points.rows().div_ceil(TOGETHER).min(most)).map(|_| OnceLock::new()).collect();
        SharedRows { own: points.diagonal(&kernel), kernel, points, place, kept }
    }

    /// A kernel row by its place, if it is kept. It is computed on this thread: another one may wait for it.
    fn row(&self, place: usize) -> Option<&[V]> {
        let (count, block) = (self.points.rows(), place / TOGETHER);
        let values = self.kept.get(block)?.get_or_init(|| {
            let ids: Vec<usize> = (block * TOGETHER..((block + 1) * TOGETHER).min(count)).collect();
            let mut values = vec![V::ZERO; ids.len() * count].into_boxed_slice();
            let mut rows: Vec<&mut [V]> = values.chunks_exact_mut(count).collect();
            for first in (0..count).step_by(STRETCH) {
                if self.points.are_abandoned() {
                    break;
                }
                let columns = first..(first + STRETCH).min(count);
                let mut outs: Vec<&mut [V]> = rows.iter_mut().map(|row| &mut row[columns.clone()]).collect();
                self.points.fill_columns(&self.kernel, &self.points, &ids, columns, &mut outs);
            }
            values
        });
        let at = place % TOGETHER * count;
        values.get(at..at + count)
    }
}

/// Kernel values between some of the rows.
#[derive(Debug)]
pub(super) struct SharedGram<V> {
    shared: Arc<SharedRows<V>>,
    /// The places of the rows.
    places: Vec<u32>,
    /// The stretches of places that hold them.
    stretches: Vec<Range<usize>>,
}

impl<V: Element> SharedGram<V> {
    /// These rows, by their numbers.
    pub(super) fn new(shared: &Arc<SharedRows<V>>, rows: impl Iterator<Item = usize>) -> SharedGram<V> {
        SharedGram::at(shared, rows.map(|row| shared.place[row]).collect())
    }

    fn at(shared: &Arc<SharedRows<V>>, places: Vec<u32>) -> SharedGram<V> {
        let mut sorted = places.clone();
        sorted.sort_unstable();
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for place in sorted.into_iter().map(|place| place as usize) {
            match stretches.last_mut() {
                Some(last) if last.end >= place => last.end = place + 1,
                _ => stretches.push(place..place + 1),
            }
        }
        SharedGram { shared: Arc::clone(shared), places, stretches }
    }
}

impl<V: Element> Gram<V> for SharedGram<V> {
    fn diagonal(&self) -> Vec<f64> {
        self.places.iter().map(|&place| self.shared.own[place as usize]).collect()
    }

    fn fill(&self, blocks: &[usize], mut outs: Vec<&mut [V]>) {
        let shared = &self.shared;
        let gather = |row: &[V], out: &mut [V]| {
            out.iter_mut().zip(&self.places).for_each(|(out, &place)| *out = row[place as usize]);
        };
        parallel::update(&mut outs, 1, |at, out| {
            let place = self.places[blocks[at]] as usize;
            if let Some(row) = shared.row(place) {
                return gather(row, out);
            }
            if shared.points.are_abandoned() {
                return;
            }
            let mut row = vec![V::ZERO; shared.points.rows()];
            for stretch in &self.stretches {
                let part = &mut row[stretch.clone()];
                shared.points.fill_columns(&shared.kernel, &shared.points, &[place], stretch.clone(), &mut [part]);
            }
            gather(&row, out);
        });
    }

    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_> {
        Box::new(SharedGram::at(&self.shared, blocks.iter().map(|&block| self.places[block]).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Scaling};
    use crate::random::Random;

    #[test]
    fn shared_rows_are_the_kernel_values_whether_kept_or_not() {
        let mut random = Random::new(4, 1, 0);
        let values: Vec<f64> = (0..900).map(|_| random.uniform()).collect();
        let matrix = Matrix::DenseF64(Dense::new(values, 300, 3).expect("valid"));
        let design = Scaling::default().apply(&matrix, None).expect("valid");
        let kernel = Kernel::Gaussian { gamma: 2.0 };
        let points = Points::new(&design, &kernel);
        let mut expected = vec![0.0; 300 * 300];
        let all: Vec<usize> = (0..300).collect();
        points.fill(&kernel, &points, &all, expected.chunks_exact_mut(300).collect());
        let order: Vec<usize> = (0..300).map(|at| at * 7 % 300).collect();
        let rows = [5, 3, 299, 250, 17, 18, 100];
        for bytes in [0, 2 * 64 * 300 * 8, 1 << 30] {
            let shared = Arc::new(SharedRows::<f64>::new(kernel.clone(), &points, &order, bytes));
            let gram = SharedGram::new(&shared, rows.into_iter());
            let chosen = gram.restricted(&[4, 0, 6]);
            let mut found = [0.0; 14];
            gram.fill(&[2, 4], found.chunks_exact_mut(7).collect());
            for (at, row) in [(0, 299), (1, 17)] {
                for (column, &other) in rows.iter().enumerate() {
                    assert!((found[at * 7 + column] - expected[row * 300 + other]).abs() < 1e-14);
                }
            }
            let mut found = [0.0; 3];
            chosen.fill(&[1], vec![&mut found]);
            let values = [17, 5, 100].map(|other| expected[5 * 300 + other]);
            assert!(found.iter().zip(values).all(|(a, b)| (a - b).abs() < 1e-14));
            assert_eq!(gram.diagonal(), [1.0; 7]);
        }
    }
}
