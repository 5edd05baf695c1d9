//! Histograms by class or grade. Two groups are drawn over each other; more are drawn in rows that share the axis, so
//! that each can be read. Values are counted once, when the plot is made.

use super::axis::{Area, Axis, Ends, Fitted, nothing_to_show, round_step, usual_height};
use super::line::legend_rows;
use super::svg::{Anchor, Canvas, Path, typographic};
use super::{Plot, Table, series_class};
use crate::format;

#[derive(Clone, Debug)]
struct Group {
    label: String,
    counts: Vec<u64>,
    total: u64,
    mean: f64,
}

impl Group {
    fn share(&self, bin: usize) -> f64 {
        self.counts[bin] as f64 / self.total.max(1) as f64
    }
}

/// A histogram of one or more groups of values.
#[derive(Clone, Debug)]
pub struct Histogram {
    label: String,
    noun: String,
    groups: Vec<Group>,
    start: f64,
    step: f64,
    marks: Vec<(f64, String)>,
    notes: Vec<String>,
}

const BINS: f64 = 36.0;
const ROWS: usize = 12;

impl Histogram {
    /// Counts values by group. `label` is the name of the quantity, `noun` is the name of what is counted ("rows",
    /// "queries").
    pub fn new(label: impl Into<String>, noun: impl Into<String>, groups: Vec<(String, Vec<f64>)>) -> Histogram {
        let noun = noun.into();
        let mut notes = Vec::new();
        let mut all: Vec<f64> = groups.iter().flat_map(|g| g.1.iter().copied()).filter(|v| v.is_finite()).collect();
        let skipped = groups.iter().map(|g| g.1.len() as u64).sum::<u64>() - all.len() as u64;
        if skipped > 0 {
            notes.push(format!("{} not finite: left out.", format::counted(skipped, "value is", "values are")));
        }
        all.sort_by(f64::total_cmp);
        let (start, step, bins, outside) = bins(&all);
        if outside > 0 {
            let what = format::counted(outside, "value beyond the axis is", "values beyond the axis are");
            notes.push(format!("{what} counted in the outermost bars."));
        }
        if groups.len() > ROWS {
            notes.push(format!("The first {ROWS} of {} groups are shown.", format::count(groups.len() as u64)));
        }
        let counted = groups.into_iter().take(ROWS).map(|(label, values)| {
            let mut counts = vec![0u64; bins];
            let (mut total, mut sum) = (0u64, 0.0);
            for value in values.into_iter().filter(|v| v.is_finite()) {
                let bin = ((value - start) / step).floor().clamp(0.0, bins as f64 - 1.0) as usize;
                counts[bin] += 1;
                total += 1;
                sum += value;
            }
            Group { label, counts, total, mean: sum / total.max(1) as f64 }
        });
        let groups = counted.collect();
        Histogram { label: label.into(), noun, groups, start, step, marks: Vec::new(), notes }
    }

    /// Adds a vertical reference line, such as a decision threshold.
    pub fn mark(mut self, value: f64, label: impl Into<String>) -> Histogram {
        self.marks.push((value, label.into()));
        self
    }

    fn edge(&self, bin: usize) -> f64 {
        self.start + bin as f64 * self.step
    }

    fn bins(&self) -> usize {
        self.groups.first().map_or(0, |g| g.counts.len())
    }

    fn outline(&self, group: &Group, x: &Fitted, bottom: f64, y: impl Fn(usize) -> f64) -> Path {
        let mut path = Path::new();
        path.to(x.place(self.edge(0)), bottom);
        let mut level = bottom;
        for bin in 0..group.counts.len() {
            let next = y(bin);
            if next != level {
                path.to(x.place(self.edge(bin)), level);
                path.to(x.place(self.edge(bin)), next);
                level = next;
            }
        }
        let end = x.place(self.edge(group.counts.len()));
        path.to(end, level);
        path.to(end, bottom);
        path
    }

    fn probes(&self, canvas: &mut Canvas, area: Area, x: &Fitted) {
        canvas.begin("probes");
        for bin in 0..self.bins() {
            if self.groups.iter().all(|g| g.counts[bin] == 0) {
                continue;
            }
            let (from, to) = (x.place(self.edge(bin)), x.place(self.edge(bin + 1)));
            let mut title =
                format!("{} to {}", format::significant(self.edge(bin), 4), format::significant(self.edge(bin + 1), 4));
            for group in &self.groups {
                let share = format::percent(group.share(bin));
                let name = if group.label.is_empty() { &self.noun } else { &group.label };
                title.push_str(&format!("\n{name}: {} ({share})", format::count(group.counts[bin])));
            }
            canvas.begin("probe");
            canvas.title(&title);
            canvas.rectangle(from, area.top, to - from, area.bottom - area.top, "hit");
            canvas.end();
        }
        canvas.end();
    }

