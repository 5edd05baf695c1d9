//! [`ColumnSummary`]: what a scaling must know of all rows, computed in parts that are merged.
//!
//! Moments are merged by the formula of Chan, Golub & LeVeque (Algorithms for computing the sample variance, The
//! American Statistician 37, 1983): squared deviations add up, plus `δ² · n₁n₂ / (n₁ + n₂)` where δ is the difference of
//! the means. Cost: one pass over the rows for extremes, two for moments; two numbers a column. Columns so large or so
//! small that their squares are not finite or vanish take three more passes, over multiples by a power of two.

use super::powers::{extreme_exponent, times_power};
use super::scale::lanes;
use super::{Dataset, Matrix, Scale, Subset, counts};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::Cancel;
use serde::{Deserialize, Serialize};

/// What a scaling must know of each column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ColumnSummary {
    /// Nothing: the scaling is not learned.
    Nothing,
    /// For a mean of 0 and a standard deviation of 1.
    Moments {
        /// Number of rows.
        rows: f64,
        /// The mean of each column.
        mean: Vec<f64>,
        /// The sum of squared deviations from the mean, of each column, divided by `4^exponent`.
        squares: Vec<f64>,
        /// The exponent of each column: 0 unless the numbers are extremely large or small.
        exponents: Vec<i32>,
    },
    /// For a range.
    Extremes {
        /// Number of rows.
        rows: f64,
        /// The smallest value of each column.
        low: Vec<f64>,
        /// The largest.
        high: Vec<f64>,
    },
}

/// How often the cancel flag is read, in rows.
const POLL: usize = 4096;

impl ColumnSummary {
    /// The summary of some of the rows, or of all, that a scaling of this kind needs.
    pub fn of(kind: Scale, data: &Dataset, subset: Option<&Subset>, cancel: &Cancel) -> Result<ColumnSummary> {
        let matrix = data.matrix();
        matrix.check(0..matrix.rows())?;
        match kind {
            Scale::None | Scale::UnitRows | Scale::MinMaxPerQuery => Ok(ColumnSummary::Nothing),
            Scale::Standard => moments(matrix, subset, cancel),
            Scale::MinMax | Scale::MaxAbs => extremes(matrix, subset, cancel),
        }
    }

    /// The summary of the rows of both.
    pub fn merge(self, other: ColumnSummary) -> Result<ColumnSummary> {
        use ColumnSummary::{Extremes, Moments, Nothing};
        match (self, other) {
            (Nothing, Nothing) => Ok(Nothing),
            (
                Moments { rows: own, mut mean, mut squares, mut exponents },
                Moments { rows: more, mean: others, squares: spread, exponents: powers },
            ) if mean.len() == others.len() => {
                let rows = own + more;
                for column in (0..mean.len()).filter(|_| rows > 0.0) {
                    let one = Moment { mean: mean[column], square: squares[column], exponent: exponents[column] };
                    let other = Moment { mean: others[column], square: spread[column], exponent: powers[column] };
                    let both = one.merged(own, &other, more);
                    (mean[column], squares[column], exponents[column]) = (both.mean, both.square, both.exponent);
                }
                Ok(Moments { rows, mean, squares, exponents })
            }
            (Extremes { rows: own, low, high }, Extremes { rows: more, low: lower, high: higher })
                if low.len() == lower.len() =>
            {
                if own == 0.0 || more == 0.0 {
                    let (low, high) = if own == 0.0 { (lower, higher) } else { (low, high) };
                    return Ok(Extremes { rows: own + more, low, high });
                }
                let low = low.iter().zip(lower).map(|(a, b)| a.min(b)).collect();
                let high = high.iter().zip(higher).map(|(a, b)| a.max(b)).collect();
                Ok(Extremes { rows: own + more, low, high })
            }
            _ => Err(Error::new(Code::BadSetting, "the parts of the data have different numbers of features")
                .help("give all parts the same columns")),
        }
    }

    /// The standard deviation of a column, dividing by n; 0 where only rounding of the mean is left.
    pub(super) fn deviation(&self, column: usize) -> f64 {
        let ColumnSummary::Moments { rows, mean, squares, exponents } = self else { return 0.0 };
        let deviation = times_power((squares[column] / rows.max(1.0)).sqrt(), exponents[column]);
        if deviation <= 1e-12 * mean[column].abs() { 0.0 } else { deviation }
    }
}

/// Mean and squared deviations of one column; the squares are divided by `4^exponent`.
struct Moment {
    mean: f64,
    square: f64,
    exponent: i32,
}

impl Moment {
    /// The moments of the rows of both, given the number of rows of each.
    fn merged(&self, own: f64, other: &Moment, more: f64) -> Moment {
        let rows = own + more;
        // Halves, since the difference of the largest numbers is not finite.
        let half = other.mean / 2.0 - self.mean / 2.0;
        // Squares that are zero have no size, so that they do not decide on the exponent.
        let sizes = [(self.square, self.exponent), (other.square, other.exponent), (half, extreme_exponent(half))];
        let largest = sizes.iter().filter(|size| size.0 != 0.0).map(|size| size.1).max();
        let exponent = largest.unwrap_or(0);
        let difference = 2.0 * times_power(half, -exponent);
        let brought = |moment: &Moment| times_power(moment.square, 2 * (moment.exponent - exponent));
        Moment {
            mean: self.mean + times_power(difference * (more / rows), exponent),
            square: brought(self) + (brought(other) + difference * difference * (own * (more / rows))),
            exponent,
        }
    }
}

