//! Compares the loop with a plain version that updates every weight at every step, and draws with listed pairs.

use super::*;
use crate::data::{Dataset, Groups, Matrix, Names, Scale, Scaling, Targets};
use crate::random::Random;
use crate::run::Silent;
use crate::solve::{LinearRisk, Newton};
use crate::task::{Binary, ClassWeight, Classes, PairWeight};
use std::collections::BTreeMap;

/// Rows of seven features around a hidden direction, with weights and, for rankers, groups of uneven length.
pub(super) fn made(rows: usize, sparse: bool, ranked: bool) -> Dataset {
    let mut random = Random::new(5, 77, u64::from(sparse));
    let (mut features, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let mut row: Vec<(usize, f64)> = (0..7).map(|column| (column, 0.3 * column as f64 + random.normal())).collect();
        row.retain(|_| !(sparse && random.chance(0.7)));
        let score: f64 = row.iter().map(|(column, x)| (*column as f64 - 2.0) * x).sum::<f64>() + random.normal();
        targets.push(if ranked { (score / 3.0).round().clamp(-1.0, 2.0) } else { score.signum() });
        weights.push([0.0, 0.5, 1.0, 2.0][random.below(4) as usize]);
        features.push(row);
    }
    let data = Dataset::new(Matrix::from_rows(&features, 7).expect("valid"), Targets::Real(targets.into()));
    let data = data.expect("valid").with_weights(weights).expect("valid");
    assert_eq!(data.matrix().is_dense(), !sparse);
    if !ranked {
        return data;
    }
    let mut starts: Vec<u64> = (0..).map(|group: u64| group * (group + 3)).take_while(|at| *at < rows as u64).collect();
    starts.push(rows as u64);
    let names: Names = (1..starts.len()).map(|group| format!("q{group}")).collect();
    data.with_groups(Groups::new(starts, names).expect("valid")).expect("valid")
}

pub(super) fn binary(data: &Dataset, loss: Loss, c: f64, intercept: Intercept) -> Binary {
    let classes = Classes::find(data.targets(), None).expect("two classes");
    Binary::new(data, &classes, &ClassWeight::Equal, loss, c, intercept != Intercept::None).expect("valid")
}

pub(super) fn design(data: &Dataset, scale: Scale) -> Design {
    let scaling = Scaling::fit(scale, data, &Cancel::new()).expect("valid");
    scaling.apply(data.matrix(), data.groups()).expect("valid")
}

fn descent(method: Stepping) -> StochasticDescent {
    StochasticDescent {
        method,
        schedule: Schedule::Bottou,
        rate: Some(0.05),
        batch: 1,
        project: false,
        passes: 3,
        seed: 9,
        intercept: Intercept::None,
        keep_last: true,
        judge_every: None,
    }
}

/// The result of the loop after all passes.
fn fast(settings: &StochasticDescent, problem: &dyn Sampled, design: &Design) -> (Vec<f64>, f64) {
    let mut draws = problem.draws(design, settings.seed, 0);
    with_rows!(design.matrix(), rows => {
        let rows = ScaledRows::new(design, rows);
        let mut iterate = Iterate::new(&rows, settings.intercept, settings.project);
        let mut looped = settings.start(&rows, problem, &*draws, &|| false);
        for _ in 0..settings.passes {
            assert!(looped.pass(&mut iterate, &mut *draws, &|| false));
            if let Some(square) = iterate.square() {
                let lambda = 1.0 / problem.total_cost();
                let penalised_b = if settings.intercept == Intercept::Penalised { iterate.b().powi(2) } else { 0.0 };
                assert!((square + penalised_b) * lambda <= 1.0 + 1e-12, "outside the ball");
                iterate.refresh();
                let exact = iterate.square().expect("it knows its length");
                assert!((square - exact).abs() <= 1e-10 * exact.max(1e-3), "{square} {exact}");
            }
        }
        iterate.point()
    })
}

