//! Tests of the learner of label sets.

use super::*;
use crate::data::{Dense, Matrix, Targets};
use crate::random::Random;
use crate::settings::Task;

fn data(rows: usize, labels: usize, seed: u64, weighted: bool) -> Dataset {
    let mut random = Random::new(seed, 5, 0);
    let (mut values, mut codes, mut ends) = (Vec::new(), Vec::new(), vec![0u64]);
    for row in 0..rows {
        let x: Vec<f64> = (0..4).map(|_| random.normal()).collect();
        let has = |label: usize| x[label % 4] + 0.2 * (label as f64) + 0.3 * (row % 3) as f64 > 0.8;
        codes.extend((0..labels).filter(|&label| has(label)).map(|label| label as u32));
        ends.push(codes.len() as u64);
        values.extend(x);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 4).expect("rows"));
    let names = (0..labels).map(|label| format!("l{label}")).collect();
    let data = Dataset::new(matrix, Targets::Sets { names, starts: ends.into(), codes: codes.into() });
    let data = data.expect("sets");
    if !weighted {
        return data;
    }
    data.with_weights((0..rows).map(|row| (row % 4) as f64 / 2.0).collect::<Vec<_>>()).expect("weights")
}

fn settings(step: SetStep, c: f64, intercept: Intercept) -> Settings {
    let task = MultilabelSettings { step, intercept, ..MultilabelSettings::default() };
    let settings = Settings { loss: Loss::Hinge, regularisation: Regularisation::C(c), ..Settings::of(task) };
    settings.with_solver(Solver::PassiveAggressive)
}

#[test]
fn the_bound_holds_at_every_moment() {
    for (step, c, intercept, weighted) in [
        (SetStep::Exact, 0.1, Intercept::Penalised, false),
        (SetStep::Exact, 10.0, Intercept::None, true),
        (SetStep::TwoLabels, 0.1, Intercept::Penalised, true),
        (SetStep::TwoLabels, 1.0, Intercept::None, false),
    ] {
        let rows = data(400, 5, 3, weighted);
        let mut learner = SetLearner::new(&settings(step, c, intercept)).expect("a learner");
        for row in 0..rows.rows() {
            learner.learn(&rows, row..row + 1).expect("learns");
            if let Some(bound) = learner.bound() {
                let Tally { counted, mistakes, precision, .. } = learner.tally;
                let lost = 1.0 - precision / counted as f64;
                let share = mistakes as f64 / counted as f64;
                assert!(
                    lost <= share + 1e-12 && share <= bound * (1.0 + 1e-9),
                    "{step:?} {row}: {lost} {share} {bound}"
                );
            }
        }
        assert!(learner.tally.mistakes > 10);
    }
}

/// The scores of a row.
fn scores_of(rows: &Dataset, row: usize, (weights, constants): &(Vec<f64>, Vec<f64>), outputs: usize) -> Vec<f64> {
    let mut scores = vec![0.0; outputs];
    with_rows!(rows.matrix(), matrix => matrix.dots(row, weights, &mut scores));
    scores.iter_mut().zip(constants).for_each(|(score, constant)| *score += constant);
    scores
}

fn names(labels: usize) -> Vec<String> {
    (0..labels).map(|label| format!("l{label}")).collect()
}

/// A learner that knows all labels and features before the first row, so that weights can be compared.
fn informed(settings: &Settings, rows: &Dataset, labels: usize) -> SetLearner {
    let mut learner = SetLearner::new(settings).expect("a learner");
    learner.know(&names(labels)).expect("labels");
    learner.point.grow(rows.cols());
    learner
}

