//! Integration tests of the file formats, one module a behaviour.

mod tables;
#[cfg(feature = "tables")]
mod typed_tables;
