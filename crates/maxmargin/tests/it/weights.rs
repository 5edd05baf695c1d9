//! A row of weight k equals k copies of the row, and a row of weight 0 equals no row, to double precision.

use crate::made::{Numbers, fit};
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Outcome, Pairs, Targets};
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::settings::{ClassifySettings, Method, RankSettings, Regularisation, Settings, Task};
use maxmargin::task::{ClassWeight, Intercept, PairWeight};

/// Rows of groups, each with its weight: 0, 1, 2 or 3.
struct Rows {
    values: Vec<Vec<f64>>,
    targets: Vec<f64>,
    groups: Vec<usize>,
    weights: Vec<usize>,
}

impl Rows {
    /// Random rows, some of them copies of others, with targets from 0 to `levels` − 1. On a coarse grid, many rows lie
    /// on the same margins.
    fn new(groups: usize, size: usize, cols: usize, levels: usize, grid: bool, seed: u64) -> Rows {
        let mut numbers = Numbers::new(seed);
        let mut rows = Rows { values: vec![], targets: vec![], groups: vec![], weights: vec![] };
        for row in 0..groups * size {
            let values: Vec<f64> = if row > 3 && numbers.next() < 0.2 {
                rows.values[(numbers.next() * row as f64) as usize].clone()
            } else {
                let fine: Vec<f64> = (0..cols).map(|_| 4.0 * numbers.next() - 2.0).collect();
                fine.into_iter().map(|value| if grid { value.round() } else { value }).collect()
            };
            let score: f64 = values.iter().sum::<f64>() / cols as f64 + 2.0 * numbers.next() + 1.0;
            rows.targets.push((score / 4.0 * levels as f64).floor().clamp(0.0, levels as f64 - 1.0));
            rows.values.push(values);
            rows.groups.push(row / size);
            rows.weights.push((numbers.next() * 4.0) as usize);
        }
        // Every level has at least one row with positive weight.
        for level in 0..levels.min(2) {
            rows.targets[level] = level as f64;
            rows.weights[level] = 2;
        }
        rows
    }

    fn data(&self, order: &[usize]) -> Dataset {
        let values: Vec<f64> = order.iter().flat_map(|&row| self.values[row].clone()).collect();
        let matrix = Matrix::DenseF64(Dense::new(values, order.len(), self.values[0].len()).unwrap());
        let targets: Vec<f64> = order.iter().map(|&row| self.targets[row]).collect();
        let (mut starts, mut names) = (vec![0], vec![]);
        for (at, &row) in order.iter().enumerate() {
            if at == 0 || self.groups[row] != self.groups[order[at - 1]] {
                starts.extend((at > 0).then_some(at as u64));
                names.push(self.groups[row].to_string());
            }
        }
        starts.push(order.len() as u64);
        let groups = Groups::new(starts, names.into_iter().collect::<Names>()).unwrap();
        Dataset::new(matrix, Targets::Real(targets.into())).unwrap().with_groups(groups).unwrap()
    }

    fn plain(&self) -> Dataset {
        self.data(&(0..self.values.len()).collect::<Vec<_>>())
    }

    fn weighted(&self) -> Dataset {
        self.plain().with_weights(self.weights.iter().map(|&weight| weight as f64).collect::<Vec<_>>()).unwrap()
    }

    fn repeated(&self) -> Dataset {
        let order: Vec<usize> = (0..self.values.len()).flat_map(|row| vec![row; self.weights[row]]).collect();
        self.data(&order)
    }
}

/// The largest difference of scores, relative to the largest score.
fn apart(one: &Model, other: &Model, data: &Dataset) -> f64 {
    let (one, other) = (one.scores(data).unwrap(), other.scores(data).unwrap());
    let size = one.iter().fold(1e-3f64, |size, score| size.max(score.abs()));
    one.iter().zip(&other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max) / size
}

