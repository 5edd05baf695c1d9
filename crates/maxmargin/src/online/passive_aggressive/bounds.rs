//! [`Bounds`]: the mistakes made so far on a stream, and what they bound.
//!
//! Every row is scored before it is learned from. E(M⁺) is the share of positive rows with a score of 0 or below, E(M⁻)
//! the share of negative rows with a score of 0 or above.
//!
//! **1 − AUC ≤ E(M⁺) + E(M⁻).** A positive score that is not above a negative one is not above 0, or the negative one is
//! not below 0; the mean over all pairs of scores gives the two shares. The scores may come from different weights, so it
//! holds for scores that were given while learning. The measured 1 − AUC stands beside it: equal scores count half, as do
//! scores in the same of 16 buckets for each factor of two; [`ScoreArea::resolution`] bounds the error of that.
//!
//! **Mistakes.** With D the sum of what the steps have added to the dual, any weights u have ½‖u‖² + C·Σ losses(u) ≥ D,
//! since D is the value of a dual point of the rows that were stepped on. A step whose violation is at least v and whose
//! direction has the square q adds at least g = ½v·min(C, v/q), with 1/(2C) in q instead of the limit for PA-II. So the
//! number of mistakes is at most D / min g ≤ max{R², 1/C}·(‖u‖² + 2C·Σ losses(u)) for v = 1 and q ≤ R². What counts as
//! one mistake depends on the rule:
//!
//! | rule | one mistake | v | q |
//! |---|---|---|---|
//! | `pa`, `pa-sequential` | a row on the wrong side at its turn | 1 | ‖x‖² |
//! | `pa-dca` | a batch with such a row | 1 | ‖x‖² |
//! | `pa-max-violators`, `pa-correct-mistakes` | a batch with such a row | 1 | ‖x^J‖² |
//! | `pa-auc` | a pair in the wrong order | 2 | ‖x⁺ − x⁻‖² |
//! | `pa-single-slack` | a batch with w·x̄ ≤ 0 | 1 | ‖x̄‖² |

use super::step::Change;

const FINE_BITS: u32 = 4;
const OCTAVES: u64 = 16;
/// Buckets of positive scores. As many are for negative ones, and one is for zero.
const SIDE: usize = (2 * OCTAVES as usize) << FINE_BITS;
const LOWEST: u64 = (1023 - OCTAVES) << FINE_BITS;
const BUCKETS: usize = 2 * SIDE + 1;

/// The area under the ROC curve of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreArea {
    /// The area.
    pub area: f64,
    /// The area of the exact scores is no further away than this.
    pub resolution: f64,
}

/// See the top of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Rows of the positive and of the negative class.
    rows: [u64; 2],
    mistakes: [u64; 2],
    buckets: Box<[[u64; BUCKETS]; 2]>,
    events: u64,
    contradictions: u64,
    steps: u64,
    dual: f64,
    /// The least that a mistake has added to the dual, by what is known of its row.
    least: f64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            rows: [0; 2],
            mistakes: [0; 2],
            buckets: Box::new([[0; BUCKETS]; 2]),
            events: 0,
            contradictions: 0,
            steps: 0,
            dual: 0.0,
            least: f64::INFINITY,
        }
    }
}

/// Buckets rise with the score.
#[inline(always)]
fn bucket(score: f64) -> usize {
    if score == 0.0 {
        return SIDE;
    }
    let place = score.abs().to_bits() >> (f64::MANTISSA_DIGITS - 1 - FINE_BITS);
    let place = (place.saturating_sub(LOWEST) as usize).min(SIDE - 1);
    if score > 0.0 { SIDE + 1 + place } else { SIDE - 1 - place }
}

impl Bounds {
    /// Counts a row with its score before it is learned from.
    #[inline(always)]
    pub(super) fn count(&mut self, positive: bool, score: f64) {
        let class = usize::from(!positive);
        self.rows[class] += 1;
        self.mistakes[class] += u64::from(if positive { score <= 0.0 } else { score >= 0.0 });
        self.buckets[class][bucket(score)] += 1;
    }

    /// Counts a step.
    #[inline(always)]
    pub(super) fn add(&mut self, change: Change) {
        self.steps += 1;
        self.dual += change.dual;
        self.events += u64::from(change.mistakes);
        self.contradictions += u64::from(change.contradiction);
        self.least = self.least.min(change.least);
    }

    /// Rows of the positive and of the negative class so far.
    pub fn rows(&self) -> [u64; 2] {
        self.rows
    }

    /// E(M⁺) and E(M⁻), for classes that have come.
    pub fn errors(&self) -> [Option<f64>; 2] {
        [0, 1].map(|class| (self.rows[class] > 0).then(|| self.mistakes[class] as f64 / self.rows[class] as f64))
    }

    /// E(M⁺) + E(M⁻), which 1 − AUC does not exceed, if both classes have come.
    pub fn auc_loss_bound(&self) -> Option<f64> {
        let [positive, negative] = self.errors();
        Some(positive? + negative?)
    }

