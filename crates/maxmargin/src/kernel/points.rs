//! [`Points`]: rows prepared for kernel values with each other, block by block.
//!
//! Dense rows are multiplied by blocked matrix products. Of sparse rows, sixteen at a time are expanded, column by
//! column, and every other row goes through its entries once for all sixteen. A block of inner products becomes kernel
//! values while it is in cache. Numbers are f32, or f64 if rows are few or distances would be lost in the rounding of
//! large squares.

use super::exponential::exp;
use super::{CustomKernel, Kernel};
use crate::data::Design;
use crate::data::row_loops::for_this_machine;
use crate::parallel;
use crate::run::Cancel;
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::Llt;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use std::cell::Cell;
use std::ops::Range;
use std::thread::LocalKey;

/// Rows in the feature space, as a learner or scorer sees them.
#[derive(Debug)]
pub(crate) struct Points {
    rows: usize,
    cols: usize,
    layout: Layout,
    /// Subtracted from every row, which changes no distance and keeps squares small.
    centre: Option<Vec<f64>>,
    /// Whether these are not rows but kernel values between rows, one column per row.
    values: bool,
    /// After a cancel, values are no longer computed.
    cancel: Cancel,
}

#[derive(Debug)]
enum Layout {
    Narrow(Entries<f32>),
    Wide(Entries<f64>),
}

#[derive(Debug)]
pub(crate) struct Entries<T> {
    form: Form<T>,
    /// ‖x‖² of each row.
    squares: Vec<T>,
}

#[derive(Debug)]
enum Form<T> {
    /// Row by row.
    Dense(Vec<T>),
    Sparse {
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    },
}

impl<T: Element> Entries<T> {
    /// Columns and values of a row; `None` if rows are dense.
    fn sparse_row(&self, row: usize) -> Option<(&[u32], &[T])> {
        let Form::Sparse { starts, indices, values } = &self.form else { return None };
        let run = starts[row]..starts[row + 1];
        Some((&indices[run.clone()], &values[run]))
    }

    fn select(&self, rows: &[usize], columns: Option<&[usize]>, cols: usize) -> Entries<T> {
        let form = match &self.form {
            Form::Dense(values) if let Some(columns) = columns => {
                let kept = rows.iter().flat_map(|row| columns.iter().map(move |column| values[row * cols + column]));
                Form::Dense(kept.collect())
            }
            Form::Dense(values) => {
                let mut kept = Vec::with_capacity(rows.len() * cols);
                rows.iter().for_each(|&row| kept.extend_from_slice(&values[row * cols..(row + 1) * cols]));
                Form::Dense(kept)
            }
            Form::Sparse { starts, indices, values } => {
                let (mut kept_starts, mut kept_indices, mut kept_values) = (vec![0], Vec::new(), Vec::new());
                for &row in rows {
                    let run = starts[row]..starts[row + 1];
                    kept_indices.extend_from_slice(&indices[run.clone()]);
                    kept_values.extend_from_slice(&values[run]);
                    kept_starts.push(kept_indices.len());
                }
                Form::Sparse { starts: kept_starts, indices: kept_indices, values: kept_values }
            }
        };
        Entries { form, squares: rows.iter().map(|&row| self.squares[row]).collect() }
    }
}

/// The number type of blocks: f32 or f64.
pub(crate) trait Element: faer::traits::ComplexField + Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn narrow(value: f64) -> Self;
    fn wide(self) -> f64;
    fn times_plus(self, factor: Self, sum: Self) -> Self;
    /// The exponential of a number that is zero or negative.
    fn exp(self) -> Self;
    /// The entries of points of this kind.
    fn entries(points: &Points) -> Option<&Entries<Self>>;
    /// A buffer of zeros that the thread keeps, to expand rows in: allocating it for every block costs more than the
    /// products.
    fn panel() -> &'static LocalKey<Cell<Vec<[Self; LANES]>>>;
}

thread_local! {
    static NARROW_PANEL: Cell<Vec<[f32; LANES]>> = const { Cell::new(Vec::new()) };
    static WIDE_PANEL: Cell<Vec<[f64; LANES]>> = const { Cell::new(Vec::new()) };
}

/// Sparse rows of more columns are compared through the columns that they use. Otherwise a few rows that claim very many
/// columns would take a buffer of gigabytes on each thread.
const MOST_COLUMNS: usize = 1 << 22;

/// The maximum number of columns for which a thread keeps its buffer; more would hold memory that others need.
const KEPT_COLUMNS: usize = 1 << 20;

impl Element for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn narrow(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn times_plus(self, factor: f32, sum: f32) -> f32 {
        self * factor + sum
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        exp(self.min(0.0))
    }
    fn entries(points: &Points) -> Option<&Entries<f32>> {
        match &points.layout {
            Layout::Narrow(entries) => Some(entries),
            Layout::Wide(_) => None,
        }
    }
    fn panel() -> &'static LocalKey<Cell<Vec<[f32; LANES]>>> {
        &NARROW_PANEL
    }
}

