//! Real comparisons: football and chess games by what was known before each game, split by time, and recipes by their
//! ingredients, split by person. Every method is evaluated on the same pairs:
//!
//! - `majority` always predicts the most frequent outcome of the training pairs;
//! - `elo` and `glicko` are the ratings alone, with the threshold that has the lowest error on the training pairs;
//! - `rank`, `rank2` and `compare` are linear in all features, with the hinge; C is chosen by five-fold
//!   cross-validation on the training pairs. `compare-logistic` is `compare` with the likelihood of the three outcomes,
//!   whose threshold is always above zero. If no C gives a model, the most frequent outcome is predicted.

use super::Row;
use crate::args::{Arguments, Command};
use crate::commands::features;
use crate::console::Console;
use crate::format;
use crate::report::{Report, Table};
use clap::Parser;
use maxmargin::data::{Dataset, Outcome, Pairs, Scale, hold_out};
use maxmargin::error::{Code, Error, Result};
use maxmargin::loss::Loss;
use maxmargin::metric::{Judged, Metric, score_differences};
use maxmargin::model::Answers;
use maxmargin::rating::best_threshold;
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Method, Settings, Task};
use maxmargin::train::train;
use maxmargin_io::{ReadSettings, gather};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Games with dates: their file, and which of them are for training and for testing.
struct Games {
    name: &'static str,
    file: &'static str,
    /// The first and the last date of the training games. Later games are test games.
    learn: [&'static str; 2],
    test: &'static str,
    split: &'static str,
}

const GAMES: [Games; 2] = [
    Games {
        name: "football",
        file: "football/results.csv.gz",
        learn: ["2002-01-01", "2017-12-31"],
        test: "2018-01-01",
        split: "trained on 2002 to 2017, tested from 2018 on",
    },
    Games {
        name: "chess2010",
        file: "chess2010/training_data.csv.gz",
        learn: ["41", "80"],
        test: "81",
        split: "trained on months 41 to 80, tested from month 81 on",
    },
];

const RECIPES: [&str; 2] = ["recipes/pairs.csv", "recipes/items.csv"];

/// The share of people whose choices are held out.
const HELD_OUT: f64 = 0.3;

/// Number of folds for choosing C.
const FOLDS: usize = 5;

/// Error and comparison AUC of one method on one test set.
struct Judgement {
    method: &'static str,
    error: f64,
    /// `None` for a method without scores.
    area: Option<f64>,
}

pub(super) fn run(
    folder: &str,
    seeds: u64,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let folder = Path::new(folder);
    let mut rows = Vec::new();
    for games in &GAMES {
        let file = folder.join(games.file);
        if !file.exists() {
            console.say(&format!("{}: not found, skipped", file.display()));
            continue;
        }
        let (learned, tested) = histories(games, &file, cancel)?;
        let judged = by_games(&learned, &tested, cancel)?;
        let count = tested.pairs().map_or(0, Pairs::len) as f64;
        let deviation = |share: f64| (share * (1.0 - share) / count).sqrt();
        let setting = json!({ "data": games.name });
        for Judgement { method, error, area } in &judged {
            let row = |metric: &'static str, value: f64| Row {
                setting: setting.clone(),
                method,
                metric,
                ours: 100.0 * value,
                standard_error: 100.0 * deviation(value),
                seeds: 1,
                published: None,
            };
            rows.push(row("error", *error));
            rows.extend(area.map(|area| row("auc", area)));
        }
        let note = format!("{}; {}", games.split, sizes(&learned, &tested));
        show(console, report, games.name, &note, &rows, &setting)?;
    }
    let [pairs, items] = RECIPES.map(|name| folder.join(name));
    if pairs.exists() && items.exists() {
        let setting = json!({ "data": "recipes" });
        let with_features = load(&pairs, Some(&items), cancel)?;
        let without = load(&pairs, None, cancel)?;
        let mut judged: Vec<Vec<Judgement>> = Vec::new();
        for seed in 1..=seeds {
            let (learned, tested) = hold_out(&with_features, HELD_OUT, seed)?;
            let (bare, bare_tested) = hold_out(&without, HELD_OUT, seed)?;
            let mut found = vec![majority(&learned, &tested)];
            for method in [Method::Elo, Method::Glicko, Method::BradleyTerry] {
                let settings = Settings::new(Task::Compare).with_method(method);
                let model = train(&bare, &settings, None, &mut Silent, cancel)?.model;
                let answers = Answers::new(&model, &bare_tested)?;
                found.push(judgement(method.name(), &answers)?);
            }
            found.extend(by_features(&learned, &tested, cancel)?);
            judged.push(found);
        }
        for at in 0..judged[0].len() {
            let method = judged[0][at].method;
            let errors: Vec<f64> = judged.iter().map(|found| 100.0 * found[at].error).collect();
            rows.push(Row::mean(setting.clone(), method, "error", &errors, None));
            let areas: Option<Vec<f64>> = judged.iter().map(|found| found[at].area.map(|area| 100.0 * area)).collect();
            rows.extend(areas.map(|areas| Row::mean(setting.clone(), method, "auc", &areas, None)));
        }
        let note = format!("three tenths of the people held out, mean of {seeds} draws");
        show(console, report, "recipes", &note, &rows, &setting)?;
    } else {
        console.say(&format!("{}: not found, skipped", pairs.display()));
    }
    Ok(rows)
}

