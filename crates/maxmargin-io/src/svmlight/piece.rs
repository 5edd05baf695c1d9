//! One block of svmlight text, parsed: `target [qid:ID] [cost:W] index:value … [# comment]`.

use crate::hashing::{HashedRow, Hashing};
use crate::label_sets::{label, number_label};
use crate::number::{Parse, ends_token, parse_digits, parse_number, token_end};
use maxmargin::error::{Code, Error, Excerpt, Place};
use memchr::memchr;
use std::collections::HashMap;
use std::ops::Range;

/// Feature indices as in the text, in the narrowest type that holds them.
#[derive(Debug)]
pub(crate) enum Indices {
    /// Every row so far has the indices `first`, `first + 1`, …, so nothing is stored.
    Consecutive(u32),
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// The rows of one block.
#[derive(Debug)]
pub(crate) struct Piece<V> {
    pub(crate) lines: u64,
    pub(crate) lengths: Vec<u32>,
    pub(crate) indices: Indices,
    pub(crate) values: Vec<V>,
    pub(crate) targets: Vec<f64>,
    /// Label lists, once a row had several labels or none. Until then `targets` is enough.
    pub(crate) sets: Option<Sets>,
    /// A local key per row, if rows have a qid.
    pub(crate) keys: Vec<u32>,
    pub(crate) key_names: Vec<Box<[u8]>>,
    /// Costs, once a row had one.
    pub(crate) weights: Vec<f64>,
    /// Ids from trailing comments, as long as every row has one.
    pub(crate) ids: Ids,
    pub(crate) largest: Option<u32>,
    /// The first row with and the first without a qid.
    pub(crate) with_qid: Option<Seen>,
    pub(crate) without_qid: Option<Seen>,
    pub(crate) zero_index: ZeroIndex,
}

/// Labels of each row.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    pub(crate) lengths: Vec<u32>,
    pub(crate) labels: Vec<Box<[u8]>>,
}

/// Row ids in one arena. They are dropped at the first row without one.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<u64>,
    pub(crate) incomplete: bool,
}

/// What the first indices of the rows tell about the index base.
#[derive(Debug, Default)]
pub(crate) struct ZeroIndex {
    /// Number of rows with features before the first index 0.
    pub(crate) rows_before: u64,
    /// Whether one of these starts after index 1.
    pub(crate) others_start_later: bool,
    /// The first index 0.
    pub(crate) first: Option<Seen>,
}

/// Something that may turn out to be an error once the whole file is known.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Number of lines before it in the block.
    pub(crate) line: u64,
    text: Box<[u8]>,
    token: Range<usize>,
}

impl Seen {
    /// Its position in the file, given the number of lines before the block.
    pub(crate) fn place(&self, file: &str, lines_before: u64, expected: &str) -> Place {
        Place {
            file: file.to_string(),
            line: Some(lines_before + self.line + 1),
            column: Some(self.token.start as u64 + 1),
            excerpt: Some(Excerpt::of_line(&self.text, self.token.clone(), expected)),
        }
    }
}

/// An error in a block, and its position.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    expected: String,
    help: String,
    /// Number of lines before it in the block.
    pub(crate) line: u64,
    text: Vec<u8>,
    token: Range<usize>,
}

impl Failure {
    /// The error for the file, given the number of lines before the block.
    pub(crate) fn into_error(self, file: &str, lines_before: u64) -> Error {
        Error::new(self.code, self.message)
            .at(Place {
                file: file.to_string(),
                line: Some(lines_before + self.line + 1),
                column: Some(self.token.start as u64 + 1),
                excerpt: Some(Excerpt::of_line(&self.text, self.token, self.expected)),
            })
            .help(self.help)
    }
}

const DEFAULT_HELP: &str = "correct the value or drop the row";

