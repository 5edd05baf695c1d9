//! Axes: their labels, ranges, tick values and the mapping to pixels, and the frame (gridlines, tick labels, axis
//! titles) of all plots with two axes.

use super::svg::{Anchor, Canvas, text_width, typographic};
use crate::format;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios. Values that are not positive are drawn at the lower edge, and a note says so.
    Log,
}

/// What an axis shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity, and its unit if it has one.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
    /// The ends, if the data do not decide them.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis that fits the data.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, range: None }
    }

    /// A logarithmic axis that fits the data.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log, range: None }
    }

    /// The same axis with fixed ends. Ends that do not form a range are ignored.
    pub fn between(mut self, low: f64, high: f64) -> Axis {
        let valid = low.is_finite() && high.is_finite() && low < high && (self.scale == Scale::Linear || low > 0.0);
        self.range = valid.then_some((low, high));
        self
    }

    /// Whether a value can be drawn at its exact position.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }
}

/// An axis with its final range, ticks and pixels.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// The tick values and their labels, ascending.
    pub(super) ticks: Vec<(f64, String)>,
}

/// How a range extends beyond the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// It ends with the data.
    Exact,
    /// It extends to the next tick.
    Round,
}

// Differences of larger values would overflow.
const LARGEST: f64 = 1e300;

impl Fitted {
    /// Fits an axis to values. `pixels` are the positions of its low and high end, `spacing` is the smallest distance
    /// between two ticks in pixels. `None` if no value can be shown.
    pub(super) fn new(
        axis: &Axis,
        values: impl IntoIterator<Item = f64>,
        pixels: (f64, f64),
        spacing: f64,
        ends: Ends,
    ) -> Option<Fitted> {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        let mut whole = axis.range.is_none();
        for value in values.into_iter().filter(|&value| axis.holds(value)) {
            low = low.min(value);
            high = high.max(value);
            whole &= value.fract() == 0.0;
        }
        if low > high {
            return None;
        }
        if let Some(range) = axis.range {
            (low, high) = range;
        }
        let (low, high) = (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST));
        let room = ((pixels.1 - pixels.0).abs() / spacing).floor().clamp(2.0, 12.0);
        let ends = if axis.range.is_some() { Ends::Exact } else { ends };
        Some(match axis.scale {
            Scale::Linear => Fitted::linear(low, high, pixels, room, ends, whole),
            Scale::Log => Fitted::logarithmic(low, high, pixels, room, ends),
        })
    }

    fn linear(low: f64, high: f64, (from, to): (f64, f64), room: f64, ends: Ends, whole: bool) -> Fitted {
        let size = low.abs().max(high.abs());
        let (mut low, mut high) = (low, high);
        if high - low <= size * 1e-12 || high - low < 1e-290 {
            // With only one value, leave some space on both sides.
            let room = if whole { (size * 0.1).round().max(1.0) } else { (size * 0.1).max(1e-280) };
            (low, high) = (low - room, high + room);
        }
        let mut step = round_step((high - low) / room);
        if whole {
            step = step.max(1.0);
        }
        if ends == Ends::Round {
            low = (low / step + 1e-9).floor() * step;
            high = (high / step - 1e-9).ceil() * step;
        }
        let first = (low / step - 1e-9).ceil();
        let number = ((high / step + 1e-9).floor() - first).clamp(0.0, 40.0) as usize;
        let values: Vec<f64> = (0..=number).map(|i| (first + i as f64) * step).collect();
        let ticks = values.iter().map(|&value| (value, tick_label(value, step, low.abs().max(high.abs())))).collect();
        Fitted { log: false, low, high, from, to, ticks }
    }

    fn logarithmic(low: f64, high: f64, (from, to): (f64, f64), room: f64, ends: Ends) -> Fitted {
        let (mut low, mut high) = (low.max(f64::MIN_POSITIVE).log10(), high.max(f64::MIN_POSITIVE).log10());
        if ends == Ends::Round && (high - low >= 0.7 || high - low < 1e-9) {
            (low, high) = ((low + 1e-9).floor(), (high - 1e-9).ceil());
        }
        if high - low < 1e-9 {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let stride = ((high - low) / room).ceil().max(1.0) as i32;
        if ends == Ends::Round && stride > 1 {
            let wide = f64::from(stride);
            (low, high) = ((low / wide + 1e-9).floor() * wide, (high / wide - 1e-9).ceil() * wide);
        }
        let decades = high - low;
        // With fewer than two decades, there is space for steps between the powers.
        let steps: &[f64] = if decades * 3.0 <= room { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        for exponent in (low - 1e-9).floor() as i32..=(high + 1e-9).floor() as i32 {
            if exponent.rem_euclid(stride) != 0 {
                continue;
            }
            for &factor in steps {
                let place = f64::from(exponent) + factor.log10();
                if place >= low - 1e-9 && place <= high + 1e-9 {
                    let label = if steps.len() > 1 { between_powers(factor, exponent) } else { power_of_ten(exponent) };
                    ticks.push((10f64.powf(place), label));
                }
            }
        }
        if ticks.len() < 2 {
            ticks = [low, high].iter().map(|&end| (10f64.powf(end), format::significant(10f64.powf(end), 3))).collect();
        }
        Fitted { log: true, low, high, from, to, ticks }
    }

    /// The pixel of a value. A value outside the range is drawn at the edge.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if !self.log {
            value
        } else if value > 0.0 {
            value.log10()
        } else {
            self.low
        };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// The smallest and the largest value on the axis.
    pub(super) fn range(&self) -> (f64, f64) {
        if self.log { (10f64.powf(self.low), 10f64.powf(self.high)) } else { (self.low, self.high) }
    }

    /// The width of the tick labels to the left of a vertical axis.
    pub(super) fn label_width(&self) -> f64 {
        self.ticks.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max)
    }
}

