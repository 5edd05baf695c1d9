//! Joint problems over several classes through kernels, by their dual, one working set of rows at a time.
//!
//! ```text
//! max over α   Σ_i Σ_(m≠y) α_im Δ_im − ½ Σ_m ‖Σ_i β_im φ(x_i)‖²  [ − ½ Σ_m (Σ_i β_im)² ],   β_iy = Σ_m α_im,  β_im = −α_im
//! largest (Crammer & Singer)   α ≥ 0,  Σ_m α_im ≤ C_i          sum (Weston & Watkins)   0 ≤ α_im ≤ C_i
//! ```
//! y is the class of row i, m runs over the others, and Δ are the margins. The bracket belongs to penalised constants; free ones require
//! Σ_i β_im = 0 for every class m. Scores are s_im = Σ_j β_jm k_ij + b_m.
//!
//! **Rounds.** The rows with the largest gaps (`BlockGap`) make up a working set, half of which stays from the round
//! before. Their kernel rows are computed together. The problem over these rows is solved by passes over them, with all
//! variables of a row at once ([`block`]); then the scores of all rows are updated in one pass over the kernel rows.
//! The gaps of all rows add up to the duality gap, which is the stopping rule. Blocks as in Crammer & Singer, JMLR 2
//! (2001), and Keerthi et al., KDD 2008; working sets as in Wen et al., ThunderSVM, JMLR 19 (2018).
//!
//! **Free constants** are found by the method of multipliers: with constants b⁰ given, ½‖b − b⁰‖² is added to the
//! objective, which adds 1 to all kernel values, and the solution b = b⁰ + Σ_i β_i becomes the next b⁰ (Rockafellar,
//! Augmented Lagrangians and applications of the proximal point algorithm, 1976). The bound is that of the dual point
//! balanced ([`AgainstOwn::balance`]).
//!
//! Cost of a round: the new kernel rows, and n additions for each variable that moved. Memory: 2·n·k numbers beside
//! the kernel rows.

mod block;

use super::class_blocks::AgainstOwn;
use super::{Progress, Solution, Stop, ThroughKernel, Witness, overflow, relative_gap};
use crate::certificate::ClassDual;
use crate::error::Result;
use crate::kernel::{Element, Kernel, Points, RowCache, add_row};
use crate::parallel;
use crate::run::{Cancel, Observer};
use crate::task::Intercept;
use block::{Block, BlockGap, Spare};

/// Rows solved together.
const WORKING_SET: usize = 256;

/// Rows whose scores are updated together. Fixed, so that the number of threads does not change the result.
const CHUNK: usize = 256;

/// The problem over a working set is solved to this share of its gap.
const INNER: f64 = 0.1;

/// Passes over a working set, at most.
const INNER_PASSES: usize = 20;

/// The solver has stalled after this many rounds in which the gap did not fall below this share of the least so far.
const STALLED_ROUNDS: u32 = 300;
const LEAST_GAIN: f64 = 0.999;

/// With free constants: the share of the tolerance that the gap of the problem with b⁰ may take, and by how much this
/// falls if the balanced point does not reach the tolerance.
const FIRST_SHARE: f64 = 0.4;
const NEXT_SHARE: f64 = 0.3;
const LEAST_SHARE: f64 = 1e-4;

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct ClassKernel {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of rounds.
    pub(crate) max_passes: u64,
    /// How the constants are treated.
    pub(crate) rule: Intercept,
}

/// The loss of a row, with its cost, at these scores. The loss must be the hinge.
pub(crate) fn class_loss<T: AgainstOwn>(task: &T, row: usize, scores: &[f64]) -> f64 {
    Block { task, row, own: 0.0 }.gap(scores, &vec![0.0; scores.len()], &mut Spare::default()).loss
}

/// Primal and dual value.
#[derive(Clone, Copy, Debug)]
struct Values {
    primal: f64,
    dual: f64,
    /// The gap of the problem with b⁰ given.
    inner: f64,
}

