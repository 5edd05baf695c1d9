//! Newton's method on a hinge with a rounded kink. The rounding shrinks until the result is good enough for the hinge
//! itself.
//!
//! ```text
//! min  P(w) = ½‖w‖² + Σ_p c_p · max(0, v_p),   v_p = margin − a_p·w   (for ranking, p runs over all pairs)
//! ```
//! With `h(v) = (max(0, v)² − max(0, v − δ)²) / 2δ` in place of max(0, v) the problem is smooth, and a few Newton steps
//! solve it. At any w, α_p = c_p · h'(v_p) lies in [0, c_p]: a feasible point of the dual of the hinge problem. So the
//! rounded problem's own certificate, P_δ(w) − ½‖∇P_δ(w)‖², gives a bound for the hinge. The bound improves when the
//! loss that the rounding removed is added back:
//!
//! ```text
//! D(α) = P_δ(w) − ½‖∇P_δ(w)‖² + Σ_p δ·α_p² / (2·c_p)
//! ```
//! If most of P − D comes from the gradient, another Newton step is taken. If it comes from the rounding, which falls
//! like δ², δ is lowered to what the tolerance is expected to need. The weights and δ are the witness. Cost: as
//! [`super::newton`], about twice the sweeps.
//!
//! **Free scalars.** α is feasible only if Σ α t = 0 for each of them, that is, if the derivative by it vanishes.
//! Otherwise the bound is an estimate, lowered by the imbalance that this derivative shows. Whenever the problem of a
//! width is solved, the estimate is replaced by a proven bound. For a task with a `Prove`, `Prove` balances the dual
//! point and computes its value. For any other task, the free scalars are moved to their minimum, as in
//! [`super::newton`]. If their derivatives then vanish up to rounding, the bound is valid, lowered by how much the
//! value could still fall by them. Without free scalars the bound is valid as it is, lowered by what its sums may have
//! lost to rounding. Scores of features so large that they cancel lose more, so `Prove` decides here too.
//!
//! **Widths** are shares of the largest margin of the task: if all margins and scores are a thousand times as large,
//! the solver makes the same steps.

use super::linear_risk::rounding;
use super::newton::{Point, free_slack, step};
use super::{LinearRisk, Progress, Risk, Solution, Start, Stop, TracePoint, Witness, overflow, relative_gap};
use crate::data::Design;
use crate::error::Result;
use crate::run::{Cancel, Observer};
use crate::task::Roundable;

/// Settings of Newton's method for tasks with hinge loss. The kink of the hinge is rounded off, and the rounding
/// shrinks until the result is good enough for the hinge itself.
#[derive(Clone, Debug)]
pub struct RoundedHinge {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of Newton steps.
    pub max_passes: u64,
    /// Whether free scalars are penalised like weights.
    pub penalise_thresholds: bool,
}

/// Primal value and lower bound for weights, thresholds and a width, recomputed from scratch, except for the scores of
/// all rows if these are given. Returns an error after a cancel.
pub(crate) type Prove<'a> = &'a dyn Fn(&[f64], &[f64], f64, Option<&[f64]>) -> Result<(f64, f64)>;

/// The first width, in margins: two, so that all pairs have curvature at zero weights, where each misses its margin by
/// one.
const FIRST_WIDTH: f64 = 2.0;

/// After a warm start, the first width is this many times the width of the neighbouring solution.
const WARM_WIDTH: f64 = 4.0;

/// The width falls at least by the first and at most by the second factor: slowly enough for the last solution to be a
/// good warm start.
const LEAST_FALL: f64 = 2.0;
const MOST_FALL: f64 = 8.0;

/// Widths below this share of a margin are lost in the rounding of scores and prove nothing.
const LEAST_WIDTH: f64 = 1e-9;

/// What the bound may have lost to rounding, relative to the sizes of its terms.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// The problem of a width is solved once the gradient's part of the gap is below this share of the rounding's part.
const SOLVED: f64 = 0.25;

/// A wide width is also left once a step gains less than this share of the rounding's part.
const SMALL_GAIN: f64 = 0.1;

/// A width is wide while the rounding costs more than this share of the objective.
const COARSE: f64 = 1e-4;

/// Values for the hinge problem at the point of the last evaluation of a rounded risk.
struct HingeValues {
    primal: f64,
    bound: f64,
    /// The bound if the gradient at this point were zero.
    reachable: f64,
    /// The part of the gap that further Newton steps remove.
    unsolved: f64,
    /// The part of the gap that is due to rounding off the hinge.
    rounding: f64,
}

