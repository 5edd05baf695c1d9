//! Classifiers of several classes: every form against its definition, an independent solver and the binary classifier.

use crate::made::{Numbers, fit};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT};
use maxmargin::data::{Dataset, Dense, Labels, Matrix, Scale, Scaling, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver, Task, TaskSettings};
use maxmargin::solve::{CurvedRisk, LinearRisk, Risk};
use maxmargin::task::{ClassWeight, Curvature, Intercept, Joint, JointForm, LearningTask, Multiclass, Roundable};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::train::train;

const FORMS: [(Multiclass, Loss, JointForm); 4] = [
    (Multiclass::Joint, Loss::Hinge, JointForm::Largest),
    (Multiclass::WestonWatkins, Loss::Hinge, JointForm::Sum),
    (Multiclass::WestonWatkins, Loss::SquaredHinge, JointForm::Sum),
    (Multiclass::Joint, Loss::Logistic, JointForm::Softmax),
];

pub(crate) const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised];

const C: f64 = 0.5;

/// Overlapping classes with numbers from 0 on, every `classes` rows in turn.
pub(crate) fn numbered(rows: usize, cols: usize, classes: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let centres: Vec<f64> = (0..classes * cols).map(|_| 2.0 * numbers.next()).collect();
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let class = row % classes;
        values.extend((0..cols).map(|column| centres[class * cols + column] + 1.5 * (numbers.next() - 0.5)));
        targets.push(class as f64);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

/// The same rows with words as labels, which do not sort like the numbers.
pub(crate) fn worded(data: &Dataset) -> Dataset {
    let codes: Vec<u32> = data.targets().real().unwrap().iter().map(|&class| [2, 0, 3, 1][class as usize]).collect();
    let names = ["east", "north", "south", "west"].into_iter().collect();
    data.clone().with_targets(Targets::Labels { names, codes: codes.into() }).unwrap()
}

pub(crate) fn task(multiclass: Multiclass, intercept: Intercept) -> ClassifySettings {
    ClassifySettings { intercept, multiclass: Some(multiclass), ..ClassifySettings::default() }
}

pub(crate) fn settings(task: ClassifySettings, loss: Loss) -> Settings {
    Settings { loss, regularisation: Regularisation::C(C), tolerance: 1e-7, ..Settings::of(task) }
}

pub(crate) fn objective(model: &Model) -> f64 {
    model.certificate.objective
}

#[track_caller]
pub(crate) fn assert_close(one: f64, other: f64, relative: f64, context: &str) {
    assert!((one - other).abs() <= relative * one.abs().max(other.abs()), "{context}: {one} is not {other}");
}

#[test]
fn every_form_conforms_with_and_without_constants() {
    // More rows than fit into one part.
    let data = numbered(1100, 1, 4, 1);
    let labels = Labels::find(data.targets()).unwrap();
    let weights = ClassWeight::ByLabel([("1".to_string(), 2.5), ("3".to_string(), 0.0)].into());
    for (_, loss, form) in FORMS {
        for (seed, constants) in [(2, false), (3, true)] {
            let mut numbers = Numbers::new(seed);
            let mut draw = |count: usize| (0..count).map(|_| 3.0 * (numbers.next() - 0.5)).collect::<Vec<f64>>();
            let mut joint = Joint::on(&data, &labels, &weights, (form, loss), constants, None).unwrap();
            joint.set_cost(0.7);
            let (scores, free) = (draw(1100 * 4), draw(if constants { 4 } else { 0 }));
            check_objective(&joint, &scores, &free).unwrap();
            check_curvature(&joint, &scores, &free).unwrap();
            if loss == Loss::Hinge {
                check_rounding(&joint, 0.4, &scores, &free).unwrap();
                check_rounding(&joint, 2.0, &scores, &free).unwrap();
            }
        }
    }
}

#[test]
fn the_value_is_the_sum_over_all_rows_and_classes() {
    let data = numbered(30, 3, 4, 2);
    let labels = Labels::find(data.targets()).unwrap();
    let design = Scaling::fit(Scale::None, &data, &Cancel::new()).unwrap().apply(data.matrix(), None).unwrap();
    let mut numbers = Numbers::new(9);
    let point: Vec<f64> = (0..16).map(|_| numbers.next() - 0.5).collect();
    for (_, loss, form) in FORMS {
        let joint = Joint::on(&data, &labels, &ClassWeight::Equal, (form, loss), true, None).unwrap();
        let cancel = Cancel::new();
        let mut risk = LinearRisk::new(&joint, &design, true, &cancel);
        let found = risk.evaluate(&point, &mut [0.0; 16]).unwrap();
        let mut expected = 0.5 * point.iter().map(|w| w * w).sum::<f64>();
        for row in 0..30 {
            let mut scores = point[12..].to_vec();
            data.matrix().each_in_row(row, |column, value| {
                (0..4).for_each(|class| scores[class] += value * point[column * 4 + class]);
            });
            let right = row % 4;
            let violations = || (0..4).filter(|&m| m != right).map(|m| (1.0 + scores[m] - scores[right]).max(0.0));
            expected += match (form, loss) {
                (JointForm::Largest, _) => violations().fold(0.0, f64::max),
                (JointForm::Sum, Loss::SquaredHinge) => violations().map(|v| v * v).sum(),
                (JointForm::Sum, _) => violations().sum(),
                (JointForm::Softmax, _) => scores.iter().map(|s| (s - scores[right]).exp()).sum::<f64>().ln(),
            };
        }
        assert_close(found, expected, 1e-12, &format!("{form:?}, {loss:?}"));
    }
}

/// The Hessian at a point, its products with all axes, and differences of the gradient agree.
fn check_hessian(joint: &impl Curvature, data: &Dataset, penalised: bool, context: &str) {
    let design = Scaling::fit(Scale::Standard, data, &Cancel::new()).unwrap().apply(data.matrix(), None).unwrap();
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(joint, &design, penalised, &cancel);
    assert!(risk.has_exact_hessian(), "{context}");
    let dim = risk.dim();
    let mut numbers = Numbers::new(5);
    let point: Vec<f64> = (0..dim).map(|_| numbers.next() - 0.5).collect();
    let step = 1e-6;
    for axis in 0..dim {
        let mut gradients = [vec![0.0; dim], vec![0.0; dim]];
        for (gradient, step) in gradients.iter_mut().zip([step, -step]) {
            let mut moved = point.clone();
            moved[axis] += step;
            risk.evaluate(&moved, gradient).unwrap();
        }
        risk.evaluate(&point, &mut vec![0.0; dim]).unwrap();
        let hessian = risk.hessian().unwrap();
        let (mut unit, mut product) = (vec![0.0; dim], vec![0.0; dim]);
        unit[axis] = 1.0;
        risk.hessian_times(&unit, &mut product).unwrap();
        for other in 0..dim {
            let found = hessian[axis * dim + other];
            let slope = (gradients[0][other] - gradients[1][other]) / (2.0 * step);
            let context = format!("{context}: {axis}, {other}: {found}, {} and {slope}", product[other]);
            assert!((found - product[other]).abs() <= 1e-10 * (1.0 + found.abs()), "{context}");
            assert!((found - slope).abs() <= 1e-4 * (1.0 + found.abs()), "{context}");
        }
    }
}

#[test]
fn the_hessian_by_pairs_of_classes_is_that_by_products_and_by_differences() {
    let data = numbered(60, 3, 4, 3);
    let labels = Labels::find(data.targets()).unwrap();
    for (_, loss, form) in FORMS {
        for (constants, penalised) in [(false, false), (true, false), (true, true)] {
            let joint = Joint::on(&data, &labels, &ClassWeight::Balanced, (form, loss), constants, None).unwrap();
            let context = format!("{form:?}, {loss:?}, {constants}, {penalised}");
            match loss {
                Loss::Hinge => check_hessian(&joint.rounded(0.7), &data, penalised, &context),
                _ => check_hessian(&joint, &data, penalised, &context),
            }
        }
    }
}

/// min ½‖w‖² + C Σ loss(ξ) by interior point, with a line for every constraint.
pub(crate) fn referee(data: &Dataset, form: JointForm, loss: Loss, intercept: Intercept) -> f64 {
    let (rows, cols, classes) = (data.rows(), data.cols(), 4);
    let constants = if intercept == Intercept::None { 0 } else { classes };
    let (weights, dim) = (cols * classes, cols * classes + constants);
    let slack_of = |row: usize, number: usize| if form == JointForm::Largest { row } else { row * 3 + number };
    let slacks = if form == JointForm::Largest { rows } else { rows * 3 };
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let mut push = |line: usize, column: usize, value: f64| {
        i.push(line);
        j.push(column);
        v.push(value);
    };
    for row in 0..rows {
        let own = row % classes;
        for (number, other) in (0..classes).filter(|&other| other != own).enumerate() {
            let line = right.len();
            data.matrix().each_in_row(row, |column, value| {
                push(line, column * classes + own, -value);
                push(line, column * classes + other, value);
            });
            if constants > 0 {
                push(line, weights + own, -1.0);
                push(line, weights + other, 1.0);
            }
            push(line, dim + slack_of(row, number), -1.0);
            right.push(-1.0);
        }
    }
    for slack in 0..slacks {
        push(right.len(), dim + slack, -1.0);
        right.push(0.0);
    }
    let variables = dim + slacks;
    let constraints = CscMatrix::new_from_triplets(right.len(), variables, i, j, v);
    let squared = loss == Loss::SquaredHinge;
    let diagonal = (0..variables)
        .map(|at| match at {
            _ if at < weights || (at < dim && intercept == Intercept::Penalised) => 1.0,
            _ if at >= dim && squared => 2.0 * C,
            _ => 0.0,
        })
        .collect();
    let every: Vec<usize> = (0..variables).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let linear: Vec<f64> = (0..variables).map(|at| if at >= dim && !squared { C } else { 0.0 }).collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let cones = [NonnegativeConeT(right.len())];
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

#[test]
fn every_solver_reaches_the_referees_optimum() {
    let data = numbered(40, 3, 4, 4);
    for (multiclass, loss, form) in FORMS {
        for intercept in INTERCEPTS {
            let context = format!("{multiclass:?}, {loss:?}, {intercept:?}");
            let newton = settings(task(multiclass, intercept), loss).with_solver(Solver::Newton);
            let newton = fit(&data, &newton).model;
            assert!(newton.certificate.converged, "{context}");
            // Cutting planes bound free constants badly, and are checked where these are penalised or absent.
            let planes = (intercept != Intercept::Free).then(|| {
                let planes = settings(task(multiclass, intercept), loss).with_solver(Solver::CuttingPlane);
                fit(&data, &Settings { tolerance: 1e-5, ..planes }).model
            });
            if let Some(planes) = &planes {
                assert!(planes.certificate.converged, "{context}");
                assert_close(objective(&newton), objective(planes), 1.1e-5, &context);
            }
            if loss == Loss::Logistic {
                continue;
            }
            let optimum = referee(&data, form, loss, intercept);
            let blocks = settings(task(multiclass, intercept), loss).with_solver(Solver::DualCoordinateDescent);
            let blocks = fit(&data, &blocks).model;
            assert!(blocks.certificate.converged, "{context}");
            let models = planes.iter().map(|planes| (planes, 1.1e-5)).chain([(&newton, 1e-5), (&blocks, 2e-7)]);
            for (model, tolerance) in models {
                assert_close(objective(model), optimum, tolerance, &context);
                let bound = model.certificate.lower_bound.expect("both solvers prove a bound");
                assert!(bound <= optimum * (1.0 + 1e-8), "{context}: {bound} is above {optimum}");
            }
        }
    }
}

/// With w₁ = −w₀ = v the difference of the scores is 2v·x, so w = 2v is the binary classifier with 2C, of twice the
/// objective: ½(‖v‖² + ‖v‖²) + C Σ loss = ½ (½‖w‖² + 2C Σ loss).
#[test]
fn two_classes_with_a_score_each_are_the_binary_classifier() {
    let data = numbered(60, 3, 2, 5);
    for (multiclass, loss, _) in FORMS {
        for intercept in INTERCEPTS {
            let context = format!("{multiclass:?}, {loss:?}, {intercept:?}");
            let exact = |settings: Settings| Settings { tolerance: 1e-9, ..settings.with_solver(Solver::Newton) };
            let joint = fit(&data, &exact(settings(task(multiclass, intercept), loss))).model;
            let one = ClassifySettings { intercept, ..ClassifySettings::default() };
            let one = Settings { regularisation: Regularisation::C(2.0 * C), ..settings(one, loss) };
            let binary = fit(&data, &exact(one)).model;
            assert!(matches!(joint.decoder, Decoder::Largest(_)) && matches!(binary.decoder, Decoder::Sign(_)));
            assert_close(2.0 * objective(&joint), objective(&binary), 1e-7, &context);
            let (joint, binary) = (joint.scores(&data).unwrap(), binary.scores(&data).unwrap());
            for (two, one) in joint.chunks(2).zip(&binary) {
                assert!((two[1] - two[0] - one).abs() < 1e-3, "{context}: {two:?} and {one}");
            }
        }
    }
}

/// What is polished after another solver is proved by its dual point, as `verify` demands.
#[test]
fn polished_models_are_verified_with_every_solver() {
    let data = numbered(80, 3, 4, 12);
    let loss = Loss::SquaredHinge;
    for intercept in INTERCEPTS {
        for solver in [Solver::Auto, Solver::Newton, Solver::DualCoordinateDescent, Solver::CuttingPlane] {
            if (solver, intercept) == (Solver::CuttingPlane, Intercept::Free) {
                continue;
            }
            let context = format!("{solver:?}, {intercept:?}");
            let wanted = settings(task(Multiclass::WestonWatkins, intercept), loss).with_solver(solver);
            let model = fit(&data, &Settings { polish: true, tolerance: 1e-4, ..wanted }).model;
            let (certificate, found) = (&model.certificate, model.verify(&data).unwrap());
            let bound = certificate.lower_bound.expect("a bound");
            assert!(bound >= objective(&model) * (1.0 - 1e-12), "{context}: {bound} below {}", objective(&model));
            assert_eq!((found.objective, found.lower_bound), (certificate.objective, Some(bound)), "{context}");
        }
    }
}

/// Beside a class of weight 1000, the probabilities of classes of weight 10⁻⁴ must keep their digits.
#[test]
fn the_softmax_is_solved_with_classes_that_weigh_next_to_nothing() {
    for classes in [3, 4] {
        let data = numbered(90, 2, classes, 13);
        let share = |class: usize| (class.to_string(), if class == 0 { 1000.0 } else { 1e-4 });
        let class_weight = ClassWeight::ByLabel((0..classes).map(share).collect());
        for intercept in INTERCEPTS {
            let task = ClassifySettings { class_weight: class_weight.clone(), ..task(Multiclass::Joint, intercept) };
            let model = fit(&data, &settings(task, Loss::Logistic)).model;
            let (certificate, found) = (&model.certificate, model.verify(&data).unwrap());
            assert!(certificate.converged, "{classes} classes, {intercept:?}: {certificate:?}");
            assert_eq!((found.objective, found.lower_bound), (certificate.objective, certificate.lower_bound));
        }
    }
}

#[test]
fn saved_models_score_alike_are_verified_and_do_not_depend_on_threads() {
    let data = worded(&numbered(2500, 6, 4, 6));
    for (multiclass, loss, _) in FORMS {
        for solver in [Solver::Newton, Solver::CuttingPlane, Solver::DualCoordinateDescent] {
            if (solver, loss) == (Solver::DualCoordinateDescent, Loss::Logistic) {
                continue;
            }
            let context = format!("{multiclass:?}, {loss:?}, {solver:?}");
            let intercept = if solver == Solver::CuttingPlane { Intercept::Penalised } else { Intercept::Free };
            let wanted = settings(task(multiclass, intercept), loss).with_solver(solver);
            let wanted =
                Settings { regularisation: Regularisation::C(0.01), scale: Scale::Standard, tolerance: 1e-3, ..wanted };
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &wanted).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2), "{context}");
            let (made, loaded) = (fit(&data, &wanted).model, Model::from_bytes(&one).unwrap());
            assert_eq!(made.scores(&data).unwrap(), loaded.scores(&data).unwrap(), "{context}");
            assert_eq!(loaded.scorer.outputs(), 4);
            let found = loaded.verify(&data).unwrap();
            let certificate = &made.certificate;
            assert_eq!((found.objective, found.lower_bound), (certificate.objective, certificate.lower_bound));
            let accuracy = Answers::new(&loaded, &data).unwrap().evaluate(&Metric::Accuracy).unwrap().value;
            assert!(accuracy > 0.7, "{context}: {accuracy}");
        }
    }
}

