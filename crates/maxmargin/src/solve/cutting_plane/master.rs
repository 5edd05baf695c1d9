//! The master problem of the cutting-plane method: the best lower bound that a set of cuts proves.
//!
//! ```text
//! max over μ   −½ μᵀGμ + Σ_k μ_k β_k        G_kj = a_k·a_j
//! s.t.         μ ≥ 0,   Σ μ_k = 1,   Σ μ_k c_ki = 0 for every free coordinate i
//! ```
//! β_k are the offsets of the cuts, a_k their slopes by the penalised coordinates, c_ki by the free ones (without a
//! free coordinate there is one column of zeros). The multipliers of the equalities are the height of the model and,
//! negated, the free coordinates at the model's minimum.
//!
//! With two or more free coordinates, an interior-point method solves it, see `interior.rs`. Otherwise, a primal
//! active-set method on the *corral*, the cuts with positive multiplier, after Wolfe (Finding the nearest
//! point in a polytope, Mathematical Programming 11, 1976). It solves the problem on the corral with the equalities
//! alone. If a multiplier turns negative, it goes as far as the first zero and drops that cut. Otherwise the cut that
//! the model violates most enters. The equalities are added to G, as ρ·(11ᵀ + c cᵀ), before it is factored: that
//! changes no solution, and the sum is regular whenever the solution is unique. G alone is not once there are more cuts
//! than features. A cut that is linearly dependent on the corral replaces the first member whose multiplier reaches
//! zero. If the cuts of the corral do not determine the free coordinate, it keeps its value.
//!
//! Stops when no cut is violated by more than rounding. Every iterate is feasible, so an early stop still gives a
//! bound. Cost of a step: O(corral²) for a cut that enters or leaves, O(cuts · corral) for the violations.

use super::interior::Interior;
use crate::run::Cancel;
use crate::solve::cholesky::Cholesky;
use crate::solve::dot;
use crate::solve::free_block::FreeBlock;

/// The cuts as the master problem sees them.
pub(super) struct Master<'a> {
    /// G, row by row.
    pub(super) gram: &'a [Vec<f64>],
    /// β
    pub(super) offsets: &'a [f64],
    /// c, one vector for each free coordinate. There is at least one vector; it is all zero if no coordinate is free.
    pub(super) pulls: &'a [Vec<f64>],
}

/// A pivot below this share of its diagonal counts as zero: the cut depends on the corral.
const DEPENDENT: f64 = 1e-11;
/// The limit for the second try, after a cut that was taken for independent left again at once.
const NEARLY_DEPENDENT: f64 = 1e-7;
/// A violation below this share of its terms counts as rounding.
const ROUNDING: f64 = 1e-14;
/// A pull below this share of the largest counts as rounding.
const FAINT: f64 = 1e-10;
/// A multiplier nearer to zero than this counts as zero.
const NOTHING: f64 = 1e-14;
/// Rounds of iterative refinement.
const REFINEMENTS: usize = 2;

