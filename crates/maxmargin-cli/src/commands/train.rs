//! `maxmargin train TASK FILE -o MODEL`

use crate::args::TrainArguments;
use crate::commands::evaluate::{self, Measured};
use crate::comparisons;
use crate::console::Console;
use crate::format;
use crate::kernels::{KernelFacts, check_free_memory};
use crate::loading::{
    Gathered, Stamps, describe, ensure_apart, ensure_different, expect_features, gather, load, load_pairs,
    options_like, pairing_of, reads_like,
};
use crate::preferences::Preferences;
use crate::progress::ProgressTable;
use crate::report::{Axis, Bars, LinePlot, Report, Series, Tile, Tone};
use crate::settings::{Reading, SettingsFile};
use maxmargin::data::{Dataset, PairCounts, Scale, Shape, hold_out};
use maxmargin::error::{Code, Error, Result};
use maxmargin::kernel::KernelKind;
use maxmargin::loss::Loss;
use maxmargin::memory::{CONVERT, Needs, over_budget, within};
use maxmargin::model::{Model, Scorer};
use maxmargin::run::Cancel;
use maxmargin::settings::{Method, Regularisation, Settings, Solver, Task};
use maxmargin::solve::{EarlyStopping, Sample, Stop, relative_gap};
use maxmargin::task::{GradedComparison, PairWeight, Ranking};
use maxmargin::train::{HeldOut, Trained, check_features, choose_solver, expands, scale_spread, train};
use maxmargin::wording::{memory_given, memory_needed};
use maxmargin_io::atomic::{ensure_writable, write_atomically};
use maxmargin_io::{Pairing, ReadOptions};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(arguments: &TrainArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let task = arguments.task.task();
    let (train_settings, read_settings) =
        SettingsFile::under(&arguments.settings, &arguments.data.read, arguments.config.as_deref(), "train", task)?;
    let settings = train_settings.resolve(task)?;
    choose_before_reading(&settings, arguments.items.is_some())?;
    evaluate::metrics(&arguments.metric, reads_like(&settings), false)?;
    let others = [&arguments.items, &arguments.validation, &arguments.config].map(|file| file.as_deref());
    let inputs = [&[Some(arguments.file.as_str())], &others[..]].concat();
    ensure_results(&[Some(&arguments.output), arguments.report.as_ref()], &inputs)?;
    if settings.kernel.kind == KernelKind::Precomputed && train_settings.holdout.is_some() {
        return Err(Error::new(
            Code::BadSetting,
            "rows of kernel values have a column for every row: none can be held out",
        )
        .help("leave --holdout out, or use `tune`, which knows how"));
    }
    if !arguments.metric.is_empty() && arguments.validation.is_none() && train_settings.holdout.is_none() {
        console.say("   --metric is for held-out data: give --validation FILE or --holdout FRACTION too");
    }

    let options = read_settings.options(arguments.data.input_format, cancel)?;
    let budget = train_settings.memory.map(|size| size.0);
    if let Some(budget) = budget {
        let inputs = [Some(&arguments.file), arguments.items.as_ref()];
        inputs.into_iter().flatten().try_for_each(|file| refuse_large_text(file, &options, budget))?;
    }
    let unchanged = Stamps::of([Some(&arguments.file), arguments.items.as_ref()]);
    let gathered =
        gather(&arguments.file, arguments.items.as_deref(), &options, read_settings.one_group, reads_like(&settings))?;
    let data = gathered.timed.loaded.data.clone();
    let features_file = arguments.items.as_ref().unwrap_or(&arguments.file);
    check_features(data.cols()).map_err(|error| error.in_file(features_file))?;
    let preferences = Preferences::of(&data);
    describe_training(console, &gathered, preferences.as_ref(), &settings);
    choose_solver(&settings, data.shape())?;
    let load_seconds = gathered.seconds();
    let facts = gathered.features().loaded.facts.clone();
    let at_file = |error: Error| error.in_file(&arguments.file);
    let data = match (budget, train_settings.holdout) {
        (None, _) => {
            check_free_memory(&data, &settings).map_err(at_file)?;
            data
        }
        (Some(budget), None) => within(data, &settings, budget, 0).map_err(at_file)?,
        // Rows that are held out, and those that are kept, are copied.
        (Some(budget), Some(_)) => {
            let needs = Needs::of(&data, &settings).map_err(at_file)?;
            if needs.beside + 2 * needs.features > budget {
                return Err(at_file(over_budget(
                    "--holdout copies the features, and the memory budget does not hold them".to_string(),
                    "put rows aside in a file of their own and give it by --validation, or leave --memory out",
                )));
            }
            data
        }
    };

    let (data, held_out) = match (&arguments.validation, train_settings.holdout) {
        (Some(validation), _) => {
            let options = options_like(&options, &data, &facts);
            if let Some(budget) = budget {
                refuse_large_text(validation, &options, budget)?;
            }
            let timed = match &gathered.items {
                Some((_, items)) => load_pairs(validation, items, &options)?,
                None => {
                    let pairing =
                        if data.pairs().is_some() { pairing_of(reads_like(&settings)) } else { Pairing::None };
                    load(validation, &ReadOptions { pairing, ..options }, read_settings.one_group)?
                }
            };
            expect_features(&timed, data.cols(), validation)?;
            let extra = Preferences::of(&timed.loaded.data).map(|preferences| preferences.parts());
            describe(console, &timed, &extra.unwrap_or_default());
            let held_out = timed.loaded.data;
            match budget {
                None => (data, Some((held_out, validation.clone()))),
                Some(budget) => {
                    // What is mapped is read a block at a time too; scores, ranks and whatever is not mapped stay.
                    let others = held_out.rows() as u64 * HELD_OUT_ROW;
                    let mapped = held_out.matrix().is_mapped();
                    let others = if mapped { others } else { others + held_out.matrix().bytes() };
                    let data = within(data, &settings, budget, others).map_err(at_file)?;
                    (data, Some((held_out.limited(HELD_OUT_BLOCK), validation.clone())))
                }
            }
        }
        (None, Some(fraction)) => {
            let (kept, held_out) = hold_out(&data, fraction, settings.seed).map_err(at_file)?;
            (kept, Some((held_out, format!("{} % of {}", format::significant(100.0 * fraction, 3), arguments.file))))
        }
        (None, None) => (data, None),
    };
    let judged = held_out.as_ref().map_or(&data, |(held_out, _)| held_out);
    let judged_as = evaluate::judged_like(&settings, judged);
    let metrics = evaluate::metrics(&arguments.metric, judged_as, judged.pairs().is_some())?;
    let metrics = comparisons::fitting(metrics, &arguments.metric, judged_as, &settings, judged);
    if data.matrix().is_limited() {
        console.say("   the features do not fit into the memory budget: they are read a block at a time");
    }
    if let Some((held_out, name)) = &held_out {
        evaluate::check_metrics(&settings, &data, held_out, &metrics).map_err(|error| error.in_file(name))?;
    }
    let uneven = advise_on_scales(console, &data, &settings, cancel)?;
    let by_query = settings.stochastic.sample == Some(Sample::Queries) && data.pairs().is_none();
    if by_query && settings.pair_weight != PairWeight::PerQuery {
        console.say(
            "   --sample queries learns as if every query counted the same, and the objective shown lets every pair count \
             the same: --pair-weight per-query makes both one",
        );
    }

    let metric = metrics.first();
    let judge = |model: &Model| {
        let (data, _) = held_out.as_ref()?;
        evaluate::value(model, data, metric?).ok()
    };
    let judged = held_out
        .as_ref()
        .and(metric)
        .map(|metric| HeldOut { measure: &judge, higher_is_better: metric.higher_is_better() });
    // Kernels are judged at the end: a pass of theirs has no weights to score with.
    let shown = held_out.as_ref().and(metric).filter(|_| !expands(&settings)).map(ToString::to_string);
    let mut progress = ProgressTable::new(console, shown, settings.tolerance);
    let start = Instant::now();
    let trained = train(&data, &settings, judged, &mut progress, cancel);
    progress.finish();
    let train_seconds = start.elapsed().as_secs_f64();
    // Numbers that went wrong may be the file's, if somebody changed it meanwhile.
    let mut trained = trained.map_err(|error| unchanged.check().err().unwrap_or_else(|| at_file(error)))?;
    if trained.stop == Stop::Cancelled && !arguments.keep_partial {
        return Err(Error::new(Code::Interrupted, "interrupted: no model was saved")
            .help("with --keep-partial the best model so far is saved"));
    }
    let reading = Reading {
        read: read_settings,
        index_base: facts.index_base,
        fill: facts.fill.clone(),
        holdout: train_settings.holdout,
        items_are_features: gathered.items_are_features(),
    };
    trained.model.reading = Some(reading.to_text()?);
    if arguments.no_witness {
        trained.model.witness = None;
    }
    let measured = match &held_out {
        Some((data, name)) => {
            let measured = evaluate::measure(&trained.model, data, &metrics, Some((INTERVAL_RESAMPLES, settings.seed)))
                .map_err(|error| error.in_file(name))?;
            Some((measured, name.clone(), data))
        }
        None => None,
    };
    unchanged.check()?;
    let size = save(&trained.model, &arguments.output)?;
    let kernel = KernelFacts::of(&trained, &data, cancel)?;
    summarise(
        console,
        &trained,
        &kernel,
        measured.as_ref().map(|(m, name, data)| (&m[..], name.as_str(), *data)),
        arguments,
        size,
        uneven,
    )?;
    if let Some(report) = &arguments.report {
        let title = format!("{} trained on {}", arguments.output, arguments.file);
        let mut page = Report::new(title);
        page.subtitle(format!("maxmargin {} · {}", trained.model.version, task.name()));
        training_sections(&mut page, &trained, uneven);
        kernel.report(&mut page);
        if let Some(preferences) = &preferences {
            preferences.report(&mut page);
        }
        match &measured {
            Some((measured, name, data)) => {
                evaluate::report_sections(&mut page, &trained.model, data, name, measured)?;
            }
            None if comparisons::has_level_curves(&trained.model, &data) => {
                let scores = trained.model.scores(&data)?;
                comparisons::level_curves(&mut page, &trained.model, &data, &scores, &arguments.file)?;
            }
            None => {}
        }
        write_report(&page, report)?;
        console.say(&format!("wrote {report}"));
    }
    console.object(|| {
        let certificate = &trained.model.certificate;
        let soft = !settings.solver.is_hard_margin();
        let mut object = json!({
            "task": task.name(),
            "model": arguments.output,
            "solver": trained.solver.name(),
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap(),
            "constraints": certificate.constraints,
            "converged": certificate.converged,
            "stopped": stop_name(trained.stop),
            "passes": certificate.passes,
            "c": soft.then_some(certificate.c),
            "lambda": soft.then_some(certificate.lambda),
            "nu": match settings.regularisation {
                Regularisation::Nu(nu) => Some(nu),
                Regularisation::C(_) | Regularisation::Lambda(_) => None,
            },
            "rows": certificate.rows,
            "features": trained.model.features(),
            "seconds": { "load": load_seconds, "train": train_seconds },
        });
        if let Some(rate) = trained.first_rate {
            object["rate"] = json!(rate);
        }
        if let Some(threshold) = trained.model.decoder.threshold() {
            object["method"] = json!(settings.method.name());
            object["threshold"] = json!(threshold);
            object["tells_ties"] = json!(trained.model.decoder.tie_width().is_some_and(|width| width > 0.0));
        }
        if settings.solver == Solver::LinearProgram {
            object["margin"] = json!(2.0 - certificate.objective);
            object["separable"] = json!(certificate.objective < 2.0);
        }
        let kernel = kernel.as_json();
        if !kernel.is_null() {
            object["kernel"] = kernel;
        }
        if let Some(preferences) = &preferences {
            object["pairs"] = preferences.as_json();
        }
        if let Some((measured, name, _)) = &measured {
            object["held_out"] = json!({ "data": name, "metrics": evaluate::as_json(measured) });
        }
        object
    })
}

