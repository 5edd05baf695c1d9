//! [`Pairs`]: explicit comparisons of two rows.
//!
//! A pair names two rows, `left` and `right`, and the [`Outcome`] of comparing them, which may be a tie. A file with
//! columns `better,worse` has the better row on the left. [`Pairs::consistency`] counts what no scoring function can
//! satisfy: pairs stated in both directions, and cycles of preferences.

use super::{Buffer, Names};
use crate::error::{Code, Error, Result};
use crate::random::scramble;

/// Which of the two rows of a pair is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The left one.
    Left = 1,
    /// The right one.
    Right = 2,
    /// Neither.
    Tie = 3,
}

impl Outcome {
    /// All outcomes, in the order of confusion tables.
    pub const ALL: [Outcome; 3] = [Outcome::Left, Outcome::Tie, Outcome::Right];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Left => "left",
            Outcome::Right => "right",
            Outcome::Tie => "tie",
        }
    }

    /// −1, 0 or 1: the sign that the score of the right row minus that of the left one should have.
    pub fn sign(self) -> i8 {
        match self {
            Outcome::Left => -1,
            Outcome::Right => 1,
            Outcome::Tie => 0,
        }
    }

    /// The outcome of a sign.
    pub fn of_sign(sign: i8) -> Outcome {
        match sign {
            0 => Outcome::Tie,
            1.. => Outcome::Right,
            _ => Outcome::Left,
        }
    }
}

/// Number of rows, and number of comparisons of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Number of rows.
    pub rows: usize,
    /// Number of pairs of these rows.
    pub pairs: usize,
}

impl PairCounts {
    /// Whether to learn from the differences of the pairs as rows. This is so if there are no more pairs than rows, as
    /// in tables with two items per line.
    pub fn as_differences(self) -> bool {
        self.pairs <= self.rows
    }
}

/// Comparisons of two rows of a data set.
#[derive(Clone, Debug)]
pub struct Pairs {
    left: Buffer<u32>,
    right: Buffer<u32>,
    /// Absent if every outcome is [`Outcome::Left`].
    outcomes: Option<Buffer<Outcome>>,
    weights: Option<Buffer<f64>>,
    groups: Option<PairGroups>,
}

/// Which pairs belong together (given by one person or in one session): a code per pair, and the name of each code.
#[derive(Clone, Debug)]
struct PairGroups {
    codes: Buffer<u32>,
    names: Names,
}

impl PairGroups {
    /// The groups of some pairs, numbered in order of appearance, as in a file that holds only these pairs.
    fn select(&self, pairs: &[usize]) -> PairGroups {
        let mut new_code = vec![u32::MAX; self.names.len()];
        let mut kept = Vec::new();
        let codes: Vec<u32> = pairs
            .iter()
            .map(|&pair| {
                let code = self.codes[pair] as usize;
                if new_code[code] == u32::MAX {
                    new_code[code] = kept.len() as u32;
                    kept.push(code);
                }
                new_code[code]
            })
            .collect();
        let names = kept.iter().map(|&code| self.names.get_bytes(code)).collect();
        PairGroups { codes: codes.into(), names }
    }
}

impl Pairs {
    /// Pairs in which the left row is the better one.
    pub fn new(better: impl Into<Buffer<u32>>, worse: impl Into<Buffer<u32>>) -> Result<Pairs> {
        let (left, right) = (better.into(), worse.into());
        if left.len() != right.len() {
            return Err(Error::new(
                Code::Internal,
                format!("{} better rows for {} worse ones", left.len(), right.len()),
            ));
        }
        if left.len() > u32::MAX as usize {
            return Err(Error::new(Code::BadSetting, "more than 4,294,967,295 pairs, which is the limit")
                .help("learn from a part of them"));
        }
        if let Some(pair) = left.iter().zip(right.iter()).position(|(left, right)| left == right) {
            return Err(Error::new(Code::PairWithItself, format!("pair {} compares a row with itself", pair + 1))
                .help("drop such pairs: they carry no information"));
        }
        Ok(Pairs { left, right, outcomes: None, weights: None, groups: None })
    }

    /// Sets which side of each pair is better.
    pub fn with_outcomes(mut self, outcomes: impl Into<Buffer<Outcome>>) -> Result<Pairs> {
        let outcomes = outcomes.into();
        self.expect("outcomes", outcomes.len())?;
        self.outcomes = Some(outcomes);
        Ok(self)
    }