impl Element for f64 {
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn narrow(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn times_plus(self, factor: f64, sum: f64) -> f64 {
        self * factor + sum
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self.min(0.0))
    }
    fn entries(points: &Points) -> Option<&Entries<f64>> {
        match &points.layout {
            Layout::Wide(entries) => Some(entries),
            Layout::Narrow(_) => None,
        }
    }
    fn panel() -> &'static LocalKey<Cell<Vec<[f64; LANES]>>> {
        &WIDE_PANEL
    }
}

/// Rows with at most one stored entry in this many columns are multiplied as sparse rows.
const SPARSE: u64 = 3;

/// Up to this many rows are multiplied, and their kernel values kept, in f64, which is cheap for so few.
pub(crate) const FEW_ROWS: usize = 4096;

/// Rows that one thread reads together.
const TOGETHER: usize = 64;

/// The rounding error of an exponent, as a share of its largest squares. An error above a hundred thousandth is too
/// much.
const NARROW_ROUNDING: f64 = 1.2e-7;
const ROUNDING_ALLOWED: f64 = 1e-5;

/// Kernel values count as positive definite if this share of the largest, added to the diagonal, makes them so.
const DEFINITE: f64 = 1e-5;

/// The maximum number of rows for which this is checked.
const MOST_FACTORED: usize = 8192;

/// The precision of kernel values from a file, at least.
const PRINTED: f64 = 1e-4;

impl Points {
    /// The rows of a design, stored as suits the kernel.
    pub(crate) fn new(design: &Design, kernel: &Kernel) -> Points {
        Points::until(design, kernel, &Cancel::new())
    }

    /// The same, for a job that may be cancelled: values not computed by then stay zero.
    pub(crate) fn until(design: &Design, kernel: &Kernel, cancel: &Cancel) -> Points {
        let rows = design.rows();
        Points::suited(design, kernel, cancel, |largest| {
            rows <= FEW_ROWS
                || matches!(kernel, Kernel::Custom(_))
                || kernel.steepness() * largest * NARROW_ROUNDING > ROUNDING_ALLOWED
        })
    }

    /// The same in f64, for any number of rows.
    pub(crate) fn in_double(design: &Design, kernel: &Kernel) -> Points {
        Points::suited(design, kernel, &Cancel::new(), |_| true)
    }

    fn suited(design: &Design, kernel: &Kernel, cancel: &Cancel, wide: impl Fn(f64) -> bool) -> Points {
        let (rows, cols) = (design.rows(), design.cols());
        if *kernel == Kernel::Precomputed {
            return Points::of_values(design, cancel);
        }
        let sparse = design.shift().is_none()
            && !design.matrix().is_dense()
            && design.matrix().entries() * SPARSE <= rows as u64 * cols as u64;
        let shifts = matches!(kernel, Kernel::Gaussian { .. }) && !sparse;
        let centre = shifts.then(|| mean(design));
        Points::with_layout(design, 0..rows, cols, sparse, centre, cancel, wide)
    }

    /// Kernel values between rows. The last columns hold them, one column per row.
    fn of_values(design: &Design, cancel: &Cancel) -> Points {
        debug_assert!(design.cols() >= design.rows());
        let rows = design.rows();
        let first = design.cols() - rows.min(design.cols());
        let row = |row: usize, out: &mut [f64]| {
            if cancel.is_abandoned() {
                return;
            }
            let mut values = vec![0.0; design.cols()];
            design.fill_scaled_row(row, &mut values);
            out.copy_from_slice(&values[first..]);
        };
        let zeros = vec![0.0; rows];
        let layout = match rows <= FEW_ROWS {
            true => Layout::Wide(entries(rows, rows, false, &[], &zeros, &row)),
            false => Layout::Narrow(entries(rows, rows, false, &[], &zeros, &row)),
        };
        Points { rows, cols: rows, layout, centre: None, values: true, cancel: cancel.clone() }
    }

    /// Whether these kernel values are positive definite up to rounding, so that some rows could have them. False if
    /// there are too many to check.
    pub(crate) fn values_are_definite(&self) -> bool {
        let own = |row: usize, column: usize| match &self.layout {
            Layout::Narrow(Entries { form: Form::Dense(values), .. }) => f64::from(values[row * self.cols + column]),
            Layout::Wide(Entries { form: Form::Dense(values), .. }) => values[row * self.cols + column],
            _ => f64::NAN,
        };
        if !self.values || self.rows > MOST_FACTORED {
            return false;
        }
        let largest = (0..self.rows).map(|row| own(row, row).abs()).fold(0.0, f64::max);
        let lifted = Mat::from_fn(self.rows, self.rows, |row, column| {
            let value = 0.5 * (own(row, column) + own(column, row));
            value + if row == column { DEFINITE * largest } else { 0.0 }
        });
        Llt::new(lifted.as_ref(), Side::Lower).is_ok()
    }

