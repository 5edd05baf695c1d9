//! [`SourceStream`]: the blocks of a source, one after the other, with the input that they come from.

use crate::blocks::{Batch, Source};
use crate::options::{Facts, ReadOptions};
use crate::read::Input;
use crate::source::Compression;
use maxmargin::data::{Dataset, Names};
use maxmargin::error::{Error, Result};

/// See the top of the file. The text of a block is read before the previous block is returned.
pub(crate) struct SourceStream<'a> {
    // This field comes before the input, whose temporary file is deleted with it.
    source: Box<dyn Source + 'a>,
    input: Input,
    options: &'a ReadOptions,
    ready: std::vec::IntoIter<Dataset>,
    /// Where the text of each of these ends.
    ends: std::vec::IntoIter<u64>,
    /// Where the text of the block returned last ends.
    end: Option<u64>,
    failure: Option<Error>,
    ended: bool,
    /// Whether an error was returned, which ends the iteration.
    failed: bool,
}

impl<'a> SourceStream<'a> {
    pub(crate) fn new(source: Box<dyn Source + 'a>, input: Input, options: &'a ReadOptions) -> SourceStream<'a> {
        let ready = Vec::new().into_iter();
        let (ends, end) = (Vec::new().into_iter(), None);
        SourceStream { source, input, options, ready, ends, end, failure: None, ended: false, failed: false }
    }

    /// The user's name for the input.
    pub(crate) fn file(&self) -> &str {
        &self.input.file
    }

    /// How much of an uncompressed text file was used for the blocks so far, and its size.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        let plain = self.input.compression.is_none();
        self.end.zip(self.input.bytes).filter(|_| plain)
    }

    /// The ids of the columns, if items have no features.
    pub(crate) fn own_names(&self) -> Option<Names> {
        self.source.own_names()
    }

    /// The findings. The notes are complete at the end.
    pub(crate) fn facts(&mut self) -> Facts {
        let mut facts = self.source.facts();
        facts.compression = self.input.compression.map(Compression::name);
        facts.bytes = self.input.bytes.or(facts.bytes);
        facts.stamps = self.input.lasting_stamps(self.options);
        facts
    }

    /// Ends the iteration after an error: nothing after a damaged place is read.
    pub(crate) fn stop(&mut self) {
        (self.failed, self.ready) = (true, Vec::new().into_iter());
    }

    fn step(&mut self) -> Result<Option<Dataset>> {
        loop {
            if let Some(block) = self.ready.next() {
                self.end = self.ends.next();
                return Ok(Some(block));
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            if self.ended {
                return self.input.stamps.confirm(Ok(None));
            }
            self.options.cancel.check()?;
            let Batch { blocks, ended, failure, ends } = self.source.next();
            (self.ready, self.ends) = (blocks.into_iter(), ends.into_iter());
            self.ended = ended || failure.is_some();
            self.failure = failure.map(|error| {
                let stopped = self.options.cancel.check().and_then(|()| self.input.stamps.confirm(Ok(())));
                stopped.err().unwrap_or(error)
            });
        }
    }
}

impl Iterator for SourceStream<'_> {
    type Item = Result<Dataset>;

    fn next(&mut self) -> Option<Result<Dataset>> {
        if self.failed {
            return None;
        }
        let step = self.step();
        if step.is_err() {
            self.stop();
        }
        step.transpose()
    }
}
