//! Stochastic steps for losses of several scores: draw an example, take the slope of its loss, step. Examples are rows of
//! several classes, or structured outputs, whose slope is that of the most violated output.
//!
//! ```text
//! min  λ/2·‖w‖² + Σ_i p_i · loss_i(X_i w),   p_i = C_i / Σ C,  λ = 1 / Σ C
//! w ← (1 − ηλ)·w − η · mean of c_i · slope_i · X_i
//! ```
//! c_i is p_i times the number of examples. A pass draws every example once, in random order. The slopes of a batch are
//! taken at the same weights, on all threads. Lengths of steps, averages and stopping are those of single constraints (see
//! the folder); the first rate is found on a sample of the examples. Weights of shared scores move like those of features.
//! Free ones, the constant terms of classes, are not shrunk, and their steps are a hundredth as long and never above it.
//! (Ratliff, Bagnell & Zinkevich, (Online) subgradient methods for structured prediction, AISTATS 2007; Shalev-Shwartz,
//! Singer & Srebro, ICML 2007.)
//!
//! **Projection** is onto ‖w‖² ≤ the objective of zero weights, in which C weighs the sum: at the optimum, ‖w‖² is the gain
//! of the dual variables without the loss, and the gain of an example is at most its loss at zero scores.
//!
//! Shrinking multiplies no weight: it raises a divisor, and averages are kept as in [`super::iterate`]. Cost of a pass: a
//! search for each example, and three walks over its features. It proves no bound.

use super::{Made, Passing, Point, Referee, Stepping, StochasticDescent, thrown};
use crate::data::{Design, with_rows};
use crate::error::Result;
use crate::parallel::{self, Spare};
use crate::random::Random;
use crate::run::{Cancel, Event, Observer};
use crate::solve::oracle_risk::{MostViolated, objective_of_outputs};
use crate::solve::output_space::{Laid, Point as Weights, Space};
use crate::solve::scaled_rows::ScaledRows;
use crate::solve::{Progress, Solution, objective_of_classes};
use crate::steps::calibrate::least;
use crate::steps::schedule::{Averaging, Rates};
use crate::structured::{Plane, Scores};
use crate::task::{Intercept, Joint, Objective};
use crate::wish::Schedule;
use std::ops::Range;

/// The stream of random numbers for the order of examples; the sample has stream 1.
const ORDER: u64 = 0x7367_6f00;

/// Examples of the sample on which the first rate is found.
const SAMPLE: usize = 300;

/// Larger divisors are multiplied out. They would cost digits of the average.
const MOST: f64 = 1e5;

/// Steps of free constants are this much shorter than those of weights.
const FREE_STEP: f64 = 0.01;

/// How often the cancel flag is checked, in examples.
const POLL: usize = 16;

/// Buffers of one example.
#[derive(Default)]
pub(super) struct Buffers {
    scores: Vec<f64>,
    slopes: Vec<f64>,
    output: Vec<u32>,
}

/// A sum of losses over examples, each a function of several scores.
pub(super) trait Losses: Sync {
    /// Number of examples.
    fn examples(&self) -> usize;
    /// The rows of an example.
    fn rows(&self, example: usize) -> Range<usize>;
    /// Number of scores per row.
    fn outputs(&self) -> usize;
    /// Number of shared scores.
    fn shared(&self) -> usize;
    /// The weight of an example's loss.
    fn cost(&self, example: usize) -> f64;
    /// Called at new shared scores.
    fn prepare(&self, _shared: &[f64]) -> Result<()> {
        Ok(())
    }
    /// The loss of an example without its cost, and its slopes. `at` is read through the buffers, which are free otherwise.
    fn at(&self, example: usize, at: Scores<'_>, work: (&mut Vec<u32>, &mut Vec<f64>)) -> Result<(Plane, f64)>;
    /// The objective, in which C weighs the sum.
    fn objective(&self, design: &Design, point: (&[f64], &[f64]), cancel: &Cancel) -> Result<f64>;
    /// The most that the slope of an example's loss changes along a unit of scores, or none if slopes are bounded.
    fn most_curved(&self) -> Option<f64> {
        None
    }
    /// Searches made, and the seconds they took.
    fn searches(&self) -> Option<(u64, f64)> {
        None
    }
}

impl Losses for MostViolated<'_> {
    fn examples(&self) -> usize {
        self.structure.examples()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.structure.rows(example)
    }

