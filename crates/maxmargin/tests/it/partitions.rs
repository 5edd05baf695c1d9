//! Data in parts: posed with the merged summary, the losses of the parts add up to value, gradient and Hessian of the
//! whole, and solvers over the sum find the optimum of the whole.

use crate::comparisons::with_ties;
use crate::graded_comparisons::from_grades;
use crate::made::{Numbers, fit, graded, two_classes};
use maxmargin::data::{Dataset, Dense, Matrix, Outcome, Pairs, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, RankSettings, Regularisation, Settings, Task};
use maxmargin::solve::{CurvedRisk, CuttingPlane, Newton, Preconditioner, Risk, Stop, SumOfRisks};
use maxmargin::task::{ClassWeight, Intercept, PairWeight};
use maxmargin::train::{Partition, Summary};

/// Each part posed with the merged summary.
fn partitions(parts: &[Dataset], settings: &Settings) -> Vec<Partition> {
    let of = |part| Summary::of(part, settings, &Cancel::new()).unwrap();
    let whole = parts.iter().map(of).reduce(|a, b| a.merge(b).unwrap()).unwrap();
    // A summary travels between machines.
    let whole: Summary = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
    parts.iter().map(|part| Partition::with(part, settings, &whole).unwrap()).collect()
}

fn sum<'a>(partitions: &'a [Partition], cancel: &'a Cancel) -> SumOfRisks<'a> {
    SumOfRisks::new(partitions.iter().filter_map(|part| part.risk(cancel).unwrap()).collect()).unwrap()
}

fn assert_close(a: &[f64], b: &[f64], what: &str) {
    let size = a.iter().fold(1e-300f64, |most, value| most.max(value.abs()));
    assert_eq!(a.len(), b.len(), "{what}");
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-10 * size, "{what} {at}: {a} is not {b}");
    }
}

/// Value, gradient, a line, the Hessian and its products are those of the whole, and so is the optimum.
fn check(whole: &Dataset, parts: &[Dataset], settings: &Settings) {
    let cancel = Cancel::new();
    let (one, several) = (partitions(std::slice::from_ref(whole), settings), partitions(parts, settings));
    let (mut one, mut several) = (sum(&one, &cancel), sum(&several, &cancel));
    let dim = one.dim();
    assert_eq!((dim, one.penalised()), (several.dim(), several.penalised()));
    let mut numbers = Numbers::new(9);
    let point: Vec<f64> = (0..dim).map(|_| numbers.next() + 0.1).collect();
    let direction: Vec<f64> = (0..dim).map(|_| numbers.next() - 0.5).collect();
    let at = |risk: &mut SumOfRisks<'_>| {
        let (mut gradient, mut product) = (vec![0.0; dim], vec![0.0; dim]);
        let value = risk.evaluate(&point, &mut gradient).unwrap();
        let hessian = risk.hessian().unwrap();
        risk.hessian_times(&direction, &mut product).unwrap();
        let free = risk.free_hessian().unwrap();
        let alike = match risk.preconditioner().unwrap() {
            Preconditioner::Matrix(values) | Preconditioner::Diagonal(values) => values,
        };
        risk.line(&direction).unwrap();
        let (moved, slope) = risk.along(0.3).unwrap();
        (vec![value, moved, slope], gradient, hessian, product, free, alike)
    };
    let (a, b) = (at(&mut one), at(&mut several));
    assert_close(&a.1, &b.1, "gradient");
    assert_close(&a.2, &b.2, "Hessian");
    assert_close(&a.3, &b.3, "Hessian times a direction");
    assert_close(&a.4, &b.4, "free Hessian");
    assert!(b.5.iter().all(|value| value.is_finite()));
    for (a, b) in a.0.iter().zip(&b.0) {
        // Steps along a line are kept in single precision.
        assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{a} {b}");
    }
    assert!((a.0[0] - b.0[0]).abs() <= 1e-12 * a.0[0].abs());
    let trained = fit(whole, settings).model.certificate;
    let free = several.dim() - whole.cols();
    let newton = Newton { tolerance: 1e-10, max_passes: 200 };
    let found = match settings.loss {
        Loss::Hinge => CuttingPlane { tolerance: 1e-7, max_passes: 5000 }
            .solve(&mut several, dim - free, None, &mut Silent, &cancel)
            .unwrap(),
        _ => newton.solve(&mut several, dim - free, None, &mut Silent, &cancel).unwrap(),
    };
    let size = trained.objective;
    assert!(matches!(found.stop, Stop::Converged | Stop::Stalled), "{:?}", found.stop);
    assert!((found.objective - size).abs() <= 2e-6 * size, "{} is not {size}", found.objective);
}

