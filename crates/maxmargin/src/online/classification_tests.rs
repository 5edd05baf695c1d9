//! Compares long runs of the learner with plain loops that keep every number, and cuts streams anywhere.

use super::classification::ClassificationLearner;
use super::state::Learned;
use crate::data::{Dataset, Dense, Matrix, Targets};
use crate::error::Code;
use crate::loss::Loss;
use crate::random::Random;
use crate::settings::{ClassifySettings, Regularisation, Settings, Solver, Stochastic};
use crate::task::Intercept;
use crate::wish::Schedule;

/// Rows of two classes from hidden weights, with noise; every tenth label is wrong.
fn stream(rows: usize, cols: usize, seed: u64, sparse: bool) -> Dataset {
    let mut random = Random::new(seed, 1, 0);
    let truth: Vec<f64> = (0..cols).map(|_| random.normal()).collect();
    let (mut entries, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> =
            (0..cols).map(|_| if random.uniform() < 0.4 { 0.0 } else { f64::from(random.normal() as f32) }).collect();
        let z: f64 = 0.3 + row.iter().zip(&truth).map(|(x, w)| x * w).sum::<f64>();
        let wrong = random.uniform() < 0.1;
        targets.push(if (z > 0.0) != wrong { 2.0 } else { -1.0 });
        entries.push(row);
    }
    let matrix = if sparse {
        let rows: Vec<Vec<(usize, f64)>> = entries
            .iter()
            .map(|row| row.iter().copied().enumerate().filter(|entry| entry.1 != 0.0).collect())
            .collect();
        Matrix::from_rows(&rows, cols).expect("rows")
    } else {
        Matrix::DenseF64(Dense::new(entries.concat(), rows, cols).expect("rows"))
    };
    let weights: Vec<f64> = (0..rows).map(|row| [1.0, 0.5, 2.0, 0.0][row % 4]).collect();
    Dataset::new(matrix, Targets::Real(targets.into())).and_then(|data| data.with_weights(weights)).expect("data")
}

fn settings(solver: Solver, loss: Loss, lambda: f64, stochastic: Stochastic, intercept: Intercept) -> Settings {
    let task = ClassifySettings { intercept, ..ClassifySettings::default() };
    let settings = Settings { loss, regularisation: Regularisation::Lambda(lambda), stochastic, ..Settings::of(task) };
    settings.with_solver(solver)
}

fn learned(settings: &Settings, data: &Dataset) -> ClassificationLearner {
    let mut learner = ClassificationLearner::new(settings).expect("settings");
    learner.learn(data, 0..data.rows()).expect("finite");
    learner
}

/// The parts of a model of the learner.
fn resumed(settings: &Settings, learner: &ClassificationLearner) -> ClassificationLearner {
    let (weights, intercepts) = learner.point();
    let decoder = learner.decoder().expect("two classes");
    let parts =
        Learned { weights: &weights, intercepts: &intercepts, decoder: &decoder, pairs: None, rows: learner.seen() };
    ClassificationLearner::resume(settings, &learner.state(), &parts).expect("its own state")
}

