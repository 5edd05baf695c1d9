//! `maxmargin evaluate MODEL FILE`

use crate::args::EvaluateArguments;
use crate::classes::ClassResults;
use crate::codes;
use crate::commands::train::write_report;
use crate::comparisons::{self, Outcomes};
use crate::console::Console;
use crate::format::{self, one_field};
use crate::label_sets::{self, ByLabel};
use crate::loading::{describe_gathered, ensure_apart, ensure_different, say_notes};
use crate::preferences::Preferences;
use crate::report::{Axis, Histogram, LinePlot, Ranked, Report, RocCurve, Tile};
use crate::sequences::{self, TreeFacts};
use maxmargin::data::{Classes, Dataset, LabelSets, Labels};
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::{Evaluation, Interval, Metric, Needs, roc_curve};
use maxmargin::model::{Answers, Decoder, Model};
use maxmargin::run::Cancel;
use maxmargin::settings::{Input, Settings, Task};
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{gather_for, input_of, load_model};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A metric with its value.
pub(crate) struct Measured {
    pub(crate) metric: Metric,
    pub(crate) evaluation: Evaluation,
    pub(crate) interval: Option<Interval>,
}

impl Measured {
    /// `ndcg@10 0.716 ± 0.031`
    pub(crate) fn sentence(&self) -> String {
        let value = match &self.interval {
            Some(interval) => format::plus_minus(self.evaluation.value, interval.half_width()),
            None => format::fixed(self.evaluation.value, 4),
        };
        format!("{} {value}", self.metric)
    }
}

