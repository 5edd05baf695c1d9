//! Stochastic gradient descent on text: the second document's experiments, on the real subset of RCV1 and on simulated
//! text of the size of the whole, all with the hinge and the λ of the published table.
//!
//! - **The table**: training cost, test error and training time of each solver.
//! - **Optimisation accuracy**: cost and test error of each solver against its time.
//! - **Subsampling**: one pass of averaged steps over all rows beside Newton's method with conjugate gradients on some of
//!   them, both with the logistic loss.
//! - **Number of rows**: the time that Pegasos, as a stream, needs for a cost within 0.01 of the optimum, at fixed λ.
//! - **Schedules**: 1/√t beside 1/t and Bottou's, each from the first rate that is found.
//!
//! Costs are in the mean form, λ/2·‖w‖² + the mean loss. Times are seconds of training, without reading the data and
//! without the measurements.
//!
//! After: Bottou, Stochastic gradient descent on toy problems (2007), and Bottou, Stochastic gradient descent tricks (2012).

use super::Row;
use super::paired::bits;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::{Axis, LinePlot, Report, Series};
use maxmargin::data::Dataset;
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Event, Observer};
use maxmargin::settings::{Input, Regularisation, Settings, Solver, Task};
use maxmargin::simulate::{Generator, Text, TextSettings};
use maxmargin::stream::{Learner, learner};
use maxmargin::train::{HeldOut, Trained, train};
use maxmargin::wish::Schedule;
use maxmargin_io::{ReadSettings, gather, options_like};
use serde_json::{Value, json};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Of the published table.
const LAMBDA: f64 = 1e-4;

/// Test rows of the published table, and words.
const TESTED: u64 = 23_149;
const WORDS: usize = 47_152;

/// The solvers, and the passes of the stochastic ones in the table.
const SOLVERS: [(Solver, u64); 6] = [
    (Solver::Sgd, 5),
    (Solver::AveragedSgd, 3),
    (Solver::Pegasos, 5),
    (Solver::DualCoordinateDescent, 0),
    (Solver::Newton, 0),
    (Solver::CuttingPlane, 0),
];

/// Passes of the stochastic solvers when their curves are drawn, and the gap of the others.
const LONG: u64 = 30;
const SHARP: f64 = 1e-6;

/// Costs above the optimum, relative to it, whose time is listed.
const EXCESSES: [f64; 4] = [1e-1, 1e-2, 1e-3, 1e-4];

/// How near to the optimum Pegasos is to come.
const NEAR: f64 = 0.01;

/// Parts of all rows.
const SHARES: [u64; 5] = [64, 16, 8, 4, 1];

const SCHEDULES: [Schedule; 3] = [Schedule::Bottou, Schedule::Inverse, Schedule::InverseSquareRoot];

/// Published for RCV1-CCAT with 781,265 training rows: cost, and error on 23,149 rows in per cent.
const PUBLISHED: [(&str, f64, f64); 4] = [
    ("svmsgd, 5 epochs", 0.227_535, 6.026),
    ("svmasgd, 3 epochs", 0.227_485, 6.026),
    ("SVMlight", 0.227_488, 6.0219),
    ("SVMperf", 0.2278, 6.03),
];

/// Rows to learn from and to test on.
struct Problem {
    name: &'static str,
    title: String,
    learned: Dataset,
    tested: Dataset,
}

/// A run: seconds, cost and test error after some passes.
struct Curve {
    points: Vec<(f64, f64, f64)>,
    /// Cost, test error and seconds at the end.
    last: (f64, f64, f64),
}

/// Notes cost and error after each pass. The time of measuring is not counted.
struct Watch<'a> {
    began: Instant,
    measuring: &'a Cell<f64>,
    points: Vec<(f64, f64, f64)>,
}

impl Observer for Watch<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::Pass { objective, held_out: Some(error), .. } = event {
            self.points.push((self.began.elapsed().as_secs_f64() - self.measuring.get(), *objective, *error));
        }
        ControlFlow::Continue(())
    }
}

/// The share of rows on the wrong side.
fn error_of(model: &Model, rows: &Dataset) -> Result<f64> {
    let plain = model.plain_linear()?;
    let mut weights = plain.weights;
    weights.resize(rows.cols().max(weights.len()), 0.0);
    Ok(wrong((&weights, plain.intercept.unwrap_or(0.0)), rows)? / rows.rows() as f64)
}

