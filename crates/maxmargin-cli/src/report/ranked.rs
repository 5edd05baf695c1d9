//! One value for each query (or fold, or class), sorted from best to worst, with the mean and, at the right, the
//! distribution of the values. It shows whether a mean hides a tail of failures.

use super::axis::{Area, Axis, Ends, Fitted, nothing_to_show, usual_height};
use super::svg::{Anchor, Canvas, Path, text_width};
use super::{Plot, Table};
use crate::format;

/// Sorted values with their names.
#[derive(Clone, Debug)]
pub struct Ranked {
    axis: Axis,
    one: String,
    many: String,
    items: Vec<(String, f64)>,
    mean: f64,
    mean_label: Option<String>,
    skipped: u64,
}

const PROBES: usize = 60;
const SPREAD_BINS: usize = 20;

impl Ranked {
    /// Sorts named values. `axis` names the value; `one` and `many` are the names of its items ("query", "queries").
    pub fn new(axis: Axis, one: impl Into<String>, many: impl Into<String>, mut items: Vec<(String, f64)>) -> Ranked {
        let before = items.len();
        items.retain(|item| axis.holds(item.1));
        let skipped = (before - items.len()) as u64;
        items.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mean = items.iter().map(|item| item.1 / items.len() as f64).sum();
        Ranked { axis, one: one.into(), many: many.into(), items, mean, mean_label: None, skipped }
    }

    /// The label of the mean line, such as `mean 0.716 ± 0.031`. The default is the mean alone.
    pub fn mean_label(mut self, label: impl Into<String>) -> Ranked {
        self.mean_label = Some(label.into());
        self
    }

    fn mean_words(&self) -> String {
        self.mean_label.clone().unwrap_or_else(|| format!("mean {}", format::significant(self.mean, 3)))
    }

    fn curve(&self, canvas: &mut Canvas, area: Area, y: &Fitted) {
        let number = self.items.len();
        let step = (area.right - area.left) / number as f64;
        let base = y.place(0.0);
        if step >= 5.0 {
            for (i, item) in self.items.iter().enumerate() {
                let (at, level) = (area.left + (i as f64 + 0.12) * step, y.place(item.1));
                canvas.rectangle(at, level.min(base), step * 0.76, (level - base).abs(), "column s1");
            }
            return;
        }
        // The values are sorted, so only the first of each pixel column is visible.
        let columns = (area.right - area.left).floor().max(1.0) as usize;
        let mut line: Vec<(f64, f64)> = Vec::new();
        let mut push = |i: usize| line.push((area.left + (i as f64 + 0.5) * step, y.place(self.items[i].1)));
        let kept = columns.min(number);
        for column in 0..kept {
            push(column * (number - 1) / (kept - 1).max(1));
        }
        // Points inside a level stretch add nothing.
        let mut slim: Vec<(f64, f64)> = Vec::new();
        for (i, point) in line.iter().enumerate() {
            let level = i > 0 && i + 1 < line.len() && line[i - 1].1 == point.1 && line[i + 1].1 == point.1;
            if !level {
                slim.push(*point);
            }
        }
        let ends = [(area.right, base), (area.left, base)];
        let mut filled = Path::through(slim.iter().copied().chain(ends));
        filled.close();
        canvas.path(&filled, "band s1");
        canvas.path(&Path::through(slim), "line s1");
    }

    fn spread(&self, canvas: &mut Canvas, left: f64, right: f64, y: &Fitted) {
        let (low, high) = y.range();
        let mut counts = [0u64; SPREAD_BINS];
        for item in &self.items {
            let share = (item.1 - low) / (high - low);
            counts[((share * SPREAD_BINS as f64).floor().clamp(0.0, SPREAD_BINS as f64 - 1.0)) as usize] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
        canvas.line((left, y.place(low)), (left, y.place(high)), "base");
        for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let edge = |b: usize| low + (high - low) * b as f64 / SPREAD_BINS as f64;
            let (upper, lower) = (y.place(edge(bin + 1)), y.place(edge(bin)));
            canvas.begin("probe");
            canvas.title(&format!(
                "{} to {}: {}",
                format::significant(edge(bin), 3),
                format::significant(edge(bin + 1), 3),
                format::counted(count, &self.one, &self.many)
            ));
            let length = (count as f64 / most * (right - left)).max(1.0);
            canvas.rectangle(left, upper + 0.5, length, lower - upper - 1.0, "column s1");
            canvas.end();
        }
    }

    fn probes(&self, canvas: &mut Canvas, area: Area) {
        let number = self.items.len();
        let shown = number.min(PROBES);
        let step = (area.right - area.left) / shown as f64;
        canvas.begin("probes");
        for i in 0..shown {
            let rank = if shown < 2 { 0 } else { i * (number - 1) / (shown - 1) };
            let item = &self.items[rank];
            canvas.begin("probe");
            canvas.title(&format!(
                "{} {}\n{} {}\n{} of {}",
                self.one,
                format::shortened(&item.0, 80),
                self.axis.label,
                format::significant(item.1, 4),
                format::count(rank as u64 + 1),
                format::count(number as u64)
            ));
            let at = area.left + i as f64 * step;
            canvas.rectangle(at, area.top, step, area.bottom - area.top, "hit");
            canvas.line((at + step / 2.0, area.top), (at + step / 2.0, area.bottom), "guide");
            canvas.end();
        }
        canvas.end();
    }
}

