//! Feature scaling: learned on the training rows, stored in the model, applied wherever rows are scored.
//!
//! A [`Scaling`] is folded into weights and coefficients: `x' = (x − shift) · factor`, divided by the row's length for
//! unit rows. The stored matrix is copied in two cases only: min-max within each query cannot be folded into one weight
//! vector, and features so large or small that their squares overflow are stored times powers of two.

use super::powers::{extreme_exponent, times_power, times_powers};
use super::{ColumnSummary, Csr, Dataset, Dense, Groups, Index, Matrix, Rows, Subset, Value, with_rows};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::Cancel;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// How features are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// No scaling.
    #[default]
    None,
    /// Mean 0 and standard deviation 1.
    Standard,
    /// From 0 to 1.
    MinMax,
    /// Largest absolute value 1.
    MaxAbs,
    /// Each row to Euclidean length 1.
    UnitRows,
    /// From 0 to 1 within each query: the LETOR rule.
    MinMaxPerQuery,
}

impl Scale {
    /// All kinds of scaling.
    pub const ALL: [Scale; 6] =
        [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows, Scale::MinMaxPerQuery];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Scale::None => "none",
            Scale::Standard => "standard",
            Scale::MinMax => "min-max",
            Scale::MaxAbs => "max-abs",
            Scale::UnitRows => "unit-rows",
            Scale::MinMaxPerQuery => "min-max-per-query",
        }
    }
}

/// A scaling learned on training data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaling {
    kind: Scale,
    shift: Option<Arc<[f64]>>,
    factor: Option<Arc<[f64]>>,
}

impl Scaling {
    /// Learns the scaling from training data. A column that does not vary gets factor 0, because it carries no
    /// information.
    pub fn fit(kind: Scale, data: &Dataset, cancel: &Cancel) -> Result<Scaling> {
        Scaling::fit_on(kind, data, None, cancel)
    }

    /// Learns the scaling from some of the rows, or from all.
    pub fn fit_on(kind: Scale, data: &Dataset, subset: Option<&Subset>, cancel: &Cancel) -> Result<Scaling> {
        Ok(Scaling::of(kind, &ColumnSummary::of(kind, data, subset, cancel)?))
    }

    /// The scaling that a summary of the columns stands for.
    pub fn of(kind: Scale, columns: &ColumnSummary) -> Scaling {
        // The reciprocal of the smallest spreads is not finite; their columns are scaled as far as possible.
        let inverse = |spread: f64| if spread > 0.0 { (1.0 / spread).min(f64::MAX) } else { 0.0 };
        let (shift, factor) = match columns {
            ColumnSummary::Nothing => (None, None),
            ColumnSummary::Moments { mean, .. } => {
                let factor = (0..mean.len()).map(|column| inverse(columns.deviation(column))).collect();
                (Some(mean.clone()), Some(factor))
            }
            ColumnSummary::Extremes { low, high, .. } if kind == Scale::MinMax => {
                let factor = low.iter().zip(high).map(|(low, high)| match inverse(high - low) {
                    // The range of the largest numbers is not finite, but half of it is.
                    0.0 if high > low => inverse(high / 2.0 - low / 2.0) / 2.0,
                    factor => factor,
                });
                let factor = factor.collect();
                (Some(low.clone()), Some(factor))
            }
            ColumnSummary::Extremes { low, high, .. } => {
                (None, Some(low.iter().zip(high).map(|(low, high)| inverse(high.max(-low))).collect()))
            }
        };
        // A shift of zeros changes nothing, and sparse data often have one.
        let shift = shift.filter(|shift: &Vec<f64>| shift.iter().any(|&value| value != 0.0));
        Scaling { kind, shift: shift.map(Vec::into), factor: factor.map(Vec::into) }
    }

    /// A scaling from stored parts. Their lengths must be `cols`.
    pub fn from_parts(kind: Scale, shift: Option<Vec<f64>>, factor: Option<Vec<f64>>, cols: usize) -> Result<Scaling> {
        let fits =
            |part: &Option<Vec<f64>>| part.as_ref().is_none_or(|p| p.len() == cols && p.iter().all(|v| v.is_finite()));
        let wants_factor = matches!(kind, Scale::Standard | Scale::MinMax | Scale::MaxAbs);
        if !fits(&shift) || !fits(&factor) || factor.is_some() != wants_factor || (shift.is_some() && !wants_factor) {
            return Err(Error::new(Code::DamagedModel, "the scaling of the model does not fit its features"));
        }
        Ok(Scaling { kind, shift: shift.map(Vec::into), factor: factor.map(Vec::into) })
    }

