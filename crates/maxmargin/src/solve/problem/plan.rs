//! Which solver solves what: the one support matrix, and how `auto` chooses.
//!
//! The matrix ([`supports`]) has a row for each solver. How `auto` chooses ([`chosen`]) is a list of rules: the first
//! rule that fits decides. docs/decisions/auto.md explains why.

use crate::data::{PairCounts, Shape};
use crate::error::{Code, Error, Result};
use crate::kernel::{KernelKind, KernelSettings};
use crate::loss::Loss;
use crate::settings::Settings;
use crate::solve::linear_risk::TILE;
use crate::task::{Abilities, Task, TaskSettings};
use crate::wish::{Regularisation, Solver};

/// Up to this many features, Newton's method replaces dual coordinate descent, on smooth losses and on the rounded
/// hinge: one exact step costs little there, and badly scaled columns do not slow it down.
const FEW_FEATURES: usize = 500;

/// With more features, Newton's method also replaces it if rows store at least this share of them and outnumber them: a
/// visit to one row then undoes what visits to others did. Rows that are fewer than their features hardly disturb each
/// other.
const DENSE: f64 = 0.1;

/// With few rows per feature Newton's method needs hundreds of steps, on a rounded hinge and, where a large cost leaves
/// next to nothing of the loss, on the squared hinge. Below this many rows per feature the interior point solves both.
const CROWDED_HINGE: usize = 10;
const CROWDED_SQUARED_HINGE: usize = 5;

/// With more features than this, the linear system of an interior-point step takes too long for `auto` to choose it.
const INTERIOR_POINT_FEATURES: usize = 4096;

/// With more features than this the system would take more than two gigabytes, and the interior point is refused.
const MOST_INTERIOR_POINT_FEATURES: usize = 16_384;

/// The solver for data of this shape, or an error if the combination is not supported. It may also be called before any
/// data are read, with an unknown shape.
pub fn plan(abilities: Abilities, settings: &Settings, shape: Shape) -> Result<Solver> {
    let by_kernel = settings.expands();
    let features = settings.kernel.seen_features(shape.features);
    let solver = match settings.solver {
        Solver::Auto => chosen(abilities, settings, shape),
        solver => solver,
    };
    let one_margin = (abilities.several || abilities.structured) && settings.regularisation.is_nu();
    if one_margin || !supports(abilities, settings.loss, solver, by_kernel) {
        return Err(unsupported(abilities, settings, solver));
    }
    if solver == Solver::InteriorPoint && features > MOST_INTERIOR_POINT_FEATURES {
        let message = format!(
            "`interior-point` supports at most {MOST_INTERIOR_POINT_FEATURES} features, and there are {features}"
        );
        return Err(Error::new(Code::Unsupported, message).help("leave ⟦solver⟧ out"));
    }
    Ok(solver)
}

/// The solver that `auto` takes: the first rule that fits.
fn chosen(abilities: Abilities, settings: &Settings, shape: Shape) -> Solver {
    let Shape { rows, features, density, compared } = shape;
    let (features, density) = match settings.kernel.approximate {
        // Mapped rows are dense, but of similar length and at any angle: a visit to one undoes little of the visits to
        // others.
        Some(map) => (map.features(), 0.0),
        None => (features, density),
    };
    // Pairs of arbitrary items join all rows into one part. If its tile would be too large for an exact Hessian, every
    // width of a rounded hinge is solved by conjugate gradients, on one thread. A visit to a pair costs two rows, and
    // for sparse or mapped rows it undoes little of what visits to others did.
    let tied = |compared: PairCounts| !compared.as_differences() && compared.rows.saturating_mul(features) > TILE;
    let too_long = settings.loss == Loss::Hinge && density < DENSE && compared.is_some_and(tied);
    let constraints = compared.map_or(rows, |compared| compared.pairs);
    let crowded = match settings.loss {
        Loss::Hinge => CROWDED_HINGE,
        Loss::SquaredHinge if features <= INTERIOR_POINT_FEATURES => CROWDED_SQUARED_HINGE,
        Loss::SquaredHinge | Loss::Logistic => 1,
    };
    let outnumber = |times: usize| density >= DENSE && constraints > features.saturating_mul(times);
    if settings.is_hard_margin() {
        Solver::QuadraticProgram
    } else if abilities.structured {
        // For weights, `chosen_for_outputs` decides once the examples are known.
        Solver::FrankWolfe
    } else if settings.expands() && (abilities.listed || abilities.several) {
        Solver::Smo
    } else if abilities.several && !abilities.listed && settings.loss != Loss::Logistic {
        Solver::DualCoordinateDescent
    } else if !abilities.listed || abilities.cuts || (abilities.threshold && settings.loss == Loss::Logistic) {
        Solver::Newton
    } else if too_long || !abilities.curved {
        Solver::DualCoordinateDescent
    } else if features <= FEW_FEATURES || outnumber(crowded) {
        Solver::Newton
    } else if outnumber(1) && features <= INTERIOR_POINT_FEATURES {
        // For the hinges only; the logistic loss went to Newton's method.
        Solver::InteriorPoint
    } else {
        Solver::DualCoordinateDescent
    }
}

