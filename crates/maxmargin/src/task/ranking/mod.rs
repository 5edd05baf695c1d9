//! Ranking within groups.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_groups Σ_{i,j in group, y_i > y_j} c_ij · loss(1 − (s_i − s_j)),   s = Xw
//! ```
//! over **all** ordered pairs, which are never listed. c_ij is u_i u_j, with u the row weights (a row of weight 2
//! counts as two copies), times the factor of [`PairWeight`]. The loss is the hinge, the squared hinge, or the hinge
//! smoothed over a width δ for Newton's method, `h(v) = (max(0, v)² − max(0, v − δ)²) / 2δ`.
//!
//! A group is one part. [`sweep`] computes the sums over its violated pairs: O(n log n) per value and gradient.
//! Curvature repeats the sweeps with vectors in place of scores.
//!
//! References: Joachims, Optimizing search engines using clickthrough data, KDD 2002 (the objective); Lee & Lin,
//! Large-scale linear RankSVM, Neural Computation 26 (2014) (counting instead of listing). The recursion over the
//! target order is new.

mod clicks;
mod settings;
mod sweep;
mod ties;

pub use clicks::ClickRanking;
pub use ties::GradedComparison;
pub(crate) use ties::Shares;

pub(super) use settings::PROFILE;
pub use settings::{PairWeight, RankSettings, TargetsAre};

use super::{Curvature, Directions, LearningTask, Objective, Place, Roundable, Slopes};
use crate::certificate::Decoder;
use crate::data::row_loops::for_this_machine;
use crate::data::{Dataset, Subset, counts};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::parallel;
use crate::run::Cancel;
use rayon::slice::ParallelSliceMut;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use sweep::{Channel, Counts, FORK, Item, PartnerSums, SweepScratch, Totals, Violations, by_score, sweep};

/// The function of the violation that is summed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Hinge,
    SquaredHinge,
    /// The hinge, smoothed over this width.
    Rounded(f64),
}

impl Shape {
    fn of(loss: Loss, task: &str) -> Result<Shape> {
        match loss {
            Loss::Hinge => Ok(Shape::Hinge),
            Loss::SquaredHinge => Ok(Shape::SquaredHinge),
            Loss::Logistic => Err(Error::new(Code::Unsupported, format!("{task} has no logistic loss"))
                .help("use ⟦loss=squared-hinge⟧ or ⟦loss=hinge⟧")),
        }
    }

    /// The loss as a weighted sum of squared hinges: their margins and weights, if the loss has a curvature.
    fn squared_parts(self, margin: f64) -> Vec<(f64, f64)> {
        match self {
            Shape::Hinge => Vec::new(),
            Shape::SquaredHinge => vec![(margin, 1.0)],
            Shape::Rounded(width) => {
                // The actual width after rounding the lowered margin, so that the dual point stays in its box to the
                // last digit.
                let lowered = (margin - width).min(margin.next_down());
                let width = margin - lowered;
                vec![(margin, 0.5 / width), (lowered, -0.5 / width)]
            }
        }
    }
}

/// The task: which rows to compare, and the weight of each pair.
#[derive(Clone, Debug)]
pub struct Ranking {
    groups: Arc<Vec<GroupPlan>>,
    shape: Shape,
    c: f64,
    pairs: u64,
    single_grade: usize,
}

/// A group with at least one pair.
#[derive(Clone, Debug)]
struct GroupPlan {
    rows: Range<usize>,
    /// Positions within the group in target order, lowest target first.
    by_target: Vec<u32>,
    /// Where each distinct target starts in `by_target`, followed by the number of rows.
    levels: Vec<u32>,
    /// The weight at each position, if rows have weights.
    weights: Option<Vec<f64>>,
    /// The target at each position minus the lowest one, if pairs are weighted by the difference.
    targets: Option<Vec<f64>>,
    /// The factor of all pair weights of this group.
    factor: f64,
}

impl Ranking {
    /// A task over all pairs of rows of one group whose targets differ.
    pub fn new(data: &Dataset, loss: Loss, pair_weight: PairWeight, c: f64) -> Result<Ranking> {
        Ranking::on(data, loss, pair_weight, c, None)
    }

