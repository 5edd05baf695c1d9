//! [`Dataset`]: everything a learner needs, in one place.

use super::row_loops::for_this_machine;
use super::{Buffer, Groups, Matrix, Names, Outcome, PairCounts, Pairs, Rows, Targets, with_rows};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::scramble;
use crate::run::Cancel;
use std::sync::OnceLock;

/// Rows with features and targets and, optionally, groups, weights, names, ids and comparisons of two rows.
///
/// Rows of one group are stored next to each other. If the input had them scattered, [`Dataset::input_row`] gives the
/// position of each row in the input.
#[derive(Clone, Debug)]
pub struct Dataset {
    matrix: Matrix,
    targets: Targets,
    groups: Option<Groups>,
    weights: Option<Buffer<f64>>,
    feature_names: Option<Names>,
    row_ids: Option<Names>,
    input_order: Option<Buffer<u64>>,
    pairs: Option<Pairs>,
    hash: OnceLock<u64>,
}

/// Number of rows hashed or summed as one chunk. It is fixed, so that the result does not depend on the threads.
const ROW_CHUNK: usize = 4096;

/// The properties of the data that decide which solver suits them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// The share of all entries that are stored: 1 for dense rows.
    pub density: f64,
    /// Number of rows and pairs, if the data are explicit pairs.
    pub compared: Option<PairCounts>,
}

impl Dataset {
    /// Data with features and targets.
    pub fn new(matrix: Matrix, targets: Targets) -> Result<Dataset> {
        let data = Dataset {
            matrix,
            targets,
            groups: None,
            weights: None,
            feature_names: None,
            row_ids: None,
            input_order: None,
            pairs: None,
            hash: OnceLock::new(),
        };
        if let Some(count) = data.targets.rows() {
            data.expect_rows("targets", count)?;
        }
        Ok(data)
    }

    fn expect_rows(&self, what: &str, count: usize) -> Result<()> {
        if count == self.rows() {
            return Ok(());
        }
        Err(Error::new(Code::Internal, format!("{count} {what} for {} rows", self.rows())))
    }

    /// Replaces the targets.
    pub fn with_targets(mut self, targets: Targets) -> Result<Dataset> {
        if let Some(count) = targets.rows() {
            self.expect_rows("targets", count)?;
        }
        self.targets = targets;
        self.hash = OnceLock::new();
        Ok(self)
    }

    /// Adds groups whose rows are already next to each other.
    pub fn with_groups(mut self, groups: Groups) -> Result<Dataset> {
        self.expect_rows("grouped rows", groups.rows())?;
        self.groups = Some(groups);
        self.hash = OnceLock::new();
        Ok(self)
    }

    /// Adds groups given as a key for each row. Scattered rows of a group are moved together. Add ids and weights
    /// first, so that they move with the rows.
    pub fn with_group_keys(self, keys: &[u32], names: Names) -> Result<Dataset> {
        self.expect_rows("group keys", keys.len())?;
        let (groups, order) = Groups::from_keys(keys, names)?;
        let data = match order {
            None => self,
            Some(order) => {
                let mut moved = self.select(&order)?;
                moved.input_order = Some(order.iter().map(|&row| row as u64).collect::<Vec<_>>().into());
                moved
            }
        };
        data.with_groups(groups)
    }

    /// Adds a weight for each row.
    pub fn with_weights(mut self, weights: impl Into<Buffer<f64>>) -> Result<Dataset> {
        let weights = weights.into();
        self.expect_rows("weights", weights.len())?;
        self.weights = Some(weights);
        self.hash = OnceLock::new();
        Ok(self)
    }

    /// Adds a name for each column.
    pub fn with_feature_names(mut self, names: Names) -> Result<Dataset> {
        if names.len() != self.cols() {
            return Err(Error::new(
                Code::Internal,
                format!("{} feature names for {} columns", names.len(), self.cols()),
            ));
        }
        self.feature_names = Some(names);
        Ok(self)
    }

