//! The checks for users' own tasks, run on our tasks and on tasks with one error each.

use crate::comparisons::with_ties;
use crate::made::{Numbers, graded, two_classes};
use crate::pairs::compared;
use maxmargin::error::Result;
use maxmargin::loss::Loss;
use maxmargin::task::{
    Binary, ClassWeight, Classes, Comparison, Curvature, Directions, Objective, Ordinal, OrdinalForm, PairWeight,
    Place, Ranking, Slopes, TiesAs, WeightAs,
};
use maxmargin::testing::{check_curvature, check_independent, check_objective};
use std::ops::Range;

/// Scores of about the size of a margin.
fn scores(rows: usize, seed: u64) -> Vec<f64> {
    let mut numbers = Numbers::new(seed);
    (0..rows).map(|_| 4.0 * (numbers.next() - 0.5)).collect()
}

#[test]
fn binary_conforms_with_both_losses_with_and_without_a_threshold() {
    // More rows than fit into one part.
    let data = two_classes(1500, 2, true, 1);
    let classes = Classes::find(data.targets(), None).unwrap();
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for (seed, thresholds) in [(2, vec![]), (3, vec![0.3]), (4, vec![-1.7])] {
            let task = Binary::new(&data, &classes, &ClassWeight::Balanced, loss, 0.7, !thresholds.is_empty()).unwrap();
            let scores = scores(data.rows(), seed);
            check_objective(&task, &scores, &thresholds).unwrap();
            check_curvature(&task, &scores, &thresholds).unwrap();
            check_independent(&task, &scores, &thresholds).unwrap();
        }
    }
}

#[test]
fn ranking_conforms_with_few_grades_many_and_weights() {
    for (levels, seed) in [(2, 1), (5, 2), (0, 3)] {
        let data = graded(6, 9, 2, levels, seed);
        let mut numbers = Numbers::new(seed + 10);
        let weights: Vec<f64> = (0..data.rows()).map(|_| (4.0 * numbers.next()).floor()).collect();
        for data in [data.clone(), data.with_weights(weights).unwrap()] {
            let task = Ranking::new(&data, Loss::SquaredHinge, PairWeight::Equal, 0.3).unwrap();
            let scores = scores(data.rows(), seed);
            check_objective(&task, &scores, &[]).unwrap();
            check_curvature(&task, &scores, &[]).unwrap();
        }
    }
}

#[test]
fn ratings_with_a_single_cut_conform_as_constraints_too() {
    let data = two_classes(1500, 2, true, 1);
    for form in OrdinalForm::ALL {
        for loss in Loss::ALL {
            let task = Ordinal::on(&data, form, &ClassWeight::Balanced, loss, None).unwrap().with_cost(0.7);
            let scores = scores(data.rows(), 6);
            check_objective(&task, &scores, &[0.4]).unwrap();
            check_curvature(&task, &scores, &[0.4]).unwrap();
            check_independent(&task, &scores, &[0.4]).unwrap();
        }
    }
}

#[test]
fn explicit_pairs_conform_with_every_loss_and_weighting() {
    let data = compared(40, 2, 90, 3);
    for loss in Loss::ALL {
        for way in WeightAs::ALL {
            if loss == Loss::Logistic && way == WeightAs::Margin {
                continue;
            }
            let task = Comparison::new(&data, TiesAs::Nothing, way, loss, 0.4).unwrap();
            let scores = scores(data.rows(), 5);
            check_objective(&task, &scores, &[]).unwrap();
            check_curvature(&task, &scores, &[]).unwrap();
            check_independent(&task, &scores, &[]).unwrap();
        }
    }
}

#[test]
fn comparisons_conform_whatever_ties_say() {
    let data = with_ties(40, 2, 90, 3);
    for loss in Loss::ALL {
        for (ties_as, thresholds) in [
            (TiesAs::Nothing, vec![]),
            (TiesAs::Contradiction, vec![]),
            (TiesAs::Threshold, vec![0.4]),
            (TiesAs::Threshold, vec![1.6]),
        ] {
            let task = Comparison::new(&data, ties_as, WeightAs::Slack, loss, 0.4).unwrap();
            let scores = scores(data.rows(), 5);
            check_objective(&task, &scores, &thresholds).unwrap();
            check_curvature(&task, &scores, &thresholds).unwrap();
            if (loss, ties_as) != (Loss::Logistic, TiesAs::Threshold) {
                check_independent(&task, &scores, &thresholds).unwrap();
            }
        }
    }
}

