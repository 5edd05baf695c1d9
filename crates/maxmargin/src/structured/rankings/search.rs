//! The most violated order of one list: R relevant rows with scores s_1 ≥ … ≥ s_R and N others with t_1 ≥ … ≥ t_N.
//!
//! ```text
//! max over orders   loss + σ · Σ_{(i, j): other j above relevant i} (t_j − s_i)
//! ```
//! Rows of one kind stand in the order of their scores: exchanging two of them never helps. So an order is a choice of
//! c_1 ≤ … ≤ c_R, where c_i of the others stand above relevant row i, whose position is then i + c_i.
//!
//! **Losses that grow ever slower with c_i**: average precision (Σ_i c_i / (i + c_i) / R), and discounts that fall ever
//! slower (NDCG over all positions). If other j stands just above relevant row a_j, the value is a sum Σ_j F_j(a_j), and
//! the a_j that are best one by one rise with j (Yue, Finley, Radlinski & Joachims, SIGIR 2007). F_j(k) costs O(1) with
//! prefix sums and a table of harmonic numbers or discounts, and a rising argmax is found by divide and conquer:
//! O((R + N) log N) after sorting. Mohapatra, Jawahar & Kumar, Efficient optimization for average precision SVM, NIPS
//! 2014, describe another way with the same cost.
//!
//! **Cutoffs** (NDCG@K, P@K): the first K positions are filled one by one, and the best value for each number of
//! relevant rows is kept: O(K²). Below them no position counts, and each pair of rows stands as their scores say.
//!
//! **Reciprocal rank**: c_1 is tried from 0 to N, O(R + N). **ROC area**: each pair is decided alone, O(R + N).

use rayon::slice::ParallelSliceMut;

/// One list, sorted and split, and what the searches need beside it. It is used again for the next list.
#[derive(Debug, Default)]
pub(in crate::structured) struct Lists {
    /// All rows by falling score, with their places in the list.
    pub(super) sorted: Vec<(f64, u32)>,
    /// Scores of the relevant rows, falling, and their places.
    pub(in crate::structured) relevant: Vec<f64>,
    pub(in crate::structured) relevant_places: Vec<u32>,
    /// The same of the others.
    pub(in crate::structured) others: Vec<f64>,
    pub(in crate::structured) other_places: Vec<u32>,
    /// Sums of the first scores of each kind, beginning with that of none.
    pub(in crate::structured) relevant_sums: Vec<f64>,
    pub(in crate::structured) other_sums: Vec<f64>,
    /// c_i
    pub(in crate::structured) above: Vec<u32>,
    /// a_j
    first: Vec<u32>,
    /// Best values by the number of relevant rows placed, for two numbers of positions; and how each was reached.
    values: [Vec<f64>; 2],
    took_relevant: Vec<bool>,
}

/// From this many rows on, a list is sorted by all threads.
const LONG: usize = 1 << 16;

impl Lists {
    /// Sorts the rows by falling score; equal scores stand in the order of the rows.
    pub(in crate::structured) fn sort(&mut self, scores: &[f64]) {
        self.sort_some(scores, |_| true);
    }

    /// The same for some of the rows.
    pub(in crate::structured) fn sort_some(&mut self, scores: &[f64], is_one: impl Fn(u32) -> bool) {
        self.sorted.clear();
        self.sorted.extend(scores.iter().copied().zip(0u32..).filter(|(_, place)| is_one(*place)));
        let order = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if scores.len() >= LONG {
            self.sorted.par_sort_unstable_by(order);
        } else {
            self.sorted.sort_unstable_by(order);
        }
    }

