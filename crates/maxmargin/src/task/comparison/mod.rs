//! Ranking and comparing by explicit pairs, with or without ties.
//!
//! ```text
//! min  ½‖w‖² + Σ_{p decided} C_p · loss(m_p + τ − z_p) + Σ_{p tied} C_p · (loss(m_p − τ + z_p) + loss(m_p − τ − z_p))
//! ```
//! with z_p = s_better − s_worse for a decided pair, z_p = s_left − s_right for a tie, and s = Xw. The model predicts a
//! decided pair if |z| > τ, and a tie otherwise. [`TiesAs`] says how ties are used:
//!
//! | | a decided pair | a tie |
//! |---|---|---|
//! | threshold | the first sum, τ free | the second sum |
//! | contradiction | twice, τ = 0 | in both directions, τ = 0 |
//! | nothing | once, τ = 0 | is left out |
//!
//! There is no intercept, because it would cancel. The weight u_p of a pair is used in one of three ways
//! ([`WeightAs`]):
//!
//! | | C_p | m_p |
//! |---|---|---|
//! | slack | C·u_p | m |
//! | margin | C | u_p |
//! | copies | C·u_p, u_p a whole number | m |
//!
//! m is 1, or 0 for the logistic loss, which has no margin to scale. A pair of weight 0 has no effect in any of them.
//!
//! **Logistic loss with a threshold** is the likelihood of three ordered outcomes: P(tie) = σ(τ − z) − σ(−τ − z) =
//! σ(τ − z) · σ(τ + z) · (1 − e^(−2τ)). So a tie costs two logistic losses and the barrier −ln(1 − e^(−2τ)), which
//! keeps τ above zero.
//!
//! **Equal pairs** can be merged into one, whose weight is the sum of theirs
//! ([`Comparison::with_equal_pairs_merged`]): a thousand games of two players cost as much as one.
//!
//! **Blocks.** One for each pair, then a second one for each tie, over the same two rows. The second copy of a tie is
//! only a number and stores nothing.
//!
//! As an [`Objective`], the rows are cut into parts that no pair crosses: runs of rows without comparisons between
//! them, merged up to about a thousand rows. A value, slope or product with the Hessian costs O(rows + pairs). If pairs
//! share few rows, the differences themselves become the rows ([`Comparison::over_differences`]). There are then half
//! as many rows, and the terms of each depend only on its own score.
//!
//! References: Herbrich, Graepel & Obermayer, Large margin rank boundaries for ordinal regression, Advances in Large
//! Margin Classifiers (2000); Venuto, Hocking, Sphanurattana & Sugiyama, Support vector comparison machines (2014).

mod by_difference;
mod merged;
mod settings;

pub(crate) use by_difference::ByDifference;
pub(super) use settings::PROFILE;
pub use settings::{CompareSettings, Method};

use self::merged::Merged;
pub(crate) use self::merged::merged_numbers;
use super::weight_as::check_pairs;
use super::{
    Barrier, Constraint, Curvature, Directions, Independent, LearningTask, Objective, Place, Roundable, Slopes,
    WeightAs, rounding_terms,
};
use crate::certificate::Decoder;
use crate::data::{Dataset, Design, Outcome, Pairs};
use crate::error::{Code, Error, Result};
use crate::loss::{Curve, Loss};
use crate::parallel;
use crate::run::Cancel;
use std::ops::Range;
use std::sync::Arc;

/// How ties are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TiesAs {
    /// Ties are left out.
    Nothing,
    /// Each row is the better one: two pairs that contradict each other. Decided pairs then count twice.
    Contradiction,
    /// The scores must differ by no more than a threshold, which is learned.
    Threshold,
}

impl TiesAs {
    /// The ties that have a second block.
    fn second_blocks(self, pairs: &Pairs) -> Arc<[u32]> {
        match self {
            TiesAs::Nothing => Arc::new([]),
            TiesAs::Contradiction | TiesAs::Threshold => {
                (0..pairs.len() as u32).filter(|&pair| pairs.outcome(pair as usize) == Outcome::Tie).collect()
            }
        }
    }
}

