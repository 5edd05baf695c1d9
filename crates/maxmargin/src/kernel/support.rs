//! [`Support`]: a changing set of vectors, and their kernel values with one row at a time, for online kernel learners.
//!
//! Values are stored feature by feature, with all vectors side by side. So a row with z entries needs z vectorised
//! passes for all vectors, whether it is sparse or not. Sparse rows of very many features are kept as lists instead:
//! for each feature, the vectors that have it.
//!
//! Dense rows give Gaussian distances by differences, which lose no digits; sparse rows by products and squares.

use super::points::finish_products;
use super::{Element, Kernel, Points};
use crate::data::row_loops::for_this_machine;
use crate::data::{Csr, Dense, Design, Matrix};
use crate::error::Result;
use std::ops::Range;

/// A row after scaling, columns in rising order; a dense row has all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Vector {
    entries: Vec<(u32, f64)>,
    /// ‖x‖², or Σ_j x_j for the kernels of histograms.
    size: f64,
}

/// See the top of the file.
#[derive(Debug)]
pub(crate) struct Support<T> {
    kernel: Kernel,
    cols: usize,
    dense: bool,
    layout: Layout<T>,
    vectors: Vec<Vector>,
    sizes: Vec<T>,
}

#[derive(Debug)]
enum Layout<T> {
    /// Feature by feature, with `places` places each, a multiple of [`LANES`].
    Table { places: usize, values: Vec<T> },
    /// For each feature the vectors that have it, in order.
    Lists(Lists<T>),
}

/// A list for each feature that some vector has. A feature costs nothing before.
#[derive(Debug)]
struct Lists<T> {
    /// The place of the list of each feature, counted from 1; 0 if there is none.
    places: Vec<u32>,
    lists: Vec<Vec<(u32, T)>>,
}

impl<T> Lists<T> {
    fn of(&self, feature: u32) -> &[(u32, T)] {
        match self.places[feature as usize] {
            0 => &[],
            place => &self.lists[place as usize - 1],
        }
    }

    fn made_for(&mut self, feature: u32) -> &mut Vec<(u32, T)> {
        let place = &mut self.places[feature as usize];
        if *place == 0 {
            self.lists.push(Vec::new());
            *place = self.lists.len() as u32;
        }
        &mut self.lists[*place as usize - 1]
    }
}

/// Vectors handled at a time: their sums stay in registers.
const LANES: usize = 64;

/// Sparse rows of more features than this are kept as lists: a table of them would be mostly zeros.
const MOST_TABLE_FEATURES: usize = 2048;

/// The term that the entries of a row and a vector add to the sum behind a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Product,
    Difference,
    Least,
    Harmonic,
}

impl Part {
    #[inline(always)]
    fn add<T: Element>(self, sum: T, x: T, z: T) -> T {
        match self {
            Part::Product => x.times_plus(z, sum),
            Part::Difference => {
                let apart = z.times_plus(T::narrow(-1.0), x);
                apart.times_plus(apart, sum)
            }
            Part::Least => T::narrow(x.wide().min(z.wide())).times_plus(T::narrow(1.0), sum),
            Part::Harmonic => {
                let (x, z) = (x.wide(), z.wide());
                T::narrow(if x + z > 0.0 { x * z / (x + z) } else { 0.0 }).times_plus(T::narrow(1.0), sum)
            }
        }
    }
}

impl<T: Element> Support<T> {
    /// An empty set of vectors, for rows stored like these.
    pub(crate) fn new(kernel: Kernel, points: &Points) -> Support<T> {
        Support::with_layout(kernel, points.cols(), !points.is_sparse(), points.cols() > MOST_TABLE_FEATURES)
    }

    fn with_layout(kernel: Kernel, cols: usize, dense: bool, wide: bool) -> Support<T> {
        let layout = match wide && !dense {
            true => Layout::Lists(Lists { places: vec![0; cols], lists: Vec::new() }),
            false => Layout::Table { places: 0, values: Vec::new() },
        };
        Support { kernel, cols, dense, layout, vectors: Vec::new(), sizes: Vec::new() }
    }

