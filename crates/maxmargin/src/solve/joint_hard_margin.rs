//! The hard margin of several classes: every row scores its class above every other by a margin, with the smallest
//! weights.
//!
//! ```text
//! min   ½ Σ_m ‖w_m‖² [+ ½ Σ_m b_m²]
//! s.t.  (w_y − w_m)·x_i + b_y − b_m ≥ d_im   for all rows i that count, of class y, and all m ≠ y
//! ```
//! Notation of [`crate::task::Joint`]; the margins d_im are above zero. Where every margin is reached, neither the largest
//! violation nor the sum of them is above zero, so that all forms have this hard margin. Its dual has no box: with β_ic =
//! [c = y] Σ_m α_im − α_ic and w_c = Σ_i β_ic x_i,
//!
//! ```text
//! max   Σ α_im d_im − ½ Σ_c ‖w_c‖² [− ½ Σ_c (Σ_i β_ic)²],   α ≥ 0,   Σ_i β_ic = 0 for every c if the b are free
//! ```
//! Solved like the hard margin of two classes ([`super::QuadraticProgram`]): the interior point solves a working set of
//! constraints, to which each row adds the one that it misses most, at most as many a round as there are. The weights are
//! then scaled up until the last margin is reached, and the multipliers scaled to their best multiple, whose recomputed
//! value is the bound. Free constants: adding a number to all of them changes nothing, so one is held at zero, and they are
//! then moved to sum zero. What rounding left of Σ_i β_ic is repaired by raising single multipliers, which have no limit.
//! Stops at a relative gap, or when no constraint outside the working set is missed.
//!
//! If the working set contradicts itself, some z ≥ 0 shows it: the sum of its constraints is zero, and that of their
//! margins is not.
//!
//! Cost of a round: some 20 factorisations, cubic in the smaller of the weights that the working set touches and the
//! working set. Working constraints without a part in the solution leave a large working set again.

use super::quadratic_program::{
    COLUMN_NOTHING, Contradiction, FIRST, NOTHING, Program, TAKES_PART, Verdict, thins_out, undecided,
};
use super::{ClassDual, Progress, Solution, Stop, Witness, relative_gap};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::run::{Cancel, Observer};
use crate::task::{Intercept, Joint};
use clarabel::solver::SolverStatus;
use std::collections::{HashMap, HashSet};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub struct JointHardMargin {
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The maximum number of rounds.
    pub max_passes: u64,
    /// How the constants are treated.
    pub intercept: Intercept,
}

/// A constraint: a row, and a class other than its own.
type Pair = (usize, usize);

/// Multipliers below this share of the largest are left out of the dual point.
const NEGLIGIBLE: f64 = 1e-13;

/// A constraint that is reached by this much more than its margin may leave the working set.
const ROOM: f64 = 1e-3;

/// Free constants are balanced if what rounding left is below this share of the multipliers.
const BALANCED: f64 = 1e-9;

/// A point: weights, feature by feature, and a constant for each class, or none.
struct Point {
    weights: Vec<f64>,
    constants: Vec<f64>,
}

/// The sum of multiplied constraints: a weight for each feature and class, and a number for each class.
struct Summed {
    weights: Vec<f64>,
    pulls: Vec<f64>,
    /// The same sums of absolute values.
    sizes: Vec<f64>,
    pull_sizes: Vec<f64>,
}

/// Refuses margins of zero, which no multiple of the weights reaches more than barely.
pub(crate) fn check_margins(task: &Joint) -> Result<()> {
    let classes = task.classes();
    let counting = (0..task.rows()).filter(|&row| task.cost(row) > 0.0);
    let mut pairs = counting.flat_map(|row| (0..classes).map(move |class| (row, class)));
    if pairs.any(|(row, class)| class != task.class(row) && task.margin(row, class) <= 0.0) {
        let message = "a hard margin needs costs above zero for all wrong classes, and the cost matrix has a zero";
        return Err(Error::new(Code::BadSetting, message)
            .help("give small costs in their place, or use a soft margin: leave ⟦margin⟧ out"));
    }
    Ok(())
}