    /// The same over some of the groups: those whose rows are in the subset.
    pub fn on(data: &Dataset, loss: Loss, pair_weight: PairWeight, c: f64, subset: Option<&Subset>) -> Result<Ranking> {
        let shape = Shape::of(loss, "ranking")?;
        let mut groups = plans("ranking", data, pair_weight, subset)?;
        let all = groups.len();
        groups.retain(|plan| plan.levels.len() > 2);
        let single_grade = all - groups.len();
        let pairs = groups.iter().map(GroupPlan::pairs).sum();
        if pairs == 0 {
            return Err(Error::new(
                Code::NoPairs,
                "no query has two rows with different targets, so there is nothing to rank",
            )
            .help("check that the targets are grades and that the query ids group several rows"));
        }
        Ok(Ranking { groups: Arc::new(groups), shape, c, pairs, single_grade })
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> Ranking {
        Ranking { c, ..self }
    }

    /// Number of ordered pairs.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The total weight of the loss: C times the sum of the pair weights.
    pub fn total_cost(&self) -> f64 {
        self.c * self.groups.iter().map(|plan| plan.factor * plan.total()).sum::<f64>()
    }

    /// Number of groups without a pair, which are ignored.
    pub fn single_grade_groups(&self) -> usize {
        self.single_grade
    }

    /// Sums over the violated pairs of one margin, with two numbers per position in the scratch's sums. A single list
    /// may be long, so the sums stop early once the job is abandoned.
    fn violations(
        plan: &GroupPlan,
        sorted: &[Item],
        margin: f64,
        counts: Counts,
        scratch: &mut Scratch,
        cancel: &Cancel,
    ) -> Totals {
        let Scratch { sweep: buffers, sums, .. } = scratch;
        sums.clear();
        sums.resize(2 * sorted.len(), 0.0);
        let work = Violations { margin, counts, channels: &plan.channels() };
        sweep(&work, &plan.levels, sorted, buffers, sums, cancel)
    }

    /// The groups, for drawing pairs.
    pub(crate) fn target_orders(&self) -> impl Iterator<Item = TargetOrder<'_>> {
        self.groups.iter().map(|plan| TargetOrder {
            first_row: plan.rows.start,
            by_target: &plan.by_target,
            levels: &plan.levels,
            weight: plan.factor * plan.total(),
        })
    }

    /// The weight of a pair of a group, given the positions of its rows in target order.
    pub(crate) fn weight_of_pair(&self, group: usize, better: u32, worse: u32) -> f64 {
        let plan = &self.groups[group];
        let (better, worse) = (better as usize, worse as usize);
        let weight = plan.weights.as_ref().map_or(1.0, |weights| weights[better] * weights[worse]);
        let gap = plan.targets.as_ref().map_or(1.0, |targets| targets[better] - targets[worse]);
        plan.factor * gap * weight
    }
}

/// The rows of a group in target order, for drawing pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TargetOrder<'a> {
    /// The group's first row.
    pub(crate) first_row: usize,
    /// Positions within the group, lowest target first.
    pub(crate) by_target: &'a [u32],
    /// Where each distinct target starts in `by_target`, followed by the number of rows.
    pub(crate) levels: &'a [u32],
    /// The sum of the pair weights.
    pub(crate) weight: f64,
}

/// The groups whose rows are in the subset. `task` is the name used in error messages.
fn plans(task: &str, data: &Dataset, pair_weight: PairWeight, subset: Option<&Subset>) -> Result<Vec<GroupPlan>> {
    let targets = data.targets().real()?;
    let groups = data.groups().ok_or_else(|| {
        Error::new(Code::NoGroups, format!("{task} compares rows of the same query, and the rows have no query ids"))
            .help("add qid:ID to the rows, name the column with ⟦group⟧, or rank all rows as one list with ⟦one-group⟧")
    })?;
    if let Some(range) = groups.ranges().find(|range| range.len() > u32::MAX as usize) {
        return Err(Error::new(Code::BadSetting, format!("a query of {} rows is too long", range.len())));
    }
    let seen: Vec<Range<usize>> = groups.ranges().filter(|range| counts(subset, range.start)).collect();
    Ok(parallel::map(seen.len(), |group| plan(seen[group].clone(), data, targets, pair_weight)))
}

