//! Checks for your own tasks: whether slopes, curvature and constraints agree with the value. For structured outputs and
//! your own oracles there are [`check_structure`] and [`check_oracle`].
//!
//! Each check takes a task and a point: the scores of all rows (several scores of one row are next to each other) and
//! the free scalars. It returns a description of what is wrong:
//!
//! ```
//! # use maxmargin::data::{Dataset, Dense, Groups, Matrix, Targets};
//! use maxmargin::loss::Loss;
//! use maxmargin::task::{PairWeight, Ranking};
//! use maxmargin::testing::{check_curvature, check_objective};
//!
//! # let matrix = Matrix::DenseF64(Dense::new(vec![0.0; 3], 3, 1).expect("3 × 1"));
//! # let data = Dataset::new(matrix, Targets::Real(vec![2.0, 1.0, 1.0].into())).expect("valid");
//! # let data = data.with_groups(Groups::one(3)).expect("valid");
//! let task = Ranking::new(&data, Loss::SquaredHinge, PairWeight::Equal, 0.5).expect("pairs");
//! let scores = [0.31, 0.12, -0.47];
//! assert_eq!(check_objective(&task, &scores, &[]), Ok(()));
//! assert_eq!(check_curvature(&task, &scores, &[]), Ok(()));
//! ```
//!
//! Choose points in general position, such as random numbers of about the size of a margin. Try several points, so that
//! some constraints are violated and some are not. If a kink happens to lie within a step of the differences, the
//! slopes on its two sides differ, and every value between them is accepted.

mod outputs;

pub use outputs::{check_oracle, check_structure};

use crate::error::Error;
use crate::random::Random;
use crate::run::Cancel;
use crate::task::{Curvature, Directions, Independent, Objective, Place, Roundable, Slopes};
use std::ops::Range;

/// The purpose of these random numbers.
const DIRECTIONS: u64 = 0x7465_7374;
/// Number of random directions or segments to try.
const TRIES: u64 = 4;
/// The step of the differences, relative to coordinates of size one.
const STEP: f64 = 1e-5;
/// The largest error of a derivative compared with its difference, relative to the largest derivative.
const DERIVATIVE: f64 = 1e-6;
/// The largest difference between two ways to compute the same number, relative to its size.
const ROUNDING: f64 = 1e-10;

/// Scores and thresholds.
#[derive(Clone)]
struct Point {
    scores: Vec<f64>,
    thresholds: Vec<f64>,
}

impl Point {
    fn new(scores: &[f64], thresholds: &[f64]) -> Point {
        Point { scores: scores.to_vec(), thresholds: thresholds.to_vec() }
    }

    fn zero(rows: usize, thresholds: usize) -> Point {
        Point { scores: vec![0.0; rows], thresholds: vec![0.0; thresholds] }
    }

    /// Normal deviates in every coordinate.
    fn direction(&self, try_: u64) -> Point {
        let mut random = Random::new(0, DIRECTIONS, try_);
        let mut draw = |values: &[f64]| values.iter().map(|_| random.normal()).collect();
        Point { scores: draw(&self.scores), thresholds: draw(&self.thresholds) }
    }

    fn moved(&self, step: f64, direction: &Point) -> Point {
        let add = |at: &[f64], along: &[f64]| at.iter().zip(along).map(|(at, along)| at + step * along).collect();
        Point { scores: add(&self.scores, &direction.scores), thresholds: add(&self.thresholds, &direction.thresholds) }
    }

    fn coordinates(&self) -> impl Iterator<Item = f64> {
        self.scores.iter().chain(&self.thresholds).copied()
    }

    fn coordinate_mut(&mut self, index: usize) -> &mut f64 {
        let rows = self.scores.len();
        if index < rows { &mut self.scores[index] } else { &mut self.thresholds[index - rows] }
    }

    fn name(&self, index: usize) -> String {
        let rows = self.scores.len();
        if index < rows { format!("score {index}") } else { format!("threshold {}", index - rows) }
    }

    fn dot(&self, other: &Point) -> f64 {
        self.coordinates().zip(other.coordinates()).map(|(a, b)| a * b).sum()
    }

    fn largest(&self) -> f64 {
        self.coordinates().fold(0.0, |largest, value| largest.max(value.abs()))
    }
}

