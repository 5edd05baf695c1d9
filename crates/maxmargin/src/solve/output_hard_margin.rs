//! The hard margin of structured outputs: no output costs more than the truth, with the smallest weights.
//!
//! ```text
//! min   ½‖w‖²     s.t.  loss_iy + slope_iy · X_i w ≤ 0   for all outputs y of all examples i that count
//! max   Σ α_iy loss_iy − ½‖Σ α_iy slope_iy · X_i‖²,   α ≥ 0
//! ```
//! Notation of [`super::oracle_risk`]; shared scores are weights. The interior point of [`super::QuadraticProgram`] solves
//! a working set of planes, to which each round adds the most violated output of every example at the new weights. The
//! weights are then scaled up until no output is violated: for an output y the factor loss_y / (−slope_y · s) is needed,
//! and a search at the scaled weights finds the output that needs most, or that none needs more (Dinkelbach, On nonlinear
//! fractional programming, 1967). The multipliers are scaled to their best multiple, whose recomputed value is the bound.
//!
//! If the working set contradicts itself, some z ≥ 0 shows it: the sum of its slopes is zero, and that of its losses is
//! not. Then no weights reach every margin.
//!
//! Stops at a relative gap, or when a round finds no new output. Cost of a round: a search pass, a few more where the
//! weights are scaled, and some 20 factorisations, cubic in the smaller of the weights that the working set touches and the
//! working set. Planes without a part in the solution leave a large working set.

use super::oracle_risk::{MostViolated, bound_of_outputs};
use super::quadratic_program::{
    COLUMN_NOTHING, Contradiction, FIRST, NOTHING, Program, TAKES_PART, Verdict, thins_out, undecided,
};
use super::{OutputDual, Progress, Solution, Stop, Witness, overflow, relative_gap};
use crate::data::Design;
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::run::{Cancel, Event, Observer};
use crate::structured::{Plane, Scores};
use clarabel::solver::SolverStatus;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Settings of the solver.
#[derive(Clone, Debug)]
pub(crate) struct OutputHardMargin {
    /// The relative gap to stop at.
    pub(crate) tolerance: f64,
    /// The maximum number of rounds.
    pub(crate) max_passes: u64,
}

/// An output counts as reached if it costs no more than this share of the largest loss.
const REACHED: f64 = 1e-12;

/// Weights are scaled up by this much at most: those of early rounds miss most margins, and searches cost.
const MOST_STRETCH: f64 = 4.0;
/// Searches for one factor.
const MOST_SEARCHES: usize = 30;

/// Multipliers below this share of the largest are left out of the dual point.
const NEGLIGIBLE: f64 = 1e-13;

/// An output that is reached by this much more than its loss may leave the working set.
const ROOM: f64 = 1e-3;

/// Weights of features, output by output, and of shared scores.
#[derive(Clone)]
struct Point {
    weights: Vec<f64>,
    shared: Vec<f64>,
}

impl Point {
    fn times(&self, factor: f64) -> Point {
        let times = |values: &[f64]| values.iter().map(|value| value * factor).collect();
        Point { weights: times(&self.weights), shared: times(&self.shared) }
    }

    fn half_square(&self) -> f64 {
        0.5 * self.weights.iter().chain(&self.shared).map(|weight| weight * weight).sum::<f64>()
    }
}

/// An output of an example, with its plane over the weights.
struct Working {
    example: usize,
    output: Vec<u32>,
    loss: f64,
    /// slope · X: places of weights, rising, with their numbers.
    entries: Vec<(u32, f64)>,
}

/// The most violated output of an example.
struct Found {
    example: usize,
    output: Vec<u32>,
    plane: Plane,
    /// slope · s
    product: f64,
}

impl Found {
    fn value(&self) -> f64 {
        self.plane.loss + self.product
    }
}

