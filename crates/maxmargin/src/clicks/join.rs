//! The log joined with features: lists with weights of clicks, or preferences as pairs of rows.
//!
//! Lists of a query that hold the same results are merged: their clicks are added up, which changes no objective. Only
//! lists with a click and another result are kept. A result of two different lists is stored twice. Lists are in the order of
//! the names of queries and then of their rows, so that the order of the log does not matter.

use super::curve::{Clipping, Propensity};
use super::preferences::{Rule, preferences};
use super::{ClickLog, Event};
use crate::data::{Dataset, Groups, Names, Pairs, Targets};
use crate::error::{Code, Error, Result};
use std::collections::{BTreeMap, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// Which other results a clicked one is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// Those of the list that was shown.
    #[default]
    Shown,
    /// All rows of the query in the table of features.
    Candidates,
}

impl Against {
    /// Both.
    pub const ALL: [Against; 2] = [Against::Shown, Against::Candidates];

    /// The name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Against::Shown => "shown",
            Against::Candidates => "candidates",
        }
    }
}

/// Rows of features, found by query and item, or by item alone where rows have no queries. An item is named by the id of
/// its row or, without ids, by the number of the row in its file, from 1.
pub struct Keyed<'a> {
    data: &'a Dataset,
    rows: HashMap<u64, Vec<u32>>,
    group_of: Vec<u32>,
}

impl<'a> Keyed<'a> {
    /// Indexes rows. Two rows with the same key are an error.
    pub fn new(data: &'a Dataset) -> Result<Keyed<'a>> {
        let mut group_of = Vec::new();
        if let Some(groups) = data.groups() {
            group_of.reserve(data.rows());
            for (group, range) in groups.ranges().enumerate() {
                group_of.extend(range.map(|_| group as u32));
            }
        }
        let mut keyed = Keyed { data, rows: HashMap::with_capacity(data.rows()), group_of };
        for row in 0..data.rows() {
            let name = keyed.item_of(row);
            let group = keyed.query_of(row).map(<[u8]>::to_vec);
            if keyed.look_up(group.as_deref(), &name).is_some() {
                let shown = String::from_utf8_lossy(&name).into_owned();
                return Err(Error::new(Code::DuplicateId, format!("two rows of features are for the item `{shown}`"))
                    .help("give each item one row, or each query and item where rows have queries; ⟦id⟧ and ⟦group⟧ name the columns"));
            }
            keyed.rows.entry(xxh3_64(&name)).or_default().push(row as u32);
        }
        Ok(keyed)
    }

    /// The rows.
    pub fn data(&self) -> &'a Dataset {
        self.data
    }

    /// Whether rows are found by query and item.
    pub fn by_query(&self) -> bool {
        !self.group_of.is_empty()
    }

    /// The name of the item of a row.
    fn item_of(&self, row: usize) -> Vec<u8> {
        match self.data.row_ids() {
            Some(ids) => ids.get_bytes(row).trim_ascii().to_vec(),
            None => (self.data.input_row(row) + 1).to_string().into_bytes(),
        }
    }

    fn query_of(&self, row: usize) -> Option<&[u8]> {
        let group = *self.group_of.get(row)? as usize;
        self.data.groups().map(|groups| groups.names().get_bytes(group))
    }

    fn look_up(&self, query: Option<&[u8]>, item: &[u8]) -> Option<usize> {
        let fits = |row: usize| (query.is_none() || self.query_of(row) == query) && self.item_of(row) == item;
        self.rows.get(&xxh3_64(item))?.iter().map(|&row| row as usize).find(|&row| fits(row))
    }

    /// The row of an item of a query of a log.
    pub fn find(&self, log: &ClickLog, query: u32, item: u32) -> Option<usize> {
        let query = self.by_query().then(|| log.queries().get_bytes(query as usize));
        self.look_up(query, log.items().get_bytes(item as usize))
    }
}

/// Data to learn from, and what was left out.
#[derive(Debug)]
pub struct Joined {
    /// The rows: lists with weights of clicks as targets, or the features with pairs.
    pub data: Dataset,
    /// Results of lists without features: they are left out of their lists.
    pub unknown: u64,
    /// Different lists.
    pub lists: u64,
    /// What clipping did.
    pub clipping: Clipping,
}

fn nothing_known(log: &ClickLog, features: &Keyed<'_>) -> Error {
    let (query, item) = log.events().first().map_or((0, 0), |event| (event.query as usize, event.item as usize));
    let by = if features.by_query() { "query and item" } else { "item" };
    Error::new(
        Code::UnknownItem,
        format!(
            "no result of the log has features: they are looked up by {by}, such as query `{}`, item `{}`",
            log.queries().get(query),
            log.items().get(item)
        ),
    )
    .help(
        "name the columns of the features with ⟦group⟧ and ⟦id⟧; without ids, an item is the number of its row in the file, from 1",
    )
}

/// Looks rows up once for each query and item.
struct Finder<'a> {
    features: &'a Keyed<'a>,
    log: &'a ClickLog,
    known: HashMap<u32, Option<usize>>,
    query: Option<u32>,
}

impl Finder<'_> {
    fn row(&mut self, event: &Event) -> Option<usize> {
        if self.features.by_query() && self.query != Some(event.query) {
            self.known.clear();
        }
        self.query = Some(event.query);
        *self.known.entry(event.item).or_insert_with(|| self.features.find(self.log, event.query, event.item))
    }
}

