//! [`Labels`]: the classes of a task with any number of them.

use super::classes::{number_label, same_number};
use super::{Targets, several_labels};
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The classes of a task, in sorted order: words by letters, numbers by value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels {
    names: Vec<String>,
}

/// The classes by their labels, to look many of them up.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    by_name: HashMap<&'a str, u32>,
    by_number: HashMap<u64, u32>,
}

impl Places<'_> {
    /// The class with a label. Numbers may be spelled in another way.
    pub fn of(&self, label: &str) -> Option<usize> {
        let number = || label.parse().ok().and_then(|number| self.of_number(number));
        self.by_name.get(label).copied().or_else(number).map(|class| class as usize)
    }

    /// The class whose label is this number.
    fn of_number(&self, number: f64) -> Option<u32> {
        self.by_number.get(&bits_of(number)).copied()
    }
}

/// The bits of a number, the same for both zeros.
fn bits_of(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// More classes than this are refused: their scores would not fit into memory.
pub(crate) const MOST_CLASSES: usize = 1 << 20;

/// More ranks than this are refused: each has a cut of its own.
const MOST_RANKS: usize = 1000;

/// From this many different numbers on, targets that are not whole are taken for measurements, not for classes.
const MEASUREMENTS: usize = 100;

impl Labels {
    /// Labels in the given order.
    pub fn new(names: Vec<String>) -> Labels {
        Labels { names }
    }

    /// Finds the classes in the targets.
    pub fn find(targets: &Targets) -> Result<Labels> {
        let names: Vec<String> = match targets {
            Targets::Labels { names, codes } => {
                let mut used = vec![false; names.len()];
                codes.iter().for_each(|&code| used[code as usize] = true);
                (0..names.len()).filter(|&code| used[code]).map(|code| names.get(code).into_owned()).collect()
            }
            Targets::Sets { .. } => return Err(several_labels()),
            _ => {
                let values = distinct(targets.real()?);
                check_not_measured(&values)?;
                values.into_iter().map(number_label).collect()
            }
        };
        Labels::checked(names)
    }

    fn checked(names: Vec<String>) -> Result<Labels> {
        if let [only] = &names[..] {
            return Err(Error::new(Code::SingleClass, format!("every row has the same class, `{only}`"))
                .help("a classifier needs rows of two classes; check the target column, or whether the file was cut"));
        }
        if names.len() > MOST_CLASSES {
            return Err(Error::new(
                Code::TooManyClasses,
                format!("{} classes, and a classifier takes at most {MOST_CLASSES}", names.len()),
            )
            .help("check the target column"));
        }
        Ok(Labels { names })
    }

    /// Labels of sets, of which there is at least one.
    pub(super) fn checked_sets(names: Vec<String>) -> Result<Labels> {
        if names.is_empty() {
            return Err(Error::new(Code::SingleClass, "no row has a label, so there is nothing to tell apart")
                .help("give rows their labels: in svmlight files separated by commas, in tables see ⟦target⟧"));
        }
        if names.len() > MOST_CLASSES {
            return Err(Error::new(
                Code::TooManyClasses,
                format!("{} labels, and at most {MOST_CLASSES} are taken", names.len()),
            )
            .help("check the target column"));
        }
        Ok(Labels { names })
    }

    /// The ranks in the targets: the distinct numbers, in order.
    pub fn ranks(targets: &Targets) -> Result<Labels> {
        if let Targets::Labels { names, codes } = targets {
            let word = codes.first().map_or_else(String::new, |&code| names.get(code as usize).into_owned());
            let message = format!("ratings are numbers in order, and the targets are words such as `{word}`");
            return Err(Error::new(Code::BadTarget, message)
                .help("write the ranks as numbers, such as 1 to 5; for labels without an order use `train classify`"));
        }
        let values = distinct(targets.real()?);
        if let [only] = values[..] {
            return Err(Error::new(Code::SingleClass, format!("every row has the same rank, {only}"))
                .help("ratings need rows of two ranks; check the target column, or whether the file was cut"));
        }
        let broken = values.iter().find(|value| value.fract() != 0.0).filter(|_| values.len() >= MEASUREMENTS);
        if let Some(value) = broken.or(values.first().filter(|_| values.len() > MOST_RANKS)) {
            let message =
                format!("the targets are {} different numbers such as {value}, which are no ranks", values.len());
            return Err(Error::new(Code::BadTarget, message)
                .help("round the targets to a few ranks, or order the rows by them with `train rank`"));
        }
        Ok(Labels { names: values.into_iter().map(number_label).collect() })
    }

    /// The labels as numbers, if all are finite and in rising order.
    pub fn values(&self) -> Option<Vec<f64>> {
        let values: Vec<f64> = self.names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?;
        let rising = values.windows(2).all(|pair| pair[0] < pair[1]);
        (rising && values.iter().all(|value| value.is_finite())).then_some(values)
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The label of a class.
    pub fn name(&self, class: usize) -> &str {
        &self.names[class]
    }

    /// All labels in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// All labels as numbers, if they are numbers.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.names.iter().map(|name| name.parse().ok().filter(|number: &f64| number.is_finite())).collect()
    }

    /// The classes by their labels. Of several that are the same number, the first one has it.
    pub fn places(&self) -> Places<'_> {
        let mut places = Places { by_name: HashMap::new(), by_number: HashMap::new() };
        for (class, name) in (0..).zip(&self.names) {
            places.by_name.entry(name).or_insert(class);
            if let Some(number) = name.parse::<f64>().ok().filter(|number| !number.is_nan()) {
                places.by_number.entry(bits_of(number)).or_insert(class);
            }
        }
        places
    }

    /// The class with a label, by a search through all of them: for many labels use [`Labels::places`]. Numbers may be
    /// spelled in another way.
    pub fn position(&self, label: &str) -> Option<usize> {
        let same = |name: &String| same_number(name, label);
        self.names.iter().position(|name| name == label).or_else(|| self.names.iter().position(same))
    }

    /// The class of each row; none for a label that is not among the classes.
    pub fn known_codes(&self, targets: &Targets) -> Result<Vec<Option<u32>>> {
        match targets {
            Targets::Labels { names, codes } => {
                let places = self.places();
                let of = |name: &str| places.of(name).map(|class| class as u32);
                let by_code: Vec<Option<u32>> = names.iter().map(|name| of(&name)).collect();
                Ok(codes.iter().map(|&code| by_code[code as usize]).collect())
            }
            Targets::Sets { .. } => Err(several_labels()),
            _ => {
                let places = self.places();
                Ok(targets.real()?.iter().map(|&value| places.of_number(value)).collect())
            }
        }
    }

    /// The class of each row. A label that is not among the classes is an error that names it.
    pub fn codes(&self, targets: &Targets) -> Result<Vec<u32>> {
        let codes = self.known_codes(targets)?;
        match codes.iter().position(Option::is_none) {
            None => Ok(codes.into_iter().flatten().collect()),
            Some(row) => {
                let label = targets.label_of(row);
                Err(Error::new(
                    Code::UnknownLabel,
                    format!("label `{label}` of row {} is not among the {} classes of the model", row + 1, self.len()),
                )
                .help("leave rows of other classes out, or check the target column"))
            }
        }
    }
}

