//! Label sets while they are being read: a cell with several labels, or a 0/1 column for each label.

use crate::cells::{self, Problem};
use maxmargin::data::{Names, Targets};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A numeric label in a unique spelling, so that it has the same name in rows with one label and with several.
pub(crate) fn number_label(value: f64) -> Box<[u8]> {
    format!("{value}").into_bytes().into()
}

/// A label as it is stored: numbers in their shortest form.
pub(crate) fn label(token: &[u8]) -> Box<[u8]> {
    match std::str::from_utf8(token).ok().and_then(|token| token.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => number_label(value),
        _ => token.into(),
    }
}

/// The targets of rows with so many labels each, which follow one another. If every row has one label, and all of them
/// are numbers, they are plain targets.
pub(crate) fn targets_of(lengths: Vec<u32>, labels: &[Box<[u8]>]) -> Targets {
    // Numbers are sorted by value, words come after them.
    let mut names: Vec<&Box<[u8]>> = labels.iter().collect();
    let number = |name: &[u8]| std::str::from_utf8(name).ok().and_then(|name| name.parse::<f64>().ok());
    names.sort_unstable();
    names.dedup();
    names.sort_by(|a, b| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    });
    let code_of: HashMap<&[u8], u32> = names.iter().enumerate().map(|(code, name)| (&name[..], code as u32)).collect();
    let (mut starts, mut codes) = (vec![0u64], Vec::with_capacity(labels.len()));
    let mut at = 0;
    for length in lengths {
        let mut row: Vec<u32> = labels[at..at + length as usize].iter().map(|label| code_of[&label[..]]).collect();
        row.sort_unstable();
        row.dedup();
        codes.append(&mut row);
        starts.push(codes.len() as u64);
        at += length as usize;
    }
    // `2,2` is one label. A file of such rows has plain targets.
    let values: Option<Vec<f64>> = names.iter().map(|name| number(name)).collect();
    if let (Some(values), true) = (values, starts.windows(2).all(|row| row[1] - row[0] == 1)) {
        let targets: Vec<f64> = codes.iter().map(|&code| values[code as usize]).collect();
        return Targets::Real(targets.into());
    }
    let names: Names = names.into_iter().collect();
    Targets::Sets { names, starts: starts.into(), codes: codes.into() }
}

/// The label sets of a table.
#[derive(Debug)]
pub(crate) enum SetColumns {
    /// A column of cells with several labels.
    Cells {
        /// What separates the labels of a cell.
        separator: u8,
        lengths: Vec<u32>,
        labels: Vec<Box<[u8]>>,
    },
    /// A column for each label.
    Indicators {
        names: Vec<String>,
        starts: Vec<u64>,
        codes: Vec<u32>,
        /// Labels of the current row so far.
        next: u32,
    },
}

impl SetColumns {
    /// A column of cells with several labels.
    pub(crate) fn cells(separator: u8) -> SetColumns {
        SetColumns::Cells { separator, lengths: Vec::new(), labels: Vec::new() }
    }

    /// A column for each of these labels.
    pub(crate) fn indicators(names: Vec<String>) -> SetColumns {
        SetColumns::Indicators { names, starts: vec![0], codes: Vec::new(), next: 0 }
    }

    /// Adds a cell with any number of labels.
    pub(crate) fn push_cell(&mut self, text: &[u8]) -> Result<(), Problem> {
        let SetColumns::Cells { separator, lengths, labels } = self else { return Ok(()) };
        let before = labels.len();
        let trimmed = text.trim_ascii();
        if !trimmed.is_empty() {
            for token in trimmed.split(|byte| byte == separator) {
                let token = token.trim_ascii();
                if token.is_empty() {
                    return Err(Problem::EmptyLabel);
                }
                labels.push(label(token));
            }
        }
        lengths.push((labels.len() - before) as u32);
        Ok(())
    }

    /// Adds a row with these labels.
    #[cfg(feature = "tables")]
    pub(crate) fn push_list(&mut self, own: impl Iterator<Item = Vec<u8>>) {
        if let SetColumns::Cells { lengths, labels, .. } = self {
            let before = labels.len();
            labels.extend(own.map(|text| label(&text)));
            lengths.push((labels.len() - before) as u32);
        }
    }

    /// Adds whether the current row has the next label. After the last label comes the next row.
    pub(crate) fn push_indicator(&mut self, value: Result<f64, Problem>) -> Result<(), Problem> {
        let SetColumns::Indicators { names, starts, codes, next } = self else { return Ok(()) };
        match cells::check(value?)? {
            0.0 => {}
            1.0 => codes.push(*next),
            _ => return Err(Problem::NoIndicator),
        }
        *next += 1;
        if *next as usize == names.len() {
            starts.push(codes.len() as u64);
            *next = 0;
        }
        Ok(())
    }

    /// The targets.
    pub(crate) fn finish(self) -> Targets {
        match self {
            SetColumns::Cells { lengths, labels, .. } => targets_of(lengths, &labels),
            SetColumns::Indicators { names, starts, codes, .. } => {
                Targets::Sets { names: names.into_iter().collect(), starts: starts.into(), codes: codes.into() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(targets: &Targets) -> Vec<String> {
        (0..targets.rows().expect("targets")).map(|row| targets.label_of(row)).collect()
    }

    #[test]
    fn cells_are_cut_at_the_separator() {
        let mut column = SetColumns::cells(b';');
        for cell in ["sport; news", "", " news ", "10;2.0;news"] {
            column.push_cell(cell.as_bytes()).expect("labels");
        }
        assert_eq!(column.push_cell(b"a;;b"), Err(Problem::EmptyLabel));
        let targets = column.finish();
        assert_eq!(sets(&targets), ["news,sport", "", "news", "2,10,news"]);
    }

    #[test]
    fn single_numbers_are_plain_targets() {
        let mut column = SetColumns::cells(b',');
        for cell in ["3", "1,1"] {
            column.push_cell(cell.as_bytes()).expect("labels");
        }
        assert!(matches!(column.finish(), Targets::Real(values) if values[..] == [3.0, 1.0]));
    }

    #[test]
    fn columns_of_zeros_and_ones_keep_their_order() {
        let mut column = SetColumns::indicators(["b", "a"].map(str::to_string).to_vec());
        for value in [1.0, 0.0, 0.0, 0.0, 1.0, 1.0] {
            column.push_indicator(Ok(value)).expect("0 or 1");
        }
        assert_eq!(column.push_indicator(Ok(0.5)), Err(Problem::NoIndicator));
        assert_eq!(sets(&column.finish()), ["b", "", "b,a"]);
    }
}
