//! The output of a model of comparisons for pairs: the confusion table, and sections of a report.

use crate::commands::train::is_rounding;
use crate::console::Console;
use crate::format;
use crate::report::{Contour, Histogram, LinePlot, Report, RocCurve, Segment, Surface};
use maxmargin::data::{Dataset, Dense, Matrix, Outcome, Targets};
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::metric::{Judged, Metric, confusion, decided_scores, outcome_of, roc_curve, score_differences};
use maxmargin::model::{Answers, Model};
use maxmargin::settings::{Input, Method, Settings};
use maxmargin_io::Reading;
use serde_json::{Map, Value, json};

/// The default metrics that are defined on these pairs, with log-loss if outcomes have probabilities.
pub(crate) fn fitting(
    mut metrics: Vec<Metric>,
    asked: &[String],
    judged_as: Input,
    settings: &Settings,
    data: &Dataset,
) -> Vec<Metric> {
    if let (true, Some(pairs)) = (asked.is_empty(), data.pairs()) {
        // Metrics that are not defined on these pairs are shown only if the user names them.
        let ties = pairs.ties();
        metrics.retain(|metric| match metric {
            Metric::Auc => ties > 0 && ties < pairs.len(),
            Metric::PairAccuracy => ties < pairs.len(),
            _ => true,
        });
    }
    let likely =
        judged_as == Input::Compared && settings.method() == Some(Method::Compare) && settings.loss == Loss::Logistic;
    if asked.is_empty() && likely {
        metrics.push(Metric::LogLoss);
    }
    metrics
}

/// The weight of pairs by true and predicted outcome.
pub(crate) struct Outcomes([[f64; 3]; 3]);

impl Outcomes {
    /// The table for data with pairs, if the model predicts ties.
    pub(crate) fn of(model: &Model, data: &Dataset) -> Result<Option<Outcomes>> {
        match (model.decoder.tie_width(), data.pairs()) {
            (Some(width), Some(pairs)) => Ok(Some(Outcomes(confusion(&model.scores(data)?, pairs, width)))),
            _ => Ok(None),
        }
    }

    /// The heads of the columns.
    fn columns() -> Vec<String> {
        std::iter::once("truth".to_string())
            .chain(Outcome::ALL.map(|outcome| format!("said {}", outcome.name())))
            .collect()
    }

    /// The rows, each with the name of the outcome first.
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |(truth, weights): (&Outcome, &[f64; 3])| {
            std::iter::once(truth.name().to_string())
                .chain(weights.map(|weight| format::significant(weight, 6)))
                .collect()
        };
        Outcome::ALL.iter().zip(&self.0).map(row).collect()
    }

    /// Shows the table to people.
    pub(crate) fn show(&self, console: &Console) -> Result<()> {
        let (columns, rows) = (Outcomes::columns(), self.rows());
        let widths: Vec<usize> = (0..columns.len())
            .map(|at| rows.iter().chain([&columns]).map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        for row in std::iter::once(&columns).chain(&rows) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            console.show(&cells.collect::<String>())?;
        }
        Ok(())
    }

    /// True outcome → predicted outcome → weight.
    pub(crate) fn as_json(&self) -> Value {
        let row = |weights: &[f64; 3]| -> Value {
            let each = Outcome::ALL.iter().zip(weights);
            Value::Object(each.map(|(said, weight)| (said.name().to_string(), json!(weight))).collect())
        };
        let rows = Outcome::ALL.iter().zip(&self.0).map(|(truth, weights)| (truth.name().to_string(), row(weights)));
        Value::Object(rows.collect::<Map<String, Value>>())
    }
}

