//! The one place where tasks meet solvers.

mod approximate;
mod gram;
mod kernels;
mod online;
mod polish;
mod problem;
mod ratings;
mod stochastic;
mod thresholds;

pub use approximate::{ApproximationLoss, Compared, approximation_loss};
pub(crate) use approximate::{Seen, seen};
pub(crate) use gram::check_values;
pub(crate) use kernels::{Machine, by_row, usual_cache};
pub(crate) use problem::{Problem, Tasks};
pub(crate) use ratings::{Ratings, rate};
use thresholds::thresholded;
pub(crate) use thresholds::{decoder_by_scores, lacks_threshold};

use crate::data::{Dataset, Design, PairCounts, Scaling, Shape};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::model::{Certificate, Decoder, Mapped, Model, Scorer};
use crate::run::{Cancel, Event, Observer};
use crate::settings::{Method, Settings, Solver, Task};
use crate::solve::{
    Contradiction, CurvedRisk, CuttingPlane, DualCoordinateDescent, EarlyStopping, InteriorPoint, LinearProgram,
    LinearRisk, Measure, Merging, Newton, QuadraticProgram, Referee, RoundedHinge, Solution, Start, Stop, TILE,
    TracePoint, Verdict, Witness, balanced_values, bound_of_cuts, dual_of_cuts, dual_value, primal_of_scores,
    quick_start, relative_gap, rounded_values, sampled_start, smooth_bound,
};
use crate::task::{GradedComparison, Independent, Intercept, Objective, Roundable};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A model, and how it came about.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// The solver that `auto` chose, or that was asked for.
    pub solver: Solver,
    /// Why training stopped.
    pub stop: Stop,
    /// The first rate of a stochastic solver that has one: the one asked for, or found on a sample.
    pub first_rate: Option<f64>,
    /// Kernel rows asked for, and of these computed, where there is a kernel.
    pub kernel_rows: Option<(u64, u64)>,
    /// What a budget of support vectors cost, where stochastic steps went through a kernel.
    pub merging: Option<Merging>,
    /// How it went.
    pub trace: Vec<TracePoint>,
}

/// Judges a model on held-out data while it is trained.
#[derive(Clone, Copy)]
pub struct HeldOut<'a> {
    /// The measure, or none where it cannot be taken.
    pub measure: &'a dyn Fn(&Model) -> Option<f64>,
    /// Whether more is better: what stops by held-out data must know.
    pub higher_is_better: bool,
}

/// Weight vectors are dense; more than this would fill the memory of most machines for what is mostly a mistyped index.
const MOST_FEATURES: usize = 1 << 27;

/// Refuses a number of features that no weight vector is kept for: to be asked as soon as data are read.
pub fn check_features(features: usize) -> Result<()> {
    if features <= MOST_FEATURES {
        return Ok(());
    }
    Err(Error::new(
        Code::BadIndex,
        format!("the largest feature index asks for {features} weights, and at most {MOST_FEATURES} are kept"),
    )
    .help("renumber the features without gaps"))
}

/// Newton's method takes over from dual coordinate descent up to this many features, on smooth losses and on the hinge
/// rounded off: there one exact step costs little, and badly scaled columns do not slow it down.
const FEW_FEATURES: usize = 500;

/// Of more features too where rows store at least this share of them and are more than they: a visit to a single row then
/// undoes what visits to others did. Rows that are fewer than their features hardly disturb each other.
const DENSE: f64 = 0.1;

/// Newton's method takes hundreds of steps where rows are few for their features, on a hinge rounded off and, where a large
/// cost leaves next to nothing of the loss, on the squared hinge. Both are left to the interior point unless there are so many
/// times as many rows as features.
const CROWDED_HINGE: usize = 10;
const CROWDED_SQUARED_HINGE: usize = 5;

/// With more features than this the system of an interior-point step takes too long to be chosen,
const INTERIOR_POINT_FEATURES: usize = 4096;

/// and with more than this, which is two gigabytes of it, it is refused.
const MOST_INTERIOR_POINT_FEATURES: usize = 16_384;

/// Coefficients beyond this make the rounding of kernel values show in sums over them.
const LARGE_COEFFICIENT: f64 = 30.0;

/// Learns a model. The solvers run on the current thread pool; the number of threads changes no bit of the result.
pub fn train(
    data: &Dataset,
    settings: &Settings,
    held_out: Option<HeldOut<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    train_from(data, settings, None, held_out, observer, cancel)
}

