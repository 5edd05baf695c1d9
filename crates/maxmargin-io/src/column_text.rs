//! Text in columns: a row in each line, its columns separated by blanks or tabs, and an empty line between sequences.
//!
//! ```text
//! Confidence NN B-NP
//! in IN B-PP
//! the DT B-NP
//! ```
//! The last column of data to learn from is the tag. Data to be scored may have it or not: the model knows how many other
//! columns there are. [`Templates`] make the features, each a text such as `word[-1]=the`, which is 1 where it occurs.
//! Every line counts, `#` starts no comment, since texts contain it.
//!
//! Cells become numbers first, one for each distinct text, and so do what functions such as `suffix(3)` take from them.
//! The feature of a template is then a few numbers, and its text is made once for each distinct feature. Templates are
//! independent of each other and share the work between threads. Features are numbered template by template, in the order
//! of their first rows. Memory: four bytes for each row and template, beside the rows themselves.

use crate::cells::Cell;
use crate::options::{Facts, Format, Loaded, Precision, ReadOptions};
use crate::templates::{Part, Source, Template, Templates};
use crate::trees::escaped;
use maxmargin::data::{Dataset, Groups, Matrix, Names, Targets};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::parallel;
use maxmargin::wording::{count, counted};
use std::collections::HashMap;
use std::sync::Arc;

/// No number.
const NONE: u32 = u32::MAX;