/// The most violated outputs of all examples that count, at a point.
fn searched(task: &MostViolated<'_>, design: &Design, at: &Point, cancel: &Cancel) -> Result<Vec<Found>> {
    let structure = task.structure;
    let outputs = structure.outputs().max(1);
    let scores = design.folded_scores_until(&design.fold_outputs(&at.weights, outputs), cancel)?;
    structure.prepare(&at.shared)?;
    let found = parallel::try_map(structure.examples(), |example| {
        if structure.weight(example) <= 0.0 || cancel.is_raised() {
            return Ok(None);
        }
        let rows = structure.rows(example);
        let at = Scores { rows: &scores[rows.start * outputs..rows.end * outputs], shared: &at.shared };
        let (mut output, mut plane) = (Vec::new(), Plane::default());
        task.searches.time(|| structure.most_violated(example, at, &mut output))?;
        structure.plane(example, &output, &mut plane)?;
        let product = plane.product(at);
        Ok(Some(Found { example, output, plane, product }))
    })?;
    cancel.check()?;
    let found: Vec<Found> = found.into_iter().flatten().collect();
    if found.iter().any(|found| !found.value().is_finite()) {
        return Err(overflow());
    }
    Ok(found)
}

/// The largest cost of an output as a share of the largest loss, at weights that are to reach every margin, and the
/// objective.
pub(crate) fn hard_primal_of_outputs(
    task: &MostViolated<'_>,
    design: &Design,
    (weights, shared): (&[f64], &[f64]),
    cancel: &Cancel,
) -> Result<(f64, f64)> {
    let point = Point { weights: weights.to_vec(), shared: shared.to_vec() };
    let most = searched(task, design, &point, cancel)?.iter().map(Found::value).fold(0.0, f64::max);
    Ok((point.half_square(), most / task.structure.largest_loss()))
}

/// The bound of a hard margin that a dual point proves, or an error if it is not feasible. There is no limit to α.
pub(crate) fn hard_bound_of_outputs(
    task: &MostViolated<'_>,
    design: &Design,
    dual: &OutputDual,
    cancel: &Cancel,
) -> Result<f64> {
    bound_of_outputs(task.structure, f64::INFINITY, design, dual, cancel)
}

