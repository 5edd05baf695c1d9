//! References: how a text names a setting or an input without the words of any front end.
//!
//! A message writes `⟦solver⟧`, or with a value `⟦loss=squared-hinge⟧`. The command shows these as `--solver` and
//! `--loss squared-hinge`, the Python package as `solver` and `loss="squared_hinge"`, and plain Rust as [`Neutral`] does.
//! Each front end has a [`Dialect`], and [`render`] puts its words into a text. A value that holds blanks or brackets stands
//! in single quotes: `⟦ignore='city name'⟧`.

use std::borrow::Cow;

/// How a front end names settings and inputs.
pub trait Dialect {
    /// The words for a setting or an input, one of [`NAMES`], with a value where the text gives one.
    fn reference(&self, name: &str, value: Option<&str>) -> String;
}

/// What a reference stands in: brackets that names in data files hardly ever have.
const OPEN: char = '⟦';
const CLOSE: char = '⟧';

/// All names that a reference can have: settings of tasks, settings of reading and of a run, and inputs of commands. What
/// stands in brackets and is none of them is no reference, and stays as it is.
pub const NAMES: &[&str] = &[
    // Settings of tasks.
    "approximate",
    "average-from",
    "batch",
    "budget",
    "c",
    "class-weight",
    "classes",
    "code",
    "coef0",
    "cost-matrix",
    "decoding",
    "degree",
    "early-stopping",
    "form",
    "gamma",
    "intercept",
    "judge-every",
    "kappa",
    "kernel",
    "kernel-cache",
    "lambda",
    "loss",
    "loss-scale",
    "margin",
    "max-passes",
    "max-seconds",
    "method",
    "multiclass",
    "nu",
    "optimize",
    "order-score",
    "pa-variant",
    "pair-weight",
    "multilabel",
    "parents",
    "weight-as",
    "polish",
    "positive",
    "probability",
    "project",
    "rate",
    "recalibrate",
    "rescale",
    "reservoir",
    "sample",
    "scale",
    "schedule",
    "seed",
    "siblings",
    "solver",
    "step",
    "targets-are",
    "templates",
    "threshold",
    "ties-from-grades",
    "tolerance",
    // Reading data.
    "group",
    "hash",
    "id",
    "ignore",
    "index-base",
    "label-separator",
    "labels",
    "least-count",
    "least-features",
    "max-words",
    "missing",
    "one-group",
    "precision",
    "target",
    "weight",
    // A run.
    "holdout",
    "memory",
    // Inputs of commands.
    "distance",
    "follow",
    "folds",
    "from",
    "input-format",
    "against",
    "clicks",
    "clip",
    "items",
    "preferences",
    "propensity",
    "skip-bad",
    "threads",
    "to",
    "validation",
    "vectors",
    // Simulated data.
    "docs",
    "features",
    "noise",
    "nonzeros",
    "pairs",
    "queries",
    "rows",
    "ties",
];

/// The text with its references in the words of a dialect.
pub fn render<'a>(text: &'a str, dialect: &dyn Dialect) -> Cow<'a, str> {
    let Some(first) = text.find(OPEN) else { return Cow::Borrowed(text) };
    let mut written = String::with_capacity(text.len() + 16);
    written.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(inside) = rest.strip_prefix(OPEN) {
        match parse(inside) {
            Some((name, value, after)) => {
                written.push_str(&dialect.reference(name, value));
                rest = after;
            }
            None => {
                written.push(OPEN);
                rest = inside;
            }
        }
        let next = rest.find(OPEN).unwrap_or(rest.len());
        written.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(written)
}

/// The name, the value and what stands behind the reference; `text` begins after the opening brackets. None where this is no
/// reference.
fn parse(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))?;
    let (name, rest) = text.split_at(end);
    if !NAMES.contains(&name) {
        return None;
    }
    if let Some(after) = rest.strip_prefix(CLOSE) {
        return Some((name, None, after));
    }
    let value = rest.strip_prefix('=')?;
    let end = if value.starts_with('\'') { value.find("'⟧")? + 1 } else { value.find(CLOSE)? };
    Some((name, Some(&value[..end]), &value[end + CLOSE.len_utf8()..]))
}

/// The words for plain Rust, which has no flags: `` `solver` ``, and with a value `` `loss = "squared-hinge"` ``, as in a
/// settings file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neutral;

impl Dialect for Neutral {
    fn reference(&self, name: &str, value: Option<&str>) -> String {
        match value {
            None => format!("`{name}`"),
            Some(value) if is_name(value) => format!("`{name} = \"{value}\"`"),
            Some(value) => format!("`{name} = {value}`"),
        }
    }
}

/// Whether a value is a name such as `squared-hinge` or `nystrom:1000`, and neither a number nor a word in capitals that
/// stands for a value.
pub fn is_name(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_shown_in_words_and_other_brackets_stay() {
        for (text, shown) in [
            ("no brackets", "no brackets"),
            ("leave ⟦solver⟧ out", "leave `solver` out"),
            ("add ⟦loss=squared-hinge⟧, or ⟦c⟧", "add `loss = \"squared-hinge\"`, or `c`"),
            ("⟦memory=4GiB⟧ or ⟦items=FILE⟧", "`memory = 4GiB` or `items = FILE`"),
            ("⟦class-weight=LABEL=W,LABEL=W⟧", "`class-weight = LABEL=W,LABEL=W`"),
            ("⟦ignore='a⟧ b'⟧.", "`ignore = 'a⟧ b'`."),
            ("⟦⟦c⟧⟧", "⟦`c`⟧"),
            ("column `⟦mine⟧`, `⟦c`, ⟦c=1] and ⟦", "column `⟦mine⟧`, `⟦c`, ⟦c=1] and ⟦"),
            ("⟦⟧ ⟦=1⟧ ⟦ c⟧ ⟦C⟧ ⟦é⟧", "⟦⟧ ⟦=1⟧ ⟦ c⟧ ⟦C⟧ ⟦é⟧"),
            ("a column called [[c]] stays", "a column called [[c]] stays"),
        ] {
            assert_eq!(render(text, &Neutral), shown);
        }
        assert!(matches!(render("plain", &Neutral), Cow::Borrowed(_)));
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
    }
}