    fn draw_marks(&self, canvas: &mut Canvas, area: Area, x: &Fitted) {
        let (low, high) = x.range();
        for (value, label) in self.marks.iter().filter(|m| m.0 >= low && m.0 <= high) {
            let at = x.place(*value);
            canvas.line((at, area.top - 4.0), (at, area.bottom), "rule");
            let (anchor, at) =
                if at > (area.left + area.right) / 2.0 { (Anchor::End, at - 5.0) } else { (Anchor::Start, at + 5.0) };
            canvas.text_within((area.right - area.left) / 2.0, at, area.top + 6.0, anchor, "rule-label", label);
        }
    }

    fn horizontal(&self, left: f64, right: f64) -> Option<Fitted> {
        let axis = Axis::linear("").between(self.edge(0), self.edge(self.bins()));
        Fitted::new(&axis, [self.edge(0)], (left, right), 70.0, Ends::Exact)
    }

    fn draw_over_each_other(&self, width: f64) -> Canvas {
        let height = usual_height(width);
        let named: Vec<(usize, &str)> =
            self.groups.iter().enumerate().map(|(i, g)| (i, g.label.as_str())).filter(|n| !n.1.is_empty()).collect();
        let keys = legend_rows(&named, width);
        // One group is shown as counts. Several are shown as shares, so that a rare class stays visible next to a
        // common one.
        let share = self.groups.len() > 1;
        let level = |group: &Group, bin: usize| if share { group.share(bin) * 100.0 } else { group.counts[bin] as f64 };
        let title = if share { format!("share of each group's {}, %", self.noun) } else { self.noun.clone() };
        let (top, bottom) = (30.0 + keys.len() as f64 * 20.0, height - 44.0);
        let levels = self.groups.iter().flat_map(|g| (0..self.bins()).map(move |bin| level(g, bin)));
        let y = Fitted::new(&Axis::linear(""), levels.chain([0.0]), (bottom, top), 44.0, Ends::Round);
        let Some(y) = y else { return nothing_to_show(width, "no values to show") };
        let area = Area { left: y.label_width() + 12.0, top, right: width - 14.0, bottom };
        let Some(x) = self.horizontal(area.left, area.right) else {
            return nothing_to_show(width, "no values to show");
        };
        let mut canvas = Canvas::new(width, height);
        canvas.text_within(width, 2.0, 12.0, Anchor::Start, "axis", &title);
        for (row, keys) in keys.iter().enumerate() {
            for &(number, offset, label) in keys {
                let at = 34.0 + row as f64 * 20.0;
                let class = series_class(number);
                canvas.rectangle(offset, at - 9.0, 12.0, 10.0, &format!("swatch {class}"));
                canvas.text_within(width - 30.0, offset + 18.0, at, Anchor::Start, &format!("name {class}"), label);
            }
        }
        area.horizontal_lines(&mut canvas, &y);
        for (number, group) in self.groups.iter().enumerate() {
            let outline = self.outline(group, &x, bottom, |bin| y.place(level(group, bin)));
            canvas.path(&outline, &format!("bars {}", series_class(number)));
        }
        area.below(&mut canvas, &x, &self.label);
        self.draw_marks(&mut canvas, area, &x);
        self.probes(&mut canvas, area, &x);
        canvas
    }

    fn draw_in_rows(&self, width: f64) -> Canvas {
        let rows = self.groups.len() as f64;
        let row = (usual_height(width) / rows).clamp(56.0, 100.0);
        let top = if self.marks.is_empty() { 4.0 } else { 22.0 };
        let area = Area { left: 8.0, top, right: width - 14.0, bottom: top + rows * row };
        let Some(x) = self.horizontal(area.left, area.right) else {
            return nothing_to_show(width, "no values to show");
        };
        let highest = self.groups.iter().flat_map(|g| (0..self.bins()).map(|b| g.share(b))).fold(1e-9, f64::max);
        let mut canvas = Canvas::new(width, area.bottom + 44.0);
        canvas.begin("grid");
        for (value, _) in &x.ticks {
            canvas.line((x.place(*value), area.top), (x.place(*value), area.bottom), "");
        }
        canvas.end();
        for (number, group) in self.groups.iter().enumerate() {
            let base = area.top + (number as f64 + 1.0) * row;
            let class = series_class(number);
            let outline = self.outline(group, &x, base, |bin| base - group.share(bin) / highest * (row - 18.0));
            canvas.path(&outline, &format!("bars {class}"));
            canvas.line((area.left, base), (area.right, base), "base");
            let mut label = format!("{} · {} {}", group.label, format::count(group.total), self.noun);
            if group.total > 0 {
                label.push_str(&format!(" · mean {}", typographic(&format::significant(group.mean, 3))));
                canvas.line(
                    (x.place(group.mean), base - row + 18.0),
                    (x.place(group.mean), base),
                    &format!("mean {class}"),
                );
            }
            // The label is on the side with the lower bars.
            let half = group.counts.len() / 2;
            let left_heavy = group.counts[..half].iter().max() > group.counts[half..].iter().max();
            let (at, anchor) = if left_heavy { (area.right, Anchor::End) } else { (area.left, Anchor::Start) };
            canvas.text_within(width * 0.9, at, base - row + 14.0, anchor, &format!("name halo {class}"), &label);
        }
        area.below(&mut canvas, &x, &self.label);
        self.draw_marks(&mut canvas, Area { top: 6.0, ..area }, &x);
        self.probes(&mut canvas, area, &x);
        canvas
    }
}

