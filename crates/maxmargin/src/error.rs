//! One error type for everything a user can meet: a stable code, the place, the offending token, what was
//! expected and what to do. The library fills it in; front ends render it.
//!
//! Texts name settings by references such as `⟦solver⟧`, which every front end shows in its own words: see
//! [`crate::wording::Dialect`].

use crate::wording::{Dialect, Neutral, render};
use std::borrow::Cow;
use std::fmt;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $exit:literal, $title:literal;)*) => {
        /// The stable code of an error; `maxmargin explain CODE` prints a page about each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code there is, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The number behind `MM`.
            pub fn number(self) -> u16 { match self { $(Code::$name => $number,)* } }

            /// The exit code a program should end with: 2 for bad input or usage, 1 for the rest.
            pub fn exit_code(self) -> u8 { match self { $(Code::$name => $exit,)* } }

            /// The error in a few words.
            pub fn title(self) -> &'static str { match self { $(Code::$name => $title,)* } }
        }
    };
}

codes! {
    /// The named file does not exist.
    FileNotFound = 101, 2, "file not found";
    /// The file exists but cannot be read.
    FileUnreadable = 102, 2, "file cannot be read";
    /// Writing failed: the disk is full, or the device refused.
    WriteFailed = 103, 1, "output could not be written";
    /// Neither the content nor the name tells the format.
    UnknownFormat = 104, 2, "format not recognised";
    /// A compressed file is cut short or damaged.
    DamagedArchive = 105, 2, "compressed data are damaged";
    /// A mapped file shrank or changed while it was read.
    FileShrank = 106, 1, "file changed while it was read";
    /// The user stopped the run.
    Interrupted = 107, 1, "interrupted";
    /// The place for the output does not exist or is not writable.
    OutputUnwritable = 108, 2, "output place is not writable";
    /// The system has no memory left for the program.
    OutOfMemory = 109, 1, "not enough memory";
    /// No rows.
    NoRows = 201, 2, "no rows";
    /// A target that is not a number, or not a label.
    BadTarget = 202, 2, "target not understood";
    /// A feature value that is not a number.
    BadValue = 203, 2, "feature value is not a number";
    /// NaN, infinity, or a number too large for the stored type.
    NotFinite = 204, 2, "number is not finite";
    /// A feature index that is not a whole number in range.
    BadIndex = 205, 2, "feature index is not valid";
    /// Indices that do not increase within a row.
    IndexOrder = 206, 2, "feature indices do not increase";
    /// A token that is not `index:value`.
    BadToken = 207, 2, "token is not index:value";
    /// Some rows have a query id and some have none.
    MixedGroups = 208, 2, "query id missing on some rows";
    /// A `qid:` or `cost:` that cannot be read.
    BadAnnotation = 209, 2, "annotation not understood";
    /// Bytes that are no text.
    NotText = 210, 2, "file is not text";
    /// A side file that does not fit its data file.
    SideFileMismatch = 211, 2, "side file does not fit";
    /// An empty cell in a table.
    MissingValue = 212, 2, "missing value";
    /// A named column that the table lacks.
    NoSuchColumn = 213, 2, "column not found";
    /// A table cell that is not a number.
    BadCell = 214, 2, "cell is not a number";
    /// A table row with the wrong number of fields, or broken quotes.
    BadTable = 215, 2, "table is malformed";
    /// A column type that cannot be a feature.
    BadColumnType = 216, 2, "column type not supported";
    /// A cache file whose content does not match its checksums.
    DamagedCache = 217, 2, "cache file is damaged";
    /// A cache file of a newer version.
    CacheVersion = 218, 2, "cache file is of another version";
    /// A weight that is negative or not finite.
    BadWeight = 219, 2, "weight is not valid";
    /// Several labels on a row where the task takes one.
    SeveralLabels = 220, 2, "several labels on one row";
    /// A line that is longer than any row of real data.
    LongLine = 221, 2, "line is too long";
    /// A pair that names an item nobody knows.
    UnknownItem = 231, 2, "item not found";
    /// A pair of an item with itself.
    PairWithItself = 232, 2, "item compared with itself";
    /// Two items of one id.
    DuplicateId = 233, 2, "id used twice";
    /// Pairs without the items that they name.
    NoItems = 234, 2, "no items for the pairs";
    /// An outcome of a comparison that is none of those there are.
    BadOutcome = 235, 2, "outcome is not valid";
    /// Games that are not in the order of time.
    OutOfOrder = 236, 2, "games are not in order of time";
    /// A line that is no feature template, or one for a column that the data lack.
    BadTemplate = 241, 2, "template is not valid";
    /// Brackets of a tree that do not fit together, or a target that is no part of one.
    BadTree = 242, 2, "not a bracketed tree";
    /// An event of a click log that makes no sense.
    BadClickLog = 251, 2, "click log not usable";
    /// A propensity that is no probability above zero, or a click without one.
    BadPropensity = 252, 2, "propensity is not valid";
    /// Only one class.
    SingleClass = 301, 2, "only one class";
    /// More classes than the task takes.
    TooManyClasses = 302, 2, "more than two classes";
    /// Ranking without groups.
    NoGroups = 303, 2, "no query ids";
    /// Not one pair with different targets inside a group.
    NoPairs = 304, 2, "nothing to rank";
    /// No targets where they are needed.
    NoTargets = 305, 2, "no targets";
    /// Rows with features the model does not know.
    TooManyFeatures = 306, 2, "more features than the model has";
    /// Feature names that differ from the model's.
    FeatureNames = 307, 2, "feature names differ from the model's";
    /// A metric that does not fit the task.
    MetricMismatch = 308, 2, "metric does not fit";
    /// Other data than the model was trained on.
    OtherData = 309, 2, "not the training data";
    /// The recomputed certificate disagrees with the stored one.
    CertificateMismatch = 310, 1, "certificate does not hold";
    /// Too few rows or groups for the split asked for.
    TooFewToSplit = 311, 2, "too few rows to split";
    /// A label of a data file that the model was not trained on.
    UnknownLabel = 312, 2, "label unknown to the model";
    /// A hard margin where no weights reach every margin.
    NotSeparable = 320, 2, "not separable";
    /// A hard margin that numbers in double precision cannot decide on.
    Undecided = 321, 2, "separability not decided";
    /// A share ν at which no margin is above zero.
    NuTooSmall = 322, 2, "nu too small for a margin";
    /// Comparisons from which no useful threshold is learned.
    NoThreshold = 323, 2, "no threshold for ties";
    /// An oracle of the user that breaks a rule of oracles.
    BadOracle = 330, 2, "oracle breaks a rule";
    /// A combination of task and solver that does not exist.
    Unsupported = 401, 2, "combination not supported";
    /// A setting outside its range.
    BadSetting = 402, 2, "setting out of range";
    /// A metric name nobody knows.
    UnknownMetric = 403, 2, "unknown metric";
    /// A settings file that cannot be used.
    BadConfig = 404, 2, "settings file not usable";
    /// The command line is not understood.
    Usage = 405, 2, "command line not understood";
    /// An error code nobody knows.
    UnknownCode = 406, 2, "unknown error code";
    /// The numbers overflowed during training.
    Overflow = 407, 2, "numbers overflowed";
    /// A memory budget that training does not fit into.
    MemoryBudget = 408, 2, "memory budget too small";
    /// Not a model file.
    NotAModel = 501, 2, "not a model file";
    /// A model file whose checksum does not match.
    DamagedModel = 502, 2, "model file is damaged";
    /// A model file written by a newer version.
    ModelVersion = 503, 2, "model file is of another version";
    /// A defect of this program.
    Internal = 901, 1, "internal error";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MM{:04}", self.number())
    }
}