/// The task: the two rows, the cost and the margin of each pair.
#[derive(Clone, Debug)]
pub struct Comparison {
    pairs: Pairs,
    ties_as: TiesAs,
    /// The ties that count. Each has a second block after those of the pairs.
    ties: Arc<[u32]>,
    weight_as: WeightAs,
    /// How many of the given pairs that count each pair stands for, if equal ones were merged.
    merged: Option<Arc<[u32]>>,
    /// Number of ties given.
    given_ties: u64,
    loss: Loss,
    curve: Curve,
    c: f64,
    parts: Arc<[Part]>,
    /// Pairs in the order of their parts.
    order: Arc<[u32]>,
    /// Whether the model can predict ties.
    tells_ties: bool,
}

/// Number of pairs between two checks of the cancel flag, and the number that one thread sums at a time in a line
/// search. It is fixed, so that the result does not depend on the threads.
const STRETCH: usize = 1 << 16;

/// A run of rows that no pair leaves, and the position of its pairs in the order.
#[derive(Clone, Debug)]
struct Part {
    rows: Range<usize>,
    pairs: Range<usize>,
}

/// Number of rows merged into a part, unless a pair needs more.
const PART: usize = 1024;

impl Comparison {
    /// A task over the pairs of a data set.
    pub fn new(data: &Dataset, ties_as: TiesAs, weight_as: WeightAs, loss: Loss, c: f64) -> Result<Comparison> {
        let pairs = data.pairs().filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
            Error::new(Code::NoPairs, "there are no pairs, so there is nothing to learn from")
                .help("give at least one pair of items and which of them is better")
        })?;
        if weight_as == WeightAs::Margin && (loss == Loss::Logistic || ties_as == TiesAs::Threshold) {
            let (message, help) = match ties_as {
                TiesAs::Threshold => {
                    ("margins are set by the threshold, and not by weights", "leave ⟦weight-as⟧ out: weights are costs")
                }
                _ => (
                    "the logistic loss has no margin that a weight could set",
                    "use ⟦weight-as=slack⟧, or ⟦loss=hinge⟧ or squared-hinge",
                ),
            };
            return Err(Error::new(Code::BadSetting, message).help(help));
        }
        if weight_as == WeightAs::Copies {
            check_pairs(data, pairs)?;
        }
        let ties = ties_as.second_blocks(pairs);
        let (parts, order) = parts(pairs, data.rows());
        Ok(Comparison {
            pairs: pairs.clone(),
            ties_as,
            given_ties: ties.len() as u64,
            ties,
            weight_as,
            merged: None,
            loss,
            curve: Curve::Sharp(loss),
            c,
            parts: parts.into(),
            order: order.into(),
            tells_ties: false,
        })
    }

    /// The same objective with equal pairs merged: one pair whose weight is the sum of theirs. The cost of a pass then
    /// depends on the number of different pairs only. `rows` is the number of rows of the data.
    pub(crate) fn with_equal_pairs_merged(self, rows: usize) -> Comparison {
        // In tables with two items per line, no two pairs have the same rows.
        if 2 * self.pairs.len() <= rows {
            return self;
        }
        let Some(Merged { pairs, counts }) = Merged::of(&self.pairs, self.weight_as) else { return self };
        let ties = self.ties_as.second_blocks(&pairs);
        let (parts, order) = parts(&pairs, rows);
        Comparison { pairs, ties, merged: Some(counts), parts: parts.into(), order: order.into(), ..self }
    }

    /// The rows of [`Comparison::over_differences`].
    pub(crate) fn differences(&self, design: &Design, cancel: &Cancel) -> Result<Design> {
        design.differences(&self.pairs, cancel)
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> Comparison {
        Comparison { c, ..self }
    }

    /// The same task for a model that can predict ties.
    pub(crate) fn telling_ties(self) -> Comparison {
        Comparison { tells_ties: true, ..self }
    }

    /// The pairs of a part, until the job is abandoned. A single part may hold all pairs.
    fn wanted<'a>(&'a self, pairs: &Range<usize>, cancel: &'a Cancel) -> impl Iterator<Item = &'a u32> {
        self.order[pairs.clone()].chunks(STRETCH).take_while(|_| !cancel.is_abandoned()).flatten()
    }

    /// Number of ties given that have a second constraint.
    pub fn second_constraints(&self) -> u64 {
        self.given_ties
    }

    /// Whether the weight of a pair is its margin.
    pub(crate) fn weights_are_margins(&self) -> bool {
        self.weight_as == WeightAs::Margin
    }

    /// How many of the given pairs that count a pair stands for.
    #[inline]
    fn stands_for(&self, pair: usize) -> u32 {
        self.merged.as_ref().map_or(1, |merged| merged[pair])
    }

    /// The cost of all constraints of decided pairs, and that of all constraints of ties.
    pub(crate) fn costs_by_kind(&self) -> (f64, f64) {
        let is_tie = |block: usize| self.pairs.outcome(self.pair(block)) == Outcome::Tie;
        (0..self.blocks()).fold((0.0, 0.0), |(decided, tied), block| {
            let cost = self.constraint(block).cost;
            if is_tie(block) { (decided, tied + cost) } else { (decided + cost, tied) }
        })
    }

    /// The total weight of the loss.
    pub fn total_cost(&self) -> f64 {
        (0..self.blocks()).map(|block| self.constraint(block).cost).sum()
    }

    /// Number of constraints with a positive cost; copies count.
    pub fn constraints(&self) -> u64 {
        let copies = |block: usize| match (self.constraint(block).cost > 0.0, self.weight_as) {
            (false, _) => 0,
            (true, WeightAs::Slack | WeightAs::Margin) => u64::from(self.stands_for(self.pair(block))),
            (true, WeightAs::Copies) => self.pairs.weight(self.pair(block)) as u64,
        };
        let twice = if self.ties_as == TiesAs::Contradiction { 2 } else { 1 };
        let pairs = self.pairs.len();
        let decided = |block: &usize| self.pairs.outcome(*block) != Outcome::Tie;
        let counted: u64 = (0..pairs).filter(decided).map(|block| twice * copies(block)).sum();
        counted + self.ties.iter().map(|&pair| 2 * copies(pair as usize)).sum::<u64>()
    }

    /// The pair of a block.
    #[inline]
    fn pair(&self, block: usize) -> usize {
        block.checked_sub(self.pairs.len()).map_or(block, |tie| self.ties[tie] as usize)
    }

    /// The cost of either constraint of a pair.
    #[inline]
    fn cost(&self, pair: usize) -> f64 {
        let weight = self.pairs.weight(pair);
        let times = match (self.ties_as, self.pairs.outcome(pair)) {
            (TiesAs::Nothing, Outcome::Tie) => 0.0,
            (TiesAs::Contradiction, Outcome::Left | Outcome::Right) => 2.0,
            _ => 1.0,
        };
        match self.weight_as {
            WeightAs::Slack | WeightAs::Copies => self.c * weight * times,
            WeightAs::Margin if weight > 0.0 => self.c * f64::from(self.stands_for(pair)) * times,
            WeightAs::Margin => 0.0,
        }
    }

    #[inline]
    fn margin(&self, pair: usize) -> f64 {
        match self.weight_as {
            WeightAs::Slack | WeightAs::Copies => self.loss.margin(),
            WeightAs::Margin => self.pairs.weight(pair),
        }
    }

    /// The coefficient of τ in the constraints of a pair.
    #[inline]
    fn threshold(&self, outcome: Outcome) -> f64 {
        match (self.ties_as, outcome) {
            (TiesAs::Threshold, Outcome::Tie) => 1.0,
            (TiesAs::Threshold, Outcome::Left | Outcome::Right) => -1.0,
            _ => 0.0,
        }
    }
}

