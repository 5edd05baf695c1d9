//! [`OwnFeatures`]: items that have only ids, each with its own indicator feature.
//!
//! Ids get numbers in the order of their first appearance. With a model, its features come first and keep their
//! numbers. A block has one row for each id that its pairs name. The row of id `i` is the `i`-th unit vector, or zero
//! if the model has no such feature. Finding an id takes one look-up in an open hash table.

use crate::ReadOptions;
use crate::table::Texts;
use maxmargin::data::{Csr, Dataset, Matrix, Names, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::wording::counted;
use xxhash_rust::xxh3::xxh3_64;

const EMPTY: u32 = u32::MAX;

/// Texts and the number of each, from 0.
#[derive(Debug)]
struct Ids {
    texts: Texts,
    /// Numbers at the position given by the hash of their text; `EMPTY` if there is none. At most half of the slots are
    /// used.
    slots: Vec<u32>,
}

impl Ids {
    fn new() -> Ids {
        Ids { texts: Texts::default(), slots: vec![EMPTY; 64] }
    }

    /// The number of a text. A text that was not seen before gets a new one; `None` if there are too many.
    fn number(&mut self, text: &[u8]) -> Option<u32> {
        let mut at = self.slot(text);
        if self.slots[at] != EMPTY {
            return Some(self.slots[at]);
        }
        let number = u32::try_from(self.texts.len()).ok().filter(|&number| number != EMPTY)?;
        if 2 * (self.texts.len() + 1) > self.slots.len() {
            self.slots = vec![EMPTY; 2 * self.slots.len()];
            for other in 0..number {
                let slot = self.slot(self.texts.get(other as usize));
                self.slots[slot] = other;
            }
            at = self.slot(text);
        }
        self.slots[at] = number;
        self.texts.push(text);
        Some(number)
    }

    /// The slot of a text, existing or new.
    fn slot(&self, text: &[u8]) -> usize {
        let mut at = xxh3_64(text) as usize & (self.slots.len() - 1);
        while self.slots[at] != EMPTY && self.texts.get(self.slots[at] as usize) != text {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
}

/// Items without features, in blocks.
#[derive(Debug)]
pub(crate) struct OwnFeatures {
    ids: Ids,
    /// How many of the ids are features of a model, if there is one.
    model: Option<usize>,
    /// The row of each id in the current block; `EMPTY` if it has none.
    row_of: Vec<u32>,
    /// The ids of the rows of the current block.
    rows: Vec<u32>,
}

impl OwnFeatures {
    pub(crate) fn new(options: &ReadOptions) -> Result<OwnFeatures> {
        let mut ids = Ids::new();
        let mut model = None;
        if let Some(features) = &options.features {
            let Some(names) = &features.names else {
                return Err(Error::new(
                    Code::FeatureNames,
                    "the model's features have no names, so the items of the pairs cannot be found among them",
                )
                .help("name the file that holds the items with ⟦items=FILE⟧"));
            };
            for name in names {
                ids.number(name.as_bytes()).ok_or_else(too_many)?;
            }
            if ids.texts.len() != features.count {
                return Err(Error::new(Code::Internal, "features of one name"));
            }
            model = Some(features.count).filter(|_| !options.features_grow);
        }
        Ok(OwnFeatures { ids, model, row_of: Vec::new(), rows: Vec::new() })
    }

    /// The row of an id in the current block.
    pub(crate) fn row(&mut self, id: &[u8]) -> Result<u32> {
        let number = self.ids.number(id).ok_or_else(too_many)?;
        if self.row_of.len() <= number as usize {
            self.row_of.resize(self.ids.texts.len(), EMPTY);
        }
        let row = &mut self.row_of[number as usize];
        if *row == EMPTY {
            *row = self.rows.len() as u32;
            self.rows.push(number);
        }
        Ok(*row)
    }

    /// All ids so far, those of a model first. They are the names of a block's columns.
    pub(crate) fn names(&self) -> Names {
        self.ids.texts.clone().into()
    }

    /// The rows of the current block with their ids. The next block starts empty.
    pub(crate) fn block(&mut self) -> Result<Dataset> {
        let rows = std::mem::take(&mut self.rows);
        rows.iter().for_each(|&number| self.row_of[number as usize] = EMPTY);
        let cols = self.model.unwrap_or(self.ids.texts.len());
        let known = |number: &u32| (*number as usize) < cols;
        let mut starts = Vec::with_capacity(rows.len() + 1);
        starts.push(0u64);
        let mut entries = 0;
        for number in &rows {
            entries += u64::from(known(number));
            starts.push(entries);
        }
        let numbers = rows.iter().copied().filter(known);
        let ones = vec![1.0f32; entries as usize];
        let matrix = if cols <= usize::from(u16::MAX) + 1 {
            Matrix::Csr16F32(Csr::new(starts, numbers.map(|number| number as u16).collect::<Vec<_>>(), ones, cols)?)
        } else {
            Matrix::Csr32F32(Csr::new(starts, numbers.collect::<Vec<_>>(), ones, cols)?)
        };
        let ids: Names = rows.iter().map(|&number| self.ids.texts.get(number as usize)).collect();
        Dataset::new(matrix, Targets::Absent)?.with_row_ids(ids)
    }

    /// Everything as one block, with names for its columns.
    pub(crate) fn whole(mut self) -> Result<Dataset> {
        let data = self.block()?;
        let names: Names = (0..data.cols()).map(|column| self.ids.texts.get(column)).collect();
        data.with_feature_names(names)
    }

    /// Notes about the ids, at the end.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec!["items have no features: each item is its own feature".to_string()];
        let unseen = self.model.map_or(0, |model| self.ids.texts.len() - model) as u64;
        if unseen > 0 {
            notes.push(format!(
                "{} the model has not seen: {} 0",
                counted(unseen, "item", "items"),
                if unseen == 1 { "it scores" } else { "they score" }
            ));
        }
        notes
    }
}

fn too_many() -> Error {
    Error::new(Code::BadTable, "more than 4,294,967,294 items").help("take fewer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(texts in prop::collection::vec("[ab]{0,9}", 0..400)) {
            let (mut ids, mut expected) = (Ids::new(), HashMap::new());
            for text in &texts {
                let next = expected.len() as u32;
                let number = *expected.entry(text.clone()).or_insert(next);
                prop_assert_eq!(ids.number(text.as_bytes()), Some(number));
                prop_assert_eq!(ids.texts.get(number as usize), text.as_bytes());
            }
            prop_assert_eq!(ids.texts.len(), expected.len());
        }
    }
}
