//! Newton's method over a kernel expansion, for tasks that are smooth functions of the scores.
//!
//! ```text
//! min over β   f(β) = ½ βᵀKβ + L(s),   s = Kβ
//! ```
//! K holds the kernel values between all rows. L is a [`Curvature`] without thresholds, such as the squared hinge over
//! all pairs of each group. The pairs are never listed: a value costs one product with K plus the cost of L itself
//! (Kuo, Lee & Lin, Large-scale kernel RankSVM, SDM 2014).
//!
//! With g = L'(s), D = L''(s) and z = β + g the gradient is Kz, and the step d solves (I + DK) d = −z by conjugate
//! gradients in the inner product of K, to a forcing tolerance. This is Newton's method on the weights of the
//! expansion. An iteration costs one product with K. It also gives the scores along the step, so the line search costs
//! no product.
//!
//! **Certificate.** f is 1-strongly convex in the norm of K: f(β) − min f ≤ ½ zᵀKz. It needs Kg, with which the next
//! step starts. Stops at a relative gap. At the optimum β = −g, which is zero for rows whose pairs all keep their
//! margin. At the end these rows are dropped if the gap allows it.
//!
//! Kernel rows are cached within a budget of bytes; the others are computed for every product. Cost of a product: n
//! additions per row with a nonzero coefficient, O(n²) at most, for any number of pairs.

use super::{Progress, Solution, Stop, ThroughKernel, Witness, dot, overflow, relative_gap};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points, RowCache, add_row};
use crate::parallel;
use crate::run::{Cancel, Observer};
use crate::task::{Curvature, Directions, Place, Slopes};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct KernelNewton {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of steps.
    pub(crate) max_passes: u64,
    /// Whether to continue after the last step, by full steps, to the limit of double precision.
    pub(crate) to_the_end: bool,
}

/// The maximum number of full steps at the end.
const POLISHING_STEPS: usize = 20;

/// The gap at which all digits are exact.
const ALL_DIGITS: f64 = 1e-14;

/// The forcing tolerance of these full steps.
const POLISHING_FORCING: f64 = 1e-4;

/// A square of a length may be negative by this share of the value because of rounding. Below that, the kernel is
/// indefinite.
pub(crate) const ROUNDING: f64 = 1e-6;

fn indefinite() -> Error {
    Error::new(Code::Unsupported, "this kernel is not positive definite, and graded rows need one that is")
        .help("use ⟦kernel=gaussian⟧, or list the pairs in a file and name the rows with ⟦items⟧")
}

/// The maximum number of iterations per step. Further iterations would gain nothing because of rounding.
const MOST_ITERATIONS: usize = 500;

