//! Kernel values between the blocks of a task, and the checks of their input.

use super::{Gram, SignedGram};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points};
use crate::parallel;
use std::sync::Arc;

/// Refuses rows that the kernel cannot be used with.
pub(crate) fn check_values(kernel: &Kernel, design: &Design) -> Result<()> {
    if *kernel == Kernel::Precomputed {
        return check_square(design);
    }
    if !kernel.needs_positive_rows() {
        return Ok(());
    }
    let mut values = vec![0.0; design.cols()];
    for row in 0..design.rows() {
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        if values.iter().any(|&value| value < 0.0) {
            return Err(Error::new(Code::BadSetting, "this kernel is for histograms, and there are negative values")
                .help("add ⟦scale=min-max⟧, or use ⟦kernel=gaussian⟧"));
        }
    }
    Ok(())
}

/// Refuses anything but a table of kernel values: one column per row, and symmetric. A first column may number the
/// rows.
fn check_square(design: &Design) -> Result<()> {
    let (rows, cols) = (design.rows(), design.cols());
    let refuse = |message: String| {
        Err(Error::new(Code::BadSetting, message).help(
            "⟦kernel=precomputed⟧ takes one column a row: column j of row i is k(x_i, x_j); a column 0 may hold the numbers of the rows",
        ))
    };
    if cols != rows && cols != rows + 1 {
        return refuse(format!("kernel values must be a square matrix, and there are {rows} rows with {cols} columns"));
    }
    let mut values = vec![0.0; cols];
    for row in (0..rows).filter(|_| cols > rows) {
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        if values[0] != (row + 1) as f64 {
            return refuse(format!(
                "the first column should number the rows from 1, and row {} has {}",
                row + 1,
                values[0]
            ));
        }
    }
    Ok(())
}

/// Refuses kernel values that are not symmetric.
pub(super) fn check_symmetric(points: &Points) -> Result<()> {
    let Some((row, column, one, other)) = points.asymmetric() else { return Ok(()) };
    let (row, column) = (row + 1, column + 1);
    let message = format!("kernel values must be symmetric, and rows {row} and {column} have {one} and {other}");
    Err(Error::new(Code::BadSetting, message).help("check how the kernel values were computed and written"))
}

/// Blocks that are rows.
pub(super) struct RowGram {
    pub(super) kernel: Kernel,
    pub(super) points: Arc<Points>,
}

impl<V: Element> Gram<V> for RowGram {
    fn diagonal(&self) -> Vec<f64> {
        self.points.diagonal(&self.kernel)
    }

    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>) {
        self.points.fill(&self.kernel, &self.points, blocks, outs);
    }

    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_> {
        Box::new(RowGram { kernel: self.kernel.clone(), points: Arc::new(self.points.select(blocks)) })
    }
}

/// Blocks that are differences of two rows: in feature space, k(x − z, x' − z') is a sum of four kernel values, which
/// are looked up in the kernel rows of the items involved.
pub(super) struct DifferenceGram {
    pub(super) kernel: Kernel,
    pub(super) points: Arc<Points>,
    pub(super) pairs: Vec<(usize, Option<usize>)>,
}

impl DifferenceGram {
    fn difference<V: Element>(&self, row: &[V], pair: usize) -> f64 {
        let (better, worse) = self.pairs[pair];
        row[better].wide() - worse.map_or(0.0, |worse| row[worse].wide())
    }
}

impl<V: Element> Gram<V> for DifferenceGram {
    fn diagonal(&self) -> Vec<f64> {
        let own = self.points.diagonal(&self.kernel);
        parallel::map(self.pairs.len(), |pair| {
            let (better, worse) = self.pairs[pair];
            // The result is discarded after a cancel, so its value does not matter.
            let Some(worse) = worse.filter(|_| !self.points.are_abandoned()) else { return own[better] };
            let mut value = [V::ZERO];
            self.points.fill_columns(&self.kernel, &self.points, &[better], worse..worse + 1, &mut [&mut value]);
            own[better] + own[worse] - 2.0 * value[0].wide()
        })
    }

    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>) {
        /// At most this many kernel values of items at a time, so that their rows stay small beside the row cache. At
        /// most `TOGETHER` pairs at a time.
        const AT_A_TIME: usize = 1 << 23;
        const TOGETHER: usize = 64;
        let length = self.points.rows();
        let together = (AT_A_TIME / (2 * length).max(1)).clamp(1, TOGETHER);
        let mut values = Vec::new();
        let mut outs = outs.into_iter();
        for blocks in blocks.chunks(together) {
            // The result is discarded after a cancel, so its value does not matter.
            if self.points.are_abandoned() {
                return;
            }
            let mut items: Vec<usize> =
                blocks.iter().flat_map(|&block| [Some(self.pairs[block].0), self.pairs[block].1]).flatten().collect();
            items.sort_unstable();
            items.dedup();
            values.resize(items.len() * length, V::ZERO);
            self.points.fill(&self.kernel, &self.points, &items, values.chunks_exact_mut(length).collect());
            let row_of =
                |item: usize| items.binary_search(&item).ok().map(|at| &values[at * length..(at + 1) * length]);
            let mut targets: Vec<&mut [V]> = outs.by_ref().take(blocks.len()).collect();
            parallel::update(&mut targets, 1, |at, out| {
                if self.points.are_abandoned() {
                    return;
                }
                let (better, worse) = self.pairs[blocks[at]];
                let (better, worse) = (row_of(better), worse.and_then(row_of));
                for (pair, out) in out.iter_mut().enumerate() {
                    let value = better.map_or(0.0, |row| self.difference(row, pair))
                        - worse.map_or(0.0, |row| self.difference(row, pair));
                    *out = V::narrow(value);
                }
            });
        }
    }

    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_> {
        let pairs = blocks.iter().map(|&block| self.pairs[block]).collect();
        Box::new(DifferenceGram { kernel: self.kernel.clone(), points: Arc::clone(&self.points), pairs })
    }
}

/// Kernel values between blocks, with their signs.
pub(super) struct SignedRows<'a> {
    pub(super) gram: &'a dyn Gram<f64>,
    /// a
    pub(super) coefficients: Vec<f64>,
    /// Multiplications that a kernel row takes.
    pub(super) cost: f64,
}

impl SignedGram for SignedRows<'_> {
    fn row(&self, block: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.coefficients.len()];
        self.gram.fill(&[block], vec![&mut row]);
        let own = self.coefficients[block];
        row.iter_mut().zip(&self.coefficients).for_each(|(value, other)| *value *= own * other);
        row
    }

    fn reached(&self, alpha: &[f64]) -> Vec<f64> {
        /// Rows computed at a time.
        const TOGETHER: usize = 64;
        let felt: Vec<usize> = (0..alpha.len()).filter(|&block| alpha[block] != 0.0).collect();
        let mut sums = vec![0.0; alpha.len()];
        for blocks in felt.chunks(TOGETHER) {
            let mut rows = vec![vec![0.0; alpha.len()]; blocks.len()];
            self.gram.fill(blocks, rows.iter_mut().map(Vec::as_mut_slice).collect());
            for (row, &block) in rows.iter().zip(blocks) {
                let share = alpha[block] * self.coefficients[block];
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += share * value);
            }
        }
        sums.iter().zip(&self.coefficients).map(|(sum, own)| own * sum).collect()
    }

    fn cost(&self) -> f64 {
        self.cost
    }
}
