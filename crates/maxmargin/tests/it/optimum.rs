//! Solvers reach the optimum that an independent interior-point solver finds, and prove it.

use crate::made::{fit, graded, two_classes};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, ExponentialConeT, IPSolver, NonnegativeConeT};
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Scale, Scaling, Targets};
use maxmargin::error::{Code, Result};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::{CuttingPlane, LinearRisk, Stop, Witness};
use maxmargin::task::{ClassWeight, Intercept, Objective, PairWeight, Place, Slopes, TargetsAre};
use maxmargin::train::train;
use std::ops::Range;

/// One constraint of the referee: Σ coefficients·w + threshold·b ≥ margin − ξ with this cost. The logistic referee uses
/// margin 0.
pub(crate) struct Row {
    pub(crate) features: Vec<f64>,
    pub(crate) threshold: f64,
    pub(crate) margin: f64,
    pub(crate) cost: f64,
}

/// min ½‖w‖² [+ ½b²] + Σ cost·loss(ξ) by interior point.
pub(crate) fn referee(rows: &[Row], loss: Loss, intercept: Intercept) -> f64 {
    let (features, count) = (rows[0].features.len(), rows.len());
    let variables = features + 1 + count;
    let (mut i, mut j, mut v) = (vec![], vec![], vec![]);
    let mut push = |row: usize, column: usize, value: f64| {
        i.push(row);
        j.push(column);
        v.push(value);
    };
    let mut right = vec![];
    for (at, row) in rows.iter().enumerate() {
        for (column, &value) in row.features.iter().enumerate() {
            push(at, column, -value);
        }
        push(at, features, -row.threshold);
        push(at, features + 1 + at, -1.0);
        right.push(-row.margin);
    }
    for at in 0..count {
        push(count + at, features + 1 + at, -1.0);
        right.push(0.0);
    }
    let constraints = CscMatrix::new_from_triplets(2 * count, variables, i, j, v);
    let diagonal: Vec<f64> = (0..variables)
        .map(|at| match (at < features, at == features) {
            (true, _) => 1.0,
            (_, true) => f64::from(u8::from(intercept == Intercept::Penalised)),
            _ if loss == Loss::SquaredHinge => 2.0 * rows[at - features - 1].cost,
            _ => 0.0,
        })
        .collect();
    let quadratic = CscMatrix::new_from_triplets(
        variables,
        variables,
        (0..variables).collect(),
        (0..variables).collect(),
        diagonal,
    );
    let linear: Vec<f64> = (0..variables)
        .map(|at| if at > features && loss == Loss::Hinge { rows[at - features - 1].cost } else { 0.0 })
        .collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let mut solver =
        DefaultSolver::new(&quadratic, &linear, &constraints, &right, &[NonnegativeConeT(2 * count)], settings)
            .unwrap();
    solver.solve();
    solver.solution.obj_val
}

