//! [`OutputCode`]: many classes as columns of two-class problems.
//!
//! A code is a matrix with a row for each class and a column for each two-class problem. An entry of +1 puts the rows
//! of the class on the positive side of the column, −1 on the negative side, and 0 leaves them out. With R the matrix,
//!
//! ```text
//! Δ(y, z) = Σ_j (1 − R(y, j) R(z, j)) / 2        the generalised Hamming distance of two classes
//! ρ       = min over y ≠ z of Δ(y, z)            the row separation
//! ```
//! An entry of zero in either row adds ½. [`build`] makes codes, and [`CodeChoice`] names them in settings.
//!
//! References: Dietterich & Bakiri, Solving multiclass learning problems via error-correcting output codes, JAIR 2
//! (1995); Allwein, Schapire & Singer, Reducing multiclass to binary, JMLR 1 (2000).

mod build;
mod choice;
mod galois;

pub use choice::{CodeChoice, NamedCode};

use crate::error::{Code, Error, Result};
use crate::parallel;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// More columns than this are refused.
pub(crate) const MOST_COLUMNS: usize = 1 << 20;

/// A matrix over {−1, 0, 1}. The two regular codes are stored as their number of classes alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputCode {
    /// A column for each class: +1 for the class, −1 for all others.
    OneVsRest {
        /// Number of classes.
        classes: usize,
    },
    /// A column for each pair of classes: +1 for the first, −1 for the second, 0 for all others. The pairs of the
    /// first class come first.
    OneVsOne {
        /// Number of classes.
        classes: usize,
    },
    /// Any matrix.
    Matrix(CodeMatrix),
}

/// The entries of a code, class by class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CodeMatrix {
    columns: usize,
    entries: Vec<i8>,
}

/// The sign of an entry as a character.
pub(crate) fn sign_of(entry: i8) -> char {
    match entry {
        1 => '+',
        -1 => '-',
        _ => '0',
    }
}

fn entry_of(sign: char) -> Option<i8> {
    match sign {
        '+' => Some(1),
        '-' => Some(-1),
        '0' => Some(0),
        _ => None,
    }
}

impl From<CodeMatrix> for Vec<String> {
    fn from(matrix: CodeMatrix) -> Vec<String> {
        (0..matrix.classes()).map(|class| matrix.row(class).iter().map(|&entry| sign_of(entry)).collect()).collect()
    }
}

impl TryFrom<Vec<String>> for CodeMatrix {
    type Error = &'static str;

    fn try_from(rows: Vec<String>) -> std::result::Result<CodeMatrix, &'static str> {
        let columns = rows.first().map_or(0, String::len);
        let entries: Option<Vec<i8>> = rows.iter().flat_map(|row| row.chars()).map(entry_of).collect();
        let entries = entries.ok_or("an entry of the code is none of + - 0")?;
        if columns == 0 || rows.iter().any(|row| row.len() != columns) {
            return Err("the rows of the code have different lengths");
        }
        Ok(CodeMatrix { columns, entries })
    }
}

impl CodeMatrix {
    /// A matrix of rows of equal length, each entry −1, 0 or 1.
    pub fn new(rows: &[Vec<i8>]) -> Result<CodeMatrix> {
        let columns = rows.first().map_or(0, Vec::len);
        let bad = |message: &str| Err(Error::new(Code::BadSetting, message).help("give each class one entry a column"));
        if columns == 0 || rows.iter().any(|row| row.len() != columns) {
            return bad("the rows of a code have the same number of entries, at least one");
        }
        let entries = rows.concat();
        if entries.iter().any(|entry| !(-1..=1).contains(entry)) {
            return bad("the entries of a code are -1, 0 and 1");
        }
        Ok(CodeMatrix { columns, entries })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.entries.len() / self.columns.max(1)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The row of a class.
    pub fn row(&self, class: usize) -> &[i8] {
        &self.entries[class * self.columns..(class + 1) * self.columns]
    }

    /// The rows of some classes.
    pub(crate) fn select(&self, classes: &[usize]) -> CodeMatrix {
        let entries = classes.iter().flat_map(|&class| self.row(class)).copied().collect();
        CodeMatrix { columns: self.columns, entries }
    }

    /// The columns that have classes on both sides among those that have rows, with the rows of all classes. An error
    /// where two classes that have rows are then alike. `name` gives the name of a class.
    pub(crate) fn two_sided(&self, has_rows: &[bool], name: impl Fn(usize) -> String) -> Result<CodeMatrix> {
        let with_rows = || (0..self.classes()).filter(|&class| has_rows[class]);
        let has = |column: usize, sign: i8| with_rows().any(|class| self.row(class)[column] == sign);
        let kept: Vec<usize> = (0..self.columns).filter(|&column| has(column, 1) && has(column, -1)).collect();
        let of_class = |class: usize| kept.iter().map(move |&column| self.row(class)[column]);
        let mut seen: HashMap<Vec<i8>, usize> = HashMap::new();
        for class in with_rows() {
            if let Some(earlier) = seen.insert(of_class(class).collect(), class) {
                let (a, b) = (name(earlier), name(class));
                let message = format!("no column of the code that has rows on both sides tells `{a}` from `{b}`");
                return Err(Error::new(Code::BadSetting, message)
                    .help("give rows of the other classes, or another code; for cross-validation, fewer folds"));
            }
        }
        let entries = (0..self.classes()).flat_map(of_class).collect();
        Ok(CodeMatrix { columns: kept.len(), entries })
    }

    /// Refuses equal rows, and columns that ask nothing. `name` gives the name of a class.
    pub(crate) fn check(&self, name: impl Fn(usize) -> String) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let mut seen: HashMap<&[i8], usize> = HashMap::new();
        for class in 0..self.classes() {
            if let Some(earlier) = seen.insert(self.row(class), class) {
                return bad(
                    format!("classes `{}` and `{}` have the same row in the code", name(earlier), name(class)),
                    "give them rows that differ: nothing else tells them apart",
                );
            }
        }
        for column in 0..self.columns {
            let has = |sign: i8| (0..self.classes()).any(|class| self.row(class)[column] == sign);
            let (what, number) = (has(1), column + 1);
            match (what, has(-1)) {
                (true, true) => {}
                (false, false) => {
                    return bad(
                        format!("column {number} of the code is zero for every class, so it has nothing to learn"),
                        "leave the column out",
                    );
                }
                (positive, _) => {
                    let sign = if positive { "+" } else { "-" };
                    return bad(
                        format!("column {number} of the code has only {sign} and tells no classes apart"),
                        "give each column at least one + and one -",
                    );
                }
            }
        }
        Ok(())
    }

