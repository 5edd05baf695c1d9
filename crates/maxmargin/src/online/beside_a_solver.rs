//! Passive-aggressive steps of all tasks but two classes beside an interior-point solver, with every constraint written
//! out. Those of two classes are in `passive_aggressive/theorems.rs`.

use super::{ClassificationLearner, OrdinalLearner, RankingLearner, SetLearner};
use crate::data::{Dataset, Dense, Groups, Matrix, Targets};
use crate::loss::Loss;
use crate::random::Random;
use crate::settings::{
    ClassifySettings, MultilabelSettings, OrdinalSettings, RankSettings, Regularisation, Settings, Solver, TaskSettings,
};
use crate::task::{Multiclass, SetStep};
use crate::wish::{Intercept, Variant};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};

const FEATURES: usize = 4;

/// A sum over variables that is to reach a margin, less a slack.
struct Constraint {
    entries: Vec<(usize, f64)>,
    margin: f64,
    slack: usize,
}

/// argmin ½‖v − v_t‖² + c Σ ξ (or ξ²) over slacks that several constraints may share; without slack if `c` is none.
fn referee(start: &[f64], constraints: &[Constraint], slacks: usize, (c, squared): (Option<f64>, bool)) -> Vec<f64> {
    let (dim, slacks) = (start.len(), if c.is_some() { slacks } else { 0 });
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    for (at, constraint) in constraints.iter().enumerate() {
        let mut reached = 0.0;
        for &(column, value) in &constraint.entries {
            i.push(at);
            j.push(column);
            v.push(-value);
            reached += value * start[column];
        }
        if slacks > 0 {
            i.push(at);
            j.push(dim + constraint.slack);
            v.push(-1.0);
        }
        right.push(reached - constraint.margin);
    }
    for slack in 0..slacks {
        i.push(constraints.len() + slack);
        j.push(dim + slack);
        v.push(-1.0);
        right.push(0.0);
    }
    let variables = dim + slacks;
    let a = CscMatrix::new_from_triplets(right.len(), variables, i, j, v);
    let c = c.unwrap_or(0.0);
    let diagonal = (0..variables)
        .map(|at| {
            if at < dim {
                1.0
            } else if squared {
                2.0 * c
            } else {
                0.0
            }
        })
        .collect();
    let places: Vec<usize> = (0..variables).collect();
    let p = CscMatrix::new_from_triplets(variables, variables, places.clone(), places, diagonal);
    let q: Vec<f64> = (0..variables).map(|at| if at >= dim && !squared { c } else { 0.0 }).collect();
    for tolerance in [1e-13, 1e-12, 1e-11, 1e-10] {
        let settings = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(tolerance)
            .tol_gap_rel(tolerance)
            .tol_feas(tolerance)
            .build()
            .expect("settings");
        let cones = [NonnegativeConeT(right.len())];
        let mut solver = DefaultSolver::new(&p, &q, &a, &right, &cones, settings).expect("a problem");
        solver.solve();
        if solver.solution.status == SolverStatus::Solved {
            return start.iter().zip(&solver.solution.x).map(|(start, change)| start + change).collect();
        }
    }
    panic!("the interior-point solver does not converge");
}

/// Random rows; every seventh is zero, and every fifth repeats the one before it.
fn rows(count: usize, random: &mut Random) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in 0..count {
        rows.push(match row {
            row if row % 7 == 3 => vec![0.0; FEATURES],
            row if row % 5 == 4 => rows[row - 1].clone(),
            _ => (0..FEATURES).map(|_| random.normal()).collect(),
        });
    }
    rows
}

fn matrix(rows: &[Vec<f64>]) -> Matrix {
    Matrix::DenseF64(Dense::new(rows.concat(), rows.len(), FEATURES).expect("rows"))
}

fn settings(task: impl Into<TaskSettings>, solver: Solver, loss: Loss, c: f64) -> Settings {
    let settings = Settings { loss, regularisation: Regularisation::C(c), max_passes: 1, ..Settings::of(task) };
    settings.with_solver(solver)
}

/// ½‖v − v_t‖² + c Σ ξ (or ξ²), with the least slacks that the constraints allow.
fn value(start: &[f64], v: &[f64], constraints: &[Constraint], (c, squared): (Option<f64>, bool)) -> f64 {
    let slacks = constraints.iter().map(|constraint| constraint.slack + 1).max().unwrap_or(0);
    let mut missed = vec![0.0f64; slacks];
    for constraint in constraints {
        let reached: f64 = constraint.entries.iter().map(|&(column, value)| value * v[column]).sum();
        missed[constraint.slack] = missed[constraint.slack].max(constraint.margin - reached);
    }
    let Some(c) = c else {
        assert!(missed.iter().all(|missed| *missed < 1e-9));
        return 0.0;
    };
    let cost: f64 = missed.iter().map(|missed| if squared { missed * missed } else { *missed }).sum();
    0.5 * start.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum::<f64>() + c * cost
}

