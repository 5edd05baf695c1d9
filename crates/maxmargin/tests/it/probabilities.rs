//! Fitted probabilities of classifiers: from held-out folds, in files, and where they are refused.

use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Calibration, Coupling, Decoding, Map, Model, Probability};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, OrdinalForm, OrdinalSettings, Regularisation, Settings};
use maxmargin::task::{Multiclass, WeightAs};
use maxmargin::train::train;

/// Overlapping classes, numbered from 0 on.
fn numbered(rows: usize, classes: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let class = row % classes;
        values.extend((0..3).map(|column| {
            let centre = if column == class % 3 { 1.0 + (class / 3) as f64 } else { 0.0 };
            centre + 2.5 * (numbers.next() - 0.5)
        }));
        targets.push(class as f64);
    }
    Dataset::new(Matrix::DenseF64(Dense::new(values, rows, 3).unwrap()), Targets::Real(targets.into())).unwrap()
}

fn settings(method: Option<Probability>, loss: Loss) -> Settings {
    let task = ClassifySettings { probability: method, ..ClassifySettings::default() };
    Settings { loss, tolerance: 1e-4, ..Settings::of(task) }
}

fn fit(data: &Dataset, settings: &Settings) -> Model {
    train(data, settings, None, &mut Silent, &Cancel::new()).unwrap().model
}

#[test]
fn probabilities_are_fitted_for_any_number_of_classes() {
    for classes in [2, 4] {
        let (data, fresh) = (numbered(240, classes, 1), numbered(240, classes, 2));
        let plain = fit(&data, &settings(None, Loss::Hinge));
        assert_eq!(plain.probabilities(&fresh).unwrap_err().code(), Code::Unsupported);
        for method in Probability::ALL {
            let settings = settings(Some(method), Loss::Hinge);
            let model = fit(&data, &settings);
            // The calibration changes no score.
            assert_eq!(model.scores(&fresh).unwrap(), plain.scores(&fresh).unwrap());
            let calibration = model.calibration.as_ref().unwrap();
            assert_eq!((calibration.folds, calibration.rows, calibration.left_out), (5, 240, 0));
            let probabilities = model.probabilities(&fresh).unwrap();
            assert_eq!(probabilities.len(), 240 * classes);
            assert!(probabilities.chunks(classes).all(|own| (own.iter().sum::<f64>() - 1.0).abs() < 1e-12));
            let loss = Answers::new(&model, &fresh).unwrap().evaluate(&Metric::LogLoss).unwrap().value;
            assert!(loss < 0.95 * (classes as f64).ln(), "{classes} {method:?} {loss}");
            let error = Answers::new(&model, &fresh).unwrap().evaluate(&Metric::CalibrationError).unwrap().value;
            assert!(error < 0.2, "{classes} {method:?} {error}");

            let bytes = model.to_bytes().unwrap();
            let read = Model::from_bytes(&bytes).unwrap();
            assert_eq!(read.calibration, model.calibration);
            assert_eq!(read.probabilities(&fresh).unwrap(), probabilities);
            assert_eq!(read.to_bytes().unwrap(), bytes);
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &settings).to_bytes().unwrap())
            };
            assert!(on(1) == on(4), "{classes} {method:?}");
        }
    }
}