    /// The measured AUC of the scores, if both classes have come.
    pub fn auc(&self) -> Option<ScoreArea> {
        let pairs = self.rows[0] as f64 * self.rows[1] as f64;
        if pairs == 0.0 {
            return None;
        }
        let (mut below, mut won, mut level, mut zeros) = (0u64, 0.0, 0.0, 0.0);
        for (place, (&positive, &negative)) in self.buckets[0].iter().zip(self.buckets[1].iter()).enumerate() {
            won += positive as f64 * below as f64;
            level += positive as f64 * negative as f64;
            if place == SIDE {
                // Scores of zero are really equal.
                zeros = positive as f64 * negative as f64;
            }
            below += negative;
        }
        Some(ScoreArea { area: (won + level / 2.0) / pairs, resolution: (level - zeros) / 2.0 / pairs })
    }

    /// Number of steps on a batch, steps of zero included.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Mistakes on the batches that were stepped on, as the rule counts them.
    pub fn mistakes(&self) -> u64 {
        self.events
    }

    /// The most mistakes that the theory allows, if it sets a limit.
    pub fn mistake_bound(&self) -> Option<f64> {
        let bound = if self.events == 0 { 0.0 } else { self.dual / self.least };
        bound.is_finite().then_some(bound)
    }

    /// D: no weights u have a lower ½‖u‖² + C · losses over what was stepped on.
    pub fn dual(&self) -> f64 {
        self.dual
    }

    /// Batches without weights that reach all margins; only [`super::Variant::Pa`] has them.
    pub fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// All counts, for a file.
    pub(crate) fn counts(&self) -> Vec<u64> {
        let single = [self.rows[0], self.rows[1], self.mistakes[0], self.mistakes[1], self.events, self.contradictions];
        single.into_iter().chain([self.steps]).chain(self.buckets.iter().flatten().copied()).collect()
    }

    /// D and the least gain, for a file.
    pub(crate) fn numbers(&self) -> [f64; 2] {
        [self.dual, self.least]
    }

    /// Restores the counts, or none if they are invalid.
    pub(crate) fn from_stored(counts: &[u64], [dual, least]: [f64; 2]) -> Option<Bounds> {
        let (&[positive, negative, missed, false_alarms, events, contradictions, steps], rest) =
            counts.split_first_chunk::<7>()?;
        let (first, second) = rest.split_at_checked(BUCKETS)?;
        let buckets: [[u64; BUCKETS]; 2] = [first.try_into().ok()?, second.try_into().ok()?];
        let (rows, mistakes) = ([positive, negative], [missed, false_alarms]);
        let whole = (0..2).all(|class| {
            let sum = buckets[class].iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
            sum == Some(rows[class]) && mistakes[class] <= rows[class] && rows[class] < u64::MAX / 4
        });
        let numbers = dual >= 0.0 && dual.is_finite() && least >= 0.0;
        (whole && numbers).then(|| Bounds {
            rows,
            mistakes,
            buckets: Box::new(buckets),
            events,
            contradictions,
            steps,
            dual,
            least,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_area_is_that_of_all_pairs_and_stays_within_the_bound(
            stream in prop::collection::vec((any::<bool>(), prop_oneof![Just(0.0), -3.0..3.0f64, Just(0.5)]), 0..60),
        ) {
            let mut bounds = Bounds::default();
            stream.iter().for_each(|&(positive, score)| bounds.count(positive, score));
            let scores = |class: bool| stream.iter().filter(move |row| row.0 == class).map(|row| row.1);
            let (mut lost, mut all) = (0.0, 0.0);
            for positive in scores(true) {
                for negative in scores(false) {
                    all += 1.0;
                    lost += if positive < negative { 1.0 } else if positive == negative { 0.5 } else { 0.0 };
                }
            }
            prop_assert_eq!(bounds.auc().is_some(), all > 0.0);
            if let (Some(area), Some(bound)) = (bounds.auc(), bounds.auc_loss_bound()) {
                let loss = lost / all;
                prop_assert!((1.0 - area.area - loss).abs() <= area.resolution + 1e-12);
                prop_assert!(loss <= bound + 1e-12, "{loss} {bound}");
                // The measured value, too, since rows in one bucket are on the same side.
                prop_assert!(1.0 - area.area <= bound + 1e-12);
            }
            prop_assert_eq!(Bounds::from_stored(&bounds.counts(), bounds.numbers()), Some(bounds));
        }
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let mut bounds = Bounds::default();
        [(true, 1.0), (false, 2.0), (false, -1.0)].into_iter().for_each(|(class, score)| bounds.count(class, score));
        let (counts, numbers) = (bounds.counts(), bounds.numbers());
        for place in [0, 1, 10, counts.len() - 1] {
            let mut wrong = counts.clone();
            wrong[place] += 1;
            assert_eq!(Bounds::from_stored(&wrong, numbers), None, "place {place}");
        }
        assert_eq!(Bounds::from_stored(&counts[1..], numbers), None);
        assert_eq!(Bounds::from_stored(&counts, [f64::NAN, 1.0]), None);
    }
}