    /// Whether the scaling depends on the rows it was learned from.
    pub fn is_learned(&self) -> bool {
        self.factor.is_some()
    }

    /// Which scaling this is.
    pub fn kind(&self) -> Scale {
        self.kind
    }

    /// What is subtracted from each column, if anything.
    pub fn shift(&self) -> Option<&[f64]> {
        self.shift.as_deref()
    }

    /// What each column is multiplied by, unless it is 1 everywhere.
    pub fn factor(&self) -> Option<&[f64]> {
        self.factor.as_deref()
    }

    /// The data after this scaling, for a learner or scorer.
    pub fn apply(&self, matrix: &Matrix, groups: Option<&Groups>) -> Result<Design> {
        matrix.check(0..matrix.rows())?;
        if self.kind == Scale::UnitRows {
            return unit_rows(matrix);
        }
        let exponents: Vec<i32> =
            self.factor.iter().flat_map(|factor| &**factor).map(|&f| extreme_exponent(f)).collect();
        if matrix.is_double() && exponents.iter().any(|&exponent| exponent != 0) {
            // Solvers square the factors. With columns of moderate size, factors and their squares are moderate too.
            let moved = |part: &Arc<[f64]>, sign: i32| {
                part.iter().zip(&exponents).map(|(&value, exponent)| times_power(value, sign * exponent)).collect()
            };
            return Ok(Design {
                matrix: times_powers(matrix, |_, column| exponents[column])?,
                shift: self.shift.as_ref().map(|shift| moved(shift, 1)),
                factor: self.factor.as_ref().map(|factor| moved(factor, -1)),
                row_factors: None,
            });
        }
        let matrix = if self.kind == Scale::MinMaxPerQuery {
            let groups = groups.ok_or_else(|| {
                Error::new(Code::NoGroups, "scaling within each query needs query ids, and the rows have none")
                    .help("add qid:ID to the rows, name the column with ⟦group⟧, or choose another ⟦scale⟧")
            })?;
            scale_within_groups(matrix, groups)?
        } else {
            matrix.clone()
        };
        Ok(Design { matrix, shift: self.shift.clone(), factor: self.factor.clone(), row_factors: None })
    }
}

/// Rows as a learner sees them: the stored matrix with a scaling folded in.
#[derive(Clone, Debug)]
pub struct Design {
    matrix: Matrix,
    shift: Option<Arc<[f64]>>,
    factor: Option<Arc<[f64]>>,
    row_factors: Option<Vec<f64>>,
}

/// Weights for the stored values, and what the shift adds to every score.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    /// The weights of one feature for all outputs are next to each other.
    weights: Vec<f64>,
    /// One for each output.
    offsets: Vec<f64>,
}

impl Folded {
    /// Number of scores per row.
    pub(super) fn outputs(&self) -> usize {
        self.offsets.len()
    }
}

impl Design {
    /// The stored values.
    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    pub(crate) fn rows(&self) -> usize {
        self.matrix.rows()
    }

    pub(crate) fn cols(&self) -> usize {
        self.matrix.cols()
    }

    pub(crate) fn shift(&self) -> Option<&[f64]> {
        self.shift.as_deref()
    }

    pub(crate) fn factor(&self) -> Option<&[f64]> {
        self.factor.as_deref()
    }

    /// Whether each row has its own factor.
    pub(super) fn scales_rows(&self) -> bool {
        self.row_factors.is_some()
    }

    #[inline]
    pub(crate) fn row_factor(&self, row: usize) -> f64 {
        self.row_factors.as_ref().map_or(1.0, |factors| factors[row])
    }

    /// The given rows in the given order, copied.
    pub(crate) fn select(&self, rows: &[usize]) -> Design {
        Design {
            matrix: self.matrix.select(rows),
            shift: self.shift.clone(),
            factor: self.factor.clone(),
            row_factors: self.row_factors.as_ref().map(|factors| rows.iter().map(|&row| factors[row]).collect()),
        }
    }

    /// Turns weights of the scaled features into weights of the stored values.
    pub(crate) fn fold(&self, weights: &[f64]) -> Folded {
        let weights = match &self.factor {
            None => weights.to_vec(),
            Some(factor) => weights.iter().zip(&**factor).map(|(w, f)| w * f).collect(),
        };
        let offset =
            self.shift.as_ref().map_or(0.0, |shift| -shift.iter().zip(&weights).map(|(m, w)| m * w).sum::<f64>());
        Folded { weights, offsets: vec![offset] }
    }

