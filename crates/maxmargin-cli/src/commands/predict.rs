//! `maxmargin predict MODEL FILE`
//!
//! Rows are read, scored and written in blocks, so that memory does not grow with the file. A TREC run and a scaling
//! within each query need whole queries. Blocks are then cut between queries, the result is kept in a temporary file,
//! and a file with scattered queries is read again as a whole.
//!
//! A model that compares takes pairs instead, see `predict/pairs.rs`. If it was trained on graded rows, it takes
//! either.

mod pairs;

use crate::args::{PredictArguments, PredictFormat};
use crate::console::Console;
use crate::format::{self, one_field};
use crate::loading::{describe_blocks, ensure_apart, ensure_for_data};
use crate::sequences;
use maxmargin::data::{Dataset, Labels, Names, Scale, bracketed};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::{BlockScorer, Model, Predictions};
use maxmargin::parallel;
use maxmargin::run::Cancel;
use maxmargin::structured::sequences_of;
use maxmargin_io::atomic::{ensure_writable, refused_write};
use maxmargin_io::{Block, BlockOptions, Found, ReadOptions, Step, load_model, read_blocks, scoring_options};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Lines that one job writes.
const PIECE: usize = 4096;

pub(crate) fn run(arguments: &PredictArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let model = load_model(&arguments.model)?;
    check_form(&model, arguments)?;
    if model.decoder.threshold().is_some()
        && (!model.settings.ties_from_grades() || pairs::are_in(arguments, &model, cancel)?)
    {
        return pairs::run(arguments, &model, console, cancel);
    }
    if arguments.items.is_some() {
        return Err(Error::new(Code::BadSetting, "--items is for pairs, but this model scores rows")
            .help("give the rows to score, and leave --items out"));
    }
    let output = arguments.output.as_deref().filter(|output| *output != "-");
    match output {
        None => ensure_for_data(console)?,
        Some(output) => {
            ensure_writable(Path::new(output))?;
            ensure_apart(output, &[&arguments.model, &arguments.file])?;
        }
    }
    let read = arguments.data.read()?;
    let (mut options, one_group) = scoring_options(&model, &read, arguments.data.input_format, cancel)?;
    // What training left out is predicted.
    options.max_words = read.max_words;
    let tagged = model.decoder.takes_groups();
    let whole_groups =
        tagged || arguments.format == PredictFormat::Trec || model.scaling.kind() == Scale::MinMaxPerQuery;
    let prediction = Prediction {
        model: &model,
        scorer: BlockScorer::new(&model),
        file: &arguments.file,
        format: arguments.format,
        all_scores: arguments.all_scores,
        probabilities: arguments.probabilities,
        blocks: BlockOptions { whole_groups, one_group, ..BlockOptions::default() },
        options,
        busy: AtomicU64::new(0),
        unparsed: AtomicU64::new(0),
    };
    let start = Instant::now();
    let found = match output {
        Some(output) => {
            let mut found = None;
            maxmargin_io::write_text_file(output, |out| {
                let (outcome, written) = prediction.write(out);
                found = Some(outcome?);
                written.map_err(|error| refused_write(&error))?;
                cancel.check()
            })?;
            found
        }
        None => {
            let mut found = Ok(None);
            console.write(|out| {
                let (outcome, written) = prediction.write(out);
                if written.is_ok() {
                    found = outcome.map(Some);
                }
                written
            })?;
            found.map_err(|error| match error.code() {
                Code::Interrupted if !whole_groups => {
                    error.help("the standard output is not complete; run the command again")
                }
                _ => error,
            })?
        }
    };
    // If the reader of standard output has closed the pipe, nothing more is printed.
    let Some(found) = found else { return Ok(()) };
    let seconds = start.elapsed().as_secs_f64();
    // Reading and scoring run in parallel, so scoring is charged with its share of the threads' time.
    let threads = parallel::threads() as f64;
    let predicting = (prediction.busy.into_inner() as f64 * 1e-9 / threads).min(seconds);
    describe_blocks(console, &found, sequences::noun(&model.decoder), seconds - predicting);
    let unparsed = prediction.unparsed.into_inner();
    sequences::flat_trees(unparsed).iter().for_each(|note| console.say(&format!("   {note}")));
    if let Some(output) = output {
        console.say(&format!(
            "wrote {output}: {} in {}",
            format::counted(found.rows, "row", "rows"),
            format::seconds(predicting)
        ));
    }
    console.object(|| {
        json!({
            "rows": found.rows,
            "output": arguments.output,
            "unparsed": model.decoder.grammar().map(|_| unparsed),
            "seconds": { "load": seconds - predicting, "predict": predicting },
        })
    })
}