    /// Adds a weight for each pair. The task decides what the weight multiplies.
    pub fn with_weights(mut self, weights: impl Into<Buffer<f64>>) -> Result<Pairs> {
        let weights = weights.into();
        self.expect("weights", weights.len())?;
        if let Some(pair) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            return Err(Error::new(Code::BadWeight, format!("the weight of pair {} is {}", pair + 1, weights[pair]))
                .help("weights are finite numbers of zero or more"));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Adds a group for each pair, as a code and the names of the codes.
    pub fn with_groups(mut self, codes: impl Into<Buffer<u32>>, names: Names) -> Result<Pairs> {
        let codes = codes.into();
        self.expect("groups", codes.len())?;
        if codes.iter().any(|&code| code as usize >= names.len()) {
            return Err(Error::new(Code::Internal, "a group of a pair has no name"));
        }
        let all: Vec<usize> = (0..self.len()).collect();
        self.groups = Some(PairGroups { codes, names }.select(&all));
        Ok(self)
    }

    fn expect(&self, what: &str, count: usize) -> Result<()> {
        if count == self.len() {
            return Ok(());
        }
        Err(Error::new(Code::Internal, format!("{count} {what} for {} pairs", self.len())))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The left row of each pair.
    pub fn left(&self) -> &[u32] {
        &self.left
    }

    /// The right row of each pair.
    pub fn right(&self) -> &[u32] {
        &self.right
    }

    /// Which side of a pair is better.
    #[inline]
    pub fn outcome(&self, pair: usize) -> Outcome {
        self.outcomes.as_ref().map_or(Outcome::Left, |outcomes| outcomes[pair])
    }

    /// The outcome of each pair; `None` if the left row is the better one in every pair.
    pub fn outcomes(&self) -> Option<&[Outcome]> {
        self.outcomes.as_deref()
    }

    /// How many are ties.
    pub fn ties(&self) -> usize {
        self.outcomes.iter().flat_map(|outcomes| outcomes.iter()).filter(|outcome| **outcome == Outcome::Tie).count()
    }

    /// The better and the worse row of a pair. For a tie, the left and the right one.
    #[inline]
    pub fn ordered(&self, pair: usize) -> (usize, usize) {
        let (left, right) = (self.left[pair] as usize, self.right[pair] as usize);
        match self.outcome(pair) {
            Outcome::Left | Outcome::Tie => (left, right),
            Outcome::Right => (right, left),
        }
    }

    /// The weight of a pair; 1 if there are no weights.
    #[inline]
    pub fn weight(&self, pair: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[pair])
    }

    /// A weight for each pair, if given.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The group of each pair as a code, and the names of the codes, if given.
    pub fn groups(&self) -> Option<(&[u32], &Names)> {
        self.groups.as_ref().map(|groups| (&groups.codes[..], &groups.names))
    }

    /// One more than the largest row number in any pair.
    pub fn rows(&self) -> usize {
        self.left.iter().chain(self.right.iter()).max().map_or(0, |&row| row as usize + 1)
    }

    /// The given pairs in the given order, copied.
    pub fn select(&self, pairs: &[usize]) -> Pairs {
        fn picked<T: Copy>(from: &[T], pairs: &[usize]) -> Buffer<T>
        where
            Buffer<T>: From<Vec<T>>,
        {
            pairs.iter().map(|&pair| from[pair]).collect::<Vec<T>>().into()
        }
        Pairs {
            left: picked(&self.left, pairs),
            right: picked(&self.right, pairs),
            outcomes: self.outcomes.as_ref().map(|outcomes| picked(outcomes, pairs)),
            weights: self.weights.as_ref().map(|weights| picked(weights, pairs)),
            groups: self.groups.as_ref().map(|groups| groups.select(pairs)),
        }
    }

    /// These pairs, followed by others whose row numbers are raised by `offset`. Groups are dropped.
    pub fn followed_by(&self, others: &Pairs, offset: usize) -> Result<Pairs> {
        let moved = |own: &[u32], others: &[u32]| -> Vec<u32> {
            own.iter().copied().chain(others.iter().map(|&row| row + offset as u32)).collect()
        };
        let both = || [self, others].into_iter().flat_map(|pairs| (0..pairs.len()).map(move |pair| (pairs, pair)));
        let outcomes: Vec<Outcome> = both().map(|(pairs, pair)| pairs.outcome(pair)).collect();
        let weights: Vec<f64> = both().map(|(pairs, pair)| pairs.weight(pair)).collect();
        let joined = Pairs::new(moved(&self.left, &others.left), moved(&self.right, &others.right))?;
        let joined = joined.with_outcomes(outcomes)?;
        if self.weights.is_some() || others.weights.is_some() { joined.with_weights(weights) } else { Ok(joined) }
    }

    /// The pairs whose rows are both kept, with new row numbers: `place[row]` is the new number of a row.
    pub(crate) fn moved(&self, place: &[Option<u32>]) -> Pairs {
        let kept: Vec<usize> = (0..self.len())
            .filter(|&pair| place[self.left[pair] as usize].is_some() && place[self.right[pair] as usize].is_some())
            .collect();
        let mut pairs = self.select(&kept);
        let renumbered = |rows: &[u32]| -> Buffer<u32> {
            rows.iter().map(|&row| place[row as usize].unwrap_or_default()).collect::<Vec<u32>>().into()
        };
        (pairs.left, pairs.right) = (renumbered(&pairs.left), renumbered(&pairs.right));
        pairs
    }

    /// A hash over everything except names, in order.
    pub(crate) fn hash(&self) -> u64 {
        (0..self.len()).fold(scramble(self.len() as u64), |state, pair| {
            let rows = u64::from(self.left[pair]) << 32 | u64::from(self.right[pair]);
            let group = self.groups.as_ref().map_or(0, |groups| u64::from(groups.codes[pair]) + 1);
            let said = (self.weight(pair) + 0.0).to_bits() ^ group.rotate_left(20) ^ (self.outcome(pair) as u64) << 50;
            scramble(scramble(state ^ rows) ^ said)
        })
    }

    /// Counts what no scoring function can satisfy, in O(rows + pairs). Pairs of weight 0 are left out. Ties are only
    /// used to find couples of rows with different outcomes.
    pub fn consistency(&self) -> Consistency {
        let rows = self.rows();
        let mut said: Vec<Said> = (0..self.len())
            .filter(|&pair| self.weight(pair) > 0.0)
            .map(|pair| {
                let (better, worse) = self.ordered(pair);
                Said {
                    better: better as u32,
                    worse: worse as u32,
                    weight: self.weight(pair),
                    tie: self.outcome(pair) == Outcome::Tie,
                }
            })
            .collect();
        let mut found = Consistency::default();
        let mut seen = vec![false; rows];
        for pair in &said {
            seen[pair.better as usize] = true;
            seen[pair.worse as usize] = true;
            found.ties += u64::from(pair.tie);
        }
        found.items = seen.iter().filter(|&&seen| seen).count() as u64;
        count_contradictions(rows, &said, &mut found);
        said.retain(|pair| !pair.tie);
        count_cycles(rows, &said, &mut found);
        found
    }
}

/// A pair: the better and the worse row, or the left and the right row of a tie.
struct Said {
    better: u32,
    worse: u32,
    weight: f64,
    tie: bool,
}

/// How far any scoring function can satisfy a set of pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consistency {
    /// Rows that occur in a pair.
    pub items: u64,
    /// Couples of rows with pairs in both directions.
    pub contradictions: u64,
    /// Pairs of such couples.
    pub contradicted_pairs: u64,
    /// The weight that every order of the rows must violate because of them: the lighter direction of each couple.
    pub contradicted_weight: f64,
    /// Pairs that are ties.
    pub ties: u64,
    /// Couples of rows compared with more than one outcome: in both directions, or both decided and tied.
    pub disputes: u64,
    /// Pairs of such couples.
    pub disputed_pairs: u64,
    /// Groups of rows in which every row is better than every other by some chain of pairs.
    pub cyclic_groups: u64,
    /// Rows in such groups.
    pub cyclic_items: u64,
    /// Pairs inside such groups.
    pub cyclic_pairs: u64,
    /// Their weight.
    pub cyclic_weight: f64,
}

