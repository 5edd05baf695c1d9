//! Scores of the rows of an example at a point, and what changes them: weights of the features, or an expansion over
//! kernels.
//!
//! With a kernel, w_o = Σ_j β_jo φ(x_j) for each score o. A point keeps the coefficients β and the scores s_jo of all rows.
//! To change the coefficients of an example takes the kernel rows of its rows and n additions for each of them and each
//! score that changes. Kernel rows are kept within a budget of bytes. Memory: 2·n·outputs numbers beside them.

use crate::data::Rows;
use crate::kernel::{Element, Kernel, Points, RowCache, add_row};
use crate::parallel;
use crate::solve::scaled_rows::{ScaledRows, Sums};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The weights of the features in the form in which they are changed row by row, or the scores of all rows with their
/// coefficients; and the weights of shared scores.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    v: Vec<f64>,
    sums: Sums,
    beta: Vec<f64>,
    pub(super) shared: Vec<f64>,
}

impl Point {
    /// Multiplies the point by a factor.
    pub(super) fn scale(&mut self, factor: f64) {
        let Point { v, sums, beta, shared } = self;
        v.iter_mut().chain(beta).chain(shared).for_each(|number| *number *= factor);
        sums.scale(factor);
    }

    /// Adds a multiple of another point.
    pub(super) fn add_times(&mut self, factor: f64, other: &Point) {
        let add = |to: &mut [f64], from: &[f64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
        add(&mut self.v, &other.v);
        add(&mut self.beta, &other.beta);
        add(&mut self.shared, &other.shared);
        self.sums.add_times(factor, &other.sums);
    }
}

/// The rows as the solver sees them. The solver itself is compiled once, for all layouts of the matrix.
pub(super) trait Space: Sync {
    /// Zero weights.
    fn zero(&self) -> Point;
    /// Writes the scores of some rows, those of one row side by side.
    fn scores(&self, rows: Range<usize>, at: &Point, out: &mut [f64]);
    /// Writes the scores of the rows of an example at the weights Σ step · x over these rows, with a step for each score.
    /// `scratch` is a zero point before and after.
    fn images(&self, rows: Range<usize>, steps: &[f64], scratch: &mut Point, out: &mut [f64]);
    /// Adds Σ step · x over these rows to the weights, with a step for each score.
    fn add(&self, rows: Range<usize>, steps: &[f64], to: &mut Point);
    /// The weights of the scaled features, or the coefficients of the rows, and ‖w‖² without shared scores.
    fn weights(&self, at: &Point) -> (Vec<f64>, f64);
    /// The scores of all rows, those of one row side by side, where the point holds them.
    fn all_scores(&self, _at: &Point) -> Vec<f64> {
        Vec::new()
    }
}

/// Rows of one layout.
pub(super) struct Laid<'a, R> {
    pub(super) rows: ScaledRows<'a, R>,
    pub(super) outputs: usize,
    pub(super) shared: usize,
}

impl<R: Rows> Laid<'_, R> {
    /// Calls `visit` with each row that has a step, and its steps.
    fn each(&self, rows: Range<usize>, steps: &[f64], mut visit: impl FnMut(usize, &[(u32, f64)])) {
        let mut own: Vec<(u32, f64)> = Vec::new();
        for (row, steps) in rows.zip(steps.chunks_exact(self.outputs)) {
            own.clear();
            own.extend((0u32..).zip(steps).filter(|(_, step)| **step != 0.0).map(|(output, step)| (output, *step)));
            if !own.is_empty() {
                visit(row, &own);
            }
        }
    }
}

impl<R: Rows> Space for Laid<'_, R> {
    fn zero(&self) -> Point {
        let v = vec![0.0; self.rows.design().cols() * self.outputs];
        Point { v, sums: self.rows.sums(self.outputs), beta: Vec::new(), shared: vec![0.0; self.shared] }
    }

    fn scores(&self, rows: Range<usize>, at: &Point, out: &mut [f64]) {
        for (row, out) in rows.zip(out.chunks_exact_mut(self.outputs)) {
            self.rows.scores(row, &at.v, &at.sums, out);
        }
    }

    fn images(&self, rows: Range<usize>, steps: &[f64], scratch: &mut Point, out: &mut [f64]) {
        self.add(rows.clone(), steps, scratch);
        self.scores(rows.clone(), scratch, out);
        let Point { v, sums, .. } = scratch;
        self.each(rows, steps, |row, _| self.rows.clear(row, (v, self.outputs), sums));
    }

    fn add(&self, rows: Range<usize>, steps: &[f64], to: &mut Point) {
        let Point { v, sums, .. } = to;
        self.each(rows, steps, |row, steps| self.rows.add_to_some(row, steps, (v, self.outputs), sums));
    }

    fn weights(&self, at: &Point) -> (Vec<f64>, f64) {
        let weights = self.rows.weights_of_outputs(&at.v, &at.sums, (self.outputs, self.outputs));
        let square = weights.iter().map(|weight| weight * weight).sum();
        (weights, square)
    }
}

