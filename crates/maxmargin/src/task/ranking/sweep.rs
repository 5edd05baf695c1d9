//! Sums over violated pairs without listing them.
//!
//! The rows of a group stand in target order. A recursion splits them at a target boundary near the middle, lets both
//! halves come back sorted by score, and handles the pairs between the halves by walking both in the order of keys:
//! score for the worse row, score − margin for the better one. A pair is violated where the worse row's key is the larger,
//! and the difference of the keys is the violation v. Walking down the keys by steps Δ,
//!
//! ```text
//! squares += Δ·(2·sum + Δ·weight)    sum += Δ·weight    weight += weight of a worse row passed
//! ```
//! give, at each better row, Σ u, Σ u·v and Σ u·v² over the worse rows that violate its margin; walking up gives the
//! worse rows theirs. All terms are positive: nothing cancels however large the scores are beside their differences.
//! Cost: O(n log n) for any number of distinct targets, with a depth of log₂(grades) once the grades are sorted.

/// Halves smaller than this are not worth handing to another thread.
pub(super) const FORK: usize = 16 * 1024;

/// A row of a group: its score, its weight, its target above the lowest of the group, and its place in target order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub(super) score: f64,
    pub(super) weight: f64,
    pub(super) target: f64,
    pub(super) place: u32,
}

/// How much a pair counts: Σ over channels of `better(i) · worse(j)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// u_i · u_j
    Product,
    /// u_i y_i · u_j, the first part of (y_i − y_j) u_i u_j
    BetterTarget,
    /// −u_i · u_j y_j, the second part
    WorseTarget,
}

impl Channel {
    #[inline(always)]
    pub(super) fn better(self, item: &Item) -> f64 {
        match self {
            Channel::Product => item.weight,
            Channel::BetterTarget => item.weight * item.target,
            Channel::WorseTarget => -item.weight,
        }
    }

    #[inline(always)]
    pub(super) fn worse(self, item: &Item) -> f64 {
        match self {
            Channel::Product | Channel::BetterTarget => item.weight,
            Channel::WorseTarget => item.weight * item.target,
        }
    }
}

/// What is done with each pair of halves.
pub(super) trait Cross: Sync {
    /// Numbers kept for each place.
    fn width(&self) -> usize;
    /// Adds what the violated pairs between `low` (lower targets) and `high` give to each of their places; both are
    /// sorted by score. Places count from `base`, where `out` starts. Adds to `totals`.
    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item], totals: &mut Totals);
}

/// Sums over all violated pairs of one margin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Σ weight·v
    pub(super) sum: f64,
    /// Σ weight·v²
    pub(super) squares: f64,
}

impl Totals {
    pub(super) fn add(&mut self, other: Totals) {
        self.sum += other.sum;
        self.squares += other.squares;
    }
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
    let (low, high) = items.split_at(middle);
    let (mut a, mut b) = (0, 0);
    let (last_a, last_b) = (low.len() - 1, high.len() - 1);
    for slot in scratch.iter_mut() {
        // Clamped reads and a select instead of a jump: which run comes next is anybody's guess.
        let (from_low, from_high) = (&low[a.min(last_a)], &high[b.min(last_b)]);
        let take_low = b > last_b || (a <= last_a && from_low.score <= from_high.score);
        *slot = *if take_low { from_low } else { from_high };
        a += usize::from(take_low);
        b += usize::from(!take_low);
    }
    items.copy_from_slice(scratch);
}

/// Applies `work` to every pair of halves and leaves `items`, whose levels are sorted by score, sorted as a whole.
pub(super) fn recurse<W: Cross>(
    work: &W,
    levels: &[u32],
    items: &mut [Item],
    scratch: &mut [Item],
    out: &mut [f64],
) -> Totals {
    let mut totals = Totals::default();
    if levels.len() <= 2 {
        return totals;
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
    totals.add(below);
    totals.add(above);
    let (low, high) = items.split_at(cut);
    work.cross(levels[0], out, low, high, &mut totals);
    merge(items, cut, scratch);
    totals
}

/// Which of the next two rows, from below, has the smaller key; equal keys violate nothing, and the worse row goes first.
#[inline(always)]
fn worse_first(worse: &Item, better: &Item, margin: f64) -> bool {
    worse.score <= better.score - margin
}

/// What a row's violated pairs add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    weight: f64,
    sum: f64,
}

/// Walks both halves up the keys; `windows` receives, for each worse row, the sums over the better rows it comes too
/// close to.
fn walk_up(low: &[Item], high: &[Item], margin: f64, channel: Channel, windows: &mut [Window]) {
    let (mut a, mut b) = (0, 0);
    let (last_a, last_b) = (low.len() - 1, high.len() - 1);
    let mut window = Window::default();
    let mut key = f64::NEG_INFINITY;
    while a <= last_a {
        let (worse, better) = (&low[a], &high[b.min(last_b)]);
        let take_worse = b > last_b || worse_first(worse, better, margin);
        let here = if take_worse { worse.score } else { better.score - margin };
        // Nothing is in the window before the first better row: the infinite first step must not count.
        let step = if window.weight != 0.0 { here - key } else { 0.0 };
        key = here;
        window.sum += step * window.weight;
        // Written at every step, and right when the worse row is passed.
        windows[a] = window;
        window.weight += if take_worse { 0.0 } else { channel.better(better) };
        a += usize::from(take_worse);
        b += usize::from(!take_worse);
    }
}