impl Consistency {
    /// Whether some order of the rows satisfies every pair.
    pub fn is_consistent(&self) -> bool {
        self.cyclic_groups == 0
    }
}

/// The positions of `keys` sorted by value: where the run of each value starts, and the positions themselves.
fn by_key(count: usize, keys: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; count + 1];
    keys.clone().for_each(|key| starts[key as usize + 1] += 1);
    for key in 0..count {
        starts[key + 1] += starts[key];
    }
    let mut next = starts.clone();
    let mut order = vec![0u32; starts[count] as usize];
    for (place, key) in keys.enumerate() {
        order[next[key as usize] as usize] = place as u32;
        next[key as usize] += 1;
    }
    (starts, order)
}

/// Counts couples with more than one outcome: groups the pairs by their lower row, then keeps three sums per partner.
fn count_contradictions(rows: usize, said: &[Said], found: &mut Consistency) {
    let (starts, order) = by_key(rows, said.iter().map(|pair| pair.better.min(pair.worse)));
    // Weight and number of pairs in which the lower row is better, in which the higher one is, and of ties.
    let mut sums = vec![[(0.0f64, 0u64); 3]; rows];
    for row in 0..rows {
        let run = &order[starts[row] as usize..starts[row + 1] as usize];
        for &pair in run {
            let pair = &said[pair as usize];
            let outcome = if pair.tie { 2 } else { usize::from(pair.better > pair.worse) };
            let slot = &mut sums[pair.better.max(pair.worse) as usize][outcome];
            slot.0 += pair.weight;
            slot.1 += 1;
        }
        for &pair in run {
            let pair = &said[pair as usize];
            let [up, down, tied] = std::mem::take(&mut sums[pair.better.max(pair.worse) as usize]);
            if [up, down, tied].iter().filter(|outcome| outcome.1 > 0).count() > 1 {
                found.disputes += 1;
                found.disputed_pairs += up.1 + down.1 + tied.1;
            }
            if up.1 > 0 && down.1 > 0 {
                found.contradictions += 1;
                found.contradicted_pairs += up.1 + down.1;
                found.contradicted_weight += up.0.min(down.0);
            }
        }
    }
}

