//! The `maxmargin` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(maxmargin_cli::run(std::env::args_os()))
}