fn squares(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The rise is the objective of the problem of the step, by its definition.
#[test]
fn an_exact_step_has_the_value_of_its_problem() {
    let rows = data(200, 4, 7, true);
    let mut learner = informed(&settings(SetStep::Exact, 0.3, Intercept::Penalised), &rows, 4);
    for row in 0..rows.rows() {
        let before = learner.clone();
        learner.learn(&rows, row..row + 1).expect("learns");
        let cost = 0.3 * rows.weights().expect("weights")[row];
        let ((old, old_constants), point) = (before.point(), learner.point());
        let moved = squares(&point.0, &old) + squares(&point.1, &old_constants);
        let scores = scores_of(&rows, row, &point, 5);
        let mut own = Vec::new();
        learner.labels.set(&rows, row, &mut own).expect("labels");
        let is_own = |label: &usize| own.contains(&(*label as u32));
        let mine = (0..4).filter(is_own).map(|label| 1.0 + scores[4] - scores[label]).fold(0.0, f64::max);
        let others =
            (0..4).filter(|label| !is_own(label)).map(|label| 1.0 + scores[label] - scores[4]).fold(0.0, f64::max);
        let primal = 0.5 * moved + cost * (mine + others);
        let dual = learner.tally.rise - before.tally.rise;
        assert!((primal - dual).abs() <= 1e-10 * (1.0 + primal), "{row}: {primal} {dual}");
    }
}

fn descending(solver: Solver, loss: Loss, multilabel: Multilabel, lambda: f64) -> Settings {
    let task = MultilabelSettings { multilabel, ..MultilabelSettings::default() };
    let settings = Settings { loss, regularisation: Regularisation::Lambda(lambda), ..Settings::of(task) };
    Settings { max_passes: 1, ..settings.with_solver(solver) }
}

const FORMS: [(Multilabel, Loss); 5] = [
    (Multilabel::Calibrated, Loss::Hinge),
    (Multilabel::Calibrated, Loss::Logistic),
    (Multilabel::OneVsRest, Loss::Hinge),
    (Multilabel::OneVsRest, Loss::SquaredHinge),
    (Multilabel::OneVsRest, Loss::Logistic),
];

/// The loss by its definition.
fn loss_by_definition((form, loss): (Multilabel, Loss), own: &[u32], scores: &[f64], labels: usize) -> f64 {
    let is_own = |label: usize| own.contains(&(label as u32));
    if form == Multilabel::OneVsRest {
        let sign = |label: usize| if is_own(label) { 1.0 } else { -1.0 };
        return (0..labels).map(|label| loss.value(loss.margin() - sign(label) * scores[label])).sum();
    }
    [(true, 1.0), (false, -1.0)]
        .into_iter()
        .map(|(mine, sign)| {
            let below =
                (0..labels).filter(|&label| is_own(label) == mine).map(|label| sign * (scores[labels] - scores[label]));
            match loss {
                Loss::Logistic => below.map(f64::exp).sum::<f64>().ln_1p(),
                _ => below.map(|below| 1.0 + below).fold(0.0, f64::max),
            }
        })
        .sum()
}

/// Against numerical derivatives of the loss by each score.
#[test]
fn a_gradient_step_follows_the_derivatives_of_the_mean_loss() {
    let rows = data(120, 5, 21, true);
    for (form, loss) in FORMS {
        let mut settings = descending(Solver::Sgd, loss, form, 0.1);
        settings.stochastic.rate = Some(0.2);
        settings.stochastic.batch = 3;
        let mut learner = informed(&settings, &rows, 5);
        // At equal scores the hinge has a kink.
        learner.learn(&rows, 0..30).expect("learns");
        for start in (30..rows.rows()).step_by(3) {
            let (before, step) = (learner.point(), learner.tally.steps);
            learner.learn(&rows, start..start + 3).expect("learns");
            let rate = 0.2 / (1.0 + 0.1 * 0.2 * step as f64);
            let outputs = learner.outputs();
            let mut wanted = (before.0.clone(), before.1.clone());
            wanted.0.iter_mut().chain(&mut wanted.1).for_each(|w| *w *= 1.0 - rate * 0.1);
            for row in start..start + 3 {
                let mut own = Vec::new();
                learner.labels.set(&rows, row, &mut own).expect("labels");
                let scores = scores_of(&rows, row, &before, outputs);
                let weight = rows.weights().expect("weights")[row];
                for output in 0..outputs {
                    let at = |by: f64| {
                        let mut scores = scores.clone();
                        scores[output] += by;
                        loss_by_definition((form, loss), &own, &scores, 5)
                    };
                    let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
                    let step = rate * weight * slope / 3.0;
                    with_rows!(rows.matrix(), matrix => matrix.each(row, |column, value| {
                        wanted.0[column * outputs + output] -= step * value;
                    }));
                    wanted.1[output] -= step;
                }
            }
            let found = learner.point();
            let apart = squares(&found.0, &wanted.0) + squares(&found.1, &wanted.1);
            assert!(apart.sqrt() <= 1e-6, "{form:?} {loss:?} {start}: {apart:e}");
        }
        assert!(learner.bound().is_none());
    }
}

/// Of many passes over the same rows, by the objective of the batch solver.
#[test]
fn gradient_steps_come_near_the_optimum() {
    let rows = data(300, 4, 5, false);
    for (form, loss) in FORMS {
        for solver in [Solver::AveragedSgd, Solver::Pegasos, Solver::Sgd] {
            let settings = descending(solver, loss, form, 0.05);
            let mut learner = informed(&settings, &rows, 4);
            for _ in 0..60 {
                learner.learn(&rows, 0..300).expect("learns");
            }
            let point = learner.point();
            let mean: f64 = (0..300)
                .map(|row| {
                    let mut own = Vec::new();
                    learner.labels.set(&rows, row, &mut own).expect("labels");
                    loss_by_definition((form, loss), &own, &scores_of(&rows, row, &point, learner.outputs()), 4)
                })
                .sum::<f64>()
                / 300.0;
            let all = point.0.iter().chain(&point.1);
            let found = 0.025 * all.map(|w| w * w).sum::<f64>() + mean;
            let task = MultilabelSettings { multilabel: form, ..MultilabelSettings::default() };
            let batch = Settings { loss, regularisation: Regularisation::Lambda(0.05), ..Settings::of(task) };
            let trained = crate::train::train(&rows, &batch, None, &mut crate::run::Silent, &crate::run::Cancel::new())
                .expect("trains");
            // The sum form, of C = 1/(λn).
            let best = trained.model.certificate.objective * 0.05;
            assert!(found >= best * (1.0 - 2e-3), "{form:?} {loss:?} {solver:?}: {found} {best}");
            let most = if solver == Solver::Sgd { 1.05 } else { 1.02 };
            assert!(found <= best * most, "{form:?} {loss:?} {solver:?}: {found} {best}");
        }
    }
}

#[test]
fn declared_labels_are_known_from_the_start_and_no_others_may_come() {
    let rows = data(50, 4, 2, false);
    for solver in [Solver::PassiveAggressive, Solver::AveragedSgd] {
        let with = |classes: &[&str]| {
            let mut settings = match solver {
                Solver::PassiveAggressive => settings(SetStep::Exact, 0.5, Intercept::Penalised),
                solver => descending(solver, Loss::Logistic, Multilabel::Calibrated, 0.01),
            };
            if let TaskSettings::Multilabel(task) = &mut settings.task {
                task.classes = Some(classes.iter().map(|name| name.to_string()).collect());
            }
            settings
        };
        // A label that never comes has no row to lie above anything: its scores are below the border.
        let mut learner = SetLearner::new(&with(&["never", "l3", "l2", "l1", "l0"])).expect("a learner");
        for _ in 0..20 {
            learner.learn(&rows, 0..50).expect("learns");
        }
        let outputs = learner.outputs();
        assert_eq!(outputs, 6);
        let point = learner.point();
        let above = (0..50).map(|row| scores_of(&rows, row, &point, outputs)).filter(|scores| scores[0] > scores[5]);
        assert_eq!(above.count(), 0, "{solver:?}");
        let mut strict = SetLearner::new(&with(&["l0", "l1", "l2"])).expect("a learner");
        let error = strict.learn(&rows, 0..50).expect_err("l3");
        assert_eq!(error.code(), Code::UnknownLabel);
        assert!(error.message().contains("`l3` of row"), "{}", error.message());
        // A model with another label cannot be continued.
        let decoder = learner.decoder().expect("labels");
        let (labels, _) = decoder.label_sets().expect("sets");
        let other = SetLearner::beginning(&with(&["l0"]), labels, point.0.clone(), &point.1).expect_err("l1");
        assert!(other.message().contains("the model has a label"), "{}", other.message());
    }
}

#[test]
fn rows_of_zeros_empty_sets_full_sets_and_repeated_rows_are_learned_from() {
    let values = vec![0.0, 0.0, 1.0, 0.5, 1.0, 0.5, 0.0, 0.0, -1.0, 0.25];
    let sets: [&[u32]; 5] = [&[0], &[], &[0, 1], &[], &[1]];
    let (mut codes, mut ends) = (Vec::new(), vec![0u64]);
    for set in sets {
        codes.extend_from_slice(set);
        ends.push(codes.len() as u64);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, 5, 2).expect("rows"));
    let names = names(2).into_iter().collect();
    let rows = Dataset::new(matrix, Targets::Sets { names, starts: ends.into(), codes: codes.into() }).expect("sets");
    let mut all = vec![
        settings(SetStep::Exact, 1.0, Intercept::None),
        settings(SetStep::Exact, 1.0, Intercept::Penalised),
        settings(SetStep::TwoLabels, 1.0, Intercept::None),
    ];
    for (form, loss) in FORMS {
        all.push(descending(Solver::AveragedSgd, loss, form, 0.01));
        all.push(descending(Solver::Pegasos, loss, form, 0.01));
    }
    for settings in all {
        let mut learner = SetLearner::new(&settings).expect("a learner");
        for _ in 0..30 {
            learner.learn(&rows, 0..5).expect("learns");
        }
        let (weights, constants) = learner.point();
        assert!(weights.iter().chain(&constants).all(|value| value.is_finite()), "{settings:?}");
        // Rows without labels, with all of them, and of zeros have no wrong order, or none that could be helped.
        let progress = learner.progress();
        assert_eq!(progress.examples, 150);
        let precision = progress.metric("label-ranking-average-precision").and_then(|m| m.all).expect("rows");
        assert!(precision > 0.7, "{settings:?}: {precision}");
        assert!(learner.bound().is_none_or(|bound| 1.0 - precision <= bound), "{settings:?}");
    }
}

