//! Output codes: every column is the classifier of two classes that it claims to be, and the bound holds.

use crate::made::{Numbers, fit};
use maxmargin::data::{CodeChoice, Dataset, Dense, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Decoder, Decoding, Model};
use maxmargin::run::{Cancel, Event, Observer, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{ClassifySettings, Regularisation, Settings, Solver};
use maxmargin::solve::{ColumnWitness, Stop, Witness};
use maxmargin::task::{ClassWeight, Intercept, Multiclass, WeightAs};
use maxmargin::train::train;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Overlapping classes with numbers from 0 on, in no order.
fn numbered(rows: usize, cols: usize, classes: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let centres: Vec<f64> = (0..classes * cols).map(|_| 2.0 * numbers.next()).collect();
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let class = if row < classes { row } else { (numbers.next() * classes as f64) as usize };
        values.extend((0..cols).map(|column| centres[class * cols + column] + 1.5 * (numbers.next() - 0.5)));
        targets.push(class as f64);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

fn by_code(code: &str) -> ClassifySettings {
    ClassifySettings { code: Some(code.parse().unwrap()), ..ClassifySettings::default() }
}

fn by(multiclass: Multiclass) -> ClassifySettings {
    ClassifySettings { multiclass: Some(multiclass), ..ClassifySettings::default() }
}

/// The weights and the constant of one column.
fn column(model: &Model, column: usize) -> (Vec<f64>, Option<f64>) {
    let columns = model.scorer.outputs();
    let weights = model.scorer.weights().unwrap().iter().skip(column).step_by(columns).copied().collect();
    (weights, model.scorer.intercepts().get(column).copied())
}

/// The classifier of two classes for a column, trained on its own.
fn alone(data: &Dataset, model: &Model, number: usize, settings: &Settings, intercept: Intercept) -> Model {
    let code = model.output_code().unwrap().code;
    let classes = data.targets().real().unwrap();
    let side = |row: usize| f64::from(code.entry(classes[row] as usize, number));
    let rows: Vec<usize> = (0..data.rows()).filter(|&row| side(row) != 0.0).collect();
    let signs: Vec<f64> = rows.iter().map(|&row| side(row)).collect();
    let part = data.select(&rows).unwrap().with_targets(Targets::Real(signs.into())).unwrap();
    let task = ClassifySettings { intercept, ..ClassifySettings::default() };
    fit(&part, &Settings { task: task.into(), ..settings.clone() }).model
}

#[test]
fn columns_are_the_classifiers_of_two_classes_bit_for_bit() {
    let data = numbered(180, 5, 4, 1);
    let mut compared = 0;
    for (loss, solver) in [
        (Loss::Hinge, Solver::Auto),
        (Loss::Hinge, Solver::DualCoordinateDescent),
        (Loss::Hinge, Solver::CuttingPlane),
        (Loss::Hinge, Solver::InteriorPoint),
        (Loss::SquaredHinge, Solver::Newton),
        (Loss::SquaredHinge, Solver::AveragedSgd),
        (Loss::Logistic, Solver::Auto),
        (Loss::Logistic, Solver::DualCoordinateDescent),
        (Loss::Logistic, Solver::Pegasos),
    ] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            for task in [by(Multiclass::OneVsRest), by(Multiclass::OneVsOne), by_code("random-sparse:6")] {
                let whole = ClassifySettings { intercept, ..task };
                let settings = Settings { loss, regularisation: Regularisation::C(0.5), ..Settings::of(whole) };
                let settings = settings.with_solver(solver);
                let model = fit(&data, &settings).model;
                let context = format!("{settings:?}");
                let (mut objective, mut bound) = (0.0, Some(0.0));
                for number in 0..model.scorer.outputs() {
                    let own = alone(&data, &model, number, &settings, intercept);
                    assert_eq!(
                        column(&model, number),
                        (own.scorer.weights().unwrap().to_vec(), own.scorer.intercept())
                    );
                    objective += own.certificate.objective;
                    bound = bound.zip(own.certificate.lower_bound).map(|(sum, bound)| sum + bound);
                    compared += 1;
                }
                assert_eq!(model.certificate.objective, objective, "{context}");
                assert_eq!(model.certificate.lower_bound, bound, "{context}");
                let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!((&again.decoder, &again.witness), (&model.decoder, &model.witness));
                assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
                let found = again.verify(&data).unwrap();
                assert_eq!(found.lower_bound.is_some(), bound.is_some(), "{context}");
            }
        }
    }
    assert_eq!(compared, 9 * 3 * (4 + 6 + 6));
}

