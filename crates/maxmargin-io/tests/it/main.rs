//! Behaviour of the readers and writers as their users meet them.
#![allow(clippy::unwrap_used, missing_docs)] // tests

mod blocks;
mod cache;
mod corpus;
mod pairs;
mod svmlight;
mod tables;
#[cfg(feature = "tables")]
mod typed_tables;