/// Cuts the rows wherever no pair crosses, merges short runs, and sorts the pairs by part.
fn parts(pairs: &Pairs, rows: usize) -> (Vec<Part>, Vec<u32>) {
    // The furthest partner of each row among the pairs that start there.
    let mut reach: Vec<u32> = (0..rows as u32).collect();
    for (&left, &right) in pairs.left().iter().zip(pairs.right()) {
        let slot = &mut reach[left.min(right) as usize];
        *slot = (*slot).max(left.max(right));
    }
    let mut part_of = vec![0u32; rows];
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    for row in 0..rows {
        end = end.max(reach[row] as usize);
        if row == end && (row + 1 - start >= PART || row + 1 == rows) {
            part_of[start..=row].fill(parts.len() as u32);
            parts.push(Part { rows: start..row + 1, pairs: 0..0 });
            start = row + 1;
        }
    }
    let part_of_pair = |pair: usize| part_of[pairs.left()[pair] as usize] as usize;
    for pair in 0..pairs.len() {
        parts[part_of_pair(pair)].pairs.end += 1;
    }
    let mut at = 0;
    for part in &mut parts {
        let count = part.pairs.end;
        part.pairs = at..at;
        at += count;
    }
    let mut order = vec![0u32; pairs.len()];
    for pair in 0..pairs.len() {
        let part = &mut parts[part_of_pair(pair)];
        order[part.pairs.end] = pair as u32;
        part.pairs.end += 1;
    }
    parts.retain(|part| !part.pairs.is_empty());
    (parts, order)
}

