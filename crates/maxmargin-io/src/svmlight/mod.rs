//! svmlight / LETOR text: `target [qid:ID] [cost:W] index:value … [# comment]`.
//!
//! The text is cut at newlines into blocks, which are parsed in parallel into pieces and joined at the end. Mapped
//! files and decompressed streams use the same code. Rows of one query may be anywhere. Several labels are separated by
//! commas; a row that starts with a blank has none. Indices count from 0 or from 1, which is detected and reported.

mod assemble;
mod blocks;
mod piece;
mod survey;
mod write;

pub(crate) use assemble::Stored;
pub(crate) use blocks::SvmlightBlocks;
pub(crate) use survey::{Outline, Survey};
pub use write::{SvmlightWriteOptions, write_blocks, write_dataset};

use crate::options::{Facts, Format, Loaded, Precision, ReadOptions};
use assemble::{Plan, assemble};
use maxmargin::error::{Code, Error, Result};
use maxmargin::parallel;
use memchr::{memchr, memchr_iter, memrchr};
use piece::{Indices, Piece, Seen, parse_block};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of text that one thread parses at a time: small enough to divide the work evenly and to check the cancel
/// flag often.
const BLOCK: usize = 2 << 20;

/// A row may have this many bytes of text. A longer line is refused, because a small compressed file can hold a line that
/// fills any memory.
pub(crate) const LONGEST_LINE: usize = 128 << 20;

/// Some editors put this before the first character of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads text that is in memory or mapped.
pub fn read_text(file: &str, text: &[u8], options: &ReadOptions) -> Result<Loaded> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match options.precision {
        Precision::F32 => finish(file, parse_text::<f32>(file, text, options)?, options),
        Precision::F64 => finish(file, parse_text::<f64>(file, text, options)?, options),
    }
}

/// Reads text from a stream, parsing one batch of blocks while the next one is decompressed.
pub fn read_stream(file: &str, stream: impl Read + Send, options: &ReadOptions) -> Result<Loaded> {
    match options.precision {
        Precision::F32 => finish(file, parse_stream::<f32>(file, stream, options)?, options),
        Precision::F64 => finish(file, parse_stream::<f64>(file, stream, options)?, options),
    }
}

/// The expected number of features in a block, so that vectors grow once: a value and its index take about eight bytes
/// of text.
fn guess_entries(text: &[u8]) -> usize {
    let head = &text[..text.len().min(16 << 10)];
    if head.is_empty() {
        return 0;
    }
    let colons = memchr_iter(b':', head).count();
    (text.len() as f64 / head.len() as f64 * colons as f64 * 1.05) as usize + 64
}

fn parse_text<V: Stored>(file: &str, text: &[u8], options: &ReadOptions) -> Result<Vec<Piece<V>>> {
    let mut blocks = Vec::with_capacity(text.len() / BLOCK + 1);
    let mut start = 0;
    let whole_lines = memrchr(b'\n', text).map_or(0, |newline| newline + 1);
    while start < whole_lines {
        let aim = (start + BLOCK).min(whole_lines) - 1;
        let end = memchr(b'\n', &text[aim..whole_lines]).map_or(whole_lines, |newline| aim + newline + 1);
        blocks.push(start..end);
        start = end;
    }
    let first_bad = AtomicUsize::new(usize::MAX);
    let mut parsed = parallel::map(blocks.len(), |number| {
        if options.cancel.is_raised() || first_bad.load(Ordering::Relaxed) < number {
            return None;
        }
        let block = &text[blocks[number].clone()];
        let result = parse_block(block, guess_entries(block), options.hash);
        if result.is_err() {
            first_bad.fetch_min(number, Ordering::Relaxed);
        }
        Some(result)
    });
    options.cancel.check()?;
    if whole_lines < text.len() {
        let mut last = text[whole_lines..].to_vec();
        last.push(b'\n');
        parsed.push(Some(parse_block(&last, guess_entries(&last), options.hash)));
        blocks.push(whole_lines..text.len());
    }
    let mut pieces = Vec::with_capacity(parsed.len());
    for (result, block) in parsed.into_iter().zip(blocks) {
        match result {
            Some(Ok(piece)) => pieces.push(piece),
            Some(Err(failure)) => {
                let lines = memchr_iter(b'\n', &text[..block.start]).count() as u64;
                return Err(failure.into_error(file, lines));
            }
            // Blocks are skipped only after a bad one, which comes first here.
            None => return Err(Error::new(Code::Internal, "a block of text was skipped").in_file(file)),
        }
    }
    Ok(pieces)
}