    /// The same for several scores per row. The weights of one feature for all of them are next to each other.
    pub(crate) fn fold_outputs(&self, weights: &[f64], outputs: usize) -> Folded {
        if outputs == 1 {
            return self.fold(weights);
        }
        let mut weights = weights.to_vec();
        if let Some(factor) = &self.factor {
            for (weights, factor) in weights.chunks_exact_mut(outputs).zip(&**factor) {
                weights.iter_mut().for_each(|weight| *weight *= factor);
            }
        }
        let mut offsets = vec![0.0; outputs];
        if let Some(shift) = &self.shift {
            for (weights, shift) in weights.chunks_exact(outputs).zip(&**shift) {
                offsets.iter_mut().zip(weights).for_each(|(offset, weight)| *offset -= shift * weight);
            }
        }
        Folded { weights, offsets }
    }

    /// Scores of a run of rows. The scores of one row are next to each other.
    pub(crate) fn scores(&self, rows: Range<usize>, folded: &Folded, out: &mut [f64]) {
        if folded.outputs() != 1 {
            return self.scores_of_outputs(rows, folded, out);
        }
        if let (Some(shift), true) = (&self.shift, self.matrix.is_dense()) {
            // Subtract large numbers from each other before anything else, to keep the digits.
            with_rows!(&self.matrix, m => for (row, out) in rows.zip(out) {
                *out = m.dot_shifted(row, shift, &folded.weights);
            });
            return;
        }
        self.matrix.scores(rows.clone(), &folded.weights, out);
        if let Some(factors) = &self.row_factors {
            for (score, factor) in out.iter_mut().zip(&factors[rows]) {
                *score *= factor;
            }
        } else if folded.offsets[0] != 0.0 {
            out.iter_mut().for_each(|score| *score += folded.offsets[0]);
        }
    }

    fn scores_of_outputs(&self, rows: Range<usize>, folded: &Folded, out: &mut [f64]) {
        let outputs = folded.outputs();
        if let (Some(shift), true) = (&self.shift, self.matrix.is_dense()) {
            with_rows!(&self.matrix, m => for (row, out) in rows.zip(out.chunks_exact_mut(outputs)) {
                m.dots_shifted(row, shift, &folded.weights, out);
            });
            return;
        }
        self.matrix.scores_of_outputs(rows.clone(), outputs, &folded.weights, out);
        for (row, out) in rows.zip(out.chunks_exact_mut(outputs)) {
            let factor = self.row_factor(row);
            out.iter_mut().zip(&folded.offsets).for_each(|(score, offset)| *score = factor * *score + offset);
        }
    }

    /// Scores of all rows, in parallel.
    pub(crate) fn all_scores(&self, weights: &[f64]) -> Vec<f64> {
        self.fill_scores(&self.fold(weights), || false)
    }

    /// Scores of all rows, or an error after a cancel.
    pub(crate) fn scores_until(&self, weights: &[f64], cancel: &Cancel) -> Result<Vec<f64>> {
        self.folded_scores_until(&self.fold(weights), cancel)
    }

    /// The same with weights that are already folded.
    pub(crate) fn folded_scores_until(&self, folded: &Folded, cancel: &Cancel) -> Result<Vec<f64>> {
        let scores = self.fill_scores(folded, || cancel.is_raised());
        cancel.check()?;
        Ok(scores)
    }

    /// Scores in chunks of rows, in parallel. Chunks that start after a cancel stay zero.
    fn fill_scores(&self, folded: &Folded, ended: impl Fn() -> bool + Sync) -> Vec<f64> {
        let outputs = folded.outputs();
        let mut scores = vec![0.0; self.rows() * outputs];
        parallel::chunks(&mut scores, RUN * outputs, |run, out| {
            if ended() {
                return;
            }
            let rows = run * RUN..run * RUN + out.len() / outputs;
            self.scores(rows.clone(), folded, out);
            self.passed(rows);
        });
        scores
    }

    /// Scores of the listed rows, with `outputs` scores per row, in parallel.
    pub(crate) fn scores_of(&self, rows: &[usize], weights: &[f64], outputs: usize) -> Vec<f64> {
        let folded = self.fold_outputs(weights, outputs);
        let mut scores = vec![0.0; rows.len() * outputs];
        parallel::chunks(&mut scores, RUN * outputs, |run, out| {
            for (&row, out) in rows[run * RUN..].iter().zip(out.chunks_exact_mut(outputs)) {
                self.scores(row..row + 1, &folded, out);
            }
        });
        scores
    }

    /// Reports that a pass in row order no longer needs these rows. If memory is limited, they are released.
    #[inline]
    pub(crate) fn passed(&self, rows: Range<usize>) {
        self.matrix.residency().passed(rows);
    }