    /// Tells the relevant rows from the others.
    pub(in crate::structured) fn split(&mut self, is_relevant: impl Fn(u32) -> bool) {
        let Lists { sorted, relevant, relevant_places, others, other_places, relevant_sums, other_sums, .. } = self;
        [&mut *relevant, others, relevant_sums, other_sums].into_iter().for_each(Vec::clear);
        [&mut *relevant_places, other_places].into_iter().for_each(Vec::clear);
        let (mut of_relevant, mut of_others) = (0.0, 0.0);
        relevant_sums.push(0.0);
        other_sums.push(0.0);
        for &(score, place) in sorted.iter() {
            if is_relevant(place) {
                of_relevant += score;
                relevant.push(score);
                relevant_places.push(place);
                relevant_sums.push(of_relevant);
            } else {
                of_others += score;
                others.push(score);
                other_places.push(place);
                other_sums.push(of_others);
            }
        }
    }

    /// Writes for each row how many rows of the other kind stand on the wrong side of it.
    pub(in crate::structured) fn write(&self, output: &mut [u32]) {
        for (place, above) in self.relevant_places.iter().zip(&self.above) {
            output[*place as usize] = *above;
        }
        // Below other j are the relevant rows that j others or more stand above.
        let mut correct = 0;
        for (j, place) in (1u32..).zip(&self.other_places) {
            while correct < self.above.len() && self.above[correct] < j {
                correct += 1;
            }
            output[*place as usize] = (self.above.len() - correct) as u32;
        }
    }

    /// Average precision. `harmonic` holds Σ 1/m over m ≤ n at n, up to R + N.
    pub(super) fn average_precision(&mut self, sigma: f64, harmonic: &[f64]) {
        let Lists { relevant, others, relevant_sums: sums, first, above, .. } = self;
        let count = relevant.len();
        let (share, all) = (1.0 / count as f64, sums[count]);
        rising(others.len(), count + 1, first, &|j, range| {
            let (end, t) = (harmonic[count + j], others[j - 1]);
            let earlier = (j - 1) as f64 / (count + j) as f64;
            let loss = |k: usize, left: f64| {
                let place = k + j - 1;
                share * ((end - harmonic[place]) - earlier * left / place as f64)
            };
            best(range, count, |k, left| loss(k, left) - sigma * ((all - sums[k - 1]) - left * t))
        });
        count_above(first, count, above);
    }

    /// The sum of discounts of the relevant rows, times `share`. Discounts fall ever slower; that of position p is at
    /// p − 1.
    pub(super) fn all_positions(&mut self, sigma: f64, share: f64, discounts: &[f64]) {
        let Lists { relevant, others, relevant_sums: sums, first, above, .. } = self;
        let count = relevant.len();
        let all = sums[count];
        rising(others.len(), count + 1, first, &|j, range| {
            let (end, t) = (discounts[count + j - 1], others[j - 1]);
            best(range, count, |k, left| {
                share * (discounts[k + j - 2] - end) - sigma * ((all - sums[k - 1]) - left * t)
            })
        });
        count_above(first, count, above);
    }

    /// The sum of discounts of the relevant rows in the first positions, as many as there are discounts, times `share`.
    /// There are at least as many rows as discounts.
    pub(super) fn first_positions(&mut self, sigma: f64, share: f64, discounts: &[f64]) {
        let (cutoff, count, other_count) = (discounts.len(), self.relevant.len(), self.others.len());
        let width = cutoff + 1;
        self.took_relevant.clear();
        self.took_relevant.resize(width * width, false);
        for values in &mut self.values {
            values.clear();
            values.resize(width, f64::NEG_INFINITY);
        }
        self.values[0][0] = 0.0;
        for (position, discount) in discounts.iter().enumerate() {
            let [before, after] = &mut self.values;
            after.fill(f64::NEG_INFINITY);
            for (placed, value) in before.iter().enumerate().take(count.min(position) + 1) {
                // So many others stand above what comes next.
                let above = position - placed;
                if above > other_count || !value.is_finite() {
                    continue;
                }
                if above < other_count && *value >= after[placed] {
                    after[placed] = *value;
                    self.took_relevant[(position + 1) * width + placed] = false;
                }
                if placed < count {
                    let value = value - share * discount
                        + sigma * (self.other_sums[above] - above as f64 * self.relevant[placed]);
                    if value > after[placed + 1] {
                        after[placed + 1] = value;
                        self.took_relevant[(position + 1) * width + placed + 1] = true;
                    }
                }
            }
            self.values.swap(0, 1);
        }
        let mut placed = self.best_first(sigma, cutoff);
        let others_first = cutoff - placed;
        // Behind the cutoff, the scores decide.
        self.above.clear();
        self.above.resize(count, 0);
        let mut higher = others_first;
        for (above, score) in self.above.iter_mut().zip(&self.relevant).skip(placed) {
            while higher < other_count && self.others[higher] > *score {
                higher += 1;
            }
            *above = higher as u32;
        }
        for position in (1..=cutoff).rev() {
            if self.took_relevant[position * width + placed] {
                placed -= 1;
                self.above[placed] = (position - 1 - placed) as u32;
            }
        }
    }

