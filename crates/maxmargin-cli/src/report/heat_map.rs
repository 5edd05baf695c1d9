//! A grid of values over two settings, darker for larger values. The value, or a word for it, is printed in each cell if
//! it fits, and the best cell is outlined.

use super::axis::nothing_to_show;
use super::svg::{Anchor, Canvas, text_width, typographic};
use super::{Plot, Table};
use crate::format;

/// Which cell to highlight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The largest value.
    Highest,
    /// The smallest value.
    Lowest,
}

/// A grid of values.
#[derive(Clone, Debug)]
pub struct HeatMap {
    value: String,
    columns: (String, Vec<String>),
    rows: (String, Vec<String>),
    values: Vec<Vec<f64>>,
    best: Option<Best>,
    /// What the words of the cells are, and the words.
    words: Option<(String, Vec<Vec<String>>)>,
    told: String,
}

impl HeatMap {
    /// A grid: the name of the value, then the columns and the rows, each as the name of the setting and its values.
    /// `values` holds one list per row. A cell that is missing or not finite is empty.
    pub fn new(
        value: impl Into<String>,
        columns: (&str, Vec<String>),
        rows: (&str, Vec<String>),
        values: Vec<Vec<f64>>,
    ) -> HeatMap {
        HeatMap {
            value: value.into(),
            columns: (columns.0.into(), columns.1),
            rows: (rows.0.into(), rows.1),
            values,
            best: None,
            words: None,
            told: String::new(),
        }
    }

    /// Prints words instead of values. Cells without a value are then left blank, because they have nothing to say.
    pub fn worded(mut self, what: impl Into<String>, words: Vec<Vec<String>>) -> HeatMap {
        self.words = Some((what.into(), words));
        self
    }

    /// Adds a sentence for readers who cannot see the drawing.
    pub fn told(mut self, sentence: impl Into<String>) -> HeatMap {
        self.told = sentence.into();
        self
    }

    /// The word of a cell, if cells have words.
    fn word(&self, row: usize, column: usize) -> Option<&str> {
        self.words.as_ref()?.1.get(row)?.get(column).map(String::as_str)
    }

    /// Outlines the best cell.
    pub fn best(mut self, best: Best) -> HeatMap {
        self.best = Some(best);
        self
    }

    fn cell(&self, row: usize, column: usize) -> Option<f64> {
        self.values.get(row).and_then(|r| r.get(column)).copied().filter(|v| v.is_finite())
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let columns = self.columns.1.len();
        let places = (0..self.rows.1.len()).flat_map(move |row| (0..columns).map(move |column| (row, column)));
        places.filter_map(|(row, column)| self.cell(row, column).map(|value| (row, column, value)))
    }

    fn best_cell(&self) -> Option<(usize, usize, f64)> {
        // The first of several equal cells is the best.
        match self.best? {
            Best::Highest => self.cells().reduce(|a, b| if b.2 > a.2 { b } else { a }),
            Best::Lowest => self.cells().reduce(|a, b| if b.2 < a.2 { b } else { a }),
        }
    }

    fn strength(&self, value: f64, low: f64, high: f64) -> f64 {
        // Halves are used, because the difference of extreme values could overflow.
        let span = high / 2.0 - low / 2.0;
        if span > 0.0 { 0.06 + 0.94 * ((value / 2.0 - low / 2.0) / span) } else { 0.5 }
    }
}

