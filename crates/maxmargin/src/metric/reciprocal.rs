//! Metrics of one list that model when a reader finds a result: reciprocal rank and expected reciprocal rank.

use super::Variant;
use super::lists::List;
use crate::structured::Ties;
use std::num::NonZeroUsize;

/// One over the position of the first relevant row, or 0 if the first `cutoff` rows hold none.
///
/// With ties it is the mean over all orders of t tied rows, r of them relevant. After i rows of the block without
/// success, the next one is relevant with probability r / (t − i). Only the first block with a relevant row matters.
pub(super) fn reciprocal_rank(list: List<'_>, cutoff: Option<NonZeroUsize>) -> f64 {
    let cutoff = cutoff.map_or(usize::MAX, NonZeroUsize::get);
    let relevant = |row: &usize| list.grades[*row] >= Variant::Standard.relevant_from();
    let order = list.ranked(Ties::Averaged);
    for block in list.blocks(&order, Ties::Averaged).take_while(|block| block.start < cutoff) {
        let count = order[block.clone()].iter().filter(|row| relevant(row)).count();
        if count == 0 {
            continue;
        }
        let mut searching = 1.0;
        let mut mean = 0.0;
        for position in block.start..block.end.min(cutoff) {
            let left = block.end - position;
            let hit = (count as f64 / left as f64).min(1.0);
            mean += searching * hit / (position + 1) as f64;
            searching *= 1.0 - hit;
            if searching == 0.0 {
                break;
            }
        }
        return mean;
    }
    0.0
}

/// Σ over positions of one over the position times the probability that a reader stops there. The reader goes down the
/// list and stops at a row with probability (2^grade − 1) / 2^highest. Ties are in line order.
pub(super) fn expected_reciprocal_rank(list: List<'_>, cutoff: Option<NonZeroUsize>, highest: f64) -> f64 {
    let cutoff = cutoff.map_or(usize::MAX, NonZeroUsize::get);
    let mut reading = 1.0;
    let mut sum = 0.0;
    for (position, row) in list.ranked(Ties::LineOrder).into_iter().take(cutoff).enumerate() {
        // The same as (2^grade − 1) / 2^highest, without overflow.
        let stop = (list.grades[row].max(0.0) - highest).exp2() - (-highest).exp2();
        sum += reading * stop / (position + 1) as f64;
        reading *= 1.0 - stop;
    }
    sum
}
