//! No bytes make the cache panic, checked or not.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::cache(bytes));
