//! The loop over queries that all list metrics share.

use super::Variant;
use super::order::by_decreasing_score;
use super::{Evaluation, Judged, Metric, ndcg, pairs, reciprocal, relevance};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::structured::Ties;
use crate::wording::{count, counted};
use std::num::NonZeroUsize;
use std::ops::Range;

/// The rows of one query.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) scores: &'a [f64],
    pub(super) grades: &'a [f64],
}

impl List<'_> {
    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    /// The rows by decreasing score. If ties are averaged, tied rows are next to each other, in line order.
    pub(super) fn ranked(&self, ties: Ties) -> Vec<usize> {
        by_decreasing_score(self.scores, ties == Ties::ReverseLineOrder)
    }

    /// The runs of positions in `order` that a metric treats as tied: runs of equal scores if ties are averaged, single
    /// positions otherwise.
    pub(super) fn blocks<'b>(&'b self, order: &'b [usize], ties: Ties) -> impl Iterator<Item = Range<usize>> + 'b {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = *order.get(start)?;
            let mut end = start + 1;
            while ties == Ties::Averaged && end < order.len() && self.scores[order[end]] == self.scores[first] {
                end += 1;
            }
            let block = start..end;
            start = end;
            Some(block)
        })
    }
}

/// Computes a list metric: the mean of its values over the queries on which it is defined.
pub(super) fn evaluate(metric: &Metric, judged: &Judged<'_>) -> Result<Evaluation> {
    let groups = judged.needed_groups(metric)?;
    let grades = judged.needed_grades(metric)?;
    let scores = judged.needed_scores(metric)?;
    let list = |group: usize| {
        let range = groups.range(group);
        List { scores: &scores[range.clone()], grades: &grades[range] }
    };
    let each = |value: &(dyn Fn(List<'_>) -> Option<f64> + Sync)| -> Vec<Option<f64>> {
        // Groups are usually small, so several of them make one job for a thread.
        parallel::collect(groups.len(), 16, |group| value(list(group)))
    };
    let longest = groups.ranges().map(|range| range.len()).max().unwrap_or(0);
    let mut notes = Vec::new();
    let per_query = match metric {
        Metric::Ndcg { cutoff, variant } => {
            let discounts = ndcg::discounts(*variant, longest.min(cutoff.map_or(usize::MAX, NonZeroUsize::get)));
            if let Some(cutoff) = cutoff.filter(|_| variant.short_lists_add_nothing()) {
                let short = groups.ranges().filter(|range| range.len() < cutoff.get()).count();
                if short > 0 {
                    notes.push(format!(
                        "{} of {} {} fewer than {} and {} 0",
                        count(short as u64),
                        queries(groups.len()),
                        if short == 1 { "has" } else { "have" },
                        counted(cutoff.get() as u64, "row", "rows"),
                        if short == 1 { "adds" } else { "add" },
                    ));
                }
            }
            each(&|list| Some(ndcg::ndcg(list, *cutoff, *variant, &discounts)))
        }
        Metric::MeanNdcg { variant } => {
            let discounts = ndcg::discounts(*variant, longest);
            each(&|list| Some(ndcg::mean_ndcg(list, *variant, &discounts)))
        }
        Metric::Map { variant } => each(&|list| Some(relevance::average_precision(list, *variant))),
        Metric::PrecisionAt { cutoff, variant } => {
            each(&|list| Some(relevance::precision_at(list, cutoff.get(), *variant)))
        }
        Metric::Mrr { cutoff } => each(&|list| Some(reciprocal::reciprocal_rank(list, *cutoff))),
        Metric::ExpectedReciprocalRank { cutoff } => {
            let highest = grades.iter().copied().fold(0.0, f64::max);
            notes.push(format!("the highest grade in these data, {highest}, is taken as the highest possible"));
            each(&|list| Some(reciprocal::expected_reciprocal_rank(list, *cutoff, highest)))
        }
        Metric::KendallTau => each(&pairs::kendall_tau),
        Metric::PairAccuracy => each(&pairs::pair_accuracy),
        other => return Err(Error::new(Code::Internal, format!("{other} is not a metric over queries"))),
    };
    if let Some(counts) = what_counts(metric) {
        let none = groups.ranges().filter(|range| grades[range.clone()].iter().all(|&grade| !counts(grade))).count();
        if none > 0 {
            let verbs = if none == 1 { ("has", "counts") } else { ("have", "count") };
            let all = queries(groups.len());
            notes.push(format!("{} of {all} {} no relevant row and {} as 0", count(none as u64), verbs.0, verbs.1));
        }
    }
    summarise(metric, per_query, notes)
}

/// Kendall's tau-b of ordered classes over all rows: between their positions in the order of the labels and the score,
/// or the predicted position if there is not one score a row.
pub(super) fn over_all_rows(metric: &Metric, judged: &Judged<'_>) -> Result<Evaluation> {
    let (codes, _) = judged.needed_classes(metric)?;
    let (rows, notes) = judged.known_rows(metric)?;
    let grades: Vec<f64> = rows.iter().map(|&row| f64::from(codes[row])).collect();
    let scores: Vec<f64> = match judged.scores {
        Some(scores) => rows.iter().map(|&row| scores[row]).collect(),
        None => {
            let predictions = judged.needed_predictions(metric)?;
            rows.iter().map(|&row| f64::from(predictions[row])).collect()
        }
    };
    let value = pairs::kendall_tau(List { scores: &scores, grades: &grades }).ok_or_else(|| {
        Error::new(Code::SingleClass, format!("{metric} compares rows of different classes, and all have the same"))
            .help("evaluate on rows of several classes")
    })?;
    Ok(Evaluation { value, per_query: None, counted: rows.len(), skipped: 0, notes })
}

fn queries(number: usize) -> String {
    counted(number as u64, "query", "queries")
}

/// Which grades keep the value of a query from being 0 by definition.
fn what_counts(metric: &Metric) -> Option<fn(f64) -> bool> {
    match metric {
        Metric::Ndcg { .. } | Metric::MeanNdcg { .. } | Metric::ExpectedReciprocalRank { .. } => {
            Some(|grade| grade > 0.0)
        }
        Metric::Map { variant: Variant::Mslr } | Metric::PrecisionAt { variant: Variant::Mslr, .. } => {
            Some(|grade| grade >= Variant::Mslr.relevant_from())
        }
        Metric::Map { .. } | Metric::PrecisionAt { .. } | Metric::Mrr { .. } => {
            Some(|grade| grade >= Variant::Standard.relevant_from())
        }
        _ => None,
    }
}

fn summarise(metric: &Metric, per_query: Vec<Option<f64>>, mut notes: Vec<String>) -> Result<Evaluation> {
    let counted = per_query.iter().flatten().count();
    let skipped = per_query.len() - counted;
    if counted == 0 {
        let message = format!("{metric} cannot be computed: the targets do not differ within any query");
        return Err(Error::new(Code::NoPairs, message).help("evaluate on queries whose rows have different targets"));
    }
    if skipped > 0 {
        let verbs = if skipped == 1 { ("has", "is") } else { ("have", "are") };
        notes.push(format!(
            "{} of {} {} only equal targets and {} skipped",
            count(skipped as u64),
            queries(per_query.len()),
            verbs.0,
            verbs.1
        ));
    }
    let value = per_query.iter().flatten().sum::<f64>() / counted as f64;
    Ok(Evaluation { value, per_query: Some(per_query), counted, skipped, notes })
}