/// Parses a block of whole lines that ends in a newline. `entries` is an estimate of the number of features in it. A
/// mapped file that is overwritten may end otherwise; the reader notices that at the end.
pub(crate) fn parse_block<V: Parse>(
    text: &[u8],
    entries: usize,
    hashing: Option<Hashing>,
) -> Result<Piece<V>, Box<Failure>> {
    let mut parser = Parser {
        text,
        line_start: 0,
        piece: Piece {
            lines: 0,
            lengths: Vec::new(),
            indices: hashing.map_or(Indices::Consecutive(0), |_| Indices::Wide(Vec::with_capacity(entries))),
            values: Vec::with_capacity(entries),
            targets: Vec::new(),
            sets: None,
            keys: Vec::new(),
            key_names: Vec::new(),
            weights: Vec::new(),
            ids: Ids::default(),
            largest: None,
            with_qid: None,
            without_qid: None,
            zero_index: ZeroIndex::default(),
        },
        row: Vec::new(),
        hashing,
        hashed: HashedRow::default(),
        key_of: HashMap::new(),
        entries,
    };
    while parser.line_start < text.len() {
        let next = parser.line()?;
        if next - parser.line_start > super::LONGEST_LINE {
            return Err(parser.long_line());
        }
        parser.line_start = next;
        parser.piece.lines += 1;
    }
    Ok(parser.piece)
}

struct Parser<'a, V> {
    text: &'a [u8],
    line_start: usize,
    piece: Piece<V>,
    /// The indices of the current row.
    row: Vec<u32>,
    /// Whether features have names that choose their columns.
    hashing: Option<Hashing>,
    /// The features of the current row, if they have names.
    hashed: HashedRow,
    key_of: HashMap<&'a [u8], u32>,
    entries: usize,
}

impl<'a, V: Parse> Parser<'a, V> {
    /// Parses one line. Returns the start of the next one.
    #[inline]
    fn line(&mut self) -> Result<usize, Box<Failure>> {
        let text = self.text;
        let mut at = skip_blanks(text, self.line_start);
        match text[at] {
            b'\n' => return Ok(at + 1),
            b'#' => return Ok(end_of_line(text, at)),
            _ => {}
        }
        at = self.target(at)?;
        at = skip_blanks(text, at);
        let has_group = text[at] == b'q' && text[at..].starts_with(b"qid:");
        if has_group {
            at = self.group(at)?;
        }
        if text[at] == b'c' && text[at..].starts_with(b"cost:") {
            at = self.cost(at)?;
        } else if !self.piece.weights.is_empty() {
            self.piece.weights.push(1.0);
        }
        let features = at;
        if has_group && self.piece.with_qid.is_none() {
            self.piece.with_qid = Some(self.seen(features));
        } else if !has_group && self.piece.without_qid.is_none() {
            self.piece.without_qid = Some(self.seen(features));
        }
        if let Some(hashing) = self.hashing {
            at = self.hashed_features(at, hashing)?;
        } else {
            at = self.features(at)?;
            self.finish_row(features);
        }
        if text[at] == b'#' {
            return Ok(self.comment(at));
        }
        self.piece.ids.miss();
        Ok(at + 1)
    }

    fn target(&mut self, at: usize) -> Result<usize, Box<Failure>> {
        let text = self.text;
        if let Some((value, end)) = parse_number::<f64>(text, at) {
            if !value.is_finite() {
                let why = "this target is not finite";
                return Err(self.failure(
                    Code::NotFinite,
                    at..end,
                    why,
                    "a finite number such as 1 or -1",
                    DEFAULT_HELP,
                ));
            }
            self.piece.targets.push(value);
            if let Some(sets) = &mut self.piece.sets {
                sets.labels.push(number_label(value));
                sets.lengths.push(1);
            }
            return Ok(end);
        }
        let end = token_end(text, at);
        let token = &text[at..end];
        let unlabelled = at > self.line_start && (self.hashing.is_some() || token.contains(&b':'));
        if !unlabelled && (!token.contains(&b',') || token.contains(&b':')) {
            let help = "a row is `target [qid:ID] [cost:W] index:value …`; the target is a number, or several labels separated by commas";
            return Err(self.failure(
                Code::BadTarget,
                at..end,
                "this target is not a number",
                "a number such as 1, -1 or 2.5",
                help,
            ));
        }
        let labels: Vec<&[u8]> = if unlabelled { Vec::new() } else { token.split(|&byte| byte == b',').collect() };
        if let Some(empty) = labels.iter().position(|label| label.is_empty()) {
            let before: usize = labels[..empty].iter().map(|label| label.len() + 1).sum();
            let place = at + before..at + before + 1;
            return Err(self.failure(
                Code::BadTarget,
                place,
                "a label is empty",
                "a label between the commas",
                DEFAULT_HELP,
            ));
        }
        // From here on rows have label sets. Each earlier row had one label.
        let earlier = &self.piece.targets;
        let sets = self.piece.sets.get_or_insert_with(|| Sets {
            lengths: vec![1; earlier.len()],
            labels: earlier.iter().map(|&target| number_label(target)).collect(),
        });
        sets.lengths.push(labels.len() as u32);
        sets.labels.extend(labels.into_iter().map(label));
        self.piece.targets.push(0.0);
        Ok(if unlabelled { at } else { end })
    }