/// The value and slope of all parts at a point, and what the parts remember.
fn evaluate<T: Objective>(task: &T, at: &Point, memos: &mut [T::Memo]) -> Result<(f64, Point), String> {
    let mut slope = Point::zero(at.scores.len(), at.thresholds.len());
    let mut value = 0.0;
    for (part, memo) in memos.iter_mut().enumerate() {
        let own = scores_of(task, part);
        // A part must write every slope, whatever the value was before.
        slope.scores[own.clone()].fill(f64::NAN);
        let place = Place { part, scores: &at.scores[own.clone()], thresholds: &at.thresholds, cancel: &Cancel::new() };
        let slopes = Slopes { scores: &mut slope.scores[own.clone()], thresholds: &mut slope.thresholds };
        let part_value = task.evaluate(&place, slopes, memo).map_err(|error| failed(part, &error))?;
        if !(part_value.is_finite() && part_value >= 0.0) {
            return Err(format!("the value of part {part} is {part_value}, and must be finite and not negative"));
        }
        if let Some(score) = own.clone().find(|&score| !slope.scores[score].is_finite()) {
            return Err(format!("part {part} leaves the slope by score {score} unwritten or not finite"));
        }
        value += part_value;
    }
    if let Some(at) = slope.thresholds.iter().position(|slope| !slope.is_finite()) {
        return Err(format!("the slope by threshold {at} is not finite"));
    }
    Ok((value, slope))
}

/// The position of the scores of a part among those of all rows.
fn scores_of<T: Objective>(task: &T, part: usize) -> Range<usize> {
    let (rows, outputs) = (task.rows(part), task.outputs());
    rows.start * outputs..rows.end * outputs
}

fn failed(part: usize, error: &Error) -> String {
    format!("part {part} fails: {error}")
}

fn memos<T: Objective>(task: &T) -> Vec<T::Memo> {
    (0..task.parts()).map(|_| T::Memo::default()).collect()
}

fn value<T: Objective>(task: &T, at: &Point) -> Result<f64, String> {
    Ok(evaluate(task, at, &mut memos(task))?.0)
}

/// Checks that the point fits the task, and that the parts are separate ranges of rows.
fn check_shape<T: Objective>(task: &T, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    if thresholds.len() != task.thresholds() {
        return Err(format!("{} thresholds are given, and the task has {}", thresholds.len(), task.thresholds()));
    }
    let outputs = task.outputs();
    if outputs == 0 || !scores.len().is_multiple_of(outputs) {
        return Err(format!("{} scores are given, and a row of the task has {outputs}", scores.len()));
    }
    let count = scores.len() / outputs;
    let mut taken = vec![None; count];
    for part in 0..task.parts() {
        let rows = task.rows(part);
        if rows.start > rows.end || rows.end > count {
            let given = match outputs {
                1 => format!("{count} scores are given"),
                _ => format!("scores of {count} rows are given"),
            };
            return Err(format!("part {part} has rows {rows:?}, and {given}"));
        }
        for row in rows {
            if let Some(other) = taken[row].replace(part) {
                return Err(format!("row {row} belongs to parts {other} and {part}"));
            }
        }
    }
    Ok(())
}

/// Checks an objective around a point. Parts have separate rows. The value is finite, not negative, and convex along
/// random segments. Each slope agrees with the differences of the value. Slopes by scores are written, slopes by
/// thresholds are added.
pub fn check_objective<T: Objective>(task: &T, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    check_shape(task, scores, thresholds)?;
    let at = Point::new(scores, thresholds);
    let mut remembered = memos(task);
    let (here, slope) = evaluate(task, &at, &mut remembered)?;
    let scale = slope.largest();
    for index in 0..scores.len() + thresholds.len() {
        let mut side = at.clone();
        let coordinate = *side.coordinate_mut(index);
        let step = STEP * coordinate.abs().max(1.0);
        *side.coordinate_mut(index) = coordinate + step;
        let forward = (value(task, &side)? - here) / step;
        *side.coordinate_mut(index) = coordinate - step;
        let backward = (here - value(task, &side)?) / step;
        let (central, expected) = ((forward + backward) / 2.0, *slope.clone().coordinate_mut(index));
        let allowed = (forward - backward).abs() / 2.0 + DERIVATIVE * scale + 64.0 * f64::EPSILON * here / step;
        if (expected - central).abs() > allowed {
            return Err(format!("the slope by {} is {expected}, and differences give {central}", at.name(index)));
        }
    }
    for part in 0..task.parts() {
        let scores = &scores[scores_of(task, part)];
        let place = Place { part, scores, thresholds, cancel: &Cancel::new() };
        let added = |start: f64| {
            let (mut own, mut total) = (vec![0.0; scores.len()], vec![start; thresholds.len()]);
            let slopes = Slopes { scores: &mut own, thresholds: &mut total };
            task.evaluate(&place, slopes, &mut T::Memo::default()).map_err(|error| failed(part, &error))?;
            Ok::<Vec<f64>, String>(total)
        };
        for (from_zero, from_one) in added(0.0)?.into_iter().zip(added(1.0)?) {
            if (from_one - from_zero - 1.0).abs() > ROUNDING * (1.0 + from_zero.abs()) {
                return Err(format!("part {part} writes the slope by a threshold, and must add to what is there"));
            }
        }
    }
    for try_ in 0..TRIES {
        // Short and long segments.
        let there = at.moved(4f64.powi(try_ as i32 - 2), &at.direction(try_));
        let step = there.moved(-1.0, &at);
        // What a part remembers from one point must not affect another point.
        let (there_value, _) = evaluate(task, &there, &mut remembered)?;
        let (again, _) = evaluate(task, &at, &mut remembered)?;
        let rounding = ROUNDING * (here + there_value + slope.dot(&step).abs());
        if (again - here).abs() > rounding {
            return Err(format!("the value is {here} at first, and {again} after an evaluation elsewhere"));
        }
        let middle = value(task, &at.moved(0.5, &step))?;
        if middle > (here + there_value) / 2.0 + rounding {
            return Err(format!(
                "not convex: {middle} in the middle of a segment, with {here} and {there_value} at its ends"
            ));
        }
        if there_value < here + slope.dot(&step) - rounding {
            return Err(format!(
                "the slopes are no subgradient: they promise at least {}, and the value there is {there_value}",
                here + slope.dot(&step)
            ));
        }
    }
    Ok(())
}

