//! The master problem with several free coordinates, by an interior-point method.
//!
//! ```text
//! min over μ   ½ μᵀGμ − βᵀμ    s.t.   A μ = e,   μ ≥ 0
//! ```
//! Notation of `master.rs`. The first row of A is all ones, the others are the slopes by each free coordinate, divided
//! by the largest of them; e = (1, 0, …, 0). With multipliers y of the equalities and s ≥ 0 of μ ≥ 0, a solution has
//!
//! ```text
//! G μ − β − Aᵀy = s,   A μ = e,   μ_k s_k = 0
//! ```
//! so −y₀ is the height of the model at its minimum, the other y are the free coordinates, and s_k says how far cut k
//! lies below that height. Newton steps with Mehrotra's correction (On the implementation of a primal-dual interior
//! point method, SIAM Journal on Optimization 2, 1992), as long in μ as in s and y. After elimination, a step solves
//!
//! ```text
//! (G + S/M + ρ AᵀA) Δμ − Aᵀ Δy = …,   A Δμ = e − Aμ
//! ```
//! by a Cholesky factor and the Schur complement over the few equalities, some of which may follow from others. The
//! term ρ AᵀA changes no solution, and keeps the matrix regular where there are more active cuts than features.
//!
//! The active-set method of `master.rs` is not used here: with several equalities, many cuts are active at once and
//! nearly dependent, and it cannot tell which of them to drop. This method needs no such decision. It begins anew every
//! time, with the free coordinates at the best point so far and the height above all cuts. If the model has its minimum
//! on a face, it ends inside the face. At the end, the cuts that are clearly inactive get a multiplier of zero, and the
//! rounding error of the equalities is removed. Cost: some 10 to 30 steps of O(cuts³).

use super::is_balanced;
use super::master::Master;
use crate::run::Cancel;
use crate::solve::cholesky::Cholesky;
use crate::solve::dot;
use crate::solve::free_block::{DEPENDENT, FreeBlock};

/// The maximum number of steps.
const STEPS: usize = 100;
/// A step goes this share of the way to the nearest bound.
const SHORT_OF_BOUND: f64 = 0.99;
/// A shorter step counts as no progress.
const LEAST_STEP: f64 = 1e-8;
/// Solved if Σ μ_k s_k is below this share of the terms of the objective.
const SOLVED: f64 = 1e-15;
/// Rounds of iterative refinement.
const REFINEMENTS: usize = 2;
/// Shares of each diagonal entry that are added to it, one after the other, until the matrix can be factored.
const RIDGES: [f64; 4] = [0.0, 1e-15, 1e-13, 1e-10];
/// A cut with a larger multiplier is never taken for inactive.
const SMALL: f64 = 1e-3;
/// The multiplier of a cut that serves only to let rounding errors cancel.
const TINY: f64 = 1e-12;
/// The share of the terms of the objective by which the gap may grow when inactive cuts are left out.
const COST: f64 = 1e-10;

/// The variables, or how a step changes them.
#[derive(Clone)]
struct Point {
    /// μ
    shares: Vec<f64>,
    /// s
    slacks: Vec<f64>,
    /// y
    heights: Vec<f64>,
}

/// The factored matrix of a step.
struct Factored {
    factor: Cholesky,
    /// The solutions for the rows of A.
    solved: Vec<Vec<f64>>,
    block: FreeBlock,
}

/// See the top of the file.
pub(super) struct Interior<'a> {
    master: &'a Master<'a>,
    /// A
    rows: Vec<Vec<f64>>,
    /// What the slopes by each free coordinate are divided by.
    units: Vec<f64>,
    /// ρ
    weight: f64,
}

