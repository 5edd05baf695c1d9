//! `maxmargin tune TASK FILE`

mod page;
mod words;

use crate::args::TuneArguments;
use crate::commands::evaluate;
use crate::commands::train::{
    advise_on_scales, choose_before_reading, describe_training, ensure_results, training_sections, verdict,
    write_report,
};
use crate::console::Console;
use crate::for_task::ForTask;
use crate::format;
use crate::kernels::{KernelFacts, check_free_memory};
use crate::label_sets;
use crate::loading::describe;
use crate::preferences::Preferences;
use crate::progress::{ProgressTable, TuneProgress};
use crate::report::Report;
use crate::sequences;
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::model::Decoder;
use maxmargin::run::Cancel;
use maxmargin::select::{CrossValidation, Grid, Tuned};
use maxmargin::settings::{Choice, Chosen, Input, Settings};
use maxmargin::solve::{EarlyStopping, Stop};
use maxmargin::train::{Trained, check_features, choose_solver};
use maxmargin_io::{
    Gathered, ReadOptions, ReadSettings, RunSettings, expect_features, gather, input_of, load, load_pairs,
    named as by_name, options_for, options_like, save_model,
};
use serde_json::{Value, json};
use std::time::Instant;
use words::{judged_by, named, object, show, warnings};

