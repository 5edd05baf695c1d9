//! [`Targets`]: the target of each row.

use super::classes::number_label;
use super::{Buffer, Names};
use crate::error::{Code, Error, Result};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// The targets of all rows: none, or for each row a number, a word or a set of labels.
#[derive(Clone, Debug)]
pub enum Targets {
    /// No targets. Such data can be scored but cannot be used for training.
    Absent,
    /// A grade, a real value, or a class written as a number.
    Real(Buffer<f64>),
    /// A class written as a word. Each row has a code, an index into the sorted names.
    Labels {
        /// The distinct labels in byte order.
        names: Names,
        /// The label of each row.
        codes: Buffer<u32>,
    },
    /// Any number of labels per row.
    Sets {
        /// The distinct labels.
        names: Names,
        /// Where the labels of each row start, followed by the total number.
        starts: Buffer<u64>,
        /// The labels of all rows, increasing within a row.
        codes: Buffer<u32>,
    },
}

impl Targets {
    /// Number of rows; `None` if there are no targets.
    pub fn rows(&self) -> Option<usize> {
        match self {
            Targets::Absent => None,
            Targets::Real(values) => Some(values.len()),
            Targets::Labels { codes, .. } => Some(codes.len()),
            Targets::Sets { starts, .. } => Some(starts.len().saturating_sub(1)),
        }
    }

    /// The targets as numbers, or an error that says what they are instead.
    pub fn real(&self) -> Result<&[f64]> {
        match self {
            Targets::Real(values) => Ok(values),
            Targets::Absent => Err(Error::new(Code::NoTargets, "the data have no targets")
                .help("name the column that holds them with ⟦target=NAME⟧")),
            Targets::Labels { names, .. } => Err(Error::new(
                Code::BadTarget,
                format!("the targets are words such as `{}`, and this task needs numbers", names.get(0)),
            )
            .help("give grades or real values as targets, or train a classifier")),
            Targets::Sets { .. } => Err(several_labels()),
        }
    }

    /// Neighbouring rows, sharing the same memory if possible.
    pub fn run(&self, rows: std::ops::Range<usize>) -> Targets {
        match self {
            Targets::Absent => Targets::Absent,
            Targets::Real(values) => Targets::Real(values.slice(rows)),
            Targets::Labels { names, codes } => Targets::Labels { names: names.clone(), codes: codes.slice(rows) },
            Targets::Sets { .. } => self.select(&rows.collect::<Vec<_>>()),
        }
    }

    /// These targets, then those of other rows; absent if either are. An error if one are numbers and the other words.
    pub fn followed_by(&self, others: &Targets) -> Result<Targets> {
        match (self, others) {
            (Targets::Absent, _) | (_, Targets::Absent) => Ok(Targets::Absent),
            (Targets::Real(own), Targets::Real(others)) => Ok(Targets::Real([&own[..], &others[..]].concat().into())),
            (Targets::Labels { names, codes }, Targets::Labels { names: other_names, codes: others }) => {
                let all: BTreeSet<&[u8]> = [names, other_names]
                    .into_iter()
                    .flat_map(|names| (0..names.len()).map(|code| names.get_bytes(code)))
                    .collect();
                let place: HashMap<&[u8], u32> = all.iter().zip(0..).map(|(name, code)| (*name, code)).collect();
                let moved = |names: &Names, codes: &[u32]| -> Vec<u32> {
                    let by_code: Vec<u32> = (0..names.len()).map(|code| place[names.get_bytes(code)]).collect();
                    codes.iter().map(|&code| by_code[code as usize]).collect()
                };
                let codes = [moved(names, codes), moved(other_names, others)].concat().into();
                Ok(Targets::Labels { names: all.into_iter().collect(), codes })
            }
            (Targets::Sets { .. }, _) | (_, Targets::Sets { .. }) => Ok(joined(&self.as_sets(), &others.as_sets())),
            _ => Err(Error::new(Code::BadTarget, "the targets of one file are numbers, and those of the other words")
                .help("write the targets of both files in the same way")),
        }
    }

