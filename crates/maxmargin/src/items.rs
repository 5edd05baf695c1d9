//! Items in the order of their scores: ranks that ties share, and confidence intervals of the scores.
//!
//! **Ranks.** With s the scores and τ the threshold for ties (0 if the model has none or a negative one),
//!
//! ```text
//! rank(i) = 1 + |{ j : s_j − s_i > τ }|
//! ```
//!
//! so every item that the model considers tied with the best one shares the first rank, and an item never ranks below
//! one that is not better than it. With resamples, the difference must be significant:
//!
//! ```text
//! rank(i) = 1 + |{ j : low(s_j − s_i) > τ }|
//! ```
//!
//! where low is the lower end of the 95 % interval of the difference. The difference is taken within each resample,
//! where the unknown constant of the scores cancels, and the interval is computed from these differences. An item with
//! few comparisons has wide intervals, so no item is significantly better than it, and it may rank above an item with a
//! higher score.
//!
//! **Intervals** are those of the percentile bootstrap (Efron 1979). As many pairs as there are (or groups of pairs, if
//! there are groups) are drawn with replacement. A model is trained on them, in file order, with the settings of the
//! given model, starts from its weights if it has weights, and is not polished to the last digits. Pairs determine
//! scores only up to a constant, so the scores are centred: their mean over the items is 0. The ends are the 2.5 % and
//! 97.5 % quantiles over the resamples. A resample that cannot be used for training (without ties there is no threshold)
//! is left out and counted.
//!
//! **Cost.** B trainings, as many at a time as there are threads. Each has its own stream of random numbers, so the
//! result does not depend on the threads. Then O(B · items) for the intervals and O(B · items²) for the ranks; most
//! pairs of items are decided after a few resamples.
//!
//! What it does not do: the ranks are not corrected for multiple comparisons.

use crate::data::{Dataset, Pairs};
use crate::error::{Code, Error, Result};
use crate::metric::quantile;
use crate::model::{Model, Scorer};
use crate::parallel;
use crate::random::Random;
use crate::run::{Cancel, Event, Observer};
use crate::settings::Method;
use crate::solve::{Start, Stop};
use crate::train::{expands, train_resample};

/// The ends of the interval.
const LEVELS: (f64, f64) = (0.025, 0.975);

/// Ranks compare every item with every other one. With more items than this, that takes hours.
const MOST_ITEMS: usize = 50_000;

/// The random stream of the resamples.
const RESAMPLES: u64 = 0x6974_656d;

/// Items from the highest score to the lowest; equal ones in the order given.
pub fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order
}

/// The rank of each item: 1 plus the number of items whose score is higher by more than the threshold.
pub fn ranks(scores: &[f64], threshold: f64) -> Vec<usize> {
    let (order, threshold) = (order(scores), threshold.max(0.0));
    let mut ranks = vec![0; scores.len()];
    // As the score falls, the number of better items can only grow.
    let mut better = 0;
    for &item in &order {
        while better < order.len() && scores[order[better]] - scores[item] > threshold {
            better += 1;
        }
        ranks[item] = 1 + better;
    }
    ranks
}

/// Centred scores of items over resamples of the training pairs.
#[derive(Clone, Debug)]
pub struct Resampled {
    /// The scores of the first item over all resamples, then those of the second one, …
    scores: Vec<f64>,
    /// Number of resamples that gave scores.
    pub resamples: usize,
    /// Number of resamples that could not be used for training.
    pub failed: usize,
    /// Number of resamples whose training did not converge.
    pub unconverged: usize,
}

impl Resampled {
    /// The 95 % interval of the score of an item, centred: the mean over all items is 0.
    pub fn interval(&self, item: usize) -> (f64, f64) {
        let mut scores = self.of(item).to_vec();
        scores.sort_unstable_by(f64::total_cmp);
        (quantile(&scores, LEVELS.0), quantile(&scores, LEVELS.1))
    }

    /// The rank of each item: 1 plus the number of items that are significantly better by more than the threshold.
    pub fn ranks(&self, threshold: f64, cancel: &Cancel) -> Result<Vec<usize>> {
        let (items, threshold) = (self.scores.len() / self.resamples.max(1), threshold.max(0.0));
        let rank = |item: usize| {
            cancel.check()?;
            let surely_better = |other: usize| other != item && self.surely_better(other, item, threshold);
            Ok(1 + (0..items).filter(|&other| surely_better(other)).count())
        };
        parallel::try_map(items, rank)
    }

    /// The scores of an item.
    fn of(&self, item: usize) -> &[f64] {
        &self.scores[item * self.resamples..(item + 1) * self.resamples]
    }

