//! Comparisons within groups by grades: all pairs of a group, with equal grades as ties.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_groups [ Σ_{y_i > y_j} c_ij · loss(1 + τ − (s_i − s_j)) + Σ_{i ≠ j, y_i = y_j} c_ij · loss(1 − τ − (s_i − s_j)) ]
//! ```
//! with s = Xw, τ free and c_ij = u_i u_j, where u are the row weights. It is the objective of
//! [`super::super::Comparison`] with a threshold over all pairs, which are never listed. The second sum is over ordered
//! pairs: a tie has two constraints, one in each direction.
//!
//! The decided pairs are those of [`super::Ranking`] with the margin 1 + τ. For the ties, each grade, sorted by score,
//! is walked against itself with the margin 1 − τ ([`within_levels`]). That is exact for every τ. For τ < 1 the walk
//! also pairs each row with itself, which is subtracted again. A value and gradient costs O(n log n), of which the ties
//! add O(n).
//!
//! `solve/balanced.rs` computes the lower bound. Pairs are not weighted by query or grades ([`PairWeight`]).
//!
//! References: as [`super`]; Venuto, Hocking, Sphanurattana & Sugiyama, Support vector comparison machines (2014), for
//! ties with a threshold.

use super::sweep::{Counts, Cross, Item, PartnerSums, Totals, Violations, sweep, within_levels};
use super::{GroupPlan, PairWeight, Scratch, Shape, add_scaled, plans, with_scratch};
use crate::certificate::Decoder;
use crate::data::{Dataset, Subset};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::run::Cancel;
use crate::task::{Curvature, Directions, LearningTask, Objective, Place, Roundable, Slopes};
use crate::wording::counted;
use std::ops::Range;
use std::sync::Arc;

/// The task: which rows to compare, and the cost of a pair.
#[derive(Clone, Debug)]
pub struct GradedComparison {
    groups: Arc<Vec<GroupPlan>>,
    shape: Shape,
    c: f64,
    decided: u64,
    ties: u64,
    shares: Shares,
}

/// The weights of decided pairs and of ties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    pub(crate) decided: f64,
    pub(crate) tied: f64,
}

/// The two kinds of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Decided,
    Tied,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Decided, Kind::Tied];

    /// The coefficient of τ in the violation.
    fn sign(self) -> f64 {
        match self {
            Kind::Decided => 1.0,
            Kind::Tied => -1.0,
        }
    }
}

fn nothing_to_compare() -> Error {
    Error::new(Code::NoPairs, "no query has two rows, so there is nothing to compare")
        .help("check that the query ids group several rows")
}

impl GradedComparison {
    /// A task over all pairs of rows of one group. Returns an error if no pair is a tie or if all are.
    pub fn new(data: &Dataset, loss: Loss, c: f64) -> Result<GradedComparison> {
        GradedComparison::on(data, loss, c, None)
    }

    /// The same over some of the groups: those whose rows are in the subset.
    pub fn on(data: &Dataset, loss: Loss, c: f64, subset: Option<&Subset>) -> Result<GradedComparison> {
        let task = GradedComparison::unchecked(data, loss, c, subset)?;
        task.check_outcomes()?;
        Ok(task)
    }

    /// A part of a larger data set with C = 1. Its pairs may all be ties, or all decided.
    pub(crate) fn of_part(data: &Dataset, loss: Loss) -> Result<GradedComparison> {
        let task = GradedComparison::unchecked(data, loss, 1.0, None)?;
        if task.decided + task.ties == 0 { Err(nothing_to_compare()) } else { Ok(task) }
    }

    /// The total weights of ties and of decided pairs.
    pub(crate) fn outcome_weights(&self) -> (f64, f64) {
        let weight = |of: fn(&GroupPlan) -> f64| self.groups.iter().map(of).sum::<f64>();
        (weight(GroupPlan::tied_total), weight(GroupPlan::total))
    }

    fn unchecked(data: &Dataset, loss: Loss, c: f64, subset: Option<&Subset>) -> Result<GradedComparison> {
        let shape = Shape::of(loss, "comparing by grades")?;
        let mut groups = plans("⟦ties-from-grades⟧", data, PairWeight::Equal, subset)?;
        groups.retain(|plan| plan.by_target.len() > 1);
        let (decided, ties) = (groups.iter().map(GroupPlan::pairs).sum(), groups.iter().map(GroupPlan::ties).sum());
        let shares = Shares { decided: 1.0, tied: 1.0 };
        Ok(GradedComparison { groups: Arc::new(groups), shape, c, decided, ties, shares })
    }

