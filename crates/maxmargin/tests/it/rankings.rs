//! Measures of whole orders and of all labels, trained by every solver of structured outputs, against each other and
//! against the sums over pairs and rows that some of them are.

use crate::made::{fit, graded, two_classes};
use maxmargin::data::{Dataset, Groups, Matrix, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Choice, Chosen, ClassifySettings, RankSettings, Regularisation, Settings, Solver, Task};
use maxmargin::structured::OrderScore;
use maxmargin::task::{Intercept, PairWeight};
use maxmargin::train::train;

const SOLVERS: [Solver; 3] = [Solver::FrankWolfe, Solver::NSlack, Solver::CuttingPlane];

fn ranker(measure: &str, c: f64) -> Settings {
    let optimize = Some(measure.parse().expect("a measure"));
    let task = RankSettings { optimize, ..RankSettings::default() };
    Settings { regularisation: Regularisation::C(c), tolerance: 1e-5, max_passes: 3000, ..Settings::of(task) }
}

fn classifier(measure: &str, c: f64, intercept: Intercept) -> Settings {
    let optimize = Some(measure.parse().expect("a measure"));
    let task = ClassifySettings { optimize, intercept, ..ClassifySettings::default() };
    Settings { regularisation: Regularisation::C(c), tolerance: 1e-5, max_passes: 3000, ..Settings::of(task) }
}

/// The model of a solver, which converged, after a round through bytes, and verified.
fn verified(data: &Dataset, settings: &Settings, solver: Solver) -> Model {
    let trained = fit(data, &Settings { solver, ..settings.clone() });
    assert!(trained.model.certificate.converged, "{solver:?}: {:?}", trained.model.certificate);
    let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
    loaded.verify(data).expect("the certificate holds");
    assert_eq!(loaded.settings, trained.model.settings);
    loaded
}

/// Whether bounds and objectives of one problem enclose a common optimum.
fn agree(models: &[Model], what: &str) {
    let highest = models.iter().filter_map(|model| model.certificate.lower_bound).fold(0.0, f64::max);
    let lowest = models.iter().map(|model| model.certificate.objective).fold(f64::INFINITY, f64::min);
    assert!(highest <= lowest * (1.0 + 1e-9), "{what}: {highest} {lowest}");
}

#[test]
fn solvers_agree_on_every_measure_of_orders() {
    for (measure, levels) in
        [("map", 2), ("map:mslr", 4), ("ndcg", 2), ("ndcg@3", 4), ("ndcg:trec", 3), ("auc", 2), ("p@2", 2), ("mrr", 2)]
    {
        let data = graded(14, 8, 3, levels, 5);
        for (c, order_score) in [(0.3, OrderScore::Mean), (20.0, OrderScore::Mean), (0.3, OrderScore::Sum)] {
            let optimize = Some(measure.parse().expect("a measure"));
            let task = RankSettings { optimize, order_score, ..RankSettings::default() };
            let settings = Settings { task: task.into(), ..ranker(measure, c) };
            let models = SOLVERS.map(|solver| verified(&data, &settings, solver));
            agree(&models, measure);
        }
    }
}

#[test]
fn solvers_agree_on_every_measure_of_labels() {
    let data = two_classes(60, 4, true, 3);
    for measure in ["f1", "prbep", "p@10", "auc", "error"] {
        for (c, intercept) in [(0.05, Intercept::Penalised), (1.0, Intercept::None)] {
            let models = SOLVERS.map(|solver| verified(&data, &classifier(measure, c, intercept), solver));
            agree(&models, measure);
            let constant = models[0].scorer.intercepts();
            assert_eq!(constant.len(), usize::from(intercept == Intercept::Penalised), "{measure}");
        }
    }
}

fn objective(data: &Dataset, settings: &Settings) -> f64 {
    fit(data, &Settings { tolerance: 1e-8, ..settings.clone() }).model.certificate.objective
}

fn close(one: f64, other: f64, what: &str) {
    assert!((one - other).abs() <= 1e-5 * other, "{what}: {one} {other}");
}

#[test]
fn the_area_of_a_ranker_is_the_hinge_of_pairs_that_weigh_the_same_in_every_query() {
    let data = graded(12, 7, 3, 2, 8);
    for c in [0.1, 3.0] {
        // A wrong pair counts twice the difference of its scores, so that with v = 2w the penalty is a quarter.
        let task = RankSettings { pair_weight: PairWeight::PerQuery, ..RankSettings::default() };
        let pairs = Settings { loss: Loss::Hinge, regularisation: Regularisation::C(4.0 * c), ..Settings::of(task) };
        close(4.0 * objective(&data, &ranker("auc", c)), objective(&data, &pairs), "auc");
    }
}