#[test]
fn counts_have_sixty_four_bits() {
    let rows = data(40, 4, 13, false);
    for settings in [
        settings(SetStep::Exact, 0.5, Intercept::Penalised),
        descending(Solver::Pegasos, Loss::Hinge, Multilabel::Calibrated, 1e-4),
    ] {
        let mut learner = SetLearner::new(&settings).expect("a learner");
        learner.learn(&rows, 0..20).expect("learns");
        let many = 1u64 << 33;
        learner.tally.seen += many;
        learner.tally.counted += many;
        learner.tally.steps += many;
        let before = learner.tally;
        learner.learn(&rows, 20..40).expect("learns");
        assert_eq!(learner.seen(), many + 40);
        let ((weights, intercepts), decoder) = (learner.point(), learner.decoder().expect("labels"));
        let learned = Learned {
            weights: &weights,
            intercepts: &intercepts,
            decoder: &decoder,
            pairs: None,
            rows: learner.seen(),
        };
        let resumed = SetLearner::resume(&settings, &learner.state(), &learned).expect("resumes");
        assert_eq!((resumed.tally, resumed.tally.steps), (learner.tally, before.steps + 20));
    }
}

#[test]
fn a_stream_may_be_cut_anywhere_and_continued() {
    let rows = data(150, 6, 9, true);
    let mut all: Vec<Settings> =
        SetStep::ALL.into_iter().map(|step| settings(step, 0.5, Intercept::Penalised)).collect();
    for (form, loss) in FORMS {
        for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos] {
            let mut settings = descending(solver, loss, form, 0.01);
            settings.stochastic.rate = (solver != Solver::Pegasos).then_some(0.1);
            settings.stochastic.batch = if loss == Loss::Logistic { 3 } else { 1 };
            all.push(settings);
        }
    }
    for settings in all {
        let mut whole = SetLearner::new(&settings).expect("a learner");
        whole.learn(&rows, 0..150).expect("learns");
        for cut in [3, 39, 147] {
            let mut first = SetLearner::new(&settings).expect("a learner");
            first.learn(&rows, 0..cut).expect("learns");
            let (weights, intercepts) = first.point();
            let Ok(decoder) = first.decoder() else { continue };
            let learned = Learned {
                weights: &weights,
                intercepts: &intercepts,
                decoder: &decoder,
                pairs: None,
                rows: first.seen(),
            };
            let mut second = SetLearner::resume(&settings, &first.state(), &learned).expect("resumes");
            second.learn(&rows, cut..150).expect("learns");
            assert_eq!(second.point(), whole.point());
            assert_eq!(second.tally, whole.tally);
        }
    }
}