impl HingeValues {
    fn at<T: Roundable>(risk: &LinearRisk<'_, T>, point: &Point) -> HingeValues {
        let [hinge, excess, error] = rounding(risk);
        let (fixed, free) = point.gradient.split_at(risk.penalised());
        let primal = 0.5 * point.w[..fixed.len()].iter().map(|w| w * w).sum::<f64>() + hinge;
        let products: f64 = point.w.iter().zip(&point.gradient).map(|(w, g)| (w * (w - g)).abs()).sum();
        let reachable = point.value + excess - error - ROUNDING * products;
        let unsolved = 0.5 * fixed.iter().map(|g| g * g).sum::<f64>() + free.iter().map(|g| g.abs()).sum::<f64>();
        let bound = (reachable - unsolved).max(0.0);
        HingeValues { primal, bound, reachable, unsolved, rounding: (primal - reachable).max(0.0) }
    }
}

/// Moves the free scalars of a point to their minimum. Returns the primal value there, and the bound if their
/// derivatives vanish up to rounding. After a cancel the result is not usable.
fn settled_values<T: Roundable>(
    risk: &mut LinearRisk<'_, T>,
    point: &mut Point,
    width: f64,
) -> Result<(f64, Option<f64>)> {
    *point = Point::at(risk, std::mem::take(&mut point.w))?;
    let slack = free_slack(risk, &point.w, &point.gradient)?;
    let HingeValues { primal, reachable, .. } = HingeValues::at(risk, point);
    let (fixed, free) = point.gradient.split_at(risk.penalised());
    let squares: f64 = fixed.iter().map(|g| g * g).sum();
    // The remaining derivative would move the free scalars, which also changes the loss that the rounding removed.
    let moved = width * free.iter().map(|g| g.abs()).sum::<f64>();
    Ok((primal, slack.map(|slack| (reachable - 0.5 * squares - slack - moved).max(0.0))))
}

/// The lower bound for a point and a width of a task with hinge loss: `verify` checks it again. None if the derivatives
/// by free scalars do not vanish. After a cancel the result is not usable.
pub(crate) fn rounded_certificate<T: Roundable>(
    task: &T,
    design: &Design,
    point: &[f64],
    width: f64,
    penalise_thresholds: bool,
    cancel: &Cancel,
) -> Result<Option<f64>> {
    let rounded = task.rounded(width);
    let mut risk = LinearRisk::new(&rounded, design, penalise_thresholds, cancel);
    let mut point = Point::unsettled(&mut risk, point.to_vec())?;
    if risk.penalised() < risk.dim() {
        return settled_values(&mut risk, &mut point, width).map(|(_, bound)| bound);
    }
    Ok(Some(HingeValues::at(&risk, &point).bound))
}

impl RoundedHinge {
    /// Solves a task with hinge loss from `start`, or from zero.
    pub fn solve<T: Roundable>(
        &self,
        task: &T,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        self.solve_proven(task, design, None, start, observer, cancel)
    }