    /// sum += Σ coefficient_i · stored row_i. This is the last use of these rows in a pass. Returns the sum of the
    /// coefficients, which [`Design::unfold`] needs.
    pub(crate) fn accumulate(&self, rows: Range<usize>, coefficients: &mut [f64], sum: &mut [f64]) -> f64 {
        if let Some(factors) = &self.row_factors {
            for (coefficient, factor) in coefficients.iter_mut().zip(&factors[rows.clone()]) {
                *coefficient *= factor;
            }
        }
        // Rows can be released after each stretch.
        for (stretch, coefficients) in coefficients.chunks(STRETCH).enumerate() {
            let start = rows.start + stretch * STRETCH;
            let stretch = start..start + coefficients.len();
            self.matrix.accumulate(stretch.clone(), coefficients, sum);
            self.passed(stretch);
        }
        if self.shift.is_some() { coefficients.iter().sum() } else { 0.0 }
    }

    /// The same for several scores per row, with the coefficients of one row next to each other: sum_(j, o) += Σ_i
    /// coefficient_(i, o) · x_ij. Adds the sum of the coefficients of each output to `totals`.
    pub(crate) fn accumulate_outputs(
        &self,
        rows: Range<usize>,
        coefficients: &mut [f64],
        sum: &mut [f64],
        totals: &mut [f64],
    ) {
        let outputs = totals.len();
        if outputs == 1 {
            totals[0] += self.accumulate(rows, coefficients, sum);
            return;
        }
        if let Some(factors) = &self.row_factors {
            for (coefficients, factor) in coefficients.chunks_exact_mut(outputs).zip(&factors[rows.clone()]) {
                coefficients.iter_mut().for_each(|coefficient| *coefficient *= factor);
            }
        }
        for (stretch, coefficients) in coefficients.chunks(STRETCH * outputs).enumerate() {
            let start = rows.start + stretch * STRETCH;
            let stretch = start..start + coefficients.len() / outputs;
            self.matrix.accumulate_outputs(stretch.clone(), outputs, coefficients, sum);
            self.passed(stretch);
        }
        if self.shift.is_some() {
            for coefficients in coefficients.chunks_exact(outputs) {
                totals.iter_mut().zip(coefficients).for_each(|(total, coefficient)| *total += coefficient);
            }
        }
    }

    /// Σ coefficient_i · scaled row_i over all rows, in parallel over lanes that depend only on the data.
    pub(crate) fn weighted_sum(&self, coefficients: &[f64]) -> Vec<f64> {
        self.weighted_sum_by(|row| coefficients[row])
    }

    /// The same, with a function that computes each coefficient, so that they are never all in memory.
    pub(crate) fn weighted_sum_by(&self, coefficient: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        self.weighted_sum_of(&|rows, coefficients| coefficients.extend(rows.map(&coefficient)))
    }

    /// The same, compiled once. `append` is called for each stretch of rows and adds their coefficients to the list.
    fn weighted_sum_of(&self, append: &(dyn Fn(Range<usize>, &mut Vec<f64>) + Sync)) -> Vec<f64> {
        let lanes = lanes(self.rows(), &self.matrix);
        let parts: Vec<(Vec<f64>, f64)> = parallel::map(lanes.len(), |lane| {
            let (mut sum, mut total, mut coefficients) = (vec![0.0; self.cols()], 0.0, Vec::new());
            for start in lanes[lane].clone().step_by(STRETCH) {
                let rows = start..(start + STRETCH).min(lanes[lane].end);
                coefficients.clear();
                append(rows.clone(), &mut coefficients);
                total += self.accumulate(rows, &mut coefficients, &mut sum);
            }
            (sum, total)
        });
        let mut sum = vec![0.0; self.cols()];
        let mut total = 0.0;
        for (part, part_total) in parts {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            total += part_total;
        }
        self.unfold(&mut sum, total);
        sum
    }

    /// Turns a sum over stored rows into one over scaled rows, given the total of the coefficients.
    pub(crate) fn unfold(&self, sum: &mut [f64], total: f64) {
        if let Some(shift) = &self.shift {
            sum.iter_mut().zip(&**shift).for_each(|(sum, shift)| *sum -= total * shift);
        }
        if let Some(factor) = &self.factor {
            sum.iter_mut().zip(&**factor).for_each(|(sum, factor)| *sum *= factor);
        }
    }

    /// The same for several scores per row, given the total of each output.
    pub(crate) fn unfold_outputs(&self, sum: &mut [f64], totals: &[f64]) {
        let outputs = totals.len();
        if outputs == 1 {
            return self.unfold(sum, totals[0]);
        }
        if let Some(shift) = &self.shift {
            for (sum, shift) in sum.chunks_exact_mut(outputs).zip(&**shift) {
                sum.iter_mut().zip(totals).for_each(|(sum, total)| *sum -= total * shift);
            }
        }
        if let Some(factor) = &self.factor {
            for (sum, factor) in sum.chunks_exact_mut(outputs).zip(&**factor) {
                sum.iter_mut().for_each(|sum| *sum *= factor);
            }
        }
    }

