//! Second derivatives of a [`LinearRisk`]: the whole Hessian, its products, and the block of the free scalars.
//!
//! ```text
//! H = Tᵀ · (D T) + penalty
//! ```
//! T has one line for each score: its derivative by every coordinate. For score o of row i that is x_ij at the weight
//! of feature j for o, and zero elsewhere; a free scalar changes no score. D is the Hessian of the task by the scores
//! and the free scalars. [`Curvature::curvature`] multiplies it by all coordinates at once. Lines of several parts are
//! gathered before they are multiplied. If rows are separate and have one score, and there is at most one free scalar,
//! D is a diagonal, and only rows with a nonzero second derivative are read. Cost: n · dim², n the number of scores, or
//! of such rows.

use super::super::normal_matrix::BATCH;
use super::super::{CurvedRisk, Preconditioner, Risk};
use super::{Lane, LinearRisk, TILE};
use crate::error::Result;
use crate::parallel;
use crate::task::{Curvature, Directions, Objective, Slopes};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};

/// The exact Hessian is formed up to this many coordinates. Data with few features often have nearly collinear
/// features, on which conjugate gradients need many products; one n·d² product then costs less.
pub(super) const EXACT_HESSIAN_DIM: usize = 600;

/// Sums the lower triangle of Tᵀ·O over tiles T and O of several neighbouring parts.
pub(super) struct Product {
    dim: usize,
    weights: usize,
    lines: usize,
    tile: Vec<f64>,
    out: Vec<f64>,
}

impl Product {
    pub(super) fn new(dim: usize, weights: usize) -> Product {
        Product { dim, weights, lines: 0, tile: Vec::new(), out: Vec::new() }
    }

    /// Zeroed tiles for `lines` more lines, to be filled.
    pub(super) fn next(&mut self, lines: usize, sum: &mut [f64]) -> (&mut [f64], &mut [f64]) {
        if self.lines > 0 && self.lines + lines > BATCH {
            self.flush(sum);
        }
        let before = self.lines * self.dim;
        self.lines += lines;
        self.tile.resize(self.lines * self.dim, 0.0);
        self.out.resize(self.lines * self.dim, 0.0);
        (&mut self.tile[before..], &mut self.out[before..])
    }

    /// Adds the product of the gathered lines to the first `weights` rows of `sum`.
    pub(super) fn flush(&mut self, sum: &mut [f64]) {
        let (lines, dim, weights) = (self.lines, self.dim, self.weights);
        if lines > 0 {
            triangular::matmul(
                MatMut::from_row_major_slice_mut(&mut sum[..weights * dim], weights, dim).subcols_mut(0, weights),
                BlockStructure::TriangularLower,
                Accum::Add,
                MatRef::from_row_major_slice(&self.tile, lines, dim).subcols(0, weights).transpose(),
                BlockStructure::Rectangular,
                MatRef::from_row_major_slice(&self.out, lines, dim).subcols(0, weights),
                BlockStructure::Rectangular,
                1.0,
                Par::Seq,
            );
        }
        self.lines = 0;
        self.tile.clear();
        self.out.clear();
    }
}