/// Strongly connected components of more than one row: Tarjan's algorithm (Depth-first search and linear graph
/// algorithms, SIAM J. Computing 1, 1972). It uses an explicit stack, so that a chain of a million rows does not
/// overflow the call stack.
fn count_cycles(rows: usize, said: &[Said], found: &mut Consistency) {
    const UNSEEN: u32 = u32::MAX;
    let (starts, order) = by_key(rows, said.iter().map(|pair| pair.better));
    let mut number = vec![UNSEEN; rows];
    let mut lowest = vec![0u32; rows];
    let mut component = vec![UNSEEN; rows];
    let (mut open, mut path) = (Vec::new(), Vec::new());
    let (mut numbered, mut components) = (0u32, 0u32);
    let mut next: Vec<u32> = starts[..rows].to_vec();
    for root in 0..rows {
        if number[root] != UNSEEN || starts[root] == starts[root + 1] {
            continue;
        }
        path.push(root);
        while let Some(&row) = path.last() {
            if number[row] == UNSEEN {
                number[row] = numbered;
                lowest[row] = numbered;
                numbered += 1;
                open.push(row);
            }
            if next[row] < starts[row + 1] {
                let worse = said[order[next[row] as usize] as usize].worse as usize;
                next[row] += 1;
                if number[worse] == UNSEEN {
                    path.push(worse);
                } else if component[worse] == UNSEEN {
                    lowest[row] = lowest[row].min(number[worse]);
                }
                continue;
            }
            path.pop();
            if let Some(&before) = path.last() {
                lowest[before] = lowest[before].min(lowest[row]);
            }
            if lowest[row] == number[row] {
                let mut size = 0;
                while let Some(member) = open.pop() {
                    component[member] = components;
                    size += 1;
                    if member == row {
                        break;
                    }
                }
                if size > 1 {
                    found.cyclic_groups += 1;
                    found.cyclic_items += size;
                }
                components += 1;
            }
        }
    }
    for pair in said {
        let (better, worse) = (pair.better as usize, pair.worse as usize);
        if component[better] != UNSEEN && component[better] == component[worse] {
            found.cyclic_pairs += 1;
            found.cyclic_weight += pair.weight;
        }
    }
}

/// Right minus left, for each pair.
pub fn score_differences(scores: &[f64], pairs: &Pairs) -> Vec<f64> {
    let rows = pairs.left().iter().zip(pairs.right());
    rows.map(|(&left, &right)| scores[right as usize] - scores[left as usize]).collect()
}

