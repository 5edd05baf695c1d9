//! [`Matrix`]: the stored features, dense or sparse, in one of six layouts.

use super::Buffer;
use super::residency::{Limited, Residency};
use super::row_loops::{self, Index, Value};
use crate::error::{Code, Error, Result};
use crate::parallel;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Verifies mapped memory when it is first read.
pub trait Guard: Send + Sync + fmt::Debug {
    /// Verifies those of the given rows that were not verified before.
    fn check(&self, rows: Range<usize>) -> Result<()>;
    /// Whether a row has been verified.
    fn is_checked(&self, row: usize) -> bool;
    /// Announces that these rows will be read soon.
    fn will_need(&self, _rows: Range<usize>) {}
    /// Releases the memory of these rows until they are read again.
    fn release(&self, _rows: Range<usize>) {}
    /// How much may be in memory at a time, if there is a limit.
    fn residency(&self) -> Option<Residency<'_>> {
        None
    }
}

/// Rows of equal length, one after the other.
#[derive(Clone, Debug)]
pub struct Dense<V> {
    values: Buffer<V>,
    rows: usize,
    cols: usize,
    guard: Option<Arc<dyn Guard>>,
}

impl<V: Value> Dense<V> {
    /// A dense matrix; the number of values must be a multiple of the number of columns.
    pub fn new(values: impl Into<Buffer<V>>, rows: usize, cols: usize) -> Result<Dense<V>> {
        let values = values.into();
        if rows.checked_mul(cols) != Some(values.len()) {
            return Err(Error::new(Code::Internal, format!("{} values cannot be {rows} rows of {cols}", values.len())));
        }
        Ok(Dense { values, rows, cols, guard: None })
    }

    /// Adds a guard over mapped memory.
    pub fn guarded(mut self, guard: Arc<dyn Guard>) -> Dense<V> {
        self.guard = Some(guard);
        self
    }

    /// One row.
    #[inline]
    pub fn row(&self, row: usize) -> &[V] {
        debug_assert!(self.guard.as_ref().is_none_or(|guard| guard.is_checked(row)));
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Number of values per row.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }
}

/// Where each row of a sparse matrix begins among the entries, and where the last one ends. Arrays of other programs
/// may use 32 bits; they are shared without conversion.
#[derive(Clone, Debug)]
pub enum Starts {
    /// Of 32 bits.
    Narrow(Buffer<u32>),
    /// Of 64 bits.
    Wide(Buffer<u64>),
}

impl Starts {
    #[inline(always)]
    fn at(&self, row: usize) -> usize {
        match self {
            Starts::Narrow(starts) => starts[row] as usize,
            Starts::Wide(starts) => starts[row] as usize,
        }
    }

    fn len(&self) -> usize {
        match self {
            Starts::Narrow(starts) => starts.len(),
            Starts::Wide(starts) => starts.len(),
        }
    }

    /// Whether no row ends before it begins.
    fn rise(&self) -> bool {
        parallel::all(self.len().saturating_sub(1), 1024, |row| self.at(row) <= self.at(row + 1))
    }

    fn bytes(&self) -> usize {
        match self {
            Starts::Narrow(starts) => size_of_val(&**starts),
            Starts::Wide(starts) => size_of_val(&**starts),
        }
    }

    /// All starts as 64 bits, copied if they are 32 bits.
    fn wide(&self) -> Cow<'_, [u64]> {
        match self {
            Starts::Narrow(starts) => starts.iter().map(|&start| u64::from(start)).collect(),
            Starts::Wide(starts) => Cow::Borrowed(starts),
        }
    }

    /// Prefetches the start of a row that is needed soon.
    #[inline(always)]
    fn prefetch(&self, row: usize) {
        match self {
            Starts::Narrow(starts) => row_loops::prefetch(starts, row),
            Starts::Wide(starts) => row_loops::prefetch(starts, row),
        }
    }
}

impl<B: Into<Buffer<u64>>> From<B> for Starts {
    fn from(starts: B) -> Starts {
        Starts::Wide(starts.into())
    }
}

