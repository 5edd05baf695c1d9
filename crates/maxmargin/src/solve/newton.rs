//! Newton's method for smooth, strongly convex risks.
//!
//! ```text
//! min  f(w) = ½‖w_penalised‖² + loss(w)
//! ```
//! Each step solves H·d = −g: by Cholesky if the whole Hessian is cheap to form, else by conjugate gradients to a
//! forcing tolerance min(0.1, √(‖g‖/‖g₀‖)). The preconditioner is the covariance of the features weighted with the
//! diagonal of the Hessian by the scores; with many features, that of a sample of the rows, or its diagonal. The full
//! step is tried first. If it is not good enough, a line search, which costs no pass over the features, finds the
//! minimiser. On the piecewise quadratic losses of this crate the method ends after a few steps (Keerthi & DeCoste, A
//! modified finite Newton method for fast solution of large scale linear SVMs, JMLR 6, 2005).
//!
//! **Certificate.** f is 1-strongly convex in the penalised coordinates, so f(w) − min f ≤ ½‖g‖², given that the free
//! coordinates are at their minimum for these weights. After each step they are moved there: a single one by a line
//! search along its axis, several by Newton steps on them alone, each with a line search. The searches cost no pass
//! over the features. If the free part of the gradient does not vanish up to rounding, no bound is claimed. Stops at a
//! relative gap. Cost of a step: one pass for the gradient, one for the line, and for the direction n·d² or one pass
//! per product.

use super::cholesky::BlockedCholesky;
use super::free_block::{DEPENDENT, FreeBlock};
use super::linear_risk::{LONG_PART, SAMPLED_HESSIAN_DIM, TILE, most_lanes};
use super::sizes::{TILE_ROWS, TILE_THREADS};
use super::{CurvedRisk, Preconditioner, Progress, Sizes, Solution, Start, Stop, Witness, dot, overflow, relative_gap};
use crate::error::Result;
use crate::run::{Cancel, Observer, Silent};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct Newton {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of steps.
    pub max_passes: u64,
}

/// The slope by a free coordinate counts as zero below this share of curvature times coordinate.
const FREE_GRADIENT: f64 = 1e-11;

/// Up to this many columns, it keeps matrices over pairs of columns.
const PAIRED_COLUMNS: u64 = 601;

/// Numbers for each row and column of a part whose Hessian is formed: its features and their curvature. For rankers,
/// each thread also keeps both in the order of the targets, from one query to the next.
const TILES: u64 = 2;

/// What it allocates beside the features and the risk.
pub(super) fn bytes(sizes: &Sizes) -> u64 {
    let width = sizes.cols + sizes.cuts.max(1);
    if sizes.cols < PAIRED_COLUMNS {
        // Pairs may tie all rows together.
        let (tiles, longest, long) = match (&sizes.queries, sizes.pairs) {
            _ if sizes.by_rows => (TILES, 0, 0),
            (_, Some(_)) => (TILES, sizes.rows, sizes.rows as usize / LONG_PART),
            (queries, None) => {
                let (longest, long) = queries.as_ref().map_or((0, 0), |queries| (queries.longest, queries.long));
                (2 * TILES, longest, long)
            }
        };
        let lanes = most_lanes(sizes.lanes, long) as u64;
        // Longer parts have no exact Hessian.
        let tile = (longest * width).min(TILE as u64).max(TILE_ROWS * width);
        return (lanes + 4) * width.pow(2) * 8 + tiles * TILE_THREADS * tile * 8;
    }
    // The Hessian of a sample of the rows, which becomes its factor, and means of the parts they are from.
    if sizes.cols <= SAMPLED_HESSIAN_DIM as u64 { 4 * width.pow(2) * 8 } else { 0 }
}

