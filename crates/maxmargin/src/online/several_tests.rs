//! Several classes, ratings and rankings from a stream, against plain loops that keep every number, and passive-aggressive
//! steps against their objectives.

use super::classification::ClassificationLearner;
use super::ordinal::OrdinalLearner;
use super::progress::Errors;
use super::ranking::RankingLearner;
use super::state::{Learned, OnlineState};
use crate::certificate::Decoder;
use crate::data::{Dataset, Dense, Groups, Matrix, Names, Outcome, Pairs, Targets};
use crate::error::Code;
use crate::loss::Loss;
use crate::random::Random;
use crate::settings::{
    ClassifySettings, OrdinalForm, OrdinalSettings, RankSettings, Regularisation, Settings, Solver, Stochastic,
    TaskSettings,
};
use crate::task::{Intercept, Multiclass};
use proptest::prelude::*;

const COLS: usize = 4;

fn rows(count: usize, seed: u64) -> (Vec<Vec<f64>>, Random) {
    let mut random = Random::new(seed, 1, 0);
    let rows = (0..count).map(|_| (0..COLS).map(|_| f64::from(random.normal() as f32)).collect()).collect();
    (rows, random)
}

fn data(rows: &[Vec<f64>], targets: Vec<f64>) -> Dataset {
    let matrix = Matrix::DenseF64(Dense::new(rows.concat(), rows.len(), COLS).expect("rows"));
    Dataset::new(matrix, Targets::Real(targets.into())).expect("data")
}

/// Settings of gradient steps with a given first rate, or of passive-aggressive steps.
fn settings(task: impl Into<TaskSettings>, solver: Solver, loss: Loss, batch: u32) -> Settings {
    let gradient = matches!(solver, Solver::Sgd | Solver::AveragedSgd);
    let regularisation =
        if solver == Solver::PassiveAggressive { Regularisation::C(0.3) } else { Regularisation::Lambda(0.02) };
    let stochastic = Stochastic { batch, rate: gradient.then_some(0.05), ..Stochastic::default() };
    Settings { loss, regularisation, stochastic, ..Settings::of(task) }.with_solver(solver)
}

/// η at step t for [`settings`].
fn rate(solver: Solver, t: usize) -> f64 {
    let fall = 1.0 + 0.02 * 0.05 * t as f64;
    match solver {
        Solver::Sgd => 0.05 / fall,
        Solver::AveragedSgd => 0.05 / fall.powf(0.75),
        _ => 1.0 / (0.02 * (t + 1) as f64),
    }
}