/// Games with what was known before each: the training games and the test games.
fn histories(games: &Games, file: &Path, cancel: &Cancel) -> Result<(Dataset, Dataset)> {
    let made = tempfile::tempdir().map_err(|error| {
        Error::new(Code::WriteFailed, format!("a temporary folder could not be created: {error}"))
            .help("free some space, or name a folder for temporary files in TMPDIR")
    })?;
    let part = |name: &str, window: &[&str]| {
        let out: PathBuf = made.path().join(name);
        let mut words = vec!["maxmargin".into(), "features".into(), "games".into(), file.as_os_str().to_owned()];
        words.extend(["-o".into(), out.as_os_str().to_owned()]);
        words.extend(window.iter().map(Into::into));
        let arguments =
            Arguments::try_parse_from(words).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        let Command::Features(arguments) = &arguments.command else {
            return Err(Error::new(Code::Internal, "features are made by another command"));
        };
        features::run(arguments, &Console::silent(), cancel)?;
        load(&out, None, cancel)
    };
    let [from, to] = games.learn;
    Ok((part("learn.csv", &["--from", from, "--to", to])?, part("test.csv", &["--from", games.test])?))
}

fn load(file: &Path, items: Option<&Path>, cancel: &Cancel) -> Result<Dataset> {
    // Each person is a group: the answers of one person are held out together.
    let read =
        ReadSettings { group: (file.ends_with(RECIPES[0])).then(|| "user".to_string()), ..ReadSettings::default() };
    let read = match items {
        Some(_) => ReadSettings { ignore: vec!["name".to_string()], ..read },
        None => read,
    };
    let options = read.options(None, cancel)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let gathered = gather(&text(file), items.map(text).as_deref(), &options, false, Task::Compare.profile().input)?;
    Ok(gathered.timed.loaded.data)
}

fn sizes(learned: &Dataset, tested: &Dataset) -> String {
    let part = |data: &Dataset| {
        let (count, ties) = data.pairs().map_or((0, 0), |pairs| (pairs.len(), pairs.ties()));
        format!("{} ({} ties)", format::count(count as u64), format::percent(ties as f64 / count.max(1) as f64))
    };
    format!("{} games to train on, {} to test on", part(learned), part(tested))
}

fn judgement(method: &'static str, answers: &Answers<'_>) -> Result<Judgement> {
    let error = answers.evaluate(&Metric::Error)?.value;
    Ok(Judgement { method, error, area: Some(answers.evaluate(&Metric::Auc)?.value) })
}

fn majority(learned: &Dataset, tested: &Dataset) -> Judgement {
    let count = |data: &Dataset, outcome: Outcome| {
        let pairs = data.pairs();
        pairs.map_or(0, |pairs| (0..pairs.len()).filter(|&pair| pairs.outcome(pair) == outcome).count())
    };
    let said = Outcome::ALL.into_iter().max_by_key(|&outcome| count(learned, outcome)).unwrap_or(Outcome::Tie);
    let right = count(tested, said) as f64 / tested.pairs().map_or(1, Pairs::len) as f64;
    Judgement { method: "majority", error: 1.0 - right, area: None }
}