/// Checks a step: no point of the solver is better, and the solver finds the same point. On rows of zeros and on repeated
/// rows limits are met exactly, where the solver has fewer digits.
fn check(start: &[f64], found: &[f64], all: &[Constraint], price: (Option<f64>, bool), (row, context): (usize, &str)) {
    let slacks = all.iter().map(|constraint| constraint.slack + 1).max().unwrap_or(0);
    let best = referee(start, all, slacks, price);
    let (own, other) = (value(start, found, all, price), value(start, &best, all, price));
    assert!(price.0.is_none() || own <= other + 1e-10 * (1.0 + other), "{context} {row}: {own} {other}");
    let digits = if row % 7 == 3 || row % 5 == 4 { 1e-5 } else { 1e-8 };
    near(found, &best, digits, &format!("{context} {row}"));
}

/// Lists from their first rows.
fn groups(starts: Vec<u64>) -> Groups {
    let names = (1..starts.len()).map(|list| list.to_string()).collect();
    Groups::new(starts, names).expect("groups")
}

/// Compares to so much of the size of the numbers.
fn near(found: &[f64], wanted: &[f64], digits: f64, context: &str) {
    let size = wanted.iter().fold(1.0f64, |most, value| most.max(value.abs()));
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= digits * size, "{context}: {found} {wanted}");
    }
    assert_eq!(found.len(), wanted.len(), "{context}");
}

/// The entries of one score of a row, in variables that are weights next to each other for all outputs, and then their
/// constant terms, if there are any.
fn score(row: &[f64], output: usize, outputs: usize, factor: f64, constants: bool) -> Vec<(usize, f64)> {
    let own = row.iter().enumerate().map(|(column, value)| (column * outputs + output, factor * value));
    own.chain(constants.then_some((FEATURES * outputs + output, factor))).collect()
}

#[test]
fn steps_on_several_classes() {
    let mut random = Random::new(11, 1, 0);
    let x = rows(40, &mut random);
    let targets: Vec<f64> = (0..40).map(|_| random.below(4) as f64).collect();
    let data = Dataset::new(matrix(&x), Targets::Real(targets.clone().into())).expect("rows");
    let names = || Some((0..4).map(|class| class.to_string()).collect::<Vec<_>>());
    let joint = |solver, variant| (Multiclass::Joint, Loss::Hinge, solver, variant);
    for (multiclass, loss, solver, variant) in [
        joint(Solver::PassiveAggressive, Variant::PaI),
        (Multiclass::WestonWatkins, Loss::Hinge, Solver::PassiveAggressive, Variant::PaI),
        (Multiclass::WestonWatkins, Loss::SquaredHinge, Solver::PassiveAggressive, Variant::PaIi),
        joint(Solver::Pa, Variant::PaI),
        joint(Solver::Pa, Variant::PaIi),
        joint(Solver::Pa, Variant::Pa),
    ] {
        for (intercept, c) in [(Intercept::None, 0.1), (Intercept::Penalised, 2.0)] {
            let constants = intercept != Intercept::None;
            let multiclass_setting = Some(multiclass);
            let task =
                ClassifySettings { multiclass: multiclass_setting, classes: names(), intercept, ..Default::default() };
            let mut wanted = settings(task, solver, loss, c);
            if solver == Solver::Pa {
                wanted.stochastic.pa_variant = Some(variant);
            }
            let mut learner = ClassificationLearner::new(&wanted).expect("settings");
            // The columns are known before the first row.
            learner.learn(&data, 0..1).expect("finite");
            for row in 1..40 {
                let (mut start, b) = learner.point();
                start.extend(b);
                learner.learn(&data, row..row + 1).expect("finite");
                let own = targets[row] as usize;
                let shared = multiclass == Multiclass::Joint;
                let constraint = |(at, class): (usize, usize)| Constraint {
                    entries: [score(&x[row], own, 4, 1.0, constants), score(&x[row], class, 4, -1.0, constants)]
                        .concat(),
                    margin: 1.0,
                    slack: if shared { 0 } else { at },
                };
                let all: Vec<Constraint> = (0..4).filter(|&class| class != own).enumerate().map(constraint).collect();
                // Nothing reaches a margin on a row of zeros without slack.
                let zero = !constants && x[row].iter().all(|value| *value == 0.0);
                if zero && variant == Variant::Pa {
                    continue;
                }
                let price = (variant != Variant::Pa).then_some(c);
                let (mut found, b) = learner.point();
                found.extend(b);
                let context = format!("{multiclass:?} {loss:?} {solver:?} {variant:?} {intercept:?}");
                check(&start, &found, &all, (price, variant == Variant::PaIi), (row, &context));
            }
        }
    }
}