#[test]
fn weights_of_rows_and_classes_count_in_every_column() {
    let data = numbered(150, 3, 3, 4);
    let weight = |row: usize| 0.5 + (row % 3) as f64;
    let heavy = ClassWeight::ByLabel([("1".to_string(), 2.5)].into());
    let weighted = data.clone().with_weights((0..150).map(weight).collect::<Vec<_>>()).unwrap();
    let classes = data.targets().real().unwrap();
    let product: Vec<f64> = (0..150).map(|row| weight(row) * if classes[row] == 1.0 { 2.5 } else { 1.0 }).collect();
    let folded = data.clone().with_weights(product).unwrap();
    for multiclass in [Multiclass::OneVsRest, Multiclass::OneVsOne] {
        let task = ClassifySettings { class_weight: heavy.clone(), ..by(multiclass) };
        let model = fit(&weighted, &Settings::of(task)).model;
        for number in 0..3 {
            let own = alone(&folded, &model, number, &Settings::of(by(multiclass)), Intercept::Free);
            assert_eq!(column(&model, number), (own.scorer.weights().unwrap().to_vec(), own.scorer.intercept()));
        }
        model.verify(&weighted).unwrap();
        let balanced = ClassifySettings { class_weight: ClassWeight::Balanced, ..by(multiclass) };
        let balanced = fit(&weighted, &Settings::of(balanced)).model;
        balanced.verify(&weighted).unwrap();
    }
}

#[test]
fn threads_change_no_byte_of_a_model_by_columns() {
    let data = numbered(900, 12, 6, 5);
    for task in [by(Multiclass::OneVsRest), by(Multiclass::OneVsOne), by_code("bch:15")] {
        for solver in [Solver::Auto, Solver::DualCoordinateDescent, Solver::AveragedSgd] {
            let settings = Settings { scale: Scale::Standard, ..Settings::of(task.clone()) }.with_solver(solver);
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &settings).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2) && one == bytes(5), "{settings:?}");
        }
    }
}

#[test]
fn one_against_the_rest_predicts_as_its_loss_does() {
    let data = numbered(200, 4, 5, 6);
    for loss in Loss::ALL {
        let settings = Settings { loss, ..Settings::of(by(Multiclass::OneVsRest)) };
        let largest = fit(&data, &settings).model;
        assert!(matches!(largest.decoder, Decoder::Largest(_)));
        let task = ClassifySettings { decoding: Some(Decoding::of(loss)), ..by(Multiclass::OneVsRest) };
        let decoded = fit(&data, &Settings { loss, ..Settings::of(task) }).model;
        assert!(matches!(decoded.decoder, Decoder::Code(_)));
        let (a, b) = (largest.predict(&data).unwrap(), decoded.predict(&data).unwrap());
        assert!((0..200).all(|row| a.class(row) == b.class(row)));
        let (a, b) = (largest.code_error(&data).unwrap().unwrap(), decoded.code_error(&data).unwrap().unwrap());
        assert_eq!((a.error, a.separation, &a.columns), (b.error, b.separation, &b.columns));
        assert!((a.bound - b.bound).abs() < 1e-12 && a.bound >= a.error);
    }
}

#[test]
fn a_class_absent_from_a_fold_is_not_predicted_there() {
    // One row of class 3.
    let data = numbered(120, 3, 3, 7);
    let mut classes = data.targets().real().unwrap().to_vec();
    classes[50] = 3.0;
    let data = data.with_targets(Targets::Real(classes.into())).unwrap();
    for task in [by(Multiclass::OneVsRest), by(Multiclass::OneVsOne), by_code("exhaustive")] {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let settings = Settings::of(ClassifySettings { intercept, ..task.clone() });
            let metrics = vec![Metric::parse("accuracy").unwrap()];
            let validation = CrossValidation { folds: 3, seed: 1, metrics };
            let tuned = validation.run(&data, &[settings], &mut Silent, &Cancel::new()).unwrap();
            assert!(tuned.rows[0].metrics[0].mean > 0.5);
        }
        // The same with a class whose rows weigh nothing.
        let weights: Vec<f64> = (0..120).map(|row| if row == 50 { 0.0 } else { 1.0 }).collect();
        let weighted = data.clone().with_weights(weights).unwrap();
        let model = fit(&weighted, &Settings::of(task)).model;
        let predicted = model.predict(&weighted).unwrap();
        assert!((0..120).all(|row| predicted.class(row) != Some(3)));
        model.verify(&weighted).unwrap();
    }
}