/// Everything needed to score a block.
struct Prediction<'a> {
    model: &'a Model,
    scorer: BlockScorer<'a>,
    file: &'a str,
    format: PredictFormat,
    /// Whether to write the scores of all classes.
    all_scores: bool,
    /// Whether to write the probabilities of all classes.
    probabilities: bool,
    blocks: BlockOptions,
    options: ReadOptions,
    /// Nanoseconds spent on scoring, over all threads.
    busy: AtomicU64,
    /// Sentences without a tree of the grammar.
    unparsed: AtomicU64,
}

impl Prediction<'_> {
    /// Writes the predictions of all rows in order. Returns the findings, and whether the predictions could be written.
    fn write(&self, out: &mut dyn Write) -> (Result<Found>, io::Result<()>) {
        if !self.blocks.whole_groups {
            return self.write_blocks(&mut Straight(out));
        }
        let mut spool = match tempfile::tempfile() {
            Ok(file) => Spool(BufWriter::new(file)),
            Err(error) => {
                let error = Error::new(Code::WriteFailed, format!("a temporary file could not be created: {error}"))
                    .help("free some space, or name a folder for temporary files in TMPDIR");
                return (Err(error), Ok(()));
            }
        };
        let (found, spooled) = self.write_blocks(&mut spool);
        let written = match &found {
            Ok(_) => spooled.and_then(|()| spool.copy(out)),
            Err(_) => spooled,
        };
        (found, written)
    }

    fn write_blocks(&self, sink: &mut dyn Sink) -> (Result<Found>, io::Result<()>) {
        let mut written = Ok(());
        let found = read_blocks(self.file, &self.options, &self.blocks, &|block| self.lines(block), &mut |step| {
            written = match step {
                Step::Block(lines) => lines.iter().try_for_each(|chunk| sink.put(chunk)),
                Step::Again => sink.start_over(),
            };
            written.as_ref().map_err(refused_write).copied()
        });
        // If writing failed, that is why reading stopped.
        (found, written)
    }

    /// The lines of a block.
    fn lines(&self, block: &Block) -> Result<Vec<String>> {
        let start = Instant::now();
        let data = &block.data;
        let stored = self.scorer.scores(data).map_err(|error| error.in_file(self.file))?;
        let lines = match self.format {
            PredictFormat::Lines => {
                if self.model.decoder.takes_groups() {
                    let lines = self.tags(stored, block)?;
                    self.busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    return Ok(lines);
                }
                let (scores, outputs) = (data.to_input_order(stored), self.model.scorer.outputs());
                let shares = match self.probabilities {
                    true => Some(self.model.probabilities_of(&scores)?),
                    false => None,
                };
                let predictions = self.model.decoder.predictions(scores, outputs, None, None);
                match (shares, self.all_scores) {
                    (Some(shares), _) => with_numbers(&predictions, &shares),
                    (None, true) => with_numbers(&predictions, predictions.scores().unwrap_or_default()),
                    (None, false) => predictions.lines(),
                }
            }
            PredictFormat::Trec => self.trec(data, block.first_row, &stored)?,
        };
        self.busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(lines)
    }

    /// The tag of each row, or the tree of each sentence. Empty lines stand where the input has them.
    fn tags(&self, stored: Vec<f64>, block: &Block) -> Result<Vec<String>> {
        let data = &block.data;
        let groups = sequences_of(data).map_err(|error| error.in_file(self.file))?;
        let predictions = self.model.decoder.predictions(stored, self.model.scorer.outputs(), None, Some(groups));
        if let Predictions::Trees { codes, pieces, unparsed, .. } = &predictions {
            self.unparsed.fetch_add(*unparsed as u64, Ordering::Relaxed);
            let gaps = block.blank_lines.as_deref();
            let trees = |group: usize| trees_line(groups.range(group), (codes, pieces), block.words.as_deref());
            return Ok(parallel::map(groups.len(), |group| {
                let empty = |at: usize| "\n".repeat(gaps.map_or(0, |gaps| gaps[at] as usize));
                let before = if group == 0 { empty(0) } else { String::new() };
                format!("{before}{}\n{}", trees(group), empty(group + 1))
            }));
        }
        let Some(blanks) = &block.blank_lines else { return Ok(predictions.to_input_order(data).lines()) };
        Ok(parallel::map(groups.len(), |group| {
            let mut text = String::new();
            text.extend(std::iter::repeat_n('\n', if group == 0 { blanks[0] as usize } else { 0 }));
            predictions.write(groups.range(group), &mut text);
            text.extend(std::iter::repeat_n('\n', blanks[group + 1] as usize));
            text
        }))
    }

    /// `query Q0 document rank score maxmargin`, best first within each query.
    fn trec(&self, data: &Dataset, first_row: u64, scores: &[f64]) -> Result<Vec<String>> {
        let groups = data.groups().ok_or_else(|| {
            Error::new(Code::NoGroups, "a TREC run lists documents by query, and the rows have no query ids")
                .in_file(self.file)
                .help("add qid:ID to the rows, name the column with --group, or use --one-group")
        })?;
        Ok(parallel::map(groups.len(), |group| {
            let range = groups.range(group);
            let query = word(&groups.names().get(group));
            let mut order: Vec<usize> = range.collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut text = String::new();
            for (rank, row) in order.into_iter().enumerate() {
                let document = match data.row_ids() {
                    Some(ids) => word(&ids.get(row)),
                    None => format!("row{}", first_row + data.input_row(row) as u64 + 1),
                };
                let _ = writeln!(text, "{query} Q0 {document} {} {} maxmargin", rank + 1, scores[row]);
            }
            text
        }))
    }
}