fn share(solver: Solver, t: usize) -> f64 {
    match solver {
        Solver::Sgd => 1.0,
        Solver::AveragedSgd => 4.0 / (t + 4) as f64,
        _ => 2.0 / (t + 2) as f64,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn near(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{got} {expected}");
    }
}

/// The class of the largest score of hidden weights, with noise.
fn classes(count: usize, classes: usize, seed: u64) -> Dataset {
    let (rows, mut random) = rows(count, seed);
    let hidden: Vec<Vec<f64>> = (0..classes).map(|_| (0..COLS).map(|_| random.normal()).collect()).collect();
    let targets = rows.iter().map(|row| {
        let scores: Vec<f64> = hidden.iter().map(|w| dot(w, row) + 0.3 * random.normal()).collect();
        let best = (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0);
        best as f64
    });
    data(&rows, targets.collect())
}

/// The loss and its slope by each score.
fn class_loss(form: Multiclass, loss: Loss, scores: &[f64], own: usize) -> (f64, Vec<f64>) {
    let k = scores.len();
    let value = |scores: &[f64]| -> f64 {
        let v = |m: usize| 1.0 + scores[m] - scores[own];
        let others = || (0..k).filter(|&m| m != own);
        match (form, loss) {
            (Multiclass::Joint, Loss::Hinge) => others().map(v).fold(0.0, f64::max),
            (Multiclass::Joint, _) => (0..k).map(|m| (scores[m] - scores[own]).exp()).sum::<f64>().ln(),
            (Multiclass::WestonWatkins, _) => others().map(|m| loss.value(v(m))).sum(),
            _ => (0..k).map(|m| loss.value(loss.margin() - if m == own { scores[m] } else { -scores[m] })).sum(),
        }
    };
    // At a kink, the first of equal violations counts.
    if (form, loss) == (Multiclass::Joint, Loss::Hinge) {
        let first = |best: usize, m: usize| if scores[m] > scores[best] { m } else { best };
        let rival = (0..k).filter(|&m| m != own).reduce(first).expect("another class");
        let force = if value(scores) > 0.0 { 1.0 } else { 0.0 };
        let slope = |m: usize| {
            if m == rival {
                force
            } else if m == own {
                -force
            } else {
                0.0
            }
        };
        return (value(scores), (0..k).map(slope).collect());
    }
    let h = 1e-6;
    let slope = |m: usize| {
        let (mut up, mut down) = (scores.to_vec(), scores.to_vec());
        up[m] += h;
        down[m] -= h;
        (value(&up) - value(&down)) / (2.0 * h)
    };
    (value(scores), (0..k).map(slope).collect())
}

#[test]
fn gradient_steps_on_several_classes_are_those_of_plain_weights() {
    let data = classes(300, 4, 5);
    let targets = data.targets().real().expect("numbers").to_vec();
    for (form, loss) in [
        (Multiclass::Joint, Loss::Hinge),
        (Multiclass::Joint, Loss::Logistic),
        (Multiclass::WestonWatkins, Loss::SquaredHinge),
        (Multiclass::WestonWatkins, Loss::Hinge),
        (Multiclass::OneVsRest, Loss::Logistic),
    ] {
        for (solver, batch) in [(Solver::Sgd, 1), (Solver::AveragedSgd, 5)] {
            let names = (0..4).map(|class| class.to_string()).collect();
            let task = ClassifySettings {
                multiclass: Some(form),
                classes: Some(names),
                intercept: Intercept::Penalised,
                ..ClassifySettings::default()
            };
            let settings = settings(task, solver, loss, batch);
            let mut learner = ClassificationLearner::new(&settings).expect("settings");
            learner.learn(&data, 0..300).expect("finite");
            // w with a constant feature, four numbers a class and one for it.
            let (mut w, mut mean) = (vec![vec![0.0; COLS + 1]; 4], vec![vec![0.0; COLS + 1]; 4]);
            let (mut wrong, mut losses) = (0.0, 0.0);
            for (t, start) in (0..300).step_by(batch as usize).enumerate() {
                let eta = rate(solver, t);
                let mut step = vec![vec![0.0; COLS + 1]; 4];
                for (row, target) in targets.iter().enumerate().skip(start).take(batch as usize) {
                    let mut x = [1.0; COLS + 1];
                    data.matrix().each_in_row(row, |column, value| x[column] = value);
                    let own = *target as usize;
                    let shown: Vec<f64> =
                        if solver == Solver::Sgd { &w } else { &mean }.iter().map(|w| dot(w, &x)).collect();
                    let best = (0..4).rev().max_by(|&a, &b| shown[a].total_cmp(&shown[b])).expect("four");
                    wrong += f64::from(u8::from(best != own));
                    let scores: Vec<f64> = w.iter().map(|w| dot(w, &x)).collect();
                    let (value, slopes) = class_loss(form, loss, &scores, own);
                    losses += value;
                    for (step, slope) in step.iter_mut().zip(&slopes) {
                        step.iter_mut().zip(&x).for_each(|(step, x)| *step -= eta / f64::from(batch) * slope * x);
                    }
                }
                for (w, step) in w.iter_mut().zip(&step) {
                    w.iter_mut().zip(step).for_each(|(w, step)| *w = *w * (1.0 - eta * 0.02) + step);
                }
                for (mean, w) in mean.iter_mut().zip(&w) {
                    mean.iter_mut().zip(w).for_each(|(mean, w)| *mean += share(solver, t) * (w - *mean));
                }
            }
            let (weights, constants) = learner.point();
            for class in 0..4 {
                for column in 0..COLS {
                    let (got, expected) = (weights[column * 4 + class], mean[class][column]);
                    assert!((got - expected).abs() < 1e-5, "{form:?} {loss:?} {solver:?}: {got} {expected}");
                }
                assert!((constants[class] - mean[class][COLS]).abs() < 1e-5);
            }
            let error = learner.progress().metric("error").and_then(|error| error.all).expect("rows");
            assert!((error - wrong / 300.0).abs() < 0.011, "{error} {wrong}");
            assert!((learner.totals().0 - losses).abs() < 1e-3 * losses);
        }
    }
}

#[test]
fn a_third_class_changes_no_prediction_until_it_is_learned_from() {
    let two = classes(200, 2, 7);
    let settings = settings(ClassifySettings::default(), Solver::Sgd, Loss::Hinge, 1);
    let mut learner = ClassificationLearner::new(&settings).expect("settings");
    learner.learn(&two, 0..200).expect("finite");
    let (before, constant) = learner.point();
    // A row of a third class whose weight is zero.
    let third = two.run(0..1).and_then(|row| row.with_targets(Targets::Real(vec![9.0].into())));
    let third = third.and_then(|row| row.with_weights(vec![0.0])).expect("a row");
    learner.learn(&third, 0..1).expect("finite");
    let (after, constants) = learner.point();
    let Decoder::Largest(labels) = learner.decoder().expect("three") else { panic!("three classes") };
    let (one, zero) = (labels.position("1").expect("known"), labels.position("0").expect("known"));
    // The step shrank all weights alike.
    let ratio = (after[one] - after[zero]) / before[0];
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    for column in 0..COLS {
        near(&[after[column * 3 + one] - after[column * 3 + zero]], &[ratio * before[column]]);
    }
    near(&[constants[one] - constants[zero]], &[constant[0]]);
}

#[test]
fn classes_with_a_score_each_need_not_be_declared() {
    let data = classes(400, 3, 7);
    let by_number = |declared: bool| {
        let classes = declared.then(|| (0..3).map(|class| class.to_string()).collect());
        let task = ClassifySettings { multiclass: Some(Multiclass::Joint), classes, ..ClassifySettings::default() };
        // The whole block is the first step, so that all classes are known from the beginning.
        let mut learner =
            ClassificationLearner::new(&settings(task, Solver::AveragedSgd, Loss::Logistic, 400)).expect("settings");
        learner.learn(&data, 0..400).expect("finite");
        let ((all, constants), decoder) = (learner.point(), learner.decoder().expect("classes"));
        let Decoder::Largest(labels) = decoder else { panic!("three scores") };
        let places: Vec<usize> = (0..3).map(|class| labels.position(&class.to_string()).expect("known")).collect();
        let weights = (0..COLS).flat_map(|column| places.iter().map(move |place| (column, *place)));
        let weights: Vec<f64> = weights.map(|(column, place)| all[column * 3 + place]).collect();
        assert!(all.len() == COLS * 3 && weights.iter().any(|w| *w != 0.0));
        let constants: Vec<f64> = places.iter().map(|place| constants[*place]).collect();
        (weights, constants)
    };
    let ((found, own), (known, others)) = (by_number(false), by_number(true));
    near(&found, &known);
    near(&own, &others);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// No other weights cost less: the objective is convex, so small moves in any direction are enough to tell.
    #[test]
    fn a_passive_aggressive_step_on_several_classes_is_the_least_of_its_objective(
        seed in 0u64..10_000,
        form in prop_oneof![Just((Multiclass::Joint, Loss::Hinge)), Just((Multiclass::WestonWatkins, Loss::Hinge)),
            Just((Multiclass::WestonWatkins, Loss::SquaredHinge))],
    ) {
        let (form, loss) = form;
        let data = classes(12, 5, seed);
        let names: Vec<String> = (0..5).map(|class| class.to_string()).collect();
        let task = ClassifySettings {
            multiclass: Some(form), classes: Some(names), intercept: Intercept::Penalised, ..ClassifySettings::default()
        };
        let settings = settings(task, Solver::PassiveAggressive, loss, 1);
        let mut learner = ClassificationLearner::new(&settings).expect("settings");
        learner.learn(&data, 0..11).expect("finite");
        let all = |learner: &ClassificationLearner| {
            let (weights, constants) = learner.point();
            [weights, constants].concat()
        };
        let before = all(&learner);
        learner.learn(&data, 11..12).expect("finite");
        let after = all(&learner);
        let mut x = [1.0; COLS + 1];
        data.matrix().each_in_row(11, |column, value| x[column] = value);
        let own = data.targets().real().expect("numbers")[11] as usize;
        let objective = |w: &[f64]| {
            let scores: Vec<f64> = (0..5).map(|class| (0..=COLS).map(|j| w[j * 5 + class] * x[j]).sum()).collect();
            let moved: f64 = w.iter().zip(&before).map(|(w, before)| (w - before) * (w - before)).sum();
            0.5 * moved + 0.3 * class_loss(form, loss, &scores, own).0
        };
        let least = objective(&after);
        let mut random = Random::new(seed, 2, 0);
        for size in [1e-3, 1e-2, 0.3] {
            for _ in 0..40 {
                let other: Vec<f64> = after.iter().map(|w| w + size * random.normal()).collect();
                prop_assert!(objective(&other) >= least - 1e-9);
            }
        }
    }

    #[test]
    fn a_passive_aggressive_step_on_a_pair_is_the_least_of_its_objective(
        seed in 0u64..10_000, squared in any::<bool>(), weight in 0.25..3.0f64,
    ) {
        let loss = if squared { Loss::SquaredHinge } else { Loss::Hinge };
        let (rows, mut random) = rows(4, seed);
        let outcomes = vec![Outcome::Left, Outcome::Right];
        let pairs = Pairs::new(vec![0, 2], vec![1, 3]).and_then(|pairs| pairs.with_outcomes(outcomes));
        let pairs = pairs.and_then(|pairs| pairs.with_weights(vec![1.0, weight])).expect("pairs");
        let matrix = Matrix::DenseF64(Dense::new(rows.concat(), 4, COLS).expect("rows"));
        let data = Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(pairs)).expect("data");
        let settings = settings(RankSettings::default(), Solver::PassiveAggressive, loss, 1);
        let mut learner = RankingLearner::new(&settings).expect("settings");
        learner.learn(&data, 0..1).expect("finite");
        let before = learner.weights();
        learner.learn(&data, 1..2).expect("finite");
        let after = learner.weights();
        // The right row of the second pair is better.
        let d: Vec<f64> = rows[3].iter().zip(&rows[2]).map(|(better, worse)| better - worse).collect();
        let objective = |w: &[f64]| {
            let moved: f64 = w.iter().zip(&before).map(|(w, before)| (w - before) * (w - before)).sum();
            0.5 * moved + 0.3 * weight * loss.value(1.0 - dot(w, &d))
        };
        for size in [1e-3, 1e-2, 0.3] {
            for _ in 0..40 {
                let other: Vec<f64> = after.iter().map(|w| w + size * random.normal()).collect();
                prop_assert!(objective(&other) >= objective(&after) - 1e-9);
            }
        }
    }
}

