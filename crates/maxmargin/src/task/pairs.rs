//! Ranking by explicit pairs.
//!
//! ```text
//! min  ½‖w‖² + Σ_p C_p · loss(m_p − (s_better(p) − s_worse(p))),   s = Xw
//! ```
//! One constraint a pair, over the rows of one data set. There is no intercept: it would cancel. The weight u_p of a
//! pair enters in one of three ways ([`PairWeightAs`]):
//!
//! | | C_p | m_p |
//! |---|---|---|
//! | slack | C·u_p | m |
//! | margin | C | u_p |
//! | replicate | C·u_p, u_p a whole number | m |
//!
//! m is 1, or 0 for the logistic loss, which then has no margin to scale. A pair of weight 0 says nothing in any of them.
//!
//! As an [`Objective`] the rows fall into parts that no pair crosses: runs of rows between which nothing is compared,
//! gathered up to about a thousand rows. Cost of a value, slope or product with the Hessian: O(rows + pairs).
//!
//! Reference: Herbrich, Graepel & Obermayer, Large margin rank boundaries for ordinal regression, Advances in Large
//! Margin Classifiers (2000).

use super::{BlockMemo, Constraint, Curvature, Independent, Objective, Roundable};
use crate::data::{Dataset, Pairs};
use crate::error::{Code, Error, Result};
use crate::loss::{Curve, Loss};
use crate::wording::count;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// What the weight of a pair does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairWeightAs {
    /// It multiplies what missing the margin costs.
    #[default]
    Slack,
    /// It is the margin to be reached.
    Margin,
    /// It is how often the pair counts: a whole number.
    Replicate,
}

impl PairWeightAs {
    /// Every way there is.
    pub const ALL: [PairWeightAs; 3] = [PairWeightAs::Slack, PairWeightAs::Margin, PairWeightAs::Replicate];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            PairWeightAs::Slack => "slack",
            PairWeightAs::Margin => "margin",
            PairWeightAs::Replicate => "replicate",
        }
    }
}

/// The task: the two rows, the cost and the margin of each pair.
#[derive(Clone, Debug)]
pub struct PairRanking {
    pairs: Pairs,
    weight_as: PairWeightAs,
    loss: Loss,
    curve: Curve,
    c: f64,
    constraints: u64,
    parts: Arc<[Part]>,
    /// Pairs in the order of their parts.
    order: Arc<[u32]>,
}

/// A run of rows that no pair leaves, and where its pairs stand in the order.
#[derive(Clone, Debug)]
struct Part {
    rows: Range<usize>,
    pairs: Range<usize>,
}

/// Rows gathered in a part, where no pair asks for more.
const PART: usize = 1024;

impl PairRanking {
    /// A task over the pairs of a data set.
    pub fn new(data: &Dataset, weight_as: PairWeightAs, loss: Loss, c: f64) -> Result<PairRanking> {
        let pairs = data.pairs().filter(|pairs| !pairs.is_empty()).ok_or_else(|| {
            Error::new(Code::NoPairs, "there are no pairs, so there is nothing to rank")
                .help("give at least one pair of a better and a worse item")
        })?;
        if weight_as == PairWeightAs::Margin && loss == Loss::Logistic {
            return Err(Error::new(Code::BadSetting, "the logistic loss has no margin that a weight could set")
                .help("use --pair-weight-as slack, or --loss hinge or squared-hinge"));
        }
        let counted = (0..pairs.len()).filter(|&pair| pairs.weight(pair) > 0.0);
        let constraints = match weight_as {
            PairWeightAs::Slack | PairWeightAs::Margin => counted.count() as u64,
            PairWeightAs::Replicate => copies(data, pairs)?,
        };
        let (parts, order) = parts(pairs, data.rows());
        let curve = Curve::Sharp(loss);
        let (parts, order) = (parts.into(), order.into());
        Ok(PairRanking { pairs: pairs.clone(), weight_as, loss, curve, c, constraints, parts, order })
    }

    /// The same task with another weight of the loss.
    pub fn with_cost(self, c: f64) -> PairRanking {
        PairRanking { c, ..self }
    }

    /// Sets another weight of the loss.
    pub(crate) fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    /// The total weight of the loss.
    pub fn total_cost(&self) -> f64 {
        (0..self.pairs.len()).map(|pair| self.cost(pair)).sum()
    }

    /// Number of constraints that can cost anything; copies count.
    pub fn constraints(&self) -> u64 {
        self.constraints
    }

