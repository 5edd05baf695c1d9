//! Learning from clicks with position bias: how close each way comes to learning from the true grades.
//!
//! A production ranker, trained on a hundredth of the queries, and two more show all results of a random query. Place k is
//! looked at with probability (1/k)^1.5, a strong bias; a result that is looked at is clicked if it is relevant, and with probability 0.1 if it is
//! not. From the same clicks are learned:
//!
//! - `skyline`: the true grades, with all pairs. No clicks.
//! - `naive`: each click counts as much as another one.
//! - `preferences`: click > every unclicked result.
//! - `propensity`: inverse true propensities; `clipped`: the same, none below 0.1.
//! - `estimated`: inverse propensities that are estimated from the log by harvesting.
//!
//! C is chosen for each by the NDCG@10 on graded queries that are neither learned from nor tested on.

use super::Row;
use crate::args::ReproduceArguments;
use crate::commands::evaluate;
use crate::commands::simulate_clicks::policies;
use crate::console::Console;
use crate::format;
use crate::report::{Axis, LinePlot, Report, Series};
use maxmargin::clicks::{
    Against, ClickLog, Curve, Estimator, Keyed, LogBuilder, Propensity, Rule, estimate, learning_lists, learning_pairs,
};
use maxmargin::data::{Dataset, Scale};
use maxmargin::error::{Error, Result};
use maxmargin::metric::Metric;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Input, RankSettings, Regularisation, Settings};
use maxmargin::simulate::{ClickSettings, Clicks, Generator, Search, SearchSettings};
use maxmargin::task::TargetsAre;
use maxmargin::train::train;
use maxmargin_io::{ReadSettings, gather};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Numbers of clicks.
const CLICKS: [u64; 3] = [1_000, 10_000, 100_000];
/// Values of lambda to choose from.
const LAMBDAS: [f64; 4] = [1e-1, 1e-2, 1e-3, 1e-4];
const METHODS: [&str; 5] = ["naive", "preferences", "propensity", "estimated", "clipped"];
const POLICIES: usize = 3;
/// The exponent of the position bias.
const ETA: f64 = 1.5;
const CLIP: f64 = 0.1;

/// Rows to show, to choose C by, and to test on.
struct Parts {
    shown: Dataset,
    judged: Dataset,
    tested: Dataset,
    relevant: f64,
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let mut found: BTreeMap<(usize, u64, &'static str, &'static str), Vec<f64>> = BTreeMap::new();
    let names = ["simulated", "mq2008", "mslr"];
    for seed in arguments.seed..arguments.seed + arguments.seeds {
        if !arguments.real_only {
            add(&mut found, 0, &simulated(seed)?, seed, cancel)?;
        }
        for (at, name) in names.iter().enumerate().skip(1) {
            if let Some(parts) =
                arguments.data.as_deref().map(|folder| real(folder, name, cancel)).transpose()?.flatten()
            {
                add(&mut found, at, &parts, seed, cancel)?;
            }
        }
        console.say(&format!("seed {seed} done"));
    }
    let mut rows = Vec::new();
    for (&(at, clicks, method, metric), values) in &found {
        let setting = json!({ "data": names[at], "clicks": clicks });
        let row = Row::mean(setting, method, metric, values, None);
        console.show(&format!(
            "{:<10}{clicks:>9} clicks  {method:<12}{metric:<20}{} ± {}",
            names[at],
            format::fixed(row.ours, 4),
            format::fixed(row.standard_error, 4)
        ))?;
        rows.push(row);
    }
    for (at, name) in names.iter().enumerate() {
        let mut plot = LinePlot::new(Axis::log("clicks"), Axis::linear("NDCG@10"));
        for method in ["skyline"].iter().chain(&METHODS) {
            let points: Vec<(f64, f64)> = CLICKS
                .iter()
                .filter_map(|&clicks| {
                    let values = found.get(&(at, clicks, *method, "ndcg@10"))?;
                    Some((clicks as f64, values.iter().sum::<f64>() / values.len() as f64))
                })
                .collect();
            plot = if points.is_empty() { plot } else { plot.series(Series::new(*method, points).markers()) };
        }
        if found.keys().any(|key| key.0 == at) {
            let caption = "Mean over the seeds; C is chosen for each method on other graded queries.";
            report.plot(format!("{name}: NDCG@10 by the number of clicks"), caption, plot);
        }
    }
    Ok(rows)
}

/// A thousand queries to learn from, and as many others.
fn simulated(seed: u64) -> Result<Parts> {
    let of = |queries: u64, stream: u64| {
        let settings = SearchSettings { queries, docs: 20, features: 30, seed, stream, ..SearchSettings::default() };
        Search::new(settings)?.to_dataset()
    };
    Ok(Parts { shown: of(1000, 0)?, judged: of(300, 1)?, tested: of(1000, 2)?, relevant: 2.0 })
}

