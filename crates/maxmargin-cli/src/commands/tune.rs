//! `maxmargin tune TASK FILE`

use crate::args::TuneArguments;
use crate::commands::evaluate;
use crate::commands::train::{
    advise_on_scales, choose_before_reading, describe_training, ensure_results, save, training_sections, verdict,
    write_report,
};
use crate::console::Console;
use crate::format;
use crate::kernels::{KernelFacts, check_free_memory};
use crate::loading::{
    Gathered, Stamps, describe, expect_features, gather, load, load_pairs, options_like, pairing_of, reads_like,
};
use crate::preferences::Preferences;
use crate::progress::{ProgressTable, TuneProgress};
use crate::report::{Axis, Best, HeatMap, LinePlot, Report, Series, Table, Tile, Tone};
use crate::settings::{ReadSettings, Reading, SettingsFile};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::run::Cancel;
use maxmargin::select::{CrossValidation, Edge, Grid, Row, Tuned};
use maxmargin::settings::Task;
use maxmargin::solve::{EarlyStopping, Stop};
use maxmargin::train::{Trained, check_features, choose_solver};
use maxmargin_io::ReadOptions;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Instant;

pub(crate) fn run(arguments: &TuneArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let task = arguments.task.task();
    refuse_fixed(arguments)?;
    let (mut train_settings, read_settings) =
        SettingsFile::under(&arguments.settings, &arguments.data.read, arguments.config.as_deref(), "tune", task)?;
    if train_settings.holdout.take().is_some() {
        return Err(holdout(&arguments.config));
    }
    (train_settings.c, train_settings.lambda, train_settings.nu) = (None, None, None);
    let settings = train_settings.resolve(task)?;
    choose_before_reading(&settings, arguments.items.is_some())?;
    let refused = if settings.solver.is_hard_margin() {
        Some("a hard margin has no C to choose")
    } else if settings.method.is_rating() {
        Some("ratings are made in one go, and there is no path of settings to choose from")
    } else if settings.stochastic.early_stopping != EarlyStopping::None {
        Some("--early-stopping is for `train`: folds make all their passes")
    } else if train_settings.memory.is_some() {
        Some("--memory is for `train`: tuning keeps the features in memory")
    } else {
        None
    };
    if let Some(reason) = refused {
        return Err(Error::new(Code::BadSetting, reason).help("leave it out, or use `train`"));
    }
    metrics(&arguments.metric, reads_like(&settings), false)?;
    let grid = arguments.grid.as_deref().map(str::parse::<Grid>).transpose()?;
    let widths = arguments.gamma_grid.as_deref().map(str::parse::<Grid>).transpose()?;
    if widths.is_some() && !settings.kernel.kind.has_gamma() {
        let kind = settings.kernel.kind.name();
        return Err(Error::new(Code::BadSetting, format!("the {kind} kernel has no gamma to choose"))
            .help("leave --gamma-grid out, or add --kernel gaussian"));
    }
    let inputs = [Some(arguments.file.as_str()), arguments.items.as_deref(), arguments.config.as_deref()];
    ensure_results(&[arguments.output.as_ref(), arguments.report.as_ref()], &inputs)?;

    let options = read_settings.options(arguments.data.input_format, cancel)?;
    let unchanged = Stamps::of([Some(&arguments.file), arguments.items.as_ref()]);
    let gathered =
        gather(&arguments.file, arguments.items.as_deref(), &options, read_settings.one_group, reads_like(&settings))?;
    let at_file = |error: Error| unchanged.check().err().unwrap_or_else(|| error.in_file(&arguments.file));
    let data = gathered.timed.loaded.data.clone();
    let features_file = arguments.items.as_ref().unwrap_or(&arguments.file);
    check_features(data.cols()).map_err(|error| error.in_file(features_file))?;
    let preferences = Preferences::of(&data);
    describe_training(console, &gathered, preferences.as_ref(), &settings);
    choose_solver(&settings, data.shape())?;
    check_free_memory(&data, &settings).map_err(at_file)?;
    let load_seconds = gathered.seconds();
    let facts = gathered.features().loaded.facts.clone();
    let metrics = metrics(&arguments.metric, evaluate::judged_like(&settings, &data), data.pairs().is_some())?;
    let learned_from = if data.pairs().is_some() { "pairs" } else { "rows" };
    let uneven = advise_on_scales(console, &data, &settings, cancel).map_err(at_file)?;

    let grid = grid.map_or_else(|| Grid::usual(&data, &settings), Ok).map_err(at_file)?;
    let candidates = match (widths, settings.kernel.kind.has_gamma() && settings.kernel.gamma.is_none()) {
        (None, false) => grid.candidates(&settings),
        (widths, _) => {
            let usual = || Grid::usual_widths(&data, &settings, cancel);
            let widths = widths.map_or_else(usual, Ok).map_err(at_file)?;
            widths.widths(&settings).iter().flat_map(|settings| grid.candidates(settings)).collect()
        }
    };
    let judged = match &arguments.validation {
        None => None,
        Some(file) => {
            Some(judged_on(file, &data, &gathered, &options, &read_settings, reads_like(&settings), console)?)
        }
    };
    let validation = CrossValidation { folds: arguments.folds, seed: settings.seed, metrics };
    let start = Instant::now();
    let mut progress = TuneProgress::new(console);
    let tuned = match judged {
        None => validation.run(&data, &candidates, &mut progress, cancel),
        Some((both, part)) => validation.run_on(&both, vec![part], &candidates, &mut progress, cancel),
    };
    progress.finish();
    let tuned = tuned.map_err(at_file)?;
    let tune_seconds = start.elapsed().as_secs_f64();
    let chosen = if arguments.one_standard_error { tuned.one_standard_error() } else { tuned.best };
    unchanged.check()?;
    let warnings = warnings(&tuned, chosen);
    if console.talks() {
        show(console, &tuned, chosen, &warnings)?;
    }

    let start = Instant::now();
    let trained = match &arguments.output {
        None => None,
        Some(output) => {
            console.say(&format!("learning from all {learned_from} with {}", named(&tuned, &tuned.rows[chosen])));
            let mut progress = ProgressTable::new(console, None, settings.tolerance);
            let trained = tuned.refit(chosen, &data, None, &mut progress, cancel);
            progress.finish();
            let mut trained = trained.map_err(at_file)?;
            if trained.stop == Stop::Cancelled {
                return Err(Error::new(Code::Interrupted, "interrupted: no model was saved")
                    .help("what was compared stands; `train` with -c learns one model from it"));
            }
            let fill = facts.fill.clone();
            let reading = Reading {
                read: read_settings.clone(),
                index_base: facts.index_base,
                fill,
                holdout: None,
                items_are_features: gathered.items_are_features(),
            };
            trained.model.reading = Some(reading.to_text()?);
            if arguments.no_witness {
                trained.model.witness = None;
            }
            unchanged.check()?;
            let size = save(&trained.model, output)?;
            Some((trained, output, size))
        }
    };
    let train_seconds = start.elapsed().as_secs_f64();

    let items =
        arguments.items.as_ref().map_or(String::new(), |items| format!(" --items {}", format::shell_word(items)));
    let next = match &trained {
        Some((_, output, _)) => format!("maxmargin evaluate {} test-data{items}", format::shell_word(output)),
        None => format!(
            "maxmargin train {} {}{items} -c {}{} -o model.mm{}{}",
            task.name(),
            format::shell_word(&arguments.file),
            tuned.rows[chosen].c,
            match tuned.rows[chosen].settings.kernel.gamma {
                Some(gamma) if train_settings.gamma.is_none() => format!(" --gamma {gamma}"),
                _ => String::new(),
            },
            flags(&train_settings)?,
            flags(&read_settings)?,
        ),
    };
    let kernel = trained.as_ref().map(|(trained, ..)| KernelFacts::of(trained, &data, cancel)).transpose()?;
    if console.talks() {
        if let Some((trained, output, size)) = &trained {
            let (_, sentence, remedy) = verdict(trained, uneven);
            console.show(&format!("learned from all {learned_from}; {sentence}"))?;
            if let Some(remedy) = remedy {
                console.show(&format!("   {remedy}"))?;
            }
            kernel.iter().flat_map(KernelFacts::sentences).try_for_each(|sentence| console.show(&sentence))?;
            console.show(&format!("saved {output} ({})          next: {next}", format::bytes(*size)))?;
        } else {
            console.show(&format!("next: {next}"))?;
        }
    }
    if let Some(file) = &arguments.report {
        let what = if tuned.widths().is_empty() { "C" } else { "C and gamma" };
        let mut page = Report::new(format!("{what} for {}", arguments.file));
        let version = env!("CARGO_PKG_VERSION");
        page.subtitle(format!("maxmargin {version} · {} · {}", task.name(), judged_by(&tuned)));
        sections(&mut page, &tuned, chosen, &data, &warnings, &next);
        if let Some(preferences) = &preferences {
            preferences.report(&mut page);
        }
        if let Some((trained, ..)) = &trained {
            training_sections(&mut page, trained, uneven);
            kernel.iter().for_each(|kernel| kernel.report(&mut page));
        }
        write_report(&page, file)?;
        console.say(&format!("wrote {file}"));
    }
    console.object(|| {
        let seconds = json!({ "load": load_seconds, "tune": tune_seconds, "train": train_seconds });
        let trained = trained.as_ref().map(|(trained, output, _)| (trained, output.as_str()));
        let mut object = object(task, &tuned, chosen, trained, seconds);
        if let Some(preferences) = &preferences {
            object["pairs"] = preferences.as_json();
        }
        let kernel = kernel.as_ref().map_or(Value::Null, KernelFacts::as_json);
        if !kernel.is_null() {
            object["model"]["kernel"] = kernel;
        }
        object
    })
}