pub(crate) fn run(arguments: &EvaluateArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let model = load_model(&arguments.model)?;
    // Names are checked before anything is read.
    metrics(&arguments.metric, input_of(&model.settings), false)?;
    for output in [arguments.per_query.as_ref(), arguments.report.as_ref()].into_iter().flatten() {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &[&arguments.model, &arguments.file, arguments.items.as_deref().unwrap_or_default()])?;
    }
    ensure_different(&[arguments.per_query.as_ref(), arguments.report.as_ref()])?;
    let (read, format) = (arguments.data.read()?, arguments.data.input_format);
    let gathered = gather_for(&model, &arguments.file, arguments.items.as_deref(), &read, format, cancel)?;
    let data = &gathered.timed.loaded.data;
    let sequences = sequences::noun(&model.decoder).map_or(Vec::new(), |noun| sequences::counted(data, noun));
    describe_gathered(console, &gathered, Preferences::of(data).as_ref(), &sequences);
    let judged = judged_like(&model.settings, data);
    let metrics = metrics(&arguments.metric, judged, data.pairs().is_some())?;
    let metrics = for_classes(metrics, &arguments.metric, model.decoder.labels().map(Labels::len));
    let metrics = for_ranks(metrics, &arguments.metric, &model.settings);
    let metrics = for_measure(metrics, &arguments.metric, &model.settings)?;
    let metrics = sequences::fitting(metrics, &arguments.metric, model.decoder.tags());
    let metrics = label_sets::fitting(metrics, &arguments.metric, Some(&model.decoder));
    let mut metrics = comparisons::fitting(metrics, &arguments.metric, judged, &model.settings, data);
    if arguments.metric.is_empty() && model.calibration.is_some() {
        metrics.extend([Metric::LogLoss, Metric::CalibrationError]);
    }
    let resampling = arguments.interval.then_some((arguments.resamples as usize, arguments.seed));
    cancel.check()?;
    let unchanged = &gathered.timed.loaded.facts.stamps;
    let measured = measure(&model, data, &metrics, resampling).map_err(|error| error.in_file(&arguments.file));
    // If measuring failed, the cause may be that another process changed the file.
    let measured = unchanged.check().and(measured)?;
    cancel.check()?;
    let outcomes = Outcomes::of(&model, data)?;
    let code = model.code_error(data)?;
    let trained_on = data.rows() as u64 == model.certificate.rows && data.hash()? == model.certificate.data_hash;
    let cost = model.mean_cost(data)?;
    let (classes, by_label) = match model.decoder.class_names() {
        Some(_) => {
            let answers = Answers::new(&model, data)?;
            (ClassResults::of(&answers, &model.decoder), ByLabel::of(&answers, &model.decoder))
        }
        None => (None, None),
    };
    unchanged.check()?;
    if let Some(file) = &arguments.per_query {
        write_per_query(data, &measured, file)?;
        console.say(&format!("wrote {file}"));
    }
    if let Some(file) = &arguments.report {
        let mut report = Report::new(format!("{} on {}", arguments.model, arguments.file));
        report.subtitle(format!("maxmargin {} · {}", model.version, model.settings.task.name()));
        report_sections(&mut report, &model, data, &arguments.file, &measured)?;
        write_report(&report, file)?;
        console.say(&format!("wrote {file}"));
    }
    // Printed last, so that standard output stays empty if a file could not be written.
    show(console, &measured)?;
    if let Some(cost) = cost {
        console.show(&format!("mean cost by the cost matrix: {}", format::significant(cost, 6)))?;
    }
    let unknown = unknown_labels(&model, data)?;
    if unknown > 0 && model.decoder.label_sets().is_some() {
        let labels = format::counted(
            unknown,
            "label that the model does not know is",
            "labels that the model does not know are",
        );
        say_notes(console, &[format!("note: {labels} left out")]);
    } else if unknown > 0 {
        let (label, labels) = match &model.decoder {
            Decoder::Cuts { .. } => ("rank", "ranks"),
            Decoder::Sequence { .. } => ("tag", "tags"),
            _ => ("label", "labels"),
        };
        let rows = if unknown == 1 { format!("row has a {label}") } else { format!("rows have {labels}") };
        let counted = format!("{} {rows} that the model does not know", format::count(unknown));
        say_notes(console, &[format!("note: {counted}: every prediction for such a row is wrong")]);
    }
    let trees = TreeFacts::of(&model, data)?;
    trees.iter().for_each(|trees| say_notes(console, &trees.notes()));
    if let Some(outcomes) = &outcomes {
        outcomes.show(console)?;
    }
    if let Some(classes) = &classes {
        classes.show(console)?;
    }
    if let Some(by_label) = &by_label {
        by_label.show(console)?;
    }
    if let Some(code) = &code {
        console.show(&codes::bound_sentence(code, trained_on))?;
    }
    console.object(|| {
        let mut object = as_json(&measured);
        if let Some(outcomes) = &outcomes {
            object["confusion"] = outcomes.as_json();
        }
        if let Some(classes) = &classes {
            object["confusion"] = classes.confusion_json();
            object["by-class"] = classes.by_class_json();
        }
        if let Some(by_label) = &by_label {
            object["by-label"] = by_label.as_json();
        }
        if let Some(code) = &code {
            codes::add_bound(&mut object, code, trained_on);
        }
        if let Some(cost) = cost {
            object["cost"] = json!(cost);
        }
        if let Some(trees) = &trees {
            trees.add_to(&mut object);
        }
        if unknown > 0 {
            object["unknown_labels"] = json!(unknown);
        }
        object
    })
}

/// Number of rows whose label is not among the classes of the model; for sets, the number of labels that it does not know.
fn unknown_labels(model: &Model, data: &Dataset) -> Result<u64> {
    let decoder = &model.decoder;
    if let Some((labels, _)) = decoder.label_sets() {
        return Ok(LabelSets::of(labels, data.targets())?.unknown());
    }
    match decoder.labels().or(decoder.tags()).or(decoder.cuts().map(|(_, ranks)| ranks)) {
        Some(labels) => Ok(labels.known_codes(data.targets())?.iter().filter(|code| code.is_none()).count() as u64),
        None => Ok(0),
    }
}

/// How a model is evaluated on data. A model that compares is evaluated as a ranker if the data list no pairs.
pub(crate) fn judged_like(settings: &Settings, data: &Dataset) -> Input {
    if data.pairs().is_some() { settings.task.task().profile().input } else { input_of(settings) }
}

/// The requested metrics, or the defaults for the input. `pairs` says whether the data are explicit pairs.
pub(crate) fn metrics(names: &[String], input: Input, pairs: bool) -> Result<Vec<Metric>> {
    if names.is_empty() {
        return Ok(match input {
            Input::Rows => Metric::classification_defaults(),
            Input::Sentences => Metric::tree_defaults(),
            Input::Compared => Metric::comparison_defaults(),
            Input::Ranked if pairs => Metric::pair_defaults(),
            Input::Ranked => Metric::ranking_defaults(),
        });
    }
    names.iter().map(|name| Metric::parse(name.trim())).collect()
}

