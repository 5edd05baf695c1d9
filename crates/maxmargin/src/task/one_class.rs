//! One class: finds the rows that are unlike the training rows.
//!
//! ```text
//! min  ½‖w‖² + Σ_i C_i max(0, 1 − w·φ(x_i))
//! ```
//! A row with a score w·φ(x) of at least 1 is typical; a row below that is an outlier. With C = 1/(ρ·ν·n), the usual
//! choice, this is the one-class machine of Schölkopf, Platt, Shawe-Taylor, Smola & Williamson (Estimating the support
//! of a high-dimensional distribution, Neural Computation 13, 2001) divided by its margin ρ: about a share ν of the
//! training rows are outliers. Targets are not used. There is one block per row, and no free threshold.

use super::{Abilities, Classes, Constraint, Independent, Input, LearningTask, Profile};
use crate::certificate::Decoder;
use crate::data::{Dataset, Subset, Targets, counts};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::wish::{Regularisation, Wish};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The settings of a one-class model. It has none of its own; `nu` sets the share of outliers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OneClassSettings {}

/// The default share of outliers among the training rows.
const USUAL_NU: f64 = 0.1;

/// `one-class`
pub(super) const PROFILE: Profile = Profile {
    name: "one-class",
    about: "Tell outliers from rows like the training data",
    settings: &[],
    without: &[
        "loss",
        "margin",
        "polish",
        "approximate",
        "budget",
        "schedule",
        "rate",
        "batch",
        "project",
        "early-stopping",
        "judge-every",
    ],
    loss: Loss::Hinge,
    regularisation: Regularisation::Nu(USUAL_NU),
    input: Input::Rows,
    streamed: &[],
    untunable: Some((
        "a one-class model has no labels to tune by",
        "use `train one-class`, whose nu is the share of rows to leave outside",
    )),
};

impl OneClassSettings {
    /// Refuses losses other than the hinge, and solvers that learn weights.
    pub(super) fn refuse(&self, wish: &Wish<'_>) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if wish.loss != Loss::Hinge {
            return bad("a one-class model uses the hinge loss".to_string(), "leave ⟦loss⟧ out");
        }
        if wish.hard {
            return bad(
                "a one-class model leaves some rows outside, and has no hard margin".to_string(),
                "leave ⟦margin⟧ and ⟦solver⟧ out",
            );
        }
        if !wish.solver.is_kernel_dual() && wish.solver != crate::wish::Solver::Auto {
            return bad(format!("a one-class model is not learned by `{}`", wish.solver.name()), "leave ⟦solver⟧ out");
        }
        if wish.kernel.approximate.is_some() {
            return bad(
                "a one-class model needs exact kernel values, and ⟦approximate⟧ replaces them".to_string(),
                "leave ⟦approximate⟧ out, or learn a classifier or ranker with ⟦c⟧",
            );
        }
        Ok(())
    }

    /// The meaning of the scores.
    pub(super) fn decoder(&self, data: &Dataset) -> Decoder {
        Decoder::Border(OneClass::names(data.targets()))
    }

    /// Whether a model of this task has such a decoder and intercept: the border is where the score equals the margin.
    pub(super) fn makes(&self, decoder: &Decoder, intercept: Option<f64>) -> bool {
        matches!(decoder, Decoder::Border(_)) && intercept == Some(-OneClass::MARGIN)
    }

    /// It is learned through a kernel, which may be the linear one.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities { weights: false, drawn: false, ..Abilities::LISTED }
    }
}

/// The task: a weight for each row.
#[derive(Clone, Debug)]
pub struct OneClass {
    weights: Arc<[f64]>,
    c: f64,
    names: Classes,
}

impl OneClass {
    /// The score that a typical row reaches.
    pub const MARGIN: f64 = 1.0;

    /// The task with C = 1 over some of the rows, or all.
    pub fn on(data: &Dataset, subset: Option<&Subset>) -> OneClass {
        let weight = |row: usize| match counts(subset, row) {
            true => data.weights().map_or(1.0, |weights| weights[row]),
            false => 0.0,
        };
        let names = OneClass::names(data.targets());
        OneClass { weights: (0..data.rows()).map(weight).collect(), c: 1.0, names }
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> OneClass {
        OneClass { c, ..self }
    }

    /// The total weight of the loss.
    pub fn total_cost(&self) -> f64 {
        self.weights.iter().map(|weight| self.c * weight).sum()
    }

    /// Number of rows with a positive cost.
    pub fn constraints(&self) -> u64 {
        self.weights.iter().filter(|&&weight| weight > 0.0).count() as u64
    }

    /// The names of typical rows and outliers: based on the label that all training rows share, or 1 and −1.
    pub fn names(targets: &Targets) -> Classes {
        let seen = match targets {
            Targets::Labels { names, codes } => {
                let first = codes.first().copied();
                first
                    .filter(|first| codes.iter().all(|code| code == first))
                    .map(|code| names.get(code as usize).into_owned())
            }
            Targets::Sets { .. } => None,
            _ => targets.real().ok().and_then(|values| {
                let first = values.first().copied();
                first.filter(|first| values.iter().all(|value| value == first)).map(|value| format!("{value}"))
            }),
        };
        let positive = seen.unwrap_or_else(|| "1".to_string());
        let negative = match positive.parse::<f64>() {
            Ok(-1.0) => "1",
            Ok(_) => "-1",
            Err(_) => "outlier",
        };
        Classes { negative: negative.to_string(), positive }
    }
}

impl LearningTask for OneClass {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        OneClass::total_cost(self)
    }

    fn constraints(&self) -> u64 {
        OneClass::constraints(self)
    }

    fn decoder(&self, _: &[f64]) -> Decoder {
        Decoder::Border(self.names.clone())
    }

    fn offset(&self) -> Option<f64> {
        Some(-OneClass::MARGIN)
    }
}

impl Independent for OneClass {
    fn blocks(&self) -> usize {
        self.weights.len()
    }

    fn loss(&self) -> Loss {
        Loss::Hinge
    }

    #[inline]
    fn constraint(&self, block: usize) -> Constraint {
        Constraint {
            row: block,
            against: None,
            coefficient: 1.0,
            threshold: 0.0,
            margin: OneClass::MARGIN,
            cost: self.c * self.weights[block],
        }
    }

    fn blocks_are_rows(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_rows_are_called_by_the_one_label_seen() {
        let named = |targets: Targets| {
            let Classes { negative, positive } = OneClass::names(&targets);
            (positive, negative)
        };
        let words =
            |codes: Vec<u32>| Targets::Labels { codes: codes.into(), names: ["ham", "spam"].into_iter().collect() };
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(named(words(vec![1, 1])), pair("spam", "outlier"));
        assert_eq!(named(words(vec![1, 0])), pair("1", "-1"));
        assert_eq!(named(Targets::Real(vec![2.0, 2.0].into())), pair("2", "-1"));
        assert_eq!(named(Targets::Real(vec![-1.0, -1.0].into())), pair("-1", "1"));
        assert_eq!(named(Targets::Real(vec![-1.0, 1.0].into())), pair("1", "-1"));
        assert_eq!(named(Targets::Absent), pair("1", "-1"));
    }
}
