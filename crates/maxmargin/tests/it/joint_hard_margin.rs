//! The hard margin of several classes, and the setting that asks for a hard margin.

use crate::hard_margin::refused;
use crate::made::{Numbers, fit, graded, two_classes};
use crate::optimum::dense_row;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT};
use maxmargin::data::{Dataset, Dense, Labels, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Model, Scorer};
use maxmargin::run::Cancel;
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::Witness;
use maxmargin::task::{ClassWeight, CostMatrix, Intercept, Joint, JointForm, Multiclass, Objective, Place, Slopes};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::wish::Margin;

const CLASSES: usize = 4;

/// Four clouds around far corners, in turn.
fn apart(rows: usize, cols: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let mut values = Vec::new();
    for row in 0..rows {
        for column in 0..cols {
            let corner = if column % CLASSES == row % CLASSES { 3.0 } else { 0.0 };
            values.push(corner + numbers.next() - 0.5);
        }
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    let targets: Vec<f64> = (0..rows).map(|row| (row % CLASSES) as f64).collect();
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

fn hard(task: ClassifySettings) -> Settings {
    Settings { margin: Margin::Hard, tolerance: 1e-8, ..Settings::of(task) }
}

/// min ½‖w‖² [+ ½‖b‖²] over all constraints at once. One free constant is held at zero.
fn referee(data: &Dataset, intercept: Intercept, margin: impl Fn(usize, usize) -> f64) -> f64 {
    let (cols, rows) = (data.cols(), data.rows());
    let weights = cols * CLASSES;
    let variables = weights + CLASSES;
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    for row in 0..rows {
        let (own, values) = (row % CLASSES, dense_row(data, row));
        for class in (0..CLASSES).filter(|class| *class != own) {
            for (class, sign) in [(own, -1.0), (class, 1.0)] {
                for (column, value) in values.iter().enumerate() {
                    i.push(right.len());
                    j.push(column * CLASSES + class);
                    v.push(sign * value);
                }
                if intercept == Intercept::Penalised || (intercept == Intercept::Free && class > 0) {
                    i.push(right.len());
                    j.push(weights + class);
                    v.push(sign);
                }
            }
            right.push(-margin(own, class));
        }
    }
    let constraints = CscMatrix::new_from_triplets(right.len(), variables, i, j, v);
    let used = |at: usize| at < weights || intercept == Intercept::Penalised;
    let every: Vec<usize> = (0..variables).collect();
    let diagonal = (0..variables).map(|at| f64::from(u8::from(used(at)))).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let cones = [NonnegativeConeT(right.len())];
    let mut solver =
        DefaultSolver::new(&quadratic, &vec![0.0; variables], &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

#[test]
fn the_smallest_weights_that_reach_every_margin_are_those_of_the_referee() {
    let data = apart(40, 5, 3);
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        let optimum = referee(&data, intercept, |_, _| 1.0);
        for multiclass in [None, Some(Multiclass::Joint), Some(Multiclass::WestonWatkins)] {
            let settings = hard(ClassifySettings { intercept, multiclass, ..Default::default() });
            let model = fit(&data, &settings).model;
            let certificate = &model.certificate;
            assert!(certificate.converged && certificate.gap().unwrap() <= 1e-8, "{certificate:?}");
            assert!((certificate.objective - optimum).abs() <= 1e-6 * optimum, "{} {optimum}", certificate.objective);
            assert_eq!((certificate.c, certificate.lambda), (0.0, 0.0));
            assert!(matches!(model.witness, Some(Witness::Classes(_))));
            let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert_eq!(loaded.witness, model.witness);
            let found = loaded.verify(&data).unwrap();
            assert!(found.gap().unwrap() <= 1e-8);
            // Every margin is reached, and one exactly.
            let scores = model.scores(&data).unwrap();
            let mut least = f64::INFINITY;
            for (row, scores) in scores.chunks(CLASSES).enumerate() {
                for class in (0..CLASSES).filter(|class| *class != row % CLASSES) {
                    least = least.min(scores[row % CLASSES] - scores[class]);
                }
            }
            assert!((1.0 - 1e-12..1.0 + 1e-6).contains(&least), "{least}");
        }
    }
}

#[test]
fn more_constraints_than_a_round_takes_are_added_as_they_are_missed() {
    let data = apart(3000, 6, 7);
    for intercept in [Intercept::None, Intercept::Free] {
        let settings =
            Settings { scale: Scale::Standard, ..hard(ClassifySettings { intercept, ..Default::default() }) };
        let model = fit(&data, &settings).model;
        assert!(model.certificate.converged, "{:?}", model.certificate);
        assert!(model.certificate.passes > 1, "one round saw it all");
        assert!(model.verify(&data).unwrap().gap().unwrap() <= 1e-8);
    }
}

#[test]
fn rows_that_contradict_each_other_are_named() {
    let data = apart(40, 5, 3);
    // Row 5 becomes row 1 with another label.
    let mut values: Vec<f64> = (0..40).flat_map(|row| dense_row(&data, row)).collect();
    let first = values[..5].to_vec();
    values[25..30].copy_from_slice(&first);
    let matrix = Matrix::DenseF64(Dense::new(values, 40, 5).unwrap());
    let data = Dataset::new(matrix, data.targets().clone()).unwrap();
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        let error = refused(&data, &hard(ClassifySettings { intercept, ..Default::default() }));
        assert_eq!(error.code(), Code::NotSeparable);
        assert!(error.message().contains("2 rows prove it (row "), "{error}");
        assert!(error.remedy().unwrap().contains("soft margin"), "{error}");
    }
    let overlapping = two_classes(200, 3, true, 5);
    let joint = ClassifySettings { multiclass: Some(Multiclass::Joint), ..Default::default() };
    assert_eq!(refused(&overlapping, &hard(joint)).code(), Code::NotSeparable);
}

#[test]
fn altered_weights_and_witnesses_are_not_believed() {
    let data = apart(40, 5, 9);
    let model = fit(&data, &hard(ClassifySettings::default())).model;
    let mut short = model.clone();
    let Scorer::Linear { weights, .. } = &mut short.scorer else { panic!("weights") };
    weights.iter_mut().for_each(|weight| *weight *= 0.999);
    assert!(short.verify(&data).expect_err("short of the margin").message().contains("missed by"));
    for (at, alter) in [(0, -1.0), (1, -1.0)] {
        let mut other = model.clone();
        let Some(Witness::Classes(dual)) = &mut other.witness else { panic!("a dual point") };
        dual.values[at] *= alter;
        assert_eq!(other.verify(&data).expect_err("altered").code(), Code::CertificateMismatch);
    }
}

#[test]
fn both_names_of_a_hard_margin_mean_the_same() {
    let data = apart(40, 5, 4);
    let by_margin = hard(ClassifySettings::default());
    let by_solver = Settings { margin: Margin::Soft, ..by_margin.clone() }.with_solver(Solver::QuadraticProgram);
    let weights = |settings: &Settings| fit(&data, settings).model.scorer.weights().map(<[f64]>::to_vec);
    assert_eq!(weights(&by_margin), weights(&by_solver));
    let two = data.subset(&(0..40).filter(|row| row % 4 < 2).collect::<Vec<_>>()).unwrap();
    let weights = |settings: &Settings| fit(&two, settings).model.scorer.weights().map(<[f64]>::to_vec);
    assert_eq!(weights(&by_margin), weights(&by_solver));
}

#[test]
fn where_there_is_no_hard_margin_it_is_refused() {
    let data = apart(40, 5, 4);
    let plain = hard(ClassifySettings::default());
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(1.0), ..KernelSettings::default() };
    for (settings, says) in [
        (Settings { loss: Loss::Logistic, ..plain.clone() }, "the loss is logistic"),
        (Settings { loss: Loss::SquaredHinge, ..plain.clone() }, "the loss is squared-hinge"),
        (Settings { solver: Solver::Newton, ..plain.clone() }, "`newton` lets margins be missed"),
        (Settings { regularisation: Regularisation::Nu(0.5), ..plain.clone() }, "nu"),
        (Settings { kernel: gaussian, ..plain.clone() }, "a kernel model has none"),
        (Settings { margin: Margin::Hard, ..Settings::new(Task::OneClass) }, "no hard margin"),
    ] {
        let error = refused(&data, &settings);
        assert_eq!(error.code(), Code::BadSetting, "{error}");
        assert!(error.message().contains(says) && error.remedy().is_some(), "{error}");
    }
    let ranked = Settings { margin: Margin::Hard, loss: Loss::Hinge, ..Settings::new(Task::Rank) };
    let error = refused(&graded(3, 5, 2, 3, 1), &ranked);
    assert!(error.message().contains("explicit pairs"), "{error}");
}

/// The costs of the table, by true and predicted class.
fn cost(own: usize, class: usize) -> f64 {
    if own == class { 0.0 } else { 0.5 + ((3 * own + 2 * class) % 5) as f64 }
}

fn cost_matrix() -> CostMatrix {
    let mut text = String::from("label,0,1,2,3\n");
    for own in 0..CLASSES {
        let costs: Vec<String> = (0..CLASSES).map(|class| cost(own, class).to_string()).collect();
        text.push_str(&format!("{own},{}\n", costs.join(",")));
    }
    text.parse().unwrap()
}

#[test]
fn costs_are_the_margins_of_a_hard_margin_and_the_limit_of_soft_ones() {
    let data = apart(40, 5, 3);
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        let optimum = referee(&data, intercept, cost);
        let task = ClassifySettings { intercept, cost_matrix: Some(cost_matrix()), ..Default::default() };
        let model = fit(&data, &hard(task.clone())).model;
        let objective = model.certificate.objective;
        assert!((objective - optimum).abs() <= 1e-6 * optimum, "{objective} {optimum}");
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.settings, model.settings);
        loaded.verify(&data).unwrap();
        assert_eq!(loaded.mean_cost(&data).unwrap(), Some(0.0));
        // With a large C nothing is missed, and the soft margin is the hard one.
        for (multiclass, loss) in [(Multiclass::Joint, Loss::Hinge), (Multiclass::WestonWatkins, Loss::Hinge)] {
            let task = ClassifySettings { multiclass: Some(multiclass), ..task.clone() };
            let soft = Settings { loss, tolerance: 1e-6, regularisation: Regularisation::C(1e3), ..Settings::of(task) };
            let soft = fit(&data, &soft).model;
            let found = soft.certificate.objective;
            assert!((found - optimum).abs() <= 1e-4 * optimum, "{found} {optimum}");
            soft.verify(&data).unwrap();
        }
    }
}

