//! [`ByColumn`]: independent problems of two classes over the same rows, the columns of an output code.
//!
//! Each column is solved by [`ByBlock`], exactly as the problem of two classes that it is: the objective is the sum over
//! columns, the bound the sum of their bounds, and each column has a witness of its own. Columns are solved at the same
//! time on all threads, a batch after the other. The dual points of finished columns are kept compactly: nearly all
//! variables of one class against many others are zero.
//!
//! Through a kernel, columns share kernel rows (`SharedRows`), and a support vector is stored once for all columns.

use super::{ByBlock, Expanded, Problem, ProblemShape, Run, Stated, Values, column_expansion, infeasible, plan};
use crate::certificate::{ColumnWitness, Scorer, SparseDual, Witness};
use crate::data::{Dataset, Design, Targets};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::{Cancel, Event, Silent, interrupted};
use crate::settings::Settings;
use crate::solve::machine::SharedKernel;
use crate::solve::{CurvedRisk, Machine, Sampled, Solution, Start, Stop, ThroughKernel, TracePoint, usual_cache};
use crate::task::{Abilities, Binary, Column, Columns, Intercept, LearningTask};
use crate::wish::Solver;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

/// See the top of the file.
pub(crate) struct ByColumn {
    task: Columns,
    abilities: Abilities,
}

/// Columns solved at the same time.
const BATCH: usize = 16;

/// Number of times that the objective of all columns is reported.
const REPORTS: usize = 20;

/// A column with its rows.
struct Part<'a> {
    problem: ByBlock<Binary>,
    design: Cow<'a, Design>,
    data: Cow<'a, Dataset>,
    /// The solver planned for these rows.
    solver: Solver,
    /// The numbers of these rows, if they are not all.
    rows: Option<Vec<usize>>,
}

/// A column as far as it is solved.
struct Solved {
    weights: Vec<f64>,
    /// With a kernel: the coefficients of rows.
    terms: Vec<(usize, f64)>,
    constant: f64,
    objective: f64,
    lower_bound: Option<f64>,
    witness: ColumnWitness,
    passes: u64,
    stop: Stop,
    solver: Solver,
    first_rate: Option<f64>,
    seconds: f64,
}

impl ByColumn {
    /// The problem of all columns.
    pub(crate) fn new(task: Columns, abilities: Abilities) -> ByColumn {
        ByColumn { task, abilities }
    }

    fn columns(&self) -> usize {
        self.task.code().columns()
    }

