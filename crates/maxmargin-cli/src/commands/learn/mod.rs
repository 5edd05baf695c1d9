//! `maxmargin learn TASK FILE -o MODEL`
//!
//! One pass over a stream of examples. A separate thread reads one or two blocks ahead, so that an idle stream does not
//! keep the program from stopping. The complete model is saved at intervals and at the end.

mod cutter;
mod feature_names;
mod held_out;
mod reading;
mod report;
mod share;

use crate::args::{Every, LearnArguments};
use crate::console::Console;
use crate::for_task::ForTask;
use crate::format;
use crate::loading::{describe, ensure_apart, say_notes};
use cutter::{Cutter, check_lists, examples};
use feature_names::FeatureNames;
use held_out::{HeldOut, held_out};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{Input, Settings};
use maxmargin::stream::{Learner, judged_learner, learner};
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{
    BadRows, Pairing, ReadOptions, Reading, load_items, load_model, pair_options, save_model, scoring_options,
};
use reading::{Message, read_ahead};
use report::Lines;
use serde_json::json;
use share::Share;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Number of examples between two checks of the cancel flag.
const TURN: usize = 1 << 14;

pub(crate) fn run(command: &ForTask<LearnArguments>, console: &Console, cancel: &Cancel) -> Result<()> {
    let start = Instant::now();
    let arguments = &command.arguments;
    let from = arguments.from.as_deref().map(load_model).transpose()?;
    // A model made by `learn` keeps its settings; flags override them.
    let kept = from.as_ref().filter(|model| model.online.is_some()).map(|model| &model.settings);
    let settings = Settings::streamed(command.task, &command.chosen, kept)?;
    let named = |error: Error| match &arguments.from {
        Some(file) => error.in_file(file),
        None => error,
    };
    if arguments.validation.is_none() {
        // Refused before anything is read.
        learner(&settings, from.as_ref()).map_err(named)?;
    }
    ensure_writable(Path::new(&arguments.output))?;
    let others = arguments.items.as_deref().into_iter().chain(arguments.validation.as_deref());
    let inputs: Vec<&str> = std::iter::once(arguments.file.as_str()).chain(others).collect();
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
    let input = command.task.profile().input;
    let pairs = input == Input::Compared || arguments.items.is_some();
    if pairs && input == Input::Rows {
        return Err(Error::new(
            Code::BadSetting,
            "pairs of items are for rank and compare, and this task learns from rows",
        )
        .help("leave ⟦items⟧ out, or use `learn rank` or `learn compare`"));
    }
    let one_group = read.one_group;
    let held_out = held_out(arguments, &settings, &mut options, (pairs, one_group), console)?;
    let (judge, metric) = held_out.map(|HeldOut { judge, metric }| (judge, metric)).unzip();
    let learner = match judge {
        Some(judge) => judged_learner(&settings, from.as_ref(), Some(judge)),
        None => learner(&settings, from.as_ref()),
    };
    let learner = learner.map_err(named)?;
    options.steady = !pairs;
    options.follow = arguments.follow;
    options.live = arguments.follow || arguments.file == "-";
    if arguments.follow && arguments.file == "-" {
        return Err(Error::new(Code::Usage, "standard input is followed anyway: it ends when the other program does")
            .help("leave --follow out"));
    }
    if let Some(file) = &arguments.skip_bad {
        ensure_apart(file, &inputs)?;
        ensure_apart(file, &[&arguments.output])?;
        options.bad_rows = Some(BadRows::create(file)?);
    }
    let bad_rows = options.bad_rows.clone();
    if input == Input::Ranked {
        options.pairing = Pairing::Sides;
    }
    let lines = Lines::new(console, start, learner.seen());
    let mut stream = Stream {
        learner,
        settings,
        names: FeatureNames::of(from.as_ref()),
        known: from.as_ref().map(Model::features),
        reading,
        arguments,
        console,
        start,
        lines,
        skipped: 0,
        snapshot: None,
        saved: (Instant::now(), 0),
        bad_rows,
        metric,
        share: Share::default(),
        cutter: Cutter { items: arguments.items.is_some(), ..Cutter::default() },
        lists: input == Input::Ranked,
    };
    let options = if pairs { stream.read_items(options)? } else { options };
    if let (Some(file), Some(model)) = (&arguments.from, &from) {
        match (stream.learner.seen(), &model.online) {
            (0, Some(_)) => console.say(&format!(
                "continuing from the weights of {file}; the settings differ, so all counts start at zero"
            )),
            (0, None) => console.say(&format!("continuing from the weights of {file}")),
            _ => console.say(&format!("continuing from {file} after {}", stream.seen())),
        }
    }
    let interrupted = stream.follow(&read_ahead(&arguments.file, options, pairs)?, cancel)?;
    stream.finish(interrupted)
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
    lines: Lines<'a>,
    skipped: u64,
    /// The number of examples at which the next snapshot is due.
    snapshot: Option<u64>,
    /// The time and the number of examples of the last one.
    saved: (Instant, u64),
    bad_rows: Option<BadRows>,
    /// The metric of held-out data.
    metric: Option<String>,
    /// How much of the file was used.
    share: Share,
    /// Examples that were not learned from yet.
    cutter: Cutter,
    /// Whether examples are whole lists, unless they are pairs.
    lists: bool,
}

