//! [`Table`]: converts cells of any table format to a [`Dataset`].
//!
//! Readers pass blocks of rows. Features go to [`Values`], which stores them once, in their final layout. Target,
//! group, weight and id go to [`RowColumns`]. The two are separate, so that a reader can fill them at the same time.

use crate::cells::{self, Cell, Problem};
use crate::columns::Plan;
use crate::hashing::{HashedColumns, HashedRows};
use crate::label_sets::SetColumns;
use crate::{Facts, Format, Loaded, Missing, ReadOptions};
use maxmargin::data::{Dataset, Matrix, Names, Outcome, Pairs, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::wording::counted;
use std::collections::HashMap;

/// The shape of a table, as a remedy if there is no table.
pub(crate) const TABLE_SHAPE: &str = "a table has a line of column names, then one line per row";

/// The rule for storage: sparse if a table has more than this many columns …
const SPARSE_MIN_COLUMNS: usize = 64;
/// … and fewer non-zero cells than this share; dense otherwise.
const SPARSE_MAX_SHARE: f64 = 0.3;

/// The storage is first reconsidered after this many rows, and then each time their number has doubled.
const FIRST_REVIEW: usize = 1024;

fn sparse_is_better(rows: usize, cols: usize, filled: u64) -> bool {
    cols > SPARSE_MIN_COLUMNS && (filled as f64) < SPARSE_MAX_SHARE * rows as f64 * cols as f64
}

/// A table while it is being read.
#[derive(Debug)]
pub(crate) struct Table<V> {
    pub(crate) values: Values<V>,
    pub(crate) rows: RowColumns,
}

/// What the blocks of one table have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    /// Number of rows in earlier blocks.
    #[cfg_attr(not(feature = "tables"), allow(dead_code))]
    pub(crate) rows: usize,
    /// Number of missing cells in them.
    missing: u64,
    /// Whether they are stored dense. All blocks have the same layout, so that a row's score does not depend on its
    /// block.
    dense: Option<bool>,
}

impl Before {
    /// Nothing before.
    pub(crate) fn new(options: &ReadOptions) -> Before {
        Before { dense: options.steady.then_some(true), ..Before::default() }
    }
}

impl<V: Cell> Table<V> {
    pub(crate) fn new(plan: &Plan, options: &ReadOptions) -> Result<Table<V>> {
        let missing = match (&options.missing, plan.sides) {
            // There is one value per feature, for both rows of a line.
            (Missing::Fill(values), true) => &Missing::Fill([&values[..], &values[..]].concat()),
            (Missing::Mean, true) => {
                return Err(Error::new(
                    Code::BadSetting,
                    "empty cells are not filled with means where a row holds two items: each side would have its own \
                     mean",
                )
                .help("use ⟦missing=zero⟧, or give the items in a file of their own with ⟦items⟧"));
            }
            (missing, _) => missing,
        };
        let values = match options.hash {
            None => Values::new(plan.features.len(), missing)?,
            Some(hashing) => {
                let names = plan.features.iter().map(|feature| feature.name.as_str());
                Values::hashed(HashedColumns::new(names, hashing, &options.missing)?, hashing.columns())
            }
        };
        Ok(Table { values, rows: RowColumns::new(plan, options) })
    }

    /// Builds the data set.
    pub(crate) fn finish(self, file: &str, format: Format, plan: Plan, options: &ReadOptions) -> Result<Loaded> {
        if self.values.rows == 0 {
            return Err(no_rows());
        }
        let features = plan.features_a_row();
        let mut facts = facts(file, format, &plan, self.values.missing, options);
        let (data, fill) = self.dataset(&plan)?;
        facts.fill = match &options.missing {
            Missing::Error => None,
            Missing::Fill(values) => Some(values.clone()),
            Missing::Zero | Missing::Mean => fill.map(|fill| fill[..features].to_vec()),
        };
        Ok(Loaded { data, facts })
    }

    /// Builds a block in the layout of the earlier ones.
    pub(crate) fn block(mut self, plan: &Plan, before: &mut Before) -> Result<Dataset> {
        self.values.dense = before.dense;
        before.rows += self.values.rows;
        before.missing += self.values.missing;
        let (data, _) = self.dataset(plan)?;
        before.dense = Some(data.matrix().is_dense());
        Ok(data)
    }