    fn group(&mut self, at: usize) -> Result<usize, Box<Failure>> {
        let start = at + b"qid:".len();
        let end = token_end(self.text, start);
        if start == end {
            return Err(self.failure(
                Code::BadAnnotation,
                at..end,
                "this query id is empty",
                "an id right after `qid:`",
                "write the id right after `qid:`, without a blank",
            ));
        }
        let name = &self.text[start..end];
        let names = &mut self.piece.key_names;
        // Rows of one query usually follow each other.
        let key = match self.piece.keys.last() {
            Some(&last) if *names[last as usize] == *name => last,
            _ => *self.key_of.entry(name).or_insert_with(|| {
                names.push(name.into());
                names.len() as u32 - 1
            }),
        };
        self.piece.keys.push(key);
        Ok(skip_blanks(self.text, end))
    }

    fn cost(&mut self, at: usize) -> Result<usize, Box<Failure>> {
        let start = at + b"cost:".len();
        match parse_number::<f64>(self.text, start) {
            Some((weight, end)) if weight.is_finite() && weight >= 0.0 => {
                if self.piece.weights.is_empty() {
                    self.piece.weights.resize(self.piece.targets.len() - 1, 1.0);
                }
                // Minus zero is zero.
                self.piece.weights.push(weight + 0.0);
                Ok(skip_blanks(self.text, end))
            }
            _ => {
                let end = token_end(self.text, start);
                let why = "this cost is not a valid weight";
                Err(self.failure(
                    Code::BadWeight,
                    start..end.max(start + 1),
                    why,
                    "zero or a positive number such as 2.5",
                    DEFAULT_HELP,
                ))
            }
        }
    }

    /// Parses `index:value` tokens up to a newline or `#`, and returns that position.
    #[inline(always)]
    fn features(&mut self, mut at: usize) -> Result<usize, Box<Failure>> {
        let text = self.text;
        self.row.clear();
        let mut next_index = 0u64;
        loop {
            at = skip_blanks(text, at);
            let start = at;
            let mut index = 0u64;
            at = parse_digits(text, at, &mut index);
            if text[at] != b':' || at == start {
                if at == start && matches!(text[at], b'\n' | b'#') {
                    return Ok(at);
                }
                return Err(self.bad_token(start));
            }
            // Eleven digits can hold 2³² and do not overflow.
            if index < next_index || index > u64::from(u32::MAX) || at - start > 11 {
                return Err(self.bad_index(start, at, next_index));
            }
            next_index = index + 1;
            self.row.push(index as u32);
            match parse_number::<V>(text, at + 1) {
                Some((value, end)) if value.is_finite() => {
                    self.piece.values.push(value);
                    at = end;
                }
                other => return Err(self.bad_value(at + 1, other.is_some())),
            }
        }
    }

    /// Parses `name:value` and `name` tokens up to a newline or `#`, stores the row, and returns that position.
    fn hashed_features(&mut self, mut at: usize, hashing: Hashing) -> Result<usize, Box<Failure>> {
        let text = self.text;
        let first = at;
        loop {
            at = skip_blanks(text, at);
            if matches!(text[at], b'\n' | b'#') {
                break;
            }
            let start = at;
            let mut colon = None;
            while !ends_token(text[at]) {
                if text[at] == b':' {
                    colon = Some(at);
                }
                at += 1;
            }
            let name = &text[start..colon.unwrap_or(at)];
            if name.is_empty() || memchr(0, name).is_some() || (colon.is_some() && matches!(name, b"qid" | b"cost")) {
                return Err(self.bad_name(start, at));
            }
            let value = match colon {
                None => 1.0,
                Some(colon) => match parse_number::<V>(text, colon + 1) {
                    Some((value, _)) if value.is_finite() => value.wide(),
                    other => return Err(self.bad_value(colon + 1, other.is_some())),
                },
            };
            self.hashed.push(hashing.spot(name), value);
        }
        let Piece { indices: Indices::Wide(indices), values, lengths, .. } = &mut self.piece else { return Ok(at) };
        match self.hashed.finish(indices, values) {
            Some(length) => lengths.push(length),
            None => {
                let why = "values of names that share a column add up to more than a number holds";
                return Err(self.failure(Code::NotFinite, first..at, why, "smaller values", DEFAULT_HELP));
            }
        }
        Ok(at)
    }