    fn outputs(&self) -> usize {
        self.structure.outputs().max(1)
    }

    fn shared(&self) -> usize {
        self.structure.shared()
    }

    fn cost(&self, example: usize) -> f64 {
        self.cost * self.structure.weight(example)
    }

    fn prepare(&self, shared: &[f64]) -> Result<()> {
        self.structure.prepare(shared)
    }

    fn at(&self, example: usize, at: Scores<'_>, (output, _): (&mut Vec<u32>, &mut Vec<f64>)) -> Result<(Plane, f64)> {
        self.searches.time(|| self.structure.most_violated(example, at, output))?;
        let mut plane = Plane::default();
        self.structure.plane(example, output, &mut plane)?;
        let value = plane.value(at);
        Ok((plane, value))
    }

    fn objective(&self, design: &Design, point: (&[f64], &[f64]), cancel: &Cancel) -> Result<f64> {
        objective_of_outputs(self, design, point, cancel)
    }

    fn searches(&self) -> Option<(u64, f64)> {
        Some(self.searches.total())
    }
}

/// Rows of several classes in one problem.
struct Classes<'a> {
    joint: &'a Joint,
    rule: Intercept,
}

impl Losses for Classes<'_> {
    fn examples(&self) -> usize {
        self.joint.rows()
    }

    fn rows(&self, example: usize) -> Range<usize> {
        example..example + 1
    }

    fn outputs(&self) -> usize {
        self.joint.classes()
    }

    fn shared(&self) -> usize {
        self.joint.thresholds()
    }

    fn cost(&self, example: usize) -> f64 {
        self.joint.cost(example)
    }

    fn at(&self, row: usize, at: Scores<'_>, (_, slopes): (&mut Vec<u32>, &mut Vec<f64>)) -> Result<(Plane, f64)> {
        let mut scores = at.rows.to_vec();
        scores.iter_mut().zip(at.shared).for_each(|(score, constant)| *score += constant);
        slopes.resize(scores.len(), 0.0);
        let value = self.joint.value_and_slopes(row, &scores, slopes);
        let entries = || (0u32..).zip(slopes.iter().copied()).filter(|(_, slope)| *slope != 0.0);
        let shared = if at.shared.is_empty() { Vec::new() } else { entries().collect() };
        Ok((Plane { loss: 0.0, rows: entries().collect(), shared }, value))
    }

    fn objective(&self, design: &Design, point: (&[f64], &[f64]), cancel: &Cancel) -> Result<f64> {
        objective_of_classes(self.joint, design, point, self.rule, cancel)
    }

    fn most_curved(&self) -> Option<f64> {
        self.joint.most_curved()
    }
}

/// What does not change during a run.
struct Fixed<'a> {
    task: &'a dyn Losses,
    space: &'a dyn Space,
    outputs: usize,
    /// Whether shared scores are free instead of penalised.
    free: bool,
    /// Σ C_i, which is 1/λ.
    total: f64,
    /// By what an example's cost is multiplied, so that the mean is 1.
    share: f64,
    /// The longest rate of Pegasos, whose first ones are otherwise too long for slopes without a bound: beyond it, a step
    /// can move an example farther from its margin.
    longest: f64,
    buffers: Spare<Buffers>,
}

impl StochasticDescent {
    /// Learns from the examples of a structure over the rows of `design`. A referee may stop the run early, and then
    /// decides which point is kept.
    pub(crate) fn solve_outputs(
        &self,
        task: &MostViolated<'_>,
        design: &Design,
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        self.solve_losses(task, design, referee, observer, cancel)
    }

