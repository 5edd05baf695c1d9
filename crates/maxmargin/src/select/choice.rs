//! Which row to choose: the one with the best mean, or the most regularised one within one standard error of it.

use super::cross_validation::{OverFolds, Row, Tuned};
use crate::settings::{Regularisation, Settings};

/// An end of the values that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The smallest C.
    Lowest,
    /// The largest C.
    Highest,
}

/// A value of the deciding metric, negated if needed so that more is better.
fn goodness(row: &Row, higher_is_better: bool) -> f64 {
    row.metrics.first().map_or(0.0, |summary| if higher_is_better { summary.mean } else { -summary.mean })
}

/// How many folds a row was judged on: fewer if it was dropped as clearly worse.
fn judged(row: &Row) -> usize {
    row.metrics.first().map_or(0, |summary| summary.folds.len())
}

/// Whether a row is preferred. First comes a row with a threshold, for comparisons; then a row judged on all folds
/// before one that was dropped; then the mean of the first metric, the means of the others if that is equal, and the
/// smaller C if all are equal.
pub(super) fn is_better(row: &Row, than: &Row, higher_is_better: &[bool]) -> bool {
    if row.without_threshold != than.without_threshold {
        return than.without_threshold;
    }
    if judged(row) != judged(than) {
        return judged(row) > judged(than);
    }
    let (one, other) = (goodness(row, higher_is_better[0]), goodness(than, higher_is_better[0]));
    if one != other {
        return one > other;
    }
    // Errors of few rows are often equal: the other metrics then decide.
    let others = row.metrics.iter().zip(&than.metrics).zip(higher_is_better).skip(1);
    let mut decided = others.filter(|((one, other), _)| one.mean != other.mean);
    match decided.next() {
        Some(((one, other), higher)) => (one.mean > other.mean) == *higher,
        // Without a threshold, a small C has learned nothing at all.
        None if row.without_threshold => row.c > than.c,
        None => row.c < than.c,
    }
}

/// The best row so far, with which a setting is compared fold by fold.
pub(super) struct Race<'a> {
    pub(super) best: Option<&'a Row>,
    pub(super) higher_is_better: bool,
}

impl Race<'_> {
    /// Whether values on the first folds are clearly worse than the best row: worse on every one of them, and on
    /// average by more than the standard error of the best and twice that of the difference. This needs at least half
    /// of the folds, and at least two.
    pub(super) fn is_hopeless(&self, values: &[f64]) -> bool {
        let Some(summary) = self.best.and_then(|best| best.metrics.first()) else { return false };
        if values.len() < 2.max(summary.folds.len().div_ceil(2)) || summary.folds.len() < values.len() {
            return false;
        }
        let sign = if self.higher_is_better { 1.0 } else { -1.0 };
        let behind: Vec<f64> = summary.folds.iter().zip(values).map(|(best, value)| sign * (best - value)).collect();
        let difference = OverFolds::new(behind);
        let chance = summary.standard_error.max(2.0 * difference.standard_error);
        difference.folds.iter().all(|behind| *behind > 0.0) && difference.mean > chance
    }
}

/// Whether two settings differ only in C.
pub(super) fn same_path(a: &Settings, b: &Settings) -> bool {
    let bare = |settings: &Settings| Settings { regularisation: Regularisation::C(1.0), ..settings.clone() };
    bare(a) == bare(b)
}

impl Tuned {
    /// The smallest C on the path of the best row whose mean lies within one standard error of the best: the simplest
    /// model that the folds cannot distinguish from the best one (Breiman et al., Classification and Regression Trees,
    /// 1984).
    pub fn one_standard_error(&self) -> usize {
        let best = &self.rows[self.best];
        let higher = self.higher_is_better();
        let least = goodness(best, higher) - best.metrics.first().map_or(0.0, |summary| summary.standard_error);
        let good = |row: &Row| {
            same_path(&row.settings, &best.settings)
                && judged(row) == judged(best)
                && row.without_threshold == best.without_threshold
                && goodness(row, higher) >= least
        };
        let smaller = |&a: &usize, &b: &usize| self.rows[a].c.total_cmp(&self.rows[b].c);
        (0..self.rows.len()).filter(|&at| good(&self.rows[at])).min_by(smaller).unwrap_or(self.best)
    }

    /// The γ of the kernels tried, rising, if there is more than one.
    pub fn widths(&self) -> Vec<f64> {
        let mut widths: Vec<f64> = self.rows.iter().filter_map(|row| row.settings.kernel.gamma).collect();
        widths.sort_by(f64::total_cmp);
        widths.dedup();
        if widths.len() > 1 { widths } else { Vec::new() }
    }

