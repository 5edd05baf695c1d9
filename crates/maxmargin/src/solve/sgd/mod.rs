//! Stochastic gradient descent: draw a constraint, take a step, repeat.
//!
//! ```text
//! min  λ/2·‖w‖² [+ λ/2·b²] + Σ_i p_i · loss(m_i − a_i s_i − t_i b),   s = Xw,  p_i = cost_i / Σ cost,  λ = 1 / Σ cost
//! ```
//! This is λ times the objective of the project, with the bracketed term if the intercept is penalised. Notation of
//! [`crate::task::Constraint`]. A step draws a batch of constraints, each with relative cost c (mean 1), and moves
//!
//! ```text
//! w ← (1 − ηλ)·w + η · mean of c · loss'(violation) · a · x,     b ← b + 0.01·η · mean of c · loss'(violation) · t
//! ```
//! with all violations taken before the step. A penalised b moves like the weight of a constant feature. A free b takes
//! no step with η > 1, since no penalty would bring it back. 1 − ηλ is never below zero. Separate files describe what
//! is drawn ([`draw`], [`pairs`]), how long the steps are ([`crate::steps::schedule`]), and how weights and averages are kept
//! ([`iterate`]). Structured outputs draw whole examples ([`outputs`]).
//!
//! - **sgd**: the last iterate (Bottou, Stochastic gradient descent tricks, 2012).
//! - **averaged-sgd**: the mean of the iterates after the first pass (Polyak & Juditsky 1992; Xu, Towards optimal one
//!   pass large scale learning with averaged stochastic gradient descent, 2011).
//! - **pegasos**: η = 1/(λt), and the mean of all iterates with weights that rise like t (Shalev-Shwartz, Singer &
//!   Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007). On squared hinge loss, whose slope has
//!   no bound, no step is longer than what is stable on a sample.
//!
//! **Projection** onto ‖w‖ ≤ 1/√λ is an option of all three: at the optimum primal and dual agree, so λ‖w‖² is at most
//! the mean gain of the dual variables, which is at most 1 for every loss here.
//!
//! **Stops** after the given number of passes, or by held-out data. It proves no bound: it reports the primal value
//! over all constraints, recomputed from scratch. It keeps the best point seen, including zero weights: if no pass ends
//! below the value of zero weights, as on features of very different sizes, it returns zero weights and says so. A free
//! intercept is then the best one for the weights.
//!
//! **Data larger than memory.** If the memory for the matrix is limited, a pass over rows goes through blocks of rows
//! in a random order, and through the rows of each block in a random order (`data/residency.rs`). Pairs are drawn from
//! all queries, and need the whole matrix.
//!
//! Cost of a pass: O(entries), twice that with averages. It uses one thread, so the number of threads does not change
//! the result; the value is computed in parallel over fixed chunks. It always starts from zero, without a warm start.

mod alias;
mod calibrate;
mod draw;
mod early_stopping;
mod expansion;
mod iterate;
mod merge;
mod outputs;
mod pairs;
#[cfg(test)]
mod tests;

pub use crate::wish::{EarlyStopping, Sample, Schedule};
pub(crate) use draw::{ByRow, Sampled};
pub(crate) use early_stopping::{Measure, Patience, Referee};
pub use expansion::Merging;
pub(crate) use expansion::{KernelDescent, KernelRows, KernelSum};
pub(crate) use pairs::ByPair;

use super::scaled_rows::ScaledRows;
use super::{Progress, Read, Solution, Stop, TracePoint, Witness};
use crate::data::{Design, Rows, with_rows};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::steps::schedule::{Averaging, Rates};
use crate::task::{Constraint, Intercept, Ranking};
use draw::{Draw, Settled};
use iterate::Iterate;
use std::collections::VecDeque;

