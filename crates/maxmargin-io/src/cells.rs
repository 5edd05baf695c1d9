//! [`Cell`]: one value of a table, read from text or from a typed column, and the errors that it can have.

use crate::columns::Role;
use fast_float2::FastFloat;
use maxmargin::data::{Csr, Dense, Index, Matrix, Outcome, Value};
use maxmargin::error::{Code, Error, Result};

/// A stored feature value, f32 or f64.
pub(crate) trait Cell: Value + FastFloat {
    /// Marks a missing value until the mean is known.
    const NOT_A_NUMBER: Self;
    /// +0, which sparse storage leaves out.
    const ZERO: Self;
    /// Whether this is neither NaN nor infinite.
    fn finite(self) -> bool;
    /// Whether this is NaN.
    fn not_a_number(self) -> bool;
    /// Whether this is exactly +0. −0 is kept.
    fn is_plain_zero(self) -> bool;
    /// Rounded once.
    #[cfg_attr(not(feature = "tables"), allow(dead_code))]
    fn from_signed(value: i64) -> Self;
    /// Rounded once.
    fn from_unsigned(value: u64) -> Self;
    /// A dense matrix of such values.
    fn dense(values: Vec<Self>, rows: usize, cols: usize) -> Result<Matrix>;
    /// A sparse matrix of such values with two-byte indices.
    fn narrow_sparse(starts: Vec<u64>, indices: Vec<u16>, values: Vec<Self>, cols: usize) -> Result<Matrix>;
    /// A sparse matrix of such values with four-byte indices.
    fn wide_sparse(starts: Vec<u64>, indices: Vec<u32>, values: Vec<Self>, cols: usize) -> Result<Matrix>;
}

macro_rules! cell {
    ($type:ty, $dense:ident, $narrow:ident, $wide:ident) => {
        impl Cell for $type {
            const NOT_A_NUMBER: $type = <$type>::NAN;
            const ZERO: $type = 0.0;
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn not_a_number(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn is_plain_zero(self) -> bool {
                self.to_bits() == 0
            }
            #[inline(always)]
            fn from_signed(value: i64) -> $type {
                value as $type
            }
            #[inline(always)]
            fn from_unsigned(value: u64) -> $type {
                value as $type
            }
            fn dense(values: Vec<$type>, rows: usize, cols: usize) -> Result<Matrix> {
                Ok(Matrix::$dense(Dense::new(values, rows, cols)?))
            }
            fn narrow_sparse(starts: Vec<u64>, indices: Vec<u16>, values: Vec<$type>, cols: usize) -> Result<Matrix> {
                Ok(Matrix::$narrow(checked_csr(starts, indices, values, cols)?))
            }
            fn wide_sparse(starts: Vec<u64>, indices: Vec<u32>, values: Vec<$type>, cols: usize) -> Result<Matrix> {
                Ok(Matrix::$wide(checked_csr(starts, indices, values, cols)?))
            }
        }
    };
}

cell!(f32, DenseF32, Csr16F32, Csr32F32);
cell!(f64, DenseF64, Csr16F64, Csr32F64);

fn checked_csr<I: Index, V: Value>(
    starts: Vec<u64>,
    indices: Vec<I>,
    values: Vec<V>,
    cols: usize,
) -> Result<Csr<I, V>> {
    Csr::new(starts, indices, values, cols)
}

/// The error of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The cell is empty.
    Missing,
    /// Infinite, or too large for the stored type.
    NotFinite,
    /// Not a number.
    NotANumber,
    /// A negative weight.
    Negative,
    /// Nothing between two separators of labels.
    EmptyLabel,
    /// Neither 0 nor 1, in a column that says whether rows have a label.
    NoIndicator,
}

/// Words for an empty cell, in addition to NaN in any spelling.
const MISSING_WORDS: [&[u8]; 5] = [b"NA", b"N/A", b"null", b"NULL", b"?"];

/// Whether a cell is empty or holds a word for missing.
pub(crate) fn is_missing(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.is_empty() || MISSING_WORDS.contains(&text) || text.eq_ignore_ascii_case(b"nan")
}

/// Reads a number, `true` or `false`, correctly rounded to the stored type.
#[inline]
pub(crate) fn parse<V: Cell>(text: &[u8]) -> std::result::Result<V, Problem> {
    match fast_float2::parse::<V, _>(text) {
        Ok(value) if value.finite() => Ok(value),
        _ => parse_unusual(text),
    }
}