/// The Hessian times directions, all in one call for each part.
fn curvature<T: Curvature>(
    task: &T,
    memos: &[T::Memo],
    at: &Point,
    directions: &[Point],
) -> Result<Vec<Point>, String> {
    let (m, scores, thresholds) = (directions.len(), at.scores.len(), at.thresholds.len());
    let interleaved = |count: usize, of: &dyn Fn(&Point, usize) -> f64| -> Vec<f64> {
        (0..count).flat_map(|index| directions.iter().map(move |direction| of(direction, index))).collect()
    };
    let score_directions = interleaved(scores, &|direction, score| direction.scores[score]);
    let threshold_directions = interleaved(thresholds, &|direction, at| direction.thresholds[at]);
    let (mut out, mut threshold_out) = (vec![0.0; scores * m], vec![0.0; thresholds * m]);
    for (part, memo) in memos.iter().enumerate() {
        let own = scores_of(task, part);
        let range = own.start * m..own.end * m;
        out[range.clone()].fill(f64::NAN); // the part must write it
        let place = Place { part, scores: &at.scores[own], thresholds: &at.thresholds, cancel: &Cancel::new() };
        let along =
            Directions { count: m, scores: &score_directions[range.clone()], thresholds: &threshold_directions };
        let slopes = Slopes { scores: &mut out[range], thresholds: &mut threshold_out };
        task.curvature(&place, memo, &along, slopes).map_err(|error| failed(part, &error))?;
    }
    let column = |values: &[f64], column: usize| values.iter().skip(column).step_by(m).copied().collect();
    Ok((0..m).map(|at| Point { scores: column(&out, at), thresholds: column(&threshold_out, at) }).collect())
}

