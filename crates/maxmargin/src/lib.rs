//! Large-margin learning: rank, compare and classify, with a certificate of how close to the optimum the result is.
//!
//! Training takes a [`Dataset`](data::Dataset) and [`Settings`](settings::Settings) and returns a
//! [`Model`](model::Model). The model scores new rows. It also holds its objective, a lower bound that no other model
//! can beat, and the proof of that bound. The same data, settings and seed give the same bytes at any number of
//! threads.
//!
//! ```
//! use maxmargin::data::{Dataset, Dense, Groups, Matrix, Targets};
//! use maxmargin::run::{Cancel, Silent};
//! use maxmargin::settings::{Settings, Task};
//! use maxmargin::train::train;
//!
//! # fn main() -> maxmargin::Result<()> {
//! // Two queries of three documents each; the first feature tells what is relevant, the second is noise.
//! let features = vec![0.9, 0.3, 0.5, 0.8, 0.1, 0.2, /* second query */ 0.7, 0.6, 0.4, 0.1, 0.2, 0.9];
//! let grades = vec![2.0, 1.0, 0.0, 2.0, 1.0, 0.0];
//! let queries = Groups::new(vec![0, 3, 6], ["shoes", "hats"].into_iter().collect())?;
//! let data = Dataset::new(Matrix::DenseF64(Dense::new(features, 6, 2)?), Targets::Real(grades.into()))?
//!     .with_groups(queries)?;
//!
//! let settings = Settings { tolerance: 1e-6, ..Settings::new(Task::Rank) };
//! let trained = train(&data, &settings, None, &mut Silent, &Cancel::new())?;
//!
//! let model = trained.model;
//! let scores = model.scores(&data)?;
//! assert!(scores[0] > scores[1] && scores[1] > scores[2]);
//! // How far the objective can be from the optimum, as a share of it; and the same recomputed from the data.
//! assert!(model.certificate.gap().is_some_and(|gap| gap <= 1e-6));
//! assert!(model.verify(&data)?.gap().is_some_and(|gap| gap <= 1e-6));
//! # Ok(())
//! # }
//! ```
//!
//! The modules:
//!
//! | module | content |
//! |---|---|
//! | [`data`] | features, targets, groups and weights; scaling; splits |
//! | [`settings`] | everything a user can set about training |
//! | [`train`] | [`train::train`], which joins tasks and solvers |
//! | [`select`] | choosing settings by cross-validation over warm-started paths |
//! | [`memory`] | training within a memory budget |
//! | [`model`] | the trained model: scoring, saving, loading, verifying |
//! | [`items`] | items in the order of their scores, with intervals and ranks that ties share |
//! | [`online`] | learning from a stream of examples |
//! | [`metric`] | how good scores or predictions are, with bootstrap intervals |
//! | [`structured`] | outputs with many parts: rankings, sequences, trees; seen through scores |
//! | [`task`] | what to learn, as margin constraints over scores; never sees features |
//! | [`loss`] | what a violated margin costs |
//! | [`solve`] | how to learn a task, with a bound on the optimum; never sees labels |
//! | [`rating`] | ratings of items from their games, and the best threshold for ties |
//! | [`clicks`] | click logs: preferences, propensities, and data to learn from |
//! | [`simulate`] | realistic data of any size from a seed |
//! | [`testing`] | checks for your own tasks |
//! | [`run`] | progress and cancelling of long jobs |
//! | [`parallel`] | work on all threads, with the same result at any number of them |
//! | [`error`] | the one error type: code, place, remedy |
//! | [`suggest`] | the known name nearest to a mistyped one |
//! | [`wording`] | counts and sizes in readable form |
//!
//! The crate `maxmargin-io` reads and writes files. This crate does no input or output.

pub mod certificate;
pub mod clicks;
pub mod data;
pub mod error;
pub mod items;
pub mod kernel;
pub mod loss;
pub mod memory;
pub mod metric;
pub mod model;
pub mod online;
pub mod parallel;
mod random;
pub mod rating;
pub mod run;
pub mod select;
pub mod settings;
pub mod simulate;
pub mod solve;
mod steps;
pub mod stream;
pub mod structured;
pub mod suggest;
pub mod task;
pub mod testing;
pub mod train;
pub mod wish;
pub mod wording;

pub use error::{Code, Error, Result};
