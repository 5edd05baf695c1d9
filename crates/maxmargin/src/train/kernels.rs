//! Tasks learned through a kernel: those with one constraint a block by their dual, groups to be
//! ranked by their scores, and both by stochastic steps.

use super::{Problem, Tasks};
use crate::data::{Design, Matrix};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points, expansion_scores};
use crate::model::{Expansion, Scorer};
use crate::run::{Cancel, Observer};
use crate::settings::{Regularisation, Settings, Solver};
use crate::solve::{
    ExpansionSolution, Form, Gram, KernelDescent, KernelNewton, KernelRows, KernelSolution, KernelSum, Lasvm, Merging,
    SHRINK_FROM, Smo, Stop, TracePoint, Witness,
};
use crate::task::{Independent, Intercept, OneClass, Ranking};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model around support vectors, and how it was found.
pub(super) struct Solved {
    pub(super) scorer: Scorer,
    pub(super) objective: f64,
    pub(super) lower_bound: Option<f64>,
    /// What proves the bound beside the expansion.
    pub(super) witness: Option<Witness>,
    pub(super) passes: u64,
    pub(super) stop: Stop,
    pub(super) trace: Vec<TracePoint>,
    /// Kernel rows asked for, and of these computed.
    pub(super) rows: Option<(u64, u64)>,
    /// What a budget of support vectors cost.
    pub(super) merging: Option<Merging>,
}

/// Kernel rows may take this many bytes unless the user says otherwise: a quarter of the memory of a small machine.
const USUAL_CACHE: u64 = 4 << 30;

/// What kernel rows may take.
pub(crate) fn usual_cache(settings: &Settings) -> u64 {
    settings.kernel.cache.unwrap_or(USUAL_CACHE)
}