    /// Two rows whose given kernel values differ by more than printing explains, with both values.
    pub(crate) fn asymmetric(&self) -> Option<(usize, usize, f64, f64)> {
        fn of<T: Element>(entries: &Entries<T>, rows: usize) -> Option<(usize, usize, f64, f64)> {
            let Form::Dense(values) = &entries.form else { return None };
            let differ = |row: usize, column: usize| {
                let (one, other) = (values[row * rows + column].wide(), values[column * rows + row].wide());
                // The rounding error is relative to the lengths of both rows, not to their product.
                let lengths = (values[row * rows + row].wide() * values[column * rows + column].wide()).abs().sqrt();
                let apart = (one - other).abs() > PRINTED * lengths.max(one.abs()).max(other.abs());
                apart.then_some((row, column, one, other))
            };
            parallel::find_first(rows, |row| (row + 1..rows).find_map(|column| differ(row, column)))
        }
        match &self.layout {
            _ if !self.values => None,
            Layout::Narrow(entries) => of(entries, self.rows),
            Layout::Wide(entries) => of(entries, self.rows),
        }
    }

    /// Other rows, stored in the same way, for kernel values with these. Missing columns are zeros before scaling.
    pub(crate) fn like(&self, design: &Design, cancel: &Cancel) -> Points {
        self.like_run(design, 0..design.rows(), cancel)
    }

    /// The same for a range of the rows.
    pub(crate) fn like_run(&self, design: &Design, run: Range<usize>, cancel: &Cancel) -> Points {
        let wide = self.is_wide();
        let (sparse, centre) = (self.is_sparse(), self.centre.clone());
        Points::with_layout(design, run, self.cols, sparse, centre, cancel, |_| wide)
    }

    fn with_layout(
        design: &Design,
        run: Range<usize>,
        cols: usize,
        sparse: bool,
        centre: Option<Vec<f64>>,
        cancel: &Cancel,
        wide: impl Fn(f64) -> bool,
    ) -> Points {
        let rows = run.len();
        let lists: Vec<Vec<(usize, f64)>> = if sparse {
            let entries = |row| {
                let mut entries = Vec::new();
                if !cancel.is_abandoned() {
                    design.scaled_entries(run.start + row, &mut entries);
                }
                entries
            };
            parallel::collect(rows, TOGETHER, entries)
        } else {
            Vec::new()
        };
        let dense_row = |row: usize, values: &mut [f64]| {
            values.fill(0.0);
            if cancel.is_abandoned() {
                return;
            }
            design.fill_scaled_row(run.start + row, values);
            if let Some(centre) = &centre {
                values.iter_mut().zip(centre).for_each(|(value, centre)| *value -= centre);
            }
        };
        let square = |row: usize| -> f64 {
            if sparse {
                return lists[row].iter().map(|(_, value)| value * value).sum();
            }
            let mut values = vec![0.0; cols];
            dense_row(row, &mut values);
            values.iter().map(|value| value * value).sum()
        };
        let squares: Vec<f64> = parallel::collect(rows, TOGETHER, square);
        let largest = squares.iter().copied().fold(0.0, f64::max);
        let layout = if wide(largest) {
            Layout::Wide(entries(rows, cols, sparse, &lists, &squares, &dense_row))
        } else {
            Layout::Narrow(entries(rows, cols, sparse, &lists, &squares, &dense_row))
        };
        Points { rows, cols, layout, centre, values: false, cancel: cancel.clone() }
    }

    /// Some of the rows, in the given order.
    pub(crate) fn select(&self, rows: &[usize]) -> Points {
        // For kernel values, the same columns as rows.
        let columns = self.values.then_some(rows);
        let layout = match &self.layout {
            Layout::Narrow(entries) => Layout::Narrow(entries.select(rows, columns, self.cols)),
            Layout::Wide(entries) => Layout::Wide(entries.select(rows, columns, self.cols)),
        };
        let cols = columns.map_or(self.cols, <[usize]>::len);
        let (centre, cancel) = (self.centre.clone(), self.cancel.clone());
        Points { rows: rows.len(), cols, layout, centre, values: self.values, cancel }
    }

    /// Whether only nonzero entries are stored.
    pub(crate) fn is_sparse(&self) -> bool {
        match &self.layout {
            Layout::Narrow(entries) => matches!(entries.form, Form::Sparse { .. }),
            Layout::Wide(entries) => matches!(entries.form, Form::Sparse { .. }),
        }
    }