    /// The rows as sets of positive and of negative columns.
    fn bits(&self) -> Bits {
        let words = self.columns.div_ceil(64);
        let mut bits = Bits { words, sets: vec![[0; 2]; words * self.classes()] };
        for class in 0..self.classes() {
            for (column, &entry) in self.row(class).iter().enumerate().filter(|(_, entry)| **entry != 0) {
                bits.sets[class * words + column / 64][usize::from(entry < 0)] |= 1 << (column % 64);
            }
        }
        bits
    }
}

/// Rows as sets of columns, so that distances take a few operations for 64 columns.
struct Bits {
    words: usize,
    /// Positive and negative columns.
    sets: Vec<[u64; 2]>,
}

impl Bits {
    /// Σ_j R(a, j) R(b, j)
    fn product(&self, a: usize, b: usize) -> i64 {
        let of = |class: usize| &self.sets[class * self.words..(class + 1) * self.words];
        let terms = of(a).iter().zip(of(b)).map(|(&[p, n], &[q, m])| {
            i64::from(((p & q) | (n & m)).count_ones()) - i64::from(((p & m) | (n & q)).count_ones())
        });
        terms.sum()
    }
}

impl OutputCode {
    /// Number of classes.
    pub fn classes(&self) -> usize {
        match self {
            OutputCode::OneVsRest { classes } | OutputCode::OneVsOne { classes } => *classes,
            OutputCode::Matrix(matrix) => matrix.classes(),
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        match self {
            OutputCode::OneVsRest { classes } => *classes,
            OutputCode::OneVsOne { classes } => classes * classes.saturating_sub(1) / 2,
            OutputCode::Matrix(matrix) => matrix.columns,
        }
    }

    /// The side of a class in a column.
    pub fn entry(&self, class: usize, column: usize) -> i8 {
        match self {
            OutputCode::OneVsRest { .. } => {
                if class == column {
                    1
                } else {
                    -1
                }
            }
            OutputCode::OneVsOne { classes } => {
                let (first, second) = pair(*classes, column);
                i8::from(class == first) - i8::from(class == second)
            }
            OutputCode::Matrix(matrix) => matrix.row(class)[column],
        }
    }

    /// Visits the classes that a column does not leave out, in order, with their sides.
    pub fn each_in_column(&self, column: usize, mut visit: impl FnMut(usize, i8)) {
        match self {
            OutputCode::OneVsRest { classes } => {
                (0..*classes).for_each(|class| visit(class, if class == column { 1 } else { -1 }));
            }
            OutputCode::OneVsOne { classes } => {
                let (first, second) = pair(*classes, column);
                visit(first, 1);
                visit(second, -1);
            }
            OutputCode::Matrix(matrix) => {
                for class in 0..matrix.classes() {
                    match matrix.row(class)[column] {
                        0 => {}
                        side => visit(class, side),
                    }
                }
            }
        }
    }

    /// Whether a column leaves classes out.
    pub fn leaves_out(&self, column: usize) -> bool {
        match self {
            OutputCode::OneVsRest { .. } => false,
            OutputCode::OneVsOne { classes } => *classes > 2,
            OutputCode::Matrix(matrix) => (0..matrix.classes()).any(|class| matrix.row(class)[column] == 0),
        }
    }

    /// Δ, the generalised Hamming distance of two classes.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        let product: i64 = match self {
            OutputCode::Matrix(matrix) => {
                matrix.row(a).iter().zip(matrix.row(b)).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum()
            }
            OutputCode::OneVsRest { classes } if a == b => *classes as i64,
            OutputCode::OneVsRest { classes } => *classes as i64 - 4,
            OutputCode::OneVsOne { classes } if a == b => *classes as i64 - 1,
            OutputCode::OneVsOne { .. } => -1,
        };
        0.5 * (self.columns() as f64 - product as f64)
    }

    /// ρ, the smallest distance of two classes.
    pub fn separation(&self) -> f64 {
        match self {
            OutputCode::OneVsRest { .. } | OutputCode::OneVsOne { .. } => self.distance(0, 1),
            OutputCode::Matrix(matrix) => {
                let (bits, classes) = (matrix.bits(), matrix.classes());
                let largest = |a: usize| (a + 1..classes).map(|b| bits.product(a, b)).max();
                let products = parallel::map(classes, largest);
                let product = products.into_iter().flatten().max().unwrap_or(matrix.columns as i64);
                0.5 * (matrix.columns as f64 - product as f64)
            }
        }
    }

    /// The correlation of two columns, Σ_y R(y, a) R(y, b) / √(n_a n_b) with n the numbers of entries that are not zero:
    /// 1 if they ask the same, −1 if they ask the opposite, and 0 if no class is in both.
    pub fn correlation(&self, a: usize, b: usize) -> f64 {
        let mut sides: HashMap<usize, i8> = HashMap::new();
        self.each_in_column(a, |class, side| {
            sides.insert(class, side);
        });
        let (mut count, mut product) = (0.0, 0.0);
        self.each_in_column(b, |class, side| {
            count += 1.0;
            product += sides.get(&class).map_or(0.0, |other| f64::from(side * other));
        });
        if product == 0.0 { 0.0 } else { product / (sides.len() as f64 * count).sqrt() }
    }

    /// The columns that ask the same as an earlier one, or the opposite: the later and the earlier column. They learn
    /// nothing new.
    pub fn repeated_columns(&self) -> Vec<(usize, usize)> {
        let OutputCode::Matrix(matrix) = self else {
            // One of two classes against the other, twice.
            return if *self == (OutputCode::OneVsRest { classes: 2 }) { vec![(1, 0)] } else { Vec::new() };
        };
        let mut seen: HashMap<Vec<i8>, usize> = HashMap::new();
        let mut repeated = Vec::new();
        for column in 0..matrix.columns {
            let entries = (0..matrix.classes()).map(|class| matrix.row(class)[column]);
            let first = entries.clone().find(|&entry| entry != 0).unwrap_or(1);
            match seen.entry(entries.map(|entry| entry * first).collect()) {
                std::collections::hash_map::Entry::Occupied(earlier) => repeated.push((column, *earlier.get())),
                std::collections::hash_map::Entry::Vacant(free) => drop(free.insert(column)),
            }
        }
        repeated
    }

    /// Pairs of classes with opposite rows. Every column that is wrong about one of them speaks for the other.
    pub fn opposite_rows(&self) -> Vec<(usize, usize)> {
        let OutputCode::Matrix(matrix) = self else {
            return if self.classes() == 2 { vec![(0, 1)] } else { Vec::new() };
        };
        let rows: HashMap<&[i8], usize> = (0..matrix.classes()).map(|class| (matrix.row(class), class)).collect();
        let opposite = |class: usize| {
            let negated: Vec<i8> = matrix.row(class).iter().map(|entry| -entry).collect();
            rows.get(&negated[..]).copied().filter(|other| *other > class).map(|other| (class, other))
        };
        (0..matrix.classes()).filter_map(opposite).collect()
    }
}

/// The first column of one-vs-one whose first class is this one.
fn first_column(classes: usize, first: usize) -> usize {
    first * classes - first * (first + 1) / 2
}

/// The column of one-vs-one that tells two classes apart, the smaller one first.
pub(crate) fn column_of_pair(classes: usize, first: usize, second: usize) -> usize {
    first_column(classes, first) + second - first - 1
}

/// The two classes of a column of one-vs-one.
pub(crate) fn pair(classes: usize, column: usize) -> (usize, usize) {
    let start = |first: usize| first_column(classes, first);
    // The square root gives the first class, up to rounding.
    let half = classes as f64 - 0.5;
    let root = (half * half - 2.0 * column as f64).max(0.0).sqrt();
    let mut first = ((half - root).max(0.0) as usize).min(classes.saturating_sub(2));
    while first > 0 && start(first) > column {
        first -= 1;
    }
    while first + 2 < classes && start(first + 1) <= column {
        first += 1;
    }
    (first, first + 1 + column - start(first))
}

#[cfg(test)]
mod tests;
