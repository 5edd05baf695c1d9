//! Ranking within groups.
//!
//! ```text
//! min  ½‖w‖² + C · Σ_groups Σ_{i,j in group, y_i > y_j} u_i u_j · max(0, 1 − (s_i − s_j))²,   s = Xw
//! ```
//! over **all** ordered pairs, which are never listed. u are row weights: a row of weight 2 counts as two copies.
//!
//! A group is one part. Its rows are kept in target order; a recursion splits them at a target boundary near the middle,
//! lets both halves come back sorted by score, and counts the violated pairs between the halves by two linear sweeps
//! before merging them. Cost of a value and gradient: O(n log n) for any number of distinct targets, with a depth of
//! log₂(grades) once the grades are sorted. Curvature repeats the sweeps with vectors in place of scores.
//!
//! References: Joachims, Optimizing search engines using clickthrough data, KDD 2002 (the objective); Lee & Lin,
//! Large-scale linear RankSVM, Neural Computation 26 (2014) (counting instead of listing). The recursion over target
//! order is ours.

use super::{Curvature, Objective};
use crate::data::{Dataset, Subset, counts};
use crate::error::{Code, Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Halves smaller than this are not worth handing to another thread.
const FORK: usize = 16 * 1024;

/// The task: which rows to compare, and how much each pair counts.
#[derive(Clone, Debug)]
pub struct Ranking {
    groups: Vec<GroupPlan>,
    weights: Option<Vec<f64>>,
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
    /// Where each distinct target starts in `by_target`, and the number of rows at the end.
    levels: Vec<u32>,
}

impl Ranking {
    /// A task over all pairs of rows of one group whose targets differ.
    pub fn new(data: &Dataset, c: f64) -> Result<Ranking> {
        Ranking::on(data, c, None)
    }

    /// The same over some of the groups: those whose rows are in the subset.
    pub fn on(data: &Dataset, c: f64, subset: Option<&Subset>) -> Result<Ranking> {
        let targets = data.targets().real()?;
        let groups = data.groups().ok_or_else(|| {
            Error::new(Code::NoGroups, "ranking compares rows of the same query, and the rows have no query ids").help(
                "add qid:ID to the rows, name the column with --group, or rank all rows as one list with --one-group",
            )
        })?;
        if let Some(range) = groups.ranges().find(|range| range.len() > u32::MAX as usize) {
            return Err(Error::new(Code::BadSetting, format!("a query of {} rows is too long", range.len())));
        }
        let seen: Vec<Range<usize>> = groups.ranges().filter(|range| counts(subset, range.start)).collect();
        let plans: Vec<Option<GroupPlan>> = seen.into_par_iter().map(|range| plan(range, targets)).collect();
        let single_grade = plans.iter().filter(|plan| plan.is_none()).count();
        let groups: Vec<GroupPlan> = plans.into_iter().flatten().collect();
        let pairs = groups.iter().map(GroupPlan::pairs).sum();
        if pairs == 0 {
            return Err(Error::new(
                Code::NoPairs,
                "no query has two rows with different targets, so there is nothing to rank",
            )
            .help("check that the targets are grades and that the query ids group several rows"));
        }
        Ok(Ranking { groups, weights: data.weights().map(<[f64]>::to_vec), c, pairs, single_grade })
    }

    /// The same task with another weight of the loss.
    pub fn with_cost(self, c: f64) -> Ranking {
        Ranking { c, ..self }
    }

    /// Sets another weight of the loss.
    pub(crate) fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    /// Number of ordered pairs.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The total weight of the loss: C times the sum over pairs of the product of their weights.
    pub fn total_cost(&self) -> f64 {
        let Some(weights) = &self.weights else { return self.c * self.pairs as f64 };
        let group_total = |plan: &GroupPlan| {
            let (mut below, mut total) = (0.0, 0.0);
            for level in plan.levels.windows(2) {
                let level: f64 = plan.by_target[level[0] as usize..level[1] as usize]
                    .iter()
                    .map(|&row| weights[plan.rows.start + row as usize])
                    .sum();
                total += below * level;
                below += level;
            }
            total
        };
        self.c * self.groups.iter().map(group_total).sum::<f64>()
    }

    /// Number of groups without a pair, which are ignored.
    pub fn single_grade_groups(&self) -> usize {
        self.single_grade
    }
}

fn plan(rows: Range<usize>, targets: &[f64]) -> Option<GroupPlan> {
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
    (levels.len() > 2).then_some(GroupPlan { rows, by_target, levels })
}

impl GroupPlan {
    fn pairs(&self) -> u64 {
        self.levels.windows(2).map(|level| u64::from(level[0]) * u64::from(level[1] - level[0])).sum()
    }
}

/// A row of a group: its score, its weight, and its place in target order.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    score: f64,
    weight: f64,
    place: u32,
}