/// The lists of the log, whose targets are the weights of the clicks on their rows: see
/// [`crate::task::ClickRanking`].
pub fn learning_lists(
    log: &ClickLog,
    features: &Keyed<'_>,
    propensity: &Propensity,
    limit: Option<f64>,
    against: Against,
) -> Result<Joined> {
    if against == Against::Candidates && !features.by_query() {
        return Err(Error::new(Code::BadSetting, "the rows of features have no queries, so a query has no candidates")
            .help("give a table of queries and items, or leave ⟦against⟧ out"));
    }
    let (weights, clipping) = propensity.weights(log, limit)?;
    let mut finder = Finder { features, log, known: HashMap::new(), query: None };
    let (mut rows, mut targets, mut starts, mut names) = (Vec::new(), Vec::new(), vec![0u64], Vec::<Vec<u8>>::new());
    let mut unknown = 0;
    // The lists of a query, as sorted rows, with the weight of each.
    let mut lists: BTreeMap<Vec<u32>, Vec<f64>> = BTreeMap::new();
    let mut close = |query: Option<u32>, lists: &mut BTreeMap<Vec<u32>, Vec<f64>>| {
        let Some(query) = query else { return };
        let several = lists.len() > 1;
        for (number, (list, weights)) in std::mem::take(lists).into_iter().enumerate() {
            let mut name = log.queries().get_bytes(query as usize).to_vec();
            if several {
                name.extend_from_slice(format!("/{}", number + 1).as_bytes());
            }
            rows.extend(list.iter().map(|&row| row as usize));
            targets.extend(weights);
            starts.push(rows.len() as u64);
            names.push(name);
        }
    };
    let mut query = None;
    for range in log.impressions() {
        let events = &log.events()[range.clone()];
        if query != Some(events[0].query) {
            close(query, &mut lists);
            query = Some(events[0].query);
        }
        let mut list: Vec<(u32, f64)> = Vec::with_capacity(events.len());
        for (event, weight) in events.iter().zip(&weights[range]) {
            match finder.row(event) {
                Some(row) => list.push((row as u32, *weight)),
                None => unknown += 1,
            }
        }
        if list.iter().all(|(_, weight)| *weight == 0.0) {
            continue;
        }
        if against == Against::Candidates {
            let group = features.group_of[list[0].0 as usize] as usize;
            let range = features.data.groups().map_or(0..0, |groups| groups.range(group));
            list.extend(range.map(|row| (row as u32, 0.0)));
        }
        list.sort_by_key(|(row, _)| *row);
        list.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        if list.len() < 2 {
            continue;
        }
        let (rows, own): (Vec<u32>, Vec<f64>) = list.into_iter().unzip();
        let sums = lists.entry(rows).or_insert_with(|| vec![0.0; own.len()]);
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    close(query, &mut lists);
    if unknown == log.events().len() as u64 {
        return Err(nothing_known(log, features));
    }
    if names.is_empty() {
        return Err(Error::new(Code::NoPairs, "no list has a click and another result with features")
            .help("check that results were clicked, and that a list shows more than one result"));
    }
    let count = names.len() as u64;
    let data = features.data.select(&rows)?;
    let data = Dataset::new(data.matrix().clone(), Targets::Real(targets.into()))?;
    let mut data = data.with_groups(Groups::new(starts, names.iter().collect::<Names>())?)?;
    if let Some(names) = features.data.feature_names() {
        data = data.with_feature_names(names.clone())?;
    }
    Ok(Joined { data, unknown, lists: count, clipping })
}

/// The preferences of the log by a rule, as pairs of the rows of features. `keep` is the weight of the shown order.
pub fn learning_pairs(log: &ClickLog, features: &Keyed<'_>, rule: Rule, keep: f64) -> Result<Joined> {
    let (mut better, mut worse, mut weights, mut unknown) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut codes, mut names) = (Vec::new(), Vec::<Vec<u8>>::new());
    let mut query = None;
    for found in preferences(log, rule, keep)? {
        let rows = features.find(log, found.query, found.better).zip(features.find(log, found.query, found.worse));
        let Some((left, right)) = rows else {
            unknown += 1;
            continue;
        };
        if query != Some(found.query) {
            query = Some(found.query);
            names.push(log.queries().get_bytes(found.query as usize).to_vec());
        }
        better.push(left as u32);
        worse.push(right as u32);
        weights.push(found.weight);
        codes.push(names.len() as u32 - 1);
    }
    if better.is_empty() {
        return Err(nothing_known(log, features));
    }
    let lists = names.len() as u64;
    let pairs =
        Pairs::new(better, worse)?.with_weights(weights)?.with_groups(codes, names.iter().collect::<Names>())?;
    let features = features.data;
    let mut data = Dataset::new(features.matrix().clone(), Targets::Absent)?.with_pairs(pairs)?;
    if let Some(names) = features.feature_names() {
        data = data.with_feature_names(names.clone())?;
    }
    if let Some(ids) = features.row_ids() {
        data = data.with_row_ids(ids.clone())?;
    }
    Ok(Joined { data, unknown, lists, clipping: Clipping::default() })
}
