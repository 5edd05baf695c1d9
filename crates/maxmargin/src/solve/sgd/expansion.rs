//! Stochastic gradient descent on a sum of kernels, within a budget of support vectors.
//!
//! ```text
//! min over f, b   λ/2·‖f‖² [+ λ/2·b²] + Σ_i p_i · loss(m_i − a_i s_i − t_i b),   s_i = f(x_i) [− f(z_i)],   f = Σ_j c_j k(v_j, ·)
//! ```
//! with p and λ as at the top of [`super`]. A step draws a batch of constraints and moves
//!
//! ```text
//! c_j ← (1 − ηλ)·c_j for every j,   then  c_x += η · mean of c · loss'(violation) · a,  and c_z −= the same where there is a z
//! ```
//! where a row that is not yet a support vector becomes one. Shrinking is one factor that all coefficients share. It is
//! multiplied into the coefficients before it becomes too small. The intercept moves as it does for weights.
//!
//! **Rates.** 1/(λt), as in Pegasos (Shalev-Shwartz, Singer & Srebro, ICML 2007), with which every step of the run has
//! the same weight in the last function; or a schedule with a first rate given by the user. On squared hinge loss no
//! step is longer than what is stable, unless the user gives the rate.
//!
//! **Budget.** If there are more vectors than allowed, the one with the smallest coefficient is merged with the vector
//! of the same sign that gives the smallest loss ([`super::merge`]). With kernels other than the Gaussian, and if no
//! other vector has its sign, it is removed. The squares of these changes of the function are summed up, and shrink as
//! the function does: if the changes were independent of each other, the root of the sum would be the distance from the
//! function that the same steps without a budget would have made.
//!
//! **Stops** after the given number of passes. It proves no bound. From time to time it recomputes the objective over
//! all rows, and it keeps the best function seen, including zero.
//!
//! Cost of a step: the kernel values of one or two rows with all vectors, and twice that if vectors are merged; one
//! thread. It keeps no averages: a mean of functions would need the vectors of all of them.

use super::draw::{Draw, Listed, Sampled, Settled};
use super::iterate::intercept_rate;
use super::merge::{about_lost, merged, table};
use super::{Stop, thrown};
use crate::data::{Design, Matrix};
use crate::error::Result;
use crate::kernel::{Element, Kernel, Points, Support, Vector, weighted_sum};
use crate::loss::Loss;
use crate::run::{Cancel, Observer};
use crate::solve::{Progress, TracePoint};
use crate::steps::schedule::Rates;
use crate::task::{Constraint, Intercept};
use crate::wish::Schedule;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct KernelDescent {
    pub(crate) schedule: Schedule,
    /// η₀; by default 1/λ.
    pub(crate) rate: Option<f64>,
    /// Constraints per step.
    pub(crate) batch: usize,
    pub(crate) passes: u64,
    pub(crate) seed: u64,
    pub(crate) intercept: Intercept,
    /// The maximum number of support vectors.
    pub(crate) budget: Option<usize>,
}

/// What a budget cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Merging {
    /// Vectors that were merged with another one.
    pub merged: u64,
    /// Vectors that were removed.
    pub removed: u64,
    /// How far these changes moved the function, as if they were independent of each other: √Σ‖Δ‖², shrinking as it
    /// does.
    pub lost: f64,
    /// ‖f‖, for comparison.
    pub length: f64,
}

/// What the solver returns.
#[derive(Debug)]
pub(crate) struct KernelSum {
    pub(crate) vectors: Matrix,
    pub(crate) coefficients: Vec<f64>,
    pub(crate) threshold: f64,
    pub(crate) objective: f64,
    pub(crate) passes: u64,
    pub(crate) stop: Stop,
    pub(crate) merging: Merging,
    pub(crate) trace: Vec<TracePoint>,
}

/// Scores of all rows under a sum of kernels, and ‖f‖².
pub(crate) type Scored<'a> = &'a dyn Fn(Matrix, &[f64]) -> Result<(Vec<f64>, f64)>;

/// The rows and their kernel.
#[derive(Clone, Copy)]
pub(crate) struct KernelRows<'a> {
    pub(crate) design: &'a Design,
    pub(crate) points: &'a Points,
    pub(crate) kernel: &'a Kernel,
}

