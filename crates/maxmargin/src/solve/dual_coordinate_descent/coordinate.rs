//! One coordinate: what a step reads, and the step itself.

use super::SAFE_SIGMA;
use crate::data::{Design, Rows};
use crate::error::Result;
use crate::loss::Loss;
use crate::parallel::{self, Spare};
use crate::run::Cancel;
use crate::solve::overflow;
use crate::solve::scaled_rows::{ScaledRows, Sum};
use crate::solve::values::chosen;
use crate::task::{Independent, Intercept};

/// What a visit reads and writes of a block, besides its row. It is stored together, so that a random visit causes
/// about one cache miss, and packed, since there is one for each row.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(2))]
pub(super) struct Slot {
    pub(super) alpha: f64,
    root: Root,
}

/// The root of ‖a_i x_i‖² + κ t_i² as a share of the largest, rounded up to the upper half of an f32: a step that is
/// two hundredths too short does no harm. The root has enough range for rows whose lengths differ by a factor of 1e38.
#[derive(Clone, Copy, Debug, Default)]
struct Root(u16);

impl Root {
    /// The root of a number between 0 and 1.
    fn new(value: f64) -> Root {
        let near = (value as f32).to_bits() >> 16;
        let below = f64::from(f32::from_bits(near << 16)) < value;
        Root((near + u32::from(below)) as u16)
    }

    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(f32::from_bits(u32::from(self.0) << 16))
    }
}

/// Slots that one thread fills at a time.
const RUN: usize = 1024;

/// What stays fixed during the loop, see the top of the file.
pub(super) struct Fixed<'a, T, R> {
    pub(super) task: &'a T,
    pub(super) rows: ScaledRows<'a, R>,
    pub(super) loss: Loss,
    pub(super) kappa: f64,
    /// The largest curvature.
    unit: f64,
}

/// Sums over the dual variables that scores depend on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// What scores need in addition to v.
    pub(super) rows: Sum,
    /// Σ α t
    pub(super) pull: f64,
    /// Σ (α m − dual cost)
    pub(super) gain: f64,
}

/// How a step sees the rest of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) centre: f64,
    /// The factor by which a step's own changes count.
    pub(super) sigma: f64,
    pub(super) shrink_above: f64,
    pub(super) shrink_below: f64,
}

/// What a range of visits recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visited {
    /// Extremes of the projected gradient.
    pub(super) highest: f64,
    pub(super) lowest: f64,
    /// Σ (cost · loss(v) + dual cost − α·v) with v the violations before each step: the part of these blocks in the gap
    /// between primal and dual value, except for how far the weights move within the pass. Blocks stuck at their bounds
    /// add nothing.
    pub(super) gap: f64,
}

impl Visited {
    pub(super) const NOTHING: Visited = Visited { highest: f64::NEG_INFINITY, lowest: f64::INFINITY, gap: 0.0 };

    pub(super) fn join(self, other: Visited) -> Visited {
        Visited {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            gap: self.gap + other.gap,
        }
    }

    /// How far apart the extremes lie.
    pub(super) fn spread(&self) -> f64 {
        (self.highest - self.lowest).max(0.0)
    }
}

