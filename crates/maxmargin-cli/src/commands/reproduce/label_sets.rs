//! Label sets from a stream: one pass over shuffled news, by passive-aggressive and by gradient steps.
//!
//! - Reuters-21578, the 90 topics of the ModApte split; rows without a topic are left out.
//! - RCV1-v2, a public subset with its topics.
//!
//! Rows are as they come (unit rows). C, or λ, is the best of several by the average precision on every fifth training row.
//! Beside the streams is the batch problem with the logistic loss and C = 1. Rows a second are those that a learner takes
//! from memory, on one core.

use super::Row;
use super::paired::{bits, seconds};
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::{Bars, Report};
use maxmargin::data::{Dataset, Targets};
use maxmargin::error::Result;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Choice, Chosen, Input, Settings, Task};
use maxmargin::stream::learner;
use maxmargin::train::train;
use maxmargin_io::{ReadSettings, gather, options_like};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// The folder, its name for people, its training and its test rows.
const DATA: [(&str, &str, &str, &str); 2] = [
    ("reuters_modapte", "Reuters, 90 topics", "modapte90_train.svm.gz", "modapte90_test.svm.gz"),
    ("rcv1", "RCV1, a public subset, topics", "rcv1v2_topics_train.svm.gz", "rcv1v2_topics_test.svm.gz"),
];

/// A name, and the settings of a stream.
const STREAMS: [(&str, &[(&str, &str)]); 5] = [
    ("passive-aggressive, exact", &[("solver", "passive-aggressive")]),
    ("passive-aggressive, two labels", &[("solver", "passive-aggressive"), ("step", "two-labels")]),
    ("averaged-sgd, hinge", &[("solver", "averaged-sgd"), ("loss", "hinge")]),
    ("averaged-sgd, logistic", &[("solver", "averaged-sgd"), ("loss", "logistic")]),
    ("averaged-sgd, one-vs-rest", &[("solver", "averaged-sgd"), ("multilabel", "one-vs-rest"), ("loss", "hinge")]),
];

const COSTS: [f64; 4] = [0.1, 0.3, 1.0, 3.0];
const LAMBDAS: [f64; 4] = [1e-6, 1e-5, 1e-4, 1e-3];

const MEASURED: [Metric; 4] =
    [Metric::LabelRankingAveragePrecision, Metric::RankingLoss, Metric::HammingLoss, Metric::F1Micro];

/// A method, its C or λ, what is measured, and rows a second.
type Found = (&'static str, Option<f64>, Vec<f64>, Option<f64>);

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let folder = arguments.data.clone().or_else(|| std::env::var(super::codes::FOLDER).ok());
    let Some(folder) = folder else { return Ok(rows) };
    for (name, title, learned, tested) in DATA {
        let [learned, tested] = [learned, tested].map(|file| Path::new(&folder).join(name).join(file));
        if let Some(missing) = [&learned, &tested].into_iter().find(|file| !file.exists()) {
            console.say(&format!("{}: not found, skipped", missing.display()));
            continue;
        }
        rows.extend(on((name, title), (&learned, &tested), arguments.seed, (report, console, cancel))?);
    }
    Ok(rows)
}

/// The rows that have a label.
fn labelled(data: &Dataset) -> Result<Dataset> {
    let Targets::Sets { starts, .. } = data.targets() else { return Ok(data.clone()) };
    let rows: Vec<usize> = (0..data.rows()).filter(|&row| starts[row] < starts[row + 1]).collect();
    data.select(&rows)
}

/// Some of the rows in random order.
fn shuffled(data: &Dataset, seed: u64, wanted: impl Fn(usize) -> bool) -> Result<Dataset> {
    let mut order: Vec<usize> = (0..data.rows()).filter(|&row| wanted(row)).collect();
    order.sort_by_key(|&row| bits(seed, row as u64));
    data.select(&order)
}

/// The settings of a stream, with the number that is chosen on held-out rows.
fn settings(given: &[(&str, &str)], amount: f64) -> Result<Settings> {
    let steps = given.contains(&("solver", "passive-aggressive"));
    let named = given.iter().map(|(name, value)| (name.to_string(), Choice::Text(value.to_string())));
    let amount = (if steps { "c" } else { "lambda" }.to_string(), Choice::Number(amount));
    Settings::streamed(Task::Multilabel, &named.chain([amount]).collect::<Chosen>(), None)
}

/// One pass. Returns the model, and rows a second.
fn learned(settings: &Settings, rows: &Dataset) -> Result<(Model, f64)> {
    let mut learner = learner(settings, None)?;
    let began = Instant::now();
    let before = seconds(began);
    learner.learn(rows, 0..rows.rows())?;
    let rate = rows.rows() as f64 / (seconds(began) - before);
    Ok((learner.model(settings, None, None)?, rate))
}