/// Trains on both, and checks that the results agree, are polished and can be verified.
fn agree(weighted: &Dataset, repeated: &Dataset, rows: &Dataset, settings: &Settings, polished: bool) {
    let (one, other) = (fit(weighted, settings), fit(repeated, settings));
    let what = format!(
        "{} {} {:?} {:?} {:?} of {} rows",
        settings.task.name(),
        settings.loss.name(),
        settings.free(),
        settings.kernel.kind,
        settings.regularisation,
        weighted.rows(),
    );
    for (trained, data) in [(&one, weighted), (&other, repeated)] {
        let certificate = &trained.model.certificate;
        assert!(certificate.converged, "{what}");
        assert_eq!(trained.model.settings.tolerance, settings.tolerance);
        let gap = certificate.gap().unwrap();
        assert!(gap <= if polished { 1e-12 } else { settings.tolerance }, "{what}: {gap:e}");
        let found = trained.model.verify(data).unwrap();
        assert!(found.unproved.is_none(), "{what}");
        assert!(!polished || found.gap().unwrap() <= 1e-11, "{what}: {:e}", found.gap().unwrap());
    }
    let (first, second) = (one.model.certificate.objective, other.model.certificate.objective);
    let close = if polished { 1e-11 } else { 2.0 * settings.tolerance };
    assert!((first - second).abs() <= close * first.abs(), "{what}: {first} {second}");
    if polished {
        let apart = apart(&one.model, &other.model, rows);
        assert!(apart <= 1e-9, "{what}: {apart:e}");
        // A threshold chosen after the scores jumps if differences are equal up to rounding.
        let learned = |model: &Model| model.decoder.threshold().filter(|_| settings.method() == Some(Method::Compare));
        if let (Some(first), Some(second)) = (learned(&one.model), learned(&other.model)) {
            assert!((first - second).abs() <= 1e-9 * first.abs().max(1.0), "{what}: {first} {second}");
        }
    }
}

fn gaussian() -> KernelSettings {
    KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.4), ..KernelSettings::default() }
}

#[test]
fn a_classifier_takes_weights_as_repetition() {
    for seed in 1..25 {
        let (rows, cols) = (if seed % 4 == 0 { 12 } else { 40 }, 1 + seed as usize % 5);
        let rows = Rows::new(1, rows, cols, 2, seed % 2 == 0, seed);
        for loss in [Loss::Hinge, Loss::SquaredHinge, Loss::Logistic] {
            for intercept in [Intercept::Free, Intercept::Penalised, Intercept::None] {
                for kernel in [KernelSettings::default(), gaussian()] {
                    if loss == Loss::Logistic && kernel.is_exact() {
                        continue;
                    }
                    let c = [0.02, 1.0, 30.0][seed as usize % 3];
                    let class_weight = if seed % 5 == 0 { ClassWeight::Balanced } else { ClassWeight::Equal };
                    let task = ClassifySettings { intercept, class_weight, ..Default::default() };
                    let regularisation = Regularisation::C(c);
                    let settings = Settings { loss, kernel, regularisation, ..Settings::of(task) };
                    agree(&rows.weighted(), &rows.repeated(), &rows.plain(), &settings, true);
                }
            }
        }
    }
}

#[test]
fn with_more_features_than_newton_takes_they_are_the_same_too() {
    let rows = Rows::new(1, 60, 600, 2, false, 9);
    for loss in [Loss::Hinge, Loss::SquaredHinge, Loss::Logistic] {
        for intercept in [Intercept::Free, Intercept::Penalised, Intercept::None] {
            let settings = Settings {
                loss,
                regularisation: Regularisation::C(1e-2),
                ..Settings::new(Task::Classify).with_free(intercept)
            };
            agree(&rows.weighted(), &rows.repeated(), &rows.plain(), &settings, true);
        }
    }
}

#[test]
fn where_every_row_costs_its_all_the_threshold_is_the_middle_of_the_best() {
    // With such a small cost, all multipliers are at their limit, and any threshold between the class means is optimal.
    let rows = Rows {
        values: vec![vec![-1.0], vec![-0.5], vec![0.75], vec![2.0]],
        targets: vec![0.0, 0.0, 1.0, 1.0],
        groups: vec![0; 4],
        weights: vec![2, 1, 1, 2],
    };
    let settings = Settings { regularisation: Regularisation::C(1e-3), ..Settings::new(Task::Classify) };
    for kernel in [KernelSettings::default(), gaussian()] {
        let settings = Settings { kernel, ..settings.clone() };
        agree(&rows.weighted(), &rows.repeated(), &rows.plain(), &settings, true);
        let scores = fit(&rows.weighted(), &settings).model.scores(&rows.plain()).unwrap();
        let (low, high) =
            (scores.iter().copied().fold(f64::INFINITY, f64::min), scores.iter().copied().fold(0.0, f64::max));
        assert!((low + high).abs() < 1e-12, "{low} {high}");
    }
}

