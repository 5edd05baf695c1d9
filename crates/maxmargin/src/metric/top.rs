//! Top-K accuracy: how often the right class has one of the K largest scores.

use super::rows::{RowMetric, weight_of};
use super::{Judged, Metric};
use crate::error::Result;
use crate::parallel;
use crate::wording::count;

/// How probable it is that the class of each row is among the first K, if equal scores are put in a random order.
pub(super) struct TopAccuracy<'a> {
    found: Vec<f64>,
    weights: Option<&'a [f64]>,
    notes: Vec<String>,
}

impl<'a> TopAccuracy<'a> {
    pub(super) fn new(metric: &Metric, judged: &Judged<'a>) -> Result<TopAccuracy<'a>> {
        let scores = judged.needed_class_scores(metric)?;
        let (codes, _) = judged.needed_classes(metric)?;
        let (classes, cutoff) = (judged.known_classes(), metric.cutoff().map_or(1, std::num::NonZeroUsize::get));
        let found = parallel::collect(codes.len(), 256, |row| {
            let (own, class) = (&scores[row * classes..(row + 1) * classes], codes[row] as usize);
            if class >= classes {
                return 0.0;
            }
            let larger = own.iter().filter(|score| **score > own[class]).count();
            let equal = own.iter().filter(|score| **score == own[class]).count();
            (cutoff.saturating_sub(larger) as f64 / equal as f64).min(1.0)
        });
        let note = (cutoff >= classes).then(|| {
            format!("{metric} is certain to hold the right one: the model has {} classes", count(classes as u64))
        });
        Ok(TopAccuracy { found, weights: judged.weights, notes: note.into_iter().collect() })
    }
}

impl RowMetric for TopAccuracy<'_> {
    fn value(&self, times: Option<&[u32]>) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for (row, found) in self.found.iter().enumerate() {
            let weight = weight_of(row, self.weights, times);
            sum += weight * found;
            all += weight;
        }
        (all > 0.0).then(|| sum / all)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