    /// Whether the lower end of the interval of a difference is above the threshold. The quantile lies between two
    /// neighbouring differences. Counting decides the question unless these two are on both sides of the threshold.
    fn surely_better(&self, item: usize, other: usize, threshold: f64) -> bool {
        let differences = || self.of(item).iter().zip(self.of(other)).map(|(item, other)| item - other);
        let below = (LEVELS.0 * (self.resamples - 1) as f64).floor() as usize;
        let mut within = 0;
        for difference in differences() {
            within += usize::from(difference <= threshold);
            if within > below + 1 {
                return false;
            }
        }
        if within <= below {
            return true;
        }
        let mut sorted: Vec<f64> = differences().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        quantile(&sorted, LEVELS.0) > threshold
    }
}

/// How often to resample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resampling {
    /// Number of models to train.
    pub resamples: usize,
    /// The seed of the draws.
    pub seed: u64,
}

/// Trains the model again on resamples of its pairs, and scores the items with each.
pub fn resample(
    model: &Model,
    data: &Dataset,
    items: &Dataset,
    resampling: Resampling,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Resampled> {
    let Resampling { resamples, seed } = resampling;
    let pairs = data.pairs().filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
        Error::new(Code::NoPairs, "intervals resample pairs, and there are none")
            .help("give the pairs that the model was learned from")
    })?;
    if items.rows() > MOST_ITEMS {
        let message = format!("intervals are for up to {MOST_ITEMS} items, and there are {}", items.rows());
        return Err(Error::new(Code::BadSetting, message).help("rank fewer items, or rank them by score alone"));
    }
    if units(pairs) < 2 {
        let what = if pairs.groups().is_some() { "group of pairs" } else { "pair" };
        return Err(Error::new(
            Code::TooFewToSplit,
            format!("there is only one {what}, and resampling needs at least two"),
        )
        .help("give more of them"));
    }
    let start = start_of(model);
    let learn = |index: usize| -> Result<Option<(Vec<f64>, bool)>> {
        let drawn = draw(pairs, &mut Random::new(seed, RESAMPLES, index as u64));
        let data = data.clone().with_pairs(pairs.select(&drawn))?;
        let trained = train_resample(&data, &model.settings, start.as_ref(), cancel);
        cancel.check()?;
        match trained {
            Ok(trained) => {
                let unconverged = matches!(trained.stop, Stop::PassLimit | Stop::Stalled | Stop::NoGain);
                Ok(Some((centred(trained.model.scores(items)?), unconverged)))
            }
            // No pair of some needed outcome was drawn, or only pairs of weight 0.
            Err(error) if matches!(error.code(), Code::NoThreshold | Code::NoPairs | Code::BadWeight) => Ok(None),
            Err(error) => Err(error),
        }
    };
    // Batches limit how many trainings are in memory at a time. The result of a resample does not depend on its batch.
    let batch = parallel::threads().max(1);
    let mut learned = Vec::with_capacity(resamples);
    while learned.len() < resamples {
        let done = learned.len();
        learned.extend(parallel::try_map(batch.min(resamples - done), |next| learn(done + next))?);
        if observer.report(&Event::Resamples { done: learned.len(), total: resamples }).is_break() {
            return Err(Error::new(Code::Interrupted, "interrupted; nothing was written"));
        }
    }
    let learned: Vec<(Vec<f64>, bool)> = learned.into_iter().flatten().collect();
    let failed = resamples - learned.len();
    if learned.len() < 2 {
        return Err(Error::new(
            Code::NoThreshold,
            format!("nothing can be learned from {failed} of {resamples} resamples"),
        )
        .help("give more pairs, decided ones and ties, or leave the intervals out"));
    }
    let unconverged = learned.iter().filter(|(_, unconverged)| *unconverged).count();
    let scores = (0..items.rows()).flat_map(|item| learned.iter().map(move |(scores, _)| scores[item])).collect();
    Ok(Resampled { scores, resamples: learned.len(), failed, unconverged })
}

/// What is drawn: groups, or pairs if there are no groups.
fn units(pairs: &Pairs) -> usize {
    pairs.groups().map_or(pairs.len(), |(_, names)| names.len())
}

/// Draws as many units as there are, with replacement. Returns their pairs in file order, copies next to each other.
fn draw(pairs: &Pairs, random: &mut Random) -> Vec<usize> {
    let units = units(pairs);
    let mut times = vec![0usize; units];
    (0..units).for_each(|_| times[random.below(units as u64) as usize] += 1);
    let unit = |pair: usize| pairs.groups().map_or(pair, |(codes, _)| codes[pair] as usize);
    (0..pairs.len()).flat_map(|pair| std::iter::repeat_n(pair, times[unit(pair)])).collect()
}