impl Master<'_> {
    /// Moves feasible `multipliers` to the maximum. Returns the free coordinates there. Where the maximum does not
    /// determine it, a single one is that of `near`; of several, a point between the cuts is taken, found from `near`.
    pub(super) fn maximise(&self, multipliers: &mut [f64], near: &[f64], cancel: &Cancel) -> Vec<f64> {
        match (self.pulls, near) {
            ([pulls], &[near]) => vec![self.maximise_on_corral(pulls, multipliers, near, cancel)],
            _ => Interior::new(self).maximise(multipliers, near, cancel),
        }
    }

    /// The active-set method, for at most one free coordinate.
    fn maximise_on_corral(&self, pulls: &[f64], multipliers: &mut [f64], near: f64, cancel: &Cancel) -> f64 {
        let mut corral = Corral::new(self, pulls);
        for cut in 0..multipliers.len() {
            if multipliers[cut] > 0.0 {
                corral.enter(cut, multipliers, DEPENDENT);
            }
        }
        let mut free = near;
        let mut hopeless = vec![false; multipliers.len()];
        let mut entered = None;
        for _ in 0..100 + 20 * multipliers.len() {
            let (target, height, at) = corral.equality_optimum(near);
            if cancel.is_raised() || !target.iter().all(|target| target.is_finite()) {
                break;
            }
            free = at;
            // A cut may be in the corral with a multiplier of zero, to determine the free coordinate.
            let mut step = 1.0f64;
            for (&cut, &target) in corral.members.iter().zip(&target) {
                if target < -NOTHING {
                    step = step.min(multipliers[cut] / (multipliers[cut] - target));
                }
            }
            let mut stopped = Vec::new();
            for (&cut, &target) in corral.members.iter().zip(&target) {
                // The cut that limits the step ends at exactly zero, without rounding.
                if target < -NOTHING && multipliers[cut] / (multipliers[cut] - target) <= step {
                    multipliers[cut] = 0.0;
                    stopped.push(cut);
                } else {
                    multipliers[cut] = (multipliers[cut] + step * (target - multipliers[cut])).max(0.0);
                }
            }
            if !stopped.is_empty() {
                corral.dismiss(&stopped);
                let at_once = entered.filter(|(cut, _)| step == 0.0 && stopped.contains(cut));
                entered = None;
                if let Some((cut, rule)) = at_once {
                    // The cut entered and leaves at once: either it depends on the corral more than the pivot shows, or
                    // it looks violated only because of rounding.
                    hopeless[cut] = true;
                    if rule == DEPENDENT {
                        corral.enter(cut, multipliers, NEARLY_DEPENDENT);
                        entered = Some((cut, NEARLY_DEPENDENT));
                    }
                }
                continue;
            }
            if step > 0.0 && entered.is_some_and(|(cut, _)| multipliers[cut] > 0.0) {
                hopeless.fill(false);
            }
            let Some(cut) = corral.most_violated(pulls, multipliers, height, free, &hopeless) else { break };
            corral.enter(cut, multipliers, DEPENDENT);
            entered = Some((cut, DEPENDENT));
        }
        self.make_feasible(multipliers);
        free
    }

    /// ρ, the weight of the equalities: between the smallest and the largest square, so that neither G nor the
    /// equalities are lost to rounding in the sum.
    pub(super) fn weight(&self) -> f64 {
        let squares = (0..self.offsets.len()).map(|cut| self.gram[cut][cut]).filter(|&square| square > 0.0);
        let (least, most) = squares.fold((f64::INFINITY, 0.0f64), |(low, high), s| (low.min(s), high.max(s)));
        if most > 0.0 { least.sqrt() * most.sqrt() } else { 1.0 }
    }

    /// Removes the rounding error from one equality. Normally it scales down the multipliers of the heavier side. If
    /// that would change more than adding to the strongest cut of the lighter side, it adds to that cut instead: for
    /// instance, where the classes balance up to rounding and no active cut pulls the other way.
    fn balance_one(pulls: &[f64], multipliers: &mut [f64]) {
        let (mut above, mut below, mut shrunk) = (0.0, 0.0, [0.0; 2]);
        for (&multiplier, pull) in multipliers.iter().zip(pulls) {
            let pull = multiplier * pull;
            if pull > 0.0 {
                above += pull
            } else {
                below -= pull
            }
            shrunk[usize::from(pull < 0.0)] += if pull == 0.0 { 0.0 } else { multiplier };
        }
        let (side, heavy, light) = if above > below { (1.0, above, below) } else { (-1.0, below, above) };
        let strongest = (0..pulls.len()).max_by(|&a, &b| (-side * pulls[a]).total_cmp(&(-side * pulls[b])));
        if let Some(cut) = strongest.filter(|&cut| side * pulls[cut] < 0.0) {
            let added = (heavy - light) / pulls[cut].abs();
            if added < shrunk[usize::from(side < 0.0)] * (1.0 - light / heavy) {
                multipliers[cut] += added;
                (above, below) = (heavy, heavy);
            }
        }
        for (multiplier, &pull) in multipliers.iter_mut().zip(pulls) {
            if pull > 0.0 && above > below {
                *multiplier *= below / above;
            } else if pull < 0.0 && below > above {
                *multiplier *= above / below;
            }
        }
    }

    /// Removes the rounding error from the equalities, see [`Master::balance_one`] and [`Master::balance_several`].
    pub(super) fn make_feasible(&self, multipliers: &mut [f64]) {
        match self.pulls {
            [pulls] => Self::balance_one(pulls, multipliers),
            pulls => Self::balance_several(pulls, multipliers),
        }
        let sum: f64 = multipliers.iter().sum();
        multipliers.iter_mut().for_each(|multiplier| *multiplier /= sum);
    }

    /// Removes the rounding error from several equalities by the smallest relative change of the multipliers, μ_k · (1
    /// − Σ_i λ_i c_ki), so that none turns negative.
    fn balance_several(pulls: &[Vec<f64>], multipliers: &mut [f64]) {
        let count = pulls.len() + 1;
        let column = |of: usize, cut: usize| if of == 0 { 1.0 } else { pulls[of - 1][cut] };
        for _ in 0..=REFINEMENTS {
            let mut products = vec![0.0; count * count];
            let mut rest = vec![0.0; count];
            rest[0] = -1.0;
            for (cut, &multiplier) in multipliers.iter().enumerate().filter(|(_, multiplier)| **multiplier > 0.0) {
                for a in 0..count {
                    let weighted = multiplier * column(a, cut);
                    rest[a] += weighted;
                    (0..count).for_each(|b| products[a * count + b] += weighted * column(b, cut));
                }
            }
            let shares = FreeBlock::of(&products, count, DEPENDENT).solve(&rest);
            for (cut, multiplier) in multipliers.iter_mut().enumerate() {
                let share: f64 = shares.iter().enumerate().map(|(of, share)| share * column(of, cut)).sum();
                let left = *multiplier * (1.0 - share);
                // A tiny multiplier of a cut without a counterpart could never be balanced.
                *multiplier = if left > NOTHING { left } else { 0.0 };
            }
        }
    }
}