impl<T: Objective> LinearRisk<'_, T> {
    /// Adds up the symmetric matrices of all lanes, and the penalty. `work` fills the lower triangle of the weights and
    /// the rows of the thresholds.
    pub(super) fn sum_products(
        &mut self,
        work: impl Fn(&Self, &Lane<T::Memo>, &mut [f64], &mut [f64]) -> Result<()> + Sync,
    ) -> Result<Vec<f64>> {
        let (dim, weights) = (self.dim(), self.weights());
        let mut products = std::mem::take(&mut self.products);
        products.resize_with(self.lanes.len(), Vec::new);
        let this = &*self;
        let done = parallel::try_each_of(products.iter_mut().collect(), |lane, sum: &mut Vec<f64>| {
            sum.clear();
            sum.resize(dim * dim, 0.0);
            let (by_weight, by_threshold) = sum.split_at_mut(weights * dim);
            work(this, &this.lanes[lane], by_weight, by_threshold)
        });
        let mut matrix = vec![0.0; dim * dim];
        for part in &products {
            matrix.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        self.products = products;
        done?;
        for row in 0..dim {
            for column in 0..row {
                matrix[column * dim + row] = matrix[row * dim + column];
            }
        }
        for coordinate in 0..self.penalised() {
            matrix[coordinate * dim + coordinate] += self.penalty;
        }
        Ok(matrix)
    }

    /// Writes the scaled features of a row into zeroed lines of T, one for each of its scores. `features` is a work
    /// buffer.
    pub(super) fn fill_lines(&self, row: usize, features: &mut Vec<f64>, lines: &mut [f64]) {
        let (dim, cols) = (self.dim(), self.design.cols());
        if self.outputs == 1 {
            return self.design.fill_scaled_row(row, &mut lines[..cols]);
        }
        features.clear();
        features.resize(cols, 0.0);
        self.design.fill_scaled_row(row, features);
        for (output, line) in lines.chunks_exact_mut(dim).enumerate() {
            for (slot, &feature) in line[..self.weights()].iter_mut().skip(output).step_by(self.outputs).zip(&*features)
            {
                *slot = feature;
            }
        }
    }
}

/// Rows with fewer entries than this fraction (one in `SHORT_ROW`) of the columns are multiplied entry by entry. Longer
/// rows are multiplied as dense tiles, where an entry costs that much less.
const SHORT_ROW: u64 = 4;

