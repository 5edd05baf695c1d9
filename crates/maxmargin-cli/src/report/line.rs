//! Lines: one or more series over linear or logarithmic axes, with markers, bands, and reference lines. It is used for
//! convergence traces, learning curves, paths over a setting and, as a square, for ROC curves.

use super::axis::{Area, Axis, Ends, Fitted, Scale, nothing_to_show, usual_height};
use super::svg::{Anchor, Canvas, Path, text_width};
use super::{Plot, Table, series_class};
use crate::format;

/// One line of a plot.
#[derive(Clone, Debug, Default)]
pub struct Series {
    label: String,
    points: Vec<(f64, f64)>,
    band: Vec<(f64, f64, f64)>,
    markers: bool,
    dashed: bool,
    faint: bool,
}

impl Series {
    /// A line through points, in their order.
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { label: label.into(), points, ..Series::default() }
    }

    /// Marks the points, unless there are too many to be separate.
    pub fn markers(mut self) -> Series {
        self.markers = true;
        self
    }

    /// Draws the line dashed, for bounds, references and estimates.
    pub fn dashed(mut self) -> Series {
        self.dashed = true;
        self
    }

    /// Draws the line thin, without a name and behind the others, for one of many lines with a mean.
    pub fn faint(mut self) -> Series {
        self.faint = true;
        self
    }

    /// A shaded band, as (x, low, high): standard errors, the range over folds.
    pub fn band(mut self, band: Vec<(f64, f64, f64)>) -> Series {
        self.band = band;
        self
    }
}

/// A ROC curve.
#[derive(Clone, Debug, Default)]
pub struct RocCurve {
    /// The name, such as the file; may be empty if there is only one curve.
    pub label: String,
    /// (false positive rate, true positive rate), from (0, 0) to (1, 1).
    pub points: Vec<(f64, f64)>,
    /// The area under it.
    pub area: f64,
}

/// A plot of lines.
#[derive(Clone, Debug)]
pub struct LinePlot {
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    rules: Vec<(f64, String)>,
    marks: Vec<(f64, String)>,
    square: bool,
    /// For a square plot: where the line of a guess ends at the right edge.
    chance: f64,
}

/// Number of positions of a plot that react to the pointer.
const PROBES: usize = 40;
/// A series with more points than this has no markers.
const MARKED: usize = 60;
/// The largest number of rows in the data table under a plot.
const LISTED: usize = 60;

impl LinePlot {
    /// An empty plot with its axes.
    pub fn new(x: Axis, y: Axis) -> LinePlot {
        LinePlot { x, y, series: Vec::new(), rules: Vec::new(), marks: Vec::new(), square: false, chance: 1.0 }
    }

    /// Adds a line.
    pub fn series(mut self, series: Series) -> LinePlot {
        self.series.push(series);
        self
    }

    /// Adds a horizontal reference line at a value of y.
    pub fn rule(mut self, value: f64, label: impl Into<String>) -> LinePlot {
        self.rules.push((value, label.into()));
        self
    }

    /// Adds a vertical reference line at a value of x: the chosen setting, the best pass.
    pub fn mark(mut self, value: f64, label: impl Into<String>) -> LinePlot {
        self.marks.push((value, label.into()));
        self
    }

    /// One or more ROC curves, on a square with the diagonal that guesses reach.
    pub fn roc(curves: Vec<RocCurve>) -> LinePlot {
        LinePlot::curves(curves, ["false positive rate", "true positive rate"])
    }

    /// The same for comparisons, where a decided pair is found only if the better item is also right. A guess is right
    /// for half of them, so its line rises to a half.
    pub fn roc_of_comparisons(curves: Vec<RocCurve>) -> LinePlot {
        LinePlot { chance: 0.5, ..LinePlot::curves(curves, ["ties called decided", "decided pairs found"]) }
    }

    /// Shares that came true against the probabilities that were stated, on a square with the diagonal of full trust.
    pub fn reliability(points: Vec<(f64, f64)>) -> LinePlot {
        let axis = |label: &str| Axis::linear(label).between(0.0, 1.0);
        let plot = LinePlot::new(axis("probability"), axis("share that is right"));
        LinePlot { square: true, ..plot.series(Series::new("share that is right", points).markers()) }
    }

    /// Draws the lines after the first few thin and without a name.
    pub fn named_first(mut self, number: usize) -> LinePlot {
        self.series.iter_mut().skip(number).for_each(|series| series.faint = true);
        self
    }

