//! Pairs of a ranking task, drawn at random and never listed.
//!
//! A *cell* is one level (distinct target) of one query: it stands for the pairs of its rows with all rows below. Cells
//! are drawn in exact proportion to their pairs, by an alias table over whole numbers; a row of the level and a row below
//! it are then drawn alike. That makes every pair of the task equally likely. Row weights enter as the cost of the pair.
//!
//! Drawing *queries* alike instead learns a different problem, in which each query counts the same however many pairs it
//! has: the pairs of a query share its chance.

use super::super::{LinearRisk, Risk};
use super::alias::Alias;
use super::draw::{Draw, Sampled};
use crate::data::Design;
use crate::loss::Loss;
use crate::random::Random;
use crate::run::Cancel;
use crate::task::{Constraint, Intercept, Ranking, TargetOrder};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What is equally likely when pairs are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// Every pair.
    #[default]
    Pairs,
    /// Every query, and within it every pair.
    Queries,
}

impl Sample {
    /// Every way there is.
    pub const ALL: [Sample; 2] = [Sample::Pairs, Sample::Queries];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Sample::Pairs => "pairs",
            Sample::Queries => "queries",
        }
    }
}

/// This use of the seed.
const PAIRS: u64 = 0x7367_6401;

/// A ranking task as a stream of pairs.
pub(crate) struct ByPair<'a> {
    task: &'a Ranking,
    loss: Loss,
    queries: Vec<Query<'a>>,
    cells: Vec<Cell>,
    /// Over cells, or none where queries are drawn.
    alias: Option<Alias>,
    pass: usize,
}

struct Query<'a> {
    order: TargetOrder<'a>,
    first_cell: u32,
    pairs: u64,
    /// What a product of two row weights is multiplied by: pairs cost 1 on average over what is drawn alike.
    share: f64,
}

struct Cell {
    query: u32,
    /// The level within the query's target order.
    start: u32,
    end: u32,
    /// Pairs of the query up to this cell.
    pairs: u64,
}

impl<'a> ByPair<'a> {
    /// A pass draws as many pairs as there are rows in them, or as many as asked for.
    pub(crate) fn new(task: &'a Ranking, loss: Loss, sample: Sample, pass: Option<usize>) -> ByPair<'a> {
        let weights = task.row_weights();
        let (mut queries, mut cells): (Vec<Query<'_>>, Vec<Cell>) = (Vec::new(), Vec::new());
        let (mut rows, mut all_pairs, mut all_weight) = (0, 0, 0.0);
        for order in task.target_orders() {
            let weight = order.pair_weight(weights);
            // Where pairs are drawn such a query costs nothing, where queries are it has no share.
            if weight <= 0.0 {
                continue;
            }
            let (first_cell, mut pairs) = (cells.len() as u32, 0);
            for level in order.levels.windows(2).skip(1) {
                pairs += u64::from(level[0]) * u64::from(level[1] - level[0]);
                cells.push(Cell { query: queries.len() as u32, start: level[0], end: level[1], pairs });
            }
            rows += order.by_target.len();
            all_pairs += pairs;
            all_weight += weight;
            queries.push(Query { order, first_cell, pairs, share: pairs as f64 / weight });
        }
        let alias = (sample == Sample::Pairs).then(|| {
            queries.iter_mut().for_each(|query| query.share = all_pairs as f64 / all_weight);
            Alias::new(&cells.iter().map(Cell::own_pairs).collect::<Vec<u64>>())
        });
        ByPair { task, loss, queries, cells, alias, pass: pass.unwrap_or(rows) }
    }

    fn draw(&self, random: &mut Random) -> Constraint {
        let cell = match &self.alias {
            Some(alias) => &self.cells[alias.draw(random)],
            None => {
                let number = random.below(self.queries.len() as u64) as usize;
                let query = &self.queries[number];
                let end = self.queries.get(number + 1).map_or(self.cells.len(), |next| next.first_cell as usize);
                let cells = &self.cells[query.first_cell as usize..end];
                let pair = random.below(query.pairs);
                &cells[cells.partition_point(|cell| cell.pairs <= pair)]
            }
        };
        let query = &self.queries[cell.query as usize];
        let row = |at: u64| query.order.first_row + query.order.by_target[at as usize] as usize;
        let better = row(u64::from(cell.start) + random.below(u64::from(cell.end - cell.start)));
        let worse = row(random.below(u64::from(cell.start)));
        Constraint {
            row: better,
            against: Some(worse),
            coefficient: 1.0,
            threshold: 0.0,
            margin: self.loss.margin(),
            cost: self.cost(query, better, worse),
        }
    }

    /// What a pair costs beside others that are drawn.
    fn cost(&self, query: &Query<'_>, better: usize, worse: usize) -> f64 {
        query.share * self.task.row_weights().map_or(1.0, |weights| weights[better] * weights[worse])
    }

    #[cfg(test)]
    pub(super) fn cost_of(&self, better: usize, worse: usize) -> Option<f64> {
        let holds =
            |query: &&Query<'_>| (0..query.order.by_target.len()).contains(&better.wrapping_sub(query.order.first_row));
        self.queries.iter().find(holds).map(|query| self.cost(query, better, worse))
    }
}

impl Cell {
    fn own_pairs(&self) -> u64 {
        u64::from(self.start) * u64::from(self.end - self.start)
    }
}

impl Sampled for ByPair<'_> {
    fn loss(&self) -> Loss {
        self.loss
    }

    fn total_cost(&self) -> f64 {
        self.task.total_cost()
    }

    fn draws(&self, seed: u64, stream: u64) -> Box<dyn Draw + '_> {
        Box::new(RandomPairs { pairs: self, random: Random::new(seed, PAIRS, stream) })
    }