impl<'a> Interior<'a> {
    pub(super) fn new(master: &'a Master<'a>) -> Interior<'a> {
        let largest = |pulls: &Vec<f64>| pulls.iter().fold(0.0f64, |most, pull| most.max(pull.abs()));
        let units: Vec<f64> =
            master.pulls.iter().map(largest).map(|most| if most > 0.0 { most } else { 1.0 }).collect();
        let scaled = |(pulls, unit): (&Vec<f64>, &f64)| pulls.iter().map(|pull| pull / unit).collect();
        let mut rows = vec![vec![1.0; master.offsets.len()]];
        rows.extend(master.pulls.iter().zip(&units).map(scaled));
        Interior { master, rows, units, weight: master.weight() }
    }

    /// Moves feasible `multipliers` to the maximum and returns the free coordinates there, as [`Master::maximise`]
    /// does. The multipliers stay as they are where rounding leaves none that satisfy the equalities.
    pub(super) fn maximise(&self, multipliers: &mut [f64], near: &[f64], cancel: &Cancel) -> Vec<f64> {
        let mut point = self.start(near);
        for _ in 0..STEPS {
            let size = self.size(&point.shares);
            if cancel.is_raised() || dot(&point.shares, &point.slacks) <= SOLVED * size {
                break;
            }
            let Some(step) = self.step(&point) else { break };
            let length = (SHORT_OF_BOUND * longest(&point, &step)).min(1.0);
            let moved = point.moved(&step, length);
            if length < LEAST_STEP || !moved.heights.iter().chain(&moved.shares).all(|value| value.is_finite()) {
                break;
            }
            point = moved;
        }
        if let Some(found) = self.rounded(&point) {
            multipliers.copy_from_slice(&found);
        }
        point.heights[1..].iter().zip(&self.units).map(|(height, unit)| height / unit).collect()
    }

    /// Equal multipliers, the free coordinates at `near`, and a height above all cuts.
    fn start(&self, near: &[f64]) -> Point {
        let count = self.master.offsets.len();
        let shares = vec![1.0 / count as f64; count];
        let mut heights = vec![0.0];
        heights.extend(near.iter().zip(&self.units).map(|(near, unit)| near * unit));
        let below = self.below(&shares, &heights);
        let (least, most) = below.iter().fold((f64::INFINITY, 0.0f64), |(a, b), &at| (a.min(at), b.max(at)));
        let room = if most > least { most - least } else { most.abs().max(1.0) };
        heights[0] = least - room;
        let slacks = below.iter().map(|below| below - heights[0]).collect();
        Point { shares, slacks, heights }
    }

    /// G μ − β − Aᵀy
    fn below(&self, shares: &[f64], heights: &[f64]) -> Vec<f64> {
        let below = |cut: usize| {
            let held: f64 = self.rows.iter().zip(heights).map(|(row, height)| row[cut] * height).sum();
            dot(&self.master.gram[cut], shares) - self.master.offsets[cut] - held
        };
        (0..shares.len()).map(below).collect()
    }

    /// e − Aμ
    fn unmet(&self, shares: &[f64]) -> Vec<f64> {
        let wanted = |at: usize| if at == 0 { 1.0 } else { 0.0 };
        self.rows.iter().enumerate().map(|(at, row)| wanted(at) - dot(row, shares)).collect()
    }

    /// The sum of the sizes of the terms of the objective.
    fn size(&self, shares: &[f64]) -> f64 {
        let terms = shares.iter().zip(self.master.offsets).zip(self.master.gram);
        terms.map(|((share, offset), row)| share * (offset.abs() + dot(row, shares).abs())).sum()
    }

    /// The step with Mehrotra's correction, or none if the matrix cannot be factored.
    fn step(&self, point: &Point) -> Option<Point> {
        let factored = self.factored(point)?;
        let count = point.shares.len() as f64;
        let mean = dot(&point.shares, &point.slacks) / count;
        let products: Vec<f64> = point.shares.iter().zip(&point.slacks).map(|(share, slack)| share * slack).collect();
        let ahead = self.solve(&factored, point, &products.iter().map(|product| -product).collect::<Vec<f64>>());
        let there = point.moved(&ahead, longest(point, &ahead).min(1.0));
        let centre = mean * (dot(&there.shares, &there.slacks) / count / mean).powi(3);
        let correction = ahead.shares.iter().zip(&ahead.slacks).map(|(share, slack)| share * slack);
        let change: Vec<f64> = products.iter().zip(correction).map(|(product, by)| centre - product - by).collect();
        Some(self.solve(&factored, point, &change))
    }

    /// An entry of G + S/M + ρ AᵀA, without the diagonal S/M.
    fn entry(&self, a: usize, b: usize) -> f64 {
        self.master.gram[a][b] + self.weight * self.rows.iter().map(|row| row[a] * row[b]).sum::<f64>()
    }

    fn factored(&self, point: &Point) -> Option<Factored> {
        let count = point.shares.len();
        let mut matrix: Vec<f64> = (0..count * count).map(|at| self.entry(at / count, at % count)).collect();
        for at in 0..count {
            matrix[at * (count + 1)] += point.slacks[at] / point.shares[at];
        }
        let factor = RIDGES.iter().find_map(|ridge| {
            (0..count).for_each(|at| matrix[at * (count + 1)] *= 1.0 + ridge);
            Cholesky::of(&matrix, count, 0.0)
        })?;
        let solved: Vec<Vec<f64>> = self.rows.iter().map(|row| factor.solve(row.clone())).collect();
        let products: Vec<f64> = self.rows.iter().flat_map(|a| solved.iter().map(move |b| dot(a, b))).collect();
        Some(Factored { factor, block: FreeBlock::of(&products, self.rows.len(), DEPENDENT), solved })
    }

    /// The Newton step that changes the products μ_k s_k by `change`.
    fn solve(&self, factored: &Factored, point: &Point, change: &[f64]) -> Point {
        let count = point.shares.len();
        let below = self.below(&point.shares, &point.heights);
        let unmet = self.unmet(&point.shares);
        let mut step =
            Point { shares: vec![0.0; count], slacks: vec![0.0; count], heights: vec![0.0; self.rows.len()] };
        for _ in 0..=REFINEMENTS {
            let left: Vec<f64> =
                self.rows.iter().zip(&unmet).map(|(row, unmet)| unmet - dot(row, &step.shares)).collect();
            let residual: Vec<f64> = (0..count)
                .map(|at| {
                    let (share, slack) = (point.shares[at], point.slacks[at]);
                    let rows = self.rows.iter().zip(&step.heights).zip(&left);
                    let held: f64 = rows.map(|((row, height), left)| row[at] * (height + self.weight * left)).sum();
                    let curved = dot(&self.master.gram[at], &step.shares) + slack / share * step.shares[at];
                    slack - below[at] + change[at] / share - curved + held
                })
                .collect();
            let by = factored.factor.solve(residual);
            let short: Vec<f64> = self.rows.iter().zip(&left).map(|(row, left)| left - dot(row, &by)).collect();
            let heights = factored.block.solve(&short);
            step.heights.iter_mut().zip(&heights).for_each(|(height, by)| *height += by);
            for (at, share) in step.shares.iter_mut().enumerate() {
                let held = factored.solved.iter().zip(&heights).map(|(solved, height)| solved[at] * height);
                *share += by[at] + held.sum::<f64>();
            }
        }
        for (at, slack) in step.slacks.iter_mut().enumerate() {
            *slack = (change[at] - point.slacks[at] * step.shares[at]) / point.shares[at];
        }
        step
    }

    /// Multipliers that satisfy the equalities up to rounding: without the clearly inactive cuts, unless that widens the
    /// gap or breaks an equality. If the slopes of all active cuts are nothing but rounding errors, these cancel only
    /// with the help of tiny multipliers of others: of the steepest ones either way, or else of all.
    fn rounded(&self, point: &Point) -> Option<Vec<f64>> {
        let size = self.size(&point.shares);
        let mut steepest = vec![false; point.shares.len()];
        for (row, side) in self.rows[1..].iter().flat_map(|row| [(row, 1.0), (row, -1.0)]) {
            let first = (0..row.len()).max_by(|&a, &b| (side * row[a]).total_cmp(&(side * row[b])));
            first.into_iter().for_each(|cut| steepest[cut] = true);
        }
        let active = |cut: usize| point.shares[cut] >= SMALL.min(point.slacks[cut] / size);
        let with = |inactive: &dyn Fn(usize) -> f64| {
            let share = |cut: usize| if active(cut) { point.shares[cut] } else { inactive(cut) };
            let mut found: Vec<f64> = (0..point.shares.len()).map(share).collect();
            self.master.make_feasible(&mut found);
            let sound = found.iter().all(|share| share.is_finite()) && is_balanced(self.master.pulls, &found);
            sound.then(|| (self.gap(&found, &point.heights), found))
        };
        let tried = [
            with(&|_| 0.0),
            with(&|cut| if steepest[cut] { point.shares[cut].max(TINY) } else { 0.0 }),
            with(&|cut| point.shares[cut]),
            with(&|cut| point.shares[cut].max(TINY)),
        ];
        let found: Vec<_> = tried.into_iter().flatten().collect();
        let least = found.iter().fold(f64::INFINITY, |least, (gap, _)| least.min(*gap));
        found.into_iter().find(|(gap, _)| *gap <= least + COST * size).map(|(_, found)| found)
    }

    /// How far the model at the weights −Σ μ_k a_k and the free coordinates lies above the bound that μ proves.
    fn gap(&self, shares: &[f64], heights: &[f64]) -> f64 {
        let below = self.below(shares, heights);
        let lowest = below.iter().fold(f64::INFINITY, |least, below| least.min(*below)) + heights[0];
        let products = self.master.gram.iter().map(|row| dot(row, shares));
        let terms = products.zip(self.master.offsets).zip(shares);
        terms.map(|((product, offset), share)| share * (product - offset)).sum::<f64>() - lowest
    }
}

