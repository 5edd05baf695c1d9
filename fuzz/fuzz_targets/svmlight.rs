//! The svmlight reader never panics, for any text, and accepted data survive a round trip through the writer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| maxmargin_io::fuzzing::svmlight(bytes));
