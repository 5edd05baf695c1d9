//! svmlight text as blocks of rows, in constant memory.

use super::assemble::{Plan, Stored, assemble};
use super::piece::{Failure, Piece, Seen, parse_block};
use super::{
    check_groups, columns, facts, fill, fill_live, guess_entries, known_base, no_rows, strip_mark, zero_index,
};
use crate::blocks::{Batch, Source};
use crate::hashing::Hashing;
use crate::options::{Facts, ReadOptions};
use maxmargin::data::Dataset;
use maxmargin::error::{Error, Result};
use maxmargin::parallel;
use std::io::Read;

/// Text to be converted into blocks. The index base must be known, because detecting it would need the whole file.
pub(crate) struct SvmlightBlocks<'a, V, R> {
    file: &'a str,
    stream: R,
    options: &'a ReadOptions,
    /// Number of bytes of text in a block.
    bytes: usize,
    base: u8,
    /// Whether the first rows were stored dense. All blocks have the same layout, so that a row's score does not depend
    /// on its block.
    dense: Option<bool>,
    started: bool,
    carry: Vec<u8>,
    /// Text that was read but not yet parsed.
    text: Vec<Vec<u8>>,
    /// The error that stopped reading after that text.
    failure: Option<Error>,
    lines: u64,
    /// Bytes of text that were parsed.
    bytes_read: u64,
    rows: usize,
    with_qid: Option<(u64, Seen)>,
    without_qid: Option<(u64, Seen)>,
    stored: std::marker::PhantomData<V>,
}

impl<'a, V: Stored, R: Read + Send> SvmlightBlocks<'a, V, R> {
    /// Blocks of about this many bytes of text; `None` if the index base is not known in advance.
    pub(crate) fn new(file: &'a str, stream: R, bytes: usize, options: &'a ReadOptions) -> Option<Self> {
        Some(SvmlightBlocks {
            file,
            stream,
            options,
            bytes,
            base: known_base(options)?,
            dense: (options.steady || options.hash.is_some()).then_some(false),
            started: false,
            carry: Vec::new(),
            text: Vec::new(),
            failure: None,
            lines: 0,
            bytes_read: 0,
            rows: 0,
            with_qid: None,
            without_qid: None,
            stored: std::marker::PhantomData,
        })
    }

    /// The same, with all blocks in the layout of the whole file, which is known.
    pub(crate) fn in_layout(mut self, dense: bool) -> Self {
        self.dense = Some(dense);
        self
    }

    fn read(&mut self) {
        let count = 2 * parallel::threads();
        if self.options.live {
            match fill_live(&mut self.stream, &mut self.carry, self.bytes, self.options) {
                Ok(text) => self.text = text,
                Err(error) => self.failure = Some(error.in_file(self.file)),
            }
            return;
        }
        match fill(&mut self.stream, &mut self.carry, count, self.bytes, self.options) {
            Ok(text) => self.text = text,
            Err(error) => self.failure = Some(error.in_file(self.file)),
        }
    }

    /// Writes bad rows to their file.
    fn put_away(&self, bad: Vec<(Box<Failure>, Vec<u8>)>) -> Result<()> {
        let Some(rows) = &self.options.bad_rows else { return Ok(()) };
        bad.into_iter().try_for_each(|(failure, row)| rows.put(&failure.into_error(self.file, self.lines), &row))
    }

    /// Checks a piece against the earlier ones.
    fn check(&mut self, piece: &Piece<V>) -> Result<()> {
        let lines = self.lines;
        let note = |first: &mut Option<(u64, Seen)>, seen: &Option<Seen>| {
            if first.is_none() {
                *first = seen.as_ref().map(|seen| (lines, seen.clone()));
            }
        };
        note(&mut self.with_qid, &piece.with_qid);
        note(&mut self.without_qid, &piece.without_qid);
        let of = |first: &'_ Option<(u64, Seen)>| first.as_ref().map(|(lines, seen)| (*lines, seen.clone()));
        let (with, without) = (of(&self.with_qid), of(&self.without_qid));
        check_groups(
            self.file,
            with.as_ref().map(|(lines, seen)| (*lines, seen)),
            without.as_ref().map(|(lines, seen)| (*lines, seen)),
        )?;
        match &piece.zero_index.first {
            Some(seen) if self.base > 0 => Err(zero_index(self.file, lines, seen, true)),
            _ => Ok(()),
        }
    }