    /// The data, and the values used for missing cells.
    fn dataset(self, plan: &Plan) -> Result<(Dataset, Option<Vec<f64>>)> {
        let Table { values, rows } = self;
        let (features, hashed) = (plan.features_a_row(), values.hashed.is_some());
        if plan.sides && values.rows > (u32::MAX / 2) as usize {
            return Err(Error::new(Code::BadTable, "more than 2,147,483,647 pairs").help("learn from a part of them"));
        }
        let pairs = plan.sides.then_some(values.rows as u32);
        let (matrix, fill) = values.finish(features)?;
        let names: Names = plan.features[..features].iter().map(|feature| &feature.name).collect();
        let targets = match (rows.sets, rows.targets) {
            (Some(sets), _) => sets.finish(),
            (None, targets) => targets.map_or(Ok(Targets::Absent), TargetColumn::finish)?,
        };
        let mut data = Dataset::new(matrix, targets)?;
        if !hashed {
            data = data.with_feature_names(names)?;
        }
        if let Some(pairs) = pairs {
            let left: Vec<u32> = (0..pairs).map(|pair| 2 * pair).collect();
            let right: Vec<u32> = (0..pairs).map(|pair| 2 * pair + 1).collect();
            let others = RowColumns { targets: None, sets: None, ids: None, ..rows };
            data = data.with_pairs(others.add_to(Pairs::new(left, right)?)?)?;
            return Ok((data, fill));
        }
        if let Some(weights) = rows.weights {
            data = data.with_weights(weights)?;
        }
        if let Some(ids) = rows.ids {
            data = data.with_row_ids(ids.into())?;
        }
        if let Some(groups) = rows.groups {
            data = data.with_group_keys(&groups.keys, groups.names.into())?;
        }
        Ok((data, fill))
    }
}

pub(crate) fn no_rows() -> Error {
    Error::new(Code::NoRows, "the table has column names and no rows").help(TABLE_SHAPE)
}

fn facts(file: &str, format: Format, plan: &Plan, missing: u64, options: &ReadOptions) -> Facts {
    let notes = plan.notes.clone();
    let mut facts = Facts { file: file.to_string(), format: Some(format), notes, ..Facts::default() };
    facts.notes.extend(options.hash.map(|hashing| hashing.note()));
    if missing > 0 {
        let filling = match options.missing {
            Missing::Mean => "the column's mean",
            Missing::Zero if options.hash.is_some() => "nothing",
            Missing::Zero => "zero",
            Missing::Fill(_) | Missing::Error => "the model's values",
        };
        let cells = counted(missing, "missing cell", "missing cells");
        facts.notes.push(format!("{cells} filled with {filling}"));
    }
    facts
}

impl Before {
    /// The findings over all blocks.
    pub(crate) fn facts(&self, file: &str, format: Format, plan: &Plan, options: &ReadOptions) -> Facts {
        facts(file, format, plan, self.missing, options)
    }
}

#[derive(Debug)]
enum Indices {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

#[derive(Debug)]
enum Storage<V> {
    Dense(Vec<V>),
    Sparse { starts: Vec<u64>, indices: Indices, values: Vec<V> },
}

/// The features of the rows read so far.
#[derive(Debug)]
pub(crate) struct Values<V> {
    rows: usize,
    cols: usize,
    storage: Storage<V>,
    /// Number of nonzero cells.
    filled: u64,
    review_at: usize,
    /// The value used for a missing cell, one per column; `None` if a missing cell is an error. NaN until the mean is
    /// known.
    pub(crate) fill: Option<Vec<V>>,
    missing: u64,
    /// Sum and number of the present values, if means are needed.
    sums: Option<Vec<(f64, u64)>>,
    /// A block while it is copied to sparse storage.
    scratch: Vec<V>,
    /// The layout, if it is already decided.
    dense: Option<bool>,
    /// The columns of the table, if features are hashed. Rows are then sparse, and `cols` is the number of columns of the
    /// matrix.
    pub(crate) hashed: Option<HashedColumns>,
}

impl<V: Cell> Values<V> {
    fn new(cols: usize, missing: &Missing) -> Result<Values<V>> {
        let fill = match missing {
            Missing::Error => None,
            Missing::Zero => Some(vec![V::ZERO; cols]),
            Missing::Mean => Some(vec![V::NOT_A_NUMBER; cols]),
            Missing::Fill(values) => {
                let fill: Vec<V> = values.iter().map(|&value| V::narrow(value)).collect();
                if fill.len() != cols || !fill.iter().all(|value| value.finite()) {
                    return Err(Error::new(
                        Code::Internal,
                        format!("{} values to fill missing cells of {cols} features", values.len()),
                    ));
                }
                Some(fill)
            }
        };
        Ok(Values {
            rows: 0,
            cols,
            storage: Storage::Dense(Vec::new()),
            filled: 0,
            review_at: FIRST_REVIEW,
            fill,
            missing: 0,
            sums: matches!(missing, Missing::Mean).then(|| vec![(0.0, 0); cols]),
            scratch: Vec::new(),
            dense: None,
            hashed: None,
        })
    }