/// The parts of a data set of a folder, if it is there.
fn real(folder: &str, name: &str, cancel: &Cancel) -> Result<Option<Parts>> {
    let read = |file: &str| -> Result<Option<Dataset>> {
        let path = Path::new(folder).join(file);
        if !path.exists() {
            return Ok(None);
        }
        let options = ReadSettings::default().options(None, cancel)?;
        Ok(Some(gather(&path.to_string_lossy(), None, &options, false, Input::Ranked)?.timed.loaded.data))
    };
    if name == "mq2008" {
        let parts: Option<Vec<Dataset>> = (1..=5)
            .map(|part| read(&format!("mq2008/S{part}.txt.gz")))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .collect();
        let Some(parts) = parts else { return Ok(None) };
        let shown = parts[0].followed_by(&parts[1])?.followed_by(&parts[2])?;
        return Ok(Some(Parts { shown, judged: parts[3].clone(), tested: parts[4].clone(), relevant: 1.0 }));
    }
    let learned = read("mslr_sample/msn1.fold1.train.5k.txt.gz")?;
    let tested = read("mslr_sample/msn1.fold1.test.5k.txt.gz")?;
    let (Some(learned), Some(tested)) = (learned, tested) else { return Ok(None) };
    let (shown, judged) = maxmargin::data::hold_out(&learned, 0.3, 1)?;
    Ok(Some(Parts { shown, judged, tested, relevant: 2.0 }))
}

/// A log with at least so many clicks.
fn log_of(users: &Clicks<'_>, clicks: u64) -> Result<ClickLog> {
    let curve = users.examination().unwrap_or_default();
    let (mut builder, mut found, mut number) = (LogBuilder::default(), 0, 0);
    while found < clicks {
        let (query, list) = users.impression(number);
        let session = number.to_string();
        for shown in list {
            found += u64::from(shown.clicked);
            let ids = [users.query(query), session.as_bytes(), &users.item(shown.row)];
            let propensity = curve.get(shown.position as usize - 1).copied();
            builder.push(ids, Some(u64::from(shown.position)), shown.clicked, propensity).map_err(|bad| bad.error())?;
        }
        number += 1;
    }
    builder.finish()
}

/// The NDCG@10 with the best lambda, and that lambda is chosen on other queries.
fn best(parts: &Parts, learned: &Dataset, task: &RankSettings, cancel: &Cancel) -> Result<f64> {
    let metric = Metric::parse("ndcg@10")?;
    let mut best: Option<(f64, f64)> = None;
    for lambda in LAMBDAS {
        let settings = Settings {
            scale: Scale::Standard,
            regularisation: Regularisation::Lambda(lambda),
            ..Settings::of(task.clone())
        };
        let model = train(learned, &settings, None, &mut Silent, cancel)?.model;
        let judged = evaluate::value(&model, &parts.judged, &metric)?;
        if best.is_none_or(|(value, _)| judged > value) {
            best = Some((judged, evaluate::value(&model, &parts.tested, &metric)?));
        }
    }
    Ok(best.map_or(0.0, |best| best.1))
}

/// Adds the results of all methods with one seed.
fn add(
    found: &mut BTreeMap<(usize, u64, &'static str, &'static str), Vec<f64>>,
    at: usize,
    parts: &Parts,
    seed: u64,
    cancel: &Cancel,
) -> Result<()> {
    let graded = RankSettings::default();
    let by_clicks = RankSettings { targets_are: TargetsAre::Clicks, ..RankSettings::default() };
    let skyline = best(parts, &parts.shown, &graded, cancel)?;
    let scores = policies(&parts.shown, POLICIES, cancel)?;
    let settings = ClickSettings {
        relevant_grade: Some(parts.relevant),
        length: 10_000,
        eta: ETA,
        seed,
        ..ClickSettings::default()
    };
    let users = Clicks::new(settings, &parts.shown, &scores)?;
    let keyed = Keyed::new(&parts.shown)?;
    for clicks in CLICKS {
        let log = log_of(&users, clicks)?;
        found.entry((at, clicks, "skyline", "ndcg@10")).or_default().push(skyline);
        let estimated = estimate(&log, Estimator::Harvest, None, cancel)?;
        if let Some(error) = error_of(&estimated, 10) {
            found.entry((at, clicks, "estimated", "curve-error")).or_default().push(error);
        }
        let curve = estimated.curve().map(|(curve, _)| curve).unwrap_or_else(|_: Error| Curve::default());
        let flat = Curve::power(0.0, log.positions())?;
        for method in METHODS {
            let by = |propensity: &Propensity, clip: Option<f64>| {
                learning_lists(&log, &keyed, propensity, clip, Against::Shown).map(|joined| joined.data)
            };
            let (learned, task) = match method {
                "naive" => (by(&Propensity::Curve(flat.clone()), None)?, &by_clicks),
                "preferences" => (learning_pairs(&log, &keyed, Rule::EveryUnclicked, 0.0)?.data, &graded),
                "clipped" => (by(&Propensity::Log, Some(CLIP))?, &by_clicks),
                "estimated" if curve.values.is_empty() => continue,
                "estimated" => (by(&Propensity::Curve(curve.clone()), None)?, &by_clicks),
                _ => (by(&Propensity::Log, None)?, &by_clicks),
            };
            let value = best(parts, &learned, task, cancel)?;
            found.entry((at, clicks, method, "ndcg@10")).or_default().push(value);
        }
    }
    Ok(())
}

/// The largest relative error of the estimated curve over the first places, none if one of them has no estimate.
fn error_of(found: &maxmargin::clicks::Estimate, places: usize) -> Option<f64> {
    let first = found.positions.first()?.value?;
    let error = |place: &maxmargin::clicks::PositionEstimate| {
        let truth = f64::from(place.position).powf(-ETA);
        Some((place.value? / first / truth - 1.0).abs())
    };
    found.positions.iter().take(places).map(error).try_fold(0.0, |most: f64, error| Some(most.max(error?)))
}