/// The scores of all rows at a point, with the constants.
fn scores_of(design: &Design, point: &Point, classes: usize, cancel: &Cancel) -> Result<Vec<f64>> {
    let mut scores = design.folded_scores_until(&design.fold_outputs(&point.weights, classes), cancel)?;
    if !point.constants.is_empty() {
        for scores in scores.chunks_exact_mut(classes) {
            scores.iter_mut().zip(&point.constants).for_each(|(score, constant)| *score += constant);
        }
    }
    Ok(scores)
}

/// The smallest share of a margin that is reached, over the rows that count. NaN if a score is.
fn reached(task: &Joint, scores: &[f64]) -> f64 {
    let mut least = f64::INFINITY;
    for (row, scores) in scores.chunks_exact(task.classes()).enumerate().filter(|(row, _)| task.cost(*row) > 0.0) {
        let own = task.class(row);
        for class in (0..scores.len()).filter(|&class| class != own) {
            let share = (scores[own] - scores[class]) / task.margin(row, class);
            if share.is_nan() {
                return share;
            }
            least = least.min(share);
        }
    }
    least
}

/// Half the square of what is penalised.
fn half_square(point: &Point, intercept: Intercept) -> f64 {
    let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let constants = if intercept == Intercept::Penalised { square(&point.constants) } else { 0.0 };
    0.5 * (square(&point.weights) + constants)
}

/// The objective, and the largest share of a margin that is missed.
pub(crate) fn joint_hard_primal(
    task: &Joint,
    design: &Design,
    weights: &[f64],
    constants: &[f64],
    intercept: Intercept,
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    let point = Point { weights: weights.to_vec(), constants: constants.to_vec() };
    let scores = scores_of(design, &point, task.classes(), cancel)?;
    Ok((half_square(&point, intercept), 1.0 - reached(task, &scores)))
}

/// Σ α (e_y − e_m) ⊗ x over the entries.
fn summed(task: &Joint, design: &Design, dual: &ClassDual) -> Summed {
    let (classes, cols) = (task.classes(), design.cols());
    let numbers = || vec![0.0; classes];
    let mut sum = Summed {
        weights: vec![0.0; cols * classes],
        pulls: numbers(),
        sizes: vec![0.0; cols * classes],
        pull_sizes: numbers(),
    };
    let mut values = vec![0.0; cols];
    for row in 0..dual.rows() {
        let mut entries = dual.row(row).peekable();
        if entries.peek().is_none() {
            continue;
        }
        values.fill(0.0);
        design.fill_scaled_row(row, &mut values);
        let own = task.class(row);
        let (mut total, mut terms) = (0.0, Vec::new());
        for (class, alpha) in entries {
            total += alpha;
            terms.push((class, -alpha));
        }
        terms.push((own, total));
        for &(class, term) in &terms {
            sum.pulls[class] += term;
            sum.pull_sizes[class] += term.abs();
        }
        for (column, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            let place = column * classes;
            for &(class, term) in &terms {
                sum.weights[place + class] += term * value;
                sum.sizes[place + class] += (term * value).abs();
            }
        }
    }
    sum
}

/// Σ α d over the entries.
fn promised(task: &Joint, dual: &ClassDual) -> f64 {
    (0..dual.rows()).flat_map(|row| dual.row(row).map(move |(class, alpha)| alpha * task.margin(row, class))).sum()
}

/// The sum of squares that the dual value takes off.
fn square_of(sum: &Summed, intercept: Intercept) -> f64 {
    let square = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    square(&sum.weights) + if intercept == Intercept::Penalised { square(&sum.pulls) } else { 0.0 }
}

