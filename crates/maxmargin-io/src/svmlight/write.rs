//! Writes svmlight text: `target [qid:ID] [cost:W] index:value …`, one line per row.
//!
//! Numbers have the fewest digits that parse as the same f32 or f64. Zeros are left out, but a row of zeros is still a
//! line. Lines are formatted in parallel, a few blocks ahead of the output, so that memory stays bounded. The bytes do
//! not depend on the number of threads.

use crate::atomic::refused_write;
use maxmargin::data::{Dataset, Names, Targets};
use maxmargin::parallel;
use maxmargin::run::Cancel;
use maxmargin::simulate::{Block, Generator};
use maxmargin::{Code, Error, Result};
use std::io::Write;

/// How to write svmlight text.
#[derive(Clone, Debug)]
pub struct SvmlightWriteOptions {
    /// The index of the first column: 0 or 1.
    pub index_base: u8,
    /// Checked while writing.
    pub cancel: Cancel,
}

impl Default for SvmlightWriteOptions {
    fn default() -> SvmlightWriteOptions {
        SvmlightWriteOptions { index_base: 1, cancel: Cancel::new() }
    }
}

/// Number of rows formatted together.
const ROWS_PER_CHUNK: usize = 1024;
/// Number of blocks formatted ahead of the output, per thread.
const BLOCKS_AHEAD: u64 = 4;

/// Writes a data set in input order. Rows without targets get the target 0, because svmlight needs a target. The place
/// of an empty label set stays empty.
pub fn write_dataset(data: &Dataset, out: &mut dyn Write, options: &SvmlightWriteOptions) -> Result<()> {
    let base = checked_base(options)?;
    let order = data.input_order().map(|order| {
        let mut stored = vec![0usize; order.len()];
        for (row, &input) in order.iter().enumerate() {
            stored[input as usize] = row;
        }
        stored
    });
    if order.is_some() {
        data.matrix().check(0..data.rows())?;
    }
    let lines = Lines::new(data, base);
    let chunks = data.rows().div_ceil(ROWS_PER_CHUNK) as u64;
    in_order(chunks, out, &options.cancel, |chunk, text| {
        let first = chunk as usize * ROWS_PER_CHUNK;
        let range = first..(first + ROWS_PER_CHUNK).min(data.rows());
        if order.is_none() {
            data.matrix().check(range.clone())?;
        }
        range.into_iter().try_for_each(|input| lines.push(order.as_ref().map_or(input, |order| order[input]), text))
    })
}

/// Writes all rows of a generator. Only a few blocks are in memory at a time.
pub fn write_blocks(generator: &dyn Generator, out: &mut dyn Write, options: &SvmlightWriteOptions) -> Result<()> {
    let base = checked_base(options)?;
    in_order(generator.blocks(), out, &options.cancel, |number, text| {
        push_block(&generator.block(number), base, text);
        Ok(())
    })
}

fn checked_base(options: &SvmlightWriteOptions) -> Result<u64> {
    if options.index_base > 1 {
        return Err(Error::new(Code::BadSetting, format!("feature indices cannot start at {}", options.index_base))
            .help("let them start at 0 or 1"));
    }
    Ok(u64::from(options.index_base))
}

/// Formats blocks in parallel and writes them one after the other: while the caller's thread writes some, the pool
/// formats the next ones.
fn in_order(
    blocks: u64,
    out: &mut dyn Write,
    cancel: &Cancel,
    format: impl Fn(u64, &mut Vec<u8>) -> Result<()> + Sync,
) -> Result<()> {
    let ahead = BLOCKS_AHEAD * parallel::threads() as u64;
    let mut ready: Vec<(Vec<u8>, Result<()>)> = Vec::new();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut next = 0;
    loop {
        cancel.check()?;
        let count = ahead.min(blocks - next);
        let mut coming: Vec<(Vec<u8>, Result<()>)> =
            (0..count).map(|_| (spare.pop().unwrap_or_default(), Ok(()))).collect();
        let mut written = Ok(());
        // No thread waits for a message here, so this also works in a pool with one thread.
        rayon::in_place_scope(|scope| {
            for (number, (text, outcome)) in (next..).zip(&mut coming) {
                let format = &format;
                scope.spawn(move |_| *outcome = format(number, text));
            }
            written = ready.drain(..).try_for_each(|(mut text, outcome)| {
                outcome?;
                out.write_all(&text).map_err(|error| refused_write(&error))?;
                text.clear();
                spare.push(text);
                Ok(())
            });
        });
        written?;
        if coming.is_empty() {
            return out.flush().map_err(|error| refused_write(&error));
        }
        next += count;
        ready = coming;
    }
}

