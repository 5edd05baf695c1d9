//! One pass over the rows that nearly solves a support vector machine (LaSVM).
//!
//! The dual problem is that of [`super::smo`], in the same notation, over a working set that rows enter and leave. All
//! other variables are zero. For each row, in random order (Bordes, Ertekin, Weston & Bottou, Fast kernel classifiers
//! with online and active learning, JMLR 6, 2005):
//!
//! - **process**: if the row violates optimality, it enters the set and a step is taken on it. If the threshold is
//!   free, the step is taken together with the variable that gives the largest gain.
//! - **reprocess**: one step on the worst violation within the set. From time to time, variables at zero that no
//!   gradient pulls up leave the set.
//!
//! At the end of a pass, **finish** reprocesses until the problem over the set is solved to a share of the tolerance,
//! with a limit on the number of steps. Then the scores of all rows are computed once, which gives the primal value.
//! The dual value is valid for all rows, since variables outside the set are zero. Stops when the relative gap over all
//! rows is within the tolerance, or after the given number of passes, by default one. One pass may not close the gap,
//! since some rows entered too early to be judged well, or left too early.
//!
//! Kernel values within the set are cached in rows that grow with it, within a budget of bytes. When a row is used
//! again, the values of the variables that entered since are added. Cost of a row: its kernel values with the set, and
//! a few vectorised passes over the set. It uses one thread, except for the scores at the end. It supports hinge and
//! squared hinge loss, rows and explicit pairs.

use super::sgd::KernelRows;
use super::smo::{FLAT, PartnerSearch, Variable, largest, pair_step, partner, take_row};
use super::values::{balance, best_threshold, dual_of_square, primal_of_scores};
use super::{Progress, Solution, Stop, ThroughKernel, Witness, overflow, relative_gap};
use crate::data::row_loops::for_this_machine;
use crate::error::Result;
use crate::kernel::{Element, Support, Vector, weighted_sum};
use crate::loss::Loss;
use crate::random::Random;
use crate::run::{Cancel, Observer};
use crate::task::{Constraint, Independent, Intercept};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct Lasvm {
    /// The relative gap to reach.
    pub(crate) tolerance: f64,
    /// The maximum number of passes.
    pub(crate) max_passes: u64,
    /// Seeds the order of the rows.
    pub(crate) seed: u64,
    /// How the threshold is treated.
    pub(crate) intercept: Intercept,
    /// Bytes that kernel rows may take.
    pub(crate) cache_bytes: u64,
}

/// The stream of random numbers for this use of the seed.
const ORDER: u64 = 0x6c61_7376;

/// During a pass, a violation of less than this share of the largest margin (or than the tolerance, if smaller) is
/// ignored.
const ONLINE: f64 = 1e-3;

/// The set is solved to this share of the tolerance, which leaves room for the gap of the rows outside.
const INNER: f64 = 0.25;

/// `finish` makes at most `STEPS` steps per variable, plus `MORE_STEPS`.
const STEPS: usize = 20;
const MORE_STEPS: usize = 10_000;

/// Steps between two checks for variables that leave the set, and rows between two checks of the cancel flag.
const CLEANING: u64 = 32;
const POLL: usize = 8;

/// Scores of all rows for a dual point, and ‖f‖².
pub(crate) type ScoredDual<'a> = &'a dyn Fn(&[f64]) -> Result<(Vec<f64>, f64)>;

