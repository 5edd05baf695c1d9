//! [`Solver`]: the solvers by name.

use serde::{Deserialize, Serialize};

/// The solver of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// Chosen by task, loss and data.
    #[default]
    Auto,
    /// Dual coordinate descent.
    DualCoordinateDescent,
    /// Newton's method, exact or with conjugate gradients.
    Newton,
    /// The hard margin as a quadratic program: every margin is reached, or there is no model. Loss and regularisation
    /// are not used.
    QuadraticProgram,
    /// The largest margin of comparisons in function values, as a linear program. Loss and regularisation are not used.
    LinearProgram,
    /// Cutting planes with exact line search.
    CuttingPlane,
    /// Block-coordinate Frank–Wolfe with cached outputs, for structured outputs.
    FrankWolfe,
    /// Cutting planes with one slack per example, for structured outputs: few searches for the most violated output.
    NSlack,
    /// A primal-dual interior-point method, for hinge and squared hinge. It takes few steps, each of cost rows times
    /// features squared.
    InteriorPoint,
    /// Stochastic gradient descent.
    Sgd,
    /// Stochastic gradient descent with averaged weights.
    AveragedSgd,
    /// Pegasos: stochastic steps of length 1/(λt).
    Pegasos,
    /// Sequential minimal optimisation over kernel values.
    Smo,
    /// LaSVM: the same, one row after the other in one pass.
    Lasvm,
    /// Passive-aggressive steps over a stream of comparisons: see [`crate::stream`].
    PassiveAggressive,
    /// Passive-aggressive steps over a stream of rows, each alone.
    Pa,
    /// The same for balanced batches: the optimum for each batch.
    PaDca,
    /// One row of a batch after the other.
    PaSequential,
    /// Pairs of a positive and a negative row.
    PaAuc,
    /// The worst rows of both classes together.
    PaMaxViolators,
    /// All rows with a loss together.
    PaCorrectMistakes,
    /// The average margin of a batch.
    PaSingleSlack,
}

impl Solver {
    /// Passive-aggressive steps over a stream of rows of classes; only for streams.
    pub const PAIRED: [Solver; 7] = [
        Solver::Pa,
        Solver::PaDca,
        Solver::PaSequential,
        Solver::PaAuc,
        Solver::PaMaxViolators,
        Solver::PaCorrectMistakes,
        Solver::PaSingleSlack,
    ];

    /// Whether it is one of [`Solver::PAIRED`].
    pub fn is_paired(self) -> bool {
        Solver::PAIRED.contains(&self)
    }

    /// All solvers for data that are not a stream. [`Solver::PassiveAggressive`] and [`Solver::PAIRED`] are for streams.
    pub const ALL: [Solver; 14] = [
        Solver::Auto,
        Solver::DualCoordinateDescent,
        Solver::Newton,
        Solver::CuttingPlane,
        Solver::FrankWolfe,
        Solver::NSlack,
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
            Solver::FrankWolfe => "frank-wolfe",
            Solver::NSlack => "n-slack",
            Solver::InteriorPoint => "interior-point",
            Solver::Sgd => "sgd",
            Solver::AveragedSgd => "averaged-sgd",
            Solver::Pegasos => "pegasos",
            Solver::Smo => "smo",
            Solver::Lasvm => "lasvm",
            Solver::PassiveAggressive => "passive-aggressive",
            Solver::Pa => "pa",
            Solver::PaDca => "pa-dca",
            Solver::PaSequential => "pa-sequential",
            Solver::PaAuc => "pa-auc",
            Solver::PaMaxViolators => "pa-max-violators",
            Solver::PaCorrectMistakes => "pa-correct-mistakes",
            Solver::PaSingleSlack => "pa-single-slack",
        }
    }

    /// Whether it computes a hard margin, which uses neither loss nor regularisation.
    pub fn is_hard_margin(self) -> bool {
        matches!(self, Solver::QuadraticProgram | Solver::LinearProgram)
    }

    /// Whether it learns from one random constraint after the other. Such a solver proves no bound. It makes the given
    /// number of passes unless early stopping ends it sooner.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos)
    }

    /// Whether its solution can be polished to the last digits.
    pub(crate) fn can_be_polished(self) -> bool {
        !self.is_stochastic()
            && !self.is_hard_margin()
            && !self.is_paired()
            && !matches!(self, Solver::FrankWolfe | Solver::NSlack | Solver::Lasvm | Solver::PassiveAggressive)
    }

    /// Whether it learns only weights of features and does not use kernel values.
    pub fn learns_weights_alone(self) -> bool {
        match self {
            Solver::DualCoordinateDescent
            | Solver::QuadraticProgram
            | Solver::LinearProgram
            | Solver::CuttingPlane
            | Solver::InteriorPoint
            | Solver::AveragedSgd
            | Solver::PassiveAggressive
            | Solver::Pa
            | Solver::PaDca
            | Solver::PaSequential
            | Solver::PaAuc
            | Solver::PaMaxViolators
            | Solver::PaCorrectMistakes
            | Solver::PaSingleSlack => true,
            Solver::Auto
            | Solver::Newton
            | Solver::FrankWolfe
            | Solver::NSlack
            | Solver::Sgd
            | Solver::Pegasos
            | Solver::Smo
            | Solver::Lasvm => false,
        }
    }

    /// Whether it solves the dual problem over kernel values, the linear kernel among them.
    pub fn is_kernel_dual(self) -> bool {
        matches!(self, Solver::Smo | Solver::Lasvm)
    }

    /// The default number of passes: large for a solver with a stopping rule, small for one without.
    pub fn default_passes(self) -> u64 {
        match self {
            Solver::Smo => 100_000,
            Solver::Lasvm | Solver::PassiveAggressive => 1,
            _ if self.is_paired() => 1,
            _ if self.is_stochastic() => 20,
            _ => 1000,
        }
    }
}