/// What is needed to format any row of a data set.
struct Lines<'a> {
    data: &'a Dataset,
    base: u64,
    double: bool,
    /// The group of each row.
    group_of_row: Option<Vec<u32>>,
    /// Whether each label can be written.
    labels_valid: Vec<bool>,
}

impl<'a> Lines<'a> {
    fn new(data: &'a Dataset, base: u64) -> Lines<'a> {
        let group_of_row = data.groups().map(|groups| {
            let mut group_of_row = Vec::with_capacity(data.rows());
            for (group, range) in groups.ranges().enumerate() {
                group_of_row.resize(range.end, group as u32);
            }
            group_of_row
        });
        let labels_valid = match data.targets() {
            Targets::Labels { names, .. } | Targets::Sets { names, .. } => {
                (0..names.len()).map(|code| is_label(names.get_bytes(code))).collect()
            }
            Targets::Real(_) | Targets::Absent => Vec::new(),
        };
        Lines { data, base, double: data.matrix().is_double(), group_of_row, labels_valid }
    }

    fn push(&self, row: usize, text: &mut Vec<u8>) -> Result<()> {
        let line = text.len();
        self.push_target(row, text)?;
        if let (Some(groups), Some(group_of_row)) = (self.data.groups(), &self.group_of_row) {
            let name = groups.names().get_bytes(group_of_row[row] as usize);
            if !is_group_name(name) {
                return Err(self
                    .error(
                        row,
                        Code::BadAnnotation,
                        format!("the query id {} has a blank, a control character or `#`, or is empty", quoted(name)),
                    )
                    .help("rename the query, or write to a format with quotes such as CSV"));
            }
            text.extend_from_slice(b" qid:");
            text.extend_from_slice(name);
        }
        if let Some(weights) = self.data.weights() {
            if !weights[row].is_finite() {
                return Err(self.error(row, Code::BadWeight, format!("the weight is {}", weights[row])));
            }
            text.extend_from_slice(b" cost:");
            push_f64(weights[row], text);
        }
        let mut faulty = None;
        self.data.matrix().each_in_row(row, |column, value| {
            if value == 0.0 {
                return;
            }
            if !value.is_finite() {
                faulty = Some((column, value));
            }
            push_index(column as u64 + self.base, text);
            if self.double { push_f64(value, text) } else { push_f32(value as f32, text) }
        });
        if let Some((column, value)) = faulty {
            let column = column as u64 + self.base;
            return Err(self
                .error(row, Code::NotFinite, format!("feature {column} is {value}"))
                .help("correct the value or drop the row"));
        }
        if text.len() == line {
            // Readers skip empty lines, but this row must stay a row.
            push_index(self.base, text);
            text.push(b'0');
        }
        text.push(b'\n');
        Ok(())
    }

    fn push_target(&self, row: usize, text: &mut Vec<u8>) -> Result<()> {
        match self.data.targets() {
            Targets::Absent => text.push(b'0'),
            Targets::Real(values) if values[row].is_finite() => push_f64(values[row], text),
            Targets::Real(values) => {
                return Err(self
                    .error(row, Code::BadTarget, format!("the target is {}", values[row]))
                    .help("correct the target or drop the row"));
            }
            Targets::Labels { names, codes } => self.push_label(row, names, codes[row], text)?,
            Targets::Sets { names, starts, codes } => {
                for (position, &code) in codes[starts[row] as usize..starts[row + 1] as usize].iter().enumerate() {
                    if position > 0 {
                        text.push(b',');
                    }
                    self.push_label(row, names, code, text)?;
                }
            }
        }
        Ok(())
    }

    fn push_label(&self, row: usize, names: &Names, code: u32, text: &mut Vec<u8>) -> Result<()> {
        let name = names.get_bytes(code as usize);
        if !self.labels_valid[code as usize] {
            return Err(self
                .error(row, Code::BadTarget, format!("the label {} cannot be written in svmlight text", quoted(name)))
                .help("number the classes, or write to CSV, Parquet, Arrow or .mmd, which take words"));
        }
        text.extend_from_slice(name);
        Ok(())
    }

    fn error(&self, row: usize, code: Code, what: String) -> Error {
        Error::new(code, format!("row {}: {what}", self.data.input_row(row) + 1))
    }
}

fn quoted(name: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(name).chars().take(60).flat_map(char::escape_debug).collect();
    format!("`{shown}`")
}

/// Whether every program would read this as one word.
fn is_word(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '#')
}

