//! Sums over violated pairs without listing them.
//!
//! The rows of a group are in target order. A recursion splits them at a target boundary near the middle and sorts both
//! halves by score. It then handles the pairs between the halves by going through both in the order of keys: the score
//! for the worse row, score − margin for the better one. A pair is violated if the worse row has the larger key, and
//! the difference of the keys is the violation v. Going down the keys in steps Δ,
//!
//! ```text
//! squares += Δ·(2·sum + Δ·weight)    sum += Δ·weight    weight += weight of a worse row passed
//! ```
//! gives, at each better row, Σ u, Σ u·v and Σ u·v² over the worse rows that violate its margin. Going up gives the
//! same sums for the worse rows. All terms are positive, so nothing cancels, even if the scores are much larger than
//! their differences. Cost: O(n log n) for any number of distinct targets, with a depth of log₂(grades) once the grades
//! are sorted.
//!
//! Which row comes next is unpredictable, so half of all branches would be mispredicted. The loops therefore use
//! selects instead of branches. Going up, going down and merging share one loop, because each waits only for its own
//! last comparison.

use crate::data::row_loops::for_this_machine;
use crate::parallel;
use crate::run::Cancel;
use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// Halves smaller than this are not worth passing to another thread.
pub(super) const FORK: usize = 16 * 1024;

/// A row of a group: its score, and its position in target order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub(super) score: f64,
    pub(super) place: u32,
}

/// Orders by score, and equal scores by position.
pub(super) fn by_score(a: &Item, b: &Item) -> Ordering {
    a.score.total_cmp(&b.score).then(a.place.cmp(&b.place))
}

/// The weights of rows in pairs: the weight of a pair of a better row i and a worse row j is the sum over channels of
/// `better(i) · worse(j)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel<'a> {
    /// u by position; 1 if there are none.
    weights: Option<&'a [f64]>,
    /// y by position minus the lowest target, and the side that it belongs to.
    targets: Option<(&'a [f64], Side)>,
}

/// The side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Better,
    Worse,
}

impl<'a> Channel<'a> {
    /// u_i · u_j
    pub(super) fn product(weights: Option<&'a [f64]>) -> Channel<'a> {
        Channel { weights, targets: None }
    }

    /// (y_i − y_j) · u_i · u_j in two channels, u_i y_i · u_j and −u_i · u_j y_j.
    pub(super) fn target_gap(weights: Option<&'a [f64]>, targets: &'a [f64]) -> [Channel<'a>; 2] {
        [Side::Better, Side::Worse].map(|side| Channel { weights, targets: Some((targets, side)) })
    }

    #[inline(always)]
    fn weight(&self, place: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[place as usize])
    }

    /// The weight of a row as the better one.
    #[inline(always)]
    pub(super) fn better(&self, place: u32) -> f64 {
        match self.targets {
            None => self.weight(place),
            Some((targets, Side::Better)) => self.weight(place) * targets[place as usize],
            Some((_, Side::Worse)) => -self.weight(place),
        }
    }

    /// The weight of a row as the worse one.
    #[inline(always)]
    pub(super) fn worse(&self, place: u32) -> f64 {
        match self.targets {
            Some((targets, Side::Worse)) => self.weight(place) * targets[place as usize],
            _ => self.weight(place),
        }
    }
}

/// Sums over all violated pairs of one margin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Σ weight
    pub(super) weight: f64,
    /// Σ weight·v
    pub(super) sum: f64,
    /// Σ weight·v²
    pub(super) squares: f64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.weight += other.weight;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Subtracts a sum over some of the pairs. The result cannot be negative except by rounding.
    fn subtract(&mut self, other: Totals) {
        // `f64::max` would turn NaN into zero, so that an overflow would look like a perfect fit.
        let left = |whole: f64, part: f64| if whole - part < 0.0 { 0.0 } else { whole - part };
        self.weight = left(self.weight, other.weight);
        self.sum = left(self.sum, other.sum);
        self.squares = left(self.squares, other.squares);
    }
}