/// The bound that a dual point proves, or why it is none.
pub(crate) fn joint_hard_bound(
    task: &Joint,
    design: &Design,
    dual: &ClassDual,
    intercept: Intercept,
) -> std::result::Result<f64, &'static str> {
    if !dual.is_sound(task.rows(), task.classes()) {
        return Err("it belongs to another task");
    }
    for row in 0..dual.rows() {
        let mut before = None;
        for (class, alpha) in dual.row(row) {
            let valid =
                class < task.classes() && class != task.class(row) && before.is_none_or(|before| before < class);
            if !valid || alpha < 0.0 || task.cost(row) <= 0.0 {
                return Err("a dual variable lies outside its box");
            }
            before = Some(class);
        }
    }
    let sum = summed(task, design, dual);
    let total: f64 = dual.values.iter().sum();
    if intercept == Intercept::Free && sum.pulls.iter().any(|pull| pull.abs() > BALANCED * total) {
        return Err("its classes do not balance");
    }
    // The objective is never negative, so zero is a better bound than a negative one.
    Ok((promised(task, dual) - 0.5 * square_of(&sum, intercept)).max(0.0))
}

/// A dual point from the multipliers of constraints, which are sorted.
fn dual_of(rows: usize, entries: impl Iterator<Item = (Pair, f64)>) -> ClassDual {
    let mut dual = ClassDual { starts: vec![0], ..ClassDual::default() };
    for ((row, class), value) in entries {
        while dual.starts.len() <= row {
            dual.starts.push(dual.values.len() as u64);
        }
        dual.classes.push(class as u32);
        dual.values.push(value);
    }
    while dual.starts.len() <= rows {
        dual.starts.push(dual.values.len() as u64);
    }
    dual
}