#[test]
fn gradient_steps_are_those_of_weights_that_are_shrunk_one_by_one() {
    for (sparse, intercept) in [(false, Intercept::Free), (true, Intercept::Penalised), (true, Intercept::None)] {
        let data = stream(900, 5, 8, sparse);
        for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos] {
            for loss in Loss::ALL {
                for (batch, schedule) in [(1, None), (7, Some(Schedule::InverseSquareRoot))] {
                    let schedule = schedule.filter(|_| solver != Solver::Pegasos);
                    let pegasos = solver == Solver::Pegasos;
                    let (lambda, rate) = (0.05, 0.04);
                    let given = (!pegasos).then_some(rate);
                    let stochastic = Stochastic { schedule, rate: given, batch, ..Stochastic::default() };
                    let learner = learned(&settings(solver, loss, lambda, stochastic, intercept), &data);
                    let (w, b, wrong, losses) =
                        plainly(&data, solver, loss, (lambda, rate), batch, schedule, intercept);
                    let (weights, constant) = learner.point();
                    for (got, expected) in weights.iter().zip(&w) {
                        let near = (got - expected).abs() < 1e-9 * (1.0 + expected.abs());
                        assert!(near, "{solver:?} {loss:?} {batch}: {got} {expected}");
                    }
                    assert!((constant.first().copied().unwrap_or(0.0) - b).abs() < 1e-9, "{solver:?} {loss:?} {batch}");
                    assert_eq!(learner.progress().metric("error").and_then(|error| error.all), Some(wrong));
                    assert!((learner.totals().0 - losses).abs() < 1e-7 * losses, "{:?} {losses}", learner.totals());
                }
            }
        }
    }
}

/// The point to predict with, the share of wrong predictions and the sum of losses, by a loop that keeps every number.
fn plainly(
    data: &Dataset,
    solver: Solver,
    loss: Loss,
    (lambda, rate): (f64, f64),
    batch: u32,
    schedule: Option<Schedule>,
    intercept: Intercept,
) -> (Vec<f64>, f64, f64, f64) {
    let (targets, row_weights) = (data.targets().real().expect("numbers"), data.weights().expect("weights"));
    let (mut w, mut b, mut mean, mut mean_b) = (vec![0.0; 5], 0.0, vec![0.0; 5], 0.0);
    let (mut wrong, mut losses, mut step) = (0, 0.0, 0u32);
    let averaged = solver != Solver::Sgd;
    for start in (0..data.rows()).step_by(batch as usize) {
        let rows = start..(start + batch as usize).min(data.rows());
        let eta = match (solver, schedule) {
            (Solver::Pegasos, _) => 1.0 / (lambda * f64::from(step + 1)),
            (_, Some(_)) => rate / f64::from(step + 1).sqrt(),
            (Solver::Sgd, None) => rate / (1.0 + lambda * rate * f64::from(step)),
            (_, None) => rate / (1.0 + lambda * rate * f64::from(step)).powf(0.75),
        };
        let (mut pull, mut pull_b) = (vec![0.0; 5], 0.0);
        for row in rows.clone() {
            let mut x = vec![0.0; 5];
            data.matrix().each_in_row(row, |column, value| x[column] = value);
            let score = |w: &[f64], b: f64| b + w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
            let predicted = if averaged { score(&mean, mean_b) } else { score(&w, b) };
            let sign = if targets[row] > 0.0 { 1.0 } else { -1.0 };
            wrong += u32::from((predicted >= 0.0) != (sign > 0.0));
            let violation = loss.margin() - sign * score(&w, b);
            losses += row_weights[row] * loss.value(violation);
            // Steps of Pegasos on the squared hinge are limited by the length of their row.
            let square: f64 = x.iter().map(|x| x * x).sum();
            let limited = solver == Solver::Pegasos && loss == Loss::SquaredHinge && row_weights[row] > 0.0;
            let own = if limited { eta.min(0.5 / (square * row_weights[row])) } else { eta };
            let force = row_weights[row] * loss.derivative(violation) * sign / rows.len() as f64;
            pull.iter_mut().zip(&x).for_each(|(pull, x)| *pull += own / eta * force * x);
            pull_b += force * if intercept == Intercept::Free { own.min(1.0) / eta.min(1.0) } else { own / eta };
        }
        w.iter_mut().zip(&pull).for_each(|(w, pull)| *w = *w * (1.0 - eta * lambda).max(0.0) + eta * pull);
        match intercept {
            Intercept::None => {}
            Intercept::Free => b += 0.01 * eta.min(1.0) * pull_b,
            Intercept::Penalised => b = b * (1.0 - eta * lambda).max(0.0) + eta * pull_b,
        }
        let share = if solver == Solver::Pegasos { 2.0 / f64::from(step + 2) } else { 4.0 / f64::from(step + 4) };
        mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share * (w - *mean));
        mean_b += share * (b - mean_b);
        step += 1;
    }
    let (w, b) = if averaged { (mean, mean_b) } else { (w, b) };
    (w, b, f64::from(wrong) / data.rows() as f64, losses)
}