/// Sums over the violated pairs of one row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    weight: f64,
    sum: f64,
}

/// The work for each pair of halves.
pub(super) trait Cross: Sync {
    /// Numbers per position.
    fn width(&self) -> usize;
    /// Adds the terms of the violated pairs between `low` (lower targets) and `high` to each of their positions. Both
    /// are sorted by score. Positions count from `base`, where `out` starts. Leaves both, merged, in `merged`.
    /// `windows` is scratch space, one longer than both together.
    fn cross(
        &self,
        base: u32,
        out: &mut [f64],
        halves: Halves<'_>,
        merged: &mut [Item],
        windows: &mut [Window],
    ) -> Totals;
    /// The same for all pairs of a run of at most [`LEAF`] rows at once, in any order within their levels. `None` if
    /// that is not faster.
    fn leaf(&self, levels: &[u32], items: &[Item], out: &mut [f64]) -> Option<Totals>;
    /// Undoes what [`Cross::cross`] adds for the pair of a row with itself, if both halves hold the row. Subtracts it
    /// from `out`, which starts at position 0, and returns it.
    fn take_back(&self, item: &Item, out: &mut [f64]) -> Totals;
}

/// Runs up to this length are handled pair by pair, eight at a time, which is faster than walking and merging them.
const LEAF: usize = 32;
const LANES: usize = 8;

/// Two runs of rows, each sorted by score. No target in the first is above any target in the second.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a> {
    low: &'a [Item],
    high: &'a [Item],
}

/// The split of a run of levels into halves that are as equal as possible.
fn middle(levels: &[u32]) -> usize {
    let (first, last) = (levels[0], levels[levels.len() - 1]);
    let half = first + (last - first) / 2;
    let at = levels.partition_point(|&start| start < half).clamp(1, levels.len() - 2);
    if at > 1 && half - levels[at - 1] < levels[at].saturating_sub(half) { at - 1 } else { at }
}

/// Applies `work` to every pair of halves of `sorted`, whose levels are sorted by score. `out` has two or more numbers
/// per position.
pub(super) fn sweep<W: Cross>(
    work: &W,
    levels: &[u32],
    sorted: &[Item],
    scratch: &mut SweepScratch,
    out: &mut [f64],
    cancel: &Cancel,
) -> Totals {
    let SweepScratch { items, merged, windows } = scratch;
    items.clear();
    items.extend_from_slice(sorted);
    merged.resize(items.len(), Item::default());
    // A run of n items needs n windows and one spare. A run has at least one item, so twice the number of items is
    // enough.
    windows.resize(2 * items.len(), Window::default());
    recurse(work, levels, Buffers { items, scratch: merged, windows, out }, false, cancel)
}

/// Applies `work` to the ordered pairs of two rows of the same level. Each row is once the better and once the worse
/// one. The level is walked against itself. If the margin is above zero, that includes violated pairs of a row with
/// itself, which are subtracted again.
pub(super) fn within_levels<W: Cross>(
    work: &W,
    levels: &[u32],
    sorted: &[Item],
    scratch: &mut SweepScratch,
    out: &mut [f64],
    cancel: &Cancel,
) -> Totals {
    let SweepScratch { merged, windows, .. } = scratch;
    let longest = levels.windows(2).map(|level| (level[1] - level[0]) as usize).max().unwrap_or(0);
    merged.resize(merged.len().max(2 * longest), Item::default());
    windows.resize(windows.len().max(2 * longest + 2), Window::default());
    let mut totals = Totals::default();
    for level in levels.windows(2) {
        let level = &sorted[level[0] as usize..level[1] as usize];
        if level.len() < 2 || cancel.is_abandoned() {
            continue;
        }
        let halves = Halves { low: level, high: level };
        let mut of_level =
            work.cross(0, out, halves, &mut merged[..2 * level.len()], &mut windows[..2 * level.len() + 2]);
        for item in level {
            of_level.subtract(work.take_back(item, out));
        }
        totals.add(of_level);
    }
    totals
}