impl JointHardMargin {
    /// Solves the task over the rows of `design`. The blocks of a contradiction are rows.
    pub fn solve(
        &self,
        task: &Joint,
        design: &Design,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Verdict> {
        check_margins(task)?;
        let mut progress = Progress::new(observer, cancel);
        let mut working = first_working_set(task);
        let mut best: Option<Solution> = None;
        let mut pass = 0;
        let stop = loop {
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            if pass >= self.max_passes {
                break Stop::PassLimit;
            }
            let (program, used) = self.program(task, design, &working, cancel)?;
            if let Some(empty) = program.empty_row() {
                let blocks = vec![(working[empty].0, 1.0)];
                return Ok(Verdict::NotSeparable(Contradiction { blocks, residual: 0.0 }));
            }
            let mean_length = program.mean_length;
            let Some(found) = program.solve(cancel)? else { break Stop::Cancelled };
            pass += 1;
            if matches!(found.status, SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible) {
                let found = self.contradiction(task, design, (&working, &found.multipliers), mean_length);
                let found = found.ok_or_else(undecided)?;
                return Ok(Verdict::NotSeparable(self.shortened(task, design, found, cancel)?));
            }
            let dual = self.dual(task, design, &working, &found.multipliers);
            let bound = joint_hard_bound(task, design, &dual, self.intercept).unwrap_or(0.0);
            progress.bound(Some(bound));
            let point = self.point(task, design, &used, &found.weights, &found.free);
            let scores = scores_of(design, &point, task.classes(), cancel)?;
            if let Some((point, objective)) = self.stretched(task, design, &point, reached(task, &scores), cancel)? {
                let ended = progress.report(pass, objective, &point.weights, &point.constants);
                best = Some(better(best, point, objective, bound, dual));
                if best.as_ref().and_then(Solution::gap).is_some_and(|gap| gap <= self.tolerance) {
                    break Stop::Converged;
                }
                if ended {
                    break Stop::Cancelled;
                }
            }
            let missed = missed(task, &working, &scores);
            if missed.is_empty() {
                // No constraint can be added, and the last round gained nothing.
                break if best.is_some() { Stop::Stalled } else { return Err(undecided()) };
            }
            if working.len() > 2 * FIRST {
                let largest = found.multipliers.iter().copied().fold(0.0, f64::max);
                let mut multipliers = found.multipliers.iter();
                working.retain(|&(row, class)| {
                    let scores = &scores[row * task.classes()..][..task.classes()];
                    let room = scores[task.class(row)] - scores[class] - task.margin(row, class);
                    let idle = multipliers.next().is_some_and(|&z| z <= TAKES_PART * largest);
                    !(idle && room > ROOM * task.margin(row, class))
                });
            }
            working.extend(missed);
            working.sort_unstable();
        };
        let Some(solution) = best else {
            cancel.check()?;
            return Err(Error::new(
                Code::Undecided,
                format!("no weights that reach every margin were found in {pass} rounds"),
            )
            .help("raise ⟦max-passes⟧, or use a soft margin: leave ⟦margin⟧ and ⟦solver⟧ out"));
        };
        let gap = relative_gap(solution.objective, solution.lower_bound.unwrap_or(0.0));
        let stop = if gap <= self.tolerance { Stop::Converged } else { stop };
        Ok(Verdict::Separable(Box::new(Solution { passes: pass, stop, trace: progress.trace, ..solution })))
    }

    /// The program of a working set, and the weights (feature · classes + class) that it touches: its first variables.
    fn program(
        &self,
        task: &Joint,
        design: &Design,
        working: &[Pair],
        cancel: &Cancel,
    ) -> Result<(Program, Vec<usize>)> {
        let classes = task.classes();
        let mut values = vec![0.0; design.cols()];
        let mut entries: Vec<(usize, usize, f64)> = Vec::new();
        let mut last = None;
        for (at, &(row, class)) in working.iter().enumerate() {
            if at % 256 == 0 {
                cancel.check()?;
            }
            if last.replace(row) != Some(row) {
                values.fill(0.0);
                design.fill_scaled_row(row, &mut values);
            }
            for (column, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                entries.push((at, column * classes + task.class(row), -value));
                entries.push((at, column * classes + class, value));
            }
        }
        let mut used: Vec<usize> = entries.iter().map(|entry| entry.1).collect();
        used.sort_unstable();
        used.dedup();
        let place: HashMap<usize, usize> = used.iter().enumerate().map(|(place, &weight)| (weight, place)).collect();
        // Free constants are all but the first.
        let held = usize::from(self.intercept == Intercept::Free);
        let constants = if self.intercept == Intercept::None { 0 } else { classes - held };
        let penalised = used.len() + if self.intercept == Intercept::Penalised { constants } else { 0 };
        let mut program = Program::of(used.len(), used.len() + constants, penalised);
        let mut entries = entries.into_iter().peekable();
        for (at, &(row, class)) in working.iter().enumerate() {
            let mut square = 0.0;
            while let Some((_, weight, value)) = entries.next_if(|entry| entry.0 == at) {
                program.push(at, place[&weight], value);
                square += value * value;
            }
            for (class, sign) in [(task.class(row), -1.0), (class, 1.0)] {
                if constants > 0 && class >= held {
                    program.push(at, used.len() + class - held, sign);
                    square += 1.0;
                }
            }
            program.close_row(task.margin(row, class), square, working.len())?;
        }
        Ok((program.checked()?, used))
    }

    /// The point of a program's variables.
    fn point(&self, task: &Joint, design: &Design, used: &[usize], values: &[f64], free: &[f64]) -> Point {
        let mut weights = vec![0.0; design.cols() * task.classes()];
        used.iter().zip(values).for_each(|(&place, &value)| weights[place] = value);
        let mut constants = free.to_vec();
        if self.intercept == Intercept::Free {
            constants.insert(0, 0.0);
            let mean = constants.iter().sum::<f64>() / constants.len() as f64;
            constants.iter_mut().for_each(|constant| *constant -= mean);
        }
        Point { weights, constants }
    }

    /// The best feasible multiple of the multipliers of a working set.
    fn dual(&self, task: &Joint, design: &Design, working: &[Pair], multipliers: &[f64]) -> ClassDual {
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let mut values: HashMap<Pair, f64> = HashMap::new();
        for (&pair, &z) in working.iter().zip(multipliers).filter(|(_, z)| **z > NEGLIGIBLE * largest) {
            values.insert(pair, z);
        }
        if self.intercept == Intercept::Free {
            balance(task, &mut values);
        }
        let mut entries: Vec<(Pair, f64)> = values.into_iter().collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        let mut dual = dual_of(task.rows(), entries.into_iter());
        let square = square_of(&summed(task, design, &dual), self.intercept);
        let factor = promised(task, &dual) / square;
        if factor.is_finite() && factor > 0.0 {
            dual.values.iter_mut().for_each(|value| *value *= factor);
        }
        dual
    }

    /// A point scaled up until every margin is reached, and its objective; none if a row is on the wrong side.
    fn stretched(
        &self,
        task: &Joint,
        design: &Design,
        point: &Point,
        least: f64,
        cancel: &Cancel,
    ) -> Result<Option<(Point, f64)>> {
        let mut factor = 1.0 / least;
        if !(least > 0.0 && factor.is_finite()) {
            return Ok(None);
        }
        // Rounding may leave the last margin slightly short; a few units in the last place more are enough.
        for attempt in 0..40 {
            let times = |values: &[f64]| values.iter().map(|value| value * factor).collect();
            let longer = Point { weights: times(&point.weights), constants: times(&point.constants) };
            let (objective, shortfall) =
                joint_hard_primal(task, design, &longer.weights, &longer.constants, self.intercept, cancel)?;
            if shortfall <= 0.0 {
                return Ok(Some((longer, objective)));
            }
            factor *= 1.0 + f64::EPSILON * f64::from(1u32 << attempt.min(20));
        }
        Ok(None)
    }

    /// The combination of constraints as a proof, if it is one: constraint and weight.
    fn contradiction(
        &self,
        task: &Joint,
        design: &Design,
        (working, multipliers): (&[Pair], &[f64]),
        mean_length: f64,
    ) -> Option<Proof> {
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let each = working.iter().copied().zip(multipliers.iter().copied());
        let part: Vec<(Pair, f64)> = each.filter(|&(_, z)| z > TAKES_PART * largest).collect();
        let dual = dual_of(task.rows(), part.iter().copied());
        let sum = summed(task, design, &dual);
        if sum.weights.iter().zip(&sum.sizes).any(|(sum, size)| sum.abs() > COLUMN_NOTHING * size) {
            return None;
        }
        let pulls: f64 = match self.intercept {
            Intercept::None => 0.0,
            Intercept::Free | Intercept::Penalised => sum.pulls.iter().map(|pull| pull * pull).sum(),
        };
        let length = (sum.weights.iter().map(|value| value * value).sum::<f64>() + pulls).sqrt();
        let residual = length / (dual.values.iter().sum::<f64>() * mean_length);
        let proves = promised(task, &dual) > 0.0 && residual <= NOTHING;
        proves.then_some(Proof { part, residual, mean_length })
    }

    /// The contradiction by rows, of as few constraints as can be found at little cost.
    fn shortened(&self, task: &Joint, design: &Design, found: Proof, cancel: &Cancel) -> Result<Contradiction> {
        let mut proof = found;
        let pairs: Vec<Pair> = proof.part.iter().map(|&(pair, _)| pair).collect();
        let (program, used) = self.program(task, design, &pairs, cancel)?;
        if thins_out(pairs.len(), used.len() + task.classes() + 1) {
            let weights: Vec<f64> = proof.part.iter().map(|&(_, weight)| weight).collect();
            let mut fewer = vec![0.0; pairs.len()];
            program.fewest(&weights).into_iter().for_each(|(at, weight)| fewer[at] = weight);
            // A few constraints are easier to read than many, but they must prove as much.
            let shorter = self.contradiction(task, design, (&pairs, &fewer), proof.mean_length);
            proof = shorter.unwrap_or(proof);
        }
        let mut of_row: HashMap<usize, f64> = HashMap::new();
        for ((row, _), weight) in proof.part {
            *of_row.entry(row).or_default() += weight;
        }
        let mut blocks: Vec<(usize, f64)> = of_row.into_iter().collect();
        blocks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Contradiction { blocks, residual: proof.residual })
    }
}

