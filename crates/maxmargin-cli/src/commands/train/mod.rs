//! `maxmargin train TASK FILE -o MODEL`

mod page;
mod words;

pub(crate) use page::{named_weights, training_sections, write_report};
pub(crate) use words::{cuts_sentence, is_rounding, proven, regularisation, ties_sentence, verdict};

use crate::args::TrainArguments;
use crate::clicks::{Clicked, ITEM_COLUMN, gather_clicks};
use crate::codes;
use crate::commands::evaluate::{self, Measured};
use crate::comparisons;
use crate::console::Console;
use crate::for_task::ForTask;
use crate::format;
use crate::kernels::{KernelFacts, check_free_memory};
use crate::label_sets;
use crate::loading::{describe, describe_gathered, ensure_apart, ensure_different};
use crate::preferences::Preferences;
use crate::progress::ProgressTable;
use crate::report::Report;
use crate::sequences;
use crate::told::Told;
use maxmargin::data::{Dataset, Labels, PairCounts, Scale, Shape, Targets, hold_out};
use maxmargin::error::{Code, Error, Result};
use maxmargin::kernel::KernelKind;
use maxmargin::loss::Loss;
use maxmargin::memory::{CONVERT, Needs, over_budget, within};
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Model};
use maxmargin::run::Cancel;
use maxmargin::settings::{
    Choice, ClassifySettings, Input, Method, RankSettings, Regularisation, Settings, Solver, Task, TaskSettings,
};
use maxmargin::solve::{Sample, Start, Stop};
use maxmargin::structured::{ClassMeasure, Rankings};
use maxmargin::task::{GradedComparison, PairWeight, Ranking, TargetsAre};
use maxmargin::train::{HeldOut, Trained, check_features, choose_solver, expands, scale_spread, train_from};
use maxmargin::wording::{memory_given, memory_needed};
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{
    Gathered, Pairing, ReadOptions, ReadSettings, RunSettings, Stamps, expect_features, gather, input_of, load,
    load_model, load_pairs, options_for, options_like, save_model,
};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use words::{how_solved, ranks_found, share, stop_name};

