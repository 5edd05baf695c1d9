//! Propensities by regression: expectation-maximisation over a model of relevance.
//!
//! A click happens where a place is looked at (probability θ_k) and the result is relevant (probability γ). Each round finds,
//! for every result without a click, how likely it was looked at and how likely it is relevant, given θ and γ; then θ_k is
//! the mean over the events of place k, and γ is fitted to these probabilities. With features, γ = σ(w·x + b) with a small
//! ridge, one step a round of Newton's method with the Hessian bounded from above, so that one factorisation serves all
//! rounds (Böhning & Lindsay, 1988). Without features, γ of a result is the mean over its own events, with one
//! relevant and one irrelevant event added.
//!
//! Reference: Wang, Golbandi, Bendersky, Metzler & Najork, Position bias estimation for unbiased learning to rank in
//! personal search, WSDM 2018 (with boosted trees in place of the linear model).

use super::ClickLog;
use super::estimate::{each_result, factor, substitute};
use super::join::Keyed;
use crate::error::{Code, Error, Result};
use crate::run::Cancel;

/// Rounds at most, and the change of all places at which they end.
const ROUNDS: usize = 500;
const SETTLED: f64 = 1e-6;

/// With more features than this, the system of the regression would be too large.
const MOST_FEATURES: usize = 2000;

/// The weight of the ridge, in events.
const RIDGE: f64 = 1.0;

/// A result and its place, with how often it was shown and clicked there.
struct Cell {
    result: usize,
    place: usize,
    shown: f64,
    clicks: f64,
}

/// How likely each place is looked at, relative to the highest; none where nothing was shown or clicked.
pub(super) fn by_regression(
    log: &ClickLog,
    places: usize,
    features: Option<&Keyed<'_>>,
    cancel: &Cancel,
) -> Result<Vec<Option<f64>>> {
    let (mut cells, mut rows, mut results) = (Vec::new(), Vec::new(), 0);
    each_result(log, |query, item, of_result| {
        if let Some(features) = features {
            match features.find(log, query, item) {
                Some(row) => rows.push(row),
                None => return,
            }
        }
        for &(place, (shown, clicks)) in of_result {
            let place = place as usize - 1;
            cells.push(Cell { result: results, place, shown: shown as f64, clicks: clicks as f64 });
        }
        results += 1;
    });
    let mut model = match features {
        Some(features) => Some(Logistic::new(features, &rows, &cells)?),
        None => None,
    };
    let (mut theta, mut relevant): (Vec<f64>, Vec<f64>) = (vec![0.5; places], vec![0.5; results]);
    for _ in 0..ROUNDS {
        cancel.check()?;
        let (mut looked, mut shown) = (vec![0.0; places], vec![0.0; places]);
        let (mut liked, mut total) = (vec![0.0; results], vec![0.0; results]);
        for cell in &cells {
            let (t, g) = (theta[cell.place], relevant[cell.result]);
            let missed = (1.0 - t * g).max(f64::MIN_POSITIVE);
            let unclicked = cell.shown - cell.clicks;
            looked[cell.place] += cell.clicks + unclicked * t * (1.0 - g) / missed;
            shown[cell.place] += cell.shown;
            liked[cell.result] += cell.clicks + unclicked * g * (1.0 - t) / missed;
            total[cell.result] += cell.shown;
        }
        match &mut model {
            Some(model) => model.step(&liked, &total, &mut relevant),
            None => {
                for ((relevant, liked), total) in relevant.iter_mut().zip(&liked).zip(&total) {
                    *relevant = (liked + 1.0) / (total + 2.0);
                }
            }
        }
        let mut change = 0.0f64;
        for ((theta, looked), shown) in theta.iter_mut().zip(&looked).zip(&shown) {
            let next = if *shown > 0.0 { looked / shown } else { 0.0 };
            change = change.max((next - *theta).abs());
            *theta = next;
        }
        if change < SETTLED {
            break;
        }
    }
    let mut clicks = vec![0.0; places];
    cells.iter().for_each(|cell| clicks[cell.place] += cell.clicks);
    let most =
        theta.iter().zip(&clicks).filter(|(_, clicks)| **clicks > 0.0).map(|(theta, _)| *theta).fold(0.0, f64::max);
    let value = |(theta, clicks): (&f64, &f64)| (*clicks > 0.0 && *theta > 0.0).then(|| theta / most);
    Ok(theta.iter().zip(&clicks).map(value).collect())
}

/// Relevance as a function of features.
struct Logistic {
    /// Features of each result, standardised, and a 1.
    rows: Vec<f64>,
    width: usize,
    factor: Vec<f64>,
    weights: Vec<f64>,
}

impl Logistic {
    fn new(features: &Keyed<'_>, rows: &[usize], cells: &[Cell]) -> Result<Logistic> {
        let matrix = features.data().matrix();
        let width = matrix.cols() + 1;
        if matrix.cols() > MOST_FEATURES {
            return Err(Error::new(Code::Unsupported, format!("regression on {} features", matrix.cols())).help(
                format!("it takes at most {MOST_FEATURES}; use ⟦propensity=estimate⟧, which needs no features"),
            ));
        }
        let mut shown = vec![0.0; rows.len()];
        cells.iter().for_each(|cell| shown[cell.result] += cell.shown);
        let mut values = vec![0.0; rows.len() * width];
        for (row, values) in rows.iter().zip(values.chunks_exact_mut(width)) {
            matrix.each_in_row(*row, |column, value| values[column] = value);
            values[width - 1] = 1.0;
        }
        for column in 0..width - 1 {
            let cells = || values.iter().skip(column).step_by(width);
            let mean = cells().sum::<f64>() / rows.len().max(1) as f64;
            let spread = (cells().map(|value| (value - mean).powi(2)).sum::<f64>() / rows.len().max(1) as f64).sqrt();
            let scale = if spread > 0.0 { 1.0 / spread } else { 0.0 };
            values.iter_mut().skip(column).step_by(width).for_each(|value| *value = (*value - mean) * scale);
        }
        // The second derivative of the logistic loss is at most 1/4.
        let mut bound = vec![0.0; width * width];
        for (row, shown) in values.chunks_exact(width).zip(&shown) {
            for (a, &x) in row.iter().enumerate() {
                let factor = 0.25 * shown * x;
                bound[a * width..][..=a].iter_mut().zip(row).for_each(|(sum, y)| *sum += factor * y);
            }
        }
        (0..width).for_each(|at| bound[at * width + at] += RIDGE);
        factor(&mut bound, width).ok_or_else(|| {
            Error::new(Code::Overflow, "the features of the regression are too large").help("scale the features down")
        })?;
        Ok(Logistic { rows: values, width, factor: bound, weights: vec![0.0; width] })
    }

    /// One step towards these means, and the relevance it gives.
    fn step(&mut self, liked: &[f64], total: &[f64], relevant: &mut [f64]) {
        let mut gradient: Vec<f64> = self.weights.iter().map(|weight| -RIDGE * weight).collect();
        for (((row, relevant), liked), total) in
            self.rows.chunks_exact(self.width).zip(&*relevant).zip(liked).zip(total)
        {
            let pull = liked - total * relevant;
            gradient.iter_mut().zip(row).for_each(|(sum, x)| *sum += pull * x);
        }
        let step = substitute(&self.factor, &gradient);
        self.weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
        for (row, relevant) in self.rows.chunks_exact(self.width).zip(relevant) {
            let score: f64 = row.iter().zip(&self.weights).map(|(x, weight)| x * weight).sum();
            *relevant = 1.0 / (1.0 + (-score).exp());
        }
    }
}
