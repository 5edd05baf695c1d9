//! No bytes make the model loader panic; what it loads is written back, in the newest format to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::model(bytes));
