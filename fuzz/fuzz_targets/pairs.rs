//! No text makes the reader of pairs panic, and every pair it takes names rows that exist.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::pairs(bytes));