fn plan(rows: Range<usize>, data: &Dataset, targets: &[f64], pair_weight: PairWeight) -> GroupPlan {
    let targets = &targets[rows.clone()];
    let mut by_target: Vec<u32> = (0..targets.len() as u32).collect();
    by_target.sort_by(|&a, &b| targets[a as usize].total_cmp(&targets[b as usize]));
    let mut levels = vec![0];
    for at in 1..by_target.len() {
        if targets[by_target[at] as usize] != targets[by_target[at - 1] as usize] {
            levels.push(at as u32);
        }
    }
    levels.push(by_target.len() as u32);
    let lowest = targets[by_target[0] as usize];
    let place_targets = || by_target.iter().map(|&row| targets[row as usize] - lowest).collect();
    let weights =
        data.weights().map(|weights| by_target.iter().map(|&row| weights[rows.start + row as usize]).collect());
    let targets = (pair_weight == PairWeight::GradeGap).then(place_targets);
    let mut plan = GroupPlan { rows, by_target, levels, weights, targets, factor: 1.0 };
    if pair_weight == PairWeight::PerQuery {
        let total = plan.total();
        plan.factor = if total > 0.0 { 1.0 / total } else { 0.0 };
    }
    plan
}

impl GroupPlan {
    /// The rows by level, each level sorted by score.
    fn sort(&self, scores: &[f64], sorted: &mut Vec<Item>) {
        sorted.clear();
        let items = self.by_target.iter().enumerate();
        sorted.extend(items.map(|(place, &row)| Item { score: scores[row as usize], place: place as u32 }));
        for level in self.levels.windows(2) {
            let level = &mut sorted[level[0] as usize..level[1] as usize];
            if level.len() >= FORK { level.par_sort_unstable_by(by_score) } else { level.sort_unstable_by(by_score) }
        }
    }

    /// The same for a known order of positions.
    fn arrange(&self, order: &[u32], scores: &[f64], sorted: &mut Vec<Item>) {
        let score = |place: u32| scores[self.by_target[place as usize] as usize];
        sorted.clear();
        sorted.extend(order.iter().map(|&place| Item { score: score(place), place }));
    }

    fn pairs(&self) -> u64 {
        self.levels.windows(2).map(|level| u64::from(level[0]) * u64::from(level[1] - level[0])).sum()
    }

    fn channels(&self) -> Vec<Channel<'_>> {
        let weights = self.weights.as_deref();
        match &self.targets {
            None => vec![Channel::product(weights)],
            Some(targets) => Channel::target_gap(weights, targets).to_vec(),
        }
    }

    /// The sum of the pair weights without the factor.
    fn total(&self) -> f64 {
        let total_of = |channel: &Channel<'_>| {
            let (mut below, mut total) = (0.0, 0.0);
            for level in self.levels.windows(2) {
                let places = level[0]..level[1];
                total += places.clone().map(|place| channel.better(place)).sum::<f64>() * below;
                below += places.map(|place| channel.worse(place)).sum::<f64>();
            }
            total
        };
        self.channels().iter().map(total_of).sum()
    }
}

/// Buffers for the sums of a group. A thread keeps them from one group to the next. Allocating them and touching every
/// page each time would cost as much again as the sums of a short group.
#[derive(Default)]
struct Scratch {
    sweep: SweepScratch,
    sorted: Vec<Item>,
    sums: Vec<f64>,
    placed: Vec<f64>,
    diagonal: Vec<f64>,
}

impl Scratch {
    fn bytes(&self) -> usize {
        let numbers = self.sums.capacity() + self.placed.capacity() + self.diagonal.capacity();
        self.sweep.bytes() + size_of::<Item>() * self.sorted.capacity() + size_of::<f64>() * numbers
    }
}

/// Larger buffers are freed. They belong to long lists, of which there are few.
const KEPT_BYTES: usize = 64 << 20;

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

fn with_scratch<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    // Taken out while in use. A thread that waits for another may start on a second group, and then makes its own
    // buffers.
    let mut scratch = SCRATCH.take();
    let result = work(&mut scratch);
    if scratch.bytes() <= KEPT_BYTES {
        SCRATCH.set(scratch);
    }
    result
}

/// What a group remembers from its last evaluation.
#[derive(Debug, Default)]
pub struct RankingMemo {
    /// The positions of each level sorted by score. Everything else that curvature needs is recomputed: numbers for
    /// each row would take most of the memory apart from the features.
    order: Vec<u32>,
    /// The value, that of the hinge, and that of the hinge with its margin lowered by δ, all without the cost.
    value: f64,
    hinge: f64,
    saturated: f64,
    /// The total of the sums whose difference is the value.
    summed: f64,
}

impl LearningTask for Ranking {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        Ranking::total_cost(self)
    }

    fn constraints(&self) -> u64 {
        self.pairs()
    }

    fn unit(&self) -> &'static str {
        "pair"
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Rank
    }
}

