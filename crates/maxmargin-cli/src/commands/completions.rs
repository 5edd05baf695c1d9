//! `maxmargin completions SHELL`

use crate::args::{Arguments, CompletionsArguments};
use crate::console::Console;
use clap::CommandFactory;
use maxmargin::error::Result;

pub(crate) fn run(arguments: &CompletionsArguments, console: &Console) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "maxmargin", &mut script);
    console.write(|out| out.write_all(&script))
}