#[test]
fn columns_with_one_side_are_left_out() {
    // The first column tells class 0 from class 3, and no other class.
    let code = "0,+++0\n1,0-0+\n2,00--\n3,-000\n";
    let data = numbered(160, 3, 4, 17);
    let truth = data.targets().real().unwrap();
    let others: Vec<usize> = (0..160).filter(|&row| truth[row] != 3.0).collect();
    let without = data.subset(&others).unwrap();
    let counted: Vec<f64> = (0..160).map(|row| f64::from(u8::from(truth[row] != 3.0))).collect();
    let weightless = data.clone().with_weights(counted).unwrap();
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
        for decoding in [None, Some(Decoding::Hamming)] {
            let settings = Settings::of(ClassifySettings { intercept, decoding, ..by_code(code) });
            let (fewer, zero) = (fit(&without, &settings).model, fit(&weightless, &settings).model);
            for (model, data) in [(&fewer, &without), (&zero, &weightless)] {
                assert_eq!(model.scorer.outputs(), 3);
                model.verify(data).unwrap();
                let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!(read.decoder, model.decoder);
                let found = model.code_error(data).unwrap().unwrap();
                assert!(found.separation > 0.0 && found.error <= found.bound + 1e-12, "{found:?}");
            }
            let (one, other) = (fewer.predict(&data).unwrap(), zero.predict(&data).unwrap());
            let differ = (0..160).filter(|&row| one.class(row) != other.class(row)).count();
            assert!(differ <= 1, "{intercept:?} {decoding:?} {differ}");
        }
    }
    // Without the column nothing tells class 0 from class 1.
    let alike = by_code("0,++0\n1,0+0\n2,0-+\n3,-0-\n");
    let error = train(&weightless, &Settings::of(alike), None, &mut Silent, &Cancel::new()).unwrap_err();
    assert!(error.message().contains("tells `0` from `1`"), "{error}");
}

#[test]
fn folds_with_fewer_columns_are_judged_and_all_rows_are_learned_from() {
    let given = numbered(120, 3, 3, 7);
    let mut classes = given.targets().real().unwrap().to_vec();
    classes[50] = 3.0;
    let data = given.with_targets(Targets::Real(classes.into())).unwrap();
    for code in ["0,+++0\n1,0-0+\n2,00--\n3,-000\n", "random-sparse:9", "one-vs-one"] {
        let settings =
            [0.1, 1.0].map(|c| Settings { regularisation: Regularisation::C(c), ..Settings::of(by_code(code)) });
        let metrics = vec![Metric::parse("accuracy").unwrap()];
        let validation = CrossValidation { folds: 3, seed: 1, metrics };
        let tuned = validation.run(&data, &settings, &mut Silent, &Cancel::new()).unwrap();
        assert!(tuned.rows[tuned.best].metrics[0].mean > 0.5);
        let model = tuned.refit(tuned.best, &data, None, &mut Silent, &Cancel::new()).unwrap().model;
        model.verify(&data).unwrap();
    }
}

#[test]
fn an_altered_witness_is_refused() {
    let data = numbered(100, 3, 3, 8);
    let settings = Settings::of(by(Multiclass::OneVsRest)).with_solver(Solver::DualCoordinateDescent);
    let model = fit(&data, &settings).model;
    model.verify(&data).unwrap();
    let Some(Witness::Columns(columns)) = &model.witness else { panic!("columns") };
    let change = |change: &dyn Fn(&mut Vec<ColumnWitness>)| {
        let mut columns = columns.clone();
        change(&mut columns);
        Model { witness: Some(Witness::Columns(columns)), ..model.clone() }.verify(&data).unwrap_err().code()
    };
    assert_eq!(change(&|columns| drop(columns.pop())), Code::CertificateMismatch);
    assert_eq!(change(&|columns| columns.swap(0, 1)), Code::CertificateMismatch);
    let larger = |columns: &mut Vec<ColumnWitness>| {
        let ColumnWitness::Dual(dual) = &mut columns[1] else { panic!("a dual point") };
        dual.values.iter_mut().for_each(|value| *value *= 3.0);
        dual.limit *= 3.0;
    };
    assert_eq!(change(&larger), Code::CertificateMismatch);
}