    /// Of features that are hashed into this number of columns.
    fn hashed(columns: HashedColumns, cols: usize) -> Values<V> {
        let indices = match cols <= usize::from(u16::MAX) + 1 {
            true => Indices::Narrow(Vec::new()),
            false => Indices::Wide(Vec::new()),
        };
        Values {
            rows: 0,
            cols,
            storage: Storage::Sparse { starts: vec![0], indices, values: Vec::new() },
            filled: 0,
            review_at: usize::MAX,
            fill: None,
            missing: 0,
            sums: None,
            scratch: Vec::new(),
            dense: Some(false),
            hashed: Some(columns),
        }
    }

    /// Adds rows whose features are hashed, from this number of lines.
    pub(crate) fn take_hashed(&mut self, lines: usize, mut hashed: HashedRows<V>) {
        let Storage::Sparse { starts, indices, values } = &mut self.storage else { return };
        let mut end = starts.last().copied().unwrap_or(0);
        starts.extend(hashed.lengths.iter().map(|&length| {
            end += u64::from(length);
            end
        }));
        match indices {
            Indices::Narrow(indices) => indices.extend(hashed.indices.iter().map(|&index| index as u16)),
            Indices::Wide(indices) => indices.append(&mut hashed.indices),
        }
        values.append(&mut hashed.values);
        self.missing += hashed.missing;
        self.rows += lines;
    }

    /// Number of features.
    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Number of rows so far.
    #[cfg(feature = "tables")]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a block of rows. `write` receives the memory for their cells, row after row, and the values for missing
    /// cells. It returns how many cells were missing.
    pub(crate) fn block<E>(
        &mut self,
        rows: usize,
        write: impl FnOnce(&mut [V], Option<&[V]>) -> std::result::Result<u64, E>,
    ) -> std::result::Result<(), E> {
        let cells = rows * self.cols;
        let block = match &mut self.storage {
            Storage::Dense(values) => {
                let start = values.len();
                values.resize(start + cells, V::ZERO);
                &mut values[start..]
            }
            Storage::Sparse { .. } => {
                self.scratch.resize(cells, V::ZERO);
                &mut self.scratch[..]
            }
        };
        self.missing += write(block, self.fill.as_deref())?;
        if let Some(sums) = &mut self.sums {
            for row in block.chunks_exact(self.cols) {
                for ((sum, count), value) in sums.iter_mut().zip(row) {
                    if !value.not_a_number() {
                        *sum += value.wide();
                        *count += 1;
                    }
                }
            }
        }
        if self.cols > SPARSE_MIN_COLUMNS {
            self.filled += block.iter().filter(|value| !value.is_plain_zero()).count() as u64;
        }
        if let Storage::Sparse { starts, indices, values } = &mut self.storage {
            match indices {
                Indices::Narrow(indices) => {
                    append_sparse(&self.scratch, self.cols, starts, indices, values, |column| column as u16);
                }
                Indices::Wide(indices) => {
                    append_sparse(&self.scratch, self.cols, starts, indices, values, |column| column as u32);
                }
            }
        }
        self.rows += rows;
        if self.rows >= self.review_at {
            self.review_at = self.rows * 2;
            self.review();
        }
        Ok(())
    }