impl<'a, T: Independent, R: Rows> Fixed<'a, T, R> {
    /// The fixed parts, and a slot for each block.
    pub(super) fn new(
        intercept: Intercept,
        task: &'a T,
        design: &'a Design,
        rows: &'a R,
        cancel: &Cancel,
    ) -> Result<(Fixed<'a, T, R>, Vec<Slot>)> {
        let rows = ScaledRows::new(design, rows);
        let mut slots = vec![Slot::default(); task.blocks()];
        let differences = Spare::default();
        parallel::chunks(&mut slots, RUN, |run, slots| {
            differences.lend(|difference| {
                for (block, slot) in (run * RUN..).zip(slots) {
                    if cancel.is_abandoned() {
                        return;
                    }
                    let c = task.constraint(block);
                    let square = match c.against {
                        None => rows.square(c.row),
                        Some(against) => rows.square_of_difference(difference, c.row, against),
                    };
                    design.passed(c.row..c.row + 1);
                    // Stored here until the largest is known.
                    slot.alpha = square * c.coefficient * c.coefficient;
                }
            });
        });
        cancel.check_wanted()?;
        // The proximal term weighs about as much as the features: then a step on one row moves b as far as it moves w.
        let mean = slots.iter().map(|slot| slot.alpha).sum::<f64>() / slots.len().max(1) as f64;
        let kappa = match intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => 1.0,
            Intercept::Free if mean > 0.0 => mean,
            Intercept::Free => 1.0,
        };
        parallel::update(&mut slots, RUN, |block, slot| {
            let t = task.constraint(block).threshold;
            slot.alpha += kappa * t * t;
        });
        // A NaN must not be lost.
        let largest = |a: f64, b: f64| if a.is_nan() || a > b { a } else { b };
        let unit = chosen(slots.len(), 0.0, |block| slots[block].alpha, largest);
        if !(unit * SAFE_SIGMA).is_finite() || !kappa.is_finite() {
            return Err(overflow());
        }
        parallel::update(&mut slots, RUN, |_, slot| {
            let root = if unit > 0.0 { (slot.alpha / unit).sqrt() } else { 0.0 };
            *slot = Slot { alpha: 0.0, root: Root::new(root) };
        });
        let loss = task.loss();
        let fixed = Fixed { task, rows, loss, kappa, unit };
        Ok((fixed, slots))
    }

    /// Prefetches the position of the row of a block, a few visits before [`Fixed::prefetch`] reads it.
    #[inline(always)]
    pub(super) fn prefetch_start(&self, block: usize) {
        self.rows.prefetch_start(self.task.constraint(block).row);
    }

    /// Prefetches the row of a block that will be visited soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, block: usize) {
        let c = self.task.constraint(block);
        self.rows.prefetch(c.row);
        if let Some(row) = c.against {
            self.rows.prefetch(row);
        }
    }

    /// Minimises over one dual variable and records the visit. Returns whether the block stays in the active set: a
    /// block that is stuck at its bound may leave.
    #[inline(always)]
    pub(super) fn step(
        &self,
        block: usize,
        slot: &mut Slot,
        v: &mut [f64],
        sums: &mut Sums,
        view: &View,
        visited: &mut Visited,
    ) -> bool {
        let c = self.task.constraint(block);
        let (Slot { alpha, root }, cost) = (*slot, c.cost);
        let limit = self.loss.dual_limit(cost);
        let mut score = self.rows.score(c.row, v, &sums.rows);
        if let Some(row) = c.against {
            score -= self.rows.score(row, v, &sums.rows);
        }
        let threshold = view.centre + self.kappa * sums.pull;
        let gradient = c.coefficient * score + c.threshold * threshold - c.margin;
        let dual_cost = self.loss.dual_cost(alpha, cost);
        visited.gap += cost * self.loss.value(-gradient) + dual_cost + alpha * gradient;
        let curvature = view.sigma * self.unit * root.value() * root.value();
        let (new, projected) = if self.loss == Loss::Logistic {
            let new = logistic_minimiser(alpha, gradient, curvature, cost);
            (new, (alpha - new) * (curvature + 4.0 / cost))
        } else {
            let diagonal = diagonal(self.loss, cost);
            let gradient = gradient + diagonal * alpha;
            let projected = if alpha == 0.0 {
                if gradient > view.shrink_above {
                    return false;
                }
                gradient.min(0.0)
            } else if alpha == limit {
                if gradient < view.shrink_below {
                    return false;
                }
                gradient.max(0.0)
            } else {
                gradient
            };
            let curvature = curvature + diagonal;
            let new = if projected == 0.0 {
                alpha
            } else if curvature > 0.0 {
                (alpha - gradient / curvature).clamp(0.0, limit)
            } else if gradient < 0.0 {
                // A row of zeros: only its bound limits it.
                limit
            } else {
                0.0
            };
            (new, projected)
        };
        visited.highest = visited.highest.max(projected);
        visited.lowest = visited.lowest.min(projected);
        if new != alpha {
            slot.alpha = new;
            let change = new - alpha;
            let step = view.sigma * change * c.coefficient;
            self.rows.add(c.row, step, v, &mut sums.rows);
            if let Some(row) = c.against {
                self.rows.add(row, -step, v, &mut sums.rows);
            }
            sums.pull += view.sigma * change * c.threshold;
            sums.gain += change * c.margin - self.loss.dual_cost(new, cost) + dual_cost;
        }
        true
    }
}

/// The z in [0, C] with g + q·(z − α) + ln(z / (C − z)) = 0: the logistic step. In t = ln(z / (C − z)) the left side
/// rises with slope at least 1, so Newton's method within a bracket always converges.
fn logistic_minimiser(alpha: f64, gradient: f64, curvature: f64, cost: f64) -> f64 {
    let (mut low, mut high) = (-gradient - curvature * (cost - alpha), -gradient + curvature * alpha);
    if !(low.is_finite() && high.is_finite()) {
        // The scores overflowed: the next check reports it.
        return alpha;
    }
    let mut t = if alpha > 0.0 && alpha < cost { (alpha / (cost - alpha)).ln() } else { 0.5 * (low + high) };
    t = t.clamp(low, high);
    let mut z = alpha;
    for _ in 0..100 {
        let small = (-t.abs()).exp();
        let near = cost * small / (1.0 + small);
        z = if t > 0.0 { cost - near } else { near };
        let value = gradient + curvature * (z - alpha) + t;
        if value > 0.0 {
            high = t
        } else {
            low = t
        }
        let slope = 1.0 + curvature * near * (1.0 - near / cost);
        let newton = t - value / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - t).abs() <= 1e-12 * (1.0 + t.abs()) {
            break;
        }
        t = next;
    }
    z
}

/// The part of the curvature of α that comes from the conjugate of the loss.
#[inline]
fn diagonal(loss: Loss, cost: f64) -> f64 {
    match loss {
        Loss::Hinge => 0.0,
        Loss::SquaredHinge => 0.5 / cost,
        Loss::Logistic => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_rounded_up_by_less_than_a_hundredth() {
        for step in 0..100_000 {
            for value in [f64::from(step) / 100_000.0, 0.9f64.powi(step % 800)] {
                let found = Root::new(value).value();
                assert!(found >= value && found <= value * 1.01, "{value} became {found}");
            }
        }
        assert_eq!(Root::new(1.0).value(), 1.0);
        assert!(Root::new(1e-300).value() > 0.0);
    }
}
