//! [`StreamLabels`]: the classes of a stream. They appear in its course, or are declared beforehand.
//!
//! Each class has a code, in the order of first appearance or of declaration. Codes never change, so that the weights
//! of a class stay where they are.

use crate::data::{Dataset, MOST_CLASSES, Targets, number_label, several_labels};
use crate::error::{Code, Error, Result};
use std::collections::HashMap;
use std::ops::Range;

/// See the top of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamLabels {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    by_number: HashMap<u64, u32>,
    declared: bool,
}

impl StreamLabels {
    /// These classes. If they are declared, no other may appear.
    pub(crate) fn new(names: &[String], declared: bool) -> StreamLabels {
        let mut labels = StreamLabels { declared: false, ..StreamLabels::default() };
        for name in names {
            labels.add(name);
        }
        labels.declared = declared;
        labels
    }

    /// The labels in the order of their codes.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Writes the code of each row into `codes`. New labels are added in the order of the rows.
    pub(crate) fn codes(&mut self, data: &Dataset, rows: Range<usize>, codes: &mut Vec<u32>) -> Result<()> {
        codes.clear();
        match data.targets() {
            Targets::Labels { names, codes: own } => {
                const UNKNOWN: u32 = u32::MAX;
                let mut by_code = vec![UNKNOWN; names.len()];
                for row in rows {
                    let own = own[row] as usize;
                    if by_code[own] == UNKNOWN {
                        by_code[own] = self.code_of(&names.get(own), data, row)?;
                    }
                    codes.push(by_code[own]);
                }
            }
            Targets::Sets { .. } => return Err(several_labels()),
            targets => {
                let values = targets.real()?;
                for row in rows {
                    // Both zeros are one label.
                    let value = values[row] + 0.0;
                    codes.push(match self.by_number.get(&value.to_bits()) {
                        Some(&code) => code,
                        None => self.code_of(&number_label(value), data, row)?,
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes the codes of the set of labels of a row, in order. New labels are added. One label is a set of one.
    pub(crate) fn set(&mut self, data: &Dataset, row: usize, codes: &mut Vec<u32>) -> Result<()> {
        let Targets::Sets { names, starts, codes: own } = data.targets() else {
            return self.codes(data, row..row + 1, codes);
        };
        codes.clear();
        for &label in &own[starts[row] as usize..starts[row + 1] as usize] {
            let code = self.code_of(&names.get(label as usize), data, row)?;
            codes.push(code);
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(())
    }

    /// Writes the code of each row into `codes`, up to the first row whose label is new. Returns the number of rows before
    /// it.
    pub(crate) fn known(&self, data: &Dataset, rows: Range<usize>, codes: &mut Vec<u32>) -> Result<usize> {
        codes.clear();
        match data.targets() {
            Targets::Labels { names, codes: own } => {
                let mut by_code: Vec<Option<Option<u32>>> = vec![None; names.len()];
                for row in rows {
                    let own = own[row] as usize;
                    match *by_code[own].get_or_insert_with(|| self.find(&names.get(own))) {
                        Some(code) => codes.push(code),
                        None => break,
                    }
                }
            }
            Targets::Sets { .. } => return Err(several_labels()),
            targets => {
                let values = targets.real()?;
                let found = rows.map(|row| self.by_number.get(&(values[row] + 0.0).to_bits()).copied());
                codes.extend(found.take_while(Option::is_some).flatten());
            }
        }
        Ok(codes.len())
    }

    /// Adds the labels of some rows that are new, in the order of the rows.
    pub(crate) fn meet(&mut self, data: &Dataset, rows: Range<usize>) -> Result<()> {
        self.codes(data, rows, &mut Vec::new())
    }

    /// The code of a known label. Numbers may be spelled in another way.
    fn find(&self, label: &str) -> Option<u32> {
        let number = || bits(label).and_then(|bits| self.by_number.get(&bits));
        self.by_name.get(label).or_else(number).copied()
    }

    /// The code of a label, which is new if it is neither known by its name nor as a number.
    fn code_of(&mut self, label: &str, data: &Dataset, row: usize) -> Result<u32> {
        if let Some(code) = self.find(label) {
            return Ok(code);
        }
        if self.declared {
            let shown = self.names.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let more = if self.names.len() > 5 { ", …" } else { "" };
            let message = format!("label `{label}` of {} is not among the classes {shown}{more}", data.row_name(row));
            return Err(Error::new(Code::UnknownLabel, message)
                .help("add it to ⟦classes⟧, or leave ⟦classes⟧ out so that classes may appear in the stream"));
        }
        self.add(label).ok_or_else(|| {
            Error::new(Code::TooManyClasses, format!("more than {MOST_CLASSES} classes, and that is the most"))
                .help("check the target column")
        })
    }

    fn add(&mut self, label: &str) -> Option<u32> {
        let code = u32::try_from(self.names.len()).ok().filter(|&code| (code as usize) < MOST_CLASSES)?;
        self.names.push(label.to_string());
        self.by_name.insert(label.to_string(), code);
        if let Some(bits) = bits(label) {
            self.by_number.entry(bits).or_insert(code);
        }
        Some(code)
    }
}

/// The bits of a label that is a number, the same for both zeros.
fn bits(label: &str) -> Option<u64> {
    let number: f64 = label.parse().ok()?;
    (!number.is_nan()).then_some((number + 0.0).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};

    fn data(targets: Targets) -> Dataset {
        let rows = targets.rows().expect("targets");
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1).expect("rows"));
        Dataset::new(matrix, targets).expect("data")
    }

    #[test]
    fn classes_get_codes_in_the_order_of_the_stream() {
        let mut labels = StreamLabels::default();
        let mut codes = Vec::new();
        let words = Targets::Labels { names: ["a", "b", "c"].into_iter().collect(), codes: vec![2, 0, 2, 1].into() };
        labels.codes(&data(words), 0..3, &mut codes).expect("labels");
        assert_eq!((codes.as_slice(), labels.names()), (&[0, 1, 0][..], &["c".to_string(), "a".to_string()][..]));
        let numbers = Targets::Real(vec![3.0, -0.0, 0.0, 3.0].into());
        labels.codes(&data(numbers), 0..4, &mut codes).expect("labels");
        assert_eq!((codes.as_slice(), labels.names().len()), (&[2, 3, 3, 2][..], 4));
        let more = Targets::Real(vec![0.0, 3.0, 5.0, 3.0].into());
        assert_eq!(labels.known(&data(more.clone()), 0..4, &mut codes).expect("labels"), 2);
        assert_eq!(codes, [3, 2]);
        let words = Targets::Labels { names: ["a", "z"].into_iter().collect(), codes: vec![0, 1].into() };
        assert_eq!(labels.known(&data(words), 0..2, &mut codes).expect("labels"), 1);
        // The same number, spelled as a word among others.
        let mixed = Targets::Labels { names: ["3.0", "x"].into_iter().collect(), codes: vec![0, 1].into() };
        labels.codes(&data(mixed), 0..2, &mut codes).expect("labels");
        assert_eq!(codes, [2, 4]);
    }

    #[test]
    fn a_label_that_was_not_declared_is_named() {
        let mut labels = StreamLabels::new(&["1".to_string(), "2".to_string()], true);
        let mut codes = Vec::new();
        labels.codes(&data(Targets::Real(vec![2.0, 1.0].into())), 0..2, &mut codes).expect("declared");
        assert_eq!(codes, [1, 0]);
        let error = labels.codes(&data(Targets::Real(vec![1.0, 7.0].into())), 0..2, &mut codes).expect_err("7");
        assert_eq!(error.code(), Code::UnknownLabel);
        assert!(error.message().contains("`7` of row 2"), "{}", error.message());
    }
}