/// Pairs whose better row has the larger hidden score, with noise.
fn pairs(count: usize, seed: u64) -> (Vec<Vec<f64>>, Dataset) {
    let (rows, mut random) = rows(2 * count, seed);
    let hidden: Vec<f64> = (0..COLS).map(|_| random.normal()).collect();
    let outcome =
        |pair: usize, noise: f64| match dot(&rows[2 * pair], &hidden) - dot(&rows[2 * pair + 1], &hidden) + noise {
            z if z > 0.0 => Outcome::Left,
            _ => Outcome::Right,
        };
    let outcomes: Vec<Outcome> = (0..count).map(|pair| outcome(pair, 0.3 * random.normal())).collect();
    let left: Vec<u32> = (0..count as u32).map(|pair| 2 * pair).collect();
    let right: Vec<u32> = left.iter().map(|row| row + 1).collect();
    let made = Pairs::new(left, right).and_then(|pairs| pairs.with_outcomes(outcomes)).expect("pairs");
    let matrix = Matrix::DenseF64(Dense::new(rows.concat(), rows.len(), COLS).expect("rows"));
    let data = Dataset::new(matrix, Targets::Absent).and_then(|data| data.with_pairs(made)).expect("data");
    (rows, data)
}

#[test]
fn gradient_steps_on_pairs_are_those_of_plain_weights() {
    let (rows, data) = pairs(240, 3);
    let compared = data.pairs().expect("pairs");
    for loss in Loss::ALL {
        for (solver, batch) in [(Solver::Sgd, 1), (Solver::AveragedSgd, 4)] {
            let mut learner =
                RankingLearner::new(&settings(RankSettings::default(), solver, loss, batch)).expect("valid");
            learner.learn(&data, 0..240).expect("finite");
            let (mut w, mut mean, mut wrong) = (vec![0.0; COLS], vec![0.0; COLS], 0.0);
            for (t, start) in (0..240).step_by(batch as usize).enumerate() {
                let eta = rate(solver, t);
                let mut step = vec![0.0; COLS];
                for pair in start..start + batch as usize {
                    let (better, worse) = compared.ordered(pair);
                    let d: Vec<f64> = rows[better].iter().zip(&rows[worse]).map(|(b, w)| b - w).collect();
                    let shown = if solver == Solver::Sgd { &w } else { &mean };
                    wrong += f64::from(u8::from(dot(shown, &d) <= 0.0));
                    let slope = loss.derivative(loss.margin() - dot(&w, &d));
                    step.iter_mut().zip(&d).for_each(|(step, d)| *step += eta / f64::from(batch) * slope * d);
                }
                w.iter_mut().zip(&step).for_each(|(w, step)| *w = *w * (1.0 - eta * 0.02) + step);
                mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share(solver, t) * (w - *mean));
            }
            near(&learner.weights(), &mean);
            assert_eq!(learner.progress().metrics[0].all, Some(wrong / 240.0));
        }
    }
}