/// Buffers of a sweep. Their earlier content does not matter.
#[derive(Debug, Default)]
pub(super) struct SweepScratch {
    items: Vec<Item>,
    merged: Vec<Item>,
    windows: Vec<Window>,
}

impl SweepScratch {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Item>() * (self.items.capacity() + self.merged.capacity())
            + size_of::<Window>() * self.windows.capacity()
    }
}

/// The parts of the buffers that belong to a run of positions.
struct Buffers<'b> {
    items: &'b mut [Item],
    scratch: &'b mut [Item],
    windows: &'b mut [Window],
    out: &'b mut [f64],
}

/// Sorts the run by score, into `scratch` or into `items`. It stops early once the job is abandoned.
fn recurse<W: Cross>(work: &W, levels: &[u32], buffers: Buffers<'_>, into_scratch: bool, cancel: &Cancel) -> Totals {
    let Buffers { items, scratch, windows, out } = buffers;
    if cancel.is_abandoned() {
        return Totals::default();
    }
    if levels.len() <= 2 {
        if into_scratch {
            scratch.copy_from_slice(items);
        }
        return Totals::default();
    }
    if items.len() <= LEAF
        && let Some(totals) = work.leaf(levels, items, out)
    {
        let sorted = if into_scratch {
            scratch.copy_from_slice(items);
            scratch
        } else {
            items
        };
        sorted.sort_unstable_by(by_score);
        return totals;
    }
    let at = middle(levels);
    let cut = (levels[at] - levels[0]) as usize;
    let (low_items, high_items) = items.split_at_mut(cut);
    let (low_scratch, high_scratch) = scratch.split_at_mut(cut);
    let (low_windows, high_windows) = windows.split_at_mut(2 * cut);
    let (low_out, high_out) = out.split_at_mut(cut * work.width());
    let fork = cut.min(high_items.len()) >= FORK;
    let low = Buffers { items: low_items, scratch: low_scratch, windows: low_windows, out: low_out };
    let high = Buffers { items: high_items, scratch: high_scratch, windows: high_windows, out: high_out };
    let below = || recurse(work, &levels[..=at], low, !into_scratch, cancel);
    let above = || recurse(work, &levels[at..], high, !into_scratch, cancel);
    let (below, above) = if fork { parallel::join(below, above) } else { (below(), above()) };
    if cancel.is_abandoned() {
        return Totals::default();
    }
    let (sorted, merged) = if into_scratch { (items, scratch) } else { (scratch, items) };
    let (low, high) = sorted.split_at(cut);
    let mut totals = work.cross(levels[0], out, Halves { low, high }, merged, windows);
    totals.add(below);
    totals.add(above);
    totals
}

/// Whether the key of a worse row is at most that of a better row, so that the pair is not violated.
#[inline(always)]
fn worse_first(worse: f64, better: f64, margin: f64) -> bool {
    worse <= better - margin
}

