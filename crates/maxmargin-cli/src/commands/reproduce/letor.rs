//! Rankings of LETOR data: the ranking SVM over pairs, and the SVM for mean average precision, on MQ2008 and OHSUMED.
//!
//! Five folds, as published: three parts to learn from, the next one to choose C by its MAP, the last one to test on. The
//! metrics follow the rule of the LETOR tools. Values of C are fitted in rising order, each from the solution of the one
//! before. Features are those of the files, which are scaled for each query already.

use super::Row;
use super::codes::folder_of;
use crate::args::ReproduceArguments;
use crate::commands::evaluate;
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::Dataset;
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::metric::{Metric, Variant};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Input, RankSettings, Settings};
use maxmargin::structured::RankMeasure;
use maxmargin_io::{ReadSettings, gather};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

const PARTS: usize = 5;

/// A data set with the published results: MAP and mean NDCG of each method.
struct Letor {
    name: &'static str,
    title: &'static str,
    rank_svm: (Option<f64>, Option<f64>),
    svm_map: (Option<f64>, Option<f64>),
}

/// LETOR 4.0 publishes RankSVM-Struct on MQ2008; LETOR 3.0 publishes RankSVM and SVMmap on OHSUMED.
const DATA: [Letor; 2] = [
    Letor { name: "mq2008", title: "MQ2008", rank_svm: (Some(0.4696), Some(0.4832)), svm_map: (None, None) },
    Letor { name: "ohsumed", title: "OHSUMED", rank_svm: (Some(0.4334), None), svm_map: (Some(0.4453), None) },
];

/// How many values of C are tried.
const VALUES: usize = 12;

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let data = folder_of(arguments, "rankings are tried on real data", "mq2008 and ohsumed")?;
    let mut rows = Vec::new();
    for letor in DATA {
        let part = |number: usize| Path::new(&data).join(letor.name).join(format!("S{number}.txt.gz"));
        let parts: Vec<PathBuf> = (1..=PARTS).map(part).collect();
        if let Some(missing) = parts.iter().find(|part| !part.exists()) {
            console.say(&format!("{}: not found, skipped", missing.display()));
            continue;
        }
        let parts = parts.iter().map(|part| read(part, cancel)).collect::<Result<Vec<Dataset>>>()?;
        rows.extend(on(&letor, &parts, report, console, cancel)?);
    }
    Ok(rows)
}

fn read(file: &Path, cancel: &Cancel) -> Result<Dataset> {
    let options = ReadSettings::default().options(None, cancel)?;
    Ok(gather(&file.to_string_lossy(), None, &options, false, Input::Ranked)?.timed.loaded.data)
}

/// Both methods on all folds of a data set.
fn on(letor: &Letor, parts: &[Dataset], report: &mut Report, console: &Console, cancel: &Cancel) -> Result<Vec<Row>> {
    let (map, mean_ndcg) = (Metric::parse("map:letor")?, Metric::parse("mean-ndcg:letor")?);
    let rank_svm = Settings { loss: Loss::Hinge, ..Settings::of(RankSettings::default()) };
    let optimize = Some(RankMeasure::Map(Variant::Letor));
    let svm_map = Settings::of(RankSettings { optimize, ..RankSettings::default() });
    let header = ["fold", "method", "C", "MAP to choose C", "MAP", "mean NDCG", "seconds"].map(String::from);
    console.show(&format!("\n{}", letor.title))?;
    console.show(&line(&header))?;
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (method, settings, published) in [("rank-svm", rank_svm, letor.rank_svm), ("svm-map", svm_map, letor.svm_map)] {
        let mut found: [Vec<f64>; 2] = Default::default();
        for fold in 0..PARTS {
            let [a, b, c, judged, tested] = [0, 1, 2, 3, 4].map(|step| &parts[(fold + step) % PARTS]);
            let learned = a.followed_by(b)?.followed_by(c)?;
            let both = learned.followed_by(judged)?;
            let held_out = (learned.rows()..both.rows()).collect();
            let usual = Grid::usual(&learned, &settings)?;
            let (low, high) = (usual.values().first().copied(), usual.values().last().copied());
            let grid = Grid::spaced(low.unwrap_or(1e-3), high.unwrap_or(1e3), VALUES)?;
            let began = Instant::now();
            let validation = CrossValidation { folds: 2, seed: settings.seed, metrics: vec![map.clone()] };
            let candidates = grid.candidates(&settings);
            let tuned = validation.run_on(&both, vec![held_out], &candidates, &mut Silent, cancel)?;
            let model = tuned.refit(tuned.best, &learned, None, &mut Silent, cancel)?.model;
            let seconds = began.elapsed().as_secs_f64();
            let values = [evaluate::value(&model, tested, &map)?, evaluate::value(&model, tested, &mean_ndcg)?];
            found.iter_mut().zip(values).for_each(|(found, value)| found.push(value));
            let best = &tuned.rows[tuned.best];
            let cells = [
                (fold + 1).to_string(),
                method.to_string(),
                format::significant(best.c, 3),
                format::fixed(best.metrics[0].mean, 4),
                format::fixed(values[0], 4),
                format::fixed(values[1], 4),
                format::fixed(seconds, 1),
            ];
            console.show(&line(&cells))?;
            lines.push(cells.to_vec());
        }
        let setting = json!({ "data": letor.name });
        for (metric, values, published) in [("map", &found[0], published.0), ("mean-ndcg", &found[1], published.1)] {
            let row = Row::mean(setting.clone(), method, metric, values, published);
            let beside = published.map_or(String::new(), |published| format!(", published {published}"));
            let (ours, error) = (format::fixed(row.ours, 4), format::fixed(row.standard_error, 4));
            console.show(&format!("{method}: {metric} {ours} ± {error}{beside}"))?;
            rows.push(row);
        }
    }
    report.table(letor.title.to_string(), header.to_vec(), lines);
    Ok(rows)
}

fn line(cells: &[String; 7]) -> String {
    let [fold, method, rest @ ..] = cells;
    rest.iter().fold(format!("{fold:<6}{method:<10}"), |line, cell| format!("{line}{cell:>17}"))
}
