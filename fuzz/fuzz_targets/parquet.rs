//! Reading any bytes as a Parquet file never panics, and what is accepted survives writing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::parquet(bytes));
