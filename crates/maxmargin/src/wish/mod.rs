//! Settings that all tasks share: the solver, the weight of the loss, the steps, and how settings are declared.
//!
//! Tasks and solvers use these types. [`crate::settings::Settings`] combines them with the settings of one task. Every
//! setting is declared once, as a [`Setting`]: its name, its effect, its values and its place in the settings. The
//! command and other front ends make their flags and settings files from these declarations.

mod margin;
mod regularisation;
mod setting;
mod solver;
mod stochastic;
mod streaming;

pub use margin::Margin;
pub use regularisation::Regularisation;
pub use setting::{COMMON, Choice, Chosen, Range, Setting, Value};
pub(crate) use setting::{LEARNING, STOCHASTIC};
pub use solver::Solver;
pub use stochastic::{EarlyStopping, Sample, Schedule, Stochastic, Variant};
pub(crate) use streaming::{PA_VARIANT, STREAM_AVERAGE, STREAM_BATCH, STREAM_C, STREAM_LAMBDA, STREAM_LOSS};
pub(crate) use streaming::{STREAM_EARLY_STOPPING, STREAM_JUDGE_EVERY};
pub(crate) use streaming::{STREAM_RATE, STREAM_RECALIBRATE, STREAM_RESERVOIR, STREAM_SCALE, STREAM_SCHEDULE};

use crate::data::Scale;
use crate::kernel::KernelSettings;
use crate::loss::Loss;
use serde::{Deserialize, Serialize};

/// The rule for a free scalar: the constant term of a classifier, or the threshold of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intercept {
    /// There is no free scalar.
    None,
    /// It is a free variable, not penalised.
    #[default]
    Free,
    /// It is penalised like a weight: the weight of a constant feature of value 1.
    Penalised,
}

impl Intercept {
    /// All rules.
    pub const ALL: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Intercept::None => "none",
            Intercept::Free => "free",
            Intercept::Penalised => "penalised",
        }
    }
}

/// The settings apart from the task's own. A task checks them and refuses what it cannot do.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// What a violated margin costs.
    pub loss: Loss,
    /// The solver.
    pub solver: Solver,
    /// Whether every margin must be reached.
    pub hard: bool,
    /// How features are scaled.
    pub scale: Scale,
    /// The weight of the loss.
    pub regularisation: Regularisation,
    /// The settings of the stochastic solvers.
    pub stochastic: &'a Stochastic,
    /// The kernel.
    pub kernel: &'a KernelSettings,
}