    fn objective(&self, design: &Design, weights: &[f64], _threshold: f64, _intercept: Intercept) -> f64 {
        ranking_objective(self.task, self.loss, design, weights)
    }

    fn best_threshold(&self, _design: &Design, _weights: &[f64], near: f64) -> f64 {
        near
    }
}

struct RandomPairs<'a> {
    pairs: &'a ByPair<'a>,
    random: Random,
}

impl Draw for RandomPairs<'_> {
    fn count(&self) -> usize {
        self.pairs.pass
    }

    fn start(&mut self) {}

    fn next(&mut self) -> Constraint {
        self.pairs.draw(&mut self.random)
    }
}

/// The primal value of a ranking task over all its pairs, from scratch: what is reported, and what `verify` checks.
pub(crate) fn ranking_objective(task: &Ranking, loss: Loss, design: &Design, weights: &[f64]) -> f64 {
    if loss == Loss::Hinge {
        let half_square = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        return half_square + hinge_sum(task, &design.all_scores(weights));
    }
    let cancel = Cancel::new();
    LinearRisk::new(task, design, false, &cancel).evaluate(weights, &mut vec![0.0; weights.len()])
}

/// C · Σ over pairs of u_i u_j · max(0, 1 − (s_i − s_j)), in O(n log grades) once scores are sorted: rows are met from the
/// top, and sums over the rows within a margin are kept by grade.
pub(super) fn hinge_sum(task: &Ranking, scores: &[f64]) -> f64 {
    let weights = task.row_weights();
    let orders: Vec<TargetOrder<'_>> = task.target_orders().collect();
    let sums: Vec<f64> = orders
        .par_iter()
        .map(|order| {
            let mut grade = vec![0u32; order.by_target.len()];
            for (number, level) in order.levels.windows(2).enumerate() {
                order.by_target[level[0] as usize..level[1] as usize]
                    .iter()
                    .for_each(|&at| grade[at as usize] = number as u32);
            }
            let mut from_top: Vec<u32> = (0..grade.len() as u32).collect();
            let score = |at: u32| scores[order.first_row + at as usize];
            from_top.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
            let mut below = SumsBelow::new(order.levels.len() - 1);
            let (mut next, mut sum) = (0, 0.0);
            let weight = |at: u32| weights.map_or(1.0, |weights| weights[order.first_row + at as usize]);
            for &better in &from_top {
                while next < from_top.len() && 1.0 - (score(better) - score(from_top[next])) > 0.0 {
                    let worse = from_top[next];
                    below.add(grade[worse as usize], weight(worse), weight(worse) * score(worse));
                    next += 1;
                }
                let (total, scores) = below.sums(grade[better as usize]);
                sum += weight(better) * ((1.0 - score(better)) * total + scores);
            }
            sum
        })
        .collect();
    task.cost() * sums.iter().sum::<f64>()
}

/// Sums over rows of lower grades (a Fenwick tree).
struct SumsBelow(Vec<(f64, f64)>);

impl SumsBelow {
    fn new(grades: usize) -> SumsBelow {
        SumsBelow(vec![(0.0, 0.0); grades + 1])
    }

    fn add(&mut self, grade: u32, weight: f64, score: f64) {
        let mut at = grade as usize + 1;
        while let Some(node) = self.0.get_mut(at) {
            node.0 += weight;
            node.1 += score;
            at += at & at.wrapping_neg();
        }
    }

    /// Over the grades below this one.
    fn sums(&self, grade: u32) -> (f64, f64) {
        let (mut at, mut sums) = (grade as usize, (0.0, 0.0));
        while at > 0 {
            sums.0 += self.0[at].0;
            sums.1 += self.0[at].1;
            at &= at - 1;
        }
        sums
    }
}
