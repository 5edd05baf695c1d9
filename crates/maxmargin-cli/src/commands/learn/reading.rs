//! Reads the examples of a stream in a thread of its own, one or two blocks ahead.

use maxmargin::data::Dataset;
use maxmargin::error::{Error, Result};
use maxmargin_io::{Facts, PairBlocks, ReadOptions, RowBlocks, no_thread};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Size of a block of text. It is small, so that examples from a slow stream are used soon.
const BLOCK: usize = 64 << 10;

/// What the reader says.
pub(super) enum Message {
    /// Examples, whether they are pairs of items that are each their own feature, the index base of svmlight text, and how
    /// much of the file was used for all examples so far, with its size.
    Block(Box<Dataset>, bool, Option<u8>, Option<(u64, u64)>),
    /// The end of the stream.
    End(Facts),
    Failed(Error),
}

/// Reads blocks of pairs or of rows in a separate thread. The thread ends when the blocks are no longer needed, or with
/// the program.
pub(super) fn read_ahead(file: &str, options: ReadOptions, pairs: bool) -> Result<Receiver<Message>> {
    let (sender, receiver) = sync_channel(1);
    let file = file.to_string();
    let started = std::thread::Builder::new().spawn(move || {
        let outcome = if pairs { read_pairs(&file, &options, &sender) } else { read_rows(&file, &options, &sender) };
        if let Some(last) = outcome.map_err(Message::Failed).unwrap_or_else(Some) {
            let _ = sender.send(last);
        }
    });
    started.map(|_| receiver).map_err(|error| no_thread(&error))
}

/// Sends the pairs of a file. Returns the last message, or none if nobody listens any more.
fn read_pairs(file: &str, options: &ReadOptions, sender: &SyncSender<Message>) -> Result<Option<Message>> {
    let mut blocks = PairBlocks::open(file, options, BLOCK)?;
    let mut own = None;
    while let Some(block) = blocks.next() {
        let own = *own.get_or_insert_with(|| blocks.items().is_some());
        if sender.send(Message::Block(Box::new(block?), own, None, None)).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(Message::End(blocks.facts())))
}

/// The same for rows.
fn read_rows(file: &str, options: &ReadOptions, sender: &SyncSender<Message>) -> Result<Option<Message>> {
    let mut blocks = RowBlocks::open(file, options, BLOCK)?;
    while let Some(block) = blocks.next() {
        let base = blocks.facts().index_base;
        if sender.send(Message::Block(Box::new(block?), false, base, blocks.place())).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(Message::End(blocks.facts())))
}