impl LearningTask for Comparison {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        Comparison::total_cost(self)
    }

    fn constraints(&self) -> u64 {
        Comparison::constraints(self)
    }

    fn unit(&self) -> &'static str {
        "pair"
    }

    fn decoder(&self, free: &[f64]) -> Decoder {
        let threshold = free.first().copied().unwrap_or(0.0);
        match (self.tells_ties, self.barrier() > 0.0) {
            (true, true) => Decoder::Likelihood { threshold },
            (true, false) => Decoder::Compare { threshold },
            (false, _) => Decoder::Rank,
        }
    }

    fn ties(&self) -> Option<u64> {
        Some(self.second_constraints()).filter(|ties| *ties > 0)
    }

    /// For the hinge: with equal scores the best threshold is 1 or −1. At 1, every decided pair costs 2; at −1, each
    /// constraint of a tie costs 2.
    fn cost_of_equal_scores(&self) -> Option<f64> {
        let (decided, tied) = self.costs_by_kind();
        self.tells_ties.then(|| 2.0 * decided.min(tied))
    }

    /// The two constraints of a tie use the same kernel values.
    fn second_copies(&self) -> Option<(usize, Arc<[u32]>)> {
        Some((self.pairs.len(), Arc::clone(&self.ties)))
    }
}

impl Independent for Comparison {
    fn blocks(&self) -> usize {
        self.pairs.len() + self.ties.len()
    }

    fn loss(&self) -> Loss {
        self.loss
    }

    #[inline]
    fn constraint(&self, block: usize) -> Constraint {
        let pair = self.pair(block);
        let (row, against) = self.pairs.ordered(pair);
        Constraint {
            row,
            against: Some(against),
            // The second copy of a tie has the opposite sign.
            coefficient: if block == pair { 1.0 } else { -1.0 },
            threshold: self.threshold(self.pairs.outcome(pair)),
            margin: self.margin(pair),
            cost: self.cost(pair),
        }
    }

    fn barrier(&self) -> f64 {
        if self.ties_as != TiesAs::Threshold || self.loss != Loss::Logistic {
            return 0.0;
        }
        self.ties.iter().map(|&pair| self.cost(pair as usize)).sum()
    }
}

/// A pair at one difference of scores: its value and derivatives by the difference z and by the threshold.
#[derive(Clone, Copy, Debug, Default)]
struct PairPoint {
    value: f64,
    by_score: f64,
    by_threshold: f64,
    score_curvature: f64,
    cross_curvature: f64,
    threshold_curvature: f64,
    rounding: [f64; 2],
}

impl Comparison {
    /// The value and derivatives of a pair whose scores differ by `z`, in the direction of [`Pairs::ordered`].
    #[inline]
    fn at(&self, pair: usize, z: f64, threshold: f64) -> PairPoint {
        let outcome = self.pairs.outcome(pair);
        let (cost, margin, t) = (self.cost(pair), self.margin(pair), self.threshold(outcome));
        let mut point = PairPoint::default();
        let mut add = |sign: f64| {
            let at = self.curve.at(margin - sign * z - t * threshold);
            point.value += cost * at.value;
            point.by_score -= sign * cost * at.derivative;
            point.by_threshold -= t * cost * at.derivative;
            point.score_curvature += cost * at.curvature;
            point.cross_curvature += sign * t * cost * at.curvature;
            point.threshold_curvature += t * t * cost * at.curvature;
            point.rounding.iter_mut().zip(at.rounding).for_each(|(sum, term)| *sum += cost * term);
        };
        add(1.0);
        if outcome == Outcome::Tie && self.ties_as != TiesAs::Nothing {
            add(-1.0);
            // A tie with cost 0 adds nothing to the barrier.
            if self.loss == Loss::Logistic && t != 0.0 && cost > 0.0 {
                let Barrier { value, slope, curvature } = Barrier::at(threshold);
                point.value += cost * value;
                point.by_threshold += cost * slope;
                point.threshold_curvature += cost * curvature;
            }
        }
        point
    }
}