/// Lists of four rows with grades from 0 to 2.
fn lists(count: usize, seed: u64) -> (Vec<Vec<f64>>, Dataset) {
    let (rows, mut random) = rows(4 * count, seed);
    let hidden: Vec<f64> = (0..COLS).map(|_| random.normal()).collect();
    let grades = rows.iter().map(|row| (dot(row, &hidden) + 0.3 * random.normal()).clamp(0.0, 2.0).round()).collect();
    let names: Names = (0..count).map(|list| format!("q{list}")).collect();
    let groups = Groups::new((0..=count as u64).map(|list| 4 * list).collect::<Vec<_>>(), names).expect("groups");
    let data = data(&rows, grades).with_groups(groups).expect("lists");
    (rows, data)
}

#[test]
fn gradient_steps_on_lists_are_the_mean_over_their_pairs() {
    let (rows, data) = lists(120, 9);
    let grades = data.targets().real().expect("grades");
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for (solver, batch) in [(Solver::Sgd, 1), (Solver::AveragedSgd, 3)] {
            let mut learner =
                RankingLearner::new(&settings(RankSettings::default(), solver, loss, batch)).expect("valid");
            learner.learn(&data, 0..120).expect("finite");
            let (mut w, mut mean) = (vec![0.0; COLS], vec![0.0; COLS]);
            for (t, start) in (0..120).step_by(batch as usize).enumerate() {
                let eta = rate(solver, t);
                let mut step = vec![0.0; COLS];
                for list in start..start + batch as usize {
                    let own = 4 * list..4 * list + 4;
                    let all = own.clone().flat_map(|i| own.clone().map(move |j| (i, j)));
                    let ordered: Vec<(usize, usize)> = all.filter(|&(i, j)| grades[i] > grades[j]).collect();
                    for &(i, j) in &ordered {
                        let d: Vec<f64> = rows[i].iter().zip(&rows[j]).map(|(a, b)| a - b).collect();
                        let slope = loss.derivative(1.0 - dot(&w, &d)) / (f64::from(batch) * ordered.len() as f64);
                        step.iter_mut().zip(&d).for_each(|(step, d)| *step += eta * slope * d);
                    }
                }
                w.iter_mut().zip(&step).for_each(|(w, step)| *w = *w * (1.0 - eta * 0.02) + step);
                mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share(solver, t) * (w - *mean));
            }
            near(&learner.weights(), &mean);
            assert_eq!((learner.seen(), learner.progress().unit.1), (120, "lists"));
        }
    }
}