impl<T: Curvature> LinearRisk<'_, T> {
    pub(super) fn has_short_rows(&self) -> bool {
        let matrix = self.design.matrix();
        self.design.shift().is_none() && matrix.entries() * SHORT_ROW < matrix.rows() as u64 * self.dim() as u64
    }

    /// Whether the Hessian by the scores is a diagonal, with at most one more row and column, or with those of cuts.
    pub(super) fn is_diagonal(&self) -> bool {
        self.task.rows_are_separate() && self.outputs == 1 && (self.task.thresholds() <= 1 || self.task.has_cuts())
    }

    /// The Hessian if it is a diagonal by the scores: Σ h x xᵀ over the rows with h ≠ 0.
    fn hessian_of_separate_rows(&mut self) -> Result<Vec<f64>> {
        let (dim, features) = (self.dim(), self.weights());
        let short = self.has_short_rows();
        self.sum_products(|this, lane, sum, thresholds| {
            let mut product = Product::new(dim, features);
            let (mut weights, mut cross, mut entries) = (Vec::new(), Vec::new(), Vec::new());
            let (cuts, mut bent) = (this.task.has_cuts(), Vec::new());
            for (at, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(at.part);
                weights.clear();
                weights.resize(rows.len(), 0.0);
                this.task.diagonal(&at, memo, &mut weights)?;
                cross.clear();
                cross.resize(rows.len(), 0.0);
                // There is at most one threshold, or there are cuts.
                if let (false, Some(corner)) = (cuts, thresholds.last_mut()) {
                    *corner += this.task.by_threshold(&at, memo, &mut cross)?;
                }
                for ((number, (row, &weight)), &cross) in rows.clone().zip(&weights).enumerate().zip(&cross) {
                    if weight == 0.0 {
                        continue;
                    }
                    // The lines of the thresholds that the row bends, and by how much.
                    bent.clear();
                    if cuts {
                        this.task.each_cut(&at, memo, number, &mut |cut, value| {
                            bent.push((cut, -value));
                            thresholds[cut * dim + features + cut] += value;
                        });
                    } else if !thresholds.is_empty() {
                        bent.push((0, cross));
                    }
                    if short {
                        this.design.scaled_entries(row, &mut entries);
                        add_entries(&entries, weight, dim, sum);
                        for &(line, cross) in &bent {
                            let line = &mut thresholds[line * dim..(line + 1) * dim];
                            for &(column, value) in &entries {
                                if let Some(sum) = line.get_mut(column) {
                                    *sum += cross * value;
                                }
                            }
                        }
                    } else {
                        let (values, out) = product.next(1, sum);
                        this.design.fill_scaled_row(row, &mut values[..features]);
                        out.iter_mut().zip(&*values).for_each(|(out, value)| *out = weight * value);
                        for &(line, cross) in &bent {
                            let line = &mut thresholds[line * dim..(line + 1) * dim];
                            line[..features].iter_mut().zip(&*values).for_each(|(line, value)| *line += cross * value);
                        }
                    }
                }
                this.design.passed(rows);
            }
            product.flush(sum);
            Ok(())
        })
    }

    /// The Hessian of separate rows with several scores: for each pair of scores, the sum of h x xᵀ over the rows whose
    /// second derivative h by these two scores is not zero. A free scalar is the weight of a feature of value 1.
    fn hessian_of_blocks(&mut self) -> Result<Vec<f64>> {
        let (dim, weights, outputs) = (self.dim(), self.weights(), self.outputs);
        let cols = self.design.cols();
        let width = cols + usize::from(dim > weights);
        // The coordinate of a feature (or of the constant, which comes last) for a score.
        let coordinate = |feature: usize, output: usize| feature * outputs + output;
        self.sum_products(|this, lane, sum, thresholds| {
            let mut blocks = vec![0.0; outputs * (outputs + 1) / 2 * width * width];
            let mut features = vec![1.0; width];
            for (at, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(at.part);
                for (number, row) in rows.clone().enumerate() {
                    let mut filled = false;
                    this.task.block(&at, memo, number, &mut |a, b, value| {
                        if !filled {
                            features[..cols].fill(0.0);
                            this.design.fill_scaled_row(row, &mut features[..cols]);
                            filled = true;
                        }
                        let block = &mut blocks[(a * (a + 1) / 2 + b) * width * width..][..width * width];
                        for (line, feature) in block.chunks_exact_mut(width).zip(&features) {
                            let weighted = value * feature;
                            if weighted != 0.0 {
                                line.iter_mut().zip(&features).for_each(|(sum, other)| *sum += weighted * other);
                            }
                        }
                    });
                }
                this.design.passed(rows);
            }
            for a in 0..outputs {
                for b in 0..=a {
                    let block = &blocks[(a * (a + 1) / 2 + b) * width * width..][..width * width];
                    for (at, value) in block.iter().enumerate() {
                        let (one, other) = (coordinate(at / width, a), coordinate(at % width, b));
                        // The block of (b, a) is the transpose; on the diagonal it is the block itself.
                        if a != b || one >= other {
                            let (line, column) = (one.max(other), one.min(other));
                            let place = if line < weights {
                                &mut sum[line * dim + column]
                            } else {
                                &mut thresholds[(line - weights) * dim + column]
                            };
                            *place += value;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// The Hessian through the task's products with all coordinates.
    fn hessian_of_products(&mut self) -> Result<Vec<f64>> {
        let (dim, weights) = (self.dim(), self.weights());
        // Along a threshold's coordinate no score changes, only that threshold.
        let mut along_thresholds = vec![0.0; (dim - weights) * dim];
        for threshold in 0..dim - weights {
            along_thresholds[threshold * dim + weights + threshold] = 1.0;
        }
        self.sum_products(|this, lane, sum, thresholds| {
            let mut product = Product::new(dim, weights);
            let mut features = Vec::new();
            for (at, memo) in this.remembered(lane) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(at.part);
                let (tile, out) = product.next(at.scores.len(), sum);
                for (row, lines) in rows.clone().zip(tile.chunks_exact_mut(dim * this.outputs)) {
                    this.fill_lines(row, &mut features, lines);
                }
                this.design.passed(rows);
                let along = Directions { count: dim, scores: tile, thresholds: &along_thresholds };
                this.task.curvature(&at, memo, &along, Slopes { scores: out, thresholds: &mut *thresholds })?;
            }
            product.flush(sum);
            Ok(())
        })
    }
}

/// Adds weight · x xᵀ to the lower triangle, x given by its entries.
fn add_entries(entries: &[(usize, f64)], weight: f64, dim: usize, sum: &mut [f64]) {
    for (at, &(column, value)) in entries.iter().enumerate() {
        // A memory-mapped file that changes during the run may hold any index, in any order.
        let Some(line) = sum.get_mut(column * dim..).and_then(|sum| sum.get_mut(..=column)) else {
            continue;
        };
        let weighted = weight * value;
        // Columns are in rising order within a row, so this is the lower triangle.
        for &(other, value) in &entries[..=at] {
            if let Some(sum) = line.get_mut(other) {
                *sum += weighted * value;
            }
        }
    }
}

impl<T: Curvature> CurvedRisk for LinearRisk<'_, T> {
    fn has_exact_hessian(&self) -> bool {
        let longest = (0..self.task.parts()).map(|part| self.task.rows(part).len()).max().unwrap_or(0);
        let listed = self.is_diagonal() || self.task.has_blocks();
        self.dim() <= EXACT_HESSIAN_DIM && (longest * self.outputs * self.dim() <= TILE || listed)
    }

    fn hessian(&mut self) -> Result<Vec<f64>> {
        if self.is_diagonal() {
            self.hessian_of_separate_rows()
        } else if self.task.has_blocks() {
            self.hessian_of_blocks()
        } else {
            self.hessian_of_products()
        }
    }

    /// Free scalars change no score, so this costs no pass over the features.
    fn free_hessian(&mut self) -> Result<Vec<f64>> {
        let free = self.dim() - self.penalised();
        let mut axes = vec![0.0; free * free];
        (0..free).for_each(|axis| axes[axis * free + axis] = 1.0);
        let this = &*self;
        let lanes = this.lanes.len();
        let parts: Vec<Vec<f64>> = parallel::try_map(lanes, |lane| {
            let (mut sums, mut still, mut out) = (vec![0.0; free * free], Vec::new(), Vec::new());
            for (at, memo) in this.remembered(&this.lanes[lane]) {
                // A cancelled evaluation has left no memos for the remaining parts.
                if free == 0 || this.cancel.is_raised() {
                    break;
                }
                still.resize(at.scores.len() * free, 0.0);
                out.resize(at.scores.len() * free, 0.0);
                let along = Directions { count: free, scores: &still, thresholds: &axes };
                this.task.curvature(&at, memo, &along, Slopes { scores: &mut out, thresholds: &mut sums })?;
            }
            Ok(sums)
        })?;
        let mut block = vec![0.0; free * free];
        for part in parts {
            block.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        Ok(block)
    }

    fn preconditioner(&mut self) -> Result<Preconditioner> {
        self.like_hessian()
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        let weights = self.weights();
        let folded = self.design.fold_outputs(&direction[..weights], self.outputs);
        let this = &*self;
        let sums = parallel::try_map(this.lanes.len(), |lane| {
            let mut sums = this.sums();
            let (mut moved, mut curved) = (Vec::new(), Vec::new());
            for (at, memo) in this.remembered(&this.lanes[lane]) {
                if this.cancel.is_raised() {
                    break;
                }
                let rows = this.task.rows(at.part);
                moved.resize(at.scores.len(), 0.0);
                this.part_scores(rows.clone(), &folded, &mut moved);
                curved.clear();
                curved.resize(at.scores.len(), 0.0);
                let (by_weight, by_threshold) = sums.gradient.split_at_mut(weights);
                let along = Directions { count: 1, scores: &moved, thresholds: &direction[weights..] };
                let slopes = Slopes { scores: &mut curved, thresholds: by_threshold };
                this.task.curvature(&at, memo, &along, slopes)?;
                this.accumulate(rows, &mut curved, by_weight, &mut sums.totals);
            }
            Ok(sums)
        })?;
        self.reduce(sums, out);
        let (penalised, penalty) = (self.penalised(), self.penalty);
        out[..penalised].iter_mut().zip(direction).for_each(|(out, d)| *out += penalty * d);
        Ok(())
    }
}
