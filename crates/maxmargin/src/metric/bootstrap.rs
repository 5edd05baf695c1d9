//! Percentile bootstrap intervals (Efron 1979): how much a value would move had other queries, or rows, been drawn.

use super::Evaluation;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
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
    /// How many resamples the interval rests on; those in which the value is not defined are left out.
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
    /// [`Metric::bootstrap`](super::Metric::bootstrap)), for fewer than two queries, and for no resamples.
    ///
    /// The same seed gives the same interval at any number of threads.
    pub fn bootstrap(&self, resamples: usize, seed: u64) -> Option<Interval> {
        let values: Vec<f64> = self.per_query.as_ref()?.iter().flatten().copied().collect();
        if values.len() < 2 {
            return None;
        }
        interval(resamples, seed, |generator| {
            let sum: f64 = (0..values.len()).map(|_| values[generator.random_range(0..values.len())]).sum();
            Some(sum / values.len() as f64)
        })
    }
}

/// Resamples with a generator of its own for each resample, so that threads change nothing.
pub(super) fn interval(
    resamples: usize,
    seed: u64,
    resample: impl Fn(&mut Xoshiro256PlusPlus) -> Option<f64> + Sync,
) -> Option<Interval> {
    let drawn: Vec<Option<f64>> = (0..resamples as u64)
        .into_par_iter()
        .map(|index| {
            // Neighbouring numbers are no good seeds for neighbouring generators, their hashes are.
            let own = xxhash_rust::xxh3::xxh3_64_with_seed(&index.to_le_bytes(), seed);
            resample(&mut Xoshiro256PlusPlus::seed_from_u64(own))
        })
        .collect();
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

/// The quantile of sorted values, linear between neighbours.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - below as f64;
    sorted[below] * (1.0 - part) + sorted[above] * part
}
