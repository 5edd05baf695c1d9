//! Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002; ties as in McSherry and Najork 2008).
//!
//! DCG@K = Σ_{p ≤ K} gain(grade at position p) · discount(p), and NDCG@K divides it by the DCG@K of the best order.
//! Averaged over all orders of tied rows, the gain at each of their positions is the mean gain of the tied rows, so
//! the mean costs no more than one order. A list sorts in O(n log n).

use super::Variant;
use super::lists::List;
use crate::structured::Ties;
use std::num::NonZeroUsize;

/// The discounts of the first positions.
pub(super) fn discounts(variant: Variant, positions: usize) -> Vec<f64> {
    (1..=positions).map(|position| variant.discount(position)).collect()
}

/// The gains in the order of the scores, and in the best order.
fn gains(list: List<'_>, variant: Variant) -> (Vec<f64>, Vec<f64>) {
    let highest = list.grades.iter().copied().fold(0.0, f64::max);
    let order = list.ranked(variant.ties());
    let mut reached: Vec<f64> = order.iter().map(|&row| variant.gain(list.grades[row], highest)).collect();
    let mut best = reached.clone();
    best.sort_unstable_by(|a, b| b.total_cmp(a));
    if variant.ties() == Ties::Averaged {
        for block in list.blocks(&order, Ties::Averaged).filter(|block| block.len() > 1) {
            let mean = reached[block.clone()].iter().sum::<f64>() / block.len() as f64;
            reached[block].fill(mean);
        }
    }
    (reached, best)
}

/// NDCG of one list; `discounts` reach at least to the cut-off or the end of the list.
pub(super) fn ndcg(list: List<'_>, cutoff: Option<NonZeroUsize>, variant: Variant, discounts: &[f64]) -> f64 {
    let positions = cutoff.map_or(list.len(), NonZeroUsize::get);
    if positions > list.len() && variant.short_lists_add_nothing() {
        return 0.0;
    }
    let (reached, best) = gains(list, variant);
    let total = |gains: &[f64]| -> f64 {
        gains.iter().zip(discounts).take(positions).map(|(gain, discount)| gain * discount).sum()
    };
    ratio(total(&reached), total(&best))
}

/// Standard NDCG of one list at this cut-off.
pub(crate) fn ndcg_of_list(scores: &[f64], grades: &[f64], cutoff: usize) -> f64 {
    let (variant, positions) = (Variant::default(), cutoff.min(scores.len()));
    ndcg(List { scores, grades }, NonZeroUsize::new(cutoff), variant, &discounts(variant, positions))
}

/// The mean of NDCG@1, …, NDCG@n of one list of n rows.
pub(super) fn mean_ndcg(list: List<'_>, variant: Variant, discounts: &[f64]) -> f64 {
    let (reached, best) = gains(list, variant);
    let (mut sum, mut total, mut best_total) = (0.0, 0.0, 0.0);
    for ((gain, best_gain), discount) in reached.iter().zip(&best).zip(discounts) {
        total += gain * discount;
        best_total += best_gain * discount;
        sum += ratio(total, best_total);
    }
    sum / list.len() as f64
}

fn ratio(reached: f64, best: f64) -> f64 {
    if best > 0.0 { reached / best } else { 0.0 }
}
