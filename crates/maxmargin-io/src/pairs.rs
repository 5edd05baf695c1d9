//! Tables of pairs, `left,right,outcome[,weight][,group]` or `better,worse[,weight][,group]`, with items named by ids.
//!
//! [`read_pairs`] reads any table that [`crate::read()`] reads. Each id is looked up once, so a million pairs cost two
//! million look-ups. The items are the rows of another file. If that file has no ids (svmlight without comments), items
//! are named by their row number, counted from 1. Without such a file ([`Pairing::Comparisons`]), each id is a feature
//! of its own: see `ids.rs`. The other form of pairs, a table with columns `left.NAME` and `right.NAME`, is an ordinary
//! table with two rows per line: see `columns.rs` and [`Pairing::Sides`].

use crate::cells::{self, Problem};
use crate::columns::{GROUP_NAMES, OUTCOME_NAMES, Role, Sides, WEIGHT_NAMES, asked, no_outcome};
use crate::csv::Refusal;
use crate::ids::OwnFeatures;
use crate::stamps::Stamps;
use crate::table::RowColumns;
use crate::{Facts, Format, Loaded, Pairing, ReadOptions};
use maxmargin::data::{Dataset, Names, Pairs};
use maxmargin::error::{Code, Error, Mark, Result};
use maxmargin::suggest::nearest;
use maxmargin::wording::counted;
use std::collections::HashMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The rows that pairs name, and how to find them.
#[derive(Debug)]
pub struct Items {
    data: Dataset,
    file: String,
    index: Index,
    stamps: Stamps,
}

#[derive(Debug)]
enum Index {
    /// An open hash table from ids to rows; `EMPTY` if there is none.
    Ids(Vec<u32>),
    /// The stored row of each row of the file.
    Numbers(Vec<u32>),
}

const EMPTY: u32 = u32::MAX;

/// With more items than this, searching for the nearest id would take too long.
const FEW_ITEMS: usize = 100_000;

impl Items {
    /// Uses rows as items: by their ids, or by their numbers if the file has no columns and no ids.
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
                .help("name the column with ⟦id=COLUMN⟧, or call it `id`"));
            }
            None => {
                let mut stored = vec![0; data.rows()];
                (0..data.rows()).for_each(|row| stored[data.input_row(row)] = row as u32);
                Index::Numbers(stored)
            }
        };
        Ok(Items { data, file, index, stamps: loaded.facts.stamps.clone() })
    }

    /// Detects changes of the file that the items come from.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// How items are named, in words.
    pub fn naming(&self) -> &'static str {
        match self.index {
            Index::Ids(_) => "items by their ids",
            Index::Numbers(_) => "items by the number of their row, from 1",
        }
    }

    /// The row of an item, by its name.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
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

    /// The error for a name without an item.
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
                    "{file} has no ids, so its {} by number, from 1; an id goes after a # at the end of a line",
                    counted(rows as u64, "row is named", "rows are named")
                ),
                format!("a row number from 1 to {rows}"),
            ),
        };
        (Error::new(Code::UnknownItem, message).help(help), expected)
    }
}

/// Puts the rows into a hash table by their ids. Two equal ids are an error.
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
                    "give every item an id of its own, so that pairs can name it; ⟦id=COLUMN⟧ names another column",
                ));
            }
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = row as u32;
    }
    Ok(slots)
}

/// Reads a table of pairs over items that are already read. The result holds the items and their pairs.
pub fn read_pairs(file: &str, items: Arc<Items>, options: &ReadOptions) -> Result<Loaded> {
    let options = ReadOptions { pairing: Pairing::Of(items), features: None, ..options.clone() };
    crate::read(file, &options)
}

/// The roles of the columns of a table of pairs.
#[derive(Debug)]
pub(crate) struct PairColumns {
    pub(crate) names: Vec<String>,
    pub(crate) left: usize,
    pub(crate) right: usize,
    /// `None` if the left item is always the better one, or if outcomes are not known.
    pub(crate) outcome: Option<usize>,
    pub(crate) weight: Option<usize>,
    pub(crate) group: Option<usize>,
    notes: Vec<String>,
}

