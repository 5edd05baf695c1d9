//! Which training rows the vectors of a kernel model are.
//!
//! A model stores its vectors as copies of scaled training rows. If its dual variables are stored too, these tell the
//! rows. Otherwise the rows are found by their content.

use super::{Model, Scorer};
use crate::data::{Dataset, Matrix};
use crate::error::Result;
use crate::kernel::KernelKind;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Model {
    /// Whether the columns of its data are kernel values with the training rows, so that its weights are coefficients
    /// of rows.
    pub fn has_kernel_columns(&self) -> bool {
        self.settings.kernel.kind == KernelKind::Precomputed && self.scorer.weights().is_some()
    }

    /// The coefficient of each vector of a kernel model, in the order of [`Model::support_rows`]. `None` for other
    /// models.
    pub fn support_coefficients(&self) -> Option<Vec<f64>> {
        match &self.scorer {
            Scorer::Expansion(expansion) => Some(expansion.coefficients.clone()),
            Scorer::Linear { weights, .. } if self.has_kernel_columns() => {
                Some(weights.iter().copied().filter(|weight| *weight != 0.0).collect())
            }
            Scorer::Linear { .. } | Scorer::Mapped(_) => None,
        }
    }

    /// The training rows that are the vectors of a kernel model, in the order of its coefficients. `None` if the model
    /// has no vectors, or if a vector is none of the rows, as after merging.
    pub fn support_rows(&self, data: &Dataset) -> Result<Option<Vec<usize>>> {
        let expansion = match &self.scorer {
            Scorer::Expansion(expansion) => expansion,
            Scorer::Linear { weights, .. } if self.has_kernel_columns() => {
                // A column of row numbers may come before the kernel values.
                let first = weights.len().saturating_sub(data.rows());
                let rows = weights.iter().enumerate().skip(first).filter(|(_, weight)| **weight != 0.0);
                return Ok(Some(rows.map(|(column, _)| column - first).collect()));
            }
            Scorer::Linear { .. } | Scorer::Mapped(_) => return Ok(None),
        };
        // Equal rows of both classes are told apart by the sign of the coefficient.
        let signs = self.decoder.classes().and_then(|classes| classes.signs(data.targets()).ok());
        let design = self.scaling.apply(data.matrix(), data.groups())?;
        let mut rows_of: HashMap<(u64, bool), VecDeque<usize>> = HashMap::new();
        for row in 0..data.rows() {
            let positive = signs.as_ref().is_some_and(|signs| signs[row] > 0);
            let key = (content(&design.copied(&[row])?, 0), positive);
            rows_of.entry(key).or_default().push_back(row);
        }
        let rows = expansion.coefficients.iter().enumerate().map(|(vector, coefficient)| {
            let positive = signs.is_some() && *coefficient > 0.0;
            let same = rows_of.get_mut(&(content(&expansion.vectors, vector), positive))?;
            // A row that is used twice stays in the list.
            if same.len() > 1 { same.pop_front() } else { same.front().copied() }
        });
        Ok(rows.collect())
    }
}

/// A hash of the entries of a row that are not zero.
fn content(matrix: &Matrix, row: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    matrix.each_in_row(row, |column, value| {
        if value != 0.0 {
            (column, value.to_bits()).hash(&mut hasher);
        }
    });
    hasher.finish()
}