    /// Adds the weighted squares of a scaled row's entries to `sum`. Entries that are not stored are left out.
    pub(crate) fn add_squares(&self, row: usize, weight: f64, sum: &mut [f64]) {
        let row_factor = self.row_factor(row);
        self.matrix.each_in_row(row, |column, value| {
            // Another process may change the mapped file, so the index may have any value.
            let Some(sum) = sum.get_mut(column) else { return };
            let shifted = row_factor * value - self.shift.as_ref().map_or(0.0, |shift| shift[column]);
            let scaled = shifted * self.factor.as_ref().map_or(1.0, |factor| factor[column]);
            *sum += weight * scaled * scaled;
        });
    }

    /// The same for several scores per row, each with its own weight.
    pub(crate) fn add_squares_of_outputs(&self, row: usize, weights: &[f64], sum: &mut [f64]) {
        let (row_factor, outputs) = (self.row_factor(row), weights.len());
        self.matrix.each_in_row(row, |column, value| {
            let Some(sum) = sum.get_mut(column * outputs..).and_then(|sum| sum.get_mut(..outputs)) else { return };
            let shifted = row_factor * value - self.shift.as_ref().map_or(0.0, |shift| shift[column]);
            let scaled = shifted * self.factor.as_ref().map_or(1.0, |factor| factor[column]);
            sum.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * scaled * scaled);
        });
    }

    /// The entries of one scaled row, for scalings without a shift.
    pub(crate) fn scaled_entries(&self, row: usize, entries: &mut Vec<(usize, f64)>) {
        debug_assert!(self.shift.is_none());
        self.unshifted_entries(row, entries);
    }

    /// The entries of one scaled row without the shift, which cancels in differences.
    pub(super) fn unshifted_entries(&self, row: usize, entries: &mut Vec<(usize, f64)>) {
        let (row_factor, cols) = (self.row_factor(row), self.cols());
        entries.clear();
        self.matrix.each_in_row(row, |column, value| {
            // Another process may change the mapped file, so the index may have any value.
            if column < cols {
                entries.push((column, row_factor * value * self.factor.as_ref().map_or(1.0, |factor| factor[column])));
            }
        });
    }

    /// Whether copies of rows are stored in f64: those of f64 rows, and scaled rows, which f32 would round. What a kernel
    /// model states is then what its stored vectors give.
    fn keeps_double(&self) -> bool {
        self.matrix.is_double() || self.shift.is_some() || self.factor.is_some() || self.row_factors.is_some()
    }

    /// Some scaled rows, copied, in the stored precision.
    pub(crate) fn copied(&self, rows: &[usize]) -> Result<Matrix> {
        let cols = self.cols();
        if self.shift.is_some() || self.matrix.is_dense() {
            let mut values = vec![0.0; rows.len() * cols];
            for (&row, values) in rows.iter().zip(values.chunks_exact_mut(cols.max(1))) {
                self.fill_scaled_row(row, values);
            }
            return Ok(match self.keeps_double() {
                true => Matrix::DenseF64(Dense::new(values, rows.len(), cols)?),
                false => {
                    let values: Vec<f32> = values.into_iter().map(f32::narrow).collect();
                    Matrix::DenseF32(Dense::new(values, rows.len(), cols)?)
                }
            });
        }
        let (mut starts, mut indices, mut values, mut entries) = (vec![0u64], Vec::new(), Vec::new(), Vec::new());
        for &row in rows {
            self.scaled_entries(row, &mut entries);
            indices.extend(entries.iter().map(|entry| entry.0 as u32));
            values.extend(entries.iter().map(|entry| entry.1));
            starts.push(indices.len() as u64);
        }
        Ok(match self.keeps_double() {
            true => Matrix::Csr32F64(Csr::new(starts, indices, values, cols)?),
            false => {
                let values: Vec<f32> = values.into_iter().map(f32::narrow).collect();
                Matrix::Csr32F32(Csr::new(starts, indices, values, cols)?)
            }
        })
    }

    /// Writes one scaled row into `values`, which must be zero.
    pub(crate) fn fill_scaled_row(&self, row: usize, values: &mut [f64]) {
        let row_factor = self.row_factor(row);
        match &self.matrix {
            Matrix::DenseF32(rows) => {
                values.iter_mut().zip(rows.row(row)).for_each(|(slot, &value)| *slot = row_factor * f64::from(value));
            }
            matrix => matrix.each_in_row(row, |column, value| {
                // Another process may change the mapped file, so the index may have any value.
                if let Some(slot) = values.get_mut(column) {
                    *slot = row_factor * value;
                }
            }),
        }
        if let Some(shift) = &self.shift {
            values.iter_mut().zip(&**shift).for_each(|(value, shift)| *value -= shift);
        }
        if let Some(factor) = &self.factor {
            values.iter_mut().zip(&**factor).for_each(|(value, factor)| *value *= factor);
        }
    }
}