#[test]
fn costs_of_one_are_the_usual_form_and_their_value_is_that_of_the_definition() {
    let data = apart(60, 3, 5);
    let labels = Labels::find(data.targets()).unwrap();
    let mut numbers = Numbers::new(8);
    let scores: Vec<f64> = (0..60 * CLASSES).map(|_| 4.0 * numbers.next() - 2.0).collect();
    let margins: Vec<f64> = (0..60).map(|row| 1.0 + (row % 3) as f64).collect();
    for (form, loss) in
        [(JointForm::Largest, Loss::Hinge), (JointForm::Sum, Loss::Hinge), (JointForm::Sum, Loss::SquaredHinge)]
    {
        let joint = Joint::on(&data, &labels, &ClassWeight::Equal, (form, loss), false, None).unwrap();
        let joint = joint.with_costs(Some(cost_matrix().of_classes(&labels).unwrap()));
        let joint = joint.with_margins(Some(margins.clone().into()));
        check_objective(&joint, &scores, &[]).unwrap();
        check_curvature(&joint, &scores, &[]).unwrap();
        if loss == Loss::Hinge {
            check_rounding(&joint, 0.4, &scores, &[]).unwrap();
        }
        let mut expected = 0.0;
        for (row, scores) in scores.chunks(CLASSES).enumerate() {
            let own = row % CLASSES;
            let missed = (0..CLASSES)
                .filter(|&class| class != own)
                .map(|class| (margins[row] * cost(own, class) + scores[class] - scores[own]).max(0.0));
            expected += match (form, loss) {
                (JointForm::Largest, _) => missed.fold(0.0, f64::max),
                (_, Loss::SquaredHinge) => missed.map(|missed| missed * missed).sum(),
                _ => missed.sum::<f64>(),
            };
        }
        let (cancel, mut slopes) = (Cancel::new(), vec![0.0; scores.len()]);
        let place = Place { part: 0, scores: &scores, thresholds: &[], cancel: &cancel };
        let mut memo = Default::default();
        let found = joint.evaluate(&place, Slopes { scores: &mut slopes, thresholds: &mut [] }, &mut memo).unwrap();
        assert!((found - expected).abs() <= 1e-12 * expected, "{form:?} {loss:?}: {found} {expected}");
    }
    let ones: CostMatrix = "label,0,1,2,3\n0,0,1,1,1\n1,1,0,1,1\n2,1,1,0,1\n3,1,1,1,0\n".parse().unwrap();
    let with = |cost_matrix: Option<CostMatrix>| {
        let task = ClassifySettings { cost_matrix, ..Default::default() };
        fit(&data, &Settings::of(task)).model.scorer.weights().map(<[f64]>::to_vec)
    };
    assert_eq!(with(Some(ones)), with(None));
}

#[test]
fn cost_matrices_that_do_not_fit_are_refused() {
    let data = apart(40, 5, 3);
    let with = |text: &str| ClassifySettings { cost_matrix: Some(text.parse().unwrap()), ..Default::default() };
    let fewer = with("label,0,1\n0,0,1\n1,1,0\n");
    assert_eq!(refused(&data, &Settings::of(fewer.clone())).code(), Code::UnknownLabel);
    let logistic = Settings { loss: Loss::Logistic, ..Settings::of(fewer) };
    assert_eq!(refused(&data, &logistic).code(), Code::BadSetting);
    let zero = with("label,0,1,2,3\n0,0,0,1,1\n1,1,0,1,1\n2,1,1,0,1\n3,1,1,1,0\n");
    assert!(refused(&data, &hard(zero)).message().contains("the cost matrix has a zero"));
}