/// Ranks 1 to 4 by hidden scores and cuts.
fn rated(count: usize, seed: u64) -> Dataset {
    let (rows, mut random) = rows(count, seed);
    let hidden: Vec<f64> = (0..COLS).map(|_| random.normal()).collect();
    let rank = |row: &Vec<f64>, noise: f64| {
        let z = dot(row, &hidden) + noise;
        1.0 + [-1.0, 0.2, 1.5].iter().filter(|cut| z > **cut).count() as f64
    };
    let targets = rows.iter().map(|row| rank(row, 0.2 * random.normal())).collect();
    data(&rows, targets)
}

#[test]
fn gradient_steps_on_ratings_are_those_of_plain_weights_and_cuts() {
    let data = rated(300, 4);
    let targets = data.targets().real().expect("ranks");
    for form in OrdinalForm::ALL {
        for loss in Loss::ALL {
            for (solver, batch) in [(Solver::Sgd, 1), (Solver::AveragedSgd, 3)] {
                let classes = Some((1..=4).map(|rank| rank.to_string()).collect());
                let task = OrdinalSettings { form, classes, ..OrdinalSettings::default() };
                let mut learner = OrdinalLearner::new(&settings(task, solver, loss, batch)).expect("valid");
                let Ok(Decoder::Cuts { cuts: start, .. }) = learner.decoder() else { panic!("four ranks") };
                learner.learn(&data, 0..300).expect("finite");
                let (mut w, mut cuts, mut mean, mut mean_cuts) =
                    (vec![0.0; COLS], start.clone(), vec![0.0; COLS], start);
                let mut distance = 0.0;
                for (t, first) in (0..300).step_by(batch as usize).enumerate() {
                    let eta = rate(solver, t);
                    let (mut step, mut moves) = (vec![0.0; COLS], vec![0.0; 3]);
                    for (row, target) in targets.iter().enumerate().skip(first).take(batch as usize) {
                        let mut x = vec![0.0; COLS];
                        data.matrix().each_in_row(row, |column, value| x[column] = value);
                        let (shown, borders) = if solver == Solver::Sgd { (&w, &cuts) } else { (&mean, &mean_cuts) };
                        let predicted = 1.0 + borders.iter().filter(|cut| dot(shown, &x) >= **cut).count() as f64;
                        distance += (predicted - *target).abs();
                        let own = *target as usize - 1;
                        let counts = |k: usize| form == OrdinalForm::Implicit || k == own || k + 1 == own;
                        for k in (0..3).filter(|&k| counts(k)) {
                            let sign = if own > k { 1.0 } else { -1.0 };
                            let slope = loss.derivative(loss.margin() - sign * (dot(&w, &x) - cuts[k]));
                            let force = eta / f64::from(batch) * slope * sign;
                            step.iter_mut().zip(&x).for_each(|(step, x)| *step += force * x);
                            moves[k] -= 0.1 * force;
                        }
                    }
                    w.iter_mut().zip(&step).for_each(|(w, step)| *w = *w * (1.0 - eta * 0.02) + step);
                    cuts.iter_mut().zip(&moves).for_each(|(cut, step)| *cut += step);
                    assert!(cuts.is_sorted(), "these cuts never need to be put in order");
                    mean.iter_mut().zip(&w).for_each(|(mean, w)| *mean += share(solver, t) * (w - *mean));
                    let both = mean_cuts.iter_mut().zip(&cuts);
                    both.for_each(|(mean, cut)| *mean += share(solver, t) * (cut - *mean));
                }
                near(&learner.weights(), &mean);
                let Ok(Decoder::Cuts { cuts: learned, .. }) = learner.decoder() else { panic!("four ranks") };
                near(&learned, &mean_cuts);
                near(&[learner.progress().metric("mae").and_then(|mae| mae.all).expect("rows")], &[distance / 300.0]);
            }
        }
    }
}