/// A contradiction, constraint by constraint.
struct Proof {
    part: Vec<(Pair, f64)>,
    residual: f64,
    mean_length: f64,
}

/// The constraints of the first round: all of them, or some of rows that cover the data evenly, with classes in turn.
fn first_working_set(task: &Joint) -> Vec<Pair> {
    let counting: Vec<usize> = (0..task.rows()).filter(|&row| task.cost(row) > 0.0).collect();
    let others = task.classes() - 1;
    let each = (FIRST / counting.len().max(1)).clamp(1, others);
    let step = (counting.len() * each).div_ceil(FIRST).max(1);
    let mut working = Vec::new();
    for (at, &row) in counting.iter().step_by(step).enumerate() {
        let own = task.class(row);
        working.extend((0..each).map(|next| {
            let other = (at * each + next) % others;
            (row, if other >= own { other + 1 } else { other })
        }));
    }
    working.sort_unstable();
    working
}

/// For each row the constraint outside the working set that it misses most, relative to its margin: the worst of them, at
/// most as many as the working set has.
fn missed(task: &Joint, working: &[Pair], scores: &[f64]) -> Vec<Pair> {
    let inside: HashSet<Pair> = working.iter().copied().collect();
    let mut missed: Vec<(f64, Pair)> = Vec::new();
    for (row, scores) in scores.chunks_exact(task.classes()).enumerate().filter(|(row, _)| task.cost(*row) > 0.0) {
        let own = task.class(row);
        let mut worst: Option<(f64, Pair)> = None;
        for class in (0..scores.len()).filter(|&class| class != own) {
            let violation = 1.0 - (scores[own] - scores[class]) / task.margin(row, class);
            if violation > 1e-10 && worst.is_none_or(|(worst, _)| violation > worst) && !inside.contains(&(row, class))
            {
                worst = Some((violation, (row, class)));
            }
        }
        missed.extend(worst);
    }
    missed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    missed.truncate(working.len());
    missed.into_iter().map(|(_, pair)| pair).collect()
}