    /// Whether values are f64.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.layout, Layout::Wide(_))
    }

    /// Whether the square of every row is a number. The difference of two squares that are not says nothing about their
    /// distance.
    pub(crate) fn squares_are_finite(&self) -> bool {
        match &self.layout {
            Layout::Narrow(entries) => entries.squares.iter().all(|square| square.is_finite()),
            Layout::Wide(entries) => entries.squares.iter().all(|square| square.is_finite()),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// k(x, x) of every row.
    pub(crate) fn diagonal(&self, kernel: &Kernel) -> Vec<f64> {
        let squares: Vec<f64> = match &self.layout {
            Layout::Narrow(entries) => entries.squares.iter().map(|square| f64::from(*square)).collect(),
            Layout::Wide(entries) => entries.squares.clone(),
        };
        let own = |row: usize| match kernel {
            Kernel::Precomputed | Kernel::Custom(_) => match &self.layout {
                Layout::Narrow(entries) => one_value(kernel, entries, row, self.cols),
                Layout::Wide(entries) => one_value(kernel, entries, row, self.cols),
            },
            _ => kernel.of_itself(squares[row], || self.sum(row)),
        };
        // A custom kernel may take long for one value.
        let together = if matches!(kernel, Kernel::Custom(_)) { 1 } else { TOGETHER };
        parallel::collect(self.rows, together, own)
    }

    /// Σ_j x_j of a row.
    fn sum(&self, row: usize) -> f64 {
        fn of<T: Element>(entries: &Entries<T>, row: usize, cols: usize) -> f64 {
            let values = match &entries.form {
                Form::Dense(values) => &values[row * cols..(row + 1) * cols],
                Form::Sparse { starts, values, .. } => &values[starts[row]..starts[row + 1]],
            };
            values.iter().map(|value| value.wide()).sum()
        }
        match &self.layout {
            Layout::Narrow(entries) => of(entries, row, self.cols),
            Layout::Wide(entries) => of(entries, row, self.cols),
        }
    }

    /// Whether the results are discarded because of a cancel.
    pub(crate) fn are_abandoned(&self) -> bool {
        self.cancel.is_abandoned()
    }

    /// Kernel values of the rows `ids` of `left` with all rows of this one: one output per id, in parallel.
    pub(crate) fn fill<T: Element>(&self, kernel: &Kernel, left: &Points, ids: &[usize], outs: Vec<&mut [T]>) {
        /// Columns that one thread fills: together with their rows they fit in the second-level cache.
        const CHUNK: usize = 1024;
        /// Rows computed between two checks of the cancel flag, if a value takes long.
        const MEET: usize = 64;
        let meet = if kernel.is_of_products() { ids.len().max(1) } else { MEET };
        let mut chunks: Vec<Vec<&mut [T]>> = Vec::new();
        for out in outs {
            for (at, part) in out.chunks_mut(CHUNK).enumerate() {
                if at == chunks.len() {
                    chunks.push(Vec::with_capacity(ids.len()));
                }
                chunks[at].push(part);
            }
        }
        parallel::update(&mut chunks, 1, |at, outs| {
            let columns = at * CHUNK..(at * CHUNK + CHUNK).min(self.rows);
            for (ids, outs) in ids.chunks(meet).zip(outs.chunks_mut(meet)) {
                if self.cancel.is_abandoned() {
                    break;
                }
                self.fill_columns(kernel, left, ids, columns.clone(), outs);
            }
        });
    }

    /// The same for a range of rows, on this thread.
    pub(crate) fn fill_columns<T: Element>(
        &self,
        kernel: &Kernel,
        left: &Points,
        ids: &[usize],
        columns: Range<usize>,
        outs: &mut [&mut [T]],
    ) {
        // `like` ensures that both have the same layout, and `is_wide` tells which.
        let (Some(right), Some(left)) = (T::entries(self), T::entries(left)) else {
            return debug_assert!(false, "points of two layouts meet");
        };
        block(kernel, &Meeting { left, ids, right, cols: self.cols, columns }, outs);
    }
}

for_this_machine! {
    /// sums += step · row
    pub(crate) fn add_row[T: Element](sums: &mut [f64], step: f64, row: &[T]) -> () = add_row_plainly
}

#[inline(always)]
fn add_row_plainly<T: Element>(sums: &mut [f64], step: f64, row: &[T]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += step * value.wide();
    }
}

fn mean(design: &Design) -> Vec<f64> {
    let share = 1.0 / design.rows().max(1) as f64;
    design.weighted_sum_by(|_| share)
}

fn entries<T: Element>(
    rows: usize,
    cols: usize,
    sparse: bool,
    lists: &[Vec<(usize, f64)>],
    squares: &[f64],
    dense_row: &(dyn Fn(usize, &mut [f64]) + Sync),
) -> Entries<T> {
    let squares = squares.iter().map(|&square| T::narrow(square)).collect();
    let form = if sparse {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        let total = lists.iter().map(Vec::len).sum();
        let (mut indices, mut values) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for list in lists {
            indices.extend(list.iter().map(|entry| entry.0 as u32));
            values.extend(list.iter().map(|entry| T::narrow(entry.1)));
            starts.push(indices.len());
        }
        Form::Sparse { starts, indices, values }
    } else {
        let mut values = vec![T::ZERO; rows * cols];
        if cols > 0 {
            parallel::chunks(&mut values, TOGETHER * cols, |run, values| {
                let mut wide = vec![0.0; cols];
                for (row, out) in (run * TOGETHER..).zip(values.chunks_exact_mut(cols)) {
                    dense_row(row, &mut wide);
                    out.iter_mut().zip(&wide).for_each(|(out, value)| *out = T::narrow(*value));
                }
            });
        }
        Form::Dense(values)
    };
    Entries { form, squares }
}