pub(super) fn solve(
    problem: &mut Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solved> {
    let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
    kernel.check_known()?;
    check_values(&kernel, design)?;
    let points = Arc::new(Points::new(design, &kernel));
    check_symmetric(&points)?;
    cancel.check()?;
    if solver.is_stochastic() {
        let rows = KernelRows { design, points: &points, kernel: &kernel };
        return descend(problem, rows, settings, solver, observer, cancel);
    }
    if let Tasks::Ranking(task) = &problem.task {
        return rank(task, kernel, &points, design, settings, observer, cancel);
    }
    let solution = match points.is_wide() {
        true => minimise::<f64>(settings, solver, problem, &kernel, &points, design, observer, cancel)?,
        false => minimise::<f32>(settings, solver, problem, &kernel, &points, design, observer, cancel)?,
    };
    if settings.regularisation.is_nu() {
        let margin = solution.common_margin.filter(|margin| *margin > 0.0).ok_or_else(|| {
            Error::new(Code::NuTooSmall, "training ended before a margin above zero was found")
                .help("try a larger --nu, or more --max-passes")
        })?;
        problem.set_regularisation(Regularisation::C(problem.c / margin));
        problem.check_range()?;
    }
    let coefficients = match &problem.task {
        Tasks::Binary(task, _) => by_row(task, &solution.alpha),
        Tasks::Pairs(task) => by_row(task, &solution.alpha),
        Tasks::OneClass(task, _) => by_row(task, &solution.alpha),
        Tasks::Ranking(_) => BTreeMap::new(),
    };
    let intercept = match problem.task {
        Tasks::OneClass(..) => Some(-OneClass::MARGIN),
        _ => (settings.intercept != Intercept::None).then_some(solution.threshold),
    };
    Ok(Solved {
        scorer: around(kernel, coefficients.into_iter(), intercept, design)?,
        objective: solution.objective,
        lower_bound: Some(solution.lower_bound),
        witness: Some(Witness::Dual(solution.alpha)),
        passes: solution.passes,
        stop: solution.stop,
        trace: solution.trace,
        rows: Some(solution.rows),
        merging: None,
    })
}

/// Stochastic steps, which need no dual point and take graded rows too.
fn descend(
    problem: &Problem,
    rows: KernelRows<'_>,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solved> {
    let stochastic = &settings.stochastic;
    let descent = KernelDescent {
        // Bottou's rates fall like 1/(λt) from the first one on: where that is 1/λ, they are those of Pegasos.
        schedule: stochastic.schedule.unwrap_or_default(),
        rate: stochastic.rate.filter(|_| solver == Solver::Sgd),
        batch: stochastic.batch as usize,
        passes: settings.max_passes,
        seed: settings.seed,
        intercept: settings.intercept,
        budget: settings.kernel.budget.map(|budget| budget as usize),
    };
    let sampled = super::stochastic::sampled(problem, settings)?;
    let around = |vectors: Matrix, coefficients: &[f64], intercept: Option<f64>| Expansion {
        kernel: rows.kernel.clone(),
        vectors,
        coefficients: coefficients.to_vec(),
        intercept,
    };
    let scored = |vectors: Matrix, coefficients: &[f64]| {
        let (scores, square) = around(vectors, coefficients, None).against(rows.points, cancel)?;
        cancel.check()?;
        Ok((scores, square))
    };
    let KernelSum { vectors, coefficients, threshold, objective, passes, stop, merging, trace } =
        match rows.points.is_wide() {
            true => descent.solve::<f64>(&*sampled, rows, &scored, observer, cancel)?,
            false => descent.solve::<f32>(&*sampled, rows, &scored, observer, cancel)?,
        };
    let intercept = (settings.intercept != Intercept::None).then_some(threshold);
    let scorer = Scorer::Expansion(around(vectors, &coefficients, intercept));
    let merging = Some(merging);
    Ok(Solved { scorer, objective, lower_bound: None, witness: None, passes, stop, trace, rows: None, merging })
}

/// Runs LaSVM over kernel values of one kind.
fn in_one_pass<T: Independent, V: Element>(
    task: &T,
    rows: KernelRows<'_>,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<KernelSolution> {
    let &Settings { tolerance, max_passes, intercept, seed, .. } = settings;
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

/// What scores by the rows that count. Of kernel values a row has those with all of them, in columns of their own: there
/// the coefficients are weights.
fn around(
    kernel: Kernel,
    coefficients: impl Iterator<Item = (usize, f64)>,
    intercept: Option<f64>,
    design: &Design,
) -> Result<Scorer> {
    let coefficients = coefficients.filter(|entry| entry.1 != 0.0);
    if kernel == Kernel::Precomputed {
        let mut weights = vec![0.0; design.cols()];
        let first = design.cols() - design.rows();
        coefficients.for_each(|(row, coefficient)| weights[first + row] = coefficient);
        return Ok(Scorer::Linear { weights, intercept });
    }
    let (rows, coefficients): (Vec<usize>, Vec<f64>) = coefficients.unzip();
    Ok(Scorer::Expansion(Expansion { kernel, vectors: design.copied(&rows)?, coefficients, intercept }))
}

/// Learns to rank the rows of each group: a smooth function of the scores.
fn rank(
    task: &Ranking,
    kernel: Kernel,
    points: &Points,
    design: &Design,
    settings: &Settings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solved> {
    let newton = KernelNewton {
        tolerance: settings.tolerance,
        max_passes: settings.max_passes,
        cache_bytes: usual_cache(settings),
    };
    let solution = match points.is_wide() {
        true => newton.solve::<_, f64>(task, &kernel, points, observer, cancel)?,
        false => newton.solve::<_, f32>(task, &kernel, points, observer, cancel)?,
    };
    let ExpansionSolution { coefficients, objective, lower_bound, passes, stop, trace, rows } = solution;
    let scorer = around(kernel, coefficients.into_iter().enumerate(), None, design)?;
    let (lower_bound, rows) = (Some(lower_bound), Some(rows));
    Ok(Solved { scorer, objective, lower_bound, witness: None, passes, stop, trace, rows, merging: None })
}

/// Runs a solver of the dual over kernel values of one kind.
#[allow(clippy::too_many_arguments)] // the rows and their kernel, and those of `solve`
fn minimise<V: Element>(
    settings: &Settings,
    solver: Solver,
    problem: &Problem,
    kernel: &Kernel,
    points: &Arc<Points>,
    design: &Design,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<KernelSolution> {
    if solver == Solver::Lasvm {
        let rows = KernelRows { design, points, kernel };
        return match &problem.task {
            Tasks::Binary(task, _) => in_one_pass::<_, V>(task, rows, settings, observer, cancel),
            Tasks::OneClass(task, _) => in_one_pass::<_, V>(task, rows, settings, observer, cancel),
            Tasks::Pairs(task) => in_one_pass::<_, V>(task, rows, settings, observer, cancel),
            Tasks::Ranking(_) => Err(Error::new(Code::Internal, "graded rows have no constraints to list")),
        };
    }
    let smo = Smo {
        tolerance: settings.tolerance,
        max_passes: settings.max_passes,
        intercept: settings.intercept,
        form: if settings.regularisation.is_nu() { Form::Nu } else { Form::Costs },
        cache_bytes: usual_cache(settings),
        shrink_from: SHRINK_FROM,
    };
    let rows = RowGram { kernel: kernel.clone(), points: Arc::clone(points) };
    match &problem.task {
        Tasks::Binary(task, _) => smo.solve::<_, V>(task, &rows, &mut smo.cache(task.blocks()), None, observer, cancel),
        Tasks::OneClass(task, _) => {
            smo.solve::<_, V>(task, &rows, &mut smo.cache(task.blocks()), None, observer, cancel)
        }
        Tasks::Pairs(task) => {
            let pairs = (0..task.blocks()).map(|block| task.constraint(block)).map(|c| (c.row, c.against)).collect();
            let gram = DifferenceGram { kernel: kernel.clone(), points: Arc::clone(points), pairs };
            smo.solve::<_, V>(task, &gram, &mut smo.cache(task.blocks()), None, observer, cancel)
        }
        Tasks::Ranking(_) => Err(Error::new(Code::Internal, "graded rows have no constraints to list")),
    }
}

/// What each row of the data counts in the score: Σ over its constraints of ±α·a. Rows that do not count are left out.
pub(crate) fn by_row<T: Independent>(task: &T, alpha: &[f64]) -> BTreeMap<usize, f64> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (block, &alpha) in alpha.iter().enumerate().filter(|(_, alpha)| **alpha != 0.0) {
        let c = task.constraint(block);
        *sums.entry(c.row).or_default() += alpha * c.coefficient;
        if let Some(row) = c.against {
            *sums.entry(row).or_default() -= alpha * c.coefficient;
        }
    }
    sums.retain(|_, sum| *sum != 0.0);
    sums
}

fn check_values(kernel: &Kernel, design: &Design) -> Result<()> {
    if *kernel == Kernel::Precomputed {
        return check_square(design);
    }
    if !kernel.needs_positive_rows() {
        return Ok(());
    }
    let mut values = vec![0.0; design.cols()];
    for row in 0..design.rows() {
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        if values.iter().any(|&value| value < 0.0) {
            return Err(Error::new(Code::BadSetting, "this kernel is for histograms, and there are negative values")
                .help("add --scale min-max, or use --kernel gaussian"));
        }
    }
    Ok(())
}

/// Refuses what is no table of kernel values: one column a row, the same from both sides. A first column may number the rows.
fn check_square(design: &Design) -> Result<()> {
    let (rows, cols) = (design.rows(), design.cols());
    let refuse = |message: String| {
        Err(Error::new(Code::BadSetting, message).help(
            "--kernel precomputed takes one column a row: column j of row i is k(x_i, x_j); a column 0 may hold the numbers of the rows",
        ))
    };
    if cols != rows && cols != rows + 1 {
        return refuse(format!("kernel values make a square, and there are {rows} rows with {cols} columns"));
    }
    let mut values = vec![0.0; cols];
    for row in (0..rows).filter(|_| cols > rows) {
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        if values[0] != (row + 1) as f64 {
            return refuse(format!(
                "the first column should number the rows from 1, and row {} has {}",
                row + 1,
                values[0]
            ));
        }
    }
    Ok(())
}

/// Refuses kernel values that are not the same from both sides.
fn check_symmetric(points: &Points) -> Result<()> {
    let Some((row, column, one, other)) = points.asymmetric() else { return Ok(()) };
    let (row, column) = (row + 1, column + 1);
    let message =
        format!("kernel values are the same from both sides, and rows {row} and {column} have {one} and {other}");
    Err(Error::new(Code::BadSetting, message).help("check how the kernel values were computed and written"))
}

/// Blocks that are rows.
struct RowGram {
    kernel: Kernel,
    points: Arc<Points>,
}

impl<V: Element> Gram<V> for RowGram {
    fn diagonal(&self) -> Vec<f64> {
        self.points.diagonal(&self.kernel)
    }

    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>) {
        self.points.fill(&self.kernel, &self.points, blocks, outs);
    }

    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_> {
        Box::new(RowGram { kernel: self.kernel.clone(), points: Arc::new(self.points.select(blocks)) })
    }
}

/// Blocks that are differences of two rows: k(x − z, x' − z') over feature space is four kernel values, looked up in the
/// rows of the items that take part.
struct DifferenceGram {
    kernel: Kernel,
    points: Arc<Points>,
    pairs: Vec<(usize, Option<usize>)>,
}

impl DifferenceGram {
    fn difference<V: Element>(&self, row: &[V], pair: usize) -> f64 {
        let (better, worse) = self.pairs[pair];
        row[better].wide() - worse.map_or(0.0, |worse| row[worse].wide())
    }
}

impl<V: Element> Gram<V> for DifferenceGram {
    fn diagonal(&self) -> Vec<f64> {
        let own = self.points.diagonal(&self.kernel);
        self.pairs
            .par_iter()
            .map(|&(better, worse)| {
                let Some(worse) = worse else { return own[better] };
                let mut value = [V::ZERO];
                self.points.fill_columns(&self.kernel, &self.points, &[better], worse..worse + 1, &mut [&mut value]);
                own[better] + own[worse] - 2.0 * value[0].wide()
            })
            .collect()
    }

    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>) {
        /// Pairs at a time, so that the rows of their items stay small beside the cache of rows.
        const TOGETHER: usize = 64;
        let mut outs = outs.into_iter();
        for blocks in blocks.chunks(TOGETHER) {
            let mut items: Vec<usize> =
                blocks.iter().flat_map(|&block| [Some(self.pairs[block].0), self.pairs[block].1]).flatten().collect();
            items.sort_unstable();
            items.dedup();
            let mut rows = vec![vec![V::ZERO; self.points.rows()]; items.len()];
            self.points.fill(&self.kernel, &self.points, &items, rows.iter_mut().map(Vec::as_mut_slice).collect());
            let row_of = |item: usize| items.binary_search(&item).ok().map(|at| rows[at].as_slice());
            let targets: Vec<&mut [V]> = outs.by_ref().take(blocks.len()).collect();
            targets.into_par_iter().zip(blocks).for_each(|(out, &block)| {
                let (better, worse) = self.pairs[block];
                let (better, worse) = (row_of(better), worse.and_then(row_of));
                for (pair, out) in out.iter_mut().enumerate() {
                    let value = better.map_or(0.0, |row| self.difference(row, pair))
                        - worse.map_or(0.0, |row| self.difference(row, pair));
                    *out = V::narrow(value);
                }
            });
        }
    }

    fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<V> + '_> {
        let pairs = blocks.iter().map(|&block| self.pairs[block]).collect();
        Box::new(DifferenceGram { kernel: self.kernel.clone(), points: Arc::clone(&self.points), pairs })
    }
}