    /// Adds an id for each row.
    pub fn with_row_ids(mut self, ids: Names) -> Result<Dataset> {
        self.expect_rows("row ids", ids.len())?;
        self.row_ids = Some(ids);
        Ok(self)
    }

    /// Adds the position of each row in the input.
    pub fn with_input_order(mut self, order: impl Into<Buffer<u64>>) -> Result<Dataset> {
        let order = order.into();
        self.expect_rows("input positions", order.len())?;
        self.input_order = Some(order);
        Ok(self)
    }

    /// Adds comparisons of two rows.
    pub fn with_pairs(mut self, pairs: Pairs) -> Result<Dataset> {
        if pairs.rows() > self.rows() {
            return Err(Error::new(
                Code::Internal,
                format!("a pair names row {}, and there are {} rows", pairs.rows(), self.rows()),
            ));
        }
        self.pairs = Some(pairs);
        self.hash = OnceLock::new();
        Ok(self)
    }

    /// Adds a hash that was computed earlier from the same values.
    pub fn with_hash(self, hash: u64) -> Dataset {
        let cell = OnceLock::new();
        let _ = cell.set(hash);
        Dataset { hash: cell, ..self }
    }

    /// Limits the mapped features in memory to a few blocks of `block_bytes` bytes at a time.
    pub fn limited(self, block_bytes: u64) -> Dataset {
        Dataset { matrix: self.matrix.limited(block_bytes), ..self }
    }

    /// Replaces the features, for example by scaled ones.
    pub fn with_matrix(self, matrix: Matrix) -> Result<Dataset> {
        self.expect_rows("rows of the new matrix", matrix.rows())?;
        let feature_names = self.feature_names.filter(|names| names.len() == matrix.cols());
        Ok(Dataset { matrix, feature_names, hash: OnceLock::new(), ..self })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.matrix.cols()
    }

    /// The features.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The targets.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The groups, if rows have any.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// A weight for each row, if given.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// A name for each column, if given.
    pub fn feature_names(&self) -> Option<&Names> {
        self.feature_names.as_ref()
    }

    /// An id for each row, if given.
    pub fn row_ids(&self) -> Option<&Names> {
        self.row_ids.as_ref()
    }

    /// Comparisons of two rows, if given.
    pub fn pairs(&self) -> Option<&Pairs> {
        self.pairs.as_ref()
    }

    /// Number of rows and number of pairs, if comparisons are given.
    pub fn compared(&self) -> Option<PairCounts> {
        self.pairs.as_ref().map(|pairs| PairCounts { rows: self.rows(), pairs: pairs.len() })
    }

    /// The properties that decide which solver suits the data.
    pub fn shape(&self) -> Shape {
        let places = self.rows().saturating_mul(self.cols());
        let density = if places == 0 { 0.0 } else { self.matrix.entries() as f64 / places as f64 };
        Shape { rows: self.rows(), features: self.cols(), density, compared: self.compared() }
    }

    /// Number of pairs that call one row better although both rows have the same features, so that no score separates
    /// them. Pairs of weight 0 do not count.
    pub fn indistinct_pairs(&self) -> Result<u64> {
        const CHUNK: usize = 256;
        let Some(pairs) = &self.pairs else { return Ok(0) };
        self.matrix.check(0..self.rows())?;
        let decided = |pair: &usize| pairs.outcome(*pair) != Outcome::Tie && pairs.weight(*pair) > 0.0;
        let same = |sides: &mut [Vec<(usize, f64)>; 2], pair: usize| {
            for (row, entries) in [pairs.left()[pair], pairs.right()[pair]].into_iter().zip(&mut *sides) {
                entries.clear();
                self.matrix.each_in_row(row as usize, |column, value| {
                    if value != 0.0 {
                        entries.push((column, value));
                    }
                });
            }
            u64::from(sides[0] == sides[1])
        };
        let of_chunk = |chunk: usize| -> u64 {
            let mut sides = Default::default();
            let pairs = chunk * CHUNK..((chunk + 1) * CHUNK).min(pairs.len());
            pairs.filter(decided).map(|pair| same(&mut sides, pair)).sum()
        };
        Ok(parallel::map(pairs.len().div_ceil(CHUNK), of_chunk).into_iter().sum())
    }