/// What a group keeps from its last evaluation.
#[derive(Debug, Default)]
pub struct RankingMemo {
    /// The items of each level sorted by score.
    sorted: Vec<Item>,
    /// For each place, the total weight of the partners whose margin it violates.
    partners: Vec<f64>,
}

/// By how much the margin between a better and a worse score is missed.
#[inline(always)]
fn violation(better: f64, worse: f64) -> f64 {
    1.0 - (better - worse)
}

/// Whether it is missed. One expression for all sweeps: it is monotone in both scores after rounding too, so that counts,
/// sums and curvature agree on every pair.
#[inline(always)]
fn violated(better: f64, worse: f64) -> bool {
    violation(better, worse) > 0.0
}

/// The split of a run of levels that leaves halves as equal as can be.
fn middle(levels: &[u32]) -> usize {
    let (first, last) = (levels[0], levels[levels.len() - 1]);
    let half = first + (last - first) / 2;
    let at = levels.partition_point(|&start| start < half).clamp(1, levels.len() - 2);
    if at > 1 && half - levels[at - 1] < levels[at].saturating_sub(half) { at - 1 } else { at }
}

/// Merges two runs sorted by score, which lie one after the other in `items`, through `scratch`.
fn merge(items: &mut [Item], middle: usize, scratch: &mut [Item]) {
    let (mut a, mut b) = (0, middle);
    for slot in scratch.iter_mut() {
        let take_a = b == items.len() || (a < middle && items[a].score <= items[b].score);
        *slot = items[if take_a { a } else { b }];
        a += usize::from(take_a);
        b += usize::from(!take_a);
    }
    items.copy_from_slice(scratch);
}

/// What is done with each pair of halves.
trait Cross: Sync {
    /// Numbers kept for each place.
    fn width(&self) -> usize;
    /// Adds what the violated pairs between `low` (lower targets) and `high` give to each of their places; both are
    /// sorted by score. Places count from `base`, where `out` starts. Returns the value of these pairs.
    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item]) -> f64;
}

/// Applies `work` to every pair of halves and leaves `items` sorted by score. Returns the sum of the values.
fn recurse<W: Cross>(work: &W, levels: &[u32], items: &mut [Item], scratch: &mut [Item], out: &mut [f64]) -> f64 {
    if levels.len() <= 2 {
        return 0.0;
    }
    let at = middle(levels);
    let cut = (levels[at] - levels[0]) as usize;
    let (low_levels, high_levels) = (&levels[..=at], &levels[at..]);
    let (low, high) = items.split_at_mut(cut);
    let (low_scratch, high_scratch) = scratch.split_at_mut(cut);
    let (low_out, high_out) = out.split_at_mut(cut * work.width());
    let fork = low.len().min(high.len()) >= FORK;
    let mut below = || recurse(work, low_levels, low, low_scratch, low_out);
    let mut above = || recurse(work, high_levels, high, high_scratch, high_out);
    let (below, above) = if fork { rayon::join(below, above) } else { (below(), above()) };
    let (low, high) = items.split_at(cut);
    let across = work.cross(levels[0], out, low, high);
    merge(items, cut, scratch);
    below + above + across
}

/// Value, slope and total partner weight: two numbers a place.
struct ValueAndSlope;

impl Cross for ValueAndSlope {
    fn width(&self) -> usize {
        2
    }

    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item]) -> f64 {
        let mut value = 0.0;
        // From the top: the lower a better row stands, the more worse rows come within its margin.
        let mut window = Window::default();
        let mut next = low.len();
        let mut previous = f64::NAN;
        for better in high.iter().rev() {
            window.grow(previous - better.score);
            previous = better.score;
            while next > 0 && violated(better.score, low[next - 1].score) {
                next -= 1;
                window.add(low[next].weight, violation(better.score, low[next].score));
            }
            value += better.weight * window.squares;
            let slot = &mut out[2 * (better.place - base) as usize..][..2];
            slot[0] -= 2.0 * better.weight * window.sum;
            slot[1] += window.weight;
        }
        // From the bottom: the higher a worse row stands, the more better rows it comes too close to.
        let mut window = Window::default();
        let mut next = 0;
        let mut previous = f64::NAN;
        for worse in low {
            window.grow(worse.score - previous);
            previous = worse.score;
            while next < high.len() && violated(high[next].score, worse.score) {
                window.add(high[next].weight, violation(high[next].score, worse.score));
                next += 1;
            }
            let slot = &mut out[2 * (worse.place - base) as usize..][..2];
            slot[0] += 2.0 * worse.weight * window.sum;
            slot[1] += window.weight;
        }
        value
    }
}