impl OutputHardMargin {
    /// Solves the task over the rows of `design`. The blocks of a contradiction are examples.
    pub(crate) fn solve(
        &self,
        task: &MostViolated<'_>,
        design: &Design,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Verdict> {
        let mut progress = Progress::new(observer, cancel);
        let outputs = task.structure.outputs().max(1);
        let mut point =
            Point { weights: vec![0.0; design.cols() * outputs], shared: vec![0.0; task.structure.shared()] };
        let mut found = searched(task, design, &point, cancel)?;
        let (mut set, mut best) = (WorkingSet::default(), None);
        let mut pass = 0;
        let stop = loop {
            let Some(fresh) = unless_cancelled(set.take(task, design, found, cancel), cancel)? else {
                break Stop::Cancelled;
            };
            if fresh == 0 && pass > 0 {
                // No output can be added, and the last round gained nothing.
                break if best.is_some() { Stop::Stalled } else { return Err(undecided()) };
            }
            if progress.cancelled() {
                break Stop::Cancelled;
            }
            if pass >= self.max_passes {
                break Stop::PassLimit;
            }
            if set.list.is_empty() {
                // The truth is the best output at any weights.
                let dual = set.dual(task, &[]);
                best = Some(better(None, point.clone(), 0.0, 0.0, dual));
                break Stop::Converged;
            }
            let (program, used) = set.program(cancel)?;
            if let Some(empty) = program.empty_row() {
                let blocks = vec![(set.list[empty].example, 1.0)];
                return Ok(Verdict::NotSeparable(Contradiction { blocks, residual: 0.0 }));
            }
            let mean_length = program.mean_length;
            let Some(solved) = program.solve(cancel)? else { break Stop::Cancelled };
            pass += 1;
            if matches!(solved.status, SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible) {
                let proof = set.contradiction(&solved.multipliers, mean_length).ok_or_else(undecided)?;
                return Ok(Verdict::NotSeparable(set.shortened(proof, mean_length, cancel)?));
            }
            let dual = set.dual(task, &solved.multipliers);
            let bound = unless_cancelled(hard_bound_of_outputs(task, design, &dual, cancel), cancel)?;
            let Some(bound) = bound else { break Stop::Cancelled };
            progress.bound(Some(bound));
            let features = point.weights.len();
            point.weights.fill(0.0);
            point.shared.fill(0.0);
            for (&place, &weight) in used.iter().zip(&solved.weights) {
                let place = place as usize;
                match place.checked_sub(features) {
                    None => point.weights[place] = weight,
                    Some(shared) => point.shared[shared] = weight,
                }
            }
            let Some(own) = unless_cancelled(searched(task, design, &point, cancel), cancel)? else {
                break Stop::Cancelled;
            };
            found = own;
            let reached = unless_cancelled(stretched(task, design, &point, &found, cancel), cancel)?;
            let Some((stretched, more)) = reached else { break Stop::Cancelled };
            if let Some(reached) = stretched {
                let objective = reached.half_square();
                let ended = progress.report(pass, objective, &reached.weights, &reached.shared);
                best = Some(better(best, reached, objective, bound, dual));
                if best.as_ref().and_then(Solution::gap).is_some_and(|gap| gap <= self.tolerance) {
                    break Stop::Converged;
                }
                if ended {
                    break Stop::Cancelled;
                }
            }
            set.leave(&solved.multipliers, &point);
            found.extend(more);
        };
        let (calls, seconds) = task.searches.total();
        // The answer does not matter: the run is over.
        let _ = progress.observer().report(&Event::Searches { calls, seconds });
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
}

/// The result of a step, or none if it ended early because of a cancel: what was reached before is kept then.
fn unless_cancelled<T>(result: Result<T>, cancel: &Cancel) -> Result<Option<T>> {
    match result {
        Err(_) if cancel.is_raised() => Ok(None),
        result => result.map(Some),
    }
}

/// The point scaled up until no output is violated, if a moderate factor is enough, and the outputs found on the way.
fn stretched(
    task: &MostViolated<'_>,
    design: &Design,
    point: &Point,
    found: &[Found],
    cancel: &Cancel,
) -> Result<(Option<Point>, Vec<Found>)> {
    let enough = REACHED * task.structure.largest_loss();
    let (mut factor, mut more) = (1.0f64, Vec::<Found>::new());
    for attempt in 0..MOST_SEARCHES {
        let mut missed = false;
        // `found` are products at the point, and `more` at the point times the last factor.
        let latest = if attempt == 0 { found } else { &more[..] };
        let last = factor;
        for own in latest.iter().filter(|own| own.value() > enough) {
            let product = own.product / last;
            if product >= 0.0 {
                return Ok((None, more));
            }
            missed = true;
            factor = factor.max(own.plane.loss / -product);
        }
        if !missed {
            return Ok((Some(point.times(last)), more));
        }
        if factor > MOST_STRETCH {
            return Ok((None, more));
        }
        // Rounding may leave the last margin slightly short; a few units in the last place more are enough.
        factor *= 1.0 + f64::EPSILON * f64::from(1u32 << attempt.min(20));
        more = searched(task, design, &point.times(factor), cancel)?;
    }
    Ok((None, more))
}

/// The planes that the program knows.
#[derive(Default)]
struct WorkingSet {
    list: Vec<Working>,
    known: HashSet<(usize, Vec<u32>)>,
}

/// A contradiction, plane by plane, and what is left of its sum.
struct Proof {
    part: Vec<(usize, f64)>,
    residual: f64,
}

impl WorkingSet {
    /// Adds outputs that cost more than the truth. Returns how many are new.
    fn take(&mut self, task: &MostViolated<'_>, design: &Design, found: Vec<Found>, cancel: &Cancel) -> Result<usize> {
        let enough = REACHED * task.structure.largest_loss();
        let before = self.list.len();
        for Found { example, output, plane, product } in found {
            if plane.loss + product <= enough || self.known.contains(&(example, output.clone())) {
                continue;
            }
            if self.list.len().is_multiple_of(256) {
                cancel.check()?;
            }
            let entries = over_weights(task, design, example, &plane);
            self.known.insert((example, output.clone()));
            self.list.push(Working { example, output, loss: plane.loss, entries });
        }
        Ok(self.list.len() - before)
    }

    /// The program, and the places of the weights that it touches: its variables.
    fn program(&self, cancel: &Cancel) -> Result<(Program, Vec<u32>)> {
        cancel.check()?;
        let mut used: Vec<u32> = self.list.iter().flat_map(|own| own.entries.iter().map(|entry| entry.0)).collect();
        used.sort_unstable();
        used.dedup();
        let mut program = Program::of(used.len(), used.len(), used.len());
        for (at, own) in self.list.iter().enumerate() {
            let mut square = 0.0;
            for (place, value) in &own.entries {
                program.push(at, used.partition_point(|used| used < place), *value);
                square += value * value;
            }
            program.close_row(own.loss, square, self.list.len())?;
        }
        Ok((program.checked()?, used))
    }

    /// The best feasible multiple of these multipliers.
    fn dual(&self, task: &MostViolated<'_>, multipliers: &[f64]) -> OutputDual {
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let taking = |(_, z): &(&Working, &f64)| **z > NEGLIGIBLE * largest;
        let mut of_example: BTreeMap<usize, Vec<(&[u32], f64)>> = BTreeMap::new();
        let mut sum: HashMap<u32, f64> = HashMap::new();
        let mut gain = 0.0;
        for (own, &z) in self.list.iter().zip(multipliers).filter(taking) {
            of_example.entry(own.example).or_default().push((&own.output, z));
            gain += z * own.loss;
            own.entries.iter().for_each(|&(place, value)| *sum.entry(place).or_default() += z * value);
        }
        let mut places: Vec<(u32, f64)> = sum.into_iter().collect();
        places.sort_unstable_by_key(|entry| entry.0);
        let factor = gain / places.iter().map(|(_, value)| value * value).sum::<f64>();
        let factor = if factor.is_finite() && factor > 0.0 { factor } else { 1.0 };
        let mut dual = OutputDual::default();
        for example in 0..task.structure.examples() {
            let own = of_example.remove(&example).unwrap_or_default();
            dual.push(own.into_iter().map(|(output, z)| (output, factor * z)));
        }
        dual
    }

    /// Lets planes leave a large set that take no part and are reached by far.
    fn leave(&mut self, multipliers: &[f64], at: &Point) {
        if self.list.len() <= 2 * FIRST {
            return;
        }
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let features = at.weights.len();
        let weight = |place: u32| {
            let place = place as usize;
            place.checked_sub(features).map_or_else(|| at.weights[place], |shared| at.shared[shared])
        };
        let mut multipliers = multipliers.iter();
        let known = &mut self.known;
        self.list.retain(|own| {
            let value = own.loss + own.entries.iter().map(|&(place, slope)| slope * weight(place)).sum::<f64>();
            let idle = multipliers.next().is_some_and(|&z| z <= TAKES_PART * largest) && value < -ROOM * own.loss;
            if idle {
                known.remove(&(own.example, own.output.clone()));
            }
            !idle
        });
    }

    /// The combination of planes as a proof, if it is one.
    fn contradiction(&self, multipliers: &[f64], mean_length: f64) -> Option<Proof> {
        let largest = multipliers.iter().copied().fold(0.0, f64::max);
        let part: Vec<(usize, f64)> =
            multipliers.iter().copied().enumerate().filter(|&(_, z)| z > TAKES_PART * largest).collect();
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        let (mut promised, mut total) = (0.0, 0.0);
        for &(at, z) in &part {
            let own = &self.list[at];
            promised += z * own.loss;
            total += z;
            for &(place, value) in &own.entries {
                let sum = sums.entry(place).or_default();
                sum.0 += z * value;
                sum.1 += (z * value).abs();
            }
        }
        // What is left in a column is compared with the sizes of that column: a column of small numbers may be the one
        // that separates.
        if sums.values().any(|(sum, size)| sum.abs() > COLUMN_NOTHING * size) {
            return None;
        }
        let length = sums.values().map(|(sum, _)| sum * sum).sum::<f64>().sqrt();
        let residual = length / (total * mean_length);
        (promised > 0.0 && residual <= NOTHING).then_some(Proof { part, residual })
    }

    /// The contradiction by examples, of as few planes as can be found at little cost.
    fn shortened(&self, found: Proof, mean_length: f64, cancel: &Cancel) -> Result<Contradiction> {
        let mut proof = found;
        let part: Vec<Working> = proof.part.iter().map(|&(at, _)| self.list[at].copied()).collect();
        let only = WorkingSet { list: part, known: HashSet::new() };
        let (program, used) = only.program(cancel)?;
        let places: Vec<usize> = proof.part.iter().map(|&(at, _)| at).collect();
        if thins_out(places.len(), used.len() + 1) {
            let weights: Vec<f64> = proof.part.iter().map(|&(_, weight)| weight).collect();
            let mut fewer = vec![0.0; self.list.len()];
            program.fewest(&weights).into_iter().for_each(|(at, weight)| fewer[places[at]] = weight);
            // A few planes are easier to read than many, but they must prove as much.
            proof = self.contradiction(&fewer, mean_length).unwrap_or(proof);
        }
        let mut of_example: BTreeMap<usize, f64> = BTreeMap::new();
        for (at, weight) in proof.part {
            *of_example.entry(self.list[at].example).or_default() += weight;
        }
        let mut blocks: Vec<(usize, f64)> = of_example.into_iter().collect();
        blocks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Contradiction { blocks, residual: proof.residual })
    }
}

impl Working {
    fn copied(&self) -> Working {
        Working { output: self.output.clone(), entries: self.entries.clone(), ..*self }
    }
}

/// The slopes of a plane by the weights of features, feature by feature, and then by those of shared scores.
fn over_weights(task: &MostViolated<'_>, design: &Design, example: usize, plane: &Plane) -> Vec<(u32, f64)> {
    let (outputs, first) = (task.structure.outputs().max(1), task.structure.rows(example).start);
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    let mut values = vec![0.0; design.cols()];
    for entries in plane.rows.chunk_by(|a, b| a.0 as usize / outputs == b.0 as usize / outputs) {
        values.fill(0.0);
        design.fill_scaled_row(first + entries[0].0 as usize / outputs, &mut values);
        for (column, &value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            for &(place, slope) in entries {
                let weight = column * outputs + place as usize % outputs;
                *sums.entry(weight as u32).or_default() += slope * value;
            }
        }
    }
    let features = (design.cols() * outputs) as u32;
    plane.shared.iter().for_each(|&(place, slope)| *sums.entry(features + place).or_default() += slope);
    sums.into_iter().filter(|(_, value)| *value != 0.0).collect()
}

/// The better of the best solution so far and a new point, with the better bound. A witness proves only its own bound.
fn better(best: Option<Solution>, point: Point, objective: f64, bound: f64, dual: OutputDual) -> Solution {
    let new = Solution {
        weights: point.weights,
        thresholds: point.shared,
        objective,
        lower_bound: Some(bound),
        witness: Witness::Outputs(dual),
        passes: 0,
        stop: Stop::Converged,
        first_rate: None,
        read: None,
        kernel: None,
        trace: Vec::new(),
    };
    let Some(best) = best else { return new };
    let proven = if best.lower_bound >= new.lower_bound { &best } else { &new };
    let (lower_bound, witness) = (proven.lower_bound, proven.witness.clone());
    let nearer = if new.objective < best.objective { new } else { best };
    Solution { lower_bound, witness, ..nearer }
}