fn wrong((weights, constant): (&[f64], f64), rows: &Dataset) -> Result<f64> {
    let mut scores = vec![0.0; rows.rows()];
    rows.matrix().scores(0..rows.rows(), weights, &mut scores);
    let targets = rows.targets().real()?;
    let pairs = scores.iter().zip(targets.iter());
    Ok(pairs.filter(|(score, target)| (**score + constant > 0.0) != (**target > 0.0)).count() as f64)
}

/// The mean form of the objective.
fn cost_of(model: &Model, rows: &Dataset, loss: Loss) -> Result<f64> {
    let plain = model.plain_linear()?;
    let mut scores = vec![0.0; rows.rows()];
    rows.matrix().scores(0..rows.rows(), &plain.weights, &mut scores);
    let (targets, b) = (rows.targets().real()?, plain.intercept.unwrap_or(0.0));
    let losses = scores.iter().zip(targets.iter()).map(|(score, target)| {
        let sign = if *target > 0.0 { 1.0 } else { -1.0 };
        loss.value(loss.margin() - sign * (score + b))
    });
    let square: f64 = plain.weights.iter().map(|w| w * w).sum();
    Ok(0.5 * LAMBDA * square + losses.sum::<f64>() / rows.rows() as f64)
}

fn settings(solver: Solver, loss: Loss, passes: u64, seed: u64) -> Settings {
    let regularisation = Regularisation::Lambda(LAMBDA);
    let settings = Settings { loss, regularisation, seed, ..Settings::new(Task::Classify) }.with_solver(solver);
    if passes > 0 { Settings { max_passes: passes, ..settings } } else { settings }
}

/// Trains, and measures after each pass.
fn run_of(problem: &Problem, settings: &Settings, cancel: &Cancel) -> Result<(Trained, Curve)> {
    cancel.check()?;
    let measuring = Cell::new(0.0);
    let measure = |model: &Model| {
        let began = Instant::now();
        let error = error_of(model, &problem.tested).ok();
        measuring.set(measuring.get() + began.elapsed().as_secs_f64());
        error
    };
    let held_out = HeldOut { measure: &measure, higher_is_better: false };
    let mut watch = Watch { began: Instant::now(), measuring: &measuring, points: Vec::new() };
    let trained = train(&problem.learned, settings, Some(held_out), &mut watch, cancel)?;
    let seconds = watch.began.elapsed().as_secs_f64() - measuring.get();
    // The sum form, of C = 1/(λn).
    let scale = LAMBDA;
    let points = watch.points.iter().map(|&(at, objective, error)| (at, objective * scale, error)).collect();
    let last = (trained.model.certificate.objective * scale, error_of(&trained.model, &problem.tested)?, seconds);
    Ok((trained, Curve { points, last }))
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let folder = arguments.data.clone().or_else(|| std::env::var(super::codes::FOLDER).ok());
    let mut problems = Vec::new();
    if let Some(folder) = folder {
        problems.extend(real(Path::new(&folder), console, cancel)?);
    }
    if !arguments.real_only {
        problems.push(simulated(arguments)?);
    }
    for problem in &problems {
        console.show(&format!(
            "\n{}: {} training rows, {} test rows, hinge, lambda {LAMBDA:e}",
            problem.title,
            format::count(problem.learned.rows() as u64),
            format::count(problem.tested.rows() as u64),
        ))?;
        rows.extend(table(problem, arguments, report, console, cancel)?);
        rows.extend(accuracy(problem, arguments.seed, report, console, cancel)?);
        rows.extend(subsampling(problem, arguments.seed, report, console, cancel)?);
        rows.extend(by_rows(problem, report, console, cancel)?);
        rows.extend(schedules(problem, arguments, report, console, cancel)?);
    }
    Ok(rows)
}

/// CCAT and ECAT against GCAT and MCAT, if the files are there.
fn real(folder: &Path, console: &Console, cancel: &Cancel) -> Result<Option<Problem>> {
    let [train, test] =
        ["rcv1_binary_train.svm.gz", "rcv1_binary_test.svm.gz"].map(|name| folder.join("rcv1").join(name));
    if let Some(missing) = [&train, &test].into_iter().find(|file| !file.exists()) {
        console.say(&format!("{}: not found, skipped", missing.display()));
        return Ok(None);
    }
    let options = ReadSettings::default().options(None, cancel)?;
    let first = gather(&train.to_string_lossy(), None, &options, false, Input::Rows)?;
    let loaded = &first.timed.loaded;
    let like = options_like(&options, &loaded.data, &loaded.facts);
    let tested = gather(&test.to_string_lossy(), None, &like, false, Input::Rows)?.timed.loaded.data;
    // Parts of the rows, and streams, are taken from the first row on.
    let mut order: Vec<usize> = (0..loaded.data.rows()).collect();
    order.sort_by_key(|&row| bits(1, row as u64));
    let (title, learned) = ("RCV1, a public subset".to_string(), loaded.data.select(&order)?);
    Ok(Some(Problem { name: "rcv1", title, learned, tested }))
}

