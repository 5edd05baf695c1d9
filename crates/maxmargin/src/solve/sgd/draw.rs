//! Which constraint comes next: all of a task in random order. [`super::pairs`] describes how pairs are drawn.

use super::super::values::{best_threshold, primal_of_scores};
use crate::data::{Design, Visits};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::random::Random;
use crate::run::Cancel;
use crate::task::{Constraint, Independent, Intercept};

/// A stream of constraints. Their costs are relative: 1 on average, so that steps do not depend on how many there are.
pub trait Draw {
    /// How many constraints a pass has.
    fn count(&self) -> usize;
    /// Begins a pass.
    fn start(&mut self);
    /// The next constraint of the pass.
    fn next(&mut self) -> Constraint;
    /// Called from time to time: the constraints before the next one are not needed again. If memory is limited, their
    /// rows are released.
    fn moved(&mut self) {}
}

/// A threshold, and the primal value with it.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub(crate) threshold: f64,
    pub(crate) objective: f64,
}

/// A task whose constraints can be drawn one by one, with the values over all constraints that the loop needs.
pub trait Sampled: Sync {
    /// The loss they share.
    fn loss(&self) -> Loss;
    /// Σ cost over all constraints, which is 1/λ.
    fn total_cost(&self) -> f64;
    /// A stream of constraints over the rows of `design`. Streams with different numbers are independent.
    fn draws<'s>(&'s self, design: &'s Design, seed: u64, stream: u64) -> Box<dyn Draw + 's>;
    /// The primal value, from scratch. A free threshold is set to its minimum, otherwise it is `near`. Returns an error
    /// after a cancel.
    fn settled(
        &self,
        design: &Design,
        weights: &[f64],
        near: f64,
        intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Settled>;
    /// The same, if the scores of all rows and the penalty are known.
    fn settled_at(
        &self,
        scores: &[f64],
        penalty: f64,
        near: f64,
        intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Settled>;
    /// The same for zero weights, without reading features.
    fn at_zero(&self, intercept: Intercept) -> Settled;
}

/// A task with one constraint per block, drawn without replacement: each block with a positive cost once per pass.
pub(crate) struct ByRow<'a, T> {
    task: &'a T,
    blocks: Vec<u32>,
    total_cost: f64,
}

impl<'a, T: Independent> ByRow<'a, T> {
    pub(crate) fn new(task: &'a T) -> Result<ByRow<'a, T>> {
        let count = u32::try_from(task.blocks()).map_err(|_| {
            Error::new(Code::BadSetting, "more than 4,294,967,295 rows; stochastic solvers take fewer")
                .help("train on a sample of the rows")
        })?;
        let blocks = (0..count).filter(|&block| task.constraint(block as usize).cost > 0.0).collect();
        let total_cost = (0..task.blocks()).map(|block| task.constraint(block).cost).sum();
        Ok(ByRow { task, blocks, total_cost })
    }

    fn settled_scores(&self, weights: &[f64], scores: &[f64], near: f64, intercept: Intercept) -> Settled {
        let threshold =
            if intercept == Intercept::Free { best_threshold(self.task, |row| scores[row], near) } else { near };
        Settled { threshold, objective: primal_of_scores(self.task, weights, scores, threshold, intercept) }
    }
}

impl<T: Independent> Sampled for ByRow<'_, T> {
    fn loss(&self) -> Loss {
        self.task.loss()
    }

    fn total_cost(&self) -> f64 {
        self.total_cost
    }

    fn draws<'s>(&'s self, design: &'s Design, seed: u64, stream: u64) -> Box<dyn Draw + 's> {
        Box::new(RandomOrder {
            task: self.task,
            design,
            visits: Visits::default(),
            order: self.blocks.clone(),
            next: 0,
            share: self.blocks.len() as f64 / self.total_cost,
            random: Random::new(seed, ORDER, stream),
        })
    }

    fn settled(
        &self,
        design: &Design,
        weights: &[f64],
        near: f64,
        intercept: Intercept,
        cancel: &Cancel,
    ) -> Result<Settled> {
        let scores = design.scores_until(weights, cancel)?;
        Ok(self.settled_scores(weights, &scores, near, intercept))
    }

    fn settled_at(
        &self,
        scores: &[f64],
        penalty: f64,
        near: f64,
        intercept: Intercept,
        _cancel: &Cancel,
    ) -> Result<Settled> {
        let Settled { threshold, objective } = self.settled_scores(&[], scores, near, intercept);
        Ok(Settled { threshold, objective: penalty + objective })
    }

    fn at_zero(&self, intercept: Intercept) -> Settled {
        let constraints = (0..self.task.blocks()).map(|block| self.task.constraint(block));
        let rows = constraints.map(|c| c.row.max(c.against.unwrap_or(0)) + 1).max().unwrap_or(0);
        self.settled_scores(&[], &vec![0.0; rows], 0.0, intercept)
    }
}

/// The stream of random numbers for this use of the seed.
const ORDER: u64 = 0x7367_6400;

struct RandomOrder<'a, T> {
    task: &'a T,
    design: &'a Design,
    /// The order of blocks of rows, if memory is limited.
    visits: Visits,
    order: Vec<u32>,
    next: usize,
    /// The factor from a cost to a relative cost.
    share: f64,
    random: Random,
}

impl<T: Independent> Draw for RandomOrder<'_, T> {
    fn count(&self) -> usize {
        self.order.len()
    }

    fn start(&mut self) {
        self.random.shuffle(&mut self.order);
        self.next = 0;
        let residency = self.design.matrix().residency();
        self.visits = Visits::new(&residency, &mut self.random);
        let task = self.task;
        self.visits.arrange(&residency, &mut self.order, |block| task.constraint(block as usize).row);
    }

    #[inline]
    fn next(&mut self) -> Constraint {
        let c = self.task.constraint(self.order[self.next] as usize);
        self.next += 1;
        Constraint { cost: c.cost * self.share, ..c }
    }

    fn moved(&mut self) {
        let next = self.order.get(self.next).map(|&block| self.task.constraint(block as usize).row);
        self.visits.moved(&self.design.matrix().residency(), std::iter::once(next));
    }
}

/// Constraints that were drawn before, always in the same order.
pub(super) struct Listed {
    list: Vec<Constraint>,
    next: usize,
}

impl Listed {
    /// The first `most` constraints of a stream, but at most one pass.
    pub(super) fn first(draws: &mut dyn Draw, most: usize) -> Listed {
        draws.start();
        let count = draws.count().min(most);
        Listed { list: (0..count).map(|_| draws.next()).collect(), next: 0 }
    }

    pub(super) fn list(&self) -> &[Constraint] {
        &self.list
    }
}

impl Draw for Listed {
    fn count(&self) -> usize {
        self.list.len()
    }

    fn start(&mut self) {
        self.next = 0;
    }

    fn next(&mut self) -> Constraint {
        let c = self.list[self.next];
        self.next += 1;
        c
    }
}