/// The variables and the scores of all rows.
struct State<'a, V, T> {
    task: &'a T,
    rows: (&'a Kernel, &'a Points),
    cache: &'a mut RowCache<V>,
    classes: usize,
    /// 1 if the constants are learned, added to all kernel values.
    extra: f64,
    free: bool,
    /// k(x, x), with the extra.
    own: Vec<f64>,
    /// Scores, chunk by chunk of rows: one line per class.
    scores: Vec<f64>,
    /// β, row by row.
    beta: Vec<f64>,
    hints: Vec<f64>,
    gaps: Vec<f64>,
    /// b⁰
    centre: Vec<f64>,
    /// Σ_i β_i
    sums: Vec<f64>,
    working: Vec<usize>,
}

impl ClassKernel {
    /// Solves the task over these rows, from coefficients β or from zero.
    pub(crate) fn solve<V: Element, T: AgainstOwn>(
        &self,
        task: &T,
        rows: (&Kernel, &Points),
        cache: &mut RowCache<V>,
        start: Option<&[f64]>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let before = cache.counts();
        let mut state = State::new(self, task, rows, cache)?;
        if let Some(start) = start {
            state.begin(start, cancel)?;
        }
        let (mut passes, mut idle, mut best) = (0, 0, f64::INFINITY);
        let mut share = FIRST_SHARE;
        let (stop, values) = loop {
            progress.check_wanted()?;
            let mut values = state.values();
            if !(values.primal.is_finite() && values.inner.is_finite()) {
                return Err(overflow());
            }
            let bounded = !state.free;
            if bounded {
                progress.bound(Some(values.dual));
            }
            let enough = share * self.tolerance * values.primal;
            let imbalance = state.imbalance();
            let near = values.inner <= enough && imbalance <= enough;
            let mut converged = bounded && relative_gap(values.primal, values.dual) <= self.tolerance;
            if !bounded && near {
                values.dual = state.balanced_dual(cancel)?;
                progress.bound(Some(values.dual));
                converged = relative_gap(values.primal, values.dual) <= self.tolerance;
                share = if converged { share } else { (share * NEXT_SHARE).max(LEAST_SHARE) };
            }
            let asked = progress.report(passes, values.primal, &[], &[]);
            let stop = match () {
                () if asked || progress.cancelled() => Some(Stop::Cancelled),
                () if converged => Some(Stop::Converged),
                () if passes >= self.max_passes => Some(Stop::PassLimit),
                () if idle > STALLED_ROUNDS => Some(Stop::Stalled),
                () => None,
            };
            if let Some(stop) = stop {
                break (stop, values);
            }
            if values.inner + imbalance < LEAST_GAIN * best {
                (best, idle) = (values.inner + imbalance, 0);
            } else {
                idle += 1;
            }
            passes += 1;
            state.follow(values.inner, enough);
            state.round(cancel);
        };
        progress.check_wanted()?;
        let mut solution = state.finished(stop, values, cancel)?;
        let after = state.cache.counts();
        if let Some(kernel) = &mut solution.kernel {
            kernel.rows = Some((after.0 - before.0, after.1 - before.1));
        }
        Ok(Solution { passes, trace: progress.trace, ..solution })
    }
}