pub(crate) fn run(command: &ForTask<TrainArguments>, console: &Console, cancel: &Cancel) -> Result<()> {
    let named = with_features_named(command)?;
    let arguments = &named;
    let (mut chosen, read) = command.under(arguments.config.as_deref())?;
    let from_clicks = arguments.click.given();
    if from_clicks && command.task == Task::Rank && arguments.click.preferences.is_none() {
        chosen.entry("targets-are".to_string()).or_insert(Choice::Text(TargetsAre::Clicks.name().to_string()));
    }
    let own = RunSettings::taken_from(&mut chosen)?;
    let settings = Settings::named(command.task, &chosen)?;
    let job = Job { arguments, settings, read, own, console, cancel };
    job.check_before_reading()?;
    let options = job.read.options(command.data.input_format, cancel)?;
    let files = [Some(&arguments.file), arguments.items.as_ref()];
    files.into_iter().flatten().try_for_each(|file| job.refuse_large_text(file, &options))?;
    let one_group = job.read.one_group;
    let (gathered, clicked) = if from_clicks {
        let clicked = gather_clicks(console, &arguments.click, &arguments.file, &options, None, one_group)?;
        (clicked.gathered.clone(), Some(clicked))
    } else {
        (gather(&arguments.file, arguments.items.as_deref(), &options, one_group, input_of(&job.settings))?, None)
    };
    let mut unchanged = gathered.timed.loaded.facts.stamps.clone();
    let data = &gathered.timed.loaded.data;
    let features_file = arguments.items.as_ref().unwrap_or(&arguments.file);
    check_features(data.cols()).map_err(|error| error.in_file(features_file))?;
    let preferences = Preferences::of(data);
    if clicked.is_none() {
        describe_training(console, &gathered, preferences.as_ref(), &job.settings);
    }
    choose_solver(&job.settings, data.shape())?;
    let data = job.within_memory(data.clone()).map_err(|error| job.at_file(error))?;
    let (data, held_out) = job.held_out(data, &gathered, &options)?;
    held_out.iter().for_each(|held_out| unchanged.extend(&held_out.stamps));
    let judged = held_out.as_ref().map_or(&data, |held_out| &held_out.data);
    let judged_as = evaluate::judged_like(&job.settings, judged);
    let metrics = evaluate::metrics(&arguments.metric, judged_as, judged.pairs().is_some())?;
    let several = evaluate::several_classes(&job.settings, &data);
    let metrics = evaluate::for_classes(metrics, &arguments.metric, several);
    let metrics = evaluate::for_ranks(metrics, &arguments.metric, &job.settings);
    let metrics = evaluate::for_measure(metrics, &arguments.metric, &job.settings)?;
    let decoder = job.settings.decoder(&data).ok();
    let metrics = sequences::fitting(metrics, &arguments.metric, decoder.as_ref().and_then(Decoder::tags));
    let metrics = label_sets::fitting(metrics, &arguments.metric, decoder.as_ref());
    let metrics = comparisons::fitting(metrics, &arguments.metric, judged_as, &job.settings, judged);
    if let Some(held_out) = &held_out {
        evaluate::check_metrics(&job.settings, &data, &held_out.data, &metrics)
            .map_err(|error| error.in_file(&held_out.name))?;
    }
    let uneven = job.advise(&data)?;

    let start = Instant::now();
    let trained = job.learn(&data, held_out.as_ref(), metrics.first());
    let train_seconds = start.elapsed().as_secs_f64();
    // If training failed, the cause may be that another process changed the file.
    let (mut trained, told) = trained.map_err(|error| unchanged.check().err().unwrap_or_else(|| job.at_file(error)))?;
    if trained.stop == Stop::Cancelled && !arguments.keep_partial {
        return Err(Error::new(Code::Interrupted, "interrupted: no model was saved")
            .help("with --keep-partial the best model so far is saved"));
    }
    let mut reading = gathered.reading(job.read.clone(), job.own.holdout);
    reading.clicks = clicked.as_ref().map(|clicked| clicked.reading.clone());
    if from_clicks {
        // A table of features that are scored may hold the items, too.
        reading.read.id.get_or_insert_with(|| ITEM_COLUMN.to_string());
    }
    trained.model.reading = Some(reading.to_text()?);
    if arguments.no_witness {
        trained.model.witness = None;
    }
    let measured = match &held_out {
        Some(held_out) => Some(held_out.measure(&trained.model, &metrics)?),
        None => None,
    };
    unchanged.check()?;
    let size = save_model(&trained.model, &arguments.output)?;
    let ended = Ended {
        kernel: KernelFacts::of(&trained, &data, cancel)?,
        trained: &trained,
        preferences,
        measured: held_out.as_ref().zip(measured),
        labelled: data.pairs().is_some() || !matches!(data.targets(), Targets::Absent),
        uneven,
        told,
        turned: clicked.as_ref().map(|clicked| clicked.turned(&trained.model)).transpose()?.flatten(),
        clicked,
        seconds: (gathered.seconds(), train_seconds),
    };
    ended.summarise(console, arguments, size)?;
    if let Some(report) = &arguments.report {
        ended.write_report(report, arguments, &data)?;
        console.say(&format!("wrote {report}"));
    }
    console.object(|| ended.as_json(&arguments.output))
}

/// The arguments with the features of a log of clicks in the place of the data, where `--items` names them.
fn with_features_named(command: &ForTask<TrainArguments>) -> Result<TrainArguments> {
    let mut arguments = command.arguments.clone();
    if !arguments.click.given() {
        return Ok(arguments);
    }
    match (arguments.file.is_empty(), arguments.items.take()) {
        (true, Some(items)) => arguments.file = items,
        (false, None) => {}
        (true, None) => {
            return Err(Error::new(Code::Usage, "a log of clicks is joined with features, and none are given")
                .help("name the table of features: maxmargin train rank FEATURES --clicks LOG -o MODEL"));
        }
        (false, Some(_)) => {
            return Err(Error::new(Code::Usage, "the features of a log of clicks are named twice")
                .help("leave --items out: FILE holds the features"));
        }
    }
    Ok(arguments)
}

/// A training run.
struct Job<'a> {
    arguments: &'a TrainArguments,
    settings: Settings,
    read: ReadSettings,
    own: RunSettings,
    console: &'a Console,
    cancel: &'a Cancel,
}

