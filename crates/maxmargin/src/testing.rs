//! Checks for tasks of your own: whether slopes, curvature and constraints say the same as the value.
//!
//! Each check takes a task and a point (a score a row, a value a threshold), and returns what is wrong in words:
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
//! Choose points in general position, such as random numbers of about the size of a margin, and several of them: with
//! some constraints violated, some not. A kink that happens to lie within a step of the differences is recognised by
//! slopes that differ on its two sides, and anything between these is accepted there.

use crate::random::Random;
use crate::task::{Curvature, Independent, Objective};

/// The purpose of these random numbers.
const DIRECTIONS: u64 = 0x7465_7374;
/// Random directions or segments tried.
const TRIES: u64 = 4;
/// The step of differences, relative to coordinates of size one.
const STEP: f64 = 1e-5;
/// How far a derivative may be from its difference, relative to the largest derivative.
const DERIVATIVE: f64 = 1e-6;
/// How far two ways to compute one number may be apart, relative to its size.
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

/// The value and slope of all parts at a point, and what they remember.
fn evaluate<T: Objective>(task: &T, at: &Point, memos: &mut [T::Memo]) -> Result<(f64, Point), String> {
    let mut slope = Point::zero(at.scores.len(), at.thresholds.len());
    let mut value = 0.0;
    for (part, memo) in memos.iter_mut().enumerate() {
        let rows = task.rows(part);
        // A part must write every slope, whatever stood there.
        slope.scores[rows.clone()].fill(f64::NAN);
        let part_value = task.evaluate(
            part,
            &at.scores[rows.clone()],
            &at.thresholds,
            &mut slope.scores[rows.clone()],
            &mut slope.thresholds,
            memo,
        );
        if !(part_value.is_finite() && part_value >= 0.0) {
            return Err(format!("the value of part {part} is {part_value}, and must be finite and not negative"));
        }
        if let Some(row) = rows.clone().find(|&row| !slope.scores[row].is_finite()) {
            return Err(format!("part {part} leaves the slope by score {row} unwritten or not finite"));
        }
        value += part_value;
    }
    if let Some(at) = slope.thresholds.iter().position(|slope| !slope.is_finite()) {
        return Err(format!("the slope by threshold {at} is not finite"));
    }
    Ok((value, slope))
}

fn memos<T: Objective>(task: &T) -> Vec<T::Memo> {
    (0..task.parts()).map(|_| T::Memo::default()).collect()
}

fn value<T: Objective>(task: &T, at: &Point) -> Result<f64, String> {
    Ok(evaluate(task, at, &mut memos(task))?.0)
}

/// Whether the point fits the task, and the parts are ranges of rows of their own.
fn check_shape<T: Objective>(task: &T, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    if thresholds.len() != task.thresholds() {
        return Err(format!("{} thresholds are given, and the task has {}", thresholds.len(), task.thresholds()));
    }
    let mut taken = vec![None; scores.len()];
    for part in 0..task.parts() {
        let rows = task.rows(part);
        if rows.start > rows.end || rows.end > scores.len() {
            return Err(format!("part {part} has rows {rows:?}, and {} scores are given", scores.len()));
        }
        for row in rows {
            if let Some(other) = taken[row].replace(part) {
                return Err(format!("row {row} belongs to parts {other} and {part}"));
            }
        }
    }
    Ok(())
}