    /// Learns from rows of several classes.
    pub(crate) fn solve_classes(
        &self,
        joint: &Joint,
        design: &Design,
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        self.solve_losses(&Classes { joint, rule: self.intercept }, design, referee, observer, cancel)
    }

    fn solve_losses(
        &self,
        task: &dyn Losses,
        design: &Design,
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let outputs = task.outputs();
        let counting: Vec<usize> = (0..task.examples()).filter(|&example| task.cost(example) > 0.0).collect();
        let total: f64 = counting.iter().map(|&example| task.cost(example)).sum();
        let share = counting.len() as f64 / total;
        let free = self.intercept == Intercept::Free;
        let shared = if free { 0 } else { task.shared() };
        with_rows!(design.matrix(), rows => {
            let space = Laid { rows: ScaledRows::new(design, rows), outputs, shared };
            let longest = task.most_curved().map_or(f64::INFINITY, |curved| {
                let constant = if shared == 0 { 0.0 } else { 1.0 };
                let squares = |example| task.rows(example).map(|row| space.rows.square(row) + constant).sum::<f64>();
                let steepest = |&example: &usize| share * task.cost(example) * squares(example);
                1.0 / (curved * counting.iter().map(steepest).fold(0.0, f64::max))
            });
            let fixed = Fixed { task, space: &space, outputs, free, total, share, longest, buffers: Spare::default() };
            self.run_outputs(&fixed, design, &counting, referee, observer, cancel)
        })
    }

    fn run_outputs(
        &self,
        fixed: &Fixed<'_>,
        design: &Design,
        counting: &[usize],
        referee: Option<&Referee<'_>>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::unbounded(observer, cancel);
        let (weights, thresholds) = (vec![0.0; design.cols() * fixed.outputs], vec![0.0; fixed.task.shared()]);
        let objective = fixed.task.objective(design, (&weights, &thresholds), cancel)?;
        let zero = Point { weights, thresholds, objective };
        let radius = objective.sqrt();
        let rate = match (self.method, self.rate) {
            (Stepping::Pegasos, _) => fixed.total,
            (_, Some(rate)) => rate,
            (_, None) => self.calibrated(fixed, counting, radius, cancel)?,
        };
        let averaging = match self.method {
            Stepping::Sgd => Averaging::Last,
            Stepping::Pegasos => Averaging::Rising,
            Stepping::AveragedSgd => {
                let steps = counting.len().div_ceil(self.batch.max(1)) as u64;
                let judged = self.judge_every.map(|every| every.div_ceil(self.batch.max(1) as u64).min(steps) / 2);
                Averaging::From(judged.unwrap_or(if self.passes > 1 { steps } else { steps / 2 }))
            }
        };
        let mut steps = Steps {
            looped: self.looped(fixed, rate, averaging, radius),
            fixed,
            design,
            order: counting.to_vec(),
            random: Random::new(self.seed, ORDER, 0),
            cancel,
            made: Made::default(),
        };
        let driven = self.drive(&mut steps, zero, referee, &mut progress)?;
        if let Some((calls, seconds)) = fixed.task.searches() {
            // The answer does not matter: the run is over.
            let _ = progress.observer().report(&Event::Searches { calls, seconds });
        }
        Ok(driven.solution((self.method != Stepping::Pegasos).then_some(rate), progress.trace))
    }

    fn looped(&self, fixed: &Fixed<'_>, rate: f64, averaging: Averaging, radius: f64) -> Loop {
        let lambda = 1.0 / fixed.total;
        let (schedule, averaged, longest) = match self.method {
            Stepping::Pegasos => (Schedule::Inverse, true, fixed.longest),
            method => (self.schedule, method == Stepping::AveragedSgd, f64::INFINITY),
        };
        Loop {
            rates: Rates { schedule, rate, lambda, averaged, longest },
            averaging,
            batch: self.batch.max(1),
            radius: self.project.then_some(radius),
            t: 0,
            iterate: Iterate::new(fixed, self.project),
        }
    }

