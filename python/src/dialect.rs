//! References to settings and inputs in the words of Python: arguments of estimators and functions.

use maxmargin::wording::{Dialect, NAMES, is_name, render};
use pyo3::prelude::*;

/// Names settings as arguments: `solver`, `loss="squared_hinge"`, `C`.
pub(crate) struct Arguments {
    /// Whether a file is read: queries are then the `group` of `load`, and otherwise the `qid` of estimators.
    pub(crate) reading: bool,
}

/// Settings and inputs that have an argument, and what it is called.
const ARGUMENTS: &[(&str, &str)] = &[
    ("against", "against"),
    ("average-from", "average"),
    ("batch", "batch_size"),
    ("c", "C"),
    ("class-weight", "class_weight"),
    ("clip", "clip"),
    ("code", "code"),
    ("coef0", "coef0"),
    ("decoding", "decoding"),
    ("degree", "degree"),
    ("folds", "cv"),
    ("from", "warm_start"),
    ("gamma", "gamma"),
    ("id", "id"),
    ("ignore", "ignore"),
    ("index-base", "index_base"),
    ("intercept", "intercept"),
    ("items", "items"),
    ("kappa", "kappa"),
    ("kernel", "kernel"),
    ("kernel-cache", "cache_size"),
    ("loss", "loss"),
    ("max-passes", "max_iter"),
    ("method", "method"),
    ("missing", "missing"),
    ("multiclass", "multi_class"),
    ("multilabel", "form"),
    ("one-group", "one_group"),
    ("optimize", "optimize"),
    ("order-score", "order_score"),
    ("pair-weight", "pair_weight"),
    ("pairs", "pairs"),
    ("precision", "precision"),
    ("preferences", "preferences"),
    ("probability", "probability"),
    ("propensity", "propensity"),
    ("rescale", "rescale"),
    ("reservoir", "reservoir"),
    ("scale", "scale"),
    ("seed", "random_state"),
    ("solver", "solver"),
    ("target", "target"),
    ("threads", "n_jobs"),
    ("tolerance", "tol"),
    ("weight", "weight"),
    ("weight-as", "weight_as"),
];

impl Dialect for Arguments {
    fn reference(&self, name: &str, value: Option<&str>) -> String {
        let argument = match name {
            "group" if self.reading => Some("group"),
            "group" => Some("qid"),
            name => ARGUMENTS.iter().find(|(known, _)| *known == name).map(|(_, argument)| *argument),
        };
        match (name, argument, value) {
            // Pipelines of scikit-learn have maps of their own.
            ("approximate", _, Some(_)) => "Nystroem of scikit-learn before a linear model".to_string(),
            (_, Some(argument), Some(value)) => format!("{argument}={}", written(name, value)),
            (_, Some(argument), None) => argument.to_string(),
            // What has no argument is a flag of the command, which comes with the package.
            (_, None, Some(value)) => format!("the command's --{name} {value}"),
            (_, None, None) => format!("the command's --{name}"),
        }
    }
}

/// A value as Python writes it.
fn written(name: &str, value: &str) -> String {
    match name {
        "ignore" => format!("[{}]", columns(value).join(", ")),
        "class-weight" if value.contains('=') => format!("{{{}}}", value.replace('=', ": ").replace(',', ", ")),
        "kernel-cache" => match value.parse::<maxmargin::wording::Size>() {
            Ok(size) => (size.0 >> 20).to_string(),
            Err(_) => value.to_string(),
        },
        "loss" => format!("\"{}\"", value.replace('-', "_")),
        _ if is_name(value) => format!("\"{value}\""),
        _ => value.to_string(),
    }
}

/// Names of columns, which are separated by commas unless one stands in quotes.
fn columns(value: &str) -> Vec<String> {
    match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(name) => vec![format!("{name:?}")],
        None => value.split(',').map(|name| format!("\"{name}\"")).collect(),
    }
}

/// The text in the words of Python, for tests.
#[pyfunction]
pub(crate) fn _in_words(text: &str, reading: bool) -> String {
    render(text, &Arguments { reading }).into_owned()
}

/// The names that references can have, for tests.
#[pyfunction]
pub(crate) fn _names() -> Vec<&'static str> {
    NAMES.to_vec()
}
