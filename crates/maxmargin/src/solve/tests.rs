//! What the solvers by parts depend on: Hessians formed whole and by products, line searches, and rounded hinges.

use super::linear_risk::LONG_PART;
use super::values::{primal_in_passing, primal_of_scores};
use super::{CurvedRisk, LinearRisk, Newton, Preconditioner, Risk};
use crate::data::{Dataset, Dense, Design, Groups, Matrix, Pairs, Scale, Scaling, Targets};
use crate::error::Result;
use crate::loss::Loss;
use crate::random::Random;
use crate::run::Cancel;
use crate::task::{
    Binary, ClassWeight, Classes, Comparison, Curvature, Directions, GradedComparison, Independent, Intercept,
    Objective, PairWeight, Place, Ranking, Roundable, Slopes, TiesAs, WeightAs,
};
use crate::testing::{check_curvature, check_objective};

const ROWS: usize = 60;
const COLS: usize = 12;

fn numbers(count: usize, stream: u64) -> Vec<f64> {
    let mut random = Random::new(0, 0x7e57, stream);
    (0..count).map(|_| random.normal()).collect()
}

/// Graded rows in six groups, with all features or two of them per row.
fn data(dense: bool) -> Dataset {
    let values = numbers(ROWS * COLS, 1);
    let matrix = if dense {
        Matrix::DenseF64(Dense::new(values, ROWS, COLS).expect("a rectangle"))
    } else {
        let row = |row: usize| vec![(row % 5, values[row]), (5 + row % 7, values[ROWS + row])];
        Matrix::from_rows(&(0..ROWS).map(row).collect::<Vec<_>>(), COLS).expect("columns rise")
    };
    assert_eq!(matrix.is_dense(), dense);
    let targets = (0..ROWS).map(|row| (row * 7 % 4) as f64).collect::<Vec<_>>();
    let starts: Vec<u64> = (0..=ROWS as u64 / 10).map(|group| 10 * group).collect();
    let names = (0..ROWS / 10).map(|group| group.to_string()).collect();
    let groups = Groups::new(starts, names).expect("valid");
    Dataset::new(matrix, Targets::Real(targets.into())).expect("valid").with_groups(groups).expect("valid")
}

