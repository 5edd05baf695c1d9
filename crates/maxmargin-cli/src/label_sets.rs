//! What is shown about label sets: their metrics, the labels in the data, and the figures of each label.

use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::{Dataset, LabelSets, Labels};
use maxmargin::error::Result;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder};
use maxmargin::settings::{Settings, TaskSettings};
use maxmargin::task::Multilabel;
use maxmargin::train::Trained;
use serde_json::{Map, Value, json};

/// Labels that are listed on the terminal.
const LISTED: usize = 12;

/// Labels in the table of a report.
const DRAWN: usize = 30;

/// The same metrics, or the defaults for label sets if none were named and the model predicts sets.
pub(crate) fn fitting(metrics: Vec<Metric>, names: &[String], decoder: Option<&Decoder>) -> Vec<Metric> {
    match decoder.and_then(Decoder::label_sets) {
        Some(_) if names.is_empty() => Metric::multilabel_defaults(),
        _ => metrics,
    }
}

/// `90 labels, 1.23 a row`, and what is unusual about them. Errors in the data are reported by training itself.
pub(crate) fn found(data: &Dataset) -> Vec<String> {
    let Ok(labels) = Labels::of_sets(data.targets()) else { return Vec::new() };
    let Ok(sets) = LabelSets::of(&labels, data.targets()) else { return Vec::new() };
    let mut rows = vec![0u64; labels.len()];
    sets.iter().flatten().for_each(|&label| rows[label as usize] += 1);
    let mean = rows.iter().sum::<u64>() as f64 / sets.len().max(1) as f64;
    let count = format::counted(labels.len() as u64, "label", "labels");
    let mut sentences = vec![format!("{count}, {} a row on average", format::significant(mean, 3))];
    let empty = sets.iter().filter(|own| own.is_empty()).count() as u64;
    if empty > 0 {
        let rows = format::counted(empty, "row has no label", "rows have no label");
        sentences.push(format!("{rows}: all labels are to be below the border there"));
    }
    let full = sets.iter().filter(|own| own.len() == labels.len()).count() as u64;
    if full > 0 {
        sentences.push(format!("{} all labels", format::counted(full, "row has", "rows have")));
    }
    let never: Vec<&str> =
        (0..labels.len()).filter(|&label| rows[label] == 0).map(|label| labels.name(label)).collect();
    if !never.is_empty() {
        let names: Vec<String> =
            never.iter().take(LISTED).map(|name| format!("`{}`", format::shortened(name, 24))).collect();
        let more = if never.len() > LISTED { ", …" } else { "" };
        let labels = if never.len() == 1 { "label that no row has" } else { "labels that no row has" };
        sentences.push(format!("{} {labels}: {}{more}", format::count(never.len() as u64), names.join(", ")));
    }
    sentences
}

/// `14: `a`, `b`, …`, and where the border lies.
pub(crate) fn listed(labels: &Labels, calibrated: bool) -> String {
    let names = labels.names().iter().take(LISTED).map(|name| format!("`{}`", format::shortened(name, 24)));
    let more = if labels.len() > LISTED { ", …" } else { "" };
    let border = if calibrated { "all above the calibration score" } else { "all above zero" };
    format!("{}, {border}: {}{more}", format::count(labels.len() as u64), names.collect::<Vec<_>>().join(", "))
}

/// What to do about a calibrated problem with the hinge whose optimum is zero.
pub(crate) fn nothing_learned(trained: &Trained) -> Option<String> {
    let Settings { task: TaskSettings::Multilabel(task), .. } = &trained.model.settings else { return None };
    (trained.learned_nothing && task.multilabel == Multilabel::Calibrated).then(|| {
        "NOTHING learned: equal scores for all labels are proven to be as good as any within the tolerance, because these \
         labels are too uncertain for the hinge; use --loss logistic, or --multilabel one-vs-rest"
            .to_string()
    })
}

/// The figures of one label.
struct Figures {
    label: usize,
    rows: f64,
    predicted: f64,
    right: f64,
}