#[test]
fn every_form_of_several_classes_has_fitted_probabilities() {
    let (data, fresh) = (numbered(200, 4, 11), numbered(200, 4, 12));
    let by = |multiclass| ClassifySettings { multiclass: Some(multiclass), ..ClassifySettings::default() };
    let code = |name: &str| ClassifySettings { code: Some(name.parse().unwrap()), ..ClassifySettings::default() };
    let votes = ClassifySettings { decoding: Some(Decoding::Hamming), ..by(Multiclass::OneVsRest) };
    for (task, scores) in [
        (by(Multiclass::Joint), 4),
        (by(Multiclass::WestonWatkins), 4),
        (by(Multiclass::OneVsRest), 4),
        (by(Multiclass::OneVsOne), 6),
        (code("one-vs-one"), 6),
        (code("exhaustive"), 4),
        (code("random-sparse:9"), 4),
        (votes, 4),
    ] {
        for method in Probability::ALL {
            let context = format!("{task:?} {method:?}");
            let task = ClassifySettings { probability: Some(method), ..task.clone() };
            let model = fit(&data, &Settings::of(task));
            let calibration = model.calibration.as_ref().expect(&context);
            assert_eq!((calibration.maps.len(), calibration.rows, calibration.left_out), (scores, 200, 0), "{context}");
            let probabilities = model.probabilities(&fresh).unwrap();
            assert_eq!(probabilities.len(), 800, "{context}");
            let sums = probabilities.chunks(4).map(|own| own.iter().sum::<f64>());
            assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-9), "{context}");
            let loss = Answers::new(&model, &fresh).unwrap().evaluate(&Metric::LogLoss).unwrap().value;
            assert!(loss < 0.95 * 4f64.ln(), "{context} {loss}");
            model.verify(&data).expect(&context);
            let read = Model::from_bytes(&model.to_bytes().unwrap()).expect(&context);
            assert_eq!(read.probabilities(&fresh).unwrap(), probabilities, "{context}");
            // Maps of other scores than those of the model are refused.
            let coupling = match calibration.coupling {
                Coupling::Pairs => Coupling::Normalised,
                _ => Coupling::Pairs,
            };
            let maps = vec![calibration.maps[0].clone(); coupling.outputs(4)];
            let other = Calibration { coupling, maps, ..calibration.clone() };
            assert!(Model { calibration: Some(other), ..model }.to_bytes().is_err(), "{context}");
        }
    }
}

#[test]
fn pairs_of_classes_keep_their_places_where_a_fold_lacks_a_class() {
    // Class 1 of four has one row, so that one fold's model has three pairs.
    let given = numbered(160, 3, 13);
    let mut classes: Vec<f64> =
        given.targets().real().unwrap().iter().map(|&class| class + f64::from(u8::from(class > 0.0))).collect();
    classes[4] = 1.0;
    let data = given.with_targets(Targets::Real(classes.into())).unwrap();
    for multiclass in [Multiclass::OneVsOne, Multiclass::OneVsRest] {
        let task = ClassifySettings {
            multiclass: Some(multiclass),
            probability: Some(Probability::Platt),
            ..ClassifySettings::default()
        };
        let model = fit(&data, &Settings::of(task));
        let calibration = model.calibration.as_ref().unwrap();
        assert_eq!((calibration.rows, calibration.left_out), (159, 1));
        let found = Answers::new(&model, &data).unwrap().evaluate(&Metric::LogLoss).unwrap().value;
        assert!(found < 1.0, "{multiclass:?} {found}");
    }
}

#[test]
fn the_logistic_loss_has_probabilities_of_its_own() {
    for classes in [2, 4] {
        let data = numbered(120, classes, 3);
        let model = fit(&data, &settings(None, Loss::Logistic));
        let (scores, probabilities) = (model.scores(&data).unwrap(), model.probabilities(&data).unwrap());
        for (row, own) in probabilities.chunks(classes).enumerate() {
            let odds = match classes {
                2 => scores[row],
                _ => scores[row * classes + 1] - scores[row * classes],
            };
            assert!(((own[1] / own[0]).ln() - odds).abs() < 1e-9);
        }
        let loss = Answers::new(&model, &data).unwrap().evaluate(&Metric::LogLoss).unwrap().value;
        let codes = data.targets().real().unwrap();
        let own = |row: usize| probabilities[row * classes + codes[row] as usize];
        let twin = (0..120).map(|row| -own(row).ln()).sum::<f64>() / 120.0;
        assert!((loss - twin).abs() < 1e-12, "{loss} {twin}");
    }
}

#[test]
fn a_class_with_one_row_is_left_out_and_has_a_small_probability() {
    let data = numbered(121, 3, 4);
    let mut classes = data.targets().real().unwrap().to_vec();
    classes[120] = 9.0;
    let data = data.with_targets(Targets::Real(classes.into())).unwrap();
    let model = fit(&data, &settings(Some(Probability::Platt), Loss::Hinge));
    let calibration = model.calibration.as_ref().unwrap();
    assert_eq!((calibration.rows, calibration.left_out), (120, 1));
    let probabilities = model.probabilities(&data).unwrap();
    assert!(probabilities[..480].chunks(4).all(|own| own[3] < 0.2), "{probabilities:?}");
}