impl Lasvm {
    /// Solves the task over rows and their kernel.
    pub(crate) fn solve<T: Independent, V: Element>(
        &self,
        task: &T,
        rows: KernelRows<'_>,
        scored: ScoredDual<'_>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        let mut progress = Progress::new(observer, cancel);
        let mut set = Set::<V>::new(self, rows, task);
        let mut order: Vec<u32> =
            (0u32..).take(task.blocks()).filter(|&block| task.constraint(block as usize).cost > 0.0).collect();
        let mut random = Random::new(self.seed, ORDER, 0);
        let (mut passes, mut best) = (0, None);
        let stop = loop {
            random.shuffle(&mut order);
            let moved = set.steps;
            if !set.pass(task, &order, cancel) || !set.finish(task, self.tolerance, cancel) {
                break Stop::Cancelled;
            }
            passes += 1;
            let judged = self.judged(task, &set, scored);
            if cancel.is_raised() {
                break Stop::Cancelled;
            }
            let judged = judged?;
            progress.bound(Some(judged.lower_bound));
            let ended = progress.report(passes, judged.objective, &[], &[]);
            let gap = relative_gap(judged.objective, judged.lower_bound);
            best = Some(judged);
            if ended {
                break Stop::Cancelled;
            }
            if gap <= self.tolerance {
                break Stop::Converged;
            }
            if passes >= self.max_passes {
                break Stop::PassLimit;
            }
            if set.steps == moved {
                break Stop::Stalled;
            }
        };
        // Cancelled within the first pass: the remaining rows were not seen, so there is no result.
        let Some(Judged { alpha, threshold, reached, objective, lower_bound }) = best else {
            cancel.check()?;
            return Err(overflow());
        };
        let (trace, rows) = (progress.trace, (set.asked, set.computed));
        Ok(Solution {
            weights: alpha,
            thresholds: vec![threshold],
            objective,
            lower_bound: Some(lower_bound),
            witness: Witness::Weights,
            passes,
            stop,
            first_rate: None,
            read: None,
            kernel: Some(ThroughKernel {
                reached,
                common_margin: None,
                rows: Some(rows),
                definite: true,
                scorer: None,
                merging: None,
            }),
            trace,
        })
    }

    /// The current dual point, with its primal and dual value over all rows.
    fn judged<T: Independent, V: Element>(&self, task: &T, set: &Set<'_, V>, scored: ScoredDual<'_>) -> Result<Judged> {
        let mut alpha = vec![0.0; task.blocks()];
        for (variable, &block) in set.variables.iter().zip(&set.blocks) {
            alpha[block] = variable.alpha;
        }
        if self.intercept == Intercept::Free {
            // Steps keep both sides equal up to rounding.
            balance(task, &mut alpha);
        }
        let (scores, square) = scored(&alpha)?;
        let threshold = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised => {
                alpha.iter().enumerate().map(|(block, alpha)| alpha * task.constraint(block).threshold).sum()
            }
            Intercept::Free => best_threshold(task, |row| scores[row], set.threshold()),
        };
        let objective = 0.5 * square + primal_of_scores(task, &[], &scores, threshold, self.intercept);
        let lower_bound = dual_of_square(task, |block| alpha[block], square, self.intercept);
        let reached =
            (0..task.blocks()).map(|block| task.constraint(block)).map(|c| c.margin - c.violation(&scores, 0.0));
        let reached = reached.collect();
        match objective.is_finite() && lower_bound.is_finite() && threshold.is_finite() {
            true => Ok(Judged { alpha, threshold, reached, objective, lower_bound }),
            false => Err(overflow()),
        }
    }
}

struct Judged {
    alpha: Vec<f64>,
    threshold: f64,
    reached: Vec<f64>,
    objective: f64,
    lower_bound: f64,
}

/// Marks a row or block that is not in the set.
const NOWHERE: u32 = u32::MAX;

/// A kernel row of the set: its values with the variables that were in the set when it was last used.
#[derive(Default)]
struct Row<V> {
    values: Vec<V>,
    last_used: u64,
}