impl Newton {
    /// Minimises the risk from `start`, or from zero. `features` says how many of the coordinates are weights; the rest
    /// are thresholds.
    pub fn solve(
        &self,
        risk: &mut dyn CurvedRisk,
        features: usize,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let w = match start {
            Some(start) => [&start.weights[..], &start.thresholds[..]].concat(),
            None => vec![0.0; risk.dim()],
        };
        let mut point = Point::at(risk, w)?;
        // After a cancel the value is incomplete.
        cancel.check()?;
        let mut bound;
        let start_norm = point.gradient_norm();
        let mut passes = 0;
        let stop = loop {
            if progress.cancelled() {
                // The last bound belongs to the point before.
                bound = None;
                break Stop::Cancelled;
            }
            if !point.is_finite() {
                return Err(overflow());
            }
            // The weights are the witness, so only the bound of these weights counts.
            let Point { w, value, gradient, .. } = &point;
            bound = lower_bound(risk, w, *value, gradient)?;
            progress.bound(bound);
            if progress.report(passes, *value, &w[..features], &w[features..]) {
                break Stop::Cancelled;
            }
            let gap = bound.map_or(f64::INFINITY, |bound| relative_gap(*value, bound));
            if gap <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            let Some(next) = step(risk, &point, start_norm, true, cancel)? else {
                break if progress.cancelled() { Stop::Cancelled } else { Stop::Stalled };
            };
            passes += 1;
            point = next;
        };
        let Point { mut w, value, .. } = point;
        debug_assert!(bound.is_none_or(|bound| bound <= value * (1.0 + 1e-9)));
        let thresholds = w.split_off(features);
        Ok(Solution {
            weights: w,
            thresholds,
            objective: value,
            lower_bound: Some(bound.unwrap_or(0.0)),
            witness: Witness::Weights,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace: progress.trace,
        })
    }
}

impl Newton {
    /// The maximum number of steps to the limit of double precision.
    pub(crate) const POLISHING_STEPS: u64 = 50;

    /// Continues from a solution to the limit of double precision. The value stops falling long before that, at the
    /// square root of the last digit. From there on, full steps are made as long as they shorten the gradient: at most
    /// `steps` of either kind.
    pub(crate) fn polish(
        risk: &mut dyn CurvedRisk,
        features: usize,
        start: &Start,
        steps: u64,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let newton = Newton { tolerance: 0.0, max_passes: steps };
        let mut solution = newton.solve(risk, features, Some(start), &mut Silent, cancel)?;
        let mut point = Point::unsettled(risk, [&solution.weights[..], &solution.thresholds[..]].concat())?;
        let start_norm = point.gradient_norm();
        for _ in 0..steps {
            cancel.check()?;
            let length = point.gradient_norm();
            let direction = direction(risk, &point.gradient, start_norm, cancel)?;
            let next = Point::unsettled(risk, point.w.iter().zip(&direction).map(|(w, d)| w + d).collect())?;
            cancel.check()?;
            if !next.is_finite() || next.gradient_norm() >= length {
                break;
            }
            solution.passes += 1;
            point = next;
            if point.gradient_norm() > 0.5 * length {
                break;
            }
        }
        // The bound needs the curvature of the last evaluation.
        let Point { mut w, value, gradient, .. } = Point::unsettled(risk, point.w)?;
        solution.lower_bound = Some(lower_bound(risk, &w, value, &gradient)?.unwrap_or(0.0));
        cancel.check()?;
        solution.objective = value;
        solution.thresholds = w.split_off(features);
        solution.weights = w;
        Ok(solution)
    }
}

/// A point, with value and gradient there.
pub(super) struct Point {
    pub(super) w: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// Whether the step to this point was a full step, or no step.
    full: bool,
}

impl Point {
    /// Evaluates at `w`, its free coordinates moved to their minimum.
    pub(super) fn at(risk: &mut dyn CurvedRisk, mut w: Vec<f64>) -> Result<Point> {
        let mut gradient = vec![0.0; w.len()];
        let value = settle(risk, &mut w, &mut gradient)?;
        Ok(Point { w, value, gradient, full: true })
    }

    /// Evaluates at `w` without moving its free coordinates.
    pub(super) fn unsettled(risk: &mut dyn CurvedRisk, w: Vec<f64>) -> Result<Point> {
        let mut gradient = vec![0.0; w.len()];
        let value = risk.evaluate(&w, &mut gradient)?;
        Ok(Point { w, value, gradient, full: true })
    }

    pub(super) fn gradient_norm(&self) -> f64 {
        norm(&self.gradient)
    }

    pub(super) fn is_finite(&self) -> bool {
        self.value.is_finite() && self.gradient.iter().all(|g| g.is_finite())
    }
}

/// How a point is evaluated: [`Point::at`] or [`Point::unsettled`].
type Evaluate = fn(&mut dyn CurvedRisk, Vec<f64>) -> Result<Point>;