    /// The position in the input of each stored row, if the order differs.
    pub fn input_order(&self) -> Option<&[u64]> {
        self.input_order.as_deref()
    }

    /// The position in the input of a stored row.
    pub fn input_row(&self, row: usize) -> usize {
        self.input_order.as_ref().map_or(row, |order| order[row] as usize)
    }

    /// The rows in the order of the input. If they were moved, they lose their groups.
    pub fn in_input_order(self) -> Result<Dataset> {
        let Some(order) = &self.input_order else { return Ok(self) };
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &row)| places[row as usize] = place);
        self.select(&places)
    }

    /// The name of a stored row in messages: its id, or its position in the input.
    pub fn row_name(&self, row: usize) -> String {
        match &self.row_ids {
            Some(ids) => format!("`{}`", ids.get(row)),
            None => format!("row {}", self.input_row(row) + 1),
        }
    }

    /// Puts one value per stored row, or several next to each other, back into the order of the input.
    pub fn to_input_order<T: Clone>(&self, stored: Vec<T>) -> Vec<T> {
        let Some(order) = &self.input_order else {
            return stored;
        };
        // A row may have several values, next to each other.
        let each = (stored.len() / order.len().max(1)).max(1);
        let mut moved = stored.clone();
        for (values, &row) in stored.chunks_exact(each).zip(order.iter()) {
            moved[row as usize * each..][..each].clone_from_slice(values);
        }
        moved
    }

    /// Neighbouring stored rows, verified, sharing the same memory, without pairs. A group that crosses an end of the
    /// run is cut there. If rows were moved, input positions stay those of the whole data; otherwise they count from
    /// the first row of the run.
    pub fn run(&self, rows: std::ops::Range<usize>) -> Result<Dataset> {
        let matrix = self.matrix.run(rows.clone())?;
        Ok(Dataset {
            matrix,
            targets: self.targets.run(rows.clone()),
            groups: self.groups.as_ref().map(|groups| groups.run(rows.clone())).transpose()?,
            weights: self.weights.as_ref().map(|weights| weights.slice(rows.clone())),
            feature_names: self.feature_names.clone(),
            row_ids: self.row_ids.as_ref().map(|ids| ids.run(rows.clone())),
            input_order: self.input_order.as_ref().map(|order| order.slice(rows)),
            pairs: None,
            hash: OnceLock::new(),
        })
    }

    /// The given rows in the given order, copied, without groups and pairs.
    pub fn select(&self, rows: &[usize]) -> Result<Dataset> {
        self.matrix.check(0..self.rows())?;
        Ok(Dataset {
            matrix: self.matrix.select(rows),
            targets: self.targets.select(rows),
            groups: None,
            weights: self.weights.as_ref().map(|w| rows.iter().map(|&row| w[row]).collect::<Vec<_>>().into()),
            feature_names: self.feature_names.clone(),
            row_ids: self.row_ids.as_ref().map(|ids| rows.iter().map(|&row| ids.get_bytes(row)).collect()),
            input_order: None,
            pairs: None,
            hash: OnceLock::new(),
        })
    }

    /// The given rows, in order and each as often as it is listed, without weights and pairs. Groups stay together, and
    /// input positions are those of the rows given.
    pub(crate) fn repeated(&self, rows: &[usize]) -> Result<Dataset> {
        let order: Vec<u64> = rows.iter().map(|&row| self.input_row(row) as u64).collect();
        let mut copies = Dataset { weights: None, input_order: Some(order.into()), ..self.select(rows)? };
        if let Some(groups) = &self.groups {
            let (mut starts, mut kept) = (vec![0], Vec::new());
            for (group, range) in groups.ranges().enumerate() {
                let end = rows.partition_point(|&row| row < range.end) as u64;
                if starts.last() != Some(&end) {
                    starts.push(end);
                    kept.push(group);
                }
            }
            let names: Names = kept.into_iter().map(|group| groups.names().get_bytes(group)).collect();
            copies.groups = Some(Groups::new(starts, names)?);
        }
        Ok(copies)
    }

    /// The rows and pairs of this data set, followed by those of another with the same features, copied. Names of rows are
    /// dropped. One use is to evaluate settings on the rows or pairs of the other data set.
    pub fn followed_by(&self, other: &Dataset) -> Result<Dataset> {
        self.matrix.check(0..self.rows())?;
        other.matrix.check(0..other.rows())?;
        let targets = self.targets.followed_by(&other.targets)?;
        let mut joined = Dataset::new(Matrix::join(&[&self.matrix, &other.matrix])?, targets)?;
        if self.weights.is_some() || other.weights.is_some() {
            let of = |data: &Dataset| data.weights().map_or_else(|| vec![1.0; data.rows()], <[f64]>::to_vec);
            joined = joined.with_weights([of(self), of(other)].concat())?;
        }
        match (&self.groups, &other.groups) {
            (Some(own), Some(others)) => joined = joined.with_groups(own.followed_by(others)?)?,
            (None, None) => {}
            _ => {
                return Err(Error::new(
                    Code::MixedGroups,
                    "the rows of one file have query ids, and those of the other none",
                )
                .help("give the rows of both files query ids, or none"));
            }
        }
        if let (Some(own), Some(others)) = (&self.pairs, &other.pairs) {
            joined = joined.with_pairs(own.followed_by(others, self.rows())?)?;
        }
        match &self.feature_names {
            Some(names) => joined.with_feature_names(names.clone()),
            None => Ok(joined),
        }
    }

    /// The given rows in the given order, copied, with their groups and the pairs among them, for example a fold. Rows
    /// of one group must be next to each other in the list. If only some rows of a group are listed, the group keeps
    /// these.
    pub fn subset(&self, rows: &[usize]) -> Result<Dataset> {
        if let Some(&row) = rows.iter().find(|&&row| row >= self.rows()) {
            return Err(Error::new(Code::Internal, format!("row {row} of only {} was asked for", self.rows())));
        }
        let mut selected = self.select(rows)?;
        if let Some(pairs) = &self.pairs {
            let mut place = vec![None; self.rows()];
            rows.iter().enumerate().for_each(|(new, &row)| place[row] = Some(new as u32));
            selected = selected.with_pairs(pairs.moved(&place))?;
        }
        let Some(groups) = &self.groups else {
            return Ok(selected);
        };
        let mut kept: Vec<usize> = Vec::new();
        let mut starts = Vec::new();
        let mut seen = vec![false; groups.len()];
        for (position, &row) in rows.iter().enumerate() {
            if kept.last().is_some_and(|&group| groups.range(group).contains(&row)) {
                continue;
            }
            let group = groups.starts().partition_point(|&start| start <= row as u64) - 1;
            if std::mem::replace(&mut seen[group], true) {
                return Err(Error::new(
                    Code::Internal,
                    format!("the selected rows of group `{}` are not neighbours", groups.names().get(group)),
                ));
            }
            kept.push(group);
            starts.push(position as u64);
        }
        starts.push(rows.len() as u64);
        let names = kept.iter().map(|&group| groups.names().get_bytes(group)).collect();
        selected.with_groups(Groups::new(starts, names)?)
    }

    /// The weighted variance of all feature values, zeros included.
    pub fn variance(&self, cancel: &Cancel) -> Result<f64> {
        self.matrix.check(0..self.rows())?;
        let weight = |row: usize| self.weights().map_or(1.0, |weights| weights[row]);
        // Chunks are summed in order, so that the result does not depend on the threads.
        let sum = |of_row: &(dyn Fn(usize) -> f64 + Sync)| -> Result<f64> {
            let of_chunk = |chunk: usize| {
                cancel.check()?;
                let rows = chunk * ROW_CHUNK..((chunk + 1) * ROW_CHUNK).min(self.rows());
                let sum = rows.clone().map(|row| weight(row) * of_row(row)).sum();
                self.matrix.residency().passed(rows);
                Ok(sum)
            };
            let parts: Vec<f64> = parallel::try_map(self.rows().div_ceil(ROW_CHUNK), of_chunk)?;
            Ok(parts.into_iter().sum())
        };
        let cells = self.cols() as f64;
        let total = sum(&|_| cells)?;
        let mean = sum(&|row| {
            let mut sum = 0.0;
            self.matrix.each_in_row(row, |_, value| sum += value);
            sum
        })? / total;
        let squares = sum(&|row| {
            let (mut sum, mut seen) = (0.0, 0.0);
            self.matrix.each_in_row(row, |_, value| {
                sum += (value - mean).powi(2);
                seen += 1.0;
            });
            sum + (cells - seen) * mean * mean
        })?;
        Ok(squares / total)
    }

    /// A hash over the parsed values: rows in stored order with their non-zero features, targets, weights, groups and
    /// pairs. It does not depend on the file format, on names, or on dense or sparse storage.
    pub fn hash(&self) -> Result<u64> {
        if let Some(&hash) = self.hash.get() {
            return Ok(hash);
        }
        let hash = self.computed_hash()?;
        Ok(*self.hash.get_or_init(|| hash))
    }

    /// The same, always computed from the values, even if a stored hash exists.
    pub fn computed_hash(&self) -> Result<u64> {
        self.matrix.check(0..self.rows())?;
        let rows = self.rows();
        let chunks: Vec<u64> = parallel::map(rows.div_ceil(ROW_CHUNK), |chunk| {
            let range = chunk * ROW_CHUNK..((chunk + 1) * ROW_CHUNK).min(rows);
            let hash = range.clone().fold(0, |state, row| scramble(state ^ self.hash_row(row)));
            self.matrix.residency().passed(range);
            hash
        });
        let start = start_hash(rows as u64, self.groups.as_ref().map(Groups::starts));
        let hash = chunks.into_iter().fold(start, |state, chunk| scramble(state ^ chunk));
        // Data without pairs keep the hash that they had before pairs were supported.
        Ok(self.pairs.as_ref().map_or(hash, |pairs| scramble(hash ^ pairs.hash())))
    }

    fn hash_row(&self, row: usize) -> u64 {
        let sum = with_rows!(&self.matrix, rows => hash_entries(rows, row));
        let target = match &self.targets {
            Targets::Absent => 0,
            Targets::Real(values) => scramble((values[row] + 0.0).to_bits()),
            Targets::Labels { names, codes } => hash_bytes(names.get_bytes(codes[row] as usize)),
            Targets::Sets { names, starts, codes } => codes[starts[row] as usize..starts[row + 1] as usize]
                .iter()
                .fold(2, |state, &code| scramble(state ^ hash_bytes(names.get_bytes(code as usize)))),
        };
        let weight = self.weights.as_ref().map_or(1.0, |weights| weights[row] + 0.0);
        scramble(scramble(sum ^ target.rotate_left(17)) ^ weight.to_bits())
    }
}