/// Reads the text.
pub(crate) fn read(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Loaded> {
    let templates = options.templates.as_ref().ok_or_else(|| {
        Error::new(Code::BadSetting, "text in columns needs templates, which make its features")
            .in_file(file)
            .help("name a file of templates with ⟦templates=FILE⟧; it may hold the one line word[-1..1]")
    })?;
    if !options.columns.is_empty() {
        return Err(Error::new(Code::BadSetting, "columns of text have no names: the last one is the tag")
            .in_file(file)
            .help("leave ⟦target⟧, ⟦group⟧, ⟦weight⟧, ⟦id⟧ and ⟦ignore⟧ out"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| not_text(file, bytes, error.valid_up_to()))?;
    let cells = Cells::split(file, text, options)?;
    let names = (1..cells.starts.len()).map(|at| at.to_string()).collect();
    let mut loaded = cells.loaded(file, templates, names, options)?;
    loaded.facts.notes.splice(0..0, cells.notes());
    Ok(loaded)
}

fn line_of(bytes: &[u8], at: usize) -> u64 {
    1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64
}

pub(crate) fn not_text(file: &str, bytes: &[u8], at: usize) -> Error {
    let place = Place { file: file.to_string(), line: Some(line_of(bytes, at)), ..Place::default() };
    Error::new(Code::NotText, "these bytes are not UTF-8").at(place).help("convert the file to UTF-8")
}

/// The distinct texts of a column, and the text of each row.
struct Column<'a> {
    texts: Vec<&'a str>,
    of_row: Vec<u32>,
}

impl<'a> Column<'a> {
    fn new(cells: impl Iterator<Item = &'a str>) -> Column<'a> {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut texts = Vec::new();
        let of_row = cells.map(|cell| {
            *known.entry(cell).or_insert_with(|| {
                texts.push(cell);
                texts.len() as u32 - 1
            })
        });
        let of_row = of_row.collect();
        Column { texts, of_row }
    }
}

/// The text in rows, columns and sequences.
pub(crate) struct Cells<'a> {
    /// The columns without the tag.
    all: Vec<Column<'a>>,
    columns: usize,
    tags: Option<Column<'a>>,
    /// The first row of each sequence, followed by the number of rows.
    starts: Vec<u64>,
    /// Empty lines before the first sequence, and after each one.
    blanks: Vec<u32>,
}

impl<'a> Cells<'a> {
    /// Words of sentences with the one column `word`, and their targets. `parts` is the first word of each sentence
    /// followed by the number of words, and the lines that are left out before the first one and after each.
    pub(crate) fn of_words(
        words: impl Iterator<Item = &'a str>,
        targets: Option<impl Iterator<Item = &'a str>>,
        (starts, blanks): (Vec<u64>, Vec<u32>),
    ) -> Cells<'a> {
        Cells { all: vec![Column::new(words)], columns: 1, tags: targets.map(Column::new), starts, blanks }
    }

    /// The data of these cells, with the features of templates.
    pub(crate) fn loaded(
        &self,
        file: &str,
        templates: &Templates,
        sequences: Names,
        options: &ReadOptions,
    ) -> Result<Loaded> {
        templates.check_columns(self.columns)?;
        options.cancel.check()?;
        let features = Features::new(self, templates);
        let made = parallel::try_map(templates.list.len(), |at| {
            options.cancel.check()?;
            Ok(features.of(&templates.list[at]))
        })?;
        let chosen = match options.features.as_ref().and_then(|features| features.names.as_ref()) {
            Some(names) => Chosen::known(made, names),
            None => Chosen::all(made, options.least_count.max(1)),
        };
        let cols = options.features.as_ref().map_or(chosen.names.len(), |features| features.count);
        options.cancel.check()?;
        let matrix = match options.precision {
            Precision::F32 => chosen.matrix::<f32>(self.rows(), cols)?,
            Precision::F64 => chosen.matrix::<f64>(self.rows(), cols)?,
        };
        let groups = Groups::new(self.starts.clone(), sequences)?;
        let mut data = Dataset::new(matrix, self.targets())?.with_groups(groups)?;
        match options.features.as_ref().and_then(|features| features.names.as_ref()) {
            Some(names) => data = data.with_feature_names(names.iter().collect())?,
            None => data = data.with_feature_names(chosen.names.iter().collect())?,
        }
        let facts = Facts {
            file: file.to_string(),
            format: Some(Format::Columns),
            notes: chosen.note().into_iter().collect(),
            text_columns: Some(self.columns),
            blank_lines: Some(self.blanks.clone().into()),
            // The words of sentences are in the first column.
            words: self.all.first().filter(|_| options.sentences).map(|column| {
                let words: Vec<_> = column.of_row.iter().map(|&at| escaped(column.texts[at as usize])).collect();
                Arc::new(words.iter().map(AsRef::<str>::as_ref).collect::<Names>())
            }),
            ..Facts::default()
        };
        Ok(Loaded { data, facts })
    }

    fn split(file: &str, text: &'a str, options: &ReadOptions) -> Result<Cells<'a>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut rows, mut starts, mut blanks) = (Vec::<&'a str>::new(), vec![0u64], vec![0u32]);
        let mut width: Option<(usize, u64)> = None;
        for (number, line) in (1u64..).zip(text.split_terminator('\n')) {
            let line = line.trim_ascii();
            if line.is_empty() {
                if rows.len() as u64 > starts[starts.len() - 1] {
                    starts.push(rows.len() as u64);
                    blanks.push(0);
                }
                *blanks.last_mut().unwrap_or(&mut 0) += 1;
                continue;
            }
            let own = line.split_ascii_whitespace().count();
            let (wanted, first) = *width.get_or_insert((own, number));
            if own != wanted {
                let place = Place {
                    file: file.to_string(),
                    line: Some(number),
                    column: None,
                    excerpt: Some(Excerpt::of_line(
                        line.as_bytes(),
                        0..line.len(),
                        format!("expected {}", counted(wanted as u64, "column", "columns")),
                    )),
                };
                let message =
                    format!("{} here, and {wanted} in line {first}", counted(own as u64, "column", "columns"));
                return Err(Error::new(Code::BadTable, message)
                    .at(place)
                    .help("give every line the same columns, separated by blanks; an empty line ends a sequence"));
            }
            rows.push(line);
        }
        let Some((width, _)) = width else {
            return Err(Error::new(Code::NoRows, "the text holds no rows").in_file(file).help(
                "write a row in each line, its columns separated by blanks, and an empty line after each sequence",
            ));
        };
        if rows.len() >= NONE as usize {
            return Err(Error::new(Code::BadTable, "too many rows").in_file(file).help("learn from a part of them"));
        }
        if starts.last() != Some(&(rows.len() as u64)) {
            starts.push(rows.len() as u64);
            blanks.push(0);
        }
        let columns = match options.text_columns {
            Some(known) if width == known || width == known + 1 => known,
            Some(known) => {
                let message =
                    format!("{} in a line, and the model knows {known}", counted(width as u64, "column", "columns"));
                return Err(Error::new(Code::BadTable, message)
                    .in_file(file)
                    .help("give the columns of the training data, with the tag as the last one or without it"));
            }
            None => width - 1,
        };
        if columns == 0 {
            return Err(Error::new(Code::BadTable, "one column in a line, which would be the tag")
                .in_file(file)
                .help("give at least one column before the tag, separated by blanks"));
        }
        let column = |at: usize| Column::new(rows.iter().map(|row| row.split_ascii_whitespace().nth(at).unwrap_or("")));
        let mut all = parallel::map(width, column);
        let tags = if width > columns { all.pop() } else { None };
        Ok(Cells { all, columns, tags, starts, blanks })
    }

    fn rows(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }

    /// The tags, by their sorted names.
    fn targets(&self) -> Targets {
        let Some(tags) = &self.tags else { return Targets::Absent };
        let mut order: Vec<u32> = (0..tags.texts.len() as u32).collect();
        order.sort_unstable_by_key(|&tag| tags.texts[tag as usize]);
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(&tag, at)| place[tag as usize] = at);
        let names: Names = order.iter().map(|&tag| tags.texts[tag as usize]).collect();
        let codes: Vec<u32> = tags.of_row.iter().map(|&tag| place[tag as usize]).collect();
        Targets::Labels { names, codes: codes.into() }
    }

    /// Empty lines that end no sequence.
    fn notes(&self) -> Option<String> {
        let more = |&lines: &u32| u64::from(lines.saturating_sub(1));
        let empty = u64::from(self.blanks[0]) + self.blanks[1..].iter().map(more).sum::<u64>();
        let lines = counted(empty, "empty sequence", "empty sequences");
        (empty > 0).then(|| format!("{lines} left out: empty lines that follow no row"))
    }
}