/// The smallest number of the form 1, 2 or 5 times a power of ten that is at least `least`.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let ratio = least / power;
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| ratio <= factor * (1.0 + 1e-9)).unwrap_or(10.0);
    factor * power
}

fn tick_label(value: f64, step: f64, largest: f64) -> String {
    let finest = (step.log10() + 1e-9).floor();
    let decimals = (-finest).max(0.0) as usize;
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    if value == 0.0 && (largest >= 1e6 || decimals > 6) {
        return "0".into();
    }
    typographic(&if largest >= 1e6 || decimals > 6 {
        let digits = (value.abs().log10() + 1e-9).floor() - finest;
        format::scientific(value, digits.clamp(0.0, 12.0) as usize)
    } else {
        format::fixed(value, decimals)
    })
}

fn between_powers(factor: f64, exponent: i32) -> String {
    let value = factor * 10f64.powi(exponent);
    if (-4..=5).contains(&exponent) {
        format::fixed(value, (-exponent).max(0) as usize)
    } else {
        format!("{factor}e{exponent}")
    }
}

/// A power of ten in common notation: 0.1, 1, 10, and 10⁻³ beyond.
pub(super) fn power_of_ten(exponent: i32) -> String {
    match exponent {
        -1 => "0.1".into(),
        0 => "1".into(),
        1 => "10".into(),
        2 => "100".into(),
        _ => {
            let digits = exponent.to_string();
            let raised = digits.chars().map(|c| match c {
                '-' => '⁻',
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                // The other superscript digits are in order from U+2070.
                c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
            });
            format!("10{}", raised.collect::<String>())
        }
    }
}

/// The rectangle the data are drawn in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    /// The left edge.
    pub(super) left: f64,
    /// The upper edge.
    pub(super) top: f64,
    /// The right edge.
    pub(super) right: f64,
    /// The lower edge.
    pub(super) bottom: f64,
}

impl Area {
    /// Gridlines, tick labels and axis titles around the area. The title of the vertical axis is horizontal and above
    /// it, so that it is easy to read.
    pub(super) fn frame(&self, canvas: &mut Canvas, x: (&Fitted, &str), y: (&Fitted, &str)) {
        self.horizontal_lines(canvas, y.0);
        if !y.1.is_empty() {
            canvas.text_within(self.right - 2.0, 2.0, self.top - 12.0, Anchor::Start, "axis", y.1);
        }
        self.below(canvas, x.0, x.1);
    }

    /// Only the horizontal gridlines with their labels.
    pub(super) fn horizontal_lines(&self, canvas: &mut Canvas, y: &Fitted) {
        canvas.begin("grid");
        for (value, label) in &y.ticks {
            let at = y.place(*value);
            canvas.line((self.left, at), (self.right, at), "");
            canvas.text(self.left - 8.0, at + 4.0, Anchor::End, "", label);
        }
        canvas.end();
    }