fn binary(data: &Dataset, loss: Loss, intercept: bool) -> Binary {
    let signs: Vec<f64> = (0..ROWS).map(|row| if row % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let weights: Vec<f64> = (0..ROWS).map(|row| (row % 4) as f64).collect();
    let data = Dataset::new(data.matrix().clone(), Targets::Real(signs.into())).expect("valid");
    let data = data.with_weights(weights).expect("valid");
    let classes = Classes::find(data.targets(), None).expect("two classes");
    Binary::new(&data, &classes, &ClassWeight::Equal, loss, 0.7, intercept).expect("valid")
}

fn pairs(data: &Dataset, loss: Loss, weight_as: WeightAs) -> Comparison {
    let listed = (0..80u32).map(|pair| (pair * 13 % 60, (pair * 29 + 7) % 60));
    let (left, right): (Vec<u32>, Vec<u32>) = listed.filter(|(a, b)| a != b).unzip();
    let pairs = Pairs::new(left, right).expect("valid");
    let weights: Vec<f64> = (0..pairs.len()).map(|pair| (pair % 4) as f64).collect();
    let data = data.clone().with_pairs(pairs.with_weights(weights).expect("valid")).expect("valid");
    Comparison::new(&data, TiesAs::Nothing, weight_as, loss, 0.4).expect("valid")
}

fn ranking(data: &Dataset, loss: Loss) -> Ranking {
    Ranking::new(data, loss, PairWeight::Equal, 0.2).expect("pairs")
}

/// Compares the whole Hessian with its products with the axes.
fn assert_columns<T: Curvature>(task: &T, design: &Design, penalised: bool, context: &str) {
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(task, design, penalised, &cancel);
    let dim = risk.dim();
    let w: Vec<f64> = numbers(dim, 2).iter().map(|number| 0.2 * number).collect();
    risk.evaluate(&w, &mut vec![0.0; dim]).expect("a value");
    assert!(risk.has_exact_hessian(), "{context}");
    let hessian = risk.hessian().expect("a Hessian");
    let largest = hessian.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let curved = (0..dim).any(|row| hessian[row * dim..row * dim + row].iter().any(|&value| value != 0.0));
    assert!(curved, "{context}: nothing to compare");
    for column in 0..dim {
        let (mut axis, mut product) = (vec![0.0; dim], vec![0.0; dim]);
        axis[column] = 1.0;
        risk.hessian_times(&axis, &mut product).expect("a product");
        for row in 0..dim {
            let (whole, product) = (hessian[row * dim + column], product[row]);
            assert!((whole - product).abs() <= 1e-11 * largest, "{context}: {row}, {column}: {whole} {product}");
        }
    }
    if task.rows_are_separate() {
        // A sample of all rows gives the whole Hessian, except for the diagonal of a free threshold.
        let sampled = risk.sampled_hessian(ROWS).expect("a Hessian");
        let lower = |at: &usize| at % dim <= at / dim;
        for at in (0..dim * dim).filter(lower) {
            let (whole, sampled) = (hessian[at], sampled[at]);
            let free = at == dim * dim - 1 && risk.penalised() < dim;
            let whole = whole + f64::from(u8::from(free));
            assert!((whole - sampled).abs() <= 1e-11 * largest, "{context}: {at}: {whole} {sampled}");
        }
        // With any number of rows, a sample has as many as allowed.
        for most in [1, 7, 20] {
            let taken: usize = risk.curved_sample(most).expect("a sample").iter().map(Vec::len).sum();
            assert_eq!(taken, most, "{context}");
        }
    }
}

/// The sum of the diagonal without the penalty, of a sample.
fn sampled_trace<T: Curvature>(task: &T, design: &Design, most: usize) -> f64 {
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(task, design, true, &cancel);
    let dim = risk.dim();
    risk.evaluate(&vec![0.0; dim], &mut vec![0.0; dim]).expect("a value");
    let sampled = risk.sampled_hessian(most).expect("a Hessian");
    (0..dim).map(|at| sampled[at * dim + at] - 1.0).sum()
}

#[test]
fn a_sample_approximates_all_rows() {
    let data = data(true);
    let design = Scaling::default().apply(data.matrix(), None).expect("valid");
    let (classes, queries) = (binary(&data, Loss::SquaredHinge, true), ranking(&data, Loss::SquaredHinge));
    for most in [ROWS / 2, ROWS / 6, 7] {
        for (whole, part) in [
            (sampled_trace(&classes, &design, ROWS), sampled_trace(&classes, &design, most)),
            (sampled_trace(&queries, &design, ROWS), sampled_trace(&queries, &design, most)),
        ] {
            assert!(whole != part && (0.4..2.5).contains(&(part / whole)), "{most}: {part} for {whole}");
        }
    }
}

#[test]
fn for_a_ranking_a_sample_of_all_rows_gives_the_covariance_within_queries() {
    let data = data(true);
    let design = Scaling::default().apply(data.matrix(), None).expect("valid");
    let task = ranking(&data, Loss::SquaredHinge);
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(&task, &design, false, &cancel);
    let w = numbers(COLS, 5);
    risk.evaluate(&w, &mut [0.0; COLS]).expect("a value");
    let Ok(Preconditioner::Matrix(whole)) = risk.preconditioner() else { panic!("a matrix") };
    let sampled = risk.sampled_hessian(ROWS).expect("a Hessian");
    let largest = whole.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    for row in 0..COLS {
        for column in 0..=row {
            let (whole, sampled) = (whole[row * COLS + column], sampled[row * COLS + column]);
            assert!((whole - sampled).abs() <= 1e-11 * largest, "{row}, {column}: {whole} {sampled}");
        }
    }
}

#[test]
fn the_hessian_has_the_columns_that_its_products_give() {
    for dense in [true, false] {
        let data = data(dense);
        for scale in [Scale::None, Scale::Standard, Scale::MaxAbs, Scale::UnitRows] {
            let scaling = Scaling::fit(scale, &data, &Cancel::new()).expect("valid");
            let design = scaling.apply(data.matrix(), None).expect("valid");
            let context = format!("dense: {dense}, {scale:?}");
            for (intercept, penalised) in [(false, false), (true, false), (true, true)] {
                let squared = binary(&data, Loss::SquaredHinge, intercept);
                assert_columns(&squared, &design, penalised, &format!("{context}, classes"));
                let rounded = binary(&data, Loss::Hinge, intercept).rounded(1.5);
                assert_columns(&rounded, &design, penalised, &format!("{context}, rounded classes"));
            }
            let squared = pairs(&data, Loss::SquaredHinge, WeightAs::Slack);
            assert_columns(&squared, &design, false, &format!("{context}, pairs"));
            let rounded = pairs(&data, Loss::Hinge, WeightAs::Margin).rounded(1.5);
            assert_columns(&rounded, &design, false, &format!("{context}, rounded pairs"));
            assert_columns(&ranking(&data, Loss::SquaredHinge), &design, false, &format!("{context}, queries"));
            let rounded = ranking(&data, Loss::Hinge).rounded(1.5);
            assert_columns(&rounded, &design, false, &format!("{context}, rounded queries"));
        }
    }
}

#[test]
fn rounded_hinges_conform() {
    let data = data(true);
    for stream in 3..6 {
        let scores = numbers(ROWS, stream);
        for (intercept, thresholds) in [(false, &[][..]), (true, &[0.3][..])] {
            let task = binary(&data, Loss::Hinge, intercept).rounded(0.3);
            check_objective(&task, &scores, thresholds).expect("classes");
            check_curvature(&task, &scores, thresholds).expect("classes");
        }
        for way in WeightAs::ALL {
            let task = pairs(&data, Loss::Hinge, way).rounded(0.3);
            check_objective(&task, &scores, &[]).expect("pairs");
            check_curvature(&task, &scores, &[]).expect("pairs");
        }
        let task = ranking(&data, Loss::Hinge).rounded(0.3);
        check_objective(&task, &scores, &[]).expect("queries");
        check_curvature(&task, &scores, &[]).expect("queries");
    }
}

/// Compares the sums of the rounded hinge with a sum over the constraints.
fn assert_rounding<T: Independent + Roundable>(task: &T, width: f64, scores: &[f64], thresholds: &[f64]) {
    let rounded = task.rounded(width);
    let (mut hinge, mut excess, mut inside) = (0.0, 0.0, 0);
    for block in 0..task.blocks() {
        let c = task.constraint(block);
        let violation = c.violation(scores, thresholds.first().copied().unwrap_or(0.0));
        hinge += c.cost * violation.max(0.0);
        if c.cost > 0.0 {
            let alpha = c.cost * (violation / width).clamp(0.0, 1.0);
            excess += width * alpha * alpha / (2.0 * c.cost);
            inside += u32::from(alpha > 0.0 && alpha < c.cost);
        }
    }
    assert!(inside > 0, "no constraint on the rounded piece");
    let mut found = [0.0; 3];
    for part in 0..rounded.parts() {
        let rows = rounded.rows(part);
        let (mut slope, mut by_threshold) = (vec![0.0; rows.len()], vec![0.0; thresholds.len()]);
        let mut memo = T::Memo::default();
        let at = Place { part, scores: &scores[rows], thresholds, cancel: &Cancel::new() };
        let slopes = Slopes { scores: &mut slope, thresholds: &mut by_threshold };
        rounded.evaluate(&at, slopes, &mut memo).expect("a value");
        found.iter_mut().zip(rounded.rounding(part, &memo)).for_each(|(sum, term)| *sum += term);
    }
    let [found_hinge, found_excess, error] = found;
    assert!((found_hinge - hinge).abs() <= 1e-13 * hinge, "{found_hinge} {hinge}");
    assert!((found_excess - excess).abs() <= 1e-13 * excess, "{found_excess} {excess}");
    assert!(error > 0.0 && error <= 1e-13 * (hinge + excess), "{error}");
}

#[test]
fn the_sums_of_a_rounded_hinge_are_those_of_its_constraints() {
    let data = data(true);
    for stream in 3..6 {
        let scores = numbers(ROWS, stream);
        for width in [0.3, 2.0] {
            assert_rounding(&binary(&data, Loss::Hinge, false), width, &scores, &[]);
            assert_rounding(&binary(&data, Loss::Hinge, true), width, &scores, &[0.4]);
            for way in WeightAs::ALL {
                assert_rounding(&pairs(&data, Loss::Hinge, way), width, &scores, &[]);
            }
        }
    }
}

#[test]
fn the_margin_scale_is_the_largest_margin_that_counts() {
    let data = data(true);
    assert_eq!(binary(&data, Loss::Hinge, true).margin_scale(), 1.0);
    assert_eq!(pairs(&data, Loss::Hinge, WeightAs::Slack).margin_scale(), 1.0);
    assert_eq!(pairs(&data, Loss::Hinge, WeightAs::Margin).margin_scale(), 3.0);
}

/// Compares values and slopes along a line with evaluations at its points.
fn assert_line<T: Objective>(task: &T, design: &Design, penalised: bool, context: &str) {
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(task, design, penalised, &cancel);
    let dim = risk.dim();
    let w: Vec<f64> = numbers(dim, 2).iter().map(|number| 0.2 * number).collect();
    let mut all = numbers(dim, 3);
    // After a line along which all scores change, one along which none does.
    let mut directions = vec![all.clone()];
    all[..design.cols()].fill(0.0);
    directions.push(all);
    let mut gradient = vec![0.0; dim];
    for direction in directions {
        risk.evaluate(&w, &mut gradient).expect("a value");
        risk.line(&direction).expect("a line");
        let steps = [0.0, 0.7, -1.3];
        let found = steps.map(|step| risk.along(step).expect("a value"));
        for (step, (value, slope)) in steps.into_iter().zip(found) {
            let there: Vec<f64> = w.iter().zip(&direction).map(|(w, d)| w + step * d).collect();
            let expected = risk.evaluate(&there, &mut gradient).expect("a value");
            let size: f64 = gradient.iter().zip(&direction).map(|(g, d)| (g * d).abs()).sum();
            let expected_slope: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
            assert!((value - expected).abs() <= 1e-5 * expected, "{context}, {step}: {value} {expected}");
            assert!(
                (slope - expected_slope).abs() <= 1e-5 * (size + expected),
                "{context}, {step}: {slope} {expected_slope}"
            );
        }
    }
}

#[test]
fn values_along_a_line_equal_evaluations() {
    for dense in [true, false] {
        let data = data(dense);
        for scale in [Scale::None, Scale::Standard] {
            let scaling = Scaling::fit(scale, &data, &Cancel::new()).expect("valid");
            let design = scaling.apply(data.matrix(), None).expect("valid");
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                let context = format!("dense: {dense}, {scale:?}, {loss:?}");
                for (intercept, penalised) in [(false, false), (true, false), (true, true)] {
                    assert_line(&binary(&data, loss, intercept), &design, penalised, &format!("{context}, classes"));
                }
                assert_line(&pairs(&data, loss, WeightAs::Slack), &design, false, &format!("{context}, pairs"));
                assert_line(&ranking(&data, loss), &design, false, &format!("{context}, queries"));
                let graded = GradedComparison::new(&data, loss, 0.3).expect("pairs");
                assert_line(&graded, &design, false, &format!("{context}, grades"));
            }
        }
    }
}