#[test]
fn ranks_that_come_up_later_find_their_place() {
    let data = rated(3000, 12);
    let settings = settings(OrdinalSettings::default(), Solver::AveragedSgd, Loss::Hinge, 1);
    // First the ranks 2 and 4, then all.
    let targets = data.targets().real().expect("ranks");
    let rows: Vec<usize> = (0..1000).filter(|&row| targets[row] % 2.0 == 0.0).collect();
    let first = data.select(&rows).expect("rows");
    let mut learner = OrdinalLearner::new(&settings).expect("settings");
    learner.learn(&first, 0..first.rows()).expect("finite");
    learner.learn(&data, 1000..3000).expect("finite");
    let Ok(Decoder::Cuts { cuts, ranks }) = learner.decoder() else { panic!("four ranks") };
    assert!(cuts.is_sorted() && ranks.names() == ["1", "2", "3", "4"], "{cuts:?}");
    let recent = learner.progress().metric("mae").and_then(|mae| mae.recent).expect("rows");
    assert!(recent < 0.6, "{recent}");
}

/// The same rows with larger targets replaced by smaller ones at the beginning.
fn late(data: &Dataset) -> Dataset {
    let targets = data.targets().real().expect("numbers");
    let moved = targets.iter().enumerate().map(|(row, &target)| if row < 41 { target.clamp(1.0, 2.0) } else { target });
    let late = moved.collect::<Vec<f64>>();
    data.clone().with_targets(Targets::Real(late.into())).expect("targets")
}

/// Whatever is learned, a state that is saved and taken up again continues with the same bits.
#[test]
fn streams_that_are_cut_between_steps_lead_to_the_same_state() {
    fn check<L: Clone>(
        new: impl Fn() -> L,
        learn: impl Fn(&mut L, std::ops::Range<usize>),
        again: impl Fn(&L) -> L,
        state: impl Fn(&L) -> OnlineState,
        count: usize,
    ) {
        let mut whole = new();
        learn(&mut whole, 0..count);
        let mut parts = new();
        for range in [0..12, 12..12, 12..60, 60..count] {
            learn(&mut parts, range);
            parts = again(&parts);
        }
        assert_eq!(state(&whole), state(&parts));
    }
    let parts = |weights: &[f64], intercepts: &[f64], decoder: &Decoder, pairs: Option<u64>, rows: u64| {
        let owned: (Vec<f64>, Vec<f64>, Decoder) = (weights.to_vec(), intercepts.to_vec(), decoder.clone());
        (owned, pairs, rows)
    };
    for solver in [Solver::Sgd, Solver::AveragedSgd, Solver::Pegasos, Solver::PassiveAggressive] {
        let batch = if solver == Solver::PassiveAggressive { 1 } else { 4 };
        // The third and the fourth class come up late.
        let several = late(&classes(120, 4, 2));
        // Two classes have passive-aggressive steps of their own.
        let multiclass = (solver == Solver::PassiveAggressive).then_some(Multiclass::Joint);
        let task = ClassifySettings { multiclass, ..ClassifySettings::default() };
        let task = settings(task, solver, Loss::Hinge, batch);
        check(
            || ClassificationLearner::new(&task).expect("settings"),
            |learner, range| learner.learn(&several, range).expect("finite"),
            |learner| {
                let ((w, b), decoder) = (learner.point(), learner.decoder().expect("classes"));
                let ((w, b, decoder), pairs, rows) = parts(&w, &b, &decoder, None, learner.seen());
                let learned = Learned { weights: &w, intercepts: &b, decoder: &decoder, pairs, rows };
                ClassificationLearner::resume(&task, &learner.state(), &learned).expect("its own state")
            },
            ClassificationLearner::state,
            120,
        );
        let ratings = late(&rated(120, 2));
        let task = settings(OrdinalSettings::default(), solver, Loss::Hinge, batch);
        check(
            || OrdinalLearner::new(&task).expect("settings"),
            |learner, range| learner.learn(&ratings, range).expect("finite"),
            |learner| {
                let (w, decoder) = (learner.weights(), learner.decoder().expect("ranks"));
                let learned =
                    Learned { weights: &w, intercepts: &[], decoder: &decoder, pairs: None, rows: learner.seen() };
                OrdinalLearner::resume(&task, &learner.state(), &learned).expect("its own state")
            },
            OrdinalLearner::state,
            120,
        );
        let task = settings(RankSettings::default(), solver, Loss::SquaredHinge, batch);
        for data in [pairs(120, 6).1, lists(120, 6).1] {
            check(
                || RankingLearner::new(&task).expect("settings"),
                |learner, range| learner.learn(&data, range).expect("finite"),
                |learner| {
                    let (w, pairs) = (learner.weights(), learner.pairs());
                    let learned =
                        Learned { weights: &w, intercepts: &[], decoder: &Decoder::Rank, pairs, rows: learner.seen() };
                    RankingLearner::resume(&task, &learner.state(), &learned).expect("its own state")
                },
                RankingLearner::state,
                120,
            );
        }
    }
}