impl Objective for Ranking {
    type Memo = RankingMemo;

    fn parts(&self) -> usize {
        self.groups.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.groups[part].rows.clone()
    }

    fn thresholds(&self) -> usize {
        0
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut RankingMemo) -> Result<f64> {
        let plan = &self.groups[at.part];
        let cost = self.c * plan.factor;
        let (scores, slope) = (at.scores, slopes.scores);
        slope.fill(0.0);
        (memo.value, memo.summed) = (0.0, 0.0);
        with_scratch(|scratch| {
            let mut sorted = std::mem::take(&mut scratch.sorted);
            plan.sort(scores, &mut sorted);
            if self.shape == Shape::Hinge {
                memo.value = Self::violations(plan, &sorted, 1.0, Counts::Signed, scratch, at.cancel).sum;
                for (&row, out) in plan.by_target.iter().zip(scratch.sums.chunks_exact(2)) {
                    slope[row as usize] = cost * out[1];
                }
            } else {
                memo.order.clear();
                memo.order.extend(sorted.iter().map(|item| item.place));
                for (number, (margin, share)) in self.shape.squared_parts(1.0).into_iter().enumerate() {
                    let totals = Self::violations(plan, &sorted, margin, Counts::Plain, scratch, at.cancel);
                    memo.value += share * totals.squares;
                    memo.summed += share.abs() * totals.squares;
                    *if number == 0 { &mut memo.hinge } else { &mut memo.saturated } = totals.sum;
                    for (&row, out) in plan.by_target.iter().zip(scratch.sums.chunks_exact(2)) {
                        slope[row as usize] += 2.0 * cost * share * out[0];
                    }
                }
            }
            scratch.sorted = sorted;
        });
        Ok(cost * memo.value)
    }
}

#[inline(always)]
fn add_scaled_plainly(out: &mut [f64], weight: f64, values: &[f64]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * value);
}

for_this_machine! {
    /// out += weight · values
    fn add_scaled[](out: &mut [f64], weight: f64, values: &[f64]) -> () = add_scaled_plainly
}

impl Ranking {
    /// For each position, the curvature by its own score without the cost, in the scratch's diagonal.
    fn own_curvature(&self, plan: &GroupPlan, sorted: &[Item], scratch: &mut Scratch, cancel: &Cancel) {
        let mut diagonal = std::mem::take(&mut scratch.diagonal);
        diagonal.clear();
        diagonal.resize(sorted.len(), 0.0);
        for (margin, share) in self.shape.squared_parts(1.0) {
            Self::violations(plan, sorted, margin, Counts::Plain, scratch, cancel);
            for (diagonal, out) in diagonal.iter_mut().zip(scratch.sums.chunks_exact(2)) {
                *diagonal += 2.0 * share * out[1];
            }
        }
        scratch.diagonal = diagonal;
    }

    /// Calls `work` with a group sorted as in its last evaluation and its diagonal curvature in the scratch.
    fn with_curved(&self, at: &Place<'_>, memo: &RankingMemo, work: impl FnOnce(&[Item], &mut Scratch)) {
        let plan = &self.groups[at.part];
        with_scratch(|scratch| {
            let mut sorted = std::mem::take(&mut scratch.sorted);
            plan.arrange(&memo.order, at.scores, &mut sorted);
            self.own_curvature(plan, &sorted, scratch, at.cancel);
            work(&sorted, scratch);
            scratch.sorted = sorted;
        });
    }
}

impl Curvature for Ranking {
    fn diagonal(&self, at: &Place<'_>, memo: &RankingMemo, out: &mut [f64]) -> Result<()> {
        let plan = &self.groups[at.part];
        out.fill(0.0);
        self.with_curved(at, memo, |_, scratch| {
            for (&row, diagonal) in plan.by_target.iter().zip(&scratch.diagonal) {
                out[row as usize] = self.c * plan.factor * diagonal;
            }
        });
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        true
    }