fn simulated(arguments: &ReproduceArguments) -> Result<Problem> {
    let made = |rows: u64, stream: u64| {
        let settings = TextSettings { rows, features: WORDS, seed: arguments.seed, stream, ..TextSettings::default() };
        Text::new(settings)?.to_dataset()
    };
    let (learned, tested) = (made(arguments.rows, 0)?, made(TESTED.min(arguments.rows), 1)?);
    Ok(Problem { name: "simulated", title: "simulated text".to_string(), learned, tested })
}

fn setting(problem: &Problem, experiment: &str) -> Value {
    json!({ "data": problem.name, "rows": problem.learned.rows(), "experiment": experiment })
}

/// Prints a line of cells, the first one wide.
fn line(console: &Console, cells: &[String]) -> Result<()> {
    let (name, values) = cells.split_at(1);
    console.show(&values.iter().fold(format!("{:<34}", name[0]), |line, cell| format!("{line}{cell:>22}")))
}

/// A table on the console and in the report.
fn shown(title: &str, header: &[&str], cells: Vec<Vec<String>>, report: &mut Report, console: &Console) -> Result<()> {
    console.show(&format!("\n{title}"))?;
    let header: Vec<String> = header.iter().map(|name| name.to_string()).collect();
    line(console, &header)?;
    cells.iter().try_for_each(|cells| line(console, cells))?;
    report.table(title.to_string(), header, cells);
    Ok(())
}

/// The mean with its standard error, if there are several values.
fn cell(row: &Row, digits: usize) -> String {
    match row.seeds {
        1 => format::fixed(row.ours, digits),
        _ => format!("{} ± {}", format::fixed(row.ours, digits), format::fixed(row.standard_error, digits)),
    }
}

/// The published table, ours: cost, error in per cent, seconds.
fn table(
    problem: &Problem,
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for (solver, passes) in SOLVERS {
        let seeds = if passes > 0 { arguments.seeds } else { 1 };
        let mut found: [Vec<f64>; 3] = Default::default();
        for seed in arguments.seed..arguments.seed + seeds {
            let (_, curve) = run_of(problem, &settings(solver, Loss::Hinge, passes, seed), cancel)?;
            let (cost, error, seconds) = curve.last;
            found.iter_mut().zip([cost, 100.0 * error, seconds]).for_each(|(values, value)| values.push(value));
        }
        let mut setting = setting(problem, "table");
        setting["passes"] = if passes > 0 { json!(passes) } else { Value::Null };
        let own: Vec<Row> = ["objective", "error", "seconds"]
            .into_iter()
            .zip(&found)
            .map(|(metric, values)| Row::mean(setting.clone(), solver.name(), metric, values, None))
            .collect();
        let name = if passes > 0 { format!("{}, {passes} passes", solver.name()) } else { solver.name().to_string() };
        cells.push(vec![name, cell(&own[0], 6), cell(&own[1], 3), cell(&own[2], 3)]);
        rows.extend(own);
    }
    let published = PUBLISHED.map(|(name, cost, error)| {
        vec![format!("published: {name}"), format::fixed(cost, 6), format::fixed(error, 3), "–".to_string()]
    });
    cells.extend(published);
    let title = format!("{}: cost, test error, time (published: all of RCV1-CCAT)", problem.title);
    shown(&title, &["solver", "cost", "test error, %", "seconds"], cells, report, console)?;
    Ok(rows)
}