impl Objective for Comparison {
    type Memo = PairMemo;

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.parts[part].rows.clone()
    }

    fn thresholds(&self) -> usize {
        usize::from(self.ties_as == TiesAs::Threshold)
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut PairMemo) -> Result<f64> {
        let Part { rows, pairs } = &self.parts[at.part];
        let threshold = at.thresholds.first().copied().unwrap_or(0.0);
        memo.clear();
        let (mut value, mut by_threshold) = (0.0, 0.0);
        let (scores, slope) = (at.scores, slopes.scores);
        slope.fill(0.0);
        for &pair in self.wanted(pairs, at.cancel) {
            let (row, against) = self.pairs.ordered(pair as usize);
            let (row, against) = (row - rows.start, against - rows.start);
            let at = self.at(pair as usize, scores[row] - scores[against], threshold);
            value += at.value;
            slope[row] += at.by_score;
            slope[against] -= at.by_score;
            by_threshold += at.by_threshold;
            memo.push(&at);
        }
        slopes.thresholds.iter_mut().for_each(|slope| *slope += by_threshold);
        Ok(value)
    }

    fn along(
        &self,
        at: &Place<'_>,
        rates: &dyn Fn() -> Vec<f64>,
        threshold_slope: &mut [f64],
    ) -> Result<Option<(f64, f64)>> {
        let Part { rows, pairs } = &self.parts[at.part];
        if pairs.len() <= STRETCH {
            return Ok(None);
        }
        let (rates, threshold) = (rates(), at.thresholds.first().copied().unwrap_or(0.0));
        let (scores, cancel) = (at.scores, at.cancel);
        let stretch = |stretch: &[u32]| {
            let mut sums = [0.0; 3];
            for &pair in if cancel.is_abandoned() { &[] } else { stretch } {
                let (row, against) = self.pairs.ordered(pair as usize);
                let (row, against) = (row - rows.start, against - rows.start);
                let at = self.at(pair as usize, scores[row] - scores[against], threshold);
                let rate = if rates.is_empty() { 0.0 } else { rates[row] - rates[against] };
                sums[0] += at.value;
                sums[1] += at.by_score * rate;
                sums[2] += at.by_threshold;
            }
            sums
        };
        let stretches: Vec<&[u32]> = self.order[pairs.clone()].chunks(STRETCH).collect();
        let sums: Vec<[f64; 3]> = parallel::map(stretches.len(), |at| stretch(stretches[at]));
        let [mut value, mut slope, mut by_threshold] = [0.0; 3];
        for sums in sums {
            (value, slope, by_threshold) = (value + sums[0], slope + sums[1], by_threshold + sums[2]);
        }
        threshold_slope.iter_mut().for_each(|slope| *slope += by_threshold);
        Ok(Some((value, slope)))
    }
}

/// What a part remembers from its last evaluation: second derivatives of each pair, by its difference of scores and by
/// the threshold.
#[derive(Clone, Debug, Default)]
pub struct PairMemo {
    curvature: Vec<f64>,
    cross: Vec<f64>,
    threshold: f64,
    /// The result of [`Roundable::rounding`].
    rounding: [f64; 2],
}

impl PairMemo {
    fn clear(&mut self) {
        self.curvature.clear();
        self.rounding = [0.0; 2];
        self.cross.clear();
        self.threshold = 0.0;
    }

    fn push(&mut self, at: &PairPoint) {
        self.curvature.push(at.score_curvature);
        self.rounding.iter_mut().zip(at.rounding).for_each(|(sum, term)| *sum += term);
        self.cross.push(at.cross_curvature);
        self.threshold += at.threshold_curvature;
    }
}