/// The same metrics, or the defaults for this many classes if none were named and each class has a score.
pub(crate) fn for_classes(metrics: Vec<Metric>, names: &[String], several: Option<usize>) -> Vec<Metric> {
    match several {
        Some(classes) if names.is_empty() => Metric::multiclass_defaults(classes),
        _ => metrics,
    }
}

/// The same metrics, or the defaults for ratings if none were named and the task is to predict them.
pub(crate) fn for_ranks(metrics: Vec<Metric>, names: &[String], settings: &Settings) -> Vec<Metric> {
    if settings.task.task() == Task::Ordinal && names.is_empty() { Metric::ordinal_defaults() } else { metrics }
}

/// The same metrics, or the defaults with the optimised measure first if none were named.
pub(crate) fn for_measure(mut metrics: Vec<Metric>, names: &[String], settings: &Settings) -> Result<Vec<Metric>> {
    let Some(measure) = settings.task.optimized().filter(|_| names.is_empty()) else { return Ok(metrics) };
    let first = match (settings.task.task(), measure.as_str()) {
        // For two grades, this is the ROC area of each query.
        (Task::Rank, "auc") => Metric::PairAccuracy,
        (_, name) => Metric::parse(name)?,
    };
    metrics.retain(|metric| *metric != first);
    metrics.insert(0, first);
    Ok(metrics)
}

/// Number of classes if a classifier of the data has one score for each.
pub(crate) fn several_classes(settings: &Settings, data: &Dataset) -> Option<usize> {
    let decoder = settings.decoder(data).ok().filter(|_| settings.task.task() == Task::Classify)?;
    decoder.labels().map(Labels::len)
}

/// One metric of a model on data.
pub(crate) fn value(model: &Model, data: &Dataset, metric: &Metric) -> Result<f64> {
    Ok(Answers::new(model, data)?.evaluate(metric)?.value)
}

/// Before a long training, refuses metrics that cannot be computed on the held-out data.
pub(crate) fn check_metrics(settings: &Settings, data: &Dataset, held_out: &Dataset, metrics: &[Metric]) -> Result<()> {
    let decoder = settings.decoder(data)?;
    let scores = vec![0.0; held_out.rows() * decoder.outputs()];
    let answers = Answers::of_scores(scores, &decoder, held_out)?.trained_with(settings).expecting(settings);
    metrics.iter().try_for_each(|metric| answers.evaluate(metric).map(drop))
}

/// All metrics of a model on data.
pub(crate) fn measure(
    model: &Model,
    data: &Dataset,
    metrics: &[Metric],
    resampling: Option<(usize, u64)>,
) -> Result<Vec<Measured>> {
    let answers = Answers::new(model, data)?;
    metrics
        .iter()
        .map(|metric| {
            let judged = answers.judged(metric)?;
            let evaluation = metric.evaluate(&judged)?;
            let interval = match resampling {
                Some((resamples, seed)) => metric.bootstrap(&judged, resamples, seed)?,
                None => None,
            };
            Ok(Measured { metric: metric.clone(), evaluation, interval })
        })
        .collect()
}

fn show(console: &Console, measured: &[Measured]) -> Result<()> {
    let width = measured.iter().map(|row| row.metric.describe().chars().count()).max().unwrap_or(0);
    for row in measured {
        let name = row.metric.describe();
        let value = format::fixed(row.evaluation.value, 6);
        let interval = row.interval.as_ref().map_or(String::new(), |interval| {
            format!("   95 % between {} and {}", format::fixed(interval.low, 4), format::fixed(interval.high, 4))
        });
        console.show(&format!("{name:<width$}  {value}{interval}"))?;
    }
    let mut told: Vec<&str> = Vec::new();
    for note in measured.iter().flat_map(|row| &row.evaluation.notes) {
        if !told.contains(&note.as_str()) {
            told.push(note);
            say_notes(console, std::slice::from_ref(note));
        }
    }
    Ok(())
}