/// How often the cancel flag is checked, in multiplications.
const POLL: usize = 1 << 25;

/// A common factor below this is multiplied into the coefficients.
const LEAST_SCALE: f64 = 1e-9;

/// The size of the sample for the longest stable rate, and its random stream.
const SAMPLE: usize = 10_000;
const SAMPLE_STREAM: u64 = 1;

impl KernelDescent {
    pub(crate) fn solve<T: Element>(
        &self,
        problem: &dyn Sampled,
        rows: KernelRows<'_>,
        scored: Scored<'_>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<KernelSum> {
        let mut progress = Progress::unbounded(observer, cancel);
        let mut draws = problem.draws(rows.design, self.seed, 0);
        let lambda = 1.0 / problem.total_cost();
        let longest = if self.rate.is_none() { self.longest_stable_rate(problem, rows) } else { f64::INFINITY };
        let rate = self.rate.unwrap_or(problem.total_cost());
        let rates = Rates { schedule: self.schedule, rate, lambda, averaged: false, longest };
        let mut state = State::<T>::new(self, rows, problem.loss());
        let zero = problem.at_zero(self.intercept);
        let mut best: Option<Best> = None;
        let (mut pass, mut next_check, mut steps) = (0, 1, 0);
        let stop = loop {
            if !state.pass(&mut *draws, &rates, &mut steps, cancel) {
                break Stop::Cancelled;
            }
            pass += 1;
            let last = pass >= self.passes;
            if pass < next_check && !last {
                continue;
            }
            next_check = pass + 1 + pass / 4;
            let found = state.settled(problem, scored, cancel);
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            let found = found?;
            if best.as_ref().is_none_or(|best| found.settled.objective < best.settled.objective) {
                best = Some(found);
            }
            let shown = best.as_ref().map_or(zero.objective, |best| best.settled.objective);
            if progress.report(pass, shown, &[], &[]) {
                break Stop::Cancelled;
            }
            if last {
                break Stop::Finished;
            }
        };
        // Cancelled within the first pass: no function but zero was evaluated.
        if best.is_none() {
            cancel.check()?;
        }
        let (best, stop) = match best.filter(|best| best.settled.objective < zero.objective) {
            Some(best) => (best, stop),
            None => {
                let none =
                    Best { vectors: Vec::new(), coefficients: Vec::new(), settled: zero, merging: Merging::default() };
                (none, if stop == Stop::Finished { Stop::NoGain } else { stop })
            }
        };
        Ok(KernelSum {
            vectors: state.support.matrix_of(&best.vectors)?,
            coefficients: best.coefficients,
            threshold: best.settled.threshold,
            objective: best.settled.objective,
            passes: pass,
            stop,
            merging: best.merging,
            trace: progress.trace,
        })
    }

    /// As for weights: 1 / (2 · the largest cost · ‖direction‖²) on squared hinge loss, and no limit for other losses.
    fn longest_stable_rate(&self, problem: &dyn Sampled, rows: KernelRows<'_>) -> f64 {
        if problem.loss() != Loss::SquaredHinge {
            return f64::INFINITY;
        }
        let own = rows.points.diagonal(rows.kernel);
        let sample = Listed::first(&mut *problem.draws(rows.design, self.seed, SAMPLE_STREAM), SAMPLE);
        let largest = sample.list().iter().fold(0.0f64, |largest, c| {
            // ‖x − z‖² ≤ 2‖x‖² + 2‖z‖²
            let square = c.against.map_or(own[c.row], |against| 2.0 * (own[c.row] + own[against]));
            let constant = if self.intercept == Intercept::None { 0.0 } else { c.threshold * c.threshold };
            largest.max(c.cost * (c.coefficient * c.coefficient * square + constant))
        });
        0.5 / largest
    }
}

/// A function with its objective.
struct Best {
    vectors: Vec<Vector>,
    coefficients: Vec<f64>,
    settled: Settled,
    merging: Merging,
}

/// Marks a row that is not a vector.
const NOWHERE: u32 = u32::MAX;