/// Compressed sparse rows. Indices within a row increase.
#[derive(Clone, Debug)]
pub struct Csr<I, V> {
    starts: Starts,
    indices: Buffer<I>,
    values: Buffer<V>,
    cols: usize,
    guard: Option<Arc<dyn Guard>>,
}

impl<I: Index, V: Value> Csr<I, V> {
    /// Checks everything: starts that rise from 0 to the number of entries, indices that increase and stay below
    /// `cols`.
    pub fn new(
        starts: impl Into<Starts>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<V>>,
        cols: usize,
    ) -> Result<Csr<I, V>> {
        let matrix = Csr { starts: starts.into(), indices: indices.into(), values: values.into(), cols, guard: None };
        let entries = matrix.indices.len();
        let starts = &matrix.starts;
        let framed = starts.len() > 0
            && starts.at(0) == 0
            && starts.at(matrix.rows()) == entries
            && matrix.values.len() == entries
            && starts.rise();
        let ordered = framed
            && parallel::all(matrix.rows(), 64, |row| {
                let indices = matrix.row_parts(row).0;
                indices.windows(2).all(|pair| pair[0] < pair[1])
                    && indices.last().is_none_or(|last| last.position() < cols)
            });
        if !ordered {
            return Err(Error::new(Code::BadIndex, "the row starts or indices of the sparse matrix are not valid"));
        }
        Ok(matrix)
    }

    /// A matrix over mapped memory whose content `guard` verifies when it is first touched. Wrong content gives wrong
    /// scores, never an access outside the buffers.
    pub fn guarded(
        starts: Buffer<u64>,
        indices: Buffer<I>,
        values: Buffer<V>,
        cols: usize,
        guard: Arc<dyn Guard>,
    ) -> Csr<I, V> {
        Csr { starts: starts.into(), indices, values, cols, guard: Some(guard) }
    }

    /// A matrix without checks: the caller has already checked what [`Csr::new`] checks. Starts rise from 0 to the
    /// number of entries; the indices of each row increase and stay below `cols`.
    pub fn from_checked_parts(starts: Buffer<u64>, indices: Buffer<I>, values: Buffer<V>, cols: usize) -> Csr<I, V> {
        debug_assert!(starts.last() == Some(&(indices.len() as u64)) && values.len() == indices.len());
        Csr { starts: starts.into(), indices, values, cols, guard: None }
    }

    fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    #[inline]
    fn row_parts(&self, row: usize) -> (&[I], &[V]) {
        let range = self.starts.at(row)..self.starts.at(row + 1);
        // Another process may change the mapped file at any time, so these starts may have any value.
        match (self.indices.get(range.clone()), self.values.get(range)) {
            (Some(indices), Some(values)) => (indices, values),
            _ => (&[], &[]),
        }
    }

    /// Indices and values of one row.
    #[inline]
    pub fn row(&self, row: usize) -> (&[I], &[V]) {
        // Every public function calls `Matrix::check` first and reports damage as an error.
        debug_assert!(self.guard.as_ref().is_none_or(|guard| guard.is_checked(row)), "row {row} was not verified");
        self.row_parts(row)
    }

    /// The position of the first entry of each row, followed by the number of entries.
    pub fn starts(&self) -> Cow<'_, [u64]> {
        self.starts.wide()
    }

    /// The indices of all rows.
    pub fn indices(&self) -> &[I] {
        &self.indices
    }

    /// The values of all rows.
    pub fn values(&self) -> &[V] {
        &self.values
    }
}