/// Walks both halves down the keys; `windows` receives, for each better row, the sums over the worse rows that come too
/// close to it. Returns the sums over all pairs.
fn walk_down(low: &[Item], high: &[Item], margin: f64, channel: Channel, windows: &mut [Window]) -> Totals {
    let (mut a, mut b) = (low.len(), high.len());
    let mut window = Window::default();
    let mut squares = 0.0;
    let mut totals = Totals::default();
    let mut key = f64::INFINITY;
    while b > 0 {
        let (worse, better) = (&low[a.saturating_sub(1)], &high[b - 1]);
        let take_better = a == 0 || worse_first(worse, better, margin);
        let here = if take_better { better.score - margin } else { worse.score };
        let step = if window.weight != 0.0 { key - here } else { 0.0 };
        key = here;
        squares += step * (2.0 * window.sum + step * window.weight);
        window.sum += step * window.weight;
        windows[b - 1] = window;
        let own = if take_better { channel.better(better) } else { 0.0 };
        totals.sum += own * window.sum;
        totals.squares += own * squares;
        window.weight += if take_better { 0.0 } else { channel.worse(worse) };
        a -= usize::from(!take_better);
        b -= usize::from(take_better);
    }
    totals
}

/// Sums of violations of one margin: for each place Σ weight·v, better rows counted negative, and Σ weight.
pub(super) struct Violations<'c> {
    pub(super) margin: f64,
    /// Whether better rows count negative in Σ weight too.
    pub(super) signed: bool,
    pub(super) channels: &'c [Channel],
}

impl Cross for Violations<'_> {
    fn width(&self) -> usize {
        2
    }

    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item], totals: &mut Totals) {
        let mut windows = vec![Window::default(); low.len() + high.len()];
        let (of_low, of_high) = windows.split_at_mut(low.len());
        for &channel in self.channels {
            let mut up = || walk_up(low, high, self.margin, channel, of_low);
            let mut down = || walk_down(low, high, self.margin, channel, of_high);
            let found = if low.len() + high.len() >= 2 * FORK { rayon::join(up, down).1 } else { (up(), down()).1 };
            totals.add(found);
            let mut put = |item: &Item, own: f64, sign: f64, window: &Window| {
                let slot = &mut out[2 * (item.place - base) as usize..][..2];
                slot[0] += sign * own * window.sum;
                slot[1] += (if self.signed { sign } else { 1.0 }) * own * window.weight;
            };
            low.iter().zip(&*of_low).for_each(|(item, window)| put(item, channel.worse(item), 1.0, window));
            high.iter().zip(&*of_high).for_each(|(item, window)| put(item, channel.better(item), -1.0, window));
        }
    }
}

/// The weighted sums of the violating partners' directions, times the own weight: `m` numbers a place.
pub(super) struct PartnerSums<'a> {
    pub(super) margin: f64,
    pub(super) channels: &'a [Channel],
    pub(super) m: usize,
    /// In place order, `m` a row.
    pub(super) directions: &'a [f64],
}

impl PartnerSums<'_> {
    fn add(&self, sum: &mut [f64], weight: f64, partner: &Item) {
        let direction = &self.directions[self.m * partner.place as usize..][..self.m];
        sum.iter_mut().zip(direction).for_each(|(sum, d)| *sum += weight * d);
    }

    fn put(&self, base: u32, out: &mut [f64], item: &Item, own: f64, sum: &[f64]) {
        let slot = &mut out[self.m * (item.place - base) as usize..][..self.m];
        slot.iter_mut().zip(sum).for_each(|(slot, sum)| *slot += own * sum);
    }
}

impl Cross for PartnerSums<'_> {
    fn width(&self) -> usize {
        self.m
    }

    fn cross(&self, base: u32, out: &mut [f64], low: &[Item], high: &[Item], _: &mut Totals) {
        let mut sum = vec![0.0; self.m];
        for &channel in self.channels {
            sum.fill(0.0);
            let mut b = 0;
            for worse in low {
                while b < high.len() && !worse_first(worse, &high[b], self.margin) {
                    self.add(&mut sum, channel.better(&high[b]), &high[b]);
                    b += 1;
                }
                if b > 0 {
                    self.put(base, out, worse, channel.worse(worse), &sum);
                }
            }
            sum.fill(0.0);
            let mut a = low.len();
            for better in high.iter().rev() {
                while a > 0 && !worse_first(&low[a - 1], better, self.margin) {
                    a -= 1;
                    self.add(&mut sum, channel.worse(&low[a]), &low[a]);
                }
                if a < low.len() {
                    self.put(base, out, better, channel.better(better), &sum);
                }
            }
        }
    }
}