    /// Changes the layout if the rows so far require it. Only then are they in memory twice for a moment.
    fn review(&mut self) {
        let sparse = self.dense.map_or_else(|| sparse_is_better(self.rows, self.cols, self.filled), |dense| !dense);
        match &mut self.storage {
            Storage::Dense(dense) if sparse => {
                let dense = std::mem::take(dense);
                let mut starts = Vec::with_capacity(self.rows + 1);
                starts.push(0);
                let mut values = Vec::with_capacity(self.filled as usize);
                let indices = if self.cols <= usize::from(u16::MAX) + 1 {
                    let mut indices = Vec::with_capacity(self.filled as usize);
                    append_sparse(&dense, self.cols, &mut starts, &mut indices, &mut values, |column| column as u16);
                    Indices::Narrow(indices)
                } else {
                    let mut indices = Vec::with_capacity(self.filled as usize);
                    append_sparse(&dense, self.cols, &mut starts, &mut indices, &mut values, |column| column as u32);
                    Indices::Wide(indices)
                };
                self.storage = Storage::Sparse { starts, indices, values };
            }
            Storage::Sparse { starts, indices, values } if !sparse => {
                let mut dense = vec![V::ZERO; self.rows * self.cols];
                for (row, bounds) in dense.chunks_exact_mut(self.cols).zip(starts.windows(2)) {
                    for entry in bounds[0] as usize..bounds[1] as usize {
                        let column = match indices {
                            Indices::Narrow(indices) => usize::from(indices[entry]),
                            Indices::Wide(indices) => indices[entry] as usize,
                        };
                        row[column] = values[entry];
                    }
                }
                self.storage = Storage::Dense(dense);
                self.scratch = Vec::new();
            }
            _ => {}
        }
    }

    /// The matrix with this number of features, and the values used for missing cells. If a line has more cells than
    /// that, it holds several rows, one after the other.
    fn finish(mut self, features: usize) -> Result<(Matrix, Option<Vec<f64>>)> {
        let cols = self.cols;
        if self.hashed.is_some() {
            let matrix = match self.storage {
                Storage::Sparse { starts, indices: Indices::Narrow(indices), values } => {
                    V::narrow_sparse(starts, indices, values, cols)?
                }
                Storage::Sparse { starts, indices: Indices::Wide(indices), values } => {
                    V::wide_sparse(starts, indices, values, cols)?
                }
                Storage::Dense(_) => return Err(Error::new(Code::Internal, "hashed rows are sparse")),
            };
            return Ok((matrix, None));
        }
        self.review();
        let mut fill: Option<Vec<f64>> = self.fill.map(|fill| fill.iter().map(|value| value.wide()).collect());
        if let Some(sums) = self.sums {
            // A column without any value carries no information. Zero keeps it that way.
            let means: Vec<f64> =
                sums.iter().map(|&(sum, count)| if count == 0 { 0.0 } else { sum / count as f64 }).collect();
            if let Some(column) = means.iter().position(|mean| !V::narrow(*mean).finite()) {
                return Err(Error::new(
                    Code::NotFinite,
                    format!("the mean of feature {} is too large for a number", column + 1),
                ));
            }
            if self.missing > 0 {
                match &mut self.storage {
                    Storage::Dense(values) => {
                        for row in values.chunks_exact_mut(cols) {
                            for (value, mean) in row.iter_mut().zip(&means) {
                                if value.not_a_number() {
                                    *value = V::narrow(*mean);
                                }
                            }
                        }
                    }
                    Storage::Sparse { indices, values, .. } => {
                        for (entry, value) in values.iter_mut().enumerate() {
                            if value.not_a_number() {
                                let column = match indices {
                                    Indices::Narrow(indices) => usize::from(indices[entry]),
                                    Indices::Wide(indices) => indices[entry] as usize,
                                };
                                *value = V::narrow(means[column]);
                            }
                        }
                    }
                }
            }
            fill = Some(means);
        }
        if let Storage::Sparse { starts, indices, .. } = &mut self.storage
            && features < cols
        {
            match indices {
                Indices::Narrow(indices) => cut_rows(starts, indices, features, usize::from, |column| column as u16),
                Indices::Wide(indices) => {
                    cut_rows(starts, indices, features, |column| column as usize, |column| column as u32);
                }
            }
        }
        let (rows, cols) = (self.rows * (cols / features), features);
        let matrix = match self.storage {
            Storage::Dense(mut values) => {
                values.shrink_to_fit();
                V::dense(values, rows, cols)?
            }
            Storage::Sparse { starts, indices: Indices::Narrow(indices), values } => {
                V::narrow_sparse(starts, indices, values, cols)?
            }
            Storage::Sparse { starts, indices: Indices::Wide(indices), values } => {
                V::wide_sparse(starts, indices, values, cols)?
            }
        };
        Ok((matrix, fill))
    }
}

/// Cuts sparse rows of several times `cols` columns into rows of `cols` columns.
fn cut_rows<I: Copy>(
    starts: &mut Vec<u64>,
    indices: &mut [I],
    cols: usize,
    column: impl Fn(I) -> usize,
    index: impl Fn(usize) -> I,
) {
    let mut cut = vec![0u64];
    for bounds in starts.windows(2) {
        let mut row = 0;
        for entry in bounds[0]..bounds[1] {
            let wide = column(indices[entry as usize]);
            while row < wide / cols {
                cut.push(entry);
                row += 1;
            }
            indices[entry as usize] = index(wide % cols);
        }
        // A line holds at most a pair.
        (row..2).for_each(|_| cut.push(bounds[1]));
    }
    *starts = cut;
}

fn append_sparse<V: Cell, I>(
    block: &[V],
    cols: usize,
    starts: &mut Vec<u64>,
    indices: &mut Vec<I>,
    values: &mut Vec<V>,
    index: impl Fn(usize) -> I,
) {
    for row in block.chunks_exact(cols) {
        for (column, &value) in row.iter().enumerate() {
            if !value.is_plain_zero() {
                indices.push(index(column));
                values.push(value);
            }
        }
        starts.push(values.len() as u64);
    }
}

/// Many short texts in one arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u64);
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }
}