impl Plot for Histogram {
    fn draw(&self, width: f64) -> Canvas {
        if self.groups.iter().all(|g| g.total == 0) {
            nothing_to_show(width, "no values to show")
        } else if self.groups.len() > 2 {
            self.draw_in_rows(width)
        } else {
            self.draw_over_each_other(width)
        }
    }

    fn summary(&self) -> String {
        let mut words = format!("Histogram of {}.", self.label);
        for group in &self.groups {
            let mean = format::significant(group.mean, 3);
            words.push_str(&format!(" {}: {} {}, mean {mean}.", group.label, format::count(group.total), self.noun));
        }
        words
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn data(&self) -> Option<Table> {
        let mut header = vec![format!("{} from", self.label), "to".into()];
        header.extend(self.groups.iter().map(|g| if g.label.is_empty() { self.noun.clone() } else { g.label.clone() }));
        let rows: Vec<Vec<String>> = (0..self.bins())
            .filter(|&bin| self.groups.iter().any(|g| g.counts[bin] > 0))
            .map(|bin| {
                let ends = [self.edge(bin), self.edge(bin + 1)].map(|edge| format::significant(edge, 4));
                ends.into_iter().chain(self.groups.iter().map(|g| format::count(g.counts[bin]))).collect()
            })
            .collect();
        (!rows.is_empty()).then_some(Table { header, rows, highlight: None })
    }
}

/// Round bins over sorted values: start, width, number, and how many values are outside. A few extreme values must not
/// squeeze the rest into one bar, so the range may leave out the outer half per cent.
fn bins(sorted: &[f64]) -> (f64, f64, usize, u64) {
    let (Some(&least), Some(&greatest)) = (sorted.first(), sorted.last()) else { return (0.0, 1.0, 0, 0) };
    let quantile = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let (mut low, mut high) = (least.max(-1e300), greatest.min(1e300));
    let (inner_low, inner_high) = (quantile(0.005), quantile(0.995));
    if inner_high > inner_low && high - low > 4.0 * (inner_high - inner_low) {
        let room = (inner_high - inner_low) * 0.1;
        (low, high) = (low.max(inner_low - room), high.min(inner_high + room));
    }
    let size = low.abs().max(high.abs());
    if high - low <= size * 1e-12 || high - low < 1e-290 {
        let step = if size == 0.0 { 1.0 } else { (size * 0.02).max(1e-280) };
        return (low - 2.5 * step, step, 5, 0);
    }
    let number = (2.0 * (sorted.len() as f64).sqrt()).clamp(5.0, BINS);
    let step = round_step((high - low) / number);
    let start = (low / step + 1e-9).floor() * step;
    // The largest value belongs to the last bar, even if it is on an edge.
    let count = ((high - start) / step - 1e-9).ceil().clamp(1.0, 2.0 * BINS) as usize;
    let end = start + count as f64 * step;
    let outside = sorted.iter().filter(|&&v| v < start - step * 1e-9 || v > end + step * 1e-9).count() as u64;
    (start, step, count, outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_value_is_counted_once() {
        let values: Vec<f64> = (0..=1000).map(|i| f64::from(i) / 1000.0).chain([f64::NAN]).collect();
        let plot = Histogram::new("score", "rows", vec![("a".into(), values)]);
        assert_eq!(plot.groups[0].counts.iter().sum::<u64>(), 1001);
        assert_eq!(plot.notes, ["1 value is not finite: left out."]);
        assert_eq!((plot.start, plot.step), (0.0, 0.05));
    }

    #[test]
    fn far_values_do_not_squeeze_the_rest() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i % 100)).chain([1e9]).collect();
        let plot = Histogram::new("score", "rows", vec![(String::new(), values)]);
        assert!(plot.step <= 5.0 && plot.groups[0].counts.iter().filter(|&&c| c > 0).count() > 10);
        assert_eq!(plot.groups[0].total, 1001);
        assert_eq!(plot.notes, ["1 value beyond the axis is counted in the outermost bars."]);
    }

    #[test]
    fn degenerate_values_still_draw() {
        for values in [vec![], vec![f64::NAN], vec![0.0], vec![3.0; 5], vec![f64::MAX, f64::MIN], vec![1e-320, 5e-320]]
        {
            for groups in [1, 2, 5] {
                let groups = (0..groups).map(|i| (format!("grade {i}"), values.clone())).collect();
                let plot = Histogram::new("score", "rows", groups).mark(0.0, "threshold");
                let drawn = plot.draw(340.0).finish("plot", &plot.summary());
                assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
            }
        }
    }
}
