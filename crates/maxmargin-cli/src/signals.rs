//! Ctrl-C, and mapped files that shrink while they are read.

use maxmargin::error::Code;
use maxmargin::run::Cancel;

/// Makes Ctrl-C and termination raise the flag that jobs poll. A second Ctrl-C ends the program at once. `wanted` says
/// whether the partial result is to be kept; computing it may take some time.
pub(crate) fn install(wanted: bool) -> Cancel {
    let cancel = Cancel::new();
    let raised = cancel.clone();
    // If a host program already has handlers, they stay.
    let _ = ctrlc::set_handler(move || {
        if raised.is_raised() {
            std::process::exit(130);
        }
        if wanted { raised.raise() } else { raised.abandon() }
    });
    #[cfg(unix)]
    {
        explain_bus_error();
        ignore_file_size_signal();
    }
    cancel
}

/// Makes a write past the limit of `ulimit -f` fail like one to a full disk, with an error and no temporary file left
/// behind, instead of ending the process.
#[cfg(unix)]
fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal runs none of our code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// The kernel answers a read past the end of a mapped file with SIGBUS, which would end the process without a message.
#[cfg(unix)]
fn explain_bus_error() {
    extern "C" fn handler(_: libc::c_int) {
        const MESSAGE: &[u8] = b"error[MM0106]: a file shrank or its device failed while it was read\n   \
            help: keep data files unchanged while a command reads them, then run it again; nothing was written\n   \
            `maxmargin explain MM0106` says more\n";
        // SAFETY: `write` and `_exit` are async-signal-safe, and the message is static.
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(1);
        }
    }
    debug_assert_eq!(Code::FileShrank.to_string(), "MM0106");
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler only calls async-signal-safe functions.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
}