#[test]
fn streams_that_cannot_be_learned_are_refused() {
    assert!(SetLearner::new(&Settings::new(Task::Multilabel)).is_err());
    let own = settings(SetStep::Exact, 1.0, Intercept::None);
    assert!(SetLearner::new(&Settings { regularisation: Regularisation::Lambda(0.1), ..own.clone() }).is_err());
    assert!(SetLearner::new(&Settings { loss: Loss::Logistic, ..own.clone() }).is_err());
    let apart = MultilabelSettings { multilabel: Multilabel::OneVsRest, ..MultilabelSettings::default() };
    assert!(SetLearner::new(&Settings { task: apart.into(), ..own.clone() }).is_err());
    // The calibrated form has no squared hinge, and gradient steps have no choice of labels.
    assert!(
        SetLearner::new(&descending(Solver::Sgd, Loss::SquaredHinge, Multilabel::Calibrated, 0.1))
            .expect_err("squared")
            .message()
            .contains("squared hinge")
    );
    let two = MultilabelSettings { step: SetStep::TwoLabels, ..MultilabelSettings::default() };
    let mut settings = descending(Solver::Sgd, Loss::Hinge, Multilabel::Calibrated, 0.1);
    settings.task = two.into();
    assert!(SetLearner::new(&settings).is_err());
    let learner = SetLearner::new(&own).expect("a learner");
    assert!(learner.decoder().is_err() && learner.bound().is_none());
}
