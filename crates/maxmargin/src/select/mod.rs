//! Model selection: finds the settings to train with by cross-validation.
//!
//! [`CrossValidation`] fits every candidate on every fold and judges it on the rows held out. [`Tuned`] holds one
//! [`Row`] per candidate, names the best one, and trains the final model on all rows. Candidates are whole
//! [`Settings`](crate::settings::Settings): a [`Grid`] makes them differ in C, but they may differ in anything. A
//! sequence of candidates that differ only in C is a *path*, along which each fit starts at the solution of the one
//! before.
//!
//! ```
//! # use maxmargin::data::{Dataset, Dense, Matrix, Targets};
//! use maxmargin::metric::Metric;
//! use maxmargin::run::{Cancel, Silent};
//! use maxmargin::select::{CrossValidation, Grid};
//! use maxmargin::settings::{Settings, Task};
//!
//! # fn main() -> maxmargin::Result<()> {
//! # let features: Vec<f64> = (0..80).map(|i| f64::from(i * 37 % 101) / 50.0 - 1.0).collect();
//! # let labels: Vec<f64> = features.chunks(2).map(|x| if x[0] + 0.2 * x[1] > 0.0 { 1.0 } else { -1.0 }).collect();
//! # let data = Dataset::new(Matrix::DenseF64(Dense::new(features, 40, 2)?), Targets::Real(labels.into()))?;
//! let settings = Settings::new(Task::Classify);
//! let grid: Grid = "0.01:100:9".parse()?;
//! let validation = CrossValidation { folds: 5, seed: 0, metrics: vec![Metric::Accuracy] };
//! let tuned = validation.run(&data, &grid.candidates(&settings), &mut Silent, &Cancel::new())?;
//! assert!(tuned.rows[tuned.best].metrics[0].mean > 0.9);
//! // From all rows, with the most regularised setting that is as good as the best one but for chance.
//! let model = tuned.refit(tuned.one_standard_error(), &data, None, &mut Silent, &Cancel::new())?.model;
//! assert!(model.certificate.converged);
//! # Ok(())
//! # }
//! ```

mod choice;
mod cross_validation;
mod fold;
mod grid;
mod kernel_path;
#[cfg(test)]
mod tests;
mod warm_start;

pub use choice::Edge;
pub use cross_validation::{CrossValidation, OverFolds, Row, Tuned};
pub use grid::Grid;