#[test]
fn the_error_of_a_classifier_is_the_hinge_of_its_rows_and_the_area_that_of_its_pairs() {
    let data = two_classes(80, 3, true, 6);
    for (c, intercept) in [(0.02, Intercept::Penalised), (1.0, Intercept::None)] {
        let usual = ClassifySettings { intercept, ..ClassifySettings::default() };
        let rows = Settings { regularisation: Regularisation::C(c), ..Settings::of(usual) };
        close(objective(&data, &classifier("error", c, intercept)), objective(&data, &rows), "error");
        // One query whose pairs weigh 80 in sum.
        let list = data.clone().with_groups(Groups::one(80)).expect("valid");
        let task = RankSettings { pair_weight: PairWeight::PerQuery, ..RankSettings::default() };
        let regularisation = Regularisation::C(80.0 * c);
        let pairs = Settings { loss: Loss::Hinge, regularisation, ..Settings::of(task) };
        close(objective(&data, &classifier("auc", c, intercept)), objective(&list, &pairs), "auc");
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let data = graded(40, 9, 4, 3, 2);
    for measure in ["map", "ndcg@4"] {
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| fit(&data, &ranker(measure, 1.0)).model.to_bytes().expect("bytes"))
        };
        assert_eq!(bytes(1), bytes(3), "{measure}");
    }
}

#[test]
fn the_order_of_queries_and_rows_does_not_matter() {
    let data = graded(12, 7, 3, 2, 8);
    let order: Vec<usize> = (0..84).rev().collect();
    let turned = data.subset(&order).expect("rows");
    close(objective(&turned, &ranker("map", 2.0)), objective(&data, &ranker("map", 2.0)), "turned around");
}

#[test]
fn cross_validation_leaves_out_whole_queries_and_the_rows_of_a_fold() {
    let data = graded(20, 8, 3, 2, 8);
    let validation = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::parse("map").expect("known")] };
    let settings = Settings { tolerance: 1e-5, ..ranker("map", 1.0) };
    let candidates = Grid::of(vec![0.1, 1.0, 10.0]).expect("a grid").candidates(&settings);
    let tuned = validation.run(&data, &candidates, &mut Silent, &Cancel::new()).expect("tunes");
    assert!(tuned.rows.iter().all(|row| row.converged && row.metrics[0].mean > 0.6), "{:?}", tuned.rows);
    let refitted = tuned.refit(tuned.best, &data, None, &mut Silent, &Cancel::new()).expect("trains");
    refitted.model.verify(&data).expect("the certificate holds");

    let data = two_classes(90, 3, true, 2);
    let validation = CrossValidation { metrics: vec![Metric::parse("f1").expect("known")], ..validation };
    let settings = Settings { tolerance: 1e-4, ..classifier("f1", 1.0, Intercept::Penalised) };
    let candidates = Grid::of(vec![0.1, 1.0]).expect("a grid").candidates(&settings);
    let tuned = validation.run(&data, &candidates, &mut Silent, &Cancel::new()).expect("tunes");
    assert!(tuned.rows.iter().all(|row| row.converged && row.metrics[0].mean > 0.5), "{:?}", tuned.rows);
}

#[test]
fn f1_is_better_on_rare_positives_if_it_is_what_is_optimised() {
    let data = two_classes(400, 5, true, 12);
    // Of four positives, three become negative: few are left, among rows that look like them.
    let mut seen = 0;
    let signs = data.targets().real().expect("numbers").iter().map(|&sign| {
        seen += usize::from(sign > 0.0);
        if sign > 0.0 && seen % 4 > 0 { -1.0 } else { sign }
    });
    let signs: Vec<f64> = signs.collect();
    let data = Dataset::new(Matrix::clone(data.matrix()), Targets::Real(signs.into())).expect("valid");
    let f1 = |settings: &Settings| {
        let model = fit(&data, &Settings { tolerance: 1e-3, ..settings.clone() }).model;
        Answers::new(&model, &data).expect("scores").evaluate(&Metric::F1).expect("defined").value
    };
    let rows = Settings::of(ClassifySettings { intercept: Intercept::Penalised, ..ClassifySettings::default() });
    let (at_once, by_rows) = (f1(&classifier("f1", 1.0, Intercept::Penalised)), f1(&rows));
    assert!(at_once > by_rows + 0.1, "{at_once} {by_rows}");
}

fn text(name: &str, value: &str) -> (String, Choice) {
    (name.to_string(), Choice::Text(value.to_string()))
}