    /// The first rate that gives the smallest mean loss on a sample, penalty included, after one pass over it.
    fn calibrated(&self, fixed: &Fixed<'_>, counting: &[usize], radius: f64, cancel: &Cancel) -> Result<f64> {
        let mut sample = counting.to_vec();
        Random::new(self.seed, ORDER, 1).shuffle(&mut sample);
        sample.truncate(SAMPLE);
        let mut failure = None;
        let mut cost = |rate: f64| {
            let mut looped = self.looped(fixed, rate, Averaging::Last, radius);
            let mut judged = || -> Result<f64> {
                looped.pass(fixed, &sample, cancel)?;
                let Loop { iterate, .. } = &mut looped;
                iterate.write_out();
                let mut loss = 0.0;
                let shared = fixed.prepared(iterate)?;
                for &example in &sample {
                    let cost = fixed.relative_cost(example);
                    loss += fixed.found(example, iterate, &shared)?.map_or(0.0, |plane| cost * plane.1);
                }
                let (_, square) = fixed.space.weights(&iterate.vector);
                let shared: f64 = iterate.vector.shared.iter().map(|weight| weight * weight).sum();
                Ok(0.5 * (square + shared) / fixed.total + loss / sample.len().max(1) as f64)
            };
            match judged() {
                Ok(cost) if cost.is_finite() => cost,
                Ok(_) => f64::INFINITY,
                Err(error) => {
                    failure.get_or_insert(error);
                    0.0
                }
            }
        };
        let rate = least(&mut cost);
        match failure {
            Some(error) => Err(error),
            None => Ok(rate),
        }
    }
}

impl Fixed<'_> {
    fn relative_cost(&self, example: usize) -> f64 {
        self.share * self.task.cost(example)
    }

    /// The weights of shared scores at which searches follow.
    fn prepared(&self, at: &Iterate) -> Result<Vec<f64>> {
        let shared = match self.free {
            true => at.constants.clone(),
            false => at.vector.shared.iter().map(|weight| weight / at.divisor).collect(),
        };
        self.task.prepare(&shared)?;
        Ok(shared)
    }

    /// The slopes of an example's loss with its value, or none if it costs nothing.
    fn found(&self, example: usize, at: &Iterate, shared: &[f64]) -> Result<Option<(Plane, f64)>> {
        self.buffers.lend(|buffers| {
            let Buffers { scores, slopes, output } = buffers;
            let rows = self.task.rows(example);
            scores.resize(rows.len() * self.outputs, 0.0);
            self.space.scores(rows, &at.vector, scores);
            scores.iter_mut().for_each(|score| *score /= at.divisor);
            let (plane, value) = self.task.at(example, Scores { rows: scores, shared }, (output, slopes))?;
            if value.is_nan() {
                return Err(thrown());
            }
            Ok((value > 0.0).then_some((plane, value)))
        })
    }
}

/// The steps of a run.
struct Steps<'a> {
    looped: Loop,
    fixed: &'a Fixed<'a>,
    design: &'a Design,
    order: Vec<usize>,
    random: Random,
    cancel: &'a Cancel,
    made: Made,
}

impl Passing for Steps<'_> {
    fn part(&mut self, size: Option<u64>) -> Result<Option<Made>> {
        let begun = self.made.begun as usize;
        if begun == 0 {
            self.random.shuffle(&mut self.order);
        }
        let batch = self.looped.batch as u64;
        let size = size.map_or(u64::MAX, |size| size.checked_next_multiple_of(batch).unwrap_or(u64::MAX));
        let end = begun.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(self.order.len());
        self.looped.pass(self.fixed, &self.order[begun..end], self.cancel)?;
        self.made.begun = end as u64;
        if end == self.order.len() {
            self.looped.iterate.refresh(self.fixed.space);
            self.made = Made { passes: self.made.passes + 1, begun: 0 };
        }
        Ok(Some(self.made).filter(|_| !self.cancel.is_raised()))
    }

    fn count(&self) -> u64 {
        self.order.len() as u64
    }

    fn point(&mut self) -> Result<Point> {
        let (weights, thresholds) = self.looped.iterate.point(self.fixed.space);
        if !weights.iter().chain(&thresholds).all(|weight| weight.is_finite()) {
            return Err(thrown());
        }
        let objective = self.fixed.task.objective(self.design, (&weights, &thresholds), self.cancel)?;
        if !objective.is_finite() {
            return Err(thrown());
        }
        Ok(Point { weights, thresholds, objective })
    }
}

