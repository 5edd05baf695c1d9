//! [`RunningMoments`]: mean and deviation of every feature over the rows seen so far, at a cost of O(entries) a row.
//!
//! ```text
//! n_j, m_j, q_j    number, mean and squared deviations of the entries of feature j that are present
//! mean_j = m_j · n_j / n        deviation_j² = (q_j + m_j² · n_j · (n − n_j) / n) / n
//! ```
//! An entry x updates its own feature alone (Welford, Note on a method for calculating corrected sums of squares and
//! products, Technometrics 4, 1962). The second line adds the n − n_j rows without an entry, which are zeros (Chan, Golub
//! and LeVeque, The American Statistician 37, 1983).
//!
//! Rows of dense data become (x − mean)/deviation. Sparse rows are divided only, since subtracting a mean would fill them.
//! A feature that did not vary yet becomes 0. The first block of a stream decides whether means are subtracted.

use super::state::OnlineState;
use crate::data::{Csr, Dense, Matrix, Scale, Scaling};
use crate::error::{Code, Error, Result};
use std::ops::Range;

/// See the top of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunningMoments {
    rows: u64,
    /// Whether means are subtracted; unknown before the first row.
    shifts: Option<bool>,
    counts: Vec<u64>,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl RunningMoments {
    /// Gets ready for rows of a matrix.
    pub(crate) fn meet(&mut self, matrix: &Matrix) {
        self.shifts.get_or_insert(matrix.is_dense());
        if matrix.cols() > self.counts.len() {
            self.counts.resize(matrix.cols(), 0);
            self.means.resize(matrix.cols(), 0.0);
            self.squares.resize(matrix.cols(), 0.0);
        }
    }

    /// Counts a row.
    pub(crate) fn add(&mut self, matrix: &Matrix, row: usize) -> Result<()> {
        self.rows += 1;
        let mut finite = true;
        let RunningMoments { counts, means, squares, .. } = self;
        matrix.each_in_row(row, |column, value| {
            // A row of a mapped file may name a column that is not there.
            let (Some(count), Some(mean), Some(square)) =
                (counts.get_mut(column), means.get_mut(column), squares.get_mut(column))
            else {
                return;
            };
            *count += 1;
            let difference = value - *mean;
            *mean += difference / *count as f64;
            *square += difference * (value - *mean);
            finite &= square.is_finite();
        });
        if finite {
            return Ok(());
        }
        Err(Error::new(Code::Overflow, format!("the squares of features overflowed at row {}", self.rows))
            .help("bring features to a common size, such as 0 to 1"))
    }

    /// The mean of a feature over all rows, and what deviations from it are multiplied by.
    #[inline]
    fn of(&self, column: usize) -> (f64, f64) {
        let (rows, present) = (self.rows as f64, self.counts[column] as f64);
        let share = present / rows;
        let (mean, absent) = (self.means[column], rows - present);
        let square = self.squares[column] + mean * mean * share * absent;
        let deviation = (square / rows).sqrt();
        let mean = mean * share;
        // As in training: a spread that only rounding explains is none.
        let factor = if deviation <= 1e-12 * mean.abs() { 0.0 } else { (1.0 / deviation).min(f64::MAX) };
        (mean, factor)
    }

    /// Appends a row as it is now scaled.
    fn put_row(&self, matrix: &Matrix, row: usize, out: &mut ScaledRows) {
        match out {
            ScaledRows::Sparse { starts, indices, values } => {
                matrix.each_in_row(row, |column, value| {
                    indices.push(column as u32);
                    values.push(value * self.of(column).1);
                });
                starts.push(values.len() as u64);
            }
            ScaledRows::Dense(values) => {
                let start = values.len();
                values.resize(start + matrix.cols(), 0.0);
                let own = &mut values[start..];
                matrix.each_in_row(row, |column, value| own[column] = value);
                own.iter_mut().enumerate().for_each(|(column, value)| {
                    let (mean, factor) = self.of(column);
                    *value = (*value - mean) * factor;
                });
            }
        }
    }

    /// The scaling that stands for these moments, for this number of features.
    pub(crate) fn scaling(&self, features: usize) -> Result<Scaling> {
        let known = self.counts.len().min(features);
        let of = |column: usize| if column < known && self.rows > 0 { self.of(column) } else { (0.0, 0.0) };
        let factors = (0..features).map(|column| of(column).1).collect();
        let shifts: Vec<f64> = (0..features).map(|column| of(column).0).collect();
        let shifts = Some(shifts).filter(|shifts| self.shifts == Some(true) && shifts.iter().any(|&mean| mean != 0.0));
        Scaling::from_parts(Scale::Standard, shifts, Some(factors), features)
    }

    /// Puts everything into a state, for this number of features.
    pub(crate) fn put(&self, features: usize, state: &mut OnlineState) {
        let (mut counts, mut moments) = (self.counts.clone(), self.means.clone());
        counts.resize(features, 0);
        moments.resize(features, 0.0);
        moments.extend(&self.squares);
        moments.resize(2 * features, 0.0);
        state.put_counts("scale-rows", vec![self.rows, u64::from(self.shifts == Some(true))]);
        state.put_counts("scale-counts", counts);
        state.put_reals("scale-moments", moments);
    }

    /// Takes it out again; none if it is invalid.
    pub(crate) fn take(state: &OnlineState) -> Option<RunningMoments> {
        let &[rows, shifts @ 0..=1] = state.counts("scale-rows")? else { return None };
        let counts = state.counts("scale-counts")?.to_vec();
        let moments = state.reals("scale-moments")?;
        if moments.len() != 2 * counts.len() || rows == 0 || counts.iter().any(|&count| count > rows) {
            return None;
        }
        let (means, squares) = moments.split_at(counts.len());
        let sound = moments.iter().all(|value| value.is_finite()) && squares.iter().all(|&square| square >= 0.0);
        let (means, squares) = (means.to_vec(), squares.to_vec());
        sound.then_some(RunningMoments { rows, shifts: Some(shifts == 1), counts, means, squares })
    }

    /// Number of features.
    pub(crate) fn features(&self) -> usize {
        self.counts.len()
    }
}

