//! The sections of a report about a training run.

use super::words::{how_solved, verdict};
use crate::classes::reliability_plot;
use crate::format;
use crate::report::{Axis, Bars, LinePlot, Report, Series, Tile, Tone};
use maxmargin::error::Result;
use maxmargin::model::{Decoder, Model};
use maxmargin::solve::relative_gap;
use maxmargin::train::Trained;
use maxmargin_io::Reading;
use maxmargin_io::atomic::write_atomically;
use std::io::Write;
use std::path::Path;

/// Writes a report completely or not at all.
pub(crate) fn write_report(report: &Report, file: &str) -> Result<()> {
    let html = report.render();
    write_atomically(Path::new(file), |out| out.write_all(html.as_bytes()))
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
            "An upper bound on how far the objective is from the optimum.",
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
    if let Some(calibration) = trained.model.calibration.as_ref().filter(|calibration| !calibration.bins.is_empty()) {
        let which = "on the folds that it was fitted on";
        reliability_plot(report, "Reliability on held-out folds", which, &calibration.bins);
    }
    if trained.model.scorer.weights().is_some() {
        let (title, told, noun, items) = match trained.model.settings.is_rating() {
            true => ("Largest ratings", "The ratings of the items.", "rating", "items"),
            false => ("Largest weights", "The weights of the scaled features.", "weight", "features"),
        };
        report.plot(title, told, Bars::largest(noun, items, named_weights(&trained.model), 25));
    }
}

/// Every non-zero weight with its name.
pub(crate) fn named_weights(model: &Model) -> Vec<(String, f64)> {
    let weights = model.scorer.weights().unwrap_or_default();
    // Features without names are numbered as in the user's file.
    let base = Reading::of(model).ok().and_then(|reading| reading.index_base).unwrap_or(1);
    weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight != 0.0)
        .map(|(at, &weight)| {
            let outputs = model.scorer.outputs();
            let feature = model.feature_name(at / outputs, usize::from(base));
            match (&model.decoder, model.decoder.labels().or(model.decoder.tags())) {
                (Decoder::Code(_), _) => (format!("{feature} in column {}", at % outputs + 1), weight),
                (Decoder::Sets { labels, .. }, _) => match at % outputs {
                    // The last score is the calibration score.
                    last if last == labels.len() => (format!("{feature} for the border"), weight),
                    label => (format!("{feature} for `{}`", labels.name(label)), weight),
                },
                // Each class has a weight of its own.
                (_, Some(labels)) => (format!("{feature} for `{}`", labels.name(at % outputs)), weight),
                (Decoder::Tree { grammar, .. }, _) => {
                    (format!("{feature} for `{}`", grammar.output_name(at % outputs)), weight)
                }
                (_, None) => (feature, weight),
            }
        })
        .collect()
}