impl PairColumns {
    fn find(names: &[String], options: &ReadOptions) -> Result<PairColumns> {
        let names = names.to_vec();
        let index: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let asked = asked(options, &index);
        let named = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let both = |sides: [&str; 2]| named(sides[0]).zip(named(sides[1]));
        let mut notes = Vec::new();
        let (left, right, outcome) = match (both(["better", "worse"]), both(["left", "right"])) {
            (Some((better, worse)), _) => (better, worse, None),
            (None, Some((left, right))) => {
                let outcome = match &asked.target {
                    Some(wanted) => Some(index.get(wanted.as_str()).copied().ok_or_else(|| {
                        Error::new(Code::NoSuchColumn, format!("there is no column `{wanted}` among the pairs"))
                            .help("⟦target⟧ names the column that holds the outcome")
                    })?),
                    None => OUTCOME_NAMES.iter().find_map(|name| named(name)),
                };
                match outcome {
                    None if !options.outcomes_optional => return Err(no_outcome()),
                    None => {}
                    Some(column) => notes.push(format!("outcome column `{}`", names[column])),
                }
                (left, right, outcome)
            }
            (None, None) => {
                let lacking = [["better", "worse"], ["worse", "better"], ["left", "right"], ["right", "left"]]
                    .into_iter()
                    .find(|[_, other]| named(other).is_some());
                let message = match lacking {
                    Some([side, _]) => format!("a table of pairs needs a column `{side}`"),
                    None => {
                        "a table of pairs needs columns `left`, `right` and `outcome`, or `better` and `worse`".into()
                    }
                };
                let list: Vec<String> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
                return Err(Error::new(Code::NoSuchColumn, message).marked(Mark::NoTableOfPairs).help(format!(
                    "name the columns `left`, `right` and `outcome`, or `better` and `worse`, and `weight` and `group` where there are any; the columns are {}",
                    list.join(", ")
                )));
            }
        };
        let mut optional = |role: Role, wanted: &Option<String>, common: &[&str]| -> Result<Option<usize>> {
            let column = match wanted {
                Some(wanted) => Some(index.get(wanted.as_str()).copied().ok_or_else(|| {
                    Error::new(Code::NoSuchColumn, format!("there is no column `{wanted}` among the pairs")).help(
                        "with ⟦items⟧, ⟦weight⟧ and ⟦group⟧ name columns of the pairs, ⟦id⟧ and ⟦ignore⟧ of the items",
                    )
                })?),
                None => common.iter().find_map(|common| named(common)),
            };
            notes.extend(column.map(|column| format!("{} column `{}`", role.name(), names[column])));
            Ok(column)
        };
        let weight = optional(Role::Weight, &asked.weight, WEIGHT_NAMES)?;
        let group = optional(Role::Group, &asked.group, GROUP_NAMES)?;
        let used = [Some(left), Some(right), outcome, weight, group];
        let others: Vec<String> = (0..names.len())
            .filter(|column| !used.contains(&Some(*column)))
            .take(5)
            .map(|column| format!("`{}`", names[column]))
            .collect();
        if !others.is_empty() {
            notes.push(format!("unused columns ignored: {}", others.join(", ")));
        }
        Ok(PairColumns { names, left, right, outcome, weight, group, notes })
    }

    /// The columns to read.
    #[cfg(feature = "tables")]
    pub(crate) fn needed(&self) -> Vec<usize> {
        let mut needed: Vec<usize> =
            [Some(self.left), Some(self.right), self.outcome, self.weight, self.group].into_iter().flatten().collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    fn others(&self) -> RowColumns {
        RowColumns::of_pairs(self.outcome.is_some(), self.weight.is_some(), self.group.is_some())
    }
}

/// The cells of a pair, as text. The weight is also given as a number, if it is one.
pub(crate) struct PairCells<'a> {
    pub(crate) left: &'a [u8],
    pub(crate) right: &'a [u8],
    pub(crate) outcome: Option<&'a [u8]>,
    pub(crate) weight: Option<(std::result::Result<f64, Problem>, &'a [u8])>,
    pub(crate) group: Option<&'a [u8]>,
}

/// What the ids of pairs refer to.
enum Naming {
    Of(Arc<Items>),
    Own(OwnFeatures),
}

/// Pairs while they are being read.
pub(crate) struct PairTable {
    pub(crate) columns: PairColumns,
    naming: Naming,
    left: Vec<u32>,
    right: Vec<u32>,
    others: RowColumns,
    /// Number of pairs in earlier blocks.
    before: usize,
}

impl PairTable {
    /// The table for a file with these columns; `None` if its rows have features.
    pub(crate) fn of(names: &[String], options: &ReadOptions) -> Result<Option<PairTable>> {
        let naming = match &options.pairing {
            Pairing::Of(items) => Naming::Of(Arc::clone(items)),
            Pairing::Comparisons if Sides::find(names, options).is_none() => {
                if options.columns.id.is_some() {
                    return Err(Error::new(
                        Code::BadSetting,
                        "pairs of items without features have no ids of their own",
                    )
                    .help("leave ⟦id⟧ out, or name the file that holds the items with ⟦items=FILE⟧"));
                }
                if options.hash.is_some() {
                    return Err(Error::new(
                        Code::BadSetting,
                        "pairs of items without features are not hashed: every item is a feature",
                    )
                    .help("leave ⟦hash⟧ out, or name the file that holds the items with ⟦items=FILE⟧"));
                }
                Naming::Own(OwnFeatures::new(options)?)
            }
            _ => return Ok(None),
        };
        let columns = PairColumns::find(names, options)?;
        let others = columns.others();
        Ok(Some(PairTable { columns, naming, left: Vec::new(), right: Vec::new(), others, before: 0 }))
    }

    /// Number of pairs so far, including those of earlier blocks.
    pub(crate) fn pairs(&self) -> usize {
        self.before + self.left.len()
    }