/// min ½‖w‖² [+ ½b²] + Σ cost·ln(1 + exp(−score)): t ≥ ln(1 + e^v) where e^(v−t) + e^(−t) ≤ 1, two exponential cones.
pub(crate) fn logistic_referee(rows: &[Row], intercept: Intercept) -> f64 {
    let (features, count) = (rows[0].features.len(), rows.len());
    let variables = features + 1 + 3 * count;
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let mut push = |row: usize, column: usize, value: f64| {
        i.push(row);
        j.push(column);
        v.push(value);
    };
    let at_row = |at: usize| features + 1 + 3 * at;
    for at in 0..count {
        push(at, at_row(at) + 1, 1.0);
        push(at, at_row(at) + 2, 1.0);
        right.push(1.0);
    }
    for (at, row) in rows.iter().enumerate() {
        let first = count + 6 * at;
        for (column, &value) in row.features.iter().enumerate() {
            push(first, column, value);
        }
        push(first, features, row.threshold);
        push(first, at_row(at), 1.0);
        push(first + 2, at_row(at) + 1, -1.0);
        push(first + 3, at_row(at), 1.0);
        push(first + 5, at_row(at) + 2, -1.0);
        right.extend([0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    }
    let constraints = CscMatrix::new_from_triplets(7 * count, variables, i, j, v);
    let diagonal: Vec<f64> = (0..variables)
        .map(|at| f64::from(u8::from(at < features || at == features && intercept == Intercept::Penalised)))
        .collect();
    let every: Vec<usize> = (0..variables).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let mut linear = vec![0.0; variables];
    rows.iter().enumerate().for_each(|(at, row)| linear[at_row(at)] = row.cost);
    let mut cones = vec![NonnegativeConeT(count)];
    cones.extend((0..2 * count).map(|_| ExponentialConeT()));
    let settings = DefaultSettingsBuilder::default().verbose(false).build().unwrap();
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

pub(crate) fn dense_row(data: &Dataset, row: usize) -> Vec<f64> {
    let mut values = vec![0.0; data.cols()];
    data.matrix().each_in_row(row, |column, value| values[column] = value);
    values
}

/// Scales by definition, independently of the library.
pub(crate) fn scaled_rows(data: &Dataset, scale: Scale) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = (0..data.rows()).map(|row| dense_row(data, row)).collect();
    let n = rows.len() as f64;
    for column in 0..data.cols() {
        let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        for row in &mut rows {
            row[column] = match scale {
                Scale::Standard => (row[column] - mean) / deviation,
                Scale::MinMax => (row[column] - low) / (high - low),
                Scale::MaxAbs => row[column] / high.max(-low),
                _ => row[column],
            };
        }
    }
    if scale == Scale::UnitRows {
        for row in &mut rows {
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            row.iter_mut().for_each(|v| *v /= if length > 0.0 { length } else { 1.0 });
        }
    }
    rows
}

fn classification_rows(data: &Dataset, scale: Scale, c: f64, balanced: bool, intercept: bool) -> Vec<Row> {
    let targets = data.targets().real().unwrap();
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    let n: f64 = (0..targets.len()).map(weight).sum();
    let positives: f64 = (0..targets.len()).filter(|&row| targets[row] > 0.0).map(weight).sum();
    scaled_rows(data, scale)
        .into_iter()
        .zip(targets)
        .enumerate()
        .map(|(at, (features, &y))| {
            let class = match (balanced, y > 0.0) {
                (false, _) => 1.0,
                (true, true) => n / (2.0 * positives),
                (true, false) => n / (2.0 * (n - positives)),
            };
            Row {
                features: features.into_iter().map(|x| y * x).collect(),
                threshold: if intercept { y } else { 0.0 },
                margin: 1.0,
                cost: c * class * weight(at),
            }
        })
        .collect()
}

pub(crate) fn assert_certified(data: &Dataset, settings: &Settings, optimum: f64) {
    let trained = fit(data, settings);
    let certificate = &trained.model.certificate;
    let bound = certificate.lower_bound.expect("a bound");
    let context = format!("{settings:?}: {certificate:?}, optimum {optimum}");
    assert!(certificate.converged, "{context}");
    assert!(bound <= optimum * (1.0 + 1e-7), "a bound above the optimum: {context}");
    assert!(certificate.objective >= optimum * (1.0 - 1e-7), "below the optimum: {context}");
    assert!((certificate.objective - optimum) / optimum <= settings.tolerance + 1e-7, "{context}");
    let found = trained.model.verify(data).expect("verifies");
    assert!((found.objective - certificate.objective).abs() <= 1e-12 * certificate.objective);
    assert!(found.lower_bound.expect("a bound") >= bound - 1e-12 * optimum.abs());
}

#[test]
fn classifiers_reach_the_referees_optimum_with_every_loss_intercept_and_solver() {
    for dense in [true, false] {
        let data = two_classes(120, 7, dense, 3);
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            for loss in Loss::ALL {
                for c in [0.02, 3.0] {
                    let rows = classification_rows(&data, Scale::None, c, false, intercept != Intercept::None);
                    let optimum = match loss {
                        Loss::Logistic => logistic_referee(&rows, intercept),
                        _ => referee(&rows, loss, intercept),
                    };
                    for solver in
                        [Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::InteriorPoint]
                    {
                        if (loss, solver) == (Loss::Logistic, Solver::InteriorPoint) {
                            continue;
                        }
                        let settings = Settings {
                            loss,
                            solver,
                            regularisation: Regularisation::C(c),
                            tolerance: 1e-6,
                            max_passes: 200_000,
                            ..Settings::new(Task::Classify).with_free(intercept)
                        };
                        assert_certified(&data, &settings, optimum);
                    }
                }
            }
        }
    }
}

#[test]
fn scaled_classifiers_solve_the_scaled_problem() {
    for dense in [true, false] {
        let data = two_classes(100, 6, dense, 5);
        for scale in [Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
            for intercept in [Intercept::None, Intercept::Free] {
                for loss in [Loss::Hinge, Loss::SquaredHinge] {
                    let rows = classification_rows(&data, scale, 0.5, false, intercept != Intercept::None);
                    let optimum = referee(&rows, loss, intercept);
                    let settings = Settings {
                        loss,
                        scale,
                        regularisation: Regularisation::C(0.5),
                        tolerance: 1e-6,
                        max_passes: 100_000,
                        ..Settings::new(Task::Classify).with_free(intercept)
                    };
                    assert_certified(&data, &settings, optimum);
                    let settings = Settings { solver: Solver::DualCoordinateDescent, ..settings };
                    assert_certified(&data, &settings, optimum);
                }
            }
        }
    }
}

#[test]
fn weights_of_rows_and_classes_enter_the_cost() {
    let data = two_classes(80, 5, true, 9);
    let data = data.with_weights((0..80).map(|row| f64::from(row % 4) * 0.5).collect::<Vec<_>>()).unwrap();
    let rows = classification_rows(&data, Scale::None, 1.0, true, true);
    let optimum = referee(&rows, Loss::Hinge, Intercept::Free);
    let task = ClassifySettings { class_weight: ClassWeight::Balanced, ..Default::default() };
    let settings = Settings { tolerance: 1e-6, max_passes: 100_000, ..Settings::of(task) };
    assert_certified(&data, &settings, optimum);
}

#[test]
fn lambda_and_c_are_one_quantity() {
    let data = two_classes(64, 4, true, 2);
    let by_c = fit(&data, &Settings { regularisation: Regularisation::C(0.5), ..Settings::new(Task::Classify) });
    let lambda = by_c.model.certificate.lambda;
    assert_eq!(lambda, 1.0 / (0.5 * 64.0));
    let by_lambda =
        fit(&data, &Settings { regularisation: Regularisation::Lambda(lambda), ..Settings::new(Task::Classify) });
    assert_eq!(by_lambda.model.certificate.objective, by_c.model.certificate.objective);
}

fn pair_rows(data: &Dataset, c: f64, pair_weight: PairWeight) -> Vec<Row> {
    let targets = data.targets().real().unwrap();
    let mut rows = Vec::new();
    for range in data.groups().unwrap().ranges() {
        let first = rows.len();
        for i in range.clone() {
            for j in range.clone() {
                if targets[i] > targets[j] {
                    let (better, worse) = (dense_row(data, i), dense_row(data, j));
                    let gap = if pair_weight == PairWeight::GradeGap { targets[i] - targets[j] } else { 1.0 };
                    let weight = gap * data.weights().map_or(1.0, |w| w[i] * w[j]);
                    rows.push(Row {
                        features: better.iter().zip(&worse).map(|(a, b)| a - b).collect(),
                        threshold: 0.0,
                        margin: 1.0,
                        cost: c * weight,
                    });
                }
            }
        }
        if pair_weight == PairWeight::PerQuery {
            let total: f64 = rows[first..].iter().map(|row| row.cost / c).sum();
            rows[first..].iter_mut().for_each(|row| row.cost /= total);
        }
    }
    rows
}

#[test]
fn rankers_reach_the_optimum_over_listed_pairs() {
    for levels in [0, 3] {
        for weighted in [false, true] {
            let mut data = graded(6, 9, 4, levels, 11);
            if weighted {
                data = data.with_weights((0..54).map(|row| 0.5 + f64::from(row % 3)).collect::<Vec<_>>()).unwrap();
            }
            for pair_weight in PairWeight::ALL {
                for c in [0.01, 2.0] {
                    let rows = pair_rows(&data, c, pair_weight);
                    for loss in [Loss::SquaredHinge, Loss::Hinge] {
                        let optimum = referee(&rows, loss, Intercept::None);
                        let settings = Settings {
                            loss,
                            regularisation: Regularisation::C(c),
                            tolerance: if loss == Loss::Hinge { 1e-6 } else { 1e-9 },
                            ..Settings::of(RankSettings { pair_weight, ..Default::default() })
                        };
                        assert_certified(&data, &settings, optimum);
                        assert_eq!(fit(&data, &settings).model.certificate.constraints, rows.len() as u64);
                        let settings = Settings { solver: Solver::CuttingPlane, ..settings };
                        assert_certified(&data, &settings, optimum);
                    }
                }
            }
        }
    }
}

#[test]
fn rankers_by_clicks_reach_the_optimum_over_listed_pairs() {
    for weighted in [false, true] {
        let mut data = graded(6, 9, 4, 3, 17);
        if weighted {
            data = data.with_weights((0..54).map(|row| 0.5 + f64::from(row % 3)).collect::<Vec<_>>()).unwrap();
        }
        let clicks: Vec<f64> = data.targets().real().unwrap().iter().map(|grade| 1.7 * grade).collect();
        let data = data.with_targets(maxmargin::data::Targets::Real(clicks.clone().into())).unwrap();
        for (pair_weight, c) in [(PairWeight::Equal, 0.01), (PairWeight::Equal, 1.0), (PairWeight::PerQuery, 3.0)] {
            let mut rows = Vec::new();
            for range in data.groups().unwrap().ranges() {
                let first = rows.len();
                for i in range.clone().filter(|i| clicks[*i] > 0.0) {
                    for j in range.clone().filter(|j| *j != i) {
                        let (better, worse) = (dense_row(&data, i), dense_row(&data, j));
                        rows.push(Row {
                            features: better.iter().zip(&worse).map(|(a, b)| a - b).collect(),
                            threshold: 0.0,
                            margin: 1.0,
                            cost: c * clicks[i] * data.weights().map_or(1.0, |w| w[i] * w[j]),
                        });
                    }
                }
                if pair_weight == PairWeight::PerQuery {
                    let total: f64 = rows[first..].iter().map(|row| row.cost / c).sum();
                    rows[first..].iter_mut().for_each(|row| row.cost /= total);
                }
            }
            for loss in [Loss::SquaredHinge, Loss::Hinge] {
                let optimum = referee(&rows, loss, Intercept::None);
                let settings = Settings {
                    loss,
                    regularisation: Regularisation::C(c),
                    tolerance: if loss == Loss::Hinge { 1e-6 } else { 1e-9 },
                    ..Settings::of(RankSettings { targets_are: TargetsAre::Clicks, pair_weight, ..Default::default() })
                };
                assert_certified(&data, &settings, optimum);
                assert_eq!(fit(&data, &settings).model.certificate.constraints, rows.len() as u64);
                assert_certified(&data, &Settings { solver: Solver::CuttingPlane, ..settings }, optimum);
            }
        }
    }
}

/// Hinge loss over listed pairs: a user's own task, without second derivatives and without constraints.
struct ListedPairs {
    groups: Vec<Range<usize>>,
    targets: Vec<f64>,
    cost: f64,
}

impl Objective for ListedPairs {
    type Memo = ();

    fn parts(&self) -> usize {
        self.groups.len()
    }

    fn rows(&self, part: usize) -> Range<usize> {
        self.groups[part].clone()
    }

    fn thresholds(&self) -> usize {
        0
    }

    fn evaluate(&self, at: &Place<'_>, slopes: Slopes<'_>, _memo: &mut ()) -> Result<f64> {
        let (scores, slope) = (at.scores, slopes.scores);
        let targets = &self.targets[self.groups[at.part].clone()];
        slope.fill(0.0);
        let mut value = 0.0;
        for better in 0..scores.len() {
            for worse in 0..scores.len() {
                let violation = 1.0 - (scores[better] - scores[worse]);
                if targets[better] > targets[worse] && violation > 0.0 {
                    value += self.cost * violation;
                    slope[better] -= self.cost;
                    slope[worse] += self.cost;
                }
            }
        }
        Ok(value)
    }
}

#[test]
fn cutting_planes_serve_any_objective_with_a_subgradient() {
    let data = graded(6, 9, 4, 3, 11);
    for c in [0.01, 2.0] {
        let optimum = referee(&pair_rows(&data, c, PairWeight::Equal), Loss::Hinge, Intercept::None);
        let groups = data.groups().unwrap().ranges().collect();
        let task = ListedPairs { groups, targets: data.targets().real().unwrap().to_vec(), cost: c };
        let cancel = Cancel::new();
        let scaling = Scaling::fit(Scale::None, &data, &cancel).unwrap();
        let design = scaling.apply(data.matrix(), data.groups()).unwrap();
        let mut risk = LinearRisk::new(&task, &design, false, &cancel);
        let solver = CuttingPlane { tolerance: 1e-8, max_passes: 5000 };
        let solution = solver.solve(&mut risk, data.cols(), None, &mut Silent, &cancel).unwrap();
        assert_eq!(solution.stop, Stop::Converged, "{:?}", solution.trace);
        assert!((solution.objective - optimum).abs() <= 1e-7 * optimum, "{} {optimum}", solution.objective);
        assert!(solution.lower_bound.unwrap() <= optimum * (1.0 + 1e-7));
    }
}

#[test]
fn conjugate_gradients_serve_where_features_are_many() {
    let data = graded(8, 12, 700, 4, 21);
    let settings = Settings { regularisation: Regularisation::C(0.1), tolerance: 1e-8, ..Settings::new(Task::Rank) };
    let trained = fit(&data, &settings);
    assert!(trained.model.certificate.converged, "{:?}", trained.trace);
    trained.model.verify(&data).expect("verifies");
}

/// Two pairs of close rows that are a thousand apart, with costs at which a lost digit matters. The optimum is computed
/// directly, and no bound may be above it.
#[test]
fn large_scores_do_not_swallow_small_differences() {
    let values = vec![0.0, 0.001, 1000.0, 1000.001];
    let matrix = Matrix::DenseF64(Dense::new(values, 4, 1).unwrap());
    let data = Dataset::new(matrix, Targets::Real(vec![0.0, 1.0, 2.0, 3.0].into()))
        .and_then(|data| data.with_groups(Groups::one(4)))
        .unwrap();
    for c in [1.0, 1e6, 1e8] {
        let settings = Settings { regularisation: Regularisation::C(c), tolerance: 1e-6, ..Settings::new(Task::Rank) };
        // There is one weight, so the sum over the six pairs is minimised directly.
        let differences = [0.001, 1000.0, 1000.001, 999.999, 1000.0, 0.001];
        let value = |w: f64| 0.5 * w * w + c * differences.iter().map(|d| (1.0 - w * d).max(0.0).powi(2)).sum::<f64>();
        let (mut low, mut high) = (0.0, 2000.0);
        for _ in 0..300 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if value(a) < value(b) { high = b } else { low = a }
        }
        let optimum = value(0.5 * (low + high));
        assert_certified(&data, &settings, optimum);
    }
}