#[cold]
fn parse_unusual<V: Cell>(text: &[u8]) -> std::result::Result<V, Problem> {
    let text = text.trim_ascii();
    if is_missing(text) {
        return Err(Problem::Missing);
    }
    match fast_float2::parse::<V, _>(text) {
        Ok(value) => check(value),
        Err(_) if text.eq_ignore_ascii_case(b"true") => Ok(V::from_unsigned(1)),
        Err(_) if text.eq_ignore_ascii_case(b"false") => Ok(V::ZERO),
        Err(_) => Err(Problem::NotANumber),
    }
}

/// Refuses NaN (missing) and infinity.
#[inline(always)]
pub(crate) fn check<V: Cell>(value: V) -> std::result::Result<V, Problem> {
    if value.finite() {
        Ok(value)
    } else if value.not_a_number() {
        Err(Problem::Missing)
    } else {
        Err(Problem::NotFinite)
    }
}

/// Reads which side of a pair is better: a word, or the sign of right minus left.
pub(crate) fn outcome(text: &[u8]) -> std::result::Result<Outcome, Problem> {
    let text = text.trim_ascii();
    if let Some(outcome) = Outcome::ALL.into_iter().find(|outcome| text.eq_ignore_ascii_case(outcome.name().as_bytes()))
    {
        return Ok(outcome);
    }
    if is_missing(text) {
        return Err(Problem::Missing);
    }
    match fast_float2::parse::<f64, _>(text) {
        Ok(-1.0) => Ok(Outcome::Left),
        Ok(0.0) => Ok(Outcome::Tie),
        Ok(1.0) => Ok(Outcome::Right),
        _ => Err(Problem::NotANumber),
    }
}

/// The error for a cell, without its position, and what was expected there. `found` is the cell as the user wrote it.
/// `row` is named in the message if there will be no line number.
pub(crate) fn cell_error(
    role: Role,
    problem: Problem,
    column: &str,
    found: &str,
    row: Option<usize>,
) -> (Error, String) {
    let at = row.map(|row| format!(" in row {row}")).unwrap_or_default();
    let shown = match (found.trim().is_empty(), problem) {
        (true, Problem::Missing) => ", this cell is empty".to_string(),
        (true, _) => String::new(),
        (false, _) => format!(", `{}`", clipped(found)),
    };
    let leave_out = format!("leave the column out with ⟦ignore={}⟧", quoted(column));
    let (code, message, help, expected) = match (role, problem) {
        (Role::Group, _) => (
            Code::MixedGroups,
            format!("the group is missing{at}: column `{column}`{shown}"),
            format!("give every row a group, or {leave_out}"),
            "any word or number that names the group",
        ),
        (Role::Weight, _) => (
            Code::BadWeight,
            format!("the weight is not valid{at}: column `{column}`{shown}"),
            format!("give a finite weight of zero or more, or {leave_out}"),
            "a finite number of zero or more",
        ),
        (Role::Outcome, _) => (
            Code::BadOutcome,
            match problem {
                Problem::Missing => format!("the outcome is missing{at}: column `{column}`{shown}"),
                _ => format!("the outcome is not valid{at}: column `{column}`{shown}"),
            },
            "write left, right or tie, or −1, 0 or 1, where 1 means that the right item is better; drop pairs without \
             an outcome"
                .to_string(),
            "left, right or tie, or -1, 0 or 1",
        ),
        (_, Problem::EmptyLabel) => (
            Code::BadTarget,
            format!("a label is empty{at}: column `{column}`{shown}"),
            "write labels with one separator between them, and leave the cell empty if there is none".to_string(),
            "labels with one separator between them",
        ),
        (Role::Label, _) => (
            Code::BadTarget,
            format!("this cell is neither 0 nor 1{at}: column `{column}`{shown}"),
            "write 1 for rows with the label and 0 for the others".to_string(),
            "0 or 1",
        ),
        (Role::Target, Problem::Missing) => (
            Code::MissingValue,
            format!("the target is missing{at}: column `{column}`{shown}"),
            format!("drop rows without a target; to score data without targets, {leave_out}"),
            "a number or a word",
        ),
        (_, Problem::Missing) => (
            Code::MissingValue,
            format!("a value is missing{at}: column `{column}`{shown}"),
            format!("fill such cells with ⟦missing=zero⟧ or ⟦missing=mean⟧, or {leave_out}"),
            "a finite decimal number such as 0.25 or 1e-3",
        ),
        (_, Problem::NotFinite) => (
            Code::NotFinite,
            format!("this number is not finite{at}: column `{column}`{shown}"),
            "correct the value or drop the row; numbers beyond 3.4e38 need ⟦precision=f64⟧".to_string(),
            "a finite decimal number such as 0.25 or 1e-3",
        ),
        (_, Problem::NotANumber | Problem::Negative | Problem::NoIndicator) => (
            Code::BadCell,
            format!("this cell is not a number{at}: column `{column}`{shown}"),
            not_a_number(found, leave_out),
            "a finite decimal number such as 0.25 or 1e-3",
        ),
    };
    (Error::new(code, message).help(help), expected.to_string())
}