/// At least this many values are sorted at a time.
const SORTED_AT_ONCE: usize = 1 << 16;

/// Distinct values in order. Blocks are sorted, as large as what is found: a sorted copy of all values would take more
/// memory than the classes do.
fn distinct(values: &[f64]) -> Vec<f64> {
    let (mut found, mut rest): (Vec<f64>, &[f64]) = (Vec::new(), values);
    while !rest.is_empty() {
        let (block, later) = rest.split_at(found.len().max(SORTED_AT_ONCE).min(rest.len()));
        found.extend(block.iter().map(|value| value + 0.0));
        found.sort_unstable_by(f64::total_cmp);
        found.dedup();
        rest = later;
    }
    found
}

/// Refuses targets that are measurements: nearly every row would be a class of its own.
fn check_not_measured(values: &[f64]) -> Result<()> {
    let broken = values.iter().find(|value| value.fract() != 0.0);
    match broken {
        Some(value) if values.len() >= MEASUREMENTS => Err(Error::new(
            Code::TooManyClasses,
            format!("the targets are {} different numbers such as {value}, which are no classes", values.len()),
        )
        .help("check the target column; to order rows by such numbers, use `train rank`")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_in_order_and_rows_get_their_codes() {
        let numbers = Targets::Real(vec![10.0, -1.0, 2.0, 10.0].into());
        let labels = Labels::find(&numbers).expect("three classes");
        assert_eq!(labels.names(), ["-1", "2", "10"]);
        assert_eq!(labels.codes(&numbers).expect("known"), [2, 0, 1, 2]);
        assert_eq!(labels.position("10.0"), Some(2));
        let words = Targets::Labels { names: ["ham", "new", "spam"].into_iter().collect(), codes: vec![2, 0].into() };
        let labels = Labels::find(&words).expect("two classes");
        assert_eq!(labels.names(), ["ham", "spam"]);
        assert_eq!(labels.codes(&words).expect("known"), [1, 0]);
        let other = Targets::Labels { names: ["new", "spam"].into_iter().collect(), codes: vec![1, 0].into() };
        assert_eq!(labels.known_codes(&other).expect("labels"), [Some(1), None]);
        let error = labels.codes(&other).expect_err("a new label");
        assert_eq!(error.code(), Code::UnknownLabel);
        assert!(error.message().contains("`new` of row 2"), "{}", error.message());
    }

    #[test]
    fn places_are_those_of_a_search() {
        let names = ["-0", "1", "1.0", "x", "01", "nan", "x", "1e3", "inf"].map(String::from).to_vec();
        let labels = Labels::new(names.clone());
        let places = labels.places();
        for label in names.iter().map(String::as_str).chain(["0", "1.00", "y", "1000", "NaN", "Infinity", "-1", ""]) {
            assert_eq!(places.of(label), labels.position(label), "{label}");
        }
        assert_eq!((places.of("1.0"), places.of("1.00"), places.of("0")), (Some(2), Some(1), Some(0)));
        assert_eq!((places.of("nan"), places.of("NaN"), places.of("x")), (Some(5), None, Some(3)));
    }

    #[test]
    fn one_class_and_measurements_are_refused() {
        let one = Labels::find(&Targets::Real(vec![3.0, 3.0].into())).expect_err("one class");
        assert_eq!(one.code(), Code::SingleClass);
        let measured: Vec<f64> = (0..500).map(|row| f64::from(row) * 0.37).collect();
        let many = Labels::find(&Targets::Real(measured.into())).expect_err("measurements");
        assert_eq!(many.code(), Code::TooManyClasses);
        let whole: Vec<f64> = (0..5000).map(f64::from).collect();
        assert_eq!(Labels::find(&Targets::Real(whole.into())).expect("classes").len(), 5000);
    }

    #[test]
    fn classes_of_many_rows_are_found_block_by_block() {
        let values: Vec<f64> = (0..3 * SORTED_AT_ONCE + 7).map(|row| ((row * 7919) % 100_003) as f64 - 5.0).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        assert_eq!(distinct(&values), sorted);
        assert_eq!(distinct(&[0.0, -0.0, 2.0]), [0.0, 2.0]);
        assert!(distinct(&[]).is_empty());
    }
}