/// The reader accepts only numbers, because a word in place of a number is usually a mistake.
fn is_label(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| name.parse::<f64>().is_ok_and(f64::is_finite))
}

fn is_group_name(name: &[u8]) -> bool {
    is_word(name)
}

fn push_block(block: &Block, base: u64, text: &mut Vec<u8>) {
    for row in 0..block.rows() {
        push_f64(block.targets[row], text);
        if let Some(group) = block.group_id(row) {
            text.extend_from_slice(b" qid:");
            text.extend_from_slice(itoa::Buffer::new().format(group).as_bytes());
        }
        let (indices, values) = block.row(row);
        for (&index, &value) in indices.iter().zip(values) {
            push_index(u64::from(index) + base, text);
            push_f32(value, text);
        }
        text.push(b'\n');
    }
}

#[inline]
fn push_index(index: u64, text: &mut Vec<u8>) {
    text.push(b' ');
    text.extend_from_slice(itoa::Buffer::new().format(index).as_bytes());
    text.push(b':');
}

/// Whole numbers below this are exact in f32, and their digits are the shortest that parse as the same value.
const WHOLE_F32: f32 = 16_777_216.0;
/// The same for f64.
const WHOLE_F64: f64 = 9_007_199_254_740_992.0;

#[inline]
fn push_f32(value: f32, text: &mut Vec<u8>) {
    let whole = value as i32;
    if value.abs() < WHOLE_F32 && whole as f32 == value {
        text.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else {
        push_shortest(zmij::Buffer::new().format(value), text);
    }
}

#[inline]
fn push_f64(value: f64, text: &mut Vec<u8>) {
    let whole = value as i64;
    if value.abs() < WHOLE_F64 && whole as f64 == value {
        text.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    } else {
        push_shortest(zmij::Buffer::new().format(value), text);
    }
}

#[inline]
fn push_shortest(shown: &str, text: &mut Vec<u8>) {
    text.extend_from_slice(shown.strip_suffix(".0").unwrap_or(shown).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use maxmargin::data::{Csr, Dense, Groups, Matrix};
    use maxmargin::simulate::{Search, SearchSettings, Text, TextSettings};
    use proptest::prelude::*;

    fn written(data: &Dataset) -> String {
        let mut out = Vec::new();
        write_dataset(data, &mut out, &SvmlightWriteOptions::default()).expect("writable");
        String::from_utf8(out).expect("text")
    }

    fn refused(data: &Dataset) -> Error {
        write_dataset(data, &mut Vec::new(), &SvmlightWriteOptions::default()).expect_err("not writable")
    }

    fn generated(generator: &dyn Generator) -> Vec<u8> {
        let mut out = Vec::new();
        write_blocks(generator, &mut out, &SvmlightWriteOptions::default()).expect("writable");
        out
    }

    /// Label, query, cost and entries of a line.
    type Line = (String, Option<String>, Option<f64>, Vec<(usize, f64)>);

    fn parse(line: &str) -> Line {
        let (label, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut parsed = (label.to_string(), None, None, Vec::new());
        for token in rest.split_ascii_whitespace() {
            let (key, value) = token.split_once(':').expect("a colon");
            match key {
                "qid" => parsed.1 = Some(value.to_string()),
                "cost" => parsed.2 = Some(value.parse().expect("a number")),
                index => parsed.3.push((index.parse().expect("an index"), value.parse().expect("a number"))),
            }
        }
        parsed
    }

    /// Reads back what a generator wrote.
    fn read_back(text: &[u8], cols: usize) -> Dataset {
        let text = std::str::from_utf8(text).expect("text");
        let (mut starts, mut indices, mut values, mut targets) = (vec![0u64], Vec::new(), Vec::new(), Vec::new());
        let (mut keys, mut names) = (Vec::new(), Vec::<String>::new());
        for line in text.lines() {
            let (label, query, _, entries) = parse(line);
            targets.push(label.parse::<f64>().expect("a number"));
            for (index, value) in entries {
                indices.push(index as u32 - 1);
                values.push(value as f32);
            }
            starts.push(values.len() as u64);
            if let Some(query) = query {
                if names.last() != Some(&query) {
                    names.push(query);
                }
                keys.push(names.len() as u32 - 1);
            }
        }
        let matrix = Matrix::Csr32F32(Csr::new(starts, indices, values, cols).expect("valid"));
        let data = Dataset::new(matrix, Targets::Real(targets.into())).expect("valid");
        if names.is_empty() { data } else { data.with_group_keys(&keys, names.iter().collect()).expect("valid") }
    }

    #[test]
    fn what_a_generator_writes_reads_back_as_its_data_set() {
        let text = Text::new(TextSettings { rows: 3000, features: 2000, nonzeros: 15, ..TextSettings::default() });
        let search = Search::new(SearchSettings { queries: 90, docs: 8, features: 20, ..SearchSettings::default() });
        let (text, search) = (text.expect("valid"), search.expect("valid"));
        let generators: [&dyn Generator; 2] = [&text, &search];
        for generator in generators {
            let bytes = generated(generator);
            let data = generator.to_dataset().expect("valid");
            assert_eq!(written(&data).as_bytes(), bytes);
            let again = read_back(&bytes, data.cols());
            assert_eq!(again.hash().expect("valid"), data.hash().expect("valid"));
        }
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_number_of_threads() {
        let text = Text::new(TextSettings { rows: 20_000, features: 500, nonzeros: 4, ..TextSettings::default() });
        let text = text.expect("valid");
        let data = text.to_dataset().expect("valid");
        let expected = generated(&text);
        for threads in [1, 2, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            assert!(pool.install(|| generated(&text)) == expected);
            assert!(pool.install(|| written(&data).into_bytes()) == expected);
        }
    }

    fn two_rows() -> Matrix {
        Matrix::DenseF32(Dense::new(vec![0.0, 0.1, 3.0, 0.0, 0.0, -0.0], 2, 3).expect("valid"))
    }

    #[test]
    fn zeros_are_left_out_but_a_row_of_zeros_stays_a_row() {
        let data = Dataset::new(two_rows(), Targets::Real(vec![1.5, -1.0].into())).expect("valid");
        assert_eq!(written(&data), "1.5 2:0.1 3:3\n-1\n");
        let sparse = Csr::<u16, f64>::new(vec![0, 2, 2], vec![0, 2], vec![0.0, 0.1], 3).expect("valid");
        let data = Dataset::new(Matrix::Csr16F64(sparse), Targets::Absent).expect("valid");
        assert_eq!(written(&data), "0 3:0.1\n0\n");
        let mut zero_based = Vec::new();
        let options = SvmlightWriteOptions { index_base: 0, ..SvmlightWriteOptions::default() };
        write_dataset(&data, &mut zero_based, &options).expect("writable");
        assert_eq!(zero_based, b"0 2:0.1\n0\n");
        let options = SvmlightWriteOptions { index_base: 2, ..SvmlightWriteOptions::default() };
        assert_eq!(write_dataset(&data, &mut zero_based, &options).expect_err("base 2").code(), Code::BadSetting);
    }

    #[test]
    fn rows_are_written_in_input_order_with_query_and_cost() {
        let matrix = Matrix::DenseF64(Dense::new(vec![1.0, 2.0, 3.0], 3, 1).expect("valid"));
        let data = Dataset::new(matrix, Targets::Real(vec![0.0, 1.0, 2.0].into()))
            .and_then(|data| data.with_weights(vec![0.5, 1.0, 0.1]))
            .and_then(|data| data.with_group_keys(&[0, 1, 0], ["a:b", "ü"].into_iter().collect()))
            .expect("valid");
        assert!(data.input_order().is_some());
        assert_eq!(written(&data), "0 qid:a:b cost:0.5 1:1\n1 qid:ü cost:1 1:2\n2 qid:a:b cost:0.1 1:3\n");
    }

    #[test]
    fn labels_are_written_where_they_are_numbers() {
        let names: Names = ["3", "-1.5", "spam"].into_iter().collect();
        let labels = |codes: Vec<u32>| Targets::Labels { names: names.clone(), codes: codes.into() };
        let data = Dataset::new(two_rows(), labels(vec![1, 0])).expect("valid");
        assert_eq!(written(&data), "-1.5 2:0.1 3:3\n3\n");
        let error = refused(&Dataset::new(two_rows(), labels(vec![1, 2])).expect("valid"));
        assert_eq!(error.code(), Code::BadTarget);
        assert!(error.message().contains("row 2") && error.message().contains("`spam`"), "{error}");

        let sets = |starts: Vec<u64>, codes: Vec<u32>| {
            let targets = Targets::Sets { names: names.clone(), starts: starts.into(), codes: codes.into() };
            Dataset::new(two_rows(), targets).expect("valid")
        };
        assert_eq!(written(&sets(vec![0, 2, 3], vec![0, 1, 1])), "3,-1.5 2:0.1 3:3\n-1.5\n");
        assert_eq!(written(&sets(vec![0, 0, 0], vec![])), " 2:0.1 3:3\n 1:0\n");
        assert_eq!(refused(&sets(vec![0, 0, 1], vec![2])).code(), Code::BadTarget);
        for word in ["", "spam", "nan", "1 2", "1,2", "1:2"] {
            assert!(!is_label(word.as_bytes()), "{word:?}");
        }
    }

    #[test]
    fn what_svmlight_cannot_say_is_refused() {
        for name in ["a b", "", "a\nb", "a#b", "a\u{7}"] {
            let groups = Groups::new(vec![0, 2], [name].into_iter().collect()).expect("valid");
            let data = Dataset::new(two_rows(), Targets::Absent).and_then(|data| data.with_groups(groups));
            assert_eq!(refused(&data.expect("valid")).code(), Code::BadAnnotation, "{name:?}");
        }
        let data = Dataset::new(two_rows(), Targets::Real(vec![f64::NAN, 1.0].into())).expect("valid");
        assert_eq!(refused(&data).code(), Code::BadTarget);
        let matrix = Matrix::DenseF32(Dense::new(vec![1.0, f32::INFINITY], 2, 1).expect("valid"));
        let error = refused(&Dataset::new(matrix, Targets::Absent).expect("valid"));
        assert_eq!(error.code(), Code::NotFinite);
        assert!(error.message().contains("row 2: feature 1"), "{error}");
    }

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| std::io::Error::other("no space left"))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_and_a_raised_flag_end_the_writing() {
        let text = Text::new(TextSettings { rows: 5000, features: 500, nonzeros: 4, ..TextSettings::default() });
        let text = text.expect("valid");
        let options = SvmlightWriteOptions::default();
        let error = write_blocks(&text, &mut Full(100_000), &options).expect_err("full");
        assert_eq!(error.code(), Code::WriteFailed);
        assert!(error.message().contains("no space left"));
        options.cancel.raise();
        assert_eq!(write_blocks(&text, &mut Vec::new(), &options).expect_err("stopped").code(), Code::Interrupted);
    }

    proptest! {
        #[test]
        fn numbers_read_back_bit_for_bit_with_the_fewest_digits(bits: u64, whole in -20_000_000i64..20_000_000) {
            let digits = |shown: &str| {
                let mantissa = shown.split('e').next().expect("some");
                mantissa.chars().filter(char::is_ascii_digit).collect::<String>().trim_matches('0').len()
            };
            for value in [f64::from_bits(bits), whole as f64, whole as f64 / 64.0] {
                prop_assume!(value.is_finite());
                let mut text = Vec::new();
                push_f64(value, &mut text);
                let text = String::from_utf8(text).expect("text");
                prop_assert_eq!(text.parse::<f64>().expect("a number"), value);
                prop_assert_eq!(digits(&text), digits(&format!("{value}")));
                let single = value as f32;
                if single.is_finite() {
                    let mut text = Vec::new();
                    push_f32(single, &mut text);
                    let text = String::from_utf8(text).expect("text");
                    prop_assert_eq!(text.parse::<f32>().expect("a number"), single);
                    prop_assert_eq!(digits(&text), digits(&format!("{single}")));
                }
            }
        }
    }
}