/// The variables that may differ from zero. Variables that left are marked as closed, and removed once there are enough
/// of them.
struct Set<'a, V> {
    rows: KernelRows<'a>,
    loss: Loss,
    equality: bool,
    penalised: bool,
    pairs: bool,
    /// Smaller violations are ignored.
    slack: f64,
    blocks: Vec<usize>,
    /// For each variable its row, and the row it is compared with, if any.
    members: Vec<(usize, Option<usize>)>,
    variables: Vec<Variable>,
    /// `keys`: −t·g with an equality, else g. `signs`: by how much a key falls for each unit of a kernel row: t·a, or
    /// −a.
    keys: Vec<f64>,
    signs: Vec<f64>,
    /// 0 if the variable may rise, or fall; otherwise −∞ and +∞.
    rising: Vec<f64>,
    falling: Vec<f64>,
    own: Vec<f64>,
    /// α·a
    counts: Vec<f64>,
    kernel: Vec<Row<V>>,
    /// The rows that the variables use.
    support: Support<V>,
    place_of_row: Vec<u32>,
    place_of_block: Vec<u32>,
    closed: usize,
    /// Whether the last search found no violation, and nothing has moved since.
    settled: bool,
    /// The highest key that may rise and the lowest that may fall, if they are known.
    bounds: Option<(f64, f64)>,
    cache_bytes: u64,
    bytes: u64,
    now: u64,
    steps: u64,
    asked: u64,
    computed: u64,
}

