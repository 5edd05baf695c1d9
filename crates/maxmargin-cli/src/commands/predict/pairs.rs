//! `maxmargin predict MODEL PAIRS` for a model that compares: one line per pair, in input order, `outcome left right
//! margin`. The margin is the distance of the difference of the two scores from the threshold.

use crate::args::{PredictArguments, PredictFormat};
use crate::console::Console;
use crate::format;
use crate::loading::{ensure_apart, ensure_for_data, say_notes};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::{BlockScorer, Model};
use maxmargin::run::Cancel;
use maxmargin_io::atomic::{ensure_writable, refused_write};
use maxmargin_io::{
    PairBlocks, Pairing, ReadOptions, asking_for_pairs, expect_known_items, load_items, pair_options, scoring_options,
};
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Size of a block of pairs in bytes.
const BLOCK: usize = 4 << 20;

/// Whether the file holds pairs to compare and not rows to score: items are given, or each row of a table holds two.
pub(super) fn are_in(arguments: &PredictArguments, model: &Model, cancel: &Cancel) -> Result<bool> {
    if arguments.items.is_some() {
        return Ok(true);
    }
    // Standard input can be read only once, and is taken as rows.
    if arguments.file == "-" {
        return Ok(false);
    }
    let (options, _) = scoring_options(model, &arguments.data.read()?, arguments.data.input_format, cancel)?;
    let options = ReadOptions { pairing: Pairing::Comparisons, outcomes_optional: true, ..options };
    let Ok(mut blocks) = PairBlocks::open(&arguments.file, &options, BLOCK) else { return Ok(false) };
    // Pairs of ids without items have no features that the model could use.
    Ok(blocks.next().is_some_and(|first| first.is_ok()) && blocks.items().is_none())
}

pub(super) fn run(arguments: &PredictArguments, model: &Model, console: &Console, cancel: &Cancel) -> Result<()> {
    if arguments.format == PredictFormat::Trec {
        return Err(Error::new(Code::BadSetting, "a TREC run lists documents, and the model compares pairs")
            .help("leave --format out"));
    }
    let output = arguments.output.as_deref().filter(|output| *output != "-");
    match output {
        None => ensure_for_data(console)?,
        Some(output) => {
            ensure_writable(Path::new(output))?;
            ensure_apart(output, &[&arguments.model, &arguments.file, arguments.items.as_deref().unwrap_or_default()])?;
        }
    }
    let start = Instant::now();
    let (options, _) = scoring_options(model, &arguments.data.read()?, arguments.data.input_format, cancel)?;
    let comparison = match &arguments.items {
        Some(items) => {
            let (loaded, index) = load_items(items, &options)?;
            let scores = BlockScorer::new(model).scores(&loaded.loaded.data).map_err(|error| error.in_file(items))?;
            let options = ReadOptions {
                pairing: Pairing::Of(Arc::clone(&index)),
                outcomes_optional: true,
                ..pair_options(&options)
            };
            Comparison { model, scorer: BlockScorer::new(model), items: Some(scores), stored: OnceLock::new(), options }
        }
        None => {
            let options = ReadOptions { pairing: Pairing::Comparisons, outcomes_optional: true, ..options };
            Comparison { model, scorer: BlockScorer::new(model), items: None, stored: OnceLock::new(), options }
        }
    };
    let mut found = None;
    match output {
        Some(output) => maxmargin_io::write_text_file(output, |out| {
            let (outcome, written) = comparison.write(&arguments.file, out);
            found = Some(outcome?);
            written.map_err(|error| refused_write(&error))?;
            cancel.check()
        })?,
        None => {
            let mut failed = Ok(());
            console.write(|out| {
                let (outcome, written) = comparison.write(&arguments.file, out);
                if written.is_ok() {
                    match outcome {
                        Ok(outcome) => found = Some(outcome),
                        Err(error) => failed = Err(error),
                    }
                }
                written
            })?;
            failed?;
        }
    }
    // If the reader of standard output has closed the pipe, nothing more is printed.
    let Some((pairs, notes)) = found else { return Ok(()) };
    let seconds = start.elapsed().as_secs_f64();
    let read = format::counted(pairs, "pair", "pairs");
    console.say(&format!("{}   {read} · {}", arguments.file, format::seconds(seconds)));
    say_notes(console, &notes);
    if let Some(output) = output {
        console.say(&format!("wrote {output}: {read}"));
    }
    console.object(|| json!({ "pairs": pairs, "output": arguments.output, "seconds": { "predict": seconds } }))
}

/// A comparison of pairs by a model.
struct Comparison<'a> {
    model: &'a Model,
    scorer: BlockScorer<'a>,
    /// The score of each item, if items were read before.
    items: Option<Vec<f64>>,
    /// The score of each stored row, once it is computed.
    stored: OnceLock<Vec<f64>>,
    options: ReadOptions,
}

impl Comparison<'_> {
    /// Writes a line for each pair. Returns their number and notes, and whether they could be written.
    fn write(&self, file: &str, out: &mut dyn Write) -> (Result<(u64, Vec<String>)>, io::Result<()>) {
        let mut blocks = match PairBlocks::open(file, &self.options, BLOCK) {
            Ok(blocks) => blocks,
            Err(error) => return (Err(asking_for_pairs(error, self.model)), Ok(())),
        };
        let mut first = true;
        for block in &mut blocks {
            let lines = block
                .and_then(|block| self.lines(&block, std::mem::take(&mut first)))
                .map_err(|error| asking_for_pairs(error, self.model).in_file(file));
            let lines = match lines {
                Ok(lines) => lines,
                Err(error) => return (Err(error), Ok(())),
            };
            if let Err(error) = out.write_all(lines.as_bytes()) {
                return (Err(refused_write(&error)), Err(error));
            }
        }
        (Ok((blocks.pairs(), blocks.facts().notes)), Ok(()))
    }

    fn lines(&self, block: &Dataset, first: bool) -> Result<String> {
        let Some(pairs) = block.pairs() else { return Ok(String::new()) };
        let own;
        let scores = match &self.items {
            Some(scores) => &scores[..],
            // Pairs of stored rows come with all rows each time.
            None if block.rows() > 2 * pairs.len() => {
                if self.stored.get().is_none() {
                    let _ = self.stored.set(self.scorer.scores(block)?);
                }
                self.stored.get().map_or(&[][..], Vec::as_slice)
            }
            None => {
                if first {
                    expect_known_items(self.model, block)?;
                }
                own = self.scorer.scores(block)?;
                &own
            }
        };
        Ok(self.model.decoder.outcomes(scores, pairs).lines().concat())
    }
}
