//! `maxmargin rank-items MODEL [ITEMS]`
//!
//! One line per item, the highest score first: `rank id score` and, with `--pairs`, the ends of a 95 % interval. The
//! rules are those of [`maxmargin::items`]. The rank of an item is 1 plus the number of items that are better by more
//! than the threshold for ties (0 for rankers). Better means a higher score or, with intervals, that the lower end of
//! the interval of the difference is above the threshold. The intervals are computed for scores centred on the mean
//! over the items. The mean of the model's own scores is added back here, so that score and interval are on the same
//! scale.

use crate::args::RankItemsArguments;
use crate::console::Console;
use crate::format::{self, one_field};
use crate::loading::{describe, describe_gathered, ensure_apart};
use crate::preferences::Preferences;
use crate::progress::ResampleProgress;
use maxmargin::data::{Dataset, Matrix, Targets, hold_out};
use maxmargin::error::{Code, Error, Result};
use maxmargin::items::{Resampled, Resampling, mean, order, ranks, resample};
use maxmargin::model::{Decoder, Model};
use maxmargin::run::Cancel;
use maxmargin_io::atomic::{ensure_writable, refused_write};
use maxmargin_io::{Reading, Stamps, expect_features, gather_for, load_items, load_model, scoring_options};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(arguments: &RankItemsArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let model = load_model(&arguments.model)?;
    if !matches!(model.decoder, Decoder::Compare { .. } | Decoder::Likelihood { .. } | Decoder::Rank) {
        return Err(Error::new(Code::BadSetting, "the model is a classifier, and its scores are not a ranking")
            .in_file(&arguments.model)
            .help("use a model of `train compare` or `train rank`"));
    }
    let output = arguments.output.as_deref().filter(|output| *output != "-");
    let inputs = [&arguments.file, &arguments.pairs, &arguments.items].map(|file| file.as_deref().unwrap_or_default());
    if let Some(output) = output {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &[&[arguments.model.as_str()], &inputs[..]].concat())?;
    }
    let (items, unchanged) = items(arguments, &model, console, cancel)?;
    let scores =
        model.scores(&items).map_err(|error| error.in_file(arguments.file.as_ref().unwrap_or(&arguments.model)))?;
    // A negative width never predicts ties, like 0.
    let threshold = model.decoder.tie_width().unwrap_or(0.0).max(0.0);
    let resampled = match &arguments.pairs {
        Some(pairs) => Some(resampled(arguments, pairs, &model, &items, console, cancel)?),
        None => None,
    };
    let ranks = match &resampled {
        Some(resampled) => resampled.ranks(threshold, cancel)?,
        None => ranks(&scores, threshold),
    };
    let centre = mean(&scores);
    let listed: Vec<Listed> = order(&scores)
        .into_iter()
        .map(|item| Listed {
            rank: ranks[item],
            id: match items.row_ids() {
                Some(ids) => ids.get(item).into_owned(),
                None => (items.input_row(item) + 1).to_string(),
            },
            score: scores[item],
            interval: resampled.as_ref().map(|resampled| {
                let (low, high) = resampled.interval(item);
                (centre + low, centre + high)
            }),
        })
        .collect();
    cancel.check()?;
    unchanged.check()?;
    let counted = format::counted(listed.len() as u64, "item", "items");
    let write = |out: &mut dyn Write| listed.iter().try_for_each(|item| item.write(out));
    match output {
        Some(output) => {
            maxmargin_io::write_text_file(output, |out| write(out).map_err(|error| refused_write(&error)))?;
            console.say(&format!("wrote {output}: {counted}"));
        }
        None if !console.json() => console.write(write)?,
        None => {}
    }
    if console.talks() {
        console.say(&summary(&listed, threshold, resampled.as_ref()));
    }
    console.object(|| {
        let mut object = json!({ "threshold": threshold, "count": listed.len() });
        match output {
            Some(output) => object["output"] = json!(output),
            None => object["items"] = listed.iter().map(Listed::as_json).collect(),
        }
        if let Some(resampled) = &resampled {
            object["resamples"] = json!({
                "learned": resampled.resamples, "failed": resampled.failed, "unconverged": resampled.unconverged,
            });
        }
        object
    })
}

/// A line of the output.
struct Listed {
    rank: usize,
    id: String,
    score: f64,
    interval: Option<(f64, f64)>,
}