/// Goes up and down the keys of both halves and merges them, see the module documentation. `better` and `worse` give
/// the weight of a position on each side. `up` receives the window of each worse row, `down` that of each better row;
/// each has one spare element.
#[inline(always)]
fn walk_plainly<B: Fn(u32) -> f64, W: Fn(u32) -> f64>(
    halves: Halves<'_>,
    margin: f64,
    better: B,
    worse: W,
    up: &mut [Window],
    down: &mut [Window],
    merged: &mut [Item],
) -> Totals {
    let Halves { low, high } = halves;
    let (last_low, last_high) = (low.len() - 1, high.len() - 1);
    let (up, down) = (&mut up[..low.len() + 1], &mut down[..high.len() + 1]);
    // Keys are relative to the first one, so that the first step is zero.
    let (mut up_low, mut up_high, mut rising) = (0, 0, Window::default());
    let mut up_key = low[0].score.min(high[0].score - margin);
    let (mut down_low, mut down_high, mut falling) = (low.len(), high.len(), Window::default());
    let mut down_key = low[last_low].score.max(high[last_high].score - margin);
    let mut squares = 0.0;
    let mut totals = Totals::default();
    let (mut a, mut b) = (0, 0);
    for slot in merged.iter_mut() {
        // Going up: a better row enters the window; a worse row stores the window.
        let (of_low, of_high) = (&low[up_low.min(last_low)], &high[up_high.min(last_high)]);
        let takes_worse =
            (up_high > last_high) | ((up_low <= last_low) & worse_first(of_low.score, of_high.score, margin));
        let key = select_unpredictable(takes_worse, of_low.score, of_high.score - margin);
        rising.sum += (key - up_key) * rising.weight;
        up_key = key;
        // It is written at every step, and the value is final when the row is passed.
        up[up_low] = rising;
        rising.weight += select_unpredictable(takes_worse, 0.0, better(of_high.place));
        up_low += usize::from(takes_worse);
        up_high += usize::from(!takes_worse);

        // Going down: a worse row enters the window; a better row stores the window.
        let (of_low, of_high) = (&low[down_low.max(1) - 1], &high[down_high.max(1) - 1]);
        let takes_better = (down_low == 0) | ((down_high > 0) & worse_first(of_low.score, of_high.score, margin));
        let key = select_unpredictable(takes_better, of_high.score - margin, of_low.score);
        let step = down_key - key;
        down_key = key;
        squares += step * (2.0 * falling.sum + step * falling.weight);
        falling.sum += step * falling.weight;
        down[down_high] = falling;
        let own = select_unpredictable(takes_better, better(of_high.place), 0.0);
        totals.weight += own * falling.weight;
        totals.sum += own * falling.sum;
        totals.squares += own * squares;
        falling.weight += select_unpredictable(takes_better, 0.0, worse(of_low.place));
        down_low -= usize::from(!takes_better);
        down_high -= usize::from(takes_better);

        // Merge by score.
        let (of_low, of_high) = (&low[a.min(last_low)], &high[b.min(last_high)]);
        let takes_low = (b > last_high) | ((a <= last_low) & (of_low.score <= of_high.score));
        *slot = *select_unpredictable(takes_low, of_low, of_high);
        a += usize::from(takes_low);
        b += usize::from(!takes_low);
    }
    totals
}

for_this_machine! {
    /// See [`walk_plainly`].
    fn walk[B: Fn(u32) -> f64, W: Fn(u32) -> f64](
        halves: Halves<'_>,
        margin: f64,
        better: B,
        worse: W,
        up: &mut [Window],
        down: &mut [Window],
        merged: &mut [Item],
    ) -> Totals = walk_plainly
}

/// A short run, pair by pair: the scores and weights of each row on either side, and the resulting windows.
struct Leaf {
    scores: [f64; LEAF],
    better: [f64; LEAF],
    worse: [f64; LEAF],
    /// The sums of each row as the worse one, and as the better one.
    up_weight: [f64; LEAF],
    up_sum: [f64; LEAF],
    down_weight: [f64; LEAF],
    down_sum: [f64; LEAF],
}

impl Leaf {
    fn new(items: &[Item], better: impl Fn(u32) -> f64, worse: impl Fn(u32) -> f64) -> Leaf {
        let none = [0.0; LEAF];
        let mut leaf = Leaf {
            scores: none,
            better: none,
            worse: none,
            up_weight: none,
            up_sum: none,
            down_weight: none,
            down_sum: none,
        };
        for (at, item) in items.iter().enumerate() {
            leaf.scores[at] = item.score;
            leaf.better[at] = better(item.place);
            leaf.worse[at] = worse(item.place);
        }
        leaf
    }
}