    #[inline]
    fn cost(&self, pair: usize) -> f64 {
        let weight = self.pairs.weight(pair);
        match self.weight_as {
            PairWeightAs::Slack | PairWeightAs::Replicate => self.c * weight,
            PairWeightAs::Margin if weight > 0.0 => self.c,
            PairWeightAs::Margin => 0.0,
        }
    }

    #[inline]
    fn margin(&self, pair: usize) -> f64 {
        match self.weight_as {
            PairWeightAs::Slack | PairWeightAs::Replicate => self.loss.margin(),
            PairWeightAs::Margin => self.pairs.weight(pair),
        }
    }
}

/// Beyond this a weight is a slip, and copies could no longer be counted one by one.
const MOST_COPIES: f64 = u32::MAX as f64;

/// How many pairs there are, each as often as its weight says.
fn copies(data: &Dataset, pairs: &Pairs) -> Result<u64> {
    let mut total = 0u64;
    for pair in 0..pairs.len() {
        let weight = pairs.weight(pair);
        if weight.fract() != 0.0 || weight > MOST_COPIES {
            let (better, worse) = pairs.ordered(pair);
            let of_pair = format!("pair {} ({} over {})", pair + 1, data.row_name(better), data.row_name(worse));
            let (message, help) = if weight > MOST_COPIES {
                let most = count(MOST_COPIES as u64);
                (
                    format!(
                        "the weight of {of_pair} is {weight:e}, and no pair is copied more often than {most} times"
                    ),
                    "give smaller weights; --pair-weight-as slack takes them as costs, which count the same",
                )
            } else {
                (
                    format!("the weight {weight} of {of_pair} is no number of copies"),
                    "copies are whole numbers; fractions go with --pair-weight-as slack, which counts the same",
                )
            };
            return Err(Error::new(Code::BadWeight, message).help(help));
        }
        total += weight as u64;
    }
    Ok(total)
}

/// Cuts the rows wherever no pair crosses, gathers short runs, and sorts the pairs by part.
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

impl Independent for PairRanking {
    fn blocks(&self) -> usize {
        self.pairs.len()
    }

    fn loss(&self) -> Loss {
        self.loss
    }

    #[inline]
    fn constraint(&self, block: usize) -> Constraint {
        let (better, worse) = self.pairs.ordered(block);
        Constraint {
            row: better,
            against: Some(worse),
            coefficient: 1.0,
            threshold: 0.0,
            margin: self.margin(block),
            cost: self.cost(block),
        }
    }
}

impl Objective for PairRanking {
    type Memo = BlockMemo;

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.parts[part].rows.clone()
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
        memo: &mut BlockMemo,
    ) -> f64 {
        let Part { rows, pairs } = &self.parts[part];
        memo.curvature.clear();
        memo.rounding = [0.0; 2];
        slope.fill(0.0);
        let mut value = 0.0;
        for &pair in &self.order[pairs.clone()] {
            let c = self.constraint(pair as usize);
            let (better, worse) = self.pairs.ordered(pair as usize);
            let (better, worse) = (better - rows.start, worse - rows.start);
            let violation = c.margin - (scores[better] - scores[worse]);
            let at = self.curve.at(violation);
            value += c.cost * at.value;
            slope[better] -= c.cost * at.derivative;
            slope[worse] += c.cost * at.derivative;
            memo.curvature.push(c.cost * at.curvature);
            memo.rounding.iter_mut().zip(at.rounding).for_each(|(sum, term)| *sum += c.cost * term);
        }
        value
    }
}

impl Curvature for PairRanking {
    fn curvature(
        &self,
        part: usize,
        memo: &BlockMemo,
        m: usize,
        directions: &[f64],
        _threshold_directions: &[f64],
        out: &mut [f64],
        _threshold_out: &mut [f64],
    ) {
        let Part { rows, pairs } = &self.parts[part];
        out.fill(0.0);
        for (&pair, &curvature) in self.order[pairs.clone()].iter().zip(&memo.curvature) {
            if curvature == 0.0 {
                continue;
            }
            let (better, worse) = self.pairs.ordered(pair as usize);
            let (better, worse) = (m * (better - rows.start), m * (worse - rows.start));
            for column in 0..m {
                let pull = curvature * (directions[better + column] - directions[worse + column]);
                out[better + column] += pull;
                out[worse + column] -= pull;
            }
        }
    }