/// Rows, mean and squared deviations of each column, implicit zeros included.
fn moments(matrix: &Matrix, subset: Option<&Subset>, cancel: &Cancel) -> Result<ColumnSummary> {
    let cols = matrix.cols();
    let rows = subset.map_or(matrix.rows(), Subset::len) as f64;
    let mut exponents = vec![0; cols];
    let (mut mean, mut squares) = moments_of_multiples(matrix, subset, &exponents, cancel);
    // Squares of columns around a larger mean are zero only if the deviations do not count.
    let vanished = |mean: f64, square: f64| square < SMALLEST_SQUARE && mean.abs() < LARGEST_MEAN;
    let doubtful = |(mean, square): (&f64, &f64)| !square.is_finite() || vanished(*mean, *square);
    if matrix.is_double() && rows > 0.0 && mean.iter().zip(&squares).any(doubtful) {
        let ColumnSummary::Extremes { low, high, .. } = extremes(matrix, subset, cancel)? else {
            return Ok(ColumnSummary::Moments { rows, mean, squares, exponents });
        };
        let ranges = low.iter().zip(&high).map(|(low, high)| extreme_exponent(high.max(-low)));
        exponents = ranges.collect();
        if exponents.iter().any(|&exponent| exponent != 0) {
            (mean, squares) = moments_of_multiples(matrix, subset, &exponents, cancel);
            mean.iter_mut().zip(&exponents).for_each(|(mean, &exponent)| *mean = times_power(*mean, exponent));
        }
    }
    cancel.check()?;
    Ok(ColumnSummary::Moments { rows, mean, squares, exponents })
}

/// Sums of squares below this may have lost terms.
const SMALLEST_SQUARE: f64 = 1e-250;

/// Around a mean of this size, deviations with such squares are rounding.
const LARGEST_MEAN: f64 = 1e-100;

/// Mean and squared deviations of each column divided by `2^exponent`. The sums are incomplete after a cancel.
fn moments_of_multiples(
    matrix: &Matrix,
    subset: Option<&Subset>,
    exponents: &[i32],
    cancel: &Cancel,
) -> (Vec<f64>, Vec<f64>) {
    let (rows, cols) = (subset.map_or(matrix.rows(), Subset::len) as f64, matrix.cols());
    let residency = matrix.residency();
    let lanes = lanes(matrix.rows(), matrix);
    let sum_over = |term: &(dyn Fn(usize, f64, &mut [f64]) + Sync), width: usize| -> Vec<f64> {
        let parts: Vec<Vec<f64>> = parallel::map(lanes.len(), |lane| {
            let mut sums = vec![0.0; width];
            for row in lanes[lane].clone() {
                if row.is_multiple_of(POLL) && cancel.is_raised() {
                    break;
                }
                if counts(subset, row) {
                    matrix.each_in_row(row, |column, value| {
                        term(column, times_power(value, -exponents[column]), &mut sums);
                    });
                }
                residency.passed(row..row + 1);
            }
            sums
        });
        let mut total = vec![0.0; width];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        total
    };
    let mut mean = sum_over(&|column, value, sums| sums[column] += value, cols);
    // Without rows the mean is zero.
    mean.iter_mut().for_each(|sum| *sum /= rows.max(1.0));
    // Around the mean, so that a large mean does not swallow a small deviation; absent entries are added after.
    let squares = sum_over(
        &|column, value, sums| {
            sums[column] += (value - mean[column]).powi(2);
            sums[cols + column] += 1.0;
        },
        2 * cols,
    );
    let squares = (0..cols)
        .map(|column| {
            let absent = rows - squares[cols + column];
            squares[column] + absent * mean[column].powi(2)
        })
        .collect();
    (mean, squares)
}

/// Smallest and largest value of each column, implicit zeros included.
fn extremes(matrix: &Matrix, subset: Option<&Subset>, cancel: &Cancel) -> Result<ColumnSummary> {
    let cols = matrix.cols();
    let residency = matrix.residency();
    let lanes = lanes(matrix.rows(), matrix);
    let parts: Vec<(Vec<f64>, Vec<f64>, Vec<u64>)> = parallel::map(lanes.len(), |lane| {
        let (mut low, mut high) = (vec![f64::INFINITY; cols], vec![f64::NEG_INFINITY; cols]);
        let mut count = vec![0u64; cols];
        for row in lanes[lane].clone() {
            if row.is_multiple_of(POLL) && cancel.is_raised() {
                break;
            }
            if !counts(subset, row) {
                continue;
            }
            matrix.each_in_row(row, |column, value| {
                low[column] = low[column].min(value);
                high[column] = high[column].max(value);
                count[column] += 1;
            });
            residency.passed(row..row + 1);
        }
        (low, high, count)
    });
    let (mut low, mut high) = (vec![f64::INFINITY; cols], vec![f64::NEG_INFINITY; cols]);
    let mut count = vec![0u64; cols];
    for (part_low, part_high, part_count) in parts {
        for column in 0..cols {
            low[column] = low[column].min(part_low[column]);
            high[column] = high[column].max(part_high[column]);
            count[column] += part_count[column];
        }
    }
    let rows = subset.map_or(matrix.rows(), Subset::len) as u64;
    for column in 0..cols {
        if count[column] < rows.max(1) {
            low[column] = low[column].min(0.0);
            high[column] = high[column].max(0.0);
        }
    }
    cancel.check()?;
    Ok(ColumnSummary::Extremes { rows: rows as f64, low, high })
}