/// Data to evaluate the model on.
struct Judged {
    data: Dataset,
    /// The name of their source.
    name: String,
    /// Detects changes of their file, if they have one of their own.
    stamps: Stamps,
}

impl Judged {
    fn measure(&self, model: &Model, metrics: &[Metric]) -> Result<Vec<Measured>> {
        evaluate::measure(model, &self.data, metrics, Some((INTERVAL_RESAMPLES, model.settings.seed)))
            .map_err(|error| error.in_file(&self.name))
    }
}

impl Job<'_> {
    fn at_file(&self, error: Error) -> Error {
        error.in_file(&self.arguments.file)
    }

    /// Reports errors that are known before anything is read.
    fn check_before_reading(&self) -> Result<()> {
        let arguments = self.arguments;
        self.check_clicks()?;
        choose_before_reading(&self.settings, arguments.items.is_some())?;
        evaluate::metrics(&arguments.metric, input_of(&self.settings), false)?;
        let others =
            [&arguments.items, &arguments.validation, &arguments.config, &arguments.from].map(|file| file.as_deref());
        let inputs = [&[Some(arguments.file.as_str())], &others[..]].concat();
        ensure_results(&[Some(&arguments.output), arguments.report.as_ref()], &inputs)?;
        if self.settings.kernel.kind == KernelKind::Precomputed && self.own.holdout.is_some() {
            return Err(Error::new(
                Code::BadSetting,
                "a precomputed kernel has a column for every row, so no rows can be held out",
            )
            .help("leave --holdout out, or use `tune`, which splits kernel values into folds"));
        }
        if !arguments.metric.is_empty() && arguments.validation.is_none() && self.own.holdout.is_none() {
            self.console.say("   --metric is for held-out data: give --validation FILE or --holdout FRACTION too");
        }
        Ok(())
    }

    /// Refuses what a log of clicks does not go with.
    fn check_clicks(&self) -> Result<()> {
        let click = &self.arguments.click;
        if !click.given() {
            return Ok(());
        }
        let TaskSettings::Rank(task) = &self.settings.task else {
            return Err(Error::new(Code::BadSetting, "clicks teach an order, and this task is not `rank`")
                .help("use `train rank`, or leave --clicks out"));
        };
        if self.own.holdout.is_some() {
            return Err(Error::new(Code::BadSetting, "held-out clicks are no judgements of results")
                .help("give graded rows with --validation FILE, and leave --holdout out"));
        }
        let as_clicks = task.targets_are == TargetsAre::Clicks;
        if as_clicks == click.preferences.is_some() {
            return Err(Error::new(Code::BadSetting, "--targets-are contradicts how the clicks are used")
                .help("leave --targets-are out: it follows from --clicks and --preferences"));
        }
        for log in &click.clicks {
            ensure_apart(&self.arguments.output, &[log.as_str()])?;
        }
        Ok(())
    }

    /// Text, tables and compressed files are held in memory completely. If they are larger than the budget, they are
    /// refused before they are read.
    fn refuse_large_text(&self, file: &str, options: &ReadOptions) -> Result<()> {
        let Some(budget) = self.own.memory else { return Ok(()) };
        match maxmargin_io::stored_size(file, options)? {
            Some(bytes) if bytes > budget => Err(over_budget(
                format!("the file takes {}, and the memory budget is {}", memory_needed(bytes), memory_given(budget)),
                CONVERT,
            )
            .in_file(file)),
            _ => Ok(()),
        }
    }

    /// The data, limited to the memory budget.
    fn within_memory(&self, data: Dataset) -> Result<Dataset> {
        match (self.own.memory, self.own.holdout) {
            (None, _) => {
                check_free_memory(&data, &self.settings)?;
                Ok(data)
            }
            (Some(budget), None) => within(data, &self.settings, budget, 0),
            // Held-out rows and training rows are copied.
            (Some(budget), Some(_)) => {
                let needs = Needs::of(&data, &self.settings)?;
                if needs.beside + 2 * needs.features > budget {
                    return Err(over_budget(
                        "--holdout copies the features, and the copy does not fit into the memory budget".to_string(),
                        "put the held-out rows into a separate file and give it with --validation, or leave --memory \
                         out",
                    ));
                }
                Ok(data)
            }
        }
    }

    /// The training data and the data to evaluate on.
    fn held_out(&self, data: Dataset, gathered: &Gathered, options: &ReadOptions) -> Result<(Dataset, Option<Judged>)> {
        if let Some(validation) = &self.arguments.validation {
            return self.beside(validation, data, gathered, options);
        }
        let Some(fraction) = self.own.holdout else { return Ok((data, None)) };
        let (kept, data) = hold_out(&data, fraction, self.settings.seed).map_err(|error| self.at_file(error))?;
        let name = format!("{} % of {}", format::significant(100.0 * fraction, 3), self.arguments.file);
        Ok((kept, Some(Judged { data, name, stamps: Stamps::default() })))
    }

    /// The same with a separate file to evaluate on.
    fn beside(
        &self,
        validation: &str,
        data: Dataset,
        gathered: &Gathered,
        options: &ReadOptions,
    ) -> Result<(Dataset, Option<Judged>)> {
        let options = options_like(options, &data, &gathered.features().loaded.facts);
        self.refuse_large_text(validation, &options)?;
        let timed = match &gathered.items {
            Some((_, items)) => load_pairs(validation, items, &options)?,
            None => {
                // A log of clicks is judged by graded rows.
                let paired = data.pairs().is_some() && !self.arguments.click.given();
                let options = options_for(&options, input_of(&self.settings));
                let pairing = if paired { options.pairing.clone() } else { Pairing::None };
                load(validation, &ReadOptions { pairing, ..options }, self.read.one_group)?
            }
        };
        expect_features(&timed, data.cols(), validation)?;
        let extra = Preferences::of(&timed.loaded.data).map(|preferences| preferences.parts());
        describe(self.console, &timed, &extra.unwrap_or_default());
        let (held_out, stamps) = (timed.loaded.data, timed.loaded.facts.stamps);
        let name = validation.to_string();
        let Some(budget) = self.own.memory else {
            return Ok((data, Some(Judged { data: held_out, name, stamps })));
        };
        // Mapped data are also read one block at a time. Scores, ranks and everything that is not mapped stay in
        // memory.
        let others = held_out.rows() as u64 * HELD_OUT_ROW;
        let mapped = held_out.matrix().is_mapped();
        let others = if mapped { others } else { others + held_out.matrix().bytes() };
        let data = within(data, &self.settings, budget, others).map_err(|error| self.at_file(error))?;
        Ok((data, Some(Judged { data: held_out.limited(HELD_OUT_BLOCK), name, stamps })))
    }

    /// Prints advice about settings. Returns true if feature scales are uneven.
    fn advise(&self, data: &Dataset) -> Result<bool> {
        if data.matrix().is_limited() {
            self.console.say("   the features do not fit into the memory budget and are read a block at a time");
        }
        let uneven = advise_on_scales(self.console, data, &self.settings, self.cancel)?;
        if let (TaskSettings::Sequence(_), Ok(tags)) = (&self.settings.task, Labels::find(data.targets())) {
            self.console.say(&format!("   {}", format::counted(tags.len() as u64, "tag", "tags")));
        }
        if let TaskSettings::Multilabel(_) = self.settings.task {
            label_sets::found(data).iter().for_each(|sentence| self.console.say(&format!("   {sentence}")));
        }
        if let (TaskSettings::Tree(_), Ok(decoder)) = (&self.settings.task, self.settings.decoder(data)) {
            let words = decoder.grammar().map(sequences::size_of);
            words.iter().for_each(|words| self.console.say(&format!("   {words}")));
        }
        if let (TaskSettings::Ordinal(_), Ok(ranks)) = (&self.settings.task, Labels::ranks(data.targets())) {
            self.console.say(&format!("   {}", ranks_found(&ranks, data)?));
        }
        measure_notes(data, &self.settings).iter().for_each(|note| self.console.say(&format!("   {note}")));
        let by_query = self.settings.stochastic.sample == Some(Sample::Queries) && data.pairs().is_none();
        let TaskSettings::Rank(task) = &self.settings.task else { return Ok(uneven) };
        if by_query && task.pair_weight != PairWeight::PerQuery {
            self.console.say(
                "   --sample queries gives every query the same weight, but the objective shown gives every pair the \
                 same weight: add --pair-weight per-query so that they agree",
            );
        }
        Ok(uneven)
    }

    /// The point of a stored model to continue from.
    fn start(&self, from: &str, data: &Dataset) -> Result<Start> {
        load_model(from)?.start_for(data, &self.settings).map_err(|error| error.in_file(from))
    }

    /// Trains, and shows the progress.
    fn learn(&self, data: &Dataset, held_out: Option<&Judged>, metric: Option<&Metric>) -> Result<(Trained, Told)> {
        let judge = |model: &Model| evaluate::value(model, &held_out?.data, metric?).ok();
        let metric = held_out.and(metric);
        let judged = metric.map(|metric| HeldOut { measure: &judge, higher_is_better: metric.higher_is_better() });
        // Kernel models are evaluated at the end, because a pass has no weights to score with.
        let shown = metric.filter(|_| !expands(&self.settings)).map(ToString::to_string);
        let mut progress = ProgressTable::new(self.console, shown, self.settings.tolerance);
        let from = self.arguments.from.as_deref().map(|from| self.start(from, data)).transpose()?;
        let trained = train_from(data, &self.settings, from.as_ref(), judged, &mut progress, self.cancel);
        progress.finish();
        trained.map(|trained| (trained, progress.told()))
    }
}

