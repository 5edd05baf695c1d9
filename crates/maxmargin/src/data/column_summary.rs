//! [`ColumnSummary`]: what a scaling must know of all rows, computed in parts that are merged.
//!
//! Moments are merged by the formula of Chan, Golub & LeVeque (Algorithms for computing the sample variance, The
//! American Statistician 37, 1983): squared deviations add up, plus `δ² · n₁n₂ / (n₁ + n₂)` where δ is the difference of
//! the means. Cost: one pass over the rows for extremes, two for moments; two numbers a column.

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
        /// The sum of squared deviations from the mean, of each column.
        squares: Vec<f64>,
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
            (Moments { rows: own, mut mean, mut squares }, Moments { rows: more, mean: others, squares: spread })
                if mean.len() == others.len() =>
            {
                let rows = own + more;
                for column in (0..mean.len()).filter(|_| rows > 0.0) {
                    let difference = others[column] - mean[column];
                    mean[column] += difference * (more / rows);
                    squares[column] += spread[column] + difference * difference * (own * (more / rows));
                }
                Ok(Moments { rows, mean, squares })
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
        let ColumnSummary::Moments { rows, mean, squares } = self else { return 0.0 };
        let deviation = (squares[column] / rows.max(1.0)).sqrt();
        if deviation <= 1e-12 * mean[column].abs() { 0.0 } else { deviation }
    }
}

/// Rows, mean and squared deviations of each column, implicit zeros included.
fn moments(matrix: &Matrix, subset: Option<&Subset>, cancel: &Cancel) -> Result<ColumnSummary> {
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
                    matrix.each_in_row(row, |column, value| term(column, value, &mut sums));
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
    cancel.check()?;
    Ok(ColumnSummary::Moments { rows, mean, squares })
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