/// Sums over the violations of the pairs that one row is in. All terms are positive, so that nothing cancels however
/// large the scores are beside their differences.
#[derive(Default)]
struct Window {
    /// Σ u
    weight: f64,
    /// Σ u·v
    sum: f64,
    /// Σ u·v²
    squares: f64,
}

impl Window {
    /// Adds a pair.
    #[inline(always)]
    fn add(&mut self, weight: f64, violation: f64) {
        self.weight += weight;
        self.sum += weight * violation;
        self.squares += weight * violation * violation;
    }

    /// Moves on to a row whose pairs are all violated by `more`; nothing is in the window before the first row.
    #[inline(always)]
    fn grow(&mut self, more: f64) {
        if self.weight > 0.0 {
            self.squares += more * (2.0 * self.sum + more * self.weight);
            self.sum += more * self.weight;
        }
    }
}

/// The weighted sum of the partners' directions for each place: `m` numbers a place.
struct PartnerSums<'a> {
    m: usize,
    /// In place order, `m` a row.
    directions: &'a [f64],
}

impl PartnerSums<'_> {
    fn sweep<'i>(
        &self,
        base: u32,
        out: &mut [f64],
        items: impl Iterator<Item = &'i Item>,
        mut partners: std::iter::Peekable<impl Iterator<Item = &'i Item>>,
        violated: impl Fn(&Item, &Item) -> bool,
    ) {
        let mut sum = vec![0.0; self.m];
        for item in items {
            while let Some(partner) = partners.next_if(|partner| violated(item, partner)) {
                let direction = &self.directions[self.m * partner.place as usize..][..self.m];
                sum.iter_mut().zip(direction).for_each(|(sum, d)| *sum += partner.weight * d);
            }
            let slot = &mut out[self.m * (item.place - base) as usize..][..self.m];
            slot.iter_mut().zip(&sum).for_each(|(slot, sum)| *slot += sum);
        }
    }
}

impl Cross for PartnerSums<'_> {
    fn width(&self) -> usize {
        self.m
    }

    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item]) -> f64 {
        self.sweep(base, out, high.iter().rev(), low.iter().rev().peekable(), |better, worse| {
            violated(better.score, worse.score)
        });
        self.sweep(base, out, low.iter(), high.iter().peekable(), |worse, better| violated(better.score, worse.score));
        0.0
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

    fn evaluate(
        &self,
        part: usize,
        scores: &[f64],
        _thresholds: &[f64],
        slope: &mut [f64],
        _threshold_slope: &mut [f64],
        memo: &mut RankingMemo,
    ) -> f64 {
        let plan = &self.groups[part];
        memo.sorted.clear();
        memo.sorted.extend(plan.by_target.iter().enumerate().map(|(place, &row)| Item {
            score: scores[row as usize],
            weight: self.weights.as_ref().map_or(1.0, |weights| weights[plan.rows.start + row as usize]),
            place: place as u32,
        }));
        for level in plan.levels.windows(2) {
            let level = &mut memo.sorted[level[0] as usize..level[1] as usize];
            let order = |a: &Item, b: &Item| a.score.total_cmp(&b.score).then(a.place.cmp(&b.place));
            if level.len() >= FORK { level.par_sort_unstable_by(order) } else { level.sort_unstable_by(order) }
        }
        let mut items = memo.sorted.clone();
        let mut scratch = vec![Item::default(); items.len()];
        let mut out = vec![0.0; 2 * items.len()];
        let value = recurse(&ValueAndSlope, &plan.levels, &mut items, &mut scratch, &mut out);
        memo.partners.clear();
        for (&row, out) in plan.by_target.iter().zip(out.chunks_exact(2)) {
            slope[row as usize] = self.c * out[0];
            memo.partners.push(out[1]);
        }
        self.c * value
    }
}