    /// A column as the problem of two classes over the rows that it does not leave out, or its constant score.
    fn part<'a>(
        &self,
        column: usize,
        (data, design): (Option<&'a Dataset>, &'a Design),
        settings: &Settings,
        solver: Solver,
    ) -> Result<std::result::Result<Part<'a>, f64>> {
        let (task, rows) = match self.task.column(column) {
            Column::Constant(score) => return Ok(Err(score)),
            Column::Learned(task, rows) => (task, rows),
        };
        let abilities = Abilities { kernel: self.abilities.kernel, ..Abilities::LISTED };
        let problem = ByBlock::new(task, self.task.rule(), abilities);
        let bare = |design: &Design| Dataset::new(design.matrix().clone(), Targets::Absent);
        Ok(Ok(match rows {
            None => {
                let data = match data {
                    Some(data) => Cow::Borrowed(data),
                    None => Cow::Owned(bare(design)?),
                };
                Part { problem, design: Cow::Borrowed(design), data, solver, rows: None }
            }
            Some(rows) => {
                let design = design.select(&rows);
                let place = |&row: &usize| data.map_or(row, |data| data.input_row(row)) as u64;
                let own = bare(&design)?.with_input_order(rows.iter().map(place).collect::<Vec<_>>())?;
                let solver = plan(abilities, settings, own.shape())?;
                Part { problem, design: Cow::Owned(design), data: Cow::Owned(own), solver, rows: Some(rows) }
            }
        }))
    }

    /// The start of a column.
    fn start(&self, start: Option<&Start>, column: usize) -> Option<Start> {
        let start = start?;
        Some(Start {
            weights: start.weights.iter().skip(column).step_by(self.columns()).copied().collect(),
            thresholds: start.thresholds.get(column).map(|&constant| vec![constant]).unwrap_or_default(),
            width: start.width,
            ..Start::default()
        })
    }

    /// Solves one column. After a cancel it stays at zero weights, which no hard margin allows.
    fn solved(&self, column: usize, shared: &Shared<'_>) -> Result<Solved> {
        let began = Instant::now();
        let &Shared { data, design, settings, solver, start, polishes, cancel, kernel, at_zero } = shared;
        let nothing = Solved {
            weights: Vec::new(),
            terms: Vec::new(),
            constant: 0.0,
            objective: 0.0,
            lower_bound: Some(0.0),
            witness: ColumnWitness::Dual(SparseDual::default()),
            passes: 0,
            stop: Stop::Converged,
            solver,
            first_rate: None,
            seconds: 0.0,
        };
        let part = match self.part(column, (Some(data), design), settings, solver)? {
            Ok(part) => part,
            Err(constant) => {
                let stop = if solver.is_stochastic() { Stop::Finished } else { Stop::Converged };
                return Ok(Solved { constant, stop, ..nothing });
            }
        };
        let blocks = part.design.rows();
        if cancel.is_raised() {
            if settings.is_hard_margin() {
                return Err(interrupted());
            }
            let objective = self.task.value_at_zero(column, at_zero);
            let witness = ColumnWitness::Dual(SparseDual { blocks, ..SparseDual::default() });
            let lower_bound = nothing.lower_bound.filter(|_| !solver.is_stochastic());
            return Ok(Solved { objective, lower_bound, witness, stop: Stop::Cancelled, ..nothing });
        }
        let start = self.start(start, column).filter(|_| kernel.is_none());
        let mut machine = kernel.map(|kernel| kernel.machine(part.rows.as_deref()));
        // Without a bound only the dual variables are needed.
        let definite = machine.as_ref().is_none_or(Machine::is_definite);
        let mut run = Run {
            data: &part.data,
            design: &part.design,
            settings,
            solver: part.solver,
            start: start.as_ref(),
            for_model: definite,
            polishes,
            machine: machine.as_mut(),
            referee: None,
            observer: &mut Silent,
            cancel,
        };
        let solution = part.problem.solve(&mut run)?;
        let solver = run.solver;
        let (constant, objective) = (solution.threshold(), solution.objective);
        let Solution { weights, mut lower_bound, mut witness, passes, mut stop, first_rate, .. } = solution;
        let mut terms = Vec::new();
        if kernel.is_some() {
            let alpha = if let Witness::Dual(alpha) = &witness { alpha } else { &weights };
            terms = part.problem.coefficients(alpha).collect();
            if let Some(rows) = &part.rows {
                terms.iter_mut().for_each(|(row, _)| *row = rows[*row]);
            }
            if !definite {
                (lower_bound, witness) = (None, Witness::Weights);
                stop = if stop == Stop::Converged { Stop::Finished } else { stop };
            }
        }
        let witness = match witness {
            Witness::Dual(alpha) => SparseDual::of(&alpha).map(ColumnWitness::Dual),
            Witness::Rounded(width) => Some(ColumnWitness::Rounded(width)),
            Witness::Cuts(cuts) => Some(ColumnWitness::Cuts(cuts)),
            Witness::Weights if lower_bound.is_some() && !(settings.loss.is_smooth() && solver == Solver::Newton) => {
                // Nothing more than zero is proven.
                Some(ColumnWitness::Dual(SparseDual { blocks, ..SparseDual::default() }))
            }
            Witness::Weights => Some(ColumnWitness::Weights),
            Witness::Columns(_) | Witness::Classes(_) | Witness::Outputs(_) => None,
        };
        let witness = witness.ok_or_else(|| Error::new(Code::Internal, "a column has too many rows"))?;
        let lower_bound = lower_bound.map(|bound| bound.min(objective));
        let seconds = began.elapsed().as_secs_f64();
        Ok(Solved {
            weights: if kernel.is_some() { Vec::new() } else { weights },
            terms,
            constant,
            objective,
            lower_bound,
            witness,
            passes,
            stop,
            solver,
            first_rate,
            seconds,
        })
    }

    /// The value of columns that are still at zero weights.
    fn value_at_zero(&self, columns: Range<usize>, at_zero: &[f64]) -> f64 {
        columns.map(|column| self.task.value_at_zero(column, at_zero)).sum()
    }

    /// Primal value and bound of one column of a model.
    fn certified(&self, column: usize, at: &At<'_>) -> Result<Values> {
        let &At { weights, stated, witnesses, design, settings, cancel } = at;
        let weights: Vec<f64> = weights.iter().skip(column).step_by(self.columns()).copied().collect();
        let constant = stated.free.get(column).copied();
        let part = match self.part(column, (None, design), settings, Solver::Auto)? {
            Ok(part) => part,
            Err(score) => {
                let score = if self.task.has_constants() { score } else { 0.0 };
                if weights.iter().any(|weight| *weight != 0.0) || constant.unwrap_or(0.0) != score {
                    return Err(infeasible("a column with one side has learned weights"));
                }
                return Ok(Values { objective: 0.0, lower_bound: Some(0.0) });
            }
        };
        let witness = match witnesses.map(|witnesses| &witnesses[column]) {
            None => None,
            Some(ColumnWitness::Weights) => Some(Witness::Weights),
            Some(ColumnWitness::Rounded(width)) => Some(Witness::Rounded(*width)),
            Some(ColumnWitness::Cuts(cuts)) => Some(Witness::Cuts(cuts.clone())),
            Some(ColumnWitness::Dual(sparse)) => {
                let dense = sparse.to_dense().ok_or_else(|| infeasible("a dual variable has no row"))?;
                Some(Witness::Dual(dense))
            }
        };
        let by_weights = witness == Some(Witness::Weights);
        let scorer = Scorer::linear(weights, constant);
        let free: Vec<f64> = constant.into_iter().collect();
        let claims = stated.claims && witness.is_some();
        let own = Stated { scorer: &scorer, free: &free, witness: witness.as_ref(), claims, by_weights };
        let found = part.problem.certify(&own, &part.design, settings, cancel)?;
        Ok(Values { lower_bound: found.lower_bound.map(|bound| bound.min(found.objective)), ..found })
    }
}