/// The same by the formulas at the top of `mod.rs`, with dense rows and no tricks.
fn twin(settings: &StochasticDescent, problem: &dyn Sampled, design: &Design) -> (Vec<f64>, f64) {
    let lambda = 1.0 / problem.total_cost();
    let dense: Vec<Vec<f64>> = (0..design.rows())
        .map(|row| {
            let mut values = vec![0.0; design.cols()];
            design.fill_scaled_row(row, &mut values);
            values
        })
        .collect();
    let mut draws = problem.draws(design, settings.seed, 0);
    let steps = draws.count().div_ceil(settings.batch);
    let (mut w, mut b) = (vec![0.0; design.cols()], 0.0);
    let mut mean = (w.clone(), 0.0);
    let mut t = 0usize;
    for _ in 0..settings.passes {
        draws.start();
        let drawn: Vec<Constraint> = (0..draws.count()).map(|_| draws.next()).collect();
        for batch in drawn.chunks(settings.batch) {
            let (first, at) = (settings.rate.unwrap_or(1.0 / lambda), t as f64);
            let rate = match (settings.method, settings.schedule) {
                (Stepping::Pegasos, _) => 1.0 / (lambda * (at + 1.0)),
                (Stepping::Sgd, Schedule::Bottou) => first / (1.0 + lambda * first * at),
                (Stepping::AveragedSgd, Schedule::Bottou) => first / (1.0 + lambda * first * at).powf(0.75),
                (_, Schedule::InverseSquareRoot) => first / (at + 1.0).sqrt(),
                (_, Schedule::Inverse) => first / (at + 1.0),
                (_, Schedule::Constant) => first,
            };
            let (mut push, mut push_b) = (vec![0.0; w.len()], 0.0);
            for c in batch {
                let x = |at: usize| dense[c.row][at] - c.against.map_or(0.0, |row| dense[row][at]);
                let score: f64 = w.iter().enumerate().map(|(at, w)| w * x(at)).sum();
                let slope = c.cost * problem.loss().derivative(c.margin - c.coefficient * score - c.threshold * b);
                push.iter_mut()
                    .enumerate()
                    .for_each(|(at, p)| *p += slope * c.coefficient * x(at) / batch.len() as f64);
                push_b += slope * c.threshold / batch.len() as f64;
            }
            let shrink = (1.0 - rate * lambda).max(0.0);
            w.iter_mut().zip(&push).for_each(|(w, push)| *w = shrink * *w + rate * push);
            match settings.intercept {
                Intercept::None => {}
                Intercept::Free => b += 0.01 * rate.min(1.0) * push_b,
                Intercept::Penalised => b = shrink * b + rate * push_b,
            }
            if settings.project {
                let square = w.iter().map(|w| w * w).sum::<f64>()
                    + if settings.intercept == Intercept::Penalised { b * b } else { 0.0 };
                if square > 1.0 / lambda {
                    let factor = (1.0 / lambda / square).sqrt();
                    w.iter_mut().for_each(|w| *w *= factor);
                    b *= if settings.intercept == Intercept::Penalised { factor } else { 1.0 };
                }
            }
            let weight = match settings.method {
                Stepping::Sgd => 1.0,
                Stepping::AveragedSgd if t <= steps => 1.0,
                Stepping::AveragedSgd => 1.0 / (t - steps + 1) as f64,
                Stepping::Pegasos => 2.0 / (t + 2) as f64,
            };
            mean.0.iter_mut().zip(&w).for_each(|(mean, w)| *mean += weight * (w - *mean));
            mean.1 += weight * (b - mean.1);
            t += 1;
        }
    }
    mean
}

fn assert_twins(settings: &StochasticDescent, problem: &dyn Sampled, design: &Design, context: &str) {
    let (fast, fast_b) = fast(settings, problem, design);
    let (slow, slow_b) = twin(settings, problem, design);
    let size = slow.iter().map(|w| w * w).sum::<f64>().sqrt() + slow_b.abs();
    assert!(size > 1e-3, "nothing was learned: {context}");
    for (fast, slow) in fast.iter().chain([&fast_b]).zip(slow.iter().chain([&slow_b])) {
        assert!((fast - slow).abs() <= 1e-9 * size, "{fast} {slow} {context} {settings:?}");
    }
}