    /// Adds a pair. `row` is named in messages if there will be no line number.
    pub(crate) fn push(&mut self, cells: &PairCells<'_>, row: Option<usize>) -> std::result::Result<(), Refusal> {
        let at = row.map(|row| format!(" in row {row}")).unwrap_or_default();
        let left = self.row_of(self.columns.left, cells.left, &at)?;
        let right = self.row_of(self.columns.right, cells.right, &at)?;
        if left == right {
            let shown = cells::clipped(&String::from_utf8_lossy(cells.right.trim_ascii()));
            let error = Error::new(Code::PairWithItself, format!("item `{shown}` is compared with itself{at}"))
                .help("drop the pair: it carries no information");
            let expected = format!("an item different from the {} one", self.columns.names[self.columns.left]);
            return Err(Refusal { column: self.columns.right, error, expected });
        }
        let refusal = |column: usize, role: Role, problem: Problem, text: &[u8]| {
            let found = String::from_utf8_lossy(text).into_owned();
            let (error, expected) = cells::cell_error(role, problem, &self.columns.names[column], &found, row);
            Refusal { column, error, expected }
        };
        if let (Some(column), Some(text)) = (self.columns.outcome, cells.outcome) {
            self.others.push_outcome(text).map_err(|problem| refusal(column, Role::Outcome, problem, text))?;
        }
        if let (Some(column), Some((weight, text))) = (self.columns.weight, cells.weight) {
            self.others.push_weight(weight).map_err(|problem| refusal(column, Role::Weight, problem, text))?;
        }
        if let (Some(column), Some(text)) = (self.columns.group, cells.group) {
            self.others.push_group(text).map_err(|problem| refusal(column, Role::Group, problem, text))?;
        }
        self.left.push(left);
        self.right.push(right);
        Ok(())
    }

    /// The row of an item.
    fn row_of(&mut self, column: usize, text: &[u8], at: &str) -> std::result::Result<u32, Refusal> {
        let name = &self.columns.names[column];
        let missing = || {
            let message = format!("the item is missing{at}: column `{name}`");
            let help = format!(
                "name a {} and a {} item in every row",
                self.columns.names[self.columns.left], self.columns.names[self.columns.right]
            );
            (Error::new(Code::MissingValue, message).help(help), "the id of an item".to_string())
        };
        let (error, expected) = match &mut self.naming {
            Naming::Of(items) => match items.find(text) {
                Some(row) => return Ok(row),
                None if cells::is_missing(text) => missing(),
                None => items.unknown(name, text, at),
            },
            Naming::Own(ids) => {
                let text = text.trim_ascii();
                if text.is_empty() {
                    missing()
                } else if std::str::from_utf8(text).is_err() {
                    // The id becomes the name of a feature.
                    let message = format!("this id is not UTF-8 text{at}: column `{name}`");
                    (Error::new(Code::NotText, message).help("save the table as UTF-8"), "an id in UTF-8".to_string())
                } else {
                    match ids.row(text) {
                        Ok(row) => return Ok(row),
                        Err(error) => (error, "an item seen before".to_string()),
                    }
                }
            }
        };
        Err(Refusal { column, error, expected })
    }

    /// The pairs so far with their items; `None` if there are no pairs. The next block starts empty.
    pub(crate) fn block(&mut self) -> Result<Option<Dataset>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let pairs = self.take_pairs()?;
        let items = match &mut self.naming {
            Naming::Of(items) => items.data.clone(),
            Naming::Own(ids) => ids.block()?,
        };
        items.with_pairs(pairs).map(Some)
    }

    fn take_pairs(&mut self) -> Result<Pairs> {
        self.before += self.left.len();
        let others = std::mem::replace(&mut self.others, self.columns.others());
        others.add_to(Pairs::new(std::mem::take(&mut self.left), std::mem::take(&mut self.right))?)
    }

    /// The names of the columns of blocks, if these are ids.
    pub(crate) fn own_names(&self) -> Option<Names> {
        match &self.naming {
            Naming::Of(_) => None,
            Naming::Own(ids) => Some(ids.names()),
        }
    }

    /// The findings over all blocks.
    pub(crate) fn facts(&self, file: &str, format: Format) -> Facts {
        let mut notes = match &self.naming {
            Naming::Of(items) => vec![items.naming().to_string()],
            Naming::Own(ids) => ids.notes(),
        };
        notes.extend(self.columns.notes.iter().cloned());
        Facts { file: file.to_string(), format: Some(format), notes, ..Facts::default() }
    }

    /// The items with their pairs.
    pub(crate) fn finish(mut self, file: &str, format: Format) -> Result<Loaded> {
        if self.pairs() == 0 {
            return Err(no_pairs());
        }
        let facts = self.facts(file, format);
        let pairs = self.take_pairs()?;
        let items = match self.naming {
            Naming::Of(items) => items.data.clone(),
            Naming::Own(ids) => ids.whole()?,
        };
        Ok(Loaded { data: items.with_pairs(pairs)?, facts })
    }
}

pub(crate) fn no_pairs() -> Error {
    Error::new(Code::NoRows, "the table has column names and no pairs")
        .help("a table of pairs has a line `left,right,outcome` or `better,worse`, then one line per pair")
}
