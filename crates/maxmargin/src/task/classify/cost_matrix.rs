//! [`CostMatrix`]: what it costs to predict one class in place of another.
//!
//! As text it is a table of comma-separated values. The header lists the labels; every other line begins with a true label,
//! and its cells are the costs of predicting the class of their column:
//!
//! ```text
//! label,cat,dog,wolf
//! cat,0,1,2
//! dog,1,0,0.5
//! wolf,4,0.5,0
//! ```
//! The joint forms take a cost as the margin by which the true class must lead (margin rescaling), so that the hinge of the
//! largest violation bounds the cost of the predicted class from above. With 1 everywhere it is the usual form.

use crate::data::Labels;
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The cost of each class in place of each other one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CostMatrix {
    labels: Vec<String>,
    /// By the true class, then by the predicted one.
    costs: Vec<f64>,
}

fn bad(message: String) -> Error {
    Error::new(Code::BadSetting, format!("the cost matrix: {message}")).help(
        "write a header of labels, and a line for each true label with the cost of predicting each class: zero for the \
         class itself, and zero or more for the others",
    )
}

/// The fields of a line. A field in double quotes may hold commas, and double quotes twice.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field).trim().to_string()),
            letter => field.push(letter),
        }
    }
    fields.push(field.trim().to_string());
    fields
}

fn quoted(label: &str) -> String {
    if label.contains([',', '"']) { format!("\"{}\"", label.replace('"', "\"\"")) } else { label.to_string() }
}

impl FromStr for CostMatrix {
    type Err = Error;

    fn from_str(text: &str) -> Result<CostMatrix> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((_, header)) = lines.next() else { return Err(bad("it is empty".to_string())) };
        let labels: Vec<String> = fields(header).split_off(1);
        if labels.len() < 2 {
            return Err(bad("line 1 names fewer than two labels".to_string()));
        }
        for (at, label) in labels.iter().enumerate() {
            if label.is_empty() || labels[..at].contains(label) {
                let what = if label.is_empty() { "there is no label" } else { "a label stands there twice" };
                return Err(bad(format!("line 1, column {}: {what}", at + 2)));
            }
        }
        let count = labels.len();
        let (mut costs, mut seen) = (vec![0.0; count * count], vec![false; count]);
        for (line, text) in lines {
            let (line, cells) = (line + 1, fields(text));
            let Some(own) = labels.iter().position(|label| *label == cells[0]) else {
                return Err(bad(format!("line {line}, column 1: `{}` is not a label of the header", cells[0])));
            };
            if std::mem::replace(&mut seen[own], true) {
                return Err(bad(format!("line {line}, column 1: `{}` has a line already", cells[0])));
            }
            if cells.len() != count + 1 {
                let found = cells.len() - 1;
                return Err(bad(format!("line {line}: {found} costs, and the header names {count} labels")));
            }
            for (class, cell) in cells[1..].iter().enumerate() {
                let at = format!("line {line}, column {}", class + 2);
                let cost = cell.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost >= 0.0);
                let cost = cost.ok_or_else(|| bad(format!("{at}: `{cell}` is not a number of zero or more")))?;
                if class == own && cost != 0.0 {
                    return Err(bad(format!("{at}: the right class `{}` costs {cell}, and must cost 0", cells[0])));
                }
                costs[own * count + class] = cost;
            }
        }
        if let Some(missing) = seen.iter().position(|seen| !seen) {
            return Err(bad(format!("the label `{}` of line 1 has no line", labels[missing])));
        }
        if costs.iter().all(|&cost| cost == 0.0) {
            return Err(bad("all costs are zero, so that nothing can be learned".to_string()));
        }
        Ok(CostMatrix { labels, costs })
    }
}

impl fmt::Display for CostMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<String> = self.labels.iter().map(|label| quoted(label)).collect();
        writeln!(f, "label,{}", labels.join(","))?;
        for (label, costs) in labels.iter().zip(self.costs.chunks_exact(labels.len())) {
            let costs: Vec<String> = costs.iter().map(f64::to_string).collect();
            writeln!(f, "{label},{}", costs.join(","))?;
        }
        Ok(())
    }
}

impl TryFrom<String> for CostMatrix {
    type Error = Error;

    fn try_from(text: String) -> Result<CostMatrix> {
        text.parse()
    }
}

impl From<CostMatrix> for String {
    fn from(matrix: CostMatrix) -> String {
        matrix.to_string()
    }
}