struct State<'a, T> {
    design: &'a Design,
    loss: Loss,
    intercept: Intercept,
    batch: usize,
    budget: usize,
    merges: bool,
    support: Support<T>,
    /// The coefficients divided by their common factor.
    coefficients: Vec<f64>,
    scale: f64,
    b: f64,
    /// The position of each row among the vectors, and the row of each vector; a merged vector has no row.
    place_of: Vec<u32>,
    row_of: Vec<Option<usize>>,
    merging: Merging,
    values: Vec<T>,
}

/// A step to take: the rows of the constraint, and the strength of its pull.
struct Pull {
    constraint: Constraint,
    strength: f64,
    vectors: [Option<Vector>; 2],
}

impl<'a, T: Element> State<'a, T> {
    fn new(settings: &KernelDescent, rows: KernelRows<'a>, loss: Loss) -> State<'a, T> {
        State {
            design: rows.design,
            loss,
            intercept: settings.intercept,
            batch: settings.batch.max(1),
            budget: settings.budget.unwrap_or(usize::MAX),
            merges: matches!(rows.kernel, Kernel::Gaussian { .. }),
            support: Support::new(rows.kernel.clone(), rows.points),
            coefficients: Vec::new(),
            scale: 1.0,
            b: 0.0,
            place_of: vec![NOWHERE; rows.design.rows()],
            row_of: Vec::new(),
            merging: Merging::default(),
            values: Vec::new(),
        }
    }

    /// One pass over the drawn constraints. Returns false after a cancel.
    fn pass(&mut self, draws: &mut dyn Draw, rates: &Rates, steps: &mut u64, cancel: &Cancel) -> bool {
        draws.start();
        let mut left = draws.count();
        let mut worked = 0;
        let mut pulls: Vec<Pull> = Vec::new();
        let matrix = self.design.matrix();
        let entries = usize::try_from(matrix.entries()).unwrap_or(usize::MAX) / matrix.rows().max(1) + 1;
        while left > 0 {
            worked += self.batch * (self.support.len() + 64) * entries;
            if worked >= POLL {
                if cancel.is_raised() {
                    return false;
                }
                draws.moved();
                worked = 0;
            }
            let batch = self.batch.min(left);
            left -= batch;
            pulls.clear();
            for _ in 0..batch {
                let pull = self.pull(draws.next(), 1.0 / batch as f64);
                pulls.extend(pull.filter(|pull| pull.strength != 0.0));
            }
            let rate = rates.at(*steps);
            *steps += 1;
            self.shrink((1.0 - rate * rates.lambda).max(0.0));
            for pull in pulls.drain(..) {
                self.add(pull, rate);
            }
            while self.support.len() > self.budget {
                self.make_room();
            }
        }
        true
    }

    /// The sum of kernels at a row.
    fn score(&mut self, vector: &Vector) -> f64 {
        self.values.clear();
        self.support.meet(vector, 0..self.support.len(), &mut self.values);
        self.scale * weighted_sum(&self.coefficients, &self.values)
    }

    /// The pull of a constraint; none if its loss is zero.
    fn pull(&mut self, constraint: Constraint, share: f64) -> Option<Pull> {
        let vector = self.support.vector_of(self.design, constraint.row);
        let mut score = self.score(&vector);
        let against = constraint.against.map(|row| self.support.vector_of(self.design, row));
        if let Some(against) = &against {
            score -= self.score(against);
        }
        let violation = constraint.margin - constraint.coefficient * score - constraint.threshold * self.b;
        let strength = share * constraint.cost * self.loss.derivative(violation);
        (constraint.cost > 0.0).then_some(Pull { constraint, strength, vectors: [Some(vector), against] })
    }

    /// Multiplies everything penalised by a factor from 0 to 1.
    fn shrink(&mut self, factor: f64) {
        self.scale *= factor;
        self.merging.lost *= factor;
        if self.intercept == Intercept::Penalised {
            self.b *= factor;
        }
        if self.scale == 0.0 {
            // The function is zero, and needs no vectors.
            self.row_of.drain(..).flatten().for_each(|row| self.place_of[row] = NOWHERE);
            self.coefficients.clear();
            self.support.clear();
            self.scale = 1.0;
        } else if self.scale < LEAST_SCALE {
            self.coefficients.iter_mut().for_each(|coefficient| *coefficient *= self.scale);
            self.scale = 1.0;
        }
    }

    fn add(&mut self, pull: Pull, rate: f64) {
        let Pull { constraint, strength, vectors } = pull;
        let step = rate * strength * constraint.coefficient / self.scale;
        let rows = [Some(constraint.row), constraint.against];
        for ((row, vector), step) in rows.into_iter().zip(vectors).zip([step, -step]) {
            let (Some(row), Some(vector)) = (row, vector) else { continue };
            match self.place_of[row] {
                NOWHERE => {
                    self.place_of[row] = self.support.len() as u32;
                    self.row_of.push(Some(row));
                    self.coefficients.push(step);
                    self.support.push(vector);
                }
                place => self.coefficients[place as usize] += step,
            }
        }
        self.b += intercept_rate(self.intercept, rate) * strength * constraint.threshold;
    }

    /// Merges the vector with the smallest coefficient with another one, or removes it.
    fn make_room(&mut self) {
        let sizes = self.coefficients.iter().map(|coefficient| coefficient.abs()).enumerate();
        let Some((lightest, _)) = sizes.min_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let own = self.coefficients[lightest];
        let partner = if self.merges && own != 0.0 { self.partner(lightest) } else { None };
        let loss = match partner {
            None => {
                self.merging.removed += u64::from(own != 0.0);
                own * own * self.support.own(&self.support.vectors()[lightest])
            }
            Some((partner, kappa)) => {
                let merged = merged(own, self.coefficients[partner], kappa);
                let [a, b] = [lightest, partner].map(|place| &self.support.vectors()[place]);
                let vector = self.support.between(a, b, merged.share);
                self.support.replace(partner, vector);
                self.coefficients[partner] = merged.coefficient;
                if let Some(row) = self.row_of[partner].take() {
                    self.place_of[row] = NOWHERE;
                }
                self.merging.merged += 1;
                merged.loss
            }
        };
        self.merging.lost = self.merging.lost.hypot(self.scale * loss.abs().sqrt());
        self.support.swap_remove(lightest);
        self.coefficients.swap_remove(lightest);
        if let Some(row) = self.row_of.swap_remove(lightest) {
            self.place_of[row] = NOWHERE;
        }
        if let Some(&Some(row)) = self.row_of.get(lightest) {
            self.place_of[row] = lightest as u32;
        }
    }

    /// The vector of the same sign with the smallest merging loss, and its kernel value.
    fn partner(&mut self, lightest: usize) -> Option<(usize, f64)> {
        self.values.clear();
        self.support.meet(&self.support.vectors()[lightest], 0..self.support.len(), &mut self.values);
        let (own, table) = (self.coefficients[lightest], table());
        let mut best: Option<(usize, f64, f64)> = None;
        for (place, (&other, kappa)) in self.coefficients.iter().zip(&self.values).enumerate() {
            if place == lightest || own * other <= 0.0 {
                continue;
            }
            let lost = about_lost(table, own, other, kappa.wide());
            if best.is_none_or(|(_, _, least)| lost < least) {
                best = Some((place, kappa.wide(), lost));
            }
        }
        best.map(|(place, kappa, _)| (place, kappa))
    }

    /// The current function, with its objective over all constraints.
    fn settled(&self, problem: &dyn Sampled, scored: Scored<'_>, cancel: &Cancel) -> Result<Best> {
        let coefficients: Vec<f64> = self.coefficients.iter().map(|coefficient| self.scale * coefficient).collect();
        if !coefficients.iter().all(|coefficient| coefficient.is_finite()) || !self.b.is_finite() {
            return Err(thrown());
        }
        let (scores, square) = scored(self.support.matrix_of(self.support.vectors())?, &coefficients)?;
        let settled = problem.settled_at(&scores, 0.5 * square, self.b, self.intercept, cancel)?;
        if !settled.objective.is_finite() || !settled.threshold.is_finite() {
            return Err(thrown());
        }
        let merging = Merging { length: square.max(0.0).sqrt(), ..self.merging };
        Ok(Best { vectors: self.support.vectors().to_vec(), coefficients, settled, merging })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{binary, design, made};
    use super::super::{ByPair, ByRow, Sample};
    use super::*;
    use crate::data::Scale;
    use crate::task::{PairWeight, Ranking};

    fn settings(batch: usize, intercept: Intercept, budget: Option<usize>) -> KernelDescent {
        KernelDescent { schedule: Schedule::Bottou, rate: None, batch, passes: 1, seed: 9, intercept, budget }
    }

    /// The same steps on weights, written out one by one.
    fn by_weights(settings: &KernelDescent, problem: &dyn Sampled, rates: &Rates, design: &Design) -> (Vec<f64>, f64) {
        let (mut w, mut b) = (vec![0.0; design.cols()], 0.0);
        let row = |row: usize| {
            let mut values = vec![0.0; design.cols()];
            design.fill_scaled_row(row, &mut values);
            values
        };
        let mut draws = problem.draws(design, settings.seed, 0);
        let mut t = 0;
        for _ in 0..3 {
            draws.start();
            let all: Vec<Constraint> = (0..draws.count()).map(|_| draws.next()).collect();
            for batch in all.chunks(settings.batch) {
                let rate = rates.at(t);
                let pulls: Vec<(Vec<f64>, f64, f64)> = batch
                    .iter()
                    .map(|c| {
                        let mut x = row(c.row);
                        if let Some(z) = c.against {
                            x.iter_mut().zip(row(z)).for_each(|(x, z)| *x -= z);
                        }
                        let score: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
                        let violation = c.margin - c.coefficient * score - c.threshold * b;
                        let pull = c.cost * problem.loss().derivative(violation) / batch.len() as f64;
                        (x, pull * c.coefficient, pull * c.threshold)
                    })
                    .collect();
                let shrink = (1.0 - rate * rates.lambda).max(0.0);
                w.iter_mut().for_each(|w| *w *= shrink);
                if settings.intercept == Intercept::Penalised {
                    b *= shrink;
                }
                for (x, along, constant) in pulls {
                    w.iter_mut().zip(x).for_each(|(w, x)| *w += rate * along * x);
                    b += constant
                        * match settings.intercept {
                            Intercept::None => 0.0,
                            Intercept::Free => 0.01 * rate.min(1.0),
                            Intercept::Penalised => rate,
                        };
                }
                t += 1;
            }
        }
        (w, b)
    }

    fn assert_twin(problem: &dyn Sampled, design: &Design, settings: &KernelDescent) {
        let kernel = Kernel::Linear;
        let points = Points::new(design, &kernel);
        let rows = KernelRows { design, points: &points, kernel: &kernel };
        let total = problem.total_cost();
        for rate in [total, 0.05] {
            let rates = Rates {
                schedule: Schedule::Bottou,
                rate,
                lambda: 1.0 / total,
                averaged: false,
                longest: settings.longest_stable_rate(problem, rows),
            };
            let mut state = State::<f64>::new(settings, rows, problem.loss());
            let (mut draws, mut steps) = (problem.draws(design, settings.seed, 0), 0);
            for _ in 0..3 {
                assert!(state.pass(&mut *draws, &rates, &mut steps, &Cancel::new()));
            }
            let (w, b) = by_weights(settings, problem, &rates, design);
            let size = w.iter().fold(1e-3f64, |most, w| most.max(w.abs()));
            let matrix = state.support.matrix_of(state.support.vectors()).expect("valid");
            let mut sum = vec![0.0; w.len()];
            for (place, coefficient) in state.coefficients.iter().enumerate() {
                matrix.each_in_row(place, |column, value| sum[column] += state.scale * coefficient * value);
            }
            for (sum, w) in sum.iter().zip(&w) {
                assert!((sum - w).abs() < 1e-8 * size, "{settings:?} {rate}: {sum} {w}");
            }
            assert!((state.b - b).abs() < 1e-8 * (1.0 + b.abs()));
            // Each row occurs once, and `place_of` finds it.
            for (place, row) in state.row_of.iter().enumerate() {
                assert_eq!(row.map(|row| state.place_of[row]), Some(place as u32));
            }
        }
    }

    #[test]
    fn a_linear_kernel_takes_the_steps_of_weights() {
        for sparse in [false, true] {
            let data = made(60, sparse, false);
            let design = design(&data, Scale::None);
            for loss in Loss::ALL {
                for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                    let task = binary(&data, loss, 0.3, intercept);
                    for batch in [1, 7] {
                        assert_twin(&ByRow::new(&task).expect("valid"), &design, &settings(batch, intercept, None));
                    }
                }
            }
            let data = made(60, sparse, true);
            let design = self::design(&data, Scale::Standard);
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                let task = Ranking::new(&data, loss, PairWeight::Equal, 0.05).expect("valid");
                let pairs = ByPair::new(&task, loss, Sample::Pairs, None);
                assert_twin(&pairs, &design, &settings(1, Intercept::None, None));
            }
        }
    }