impl Stream<'_> {
    /// `5,000 rows`
    fn seen(&self) -> String {
        let (one, several) = self.learner.progress().unit;
        format::counted(self.learner.seen(), one, several)
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
            // Nothing after this is read.
            if self.has_stopped() {
                return Ok(false);
            }
            match blocks.recv_timeout(Duration::from_millis(50)) {
                Ok(Message::Block(data, own, base, place)) => {
                    self.share.read(examples(&data, self.lists), place);
                    self.reading.index_base = base.or(self.reading.index_base);
                    self.take(*data, own, cancel)?;
                }
                Ok(Message::End(facts)) => {
                    // The reader was ahead of the learner, who may have used mapped pairs and items since.
                    facts.stamps.check()?;
                    self.learn(true, cancel)?;
                    say_notes(self.console, &facts.notes);
                    return Ok(cancel.is_raised());
                }
                Ok(Message::Failed(_)) if cancel.is_raised() => return Ok(true),
                Ok(Message::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => self.save_in_time()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(Code::Internal, "reading ended without a result"));
                }
            }
            if cancel.is_raised() {
                return Ok(true);
            }
        }
    }

    /// Takes a block: checks it, leaves out what is to be skipped, and learns from all whole steps.
    fn take(&mut self, data: Dataset, own: bool, cancel: &Cancel) -> Result<()> {
        self.reading.items_are_features |= own;
        let fixed = !own && (data.pairs().is_some() || data.feature_names().is_some());
        if let Some(known) = self.known.filter(|known| fixed && data.cols() > *known) {
            let found = format::counted(data.cols() as u64, "feature", "features");
            return Err(Error::new(
                Code::TooManyFeatures,
                format!("the data have {found}, but the model knows only {known}"),
            )
            .in_file(self.arguments.items.as_ref().unwrap_or(&self.arguments.file))
            .help("continue with data that have the same features as before"));
        }
        self.names.take(&data, own);
        let data = if self.lists {
            check_lists(&data)?;
            data
        } else {
            data.in_input_order()?
        };
        self.cutter.keep(data);
        self.learn(false, cancel)
    }

    /// Leaves out examples that are to be skipped. Returns how many.
    fn skip(&mut self, ready: usize) -> usize {
        let unwanted = self.arguments.skip.saturating_sub(self.skipped).min(ready as u64);
        self.skipped += unwanted;
        unwanted as usize
    }

    /// Learns from all whole steps at hand, and at the end of the stream from the last one, which may be smaller than the
    /// others. Saves and reports at the times that were asked for.
    fn learn(&mut self, ended: bool, cancel: &Cancel) -> Result<()> {
        let size = self.learner.batch().max(1);
        loop {
            let ready = self.cutter.ready(self.lists, ended);
            let whole = if ended { ready } else { ready / size * size };
            let waiting = !ended && self.skipped >= self.arguments.skip && self.learner.wanted() > ready;
            if whole == 0 || waiting || cancel.is_raised() || self.has_stopped() {
                return Ok(());
            }
            let unwanted = self.skip(ready);
            if unwanted > 0 {
                self.cutter.joined(self.lists)?;
                self.cutter.advance(unwanted, self.lists);
                self.share.used(unwanted);
                continue;
            }
            let turn = self.turn(size).min(whole);
            let Some((data, rest)) = self.cutter.joined(self.lists)? else { return Ok(()) };
            let examples = rest.start..rest.start + turn;
            self.learner.learn(data, examples).map_err(|error| error.in_file(&self.arguments.file))?;
            self.cutter.advance(turn, self.lists);
            self.share.used(turn);
            if self.snapshot.is_some_and(|at| self.learner.seen() >= at) {
                self.save()?;
            }
            self.save_in_time()?;
            self.lines.print(&*self.learner);
        }
    }

    /// Whether the learner stopped before the end of the stream.
    fn has_stopped(&self) -> bool {
        self.learner.judged().is_some_and(|judged| judged.stopped)
    }

    /// Saves the model if the time for it has come and there is something new.
    fn save_in_time(&mut self) -> Result<()> {
        let Some(Every::Time(time)) = self.arguments.snapshot_every else { return Ok(()) };
        let (last, seen) = self.saved;
        if last.elapsed() >= time && self.learner.seen() > seen { self.save() } else { Ok(()) }
    }

    /// Saves the model. As long as too little was seen for one, nothing is saved.
    fn save(&mut self) -> Result<()> {
        match self.model() {
            Ok(model) => drop(save_model(&model, &self.arguments.output)?),
            Err(error) if matches!(error.code(), Code::SingleClass | Code::NoRows | Code::NoPairs) => {}
            Err(error) => return Err(error),
        }
        self.saved = (Instant::now(), self.learner.seen());
        Ok(())
    }

    /// The number of examples until something else is due: a multiple of the size of a step.
    fn turn(&mut self, size: usize) -> usize {
        let seen = self.learner.seen();
        self.snapshot = match self.arguments.snapshot_every {
            Some(Every::Examples(every)) => Some((seen / every + 1) * every),
            Some(Every::Time(_)) | None => None,
        };
        let until = self.snapshot.map_or(u64::MAX, |at| at - seen).min(self.lines.next().saturating_sub(seen)).max(1);
        // Snapshots are made between steps.
        let until = until.min(TURN as u64).next_multiple_of(size as u64);
        // A first rate that is due is found before the next step, with examples behind it.
        usize::try_from(until.min(self.learner.until_wanted().max(size as u64))).unwrap_or(usize::MAX)
    }

    fn model(&self) -> Result<Model> {
        let names = self.names.names(self.learner.features());
        self.learner.model(&self.settings, names, Some(self.reading.to_text()?))
    }

    /// Saves the model and prints a summary.
    fn finish(&self, interrupted: bool) -> Result<()> {
        let learner = &*self.learner;
        if interrupted && learner.seen() == 0 {
            let (one, _) = learner.progress().unit;
            let message = format!("interrupted before the first {one}; nothing was written");
            return Err(Error::new(Code::Interrupted, message).help("run the command again"));
        }
        let model = self.model()?;
        let output = &self.arguments.output;
        let bytes = save_model(&model, output)?;
        if interrupted {
            let seen = self.seen();
            self.console.say(&format!("interrupted: the model has learned from {seen}; continue with --from {output}"));
        }
        let bad = self.bad_rows.as_ref().map_or(0, BadRows::count);
        if let (Some(file), true) = (&self.arguments.skip_bad, bad > 0) {
            self.console.say(&format!("   {} left out: see {file}", format::counted(bad, "bad row", "bad rows")));
        }
        let stopped = report::stopping(learner, self.metric.as_deref(), self.share.of_file(), &self.arguments.file);
        stopped.into_iter().for_each(|sentence| self.console.say(&sentence));
        report::advice(learner).into_iter().for_each(|advice| self.console.say(advice));
        self.console.say(&format!(
            "wrote {output}: {} · {} · {}",
            format::bytes(bytes),
            report::summary(learner),
            format::seconds(self.start.elapsed().as_secs_f64()),
        ));
        self.console.object(|| {
            let mut object = report::object(learner);
            object.insert("model".to_string(), json!(output));
            object.insert("bytes".to_string(), json!(bytes));
            object.insert("skipped".to_string(), json!(self.skipped));
            object.insert("bad".to_string(), json!(bad));
            object.insert("interrupted".to_string(), json!(interrupted));
            object.extend(report::judged(learner, self.metric.as_deref()));
            object.insert("share".to_string(), json!(self.share.of_file()));
            object.insert("seconds".to_string(), json!(self.start.elapsed().as_secs_f64()));
            object.into()
        })
    }
}
