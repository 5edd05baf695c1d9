//! [`Machine`]: rows with their kernel, and the kernel rows computed so far. Problems over the same rows share one
//! machine, even with different costs.

use super::frank_wolfe::BlockFrankWolfe;
use super::gram::{DifferenceGram, RowGram, SignedRows, check_symmetric, check_values};
use super::oracle_risk::MostViolated;
use super::shared_rows::{SharedGram, SharedRows};
use super::values::{dual_of_square, primal_of_scores};
use super::{
    AgainstOwn, ClassKernel, Form, Gram, KernelNewton, Polished, Reached, SHRINK_FROM, Smo, Solution, Start,
    ThroughKernel, overflow, polish,
};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::kernel::{Kernel, Points, RowCache, expansion_scores};
use crate::loss::Loss;
use crate::run::{Cancel, Observer, Silent};
use crate::settings::Settings;
use crate::task::{Curvature, Independent, Intercept};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The default size of the kernel row cache in bytes: a quarter of the memory of a small machine.
const USUAL_CACHE: u64 = 4 << 30;

/// The size of the kernel row cache in bytes.
pub(crate) fn usual_cache(settings: &Settings) -> u64 {
    settings.kernel.cache.unwrap_or(USUAL_CACHE)
}

/// The coefficient of each row in the score: Σ over its constraints of ±α·a. Rows with coefficient zero are left out.
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

/// See the top of the file.
pub struct Machine {
    pub(super) kernel: Kernel,
    pub(super) points: Arc<Points>,
    cache: Cache,
    cache_bytes: u64,
    /// Where kernel rows come from, if several machines share them.
    shared: Option<Shared>,
}

/// Kernel values between the rows of a machine, computed once for several machines.
enum Shared {
    Narrow(SharedGram<f32>),
    Wide(SharedGram<f64>),
}

/// Rows with their kernel, for machines over some of them each.
pub(super) struct SharedKernel {
    kernel: Kernel,
    points: Arc<Points>,
    rows: SharedKernelRows,
}

enum SharedKernelRows {
    Narrow(Arc<SharedRows<f32>>),
    Wide(Arc<SharedRows<f64>>),
}

/// Kernel rows that a machine over shared ones keeps for itself: copying them again costs little.
const OWN_CACHE: u64 = 64 << 20;

impl SharedKernel {
    /// The rows of a design. `order` lists all of them, those of one machine as near to each other as possible.
    pub(super) fn new(
        design: &Design,
        settings: &Settings,
        order: &[usize],
        bytes: u64,
        cancel: &Cancel,
    ) -> Result<SharedKernel> {
        let (kernel, points) = prepared(design, settings, cancel)?;
        let rows = match points.is_wide() {
            true => SharedKernelRows::Wide(Arc::new(SharedRows::new(kernel.clone(), &points, order, bytes))),
            false => SharedKernelRows::Narrow(Arc::new(SharedRows::new(kernel.clone(), &points, order, bytes))),
        };
        Ok(SharedKernel { kernel, points, rows })
    }

    /// A machine over some of the rows, or all of them.
    pub(super) fn machine(&self, rows: Option<&[usize]>) -> Machine {
        let count = rows.map_or(self.points.rows(), <[usize]>::len);
        let points = rows.map_or_else(|| Arc::clone(&self.points), |rows| Arc::new(self.points.select(rows)));
        let numbers = || (0..count).map(|at| rows.map_or(at, |rows| rows[at]));
        let (cache, shared) = match &self.rows {
            SharedKernelRows::Narrow(all) => {
                (Cache::Narrow(Smo::cache(count, OWN_CACHE)), Shared::Narrow(SharedGram::new(all, numbers())))
            }
            SharedKernelRows::Wide(all) => {
                (Cache::Wide(Smo::cache(count, OWN_CACHE)), Shared::Wide(SharedGram::new(all, numbers())))
            }
        };
        Machine { kernel: self.kernel.clone(), points, cache, cache_bytes: OWN_CACHE, shared: Some(shared) }
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}

/// The kernel of the settings, and the rows prepared for it.
fn prepared(design: &Design, settings: &Settings, cancel: &Cancel) -> Result<(Kernel, Arc<Points>)> {
    let kernel = Kernel::resolved(&settings.kernel, design, settings.seed);
    kernel.check_known()?;
    check_values(&kernel, design)?;
    let points = Arc::new(Points::until(design, &kernel, cancel));
    check_symmetric(&points)?;
    cancel.check()?;
    if matches!(kernel, Kernel::Gaussian { .. }) && !points.squares_are_finite() {
        return Err(overflow());
    }
    Ok((kernel, points))
}

/// Kernel rows, in f32 or f64.
enum Cache {
    Narrow(RowCache<f32>),
    Wide(RowCache<f64>),
}

/// One run of a machine.
pub(super) struct Job<'a> {
    pub(super) settings: &'a Settings,
    /// How the free scalar is treated.
    pub(super) rule: Intercept,
    pub(super) start: Option<&'a [f64]>,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) cancel: &'a Cancel,
}