    /// The labels of each row: one where targets are single.
    fn as_sets(&self) -> Vec<Vec<Cow<'_, [u8]>>> {
        match self {
            Targets::Absent => Vec::new(),
            Targets::Real(values) => {
                values.iter().map(|&value| vec![Cow::Owned(number_label(value).into_bytes())]).collect()
            }
            Targets::Labels { names, codes } => {
                codes.iter().map(|&code| vec![Cow::Borrowed(names.get_bytes(code as usize))]).collect()
            }
            Targets::Sets { names, starts, codes } => {
                let of = |bounds: &[u64]| &codes[bounds[0] as usize..bounds[1] as usize];
                let labels =
                    |own: &[u32]| own.iter().map(|&code| Cow::Borrowed(names.get_bytes(code as usize))).collect();
                starts.windows(2).map(|bounds| labels(of(bounds))).collect()
            }
        }
    }

    /// The target of a row as text; the labels of a set are joined by commas.
    pub fn label_of(&self, row: usize) -> String {
        match self {
            Targets::Absent => String::new(),
            Targets::Real(values) => format!("{}", values[row]),
            Targets::Labels { names, codes } => names.get(codes[row] as usize).into_owned(),
            Targets::Sets { names, starts, codes } => {
                let own = &codes[starts[row] as usize..starts[row + 1] as usize];
                own.iter().map(|&code| names.get(code as usize)).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// The given rows in the given order.
    pub fn select(&self, rows: &[usize]) -> Targets {
        match self {
            Targets::Absent => Targets::Absent,
            Targets::Real(values) => Targets::Real(rows.iter().map(|&row| values[row]).collect::<Vec<_>>().into()),
            Targets::Labels { names, codes } => Targets::Labels {
                names: names.clone(),
                codes: rows.iter().map(|&row| codes[row]).collect::<Vec<_>>().into(),
            },
            Targets::Sets { names, starts, codes } => {
                let mut new_starts = Vec::with_capacity(rows.len() + 1);
                let mut new_codes = Vec::new();
                new_starts.push(0);
                for &row in rows {
                    new_codes.extend_from_slice(&codes[starts[row] as usize..starts[row + 1] as usize]);
                    new_starts.push(new_codes.len() as u64);
                }
                Targets::Sets { names: names.clone(), starts: new_starts.into(), codes: new_codes.into() }
            }
        }
    }
}

/// Sets of labels, then others.
fn joined(own: &[Vec<Cow<'_, [u8]>>], others: &[Vec<Cow<'_, [u8]>>]) -> Targets {
    let rows = || own.iter().chain(others);
    let all: BTreeSet<&[u8]> = rows().flatten().map(AsRef::as_ref).collect();
    let place: HashMap<&[u8], u32> = all.iter().zip(0..).map(|(name, code)| (*name, code)).collect();
    let (mut starts, mut codes) = (vec![0u64], Vec::new());
    for row in rows() {
        let first = codes.len();
        codes.extend(row.iter().map(|label| place[label.as_ref()]));
        codes[first..].sort_unstable();
        starts.push(codes.len() as u64);
    }
    Targets::Sets { names: all.into_iter().collect(), starts: starts.into(), codes: codes.into() }
}

/// The error for label sets in a place that needs one label.
pub(crate) fn several_labels() -> Error {
    Error::new(Code::SeveralLabels, "rows carry sets of labels, and this task takes one target a row")
        .help("learn sets of labels with `maxmargin train multilabel`, or keep one label a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(rows: &[&[&str]]) -> Targets {
        let own = |row: &&[&str]| row.iter().map(|label| Cow::Owned(label.as_bytes().to_vec())).collect();
        joined(&rows.iter().map(own).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn sets_of_two_pieces_are_joined_by_their_labels() {
        let shown = |targets: &Targets| -> Vec<String> {
            (0..targets.rows().expect("targets")).map(|row| targets.label_of(row)).collect()
        };
        let first = sets(&[&["b", "a"], &[]]);
        assert_eq!(shown(&first), ["a,b", ""]);
        let both = first.followed_by(&sets(&[&["c"], &["a", "c"]])).expect("joined");
        assert_eq!(shown(&both), ["a,b", "", "c", "a,c"]);
        // A piece in which every row has one label.
        let numbers = Targets::Real(vec![2.0, 10.0].into());
        assert_eq!(shown(&numbers.followed_by(&sets(&[&["10", "2"]])).expect("joined")), ["2", "10", "10,2"]);
        let words = Targets::Labels { names: ["x", "y"].into_iter().collect(), codes: vec![1, 0].into() };
        assert_eq!(shown(&first.followed_by(&words).expect("joined")), ["a,b", "", "y", "x"]);
    }
}
