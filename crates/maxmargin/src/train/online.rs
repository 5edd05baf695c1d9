//! Tasks learned through a kernel one row at a time: by stochastic steps, or by LaSVM.

use super::gram::check_values;
use super::kernels::{self, around, by_row, usual_cache};
use super::{Problem, Tasks};
use crate::data::{Design, Matrix};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points, expansion_scores};
use crate::model::{Expansion, Scorer};
use crate::run::{Cancel, Observer};
use crate::settings::{Settings, Solver};
use crate::solve::{KernelDescent, KernelRows, KernelSolution, KernelSum, Lasvm, Merging, Stop, TracePoint, Witness};
use crate::task::{Independent, Intercept, OneClass};

/// What was learned through a kernel, by whichever solver.
pub(super) struct Learned {
    pub(super) scorer: Scorer,
    /// The threshold of comparisons, where it was learned.
    pub(super) threshold: f64,
    /// What proves the bound beside the expansion.
    pub(super) witness: Option<Witness>,
    pub(super) objective: f64,
    pub(super) lower_bound: Option<f64>,
    pub(super) passes: u64,
    pub(super) stop: Stop,
    pub(super) trace: Vec<TracePoint>,
    /// Kernel rows asked for, and of these computed.
    pub(super) rows: Option<(u64, u64)>,
    /// What a budget of support vectors cost.
    pub(super) merging: Option<Merging>,
    /// Whether the kernel is known to be positive definite, as bounds need it.
    pub(super) definite: bool,
}

impl From<kernels::Solved> for Learned {
    fn from(solved: kernels::Solved) -> Learned {
        let kernels::Solved { scorer, witness, fitted, definite } = solved;
        Learned {
            scorer,
            threshold: fitted.threshold,
            witness,
            objective: fitted.objective,
            lower_bound: Some(fitted.lower_bound),
            passes: fitted.passes,
            stop: fitted.stop,
            trace: fitted.trace,
            rows: Some(fitted.rows),
            merging: None,
            definite,
        }
    }
}

/// Learns one row at a time.
pub(super) fn solve(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Learned> {
    let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
    check_values(&kernel, design)?;
    let points = Points::until(design, &kernel, cancel);
    cancel.check()?;
    let rows = KernelRows { design, points: &points, kernel: &kernel };
    if solver.is_stochastic() {
        return descend(problem, rows, settings, solver, observer, cancel);
    }
    match &problem.task {
        Tasks::Binary(task, _) => in_one_pass(task, rows, settings, |learned| learned, observer, cancel),
        Tasks::OneClass(task, _) => in_one_pass(task, rows, settings, |_| Some(-OneClass::MARGIN), observer, cancel),
        Tasks::Pairs(task) => in_one_pass(task, rows, settings, |_| None, observer, cancel),
        Tasks::Ranking(_) | Tasks::Graded(_) => {
            Err(Error::new(Code::Internal, "graded rows have no constraints to list"))
        }
    }
}

/// Stochastic steps, which need no dual point and take graded rows too.
fn descend(
    problem: &Problem,
    rows: KernelRows<'_>,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Learned> {
    let stochastic = &settings.stochastic;
    let descent = KernelDescent {
        // Bottou's rates fall like 1/(λt) from the first one on: where that is 1/λ, they are those of Pegasos.
        schedule: stochastic.schedule.unwrap_or_default(),
        rate: stochastic.rate.filter(|_| solver == Solver::Sgd),
        batch: stochastic.batch as usize,
        passes: settings.max_passes,
        seed: settings.seed,
        intercept: settings.free(),
        budget: settings.kernel.budget.map(|budget| budget as usize),
    };
    let sampled = super::stochastic::sampled(problem, settings)?;
    let expansion = |vectors: Matrix, coefficients: &[f64], intercept: Option<f64>| Expansion {
        kernel: rows.kernel.clone(),
        vectors,
        coefficients: coefficients.to_vec(),
        intercept,
    };
    let scored = |vectors: Matrix, coefficients: &[f64]| {
        let (scores, square) = expansion(vectors, coefficients, None).against(rows.points, cancel)?;
        cancel.check()?;
        Ok((scores, square))
    };
    let KernelSum { vectors, coefficients, threshold, objective, passes, stop, merging, trace } =
        match rows.points.is_wide() {
            true => descent.solve::<f64>(&*sampled, rows, &scored, observer, cancel)?,
            false => descent.solve::<f32>(&*sampled, rows, &scored, observer, cancel)?,
        };
    let intercept = (settings.free() != Intercept::None && !problem.compares).then_some(threshold);
    let scorer = Scorer::Expansion(expansion(vectors, &coefficients, intercept));
    let merging = Some(merging);
    let definite = rows.kernel.is_definite();
    Ok(Learned {
        scorer,
        threshold,
        witness: None,
        objective,
        lower_bound: None,
        passes,
        stop,
        trace,
        rows: None,
        merging,
        definite,
    })
}

/// LaSVM over kernel values as exact as the rows; the constant term is made of the free scalar, where one was learned.
fn in_one_pass<T: Independent>(
    task: &T,
    rows: KernelRows<'_>,
    settings: &Settings,
    constant: impl Fn(Option<f64>) -> Option<f64>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Learned> {
    let solution = match rows.points.is_wide() {
        true => lasvm::<T, f64>(task, rows, settings, observer, cancel)?,
        false => lasvm::<T, f32>(task, rows, settings, observer, cancel)?,
    };
    let KernelSolution { numbers: alpha, threshold, objective, lower_bound, passes, stop, trace, rows: counts, .. } =
        solution;
    let intercept = constant((settings.free() != Intercept::None).then_some(threshold));
    Ok(Learned {
        threshold,
        scorer: around(rows.kernel.clone(), by_row(task, &alpha).into_iter(), intercept, rows.design)?,
        witness: Some(Witness::Dual(alpha)),
        objective,
        lower_bound: Some(lower_bound),
        passes,
        stop,
        trace,
        rows: Some(counts),
        merging: None,
        definite: rows.kernel.is_definite(),
    })
}

fn lasvm<T: Independent, V: Element>(
    task: &T,
    rows: KernelRows<'_>,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<KernelSolution> {
    let (&Settings { tolerance, max_passes, seed, .. }, intercept) = (settings, settings.free());
    let scored = |alpha: &[f64]| {
        let (places, coefficients): (Vec<usize>, Vec<f64>) = by_row(task, alpha).into_iter().unzip();
        let scores = expansion_scores(rows.kernel, rows.points, &places, &coefficients, rows.points, cancel);
        cancel.check()?;
        let square = places.iter().zip(&coefficients).map(|(&row, coefficient)| coefficient * scores[row]).sum();
        Ok((scores, square))
    };
    Lasvm { tolerance, max_passes, seed, intercept, cache_bytes: usual_cache(settings) }
        .solve::<T, V>(task, rows, &scored, observer, cancel)
}