for_this_machine! {
    /// The hash of a row's features. A sum does not depend on the order, so the loop can run in several lanes.
    fn hash_entries[R: Rows](rows: &R, row: usize) -> u64 = hash_entries_plainly
}

#[inline(always)]
fn hash_entries_plainly<R: Rows>(rows: &R, row: usize) -> u64 {
    let mut sum = 0u64;
    rows.each(row, |column, value| {
        let hash = scramble(value.to_bits() ^ (column as u64 + 1).wrapping_mul(PRIME));
        // A stored zero counts the same as one that is not stored.
        sum = sum.wrapping_add(if value != 0.0 { hash } else { 0 });
    });
    sum
}

/// The hash before the first row.
fn start_hash(rows: u64, group_starts: Option<&[u64]>) -> u64 {
    let groups = group_starts
        .map_or(0, |starts| starts.iter().fold(1, |state, &start| scramble(state ^ start.wrapping_mul(PRIME))));
    scramble(rows ^ groups)
}

/// The hash of data that arrive in blocks, see [`Dataset::hash`].
#[derive(Clone, Debug)]
pub struct BlockHash {
    state: u64,
    chunk: u64,
    rows_in_chunk: usize,
}

impl BlockHash {
    /// A hash for data with this number of rows and groups that start at these rows.
    pub fn new(rows: u64, group_starts: Option<&[u64]>) -> BlockHash {
        BlockHash { state: start_hash(rows, group_starts), chunk: 0, rows_in_chunk: 0 }
    }