    fn curves(curves: Vec<RocCurve>, [x, y]: [&str; 2]) -> LinePlot {
        let x = Axis::linear(x).between(0.0, 1.0);
        let y = Axis::linear(y).between(0.0, 1.0);
        let mut plot = LinePlot::new(x, y);
        plot.square = true;
        for RocCurve { label, points, area } in curves {
            let area = format!("AUC {}", format::fixed(area, 3));
            let label = if label.is_empty() { area } else { format!("{label} · {area}") };
            plot = plot.series(Series::new(label, points));
        }
        plot
    }

    /// The series that need a name in the drawing. If there is only one, the axis names it.
    fn named(&self) -> Vec<(usize, &str)> {
        let alone = self.series.len() == 1 && self.series[0].label == self.y.label;
        let labels = self.series.iter().enumerate().filter(|(_, s)| !s.faint).map(|(i, s)| (i, s.label.as_str()));
        labels.filter(|(_, label)| !label.is_empty() && !alone).collect()
    }

    fn drawable(&self, point: &(f64, f64)) -> bool {
        point.0.is_finite() && point.1.is_finite()
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        let points = self.series.iter().flat_map(|s| s.points.iter().filter(|p| self.drawable(p)).map(|p| p.0));
        let bands = self.series.iter().flat_map(|s| s.band.iter().map(|b| b.0));
        points.chain(bands).chain(self.marks.iter().map(|m| m.0))
    }

    fn ys(&self) -> impl Iterator<Item = f64> {
        let points = self.series.iter().flat_map(|s| s.points.iter().filter(|p| self.drawable(p)).map(|p| p.1));
        let bands = self.series.iter().flat_map(|s| s.band.iter().flat_map(|b| [b.1, b.2]));
        points.chain(bands).chain(self.rules.iter().map(|r| r.0))
    }

    fn probes(&self, canvas: &mut Canvas, area: Area, x: &Fitted, y: &Fitted, lines: &[Vec<(f64, f64)>]) {
        let mut places: Vec<f64> = lines.iter().flatten().map(|p| p.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() > PROBES {
            let last = places.len() - 1;
            places = (0..PROBES).map(|i| places[i * last / (PROBES - 1)]).collect();
            places.dedup();
        }
        let pixels: Vec<f64> = places.iter().map(|&at| x.place(at)).collect();
        canvas.begin("probes");
        for (i, &at) in places.iter().enumerate() {
            let from = if i == 0 { area.left } else { (pixels[i - 1] + pixels[i]) / 2.0 };
            let to = if i + 1 == places.len() { area.right } else { (pixels[i] + pixels[i + 1]) / 2.0 };
            let mut title = format!("{} {}", self.x.label, format::real(at));
            let mut dots = Vec::new();
            for (number, (series, line)) in self.series.iter().zip(lines).enumerate().filter(|(_, (s, _))| !s.faint) {
                let nearest = line.iter().min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()));
                let Some(&(px, py)) = nearest.filter(|p| (x.place(p.0) - pixels[i]).abs() < 1.0 + (to - from) / 2.0)
                else {
                    continue;
                };
                title.push_str(&format!("\n{}: {}", series.label, format::real(py)));
                dots.push((x.place(px), y.place(py), series_class(number)));
            }
            canvas.begin("probe");
            canvas.title(&title);
            canvas.rectangle(from, area.top, to - from, area.bottom - area.top, "hit");
            canvas.line((pixels[i], area.top), (pixels[i], area.bottom), "guide");
            for (px, py, class) in dots {
                canvas.dot(px, py, 3.5, class);
            }
            canvas.end();
        }
        canvas.end();
    }
}

