//! Newton's method on a hinge whose kink is rounded off, ever less, until the result is good enough for the hinge itself.
//!
//! ```text
//! min  P(w) = ½‖w‖² + Σ_p c_p · max(0, v_p),   v_p = margin − a_p·w   (for ranking, p runs over all pairs)
//! ```
//! With `h(v) = (max(0, v)² − max(0, v − δ)²) / 2δ` in place of max(0, v) the problem is smooth, and a few Newton steps
//! solve it. At any w, α_p = c_p · h'(v_p) lies in [0, c_p]: a feasible point of the dual of the hinge problem. So the
//! rounded problem's own certificate, P_δ(w) − ½‖∇P_δ(w)‖², gives a bound for the hinge, and a better one when what the
//! rounding took is added back:
//!
//! ```text
//! D(α) = P_δ(w) − ½‖∇P_δ(w)‖² + Σ_p δ·α_p² / (2·c_p)
//! ```
//! Where most of P − D comes from the gradient another Newton step is taken; where it comes from the rounding, which falls
//! like δ², δ is lowered to what the tolerance is expected to need. The weights and δ are the witness. Cost: as
//! [`super::newton`], about twice the sweeps.
//!
//! **Free scalars.** α is feasible only where Σ α t = 0 for each of them, which is where the derivative by it vanishes. Short
//! of that the bound is a guess, less what that derivative says is out of balance. Wherever a width is solved it is made to
//! count. For a task with a `Prove`, that balances the dual point and finds its value. For any other, the free scalars
//! are brought to their minimum, as in [`super::newton`]; where their derivatives then vanish but for rounding, the bound counts,
//! less what the value could still fall by them. Without free scalars it holds as it stands, less what its sums may have lost
//! to rounding; scores of features so large that they cancel lose more, and so `Prove` has the last word here too.
//!
//! **Widths** are shares of the largest margin of the task: with all margins and scores a thousand times as large the same
//! steps are made.

use super::linear_risk::rounding;
use super::newton::{Point, free_slack, step};
use super::{LinearRisk, Progress, Risk, Solution, Start, Stop, TracePoint, Witness, overflow, relative_gap};
use crate::data::Design;
use crate::error::Result;
use crate::run::{Cancel, Observer};
use crate::task::Roundable;

/// Newton's method for tasks with hinge loss: their kink is rounded off, ever less, until the result is good enough for the hinge
/// itself. These are its settings.
#[derive(Clone, Debug)]
pub struct RoundedHinge {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The most Newton steps to make.
    pub max_passes: u64,
    /// Whether free scalars are penalised like weights.
    pub penalise_thresholds: bool,
}

/// Primal value and lower bound that weights, thresholds and a width stand for, recomputed from scratch but for the scores
/// of all rows where these are at hand; an error once somebody asks for an end.
pub(crate) type Prove<'a> = &'a dyn Fn(&[f64], &[f64], f64, Option<&[f64]>) -> Result<(f64, f64)>;

/// The first width, in margins: two, so that all pairs curve at weights of zero, where each misses its margin by one.
const FIRST_WIDTH: f64 = 2.0;

/// From a neighbouring solution the first width is so many times that at which it was found.
const WARM_WIDTH: f64 = 4.0;

/// The width falls at least and at most by these factors: slowly enough for the last solution to be a good start.
const LEAST_FALL: f64 = 2.0;
const MOST_FALL: f64 = 8.0;

/// Widths below this share of a margin are lost in the rounding of scores, and prove nothing.
const LEAST_WIDTH: f64 = 1e-9;

/// What the bound may have lost to rounding, in units of the last place of what it is a sum of.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// Once the gradient costs less than this share of what rounding costs, the width is solved.
const SOLVED: f64 = 0.25;

/// And a wide one is solved well enough once a step gains less than this share.
const SMALL_GAIN: f64 = 0.1;

/// A width is a wide one while rounding costs more than this share of the objective.
const COARSE: f64 = 1e-4;

