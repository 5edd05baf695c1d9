//! The passive-aggressive family on streams: every rule with both variants, one pass over shuffled rows.
//!
//! - Simulated rows, one positive row in 1 + k for k from 1 to 1000, tested on as many rows of each class.
//! - One spoken digit against the rest.
//! - Documents of LETOR, relevant or not, five folds as published.
//! - Matching proteins, about one row in 110, five folds of whole blocks.
//!
//! Features are scaled to mean 0 and variance 1 by the training rows. C is the best of four on rows that are neither
//! learned from nor tested on: by MAP where rows have queries, otherwise by the AUC. Measured are, on the test rows, AUC,
//! MAP over queries (the average precision where there are none), the error, the mean of the errors of both classes, and
//! the number of rows that the learner takes from memory in a second of one core.
//!
//! After: Paired passive aggressive for ranking and classification, section 6.

use super::Row;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::{Axis, Bars, LinePlot, Report, Series};
use maxmargin::data::{Dataset, Dense, Matrix, Targets};
use maxmargin::error::Result;
use maxmargin::online::ClassificationLearner;
use maxmargin::run::Cancel;
use maxmargin::settings::{Choice, Chosen, Input, Settings, Solver, Task};
use maxmargin_io::{ReadSettings, gather};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a missed margin costs.
const VARIANTS: [&str; 2] = ["pa-1", "pa-2"];

const COSTS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];

/// Negative rows for each positive one.
const SKEWS: [usize; 4] = [1, 10, 100, 1000];

/// Simulated rows to learn from, to judge by and to test on, and their features.
const SIMULATED: [usize; 3] = [20_000, 4_000, 10_000];
const FEATURES: usize = 20;

const MEASURED: [&str; 5] = ["auc", "map", "error", "mean-class-error", "rows-per-second"];

/// Folds of real data.
const FOLDS: usize = 5;

/// Rows of two classes.
#[derive(Clone, Default)]
struct Rows {
    features: usize,
    values: Vec<f32>,
    positive: Vec<bool>,
    /// The query of each row; empty if there are none.
    queries: Vec<usize>,
}

/// Rows to learn from, to choose C by, and to test on.
struct Parts {
    learned: Rows,
    judged: Rows,
    tested: Rows,
}

