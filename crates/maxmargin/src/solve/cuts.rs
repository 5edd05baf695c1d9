//! Primal value and lower bound of ratings, and how cuts are kept in order.
//!
//! ```text
//! P(w, b) = ½‖w‖² + Σ_ik C_i · loss(v_ik),   v_ik = m_i − t_ik (w·x_i − b_k)
//! D(α)    = Σ_ik (α_ik m_i − C_i · loss*(α_ik / C_i)) − ½‖Σ_ik t_ik α_ik x_i‖²
//! ```
//! α_ik = C_i · loss'(v_ik), with the hinge rounded off, lies in the box of the dual at any w and b. It is made feasible
//! by scaling down one side of each cut ([`crate::task::CutShares`]), so D is a bound at every point. Cost: one pass
//! for the scores and one for the norm; everything over cuts reads scores alone.
//!
//! **Cuts in order** (explicit form). First every cut is free. If a solution has its cuts in order, it is that of the
//! whole task. Otherwise neighbouring cuts in the wrong order are tied together, and the smaller problem is solved from
//! there. A tie whose multiplier has the wrong sign, S_k > 0, is undone. This is an active-set method over r − 2
//! constraints. They seldom bind, mostly next to a rank with few rows.

use super::values::dual_of_square;
use super::{Solution, by_row};
use crate::data::Design;
use crate::error::Result;
use crate::run::Cancel;
use crate::task::{AtCuts, CutShares, Intercept, Ordinal};

/// Primal value at the weights and the cuts, and the lower bound that they give. `width` is the width over which the
/// hinge is rounded off, and `None` for smooth losses.
pub(crate) fn cut_values(
    task: &Ordinal,
    design: &Design,
    weights: &[f64],
    cuts: &[f64],
    width: Option<f64>,
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    let scores = design.scores_until(weights, cancel)?;
    let at = AtCuts { task, scores: &scores, cuts, width };
    let half = |w: &[f64]| 0.5 * w.iter().map(|w| w * w).sum::<f64>();
    let primal = half(weights) + at.loss();
    let (above, below) = at.sides();
    let shares = CutShares::of(task, &above, &below);
    let behind = design.weighted_sum_by(|row| if cancel.is_abandoned() { 0.0 } else { at.coefficient(row, &shares) });
    cancel.check()?;
    Ok((primal, (at.gain(&shares) - half(&behind)).max(0.0)))
}

/// A multiplier of a tie below this share of all pulls is zero up to rounding.
const ROUNDING: f64 = 1e-10;

/// After the solution of a task with free or tied cuts: the task to solve next, or none if the cuts are in order and no
/// tie holds them there against their pull. The dual point is that of the scores, or with a kernel that of the solution.
pub(crate) fn retied(at: &AtCuts<'_>, solution: &Solution) -> Option<Ordinal> {
    let (solved, cuts) = (at.task, at.cuts);
    let mut first: Vec<u32> = (0..cuts.len()).map(|cut| solved.holder(cut) as u32).collect();
    if !cuts.is_sorted() {
        // Pools of neighbours, each with the mean of its cuts, until these are in order.
        let mut pools: Vec<(usize, usize, f64)> = Vec::new();
        for (cut, &value) in cuts.iter().enumerate() {
            let mut pool = (cut, 1, value);
            while let Some((start, count, mean)) = pools.pop_if(|(.., mean)| *mean > pool.2) {
                let whole = count + pool.1;
                pool = (start, whole, (mean * count as f64 + pool.2 * pool.1 as f64) / whole as f64);
            }
            pools.push(pool);
        }
        for (start, count, _) in pools {
            let holder = first[start];
            first[start..start + count].fill(holder);
        }
        return Some(solved.tied(first));
    }
    let (above, below) = match solution.kernel {
        Some(_) => AtDual { task: solved, alpha: &solution.weights }.sides(),
        None => at.sides(),
    };
    let shares = CutShares::of(solved, &above, &below);
    let level = ROUNDING * above.iter().chain(&below).sum::<f64>();
    let (mut changed, mut start) = (false, 0);
    while start < first.len() {
        let end = (start..first.len()).find(|&cut| first[cut] != first[start]).unwrap_or(first.len());
        let (mut sum, mut worst) = (0.0, (level, end));
        for cut in start..end.saturating_sub(1) {
            sum += shares.at(cut, 1.0) * above[cut] - shares.at(cut, -1.0) * below[cut];
            if sum > worst.0 {
                worst = (sum, cut + 1);
            }
        }
        if worst.1 < end {
            first[worst.1..end].fill(worst.1 as u32);
            changed = true;
        }
        start = end;
    }
    changed.then(|| solved.tied(first))
}

/// A dual point of ratings through a kernel, given by the variable of each block.
pub(crate) struct AtDual<'a> {
    pub(crate) task: &'a Ordinal,
    pub(crate) alpha: &'a [f64],
}

impl AtDual<'_> {
    /// The variables on the two sides of each cut, summed up.
    fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut above, mut below) = (vec![0.0; self.task.cuts()], vec![0.0; self.task.cuts()]);
        for (block, &alpha) in self.alpha.iter().enumerate() {
            let (cut, side) = self.task.of_block(block);
            *(if side > 0.0 { &mut above[cut] } else { &mut below[cut] }) += alpha;
        }
        (above, below)
    }

    /// The bound of the point, made feasible. `images` computes Σ β k(row, ·) over all rows.
    pub(crate) fn bound(&self, images: impl FnOnce(&[usize], &[f64]) -> Result<Vec<f64>>) -> Result<f64> {
        let (above, below) = self.sides();
        let shares = CutShares::of(self.task, &above, &below);
        let feasible = |block: usize| {
            let (cut, side) = self.task.of_block(block);
            shares.at(cut, side) * self.alpha[block]
        };
        let feasible: Vec<f64> = (0..self.alpha.len()).map(feasible).collect();
        let (ids, coefficients): (Vec<usize>, Vec<f64>) = by_row(self.task, &feasible).into_iter().unzip();
        let images = images(&ids, &coefficients)?;
        let square: f64 = ids.iter().zip(&coefficients).map(|(&row, coefficient)| coefficient * images[row]).sum();
        Ok(dual_of_square(self.task, |block| feasible[block], square, Intercept::Free))
    }
}