#[inline(always)]
fn fill_plainly(leaf: &mut Leaf, levels: &[u32], margin: f64) -> Totals {
    let Leaf { scores, better, worse, up_weight, up_sum, down_weight, down_sum } = leaf;
    let first = levels[0];
    let mut totals = Totals::default();
    for level in levels.windows(2).skip(1) {
        let worse_rows = (level[0] - first) as usize;
        let runs = worse_rows / LANES;
        for at in worse_rows..(level[1] - first) as usize {
            let (key, own) = (scores[at] - margin, better[at]);
            let (mut weight, mut sum, mut squares) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            // One pair. NaN counts as violated, so that it stays visible.
            let mut pair = |lane: usize, score: f64, partner: f64, up_weight: &mut f64, up_sum: &mut f64| {
                let v = score - key;
                let violated = if v <= 0.0 { 0.0 } else { 1.0 };
                let violation = if v <= 0.0 { 0.0 } else { v };
                let scaled = partner * violation;
                weight[lane] += partner * violated;
                sum[lane] += scaled;
                squares[lane] += scaled * violation;
                *up_weight += own * violated;
                *up_sum += own * violation;
            };
            let lower = scores.as_chunks::<LANES>().0[..runs].iter().zip(worse.as_chunks::<LANES>().0);
            let windows = up_weight.as_chunks_mut::<LANES>().0.iter_mut().zip(up_sum.as_chunks_mut::<LANES>().0);
            for ((scores, partners), (up_weight, up_sum)) in lower.zip(windows) {
                for lane in 0..LANES {
                    pair(lane, scores[lane], partners[lane], &mut up_weight[lane], &mut up_sum[lane]);
                }
            }
            for row in runs * LANES..worse_rows {
                pair(0, scores[row], worse[row], &mut up_weight[row], &mut up_sum[row]);
            }
            down_weight[at] = weight.iter().sum();
            down_sum[at] = sum.iter().sum();
            totals.weight += own * down_weight[at];
            totals.sum += own * down_sum[at];
            totals.squares += own * squares.iter().sum::<f64>();
        }
    }
    totals
}

for_this_machine! {
    /// Fills the windows of a leaf.
    fn fill[](leaf: &mut Leaf, levels: &[u32], margin: f64) -> Totals = fill_plainly
}

/// How Σ weight is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Over all pairs of a position.
    Plain,
    /// With a negative sign for pairs in which the row is the better one.
    Signed,
    /// Both, one after the other.
    Both,
}

/// Sums of violations of one margin: for each position Σ weight·v, negative for better rows, and Σ weight.
pub(super) struct Violations<'c> {
    pub(super) margin: f64,
    pub(super) counts: Counts,
    pub(super) channels: &'c [Channel<'c>],
}