impl Plot for LinePlot {
    fn draw(&self, width: f64) -> Canvas {
        let width = if self.square { width.min(460.0) } else { width };
        let height = if self.square { width } else { usual_height(width) };
        let named = self.named();
        let widest = named.iter().map(|(_, label)| text_width(label) * 1.1).fold(0.0, f64::max);
        // Labels are at the end of the line if there is space, in the empty corner of a square plot, otherwise above
        // the plot.
        let beside = !self.square && widest <= (width * 0.24).max(90.0) && width >= 420.0;
        let above = !self.square && !beside && !named.is_empty();
        let mut canvas = Canvas::new(width, height);
        let keys = if above { legend_rows(&named, width) } else { Vec::new() };
        let first_key = if self.y.label.is_empty() { 12.0 } else { 34.0 };
        let top = if self.y.label.is_empty() { 12.0 } else { 28.0 } + keys.len() as f64 * 20.0;
        let bottom = height - if self.x.label.is_empty() { 24.0 } else { 44.0 };
        let spacing = if self.square { 70.0 } else { 44.0 };
        let Some(y) = Fitted::new(&self.y, self.ys(), (bottom, top), spacing, Ends::Round) else {
            return nothing_to_show(width, "no values to show");
        };
        let left = y.label_width() + 12.0;
        let right = width - if beside && !named.is_empty() { widest + 12.0 } else { 14.0 };
        let Some(x) = Fitted::new(&self.x, self.xs(), (left, right), 70.0, Ends::Exact) else {
            return nothing_to_show(width, "no values to show");
        };
        let area = Area { left, top, right, bottom };
        area.frame(&mut canvas, (&x, &self.x.label), (&y, ""));
        canvas.text_within(width - 4.0, 2.0, 12.0, Anchor::Start, "axis", &self.y.label);
        for (row, keys) in keys.iter().enumerate() {
            for &(number, offset, label) in keys {
                let at = first_key + row as f64 * 20.0;
                key(&mut canvas, offset, at, number, self.series[number].dashed, label, width);
            }
        }
        if self.square {
            canvas.line((x.place(0.0), y.place(0.0)), (x.place(1.0), y.place(self.chance)), "rule");
        }
        for (value, label) in self.rules.iter().filter(|rule| self.y.holds(rule.0)) {
            let at = y.place(*value);
            canvas.line((left, at), (right, at), "rule");
            canvas.text_within(right - left, left + 4.0, at - 5.0, Anchor::Start, "rule-label", label);
        }
        for (number, (value, label)) in self.marks.iter().filter(|mark| self.x.holds(mark.0)).enumerate() {
            let at = x.place(*value);
            canvas.line((at, top), (at, bottom), "rule");
            let (anchor, at) =
                if at > (left + right) / 2.0 { (Anchor::End, at - 5.0) } else { (Anchor::Start, at + 5.0) };
            // One below the other, because marks may be close together.
            let down = top + 10.0 + 15.0 * number as f64;
            canvas.text_within((right - left) / 2.0, at, down, anchor, "rule-label", label);
        }
        let mut lines = Vec::new();
        for series in &self.series {
            let points: Vec<(f64, f64)> = series.points.iter().copied().filter(|p| self.drawable(p)).collect();
            lines.push(thinned(&points, width as usize / 2));
        }
        for (number, series) in self.series.iter().enumerate() {
            let band: Vec<_> =
                series.band.iter().filter(|b| b.0.is_finite() && b.1.is_finite() && b.2.is_finite()).collect();
            let stride = band.len().div_ceil(400).max(1);
            let band: Vec<_> = band.iter().step_by(stride).collect();
            let upper = band.iter().map(|b| (x.place(b.0), y.place(b.2)));
            let lower = band.iter().rev().map(|b| (x.place(b.0), y.place(b.1)));
            let mut outline = Path::through(upper.chain(lower));
            outline.close();
            canvas.path(&outline, &format!("band {}", series_class(number)));
        }
        for line in self.series.iter().zip(&lines).filter(|(series, _)| series.faint).map(|(_, line)| line) {
            canvas.path(&Path::through(line.iter().map(|p| (x.place(p.0), y.place(p.1)))), "line faint");
        }
        for (number, (series, line)) in self.series.iter().zip(&lines).enumerate().filter(|(_, (s, _))| !s.faint) {
            let class = series_class(number);
            let dash = if series.dashed { " dashed" } else { "" };
            canvas.path(
                &Path::through(line.iter().map(|p| (x.place(p.0), y.place(p.1)))),
                &format!("line {class}{dash}"),
            );
            // A single point has no line, so it gets a marker.
            if line.len() == 1 || (series.markers && line.len() <= MARKED) {
                for point in line {
                    canvas.dot(x.place(point.0), y.place(point.1), 2.8, class);
                }
            }
        }
        if beside {
            let ends = lines.iter().enumerate().filter_map(|(i, line)| line.last().map(|p| (i, y.place(p.1))));
            let wanted: Vec<(usize, f64)> = ends.filter(|(i, _)| named.iter().any(|n| n.0 == *i)).collect();
            for (number, at) in spread(wanted, 15.0, top, bottom) {
                let class = format!("name {}", series_class(number));
                canvas.text(right + 8.0, at + 4.0, Anchor::Start, &class, &self.series[number].label);
            }
        } else if self.square {
            for (row, &(number, label)) in named.iter().rev().enumerate() {
                let class = format!("name {}", series_class(number));
                let room = (right - left) * 0.8;
                canvas.text_within(room, right - 8.0, bottom - 12.0 - row as f64 * 17.0, Anchor::End, &class, label);
            }
        }
        self.probes(&mut canvas, area, &x, &y, &lines);
        canvas
    }

