//! Percentile bootstrap intervals (Efron 1979): how much a value would change with another sample of queries or rows.

use super::Evaluation;
use crate::parallel;
use crate::random::Random;
use serde::Serialize;

/// A 95 % interval around a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The 2.5 % quantile of the resampled values.
    pub low: f64,
    /// The 97.5 % quantile of the resampled values.
    pub high: f64,
    /// The standard deviation of the resampled values.
    pub standard_error: f64,
    /// Number of resamples used. Resamples in which the value is not defined are left out.
    pub resamples: usize,
}

impl Interval {
    /// Half the width, for writing `value ± half`.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

impl Evaluation {
    /// The interval of a mean over queries, by resampling the queries that counted. `None` for row metrics (see
    /// [`Metric::bootstrap`](super::Metric::bootstrap)), with fewer than two queries, and without resamples.
    ///
    /// The same seed gives the same interval at any number of threads.
    pub fn bootstrap(&self, resamples: usize, seed: u64) -> Option<Interval> {
        let values: Vec<f64> = self.per_query.as_ref()?.iter().flatten().copied().collect();
        if values.len() < 2 {
            return None;
        }
        interval(resamples, seed, |random| {
            let sum: f64 = (0..values.len()).map(|_| values[random.below(values.len() as u64) as usize]).sum();
            Some(sum / values.len() as f64)
        })
    }
}

/// The random stream of the resamples.
const RESAMPLES: u64 = 0x626f_6f74;

/// Each resample has its own random stream, so that the result does not depend on the threads.
pub(super) fn interval(
    resamples: usize,
    seed: u64,
    resample: impl Fn(&mut Random) -> Option<f64> + Sync,
) -> Option<Interval> {
    let drawn: Vec<Option<f64>> =
        parallel::map(resamples, |index| resample(&mut Random::new(seed, RESAMPLES, index as u64)));
    let mut values: Vec<f64> = drawn.into_iter().flatten().collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let standard_error = (squares / (values.len().max(2) - 1) as f64).sqrt();
    Some(Interval {
        low: quantile(&values, 0.025),
        high: quantile(&values, 0.975),
        standard_error,
        resamples: values.len(),
    })
}

/// The quantile of sorted values, interpolated linearly.
pub(crate) fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - below as f64;
    sorted[below] * (1.0 - part) + sorted[above] * part
}
