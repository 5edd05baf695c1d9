//! Trees from data to model: the objective against a list of trees, certificates, bytes, held-out sentences.

use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Subset, Targets, complement, folds};
use maxmargin::error::Code;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model, Predictions};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Regularisation, Settings, Solver, Task, TreeSettings};
use maxmargin::structured::{Grammar, LossScale, Plane, Scores, Structure, Trees};
use maxmargin::testing::check_structure;
use maxmargin::train::train;

/// All trees that the grammar below makes of three words: which two words are a phrase, and what it is called.
const SHAPES: [[&str; 3]; 5] = [
    ["(S(X(a*)", "(b*))", "(c*))"],
    ["(S(a*)", "(X(b*)", "(c*)))"],
    ["(S(Y(a*)", "(b*))", "(c*))"],
    ["(S(a*)", "(Y(b*)", "(c*)))"],
    ["(S(a*)", "(b*)", "(Z(c*)))"],
];

/// Sentences of three words. The features of the second word tell the shape, though not quite.
fn sentences(count: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let pieces: Vec<&str> = SHAPES.iter().flatten().copied().collect();
    let (mut values, mut codes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let shape = (5.0 * numbers.next()) as usize;
        for word in 0..3 {
            values.extend((0..5).map(|column| {
                let told = f64::from(u8::from(word == 1 && column == shape));
                told + 1.2 * (numbers.next() - 0.5)
            }));
            codes.push((3 * shape + word) as u32);
        }
    }
    let matrix = Matrix::DenseF64(Dense::new(values, 3 * count, 5).expect("whole rows"));
    let targets = Targets::Labels { names: pieces.into_iter().collect(), codes: codes.into() };
    let starts: Vec<u64> = (0..=count as u64).map(|sentence| 3 * sentence).collect();
    let names: Names = (0..count).map(|sentence| format!("s{sentence}")).collect();
    let data = Dataset::new(matrix, targets).expect("valid");
    data.with_groups(Groups::new(starts, names).expect("rising")).expect("valid")
}

fn settings(c: f64, loss_scale: LossScale) -> Settings {
    let usual = Settings::of(TreeSettings { loss_scale, ..TreeSettings::default() });
    Settings { regularisation: Regularisation::C(c), tolerance: 1e-5, ..usual }
}

fn trained(data: &Dataset, settings: &Settings) -> Model {
    train(data, settings, None, &mut Silent, &Cancel::new()).expect("trains").model
}

/// All derivations of a span with this symbol at the top, by the definition.
fn all(grammar: &Grammar, words: usize, outer: u32) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    let tops = grammar.unary().iter().zip(1..).filter(|(rule, _)| rule.top == outer);
    for (inner, unary) in [(outer, 0)].into_iter().chain(tops.map(|(rule, number)| (rule.bottom, number))) {
        if words == 1 && (inner as usize) < grammar.tags().len() {
            found.push(vec![unary, inner]);
        }
        for (rule, &[parent, left, right]) in grammar.binary().iter().enumerate() {
            for split in (1..words).filter(|_| parent == inner) {
                for left in all(grammar, split, left) {
                    for right in all(grammar, words - split, right) {
                        found.push([&[unary, rule as u32, split as u32], &left[..], &right].concat());
                    }
                }
            }
        }
    }
    found
}

/// The objective of a model from the planes of all trees of the grammar.
fn objective(model: &Model, data: &Dataset, c: f64, scale: LossScale) -> f64 {
    let Decoder::Tree { shared, .. } = &model.decoder else { panic!("no trees") };
    let weights = model.scorer.weights().expect("weights");
    let squares: f64 = weights.iter().chain(shared).map(|weight| weight * weight).sum();
    let scores = model.scores(data).expect("scores");
    let trees = Trees::on(data, TreeSettings::default().markov(), scale, None).expect("trees");
    let outputs = trees.outputs();
    let grammar = trees.grammar();
    let all: Vec<Vec<u32>> = grammar.roots().iter().flat_map(|&root| all(grammar, 3, root)).collect();
    assert!(all.len() > SHAPES.len(), "{all:?}");
    assert!(trees.derivations().all(|(_, own)| all.iter().any(|other| other == own)), "{all:?}");
    let mut plane = Plane::default();
    let losses: f64 = (0..trees.examples())
        .map(|example| {
            let rows = trees.rows(example);
            let at = Scores { rows: &scores[rows.start * outputs..rows.end * outputs], shared };
            let mut value = |own: &Vec<u32>| {
                trees.plane(example, own, &mut plane).expect("a tree");
                plane.value(at)
            };
            all.iter().map(&mut value).fold(0.0, f64::max)
        })
        .sum();
    0.5 * squares + c * losses
}

