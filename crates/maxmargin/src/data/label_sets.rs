//! [`LabelSets`]: the labels of each row, as places in a list of labels.

use super::classes::number_label;
use super::{Labels, Targets};
use crate::error::{Code, Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// The labels of each row, increasing within a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSets {
    starts: Arc<[u64]>,
    codes: Arc<[u32]>,
    /// Number of labels, over all rows, that are not in the list.
    unknown: u64,
}

impl LabelSets {
    /// The sets of all rows. Labels that are not in the list are left out, and counted. Targets with one label per row
    /// are sets of one.
    pub fn of(labels: &Labels, targets: &Targets) -> Result<LabelSets> {
        let (mut starts, mut codes, mut unknown) = (vec![0u64], Vec::new(), 0);
        match targets {
            Targets::Sets { names, starts: given, codes: own } => {
                let places = labels.places();
                let by_code: Vec<Option<usize>> = names.iter().map(|name| places.of(&name)).collect();
                for bounds in given.windows(2) {
                    let first = codes.len();
                    for &code in &own[bounds[0] as usize..bounds[1] as usize] {
                        match by_code[code as usize] {
                            Some(place) => codes.push(place as u32),
                            None => unknown += 1,
                        }
                    }
                    codes[first..].sort_unstable();
                    starts.push(codes.len() as u64);
                }
            }
            _ => {
                for code in labels.known_codes(targets)? {
                    codes.extend(code);
                    unknown += u64::from(code.is_none());
                    starts.push(codes.len() as u64);
                }
            }
        }
        Ok(LabelSets { starts: starts.into(), codes: codes.into(), unknown })
    }

    /// Sets given as places, which increase within a row and are below the number of labels.
    pub fn from_parts(starts: Vec<u64>, codes: Vec<u32>) -> LabelSets {
        LabelSets { starts: starts.into(), codes: codes.into(), unknown: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The labels of a row.
    #[inline]
    pub fn row(&self, row: usize) -> &[u32] {
        &self.codes[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Whether a row has a label.
    pub fn has(&self, row: usize, label: usize) -> bool {
        self.row(row).binary_search(&(label as u32)).is_ok()
    }

    /// The sets of all rows in turn.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// Number of labels, over all rows, that are not in the list.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }
}

impl Labels {
    /// The labels that sets are made of, in the order of the data: also those that no row has. Targets with one label per
    /// row are sets of one.
    pub fn of_sets(targets: &Targets) -> Result<Labels> {
        let names: Vec<String> = match targets {
            Targets::Sets { names, .. } | Targets::Labels { names, .. } => {
                names.iter().map(|name| name.into_owned()).collect()
            }
            Targets::Absent | Targets::Real(_) => {
                let mut values: Vec<f64> = targets.real()?.iter().map(|value| value + 0.0).collect();
                values.sort_unstable_by(f64::total_cmp);
                values.dedup();
                values.into_iter().map(number_label).collect()
            }
        };
        let mut first: HashMap<&str, usize> = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            if first.insert(name, place).is_some() {
                let message = format!("label `{name}` is named twice");
                return Err(Error::new(Code::BadTarget, message).help("give every label a name of its own"));
            }
        }
        Labels::checked_sets(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Names;

    fn sets() -> Targets {
        let names = ["a", "b", "c"].into_iter().collect();
        Targets::Sets { names, starts: vec![0, 2, 2, 3].into(), codes: vec![0, 2, 1].into() }
    }

    #[test]
    fn sets_are_places_in_a_list_of_labels() {
        let labels = Labels::of_sets(&sets()).expect("labels");
        assert_eq!(labels.names(), ["a", "b", "c"]);
        let own = LabelSets::of(&labels, &sets()).expect("sets");
        assert_eq!(own.iter().collect::<Vec<_>>(), [&[0, 2][..], &[], &[1]]);
        assert!(own.has(0, 2) && !own.has(0, 1) && own.len() == 3 && own.unknown() == 0);
        let other = Labels::new(["c", "a"].map(str::to_string).to_vec());
        let own = LabelSets::of(&other, &sets()).expect("sets");
        assert_eq!(own.iter().collect::<Vec<_>>(), [&[0, 1][..], &[], &[]]);
        assert_eq!(own.unknown(), 1);
    }

    #[test]
    fn one_label_per_row_is_a_set_of_one() {
        let numbers = Targets::Real(vec![3.0, -0.0, 3.0].into());
        let labels = Labels::of_sets(&numbers).expect("labels");
        assert_eq!(labels.names(), ["0", "3"]);
        let own = LabelSets::of(&labels, &numbers).expect("sets");
        assert_eq!(own.iter().collect::<Vec<_>>(), [[1], [0], [1]]);
        let words = Targets::Labels { names: ["x", "y"].into_iter().collect(), codes: vec![1, 0].into() };
        let labels = Labels::of_sets(&words).expect("labels");
        assert_eq!(LabelSets::of(&labels, &words).expect("sets").row(0), [1]);
    }

    #[test]
    fn no_labels_and_two_of_the_same_name_are_refused() {
        let none: Names = Vec::<String>::new().into_iter().collect();
        let empty = Targets::Sets { names: none, starts: vec![0, 0].into(), codes: vec![].into() };
        assert_eq!(Labels::of_sets(&empty).expect_err("no labels").code(), Code::SingleClass);
        let twice = Targets::Labels { names: ["x", "x"].into_iter().collect(), codes: vec![1, 0].into() };
        assert_eq!(Labels::of_sets(&twice).expect_err("twice").code(), Code::BadTarget);
        assert!(Labels::of_sets(&Targets::Absent).is_err());
    }
}