/// Checks second derivatives at a point: the Hessian times random directions agrees with differences of the slopes, is
/// symmetric and not negative, and is the same for several directions at once as for one at a time.
pub fn check_curvature<T: Curvature>(task: &T, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    check_shape(task, scores, thresholds)?;
    let at = Point::new(scores, thresholds);
    let mut remembered = memos(task);
    let (_, slope) = evaluate(task, &at, &mut remembered)?;
    let directions: Vec<Point> = (0..TRIES).map(|try_| at.direction(try_)).collect();
    let products = curvature(task, &remembered, &at, &directions)?;
    for (try_, (direction, product)) in directions.iter().zip(&products).enumerate() {
        if product.coordinates().any(|value| !value.is_finite()) {
            return Err("the curvature is not finite, or not written for every score".to_string());
        }
        let scale = product.largest();
        let alone = &curvature(task, &remembered, &at, std::slice::from_ref(direction))?[0];
        for (index, (one, several)) in alone.coordinates().zip(product.coordinates()).enumerate() {
            if (one - several).abs() > ROUNDING * scale {
                let name = at.name(index);
                return Err(format!("the curvature by {name} is {one} alone, and {several} among other directions"));
            }
        }
        let step = STEP * 0.1 / direction.largest().max(f64::MIN_POSITIVE);
        let forward = evaluate(task, &at.moved(step, direction), &mut memos(task))?.1;
        let backward = evaluate(task, &at.moved(-step, direction), &mut memos(task))?.1;
        let sides = slope.coordinates().zip(forward.coordinates().zip(backward.coordinates()));
        for (index, ((here, (forward, backward)), found)) in sides.zip(product.coordinates()).enumerate() {
            let (forward, backward) = ((forward - here) / step, (here - backward) / step);
            let central = (forward + backward) / 2.0;
            let allowed =
                (forward - backward).abs() / 2.0 + DERIVATIVE * scale + 64.0 * f64::EPSILON * slope.largest() / step;
            if (found - central).abs() > allowed {
                let name = at.name(index);
                return Err(format!("the curvature by {name} is {found}, and differences of slopes give {central}"));
            }
        }
        for (other, other_product) in directions.iter().zip(&products).take(try_ + 1) {
            let (one, two) = (other.dot(product), direction.dot(other_product));
            let size = other.coordinates().zip(product.coordinates()).map(|(a, b)| (a * b).abs()).sum::<f64>();
            if (one - two).abs() > ROUNDING * size {
                return Err(format!("the curvature is not symmetric: {one} one way, {two} the other"));
            }
        }
        if direction.dot(product) < -ROUNDING * scale {
            return Err(format!(
                "the curvature along a direction is {}, and must not be negative",
                direction.dot(product)
            ));
        }
    }
    check_diagonal(task, &at, &remembered)?;
    check_separation(task, &at, &remembered)
}

/// Checks on the first few scores of each part that the diagonal agrees with the curvature. If the task says
/// that only differences count, also checks that adding a constant to all scores of an output changes nothing.
fn check_diagonal<T: Curvature>(task: &T, at: &Point, remembered: &[T::Memo]) -> Result<(), String> {
    const SCORES: usize = 8;
    let (cancel, outputs) = (Cancel::new(), task.outputs());
    let still = vec![0.0; task.thresholds()];
    for (part, memo) in remembered.iter().enumerate() {
        let scores = &at.scores[scores_of(task, part)];
        let place = Place { part, scores, thresholds: &at.thresholds, cancel: &cancel };
        let count = scores.len();
        let mut diagonal = vec![f64::NAN; count];
        task.diagonal(&place, memo, &mut diagonal).map_err(|error| failed(part, &error))?;
        let along = |direction: &[f64]| {
            let mut out = vec![0.0; count];
            let along = Directions { count: 1, scores: direction, thresholds: &still };
            let slopes = Slopes { scores: &mut out, thresholds: &mut vec![0.0; still.len()] };
            task.curvature(&place, memo, &along, slopes).map_err(|error| failed(part, &error))?;
            Ok::<Vec<f64>, String>(out)
        };
        let mut largest = 0.0f64;
        for score in 0..count.min(SCORES) {
            let mut unit = vec![0.0; count];
            unit[score] = 1.0;
            let (own, found) = (along(&unit)?[score], diagonal[score]);
            largest = largest.max(own.abs());
            if (own - found).abs() > ROUNDING * own.abs().max(1.0) || found.is_nan() {
                let name = if outputs == 1 { "row" } else { "score" };
                return Err(format!(
                    "the diagonal of {name} {score} in part {part} is {found}, and the curvature's {own}"
                ));
            }
        }
        for output in 0..if task.only_differences_count() { outputs } else { 0 } {
            let constant: Vec<f64> = (0..count).map(|score| f64::from(u8::from(score % outputs == output))).collect();
            let changed = along(&constant)?.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            if changed > ROUNDING * (1.0 + largest * count as f64) {
                return Err(format!("a constant added to the scores of part {part} changes the slopes by {changed}"));
            }
        }
    }
    Ok(())
}