    /// The same without vectors.
    pub(crate) fn empty_copy(&self) -> Support<T> {
        Support::with_layout(self.kernel.clone(), self.cols, self.dense, matches!(self.layout, Layout::Lists(_)))
    }

    pub(crate) fn len(&self) -> usize {
        self.vectors.len()
    }

    pub(crate) fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// A row of the design, in the precision of the vectors.
    pub(crate) fn vector_of(&self, design: &Design, row: usize) -> Vector {
        let mut vector = Vector::default();
        if self.dense {
            let mut values = vec![0.0; self.cols];
            design.fill_scaled_row(row, &mut values);
            vector.entries.extend((0u32..).zip(values));
        } else {
            let mut entries = Vec::new();
            design.scaled_entries(row, &mut entries);
            vector.entries.extend(entries.into_iter().map(|(column, value)| (column as u32, value)));
        }
        self.finished(vector)
    }

    /// Rounds the values to the working precision and computes the size.
    fn finished(&self, mut vector: Vector) -> Vector {
        vector.entries.iter_mut().for_each(|entry| entry.1 = T::narrow(entry.1).wide());
        let values = vector.entries.iter().map(|entry| entry.1);
        vector.size = match self.kernel.is_of_products() {
            true => values.map(|value| value * value).sum(),
            false => values.sum(),
        };
        vector
    }

    /// share · one + (1 − share) · other
    pub(crate) fn between(&self, one: &Vector, other: &Vector, share: f64) -> Vector {
        let (mut ones, mut others) = (one.entries.iter().peekable(), other.entries.iter().peekable());
        let mut entries = Vec::with_capacity(one.entries.len() + other.entries.len());
        loop {
            let column = match (ones.peek(), others.peek()) {
                (Some(a), Some(b)) => a.0.min(b.0),
                (Some(a), None) => a.0,
                (None, Some(b)) => b.0,
                (None, None) => break,
            };
            let a = ones.next_if(|entry| entry.0 == column).map_or(0.0, |entry| entry.1);
            let b = others.next_if(|entry| entry.0 == column).map_or(0.0, |entry| entry.1);
            entries.push((column, share * a + (1.0 - share) * b));
        }
        self.finished(Vector { entries, size: 0.0 })
    }

    /// k(x, x)
    pub(crate) fn own(&self, vector: &Vector) -> f64 {
        self.kernel.of_itself(vector.size, || vector.size)
    }

    /// Adds a vector at the end.
    pub(crate) fn push(&mut self, vector: Vector) {
        let place = self.vectors.len();
        let cols = self.cols;
        if let Layout::Table { places, values } = &mut self.layout
            && place == *places
        {
            let more = (2 * *places).max(LANES);
            let mut wider = vec![T::ZERO; more * cols];
            if *places > 0 {
                for (to, from) in wider.chunks_exact_mut(more).zip(values.chunks_exact(*places)) {
                    to[..*places].copy_from_slice(from);
                }
            }
            (*places, *values) = (more, wider);
        }
        self.write(place, &vector.entries);
        self.sizes.push(T::narrow(vector.size));
        self.vectors.push(vector);
    }

    /// Replaces a vector.
    pub(crate) fn replace(&mut self, place: usize, vector: Vector) {
        let before = std::mem::take(&mut self.vectors[place].entries);
        self.erase(place, &before);
        self.write(place, &vector.entries);
        self.sizes[place] = T::narrow(vector.size);
        self.vectors[place] = vector;
    }

    /// Removes a vector; the last one moves to its place.
    pub(crate) fn swap_remove(&mut self, place: usize) {
        let last = self.vectors.len() - 1;
        let moved = std::mem::take(&mut self.vectors[last]);
        self.erase(last, &moved.entries);
        if place < last {
            self.replace(place, moved);
        }
        self.vectors.pop();
        self.sizes.pop();
    }