impl Machine {
    /// A machine for problems with this many blocks, by default one per row. `copies` are blocks that share the kernel
    /// values of earlier ones.
    pub(super) fn new(
        blocks: Option<usize>,
        copies: Option<(usize, Arc<[u32]>)>,
        design: &Design,
        settings: &Settings,
        cache_bytes: u64,
        cancel: &Cancel,
    ) -> Result<Machine> {
        let (kernel, points) = prepared(design, settings, cancel)?;
        let blocks = blocks.unwrap_or(points.rows());
        let copies = copies.unwrap_or_else(|| (blocks, Vec::new().into()));
        let cache = match points.is_wide() {
            true => Cache::Wide(Smo::cache(blocks, cache_bytes).sharing(copies.0, copies.1)),
            false => Cache::Narrow(Smo::cache(blocks, cache_bytes).sharing(copies.0, copies.1)),
        };
        Ok(Machine { kernel, points, cache, cache_bytes, shared: None })
    }

    /// Whether the kernel is known to be positive definite. Bounds need that.
    pub(super) fn is_definite(&self) -> bool {
        self.kernel.is_definite() || self.points.values_are_definite()
    }

    /// Solves a task with one constraint per block by its dual, from a feasible dual point or from zero.
    pub(super) fn minimise<T: Independent>(&mut self, task: &T, job: Job<'_>) -> Result<Solution> {
        let gram = grams(task, &self.kernel, &self.points);
        let Job { settings, rule, start, observer, cancel } = job;
        let smo = Smo {
            tolerance: settings.tolerance,
            max_passes: settings.max_passes,
            intercept: rule,
            form: if settings.regularisation.is_nu() { Form::Nu } else { Form::Costs },
            cache_bytes: self.cache_bytes,
            shrink_from: SHRINK_FROM,
        };
        let solved = match (&mut self.cache, &self.shared) {
            (Cache::Narrow(cache), Some(Shared::Narrow(gram))) => smo.solve(task, gram, cache, start, observer, cancel),
            (Cache::Wide(cache), Some(Shared::Wide(gram))) => smo.solve(task, gram, cache, start, observer, cancel),
            (Cache::Narrow(cache), _) => smo.solve(task, &*gram.narrow(), cache, start, observer, cancel),
            (Cache::Wide(cache), _) => smo.solve(task, &*gram.wide(), cache, start, observer, cancel),
        };
        solved.map_err(|error| if self.is_definite() { error } else { no_minimum(error, task.loss()) })
    }

    /// Solves a task that is a smooth function of the scores by Newton's method, starting from coefficients of the
    /// rows.
    pub(super) fn descend<T: Curvature>(&mut self, task: &T, job: Job<'_>, to_the_end: bool) -> Result<Solution> {
        let Job { settings, start, observer, cancel, .. } = job;
        let tolerance = if to_the_end { 0.0 } else { settings.tolerance };
        let newton = KernelNewton { tolerance, max_passes: settings.max_passes, to_the_end };
        let (kernel, points): (_, &Points) = (&self.kernel, &self.points);
        match &mut self.cache {
            Cache::Narrow(cache) => newton.solve(task, (kernel, points), cache, start, observer, cancel),
            Cache::Wide(cache) => newton.solve(task, (kernel, points), cache, start, observer, cancel),
        }
    }

    /// Solves a joint problem over several classes by its dual, from coefficients of the rows or from zero.
    pub(super) fn tell_apart<T: AgainstOwn>(&mut self, task: &T, job: Job<'_>) -> Result<Solution> {
        let Job { settings, rule, start, observer, cancel } = job;
        let dual = ClassKernel { tolerance: settings.tolerance, max_passes: settings.max_passes, rule };
        let rows: (_, &Points) = (&self.kernel, &self.points);
        match &mut self.cache {
            Cache::Narrow(cache) => dual.solve(task, rows, cache, start, observer, cancel),
            Cache::Wide(cache) => dual.solve(task, rows, cache, start, observer, cancel),
        }
    }

    /// Solves a problem of structured outputs by its dual, from outputs with multipliers or from zero.
    pub(super) fn tell_outputs(
        &mut self,
        blocks: &BlockFrankWolfe,
        task: &MostViolated<'_>,
        start: Option<&Start>,
        job: Job<'_>,
    ) -> Result<Solution> {
        let Job { observer, cancel, .. } = job;
        let rows: (_, &Points) = (&self.kernel, &self.points);
        match &mut self.cache {
            Cache::Narrow(cache) => blocks.solve_through_kernel(task, rows, cache, start, observer, cancel),
            Cache::Wide(cache) => blocks.solve_through_kernel(task, rows, cache, start, observer, cancel),
        }
    }