/// Cost and error of each solver against its time.
fn accuracy(problem: &Problem, seed: u64, report: &mut Report, console: &Console, cancel: &Cancel) -> Result<Vec<Row>> {
    let mut curves = Vec::new();
    for (solver, passes) in SOLVERS {
        let wanted = settings(solver, Loss::Hinge, if passes > 0 { LONG } else { 0 }, seed);
        let wanted = if passes > 0 { wanted } else { Settings { tolerance: SHARP, ..wanted } };
        curves.push((solver, run_of(problem, &wanted, cancel)?.1));
    }
    let optimum = curves.iter().map(|(_, curve)| curve.last.0).fold(f64::INFINITY, f64::min);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    let mut costs = LinePlot::new(Axis::log("seconds"), Axis::log("cost above the optimum, relative"));
    let mut errors = LinePlot::new(Axis::log("seconds"), Axis::linear("test error, %"));
    for (solver, curve) in &curves {
        let mut own = vec![solver.name().to_string()];
        for excess in EXCESSES {
            let reached = curve.points.iter().find(|(_, cost, _)| cost / optimum - 1.0 <= excess);
            own.push(reached.map_or("–".to_string(), |(seconds, _, _)| format::fixed(*seconds, 3)));
            if let Some((seconds, _, error)) = reached {
                let mut setting = setting(problem, "accuracy");
                setting["excess"] = json!(excess);
                rows.push(Row::mean(setting.clone(), solver.name(), "seconds", &[*seconds], None));
                rows.push(Row::mean(setting, solver.name(), "error", &[100.0 * error], None));
            }
        }
        let above = |cost: f64| (cost / optimum - 1.0).max(1e-9);
        let cost = curve.points.iter().map(|&(at, cost, _)| (at.max(1e-6), above(cost)));
        costs = costs.series(Series::new(solver.name(), cost.collect()).markers());
        let error = curve.points.iter().map(|&(at, _, error)| (at.max(1e-6), 100.0 * error));
        errors = errors.series(Series::new(solver.name(), error.collect()).markers());
        cells.push(own);
    }
    let title = format!("{}: seconds to a cost above the optimum, relative", problem.title);
    shown(&title, &["solver", "0.1", "0.01", "0.001", "0.0001"], cells, report, console)?;
    let caption = "Each marker is a pass. The optimum is the least cost that any solver found.";
    report.plot(format!("{}: optimisation accuracy", problem.title), caption, costs);
    report.plot(format!("{}: test error against time", problem.title), caption, errors);
    Ok(rows)
}

/// Some first rows: they are in random order.
fn first(data: &Dataset, rows: usize) -> Result<Dataset> {
    data.select(&(0..rows.max(1)).collect::<Vec<usize>>())
}

/// One pass over all rows beside Newton's method on some of them, with the logistic loss.
fn subsampling(
    problem: &Problem,
    seed: u64,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let all = problem.learned.rows();
    let (mut rows, mut cells, mut points) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |solver: Solver, count: usize, curve: &Curve| {
        let (cost, error, seconds) = curve.last;
        let mut setting = setting(problem, "subsampling");
        setting["learned"] = json!(count);
        for (metric, value) in [("error", 100.0 * error), ("seconds", seconds), ("objective", cost)] {
            rows.push(Row::mean(setting.clone(), solver.name(), metric, &[value], None));
        }
        let name = format!("{}, {} rows", solver.name(), format::count(count as u64));
        cells.push(vec![name, format::fixed(100.0 * error, 3), format::fixed(seconds, 3)]);
    };
    for share in SHARES {
        let count = all / share as usize;
        let part = Problem {
            name: problem.name,
            title: String::new(),
            learned: first(&problem.learned, count)?,
            tested: problem.tested.clone(),
        };
        let (_, curve) = run_of(&part, &settings(Solver::Newton, Loss::Logistic, 0, seed), cancel)?;
        points.push((curve.last.2.max(1e-6), 100.0 * curve.last.1));
        add(Solver::Newton, count, &curve);
    }
    let (_, curve) = run_of(problem, &settings(Solver::AveragedSgd, Loss::Logistic, 1, seed), cancel)?;
    add(Solver::AveragedSgd, all, &curve);
    let title = format!("{}: one pass over all rows, or conjugate gradients on some (logistic loss)", problem.title);
    shown(&title, &["solver and rows", "test error, %", "seconds"], cells, report, console)?;
    let one = vec![(curve.last.2.max(1e-6), 100.0 * curve.last.1)];
    let plot = LinePlot::new(Axis::log("seconds"), Axis::linear("test error, %"))
        .series(Series::new("newton on part of the rows", points).markers())
        .series(Series::new("averaged-sgd, one pass", one).markers());
    report.plot(format!("{}: subsampling", problem.title), "Newton's method uses conjugate gradients.", plot);
    Ok(rows)
}