/// ½ Σ (s + b)², or the same with one error.
#[derive(Clone, Copy, PartialEq)]
enum Quadratic {
    Right,
    WrongSlope,
    Negative,
    Concave,
    OverwritesThresholds,
    WrongCurvature,
    Asymmetric,
    WrongDiagonal,
    MindsConstants,
    WrongCross,
    Remembers,
}

impl Objective for Quadratic {
    type Memo = Vec<f64>;

    fn parts(&self) -> usize {
        2
    }

    fn rows(&self, part: usize) -> Range<usize> {
        part * 3..(part + 1) * 3
    }

    fn thresholds(&self) -> usize {
        1
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut Vec<f64>) -> Result<f64> {
        let (slope, threshold_slope) = (slopes.scores, slopes.thresholds);
        let sums: Vec<f64> = at.scores.iter().map(|score| score + at.thresholds[0]).collect();
        let half_squares: f64 = sums.iter().map(|sum| 0.5 * sum * sum).sum();
        let (value, sign) = match self {
            Quadratic::Negative => (half_squares - 100.0, 1.0),
            Quadratic::Concave => (1e6 - half_squares, -1.0),
            Quadratic::Remembers => (half_squares + memo.len() as f64, 1.0),
            _ => (half_squares, 1.0),
        };
        memo.push(0.0);
        slope.iter_mut().zip(&sums).for_each(|(slope, sum)| *slope = sign * sum);
        let total: f64 = slope.iter().sum();
        match self {
            Quadratic::OverwritesThresholds => threshold_slope[0] = total,
            _ => threshold_slope[0] += total,
        }
        if *self == Quadratic::WrongSlope {
            slope[1] *= 1.001;
        }
        Ok(value)
    }
}

impl Curvature for Quadratic {
    fn diagonal(&self, _at: &Place<'_>, _memo: &Vec<f64>, out: &mut [f64]) -> Result<()> {
        out.fill(if *self == Quadratic::WrongDiagonal { 1.001 } else { 1.0 });
        Ok(())
    }

    fn only_differences_count(&self) -> bool {
        *self == Quadratic::MindsConstants
    }

    fn rows_are_separate(&self) -> bool {
        matches!(self, Quadratic::Right | Quadratic::WrongCross)
    }

    fn by_threshold(&self, at: &Place<'_>, memo: &Vec<f64>, out: &mut [f64]) -> Result<f64> {
        self.diagonal(at, memo, out)?;
        Ok(out.iter().sum::<f64>() * if *self == Quadratic::WrongCross { 1.001 } else { 1.0 })
    }

    fn curvature(&self, _at: &Place<'_>, _memo: &Vec<f64>, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        let factor = if *self == Quadratic::WrongCurvature { 1.001 } else { 1.0 };
        for (at, (changed, direction)) in out.scores.iter_mut().zip(along.scores).enumerate() {
            *changed = factor * (direction + along.thresholds[at % along.count]);
            if *self != Quadratic::Asymmetric {
                out.thresholds[at % along.count] += *changed;
            }
        }
        Ok(())
    }
}

#[test]
fn each_fault_is_named() {
    let point = [0.4, -1.3, 0.7, 2.1, -0.2, 1.6];
    let objective = |task: Quadratic| check_objective(&task, &point, &[0.25]);
    let curvature = |task: Quadratic| check_curvature(&task, &point, &[0.25]);
    objective(Quadratic::Right).unwrap();
    curvature(Quadratic::Right).unwrap();
    for (found, part) in [
        (objective(Quadratic::WrongSlope), "the slope by score 1 "),
        (objective(Quadratic::Negative), "not negative"),
        (objective(Quadratic::Concave), "not convex"),
        (objective(Quadratic::OverwritesThresholds), "threshold"),
        (objective(Quadratic::Remembers), "after an evaluation elsewhere"),
        (curvature(Quadratic::WrongCurvature), "differences of slopes"),
        (curvature(Quadratic::Asymmetric), "threshold 0"),
        (curvature(Quadratic::WrongDiagonal), "the diagonal of row 0"),
        (curvature(Quadratic::MindsConstants), "a constant added"),
        (curvature(Quadratic::WrongCross), "by threshold and threshold 0"),
        (check_objective(&Quadratic::Right, &point, &[]), "0 thresholds are given"),
        (check_objective(&Quadratic::Right, &point[..5], &[0.0]), "5 scores are given"),
    ] {
        let message = found.expect_err(part);
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}