/// A state as if so many examples more had come before.
fn later(state: &OnlineState, more: u64) -> OnlineState {
    let mut later = state.clone();
    let mut metrics = state.counts("metrics").expect("counts").to_vec();
    if let Some(seen) = metrics.first_mut() {
        *seen += more;
    }
    // The counts of scores, which only two classes have, add up to the number of rows.
    if let Some(score) = metrics.get_mut(Errors::NUMBERS) {
        *score += more;
    }
    later.put_counts("metrics", metrics);
    let mut steps = state.counts("steps").expect("counts").to_vec();
    steps.iter_mut().take(2).for_each(|count| *count += more);
    later.put_counts("steps", steps);
    if let (Some(&[seen]), Some(means)) = (state.counts("means-seen"), state.reals("means")) {
        let mut means = means.to_vec();
        means.resize(1 + super::RECENT as usize, 0.0);
        later.put_counts("means-seen", vec![seen + more]);
        later.put_reals("means", means);
    }
    later
}

#[test]
fn ten_thousand_million_examples_are_counted() {
    const MANY: u64 = 10_000_000_000;
    for solver in [Solver::Pegasos, Solver::AveragedSgd, Solver::PassiveAggressive] {
        let joint = (solver == Solver::PassiveAggressive).then_some(Multiclass::Joint);
        for classes_of in [2, 4] {
            let rows = classes(60, classes_of, 4);
            let task = ClassifySettings { multiclass: joint, ..ClassifySettings::default() };
            let task = settings(task, solver, Loss::Hinge, 1);
            let mut learner = ClassificationLearner::new(&task).expect("settings");
            learner.learn(&rows, 0..30).expect("finite");
            let ((w, b), decoder) = (learner.point(), learner.decoder().expect("classes"));
            let learned = Learned { weights: &w, intercepts: &b, decoder: &decoder, pairs: None, rows: 30 + MANY };
            let state = later(&learner.state(), MANY);
            let mut learner = ClassificationLearner::resume(&task, &state, &learned).expect("a state");
            learner.learn(&rows, 30..60).expect("finite");
            assert_eq!(learner.seen(), 60 + MANY);
            assert_eq!(learner.state().counts("steps"), Some(&[60 + MANY][..]));
        }
        let ratings = rated(60, 4);
        let task = settings(OrdinalSettings::default(), solver, Loss::Hinge, 1);
        let mut learner = OrdinalLearner::new(&task).expect("settings");
        learner.learn(&ratings, 0..30).expect("finite");
        let (w, decoder) = (learner.weights(), learner.decoder().expect("ranks"));
        let learned = Learned { weights: &w, intercepts: &[], decoder: &decoder, pairs: None, rows: 30 + MANY };
        let mut learner = OrdinalLearner::resume(&task, &later(&learner.state(), MANY), &learned).expect("a state");
        learner.learn(&ratings, 30..60).expect("finite");
        assert_eq!(learner.seen(), 60 + MANY);
        let task = settings(RankSettings::default(), solver, Loss::SquaredHinge, 1);
        for data in [pairs(60, 6).1, lists(60, 6).1] {
            let mut learner = RankingLearner::new(&task).expect("settings");
            learner.learn(&data, 0..30).expect("finite");
            let (w, pairs) = (learner.weights(), learner.pairs().map(|pairs| pairs + MANY));
            let learned = Learned { weights: &w, intercepts: &[], decoder: &Decoder::Rank, pairs, rows: 30 + MANY };
            let mut learner = RankingLearner::resume(&task, &later(&learner.state(), MANY), &learned).expect("a state");
            learner.learn(&data, 30..60).expect("finite");
            assert_eq!(learner.seen(), 60 + MANY);
        }
    }
}