/// A bracketed tree. Without known words, `*` stands for each.
fn trees_line(rows: Range<usize>, (codes, pieces): (&[u32], &Labels), words: Option<&Names>) -> String {
    let piece = |row: usize| pieces.name(codes[row] as usize);
    match words {
        Some(words) => {
            let words: Vec<_> = rows.clone().map(|row| words.get(row)).collect();
            bracketed(rows.map(piece).zip(words.iter().map(|word| word.as_ref())))
        }
        None => bracketed(rows.map(|row| (piece(row), "*"))),
    }
}

/// The label or labels of each row, and a number for every class or label.
fn with_numbers(predictions: &Predictions, numbers: &[f64]) -> Vec<String> {
    let rows = predictions.len();
    parallel::map(rows.div_ceil(PIECE), |piece| {
        let mut text = String::new();
        for row in piece * PIECE..((piece + 1) * PIECE).min(rows) {
            let classes = numbers.len() / rows;
            match predictions.set_names(row) {
                Some(names) => text.push_str(&names.join(",")),
                None => text.push_str(&one_field(predictions.label(row).unwrap_or_default())),
            }
            for number in &numbers[row * classes..(row + 1) * classes] {
                let _ = write!(text, "\t{number}");
            }
            text.push('\n');
        }
        text
    })
}

/// Refuses what the model's scores have no meaning for.
fn check_form(model: &Model, arguments: &PredictArguments) -> Result<()> {
    let several = model.decoder.labels().is_some() || model.decoder.label_sets().is_some();
    if arguments.probabilities {
        model.check_probabilities()?;
        if arguments.format == PredictFormat::Trec {
            return Err(Error::new(Code::Unsupported, "a TREC run holds one score a row, and no probabilities")
                .help("leave --format or --probabilities out"));
        }
    }
    if arguments.all_scores && !several {
        return Err(Error::new(Code::Unsupported, "--all-scores is for models with a score for each class")
            .help("leave it out: the lines of this model hold all its scores"));
    }
    if model.decoder.takes_groups() && arguments.format == PredictFormat::Trec {
        let what = if model.decoder.tags().is_some() { "tags them" } else { "parses sentences" };
        return Err(Error::new(Code::Unsupported, format!("a TREC run ranks rows, and this model {what}"))
            .help("leave --format out"));
    }
    if several && arguments.format == PredictFormat::Trec {
        return Err(Error::new(
            Code::Unsupported,
            "a TREC run ranks by one score, and this model has one for each class",
        )
        .help("leave --format out; --all-scores writes the scores of all classes"));
    }
    Ok(())
}

/// The destination of the lines.
trait Sink {
    fn put(&mut self, lines: &str) -> io::Result<()>;
    /// Deletes all lines so far.
    fn start_over(&mut self) -> io::Result<()>;
}

/// Writes directly to the output.
struct Straight<'a>(&'a mut dyn Write);

impl Sink for Straight<'_> {
    fn put(&mut self, lines: &str) -> io::Result<()> {
        self.0.write_all(lines.as_bytes())
    }

    fn start_over(&mut self) -> io::Result<()> {
        Err(io::Error::other("lines that were written cannot be taken back"))
    }
}

/// Writes to a temporary file until the lines are known to be final.
struct Spool(BufWriter<std::fs::File>);

impl Spool {
    fn copy(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.0.flush()?;
        let file = self.0.get_mut();
        file.seek(SeekFrom::Start(0))?;
        io::copy(file, out).map(drop)
    }
}

impl Sink for Spool {
    fn put(&mut self, lines: &str) -> io::Result<()> {
        self.0.write_all(lines.as_bytes())
    }

    fn start_over(&mut self) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        self.0.get_mut().set_len(0)
    }
}

/// Fields of a run are separated by blanks, so no field may contain one.
fn word(name: &str) -> String {
    if name.is_empty() { "_".to_string() } else { name.split_whitespace().collect::<Vec<_>>().join("_") }
}