#[test]
fn a_stream_cut_between_steps_leads_to_the_same_state() {
    let data = stream(400, 5, 3, true);
    for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos] {
        for batch in [1, 4] {
            let stochastic = Stochastic { batch, ..Stochastic::default() };
            let settings = settings(solver, Loss::Hinge, 1e-3, stochastic, Intercept::Free);
            let whole = learned(&settings, &data);
            let mut parts = ClassificationLearner::new(&settings).expect("settings");
            for range in [0..16, 16..16, 16..132, 132..396, 396..400] {
                parts.learn(&data, range).expect("finite");
                parts = resumed(&settings, &parts);
            }
            assert_eq!(whole.state(), parts.state(), "{solver:?}");
        }
    }
}

#[test]
fn the_order_in_which_classes_come_up_changes_nothing() {
    let data = stream(300, 5, 3, true);
    let settings = settings(Solver::AveragedSgd, Loss::Hinge, 1e-3, Stochastic::default(), Intercept::Free);
    let declared = Settings {
        task: ClassifySettings { classes: Some(vec!["2".into(), "-1".into()]), ..ClassifySettings::default() }.into(),
        ..settings.clone()
    };
    let targets = data.targets().real().expect("numbers");
    for first in [-1.0, 2.0] {
        let start = targets.iter().position(|&target| target == first).expect("both classes");
        let rows: Vec<usize> = (start..300).collect();
        let data = data.select(&rows).expect("rows");
        let (found, known) = (learned(&settings, &data), learned(&declared, &data));
        assert_eq!(found.point(), known.point());
        assert_eq!(found.decoder().expect("two"), known.decoder().expect("two"));
        assert_eq!(found.progress().metric("auc"), known.progress().metric("auc"));
    }
}

#[test]
fn one_class_alone_is_no_model_unless_two_were_declared() {
    let matrix = Matrix::DenseF64(Dense::new(vec![1.0, 2.0], 2, 1).expect("rows"));
    let data = Dataset::new(matrix, Targets::Real(vec![1.0, 1.0].into())).expect("data");
    let settings = settings(Solver::Sgd, Loss::Hinge, 1e-3, Stochastic::default(), Intercept::Free);
    assert_eq!(learned(&settings, &data).decoder().expect_err("one class").code(), Code::SingleClass);
    let classes = Some(vec!["0".to_string(), "1".to_string()]);
    let declared = Settings { task: ClassifySettings { classes, ..ClassifySettings::default() }.into(), ..settings };
    assert!(learned(&declared, &data).decoder().is_ok());
    let other = data.with_targets(Targets::Real(vec![1.0, 7.0].into())).expect("targets");
    let error =
        ClassificationLearner::new(&declared).expect("settings").learn(&other, 0..2).expect_err("a third class");
    assert_eq!(error.code(), Code::UnknownLabel);
}

#[test]
fn numbers_that_overflow_are_an_error() {
    let matrix = Matrix::DenseF64(Dense::new(vec![1e300, -1e300, 1e300], 3, 1).expect("rows"));
    let data = Dataset::new(matrix, Targets::Real(vec![1.0, -1.0, -1.0].into())).expect("data");
    let stochastic = Stochastic { rate: Some(1e9), ..Stochastic::default() };
    let settings = settings(Solver::Sgd, Loss::SquaredHinge, 1e-12, stochastic, Intercept::Free);
    let mut learner = ClassificationLearner::new(&settings).expect("settings");
    assert_eq!(learner.learn(&data, 0..3).expect_err("overflow").code(), Code::Overflow);
}