/// Learns a model from the solution of a neighbouring problem over the same rows and features. What is proven does not
/// depend on the start; how long it takes does.
pub fn train_from(
    data: &Dataset,
    settings: &Settings,
    start: Option<&Start>,
    held_out: Option<HeldOut<'_>>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Trained> {
    settings.validate()?;
    if data.rows() == 0 {
        return Err(
            Error::new(Code::NoRows, "there are no rows to learn from").help("give data with at least two rows")
        );
    }
    check_features(data.cols())?;
    data.matrix().check(0..data.rows())?;
    cancel.check()?;
    if settings.task == Task::Compare && settings.method.is_rating() {
        return ratings::train(data, settings, observer, cancel);
    }
    let solver = choose_solver(settings, data.shape())?;
    let scaling = Scaling::fit(settings.scale, data, cancel)?;
    let design = scaling.apply(data.matrix(), data.groups())?;
    cancel.check()?;

    let mut problem = Problem::new(data, settings)?;
    problem.check_range()?;
    // What linear solvers learn from: the features, or mapped ones. Scaling stays that of the rows.
    let mapped = seen(data, &design, settings, cancel)?;
    let (design, seen_data, seen_scaling) = match &mapped {
        Some(Seen { data, design, .. }) => (design, data, &Scaling::default()),
        None => (&design, data, &scaling),
    };
    if start.is_some_and(|start| !problem.takes(start, design.cols(), expands(settings))) {
        return Err(Error::new(Code::BadSetting, "the start is not a point of this problem")
            .help("start from a solution over the same rows and features"));
    }
    let expanded = match expands(settings) {
        true if solver.is_stochastic() || solver == Solver::Lasvm => {
            Some(online::solve(&problem, design, settings, solver, observer, cancel)?)
        }
        true => {
            let start = start.and_then(|start| start.dual.as_deref());
            Some(kernels::solve(&mut problem, design, settings, start, observer, cancel)?.into())
        }
        false => None,
    };
    let template = |scorer: Scorer, decoder: Decoder, certificate: Certificate, witness: Option<Witness>| Model {
        settings: settings.clone(),
        scorer,
        decoder,
        scaling: scaling.clone(),
        feature_names: data.feature_names().cloned(),
        certificate,
        witness,
        reading: None,
        version: env!("CARGO_PKG_VERSION").to_string(),
        compacted: None,
        online: None,
    };
    let (c, lambda) = (problem.c, problem.lambda);
    let certificate =
        |objective: f64, lower_bound: Option<f64>, converged: bool, passes: u64, data_hash: u64| Certificate {
            objective,
            lower_bound,
            constraints: problem.constraints(),
            data_hash,
            rows: data.rows() as u64,
            pairs: data.pairs().map(|pairs| pairs.len() as u64),
            ties: problem.ties(),
            converged,
            passes,
            c,
            lambda,
            solver: Some(solver),
        };
    if let Some(learned) = expanded {
        let online::Learned {
            scorer,
            threshold,
            witness,
            objective,
            lower_bound,
            passes,
            stop,
            trace,
            rows,
            merging,
            definite,
        } = learned;
        // Without lengths a dual value bounds nothing, and no witness proves it.
        let (mut stop, lower_bound, witness) = match (definite, stop) {
            (true, stop) => (stop, lower_bound, witness),
            (false, Stop::Converged) => (Stop::Finished, None, None),
            (false, stop) => (stop, None, None),
        };
        let certificate = certificate(objective, lower_bound, stop == Stop::Converged, passes, data.hash()?);
        let mut model = template(scorer, problem.decoder(threshold), certificate, witness);
        if definite && model.scorer.numbers().iter().any(|number| number.abs() > LARGE_COEFFICIENT) {
            // What is stated is what `verify` finds. Who asked for an end waits for it.
            let found = model.recompute(data, &problem, &Cancel::new())?;
            model.certificate.objective = found.objective;
            model.certificate.lower_bound = found.lower_bound.filter(|_| lower_bound.is_some());
            let within = model.certificate.gap().is_some_and(|gap| gap <= settings.tolerance);
            model.certificate.converged &= within;
            stop = if stop == Stop::Converged && !within { Stop::Stalled } else { stop };
        }
        // What was given up may be anything.
        cancel.check_wanted()?;
        return Ok(Trained {
            model: thresholded(model, &problem, data)?,
            solver,
            stop,
            first_rate: settings.stochastic.rate,
            kernel_rows: rows,
            merging,
            trace,
        });
    }
    let problem = &problem;
    let linear = |weights: Vec<f64>, thresholds: &[f64]| {
        let intercept = thresholds.first().copied().filter(|_| !problem.compares);
        match &mapped {
            Some(Seen { map, .. }) => Scorer::Mapped(Mapped { map: Arc::clone(map), weights, intercept }),
            None => Scorer::Linear { weights, intercept },
        }
    };
    let judge = held_out.map(|held_out| {
        let (template, certificate) = (&template, &certificate);
        let measure = move |weights: &[f64], thresholds: &[f64]| {
            let scorer = linear(weights.to_vec(), thresholds);
            let decoder = problem.decoder(thresholds.first().copied().unwrap_or(0.0));
            let model = template(scorer, decoder, certificate(0.0, None, false, 0, 0), None);
            // A threshold that comes after the scores is found anew; one that is learned is what it is so far.
            let model = match settings.method {
                Method::Compare => model,
                _ => thresholded(model, problem, data).ok()?,
            };
            (held_out.measure)(&model)
        };
        (measure, held_out.higher_is_better)
    });
    let (solver, solution) = if solver.is_stochastic() && settings.stochastic.early_stopping != EarlyStopping::None {
        let referee =
            judge.as_ref().map(|(measure, higher_is_better)| Referee { measure, higher_is_better: *higher_is_better });
        let solution = stochastic::solve_with_early_stopping(
            problem,
            seen_data,
            seen_scaling,
            design,
            settings,
            solver,
            referee,
            observer,
            cancel,
        )?;
        (solver, solution)
    } else {
        let mut watching =
            Watching { inner: observer, held_out: judge.as_ref().map(|(measure, _)| measure as Measure<'_>) };
        let (solver, solution) = solve_chosen(problem, design, settings, solver, start, &mut watching, cancel)?;
        (solver, polish::polished(problem, design, settings, solver, solution, cancel))
    };
    cancel.check_wanted()?;
    let Solution { weights, thresholds, objective, lower_bound, witness, passes, stop, first_rate, trace } = solution;
    let certificate = certificate(objective, lower_bound, stop == Stop::Converged, passes, data.hash()?);
    let certificate = Certificate { solver: Some(solver), ..certificate };
    let witness = (witness != Witness::Weights).then_some(witness);
    let decoder = problem.decoder(thresholds.first().copied().unwrap_or(0.0));
    let model = thresholded(template(linear(weights, &thresholds), decoder, certificate, witness), problem, data)?;
    Ok(Trained { model, solver, stop, first_rate, kernel_rows: None, merging: None, trace })
}

/// Rankers of so many rows begin where a quick look at so many random pairs ends, unless the Hessian is exact: its few
/// steps are as few from zero.
const QUICK_START_ROWS: usize = 100_000;
const QUICK_START_PAIRS: usize = 100_000;

/// Passes of dual coordinate descent before the interior point: together they cost about as much as one of its steps (5,000 rows
/// of 768 features) or less (3,000 of 2,000).
const PASSES_FIRST: u64 = 50;

/// Runs the solver that was chosen for the shape of the data, and says which one found the solution. Where that is the interior
/// point and nobody named it, dual coordinate descent comes first: rows of moderate length at a moderate cost, such as unit
/// rows, ask for no more.
pub(crate) fn solve_chosen(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(Solver, Solution)> {
    if (settings.solver, solver) != (Solver::Auto, Solver::InteriorPoint) {
        return Ok((solver, solve(problem, design, settings, solver, start, observer, cancel)?));
    }
    let coordinates = Solver::DualCoordinateDescent;
    let few = Settings { max_passes: settings.max_passes.min(PASSES_FIRST), ..settings.clone() };
    let mut before = solve(problem, design, &few, coordinates, start, observer, cancel)?;
    let ended = matches!(before.stop, Stop::Converged | Stop::Cancelled);
    let Some(left) = settings.max_passes.checked_sub(before.passes).filter(|left| *left > 0 && !ended) else {
        return Ok((coordinates, before));
    };
    let rest = Settings { max_passes: left, ..settings.clone() };
    let (passes, mut trace) = (before.passes, std::mem::take(&mut before.trace));
    let mut later = Later { inner: observer, passes };
    let start = before.into_start();
    let mut found = solve(problem, design, &rest, solver, Some(&start), &mut later, cancel)?;
    let seconds = trace.last().map_or(0.0, |last| last.seconds);
    let after = found.trace.iter().filter(|point| point.pass > 0);
    trace.extend(after.map(|point| TracePoint {
        pass: point.pass + passes,
        seconds: point.seconds + seconds,
        ..*point
    }));
    (found.passes, found.trace) = (found.passes + passes, trace);
    Ok((solver, found))
}

/// Passes on what a solver reports that goes on where another ended; where it begins is known already.
struct Later<'a> {
    inner: &'a mut dyn Observer,
    passes: u64,
}

impl Observer for Later<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let mut event = event.clone();
        match &mut event {
            Event::Pass { pass: 0, .. } => return ControlFlow::Continue(()),
            Event::Pass { pass, .. } => *pass += self.passes,
            _ => {}
        }
        self.inner.report(&event)
    }
}

