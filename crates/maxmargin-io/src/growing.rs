//! [`Growing`]: a file that other programs append to. Its end is waited for.

use maxmargin::run::Cancel;
use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

/// How often the end of the file is looked at again.
const POLL: Duration = Duration::from_millis(50);

/// See the top of the file. It ends only after a cancel.
pub(crate) struct Growing {
    file: File,
    cancel: Cancel,
}

impl Growing {
    pub(crate) fn new(file: File, cancel: Cancel) -> Growing {
        Growing { file, cancel }
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.file.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.cancel.is_raised() {
                return Ok(read);
            }
            std::thread::sleep(POLL);
        }
    }
}