impl Plot for Ranked {
    fn draw(&self, width: f64) -> Canvas {
        let height = usual_height(width);
        let (top, bottom) = (28.0, height - 28.0);
        let values = self.items.iter().map(|item| item.1).chain([0.0]);
        let y = Fitted::new(&self.axis, values, (bottom, top), 44.0, Ends::Round);
        let Some(y) = y.filter(|_| !self.items.is_empty()) else {
            return nothing_to_show(width, "no values to show");
        };
        let left = y.label_width() + 12.0;
        let side = (width * 0.16).clamp(44.0, 130.0);
        let area = Area { left, top, right: width - side - 18.0, bottom };
        let mut canvas = Canvas::new(width, height);
        canvas.text_within(width - 4.0, 2.0, 12.0, Anchor::Start, "axis", &self.axis.label);
        Area { right: width - 2.0, ..area }.horizontal_lines(&mut canvas, &y);
        self.curve(&mut canvas, area, &y);
        self.spread(&mut canvas, area.right + 14.0, width - 2.0, &y);
        let base = y.place(0.0);
        canvas.line((area.left, base), (area.right, base), "base");
        let mean = y.place(self.mean);
        canvas.line((area.left, mean), (width - 2.0, mean), "rule");
        let words = self.mean_words();
        // Sorted from the best, the curve leaves the upper right corner free.
        let fits = text_width(&words) < (area.right - area.left) * 0.8;
        let at = if mean < top + 18.0 { mean + 15.0 } else { mean - 6.0 };
        let anchor = if fits { (area.right - 4.0, Anchor::End) } else { (area.left + 4.0, Anchor::Start) };
        canvas.text_within(area.right - area.left, anchor.0, at, anchor.1, "rule-label halo", &words);
        let number = format::counted(self.items.len() as u64, &self.one, &self.many);
        let below = format!("{number}, best to worst");
        let room = area.right - 4.0;
        let centre = (area.left + area.right) / 2.0;
        canvas.text_within(room, centre.max(text_width(&below) / 2.0), bottom + 20.0, Anchor::Middle, "axis", &below);
        if side > 60.0 {
            let middle = (area.right + 14.0 + width - 2.0) / 2.0;
            canvas.text_within(side, middle, bottom + 20.0, Anchor::Middle, "axis", &self.many);
        }
        self.probes(&mut canvas, area);
        canvas
    }

    fn summary(&self) -> String {
        let number = format::counted(self.items.len() as u64, &self.one, &self.many);
        let mut words = format!("{} of {number}, sorted; {}.", self.axis.label, self.mean_words());
        if let (Some(best), Some(worst)) = (self.items.first(), self.items.last()) {
            words.push_str(&format!(" Best {}, worst {}.", format::real(best.1), format::real(worst.1)));
        }
        words
    }

    fn notes(&self) -> Vec<String> {
        if self.skipped == 0 {
            return Vec::new();
        }
        let what = format::counted(self.skipped, &self.one, &self.many);
        vec![format!("{what} without a value: left out.")]
    }

    fn data(&self) -> Option<Table> {
        const SHOWN: usize = 10;
        if self.items.is_empty() {
            return None;
        }
        let header = vec!["place".into(), self.one.clone(), self.axis.label.clone()];
        let row = |i: usize| {
            let item = &self.items[i];
            vec![format::count(i as u64 + 1), item.0.clone(), format::significant(item.1, 4)]
        };
        let number = self.items.len();
        let places: Vec<usize> = if number <= 2 * SHOWN {
            (0..number).collect()
        } else {
            (0..SHOWN).chain(number - SHOWN..number).collect()
        };
        Some(Table { header, rows: places.into_iter().map(row).collect(), highlight: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_and_missing_ones_told() {
        let items = vec![("a".into(), 0.2), ("b".into(), f64::NAN), ("c".into(), 0.8)];
        let plot = Ranked::new(Axis::linear("ndcg@10"), "query", "queries", items);
        assert_eq!(plot.items[0].0, "c");
        assert_eq!(plot.mean, 0.5);
        assert_eq!(plot.notes(), ["1 query without a value: left out."]);
    }

    #[test]
    fn a_hundred_thousand_queries_stay_light() {
        let items = (0..100_000u32).map(|i| (i.to_string(), f64::from(i.wrapping_mul(2_654_435_761) % 1000) / 1000.0));
        let plot = Ranked::new(Axis::linear("ndcg@10").between(0.0, 1.0), "query", "queries", items.collect());
        for width in [340.0, 540.0, 1080.0] {
            let size = plot.draw(width).finish("plot", "").len();
            assert!(size < 60_000, "{size} bytes at {width}");
        }
    }

    #[test]
    fn any_number_of_items_draws() {
        for number in [0, 1, 2, 39, 40, 500] {
            let items = (0..number).map(|i| (i.to_string(), 1.0)).collect();
            let plot = Ranked::new(Axis::linear("map"), "query", "queries", items);
            let drawn = plot.draw(540.0).finish("plot", &plot.summary());
            assert!(drawn.ends_with("</svg>") && !drawn.contains("NaN"));
        }
    }
}