/// The loop over examples.
struct Loop {
    rates: Rates,
    averaging: Averaging,
    batch: usize,
    radius: Option<f64>,
    /// Steps made.
    t: u64,
    iterate: Iterate,
}

impl Loop {
    /// One pass over examples in this order. A cancel ends it early.
    fn pass(&mut self, fixed: &Fixed<'_>, order: &[usize], cancel: &Cancel) -> Result<()> {
        for (at, batch) in order.chunks(self.batch).enumerate() {
            if at % POLL.div_ceil(self.batch) == 0 && cancel.is_raised() {
                return Ok(());
            }
            let rate = self.rates.at(self.t);
            let share = 1.0 / batch.len() as f64;
            let iterate = &self.iterate;
            let shared = fixed.prepared(iterate)?;
            let found = parallel::try_map(batch.len(), |place| fixed.found(batch[place], iterate, &shared))?;
            let weight = self.averaging.weight(self.t).filter(|weight| *weight < 1.0);
            if weight.is_some() {
                self.iterate.begin_average(fixed.space);
            }
            self.iterate.shrink((1.0 - rate * self.rates.lambda).max(0.0));
            for (&example, found) in batch.iter().zip(found) {
                if let Some((plane, _)) = found {
                    let amount = rate * share * fixed.relative_cost(example);
                    self.iterate.subtract(fixed, (example, &plane), amount);
                    if fixed.free {
                        let amount = FREE_STEP * rate.min(1.0) * share * fixed.relative_cost(example);
                        self.iterate.move_constants(&plane, amount);
                    }
                }
            }
            if let Some(radius) = self.radius {
                self.iterate.project(radius);
            }
            if let Some(weight) = weight {
                self.iterate.include(weight);
            }
            self.t += 1;
        }
        Ok(())
    }
}

/// The running average of the iterates: a = (A + f·W) / E.
struct Average {
    vector: Weights,
    /// f
    fraction: f64,
    /// E
    divisor: f64,
    constants: Vec<f64>,
}

/// Weights w = W / D, and their average, see [`super::iterate`].
struct Iterate {
    vector: Weights,
    /// D
    divisor: f64,
    /// None while the average is the iterate itself.
    average: Option<Average>,
    /// Free shared scores, and none if they are penalised: those are part of the vector.
    constants: Vec<f64>,
    /// ‖w‖², if it is needed.
    square: Option<f64>,
    steps: Vec<f64>,
}

impl Iterate {
    fn new(fixed: &Fixed<'_>, knows_its_length: bool) -> Self {
        let square = knows_its_length.then_some(0.0);
        let constants = vec![0.0; if fixed.free { fixed.task.shared() } else { 0 }];
        Iterate { vector: fixed.space.zero(), divisor: 1.0, average: None, constants, square, steps: Vec::new() }
    }

    /// Takes a step of the free constants.
    fn move_constants(&mut self, plane: &Plane, amount: f64) {
        plane.shared.iter().for_each(|&(place, slope)| self.constants[place as usize] -= amount * slope);
    }

    /// Multiplies the weights by a factor from 0 to 1.
    fn shrink(&mut self, factor: f64) {
        if factor * MOST < self.divisor {
            self.write_out();
            self.vector.scale(factor);
        } else {
            self.divisor /= factor;
        }
        if let Some(square) = &mut self.square {
            *square *= factor * factor;
        }
    }