    /// Keeps the marked vectors, in their order.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        let mut kept = self.empty_copy();
        for (vector, _) in self.vectors.drain(..).zip(keep).filter(|(_, keep)| **keep) {
            kept.push(vector);
        }
        *self = kept;
    }

    pub(crate) fn clear(&mut self) {
        self.retain(&[]);
    }

    fn write(&mut self, place: usize, entries: &[(u32, f64)]) {
        match &mut self.layout {
            Layout::Table { places, values } => {
                for &(column, value) in entries {
                    values[column as usize * *places + place] = T::narrow(value);
                }
            }
            Layout::Lists(lists) => {
                for &(column, value) in entries.iter().filter(|entry| entry.1 != 0.0) {
                    let list = lists.made_for(column);
                    let at = list.partition_point(|entry| (entry.0 as usize) < place);
                    list.insert(at, (place as u32, T::narrow(value)));
                }
            }
        }
    }

    fn erase(&mut self, place: usize, entries: &[(u32, f64)]) {
        match &mut self.layout {
            Layout::Table { places, values } => {
                for &(column, _) in entries {
                    values[column as usize * *places + place] = T::ZERO;
                }
            }
            Layout::Lists(lists) => {
                for &(column, _) in entries {
                    lists.made_for(column).retain(|entry| entry.0 as usize != place);
                }
            }
        }
    }

    /// Appends the kernel values of a row with a range of the vectors to `out`.
    pub(crate) fn meet(&self, vector: &Vector, run: Range<usize>, out: &mut Vec<T>) {
        let part = match &self.kernel {
            Kernel::Gaussian { .. } if self.dense => Part::Difference,
            Kernel::ChiSquared { .. } => Part::Harmonic,
            Kernel::Intersection => Part::Least,
            _ => Part::Product,
        };
        let start = out.len();
        out.resize(start + run.len(), T::ZERO);
        let out = &mut out[start..];
        let mut sums = [T::ZERO; LANES];
        match &self.layout {
            Layout::Table { places, values } => {
                let mut at = run.start;
                while at < run.end {
                    // Whole lanes: the values before and after the range cost nothing.
                    let first = at / LANES * LANES;
                    let end = (first + LANES).min(run.end);
                    table_sums(part, &vector.entries, values, *places, first, &mut sums);
                    let here = &sums[at - first..end - first];
                    self.finish(part, here, vector.size, at..end, &mut out[at - run.start..end - run.start]);
                    at = end;
                }
            }
            Layout::Lists(lists) => {
                let mut sums = vec![T::ZERO; run.len()];
                for &(column, value) in &vector.entries {
                    let list = lists.of(column);
                    let first = list.partition_point(|entry| (entry.0 as usize) < run.start);
                    let value = T::narrow(value);
                    for &(place, other) in list[first..].iter().take_while(|entry| (entry.0 as usize) < run.end) {
                        let sum = &mut sums[place as usize - run.start];
                        *sum = part.add(*sum, value, other);
                    }
                }
                self.finish(part, &sums, vector.size, run.clone(), out);
            }
        }
    }

    /// Turns sums into kernel values.
    fn finish(&self, part: Part, sums: &[T], size: f64, run: Range<usize>, out: &mut [T]) {
        let sizes = &self.sizes[run];
        match (part, &self.kernel) {
            (Part::Difference, &Kernel::Gaussian { gamma }) => finish_distances(gamma, sums, out),
            (Part::Harmonic, &Kernel::ChiSquared { gamma }) => {
                for ((out, sum), other) in out.iter_mut().zip(sums).zip(sizes) {
                    // (x − z)²/(x + z) = x + z − 4xz/(x + z)
                    *out = T::narrow((-gamma * (size + other.wide() - 4.0 * sum.wide()).max(0.0)).exp());
                }
            }
            _ => finish_products(&self.kernel, sums, T::narrow(size), sizes, out),
        }
    }

    /// The vectors as a matrix, in their order.
    pub(crate) fn matrix_of(&self, vectors: &[Vector]) -> Result<Matrix> {
        matrix_of::<T>(vectors, self.cols, self.dense)
    }
}

