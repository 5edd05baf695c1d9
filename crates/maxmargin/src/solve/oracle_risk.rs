//! Structured outputs as a sum over examples, and the values of their certificate.
//!
//! ```text
//! P(w) = ½‖w‖² + Σ_i C_i · max_y plane_iy(s),   plane_iy(s) = loss_iy + slope_iy · s,   s the scores of the rows of i
//! D(α) = Σ_iy α_iy loss_iy − ½‖Σ_iy α_iy slope_iy · X_i‖²,   α ≥ 0,   Σ_y α_iy ≤ C_i
//! ```
//! The truth has the plane 0, which takes what α leaves of C_i. Shared scores are weights of their own: as free scalars
//! that are penalised. One evaluation of [`MostViolated`] calls the search for the most violated output once for each
//! example, on all threads, and reads the features once.

use super::{LinearRisk, Risk, infeasible};
use crate::certificate::OutputDual;
use crate::data::Design;
use crate::error::Result;
use crate::parallel;
use crate::run::Cancel;
use crate::structured::{Plane, Scores, Structure};
use crate::task::{Objective, Place, Slopes};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A dual variable may exceed its limit by this share, which is rounding.
const WITHIN: f64 = 1e-9;

/// How often the search for the most violated output was called, and how long the calls took, added up over threads.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Searches {
    /// Counts one search.
    pub(crate) fn time<T>(&self, search: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let found = search();
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        found
    }

    /// The number of calls, and the seconds they took.
    pub(crate) fn total(&self) -> (u64, f64) {
        (self.calls.load(Ordering::Relaxed), self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9)
    }
}

/// Structured outputs as a task that is a sum over parts, its examples. It has slopes and no curvature.
pub(crate) struct MostViolated<'a> {
    pub(crate) structure: &'a dyn Structure,
    /// The weight C of the loss.
    pub(crate) cost: f64,
    pub(crate) searches: &'a Searches,
}

/// Buffers of an example, reused where it is evaluated again.
#[derive(Default)]
pub(crate) struct Found {
    output: Vec<u32>,
    plane: Plane,
}

impl Objective for MostViolated<'_> {
    type Memo = Found;

    fn parts(&self) -> usize {
        self.structure.examples()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.structure.rows(part)
    }

    fn outputs(&self) -> usize {
        self.structure.outputs()
    }

    fn thresholds(&self) -> usize {
        self.structure.shared()
    }

    fn prepare(&self, shared: &[f64]) -> Result<()> {
        self.structure.prepare(shared)
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, found: &mut Found) -> Result<f64> {
        slopes.scores.fill(0.0);
        let cost = self.cost * self.structure.weight(at.part);
        if cost == 0.0 {
            return Ok(0.0);
        }
        let scores = Scores { rows: at.scores, shared: at.thresholds };
        let Found { output, plane } = found;
        self.searches.time(|| self.structure.most_violated(at.part, scores, output))?;
        self.structure.plane(at.part, output, plane)?;
        let value = plane.value(scores);
        // The truth itself costs nothing.
        if value <= 0.0 {
            return Ok(0.0);
        }
        add_slopes(plane, cost, slopes);
        Ok(cost * value)
    }
}

/// Adds a multiple of the slopes of a plane.
fn add_slopes(plane: &Plane, times: f64, slopes: Slopes<'_>) {
    plane.rows.iter().for_each(|&(place, slope)| slopes.scores[place as usize] += times * slope);
    plane.shared.iter().for_each(|&(place, slope)| slopes.thresholds[place as usize] += times * slope);
}

/// Outputs with multipliers: Σ α (loss + slope · s), which is linear in the weights.
struct Multiplied<'a> {
    structure: &'a dyn Structure,
    cost: f64,
    dual: &'a OutputDual,
}

impl Objective for Multiplied<'_> {
    type Memo = ();

    fn parts(&self) -> usize {
        self.structure.examples()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.structure.rows(part)
    }

    fn outputs(&self) -> usize {
        self.structure.outputs()
    }

    fn thresholds(&self) -> usize {
        self.structure.shared()
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, (): &mut ()) -> Result<f64> {
        slopes.scores.fill(0.0);
        let Slopes { scores, thresholds } = slopes;
        let (mut plane, mut value) = (Plane::default(), 0.0);
        let limit = limit_of(self.structure, self.cost, at.part);
        let total: f64 = self.dual.of_example(at.part).map(|(_, alpha)| alpha).sum();
        // What rounding left above the limit is taken off.
        let share = if total > limit { limit / total } else { 1.0 };
        for (output, alpha) in self.dual.of_example(at.part) {
            self.structure.plane(at.part, output, &mut plane)?;
            if !plane.loss.is_finite() || plane.loss < 0.0 {
                return Err(infeasible("an output has a loss below zero"));
            }
            value += share * alpha * plane.loss;
            add_slopes(&plane, share * alpha, Slopes { scores: &mut *scores, thresholds: &mut *thresholds });
        }
        Ok(value)
    }
}

