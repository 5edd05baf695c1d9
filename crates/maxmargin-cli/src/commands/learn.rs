//! `maxmargin learn compare FILE -o MODEL`
//!
//! One pass over a stream of pairs. A separate thread reads one or two blocks ahead, so that an idle stream does not
//! keep the program from stopping. The complete model is saved at intervals and at the end.

use crate::args::LearnArguments;
use crate::console::Console;
use crate::for_task::ForTask;
use crate::format;
use crate::loading::{describe, ensure_apart, say_notes};
use maxmargin::data::{Dataset, Names};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::Settings;
use maxmargin::stream::{Learner, learner};
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{
    Facts, PairBlocks, Pairing, ReadOptions, Reading, load_items, load_model, no_thread, pair_options, save_model,
    scoring_options,
};
use serde_json::json;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Size of a block of text. It is small, so that pairs from a slow stream are used soon.
const BLOCK: usize = 64 << 10;
/// Number of pairs between two checks of the cancel flag.
const TURN: usize = 1 << 14;
/// The number of pairs at the first line of progress. Each further line follows when the number has doubled.
const FIRST_LINE: u64 = 1000;

pub(crate) fn run(command: &ForTask<LearnArguments>, console: &Console, cancel: &Cancel) -> Result<()> {
    let start = Instant::now();
    let arguments = &command.arguments;
    let from = arguments.from.as_deref().map(load_model).transpose()?;
    // A model made by `learn` keeps its settings; flags override them.
    let kept = from.as_ref().filter(|model| model.online.is_some()).map(|model| &model.settings);
    let settings = Settings::streamed(command.task, &command.chosen, kept)?;
    let learner = learner(&settings, from.as_ref()).map_err(|error| match &arguments.from {
        Some(file) => error.in_file(file),
        None => error,
    })?;
    ensure_writable(Path::new(&arguments.output))?;
    let inputs: Vec<&str> = std::iter::once(arguments.file.as_str()).chain(arguments.items.as_deref()).collect();
    ensure_apart(&arguments.output, &inputs)?;
    if arguments.file == "-" && arguments.items.as_deref() == Some("-") {
        return Err(Error::new(Code::Usage, "pairs and items cannot both come from standard input")
            .help("put one of them into a file"));
    }

    let (read, format) = (command.data.read()?, command.data.input_format);
    let (mut options, reading) = match &from {
        None => {
            let reading = Reading { read: read.clone(), ..Reading::default() };
            (read.options(format, cancel)?, reading)
        }
        Some(model) => {
            let kept = Reading::of(model)?;
            let reading = Reading { read: read.clone().or(kept.read)?, holdout: None, ..kept };
            (scoring_options(model, &read, format, cancel)?.0, reading)
        }
    };
    options.features_grow = true;
    let mut stream = Stream {
        learner,
        settings,
        names: FeatureNames::of(from.as_ref()),
        known: from.as_ref().map(Model::features),
        reading,
        arguments,
        console,
        start,
        next_line: 0,
        headed: false,
        skipped: 0,
    };
    let options = stream.read_items(options)?;
    if let (Some(file), Some(model)) = (&arguments.from, &from) {
        let pairs = stream.learner.progress().pairs();
        match (pairs, &model.online) {
            (0, Some(_)) => console.say(&format!(
                "continuing from the weights of {file}; the settings differ, so all counts start at zero"
            )),
            (0, None) => console.say(&format!("continuing from the weights of {file}")),
            _ => console.say(&format!("continuing from {file} after {}", format::counted(pairs, "pair", "pairs"))),
        }
    }
    stream.next_line = (2 * stream.learner.progress().pairs()).max(FIRST_LINE);
    let interrupted = stream.follow(&read_ahead(&arguments.file, options)?, cancel)?;
    stream.finish(interrupted)
}

enum Message {
    /// Pairs, and whether each item is its own feature.
    Block(Box<Dataset>, bool),
    End(Facts),
    Failed(Error),
}