impl Curvature for Ranking {
    fn curvature(
        &self,
        part: usize,
        memo: &RankingMemo,
        m: usize,
        directions: &[f64],
        _threshold_directions: &[f64],
        out: &mut [f64],
        _threshold_out: &mut [f64],
    ) {
        let plan = &self.groups[part];
        let mut placed = vec![0.0; directions.len()];
        for (placed, &row) in placed.chunks_exact_mut(m).zip(&plan.by_target) {
            placed.copy_from_slice(&directions[m * row as usize..][..m]);
        }
        let mut items = memo.sorted.clone();
        let mut scratch = vec![Item::default(); items.len()];
        let mut sums = vec![0.0; directions.len()];
        let work = PartnerSums { m, directions: &placed };
        recurse(&work, &plan.levels, &mut items, &mut scratch, &mut sums);
        for item in &memo.sorted {
            let place = item.place as usize;
            let row = plan.by_target[place] as usize;
            let (weight, partners) = (2.0 * self.c * item.weight, memo.partners[place]);
            for ((out, direction), sum) in
                out[m * row..][..m].iter_mut().zip(&placed[m * place..][..m]).zip(&sums[m * place..][..m])
            {
                *out = weight * (partners * direction - sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Groups, Matrix, Targets};
    use proptest::prelude::*;

    fn task(targets: Vec<f64>, weights: Option<Vec<f64>>, c: f64) -> Result<Ranking> {
        let rows = targets.len();
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1)?);
        let mut data = Dataset::new(matrix, Targets::Real(targets.into()))?.with_groups(Groups::one(rows))?;
        if let Some(weights) = weights {
            data = data.with_weights(weights)?;
        }
        Ranking::new(&data, c)
    }

    proptest! {
        #[test]
        fn sweeps_equal_the_sum_over_listed_pairs(
            rows in prop::collection::vec((0..6i32, -30..30i32, 0..4u8, -5.0..5.0f64), 2..60),
            many_levels in any::<bool>(),
            weighted in any::<bool>(),
            // Scores far from zero, and far apart, must not swallow their differences.
            offset in prop::sample::select(vec![0.0, 1048576.0, -1073741824.0]),
            stretch in prop::sample::select(vec![1.0, 1024.0]),
        ) {
            let targets: Vec<f64> = rows.iter().enumerate()
                .map(|(i, r)| f64::from(r.0) + if many_levels { (i % 37) as f64 / 50.0 } else { 0.0 }).collect();
            let scores: Vec<f64> = rows.iter().map(|r| offset + stretch * f64::from(r.1 / 7) + f64::from(r.1) / 8.0).collect();
            let weights: Vec<f64> = rows.iter().map(|r| f64::from(r.2) / 2.0).collect();
            let direction: Vec<f64> = rows.iter().flat_map(|r| [r.3, r.3 * r.3 - 1.0]).collect();
            let c = 0.7;
            let Ok(task) = task(targets.clone(), weighted.then(|| weights.clone()), c) else {
                prop_assert!(targets.iter().all(|t| *t == targets[0]));
                return Ok(());
            };
            let n = rows.len();
            let (mut value, mut slope, mut curved, mut pairs) = (0.0, vec![0.0; n], vec![0.0; 2 * n], 0u64);
            for i in 0..n {
                for j in 0..n {
                    if targets[i] > targets[j] {
                        pairs += 1;
                        let u = c * if weighted { weights[i] * weights[j] } else { 1.0 };
                        let violation = 1.0 - (scores[i] - scores[j]);
                        if violation > 0.0 {
                            value += u * violation * violation;
                            slope[i] -= 2.0 * u * violation;
                            slope[j] += 2.0 * u * violation;
                            for m in 0..2 {
                                let d = 2.0 * u * (direction[2 * i + m] - direction[2 * j + m]);
                                curved[2 * i + m] += d;
                                curved[2 * j + m] -= d;
                            }
                        }
                    }
                }
            }
            let mut memo = RankingMemo::default();
            let (mut fast_slope, mut fast_curved) = (vec![0.0; n], vec![0.0; 2 * n]);
            let fast = task.evaluate(0, &scores, &[], &mut fast_slope, &mut [], &mut memo);
            task.curvature(0, &memo, 2, &direction, &[], &mut fast_curved, &mut []);
            prop_assert_eq!(task.pairs(), pairs);
            prop_assert!((fast - value).abs() <= 1e-9 * (1.0 + value));
            for (a, b) in fast_slope.iter().zip(&slope).chain(fast_curved.iter().zip(&curved)) {
                prop_assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn ties_inside_a_group_produce_no_pairs() {
        assert_eq!(task(vec![1.0, 1.0, 1.0], None, 1.0).expect_err("no pairs").code(), Code::NoPairs);
        assert_eq!(task(vec![2.0, 1.0, 1.0, 0.0], None, 1.0).expect("pairs").pairs(), 5);
    }

    #[test]
    fn a_long_list_of_distinct_targets_forks_and_stays_deterministic() {
        let n = 100_000_i64;
        let targets: Vec<f64> = (0..n).map(|i| ((i * 7919) % n) as f64).collect();
        let scores: Vec<f64> = (0..n).map(|i| ((i * 104_729) % n) as f64 / n as f64 * 5.0).collect();
        let task = task(targets, None, 1e-9).expect("pairs");
        assert_eq!(task.pairs(), (n * (n - 1) / 2) as u64);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
            let mut slope = vec![0.0; n as usize];
            let value =
                pool.install(|| task.evaluate(0, &scores, &[], &mut slope, &mut [], &mut RankingMemo::default()));
            (value, slope)
        };
        assert!(run(1) == run(4));
    }
}