impl Listed {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        write!(out, "{}\t{}\t{}", self.rank, one_field(&self.id), format::exact(self.score))?;
        if let Some((low, high)) = self.interval {
            write!(out, "\t{}\t{}", format::exact(low), format::exact(high))?;
        }
        writeln!(out)
    }

    fn as_json(&self) -> Value {
        let mut object = json!({ "rank": self.rank, "id": self.id, "score": self.score });
        if let Some((low, high)) = self.interval {
            object["low"] = json!(low);
            object["high"] = json!(high);
        }
        object
    }
}

/// The items to rank.
fn items(
    arguments: &RankItemsArguments,
    model: &Model,
    console: &Console,
    cancel: &Cancel,
) -> Result<(Dataset, Stamps)> {
    if let Some(file) = arguments.file.as_ref().or(arguments.items.as_ref()) {
        let (options, _) = scoring_options(model, &arguments.data.read()?, arguments.data.input_format, cancel)?;
        let (timed, _) = load_items(file, &options)?;
        expect_features(&timed, model.features(), file)?;
        // If the items are those of the pairs, they are described together with the pairs.
        if arguments.file.is_some() {
            describe(console, &timed, &[]);
        }
        return Ok((timed.loaded.data, timed.loaded.facts.stamps));
    }
    let names =
        model.feature_names.as_ref().filter(|_| Reading::of(model).is_ok_and(|reading| reading.items_are_features));
    let Some(names) = names else {
        return Err(Error::new(Code::Usage, "the model scores items by their features, and no items are given")
            .in_file(&arguments.model)
            .help("give a table of items with the features that the model knows: maxmargin rank-items MODEL ITEMS"));
    };
    let rows: Vec<Vec<(usize, f64)>> = (0..names.len()).map(|item| vec![(item, 1.0)]).collect();
    let matrix = Matrix::from_rows(&rows, names.len())?;
    let items =
        Dataset::new(matrix, Targets::Absent)?.with_feature_names(names.clone())?.with_row_ids(names.clone())?;
    Ok((items, Stamps::default()))
}

/// Scores over resamples of the training pairs.
fn resampled(
    arguments: &RankItemsArguments,
    file: &str,
    model: &Model,
    items: &Dataset,
    console: &Console,
    cancel: &Cancel,
) -> Result<Resampled> {
    if model.online.is_some() {
        return Err(Error::new(
            Code::Unsupported,
            "a model learned from a stream cannot be trained again on resamples",
        )
        .in_file(&arguments.model)
        .help("leave --pairs out, or use a model of `train`"));
    }
    let (read, format) = (arguments.data.read()?, arguments.data.input_format);
    let gathered = gather_for(model, file, arguments.items.as_deref(), &read, format, cancel)?;
    let mut data = gathered.timed.loaded.data.clone();
    if data.pairs().is_none() {
        return Err(Error::new(Code::NoPairs, "intervals resample pairs, and these are rows with targets")
            .in_file(file)
            .help("leave --pairs out: there are no intervals for a model of graded rows"));
    }
    describe_gathered(console, &gathered, Preferences::of(&data).as_ref(), &[]);
    if let Some(fraction) = Reading::of(model)?.holdout {
        data = hold_out(&data, fraction, model.settings.seed).map_err(|error| error.in_file(file))?.0;
    }
    if data.hash()? != model.certificate.data_hash {
        console.say(
            "   these are not the training pairs of the model: the intervals are for models trained on these pairs",
        );
    }
    let resampling = Resampling { resamples: arguments.resamples as usize, seed: arguments.seed };
    let mut progress = ResampleProgress::new(console);
    let found = resample(model, &data, items, resampling, &mut progress, cancel);
    progress.finish();
    gathered.timed.loaded.facts.stamps.check()?;
    found.map_err(|error| error.in_file(file))
}

/// What the ranks are based on.
fn summary(listed: &[Listed], threshold: f64, resampled: Option<&Resampled>) -> String {
    let first = listed.iter().filter(|item| item.rank == 1).count() as u64;
    let mut parts = vec![
        format::counted(listed.len() as u64, "item", "items"),
        format!("{} of rank 1", format::count(first)),
        format!("threshold {}", format::significant(threshold, 4)),
    ];
    if let Some(resampled) = resampled {
        let of = format::counted(resampled.resamples as u64, "resample", "resamples");
        parts.push(format!("95 % intervals of {of}, centred on the mean over the items"));
        if resampled.failed > 0 {
            parts.push(format!("{} more failed: no ties or no threshold", format::count(resampled.failed as u64)));
        }
        if resampled.unconverged > 0 {
            parts.push(format!("{} did not converge", format::count(resampled.unconverged as u64)));
        }
    }
    parts.join(" · ")
}