impl From<Texts> for Names {
    fn from(texts: Texts) -> Names {
        Names::from_parts(texts.bytes.into(), texts.ends.into())
    }
}

/// Targets while they are being read. They are numbers as long as all of them are.
#[derive(Debug, Default)]
struct TargetColumn {
    numbers: Vec<f64>,
    /// The cells as text, in case one of them turns out to be a word.
    texts: Texts,
    has_words: bool,
}

impl TargetColumn {
    fn finish(self) -> Result<Targets> {
        if !self.has_words {
            return Ok(Targets::Real(self.numbers.into()));
        }
        let texts = Names::from(self.texts);
        let mut codes_of: HashMap<&[u8], u32> = HashMap::new();
        for row in 0..texts.len() {
            codes_of.entry(texts.get_bytes(row)).or_default();
        }
        let mut words: Vec<&[u8]> = codes_of.keys().copied().collect();
        words.sort_unstable();
        for (code, word) in words.iter().enumerate() {
            let code = u32::try_from(code)
                .map_err(|_| Error::new(Code::BadTarget, "there are more than four thousand million labels"))?;
            codes_of.insert(word, code);
        }
        let codes: Vec<u32> = (0..texts.len()).map(|row| codes_of[texts.get_bytes(row)]).collect();
        Ok(Targets::Labels { names: words.into_iter().collect(), codes: codes.into() })
    }
}

/// Groups while they are being read.
#[derive(Debug, Default)]
struct GroupColumn {
    key_of: HashMap<Box<[u8]>, u32>,
    names: Texts,
    keys: Vec<u32>,
    last: Vec<u8>,
}

/// Target, group, weight and id of the rows read so far, and the outcomes of pairs.
#[derive(Debug)]
pub(crate) struct RowColumns {
    outcomes: Option<Vec<Outcome>>,
    targets: Option<TargetColumn>,
    sets: Option<SetColumns>,
    groups: Option<GroupColumn>,
    weights: Option<Vec<f64>>,
    ids: Option<Texts>,
}

impl RowColumns {
    fn new(plan: &Plan, options: &ReadOptions) -> RowColumns {
        let names: Vec<String> = plan.labels.iter().map(|&column| plan.names[column].clone()).collect();
        let sets = match (plan.target, options.label_separator) {
            _ if !names.is_empty() => Some(SetColumns::indicators(names)),
            (Some(_), Some(separator)) => Some(SetColumns::cells(separator)),
            _ => None,
        };
        RowColumns {
            sets,
            targets: plan.target.map(|_| TargetColumn::default()),
            groups: plan.group.map(|_| GroupColumn::default()),
            weights: plan.weight.map(|_| Vec::new()),
            ids: plan.id.map(|_| Texts::default()),
            outcomes: plan.outcome.map(|_| Vec::new()),
        }
    }

