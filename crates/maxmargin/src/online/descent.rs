//! [`Descent`]: how gradient steps on a stream are long, how weights shrink, and how points are averaged, for any task.
//!
//! - **sgd**: the last point (Bottou, Stochastic gradient descent tricks, 2012). η falls by the schedule.
//! - **averaged-sgd**: the mean of all points with weights that rise like t³, since a stream has no first pass to leave
//!   out (Shamir and Zhang, Stochastic gradient descent for non-smooth optimization, ICML 2013).
//! - **pegasos**: η = 1/(λ(t + 1)), and the mean of all points with weights that rise like t (Shalev-Shwartz, Singer and
//!   Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007). On squared hinge loss, whose slope has no
//!   bound, no step is longer than 1/(2‖x‖²) for its row x.
//!
//! **The first rate** η₀ is found on the first examples, if it is not given: trials at rates that differ by factors of
//! two, each from the current point over the same examples, judged by the regularised loss on them. An average is judged at
//! the end, the noisy last point at four moments of the last quarter. A stream goes on after its first examples, and the
//! best rate falls with the length of a run: half of the rate is taken, and a quarter of it without an average, unless the
//! stream ends within them. On request the rate is found anew after a number of steps; the schedule then starts again.
//! docs/decisions/first-rates.md has measurements.

use super::state::OnlineState;
use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{Regularisation, Settings, Solver};
use crate::steps::calibrate::least_patiently;
use crate::steps::schedule::{Averaging, Rates};
use crate::wish::{EarlyStopping, Schedule, Stochastic};
use std::ops::Range;

/// Examples on which a rate is tried. Fewer would be noise; more would make a slow stream wait.
const SAMPLE: usize = 4096;

/// Moments of the last quarter of a trial at which its last point is judged.
const POINTS: usize = 4;

/// See the top of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent {
    loss: Loss,
    rates: Rates,
    averaging: Averaging,
    batch: usize,
    /// Whether η₀ must be found before the next step.
    unknown: bool,
    /// The number of steps after which η₀ is found anew.
    recalibrate: Option<u64>,
    /// The step at which the schedule started.
    since: u64,
}

/// The error for a solver that needs stored data.
pub(super) fn not_for_streams(solver: Solver) -> Error {
    Error::new(Code::BadSetting, format!("`{}` does not learn from a stream", solver.name()))
        .help("use ⟦solver=averaged-sgd⟧, sgd or pegasos")
}

/// Refuses settings that no stream can follow.
pub(super) fn refuse(settings: &Settings) -> Result<()> {
    let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
    if settings.scale != Scale::None {
        return bad(
            "this learner does not scale its rows".to_string(),
            "leave ⟦scale⟧ out, or use `stream::learner`, which scales by the rows so far",
        );
    }
    let Stochastic { early_stopping, sample, project, .. } = settings.stochastic;
    let alien = [
        (early_stopping != EarlyStopping::None, "⟦early-stopping⟧"),
        (sample.is_some(), "⟦sample⟧"),
        (project, "⟦project⟧"),
    ];
    if let Some((_, name)) = alien.iter().find(|(given, _)| *given) {
        return bad(format!("{name} is for stored data, and a stream is read once"), "leave it out");
    }
    Ok(())
}

impl Descent {
    /// The steps of these settings, or an error that explains why they cannot learn from a stream.
    pub(super) fn of(settings: &Settings) -> Result<Descent> {
        settings.validate()?;
        refuse(settings)?;
        let Regularisation::Lambda(lambda) = settings.regularisation else {
            let solver = settings.solver.name();
            let message = format!("`{solver}` on a stream takes ⟦lambda⟧: ⟦c⟧ needs a known number of examples");
            return Err(Error::new(Code::BadSetting, message).help("give ⟦lambda⟧, such as 1e-4, instead of ⟦c⟧"));
        };
        let Stochastic { schedule, rate, batch, recalibrate, .. } = settings.stochastic;
        let pegasos = settings.solver == Solver::Pegasos;
        if recalibrate.is_some() && (rate.is_some() || pegasos) {
            return Err(Error::new(Code::BadSetting, "⟦recalibrate⟧ finds the first rate anew, and it is given")
                .help("leave ⟦recalibrate⟧ out, or ⟦rate⟧"));
        }
        let averaging = match settings.solver {
            Solver::Sgd => Averaging::Last,
            Solver::AveragedSgd => Averaging::Late,
            Solver::Pegasos => Averaging::Rising,
            solver => return Err(not_for_streams(solver)),
        };
        let schedule = if pegasos { Schedule::Inverse } else { schedule.unwrap_or_default() };
        let rates = Rates {
            schedule,
            rate: if pegasos { 1.0 / lambda } else { rate.unwrap_or(1.0) },
            lambda,
            averaged: averaging == Averaging::Late,
            longest: f64::INFINITY,
        };
        let unknown = !pegasos && rate.is_none();
        Ok(Descent { loss: settings.loss, rates, averaging, batch: batch as usize, unknown, recalibrate, since: 0 })
    }