/// Number of rows that one thread scores or measures at a time.
const RUN: usize = 1024;

/// Number of rows that are processed together.
pub(crate) const STRETCH: usize = 4096;

/// The largest number of lanes.
pub(crate) const MOST_LANES: usize = 16;

/// Cuts `rows` rows of a matrix into lanes. Each lane has an accumulator with one number per column. There are enough
/// lanes for many cores, but fewer if the accumulators would be large or would cost as much as the rows. The number
/// depends only on the data, so that the result does not depend on the threads.
pub(crate) fn lanes(rows: usize, matrix: &Matrix) -> Vec<Range<usize>> {
    lanes_of_outputs(rows, matrix, 1)
}

/// The same for accumulators with `outputs` numbers per column.
pub(crate) fn lanes_of_outputs(rows: usize, matrix: &Matrix, outputs: usize) -> Vec<Range<usize>> {
    const LEAST_ROWS: usize = 256;
    const ACCUMULATORS: usize = 32 << 20;
    // Each entry takes about 8 bytes, and each lane takes 8 bytes per column.
    const ENTRIES_A_COLUMN: u64 = 64;
    let cols = matrix.cols().max(1);
    // Multiply before dividing, so that rows with less than one entry on average count too.
    let entries = u128::from(matrix.entries()) * rows as u128 / matrix.rows().max(1) as u128;
    let worthwhile = (entries / (u128::from(ENTRIES_A_COLUMN) * cols as u128)).clamp(2, MOST_LANES as u128) as usize;
    let most =
        (ACCUMULATORS / (cols * outputs)).clamp(2, MOST_LANES).min(worthwhile).min(rows.div_ceil(LEAST_ROWS)).max(1);
    // With a power of two, two or four cores all have work until the end.
    let count = 1 << most.ilog2();
    (0..count).map(|lane| lane * rows / count..(lane + 1) * rows / count).collect()
}

/// Rows divided by their Euclidean lengths. Rows whose squares are not finite or vanish are stored as multiples of
/// themselves by a power of two, which have the same direction.
fn unit_rows(matrix: &Matrix) -> Result<Design> {
    let squared_lengths = |matrix: &Matrix| {
        let mut squares = vec![0.0; matrix.rows()];
        let residency = matrix.residency();
        parallel::chunks(&mut squares, RUN, |run, squares| {
            with_rows!(matrix, rows => for (row, square) in (run * RUN..).zip(squares) {
                *square = rows.squared_norm(row);
                residency.passed(row..row + 1);
            });
        });
        squares
    };
    let mut squares = squared_lengths(matrix);
    let mut matrix = matrix.clone();
    if matrix.is_double() {
        let exponent = |row: usize| {
            let mut most = 0.0f64;
            matrix.each_in_row(row, |_, value| most = most.max(value.abs()));
            -extreme_exponent(most)
        };
        let extreme =
            |square: f64| !(f64::MIN_POSITIVE..f64::INFINITY).contains(&square) || extreme_exponent(square) != 0;
        let rows = squares.iter().enumerate();
        let exponents: Vec<i32> = rows.map(|(row, &square)| if extreme(square) { exponent(row) } else { 0 }).collect();
        if exponents.iter().any(|&exponent| exponent != 0) {
            matrix = times_powers(&matrix, |row, _| exponents[row])?;
            squares = squared_lengths(&matrix);
        }
    }
    let factors = squares.into_iter().map(f64::sqrt).map(|length| if length > 0.0 { 1.0 / length } else { 0.0 });
    Ok(Design { row_factors: Some(factors.collect()), matrix, shift: None, factor: None })
}

/// The share of the way from `low` to `high` at which a value is. `high` must be above `low`.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if (high - low).is_finite() {
        (value - low) / (high - low)
    } else {
        // The range of the largest numbers is not finite, but half of it is.
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    }
}

