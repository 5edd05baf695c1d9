//! [`Progress`]: how well examples were predicted before they were learned from, for any task.
//!
//! Every example is first predicted and then learned from, so these are rates of a model on unseen data (Blum, Kalai
//! and Langford, Beating the hold-out, COLT 1999). Memory is constant, and all counts have 64 bits.

use super::progressive::{Auc, BUCKETS, WORDS, bucket};
use super::state::OnlineState;

/// How many of the last examples the recent values cover.
pub const RECENT: u64 = 8192;

/// What a learner says about the stream so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The name of one example, and of several.
    pub unit: (&'static str, &'static str),
    /// Examples seen.
    pub examples: u64,
    /// The sum of their weights.
    pub weight: f64,
    /// The weighted sum of the losses of examples before each was learned from.
    pub loss: f64,
    /// The metrics of the task, the most important first.
    pub metrics: Vec<Measured>,
    /// What passive-aggressive steps say.
    pub aggression: Option<Aggression>,
}

impl Progress {
    /// A metric by its name.
    pub fn metric(&self, name: &str) -> Option<&Measured> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// What passive-aggressive steps say about the stream so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggression {
    /// Batches that were learned from; of one row each, where rows are learned from alone.
    pub batches: u64,
    /// Mistakes on these batches, as the rule counts them: see `online/passive_aggressive/bounds.rs`.
    pub mistakes: u64,
    /// The most mistakes that the theory allows, if it sets a limit.
    pub bound: Option<f64>,
    /// Batches that no weights are right about. Only steps without slack have them.
    pub contradictions: u64,
    /// How many rows of the positive and of the negative class are kept to fill batches, and their size in bytes.
    pub kept: Option<([usize; 2], u64)>,
}

/// A metric of predictions that were made before their examples were learned from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Its name, as in `evaluate`.
    pub name: &'static str,
    /// Its value over all examples, if it has one.
    pub all: Option<f64>,
    /// Its value over the last [`RECENT`] examples, if it is known.
    pub recent: Option<f64>,
}

/// Counts wrong predictions: all of them, and one bit for each of the last [`RECENT`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errors {
    seen: u64,
    wrong: u64,
    recent: Box<[u64; WORDS]>,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors { seen: 0, wrong: 0, recent: Box::new([0; WORDS]) }
    }
}

impl Errors {
    /// How many numbers [`Errors::put`] writes.
    pub(crate) const NUMBERS: usize = 2 + WORDS;

    /// Counts a prediction.
    #[inline(always)]
    pub(crate) fn count(&mut self, wrong: bool) {
        let place = (self.seen % RECENT) as usize;
        let (word, wrong) = (&mut self.recent[place / 64], u64::from(wrong));
        *word = *word & !(1 << (place % 64)) | wrong << (place % 64);
        self.wrong += wrong;
        self.seen += 1;
    }

    /// Predictions counted.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The metric with this name.
    pub(crate) fn measured(&self, name: &'static str) -> Measured {
        let wrong: u32 = self.recent.iter().map(|word| word.count_ones()).sum();
        Measured {
            name,
            all: (self.seen > 0).then(|| self.wrong as f64 / self.seen as f64),
            recent: (self.seen > 0).then(|| f64::from(wrong) / self.seen.min(RECENT) as f64),
        }
    }

    /// Appends the counts, for a file.
    pub(crate) fn put(&self, numbers: &mut Vec<u64>) {
        numbers.extend([self.seen, self.wrong]);
        numbers.extend_from_slice(&self.recent[..]);
    }

    /// Takes the counts from the front of these numbers, or none if they are invalid.
    pub(crate) fn take(numbers: &mut &[u64]) -> Option<Errors> {
        let (&[seen, wrong], rest) = numbers.split_first_chunk::<2>()?;
        let (recent, rest) = rest.split_first_chunk::<WORDS>()?;
        *numbers = rest;
        let errors = Errors { seen, wrong, recent: Box::new(*recent) };
        let recent: u64 = errors.recent.iter().map(|word| u64::from(word.count_ones())).sum();
        (wrong <= seen && recent <= wrong && recent <= seen && seen < u64::MAX / 2).then_some(errors)
    }
}

/// The mean of a metric that each example has: of all, and of the last [`RECENT`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Means {
    seen: u64,
    sum: f64,
    /// The last values. Value number n is in place n modulo [`RECENT`].
    recent: Vec<f32>,
}