/// Compared rows, with weighted and with repeated pairs.
fn compared(seed: u64, cols: usize, grid: bool) -> (Dataset, Dataset, Dataset) {
    let rows = Rows::new(1, 30, cols, 4, grid, seed).plain();
    let targets = rows.targets().real().unwrap().to_vec();
    let mut numbers = Numbers::new(seed + 100);
    let (mut listed, mut weights) = (vec![], vec![]);
    for _ in 0..60 {
        let mut draw = || (numbers.next() * 30.0) as usize;
        let (left, right) = (draw(), draw());
        if left == right {
            continue;
        }
        let outcome = match targets[left].total_cmp(&targets[right]) {
            std::cmp::Ordering::Greater => Outcome::Left,
            std::cmp::Ordering::Less => Outcome::Right,
            std::cmp::Ordering::Equal => Outcome::Tie,
        };
        listed.push((left as u32, right as u32, outcome));
        weights.push((numbers.next() * 4.0) as usize);
    }
    let pairs = |order: &[usize]| {
        let of = |pair: &usize| listed[*pair];
        let (left, right): (Vec<u32>, Vec<u32>) = order.iter().map(of).map(|(a, b, _)| (a, b)).unzip();
        let outcomes: Vec<Outcome> = order.iter().map(of).map(|pair| pair.2).collect();
        Pairs::new(left, right).unwrap().with_outcomes(outcomes).unwrap()
    };
    let all: Vec<usize> = (0..listed.len()).collect();
    let each: Vec<usize> = all.iter().flat_map(|&pair| vec![pair; weights[pair]]).collect();
    let weighted = pairs(&all).with_weights(weights.iter().map(|&w| w as f64).collect::<Vec<_>>()).unwrap();
    let with = |pairs: Pairs| rows.clone().with_pairs(pairs).unwrap();
    (with(weighted), with(pairs(&each)), rows)
}

#[test]
fn comparisons_take_weights_of_pairs_as_repetition() {
    for seed in 1..9 {
        let (weighted, repeated, rows) = compared(seed, 2 + seed as usize % 3, seed % 2 == 0);
        for method in [Method::Compare, Method::Rank, Method::Rank2] {
            for loss in [Loss::Hinge, Loss::SquaredHinge, Loss::Logistic] {
                for kernel in [KernelSettings::default(), gaussian()] {
                    if loss == Loss::Logistic && (kernel.is_exact() || method == Method::Rank2) {
                        continue;
                    }
                    let settings = Settings { loss, kernel, ..Settings::new(Task::Compare).with_method(method) };
                    agree(&weighted, &repeated, &rows, &settings, true);
                }
            }
        }
    }
}

#[test]
fn a_ranker_takes_weights_as_repetition() {
    for seed in 1..9 {
        let mut rows = Rows::new(5, 8, 1 + seed as usize % 4, 3, seed % 2 == 0, seed);
        // A group without weight, and one in which only a single grade has weight.
        for row in 0..40 {
            if rows.groups[row] == 2 || (rows.groups[row] == 3 && rows.targets[row] > 0.0) {
                rows.weights[row] = 0;
            }
        }
        for pair_weight in PairWeight::ALL {
            for (loss, kernel) in [
                (Loss::SquaredHinge, KernelSettings::default()),
                (Loss::SquaredHinge, gaussian()),
                (Loss::Hinge, KernelSettings::default()),
            ] {
                let task = RankSettings { pair_weight, ..Default::default() };
                let settings = Settings { loss, kernel, ..Settings::of(task) };
                agree(&rows.weighted(), &rows.repeated(), &rows.plain(), &settings, loss != Loss::Hinge);
            }
        }
    }
}

#[test]
fn threads_change_no_byte_of_a_polished_model() {
    let rows = Rows::new(1, 50, 3, 2, true, 5);
    let bytes = |settings: &Settings, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&rows.weighted(), settings).model.to_bytes().unwrap())
    };
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        for kernel in [KernelSettings::default(), gaussian()] {
            let settings = Settings { loss, kernel, ..Settings::new(Task::Classify) };
            assert!(bytes(&settings, 1) == bytes(&settings, 2));
        }
    }
}