/// A finished run.
struct Ended<'a> {
    trained: &'a Trained,
    kernel: KernelFacts<'a>,
    preferences: Option<Preferences>,
    measured: Option<(&'a Judged, Vec<Measured>)>,
    /// Whether the data say what is right, so that similar data can be evaluated.
    labelled: bool,
    uneven: bool,
    told: Told,
    clicked: Option<Clicked>,
    /// The share of neighbouring results of shown lists that the model puts in the other order, and whether it is too high.
    turned: Option<(f64, bool)>,
    /// Seconds for reading and for training.
    seconds: (f64, f64),
}

impl Ended<'_> {
    /// Prints how the run ended. If quiet, only the measured metrics, which the user asked for.
    fn summarise(&self, console: &Console, arguments: &TrainArguments, size: u64) -> Result<()> {
        if !console.talks() {
            return self.held_out().map_or(Ok(()), |line| console.show(&line));
        }
        let model = &self.trained.model;
        let (_, sentence, remedy) = verdict(self.trained, self.uneven);
        console.show(&sentence)?;
        if let Some(remedy) = remedy {
            console.show(&format!("   {remedy}"))?;
        }
        console.show(&format!(
            "{}, {}, {}",
            regularisation(model),
            format::counted(model.certificate.constraints, "constraint", "constraints"),
            how_solved(self.trained),
        ))?;
        if let Some(nothing) = label_sets::nothing_learned(self.trained) {
            console.show(&nothing)?;
        }
        self.told.sentences().iter().try_for_each(|sentence| console.show(sentence))?;
        if let Some((share, true)) = self.turned {
            console.show(&format!(
                "the model turns the shown order around: it puts {} % of neighbouring results in the other order; this is what \
                 clicks teach if nothing says that the shown order was good",
                format::significant(100.0 * share, 3)
            ))?;
        }
        if let Some(decoder) = model.output_code() {
            console.show(&format!("output code: {}", codes::summary(&decoder)))?;
            codes::notes(&decoder).iter().try_for_each(|note| console.show(&format!("   note: {note}")))?;
        }
        if let Some(threshold) = model.decoder.threshold() {
            console.show(&ties_sentence(model, threshold))?;
        }
        if let Some((cuts, ranks)) = model.decoder.cuts() {
            console.show(&cuts_sentence(cuts, ranks))?;
        }
        self.kernel.sentences().iter().try_for_each(|sentence| console.show(sentence))?;
        self.held_out().map_or(Ok(()), |line| console.show(&line))?;
        let items =
            arguments.items.as_ref().map_or(String::new(), |items| format!(" --items {}", format::shell_word(items)));
        console.show(&format!(
            "saved {} ({})          next: maxmargin {} {} test-data{items}",
            arguments.output,
            format::bytes(size),
            if self.labelled { "evaluate" } else { "predict" },
            format::shell_word(&arguments.output)
        ))
    }

    /// The metrics of the model on held-out data, if there are any.
    fn held_out(&self) -> Option<String> {
        let (Judged { data, name, .. }, measured) = self.measured.as_ref()?;
        let over = match data.groups() {
            _ if let Some(pairs) = data.pairs() => format::counted(pairs.len() as u64, "pair", "pairs"),
            Some(groups) if let Some((one, many)) = sequences::noun(&self.trained.model.decoder) => {
                format::counted(groups.len() as u64, one, many)
            }
            Some(groups) if input_of(&self.trained.model.settings) == Input::Ranked => {
                format::counted(groups.len() as u64, "query", "queries")
            }
            _ => format::counted(data.rows() as u64, "row", "rows"),
        };
        let values: Vec<String> = measured.iter().map(Measured::sentence).collect();
        Some(format!("held out ({name}, {over}): {}", values.join(", ")))
    }

    fn write_report(&self, file: &str, arguments: &TrainArguments, data: &Dataset) -> Result<()> {
        let model = &self.trained.model;
        let mut page = Report::new(format!("{} trained on {}", arguments.output, arguments.file));
        page.subtitle(format!("maxmargin {} · {}", model.version, model.settings.task.name()));
        training_sections(&mut page, self.trained, self.uneven);
        self.kernel.report(&mut page);
        if let Some(preferences) = &self.preferences {
            preferences.report(&mut page);
        }
        codes::sections(&mut page, model, data, &self.told.columns)?;
        match &self.measured {
            Some((judged, measured)) => {
                evaluate::report_sections(&mut page, model, &judged.data, &judged.name, measured)?;
            }
            None if comparisons::has_level_curves(model, data) => {
                let scores = model.scores(data)?;
                comparisons::level_curves(&mut page, model, data, &scores, &arguments.file)?;
            }
            None => {}
        }
        write_report(&page, file)
    }

    fn as_json(&self, output: &str) -> Value {
        let Trained { model, .. } = self.trained;
        let (settings, certificate) = (&model.settings, &model.certificate);
        let soft = !settings.is_hard_margin();
        let mut object = json!({
            "task": settings.task.name(),
            "model": output,
            "solver": self.trained.solver.name(),
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "gap": certificate.gap(),
            "constraints": certificate.constraints,
            "converged": certificate.converged,
            "stopped": stop_name(self.trained.stop),
            "passes": certificate.passes,
            "c": soft.then_some(certificate.c),
            "lambda": soft.then_some(certificate.lambda),
            "nu": match settings.regularisation {
                Regularisation::Nu(nu) => Some(nu),
                Regularisation::C(_) | Regularisation::Lambda(_) => None,
            },
            "rows": certificate.rows,
            "features": model.features(),
            "seconds": { "load": self.seconds.0, "train": self.seconds.1 },
        });
        if let Some(rate) = self.trained.first_rate {
            object["rate"] = json!(rate);
        }
        if let Some(read) = self.trained.read {
            object["read"] = json!({ "constraints": read.constraints, "share": share(read) });
        }
        if let Some(threshold) = model.decoder.threshold() {
            object["method"] = json!(settings.method().map(Method::name));
            object["threshold"] = json!(threshold);
            object["tells_ties"] = json!(model.decoder.tie_width().is_some_and(|width| width > 0.0));
        }
        if self.trained.learned_nothing {
            object["learned_nothing"] = json!(true);
        }
        if settings.solver == Solver::LinearProgram {
            object["margin"] = json!(2.0 - certificate.objective);
            object["separable"] = json!(certificate.objective < 2.0);
        }
        self.told.add_to(&mut object);
        let kernel = self.kernel.as_json();
        if !kernel.is_null() {
            object["kernel"] = kernel;
        }
        if let Some(clicked) = &self.clicked {
            object["clicks"] = clicked.as_json(self.turned);
        }
        if let Some(preferences) = &self.preferences {
            object["pairs"] = preferences.as_json();
        }
        if let Some((judged, measured)) = &self.measured {
            object["held_out"] = json!({ "data": judged.name, "metrics": evaluate::as_json(measured) });
        }
        object
    }
}