#[test]
fn costs_of_classes_are_those_of_the_classes_that_a_fold_has() {
    let data = numbered(121, 3, 4);
    let mut classes = data.targets().real().unwrap().to_vec();
    classes[120] = 9.0;
    let data = data.with_targets(Targets::Real(classes.into())).unwrap();
    let costs = "label,0,1,2,9\n0,0,1,2,1\n1,1,0,1,1\n2,2,1,0,1\n9,1,1,1,0\n";
    let task = ClassifySettings {
        cost_matrix: Some(costs.parse().unwrap()),
        probability: Some(Probability::Platt),
        ..ClassifySettings::default()
    };
    let model = fit(&data, &Settings::of(task));
    let calibration = model.calibration.as_ref().unwrap();
    assert_eq!((calibration.rows, calibration.left_out), (120, 1));
    model.verify(&data).unwrap();
}

#[test]
fn margins_of_rows_are_no_weights_of_the_fit() {
    let weigh = |scale: f64| {
        let weights: Vec<f64> = (0..120).map(|row| scale * f64::from(row % 4)).collect();
        numbered(120, 2, 15).with_weights(weights).unwrap()
    };
    for method in Probability::ALL {
        let task = ClassifySettings { weight_as: WeightAs::Margin, ..ClassifySettings::default() };
        // Margins and scores twice as large: the same rows on the same sides of a sigmoid half as steep.
        let maps = |scale: f64| {
            let task = ClassifySettings { probability: Some(method), ..task.clone() };
            let regularisation = Regularisation::C(scale);
            let settings = Settings { regularisation, tolerance: 1e-9, ..Settings::of(task) };
            let calibration = fit(&weigh(scale), &settings).calibration.unwrap();
            assert_eq!(calibration.rows, 120);
            // One row in four has the margin zero.
            assert_eq!(calibration.bins.iter().map(|bin| bin.weight).sum::<f64>(), 90.0);
            calibration.maps
        };
        match (&maps(1.0)[0], &maps(2.0)[0]) {
            (Map::Sigmoid(one), Map::Sigmoid(two)) => {
                assert!((one.slope - 2.0 * two.slope).abs() < 1e-4 * one.slope.abs(), "{one:?} {two:?}");
                assert!((one.offset - two.offset).abs() < 1e-4, "{one:?} {two:?}");
            }
            (Map::Steps(one), Map::Steps(two)) => assert_eq!(one.probabilities, two.probabilities),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn groups_stay_whole() {
    let starts: Vec<u64> = (0..=30).map(|group| group * 4).collect();
    let names = (0..30).map(|group| group.to_string()).collect();
    let data = numbered(120, 3, 5).with_groups(Groups::new(starts, names).unwrap()).unwrap();
    let model = fit(&data, &settings(Some(Probability::Isotonic), Loss::Hinge));
    assert_eq!(model.calibration.unwrap().folds, 5);
}

#[test]
fn calibration_is_refused_where_no_row_can_be_held_out() {
    let data = numbered(30, 2, 6);
    let kernel = KernelSettings { kind: KernelKind::Precomputed, ..KernelSettings::default() };
    let precomputed = Settings { kernel, ..settings(Some(Probability::Platt), Loss::Hinge) };
    let error = train(&data, &precomputed, None, &mut Silent, &Cancel::new()).unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    // Each class has one row, so that no fold's class is known without the fold.
    let few = data.subset(&[0, 1]).unwrap();
    let alone = train(&few, &settings(Some(Probability::Platt), Loss::Hinge), None, &mut Silent, &Cancel::new());
    assert_eq!(alone.unwrap_err().code(), Code::TooFewToSplit);
}

#[test]
fn damaged_probabilities_are_refused() {
    let data = numbered(60, 3, 7);
    let mut model = fit(&data, &settings(Some(Probability::Platt), Loss::Hinge));
    model.calibration.as_mut().unwrap().maps.pop();
    assert!(model.to_bytes().is_err());
}

/// Ratings, whose targets rise with the sum of their features.
fn rated(rows: usize, ranks: &[f64], seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let (mut values, mut targets) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let rank = row % ranks.len();
        values.extend((0..2).map(|_| rank as f64 + 2.0 * (numbers.next() - 0.5)));
        targets.push(ranks[rank]);
    }
    Dataset::new(Matrix::DenseF64(Dense::new(values, rows, 2).unwrap()), Targets::Real(targets.into())).unwrap()
}

#[test]
fn ratings_have_a_distribution_over_their_ranks() {
    let ranks = [1.0, 2.0, 5.0, 6.0];
    let (data, fresh) = (rated(240, &ranks, 31), rated(200, &ranks, 32));
    let ratings = |form, probability, loss| {
        let task = OrdinalSettings { form, probability, ..OrdinalSettings::default() };
        Settings { loss, tolerance: 1e-4, ..Settings::of(task) }
    };
    let log_loss = |model: &Model| Answers::new(model, &fresh).unwrap().evaluate(&Metric::LogLoss);
    for form in OrdinalForm::ALL {
        let plain = fit(&data, &ratings(form, None, Loss::Hinge));
        assert_eq!(plain.probabilities(&fresh).unwrap_err().code(), Code::Unsupported);
        assert_eq!(log_loss(&plain).unwrap_err().code(), Code::MetricMismatch);
        for method in Probability::ALL {
            let model = fit(&data, &ratings(form, Some(method), Loss::Hinge));
            assert_eq!(model.scores(&fresh).unwrap(), plain.scores(&fresh).unwrap());
            let found = model.probabilities(&fresh).unwrap();
            assert_eq!(found.len(), 200 * ranks.len());
            for own in found.chunks(ranks.len()) {
                assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-12 && own.iter().all(|&share| share >= 0.0));
            }
            let loss = log_loss(&model).unwrap().value;
            assert!(loss < 0.8 * 4f64.ln(), "{form:?} {method:?} {loss}");
            assert!(Answers::new(&model, &fresh).unwrap().evaluate(&Metric::Mae).unwrap().value < 1.0);
            let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert_eq!(read.probabilities(&fresh).unwrap(), found);
        }
    }
    // The logistic loss over all cuts has probabilities of its own: those of the ranks above a cut are σ(s − b).
    let model = fit(&data, &ratings(OrdinalForm::Implicit, None, Loss::Logistic));
    let (cuts, _) = model.decoder.cuts().unwrap();
    let (scores, found) = (model.scores(&fresh).unwrap(), model.probabilities(&fresh).unwrap());
    for (score, own) in scores.iter().zip(found.chunks(ranks.len())) {
        for (cut, b) in cuts.iter().enumerate() {
            let above: f64 = own[cut + 1..].iter().sum();
            assert!((above - 1.0 / (1.0 + (b - score).exp())).abs() < 1e-12);
        }
    }
    let loss = log_loss(&model).unwrap().value;
    let truth: Vec<usize> = (0..200).map(|row| row % ranks.len()).collect();
    let expected = -found.chunks(4).zip(truth).map(|(own, rank)| own[rank].ln()).sum::<f64>() / 200.0;
    assert!((loss - expected).abs() < 1e-12);
    let explicit = fit(&data, &ratings(OrdinalForm::Explicit, None, Loss::Logistic));
    assert_eq!(explicit.probabilities(&fresh).unwrap_err().code(), Code::Unsupported);
    assert_eq!(log_loss(&explicit).unwrap_err().code(), Code::MetricMismatch);
}

#[test]
fn a_rank_with_a_single_row_is_left_out_of_the_fit() {
    let data = rated(121, &[1.0, 2.0, 3.0], 41);
    let targets: Vec<f64> = (0..121).map(|row| if row == 60 { 9.0 } else { (1 + row % 3) as f64 }).collect();
    let data = data.with_targets(Targets::Real(targets.into())).unwrap();
    let task = OrdinalSettings { probability: Some(Probability::Platt), ..OrdinalSettings::default() };
    let model = fit(&data, &Settings::of(task));
    let calibration = model.calibration.as_ref().unwrap();
    assert_eq!((calibration.left_out, calibration.classes, calibration.maps.len()), (1, 4, 1));
    assert_eq!(model.probabilities(&data).unwrap().len(), 121 * 4);
}