    fn only_differences_count(&self) -> bool {
        true
    }

    fn diagonal(&self, part: usize, memo: &BlockMemo, out: &mut [f64]) {
        let Part { rows, pairs } = &self.parts[part];
        out.fill(0.0);
        for (&pair, &curvature) in self.order[pairs.clone()].iter().zip(&memo.curvature) {
            let (better, worse) = self.pairs.ordered(pair as usize);
            out[better - rows.start] += curvature;
            out[worse - rows.start] += curvature;
        }
    }
}

impl Roundable for PairRanking {
    fn rounded(&self, width: f64) -> PairRanking {
        debug_assert!(self.loss == Loss::Hinge);
        PairRanking { curve: Curve::Rounded(width), ..self.clone() }
    }

    fn margin_scale(&self) -> f64 {
        let counted = (0..self.pairs.len()).filter(|&pair| self.cost(pair) > 0.0);
        let largest = counted.map(|pair| self.margin(pair)).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }

    fn rounding(&self, _part: usize, memo: &BlockMemo) -> [f64; 3] {
        memo.rounding()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix, Outcome, Targets};
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
        for way in PairWeightAs::ALL {
            assert_eq!(serde_json::to_value(way).expect("JSON"), way.name());
        }
    }

    #[test]
    fn weights_are_costs_margins_or_copies() {
        let data = data(3, &[(0, 1, 2.0), (1, 2, 0.0), (2, 0, 3.0)]);
        let costs_and_margins = |way| {
            let task = PairRanking::new(&data, way, Loss::Hinge, 0.5).expect("valid");
            let each: Vec<(f64, f64)> = (0..3)
                .map(|pair| task.constraint(pair))
                .map(|c| (c.cost, if c.cost > 0.0 { c.margin } else { 0.0 }))
                .collect();
            (each, task.constraints(), task.total_cost())
        };
        assert_eq!(costs_and_margins(PairWeightAs::Slack), (vec![(1.0, 1.0), (0.0, 0.0), (1.5, 1.0)], 2, 2.5));
        assert_eq!(costs_and_margins(PairWeightAs::Margin), (vec![(0.5, 2.0), (0.0, 0.0), (0.5, 3.0)], 2, 1.0));
        assert_eq!(costs_and_margins(PairWeightAs::Replicate), (vec![(1.0, 1.0), (0.0, 0.0), (1.5, 1.0)], 5, 2.5));
    }

    #[test]
    fn weights_that_cannot_be_used_are_refused() {
        let half = data(2, &[(0, 1, 1.5)]);
        let error = PairRanking::new(&half, PairWeightAs::Replicate, Loss::Hinge, 1.0).expect_err("half a copy");
        assert_eq!(error.code(), Code::BadWeight);
        assert!(error.message().contains("1.5 of pair 1 (row 1 over row 2)"), "{error}");
        let error = PairRanking::new(&half, PairWeightAs::Margin, Loss::Logistic, 1.0).expect_err("no margin");
        assert_eq!(error.code(), Code::BadSetting);
        let none = data(2, &[]);
        let error = PairRanking::new(&none, PairWeightAs::Slack, Loss::Hinge, 1.0).expect_err("nothing");
        assert_eq!(error.code(), Code::NoPairs);
    }

    proptest! {
        #[test]
        fn parts_give_the_sum_over_listed_pairs(
            list in prop::collection::vec((0..3000u32, 1..40u32, 0..4u8, any::<bool>()), 1..60),
            far in any::<bool>(),
            loss in prop::sample::select(vec![Loss::SquaredHinge, Loss::Logistic]),
        ) {
            // Near partners leave room for cuts; one far pair joins everything.
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
            let task = PairRanking::new(&data, PairWeightAs::Slack, loss, 0.7).expect("valid");
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
                let mut memo = BlockMemo::default();
                found += task.evaluate(
                    part, &scores[range.clone()], &[], &mut found_slope[range.clone()], &mut [], &mut memo,
                );
                let wide = 2 * range.start..2 * range.end;
                task.curvature(part, &memo, 2, &direction[wide.clone()], &[], &mut found_curved[wide], &mut []);
            }
            prop_assert!((found - value).abs() <= 1e-12 * (1.0 + value));
            for (a, b) in found_slope.iter().zip(&slope).chain(found_curved.iter().zip(&curved)) {
                prop_assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{} {}", a, b);
            }
        }
    }
}