/// Which of the methods at the top of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stepping {
    Sgd,
    AveragedSgd,
    Pegasos,
}

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct StochasticDescent {
    pub(crate) method: Stepping,
    /// How the rate falls; Pegasos has its own schedule.
    pub(crate) schedule: Schedule,
    /// η₀; by default found on a sample.
    pub(crate) rate: Option<f64>,
    /// Constraints per step.
    pub(crate) batch: usize,
    /// Whether weights are projected onto the ball that contains the optimum.
    pub(crate) project: bool,
    /// Passes to make.
    pub(crate) passes: u64,
    /// Seeds the draws.
    pub(crate) seed: u64,
    /// How the threshold is treated.
    pub(crate) intercept: Intercept,
    /// Return the last point instead of the best one seen.
    pub(crate) keep_last: bool,
    /// Constraints between two judgements of a referee, in place of a pass.
    pub(crate) judge_every: Option<u64>,
}

/// Constraints are drawn at least this far ahead of their step, so that their rows are in the cache by then.
const AHEAD: usize = 8;
/// Constraints drawn at a time, so that their memory accesses overlap.
const AT_A_TIME: usize = 32;

/// How often the cancel flag is checked, in constraints.
const POLL: usize = 512;

impl StochasticDescent {
    /// Learns from the constraints of the problem over the rows of `design`. A referee may stop the run early, and then
    /// decides which point is kept.
    pub(crate) fn solve(
        &self,
        problem: &dyn Sampled,
        design: &Design,
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let progress = Progress::unbounded(observer, cancel);
        with_rows!(design.matrix(), rows => self.run(&ScaledRows::new(design, rows), problem, referee, progress))
    }

    /// The loop over passes of `draws`, with its first rate and its averaging.
    fn start<R: Rows>(
        &self,
        rows: &ScaledRows<'_, R>,
        problem: &dyn Sampled,
        draws: &dyn Draw,
        cancelled: &dyn Fn() -> bool,
    ) -> Loop {
        let rate = match (self.method, self.rate) {
            (Stepping::Pegasos, _) => problem.total_cost(),
            (_, Some(rate)) => rate,
            (_, None) => calibrate::calibrated_rate(self, problem, rows, cancelled),
        };
        let averaging = match self.method {
            Stepping::Sgd => Averaging::Last,
            Stepping::Pegasos => Averaging::Rising,
            Stepping::AveragedSgd => {
                // The first pass leads to where averages make sense. If there is only one pass, its first half does.
                let steps = draws.count().div_ceil(self.batch.max(1)) as u64;
                // Where rows are judged before the end of the pass, half of what is judged first does.
                let judged = self.judge_every.map(|every| every.div_ceil(self.batch.max(1) as u64).min(steps) / 2);
                Averaging::From(judged.unwrap_or(if self.passes > 1 { steps } else { steps / 2 }))
            }
        };
        let mut looped = Loop::new(self, problem, rate, averaging);
        if self.method == Stepping::Pegasos {
            looped.rates.longest = calibrate::longest_stable_rate(self, problem, rows);
        }
        looped
    }

    fn run<R: Rows>(
        &self,
        rows: &ScaledRows<'_, R>,
        problem: &dyn Sampled,
        referee: Option<&Referee<'_>>,
        mut progress: Progress<'_>,
    ) -> Result<Solution> {
        let design = rows.design();
        // Samples touch scattered rows: if memory is limited, these are released from time to time.
        let polled = || {
            design.passed(0..design.rows());
            progress.cancelled()
        };
        let draws = problem.draws(design, self.seed, 0);
        let looped = self.start(rows, problem, &*draws, &polled);
        design.passed(0..design.rows());
        let rate = (self.method != Stepping::Pegasos).then_some(looped.rates.rate);
        let iterate = Iterate::new(rows, self.intercept, self.project);
        let zero = Point::zero(problem, design, self.intercept);
        let cancel = progress.cancel;
        let (intercept, made) = (self.intercept, Made::default());
        let mut steps = Steps { looped, iterate, draws, problem, intercept, cancel, made };
        let driven = self.drive(&mut steps, zero, referee, &mut progress)?;
        Ok(driven.solution(rate, progress.trace))
    }