/// Rows of two features in groups of these lengths, the second feature far from zero; every fifth group has one grade.
fn grouped(lengths: &[usize]) -> (Dataset, Design) {
    let rows: usize = lengths.iter().sum();
    let mut values = numbers(2 * rows, 4);
    values.iter_mut().skip(1).step_by(2).for_each(|value| *value += 1e5);
    let mut starts = vec![0u64];
    lengths.iter().for_each(|length| starts.push(starts[starts.len() - 1] + *length as u64));
    let grade = |group: usize, row: usize| if group % 5 == 4 { 1.0 } else { (row % 3) as f64 };
    let targets = lengths.iter().enumerate().flat_map(|(group, &length)| (0..length).map(move |row| grade(group, row)));
    let targets = Targets::Real(targets.collect::<Vec<f64>>().into());
    let names = (0..lengths.len()).map(|group| group.to_string()).collect();
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 2).expect("a rectangle"));
    let data = Dataset::new(matrix, targets).expect("valid");
    let data = data.with_groups(Groups::new(starts, names).expect("valid")).expect("valid");
    let design = Scaling::default().apply(data.matrix(), None).expect("valid");
    (data, design)
}

#[test]
fn lines_through_long_and_short_queries_keep_small_differences_of_large_scores() {
    let (data, design) = grouped(&[3, 5000, 2, LONG_PART + 4321, 40, 4096, 7, 1, 8192, 30]);
    assert_line(&ranking(&data, Loss::Hinge).with_cost(1e-6), &design, false, "hinge");
    assert_line(&ranking(&data, Loss::SquaredHinge).with_cost(1e-9), &design, false, "squared hinge");
}

