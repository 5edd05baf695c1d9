//! [`Expanded`]: a kernel model together with the rows it was trained on, to certify it.

use super::infeasible;
use crate::certificate::{Expansion, Scorer};
use crate::data::Design;
use crate::error::Result;
use crate::kernel::{Kernel, KernelKind, Points, Terms};
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::values::dual_of_square;
use crate::solve::{by_row, check_values};
use crate::task::{Independent, Intercept};

/// A kernel model together with the rows it was trained on.
pub struct Expanded<'a> {
    kernel: Kernel,
    design: &'a Design,
    /// All rows.
    rows: Points,
    /// The model's vectors, as exact as the rows. None if the rows hold their kernel values with all vectors.
    vectors: Option<(&'a Expansion, Points)>,
    /// Those of one vector next to each other.
    coefficients: &'a [f64],
    outputs: usize,
}

impl<'a> Expanded<'a> {
    /// The kernel model with its rows, or none if the scorer has weights.
    pub(super) fn of(
        scorer: &'a Scorer,
        design: &'a Design,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Result<Option<Expanded<'a>>> {
        match scorer {
            Scorer::Linear { weights, outputs, .. } if settings.kernel.kind == KernelKind::Precomputed => {
                Expanded::new(Kernel::Precomputed, None, (weights, *outputs), design, cancel).map(Some)
            }
            Scorer::Expansion(expansion) => {
                let Expansion { kernel, coefficients, outputs, .. } = expansion;
                Expanded::new(kernel.clone(), Some(expansion), (coefficients, *outputs), design, cancel).map(Some)
            }
            Scorer::Linear { .. } | Scorer::Mapped(_) => Ok(None),
        }
    }

    fn new(
        kernel: Kernel,
        expansion: Option<&'a Expansion>,
        (coefficients, outputs): (&'a [f64], usize),
        design: &'a Design,
        cancel: &Cancel,
    ) -> Result<Expanded<'a>> {
        kernel.check_known()?;
        check_values(&kernel, design)?;
        let rows = Points::until(design, &kernel, cancel);
        let vectors = expansion.map(|expansion| Ok((expansion, expansion.points_like(&rows, cancel)?))).transpose()?;
        Ok(Expanded { kernel, design, rows, vectors, coefficients, outputs })
    }

    /// The scores of all rows without the constant terms, and ‖Σ β φ‖², added up over all scores.
    pub(super) fn values(&self, cancel: &Cancel) -> Result<(Vec<f64>, f64)> {
        let values = match &self.vectors {
            Some((expansion, points)) => {
                (expansion.scores(points, self.design, cancel), expansion.squared_norm(points, cancel))
            }
            None => {
                let (before, own) =
                    self.coefficients.split_at((self.design.cols() - self.design.rows()) * self.outputs);
                if before.iter().any(|weight| *weight != 0.0) {
                    return Err(infeasible("the numbers of the rows have a weight"));
                }
                let all: Vec<usize> = (0..self.design.rows()).collect();
                let scores = self.images(&all, own, cancel)?;
                let square = scores.iter().zip(own).map(|(score, coefficient)| score * coefficient).sum();
                (scores, square)
            }
        };
        // After a cancel the values are incomplete.
        cancel.check()?;
        Ok(values)
    }

    /// Σ_i coefficient_i k(row_i, ·) over all rows, with as many coefficients for each of the listed rows as there are
    /// scores.
    pub(super) fn images(&self, ids: &[usize], coefficients: &[f64], cancel: &Cancel) -> Result<Vec<f64>> {
        let terms = Terms { ids, coefficients, outputs: self.outputs };
        let images = terms.scores(&self.kernel, &self.rows, &self.rows, cancel);
        cancel.check()?;
        Ok(images)
    }

    /// The dual value of a point.
    pub(super) fn dual_value<T: Independent>(
        &self,
        task: &T,
        alpha: &[f64],
        rule: Intercept,
        cancel: &Cancel,
    ) -> Result<f64> {
        let (ids, coefficients): (Vec<usize>, Vec<f64>) = by_row(task, alpha).into_iter().unzip();
        let images = self.images(&ids, &coefficients, cancel)?;
        let square: f64 = ids.iter().zip(&coefficients).map(|(&row, c)| c * images[row]).sum();
        Ok(dual_of_square(task, |block| alpha[block], square, rule))
    }
}
