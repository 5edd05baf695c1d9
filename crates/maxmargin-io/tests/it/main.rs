//! Behaviour of the readers and writers from the user's point of view.
#![allow(clippy::unwrap_used, missing_docs)] // tests

mod blocks;
mod cache;
mod changes;
mod corpus;
mod hashing;
mod pairs;
mod svmlight;
mod tables;
#[cfg(feature = "tables")]
mod typed_tables;