/// Before anything is read, refuses settings that no solver supports. `items` says whether explicit pairs are given.
pub(crate) fn choose_before_reading(settings: &Settings, items: bool) -> Result<()> {
    if settings.ties_from_grades() && items {
        return Err(Error::new(
            Code::BadSetting,
            "--items goes with explicit pairs, and --ties-from-grades with graded rows",
        )
        .help("give the graded rows alone, or leave --ties-from-grades out"));
    }
    // A table without --items may also hold pairs.
    let chosen = |pairs: bool| {
        let compared = pairs.then_some(PairCounts { rows: 0, pairs: 0 });
        choose_solver(settings, Shape { compared, ..Shape::default() })
    };
    if let Err(error) = chosen(items) {
        chosen(!matches!(settings.task.task().profile().input, Input::Rows | Input::Sentences)).map_err(|_| error)?;
    }
    Ok(())
}

/// Before anything is read, checks that model and report can be written, to different files.
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

/// Memory that evaluation needs per held-out row, including targets and ids.
const HELD_OUT_ROW: u64 = 64;

/// Bytes of mapped held-out rows that are in memory at a time if memory is limited.
const HELD_OUT_BLOCK: u64 = 4 << 20;

/// Number of resamples for the interval of a held-out metric: enough for two digits.
const INTERVAL_RESAMPLES: usize = 200;