/// The objective at these weights of features and shared scores.
pub(crate) fn objective_of_outputs(
    task: &MostViolated<'_>,
    design: &Design,
    (weights, shared): (&[f64], &[f64]),
    cancel: &Cancel,
) -> Result<f64> {
    let point = [weights, shared].concat();
    let mut gradient = vec![0.0; point.len()];
    let value = LinearRisk::new(task, design, true, cancel).evaluate(&point, &mut gradient)?;
    // After a cancel the value is incomplete.
    cancel.check()?;
    Ok(value)
}

/// The loss at these scores of all rows and these shared scores.
pub(crate) fn loss_at_scores(task: &MostViolated<'_>, scores: &[f64], shared: &[f64], cancel: &Cancel) -> Result<f64> {
    let outputs = task.outputs();
    task.prepare(shared)?;
    let losses = parallel::try_map(task.parts(), |part| {
        let rows = task.rows(part);
        let scores = &scores[rows.start * outputs..rows.end * outputs];
        let (mut by_row, mut by_shared) = (vec![0.0; scores.len()], vec![0.0; shared.len()]);
        let at = Place { part, scores, thresholds: shared, cancel };
        task.evaluate(&at, Slopes { scores: &mut by_row, thresholds: &mut by_shared }, &mut Found::default())
    })?;
    cancel.check()?;
    Ok(losses.iter().sum())
}

/// Coefficients of rows and weights of shared scores that belong to a dual point, and the gain Σ α · loss.
pub(crate) struct Expansion {
    pub(crate) rows: Vec<usize>,
    /// Those of one row next to each other.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) shared: Vec<f64>,
    pub(crate) gain: f64,
}

/// The expansion of a dual point. An error if the point is not feasible.
pub(crate) fn expansion_of_outputs(structure: &dyn Structure, cost: f64, dual: &OutputDual) -> Result<Expansion> {
    check_outputs(structure, cost, dual)?;
    let (task, cancel) = (Multiplied { structure, cost, dual }, Cancel::new());
    let outputs = structure.outputs();
    let mut made =
        Expansion { rows: Vec::new(), coefficients: Vec::new(), shared: vec![0.0; structure.shared()], gain: 0.0 };
    let mut own = Vec::new();
    for part in 0..structure.examples() {
        let rows = structure.rows(part);
        own.resize(rows.len() * outputs, 0.0);
        let at = Place { part, scores: &[], thresholds: &[], cancel: &cancel };
        made.gain += task.evaluate(&at, Slopes { scores: &mut own, thresholds: &mut made.shared }, &mut ())?;
        for (row, own) in rows.zip(own.chunks_exact(outputs)).filter(|(_, own)| own.iter().any(|slope| *slope != 0.0)) {
            made.rows.push(row);
            made.coefficients.extend(own.iter().map(|slope| -slope));
        }
    }
    made.shared.iter_mut().for_each(|slope| *slope = -*slope);
    Ok(made)
}

/// What the variables of an example may add up to, also for a hard margin, whose cost is infinite.
fn limit_of(structure: &dyn Structure, cost: f64, example: usize) -> f64 {
    let weight = structure.weight(example);
    if weight > 0.0 { cost * weight } else { 0.0 }
}

/// Refuses a dual point that is not feasible.
fn check_outputs(structure: &dyn Structure, cost: f64, dual: &OutputDual) -> Result<()> {
    if !dual.is_sound(structure.examples()) {
        return Err(infeasible("its examples do not fit the data"));
    }
    for example in 0..structure.examples() {
        let limit = limit_of(structure, cost, example);
        if dual.of_example(example).map(|(_, alpha)| alpha).sum::<f64>() > limit * (1.0 + WITHIN) {
            return Err(infeasible("the multipliers of an example exceed its cost"));
        }
    }
    Ok(())
}

/// The bound that a dual point proves, or an error if it is not feasible.
pub(crate) fn bound_of_outputs(
    structure: &dyn Structure,
    cost: f64,
    design: &Design,
    dual: &OutputDual,
    cancel: &Cancel,
) -> Result<f64> {
    check_outputs(structure, cost, dual)?;
    let task = Multiplied { structure, cost, dual };
    let mut risk = LinearRisk::new(&task, design, true, cancel);
    let mut gradient = vec![0.0; risk.dim()];
    let gain = risk.evaluate(&vec![0.0; gradient.len()], &mut gradient)?;
    cancel.check()?;
    // The gradient is −w(α).
    let half = 0.5 * gradient.iter().map(|weight| weight * weight).sum::<f64>();
    Ok((gain - half).max(0.0))
}
