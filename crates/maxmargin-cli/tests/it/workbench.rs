//! A folder to work in, the command to run in it, and its output.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// No command of these tests takes longer than this, unless it hangs.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(100);

/// A temporary folder in which commands run, so that files have short names as at a prompt.
pub(crate) struct Workbench {
    folder: TempDir,
}

impl Workbench {
    pub(crate) fn new() -> Workbench {
        Workbench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// With `search.txt` and `search-test.txt` to rank, from one hidden model.
    pub(crate) fn with_search() -> Workbench {
        let bench = Workbench::new();
        for (stream, file) in [("0", "search.txt"), ("1", "search-test.txt")] {
            let common = "--queries 40 --docs 12 --features 8 --seed 5 -q";
            bench.ok(&format!("simulate search {common} --stream {stream} -o {file}"));
        }
        bench
    }

    /// With `text.txt` and `text-test.txt` to classify, from one hidden model.
    pub(crate) fn with_text() -> Workbench {
        let bench = Workbench::new();
        for (stream, file) in [("0", "text.txt"), ("1", "text-test.txt")] {
            let common = "--rows 600 --features 200 --nonzeros 20 --seed 5 -q";
            bench.ok(&format!("simulate text {common} --stream {stream} -o {file}"));
        }
        bench
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) -> &Workbench {
        std::fs::write(self.path(file), content).expect("the folder is writable");
        self
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub(crate) fn text(&self, file: &str) -> String {
        String::from_utf8(self.read(file)).expect("text")
    }

    /// Everything in the folder, hidden files too.
    pub(crate) fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    /// The command with arguments separated by blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("maxmargin");
        command.args(line.split_whitespace()).current_dir(self.folder.path()).env("NO_COLOR", "1").timeout(PATIENCE);
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::of(line, &self.command(line).output().expect("the command starts"))
    }

    pub(crate) fn run_with_input(&self, line: &str, input: impl Into<Vec<u8>>) -> Ran {
        Ran::of(line, &self.command(line).write_stdin(input).output().expect("the command starts"))
    }

    /// Runs a command that must succeed.
    pub(crate) fn ok(&self, line: &str) -> Ran {
        self.run(line).succeeded()
    }

    /// Runs a command that must succeed, and returns its JSON object.
    pub(crate) fn json(&self, line: &str) -> Value {
        self.ok(&format!("{line} --json")).object()
    }

    /// Runs a command that must be refused with a code and exit code 2, and must not change the folder.
    pub(crate) fn refused(&self, line: &str, code: &str) -> Ran {
        let before = self.files();
        let ran = self.run(line).failed(2, code);
        assert_eq!(self.files(), before, "`{line}` left something behind");
        ran
    }
}

/// The output of a command and how it ended.
pub(crate) struct Ran {
    pub(crate) line: String,
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(line: &str, output: &std::process::Output) -> Ran {
        let ran = Ran {
            line: line.to_string(),
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        assert!(!ran.stderr.contains("panicked"), "`{line}` panicked:\n{}", ran.stderr);
        ran
    }

    pub(crate) fn succeeded(self) -> Ran {
        assert_eq!(self.exit, Some(0), "`{}`:\n{}{}", self.line, self.stdout, self.stderr);
        self
    }

    /// Checks the exit code, the error code, the help, and that standard output is empty.
    pub(crate) fn failed(self, exit: i32, code: &str) -> Ran {
        let shown = format!("`{}` ended with {:?}:\n{}{}", self.line, self.exit, self.stdout, self.stderr);
        assert_eq!(self.exit, Some(exit), "{shown}");
        assert!(self.stderr.contains(&format!("error[{code}]: ")), "no {code}: {shown}");
        assert!(self.stdout.is_empty(), "standard output is for results: {shown}");
        if code != "MM0405" {
            assert!(self.stderr.contains("\n   help: "), "no help: {shown}");
            self.has_the_flags_of_its_remedy();
            assert!(self.stderr.contains(&format!("`maxmargin explain {code}` says more")), "{shown}");
        }
        self
    }

    /// Checks that the command has every flag that the help of its error names, or was given it. Other commands are named
    /// in backquotes, with their flags, and a model may have to be trained with another setting.
    fn has_the_flags_of_its_remedy(&self) {
        let own = self.line.split_once("exec maxmargin ").map_or(self.line.as_str(), |(_, own)| own);
        let words: Vec<&str> = own.split_whitespace().collect();
        let subcommand = match words[..] {
            ["train" | "tune" | "learn" | "features" | "reproduce", kind, ..] if !kind.starts_with('-') => &words[..2],
            [command, ..] if !command.starts_with('-') => &words[..1],
            _ => return,
        };
        let all_flags = |subcommand: &[&str]| {
            let mut command = assert_cmd::cargo::cargo_bin_cmd!("maxmargin");
            let output = command.args(subcommand).arg("--help").env("NO_COLOR", "1").output().expect("it starts");
            flags(&String::from_utf8_lossy(&output.stdout))
        };
        let mut known = all_flags(subcommand);
        known.extend(flags(&self.line));
        let help = self.stderr.lines().filter_map(|line| line.trim_start().strip_prefix("help: "));
        for help in help {
            let own: String = help.split('`').step_by(2).collect();
            if own.contains("train with") {
                known.extend(["compare", "classify"].iter().flat_map(|task| all_flags(&["train", task])));
            }
            for flag in flags(&own) {
                assert!(known.contains(&flag), "`{}` has no {flag}:\n{}", subcommand.join(" "), self.stderr);
            }
        }
    }

    /// The error alone, without earlier messages.
    pub(crate) fn error(&self) -> &str {
        &self.stderr[self.stderr.find("error[").expect("an error")..]
    }

    /// Checks that standard error contains a text.
    pub(crate) fn says(self, text: &str) -> Ran {
        assert!(self.stderr.contains(text), "`{}` does not say `{text}`:\n{}", self.line, self.stderr);
        self
    }

    /// Checks that standard output contains a text.
    pub(crate) fn shows(self, text: &str) -> Ran {
        assert!(self.stdout.contains(text), "`{}` does not show `{text}`:\n{}", self.line, self.stdout);
        self
    }

    /// Checks the position, and that a caret is under the token there.
    pub(crate) fn marks(self, place: &str, token: &str) -> Ran {
        let lines: Vec<&str> = self.stderr.lines().collect();
        let at = lines.iter().position(|line| line.trim() == place);
        let at = at.unwrap_or_else(|| panic!("`{}` does not say {place}:\n{}", self.line, self.stderr));
        let (row, marks) = (lines[at + 1], lines[at + 2]);
        let marked: String =
            row.chars().zip(marks.chars()).filter(|(_, mark)| *mark == '^').map(|(shown, _)| shown).collect();
        assert_eq!(marked, token, "`{}`:\n{}", self.line, self.stderr);
        self
    }

    /// The JSON object on the only line of standard output.
    pub(crate) fn object(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "`{}` prints one line:\n{}", self.line, self.stdout);
        let value: Value = serde_json::from_str(&self.stdout).expect("JSON");
        assert!(value.is_object(), "{value}");
        value
    }
}

/// All flags that a text names.
fn flags(text: &str) -> BTreeSet<String> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.split(|c: char| !letter(c))
        .filter(|word| word.len() > 2 && word.starts_with("--"))
        .map(str::to_string)
        .collect()
}

/// A number of a JSON object.
pub(crate) fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("no number {name} in {object}"))
}

/// Compares two numbers by relative difference.
pub(crate) fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.abs().max(other.abs())
}

/// Prints that a test could not be run here.
#[allow(clippy::print_stderr)] // a skip must be visible
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Makes times and sizes the same in every run.
pub(crate) fn stable() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"<?\d+(\.\d+)? (ms|s|min)\b", "[time]");
    settings.add_filter(r"\d+(\.\d+)? (bytes|KB|MB)\b", "[size]");
    settings.add_filter(r" +\[time\]", " [time]");
    settings.bind_to_scope()
}