impl KernelNewton {
    /// Minimises from given coefficients, or from zero, over rows with their kernel.
    pub(crate) fn solve<T: Curvature, V: Element>(
        &self,
        task: &T,
        (kernel, points): (&Kernel, &Points),
        cache: &mut RowCache<V>,
        start: Option<&[f64]>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let before = cache.counts();
        let mut product = Product { kernel, points, cache, cancel };
        let mut loss = ScoreLoss::new(task, points.rows(), cancel);
        let beta = start.map_or_else(|| vec![0.0; points.rows()], <[f64]>::to_vec);
        let scores = product.times(&beta);
        let mut point = Point::at(beta, scores, &mut loss, &mut product)?;
        let mut passes = 0;
        // From a good start the forcing tolerance would begin loose again, so it is measured relative to the value.
        let first = match start {
            None => point.gap,
            Some(_) => point.gap.max(point.value),
        };
        let stop = loop {
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            if !(point.value.is_finite() && point.gap.is_finite()) {
                return Err(overflow());
            }
            if point.value.min(point.gap) < -ROUNDING * point.value.abs() {
                return Err(indefinite());
            }
            progress.bound(Some(point.value - point.gap));
            if progress.report(passes, point.value, &[], &[]) {
                break Stop::Cancelled;
            }
            if relative_gap(point.value, point.value - point.gap) <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            let forcing = (point.gap / first).sqrt().sqrt().min(0.1);
            let Some(next) = point.step(forcing, &mut loss, &mut product)? else {
                break if progress.cancelled() { Stop::Cancelled } else { Stop::Stalled };
            };
            passes += 1;
            point = next;
        };
        for _ in 0..if self.to_the_end { POLISHING_STEPS } else { 0 } {
            let (step, moved) = point.direction(POLISHING_FORCING, &mut loss, &mut product)?;
            let next = point.moved(1.0, &step, &moved, &mut loss, &mut product)?;
            // The value may no longer fall while the gap still does.
            if cancel.is_raised() || next.gap.is_nan() || next.gap >= point.gap || next.gap < 0.0 {
                break;
            }
            point = next;
        }
        let tolerance = if self.to_the_end { ALL_DIGITS } else { self.tolerance };
        if stop == Stop::Converged || self.to_the_end {
            // Rows without a violated pair have coefficient zero at the optimum.
            let spare = point.without_idle_rows(&mut loss, &mut product)?;
            if relative_gap(spare.value, spare.value - spare.gap) <= tolerance && !cancel.is_raised() {
                point = spare;
            }
        }
        // After a cancel the point is incomplete: its only bound is zero.
        let bound = if stop == Stop::Cancelled { 0.0 } else { (point.value - point.gap).max(0.0) };
        let after = product.cache.counts();
        let rows = (after.0 - before.0, after.1 - before.1);
        Ok(Solution {
            weights: point.beta,
            thresholds: Vec::new(),
            objective: point.value,
            lower_bound: Some(bound),
            witness: Witness::Weights,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: Some(ThroughKernel {
                reached: point.scores,
                common_margin: None,
                rows: Some(rows),
                definite: true,
                scorer: None,
                merging: None,
            }),
            trace: progress.trace,
        })
    }
}

/// The current iterate.
struct Point {
    beta: Vec<f64>,
    /// s = Kβ
    scores: Vec<f64>,
    /// f
    value: f64,
    /// z = β + g, and Kz
    residual: Vec<f64>,
    gradient: Vec<f64>,
    /// ½ zᵀKz
    gap: f64,
}

impl Point {
    fn at<T: Curvature, V: Element>(
        beta: Vec<f64>,
        scores: Vec<f64>,
        loss: &mut ScoreLoss<'_, T>,
        product: &mut Product<'_, V>,
    ) -> Result<Point> {
        let (sum, slopes) = loss.evaluate(&scores)?;
        let value = 0.5 * dot(&beta, &scores) + sum;
        let mut gradient = product.times(&slopes);
        gradient.iter_mut().zip(&scores).for_each(|(gradient, score)| *gradient += score);
        let residual: Vec<f64> = beta.iter().zip(&slopes).map(|(beta, slope)| beta + slope).collect();
        // Not clamped: the caller must see a NaN, and a value that is negative by more than rounding.
        let gap = 0.5 * dot(&residual, &gradient);
        Ok(Point { beta, scores, value, residual, gradient, gap })
    }

    /// Newton's direction d, and Kd.
    fn direction<T: Curvature, V: Element>(
        &self,
        forcing: f64,
        loss: &mut ScoreLoss<'_, T>,
        product: &mut Product<'_, V>,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let rows = self.beta.len();
        // d and Kd; r = −z − (I + DK) d and Kr; the direction p and Kp.
        let (mut step, mut moved) = (vec![0.0; rows], vec![0.0; rows]);
        let mut rest: Vec<f64> = self.residual.iter().map(|z| -z).collect();
        let mut kernel_rest: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let (mut direction, mut kernel_direction) = (rest.clone(), kernel_rest.clone());
        let mut size = dot(&rest, &kernel_rest);
        let enough = forcing * forcing * size;
        for _ in 0..MOST_ITERATIONS {
            if size <= enough || product.cancel.is_raised() {
                break;
            }
            let bent = loss.curvature(&self.scores, &kernel_direction)?;
            let image: Vec<f64> = direction.iter().zip(&bent).map(|(p, bent)| p + bent).collect();
            let curvature = dot(&kernel_direction, &image);
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let length = size / curvature;
            add(&mut step, length, &direction);
            add(&mut moved, length, &kernel_direction);
            add(&mut rest, -length, &image);
            let kernel_bent = product.times(&bent);
            add(&mut kernel_rest, -length, &kernel_direction);
            add(&mut kernel_rest, -length, &kernel_bent);
            let next = dot(&rest, &kernel_rest);
            if next.is_nan() || next <= 0.0 {
                break;
            }
            let share = next / size;
            size = next;
            for (p, r) in direction.iter_mut().zip(&rest) {
                *p = r + share * *p;
            }
            for (p, r) in kernel_direction.iter_mut().zip(&kernel_rest) {
                *p = r + share * *p;
            }
        }
        Ok((step, moved))
    }