/// What a function takes from each distinct text of a column, as numbers of the distinct results.
struct Taken {
    texts: Vec<String>,
    of_text: Vec<u32>,
}

/// The numbers that features are made of.
struct Features<'a> {
    cells: &'a Cells<'a>,
    taken: HashMap<Source, Taken>,
    /// The first row of the sequence of each row, and the row after its last.
    ends: Vec<(u32, u32)>,
}

/// The features of a template.
struct Made {
    /// The number of the feature of each row.
    of_row: Vec<u32>,
    /// Their texts.
    names: Vec<String>,
    /// In how many rows each occurs.
    counts: Vec<u32>,
}

impl<'a> Features<'a> {
    fn new(cells: &'a Cells<'a>, templates: &Templates) -> Features<'a> {
        let sources = templates.sources();
        let taken = parallel::map(sources.len(), |at| {
            let Source { column, function } = sources[at];
            let own = &cells.all[column].texts;
            let mut known: HashMap<String, u32> = HashMap::new();
            let mut texts = Vec::new();
            let of_text = own.iter().map(|text| match function.of(text) {
                None => NONE,
                Some(value) => *known.entry(value).or_insert_with_key(|value| {
                    texts.push(value.clone());
                    texts.len() as u32 - 1
                }),
            });
            let of_text = of_text.collect();
            (sources[at], Taken { texts, of_text })
        });
        let bounds = cells.starts.windows(2).flat_map(|pair| {
            let own = (pair[0] as u32, pair[1] as u32);
            std::iter::repeat_n(own, (pair[1] - pair[0]) as usize)
        });
        Features { cells, taken: taken.into_iter().collect(), ends: bounds.collect() }
    }

    /// The number of a part in a row. Places beyond the ends of the sequence come after the texts.
    fn number(&self, part: &Part, taken: &Taken, row: usize) -> u32 {
        let (start, end) = self.ends[row];
        let place = row as i64 + i64::from(part.offset);
        let texts = taken.texts.len() as u32;
        if place < i64::from(start) {
            return texts + 2 * (i64::from(start) - place) as u32;
        }
        if place >= i64::from(end) {
            return texts + 2 * (place - i64::from(end)) as u32 + 1;
        }
        taken.of_text[self.cells.all[part.source.column].of_row[place as usize] as usize]
    }

    /// The text of a part with this number.
    fn text(&self, taken: &Taken, number: u32) -> String {
        let beyond = number as usize - taken.texts.len().min(number as usize);
        match taken.texts.get(number as usize) {
            Some(text) => text.clone(),
            None if beyond.is_multiple_of(2) => format!("<-{}>", beyond / 2),
            None => format!("<+{}>", beyond / 2 + 1),
        }
    }

    /// The features of a template in all rows.
    fn of(&self, template: &Template) -> Made {
        let rows = self.cells.rows();
        let parts: Vec<(&Part, &Taken)> = template.parts.iter().map(|part| (part, &self.taken[&part.source])).collect();
        let (first, others) = (parts[0], &parts[1..]);
        let mut numbers: Vec<u32> = (0..rows).map(|row| self.number(first.0, first.1, row)).collect();
        for (part, taken) in others {
            // Two numbers become one, in the order of their first rows.
            let mut known: HashMap<u64, u32> = HashMap::new();
            for (row, number) in numbers.iter_mut().enumerate().filter(|(_, number)| **number != NONE) {
                let other = self.number(part, taken, row);
                let count = known.len() as u32;
                *number = match other {
                    NONE => NONE,
                    other => *known.entry(u64::from(*number) << 32 | u64::from(other)).or_insert(count),
                };
            }
        }
        let largest = numbers.iter().filter(|&&number| number != NONE).max().map_or(0, |&number| number as usize + 1);
        let mut place = vec![NONE; largest];
        // Different cells may make the same text, which is then one feature.
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut counts: Vec<u32> = Vec::new();
        for (row, number) in numbers.iter_mut().enumerate().filter(|(_, number)| **number != NONE) {
            let own = &mut place[*number as usize];
            if *own == NONE {
                let texts: Vec<String> =
                    parts.iter().map(|(part, taken)| self.text(taken, self.number(part, taken, row))).collect();
                let count = known.len() as u32;
                *own = *known.entry(format!("{}={}", template.name, texts.join("*"))).or_insert(count);
                counts.resize(known.len(), 0);
            }
            counts[*own as usize] += 1;
            *number = *own;
        }
        let mut names = vec![String::new(); known.len()];
        known.into_iter().for_each(|(name, at)| names[at as usize] = name);
        Made { of_row: numbers, names, counts }
    }
}

