//! [`Progressive`]: how well each pair was predicted before it was learned from, in constant memory.
//!
//! Every pair is first predicted and then learned from, so the rates counted here are those of a model on unseen data
//! (Blum, Kalai and Langford, Beating the hold-out, COLT 1999). With z the difference of the two scores and τ the
//! threshold at that moment, it keeps
//!
//! - a table of outcomes, true against predicted;
//! - whether the last [`RECENT`] predictions were wrong, one bit each;
//! - how many ties, and how many inequalities with the right sign, had |z|/τ in each of 512 buckets, sixteen per factor
//!   of two between 2⁻¹⁶ and 2¹⁶.
//!
//! The comparison AUC is the area under the curve of a threshold on |z|/τ: a difference predicted for a tie is a false
//! positive, an inequality that is not predicted with its sign a false negative. This area is the probability that an
//! inequality has the right sign and a larger |z|/τ than a tie, where equal values count half. Here values in the same
//! bucket count as equal; [`Auc::resolution`] bounds the error. The weight of a pair affects only how much is learned
//! from it: all pairs count the same here.

use super::progress::RECENT;

/// The words that hold a bit for each of the last pairs.
pub(super) const WORDS: usize = RECENT as usize / 64;
/// Bits of the mantissa that select a bucket: sixteen buckets per factor of two.
const FINE_BITS: u32 = 4;
/// The buckets reach from 2⁻¹⁶ to 2¹⁶.
const OCTAVES: u64 = 16;
pub(super) const BUCKETS: usize = (2 * OCTAVES as usize) << FINE_BITS;
const LOWEST: u64 = (1023 - OCTAVES) << FINE_BITS;

/// Kinds of pairs: ties, inequalities of the right sign, inequalities of the wrong one.
const KINDS: usize = 3;

/// The area under the curve, and how far it can be from that of exact differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auc {
    /// The area.
    pub area: f64,
    /// The exact area is no further away than this.
    pub resolution: f64,
}

/// See the top of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Progressive {
    /// True × predicted, in the order left, tie, right.
    confusion: [u64; 9],
    recent: Box<[u64; WORDS]>,
    buckets: Box<[u64; KINDS * BUCKETS]>,
    pairs: u64,
}

impl Default for Progressive {
    fn default() -> Progressive {
        Progressive {
            confusion: [0; 9],
            recent: Box::new([0; WORDS]),
            buckets: Box::new([0; KINDS * BUCKETS]),
            pairs: 0,
        }
    }
}

/// The bucket of a number that is not negative.
#[inline(always)]
pub(super) fn bucket(ratio: f64) -> usize {
    let place = ratio.to_bits() >> (f64::MANTISSA_DIGITS - 1 - FINE_BITS);
    (place.saturating_sub(LOWEST) as usize).min(BUCKETS - 1)
}

/// −1, 0 or 1: the outcome predicted from a difference of scores.
#[inline(always)]
pub(super) fn predicted(z: f64, threshold: f64) -> i8 {
    i8::from(z > threshold) - i8::from(z < -threshold)
}

impl Progressive {
    /// Counts a pair with true outcome `sign` (−1, 0 or 1) and difference z, for a positive threshold.
    #[inline(always)]
    pub(super) fn count(&mut self, sign: i8, z: f64, threshold: f64) {
        let predicted = predicted(z, threshold);
        self.confusion[((sign + 1) * 3 + predicted + 1) as usize % 9] += 1;
        let place = (self.pairs % RECENT) as usize;
        let wrong = u64::from(predicted != sign);
        let word = &mut self.recent[place / 64];
        *word = *word & !(1 << (place % 64)) | wrong << (place % 64);
        let right_way = f64::from(sign) * z > 0.0;
        let kind = if sign == 0 { 0 } else { 2 - usize::from(right_way) };
        self.buckets[kind * BUCKETS + bucket(z.abs() / threshold)] += 1;
        self.pairs += 1;
    }

    /// Pairs seen.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// How many pairs had a true outcome and a predicted outcome, both in the order left, tie, right.
    pub fn confusion(&self) -> [[u64; 3]; 3] {
        let [a, b, c, d, e, f, g, h, i] = self.confusion;
        [[a, b, c], [d, e, f], [g, h, i]]
    }

    /// Pairs whose true outcome is a tie.
    pub fn ties(&self) -> u64 {
        self.confusion[3..6].iter().sum()
    }

    /// The share of pairs that were predicted wrongly.
    pub fn error(&self) -> Option<f64> {
        let right = self.confusion[0] + self.confusion[4] + self.confusion[8];
        (self.pairs > 0).then(|| (self.pairs - right) as f64 / self.pairs as f64)
    }

    /// The same over the last [`RECENT`] pairs.
    pub fn recent_error(&self) -> Option<f64> {
        let wrong: u32 = self.recent.iter().map(|word| word.count_ones()).sum();
        (self.pairs > 0).then(|| f64::from(wrong) / self.pairs.min(RECENT) as f64)
    }

    /// The comparison AUC, if there were ties and inequalities.
    pub fn auc(&self) -> Option<Auc> {
        let (ties, rest) = self.buckets.split_at(BUCKETS);
        let (right, wrong) = rest.split_at(BUCKETS);
        let total = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        let pairs = total(ties) * (total(right) + total(wrong));
        if pairs == 0.0 {
            return None;
        }
        let (mut ties_below, mut won, mut level) = (0u64, 0.0, 0.0);
        for (&ties, &right) in ties.iter().zip(right) {
            won += right as f64 * ties_below as f64;
            level += right as f64 * ties as f64;
            ties_below += ties;
        }
        Some(Auc { area: (won + level / 2.0) / pairs, resolution: level / 2.0 / pairs })
    }