/// Scores that are updated together. Fixed, so that the number of threads does not change the result.
const CHUNK: usize = 2048;

/// Kernel rows of an example that are computed together.
const TOGETHER: usize = 64;

/// Rows with their kernel.
pub(super) struct Expanding<'a, V> {
    kernel: &'a Kernel,
    points: &'a Points,
    cache: Mutex<&'a mut RowCache<V>>,
    outputs: usize,
    shared: usize,
}

impl<'a, V: Element> Expanding<'a, V> {
    pub(super) fn new(
        (kernel, points): (&'a Kernel, &'a Points),
        cache: &'a mut RowCache<V>,
        (outputs, shared): (usize, usize),
    ) -> Expanding<'a, V> {
        Expanding { kernel, points, cache: Mutex::new(cache), outputs, shared }
    }

    /// Scores are kept in one line for each output, which is filled up to whole chunks.
    fn line(&self) -> usize {
        self.points.rows().div_ceil(CHUNK) * CHUNK
    }
}

impl<V: Element> Space for Expanding<'_, V> {
    fn zero(&self) -> Point {
        Point {
            v: vec![0.0; self.line() * self.outputs],
            sums: Sums::default(),
            beta: vec![0.0; self.points.rows() * self.outputs],
            shared: vec![0.0; self.shared],
        }
    }

    fn scores(&self, rows: Range<usize>, at: &Point, out: &mut [f64]) {
        for (output, line) in at.v.chunks_exact(self.line().max(1)).enumerate() {
            let places = out.iter_mut().skip(output).step_by(self.outputs);
            places.zip(&line[rows.clone()]).for_each(|(out, score)| *out = *score);
        }
    }

    fn images(&self, rows: Range<usize>, steps: &[f64], _: &mut Point, out: &mut [f64]) {
        out.fill(0.0);
        let outputs = self.outputs;
        let moved: Vec<usize> =
            (0..rows.len()).filter(|&at| steps[at * outputs..][..outputs].iter().any(|step| *step != 0.0)).collect();
        let mut values = vec![V::ZERO; TOGETHER.min(moved.len()) * rows.len()];
        for moved in moved.chunks(TOGETHER) {
            let ids: Vec<usize> = moved.iter().map(|at| rows.start + at).collect();
            let mut lines: Vec<&mut [V]> = values.chunks_exact_mut(rows.len()).take(ids.len()).collect();
            self.points.fill_columns(self.kernel, self.points, &ids, rows.clone(), &mut lines);
            for (&at, line) in moved.iter().zip(&lines) {
                for (output, &step) in steps[at * outputs..][..outputs].iter().enumerate().filter(|own| *own.1 != 0.0) {
                    let places = out.iter_mut().skip(output).step_by(outputs);
                    places.zip(line.iter()).for_each(|(out, value)| *out += step * value.wide());
                }
            }
        }
    }

    fn add(&self, rows: Range<usize>, steps: &[f64], to: &mut Point) {
        let (outputs, count, per_line) = (self.outputs, self.points.rows(), self.line() / CHUNK);
        // What moves, by output.
        let mut moves: Vec<Vec<(usize, f64)>> = vec![Vec::new(); outputs];
        for (row, steps) in rows.zip(steps.chunks_exact(outputs)) {
            for (output, &step) in steps.iter().enumerate().filter(|own| *own.1 != 0.0) {
                moves[output].push((row, step));
                to.beta[row * outputs + output] += step;
            }
        }
        let mut moved: Vec<usize> = moves.iter().flatten().map(|entry| entry.0).collect();
        moved.sort_unstable();
        moved.dedup();
        // A panic while it was locked ended the run.
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        for moved in moved.chunks(cache.capacity().max(1)) {
            cache.prepare(moved, |missing, outs| self.points.fill(self.kernel, self.points, missing, outs));
            let cache = &**cache;
            let here = moved.first().copied().unwrap_or(0)..=moved.last().copied().unwrap_or(0);
            parallel::chunks(&mut to.v, CHUNK, |chunk, scores| {
                let (output, first) = (chunk / per_line, chunk % per_line * CHUNK);
                let columns = first..(first + CHUNK).min(count);
                let own = moves[output].iter().filter(|entry| here.contains(&entry.0));
                for &(row, step) in own {
                    add_row(&mut scores[..columns.len()], step, &cache.row(row)[columns.clone()]);
                }
            });
        }
    }

    fn weights(&self, at: &Point) -> (Vec<f64>, f64) {
        let scores = self.all_scores(at);
        (at.beta.clone(), at.beta.iter().zip(&scores).map(|(beta, score)| beta * score).sum())
    }

    fn all_scores(&self, at: &Point) -> Vec<f64> {
        let mut scores = vec![0.0; at.beta.len()];
        self.scores(0..self.points.rows(), at, &mut scores);
        scores
    }
}
