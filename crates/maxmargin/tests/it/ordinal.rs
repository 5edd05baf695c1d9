//! Ratings: the objective against its definition, the optimum against an independent solver, and what a user does with
//! a model.

use crate::made::{Numbers, fit};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT};
use maxmargin::data::{Dataset, Dense, Matrix, Scale, Scaling, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{OrdinalForm, OrdinalSettings, Regularisation, Settings, Solver, Task};
use maxmargin::solve::{CurvedRisk, LinearRisk, Risk, SumOfRisks};
use maxmargin::task::{ClassWeight, LearningTask, Ordinal, Roundable};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::train::{Partition, Summary, train};

const C: f64 = 0.4;

/// Rows whose ranks follow a linear function with noise. `ranks` are their values, lowest first.
fn rated(rows: usize, cols: usize, ranks: &[f64], noise: f64, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let slopes: Vec<f64> = (0..cols).map(|_| numbers.next() - 0.3).collect();
    let mut values = Vec::new();
    let mut scored: Vec<(f64, usize)> = Vec::new();
    for row in 0..rows {
        let own: Vec<f64> = (0..cols).map(|_| 2.0 * numbers.next() - 1.0).collect();
        let score = own.iter().zip(&slopes).map(|(x, w)| x * w).sum::<f64>() + noise * (numbers.next() - 0.5);
        values.extend(own);
        scored.push((score, row));
    }
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut targets = vec![0.0; rows];
    for (place, (_, row)) in scored.into_iter().enumerate() {
        targets[row] = ranks[place * ranks.len() / rows];
    }
    let matrix = Matrix::DenseF64(Dense::new(values, rows, cols).unwrap());
    Dataset::new(matrix, Targets::Real(targets.into())).unwrap()
}

fn weighted(data: Dataset, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let weights: Vec<f64> = (0..data.rows()).map(|_| (4.0 * numbers.next()).floor() * 0.5).collect();
    data.with_weights(weights).unwrap()
}

fn of(form: OrdinalForm) -> OrdinalSettings {
    OrdinalSettings { form, ..OrdinalSettings::default() }
}

fn settings(form: OrdinalForm, loss: Loss) -> Settings {
    Settings { loss, regularisation: Regularisation::C(C), tolerance: 1e-7, ..Settings::of(of(form)) }
}

fn task(data: &Dataset, form: OrdinalForm, loss: Loss) -> Ordinal {
    Ordinal::on(data, form, &ClassWeight::Equal, loss, None).unwrap().with_cost(C)
}

fn cuts(model: &Model) -> Vec<f64> {
    match &model.decoder {
        Decoder::Cuts { cuts, .. } => cuts.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_close(one: f64, other: f64, relative: f64, context: &str) {
    assert!((one - other).abs() <= relative * one.abs().max(other.abs()), "{context}: {one} is not {other}");
}

/// The cuts that count for a row, each with t.
fn constraints(data: &Dataset, form: OrdinalForm) -> Vec<(usize, usize, f64)> {
    let targets = data.targets().real().unwrap();
    let mut ranks = targets.to_vec();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    let mut found = Vec::new();
    for (row, target) in targets.iter().enumerate() {
        let rank = ranks.iter().position(|rank| rank == target).unwrap();
        for cut in 0..ranks.len() - 1 {
            let near = cut == rank || cut + 1 == rank;
            if form == OrdinalForm::Implicit || near {
                found.push((row, cut, if rank > cut { 1.0 } else { -1.0 }));
            }
        }
    }
    found
}

#[test]
fn both_forms_conform_with_every_loss_and_weights() {
    // More rows than fit into one part.
    let plain = rated(1100, 1, &[1.0, 2.0, 3.5, 7.0], 0.5, 1);
    for data in [plain.clone(), weighted(plain, 2)] {
        for form in OrdinalForm::ALL {
            for loss in Loss::ALL {
                let mut numbers = Numbers::new(3);
                let mut draw = |count: usize| (0..count).map(|_| 4.0 * (numbers.next() - 0.5)).collect::<Vec<f64>>();
                let (scores, free) = (draw(1100), draw(3));
                let task = task(&data, form, loss);
                check_objective(&task, &scores, &free).unwrap();
                check_curvature(&task, &scores, &free).unwrap();
                if loss == Loss::Hinge {
                    check_rounding(&task, 0.4, &scores, &free).unwrap();
                    check_rounding(&task, 2.0, &scores, &free).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_value_is_the_sum_over_all_constraints_and_the_hessian_that_of_differences() {
    let data = weighted(rated(60, 3, &[0.0, 1.0, 2.0, 3.0], 0.5, 4), 5);
    let design = Scaling::fit(Scale::None, &data, &Cancel::new()).unwrap().apply(data.matrix(), None).unwrap();
    let mut numbers = Numbers::new(6);
    let point: Vec<f64> = (0..6).map(|_| numbers.next() - 0.5).collect();
    for form in OrdinalForm::ALL {
        for loss in Loss::ALL {
            let context = format!("{form:?}, {loss:?}");
            let (task, cancel) = (task(&data, form, loss), Cancel::new());
            let mut risk = LinearRisk::new(&task, &design, false, &cancel);
            let found = risk.evaluate(&point, &mut [0.0; 6]).unwrap();
            let mut expected = 0.5 * point[..3].iter().map(|w| w * w).sum::<f64>();
            for (row, cut, side) in constraints(&data, form) {
                let mut score = 0.0;
                data.matrix().each_in_row(row, |column, value| score += value * point[column]);
                let weight = data.weights().unwrap()[row];
                expected += C * weight * loss.value(loss.margin() - side * (score - point[3 + cut]));
            }
            assert_close(found, expected, 1e-12, &context);
            // The Hessian with lines for cuts, by products and by differences.
            let smooth = if loss == Loss::Hinge { task.rounded(0.7) } else { task.clone() };
            let mut risk = LinearRisk::new(&smooth, &design, false, &cancel);
            assert!(risk.has_exact_hessian(), "{context}");
            for axis in 0..6 {
                let mut gradients = [[0.0; 6], [0.0; 6]];
                for (gradient, step) in gradients.iter_mut().zip([1e-6, -1e-6]) {
                    let mut moved = point.clone();
                    moved[axis] += step;
                    risk.evaluate(&moved, gradient).unwrap();
                }
                risk.evaluate(&point, &mut [0.0; 6]).unwrap();
                let (hessian, mut unit, mut product) = (risk.hessian().unwrap(), [0.0; 6], [0.0; 6]);
                unit[axis] = 1.0;
                risk.hessian_times(&unit, &mut product).unwrap();
                for other in 0..6 {
                    let (found, slope) =
                        (hessian[axis * 6 + other], (gradients[0][other] - gradients[1][other]) / 2e-6);
                    let context = format!("{context}: {axis}, {other}: {found}, {} and {slope}", product[other]);
                    assert!((found - product[other]).abs() <= 1e-10 * (1.0 + found.abs()), "{context}");
                    assert!((found - slope).abs() <= 1e-4 * (1.0 + found.abs()), "{context}");
                }
            }
        }
    }
}

/// min ½‖w‖² + C Σ loss(ξ) by interior point, with a line for every constraint, and for the order of the cuts.
fn referee(data: &Dataset, form: OrdinalForm, loss: Loss) -> f64 {
    let (cols, listed) = (data.cols(), constraints(data, form));
    let count = listed.iter().map(|(_, cut, _)| cut + 1).max().unwrap();
    let (dim, slacks) = (cols + count, listed.len());
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    let mut push = |line: usize, column: usize, value: f64| {
        i.push(line);
        j.push(column);
        v.push(value);
    };
    for (at, &(row, cut, side)) in listed.iter().enumerate() {
        data.matrix().each_in_row(row, |column, value| push(at, column, -side * value));
        push(at, cols + cut, side);
        push(at, dim + at, -1.0);
        right.push(-1.0);
    }
    for slack in 0..slacks {
        push(right.len(), dim + slack, -1.0);
        right.push(0.0);
    }
    if form == OrdinalForm::Explicit {
        for cut in 1..count {
            push(right.len(), cols + cut - 1, 1.0);
            push(right.len(), cols + cut, -1.0);
            right.push(0.0);
        }
    }
    let variables = dim + slacks;
    let matrix = CscMatrix::new_from_triplets(right.len(), variables, i, j, v);
    let cost = |at: usize| C * data.weights().map_or(1.0, |weights| weights[listed[at - dim].0]);
    let squared = loss == Loss::SquaredHinge;
    let diagonal = (0..variables)
        .map(|at| match at {
            _ if at < cols => 1.0,
            _ if at >= dim && squared => 2.0 * cost(at),
            _ => 0.0,
        })
        .collect();
    let every: Vec<usize> = (0..variables).collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let linear: Vec<f64> = (0..variables).map(|at| if at >= dim && !squared { cost(at) } else { 0.0 }).collect();
    let wanted = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let cones = [NonnegativeConeT(right.len())];
    let mut solver = DefaultSolver::new(&quadratic, &linear, &matrix, &right, &cones, wanted).unwrap();
    solver.solve();
    solver.solution.obj_val
}

/// Ranks of which the middle one has few rows, far from where they belong: the order of the cuts binds in the explicit
/// form.
fn mixed_up(seed: u64) -> Dataset {
    let data = rated(60, 3, &[0.0, 1.0, 3.0, 4.0], 0.2, seed);
    let middle = |(row, rank): (usize, &f64)| if row % 20 == 7 { 2.0 } else { *rank };
    let targets: Vec<f64> = data.targets().real().unwrap().iter().enumerate().map(middle).collect();
    data.with_targets(Targets::Real(targets.into())).unwrap()
}

#[test]
fn newton_and_cutting_planes_reach_the_referees_optimum_with_free_cuts() {
    let plain = rated(50, 3, &[1.0, 2.0, 3.0, 4.0, 5.0], 0.8, 7);
    let sets = [("plain", plain.clone()), ("weighted", weighted(plain, 8)), ("mixed up", mixed_up(9))];
    for (name, data) in &sets {
        for form in OrdinalForm::ALL {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                let context = format!("{name}, {form:?}, {loss:?}");
                let optimum = referee(data, form, loss);
                let mut solvers = vec![Solver::Newton];
                solvers.extend((form == OrdinalForm::Implicit).then_some(Solver::CuttingPlane));
                for solver in solvers {
                    let context = format!("{context}, {solver:?}");
                    let planes = solver == Solver::CuttingPlane;
                    let tolerance = if planes { 1e-5 } else { 1e-7 };
                    let wanted = Settings { tolerance, ..settings(form, loss).with_solver(solver) };
                    let model = fit(data, &wanted).model;
                    let certificate = &model.certificate;
                    assert!(certificate.converged, "{context}: {:?}", certificate.gap());
                    assert_close(certificate.objective, optimum, if planes { 1.1e-5 } else { 1e-6 }, &context);
                    let bound = certificate.lower_bound.unwrap();
                    assert!(bound <= optimum * (1.0 + 1e-8), "{context}: {bound} is above {optimum}");
                    assert!(cuts(&model).is_sorted(), "{context}");
                    let found = model.verify(data).unwrap();
                    assert_eq!(found.lower_bound, certificate.lower_bound, "{context}");
                }
            }
        }
    }
    // The order does bind there, so that the explicit form is tested with tied cuts.
    let tied = cuts(&fit(&sets[2].1, &settings(OrdinalForm::Explicit, Loss::Hinge)).model);
    assert!(tied.windows(2).any(|pair| pair[0] == pair[1]), "{tied:?}");
}

/// A row of a kernel model has a single score, too, so a linear kernel gives the same optimum.
#[test]
fn the_dual_through_kernel_values_reaches_the_same_optimum() {
    let plain = rated(50, 3, &[1.0, 2.0, 3.0, 4.0, 5.0], 0.8, 7);
    for (name, data) in [("plain", plain.clone()), ("weighted", weighted(plain, 8)), ("mixed up", mixed_up(9))] {
        for form in OrdinalForm::ALL {
            for loss in [Loss::Hinge, Loss::SquaredHinge] {
                let context = format!("{name}, {form:?}, {loss:?}");
                let model = fit(&data, &settings(form, loss).with_solver(Solver::Smo)).model;
                let certificate = &model.certificate;
                assert!(certificate.converged, "{context}: {:?}", certificate.gap());
                let optimum = referee(&data, form, loss);
                assert_close(certificate.objective, optimum, 1e-6, &context);
                assert!(certificate.lower_bound.unwrap() <= optimum * (1.0 + 1e-8), "{context}");
                let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                loaded.verify(&data).unwrap();
                assert!(cuts(&model).is_sorted(), "{context}");
            }
        }
    }
}

#[test]
fn kernels_learn_what_no_line_can_and_their_cuts_are_the_best_for_their_scores() {
    // The rank is the distance from the middle.
    let spread = rated(240, 2, &[1.0], 0.0, 19);
    let mut ranks = Vec::new();
    for row in 0..240 {
        let mut square = 0.0;
        spread.matrix().each_in_row(row, |_, value| square += value * value);
        ranks.push((3.0 * square.sqrt()).floor().min(3.0));
    }
    let data = spread.with_targets(Targets::Real(ranks.into())).unwrap();
    let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(2.0), ..KernelSettings::default() };
    for form in OrdinalForm::ALL {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let context = format!("{form:?}, {loss:?}");
            let wanted = Settings { regularisation: Regularisation::C(10.0), tolerance: 1e-5, ..settings(form, loss) };
            let wanted = Settings { kernel: kernel.clone(), ..wanted };
            let trained = fit(&data, &wanted);
            let model = trained.model;
            assert_eq!(trained.solver, Solver::Smo, "{context}");
            assert!(model.certificate.gap().unwrap() <= 1e-5, "{context}: {:?}", model.certificate);
            let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            let found = loaded.verify(&data).unwrap();
            assert_close(found.lower_bound.unwrap(), model.certificate.lower_bound.unwrap(), 1e-8, &context);
            let answers = Answers::new(&loaded, &data).unwrap();
            assert!(answers.evaluate(&Metric::Mae).unwrap().value < 0.1, "{context}");
            let linear = fit(&data, &settings(form, loss)).model;
            let linear = Answers::new(&linear, &data).unwrap().evaluate(&Metric::Mae).unwrap().value;
            assert!(linear > 0.4, "{context}: {linear}");
            if (form, loss) != (OrdinalForm::Implicit, Loss::Hinge) {
                continue;
            }
            // The loss of a cut is piecewise linear: no kink is better than the chosen value.
            let (scores, cuts) = (loaded.scores(&data).unwrap(), cuts(&loaded));
            let listed = constraints(&data, form);
            for (cut, &chosen) in cuts.iter().enumerate() {
                let own = || listed.iter().filter(|constraint| constraint.1 == cut);
                let cost = |b: f64| -> f64 { own().map(|(row, _, t)| (1.0 - t * (scores[*row] - b)).max(0.0)).sum() };
                let least = own().map(|(row, _, t)| cost(scores[*row] - t)).fold(f64::INFINITY, f64::min);
                assert!(cost(chosen) <= least * (1.0 + 1e-6) + 1e-6, "{cut}: {} and {least}", cost(chosen));
            }
        }
    }
    let at = |c: f64| Settings {
        regularisation: Regularisation::C(c),
        kernel: kernel.clone(),
        ..Settings::new(Task::Ordinal)
    };
    let validation = CrossValidation { folds: 3, seed: 1, metrics: vec![Metric::Mae] };
    let tuned = validation.run(&data, &[at(0.01), at(1.0), at(10.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(tuned.rows.iter().all(|row| row.converged), "{:?}", tuned.rows);
    assert!(tuned.rows[2].metrics[0].mean < 0.25, "{:?}", tuned.rows[2]);
    let approximate = KernelSettings { approximate: Some("nystrom:60".parse().unwrap()), ..kernel.clone() };
    let mapped = fit(&data, &Settings { kernel: approximate, ..at(10.0) }).model;
    mapped.verify(&data).unwrap();
    assert!(Answers::new(&mapped, &data).unwrap().evaluate(&Metric::Mae).unwrap().value < 0.2);
}

#[test]
fn the_logistic_loss_is_solved_and_proven() {
    for data in [rated(80, 3, &[1.0, 2.0, 3.0], 0.5, 10), mixed_up(11)] {
        for form in OrdinalForm::ALL {
            let model = fit(&data, &settings(form, Loss::Logistic)).model;
            assert!(model.certificate.gap().unwrap() <= 1e-7, "{form:?}");
            assert!(cuts(&model).is_sorted());
            model.verify(&data).unwrap();
        }
    }
}

#[test]
fn saved_models_score_alike_are_verified_and_do_not_depend_on_threads() {
    let data = rated(3000, 6, &[1.0, 2.0, 4.0, 8.0], 0.6, 12);
    for form in OrdinalForm::ALL {
        for loss in [Loss::Hinge, Loss::SquaredHinge] {
            let context = format!("{form:?}, {loss:?}");
            let wanted = Settings { scale: Scale::Standard, tolerance: 1e-5, ..settings(form, loss) };
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| fit(&data, &wanted).model.to_bytes().unwrap())
            };
            let one = bytes(1);
            assert!(one == bytes(2), "{context}");
            let (made, loaded) = (fit(&data, &wanted).model, Model::from_bytes(&one).unwrap());
            assert_eq!(made.scores(&data).unwrap(), loaded.scores(&data).unwrap(), "{context}");
            let found = loaded.verify(&data).unwrap();
            let certificate = &made.certificate;
            assert_eq!((found.objective, found.lower_bound), (certificate.objective, certificate.lower_bound));
            let predicted = loaded.predict(&data).unwrap();
            let (score, cuts) = (loaded.scores(&data).unwrap()[0], cuts(&loaded));
            let rank = cuts.iter().filter(|cut| score >= **cut).count();
            assert_eq!((predicted.class(0), predicted.label(0)), (Some(rank), Some(["1", "2", "4", "8"][rank])));
            let line = predicted.lines().concat().lines().next().unwrap().to_string();
            assert_eq!(line, format!("{}\t{score}", ["1", "2", "4", "8"][rank]));
            // Altered cuts are noticed.
            let mut altered = made.clone();
            if let Decoder::Cuts { cuts, .. } = &mut altered.decoder {
                cuts[1] += 1e-3;
            }
            assert_eq!(altered.verify(&data).unwrap_err().code(), Code::CertificateMismatch, "{context}");
        }
    }
}

#[test]
fn a_row_of_weight_two_is_a_row_twice_and_ranks_can_be_balanced() {
    let data = rated(40, 3, &[1.0, 2.0, 3.0, 4.0], 0.8, 13);
    let targets = data.targets().real().unwrap();
    // One rank keeps a single row.
    let first = targets.iter().position(|target| *target == 2.0).unwrap();
    let kept: Vec<usize> = (0..40).filter(|&row| targets[row] != 2.0 || row == first).collect();
    let data = data.subset(&kept).unwrap();
    let twice: Vec<usize> = (0..kept.len()).flat_map(|row| vec![row; 1 + row % 2]).collect();
    let weights: Vec<f64> = (0..kept.len()).map(|row| 1.0 + (row % 2) as f64).collect();
    let (weighted, repeated) = (data.clone().with_weights(weights).unwrap(), data.subset(&twice).unwrap());
    for form in OrdinalForm::ALL {
        for class_weight in [ClassWeight::Equal, ClassWeight::Balanced] {
            let context = format!("{form:?}, {class_weight:?}");
            let wanted = OrdinalSettings { form, class_weight, ..OrdinalSettings::default() };
            let wanted = Settings { tolerance: 1e-7, ..Settings::of(wanted) };
            let (one, other) = (fit(&weighted, &wanted).model, fit(&repeated, &wanted).model);
            assert_close(one.certificate.objective, other.certificate.objective, 3e-7, &context);
        }
    }
}

#[test]
fn the_error_of_ranks_counts_their_values_and_an_unknown_rank_is_wrong() {
    let data = rated(300, 3, &[1.0, 2.0, 5.0], 0.4, 14);
    let model = fit(&data, &Settings::new(Task::Ordinal)).model;
    let predicted = model.predict(&data).unwrap();
    let values = [1.0, 2.0, 5.0];
    let targets = data.targets().real().unwrap();
    let estimate = |row: usize| values[predicted.class(row).unwrap()];
    let apart: f64 = (0..300).map(|row| (estimate(row) - targets[row]).abs()).sum();
    let right = (0..300).filter(|&row| estimate(row) == targets[row]).count();
    let answers = Answers::new(&model, &data).unwrap();
    let value = |metric: Metric| answers.evaluate(&metric).unwrap().value;
    assert_close(value(Metric::Mae), apart / 300.0, 1e-12, "mae");
    assert_eq!(value(Metric::Accuracy), right as f64 / 300.0);
    assert!(right > 200, "{right}");
    // A rank that the model does not know: its distance counts, and it is never right.
    let strange: Vec<f64> = targets.iter().map(|&target| if target == 5.0 { 9.0 } else { target }).collect();
    let strange = data.clone().with_targets(Targets::Real(strange.into())).unwrap();
    let answers = Answers::new(&model, &strange).unwrap();
    assert_eq!(answers.unknown, 100);
    let found = answers.evaluate(&Metric::Mae).unwrap().value;
    let truth = strange.targets().real().unwrap();
    assert_close(found, (0..300).map(|row| (estimate(row) - truth[row]).abs()).sum::<f64>() / 300.0, 1e-12, "unknown");
    assert!(answers.evaluate(&Metric::Accuracy).unwrap().value < right as f64 / 300.0);
}

#[test]
fn ratings_are_tuned_even_if_a_fold_lacks_a_rank() {
    let data = rated(90, 3, &[1.0, 2.0, 3.0, 4.0], 0.6, 15);
    let targets = data.targets().real().unwrap();
    let first = targets.iter().position(|target| *target == 1.0).unwrap();
    // A single row of the lowest rank: one fold learns without it.
    let kept: Vec<usize> = (0..90).filter(|&row| targets[row] != 1.0 || row == first).collect();
    let data = data.subset(&kept).unwrap();
    let at =
        |c: f64| Settings { regularisation: Regularisation::C(c), tolerance: 1e-6, ..Settings::new(Task::Ordinal) };
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::Mae, Metric::Accuracy] };
    let tuned = validation.run(&data, &[at(1e-4), at(1.0)], &mut Silent, &Cancel::new()).unwrap();
    assert!(tuned.rows.iter().all(|row| row.converged), "{:?}", tuned.rows);
    assert!(tuned.rows[1].metrics[0].mean < 0.6, "{:?}", tuned.rows[1]);
    let refitted = tuned.refit(1, &data, None, &mut Silent, &Cancel::new()).unwrap().model;
    assert_close(refitted.certificate.objective, fit(&data, &at(1.0)).model.certificate.objective, 1e-5, "refitted");
}

#[test]
fn parts_of_the_data_add_up_even_if_one_lacks_ranks() {
    let data = rated(120, 4, &[1.0, 2.0, 3.0, 4.0], 0.6, 16);
    let mut rows: Vec<usize> = (0..120).collect();
    rows.sort_by(|&a, &b| data.targets().real().unwrap()[a].total_cmp(&data.targets().real().unwrap()[b]));
    let halves = [&rows[..70], &rows[70..]].map(|rows| data.subset(rows).unwrap());
    let cancel = Cancel::new();
    let wanted = Settings { scale: Scale::Standard, ..settings(OrdinalForm::Implicit, Loss::SquaredHinge) };
    let whole = halves
        .iter()
        .map(|half| Summary::of(half, &wanted, &cancel).unwrap())
        .reduce(|a, b| a.merge(b).unwrap())
        .unwrap();
    let parts = halves.each_ref().map(|half| Partition::with(half, &wanted, &whole).unwrap());
    let risks = parts.iter().filter_map(|part| part.risk(&cancel).unwrap()).collect();
    let mut sum = SumOfRisks::new(risks).unwrap();
    let model = fit(&data, &wanted).model;
    let point = [model.scorer.weights().unwrap(), &cuts(&model)].concat();
    let value = sum.evaluate(&point, &mut vec![0.0; point.len()]).unwrap();
    assert_close(value, model.certificate.objective, 1e-9, "the sum of both parts");
    // A sum over parts does not keep cuts in order.
    let explicit = Settings { task: of(OrdinalForm::Explicit).into(), ..wanted };
    let refused = Partition::with(&halves[0], &explicit, &whole).err().unwrap();
    assert_eq!(refused.code(), Code::Unsupported);
}

#[test]
fn what_are_no_ratings_is_refused() {
    let data = rated(40, 3, &[1.0, 2.0, 3.0], 0.5, 17);
    let refused = |data: &Dataset, settings: &Settings| {
        let error = train(data, settings, None, &mut Silent, &Cancel::new()).unwrap_err();
        assert!(error.remedy().is_some(), "{error}");
        error.code()
    };
    let plain = Settings::new(Task::Ordinal);
    let with = |targets: Targets| data.clone().with_targets(targets).unwrap();
    let names = ["bad", "good"].into_iter().collect();
    let words = with(Targets::Labels { names, codes: (0..40).map(|row| row % 2).collect::<Vec<u32>>().into() });
    assert_eq!(refused(&words, &plain), Code::BadTarget);
    assert_eq!(refused(&with(Targets::Real(vec![3.0; 40].into())), &plain), Code::SingleClass);
    let measured = rated(200, 2, &(0..200).map(|at| 0.37 * f64::from(at)).collect::<Vec<_>>(), 0.1, 18);
    assert_eq!(refused(&measured, &plain), Code::BadTarget);
    let planes = settings(OrdinalForm::Explicit, Loss::Hinge).with_solver(Solver::CuttingPlane);
    assert_eq!(refused(&data, &planes), Code::BadSetting);
    let unknown = ClassWeight::ByLabel([("9".to_string(), 2.0)].into());
    let unknown = OrdinalSettings { class_weight: unknown, ..OrdinalSettings::default() };
    assert_eq!(refused(&data, &Settings::of(unknown)), Code::UnknownLabel);
    for solver in [Solver::Sgd, Solver::DualCoordinateDescent, Solver::InteriorPoint, Solver::QuadraticProgram] {
        assert_eq!(refused(&data, &plain.clone().with_solver(solver)), Code::Unsupported, "{solver:?}");
    }
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    let logistic = Settings { kernel: gaussian.clone(), loss: Loss::Logistic, ..plain.clone() };
    assert_eq!(refused(&data, &logistic), Code::Unsupported);
    let polished = Settings { kernel: gaussian, polish: true, ..plain.clone() };
    assert_eq!(refused(&data, &polished), Code::Unsupported);
    let mut only = data.clone().with_weights(vec![0.0; 40]).unwrap();
    assert_eq!(refused(&only, &plain), Code::BadWeight);
    let targets = data.targets().real().unwrap();
    let second: Vec<f64> = targets.iter().map(|target| f64::from(u8::from(*target == 2.0))).collect();
    only = data.clone().with_weights(second).unwrap();
    assert_eq!(refused(&only, &plain), Code::SingleClass);
    let mut task = task(&data, OrdinalForm::Implicit, Loss::Hinge);
    task.set_cost(2.0);
    assert_eq!((task.total_cost(), task.constraints()), (80.0, 80));
}