/// Runs the solver on the task: the one (task × solver) match.
pub(crate) fn solve(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    let quick = match (&problem.task, solver, start) {
        (Tasks::Ranking(task), Solver::Newton, None)
            if design.rows() >= QUICK_START_ROWS
                && !LinearRisk::new(task, design, false, cancel).has_exact_hessian() =>
        {
            let weights = quick_start(task, design, settings.seed, QUICK_START_PAIRS, cancel);
            Some(Start { weights, ..Start::default() })
        }
        _ => None,
    };
    // A barrier keeps the threshold above zero, and so must the start.
    let inside = match &problem.task {
        Tasks::Pairs(task) if task.barrier() > 0.0 && start.is_none() => {
            Some(Start { weights: vec![0.0; design.cols()], thresholds: vec![1.0], ..Start::default() })
        }
        _ => None,
    };
    let start = start.or(quick.as_ref()).or(inside.as_ref());
    match (&problem.task, solver) {
        (_, Solver::Smo | Solver::Lasvm) => Err(Error::new(Code::Internal, "kernels are not solved for weights")),
        (_, solver) if solver.is_stochastic() => {
            stochastic::solve(problem, design, settings, solver, None, observer, cancel)
        }
        (Tasks::Binary(task, _), solver) => {
            solve_independent(problem, task, design, settings, solver, start, observer, cancel)
        }
        (Tasks::Pairs(task), solver)
            // Cuts are taken at kinks, which rounded differences move.
            if !solver.is_hard_margin()
                && solver != Solver::CuttingPlane
                && (settings.tolerance >= ROUNDED_DIFFERENCES || design.matrix().is_double())
                && problem.data.compared().is_some_and(PairCounts::as_differences) =>
        {
            let (differences, rows) = (task.over_differences(), task.differences(design, cancel)?);
            let solution = solve_independent(problem, &differences, &rows, settings, solver, start, observer, cancel)?;
            drop(rows);
            cancel.check_wanted()?;
            // Who asked for an end waits for what is stated.
            restate(solution, task, design, settings, &Cancel::new())
        }
        (Tasks::Pairs(task), solver) => {
            solve_independent(problem, task, design, settings, solver, start, observer, cancel)
        }
        (Tasks::Ranking(task), Solver::Newton) if settings.loss == Loss::Hinge => {
            rounded_hinge(settings).solve(task, design, start, observer, cancel)
        }
        (Tasks::Ranking(task), Solver::Newton) => {
            let sampled = sampled_start(task, design, false, start, cancel)?;
            let start = sampled.as_ref().or(start);
            let mut risk = LinearRisk::new(task, design, false, cancel);
            newton(settings).solve(&mut risk, design.cols(), start, observer, cancel)
        }
        (Tasks::Ranking(task), Solver::CuttingPlane) => {
            let mut risk = LinearRisk::new(task, design, false, cancel);
            cutting_plane(settings).solve(&mut risk, design.cols(), start, observer, cancel)
        }
        (Tasks::Graded(task), Solver::Newton | Solver::CuttingPlane) => {
            solve_graded(task, design, settings, solver, start, observer, cancel)
        }
        (Tasks::Ranking(_) | Tasks::Graded(_), solver) => Err(unsupported(settings, solver, false)),
        (Tasks::OneClass(..), solver) => Err(unsupported(settings, solver, true)),
    }
}

