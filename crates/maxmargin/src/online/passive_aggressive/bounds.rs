//! [`Bounds`]: the mistakes made so far on a stream, and how many the theory allows.
//!
//! With D the sum of what the steps have added to the dual, any weights u have ½‖u‖² + C·Σ losses(u) ≥ D, since D is the
//! value of a dual point of the rows that were stepped on (where the learner started from zero). A step whose violation
//! is at least v and whose direction has the square q adds at least g = ½v·min(C, v/q), with 1/(2C) in q instead of the
//! limit for PA-II. So the number of mistakes is at most D / min g ≤ max{R², 1/C}·(‖u‖² + 2C·Σ losses(u)) for v = 1 and
//! q ≤ R². What counts as one mistake depends on the rule:
//!
//! | rule | one mistake | v | q |
//! |---|---|---|---|
//! | `pa`, `pa-sequential` | a row on the wrong side at its turn | 1 | ‖x‖² |
//! | `pa-dca` | a batch with such a row | 1 | ‖x‖² |
//! | `pa-max-violators`, `pa-correct-mistakes` | a batch with such a row | 1 | ‖x^J‖² |
//! | `pa-auc` | a pair in the wrong order | 2 | ‖x⁺ − x⁻‖² |
//! | `pa-single-slack` | a batch with w·x̄ ≤ 0 | 1 | ‖x̄‖² |
//!
//! The other bound, 1 − AUC ≤ E(M⁺) + E(M⁻), holds for any scores; it is with the counts of scores (`progress.rs`).

use super::step::Change;
use crate::online::state::OnlineState;

/// See the top of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    steps: u64,
    mistakes: u64,
    contradictions: u64,
    dual: f64,
    /// The least that a mistake has added to the dual, by what is known of its rows.
    least: f64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { steps: 0, mistakes: 0, contradictions: 0, dual: 0.0, least: f64::INFINITY }
    }
}

impl Bounds {
    /// Counts a step.
    #[inline(always)]
    pub(super) fn add(&mut self, change: Change) {
        self.steps += 1;
        self.dual += change.dual;
        self.mistakes += u64::from(change.mistakes);
        self.contradictions += u64::from(change.contradiction);
        self.least = self.least.min(change.least);
    }

    /// Number of batches, those that changed nothing included.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Mistakes on these batches, as the rule counts them.
    pub(crate) fn mistakes(&self) -> u64 {
        self.mistakes
    }

    /// The most mistakes that the theory allows, if it sets a limit.
    pub(crate) fn mistake_bound(&self) -> Option<f64> {
        let bound = if self.mistakes == 0 { 0.0 } else { self.dual / self.least };
        bound.is_finite().then_some(bound)
    }

    /// Batches without weights that reach all margins; only the variant without slack has them.
    pub(crate) fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// Puts everything into a state.
    pub(super) fn put(&self, state: &mut OnlineState) {
        state.put_counts("mistakes", vec![self.steps, self.mistakes, self.contradictions]);
        state.put_reals("dual", vec![self.dual, self.least.min(f64::MAX)]);
    }

    /// Takes it out again; none if it is invalid.
    pub(super) fn take(state: &OnlineState) -> Option<Bounds> {
        let &[steps, mistakes, contradictions] = state.counts("mistakes")? else { return None };
        let [dual, least] = state.numbers("dual")?;
        let least = if least == f64::MAX { f64::INFINITY } else { least };
        (dual >= 0.0 && least >= 0.0).then_some(Bounds { steps, mistakes, contradictions, dual, least })
    }
}