#[test]
fn a_row_of_weight_two_is_a_row_twice_and_classes_can_be_balanced() {
    let data = numbered(40, 3, 4, 7);
    // Class 2 keeps a single row.
    let kept: Vec<usize> = (0..40).filter(|row| row % 4 != 2 || *row == 2).collect();
    let data = data.subset(&kept).unwrap();
    let twice: Vec<usize> = (0..kept.len()).flat_map(|row| vec![row; 1 + row % 2]).collect();
    let weights: Vec<f64> = (0..kept.len()).map(|row| 1.0 + (row % 2) as f64).collect();
    let weighted = data.clone().with_weights(weights).unwrap();
    let repeated = data.subset(&twice).unwrap();
    for (multiclass, loss, _) in FORMS {
        for class_weight in [ClassWeight::Equal, ClassWeight::Balanced] {
            let context = format!("{multiclass:?}, {loss:?}, {class_weight:?}");
            let task = ClassifySettings { class_weight, ..task(multiclass, Intercept::Free) };
            let wanted = settings(task, loss);
            let (one, other) = (fit(&weighted, &wanted).model, fit(&repeated, &wanted).model);
            assert_close(objective(&one), objective(&other), 2e-7, &context);
        }
    }
    // Balanced weights are those of their definition: rows / (classes · rows of the class).
    let rows = data.rows() as f64;
    let share = |class: usize| rows / (4.0 * if class == 2 { 1.0 } else { 10.0 });
    let by_label = ClassWeight::ByLabel((0..4).map(|class| (class.to_string(), share(class))).collect());
    let with = |class_weight: ClassWeight| {
        let task = ClassifySettings { class_weight, ..task(Multiclass::Joint, Intercept::Free) };
        fit(&data, &settings(task, Loss::Hinge)).model
    };
    let (balanced, given, equal) = (with(ClassWeight::Balanced), with(by_label), with(ClassWeight::Equal));
    assert_close(objective(&balanced), objective(&given), 1e-12, "balanced");
    assert!(objective(&balanced) != objective(&equal));
}