#[test]
fn columns_are_reported_in_order_and_a_break_ends_the_run() {
    struct Recorder(Vec<usize>, usize);
    impl Observer for Recorder {
        fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
            if let Event::Column { column, columns, .. } = event {
                assert_eq!(*columns, 45);
                self.0.push(*column);
                if self.0.len() == self.1 {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        }
    }
    let data = numbered(300, 4, 10, 9);
    let settings = Settings::of(by(Multiclass::OneVsOne));
    let mut recorder = Recorder(Vec::new(), 0);
    let trained = train(&data, &settings, None, &mut recorder, &Cancel::new()).unwrap();
    assert_eq!((recorder.0, trained.stop), ((0..45).collect(), Stop::Converged));
    let mut recorder = Recorder(Vec::new(), 5);
    let ended = train(&data, &settings, None, &mut recorder, &Cancel::new()).unwrap();
    assert_eq!((recorder.0.len(), ended.stop), (45, Stop::Cancelled));
    ended.model.verify(&data).unwrap();
    assert!(!ended.model.certificate.converged && ended.model.certificate.gap().unwrap() > 0.1);
}

/// Ends the run after so many columns.
struct EndAfter(usize);

impl Observer for EndAfter {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::Column { .. } = event {
            self.0 = self.0.saturating_sub(1);
        }
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn columns_left_at_zero_state_the_loss_of_their_own_margins() {
    let weights: Vec<f64> = (0..300).map(|row| 0.25 * f64::from(row % 5)).collect();
    let data = numbered(300, 4, 10, 9).with_weights(weights).unwrap();
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for weight_as in [WeightAs::Slack, WeightAs::Margin] {
            for multiclass in [Multiclass::OneVsOne, Multiclass::OneVsRest] {
                let task = ClassifySettings { weight_as, ..by(multiclass) };
                let settings = Settings { loss, ..Settings::of(task) };
                let ended = train(&data, &settings, None, &mut EndAfter(1), &Cancel::new()).unwrap();
                if multiclass == Multiclass::OneVsOne {
                    assert_eq!(ended.stop, Stop::Cancelled);
                }
                ended.model.verify(&data).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
            }
        }
    }
}

#[test]
fn a_hard_margin_that_is_cancelled_leaves_no_model() {
    // Ten classes on a circle, each of them apart from every other.
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..60 {
        let class = f64::from(row % 10);
        let (angle, radius) = (class * std::f64::consts::TAU / 10.0, 5.0 + 0.1 * f64::from(row / 10));
        values.extend([radius * angle.cos(), radius * angle.sin()]);
        targets.push(class);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, 60, 2).unwrap());
    let data = Dataset::new(matrix, Targets::Real(targets.into())).unwrap();
    let settings = Settings { solver: Solver::QuadraticProgram, ..Settings::of(by(Multiclass::OneVsOne)) };
    fit(&data, &settings).model.verify(&data).unwrap();
    let error = train(&data, &settings, None, &mut EndAfter(1), &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::Interrupted);
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = numbered(60, 2, 3, 10);
    let refused =
        |task: ClassifySettings| train(&data, &Settings::of(task), None, &mut Silent, &Cancel::new()).unwrap_err();
    assert!(refused(by(Multiclass::Code)).message().contains("needs a code"));
    let both = ClassifySettings { multiclass: Some(Multiclass::Joint), ..by_code("bch") };
    assert_eq!(refused(both).code(), Code::BadSetting);
    let decoding = ClassifySettings { decoding: Some(Decoding::Hinge), ..ClassifySettings::default() };
    assert!(refused(decoding).message().contains("decoding"));
    let positive = ClassifySettings { positive: Some("1".to_string()), ..by(Multiclass::OneVsRest) };
    assert_eq!(refused(positive).code(), Code::BadSetting);
    assert!(refused(by_code("random-dense:1")).message().contains("3 classes"));
    let code: CodeChoice = "0,+-\n1,-+\n".parse().unwrap();
    let missing = ClassifySettings { code: Some(code), ..ClassifySettings::default() };
    assert_eq!(refused(missing).code(), Code::UnknownLabel);
    let stopping = Settings::of(by(Multiclass::OneVsRest)).with_solver(Solver::Lasvm);
    assert_eq!(train(&data, &stopping, None, &mut Silent, &Cancel::new()).unwrap_err().code(), Code::Unsupported);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_training_error_is_within_the_bound(
        seed in 1u64..1000, classes in 2usize..6, which in 0usize..5, decoding in 0usize..4, cost in 0usize..3,
    ) {
        let data = numbered(60, 2, classes, seed);
        let name = ["one-vs-rest", "one-vs-one", "random-dense:9", "random-sparse:12", "exhaustive"][which];
        let task = ClassifySettings { decoding: Some(Decoding::ALL[decoding]), ..by_code(name) };
        let regularisation = Regularisation::C([0.001, 0.1, 10.0][cost]);
        let settings = Settings { regularisation, seed, ..Settings::of(task) };
        let model = fit(&data, &settings).model;
        let found = model.code_error(&data).unwrap().unwrap();
        prop_assert!(found.error <= found.bound + 1e-12, "{name} {found:?}");
        let predicted = model.predict(&data).unwrap();
        let truth = data.targets().real().unwrap();
        let wrong = (0..60).filter(|&row| predicted.class(row) != Some(truth[row] as usize)).count();
        prop_assert!((found.error - wrong as f64 / 60.0).abs() < 1e-12);
    }
}
