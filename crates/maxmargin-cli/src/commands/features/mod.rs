//! `maxmargin features games|ratings FILE -o WIDE`: turns games or ratings into pairs with features.

mod calendar;
mod games;
mod ratings;

use crate::args::{FeaturesArguments, FeaturesKind};
use crate::console::Console;
use crate::format;
use crate::loading::{ensure_apart, ensure_for_data};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{Format, output_format};
use std::collections::HashMap;
use std::path::Path;

pub(crate) fn run(arguments: &FeaturesArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    match &arguments.kind {
        FeaturesKind::Games(arguments) => games::run(arguments, console, cancel),
        FeaturesKind::Ratings(arguments) => ratings::run(arguments, console, cancel),
    }
}

/// The format of the output, after a check that the file can be written.
fn output(file: &str, inputs: &[&str], console: &Console) -> Result<Format> {
    let format = output_format(file, None)?;
    if !matches!(format, Format::Csv | Format::Tsv) {
        return Err(Error::new(Code::UnknownFormat, format!("the output must be CSV or TSV, not {format}"))
            .in_file(file)
            .help("end the name in .csv or .tsv, which may be followed by .gz or .zst"));
    }
    if file == "-" {
        ensure_for_data(console)?;
    } else {
        ensure_writable(Path::new(file))?;
        ensure_apart(file, inputs)?;
    }
    Ok(format)
}

/// Finds columns by flag or by common names.
struct Header<'a> {
    names: &'a [String],
    plain: Vec<String>,
}

impl<'a> Header<'a> {
    fn new(names: &'a [String]) -> Header<'a> {
        Header { names, plain: names.iter().map(|name| plain(name)).collect() }
    }

    /// The column named by a flag, or the first of these common names that the table has.
    fn find(&self, flag: &str, asked: Option<&String>, common: &[&str]) -> Result<Option<usize>> {
        let Some(asked) = asked else {
            return Ok(common.iter().find_map(|common| self.plain.iter().position(|name| name == common)));
        };
        match self.names.iter().position(|name| name == asked) {
            Some(column) => Ok(Some(column)),
            None => Err(Error::new(Code::NoSuchColumn, format!("there is no column `{asked}`"))
                .help(format!("{flag} names one of the columns {}", self.list()))),
        }
    }

    /// The same for a column that must exist.
    fn need(&self, flag: &str, asked: Option<&String>, common: &[&str], what: &str) -> Result<usize> {
        self.find(flag, asked, common)?.ok_or_else(|| {
            Error::new(Code::NoSuchColumn, format!("which column holds {what}?"))
                .help(format!("name it with {flag} COLUMN; the columns are {}", self.list()))
        })
    }

    fn list(&self) -> String {
        self.names.iter().take(20).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    }

    fn name(&self, column: usize) -> &'a str {
        &self.names[column]
    }
}

/// The next command for pairs with these outcomes: a threshold is learned from ties, and scores from decided pairs.
fn next(file: &str, flags: &str, decided: u64, ties: u64) -> String {
    let how = match (decided, ties) {
        (0, _) => return String::new(),
        (_, 0) => "--method rank",
        (_, _) => "--loss logistic",
    };
    format!("          next: maxmargin train compare {}{flags} {how} -o model.mm", format::shell_word(file))
}

/// A name in lower case, with only letters, digits and single underscores: `White Player #` is `white_player`.
fn plain(name: &str) -> String {
    let words: Vec<String> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("_")
}

/// Names as codes in the order of their first appearance.
#[derive(Default)]
struct Codes {
    codes: HashMap<Vec<u8>, u32>,
    names: Vec<Vec<u8>>,
}

impl Codes {
    fn code(&mut self, name: &[u8]) -> u32 {
        if let Some(&code) = self.codes.get(name) {
            return code;
        }
        let code = self.names.len() as u32;
        self.codes.insert(name.to_vec(), code);
        self.names.push(name.to_vec());
        code
    }

    fn len(&self) -> usize {
        self.names.len()
    }
}

/// A cell in a form that can be shown.
fn shown(cell: &[u8]) -> String {
    format::shortened(&String::from_utf8_lossy(cell), 60)
}

/// ` in row 7`, if there will be no line number.
fn in_row(row: Option<usize>) -> String {
    row.map(|row| format!(" in row {row}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_their_words() {
        assert_eq!(plain("White Player #"), "white_player");
        assert_eq!(plain("home_team"), "home_team");
        assert_eq!(plain(" Month #"), "month");
    }
}