    /// Makes the passes and keeps the best point.
    fn drive(
        &self,
        steps: &mut dyn Passing,
        zero: Point,
        referee: Option<&Referee<'_>>,
        progress: &mut Progress<'_>,
    ) -> Result<Driven> {
        let mut patience = Patience::new();
        let mut best: Option<(Point, Made)> = None;
        // With a referee, a round may be less than a pass.
        let every = self.judge_every.filter(|_| referee.is_some());
        let (mut round, mut next_check, mut made) = (0, 1, Made::default());
        let stop = loop {
            if made.passes < self.passes {
                match steps.part(every)? {
                    None => break Stop::Cancelled,
                    Some(now) => made = now,
                }
            } else {
                made.passes = self.passes;
            }
            round += 1;
            let last = made.passes >= self.passes;
            // Evaluating all data costs about half a pass, so it is done less and less often, unless a referee judges
            // every round.
            if round < next_check && !last && referee.is_none() {
                continue;
            }
            next_check = round + 1 + round / 4;
            let point = steps.point();
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            let point = point?;
            let held_out = referee.and_then(|referee| (referee.measure)(&point.weights, &point.thresholds));
            let criterion = match (referee, held_out) {
                (None, _) => point.objective,
                (Some(referee), value) => referee.loss(value),
            };
            let improves = patience.improves(round, criterion) || (self.keep_last && referee.is_none());
            // With a referee, report the point that was judged; otherwise the best one.
            let shown = best.as_ref().filter(|_| !improves && referee.is_none()).map_or(&point, |(point, _)| point);
            let ended = progress.report_judged(round, shown.objective, &shown.weights, &shown.thresholds, held_out);
            if improves {
                best = Some((point, made));
            }
            if ended {
                break Stop::Cancelled;
            }
            if referee.is_some() && patience.is_over(round) && !last {
                break Stop::EarlyStopped;
            }
            if last {
                break Stop::Finished;
            }
        };
        // Cancelled within the first pass: no point but zero was evaluated.
        if best.is_none() {
            progress.cancel.check()?;
        }
        // A referee may prefer a point with a larger objective.
        let gained = |(point, _): &(Point, Made)| referee.is_some() || point.objective < zero.objective;
        let (point, stop, judged) = match best.filter(gained) {
            Some((best, judged)) => (best, stop, judged),
            None => (zero, if stop == Stop::Finished { Stop::NoGain } else { stop }, made),
        };
        // With a referee, the passes that led to the model; otherwise all passes made.
        let Made { passes, begun } = if referee.is_some() { judged } else { made };
        let read = every.map(|_| Read { constraints: judged.constraints(steps.count()), of: steps.count() });
        Ok(Driven { point, passes: passes + u64::from(begun > 0), stop, read })
    }
}

/// Passes over random steps, and the point that they lead to.
trait Passing {
    /// Makes the next part of a pass, of about this many constraints, or the rest of it. Returns how much was made in all, or
    /// none after a cancel.
    fn part(&mut self, size: Option<u64>) -> Result<Option<Made>>;
    /// Number of constraints of a pass.
    fn count(&self) -> u64;
    /// The current point with its objective.
    fn point(&mut self) -> Result<Point>;
}

/// How much was made.
#[derive(Clone, Copy, Debug, Default)]
struct Made {
    /// Whole passes.
    passes: u64,
    /// Constraints of the pass that has begun.
    begun: u64,
}

impl Made {
    /// All constraints, for passes of this many.
    fn constraints(self, count: u64) -> u64 {
        self.passes.saturating_mul(count).saturating_add(self.begun)
    }
}

/// What passes led to.
struct Driven {
    point: Point,
    passes: u64,
    stop: Stop,
    read: Option<Read>,
}

impl Driven {
    /// The solution, given the first rate and the history.
    fn solution(self, first_rate: Option<f64>, trace: Vec<TracePoint>) -> Solution {
        let Driven { point: Point { weights, thresholds, objective }, passes, stop, read } = self;
        Solution {
            weights,
            thresholds,
            objective,
            lower_bound: None,
            witness: Witness::Weights,
            passes,
            stop,
            first_rate,
            read,
            kernel: None,
            trace,
        }
    }
}