#[test]
fn a_measure_brings_the_hinge_and_a_penalised_constant_and_refuses_what_does_not_fit() {
    let named = |task: Task, chosen: &[(&str, &str)]| {
        Settings::named(task, &chosen.iter().map(|(name, value)| text(name, value)).collect::<Chosen>())
    };
    let settings = named(Task::Rank, &[("optimize", "map")]).expect("fits");
    assert_eq!(settings.loss, Loss::Hinge);
    let back = Settings::named(Task::Rank, &settings.to_named().expect("named")).expect("reads back");
    assert_eq!(back, settings);
    let settings = named(Task::Classify, &[("optimize", "f1")]).expect("fits");
    assert_eq!((settings.loss, settings.free()), (Loss::Hinge, Intercept::Penalised));

    for (task, chosen, words) in [
        (Task::Rank, &[("optimize", "map"), ("loss", "squared-hinge")][..], "hinge"),
        (Task::Rank, &[("optimize", "map"), ("pair-weight", "per-query")], "pair-weight"),
        (Task::Rank, &[("order-score", "sum")], "order"),
        (Task::Rank, &[("optimize", "mpa")], "mpa"),
        (Task::Classify, &[("optimize", "f1"), ("intercept", "free")], "constant"),
        (Task::Classify, &[("optimize", "f1"), ("loss", "logistic")], "hinge"),
        (Task::Classify, &[("optimize", "f1"), ("multiclass", "joint")], "multiclass"),
        (Task::Classify, &[("optimize", "f1"), ("probability", "platt")], "probability"),
        (Task::Classify, &[("optimize", "f1"), ("class-weight", "balanced")], "class-weight"),
        (Task::Classify, &[("optimize", "map")], "map"),
    ] {
        let error = named(task, chosen).expect_err("refused");
        assert_eq!(error.code(), Code::BadSetting, "{chosen:?}: {error}");
        assert!(error.raw_message().contains(words) && error.remedy().is_some(), "{chosen:?}: {error}");
    }
    let solver = named(Task::Rank, &[("optimize", "map"), ("solver", "newton")]).expect("known when the data are");
    let data = graded(4, 5, 2, 2, 1);
    let error = train(&data, &solver, None, &mut Silent, &Cancel::new()).expect_err("no curvature");
    assert_eq!(error.code(), Code::Unsupported);
}

#[test]
fn data_that_a_measure_cannot_judge_are_refused() {
    let refused = |data: &Dataset, settings: &Settings| {
        train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("refused").code()
    };
    let data = two_classes(20, 2, true, 1);
    assert_eq!(refused(&data, &ranker("map", 1.0)), Code::NoGroups);
    // Grades of 0 and 1 have no relevant row by the MSLR rule.
    assert_eq!(refused(&graded(4, 5, 2, 2, 1), &ranker("map:mslr", 1.0)), Code::NoPairs);
    assert_eq!(refused(&graded(4, 5, 2, 0, 1), &ranker("p@5", 1.0)), Code::NoPairs);
    let three = crate::classes::numbered(30, 2, 3, 1);
    assert_eq!(refused(&three, &classifier("f1", 1.0, Intercept::None)), Code::TooManyClasses);
    let weighted = data.with_weights((0..20).map(|row| 1.0 + f64::from(row % 2)).collect::<Vec<_>>()).expect("valid");
    assert_eq!(refused(&weighted, &classifier("f1", 1.0, Intercept::None)), Code::BadWeight);
    let pairs = crate::pairs::compared(20, 2, 30, 4);
    assert_eq!(refused(&pairs, &ranker("map", 1.0)), Code::BadSetting);
}

#[test]
fn measures_are_trained_through_kernels_exact_and_approximated() {
    let orders = graded(14, 7, 3, 2, 6);
    let labels = two_classes(50, 3, true, 4);
    let cases = [
        (&orders, ranker("map", 2.0)),
        (&labels, classifier("f1", 0.5, Intercept::Penalised)),
        (&labels, classifier("auc", 0.5, Intercept::None)),
    ];
    for (data, settings) in cases {
        let settings = Settings { tolerance: 1e-4, ..settings };
        let kernel = |kind| KernelSettings { kind, gamma: Some(0.5), ..KernelSettings::default() };
        let gaussian = Settings { kernel: kernel(KernelKind::Gaussian), ..settings.clone() };
        let exact = verified(data, &gaussian, Solver::FrankWolfe);
        assert!(exact.scorer.weights().is_none());
        // With all rows as landmarks, the approximation is the kernel.
        let approximate = Some("nystrom:200".parse().expect("a map"));
        let mapped = Settings { kernel: KernelSettings { approximate, ..kernel(KernelKind::Gaussian) }, ..settings };
        let mapped = verified(data, &mapped, Solver::FrankWolfe);
        let (one, other) = (exact.certificate.objective, mapped.certificate.objective);
        assert!((one - other).abs() < 1e-3 * other, "{one} {other}");
    }
}