/// Runs the solver on a task with one constraint a block.
#[allow(clippy::too_many_arguments)] // those of `solve`, and the task
fn solve_independent<T: Independent + Roundable>(
    problem: &Problem,
    task: &T,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    let &Settings { tolerance, max_passes, seed, intercept, .. } = settings;
    let features = design.cols();
    match solver {
        Solver::DualCoordinateDescent => DualCoordinateDescent { tolerance, max_passes, seed, intercept }
            .solve(task, design, start, observer, cancel),
        Solver::Newton if settings.loss == Loss::Hinge => {
            round_off_blocks(task, design, settings, start, observer, cancel)
        }
        Solver::Newton => {
            let sampled = sampled_start(task, design, intercept == Intercept::Penalised, start, cancel)?;
            let start = sampled.as_ref().or(start);
            let solve = |risk: &mut LinearRisk<'_, T>| newton(settings).solve(risk, features, start, observer, cancel);
            as_one_risk(task, design, settings, solver, solve, cancel)
        }
        Solver::CuttingPlane => {
            let planes = cutting_plane(settings);
            let solve = |risk: &mut LinearRisk<'_, T>| planes.solve(risk, features, start, observer, cancel);
            as_one_risk(task, design, settings, solver, solve, cancel)
        }
        Solver::InteriorPoint => {
            InteriorPoint { tolerance, max_passes, intercept }.solve(task, design, start, observer, cancel)
        }
        Solver::QuadraticProgram => {
            let program = QuadraticProgram { tolerance, max_passes, intercept };
            separated(problem, task, program.solve(task, design, observer, cancel)?)
        }
        Solver::LinearProgram => LinearProgram { tolerance, max_passes }.solve(task, design, observer, cancel),
        _ => Err(unsupported(settings, solver, true)),
    }
}