/// The final mix of splitmix64: well distributed bits from a counter.
pub(super) fn bits(seed: u64, at: u64) -> u64 {
    let mut z =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Twelve uniform numbers, less their mean: nearly normal, with variance 1.
fn noise(seed: u64, at: u64) -> f64 {
    (0..12).map(|k| (bits(seed, 12 * at + k) >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
}

/// Rows of two clouds, of which one in 1 + `skew` is positive. The clouds differ in a fifth of the features.
fn simulated(seed: u64, part: u64, rows: usize, skew: usize) -> Rows {
    let seed = bits(seed, 1_000 + part);
    let mut made = Rows { features: FEATURES, ..Rows::default() };
    for row in 0..rows {
        let positive = row % (1 + skew) == skew;
        let shift = if positive { 0.75 } else { -0.75 };
        for feature in 0..FEATURES {
            let mean = if feature < FEATURES / 5 { shift } else { 0.0 };
            made.values.push((mean + noise(seed, (row * FEATURES + feature) as u64)) as f32);
        }
        made.positive.push(positive);
    }
    made
}

impl Rows {
    /// The rows of a data set with dense features. Numbers are positive from `least` on, or exactly at `own`.
    fn of(data: &Dataset, is_positive: impl Fn(f64) -> bool) -> Result<Rows> {
        let features = data.cols();
        let mut values = vec![0.0; data.rows() * features];
        for (row, own) in values.chunks_exact_mut(features.max(1)).enumerate() {
            data.matrix().each_in_row(row, |column, value| own[column] = value as f32);
        }
        let positive = data.targets().real()?.iter().map(|&value| is_positive(value)).collect();
        let ranges = data.groups().into_iter().flat_map(|groups| groups.ranges().enumerate());
        let queries = ranges.flat_map(|(query, rows)| rows.map(move |_| query)).collect();
        Ok(Rows { features, values, positive, queries })
    }

    fn len(&self) -> usize {
        self.positive.len()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.features..(row + 1) * self.features]
    }

    fn chosen(&self, rows: &[usize]) -> Rows {
        Rows {
            features: self.features,
            values: rows.iter().flat_map(|&row| self.row(row)).copied().collect(),
            positive: rows.iter().map(|&row| self.positive[row]).collect(),
            queries: if self.queries.is_empty() {
                Vec::new()
            } else {
                rows.iter().map(|&row| self.queries[row]).collect()
            },
        }
    }

    /// The rows in an order that depends on a seed.
    fn shuffled(&self, seed: u64) -> Rows {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&row| bits(seed, row as u64));
        self.chosen(&order)
    }

    fn dataset(&self) -> Result<Dataset> {
        let matrix = Matrix::DenseF32(Dense::new(self.values.clone(), self.len(), self.features)?);
        let targets: Vec<f64> = self.positive.iter().map(|&positive| if positive { 1.0 } else { -1.0 }).collect();
        Dataset::new(matrix, Targets::Real(targets.into()))
    }
}

impl Parts {
    /// All parts with features of mean 0 and variance 1 in the first one.
    fn scaled(mut self) -> Parts {
        let (features, rows) = (self.learned.features, self.learned.len() as f64);
        let (mut mean, mut square) = (vec![0.0; features], vec![0.0; features]);
        for own in self.learned.values.chunks_exact(features.max(1)) {
            for (feature, &value) in own.iter().enumerate() {
                mean[feature] += f64::from(value) / rows;
                square[feature] += f64::from(value) * f64::from(value) / rows;
            }
        }
        let factor: Vec<f64> = (0..features)
            .map(|feature| square[feature] - mean[feature] * mean[feature])
            .map(|variance| if variance > 1e-12 { 1.0 / variance.sqrt() } else { 0.0 })
            .collect();
        for part in [&mut self.learned, &mut self.judged, &mut self.tested] {
            for own in part.values.chunks_exact_mut(features.max(1)) {
                for (feature, value) in own.iter_mut().enumerate() {
                    *value = ((f64::from(*value) - mean[feature]) * factor[feature]) as f32;
                }
            }
        }
        self
    }
}

/// The share of pairs of a positive and a negative row in the right order; equal scores count half.
fn auc(scores: &[f64], positive: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut below, mut won, mut positives, mut at) = (0.0, 0.0, 0.0, 0);
    while at < order.len() {
        let end = at + order[at..].iter().take_while(|&&row| scores[row] == scores[order[at]]).count();
        let own = order[at..end].iter().filter(|&&row| positive[row]).count() as f64;
        let others = (end - at) as f64 - own;
        won += own * (below + 0.5 * others);
        (positives, below, at) = (positives + own, below + others, end);
    }
    won / (positives * below)
}

/// The mean over queries of the average precision; a query without positive rows counts 0.
fn mean_average_precision(scores: &[f64], rows: &Rows) -> f64 {
    let mut by_query: Vec<Vec<usize>> = Vec::new();
    for row in 0..rows.len() {
        let query = rows.queries.get(row).copied().unwrap_or(0);
        if by_query.len() <= query {
            by_query.resize(query + 1, Vec::new());
        }
        by_query[query].push(row);
    }
    by_query.retain(|own| !own.is_empty());
    let queries = by_query.len() as f64;
    let precision = |mut own: Vec<usize>| {
        own.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let (mut found, mut sum) = (0.0, 0.0);
        for (place, &row) in own.iter().enumerate() {
            if rows.positive[row] {
                found += 1.0;
                sum += found / (place + 1) as f64;
            }
        }
        if found > 0.0 { sum / found } else { 0.0 }
    };
    by_query.into_iter().map(precision).sum::<f64>() / queries
}

/// AUC, MAP, error, and the mean error of both classes.
fn judged(weights: &[f64], constant: f64, rows: &Rows) -> [f64; 4] {
    let score = |row: usize| rows.row(row).iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + constant;
    let scores: Vec<f64> = (0..rows.len()).map(score).collect();
    let wrong = |class: bool| {
        let own = (0..rows.len()).filter(|&row| rows.positive[row] == class);
        (own.clone().filter(|&row| (scores[row] >= 0.0) != class).count() as f64, own.count() as f64)
    };
    let ((missed, positives), (alarms, negatives)) = (wrong(true), wrong(false));
    [
        auc(&scores, &rows.positive),
        mean_average_precision(&scores, rows),
        (missed + alarms) / (positives + negatives),
        0.5 * (missed / positives + alarms / negatives),
    ]
}