#[test]
fn declared_ranks_and_classes_that_never_come_and_rows_of_zeros_are_learned_beside() {
    let zeros = |count: usize| (0..count).map(|row| vec![f64::from(row % 3 == 0); COLS]).collect::<Vec<_>>();
    let targets: Vec<f64> = (0..60).map(|row| f64::from(1 + 2 * (row % 2))).collect();
    let rows = data(&zeros(60), targets);
    let names = |list: &str| Some(list.split(',').map(String::from).collect::<Vec<_>>());
    for (solver, loss) in [
        (Solver::PassiveAggressive, Loss::Hinge),
        (Solver::PassiveAggressive, Loss::SquaredHinge),
        (Solver::Sgd, Loss::Hinge),
    ] {
        let task = OrdinalSettings { classes: names("1,2,3,4"), ..OrdinalSettings::default() };
        let mut learner = OrdinalLearner::new(&settings(task, solver, loss, 1)).expect("settings");
        learner.learn(&rows, 0..60).expect("finite");
        let decoder = learner.decoder().expect("ranks");
        let (cuts, ranks) = decoder.cuts().expect("cuts");
        assert!(ranks.len() == 4 && cuts.is_sorted() && learner.weights().iter().all(|w| w.is_finite()), "{cuts:?}");
        let task = OrdinalSettings { classes: names("1,2"), ..OrdinalSettings::default() };
        let error = OrdinalLearner::new(&settings(task, solver, loss, 1)).expect("settings").learn(&rows, 0..60);
        assert_eq!(error.expect_err("rank 3").code(), Code::UnknownLabel);
        let multiclass = Some(Multiclass::WestonWatkins);
        let task = ClassifySettings { multiclass, classes: names("1,2,3,4"), ..ClassifySettings::default() };
        let mut learner = ClassificationLearner::new(&settings(task, solver, loss, 1)).expect("settings");
        learner.learn(&rows, 0..60).expect("finite");
        assert_eq!((learner.outputs(), learner.seen()), (4, 60));
        assert!(learner.point().0.iter().all(|w| w.is_finite()));
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let ratings = rated(40, 2);
    let task = settings(OrdinalSettings::default(), Solver::AveragedSgd, Loss::Hinge, 1);
    let mut learner = OrdinalLearner::new(&task).expect("settings");
    learner.learn(&ratings, 0..40).expect("finite");
    let (w, decoder) = (learner.weights(), learner.decoder().expect("ranks"));
    let learned = Learned { weights: &w, intercepts: &[], decoder: &decoder, pairs: None, rows: 40 };
    let whole = learner.state();
    assert!(OrdinalLearner::resume(&task, &whole, &learned).is_ok());
    for name in ["cuts", "weights", "average", "scales", "totals", "means", "rate"] {
        let values = whole.reals(name).expect("an entry").to_vec();
        let mut short = whole.clone();
        short.put_reals(name, values[..values.len() - 1].to_vec());
        let error = OrdinalLearner::resume(&task, &short, &learned).expect_err(name);
        assert_eq!(error.code(), Code::DamagedModel, "{name}");
    }
    for name in ["steps", "metrics", "means-seen", "since"] {
        let mut wrong = whole.clone();
        wrong.put_counts(name, vec![u64::MAX]);
        assert!(OrdinalLearner::resume(&task, &wrong, &learned).is_err(), "{name}");
    }
}

#[test]
fn a_first_rate_that_is_found_is_near_the_best() {
    let data = classes(6000, 2, 31);
    let task = |rate: Option<f64>| {
        let stochastic = Stochastic { rate, ..Stochastic::default() };
        let settings = settings(ClassifySettings::default(), Solver::AveragedSgd, Loss::Logistic, 1);
        Settings { stochastic, regularisation: Regularisation::Lambda(1e-4), ..settings }
    };
    let loss = |rate: Option<f64>| {
        let mut learner = ClassificationLearner::new(&task(rate)).expect("settings");
        assert_eq!(learner.wanted() > 0, rate.is_none());
        learner.learn(&data, 0..6000).expect("finite");
        learner.totals().0 / 6000.0
    };
    let best = (-10..10).map(|power| loss(Some(2f64.powi(power)))).fold(f64::INFINITY, f64::min);
    let found = loss(None);
    assert!(found < 1.05 * best, "{found} {best}");
}