fn matrix_of<T: Element>(vectors: &[Vector], cols: usize, dense: bool) -> Result<Matrix> {
    let narrow = size_of::<T>() == size_of::<f32>();
    let values: Vec<f64> = vectors.iter().flat_map(|vector| &vector.entries).map(|entry| entry.1).collect();
    let halved = |values: Vec<f64>| -> Vec<f32> { values.into_iter().map(|value| value as f32).collect() };
    if dense {
        return Ok(match narrow {
            true => Matrix::DenseF32(Dense::new(halved(values), vectors.len(), cols)?),
            false => Matrix::DenseF64(Dense::new(values, vectors.len(), cols)?),
        });
    }
    let indices: Vec<u32> = vectors.iter().flat_map(|vector| &vector.entries).map(|entry| entry.0).collect();
    let mut starts = vec![0u64];
    for vector in vectors {
        starts.push(starts.last().copied().unwrap_or(0) + vector.entries.len() as u64);
    }
    Ok(match narrow {
        true => Matrix::Csr32F32(Csr::new(starts, indices, halved(values), cols)?),
        false => Matrix::Csr32F64(Csr::new(starts, indices, values, cols)?),
    })
}

for_this_machine! {
    /// The sums of a row with the vectors from place `first` on.
    fn table_sums[T: Element](
        part: Part, entries: &[(u32, f64)], values: &[T], places: usize, first: usize, sums: &mut [T; LANES],
    ) -> () = table_sums_plainly
}

#[inline(always)]
fn table_sums_plainly<T: Element>(
    part: Part,
    entries: &[(u32, f64)],
    values: &[T],
    places: usize,
    first: usize,
    sums: &mut [T; LANES],
) {
    // One loop per kind, so that each is vectorised.
    match part {
        Part::Product => sums_of(Part::Product, entries, values, places, first, sums),
        Part::Difference => sums_of(Part::Difference, entries, values, places, first, sums),
        Part::Least => sums_of(Part::Least, entries, values, places, first, sums),
        Part::Harmonic => sums_of(Part::Harmonic, entries, values, places, first, sums),
    }
}

#[inline(always)]
fn sums_of<T: Element>(
    part: Part,
    entries: &[(u32, f64)],
    values: &[T],
    places: usize,
    first: usize,
    sums: &mut [T; LANES],
) {
    let mut own = [T::ZERO; LANES];
    for &(column, value) in entries {
        let start = column as usize * places + first;
        let Some(others) = values[start..].first_chunk::<LANES>() else { return };
        let value = T::narrow(value);
        for lane in 0..LANES {
            own[lane] = part.add(own[lane], value, others[lane]);
        }
    }
    *sums = own;
}

for_this_machine! {
    fn finish_distances[T: Element](gamma: f64, distances: &[T], out: &mut [T]) -> () = finish_distances_plainly
}

#[inline(always)]
fn finish_distances_plainly<T: Element>(gamma: f64, distances: &[T], out: &mut [T]) {
    let minus_gamma = T::narrow(-gamma);
    for (out, &distance) in out.iter_mut().zip(distances) {
        *out = minus_gamma.times_plus(distance, T::ZERO).exp();
    }
}

for_this_machine! {
    /// Σ_i coefficient_i · value_i
    pub(crate) fn weighted_sum[T: Element](coefficients: &[f64], values: &[T]) -> f64 = weighted_sum_plainly
}

