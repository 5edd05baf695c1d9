//! Data in several parts: [`Summary`] and [`Partition`].
//!
//! A part of a data set cannot be evaluated alone: scaling, classes, class weights and C as a share of the total weight
//! depend on all rows. So every part is summarised ([`Summary::of`]), the summaries are merged ([`Summary::merge`]), and
//! each part is posed with the merged one ([`Partition::with`]). The losses of the parts then add up to the loss of the
//! whole, with gradient and Hessian, but for rounding. [`crate::solve::SumOfRisks`] is that sum, ready for a solver.
//!
//! Whole queries must stay together. With explicit pairs the parts are sets of pairs over the same items, so a scaling that
//! is learned from the items is refused: scale the items before. A comparison with logistic loss has no value at a threshold
//! of zero: start its solver at a threshold above zero.

use super::posed::positive_total;
use super::{BuiltIn, Poses};
use crate::data::{ColumnSummary, Dataset, Design, Scale, Scaling};
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::{CurvedRisk, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a task must know of all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Weights by name, such as those of the classes.
    pub weights: BTreeMap<String, f64>,
    /// Whether the names are words. Otherwise they are numbers, and ordered by value.
    pub words: bool,
    /// The total weight of the loss at C = 1.
    pub total: f64,
}

impl Tally {
    /// Adds the weights of another part.
    fn merge(mut self, other: Tally) -> Tally {
        for (name, weight) in other.weights {
            *self.weights.entry(name).or_default() += weight;
        }
        Tally { weights: self.weights, words: self.words || other.words, total: self.total + other.total }
    }
}

/// What must be known of all rows before a part of them can be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of features.
    cols: usize,
    scale: Scale,
    columns: ColumnSummary,
    tally: Tally,
}

impl Summary {
    /// The summary of one part of the data.
    pub fn of(part: &Dataset, settings: &Settings, cancel: &Cancel) -> Result<Summary> {
        Summary::of_own(&BuiltIn, part, settings, cancel)
    }

    /// The same for a task of your own.
    pub fn of_own(poses: &dyn Poses, part: &Dataset, settings: &Settings, cancel: &Cancel) -> Result<Summary> {
        settings.validate()?;
        let columns = ColumnSummary::of(settings.scale, part, None, cancel)?;
        if part.pairs().is_some() && columns != ColumnSummary::Nothing {
            let message = "the items of several sets of pairs overlap, so that no scaling can be learned from them";
            return Err(Error::new(Code::Unsupported, message).help("scale the items before"));
        }
        let tally = if part.rows() == 0 { Tally::default() } else { poses.tally(part, settings)? };
        Ok(Summary { cols: part.cols(), scale: settings.scale, columns, tally })
    }

    /// The summary of both.
    pub fn merge(self, other: Summary) -> Result<Summary> {
        if self.cols != other.cols || self.scale != other.scale {
            return Err(different());
        }
        let columns = self.columns.merge(other.columns)?;
        Ok(Summary { columns, tally: self.tally.merge(other.tally), ..self })
    }
}

fn different() -> Error {
    Error::new(Code::BadSetting, "the parts of the data have different numbers of features, or another scaling")
        .help("give all parts the same columns and the same settings")
}

/// A part of a data set, posed with the summary of the whole.
pub struct Partition {
    /// `None` if this part has no constraint.
    problem: Option<Box<dyn Problem>>,
    design: Design,
}

impl Partition {
    /// A part of the data that the summary is of.
    pub fn with(part: &Dataset, settings: &Settings, whole: &Summary) -> Result<Partition> {
        Partition::with_own(&BuiltIn, part, settings, whole)
    }

    /// The same for a task of your own.
    pub fn with_own(poses: &dyn Poses, part: &Dataset, settings: &Settings, whole: &Summary) -> Result<Partition> {
        if settings.expands() || settings.kernel.approximate.is_some() || settings.is_hard_margin() {
            let message = "only linear models with a soft margin are learned from several parts";
            return Err(Error::new(Code::Unsupported, message).help("learn from all rows at once"));
        }
        if part.cols() != whole.cols || settings.scale != whole.scale {
            return Err(different());
        }
        let design = Scaling::of(settings.scale, &whole.columns).apply(part.matrix(), part.groups())?;
        let total = poses.total(settings, &whole.tally)?;
        if total == 0.0 && whole.tally.weights.values().all(|weight| *weight == 0.0) {
            return Err(Error::new(Code::NoPairs, "no part has anything to learn from")
                .help("check that the targets are grades and that the query ids group several rows"));
        }
        let total = positive_total(total, "row")?;
        let mut problem = if part.rows() == 0 { None } else { poses.pose_part(part, settings, &whole.tally)? };
        if let Some(problem) = &mut problem {
            problem.task_mut().set_cost(settings.regularisation.c(total));
        }
        Ok(Partition { problem, design })
    }

    /// The loss of this part, without the penalty; `None` if it has no constraint.
    pub fn risk<'a>(&'a self, cancel: &'a Cancel) -> Result<Option<Box<dyn CurvedRisk + 'a>>> {
        self.problem.as_ref().map(|problem| problem.risk(&self.design, cancel)).transpose()
    }
}
