//! [`SumOfRisks`]: the objective over data that are kept in several places.
//!
//! ```text
//! f(w) = ½‖w_penalised‖² + Σ_parts loss_part(w)
//! ```
//! Each part answers for its own rows: value, gradient, steps along a line, Hessian. The sum is a [`Risk`] like any other,
//! so that Newton's method and cutting planes run over it unchanged. Parts are added in order: the same parts give the same
//! bytes. A part that fails ends the evaluation with its own error.

use super::{CurvedRisk, Preconditioner, Risk};
use crate::error::{Code, Error, Result};

/// See the top of the file.
pub struct SumOfRisks<'a> {
    parts: Vec<Box<dyn CurvedRisk + 'a>>,
    dim: usize,
    penalised: usize,
    point: Vec<f64>,
    direction: Vec<f64>,
}

impl<'a> SumOfRisks<'a> {
    /// The sum of the losses of all parts, which come without a penalty, and the penalty.
    pub fn new(parts: Vec<Box<dyn CurvedRisk + 'a>>) -> Result<SumOfRisks<'a>> {
        let shape = |risk: &dyn CurvedRisk| (risk.dim(), risk.penalised());
        let Some((dim, penalised)) = parts.first().map(|first| shape(&**first)) else {
            return Err(Error::new(Code::NoRows, "there are no parts to add up").help("give at least one part"));
        };
        if parts.iter().any(|part| shape(&**part) != (dim, penalised)) {
            return Err(Error::new(Code::BadSetting, "the parts of the data have different numbers of features")
                .help("give all parts the same columns"));
        }
        Ok(SumOfRisks { parts, dim, penalised, point: vec![0.0; dim], direction: vec![0.0; dim] })
    }

    /// Adds what each part writes for itself.
    fn add_up(
        &mut self,
        sum: &mut [f64],
        mut write: impl FnMut(&mut dyn CurvedRisk, &mut [f64]) -> Result<f64>,
    ) -> Result<f64> {
        let (mut value, mut own) = (0.0, vec![0.0; sum.len()]);
        sum.fill(0.0);
        for part in &mut self.parts {
            value += write(&mut **part, &mut own)?;
            sum.iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
        }
        Ok(value)
    }
}

impl Risk for SumOfRisks<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn penalised(&self) -> usize {
        self.penalised
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.point.copy_from_slice(w);
        let value = self.add_up(gradient, |part, own| part.evaluate(w, own))?;
        let w = &w[..self.penalised];
        gradient.iter_mut().zip(w).for_each(|(gradient, w)| *gradient += w);
        Ok(value + 0.5 * w.iter().map(|w| w * w).sum::<f64>())
    }

    fn line(&mut self, direction: &[f64]) -> Result<()> {
        self.direction.copy_from_slice(direction);
        self.parts.iter_mut().try_for_each(|part| part.line(direction))
    }

    fn along(&mut self, step: f64) -> Result<(f64, f64)> {
        let (mut value, mut slope) = (0.0, 0.0);
        for part in &mut self.parts {
            let (own, own_slope) = part.along(step)?;
            (value, slope) = (value + own, slope + own_slope);
        }
        for (w, d) in self.point.iter().zip(&self.direction).take(self.penalised) {
            let moved = w + step * d;
            value += 0.5 * moved * moved;
            slope += moved * d;
        }
        Ok((value, slope))
    }
}

impl CurvedRisk for SumOfRisks<'_> {
    fn has_exact_hessian(&self) -> bool {
        self.parts.iter().all(|part| part.has_exact_hessian())
    }

    fn hessian(&mut self) -> Result<Vec<f64>> {
        let dim = self.dim;
        let mut sum = vec![0.0; dim * dim];
        for part in &mut self.parts {
            sum.iter_mut().zip(part.hessian()?).for_each(|(sum, own)| *sum += own);
        }
        (0..self.penalised).for_each(|at| sum[at * dim + at] += 1.0);
        Ok(sum)
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        self.add_up(out, |part, own| part.hessian_times(direction, own).map(|()| 0.0))?;
        out.iter_mut().zip(&direction[..self.penalised]).for_each(|(out, d)| *out += d);
        Ok(())
    }

    fn free_hessian(&mut self) -> Result<Vec<f64>> {
        let free = self.dim - self.penalised;
        let mut sum = vec![0.0; free * free];
        for part in &mut self.parts {
            sum.iter_mut().zip(part.free_hessian()?).for_each(|(sum, own)| *sum += own);
        }
        Ok(sum)
    }

    fn preconditioner(&mut self) -> Result<Preconditioner> {
        let dim = self.dim;
        let made = self.parts.iter_mut().map(|part| part.preconditioner()).collect::<Result<Vec<_>>>()?;
        let matrices = made.iter().all(|made| matches!(made, Preconditioner::Matrix(_)));
        let mut sum = vec![0.0; if matrices { dim * dim } else { dim }];
        for made in made {
            match made {
                Preconditioner::Matrix(own) if matrices => sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own),
                // Parts of very short rows give a diagonal: the sum is then one of diagonals.
                Preconditioner::Matrix(own) => {
                    sum.iter_mut().zip(own.iter().step_by(dim + 1)).for_each(|(sum, own)| *sum += own);
                }
                Preconditioner::Diagonal(own) => sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own),
            }
        }
        (0..self.penalised).for_each(|at| sum[if matrices { at * dim + at } else { at }] += 1.0);
        Ok(if matrices { Preconditioner::Matrix(sum) } else { Preconditioner::Diagonal(sum) })
    }
}
