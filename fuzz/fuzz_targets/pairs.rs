//! The reader of pairs never panics, for any text, and every accepted pair names rows that exist.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::pairs(bytes));
