//! Which training rows the vectors of a kernel model are, and which pairs have a dual variable above zero.
//!
//! A model stores its vectors as copies of scaled training rows. The rows are found by their content.

use super::{Model, Scorer};
use crate::certificate::Witness;
use crate::data::{Dataset, Matrix, Outcome, Pairs};
use crate::error::Result;
use crate::kernel::KernelKind;
use crate::settings::TaskSettings;
use crate::task::{WeightAs, copies_of_pairs, merged_numbers};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

impl Model {
    /// Whether each training pair has a dual variable above zero. Equal pairs share one. `None` if the model stores no
    /// dual variables, or other ones.
    pub fn support_pairs(&self, pairs: &Pairs) -> Option<Vec<bool>> {
        let Some(Witness::Dual(dual)) = &self.witness else { return None };
        let weight_as = match &self.settings.task {
            TaskSettings::Rank(task) => task.weight_as,
            TaskSettings::Compare(task) => task.weight_as,
            _ => return None,
        };
        if let (WeightAs::Copies, Some(weights)) = (weight_as, pairs.weights()) {
            let (rows, copies) = copies_of_pairs(pairs, weights).ok()?;
            if let Some(found) = support(dual, &copies, weight_as) {
                let mut taken = vec![false; pairs.len()];
                rows.iter().zip(found).for_each(|(&pair, found)| taken[pair] |= found && weights[pair] > 0.0);
                return Some(taken);
            }
        }
        support(dual, pairs, weight_as)
    }

    /// Whether the columns of its data are kernel values with the training rows, so that its weights are coefficients
    /// of rows.
    pub fn has_kernel_columns(&self) -> bool {
        self.settings.kernel.kind == KernelKind::Precomputed && self.scorer.weights().is_some()
    }

    /// The coefficients of each vector of a kernel model, in the order of [`Model::support_rows`], as many as a row has
    /// scores. `None` for other models.
    pub fn support_coefficients(&self) -> Option<Vec<f64>> {
        match &self.scorer {
            Scorer::Expansion(expansion) => Some(expansion.coefficients.clone()),
            Scorer::Linear { weights, outputs, .. } if self.has_kernel_columns() => {
                let taken = weights.chunks_exact(*outputs).filter(|own| own.iter().any(|weight| *weight != 0.0));
                Some(taken.flatten().copied().collect())
            }
            Scorer::Linear { .. } | Scorer::Mapped(_) => None,
        }
    }

    /// The training rows that are the vectors of a kernel model, in the order of its coefficients. `None` if the model
    /// has no vectors, or if a vector is none of the rows, as after merging.
    pub fn support_rows(&self, data: &Dataset) -> Result<Option<Vec<usize>>> {
        let expansion = match &self.scorer {
            Scorer::Expansion(expansion) => expansion,
            Scorer::Linear { weights, outputs, .. } if self.has_kernel_columns() => {
                // A column of row numbers may come before the kernel values.
                let columns = weights.chunks_exact(*outputs).enumerate();
                let first = columns.len().saturating_sub(data.rows());
                let rows = columns.skip(first).filter(|(_, own)| own.iter().any(|weight| *weight != 0.0));
                return Ok(Some(rows.map(|(column, _)| column - first).collect()));
            }
            Scorer::Linear { .. } | Scorer::Mapped(_) => return Ok(None),
        };
        // Equal rows of two classes are told apart by the sign of the coefficient. Those of several classes are not told
        // apart: any of them gives the same scores.
        let signs = self.decoder.classes().and_then(|classes| classes.signs(data.targets()).ok());
        let design = self.scaling.apply(data.matrix(), data.groups())?;
        let mut rows_of: HashMap<(u64, bool), VecDeque<usize>> = HashMap::new();
        for row in 0..data.rows() {
            let positive = signs.as_ref().is_some_and(|signs| signs[row] > 0);
            let key = (content(&design.copied(&[row])?, 0), positive);
            rows_of.entry(key).or_default().push_back(row);
        }
        let rows = expansion.coefficients.chunks_exact(expansion.outputs).enumerate().map(|(vector, own)| {
            let positive = signs.is_some() && own[0] > 0.0;
            let same = rows_of.get_mut(&(content(&expansion.vectors, vector), positive))?;
            // A row that is used twice stays in the list.
            if same.len() > 1 { same.pop_front() } else { same.front().copied() }
        });
        Ok(rows.collect())
    }
}

/// Whether each of some pairs has a dual variable above zero. `None` if the dual variables belong to other pairs.
fn support(dual: &[f64], pairs: &Pairs, weight_as: WeightAs) -> Option<Vec<bool>> {
    let is_tie = |pair: usize| pairs.outcome(pair) == Outcome::Tie;
    let counted_twice = |ties: usize, blocks: usize| dual.len() == blocks || dual.len() == blocks + ties;
    let apart = counted_twice((0..pairs.len()).filter(|&pair| is_tie(pair)).count(), pairs.len());
    let number: Vec<usize> = if apart { (0..pairs.len()).collect() } else { merged_numbers(pairs, weight_as) };
    let blocks = number.iter().max().map_or(0, |last| last + 1);
    // The second constraints of ties come after those of all pairs.
    let (mut second, mut ties, mut seen) = (vec![None; blocks], 0, 0);
    for (pair, &block) in number.iter().enumerate() {
        if block == seen {
            seen += 1;
            if is_tie(pair) {
                second[block] = Some(blocks + ties);
                ties += 1;
            }
        }
    }
    let positive = |at: usize| dual.get(at).is_some_and(|&dual| dual > 0.0);
    let taken = |&block: &usize| positive(block) || second[block].is_some_and(positive);
    counted_twice(ties, blocks).then(|| number.iter().map(taken).collect())
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