    /// All kernel values, row by row.
    pub(super) fn all_values(&self) -> Vec<f64> {
        let rows = self.points.rows();
        let mut values = vec![0.0; rows * rows];
        let ids: Vec<usize> = (0..rows).collect();
        self.points.fill(&self.kernel, &self.points, &ids, values.chunks_exact_mut(rows.max(1)).collect());
        values
    }

    /// Whether kernel values are kept in f64. In f32, polishing finds no more digits.
    pub(super) fn is_wide(&self) -> bool {
        self.points.is_wide()
    }

    /// Improves a solution of the dual to the tolerance of the settings, then polishes it to full double precision.
    /// Returns none if polishing would take more multiplications than `work`.
    pub(super) fn with_all_digits<T: Independent>(
        &mut self,
        task: &T,
        rule: Intercept,
        settings: &Settings,
        (start, work): (&Solution, f64),
        cancel: &Cancel,
    ) -> Result<Option<Solution>> {
        // A round from here on may take as much as one before.
        let max_passes = if work.is_finite() { start.passes.min(settings.max_passes) } else { settings.max_passes };
        let settings = &Settings { max_passes, ..settings.clone() };
        let job = Job { settings, rule, start: Some(&start.weights), observer: &mut Silent, cancel };
        let closer = self.minimise(task, job)?;
        let gram = grams(task, &self.kernel, &self.points);
        let cost = (self.points.rows() * self.points.cols() + task.blocks()) as f64;
        Ok(in_double(task, (&*gram.wide(), cost), rule, closer, work, cancel))
    }

    /// Scores of all rows, from the coefficients of some rows.
    pub(super) fn expansion_scores(&self, rows: &[usize], coefficients: &[f64], cancel: &Cancel) -> Vec<f64> {
        expansion_scores(&self.kernel, &self.points, rows, coefficients, &self.points, cancel)
    }
}

/// The error of a run over a kernel that is not positive definite. If the dual variables have no upper limit, the dual
/// objective may have no maximum, and the variables grow until they overflow.
pub(super) fn no_minimum(error: Error, loss: Loss) -> Error {
    if error.code() != Code::Overflow || loss == Loss::Hinge {
        return error;
    }
    Error::new(
        Code::Overflow,
        "the kernel is not positive definite on these data, and with this loss the dual problem has no optimum",
    )
    .help(
        "use ⟦loss=hinge⟧, which limits the coefficients, a smaller ⟦c⟧, or a kernel that is positive definite, such \
         as ⟦kernel=gaussian⟧",
    )
}

/// Kernel values between blocks, in either precision.
enum Grams {
    Rows(RowGram),
    Differences(DifferenceGram),
}

impl Grams {
    fn narrow(self) -> Box<dyn Gram<f32>> {
        match self {
            Grams::Rows(gram) => Box::new(gram),
            Grams::Differences(gram) => Box::new(gram),
        }
    }

    fn wide(self) -> Box<dyn Gram<f64>> {
        match self {
            Grams::Rows(gram) => Box::new(gram),
            Grams::Differences(gram) => Box::new(gram),
        }
    }
}

fn grams<T: Independent>(task: &T, kernel: &Kernel, points: &Arc<Points>) -> Grams {
    let (kernel, points) = (kernel.clone(), Arc::clone(points));
    if task.blocks_are_rows() {
        return Grams::Rows(RowGram { kernel, points });
    }
    let pairs = (0..task.blocks()).map(|block| task.constraint(block)).map(|c| (c.row, c.against)).collect();
    Grams::Differences(DifferenceGram { kernel, points, pairs })
}

/// A solution polished by the active set, with its objective and bound. `cost` is the number of multiplications of a
/// kernel row, and `work` the most that it may take.
fn in_double<T: Independent>(
    task: &T,
    (gram, cost): (&dyn Gram<f64>, f64),
    rule: Intercept,
    fitted: Solution,
    work: f64,
    cancel: &Cancel,
) -> Option<Solution> {
    let coefficients = (0..task.blocks()).map(|block| task.constraint(block).coefficient).collect();
    let Polished { alpha, threshold, mut reached } =
        polish(task, &SignedRows { gram, coefficients, cost }, rule, &fitted.weights, work, cancel)?;
    let square: f64 = alpha.iter().zip(&reached).map(|(alpha, reached)| alpha * reached).sum();
    let own = Reached { task, margin: None };
    let objective = 0.5 * square + primal_of_scores(&own, &[], &reached, threshold, rule);
    let lower_bound = dual_of_square(task, |block| alpha[block], square, rule);
    if rule == Intercept::Penalised {
        // The threshold's part is included in what each block reached.
        let added = (0..task.blocks()).map(|block| task.constraint(block).threshold * threshold);
        reached.iter_mut().zip(added).for_each(|(reached, added)| *reached += added);
    }
    let kernel = fitted.kernel.map(|kernel| ThroughKernel { reached, ..kernel });
    let (lower_bound, thresholds) = (Some(lower_bound), vec![threshold]);
    Some(Solution { weights: alpha, thresholds, objective, lower_bound, kernel, ..fitted })
}