#[test]
fn steps_on_ratings() {
    let mut random = Random::new(12, 1, 0);
    let x = rows(60, &mut random);
    let targets: Vec<f64> = (0..60).map(|_| random.below(5) as f64).collect();
    let data = Dataset::new(matrix(&x), Targets::Real(targets.clone().into())).expect("rows");
    for (loss, c) in [(Loss::Hinge, 0.1), (Loss::Hinge, 5.0), (Loss::SquaredHinge, 0.3)] {
        let classes = Some((0..5).map(|rank| rank.to_string()).collect());
        let task = OrdinalSettings { classes, ..OrdinalSettings::default() };
        let mut learner = OrdinalLearner::new(&settings(task, Solver::PassiveAggressive, loss, c)).expect("settings");
        learner.learn(&data, 0..1).expect("finite");
        let point = |learner: &OrdinalLearner| {
            let decoder = learner.decoder().expect("ranks");
            let (cuts, _) = decoder.cuts().expect("cuts");
            [learner.weights(), cuts.to_vec()].concat()
        };
        for row in 1..60 {
            let start = point(&learner);
            learner.learn(&data, row..row + 1).expect("finite");
            let own = targets[row] as usize;
            let constraint = |cut: usize| {
                let sign = if cut < own { 1.0 } else { -1.0 };
                let scores = x[row].iter().enumerate().map(|(column, value)| (column, sign * value));
                Constraint { entries: scores.chain([(FEATURES + cut, -sign)]).collect(), margin: 1.0, slack: cut }
            };
            let all: Vec<Constraint> = (0..4).map(constraint).collect();
            let price = (Some(c), loss == Loss::SquaredHinge);
            check(&start, &point(&learner), &all, price, (row, &format!("{loss:?} {c}")));
        }
    }
}

#[test]
fn steps_on_lists() {
    let mut random = Random::new(13, 1, 0);
    let x = rows(120, &mut random);
    let grades: Vec<f64> = (0..120).map(|_| random.below(3) as f64).collect();
    let data = Dataset::new(matrix(&x), Targets::Real(grades.clone().into())).expect("rows");
    let starts: Vec<u64> = (0..=20).map(|list| 6 * list).collect();
    let data = data.with_groups(groups(starts)).expect("lists");
    for (loss, c) in [(Loss::Hinge, 0.1), (Loss::Hinge, 10.0), (Loss::SquaredHinge, 0.5)] {
        let task = RankSettings::default();
        let mut learner = RankingLearner::new(&settings(task, Solver::PassiveAggressive, loss, c)).expect("settings");
        learner.learn(&data, 0..1).expect("finite");
        for list in 1..20 {
            let start = learner.weights();
            learner.learn(&data, list..list + 1).expect("finite");
            let dot = |row: usize| x[row].iter().zip(&start).map(|(x, w)| x * w).sum::<f64>();
            // The plane of the mean hinge over all pairs of the list.
            let (mut pairs, mut mean, mut slope) = (0.0, 0.0, vec![0.0; FEATURES]);
            for better in 6 * list..6 * list + 6 {
                for worse in (6 * list..6 * list + 6).filter(|&worse| grades[better] > grades[worse]) {
                    pairs += 1.0;
                    let violation = 1.0 - (dot(better) - dot(worse));
                    if violation > 0.0 {
                        mean += violation;
                        let moved = slope.iter_mut().zip(x[better].iter().zip(&x[worse]));
                        moved.for_each(|(slope, (better, worse))| *slope += better - worse);
                    }
                }
            }
            if pairs == 0.0 {
                near(&learner.weights(), &start, 0.0, "a list without pairs");
                continue;
            }
            // ξ ≥ h + g·(w − w_t), with g = −slope/pairs: a sum that is to reach a margin.
            let entries: Vec<(usize, f64)> = slope.iter().map(|slope| slope / pairs).enumerate().collect();
            let reached: f64 = entries.iter().map(|&(column, value)| value * start[column]).sum();
            let plane = Constraint { entries, margin: mean / pairs + reached, slack: 0 };
            let price = (Some(c), loss == Loss::SquaredHinge);
            check(&start, &learner.weights(), &[plane], price, (0, &format!("{loss:?} {c} {list}")));
        }
    }
}