#[test]
fn scores_of_all_rows_are_known_if_parts_hold_them_in_order() {
    let (data, design) = grouped(&[30, 20, 9, 8, 11]);
    let cancel = Cancel::new();
    let w = [0.3, -0.1, 0.2];
    let task = ranking(&data, Loss::Hinge);
    let mut risk = LinearRisk::new(&task, &design, false, &cancel);
    risk.evaluate(&w[..2], &mut [0.0; 2]).expect("a value");
    assert!(risk.row_scores().is_none(), "the last group has no pair");
    let signs: Vec<f64> = (0..data.rows()).map(|row| (row % 2) as f64).collect();
    let data = Dataset::new(data.matrix().clone(), Targets::Real(signs.into())).expect("valid");
    let classes = Classes::find(data.targets(), None).expect("two classes");
    let task = Binary::new(&data, &classes, &ClassWeight::Equal, Loss::Hinge, 0.7, true).expect("valid");
    let mut risk = LinearRisk::new(&task, &design, false, &cancel);
    risk.evaluate(&w, &mut [0.0; 3]).expect("a value");
    assert_eq!(risk.row_scores(), Some(&design.all_scores(&w[..2])[..]));
}

#[test]
fn the_value_computed_by_chunks_is_that_of_the_scores_to_the_last_bit() {
    let (data, design) = grouped(&[4095, 1, 1, 5000]);
    let signs: Vec<f64> = (0..data.rows()).map(|row| (row * 7 % 3 % 2) as f64).collect();
    let data = Dataset::new(data.matrix().clone(), Targets::Real(signs.into())).expect("valid");
    let classes = Classes::find(data.targets(), None).expect("two classes");
    let w = [0.3, -1e-6];
    let scores = design.all_scores(&w);
    for loss in [Loss::Hinge, Loss::SquaredHinge, Loss::Logistic] {
        let task = Binary::new(&data, &classes, &ClassWeight::Equal, loss, 0.7, true).expect("valid");
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let held = primal_of_scores(&task, &w, &scores, 0.2, intercept);
            assert_eq!(primal_in_passing(&task, &design, &w, 0.2, intercept), held, "{loss:?}");
        }
    }
}