/// All methods on games with their histories.
fn by_games(learned: &Dataset, tested: &Dataset, cancel: &Cancel) -> Result<Vec<Judgement>> {
    let mut found = vec![majority(learned, tested)];
    for (method, feature) in [("elo", "elo"), ("glicko", "glicko")] {
        let (Some(own), Some(others)) = (learned.pairs(), tested.pairs()) else { continue };
        let column = learned.feature_names().and_then(|names| names.iter().position(|name| name == feature));
        let column = column.ok_or_else(|| Error::new(Code::Internal, format!("games have no feature `{feature}`")))?;
        let scores = |data: &Dataset| -> Vec<f64> {
            let score = |row: usize| {
                let mut score = 0.0;
                data.matrix().each_in_row(row, |at, value| score += if at == column { value } else { 0.0 });
                score
            };
            (0..data.rows()).map(score).collect()
        };
        let outcomes: Vec<Outcome> = (0..own.len()).map(|pair| own.outcome(pair)).collect();
        let threshold = best_threshold(&score_differences(&scores(learned), own), &outcomes, own.weights()).value;
        let scores = scores(tested);
        let judged = Judged::comparisons(&scores, others, threshold);
        let value = |metric: Metric| Ok::<f64, Error>(metric.evaluate(&judged)?.value);
        found.push(Judgement { method, error: value(Metric::Error)?, area: Some(value(Metric::Auc)?) });
    }
    found.extend(by_features(learned, tested, cancel)?);
    Ok(found)
}

/// The methods that learn from features, with C chosen by cross-validation.
fn by_features(learned: &Dataset, tested: &Dataset, cancel: &Cancel) -> Result<Vec<Judgement>> {
    let learners = [
        ("rank", Method::Rank, Loss::Hinge),
        ("rank2", Method::Rank2, Loss::Hinge),
        ("compare", Method::Compare, Loss::Hinge),
        ("compare-logistic", Method::Compare, Loss::Logistic),
    ];
    learners
        .into_iter()
        .map(|(name, method, loss)| {
            let settings = Settings::new(Task::Compare).with_method(method);
            let settings = Settings { scale: Scale::Standard, loss, ..settings };
            let candidates = Grid::usual(learned, &settings)?.candidates(&settings);
            let validation = CrossValidation { folds: FOLDS, seed: 1, metrics: vec![Metric::Error, Metric::Auc] };
            let tuned = validation.run(learned, &candidates, &mut Silent, cancel)?;
            match tuned.refit(tuned.best, learned, None, &mut Silent, cancel) {
                Ok(trained) => judgement(name, &Answers::new(&trained.model, tested)?),
                // Training failed, so the most frequent outcome is predicted.
                Err(error) if error.code() == Code::NoThreshold => {
                    Ok(Judgement { method: name, ..majority(learned, tested) })
                }
                Err(error) => Err(error),
            }
        })
        .collect()
}

fn show(
    console: &Console,
    report: &mut Report,
    name: &str,
    note: &str,
    rows: &[Row],
    setting: &serde_json::Value,
) -> Result<()> {
    let own: Vec<&Row> = rows.iter().filter(|row| row.setting == *setting).collect();
    let cell = |method: &str, metric: &str| {
        let row = own.iter().find(|row| row.method == method && row.metric == metric);
        row.map_or("–".to_string(), |row| row.cell())
    };
    let methods: Vec<&str> = own.iter().filter(|row| row.metric == "error").map(|row| row.method).collect();
    let table: Vec<Vec<String>> =
        methods.iter().map(|&method| vec![method.to_string(), cell(method, "error"), cell(method, "auc")]).collect();
    console.show(&format!("\n{name}: {note}"))?;
    console.show(&format!("{:>18}{:>17}{:>17}", "method", "error, %", "AUC, %"))?;
    for cells in &table {
        console.show(&format!("{:>18}{:>17}{:>17}", cells[0], cells[1], cells[2]))?;
    }
    let header = ["method", "error, %", "AUC, %"].map(String::from).to_vec();
    report.text(format!("The data: {name}"), note);
    report.table_with_choice(name, Table { header, rows: table, highlight: None });
    Ok(())
}
