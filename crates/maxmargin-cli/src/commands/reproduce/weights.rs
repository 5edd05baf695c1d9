//! The three ways to weigh rows, side by side: as a factor of the slack, as the margin, as a number of copies.
//!
//! For each seed, rows of two kinds are drawn in five dimensions: ordinary ones of weight 1, whose label depends on one
//! direction, and important ones of weight 3, whose label depends on another. A linear classifier with the hinge is trained
//! with each use of the weights, and tested on 4,000 further rows. Copies and slack give the same weights, up to the
//! tolerance; margins give others.
//!
//! After: Bagnell, Learning by constraints and SVMs (2), lecture notes, section 2.1.

use super::Row;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::{Report, Table};
use maxmargin::data::{Dataset, Dense, Matrix, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Model};
use maxmargin::parallel;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, Settings};
use maxmargin::simulate::{ComparisonSettings, Comparisons};
use maxmargin::task::WeightAs;
use maxmargin::train::train;
use serde_json::json;

/// Number of features, of training rows and of test rows.
const FEATURES: usize = 5;
const LEARNED: usize = 400;
const TESTED: usize = 4000;

/// The weight of important rows, which are every fourth.
const IMPORTANT: f64 = 3.0;

/// The relative gap of every fit.
const TOLERANCE: f64 = 1e-8;

/// What is measured: objective, weighted test error in per cent, angle to the solution of slack in degrees.
const MEASURED: [&str; 3] = ["objective", "weighted-error", "angle"];

/// Rows of both kinds. Streams differ in their rows, and not in their directions. The points are those of simulated pairs,
/// with one more feature as noise.
fn made(seed: u64, stream: u64, rows: usize) -> Result<Dataset> {
    let usual = ComparisonSettings::default();
    let pairs = rows as u64 / 2;
    let points = Comparisons::new(ComparisonSettings { pairs, features: FEATURES + 1, seed, stream, ..usual })?;
    let points = points.to_dataset()?;
    let (mut values, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let mut own = vec![0.0; FEATURES + 1];
        points.matrix().each_in_row(row, |column, value| own[column] = value);
        let noise = own.pop().unwrap_or_default();
        let important = row % 4 == 0;
        let score = if important { own[0] + own[1] } else { own[0] - 0.5 * own[1] };
        targets.push(if score + 0.5 * noise > 0.0 { 1.0 } else { -1.0 });
        weights.push(if important { IMPORTANT } else { 1.0 });
        values.extend(own);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, FEATURES)?);
    Dataset::new(matrix, Targets::Real(targets.into()))?.with_weights(weights)
}

/// The angle between the weights of two models, in degrees.
fn angle(one: &Model, other: &Model) -> f64 {
    let (one, other) = (one.scorer.weights().unwrap_or_default(), other.scorer.weights().unwrap_or_default());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // The arc cosine of a number near 1 would lose half of the digits.
    let (one_length, other_length) = (dot(one, one).sqrt(), dot(other, other).sqrt());
    let unit = |values: &[f64], length: f64| values.iter().map(|value| value / length).collect::<Vec<f64>>();
    let (one, other) = (unit(one, one_length), unit(other, other_length));
    let apart: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a - b).collect();
    let together: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a + b).collect();
    2.0 * dot(&apart, &apart).sqrt().atan2(dot(&together, &together).sqrt()).to_degrees()
}

/// What is measured of each way, for one seed.
fn measured(seed: u64, cancel: &Cancel) -> Result<Vec<[f64; 3]>> {
    let (learned, tested) = (made(seed, 0, LEARNED)?, made(seed, 1, TESTED)?);
    let mut models = Vec::new();
    for weight_as in WeightAs::ALL {
        let task = ClassifySettings { weight_as, ..ClassifySettings::default() };
        let settings = Settings { tolerance: TOLERANCE, ..Settings::of(task) };
        models.push(train(&learned, &settings, None, &mut Silent, cancel)?.model);
    }
    let slack = &models[0];
    models
        .iter()
        .map(|model| {
            let error = Answers::new(model, &tested)?.evaluate(&Metric::Error)?.value;
            Ok([model.certificate.objective, 100.0 * error, angle(model, slack)])
        })
        .collect()
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    if arguments.data.is_some() {
        return Err(Error::new(Code::BadSetting, "the three ways to weigh rows are compared on simulated rows alone")
            .help("leave --data out"));
    }
    let found: Vec<Result<Vec<[f64; 3]>>> =
        parallel::map(arguments.seeds as usize, |seed| measured(arguments.seed + seed as u64, cancel));
    let found = found.into_iter().collect::<Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for (at, way) in WeightAs::ALL.into_iter().enumerate() {
        for (number, metric) in MEASURED.into_iter().enumerate() {
            let values: Vec<f64> = found.iter().map(|ways| ways[at][number]).collect();
            rows.push(Row::mean(json!({ "data": "simulated" }), way.name(), metric, &values, None));
        }
    }
    console.show(&format!(
        "weights of rows in three ways, mean of {} seeds ± standard error; error in per cent, angle in degrees",
        arguments.seeds
    ))?;
    let mut header = format!("{:<8}", "way");
    MEASURED.iter().for_each(|metric| header.push_str(&format!("{metric:>20}")));
    console.show(&header)?;
    let mut table = Vec::new();
    for own in rows.chunks(MEASURED.len()) {
        let cells: Vec<String> =
            own.iter().map(|row| if row.metric == "angle" { format::fixed(row.ours, 6) } else { row.cell() }).collect();
        let mut line = format!("{:<8}", own[0].method);
        cells.iter().for_each(|cell| line.push_str(&format!("{cell:>20}")));
        console.show(&line)?;
        table.push([vec![own[0].method.to_string()], cells].concat());
    }
    let header = std::iter::once("way").chain(MEASURED).map(String::from).collect();
    report.table_with_choice("Weights in three ways", Table { header, rows: table, highlight: None });
    report.facts(
        "How it was measured",
        vec![
            ("seeds".to_string(), arguments.seeds.to_string()),
            ("training rows".to_string(), format::count(LEARNED as u64)),
            ("weights".to_string(), "every fourth row has weight 3, the others weight 1".to_string()),
            ("tested on".to_string(), format!("{} rows with the same weights", format::count(TESTED as u64))),
        ],
    );
    Ok(rows)
}