/// What the hot loops need from a layout. Sealed: the layouts are those of [`Matrix`].
pub(crate) trait Rows: Sync {
    fn dot(&self, row: usize, w: &[f64]) -> f64;
    fn axpy(&self, row: usize, scale: f64, w: &mut [f64]);
    /// The same for several outputs. The weights of one feature for all outputs are next to each other.
    fn dots(&self, row: usize, w: &[f64], out: &mut [f64]);
    fn axpys(&self, row: usize, scales: &[f64], w: &mut [f64]);
    fn each(&self, row: usize, visit: impl FnMut(usize, f64));
    /// Prefetches a row that is needed soon.
    fn prefetch(&self, row: usize);
    /// Prefetches what locates the row, well before `prefetch`.
    fn prefetch_start(&self, _row: usize) {}
    fn squared_norm(&self, row: usize) -> f64 {
        let mut sum = 0.0;
        self.each(row, |_, value| sum += value * value);
        sum
    }
    /// w_j += scale · factors_j · x_j
    fn axpy_scaled(&self, row: usize, scale: f64, factors: &[f64], w: &mut [f64]) {
        self.each(row, |column, value| w[column] += scale * factors[column] * value);
    }
    /// Σ (x_j − shift_j) · w_j over the stored entries. A dense row stores all entries.
    fn dot_shifted(&self, row: usize, shift: &[f64], w: &[f64]) -> f64 {
        let mut sum = 0.0;
        self.each(row, |column, value| sum += (value - shift[column]) * w[column]);
        sum
    }
    /// The same for several outputs.
    fn dots_shifted(&self, row: usize, shift: &[f64], w: &[f64], out: &mut [f64]) {
        let outputs = out.len();
        out.fill(0.0);
        self.each(row, |column, value| {
            let value = value - shift[column];
            out.iter_mut().zip(&w[column * outputs..]).for_each(|(out, w)| *out += value * w);
        });
    }
    /// w_j += scale · factors_j · (x_j − shift_j) over the stored entries. A dense row stores all entries.
    fn axpy_shifted(&self, row: usize, scale: f64, factors: &[f64], shift: &[f64], w: &mut [f64]) {
        self.each(row, |column, value| w[column] += scale * factors[column] * (value - shift[column]));
    }
}

impl<V: Value> Rows for Dense<V> {
    #[inline(always)]
    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        row_loops::dense_dot(self.row(row), w)
    }
    #[inline(always)]
    fn axpy(&self, row: usize, scale: f64, w: &mut [f64]) {
        row_loops::dense_axpy(scale, self.row(row), w);
    }
    #[inline]
    fn dots(&self, row: usize, w: &[f64], out: &mut [f64]) {
        row_loops::dense_dots(self.row(row), w, out);
    }
    #[inline]
    fn axpys(&self, row: usize, scales: &[f64], w: &mut [f64]) {
        row_loops::dense_axpys(scales, self.row(row), w);
    }
    #[inline(always)]
    fn each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        for (column, value) in self.row(row).iter().enumerate() {
            visit(column, value.wide());
        }
    }
    #[inline]
    fn prefetch(&self, row: usize) {
        row_loops::prefetch_all(self.row(row));
    }
}

impl<I: Index, V: Value> Rows for Csr<I, V> {
    #[inline(always)]
    fn dot(&self, row: usize, w: &[f64]) -> f64 {
        let (indices, values) = self.row(row);
        row_loops::sparse_dot(indices, values, w)
    }
    #[inline(always)]
    fn axpy(&self, row: usize, scale: f64, w: &mut [f64]) {
        let (indices, values) = self.row(row);
        row_loops::sparse_axpy(scale, indices, values, w);
    }
    #[inline]
    fn dots(&self, row: usize, w: &[f64], out: &mut [f64]) {
        let (indices, values) = self.row(row);
        row_loops::sparse_dots(indices, values, w, out);
    }
    #[inline]
    fn axpys(&self, row: usize, scales: &[f64], w: &mut [f64]) {
        let (indices, values) = self.row(row);
        row_loops::sparse_axpys(scales, indices, values, w);
    }
    #[inline(always)]
    fn each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        let (indices, values) = self.row(row);
        for (&index, &value) in indices.iter().zip(values) {
            visit(index.position(), value.wide());
        }
    }
    #[inline]
    fn prefetch(&self, row: usize) {
        let (indices, values) = self.row(row);
        row_loops::prefetch_all(indices);
        row_loops::prefetch_all(values);
    }
    #[inline]
    fn prefetch_start(&self, row: usize) {
        self.starts.prefetch(row);
    }
}