    /// With how many relevant rows in the first positions the value is best, together with the pairs below them.
    fn best_first(&self, sigma: f64, cutoff: usize) -> usize {
        let (count, other_count) = (self.relevant.len(), self.others.len());
        let (relevant_sums, other_sums) = (&self.relevant_sums, &self.other_sums);
        let start = cutoff.saturating_sub(other_count);
        let (mut best, mut highest) = (start, f64::NEG_INFINITY);
        // Σ over relevant rows and others below the cutoff of max(0, t − s).
        let mut below = 0.0;
        let mut higher = cutoff - start;
        for relevant in start..count {
            while higher < other_count && self.others[higher] > self.relevant[relevant] {
                higher += 1;
            }
            let first = cutoff - start;
            below += (other_sums[higher] - other_sums[first]) - (higher - first) as f64 * self.relevant[relevant];
        }
        for placed in start..=count.min(cutoff) {
            let above = cutoff - placed;
            // Relevant rows below the cutoff stand below all others above it.
            let left = (count - placed) as f64;
            let crossing = left * other_sums[above] - above as f64 * (relevant_sums[count] - relevant_sums[placed]);
            let value = self.values[0][placed] + sigma * (crossing + below);
            if value > highest {
                (best, highest) = (placed, value);
            }
            if placed == count || above == 0 {
                break;
            }
            // The next relevant row moves above the cutoff, and the last of the others below it.
            let (own, moved) = (self.relevant[placed], self.others[above - 1]);
            let higher = self.others.partition_point(|other| *other > own).max(above);
            below -= (other_sums[higher] - other_sums[above]) - (higher - above) as f64 * own;
            let lower = self.relevant.partition_point(|score| *score >= moved).max(placed + 1);
            below += (count - lower) as f64 * moved - (relevant_sums[count] - relevant_sums[lower]);
        }
        best
    }

    /// The discount of the first relevant row. That of position p is at p − 1, and zero where there is none.
    pub(super) fn first_relevant(&mut self, sigma: f64, discounts: &[f64]) {
        let Lists { relevant, others, relevant_sums: sums, above, .. } = self;
        let count = relevant.len();
        let discount = |position: usize| discounts.get(position).copied().unwrap_or(0.0);
        let (mut best, mut highest, mut value) = (0, -discount(0), 0.0);
        // Relevant rows that are not lower than the current other.
        let mut lower = 0;
        for (at, &other) in others.iter().enumerate() {
            while lower < count && relevant[lower] >= other {
                lower += 1;
            }
            // It moves above all relevant rows. Before, it was above those with lower scores, but for the first.
            let from = lower.max(1);
            let before = (count - from) as f64 * other - (sums[count] - sums[from]);
            value += (count as f64 * other - sums[count]) - before;
            let own = sigma * value - discount(at + 1);
            if own > highest {
                (best, highest) = (at + 1, own);
            }
        }
        let mut higher = best;
        above.clear();
        above.push(best as u32);
        above.extend(relevant[1..].iter().map(|score| {
            while higher < others.len() && others[higher] > *score {
                higher += 1;
            }
            higher as u32
        }));
    }