#[test]
fn of_an_interior_point_rows_beyond_their_margins_are_no_support_vectors_and_no_end_is_worse_than_zero_weights() {
    let data = two_classes(300, 20, true, 8);
    let targets = data.targets().real().unwrap();
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let settings = Settings {
                loss,
                solver: Solver::InteriorPoint,
                regularisation: Regularisation::C(0.1),
                ..Settings::new(Task::Classify).with_free(intercept)
            };
            let model = fit(&data, &settings).model;
            let Some(Witness::Dual(alpha)) = &model.witness else { panic!("no dual point") };
            let scores = model.scores(&data).unwrap();
            let beyond = |row: &usize| targets[*row] * scores[*row] > 1.1;
            let beyond: Vec<usize> = (0..data.rows()).filter(beyond).collect();
            assert!(beyond.len() > 20 && beyond.iter().all(|&row| alpha[row] == 0.0), "{settings:?}");
            for max_passes in 0..3 {
                let ended = fit(&data, &Settings { max_passes, ..settings.clone() }).model;
                assert!(
                    ended.certificate.objective <= 0.1 * 300.0 * (1.0 + 1e-9),
                    "{settings:?}: {:?}",
                    ended.certificate
                );
            }
        }
    }
}

#[test]
fn a_stopped_run_claims_only_what_its_weights_prove() {
    let data = two_classes(200, 30, false, 8);
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        for solver in [Solver::Newton, Solver::DualCoordinateDescent, Solver::CuttingPlane, Solver::InteriorPoint] {
            for max_passes in 0..7 {
                let settings = Settings {
                    loss: Loss::SquaredHinge,
                    solver,
                    max_passes,
                    tolerance: 0.0,
                    scale: Scale::Standard,
                    regularisation: Regularisation::C(0.01),
                    ..Settings::new(Task::Classify).with_free(intercept)
                };
                let model = fit(&data, &settings).model;
                let model = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                model.verify(&data).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
            }
        }
    }
}

