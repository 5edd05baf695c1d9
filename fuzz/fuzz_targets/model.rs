//! The model loader never panics, for any bytes. A loaded model can be written; in the newest format, the bytes are the
//! same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::model(bytes));