/// Passes over single constraints.
struct Steps<'a, R> {
    looped: Loop,
    iterate: Iterate<'a, R>,
    draws: Box<dyn Draw + 'a>,
    problem: &'a dyn Sampled,
    intercept: Intercept,
    cancel: &'a Cancel,
    made: Made,
}

impl<R: Rows> Passing for Steps<'_, R> {
    fn part(&mut self, size: Option<u64>) -> Result<Option<Made>> {
        let cancel = self.cancel;
        let size = size.map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX));
        let Some(taken) = self.looped.part(&mut self.iterate, &mut *self.draws, size, &|| cancel.is_raised()) else {
            return Ok(None);
        };
        self.made.begun += taken as u64;
        if !self.looped.is_within() {
            self.iterate.refresh();
            self.made = Made { passes: self.made.passes + 1, begun: 0 };
        }
        Ok(Some(self.made))
    }

    fn count(&self) -> u64 {
        self.draws.count() as u64
    }

    fn point(&mut self) -> Result<Point> {
        Point::of(&self.iterate, self.problem, self.iterate.design(), self.intercept, self.cancel)
    }
}

/// The error for weights that grew too large.
fn thrown() -> Error {
    Error::new(Code::Overflow, "training diverged: the weights became too large")
        .help("leave ⟦rate⟧ out or give a smaller one, scale the features (⟦scale=standard⟧), or try a smaller ⟦c⟧")
}

/// Weights with their objective.
struct Point {
    weights: Vec<f64>,
    thresholds: Vec<f64>,
    objective: f64,
}

impl Point {
    fn of<R: Rows>(
        iterate: &Iterate<'_, R>,
        problem: &dyn Sampled,
        design: &Design,
        intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Point> {
        let (weights, b) = iterate.point();
        if !weights.iter().all(|w| w.is_finite()) || !b.is_finite() {
            return Err(thrown());
        }
        let settled = problem.settled(design, &weights, b, intercept, cancel)?;
        if !settled.objective.is_finite() || !settled.threshold.is_finite() {
            return Err(thrown());
        }
        Ok(Point::new(weights, settled, intercept))
    }

    fn zero(problem: &dyn Sampled, design: &Design, intercept: Intercept) -> Point {
        Point::new(vec![0.0; design.cols()], problem.at_zero(intercept), intercept)
    }

    fn new(weights: Vec<f64>, Settled { threshold, objective }: Settled, intercept: Intercept) -> Point {
        let thresholds = if intercept == Intercept::None { Vec::new() } else { vec![threshold] };
        Point { weights, thresholds, objective }
    }
}

/// The loop itself, without the weights.
struct Loop {
    loss: Loss,
    rates: Rates,
    averaging: Averaging,
    batch: usize,
    radius: Option<f64>,
    /// Steps made.
    t: u64,
    /// Constraints of this pass that are drawn and had no step.
    queue: VecDeque<Constraint>,
    /// Constraints of this pass that are not drawn.
    left: usize,
}

impl Loop {
    fn new(settings: &StochasticDescent, problem: &dyn Sampled, rate: f64, averaging: Averaging) -> Loop {
        let lambda = 1.0 / problem.total_cost();
        let (schedule, averaged) = match settings.method {
            Stepping::Pegasos => (Schedule::Inverse, true),
            method => (settings.schedule, method == Stepping::AveragedSgd),
        };
        Loop {
            loss: problem.loss(),
            rates: Rates { schedule, rate, lambda, averaged, longest: f64::INFINITY },
            averaging,
            batch: settings.batch.max(1),
            radius: settings.project.then(|| lambda.sqrt().recip()),
            t: 0,
            queue: VecDeque::new(),
            left: 0,
        }
    }

