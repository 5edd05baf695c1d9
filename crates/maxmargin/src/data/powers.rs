//! Multiplication by powers of two, for features so large or so small that their squares are not finite or vanish.
//!
//! A power of two changes the exponent of a number and none of its digits. Sums of squares of extreme numbers are
//! therefore taken of multiples of moderate size, and rows or columns of extreme size are stored as such multiples.
//! Numbers of moderate size are never touched, so that results for ordinary data stay the same, bit for bit.

use super::{Csr, Dense, Index, Matrix};
use crate::error::Result;
use crate::parallel;

/// Numbers between 2⁻³⁰⁰ and 2³⁰⁰ are moderate: sums of their squares, and products of two such squares, are finite and
/// not zero.
const MODERATE: i32 = 300;

/// 2 to the power of an exponent that the format can hold.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// `value · 2^exponent`.
pub(super) fn times_power(mut value: f64, mut exponent: i32) -> f64 {
    while exponent != 0 {
        let step = exponent.clamp(-1022, 1023);
        value *= power(step);
        exponent -= step;
    }
    value
}

/// The exponent of a number: 0 for a moderate one, for zero and for what is not finite. Otherwise `value · 2^-exponent` is
/// about 1.
pub(super) fn extreme_exponent(value: f64) -> i32 {
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let moderate = exponent.abs() <= MODERATE || value == 0.0 || !value.is_finite();
    if moderate { 0 } else { exponent }
}

/// Rows per task of a thread.
const CHUNK: usize = 1024;

/// A copy of a matrix of doubles whose entry in row i and column j is multiplied by `2^exponent(i, j)`.
pub(super) fn times_powers(matrix: &Matrix, exponent: impl Fn(usize, usize) -> i32 + Sync) -> Result<Matrix> {
    fn sparse<I: Index>(rows: &Csr<I, f64>, cols: usize, exponent: impl Fn(usize, usize) -> i32) -> Result<Csr<I, f64>>
    where
        super::Buffer<I>: From<Vec<I>>,
    {
        let starts = rows.starts().into_owned();
        let mut values = Vec::with_capacity(rows.values().len());
        for row in 0..starts.len().saturating_sub(1) {
            let (indices, own) = rows.row(row);
            let entries = indices.iter().zip(own);
            values.extend(entries.map(|(index, &value)| times_power(value, exponent(row, index.position()))));
        }
        Csr::new(starts, rows.indices().to_vec(), values, cols)
    }
    let cols = matrix.cols();
    Ok(match matrix {
        Matrix::DenseF64(rows) => {
            let mut values = rows.values().to_vec();
            parallel::chunks(&mut values, CHUNK * cols.max(1), |chunk, values| {
                for (row, values) in (chunk * CHUNK..).zip(values.chunks_exact_mut(cols.max(1))) {
                    let entries = values.iter_mut().enumerate();
                    entries.for_each(|(column, value)| *value = times_power(*value, exponent(row, column)));
                }
            });
            Matrix::DenseF64(Dense::new(values, matrix.rows(), cols)?)
        }
        Matrix::Csr16F64(rows) => Matrix::Csr16F64(sparse(rows, cols, exponent)?),
        Matrix::Csr32F64(rows) => Matrix::Csr32F64(sparse(rows, cols, exponent)?),
        // Squares of single-precision numbers are always moderate in double precision.
        single => single.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_change_exponents_only() {
        assert_eq!(times_power(3.0, 5), 96.0);
        assert_eq!(times_power(1.5, -1074 + 1), f64::from_bits(3));
        assert_eq!(times_power(f64::from_bits(3), 1073), 1.5);
        assert_eq!(times_power(f64::MIN_POSITIVE, 2045), 2f64.powi(1023));
        assert_eq!(times_power(0.1, 0), 0.1);
    }

    #[test]
    fn only_extreme_numbers_have_an_exponent() {
        for moderate in [0.0, -0.0, 1.0, -1e90, 1e-90, f64::INFINITY, f64::NAN] {
            assert_eq!(extreme_exponent(moderate), 0, "{moderate}");
        }
        for extreme in [1e200, -1e-200, f64::MAX, f64::MIN_POSITIVE] {
            let size = times_power(extreme.abs(), -extreme_exponent(extreme));
            assert!((1.0..2.0).contains(&size), "{extreme}");
        }
    }
}
