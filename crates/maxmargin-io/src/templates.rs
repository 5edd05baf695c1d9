//! Feature templates: which features the rows of text in columns have.
//!
//! ```text
//! line      = template | "#" comment | nothing
//! template  = part { "*" part }
//! part      = source [ "[" offset [ ".." offset ] "]" ]
//! source    = column | "lower" [ "(" column ")" ] | "shape" [ "(" column ")" ] | "short-shape" [ "(" column ")" ]
//!           | ( "prefix" | "suffix" ) "(" letters [ ".." letters ] [ "," column ] ")"
//! column    = "word" | "col" number
//! ```
//! `word` is column 0. An offset counts rows from the present one; without it, it is 0. A range stands for one template for
//! each number in it. The feature of a template in a row is its name with the values of its parts, such as
//! `word[-1]*col1=the*NN`. A part beyond the ends of the sequence has the value `<-1>`, `<-2>`, … or `<+1>`, …; a word
//! with too few letters for a prefix or suffix gives no feature.

use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::suggest::nearest;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// What is taken from a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    /// The text itself.
    Whole,
    /// The text in small letters.
    Lower,
    /// Classes of its characters.
    Shape,
    /// The same, with runs of one class as one character.
    ShortShape,
    /// Its first letters.
    Prefix(u32),
    /// Its last letters.
    Suffix(u32),
}

/// A column, and what is taken from its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) column: usize,
    pub(crate) function: Function,
}

/// A source in a row near the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) source: Source,
    pub(crate) offset: i32,
    /// Where it stands in the file, counted from 1.
    line: u64,
    byte: u64,
}

/// One template without ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) parts: Vec<Part>,
}

/// The templates of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Templates {
    pub(crate) list: Vec<Template>,
    text: String,
    file: String,
}

/// The largest offset, the most letters of a prefix, the most parts, and the most templates.
const FARTHEST: i64 = 99;
const MOST_LETTERS: i64 = 99;
const MOST_PARTS: usize = 8;
const MOST_TEMPLATES: usize = 10_000;
const MOST_COLUMNS: i64 = 9_999;

const FUNCTIONS: [&str; 7] = ["word", "col", "lower", "shape", "short-shape", "prefix", "suffix"];

impl Function {
    /// The value of a cell, if it has one.
    pub(crate) fn of(self, cell: &str) -> Option<String> {
        match self {
            Function::Whole => Some(cell.to_string()),
            Function::Lower => Some(cell.to_lowercase()),
            Function::Shape => Some(cell.chars().map(class_of).collect()),
            Function::ShortShape => {
                let mut shape: Vec<char> = cell.chars().map(class_of).collect();
                shape.dedup();
                Some(shape.into_iter().collect())
            }
            Function::Prefix(letters) => {
                let mut ends = cell.char_indices().map(|(at, _)| at).chain([cell.len()]);
                ends.nth(letters as usize).map(|end| cell[..end].to_string())
            }
            Function::Suffix(letters) => {
                let mut starts = cell.char_indices().map(|(at, _)| at).rev();
                starts.nth(letters as usize - 1).map(|start| cell[start..].to_string())
            }
        }
    }
}

/// `X` for a capital, `x` for another letter, `d` for a digit, and any other character as it is.
fn class_of(character: char) -> char {
    match character {
        character if character.is_uppercase() => 'X',
        character if character.is_alphabetic() => 'x',
        character if character.is_numeric() => 'd',
        other => other,
    }
}

impl Source {
    fn name(self) -> String {
        let column = match self.column {
            0 => "word".to_string(),
            column => format!("col{column}"),
        };
        let argument = if self.column == 0 { String::new() } else { format!("({column})") };
        let beside = if self.column == 0 { String::new() } else { format!(",{column}") };
        match self.function {
            Function::Whole => column,
            Function::Lower => format!("lower{argument}"),
            Function::Shape => format!("shape{argument}"),
            Function::ShortShape => format!("short-shape{argument}"),
            Function::Prefix(letters) => format!("prefix({letters}{beside})"),
            Function::Suffix(letters) => format!("suffix({letters}{beside})"),
        }
    }
}

impl Part {
    fn name(self) -> String {
        match self.offset {
            0 => self.source.name(),
            offset => format!("{}[{offset}]", self.source.name()),
        }
    }
}