/// The cuts with positive multiplier, and the Cholesky factor of their part of G + ρ·(11ᵀ + c cᵀ).
struct Corral<'a> {
    master: &'a Master<'a>,
    /// ρ
    weight: f64,
    /// The unit by which all c are divided: between the smallest and the largest, as ρ is.
    unit: f64,
    /// c in this unit.
    pulls: Vec<f64>,
    members: Vec<usize>,
    factor: Cholesky,
}

impl<'a> Corral<'a> {
    fn new(master: &'a Master<'a>, pulls: &[f64]) -> Corral<'a> {
        let most = pulls.iter().fold(0.0f64, |most, pull| most.max(pull.abs()));
        let felt = pulls.iter().map(|pull| pull.abs()).filter(|&pull| pull > FAINT * most);
        let unit = (felt.fold(most, f64::min) * most).sqrt();
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let pulls = pulls.iter().map(|pull| pull / unit).collect();
        Corral { master, weight: master.weight(), unit, pulls, members: Vec::new(), factor: Cholesky::default() }
    }

    fn entry(&self, a: usize, b: usize) -> f64 {
        self.master.gram[a][b] + self.weight * (1.0 + self.pulls[a] * self.pulls[b])
    }

    /// The row of the factor that a cut would have, and its squared pivot.
    fn row(&self, cut: usize) -> (Vec<f64>, f64) {
        self.factor.row(self.members.iter().map(|&member| self.entry(cut, member)), self.entry(cut, cut))
    }

    fn push(&mut self, cut: usize, mut row: Vec<f64>, pivot: f64) {
        row.push(pivot.max(f64::EPSILON * self.entry(cut, cut)).sqrt());
        self.members.push(cut);
        self.factor.push(row);
    }

    /// Removes members.
    fn dismiss(&mut self, cuts: &[usize]) {
        for at in (0..self.members.len()).rev().filter(|&at| cuts.contains(&self.members[at])).collect::<Vec<_>>() {
            self.members.remove(at);
            self.factor.remove(at);
        }
    }

    /// Adds a cut. If its pivot is below the share `dependent` of its diagonal, the cut is linearly dependent on the
    /// corral. Then the multipliers move along the dependence, which changes only the linear term, until one of them is
    /// zero and leaves.
    fn enter(&mut self, cut: usize, multipliers: &mut [f64], dependent: f64) {
        loop {
            let (row, pivot) = self.row(cut);
            if self.members.is_empty() || pivot > dependent * self.entry(cut, cut) {
                return self.push(cut, row, pivot);
            }
            let mut direction = self.factor.back(row);
            direction.iter_mut().for_each(|value| *value = -*value);
            direction.push(1.0);
            let cuts: Vec<usize> = self.members.iter().copied().chain([cut]).collect();
            let rise: f64 = cuts.iter().zip(&direction).map(|(&k, d)| d * self.master.offsets[k]).sum();
            if rise < 0.0 {
                direction.iter_mut().for_each(|value| *value = -*value);
            }
            let mut stop: Option<(usize, f64)> = None;
            for (&k, &d) in cuts.iter().zip(&direction).filter(|(_, d)| **d < 0.0) {
                let step = multipliers[k] / -d;
                if stop.is_none_or(|(_, least)| step < least) {
                    stop = Some((k, step));
                }
            }
            // The sum of the multipliers stays one along the direction, so one of them must fall.
            let Some((first, step)) = stop else { return };
            for (&k, &d) in cuts.iter().zip(&direction) {
                multipliers[k] = (multipliers[k] + step * d).max(0.0);
            }
            multipliers[first] = 0.0;
            if first == cut {
                return;
            }
            self.dismiss(&[first]);
        }
    }

    /// The cut that lies highest above the model at its minimum, if any does.
    fn most_violated(
        &self,
        pulls: &[f64],
        multipliers: &[f64],
        height: f64,
        free: f64,
        hopeless: &[bool],
    ) -> Option<usize> {
        let Master { gram, offsets, .. } = self.master;
        let mut best = None;
        let mut most = 0.0;
        for cut in (0..multipliers.len()).filter(|&cut| !hopeless[cut] && !self.members.contains(&cut)) {
            let slope: f64 = self.members.iter().map(|&member| gram[cut][member] * multipliers[member]).sum();
            let pull = pulls[cut] * free;
            let violation = offsets[cut] - slope + pull - height;
            let size = offsets[cut].abs() + slope.abs() + pull.abs() + height.abs();
            if violation > ROUNDING * size && violation > most {
                (best, most) = (Some(cut), violation);
            }
        }
        best
    }

    /// The maximum over the corral subject to the equalities alone: the multipliers, the height of the model and the
    /// free coordinate.
    fn equality_optimum(&self, near: f64) -> (Vec<f64>, f64, f64) {
        let count = self.members.len();
        let pulls: Vec<f64> = self.members.iter().map(|&cut| self.pulls[cut]).collect();
        let ones = self.factor.solve(vec![1.0; count]);
        let pulled = self.factor.solve(pulls.clone());
        let square = [sum(&ones), dot(&pulls, &ones), dot(&pulls, &pulled)];
        // If nothing in the corral pulls, the second equality always holds and does not determine the coordinate.
        let determinant = square[0] * square[2] - square[1] * square[1];
        let pulls_count = square[2] > 0.0 && determinant > DEPENDENT * square[0] * square[2];
        let mut target = vec![0.0; count];
        let (mut height, mut free) = (0.0, if pulls_count { 0.0 } else { -near * self.unit });
        for _ in 0..=REFINEMENTS {
            let residual: Vec<f64> = (0..count)
                .map(|at| {
                    let cut = self.members[at];
                    let product: f64 = self.members.iter().zip(&target).map(|(&k, t)| self.entry(cut, k) * t).sum();
                    self.master.offsets[cut] - product - height - pulls[at] * free
                })
                .collect();
            let step = self.factor.solve(residual);
            let first = sum(&step) - (1.0 - sum(&target));
            let second = dot(&pulls, &step) + dot(&pulls, &target);
            let (by_height, by_free) = if pulls_count {
                (
                    (first * square[2] - second * square[1]) / determinant,
                    (second * square[0] - first * square[1]) / determinant,
                )
            } else {
                (first / square[0], 0.0)
            };
            height += by_height;
            free += by_free;
            for at in 0..count {
                target[at] += step[at] - ones[at] * by_height - pulled[at] * by_free;
            }
        }
        // The added ρ·11ᵀ lowers the height by ρ, since the multipliers add up to one.
        (target, height + self.weight, if pulls_count { -free / self.unit } else { near })
    }
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clarabel::algebra::CscMatrix;
    use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
    use proptest::prelude::*;

    /// Cuts, each its slopes, offset and pull.
    struct Cuts {
        slopes: Vec<Vec<f64>>,
        offsets: Vec<f64>,
        pulls: Vec<f64>,
    }

    impl Cuts {
        fn gram(&self) -> Vec<Vec<f64>> {
            self.slopes.iter().map(|a| self.slopes.iter().map(|b| dot(a, b)).collect()).collect()
        }

        fn value(&self, multipliers: &[f64]) -> f64 {
            let dim = self.slopes[0].len();
            let mean: Vec<f64> =
                (0..dim).map(|j| multipliers.iter().zip(&self.slopes).map(|(m, a)| m * a[j]).sum()).collect();
            dot(multipliers, &self.offsets) - 0.5 * dot(&mean, &mean)
        }

        /// A feasible start: the first cut alone, or the first that pull either way.
        fn start(&self) -> Vec<f64> {
            let mut start = vec![0.0; self.offsets.len()];
            let up = self.pulls.iter().position(|&pull| pull > 0.0);
            let down = self.pulls.iter().position(|&pull| pull < 0.0);
            match (self.pulls.iter().position(|&pull| pull == 0.0), up, down) {
                (Some(still), ..) => start[still] = 1.0,
                (None, Some(up), Some(down)) => {
                    let width = self.pulls[up] - self.pulls[down];
                    start[up] = -self.pulls[down] / width;
                    start[down] = self.pulls[up] / width;
                }
                _ => panic!("no feasible start"),
            }
            start
        }

        fn solved(&self) -> (Vec<f64>, f64) {
            let gram = self.gram();
            let pulls = [self.pulls.clone()];
            let master = Master { gram: &gram, offsets: &self.offsets, pulls: &pulls };
            let mut multipliers = self.start();
            let free = master.maximise(&mut multipliers, &[0.25], &Cancel::new());
            (multipliers, free[0])
        }

        fn referee(&self) -> Option<f64> {
            referee(&self.slopes, &self.offsets, std::slice::from_ref(&self.pulls))
        }
    }

    /// min ½‖w‖² + ξ, ξ ≥ a_k·w + c_k b + β_k, by interior point: the value by strong duality, if it converges.
    pub(in crate::solve::cutting_plane) fn referee(
        slopes: &[Vec<f64>],
        offsets: &[f64],
        pulls: &[Vec<f64>],
    ) -> Option<f64> {
        let (dim, count) = (slopes[0].len(), offsets.len());
        let variables = dim + pulls.len() + 1;
        let (mut i, mut j, mut v) = (vec![], vec![], vec![]);
        for cut in 0..count {
            let row = slopes[cut].iter().chain(pulls.iter().map(|pulls| &pulls[cut])).chain([&-1.0]);
            for (column, &value) in row.enumerate() {
                i.push(cut);
                j.push(column);
                v.push(value);
            }
        }
        let right: Vec<f64> = offsets.iter().map(|offset| -offset).collect();
        let constraints = CscMatrix::new_from_triplets(count, variables, i, j, v);
        let every: Vec<usize> = (0..dim).collect();
        let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, vec![1.0; dim]);
        let mut linear = vec![0.0; variables];
        linear[variables - 1] = 1.0;
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(1e-11)
            .tol_gap_rel(1e-11)
            .tol_feas(1e-11)
            .build()
            .expect("settings");
        let cones = [NonnegativeConeT(count)];
        let mut solver =
            DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).expect("a problem");
        solver.solve();
        (solver.solution.status == SolverStatus::Solved).then_some(solver.solution.obj_val)
    }

    fn check(cuts: &Cuts) -> std::result::Result<(), TestCaseError> {
        let (multipliers, free) = cuts.solved();
        prop_assert!(multipliers.iter().all(|&multiplier| multiplier >= 0.0));
        prop_assert!((sum(&multipliers) - 1.0).abs() <= 1e-14);
        let weight: f64 = multipliers.iter().zip(&cuts.pulls).map(|(m, c)| (m * c).abs()).sum();
        prop_assert!(dot(&multipliers, &cuts.pulls).abs() <= 1e-13 * weight);
        let value = cuts.value(&multipliers);
        // The reference solver has its own tolerance, which large slopes multiply, and may not converge. The check
        // below proves the value.
        if let Some(optimum) = cuts.referee() {
            prop_assert!((value - optimum).abs() <= 2e-6 * (1.0 + optimum.abs()), "{} {}", value, optimum);
        }
        // The model at the primal point of the multipliers is as high as the bound, so no bound is better.
        let dim = cuts.slopes[0].len();
        let w: Vec<f64> =
            (0..dim).map(|j| -multipliers.iter().zip(&cuts.slopes).map(|(m, a)| m * a[j]).sum::<f64>()).collect();
        let height = (0..cuts.offsets.len())
            .map(|k| dot(&cuts.slopes[k], &w) + cuts.pulls[k] * free + cuts.offsets[k])
            .fold(f64::NEG_INFINITY, f64::max);
        let model = 0.5 * dot(&w, &w) + height;
        prop_assert!((model - value).abs() <= 1e-7 * (1.0 + value.abs()), "{} {}", model, value);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_bound_is_the_referees_with_few_features_and_many_more_cuts(
            dim in 1..5usize,
            rows in prop::collection::vec((prop::collection::vec(-4.0..4.0f64, 5), -3.0..3.0f64, -2..3i32), 1..40),
            pulled in any::<bool>(),
            // Small whole numbers make duplicates and dependent cuts, large factors cuts of very different size.
            whole in any::<bool>(),
            stretch in prop::sample::select(vec![1.0, 1e4]),
        ) {
            let count = rows.len();
            let mut cuts = Cuts { slopes: vec![], offsets: vec![], pulls: vec![] };
            for (at, (slopes, offset, pull)) in rows.into_iter().enumerate() {
                let factor = if at < count / 3 { stretch } else { 1.0 };
                let round = |value: f64| factor * if whole { value.round() } else { value };
                cuts.slopes.push(slopes[..dim].iter().map(|&value| round(value)).collect());
                cuts.offsets.push(round(offset));
                cuts.pulls.push(if pulled { factor * f64::from(pull) } else { 0.0 });
            }
            if pulled {
                for sign in [1.0, -1.0] {
                    cuts.slopes.push(vec![sign; dim]);
                    cuts.offsets.push(-1.0);
                    cuts.pulls.push(3.0 * sign);
                }
            }
            check(&cuts)?;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn with_several_free_coordinates_the_model_is_minimised(
            (dim, free) in (1..4usize, 2..5usize),
            rows in prop::collection::vec((prop::collection::vec(-4.0..4.0f64, 4), -3.0..3.0f64,
                prop::collection::vec(-2..3i32, 5)), 0..30),
            // The pulls of one coordinate equal those of another, or a constant added to all of them changes nothing.
            dependent in any::<bool>(),
            stretch in prop::sample::select(vec![1.0, 1e3]),
        ) {
            let (mut slopes, mut offsets, mut pulls) = (vec![], vec![], vec![vec![]; free]);
            let mut push = |slope: &[f64], offset: f64, pull: &[f64]| {
                slopes.push(slope.to_vec());
                offsets.push(offset);
                let mean = pull[..free].iter().sum::<f64>() / free as f64;
                for (at, pulls) in pulls.iter_mut().enumerate() {
                    pulls.push(stretch * (pull[at] - if dependent { mean } else { 0.0 }));
                }
            };
            for at in 0..2 * free {
                let mut pull = vec![0.0; free];
                pull[at / 2] = if at % 2 == 0 { 3.0 } else { -3.0 };
                push(&vec![0.5 - (at % 3) as f64; dim], -1.0, &pull);
            }
            for (slope, offset, pull) in &rows {
                let pull: Vec<f64> = pull.iter().map(|&pull| f64::from(pull)).collect();
                push(&slope[..dim], *offset, &pull);
            }
            let gram: Vec<Vec<f64>> = slopes.iter().map(|a| slopes.iter().map(|b| dot(a, b)).collect()).collect();
            let mut multipliers = vec![0.0; offsets.len()];
            multipliers[..2 * free].fill(0.5 / free as f64);
            let near = vec![0.25; free];
            let master = Master { gram: &gram, offsets: &offsets, pulls: &pulls };
            let found = master.maximise(&mut multipliers, &near, &Cancel::new());
            prop_assert!(multipliers.iter().all(|&multiplier| multiplier >= 0.0));
            prop_assert!((sum(&multipliers) - 1.0).abs() <= 1e-13);
            for pulls in &pulls {
                let weight: f64 = multipliers.iter().zip(pulls).map(|(m, c)| (m * c).abs()).sum();
                let rest = dot(&multipliers, pulls);
                prop_assert!(rest.abs() <= 1e-12 * weight, "{rest:e} of {weight:e}: {multipliers:?}, {pulls:?}");
            }
            let w: Vec<f64> =
                (0..dim).map(|j| -multipliers.iter().zip(&slopes).map(|(m, a)| m * a[j]).sum::<f64>()).collect();
            let value = dot(&multipliers, &offsets) - 0.5 * dot(&w, &w);
            let height = (0..offsets.len())
                .map(|k| dot(&slopes[k], &w) + offsets[k] + (0..free).map(|i| pulls[i][k] * found[i]).sum::<f64>())
                .fold(f64::NEG_INFINITY, f64::max);
            let model = 0.5 * dot(&w, &w) + height;
            prop_assert!((model - value).abs() <= 1e-7 * (1.0 + value.abs()), "{} {}", model, value);
        }
    }

    #[test]
    fn exact_fractions_confirm_the_optimum_where_the_referee_does_not_converge() {
        let rows = [
            (
                [3.079365403057877, -3.298222583901668, -3.176054786569855, -0.4437508351424836],
                0.18455646754395474,
                0.0,
            ),
            (
                [2.8690035902383633, 2.1117493186936787, 2.2709805962477185, -2.9197028153291167],
                0.5850411324196495,
                1.0,
            ),
            (
                [3.390604563044827, -0.12656493291158052, -3.2542799143880603, -3.0036116543766758],
                -0.440138852795836,
                -2.0,
            ),
            ([0.0, 0.0, 1.967112645302895, 0.0], -2.2363068243323605, 0.0),
            ([0.0, 0.0, -2.08604818794796, 0.0], -2.890335001577077, 0.0),
            ([-3.377957960074829, 0.0, 1.4841110119509422, 1.2160577116828444], -2.7873865618244844, -1.0),
            ([1.0; 4], -1.0, 3.0),
            ([-1.0; 4], -1.0, -3.0),
        ];
        let mut cuts = Cuts { slopes: vec![], offsets: vec![], pulls: vec![] };
        for (at, (slopes, offset, pull)) in rows.into_iter().enumerate() {
            let factor = if at < 2 { 1e4 } else { 1.0 };
            cuts.slopes.push(slopes.iter().map(|slope| factor * slope).collect());
            cuts.offsets.push(factor * offset);
            cuts.pulls.push(factor * pull);
        }
        // The optimum of every support in exact fractions: the best of them and the height of the model at its primal
        // point are the same fraction, whose double this is. The reference solver stops a thousandth above it and
        // reports that it did not converge.
        let (multipliers, _) = cuts.solved();
        let value = cuts.value(&multipliers);
        assert!((value + 0.9916372059062165).abs() <= 1e-12, "{value}");
        assert_eq!(cuts.referee(), None);
        check(&cuts).expect("optimal");
    }

    #[test]
    fn two_cuts_meet_where_a_search_over_the_segment_says() {
        let cuts =
            Cuts { slopes: vec![vec![3.0, 1.0], vec![-1.0, 0.5]], offsets: vec![0.5, 0.2], pulls: vec![0.0, 0.0] };
        let (multipliers, _) = cuts.solved();
        let best = (0..=100_000)
            .map(|at| f64::from(at) / 100_000.0)
            .map(|share| cuts.value(&[share, 1.0 - share]))
            .fold(f64::NEG_INFINITY, f64::max);
        assert!((cuts.value(&multipliers) - best).abs() < 1e-9);
        assert!(cuts.value(&multipliers) >= best);
    }

    #[test]
    fn hundreds_of_cuts_of_a_curved_function_are_solved_to_rounding() {
        // Tangents of ½(w − 1)² in twelve dimensions, taken at scattered points.
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 0.5
        };
        let mut cuts = Cuts { slopes: vec![], offsets: vec![], pulls: vec![0.0; 300] };
        for _ in 0..300 {
            let point: Vec<f64> = (0..12).map(|_| draw()).collect();
            let slope: Vec<f64> = point.iter().map(|w| w - 1.0).collect();
            cuts.offsets.push(0.5 * dot(&slope, &slope) - dot(&slope, &point));
            cuts.slopes.push(slope);
        }
        check(&cuts).expect("optimal");
    }
}