impl Cross for Violations<'_> {
    #[inline(always)]
    fn width(&self) -> usize {
        if self.counts == Counts::Both { 3 } else { 2 }
    }

    fn cross(
        &self,
        base: u32,
        out: &mut [f64],
        halves: Halves<'_>,
        merged: &mut [Item],
        windows: &mut [Window],
    ) -> Totals {
        let Halves { low, high } = halves;
        let (up, down) = windows.split_at_mut(low.len() + 1);
        let mut totals = Totals::default();
        for channel in self.channels {
            let alike = channel.weights.is_none() && channel.targets.is_none();
            totals.add(if alike {
                walk(halves, self.margin, |_| 1.0, |_| 1.0, up, down, merged)
            } else {
                walk(halves, self.margin, |i| channel.better(i), |j| channel.worse(j), up, down, merged)
            });
            let width = self.width();
            let mut put = |item: &Item, own: f64, sign: f64, window: &Window| {
                let slot = &mut out[width * (item.place - base) as usize..][..width];
                slot[0] += sign * own * window.sum;
                slot[1] += (if self.counts == Counts::Signed { sign } else { 1.0 }) * own * window.weight;
                if let Some(signed) = slot.get_mut(2) {
                    *signed += sign * own * window.weight;
                }
            };
            low.iter().zip(&*up).for_each(|(item, window)| put(item, channel.worse(item.place), 1.0, window));
            // The window of the better row at k was written when k + 1 rows were left.
            high.iter().zip(&down[1..]).for_each(|(item, window)| put(item, channel.better(item.place), -1.0, window));
        }
        totals
    }

    fn leaf(&self, levels: &[u32], items: &[Item], out: &mut [f64]) -> Option<Totals> {
        let mut totals = Totals::default();
        for channel in self.channels {
            let mut leaf = Leaf::new(items, |i| channel.better(i), |j| channel.worse(j));
            totals.add(fill(&mut leaf, levels, self.margin));
            let sign = if self.counts == Counts::Signed { -1.0 } else { 1.0 };
            let width = self.width();
            for (at, item) in items.iter().enumerate() {
                let slot = &mut out[width * (item.place - levels[0]) as usize..][..width];
                let (above, below) = (leaf.worse[at] * leaf.up_weight[at], leaf.better[at] * leaf.down_weight[at]);
                slot[0] += leaf.worse[at] * leaf.up_sum[at] - leaf.better[at] * leaf.down_sum[at];
                slot[1] += above + sign * below;
                if let Some(signed) = slot.get_mut(2) {
                    *signed += above - below;
                }
            }
        }
        Some(totals)
    }

    fn take_back(&self, item: &Item, out: &mut [f64]) -> Totals {
        let mut totals = Totals::default();
        if worse_first(item.score, item.score, self.margin) {
            return totals;
        }
        let violation = item.score - (item.score - self.margin);
        for channel in self.channels {
            let weight = channel.better(item.place) * channel.worse(item.place);
            // The pair of a row with itself does not depend on its score: both sides cancelled, in the sums and in
            // signed counts.
            if self.counts != Counts::Signed {
                out[self.width() * item.place as usize + 1] -= 2.0 * weight;
            }
            totals.add(Totals { weight, sum: weight * violation, squares: weight * violation * violation });
        }
        totals
    }
}

/// The weighted sums of the violating partners' directions, times the row's own weight: `m` numbers per position.
pub(super) struct PartnerSums<'a> {
    pub(super) margin: f64,
    pub(super) channels: &'a [Channel<'a>],
    pub(super) m: usize,
    /// In order of position, `m` per row.
    pub(super) directions: &'a [f64],
}

impl PartnerSums<'_> {
    /// One direction: the windows of the walk with weights times directions.
    fn cross_one(
        &self,
        base: u32,
        out: &mut [f64],
        halves: Halves<'_>,
        channel: &Channel<'_>,
        merged: &mut [Item],
        windows: &mut [Window],
    ) {
        let (up, down) = windows.split_at_mut(halves.low.len() + 1);
        let d = |place: u32| self.directions[place as usize];
        walk(halves, self.margin, |i| channel.better(i) * d(i), |j| channel.worse(j) * d(j), up, down, merged);
        for (item, window) in halves.low.iter().zip(&*up) {
            out[(item.place - base) as usize] += channel.worse(item.place) * window.weight;
        }
        for (item, window) in halves.high.iter().zip(&down[1..]) {
            out[(item.place - base) as usize] += channel.better(item.place) * window.weight;
        }
    }
}

