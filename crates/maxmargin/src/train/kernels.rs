//! Tasks learned through a kernel: those with one constraint a block by any of its solvers, graded rows by stochastic steps.

use super::{Problem, Tasks};
use crate::data::{Design, Matrix};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points, expansion_scores};
use crate::model::Expansion;
use crate::run::{Cancel, Observer};
use crate::settings::{Settings, Solver};
use crate::solve::{
    Gram, KernelDescent, KernelRows, KernelSolution, KernelSum, Lasvm, Merging, Smo, Stop, TracePoint,
};
use crate::task::{Independent, Intercept};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A model around support vectors, and how it was found.
pub(super) struct Solved {
    pub(super) expansion: Expansion,
    pub(super) objective: f64,
    pub(super) lower_bound: Option<f64>,
    /// The dual point that proves the bound.
    pub(super) alpha: Option<Vec<f64>>,
    pub(super) passes: u64,
    pub(super) stop: Stop,
    /// Kernel rows asked for, and computed.
    pub(super) rows: Option<(u64, u64)>,
    pub(super) merging: Option<Merging>,
    pub(super) trace: Vec<TracePoint>,
}

/// Kernel rows may take this many bytes unless the user says otherwise: a quarter of the memory of a small machine.
const USUAL_CACHE: u64 = 4 << 30;

/// What kernel rows may take.
pub(crate) fn usual_cache(settings: &Settings) -> u64 {
    settings.kernel.cache.unwrap_or(USUAL_CACHE)
}

pub(super) fn solve(
    problem: &Problem,
    design: &Design,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solved> {
    let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
    check_values(&kernel, design)?;
    let points = Points::new(design, &kernel);
    cancel.check()?;
    let rows = KernelRows { design, points: &points, kernel };
    if solver.is_stochastic() {
        return descend(problem, rows, settings, solver, observer, cancel);
    }
    let solution = match points.is_wide() {
        true => minimise::<f64>(problem, rows, settings, solver, observer, cancel)?,
        false => minimise::<f32>(problem, rows, settings, solver, observer, cancel)?,
    };
    let coefficients = match &problem.task {
        Tasks::Binary(task, _) => by_row(task, &solution.alpha),
        Tasks::Pairs(task) => by_row(task, &solution.alpha),
        Tasks::Ranking(_) => BTreeMap::new(),
    };
    let places: Vec<usize> = coefficients.keys().copied().collect();
    let expansion = Expansion {
        kernel,
        vectors: design.copied(&places)?,
        coefficients: coefficients.into_values().collect(),
        intercept: (settings.intercept != Intercept::None).then_some(solution.threshold),
    };
    Ok(Solved {
        expansion,
        objective: solution.objective,
        lower_bound: Some(solution.lower_bound),
        alpha: Some(solution.alpha),
        passes: solution.passes,
        stop: solution.stop,
        rows: Some(solution.rows),
        merging: None,
        trace: solution.trace,
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
        kernel: rows.kernel,
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
    Ok(Solved {
        expansion: around(vectors, &coefficients, intercept),
        objective,
        lower_bound: None,
        alpha: None,
        passes,
        stop,
        rows: None,
        merging: Some(merging),
        trace,
    })
}

/// Runs a solver of the dual over kernel values of one kind.
fn minimise<V: Element>(
    problem: &Problem,
    rows: KernelRows<'_>,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<KernelSolution> {
    let KernelRows { points, kernel, .. } = rows;
    match &problem.task {
        Tasks::Binary(task, _) => {
            let gram: &dyn Gram<V> = &RowGram { kernel, points };
            minimise_task(task, gram, rows, settings, solver, observer, cancel)
        }
        Tasks::Pairs(task) => {
            let pairs = (0..task.blocks()).map(|block| task.constraint(block)).map(|c| (c.row, c.against)).collect();
            let gram: &dyn Gram<V> = &DifferenceGram { kernel, points, pairs };
            minimise_task(task, gram, rows, settings, solver, observer, cancel)
        }
        Tasks::Ranking(_) => Err(Error::new(Code::Internal, "graded rows have no constraints to list")),
    }
}

fn minimise_task<T: Independent, V: Element>(
    task: &T,
    gram: &dyn Gram<V>,
    rows: KernelRows<'_>,
    settings: &Settings,
    solver: Solver,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<KernelSolution> {
    let &Settings { tolerance, max_passes, intercept, seed, .. } = settings;
    let cache_bytes = usual_cache(settings);
    if solver == Solver::Smo {
        return Smo { tolerance, max_passes, intercept, cache_bytes }.solve(task, gram, observer, cancel);
    }
    let scored = |alpha: &[f64]| {
        let (places, coefficients): (Vec<usize>, Vec<f64>) = by_row(task, alpha).into_iter().unzip();
        let scores = expansion_scores(&rows.kernel, rows.points, &places, &coefficients, rows.points, cancel);
        cancel.check()?;
        let square = places.iter().zip(&coefficients).map(|(&row, coefficient)| coefficient * scores[row]).sum();
        Ok((scores, square))
    };
    Lasvm { tolerance, max_passes, seed, intercept, cache_bytes }
        .solve::<T, V>(task, rows, &scored, observer, cancel)
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

/// Blocks that are rows.
struct RowGram<'a> {
    kernel: Kernel,
    points: &'a Points,
}

impl<V: Element> Gram<V> for RowGram<'_> {
    fn diagonal(&self) -> Vec<f64> {
        self.points.diagonal(&self.kernel)
    }

    fn fill(&self, blocks: &[usize], outs: Vec<&mut [V]>) {
        self.points.fill(&self.kernel, self.points, blocks, outs);
    }
}

/// Blocks that are differences of two rows: k(x − z, x' − z') over feature space is four kernel values, looked up in the
/// rows of the items that take part.
struct DifferenceGram<'a> {
    kernel: Kernel,
    points: &'a Points,
    pairs: Vec<(usize, Option<usize>)>,
}

impl DifferenceGram<'_> {
    fn difference<V: Element>(&self, row: &[V], pair: usize) -> f64 {
        let (better, worse) = self.pairs[pair];
        row[better].wide() - worse.map_or(0.0, |worse| row[worse].wide())
    }
}

impl<V: Element> Gram<V> for DifferenceGram<'_> {
    fn diagonal(&self) -> Vec<f64> {
        let own = self.points.diagonal(&self.kernel);
        self.pairs
            .par_iter()
            .map(|&(better, worse)| {
                let Some(worse) = worse else { return own[better] };
                let mut value = [V::ZERO];
                self.points.fill_columns(&self.kernel, self.points, &[better], worse..worse + 1, &mut [&mut value]);
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
            self.points.fill(&self.kernel, self.points, &items, rows.iter_mut().map(Vec::as_mut_slice).collect());
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
}