    /// One pass over the drawn constraints. Returns false after a cancel.
    fn pass<R: Rows>(
        &mut self,
        iterate: &mut Iterate<'_, R>,
        draws: &mut dyn Draw,
        cancelled: &dyn Fn() -> bool,
    ) -> bool {
        self.part(iterate, draws, usize::MAX, cancelled).is_some()
    }

    /// Whether a pass has begun and not ended.
    fn is_within(&self) -> bool {
        self.left > 0 || !self.queue.is_empty()
    }

    /// The next constraints of a pass, at least this many, or all that are left of it. Returns their number, or none after a
    /// cancel.
    fn part<R: Rows>(
        &mut self,
        iterate: &mut Iterate<'_, R>,
        draws: &mut dyn Draw,
        size: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<usize> {
        if !self.is_within() {
            draws.start();
            self.left = draws.count();
        }
        let (count, mut poll_at, mut taken) = (draws.count(), self.left, 0);
        let mut queue = std::mem::take(&mut self.queue);
        queue.reserve((self.batch.min(count) + AHEAD + AT_A_TIME).saturating_sub(queue.len()));
        let mut steps: Vec<(Constraint, f64)> = Vec::with_capacity(self.batch.min(count));
        loop {
            if queue.len() < self.batch + AHEAD {
                let drawn = (self.batch + AHEAD + AT_A_TIME - queue.len()).min(self.left);
                let before = queue.len();
                queue.extend((0..drawn).map(|_| draws.next()));
                queue.range(before..).for_each(|c| iterate.prefetch(c));
                self.left -= drawn;
            }
            if self.left <= poll_at {
                if cancelled() {
                    return None;
                }
                draws.moved();
                poll_at = self.left.saturating_sub(POLL);
            }
            let batch = self.batch.min(queue.len());
            if batch == 0 || taken >= size {
                self.queue = queue;
                return Some(taken);
            }
            taken += batch;
            let rate = self.rates.at(self.t);
            let share = 1.0 / batch as f64;
            steps.clear();
            steps.extend(queue.drain(..batch).map(|c| {
                let pull = share * c.cost * self.loss.derivative(iterate.violation(&c));
                (c, pull)
            }));
            let weight = self.averaging.weight(self.t).filter(|weight| *weight < 1.0);
            if weight.is_some() {
                iterate.begin_average();
            }
            iterate.shrink((1.0 - rate * self.rates.lambda).max(0.0));
            for (c, pull) in &steps {
                if *pull != 0.0 {
                    iterate.add(c, rate, *pull);
                }
            }
            if let Some(radius) = self.radius {
                iterate.project(radius);
            }
            if let Some(weight) = weight {
                iterate.include(weight);
            }
            self.t += 1;
        }
    }
}

/// Weights that already order most pairs, as a start for other solvers: averaged steps on `pairs` random pairs, with
/// squared hinge loss.
pub(crate) fn quick_start(task: &Ranking, design: &Design, seed: u64, pairs: usize, cancel: &Cancel) -> Vec<f64> {
    // If memory is limited, the rows that were touched are released from time to time.
    let polled = || {
        design.passed(0..design.rows());
        cancel.is_raised()
    };
    let settings = StochasticDescent {
        method: Stepping::AveragedSgd,
        schedule: Schedule::Bottou,
        rate: None,
        batch: 1,
        project: false,
        passes: 1,
        seed,
        intercept: Intercept::None,
        keep_last: true,
        judge_every: None,
    };
    let problem = ByPair::new(task, Loss::SquaredHinge, Sample::Pairs, Some(pairs.max(1)));
    let mut draws = problem.draws(design, seed, 0);
    let weights = with_rows!(design.matrix(), rows => {
        let rows = ScaledRows::new(design, rows);
        let mut iterate = Iterate::new(&rows, settings.intercept, settings.project);
        settings.start(&rows, &problem, &*draws, &polled).pass(&mut iterate, &mut *draws, &polled);
        design.passed(0..design.rows());
        iterate.point().0
    });
    // After an overflow, zero is as good a start as any.
    if weights.iter().all(|w| w.is_finite()) { weights } else { vec![0.0; design.cols()] }
}