pub(crate) fn run(command: &ForTask<TuneArguments>, console: &Console, cancel: &Cancel) -> Result<()> {
    let arguments = &command.arguments;
    refuse_fixed(command)?;
    let (mut chosen, read) = command.under(arguments.config.as_deref())?;
    let own = RunSettings::taken_from(&mut chosen)?;
    if own.holdout.is_some() {
        return Err(holdout(&arguments.config));
    }
    // A settings file may contain settings that `tune` chooses.
    chosen.retain(|name, _| !FOUND.contains(&name.as_str()));
    let settings = Settings::named(command.task, &chosen)?;
    let job = Job { arguments, settings, chosen, read, console, cancel };
    let (grid, widths) = job.check_before_reading(own.memory.is_some())?;

    let options = job.read.options(command.data.input_format, cancel)?;
    let items = arguments.items.as_deref();
    let gathered = gather(&arguments.file, items, &options, job.read.one_group, input_of(&job.settings))?;
    let unchanged = &gathered.timed.loaded.facts.stamps;
    let at_file = |error: Error| unchanged.check().err().unwrap_or_else(|| error.in_file(&arguments.file));
    let data = &gathered.timed.loaded.data;
    check_features(data.cols()).map_err(|error| error.in_file(items.unwrap_or(&arguments.file)))?;
    let preferences = Preferences::of(data);
    describe_training(console, &gathered, preferences.as_ref(), &job.settings);
    choose_solver(&job.settings, data.shape())?;
    check_free_memory(data, &job.settings).map_err(at_file)?;
    let judged_as = evaluate::judged_like(&job.settings, data);
    let decoder = job.settings.decoder(data).ok();
    let metrics = metrics(&arguments.metric, judged_as, data.pairs().is_some(), &job.settings, decoder.as_ref())?;
    let uneven = advise_on_scales(console, data, &job.settings, cancel).map_err(at_file)?;
    let candidates = job.candidates(data, grid, widths).map_err(at_file)?;
    let judged = arguments.validation.as_ref().map(|file| job.judged_on(file, &gathered, &options)).transpose()?;

    let validation = CrossValidation { folds: arguments.folds, seed: job.settings.seed, metrics };
    let start = Instant::now();
    let mut progress = TuneProgress::new(console);
    let tuned = match judged {
        None => validation.run(data, &candidates, &mut progress, cancel),
        Some((both, part)) => validation.run_on(&both, vec![part], &candidates, &mut progress, cancel),
    };
    progress.finish();
    let tuned = tuned.map_err(at_file)?;
    let tune_seconds = start.elapsed().as_secs_f64();
    let best = if arguments.one_standard_error { tuned.one_standard_error() } else { tuned.best };
    unchanged.check()?;
    let warnings = warnings(&tuned, best);
    show(console, &tuned, best, &warnings)?;

    let start = Instant::now();
    let trained = job.refit(&tuned, best, data).map_err(at_file)?;
    let saved = match (trained, &arguments.output) {
        (Some(mut trained), Some(output)) => {
            trained.model.reading = Some(gathered.reading(job.read.clone(), None).to_text()?);
            unchanged.check()?;
            let size = save_model(&trained.model, output)?;
            Some((trained, output.as_str(), size))
        }
        _ => None,
    };
    let train_seconds = start.elapsed().as_secs_f64();

    let next = job.next(command.task.name(), &tuned, best, saved.as_ref().map(|(_, output, _)| *output))?;
    let kernel = saved.as_ref().map(|(trained, ..)| KernelFacts::of(trained, data, cancel)).transpose()?;
    if console.talks() {
        job.say_saved(saved.as_ref(), kernel.as_ref(), uneven, &next)?;
    }
    if let Some(file) = &arguments.report {
        let what = if tuned.widths().is_empty() { "C" } else { "C and gamma" };
        let mut page = Report::new(format!("{what} for {}", arguments.file));
        let version = env!("CARGO_PKG_VERSION");
        page.subtitle(format!("maxmargin {version} · {} · {}", command.task.name(), judged_by(&tuned)));
        page::sections(&mut page, &tuned, best, data, &warnings, &next);
        if let Some(preferences) = &preferences {
            preferences.report(&mut page);
        }
        if let Some((trained, ..)) = &saved {
            training_sections(&mut page, trained, uneven);
            kernel.iter().for_each(|kernel| kernel.report(&mut page));
        }
        write_report(&page, file)?;
        console.say(&format!("wrote {file}"));
    }
    console.object(|| {
        let seconds = json!({ "load": gathered.seconds(), "tune": tune_seconds, "train": train_seconds });
        let trained = saved.as_ref().map(|(trained, output, _)| (trained, *output));
        let mut object = object(command.task, &tuned, best, trained, seconds);
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

/// Settings that `tune` chooses.
const FOUND: [&str; 3] = ["c", "lambda", "nu"];

/// A tuning run.
struct Job<'a> {
    arguments: &'a TuneArguments,
    settings: Settings,
    /// The settings chosen by name.
    chosen: Chosen,
    read: ReadSettings,
    console: &'a Console,
    cancel: &'a Cancel,
}

impl Job<'_> {
    /// Reports errors that are known before anything is read. Returns the values to try, if they are given.
    fn check_before_reading(&self, memory: bool) -> Result<(Option<Grid>, Option<Grid>)> {
        let (arguments, settings) = (self.arguments, &self.settings);
        choose_before_reading(settings, arguments.items.is_some())?;
        let refused = if settings.is_hard_margin() {
            Some("a hard margin has no C to choose")
        } else if settings.is_rating() {
            Some("rating methods cannot be tuned")
        } else if settings.stochastic.early_stopping != EarlyStopping::None {
            Some("--early-stopping is for `train`: folds make all their passes")
        } else if settings.max_seconds.is_some() {
            Some("--max-seconds is for `train`: it would limit the last training and not the folds")
        } else if memory {
            Some("--memory is for `train`: tuning keeps the features in memory")
        } else {
            None
        };
        if let Some(reason) = refused {
            return Err(Error::new(Code::BadSetting, reason).help("leave it out, or use `train`"));
        }
        metrics(&arguments.metric, input_of(settings), false, settings, None)?;
        let grid = arguments.grid.as_deref().map(str::parse::<Grid>).transpose()?;
        let widths = arguments.gamma_grid.as_deref().map(str::parse::<Grid>).transpose()?;
        if widths.is_some() && !settings.kernel.kind.has_gamma() {
            let kind = settings.kernel.kind.name();
            return Err(Error::new(Code::BadSetting, format!("the {kind} kernel has no gamma to choose"))
                .help("leave --gamma-grid out, or add --kernel gaussian"));
        }
        let inputs = [Some(arguments.file.as_str()), arguments.items.as_deref(), arguments.config.as_deref()];
        ensure_results(&[arguments.output.as_ref(), arguments.report.as_ref()], &inputs)?;
        Ok((grid, widths))
    }

    /// The settings to try: every C and, if widths are chosen too, every width of the kernel.
    fn candidates(&self, data: &Dataset, grid: Option<Grid>, widths: Option<Grid>) -> Result<Vec<Settings>> {
        let settings = &self.settings;
        let grid = grid.map_or_else(|| Grid::usual(data, settings), Ok)?;
        match (widths, settings.kernel.kind.has_gamma() && settings.kernel.gamma.is_none()) {
            (None, false) => Ok(grid.candidates(settings)),
            (widths, _) => {
                let widths = widths.map_or_else(|| Grid::usual_widths(data, settings, self.cancel), Ok)?;
                Ok(widths.widths(settings).iter().flat_map(|settings| grid.candidates(settings)).collect())
            }
        }
    }

    /// Trains on all rows with the chosen settings, if a model is wanted.
    fn refit(&self, tuned: &Tuned, best: usize, data: &Dataset) -> Result<Option<Trained>> {
        if self.arguments.output.is_none() {
            return Ok(None);
        }
        let learned_from = learned_from(data);
        self.console.say(&format!("learning from all {learned_from} with {}", named(tuned, &tuned.rows[best])));
        let mut progress = ProgressTable::new(self.console, None, self.settings.tolerance);
        let trained = tuned.refit(best, data, None, &mut progress, self.cancel);
        progress.finish();
        let mut trained = trained?;
        if trained.stop == Stop::Cancelled {
            return Err(Error::new(Code::Interrupted, "interrupted: no model was saved")
                .help("the comparison above is complete; `train` with the best -c makes the model"));
        }
        if self.arguments.no_witness {
            trained.model.witness = None;
        }
        Ok(Some(trained))
    }

    /// The next command to type.
    fn next(&self, task: &str, tuned: &Tuned, best: usize, saved: Option<&str>) -> Result<String> {
        let items = self.arguments.items.as_ref();
        let items = items.map_or(String::new(), |items| format!(" --items {}", format::shell_word(items)));
        if let Some(output) = saved {
            return Ok(format!("maxmargin evaluate {} test-data{items}", format::shell_word(output)));
        }
        let row = &tuned.rows[best];
        let gamma = match row.settings.kernel.gamma {
            Some(gamma) if self.settings.kernel.gamma.is_none() => format!(" --gamma {gamma}"),
            _ => String::new(),
        };
        Ok(format!(
            "maxmargin train {task} {}{items} -c {}{gamma} -o model.mm{}{}",
            format::shell_word(&self.arguments.file),
            row.c,
            flags(&self.chosen),
            flags(&by_name(&self.read)?),
        ))
    }

    /// Prints what was saved, and the next step.
    fn say_saved(
        &self,
        saved: Option<&(Trained, &str, u64)>,
        kernel: Option<&KernelFacts<'_>>,
        uneven: bool,
        next: &str,
    ) -> Result<()> {
        let console = self.console;
        let Some((trained, output, size)) = saved else { return console.show(&format!("next: {next}")) };
        let (_, sentence, remedy) = verdict(trained, uneven);
        let learned_from = if trained.model.certificate.pairs.is_some() { "pairs" } else { "rows" };
        console.show(&format!("learned from all {learned_from}; {sentence}"))?;
        if let Some(remedy) = remedy {
            console.show(&format!("   {remedy}"))?;
        }
        kernel.into_iter().flat_map(KernelFacts::sentences).try_for_each(|sentence| console.show(&sentence))?;
        console.show(&format!("saved {output} ({})          next: {next}", format::bytes(*size)))
    }

    /// The data followed by those of a validation file, and which of them are for validation.
    fn judged_on(&self, file: &str, gathered: &Gathered, options: &ReadOptions) -> Result<(Dataset, Vec<usize>)> {
        let data = &gathered.timed.loaded.data;
        let facts = &gathered.features().loaded.facts;
        let options = options_like(options, data, facts);
        let Some(own) = data.pairs() else {
            let timed = load(file, &options, self.read.one_group)?;
            expect_features(&timed, data.cols(), file)?;
            describe(self.console, &timed, &[]);
            let both = data.followed_by(&timed.loaded.data).map_err(|error| error.in_file(file))?;
            timed.loaded.facts.stamps.check()?;
            let judged = data.rows()..both.rows();
            return Ok((both, judged.collect()));
        };
        let (timed, offset) = match &gathered.items {
            Some((_, items)) => (load_pairs(file, items, &options)?, None),
            None => {
                let options = options_for(&options, input_of(&self.settings));
                (load(file, &options, self.read.one_group)?, Some(data.rows()))
            }
        };
        expect_features(&timed, data.cols(), file)?;
        let extra = Preferences::of(&timed.loaded.data).map(|preferences| preferences.parts());
        describe(self.console, &timed, &extra.unwrap_or_default());
        let judged = &timed.loaded.data;
        let Some(pairs) = judged.pairs() else {
            return Err(Error::new(Code::NoPairs, "the file holds no pairs").in_file(file));
        };
        let both = match offset {
            None => data.clone().with_pairs(own.followed_by(pairs, 0)?)?,
            Some(_) => data.followed_by(judged).map_err(|error| error.in_file(file))?,
        };
        timed.loaded.facts.stamps.check()?;
        Ok((both, (own.len()..own.len() + pairs.len()).collect()))
    }
}

/// What the data consist of.
fn learned_from(data: &Dataset) -> &'static str {
    if data.pairs().is_some() { "pairs" } else { "rows" }
}

