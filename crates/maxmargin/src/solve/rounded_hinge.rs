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
//! [`super::newton`], about twice the sweeps. It does not take free coordinates.

use super::newton::{Point, step};
use super::{LinearRisk, Progress, Solution, Start, Stop, Witness, overflow, relative_gap};
use crate::data::Design;
use crate::error::Result;
use crate::run::{Cancel, Observer};
use crate::task::Ranking;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct RoundedHinge {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The most Newton steps to make.
    pub max_passes: u64,
}

/// The first width: half a margin.
const FIRST_WIDTH: f64 = 0.5;

/// The width falls at least and at most by these factors: slowly enough for the last solution to be a good start.
const LEAST_FALL: f64 = 2.0;
const MOST_FALL: f64 = 8.0;

/// Widths below this are lost in the rounding of scores.
const LEAST_WIDTH: f64 = 1e-9;

/// Once the gradient is responsible for less than this share of the gap, the rest is rounding.
const SOLVED: f64 = 0.2;

/// Primal value and lower bound of the hinge problem at the point of the last evaluation of a rounded risk.
fn hinge_values(risk: &LinearRisk<'_, Ranking>, point: &Point) -> (f64, f64) {
    let [hinge, excess] = risk.rounding();
    let primal = 0.5 * point.w.iter().map(|w| w * w).sum::<f64>() + hinge;
    let slack = 0.5 * point.gradient.iter().map(|g| g * g).sum::<f64>();
    (primal, (point.value - slack + excess).max(0.0))
}

/// Primal value and lower bound of a ranking task with hinge loss that weights and a width stand for: what `verify`
/// checks again.
pub(crate) fn rounded_certificate(task: &Ranking, design: &Design, weights: &[f64], width: f64) -> (f64, f64) {
    let cancel = Cancel::new();
    let rounded = task.rounded(width);
    let mut risk = LinearRisk::new(&rounded, design, false, &cancel);
    let point = Point::at(&mut risk, weights.to_vec());
    hinge_values(&risk, &point)
}

impl RoundedHinge {
    /// Solves a ranking task with hinge loss from `start`, or from zero.
    pub fn solve(
        &self,
        task: &Ranking,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let mut w = start.map_or_else(|| vec![0.0; design.cols()], |start| start.weights.clone());
        let mut best: Option<Found> = None;
        let mut passes = 0;
        let mut width = FIRST_WIDTH;
        let stop = 'widths: loop {
            let rounded = task.rounded(width);
            let mut risk = LinearRisk::new(&rounded, design, false, cancel);
            let mut point = Point::at(&mut risk, w);
            let start_norm = point.gradient_norm();
            let rounding = loop {
                // A value cut short by a cancelled pass is none.
                if progress.cancelled() {
                    break 'widths Stop::Cancelled;
                }
                if !point.is_finite() {
                    return Err(overflow());
                }
                let (primal, bound) = hinge_values(&risk, &point);
                if best.as_ref().is_none_or(|best| primal - bound < best.primal - best.bound) {
                    best = Some(Found { weights: point.w.clone(), primal, bound, width });
                }
                let (best_primal, best_bound) = best.as_ref().map_or((primal, bound), |b| (b.primal, b.bound));
                progress.bound(Some(bound));
                if progress.report(passes, best_primal, &point.w, &[]) {
                    break 'widths Stop::Cancelled;
                }
                if relative_gap(best_primal, best_bound) <= self.tolerance {
                    break 'widths Stop::Converged;
                }
                if passes >= self.max_passes {
                    break 'widths Stop::PassLimit;
                }
                let gap = primal - bound;
                let unsolved = 0.5 * point.gradient_norm().powi(2);
                if unsolved <= SOLVED * gap {
                    break gap - unsolved;
                }
                passes += 1;
                match step(&mut risk, &point, start_norm, cancel) {
                    Some(next) => point = next,
                    None => break gap,
                }
            };
            if width <= LEAST_WIDTH {
                break Stop::Stalled;
            }
            // What rounding costs falls like the square of the width; half of the tolerance is left to it.
            let wanted = 0.5 * self.tolerance * best.as_ref().map_or(0.0, |best| best.primal);
            let fall = (rounding / wanted).sqrt().clamp(LEAST_FALL, MOST_FALL);
            width = (width / fall).max(LEAST_WIDTH);
            w = point.w;
        };
        // Cancelled within the very first pass: nothing is known of any point.
        cancel_without_a_point(&best, cancel)?;
        let Some(Found { weights, primal, bound, width }) = best else {
            return Err(overflow());
        };
        Ok(Solution {
            weights,
            thresholds: Vec::new(),
            objective: primal,
            lower_bound: Some(bound),
            witness: Witness::Rounded(width),
            passes,
            stop,
            trace: progress.trace,
        })
    }
}

/// A point with the values it was found to have.
struct Found {
    weights: Vec<f64>,
    primal: f64,
    bound: f64,
    width: f64,
}

fn cancel_without_a_point(best: &Option<Found>, cancel: &Cancel) -> Result<()> {
    if best.is_none() { cancel.check() } else { Ok(()) }
}