    /// Adds the next rows.
    pub fn add(&mut self, block: &Dataset) -> Result<()> {
        block.matrix.check(0..block.rows())?;
        let rows: Vec<u64> = parallel::collect(block.rows(), 256, |row| block.hash_row(row));
        for row in rows {
            self.chunk = scramble(self.chunk ^ row);
            self.rows_in_chunk += 1;
            if self.rows_in_chunk == ROW_CHUNK {
                self.end_chunk();
            }
        }
        Ok(())
    }

    fn end_chunk(&mut self) {
        self.state = scramble(self.state ^ self.chunk);
        (self.chunk, self.rows_in_chunk) = (0, 0);
    }

    /// The hash of all rows.
    pub fn finish(mut self) -> u64 {
        if self.rows_in_chunk > 0 {
            self.end_chunk();
        }
        self.state
    }
}

const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

fn hash_bytes(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// Weight vectors are dense. A larger one would fill the memory of most machines, and the usual cause is a mistyped
/// index.
const MOST_FEATURES: usize = 1 << 27;

/// Returns an error if there are too many features for a weight vector. Call it as soon as the data are read.
pub fn check_features(features: usize) -> Result<()> {
    if features <= MOST_FEATURES {
        return Ok(());
    }
    Err(Error::new(
        Code::BadIndex,
        format!("the largest feature index requires {features} weights, and at most {MOST_FEATURES} are allowed"),
    )
    .help("renumber the features without gaps"))
}

#[cfg(test)]
mod tests {
    use super::super::{Csr, Dense};
    use super::*;

    fn pair() -> (Dataset, Dataset) {
        let targets = || Targets::Real(vec![1.0, -1.0].into());
        let dense = Matrix::DenseF32(Dense::new(vec![0.0, 2.0, 0.5, 0.0, 0.0, -0.0], 2, 3).expect("valid"));
        let sparse = Matrix::Csr16F32(Csr::new(vec![0, 2, 2], vec![1, 2], vec![2.0, 0.5], 3).expect("valid"));
        (Dataset::new(dense, targets()).expect("valid"), Dataset::new(sparse, targets()).expect("valid"))
    }

    #[test]
    fn the_hash_sees_values_not_storage() {
        let (dense, sparse) = pair();
        assert_eq!(dense.hash().expect("valid"), sparse.hash().expect("valid"));
        let weighted = sparse.clone().with_weights(vec![1.0, 1.0]).expect("valid");
        assert_eq!(weighted.hash().expect("valid"), sparse.hash().expect("valid"));
        let weighted = sparse.clone().with_weights(vec![1.0, 2.0]).expect("valid");
        assert_ne!(weighted.hash().expect("valid"), sparse.hash().expect("valid"));
        let swapped = sparse.select(&[1, 0]).expect("valid");
        assert_ne!(swapped.hash().expect("valid"), sparse.hash().expect("valid"));
    }

    #[test]
    fn blocks_hash_like_the_whole() {
        let (_, data) = pair();
        for rows in [1, 4095, 4096, 4097, 9000] {
            let data = data.select(&(0..rows).map(|row| row % 2).collect::<Vec<_>>()).expect("valid");
            let starts = vec![0, rows as u64];
            let data = data.with_groups(Groups::new(starts.clone(), ["q"].into_iter().collect()).expect("valid"));
            let data = data.expect("valid");
            let mut hash = BlockHash::new(rows as u64, Some(&starts));
            for start in (0..rows).step_by(1000) {
                hash.add(&data.run(start..(start + 1000).min(rows)).expect("inside")).expect("valid");
            }
            assert_eq!(hash.finish(), data.hash().expect("valid"), "{rows}");
        }
    }

    #[test]
    fn a_subset_keeps_the_groups_of_its_rows() {
        let (data, _) = pair();
        let data = data.select(&[0, 1, 0, 1, 0, 1]).expect("valid").with_weights(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let data = data.expect("valid").with_group_keys(&[0, 0, 1, 2, 2, 2], ["x", "y", "z"].into_iter().collect());
        let data = data.expect("valid");
        let subset = data.subset(&[3, 4, 5, 0]).expect("neighbours");
        let groups = subset.groups().expect("kept");
        assert_eq!(groups.starts(), &[0, 3, 4]);
        assert_eq!(groups.names().iter().collect::<Vec<_>>(), ["z", "x"]);
        assert_eq!(subset.weights(), Some(&[4.0, 5.0, 6.0, 1.0][..]));
        assert_eq!(data.subset(&[0, 2, 1]).expect_err("scattered").code(), Code::Internal);
        assert_eq!(data.subset(&[6]).expect_err("no such row").code(), Code::Internal);
        assert_eq!(data.subset(&[]).expect("nothing").groups().map(Groups::len), Some(0));
        let all: Vec<usize> = (0..6).collect();
        let whole = data.subset(&all).expect("everything");
        assert_eq!(whole.hash().expect("valid"), data.hash().expect("valid"));
    }

    #[test]
    fn runs_of_rows_joined_again_are_the_whole() {
        let (dense, sparse) = pair();
        for data in [dense, sparse] {
            let data = data
                .select(&[0, 1, 1, 0, 0, 1])
                .expect("valid")
                .with_row_ids(["a", "", "ccc", "d", "e", "ff"].into_iter().collect());
            let data = data.expect("valid").with_group_keys(&[0, 0, 0, 1, 2, 2], ["x", "y", "z"].into_iter().collect());
            let data = data.expect("valid");
            let runs: Vec<Dataset> =
                [0..2, 2..2, 2..5, 5..6].into_iter().map(|rows| data.run(rows).expect("inside")).collect();
            let ids: Vec<String> = runs
                .iter()
                .flat_map(|run| run.row_ids().expect("kept").iter().map(|id| id.into_owned()).collect::<Vec<_>>())
                .collect();
            assert_eq!(ids, ["a", "", "ccc", "d", "e", "ff"]);
            assert_eq!(runs[2].groups().expect("kept").names().iter().collect::<Vec<_>>(), ["x", "y", "z"]);
            assert_eq!(runs[2].targets().real().expect("real"), &data.targets().real().expect("real")[2..5]);
            let joined = Matrix::join(&runs.iter().map(Dataset::matrix).collect::<Vec<_>>()).expect("one layout");
            let joined = Dataset::new(joined, data.targets().clone()).expect("as many rows");
            let joined = joined.with_groups(data.groups().expect("kept").clone()).expect("as many rows");
            assert_eq!(joined.hash().expect("valid"), data.hash().expect("valid"));
            assert!(data.run(5..7).is_err());
        }
        let (dense, sparse) = pair();
        assert!(Matrix::join(&[dense.matrix(), sparse.matrix()]).is_err());
    }

    #[test]
    fn scattered_groups_keep_the_way_back() {
        let (data, _) = pair();
        let data = data.select(&[0, 1, 0, 1]).expect("valid");
        let data = data.with_group_keys(&[0, 1, 0, 1], ["x", "y"].into_iter().collect()).expect("valid");
        assert_eq!(data.input_order(), Some(&[0, 2, 1, 3][..]));
        assert_eq!(data.to_input_order(vec!['a', 'b', 'c', 'd']), vec!['a', 'c', 'b', 'd']);
        let two = data.to_input_order(vec!["a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2"]);
        assert_eq!(two, vec!["a1", "a2", "c1", "c2", "b1", "b2", "d1", "d2"]);
        assert_eq!(data.targets().real().expect("real"), &[1.0, 1.0, -1.0, -1.0]);
    }
}
