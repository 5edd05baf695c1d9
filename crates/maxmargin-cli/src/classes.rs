//! The output of a classifier for rows with known classes: the confusion table, the figures of each class, and sections
//! of a report.

use crate::console::Console;
use crate::format;
use crate::report::{HeatMap, LinePlot, Report, RocCurve};
use maxmargin::error::Result;
use maxmargin::metric::{Bin, ByClass, ClassTable, Confused, Judged, Metric, reliability_curve, roc_curve};
use maxmargin::model::{Answers, Decoder};
use serde_json::{Map, Value, json};

/// Tables on the terminal list this many classes.
const LISTED: usize = 20;

/// Wrong predictions and classes that are listed if there are too many for a table.
const WORST: usize = 10;

/// The width of a terminal.
const COLUMNS: usize = 100;

/// Labels in a table on the terminal are cut to this length.
const LABEL: usize = 24;

/// Labels shorter than this say too little.
const SHORT: usize = 10;

/// Classes in the heat map of a report, and rows in its table.
const DRAWN: usize = 30;

/// Named ROC curves of a report, and all of them.
const CURVES: (usize, usize) = (6, 60);

/// True against predicted classes, with the labels.
pub(crate) struct ClassResults {
    names: Vec<String>,
    table: ClassTable,
    /// Whether to show tables on the terminal: two classes that share a score have metrics of their own.
    several: bool,
}

impl ClassResults {
    /// The results of a model that predicts classes.
    pub(crate) fn of(answers: &Answers<'_>, decoder: &Decoder) -> Option<ClassResults> {
        let table = answers.table()?;
        let mut names = decoder.class_names()?;
        if table.classes() > names.len() {
            names.push("(unknown)".to_string());
        }
        Some(ClassResults { several: decoder.labels().is_some() || names.len() > 2, names, table })
    }

    /// Shows the tables to people.
    pub(crate) fn show(&self, console: &Console) -> Result<()> {
        if !self.several {
            return Ok(());
        }
        let confusion = match self.names.len() <= LISTED {
            true => self.confusion_lines(),
            false => None,
        };
        let lines = confusion.unwrap_or_else(|| self.confused_lines());
        for line in lines.iter().chain(&[String::new()]).chain(&self.class_lines()) {
            console.show(line)?;
        }
        Ok(())
    }