    fn curvature(&self, at: &Place<'_>, memo: &RankingMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let plan = &self.groups[at.part];
        let cost = self.c * plan.factor;
        let (m, directions, out) = (along.count, along.scores, out.scores);
        out.fill(0.0);
        self.with_curved(at, memo, |sorted, Scratch { sweep: buffers, sums, placed, diagonal, .. }| {
            placed.resize(directions.len(), 0.0);
            for (placed, &row) in placed.chunks_exact_mut(m).zip(&plan.by_target) {
                placed.copy_from_slice(&directions[m * row as usize..][..m]);
            }
            for ((&row, direction), diagonal) in plan.by_target.iter().zip(placed.chunks_exact(m)).zip(diagonal) {
                add_scaled(&mut out[m * row as usize..][..m], cost * *diagonal, direction);
            }
            let channels = plan.channels();
            for (margin, share) in self.shape.squared_parts(1.0) {
                sums.clear();
                sums.resize(directions.len(), 0.0);
                let work = PartnerSums { margin, channels: &channels, m, directions: placed };
                sweep(&work, &plan.levels, sorted, buffers, sums, at.cancel);
                let weight = 2.0 * share * cost;
                for (&row, sums) in plan.by_target.iter().zip(sums.chunks_exact(m)) {
                    add_scaled(&mut out[m * row as usize..][..m], -weight, sums);
                }
            }
        });
        Ok(())
    }
}

impl Roundable for Ranking {
    fn rounded(&self, width: f64) -> Ranking {
        debug_assert!(self.shape != Shape::SquaredHinge);
        Ranking { shape: Shape::Rounded(width), ..self.clone() }
    }

    /// Values of the smoothed hinge are differences of larger sums, which is why there is an error.
    fn rounding(&self, part: usize, memo: &RankingMemo) -> [f64; 3] {
        let weight = self.c * self.groups[part].factor;
        let error = 16.0 * f64::EPSILON * (memo.summed + memo.hinge);
        [weight * memo.hinge, weight * (memo.value - memo.saturated), weight * error]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Matrix, Targets};
    use proptest::prelude::*;

