//! Pairs of a ranking task, drawn at random and never listed.
//!
//! A *cell* is one level (distinct target) of one query. It represents the pairs of its rows with all rows below. Cells
//! are drawn in exact proportion to their number of pairs, by an alias table over whole numbers. A row of the level and
//! a row below it are then drawn uniformly. So every pair of the task is equally likely. The weight of the pair (the
//! weights of its rows, and [`crate::task::PairWeight`]) becomes its cost.
//!
//! Drawing *queries* uniformly instead learns a problem in which each query has the same weight, for any number of
//! pairs: the problem with [`crate::task::PairWeight::PerQuery`]. There it is the better way to draw; elsewhere it
//! changes the objective.

use super::super::{LinearRisk, Risk, value_and_slopes};
use super::alias::Alias;
use super::draw::{Draw, Sampled, Settled};
use crate::data::Design;
use crate::error::Result;
use crate::loss::Loss;
use crate::random::Random;
use crate::run::Cancel;
use crate::task::{Constraint, Intercept, Ranking, TargetOrder};
use crate::wish::Sample;

/// The stream of random numbers for this use of the seed.
const PAIRS: u64 = 0x7367_6401;

/// A ranking task as a stream of pairs.
pub(crate) struct ByPair<'a> {
    task: &'a Ranking,
    loss: Loss,
    queries: Vec<Query<'a>>,
    cells: Vec<Cell>,
    /// Over cells, or none if queries are drawn.
    alias: Option<Alias>,
    pass: usize,
}

struct Query<'a> {
    /// Its number in the task.
    group: usize,
    order: TargetOrder<'a>,
    first_cell: u32,
    pairs: u64,
    /// The factor from the weight of a pair to a cost that is 1 on average over the drawn pairs.
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
    /// A pass draws as many pairs as there are rows in pairs, or `pass` pairs.
    pub(crate) fn new(task: &'a Ranking, loss: Loss, sample: Sample, pass: Option<usize>) -> ByPair<'a> {
        let (mut queries, mut cells): (Vec<Query<'_>>, Vec<Cell>) = (Vec::new(), Vec::new());
        let (mut rows, mut all_pairs, mut all_weight) = (0, 0, 0.0);
        for (group, order) in task.target_orders().enumerate() {
            let weight = order.weight;
            // If pairs are drawn, such a query costs nothing; if queries are drawn, it has no share.
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
            queries.push(Query { group, order, first_cell, pairs, share: pairs as f64 / weight });
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
        let better = cell.start + random.below(u64::from(cell.end - cell.start)) as u32;
        let worse = random.below(u64::from(cell.start)) as u32;
        let row = |place: u32| query.order.first_row + query.order.by_target[place as usize] as usize;
        Constraint {
            row: row(better),
            against: Some(row(worse)),
            coefficient: 1.0,
            threshold: 0.0,
            margin: self.loss.margin(),
            cost: query.share * self.task.weight_of_pair(query.group, better, worse),
        }
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

    fn draws<'s>(&'s self, _design: &'s Design, seed: u64, stream: u64) -> Box<dyn Draw + 's> {
        Box::new(RandomPairs { pairs: self, random: Random::new(seed, PAIRS, stream) })
    }

    fn settled(
        &self,
        design: &Design,
        weights: &[f64],
        near: f64,
        _intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Settled> {
        let mut gradient = vec![0.0; weights.len()];
        let objective = LinearRisk::new(self.task, design, false, cancel).evaluate(weights, &mut gradient)?;
        // After a cancel the value is incomplete.
        cancel.check()?;
        Ok(Settled { threshold: near, objective })
    }

    fn settled_at(
        &self,
        scores: &[f64],
        penalty: f64,
        near: f64,
        _intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Settled> {
        Ok(Settled { threshold: near, objective: penalty + value_and_slopes(self.task, scores, cancel)?.0 })
    }

    fn at_zero(&self, _intercept: Intercept) -> Settled {
        Settled { threshold: 0.0, objective: self.total_cost() * self.loss.value(self.loss.margin()) }
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