/// The outcome of a difference.
pub fn outcome_of(difference: f64, threshold: f64) -> Outcome {
    if difference > threshold && difference > 0.0 {
        Outcome::Right
    } else if -difference > threshold && difference < 0.0 {
        Outcome::Left
    } else {
        Outcome::Tie
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(list: &[(u32, u32)]) -> Pairs {
        let (better, worse): (Vec<u32>, Vec<u32>) = list.iter().copied().unzip();
        Pairs::new(better, worse).expect("valid")
    }

    #[test]
    fn a_row_is_not_compared_with_itself() {
        let error = Pairs::new(vec![0, 3], vec![1, 3]).expect_err("itself");
        assert_eq!(error.code(), Code::PairWithItself);
        assert!(error.message().contains("pair 2"), "{error}");
    }

    #[test]
    fn the_hash_sees_sides_outcomes_weights_and_order() {
        let plain = pairs(&[(0, 1), (2, 3)]);
        let ones = plain.clone().with_weights(vec![1.0, 1.0]).expect("valid");
        assert_eq!(plain.hash(), ones.hash());
        let lefts = plain.clone().with_outcomes(vec![Outcome::Left; 2]).expect("valid");
        assert_eq!(plain.hash(), lefts.hash());
        for other in [
            pairs(&[(2, 3), (0, 1)]),
            pairs(&[(0, 1), (3, 2)]),
            plain.clone().with_weights(vec![1.0, 2.0]).expect("valid"),
            plain.clone().with_outcomes(vec![Outcome::Left, Outcome::Right]).expect("valid"),
            plain.clone().with_groups(vec![0, 0], ["x"].into_iter().collect()).expect("valid"),
        ] {
            assert_ne!(other.hash(), plain.hash());
        }
    }

    #[test]
    fn a_chain_of_a_million_rows_is_walked_without_recursion() {
        let n = 1_000_000u32;
        let chain = Pairs::new((0..n - 1).collect::<Vec<_>>(), (1..n).collect::<Vec<_>>()).expect("valid");
        assert!(chain.consistency().is_consistent());
        let circle = Pairs::new((0..n).collect::<Vec<_>>(), (0..n).map(|row| (row + 1) % n).collect::<Vec<_>>());
        let found = circle.expect("valid").consistency();
        assert_eq!((found.cyclic_groups, found.cyclic_items, found.cyclic_pairs), (1, 1_000_000, 1_000_000));
        assert_eq!(found.contradictions, 0);
    }

    proptest! {
        #[test]
        fn contradictions_and_cycles_are_those_of_brute_force(
            list in prop::collection::vec((0..9u32, 0..9u32, 0..4u8, -1..=1i8), 0..40),
        ) {
            let list: Vec<_> = list.into_iter().filter(|pair| pair.0 != pair.1).collect();
            let outcomes: Vec<Outcome> = list.iter().map(|pair| Outcome::of_sign(pair.3)).collect();
            let weights: Vec<f64> = list.iter().map(|pair| f64::from(pair.2)).collect();
            let built = pairs(&list.iter().map(|pair| (pair.0, pair.1)).collect::<Vec<_>>())
                .with_outcomes(outcomes).expect("valid").with_weights(weights).expect("valid");
            let found = built.consistency();
            // Which row is better than which, by weight and number, and by any chain.
            let (mut weight, mut count, mut reaches) = ([[0.0; 9]; 9], [[0u64; 9]; 9], [[false; 9]; 9]);
            let mut tied = [[0u64; 9]; 9];
            for pair in 0..built.len() {
                let (better, worse) = built.ordered(pair);
                if built.weight(pair) > 0.0 && built.outcome(pair) == Outcome::Tie {
                    tied[better][worse] += 1;
                } else if built.weight(pair) > 0.0 {
                    weight[better][worse] += built.weight(pair);
                    count[better][worse] += 1;
                    reaches[better][worse] = true;
                }
            }
            for over in 0..9 { for from in 0..9 { for to in 0..9 {
                reaches[from][to] |= reaches[from][over] && reaches[over][to];
            } } }
            let mut expected = Consistency::default();
            for a in 0..9 {
                expected.items +=
                    u64::from((0..9).any(|b| count[a][b] + count[b][a] + tied[a][b] + tied[b][a] > 0));
                expected.cyclic_items += u64::from(reaches[a][a]);
                // Each group is counted at its first row.
                expected.cyclic_groups += u64::from(reaches[a][a] && !(0..a).any(|b| reaches[a][b] && reaches[b][a]));
                for b in 0..9 {
                    expected.ties += tied[a][b];
                    let outcomes = [count[a][b], count[b][a], tied[a][b] + tied[b][a]];
                    if a < b && outcomes.iter().filter(|outcome| **outcome > 0).count() > 1 {
                        expected.disputes += 1;
                        expected.disputed_pairs += outcomes.iter().sum::<u64>();
                    }
                    if reaches[a][b] && reaches[b][a] {
                        expected.cyclic_pairs += count[a][b];
                        expected.cyclic_weight += weight[a][b];
                    }
                    if a < b && count[a][b] > 0 && count[b][a] > 0 {
                        expected.contradictions += 1;
                        expected.contradicted_pairs += count[a][b] + count[b][a];
                        expected.contradicted_weight += f64::min(weight[a][b], weight[b][a]);
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
