//! Built-in data generators: realistic data of any size from a few settings and a seed.
//!
//! | generator | like | makes |
//! |---|---|---|
//! | [`Search`] | LETOR, MSLR | graded documents of search queries, dense columns of several kinds |
//! | [`Comparisons`] | the published simulation of comparisons with ties | pairs of points, compared by a hidden score
//! |
//! | [`Tagged`] | yeast, emotions | rows with sets of labels, dense columns |
//! | [`Clicks`] | click logs | users who click on ranked lists of graded rows |
//! | [`Text`] | RCV1 | two classes of documents as sparse unit rows with Zipf-distributed words |
//!
//! A [`Generator`] makes rows in blocks. Each block has its own random stream, so blocks can be made in any order and
//! by any number of threads, and can be written one after the other without holding all rows in memory. The bytes are
//! always the same.
//!
//! ```
//! use maxmargin::simulate::{Generator, Search, SearchSettings};
//!
//! let search = Search::new(SearchSettings { queries: 20, docs: 10, features: 8, ..SearchSettings::default() })?;
//! let data = search.to_dataset()?;
//! assert_eq!(data.groups().map(|queries| queries.len()), Some(20));
//! assert_eq!(data.feature_names().map(|names| names.get(0).into_owned()).as_deref(), Some("bm25_title"));
//! assert_eq!(search.weights().len(), 8);
//! # Ok::<(), maxmargin::Error>(())
//! ```

mod clicks;
mod comparisons;
mod label_sets;
mod search;
mod text;

pub use clicks::{ClickSettings, Clicks, Shown, User};
pub use comparisons::{ComparisonSettings, Comparisons, Pattern, Placed};
pub use label_sets::{Tagged, TaggedSettings};
pub use search::{Search, SearchSettings};
pub use text::{Text, TextSettings};

use crate::data::{Csr, Dataset, Dense, Groups, Index, Matrix, Names, Targets};
use crate::error::{Code, Error, Result};
use crate::parallel;

/// Makes rows, block by block.
pub trait Generator: Sync {
    /// Number of columns.
    fn features(&self) -> usize;

    /// A name for each column, if columns have names.
    fn feature_names(&self) -> Option<Vec<String>>;

    /// Number of blocks.
    fn blocks(&self) -> u64;

    /// The block with the given number, counted from 0. It always has the same rows. Groups never cross blocks.
    fn block(&self, number: u64) -> Block;

    /// All rows in memory.
    fn to_dataset(&self) -> Result<Dataset> {
        let blocks: Vec<Block> = parallel::map(self.blocks() as usize, |number| self.block(number as u64));
        dataset(blocks, self.features(), self.feature_names())
    }
}

/// Some neighbouring rows: non-zero entries only, columns increasing within a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The target of each row.
    pub targets: Vec<f64>,
    /// The group of each row; empty if there are no groups. Rows of one group are next to each other.
    pub group_ids: Vec<u64>,
    /// Where the entries of each row end.
    pub ends: Vec<usize>,
    /// The columns of all entries, from 0.
    pub indices: Vec<u32>,
    /// The values of all entries.
    pub values: Vec<f32>,
}

impl Block {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// Columns and values of one row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        (&self.indices[start..self.ends[row]], &self.values[start..self.ends[row]])
    }

    /// The group of one row.
    pub fn group_id(&self, row: usize) -> Option<u64> {
        self.group_ids.get(row).copied()
    }
}

fn dataset(blocks: Vec<Block>, features: usize, names: Option<Vec<String>>) -> Result<Dataset> {
    let rows: usize = blocks.iter().map(Block::rows).sum();
    let entries: usize = blocks.iter().map(|block| block.values.len()).sum();
    let mut targets = Vec::with_capacity(rows);
    let (mut group_starts, mut group_names) = (Vec::new(), Vec::new());
    let mut last_group = None;
    for block in &blocks {
        for row in 0..block.rows() {
            let group = block.group_id(row);
            if group.is_some() && group != last_group {
                group_starts.push(targets.len() as u64);
                group_names.extend(group.map(|id| id.to_string()));
                last_group = group;
            }
            targets.push(block.targets[row]);
        }
    }
    // A stored value takes four bytes, an index two or four. From a density of two thirds on, dense storage is smaller.
    let matrix = if entries * 3 >= rows * features * 2 {
        dense(blocks, rows, features)?
    } else if features <= 1 << 16 {
        Matrix::Csr16F32(sparse(blocks, rows, entries, features, |index| index as u16)?)
    } else {
        Matrix::Csr32F32(sparse(blocks, rows, entries, features, |index| index)?)
    };
    let mut data = Dataset::new(matrix, Targets::Real(targets.into()))?;
    if !group_names.is_empty() {
        group_starts.push(rows as u64);
        data = data.with_groups(Groups::new(group_starts, group_names.into_iter().collect::<Names>())?)?;
    }
    match names {
        Some(names) => data.with_feature_names(names.into_iter().collect()),
        None => Ok(data),
    }
}

