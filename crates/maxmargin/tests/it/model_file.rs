//! Model files: round trips work, and every change is detected.

use crate::made::{fit, graded, two_classes};
use maxmargin::data::{Names, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{ClassifySettings, Settings, Solver, Task};
use maxmargin::solve::{Cut, Witness};
use maxmargin::task::{Intercept, Multiclass};
use std::collections::BTreeSet;

fn small_models() -> Vec<Model> {
    let classes = two_classes(40, 5, false, 4);
    let names: Names = ["title", "body", "α β", "d", "e"].into_iter().collect();
    let classes = classes.with_feature_names(names).unwrap();
    let groups = graded(4, 6, 3, 3, 5);
    vec![
        fit(&classes, &Settings { scale: Scale::Standard, ..Settings::new(Task::Classify) }).model,
        fit(&groups, &Settings::new(Task::Rank)).model,
        fit(&groups, &Settings { solver: Solver::CuttingPlane, ..Settings::new(Task::Rank) }).model,
    ]
}

#[test]
fn a_saved_model_loads_to_identical_scores_and_bytes() {
    let data = [two_classes(40, 5, false, 4), graded(4, 6, 3, 3, 5), graded(4, 6, 3, 3, 5)];
    for (model, data) in small_models().into_iter().zip(&data) {
        let bytes = model.to_bytes().unwrap();
        let loaded = Model::from_bytes(&bytes).unwrap();
        assert_eq!(loaded.scores(data).unwrap(), model.scores(data).unwrap());
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        assert_eq!(loaded.witness, model.witness);
        loaded.verify(data).unwrap();
    }
}

#[test]
fn the_tensors_of_every_kind_of_witness_are_documented() {
    let guide = include_str!("../../../../docs/file-formats.md");
    let given = two_classes(40, 3, true, 6);
    let classes: Vec<f64> = (0..40).map(|row| f64::from(row % 3)).collect();
    let data = given.with_targets(Targets::Real(classes.into())).unwrap();
    let mut models = small_models();
    for (multiclass, solver) in [
        (Multiclass::Joint, Solver::DualCoordinateDescent),
        (Multiclass::Joint, Solver::Newton),
        (Multiclass::OneVsRest, Solver::Auto),
    ] {
        let task = ClassifySettings { multiclass: Some(multiclass), ..ClassifySettings::default() };
        models.push(fit(&data, &Settings::of(task).with_solver(solver)).model);
    }
    let mut found = BTreeSet::new();
    for model in models {
        let bytes = model.to_bytes().unwrap();
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        found.extend(tensors.names().into_iter().map(|name| format!("`{name}`")));
    }
    assert!(["`witness.variables`", "`witness.points`", "`columns.kinds`"].iter().all(|name| found.contains(*name)));
    let missing: Vec<&String> = found.iter().filter(|name| !guide.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_changed_byte_is_noticed() {
    for model in small_models() {
        let bytes = model.to_bytes().unwrap();
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert!(Model::from_bytes(&changed).is_err(), "byte {at}");
            }
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    for model in small_models() {
        let bytes = model.to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(Model::from_bytes(&bytes[..length]).is_err(), "cut to {length}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Model::from_bytes(&longer).is_err());
    }
}

#[test]
fn an_altered_claim_fails_verification() {
    let data = graded(4, 6, 3, 3, 5);
    let mut model = fit(&data, &Settings::new(Task::Rank)).model;
    model.certificate.objective *= 0.9;
    assert!(model.verify(&data).is_err());
    let mut model = fit(&data, &Settings::new(Task::Rank)).model;
    model.certificate.lower_bound = Some(model.certificate.objective * 1.001);
    assert!(model.verify(&data).is_err());
    assert!(model.verify(&graded(4, 6, 3, 3, 6)).is_err(), "other data");
}

#[test]
fn a_witness_that_is_not_feasible_proves_nothing() {
    let data = two_classes(60, 5, true, 4);
    let settings = Settings { solver: Solver::DualCoordinateDescent, ..Settings::new(Task::Classify) };
    let model = fit(&data, &settings).model;
    model.verify(&data).unwrap();
    let Some(Witness::Dual(alpha)) = model.witness.clone() else { panic!("dual variables") };
    let forged = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut model = model.clone();
        let mut alpha = alpha.clone();
        change(&mut alpha);
        model.witness = Some(Witness::Dual(alpha));
        model.verify(&data)
    };
    let targets = data.targets().real().unwrap();
    let of = |sign: f64| targets.iter().position(|&target| target == sign).unwrap();
    assert!(forged(&|alpha| alpha[0] += 0.5).is_err(), "not balanced");
    assert!(
        forged(&|alpha| {
            alpha[of(1.0)] += 5.0;
            alpha[of(-1.0)] += 5.0;
        })
        .is_err(),
        "balanced, but outside the box"
    );
    assert!(forged(&|alpha| alpha.iter_mut().for_each(|alpha| *alpha = 0.0)).is_err(), "feasible, but proves less");
    let mut other = model.clone();
    other.certificate.c *= 2.0;
    assert!(other.verify(&data).is_err(), "another problem");
    let mut other = model.clone();
    other.certificate.constraints += 1;
    assert!(other.verify(&data).is_err());
}

#[test]
fn cuts_that_were_altered_prove_nothing() {
    let data = two_classes(2000, 5, true, 4);
    let settings = Settings { solver: Solver::CuttingPlane, tolerance: 1e-6, ..Settings::new(Task::Classify) };
    let model = fit(&data, &settings).model;
    model.verify(&data).unwrap();
    let Some(Witness::Cuts(cuts)) = model.witness.clone() else { panic!("cuts") };
    assert!(cuts.iter().all(|cut| cut.multiplier > 0.0), "only active cuts are kept");
    let with = |cuts: Vec<Cut>| {
        let mut model = model.clone();
        model.witness = Some(Witness::Cuts(cuts));
        model
    };
    let forged = |change: &dyn Fn(&mut Vec<Cut>)| {
        let mut cuts = cuts.clone();
        change(&mut cuts);
        let forged = with(cuts);
        // A file can store it. Without the data, the reader cannot detect that it is wrong.
        Model::from_bytes(&forged.to_bytes().unwrap()).unwrap().verify(&data).expect_err("refused").to_string()
    };
    assert!(forged(&|cuts| cuts[0].multiplier *= -1.0).contains("negative"));
    assert!(forged(&|cuts| cuts[0].multiplier += 0.1).contains("add up to one"));
    assert!(forged(&|cuts| cuts.iter_mut().for_each(|cut| cut.point[5] = 100.0)).contains("do not cancel"));
    let moved = forged(&|cuts| cuts.iter_mut().for_each(|cut| cut.point[0] += 1.0));
    assert!(moved.contains("proves nothing") || moved.contains("the lower bound is"), "{moved}");
    for cuts in [
        vec![],
        vec![Cut { point: vec![0.0; 5], multiplier: 1.0 }],
        vec![Cut { point: vec![f64::NAN; 6], multiplier: 1.0 }],
        vec![Cut { point: vec![0.0; 6], multiplier: f64::INFINITY }],
    ] {
        assert!(with(cuts).to_bytes().is_err(), "what no file may hold is not written");
    }
    let ranker = fit(&graded(4, 6, 3, 3, 5), &Settings { solver: Solver::CuttingPlane, ..Settings::new(Task::Rank) });
    for (mut bare, data) in [(model.clone(), &data), (ranker.model, &graded(4, 6, 3, 3, 5))] {
        bare.witness = None;
        let found = bare.verify(data).unwrap();
        assert!(found.lower_bound.is_none() && found.unproved.is_some());
    }
}

#[test]
fn the_dual_point_behind_the_cuts_serves_where_rows_are_fewer_than_features_and_cuts() {
    let data = two_classes(60, 30, true, 4);
    for loss in Loss::ALL {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
            let settings =
                Settings { loss, solver: Solver::CuttingPlane, ..Settings::new(Task::Classify).with_free(intercept) };
            let model = fit(&data, &settings).model;
            assert!(matches!(model.witness, Some(Witness::Dual(_))));
            assert!(model.certificate.converged);
            model.verify(&data).unwrap();
        }
    }
}

/// The golden file was written once by version 1 of the format and must always load.
#[test]
fn the_golden_file_of_version_1_still_loads() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/v1.mm");
    let model = Model::from_bytes(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!((model.features(), model.feature_name(2, 1).as_str()), (5, "α β"));
    assert!(model.certificate.converged && model.witness.is_some());
    let data = two_classes(40, 5, false, 4);
    let scores = model.scores(&data).unwrap();
    assert!((scores[0] - GOLDEN_FIRST_SCORE).abs() < 1e-9, "{}", scores[0]);
    model.verify(&data).unwrap();
}

const GOLDEN_FIRST_SCORE: f64 = -1.6813978497448945;

#[test]
fn verification_ends_when_somebody_asks() {
    let (rows, queries) = (two_classes(300, 6, true, 5), graded(10, 10, 5, 3, 3));
    let cancel = Cancel::new();
    cancel.raise();
    for (data, task, losses) in [(&rows, Task::Classify, &Loss::ALL[..]), (&queries, Task::Rank, &Loss::ALL[..2])] {
        for &loss in losses {
            for solver in [Solver::Auto, Solver::CuttingPlane, Solver::Sgd] {
                let model = fit(data, &Settings { loss, ..Settings::new(task) }.with_solver(solver)).model;
                let error = model.verify_until(data, &cancel).expect_err("asked for an end");
                assert_eq!(error.code(), Code::Interrupted, "{loss:?} {solver:?}");
                model.verify(data).expect("verifies");
            }
        }
    }
}
