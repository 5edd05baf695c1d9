//! Label sets: the objective and its derivatives, the optimum of an independent solver, solvers against one another, and
//! models from training to verification.

use crate::made::{Numbers, fit};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT};
use maxmargin::data::{Csr, Dataset, Dense, Labels, Matrix, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{Approximation, KernelKind};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model, Predictions};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::CrossValidation;
use maxmargin::settings::{MultilabelSettings, Regularisation, Settings, Solver};
use maxmargin::solve::Witness;
use maxmargin::task::{Intercept, Multilabel, Objective, Place, Separation, Slopes};
use maxmargin::testing::{check_curvature, check_objective, check_rounding};
use maxmargin::train::train;

const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised];

/// Rows whose labels depend on their features. The first rows have no label and all labels.
pub(crate) fn sets(rows: usize, cols: usize, labels: usize, dense: bool, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let truth: Vec<f64> = (0..labels * cols).map(|_| numbers.next() - 0.5).collect();
    let (mut starts, mut indices, mut values) = (vec![0u64], Vec::new(), Vec::new());
    let (mut ends, mut codes) = (vec![0u64], Vec::new());
    for row in 0..rows {
        let mut scores = vec![-0.1; labels];
        for column in 0..cols {
            if dense || numbers.next() < 0.4 {
                let value = numbers.next() - 0.3;
                indices.push(column as u32);
                values.push(value);
                (0..labels).for_each(|label| scores[label] += value * truth[label * cols + column]);
            }
        }
        starts.push(values.len() as u64);
        for (label, score) in scores.into_iter().enumerate() {
            let has = match row {
                0 => false,
                1 => true,
                _ => score + 0.3 * (numbers.next() - 0.5) > 0.0,
            };
            if has {
                codes.push(label as u32);
            }
        }
        ends.push(codes.len() as u64);
    }
    let matrix = match dense {
        true => Matrix::DenseF64(Dense::new(values, rows, cols).unwrap()),
        false => Matrix::Csr32F64(Csr::new(starts, indices, values, cols).unwrap()),
    };
    let names = (0..labels).map(|label| format!("l{label}")).collect();
    Dataset::new(matrix, Targets::Sets { names, starts: ends.into(), codes: codes.into() }).unwrap()
}

fn settings(multilabel: Multilabel, intercept: Intercept, loss: Loss, c: f64) -> Settings {
    let task = MultilabelSettings { multilabel, intercept, ..MultilabelSettings::default() };
    Settings { loss, regularisation: Regularisation::C(c), ..Settings::of(task) }
}

fn calibrated(intercept: Intercept, loss: Loss, c: f64) -> Settings {
    settings(Multilabel::Calibrated, intercept, loss, c)
}

fn separation(data: &Dataset, loss: Loss, constants: bool) -> Separation {
    Separation::on(data, &Labels::of_sets(data.targets()).unwrap(), loss, constants, None).unwrap()
}

/// The labels of each row.
fn truth(data: &Dataset) -> Vec<Vec<usize>> {
    let Targets::Sets { starts, codes, .. } = data.targets() else { panic!("sets") };
    let own =
        |bounds: &[u64]| codes[bounds[0] as usize..bounds[1] as usize].iter().map(|&code| code as usize).collect();
    starts.windows(2).map(own).collect()
}

/// The objective of scores, by its definition. The calibration score is the last one.
fn loss_by_definition(own: &[usize], scores: &[f64], loss: Loss) -> f64 {
    let middle = scores[scores.len() - 1];
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for (label, score) in scores[..scores.len() - 1].iter().enumerate() {
        if own.contains(&label) { mine.push(middle - score) } else { others.push(score - middle) }
    }
    [mine, others]
        .iter()
        .map(|apart| match loss {
            Loss::Logistic => (1.0 + apart.iter().map(|v| v.exp()).sum::<f64>()).ln(),
            _ => apart.iter().map(|v| 1.0 + v).fold(0.0, f64::max),
        })
        .sum()
}