/// A task that raises the cancel flag in the middle of its n-th evaluation.
struct Ending<'a> {
    task: GradedComparison,
    left: std::sync::atomic::AtomicUsize,
    cancel: &'a Cancel,
}

impl Objective for Ending<'_> {
    type Memo = <GradedComparison as Objective>::Memo;

    fn parts(&self) -> usize {
        self.task.parts()
    }

    fn rows(&self, part: usize) -> std::ops::Range<usize> {
        self.task.rows(part)
    }

    fn thresholds(&self) -> usize {
        self.task.thresholds()
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, memo: &mut Self::Memo) -> Result<f64> {
        use std::sync::atomic::Ordering::Relaxed;
        if self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
            self.cancel.raise();
        }
        self.task.evaluate(at, slopes, memo)
    }
}

impl Curvature for Ending<'_> {
    fn diagonal(&self, at: &Place<'_>, memo: &Self::Memo, out: &mut [f64]) -> Result<()> {
        self.task.diagonal(at, memo, out)
    }

    fn only_differences_count(&self) -> bool {
        self.task.only_differences_count()
    }

    fn curvature(&self, at: &Place<'_>, memo: &Self::Memo, along: &Directions<'_>, out: Slopes<'_>) -> Result<()> {
        self.task.curvature(at, memo, along, out)
    }
}

#[test]
fn a_cancel_at_any_moment_does_not_panic() {
    let data = data(true);
    let design = Scaling::default().apply(data.matrix(), None).expect("valid");
    let parts = GradedComparison::new(&data, Loss::SquaredHinge, 0.3).expect("pairs").parts();
    let mut ended = 0;
    for left in 0..80 * parts {
        let cancel = Cancel::new();
        let task = GradedComparison::new(&data, Loss::SquaredHinge, 0.3).expect("pairs");
        let task = Ending { task, left: left.into(), cancel: &cancel };
        let mut risk = LinearRisk::new(&task, &design, false, &cancel);
        let newton = Newton { tolerance: 1e-9, max_passes: 20 };
        let found = newton.solve(&mut risk, design.cols(), None, &mut crate::run::Silent, &cancel);
        ended += usize::from(cancel.is_raised());
        assert!(cancel.is_raised() || found.is_ok());
    }
    assert!(ended > 10 * parts, "{ended} of {}", 80 * parts);
}