/// Checks an objective around a point: parts have rows of their own; the value is finite, not negative, and convex
/// along random segments; each slope agrees with the differences of the value; slopes by scores are written, slopes by
/// thresholds added.
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
        let rows = task.rows(part);
        let added = |start: f64| {
            let (mut own, mut total) = (vec![0.0; rows.len()], vec![start; thresholds.len()]);
            task.evaluate(part, &scores[rows.clone()], thresholds, &mut own, &mut total, &mut T::Memo::default());
            total
        };
        for (from_zero, from_one) in added(0.0).into_iter().zip(added(1.0)) {
            if (from_one - from_zero - 1.0).abs() > ROUNDING * (1.0 + from_zero.abs()) {
                return Err(format!("part {part} writes the slope by a threshold, and must add to what is there"));
            }
        }
    }
    for try_ in 0..TRIES {
        // Short and long segments.
        let there = at.moved(4f64.powi(try_ as i32 - 2), &at.direction(try_));
        let step = there.moved(-1.0, &at);
        // What is remembered of one point must not be seen at another.
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
fn curvature<T: Curvature>(task: &T, memos: &[T::Memo], at: &Point, directions: &[Point]) -> Vec<Point> {
    let (m, rows, thresholds) = (directions.len(), at.scores.len(), at.thresholds.len());
    let interleaved = |count: usize, of: &dyn Fn(&Point, usize) -> f64| -> Vec<f64> {
        (0..count).flat_map(|index| directions.iter().map(move |direction| of(direction, index))).collect()
    };
    let score_directions = interleaved(rows, &|direction, row| direction.scores[row]);
    let threshold_directions = interleaved(thresholds, &|direction, at| direction.thresholds[at]);
    let (mut out, mut threshold_out) = (vec![0.0; rows * m], vec![0.0; thresholds * m]);
    for (part, memo) in memos.iter().enumerate() {
        let rows = task.rows(part);
        let range = rows.start * m..rows.end * m;
        out[range.clone()].fill(f64::NAN); // to be written by the part
        task.curvature(
            part,
            &at.scores[rows],
            memo,
            m,
            &score_directions[range.clone()],
            &threshold_directions,
            &mut out[range],
            &mut threshold_out,
        );
    }
    let column = |values: &[f64], column: usize| values.iter().skip(column).step_by(m).copied().collect();
    (0..m).map(|at| Point { scores: column(&out, at), thresholds: column(&threshold_out, at) }).collect()
}

/// Checks second derivatives at a point: the Hessian times random directions agrees with differences of the slopes, is
/// symmetric and not negative, and is the same for several directions at once as for one at a time.
pub fn check_curvature<T: Curvature>(task: &T, scores: &[f64], thresholds: &[f64]) -> Result<(), String> {
    check_shape(task, scores, thresholds)?;
    let at = Point::new(scores, thresholds);
    let mut remembered = memos(task);
    let (_, slope) = evaluate(task, &at, &mut remembered)?;
    let directions: Vec<Point> = (0..TRIES).map(|try_| at.direction(try_)).collect();
    let products = curvature(task, &remembered, &at, &directions);
    for (try_, (direction, product)) in directions.iter().zip(&products).enumerate() {
        if product.coordinates().any(|value| !value.is_finite()) {
            return Err("the curvature is not finite, or not written for every row".to_string());
        }
        let scale = product.largest();
        let alone = &curvature(task, &remembered, &at, std::slice::from_ref(direction))[0];
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
    check_diagonal(task, scores, &remembered)
}

/// Checks that the diagonal is that of the curvature, on the first few rows of each part, and that a constant added to all
/// scores is noticed where it counts.
fn check_diagonal<T: Curvature>(task: &T, scores: &[f64], remembered: &[T::Memo]) -> Result<(), String> {
    const ROWS: usize = 8;
    let still = vec![0.0; task.thresholds()];
    for (part, memo) in remembered.iter().enumerate() {
        let scores = &scores[task.rows(part)];
        let rows = scores.len();
        let mut diagonal = vec![f64::NAN; rows];
        task.diagonal(part, scores, memo, &mut diagonal);
        let along = |direction: &[f64]| {
            let mut out = vec![0.0; rows];
            task.curvature(part, scores, memo, 1, direction, &still, &mut out, &mut vec![0.0; still.len()]);
            out
        };
        let mut largest = 0.0f64;
        for row in 0..rows.min(ROWS) {
            let mut unit = vec![0.0; rows];
            unit[row] = 1.0;
            let (own, found) = (along(&unit)[row], diagonal[row]);
            largest = largest.max(own.abs());
            if (own - found).abs() > ROUNDING * own.abs().max(1.0) || found.is_nan() {
                return Err(format!("the diagonal of row {row} in part {part} is {found}, and the curvature's {own}"));
            }
        }
        let constant = along(&vec![1.0; rows]).iter().fold(0.0f64, |most, value| most.max(value.abs()));
        if task.only_differences_count() && constant > ROUNDING * (1.0 + largest * rows as f64) {
            return Err(format!("a constant added to the scores of part {part} changes the slopes by {constant}"));
        }
    }
    Ok(())
}

/// Checks that a task's constraints cost what its objective says: the sum over blocks of `cost · loss(margin −
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