/// Differences by outcome, the confusion table, the curve over all thresholds and, with two features, the level curves.
pub(crate) fn sections(
    report: &mut Report,
    model: &Model,
    answers: &Answers<'_>,
    data: &Dataset,
    name: &str,
) -> Result<()> {
    let (Some(pairs), Some(width)) = (data.pairs(), model.decoder.tie_width()) else { return Ok(()) };
    let exact = is_rounding(model, width);
    let differences = score_differences(&answers.scores, pairs);
    let of = |outcome: Outcome| {
        let each = differences.iter().enumerate().filter(|(pair, _)| pairs.outcome(*pair) == outcome);
        (outcome.name().to_string(), each.map(|(_, difference)| *difference).collect::<Vec<f64>>())
    };
    let histogram = Histogram::new("difference", "pairs", Outcome::ALL.map(of).to_vec());
    let (marked, told) = match width > 0.0 {
        _ if exact => (histogram.mark(0.0, "equal"), "the model predicts a tie only where scores are equal"),
        true => (histogram.mark(-width, "left").mark(width, "right"), "between the two lines the model predicts a tie"),
        false => (histogram.mark(0.0, "equal"), "the model never predicts a tie"),
    };
    let told = format!("The score of the right item of each pair minus that of the left one; {told}.");
    report.plot("Right minus left", told, marked);
    let outcomes = Outcomes(confusion(&answers.scores, pairs, width));
    report.table("Outcomes", Outcomes::columns(), outcomes.rows());
    let (scores, decided) = decided_scores(&differences, pairs);
    let mut curve = roc_curve(&scores, &decided, 400);
    // Pairs with the wrong better item are found at no threshold, so the curve ends below them.
    if let Some(end) = curve.last_mut() {
        let found = scores.iter().zip(&decided).filter(|(score, decided)| **decided && **score >= 0.0).count();
        end.1 = found as f64 / decided.iter().filter(|decided| **decided).count().max(1) as f64;
    }
    let judged = Judged::comparisons(&answers.scores, pairs, width);
    if let (false, Ok(area)) = (curve.is_empty(), Metric::Auc.evaluate(&judged)) {
        report.plot(
            "ROC curve",
            "The share of decided pairs whose better item is found, against the share of ties wrongly predicted as \
             decided, over all thresholds. A pair with the wrong better item never counts as found, so the curve may \
             end below 1. The dotted line is that of guesses, which are right for half of the decided pairs.",
            LinePlot::roc_of_comparisons(vec![RocCurve { label: name.to_string(), points: curve, area: area.value }]),
        );
    }
    level_curves(report, model, data, &answers.scores, name)
}

/// Number of grid points for level curves in each direction.
const GRID: usize = 81;

/// Margin around the items, as a share of the range of a feature.
const ROOM: f64 = 0.04;

/// Whether level curves can be drawn.
pub(crate) fn has_level_curves(model: &Model, data: &Dataset) -> bool {
    model.decoder.threshold().is_some() && data.pairs().is_some() && model.features() == 2
}

/// The score over the plane, if the model compares items with two features.
pub(crate) fn level_curves(
    report: &mut Report,
    model: &Model,
    data: &Dataset,
    scores: &[f64],
    name: &str,
) -> Result<()> {
    let (Some(threshold), Some(pairs), 2) = (model.decoder.tie_width(), data.pairs(), model.features()) else {
        return Ok(());
    };
    data.matrix().check(0..data.rows())?;
    let point = |row: u32| {
        let mut point = [0.0; 2];
        data.matrix().each_in_row(row as usize, |feature, value| point[feature] = value);
        (point[0], point[1])
    };
    let mut ends = [(f64::INFINITY, f64::NEG_INFINITY); 2];
    for row in pairs.left().iter().chain(pairs.right()) {
        let (x, y) = point(*row);
        for (end, value) in ends.iter_mut().zip([x, y]) {
            *end = (end.0.min(value), end.1.max(value));
        }
    }
    let places = |(low, high): (f64, f64)| -> Vec<f64> {
        let room = if high > low { ROOM * (high - low) } else { ROOM * low.abs().max(1.0) };
        let (low, high) = (low - room, high + room);
        (0..GRID).map(|at| low + (high - low) * at as f64 / (GRID - 1) as f64).collect()
    };
    let (x, y) = (places(ends[0]), places(ends[1]));
    let points: Vec<f64> = y.iter().flat_map(|&y| x.iter().flat_map(move |&x| [x, y])).collect();
    let grid = Dataset::new(Matrix::DenseF64(Dense::new(points, GRID * GRID, 2)?), Targets::Absent)?;
    let values = model.scores(&grid)?;
    let segments = score_differences(scores, pairs)
        .into_iter()
        .enumerate()
        .map(|(pair, difference)| {
            let outcome = pairs.outcome(pair);
            let (left, right) = (point(pairs.left()[pair]), point(pairs.right()[pair]));
            let (from, to) = if outcome == Outcome::Left { (right, left) } else { (left, right) };
            let wrong = outcome_of(difference, threshold) != outcome;
            Segment { from, to, decided: outcome != Outcome::Tie, wrong }
        })
        .collect();
    let base = usize::from(Reading::of(model)?.index_base.unwrap_or(1));
    let named = |feature: usize| match &model.feature_names {
        Some(_) => model.feature_name(feature, base),
        None => format!("feature {}", model.feature_name(feature, base)),
    };
    report.plot(
        "Level curves",
        format!("The score over both features, with the pairs of {name}: arrows point to the better item."),
        Contour::new(
            (named(0), named(1)),
            Surface { x, y, values },
            segments,
            if is_rounding(model, threshold) { 0.0 } else { threshold },
        ),
    );
    Ok(())
}