impl<'a, V: Element> Set<'a, V> {
    fn new<T: Independent>(settings: &Lasvm, rows: KernelRows<'a>, task: &T) -> Set<'a, V> {
        let blocks = task.blocks();
        let constraints = || (0..blocks).map(|block| task.constraint(block));
        let margin = constraints().fold(0.0f64, |most, c| most.max(c.margin));
        Set {
            rows,
            loss: task.loss(),
            equality: settings.intercept == Intercept::Free && constraints().any(|c| c.threshold != 0.0),
            penalised: settings.intercept == Intercept::Penalised,
            pairs: constraints().any(|c| c.against.is_some()),
            slack: ONLINE.min(settings.tolerance) * margin,
            blocks: Vec::new(),
            members: Vec::new(),
            variables: Vec::new(),
            keys: Vec::new(),
            signs: Vec::new(),
            rising: Vec::new(),
            falling: Vec::new(),
            own: Vec::new(),
            counts: Vec::new(),
            kernel: Vec::new(),
            support: Support::new(rows.kernel.clone(), rows.points),
            place_of_row: vec![NOWHERE; rows.design.rows()],
            place_of_block: vec![NOWHERE; blocks],
            closed: 0,
            settled: false,
            bounds: None,
            cache_bytes: settings.cache_bytes,
            bytes: 0,
            now: 0,
            steps: 0,
            asked: 0,
            computed: 0,
        }
    }

    /// Processes every block in turn. Returns false after a cancel.
    fn pass<T: Independent>(&mut self, task: &T, order: &[u32], cancel: &Cancel) -> bool {
        if self.equality {
            // A step needs two variables: one of each side enters first.
            for side in [1.0, -1.0] {
                let first = order.iter().find(|&&block| task.constraint(block as usize).threshold * side > 0.0);
                if let Some(&block) = first {
                    self.process(block as usize, &task.constraint(block as usize), true);
                }
            }
        }
        for blocks in order.chunks(POLL) {
            if cancel.is_raised() {
                return false;
            }
            for &block in blocks {
                self.process(block as usize, &task.constraint(block as usize), false);
                // If nothing moved since the last search, there is no violation to find.
                if !self.settled {
                    self.settled = !self.reprocess(self.slack);
                    if self.steps.is_multiple_of(CLEANING) {
                        self.close();
                    }
                }
            }
        }
        true
    }

    /// Takes steps within the set until its own gap is small. Returns false after a cancel.
    fn finish<T: Independent>(&mut self, task: &T, tolerance: f64, cancel: &Cancel) -> bool {
        let limit = STEPS * self.blocks.len() + MORE_STEPS;
        let between = self.blocks.len().clamp(64, 4096);
        for step in 0..limit {
            if step.is_multiple_of(POLL) && cancel.is_raised() {
                return false;
            }
            if step.is_multiple_of(between) && self.gap(task) <= INNER * tolerance {
                break;
            }
            if !self.reprocess(0.0) {
                break;
            }
        }
        self.close();
        true
    }

    /// Appends the kernel values of a block, given by its vectors, with a range of the set.
    fn values_of(&self, vectors: &[Option<Vector>; 2], run: std::ops::Range<usize>, out: &mut Vec<V>) {
        let start = out.len();
        if !self.pairs {
            if let Some(vector) = &vectors[0] {
                self.support.meet(vector, run, out);
            }
        } else {
            // The kernel values of both rows with all stored rows; each variable is a difference of two rows.
            let all = 0..self.support.len();
            let mut items: [Vec<V>; 2] = Default::default();
            for (items, vector) in items.iter_mut().zip(vectors) {
                if let Some(vector) = vector {
                    self.support.meet(vector, all.clone(), items);
                }
            }
            let [better, worse] = items;
            let item = |place: usize| better[place].wide() - worse.get(place).map_or(0.0, |value| value.wide());
            let place = |row: usize| self.place_of_row[row] as usize;
            out.extend(self.members[run].iter().map(|&(row, against)| {
                V::narrow(item(place(row)) - against.map_or(0.0, |against| item(place(against))))
            }));
        }
        if self.penalised {
            out[start..].iter_mut().for_each(|value| *value = V::narrow(value.wide() + 1.0));
        }
    }

    /// Adds a block to the set if it violates optimality, or in any case with `anyhow`, and takes a step on it.
    fn process(&mut self, block: usize, c: &Constraint, anyhow: bool) {
        if self.place_of_block[block] != NOWHERE {
            return self.reopen(self.place_of_block[block] as usize, c);
        }
        let vectors = [Some(c.row), c.against].map(|row| row.map(|row| self.support.vector_of(self.rows.design, row)));
        let mut values = Vec::with_capacity(self.blocks.len() + 1);
        self.values_of(&vectors, 0..self.blocks.len(), &mut values);
        (self.asked, self.computed) = (self.asked + 1, self.computed + 1);
        let gradient = c.coefficient * weighted_sum(&self.counts, &values) - c.margin;
        let threshold = if self.equality { c.threshold } else { 0.0 };
        let key = if self.equality { -threshold * gradient } else { gradient };
        // A block whose gradient is NaN does not enter: the values at the end show the overflow.
        let enters = anyhow || self.violation(threshold, key) > self.slack;
        if !enters || !gradient.is_finite() {
            return;
        }
        let own = self.own_value(&vectors, &mut values);
        let at = self.blocks.len();
        for (row, vector) in [Some(c.row), c.against].into_iter().zip(vectors) {
            if let (Some(row), Some(vector)) = (row, vector)
                && self.place_of_row[row] == NOWHERE
            {
                self.place_of_row[row] = self.support.len() as u32;
                self.support.push(vector);
            }
        }
        self.place_of_block[block] = at as u32;
        self.blocks.push(block);
        self.members.push((c.row, c.against));
        self.variables.push(Variable {
            alpha: 0.0,
            gradient,
            limit: self.loss.dual_limit(c.cost),
            coefficient: c.coefficient,
            sign: threshold,
            group: 0,
            own,
            diagonal: if self.loss == Loss::SquaredHinge { 0.5 / c.cost } else { 0.0 },
        });
        self.keys.push(key);
        self.signs.push(if self.equality { threshold * c.coefficient } else { -c.coefficient });
        self.rising.push(0.0);
        self.falling.push(0.0);
        self.own.push(own);
        self.counts.push(0.0);
        self.bytes += (values.capacity() * size_of::<V>()) as u64;
        self.kernel.push(Row { values, last_used: self.now });
        self.open(at);
        self.step_on(at);
    }

    /// By how much a variable at zero violates optimality.
    fn violation(&mut self, threshold: f64, key: f64) -> f64 {
        if !self.equality {
            return -key;
        }
        let (highest, lowest) = self.bounds.unwrap_or_else(|| (self.highest(), self.lowest()));
        self.bounds = Some((highest, lowest));
        if threshold > 0.0 { key - lowest } else { highest - key }
    }

    /// Reopens a closed variable if it violates optimality.
    fn reopen(&mut self, at: usize, c: &Constraint) {
        let Variable { limit, sign, .. } = self.variables[at];
        if limit > 0.0 || self.violation(sign, self.keys[at]) <= self.slack {
            return;
        }
        self.variables[at].limit = self.loss.dual_limit(c.cost);
        self.closed -= 1;
        self.open(at);
        self.step_on(at);
    }

    /// A step on a variable at zero.
    fn step_on(&mut self, at: usize) {
        if !self.equality {
            self.step_on_one(at);
        } else if self.variables[at].sign > 0.0 {
            self.step_from(at, 0.0);
        } else if let Some((up, _)) = largest(&self.keys, &self.rising) {
            self.step_on_two(up, at);
        }
    }

    /// k of a block with itself. It is also appended to the kernel values.
    fn own_value(&self, vectors: &[Option<Vector>; 2], values: &mut Vec<V>) -> f64 {
        let mut own: f64 = vectors.iter().flatten().map(|vector| self.support.own(vector)).sum();
        if let [Some(better), Some(worse)] = vectors {
            let mut alone = self.support.empty_copy();
            alone.push(better.clone());
            let mut value = Vec::new();
            alone.meet(worse, 0..1, &mut value);
            own -= 2.0 * value[0].wide();
        }
        if self.penalised {
            own += 1.0;
        }
        values.push(V::narrow(own));
        own
    }

    fn highest(&self) -> f64 {
        largest(&self.keys, &self.rising).map_or(f64::NEG_INFINITY, |(_, key)| key)
    }

    fn lowest(&self) -> f64 {
        lowest(&self.keys, &self.falling)
    }

    /// The threshold b estimated from the keys.
    fn threshold(&self) -> f64 {
        match (self.highest(), self.lowest()) {
            (high, low) if high.is_finite() && low.is_finite() => 0.5 * (high + low),
            (high, low) => [high, low].into_iter().find(|key| key.is_finite()).unwrap_or(0.0),
        }
    }

    /// One step on the worst violation larger than `slack`. Returns false if there is none, or no step is possible.
    fn reprocess(&mut self, slack: f64) -> bool {
        if self.equality {
            return largest(&self.keys, &self.rising).is_some_and(|(up, _)| self.step_from(up, slack));
        }
        let mut best: Option<(usize, f64)> = None;
        let known = self.variables.iter().zip(&self.keys).enumerate();
        for (at, (variable, &key)) in known.filter(|(_, (variable, _))| variable.limit > 0.0) {
            let projected = Variable { gradient: key, ..*variable }.projected();
            let gain = projected * projected / (variable.own + variable.diagonal).max(FLAT);
            if projected.abs() > slack && gain > best.map_or(0.0, |(_, gain)| gain) {
                best = Some((at, gain));
            }
        }
        best.is_some_and(|(at, _)| self.step_on_one(at))
    }

    /// A step on a rising variable and the partner with the largest gain, if the worst violation is larger than
    /// `slack`.
    fn step_from(&mut self, up: usize, slack: f64) -> bool {
        self.prepare(up);
        let found = partner(&PartnerSearch {
            keys: &self.keys,
            falling: &self.falling,
            row: &self.kernel[up].values,
            signs: &self.signs,
            own: &self.own,
            highest: self.keys[up],
            sign: self.signs[up],
            own_up: self.own[up] + self.variables[up].diagonal,
        });
        let highest = self.keys[up];
        found.is_some_and(|found| highest - found.lowest > slack && self.step_on_two(up, found.at))
    }

    /// A step on two variables that keeps Σ α t.
    fn step_on_two(&mut self, up: usize, down: usize) -> bool {
        self.prepare(up);
        self.prepare(down);
        let (one, other) = (self.variables[up], self.variables[down]);
        let between = self.signs[up] * self.signs[down] * self.kernel[up].values[down].wide();
        let Some(moved) = pair_step(&one, &other, self.keys[up] - self.keys[down], between) else { return false };
        self.moves(up, moved[0]);
        self.moves(down, moved[1]);
        true
    }

    /// A step on one variable, for problems without an equality.
    fn step_on_one(&mut self, at: usize) -> bool {
        self.prepare(at);
        let variable = self.variables[at];
        let curvature = (variable.own + variable.diagonal).max(FLAT);
        let alpha = (variable.alpha - self.keys[at] / curvature).clamp(0.0, variable.limit);
        if alpha == variable.alpha || !alpha.is_finite() {
            return false;
        }
        self.moves(at, alpha);
        true
    }

    /// Sets the value of a variable, whose kernel row must be complete, and updates the keys.
    fn moves(&mut self, at: usize, alpha: f64) {
        let variable = &mut self.variables[at];
        let change = alpha - variable.alpha;
        variable.alpha = alpha;
        self.counts[at] = alpha * variable.coefficient;
        let (step, pulled) = (change * variable.coefficient, variable.diagonal * change);
        take_row(&mut self.keys, &self.signs, step, &self.kernel[at].values);
        self.keys[at] += if self.equality { -variable.sign * pulled } else { pulled };
        self.open(at);
        self.steps += 1;
    }

    /// Updates whether a variable may rise and fall, after it moved, entered or left.
    fn open(&mut self, at: usize) {
        (self.settled, self.bounds) = (false, None);
        let variable = &self.variables[at];
        self.rising[at] = if variable.may_rise() { 0.0 } else { f64::NEG_INFINITY };
        self.falling[at] = if variable.may_fall() { 0.0 } else { f64::INFINITY };
    }

    /// Completes the kernel row of a variable.
    fn prepare(&mut self, at: usize) {
        self.now += 1;
        self.asked += 1;
        self.kernel[at].last_used = self.now;
        let known = self.kernel[at].values.len();
        if known == self.blocks.len() {
            return;
        }
        self.computed += u64::from(known == 0);
        let mut values = std::mem::take(&mut self.kernel[at].values);
        let taken = values.capacity();
        let (row, against) = self.members[at];
        let place = |row: usize| self.support.vectors()[self.place_of_row[row] as usize].clone();
        let vectors = [Some(place(row)), against.map(place)];
        self.values_of(&vectors, known..self.blocks.len(), &mut values);
        self.bytes += ((values.capacity() - taken) * size_of::<V>()) as u64;
        self.kernel[at].values = values;
        if self.bytes > self.cache_bytes {
            self.forget();
        }
    }

    /// Drops the least recently used half of the kernel rows, but not the last two used.
    fn forget(&mut self) {
        let mut ages: Vec<u64> =
            self.kernel.iter().filter(|row| !row.values.is_empty()).map(|row| row.last_used).collect();
        let middle = ages.len() / 2;
        if ages.is_empty() {
            return;
        }
        let limit = (*ages.select_nth_unstable(middle).1).min(self.now.saturating_sub(2));
        for row in self.kernel.iter_mut().filter(|row| row.last_used <= limit) {
            row.values = Vec::new();
        }
        self.bytes = self.kernel.iter().map(|row| (row.values.capacity() * size_of::<V>()) as u64).sum();
    }

    /// Closes the variables at zero that no gradient pulls up, and removes the closed ones once they are more than a
    /// quarter.
    fn close(&mut self) {
        let (highest, lowest) = if self.equality { (self.highest(), self.lowest()) } else { (0.0, 0.0) };
        for at in 0..self.blocks.len() {
            let variable = &self.variables[at];
            if variable.alpha > 0.0 || variable.limit == 0.0 {
                continue;
            }
            let key = self.keys[at];
            let idle = match (self.equality, variable.sign > 0.0) {
                (false, _) => key >= 0.0,
                (true, true) => key <= lowest,
                (true, false) => key >= highest,
            };
            if idle {
                // With a limit of zero it neither rises nor falls.
                self.variables[at].limit = 0.0;
                self.open(at);
                self.closed += 1;
            }
        }
        if 4 * self.closed > self.blocks.len() {
            self.throw_out();
        }
    }

    /// Removes the closed variables from all lists.
    fn throw_out(&mut self) {
        fn retain<T>(list: &mut Vec<T>, keep: &[bool]) {
            let mut marks = keep.iter();
            list.retain(|_| marks.next().copied().unwrap_or(true));
        }
        let keep: Vec<bool> = self.variables.iter().map(|variable| variable.limit > 0.0).collect();
        for (&block, _) in self.blocks.iter().zip(&keep).filter(|(_, keep)| !**keep) {
            self.place_of_block[block] = NOWHERE;
        }
        for row in &mut self.kernel {
            let known = row.values.len();
            retain(&mut row.values, &keep[..known]);
        }
        retain(&mut self.kernel, &keep);
        retain(&mut self.blocks, &keep);
        retain(&mut self.members, &keep);
        retain(&mut self.variables, &keep);
        for list in
            [&mut self.keys, &mut self.signs, &mut self.rising, &mut self.falling, &mut self.own, &mut self.counts]
        {
            retain(list, &keep);
        }
        for (place, &block) in (0u32..).zip(&self.blocks) {
            self.place_of_block[block] = place;
        }
        self.bytes = self.kernel.iter().map(|row| (row.values.capacity() * size_of::<V>()) as u64).sum();
        self.closed = 0;
        // Rows that no variable uses any more are removed too. The others keep their order.
        let mut wanted = vec![false; self.support.len()];
        let rows = self.members.iter().flat_map(|&(row, against)| [Some(row), against]).flatten();
        for row in rows {
            wanted[self.place_of_row[row] as usize] = true;
        }
        self.support.retain(&wanted);
        let mut next = 0;
        let places: Vec<u32> = wanted
            .iter()
            .map(|&wanted| {
                next += u32::from(wanted);
                if wanted { next - 1 } else { NOWHERE }
            })
            .collect();
        for place in &mut self.place_of_row {
            *place = places.get(*place as usize).copied().unwrap_or(NOWHERE);
        }
    }

    /// The relative gap of the problem over the set alone.
    fn gap<T: Independent>(&self, task: &T) -> f64 {
        let b = if self.equality { self.threshold() } else { 0.0 };
        let (mut square, mut gain, mut losses) = (0.0, 0.0, 0.0);
        for (at, (variable, &block)) in self.variables.iter().zip(&self.blocks).enumerate() {
            if variable.limit == 0.0 {
                continue;
            }
            let c = task.constraint(block);
            let gradient = if self.equality { -variable.sign * self.keys[at] } else { self.keys[at] };
            let reached = gradient + c.margin - variable.diagonal * variable.alpha;
            square += variable.alpha * reached;
            gain += variable.alpha * c.margin - self.loss.dual_cost(variable.alpha, c.cost);
            losses += c.cost * self.loss.value(c.margin - reached - variable.sign * b);
        }
        relative_gap(0.5 * square + losses, gain - 0.5 * square)
    }
}

for_this_machine! {
    /// The lowest key of the variables that may fall.
    fn lowest[](keys: &[f64], open: &[f64]) -> f64 = lowest_plainly
}

#[inline(always)]
fn lowest_plainly(keys: &[f64], open: &[f64]) -> f64 {
    let least = |a: f64, b: f64| if b < a { b } else { a };
    let mut lanes = [f64::INFINITY; 8];
    let (keys, last_keys) = keys.as_chunks::<8>();
    let (open, last_open) = open.as_chunks::<8>();
    for (keys, open) in keys.iter().zip(open) {
        for lane in 0..8 {
            lanes[lane] = least(lanes[lane], keys[lane] + open[lane]);
        }
    }
    let last = last_keys.iter().zip(last_open).map(|(key, open)| key + open);
    last.chain(lanes).fold(f64::INFINITY, least)
}