/// The data followed by those of a validation file, and which of them are judged on.
fn judged_on(
    file: &str,
    data: &Dataset,
    gathered: &Gathered,
    options: &ReadOptions,
    read_settings: &ReadSettings,
    task: Task,
    console: &Console,
) -> Result<(Dataset, Vec<usize>)> {
    let Some(own) = data.pairs() else {
        return Err(Error::new(Code::BadSetting, "--validation judges pairs, and these are rows")
            .help("use --folds, which holds out parts of the rows in turn"));
    };
    let facts = &gathered.features().loaded.facts;
    let options = options_like(options, data, facts);
    let (timed, offset) = match &gathered.items {
        Some((_, items)) => (load_pairs(file, items, &options)?, None),
        None => {
            let options = ReadOptions { pairing: pairing_of(task), ..options };
            (load(file, &options, read_settings.one_group)?, Some(data.rows()))
        }
    };
    expect_features(&timed, data.cols(), file)?;
    let extra = Preferences::of(&timed.loaded.data).map(|preferences| preferences.parts());
    describe(console, &timed, &extra.unwrap_or_default());
    let judged = &timed.loaded.data;
    let Some(pairs) = judged.pairs() else {
        return Err(Error::new(Code::NoPairs, "the file holds no pairs").in_file(file));
    };
    let both = match offset {
        None => data.clone().with_pairs(own.followed_by(pairs, 0)?)?,
        Some(_) => data.followed_by(judged).map_err(|error| error.in_file(file))?,
    };
    Ok((both, (own.len()..own.len() + pairs.len()).collect()))
}