/// Runs the solver on comparisons by grades. Their bound is taken as `verify` takes it.
fn solve_graded(
    task: &GradedComparison,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    let penalised = settings.intercept == Intercept::Penalised;
    if solver == Solver::Newton && settings.loss == Loss::Hinge {
        let values = |weights: &[f64], thresholds: &[f64], width: f64, _: Option<&[f64]>, cancel: &Cancel| {
            let threshold = thresholds.first().copied().unwrap_or(0.0);
            balanced_values(task, design, weights, threshold, Some(width), penalised, cancel)
        };
        return round_off(task, design, settings, &values, start, observer, cancel);
    }
    let mut risk = LinearRisk::new(task, design, penalised, cancel);
    if solver == Solver::CuttingPlane {
        return cutting_plane(settings).solve(&mut risk, design.cols(), start, observer, cancel);
    }
    let sampled = sampled_start(task, design, penalised, start, cancel)?;
    let start = sampled.as_ref().or(start);
    let solution = newton(settings).solve(&mut risk, design.cols(), start, observer, cancel)?;
    cancel.check_wanted()?;
    state_graded(solution, task, design, settings, cancel)
}

/// A solution of comparisons by grades found by Newton's method, with the values that `verify` finds. Who asked for an end
/// waits for them.
fn state_graded(
    mut solution: Solution,
    task: &GradedComparison,
    design: &Design,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Solution> {
    let Solution { weights, thresholds, .. } = &solution;
    let (threshold, penalised) =
        (thresholds.first().copied().unwrap_or(0.0), settings.intercept == Intercept::Penalised);
    let (primal, bound) =
        balanced_values(task, design, weights, threshold, None, penalised, &cancel.until_abandoned())?;
    (solution.objective, solution.lower_bound) = (primal, Some(bound));
    Ok(restated(solution, settings.tolerance))
}

/// Below this tolerance differences are not rounded to f32: what that loses would show.
const ROUNDED_DIFFERENCES: f64 = 1e-4;

fn newton(settings: &Settings) -> Newton {
    Newton { tolerance: settings.tolerance, max_passes: settings.max_passes }
}

fn cutting_plane(settings: &Settings) -> CuttingPlane {
    CuttingPlane { tolerance: settings.tolerance, max_passes: settings.max_passes }
}

/// Solves a task with one constraint a block as a sum over all of them. What is stated is taken by the same sums as `verify`
/// takes it: at extreme costs the order of a sum shows.
fn as_one_risk<'a, T: Independent + Objective>(
    task: &'a T,
    design: &'a Design,
    settings: &Settings,
    solver: Solver,
    solve: impl FnOnce(&mut LinearRisk<'a, T>) -> Result<Solution>,
    cancel: &'a Cancel,
) -> Result<Solution> {
    let mut risk = LinearRisk::new(task, design, settings.intercept == Intercept::Penalised, cancel);
    let mut solution = solve(&mut risk)?;
    cancel.check_wanted()?;
    // What it remembers of the rows would stand beside what the bound needs.
    drop(risk);
    let (weights, threshold) = (&solution.weights, solution.thresholds.first().copied().unwrap_or(0.0));
    let scores = design.all_scores(weights);
    solution.objective = primal_of_scores(task, weights, &scores, threshold, settings.intercept);
    if solver == Solver::Newton {
        // The dual point behind the weights proves the bound whatever the intercept. Who asked for an end waits for it.
        let bound = smooth_bound(task, design, &scores, threshold, settings.intercept, &Cancel::new())?;
        solution.lower_bound = Some(bound);
    }
    Ok(with_smaller_witness(restated(solution, settings.tolerance), task, design, settings))
}

fn rounded_hinge(settings: &Settings) -> RoundedHinge {
    RoundedHinge {
        tolerance: settings.tolerance,
        max_passes: settings.max_passes,
        penalise_thresholds: settings.intercept == Intercept::Penalised,
    }
}

/// Primal value and lower bound of a rounded hinge, of weights, thresholds, a width, and scores where they are at hand.
type RoundedValues<'a> = &'a dyn Fn(&[f64], &[f64], f64, Option<&[f64]>, &Cancel) -> Result<(f64, f64)>;

/// Solves a hinge task, its kink rounded off.
fn round_off<T: Roundable>(
    task: &T,
    design: &Design,
    settings: &Settings,
    values: RoundedValues<'_>,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    let prove = |weights: &[f64], thresholds: &[f64], width: f64, scores: Option<&[f64]>| {
        values(weights, thresholds, width, scores, cancel)
    };
    let mut solution = rounded_hinge(settings).solve_proven(task, design, Some(&prove), start, observer, cancel)?;
    cancel.check_wanted()?;
    if let (Witness::Rounded(width), false) = (&solution.witness, solution.stop == Stop::Converged) {
        // Stopped without a proof: what there is, with its honest values, which may be good enough after all.
        let (primal, bound) = values(&solution.weights, &solution.thresholds, *width, None, &cancel.until_abandoned())?;
        (solution.objective, solution.lower_bound) = (primal, Some(bound));
        if solution.stop != Stop::Cancelled && relative_gap(primal, bound) <= settings.tolerance {
            solution.stop = Stop::Converged;
        }
    }
    Ok(solution)
}