    /// Refuses grades from which no threshold can be learned.
    fn check_outcomes(&self) -> Result<()> {
        let weight = |of: fn(&GroupPlan) -> f64| self.groups.iter().map(of).sum::<f64>();
        let (message, help) = if self.decided + self.ties == 0 {
            return Err(nothing_to_compare());
        } else if self.decided == 0 || weight(GroupPlan::total) == 0.0 && weight(GroupPlan::tied_total) > 0.0 {
            (
                format!(
                    "{} within a query, and no two of different grades: nothing can be learned from ties alone",
                    counted(self.ties, "tie", "ties")
                ),
                "check that the targets are grades and that the query ids group several rows",
            )
        } else if self.ties == 0 || weight(GroupPlan::tied_total) == 0.0 && weight(GroupPlan::total) > 0.0 {
            (
                format!(
                    "no two rows of a query have the same grade ({}), so that no threshold can be learned",
                    counted(self.decided, "pair, decided", "pairs, all decided")
                ),
                "use `train rank`, which learns scores alone, or give grades of which some are equal",
            )
        } else {
            return Ok(());
        };
        Err(Error::new(Code::NoThreshold, message).help(help))
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> GradedComparison {
        GradedComparison { c, ..self }
    }

    /// The same task with these weights for decided pairs and ties.
    pub(crate) fn with_shares(&self, shares: Shares) -> GradedComparison {
        GradedComparison { shares, ..self.clone() }
    }

    /// Number of pairs of different grades.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Number of ties, each counted once.
    pub fn ties(&self) -> u64 {
        self.ties
    }

    /// Number of constraints: one for each decided pair, two for each tie.
    pub fn constraints(&self) -> u64 {
        self.decided + 2 * self.ties
    }

    /// The total weight of the loss: C times the sum of the weights of all constraints.
    pub fn total_cost(&self) -> f64 {
        self.c * self.groups.iter().map(|plan| plan.total() + plan.tied_total()).sum::<f64>()
    }

    /// The cost of all constraints of decided pairs, and that of all constraints of ties.
    pub(crate) fn costs_by_kind(&self) -> (f64, f64) {
        let sum = |total: &dyn Fn(usize) -> f64| self.c * (0..self.groups.len()).map(total).sum::<f64>();
        (sum(&|at| self.groups[at].total()), sum(&|at| self.groups[at].tied_total()))
    }

    fn margin(kind: Kind, threshold: f64) -> f64 {
        1.0 + kind.sign() * threshold
    }

    fn cost(&self, kind: Kind) -> f64 {
        self.c
            * match kind {
                Kind::Decided => self.shares.decided,
                Kind::Tied => self.shares.tied,
            }
    }

    /// Sums over the violated pairs of one kind and margin, stored per position in the scratch's sums.
    fn violations(
        plan: &GroupPlan,
        sorted: &[Item],
        kind: Kind,
        margin: f64,
        counts: Counts,
        scratch: &mut Scratch,
        cancel: &Cancel,
    ) -> Totals {
        let Scratch { sweep: buffers, sums, .. } = scratch;
        sums.clear();
        let work = Violations { margin, counts, channels: &plan.channels() };
        sums.resize(work.width() * sorted.len(), 0.0);
        match kind {
            Kind::Decided => sweep(&work, &plan.levels, sorted, buffers, sums, cancel),
            Kind::Tied => within_levels(&work, &plan.levels, sorted, buffers, sums, cancel),
        }
    }
}

impl GroupPlan {
    /// Number of ties, each counted once.
    fn ties(&self) -> u64 {
        let ties_of = |rows: u64| rows * (rows - 1) / 2;
        self.levels.windows(2).map(|level| ties_of(u64::from(level[1] - level[0]))).sum()
    }

