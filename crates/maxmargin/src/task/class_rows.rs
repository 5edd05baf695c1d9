//! [`ClassRows`]: the class and the weight of each row, which all tasks over several classes start from.

use super::ClassWeight;
use crate::data::{Dataset, Labels, Subset, counts};
use crate::error::Result;
use std::sync::Arc;

/// The class and the weight of each row.
pub(super) struct ClassRows {
    pub(super) codes: Arc<[u32]>,
    /// The row's weight times its class weight; 0 if the row is left out. `None` if all weights are 1.
    pub(super) weights: Option<Arc<[f64]>>,
    /// Number of rows of each class with a positive weight.
    pub(super) counted: Vec<u64>,
}

impl ClassRows {
    /// All rows, or some of them: the others weigh nothing, and `balanced` does not count them.
    pub(super) fn on(
        data: &Dataset,
        labels: &Labels,
        class_weight: &ClassWeight,
        subset: Option<&Subset>,
    ) -> Result<ClassRows> {
        let codes = labels.codes(data.targets())?;
        let mut totals = vec![0.0; labels.len()];
        for row in (0..codes.len()).filter(|&row| counts(subset, row)) {
            totals[codes[row] as usize] += data.weights().map_or(1.0, |weights| weights[row]);
        }
        let shares = class_weight.of_labels(labels, &totals)?;
        Ok(ClassRows::with_shares(data, codes, &shares, subset))
    }

    /// The same, given the class of each row and the weight of each class.
    pub(super) fn with_shares(data: &Dataset, codes: Vec<u32>, shares: &[f64], subset: Option<&Subset>) -> ClassRows {
        let equal = shares.iter().all(|&share| share == 1.0) && data.weights().is_none() && subset.is_none();
        let weight = |row: usize| match counts(subset, row) {
            true => shares[codes[row] as usize] * data.weights().map_or(1.0, |weights| weights[row]),
            false => 0.0,
        };
        let mut counted = vec![0; shares.len()];
        for row in (0..codes.len()).filter(|&row| equal || weight(row) > 0.0) {
            counted[codes[row] as usize] += 1;
        }
        let weights = (!equal).then(|| (0..codes.len()).map(weight).collect());
        ClassRows { codes: codes.into(), weights, counted }
    }

    /// Whether all rows that count are of one class.
    pub(super) fn have_a_single_class(&self) -> bool {
        self.counted.iter().filter(|count| **count > 0).count() == 1
    }
}
