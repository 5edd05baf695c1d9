//! The `maxmargin` command as a library. It turns arguments into validated settings, and settings into calls of the
//! core.

pub mod allocator;
mod args;
mod classes;
mod clicks;
mod codes;
mod commands;
mod comparisons;
mod console;
mod dialect;
mod flags;
mod for_task;
pub mod format;
mod kernels;
mod label_sets;
mod loading;
mod machine;
mod preferences;
mod progress;
mod render;
pub mod report;
mod sequences;
mod signals;
pub mod standard_output;
mod told;

use args::Command;
use clap::error::ErrorKind;
use console::Console;
use for_task::Refused;
use maxmargin::error::{Code, Error, Mark, Result};
use maxmargin::run::Cancel;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write;

/// Runs a command line, program name first. Returns the exit code: 0 for success, 2 for bad input or usage, 1
/// otherwise.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match for_task::parse(arguments.into_iter().collect()) {
        Ok(arguments) => arguments,
        Err(Refused::Usage(error)) => return usage(&error),
        Err(Refused::Error(error)) => return refused(&error),
    };
    if !arguments.common.quiet {
        start_tracing(arguments.common.verbose);
    }
    return_freed_memory();
    let console = Console::new(&arguments.common);
    let kept = match &arguments.command {
        Command::Train(train) => train.arguments.keep_partial,
        Command::Learn(_) => true,
        _ => false,
    };
    let cancel = signals::install(kept);
    let outcome = with_threads(arguments.common.threads, || dispatch(&arguments.command, &console, &cancel));
    match outcome {
        Ok(()) => 0,
        // `convert -o - | head -1` is no failure.
        Err(error) if error.mark() == Some(Mark::ReaderEnded) => 0,
        Err(error) => {
            let bare = error.code() == Code::Interrupted && error.raw_remedy().is_none();
            let again = match &arguments.command {
                Command::Train(_) => "run the command again, with --keep-partial to keep the best model so far",
                _ => "run the command again",
            };
            let error = if bare { error.help(again) } else { error };
            refused(&error)
        }
    }
}

/// Prints an error and returns its exit code.
fn refused(error: &Error) -> u8 {
    let _ = writeln!(std::io::stderr(), "{}", render::error(error, console::colours_on_stderr()));
    error.code().exit_code()
}

/// Keeps large buffers out of the allocator's own pool, so that freeing them lowers the memory in use. Readers build
/// data in pieces and free each piece once it is copied. Without this, the pool's limit grows with the first large
/// buffer freed, and the pieces would stay in the pool.
fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets a parameter of the allocator; no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
    }
}

fn dispatch(command: &Command, console: &Console, cancel: &Cancel) -> Result<()> {
    match command {
        Command::Train(arguments) => commands::train::run(arguments, console, cancel),
        Command::Learn(arguments) => commands::learn::run(arguments, console, cancel),
        Command::Tune(arguments) => commands::tune::run(arguments, console, cancel),
        Command::Predict(arguments) => commands::predict::run(arguments, console, cancel),
        Command::RankItems(arguments) => commands::rank_items::run(arguments, console, cancel),
        Command::Evaluate(arguments) => commands::evaluate::run(arguments, console, cancel),
        Command::Inspect(arguments) => commands::inspect::run(arguments, console),
        Command::Verify(arguments) => commands::verify::run(arguments, console, cancel),
        Command::Compact(arguments) => commands::compact::run(arguments, console, cancel),
        Command::Convert(arguments) => commands::convert::run(arguments, console, cancel),
        Command::Features(arguments) => commands::features::run(arguments, console, cancel),
        Command::Preferences(arguments) => commands::preferences::run(arguments, console, cancel),
        Command::Propensity(arguments) => commands::preferences::run_propensity(arguments, console, cancel),
        Command::Simulate(arguments) => commands::simulate::run(arguments, console, cancel),
        Command::Reproduce(arguments) => commands::reproduce::run(arguments, console, cancel),
        Command::Explain(arguments) => commands::explain::run(arguments, console),
        Command::Completions(arguments) => commands::completions::run(arguments, console),
        Command::Demo(arguments) => commands::demo::run(arguments, console, cancel),
    }
}

/// Help and version are printed to standard output. A wrong command line becomes an error with a code.
fn usage(error: &clap::Error) -> u8 {
    let text = error.render();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let shown = if console::colours_on_stdout() { text.ansi().to_string() } else { text.to_string() };
        // A reader that needs nothing more closes the pipe. That is not an error.
        let _ = write!(std::io::stdout(), "{shown}");
        return 0;
    }
    let words = text.to_string();
    // With colours, escapes of the user could not be told from those of the program.
    let shown = match console::plain(&words) {
        Cow::Borrowed(_) if console::colours_on_stderr() => text.ansi().to_string(),
        shown => shown.into_owned(),
    };
    let code = format!("error[{}]:", Code::Usage);
    let shown = shown.replacen("error:", &code, 1).replacen("tip:", "help:", 1);
    let shown = shown.trim_end();
    let _ = writeln!(std::io::stderr(), "{shown}\n`maxmargin explain {}` says more", Code::Usage);
    Code::Usage.exit_code()
}

fn with_threads<T: Send>(threads: Option<u16>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let mut builder = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = threads {
        builder = builder.num_threads(usize::from(threads));
    }
    let pool = builder.build().map_err(|error| {
        Error::new(Code::BadSetting, format!("the threads could not be started: {error}"))
            .help("try fewer with --threads 2")
    })?;
    pool.install(work)
}

fn start_tracing(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => tracing::Level::INFO,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .with_ansi(console::colours_on_stderr())
        .init();
}