    /// The columns of a table of pairs.
    pub(crate) fn of_pairs(outcome: bool, weight: bool, group: bool) -> RowColumns {
        RowColumns {
            outcomes: outcome.then(Vec::new),
            targets: None,
            sets: None,
            groups: group.then(GroupColumn::default),
            weights: weight.then(Vec::new),
            ids: None,
        }
    }

    /// Gives pairs the outcomes, weights and groups that were read.
    pub(crate) fn add_to(self, mut pairs: Pairs) -> Result<Pairs> {
        if let Some(outcomes) = self.outcomes
            && outcomes.iter().any(|outcome| *outcome != Outcome::Left)
        {
            pairs = pairs.with_outcomes(outcomes)?;
        }
        if let Some(weights) = self.weights {
            pairs = pairs.with_weights(weights)?;
        }
        if let Some(groups) = self.groups {
            pairs = pairs.with_groups(groups.keys, groups.names.into())?;
        }
        Ok(pairs)
    }

    /// Adds a target as text. The first one that is not a number makes the column one of words.
    pub(crate) fn push_target(&mut self, text: &[u8]) -> std::result::Result<(), Problem> {
        if let Some(sets) = &mut self.sets {
            return sets.push_cell(text);
        }
        let Some(targets) = &mut self.targets else { return Ok(()) };
        if cells::is_missing(text) {
            return Err(Problem::Missing);
        }
        if !targets.has_words {
            match fast_float2::parse::<f64, _>(text.trim_ascii()) {
                Ok(value) => targets.numbers.push(cells::check(value)?),
                Err(_) => {
                    targets.has_words = true;
                    targets.numbers = Vec::new();
                }
            }
        }
        targets.texts.push(text);
        Ok(())
    }

    /// Adds a target from a numeric column.
    #[cfg(feature = "tables")]
    pub(crate) fn push_target_number(&mut self, value: f64) -> std::result::Result<(), Problem> {
        if let Some(sets) = &mut self.sets {
            return sets.push_cell(cells::check(value)?.to_string().as_bytes());
        }
        let Some(targets) = &mut self.targets else { return Ok(()) };
        targets.numbers.push(cells::check(value)?);
        Ok(())
    }

    /// Adds a target that is a list of labels.
    #[cfg(feature = "tables")]
    pub(crate) fn push_target_list(&mut self, own: impl Iterator<Item = Vec<u8>>) {
        self.sets.get_or_insert_with(|| SetColumns::cells(b',')).push_list(own);
    }

    /// Whether the target column holds sets of labels.
    #[cfg(feature = "tables")]
    pub(crate) fn takes_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// Adds whether the row has the next label.
    pub(crate) fn push_label(&mut self, value: std::result::Result<f64, Problem>) -> std::result::Result<(), Problem> {
        self.sets.as_mut().map_or(Ok(()), |sets| sets.push_indicator(value))
    }

    /// Adds a group.
    pub(crate) fn push_group(&mut self, text: &[u8]) -> std::result::Result<(), Problem> {
        let Some(groups) = &mut self.groups else { return Ok(()) };
        if text.is_empty() {
            return Err(Problem::Missing);
        }
        // In most files, rows of one group are next to each other.
        if let Some(&last) = groups.keys.last()
            && groups.last == text
        {
            groups.keys.push(last);
            return Ok(());
        }
        let key = match groups.key_of.get(text) {
            Some(&key) => key,
            None => {
                // More groups than u32 can count would need more rows than fit into memory.
                let key = groups.key_of.len() as u32;
                groups.key_of.insert(text.into(), key);
                groups.names.push(text);
                key
            }
        };
        groups.keys.push(key);
        groups.last.clear();
        groups.last.extend_from_slice(text);
        Ok(())
    }