impl Means {
    /// Counts a value.
    pub(crate) fn count(&mut self, value: f64) {
        let place = (self.seen % RECENT) as usize;
        match self.recent.get_mut(place) {
            Some(slot) => *slot = value as f32,
            None => self.recent.push(value as f32),
        }
        self.sum += value;
        self.seen += 1;
    }

    /// Values counted.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The metric with this name.
    pub(crate) fn measured(&self, name: &'static str) -> Measured {
        let recent: f64 = self.recent.iter().map(|value| f64::from(*value)).sum();
        Measured {
            name,
            all: (self.seen > 0).then(|| self.sum / self.seen as f64),
            recent: (self.seen > 0).then(|| recent / self.recent.len() as f64),
        }
    }

    /// Puts the values into a state: the sum and the last values, and their number.
    pub(crate) fn put(&self, name: &str, state: &mut OnlineState) {
        let recent = self.recent.iter().map(|value| f64::from(*value));
        state.put_reals(name, std::iter::once(self.sum).chain(recent).collect());
        state.put_counts(&format!("{name}-seen"), vec![self.seen]);
    }

    /// Takes them out again; none if they are invalid.
    pub(crate) fn take(name: &str, state: &OnlineState) -> Option<Means> {
        let (&sum, recent) = state.reals(name)?.split_first()?;
        let &[seen] = state.counts(&format!("{name}-seen"))? else { return None };
        let fits = recent.len() as u64 == seen.min(RECENT) && seen < u64::MAX / 2;
        fits.then(|| Means { seen, sum, recent: recent.iter().map(|&value| value as f32).collect() })
    }
}

/// How many scores of negative and of positive rows fell into each bucket, for the area under the ROC curve: sixteen
/// buckets per factor of two between 2⁻¹⁶ and 2¹⁶, on both sides of zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreCounts {
    /// Negative rows, then positive rows; from the lowest score to the highest.
    counts: Vec<u64>,
}

impl Default for ScoreCounts {
    fn default() -> ScoreCounts {
        ScoreCounts { counts: vec![0; 2 * SIDES] }
    }
}

/// Buckets on both sides of zero.
const SIDES: usize = 2 * BUCKETS;

impl ScoreCounts {
    /// How many numbers [`ScoreCounts::put`] writes.
    pub(crate) const NUMBERS: usize = 2 * SIDES;

    /// Counts a score.
    #[inline(always)]
    pub(crate) fn count(&mut self, positive: bool, score: f64) {
        // Scores of nearly zero share one bucket, so that turning signs around moves no score of zero.
        let size = bucket(score.abs());
        let place = if score < 0.0 && size > 0 { BUCKETS - 1 - size } else { BUCKETS + size };
        self.counts[usize::from(positive) * SIDES + place] += 1;
    }

    /// The area, if there were rows of both classes.
    pub(crate) fn auc(&self) -> Option<Auc> {
        let (negatives, positives) = self.counts.split_at(SIDES);
        let total = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        let pairs = total(negatives) * total(positives);
        let (mut below, mut won, mut level) = (0u64, 0.0, 0.0);
        for (&negatives, &positives) in negatives.iter().zip(positives) {
            won += positives as f64 * below as f64;
            level += positives as f64 * negatives as f64;
            below += negatives;
        }
        (pairs > 0.0).then(|| Auc { area: (won + level / 2.0) / pairs, resolution: level / 2.0 / pairs })
    }

    /// The share of positive rows with a score of 0 or below, and that of negative rows with a score of 0 or above; those
    /// nearer to 0 than 2⁻¹⁶ count as 0. They are none for a class that has not come.
    ///
    /// Their sum bounds 1 − AUC. A positive score that is not above a negative one is not above 0, or the negative one is
    /// not below 0; the mean over all pairs gives the two shares. The scores may come from different weights.
    pub(crate) fn sides(&self) -> [Option<f64>; 2] {
        let (negatives, positives) = self.counts.split_at(SIDES);
        let share = |wrong: &[u64], all: &[u64]| {
            let total = all.iter().sum::<u64>();
            (total > 0).then(|| wrong.iter().sum::<u64>() as f64 / total as f64)
        };
        [share(&positives[..=BUCKETS], positives), share(&negatives[BUCKETS - 1..], negatives)]
    }

    /// Exchanges the classes and turns all scores around.
    pub(crate) fn flip(&mut self) {
        self.counts.reverse();
        for side in self.counts.chunks_exact_mut(SIDES) {
            side.swap(BUCKETS - 1, BUCKETS);
        }
    }

    /// Appends the counts, for a file.
    pub(crate) fn put(&self, numbers: &mut Vec<u64>) {
        numbers.extend_from_slice(&self.counts);
    }

