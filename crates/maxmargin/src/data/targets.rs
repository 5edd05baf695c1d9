//! [`Targets`]: what is known about each row.

use super::{Buffer, Names};
use crate::error::{Code, Error, Result};

/// The targets of all rows: none, a number each, a word each, or a set of labels each.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Nothing is known; such data can be scored but not learned from.
    Absent,
    /// A grade, a real value, or a class written as a number.
    Real(Buffer<f64>),
    /// A class written as a word: a code for each row into the sorted names.
    Labels {
        /// The distinct labels in byte order.
        names: Names,
        /// The label of each row.
        codes: Buffer<u32>,
    },
    /// Any number of labels a row.
    Sets {
        /// The distinct labels.
        names: Names,
        /// Where the labels of each row start, and the total at the end.
        starts: Buffer<u64>,
        /// The labels of all rows, increasing within a row.
        codes: Buffer<u32>,
    },
}

impl Targets {
    /// Number of rows, or none where targets are absent.
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
                .help("name the column that holds them with [[target=NAME]]")),
            Targets::Labels { names, .. } => Err(Error::new(
                Code::BadTarget,
                format!("the targets are words such as `{}`, and this task needs numbers", names.get(0)),
            )
            .help("give grades or real values as targets, or train a classifier")),
            Targets::Sets { .. } => Err(several_labels()),
        }
    }

    /// A run of neighbouring rows, in the same memory where that can be.
    pub fn run(&self, rows: std::ops::Range<usize>) -> Targets {
        match self {
            Targets::Absent => Targets::Absent,
            Targets::Real(values) => Targets::Real(values.slice(rows)),
            Targets::Labels { names, codes } => Targets::Labels { names: names.clone(), codes: codes.slice(rows) },
            Targets::Sets { .. } => self.select(&rows.collect::<Vec<_>>()),
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

/// The error for label sets where one label is needed.
pub(crate) fn several_labels() -> Error {
    Error::new(Code::SeveralLabels, "rows carry sets of labels, and this task takes one target a row")
        .help("keep one label a row; tasks over label sets are not part of this version")
}