#[test]
fn every_method_and_schedule_takes_the_steps_of_its_plain_twin() {
    for sparse in [false, true] {
        let data = made(150, sparse, false);
        let design = design(&data, Scale::None);
        for loss in Loss::ALL {
            // With the first cost, weights shrink so fast that the divisors are multiplied out again and again.
            for c in [0.05, 3.0] {
                let task = binary(&data, loss, c, Intercept::None);
                let problem = ByRow::new(&task).expect("few rows");
                for schedule in Schedule::ALL {
                    for method in [Stepping::Sgd, Stepping::AveragedSgd] {
                        let settings = StochasticDescent { schedule, ..descent(method) };
                        assert_twins(&settings, &problem, &design, loss.name());
                    }
                }
                if loss != Loss::SquaredHinge {
                    let settings = StochasticDescent { rate: None, ..descent(Stepping::Pegasos) };
                    assert_twins(&settings, &problem, &design, loss.name());
                }
            }
        }
    }
}

#[test]
fn batches_projections_intercepts_and_scalings_keep_the_twins_together() {
    for sparse in [false, true] {
        let data = made(150, sparse, false);
        for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
            let design = design(&data, scale);
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                let task = binary(&data, Loss::Hinge, 0.5, intercept);
                let problem = ByRow::new(&task).expect("few rows");
                for method in [Stepping::Sgd, Stepping::AveragedSgd, Stepping::Pegasos] {
                    for (batch, project) in [(1, true), (7, false), (7, true), (1000, false)] {
                        let settings = StochasticDescent { batch, project, intercept, ..descent(method) };
                        assert_twins(&settings, &problem, &design, scale.name());
                    }
                }
            }
        }
    }
}

#[test]
fn pairs_keep_the_twins_together() {
    for sparse in [false, true] {
        let data = made(150, sparse, true);
        for scale in [Scale::None, Scale::Standard, Scale::MinMaxPerQuery] {
            let design = design(&data, scale);
            for (loss, sample) in [(Loss::Hinge, Sample::Pairs), (Loss::SquaredHinge, Sample::Queries)] {
                let task = Ranking::new(&data, loss, PairWeight::GradeGap, 0.1).expect("pairs");
                let problem = ByPair::new(&task, loss, sample, None);
                for method in [Stepping::Sgd, Stepping::AveragedSgd, Stepping::Pegasos] {
                    if (method, loss) != (Stepping::Pegasos, Loss::SquaredHinge) {
                        let settings = StochasticDescent { project: true, batch: 2, ..descent(method) };
                        assert_twins(&settings, &problem, &design, scale.name());
                    }
                }
            }
        }
    }
}

#[test]
fn steps_of_pegasos_stay_stable_on_squared_hinge_loss() {
    let data = made(400, false, false);
    let design = design(&data, Scale::None);
    let task = binary(&data, Loss::SquaredHinge, 1.0, Intercept::None);
    let problem = ByRow::new(&task).expect("few rows");
    let zero = problem.at_zero(Intercept::None).objective;
    let solution = descent(Stepping::Pegasos).solve(&problem, &design, None, &mut Silent, &Cancel::new());
    assert!(solution.expect("finite").objective < 0.5 * zero);
}

#[test]
fn an_alias_table_gives_each_cell_exactly_its_share() {
    for weights in [vec![1], vec![3, 0, 5, 1], vec![1 << 60, 1, 1 << 61, 12345, 0, 7], vec![2; 9]] {
        let shares = super::alias::Alias::new(&weights).shares();
        let expected: Vec<u128> = weights.iter().map(|&w| u128::from(w) * weights.len() as u128).collect();
        assert_eq!(shares, expected);
    }
}