/// Metric name → value, with its interval if there is one.
pub(crate) fn as_json(measured: &[Measured]) -> Value {
    let mut object = Map::new();
    for row in measured {
        object.insert(row.metric.to_string(), json!(row.evaluation.value));
        if let Some(interval) = &row.interval {
            object.insert(format!("{} interval", row.metric), json!([interval.low, interval.high]));
        }
    }
    Value::Object(object)
}

fn write_per_query(data: &Dataset, measured: &[Measured], file: &str) -> Result<()> {
    let listed: Vec<&Measured> = measured.iter().filter(|row| row.evaluation.per_query.is_some()).collect();
    let Some(groups) = data.groups().filter(|_| !listed.is_empty()) else {
        return Err(Error::new(Code::MetricMismatch, "none of these metrics has a value for each query").help(
            "--per-query goes with metrics over lists such as ndcg@10, map or mrr, and with rows that have query ids",
        ));
    };
    maxmargin_io::write_text_file(file, |out| {
        let failed = |error: std::io::Error| maxmargin_io::atomic::refused_write(&error).in_file(file);
        write!(out, "query\trows").map_err(failed)?;
        for row in &listed {
            write!(out, "\t{}", row.metric).map_err(failed)?;
        }
        writeln!(out).map_err(failed)?;
        for (group, range) in groups.ranges().enumerate() {
            let query = one_field(&groups.names().get(group));
            write!(out, "{query}\t{}", range.len()).map_err(failed)?;
            for row in &listed {
                match row.evaluation.per_query.as_ref().and_then(|values| values[group]) {
                    Some(value) => write!(out, "\t{value}").map_err(failed)?,
                    None => write!(out, "\t").map_err(failed)?,
                }
            }
            writeln!(out).map_err(failed)?;
        }
        Ok(())
    })
}

/// The scores of the rows of each grade or rank, if these are few.
fn scores_by_grade(report: &mut Report, model: &Model, data: &Dataset, answers: &Answers<'_>) -> Result<()> {
    let noun = if model.decoder.cuts().is_some() { "rank" } else { "grade" };
    let targets = data.targets().real()?;
    let mut grades: Vec<f64> = targets.to_vec();
    grades.sort_by(f64::total_cmp);
    grades.dedup();
    if grades.len() <= 6 {
        let of = |grade: &f64| {
            let own = answers.scores.iter().zip(targets).filter(|(_, target)| *target == grade);
            (format!("{noun} {grade}"), own.map(|(score, _)| *score).collect())
        };
        let histogram = Histogram::new("score", "rows", grades.iter().map(of).collect());
        let cuts = model.decoder.cuts().map_or(&[][..], |(cuts, _)| cuts);
        let histogram = cuts.iter().fold(histogram, |histogram, cut| histogram.mark(*cut, "cut"));
        report.plot("Scores", format!("Better {noun}s should be scored higher."), histogram);
    }
    Ok(())
}