    /// The confusion table, or nothing if it is wider than a terminal.
    fn confusion_lines(&self) -> Option<Vec<String>> {
        let classes = self.names.len();
        let cell = |truth: usize, predicted: usize| match self.table.get(truth, predicted) {
            0.0 => "·".to_string(),
            weight => rows(weight),
        };
        let cells: Vec<Vec<String>> =
            (0..classes).map(|truth| (0..classes).map(|predicted| cell(truth, predicted)).collect()).collect();
        let wide = cells.iter().flatten().map(|cell| cell.chars().count()).max().unwrap_or(1);
        let most = |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let (mut heads, mut sides) = (self.names.clone(), shortened(&self.names, LABEL));
        let fits =
            |heads: &[String], sides: &[String]| most(sides).max(4) + classes * (2 + most(heads).max(wide)) <= COLUMNS;
        if !fits(&heads, &sides) {
            // Columns that cannot be labelled have numbers, which the rows explain.
            heads = (1..=classes).map(|number| number.to_string()).collect();
            sides = self.names.iter().zip(&heads).map(|(side, head)| format!("{head:>2} {side}")).collect();
            let room = COLUMNS.saturating_sub(classes * (2 + most(&heads).max(wide)));
            sides = shortened(&sides, room.clamp(SHORT, LABEL));
        }
        if !fits(&heads, &sides) {
            return None;
        }
        let (side, wide) = (most(&sides).max(4), wide.max(most(&heads)));
        let mut lines = vec![String::new(), "rows by true class, columns by predicted class".to_string()];
        let line = |name: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!("  {cell:>wide$}")).collect();
            format!("{name:<side$}{cells}")
        };
        lines.push(line("true", &heads));
        lines.extend(sides.iter().zip(&cells).map(|(name, cells)| line(name, cells)));
        Some(lines)
    }

    /// The most common wrong predictions.
    fn confused_lines(&self) -> Vec<String> {
        let confused = self.table.confusions();
        let told = match confused.len() {
            0 => "no wrong predictions".to_string(),
            few if few <= WORST => "all wrong predictions".to_string(),
            many => format!("the {WORST} most common of {} kinds of wrong predictions", format::count(many as u64)),
        };
        let listed = &confused[..confused.len().min(WORST)];
        let cells = listed.iter().map(|&confused| self.confused_cells(confused, 2 * LABEL - SHORT / 2)).collect();
        [vec![String::new(), told], lines(&["true", "predicted", "rows"], cells, 2)].concat()
    }

    /// True label, predicted label, number of rows.
    fn confused_cells(&self, confused: Confused, label: usize) -> Vec<String> {
        let name = |class: usize| format::shortened(&self.names[class], label);
        vec![name(confused.truth), name(confused.predicted), rows(confused.weight)]
    }

    /// The figures of each class, or of those that are predicted worst.
    fn class_lines(&self) -> Vec<String> {
        let listed = self.worst_classes(LISTED, WORST);
        let cells: Vec<Vec<String>> = listed.iter().map(|&(class, figures)| self.class_cells(class, figures)).collect();
        let cells = cells.into_iter().map(|mut cells| {
            cells[0] = format::shortened(&cells[0], 2 * LABEL);
            cells
        });
        let mut found = lines(&CLASS_COLUMNS, cells.collect(), 1);
        if listed.len() < self.names.len() {
            found.insert(0, format!("the {} classes with the lowest F1, of {}", listed.len(), self.counted_classes()));
        }
        found
    }

    fn counted_classes(&self) -> String {
        format::count(self.names.len() as u64)
    }

    /// All classes in order if there are at most `all`, otherwise the `some` with the lowest F1 of those that occur.
    fn worst_classes(&self, all: usize, some: usize) -> Vec<(usize, ByClass)> {
        let mut figures: Vec<(usize, ByClass)> = self.table.by_class().into_iter().enumerate().collect();
        if figures.len() > all {
            figures.retain(|(_, figures)| figures.support + figures.predicted > 0.0);
            figures.sort_by(|a, b| a.1.f1.total_cmp(&b.1.f1));
            figures.truncate(some);
        }
        figures
    }

    fn class_cells(&self, class: usize, figures: ByClass) -> Vec<String> {
        let mut cells = vec![self.names[class].clone()];
        cells.extend([figures.precision, figures.recall, figures.f1].map(|figure| format::fixed(figure, 4)));
        cells.push(rows(figures.support));
        cells
    }

    /// The weight of rows by true and then by predicted label. Cells without rows are left out.
    pub(crate) fn confusion_json(&self) -> Value {
        let mut object = Map::new();
        for cell in self.table.cells() {
            let row = object.entry(self.names[cell.truth].clone()).or_insert_with(|| json!({}));
            row[&self.names[cell.predicted]] = json!(cell.weight);
        }
        Value::Object(object)
    }

    /// Precision, recall, F1 and rows by label.
    pub(crate) fn by_class_json(&self) -> Value {
        let figures = self.names.iter().cloned().zip(self.table.by_class());
        let object = figures.map(|(name, figures)| {
            let ByClass { precision, recall, f1, support, predicted } = figures;
            let figures = json!({
                "precision": precision,
                "recall": recall,
                "f1": f1,
                "support": support,
                "predicted": predicted,
            });
            (name, figures)
        });
        Value::Object(object.collect())
    }

    /// Heat map, figures of each class and ROC curves.
    pub(crate) fn report(&self, report: &mut Report, answers: &Answers<'_>, weights: Option<&[f64]>) {
        let (drawn, caption) = self.drawn();
        let map = self.heat_map(&drawn);
        report.plot("Confusion", caption, map);
        let (listed, mut heading) = (self.worst_classes(2 * DRAWN, DRAWN), "Classes".to_string());
        if listed.len() < self.names.len() {
            heading = format!("The {} classes with the lowest F1, of {}", listed.len(), self.counted_classes());
        }
        let cells = listed.iter().map(|&(class, figures)| self.class_cells(class, figures)).collect();
        report.table(heading, CLASS_COLUMNS.map(String::from).to_vec(), cells);
        let confused = self.table.confusions();
        if self.names.len() > 2 && !confused.is_empty() {
            let listed = &confused[..confused.len().min(DRAWN / 2)];
            let cells = listed.iter().map(|&confused| self.confused_cells(confused, usize::MAX)).collect();
            report.table("Most common confusions", ["true", "predicted", "rows"].map(String::from).to_vec(), cells);
        }
        if self.several {
            self.curves(report, answers, weights);
        }
        ClassResults::reliability(report, answers);
    }

    /// How far the probabilities can be trusted, if the model has some.
    pub(crate) fn reliability(report: &mut Report, answers: &Answers<'_>) {
        let (Some(all), Some(predicted)) = (answers.probabilities(), answers.predictions()) else { return };
        let classes = answers.known();
        let own = predicted.iter().enumerate().map(|(row, &code)| all[row * classes + code as usize]);
        let right: Vec<bool> = answers.codes.iter().zip(predicted).map(|(truth, said)| truth == said).collect();
        let bins = reliability_curve(&own.collect::<Vec<f64>>(), &right, answers.weights(), BINS);
        reliability_plot(report, "Reliability", "on these rows", &bins);
    }

    /// The classes of the heat map, in their order: all, or those with the most wrong rows.
    fn drawn(&self) -> (Vec<usize>, String) {
        let classes = self.names.len();
        let told =
            "Shares of the rows of each true class; right predictions are on the diagonal. The numbers are rows.";
        if classes <= DRAWN {
            return ((0..classes).collect(), told.to_string());
        }
        let mut wrong: Vec<(usize, f64)> = (0..classes).map(|class| (class, 0.0)).collect();
        for Confused { truth, predicted, weight } in self.table.confusions() {
            wrong[truth].1 += weight;
            wrong[predicted].1 += weight;
        }
        wrong.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut drawn: Vec<usize> = wrong[..DRAWN].iter().map(|wrong| wrong.0).collect();
        drawn.sort_unstable();
        let of = format!("The {DRAWN} of {} classes with the most wrong predictions.", self.counted_classes());
        (drawn, format!("{of} {told}"))
    }

    fn heat_map(&self, drawn: &[usize]) -> HeatMap {
        let names: Vec<String> = drawn.iter().map(|&class| self.names[class].clone()).collect();
        // Long labels do not fit below the columns: then classes have numbers.
        let long = names.iter().any(|name| name.chars().count() > SHORT) && names.len() > 4;
        let side = |&class: &usize| format!("{} {}", self.names[class], class + 1);
        let (sides, heads) = match long {
            true => (drawn.iter().map(side).collect(), drawn.iter().map(|class| (class + 1).to_string()).collect()),
            false => (names.clone(), names),
        };
        let support: Vec<f64> = self.table.by_class().iter().map(|figures| figures.support).collect();
        let share = |truth: usize, predicted: usize| match self.table.get(truth, predicted) {
            // A cell without rows is left empty.
            0.0 => f64::NAN,
            weight => weight / support[truth],
        };
        let cells = |value: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            drawn.iter().map(|&truth| drawn.iter().map(|&predicted| value(truth, predicted)).collect()).collect()
        };
        let counts = cells(&|truth, predicted| self.table.get(truth, predicted));
        let words = counts.iter().map(|row| row.iter().map(|&weight| rows(weight)).collect()).collect();
        let confused = self.table.confusions();
        let told = match confused.first() {
            None => "No prediction is wrong.".to_string(),
            Some(most) => {
                let [truth, predicted] = [most.truth, most.predicted].map(|class| &self.names[class]);
                let weight = rows(most.weight);
                format!("The most common confusion is {truth} predicted as {predicted}: rows {weight}.")
            }
        };
        HeatMap::new("share of the true class", ("predicted", heads), ("true", sides), cells(&share))
            .worded("rows", words)
            .told(told)
    }

    /// The ROC curve of each class against the rest, those with the smallest areas named.
    fn curves(&self, report: &mut Report, answers: &Answers<'_>, weights: Option<&[f64]>) {
        let (known, codes) = (answers.known(), &answers.codes);
        if known < 2 || answers.scores.len() != known * codes.len() {
            return;
        }
        let column = |class: usize| -> Vec<f64> { answers.scores[class..].iter().step_by(known).copied().collect() };
        let areas = maxmargin::parallel::map(known, |class| {
            let (scores, own) = (column(class), codes.iter().map(|&code| u32::from(code as usize == class)));
            let own: Vec<u32> = own.collect();
            let judged = Judged::classes(&own, 2, &own).with_scores(&scores).with_weights(weights);
            Metric::Auc.evaluate(&judged).ok().map(|area| (class, area.value))
        });
        let mut areas: Vec<(usize, f64)> = areas.into_iter().flatten().collect();
        let all = areas.len();
        let few = all <= CURVES.0;
        if !few {
            areas.sort_by(|a, b| a.1.total_cmp(&b.1));
            areas.truncate(CURVES.1);
        }
        let points = if few { 400 } else { 120 };
        let curves: Vec<RocCurve> = areas
            .iter()
            .map(|&(class, area)| {
                let positive: Vec<bool> = codes.iter().map(|&code| code as usize == class).collect();
                let points = roc_curve(&column(class), &positive, points);
                RocCurve { label: format::shortened(&self.names[class], LABEL), points, area }
            })
            .collect();
        if curves.is_empty() {
            return;
        }
        let told = "Each class against the rest: the share of its rows found against the share of other rows wrongly \
                    predicted, over all thresholds on its score.";
        let caption = match (few, all > curves.len()) {
            (true, _) => told.to_string(),
            (false, false) => format!("{told} The {} smallest areas are named, the others grey.", CURVES.0),
            (false, true) => format!(
                "{told} Drawn are the {} smallest areas of {}; the first {} are named, the others grey.",
                curves.len(),
                format::count(all as u64),
                CURVES.0
            ),
        };
        report.plot("ROC curves by class", caption, LinePlot::roc(curves).named_first(CURVES.0));
    }
}

