//! [`Classes`]: the two labels of a binary task.

use super::{Targets, several_labels};
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The two classes of a binary task: labels in sorted order (numbers by value), the second one positive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// The label of a negative score.
    pub negative: String,
    /// The label of a positive score.
    pub positive: String,
}

impl Classes {
    /// Finds the two classes in the targets. `positive` names the positive class; without it, the second label is
    /// positive.
    pub fn find(targets: &Targets, positive: Option<&str>) -> Result<Classes> {
        let labels = match targets {
            Targets::Labels { names, codes } => {
                let mut used = vec![false; names.len()];
                codes.iter().for_each(|&code| used[code as usize] = true);
                (0..names.len()).filter(|&code| used[code]).map(|code| names.get(code).into_owned()).collect()
            }
            Targets::Sets { .. } => return Err(several_labels()),
            _ => distinct(targets.real()?).into_iter().map(number_label).collect(),
        };
        Classes::among(labels, positive)
    }

    /// The two classes that labels in sorted order are, or an error where they are not two.
    pub(crate) fn among(mut labels: Vec<String>, positive: Option<&str>) -> Result<Classes> {
        if labels.len() == 1 {
            return Err(Error::new(Code::SingleClass, format!("every row has the same class, `{}`", labels[0]))
                .help("a classifier needs rows of two classes; check the target column, or whether the file was cut"));
        }
        if labels.len() > 2 {
            let many = if labels.len() > MANY_CLASSES { "more than ".to_string() } else { String::new() };
            let shown = labels.iter().take(5).map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            return Err(Error::new(
                Code::TooManyClasses,
                format!(
                    "{many}{} classes ({shown}{}), and a binary classifier takes two",
                    labels.len().min(MANY_CLASSES),
                    if labels.len() > 5 { ", …" } else { "" }
                ),
            )
            .help("keep two classes, or train on all rows at once: only then may there be more"));
        }
        if let Some(wanted) = positive {
            match labels.iter().position(|label| label == wanted || same_number(label, wanted)) {
                Some(0) => labels.swap(0, 1),
                Some(_) => {}
                None => {
                    return Err(Error::new(
                        Code::UnknownLabel,
                        format!("the positive class `{wanted}` is not among `{}` and `{}`", labels[0], labels[1]),
                    )
                    .help("name one of the two labels with ⟦positive⟧"));
                }
            }
        }
        let positive = labels.pop().unwrap_or_default();
        let negative = labels.pop().unwrap_or_default();
        Ok(Classes { negative, positive })
    }

    /// The total weight of the rows of each label, and whether labels are words.
    pub(crate) fn tally(targets: &Targets, weights: Option<&[f64]>) -> Result<(BTreeMap<String, f64>, bool)> {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let mut tally = BTreeMap::new();
        match targets {
            Targets::Labels { names, codes } => {
                let mut sums = vec![None; names.len()];
                for (row, &code) in codes.iter().enumerate() {
                    *sums[code as usize].get_or_insert(0.0) += weight(row);
                }
                let used = sums.iter().enumerate();
                tally.extend(used.filter_map(|(code, sum)| Some((names.get(code).into_owned(), (*sum)?))));
                Ok((tally, true))
            }
            Targets::Sets { .. } => Err(several_labels()),
            _ => {
                let values = targets.real()?;
                let labels = distinct(values);
                let mut sums = vec![0.0; labels.len()];
                for (row, &value) in values.iter().enumerate() {
                    if let Ok(at) = labels.binary_search_by(|label| label.total_cmp(&(value + 0.0))) {
                        sums[at] += weight(row);
                    }
                }
                tally.extend(labels.into_iter().map(number_label).zip(sums));
                Ok((tally, false))
            }
        }
    }