/// The features of all rows: f32 or f64 values; dense, or sparse with the narrowest index type that fits.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// Dense, f32.
    DenseF32(Dense<f32>),
    /// Dense, f64.
    DenseF64(Dense<f64>),
    /// Sparse, u16 index, f32.
    Csr16F32(Csr<u16, f32>),
    /// Sparse, u32 index, f32.
    Csr32F32(Csr<u32, f32>),
    /// Sparse, u16 index, f64.
    Csr16F64(Csr<u16, f64>),
    /// Sparse, u32 index, f64.
    Csr32F64(Csr<u32, f64>),
}

/// Binds `$rows` to the concrete layout, so that the body is compiled for each.
macro_rules! with_rows {
    ($matrix:expr, $rows:ident => $body:expr) => {
        match $matrix {
            $crate::data::Matrix::DenseF32($rows) => $body,
            $crate::data::Matrix::DenseF64($rows) => $body,
            $crate::data::Matrix::Csr16F32($rows) => $body,
            $crate::data::Matrix::Csr32F32($rows) => $body,
            $crate::data::Matrix::Csr16F64($rows) => $body,
            $crate::data::Matrix::Csr32F64($rows) => $body,
        }
    };
}
pub(crate) use with_rows;

macro_rules! by_layout {
    ($matrix:expr, dense $dense:ident => $on_dense:expr, sparse $sparse:ident => $on_sparse:expr) => {
        match $matrix {
            Matrix::DenseF32($dense) => $on_dense,
            Matrix::DenseF64($dense) => $on_dense,
            Matrix::Csr16F32($sparse) => $on_sparse,
            Matrix::Csr32F32($sparse) => $on_sparse,
            Matrix::Csr16F64($sparse) => $on_sparse,
            Matrix::Csr32F64($sparse) => $on_sparse,
        }
    };
}