/// The features that are used, and their columns.
struct Chosen {
    made: Vec<Made>,
    /// The column of each feature of each template.
    columns: Vec<Vec<u32>>,
    /// The names of new features.
    names: Vec<String>,
    /// Occurrences of features that are left out, and of all.
    left_out: (u64, u64),
    scored: bool,
}

impl Chosen {
    /// All features that occur in so many rows.
    fn all(mut made: Vec<Made>, least: u32) -> Chosen {
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for made in &mut made {
            let mut own = Vec::with_capacity(made.names.len());
            for (name, &count) in made.names.drain(..).zip(&made.counts) {
                own.push(if count >= least { names.len() as u32 } else { NONE });
                if count >= least {
                    names.push(name);
                }
            }
            columns.push(own);
        }
        let left_out = left_out(&made, &columns);
        Chosen { made, columns, names, left_out, scored: false }
    }

    /// The features that a model knows.
    fn known(made: Vec<Made>, names: &[String]) -> Chosen {
        let known: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let columns = made
            .iter()
            .map(|made| made.names.iter().map(|name| known.get(name.as_str()).copied().unwrap_or(NONE)).collect())
            .collect::<Vec<Vec<u32>>>();
        let left_out = left_out(&made, &columns);
        Chosen { made, columns, names: Vec::new(), left_out, scored: true }
    }

    fn note(&self) -> Option<String> {
        let (left_out, all) = self.left_out;
        let shown = count(left_out);
        (left_out > 0).then(|| match self.scored {
            true => format!("{shown} of {} features in rows are unknown to the model and ignored", count(all)),
            false => format!("{shown} of {} features in rows are rare and left out", count(all)),
        })
    }

    fn matrix<V: Cell>(&self, rows: usize, cols: usize) -> Result<Matrix> {
        let columns_of = |row: usize, out: &mut Vec<u32>| {
            out.clear();
            let of = |(made, columns): (&Made, &Vec<u32>)| match made.of_row[row] {
                NONE => NONE,
                feature => columns[feature as usize],
            };
            out.extend(self.made.iter().zip(&self.columns).map(of).filter(|&column| column != NONE));
            // Those of a model may stand in another order.
            if !out.is_sorted() {
                out.sort_unstable();
            }
        };
        let parts = parallel::map(rows.div_ceil(ROWS_AT_ONCE), |job| {
            let (mut columns, mut lengths, mut own) = (Vec::new(), Vec::new(), Vec::new());
            for row in job * ROWS_AT_ONCE..((job + 1) * ROWS_AT_ONCE).min(rows) {
                columns_of(row, &mut own);
                columns.extend_from_slice(&own);
                lengths.push(own.len() as u64);
            }
            (columns, lengths)
        });
        let mut starts = vec![0u64];
        for length in parts.iter().flat_map(|(_, lengths)| lengths) {
            starts.push(starts[starts.len() - 1] + length);
        }
        let entries = starts[rows] as usize;
        let ones = vec![V::from_unsigned(1); entries];
        if cols <= usize::from(u16::MAX) + 1 {
            let indices = parts.into_iter().flat_map(|(columns, _)| columns).map(|column| column as u16).collect();
            return V::narrow_sparse(starts, indices, ones, cols);
        }
        let mut indices = Vec::with_capacity(entries);
        parts.into_iter().for_each(|(columns, _)| indices.extend(columns));
        V::wide_sparse(starts, indices, ones, cols)
    }
}