/// Rows `ids` of `left` against rows `columns` of `right`.
struct Meeting<'a, T> {
    left: &'a Entries<T>,
    ids: &'a [usize],
    right: &'a Entries<T>,
    cols: usize,
    columns: Range<usize>,
}

/// Kernel values of these rows.
fn block<T: Element>(kernel: &Kernel, meeting: &Meeting<'_, T>, outs: &mut [&mut [T]]) {
    // A custom function receives all columns.
    if meeting.cols <= MOST_COLUMNS || matches!(kernel, Kernel::Custom(_)) {
        return block_of_columns(kernel, meeting, outs);
    }
    let Some((left, right, cols)) = renumbered(meeting) else { return block_of_columns(kernel, meeting, outs) };
    let ids: Vec<usize> = (0..meeting.ids.len()).collect();
    let meeting = Meeting { left: &left, ids: &ids, right: &right, cols, columns: 0..meeting.columns.len() };
    block_of_columns(kernel, &meeting, outs);
}

fn block_of_columns<T: Element>(kernel: &Kernel, meeting: &Meeting<'_, T>, outs: &mut [&mut [T]]) {
    let Meeting { left, ids, right, cols, ref columns } = *meeting;
    let squares = &right.squares[columns.clone()];
    if let Kernel::Custom(custom) = kernel {
        return custom_values(custom, meeting, outs);
    }
    if let (Kernel::Precomputed, Form::Dense(values)) = (kernel, &left.form) {
        for (&id, out) in ids.iter().zip(outs) {
            out.copy_from_slice(&values[id * cols..(id + 1) * cols][columns.clone()]);
        }
        return;
    }
    if !kernel.is_of_products() {
        return kernel_by_columns(kernel, meeting, outs);
    }
    match (&left.form, &right.form) {
        (Form::Dense(a), Form::Dense(b)) => {
            let count = columns.len();
            let mut picked = Vec::with_capacity(ids.len() * cols);
            ids.iter().for_each(|&id| picked.extend_from_slice(&a[id * cols..(id + 1) * cols]));
            let mut products = vec![T::ZERO; ids.len() * count];
            matmul(
                MatMut::from_row_major_slice_mut(&mut products, ids.len(), count),
                Accum::Replace,
                MatRef::from_row_major_slice(&picked, ids.len(), cols),
                MatRef::from_row_major_slice(&b[columns.start * cols..columns.end * cols], count, cols).transpose(),
                T::narrow(1.0),
                Par::Seq,
            );
            for ((&id, products), out) in ids.iter().zip(products.chunks_exact(count)).zip(outs) {
                finish_products(kernel, products, left.squares[id], squares, out);
            }
        }
        (
            Form::Sparse { starts: a_starts, indices: a_indices, values: a_values },
            Form::Sparse { starts, indices, values },
        ) => {
            let mut panel = T::panel().take();
            if panel.len() < cols {
                // Memory that is new is zero already, and only what is used is ever touched.
                panel = vec![[T::ZERO; LANES]; cols];
            }
            let mut products = vec![T::ZERO; LANES * columns.len()];
            for (ids, outs) in ids.chunks(LANES).zip(outs.chunks_mut(LANES)) {
                for (lane, &id) in ids.iter().enumerate() {
                    let entries = a_starts[id]..a_starts[id + 1];
                    for (&index, &value) in a_indices[entries.clone()].iter().zip(&a_values[entries]) {
                        panel[index as usize][lane] = value;
                    }
                }
                let right = SparseRows { starts: &starts[columns.start..=columns.end], indices, values };
                sparse_products(&panel, right, &mut products);
                for (lane, (&id, out)) in ids.iter().zip(outs).enumerate() {
                    let products = &products[lane * columns.len()..(lane + 1) * columns.len()];
                    finish_products(kernel, products, left.squares[id], squares, out);
                    a_indices[a_starts[id]..a_starts[id + 1]]
                        .iter()
                        .for_each(|&index| panel[index as usize][lane] = T::ZERO);
                }
            }
            if panel.len() <= KEPT_COLUMNS {
                T::panel().set(panel);
            }
        }
        // `like` gives both the same form.
        _ => debug_assert!(false, "dense and sparse points meet"),
    }
}