/// Seconds that this thread has run, if the system counts them, so that other programs do not disturb a measurement;
/// otherwise those that have passed since `began`.
pub(super) fn seconds(began: Instant) -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| 1e-9 * nanoseconds)
}

/// One pass. Returns weights, the constant term and rows a second.
fn learned(solver: Solver, variant: &str, c: f64, rows: &Dataset) -> Result<(Vec<f64>, f64, f64)> {
    let chosen: Chosen = [
        ("solver", Choice::Text(solver.name().to_string())),
        ("pa-variant", Choice::Text(variant.to_string())),
        ("c", Choice::Number(c)),
        ("intercept", Choice::Text("penalised".to_string())),
        ("classes", Choice::Words(vec!["-1".to_string(), "1".to_string()])),
    ]
    .into_iter()
    .map(|(name, choice)| (name.to_string(), choice))
    .collect();
    let mut learner = ClassificationLearner::new(&Settings::streamed(Task::Classify, &chosen, None)?)?;
    let began = Instant::now();
    let before = seconds(began);
    learner.learn(rows, 0..rows.rows())?;
    let rate = rows.rows() as f64 / (seconds(began) - before);
    let (weights, constants) = learner.point();
    Ok((weights, constants.first().copied().unwrap_or(0.0), rate))
}

/// What is measured of one rule, with the best C.
fn measured(solver: Solver, variant: &str, parts: &Parts, stream: &Dataset, cancel: &Cancel) -> Result<[f64; 5]> {
    let by_map = !parts.judged.queries.is_empty();
    let mut best: Option<(f64, [f64; 5])> = None;
    for c in COSTS {
        cancel.check()?;
        let (weights, constant, rate) = learned(solver, variant, c, stream)?;
        let [auc, map, ..] = judged(&weights, constant, &parts.judged);
        let quality = if by_map { map } else { auc };
        if best.is_none_or(|(most, _)| quality > most) {
            let [auc, map, error, class_error] = judged(&weights, constant, &parts.tested);
            best = Some((quality, [auc, map, error, class_error, rate]));
        }
    }
    Ok(best.map_or([f64::NAN; 5], |(_, found)| found))
}

/// An experiment: its name for people, its setting for `--json`, and its parts by seed or fold.
struct Trial<'a> {
    title: String,
    setting: Value,
    count: usize,
    parts: Box<dyn Fn(usize) -> Result<Parts> + 'a>,
}