/// Refuses, before anything is read, what no solver does. `items` says whether pairs are told to come.
pub(crate) fn choose_before_reading(settings: &Settings, items: bool) -> Result<()> {
    if settings.ties_from_grades && items {
        return Err(Error::new(
            Code::BadSetting,
            "--items goes with explicit pairs, and --ties-from-grades with graded rows",
        )
        .help("give the graded rows alone, or leave --ties-from-grades out"));
    }
    // A table without --items may still turn out to hold pairs.
    let chosen = |pairs: bool| {
        let compared = pairs.then_some(PairCounts { rows: 0, pairs: 0 });
        choose_solver(settings, Shape { compared, ..Shape::default() })
    };
    if let Err(error) = chosen(items) {
        chosen(matches!(settings.task, Task::Rank | Task::Compare)).map_err(|_| error)?;
    }
    Ok(())
}

/// Tests, before anything is read, that model and report can be written, to places of their own.
pub(crate) fn ensure_results(outputs: &[Option<&String>], inputs: &[Option<&str>]) -> Result<()> {
    let inputs: Vec<&str> = inputs.iter().copied().flatten().collect();
    for output in outputs.iter().copied().flatten() {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &inputs)?;
        if output == "-" {
            return Err(Error::new(Code::OutputUnwritable, "models and reports go to files, not to standard output")
                .help("name a file, such as -o model.mm"));
        }
    }
    ensure_different(outputs)
}