/// Several directions: the loop keeps their sums in a row, to which partners are added as they come within the margin.
#[inline(always)]
fn cross_many_plainly(
    work: &PartnerSums<'_>,
    base: u32,
    out: &mut [f64],
    halves: Halves<'_>,
    channel: &Channel<'_>,
    sum: &mut [f64],
) {
    let Halves { low, high } = halves;
    let m = work.m;
    let add = |sum: &mut [f64], weight: f64, partner: &Item| {
        let direction = &work.directions[m * partner.place as usize..][..m];
        sum.iter_mut().zip(direction).for_each(|(sum, d)| *sum += weight * d);
    };
    let mut put = |item: &Item, own: f64, sum: &[f64]| {
        let slot = &mut out[m * (item.place - base) as usize..][..m];
        slot.iter_mut().zip(sum).for_each(|(slot, sum)| *slot += own * sum);
    };
    let violated = |worse: &Item, better: &Item| !worse_first(worse.score, better.score, work.margin);
    sum.fill(0.0);
    let mut b = 0;
    for worse in low {
        while b < high.len() && violated(worse, &high[b]) {
            add(sum, channel.better(high[b].place), &high[b]);
            b += 1;
        }
        if b > 0 {
            put(worse, channel.worse(worse.place), sum);
        }
    }
    sum.fill(0.0);
    let mut a = low.len();
    for better in high.iter().rev() {
        while a > 0 && violated(&low[a - 1], better) {
            a -= 1;
            add(sum, channel.worse(low[a].place), &low[a]);
        }
        if a < low.len() {
            put(better, channel.better(better.place), sum);
        }
    }
}

for_this_machine! {
    /// See [`cross_many_plainly`].
    fn cross_many[](
        work: &PartnerSums<'_>,
        base: u32,
        out: &mut [f64],
        halves: Halves<'_>,
        channel: &Channel<'_>,
        sum: &mut [f64],
    ) -> () = cross_many_plainly
}

impl Cross for PartnerSums<'_> {
    fn width(&self) -> usize {
        self.m
    }

    fn cross(
        &self,
        base: u32,
        out: &mut [f64],
        halves: Halves<'_>,
        merged: &mut [Item],
        windows: &mut [Window],
    ) -> Totals {
        let mut sum = vec![0.0; if self.m == 1 { 0 } else { self.m }];
        for channel in self.channels {
            if self.m == 1 {
                self.cross_one(base, out, halves, channel, merged, windows);
            } else {
                cross_many(self, base, out, halves, channel, &mut sum);
            }
        }
        if self.m > 1 {
            merge(halves, merged);
        }
        Totals::default()
    }

    fn leaf(&self, levels: &[u32], items: &[Item], out: &mut [f64]) -> Option<Totals> {
        if self.m > 1 {
            return None;
        }
        let d = |place: u32| self.directions[place as usize];
        for channel in self.channels {
            let mut leaf = Leaf::new(items, |i| channel.better(i) * d(i), |j| channel.worse(j) * d(j));
            fill(&mut leaf, levels, self.margin);
            for (at, item) in items.iter().enumerate() {
                let slot = &mut out[(item.place - levels[0]) as usize];
                *slot +=
                    channel.worse(item.place) * leaf.up_weight[at] + channel.better(item.place) * leaf.down_weight[at];
            }
        }
        Some(Totals::default())
    }

    fn take_back(&self, item: &Item, out: &mut [f64]) -> Totals {
        if worse_first(item.score, item.score, self.margin) {
            return Totals::default();
        }
        let place = item.place as usize;
        for channel in self.channels {
            let weight = 2.0 * channel.better(item.place) * channel.worse(item.place);
            let own = self.directions[self.m * place..][..self.m].iter();
            out[self.m * place..][..self.m].iter_mut().zip(own).for_each(|(out, d)| *out -= weight * d);
        }
        Totals::default()
    }
}

/// Merges two runs by score.
fn merge(halves: Halves<'_>, merged: &mut [Item]) {
    let Halves { low, high } = halves;
    let (mut a, mut b) = (0, 0);
    for slot in merged {
        let takes_low = b == high.len() || (a < low.len() && low[a].score <= high[b].score);
        *slot = if takes_low { low[a] } else { high[b] };
        a += usize::from(takes_low);
        b += usize::from(!takes_low);
    }
}