/// The value of all parts.
fn value(task: &Separation, scores: &[f64], thresholds: &[f64]) -> f64 {
    let outputs = task.outputs();
    let part = |part: usize| {
        let rows = Objective::rows(task, part);
        let scores = &scores[rows.start * outputs..rows.end * outputs];
        let place = Place { part, scores, thresholds, cancel: &Cancel::new() };
        let (mut by_score, mut by_threshold) = (vec![0.0; scores.len()], vec![0.0; thresholds.len()]);
        let slopes = Slopes { scores: &mut by_score, thresholds: &mut by_threshold };
        task.evaluate(&place, slopes, &mut Default::default()).unwrap()
    };
    (0..task.parts()).map(part).sum()
}

#[test]
fn the_objective_is_its_definition_and_its_derivatives_are_those_of_it() {
    let data = sets(1030, 1, 4, true, 5);
    let sets = truth(&data);
    let mut numbers = Numbers::new(9);
    for (loss, spread) in [(Loss::Hinge, 3.0), (Loss::Logistic, 3.0), (Loss::Logistic, 60.0)] {
        for thresholds in [vec![], vec![0.3, -0.2, 0.5, 0.0, 0.1]] {
            let task = separation(&data, loss, !thresholds.is_empty());
            let scores: Vec<f64> = (0..data.rows() * 5).map(|_| spread * (numbers.next() - 0.5)).collect();
            check_objective(&task, &scores, &thresholds).unwrap();
            check_curvature(&task, &scores, &thresholds).unwrap();
            if loss == Loss::Hinge {
                for width in [0.2, 1.0, 5.0] {
                    check_rounding(&task, width, &scores, &thresholds).unwrap();
                }
            }
            let wanted: f64 = sets
                .iter()
                .zip(scores.chunks_exact(5))
                .map(|(own, scores)| {
                    let constants = thresholds.iter().copied().chain(std::iter::repeat(0.0));
                    let shifted: Vec<f64> = scores.iter().zip(constants).map(|(score, b)| score + b).collect();
                    loss_by_definition(own, &shifted, loss)
                })
                .sum();
            let found = value(&task, &scores, &thresholds);
            assert!((found - wanted).abs() <= 1e-10 * wanted, "{loss:?}: {found} {wanted}");
        }
    }
}

/// min ½ Σ‖w_m‖² [+ ½ Σ b_m²] + Σ C_i (ξ_i + η_i) by interior point, with every constraint written out.
fn hinge_referee(data: &Dataset, c: f64, rule: Intercept) -> f64 {
    let (cols, rows, sets) = (data.cols(), data.rows(), truth(data));
    let labels = Labels::of_sets(data.targets()).unwrap().len();
    let outputs = labels + 1;
    // Weights, constants, two slacks per row.
    let (constants, slacks) = (cols * outputs, (cols + 1) * outputs);
    let variables = slacks + 2 * rows;
    let (mut i, mut j, mut v, mut right) = (vec![], vec![], vec![], vec![]);
    for (row, own) in sets.iter().enumerate() {
        let features = crate::optimum::dense_row(data, row);
        for label in 0..labels {
            // sign · (s_label − s_0) ≥ 1 − slack
            let (sign, slack) = if own.contains(&label) { (1.0, 0) } else { (-1.0, 1) };
            let at = right.len();
            for (output, sign) in [(label, sign), (labels, -sign)] {
                for (column, &value) in features.iter().enumerate() {
                    i.push(at);
                    j.push(output * cols + column);
                    v.push(-sign * value);
                }
                if rule != Intercept::None {
                    i.push(at);
                    j.push(constants + output);
                    v.push(-sign);
                }
            }
            i.push(at);
            j.push(slacks + 2 * row + slack);
            v.push(-1.0);
            right.push(-1.0);
        }
    }
    for slack in 0..2 * rows {
        i.push(right.len());
        j.push(slacks + slack);
        v.push(-1.0);
        right.push(0.0);
    }
    let constraints = CscMatrix::new_from_triplets(right.len(), variables, i, j, v);
    let every: Vec<usize> = (0..variables).collect();
    let diagonal = every
        .iter()
        .map(|&at| f64::from(u8::from(at < constants || at < slacks && rule == Intercept::Penalised)))
        .collect();
    let quadratic = CscMatrix::new_from_triplets(variables, variables, every.clone(), every, diagonal);
    let weight = |row: usize| data.weights().map_or(1.0, |weights| weights[row]);
    let linear: Vec<f64> =
        (0..variables).map(|at| if at < slacks { 0.0 } else { c * weight((at - slacks) / 2) }).collect();
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-11)
        .tol_gap_rel(1e-11)
        .tol_feas(1e-11)
        .build()
        .unwrap();
    let cones = [NonnegativeConeT(right.len())];
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &right, &cones, settings).unwrap();
    solver.solve();
    solver.solution.obj_val
}