/// Refuses flags of `train` that say what `tune` is to find out, or hold out what it holds out itself.
fn refuse_fixed(arguments: &TuneArguments) -> Result<()> {
    if arguments.settings.holdout.is_some() {
        return Err(holdout(&None));
    }
    if arguments.settings.nu.is_some() {
        return Err(Error::new(Code::BadSetting, "--nu finds its own C, and there is nothing to tune")
            .help("train once for each value, with --holdout to measure it"));
    }
    if arguments.task.task() == Task::OneClass {
        return Err(Error::new(Code::BadSetting, "a one-class model has no labels to be tuned by")
            .help("use `train one-class` with --nu, the share of rows to leave outside"));
    }
    if arguments.settings.c.is_none() && arguments.settings.lambda.is_none() {
        return Ok(());
    }
    Err(Error::new(Code::BadSetting, "`tune` finds C, and -c or --lambda fixes it")
        .help("name the values to try with --grid, such as --grid 0.1,1,10"))
}

fn holdout(config: &Option<String>) -> Error {
    let error = Error::new(Code::BadSetting, "`tune` holds out every fold in turn, and --holdout one part for good")
        .help("leave the hold-out away, or split the data into two files before");
    match config {
        Some(file) => error.in_file(file.as_str()),
        None => error,
    }
}

/// The metrics asked for, or the first of those of the task.
fn metrics(names: &[String], task: Task, pairs: bool) -> Result<Vec<Metric>> {
    let mut metrics = evaluate::metrics(names, task, pairs)?;
    if names.is_empty() {
        metrics.truncate(1);
    }
    Ok(metrics)
}