#[test]
fn words_are_predicted_and_an_unknown_label_counts_as_wrong() {
    let numbers = numbered(400, 3, 4, 8);
    let words = worded(&numbers);
    let wanted = settings(ClassifySettings::default(), Loss::Hinge);
    let (by_number, by_word) = (fit(&numbers, &wanted).model, fit(&words, &wanted).model);
    assert_close(objective(&by_number), objective(&by_word), 1e-6, "the order of labels");
    assert_eq!(by_word.decoder.labels().unwrap().names(), ["east", "north", "south", "west"]);
    let first = by_word.predict(&words).unwrap();
    assert_eq!((first.len(), first.label(0)), (400, Some("south")));
    let lines = first.lines().concat();
    let fields: Vec<&str> = lines.lines().next().unwrap().split('\t').collect();
    assert_eq!(fields[0], "south");
    let largest = by_word.scores(&words).unwrap()[..4].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(fields[1].parse::<f64>().unwrap(), largest);

    let known = Answers::new(&by_word, &words).unwrap();
    let right = known.evaluate(&Metric::Accuracy).unwrap().value;
    assert_eq!(known.unknown, 0);
    let codes: Vec<u32> = (0..400).map(|row| if row % 4 == 0 { 4 } else { [2, 0, 3, 1][row % 4] }).collect();
    let names = ["east", "north", "south", "west", "zenith"].into_iter().collect();
    let strange = words.clone().with_targets(Targets::Labels { names, codes: codes.into() }).unwrap();
    let answers = Answers::new(&by_word, &strange).unwrap();
    assert_eq!(answers.unknown, 100);
    let found = answers.evaluate(&Metric::Accuracy).unwrap().value;
    let others = (0..400).filter(|&row| row % 4 != 0 && first.class(row) == Some([2, 0, 3, 1][row % 4])).count();
    assert_eq!(found, others as f64 / 400.0);
    assert!(found < right);
    assert!(answers.evaluate(&Metric::F1Macro).unwrap().value < 1.0);
}