/// A line of the input with the offending part marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, or the readable part of it around the token.
    pub text: String,
    /// Where the token starts in `text`, in characters.
    pub start: usize,
    /// How many characters it has.
    pub length: usize,
    /// What was expected there.
    pub expected: String,
}

impl Excerpt {
    /// Cuts a readable window out of a long line: `token` is the byte range of the offending part.
    pub fn of_line(line: &[u8], token: std::ops::Range<usize>, expected: impl Into<String>) -> Excerpt {
        const BEFORE: usize = 40;
        const AFTER: usize = 40;
        const TOKEN: usize = 60;
        let start = token.start.min(line.len());
        let end = token.end.clamp(start, line.len()).min(start + TOKEN);
        let from = start.saturating_sub(BEFORE);
        let to = (end + AFTER).min(line.len());
        let printable = |bytes: &[u8]| -> String {
            String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
        };
        let mut text = String::new();
        if from > 0 {
            text.push('…');
        }
        text.push_str(&printable(&line[from..start]));
        let mark = text.chars().count();
        let shown = printable(&line[start..end]);
        let length = shown.chars().count().max(1);
        text.push_str(&shown);
        text.push_str(&printable(&line[end..to]));
        if to < line.len() {
            text.push('…');
        }
        Excerpt { text, start: mark, length, expected: expected.into() }
    }
}

