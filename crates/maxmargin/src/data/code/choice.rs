//! [`CodeChoice`]: a code as settings name it, before the classes are known.

use super::{CodeMatrix, MOST_COLUMNS, OutputCode, build, entry_of, sign_of};
use crate::data::Labels;
use crate::error::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which code to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CodeChoice {
    /// One column for each class.
    OneVsRest,
    /// One column for each pair of classes.
    OneVsOne,
    /// Random signs, 10·log₂ k columns if none are given.
    RandomDense(Option<u32>),
    /// Random signs, and zeros for half of the entries; 15·log₂ k columns if none are given.
    RandomSparse(Option<u32>),
    /// Every column that asks something new.
    Exhaustive,
    /// Words of a BCH code.
    Bch(Option<u32>),
    /// A matrix with named rows.
    Matrix(NamedCode),
}

/// A matrix whose rows have the names of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCode {
    names: Vec<String>,
    matrix: CodeMatrix,
}

impl CodeChoice {
    /// The names that need no matrix.
    pub const NAMES: [&str; 6] = ["one-vs-rest", "one-vs-one", "random-dense", "random-sparse", "exhaustive", "bch"];

    /// Whether a text is one of the names, perhaps with a number of columns. Otherwise front ends may take it for the
    /// name of a file with a matrix.
    pub fn is_name(text: &str) -> bool {
        CodeChoice::NAMES.contains(&text.split(':').next().unwrap_or(text))
    }

    /// Its name; a matrix of the user's is a matrix.
    pub fn name(&self) -> String {
        match self {
            CodeChoice::Matrix(_) => "matrix".to_string(),
            choice => choice.to_string(),
        }
    }

    /// The code for some classes. Random ones depend on the seed.
    pub fn build(&self, labels: &Labels, seed: u64) -> Result<OutputCode> {
        let classes = labels.len();
        let code = match self {
            CodeChoice::OneVsRest => OutputCode::OneVsRest { classes },
            CodeChoice::OneVsOne => OutputCode::OneVsOne { classes },
            CodeChoice::RandomDense(columns) => OutputCode::Matrix(build::random(classes, *columns, false, seed)?),
            CodeChoice::RandomSparse(columns) => OutputCode::Matrix(build::random(classes, *columns, true, seed)?),
            CodeChoice::Exhaustive => OutputCode::Matrix(build::exhaustive(classes)?),
            CodeChoice::Bch(columns) => OutputCode::Matrix(build::bch(classes, *columns, seed)?),
            CodeChoice::Matrix(named) => OutputCode::Matrix(named.for_classes(labels)?),
        };
        if code.columns() > MOST_COLUMNS {
            let message = format!("{classes} classes one against one are {} columns", code.columns());
            return Err(Error::new(Code::TooManyClasses, message)
                .help(format!("at most {MOST_COLUMNS} columns are possible; use ⟦multiclass=one-vs-rest⟧")));
        }
        Ok(code)
    }
}

impl NamedCode {
    /// A matrix with a name for each row. Codes that cannot tell the classes apart are refused.
    pub fn new(names: Vec<String>, matrix: CodeMatrix) -> Result<NamedCode> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if names.len() != matrix.classes() {
            return bad(
                format!("{} names for the {} rows of a code", names.len(), matrix.classes()),
                "name each class",
            );
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return bad(format!("class `{}` has two rows in the code", twice[0]), "give each class one row");
        }
        if names.len() < 2 {
            return bad("a code has rows for at least two classes".to_string(), "give a row for each class");
        }
        matrix.check(|class| names[class].clone())?;
        Ok(NamedCode { names, matrix })
    }

    /// The names of the classes, one for each row.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows of the classes of some data, in their order. Rows of other classes are left out, and then columns with
    /// one side.
    fn for_classes(&self, labels: &Labels) -> Result<CodeMatrix> {
        let own = Labels::new(self.names.clone());
        let places = own.places();
        let row = |label: &String| {
            places.of(label).ok_or_else(|| {
                Error::new(Code::UnknownLabel, format!("class `{label}` has no row in the code"))
                    .help("give every class of the data a row, with its name in the first column")
            })
        };
        let rows = labels.names().iter().map(row).collect::<Result<Vec<usize>>>()?;
        self.matrix.select(&rows).two_sided(&vec![true; rows.len()], |class| labels.name(class).to_string())
    }

    /// Reads a matrix: a line for each class, its name and then its entries −1, 0 or 1 (also - and +), separated by
    /// commas, semicolons or blanks. Names with such characters stand in double quotes. Lines that begin with # are
    /// comments.
    pub fn parse(text: &str) -> Result<NamedCode> {
        let (mut names, mut rows) = (Vec::new(), Vec::<Vec<i8>>::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |message: String| {
                Error::new(Code::BadSetting, format!("line {} of the code: {message}", number + 1))
                    .help("a line is the name of a class and its entries, such as `cat,+1,-1,0`")
            };
            let (name, rest) = split_name(line).ok_or_else(|| bad("a quote is not closed".to_string()))?;
            let mut row = Vec::new();
            for token in rest.split([',', ';', ' ', '\t']).filter(|token| !token.is_empty()) {
                row.extend(entries(token).ok_or_else(|| bad(format!("`{token}` is none of -1, 0 and 1")))?);
            }
            if let Some(first) = rows.first().filter(|first| first.len() != row.len()) {
                return Err(bad(format!("{} entries, and the first row has {}", row.len(), first.len())));
            }
            if row.is_empty() {
                return Err(bad(format!("class `{name}` has no entries")));
            }
            names.push(name);
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(Error::new(Code::BadSetting, "the code is empty").help("give a line for each class"));
        }
        NamedCode::new(names, CodeMatrix::new(&rows)?)
    }
}

