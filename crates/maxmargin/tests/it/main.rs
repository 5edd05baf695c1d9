//! Behaviour of the library as its users meet it.
#![allow(clippy::unwrap_used, missing_docs)] // tests

mod conformance;
mod determinism;
mod made;
mod model_file;
mod optimum;
mod stochastic;