/// Up to this many examples of structured outputs, or with at most [`FEW_FEATURES`] weights, a plane for all examples tells
/// as much as one for each, and its line search costs no walk over the features.
const FEW_EXAMPLES: usize = 10;

/// What `auto` takes for structured outputs with so many examples and weights, those of shared scores among them. The
/// problem itself chooses: its examples are not known before.
pub(super) fn chosen_for_outputs(examples: usize, weights: usize) -> Solver {
    if examples <= FEW_EXAMPLES || weights <= FEW_FEATURES { Solver::CuttingPlane } else { Solver::FrankWolfe }
}

/// Whether a solver supports a task with these abilities and this loss, for weights or with kernel values.
pub(super) fn supports(abilities: Abilities, loss: Loss, solver: Solver, by_kernel: bool) -> bool {
    let Abilities { listed, curved, weights, drawn, kernel, barrier, threshold, several, cuts, structured } = abilities;
    let smooth_or_listed = listed || several || loss != Loss::Logistic;
    if by_kernel && (!kernel || solver.learns_weights_alone()) {
        return false;
    }
    if structured {
        let known = match solver {
            Solver::FrankWolfe | Solver::NSlack => true,
            Solver::CuttingPlane | Solver::QuadraticProgram => !by_kernel,
            solver => solver.is_stochastic() && !by_kernel,
        };
        return known && loss == Loss::Hinge;
    }
    // Only Newton's method supports the barrier that keeps the threshold of three outcomes above zero.
    if barrier {
        return solver == Solver::Newton && !by_kernel && (listed || kernel);
    }
    // Cuts are several free scalars, and pairs of variables share one.
    if cuts {
        return match solver {
            Solver::Smo => by_kernel && loss != Loss::Logistic,
            Solver::Newton | Solver::CuttingPlane => !by_kernel,
            _ => false,
        };
    }
    match solver {
        // One problem over all classes has no squared hinge here.
        Solver::Smo if several => by_kernel && loss != Loss::Logistic && (listed || loss == Loss::Hinge),
        _ if several && by_kernel => false,
        Solver::Smo | Solver::Lasvm => listed && kernel && loss != Loss::Logistic,
        Solver::Newton if by_kernel => !listed && loss == Loss::SquaredHinge,
        _ if !weights => false,
        Solver::DualCoordinateDescent => listed || (several && loss != Loss::Logistic),
        Solver::QuadraticProgram => listed || several,
        Solver::InteriorPoint => listed && curved && loss != Loss::Logistic,
        Solver::LinearProgram => listed && threshold,
        Solver::Newton | Solver::CuttingPlane => curved && smooth_or_listed,
        Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos => drawn && smooth_or_listed,
        Solver::FrankWolfe | Solver::NSlack => false,
        // `auto` is not a solver, and passive-aggressive steps are for streams.
        Solver::Auto
        | Solver::PassiveAggressive
        | Solver::Pa
        | Solver::PaDca
        | Solver::PaSequential
        | Solver::PaAuc
        | Solver::PaMaxViolators
        | Solver::PaCorrectMistakes
        | Solver::PaSingleSlack => false,
    }
}