    /// The sum of the weights of ordered pairs with equal grades.
    fn tied_total(&self) -> f64 {
        let Some(weights) = &self.weights else { return 2.0 * self.ties() as f64 };
        // Summed row by row and not as a difference of squares, so that weights of zero give exactly zero.
        let total_of = |weights: &[f64]| {
            let (mut before, mut total) = (0.0, 0.0);
            for weight in weights {
                total += 2.0 * weight * before;
                before += weight;
            }
            total
        };
        self.levels.windows(2).map(|level| total_of(&weights[level[0] as usize..level[1] as usize])).sum()
    }
}

/// What a group remembers from its last evaluation.
#[derive(Debug, Default)]
pub struct GradedMemo {
    /// The items of each level sorted by score.
    sorted: Vec<Item>,
    threshold: f64,
    /// For each position the curvature by its own score, and by its score and the threshold.
    diagonal: Vec<f64>,
    cross: Vec<f64>,
    /// The curvature by the threshold.
    corner: f64,
    /// The result of [`Roundable::rounding`]: the value of the hinge, the excess, and the sums whose differences are
    /// the values.
    hinge: f64,
    excess: f64,
    summed: f64,
}

impl LearningTask for GradedComparison {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        GradedComparison::total_cost(self)
    }

    fn constraints(&self) -> u64 {
        GradedComparison::constraints(self)
    }

    fn unit(&self) -> &'static str {
        "pair"
    }

    fn decoder(&self, free: &[f64]) -> Decoder {
        Decoder::Compare { threshold: free.first().copied().unwrap_or(0.0) }
    }

    /// For the hinge: with equal scores the best threshold is 1 or −1. At 1, every decided pair costs 2; at −1, each
    /// constraint of a tie costs 2.
    fn cost_of_equal_scores(&self) -> Option<f64> {
        let (decided, tied) = self.costs_by_kind();
        Some(2.0 * decided.min(tied))
    }
}

impl Objective for GradedComparison {
    type Memo = GradedMemo;

    fn parts(&self) -> usize {
        self.groups.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.groups[part].rows.clone()
    }

    fn thresholds(&self) -> usize {
        1
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut GradedMemo) -> Result<f64> {
        let plan = &self.groups[at.part];
        let (scores, slope) = (at.scores, slopes.scores);
        let mut sorted = std::mem::take(&mut memo.sorted);
        plan.sort(scores, &mut sorted);
        let (mut diagonal, mut cross) = (std::mem::take(&mut memo.diagonal), std::mem::take(&mut memo.cross));
        for curved in [&mut diagonal, &mut cross] {
            curved.clear();
            curved.resize(scores.len(), 0.0);
        }
        let threshold = at.thresholds.first().copied().unwrap_or(0.0);
        *memo = GradedMemo { sorted, threshold, diagonal, cross, ..GradedMemo::default() };
        slope.fill(0.0);
        let (mut value, mut by_threshold) = (0.0, 0.0);
        with_scratch(|scratch| {
            for kind in Kind::ALL {
                let (margin, cost, sign) = (Self::margin(kind, threshold), self.cost(kind), kind.sign());
                if cost == 0.0 {
                    continue;
                }
                if self.shape == Shape::Hinge {
                    let totals = Self::violations(plan, &memo.sorted, kind, margin, Counts::Signed, scratch, at.cancel);
                    value += cost * totals.sum;
                    by_threshold += cost * sign * totals.weight;
                    for (&row, out) in plan.by_target.iter().zip(scratch.sums.chunks_exact(2)) {
                        slope[row as usize] += cost * out[1];
                    }
                    continue;
                }
                for (number, (margin, share)) in self.shape.squared_parts(margin).into_iter().enumerate() {
                    let totals = Self::violations(plan, &memo.sorted, kind, margin, Counts::Both, scratch, at.cancel);
                    let weight = 2.0 * cost * share;
                    value += cost * share * totals.squares;
                    by_threshold += weight * sign * totals.sum;
                    memo.corner += weight * totals.weight;
                    memo.summed += cost * share.abs() * totals.squares;
                    memo.excess += cost * share * totals.squares;
                    *(if number == 0 { &mut memo.hinge } else { &mut memo.excess }) +=
                        if number == 0 { cost * totals.sum } else { -cost * totals.sum };
                    let places = memo.diagonal.iter_mut().zip(&mut memo.cross);
                    for ((&row, out), (diagonal, cross)) in
                        plan.by_target.iter().zip(scratch.sums.chunks_exact(3)).zip(places)
                    {
                        slope[row as usize] += weight * out[0];
                        *diagonal += weight * out[1];
                        *cross += weight * sign * out[2];
                    }
                }
            }
        });
        slopes.thresholds.iter_mut().for_each(|slope| *slope += by_threshold);
        Ok(value)
    }
}

