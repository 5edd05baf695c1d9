//! The reader of text in columns never panics, for any templates and any text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::columns(bytes));