impl Figures {
    fn f1(&self) -> f64 {
        if self.rows + self.predicted > 0.0 { 2.0 * self.right / (self.rows + self.predicted) } else { 0.0 }
    }

    fn share(part: f64, whole: f64) -> f64 {
        if whole > 0.0 { part / whole } else { 0.0 }
    }
}

/// The figures of every label.
pub(crate) struct ByLabel<'a> {
    labels: &'a Labels,
    figures: Vec<Figures>,
}

const COLUMNS: [&str; 5] = ["label", "rows", "precision", "recall", "f1"];

impl<'a> ByLabel<'a> {
    /// Those of a model that predicts sets.
    pub(crate) fn of(answers: &Answers<'_>, decoder: &'a Decoder) -> Option<ByLabel<'a>> {
        let ((labels, _), sets) = (decoder.label_sets()?, answers.sets()?);
        let mut figures: Vec<Figures> =
            (0..labels.len()).map(|label| Figures { label, rows: 0.0, predicted: 0.0, right: 0.0 }).collect();
        for (row, (own, scores)) in sets.iter().zip(answers.scores.chunks_exact(labels.len())).enumerate() {
            let weight = answers.weights().map_or(1.0, |weights| weights[row]);
            own.iter().for_each(|&label| figures[label as usize].rows += weight);
            for (label, _) in scores.iter().enumerate().filter(|(_, score)| **score > 0.0) {
                figures[label].predicted += weight;
                figures[label].right += if own.binary_search(&(label as u32)).is_ok() { weight } else { 0.0 };
            }
        }
        Some(ByLabel { labels, figures })
    }

    /// The labels with the most rows.
    fn largest(&self, most: usize) -> Vec<&Figures> {
        let mut order: Vec<&Figures> = self.figures.iter().collect();
        order.sort_by(|a, b| b.rows.total_cmp(&a.rows).then(a.label.cmp(&b.label)));
        order.truncate(most);
        order
    }

    fn cells(&self, own: &Figures, width: usize) -> Vec<String> {
        vec![
            format::shortened(self.labels.name(own.label), width),
            format::significant(own.rows, 6),
            format::fixed(Figures::share(own.right, own.predicted), 4),
            format::fixed(Figures::share(own.right, own.rows), 4),
            format::fixed(own.f1(), 4),
        ]
    }

    /// Shows a table to people.
    pub(crate) fn show(&self, console: &Console) -> Result<()> {
        let listed = self.largest(LISTED);
        let told = match listed.len() < self.figures.len() {
            true => format!("the {} labels with the most rows, of {}", listed.len(), self.figures.len()),
            false => "each label".to_string(),
        };
        let head: Vec<String> = COLUMNS.map(str::to_string).to_vec();
        let lines: Vec<Vec<String>> =
            std::iter::once(head).chain(listed.iter().map(|own| self.cells(own, 40))).collect();
        let widths: Vec<usize> =
            (0..COLUMNS.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
        console.show("")?;
        console.show(&told)?;
        for line in lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            console.show(&cells.collect::<String>())?;
        }
        Ok(())
    }

    /// Adds a table to a report.
    pub(crate) fn report(&self, report: &mut Report) {
        let rows = self.largest(DRAWN).iter().map(|own| self.cells(own, 60)).collect();
        let what = if self.figures.len() > DRAWN { "The labels with the most rows" } else { "Labels" };
        report.table(what.to_string(), COLUMNS.map(str::to_string).to_vec(), rows);
    }

    /// For JSON.
    pub(crate) fn as_json(&self) -> Value {
        let of = |own: &Figures| {
            json!({
                "rows": own.rows,
                "precision": Figures::share(own.right, own.predicted),
                "recall": Figures::share(own.right, own.rows),
                "f1": own.f1(),
            })
        };
        let named = self.figures.iter().map(|own| (self.labels.name(own.label).to_string(), of(own)));
        Value::Object(named.collect::<Map<String, Value>>())
    }
}