/// The time of Pegasos against the number of rows.
fn by_rows(problem: &Problem, report: &mut Report, console: &Console, cancel: &Cancel) -> Result<Vec<Row>> {
    let (mut rows, mut cells, mut points) = (Vec::new(), Vec::new(), Vec::new());
    for share in SHARES {
        let count = problem.learned.rows() / share as usize;
        let part = first(&problem.learned, count)?;
        let exact = Settings { tolerance: 1e-4, ..settings(Solver::Auto, Loss::Hinge, 0, 1) };
        let best =
            train(&part, &exact, None, &mut maxmargin::run::Silent, cancel)?.model.certificate.objective * LAMBDA;
        let stream = Settings { max_passes: 1, ..settings(Solver::Pegasos, Loss::Hinge, 1, 1) };
        let mut pegasos = learner(&stream, None)?;
        let (seconds, steps) = until_near(&mut *pegasos, &stream, &part, best, cancel)?;
        let mut setting = setting(problem, "pegasos-rows");
        setting["learned"] = json!(count);
        rows.push(Row::mean(setting.clone(), "pegasos", "seconds", &[seconds], None));
        rows.push(Row::mean(setting, "pegasos", "steps", &[steps as f64], None));
        cells.push(vec![format::count(count as u64), format::count(steps), format::fixed(seconds, 4)]);
        points.push((count as f64, seconds));
    }
    let title = format!("{}: Pegasos until the cost is within {NEAR} of the optimum", problem.title);
    shown(&title, &["rows", "steps", "seconds"], cells, report, console)?;
    let plot = LinePlot::new(Axis::log("rows"), Axis::log("seconds")).series(Series::new("pegasos", points).markers());
    report.plot(format!("{}: Pegasos and the number of rows", problem.title), "λ and the accuracy are fixed.", plot);
    Ok(rows)
}

/// Learns, again and again from the first row on, until the cost is near the optimum. It is looked at after numbers of
/// steps that grow by a quarter.
fn until_near(
    pegasos: &mut dyn Learner,
    settings: &Settings,
    rows: &Dataset,
    best: f64,
    cancel: &Cancel,
) -> Result<(f64, u64)> {
    const MOST: u64 = 1 << 32;
    let (mut seconds, mut steps, mut next) = (0.0, 0u64, 256u64);
    loop {
        while steps < next {
            cancel.check()?;
            let from = (steps % rows.rows() as u64) as usize;
            let until = rows.rows().min(from + (next - steps) as usize);
            let began = Instant::now();
            pegasos.learn(rows, from..until)?;
            seconds += began.elapsed().as_secs_f64();
            steps += (until - from) as u64;
        }
        // One class may come late.
        let near = match pegasos.model(settings, None, None) {
            Ok(model) => cost_of(&model, rows, Loss::Hinge)? <= best + NEAR,
            Err(_) => false,
        };
        if near || steps >= MOST {
            return Ok((seconds, steps));
        }
        next += (next / 4).max(1);
    }
}

/// Costs after passes with each schedule.
fn schedules(
    problem: &Problem,
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    const PASSES: [u64; 4] = [1, 3, 10, 30];
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    let mut plot = LinePlot::new(Axis::log("passes"), Axis::log("cost"));
    for solver in [Solver::Sgd, Solver::AveragedSgd] {
        for schedule in SCHEDULES {
            let name = format!("{}, {}", solver.name(), schedule.name());
            let (mut own, mut points) = (vec![name.clone()], Vec::new());
            for passes in PASSES {
                let seeds = arguments.seed..arguments.seed + arguments.seeds.min(3);
                let costs = seeds.map(|seed| {
                    let mut wanted = settings(solver, Loss::Hinge, passes, seed);
                    wanted.stochastic.schedule = Some(schedule);
                    Ok(run_of(problem, &wanted, cancel)?.1.last.0)
                });
                let costs = costs.collect::<Result<Vec<f64>>>()?;
                let mut setting = setting(problem, "schedule");
                (setting["passes"], setting["schedule"]) = (json!(passes), json!(schedule.name()));
                let row = Row::mean(setting, solver.name(), "objective", &costs, None);
                own.push(cell(&row, 5));
                points.push((passes as f64, row.ours));
                rows.push(row);
            }
            plot = plot.series(Series::new(name, points).markers());
            cells.push(own);
        }
    }
    let title = format!("{}: cost after passes, by schedule", problem.title);
    shown(&title, &["solver and schedule", "1", "3", "10", "30"], cells, report, console)?;
    report.plot(format!("{}: schedules", problem.title), "The first rate is found for each run.", plot);
    Ok(rows)
}