#[test]
fn pairs_are_drawn_uniformly_over_pairs_or_over_queries_at_the_cost_they_have() {
    let data = made(90, false, true);
    let (targets, weights) = (data.targets().real().expect("real"), data.weights().expect("weights"));
    let groups = data.groups().expect("groups");
    let plain = design(&data, Scale::None);
    for (pair_weight, sample) in
        PairWeight::ALL.into_iter().flat_map(|weight| Sample::ALL.map(|sample| (weight, sample)))
    {
        // The weight of each listed pair, without the factor of its query.
        let mut listed: BTreeMap<(usize, usize), (usize, f64)> = BTreeMap::new();
        for (group, range) in groups.ranges().enumerate() {
            for (i, j) in range.clone().flat_map(|i| range.clone().map(move |j| (i, j))) {
                if targets[i] > targets[j] {
                    let gap = if pair_weight == PairWeight::GradeGap { targets[i] - targets[j] } else { 1.0 };
                    listed.insert((i, j), (group, gap * weights[i] * weights[j]));
                }
            }
        }
        let mut by_group: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for &(group, weight) in listed.values() {
            let sums = by_group.entry(group).or_default();
            *sums = (sums.0 + 1.0, sums.1 + weight);
        }
        // A query whose pairs all have weight zero is left out.
        listed.retain(|_, (group, _)| by_group[group].1 > 0.0);
        by_group.retain(|_, sums| sums.1 > 0.0);
        assert!(by_group.len() >= 3, "{by_group:?}");
        let per_query = pair_weight == PairWeight::PerQuery;
        let factor = |group: usize| if per_query { 1.0 / by_group[&group].1 } else { 1.0 };
        let total: f64 = by_group.iter().map(|(group, sums)| factor(*group) * sums.1).sum();

        let task = Ranking::new(&data, Loss::Hinge, pair_weight, 0.7).expect("pairs");
        assert!((task.total_cost() - 0.7 * total).abs() <= 1e-12 * total);
        let problem = ByPair::new(&task, Loss::Hinge, sample, None);
        let mut draws = problem.draws(&plain, 3, 0);
        let mut counts: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        const DRAWS: usize = 100_000;
        for _ in 0..DRAWS {
            let c = draws.next();
            let pair = (c.row, c.against.expect("a pair"));
            let (group, weight) = listed[&pair];
            let expected = match sample {
                Sample::Pairs => factor(group) * weight * listed.len() as f64 / total,
                Sample::Queries => weight * by_group[&group].0 / by_group[&group].1,
            };
            assert!((c.cost - expected).abs() <= 1e-12 * (1.0 + expected), "{} {expected}", c.cost);
            *counts.entry(pair).or_default() += 1.0;
        }
        let chi_square: f64 = listed
            .iter()
            .map(|(pair, (group, _))| {
                let chance = match sample {
                    Sample::Pairs => 1.0 / listed.len() as f64,
                    Sample::Queries => 1.0 / (by_group.len() as f64 * by_group[group].0),
                };
                let expected = chance * DRAWS as f64;
                (counts.get(pair).unwrap_or(&0.0) - expected).powi(2) / expected
            })
            .sum();
        let freedom = (listed.len() - 1) as f64;
        assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} for {freedom}");
    }
}

#[test]
fn a_quick_start_comes_near_the_optimum_and_repeats_itself() {
    let data = made(3000, false, true);
    let design = design(&data, Scale::Standard);
    let task = Ranking::new(&data, Loss::SquaredHinge, PairWeight::Equal, 1e-3).expect("pairs");
    let cancel = Cancel::new();
    let mut risk = LinearRisk::new(&task, &design, false, &cancel);
    let newton = Newton { tolerance: 1e-8, max_passes: 100 };
    let optimum = newton.solve(&mut risk, 7, None, &mut Silent, &cancel).expect("solved").objective;
    let quick = quick_start(&task, &design, 4, 100_000, &Cancel::new());
    let problem = ByPair::new(&task, Loss::SquaredHinge, Sample::Pairs, None);
    let value = |weights: &[f64]| {
        problem.settled(&design, weights, 0.0, Intercept::None, &cancel).expect("nobody asks for an end").objective
    };
    assert!(value(&quick) <= 1.02 * optimum, "{} {optimum}", value(&quick));
    assert!(value(&[0.0; 7]) > 1.5 * optimum);
    assert_eq!(quick, quick_start(&task, &design, 4, 100_000, &Cancel::new()));
    assert_ne!(quick, quick_start(&task, &design, 5, 100_000, &Cancel::new()));
}

