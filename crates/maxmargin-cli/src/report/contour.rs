//! Level curves of a score over two features, with the comparisons used for training or evaluation.
//!
//! The score is given on a grid, and marching squares finds the curves. A curve crosses an edge of a cell if its two
//! corners are on different sides of the level; the crossing is found by linear interpolation. Pieces in neighbouring
//! cells are joined to curves. If the corners of a cell alternate, the mean of the four decides.
//!
//! A decided pair is an arrow towards the better item, a tie a plain segment.

use super::Plot;
use super::axis::{Area, Axis, Ends, Fitted, nothing_to_show, round_step};
use super::svg::{Anchor, Canvas, Path, text_width, typographic};
use crate::format;
use std::collections::BTreeMap;

/// The largest number of pairs drawn. More would make the drawing unreadable.
const MOST_SEGMENTS: usize = 400;
/// The largest number of curves drawn.
const MOST_LEVELS: f64 = 24.0;
/// Fewer curves than this do not show the shape.
const FEWEST_LEVELS: f64 = 3.0;

/// A score on the points of a grid.
#[derive(Clone, Debug)]
pub struct Surface {
    /// The positions of the columns along the first feature, ascending.
    pub x: Vec<f64>,
    /// The positions of the rows along the second feature, ascending.
    pub y: Vec<f64>,
    /// The score at each point, row by row.
    pub values: Vec<f64>,
}

/// A pair of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// The worse point, or one of two tied points.
    pub from: (f64, f64),
    /// The better point, or the other tied point.
    pub to: (f64, f64),
    /// Whether one is better.
    pub decided: bool,
    /// Whether the prediction of the model differs.
    pub wrong: bool,
}

/// Level curves with pairs of points on top.
#[derive(Clone, Debug)]
pub struct Contour {
    x: String,
    y: String,
    surface: Surface,
    segments: Vec<Segment>,
    threshold: f64,
}

/// How the levels were chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// The distance between curves is this many thresholds.
    Thresholds(f64),
    /// A round number, used if the threshold would give too few curves.
    Round(f64),
}

impl Contour {
    /// Level curves over the features with the given names. Neighbouring curves differ by the threshold, or by a
    /// multiple if there would be too many.
    pub fn new(features: (String, String), surface: Surface, segments: Vec<Segment>, threshold: f64) -> Contour {
        Contour { x: features.0, y: features.1, surface, segments, threshold }
    }

    /// The lowest and the highest score, if all scores are numbers and they differ.
    fn range(&self) -> Option<(f64, f64)> {
        let values = &self.surface.values;
        let whole = values.len() == self.surface.x.len() * self.surface.y.len();
        let (low, high) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
        (whole && values.iter().all(|v| v.is_finite()) && (high - low).is_finite() && high > low).then_some((low, high))
    }

    fn step(&self, low: f64, high: f64) -> Step {
        let thresholds = (high - low) / self.threshold;
        if !(self.threshold > 0.0 && thresholds >= FEWEST_LEVELS && thresholds.is_finite()) {
            return Step::Round(round_step((high - low) / 12.0));
        }
        let many = (thresholds / MOST_LEVELS).max(1.0);
        Step::Thresholds(if many > 1.0 { round_step(many) } else { 1.0 })
    }

    /// The levels, ascending.
    fn levels(&self) -> Vec<f64> {
        let Some((low, high)) = self.range() else { return Vec::new() };
        let step = match self.step(low, high) {
            Step::Thresholds(times) => times * self.threshold,
            Step::Round(step) => step,
        };
        let first = (low / step).floor();
        (1..=(2.0 * MOST_LEVELS) as u32)
            .map(|number| (first + f64::from(number)) * step)
            .filter(|level| *level > low && *level < high)
            .collect()
    }

    /// The pairs to draw: all, or as many as allowed, evenly from first to last.
    fn drawn(&self) -> impl Iterator<Item = &Segment> {
        let stride = self.segments.len().div_ceil(MOST_SEGMENTS).max(1);
        self.segments.iter().step_by(stride)
    }

