//! No text makes the table reader panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::csv(bytes));