    /// Takes the counts of this many rows from the front of these numbers, or none if they are invalid.
    pub(crate) fn take(numbers: &mut &[u64], rows: u64) -> Option<ScoreCounts> {
        let (counts, rest) = numbers.split_at_checked(ScoreCounts::NUMBERS)?;
        *numbers = rest;
        let sum = counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        (sum == Some(rows)).then(|| ScoreCounts { counts: counts.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_area_is_that_of_all_pairs_up_to_its_resolution(
            rows in prop::collection::vec((any::<bool>(), -6.0..6.0f64), 0..60),
        ) {
            let mut counts = ScoreCounts::default();
            rows.iter().for_each(|&(positive, score)| counts.count(positive, score));
            let (mut won, mut all) = (0.0, 0.0);
            for (_, low) in rows.iter().filter(|row| !row.0) {
                for (_, high) in rows.iter().filter(|row| row.0) {
                    all += 1.0;
                    won += if high > low { 1.0 } else { 0.0 } + if high == low { 0.5 } else { 0.0 };
                }
            }
            match counts.auc() {
                None => prop_assert_eq!(all, 0.0),
                Some(auc) => prop_assert!((auc.area - won / all).abs() <= auc.resolution + 1e-12, "{auc:?} {}", won / all),
            }
            let share = |positive: bool| {
                let own: Vec<f64> = rows.iter().filter(|row| row.0 == positive).map(|row| row.1).collect();
                let wrong = own.iter().filter(|score| if positive { **score <= 0.0 } else { **score >= 0.0 }).count();
                (!own.is_empty()).then(|| wrong as f64 / own.len() as f64)
            };
            prop_assert_eq!(counts.sides(), [share(true), share(false)]);
            if let (Some(auc), [Some(missed), Some(alarms)]) = (counts.auc(), counts.sides()) {
                prop_assert!(1.0 - auc.area <= missed + alarms + 1e-12);
            }
            let mut numbers = Vec::new();
            counts.put(&mut numbers);
            prop_assert_eq!(numbers.len(), ScoreCounts::NUMBERS);
            prop_assert_eq!(ScoreCounts::take(&mut &numbers[..], rows.len() as u64), Some(counts.clone()));
            prop_assert_eq!(ScoreCounts::take(&mut &numbers[..], rows.len() as u64 + 1), None);
            let mut turned = ScoreCounts::default();
            rows.iter().filter(|row| row.1 != 0.0).for_each(|&(positive, score)| turned.count(!positive, -score));
            counts.flip();
            prop_assert_eq!(counts, turned);
        }
    }

    #[test]
    fn the_recent_mean_forgets_what_is_older() {
        let mut random = Random::new(4, 0, 0);
        let stream: Vec<f64> = (0..2 * RECENT + 5).map(|_| f64::from(random.uniform() as f32)).collect();
        let mut means = Means::default();
        stream.iter().for_each(|&value| means.count(value));
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let measured = means.measured("mae");
        assert!((measured.all.expect("values") - mean(&stream)).abs() < 1e-12);
        assert!((measured.recent.expect("values") - mean(&stream[stream.len() - RECENT as usize..])).abs() < 1e-12);
        let mut state = OnlineState::default();
        means.put("means", &mut state);
        assert_eq!(Means::take("means", &state), Some(means));
        state.put_counts("means-seen", vec![3]);
        assert_eq!(Means::take("means", &state), None);
    }

    #[test]
    fn the_recent_share_forgets_what_is_older() {
        let mut random = Random::new(3, 0, 0);
        let stream: Vec<bool> = (0..3 * RECENT + 77).map(|_| random.uniform() < 0.3).collect();
        let mut errors = Errors::default();
        stream.iter().for_each(|&wrong| errors.count(wrong));
        let share = |part: &[bool]| part.iter().filter(|&&wrong| wrong).count() as f64 / part.len() as f64;
        let measured = errors.measured("error");
        assert_eq!(measured.all, Some(share(&stream)));
        assert_eq!(measured.recent, Some(share(&stream[stream.len() - RECENT as usize..])));
        let mut numbers = Vec::new();
        errors.put(&mut numbers);
        assert_eq!(numbers.len(), Errors::NUMBERS);
        assert_eq!(Errors::take(&mut &numbers[..]), Some(errors));
        numbers[1] = numbers[0] + 1;
        assert_eq!(Errors::take(&mut &numbers[..]), None);
        assert_eq!(Errors::take(&mut &numbers[..7]), None);
        assert_eq!(Errors::default().measured("error").all, None);
    }
}