/// One Newton step from the point of the last evaluation, or none if nothing improves any more or after a cancel.
/// `start_norm` is the length of the gradient at the first point. `settled` says whether free coordinates are moved to
/// their minimum afterwards, which takes a separate line search.
pub(super) fn step(
    risk: &mut dyn CurvedRisk,
    from: &Point,
    start_norm: f64,
    settled: bool,
    cancel: &Cancel,
) -> Result<Option<Point>> {
    let evaluate: Evaluate = if settled { Point::at } else { Point::unsettled };
    let direction = direction(risk, &from.gradient, start_norm, cancel)?;
    let slope = dot(&from.gradient, &direction);
    if cancel.is_raised() || slope.is_nan() || slope >= 0.0 {
        return Ok(None);
    }
    let moved = |step: f64| from.w.iter().zip(&direction).map(|(w, d)| w + step * d).collect();
    let next = if from.full && (risk.penalised() == risk.dim() || !settled) {
        // If the last step was a full step, try a full step again and evaluate it at once: if it is good enough, no
        // line search is needed. If not, the line starts there.
        let full = evaluate(risk, moved(1.0))?;
        let slope_there = dot(&full.gradient, &direction);
        if does(from.value, slope, full.value, slope_there) {
            full
        } else {
            risk.line(&direction)?;
            let step = search(risk, 1.0, slope, slope_there, cancel)?;
            Point { full: false, ..evaluate(risk, moved(step))? }
        }
    } else {
        risk.line(&direction)?;
        let (value_there, slope_there) = risk.along(1.0)?;
        let full = does(from.value, slope, value_there, slope_there);
        let step = if full { 1.0 } else { search(risk, 0.0, slope, slope_there, cancel)? };
        Point { full, ..evaluate(risk, moved(step))? }
    };
    // At the limit of double precision the value no longer falls, but a smaller gradient still gives a better bound.
    let stuck = next.value > from.value || (next.value == from.value && next.gradient_norm() >= from.gradient_norm());
    Ok((!stuck && !cancel.is_raised()).then_some(next))
}

/// Value and gradient at `w`, after moving its free coordinates to their minimum.
fn settle(risk: &mut dyn CurvedRisk, w: &mut [f64], gradient: &mut [f64]) -> Result<f64> {
    let mut value = risk.evaluate(w, gradient)?;
    let penalised = risk.penalised();
    let mut axis = vec![0.0; w.len()];
    match w.len() - penalised {
        0 => {}
        1 => {
            for _ in 0..SETTLE_ROUNDS {
                if free_slack(risk, w, gradient)?.is_some() {
                    break;
                }
                // The downhill sign: the search needs a falling start.
                axis[penalised] = -gradient[penalised].signum();
                risk.line(&axis)?;
                let step = closest_zero(risk, -gradient[penalised].abs())?;
                w[penalised] += step * axis[penalised];
                value = risk.evaluate(w, gradient)?;
            }
        }
        _ => {
            for _ in 0..SEVERAL_ROUNDS {
                if free_slack(risk, w, gradient)?.is_some() {
                    break;
                }
                axis[penalised..].copy_from_slice(&free_direction(risk, &gradient[penalised..])?);
                let slope = dot(gradient, &axis);
                if slope.is_nan() || slope >= 0.0 {
                    break;
                }
                risk.line(&axis)?;
                let step = closest_zero(risk, slope)?;
                let before: Vec<f64> = w[penalised..].to_vec();
                w.iter_mut().zip(&axis).skip(penalised).for_each(|(w, axis)| *w += step * axis);
                value = risk.evaluate(w, gradient)?;
                if w[penalised..] == before {
                    break;
                }
            }
        }
    }
    Ok(value)
}

/// The direction of a Newton step on the free coordinates alone. A coordinate whose slope the curvature cannot explain
/// moves downhill by one unit, and the line search finds how far.
fn free_direction(risk: &mut dyn CurvedRisk, gradient: &[f64]) -> Result<Vec<f64>> {
    let (matrix, count) = (risk.free_hessian()?, gradient.len());
    let mut direction = FreeBlock::of(&matrix, count, DEPENDENT).solve(gradient);
    let unmet: Vec<f64> = (0..count).map(|at| gradient[at] - dot(&matrix[at * count..][..count], &direction)).collect();
    for (at, direction) in direction.iter_mut().enumerate() {
        let flat = unmet[at].abs() > 1e-6 * gradient[at].abs();
        *direction = -*direction - if flat { unmet[at].signum() } else { 0.0 };
    }
    Ok(direction)
}