#[track_caller]
fn check(model: &Model, data: &Dataset, context: &str) {
    let found = model.verify(data).unwrap();
    let certificate = &model.certificate;
    assert!(certificate.converged, "{context}: gap {:?}", certificate.gap());
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
    assert!(same(found.objective, certificate.objective), "{context}");
    assert!(same(found.lower_bound.unwrap(), certificate.lower_bound.unwrap()), "{context}");
}

#[test]
fn the_hinge_form_reaches_the_optimum_of_the_independent_solver() {
    for (dense, weighted) in [(true, false), (false, true)] {
        let mut data = sets(60, 4, 3, dense, 2);
        if weighted {
            data = data.with_weights((0..60).map(|row| f64::from(row % 4) * 0.7).collect::<Vec<_>>()).unwrap();
        }
        for rule in INTERCEPTS {
            for c in [0.05, 1.0, 20.0] {
                let optimum = hinge_referee(&data, c, rule);
                for solver in [Solver::Auto, Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane] {
                    if (solver, rule) == (Solver::CuttingPlane, Intercept::Free) {
                        continue;
                    }
                    let wanted = Settings { tolerance: 1e-6, ..calibrated(rule, Loss::Hinge, c) };
                    let wanted = Settings { max_passes: 100_000, ..wanted.with_solver(solver) };
                    let context = format!("{dense} {rule:?} {c} {solver:?}");
                    crate::optimum::assert_certified(&data, &wanted, optimum);
                    check(&fit(&data, &wanted).model, &data, &context);
                }
            }
        }
    }
}

#[test]
fn layouts_scalings_and_constants_agree_between_the_block_dual_and_newtons_method() {
    for dense in [true, false] {
        let data = sets(300, 6, 5, dense, 3);
        for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs, Scale::UnitRows] {
            for rule in INTERCEPTS {
                let context = format!("{dense}, {scale:?}, {rule:?}");
                let wanted = Settings { scale, tolerance: 1e-5, ..calibrated(rule, Loss::Hinge, 1.0) };
                let wanted = wanted.with_solver(Solver::DualCoordinateDescent);
                let blocks = fit(&data, &wanted).model;
                check(&blocks, &data, &context);
                let newton = fit(&data, &wanted.with_solver(Solver::Newton)).model.certificate;
                let (one, other) = (blocks.certificate.objective, newton.objective);
                assert!((one - other).abs() <= 2.1e-5 * other, "{context}: {one} is not {other}");
            }
        }
    }
}

#[test]
fn the_logistic_form_is_certified_by_its_gradient() {
    for dense in [true, false] {
        let data = sets(200, 5, 6, dense, 7);
        for rule in INTERCEPTS {
            for c in [0.01, 1.0, 100.0] {
                let wanted = Settings { tolerance: 1e-8, ..calibrated(rule, Loss::Logistic, c) };
                let trained = fit(&data, &wanted);
                assert_eq!(trained.solver, Solver::Newton);
                assert_eq!(trained.model.witness, None);
                check(&trained.model, &data, &format!("{dense} {rule:?} {c}"));
            }
        }
    }
    let data = sets(200, 5, 6, true, 7);
    let free = fit(&data, &calibrated(Intercept::Free, Loss::Logistic, 1.0)).model.certificate.objective;
    let none = fit(&data, &calibrated(Intercept::None, Loss::Logistic, 1.0)).model.certificate.objective;
    assert!(free < none);
}