/// Bytes that measuring takes for each held-out row, targets and ids included.
const HELD_OUT_ROW: u64 = 64;

/// Bytes of mapped held-out rows that are in memory at a time where memory is short.
const HELD_OUT_BLOCK: u64 = 4 << 20;

/// Text, tables and whatever is compressed are held in memory as a whole: those larger than the budget are refused before
/// they are read.
fn refuse_large_text(file: &str, options: &ReadOptions, budget: u64) -> Result<()> {
    match maxmargin_io::stored_size(file, options)? {
        Some(bytes) if bytes > budget => Err(over_budget(
            format!("the file has {}, and the budget is {}", memory_needed(bytes), memory_given(budget)),
            CONVERT,
        )
        .in_file(file)),
        _ => Ok(()),
    }
}

/// Resamples for the interval of a held-out metric: enough for two digits.
const INTERVAL_RESAMPLES: usize = 200;

/// Feature scales that differ by more than this are worth a word.
const UNEVEN: f64 = 1e3;

/// What there is to rank, in the words of the user's data.
fn ranking_parts(data: &Dataset, settings: &Settings) -> Vec<String> {
    let mut extra = Vec::new();
    // What is wrong with the data is said by training itself.
    if settings.ties_from_grades {
        if let (Some(groups), Ok(task)) = (data.groups(), GradedComparison::new(data, Loss::Hinge, 1.0)) {
            extra.push(format::counted(groups.len() as u64, "query", "queries"));
            extra.push(format::counted(task.decided() + task.ties(), "pair", "pairs"));
            extra.push(format::counted(task.ties(), "tie", "ties"));
        }
        return extra;
    }
    if settings.task == Task::Rank
        && data.pairs().is_none()
        && let (Some(groups), Ok(ranking)) = (data.groups(), Ranking::new(data, Loss::Hinge, PairWeight::Equal, 1.0))
    {
        let mut queries = format::counted(groups.len() as u64, "query", "queries");
        if ranking.single_grade_groups() > 0 {
            queries.push_str(&format!(
                ", {} with a single grade ignored",
                format::count(ranking.single_grade_groups() as u64)
            ));
        }
        extra.push(queries);
        extra.push(format::counted(ranking.pairs(), "pair", "pairs"));
    }
    extra
}

