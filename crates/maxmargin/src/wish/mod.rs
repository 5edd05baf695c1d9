//! What a user may ask for whatever the task: which solver, how strong a loss, which steps, and how settings are declared.
//!
//! Tasks and solvers use these types; [`crate::settings::Settings`] puts them together with what is set about one task.
//! Every setting is declared once, as a [`Setting`]: its name, what it does, what values it takes and where it stands in the
//! settings. The command makes its flags and its settings files from that, and so do other front ends.

mod regularisation;
mod setting;
mod solver;
mod stochastic;

pub use regularisation::Regularisation;
pub use setting::{COMMON, Choice, Chosen, Range, Setting, Value};
pub(crate) use setting::{LEARNING, STOCHASTIC};
pub use solver::Solver;
pub use stochastic::{EarlyStopping, Sample, Schedule, Stochastic};

use crate::data::Scale;
use crate::kernel::KernelSettings;
use crate::loss::Loss;
use serde::{Deserialize, Serialize};

/// What is done about a free scalar beside the scores: the constant term of a classifier, or the threshold of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intercept {
    /// There is none.
    None,
    /// It is a free variable, not penalised.
    #[default]
    Free,
    /// It is penalised like a weight: the weight of a constant feature of value 1.
    Penalised,
}

impl Intercept {
    /// Every way there is.
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

/// What was asked for beside the task itself: what a task looks at to refuse what it cannot do.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// What a violated margin costs.
    pub loss: Loss,
    /// How it is learned.
    pub solver: Solver,
    /// How features are scaled.
    pub scale: Scale,
    /// The weight of the loss.
    pub regularisation: Regularisation,
    /// What only the stochastic solvers take.
    pub stochastic: &'a Stochastic,
    /// The kernel.
    pub kernel: &'a KernelSettings,
}