    fn legend(&self, canvas: &mut Canvas, width: f64, levels: &[f64]) {
        let ends = [levels.first(), levels.last()].map(|end| end.map_or(String::new(), |&end| short(end)));
        let scale = width - text_width(&ends[1]) - 74.0;
        canvas.text(scale - 6.0, 12.0, Anchor::End, "tick", &ends[0]);
        for step in 0..6 {
            let at = scale + f64::from(step) * 10.0;
            let line = Path::through([(at, 8.0), (at + 9.0, 8.0)]);
            canvas.shaded_path(&line, "level", strength(f64::from(step) / 5.0));
        }
        canvas.text(scale + 66.0, 12.0, Anchor::Start, "tick", &ends[1]);
        let mut at = 2.0;
        let keys: [(&str, bool, &str); 3] =
            [("better", true, "pair"), ("tie", false, "pair tied"), ("the model is wrong", true, "pair wrong")];
        for (label, arrow, class) in keys {
            let mut path = Path::new();
            segment_path(&mut path, (at, 32.0), (at + 18.0, 32.0), arrow);
            canvas.path(&path, class);
            canvas.text(at + 24.0, 36.0, Anchor::Start, "tick", label);
            at += 40.0 + text_width(label);
        }
    }
}

/// A number for a label.
fn short(value: f64) -> String {
    typographic(&format::significant(value, 3))
}

/// The opacity of a level, by its position from the lowest (0) to the highest (1).
fn strength(place: f64) -> f64 {
    0.3 + 0.7 * place
}

/// A segment in pixels, with a head at its end if it is an arrow.
fn segment_path(path: &mut Path, from: (f64, f64), to: (f64, f64), arrow: bool) {
    path.jump(from.0, from.1);
    path.to(to.0, to.1);
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if !arrow || length < 0.5 {
        return;
    }
    let head = (length * 0.6).clamp(2.5, 5.0) / length;
    let side = |turn: f64| (to.0 - head * (dx - turn * dy), to.1 - head * (dy + turn * dx));
    let (one, other) = (side(0.55), side(-0.55));
    path.jump(one.0, one.1);
    path.to(to.0, to.1);
    path.to(other.0, other.1);
}

/// A curve as positions on the grid, in units of a cell.
type Curve = Vec<(f64, f64)>;

/// The curves of one level on a grid of `columns` times `rows` points.
fn curves(values: &[f64], columns: usize, rows: usize, level: f64) -> Vec<Curve> {
    // An edge is numbered by its first point and its direction: 2 · point if it goes right, 2 · point + 1 if it goes
    // down.
    let mut neighbours: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut join = |one: usize, other: usize| {
        neighbours.entry(one).or_default().push(other);
        neighbours.entry(other).or_default().push(one);
    };
    for row in 0..rows.saturating_sub(1) {
        for column in 0..columns.saturating_sub(1) {
            let corner = row * columns + column;
            let corners = [corner, corner + 1, corner + columns + 1, corner + columns];
            let above = corners.map(|point| values[point] > level);
            // Edges from each corner to the next one around the cell.
            let edges = [2 * corner, 2 * (corner + 1) + 1, 2 * (corner + columns), 2 * corner + 1];
            let crossed: Vec<usize> =
                (0..4).filter(|&at| above[at] != above[(at + 1) % 4]).map(|at| edges[at]).collect();
            match crossed[..] {
                [one, other] => join(one, other),
                [top, right, bottom, left] => {
                    let centre = corners.iter().map(|&point| values[point] / 4.0).sum::<f64>() > level;
                    // The corner on the same side as the centre is not cut off.
                    if centre == above[0] {
                        join(top, right);
                        join(bottom, left);
                    } else {
                        join(top, left);
                        join(right, bottom);
                    }
                }
                _ => {}
            }
        }
    }
    let place = |edge: usize| {
        let point = edge / 2;
        let other = if edge.is_multiple_of(2) { point + 1 } else { point + columns };
        let share = ((level - values[point]) / (values[other] - values[point])).clamp(0.0, 1.0);
        let (x, y) = ((point % columns) as f64, (point / columns) as f64);
        if edge.is_multiple_of(2) { (x + share, y) } else { (x, y + share) }
    };
    let mut found = Vec::new();
    // Curves that end at the border are followed from an end; the remaining curves are closed.
    let ends: Vec<usize> = neighbours.iter().filter(|(_, next)| next.len() == 1).map(|(edge, _)| *edge).collect();
    let all: Vec<usize> = neighbours.keys().copied().collect();
    for start in ends.into_iter().chain(all) {
        let mut curve = vec![place(start)];
        let mut at = start;
        while let Some(next) = neighbours.get_mut(&at).and_then(Vec::pop) {
            if let Some(back) = neighbours.get_mut(&next) {
                back.retain(|edge| *edge != at);
            }
            curve.push(place(next));
            at = next;
        }
        if curve.len() > 1 {
            found.push(curve);
        }
    }
    found
}