/// A list of a better and a worse row is a pair.
#[test]
fn a_list_of_two_rows_takes_the_step_of_their_pair() {
    use crate::data::Pairs;
    let mut random = Random::new(14, 1, 0);
    let x: Vec<Vec<f64>> = (0..40).map(|_| (0..FEATURES).map(|_| random.normal()).collect()).collect();
    let grades: Vec<f64> = (0..40).map(|row| f64::from(row % 2 == 0)).collect();
    let rows = Dataset::new(matrix(&x), Targets::Real(grades.into())).expect("rows");
    let starts: Vec<u64> = (0..=20).map(|list| 2 * list).collect();
    let lists = rows.with_groups(groups(starts)).expect("lists");
    let (left, right) = ((0..40).step_by(2).collect::<Vec<u32>>(), (1..40).step_by(2).collect::<Vec<u32>>());
    let pairs = Pairs::new(left, right).expect("pairs");
    let pairs = Dataset::new(matrix(&x), Targets::Absent).expect("rows").with_pairs(pairs).expect("pairs");
    for (loss, c) in [(Loss::Hinge, 0.2), (Loss::SquaredHinge, 0.2)] {
        let wanted = settings(RankSettings::default(), Solver::PassiveAggressive, loss, c);
        let mut one = RankingLearner::new(&wanted).expect("settings");
        one.learn(&lists, 0..20).expect("finite");
        let mut other = RankingLearner::new(&wanted).expect("settings");
        other.learn(&pairs, 0..20).expect("finite");
        near(&one.weights(), &other.weights(), 1e-10, loss.name());
        assert!((one.totals().0 - other.totals().0).abs() <= 1e-10 * one.totals().0);
    }
}

#[test]
fn steps_on_label_sets() {
    let mut random = Random::new(15, 1, 0);
    let (labels, outputs) = (4, 5);
    let x = rows(50, &mut random);
    let sets: Vec<Vec<u32>> = (0..50)
        .map(|_| {
            let chance = [0.0, 0.4, 0.6, 1.0][random.below(4) as usize];
            (0..labels as u32).filter(|_| random.chance(chance)).collect()
        })
        .collect();
    let mut starts = vec![0u64];
    sets.iter().for_each(|set| starts.push(starts[starts.len() - 1] + set.len() as u64));
    let names = (0..labels).map(|label| label.to_string()).collect();
    let targets = Targets::Sets { names, starts: starts.into(), codes: sets.concat().into() };
    let data = Dataset::new(matrix(&x), targets).expect("sets");
    for (intercept, c) in [(Intercept::None, 0.1), (Intercept::Penalised, 1.0), (Intercept::Penalised, 100.0)] {
        let constants = intercept != Intercept::None;
        let classes = Some((0..labels).map(|label| label.to_string()).collect());
        for step in SetStep::ALL {
            let task = MultilabelSettings { intercept, step, classes: classes.clone(), ..Default::default() };
            let wanted = settings(task, Solver::PassiveAggressive, Loss::Hinge, c);
            let mut learner = SetLearner::new(&wanted).expect("settings");
            learner.learn(&data, 0..1).expect("finite");
            for row in 1..50 {
                let (mut start, b) = learner.point();
                start.extend(b);
                learner.learn(&data, row..row + 1).expect("finite");
                let value = |output: usize| -> f64 {
                    score(&x[row], output, outputs, 1.0, constants).iter().map(|&(at, value)| value * start[at]).sum()
                };
                let mine = |label: &usize| sets[row].contains(&(*label as u32));
                let mut kept: Vec<usize> = (0..labels).collect();
                if step == SetStep::TwoLabels {
                    // The lowest of the row and the highest of the others, the first of equal ones.
                    let lowest = (0..labels)
                        .filter(mine)
                        .reduce(|best, next| if value(next) < value(best) { next } else { best });
                    let others = (0..labels).filter(|label| !mine(label));
                    let highest = others.reduce(|best, next| if value(next) > value(best) { next } else { best });
                    kept = lowest.into_iter().chain(highest).collect();
                }
                let constraint = |label: usize| {
                    let sign = if mine(&label) { 1.0 } else { -1.0 };
                    let own = score(&x[row], label, outputs, sign, constants);
                    let border = score(&x[row], labels, outputs, -sign, constants);
                    Constraint { entries: [own, border].concat(), margin: 1.0, slack: usize::from(mine(&label)) }
                };
                let all: Vec<Constraint> = kept.into_iter().map(constraint).collect();
                let (mut found, b) = learner.point();
                found.extend(b);
                check(&start, &found, &all, (Some(c), false), (row, &format!("{intercept:?} {c} {step:?}")));
            }
        }
    }
}