    /// Adds an outcome.
    pub(crate) fn push_outcome(&mut self, text: &[u8]) -> std::result::Result<(), Problem> {
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.push(cells::outcome(text)?);
        }
        Ok(())
    }

    /// Adds a weight.
    pub(crate) fn push_weight(
        &mut self,
        weight: std::result::Result<f64, Problem>,
    ) -> std::result::Result<(), Problem> {
        let Some(weights) = &mut self.weights else { return Ok(()) };
        let weight = cells::check(weight?)?;
        if weight < 0.0 {
            return Err(Problem::Negative);
        }
        // −0 counts as 0, so that a hash over weights sees one zero.
        weights.push(weight + 0.0);
        Ok(())
    }

    /// Adds an id.
    pub(crate) fn push_id(&mut self, text: &[u8]) {
        if let Some(ids) = &mut self.ids {
            ids.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows: usize, cols: usize, missing: &Missing, cell: impl Fn(usize, usize) -> f32) -> Values<f32> {
        let mut values = Values::<f32>::new(cols, missing).expect("valid");
        for start in (0..rows).step_by(100) {
            let block = 100.min(rows - start);
            values
                .block(block, |out, _| {
                    for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                        for (column, out) in out.iter_mut().enumerate() {
                            *out = cell(start + row, column);
                        }
                    }
                    Ok::<u64, ()>(out.iter().filter(|value| value.is_nan()).count() as u64)
                })
                .expect("valid");
        }
        values
    }

    fn layout_and_cells(values: Values<f32>) -> (&'static str, Vec<Vec<f32>>) {
        let cols = values.cols();
        let (matrix, _) = values.finish(cols).expect("valid");
        let rows = (0..matrix.rows())
            .map(|row| {
                let mut cells = vec![0.0; matrix.cols()];
                matrix.each_in_row(row, |column, value| cells[column] = value as f32);
                cells
            })
            .collect();
        (matrix.layout(), rows)
    }

    #[test]
    fn wide_and_mostly_zero_tables_become_sparse() {
        let some = |row: usize, column: usize| if (row + column).is_multiple_of(10) { 1.0 + row as f32 } else { 0.0 };
        for (rows, cols, layout) in [
            (50, 65, "sparse, u16 index, f32"),
            (5000, 65, "sparse, u16 index, f32"),
            (50, 64, "dense, f32"),
            (2, 70_000, "sparse, u32 index, f32"),
        ] {
            let (found, cells) = layout_and_cells(filled(rows, cols, &Missing::Error, some));
            assert_eq!(found, layout, "{rows} × {cols}");
            assert!(cells.iter().enumerate().all(|(r, row)| row.iter().enumerate().all(|(c, &v)| v == some(r, c))));
        }
    }

    #[test]
    fn the_layout_follows_the_whole_table_not_its_beginning() {
        let late = |row: usize, column: usize| if row >= 1500 { (row * 100 + column + 1) as f32 } else { 0.0 };
        let (layout, cells) = layout_and_cells(filled(4000, 70, &Missing::Error, late));
        assert_eq!(layout, "dense, f32");
        assert!(cells.iter().enumerate().all(|(r, row)| row.iter().enumerate().all(|(c, &v)| v == late(r, c))));
        let early = |row: usize, column: usize| if row < 1100 { (row * 100 + column + 1) as f32 } else { 0.0 };
        let (layout, cells) = layout_and_cells(filled(9000, 70, &Missing::Error, early));
        assert_eq!(layout, "sparse, u16 index, f32");
        assert!(cells.iter().enumerate().all(|(r, row)| row.iter().enumerate().all(|(c, &v)| v == early(r, c))));
    }

    #[test]
    fn missing_cells_get_the_mean_in_either_layout() {
        for cols in [3, 100] {
            let cell = |row: usize, column: usize| match (row % 4, column) {
                (_, 0) => 2.0,
                (0, 1) => f32::NAN,
                (_, 1) => row as f32,
                _ => 0.0,
            };
            let values = filled(8, cols, &Missing::Mean, cell);
            let (matrix, fill) = values.finish(cols).expect("valid");
            let mean = (1 + 2 + 3 + 5 + 6 + 7) as f64 / 6.0;
            assert_eq!(fill.expect("means")[..3], [2.0, mean, 0.0]);
            let mut found = Vec::new();
            matrix.each_in_row(4, |column, value| {
                if column == 1 {
                    found.push(value);
                }
            });
            assert_eq!(found, [mean]);
            assert_eq!(matrix.is_dense(), cols == 3);
        }
    }
}