/// What the columns of a run share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    data: &'a Dataset,
    design: &'a Design,
    settings: &'a Settings,
    solver: Solver,
    start: Option<&'a Start>,
    polishes: bool,
    cancel: &'a Cancel,
    kernel: Option<&'a SharedKernel>,
    /// The loss of each class in a column that is at zero weights.
    at_zero: &'a [f64],
}

/// A point of all columns to be certified.
#[derive(Clone, Copy)]
struct At<'a> {
    weights: &'a [f64],
    stated: &'a Stated<'a>,
    witnesses: Option<&'a [ColumnWitness]>,
    design: &'a Design,
    settings: &'a Settings,
    cancel: &'a Cancel,
}

/// All columns, as far as they are solved.
struct Whole {
    weights: Vec<f64>,
    /// With a kernel: the coefficients of each row, by column.
    terms: BTreeMap<usize, Vec<(usize, f64)>>,
    thresholds: Vec<f64>,
    objective: f64,
    lower_bound: Option<f64>,
    witnesses: Vec<ColumnWitness>,
    passes: u64,
    stop: Stop,
    first_rate: Option<f64>,
    solver: Option<Solver>,
}

impl Whole {
    /// Adds a column.
    fn add(&mut self, column: usize, columns: usize, solved: Solved) {
        for (feature, &weight) in solved.weights.iter().enumerate() {
            self.weights[feature * columns + column] = weight;
        }
        for (row, coefficient) in solved.terms {
            self.terms.entry(row).or_default().push((column, coefficient));
        }
        if let Some(constant) = self.thresholds.get_mut(column) {
            *constant = solved.constant;
        }
        self.objective += solved.objective;
        self.lower_bound = self.lower_bound.zip(solved.lower_bound).map(|(sum, bound)| sum + bound);
        self.witnesses.push(solved.witness);
        self.passes += solved.passes;
        self.stop = worse(self.stop, solved.stop);
        self.first_rate = self.first_rate.or(solved.first_rate);
        // Columns without passes name no solver of their own.
        self.solver = self.solver.or(Some(solved.solver).filter(|_| solved.passes > 0));
    }
}

