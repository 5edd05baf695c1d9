//! Errors of the core as exceptions.

use maxmargin::data::Scale;
use maxmargin::error::{Code, Error};
use maxmargin::loss::Loss;
use maxmargin::settings::{Method, Solver};
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    maxmargin,
    MaxmarginError,
    PyValueError,
    "What is wrong with data, settings or a model.

`code` is stable and `maxmargin explain CODE` says more; `remedy` says what to do.

Examples
--------
>>> from maxmargin import MaxmarginError, Model
>>> try:
...     Model.from_bytes(b'no model')
... except MaxmarginError as error:
...     print(error.code)
MM0501
"
);

/// The exception for an error.
pub(crate) fn exception(error: &Error) -> PyErr {
    let reading = error.code().to_string().starts_with("MM02");
    let message = in_python(&error.to_string(), reading);
    match error.code() {
        Code::FileNotFound => PyFileNotFoundError::new_err(message),
        Code::FileUnreadable | Code::WriteFailed | Code::OutputUnwritable | Code::FileShrank => {
            PyOSError::new_err(message)
        }
        Code::Interrupted => PyKeyboardInterrupt::new_err(message),
        Code::MemoryBudget => PyMemoryError::new_err(message),
        Code::Internal => PyRuntimeError::new_err(message),
        code => Python::attach(|py| {
            let exception = MaxmarginError::new_err(message);
            let value = exception.value(py);
            let remedy = error.remedy().map(|remedy| in_python(remedy, reading));
            match value.setattr("code", code.to_string()).and_then(|()| value.setattr("remedy", remedy)) {
                Ok(()) => exception,
                Err(other) => other,
            }
        }),
    }
}

/// Translates flags in messages of the core into Python arguments: `--max-passes` becomes `max_iter`, and `--loss
/// squared-hinge` becomes `loss="squared_hinge"`. Queries are `qid` for estimators, and `group` of `load` when files
/// are read.
fn in_python(text: &str, reading: bool) -> String {
    let text = with_lists(text);
    let mut written: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let (before, flag, after) = parts(word);
        if flag == "--approximate" {
            // Pipelines of scikit-learn have their own kernel maps.
            let after =
                words.next().map(|map| parts(map).2.trim_start_matches(|c: char| c == ':' || c.is_alphanumeric()));
            written.push(format!("{before}Nystroem of scikit-learn before a linear one{}", after.unwrap_or_default()));
            continue;
        }
        let argument = match flag {
            "-c" => "C".to_string(),
            "--tolerance" => "tol".to_string(),
            "--max-passes" => "max_iter".to_string(),
            "--seed" => "random_state".to_string(),
            "--threads" => "n_jobs".to_string(),
            "--group" | "--one-group" if !reading => "qid".to_string(),
            "--folds" => "cv".to_string(),
            flag => match flag.strip_prefix("--").filter(|name| !name.is_empty()) {
                Some(name) => name.replace('-', "_"),
                None => flag.to_string(),
            },
        };
        let after_with = written.last().is_some_and(|word| word == "with");
        match words.peek().filter(|_| after.is_empty()).and_then(|next| value(flag, after_with, next)) {
            Some(value) => {
                written.push(format!("{before}{argument}={value}"));
                words.next();
            }
            None => written.push(format!("{before}{argument}{after}")),
        }
    }
    written.join(" ")
}

/// Turns quoted names of columns, which may have several words, into the list that `ignore` takes.
fn with_lists(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, (name, after))) =
        rest.split_once("--ignore '").and_then(|(before, quoted)| Some((before, quoted.split_once('\'')?)))
    {
        written.push_str(&format!("{before}ignore=[\"{name}\"]"));
        rest = after;
    }
    written + rest
}

/// The word after a flag as the value of an argument, and the text after it. `None` if the word only continues the
/// sentence. `after_with` says whether *with* precedes the flag.
fn value(flag: &str, after_with: bool, next: &str) -> Option<String> {
    if flag == "--ignore" && after_with {
        let names = next.trim_end_matches([',', ';', ')']);
        let list: Vec<String> = names.split(',').map(|name| format!("\"{name}\"")).collect();
        return Some(format!("[{}]{}", list.join(", "), &next[names.len()..]));
    }
    let (opening, word, after) = parts(next);
    let stands_for_one = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    if !flag.starts_with("--") || !opening.is_empty() {
        None
    } else if is_value(word) {
        let word = if flag == "--loss" { word.replace('-', "_") } else { word.to_string() };
        Some(format!("\"{word}\"{after}"))
    } else {
        stands_for_one.then(|| format!("{word}{after}"))
    }
}

/// Whether a word is the value of a setting.
fn is_value(word: &str) -> bool {
    ["free", "penalised", "none", "zero", "mean"].contains(&word)
        || Loss::ALL.iter().any(|loss| loss.name() == word)
        || Solver::ALL.iter().any(|solver| solver.name() == word)
        || Method::ALL.iter().any(|method| method.name() == word)
        || Scale::ALL.iter().any(|scale| scale.name() == word)
}

/// A word without the characters before and after it.
fn parts(word: &str) -> (&str, &str, &str) {
    let start = word.find(|c: char| c == '-' || c.is_alphanumeric()).unwrap_or(0);
    let (before, rest) = word.split_at(start);
    let end = rest.find(|c: char| !(c == '-' || c.is_alphanumeric())).unwrap_or(rest.len());
    let (flag, after) = rest.split_at(end);
    (before, flag, after)
}

/// For `?` in functions that Python calls.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for maxmargin::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