/// Rows that one job writes.
const ROWS_AT_ONCE: usize = 4096;

fn left_out(made: &[Made], columns: &[Vec<u32>]) -> (u64, u64) {
    let mut counts = (0, 0);
    for (made, columns) in made.iter().zip(columns) {
        for (&count, &column) in made.counts.iter().zip(columns) {
            counts.0 += if column == NONE { u64::from(count) } else { 0 };
            counts.1 += u64::from(count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFeatures;
    use std::sync::Arc;

    fn options(templates: &str) -> ReadOptions {
        let templates = Templates::parse(templates, "templates").expect("templates");
        ReadOptions { templates: Some(Arc::new(templates)), ..ReadOptions::default() }
    }

    fn loaded(text: &str, templates: &str) -> Loaded {
        read("text", text.as_bytes(), &options(templates)).expect("reads")
    }

    /// The names of the features of each row.
    fn features(data: &Dataset) -> Vec<Vec<String>> {
        let names = data.feature_names().expect("names");
        let of = |row: usize| {
            let mut own = Vec::new();
            data.matrix().each_in_row(row, |column, value| {
                assert_eq!(value, 1.0);
                own.push(names.get(column).into_owned());
            });
            own
        };
        (0..data.rows()).map(of).collect()
    }

    const TEXT: &str = "The DT B\ndog NN I\n\nruns VB O\n";

    #[test]
    fn templates_make_the_features_of_each_row() {
        let data = loaded(TEXT, "word[-1]*col1\nsuffix(3)\nlower[1]").data;
        let own = features(&data);
        assert_eq!(own[0], ["word[-1]*col1=<-1>*DT", "suffix(3)=The", "lower[1]=dog"]);
        assert_eq!(own[1], ["word[-1]*col1=The*NN", "suffix(3)=dog", "lower[1]=<+1>"]);
        assert_eq!(own[2], ["word[-1]*col1=<-1>*VB", "suffix(3)=uns", "lower[1]=<+1>"]);
        assert_eq!(data.groups().expect("sequences").starts(), &[0, 2, 3]);
        assert_eq!((0..3).map(|row| data.targets().label_of(row)).collect::<Vec<_>>(), ["B", "I", "O"]);
    }

    /// The features by their definition, row by row.
    fn plainly(rows: &[Vec<Vec<&str>>], templates: &Templates) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for sequence in rows {
            for row in 0..sequence.len() as i64 {
                let text = |part: &Part| match row + i64::from(part.offset) {
                    place if place < 0 => Some(format!("<{place}>")),
                    place if place >= sequence.len() as i64 => {
                        Some(format!("<+{}>", place - sequence.len() as i64 + 1))
                    }
                    place => part.source.function.of(sequence[place as usize][part.source.column]),
                };
                let of = |template: &Template| {
                    let texts: Option<Vec<String>> = template.parts.iter().map(text).collect();
                    texts.map(|texts| format!("{}={}", template.name, texts.join("*")))
                };
                all.push(templates.list.iter().filter_map(of).collect());
            }
        }
        all
    }

    #[test]
    fn features_are_those_of_the_definition() {
        let text = "word[-2..2]\nword[-1]*word\ncol1[-1..1]*suffix(2..3)*shape\nprefix(4, col1)[1]\nshort-shape[-3]";
        let words = ["a", "The", "dog", "Dogs", "1987", "ö-b", "runs", "<-1>"];
        let mut state = 7u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for case in 0..60 {
            let sequences: Vec<Vec<Vec<&str>>> = (0..1 + next(4))
                .map(|_| (0..1 + next(6)).map(|_| vec![words[next(8) as usize], words[next(8) as usize]]).collect())
                .collect();
            let line = |row: &Vec<&str>| format!("{} {} T{}\n", row[0], row[1], case % 2);
            let written: Vec<String> = sequences.iter().map(|rows| rows.iter().map(line).collect()).collect();
            let Loaded { data, .. } = loaded(&written.join("\n"), text);
            let sorted = |mut rows: Vec<Vec<String>>| {
                rows.iter_mut().for_each(|row| row.sort());
                rows
            };
            let wanted = plainly(&sequences, &Templates::parse(text, "t").expect("templates"));
            assert_eq!(sorted(features(&data)), sorted(wanted.clone()), "{case}");
            // The same text for a model that knows every other feature.
            let names: Vec<String> = data.feature_names().expect("names").iter().step_by(2).map(Into::into).collect();
            let known = ModelFeatures { count: names.len(), names: Some(names.clone()), index_base: None };
            let scored = ReadOptions { features: Some(known), text_columns: Some(2), ..options(text) };
            let again = read("text", written.join("\n").as_bytes(), &scored).expect("reads").data;
            let kept = |row: &Vec<String>| row.iter().filter(|name| names.contains(name)).cloned().collect();
            assert_eq!(sorted(features(&again)), sorted(wanted.iter().map(kept).collect()), "{case}");
            assert_eq!(again.cols(), names.len());
        }
    }

    #[test]
    fn rare_features_are_left_out_and_counted() {
        let options = ReadOptions { least_count: 2, ..options("word\ncol1") };
        let Loaded { data, facts } = read("t", b"a x T\na y U\nb x T\n", &options).expect("reads");
        assert_eq!(features(&data), [vec!["word=a", "col1=x"], vec!["word=a"], vec!["col1=x"]]);
        assert!(facts.notes.iter().any(|note| note.starts_with("2 of 6 features in rows are rare")), "{facts:?}");
    }

    #[test]
    fn line_ends_tabs_and_empty_lines_do_not_matter() {
        let usual = loaded("a x T\nb y U\n\nc x T\n", "word[-1..1]*col1");
        for text in [
            "a\tx\tT\r\nb y U\r\n\r\nc x T\r\n",
            "\n\na x T\nb y U\n\n \n\nc x T",
            "\u{feff}  a x  T \nb y U\n\t\nc x T\n\n\n",
        ] {
            let other = loaded(text, "word[-1..1]*col1");
            assert_eq!(other.data.hash().expect("sound"), usual.data.hash().expect("sound"), "{text:?}");
            assert_eq!(features(&other.data), features(&usual.data));
        }
        let odd = loaded("\n\na x T\n\n\n\nb x T\n\n", "word");
        assert_eq!(odd.facts.blank_lines.as_deref(), Some(&[2, 3, 1][..]));
        assert!(odd.facts.notes[0].starts_with("4 empty sequences"), "{:?}", odd.facts.notes);
        assert_eq!(loaded(TEXT, "word").facts.blank_lines.as_deref(), Some(&[0, 1, 0][..]));
    }

    #[test]
    fn text_without_tags_is_for_models_alone() {
        let known = ModelFeatures { count: 1, names: Some(vec!["word=a".to_string()]), index_base: None };
        let scored = ReadOptions { features: Some(known), text_columns: Some(2), ..options("word") };
        for (text, tags) in [("a x\n", false), ("a x T\n", true)] {
            let data = read("t", text.as_bytes(), &scored).expect("reads").data;
            assert_eq!(matches!(data.targets(), Targets::Labels { .. }), tags);
            assert_eq!(data.cols(), 1);
        }
        for text in ["a\n", "a x T U\n"] {
            assert_eq!(read("t", text.as_bytes(), &scored).expect_err(text).code(), Code::BadTable);
        }
    }

    #[test]
    fn bad_text_is_refused_with_its_line() {
        let of = |bytes: &[u8], templates: &str| read("t", bytes, &options(templates)).expect_err("refused");
        let error = of(b"a x T\n\nb T\n", "word");
        assert_eq!((error.code(), error.place().and_then(|place| place.line)), (Code::BadTable, Some(3)), "{error}");
        let error = of(b"a x T\nb \xff T\n", "word");
        assert_eq!((error.code(), error.place().and_then(|place| place.line)), (Code::NotText, Some(2)), "{error}");
        let error = of(b"a x T\n", "word\nsuffix(2, col2)");
        let place = error.place().expect("a place");
        assert_eq!((place.file.as_str(), place.line, place.column), ("templates", Some(2), Some(1)), "{error}");
        assert_eq!(of(b"T\nU\n", "word").code(), Code::BadTable);
        assert_eq!(of(b"\n \n", "word").code(), Code::NoRows);
        let error = read("t", b"a T\n", &ReadOptions::default()).expect_err("no templates");
        assert_eq!(error.code(), Code::BadSetting);
    }
}