/// Why several columns stopped.
fn worse(a: Stop, b: Stop) -> Stop {
    let rank = |stop: Stop| match stop {
        Stop::Converged => 0,
        Stop::Finished => 1,
        Stop::EarlyStopped => 2,
        Stop::NoGain => 3,
        Stop::Stalled => 4,
        Stop::PassLimit => 5,
        Stop::Cancelled | Stop::TimeLimit => 6,
    };
    if rank(b) > rank(a) { b } else { a }
}

impl Problem for ByColumn {
    fn task(&self) -> &dyn LearningTask {
        &self.task
    }

    fn task_mut(&mut self) -> &mut dyn LearningTask {
        &mut self.task
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn rule(&self) -> Intercept {
        self.task.rule()
    }

    fn shape(&self) -> ProblemShape {
        let outputs = self.columns();
        let free = if self.task.has_constants() { outputs } else { 0 };
        ProblemShape { outputs, free, blocks: 0, kernel_numbers: self.task.rows() }
    }

    fn solve(&self, run: &mut Run<'_>) -> Result<Solution> {
        let (columns, free) = (self.columns(), self.shape().free);
        let &mut Run { data, design, settings, solver, start, polishes, cancel, .. } = run;
        let began = Instant::now();
        let kernel = match settings.expands() {
            true => Some(SharedKernel::new(design, settings, &self.task.by_class(), usual_cache(settings), cancel)?),
            false => None,
        };
        // Zero weights are no point of a hard margin; there only finished columns are summed.
        let at_zero = match settings.is_hard_margin() {
            true => vec![0.0; self.task.code().classes()],
            false => self.task.losses_at_zero(),
        };
        let (kernel_rows, at_zero) = (kernel.as_ref(), &at_zero[..]);
        let shared = Shared { data, design, settings, solver, start, polishes, cancel, kernel: kernel_rows, at_zero };
        let mut whole = Whole {
            weights: vec![0.0; if kernel.is_some() { 0 } else { design.cols() * columns }],
            terms: BTreeMap::new(),
            thresholds: vec![0.0; free],
            objective: 0.0,
            lower_bound: Some(0.0),
            witnesses: Vec::with_capacity(columns),
            passes: 0,
            stop: Stop::Converged,
            first_rate: None,
            solver: None,
        };
        // The columns after the observer asked for an end.
        let stopped = Cancel::new();
        let (mut trace, mut left) = (Vec::new(), self.value_at_zero(0..columns, at_zero));
        let every = columns.div_ceil(BATCH).div_ceil(REPORTS) * BATCH;
        for first in (0..columns).step_by(BATCH) {
            let count = BATCH.min(columns - first);
            let shared = if stopped.is_raised() { Shared { cancel: &stopped, ..shared } } else { shared };
            let solved = parallel::try_map(count, |at| self.solved(first + at, &shared))?;
            cancel.check_wanted()?;
            left -= self.value_at_zero(first..first + count, at_zero);
            for (at, solved) in solved.into_iter().enumerate() {
                let event = Event::Column {
                    column: first + at,
                    columns,
                    passes: solved.passes,
                    objective: solved.objective,
                    lower_bound: solved.lower_bound,
                    seconds: solved.seconds,
                };
                let end = run.observer.report(&event).is_break();
                whole.add(first + at, columns, solved);
                if end {
                    stopped.raise();
                }
            }
            let done = first + count;
            if done % every != 0 && done != columns {
                continue;
            }
            let objective = whole.objective + left.max(0.0);
            let seconds = began.elapsed().as_secs_f64();
            trace.push(TracePoint { pass: done as u64, objective, lower_bound: whole.lower_bound, seconds });
            let event = Event::Pass {
                pass: done as u64,
                objective,
                lower_bound: whole.lower_bound,
                weights: &whole.weights,
                thresholds: &whole.thresholds,
                held_out: None,
            };
            if run.observer.report(&event).is_break() && done < columns {
                stopped.raise();
            }
        }
        run.solver = whole.solver.unwrap_or(solver);
        let Whole { weights, terms, thresholds, objective, lower_bound, witnesses, passes, stop, first_rate, .. } =
            whole;
        let kernel = match &kernel {
            Some(kernel) => Some(column_expansion::through(kernel.kernel(), &terms, &thresholds, (design, columns))?),
            None => None,
        };
        let kernel = kernel.map(|kernel| ThroughKernel { definite: lower_bound.is_some(), ..kernel });
        let witness = match lower_bound {
            Some(_) => Witness::Columns(witnesses),
            None => Witness::Weights,
        };
        Ok(Solution {
            weights,
            thresholds,
            objective,
            lower_bound,
            witness,
            passes,
            stop,
            first_rate,
            read: None,
            kernel,
            trace,
        })
    }

    fn certify(&self, stated: &Stated<'_>, design: &Design, settings: &Settings, cancel: &Cancel) -> Result<Values> {
        if let Some(expanded) = Expanded::of(stated.scorer, design, settings, cancel)? {
            return column_expansion::certify(&self.task, &expanded, stated, settings, cancel);
        }
        let weights = super::weights_of(stated.scorer)?;
        let columns = self.columns();
        let witnesses = match stated.witness {
            None => None,
            Some(Witness::Columns(witnesses)) if witnesses.len() == columns => Some(&witnesses[..]),
            Some(_) => return Err(infeasible("it belongs to another task")),
        };
        let at = At { weights, stated, witnesses, design, settings, cancel };
        let (mut objective, mut lower_bound) = (0.0, witnesses.map(|_| 0.0));
        for first in (0..columns).step_by(BATCH) {
            let count = BATCH.min(columns - first);
            for values in parallel::try_map(count, |number| self.certified(first + number, &at))? {
                objective += values.objective;
                lower_bound = lower_bound.zip(values.lower_bound).map(|(sum, bound)| sum + bound);
            }
            cancel.check()?;
        }
        Ok(Values { objective, lower_bound })
    }

    fn risk<'a>(&'a self, _: &'a Design, _: &'a Cancel) -> Result<Box<dyn CurvedRisk + 'a>> {
        Err(in_one())
    }

    fn machine(&self, _: &Design, _: &Settings, _: u64, _: &Cancel) -> Result<Machine> {
        Err(in_one())
    }

    fn kernel_scores(&self, _: &Machine, _: &Solution, _: &Cancel) -> Vec<f64> {
        Vec::new()
    }

    fn sampled(&self, _: &Settings) -> Result<Box<dyn Sampled + '_>> {
        Err(in_one())
    }
}

/// The error for what only one problem over all columns could do.
fn in_one() -> Error {
    Error::new(Code::Unsupported, "the columns of an output code are solved one by one, and not as one problem")
        .help("use ⟦multiclass=joint⟧, or leave out what asks for one problem, such as ⟦early-stopping⟧")
}
