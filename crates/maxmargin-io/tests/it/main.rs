//! The readers and writers from outside, one module a behaviour.

mod cache;