/// Refuses flags of `train` for settings that `tune` chooses, or that hold out data, which `tune` does itself.
fn refuse_fixed(command: &ForTask<TuneArguments>) -> Result<()> {
    let given = |name: &str| command.chosen.contains_key(name);
    if given("holdout") {
        return Err(holdout(&None));
    }
    if given("nu") {
        return Err(Error::new(Code::BadSetting, "--nu determines C, so there is nothing to tune")
            .help("use `train --nu N --holdout FRACTION` once for each value"));
    }
    if let Some((reason, help)) = command.task.profile().untunable {
        return Err(Error::new(Code::BadSetting, reason).help(help));
    }
    if !given("c") && !given("lambda") {
        return Ok(());
    }
    Err(Error::new(Code::BadSetting, "`tune` searches for C, but -c or --lambda fixes it")
        .help("name the values to try with --grid, such as --grid 0.1,1,10"))
}

fn holdout(config: &Option<String>) -> Error {
    let refused = |message: &str, help: &str| Error::new(Code::BadSetting, message.to_string()).help(help);
    match config {
        Some(file) => refused(
            "`tune` holds out each fold in turn, so `holdout` does not apply",
            "leave `holdout` out of the file, or split the data into two files and use --validation",
        )
        .in_file(file.as_str()),
        None => refused(
            "`tune` holds out each fold in turn, so --holdout does not apply",
            "leave --holdout out, or split the data into two files and use --validation",
        ),
    }
}

/// The requested metrics, or the first default for the input.
fn metrics(
    names: &[String],
    input: Input,
    pairs: bool,
    settings: &Settings,
    decoder: Option<&Decoder>,
) -> Result<Vec<Metric>> {
    let metrics = evaluate::for_ranks(evaluate::metrics(names, input, pairs)?, names, settings);
    let metrics = evaluate::for_measure(metrics, names, settings)?;
    let metrics = sequences::fitting(metrics, names, decoder.and_then(Decoder::tags));
    let mut metrics = label_sets::fitting(metrics, names, decoder);
    if names.is_empty() {
        metrics.truncate(1);
    }
    Ok(metrics)
}

/// Settings as flags.
fn flags(chosen: &Chosen) -> String {
    let flag = |(name, choice): (&String, &Choice)| match choice {
        Choice::Switch(_) => format!(" --{name}"),
        // After a blank, values such as -1=2,1=1 would be parsed as flags.
        said if said.to_string().starts_with('-') => format!(" --{name}={said}"),
        said => format!(" --{name} {}", format::shell_word(&said.to_string())),
    };
    chosen.iter().filter(|(_, choice)| **choice != Choice::Switch(false)).map(flag).collect()
}
