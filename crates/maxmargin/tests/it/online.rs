//! Comparisons learned from a stream: saving, continuing and errors.

use crate::comparisons::with_ties;
use crate::made::fit;
use maxmargin::data::{Dataset, Names, Scale};
use maxmargin::error::{Code, Result};
use maxmargin::loss::Loss;
use maxmargin::model::{Decoder, Model};
use maxmargin::online::ComparisonLearner;
use maxmargin::settings::{CompareSettings, Regularisation, Settings, Solver, Stochastic, Task};

fn refused<T>(outcome: Result<T>, code: Code, words: &str) {
    let error = outcome.err().unwrap_or_else(|| panic!("`{words}` was not refused"));
    assert_eq!(error.code(), code, "{error}");
    assert!(error.message().contains(words) && error.remedy().is_some(), "`{words}`: {error}");
}

fn by(solver: Solver) -> Settings {
    let regularisation = match solver {
        Solver::PassiveAggressive => Regularisation::C(0.2),
        _ => Regularisation::Lambda(1e-3),
    };
    Settings { regularisation, ..Settings::new(Task::Compare).with_solver(solver) }
}

fn every_way() -> Vec<Settings> {
    let mut ways = Vec::new();
    for solver in [Solver::PassiveAggressive, Solver::Sgd, Solver::AveragedSgd] {
        for loss in Loss::ALL {
            if solver != Solver::PassiveAggressive || loss != Loss::Logistic {
                ways.push(Settings { loss, ..by(solver) });
            }
        }
    }
    ways
}

fn learned(data: &Dataset, settings: &Settings) -> ComparisonLearner {
    let mut learner = ComparisonLearner::new(settings).unwrap();
    learner.learn(data, 0..data.pairs().unwrap().len()).unwrap();
    learner
}

fn names(data: &Dataset) -> Option<Names> {
    Some((0..data.cols()).map(|column| format!("feature {column}")).collect())
}

#[test]
fn a_model_that_is_taken_up_again_becomes_the_same_bytes_as_one_that_was_never_put_down() {
    let data = with_ties(60, 5, 1500, 4);
    for settings in every_way() {
        let whole = learned(&data, &settings).model(&settings, names(&data), Some("{}".into())).unwrap();
        let mut learner = ComparisonLearner::new(&settings).unwrap();
        for range in [0..1, 1..700, 700..701, 701..1500] {
            learner.learn(&data, range).unwrap();
            let bytes = learner.model(&settings, names(&data), Some("{}".into())).unwrap().to_bytes().unwrap();
            let model = Model::from_bytes(&bytes).unwrap();
            assert_eq!(model.to_bytes().unwrap(), bytes);
            learner = ComparisonLearner::from_model(&model, &settings).unwrap();
        }
        let parts = learner.model(&settings, names(&data), Some("{}".into())).unwrap();
        assert!(whole.to_bytes().unwrap() == parts.to_bytes().unwrap(), "{settings:?}");
    }
}

#[test]
fn the_model_predicts_what_the_learner_would_and_claims_no_bound() {
    let data = with_ties(60, 5, 3000, 9);
    for settings in every_way() {
        let learner = learned(&data, &settings);
        let model = learner.model(&settings, None, None).unwrap();
        assert_eq!(model.decoder, Decoder::Compare { threshold: learner.threshold() });
        assert_eq!((model.certificate.lower_bound, model.certificate.converged), (None, false));
        assert_eq!(model.certificate.pairs, Some(3000));
        assert_eq!(model.verify(&data).unwrap_err().code(), Code::Unsupported);
        let (scores, pairs) = (model.scores(&data).unwrap(), data.pairs().unwrap());
        let right = (0..pairs.len()).filter(|&pair| {
            let (left, right) = (pairs.left()[pair] as usize, pairs.right()[pair] as usize);
            model.decoder.outcome(scores[left], scores[right]) == Some(pairs.outcome(pair))
        });
        let accuracy = right.count() as f64 / 3000.0;
        assert!(accuracy > 0.8, "{:?} {:?}: {accuracy}", settings.solver, settings.loss);
    }
}