/// Settings as the flags that say them. Their names in settings files are those of the flags.
fn flags(settings: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(settings).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    let word = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
    let mut flags = String::new();
    let parts = value.as_object().into_iter().flatten();
    // Settings that stand together in a file are flags of their own.
    let parts = parts.flat_map(|(name, value)| match value {
        Value::Object(parts) => parts.iter().collect(),
        value => vec![(name, value)],
    });
    for (name, value) in parts {
        let said = match value {
            Value::Bool(true) => String::new(),
            Value::Array(parts) => parts.iter().map(word).collect::<Vec<_>>().join(","),
            value => word(value),
        };
        flags.push_str(&format!(" --{name}"));
        if !said.is_empty() {
            // Values such as -1=2,1=1 would be taken for flags behind a blank.
            let separator = if said.starts_with('-') { '=' } else { ' ' };
            let said = if said.starts_with('-') { said } else { format::shell_word(&said) };
            flags.push_str(&format!("{separator}{said}"));
        }
    }
    Ok(flags)
}

/// What a reader of the result should know before it is used.
fn warnings(tuned: &Tuned, chosen: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let c = |row: usize| format::significant(tuned.rows[row].c, 4);
    match tuned.edge(tuned.best) {
        Some(Edge::Highest) => warnings.push(format!(
            "the best C is the largest that was tried: a larger one may be better, try --grid {}",
            shifted(tuned, tuned.best, 0.1)
        )),
        Some(Edge::Lowest) => warnings.push(format!(
            "the best C is the smallest that was tried: a smaller one may be better, try --grid {}",
            shifted(tuned, tuned.best, 10.0)
        )),
        None => {}
    }
    if chosen != tuned.best && tuned.edge(chosen) == Some(Edge::Lowest) {
        warnings.push(format!("C = {} is the smallest that was tried, and still as good as the best", c(chosen)));
    }
    let widths = tuned.widths();
    let width = tuned.rows[tuned.best].settings.kernel.gamma;
    if let (Some(low), Some(high), Some(gamma)) = (widths.first(), widths.last(), width) {
        if gamma <= *low {
            warnings.push(format!(
                "the best gamma is the smallest that was tried: try --gamma-grid {:.0e}:{:.0e}:5",
                gamma / 100.0,
                gamma * 10.0
            ));
        } else if gamma >= *high {
            warnings.push(format!(
                "the best gamma is the largest that was tried: try --gamma-grid {:.0e}:{:.0e}:5",
                gamma / 10.0,
                gamma * 100.0
            ));
        }
    }
    let slow = tuned.rows.iter().filter(|row| row.gap.is_some() && !row.converged).count() as u64;
    if slow > 0 {
        warnings.push(format!(
            "{} did not converge, so that their models are not optimal: try a larger --max-passes, \
             --scale standard or smaller values",
            format::counted(slow, "setting", "settings")
        ));
    }
    warnings
}

/// A grid beyond an end of the values tried: from `within` times the value at the end, a thousandfold outwards.
fn shifted(tuned: &Tuned, end: usize, within: f64) -> String {
    let inside = tuned.rows[end].c * within;
    let outside = if within < 1.0 { inside * 1e4 } else { inside * 1e-4 };
    let count = if tuned.widths().is_empty() { 20 } else { 6 };
    format!("{:.0e}:{:.0e}:{count}", inside.min(outside), inside.max(outside))
}

/// `0.8476 ± 0.0019`
fn value(summary: &maxmargin::select::Summary) -> String {
    if summary.folds.len() == 1 {
        return format::fixed(summary.mean, 4);
    }
    format!("{} ± {}", format::fixed(summary.mean, 4), format::fixed(summary.standard_error, 4))
}

