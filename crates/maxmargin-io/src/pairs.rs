//! Tables of pairs: `better,worse[,weight][,group]`, naming the rows of another file by their ids.
//!
//! [`read_pairs`] reads any table that [`crate::read()`] reads; each id is looked up once, so that a million pairs cost
//! two million look-ups. Items whose file has no ids (svmlight without comments) go by the number of their row, from 1.
//! The other form of pairs, a table with columns `better.NAME` and `worse.NAME`, is an ordinary table with two rows a
//! line: see `columns.rs` and [`Pairing::Sides`].

use crate::cells::{self, Problem};
use crate::columns::{GROUP_NAMES, Role, WEIGHT_NAMES, asked};
use crate::csv::Refusal;
use crate::table::RowColumns;
use crate::{Facts, Format, Loaded, Pairing, ReadOptions};
use maxmargin::data::{Dataset, Pairs};
use maxmargin::error::{Code, Error, Result};
use maxmargin::suggest::nearest;
use maxmargin::wording::counted;
use std::collections::HashMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Rows that pairs name, and how to find them.
#[derive(Debug)]
pub struct Items {
    data: Dataset,
    file: String,
    index: Index,
}

#[derive(Debug)]
enum Index {
    /// Rows in an open hash table over their ids; `EMPTY` where there is none.
    Ids(Vec<u32>),
    /// The stored row of each row of the file.
    Numbers(Vec<u32>),
}

const EMPTY: u32 = u32::MAX;

/// Above this many items nobody waits for the nearest id.
const FEW_ITEMS: usize = 100_000;

impl Items {
    /// Takes rows as items: by their ids, or by their numbers where a file without columns has none.
    pub fn new(loaded: &Loaded) -> Result<Items> {
        let (data, file) = (loaded.data.clone(), loaded.facts.file.clone());
        if data.rows() >= EMPTY as usize {
            return Err(Error::new(Code::BadSetting, "more than 4,294,967,294 items").in_file(file).help("take fewer"));
        }
        let tabular = matches!(loaded.facts.format, Some(Format::Csv | Format::Tsv | Format::Parquet | Format::Arrow));
        let index = match data.row_ids() {
            Some(_) => Index::Ids(index_ids(&data, &file)?),
            None if tabular => {
                return Err(Error::new(
                    Code::NoSuchColumn,
                    "pairs name items by their ids, and the table has no id column",
                )
                .in_file(file)
                .help("name the column with --id COLUMN, or call it `id`"));
            }
            None => {
                let mut stored = vec![0; data.rows()];
                (0..data.rows()).for_each(|row| stored[data.input_row(row)] = row as u32);
                Index::Numbers(stored)
            }
        };
        Ok(Items { data, file, index })
    }

    /// How items are named, in words.
    pub fn naming(&self) -> &'static str {
        match self.index {
            Index::Ids(_) => "items by their ids",
            Index::Numbers(_) => "items by the number of their row, from 1",
        }
    }

    fn find(&self, text: &[u8]) -> Option<u32> {
        let text = text.trim_ascii();
        match (&self.index, self.data.row_ids()) {
            (Index::Ids(slots), Some(ids)) => {
                let mut at = xxh3_64(text) as usize & (slots.len() - 1);
                loop {
                    match slots[at] {
                        EMPTY => return None,
                        row if ids.get_bytes(row as usize).trim_ascii() == text => return Some(row),
                        _ => at = (at + 1) & (slots.len() - 1),
                    }
                }
            }
            (Index::Numbers(stored), _) => {
                let number: usize = std::str::from_utf8(text).ok()?.parse().ok()?;
                stored.get(number.checked_sub(1)?).copied()
            }
            (Index::Ids(_), None) => None,
        }
    }

    /// The error for a name that no item has.
    fn unknown(&self, column: &str, text: &[u8], at: &str) -> (Error, String) {
        let shown = cells::clipped(&String::from_utf8_lossy(text.trim_ascii()));
        let (rows, file) = (self.data.rows(), &self.file);
        let (message, help, expected) = match (&self.index, self.data.row_ids()) {
            (Index::Ids(_), Some(ids)) => {
                let close = if rows <= FEW_ITEMS {
                    let names: Vec<_> = ids.iter().collect();
                    nearest(&shown, names.iter().map(|name| name.as_ref()))
                } else {
                    None
                };
                let close = close.map(|close| format!("did you mean `{close}`? ")).unwrap_or_default();
                (
                    format!("no item has the id `{shown}`{at}: column `{column}`"),
                    format!("{close}correct the id, or add the item to {file}"),
                    format!("an id of {file}"),
                )
            }
            _ => (
                format!("no item is row `{shown}`{at}: column `{column}`"),
                format!(
                    "{file} has no ids, so that its {} by number, from 1; an id stands behind a # at the end of a line",
                    counted(rows as u64, "row goes", "rows go")
                ),
                format!("a row number from 1 to {rows}"),
            ),
        };
        (Error::new(Code::UnknownItem, message).help(help), expected)
    }
}