impl Plot for HeatMap {
    fn draw(&self, width: f64) -> Canvas {
        let low = self.cells().map(|c| c.2).fold(f64::INFINITY, f64::min);
        let high = self.cells().map(|c| c.2).fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return nothing_to_show(width, "no values to show");
        }
        let longest = self.rows.1.iter().map(|name| text_width(name)).fold(text_width(&self.rows.0), f64::max);
        let left = longest.min(width * 0.3) + 10.0;
        let cell = ((width - left - 2.0) / self.columns.1.len() as f64).min(110.0);
        let tall = (cell * 0.62).clamp(14.0, 34.0);
        let (top, columns, rows) = (50.0, self.columns.1.len() as f64, self.rows.1.len() as f64);
        let bottom = top + rows * tall;
        let mut canvas = Canvas::new(width, bottom + 42.0);
        canvas.text_within(width * 0.6, 2.0, 12.0, Anchor::Start, "axis", &self.value);
        let ends = [low, high].map(|end| typographic(&format::significant(end, 3)));
        let scale = width - text_width(&ends[1]) - 66.0;
        canvas.text(scale - 6.0, 12.0, Anchor::End, "tick", &ends[0]);
        for step in 0..5 {
            let strength = 0.06 + 0.94 * f64::from(step) / 4.0;
            canvas.shaded(scale + f64::from(step) * 11.0, 3.0, 11.0, 10.0, "heat", strength);
        }
        canvas.text(scale + 61.0, 12.0, Anchor::Start, "tick", &ends[1]);
        canvas.text_within(left - 4.0, left - 8.0, top - 10.0, Anchor::End, "axis", &self.rows.0);
        for (row, name) in self.rows.1.iter().enumerate() {
            let y = top + (row as f64 + 0.5) * tall + 4.0;
            canvas.text_within(left - 10.0, left - 8.0, y, Anchor::End, "tick", name);
        }
        let widest = self.columns.1.iter().map(|name| text_width(name)).fold(0.0, f64::max) + 8.0;
        let stride = (widest.min(cell * 4.0) / cell).ceil().max(1.0) as usize;
        for (column, name) in self.columns.1.iter().enumerate().step_by(stride) {
            let x = left + (column as f64 + 0.5) * cell;
            canvas.text_within(cell * stride as f64 - 4.0, x, bottom + 16.0, Anchor::Middle, "tick", name);
        }
        let centre = left + columns * cell / 2.0;
        canvas.text_within(columns * cell, centre, bottom + 36.0, Anchor::Middle, "axis", &self.columns.0);
        let values: Vec<f64> = self.cells().map(|c| c.2).collect();
        let words: Vec<String> = match &self.words {
            None => format::alike(&values, 3).iter().map(|text| typographic(text)).collect(),
            Some(_) => self.cells().map(|(row, column, _)| self.word(row, column).unwrap_or("").to_string()).collect(),
        };
        let fits = words.iter().all(|text| text_width(text) < cell - 4.0);
        let mut words = words.into_iter();
        for row in 0..self.rows.1.len() {
            for column in 0..self.columns.1.len() {
                let (x, y) = (left + column as f64 * cell, top + row as f64 * tall);
                if self.words.is_some() && self.cell(row, column).is_none() {
                    continue;
                }
                let place =
                    format!("{} {}, {} {}", self.columns.0, self.columns.1[column], self.rows.0, self.rows.1[row]);
                canvas.begin("cell");
                match self.cell(row, column) {
                    Some(value) => {
                        let strength = self.strength(value, low, high);
                        let word = self.word(row, column).zip(self.words.as_ref());
                        let word = word.map_or(String::new(), |(word, (what, _))| format!("\n{what} {word}"));
                        canvas.title(&format!("{place}\n{} {}{word}", self.value, format::real(value)));
                        canvas.shaded(x + 1.0, y + 1.0, cell - 2.0, tall - 2.0, "heat", strength);
                        if let Some(text) = words.next().filter(|_| fits) {
                            // The style sheet ensures contrast: the text colour changes at a higher strength in light mode
                            // than in dark mode.
                            let class = match strength {
                                s if s > 0.72 => "on",
                                s if s > 0.6 => "mid",
                                _ => "",
                            };
                            canvas.text(x + cell / 2.0, y + tall / 2.0 + 4.0, Anchor::Middle, class, &text);
                        }
                    }
                    None => {
                        canvas.title(&format!("{place}\nno value"));
                        canvas.rectangle(x + 1.5, y + 1.5, cell - 3.0, tall - 3.0, "void");
                    }
                }
                canvas.end();
            }
        }
        if let Some((row, column, _)) = self.best_cell() {
            let (x, y) = (left + column as f64 * cell, top + row as f64 * tall);
            canvas.rectangle(x, y, cell, tall, "best");
        }
        canvas
    }

    fn summary(&self) -> String {
        let mut words = format!("Grid of {} over {} and {}.", self.value, self.columns.0, self.rows.0);
        if let Some((row, column, value)) = self.best_cell() {
            words.push_str(&format!(
                " Best {} at {} {}, {} {}.",
                format::real(value),
                self.columns.0,
                self.columns.1[column],
                self.rows.0,
                self.rows.1[row]
            ));
        }
        if !self.told.is_empty() {
            words.push(' ');
            words.push_str(&self.told);
        }
        words
    }

    fn notes(&self) -> Vec<String> {
        let missing = (self.rows.1.len() * self.columns.1.len() - self.cells().count()) as u64;
        if missing == 0 || self.words.is_some() {
            return Vec::new();
        }
        vec![format!("{} without a value.", format::counted(missing, "cell", "cells"))]
    }

    fn data(&self) -> Option<Table> {
        let header =
            std::iter::once(format!("{} \\ {}", self.rows.0, self.columns.0)).chain(self.columns.1.iter().cloned());
        let rows = self.rows.1.iter().enumerate().map(|(row, name)| {
            let cells =
                (0..self.columns.1.len()).map(|column| match (self.cell(row, column), self.word(row, column)) {
                    (None, None) => "–".to_string(),
                    (_, Some(word)) => word.to_string(),
                    (Some(value), None) => format::real(value),
                });
            std::iter::once(name.clone()).chain(cells).collect()
        });
        let table = Table { header: header.collect(), rows: rows.collect(), highlight: None };
        (self.columns.1.len() <= 20 && self.rows.1.len() <= 40).then_some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(number: usize) -> Vec<String> {
        (0..number).map(|i| i.to_string()).collect()
    }

    #[test]
    fn the_best_cell_is_the_first_among_equals_and_never_empty() {
        let values = vec![vec![f64::NAN, 2.0], vec![2.0, 1.0]];
        let map = HeatMap::new("ndcg", ("C", names(2)), ("gamma", names(2)), values);
        assert_eq!(map.clone().best(Best::Highest).best_cell(), Some((0, 1, 2.0)));
        assert_eq!(map.clone().best(Best::Lowest).best_cell(), Some((1, 1, 1.0)));
        assert_eq!(map.notes(), ["1 cell without a value."]);
    }

    #[test]
    fn words_stand_for_values_and_cells_without_one_are_blank() {
        let values = vec![vec![f64::NAN, 0.25], vec![0.5, 1.0]];
        let words = vec![vec!["0".to_string(), "one".to_string()], vec!["two".to_string(), "many".to_string()]];
        let map = HeatMap::new("share", ("predicted", names(2)), ("true", names(2)), values);
        let map = map.worded("rows", words).told("Mostly right.");
        assert!(map.notes().is_empty() && map.summary().ends_with("Mostly right."));
        let drawn = map.draw(540.0).finish("plot", "");
        assert_eq!(drawn.matches("class=\"cell\"").count(), 3);
        assert!(drawn.contains("predicted 1, true 0\nshare 0.25\nrows one") && drawn.contains(">many<"), "{drawn}");
        assert_eq!(map.data().expect("small").rows[0], ["0", "0", "one"]);
    }

    #[test]
    fn ragged_empty_and_extreme_grids_draw() {
        let grids = [vec![], vec![vec![]], vec![vec![1.0]], vec![vec![f64::MAX, f64::MIN], vec![0.0]]];
        for values in grids {
            for (columns, rows) in [(0, 0), (2, 2), (30, 30)] {
                let map = HeatMap::new("x", ("a", names(columns)), ("b", names(rows)), values.clone());
                let drawn = map.best(Best::Highest).draw(340.0).finish("plot", "");
                assert!(!drawn.contains("NaN"), "{drawn}");
            }
        }
    }
}