    /// ‖Σ_i c_i φ(v_i) − Σ_j d_j φ(u_j)‖²
    fn apart(support: &Support<f64>, one: &[(f64, Vector)], other: &[(f64, Vector)]) -> f64 {
        let signed: Vec<(f64, Vector)> =
            one.iter().cloned().chain(other.iter().map(|(c, v)| (-c, v.clone()))).collect();
        let mut all: Support<f64> = support.empty_copy();
        signed.iter().for_each(|(_, vector)| all.push(vector.clone()));
        let mut sum = 0.0;
        for (c, vector) in &signed {
            let mut values = Vec::new();
            all.meet(vector, 0..all.len(), &mut values);
            sum += c * signed.iter().zip(&values).map(|((d, _), value)| d * value).sum::<f64>();
        }
        sum
    }

    #[test]
    fn the_budget_holds_and_the_reported_loss_is_exact() {
        for kernel in [Kernel::Gaussian { gamma: 0.1 }, Kernel::Polynomial { gamma: 0.1, coef0: 1.0, degree: 2 }] {
            for (sparse, budget) in [(false, 1), (false, 6), (true, 6)] {
                let data = made(80, sparse, false);
                let design = design(&data, Scale::None);
                let task = binary(&data, Loss::Hinge, 0.3, Intercept::Free);
                let problem = ByRow::new(&task).expect("valid");
                let points = Points::new(&design, &kernel);
                let rows = KernelRows { design: &design, points: &points, kernel: &kernel };
                let settings = settings(1, Intercept::Free, Some(budget));
                let total = problem.total_cost();
                let rates = Rates {
                    schedule: Schedule::Bottou,
                    rate: total,
                    lambda: 1.0 / total,
                    averaged: false,
                    longest: f64::INFINITY,
                };
                let mut state = State::<f64>::new(&settings, rows, Loss::Hinge);
                let (mut draws, mut steps) = (problem.draws(&design, 1, 0), 0);
                for _ in 0..3 {
                    assert!(state.pass(&mut *draws, &rates, &mut steps, &Cancel::new()));
                    assert!(state.support.len() <= budget && state.coefficients.len() == state.support.len());
                }
                assert!(state.merging.merged + state.merging.removed > 0);
                assert!(state.merges || state.merging.merged == 0);
                // Once more, with every change checked: from many vectors down to one.
                state.budget = usize::MAX;
                assert!(state.pass(&mut *draws, &rates, &mut steps, &Cancel::new()));
                let now = |state: &State<'_, f64>| -> Vec<(f64, Vector)> {
                    let coefficients = state.coefficients.iter().map(|coefficient| state.scale * coefficient);
                    coefficients.zip(state.support.vectors().iter().cloned()).collect()
                };
                while state.support.len() > 1 {
                    let before = now(&state);
                    state.merging.lost = 0.0;
                    state.make_room();
                    let square = apart(&state.support, &before, &now(&state));
                    let said = state.merging.lost.powi(2);
                    let lightest = before.iter().map(|(c, v)| (c.abs(), c * c * state.support.own(v)));
                    let (_, removal) = lightest.min_by(|a, b| a.0.total_cmp(&b.0)).expect("some");
                    assert!((square - said).abs() < 1e-9 * (1.0 + removal), "{kernel:?}: {square} {said}");
                    assert!(square <= removal * (1.0 + 1e-9) + 1e-12, "{kernel:?}: {square} {removal}");
                    for (place, row) in state.row_of.iter().enumerate() {
                        assert!(row.is_none_or(|row| state.place_of[row] == place as u32));
                    }
                }
            }
        }
    }
}