    /// The point at `length` times the step.
    fn moved<T: Curvature, V: Element>(
        &self,
        length: f64,
        step: &[f64],
        moved: &[f64],
        loss: &mut ScoreLoss<'_, T>,
        product: &mut Product<'_, V>,
    ) -> Result<Point> {
        let along = |from: &[f64], by: &[f64]| from.iter().zip(by).map(|(from, by)| from + length * by).collect();
        Point::at(along(&self.beta, step), along(&self.scores, moved), loss, product)
    }

    /// A Newton step, or none if nothing improves any more.
    fn step<T: Curvature, V: Element>(
        &self,
        forcing: f64,
        loss: &mut ScoreLoss<'_, T>,
        product: &mut Product<'_, V>,
    ) -> Result<Option<Point>> {
        let (step, moved) = self.direction(forcing, loss, product)?;
        if product.cancel.is_raised() {
            return Ok(None);
        }
        // f along the step is a parabola plus the loss: halve the step until f falls enough.
        let (slope, bend) = (dot(&step, &self.gradient), dot(&step, &moved));
        let start = dot(&self.beta, &self.scores);
        let cross = dot(&step, &self.scores);
        let mut length = 1.0;
        while length > 1e-9 {
            let scores: Vec<f64> = self.scores.iter().zip(&moved).map(|(s, m)| s + length * m).collect();
            let value = 0.5 * start + length * cross + 0.5 * length * length * bend + loss.value(&scores)?;
            if value <= self.value + 1e-4 * length * slope && value < self.value {
                return self.moved(length, &step, &moved, loss, product).map(Some);
            }
            length *= 0.5;
        }
        Ok(None)
    }

    /// The point −g, whose score is s − Kz.
    fn without_idle_rows<T: Curvature, V: Element>(
        &self,
        loss: &mut ScoreLoss<'_, T>,
        product: &mut Product<'_, V>,
    ) -> Result<Point> {
        let beta = self.beta.iter().zip(&self.residual).map(|(beta, z)| beta - z).collect();
        let scores = self.scores.iter().zip(&self.gradient).map(|(score, g)| score - g).collect();
        Point::at(beta, scores, loss, product)
    }
}

fn add(sums: &mut [f64], factor: f64, terms: &[f64]) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += factor * term);
}

/// A task as a function of all scores, with the memos of the last evaluation. Rows have one score, and there are no
/// free scalars.
struct ScoreLoss<'a, T: Curvature> {
    task: &'a T,
    rows: usize,
    memos: Vec<T::Memo>,
    cancel: &'a Cancel,
}