/// If feature scales differ by more than this factor, a note is printed.
const UNEVEN: f64 = 1e3;

/// The number of queries and pairs to rank, in the user's terms.
fn ranking_parts(data: &Dataset, settings: &Settings) -> Vec<String> {
    let mut extra = Vec::new();
    match settings.task.task() {
        Task::Sequence => return sequences::counted(data, sequences::SEQUENCES),
        Task::Tree => return sequences::counted(data, sequences::SENTENCES),
        _ => {}
    }
    // Training itself reports errors in the data.
    if settings.ties_from_grades() {
        if let (Some(groups), Ok(task)) = (data.groups(), GradedComparison::new(data, Loss::Hinge, 1.0)) {
            extra.push(format::counted(groups.len() as u64, "query", "queries"));
            extra.push(format::counted(task.decided() + task.ties(), "pair", "pairs"));
            extra.push(format::counted(task.ties(), "tie", "ties"));
        }
        return extra;
    }
    if let TaskSettings::Rank(RankSettings { optimize: Some(measure), order_score, .. }) = &settings.task {
        if let (Some(groups), Ok(orders)) = (data.groups(), Rankings::on(data, *measure, *order_score, None)) {
            let mut queries = format::counted(groups.len() as u64, "query", "queries");
            if orders.left_out() > 0 {
                let left_out = format::count(orders.left_out() as u64);
                queries.push_str(&format!(", {left_out} left out, all of whose orders are equally good"));
            }
            extra.push(queries);
        }
        return extra;
    }
    if input_of(settings) == Input::Ranked
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

/// What a user should know about the measure that is optimised.
fn measure_notes(data: &Dataset, settings: &Settings) -> Option<String> {
    match &settings.task {
        TaskSettings::Rank(RankSettings { optimize: Some(measure), order_score, .. }) => {
            // Training itself reports errors in the data.
            let orders = Rankings::on(data, *measure, *order_score, None).ok()?;
            let bound = format!(
                "with more than two grades, the loss is an upper bound of 1 - {measure}: each grade and those above it \
                 against the others has an order of its own"
            );
            orders.is_bound().then_some(bound)
        }
        TaskSettings::Classify(ClassifySettings { optimize: Some(measure), .. }) => {
            let by_order =
                matches!(measure, ClassMeasure::Auc | ClassMeasure::BreakEven | ClassMeasure::PrecisionAt(_));
            let unset = format!(
                "`{measure}` judges scores by their order, so the sign of a score, and with it the predicted label, is not \
                 trained: use the scores"
            );
            by_order.then_some(unset)
        }
        _ => None,
    }
}

/// Prints what was found, and which pairs no scoring function can satisfy.
pub(crate) fn describe_training(
    console: &Console,
    gathered: &Gathered,
    preferences: Option<&Preferences>,
    settings: &Settings,
) {
    describe_gathered(console, gathered, preferences, &ranking_parts(&gathered.timed.loaded.data, settings));
    for sentence in preferences.iter().flat_map(|preferences| preferences.sentences()) {
        console.say(&format!("   {sentence}"));
    }
}

/// Prints a note if feature scales are so uneven that scaling may help. Returns whether they are.
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
