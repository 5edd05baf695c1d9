//! The warm start of the next fit of a path.
//!
//! Weights are used as they are: Newton's method corrects them in a step or two. Dual variables grow with C: those at
//! their limit, cost times C, stay there, and for smooth losses α = cost · C · loss'(violation) leaves every violation
//! unchanged. The balance is kept too. Free variables of the hinge loss would better stay as they are, but the descent
//! lowers a few of them far faster than it raises the many at their limit: keeping all unchanged took ten times the
//! passes.

use crate::solve::Start;

/// A start for the same problem with C larger by `ratio`.
pub(super) fn carried(mut start: Start, ratio: f64) -> Start {
    let of_classes = start.classes.iter_mut().flat_map(|dual| &mut dual.values);
    let of_outputs = start.outputs.iter_mut().flat_map(|dual| &mut dual.values);
    start.dual.iter_mut().flatten().chain(of_classes).chain(of_outputs).for_each(|alpha| *alpha *= ratio);
    start
}

/// A start for all rows from the starts of the folds, each of which held out some of the rows. A row is held out once,
/// so the sum of its dual variables over the other folds is a mean: it keeps within every bound, and is balanced if
/// they are.
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
    // From only some of the folds, it would belong to other weights.
    pooled.dual = pooled.dual.filter(|_| all_dual);
    pooled
}

fn add(sum: &mut Vec<f64>, terms: &[f64], share: f64) {
    sum.resize(terms.len(), 0.0);
    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += share * term);
}