/// The same for a task with one constraint a block.
fn round_off_blocks<T: Independent + Roundable>(
    task: &T,
    design: &Design,
    settings: &Settings,
    start: Option<&Start>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solution> {
    let values = |weights: &[f64], thresholds: &[f64], width: f64, scores: Option<&[f64]>, cancel: &Cancel| {
        let threshold = thresholds.first().copied().unwrap_or(0.0);
        let scores = match scores {
            Some(scores) => Cow::Borrowed(scores),
            None => Cow::Owned(design.scores_until(weights, cancel)?),
        };
        rounded_values(task, design, weights, &scores, threshold, width, settings.intercept, cancel)
    };
    round_off(task, design, settings, &values, start, observer, cancel)
}

/// The solution of a hard margin, or the error that names what contradicts itself.
fn separated<T: Independent>(problem: &Problem, task: &T, verdict: Verdict) -> Result<Solution> {
    let Contradiction { blocks, residual } = match verdict {
        Verdict::Separable(solution) => return Ok(solution),
        Verdict::NotSeparable(contradiction) => contradiction,
    };
    const SHOWN: usize = 4;
    let mut named: Vec<String> = blocks
        .iter()
        .take(SHOWN)
        .map(|&(block, _)| {
            let c = task.constraint(block);
            match c.against {
                Some(other) if c.threshold > 0.0 => {
                    format!("{} like {}", problem.data.row_name(c.row), problem.data.row_name(other))
                }
                Some(worse) => format!("{} over {}", problem.data.row_name(c.row), problem.data.row_name(worse)),
                None => problem.data.row_name(c.row),
            }
        })
        .collect();
    if blocks.len() > SHOWN {
        named.push("…".to_string());
    }
    let (list, count) = (named.join(", "), blocks.len());
    let message = match (&problem.task, count) {
        (Tasks::Pairs(_), 1) => format!("not separable: {list} cannot be, the features of both are the same"),
        (_, 1) => format!("not separable: {list} has no features that could reach a margin"),
        (Tasks::Pairs(_), _) => format!(
            "not separable: {count} pairs contradict each other, weighed together they add up to zero to {residual:.0e} \
             ({list}), so that no weights satisfy all of them"
        ),
        (_, _) => format!(
            "not separable: no weights tell the classes apart without error; {count} rows prove it, weighed together they \
             add up to zero to {residual:.0e} ({list})"
        ),
    };
    Err(Error::new(Code::NotSeparable, message)
        .help("use a soft margin, which pays for what cannot be satisfied: leave --solver out and set -c"))
}

/// A solution found over rounded differences, with objective and bound of the rows themselves: what `verify` finds.
fn restate<T: Independent + Roundable>(
    mut solution: Solution,
    task: &T,
    design: &Design,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<Solution> {
    let (weights, rule) = (&solution.weights, settings.intercept);
    let threshold = solution.thresholds.first().copied().unwrap_or(0.0);
    let scores = design.all_scores(weights);
    solution.objective = primal_of_scores(task, weights, &scores, threshold, rule);
    if solution.lower_bound.is_some() {
        solution.lower_bound = Some(match &solution.witness {
            Witness::Dual(alpha) => dual_value(task, design, |block| alpha[block], rule),
            Witness::Rounded(width) => {
                rounded_values(task, design, weights, &scores, threshold, *width, rule, cancel)?.1
            }
            Witness::Weights => smooth_bound(task, design, &scores, threshold, rule, cancel)?,
            Witness::Cuts(cuts) => {
                let mut risk = LinearRisk::new(task, design, rule == Intercept::Penalised, cancel);
                bound_of_cuts(&mut risk, cuts, cancel)?.map_err(|why| Error::new(Code::Internal, why))?
            }
        });
    }
    Ok(restated(solution, settings.tolerance))
}

/// A solution whose objective or bound was computed anew has converged only if these say so.
fn restated(solution: Solution, tolerance: f64) -> Solution {
    let within = solution.gap().is_some_and(|gap| gap <= tolerance);
    let stop = if solution.stop == Stop::Converged && !within { Stop::Stalled } else { solution.stop };
    Solution { stop, ..solution }
}

/// The same solution, proved by the dual point behind its cuts where that takes fewer numbers: one a block instead of one
/// a feature and cut.
fn with_smaller_witness<T: Independent>(
    solution: Solution,
    task: &T,
    design: &Design,
    settings: &Settings,
) -> Solution {
    let Witness::Cuts(cuts) = &solution.witness else { return solution };
    // Who has asked for an end does not wait for a pass a cut.
    if cuts.len() * design.cols() <= task.blocks() || solution.stop == Stop::Cancelled {
        return solution;
    }
    let alpha = dual_of_cuts(task, design, cuts, settings.intercept);
    let bound = dual_value(task, design, |block| alpha[block], settings.intercept);
    let gap = relative_gap(solution.objective, bound);
    // Rounding may turn a row that stands on its margin; where that costs anything the cuts stay.
    let as_good = solution.gap().is_some_and(|before| gap <= before + 1e-9);
    if as_good && (solution.stop != Stop::Converged || gap <= settings.tolerance) {
        return Solution { lower_bound: Some(bound), witness: Witness::Dual(alpha), ..solution };
    }
    solution
}

/// The solver for data of such a shape, or an error where the combination of task, loss and solver does not exist: to be
/// asked before any data are read, of a shape that is not known yet.
pub fn choose_solver(settings: &Settings, shape: Shape) -> Result<Solver> {
    let Shape { rows, features, density, compared } = shape;
    let independent =
        !settings.ties_from_grades && (!matches!(settings.task, Task::Rank | Task::Compare) || compared.is_some());
    let by_kernel = expands(settings);
    let (features, density) = match settings.kernel.approximate {
        // Mapped rows are dense, but of about the same length and at any angle: visits to one undo little of the others'.
        Some(map) => (map.features(), 0.0),
        None => (features, density),
    };
    // Pairs of items from anywhere tie all rows into one part. Where its tile would be too large for an exact Hessian,
    // every width of a rounded hinge is solved by conjugate gradients, on one thread; a visit to a pair costs two rows, and of
    // sparse or mapped ones undoes little of what visits to others did.
    let too_long = settings.loss == Loss::Hinge
        && density < DENSE
        && compared.is_some_and(|compared| !compared.as_differences() && compared.rows.saturating_mul(features) > TILE);
    let constraints = compared.map_or(rows, |compared| compared.pairs);
    let crowded = match settings.loss {
        Loss::Hinge => CROWDED_HINGE,
        Loss::SquaredHinge if features <= INTERIOR_POINT_FEATURES => CROWDED_SQUARED_HINGE,
        Loss::SquaredHinge | Loss::Logistic => 1,
    };
    let solver = match settings.solver {
        Solver::Auto if by_kernel && independent => Solver::Smo,
        Solver::Auto if !independent => Solver::Newton,
        Solver::Auto if settings.task == Task::Compare && settings.loss == Loss::Logistic => Solver::Newton,
        Solver::Auto if too_long => Solver::DualCoordinateDescent,
        Solver::Auto if features <= FEW_FEATURES => Solver::Newton,
        Solver::Auto if density >= DENSE && constraints > features.saturating_mul(crowded) => Solver::Newton,
        // Of the hinges; the logistic loss went to Newton's method.
        Solver::Auto if density >= DENSE && constraints > features && features <= INTERIOR_POINT_FEATURES => {
            Solver::InteriorPoint
        }
        Solver::Auto => Solver::DualCoordinateDescent,
        solver => solver,
    };
    let supported = match solver {
        Solver::Auto => false,
        // Its pairs are neither listed nor drawn.
        _ if settings.ties_from_grades => {
            matches!(solver, Solver::Newton | Solver::CuttingPlane) && !by_kernel && settings.loss != Loss::Logistic
        }
        // Only Newton's method knows the barrier that keeps the threshold of three outcomes above zero.
        _ if settings.task == Task::Compare
            && settings.method == Method::Compare
            && settings.loss == Loss::Logistic =>
        {
            solver == Solver::Newton && !by_kernel
        }
        Solver::Smo | Solver::Lasvm => independent && settings.loss != Loss::Logistic,
        Solver::Newton if by_kernel => !independent && settings.loss == Loss::SquaredHinge,
        _ if settings.task == Task::OneClass => false,
        Solver::DualCoordinateDescent | Solver::QuadraticProgram => independent,
        Solver::InteriorPoint => independent && settings.loss != Loss::Logistic,
        Solver::LinearProgram => settings.task == Task::Compare && independent,
        Solver::Newton | Solver::CuttingPlane if independent => true,
        Solver::Newton | Solver::CuttingPlane => settings.loss != Loss::Logistic,
        Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos => independent || settings.loss != Loss::Logistic,
        // Validated settings refuse it for anything but streams, which are not trained on here.
        Solver::PassiveAggressive => false,
    };
    if !supported {
        return Err(unsupported(settings, solver, independent));
    }
    if solver == Solver::InteriorPoint && features > MOST_INTERIOR_POINT_FEATURES {
        let message = format!(
            "`interior-point` solves for all features at once, at most {MOST_INTERIOR_POINT_FEATURES}, and there are {features}"
        );
        return Err(Error::new(Code::Unsupported, message).help("leave --solver out"));
    }
    Ok(solver)
}

/// Whether these settings make a sum over support vectors instead of weights.
pub fn expands(settings: &Settings) -> bool {
    settings.kernel.is_exact()
        || settings.regularisation.is_nu()
        || settings.task == Task::OneClass
        || settings.solver.is_kernel_dual()
}

/// `independent` says whether each constraint stands for itself: rows to classify, or explicit pairs.
fn unsupported(settings: &Settings, solver: Solver, independent: bool) -> Error {
    let (task, loss) = (settings.task.name(), settings.loss.name());
    if solver == Solver::PassiveAggressive {
        return Error::new(Code::Unsupported, "passive-aggressive steps learn from a stream")
            .help("use `maxmargin learn compare`, or leave --solver out");
    }
    let remedy = match (independent, settings.loss) {
        (false, _) if settings.ties_from_grades && expands(settings) => {
            return Error::new(Code::Unsupported, "comparing by grades learns weights, and kernels have none")
                .help("use --approximate nystrom:1000, or list the pairs in a file and name the rows with --items");
        }
        (false, Loss::Logistic) if settings.ties_from_grades => {
            return Error::new(
                Code::Unsupported,
                format!("comparing by grades with {loss} loss is not part of this version"),
            )
            .help("use --loss squared-hinge or --loss hinge; explicit pairs (--items) take every loss");
        }
        (false, _) if settings.regularisation.is_nu() => {
            return Error::new(Code::Unsupported, "--nu is for explicit pairs, and these rows are graded")
                .help("use -c, or list the pairs in a file and name the rows with --items");
        }
        (false, Loss::Hinge | Loss::SquaredHinge) if expands(settings) => {
            return Error::new(Code::Unsupported, format!("kernels rank graded rows with squared hinge loss by Newton's method, and not with {loss} loss by `{}`", solver.name()))
                .help("leave --loss and --solver out, or use --solver sgd or --approximate nystrom:1000; explicit pairs (--items) take the hinge too");
        }
        (false, _) if solver.is_hard_margin() => {
            return Error::new(Code::Unsupported, "a hard margin takes explicit pairs, and these rows are graded")
                .help("list the pairs in a file and name the rows with --items, or leave --solver out");
        }
        (false, Loss::Logistic) => {
            return Error::new(Code::Unsupported, format!("ranking with {loss} loss is not part of this version"))
                .help("use --loss squared-hinge or --loss hinge; explicit pairs (--items) take every loss");
        }
        (false, _) => "use --solver newton or cutting-plane, or leave --solver out",
        (true, _) if settings.task == Task::OneClass => "leave --solver out",
        (true, _) if expands(settings) && !solver.is_kernel_dual() => "leave --solver out",
        (true, _) if settings.kernel.is_exact() => {
            "use --loss hinge or --loss squared-hinge, --solver sgd, or --approximate nystrom:1000"
        }
        (true, _) if solver == Solver::InteriorPoint => {
            "use --loss hinge or --loss squared-hinge, or leave --solver out"
        }
        // Of the other solvers of single constraints only those of kernels lack a loss.
        (true, _) => "use --loss hinge or --loss squared-hinge, or leave --kernel out",
    };
    Error::new(Code::Unsupported, format!("`{task}` with {loss} loss is not solved by `{}`", solver.name()))
        .help(remedy)
}

/// Adds the held-out metric to what the solver reports.
struct Watching<'a> {
    inner: &'a mut dyn Observer,
    held_out: Option<Measure<'a>>,
}

impl Observer for Watching<'_> {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let mut event = event.clone();
        if let Event::Pass { weights, thresholds, held_out, .. } = &mut event {
            *held_out = self.held_out.as_ref().and_then(|judge| judge(weights, thresholds));
        }
        self.inner.report(&event)
    }
}

/// How unevenly the columns are scaled: the ratio of the largest to the smallest among the columns' largest absolute
/// values in a sample of the rows. Advice for a user whose training is slow; 1 where there is nothing to compare.
pub fn scale_spread(data: &Dataset, cancel: &Cancel) -> Result<f64> {
    const SAMPLE: usize = 20_000;
    let (matrix, rows) = (data.matrix(), data.rows());
    matrix.check(0..rows)?;
    let mut sizes = vec![0.0f64; data.cols()];
    for row in (0..rows).step_by(rows.div_ceil(SAMPLE).max(1)) {
        cancel.check()?;
        matrix.each_in_row(row, |column, value| sizes[column] = sizes[column].max(value.abs()));
        matrix.residency().passed(row..row + 1);
    }
    let sizes = sizes.iter().filter(|&&size| size > 0.0);
    let (low, high) = sizes.fold((f64::INFINITY, 0.0f64), |(low, high), &size| (low.min(size), high.max(size)));
    Ok(if high > 0.0 { high / low } else { 1.0 })
}