impl Templates {
    /// Parses the text of a template file, which errors call `file`.
    pub fn parse(text: &str, file: &str) -> Result<Templates> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut list: Vec<Template> = Vec::new();
        let mut known: HashMap<String, u64> = HashMap::new();
        for (line, content) in (1..).zip(text.lines()) {
            if content.trim().is_empty() || content.trim_start().starts_with('#') {
                continue;
            }
            let mut reader = Reader { text: content, at: 0, line, file };
            for parts in reader.template()? {
                let name = parts.iter().map(|part| part.name()).collect::<Vec<_>>().join("*");
                if let Some(first) = known.insert(name.clone(), line) {
                    let message = format!("`{name}` is in the list twice, first in line {first}");
                    return Err(reader.error(0, message, "leave one of them out"));
                }
                list.push(Template { name, parts });
                if list.len() > MOST_TEMPLATES {
                    let message = format!("more than {MOST_TEMPLATES} templates, ranges counted out");
                    return Err(reader.error(0, message, "use fewer templates or shorter ranges"));
                }
            }
        }
        if list.is_empty() {
            return Err(Error::new(Code::BadTemplate, "there is no template")
                .in_file(file)
                .help("write a template in each line, such as word[-1..1] or suffix(3)"));
        }
        Ok(Templates { list, text: text.to_string(), file: file.to_string() })
    }

    /// The text that they were parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Their names, each a template without ranges.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|template| template.name.as_str())
    }

    /// Refuses templates that name a column the rows do not have. `columns` does not count the tag.
    pub(crate) fn check_columns(&self, columns: usize) -> Result<()> {
        let parts = self.list.iter().flat_map(|template| &template.parts);
        let Some(part) = parts.filter(|part| part.source.column >= columns).min_by_key(|part| (part.line, part.byte))
        else {
            return Ok(());
        };
        let content = self.text.lines().nth(part.line as usize - 1).unwrap_or_default();
        let reader = Reader { text: content, at: 0, line: part.line, file: &self.file };
        let message = format!("`{}` names a column that the rows do not have", part.source.name());
        let own = match columns {
            1 => "one column besides the tag, word".to_string(),
            2 => "two columns besides the tag, word and col1".to_string(),
            columns => format!("{columns} columns besides the tag, word and col1 to col{}", columns - 1),
        };
        Err(reader.error(part.byte as usize - 1, message, &format!("the rows have {own}")))
    }

    /// The sources, each once.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<Source> = Vec::new();
        for part in self.list.iter().flat_map(|template| &template.parts) {
            if !sources.contains(&part.source) {
                sources.push(part.source);
            }
        }
        sources
    }
}

/// Reads one line.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    file: &'a str,
}

/// A part with its ranges.
struct Ranged {
    sources: Vec<Source>,
    offsets: RangeInclusive<i32>,
    byte: u64,
}

