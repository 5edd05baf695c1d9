//! Metrics over a varying threshold for several classes: each class against the rest, by the score of that class.

use super::judged::single_class;
use super::roc::Roc;
use super::rows::RowMetric;
use super::{Judged, Metric};
use crate::error::Result;
use crate::parallel;
use crate::wording::counted;

/// One curve for each class.
pub(super) struct OneAgainstRest {
    curves: Vec<Roc>,
    /// Whether classes are weighed by their rows.
    weighted: bool,
    /// Number of classes without a value, because all rows or none are theirs.
    skipped: usize,
}

impl OneAgainstRest {
    pub(super) fn new(metric: &Metric, judged: &Judged<'_>) -> Result<OneAgainstRest> {
        let scores = judged.needed_class_scores(metric)?;
        let (codes, _) = judged.needed_classes(metric)?;
        let classes = judged.known_classes();
        let mut present = vec![false; classes];
        for slot in codes.iter().map(|&code| code as usize).filter(|&code| code < classes) {
            present[slot] = true;
        }
        let of = |class: usize| {
            if !present[class] {
                return None;
            }
            let own: Vec<f64> = scores[class..].iter().step_by(classes).copied().collect();
            let positive: Vec<bool> = codes.iter().map(|&code| code as usize == class).collect();
            Some(Roc::of(metric, &own, &positive, judged.weights)).filter(|roc| roc.value(None).is_some())
        };
        let curves: Vec<Roc> = parallel::map(classes, of).into_iter().flatten().collect();
        if curves.is_empty() {
            return Err(single_class(metric));
        }
        Ok(OneAgainstRest { skipped: classes - curves.len(), curves, weighted: *metric == Metric::AucWeighted })
    }
}

impl RowMetric for OneAgainstRest {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for (value, positives) in self.curves.iter().filter_map(|curve| curve.value_and_positives(times)) {
            let weight = if self.weighted { positives } else { 1.0 };
            sum += weight * value;
            all += weight;
        }
        (all > 0.0).then(|| sum / all)
    }

    fn notes(&self) -> Vec<String> {
        let skipped = counted(self.skipped as u64, "class without rows is", "classes without rows are");
        (self.skipped > 0).then(|| format!("{skipped} left out of the mean over classes")).into_iter().collect()
    }
}