#[test]
fn several_classes_are_tuned() {
    let data = worded(&numbered(120, 3, 4, 9));
    let at =
        |c: f64| Settings { regularisation: Regularisation::C(c), tolerance: 1e-6, ..Settings::new(Task::Classify) };
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::Accuracy, Metric::F1Macro] };
    let tuned = validation.run(&data, &[at(1e-4), at(1.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(tuned.rows.iter().all(|row| row.converged && row.metrics.len() == 2));
    assert!(tuned.rows[1].metrics[0].mean > 0.6, "{:?}", tuned.rows[1]);
    let refitted = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).unwrap().model;
    assert_close(objective(&refitted), objective(&fit(&data, &at(1.0)).model), 1e-5, "refitted");
    let by_area = CrossValidation { metrics: vec![Metric::Auc, Metric::QuadraticKappa], ..validation.clone() };
    let areas = by_area.run(&data, &[at(1.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(areas.rows[0].metrics[0].mean > 0.8, "{:?}", areas.rows[0]);
    let refused = CrossValidation { metrics: vec![Metric::F1], ..validation };
    let error = refused.run(&data, &[at(1.0)], &mut Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::TooManyClasses);
}

#[test]
fn what_several_classes_cannot_do_is_refused() {
    let data = numbered(40, 3, 4, 10);
    let code = |settings: &Settings| train(&data, settings, None, &mut Silent, &Cancel::new()).unwrap_err().code();
    let plain = || Settings::new(Task::Classify);
    let positive = ClassifySettings { positive: Some("1".to_string()), ..ClassifySettings::default() };
    assert_eq!(code(&Settings::of(positive)), Code::TooManyClasses);
    let unknown = ClassWeight::ByLabel([("7".to_string(), 2.0)].into());
    assert_eq!(
        code(&Settings::of(ClassifySettings { class_weight: unknown, ..ClassifySettings::default() })),
        Code::UnknownLabel
    );
    for (multiclass, loss) in [(Multiclass::Joint, Loss::SquaredHinge), (Multiclass::WestonWatkins, Loss::Logistic)] {
        assert_eq!(code(&settings(task(multiclass, Intercept::Free), loss)), Code::BadSetting);
    }
    let softmax = Settings { loss: Loss::Logistic, ..plain().with_solver(Solver::DualCoordinateDescent) };
    for refused in [softmax, plain().with_solver(Solver::InteriorPoint), plain().with_solver(Solver::Lasvm)] {
        let error = train(&data, &refused, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
    }
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    for (multiclass, loss, solver) in [
        (Multiclass::Joint, Loss::Logistic, Solver::Auto),
        (Multiclass::WestonWatkins, Loss::SquaredHinge, Solver::Auto),
        (Multiclass::Joint, Loss::Hinge, Solver::Sgd),
        (Multiclass::Joint, Loss::Hinge, Solver::Lasvm),
    ] {
        let asked = settings(task(multiclass, Intercept::Free), loss).with_solver(solver);
        let asked = Settings { kernel: gaussian.clone(), ..asked };
        let error = train(&data, &asked, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
    }
    assert!(matches!(plain().task, TaskSettings::Classify(_)));
}
