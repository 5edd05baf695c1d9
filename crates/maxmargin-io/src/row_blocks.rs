//! [`RowBlocks`]: rows that are used once and in order, in bounded memory, for inputs of any size.

use crate::blocks::{BlockOptions, Source, StoredBlocks, content};
use crate::hashing::Hashing;
use crate::options::{Facts, Format, Pairing, Precision, ReadOptions};
use crate::read::{Input, unread};
use crate::sides::SideFiles;
use crate::source_stream::SourceStream;
use crate::svmlight::SvmlightBlocks;
use crate::{cache, csv};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};

/// An iterator over blocks of rows with targets. Blocks follow each other in input order; within one, the rows of a query
/// stand together. With [`Pairing::Sides`] a table may hold a pair in each row instead. With [`ReadOptions::steady`] the layout of the rows does
/// not depend on the place where the stream begins or is cut.
///
/// The file may be `-` for standard input, and text may be compressed. The text of a block is read before the previous
/// block is returned, so that only a few blocks are in memory.
///
/// ```
/// use maxmargin_io::{ReadOptions, RowBlocks};
/// # let folder = tempfile::tempdir().unwrap();
/// # let mails = folder.path().join("mails.txt");
/// std::fs::write(&mails, "1 3:1\n-1 7:2.5\n").unwrap();
/// let options = ReadOptions { steady: true, ..ReadOptions::default() };
/// let mut blocks = RowBlocks::open(mails.to_str().unwrap(), &options, 1 << 16).unwrap();
/// let rows: usize = blocks.by_ref().map(|block| block.unwrap().rows()).sum();
/// assert_eq!(rows, 2);
/// ```
pub struct RowBlocks<'a> {
    blocks: SourceStream<'a>,
    sides: SideFiles,
    pairing: Pairing,
}

impl<'a> RowBlocks<'a> {
    /// Opens a file, or `-` for standard input. Blocks have about this many bytes of text or of values.
    pub fn open(file: &'a str, options: &'a ReadOptions, bytes: usize) -> Result<RowBlocks<'a>> {
        RowBlocks::opened(file, options, bytes.max(1)).map_err(|error| options.cancel.check().err().unwrap_or(error))
    }

    fn opened(file: &'a str, options: &'a ReadOptions, bytes: usize) -> Result<RowBlocks<'a>> {
        let mut input = Input::open(file, options)?;
        let name = if file == "-" { "standard input" } else { file };
        let sides = input.path.as_deref().map_or(Ok(SideFiles::default()), SideFiles::find)?;
        let (stream, path) = content(&mut input)?;
        let no_base = || Error::new(Code::Internal, "the index base of a stream is known");
        let source: Box<dyn Source + 'a> = match (input.format, path, options.precision) {
            (Format::Svmlight, None, Precision::F32) => {
                Box::new(SvmlightBlocks::<f32, _>::new(name, stream, bytes, options).ok_or_else(no_base)?)
            }
            (Format::Svmlight, None, Precision::F64) => {
                Box::new(SvmlightBlocks::<f64, _>::new(name, stream, bytes, options).ok_or_else(no_base)?)
            }
            (Format::Csv | Format::Tsv, None, _) => csv::blocks(name, stream, input.delimiter, bytes, options)?,
            #[cfg(feature = "tables")]
            (Format::Parquet, Some(path), _) => crate::parquet::blocks(name, &path, bytes, options)?,
            #[cfg(feature = "tables")]
            (Format::Arrow, Some(path), _) => crate::arrow::blocks(name, &path, bytes, options)?,
            (Format::Mmd, Some(path), _) => {
                let block = BlockOptions { bytes, ..BlockOptions::default() };
                let loaded = Hashing::check_stored(cache::open(name, &path)?, options)?;
                Box::new(StoredBlocks::new(loaded, &block))
            }
            (format, ..) => return Err(unread(name, format)),
        };
        let pairing = options.pairing.clone();
        Ok(RowBlocks { blocks: SourceStream::new(source, input, options), sides, pairing })
    }

    /// The findings. The notes are complete at the end.
    pub fn facts(&mut self) -> Facts {
        self.blocks.facts()
    }

    /// How many bytes of an uncompressed text file were used for the blocks so far, and its size; none for other inputs.
    pub fn place(&self) -> Option<(u64, u64)> {
        self.blocks.place()
    }

    fn checked(&mut self, block: Dataset) -> Result<Dataset> {
        match (block.pairs(), &self.pairing) {
            (None, _) => self.sides.add(block),
            (Some(_), Pairing::Sides) => Ok(block),
            (Some(_), _) => Err(Error::new(Code::BadTable, "the file holds pairs, and this task learns from rows")
                .in_file(self.blocks.file())
                .help("give a table with a row for each example, or learn another task")),
        }
    }
}

impl Iterator for RowBlocks<'_> {
    type Item = Result<Dataset>;

    fn next(&mut self) -> Option<Result<Dataset>> {
        let Some(block) = self.blocks.next() else {
            let sides = std::mem::take(&mut self.sides).finish();
            return sides.err().map(Err);
        };
        let step = block.and_then(|block| self.checked(block));
        if step.is_err() {
            self.blocks.stop();
        }
        Some(step)
    }
}