/// Reads blocks in a separate thread. The thread ends when the blocks are no longer needed, or with the program.
fn read_ahead(file: &str, options: ReadOptions) -> Result<Receiver<Message>> {
    let (sender, receiver) = sync_channel(1);
    let file = file.to_string();
    let started = std::thread::Builder::new().spawn(move || {
        let mut blocks = match PairBlocks::open(&file, &options, BLOCK) {
            Ok(blocks) => blocks,
            Err(error) => return drop(sender.send(Message::Failed(error))),
        };
        let mut own = None;
        while let Some(block) = blocks.next() {
            let own = *own.get_or_insert_with(|| blocks.items().is_some());
            let message = block.map_or_else(Message::Failed, |block| Message::Block(Box::new(block), own));
            if sender.send(message).is_err() {
                return;
            }
        }
        let _ = sender.send(Message::End(blocks.facts()));
    });
    started.map(|_| receiver).map_err(|error| no_thread(&error))
}

/// The names of the features. Items without features get their columns in the order in which the stream names them.
struct FeatureNames {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl FeatureNames {
    fn of(model: Option<&Model>) -> FeatureNames {
        let names = model.and_then(|model| model.feature_names.as_ref());
        let (bytes, ends) = names.map(|names| names.parts()).unwrap_or_default();
        FeatureNames { bytes: bytes.to_vec(), ends: ends.to_vec() }
    }

