//! Which constraint comes next: all of a task in random order. How pairs are drawn stands in [`super::pairs`].

use super::super::certificate::{best_threshold, primal_value};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::random::Random;
use crate::task::{Constraint, Independent, Intercept};

/// A stream of constraints. Their costs are relative: 1 on average, so that steps do not depend on how many there are.
pub(crate) trait Draw {
    /// How many constraints a pass has.
    fn count(&self) -> usize;
    /// Begins a pass.
    fn start(&mut self);
    /// The next constraint of the pass.
    fn next(&mut self) -> Constraint;
}

/// A task whose constraints can be drawn one by one, with what the loop must know about all of them.
pub(crate) trait Sampled: Sync {
    /// The loss they share.
    fn loss(&self) -> Loss;
    /// Σ cost over all constraints, which is 1/λ.
    fn total_cost(&self) -> f64;
    /// A stream of them; streams of other numbers are independent.
    fn draws(&self, seed: u64, stream: u64) -> Box<dyn Draw + '_>;
    /// The primal value, from scratch.
    fn objective(&self, design: &Design, weights: &[f64], threshold: f64, intercept: Intercept) -> f64;
    /// The threshold that minimises the loss for these weights.
    fn best_threshold(&self, design: &Design, weights: &[f64], near: f64) -> f64;
}

/// A task with one constraint a block, drawn without replacement: each block that costs anything once a pass.
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
}

impl<T: Independent> Sampled for ByRow<'_, T> {
    fn loss(&self) -> Loss {
        self.task.loss()
    }

    fn total_cost(&self) -> f64 {
        self.total_cost
    }

    fn draws(&self, seed: u64, stream: u64) -> Box<dyn Draw + '_> {
        Box::new(RandomOrder {
            task: self.task,
            order: self.blocks.clone(),
            next: 0,
            share: self.blocks.len() as f64 / self.total_cost,
            random: Random::new(seed, ORDER, stream),
        })
    }

    fn objective(&self, design: &Design, weights: &[f64], threshold: f64, intercept: Intercept) -> f64 {
        primal_value(self.task, design, weights, threshold, intercept)
    }

    fn best_threshold(&self, design: &Design, weights: &[f64], near: f64) -> f64 {
        best_threshold(self.task, &design.all_scores(weights), near)
    }
}

/// This use of the seed.
const ORDER: u64 = 0x7367_6400;

struct RandomOrder<'a, T> {
    task: &'a T,
    order: Vec<u32>,
    next: usize,
    /// What turns a cost into a relative one.
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
    }

    #[inline]
    fn next(&mut self) -> Constraint {
        let c = self.task.constraint(self.order[self.next] as usize);
        self.next += 1;
        Constraint { cost: c.cost * self.share, ..c }
    }
}

/// Constraints that were drawn before, in the same order every time.
pub(super) struct Listed {
    list: Vec<Constraint>,
    next: usize,
}

impl Listed {
    /// The first constraints of a stream, as many as there are in a pass at most.
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