/// Figures of each rule and variant, in the order of the rules, by what is measured.
type Found = Vec<(Solver, &'static str, [Vec<f64>; 5])>;

fn tried(trial: &Trial<'_>, first_seed: u64, cancel: &Cancel) -> Result<Found> {
    let each =
        Solver::PAIRED.into_iter().flat_map(|solver| VARIANTS.map(|variant| (solver, variant, Default::default())));
    let mut found: Found = each.collect();
    for number in 0..trial.count {
        let parts = (trial.parts)(number)?.scaled();
        let stream = parts.learned.shuffled(first_seed + number as u64).dataset()?;
        for (solver, variant, figures) in &mut found {
            let values = measured(*solver, variant, &parts, &stream, cancel)?;
            figures.iter_mut().zip(values).for_each(|(figures, value)| figures.push(value));
        }
    }
    Ok(found)
}

/// Prints a table, adds it to the report, and returns the rows of `--json`.
fn told(trial: &Trial<'_>, found: &Found, report: &mut Report, console: &Console) -> Result<Vec<Row>> {
    console.show(&format!("\n{}, mean of {} ± standard error", trial.title, trial.count))?;
    let header: Vec<String> = ["solver", "variant"].into_iter().chain(MEASURED).map(String::from).collect();
    let line = |cells: &[String]| {
        let (names, values) = cells.split_at(2);
        values.iter().fold(format!("{:<21}{:<9}", names[0], names[1]), |line, cell| format!("{line}{cell:>19}"))
    };
    console.show(&line(&header))?;
    let (mut rows, mut table) = (Vec::new(), Vec::new());
    for (solver, variant, figures) in found {
        let mut cells = vec![solver.name().to_string(), variant.to_string()];
        for (metric, values) in MEASURED.into_iter().zip(figures) {
            let mut setting = trial.setting.clone();
            setting["variant"] = json!(variant);
            let row = Row::mean(setting, solver.name(), metric, values, None);
            cells.push(if metric == "rows-per-second" {
                format!("{} million", format::fixed(row.ours / 1e6, 2))
            } else {
                format!("{} ± {}", format::fixed(row.ours, 4), format::fixed(row.standard_error, 4))
            });
            rows.push(row);
        }
        console.show(&line(&cells))?;
        table.push(cells);
    }
    report.table(trial.title.clone(), header, table);
    Ok(rows)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A line for each rule over the share of the rare class.
fn skew_plot(by_skew: &[Found], measure: usize, label: &str) -> LinePlot {
    let axis = Axis::log("negative rows for each positive one");
    let mut plot = LinePlot::new(axis, Axis::linear(label));
    for (at, (solver, variant, _)) in by_skew.first().into_iter().flatten().enumerate() {
        if *variant == VARIANTS[0] {
            let points = SKEWS.iter().zip(by_skew).map(|(&skew, found)| (skew as f64, mean(&found[at].2[measure])));
            plot = plot.series(Series::new(solver.name(), points.collect()).markers());
        }
    }
    plot
}

fn bars(found: &Found, measure: usize, label: &str) -> Bars {
    let items = found
        .iter()
        .map(|(solver, variant, figures)| (format!("{} {variant}", solver.name()), mean(&figures[measure])));
    Bars::new(label, items.collect())
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if !arguments.real_only {
        let mut by_skew = Vec::new();
        for skew in SKEWS {
            let parts = |number: usize| {
                let made = |part: usize, skew: usize| {
                    simulated(arguments.seed + number as u64, part as u64, SIMULATED[part], skew)
                };
                Ok(Parts { learned: made(0, skew), judged: made(1, 1), tested: made(2, 1) })
            };
            let trial = Trial {
                title: format!("simulated, 1 : {skew}"),
                setting: json!({ "data": "simulated", "skew": skew }),
                count: arguments.seeds as usize,
                parts: Box::new(parts),
            };
            let found = tried(&trial, arguments.seed, cancel)?;
            rows.extend(told(&trial, &found, report, console)?);
            by_skew.push(found);
        }
        let caption = "Simulated rows, PA-I. Tested on as many rows of each class.";
        report.plot("Error and the rare class", caption, skew_plot(&by_skew, 3, "mean error of both classes"));
        report.plot("AUC and the rare class", caption, skew_plot(&by_skew, 0, "AUC"));
    }
    let folder = arguments.data.clone().or_else(|| std::env::var(super::codes::FOLDER).ok());
    if let Some(folder) = folder {
        for trial in real(Path::new(&folder), console, cancel)? {
            let found = tried(&trial, arguments.seed, cancel)?;
            rows.extend(told(&trial, &found, report, console)?);
            let caption = "The mean over folds or digits.";
            report.plot(format!("{}: AUC", trial.title), caption, bars(&found, 0, "AUC"));
            report.plot(format!("{}: rows a second", trial.title), caption, bars(&found, 4, "rows a second"));
        }
    }
    Ok(rows)
}

/// The experiments on real data whose files are there.
fn real(folder: &Path, console: &Console, cancel: &Cancel) -> Result<Vec<Trial<'static>>> {
    let mut trials = Vec::new();
    let present = |files: &[PathBuf]| match files.iter().find(|file| !file.exists()) {
        Some(missing) => {
            console.say(&format!("{}: not found, skipped", missing.display()));
            false
        }
        None => true,
    };
    let digits =
        ["fsdd_mfcc130_train.svm.gz", "fsdd_mfcc130_test.svm.gz"].map(|name| folder.join("spoken_digits").join(name));
    if present(&digits) {
        let [train, test] = digits.map(|file| read(&file, &ReadSettings::default(), Input::Rows, cancel));
        trials.push(spoken(train?, test?));
    }
    for (name, title) in [("ohsumed", "OHSUMED"), ("mq2008", "MQ2008")] {
        let files: Vec<PathBuf> = (1..=FOLDS).map(|part| folder.join(name).join(format!("S{part}.txt.gz"))).collect();
        if present(&files) {
            let parts = files.iter().map(|file| read(file, &ReadSettings::default(), Input::Ranked, cancel));
            trials.push(letor(name, title, parts.collect::<Result<Vec<Dataset>>>()?)?);
        }
    }
    let proteins = folder.join("protein_homology").join("protein.csv.gz");
    if present(std::slice::from_ref(&proteins)) {
        let settings = ReadSettings {
            target: Some("target".to_string()),
            group: Some("block".to_string()),
            ignore: vec!["example".to_string()],
            ..ReadSettings::default()
        };
        trials.push(homology(&read(&proteins, &settings, Input::Ranked, cancel)?)?);
    }
    Ok(trials)
}

fn read(file: &Path, settings: &ReadSettings, input: Input, cancel: &Cancel) -> Result<Dataset> {
    let options = settings.options(None, cancel)?;
    Ok(gather(&file.to_string_lossy(), None, &options, false, input)?.timed.loaded.data)
}

/// One digit against the rest, for each of the ten. Every fifth training row is for judging.
fn spoken(train: Dataset, test: Dataset) -> Trial<'static> {
    let parts = move |digit: usize| {
        let own = |value: f64| value == digit as f64;
        let (all, tested) = (Rows::of(&train, own)?, Rows::of(&test, own)?);
        let part = |judged: bool| {
            (0..all.len()).filter(|row| bits(7, *row as u64).is_multiple_of(5) == judged).collect::<Vec<_>>()
        };
        Ok(Parts { learned: all.chosen(&part(false)), judged: all.chosen(&part(true)), tested })
    };
    Trial {
        title: "spoken digits, one against the rest".to_string(),
        setting: json!({ "data": "spoken_digits" }),
        count: 10,
        parts: Box::new(parts),
    }
}

