//! Where the next fit of a path starts.
//!
//! Weights carry over as they are: Newton's method corrects them in a step or two. Dual variables grow with C: those at
//! their limit, cost times C, stay there, and for smooth losses α = cost · C · loss'(violation) keeps every violation as
//! it is. Balance is kept too. Free ones of the hinge loss would rather stay, but the descent lowers a few of them far
//! faster than it raises the many at their limit: keeping all as they are took ten times the passes.

use crate::solve::Start;

/// A start for the same problem with C larger by `ratio`.
pub(super) fn carried(mut start: Start, ratio: f64) -> Start {
    start.dual.iter_mut().flatten().for_each(|alpha| *alpha *= ratio);
    start
}

/// A start for all rows out of the starts of folds, each of which held some of the rows out. A row is held out once, so
/// that the sum of its dual variables over the others is a mean: it keeps within every bound, and balanced where they are.
pub(super) fn pooled<'a>(starts: impl ExactSizeIterator<Item = &'a Start>) -> Start {
    let folds = starts.len() as f64;
    let mut pooled = Start::default();
    let mut all_dual = true;
    for start in starts {
        add(&mut pooled.weights, &start.weights, 1.0 / folds);
        add(&mut pooled.thresholds, &start.thresholds, 1.0 / folds);
        pooled.width = pooled.width.into_iter().chain(start.width).reduce(f64::max);
        if let Some(dual) = &start.dual {
            add(pooled.dual.get_or_insert_default(), dual, 1.0 / (folds - 1.0));
        }
        all_dual &= start.dual.is_some();
    }
    // Of some folds alone it would belong to other weights.
    pooled.dual = pooled.dual.filter(|_| all_dual);
    pooled
}

fn add(sum: &mut Vec<f64>, terms: &[f64], share: f64) {
    sum.resize(terms.len(), 0.0);
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += share * term);
}