fn parse_stream<V: Stored>(file: &str, mut stream: impl Read + Send, options: &ReadOptions) -> Result<Vec<Piece<V>>> {
    let batch_blocks = 2 * parallel::threads();
    let mut carry = Vec::new();
    let mut lines = 0;
    let mut pieces: Vec<Piece<V>> = Vec::new();
    let mut batch = fill(&mut stream, &mut carry, batch_blocks, BLOCK, options).map_err(|error| error.in_file(file))?;
    strip_mark(&mut batch);
    while !batch.is_empty() {
        let (parsed, next) = parallel::join(
            || {
                parallel::map(batch.len(), |number| {
                    parse_block(&batch[number], guess_entries(&batch[number]), options.hash)
                })
            },
            || fill(&mut stream, &mut carry, batch_blocks, BLOCK, options),
        );
        for result in parsed {
            let piece: Piece<V> = result.map_err(|failure| failure.into_error(file, lines))?;
            lines += piece.lines;
            pieces.push(piece);
        }
        batch = next.map_err(|error| error.in_file(file))?;
        options.cancel.check()?;
    }
    Ok(pieces)
}

/// Removes the byte order mark from the first block of a file.
fn strip_mark(blocks: &mut [Vec<u8>]) {
    if let Some(first) = blocks.first_mut()
        && first.starts_with(BYTE_ORDER_MARK)
    {
        first.drain(..BYTE_ORDER_MARK.len());
    }
}

/// Reads up to `count` blocks of whole lines, each of about this many bytes. What follows the last newline is kept for
/// the next call.
fn fill(
    stream: &mut impl Read,
    carry: &mut Vec<u8>,
    count: usize,
    bytes: usize,
    options: &ReadOptions,
) -> Result<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    while blocks.len() < count && !options.cancel.is_raised() {
        let mut block = std::mem::take(carry);
        let wanted = bytes.max((2 * block.len()).min(LONGEST_LINE + 2));
        let before = block.len();
        block.reserve_exact(wanted + 1 - before);
        stream
            .by_ref()
            .take((wanted - before) as u64)
            .read_to_end(&mut block)
            .map_err(|error| crate::source::read_error(&error))?;
        let ended = block.len() < wanted;
        if ended && !block.is_empty() && !block.ends_with(b"\n") {
            block.push(b'\n');
        }
        match memrchr(b'\n', &block) {
            Some(newline) => {
                *carry = block.split_off(newline + 1);
                blocks.push(block);
            }
            // Such a line has no end that could be waited for. The parser refuses it.
            None if block.len() > LONGEST_LINE + 1 => {
                block.push(b'\n');
                blocks.push(block);
                break;
            }
            None => *carry = block,
        }
        if ended {
            break;
        }
    }
    Ok(blocks)
}

/// Reads what is there, at least one whole line, up to about this many bytes; nothing at the end.
fn fill_live(stream: &mut impl Read, carry: &mut Vec<u8>, bytes: usize, options: &ReadOptions) -> Result<Vec<Vec<u8>>> {
    let mut block = std::mem::take(carry);
    let mut ended = false;
    let mut newline = None;
    while newline.is_none() && !ended && !options.cancel.is_raised() {
        let before = block.len();
        block.resize(before + bytes, 0);
        let read = match stream.read(&mut block[before..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                block.truncate(before);
                continue;
            }
            other => other.map_err(|error| crate::source::read_error(&error))?,
        };
        block.truncate(before + read);
        ended = read == 0;
        newline = memrchr(b'\n', &block[before..]).map(|place| before + place);
        if newline.is_none() && block.len() > LONGEST_LINE + 1 {
            // The parser refuses such a line.
            block.push(b'\n');
            newline = Some(block.len() - 1);
        }
    }
    if ended && !block.is_empty() {
        block.push(b'\n');
        newline = Some(block.len() - 1);
    }
    let Some(newline) = newline else {
        *carry = block;
        return Ok(Vec::new());
    };
    *carry = block.split_off(newline + 1);
    Ok(vec![block])
}

fn finish<V: Stored>(file: &str, pieces: Vec<Piece<V>>, options: &ReadOptions) -> Result<Loaded> {
    let rows: usize = pieces.iter().map(Piece::rows).sum();
    let lines: u64 = pieces.iter().map(|piece| piece.lines).sum();
    if rows == 0 {
        return Err(no_rows(file, lines));
    }
    let with = first_seen(&pieces, |piece| piece.with_qid.as_ref());
    check_groups(file, with, first_seen(&pieces, |piece| piece.without_qid.as_ref()))?;
    let plan = plan(file, &pieces, options)?;
    let data = assemble(pieces, &plan)?;
    Ok(Loaded { data, facts: facts(file, plan.base, options) })
}