/// What to do about a cell that is not a number.
fn not_a_number(found: &str, leave_out: String) -> String {
    let is_number = |text: &str| fast_float2::parse::<f64, _>(text.as_bytes()).is_ok();
    let several = found.split([' ', ';', '|', '\t']).filter(|part| is_number(part)).count() > 1;
    if found.matches(',').count() == 1 && is_number(&found.trim().replace(',', ".")) {
        "write decimals with a point".to_string()
    } else if several {
        // The whole line is in one cell, so leaving the column out is no remedy.
        "columns are separated by a comma, a semicolon, a tab or a bar: use one of these in all lines".to_string()
    } else {
        format!("correct the cell, or {leave_out}")
    }
}

/// A name in the form that can be typed in a shell.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && name.chars().all(plain) { name.to_string() } else { format!("'{name}'") }
}

pub(crate) fn clipped(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Appends the shortest text that parses as the same value.
pub(crate) fn print(value: f64, double: bool, out: &mut Vec<u8>) {
    use std::io::Write;
    let size = value.abs();
    let plain = value == 0.0 || (1e-5..1e16).contains(&size);
    // Values stored as f32 are printed as f32, because the shortest digits of the widened value would be longer.
    // Writing to a vector cannot fail.
    let _ = match (double, plain) {
        (true, true) => write!(out, "{value}"),
        (true, false) => write!(out, "{value:e}"),
        (false, true) => write!(out, "{}", value as f32),
        (false, false) => write!(out, "{:e}", value as f32),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_booleans_and_missing_cells_are_told_apart() {
        assert_eq!(parse::<f64>(b" 1.5 "), Ok(1.5));
        assert_eq!(parse::<f64>(b"+2"), Ok(2.0));
        assert_eq!(parse::<f64>(b"True"), Ok(1.0));
        assert_eq!(parse::<f64>(b"false"), Ok(0.0));
        for missing in ["", " ", "NA", "NaN", "nan", "null", "?"] {
            assert_eq!(parse::<f64>(missing.as_bytes()), Err(Problem::Missing), "{missing}");
        }
        for infinite in ["inf", "-Infinity", "1e999"] {
            assert_eq!(parse::<f64>(infinite.as_bytes()), Err(Problem::NotFinite), "{infinite}");
        }
        for wrong in ["abc", "1.5x", "1 2", "0x10", "1,5", "none"] {
            assert_eq!(parse::<f64>(wrong.as_bytes()), Err(Problem::NotANumber), "{wrong}");
        }
        assert_eq!(parse::<f32>(b"1e39"), Err(Problem::NotFinite));
    }

    #[test]
    fn outcomes_are_words_or_signs() {
        for (texts, expected) in [
            (&["left", " LEFT ", "Left", "-1", "-1.0", "-1e0"][..], Outcome::Left),
            (&["right", "Right\t", "1", "+1", "1.0", "1.000"], Outcome::Right),
            (&["tie", "TIE", "0", "0.0", "-0", "+0.0"], Outcome::Tie),
        ] {
            for text in texts {
                assert_eq!(outcome(text.as_bytes()), Ok(expected), "{text}");
            }
        }
        for wrong in ["draw", "2", "-2", "0.5", "1.0000001", "l", "leftright", "true", "inf", "1 0", "−1"] {
            assert_eq!(outcome(wrong.as_bytes()), Err(Problem::NotANumber), "{wrong}");
        }
        for missing in ["", " ", "NA", "nan"] {
            assert_eq!(outcome(missing.as_bytes()), Err(Problem::Missing), "{missing}");
        }
    }

    #[test]
    fn text_is_rounded_to_f32_once() {
        // As f64 it is halfway between two f32, as text it is above: rounding twice would go down.
        assert_eq!(parse::<f32>(b"1.000000059604644775390625000000001"), Ok(1.000_000_1_f32));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_gives_the_same_bits(bits in any::<u64>()) {
            let (double, single) = (f64::from_bits(bits), f32::from_bits(bits as u32));
            let mut text = Vec::new();
            if double.is_finite() {
                print(double, true, &mut text);
                prop_assert_eq!(parse::<f64>(&text).map(f64::to_bits), Ok(double.to_bits()));
            }
            if single.is_finite() {
                text.clear();
                print(f64::from(single), false, &mut text);
                prop_assert_eq!(parse::<f32>(&text).map(f32::to_bits), Ok(single.to_bits()));
            }
        }
    }
}