/// Relevant documents against others: three parts to learn from, the next one to judge by, the last one to test on.
fn letor(name: &'static str, title: &str, parts: Vec<Dataset>) -> Result<Trial<'static>> {
    let take = |data: &Dataset| Rows::of(data, |grade| grade >= 1.0);
    let folds = move |fold: usize| {
        let [a, b, c, judged, tested] = [0, 1, 2, 3, 4].map(|step| &parts[(fold + step) % FOLDS]);
        let learned = a.followed_by(b)?.followed_by(c)?;
        Ok(Parts { learned: take(&learned)?, judged: take(judged)?, tested: take(tested)? })
    };
    Ok(Trial {
        title: format!("{title}, relevant or not"),
        setting: json!({ "data": name }),
        count: FOLDS,
        parts: Box::new(folds),
    })
}

/// Matching proteins: whole blocks in five parts.
fn homology(data: &Dataset) -> Result<Trial<'static>> {
    let all = Rows::of(data, |value| value > 0.0)?;
    let folds = move |fold: usize| {
        let part = |wanted: &[usize]| {
            let rows = (0..all.len()).filter(|&row| wanted.contains(&((all.queries[row] + FOLDS - fold) % FOLDS)));
            all.chosen(&rows.collect::<Vec<usize>>())
        };
        Ok(Parts { learned: part(&[0, 1, 2]), judged: part(&[3]), tested: part(&[4]) })
    };
    Ok(Trial {
        title: "matching proteins".to_string(),
        setting: json!({ "data": "protein_homology" }),
        count: FOLDS,
        parts: Box::new(folds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_of_all_pairs_and_all_places() {
        let scores = [3.0, 1.0, 2.0, 2.0, 0.5];
        let positive = vec![true, false, true, false, true];
        let mut won = 0.0;
        for p in 0..5 {
            for n in 0..5 {
                if positive[p] && !positive[n] {
                    won += if scores[p] > scores[n] { 1.0 } else { f64::from(u8::from(scores[p] == scores[n])) / 2.0 };
                }
            }
        }
        assert!((auc(&scores, &positive) - won / 6.0).abs() < 1e-12);
        let rows = Rows { positive, ..Rows::default() };
        assert!((mean_average_precision(&scores, &rows) - (1.0 + 1.0 + 0.6) / 3.0).abs() < 1e-12);
        let rows = Rows { queries: vec![0, 0, 2, 2, 2], ..rows };
        assert!((mean_average_precision(&scores, &rows) - (1.0 + (1.0 + 2.0 / 3.0) / 2.0) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn simulated_rows_have_the_stated_share_and_variance() {
        let rows = simulated(3, 0, 2200, 10);
        assert_eq!(rows.positive.iter().filter(|positive| **positive).count(), 200);
        let last: Vec<f64> = (0..2200).map(|row| f64::from(rows.row(row)[FEATURES - 1])).collect();
        let variance = last.iter().map(|x| x * x).sum::<f64>() / 2200.0;
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
        assert!(simulated(3, 0, 5, 1).values != simulated(4, 0, 5, 1).values);
    }
}