impl Reader<'_> {
    fn error(&self, at: usize, message: String, help: &str) -> Error {
        let rest = &self.text[at..];
        let width = rest.find([' ', '\t', '*']).unwrap_or(rest.len());
        let place = Place {
            file: self.file.to_string(),
            line: Some(self.line),
            column: Some(at as u64 + 1),
            excerpt: Some(Excerpt::of_line(self.text.as_bytes(), at..at + width, "this part of the template")),
        };
        Error::new(Code::BadTemplate, message).at(place).help(help.to_string())
    }

    /// The templates of the line.
    fn template(&mut self) -> Result<Vec<Vec<Part>>> {
        let mut whole: Vec<Vec<Part>> = vec![Vec::new()];
        loop {
            let ranged = self.part()?;
            let count = whole.len() * ranged.sources.len() * ranged.offsets.clone().count();
            if count > MOST_TEMPLATES {
                return Err(self.error(0, format!("this line stands for {count} templates"), "use shorter ranges"));
            }
            let parts: Vec<Part> = ranged
                .sources
                .iter()
                .flat_map(|&source| ranged.offsets.clone().map(move |offset| (source, offset)))
                .map(|(source, offset)| Part { source, offset, line: self.line, byte: ranged.byte })
                .collect();
            whole = whole.iter().flat_map(|own| parts.iter().map(|part| [&own[..], &[*part]].concat())).collect();
            self.blanks();
            if self.at == self.text.len() {
                return Ok(whole);
            }
            if whole[0].len() == MOST_PARTS {
                let message = format!("a template has at most {MOST_PARTS} parts");
                return Err(self.error(self.at, message, "use fewer parts"));
            }
            if !self.eat('*') {
                let message = "this does not continue the template".to_string();
                return Err(self.error(self.at, message, "join parts with *, and write each template on its own line"));
            }
        }
    }

    fn part(&mut self) -> Result<Ranged> {
        self.blanks();
        let start = self.at;
        let sources = self.sources()?;
        self.blanks();
        let offsets = if self.eat('[') {
            let offsets = self.range("an offset", -FARTHEST..=FARTHEST, "such as [-1] or [-2..2]")?;
            self.expect(']', "such as word[-1] or word[-2..2]")?;
            offsets
        } else {
            0..=0
        };
        Ok(Ranged { sources, offsets, byte: start as u64 + 1 })
    }

    fn sources(&mut self) -> Result<Vec<Source>> {
        let start = self.at;
        let name: String =
            self.text[start..].chars().take_while(|c| c.is_ascii_alphabetic() || *c == '-' || *c == '_').collect();
        self.at += name.len();
        let function = match name.as_str() {
            "word" => return Ok(vec![Source { column: 0, function: Function::Whole }]),
            "col" => return Ok(vec![Source { column: self.column_number()?, function: Function::Whole }]),
            "lower" => Function::Lower,
            "shape" => Function::Shape,
            "short-shape" => Function::ShortShape,
            "prefix" | "suffix" => {
                let example = format!("such as {name}(3), {name}(1..4) or {name}(3, col1)");
                self.expect('(', &example)?;
                let letters = self.range("a number of letters", 1..=MOST_LETTERS, &example)?;
                self.blanks();
                let column = if self.eat(',') { self.column()? } else { 0 };
                self.expect(')', &example)?;
                let made = if name == "prefix" { Function::Prefix } else { Function::Suffix };
                return Ok(letters.map(|count| Source { column, function: made(count as u32) }).collect());
            }
            "" => {
                let message = "a template starts with a column or a function".to_string();
                return Err(self.error(
                    start,
                    message,
                    "use word, col1, lower, shape, short-shape, prefix(3) or suffix(3)",
                ));
            }
            other => {
                let guess = nearest(other, FUNCTIONS.iter().copied());
                let guess = guess.map_or(String::new(), |guess| format!("did you mean `{guess}`? "));
                let help =
                    format!("{guess}there are word, col1 and so on, lower, shape, short-shape, prefix(3), suffix(3)");
                return Err(self.error(start, format!("`{other}` is no column and no function"), &help));
            }
        };
        self.blanks();
        let column = if self.eat('(') {
            let column = self.column()?;
            self.expect(')', &format!("such as {name} or {name}(col1)"))?;
            column
        } else {
            0
        };
        Ok(vec![Source { column, function }])
    }

    fn column(&mut self) -> Result<usize> {
        self.blanks();
        let start = self.at;
        let rest = &self.text[start..];
        if rest.starts_with("word") {
            self.at += 4;
            return Ok(0);
        }
        if rest.starts_with("col") {
            self.at += 3;
            return self.column_number();
        }
        Err(self.error(start, "a column is needed here".to_string(), "use word, or col1 and so on"))
    }

    fn column_number(&mut self) -> Result<usize> {
        let number = self.number("a column", 0..=MOST_COLUMNS, "such as col1; col0 is the first column, as is word")?;
        Ok(number as usize)
    }

    fn range(&mut self, what: &str, within: RangeInclusive<i64>, example: &str) -> Result<RangeInclusive<i32>> {
        let start = self.at;
        let first = self.number(what, within.clone(), example)?;
        self.blanks();
        let last = match self.text[self.at..].starts_with("..") {
            true => {
                self.at += 2;
                self.number(what, within, example)?
            }
            false => first,
        };
        if last < first {
            let message = format!("the range {first}..{last} is empty");
            return Err(self.error(start, message, "write the smaller number first"));
        }
        Ok(first as i32..=last as i32)
    }

    fn number(&mut self, what: &str, within: RangeInclusive<i64>, example: &str) -> Result<i64> {
        self.blanks();
        let start = self.at;
        let sign = self.text[start..].chars().take_while(|c| "+-".contains(*c)).count();
        let digits = self.text[start + sign..].chars().take_while(char::is_ascii_digit).count();
        self.at += sign + digits;
        let written = &self.text[start..self.at];
        match written.parse::<i64>() {
            Ok(number) if within.contains(&number) => Ok(number),
            Ok(_) => {
                let message = format!("{what} is from {} to {}, and not {written}", within.start(), within.end());
                Err(self.error(start, message, example))
            }
            Err(_) => Err(self.error(start, format!("{what} is a whole number"), example)),
        }
    }

    fn blanks(&mut self) {
        let blanks = self.text[self.at..].chars().take_while(|c| " \t\r".contains(*c)).count();
        self.at += blanks;
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.text[self.at..].starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char, example: &str) -> Result<()> {
        self.blanks();
        if self.eat(wanted) {
            return Ok(());
        }
        Err(self.error(self.at, format!("`{wanted}` is missing here"), example))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let templates = Templates::parse(text, "t").expect("templates");
        templates.list.into_iter().map(|template| template.name).collect()
    }

    #[test]
    fn ranges_stand_for_one_template_each() {
        assert_eq!(names("word[-1..1]"), ["word[-1]", "word", "word[1]"]);
        assert_eq!(names("suffix(1..3)\n"), ["suffix(1)", "suffix(2)", "suffix(3)"]);
        assert_eq!(names("# list\r\n\r\n  col1[-1] * col0[+1]  \r\n"), ["col1[-1]*word[1]"]);
        assert_eq!(
            names("word[0..1]*prefix( 2 , col2 )[-1..0]"),
            ["word*prefix(2,col2)[-1]", "word*prefix(2,col2)", "word[1]*prefix(2,col2)[-1]", "word[1]*prefix(2,col2)"]
        );
        assert_eq!(names("shape(word)\nlower(col1)[2]\nshort-shape"), ["shape", "lower(col1)[2]", "short-shape"]);
    }

    #[test]
    fn names_read_back_as_themselves() {
        for name in names("word[-2..2]\nsuffix(1..3, col1)[-1]*shape*col3\nlower(col2)[1]\nprefix(4)") {
            assert_eq!(names(&name), [name.as_str()]);
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_its_place() {
        for (text, line, column, words) in [
            ("word\nwrd[1]", 2, 1, "did you mean `word`"),
            ("word[x]", 1, 6, "an offset is a whole number"),
            ("word[100]", 1, 6, "from -99 to 99"),
            ("word[2..1]", 1, 6, "empty"),
            ("word[1", 1, 7, "`]` is missing"),
            ("word word", 1, 6, "does not continue"),
            ("word*", 1, 6, "starts with a column"),
            ("prefix", 1, 7, "`(` is missing"),
            ("prefix(0)", 1, 8, "from 1 to 99"),
            ("suffix(2, foo)", 1, 11, "a column is needed"),
            ("colx", 1, 1, "`colx`"),
            ("col", 1, 4, "a column is a whole number"),
            ("word[-1..1]\nword[0]", 2, 1, "twice, first in line 1"),
            ("word[-99..99]*word[-99..99]", 1, 1, "39601 templates"),
            ("word*word*word*word*word*word*word*word*word", 1, 40, "at most 8 parts"),
            ("ö", 1, 1, "starts with a column"),
        ] {
            let error = Templates::parse(text, "t.txt").expect_err(text);
            let place = error.place().expect("a place");
            assert_eq!(
                (error.code(), place.line, place.column),
                (Code::BadTemplate, Some(line), Some(column)),
                "{text}: {error}"
            );
            let all = format!("{} {}", error.message(), error.remedy().unwrap_or_default());
            assert!(all.contains(words), "{text}: {all}");
        }
        assert_eq!(Templates::parse("# none\n", "t").expect_err("nothing").code(), Code::BadTemplate);
        let templates = Templates::parse("word\n  suffix(3, col2)*col5", "t.txt").expect("templates");
        assert!(templates.check_columns(6).is_ok());
        let error = templates.check_columns(2).expect_err("two columns");
        let place = error.place().expect("a place");
        assert_eq!((place.line, place.column, error.code()), (Some(2), Some(3), Code::BadTemplate));
        let marked = Templates::parse("\u{feff} col7", "t.txt").expect("templates");
        let error = marked.check_columns(2).expect_err("two columns");
        assert_eq!(error.place().expect("a place").column, Some(2));
    }

    #[test]
    fn functions_take_letters_and_not_bytes() {
        let of = |function: Function, cell: &str| function.of(cell);
        assert_eq!(of(Function::Prefix(2), "öffne").as_deref(), Some("öf"));
        assert_eq!(of(Function::Prefix(5), "öffne").as_deref(), Some("öffne"));
        assert_eq!(of(Function::Prefix(6), "öffne"), None);
        assert_eq!(of(Function::Suffix(3), "naïve").as_deref(), Some("ïve"));
        assert_eq!(of(Function::Suffix(5), "naïve").as_deref(), Some("naïve"));
        assert_eq!(of(Function::Suffix(6), "naïve"), None);
        assert_eq!(of(Function::Shape, "U.S.-Öl 12").as_deref(), Some("X.X.-Xx dd"));
        assert_eq!(of(Function::ShortShape, "McDonald1987").as_deref(), Some("XxXxd"));
        assert_eq!(of(Function::Lower, "ÖL").as_deref(), Some("öl"));
    }
}
