//! [`Progress`]: how well examples were predicted before they were learned from, for any task.
//!
//! Every example is first predicted and then learned from, so these are rates of a model on unseen data (Blum, Kalai
//! and Langford, Beating the hold-out, COLT 1999). Memory is constant, and all counts have 64 bits.

use super::progressive::{Auc, BUCKETS, WORDS, bucket};

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
}

impl Progress {
    /// A metric by its name.
    pub fn metric(&self, name: &str) -> Option<&Measured> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
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
        let size = bucket(score.abs());
        let place = if score < 0.0 { BUCKETS - 1 - size } else { BUCKETS + size };
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

    /// Exchanges the classes and turns all scores around.
    pub(crate) fn flip(&mut self) {
        self.counts.reverse();
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