#[test]
fn learning_goes_on_from_a_trained_model_with_the_same_predictions() {
    let data = with_ties(60, 5, 1500, 6);
    for scale in [Scale::None, Scale::Standard, Scale::MaxAbs] {
        let trained = fit(&data, &Settings { scale, ..Settings::new(Task::Compare) }).model;
        let learner = ComparisonLearner::from_model(&trained, &by(Solver::PassiveAggressive)).unwrap();
        let (scores, weights) = (trained.scores(&data).unwrap(), learner.weights());
        let mut raw = vec![0.0; data.rows()];
        data.matrix().scores(0..data.rows(), &weights, &mut raw);
        let (before, after) = (trained.decoder, Decoder::Compare { threshold: learner.threshold() });
        let pairs = data.pairs().unwrap();
        for pair in 0..pairs.len() {
            let (left, right) = (pairs.left()[pair] as usize, pairs.right()[pair] as usize);
            assert_eq!(before.outcome(scores[left], scores[right]), after.outcome(raw[left], raw[right]), "{scale:?}");
        }
        assert!(learner.threshold() >= 1.0 && learner.progress().pairs() == 0);
    }
    let unit = fit(&data, &Settings { scale: Scale::UnitRows, ..Settings::new(Task::Compare) }).model;
    refused(ComparisonLearner::from_model(&unit, &by(Solver::Sgd)), Code::BadSetting, "unit-rows");
}

#[test]
fn other_settings_go_on_from_the_weights_alone() {
    let data = with_ties(60, 5, 1500, 6);
    let first = learned(&data, &by(Solver::PassiveAggressive));
    let model = first.model(&by(Solver::PassiveAggressive), None, None).unwrap();
    let other = ComparisonLearner::from_model(&model, &by(Solver::AveragedSgd)).unwrap();
    assert_eq!((other.weights(), other.threshold()), (first.weights(), first.threshold()));
    assert_eq!(other.progress().pairs(), 0);
}

#[test]
fn settings_that_do_not_fit_a_stream_are_refused() {
    let pa = by(Solver::PassiveAggressive);
    let rate = |rate: f64| Stochastic { rate: Some(rate), ..Stochastic::default() };
    let kappa = |kappa: f64| CompareSettings { kappa, ..CompareSettings::default() };
    for (settings, words) in [
        (Settings { scale: Scale::Standard, ..pa.clone() }, "cannot be scaled"),
        (Settings { loss: Loss::Logistic, ..pa.clone() }, "hinge"),
        (Settings { task: kappa(-1.0).into(), ..pa.clone() }, "`kappa`"),
        (Settings { task: kappa(f64::NAN).into(), ..pa.clone() }, "`kappa`"),
        (Settings { regularisation: Regularisation::C(0.0), ..pa.clone() }, "`c`"),
        (Settings { regularisation: Regularisation::Lambda(1.0), ..pa.clone() }, "`c`"),
        (Settings { stochastic: rate(0.1), ..pa.clone() }, "`rate`"),
        (Settings { regularisation: Regularisation::C(1.0), ..by(Solver::Sgd) }, "`lambda`"),
        (Settings { task: kappa(2.0).into(), ..by(Solver::Sgd) }, "`kappa`"),
        (Settings { stochastic: rate(1000.0), ..by(Solver::Sgd) }, "below 1"),
        (Settings { stochastic: Stochastic { batch: 2, ..rate(0.1) }, ..by(Solver::Sgd) }, "one pair"),
        (Settings::new(Task::Compare), "auto"),
        (Settings::new(Task::Rank).with_solver(Solver::PassiveAggressive), "stream"),
    ] {
        refused(ComparisonLearner::new(&settings), Code::BadSetting, words);
    }
}

#[test]
fn a_state_that_does_not_fit_its_model_is_damage() {
    let data = with_ties(60, 5, 400, 6);
    let settings = by(Solver::AveragedSgd);
    let learner = learned(&data, &settings);
    let model = learner.model(&settings, None, None).unwrap();
    let mut other = model.clone();
    other.decoder = Decoder::Compare { threshold: 7.0 };
    assert!(other.to_bytes().is_err());
    let mut other = model.clone();
    other.settings.solver = Solver::Sgd;
    assert!(other.to_bytes().is_err());
    let mut other = model;
    other.online = learned(&data, &by(Solver::PassiveAggressive))
        .model(&by(Solver::PassiveAggressive), None, None)
        .unwrap()
        .online;
    assert!(other.to_bytes().is_err());
}

#[test]
fn nothing_learned_is_no_model() {
    let settings = by(Solver::PassiveAggressive);
    let learner = ComparisonLearner::new(&settings).unwrap();
    refused(learner.model(&settings, None, None), Code::NoPairs, "nothing was learned");
}