impl<'a, T: Curvature> ScoreLoss<'a, T> {
    fn new(task: &'a T, rows: usize, cancel: &'a Cancel) -> ScoreLoss<'a, T> {
        debug_assert!(task.thresholds() == 0 && task.outputs() == 1);
        ScoreLoss { task, rows, memos: (0..task.parts()).map(|_| T::Memo::default()).collect(), cancel }
    }

    /// The view of a part for the task, given the scores of all rows.
    fn place<'p>(&'p self, part: usize, scores: &'p [f64]) -> Place<'p> {
        Place { part, scores: &scores[self.task.rows(part)], thresholds: &[], cancel: self.cancel }
    }

    /// The value and its slopes.
    fn evaluate(&mut self, scores: &[f64]) -> Result<(f64, Vec<f64>)> {
        let task = self.task;
        let mut memos = std::mem::take(&mut self.memos);
        let this = &*self;
        let parts = parallel::map_each(memos.iter_mut().collect(), |part, memo| {
            let at = this.place(part, scores);
            let mut slope = vec![0.0; at.scores.len()];
            let value = task.evaluate(&at, Slopes { scores: &mut slope, thresholds: &mut [] }, memo)?;
            Ok((value, slope))
        });
        self.memos = memos;
        let mut slopes = vec![0.0; self.rows];
        let mut value = 0.0;
        for (part, found) in parts.into_iter().enumerate() {
            let (sum, slope): (f64, Vec<f64>) = found?;
            value += sum;
            slopes[task.rows(part)].copy_from_slice(&slope);
        }
        Ok((value, slopes))
    }

    /// The value alone. It leaves the memos unchanged.
    fn value(&self, scores: &[f64]) -> Result<f64> {
        let parts: Vec<f64> = parallel::try_map(self.task.parts(), |part| {
            let at = self.place(part, scores);
            let mut slope = vec![0.0; at.scores.len()];
            self.task.evaluate(&at, Slopes { scores: &mut slope, thresholds: &mut [] }, &mut T::Memo::default())
        })?;
        Ok(parts.iter().sum())
    }

    /// D times a direction, at the scores of the last evaluation.
    fn curvature(&self, scores: &[f64], direction: &[f64]) -> Result<Vec<f64>> {
        let parts: Vec<Vec<f64>> = parallel::try_map(self.memos.len(), |part| {
            let at = self.place(part, scores);
            let along = Directions { count: 1, scores: &direction[self.task.rows(part)], thresholds: &[] };
            let mut out = vec![0.0; at.scores.len()];
            let slopes = Slopes { scores: &mut out, thresholds: &mut [] };
            self.task.curvature(&at, &self.memos[part], &along, slopes)?;
            Ok(out)
        })?;
        let mut all = vec![0.0; self.rows];
        parts.into_iter().enumerate().for_each(|(part, out)| all[self.task.rows(part)].copy_from_slice(&out));
        Ok(all)
    }
}

/// The value of a task without thresholds at given scores, and its slopes. After a cancel the result is not usable.
pub(crate) fn value_and_slopes<T: Curvature>(task: &T, scores: &[f64], cancel: &Cancel) -> Result<(f64, Vec<f64>)> {
    ScoreLoss::new(task, scores.len(), cancel).evaluate(scores)
}

/// Products with the kernel values between all rows. The first rows are kept as far as the cache allows.
struct Product<'a, V> {
    kernel: &'a Kernel,
    points: &'a Points,
    cache: &'a mut RowCache<V>,
    cancel: &'a Cancel,
}

/// Kernel rows computed together.
const TOGETHER: usize = 256;

impl<V: Element> Product<'_, V> {
    /// K u
    fn times(&mut self, u: &[f64]) -> Vec<f64> {
        let counting: Vec<usize> = (0..u.len()).filter(|&row| u[row] != 0.0).collect();
        let (kept, others) = counting.split_at(counting.partition_point(|&row| row < self.cache.capacity()));
        let (kernel, points) = (self.kernel, self.points);
        for rows in kept.chunks(TOGETHER) {
            if self.cancel.is_raised() {
                break;
            }
            self.cache.prepare(rows, |missing, outs| points.fill(kernel, points, missing, outs));
        }
        // The rows are added in their order, cached or not, so the cache does not change the result.
        let mut sums = vec![0.0; u.len()];
        let cache = &*self.cache;
        if !self.cancel.is_raised() {
            add_rows(&mut sums, kept.iter().map(|&row| (u[row], cache.row(row))).collect());
        }
        let mut values = Vec::new();
        for rows in others.chunks(TOGETHER) {
            if self.cancel.is_raised() {
                break;
            }
            values.resize(rows.len() * u.len(), V::ZERO);
            points.fill(kernel, points, rows, values.chunks_exact_mut(u.len()).collect());
            let values = values.chunks_exact(u.len());
            add_rows(&mut sums, rows.iter().zip(values).map(|(&row, values)| (u[row], values)).collect());
        }
        sums
    }
}

/// sums += Σ factor · row
fn add_rows<V: Element>(sums: &mut [f64], rows: Vec<(f64, &[V])>) {
    const CHUNK: usize = 1024;
    parallel::chunks(sums, CHUNK, |chunk, sums| {
        for &(factor, row) in &rows {
            add_row(sums, factor, &row[chunk * CHUNK..]);
        }
    });
}
