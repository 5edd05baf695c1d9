//! The `maxmargin` command.

use maxmargin_cli::allocator::Allocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The system calls every function in this section before the standard library begins to work.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds functions without arguments, and this one needs nothing of the standard library.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = maxmargin_cli::standard_output::look;

fn main() -> ExitCode {
    ExitCode::from(maxmargin_cli::run(std::env::args_os()))
}