    /// The loss.
    #[inline(always)]
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// λ
    pub(crate) fn lambda(&self) -> f64 {
        self.rates.lambda
    }

    /// Examples per step.
    #[inline(always)]
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// Whether the point to predict with is an average.
    pub(crate) fn is_averaged(&self) -> bool {
        self.averaging != Averaging::Last
    }

    /// The length of a step, counted from 0.
    #[inline(always)]
    pub(crate) fn rate(&self, step: u64) -> f64 {
        self.rates.at(step - self.since)
    }

    /// The factor by which a step of this length shrinks the weights.
    #[inline(always)]
    pub(crate) fn shrinking(&self, rate: f64) -> f64 {
        (1.0 - rate * self.rates.lambda).max(0.0)
    }

    /// The weight in the average of the point after a step; none if there is no average.
    #[inline(always)]
    pub(crate) fn share(&self, step: u64) -> Option<f64> {
        self.averaging.weight(step)
    }

    /// Whether steps are limited by the length of their row.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        self.averaging == Averaging::Rising && self.loss == Loss::SquaredHinge
    }

    /// The length of the step of a row with this squared length and weight.
    #[inline(always)]
    pub(crate) fn limited(&self, rate: f64, square: f64, weight: f64) -> f64 {
        rate.min(0.5 / (square * weight))
    }

    /// How many examples should be at hand before this step, to find the first rate; 0 if it is known.
    pub(crate) fn wanted(&self, step: u64) -> usize {
        let again = self.recalibrate.is_some_and(|every| step >= self.since.saturating_add(every));
        if self.unknown || again { SAMPLE.max(self.batch) } else { 0 }
    }

    /// The number of steps until the first rate is due to be found anew.
    pub(crate) fn steps_left(&self, step: u64) -> u64 {
        self.recalibrate.map_or(u64::MAX, |every| self.since.saturating_add(every).saturating_sub(step))
    }

    /// The parts of a trial over some examples, of whole batches. The point is judged after each of them.
    pub(crate) fn parts(&self, examples: Range<usize>) -> Vec<Range<usize>> {
        let points = if self.is_averaged() { 1 } else { POINTS };
        let (batches, mut start) = (examples.len().div_ceil(self.batch.max(1)), examples.start);
        let ends = (1..=points).map(|point| batches - (points - point) * batches / (4 * points));
        let ends = ends.map(|end| (examples.start + end * self.batch.max(1)).min(examples.end));
        ends.map(|end| std::mem::replace(&mut start, end)..end).filter(|part| !part.is_empty()).collect()
    }

    /// Finds the first rate before a step. `whole` says whether the sample has as many examples as were wanted; `cost` is
    /// the regularised loss on it after a trial with given steps.
    pub(crate) fn calibrate(&mut self, step: u64, whole: bool, mut cost: impl FnMut(Descent) -> f64) {
        let trial = Descent { unknown: false, recalibrate: None, since: step, ..*self };
        let rate = least_patiently(&mut |rate| {
            let cost = cost(Descent { rates: Rates { rate, ..trial.rates }, ..trial });
            if cost.is_finite() { cost } else { f64::INFINITY }
        });
        // What is best for the stream is less than what is best for its first examples; averages lose more of the noise.
        let part = match (whole, self.is_averaged()) {
            (false, _) => 1.0,
            (true, true) => 0.5,
            (true, false) => 0.25,
        };
        (self.rates.rate, self.since, self.unknown) = (part * rate, step, false);
    }

    /// Puts the first rate and the start of the schedule into a state.
    pub(crate) fn put(&self, state: &mut OnlineState) {
        state.put_reals("rate", vec![self.rates.rate]);
        state.put_counts("since", vec![self.since]);
    }

    /// Takes them out again, before a step; none if they are invalid.
    pub(crate) fn take(&mut self, state: &OnlineState, step: u64) -> Option<()> {
        let [rate] = state.numbers("rate")?;
        let &[since] = state.counts("since")? else { return None };
        let given = !self.unknown && rate != self.rates.rate;
        (self.rates.rate, self.since, self.unknown) = (rate, since, false);
        (rate > 0.0 && since <= step && !given).then_some(())
    }
}