    /// The share of pairs in the wrong order: each costs `pair`.
    pub(in crate::structured) fn area(&mut self, sigma: f64, pair: f64) {
        let Lists { relevant, others, above, .. } = self;
        let mut higher = 0;
        above.clear();
        above.extend(relevant.iter().map(|score| {
            while higher < others.len() && pair + sigma * (others[higher] - score) > 0.0 {
                higher += 1;
            }
            higher as u32
        }));
    }
}

/// Counts in `wrong` how many relevant rows have so many others above them, from the numbers of the rows. An error if
/// no order has these numbers. `side` says whether a row is relevant, and none for a row that is left out; `expected`
/// is a buffer.
pub(in crate::structured) fn count_wrong(
    output: &[u32],
    (relevant, others): (usize, usize),
    side: impl Fn(usize) -> Option<bool>,
    wrong: &mut Vec<u32>,
    expected: &mut Vec<u32>,
) -> Result<(), &'static str> {
    wrong.clear();
    wrong.resize(others + 1, 0);
    // How many of the others have so many relevant rows below them.
    expected.clear();
    expected.resize(relevant + 1, 0);
    for (place, &number) in output.iter().enumerate() {
        let counted = match side(place) {
            Some(true) => &mut *wrong,
            Some(false) => &mut *expected,
            None if number == 0 => continue,
            None => return Err("a row that is left out has no place"),
        };
        *counted.get_mut(number as usize).ok_or("a row is on the wrong side of more rows than there are")? += 1;
    }
    // The j-th of the others stands above the relevant rows that j others or more stand above.
    let mut below = 0;
    for j in (1..=others).rev() {
        below += wrong[j] as usize;
        expected[below] = expected[below].checked_sub(1).ok_or("the numbers of its rows contradict each other")?;
    }
    Ok(())
}

/// The best k of a range, the last of equal ones. `value` takes k and the number of relevant rows from k on; at
/// `count` + 1 the value is 0.
#[inline(always)]
fn best((low, high): (usize, usize), count: usize, value: impl Fn(usize, f64) -> f64) -> usize {
    let (mut at, mut highest) = (low, f64::NEG_INFINITY);
    for k in low..=high.min(count) {
        let own = value(k, (count + 1 - k) as f64);
        if own >= highest {
            (at, highest) = (k, own);
        }
    }
    if high > count && highest <= 0.0 { count + 1 } else { at }
}

/// For each j from 1 to `items`, the best k from 1 to `last`. It rises with j. `best` takes j and a range.
fn rising(items: usize, last: usize, found: &mut Vec<u32>, best: &impl Fn(usize, (usize, usize)) -> usize) {
    fn fill(
        first: usize,
        found: &mut [u32],
        (low, high): (usize, usize),
        best: &impl Fn(usize, (usize, usize)) -> usize,
    ) {
        if found.is_empty() {
            return;
        }
        if low == high {
            return found.fill(low as u32);
        }
        let middle = found.len() / 2;
        let k = best(first + middle, (low, high));
        let (before, rest) = found.split_at_mut(middle);
        rest[0] = k as u32;
        fill(first, before, (low, k), best);
        fill(first + middle + 1, &mut rest[1..], (k, high), best);
    }
    found.clear();
    found.resize(items, 0);
    fill(1, found, (1, last), best);
}

/// c_i = number of j with a_j ≤ i, for rising a.
fn count_above(first: &[u32], count: usize, above: &mut Vec<u32>) {
    above.clear();
    let mut at = 0;
    above.extend((1..=count as u32).map(|i| {
        while at < first.len() && first[at] <= i {
            at += 1;
        }
        at as u32
    }));
}