/// What to do about a combination that does not exist.
fn unsupported(abilities: Abilities, settings: &Settings, solver: Solver) -> Error {
    let (task, loss) = (settings.task.name(), settings.loss.name());
    let refuse = |message: String, help: &str| Error::new(Code::Unsupported, message).help(help.to_string());
    if solver == Solver::PassiveAggressive || solver.is_paired() {
        return refuse(
            "passive-aggressive steps learn from a stream".to_string(),
            if solver.is_paired() {
                "use `maxmargin learn classify`, or leave ⟦solver⟧ out"
            } else {
                "use `maxmargin learn compare`, or leave ⟦solver⟧ out"
            },
        );
    }
    if abilities.structured {
        return unsupported_outputs(settings, solver);
    }
    let expands = settings.expands();
    let logistic = settings.loss == Loss::Logistic;
    if abilities.barrier {
        return refuse(
            format!("`{task}` with {loss} loss is solved by Newton's method over weights alone"),
            "leave ⟦solver⟧ and ⟦kernel⟧ out, use ⟦approximate=nystrom:1000⟧, or use ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧",
        );
    }
    if abilities.several {
        let columns = abilities.listed;
        let apart = "several classes with a score each are told apart by weights of the features";
        return match settings.kernel.kind {
            KernelKind::Linear if settings.regularisation.is_nu() => {
                refuse(format!("{apart}, and ⟦nu⟧ is for one score"), "use ⟦c⟧, or keep two classes")
            }
            KernelKind::Linear if columns => refuse(
                format!("the columns of an output code with {} loss are not solved by `{}`", loss, solver.name()),
                "leave ⟦solver⟧ out, or use dual-coordinate-descent, newton or averaged-sgd",
            ),
            KernelKind::Linear => refuse(
                format!("{apart}, and not by `{}`", solver.name()),
                "use ⟦solver=dual-coordinate-descent⟧, newton, cutting-plane or averaged-sgd, or leave ⟦solver⟧ out",
            ),
            _ if settings.regularisation.is_nu() => refuse(
                "⟦nu⟧ is for one score, and several classes have one each".to_string(),
                "use ⟦c⟧, or keep two classes",
            ),
            _ => refuse(
                format!("several classes with {loss} loss are not solved through a kernel by `{}`", solver.name()),
                "use ⟦loss=hinge⟧ and leave ⟦solver⟧ out, or use ⟦approximate=nystrom:1000⟧",
            ),
        };
    }
    if abilities.cuts {
        return match settings.kernel.kind {
            KernelKind::Linear => refuse(
                format!("`{task}` is not solved by `{}`", solver.name()),
                "use ⟦solver=newton⟧ or cutting-plane, or leave ⟦solver⟧ out",
            ),
            _ => refuse(
                format!("`{task}` with {loss} loss through a kernel is not solved by `{}`", solver.name()),
                "leave ⟦solver⟧ out and use ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧, or use ⟦approximate=nystrom:1000⟧",
            ),
        };
    }
    if !abilities.listed {
        let whole = if abilities.kernel { "ranking" } else { "comparing by grades" };
        return match () {
            () if expands && !abilities.kernel => refuse(
                format!("{whole} learns weights, and a kernel model has none"),
                "use ⟦approximate=nystrom:1000⟧, or list the pairs in a file and name the rows with ⟦items⟧",
            ),
            () if logistic && !abilities.kernel => refuse(
                format!("{whole} with {loss} loss is not part of this version"),
                "use ⟦loss=squared-hinge⟧ or ⟦loss=hinge⟧; explicit pairs (⟦items⟧) take every loss",
            ),
            () if settings.regularisation.is_nu() => refuse(
                "⟦nu⟧ is for explicit pairs, and these rows are graded".to_string(),
                "use ⟦c⟧, or list the pairs in a file and name the rows with ⟦items⟧",
            ),
            () if expands && !logistic => refuse(
                format!(
                    "kernels rank graded rows with squared hinge loss by Newton's method, and not with {loss} loss by `{}`",
                    solver.name()
                ),
                "leave ⟦loss⟧ and ⟦solver⟧ out, or use ⟦solver=sgd⟧ or ⟦approximate=nystrom:1000⟧; explicit pairs (⟦items⟧) take \
                 the hinge too",
            ),
            () if solver.is_hard_margin() => refuse(
                "a hard margin takes explicit pairs, and these rows are graded".to_string(),
                "list the pairs in a file and name the rows with ⟦items⟧, or leave ⟦margin⟧ and ⟦solver⟧ out",
            ),
            () if logistic => refuse(
                format!("{whole} with {loss} loss is not part of this version"),
                "use ⟦loss=squared-hinge⟧ or ⟦loss=hinge⟧; explicit pairs (⟦items⟧) take every loss",
            ),
            () => refuse(
                format!("`{task}` with {loss} loss is not solved by `{}`", solver.name()),
                "use ⟦solver=newton⟧ or cutting-plane, or leave ⟦solver⟧ out",
            ),
        };
    }
    let remedy = if logistic && settings.kernel.is_exact() && abilities.weights {
        "use ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧, ⟦solver=sgd⟧, or ⟦approximate=nystrom:1000⟧"
    } else if !abilities.weights || (expands && !solver.is_kernel_dual()) {
        "leave ⟦solver⟧ out"
    } else if solver == Solver::InteriorPoint {
        "use ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧, or leave ⟦solver⟧ out"
    } else {
        // Among the other solvers of single constraints, only those with kernels do not support every loss.
        "use ⟦loss=hinge⟧ or ⟦loss=squared-hinge⟧, or leave ⟦kernel⟧ out"
    };
    refuse(format!("`{task}` with {loss} loss is not solved by `{}`", solver.name()), remedy)
}