/// The maximum number of Newton steps on several free coordinates: on piecewise quadratic losses a few are enough.
const SEVERAL_ROUNDS: usize = 20;

/// Line searches along a free axis are repeated at most this often. Each starts where rounding stopped the one before.
const SETTLE_ROUNDS: usize = 3;

/// The step at which the slope along the prepared line vanishes, as exactly as rounding allows. The line must start
/// downhill.
fn closest_zero(risk: &mut dyn CurvedRisk, slope: f64) -> Result<f64> {
    let (mut low, mut low_slope) = (0.0, slope);
    let (mut high, mut high_slope) = (1.0, risk.along(1.0)?.1);
    for _ in 0..60 {
        if high_slope >= 0.0 {
            break;
        }
        (low, low_slope) = (high, high_slope);
        high *= 2.0;
        high_slope = risk.along(high)?.1;
    }
    // Slopes are piecewise linear: once both ends lie on one piece, the secant is exact.
    for iteration in 0..100 {
        if high_slope == 0.0 || low_slope == 0.0 || high_slope <= low_slope {
            break;
        }
        let secant = low - low_slope * (high - low) / (high_slope - low_slope);
        let step = if iteration % 4 == 3 || !(secant > low && secant < high) { 0.5 * (low + high) } else { secant };
        if step <= low || step >= high {
            break;
        }
        let here = risk.along(step)?.1;
        if here < 0.0 { (low, low_slope) = (step, here) } else { (high, high_slope) = (step, here) }
    }
    Ok(if low_slope.abs() < high_slope.abs() { low } else { high })
}

/// The bound at a point, or none if the free coordinates are not at their minimum. A Newton step on the free
/// coordinates alone would lower the value by about ½gᵀH⁻¹g: if that is small, the bound is lowered by it too.
pub(crate) fn lower_bound(risk: &mut dyn CurvedRisk, w: &[f64], value: f64, gradient: &[f64]) -> Result<Option<f64>> {
    let fixed = &gradient[..risk.penalised()];
    let slack = free_slack(risk, w, gradient)?;
    Ok(slack.map(|slack| (value - 0.5 * dot(fixed, fixed) - slack).max(0.0)))
}

/// How much the value could still fall by the free coordinates alone, about ½gᵀH⁻¹g, or none if that is more than
/// rounding.
pub(super) fn free_slack(risk: &mut dyn CurvedRisk, w: &[f64], gradient: &[f64]) -> Result<Option<f64>> {
    let penalised = risk.penalised();
    let (at, free) = (&w[penalised..], &gradient[penalised..]);
    if free.iter().all(|&g| g == 0.0) {
        return Ok(Some(0.0));
    }
    let (matrix, count) = (risk.free_hessian()?, free.len());
    for (number, (&g, at)) in free.iter().zip(at).enumerate() {
        let curvature = matrix[number * count + number];
        if g != 0.0 && g.abs() > FREE_GRADIENT * (curvature * at.abs().max(1.0)) {
            return Ok(None);
        }
    }
    Ok(Some(match free {
        [g] => g * g / (2.0 * matrix[0]),
        _ => FreeBlock::of(&matrix, count, DEPENDENT).fall(free),
    }))
}

fn direction(risk: &mut dyn CurvedRisk, gradient: &[f64], start_norm: f64, cancel: &Cancel) -> Result<Vec<f64>> {
    if risk.has_exact_hessian() {
        let dim = gradient.len();
        if let Some(cholesky) = BlockedCholesky::of(risk.hessian()?, dim, cancel) {
            let direction: Vec<f64> = cholesky.solve(gradient).iter().map(|d| -d).collect();
            if direction.iter().all(|d| d.is_finite()) {
                return Ok(direction);
            }
        }
        // Not positive definite up to rounding: a free coordinate has no curvature. Conjugate gradients can handle
        // that.
    }
    conjugate_gradients(risk, gradient, start_norm, cancel)
}

/// A direction with less curvature than this, relative to its square, is flat: penalised coordinates have curvature 1
/// or more.
const FLAT: f64 = 1e-12;