/// Makes Σ_i β_ic zero for every class by raising single multipliers. Classes without rows get none: no margin can hold
/// their constants.
fn balance(task: &Joint, values: &mut HashMap<Pair, f64>) {
    let mut first = vec![None; task.classes()];
    for row in (0..task.rows()).rev().filter(|&row| task.cost(row) > 0.0) {
        first[task.class(row)] = Some(row);
    }
    values.retain(|&(_, class), _| first[class].is_some());
    let mut largest: HashMap<(usize, usize), (f64, usize)> = HashMap::new();
    let mut entries: Vec<(Pair, f64)> = values.iter().map(|(&pair, &value)| (pair, value)).collect();
    entries.sort_unstable_by_key(|entry| entry.0);
    let mut pulls = vec![0.0; task.classes()];
    for &((row, class), value) in &entries {
        let own = task.class(row);
        pulls[own] += value;
        pulls[class] -= value;
        let known = largest.entry((own, class)).or_insert((value, row));
        if value > known.0 {
            *known = (value, row);
        }
    }
    // A multiplier of a row of class `from` against class `to` moves one unit from the one to the other.
    for _ in 0..2 * task.classes() {
        let by_pull = |a: &usize, b: &usize| pulls[*a].total_cmp(&pulls[*b]);
        let with_rows = || (0..pulls.len()).filter(|&class| first[class].is_some());
        let (Some(from), Some(to)) = (with_rows().min_by(by_pull), with_rows().max_by(by_pull)) else { return };
        let amount = (-pulls[from]).min(pulls[to]);
        if amount <= 0.0 {
            return;
        }
        let row = largest.get(&(from, to)).map(|(_, row)| *row).or(first[from]);
        if let Some(row) = row {
            *values.entry((row, to)).or_insert(0.0) += amount;
        }
        pulls[from] += amount;
        pulls[to] -= amount;
    }
}

/// The better of the best solution so far and a new point, with the better bound. A witness proves only its own bound.
fn better(best: Option<Solution>, point: Point, objective: f64, bound: f64, dual: ClassDual) -> Solution {
    let new = Solution {
        weights: point.weights,
        thresholds: point.constants,
        objective,
        lower_bound: Some(bound),
        witness: Witness::Classes(dual),
        passes: 0,
        stop: Stop::Converged,
        first_rate: None,
        read: None,
        kernel: None,
        trace: Vec::new(),
    };
    match best {
        None => new,
        Some(best) => {
            let proven = if best.lower_bound >= new.lower_bound { &best } else { &new };
            let (lower_bound, witness) = (proven.lower_bound, proven.witness.clone());
            let nearer = if new.objective < best.objective { new } else { best };
            Solution { lower_bound, witness, ..nearer }
        }
    }
}