/// The same for structured outputs.
fn unsupported_outputs(settings: &Settings, solver: Solver) -> Error {
    let refuse = |message: String, help: &str| Error::new(Code::Unsupported, message).help(help.to_string());
    match settings.kernel.kind {
        _ if settings.regularisation.is_nu() => refuse(
            "⟦nu⟧ is for constraints with one margin, and structured outputs have a margin each".to_string(),
            "use ⟦c⟧",
        ),
        _ if settings.loss != Loss::Hinge => refuse(
            format!("structured outputs take the hinge, and not {} loss", settings.loss.name()),
            "leave ⟦loss⟧ out",
        ),
        KernelKind::Linear => refuse(
            format!("structured outputs are not solved by `{}`", solver.name()),
            "leave ⟦solver⟧ out, or use frank-wolfe, n-slack, cutting-plane or averaged-sgd",
        ),
        _ => refuse(
            format!("structured outputs are not solved through a kernel by `{}`", solver.name()),
            "leave ⟦solver⟧ out, or use frank-wolfe or n-slack, or ⟦approximate=nystrom:1000⟧",
        ),
    }
}

/// One line of the support matrix: a task and loss, and the solvers that take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The task, and what it learns from if that matters.
    pub task: String,
    /// The loss.
    pub loss: Loss,
    /// Solvers for weights.
    pub weights: Vec<Solver>,
    /// Solvers with kernel values.
    pub kernel: Vec<Solver>,
}

/// The solvers of a form of a task with this loss, for weights or with kernel values.
fn solvers_of_form(settings: &TaskSettings, pairs: bool, loss: Loss, by_kernel: bool) -> Vec<Solver> {
    let abilities = settings.abilities(loss, pairs);
    let kind = if by_kernel { KernelKind::Gaussian } else { KernelKind::Linear };
    let taken = |solver: &Solver| {
        let kernel = KernelSettings { kind, ..KernelSettings::default() };
        let usual = Settings::of(settings.clone()).with_solver(*solver);
        // Tasks differ in how they set the regularisation. C = 1 is valid for all of them.
        let asked = Settings { loss, kernel, regularisation: Regularisation::C(1.0), ..usual };
        supports(abilities, loss, *solver, by_kernel)
            && asked.validate().is_ok()
            && (by_kernel || !solver.is_kernel_dual())
    };
    Solver::ALL.into_iter().filter(taken).collect()
}

/// The solvers that some form of a task takes with some loss, and `auto`: those that its help lists.
pub fn solvers_of(task: Task) -> Vec<Solver> {
    let forms = task.forms();
    let takes = |solver: Solver| {
        forms.iter().any(|(settings, pairs, _)| {
            Loss::ALL.into_iter().any(|loss| {
                let abilities = settings.abilities(loss, *pairs);
                let by_weights = !solver.is_kernel_dual() && supports(abilities, loss, solver, false);
                by_weights || supports(abilities, loss, solver, true)
            })
        })
    };
    Solver::ALL.into_iter().filter(|&solver| solver == Solver::Auto || takes(solver)).collect()
}

/// The support matrix, for documents and error pages.
pub fn support_table() -> Vec<Support> {
    let mut table = Vec::new();
    for task in Task::ALL {
        for (settings, pairs, what) in task.forms() {
            for loss in Loss::ALL {
                let solvers = |by_kernel: bool| solvers_of_form(&settings, pairs, loss, by_kernel);
                let (weights, kernel) = (solvers(false), solvers(true));
                if !weights.is_empty() || !kernel.is_empty() {
                    table.push(Support { task: what.to_string(), loss, weights, kernel });
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_examples_or_few_weights_take_one_plane_for_all_examples() {
        assert_eq!(chosen_for_outputs(1, 1_000_000), Solver::CuttingPlane);
        assert_eq!(chosen_for_outputs(100_000, 136), Solver::CuttingPlane);
        assert_eq!(chosen_for_outputs(626, 4082), Solver::FrankWolfe);
    }

    #[test]
    fn help_lists_the_solvers_that_a_task_takes() {
        assert!(!solvers_of(Task::OneClass).contains(&Solver::Newton));
        assert!(solvers_of(Task::Compare).contains(&Solver::LinearProgram));
        assert!(!solvers_of(Task::Ordinal).contains(&Solver::FrankWolfe));
        assert!(Task::ALL.into_iter().all(|task| solvers_of(task)[0] == Solver::Auto));
    }
}