/// The rows of a meeting with the columns numbered that the left rows use, in their order. All other columns of the right
/// rows become one more column, in which the left rows are zero: no kernel tells them apart. `None` if rows are dense, or
/// if a short number cannot name the columns.
fn renumbered<T: Element>(meeting: &Meeting<'_, T>) -> Option<(Entries<T>, Entries<T>, usize)> {
    let Meeting { left, ids, right, ref columns, .. } = *meeting;
    let mut used: Vec<u32> = Vec::new();
    for &id in ids {
        used.extend(left.sparse_row(id)?.0);
    }
    used.sort_unstable();
    used.dedup();
    let other = u32::try_from(used.len()).ok()?;
    let number = |column: &u32| used.binary_search(column).map_or(other, |at| at as u32);
    let picked = |entries: &Entries<T>, rows: &mut dyn Iterator<Item = usize>| {
        let (mut starts, mut indices, mut values, mut squares) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let (row_indices, row_values) = entries.sparse_row(row)?;
            indices.extend(row_indices.iter().map(number));
            values.extend_from_slice(row_values);
            starts.push(indices.len());
            squares.push(entries.squares[row]);
        }
        Some(Entries { form: Form::Sparse { starts, indices, values }, squares })
    };
    Some((picked(left, &mut ids.iter().copied())?, picked(right, &mut columns.clone())?, used.len() + 1))
}

/// Rows that are expanded at a time: one vector register of f32.
const LANES: usize = 16;

/// A range of sparse rows.
#[derive(Clone, Copy)]
struct SparseRows<'a, T> {
    starts: &'a [usize],
    indices: &'a [u32],
    values: &'a [T],
}

