//! [`Judgements`]: what a learner that judges itself has found so far, and when it stops.

use super::state::OnlineState;

/// How many judgements in a row may be no better than the best one. `train` has the same patience with passes.
const PATIENCE: u64 = 3;

/// See the top of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judgements {
    /// Number of examples between two judgements.
    pub every: u64,
    /// Number of judgements.
    pub count: u64,
    /// The best result, and the number of examples seen at that time.
    pub best: Option<(f64, u64)>,
    /// The last result.
    pub last: Option<f64>,
    /// Whether results are those on held-out data. Otherwise they are mean losses.
    pub held_out: bool,
    /// Whether the learner has stopped.
    pub stopped: bool,
    /// The number of the judgement with the best result.
    best_count: u64,
    /// The number of examples at the last judgement.
    pub(crate) at: u64,
    /// The sums of losses and of weights at that time.
    pub(crate) totals: (f64, f64),
}

impl Judgements {
    /// Nothing was judged so far.
    pub(crate) fn new(every: u64, held_out: bool) -> Judgements {
        Judgements { every, held_out, ..Judgements::default() }
    }

    /// Records a result.
    pub(crate) fn record(&mut self, result: f64, higher_is_better: bool, seen: u64) {
        self.count += 1;
        self.last = Some(result);
        let better = |best: f64| if higher_is_better { result > best } else { result < best };
        if self.best.is_none_or(|(best, _)| better(best)) {
            (self.best, self.best_count) = (Some((result, seen)), self.count);
        }
        self.stopped = self.count >= self.best_count + PATIENCE;
    }

    pub(crate) fn put(&self, state: &mut OnlineState) {
        let (best, best_at) = self.best.unwrap_or_default();
        let flags = [u64::from(self.held_out), u64::from(self.stopped)];
        let counts = [self.count, self.best_count, best_at, self.at];
        state.put_counts("judged-counts", [&counts[..], &flags[..]].concat());
        let (loss, weight) = self.totals;
        state.put_reals("judged-losses", vec![best, self.last.unwrap_or_default(), loss, weight]);
    }

    /// Takes it out of a state; none if it is invalid.
    pub(crate) fn take(state: &OnlineState, every: u64) -> Option<Judgements> {
        let &[count, best_count, best_at, at, held_out @ 0..=1, stopped @ 0..=1] = state.counts("judged-counts")?
        else {
            return None;
        };
        let [best, last, loss, weight] = state.numbers("judged-losses")?;
        let found = Judgements {
            every,
            count,
            best: (count > 0).then_some((best, best_at)),
            last: (count > 0).then_some(last),
            held_out: held_out == 1,
            stopped: stopped == 1,
            best_count,
            at,
            totals: (loss, weight),
        };
        let in_order = best_count <= count && (best_count > 0) == (count > 0) && best_at <= at;
        (in_order && found.stopped == (count > 0 && count >= best_count + PATIENCE)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_judgement_without_a_new_best_one_is_the_last() {
        for higher_is_better in [false, true] {
            let mut found = Judgements { every: 10, ..Judgements::default() };
            let sign = if higher_is_better { -1.0 } else { 1.0 };
            for (place, loss) in [3.0, 2.0, 2.5, 2.0, 1.0, 1.5, 1.0, 1.25].into_iter().enumerate() {
                assert!(!found.stopped);
                found.record(sign * loss, higher_is_better, 10 * (place as u64 + 1));
                found.at = 10 * (place as u64 + 1);
                let mut state = OnlineState::default();
                found.put(&mut state);
                assert_eq!(Judgements::take(&state, 10), Some(found));
            }
            assert!(found.stopped);
            assert_eq!((found.best, found.last, found.count), (Some((sign, 50)), Some(1.25 * sign), 8));
        }
    }

    #[test]
    fn a_damaged_state_is_not_taken() {
        let mut found = Judgements { every: 10, ..Judgements::default() };
        found.record(1.0, false, 10);
        let mut state = OnlineState::default();
        for counts in [vec![1, 2, 10, 10, 0, 0], vec![1, 1, 10, 10, 0, 1], vec![1, 1, 20, 10, 0, 0], vec![1, 1]] {
            found.put(&mut state);
            state.put_counts("judged-counts", counts);
            assert_eq!(Judgements::take(&state, 10), None);
        }
    }
}