    fn summary(&self) -> String {
        let mut words = format!("Line plot of {} against {}.", self.y.label, self.x.label);
        for series in self.series.iter().filter(|series| !series.faint) {
            let mut points = series.points.iter().filter(|p| self.drawable(p));
            if let Some(first) = points.next() {
                let last = points.next_back().unwrap_or(first);
                words.push_str(&format!(
                    " {}: from {} at {} to {} at {}.",
                    series.label,
                    format::real(first.1),
                    format::real(first.0),
                    format::real(last.1),
                    format::real(last.0)
                ));
            }
        }
        words
    }

    fn notes(&self) -> Vec<String> {
        let all = || self.series.iter().flat_map(|s| s.points.iter());
        let mut notes = Vec::new();
        let skipped = all().filter(|p| !self.drawable(p)).count() as u64;
        if skipped > 0 {
            notes.push(format!("{} not finite: left out.", format::counted(skipped, "point is", "points are")));
        }
        for (axis, pick) in [(&self.x, 0), (&self.y, 1)] {
            let clipped = all()
                .filter(|p| self.drawable(p))
                .filter(|p| axis.scale == Scale::Log && if pick == 0 { p.0 <= 0.0 } else { p.1 <= 0.0 })
                .count() as u64;
            if clipped > 0 {
                let what = format::counted(clipped, "value of", "values of");
                notes.push(format!("{what} {} not above zero: drawn at the edge of the log axis.", axis.label));
            }
        }
        notes
    }

    fn data(&self) -> Option<Table> {
        let mut xs: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter()).map(|p| p.0).take(100_000).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        if xs.is_empty() || xs.len() > LISTED || self.square {
            return None;
        }
        let mut header = vec![self.x.label.clone()];
        header.extend(self.series.iter().map(|s| s.label.clone()));
        let rows = xs.iter().map(|&x| {
            let cells = self.series.iter().map(|s| {
                s.points.iter().find(|p| p.0.total_cmp(&x).is_eq()).map(|p| format::real(p.1)).unwrap_or_default()
            });
            std::iter::once(format::real(x)).chain(cells).collect()
        });
        Some(Table { header, rows: rows.collect(), highlight: None })
    }

    fn stretches(&self) -> bool {
        !self.square
    }
}

/// Breaks legend entries into rows: (series, offset from the left, label).
pub(super) fn legend_rows<'a>(named: &[(usize, &'a str)], width: f64) -> Vec<Vec<(usize, f64, &'a str)>> {
    let mut rows: Vec<Vec<(usize, f64, &str)>> = Vec::new();
    let mut offset = f64::INFINITY;
    for &(number, label) in named {
        // Names are bold, which is slightly wider.
        let needed = (text_width(label) * 1.1).min(width - 30.0) + 24.0;
        if offset + needed > width {
            rows.push(Vec::new());
            offset = 2.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((number, offset, label));
        }
        offset += needed + 14.0;
    }
    rows
}

/// One legend entry: a piece of the line, followed by its name.
fn key(canvas: &mut Canvas, x: f64, y: f64, number: usize, dashed: bool, label: &str, width: f64) {
    let class = series_class(number);
    let dash = if dashed { " dashed" } else { "" };
    canvas.line((x, y - 4.0), (x + 16.0, y - 4.0), &format!("line {class}{dash}"));
    canvas.text_within(width - 30.0, x + 22.0, y, Anchor::Start, &format!("name {class}"), label);
}

