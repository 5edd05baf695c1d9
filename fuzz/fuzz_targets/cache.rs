//! Reading any bytes as a cache never panics, with or without a check.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::cache(bytes));