/// Puts the rows into a hash table by their ids; an error where two have the same.
fn index_ids(data: &Dataset, file: &str) -> Result<Vec<u32>> {
    let Some(ids) = data.row_ids() else { return Ok(vec![EMPTY]) };
    let mut slots = vec![EMPTY; (2 * ids.len() + 1).next_power_of_two()];
    for row in 0..ids.len() {
        let id = ids.get_bytes(row).trim_ascii();
        let mut at = xxh3_64(id) as usize & (slots.len() - 1);
        while slots[at] != EMPTY {
            let other = slots[at] as usize;
            if ids.get_bytes(other).trim_ascii() == id {
                let (first, second) = (data.input_row(other) + 1, data.input_row(row) + 1);
                return Err(Error::new(
                    Code::DuplicateId,
                    format!(
                        "rows {} and {} both have the id `{}`",
                        first.min(second),
                        first.max(second),
                        cells::clipped(&String::from_utf8_lossy(id))
                    ),
                )
                .in_file(file)
                .help(
                    "give every item an id of its own, so that pairs can name it; --id COLUMN names another column",
                ));
            }
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = row as u32;
    }
    Ok(slots)
}

/// Reads a table of pairs over items that were read before. The data of the result are the items, with their pairs.
pub fn read_pairs(file: &str, items: Arc<Items>, options: &ReadOptions) -> Result<Loaded> {
    let options = ReadOptions { pairing: Pairing::Of(items), features: None, ..options.clone() };
    crate::read(file, &options)
}

/// Which columns of a table of pairs serve as what.
#[derive(Debug)]
pub(crate) struct PairColumns {
    pub(crate) names: Vec<String>,
    pub(crate) better: usize,
    pub(crate) worse: usize,
    pub(crate) weight: Option<usize>,
    pub(crate) group: Option<usize>,
    notes: Vec<String>,
}

impl PairColumns {
    pub(crate) fn find(names: Vec<String>, options: &ReadOptions) -> Result<PairColumns> {
        let index: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let asked = asked(options, &index);
        let named = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let side = |wanted: &str| {
            named(wanted).ok_or_else(|| {
                let list: Vec<String> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
                Error::new(Code::NoSuchColumn, format!("a table of pairs needs a column `{wanted}`")).help(format!(
                    "name the columns `better` and `worse`, and `weight` and `group` where there are any; the columns are {}",
                    list.join(", ")
                ))
            })
        };
        let (better, worse) = (side("better")?, side("worse")?);
        let mut notes = Vec::new();
        let mut optional = |role: Role, wanted: &Option<String>, common: &[&str]| -> Result<Option<usize>> {
            let column = match wanted {
                Some(wanted) => Some(index.get(wanted.as_str()).copied().ok_or_else(|| {
                    Error::new(Code::NoSuchColumn, format!("there is no column `{wanted}` among the pairs")).help(
                        "with --items, --weight and --group name columns of the pairs, --id and --ignore of the items",
                    )
                })?),
                None => common.iter().find_map(|common| named(common)),
            };
            notes.extend(column.map(|column| format!("{} column `{}`", role.name(), names[column])));
            Ok(column)
        };
        let weight = optional(Role::Weight, &asked.weight, WEIGHT_NAMES)?;
        let group = optional(Role::Group, &asked.group, GROUP_NAMES)?;
        let used = [Some(better), Some(worse), weight, group];
        let others: Vec<String> = (0..names.len())
            .filter(|column| !used.contains(&Some(*column)))
            .take(5)
            .map(|column| format!("`{}`", names[column]))
            .collect();
        if !others.is_empty() {
            notes.push(format!("columns of no use to pairs ignored: {}", others.join(", ")));
        }
        Ok(PairColumns { names, better, worse, weight, group, notes })
    }

    /// Columns that are read.
    #[cfg(feature = "tables")]
    pub(crate) fn needed(&self) -> Vec<usize> {
        let mut needed: Vec<usize> =
            [Some(self.better), Some(self.worse), self.weight, self.group].into_iter().flatten().collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }
}

/// Pairs while they are read.
pub(crate) struct PairTable {
    pub(crate) columns: PairColumns,
    items: Arc<Items>,
    better: Vec<u32>,
    worse: Vec<u32>,
    others: RowColumns,
}

impl PairTable {
    pub(crate) fn new(columns: PairColumns, items: Arc<Items>) -> PairTable {
        let others = RowColumns::of_pairs(columns.weight.is_some(), columns.group.is_some());
        PairTable { columns, items, better: Vec::new(), worse: Vec::new(), others }
    }

    /// Number of pairs so far.
    #[cfg(feature = "tables")]
    pub(crate) fn len(&self) -> usize {
        self.better.len()
    }

    /// Adds a pair. `row` is said in messages where no line number will be.
    pub(crate) fn push(
        &mut self,
        better: &[u8],
        worse: &[u8],
        weight: Option<(std::result::Result<f64, Problem>, &[u8])>,
        group: Option<&[u8]>,
        row: Option<usize>,
    ) -> std::result::Result<(), Refusal> {
        let at = || row.map(|row| format!(" in row {row}")).unwrap_or_default();
        let found = |column: usize, text: &[u8]| {
            self.items.find(text).ok_or_else(|| {
                let name = &self.columns.names[column];
                let (error, expected) = if cells::is_missing(text) {
                    let message = format!("the item is missing{}: column `{name}`", at());
                    let help = "name a better and a worse item in every row".to_string();
                    (Error::new(Code::MissingValue, message).help(help), "the id of an item".to_string())
                } else {
                    self.items.unknown(name, text, &at())
                };
                Refusal { column, error, expected }
            })
        };
        let (left, right) = (found(self.columns.better, better)?, found(self.columns.worse, worse)?);
        if left == right {
            let shown = cells::clipped(&String::from_utf8_lossy(worse.trim_ascii()));
            let error = Error::new(Code::PairWithItself, format!("item `{shown}` is compared with itself{}", at()))
                .help("drop the pair: it says nothing");
            return Err(Refusal {
                column: self.columns.worse,
                error,
                expected: "another item than the better one".into(),
            });
        }
        let refusal = |column: usize, role: Role, problem: Problem, text: &[u8]| {
            let found = String::from_utf8_lossy(text).into_owned();
            let (error, expected) = cells::cell_error(role, problem, &self.columns.names[column], &found, row);
            Refusal { column, error, expected }
        };
        if let (Some(column), Some((weight, text))) = (self.columns.weight, weight) {
            self.others.push_weight(weight).map_err(|problem| refusal(column, Role::Weight, problem, text))?;
        }
        if let (Some(column), Some(text)) = (self.columns.group, group) {
            self.others.push_group(text).map_err(|problem| refusal(column, Role::Group, problem, text))?;
        }
        self.better.push(left);
        self.worse.push(right);
        Ok(())
    }

    /// The items with their pairs.
    pub(crate) fn finish(self, file: &str, format: Format) -> Result<Loaded> {
        if self.better.is_empty() {
            return Err(Error::new(Code::NoRows, "the table has column names and no pairs")
                .help("a table of pairs has a line `better,worse`, then one line a pair"));
        }
        let pairs = self.others.add_to(Pairs::new(self.better, self.worse)?)?;
        let mut notes = self.columns.notes;
        notes.insert(0, self.items.naming().to_string());
        let facts = Facts { file: file.to_string(), format: Some(format), notes, ..Facts::default() };
        Ok(Loaded { data: self.items.data.clone().with_pairs(pairs)?, facts })
    }
}