impl Curvature for GradedComparison {
    fn diagonal(&self, at: &Place<'_>, memo: &GradedMemo, out: &mut [f64]) -> Result<()> {
        for (&row, diagonal) in self.groups[at.part].by_target.iter().zip(&memo.diagonal) {
            out[row as usize] = *diagonal;
        }
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        true
    }

    fn curvature(&self, at: &Place<'_>, memo: &GradedMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let plan = &self.groups[at.part];
        let Directions { count: m, scores: directions, thresholds: threshold_directions } = *along;
        let Slopes { scores: out, thresholds: threshold_out } = out;
        out.fill(0.0);
        with_scratch(|Scratch { sweep: buffers, sums, placed, .. }| {
            placed.clear();
            for &row in &plan.by_target {
                placed.extend_from_slice(&directions[m * row as usize..][..m]);
            }
            let places = placed.chunks_exact(m).zip(memo.diagonal.iter().zip(&memo.cross));
            for (&row, (direction, (&diagonal, &cross))) in plan.by_target.iter().zip(places) {
                let out = &mut out[m * row as usize..][..m];
                add_scaled(out, diagonal, direction);
                add_scaled(out, cross, threshold_directions);
                add_scaled(threshold_out, cross, direction);
            }
            add_scaled(threshold_out, memo.corner, threshold_directions);
            let channels = plan.channels();
            for kind in Kind::ALL {
                let (margin, cost) = (Self::margin(kind, memo.threshold), self.cost(kind));
                if cost == 0.0 {
                    continue;
                }
                for (margin, share) in self.shape.squared_parts(margin) {
                    sums.clear();
                    sums.resize(directions.len(), 0.0);
                    let work = PartnerSums { margin, channels: &channels, m, directions: placed };
                    match kind {
                        Kind::Decided => sweep(&work, &plan.levels, &memo.sorted, buffers, sums, at.cancel),
                        Kind::Tied => within_levels(&work, &plan.levels, &memo.sorted, buffers, sums, at.cancel),
                    };
                    for (&row, sums) in plan.by_target.iter().zip(sums.chunks_exact(m)) {
                        add_scaled(&mut out[m * row as usize..][..m], -2.0 * share * cost, sums);
                    }
                }
            }
        });
        Ok(())
    }
}

impl Roundable for GradedComparison {
    fn rounded(&self, width: f64) -> GradedComparison {
        debug_assert!(self.shape != Shape::SquaredHinge);
        GradedComparison { shape: Shape::Rounded(width), ..self.clone() }
    }

