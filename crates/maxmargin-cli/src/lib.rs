//! The maxmargin command as a library, so that its parts can be tested one by one.

pub mod format;
pub mod report;