#[test]
fn two_lanes_and_any_number_of_threads_give_the_same_bytes() {
    let data = sets(3000, 300, 12, false, 11);
    let wanted = Settings { tolerance: 1e-3, ..calibrated(Intercept::Free, Loss::Hinge, 0.5) };
    let wanted = wanted.with_solver(Solver::DualCoordinateDescent);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let model = fit(&data, &wanted).model;
            check(&model, &data, "lanes");
            model.to_bytes().unwrap()
        })
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn labels_that_cannot_be_told_teach_the_hinge_nothing_and_that_is_said() {
    // Each of two labels has half of the rows, whatever the features.
    let (mut values, mut codes, mut ends) = (Vec::new(), Vec::new(), vec![0u64]);
    let mut numbers = Numbers::new(4);
    for row in 0..200 {
        values.extend([numbers.next() - 0.5, numbers.next() - 0.5]);
        codes.push((row % 2) as u32);
        ends.push(codes.len() as u64);
    }
    // Every row again with the other label.
    let again = values.clone();
    values.extend(again);
    for row in 0..200 {
        codes.push(((row + 1) % 2) as u32);
        ends.push(codes.len() as u64);
    }
    let matrix = Matrix::DenseF64(Dense::new(values, 400, 2).unwrap());
    let names = ["a", "b"].into_iter().collect();
    let data = Dataset::new(matrix, Targets::Sets { names, starts: ends.into(), codes: codes.into() }).unwrap();
    for rule in INTERCEPTS {
        let trained = fit(&data, &calibrated(rule, Loss::Hinge, 10.0));
        assert!(trained.learned_nothing, "{rule:?}");
        assert!((trained.model.certificate.objective - 10.0 * 2.0 * 400.0).abs() < 8000.0 * 1e-3);
    }
    assert!(!fit(&data, &calibrated(Intercept::Free, Loss::Logistic, 10.0)).learned_nothing);
    assert!(!fit(&sets(100, 4, 3, true, 2), &calibrated(Intercept::Free, Loss::Hinge, 10.0)).learned_nothing);
}

#[test]
fn one_vs_rest_is_each_label_on_its_own() {
    let data = sets(150, 4, 3, true, 6);
    let sets = truth(&data);
    for (loss, rule) in
        [(Loss::Hinge, Intercept::Free), (Loss::SquaredHinge, Intercept::Penalised), (Loss::Logistic, Intercept::None)]
    {
        let wanted = Settings { tolerance: 1e-6, ..settings(Multilabel::OneVsRest, rule, loss, 0.5) };
        let model = fit(&data, &wanted).model;
        check(&model, &data, &format!("{loss:?}"));
        let mut sum = 0.0;
        for label in 0..3 {
            let targets: Vec<f64> = sets.iter().map(|own| if own.contains(&label) { 1.0 } else { -1.0 }).collect();
            let two = Dataset::new(data.matrix().clone(), Targets::Real(targets.into())).unwrap();
            let task = maxmargin::settings::ClassifySettings { intercept: rule, ..Default::default() };
            let own = Settings { loss, tolerance: 1e-6, regularisation: Regularisation::C(0.5), ..Settings::of(task) };
            sum += fit(&two, &own).model.certificate.objective;
        }
        assert!((model.certificate.objective - sum).abs() <= 2e-6 * sum, "{loss:?}");
    }
}