#[test]
fn the_objective_is_that_of_the_definition_and_solvers_agree() {
    let data = sentences(40, 3);
    for (c, scale) in [(0.05, LossScale::Token), (1.0, LossScale::Length)] {
        let mut found = Vec::new();
        for solver in [Solver::Auto, Solver::NSlack, Solver::CuttingPlane] {
            let settings = Settings { solver, max_passes: 3000, ..settings(c, scale) };
            let model = trained(&data, &settings);
            let certificate = &model.certificate;
            assert!(certificate.converged && certificate.constraints == 40, "{solver:?}: {certificate:?}");
            let own = objective(&model, &data, c, scale);
            assert!((own - certificate.objective).abs() < 1e-9 * own, "{solver:?} {own} {certificate:?}");
            found.push((certificate.lower_bound.expect("a bound"), certificate.objective));
            let bytes = model.to_bytes().expect("bytes");
            let loaded = Model::from_bytes(&bytes).expect("loads");
            assert_eq!(loaded.to_bytes().expect("bytes"), bytes);
            assert_eq!(loaded.predict(&data).expect("trees"), model.predict(&data).expect("trees"));
            loaded.verify(&data).expect("the certificate holds");
        }
        let highest = found.iter().map(|own| own.0).fold(0.0, f64::max);
        let lowest = found.iter().map(|own| own.1).fold(f64::INFINITY, f64::min);
        assert!(highest <= lowest * (1.0 + 1e-9), "{found:?}");
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let data = sentences(60, 6);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| trained(&data, &settings(0.3, LossScale::Token)).to_bytes().expect("bytes"))
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn altered_weights_of_rules_do_not_verify() {
    let data = sentences(30, 8);
    let model = trained(&data, &settings(0.5, LossScale::Token));
    let mut altered = model.clone();
    if let Decoder::Tree { shared, .. } = &mut altered.decoder {
        shared[0] += 0.5;
    }
    assert!(altered.verify(&data).is_err());
    let mut cut = model;
    if let Decoder::Tree { shared, .. } = &mut cut.decoder {
        shared.pop();
    }
    assert!(cut.to_bytes().is_err());
}

#[test]
fn folds_learn_only_the_rules_of_their_own_sentences() {
    let data = sentences(40, 9);
    let folds = folds(&data, 4, 1).expect("folds");
    let part = Subset::without(&folds[0], data.rows());
    let trees = Trees::on(&data, TreeSettings::default().markov(), LossScale::Token, Some(&part)).expect("trees");
    check_structure(&trees).expect("sound");
    assert_eq!(trees.derivations().count(), 30);
    let rest = data.subset(&complement(&folds[0], data.rows())).expect("the others");
    let same = Trees::on(&rest, TreeSettings::default().markov(), LossScale::Token, None).expect("trees");
    assert_eq!(same.grammar(), trees.grammar());
    let usual = Settings { tolerance: 1e-3, ..Settings::new(Task::Tree) };
    let grid = Grid::of(vec![0.01, 1.0]).expect("values");
    let search = CrossValidation { folds: 4, seed: 1, metrics: vec![Metric::LabelledF1] };
    let tuned = search.run(&data, &grid.candidates(&usual), &mut Silent, &Cancel::new()).expect("tunes");
    let model = tuned.refit(tuned.best, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
    model.verify(&data).expect("the certificate holds");
}

#[test]
fn rows_without_sentences_or_trees_are_refused() {
    let data = sentences(10, 1);
    let bare = Dataset::new(data.matrix().clone(), data.targets().clone()).expect("valid");
    let asked = |data: &Dataset| {
        let usual = Settings::new(Task::Tree);
        train(data, &usual, None, &mut Silent, &Cancel::new()).expect_err("refused").code()
    };
    assert_eq!(asked(&bare), Code::NoGroups);
    let numbers = Dataset::new(data.matrix().clone(), Targets::Real(vec![1.0; data.rows()].into())).expect("valid");
    let numbers = numbers.with_groups(data.groups().expect("groups").clone()).expect("valid");
    assert_eq!(asked(&numbers), Code::BadTree);
}

#[test]
fn predictions_are_trees_and_metrics_compare_them() {
    let (data, other) = (sentences(80, 10), sentences(40, 11));
    let model = trained(&data, &settings(1.0, LossScale::Token));
    let answers = Answers::new(&model, &other).expect("answers");
    let value = |metric: Metric| answers.evaluate(&metric).expect("defined").value;
    assert!(value(Metric::LabelledF1) > 0.7 && value(Metric::ExactMatch) > 0.5 && value(Metric::TagAccuracy) > 0.8);
    let Predictions::Trees { unparsed, codes, .. } = model.predict(&other).expect("trees") else { panic!("no trees") };
    assert_eq!((unparsed, codes.len()), (0, 120));
}