    #[cold]
    fn bad_name(&self, start: usize, end: usize) -> Box<Failure> {
        let token = &self.text[start..end];
        if token.starts_with(b":") {
            let why = "this feature has no name";
            return self.failure(Code::BadIndex, start..end, why, "name:value, such as word:2", DEFAULT_HELP);
        }
        // The same messages as for numbered features.
        self.bad_token(start)
    }

    /// Stores the indices of the current row.
    #[inline]
    fn finish_row(&mut self, features: usize) {
        self.piece.lengths.push(self.row.len() as u32);
        let (Some(&first), Some(&last)) = (self.row.first(), self.row.last()) else { return };
        if first == 0 && self.piece.zero_index.first.is_none() {
            self.piece.zero_index.first = Some(self.seen(features));
        }
        let piece = &mut self.piece;
        piece.largest = piece.largest.max(Some(last));
        let zero = &mut piece.zero_index;
        if zero.first.is_none() {
            zero.rows_before += 1;
            zero.others_start_later |= first != 1;
        }
        if let Indices::Consecutive(base) = &mut piece.indices {
            if piece.values.len() == self.row.len() {
                *base = first;
            }
            if first == *base && (last - first) as usize + 1 == self.row.len() {
                return;
            }
            piece.spell_out(self.row.len(), self.entries);
        }
        if last > u32::from(u16::MAX) {
            piece.widen();
        }
        match &mut piece.indices {
            Indices::Narrow(indices) => indices.extend(self.row.iter().map(|&index| index as u16)),
            Indices::Wide(indices) => indices.extend_from_slice(&self.row),
            Indices::Consecutive(_) => {}
        }
    }

    /// Reads a row id from a trailing comment: `#docid = ID …` as in LETOR, or a comment of one word.
    fn comment(&mut self, at: usize) -> usize {
        let end = end_of_line(self.text, at);
        let comment = self.text[at + 1..end].trim_ascii();
        let words = &mut comment.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let id = match (words.next(), words.next(), words.next()) {
            (Some(b"docid"), Some(b"="), Some(id)) => Some(id),
            (Some(id), None, None) => Some(id.strip_prefix(b"docid=").unwrap_or(id)),
            _ => None,
        };
        match id {
            Some(id) => self.piece.ids.push(id),
            None => self.piece.ids.miss(),
        }
        end
    }

    /// The token at `at` with its line, for an error that is known only at the end of the file.
    #[cold]
    fn seen(&self, at: usize) -> Seen {
        let start = skip_blanks(self.text, at);
        let end = token_end(self.text, start).max(start + 1);
        let line = &self.text[self.line_start..end_of_line(self.text, self.line_start)];
        Seen {
            line: self.piece.lines,
            text: line.trim_ascii_end().into(),
            token: start - self.line_start..end - self.line_start,
        }
    }

    #[cold]
    fn failure(&self, code: Code, token: Range<usize>, message: &str, expected: &str, help: &str) -> Box<Failure> {
        let end = end_of_line(self.text, self.line_start);
        Box::new(Failure {
            code,
            message: message.to_string(),
            expected: format!("expected {expected}"),
            help: help.to_string(),
            line: self.piece.lines,
            text: self.text[self.line_start..end].trim_ascii_end().to_vec(),
            token: token.start - self.line_start..token.end - self.line_start,
        })
    }

    #[cold]
    fn long_line(&self) -> Box<Failure> {
        let start = self.line_start;
        let mut failure = self.failure(
            Code::LongLine,
            start..start + 1,
            &format!("this line has more than {} MiB", super::LONGEST_LINE >> 20),
            "a line end",
            "a row is one line, `target index:value …`; if the file is text of this form, its line ends are missing",
        );
        failure.text.truncate(1 << 10);
        failure
    }