    fn task(
        targets: Vec<f64>,
        weights: Option<Vec<f64>>,
        loss: Loss,
        pair_weight: PairWeight,
        c: f64,
    ) -> Result<Ranking> {
        let rows = targets.len();
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1)?);
        let mut data = Dataset::new(matrix, Targets::Real(targets.into()))?.with_groups(Groups::one(rows))?;
        if let Some(weights) = weights {
            data = data.with_weights(weights)?;
        }
        Ranking::new(&data, loss, pair_weight, c)
    }

    proptest! {
        #[test]
        fn sweeps_equal_the_sum_over_listed_pairs(
            rows in prop::collection::vec((0..6i32, -30..30i32, 0..4u8, -5.0..5.0f64), 2..60),
            many_levels in any::<bool>(),
            weighted in any::<bool>(),
            pair_weight in prop::sample::select(PairWeight::ALL.to_vec()),
            // `None`, or the width over which the hinge is smoothed.
            rounded in prop::sample::select(vec![None, Some(0.25), Some(1.5)]),
            loss in prop::sample::select(vec![Loss::Hinge, Loss::SquaredHinge]),
            // Scores far from zero or far apart must not lose their differences to rounding.
            offset in prop::sample::select(vec![0.0, 1048576.0, -1073741824.0]),
            stretch in prop::sample::select(vec![1.0, 1024.0]),
        ) {
            let targets: Vec<f64> = rows.iter().enumerate()
                .map(|(i, r)| f64::from(r.0) + if many_levels { (i % 37) as f64 / 50.0 } else { 0.0 }).collect();
            let scores: Vec<f64> = rows.iter().map(|r| offset + stretch * f64::from(r.1 / 7) + f64::from(r.1) / 8.0).collect();
            let weights: Vec<f64> = rows.iter().map(|r| f64::from(r.2) / 2.0).collect();
            let direction: Vec<f64> = rows.iter().flat_map(|r| [r.3, r.3 * r.3 - 1.0]).collect();
            let c = 0.7;
            let Ok(task) = task(targets.clone(), weighted.then(|| weights.clone()), loss, pair_weight, c) else {
                prop_assert!(targets.iter().all(|t| *t == targets[0]));
                return Ok(());
            };
            // Only the hinge has a kink.
            let rounded = rounded.filter(|_| loss == Loss::Hinge);
            let task = rounded.map_or(task.clone(), |delta| task.rounded(delta));
            let n = rows.len();
            let product = |i: usize, j: usize| if weighted { weights[i] * weights[j] } else { 1.0 };
            let listed: Vec<(usize, usize)> =
                (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| targets[i] > targets[j]).collect();
            let total: f64 = listed.iter().map(|&(i, j)| product(i, j)).sum();
            let (mut value, mut slope, mut curved) = (0.0, vec![0.0; n], vec![0.0; 2 * n]);
            let (mut hinge, mut excess, mut cost) = (0.0, 0.0, 0.0);
            for &(i, j) in &listed {
                let u = c * product(i, j) * match pair_weight {
                    PairWeight::Equal => 1.0,
                    PairWeight::PerQuery => if total > 0.0 { 1.0 / total } else { 0.0 },
                    PairWeight::GradeGap => targets[i] - targets[j],
                };
                let v = 1.0 - (scores[i] - scores[j]);
                cost += u;
                if v <= 0.0 {
                    continue;
                }
                hinge += u * v;
                let (loss, first, second) = match (rounded, loss) {
                    (None, Loss::Hinge) => (v, 1.0, 0.0),
                    (None, _) => (v * v, 2.0 * v, 2.0),
                    (Some(delta), _) if v > delta => (v - 0.5 * delta, 1.0, 0.0),
                    (Some(delta), _) => (v * v / (2.0 * delta), v / delta, 1.0 / delta),
                };
                value += u * loss;
                excess += 0.5 * rounded.unwrap_or(0.0) * u * first * first;
                slope[i] -= u * first;
                slope[j] += u * first;
                for m in 0..2 {
                    let d = u * second * (direction[2 * i + m] - direction[2 * j + m]);
                    curved[2 * i + m] += d;
                    curved[2 * j + m] -= d;
                }
            }
            let mut memo = RankingMemo::default();
            let (mut fast_slope, mut fast_curved) = (vec![0.0; n], vec![0.0; 2 * n]);
            let at = Place { part: 0, scores: &scores, thresholds: &[], cancel: &Cancel::new() };
            let slopes = Slopes { scores: &mut fast_slope, thresholds: &mut [] };
            let fast = task.evaluate(&at, slopes, &mut memo).expect("a value");
            let along = Directions { count: 2, scores: &direction, thresholds: &[] };
            let out = Slopes { scores: &mut fast_curved, thresholds: &mut [] };
            task.curvature(&at, &memo, &along, out).expect("curvature");
            prop_assert_eq!(task.pairs(), listed.len() as u64);
            let close = |a: f64, b: f64, scale: f64| (a - b).abs() <= 1e-9 * (1.0 + scale);
            prop_assert!(close(task.total_cost(), cost, cost), "{} {}", task.total_cost(), cost);
            prop_assert!(close(fast, value, hinge.max(value)), "{} {}", fast, value);
            if rounded.is_some() {
                let [fast_hinge, fast_excess, error] = task.rounding(0, &memo);
                prop_assert!(error >= 0.0 && error <= 1e-9 * (1.0 + hinge * stretch * 64.0));
                prop_assert!(close(fast_hinge, hinge, hinge) && close(fast_excess, excess, hinge));
            }
            // Differences of squares lose some digits if violations are large.
            let size = if rounded.is_some() { stretch * stretch } else { 1.0 };
            for (a, b) in fast_slope.iter().zip(&slope).chain(fast_curved.iter().zip(&curved)) {
                prop_assert!(close(*a, *b, size * b.abs()), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn ties_inside_a_group_produce_no_pairs() {
        assert_eq!(
            task(vec![1.0, 1.0, 1.0], None, Loss::Hinge, PairWeight::Equal, 1.0).expect_err("no pairs").code(),
            Code::NoPairs
        );
        assert_eq!(
            task(vec![2.0, 1.0, 1.0, 0.0], None, Loss::Hinge, PairWeight::Equal, 1.0).expect("pairs").pairs(),
            5
        );
    }

    #[test]
    fn a_long_list_of_distinct_targets_forks_and_stays_deterministic() {
        let n = 100_000_i64;
        let targets: Vec<f64> = (0..n).map(|i| ((i * 7919) % n) as f64).collect();
        let scores: Vec<f64> = (0..n).map(|i| ((i * 104_729) % n) as f64 / n as f64 * 5.0).collect();
        let task = task(targets, None, Loss::SquaredHinge, PairWeight::Equal, 1e-9).expect("pairs");
        assert_eq!(task.pairs(), (n * (n - 1) / 2) as u64);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
            let mut slope = vec![0.0; n as usize];
            let at = Place { part: 0, scores: &scores, thresholds: &[], cancel: &Cancel::new() };
            let slopes = Slopes { scores: &mut slope, thresholds: &mut [] };
            let value = pool.install(|| task.evaluate(&at, slopes, &mut RankingMemo::default()).expect("a value"));
            (value, slope)
        };
        assert!(run(1) == run(4));
    }
}