impl CostMatrix {
    /// The labels, in the order of the header.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The costs among some of the classes; none if all of these are zero.
    pub(crate) fn among(&self, classes: &Labels) -> Option<CostMatrix> {
        let places = classes.places();
        let known = |&at: &usize| places.of(&self.labels[at]).is_some();
        let kept: Vec<usize> = (0..self.labels.len()).filter(known).collect();
        let cost = |own: usize, class: usize| self.costs[own * self.labels.len() + class];
        let costs: Vec<f64> = kept.iter().flat_map(|&own| kept.iter().map(move |&class| cost(own, class))).collect();
        let labels = kept.iter().map(|&at| self.labels[at].clone()).collect();
        costs.iter().any(|&cost| cost > 0.0).then_some(CostMatrix { labels, costs })
    }

    /// The costs in the order of the classes of a model: by the true class, then by the predicted one. An error if the
    /// labels are not those of the data.
    pub fn of_classes(&self, classes: &Labels) -> Result<Vec<f64>> {
        let unknown = |label: &str, where_from: &str, lacks: &str| {
            let message = format!("the {where_from} a label `{label}`, and the {lacks} none such");
            Err(Error::new(Code::UnknownLabel, message)
                .help("name all classes of the data, and no others, as they are there"))
        };
        let (by_label, mut places) = (classes.places(), vec![None; classes.len()]);
        for (at, label) in self.labels.iter().enumerate() {
            match by_label.of(label) {
                Some(class) => places[class] = Some(at),
                None => return unknown(label, "cost matrix has", "data have"),
            }
        }
        let mut ordered = Vec::with_capacity(self.labels.len());
        for (class, place) in places.iter().enumerate() {
            match place {
                Some(place) => ordered.push(*place),
                None => return unknown(classes.name(class), "data have", "cost matrix has"),
            }
        }
        let cost = |own: usize, class: usize| self.costs[own * self.labels.len() + class];
        Ok(ordered.iter().flat_map(|&own| ordered.iter().map(move |&class| cost(own, class))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "label,b,\"a,c\",10\n10,3,0.5,0\nb,0,1,2\n\"a,c\",4,0,1e3\n";

    #[test]
    fn a_table_is_read_ordered_and_written_again() {
        let matrix: CostMatrix = TABLE.parse().expect("a table");
        assert_eq!(matrix.labels(), ["b", "a,c", "10"]);
        assert_eq!(matrix.to_string().parse::<CostMatrix>().expect("again"), matrix);
        let json = serde_json::to_string(&matrix).expect("JSON");
        assert_eq!(serde_json::from_str::<CostMatrix>(&json).expect("from JSON"), matrix);
        let classes = Labels::new(["10", "a,c", "b"].map(String::from).to_vec());
        assert_eq!(matrix.of_classes(&classes).expect("known"), [0.0, 0.5, 3.0, 1e3, 0.0, 4.0, 2.0, 1.0, 0.0]);
        for labels in [&["10", "b"][..], &["10", "a,c", "b", "d"]] {
            let classes = Labels::new(labels.iter().map(|label| label.to_string()).collect());
            assert_eq!(matrix.of_classes(&classes).expect_err("other labels").code(), Code::UnknownLabel);
        }
    }

    #[test]
    fn costs_among_some_classes_are_those_of_the_table() {
        let matrix: CostMatrix = TABLE.parse().expect("a table");
        let some = Labels::new(["10.0", "b"].map(String::from).to_vec());
        let among = matrix.among(&some).expect("costs");
        assert_eq!(among.to_string(), "label,b,10\nb,0,2\n10,3,0\n");
        assert_eq!(among.of_classes(&some).expect("known"), [0.0, 3.0, 2.0, 0.0]);
        let free: CostMatrix = "label,a,b,c\na,0,0,1\nb,0,0,1\nc,1,1,0\n".parse().expect("a table");
        assert_eq!(free.among(&Labels::new(["a", "b"].map(String::from).to_vec())), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        for (text, says) in [
            ("", "it is empty"),
            ("label,a\na,0\n", "fewer than two labels"),
            ("label,a,a\n", "line 1, column 3: a label stands there twice"),
            ("label,a,\n", "line 1, column 3: there is no label"),
            ("label,a,b\na,0,1\n", "the label `b` of line 1 has no line"),
            ("label,a,b\na,0,1\na,0,1\n", "line 3, column 1: `a` has a line already"),
            ("label,a,b\nc,0,1\n", "line 2, column 1: `c` is not a label"),
            ("label,a,b\na,0\n", "line 2: 1 costs"),
            ("label,a,b\na,0.5,1\n", "line 2, column 2: the right class `a` costs 0.5"),
            ("label,a,b\na,0,-1\n", "line 2, column 3: `-1` is not a number"),
            ("label,a,b\na,0,1\nb,nan,0\n", "line 3, column 2: `nan` is not"),
            ("label,a,b\na,0,0\nb,0,0\n", "all costs are zero"),
        ] {
            let error = text.parse::<CostMatrix>().expect_err(text);
            assert!(error.code() == Code::BadSetting && error.message().contains(says), "{text:?}: {error}");
        }
    }
}