/// Scores whose mean is 0.
fn centred(mut scores: Vec<f64>) -> Vec<f64> {
    let mean = mean(&scores);
    scores.iter_mut().for_each(|score| *score -= mean);
    scores
}

/// The mean of scores; 0 if there are none.
pub fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len().max(1) as f64
}

/// The weights of the model, if solvers can start from them.
fn start_of(model: &Model) -> Option<Start> {
    let solver = model.settings.solver;
    let Scorer::Linear { weights, .. } = &model.scorer else { return None };
    let elsewhere = model.settings.is_hard_margin() || solver.is_stochastic() || expands(&model.settings);
    if elsewhere || model.settings.is_rating() {
        return None;
    }
    let learned = model.decoder.threshold().filter(|_| model.settings.method() == Some(Method::Compare));
    Some(Start { weights: weights.clone(), thresholds: learned.into_iter().collect(), ..Start::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Outcome, Targets};
    use crate::run::Silent;
    use crate::settings::{Settings, Task};
    use crate::train::train;

    /// Items whose only feature is their identity, and games among them. Items with higher numbers are better.
    fn games(items: usize, count: usize, seed: u64) -> Dataset {
        let mut random = Random::new(seed, 1, 0);
        let (mut left, mut right, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let one = random.below(items as u64) as usize;
            let other = (one + 1 + random.below(items as u64 - 1) as usize) % items;
            let difference = other as f64 - one as f64 + 1.5 * random.normal();
            left.push(one as u32);
            right.push(other as u32);
            outcomes.push(if difference.abs() <= 1.0 {
                Outcome::Tie
            } else {
                Outcome::of_sign(if difference > 0.0 { 1 } else { -1 })
            });
        }
        let rows: Vec<Vec<(usize, f64)>> = (0..items).map(|item| vec![(item, 1.0)]).collect();
        let matrix = Matrix::from_rows(&rows, items).expect("indicators");
        let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("valid pairs");
        Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("a data set")
    }

    fn learned(data: &Dataset, settings: &Settings) -> Model {
        train(data, settings, None, &mut Silent, &Cancel::new()).expect("a model").model
    }

    fn resampled(model: &Model, data: &Dataset, resamples: usize, seed: u64) -> Resampled {
        let resampling = Resampling { resamples, seed };
        resample(model, data, data, resampling, &mut Silent, &Cancel::new()).expect("resamples")
    }

    #[test]
    fn ranks_by_score_count_the_items_that_are_better_beyond_the_threshold() {
        let mut random = Random::new(7, 0, 0);
        for case in 0..200 {
            let count = random.below(12) as usize;
            // Whole and half numbers, so that many differences are exactly the threshold.
            let scores: Vec<f64> = (0..count).map(|_| random.below(9) as f64 / 2.0).collect();
            let threshold: f64 = [0.0, 0.5, 1.0, 10.0, -1.0][case % 5];
            let brute: Vec<usize> = scores
                .iter()
                .map(|score| 1 + scores.iter().filter(|other| **other - score > threshold.max(0.0)).count())
                .collect();
            assert_eq!(ranks(&scores, threshold), brute, "{scores:?} at {threshold}");
        }
    }

    #[test]
    fn sure_ranks_count_the_items_whose_difference_has_an_interval_above_the_threshold() {
        let mut random = Random::new(8, 0, 0);
        for resamples in [2, 40, 41, 81, 200] {
            let items = 9;
            let scores: Vec<f64> = (0..items * resamples)
                .map(|at| (at / resamples) as f64 * 0.6 + (random.normal() * 2.0).round() / 2.0)
                .collect();
            let resampled = Resampled { scores, resamples, failed: 0, unconverged: 0 };
            for threshold in [0.0, 0.5, 1.0] {
                let low = |item: usize, other: usize| {
                    let mut differences: Vec<f64> =
                        (0..resamples).map(|at| resampled.of(item)[at] - resampled.of(other)[at]).collect();
                    differences.sort_by(f64::total_cmp);
                    let place = 0.025 * (resamples - 1) as f64;
                    let (below, part) = (place as usize, place.fract());
                    differences[below] + part * (differences[(below + 1).min(resamples - 1)] - differences[below])
                };
                let brute: Vec<usize> = (0..items)
                    .map(|item| 1 + (0..items).filter(|&other| low(other, item) > threshold).count())
                    .collect();
                assert_eq!(resampled.ranks(threshold, &Cancel::new()).expect("not cancelled"), brute);
            }
        }
    }

    #[test]
    fn every_method_gives_intervals_around_its_scores_whatever_the_threads() {
        let data = games(6, 300, 3);
        for method in Method::ALL {
            // Resamples are not polished: scores are exact to the root of the tolerance.
            let settings = Settings { tolerance: 1e-12, ..Settings::new(Task::Compare).with_method(method) };
            let model = learned(&data, &settings);
            let own = centred(model.scores(&data).expect("scores"));
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
                pool.install(|| resampled(&model, &data, 40, 1))
            };
            let found = on(1);
            assert_eq!(found.scores, on(3).scores, "{}", method.name());
            assert_eq!((found.resamples, found.failed), (40, 0));
            for (item, score) in own.iter().enumerate() {
                let (low, high) = found.interval(item);
                assert!(
                    low < high && low - 1e-6 <= *score && *score <= high + 1e-6,
                    "{}: {low} {score} {high}",
                    method.name()
                );
            }
            // The best and the worst of six items get different ranks.
            let ranks = found.ranks(model.decoder.threshold().unwrap_or(0.0), &Cancel::new()).expect("ranks");
            assert!(ranks[5] == 1 && ranks[0] > ranks[5], "{}: {ranks:?}", method.name());
        }
    }

    #[test]
    fn a_start_at_the_model_ends_where_a_cold_one_does() {
        let data = games(5, 120, 4);
        let settings = Settings { tolerance: 1e-10, ..Settings::new(Task::Compare) };
        let model = learned(&data, &settings);
        let pairs = data.pairs().expect("pairs");
        let drawn = draw(pairs, &mut Random::new(9, RESAMPLES, 0));
        let again = data.clone().with_pairs(pairs.select(&drawn)).expect("valid");
        let cold = centred(learned(&again, &settings).scores(&data).expect("scores"));
        let warm = resampled(&model, &data, 2, 9);
        for (item, cold) in cold.iter().enumerate() {
            assert!((warm.of(item)[0] - cold).abs() < 1e-5, "{} and {cold}", warm.of(item)[0]);
        }
    }

    #[test]
    fn whole_groups_are_drawn_in_the_order_of_the_file() {
        let data = games(4, 60, 5);
        let codes: Vec<u32> = (0..60).map(|pair| pair % 7).collect();
        let names = (0..7).map(|group| group.to_string()).collect();
        let pairs = data.pairs().expect("pairs").clone().with_groups(codes.clone(), names).expect("groups");
        for seed in 0..20 {
            let drawn = draw(&pairs, &mut Random::new(seed, RESAMPLES, 0));
            assert!(drawn.is_sorted());
            let times = |pair: usize| drawn.iter().filter(|&&drawn| drawn == pair).count();
            assert!((0..60).all(|pair| times(pair) == times(pair % 7)));
            assert_eq!((0..7).map(times).sum::<usize>(), 7);
        }
    }

    #[test]
    fn resamples_without_ties_are_counted_as_failed() {
        // With one tie among eight pairs, about a third of the resamples have no tie.
        let (left, right): (Vec<u32>, Vec<u32>) =
            [(0, 1), (1, 2), (0, 2), (0, 1), (1, 2), (0, 2), (2, 3), (0, 3)].into_iter().unzip();
        let mut outcomes = vec![Outcome::Right; 8];
        outcomes[6] = Outcome::Tie;
        let rows: Vec<Vec<(usize, f64)>> = (0..4).map(|item| vec![(item, 1.0)]).collect();
        let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("valid pairs");
        let data = Dataset::new(Matrix::from_rows(&rows, 4).expect("indicators"), Targets::Absent)
            .and_then(|data| data.with_pairs(pairs))
            .expect("a data set");
        let model = learned(
            &data,
            &Settings { regularisation: crate::settings::Regularisation::C(100.0), ..Settings::new(Task::Compare) },
        );
        let found = resampled(&model, &data, 60, 1);
        assert!(found.failed > 5 && found.resamples == 60 - found.failed, "{found:?}");
    }

    #[test]
    fn who_raises_the_flag_gets_nothing() {
        let data = games(4, 60, 6);
        let model = learned(&data, &Settings::new(Task::Compare));
        let cancel = Cancel::new();
        cancel.raise();
        let resampling = Resampling { resamples: 10, seed: 0 };
        let error = resample(&model, &data, &data, resampling, &mut Silent, &cancel).expect_err("raised");
        assert_eq!(error.code(), Code::Interrupted);
    }
}
