//! Sizes that a Parquet or Arrow file claims, checked before the decoders allocate memory for them.
//!
//! A decoder must trust the size that a compressed part claims to have, and a file of a few bytes can claim gigabytes.
//! Every claim is compared here with what is stored. Whatever else is wrong with a file is left to the decoders, which
//! report it better.

use arrow_ipc::{Message, RecordBatch, root_as_footer, root_as_message};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// What is wrong with a file.
type Claim<T = ()> = std::result::Result<T, String>;

/// No compression used in these formats makes data smaller than by this factor: zstd writes at least four bytes for a
/// block, which has at most 128 KiB.
const MOST_RATIO: u64 = 1 << 15;

/// One block, however few bytes are stored.
const ONE_BLOCK: u64 = 128 << 10;

fn fits(claimed: u64, stored: u64) -> Claim {
    if claimed <= stored.saturating_mul(MOST_RATIO).saturating_add(ONE_BLOCK) {
        return Ok(());
    }
    Err(format!("it claims that {stored} compressed bytes hold {claimed}, which no compression can"))
}

/// A file that is read at any position.
struct Input {
    file: File,
    bytes: u64,
}

impl Input {
    fn open(path: &Path) -> io::Result<Input> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Input { file, bytes })
    }

    /// Some bytes; `None` if they are not all inside the file.
    fn at(&mut self, start: u64, length: u64) -> Option<Vec<u8>> {
        if start.checked_add(length)? > self.bytes {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.seek(SeekFrom::Start(start)).ok()?;
        self.file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn number(&mut self, start: u64) -> Option<u32> {
        self.at(start, 4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// Checks an Arrow file, or a stream.
pub(crate) fn check_arrow(path: &Path, is_file: bool) -> Claim {
    let Ok(mut input) = Input::open(path) else { return Ok(()) };
    if is_file { arrow_file(&mut input) } else { arrow_stream(&mut input) }
}

fn arrow_file(input: &mut Input) -> Claim {
    const TAIL: u64 = 10;
    let Some(length) = input.bytes.checked_sub(TAIL).and_then(|start| input.number(start)) else { return Ok(()) };
    let start = input.bytes.checked_sub(TAIL + u64::from(length));
    let footer = start.and_then(|start| input.at(start, u64::from(length)));
    let footer = footer.ok_or_else(|| format!("its footer claims {length} bytes, which the file does not have"))?;
    let Ok(footer) = root_as_footer(&footer) else { return Ok(()) };
    for block in footer.recordBatches().into_iter().chain(footer.dictionaries()).flatten() {
        let sizes =
            (u64::try_from(block.offset()), u64::try_from(block.metaDataLength()), u64::try_from(block.bodyLength()));
        let (Ok(start), Ok(about), Ok(body)) = sizes else { return Err("a batch has a negative size".to_string()) };
        let after = start.saturating_add(about);
        if after.saturating_add(body) > input.bytes {
            return Err("a batch lies outside of the file".to_string());
        }
        let Some(about) = input.at(start, about) else { continue };
        let marked = about.starts_with(&[0xff; 4]);
        if let Some(Ok(message)) = about.get(if marked { 8 } else { 4 }..).map(root_as_message) {
            arrow_message(input, &message, after, body)?;
        }
    }
    Ok(())
}

fn arrow_stream(input: &mut Input) -> Claim {
    let mut at = 0;
    loop {
        let Some(mut length) = input.number(at) else { return Ok(()) };
        at += 4;
        if length == u32::MAX {
            let Some(marked) = input.number(at) else { return Ok(()) };
            length = marked;
            at += 4;
        }
        let about = input.at(at, u64::from(length)).unwrap_or_default();
        let Ok(message) = root_as_message(&about) else { return Ok(()) };
        at += u64::from(length);
        let Ok(body) = u64::try_from(message.bodyLength()) else { return Ok(()) };
        if at.saturating_add(body) > input.bytes {
            return Err("a batch claims more bytes than the stream has".to_string());
        }
        arrow_message(input, &message, at, body)?;
        at += body;
    }
}

fn arrow_message(input: &mut Input, message: &Message<'_>, start: u64, body: u64) -> Claim {
    let dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
    match message.header_as_record_batch().or(dictionary) {
        Some(batch) => arrow_batch(input, &batch, start, body),
        None => Ok(()),
    }
}

fn arrow_batch(input: &mut Input, batch: &RecordBatch<'_>, start: u64, body: u64) -> Claim {
    let compressed = batch.compression().is_some();
    let mut decoded = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let (Ok(offset), Ok(length)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length())) else {
            return Err("a buffer has a negative size".to_string());
        };
        if offset.saturating_add(length) > body {
            return Err("a buffer lies outside of its batch".to_string());
        }
        // A compressed buffer begins with its size; −1 says that it is stored as it is.
        let prefix = if compressed && length >= 8 { input.at(start + offset, 8) } else { None };
        let claimed = prefix.and_then(|prefix| Some(i64::from_le_bytes(*prefix.first_chunk()?)));
        let claimed = claimed.and_then(|claimed| u64::try_from(claimed).ok());
        if let Some(claimed) = claimed {
            fits(claimed, length - 8)?;
        }
        decoded = decoded.saturating_add(claimed.unwrap_or(length));
    }
    // A row takes a bit at least.
    match u64::try_from(batch.length()) {
        Ok(rows) if rows <= decoded.saturating_mul(8) => Ok(()),
        _ => Err(format!("a batch of {decoded} bytes claims {} rows", batch.length())),
    }
}

/// Checks the pages of a column chunk of a Parquet file, which lies between these bytes.
pub(crate) fn check_pages(path: &Path, chunks: impl Iterator<Item = (u64, u64)>) -> Claim {
    let Ok(mut input) = Input::open(path) else { return Ok(()) };
    for (mut at, end) in chunks {
        while at < end {
            let mut sizes = [PAGE_HEADER, LONG_PAGE_HEADER]
                .into_iter()
                .filter_map(|most| PageSizes::read(&input.at(at, most.min(end - at)).unwrap_or_default()));
            let Some(page) = sizes.next() else {
                return Err("the header of a page is damaged, or longer than 1 MiB".to_string());
            };
            fits(page.decoded, page.stored)?;
            at = at.saturating_add(page.header).saturating_add(page.stored);
        }
    }
    Ok(())
}

/// The length of almost any header of a page. It may hold the least and the largest value of the page.
const PAGE_HEADER: u64 = 8 << 10;

/// The most that is read of a longer one.
const LONG_PAGE_HEADER: u64 = 1 << 20;

/// The sizes of a page of a Parquet file, from its header in the compact protocol of Thrift.
struct PageSizes {
    header: u64,
    decoded: u64,
    stored: u64,
}

impl PageSizes {
    fn read(bytes: &[u8]) -> Option<PageSizes> {
        let mut compact = Compact { bytes, at: 0 };
        let (mut field, mut decoded, mut stored) = (0, None, None);
        while let Some((kind, id)) = compact.field(field)? {
            field = id;
            match (id, kind) {
                (2, INTEGER) => decoded = Some(compact.integer()?),
                (3, INTEGER) => stored = Some(compact.integer()?),
                _ => compact.skip(kind, 0)?,
            }
        }
        Some(PageSizes {
            header: compact.at as u64,
            decoded: decoded?.try_into().ok()?,
            stored: stored?.try_into().ok()?,
        })
    }
}

/// The type of 32-bit numbers.
const INTEGER: u8 = 5;

/// Values in the compact protocol. `None` means that the bytes end, or are something else.
struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The type and the number of the next field; the inner `None` is the end of the struct.
    fn field(&mut self, last: i64) -> Option<Option<(u8, i64)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let id = match byte >> 4 {
            0 => self.integer()?,
            step => last.checked_add(i64::from(step))?,
        };
        Some(Some((byte & 0xf, id)))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        const DEEPEST: usize = 8;
        match kind {
            // Booleans are in the type.
            1 | 2 => {}
            3 => self.at += 1,
            4..=6 => drop(self.unsigned()?),
            7 => self.at += 8,
            8 => {
                let length = usize::try_from(self.unsigned()?).ok()?;
                self.at = self.at.checked_add(length)?;
            }
            12 if depth < DEEPEST => {
                let mut field = 0;
                while let Some((kind, id)) = self.field(field)? {
                    field = id;
                    self.skip(kind, depth + 1)?;
                }
            }
            9 | 10 if depth < DEEPEST => {
                let head = *self.bytes.get(self.at)?;
                self.at += 1;
                let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                for _ in 0..count {
                    // In a list, a boolean takes a byte.
                    match head & 15 {
                        1 | 2 => self.at += 1,
                        kind => self.skip(kind, depth + 1)?,
                    }
                    self.bytes.get(..self.at)?;
                }
            }
            // Headers of pages hold no maps.
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_the_header_of_a_page() {
        // type 0, decoded 300, stored 7, a struct with a boolean, a text and a number, and the end.
        let header = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 14, 0x2c, 0x11, 0x18, 2, b'a', b'b', 0x15, 4, 0, 0];
        let page = PageSizes::read(&header).expect("a header");
        assert_eq!((page.header, page.decoded, page.stored), (17, 300, 7));
        for end in 0..header.len() {
            assert!(PageSizes::read(&header[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn a_page_that_claims_too_much_is_refused_wherever_it_is() {
        let page = |decoded: &[u8]| [&[0x15, 0, 0x15], decoded, &[0x15, 14, 0], &[0; 7]].concat();
        let (small, huge) = (page(&[14]), page(&[0xfe, 0xff, 0xff, 0xff, 0x0f]));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let check = |bytes: &[u8]| {
            std::fs::write(file.path(), bytes).expect("written");
            check_pages(file.path(), [(0, bytes.len() as u64)].into_iter())
        };
        check(&[&small[..], &small].concat()).expect("both are sound");
        check(&[&small[..], &huge].concat()).expect_err("two gigabytes in seven bytes");
    }

    #[test]
    fn no_compression_is_as_good_as_claimed() {
        fits(ONE_BLOCK, 0).expect("one block");
        fits(MOST_RATIO * 1000, 1000).expect("the best of zstd");
        fits(4 << 30, 1900).expect_err("four gigabytes in two kilobytes");
    }
}
