//! Chunking: the phrases of newspaper sentences by words and parts of speech (Tjong Kim Sang & Buchholz 2000), with the
//! templates in `chunking.templates`. Learned on the training sentences, measured on the test sentences by the F1 of
//! spans.

use super::Row;
use super::codes::folder_of;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::{Dataset, Groups};
use maxmargin::error::Result;
use maxmargin::metric::Metric;
use maxmargin::model::Answers;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Input, Regularisation, SequenceSettings, Settings};
use maxmargin::train::train;
use maxmargin_io::{Loaded, ReadSettings, gather, options_like};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

const TEMPLATES: &str = include_str!("chunking.templates");

const FILES: [&str; 2] = ["conll2000/train.txt.gz", "conll2000/test.txt.gz"];

/// The weight of the loss and the relative gap to stop at: a smaller gap does not change F1 beyond chance.
const C: f64 = 0.1;
const TOLERANCE: f64 = 0.02;

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let folder = folder_of(arguments, "the sentences are real data", "conll2000")?;
    let files = FILES.map(|file| Path::new(&folder).join(file).to_string_lossy().into_owned());
    let read = ReadSettings { templates: Some(TEMPLATES.to_string()), ..ReadSettings::default() };
    let options = read.options(None, cancel)?;
    let began = Instant::now();
    let Loaded { data: learned, facts } = gather(&files[0], None, &options, false, Input::Rows)?.timed.loaded;
    let options = options_like(&options, &learned, &facts);
    let tested = gather(&files[1], None, &options, false, Input::Rows)?.timed.loaded.data;
    let reading = began.elapsed().as_secs_f64();
    let sentences = |data: &Dataset| format::count(data.groups().map_or(0, Groups::len) as u64);
    let features = format::count(learned.cols() as u64);
    console.show(&format!(
        "{} sentences to train on, {} to test on, {features} features, read in {}",
        sentences(&learned),
        sentences(&tested),
        format::seconds(reading)
    ))?;
    let settings = Settings {
        regularisation: Regularisation::C(C),
        tolerance: TOLERANCE,
        ..Settings::of(SequenceSettings::default())
    };
    let began = Instant::now();
    let model = train(&learned, &settings, None, &mut Silent, cancel)?.model;
    let seconds = began.elapsed().as_secs_f64();
    let answers = Answers::new(&model, &tested)?;
    let setting = json!({ "data": "conll2000", "c": C });
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for metric in [Metric::SpanF1, Metric::TokenAccuracy, Metric::SequenceAccuracy] {
        let value = 100.0 * answers.evaluate(&metric)?.value;
        let name = match metric {
            Metric::SpanF1 => "span-f1",
            Metric::TokenAccuracy => "token-accuracy",
            _ => "sequence-accuracy",
        };
        console.show(&format!("{name:<18} {:>8} %", format::fixed(value, 2)))?;
        table.push(vec![name.to_string(), format::fixed(value, 2)]);
        rows.push(row(setting.clone(), name, value));
    }
    rows.push(row(setting, "seconds", seconds));
    let gap = model.certificate.gap().map_or("–".to_string(), format::gap);
    console.show(&format!("trained in {}, gap {gap}, C = {C}", format::seconds(seconds)))?;
    report.table("conll2000", ["metric", "%"].map(String::from).to_vec(), table);
    Ok(rows)
}

fn row(setting: serde_json::Value, metric: &'static str, ours: f64) -> Row {
    Row { setting, method: "sequence", metric, ours, standard_error: 0.0, seeds: 1, published: None }
}
