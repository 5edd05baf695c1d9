//! Where the next fit of a path starts.
//!
//! Weights carry over as they are: Newton's method corrects them in a step or two. Dual variables do not, since their
//! limits are multiples of C.

use crate::solve::{Solution, Start, Witness};
use crate::task::Independent;
use crate::train::{Problem, Tasks};

/// The solution as a start.
pub(super) fn start_of(solution: Solution) -> Start {
    let dual = match solution.witness {
        Witness::Dual(alpha) => Some(alpha),
        Witness::Weights => None,
    };
    Start { weights: solution.weights, thresholds: solution.thresholds, dual }
}

/// A start made for `problem` out of the solution of the same problem with C smaller by `ratio`.
pub(super) fn carried(mut start: Start, problem: &Problem, ratio: f64) -> Start {
    if let (Some(dual), Tasks::Binary(task, _)) = (&mut start.dual, &problem.task) {
        carry_dual(task, dual, ratio);
    }
    start
}

fn carry_dual<T: Independent>(task: &T, dual: &mut [f64], ratio: f64) {
    let rule = std::env::var("RULE").unwrap_or_default();
    for (block, alpha) in dual.iter_mut().enumerate() {
        let limit = task.loss().dual_limit(task.constraint(block).cost);
        let bounded = *alpha >= limit / ratio * (1.0 - 1e-9);
        *alpha = match rule.as_str() {
            "keep" => *alpha,
            "bound" if bounded => limit,
            "bound" => *alpha,
            _ => *alpha * ratio,
        }
        .min(limit);
    }
}

/// A start for all rows out of the starts of folds, each of which held some of the rows out. A row is held out once, so
/// that the sum of its dual variables over the others is a mean: it keeps within every bound, and balanced where they are.
pub(super) fn pooled<'a>(starts: impl ExactSizeIterator<Item = &'a Start>) -> Start {
    let folds = starts.len() as f64;
    let mut pooled = Start::default();
    for start in starts {
        add(&mut pooled.weights, &start.weights, 1.0 / folds);
        add(&mut pooled.thresholds, &start.thresholds, 1.0 / folds);
        if let Some(dual) = &start.dual {
            add(pooled.dual.get_or_insert_default(), dual, 1.0 / (folds - 1.0));
        }
    }
    pooled
}

fn add(sum: &mut Vec<f64>, terms: &[f64], share: f64) {
    sum.resize(terms.len(), 0.0);
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += share * term);
}