fn measured(model: &Model, rows: &Dataset) -> Result<Vec<f64>> {
    let answers = Answers::new(model, rows)?;
    MEASURED.iter().map(|metric| Ok(answers.evaluate(metric)?.value)).collect()
}

fn on(
    (name, title): (&str, &str),
    (train_file, test_file): (&Path, &Path),
    seed: u64,
    (report, console, cancel): (&mut Report, &Console, &Cancel),
) -> Result<Vec<Row>> {
    let options = ReadSettings::default().options(None, cancel)?;
    let first = gather(&train_file.to_string_lossy(), None, &options, false, Input::Rows)?;
    let like = options_like(&options, &first.timed.loaded.data, &first.timed.loaded.facts);
    let tested = labelled(&gather(&test_file.to_string_lossy(), None, &like, false, Input::Rows)?.timed.loaded.data)?;
    let all = labelled(&first.timed.loaded.data)?;
    let stream = shuffled(&all, seed, |_| true)?;
    let part = shuffled(&all, seed, |row| row % 5 != 4)?;
    let judged = shuffled(&all, seed, |row| row % 5 == 4)?;
    let mut found: Vec<Found> = Vec::new();
    for (method, given) in STREAMS {
        let mut best: Option<(f64, f64)> = None;
        let amounts = if given.contains(&("solver", "passive-aggressive")) { COSTS } else { LAMBDAS };
        for amount in amounts {
            cancel.check()?;
            let (model, _) = learned(&settings(given, amount)?, &part)?;
            let quality = measured(&model, &judged)?[0];
            if best.is_none_or(|(before, _)| quality > before) {
                best = Some((quality, amount));
            }
        }
        let amount = best.map_or(amounts[0], |(_, amount)| amount);
        let (model, rate) = learned(&settings(given, amount)?, &stream)?;
        found.push((method, Some(amount), measured(&model, &tested)?, Some(rate)));
    }
    let batch = train(&all, &Settings::new(Task::Multilabel), None, &mut Silent, cancel)?.model;
    found.push(("train multilabel, logistic", None, measured(&batch, &tested)?, None));
    told((name, title), &found, report, console)
}

/// Prints a table, adds it to the report, and returns the rows of `--json`.
fn told((name, title): (&str, &str), found: &[Found], report: &mut Report, console: &Console) -> Result<Vec<Row>> {
    let names: Vec<String> = MEASURED.iter().map(|metric| metric.to_string()).collect();
    console.show(&format!("\n{title}"))?;
    let header: Vec<String> =
        [&["steps".to_string(), "C or λ".to_string()][..], &names, &["rows a second".to_string()]].concat();
    let line = |cells: &[String]| {
        cells[1..].iter().fold(format!("{:<32}", cells[0]), |line, cell| {
            format!("{line}{cell:>width$}", width = 14.max(cell.chars().count() + 2))
        })
    };
    console.show(&line(&header))?;
    let (mut rows, mut table) = (Vec::new(), Vec::new());
    for (method, amount, values, rate) in found {
        let setting = json!({ "data": name, "amount": amount });
        let mut cells =
            vec![method.to_string(), amount.map_or("–".to_string(), |amount| format::significant(amount, 1))];
        for (metric, value) in MEASURED.iter().zip(values) {
            let wide = metric.to_string().chars().count().max(12);
            cells.push(format!("{:>wide$}", format::fixed(*value, 4)));
            rows.push(Row::mean(setting.clone(), method, static_name(metric), &[*value], None));
        }
        cells.push(rate.map_or("–".to_string(), |rate| format::count(rate as u64)));
        if let Some(rate) = rate {
            rows.push(Row::mean(setting, method, "rows-per-second", &[*rate], None));
        }
        console.show(&line(&cells))?;
        table.push(cells.iter().map(|cell| cell.trim().to_string()).collect());
    }
    report.table(title.to_string(), header, table);
    let items = found.iter().map(|(method, _, values, _)| (method.to_string(), values[0])).collect();
    report.plot(format!("{title}: average precision"), "On the test rows.", Bars::new("average precision", items));
    Ok(rows)
}

/// The name of a measure as in `evaluate`.
fn static_name(metric: &Metric) -> &'static str {
    match metric {
        Metric::LabelRankingAveragePrecision => "label-ranking-average-precision",
        Metric::RankingLoss => "ranking-loss",
        Metric::HammingLoss => "hamming-loss",
        _ => "f1-micro",
    }
}