    /// Whether a row was dropped after some of the folds because it was clearly worse.
    pub fn was_left(&self, row: usize) -> bool {
        judged(&self.rows[row]) < self.fold_rows.len()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use crate::metric::Metric;
    use crate::settings::Task;
    use crate::solve::Start;

    /// A table of (C, value on three folds); the best row is found as cross-validation finds it.
    fn table(metric: Metric, rows: &[(f64, [f64; 3])]) -> Tuned {
        let rows = rows.iter().map(|&(c, folds)| Row {
            settings: Settings { regularisation: Regularisation::C(c), ..Settings::new(Task::Classify) },
            c,
            lambda: 1.0 / c,
            metrics: vec![OverFolds::new(folds.to_vec())],
            gap: Some(0.0),
            passes: 1,
            seconds: 0.0,
            converged: true,
            without_threshold: false,
        });
        tuned(metric, rows.collect())
    }

    fn tuned(metric: Metric, rows: Vec<Row>) -> Tuned {
        let higher = [metric.higher_is_better()];
        let best =
            (1..rows.len()).fold(0, |best, at| if is_better(&rows[at], &rows[best], &higher) { at } else { best });
        Tuned { metrics: vec![metric], fold_rows: vec![1; 3], rows, best, start: Start::default() }
    }

    #[test]
    fn the_best_mean_wins_and_the_smaller_c_where_means_are_equal() {
        let rows = [(0.1, [0.5, 0.6, 0.7]), (1.0, [0.8, 0.8, 0.8]), (10.0, [0.8, 0.8, 0.8]), (100.0, [0.9, 0.7, 0.7])];
        assert_eq!(table(Metric::Accuracy, &rows).best, 1);
        let mut falling = rows;
        falling.reverse();
        assert_eq!(table(Metric::Accuracy, &falling).best, 2, "the order of the rows does not matter");
        assert_eq!(table(Metric::Error, &rows).best, 0, "a smaller error is better");
    }

    #[test]
    fn one_standard_error_takes_the_smallest_c_within_it() {
        // The best mean is 0.80 with a standard error of 0.1/√3 ≈ 0.0577.
        let best = (10.0, [0.7, 0.8, 0.9]);
        let rows = [(0.1, [0.74, 0.74, 0.74]), (1.0, [0.75, 0.75, 0.75]), best, (100.0, [0.79, 0.79, 0.79])];
        let found = table(Metric::Accuracy, &rows);
        assert_eq!((found.best, found.one_standard_error()), (2, 1));
        // The same for an error: 0.20 is best, 0.25 is within its standard error, 0.26 is not.
        let turned = rows.map(|(c, folds)| (c, folds.map(|value| 1.0 - value)));
        let found = table(Metric::Error, &turned);
        assert_eq!((found.best, found.one_standard_error()), (2, 1));
        // If all folds agree, the standard error is zero, and only equal means are within it.
        let sure = [(0.1, [0.7; 3]), (1.0, [0.8; 3]), (10.0, [0.8; 3])];
        let found = table(Metric::Accuracy, &sure);
        assert_eq!((found.best, found.one_standard_error()), (1, 1));
    }

    #[test]
    fn another_loss_is_another_path() {
        let mut rows =
            table(Metric::Accuracy, &[(0.1, [0.7, 0.8, 0.9]), (1.0, [0.75, 0.85, 0.85]), (2.0, [0.8, 0.8, 0.9])]).rows;
        rows[0].settings.loss = Loss::SquaredHinge;
        let found = tuned(Metric::Accuracy, rows);
        assert_eq!((found.best, found.one_standard_error()), (2, 1), "a smaller C of another path is no simpler model");
        assert_eq!(found.edge(0), None, "a path of one setting has no ends");
    }

    #[test]
    fn the_ends_of_a_path_are_known() {
        let found = table(Metric::Accuracy, &[(0.1, [0.7; 3]), (1.0, [0.8; 3]), (10.0, [0.6; 3])]);
        assert_eq!([0, 1, 2].map(|row| found.edge(row)), [Some(Edge::Lowest), None, Some(Edge::Highest)]);
    }

    #[test]
    fn a_setting_that_is_worse_on_every_fold_is_dropped() {
        let found = table(Metric::Accuracy, &[(1.0, [0.8, 0.9, 0.85])]);
        let race = |higher_is_better| Race { best: Some(&found.rows[0]), higher_is_better };
        assert!(race(true).is_hopeless(&[0.7, 0.8]));
        assert!(!race(true).is_hopeless(&[0.7]), "one fold shows nothing");
        assert!(!race(true).is_hopeless(&[0.7, 0.91]), "ahead on one fold");
        assert!(!race(true).is_hopeless(&[0.79, 0.5]), "the differences vary too much");
        assert!(!race(true).is_hopeless(&[0.79, 0.89]), "worse by less than the standard error of the best");
        assert!(!race(false).is_hopeless(&[0.7, 0.8]), "a smaller error is better");
        assert!(!Race { best: None, higher_is_better: true }.is_hopeless(&[0.0, 0.0]));
        // A dropped row can never win, even if its folds were easy.
        let mut left = found.rows[0].clone();
        left.metrics = vec![OverFolds::new(vec![0.99, 0.99])];
        assert!(!is_better(&left, &found.rows[0], &[true]) && is_better(&found.rows[0], &left, &[true]));
    }

    #[test]
    fn the_standard_error_is_that_of_a_mean() {
        let summary = OverFolds::new(vec![1.0, 2.0, 3.0, 6.0]);
        assert_eq!(summary.mean, 3.0);
        // Deviations −2, −1, 0, 3: variance 14/3, over 4.
        assert!((summary.standard_error - (14.0f64 / 12.0).sqrt()).abs() < 1e-15);
    }
}