impl Plot for Contour {
    fn draw(&self, width: f64) -> Canvas {
        let width = width.min(460.0);
        let height = width + 56.0;
        let levels = self.levels();
        let (Some(_), Some(&left_end), Some(&right_end), Some(&low_end), Some(&high_end)) = (
            self.range(),
            self.surface.x.first(),
            self.surface.x.last(),
            self.surface.y.first(),
            self.surface.y.last(),
        ) else {
            return nothing_to_show(width, "the score is the same everywhere");
        };
        let (top, bottom) = (76.0, height - 44.0);
        let axis_x = Axis::linear(&self.x).between(left_end, right_end);
        let axis_y = Axis::linear(&self.y).between(low_end, high_end);
        let Some(y) = Fitted::new(&axis_y, [low_end, high_end], (bottom, top), 60.0, Ends::Exact) else {
            return nothing_to_show(width, "no values to show");
        };
        let (left, right) = (y.label_width() + 12.0, width - 14.0);
        let Some(x) = Fitted::new(&axis_x, [left_end, right_end], (left, right), 70.0, Ends::Exact) else {
            return nothing_to_show(width, "no values to show");
        };
        let mut canvas = Canvas::new(width, height);
        let area = Area { left, top, right, bottom };
        area.frame(&mut canvas, (&x, &self.x), (&y, ""));
        canvas.text_within(width - 4.0, 2.0, top - 14.0, Anchor::Start, "axis", &self.y);
        canvas.text(2.0, 12.0, Anchor::Start, "axis", "score");
        self.legend(&mut canvas, width, &levels);
        let (columns, rows) = (self.surface.x.len(), self.surface.y.len());
        let across = |at: f64| left + (right - left) * at / (columns - 1).max(1) as f64;
        let upwards = |at: f64| bottom - (bottom - top) * at / (rows - 1).max(1) as f64;
        let last = (levels.len().max(2) - 1) as f64;
        for (number, &level) in levels.iter().enumerate() {
            let mut path = Path::new();
            for curve in curves(&self.surface.values, columns, rows, level) {
                for (at, (column, row)) in curve.into_iter().enumerate() {
                    let (x, y) = (across(column), upwards(row));
                    if at == 0 { path.jump(x, y) } else { path.to(x, y) }
                }
            }
            canvas.begin("levels");
            canvas.title(&format!("score {}", short(level)));
            canvas.shaded_path(&path, "level", strength(number as f64 / last));
            canvas.end();
        }
        for (class, decided, wrong) in [
            ("pair tied", false, false),
            ("pair", true, false),
            ("pair wrong", false, true),
            ("pair wrong", true, true),
        ] {
            let mut path = Path::new();
            for segment in self.drawn().filter(|segment| segment.decided == decided && segment.wrong == wrong) {
                let at = |point: (f64, f64)| (x.place(point.0), y.place(point.1));
                segment_path(&mut path, at(segment.from), at(segment.to), decided);
            }
            canvas.path(&path, class);
        }
        canvas
    }

    fn summary(&self) -> String {
        let Some((low, high)) = self.range() else {
            return "Level curves of a score that is the same everywhere.".into();
        };
        let wrong = self.segments.iter().filter(|segment| segment.wrong).count() as u64;
        format!(
            "Level curves of the score over {} and {}, from {} to {}, with {}, of which the model predicts {} wrongly.",
            self.x,
            self.y,
            short(low),
            short(high),
            format::counted(self.segments.len() as u64, "pair", "pairs"),
            format::count(wrong),
        )
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((low, high)) = self.range() {
            notes.push(match self.step(low, high) {
                Step::Thresholds(1.0) => {
                    format!("From curve to curve the score rises by the threshold, {}.", short(self.threshold))
                }
                Step::Thresholds(times) => format!(
                    "From curve to curve the score rises by {} times the threshold of {}.",
                    short(times),
                    short(self.threshold)
                ),
                Step::Round(step) => format!("From curve to curve the score rises by {}.", short(step)),
            });
        }
        let drawn = self.drawn().count();
        if drawn < self.segments.len() {
            let of = format::counted(self.segments.len() as u64, "pair", "pairs");
            notes.push(format!("{} of {of} are drawn.", format::count(drawn as u64)));
        }
        notes
    }

