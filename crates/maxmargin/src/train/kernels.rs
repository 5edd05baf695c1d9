//! Tasks learned through a kernel: those with one constraint a block by their dual, groups to be ranked by their scores.

use super::gram::{DifferenceGram, RowGram, SignedRows, check_symmetric, check_values};
use super::{Problem, Tasks};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, Kernel, Points, RowCache, expansion_scores};
use crate::model::{Expansion, Scorer};
use crate::run::{Cancel, Observer, Silent};
use crate::settings::{Regularisation, Settings};
use crate::solve::{
    Form, Gram, KernelNewton, KernelSolution, Polished, Reached, SHRINK_FROM, Smo, Witness, dual_of_square, polish,
    primal_of_scores,
};
use crate::task::{Independent, Intercept, OneClass};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model around support vectors, and how it was found.
pub(super) struct Solved {
    pub(super) scorer: Scorer,
    /// What proves the bound beside the expansion.
    pub(super) witness: Option<Witness>,
    pub(super) fitted: KernelSolution,
    /// Whether the kernel is known to be positive definite, as bounds need it.
    pub(super) definite: bool,
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
    start: Option<&[f64]>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Solved> {
    let mut machine = Machine::new(problem, design, settings, usual_cache(settings), cancel)?;
    let mut fitted = machine.fit(problem, settings, start, observer, cancel)?;
    let definite = machine.kernel.is_definite() || machine.points.values_are_definite();
    if definite {
        fitted = machine.polished(problem, design, settings, fitted, cancel);
    }
    if settings.regularisation.is_nu() {
        let margin = fitted.common_margin.filter(|margin| *margin > 0.0).ok_or_else(|| {
            Error::new(Code::NuTooSmall, "training ended before a margin above zero was found")
                .help("try a larger --nu, or more --max-passes")
        })?;
        problem.set_regularisation(Regularisation::C(problem.c / margin));
        problem.check_range()?;
    }
    let intercept = match problem.task {
        Tasks::OneClass(..) => Some(-OneClass::MARGIN),
        Tasks::Pairs(_) => None,
        _ => (settings.intercept != Intercept::None).then_some(fitted.threshold),
    };
    let scorer = around(machine.kernel, coefficients(problem, &fitted.numbers).into_iter(), intercept, design)?;
    let witness = match problem.task {
        Tasks::Ranking(_) => None,
        _ => Some(Witness::Dual(std::mem::take(&mut fitted.numbers))),
    };
    Ok(Solved { scorer, witness, fitted, definite })
}

/// What scores by the rows that count. Of kernel values a row has those with all of them, in columns of their own: there
/// the coefficients are weights.
pub(super) fn around(
    kernel: Kernel,
    coefficients: impl Iterator<Item = (usize, f64)>,
    intercept: Option<f64>,
    design: &Design,
) -> Result<Scorer> {
    if kernel == Kernel::Precomputed {
        let mut weights = vec![0.0; design.cols()];
        let first = design.cols() - design.rows();
        coefficients.for_each(|(row, coefficient)| weights[first + row] = coefficient);
        return Ok(Scorer::Linear { weights, intercept });
    }
    let (rows, coefficients): (Vec<usize>, Vec<f64>) = coefficients.unzip();
    Ok(Scorer::Expansion(Expansion { kernel, vectors: design.copied(&rows)?, coefficients, intercept }))
}

/// What the rows that count do so by.
fn coefficients(problem: &Problem, numbers: &[f64]) -> BTreeMap<usize, f64> {
    match &problem.task {
        Tasks::Binary(task, _) => by_row(task, numbers),
        Tasks::Pairs(task) => by_row(task, numbers),
        Tasks::OneClass(task, _) => by_row(task, numbers),
        Tasks::Ranking(_) | Tasks::Graded(_) => {
            numbers.iter().copied().enumerate().filter(|entry| entry.1 != 0.0).collect()
        }
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

/// Rows with their kernel, and the kernel rows computed so far: problems over the same rows share them, whatever their
/// costs.
pub(crate) struct Machine {
    kernel: Kernel,
    points: Arc<Points>,
    cache: Cache,
    cache_bytes: u64,
}

/// Kernel rows of one kind.
enum Cache {
    Narrow(RowCache<f32>),
    Wide(RowCache<f64>),
}

impl Machine {
    pub(crate) fn new(
        problem: &Problem,
        design: &Design,
        settings: &Settings,
        cache_bytes: u64,
        cancel: &Cancel,
    ) -> Result<Machine> {
        let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
        kernel.check_known()?;
        check_values(&kernel, design)?;
        let points = Arc::new(Points::until(design, &kernel, cancel));
        check_symmetric(&points)?;
        cancel.check()?;
        let blocks = match &problem.task {
            Tasks::Pairs(task) => task.blocks(),
            _ => points.rows(),
        };
        // The two copies of a tie look at the same kernel values.
        let copies = match &problem.task {
            Tasks::Pairs(task) => task.second_copies(),
            _ => (blocks, Vec::new().into()),
        };
        let cache = match points.is_wide() {
            true => Cache::Wide(Smo::cache(blocks, cache_bytes).sharing(copies.0, copies.1)),
            false => Cache::Narrow(Smo::cache(blocks, cache_bytes).sharing(copies.0, copies.1)),
        };
        Ok(Machine { kernel, points, cache, cache_bytes })
    }

    /// Solves a problem over these rows, from a feasible point of it or from scratch.
    pub(crate) fn fit(
        &mut self,
        problem: &Problem,
        settings: &Settings,
        start: Option<&[f64]>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<KernelSolution> {
        let Machine { kernel, points, cache, cache_bytes } = self;
        let job = Job { kernel, points, settings, problem, start, cache_bytes: *cache_bytes };
        match cache {
            Cache::Narrow(cache) => job.run(cache, observer, cancel),
            Cache::Wide(cache) => job.run(cache, observer, cancel),
        }
    }

    /// A solution with all digits, from one to the tolerance of the settings; none where kernel values have no more digits, or
    /// it would take too long.
    pub(super) fn with_all_digits(
        &mut self,
        problem: &Problem,
        settings: &Settings,
        start: &KernelSolution,
        cancel: &Cancel,
    ) -> Result<Option<KernelSolution>> {
        if !self.points.is_wide() {
            return Ok(None);
        }
        if let Tasks::Ranking(task) = &problem.task {
            let Cache::Wide(cache) = &mut self.cache else { return Ok(None) };
            let newton = KernelNewton { tolerance: 0.0, max_passes: settings.max_passes, to_the_end: true };
            let start = Some(&start.numbers[..]);
            return newton.solve(task, (&self.kernel, &self.points), cache, start, &mut Silent, cancel).map(Some);
        }
        let closer = self.fit(problem, settings, Some(&start.numbers), &mut Silent, cancel)?;
        let rows = RowGram { kernel: self.kernel.clone(), points: Arc::clone(&self.points) };
        Ok(match &problem.task {
            Tasks::Binary(task, _) => in_double(task, &rows, settings, closer, cancel),
            Tasks::Pairs(task) => {
                let gram = DifferenceGram { pairs: listed(task), kernel: rows.kernel, points: rows.points };
                in_double(task, &gram, settings, closer, cancel)
            }
            Tasks::Ranking(_) | Tasks::Graded(_) | Tasks::OneClass(..) => None,
        })
    }

    /// The scores of all rows, as the model would give them.
    pub(crate) fn scores(
        &self,
        problem: &Problem,
        fitted: &KernelSolution,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Vec<f64> {
        match &problem.task {
            Tasks::Ranking(_) | Tasks::Graded(_) => fitted.reached.clone(),
            Tasks::OneClass(..) => fitted.reached.iter().map(|reached| reached - OneClass::MARGIN).collect(),
            Tasks::Binary(task, _) => {
                // What a penalised threshold adds is in what was reached.
                let threshold = if settings.intercept == Intercept::Free { fitted.threshold } else { 0.0 };
                let reached = fitted.reached.iter().enumerate();
                reached.map(|(row, reached)| task.constraint(row).coefficient * reached + threshold).collect()
            }
            Tasks::Pairs(task) => {
                let (rows, numbers): (Vec<usize>, Vec<f64>) = by_row(task, &fitted.numbers).into_iter().unzip();
                expansion_scores(&self.kernel, &self.points, &rows, &numbers, &self.points, cancel)
            }
        }
    }
}

/// The rows of each block.
fn listed<T: Independent>(task: &T) -> Vec<(usize, Option<usize>)> {
    (0..task.blocks()).map(|block| task.constraint(block)).map(|c| (c.row, c.against)).collect()
}

/// A solution polished by the active set, with the values it has.
fn in_double<T: Independent>(
    task: &T,
    gram: &dyn Gram<f64>,
    settings: &Settings,
    fitted: KernelSolution,
    cancel: &Cancel,
) -> Option<KernelSolution> {
    let coefficients = (0..task.blocks()).map(|block| task.constraint(block).coefficient).collect();
    let rule = settings.intercept;
    let Polished { alpha, threshold, mut reached } =
        polish(task, &SignedRows { gram, coefficients }, rule, &fitted.numbers, cancel)?;
    let square: f64 = alpha.iter().zip(&reached).map(|(alpha, reached)| alpha * reached).sum();
    let own = Reached { task, margin: None };
    let objective = 0.5 * square + primal_of_scores(&own, &[], &reached, threshold, rule);
    let lower_bound = dual_of_square(task, |block| alpha[block], square, rule);
    if rule == Intercept::Penalised {
        // What it adds counts as reached.
        let added = (0..task.blocks()).map(|block| task.constraint(block).threshold * threshold);
        reached.iter_mut().zip(added).for_each(|(reached, added)| *reached += added);
    }
    Some(KernelSolution { numbers: alpha, threshold, reached, objective, lower_bound, ..fitted })
}

/// One problem for a machine.
struct Job<'a> {
    kernel: &'a Kernel,
    points: &'a Arc<Points>,
    settings: &'a Settings,
    problem: &'a Problem,
    start: Option<&'a [f64]>,
    cache_bytes: u64,
}

impl Job<'_> {
    fn run<V: Element>(
        &self,
        cache: &mut RowCache<V>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<KernelSolution> {
        let rows = || RowGram { kernel: self.kernel.clone(), points: Arc::clone(self.points) };
        match &self.problem.task {
            Tasks::Binary(task, _) => self.minimise(task, &rows(), cache, observer, cancel),
            Tasks::OneClass(task, _) => self.minimise(task, &rows(), cache, observer, cancel),
            Tasks::Pairs(task) => {
                let (kernel, points) = (self.kernel.clone(), Arc::clone(self.points));
                let gram = DifferenceGram { kernel, points, pairs: listed(task) };
                self.minimise(task, &gram, cache, observer, cancel)
            }
            Tasks::Graded(_) => Err(Error::new(Code::Internal, "comparisons by grades have no kernel")),
            Tasks::Ranking(task) => {
                let &Settings { tolerance, max_passes, .. } = self.settings;
                let newton = KernelNewton { tolerance, max_passes, to_the_end: false };
                newton.solve(task, (self.kernel, self.points), cache, self.start, observer, cancel)
            }
        }
    }

    fn minimise<T: Independent, V: Element>(
        &self,
        task: &T,
        gram: &dyn Gram<V>,
        cache: &mut RowCache<V>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<KernelSolution> {
        let settings = self.settings;
        let smo = Smo {
            tolerance: settings.tolerance,
            max_passes: settings.max_passes,
            intercept: settings.intercept,
            form: if settings.regularisation.is_nu() { Form::Nu } else { Form::Costs },
            cache_bytes: self.cache_bytes,
            shrink_from: SHRINK_FROM,
        };
        smo.solve(task, gram, cache, self.start, observer, cancel)
    }
}