for_this_machine! {
    /// Products of the rows expanded in `panel` with a range of rows, lane by lane.
    fn sparse_products[T: Element](panel: &[[T; LANES]], rows: SparseRows<'_, T>, products: &mut [T]) -> () =
        sparse_products_plainly
}

#[inline(always)]
fn sparse_products_plainly<T: Element>(panel: &[[T; LANES]], rows: SparseRows<'_, T>, products: &mut [T]) {
    let count = rows.starts.len() - 1;
    // Sixteen rows at a time, transposed in cache.
    for start in (0..count).step_by(LANES) {
        let end = (start + LANES).min(count);
        let mut tile = [[T::ZERO; LANES]; LANES];
        for (row, sums) in (start..end).zip(&mut tile) {
            let entries = rows.starts[row]..rows.starts[row + 1];
            let mut sum = [T::ZERO; LANES];
            for (&index, &value) in rows.indices[entries.clone()].iter().zip(&rows.values[entries]) {
                let spread = &panel[index as usize];
                for lane in 0..LANES {
                    sum[lane] = value.times_plus(spread[lane], sum[lane]);
                }
            }
            *sums = sum;
        }
        for lane in 0..LANES {
            let out = &mut products[lane * count + start..lane * count + end];
            out.iter_mut().zip(&tile).for_each(|(out, sums)| *out = sums[lane]);
        }
    }
}

for_this_machine! {
    /// Turns inner products into kernel values.
    pub(super) fn finish_products[T: Element](
        kernel: &Kernel, products: &[T], square: T, squares: &[T], out: &mut [T],
    ) -> () = finish_products_plainly
}

#[inline(always)]
fn finish_products_plainly<T: Element>(kernel: &Kernel, products: &[T], square: T, squares: &[T], out: &mut [T]) {
    match *kernel {
        Kernel::Gaussian { gamma } => {
            let (minus_gamma, two) = (T::narrow(-gamma), T::narrow(-2.0));
            for ((out, &product), &other) in out.iter_mut().zip(products).zip(squares) {
                let distance = two.times_plus(product, square.times_plus(T::narrow(1.0), other));
                *out = minus_gamma.times_plus(distance, T::ZERO).exp();
            }
        }
        Kernel::Polynomial { gamma, coef0, degree } => {
            for (out, product) in out.iter_mut().zip(products) {
                *out = T::narrow((gamma * product.wide() + coef0).powi(degree as i32));
            }
        }
        Kernel::Sigmoid { gamma, coef0 } => {
            for (out, product) in out.iter_mut().zip(products) {
                *out = T::narrow((gamma * product.wide() + coef0).tanh());
            }
        }
        Kernel::Linear | Kernel::ChiSquared { .. } | Kernel::Intersection | Kernel::Precomputed | Kernel::Custom(_) => {
            out.copy_from_slice(products)
        }
    }
}

/// A custom function, of rows with all columns.
fn custom_values<T: Element>(custom: &CustomKernel, meeting: &Meeting<'_, T>, outs: &mut [&mut [T]]) {
    let Meeting { left, ids, right, cols, ref columns } = *meeting;
    let (mut x, mut z) = (vec![0.0; cols], vec![0.0; cols]);
    let written = |entries: &Entries<T>, row: usize, out: &mut [f64]| {
        out.fill(0.0);
        each_entry(entries, row, cols, |column, value| out[column] = value);
    };
    for (at, row) in columns.clone().enumerate() {
        written(right, row, &mut z);
        for (&id, out) in ids.iter().zip(&mut *outs) {
            written(left, id, &mut x);
            out[at] = T::narrow(custom.value(&x, &z));
        }
    }
}

/// k(x, x) of a row, for kernels without a formula for it.
fn one_value<T: Element>(kernel: &Kernel, entries: &Entries<T>, row: usize, cols: usize) -> f64 {
    let mut value = [T::ZERO];
    let meeting = Meeting { left: entries, ids: &[row], right: entries, cols, columns: row..row + 1 };
    block(kernel, &meeting, &mut [&mut value]);
    value[0].wide()
}

/// Kernels that are not functions of inner products: sums over columns, row by row.
fn kernel_by_columns<T: Element>(kernel: &Kernel, meeting: &Meeting<'_, T>, outs: &mut [&mut [T]]) {
    let Meeting { left, ids, right, cols, ref columns } = *meeting;
    let mut spread = vec![0.0; cols];
    for (&id, out) in ids.iter().zip(outs) {
        // If a scaling learned on other rows makes a value negative, it counts as zero.
        let mut total = 0.0;
        each_entry(left, id, cols, |column, value| {
            spread[column] = value.max(0.0);
            total += value.max(0.0);
        });
        for (row, out) in columns.clone().zip(out.iter_mut()) {
            // A column where one of the two is zero adds the other, or nothing: the totals account for it.
            let (mut other, mut sum) = (0.0, 0.0);
            each_entry(right, row, cols, |column, value| {
                let value = value.max(0.0);
                other += value;
                let mine = spread[column];
                if mine > 0.0 && value > 0.0 {
                    sum += match kernel {
                        Kernel::ChiSquared { .. } => mine * value / (mine + value),
                        _ => mine.min(value),
                    };
                }
            });
            *out = match *kernel {
                // (x − z)²/(x + z) = x + z − 4xz/(x + z)
                Kernel::ChiSquared { gamma } => T::narrow(f64::exp(-gamma * (total + other - 4.0 * sum).max(0.0))),
                _ => T::narrow(sum),
            };
        }
        each_entry(left, id, cols, |column, _| spread[column] = 0.0);
    }
}

#[inline(always)]
fn each_entry<T: Element>(entries: &Entries<T>, row: usize, cols: usize, mut visit: impl FnMut(usize, f64)) {
    match &entries.form {
        Form::Dense(values) => {
            values[row * cols..(row + 1) * cols]
                .iter()
                .enumerate()
                .for_each(|(column, value)| visit(column, value.wide()));
        }
        Form::Sparse { starts, indices, values } => {
            let run = starts[row]..starts[row + 1];
            for (&index, value) in indices[run.clone()].iter().zip(&values[run]) {
                visit(index as usize, value.wide());
            }
        }
    }
}

/// Kernel values by their definition, for tests.
#[cfg(test)]
pub(super) fn definition(kernel: &Kernel, x: &[f64], z: &[f64]) -> f64 {
    let sum = |part: &dyn Fn(f64, f64) -> f64| x.iter().zip(z).map(|(&x, &z)| part(x, z)).sum::<f64>();
    let product = sum(&|x, z| x * z);
    match *kernel {
        Kernel::Linear => product,
        Kernel::Polynomial { gamma, coef0, degree } => (gamma * product + coef0).powi(degree as i32),
        Kernel::Gaussian { gamma } => (-gamma * sum(&|x, z| (x - z) * (x - z))).exp(),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * product + coef0).tanh(),
        Kernel::ChiSquared { gamma } => {
            (-gamma * sum(&|x, z| if x + z > 0.0 { (x - z) * (x - z) / (x + z) } else { 0.0 })).exp()
        }
        Kernel::Intersection => sum(&f64::min),
        Kernel::Custom(ref custom) => custom.value(x, z),
        Kernel::Precomputed => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Matrix, Scale, Scaling, Targets};
    use crate::kernel::expansion_scores;
    use crate::random::Random;

    #[test]
    fn blocks_of_every_layout_equal_the_definition() {
        let kernels = [
            Kernel::Linear,
            Kernel::Polynomial { gamma: 0.3, coef0: 1.0, degree: 3 },
            Kernel::Gaussian { gamma: 0.7 },
            Kernel::Sigmoid { gamma: 0.2, coef0: -0.1 },
            Kernel::ChiSquared { gamma: 0.5 },
            Kernel::Intersection,
            Kernel::Custom(CustomKernel::new("laplace", |x, z| {
                (-x.iter().zip(z).map(|(x, z)| (x - z).abs()).sum::<f64>()).exp()
            })),
        ];
        let mut random = Random::new(7, 1, 0);
        // More rows than a chunk, and a number of ids that is no multiple of the lanes.
        let (count, cols) = (1100, 9);
        let rows: Vec<Vec<(usize, f64)>> = (0..count)
            .map(|_| (0..cols).filter_map(|c| random.chance(0.4).then_some((c, 2.0 * random.uniform()))).collect())
            .collect();
        let matrix = Matrix::from_rows(&rows, cols).expect("valid");
        let data = Dataset::new(matrix, Targets::Absent).expect("valid");
        let dense_row = |at: usize| {
            let mut values = vec![0.0; cols];
            rows[at].iter().for_each(|&(column, value)| values[column] = value);
            values
        };
        let scaling = Scaling::fit(Scale::None, &data, &Cancel::new()).expect("valid");
        let design = scaling.apply(data.matrix(), None).expect("valid");
        let ids: Vec<usize> = (0..19).map(|at| at * 37).collect();
        fn check<T: Element>(kernel: &Kernel, points: &Points, ids: &[usize], expected: impl Fn(usize, usize) -> f64) {
            let mut values = vec![vec![T::ZERO; points.rows()]; ids.len()];
            points.fill(kernel, points, ids, values.iter_mut().map(Vec::as_mut_slice).collect());
            let own = points.diagonal(kernel);
            for (&id, values) in ids.iter().zip(&values) {
                for (column, value) in values.iter().enumerate() {
                    let expected = expected(id, column);
                    assert!((value.wide() - expected).abs() < 2e-5, "{kernel:?} {} {expected}", value.wide());
                }
                assert!((own[id] - expected(id, id)).abs() < 2e-5);
            }
        }
        for kernel in kernels {
            let expected = |a: usize, b: usize| definition(&kernel, &dense_row(a), &dense_row(b));
            for sparse in [true, false] {
                let centre = (!sparse && matches!(kernel, Kernel::Gaussian { .. })).then(|| mean(&design));
                let wide = Points::with_layout(
                    &design,
                    0..design.rows(),
                    cols,
                    sparse,
                    centre.clone(),
                    &Cancel::new(),
                    |_| true,
                );
                check::<f64>(&kernel, &wide, &ids, expected);
                let narrow =
                    Points::with_layout(&design, 0..design.rows(), cols, sparse, centre, &Cancel::new(), |_| false);
                check::<f32>(&kernel, &narrow, &ids, expected);
                let coefficients: Vec<f64> = (0..ids.len()).map(|at| at as f64 - 4.0).collect();
                let scores = expansion_scores(
                    &kernel,
                    &narrow,
                    &ids,
                    &coefficients,
                    &narrow.like(&design, &Cancel::new()),
                    &Cancel::new(),
                );
                for (row, score) in scores.iter().enumerate() {
                    let sum: f64 = ids.iter().zip(&coefficients).map(|(&id, c)| c * expected(id, row)).sum();
                    assert!((score - sum).abs() < 1e-3, "{kernel:?} {score} {sum}");
                }
            }
        }
    }

    #[test]
    fn rows_of_very_many_columns_give_the_same_bits_as_the_same_rows_without_gaps() {
        let mut random = Random::new(3, 1, 0);
        let rows: Vec<Vec<(usize, f64)>> = (0..40)
            .map(|_| (0..9).filter_map(|c| random.chance(0.4).then_some((c, 2.0 * random.uniform()))).collect())
            .collect();
        let values = |gap: usize, kernel: &Kernel| {
            let apart: Vec<Vec<(usize, f64)>> =
                rows.iter().map(|row| row.iter().map(|&(column, value)| (column * gap, value)).collect()).collect();
            let cols = 8 * gap + 1;
            let (starts, columns, numbers) = apart.iter().fold((vec![0], vec![], vec![]), |mut all, row| {
                all.1.extend(row.iter().map(|entry| entry.0 as u32));
                all.2.extend(row.iter().map(|entry| entry.1));
                all.0.push(all.1.len() as u64);
                all
            });
            let matrix = Matrix::Csr32F64(crate::data::Csr::new(starts, columns, numbers, cols).expect("valid"));
            let scaling = Scaling::from_parts(Scale::None, None, None, cols).expect("none");
            let design = scaling.apply(&matrix, None).expect("valid");
            let points = Points::with_layout(&design, 0..rows.len(), cols, true, None, &Cancel::new(), |_| true);
            let ids: Vec<usize> = (0..19).map(|at| at * 2).collect();
            let mut values = vec![vec![0f64; rows.len()]; ids.len()];
            points.fill(kernel, &points, &ids, values.iter_mut().map(Vec::as_mut_slice).collect());
            values
        };
        for kernel in [Kernel::Gaussian { gamma: 0.7 }, Kernel::ChiSquared { gamma: 0.5 }, Kernel::Intersection] {
            assert_eq!(values(1, &kernel), values(MOST_COLUMNS, &kernel), "{kernel:?}");
        }
    }
}