#[inline(always)]
fn weighted_sum_plainly<T: Element>(coefficients: &[f64], values: &[T]) -> f64 {
    const SUMS: usize = 16;
    let mut sums = [0.0; SUMS];
    let (chunks, rest) = coefficients.as_chunks::<SUMS>();
    let (value_chunks, value_rest) = values[..coefficients.len()].as_chunks::<SUMS>();
    for (coefficients, values) in chunks.iter().zip(value_chunks) {
        for lane in 0..SUMS {
            sums[lane] += coefficients[lane] * values[lane].wide();
        }
    }
    for (lane, (coefficient, value)) in rest.iter().zip(value_rest).enumerate() {
        sums[lane] += coefficient * value.wide();
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::points::definition;
    use crate::random::Random;

    fn vector<T: Element>(support: &Support<T>, x: &[f64]) -> Vector {
        let entries = (0u32..).zip(x.iter().copied()).filter(|entry| support.dense || entry.1 != 0.0).collect();
        support.finished(Vector { entries, size: 0.0 })
    }

    #[test]
    fn kernel_values_of_changing_vectors_equal_the_definition() {
        let kernels = [
            Kernel::Linear,
            Kernel::Polynomial { gamma: 0.3, coef0: 1.0, degree: 3 },
            Kernel::Gaussian { gamma: 0.7 },
            Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
            Kernel::ChiSquared { gamma: 0.5 },
            Kernel::Intersection,
        ];
        for kernel in kernels {
            for (dense, wide) in [(true, false), (false, false), (false, true)] {
                check::<f32>(kernel.clone(), dense, wide, 2e-5);
                check::<f64>(kernel.clone(), dense, wide, 1e-12);
            }
        }
    }

    fn check<T: Element>(kernel: Kernel, dense: bool, wide: bool, tolerance: f64) {
        let mut random = Random::new(3, 9, 0);
        let cols = 7;
        let mut row = || -> Vec<f64> {
            (0..cols).map(|_| if random.chance(0.5) { 2.0 * random.uniform() } else { 0.0 }).collect()
        };
        let mut support: Support<T> = Support::with_layout(kernel.clone(), cols, dense, wide);
        let mut twin: Vec<Vec<f64>> = Vec::new();
        let same = |support: &Support<T>, twin: &[Vec<f64>], x: &[f64]| {
            let met = vector(support, x);
            assert!((support.own(&met) - definition(&kernel, x, x)).abs() < tolerance);
            for run in [0..twin.len(), twin.len() / 3..twin.len() / 2 + 1] {
                let mut values = vec![T::narrow(7.0)];
                support.meet(&met, run.clone(), &mut values);
                assert_eq!(values.len(), 1 + run.len());
                for (value, z) in values[1..].iter().zip(&twin[run]) {
                    assert!((value.wide() - definition(&kernel, x, z)).abs() < tolerance, "{kernel:?} {dense} {wide}");
                }
            }
        };
        for step in 0..200 {
            let x = row();
            match step % 5 {
                3 if twin.len() > 2 => {
                    let place = step % twin.len();
                    support.swap_remove(place);
                    twin.swap_remove(place);
                }
                4 if twin.len() > 2 => {
                    let (place, share) = (step % (twin.len() - 1), 0.3);
                    let merged = support.between(&vector(&support, &x), &support.vectors()[place].clone(), share);
                    twin[place] = x.iter().zip(&twin[place]).map(|(a, b)| share * a + (1.0 - share) * b).collect();
                    support.replace(place, merged);
                }
                _ => {
                    let new = vector(&support, &x);
                    support.push(new);
                    twin.push(x);
                }
            }
            if step == 120 {
                let keep: Vec<bool> = (0..twin.len()).map(|at| at % 3 != 1).collect();
                support.retain(&keep);
                let mut marks = keep.iter();
                twin.retain(|_| *marks.next().expect("as many"));
            }
            same(&support, &twin, &row());
        }
        let matrix = support.matrix_of(support.vectors()).expect("valid");
        for (at, z) in twin.iter().enumerate() {
            matrix.each_in_row(at, |column, value| assert!((value - z[column]).abs() < tolerance));
        }
    }
}