    /// slope · s at the current weights.
    fn product(&self, fixed: &Fixed<'_>, (example, plane): (usize, &Plane)) -> f64 {
        let rows = fixed.task.rows(example);
        let mut scores = vec![0.0; rows.len() * fixed.outputs];
        fixed.space.scores(rows, &self.vector, &mut scores);
        let penalised: &[(u32, f64)] = if fixed.free { &[] } else { &plane.shared };
        let shared = penalised.iter().map(|&(place, slope)| slope * self.vector.shared[place as usize]);
        let rows = plane.rows.iter().map(|&(place, slope)| slope * scores[place as usize]);
        (rows.sum::<f64>() + shared.sum::<f64>()) / self.divisor
    }

    /// Takes a step against the slope of a plane.
    fn subtract(&mut self, fixed: &Fixed<'_>, at: (usize, &Plane), amount: f64) {
        let before = self.square.map(|_| self.product(fixed, at));
        let (rows, plane) = (fixed.task.rows(at.0), at.1);
        let penalised: &[(u32, f64)] = if fixed.free { &[] } else { &plane.shared };
        let mut along = |vector: &mut Weights, step: f64| {
            self.steps.clear();
            self.steps.resize(rows.len() * fixed.outputs, 0.0);
            plane.rows.iter().for_each(|&(place, slope)| self.steps[place as usize] += step * slope);
            penalised.iter().for_each(|&(place, slope)| vector.shared[place as usize] += step * slope);
            fixed.space.add(rows.clone(), &self.steps, vector);
        };
        let step = amount * self.divisor;
        along(&mut self.vector, -step);
        if let Some(average) = &mut self.average {
            along(&mut average.vector, average.fraction * step);
        }
        if let (Some(square), Some(before)) = (self.square, before) {
            self.square = Some((square - amount * (before + self.product(fixed, at))).max(0.0));
        }
    }

    /// Projects the weights onto a ball if they are outside.
    fn project(&mut self, radius: f64) {
        if let Some(square) = self.square.filter(|square| *square > radius * radius) {
            self.shrink(radius / square.sqrt());
        }
    }

    /// Separates the average from the iterate.
    fn begin_average(&mut self, space: &dyn Space) {
        let (divisor, constants) = (self.divisor, &self.constants);
        self.average.get_or_insert_with(|| Average {
            vector: space.zero(),
            fraction: 1.0,
            divisor,
            constants: constants.clone(),
        });
    }

    /// a ← (1 − μ)a + μw; does nothing while the average is the iterate itself.
    fn include(&mut self, weight: f64) {
        let Some(average) = &mut self.average else { return };
        average.constants.iter_mut().zip(&self.constants).for_each(|(mean, now)| *mean += weight * (now - *mean));
        average.divisor /= 1.0 - weight;
        average.fraction += weight * average.divisor / self.divisor;
        if average.divisor > MOST {
            self.write_out();
        }
    }

    /// Makes all divisors 1.
    fn write_out(&mut self) {
        if let Some(average) = &mut self.average {
            average.vector.add_times(average.fraction, &self.vector);
            average.vector.scale(1.0 / average.divisor);
            (average.fraction, average.divisor) = (0.0, 1.0);
        }
        self.vector.scale(1.0 / self.divisor);
        self.divisor = 1.0;
    }

    /// Recomputes ‖w‖², so that rounding does not add up over many steps.
    fn refresh(&mut self, space: &dyn Space) {
        if self.square.is_some() {
            self.write_out();
            let shared: f64 = self.vector.shared.iter().map(|weight| weight * weight).sum();
            self.square = Some(space.weights(&self.vector).1 + shared);
        }
    }

    /// The weights of the scaled features and those of shared scores, averaged if there is an average.
    fn point(&mut self, space: &dyn Space) -> (Vec<f64>, Vec<f64>) {
        self.write_out();
        let (vector, constants) = match &self.average {
            Some(average) => (&average.vector, &average.constants),
            None => (&self.vector, &self.constants),
        };
        let shared = if constants.is_empty() { vector.shared.clone() } else { constants.clone() };
        (space.weights(vector).0, shared)
    }
}
