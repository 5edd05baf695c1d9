//! What must be known about a whole file before its rows can be stored one by one ([`Survey`]) or used one by one
//! ([`Outline`]).

use super::assemble::{Stored, is_dense};
use super::piece::{Piece, Seen, parse_block};
use super::{check_groups, columns, decide_base, fill, guess_entries, known_base, no_rows, strip_mark};
use crate::options::ReadOptions;
use maxmargin::data::Names;
use maxmargin::error::{Error, Result};
use maxmargin::parallel;
use std::collections::HashSet;
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// What a pass over the text finds about its features, in constant memory: the index base, and the best storage of
/// rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) base: u8,
    pub(crate) dense: bool,
}

impl Outline {
    /// Reads the text once.
    pub(crate) fn take<V: Stored>(
        file: &str,
        stream: impl Read + Send,
        bytes: usize,
        options: &ReadOptions,
    ) -> Result<Outline> {
        let mut seen = Evidence::default();
        each_piece::<V>(file, stream, bytes, options, |lines, piece| seen.add(lines, &piece))?;
        let base = seen.base(file, options)?;
        let cols = columns(seen.largest, base, options);
        Ok(Outline { base, dense: options.hash.is_none() && is_dense(seen.rows, seen.entries, cols) })
    }
}

/// What a pass over the text finds.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) base: u8,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) dense: bool,
    pub(crate) with_weights: bool,
    /// Total size of all row ids, if every row has one.
    pub(crate) id_bytes: Option<u64>,
    /// The start of each group, followed by the number of rows, and the names of the groups.
    pub(crate) groups: Option<(Vec<u64>, Names)>,
}

impl Survey {
    /// Reads the text once. `None` if its rows cannot be stored in order: groups are scattered, or rows have several
    /// labels or none.
    pub(crate) fn take<V: Stored>(
        file: &str,
        stream: impl Read + Send,
        bytes: usize,
        options: &ReadOptions,
    ) -> Result<Option<Survey>> {
        let (mut seen, mut all) = (Evidence::default(), Gathered::default());
        each_piece::<V>(file, stream, bytes, options, |lines, piece| {
            all.add(seen.rows, &piece);
            seen.add(lines, &piece);
        })?;
        let base = seen.base(file, options)?;
        if all.unfit {
            return Ok(None);
        }
        let cols = columns(seen.largest, base, options);
        let groups = (!all.starts.is_empty()).then(|| {
            all.starts.push(seen.rows as u64);
            (all.starts, Names::from_parts(all.names.into(), all.ends.into()))
        });
        Ok(Some(Survey {
            base,
            rows: seen.rows,
            cols,
            entries: seen.entries,
            dense: options.hash.is_none() && is_dense(seen.rows, seen.entries, cols),
            with_weights: all.with_weights,
            id_bytes: (!all.without_ids).then_some(all.id_bytes),
            groups,
        }))
    }
}

/// Parses text piece by piece, in order. `take` receives each piece with the number of lines before it.
fn each_piece<V: Stored>(
    file: &str,
    mut stream: impl Read + Send,
    bytes: usize,
    options: &ReadOptions,
    mut take: impl FnMut(u64, Piece<V>),
) -> Result<()> {
    let count = 2 * parallel::threads();
    let mut carry = Vec::new();
    let (mut lines, mut rows) = (0, 0);
    let at_file = |error: Error| error.in_file(file);
    let mut text = fill(&mut stream, &mut carry, count, bytes, options).map_err(at_file)?;
    strip_mark(&mut text);
    while !text.is_empty() {
        let (parsed, next) = parallel::join(
            || {
                parallel::map(text.len(), |number| {
                    parse_block::<V>(&text[number], guess_entries(&text[number]), options.hash)
                })
            },
            || fill(&mut stream, &mut carry, count, bytes, options),
        );
        for piece in parsed {
            let piece = piece.map_err(|failure| failure.into_error(file, lines))?;
            let before = lines;
            lines += piece.lines;
            rows += piece.rows();
            take(before, piece);
        }
        text = next.map_err(at_file)?;
        options.cancel.check()?;
    }
    if rows == 0 { Err(no_rows(file, lines)) } else { Ok(()) }
}

/// The first occurrence of something, and the number of lines before its piece.
type First = Option<(u64, Seen)>;

fn note(first: &mut First, lines: u64, seen: &Option<Seen>) {
    if first.is_none() {
        *first = seen.as_ref().map(|seen| (lines, seen.clone()));
    }
}

fn borrowed(first: &First) -> Option<(u64, &Seen)> {
    first.as_ref().map(|(lines, seen)| (*lines, seen))
}

/// What decides the index base, and what is needed to report contradicting rows.
#[derive(Default)]
struct Evidence {
    rows: usize,
    entries: usize,
    largest: Option<u32>,
    zero: First,
    rows_before_zero: u64,
    others_start_later: bool,
    with_qid: First,
    without_qid: First,
}

impl Evidence {
    fn add<V>(&mut self, lines: u64, piece: &Piece<V>) {
        if self.zero.is_none() {
            self.rows_before_zero += piece.zero_index.rows_before;
            self.others_start_later |= piece.zero_index.others_start_later;
        }
        note(&mut self.zero, lines, &piece.zero_index.first);
        note(&mut self.with_qid, lines, &piece.with_qid);
        note(&mut self.without_qid, lines, &piece.without_qid);
        self.rows += piece.rows();
        self.entries += piece.values.len();
        self.largest = self.largest.max(piece.largest);
    }

    /// The index base, or the error of the file as a whole.
    fn base(&self, file: &str, options: &ReadOptions) -> Result<u8> {
        check_groups(file, borrowed(&self.with_qid), borrowed(&self.without_qid))?;
        let from_zero = self.rows_before_zero == 0 || self.others_start_later;
        decide_base(file, known_base(options), borrowed(&self.zero), from_zero)
    }
}

#[derive(Default)]
struct Gathered {
    with_weights: bool,
    without_ids: bool,
    id_bytes: u64,
    starts: Vec<u64>,
    names: Vec<u8>,
    ends: Vec<u64>,
    seen: HashSet<u64>,
    last: Vec<u8>,
    /// Whether groups are scattered, or rows have several labels or none.
    unfit: bool,
}

impl Gathered {
    fn add<V>(&mut self, rows_before: usize, piece: &Piece<V>) {
        self.with_weights |= !piece.weights.is_empty();
        self.without_ids |= piece.ids.incomplete || piece.ids.ends.len() != piece.rows();
        self.id_bytes += piece.ids.bytes.len() as u64;
        self.unfit |= piece.sets.is_some();
        for (row, &key) in piece.keys.iter().enumerate() {
            let name = &piece.key_names[key as usize];
            if !self.ends.is_empty() && self.last[..] == name[..] {
                continue;
            }
            self.unfit |= !self.seen.insert(xxh3_64(name));
            self.starts.push((rows_before + row) as u64);
            self.names.extend_from_slice(name);
            self.ends.push(self.names.len() as u64);
            self.last.clear();
            self.last.extend_from_slice(name);
        }
    }
}
