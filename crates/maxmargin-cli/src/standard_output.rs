//! Whether standard output was closed before the program began.
//!
//! The standard library opens `/dev/null` in place of a closed descriptor before `main` runs, so that every write
//! succeeds and the result is lost. The command looks before that, see `main.rs`.

use maxmargin::error::{Code, Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks whether standard output is closed. The system calls it before the standard library begins to work.
pub extern "C" fn look() {
    #[cfg(unix)]
    // SAFETY: the call only asks about a descriptor.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Returns an error if nothing can be written to standard output.
pub(crate) fn ensure_open() -> Result<()> {
    if !CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(Error::new(Code::WriteFailed, "standard output is closed").help("write to a file, or leave `>&-` out"))
}