fn show(console: &Console, tuned: &Tuned, chosen: usize, warnings: &[String]) -> Result<()> {
    let widths: Vec<usize> = tuned.metrics.iter().map(|metric| metric.to_string().len().max(15) + 3).collect();
    let wide = !tuned.widths().is_empty();
    let gamma = |text: String| if wide { format!("{text:>10}") } else { String::new() };
    let mut header = format!("  {:>10}{:>11}{}", "C", "lambda", gamma("gamma".to_string()));
    for (metric, width) in tuned.metrics.iter().zip(&widths) {
        header.push_str(&format!("{:>width$}", metric.to_string()));
    }
    console.show(&format!("{header}{:>11}{:>8}{:>11}", "gap", "passes", "time"))?;
    for (at, row) in tuned.rows.iter().enumerate() {
        let mark = match at {
            at if at == chosen => "→",
            at if at == tuned.best => "*",
            _ => " ",
        };
        let width = gamma(row.settings.kernel.gamma.map_or(String::new(), |gamma| format::significant(gamma, 3)));
        let mut line = format!("{mark} {:>10}{:>11}{width}", short(row.c), format::scientific(row.lambda, 2));
        for (summary, width) in row.metrics.iter().zip(&widths) {
            line.push_str(&format!("{:>width$}", value(summary)));
        }
        let gap = row.gap.map_or("–".to_string(), format::gap);
        let gap = if row.converged { gap } else { format!("{gap}!") };
        let seconds = format::seconds(row.seconds);
        let shown = match (row.without_threshold, tuned.was_left(at)) {
            (true, _) => "no threshold".to_string(),
            (_, true) => format!("left after {} folds", row.metrics[0].folds.len()),
            (_, false) => bar(tuned, at),
        };
        let line = format!("{line}{gap:>11}{:>8}{seconds:>11}  {shown}", format::count(row.passes));
        console.show(line.trim_end())?;
    }
    let best = &tuned.rows[tuned.best];
    let held = |row: &Row| {
        tuned.metrics.iter().zip(&row.metrics).map(|(m, s)| format!("{m} {}", value(s))).collect::<Vec<_>>().join(", ")
    };
    let said = |name: &str, row: &Row| {
        format!("{name}: {}, lambda = {}, {}", named(tuned, row), format::scientific(row.lambda, 2), held(row))
    };
    console.show(&format!("{}, {}", said("best", best), judged_by(tuned)))?;
    let simple = tuned.one_standard_error();
    if simple != tuned.best {
        console.show(&said("within one standard error", &tuned.rows[simple]))?;
    }
    for warning in warnings {
        console.show(&format!("   {warning}"))?;
    }
    Ok(())
}

/// `over 5 folds`, or that one part was held out.
fn judged_by(tuned: &Tuned) -> String {
    match tuned.fold_rows.len() {
        1 => "on held-out data".to_string(),
        folds => format!("over {folds} folds"),
    }
}

/// A value of C as it can be typed.
fn short(c: f64) -> String {
    if (1e-3..1e5).contains(&c) { c.to_string() } else { format!("{c:e}") }
}

/// `C = 1`, or `C = 1, gamma = 0.05` where there were several widths to choose from.
fn named(tuned: &Tuned, row: &Row) -> String {
    match row.settings.kernel.gamma.filter(|_| !tuned.widths().is_empty()) {
        Some(gamma) => format!("C = {}, gamma = {}", short(row.c), short(gamma)),
        None => format!("C = {}", short(row.c)),
    }
}