#[test]
fn calibration_beats_rates_far_from_it() {
    let data = made(2000, false, false);
    let design = design(&data, Scale::None);
    let task = binary(&data, Loss::Hinge, 0.1, Intercept::None);
    let problem = ByRow::new(&task).expect("few rows");
    let value = |rate: Option<f64>| {
        let settings = StochasticDescent { rate, passes: 1, ..descent(Stepping::Sgd) };
        settings.solve(&problem, &design, None, &mut Silent, &Cancel::new()).expect("finite").objective
    };
    let found = value(None);
    assert!(found < value(Some(1e-5)) && found < value(Some(100.0)));
}

#[test]
fn a_run_that_is_cancelled_in_its_first_pass_has_nothing_to_keep() {
    let data = made(2000, false, false);
    let design = design(&data, Scale::None);
    let task = binary(&data, Loss::Hinge, 0.1, Intercept::Free);
    let cancel = Cancel::new();
    cancel.raise();
    let settings = StochasticDescent { intercept: Intercept::Free, ..descent(Stepping::AveragedSgd) };
    let problem = ByRow::new(&task).expect("few rows");
    let error = settings.solve(&problem, &design, None, &mut Silent, &cancel).expect_err("cancelled");
    assert_eq!(error.code(), Code::Interrupted);
}

#[test]
fn parts_of_a_pass_take_the_steps_of_the_pass() {
    let data = made(700, false, false);
    let design = design(&data, Scale::None);
    let task = binary(&data, Loss::Hinge, 0.1, Intercept::Free);
    let problem = ByRow::new(&task).expect("few rows");
    for (batch, every) in [(1, 1), (1, 100), (3, 100), (1, 10_000)] {
        let whole = StochasticDescent { batch, intercept: Intercept::Free, ..descent(Stepping::Sgd) };
        let parts = StochasticDescent { judge_every: Some(every), ..whole.clone() };
        // It gets better at every judgement, so that the last point is kept.
        let judged = std::cell::Cell::new(0.0);
        let measure = |_: &[f64], _: &[f64]| {
            judged.set(judged.get() + 1.0);
            Some(judged.get())
        };
        let referee = Referee { measure: &measure, higher_is_better: true };
        let solve = |settings: &StochasticDescent, referee: Option<&Referee<'_>>| {
            settings.solve(&problem, &design, referee, &mut Silent, &Cancel::new()).expect("finite")
        };
        let plain = solve(&whole, Some(&referee));
        judged.set(0.0);
        let found = solve(&parts, Some(&referee));
        assert_eq!(plain.weights, found.weights, "{batch}, {every}");
        assert_eq!((found.passes, found.stop), (3, Stop::Finished));
        let count = problem.draws(&design, 0, 0).count() as u64;
        assert_eq!(found.read, Some(Read { constraints: 3 * count, of: count }));
        let parts = count.div_ceil(every.next_multiple_of(batch as u64).min(count));
        assert_eq!(judged.get(), 3.0 * parts as f64);
        assert_eq!(plain.read, None);
    }
}

#[test]
fn a_run_may_end_within_its_first_pass() {
    let data = made(700, false, false);
    let design = design(&data, Scale::None);
    let task = binary(&data, Loss::Hinge, 0.1, Intercept::None);
    let problem = ByRow::new(&task).expect("few rows");
    for method in [Stepping::Sgd, Stepping::AveragedSgd, Stepping::Pegasos] {
        // Judgements get better twice, and then worse.
        let count = std::cell::Cell::new(0);
        let measure = |_: &[f64], _: &[f64]| {
            count.set(count.get() + 1);
            Some(f64::from([3, 2, 4, 5, 6, 7][count.get() - 1]))
        };
        let referee = Referee { measure: &measure, higher_is_better: false };
        let settings = StochasticDescent { judge_every: Some(50), ..descent(method) };
        let found = settings.solve(&problem, &design, Some(&referee), &mut Silent, &Cancel::new()).expect("finite");
        assert_eq!((count.get(), found.stop), (5, Stop::EarlyStopped), "{method:?}");
        let all = problem.draws(&design, 0, 0).count() as u64;
        assert_eq!((found.read, found.passes), (Some(Read { constraints: 100, of: all }), 1));
    }
}