/// The first field and the rest of the line.
fn split_name(line: &str) -> Option<(String, &str)> {
    let Some(quoted) = line.strip_prefix('"') else {
        let end = line.find([',', ';', ' ', '\t']).unwrap_or(line.len());
        return Some((line[..end].to_string(), &line[end..]));
    };
    // Two quotes within quotes are one.
    let (mut name, mut rest) = (String::new(), quoted);
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

/// The entries of a field: a number, or any number of signs without blanks.
fn entries(token: &str) -> Option<Vec<i8>> {
    match token {
        "1" | "+1" => Some(vec![1]),
        "-1" | "−1" | "−" => Some(vec![-1]),
        signs => signs.chars().map(entry_of).collect(),
    }
}

impl fmt::Display for CodeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, name: &str, columns: &Option<u32>| match columns {
            Some(columns) => write!(f, "{name}:{columns}"),
            None => f.write_str(name),
        };
        match self {
            CodeChoice::OneVsRest => f.write_str("one-vs-rest"),
            CodeChoice::OneVsOne => f.write_str("one-vs-one"),
            CodeChoice::RandomDense(columns) => with(f, "random-dense", columns),
            CodeChoice::RandomSparse(columns) => with(f, "random-sparse", columns),
            CodeChoice::Exhaustive => f.write_str("exhaustive"),
            CodeChoice::Bch(columns) => with(f, "bch", columns),
            CodeChoice::Matrix(named) => {
                for (class, name) in named.names.iter().enumerate() {
                    let signs: String = named.matrix.row(class).iter().map(|&entry| sign_of(entry)).collect();
                    writeln!(f, "\"{}\",{signs}", name.replace('"', "\"\""))?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for CodeChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<CodeChoice> {
        if text.contains('\n') {
            return NamedCode::parse(text).map(CodeChoice::Matrix);
        }
        let (name, columns) = match text.split_once(':') {
            Some((name, columns)) => {
                let number = columns.parse::<u32>().ok().filter(|columns| *columns > 0).ok_or_else(|| {
                    Error::new(Code::BadSetting, format!("`{columns}` is not a number of columns"))
                        .help("write ⟦code=random-dense:40⟧")
                })?;
                (name, Some(number))
            }
            None => (text, None),
        };
        match (name, columns) {
            ("one-vs-rest", None) => Ok(CodeChoice::OneVsRest),
            ("one-vs-one", None) => Ok(CodeChoice::OneVsOne),
            ("exhaustive", None) => Ok(CodeChoice::Exhaustive),
            ("one-vs-rest" | "one-vs-one" | "exhaustive", Some(_)) => {
                Err(Error::new(Code::BadSetting, format!("the classes determine the columns of the {name} code"))
                    .help(format!("write ⟦code={name}⟧")))
            }
            ("random-dense", columns) => Ok(CodeChoice::RandomDense(columns)),
            ("random-sparse", columns) => Ok(CodeChoice::RandomSparse(columns)),
            ("bch", columns) => Ok(CodeChoice::Bch(columns)),
            _ => Err(Error::new(Code::BadSetting, format!("`{text}` is not a code"))
                .help(format!("use one of {}, or a file with a matrix", CodeChoice::NAMES.join(", ")))),
        }
    }
}

impl TryFrom<String> for CodeChoice {
    type Error = Error;

    fn try_from(text: String) -> Result<CodeChoice> {
        text.parse()
    }
}

impl From<CodeChoice> for String {
    fn from(choice: CodeChoice) -> String {
        choice.to_string()
    }
}