    /// Everything counted, for a file.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let counts = self.confusion.iter().chain(self.recent.iter()).chain(self.buckets.iter());
        std::iter::once(&self.pairs).chain(counts).copied().collect()
    }

    /// Restores the counts from these numbers, or none if they are invalid.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Progressive> {
        let (&pairs, rest) = numbers.split_first()?;
        let (confusion, rest) = rest.split_first_chunk::<9>()?;
        let (recent, rest) = rest.split_first_chunk::<WORDS>()?;
        let buckets: &[u64; KINDS * BUCKETS] = rest.try_into().ok()?;
        let adds_up =
            |counts: &[u64]| counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count)) == Some(pairs);
        let whole = adds_up(confusion)
            && adds_up(buckets)
            && buckets[..BUCKETS].iter().sum::<u64>() == confusion[3..6].iter().sum::<u64>()
            && pairs < u64::MAX / 2;
        whole.then(|| Progressive {
            confusion: *confusion,
            recent: Box::new(*recent),
            buckets: Box::new(*buckets),
            pairs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn counted(stream: &[(i8, f64)]) -> Progressive {
        let mut progress = Progressive::default();
        stream.iter().for_each(|&(sign, z)| progress.count(sign, z, 1.5));
        progress
    }

    /// The AUC over all pairs of a tie and an inequality.
    fn brute_force_auc(stream: &[(i8, f64)]) -> Option<f64> {
        let (mut won, mut all) = (0.0, 0.0);
        for &(_, tie) in stream.iter().filter(|pair| pair.0 == 0) {
            for &(sign, z) in stream.iter().filter(|pair| pair.0 != 0) {
                all += 1.0;
                if z.signum() == f64::from(sign) && z != 0.0 {
                    won += if z.abs() > tie.abs() {
                        1.0
                    } else if z.abs() == tie.abs() {
                        0.5
                    } else {
                        0.0
                    };
                }
            }
        }
        (all > 0.0).then(|| won / all)
    }

    proptest! {
        #[test]
        fn the_area_is_that_of_all_pairs_up_to_its_resolution(
            stream in prop::collection::vec((-1..=1i8, -6.0..6.0f64), 0..60),
        ) {
            let auc = counted(&stream).auc();
            prop_assert_eq!(auc.is_some(), brute_force_auc(&stream).is_some());
            if let (Some(auc), Some(exact)) = (auc, brute_force_auc(&stream)) {
                prop_assert!((auc.area - exact).abs() <= auc.resolution + 1e-12, "{auc:?} {exact}");
            }
        }

        #[test]
        fn differences_that_are_powers_of_two_are_told_apart_exactly(
            stream in prop::collection::vec((-1..=1i8, -9..9i32, any::<bool>()), 0..60),
        ) {
            let stream: Vec<(i8, f64)> = stream
                .iter()
                .map(|&(sign, power, up)| (sign, 1.5 * 2f64.powi(power) * if up { 1.0 } else { -1.0 }))
                .collect();
            let area = counted(&stream).auc().map(|auc| auc.area);
            match (area, brute_force_auc(&stream)) {
                (Some(area), Some(exact)) => prop_assert!((area - exact).abs() < 1e-12, "{area} {exact}"),
                (area, exact) => prop_assert_eq!(area, exact),
            }
        }

        #[test]
        fn errors_are_those_of_the_outcomes(stream in prop::collection::vec((-1..=1i8, -4.0..4.0f64), 1..40)) {
            let progress = counted(&stream);
            let outcome = |z: f64| if z > 1.5 { 1 } else if z < -1.5 { -1 } else { 0 };
            let wrong = stream.iter().filter(|pair| outcome(pair.1) != pair.0).count() as f64;
            prop_assert_eq!(progress.error(), Some(wrong / stream.len() as f64));
            prop_assert_eq!(progress.recent_error(), progress.error());
            for (row, said) in [-1i8, 0, 1].into_iter().enumerate() {
                for (column, seen) in [-1i8, 0, 1].into_iter().enumerate() {
                    let count = stream.iter().filter(|pair| pair.0 == said && outcome(pair.1) == seen).count() as u64;
                    prop_assert_eq!(progress.confusion()[row][column], count);
                }
            }
            prop_assert_eq!(Progressive::from_numbers(&progress.numbers()), Some(progress));
        }
    }

    #[test]
    fn the_recent_error_forgets_what_is_older() {
        let mut random = Random::new(3, 0, 0);
        let stream: Vec<(i8, f64)> = (0..3 * RECENT).map(|_| (1, 4.0 * random.uniform())).collect();
        let progress = counted(&stream);
        let last = &stream[stream.len() - RECENT as usize..];
        let wrong = last.iter().filter(|pair| pair.1 <= 1.5).count() as f64;
        assert_eq!(progress.recent_error(), Some(wrong / RECENT as f64));
        assert_ne!(progress.recent_error(), progress.error());
    }

    #[test]
    fn inconsistent_counts_are_refused() {
        let numbers = counted(&[(0, 1.0), (1, 2.0), (-1, 0.2)]).numbers();
        for place in [0, 1, 5, numbers.len() - 1] {
            let mut wrong = numbers.clone();
            wrong[place] += 1;
            assert_eq!(Progressive::from_numbers(&wrong), None, "place {place}");
        }
        assert_eq!(Progressive::from_numbers(&numbers[1..]), None);
        assert_eq!(Progressive::from_numbers(&[]), None);
    }

    #[test]
    fn extreme_differences_have_a_bucket() {
        for ratio in [0.0, f64::MIN_POSITIVE, 1e-300, 1e300, f64::INFINITY] {
            assert!(bucket(ratio) < BUCKETS);
        }
        assert!(bucket(1.0) < bucket(1.07) && bucket(1.0) == bucket(1.06));
    }
}