    fn plan(&self, piece: &Piece<V>) -> Plan {
        Plan { base: self.base, cols: columns(piece.largest, self.base, self.options), dense: self.dense }
    }
}

/// A parsed block or why it cannot be parsed, and the lines that were left out.
type Parsed<V> = (std::result::Result<Piece<V>, Box<Failure>>, Vec<(Box<Failure>, Vec<u8>)>);

/// Parses a block. If bad lines are to be left out, each is returned and overwritten by blanks, so that the numbers of the
/// other lines stay.
fn parse_leniently<V: Stored>(text: &mut [u8], skips: bool, hashing: Option<Hashing>) -> Parsed<V> {
    let mut bad = Vec::new();
    loop {
        match parse_block::<V>(text, guess_entries(text), hashing) {
            Err(failure) if skips => {
                let mut ends = memchr::memchr_iter(b'\n', text);
                let line = usize::try_from(failure.line).unwrap_or(usize::MAX);
                let start = if line == 0 { 0 } else { ends.nth(line - 1).map_or(text.len(), |end| end + 1) };
                let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |end| start + end);
                if start >= end {
                    return (Err(failure), bad);
                }
                bad.push((failure, text[start..end].to_vec()));
                text[start..end].fill(b' ');
            }
            outcome => return (outcome, bad),
        }
    }
}

impl<V: Stored, R: Read + Send> Source for SvmlightBlocks<'_, V, R> {
    fn next(&mut self) -> Batch {
        if !self.started {
            self.started = true;
            self.read();
            strip_mark(&mut self.text);
        }
        // A live stream is not waited for while there is something to learn from.
        if self.options.live && self.text.is_empty() && self.failure.is_none() {
            self.read();
        }
        let mut text = std::mem::take(&mut self.text);
        if text.is_empty() {
            let failure = self.failure.take().or_else(|| (self.rows == 0).then(|| no_rows(self.file, self.lines)));
            return Batch { blocks: Vec::new(), ended: true, failure, ends: Vec::new() };
        }
        let (skips, live, hashing) = (self.options.bad_rows.is_some(), self.options.live, self.options.hash);
        let (parsed, ()) = parallel::join(
            || parallel::map_each(text.iter_mut().collect(), |_, text| parse_leniently::<V>(text, skips, hashing)),
            || {
                if !live {
                    self.read()
                }
            },
        );
        let sizes: Vec<u64> = text.iter().map(|text| text.len() as u64).collect();
        drop(text);
        let mut ends = Vec::with_capacity(sizes.len());
        let mut pieces: Vec<(Piece<V>, Plan)> = Vec::with_capacity(parsed.len());
        let mut blocks: Vec<Dataset> = Vec::with_capacity(parsed.len());
        let mut failure = None;
        for ((piece, bad), size) in parsed.into_iter().zip(sizes) {
            self.bytes_read += size;
            if let Err(error) = self.put_away(bad) {
                failure = Some(error);
                break;
            }
            let checked = piece.map_err(|failure| failure.into_error(self.file, self.lines)).and_then(|piece| {
                self.check(&piece)?;
                self.lines += piece.lines;
                self.rows += piece.rows();
                let plan = self.plan(&piece);
                if piece.rows() == 0 {
                    return Ok(());
                }
                ends.push(self.bytes_read);
                if self.dense.is_none() {
                    let first = assemble(vec![piece], &plan)?;
                    self.dense = Some(first.matrix().is_dense());
                    blocks.push(first);
                } else {
                    pieces.push((piece, plan));
                }
                Ok(())
            });
            if let Err(error) = checked {
                failure = Some(error);
                break;
            }
        }
        let assembled: Result<Vec<Dataset>> =
            parallel::map_each(pieces, |_, (piece, plan)| assemble(vec![piece], &plan)).into_iter().collect();
        match assembled {
            Ok(more) => blocks.extend(more),
            Err(error) => failure = Some(error),
        }
        ends.truncate(blocks.len());
        Batch { blocks, ended: failure.is_some(), failure: failure.or_else(|| self.options.cancel.check().err()), ends }
    }

    fn facts(&mut self) -> Facts {
        facts(self.file, self.base, self.options)
    }
}