impl<'a, V: Element, T: AgainstOwn> State<'a, V, T> {
    fn new(
        settings: &ClassKernel,
        task: &'a T,
        rows: (&'a Kernel, &'a Points),
        cache: &'a mut RowCache<V>,
    ) -> Result<State<'a, V, T>> {
        let (count, classes) = (task.count(), task.scores());
        let extra = if settings.rule == Intercept::None { 0.0 } else { 1.0 };
        let own: Vec<f64> = rows.1.diagonal(rows.0).into_iter().map(|own| own + extra).collect();
        if own.iter().enumerate().any(|(row, own)| !own.is_finite() && task.cost(row) > 0.0) {
            return Err(overflow());
        }
        let mut state = State {
            task,
            rows,
            cache,
            classes,
            extra,
            free: settings.rule == Intercept::Free,
            own,
            scores: vec![0.0; count.div_ceil(CHUNK) * CHUNK * classes],
            beta: vec![0.0; count * classes],
            hints: vec![f64::NAN; count],
            gaps: vec![0.0; count],
            centre: vec![0.0; classes],
            sums: vec![0.0; classes],
            working: Vec::new(),
        };
        state.measure();
        Ok(state)
    }

    fn block(&self, row: usize) -> Block<'a, T> {
        Block { task: self.task, row, own: self.own[row] }
    }

    /// The place of the score of a row for class 0. That of the next class is `CHUNK` further on.
    fn place(&self, row: usize) -> usize {
        row / CHUNK * CHUNK * self.classes + row % CHUNK
    }

    fn scores_of(&self, row: usize, out: &mut [f64]) {
        let first = self.place(row);
        out.iter_mut().enumerate().for_each(|(class, out)| *out = self.scores[first + class * CHUNK]);
    }

    /// Starts from the feasible point nearest to these coefficients.
    fn begin(&mut self, start: &[f64], cancel: &Cancel) -> Result<()> {
        let classes = self.classes;
        let mut moved = Vec::new();
        for (row, start) in start.chunks_exact(classes).enumerate().take(self.own.len()) {
            let class = self.task.own(row);
            let alpha = |(m, beta): (usize, &f64)| (m as u32, -self.task.sign(row, m) * beta);
            let mut duals: Vec<(u32, f64)> = start.iter().enumerate().filter(|(m, _)| *m != class).map(alpha).collect();
            duals.retain(|(_, alpha)| *alpha > 0.0);
            self.task.fit(row, &mut duals);
            let mut own = vec![0.0; classes];
            for (m, alpha) in duals {
                own[m as usize] = -self.task.sign(row, m as usize) * alpha;
                own[class] -= own[m as usize];
            }
            if own.iter().any(|beta| *beta != 0.0) {
                moved.push((row, own));
            }
        }
        for moved in moved.chunks(WORKING_SET) {
            cancel.check()?;
            let rows: Vec<usize> = moved.iter().map(|entry| entry.0).collect();
            self.prepare(&rows);
            self.apply(&rows, moved.iter().map(|entry| entry.1.as_slice()));
        }
        cancel.check_wanted()?;
        self.measure();
        Ok(())
    }

    fn prepare(&mut self, rows: &[usize]) {
        let (kernel, points) = self.rows;
        self.cache.prepare(rows, |missing, outs| points.fill(kernel, points, missing, outs));
    }

    /// Changes the coefficients of rows whose kernel rows are prepared, and the scores of all rows.
    fn apply<'b>(&mut self, rows: &[usize], betas: impl Iterator<Item = &'b [f64]>) {
        let classes = self.classes;
        // What moves, by class.
        let mut moves: Vec<Vec<(usize, f64)>> = vec![Vec::new(); classes];
        for (&row, beta) in rows.iter().zip(betas) {
            let own = &mut self.beta[row * classes..(row + 1) * classes];
            for (class, (own, beta)) in own.iter_mut().zip(beta).enumerate() {
                if beta != own {
                    moves[class].push((row, beta - *own));
                    self.sums[class] += beta - *own;
                    *own = *beta;
                }
            }
        }
        let pulls: Vec<f64> =
            moves.iter().map(|moves| self.extra * moves.iter().map(|entry| entry.1).sum::<f64>()).collect();
        let (cache, count) = (&*self.cache, self.own.len());
        parallel::chunks(&mut self.scores, CHUNK * classes, |chunk, scores| {
            let columns = chunk * CHUNK..((chunk + 1) * CHUNK).min(count);
            for ((line, moves), pull) in scores.chunks_exact_mut(CHUNK).zip(&moves).zip(&pulls) {
                let line = &mut line[..columns.len()];
                line.iter_mut().for_each(|score| *score += pull);
                for &(row, change) in moves {
                    add_row(line, change, &cache.row(row)[columns.clone()]);
                }
            }
        });
    }

    /// The gaps of all rows.
    fn measure(&mut self) {
        let mut gaps = std::mem::take(&mut self.gaps);
        let classes = self.classes;
        let state = &*self;
        parallel::chunks(&mut gaps, CHUNK, |chunk, gaps| {
            let (mut scores, mut spare) = (vec![0.0; classes], Spare::default());
            for (row, gap) in (chunk * CHUNK..).zip(gaps) {
                state.scores_of(row, &mut scores);
                *gap = state.block(row).gap(&scores, state.beta_of(row), &mut spare).gap;
            }
        });
        self.gaps = gaps;
    }

    fn beta_of(&self, row: usize) -> &[f64] {
        &self.beta[row * self.classes..(row + 1) * self.classes]
    }

    /// Σ_i loss_i, Σ α times its margin, and Σ β·s.
    fn totals(&self) -> [f64; 3] {
        let (count, classes) = (self.own.len(), self.classes);
        let parts: Vec<[f64; 3]> = parallel::map(count.div_ceil(CHUNK), |chunk| {
            let (mut totals, mut scores, mut spare) = ([0.0; 3], vec![0.0; classes], Spare::default());
            for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(count) {
                self.scores_of(row, &mut scores);
                let (block, beta) = (self.block(row), self.beta_of(row));
                totals[0] += block.gap(&scores, beta, &mut spare).loss;
                totals[1] += block.gained(beta);
                totals[2] += beta.iter().zip(&scores).map(|(beta, score)| beta * score).sum::<f64>();
            }
            totals
        });
        let mut totals = [0.0; 3];
        parts.iter().for_each(|part| totals.iter_mut().zip(part).for_each(|(total, part)| *total += part));
        totals
    }

    fn constants(&self) -> Vec<f64> {
        self.centre.iter().zip(&self.sums).map(|(centre, sum)| centre + self.extra * sum).collect()
    }

    fn values(&self) -> Values {
        let [losses, gained, met] = self.totals();
        let pulled = |numbers: &[f64]| -> f64 { numbers.iter().zip(&self.sums).map(|(a, sum)| a * sum).sum() };
        let constants = self.constants();
        // Σ β·s = Σ ‖w‖² + b·Σβ, where b is part of the norm if it is penalised.
        let square = if self.free { met - pulled(&constants) } else { met };
        let (primal, dual) = (0.5 * square + losses, gained - 0.5 * square);
        Values { primal, dual, inner: losses + met - gained }
    }

    /// About how much the balanced point of a free problem loses: 0 if there is nothing to balance.
    fn imbalance(&self) -> f64 {
        let constants = self.constants();
        let lost = constants.iter().zip(&self.sums).map(|(b, sum)| (b.abs() + 1.0) * sum.abs()).sum();
        if self.free { lost } else { 0.0 }
    }

    /// Takes the constants as the next b⁰ once the problem with the last one is solved well enough.
    fn follow(&mut self, inner: f64, enough: f64) {
        let moved: f64 = self.sums.iter().map(|sum| sum * sum).sum::<f64>() * self.extra;
        if !self.free || inner > enough.max(moved) || moved == 0.0 {
            return;
        }
        self.centre = self.constants();
        let (steps, classes): (Vec<f64>, _) = (self.sums.iter().map(|sum| self.extra * sum).collect(), self.classes);
        parallel::chunks(&mut self.scores, CHUNK * classes, |_, scores| {
            for (line, step) in scores.chunks_exact_mut(CHUNK).zip(&steps) {
                line.iter_mut().for_each(|score| *score += step);
            }
        });
        self.measure();
    }

    /// One round.
    fn round(&mut self, cancel: &Cancel) {
        let most = WORKING_SET.min(self.own.len());
        let kept = self.working.len().min(most / 2);
        let mut working = self.working.split_off(self.working.len() - kept);
        let mut taken = vec![false; self.own.len()];
        working.iter().for_each(|&row| taken[row] = true);
        let mut others: Vec<usize> = (0..self.own.len()).filter(|&row| !taken[row] && self.gaps[row] > 0.0).collect();
        let order = |a: &usize, b: &usize| self.gaps[*b].total_cmp(&self.gaps[*a]).then(a.cmp(b));
        let room = most - working.len();
        if others.len() > room && room > 0 {
            others.select_nth_unstable_by(room - 1, order);
            others.truncate(room);
        }
        others.sort_unstable_by(order);
        working.extend(others);
        self.working = working;
        let working = self.working.clone();
        self.prepare(&working);
        if cancel.is_raised() {
            return;
        }
        let betas = self.local(&working, cancel);
        self.apply(&working, betas.chunks_exact(self.classes));
        self.measure();
    }

    /// The coefficients of these rows that solve the problem over them, with all others fixed.
    fn local(&mut self, working: &[usize], cancel: &Cancel) -> Vec<f64> {
        let (count, classes) = (working.len(), self.classes);
        let mut kernel = vec![V::ZERO; count * count];
        let (cache, extra) = (&*self.cache, self.extra);
        parallel::chunks(&mut kernel, count, |at, out| {
            let row = cache.row(working[at]);
            out.iter_mut().zip(working).for_each(|(out, &column)| *out = V::narrow(row[column].wide() + extra));
        });
        // One line per class.
        let mut lines = vec![0.0; count * classes];
        let mut betas = Vec::with_capacity(count * classes);
        let (mut scores, mut beta, mut spare) = (vec![0.0; classes], vec![0.0; classes], Spare::default());
        for (at, &row) in working.iter().enumerate() {
            self.scores_of(row, &mut scores);
            scores.iter().enumerate().for_each(|(class, score)| lines[class * count + at] = *score);
            betas.extend_from_slice(self.beta_of(row));
        }
        let first: f64 = working.iter().map(|&row| self.gaps[row]).sum();
        let enough = INNER * first;
        for _ in 0..INNER_PASSES {
            if cancel.is_raised() {
                break;
            }
            let mut seen = 0.0;
            for (at, &row) in working.iter().enumerate() {
                let block = self.block(row);
                scores.iter_mut().enumerate().for_each(|(class, score)| *score = lines[class * count + at]);
                let before = &mut betas[at * classes..(at + 1) * classes];
                let BlockGap { gap, .. } = block.gap(&scores, before, &mut spare);
                seen += gap;
                if gap <= 0.1 * enough / count as f64 {
                    continue;
                }
                beta.copy_from_slice(before);
                self.hints[row] = block.solve(&scores, &mut beta, &mut spare, self.hints[row]);
                let kernel = &kernel[at * count..(at + 1) * count];
                for (line, (beta, before)) in lines.chunks_exact_mut(count).zip(beta.iter().zip(before)) {
                    if beta != before {
                        add_row(line, beta - *before, kernel);
                        *before = *beta;
                    }
                }
            }
            if seen <= enough {
                break;
            }
        }
        betas
    }

    /// The dual point with balanced flows, if the constants are free.
    fn dual_point(&self) -> ClassDual {
        let mut dual = ClassDual::default();
        for row in 0..self.own.len() {
            let own = self.task.own(row);
            let alphas = self.beta_of(row).iter().enumerate().map(|(m, beta)| (m, -self.task.sign(row, m) * beta));
            dual.push(alphas.filter(|(m, alpha)| *m != own && *alpha > 0.0));
        }
        if self.free {
            self.task.balance(&mut dual);
        }
        dual
    }

    /// The dual value of the balanced point: that of the point itself, and what the change adds.
    fn balanced_dual(&mut self, cancel: &Cancel) -> Result<f64> {
        let (classes, count) = (self.classes, self.own.len());
        let dual = self.dual_point();
        // Δβ of every row that changes.
        let mut changes = vec![0.0; count * classes];
        let mut gained = 0.0;
        for row in 0..count {
            let change = &mut changes[row * classes..(row + 1) * classes];
            change.iter_mut().zip(&self.beta[row * classes..]).for_each(|(change, beta)| *change = -beta);
            for (class, alpha) in dual.row(row) {
                let signed = self.task.sign(row, class) * alpha;
                change[class] -= signed;
                change[self.task.own(row)] += signed;
                gained += alpha * self.task.margin(row, class);
            }
        }
        let moved: Vec<usize> =
            (0..count).filter(|&row| changes[row * classes..(row + 1) * classes].iter().any(|c| *c != 0.0)).collect();
        // Σ ‖w + Δw‖² = Σ ‖w‖² + 2 Σ Δβ·f + Σ Δβ·Δf, with f the scores without constants.
        let constants = self.constants();
        let mut scores = vec![0.0; classes];
        let mut square = self.totals()[2] - constants.iter().zip(&self.sums).map(|(b, sum)| b * sum).sum::<f64>();
        for &row in &moved {
            self.scores_of(row, &mut scores);
            for (m, change) in changes[row * classes..(row + 1) * classes].iter().enumerate() {
                square += 2.0 * change * (scores[m] - constants[m]);
            }
        }
        for (at, rows) in moved.chunks(WORKING_SET).enumerate() {
            cancel.check()?;
            self.prepare(rows);
            let cache = &*self.cache;
            // Every pair of rows once: those before this run, and those within it, count twice.
            let (before, changes) = (&moved[..at * WORKING_SET], &changes);
            let parts: Vec<f64> = parallel::collect(rows.len(), 1, |number| {
                let row = rows[number];
                let kernel = cache.row(row);
                let own = &changes[row * classes..(row + 1) * classes];
                let with = |other: usize| -> f64 {
                    let other_own = &changes[other * classes..(other + 1) * classes];
                    kernel[other].wide() * own.iter().zip(other_own).map(|(a, b)| a * b).sum::<f64>()
                };
                let twice: f64 = before.iter().chain(&rows[..number]).map(|&other| with(other)).sum();
                2.0 * twice + with(row)
            });
            square += parts.iter().sum::<f64>();
        }
        cancel.check_wanted()?;
        Ok(gained - 0.5 * square)
    }

    fn finished(&mut self, stop: Stop, values: Values, cancel: &Cancel) -> Result<Solution> {
        let (count, classes) = (self.own.len(), self.classes);
        let lower_bound = match self.free && stop != Stop::Converged && stop != Stop::Cancelled {
            true => self.balanced_dual(cancel)?,
            false if self.free && stop == Stop::Cancelled => 0.0,
            false => values.dual,
        };
        let witness = self.dual_point();
        let mut reached = vec![0.0; count * classes];
        parallel::chunks(&mut reached, CHUNK * classes, |chunk, out| {
            for (row, out) in (chunk * CHUNK..).zip(out.chunks_exact_mut(classes)) {
                self.scores_of(row, out);
            }
        });
        let kernel =
            ThroughKernel { reached, common_margin: None, rows: None, definite: true, scorer: None, merging: None };
        Ok(Solution {
            weights: std::mem::take(&mut self.beta),
            thresholds: if self.extra > 0.0 { self.constants() } else { Vec::new() },
            objective: values.primal,
            lower_bound: Some(lower_bound.max(0.0)),
            witness: Witness::Classes(witness),
            passes: 0,
            stop,
            first_rate: None,
            read: None,
            kernel: Some(kernel),
            trace: Vec::new(),
        })
    }
}