/// Rows that were scaled one after the other.
#[derive(Debug)]
enum ScaledRows {
    Dense(Vec<f64>),
    Sparse { starts: Vec<u64>, indices: Vec<u32>, values: Vec<f64> },
}

/// Scales examples in the order of a stream.
pub(crate) struct Scaler<'a> {
    moments: &'a mut RunningMoments,
    matrix: &'a Matrix,
    rows: ScaledRows,
    count: usize,
}

impl<'a> Scaler<'a> {
    /// A scaler of rows of this matrix, which counts on from these moments.
    pub(crate) fn new(moments: &'a mut RunningMoments, matrix: &'a Matrix) -> Scaler<'a> {
        moments.meet(matrix);
        let rows = match moments.shifts {
            Some(true) => ScaledRows::Dense(Vec::new()),
            _ => ScaledRows::Sparse { starts: vec![0], indices: Vec::new(), values: Vec::new() },
        };
        Scaler { moments, matrix, rows, count: 0 }
    }

    /// Counts the rows of an example, and then scales them.
    pub(crate) fn example(&mut self, rows: impl Iterator<Item = usize> + Clone) -> Result<()> {
        for row in rows.clone() {
            self.moments.add(self.matrix, row)?;
        }
        for row in rows {
            self.moments.put_row(self.matrix, row, &mut self.rows);
            self.count += 1;
        }
        Ok(())
    }

    /// The same for neighbouring rows that are an example each.
    pub(crate) fn each(&mut self, rows: Range<usize>) -> Result<()> {
        rows.into_iter().try_for_each(|row| self.example(std::iter::once(row)))
    }

    /// The moments so far.
    pub(crate) fn moments(&self) -> &RunningMoments {
        self.moments
    }

    /// The scaled rows.
    pub(crate) fn finish(self) -> Result<Matrix> {
        Ok(match self.rows {
            ScaledRows::Dense(values) => Matrix::DenseF64(Dense::new(values, self.count, self.matrix.cols())?),
            ScaledRows::Sparse { starts, indices, values } => {
                Matrix::Csr32F64(Csr::new(starts, indices, values, self.matrix.cols())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Mean and deviation by the definition, over full rows.
    fn by_hand(rows: &[Vec<f64>], column: usize) -> (f64, f64) {
        let n = rows.len() as f64;
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / n;
        (mean, (rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    fn rows(count: usize, cols: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed, 0, 0);
        let mut cell = || if random.uniform() < 0.6 { 0.0 } else { 3.0 + 5.0 * random.normal() };
        (0..count).map(|_| (0..cols).map(|_| cell()).collect()).collect()
    }

    fn sparse(rows: &[Vec<f64>]) -> Matrix {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            row.iter().enumerate().filter(|(_, value)| **value != 0.0).for_each(|(column, value)| {
                indices.push(column as u32);
                values.push(*value);
            });
            starts.push(values.len() as u64);
        }
        Matrix::Csr32F64(Csr::new(starts, indices, values, rows[0].len()).expect("valid"))
    }

    #[test]
    fn every_row_is_scaled_by_the_rows_up_to_it() {
        let rows = rows(40, 5, 1);
        let full = Matrix::DenseF64(Dense::new(rows.concat(), 40, 5).expect("valid"));
        for (matrix, shifts) in [(&full, true), (&sparse(&rows), false)] {
            let mut moments = RunningMoments::default();
            let mut scaler = Scaler::new(&mut moments, matrix);
            scaler.each(0..40).expect("finite");
            let scaled = scaler.finish().expect("valid");
            assert_eq!(scaled.is_dense(), shifts);
            for row in 0..40 {
                let mut found = [0.0; 5];
                scaled.each_in_row(row, |column, value| found[column] = value);
                for column in 0..5 {
                    let (mean, deviation) = by_hand(&rows[..=row], column);
                    let centred = rows[row][column] - if shifts { mean } else { 0.0 };
                    let wanted = if deviation < 1e-9 { 0.0 } else { centred / deviation };
                    assert!((found[column] - wanted).abs() < 1e-9, "{row}, {column}: {} {wanted}", found[column]);
                }
            }
            let scaling = moments.scaling(6).expect("valid");
            let (_, deviation) = by_hand(&rows, 2);
            assert!((scaling.factor().expect("factors")[2] - 1.0 / deviation).abs() < 1e-12);
            assert_eq!(scaling.factor().expect("factors")[5], 0.0);
            assert_eq!(scaling.shift().is_some(), shifts);
        }
    }

    #[test]
    fn all_rows_of_an_example_are_counted_before_they_are_scaled() {
        let rows = rows(12, 3, 2);
        let matrix = sparse(&rows);
        let mut moments = RunningMoments::default();
        let mut scaler = Scaler::new(&mut moments, &matrix);
        for start in [0, 4, 8] {
            scaler.example(start..start + 4).expect("finite");
        }
        let scaled = scaler.finish().expect("valid");
        let (_, deviation) = by_hand(&rows[..8], 1);
        scaled.each_in_row(5, |column, value| {
            if column == 1 {
                assert!((value - rows[5][1] / deviation).abs() < 1e-12);
            }
        });
    }

    #[test]
    fn a_state_is_taken_out_as_it_was_put_in_and_checked() {
        let rows = rows(9, 4, 3);
        let matrix = sparse(&rows);
        let mut moments = RunningMoments::default();
        let mut scaler = Scaler::new(&mut moments, &matrix);
        scaler.each(0..9).expect("finite");
        let mut state = OnlineState::default();
        moments.put(4, &mut state);
        assert_eq!(RunningMoments::take(&state), Some(moments.clone()));
        for (name, damaged) in [("scale-rows", vec![3, 0]), ("scale-rows", vec![9, 2]), ("scale-counts", vec![1, 1])] {
            let mut other = state.clone();
            other.put_counts(name, damaged);
            assert_eq!(RunningMoments::take(&other), None);
        }
        let mut other = state.clone();
        other.put_reals("scale-moments", vec![-1.0; 8]);
        assert_eq!(RunningMoments::take(&other), None);
    }

    #[test]
    fn squares_that_overflow_are_an_error() {
        let matrix = Matrix::DenseF64(Dense::new(vec![1e200, -1e200], 2, 1).expect("valid"));
        let mut moments = RunningMoments::default();
        let error = Scaler::new(&mut moments, &matrix).each(0..2).expect_err("too large");
        assert_eq!(error.code(), Code::Overflow);
    }
}