    /// The same. With `prove`, the solver converges only if `prove` confirms it. A bound that is only an estimate, as
    /// with free thresholds, counts once `prove` confirms it.
    pub(crate) fn solve_proven<T: Roundable>(
        &self,
        task: &T,
        design: &Design,
        prove: Option<Prove<'_>>,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let weights = design.cols() * task.outputs();
        let mut w = match start {
            Some(start) => [&start.weights[..], &start.thresholds[..]].concat(),
            None => vec![0.0; weights + task.thresholds()],
        };
        let mut best: Option<Found> = None;
        let (mut passes, mut reported) = (0, None);
        let (mut width, least_width) = first_and_least_width(task, start);
        let stop = 'widths: loop {
            let rounded = task.rounded(width);
            let mut risk = LinearRisk::new(&rounded, design, self.penalise_thresholds, cancel);
            let mut point = Point::unsettled(&mut risk, w)?;
            let start_norm = point.gradient_norm();
            let mut value_before = f64::INFINITY;
            let rounding = loop {
                // After a cancel the value is incomplete.
                if progress.cancelled() {
                    break 'widths Stop::Cancelled;
                }
                if !point.is_finite() {
                    return Err(overflow());
                }
                let HingeValues { mut primal, mut bound, unsolved, rounding, .. } = HingeValues::at(&risk, &point);
                let wanted = 0.5 * self.tolerance * primal;
                // A wide hinge is not solved exactly: once a step gains less than the rounding costs, the next width
                // follows. Widths that may be the last are solved to the end, because their gradient must vanish.
                let coarse = wanted.max(COARSE * primal);
                let gained = std::mem::replace(&mut value_before, point.value) - point.value;
                let solved = unsolved <= SOLVED * rounding || (rounding > coarse && gained <= SMALL_GAIN * rounding);
                let guessed = risk.penalised() < risk.dim();
                let promising = relative_gap(primal, bound) <= self.tolerance || passes >= self.max_passes;
                let mut proven = prove.is_none() && !guessed;
                let asked = promising || (guessed && solved);
                if let Some(prove) = prove.filter(|_| asked) {
                    let (weights, thresholds) = point.w.split_at(weights);
                    match prove(weights, thresholds, width, risk.row_scores()) {
                        Ok(values) => ((primal, bound), proven) = (values, true),
                        Err(_) if progress.cancelled() => break 'widths Stop::Cancelled,
                        Err(error) => return Err(error),
                    }
                } else if prove.is_none() && guessed {
                    // No other code checks this point, so only a bound proven here counts.
                    let settled = if asked { Some(settled_values(&mut risk, &mut point, width)?) } else { None };
                    if progress.cancelled() {
                        break 'widths Stop::Cancelled;
                    }
                    let (value, found) = settled.unwrap_or((primal, None));
                    (primal, bound, proven) = (value, found.unwrap_or(0.0), found.is_some());
                }
                let within = proven && relative_gap(primal, bound) <= self.tolerance;
                if within || best.as_ref().is_none_or(|best| primal - bound < best.primal - best.bound) {
                    best = Some(Found { weights: point.w.clone(), primal, bound, width });
                }
                // An unproven estimate is not reported as a bound.
                progress.bound((proven || !guessed).then_some(bound));
                let ended = within || passes >= self.max_passes;
                // The next width evaluates the same point again, with a better bound. A pass is reported only once.
                if solved && !ended && width > least_width {
                    break rounding;
                }
                if ended || reported != Some(passes) {
                    // If a pass is evaluated again, its last values replace those in the history.
                    progress.trace.pop_if(|last| last.pass == passes);
                    let (objective, at) = best.as_ref().map_or((primal, &point.w), |best| (best.primal, &best.weights));
                    if progress.report(passes, objective, &at[..weights], &at[weights..]) {
                        break 'widths Stop::Cancelled;
                    }
                    reported = Some(passes);
                }
                if within {
                    break 'widths Stop::Converged;
                }
                if ended {
                    break 'widths Stop::PassLimit;
                }
                if solved {
                    break rounding;
                }
                // A threshold without rows near their kink has no curvature: it gets a separate line search.
                let free: f64 = point.gradient[risk.penalised()..].iter().map(|g| g.abs()).sum();
                match step(&mut risk, &point, start_norm, free > 0.5 * unsolved, cancel)? {
                    Some(next) => (point, passes) = (next, passes + 1),
                    None if progress.cancelled() => break 'widths Stop::Cancelled,
                    None => break rounding,
                }
            };
            if width <= least_width {
                break if progress.cancelled() { Stop::Cancelled } else { Stop::Stalled };
            }
            // The rounding's part of the gap falls like the square of the width. It may use half of the tolerance.
            let wanted = 0.5 * self.tolerance * best.as_ref().map_or(0.0, |best| best.primal);
            let fall = (rounding / wanted).sqrt().clamp(LEAST_FALL, MOST_FALL);
            width = (width / fall).max(least_width);
            w = point.w;
        };
        // Cancelled within the first pass: no point was evaluated.
        cancel_without_a_point(&best, cancel)?;
        let found = best.ok_or_else(overflow)?;
        Ok(found.into_solution(weights, passes, stop, progress.trace))
    }
}

/// The first width and the smallest width.
fn first_and_least_width<T: Roundable>(task: &T, start: Option<&Start>) -> (f64, f64) {
    let scale = task.margin_scale();
    let least = (LEAST_WIDTH * scale).max(f64::MIN_POSITIVE);
    let first = (FIRST_WIDTH * scale).max(least);
    // Near a solution, a wide hinge would only lead away from it.
    let narrow = start.and_then(|start| start.width).filter(|width| *width > 0.0);
    (narrow.map_or(first, |width| (WARM_WIDTH * width).clamp(least, first)), least)
}

/// A point (weights, then thresholds) with its values.
struct Found {
    weights: Vec<f64>,
    primal: f64,
    bound: f64,
    width: f64,
}

impl Found {
    /// Converts it to a solution. The first `weights` numbers are weights.
    fn into_solution(self, weights: usize, passes: u64, stop: Stop, trace: Vec<TracePoint>) -> Solution {
        let Found { weights: mut point, primal, bound, width } = self;
        let thresholds = point.split_off(weights);
        Solution {
            weights: point,
            thresholds,
            objective: primal,
            lower_bound: Some(bound),
            witness: Witness::Rounded(width),
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: None,
            trace,
        }
    }
}

fn cancel_without_a_point(best: &Option<Found>, cancel: &Cancel) -> Result<()> {
    if best.is_none() { cancel.check() } else { Ok(()) }
}