impl Point {
    fn moved(&self, step: &Point, length: f64) -> Point {
        let add = |from: &[f64], step: &[f64]| from.iter().zip(step).map(|(at, by)| at + length * by).collect();
        Point {
            shares: add(&self.shares, &step.shares),
            slacks: add(&self.slacks, &step.slacks),
            heights: add(&self.heights, &step.heights),
        }
    }
}

/// The longest step for which no multiplier and no slack turns negative.
fn longest(point: &Point, step: &Point) -> f64 {
    let values = point.shares.iter().zip(&step.shares).chain(point.slacks.iter().zip(&step.slacks));
    values.filter(|(_, by)| **by < 0.0).fold(f64::INFINITY, |least, (value, by)| least.min(-value / by))
}

#[cfg(test)]
mod tests {
    use super::super::master::tests::referee;
    use super::*;
    use proptest::prelude::*;

    fn gram(slopes: &[Vec<f64>]) -> Vec<Vec<f64>> {
        slopes.iter().map(|a| slopes.iter().map(|b| dot(a, b)).collect()).collect()
    }

    #[test]
    fn rounding_errors_in_the_slopes_of_the_active_cut_cancel_with_tiny_multipliers_of_others() {
        let slopes = [vec![0.5], vec![1.0], vec![-1.0], vec![2.0], vec![-2.0]];
        let offsets = [2.0, -1.0, -1.0, -1.5, -1.5];
        let pulls = [vec![3e-17, 4.0, -4.0, 0.0, 1.0], vec![-1e-17, 0.0, 1.0, 5.0, -5.0]];
        let gram = gram(&slopes);
        let master = Master { gram: &gram, offsets: &offsets, pulls: &pulls };
        // Half of each of the other cuts cancels too; the first cut alone does not.
        let mut multipliers = [0.0, 0.25, 0.25, 0.25, 0.25];
        Interior::new(&master).maximise(&mut multipliers, &[0.0, 0.0], &Cancel::new());
        assert!(is_balanced(&pulls, &multipliers), "{multipliers:?}");
        assert!(!is_balanced(&pulls, &[1.0, 0.0, 0.0, 0.0, 0.0]));
        let bound = dot(&multipliers, &offsets) - 0.125 * multipliers[0].powi(2);
        assert!((bound - 1.875).abs() < 1e-10, "{bound}");
    }