    /// Values of the smoothed hinge are differences of larger sums, which is why there is an error.
    fn rounding(&self, _part: usize, memo: &GradedMemo) -> [f64; 3] {
        [memo.hinge, memo.excess, 16.0 * f64::EPSILON * (memo.summed + memo.hinge)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Matrix, Outcome, Pairs, Targets};
    use crate::task::{Comparison, TiesAs, WeightAs};
    use crate::testing::{check_curvature, check_objective};
    use proptest::prelude::*;

    /// A data set of one group, or of several groups with the given numbers of rows.
    fn data(targets: &[f64], weights: Option<&[f64]>, groups: &[usize]) -> Dataset {
        let rows = targets.len();
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1).expect("dense"));
        let mut starts = vec![0u64];
        groups.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + *rows as u64));
        let names = groups.iter().map(|_| "q").collect();
        let groups = if groups.is_empty() { Groups::one(rows) } else { Groups::new(starts, names).expect("groups") };
        let data = Dataset::new(matrix, Targets::Real(targets.to_vec().into())).expect("data");
        let data = data.with_groups(groups).expect("groups");
        weights.map_or(data.clone(), |weights| data.with_weights(weights.to_vec()).expect("weights"))
    }

    /// The same pairs as an explicit list.
    fn listed(targets: &[f64], weights: Option<&[f64]>, loss: Loss, c: f64) -> Comparison {
        let n = targets.len();
        let (mut left, mut right, mut outcomes, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for i in 0..n {
            for j in 0..i {
                left.push(i as u32);
                right.push(j as u32);
                outcomes.push(match targets[i].total_cmp(&targets[j]) {
                    std::cmp::Ordering::Less => Outcome::Right,
                    std::cmp::Ordering::Equal => Outcome::Tie,
                    std::cmp::Ordering::Greater => Outcome::Left,
                });
                costs.push(weights.map_or(1.0, |weights| weights[i] * weights[j]));
            }
        }
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; n], n, 1).expect("dense"));
        let pairs = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("pairs");
        let pairs = pairs.with_weights(costs).expect("weights");
        let data = Dataset::new(matrix, Targets::Absent).expect("data").with_pairs(pairs).expect("pairs");
        Comparison::new(&data, TiesAs::Threshold, WeightAs::Slack, loss, c).expect("pairs")
    }

    /// Value, slopes, products with two directions, and the diagonal, for a task of one part.
    fn everything<T: Curvature>(
        task: &T,
        memo: &mut T::Memo,
        scores: &[f64],
        threshold: f64,
        directions: &[f64],
    ) -> (f64, Vec<f64>) {
        let n = scores.len();
        let (mut slope, mut by_threshold) = (vec![0.0; n], [0.0]);
        let at = Place { part: 0, scores, thresholds: &[threshold], cancel: &Cancel::new() };
        let slopes = Slopes { scores: &mut slope, thresholds: &mut by_threshold };
        let value = task.evaluate(&at, slopes, memo).expect("a value");
        let (mut out, mut threshold_out, mut diagonal) = (vec![0.0; 2 * n], [0.0; 2], vec![0.0; n]);
        let along = Directions { count: 2, scores: directions, thresholds: &[1.0, -0.5] };
        let curved = Slopes { scores: &mut out, thresholds: &mut threshold_out };
        task.curvature(&at, memo, &along, curved).expect("curvature");
        task.diagonal(&at, memo, &mut diagonal).expect("a diagonal");
        slope.extend(by_threshold.into_iter().chain(out).chain(threshold_out).chain(diagonal));
        (value, slope)
    }

    proptest! {
        #[test]
        fn sums_equal_those_over_listed_pairs(
            rows in prop::collection::vec((0..4i32, -30..30i32, 0..4u8, -5.0..5.0f64), 2..60),
            weighted in any::<bool>(),
            // `None`, or the width over which the hinge is smoothed. No violation here equals the width exactly,
            // because the second derivative jumps there.
            rounded in prop::sample::select(vec![None, Some(0.265625), Some(1.515625)]),
            loss in prop::sample::select(vec![Loss::Hinge, Loss::SquaredHinge]),
            threshold in prop::sample::select(vec![-1.5, -1.0, 0.0, 0.375, 0.9, 1.0, 1.6, 4.0]),
            // Margins of 1 ± τ lose digits next to large scores.
            offset in prop::sample::select(vec![0.0, 1024.0, -65536.0]),
        ) {
            let targets: Vec<f64> = rows.iter().map(|r| f64::from(r.0)).collect();
            let scores: Vec<f64> = rows.iter().map(|r| offset + f64::from(r.1) / 8.0).collect();
            let weights: Vec<f64> = rows.iter().map(|r| f64::from(r.2) / 2.0).collect();
            let weights = weighted.then_some(&weights[..]);
            let directions: Vec<f64> = rows.iter().flat_map(|r| [r.3, r.3 * r.3 - 1.0]).collect();
            let Ok(task) = GradedComparison::new(&data(&targets, weights, &[]), loss, 0.7) else {
                return Ok(());
            };
            let slow = listed(&targets, weights, loss, 0.7);
            let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-9 * (1.0 + scale);
            prop_assert!(close(task.total_cost(), slow.total_cost(), slow.total_cost()));
            if !weighted {
                prop_assert_eq!(task.constraints(), slow.constraints());
            }
            // Only the hinge has a kink.
            let rounded = rounded.filter(|_| loss == Loss::Hinge);
            let (task, slow) = match rounded {
                Some(width) => (task.rounded(width), slow.rounded(width)),
                None => (task, slow),
            };
            let (mut memo, mut slow_memo) = Default::default();
            let (fast, found) = everything(&task, &mut memo, &scores, threshold, &directions);
            let (value, expected) = everything(&slow, &mut slow_memo, &scores, threshold, &directions);
            prop_assert!(close(fast, value, value), "{} {}", fast, value);
            for (a, b) in found.iter().zip(&expected) {
                prop_assert!(close(*a, *b, 100.0 * b.abs()), "{} {}", a, b);
            }
            if rounded.is_some() {
                let [hinge, excess, error] = task.rounding(0, &memo);
                let [slow_hinge, slow_excess, _] = slow.rounding(0, &slow_memo);
                prop_assert!(close(hinge, slow_hinge, hinge) && close(excess, slow_excess, hinge));
                prop_assert!(error >= 0.0 && error <= 1e-10 * (1.0 + hinge * hinge));
            }
        }
    }

    #[test]
    fn slopes_and_curvature_say_the_same_as_the_value() {
        let targets = [2.0, 0.0, 1.0, 1.0, 2.0, 0.0, 0.0, 1.0, 1.0, 3.0, 3.0];
        let scores: Vec<f64> = (0..targets.len()).map(|i| ((i * 37 + 11) % 29) as f64 * 0.173 - 2.1).collect();
        let weights: Vec<f64> = (0..targets.len()).map(|i| 0.5 + (i % 3) as f64).collect();
        for weights in [None, Some(&weights[..])] {
            // The second group has only one grade, and the last group only one row.
            let data = data(&targets, weights, &[6, 4, 1]);
            for threshold in [-0.3, 0.61, 1.37] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    let task = GradedComparison::new(&data, loss, 0.4).expect("pairs");
                    assert_eq!(task.parts(), 2);
                    assert_eq!(check_objective(&task, &scores, &[threshold]), Ok(()));
                    let smooth = if loss == Loss::Hinge { task.rounded(0.8) } else { task };
                    assert_eq!(check_objective(&smooth, &scores, &[threshold]), Ok(()));
                    assert_eq!(check_curvature(&smooth, &scores, &[threshold]), Ok(()));
                }
            }
        }
    }

    #[test]
    fn shares_take_the_two_kinds_apart() {
        let targets = [2.0, 0.0, 1.0, 1.0, 2.0];
        let data = data(&targets, None, &[]);
        let task = GradedComparison::new(&data, Loss::SquaredHinge, 0.4).expect("pairs");
        let value = |decided: f64, tied: f64| {
            let task = task.with_shares(Shares { decided, tied });
            let (mut slope, mut by_threshold) = ([0.0; 5], [0.0]);
            let scores = [0.3, -0.2, 0.9, 0.1, 1.4];
            let at = Place { part: 0, scores: &scores, thresholds: &[0.7], cancel: &Cancel::new() };
            let slopes = Slopes { scores: &mut slope, thresholds: &mut by_threshold };
            let value = task.evaluate(&at, slopes, &mut GradedMemo::default()).expect("a value");
            (value, by_threshold[0])
        };
        let ((whole, pull), (decided, up), (tied, down)) = (value(1.0, 1.0), value(1.0, 0.0), value(0.0, 1.0));
        assert!((whole - decided - tied).abs() < 1e-14 && (pull - up - down).abs() < 1e-14);
        assert!(decided > 0.0 && tied > 0.0 && up > 0.0 && down < 0.0);
    }

    #[test]
    fn grades_that_teach_no_threshold_are_refused() {
        let code = |targets: &[f64], weights: Option<&[f64]>, groups: &[usize]| {
            GradedComparison::new(&data(targets, weights, groups), Loss::Hinge, 1.0).expect_err("refused").code()
        };
        assert_eq!(code(&[1.0, 2.0, 3.0], None, &[]), Code::NoThreshold);
        assert_eq!(code(&[1.0, 1.0, 2.0, 2.0], None, &[2, 2]), Code::NoThreshold);
        assert_eq!(code(&[1.0, 2.0], None, &[1, 1]), Code::NoPairs);
        assert_eq!(code(&[1.0, 1.0, 2.0], Some(&[1.0, 0.0, 1.0]), &[]), Code::NoThreshold);
        assert_eq!(code(&[1.0, 1.0, 2.0], Some(&[1.0, 1.0, 0.0]), &[]), Code::NoThreshold);
        let task = GradedComparison::new(&data(&[1.0, 1.0, 2.0], None, &[]), Loss::Hinge, 1.0).expect("pairs");
        assert_eq!((task.decided(), task.ties(), task.constraints()), (2, 1, 4));
    }
}