/// A matrix whose columns run from 0 to 1 within each group; a column constant in a group becomes 0 there.
fn scale_within_groups(matrix: &Matrix, groups: &Groups) -> Result<Matrix> {
    fn dense<V: Value>(m: &Dense<V>, cols: usize, groups: &Groups) -> Result<Dense<V>> {
        let mut values = m.values().to_vec();
        let mut blocks = Vec::with_capacity(groups.len());
        let mut rest = values.as_mut_slice();
        for range in groups.ranges() {
            let (block, after) = rest.split_at_mut(range.len() * cols);
            blocks.push(block);
            rest = after;
        }
        parallel::update(&mut blocks, 1, |_, block| {
            for column in 0..cols {
                let column_values = || block.iter().skip(column).step_by(cols).map(|value| value.wide());
                let low = column_values().fold(f64::INFINITY, f64::min);
                let high = column_values().fold(f64::NEG_INFINITY, f64::max);
                for value in block.iter_mut().skip(column).step_by(cols) {
                    *value = V::narrow(if high > low { share(value.wide(), low, high) } else { 0.0 });
                }
            }
        });
        Dense::new(values, groups.rows(), cols)
    }

    fn sparse<I: Index, V: Value>(m: &Csr<I, V>, cols: usize, groups: &Groups) -> Result<Csr<I, V>> {
        let scaled: Vec<Vec<Vec<(I, V)>>> = parallel::map(groups.len(), |group| {
            let range = groups.range(group);
            // For every column seen in the group: lowest value, highest value and count.
            let mut seen: std::collections::BTreeMap<I, (f64, f64, usize)> = std::collections::BTreeMap::new();
            for row in range.clone() {
                let (indices, values) = m.row(row);
                for (&index, value) in indices.iter().zip(values) {
                    let entry = seen.entry(index).or_insert((f64::INFINITY, f64::NEG_INFINITY, 0));
                    *entry = (entry.0.min(value.wide()), entry.1.max(value.wide()), entry.2 + 1);
                }
            }
            for entry in seen.values_mut() {
                if entry.2 < range.len() {
                    *entry = (entry.0.min(0.0), entry.1.max(0.0), entry.2);
                }
            }
            range
                .map(|row| {
                    let (indices, values) = m.row(row);
                    let mut at = 0;
                    let mut scaled = Vec::with_capacity(indices.len());
                    for (&column, &(low, high, _)) in &seen {
                        let present = at < indices.len() && indices[at] == column;
                        let value = if present { values[at].wide() } else { 0.0 };
                        at += usize::from(present);
                        if high > low && value > low {
                            scaled.push((column, V::narrow(share(value, low, high))));
                        }
                    }
                    scaled
                })
                .collect()
        });
        let mut starts = vec![0u64];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for row in scaled.into_iter().flatten() {
            for (index, value) in row {
                indices.push(index);
                values.push(value);
            }
            starts.push(indices.len() as u64);
        }
        Csr::new(starts, indices, values, cols)
    }

    let cols = matrix.cols();
    Ok(match matrix {
        Matrix::DenseF32(m) => Matrix::DenseF32(dense(m, cols, groups)?),
        Matrix::DenseF64(m) => Matrix::DenseF64(dense(m, cols, groups)?),
        Matrix::Csr16F32(m) => Matrix::Csr16F32(sparse(m, cols, groups)?),
        Matrix::Csr32F32(m) => Matrix::Csr32F32(sparse(m, cols, groups)?),
        Matrix::Csr16F64(m) => Matrix::Csr16F64(sparse(m, cols, groups)?),
        Matrix::Csr32F64(m) => Matrix::Csr32F64(sparse(m, cols, groups)?),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Names, Targets};
    use super::*;

    fn data(dense: bool) -> Dataset {
        let rows: Vec<Vec<(usize, f64)>> = vec![
            vec![(0, 1.0), (2, -4.0)],
            vec![(0, 3.0), (1, 2.0), (3, 7.0)],
            vec![(0, 5.0), (3, 7.0)],
            vec![(0, 2.0), (2, 1.0), (3, 7.0)],
        ];
        let matrix = if dense {
            let mut values = vec![0.0; 20];
            for (row, entries) in rows.iter().enumerate() {
                entries.iter().for_each(|&(column, value)| values[row * 5 + column] = value);
            }
            Matrix::DenseF64(Dense::new(values, 4, 5).expect("valid"))
        } else {
            Matrix::from_rows(&rows, 5).expect("valid")
        };
        let names: Names = ["a", "b"].into_iter().collect();
        Dataset::new(matrix, Targets::Absent)
            .and_then(|data| data.with_groups(Groups::new(vec![0, 2, 4], names)?))
            .expect("valid")
    }

    fn scaled_row(design: &Design, row: usize) -> Vec<f64> {
        let mut values = vec![0.0; design.cols()];
        design.fill_scaled_row(row, &mut values);
        values
    }

    fn scaled(kind: Scale, dense: bool) -> Vec<Vec<f64>> {
        let data = data(dense);
        let design = Scaling::fit(kind, &data, &Cancel::new())
            .and_then(|s| s.apply(data.matrix(), data.groups()))
            .expect("scales");
        (0..4).map(|row| scaled_row(&design, row)).collect()
    }

    #[test]
    fn sparse_and_dense_data_scale_alike() {
        for kind in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows, Scale::MinMaxPerQuery]
        {
            assert_eq!(scaled(kind, false), scaled(kind, true), "{kind:?}");
        }
    }

    #[test]
    fn each_scaling_does_what_it_says() {
        let standard = scaled(Scale::Standard, false);
        for column in 0..4 {
            let mean: f64 = standard.iter().map(|row| row[column]).sum::<f64>() / 4.0;
            let variance: f64 = standard.iter().map(|row| row[column].powi(2)).sum::<f64>() / 4.0;
            assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12);
        }
        assert!(standard.iter().all(|row| row[4] == 0.0), "a constant column carries nothing");
        for row in scaled(Scale::UnitRows, false) {
            assert!((row.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let within = scaled(Scale::MinMaxPerQuery, false);
        assert_eq!(within[0], vec![0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(within[1], vec![1.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(within[2], vec![1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(within[3], vec![0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn folded_products_equal_products_with_scaled_rows() {
        for kind in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
            let data = data(false);
            let design =
                Scaling::fit(kind, &data, &Cancel::new()).and_then(|s| s.apply(data.matrix(), None)).expect("scales");
            let w = [0.3, -1.0, 2.0, 0.7, 5.0];
            let scores = design.all_scores(&w);
            let mut coefficients = [0.5, -1.0, 2.0, 0.25];
            let mut sum = vec![0.0; 5];
            let total = design.accumulate(0..4, &mut coefficients, &mut sum);
            design.unfold(&mut sum, total);
            let mut expected = vec![0.0; 5];
            for (row, coefficient) in [0.5, -1.0, 2.0, 0.25].into_iter().enumerate() {
                let values = scaled_row(&design, row);
                let score: f64 = values.iter().zip(&w).map(|(x, w)| x * w).sum();
                assert!((score - scores[row]).abs() < 1e-12);
                expected.iter_mut().zip(values).for_each(|(e, x)| *e += coefficient * x);
            }
            for (a, b) in sum.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-12, "{kind:?}");
            }
        }
    }

    #[test]
    fn several_outputs_are_as_many_single_ones() {
        for (dense, kind) in [true, false].into_iter().flat_map(|dense| Scale::ALL.map(|kind| (dense, kind))) {
            let data = data(dense);
            for outputs in [2, 3, 5] {
                let scaling = Scaling::fit(kind, &data, &Cancel::new()).expect("fits");
                let design = scaling.apply(data.matrix(), data.groups()).expect("scales");
                let number = |at: usize| ((at * 29 % 17) as f64 - 8.0) / 3.0;
                let w: Vec<f64> = (0..5 * outputs).map(number).collect();
                let coefficients: Vec<f64> = (0..4 * outputs).map(|at| number(at + 5)).collect();
                let mut scores = vec![f64::NAN; 4 * outputs];
                design.scores(0..4, &design.fold_outputs(&w, outputs), &mut scores);
                let (mut sum, mut totals) = (vec![0.0; 5 * outputs], vec![0.0; outputs]);
                design.accumulate_outputs(0..4, &mut coefficients.clone(), &mut sum, &mut totals);
                design.unfold_outputs(&mut sum, &totals);
                let mut squares = vec![0.0; 5 * outputs];
                design.add_squares_of_outputs(1, &coefficients[..outputs], &mut squares);
                for output in 0..outputs {
                    let own = |all: &[f64]| all.iter().skip(output).step_by(outputs).copied().collect::<Vec<f64>>();
                    let close = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12);
                    assert!(close(own(&scores), design.all_scores(&own(&w))), "{kind:?} {dense}");
                    assert!(close(own(&sum), design.weighted_sum(&own(&coefficients))), "{kind:?} {dense}");
                    let mut single = vec![0.0; 5];
                    design.add_squares(1, coefficients[output], &mut single);
                    assert!(close(own(&squares), single), "{kind:?} {dense}");
                }
            }
        }
    }

    #[test]
    fn rows_of_less_than_one_entry_are_still_worth_several_lanes() {
        let rows: Vec<Vec<(usize, f64)>> =
            (0..20_000).map(|row| if row % 2 == 0 { vec![(row % 3, 1.0)] } else { vec![] }).collect();
        let matrix = Matrix::from_rows(&rows, 3).expect("valid");
        assert_eq!(lanes(20_000, &matrix).len(), 16);
    }
}