/// Where in a file the error stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column in bytes, from 1.
    pub column: Option<u64>,
    /// The line itself.
    pub excerpt: Option<Excerpt>,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<String>) -> Place {
        Place { file: file.into(), ..Place::default() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// What a caller may want to know of an error beyond its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark {
    /// The file is no table of pairs.
    NoTableOfPairs,
    /// The program that reads the output has ended, and needs nothing more.
    ReaderEnded,
}

struct Inner {
    code: Code,
    message: String,
    place: Option<Place>,
    help: Option<String>,
    mark: Option<Mark>,
}

/// What went wrong, where, and what to do about it.
pub struct Error(Box<Inner>);

/// As [`fmt::Display`], with the remedy: what `expect` and `fn main() -> Result<…>` print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// An error with a message that says what is wrong with the user's own words and values. Settings are named by
    /// references.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { code, message: message.into(), place: None, help: None, mark: None }))
    }

    /// Adds the place.
    pub fn at(mut self, place: Place) -> Error {
        self.0.place = Some(place);
        self
    }

    /// Adds the file, unless a place is known already.
    pub fn in_file(mut self, file: impl Into<String>) -> Error {
        if self.0.place.is_none() {
            self.0.place = Some(Place::file(file));
        }
        self
    }

    /// Adds what to do.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Marks the error for callers that look for it.
    pub fn marked(mut self, mark: Mark) -> Error {
        self.0.mark = Some(mark);
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What it was marked with.
    pub fn mark(&self) -> Option<Mark> {
        self.0.mark
    }

    /// What is wrong, in one sentence without the code.
    pub fn message(&self) -> Cow<'_, str> {
        self.message_in(&Neutral)
    }

    /// The same in the words of a front end.
    pub fn message_in(&self, dialect: &dyn Dialect) -> Cow<'_, str> {
        render(&self.0.message, dialect)
    }

    /// The same with its references, to become part of another message.
    pub fn raw_message(&self) -> &str {
        &self.0.message
    }

    /// Where it is.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// What to do.
    pub fn remedy(&self) -> Option<Cow<'_, str>> {
        self.remedy_in(&Neutral)
    }

    /// The same in the words of a front end.
    pub fn remedy_in(&self, dialect: &dyn Dialect) -> Option<Cow<'_, str>> {
        self.raw_remedy().map(|help| render(help, dialect))
    }

    /// The same with its references, to become part of another remedy.
    pub fn raw_remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Code, message, place and remedy on one line, in the words of a front end.
    pub fn in_words(&self, dialect: &dyn Dialect) -> String {
        let place = self.place().map_or(String::new(), |place| format!(" ({place})"));
        let help = self.remedy_in(dialect).map_or(String::new(), |help| format!("; {help}"));
        format!("{}: {}{place}{help}", self.0.code, self.message_in(dialect))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&Neutral))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_in_order() {
        let numbers: Vec<u16> = Code::ALL.iter().map(|code| code.number()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_long_line_is_cut_around_its_token() {
        let line = format!("1 {} 7:abc {}", "1:2 ".repeat(100), "9:9 ".repeat(100));
        let at = line.find("abc").expect("present");
        let excerpt = Excerpt::of_line(line.as_bytes(), at..at + 3, "a number");
        assert!(excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
        let marked: String = excerpt.text.chars().skip(excerpt.start).take(excerpt.length).collect();
        assert_eq!(marked, "abc");
    }
}