#[test]
fn predictions_are_the_labels_above_the_border_best_first() {
    let data = sets(120, 5, 4, true, 8);
    for (form, outputs) in [(Multilabel::Calibrated, 5), (Multilabel::OneVsRest, 4)] {
        let model = fit(&data, &settings(form, Intercept::Free, Loss::Logistic, 1.0)).model;
        let scores = model.scores(&data).unwrap();
        assert_eq!(scores.len(), 120 * outputs);
        let predicted = model.predict(&data).unwrap();
        let Predictions::Sets { scores: own, labels } = &predicted else { panic!("sets") };
        assert_eq!(labels.len(), 4);
        for row in 0..120 {
            let given = &scores[row * outputs..(row + 1) * outputs];
            let border = if outputs == 5 { given[4] } else { 0.0 };
            let mut set: Vec<usize> = (0..4).filter(|&label| given[label] > border).collect();
            set.sort_by(|&a, &b| given[b].total_cmp(&given[a]));
            assert_eq!(predicted.set(row).unwrap(), set);
            assert_eq!(own[row * 4], given[0] - border);
        }
    }
}

#[test]
fn a_saved_model_predicts_the_same_and_verifies() {
    let data = sets(80, 4, 3, true, 12);
    for (form, loss) in [
        (Multilabel::Calibrated, Loss::Hinge),
        (Multilabel::Calibrated, Loss::Logistic),
        (Multilabel::OneVsRest, Loss::Hinge),
    ] {
        for solver in [Solver::Auto, Solver::DualCoordinateDescent] {
            if (form, loss, solver) == (Multilabel::Calibrated, Loss::Logistic, Solver::DualCoordinateDescent) {
                continue;
            }
            let model = fit(&data, &settings(form, Intercept::Free, loss, 1.0).with_solver(solver)).model;
            let bytes = model.to_bytes().unwrap();
            let loaded = Model::from_bytes(&bytes).unwrap();
            assert_eq!(loaded.scores(&data).unwrap(), model.scores(&data).unwrap());
            assert_eq!(loaded.decoder, model.decoder);
            assert_eq!(loaded.to_bytes().unwrap(), bytes);
            check(&loaded, &data, &format!("{form:?} {loss:?}"));
        }
    }
}

#[test]
fn an_altered_witness_is_refused() {
    let data = sets(80, 4, 3, true, 12);
    let wanted = calibrated(Intercept::Free, Loss::Hinge, 1.0).with_solver(Solver::DualCoordinateDescent);
    let model = fit(&data, &wanted).model;
    let Some(Witness::Classes(dual)) = &model.witness else { panic!("a dual point") };
    assert!(!dual.values.is_empty());
    let altered = |change: &dyn Fn(&mut maxmargin::solve::ClassDual)| {
        let mut dual = dual.clone();
        change(&mut dual);
        let model = Model { witness: Some(Witness::Classes(dual)), ..model.clone() };
        model.verify(&data).map(drop)
    };
    altered(&|_| {}).unwrap();
    for change in [
        &(|dual: &mut maxmargin::solve::ClassDual| dual.values[0] = 50.0) as &dyn Fn(&mut _),
        &|dual: &mut maxmargin::solve::ClassDual| dual.values[0] *= 0.5,
        &|dual: &mut maxmargin::solve::ClassDual| dual.classes[0] = 3,
        &|dual: &mut maxmargin::solve::ClassDual| dual.values[0] = -1.0,
    ] {
        assert_eq!(altered(change).unwrap_err().code(), Code::CertificateMismatch);
    }
}

#[test]
fn kernels_solve_the_same_problem() {
    let data = sets(120, 3, 4, true, 14);
    for rule in INTERCEPTS {
        let linear = Settings { tolerance: 1e-5, ..calibrated(rule, Loss::Hinge, 1.0) };
        let optimum = fit(&data, &linear).model.certificate.objective;
        // The polynomial kernel of degree one is the linear one.
        let mut wanted = linear.clone();
        wanted.kernel.kind = KernelKind::Polynomial;
        (wanted.kernel.degree, wanted.kernel.gamma) = (Some(1), Some(1.0));
        let model = fit(&data, &wanted).model;
        check(&model, &data, &format!("{rule:?}"));
        let found = model.certificate.objective;
        assert!((found - optimum).abs() <= 3e-5 * optimum, "{rule:?}: {found} {optimum}");
        assert!(matches!(model.decoder, Decoder::Sets { .. }));
    }
    let mut wanted = calibrated(Intercept::Free, Loss::Logistic, 1.0);
    wanted.kernel.kind = KernelKind::Gaussian;
    assert_eq!(train(&data, &wanted, None, &mut Silent, &Cancel::new()).unwrap_err().code(), Code::Unsupported);
    wanted.kernel.approximate = Some(Approximation::Nystrom { landmarks: 20 });
    check(&fit(&data, &wanted).model, &data, "approximated");
}