/// What the point of the last evaluation of a rounded risk says about the hinge problem.
struct HingeValues {
    primal: f64,
    bound: f64,
    /// What the bound would be at a point where the gradient vanishes.
    reachable: f64,
    /// The part of the difference between primal value and bound that further steps take away,
    unsolved: f64,
    /// and the part that they do not.
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

/// Brings the free scalars of a point to their minimum. Returns the primal value there, and the bound where their derivatives
/// vanish but for rounding. Worth nothing once somebody has asked for an end.
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
    // By as much as the rest of the derivative moves them, what the rounding took changes too.
    let moved = width * free.iter().map(|g| g.abs()).sum::<f64>();
    Ok((primal, slack.map(|slack| (reachable - 0.5 * squares - slack - moved).max(0.0))))
}

/// The lower bound that a point of a task with hinge loss and a width stand for: what `verify` checks again. None where the
/// derivatives by free scalars do not vanish. Worth nothing once somebody has asked for an end.
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

    /// The same. With `prove` nothing has converged that it did not confirm, and a bound that is only a guess, as where
    /// thresholds are free, counts once it does.
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
                // A value cut short by a cancelled pass is none.
                if progress.cancelled() {
                    break 'widths Stop::Cancelled;
                }
                if !point.is_finite() {
                    return Err(overflow());
                }
                let HingeValues { mut primal, mut bound, unsolved, rounding, .. } = HingeValues::at(&risk, &point);
                let wanted = 0.5 * self.tolerance * primal;
                // A wide hinge need not be solved for long: once its steps gain less than what rounding costs, the next
                // width is due. Those that could be the last are solved to the end, for their gradient must vanish.
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
                    // Nobody else has a look at it: what is not proven here is no bound.
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
                // A guess counts for nothing that is claimed.
                progress.bound((proven || !guessed).then_some(bound));
                let ended = within || passes >= self.max_passes;
                // The next width looks at the same point again, with a better bound: a pass is reported once.
                if solved && !ended && width > least_width {
                    break rounding;
                }
                if ended || reported != Some(passes) {
                    // Looked at again, a pass stands in the history with what is known of it at last.
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
                // A threshold that no row near its kink holds has no curvature: it is searched for by itself.
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
            // What rounding costs falls like the square of the width; half of the tolerance is left to it.
            let wanted = 0.5 * self.tolerance * best.as_ref().map_or(0.0, |best| best.primal);
            let fall = (rounding / wanted).sqrt().clamp(LEAST_FALL, MOST_FALL);
            width = (width / fall).max(least_width);
            w = point.w;
        };
        // Cancelled within the very first pass: nothing is known of any point.
        cancel_without_a_point(&best, cancel)?;
        let found = best.ok_or_else(overflow)?;
        Ok(found.into_solution(weights, passes, stop, progress.trace))
    }
}

/// The width to begin with, and the least there is.
fn first_and_least_width<T: Roundable>(task: &T, start: Option<&Start>) -> (f64, f64) {
    let scale = task.margin_scale();
    let least = (LEAST_WIDTH * scale).max(f64::MIN_POSITIVE);
    let first = (FIRST_WIDTH * scale).max(least);
    // Near a solution the wide hinge would only lead away from it.
    let narrow = start.and_then(|start| start.width).filter(|width| *width > 0.0);
    (narrow.map_or(first, |width| (WARM_WIDTH * width).clamp(least, first)), least)
}

/// A point, its thresholds behind the weights, with the values it was found to have.
struct Found {
    weights: Vec<f64>,
    primal: f64,
    bound: f64,
    width: f64,
}

impl Found {
    /// As a solution, so many of whose numbers are weights.
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
            kernel: None,
            trace,
        }
    }
}

fn cancel_without_a_point(best: &Option<Found>, cancel: &Cancel) -> Result<()> {
    if best.is_none() { cancel.check() } else { Ok(()) }
}