impl Curvature for Comparison {
    fn curvature(&self, at: &Place<'_>, memo: &PairMemo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let Part { rows, pairs } = &self.parts[at.part];
        let Directions { count: m, scores: directions, thresholds: threshold_directions } = *along;
        let Slopes { scores: out, thresholds: threshold_out } = out;
        let curved = memo.curvature.iter().zip(&memo.cross);
        out.fill(0.0);
        for (&pair, (&curvature, &cross)) in self.wanted(pairs, at.cancel).zip(curved) {
            if curvature == 0.0 {
                continue;
            }
            let (row, against) = self.pairs.ordered(pair as usize);
            let (row, against) = (m * (row - rows.start), m * (against - rows.start));
            for column in 0..m {
                let difference = directions[row + column] - directions[against + column];
                let pull = curvature * difference
                    + threshold_directions.get(column).map_or(0.0, |direction| cross * direction);
                out[row + column] += pull;
                out[against + column] -= pull;
                if let Some(out) = threshold_out.get_mut(column) {
                    *out += cross * difference;
                }
            }
        }
        for (out, direction) in threshold_out.iter_mut().zip(threshold_directions) {
            *out += memo.threshold * direction;
        }
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        true
    }

    fn diagonal(&self, at: &Place<'_>, memo: &PairMemo, out: &mut [f64]) -> Result<()> {
        let Part { rows, pairs } = &self.parts[at.part];
        out.fill(0.0);
        for (&pair, &curvature) in self.wanted(pairs, at.cancel).zip(&memo.curvature) {
            let (row, against) = self.pairs.ordered(pair as usize);
            out[row - rows.start] += curvature;
            out[against - rows.start] += curvature;
        }
        Ok(())
    }
}

