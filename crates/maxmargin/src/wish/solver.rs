//! [`Solver`]: how a task is learned, by name.

use serde::{Deserialize, Serialize};

/// How it is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// The one that suits task, loss and data.
    #[default]
    Auto,
    /// Dual coordinate descent.
    DualCoordinateDescent,
    /// Newton's method, exact or with conjugate gradients.
    Newton,
    /// The hard margin as a quadratic program: every margin is reached, or there is no model. Loss and regularisation
    /// play no part.
    QuadraticProgram,
    /// The largest margin of comparisons in function values, as a linear program. Loss and regularisation play no part.
    LinearProgram,
    /// Cutting planes with exact line search.
    CuttingPlane,
    /// A primal-dual interior point, for hinge and squared hinge: few steps, each of rows times features squared.
    InteriorPoint,
    /// Stochastic gradient descent.
    Sgd,
    /// Stochastic gradient descent with averaged weights.
    AveragedSgd,
    /// Pegasos: stochastic steps of length 1/(λt).
    Pegasos,
    /// Sequential minimal optimisation over kernel values.
    Smo,
    /// The same one row after the other, in one pass: LaSVM.
    Lasvm,
    /// Passive-aggressive steps over a stream of comparisons: see [`crate::stream`].
    PassiveAggressive,
}

impl Solver {
    /// Every solver of data at hand. [`Solver::PassiveAggressive`] is for streams alone.
    pub const ALL: [Solver; 12] = [
        Solver::Auto,
        Solver::DualCoordinateDescent,
        Solver::Newton,
        Solver::CuttingPlane,
        Solver::InteriorPoint,
        Solver::QuadraticProgram,
        Solver::LinearProgram,
        Solver::Sgd,
        Solver::AveragedSgd,
        Solver::Pegasos,
        Solver::Smo,
        Solver::Lasvm,
    ];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Solver::Auto => "auto",
            Solver::DualCoordinateDescent => "dual-coordinate-descent",
            Solver::Newton => "newton",
            Solver::QuadraticProgram => "quadratic-program",
            Solver::LinearProgram => "linear-program",
            Solver::CuttingPlane => "cutting-plane",
            Solver::InteriorPoint => "interior-point",
            Solver::Sgd => "sgd",
            Solver::AveragedSgd => "averaged-sgd",
            Solver::Pegasos => "pegasos",
            Solver::Smo => "smo",
            Solver::Lasvm => "lasvm",
            Solver::PassiveAggressive => "passive-aggressive",
        }
    }

    /// Whether it makes a hard margin, which knows neither loss nor regularisation.
    pub fn is_hard_margin(self) -> bool {
        matches!(self, Solver::QuadraticProgram | Solver::LinearProgram)
    }

    /// Whether it learns from one random constraint after the other. Such a solver proves no bound, and makes the passes
    /// it is told to.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos)
    }

    /// Whether it learns weights of features, and nothing through kernel values.
    pub fn learns_weights_alone(self) -> bool {
        match self {
            Solver::DualCoordinateDescent
            | Solver::QuadraticProgram
            | Solver::LinearProgram
            | Solver::CuttingPlane
            | Solver::InteriorPoint
            | Solver::AveragedSgd
            | Solver::PassiveAggressive => true,
            Solver::Auto | Solver::Newton | Solver::Sgd | Solver::Pegasos | Solver::Smo | Solver::Lasvm => false,
        }
    }

    /// Whether it solves the dual problem over kernel values, the linear kernel among them.
    pub fn is_kernel_dual(self) -> bool {
        matches!(self, Solver::Smo | Solver::Lasvm)
    }

    /// The passes a run gets unless told: plenty for a solver that stops by itself, a few for one that does not.
    pub fn default_passes(self) -> u64 {
        match self {
            Solver::Smo => 100_000,
            Solver::Lasvm | Solver::PassiveAggressive => 1,
            _ if self.is_stochastic() => 20,
            _ => 1000,
        }
    }
}