impl Matrix {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        by_layout!(self, dense m => m.rows, sparse m => m.rows())
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        by_layout!(self, dense m => m.cols, sparse m => m.cols)
    }

    /// Number of stored entries, zeros included.
    pub fn entries(&self) -> u64 {
        by_layout!(self, dense m => m.values.len() as u64, sparse m => m.values.len() as u64)
    }

    /// Where the rows of a sparse matrix begin, see [`Csr::starts`].
    pub fn starts(&self) -> Option<Cow<'_, [u64]>> {
        by_layout!(self, dense _m => None, sparse m => Some(m.starts()))
    }

    /// Bytes of the stored arrays.
    pub fn bytes(&self) -> u64 {
        by_layout!(self,
            dense m => size_of_val(&*m.values) as u64,
            sparse m => (size_of_val(&*m.values) + size_of_val(&*m.indices) + m.starts.bytes()) as u64)
    }

    /// Whether rows are dense.
    pub fn is_dense(&self) -> bool {
        matches!(self, Matrix::DenseF32(_) | Matrix::DenseF64(_))
    }

    /// Whether values are stored as f64.
    pub fn is_double(&self) -> bool {
        matches!(self, Matrix::DenseF64(_) | Matrix::Csr16F64(_) | Matrix::Csr32F64(_))
    }

    /// The layout in a few words, such as `sparse, u16 index, f32`.
    pub fn layout(&self) -> &'static str {
        match self {
            Matrix::DenseF32(_) => "dense, f32",
            Matrix::DenseF64(_) => "dense, f64",
            Matrix::Csr16F32(_) => "sparse, u16 index, f32",
            Matrix::Csr32F32(_) => "sparse, u32 index, f32",
            Matrix::Csr16F64(_) => "sparse, u16 index, f64",
            Matrix::Csr32F64(_) => "sparse, u32 index, f64",
        }
    }

    /// Verifies the given rows if they are mapped and were not verified before. Owned memory is always valid.
    pub fn check(&self, rows: Range<usize>) -> Result<()> {
        self.guard().map_or(Ok(()), |guard| guard.check(rows))
    }

    /// Announces that mapped rows will be read soon, so that the operating system can load them in advance.
    pub fn will_need(&self, rows: Range<usize>) {
        if let Some(guard) = self.guard() {
            guard.will_need(rows);
        }
    }

    /// Releases the memory of mapped rows. They can still be read, from the system's page cache or from disk.
    pub fn release(&self, rows: Range<usize>) {
        if let Some(guard) = self.guard() {
            guard.release(rows);
        }
    }

    /// Whether the rows are mapped, so that their memory can be released.
    pub fn is_mapped(&self) -> bool {
        self.guard().is_some()
    }

    /// Whether the memory of rows is released after a pass has used them.
    pub fn is_limited(&self) -> bool {
        self.residency().is_limited()
    }

    /// Limits the rows in memory to a few blocks of `block_bytes` bytes at a time. Rows that are not mapped stay in
    /// memory.
    pub fn limited(mut self, block_bytes: u64) -> Matrix {
        let (rows, bytes) = (self.rows(), self.bytes());
        let guard = by_layout!(&mut self, dense m => &mut m.guard, sparse m => &mut m.guard);
        if let Some(inner) = guard.take() {
            *guard = Some(Arc::new(Limited::new(inner, rows, bytes, block_bytes)));
        }
        self
    }

    /// Which rows stay in memory.
    pub(crate) fn residency(&self) -> Residency<'_> {
        self.guard().and_then(|guard| guard.residency()).unwrap_or_else(|| Residency::unlimited(self))
    }

    fn guard(&self) -> Option<&Arc<dyn Guard>> {
        by_layout!(self, dense m => m.guard.as_ref(), sparse m => m.guard.as_ref())
    }

    /// Calls `visit(column, value)` for each stored entry of a row.
    pub fn each_in_row(&self, row: usize, visit: impl FnMut(usize, f64)) {
        with_rows!(self, m => m.each(row, visit));
    }

    /// out_i = x_i · w for the given rows.
    pub fn scores(&self, rows: Range<usize>, w: &[f64], out: &mut [f64]) {
        assert!(out.len() == rows.len());
        with_rows!(self, m => for (row, out) in rows.zip(out) { *out = m.dot(row, w); });
    }

    /// sum += Σ coefficients_i · x_i over the given rows; rows with coefficient zero are not touched.
    pub fn accumulate(&self, rows: Range<usize>, coefficients: &[f64], sum: &mut [f64]) {
        assert!(coefficients.len() == rows.len());
        with_rows!(self, m => for (row, &coefficient) in rows.zip(coefficients) {
            if coefficient != 0.0 {
                m.axpy(row, coefficient, sum);
            }
        });
    }

    /// out_(i, o) = Σ_j x_ij · w_(j, o) for the given rows and this number of outputs, in one pass over each row. The
    /// weights of one feature are next to each other, and so are the scores of one row.
    pub fn scores_of_outputs(&self, rows: Range<usize>, outputs: usize, w: &[f64], out: &mut [f64]) {
        assert!(outputs > 0 && out.len() == rows.len() * outputs);
        with_rows!(self, m => for (row, out) in rows.zip(out.chunks_exact_mut(outputs)) { m.dots(row, w, out); });
    }

    /// sum_(j, o) += Σ_i coefficients_(i, o) · x_ij over the given rows. Rows whose coefficients are all zero are not
    /// touched.
    pub fn accumulate_outputs(&self, rows: Range<usize>, outputs: usize, coefficients: &[f64], sum: &mut [f64]) {
        assert!(outputs > 0 && coefficients.len() == rows.len() * outputs);
        with_rows!(self, m => for (row, coefficients) in rows.zip(coefficients.chunks_exact(outputs)) {
            if coefficients.iter().any(|&coefficient| coefficient != 0.0) {
                m.axpys(row, coefficients, sum);
            }
        });
    }

    /// Makes a matrix from rows of (column, value) in increasing column order, dense if that is smaller. It is meant
    /// for small data and tests; the readers fill the arrays themselves.
    pub fn from_rows(rows: &[Vec<(usize, f64)>], cols: usize) -> Result<Matrix> {
        let entries: usize = rows.iter().map(Vec::len).sum();
        if entries * 3 >= rows.len() * cols * 2 {
            let mut values = vec![0.0; rows.len() * cols];
            for (row, entries) in rows.iter().enumerate() {
                for &(column, value) in entries {
                    values[row * cols + column] = value;
                }
            }
            return Ok(Matrix::DenseF64(Dense::new(values, rows.len(), cols)?));
        }
        let mut starts = vec![0u64];
        let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        for row in rows {
            for &(column, value) in row {
                indices.push(column as u32);
                values.push(value);
            }
            starts.push(indices.len() as u64);
        }
        Ok(Matrix::Csr32F64(Csr::new(starts, indices, values, cols)?))
    }

    /// Neighbouring rows, verified, sharing the same memory. Only the row starts of a sparse matrix are copied.
    pub fn run(&self, rows: Range<usize>) -> Result<Matrix> {
        fn dense<V: Value>(m: &Dense<V>, rows: Range<usize>) -> Dense<V> {
            let values = m.values.slice(rows.start * m.cols..rows.end * m.cols);
            Dense { values, rows: rows.len(), cols: m.cols, guard: None }
        }
        fn sparse<I: Index, V: Value>(m: &Csr<I, V>, rows: Range<usize>) -> Csr<I, V> {
            // Another process may change the mapped file at any time, so these starts may have any value.
            let most = m.indices.len().min(m.values.len());
            let first = m.starts.at(rows.start).min(most);
            let last = m.starts.at(rows.end).clamp(first, most);
            let starts: Vec<u64> =
                (rows.start..=rows.end).map(|row| m.starts.at(row).clamp(first, last) as u64 - first as u64).collect();
            let (indices, values) = (m.indices.slice(first..last), m.values.slice(first..last));
            Csr { starts: starts.into(), indices, values, cols: m.cols, guard: None }
        }
        if rows.start > rows.end || rows.end > self.rows() {
            return Err(Error::new(Code::Internal, format!("rows {rows:?} of only {} were asked for", self.rows())));
        }
        self.check(rows.clone())?;
        Ok(match self {
            Matrix::DenseF32(m) => Matrix::DenseF32(dense(m, rows)),
            Matrix::DenseF64(m) => Matrix::DenseF64(dense(m, rows)),
            Matrix::Csr16F32(m) => Matrix::Csr16F32(sparse(m, rows)),
            Matrix::Csr32F32(m) => Matrix::Csr32F32(sparse(m, rows)),
            Matrix::Csr16F64(m) => Matrix::Csr16F64(sparse(m, rows)),
            Matrix::Csr32F64(m) => Matrix::Csr32F64(sparse(m, rows)),
        })
    }

    /// The same matrix with 32-bit indices, if it is sparse.
    fn with_wide_indices(&self) -> Matrix {
        fn widened<V: Value>(matrix: &Csr<u16, V>) -> Csr<u32, V> {
            let indices: Vec<u32> = matrix.indices.iter().map(|&index| u32::from(index)).collect();
            Csr {
                starts: matrix.starts.clone(),
                indices: indices.into(),
                values: matrix.values.clone(),
                cols: matrix.cols,
                guard: None,
            }
        }
        match self {
            Matrix::Csr16F32(matrix) => Matrix::Csr32F32(widened(matrix)),
            Matrix::Csr16F64(matrix) => Matrix::Csr32F64(widened(matrix)),
            other => other.clone(),
        }
    }

    /// The rows of several matrices with the same layout, or sparse ones with indices of different widths, one after the
    /// other, copied. The widest sparse matrix gives the number of columns; dense ones must be equally wide.
    pub fn join(parts: &[&Matrix]) -> Result<Matrix> {
        fn dense<V: Value>(parts: &[&Dense<V>]) -> Result<Dense<V>> {
            let cols = parts.first().map_or(0, |part| part.cols);
            let rows = parts.iter().map(|part| part.rows).sum();
            Dense::new(parts.iter().flat_map(|part| part.values.iter().copied()).collect::<Vec<V>>(), rows, cols)
        }
        fn sparse<I: Index, V: Value>(parts: &[&Csr<I, V>]) -> Csr<I, V> {
            let mut starts = vec![0u64];
            for part in parts {
                let before = starts.last().copied().unwrap_or(0);
                starts.extend((1..part.starts.len()).map(|row| before + part.starts.at(row) as u64));
            }
            let indices: Vec<I> = parts.iter().flat_map(|part| part.indices.iter().copied()).collect();
            let values: Vec<V> = parts.iter().flat_map(|part| part.values.iter().copied()).collect();
            let cols = parts.iter().map(|part| part.cols).max().unwrap_or(0);
            Csr::from_checked_parts(starts.into(), indices.into(), values.into(), cols)
        }
        macro_rules! joined {
            ($layout:ident, $join:expr) => {{
                let same = parts.iter().map(|part| match part {
                    Matrix::$layout(part) => Some(part),
                    _ => None,
                });
                same.collect::<Option<Vec<_>>>().map(|parts| $join(&parts))
            }};
        }
        for part in parts {
            part.check(0..part.rows())?;
        }
        // Blocks of a stream have short indices only as long as there are few columns.
        if parts.windows(2).any(|pair| pair[0].layout() != pair[1].layout()) {
            let widened: Vec<Matrix> = parts.iter().map(|part| part.with_wide_indices()).collect();
            if widened.windows(2).all(|pair| pair[0].layout() == pair[1].layout()) {
                return Matrix::join(&widened.iter().collect::<Vec<_>>());
            }
        }
        let joined = match parts.first() {
            None => None,
            Some(Matrix::DenseF32(_)) => joined!(DenseF32, dense).transpose()?.map(Matrix::DenseF32),
            Some(Matrix::DenseF64(_)) => joined!(DenseF64, dense).transpose()?.map(Matrix::DenseF64),
            Some(Matrix::Csr16F32(_)) => joined!(Csr16F32, sparse).map(Matrix::Csr16F32),
            Some(Matrix::Csr32F32(_)) => joined!(Csr32F32, sparse).map(Matrix::Csr32F32),
            Some(Matrix::Csr16F64(_)) => joined!(Csr16F64, sparse).map(Matrix::Csr16F64),
            Some(Matrix::Csr32F64(_)) => joined!(Csr32F64, sparse).map(Matrix::Csr32F64),
        };
        joined.ok_or_else(|| Error::new(Code::Internal, "matrices of different layouts cannot be joined"))
    }

    /// The given rows in the given order, copied.
    pub fn select(&self, rows: &[usize]) -> Matrix {
        fn dense<V: Value>(m: &Dense<V>, rows: &[usize]) -> Dense<V> {
            let mut values = Vec::with_capacity(rows.len() * m.cols);
            for &row in rows {
                values.extend_from_slice(m.row(row));
            }
            Dense { values: values.into(), rows: rows.len(), cols: m.cols, guard: None }
        }
        fn sparse<I: Index, V: Value>(m: &Csr<I, V>, rows: &[usize]) -> Csr<I, V> {
            let entries = rows.iter().map(|&row| m.starts.at(row + 1) - m.starts.at(row)).sum();
            let mut starts = Vec::with_capacity(rows.len() + 1);
            starts.push(0);
            let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
            for &row in rows {
                let (from_indices, from_values) = m.row(row);
                indices.extend_from_slice(from_indices);
                values.extend_from_slice(from_values);
                starts.push(indices.len() as u64);
            }
            Csr { starts: starts.into(), indices: indices.into(), values: values.into(), cols: m.cols, guard: None }
        }
        match self {
            Matrix::DenseF32(m) => Matrix::DenseF32(dense(m, rows)),
            Matrix::DenseF64(m) => Matrix::DenseF64(dense(m, rows)),
            Matrix::Csr16F32(m) => Matrix::Csr16F32(sparse(m, rows)),
            Matrix::Csr32F32(m) => Matrix::Csr32F32(sparse(m, rows)),
            Matrix::Csr16F64(m) => Matrix::Csr16F64(sparse(m, rows)),
            Matrix::Csr32F64(m) => Matrix::Csr32F64(sparse(m, rows)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_sparse_parts_are_refused() {
        assert!(Csr::<u16, f32>::new(vec![0, 2], vec![1, 1], vec![1.0, 2.0], 4).is_err());
        assert!(Csr::<u16, f32>::new(vec![0, 2], vec![2, 1], vec![1.0, 2.0], 4).is_err());
        assert!(Csr::<u16, f32>::new(vec![0, 2], vec![1, 4], vec![1.0, 2.0], 4).is_err());
        assert!(Csr::<u16, f32>::new(vec![0, 3], vec![1, 2], vec![1.0, 2.0], 4).is_err());
        assert!(Csr::<u16, f32>::new(vec![0, 2, 1, 2], vec![1, 2], vec![1.0, 2.0], 4).is_err());
        assert!(Csr::<u16, f32>::new(vec![0, 2, 2], vec![1, 3], vec![1.0, 2.0], 4).is_ok());
    }

    #[test]
    fn narrow_starts_are_the_same_rows() {
        let (indices, values) = (vec![0u32, 3, 1, 2, 3], vec![1.0f64, -2.0, 0.5, 4.0, 1.0]);
        let made = |starts: Starts| Csr::new(starts, indices.clone(), values.clone(), 6).map(Matrix::Csr32F64);
        let narrow = made(Starts::Narrow(vec![0, 2, 2, 5].into())).expect("valid");
        let wide = made(vec![0, 2, 2, 5].into()).expect("valid");
        assert!(narrow.bytes() < wide.bytes());
        let joined = |m: &Matrix| Matrix::join(&[m, m]).expect("joined");
        for change in [Matrix::clone, |m: &Matrix| m.run(1..3).expect("rows"), |m: &Matrix| m.select(&[2, 0]), joined] {
            let (narrow, wide) = (change(&narrow), change(&wide));
            assert_eq!(narrow.starts(), wide.starts());
            for row in 0..wide.rows() {
                let entries = |m: &Matrix| {
                    let mut entries = Vec::new();
                    m.each_in_row(row, |column, value| entries.push((column, value)));
                    entries
                };
                assert_eq!(entries(&narrow), entries(&wide));
            }
        }
        for starts in [vec![], vec![1, 2, 2, 5], vec![0, 2, 1, 5], vec![0, 2, 2, u32::MAX], vec![0, u32::MAX, 2, 5]] {
            assert!(made(Starts::Narrow(starts.into())).is_err());
        }
    }

    #[test]
    fn products_agree_between_layouts() {
        let rows = vec![vec![(0, 1.0), (3, -2.0)], vec![], vec![(1, 0.5), (2, 4.0), (3, 1.0)]];
        let sparse = Matrix::from_rows(&rows, 6).expect("valid");
        assert!(!sparse.is_dense());
        let mut dense = vec![0.0f64; 18];
        for (row, entries) in rows.iter().enumerate() {
            for &(column, value) in entries {
                dense[row * 6 + column] = value;
            }
        }
        let dense = Matrix::DenseF64(Dense::new(dense, 3, 6).expect("valid"));
        let w = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut a = [0.0; 3];
        let mut b = [0.0; 3];
        sparse.scores(0..3, &w, &mut a);
        dense.scores(0..3, &w, &mut b);
        assert_eq!(a, b);
        assert_eq!(a, [-7.0, 0.0, 17.0]);
        let (mut g, mut h) = ([0.0; 6], [0.0; 6]);
        sparse.accumulate(0..3, &[1.0, 2.0, 3.0], &mut g);
        dense.accumulate(0..3, &[1.0, 2.0, 3.0], &mut h);
        assert_eq!(g, h);
    }
}