    /// Only the horizontal axis.
    pub(super) fn below(&self, canvas: &mut Canvas, x: &Fitted, label: &str) {
        canvas.line((self.left, self.bottom), (self.right, self.bottom), "base");
        canvas.begin("grid");
        for (value, label) in &x.ticks {
            let at = x.place(*value);
            canvas.line((at, self.bottom), (at, self.bottom + 4.0), "");
            canvas.text(at, self.bottom + 17.0, Anchor::Middle, "", label);
        }
        canvas.end();
        if !label.is_empty() {
            let centre = (self.left + self.right) / 2.0;
            canvas.text_within(self.right - self.left, centre, self.bottom + 36.0, Anchor::Middle, "axis", label);
        }
    }
}

/// The usual height of a plot with a given width.
pub(super) fn usual_height(width: f64) -> f64 {
    if width < 420.0 { 250.0 } else { 300.0 + (width - 540.0).max(0.0) * 0.06 }
}

/// The replacement for a plot without data.
pub(super) fn nothing_to_show(width: f64, why: &str) -> Canvas {
    let mut canvas = Canvas::new(width, 120.0);
    canvas.rectangle(0.5, 0.5, width - 1.0, 119.0, "void");
    canvas.text(width / 2.0, 64.0, Anchor::Middle, "axis", why);
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], ends: Ends) -> Vec<String> {
        let fitted = Fitted::new(axis, values.iter().copied(), (0.0, 300.0), 60.0, ends).expect("values to fit");
        fitted.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_step_by_one_two_or_five() {
        let axis = Axis::linear("x");
        assert_eq!(labels(&axis, &[0.0, 1.0], Ends::Round), ["0", "1"]);
        assert_eq!(labels(&axis, &[0.0, 0.93], Ends::Round), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&axis, &[3.5, 21.0], Ends::Exact), ["5", "10", "15", "20"]);
        assert_eq!(labels(&axis, &[-2000.0, 8000.0], Ends::Round), ["−2,000", "0", "2,000", "4,000", "6,000", "8,000"]);
        assert_eq!(
            labels(&axis, &[4218.7001, 4218.7089], Ends::Exact),
            ["4,218.702", "4,218.704", "4,218.706", "4,218.708"]
        );
        assert_eq!(labels(&axis, &[0.0, 3.0e7], Ends::Round), ["0", "1e7", "2e7", "3e7"]);
    }

    #[test]
    fn whole_numbers_get_no_fractional_ticks() {
        assert_eq!(labels(&Axis::linear("pass"), &[1.0, 2.0, 3.0], Ends::Exact), ["1", "2", "3"]);
        assert_eq!(labels(&Axis::linear("pass"), &[6.0], Ends::Exact), ["5", "6", "7"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten_or_round_steps_between() {
        let axis = Axis::log("gap");
        assert_eq!(labels(&axis, &[3e-7, 0.2], Ends::Round), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "1"]);
        assert_eq!(labels(&axis, &[1.0, 10.0], Ends::Exact), ["1", "2", "5", "10"]);
        assert_eq!(labels(&axis, &[1e-3, 1e3], Ends::Exact), ["10⁻²", "1", "100"]);
        assert_eq!(labels(&axis, &[1e-3, 1e1], Ends::Exact), ["10⁻³", "10⁻²", "0.1", "1", "10"]);
    }

    #[test]
    fn strange_values_still_make_an_axis() {
        let extreme: [&[f64]; 7] = [
            &[f64::MAX, f64::MIN],
            &[0.0],
            &[1e-320, 2e-320],
            &[1e15, 1e15 + 1.0],
            &[-3.3],
            &[f64::NAN, 2.5],
            &[1e300, 1e300],
        ];
        for axis in [Axis::linear("x"), Axis::log("x")] {
            for values in extreme {
                for ends in [Ends::Exact, Ends::Round] {
                    let fitted = Fitted::new(&axis, values.iter().copied(), (300.0, 0.0), 45.0, ends);
                    let Some(fitted) = fitted else { continue };
                    assert!(fitted.ticks.len() <= 41, "{values:?}");
                    for &value in values {
                        let place = fitted.place(value);
                        assert!(value.is_nan() || (0.0..=300.0).contains(&place), "{value:e} at {place}");
                    }
                }
            }
        }
        assert!(Fitted::new(&Axis::log("x"), [0.0, -1.0], (0.0, 1.0), 50.0, Ends::Exact).is_none());
        assert!(Fitted::new(&Axis::linear("x"), [], (0.0, 1.0), 50.0, Ends::Exact).is_none());
    }

    #[test]
    fn powers_of_ten_use_raised_digits() {
        assert_eq!(power_of_ten(-12), "10⁻¹²");
        assert_eq!(power_of_ten(45), "10⁴⁵");
    }
}