/// Moves labels apart until they are `distance` from each other. They keep their order and stay inside.
fn spread(mut wanted: Vec<(usize, f64)>, distance: f64, top: f64, bottom: f64) -> Vec<(usize, f64)> {
    wanted.sort_by(|a, b| a.1.total_cmp(&b.1));
    for _ in 0..50 {
        let mut moved = false;
        for i in 1..wanted.len() {
            let overlap = distance - (wanted[i].1 - wanted[i - 1].1);
            if overlap > 0.01 {
                wanted[i - 1].1 -= overlap / 2.0;
                wanted[i].1 += overlap / 2.0;
                moved = true;
            }
        }
        if let (Some(&(_, first)), Some(&(_, last))) = (wanted.first(), wanted.last()) {
            let shift = (top - first).max(0.0) - (last - bottom).max(0.0);
            wanted.iter_mut().for_each(|w| w.1 += shift);
        }
        if !moved {
            break;
        }
    }
    wanted
}

/// Keeps at most about twice `buckets` points: the lowest and the highest of each bucket, the first and the last. So no
/// peak is lost.
fn thinned(points: &[(f64, f64)], buckets: usize) -> Vec<(f64, f64)> {
    if points.len() <= 2 * buckets.max(1) {
        return points.to_vec();
    }
    let size = points.len().div_ceil(buckets.max(1));
    let mut kept = vec![points[0]];
    for bucket in points.chunks(size) {
        let mut low = 0;
        let mut high = 0;
        for (i, point) in bucket.iter().enumerate() {
            if point.1 < bucket[low].1 {
                low = i;
            }
            if point.1 > bucket[high].1 {
                high = i;
            }
        }
        kept.push(bucket[low.min(high)]);
        if low != high {
            kept.push(bucket[low.max(high)]);
        }
    }
    kept.push(points[points.len() - 1]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_the_extremes() {
        let mut points: Vec<(f64, f64)> = (0..1_000_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[123_456].1 = 1e6;
        points[654_321].1 = -1e6;
        let kept = thinned(&points, 300);
        assert!(kept.len() <= 602, "{}", kept.len());
        assert!(kept.contains(&points[123_456]) && kept.contains(&points[654_321]));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[999_999]));
    }

    #[test]
    fn labels_at_one_place_move_apart_in_order() {
        let placed = spread(vec![(0, 50.0), (1, 50.0), (2, 52.0)], 15.0, 0.0, 100.0);
        assert_eq!(placed.iter().map(|p| p.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(placed.windows(2).all(|pair| pair[1].1 - pair[0].1 > 14.0), "{placed:?}");
        let low = spread(vec![(0, 99.0), (1, 100.0)], 15.0, 0.0, 100.0);
        assert!(low[1].1 <= 100.01, "{low:?}");
    }

    #[test]
    fn what_cannot_be_drawn_is_told() {
        let points = vec![(1.0, 0.5), (2.0, f64::NAN), (3.0, 0.0), (4.0, f64::INFINITY)];
        let plot = LinePlot::new(Axis::linear("pass"), Axis::log("gap")).series(Series::new("gap", points));
        let notes = plot.notes();
        assert_eq!(notes[0], "2 points are not finite: left out.");
        assert_eq!(notes[1], "1 value of gap not above zero: drawn at the edge of the log axis.");
    }

    #[test]
    fn guesses_reach_the_corner_of_a_classifier_and_half_the_height_of_comparisons() {
        let curve = || vec![RocCurve { label: String::new(), points: vec![(0.0, 0.0), (1.0, 1.0)], area: 0.5 }];
        let (rows, pairs) = (LinePlot::roc(curve()), LinePlot::roc_of_comparisons(curve()));
        assert_eq!((rows.chance, pairs.chance), (1.0, 0.5));
        let drawn = |plot: LinePlot| plot.draw(460.0).finish("plot", "");
        let corner = drawn(LinePlot { chance: 0.5, ..rows.clone() });
        assert_ne!(drawn(rows), corner, "the line is drawn to where guesses end");
        assert!(drawn(pairs).contains("ties called decided"));
    }

    #[test]
    fn a_plot_without_drawable_points_says_so() {
        let empty = LinePlot::new(Axis::linear("x"), Axis::linear("y"));
        let hopeless = LinePlot::new(Axis::linear("x"), Axis::log("y")).series(Series::new("s", vec![(1.0, -1.0)]));
        for plot in [empty, hopeless] {
            assert!(plot.draw(540.0).finish("plot", "").contains("no values to show"));
        }
    }
}
