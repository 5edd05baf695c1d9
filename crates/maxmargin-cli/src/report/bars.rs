//! Horizontal bars with names, to the right for positive and to the left for negative values: the largest weights of
//! a model, the error of each class.

use super::axis::nothing_to_show;
use super::svg::{Anchor, Canvas, text_width, typographic};
use super::{Plot, Table};
use crate::format;

/// Named values as bars.
#[derive(Clone, Debug)]
pub struct Bars {
    label: String,
    noun: String,
    items: Vec<(String, f64)>,
    notes: Vec<String>,
}

impl Bars {
    /// All values in the given order; `label` is the name of the value.
    pub fn new(label: impl Into<String>, items: Vec<(String, f64)>) -> Bars {
        let mut bars = Bars { label: label.into(), noun: String::new(), items, notes: Vec::new() };
        let before = bars.items.len();
        bars.items.retain(|item| item.1.is_finite());
        let skipped = (before - bars.items.len()) as u64;
        if skipped > 0 {
            bars.notes.push(format!("{} not finite: left out.", format::counted(skipped, "value is", "values are")));
        }
        bars
    }

    /// The `limit` largest values by size, from the most positive to the most negative. `noun` is the name of the items
    /// ("features") in the note that gives their number.
    pub fn largest(label: impl Into<String>, noun: impl Into<String>, items: Vec<(String, f64)>, limit: usize) -> Bars {
        let mut bars = Bars::new(label, items);
        bars.noun = noun.into();
        let all = bars.items.len();
        bars.items.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
        bars.items.truncate(limit);
        bars.items.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        if bars.items.len() < all {
            let (shown, all) = (format::count(bars.items.len() as u64), format::count(all as u64));
            bars.notes.insert(
                0,
                format!("The {shown} of {all} {} with the largest {}, of either sign.", bars.noun, bars.label),
            );
        }
        bars
    }
}

impl Plot for Bars {
    fn draw(&self, width: f64) -> Canvas {
        const ROW: f64 = 22.0;
        if self.items.is_empty() {
            return nothing_to_show(width, "no values to show");
        }
        let longest = self.items.iter().map(|item| text_width(&item.0)).fold(0.0, f64::max);
        let names = longest.min(width * 0.36) + 10.0;
        let values: Vec<f64> = self.items.iter().map(|item| item.1).collect();
        let digits: Vec<String> = format::alike(&values, 3).iter().map(|text| typographic(text)).collect();
        let room = |negative: bool| {
            let side = digits.iter().zip(&values).filter(|(_, value)| (**value < 0.0) == negative);
            side.map(|(text, _)| text_width(text) + 8.0).fold(0.0, f64::max)
        };
        let clamped = |value: f64| value.clamp(-1e300, 1e300);
        let high = self.items.iter().map(|item| clamped(item.1)).fold(0.0, f64::max);
        let low = self.items.iter().map(|item| clamped(item.1)).fold(0.0, f64::min);
        let left = names + if low < 0.0 { room(true) } else { 0.0 };
        let right = width - if high > 0.0 || low == 0.0 { room(false) } else { 4.0 };
        let span = if high > low { high - low } else { 1.0 };
        let place = |value: f64| left + (clamped(value) - low) / span * (right - left);
        let top = 24.0;
        let bottom = top + self.items.len() as f64 * ROW;
        let mut canvas = Canvas::new(width, bottom + 6.0);
        canvas.text_within(width - 4.0, 2.0, 12.0, Anchor::Start, "axis", &self.label);
        let zero = place(0.0);
        for (i, (name, value)) in self.items.iter().enumerate() {
            let y = top + i as f64 * ROW;
            let end = place(*value);
            canvas.begin("bar");
            canvas.title(&format!("{name}\n{} {}", self.label, format::real(*value)));
            canvas.rectangle(0.0, y, width, ROW, "hit");
            canvas.text(names - 8.0, y + 15.0, Anchor::End, "", &super::svg::fit(name, names - 10.0));
            let class = if *value < 0.0 { "column negative" } else { "column positive" };
            canvas.rectangle(zero.min(end), y + 3.5, (end - zero).abs().max(0.5), ROW - 7.0, class);
            let (at, anchor) = if *value < 0.0 { (end - 5.0, Anchor::End) } else { (end + 5.0, Anchor::Start) };
            canvas.text(at, y + 15.0, anchor, "value", &digits[i]);
            canvas.end();
        }
        canvas.line((zero, top - 2.0), (zero, bottom + 2.0), "base");
        canvas
    }

    fn summary(&self) -> String {
        let mut words = format!("Bars of {} for {}", self.label, format::count(self.items.len() as u64));
        words.push_str(if self.noun.is_empty() { " names." } else { " " });
        if !self.noun.is_empty() {
            words.push_str(&format!("{}.", self.noun));
        }
        if let (Some(first), Some(last)) = (self.items.first(), self.items.last()) {
            let item = |item: &(String, f64)| format!("{} {}", format::shortened(&item.0, 60), format::real(item.1));
            words.push_str(&format!(" First {}, last {}.", item(first), item(last)));
        }
        words
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn data(&self) -> Option<Table> {
        let header = vec!["name".into(), self.label.clone()];
        let rows: Vec<_> = self.items.iter().map(|item| vec![item.0.clone(), format::real(item.1)]).collect();
        (!rows.is_empty()).then_some(Table { header, rows, highlight: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_chosen_by_size_and_shown_by_value() {
        let items = vec![("a".into(), 0.1), ("b".into(), -3.0), ("c".into(), 2.0), ("d".into(), f64::NAN)];
        let bars = Bars::largest("weight", "features", items, 2);
        assert_eq!(bars.items, [("c".into(), 2.0), ("b".into(), -3.0)]);
        assert_eq!(bars.notes[0], "The 2 of 3 features with the largest weight, of either sign.");
        assert_eq!(bars.notes[1], "1 value is not finite: left out.");
    }

    #[test]
    fn bars_of_one_sign_of_nothing_and_of_extremes_draw() {
        for values in [vec![], vec![0.0, 0.0], vec![-1.0], vec![5.0, 5.0], vec![f64::MAX, f64::MIN]] {
            let items = values.iter().map(|&v| ("<b>&\"".to_string().repeat(50), v)).collect();
            let drawn = Bars::new("weight", items).draw(340.0).finish("plot", "");
            assert!(!drawn.contains("<b>") && !drawn.contains("NaN"), "{drawn}");
        }
    }
}