fn cut(data: &Dataset, cuts: &[usize]) -> Vec<Dataset> {
    let ends = cuts.iter().copied().chain([data.rows()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| data.subset(&(start..end).collect::<Vec<_>>()).unwrap()).collect()
}

fn tight(task: Task, loss: Loss) -> Settings {
    Settings { loss, tolerance: 1e-8, max_passes: 100_000, ..Settings::new(task) }
}

#[test]
fn classifiers_in_parts_are_the_classifier_of_the_whole() {
    for (dense, scale) in [(true, Scale::Standard), (false, Scale::MaxAbs), (true, Scale::MinMax), (false, Scale::None)]
    {
        for intercept in [Intercept::Free, Intercept::Penalised, Intercept::None] {
            for loss in [Loss::SquaredHinge, Loss::Logistic, Loss::Hinge] {
                let data = two_classes(230, 6, dense, 3);
                let weights: Vec<f64> = (0..230).map(|row| 0.5 + (row % 4) as f64).collect();
                let data = data.with_weights(weights).unwrap();
                let task =
                    ClassifySettings { intercept, class_weight: ClassWeight::Balanced, ..ClassifySettings::default() };
                // The mean form divides by the total weight of all parts.
                let regularisation = Regularisation::Lambda(0.01);
                let settings = Settings { task: task.into(), scale, regularisation, ..tight(Task::Classify, loss) };
                check(&data, &cut(&data, &[77, 200]), &settings);
            }
        }
    }
}

#[test]
fn a_part_may_hold_one_class_only_and_classes_are_those_of_all_parts() {
    let data = two_classes(100, 4, true, 5);
    let targets = data.targets().real().unwrap().to_vec();
    let mut order: Vec<usize> = (0..100).collect();
    order.sort_by(|&a, &b| targets[a].total_cmp(&targets[b]));
    let sorted = data.subset(&order).unwrap();
    let negatives = targets.iter().filter(|target| **target < 0.0).count();
    let settings = tight(Task::Classify, Loss::SquaredHinge);
    check(&sorted, &cut(&sorted, &[negatives]), &settings);
    // A part without rows adds nothing, whatever is scaled.
    for scale in [Scale::None, Scale::Standard, Scale::MinMax, Scale::MaxAbs] {
        let settings = Settings { scale, ..settings.clone() };
        check(&sorted, &cut(&sorted, &[0, negatives, 100]), &settings);
    }
    // Words are ordered as in training, by letters, even where they look like numbers.
    let codes: Vec<u32> = sorted.targets().real().unwrap().iter().map(|&target| u32::from(target < 0.0)).collect();
    let names = ["10", "9"].into_iter().collect();
    let words = sorted.clone().with_targets(Targets::Labels { names, codes: codes.into() }).unwrap();
    let weighed = ClassWeight::ByLabel([("10".to_string(), 3.0)].into());
    let task = ClassifySettings { class_weight: weighed, ..ClassifySettings::default() };
    check(&words, &cut(&words, &[negatives]), &Settings { task: task.into(), ..settings.clone() });
    let weightless = sorted
        .clone()
        .with_weights(vec![1.0; negatives].into_iter().chain(vec![0.0; 100 - negatives]).collect::<Vec<_>>())
        .unwrap();
    let summary = Summary::of(&weightless, &settings, &Cancel::new()).unwrap();
    let refused = Partition::with(&weightless, &settings, &summary).err().unwrap();
    assert_eq!(refused.code(), Code::SingleClass);
    let one = cut(&sorted, &[negatives]).swap_remove(0);
    let summary = Summary::of(&one, &settings, &Cancel::new()).unwrap();
    let refused = Partition::with(&one, &settings, &summary).err().unwrap();
    assert_eq!(refused.code(), Code::SingleClass);
}

#[test]
fn rankers_in_parts_are_the_ranker_of_the_whole() {
    for pair_weight in [PairWeight::Equal, PairWeight::PerQuery] {
        for loss in [Loss::SquaredHinge, Loss::Hinge] {
            let data = graded(24, 9, 5, 3, 2);
            let task = RankSettings { pair_weight, ..RankSettings::default() };
            let settings = Settings { task: task.into(), scale: Scale::Standard, ..tight(Task::Rank, loss) };
            check(&data, &cut(&data, &[9, 9 * 13]), &settings);
        }
    }
}

#[test]
fn a_part_without_pairs_adds_nothing() {
    let data = graded(6, 8, 4, 3, 2);
    let mut targets = data.targets().real().unwrap().to_vec();
    targets[..8].fill(1.0);
    let data = data.with_targets(Targets::Real(targets.into())).unwrap();
    check(&data, &cut(&data, &[8, 24]), &tight(Task::Rank, Loss::SquaredHinge));
}

#[test]
fn comparisons_in_parts_are_the_comparison_of_the_whole() {
    for loss in [Loss::SquaredHinge, Loss::Hinge] {
        let data = with_ties(40, 3, 300, 8);
        let pairs = data.pairs().unwrap();
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        // All ties first: the first part has no decided pair.
        order.sort_by_key(|&pair| pairs.outcome(pair) != Outcome::Tie);
        let of = |chosen: &[usize]| {
            let rows = data.clone();
            let pick = |of: &[u32]| chosen.iter().map(|&pair| of[pair]).collect::<Vec<u32>>();
            let outcomes: Vec<Outcome> = chosen.iter().map(|&pair| pairs.outcome(pair)).collect();
            let weights: Vec<f64> = chosen.iter().map(|&pair| pairs.weight(pair)).collect();
            let listed = Pairs::new(pick(pairs.left()), pick(pairs.right())).unwrap();
            rows.with_pairs(listed.with_outcomes(outcomes).unwrap().with_weights(weights).unwrap()).unwrap()
        };
        check(&of(&order), &[of(&order[..pairs.ties()]), of(&order[pairs.ties()..])], &tight(Task::Compare, loss));
    }
    for loss in [Loss::SquaredHinge, Loss::Hinge] {
        let data = graded(12, 7, 4, 3, 6);
        let mut targets = data.targets().real().unwrap().to_vec();
        (0..7).for_each(|row| targets[row] = row as f64);
        let data = data.with_targets(Targets::Real(targets.into())).unwrap();
        check(&data, &cut(&data, &[7, 35]), &from_grades(tight(Task::Compare, loss)));
    }
}

#[test]
fn grades_that_no_threshold_can_be_learned_from_are_refused_as_in_training() {
    let data = graded(6, 8, 4, 3, 2);
    let settings = from_grades(tight(Task::Compare, Loss::SquaredHinge));
    let code = |targets: Vec<f64>, settings: &Settings| {
        let data = data.clone().with_targets(Targets::Real(targets.into())).unwrap();
        let parts = cut(&data, &[24]);
        let of = |part| Summary::of(part, settings, &Cancel::new()).unwrap();
        let whole = parts.iter().map(of).reduce(|a, b| a.merge(b).unwrap()).unwrap();
        Partition::with(&parts[0], settings, &whole).err().map(|error| error.code())
    };
    assert_eq!(code((0..48).map(f64::from).collect(), &settings), Some(Code::NoThreshold), "no ties");
    assert_eq!(code(vec![1.0; 48], &settings), Some(Code::NoThreshold), "ties alone");
    assert_eq!(code(vec![1.0; 48], &tight(Task::Rank, Loss::SquaredHinge)), Some(Code::NoPairs));
}

#[test]
fn what_parts_cannot_do_is_refused() {
    let data = two_classes(60, 4, true, 5);
    let settings = tight(Task::Classify, Loss::Hinge);
    let summary = Summary::of(&data, &settings, &Cancel::new()).unwrap();
    let kernel = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
    let kernel = Settings { kernel, ..settings.clone() };
    let code = |of: maxmargin::Result<Partition>| of.err().map(|error| error.code());
    assert_eq!(code(Partition::with(&data, &kernel, &summary)), Some(Code::Unsupported));
    let narrow = Matrix::DenseF64(Dense::new(vec![0.0; 120], 60, 2).unwrap());
    let narrow = data.clone().with_matrix(narrow).unwrap();
    assert_eq!(code(Partition::with(&narrow, &settings, &summary)), Some(Code::BadSetting));
    let other = Summary::of(&narrow, &settings, &Cancel::new()).unwrap();
    assert_eq!(summary.merge(other).err().map(|error| error.code()), Some(Code::BadSetting));
    let summary = Summary::of(&data, &settings, &Cancel::new()).unwrap();
    let scaled = Settings { scale: Scale::Standard, ..settings.clone() };
    assert_eq!(code(Partition::with(&data, &scaled, &summary)), Some(Code::BadSetting), "another scaling");
    let scaled = Settings { scale: Scale::Standard, ..tight(Task::Compare, Loss::Hinge) };
    let refused = Summary::of(&with_ties(10, 2, 30, 1), &scaled, &Cancel::new()).err().unwrap();
    assert_eq!(refused.code(), Code::Unsupported);
    assert_eq!(SumOfRisks::new(Vec::new()).err().map(|error| error.code()), Some(Code::NoRows));
}