fn facts(file: &str, base: u8, options: &ReadOptions) -> Facts {
    let notes = options.hash.map(|hashing| hashing.note()).into_iter().collect();
    let index_base = options.hash.is_none().then_some(base);
    Facts { file: file.to_string(), format: Some(Format::Svmlight), index_base, notes, ..Facts::default() }
}

fn no_rows(file: &str, lines: u64) -> Error {
    let message = if lines == 0 { "the file is empty" } else { "the file has only comments and blank lines" };
    Error::new(Code::NoRows, message).in_file(file).help("a row is `target index:value …`, one per line")
}

/// Checks that either every row has a query id or none has. The arguments are the first row with and the first without
/// one, each with the number of lines before its piece.
fn check_groups(file: &str, with: Option<(u64, &Seen)>, without: Option<(u64, &Seen)>) -> Result<()> {
    let (Some((with_lines, with)), Some((lines, without))) = (with, without) else { return Ok(()) };
    Err(Error::new(
        Code::MixedGroups,
        format!("line {} has a query id, and line {} has none", with_lines + with.line + 1, lines + without.line + 1),
    )
    .at(without.place(file, lines, "expected qid:ID before this"))
    .help("give every row a `qid:ID` right after the target, or none"))
}

/// The first occurrence of something over all pieces, and the number of lines before its piece.
fn first_seen<'a, V>(pieces: &'a [Piece<V>], of: impl Fn(&'a Piece<V>) -> Option<&'a Seen>) -> Option<(u64, &'a Seen)> {
    let mut lines = 0;
    pieces.iter().find_map(|piece| {
        let found = of(piece).map(|seen| (lines, seen));
        lines += piece.lines;
        found
    })
}

/// Decides the index base and the number of columns.
fn plan<V>(file: &str, pieces: &[Piece<V>], options: &ReadOptions) -> Result<Plan> {
    let zero = first_seen(pieces, |piece| piece.zero_index.first.as_ref());
    let (mut rows_before, mut others_start_later) = (0, false);
    for piece in pieces {
        rows_before += piece.zero_index.rows_before;
        others_start_later |= piece.zero_index.others_start_later;
        if piece.zero_index.first.is_some() {
            break;
        }
    }
    let base = decide_base(file, known_base(options), zero, rows_before == 0 || others_start_later)?;
    let cols = columns(pieces.iter().filter_map(|piece| piece.largest).max(), base, options);
    debug_assert!(pieces.iter().all(|piece| !matches!(piece.indices, Indices::Consecutive(first) if first < u32::from(base) && !piece.values.is_empty())));
    Ok(Plan { base, cols, dense: options.hash.map(|_| false) })
}

/// The index base: the requested one, otherwise the one that follows from the first index 0, if there is one.
/// `from_zero` says whether the rows before it could come from a file that counts from 0.
fn decide_base(file: &str, wanted: Option<u8>, zero: Option<(u64, &Seen)>, from_zero: bool) -> Result<u8> {
    match (wanted, zero) {
        (Some(base), None) => Ok(base),
        (Some(0), Some(_)) => Ok(0),
        (None, None) => Ok(1),
        // If all rows start at 1 until one starts at 0, the file does not count from 0.
        (None, Some(_)) if from_zero => Ok(0),
        (wanted, Some((lines, seen))) => Err(zero_index(file, lines, seen, wanted.is_some())),
    }
}

/// The index base, if it is known before the file is read.
pub(crate) fn known_base(options: &ReadOptions) -> Option<u8> {
    if options.hash.is_some() {
        return Some(0);
    }
    let known = options.index_base.or(options.features.as_ref().and_then(|features| features.index_base));
    known.or(options.steady.then_some(0))
}

fn zero_index(file: &str, lines: u64, seen: &Seen, known: bool) -> Error {
    let why = if known {
        "feature index 0 in a file that counts from 1"
    } else {
        "feature index 0, while every row before starts at 1"
    };
    Error::new(Code::BadIndex, why)
        .at(seen.place(file, lines, "expected an index from 1 on"))
        .help("number features from 1, or say that this file counts from 0 with ⟦index-base=0⟧")
}

fn columns(largest: Option<u32>, base: u8, options: &ReadOptions) -> usize {
    if let Some(hashing) = options.hash {
        return hashing.columns();
    }
    let cols = largest.map_or(0, |largest| largest as usize + 1 - usize::from(base));
    // New data may lack the model's last features. If they have more features than the model, the scorer returns an
    // error.
    cols.max(options.features.as_ref().map_or(0, |features| features.count)).max(options.least_features)
}