/// Metrics, scores and, depending on the task, the ROC curve or the queries.
pub(crate) fn report_sections(
    report: &mut Report,
    model: &Model,
    data: &Dataset,
    name: &str,
    measured: &[Measured],
) -> Result<()> {
    report.headline(
        measured
            .iter()
            .take(4)
            .map(|row| {
                let note = row.interval.as_ref().map_or(String::new(), |interval| {
                    format!("95 %: {} to {}", format::fixed(interval.low, 3), format::fixed(interval.high, 3))
                });
                Tile::new(row.metric.to_string(), format::fixed(row.evaluation.value, 4), note)
            })
            .collect(),
    );
    report.table(
        format!("Metrics on {name}"),
        vec!["metric".into(), "value".into(), "over".into(), "meaning".into()],
        measured
            .iter()
            .map(|row| {
                let over = if row.metric.needs() == Needs::Trees {
                    format::counted(row.evaluation.counted as u64, "sentence", "sentences")
                } else if row.metric.needs() == Needs::Tags {
                    format::counted(row.evaluation.counted as u64, "sequence", "sequences")
                } else if row.evaluation.per_query.is_some() {
                    format::counted(row.evaluation.counted as u64, "query", "queries")
                } else if data.pairs().is_some()
                    && (row.metric == Metric::PairAccuracy || model.decoder.threshold().is_some())
                {
                    format::counted(row.evaluation.counted as u64, "pair", "pairs")
                } else {
                    format::counted(row.evaluation.counted as u64, "row", "rows")
                };
                vec![
                    row.metric.describe(),
                    format::fixed(row.evaluation.value, 6),
                    over,
                    match data.pairs() {
                        Some(_) => row.metric.description_for_pairs().to_string(),
                        None => row.metric.description().to_string(),
                    },
                ]
            })
            .collect(),
    );
    let answers = Answers::new(model, data)?;
    match &model.decoder {
        Decoder::Sign(classes) | Decoder::Border(classes) => {
            two_classes(report, &answers, classes, name);
            if let Some(classes) = ClassResults::of(&answers, &model.decoder) {
                classes.report(report, &answers, data.weights());
            }
        }
        Decoder::Sequence { .. } => {
            if let Some(classes) = ClassResults::of(&answers, &model.decoder) {
                classes.report(report, &answers, data.weights());
            }
        }
        Decoder::Sets { .. } => {
            if let Some(by_label) = ByLabel::of(&answers, &model.decoder) {
                by_label.report(report);
            }
        }
        Decoder::Largest(_) | Decoder::Code(_) => {
            if let Some(classes) = ClassResults::of(&answers, &model.decoder) {
                classes.report(report, &answers, data.weights());
            }
            codes::sections(report, model, data, &[])?;
        }
        Decoder::Compare { .. } | Decoder::Likelihood { .. } if data.pairs().is_some() => {
            comparisons::sections(report, model, &answers, data, name)?;
        }
        Decoder::Rank if data.pairs().is_some() => {
            let pairs = data.pairs().into_iter().flat_map(|pairs| (0..pairs.len()).map(|pair| pairs.ordered(pair)));
            let differences = pairs.map(|(better, worse)| answers.scores[better] - answers.scores[worse]).collect();
            report.plot(
                "Better minus worse",
                "The score of the better item of each pair minus that of the worse one; below 0 the model is wrong.",
                Histogram::new("difference", "pairs", vec![("pairs".to_string(), differences)]).mark(0.0, "equal"),
            );
        }
        Decoder::Cuts { .. } => {
            if let Some(classes) = ClassResults::of(&answers, &model.decoder) {
                classes.report(report, &answers, data.weights());
            }
            scores_by_grade(report, model, data, &answers)?;
        }
        // Its answers are trees, and no scores of rows.
        Decoder::Tree { .. } => {}
        Decoder::Rank | Decoder::Score { .. } | Decoder::Compare { .. } | Decoder::Likelihood { .. } => {
            scores_by_grade(report, model, data, &answers)?;
        }
    }
    if let Some(groups) = data.groups()
        && let Some(row) = measured.iter().find(|row| row.evaluation.per_query.is_some())
    {
        let values = row.evaluation.per_query.iter().flatten().enumerate();
        let items = values.filter_map(|(group, v)| Some((groups.names().get(group).into_owned(), (*v)?))).collect();
        report.plot(
            format!("{} by query", row.metric),
            "The worst queries are at the right end.",
            Ranked::new(Axis::linear(row.metric.to_string()).between(0.0, 1.0), "query", "queries", items),
        );
    }
    Ok(())
}

/// The scores of two classes, and the ROC curve.
fn two_classes(report: &mut Report, answers: &Answers<'_>, classes: &Classes, name: &str) {
    let of = |code: u32| -> Vec<f64> {
        answers.scores.iter().zip(&answers.codes).filter(|(_, c)| **c == code).map(|(s, _)| *s).collect()
    };
    let groups = vec![(classes.negative.clone(), of(0)), (classes.positive.clone(), of(1))];
    report.plot(
        "Scores",
        "The scores of each class; the model decides at 0.",
        Histogram::new("score", "rows", groups).mark(0.0, "decision"),
    );
    let positive: Vec<bool> = answers.codes.iter().map(|&code| code == 1).collect();
    let curve = roc_curve(&answers.scores, &positive, 400);
    let auc = answers.evaluate(&Metric::Auc);
    if let (false, Ok(auc)) = (curve.is_empty(), auc) {
        report.plot(
            "ROC curve",
            "The share of positives found against the share of negatives wrongly predicted positive, over all \
             thresholds.",
            LinePlot::roc(vec![RocCurve { label: name.to_string(), points: curve, area: auc.value }]),
        );
    }
}
