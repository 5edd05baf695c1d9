//! The character between the columns of a text table, and whether its first line holds names.

use crate::kept::RawRecord;
use crate::{Format, ReadOptions};

/// What may stand between columns, besides the character that the format is named after.
const OTHERS: [u8; 4] = [b';', b'\t', b'|', b','];

/// Lines that are compared.
const LINES: usize = 20;

/// The delimiter of a table, from its first bytes. It is the usual one of the format if the first line has it. Other
/// characters are tried if it does not, or if the lines have different numbers of fields.
pub(crate) fn delimiter_of(format: Format, head: &[u8]) -> u8 {
    let usual = if format == Format::Tsv { b'\t' } else { b',' };
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let lines: Vec<&[u8]> = whole.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let lines = &lines[..lines.len().min(LINES)];
    let fields = |delimiter: u8| -> Vec<usize> {
        lines.iter().map(|line| RawRecord::split(line, delimiter).fields.len()).collect()
    };
    let parts = |counts: &[usize]| counts.first().is_some_and(|&first| first > 1);
    let even = |counts: &[usize]| parts(counts) && counts.iter().all(|count| *count == counts[0]);
    let own = fields(usual);
    if even(&own) {
        return usual;
    }
    let found = OTHERS.into_iter().filter(|&other| other != usual).find(|&other| even(&fields(other)));
    // Without lines of equal length, the error shows the first line that differs.
    let uneven = || OTHERS.into_iter().find(|&other| !parts(&own) && parts(&fields(other)));
    found.or_else(uneven).unwrap_or(usual)
}

/// What to tell about a delimiter that the name of the format does not tell.
pub(crate) fn note(delimiter: u8) -> Option<String> {
    (!matches!(delimiter, b',' | b'\t')).then(|| format!("columns separated by `{}`", char::from(delimiter)))
}

/// What the first line of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// Names of columns.
    Names,
    /// Consecutive numbers, which some programs write as names.
    NumberedNames,
    /// A row of values.
    Values,
    /// Few consecutive numbers: values or names.
    Either,
    /// A column is asked for by a number, and the first line has that number among other words.
    AskedByNumber,
}

/// With fewer columns than this, consecutive numbers may well be values.
const FEW: usize = 4;

impl FirstLine {
    /// Tells names from values: at least half of a row of values are numbers, but not consecutive numbers.
    pub(crate) fn of(names: &[String], options: &ReadOptions) -> FirstLine {
        let is_number = |name: &&String| fast_float2::parse::<f64, _>(name.as_bytes()).is_ok();
        let numbers: Vec<&String> = names.iter().filter(is_number).collect();
        let known = options.features.as_ref().and_then(|features| features.names.as_ref());
        if numbers.is_empty() || known.is_some_and(|known| numbers.iter().all(|name| known.contains(name))) {
            return FirstLine::Names;
        }
        let whole: Vec<u64> = numbers.iter().filter_map(|name| name.parse().ok()).collect();
        let running = whole.len() == numbers.len()
            && whole.first().is_some_and(|&first| first <= 1)
            && whole.windows(2).all(|pair| pair[1] == pair[0] + 1);
        // Tables with an unnamed row index have names in any case.
        let all = numbers.len() == names.len();
        match running {
            true if all && names.len() < FEW => FirstLine::Either,
            true if numbers.len() > 1 => FirstLine::NumberedNames,
            _ if numbers.len() * 2 >= names.len() => FirstLine::Values,
            _ if whole.iter().any(|number| FirstLine::asks_for(*number, names.len(), options)) => {
                FirstLine::AskedByNumber
            }
            _ => FirstLine::Names,
        }
    }

    /// Whether a column is asked for by a name that may be the number of a column.
    fn asks_for(number: u64, columns: usize, options: &ReadOptions) -> bool {
        let asked = &options.columns;
        let named = [&asked.target, &asked.group, &asked.weight, &asked.id].into_iter().flatten().chain(&asked.ignore);
        number <= columns as u64 && named.into_iter().any(|name| name.parse() == Ok(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, ModelFeatures};

    fn line(list: &str, options: &ReadOptions) -> FirstLine {
        FirstLine::of(&list.split(',').map(str::to_string).collect::<Vec<_>>(), options)
    }

    #[test]
    fn a_header_of_values_is_told_from_names() {
        let plain = ReadOptions::default();
        for data in ["5.1,3.5,1.4,setosa", "1,0,0,1", "3,7", "-1,0.5", "x,2019", "1"] {
            assert!(matches!(line(data, &plain), FirstLine::Values | FirstLine::Either), "{data}");
        }
        for either in ["1,2", "0,1", "1,2,3"] {
            assert_eq!(line(either, &plain), FirstLine::Either, "{either}");
        }
        for header in ["target,1,2,3", "0,1,2,3,4", ",0,1,2"] {
            assert_eq!(line(header, &plain), FirstLine::NumberedNames, "{header}");
        }
        for header in ["a,b", "a,b,2019", "a,b,1"] {
            assert_eq!(line(header, &plain), FirstLine::Names, "{header}");
        }
    }

    #[test]
    fn a_column_asked_for_by_its_number_is_no_name() {
        let asking = |target: &str| ReadOptions {
            columns: Columns { target: Some(target.to_string()), ..Columns::default() },
            ..ReadOptions::default()
        };
        assert_eq!(line("1,male,adult", &asking("1")), FirstLine::AskedByNumber);
        assert_eq!(line("country,city,2019", &asking("2019")), FirstLine::Names);
        assert_eq!(line("sex,age,class", &asking("class")), FirstLine::Names);
        assert_eq!(line("target,1,2,3", &asking("target")), FirstLine::NumberedNames);
    }

    #[test]
    fn numbers_that_a_model_knows_are_names() {
        let names = ["0", "1"].map(str::to_string).to_vec();
        let features = ModelFeatures { count: 2, names: Some(names), index_base: None };
        let options = ReadOptions { features: Some(features), ..ReadOptions::default() };
        assert_eq!(line("0,1", &options), FirstLine::Names);
        assert_eq!(line("label,0,1", &options), FirstLine::Names);
    }

    #[test]
    fn the_delimiter_is_the_one_that_all_lines_have() {
        for (format, text, expected) in [
            (Format::Csv, "a,b\n1,2\n", b','),
            (Format::Csv, "a;b\n1;2\n", b';'),
            (Format::Csv, "\"a, or b\";\"c\"\n1;2\n", b';'),
            (Format::Csv, "a;b\n1,5;2,5\n3;4\n", b';'),
            (Format::Csv, "1,5;2\n3;4\n", b';'),
            (Format::Csv, "a\tb\n1\t2\n", b'\t'),
            (Format::Csv, "a|b\n1|2\n", b'|'),
            (Format::Csv, "a;b\n1;2;3\n", b';'),
            (Format::Csv, "a,b;c\n1,2;3\n", b','),
            (Format::Csv, "a\n1\n", b','),
            (Format::Csv, "", b','),
            (Format::Csv, "a,b\n1;2\n", b','),
            (Format::Tsv, "a\tb\n1\t2\n", b'\t'),
            (Format::Tsv, "a,b\n1,2\n", b','),
            // The last line may be cut off.
            (Format::Csv, "a;b\n1;2\n3", b';'),
        ] {
            assert_eq!(char::from(delimiter_of(format, text.as_bytes())), char::from(expected), "{text:?}");
        }
    }
}