    #[test]
    fn inactive_cuts_have_no_multiplier() {
        let slopes = [vec![1.0], vec![-1.0], vec![3.0], vec![0.5]];
        let offsets = [0.0, 0.0, -50.0, -20.0];
        let pulls = [vec![1.0, -1.0, 1.0, 0.5], vec![-1.0, 1.0, 2.0, 0.25]];
        let gram = gram(&slopes);
        let master = Master { gram: &gram, offsets: &offsets, pulls: &pulls };
        let mut multipliers = [0.5, 0.5, 0.0, 0.0];
        Interior::new(&master).maximise(&mut multipliers, &[0.0, 0.0], &Cancel::new());
        assert!((multipliers[0] - 0.5).abs() < 1e-14 && multipliers[2..] == [0.0, 0.0], "{multipliers:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_bound_is_the_referees_with_several_free_coordinates(
            (dim, free) in (1..5usize, 2..5usize),
            rows in prop::collection::vec((prop::collection::vec(-4.0..4.0f64, 4), -3.0..3.0f64,
                prop::collection::vec(-2..3i32, 4)), 1..40),
            // Zero on the boundary of the hull of the slopes: no multipliers satisfy the equalities with all positive.
            flat in any::<bool>(),
            // Slopes of zero are rounding errors instead, but not beside large ones.
            noise in prop::sample::select(vec![0.0, 1e-17]),
            // Small whole numbers make duplicates and dependent cuts, large factors cuts of very different size.
            whole in any::<bool>(),
            stretch in prop::sample::select(vec![1.0, 1e3]),
        ) {
            let (mut slopes, mut offsets, mut pulls) = (vec![], vec![], vec![vec![]; free]);
            let mut push = |slope: &[f64], offset: f64, pull: &[f64], factor: f64| {
                let round = |value: f64| factor * if whole { value.round() } else { value };
                slopes.push(slope[..dim].iter().map(|&slope| round(slope)).collect::<Vec<f64>>());
                offsets.push(round(offset));
                pulls.iter_mut().zip(pull).for_each(|(pulls, pull)| pulls.push(factor * pull));
            };
            for at in 0..2 * free {
                let mut pull = vec![0.0; free];
                pull[at / 2] = if at % 2 == 0 || (flat && at == 1) { 3.0 } else { -3.0 };
                push(&[1.0, -1.0, 0.0, 2.0], -1.0, &pull, 1.0);
            }
            push(&[0.0, 1.0, 1.0, -2.0], -0.5, &vec![0.0; free], 1.0);
            let count = rows.len();
            for (at, (slope, offset, pull)) in rows.into_iter().enumerate() {
                let mut pull: Vec<f64> = pull.into_iter().map(f64::from).collect();
                if flat {
                    pull[0] = pull[0].abs();
                }
                let side = if at % 2 == 0 { 1.0 } else { -1.0 };
                let noisy = !flat && stretch == 1.0;
                pull.iter_mut().filter(|pull| **pull == 0.0 && noisy).for_each(|pull| *pull = side * noise);
                push(&slope, offset, &pull, if at < count / 3 { stretch } else { 1.0 });
            }
            let gram = gram(&slopes);
            let master = Master { gram: &gram, offsets: &offsets, pulls: &pulls };
            let mut multipliers = vec![0.0; offsets.len()];
            multipliers[2 * free] = 1.0;
            let found = Interior::new(&master).maximise(&mut multipliers, &vec![0.25; free], &Cancel::new());
            prop_assert!(multipliers.iter().all(|&multiplier| multiplier >= 0.0));
            prop_assert!((multipliers.iter().sum::<f64>() - 1.0).abs() <= 1e-13);
            prop_assert!(is_balanced(&pulls, &multipliers));
            let w: Vec<f64> =
                (0..dim).map(|j| -multipliers.iter().zip(&slopes).map(|(m, a)| m * a[j]).sum::<f64>()).collect();
            let value = dot(&multipliers, &offsets) - 0.5 * dot(&w, &w);
            // Where a free coordinate may go to infinity, the reference solver states a wrong optimum.
            if let Some(optimum) = referee(&slopes, &offsets, &pulls).filter(|_| !flat) {
                prop_assert!((value - optimum).abs() <= 2e-6 * (1.0 + optimum.abs()), "{} {}", value, optimum);
            }
            // The model at the primal point of the multipliers is as high as the bound, so no bound is better.
            let height = (0..offsets.len())
                .map(|k| dot(&slopes[k], &w) + offsets[k] + (0..free).map(|i| pulls[i][k] * found[i]).sum::<f64>())
                .fold(f64::NEG_INFINITY, f64::max);
            let model = 0.5 * dot(&w, &w) + height;
            // Large slopes multiply the rounding error of the weights.
            let close = 1e-7 * stretch.sqrt() * (1.0 + value.abs());
            prop_assert!((model - value).abs() <= close, "{} {}", model, value);
        }
    }
}