#[test]
fn the_bound_of_cutting_planes_never_falls_and_never_passes_the_optimum() {
    let data = two_classes(150, 9, true, 17);
    for intercept in [Intercept::None, Intercept::Free] {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let rows = classification_rows(&data, Scale::None, 1.0, false, intercept != Intercept::None);
            let optimum = referee(&rows, loss, intercept);
            let settings = Settings {
                loss,
                solver: Solver::CuttingPlane,
                tolerance: 1e-7,
                max_passes: 5000,
                ..Settings::new(Task::Classify).with_free(intercept)
            };
            let trace = fit(&data, &settings).trace;
            assert!(trace.len() > 2);
            for pair in trace.windows(2) {
                let (before, after) = (pair[0].lower_bound.unwrap(), pair[1].lower_bound.unwrap());
                assert!(before <= after && after <= optimum * (1.0 + 1e-9), "{before} {after} {optimum}");
                assert!(pair[0].objective >= pair[1].objective && pair[1].objective >= optimum * (1.0 - 1e-9));
            }
        }
    }
}

#[test]
fn far_away_features_are_centred_before_anything_else() {
    let near = two_classes(150, 3, true, 13);
    let shifted: Vec<f64> = (0..150).flat_map(|row| dense_row(&near, row)).map(|value| 1.7e9 + value).collect();
    let far = Dataset::new(Matrix::DenseF64(Dense::new(shifted, 150, 3).unwrap()), near.targets().clone()).unwrap();
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        let settings = Settings {
            loss,
            solver: Solver::DualCoordinateDescent,
            scale: Scale::Standard,
            max_passes: 100_000,
            ..Settings::new(Task::Classify)
        };
        let (a, b) = (fit(&near, &settings).model.certificate, fit(&far, &settings).model.certificate);
        assert!(a.converged && b.converged);
        assert!((a.objective - b.objective).abs() <= 2e-3 * a.objective, "{a:?} {b:?}");
    }
}

#[test]
fn rows_that_do_not_count_are_refused() {
    let data = two_classes(40, 3, true, 1).with_weights(vec![0.0; 40]).unwrap();
    let error = train(&data, &Settings::new(Task::Classify), None, &mut Silent, &Cancel::new()).expect_err("refused");
    assert_eq!(error.code(), Code::BadWeight);
    let huge = Matrix::DenseF64(Dense::new(vec![1e200, -1e200, 2e200, 5.0], 4, 1).unwrap());
    let huge = Dataset::new(huge, Targets::Real(vec![1.0, -1.0, 1.0, -1.0].into())).unwrap();
    let error = train(&huge, &Settings::new(Task::Classify), None, &mut Silent, &Cancel::new()).expect_err("refused");
    assert_eq!(error.code(), Code::Overflow);
}