/// Solves H·d = −g approximately.
fn conjugate_gradients(
    risk: &mut dyn CurvedRisk,
    gradient: &[f64],
    start_norm: f64,
    cancel: &Cancel,
) -> Result<Vec<f64>> {
    let dim = gradient.len();
    let length = norm(gradient);
    let forcing = (length / start_norm).sqrt().min(0.1);
    let solve = Inverse::new(risk.preconditioner()?, dim, cancel);
    let mut direction = vec![0.0; dim];
    let mut residual: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut preconditioned = solve.apply(&residual);
    let mut search = preconditioned.clone();
    let mut product = vec![0.0; dim];
    let mut square = dot(&residual, &preconditioned);
    for _ in 0..(10 * dim).clamp(50, 1000) {
        if norm(&residual) <= forcing * length || cancel.is_raised() {
            break;
        }
        risk.hessian_times(&search, &mut product)?;
        let curvature = dot(&search, &product);
        // If only a free coordinate without curvature is left, nothing can be solved for.
        if curvature <= FLAT * dot(&search, &search) {
            break;
        }
        let step = square / curvature;
        for at in 0..dim {
            direction[at] += step * search[at];
            residual[at] -= step * product[at];
        }
        preconditioned = solve.apply(&residual);
        let new_square = dot(&residual, &preconditioned);
        let ratio = new_square / square;
        square = new_square;
        search.iter_mut().zip(&preconditioned).for_each(|(search, residual)| *search = residual + ratio * *search);
    }
    Ok(if direction.iter().all(|&d| d == 0.0) { gradient.iter().map(|g| -g).collect() } else { direction })
}

/// The inverse of a preconditioner. After a cancel it may be any.
enum Inverse {
    Cholesky(BlockedCholesky),
    Diagonal(Vec<f64>),
}

impl Inverse {
    fn new(preconditioner: Preconditioner, dim: usize, cancel: &Cancel) -> Inverse {
        let matrix = match preconditioner {
            Preconditioner::Diagonal(diagonal) => {
                // A free coordinate without curvature has zero on the diagonal.
                return Inverse::Diagonal(diagonal.iter().map(|&d| if d > 0.0 { 1.0 / d } else { 1.0 }).collect());
            }
            Preconditioner::Matrix(matrix) => matrix,
        };
        match BlockedCholesky::of(matrix, dim, cancel) {
            Some(cholesky) => Inverse::Cholesky(cholesky),
            None => Inverse::Diagonal(vec![1.0; dim]),
        }
    }

    fn apply(&self, vector: &[f64]) -> Vec<f64> {
        match self {
            Inverse::Diagonal(inverse) => vector.iter().zip(inverse).map(|(v, i)| v * i).collect(),
            Inverse::Cholesky(cholesky) => cholesky.solve(vector),
        }
    }
}

/// Whether a full step is good enough: it lowers the value, and the slope along the line at least halves.
fn does(value: f64, slope: f64, value_there: f64, slope_there: f64) -> bool {
    value_there <= value + 1e-4 * slope && slope_there.abs() <= 0.5 * slope.abs()
}

/// The minimiser along the prepared line, which starts at the step `origin`. `slope_at_one` is the slope at a full
/// step.
fn search(risk: &mut dyn CurvedRisk, origin: f64, slope: f64, slope_at_one: f64, cancel: &Cancel) -> Result<f64> {
    let mut slope_at = |step: f64| risk.along(step - origin).map(|(_, slope)| slope);
    // The slope rises along the line: bracket its zero, then use the secant, with bisection where that is slow.
    let (mut low, mut low_slope) = (0.0, slope);
    let (mut high, mut high_slope) = (1.0, slope_at_one);
    let mut doublings = 0;
    while high_slope < 0.0 && doublings < 60 {
        (low, low_slope) = (high, high_slope);
        high *= 2.0;
        high_slope = slope_at(high)?;
        doublings += 1;
    }
    for iteration in 0..60 {
        if high_slope - low_slope <= 0.0 || cancel.is_raised() {
            break;
        }
        let secant = low - low_slope * (high - low) / (high_slope - low_slope);
        let step = if iteration % 3 == 2 || !(secant > low && secant < high) { 0.5 * (low + high) } else { secant };
        let here = slope_at(step)?;
        if here.abs() <= 1e-3 * slope.abs() {
            return Ok(step);
        }
        if here < 0.0 {
            (low, low_slope) = (step, here)
        } else {
            (high, high_slope) = (step, here)
        }
        if high - low <= 1e-12 * high {
            break;
        }
    }
    Ok(if low > 0.0 { low } else { high })
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