fn dense(blocks: Vec<Block>, rows: usize, features: usize) -> Result<Matrix> {
    let mut values = vec![0.0f32; rows * features];
    let mut rest = values.as_mut_slice();
    for block in blocks {
        for row in 0..block.rows() {
            let (target, after) = rest.split_at_mut(features);
            let (indices, entries) = block.row(row);
            for (&index, &value) in indices.iter().zip(entries) {
                target[index as usize] = value;
            }
            rest = after;
        }
    }
    Ok(Matrix::DenseF32(Dense::new(values, rows, features)?))
}

fn sparse<I: Index + Send + Sync + 'static>(
    blocks: Vec<Block>,
    rows: usize,
    entries: usize,
    features: usize,
    narrow: impl Fn(u32) -> I,
) -> Result<Csr<I, f32>> {
    let mut starts = Vec::with_capacity(rows + 1);
    starts.push(0u64);
    let (mut indices, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    for block in blocks {
        let before = values.len() as u64;
        starts.extend(block.ends.iter().map(|&end| before + end as u64));
        indices.extend(block.indices.iter().map(|&index| narrow(index)));
        values.extend_from_slice(&block.values);
    }
    Csr::new(starts, indices, values, features)
}

/// Returns an error that names the setting, unless it is in range. The name is a reference if the command has such a flag.
fn require(valid: bool, setting: &str, found: impl std::fmt::Display, range: &str) -> Result<()> {
    if valid {
        return Ok(());
    }
    Err(Error::new(Code::BadSetting, format!("{setting} is {found}, which cannot be simulated"))
        .help(format!("{setting} must be {range}")))
}

/// The value below which the given share of the sorted numbers lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = (share * sorted.len() as f64) as usize;
    sorted.get(position).or(sorted.last()).copied().unwrap_or(0.0)
}

/// A log-normal whole number of at least one with about the given mean.
fn log_normal_count(mean: usize, spread: f64, normal: f64) -> usize {
    ((mean as f64 * (spread * normal - spread * spread / 2.0).exp()).round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool").install(work)
    }

    fn check_streaming(generator: &(dyn Generator + Send)) {
        let expected = generator.to_dataset().expect("valid");
        for threads in [1, 2, 8] {
            let data = on_threads(threads, || generator.to_dataset()).expect("valid");
            assert_eq!(data.hash().expect("valid"), expected.hash().expect("valid"));
        }
        let mut row = 0;
        // In reverse order, because the order in which blocks are made must not matter.
        let mut blocks: Vec<Block> = (0..generator.blocks()).rev().map(|number| generator.block(number)).collect();
        blocks.reverse();
        for block in &blocks {
            for inside in 0..block.rows() {
                let (indices, values) = block.row(inside);
                let entries: Vec<(usize, f64)> =
                    indices.iter().zip(values).map(|(&index, &value)| (index as usize, f64::from(value))).collect();
                assert!(entries.iter().all(|entry| entry.1 != 0.0 && entry.1.is_finite()));
                assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
                let mut stored = Vec::new();
                expected.matrix().each_in_row(row, |column, value| {
                    if value != 0.0 {
                        stored.push((column, value));
                    }
                });
                assert_eq!(stored, entries);
                assert_eq!(expected.targets().real().expect("numbers")[row], block.targets[inside]);
                if let Some(groups) = expected.groups() {
                    let group = groups.starts().partition_point(|&start| start <= row as u64) - 1;
                    let id = block.group_id(inside).expect("grouped").to_string();
                    assert_eq!(groups.names().get(group), id);
                }
                row += 1;
            }
        }
        assert_eq!(row, expected.rows());
    }

    #[test]
    fn blocks_in_any_order_and_on_any_number_of_threads_make_the_same_data() {
        let settings = TextSettings { rows: 2500, features: 3000, nonzeros: 20, ..TextSettings::default() };
        check_streaming(&Text::new(settings).expect("valid"));
        let wide = TextSettings { rows: 30, features: 70_000, ..TextSettings::default() };
        check_streaming(&Text::new(wide).expect("valid"));
        let settings = SearchSettings { queries: 70, docs: 9, features: 40, ..SearchSettings::default() };
        check_streaming(&Search::new(settings).expect("valid"));
    }

    #[test]
    fn settings_are_read_with_defaults_for_what_is_left_out() {
        let text: TextSettings = serde_json::from_str(r#"{"rows": 5, "seed": 9}"#).expect("valid");
        assert_eq!(text, TextSettings { rows: 5, seed: 9, ..TextSettings::default() });
        let search: SearchSettings = serde_json::from_str(r#"{"docs": 5}"#).expect("valid");
        assert_eq!(search, SearchSettings { docs: 5, ..SearchSettings::default() });
        assert!(serde_json::from_str::<SearchSettings>(r#"{"documents": 5}"#).is_err());
    }
}