    #[cold]
    fn bad_token(&self, start: usize) -> Box<Failure> {
        let end = token_end(self.text, start).max(start + 1);
        let token = &self.text[start..end];
        if token.contains(&0) {
            return self.failure(
                Code::NotText,
                start..end,
                "this line contains bytes that are not text",
                "svmlight text",
                "is this a binary file? `maxmargin convert --help` lists the formats",
            );
        }
        match memchr(b':', token) {
            Some(_) if token.starts_with(b"qid:") || token.starts_with(b"cost:") => self.failure(
                Code::BadAnnotation,
                start..end,
                "this annotation stands in the wrong place",
                "index:value, such as 3:0.25",
                "`qid:` and `cost:` come right after the target, in this order and once",
            ),
            Some(colon) => self.failure(
                Code::BadIndex,
                start..start + colon.max(1),
                "this feature index is not a whole number",
                "a number from 0 to 4294967295",
                if token.starts_with(b"-") {
                    "indices start at 0 or 1; they cannot be negative"
                } else {
                    "features are numbered; for names use CSV with named columns, or ⟦hash=22⟧, which needs no numbers"
                },
            ),
            None => self.failure(
                Code::BadToken,
                start..end,
                "this is not a feature",
                "index:value, such as 3:0.25",
                "separate index and value by a colon, and features by blanks; comments start with #; ⟦hash=22⟧ takes words",
            ),
        }
    }

    #[cold]
    fn bad_index(&self, start: usize, colon: usize, next_index: u64) -> Box<Failure> {
        let digits = &self.text[start..colon];
        let shown = String::from_utf8_lossy(digits);
        let index: Option<u64> = shown.parse().ok();
        match index {
            Some(index) if index < next_index => {
                let previous = next_index - 1;
                let message = if index == previous {
                    format!("feature index {index} is repeated in this row")
                } else {
                    format!("feature index {index} follows {previous}")
                };
                self.failure(
                    Code::IndexOrder,
                    start..colon,
                    &message,
                    &format!("an index above {previous}"),
                    "list each feature once, in increasing order of its index",
                )
            }
            _ => self.failure(
                Code::BadIndex,
                start..colon,
                "this feature index is too large",
                "a number from 0 to 4294967295",
                "renumber the features",
            ),
        }
    }

    #[cold]
    fn bad_value(&self, start: usize, is_number: bool) -> Box<Failure> {
        let end = token_end(self.text, start);
        if is_number {
            let help = if size_of::<V>() == 4 {
                "drop or correct the value; numbers beyond 3.4e38 need ⟦precision=f64⟧"
            } else {
                DEFAULT_HELP
            };
            return self.failure(
                Code::NotFinite,
                start..end,
                "this feature value is not finite",
                "a finite decimal number such as 0.25 or 1e-3",
                help,
            );
        }
        let help = if self.text[start..end].contains(&b',') { "write decimals with a point" } else { DEFAULT_HELP };
        let token = start..end.max(start + 1);
        self.failure(
            Code::BadValue,
            token,
            "this feature value is not a number",
            "a finite decimal number such as 0.25 or 1e-3",
            help,
        )
    }
}

impl<V> Piece<V> {
    pub(crate) fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// Stores indices that were consecutive so far, except for the `last` entries.
    fn spell_out(&mut self, last: usize, entries: usize) {
        let Indices::Consecutive(first) = self.indices else { return };
        let mut indices: Vec<u32> = Vec::with_capacity(self.values.len());
        for &length in &self.lengths[..self.lengths.len() - 1] {
            indices.extend(first..first + length);
        }
        debug_assert!(indices.len() + last == self.values.len());
        if indices.iter().all(|&index| index <= u32::from(u16::MAX)) {
            let mut narrow = Vec::with_capacity(entries.max(self.values.len()));
            narrow.extend(indices.iter().map(|&index| index as u16));
            self.indices = Indices::Narrow(narrow);
        } else {
            self.indices = Indices::Wide(indices);
        }
    }

    fn widen(&mut self) {
        if let Indices::Narrow(narrow) = &self.indices {
            let mut wide = Vec::with_capacity(narrow.capacity());
            wide.extend(narrow.iter().map(|&index| u32::from(index)));
            self.indices = Indices::Wide(wide);
        }
    }
}

impl Ids {
    fn push(&mut self, id: &[u8]) {
        if !self.incomplete {
            self.bytes.extend_from_slice(id);
            self.ends.push(self.bytes.len() as u64);
        }
    }

    fn miss(&mut self) {
        if !self.incomplete {
            *self = Ids { incomplete: true, ..Ids::default() };
        }
    }
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text[at] != b'\n' && ends_token(text[at]) {
        at += 1;
    }
    at
}

/// The position after the newline of the line that contains `at`.
fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |newline| at + newline + 1)
}
