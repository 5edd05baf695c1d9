//! [`Kept`]: passes text through and keeps the most recent part, so that an error can quote the file.

use maxmargin::error::{Code, Error};
use std::io::{ErrorKind, Read};
use std::ops::Range;

/// A reader that remembers what it read since a given byte.
#[derive(Debug)]
pub(crate) struct Kept<R> {
    inner: R,
    bytes: Vec<u8>,
    /// The position of the first byte kept.
    start: u64,
    /// Number of line breaks before that.
    lines: u64,
    /// How much of `bytes` may be dropped the next time they are moved.
    forgotten: usize,
    /// Where the record starts that is being read.
    record: u64,
}

/// A record of a table may have this many bytes of text. A longer one is refused, because a small compressed file can hold
/// a line, or a quote that is not closed, that fills any memory.
pub(crate) const LONGEST_RECORD: usize = 32 << 20;

impl<R> Kept<R> {
    pub(crate) fn new(inner: R) -> Kept<R> {
        Kept { inner, bytes: Vec::new(), start: 0, lines: 0, forgotten: 0, record: 0 }
    }

    /// A record starts at this byte.
    pub(crate) fn begin(&mut self, byte: u64) {
        self.record = byte;
    }

    /// The text from a byte on, as far as it has been read.
    pub(crate) fn since(&self, byte: u64) -> &[u8] {
        let offset = usize::try_from(byte.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(offset..).unwrap_or_default()
    }

    /// The line, counted from 1, that contains a byte.
    pub(crate) fn line_of(&self, byte: u64) -> u64 {
        let offset = usize::try_from(byte.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len());
        self.lines + memchr::memchr_iter(b'\n', &self.bytes[..offset]).count() as u64 + 1
    }

    /// Drops the text before a byte.
    pub(crate) fn forget_before(&mut self, byte: u64) {
        self.forgotten = usize::try_from(byte.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len());
        // Moving the rest to the front is expensive, so it waits until the rest is the smaller part.
        if self.forgotten * 2 > self.bytes.len() {
            self.lines += memchr::memchr_iter(b'\n', &self.bytes[..self.forgotten]).count() as u64;
            self.start += self.forgotten as u64;
            self.bytes.drain(..self.forgotten);
            self.forgotten = 0;
        }
    }
}

impl<R: Read> Kept<R> {
    /// Number of bytes that arrived so far.
    pub(crate) fn received(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    #[cold]
    fn long_record(&self) -> Error {
        Error::new(Code::LongLine, format!("a row of the table has more than {} MiB", LONGEST_RECORD >> 20))
            .help("a row is one line; look for line ends that are missing, or for a quote that is not closed")
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut count = self.read_once(buffer)?;
        if self.start == 0 && self.bytes.is_empty() {
            // A byte order mark is recognised only if its bytes arrive together.
            while count > 0 && count < 3 && count < buffer.len() {
                match self.read_once(&mut buffer[count..])? {
                    0 => break,
                    more => count += more,
                }
            }
        }
        self.bytes.extend_from_slice(&buffer[..count]);
        let read = self.start + self.bytes.len() as u64 - self.record;
        if read > LONGEST_RECORD as u64 + buffer.len() as u64 {
            return Err(std::io::Error::other(self.long_record()));
        }
        Ok(count)
    }
}

/// The positions of the fields of a record in the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RawRecord {
    /// The bytes of each field, quotes included.
    pub(crate) fields: Vec<Range<usize>>,
    /// Where the record ends, without its line break.
    pub(crate) end: usize,
    /// Whether the text ends inside quotes.
    pub(crate) open_quote: bool,
}

impl RawRecord {
    /// Splits the first record of a text by the rules of the reader: a field that starts with a quote ends at the next
    /// quote that is not doubled, and empty lines before a record are skipped.
    pub(crate) fn split(text: &[u8], delimiter: u8) -> RawRecord {
        let mut at = if text.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        at += text[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let mut record = RawRecord::default();
        loop {
            let start = at;
            if text.get(at) == Some(&b'"') {
                at += 1;
                loop {
                    match memchr::memchr(b'"', &text[at..]) {
                        None => {
                            record.fields.push(start..text.len());
                            return RawRecord { end: text.len(), open_quote: true, ..record };
                        }
                        Some(quote) if text.get(at + quote + 1) == Some(&b'"') => at += quote + 2,
                        Some(quote) => {
                            at += quote + 1;
                            break;
                        }
                    }
                }
            }
            at += text[at..]
                .iter()
                .position(|&byte| byte == delimiter || byte == b'\n' || byte == b'\r')
                .unwrap_or(text.len() - at);
            record.fields.push(start..at);
            if text.get(at) != Some(&delimiter) {
                return RawRecord { end: at, ..record };
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(text: &'a str, record: &RawRecord) -> Vec<&'a str> {
        record.fields.iter().map(|range| &text[range.clone()]).collect()
    }

    #[test]
    fn raw_fields_are_found_with_quotes_and_line_breaks() {
        let text = "\r\n\"a \"\"b\"\"\nc\",5\" pipe,\"x\"y,\r\nnext";
        let record = RawRecord::split(text.as_bytes(), b',');
        assert_eq!(fields(text, &record), ["\"a \"\"b\"\"\nc\"", "5\" pipe", "\"x\"y", ""]);
        assert!(!record.open_quote);
        assert_eq!(&text[record.end..], "\r\nnext");
    }

    #[test]
    fn an_open_quote_is_noticed() {
        assert!(RawRecord::split(b"1,\"2\n3,4\n", b',').open_quote);
        assert!(!RawRecord::split(b"1,\"2\n3\"", b',').open_quote);
    }

    #[test]
    fn lines_are_counted_across_what_was_forgotten() {
        let text = "one\ntwo\nthree\nfour\n".repeat(100);
        let mut kept = Kept::new(text.as_bytes());
        let mut buffer = [0; 64];
        let mut at = 0u64;
        loop {
            let count = kept.read(&mut buffer).expect("no error");
            if count == 0 {
                break;
            }
            at += count as u64;
            let expected = text[..at as usize - 1].matches('\n').count() as u64 + 1;
            assert_eq!(kept.line_of(at - 1), expected);
            assert_eq!(kept.since(at - 5), &text.as_bytes()[at as usize - 5..at as usize]);
            kept.forget_before(at - 10);
        }
        assert!(kept.bytes.len() < 200);
    }
}
