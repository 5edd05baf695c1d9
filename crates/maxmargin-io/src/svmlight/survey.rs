//! [`Survey`]: what has to be known of a whole file before its rows can be stored one after the other.

use super::assemble::{Stored, is_dense};
use super::piece::{Piece, Seen, parse_block};
use super::{check_groups, columns, decide_base, fill, guess_entries, known_base, no_rows, strip_mark};
use crate::options::ReadOptions;
use maxmargin::data::Names;
use maxmargin::error::Result;
use rayon::prelude::*;
use std::collections::HashSet;
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

/// What a pass over the text tells.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) base: u8,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) dense: bool,
    pub(crate) with_weights: bool,
    /// Bytes of all row ids, where every row has one.
    pub(crate) id_bytes: Option<u64>,
    /// Where each group starts, the number of rows at the end, and their names.
    pub(crate) groups: Option<(Vec<u64>, Names)>,
}

#[derive(Default)]
struct Gathered {
    lines: u64,
    rows: usize,
    entries: usize,
    largest: Option<u32>,
    zero: Option<(u64, Seen)>,
    rows_before_zero: u64,
    others_start_later: bool,
    with_qid: Option<(u64, Seen)>,
    without_qid: Option<(u64, Seen)>,
    with_weights: bool,
    without_ids: bool,
    id_bytes: u64,
    starts: Vec<u64>,
    names: Vec<u8>,
    ends: Vec<u64>,
    seen: HashSet<u64>,
    last: Vec<u8>,
    /// Scattered groups, or rows with several labels or none.
    unfit: bool,
}

impl Survey {
    /// Reads the text once. None where its rows cannot be stored as they come: groups are scattered, or rows have several
    /// labels or none.
    pub(crate) fn take<V: Stored>(
        file: &str,
        mut stream: impl Read + Send,
        bytes: usize,
        options: &ReadOptions,
    ) -> Result<Option<Survey>> {
        let count = 2 * rayon::current_num_threads();
        let mut carry = Vec::new();
        let mut all = Gathered::default();
        let at_file = |error: maxmargin::error::Error| error.in_file(file);
        let mut text = fill(&mut stream, &mut carry, count, bytes, options).map_err(at_file)?;
        strip_mark(&mut text);
        while !text.is_empty() {
            let (parsed, next) = rayon::join(
                || {
                    text.par_iter()
                        .with_max_len(1)
                        .map(|block| parse_block::<V>(block, guess_entries(block)))
                        .collect::<Vec<_>>()
                },
                || fill(&mut stream, &mut carry, count, bytes, options),
            );
            for piece in parsed {
                all.add(piece.map_err(|failure| failure.into_error(file, all.lines))?);
            }
            text = next.map_err(at_file)?;
            options.cancel.check()?;
        }
        if all.rows == 0 {
            return Err(no_rows(file, all.lines));
        }
        let seen = |first: &'_ Option<(u64, Seen)>| first.as_ref().map(|(lines, seen)| (*lines, seen.clone()));
        let (with, without, zero) = (seen(&all.with_qid), seen(&all.without_qid), seen(&all.zero));
        fn borrowed(first: &Option<(u64, Seen)>) -> Option<(u64, &Seen)> {
            first.as_ref().map(|(lines, seen)| (*lines, seen))
        }
        check_groups(file, borrowed(&with), borrowed(&without))?;
        let from_zero = all.rows_before_zero == 0 || all.others_start_later;
        let base = decide_base(file, known_base(options), borrowed(&zero), from_zero)?;
        if all.unfit {
            return Ok(None);
        }
        let cols = columns(all.largest, base, options);
        let groups = (!all.starts.is_empty()).then(|| {
            all.starts.push(all.rows as u64);
            (all.starts, Names::from_parts(all.names.into(), all.ends.into()))
        });
        Ok(Some(Survey {
            base,
            rows: all.rows,
            cols,
            entries: all.entries,
            dense: is_dense(all.rows, all.entries, cols),
            with_weights: all.with_weights,
            id_bytes: (!all.without_ids).then_some(all.id_bytes),
            groups,
        }))
    }
}

impl Gathered {
    fn add<V>(&mut self, piece: Piece<V>) {
        let lines = self.lines;
        let note = |first: &mut Option<(u64, Seen)>, seen: &Option<Seen>| {
            if first.is_none() {
                *first = seen.as_ref().map(|seen| (lines, seen.clone()));
            }
        };
        if self.zero.is_none() {
            self.rows_before_zero += piece.zero_index.rows_before;
            self.others_start_later |= piece.zero_index.others_start_later;
        }
        note(&mut self.zero, &piece.zero_index.first);
        note(&mut self.with_qid, &piece.with_qid);
        note(&mut self.without_qid, &piece.without_qid);
        self.lines += piece.lines;
        self.entries += piece.values.len();
        self.largest = self.largest.max(piece.largest);
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
            self.starts.push((self.rows + row) as u64);
            self.names.extend_from_slice(name);
            self.ends.push(self.names.len() as u64);
            self.last.clear();
            self.last.extend_from_slice(name);
        }
        self.rows += piece.rows();
    }
}