    /// The two classes of merged tallies, in the order that [`Classes::find`] gives them: words by letters, numbers by
    /// value. A part of numbers alone may spell a label in another way than a part with words does.
    pub(crate) fn of_tally(tally: &BTreeMap<String, f64>, words: bool, positive: Option<&str>) -> Result<Classes> {
        let mut labels: Vec<String> = Vec::new();
        for label in tally.keys() {
            if !labels.iter().any(|known| same_number(known, label)) {
                labels.push(label.clone());
            }
        }
        if !words {
            let number = |label: &String| label.parse::<f64>().unwrap_or(f64::NAN);
            labels.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        Classes::among(labels, positive)
    }

    /// The total weights of the rows of both classes.
    pub(crate) fn weights(&self, tally: &BTreeMap<String, f64>) -> (f64, f64) {
        let of = |class: &str| {
            tally
                .iter()
                .filter(|(label, _)| *label == class || same_number(label, class))
                .map(|(_, weight)| weight)
                .sum()
        };
        (of(&self.negative), of(&self.positive))
    }

    /// Whether each row has the positive label. Every other label counts as negative.
    pub fn positives(&self, targets: &Targets) -> Result<Vec<bool>> {
        let positive = |label: &str| label == self.positive || same_number(label, &self.positive);
        match targets {
            Targets::Labels { names, codes } => {
                let by_code: Vec<bool> = names.iter().map(|name| positive(&name)).collect();
                Ok(codes.iter().map(|&code| by_code[code as usize]).collect())
            }
            Targets::Sets { .. } => Err(several_labels()),
            _ => {
                let number = self.positive.parse::<f64>().ok();
                Ok(targets.real()?.iter().map(|&value| Some(value) == number).collect())
            }
        }
    }

    /// +1 or −1 for each row. A label that is neither class is an error that names it.
    pub fn signs(&self, targets: &Targets) -> Result<Vec<i8>> {
        let sign_of = |label: &str| -> Result<i8> {
            if label == self.positive || same_number(label, &self.positive) {
                Ok(1)
            } else if label == self.negative || same_number(label, &self.negative) {
                Ok(-1)
            } else {
                Err(Error::new(
                    Code::UnknownLabel,
                    format!("label `{label}` is neither `{}` nor `{}`", self.negative, self.positive),
                )
                .help("these are the classes of the model; check the target column"))
            }
        };
        match targets {
            Targets::Labels { names, codes } => {
                let by_code: Vec<Result<i8>> = names.iter().map(|name| sign_of(&name)).collect();
                codes
                    .iter()
                    .map(|&code| match &by_code[code as usize] {
                        Ok(sign) => Ok(*sign),
                        Err(_) => sign_of(&names.get(code as usize)),
                    })
                    .collect()
            }
            Targets::Sets { .. } => Err(several_labels()),
            _ => {
                let values = targets.real()?;
                let (negative, positive) = (self.negative.parse::<f64>(), self.positive.parse::<f64>());
                let (Ok(negative), Ok(positive)) = (negative, positive) else {
                    return values.iter().map(|&value| sign_of(&number_label(value))).collect();
                };
                values
                    .iter()
                    .map(|&value| {
                        if value == positive {
                            Ok(1)
                        } else if value == negative {
                            Ok(-1)
                        } else {
                            sign_of(&number_label(value))
                        }
                    })
                    .collect()
            }
        }
    }
}

/// Distinct targets are counted only up to this number.
const MANY_CLASSES: usize = 1000;

/// Distinct values in order, at most one more than [`MANY_CLASSES`].
fn distinct(values: &[f64]) -> Vec<f64> {
    let mut found: Vec<f64> = Vec::new();
    for &value in values {
        if found.last() == Some(&value) {
            continue;
        }
        if let Err(at) = found.binary_search_by(|probe| probe.total_cmp(&(value + 0.0))) {
            found.insert(at, value + 0.0);
            if found.len() > MANY_CLASSES {
                break;
            }
        }
    }
    found
}

/// A numeric class as users write it: `1`, not `1.0`.
pub(crate) fn number_label(value: f64) -> String {
    format!("{value}")
}

pub(crate) fn same_number(a: &str, b: &str) -> bool {
    matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_in_order_and_by_name() {
        let numbers = Targets::Real(vec![1.0, -1.0, 1.0].into());
        let classes = Classes::find(&numbers, None).expect("two classes");
        assert_eq!((classes.negative.as_str(), classes.positive.as_str()), ("-1", "1"));
        assert_eq!(classes.signs(&numbers).expect("known"), vec![1, -1, 1]);
        let flipped = Classes::find(&numbers, Some("-1.0")).expect("two classes");
        assert_eq!(flipped.signs(&numbers).expect("known"), vec![-1, 1, -1]);
        let words = Targets::Labels { names: ["ham", "spam"].into_iter().collect(), codes: vec![1, 0].into() };
        assert_eq!(Classes::find(&words, None).expect("two classes").positive, "spam");
        let err = Classes::find(&Targets::Real(vec![1.0, 2.0, 3.0].into()), None).expect_err("three classes");
        assert_eq!(err.code(), Code::TooManyClasses);
        let err = Classes::find(&Targets::Real(vec![1.0, 1.0].into()), None).expect_err("one class");
        assert_eq!(err.code(), Code::SingleClass);
        let err = classes.signs(&Targets::Real(vec![0.0].into())).expect_err("unknown label");
        assert_eq!(err.code(), Code::UnknownLabel);
    }
}