/// Says what was found, and what of the pairs no scoring function can satisfy.
pub(crate) fn describe_training(
    console: &Console,
    gathered: &Gathered,
    preferences: Option<&Preferences>,
    settings: &Settings,
) {
    gathered.describe(console, preferences, &ranking_parts(&gathered.timed.loaded.data, settings));
    for sentence in preferences.iter().flat_map(|preferences| preferences.sentences()) {
        console.say(&format!("   {sentence}"));
    }
}

/// Says where feature scales are so uneven that scaling may help; true where they are.
pub(crate) fn advise_on_scales(
    console: &Console,
    data: &Dataset,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<bool> {
    if settings.scale == Scale::None {
        let spread = scale_spread(data, cancel)?;
        if spread > UNEVEN {
            console.say(&format!(
                "   feature scales differ by a factor of about {}: --scale standard or min-max may help",
                format::significant(spread, 2)
            ));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes a model as a whole or not at all; returns its size.
pub(crate) fn save(model: &Model, file: &str) -> Result<u64> {
    let bytes = model.to_bytes()?;
    write_atomically(Path::new(file), |out| out.write_all(&bytes))?;
    Ok(bytes.len() as u64)
}

/// Writes a report as a whole or not at all.
pub(crate) fn write_report(report: &Report, file: &str) -> Result<()> {
    let html = report.render();
    write_atomically(Path::new(file), |out| out.write_all(html.as_bytes()))
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Converged => "converged",
        Stop::PassLimit => "pass limit",
        Stop::Stalled => "stalled",
        Stop::Cancelled => "interrupted",
        Stop::Finished => "finished",
        Stop::EarlyStopped => "early stopping",
        Stop::NoGain => "no gain",
    }
}

/// How good a gap is, in words.
pub(crate) fn proven(gap: f64) -> String {
    if gap < 1e-15 {
        "proven optimal to rounding".to_string()
    } else {
        format!("proven within {} of the optimum", format::gap(gap))
    }
}

/// How the run ended, in one sentence, and what to do if it did not converge.
pub(crate) fn verdict(trained: &Trained, uneven: bool) -> (bool, String, Option<String>) {
    let certificate = &trained.model.certificate;
    let objective = format::significant(certificate.objective, 6);
    if trained.solver == Solver::LinearProgram && certificate.converged {
        // The objective is by how much the largest margin falls short of 2.
        let margin = 2.0 - certificate.objective;
        let found = format!(
            "largest margin {} at a threshold of 1, {}",
            format::significant(margin, 4),
            proven(certificate.gap().unwrap_or(1.0))
        );
        let remedy = "some pairs contradict each other: a soft margin pays for them, leave --solver out and set -c";
        return match margin > 0.0 {
            true => (true, format!("separable: {found}"), None),
            false => (true, format!("NOT separable: {found}"), Some(remedy.to_string())),
        };
    }
    if trained.solver.is_hard_margin() && certificate.converged {
        // ½‖w‖² is the objective, and the nearest row is 1/‖w‖ away.
        let margin = format::significant(1.0 / (2.0 * certificate.objective).sqrt(), 4);
        return (
            true,
            format!("separable: objective {objective}, margin {margin}, {}", proven(certificate.gap().unwrap_or(1.0))),
            None,
        );
    }
    if certificate.converged {
        return (true, format!("converged: objective {objective}, {}", proven(certificate.gap().unwrap_or(1.0))), None);
    }
    let settings = &trained.model.settings;
    if trained.stop == Stop::NoGain {
        let passes = format::counted(certificate.passes, "pass", "passes");
        let kernel = matches!(trained.model.scorer, Scorer::Expansion(_));
        let remedy = match trained.solver {
            _ if kernel => "try more --max-passes, a smaller -c, another --gamma or a larger --budget",
            Solver::Pegasos => {
                "the steps are too long for these features: try --scale standard, a smaller -c or --project"
            }
            _ => "the steps are too long for these features: try --scale standard, a smaller -c or a smaller --rate",
        };
        let zero = if kernel { "scores" } else { "weights" };
        let kept =
            format!("NO GAIN in {passes}: {zero} of zero are kept, none was better than their objective {objective}");
        return (false, kept, Some(remedy.to_string()));
    }
    if settings.method.is_rating() && certificate.lower_bound.is_none() {
        let wrong = format::percent(certificate.objective);
        return (
            true,
            format!("rated: {wrong} of the pairs are wrong; `{}` has no optimum to prove", settings.method.name()),
            None,
        );
    }
    if matches!(trained.stop, Stop::Finished | Stop::EarlyStopped) {
        let passes = format::counted(certificate.passes, "pass", "passes");
        let how = match (trained.stop, settings.stochastic.early_stopping) {
            (Stop::EarlyStopped, _) => format!("stopped early, best on held-out data after {passes}"),
            (_, EarlyStopping::Subsamples) => {
                format!("finished {passes}, as many as two samples of the data were best with")
            }
            (_, EarlyStopping::Validation) => format!("finished, best on held-out data after {passes}"),
            (_, EarlyStopping::None) => format!("finished {passes}"),
        };
        // Some losses have no other solver through a kernel.
        let graded = settings.task == Task::Rank && certificate.pairs.is_none();
        let alone = settings.loss == Loss::Logistic || (graded && settings.loss != Loss::SquaredHinge);
        let only = matches!(trained.model.scorer, Scorer::Expansion(_)) && alone;
        let remedy = match settings.solver {
            // Only where no bound can be had is none proven without a stochastic solver.
            solver if !solver.is_stochastic() => {
                Some("this kernel is not known to be positive definite, and then nothing can be proven".to_string())
            }
            _ => (!only).then(|| "without --solver it is proven how far the optimum is at most".to_string()),
        };
        return (false, format!("{how}: objective {objective}, no bound proven"), remedy);
    }
    let wanted = format::gap(settings.tolerance);
    let reached = match certificate.gap() {
        Some(gap) => format!("gap {}, {wanted} wanted", format::gap(gap)),
        None => "no bound proven".to_string(),
    };
    let remedy = match trained.stop {
        Stop::PassLimit | Stop::Stalled if trained.solver.is_hard_margin() => {
            "every margin is reached, by larger weights than need be: try --scale standard, or a larger --tolerance"
                .to_string()
        }
        Stop::PassLimit if trained.solver == Solver::Lasvm => {
            let more = settings.max_passes.saturating_mul(10);
            format!("--max-passes {more} comes nearer; without --solver the gap is closed")
        }
        Stop::PassLimit if uneven => format!(
            "feature scales are the likely cause: try --scale standard, else --max-passes {}",
            settings.max_passes.max(10).saturating_mul(10)
        ),
        Stop::PassLimit => {
            format!("try a smaller -c, or --max-passes {}", settings.max_passes.max(10).saturating_mul(10))
        }
        Stop::Stalled if uneven => {
            "the limit of double precision is reached: try --scale standard, a smaller -c or a larger --tolerance"
                .to_string()
        }
        Stop::Stalled => {
            "the limit of double precision is reached: try a smaller -c or a larger --tolerance".to_string()
        }
        _ => "the run was interrupted; the best model so far was kept".to_string(),
    };
    (
        false,
        format!(
            "NOT converged after {}: objective {objective}, {reached}",
            format::counted(certificate.passes, "pass", "passes")
        ),
        Some(remedy),
    )
}

/// `C = 1, lambda = 1.00e-3`, or that there is none.
pub(crate) fn regularisation(model: &Model) -> String {
    let certificate = &model.certificate;
    if model.settings.solver.is_hard_margin() {
        return "hard margin".to_string();
    }
    if model.settings.method.is_rating() && certificate.c == 0.0 {
        return "no regularisation".to_string();
    }
    let costs = format!(
        "C = {}, lambda = {}",
        format::significant(certificate.c, 4),
        format::scientific(certificate.lambda, 3)
    );
    match model.settings.regularisation {
        Regularisation::Nu(nu) => format!("nu = {nu}, which makes {costs}"),
        Regularisation::C(_) | Regularisation::Lambda(_) => costs,
    }
}

/// `solver newton, chosen`, or `solver sgd, first rate 0.5 found on a sample`.
pub(crate) fn how_solved(trained: &Trained) -> String {
    let settings = &trained.model.settings;
    if settings.method.is_rating() {
        return format!("method {}", settings.method.name());
    }
    let chosen = if settings.solver == Solver::Auto { ", chosen" } else { "" };
    let found = if settings.stochastic.rate.is_none() { " found on a sample" } else { "" };
    let rate = trained
        .first_rate
        .map_or(String::new(), |rate| format!(", first rate {}{found}", format::significant(rate, 6)));
    format!("solver {}{chosen}{rate}", trained.solver.name())
}

fn summarise(
    console: &Console,
    trained: &Trained,
    kernel: &KernelFacts<'_>,
    measured: Option<(&[Measured], &str, &Dataset)>,
    arguments: &TrainArguments,
    size: u64,
    uneven: bool,
) -> Result<()> {
    if !console.talks() {
        return Ok(());
    }
    let (_, sentence, remedy) = verdict(trained, uneven);
    console.show(&sentence)?;
    if let Some(remedy) = remedy {
        console.show(&format!("   {remedy}"))?;
    }
    let certificate = &trained.model.certificate;
    console.show(&format!(
        "{}, {}, {}",
        regularisation(&trained.model),
        format::counted(certificate.constraints, "constraint", "constraints"),
        how_solved(trained),
    ))?;
    if let Some(threshold) = trained.model.decoder.threshold() {
        console.show(&ties_sentence(&trained.model, threshold))?;
    }
    kernel.sentences().iter().try_for_each(|sentence| console.show(sentence))?;
    if let Some((measured, name, data)) = measured {
        let over = match data.groups() {
            _ if let Some(pairs) = data.pairs() => format::counted(pairs.len() as u64, "pair", "pairs"),
            Some(groups) if reads_like(&trained.model.settings) == Task::Rank => {
                format::counted(groups.len() as u64, "query", "queries")
            }
            _ => format::counted(data.rows() as u64, "row", "rows"),
        };
        let values: Vec<String> = measured.iter().map(Measured::sentence).collect();
        console.show(&format!("held out ({name}, {over}): {}", values.join(", ")))?;
    }
    let items =
        arguments.items.as_ref().map_or(String::new(), |items| format!(" --items {}", format::shell_word(items)));
    console.show(&format!(
        "saved {} ({})          next: maxmargin evaluate {} test-data{items}",
        arguments.output,
        format::bytes(size),
        format::shell_word(&arguments.output)
    ))
}

/// When two items are told to be equally good.
pub(crate) fn ties_sentence(model: &Model, threshold: f64) -> String {
    if threshold <= 0.0 && model.settings.method == Method::Compare {
        return format!(
            "NEVER a tie: the best threshold is {}, for ties are few and outcomes uncertain; a larger -c may help, and \
             --method rank2 chooses its threshold by the error",
            format::significant(threshold, 4)
        );
    }
    if let Some(width) = model.decoder.tie_width().filter(|width| *width != threshold) {
        return match width > 0.0 {
            true => format!(
                "a tie is the most probable where scores differ by no more than {}, by a threshold of {}",
                format::significant(width, 6),
                format::significant(threshold, 6)
            ),
            false => format!(
                "a tie is NEVER the most probable: the threshold is {}, and ties are few",
                format::significant(threshold, 6)
            ),
        };
    }
    let how = match model.settings.method {
        Method::Compare if model.settings.solver == Solver::LinearProgram => "",
        Method::Compare => ", learned with the scores",
        _ => ", of least error on the training pairs",
    };
    format!("a tie where scores differ by no more than {}{how}", format::significant(threshold, 6))
}

/// Headline, convergence and weights of a trained model.
pub(crate) fn training_sections(report: &mut Report, trained: &Trained, uneven: bool) {
    let certificate = &trained.model.certificate;
    let (converged, sentence, remedy) = verdict(trained, uneven);
    report.headline(vec![
        Tile::new("objective", format::significant(certificate.objective, 6), ""),
        match certificate.gap() {
            Some(gap) => Tile::new("relative gap", format::gap(gap), "proven"),
            None => Tile::new("relative gap", "–".to_string(), "no bound proven"),
        },
        Tile::new("constraints", format::count(certificate.constraints), ""),
        Tile::new("passes", format::count(certificate.passes), how_solved(trained)),
    ]);
    let tone = if converged { Tone::Good } else { Tone::Warning };
    report.callout(tone, "Certificate", remedy.map_or(sentence.clone(), |remedy| format!("{sentence}; {remedy}")));
    let points = |value: &dyn Fn(&maxmargin::solve::TracePoint) -> Option<f64>| -> Vec<(f64, f64)> {
        trained.trace.iter().filter_map(|point| Some((point.pass as f64, value(point)?))).collect()
    };
    let mut convergence = LinePlot::new(Axis::linear("pass"), Axis::log("value"))
        .series(Series::new("objective", points(&|point| Some(point.objective))).markers());
    if certificate.lower_bound.is_none() {
        report.plot("Convergence", "The objective over all data. The solver proves no lower bound.", convergence);
    } else {
        let bound = points(&|point| point.lower_bound.filter(|bound| *bound > 0.0));
        convergence = convergence.series(Series::new("lower bound", bound).dashed().markers());
        report.plot("Convergence", "Objective and proven lower bound meet at the optimum.", convergence);
        report.plot(
            "Relative gap",
            "How far the objective can be from the optimum at most.",
            LinePlot::new(Axis::linear("pass"), Axis::log("relative gap"))
                .series(
                    Series::new(
                        "gap",
                        points(&|point| {
                            Some(relative_gap(point.objective, point.lower_bound?)).filter(|gap| *gap > 0.0)
                        }),
                    )
                    .markers(),
                )
                .rule(trained.model.settings.tolerance, "tolerance"),
        );
    }
    if trained.model.scorer.weights().is_some() {
        report.plot(
            "Largest weights",
            "Of the features as scaled.",
            Bars::largest("weight", "features", named_weights(&trained.model), 25),
        );
    }
}

/// Every non-zero weight with its name.
pub(crate) fn named_weights(model: &Model) -> Vec<(String, f64)> {
    let weights = model.scorer.weights().unwrap_or_default();
    // Numbered features are named as the user's file numbers them.
    let base = Reading::of(model).ok().and_then(|reading| reading.index_base).unwrap_or(1);
    weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight != 0.0)
        .map(|(feature, &weight)| (model.feature_name(feature, usize::from(base)), weight))
        .collect()
}