/// A bar for how good a row is, from the worst of all to the best.
fn bar(tuned: &Tuned, at: usize) -> String {
    const WIDTH: f64 = 12.0;
    let mean = |row: &Row| row.metrics.first().map_or(0.0, |summary| summary.mean);
    let best = mean(&tuned.rows[tuned.best]);
    let far = tuned.rows.iter().map(|row| (mean(row) - best).abs()).fold(0.0, f64::max);
    let share = if far > 0.0 { 1.0 - (mean(&tuned.rows[at]) - best).abs() / far } else { 1.0 };
    let eighths = (share * WIDTH * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

fn object(task: Task, tuned: &Tuned, chosen: usize, trained: Option<(&Trained, &str)>, seconds: Value) -> Value {
    let setting = |at: usize| {
        let (row, first) = (&tuned.rows[at], &tuned.rows[at].metrics[0]);
        let edge = tuned.edge(at).map(|edge| if edge == Edge::Lowest { "lowest" } else { "highest" });
        json!({ "row": at, "c": row.c, "lambda": row.lambda, "gamma": row.settings.kernel.gamma, "mean": first.mean,
            "standard_error": first.standard_error, "edge": edge })
    };
    let rows: Vec<Value> = tuned
        .rows
        .iter()
        .map(|row| {
            let first = &row.metrics[0];
            let metrics: serde_json::Map<String, Value> = tuned
                .metrics
                .iter()
                .zip(&row.metrics)
                .map(|(metric, summary)| {
                    let (mean, standard_error) = (summary.mean, summary.standard_error);
                    (
                        metric.to_string(),
                        json!({ "mean": mean, "standard_error": standard_error, "folds": summary.folds }),
                    )
                })
                .collect();
            json!({
                "c": row.c,
                "lambda": row.lambda,
                "gamma": row.settings.kernel.gamma,
                "mean": first.mean,
                "standard_error": first.standard_error,
                "folds": first.folds,
                "gap": row.gap,
                "passes": row.passes,
                "seconds": row.seconds,
                "converged": row.converged,
                "left": first.folds.len() < tuned.fold_rows.len(),
                "without_threshold": row.without_threshold,
                "metrics": metrics,
            })
        })
        .collect();
    let mut object = json!({
        "task": task.name(),
        "metric": tuned.metrics[0].to_string(),
        "higher_is_better": tuned.metrics[0].higher_is_better(),
        "folds": tuned.fold_rows,
        "best": setting(chosen),
        "best_mean": setting(tuned.best),
        "one_standard_error": setting(tuned.one_standard_error()),
        "rows": rows,
        "seconds": seconds,
    });
    if let Some((trained, output)) = trained {
        let certificate = &trained.model.certificate;
        object["model"] = json!({
            "file": output,
            "solver": trained.solver.name(),
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap(),
            "constraints": certificate.constraints,
            "converged": certificate.converged,
            "passes": certificate.passes,
        });
        if let Some(rate) = trained.first_rate {
            object["model"]["rate"] = json!(rate);
        }
    }
    object
}

/// C against the widths of a kernel, where there are several.
fn widths_section(page: &mut Report, tuned: &Tuned) {
    let widths = tuned.widths();
    if widths.is_empty() {
        return;
    }
    let mut costs: Vec<f64> = tuned.rows.iter().map(|row| row.c).collect();
    costs.sort_by(f64::total_cmp);
    costs.dedup();
    let mean = |gamma: f64, c: f64| {
        let row = tuned.rows.iter().find(|row| row.c == c && row.settings.kernel.gamma == Some(gamma));
        row.map_or(f64::NAN, |row| row.metrics[0].mean)
    };
    let values = widths.iter().map(|&gamma| costs.iter().map(|&c| mean(gamma, c)).collect()).collect();
    let names = |values: &[f64]| values.iter().map(|&value| short(value)).collect::<Vec<_>>();
    let best = if tuned.metrics[0].higher_is_better() { Best::Highest } else { Best::Lowest };
    page.plot(
        format!("{} over C and gamma", tuned.metrics[0]),
        "The mean over the folds; settings without hope over those that showed it.",
        HeatMap::new(tuned.metrics[0].to_string(), ("C", names(&costs)), ("gamma", names(&widths)), values).best(best),
    );
}

fn sections(page: &mut Report, tuned: &Tuned, chosen: usize, data: &Dataset, warnings: &[String], next: &str) {
    let row = &tuned.rows[chosen];
    let (metric, summary) = (tuned.metrics[0].to_string(), &row.metrics[0]);
    let rule = if chosen == tuned.best { "best mean" } else { "within one standard error of the best" };
    let seconds: f64 = tuned.rows.iter().map(|row| row.seconds).sum();
    page.headline(vec![
        Tile::new("C", short(row.c), rule),
        match row.settings.kernel.gamma.filter(|_| !tuned.widths().is_empty()) {
            Some(gamma) => Tile::new("gamma", short(gamma), ""),
            None => Tile::new("lambda", format::scientific(row.lambda, 2), ""),
        },
        Tile::new(
            metric.clone(),
            format::fixed(summary.mean, 4),
            format!("± {}", format::fixed(summary.standard_error, 4)),
        ),
        Tile::new(
            "fits",
            format::count(tuned.rows.iter().map(|row| row.metrics[0].folds.len() as u64).sum()),
            format::seconds(seconds),
        ),
    ]);
    for warning in warnings {
        page.callout(Tone::Warning, "", warning.clone());
    }
    if warnings.is_empty() && tuned.rows.len() > 2 {
        page.callout(Tone::Good, "", "Every fit converged, and the best C lies inside the grid.");
    }
    widths_section(page, tuned);
    // Of several widths the path of the chosen one is drawn, as far as all folds were judged.
    let path: Vec<&Row> = (0..tuned.rows.len())
        .filter(|&at| tuned.rows[at].settings.kernel.gamma == row.settings.kernel.gamma && !tuned.was_left(at))
        .map(|at| &tuned.rows[at])
        .collect();
    let over =
        |value: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> { path.iter().map(|row| (row.c, value(row))).collect() };
    let simple = tuned.one_standard_error();
    for (at, metric) in tuned.metrics.iter().enumerate() {
        let band = path.iter().map(|row| &row.metrics[at]).zip(&path);
        let band = band.map(|(s, row)| (row.c, s.mean - s.standard_error, s.mean + s.standard_error)).collect();
        let mut plot = LinePlot::new(Axis::log("C"), Axis::linear(metric.to_string()))
            .series(Series::new("mean", over(&|row| row.metrics[at].mean)).markers().band(band));
        for fold in 0..tuned.fold_rows.len() {
            let points = over(&|row| row.metrics[at].folds[fold]);
            plot = plot.series(Series::new(format!("fold {}", fold + 1), points).faint());
        }
        if tuned.rows[tuned.best].settings.kernel.gamma == row.settings.kernel.gamma {
            plot = plot.mark(tuned.rows[tuned.best].c, "best");
        }
        if simple != tuned.best {
            plot = plot.mark(tuned.rows[simple].c, "one standard error");
        }
        page.plot(
            format!("{metric} against C"),
            "The mean over the folds with a band of one standard error on either side; each fold in grey.",
            plot,
        );
    }
    page.plot(
        "Passes",
        "Over all folds. Every fit starts at the solution for the C before it.",
        LinePlot::new(Axis::log("C"), Axis::log("passes"))
            .series(Series::new("passes", over(&|row| row.passes.max(1) as f64)).markers()),
    );
    page.plot(
        "Relative gap",
        "The largest of the folds: how far from the optimum a model can be at most.",
        LinePlot::new(Axis::log("C"), Axis::log("relative gap"))
            .series(
                Series::new(
                    "gap",
                    over(&|row| row.gap.unwrap_or(f64::NAN)).into_iter().filter(|p| p.1 > 0.0).collect(),
                )
                .markers(),
            )
            .rule(row.settings.tolerance, "tolerance"),
    );
    let wide = !tuned.widths().is_empty();
    let mut header = vec!["C".to_string(), "lambda".into()];
    header.extend(wide.then(|| "gamma".to_string()));
    header.extend(tuned.metrics.iter().map(ToString::to_string));
    header.extend(["gap", "passes", "time", "converged"].map(String::from));
    let cells = |row: &Row| {
        let mut cells = vec![short(row.c), format::scientific(row.lambda, 2)];
        cells.extend(row.settings.kernel.gamma.filter(|_| wide).map(short));
        cells.extend(row.metrics.iter().map(value));
        cells.push(row.gap.map_or("–".to_string(), format::gap));
        cells.push(format::count(row.passes));
        cells.push(format::seconds(row.seconds));
        cells.push(match (row.metrics[0].folds.len(), row.converged) {
            _ if row.without_threshold => "no threshold".to_string(),
            (judged, _) if judged < tuned.fold_rows.len() => format!("left after {judged} folds"),
            (_, true) => "yes".to_string(),
            (_, false) => "no".to_string(),
        });
        cells
    };
    let rows = tuned.rows.iter().map(cells).collect();
    page.table_with_choice("Settings", Table { header, rows, highlight: Some(chosen) });
    let held: Vec<String> = tuned.fold_rows.iter().map(|&rows| format::count(rows as u64)).collect();
    let mut facts = vec![
        ("rows".to_string(), format::count(data.rows() as u64)),
        ("features".to_string(), format::count(data.cols() as u64)),
        (format!("{} held out by each fold", if data.pairs().is_some() { "pairs" } else { "rows" }), held.join(", ")),
        ("loss".to_string(), row.settings.loss.name().to_string()),
        ("scaling".to_string(), row.settings.scale.name().to_string()),
        ("seed".to_string(), row.settings.seed.to_string()),
    ];
    if let Some(pairs) = data.pairs() {
        facts.insert(1, ("pairs".to_string(), format::count(pairs.len() as u64)));
        if let Some((_, names)) = pairs.groups() {
            facts.insert(2, ("groups of pairs, kept whole".to_string(), format::count(names.len() as u64)));
        }
    } else if let Some(groups) = data.groups() {
        facts.insert(1, ("queries, kept whole".to_string(), format::count(groups.len() as u64)));
    }
    page.facts("How it was measured", facts);
    page.code("Next", next);
}
