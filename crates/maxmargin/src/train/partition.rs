//! Data in several parts: [`Summary`] and [`Partition`].
//!
//! A part of a data set cannot be evaluated alone: scaling, classes, class weights and C as a share of the total weight
//! depend on all rows. So every part is summarised ([`Summary::of`]), the summaries are merged ([`Summary::merge`]), and
//! each part is posed with the merged one ([`Partition::with`]). The losses of the parts then add up to the loss of the
//! whole, with gradient and Hessian, but for rounding. [`crate::solve::SumOfRisks`] is that sum, ready for a solver.
//!
//! Whole queries must stay together. With explicit pairs the parts are sets of pairs over the same items, so a scaling that
//! is learned from the items is refused: scale the items before.

use super::posed::positive_total;
use super::{BuiltIn, Poses};
use crate::data::{ColumnSummary, Dataset, Design, Scaling};
use crate::error::{Code, Error, Result};
use crate::run::Cancel;
use crate::settings::Settings;
use crate::solve::{CurvedRisk, Preconditioner, Problem, ProblemShape, Risk};
use crate::task::Intercept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a task must know of all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Weights by name, such as those of the classes.
    pub weights: BTreeMap<String, f64>,
    /// The total weight of the loss at C = 1.
    pub total: f64,
    /// Scores a row.
    pub outputs: usize,
    /// Free scalars.
    pub free: usize,
    /// Whether these are penalised.
    pub penalises_free: bool,
}

impl Tally {
    /// The tally of a problem over a part of the rows, with C = 1.
    pub fn of(problem: &dyn Problem) -> Tally {
        let ProblemShape { outputs, free, .. } = problem.shape();
        let (total, penalises_free) = (problem.task().total_cost(), problem.rule() == Intercept::Penalised);
        Tally { weights: BTreeMap::new(), total, outputs, free, penalises_free }
    }

    fn merge(mut self, other: Tally) -> Tally {
        for (name, weight) in other.weights {
            *self.weights.entry(name).or_default() += weight;
        }
        Tally {
            weights: self.weights,
            total: self.total + other.total,
            outputs: self.outputs.max(other.outputs),
            free: self.free.max(other.free),
            penalises_free: self.penalises_free || other.penalises_free,
        }
    }
}

/// What must be known of all rows before a part of them can be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of features.
    cols: usize,
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
        Ok(Summary { cols: part.cols(), columns, tally: poses.tally(part, settings)? })
    }

    /// The summary of both.
    pub fn merge(self, other: Summary) -> Result<Summary> {
        if self.cols != other.cols {
            return Err(Error::new(Code::BadSetting, "the parts of the data have different numbers of features")
                .help("give all parts the same columns"));
        }
        let columns = self.columns.merge(other.columns)?;
        Ok(Summary { cols: self.cols, columns, tally: self.tally.merge(other.tally) })
    }
}

/// A part of a data set, posed with the summary of the whole.
pub struct Partition {
    /// None where no constraint is in this part.
    problem: Option<Box<dyn Problem>>,
    design: Design,
    nothing: Nothing,
}

impl Partition {
    /// A part of the data that the summary is of.
    pub fn with(part: &Dataset, settings: &Settings, whole: &Summary) -> Result<Partition> {
        Partition::with_own(&BuiltIn, part, settings, whole)
    }

    /// The same for a task of your own.
    pub fn with_own(poses: &dyn Poses, part: &Dataset, settings: &Settings, whole: &Summary) -> Result<Partition> {
        if settings.expands() || settings.kernel.approximate.is_some() || settings.solver.is_hard_margin() {
            let message = "only linear models with a soft margin are learned from several parts";
            return Err(Error::new(Code::Unsupported, message).help("learn from all rows at once"));
        }
        if part.cols() != whole.cols {
            return Err(Error::new(Code::BadSetting, "the parts of the data have different numbers of features")
                .help("give all parts the same columns"));
        }
        let design = Scaling::of(settings.scale, &whole.columns).apply(part.matrix(), part.groups())?;
        let mut problem = poses.pose_part(part, settings, &whole.tally)?;
        let total = positive_total(poses.total(settings, &whole.tally)?, "row")?;
        if let Some(problem) = &mut problem {
            problem.task_mut().set_cost(settings.regularisation.c(total));
        }
        let dim = whole.cols * whole.tally.outputs + whole.tally.free;
        let penalised = if whole.tally.penalises_free { dim } else { whole.cols * whole.tally.outputs };
        Ok(Partition { problem, design, nothing: Nothing { dim, penalised } })
    }

    /// The loss of this part, without the penalty.
    pub fn risk<'a>(&'a self, cancel: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        match &self.problem {
            Some(problem) => problem.risk(&self.design, cancel),
            None => Ok(Box::new(self.nothing)),
        }
    }
}

/// The loss of a part without constraints: zero everywhere.
#[derive(Clone, Copy, Debug)]
struct Nothing {
    dim: usize,
    penalised: usize,
}

impl Risk for Nothing {
    fn dim(&self) -> usize {
        self.dim
    }

    fn penalised(&self) -> usize {
        self.penalised
    }

    fn evaluate(&mut self, _: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient.fill(0.0);
        Ok(0.0)
    }

    fn line(&mut self, _: &[f64]) -> Result<()> {
        Ok(())
    }

    fn along(&mut self, _: f64) -> Result<(f64, f64)> {
        Ok((0.0, 0.0))
    }
}

impl CurvedRisk for Nothing {
    fn has_exact_hessian(&self) -> bool {
        true
    }

    fn hessian(&mut self) -> Result<Vec<f64>> {
        Ok(vec![0.0; self.dim * self.dim])
    }

    fn hessian_times(&mut self, _: &[f64], out: &mut [f64]) -> Result<()> {
        out.fill(0.0);
        Ok(())
    }

    fn preconditioner(&mut self) -> Result<Preconditioner> {
        Ok(Preconditioner::Diagonal(vec![0.0; self.dim]))
    }
}