#[test]
fn settings_that_label_sets_do_not_have_are_refused() {
    let data = sets(20, 2, 3, true, 1);
    let usual = calibrated(Intercept::Free, Loss::Hinge, 1.0);
    for wanted in [
        Settings { loss: Loss::SquaredHinge, ..usual.clone() },
        Settings { regularisation: Regularisation::Nu(0.5), ..usual.clone() },
        usual.clone().with_solver(Solver::QuadraticProgram),
        usual.clone().with_solver(Solver::AveragedSgd),
        usual.clone().with_solver(Solver::CuttingPlane),
    ] {
        assert!(train(&data, &wanted, None, &mut Silent, &Cancel::new()).is_err(), "{wanted:?}");
    }
}

#[test]
fn a_label_that_never_occurs_and_labels_that_the_model_does_not_know() {
    let data = sets(60, 3, 3, true, 4);
    let Targets::Sets { starts, codes, .. } = data.targets() else { panic!("sets") };
    // A fourth label is declared, and no row has it.
    let names = ["l0", "l1", "l2", "never"].into_iter().collect();
    let targets = Targets::Sets { names, starts: starts.clone(), codes: codes.clone() };
    let declared = Dataset::new(data.matrix().clone(), targets).unwrap();
    for form in Multilabel::ALL {
        for loss in [Loss::Hinge, Loss::Logistic] {
            for rule in INTERCEPTS {
                let model = fit(&declared, &settings(form, rule, loss, 1.0)).model;
                // There is no optimum where a free constant may fall for ever.
                if (form, loss, rule) != (Multilabel::Calibrated, Loss::Logistic, Intercept::Free) {
                    check(&model, &declared, &format!("{form:?} {loss:?} {rule:?}"));
                }
                let predicted = model.predict(&declared).unwrap();
                if rule == Intercept::Free {
                    let never = (2..60).filter(|&row| predicted.set(row).unwrap().contains(&3)).count();
                    assert_eq!(never, 0, "{form:?} {loss:?}");
                }
            }
        }
    }
    let model = fit(&data, &calibrated(Intercept::Free, Loss::Logistic, 1.0)).model;
    // Rows with a label that the model does not know are judged by the others.
    let names = ["l0", "l1", "new"].into_iter().collect();
    let targets = Targets::Sets { names, starts: starts.clone(), codes: codes.clone() };
    let other = Dataset::new(data.matrix().clone(), targets).unwrap();
    let answers = Answers::new(&model, &other).unwrap();
    assert!(answers.sets().unwrap().unknown() > 0);
    assert!(answers.evaluate(&Metric::RankingLoss).unwrap().value >= 0.0);
    assert_eq!(answers.evaluate(&Metric::Accuracy).unwrap_err().code(), Code::MetricMismatch);
}

#[test]
fn folds_are_judged_like_single_runs() {
    let data = sets(90, 4, 4, true, 15);
    let metrics = Metric::multilabel_defaults();
    let validation = CrossValidation { folds: 3, seed: 1, metrics };
    for form in Multilabel::ALL {
        let candidates: Vec<Settings> = [0.1, 1.0].map(|c| settings(form, Intercept::Free, Loss::Logistic, c)).to_vec();
        let tuned = validation.run(&data, &candidates, &mut Silent, &Cancel::new()).unwrap();
        assert_eq!(tuned.rows.len(), 2);
        assert!(tuned.rows.iter().all(|row| row.metrics.iter().all(|of| (0.0..=1.0).contains(&of.mean))));
    }
}
