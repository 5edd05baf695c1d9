//! Where output goes: results to standard output, messages to standard error, or one JSON object to standard output.

use crate::args::Common;
use crate::standard_output::ensure_open;
use maxmargin::error::{Code, Error, Result};
use std::borrow::Cow;
use std::io::{IsTerminal, Write};

/// The user's terminal or its replacement.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
}

impl Console {
    pub(crate) fn new(common: &Common) -> Console {
        Console { json: common.json, quiet: common.quiet }
    }

    /// A console without output, for a step within another command.
    pub(crate) fn silent() -> Console {
        Console { json: false, quiet: true }
    }

    /// Whether the result is one JSON object.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether messages are wanted.
    pub(crate) fn talks(&self) -> bool {
        !self.quiet
    }

    /// Whether messages can be redrawn in place.
    pub(crate) fn is_live(&self) -> bool {
        self.talks() && std::io::stderr().is_terminal()
    }

    /// Prints a message to standard error, unless quiet.
    pub(crate) fn say(&self, line: &str) {
        if self.talks() {
            let _ = writeln!(std::io::stderr().lock(), "{}", plain(line));
        }
    }

    /// Prints a result for people: to standard output, or to standard error if standard output is for JSON.
    pub(crate) fn show(&self, line: &str) -> Result<()> {
        if self.json {
            self.say(line)
        } else {
            self.print(line)?
        }
        Ok(())
    }

    /// Writes a line to standard output.
    pub(crate) fn print(&self, line: &str) -> Result<()> {
        self.write(|out| writeln!(out, "{}", plain(line)))
    }

    /// Prints the JSON object to standard output, if it is wanted.
    pub(crate) fn object(&self, object: impl FnOnce() -> serde_json::Value) -> Result<()> {
        if self.json { self.write(|out| writeln!(out, "{}", object())) } else { Ok(()) }
    }

    /// Writes to standard output. A closed pipe is not an error, because its reader needs nothing more.
    pub(crate) fn write(&self, content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
        ensure_open()?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        match content(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Error::new(Code::WriteFailed, format!("standard output could not be written: {error}"))
                    .help("free some space where it is written, or write to another place"))
            }
            _ => Ok(()),
        }
    }
}

/// A text without characters that a terminal obeys: names of files, columns and labels may hold escape sequences. Lines and
/// tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if obeyed(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

pub(crate) fn colours_on_stderr() -> bool {
    ::console::colors_enabled_stderr()
}

pub(crate) fn colours_on_stdout() -> bool {
    ::console::colors_enabled()
}
