//! Which row to take: the best mean, or the most regularised one that is as good but for chance.

use super::cross_validation::{Row, Tuned};
use crate::settings::{Regularisation, Settings};

/// An end of the values that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The smallest C.
    Lowest,
    /// The largest C.
    Highest,
}

/// A value of the deciding metric turned so that more is better.
fn goodness(row: &Row, higher_is_better: bool) -> f64 {
    row.metrics.first().map_or(0.0, |summary| if higher_is_better { summary.mean } else { -summary.mean })
}

/// Whether a row is to be preferred: by the mean of the first metric, and by the smaller C where that is equal.
pub(super) fn is_better(row: &Row, than: &Row, higher_is_better: bool) -> bool {
    let (one, other) = (goodness(row, higher_is_better), goodness(than, higher_is_better));
    one > other || (one == other && row.c < than.c)
}

/// Whether two settings are the same but for C.
pub(super) fn same_path(a: &Settings, b: &Settings) -> bool {
    let bare = |settings: &Settings| Settings { regularisation: Regularisation::C(1.0), ..settings.clone() };
    bare(a) == bare(b)
}

impl Tuned {
    /// The smallest C on the path of the best row whose mean lies within one standard error of the best: the simplest
    /// model that the folds cannot tell from the best one (Breiman et al., Classification and Regression Trees, 1984).
    pub fn one_standard_error(&self) -> usize {
        let best = &self.rows[self.best];
        let higher = self.higher_is_better();
        let least = goodness(best, higher) - best.metrics.first().map_or(0.0, |summary| summary.standard_error);
        let good = |row: &Row| same_path(&row.settings, &best.settings) && goodness(row, higher) >= least;
        let smaller = |&a: &usize, &b: &usize| self.rows[a].c.total_cmp(&self.rows[b].c);
        (0..self.rows.len()).filter(|&at| good(&self.rows[at])).min_by(smaller).unwrap_or(self.best)
    }

    /// Whether a row has the smallest or the largest C of its path, so that a better one may lie beyond.
    pub fn edge(&self, row: usize) -> Option<Edge> {
        let row = &self.rows[row];
        let path = || self.rows.iter().filter(|other| same_path(&other.settings, &row.settings));
        let (smaller, larger) = (path().any(|other| other.c < row.c), path().any(|other| other.c > row.c));
        match (smaller, larger) {
            (false, true) => Some(Edge::Lowest),
            (true, false) => Some(Edge::Highest),
            _ => None,
        }
    }

    pub(super) fn higher_is_better(&self) -> bool {
        self.metrics.first().is_none_or(crate::metric::Metric::higher_is_better)
    }
}