/// Checks on the first few rows of each part that rows declared separate do not change the slopes of other rows. With
/// one score per row and one free scalar, also checks that [`Curvature::by_threshold`] agrees with the curvature.
fn check_separation<T: Curvature>(task: &T, at: &Point, remembered: &[T::Memo]) -> Result<(), String> {
    const ROWS: usize = 4;
    if !task.rows_are_separate() {
        return Ok(());
    }
    let (cancel, outputs) = (Cancel::new(), task.outputs());
    for (part, memo) in remembered.iter().enumerate() {
        let scores = &at.scores[scores_of(task, part)];
        let place = Place { part, scores, thresholds: &at.thresholds, cancel: &cancel };
        let product = |direction: &Point| {
            let mut out = Point::zero(scores.len(), at.thresholds.len());
            let along = Directions { count: 1, scores: &direction.scores, thresholds: &direction.thresholds };
            let slopes = Slopes { scores: &mut out.scores, thresholds: &mut out.thresholds };
            task.curvature(&place, memo, &along, slopes).map_err(|error| failed(part, &error))?;
            Ok::<Point, String>(out)
        };
        for row in 0..(scores.len() / outputs).min(ROWS) {
            let mut moved = Point::zero(scores.len(), at.thresholds.len());
            let own = row * outputs..(row + 1) * outputs;
            moved.scores[own.clone()].fill(1.0);
            let changed = product(&moved)?.scores;
            if let Some(other) = (0..scores.len()).find(|score| !own.contains(score) && changed[*score] != 0.0) {
                return Err(format!(
                    "row {row} of part {part} changes the slope by score {other}: rows are not separate"
                ));
            }
        }
        if outputs == 1 && at.thresholds.len() == 1 {
            let moved = Point { thresholds: vec![1.0], ..Point::zero(scores.len(), 1) };
            let expected = product(&moved)?;
            let mut found = Point { scores: vec![f64::NAN; scores.len()], thresholds: vec![0.0] };
            let corner = task.by_threshold(&place, memo, &mut found.scores).map_err(|error| failed(part, &error))?;
            found.thresholds[0] = corner;
            let allowed = ROUNDING * expected.largest().max(1.0);
            let pairs = found.coordinates().zip(expected.coordinates()).enumerate();
            for (index, (one, other)) in pairs {
                if (one - other).abs() > allowed || one.is_nan() {
                    let name = found.name(index);
                    return Err(format!("part {part}: by threshold and {name} {one}, and the curvature gives {other}"));
                }
            }
        }
    }
    Ok(())
}

/// Checks a task with hinge loss and its version with the kink smoothed over a width. The hinge must equal the value of
/// the original task, and the excess of the dual must lie between zero and the loss that smoothing removes.
pub fn check_rounding<T: Roundable>(task: &T, width: f64, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    let rounded = task.rounded(width);
    check_objective(&rounded, scores, thresholds)?;
    check_curvature(&rounded, scores, thresholds)?;
    let at = Point::new(scores, thresholds);
    let expected = value(task, &at)?;
    let mut remembered = memos(&rounded);
    let (smooth, _) = evaluate(&rounded, &at, &mut remembered)?;
    let mut sums = [0.0; 3];
    for (part, memo) in remembered.iter().enumerate() {
        sums.iter_mut().zip(rounded.rounding(part, memo)).for_each(|(sum, term)| *sum += term);
    }
    let [hinge, excess, error] = sums;
    let allowed = ROUNDING * expected.max(1.0) + error;
    if (hinge - expected).abs() > allowed {
        return Err(format!("the hinge is said to be {hinge}, and the value of the task is {expected}"));
    }
    if !(excess >= -allowed && excess <= expected - smooth + allowed && error >= 0.0) {
        let taken = expected - smooth;
        return Err(format!("the excess is {excess}, and must lie between zero and what rounding off takes, {taken}"));
    }
    Ok(())
}

/// Checks that a task's constraints cost the same as its objective: the sum over blocks of `cost · loss(margin −
/// coefficient · score − threshold · b)` is the value.
pub fn check_independent<T: Independent + Objective>(
    task: &T,
    scores: &[f64],
    thresholds: &[f64],
) -> Result<(), String> {
    check_shape(task, scores, thresholds)?;
    if thresholds.len() > 1 {
        return Err(format!("independent constraints share one threshold, and the task has {}", thresholds.len()));
    }
    let b = thresholds.first().copied().unwrap_or(0.0);
    let (loss, mut sum) = (task.loss(), 0.0);
    for block in 0..task.blocks() {
        let constraint = task.constraint(block);
        let last = constraint.row.max(constraint.against.unwrap_or(0));
        if last >= scores.len() {
            return Err(format!("block {block} has row {last}, and {} scores are given", scores.len()));
        }
        if !(constraint.cost.is_finite() && constraint.cost >= 0.0) {
            return Err(format!("block {block} costs {}, and must cost zero or more", constraint.cost));
        }
        sum += constraint.cost * loss.value(constraint.violation(scores, b));
    }
    let value = value(task, &Point::new(scores, thresholds))?;
    if (sum - value).abs() > ROUNDING * value.max(sum) {
        return Err(format!("the constraints cost {sum}, and the objective is {value}"));
    }
    Ok(())
}
