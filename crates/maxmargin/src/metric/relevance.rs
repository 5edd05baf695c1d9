//! Metrics of one list that depend only on whether a row is relevant: average precision and precision at K.

use super::Variant;
use super::lists::List;

/// Average precision: the mean over relevant rows of the precision at their position; 0 without any.
///
/// With ties it is the mean over all orders of t tied rows, r of them relevant, that follow s rows with R relevant
/// ones. Position s + i holds a relevant row with probability r / t, and then (i − 1)(r − 1) / (t − 1) of the relevant
/// tied rows are expected before it. In the `sklearn` variant, all tied rows share the precision at their end instead.
pub(super) fn average_precision(list: List<'_>, variant: Variant) -> f64 {
    let ties = variant.ties();
    let order = list.ranked(ties);
    let mut found = 0usize;
    let mut sum = 0.0;
    for block in list.blocks(&order, ties) {
        let size = block.len();
        let relevant = relevant_in(list, &order[block.clone()], variant);
        if relevant == 0 {
            continue;
        }
        if variant == Variant::Sklearn {
            sum += relevant as f64 * (found + relevant) as f64 / block.end as f64;
        } else {
            let probability = relevant as f64 / size as f64;
            let before = if size > 1 { (relevant - 1) as f64 / (size - 1) as f64 } else { 0.0 };
            for (i, position) in block.enumerate() {
                sum += probability * ((found + 1) as f64 + i as f64 * before) / (position + 1) as f64;
            }
        }
        found += relevant;
    }
    if found == 0 { 0.0 } else { sum / found as f64 }
}

/// The number of relevant rows among the first `cutoff`, divided by `cutoff` even if the list is shorter. If the cutoff
/// splits a block of tied rows, the fraction above it counts.
pub(super) fn precision_at(list: List<'_>, cutoff: usize, variant: Variant) -> f64 {
    let ties = variant.ties();
    let order = list.ranked(ties);
    let mut found = 0.0;
    for block in list.blocks(&order, ties).take_while(|block| block.start < cutoff) {
        let relevant = relevant_in(list, &order[block.clone()], variant);
        let above = block.end.min(cutoff) - block.start;
        found += relevant as f64 * above as f64 / block.len() as f64;
    }
    found / cutoff as f64
}

fn relevant_in(list: List<'_>, rows: &[usize], variant: Variant) -> usize {
    rows.iter().filter(|&&row| list.grades[row] >= variant.relevant_from()).count()
}