    fn stretches(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(count: usize, score: impl Fn(f64, f64) -> f64) -> Surface {
        let places: Vec<f64> = (0..count).map(|at| -3.0 + 6.0 * at as f64 / (count - 1) as f64).collect();
        let values =
            places.iter().flat_map(|&y| places.iter().map(move |&x| (x, y))).map(|(x, y)| score(x, y)).collect();
        Surface { x: places.clone(), y: places, values }
    }

    fn contour(score: impl Fn(f64, f64) -> f64, threshold: f64) -> Contour {
        Contour::new(("a".into(), "b".into()), grid(61, score), Vec::new(), threshold)
    }

    #[test]
    fn the_level_of_a_circle_is_one_closed_curve_at_its_radius() {
        let surface = grid(61, |x, y| x * x + y * y);
        let found = curves(&surface.values, 61, 61, 4.0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].first(), found[0].last());
        for (column, row) in &found[0] {
            let (x, y) = (-3.0 + 0.1 * column, -3.0 + 0.1 * row);
            assert!((x.hypot(y) - 2.0).abs() < 0.01, "{x} {y}");
        }
    }

    #[test]
    fn the_level_of_a_plane_is_a_straight_line_from_border_to_border() {
        let surface = grid(13, |x, y| x + 2.0 * y);
        let found = curves(&surface.values, 13, 13, 0.3);
        assert_eq!(found.len(), 1);
        for (column, row) in &found[0] {
            assert!((-3.0 + 0.5 * column + 2.0 * (-3.0 + 0.5 * row) - 0.3).abs() < 1e-9);
        }
        let at_border = |place: &(f64, f64)| [place.0, place.1].iter().any(|at| *at == 0.0 || *at == 12.0);
        assert!(at_border(&found[0][0]) && at_border(&found[0][found[0].len() - 1]));
    }

    #[test]
    fn every_edge_that_a_level_crosses_is_on_exactly_one_curve() {
        // An uneven surface with saddles. Each crossing is a point of the curves, and closed curves repeat their first
        // point.
        let surface = grid(9, |x, y| (7.0 * x + 3.0 * y * y).sin() + (5.0 * y - x * x).cos());
        let values = &surface.values;
        for level in [-1.0, -0.3, 0.0, 0.4, 1.1] {
            let differs = |one: usize, other: usize| (values[one] > level) != (values[other] > level);
            let across = (0..81).filter(|point| point % 9 < 8 && differs(*point, point + 1)).count();
            let down = (0..72).filter(|point| differs(*point, point + 9)).count();
            let found = curves(values, 9, 9, level);
            let points: usize =
                found.iter().map(|curve| curve.len() - usize::from(curve.first() == curve.last())).sum();
            assert_eq!(points, across + down, "at {level}");
        }
    }

    #[test]
    fn curves_are_a_threshold_apart_unless_there_would_be_too_many_or_too_few() {
        let plane = |x: f64, _: f64| x;
        let levels = contour(plane, 1.0).levels();
        assert_eq!(levels, [-2.0, -1.0, 0.0, 1.0, 2.0]);
        assert!(contour(plane, 1.0).notes()[0].contains("by the threshold, 1"));
        let many = contour(plane, 0.01);
        assert!(many.levels().len() <= 24, "{}", many.levels().len());
        assert!(many.notes()[0].contains("times the threshold of 0.01"), "{:?}", many.notes());
        for threshold in [0.0, 5.0] {
            let levels = contour(plane, threshold).levels();
            assert!((8..=13).contains(&levels.len()), "{levels:?}");
        }
    }

    #[test]
    fn a_score_without_shape_and_numbers_that_are_none_are_no_trouble() {
        for score in [1.0, f64::NAN, f64::INFINITY] {
            let plot = contour(|_, _| score, 1.0);
            assert!(plot.draw(340.0).finish("plot", "x").contains("the same everywhere"));
            assert!(plot.levels().is_empty() && plot.notes().is_empty());
        }
    }

    #[test]
    fn many_pairs_are_thinned_and_that_is_said() {
        let segment = Segment { from: (0.0, 0.0), to: (1.0, 1.0), decided: true, wrong: true };
        let plot = Contour { segments: vec![segment; 100_000], ..contour(|x, _| x, 1.0) };
        assert!(plot.drawn().count() <= MOST_SEGMENTS);
        assert_eq!(plot.notes()[1], "400 of 100,000 pairs are drawn.");
        assert!(
            plot.summary().contains("100,000 pairs, of which the model predicts 100,000 wrongly"),
            "{}",
            plot.summary()
        );
    }
}