    /// Adds the names of a block: those of its columns, or of the items that appear in it for the first time.
    fn take(&mut self, data: &Dataset, own: bool) {
        match (data.feature_names(), data.row_ids()) {
            (Some(names), _) if self.ends.is_empty() => {
                let (bytes, ends) = names.parts();
                (self.bytes, self.ends) = (bytes.to_vec(), ends.to_vec());
            }
            (None, Some(ids)) if own => {
                for row in 0..data.rows() {
                    data.matrix().each_in_row(row, |column, _| {
                        if column == self.ends.len() {
                            self.bytes.extend_from_slice(ids.get_bytes(row));
                            self.ends.push(self.bytes.len() as u64);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    fn names(&self, features: usize) -> Option<Names> {
        (features > 0 && self.ends.len() == features)
            .then(|| Names::from_parts(self.bytes.clone().into(), self.ends.clone().into()))
    }
}

/// A stream and the state of learning from it.
struct Stream<'a> {
    learner: Box<dyn Learner>,
    settings: Settings,
    names: FeatureNames,
    /// Number of features of the model to continue from.
    known: Option<usize>,
    reading: Reading,
    arguments: &'a LearnArguments,
    console: &'a Console,
    start: Instant,
    /// Number of pairs at which the next line of progress is due.
    next_line: u64,
    headed: bool,
    skipped: u64,
}

impl Stream<'_> {
    /// The current threshold for ties.
    fn threshold(&self) -> f64 {
        self.learner.decoder().threshold().unwrap_or(0.0)
    }

    /// Reads the items, if pairs name rows of another file, and returns the options for reading the pairs.
    fn read_items(&mut self, options: ReadOptions) -> Result<ReadOptions> {
        let Some(file) = &self.arguments.items else {
            return Ok(ReadOptions { pairing: Pairing::Comparisons, ..options });
        };
        let (timed, items) = load_items(file, &options)?;
        self.reading.index_base = timed.loaded.facts.index_base;
        self.reading.fill = timed.loaded.facts.fill.clone().or(self.reading.fill.take());
        describe(self.console, &timed, &[]);
        Ok(ReadOptions { pairing: Pairing::Of(items), ..pair_options(&options) })
    }

    /// Learns until the stream ends or is cancelled. Returns whether it was cancelled.
    fn follow(&mut self, blocks: &Receiver<Message>, cancel: &Cancel) -> Result<bool> {
        loop {
            match blocks.recv_timeout(Duration::from_millis(50)) {
                Ok(Message::Block(data, own)) => self.learn(&data, own, cancel)?,
                Ok(Message::End(facts)) => {
                    // The reader was ahead of the learner, who may have used mapped pairs and items since.
                    facts.stamps.check()?;
                    self.describe(&facts);
                    return Ok(false);
                }
                Ok(Message::Failed(_)) if cancel.is_raised() => return Ok(true),
                Ok(Message::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(Code::Internal, "reading ended without a result"));
                }
            }
            if cancel.is_raised() {
                return Ok(true);
            }
        }
    }

    fn learn(&mut self, data: &Dataset, own: bool, cancel: &Cancel) -> Result<()> {
        self.reading.items_are_features |= own;
        if let Some(known) = self.known.filter(|known| !own && data.cols() > *known) {
            let found = format::counted(data.cols() as u64, "feature", "features");
            return Err(Error::new(
                Code::TooManyFeatures,
                format!("the data have {found}, but the model knows only {known}"),
            )
            .in_file(self.arguments.items.as_ref().unwrap_or(&self.arguments.file))
            .help("continue with data that have the same features as before"));
        }
        self.names.take(data, own);
        let pairs = data.pairs().map_or(0, |pairs| pairs.len());
        let unwanted = self.arguments.skip.saturating_sub(self.skipped).min(pairs as u64) as usize;
        self.skipped += unwanted as u64;
        let mut next = unwanted;
        while next < pairs && !cancel.is_raised() {
            let seen = self.learner.progress().pairs();
            let mut turn = TURN.min(pairs - next) as u64;
            let snapshot = self.arguments.snapshot_every.map(|every| (seen / every + 1) * every);
            turn = turn.min(snapshot.map_or(u64::MAX, |at| at - seen)).min(self.next_line.saturating_sub(seen).max(1));
            let end = next + turn as usize;
            self.learner.learn(data, next..end).map_err(|error| error.in_file(&self.arguments.file))?;
            next = end;
            let learned = self.learner.progress().pairs();
            if snapshot.is_some_and(|at| learned >= at && learned > seen) {
                save_model(&self.model()?, &self.arguments.output)?;
            }
            if learned >= self.next_line {
                self.line();
                self.next_line = 2 * learned;
            }
        }
        Ok(())
    }

    fn model(&self) -> Result<Model> {
        let names = self.names.names(self.learner.features());
        self.learner.model(&self.settings, names, Some(self.reading.to_text()?))
    }

    fn describe(&self, facts: &Facts) {
        say_notes(self.console, &facts.notes);
    }

    /// Prints a line of progress.
    fn line(&mut self) {
        let progress = self.learner.progress();
        if !std::mem::replace(&mut self.headed, true) {
            self.console.say(&format!(
                "{:>14}{:>9}{:>9}{:>9}{:>11}{:>10}",
                "pairs", "error", "recent", "auc", "threshold", "time"
            ));
        }
        let share = |value: Option<f64>| value.map_or("–".to_string(), |value| format::fixed(value, 4));
        self.console.say(&format!(
            "{:>14}{:>9}{:>9}{:>9}{:>11} {:>9}",
            format::count(progress.pairs()),
            share(progress.error()),
            share(progress.recent_error()),
            share(progress.auc().map(|auc| auc.area)),
            format::significant(self.threshold(), 4),
            format::seconds(self.start.elapsed().as_secs_f64()),
        ));
    }

    /// Saves the model and prints a summary.
    fn finish(&self, interrupted: bool) -> Result<()> {
        let progress = self.learner.progress();
        if interrupted && progress.pairs() == 0 {
            return Err(Error::new(Code::Interrupted, "interrupted before the first pair; nothing was written")
                .help("run the command again"));
        }
        let model = self.model()?;
        let output = &self.arguments.output;
        let bytes = save_model(&model, output)?;
        let pairs = format::counted(progress.pairs(), "pair", "pairs");
        if interrupted {
            self.console
                .say(&format!("interrupted: the model has learned from {pairs}; continue with --from {output}"));
        }
        if progress.ties() == 0 {
            self.console.say("   no ties were seen: the threshold has no meaning");
        } else if progress.ties() == progress.pairs() {
            self.console.say("   only ties were seen: the weights have no meaning");
        }
        let (error, auc) = (progress.error().unwrap_or(0.0), progress.auc());
        self.console.say(&format!(
            "wrote {output}: {} · {pairs}, {} · progressive error {}{} · threshold {} · {}",
            format::bytes(bytes),
            format::counted(progress.ties(), "tie", "ties"),
            format::fixed(error, 4),
            auc.map_or(String::new(), |auc| format!(
                ", auc {} ± {}",
                format::fixed(auc.area, 4),
                format::significant(auc.resolution, 1)
            )),
            format::significant(self.threshold(), 4),
            format::seconds(self.start.elapsed().as_secs_f64()),
        ));
        self.console.object(|| {
            json!({
                "model": output,
                "bytes": bytes,
                "pairs": progress.pairs(),
                "ties": progress.ties(),
                "skipped": self.skipped,
                "features": self.learner.features(),
                "threshold": self.threshold(),
                "error": error,
                "recent_error": progress.recent_error(),
                "auc": auc.map(|auc| auc.area),
                "auc_resolution": auc.map(|auc| auc.resolution),
                "confusion": progress.confusion(),
                "interrupted": interrupted,
                "seconds": self.start.elapsed().as_secs_f64(),
            })
        })
    }
}