impl Roundable for Comparison {
    fn rounded(&self, width: f64) -> Comparison {
        debug_assert!(self.loss == Loss::Hinge);
        Comparison { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let counted = (0..self.pairs.len()).filter(|&pair| self.cost(pair) > 0.0);
        let largest = counted.map(|pair| self.margin(pair)).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &PairMemo) -> [f64; 3] {
        rounding_terms(memo.rounding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Targets};
    use proptest::prelude::*;

    fn data(rows: usize, list: &[(u32, u32, f64)]) -> Dataset {
        let matrix = Matrix::DenseF64(Dense::new(vec![0.0; rows], rows, 1).expect("valid"));
        let pairs = Pairs::new(
            list.iter().map(|pair| pair.0).collect::<Vec<_>>(),
            list.iter().map(|pair| pair.1).collect::<Vec<_>>(),
        );
        let weights: Vec<f64> = list.iter().map(|pair| pair.2).collect();
        let pairs = pairs.and_then(|pairs| pairs.with_weights(weights)).expect("valid");
        Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("valid")
    }

    #[test]
    fn names_are_those_of_the_files() {
        for way in WeightAs::ALL {
            assert_eq!(serde_json::to_value(way).expect("JSON"), way.name());
        }
    }

    #[test]
    fn weights_are_costs_margins_or_copies() {
        let data = data(3, &[(0, 1, 2.0), (1, 2, 0.0), (2, 0, 3.0)]);
        let costs_and_margins = |way| {
            let task = Comparison::new(&data, TiesAs::Nothing, way, Loss::Hinge, 0.5).expect("valid");
            let each: Vec<(f64, f64)> = (0..3)
                .map(|pair| task.constraint(pair))
                .map(|c| (c.cost, if c.cost > 0.0 { c.margin } else { 0.0 }))
                .collect();
            (each, task.constraints(), task.total_cost())
        };
        assert_eq!(costs_and_margins(WeightAs::Slack), (vec![(1.0, 1.0), (0.0, 0.0), (1.5, 1.0)], 2, 2.5));
        assert_eq!(costs_and_margins(WeightAs::Margin), (vec![(0.5, 2.0), (0.0, 0.0), (0.5, 3.0)], 2, 1.0));
        assert_eq!(costs_and_margins(WeightAs::Copies), (vec![(1.0, 1.0), (0.0, 0.0), (1.5, 1.0)], 5, 2.5));
    }

    #[test]
    fn weights_that_cannot_be_used_are_refused() {
        let half = data(2, &[(0, 1, 1.5)]);
        let error =
            Comparison::new(&half, TiesAs::Nothing, WeightAs::Copies, Loss::Hinge, 1.0).expect_err("half a copy");
        assert_eq!(error.code(), Code::BadWeight);
        assert!(error.message().contains("1.5 of pair 1 (row 1 over row 2)"), "{error}");
        let error =
            Comparison::new(&half, TiesAs::Nothing, WeightAs::Margin, Loss::Logistic, 1.0).expect_err("no margin");
        assert_eq!(error.code(), Code::BadSetting);
        let none = data(2, &[]);
        let error = Comparison::new(&none, TiesAs::Nothing, WeightAs::Slack, Loss::Hinge, 1.0).expect_err("nothing");
        assert_eq!(error.code(), Code::NoPairs);
    }

    #[test]
    fn many_pairs_have_the_value_and_the_slope_along_a_line_that_their_rows_have() {
        let rows = 500u32;
        let list: Vec<(u32, u32, f64)> =
            (0..STRETCH as u32 + 5000).map(|pair| (pair % rows, (pair % rows + 1 + pair % 7) % rows, 1.0)).collect();
        let data = data(rows as usize, &list);
        let outcomes: Vec<Outcome> = (0..list.len()).map(|pair| Outcome::ALL[pair % 3]).collect();
        let pairs = data.pairs().expect("pairs").clone().with_outcomes(outcomes).expect("valid");
        let data = data.with_pairs(pairs).expect("valid");
        let number = |row: u32, of: u32| f64::from((row * of) % 101) / 50.0 - 1.0;
        let (scores, rates): (Vec<f64>, Vec<f64>) = (0..rows).map(|row| (number(row, 37), number(row, 53))).unzip();
        for loss in Loss::ALL {
            let task = Comparison::new(&data, TiesAs::Threshold, WeightAs::Slack, loss, 0.5).expect("valid");
            let (mut slope, mut by_threshold, mut along_threshold) = (vec![0.0; scores.len()], [0.0], [0.0]);
            let at = Place { part: 0, scores: &scores, thresholds: &[0.7], cancel: &Cancel::new() };
            let slopes = Slopes { scores: &mut slope, thresholds: &mut by_threshold };
            let value = task.evaluate(&at, slopes, &mut PairMemo::default()).expect("a value");
            let along = |rates: Vec<f64>, by_threshold: &mut [f64]| {
                task.along(&at, &|| rates.clone(), by_threshold).expect("a value").expect("many pairs")
            };
            let (same, found) = along(rates.clone(), &mut along_threshold);
            let expected: f64 = slope.iter().zip(&rates).map(|(slope, rate)| slope * rate).sum();
            assert!((value - same).abs() <= 1e-9 * value, "{loss:?}: {value} {same}");
            assert!((expected - found).abs() <= 1e-9 * value, "{loss:?}: {expected} {found}");
            assert!((by_threshold[0] - along_threshold[0]).abs() <= 1e-9 * value, "{loss:?}");
            assert_eq!(along(Vec::new(), &mut along_threshold), (same, 0.0));
        }
    }

    proptest! {
        #[test]
        fn parts_give_the_sum_over_listed_pairs(
            list in prop::collection::vec((0..3000u32, 1..40u32, 0..4u8, any::<bool>()), 1..60),
            far in any::<bool>(),
            loss in prop::sample::select(vec![Loss::SquaredHinge, Loss::Logistic]),
        ) {
            // Pairs of nearby rows leave room for cuts; one pair of distant rows joins everything.
            let mut near: Vec<(u32, u32, f64)> =
                list.iter().map(|pair| (pair.0, pair.0 + pair.1, f64::from(pair.2) / 2.0)).collect();
            if far {
                near.push((3039, 0, 1.0));
            }
            let rows = 3040;
            let outcomes: Vec<Outcome> =
                near.iter().enumerate().map(|(at, _)| if at % 3 == 0 { Outcome::Right } else { Outcome::Left }).collect();
            let data = data(rows, &near);
            let pairs = data.pairs().expect("pairs").clone().with_outcomes(outcomes).expect("valid");
            let data = data.with_pairs(pairs.clone()).expect("valid");
            let task = Comparison::new(&data, TiesAs::Nothing, WeightAs::Slack, loss, 0.7).expect("valid");
            prop_assert_eq!(far, task.parts() == 1 && task.rows(0).len() == rows);
            let scores: Vec<f64> = (0..rows).map(|row| ((row * 7919) % 101) as f64 / 40.0).collect();
            let direction: Vec<f64> = (0..2 * rows).map(|at| ((at * 104_729) % 97) as f64 / 50.0 - 1.0).collect();
            let (mut value, mut slope, mut curved) = (0.0, vec![0.0; rows], vec![0.0; 2 * rows]);
            for pair in 0..pairs.len() {
                let (better, worse) = pairs.ordered(pair);
                let cost = 0.7 * pairs.weight(pair);
                let violation = loss.margin() - (scores[better] - scores[worse]);
                value += cost * loss.value(violation);
                slope[better] -= cost * loss.derivative(violation);
                slope[worse] += cost * loss.derivative(violation);
                for m in 0..2 {
                    let d = cost * loss.curvature(violation) * (direction[2 * better + m] - direction[2 * worse + m]);
                    curved[2 * better + m] += d;
                    curved[2 * worse + m] -= d;
                }
            }
            let (mut found, mut found_slope, mut found_curved) = (0.0, vec![0.0; rows], vec![0.0; 2 * rows]);
            for part in 0..task.parts() {
                let range = task.rows(part);
                let mut memo = PairMemo::default();
                let cancel = Cancel::new();
                let at = Place { part, scores: &scores[range.clone()], thresholds: &[], cancel: &cancel };
                let slopes = Slopes { scores: &mut found_slope[range.clone()], thresholds: &mut [] };
                found += task.evaluate(&at, slopes, &mut memo).expect("a value");
                let wide = 2 * range.start..2 * range.end;
                let along = Directions { count: 2, scores: &direction[wide.clone()], thresholds: &[] };
                let out = Slopes { scores: &mut found_curved[wide], thresholds: &mut [] };
                task.curvature(&at, &memo, &along, out).expect("curvature");
            }
            prop_assert!((found - value).abs() <= 1e-12 * (1.0 + value));
            for (a, b) in found_slope.iter().zip(&slope).chain(found_curved.iter().zip(&curved)) {
                prop_assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{} {}", a, b);
            }
        }
    }

    proptest! {
        #[test]
        fn merged_pairs_have_the_values_of_the_pairs_they_stand_for(
            list in prop::collection::vec((0..5u32, 1..5u32, 0..3usize, 0..3u8), 1..40),
            weight_as in prop::sample::select(WeightAs::ALL.to_vec()),
            ties_as in prop::sample::select(vec![TiesAs::Nothing, TiesAs::Contradiction, TiesAs::Threshold]),
            loss in prop::sample::select(Loss::ALL.to_vec()),
            scores in prop::collection::vec(-3.0..3.0f64, 5),
            threshold in 0.1..2.0f64,
        ) {
            let sides: Vec<(u32, u32, f64)> =
                list.iter().map(|&(row, step, _, weight)| (row, (row + step) % 5, f64::from(weight))).collect();
            let outcomes: Vec<Outcome> = list.iter().map(|pair| Outcome::ALL[pair.2]).collect();
            let data = data(5, &sides);
            let pairs = data.pairs().expect("pairs").clone().with_outcomes(outcomes).expect("one each");
            let data = data.with_pairs(pairs).expect("valid");
            let Ok(apart) = Comparison::new(&data, ties_as, weight_as, loss, 0.7) else { return Ok(()) };
            let merged = apart.clone().with_equal_pairs_merged(5);
            prop_assert_eq!(merged.constraints(), apart.constraints());
            prop_assert_eq!(merged.second_constraints(), apart.second_constraints());
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(1.0);
            prop_assert!(close(merged.total_cost(), apart.total_cost()));
            let free = vec![threshold; Objective::thresholds(&apart)];
            let value = |task: &Comparison| {
                let (mut value, mut by_score, mut by_free) = (0.0, vec![0.0; 5], vec![0.0; free.len()]);
                for part in 0..task.parts() {
                    let rows = Objective::rows(task, part);
                    let cancel = crate::run::Cancel::new();
                    let at = Place { part, scores: &scores[rows.clone()], thresholds: &free, cancel: &cancel };
                    let slopes = Slopes { scores: &mut by_score[rows], thresholds: &mut by_free };
                    value += task.evaluate(&at, slopes, &mut Default::default()).expect("a value");
                }
                [vec![value], by_score, by_free].concat()
            };
            let both = value(&merged).into_iter().zip(value(&apart));
            for (one, other) in both {
                prop_assert!(close(one, other), "{one} is not {other}");
            }
        }
    }
}