/// Bins of a reliability curve.
const BINS: usize = 10;

/// The share of right predictions over their probability.
pub(crate) fn reliability_plot(report: &mut Report, heading: &str, which: &str, bins: &[Bin]) {
    let told = format!(
        "The share of right predictions against the probability of the predicted class, {which}, in bins of equal \
         width. Probabilities that can be trusted are on the dotted line."
    );
    let points = bins.iter().map(|bin| (bin.probability, bin.share)).collect();
    report.plot(heading, told, LinePlot::reliability(points));
}

const CLASS_COLUMNS: [&str; 5] = ["class", "precision", "recall", "F1", "rows"];

/// The weight of rows: a count, or a number if rows have weights.
fn rows(weight: f64) -> String {
    if weight.fract() == 0.0 && weight < 1e15 { format::count(weight as u64) } else { format::significant(weight, 4) }
}

fn shortened(names: &[String], characters: usize) -> Vec<String> {
    names.iter().map(|name| format::shortened(name, characters)).collect()
}

/// A table for the terminal, with the first columns aligned to the left.
fn lines(head: &[&str], mut cells: Vec<Vec<String>>, left: usize) -> Vec<String> {
    cells.insert(0, head.iter().map(|head| head.to_string()).collect());
    let wide = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(wide).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &wide))| match at < left {
            true => format!("{cell:<wide$}"),
            false => format!("{cell:>wide$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(names: &[&str], cells: &[(u32, u32, f64)]) -> ClassResults {
        let (truth, predicted): (Vec<u32>, Vec<u32>) = cells.iter().map(|cell| (cell.0, cell.1)).unzip();
        let weights: Vec<f64> = cells.iter().map(|cell| cell.2).collect();
        let table = ClassTable::new(&truth, &predicted, Some(&weights), names.len());
        ClassResults { names: names.iter().map(|name| name.to_string()).collect(), table, several: true }
    }

    #[test]
    fn the_table_is_aligned_and_fits_the_terminal() {
        let cells = [(0, 0, 1200.0), (0, 1, 3.0), (1, 1, 7.0), (2, 0, 2.5), (2, 2, 1.0)];
        let lines = results(&["ham", "new", "a long label"], &cells).confusion_lines().expect("it fits");
        assert_eq!(lines[2], "true                   ham           new  a long label");
        assert_eq!(lines[3], "ham                  1,200             3             ·");
        assert_eq!(lines[5], "a long label           2.5             ·             1");
        let long: Vec<String> = (0..20).map(|class| format!("comp.os.ms-windows.number-{class}")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let lines = results(&long, &cells).confusion_lines();
        assert!(lines.is_none_or(|lines| lines.iter().all(|line| line.chars().count() <= COLUMNS)));
        let few = results(&long, &[(0, 0, 12.0), (0, 19, 3.0)]).confusion_lines().expect("numbered columns fit");
        assert!(few[2].ends_with("19  20") && few[3].starts_with(" 1 comp.os.ms-windo…"), "{few:?}");
        assert!(few.iter().all(|line| line.chars().count() <= COLUMNS));
    }

    #[test]
    fn many_classes_are_listed_by_what_is_confused() {
        let names: Vec<String> = (0..30).map(|class| format!("c{class}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let cells: Vec<(u32, u32, f64)> =
            (0..30).flat_map(|class| [(class, class, 5.0), (class, (class + 1) % 30, f64::from(class))]).collect();
        let results = results(&names, &cells);
        let lines = results.confused_lines();
        assert_eq!(lines[1], "the 10 most common of 30 kinds of wrong predictions");
        assert_eq!(lines[3], "c29   c0           29");
        assert_eq!(results.class_lines().len(), 2 + WORST);
        assert_eq!(results.drawn().0.len(), DRAWN);
        let json = results.confusion_json();
        assert_eq!((&json["c29"]["c0"], &json["c29"]["c3"]), (&json!(29.0), &Value::Null));
        assert_eq!(results.by_class_json()["c0"]["support"], json!(5.0));
    }
}
