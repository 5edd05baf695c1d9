//! Streams whose rows are scaled by the rows so far.

use maxmargin::data::{Csr, Dataset, Dense, Groups, Matrix, Pairs, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::model::Model;
use maxmargin::settings::{Choice, Chosen, Settings, Task};
use maxmargin::stream::{Learner, learner};
use std::ops::Range;

const ROWS: usize = 240;
const COLS: usize = 4;

/// Rows whose features have very different sizes; about a third of the cells are zero.
fn cells() -> Vec<Vec<f64>> {
    let mut state = 3u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut row = || -> Vec<f64> {
        let sizes = [1.0, 100.0, 0.01, 7.0];
        sizes.iter().map(|size| if next() < 0.3 { 0.0 } else { size * (next() + 0.5) }).collect()
    };
    (0..ROWS).map(|_| row()).collect()
}

fn matrix(rows: &[Vec<f64>], dense: bool) -> Matrix {
    if dense {
        return Matrix::DenseF64(Dense::new(rows.concat(), rows.len(), COLS).unwrap());
    }
    let (mut starts, mut indices, mut values) = (vec![0u64], Vec::new(), Vec::new());
    for row in rows {
        row.iter().enumerate().filter(|(_, value)| **value != 0.0).for_each(|(column, value)| {
            indices.push(column as u16);
            values.push(*value);
        });
        starts.push(values.len() as u64);
    }
    Matrix::Csr16F64(Csr::new(starts, indices, values, COLS).unwrap())
}

/// Every row with the moments of the rows up to the end of its example, by the definition. Sparse rows are not shifted.
fn by_hand(rows: &[Vec<f64>], examples: &[Range<usize>], dense: bool) -> Vec<Vec<f64>> {
    let mut scaled = Vec::new();
    for example in examples {
        let n = example.end as f64;
        for row in example.clone() {
            let cell = |column: usize| {
                let mean = rows[..example.end].iter().map(|row| row[column]).sum::<f64>() / n;
                let squares = rows[..example.end].iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>();
                let deviation = (squares / n).sqrt();
                let centred = rows[row][column] - if dense { mean } else { 0.0 };
                if deviation <= 1e-12 * mean.abs() { 0.0 } else { centred / deviation }
            };
            scaled.push((0..COLS).map(cell).collect());
        }
    }
    scaled
}

/// The examples of a task over a matrix, and the rows of each.
fn data(task: Task, pairs: bool, matrix: Matrix) -> (Dataset, Vec<Range<usize>>) {
    let score = |row: usize| cells()[row][0] + 0.01 * cells()[row][1] - 100.0 * cells()[row][2];
    let grade = |row: usize| [-0.6, 0.1, 0.6].iter().filter(|cut| score(row) > **cut).count();
    let singles: Vec<Range<usize>> = (0..ROWS).map(|row| row..row + 1).collect();
    if pairs {
        let better = |row: usize| row + usize::from(score(row) < score(row + 1));
        let left: Vec<u32> = (0..ROWS / 2).map(|pair| better(2 * pair) as u32).collect();
        let right: Vec<u32> = left.iter().map(|row| row ^ 1).collect();
        let data = Dataset::new(matrix, Targets::Absent).unwrap().with_pairs(Pairs::new(left, right).unwrap()).unwrap();
        return (data, (0..ROWS / 2).map(|pair| 2 * pair..2 * pair + 2).collect());
    }
    let targets: Vec<f64> = (0..ROWS).map(|row| grade(row) as f64).collect();
    match task {
        Task::Multilabel => {
            let names = ["a", "b", "c"].into_iter().collect();
            let (mut starts, mut codes) = (vec![0u64], Vec::new());
            (0..ROWS).for_each(|row| {
                codes.extend(0..grade(row).min(2) as u32 + 1);
                starts.push(codes.len() as u64);
            });
            let targets = Targets::Sets { names, starts: starts.into(), codes: codes.into() };
            (Dataset::new(matrix, targets).unwrap(), singles)
        }
        Task::Rank => {
            let starts: Vec<u64> = (0..=ROWS as u64 / 6).map(|list| 6 * list).collect();
            let names = (0..ROWS / 6).map(|list| format!("q{list}")).collect();
            let groups = Groups::new(starts, names).unwrap();
            let data = Dataset::new(matrix, Targets::Real(targets.into())).unwrap().with_groups(groups).unwrap();
            (data, (0..ROWS / 6).map(|list| 6 * list..6 * list + 6).collect())
        }
        _ => (Dataset::new(matrix, Targets::Real(targets.into())).unwrap(), singles),
    }
}

fn settings(task: Task, chosen: &[(&str, &str)], scale: Scale) -> Settings {
    let choice = |value: &str| value.parse().map_or_else(|_| Choice::Text(value.to_string()), Choice::Number);
    let mut all: Chosen = chosen.iter().map(|(name, value)| (name.to_string(), choice(value))).collect();
    all.insert("scale".to_string(), Choice::Text(scale.name().to_string()));
    Settings::streamed(task, &all, None).unwrap()
}

fn model(learner: &dyn Learner, settings: &Settings) -> Model {
    Model::from_bytes(&learner.model(settings, None, None).unwrap().to_bytes().unwrap()).unwrap()
}

/// A task, whether it learns from pairs, and settings.
type Case = (Task, bool, &'static [(&'static str, &'static str)]);

const CASES: [Case; 9] = [
    (Task::Classify, false, &[("rate", "0.1")]),
    (Task::Classify, false, &[("solver", "pegasos"), ("multiclass", "one-vs-rest")]),
    (Task::Classify, false, &[("solver", "pa")]),
    (Task::Ordinal, false, &[]),
    (Task::Multilabel, false, &[]),
    (Task::Rank, false, &[("rate", "0.1")]),
    (Task::Rank, true, &[("solver", "passive-aggressive")]),
    (Task::Rank, true, &[]),
    (Task::Compare, true, &[]),
];

#[test]
fn every_task_learns_from_rows_as_they_are_scaled_by_hand() {
    for (task, pairs, chosen) in CASES {
        for dense in [true, false] {
            let rows = cells();
            let (raw, examples) = data(task, pairs, matrix(&rows, dense));
            let scaled = by_hand(&rows, &examples, dense);
            let (by_hand, _) = data(task, pairs, matrix(&scaled, dense));
            let (own, plain) = (settings(task, chosen, Scale::Standard), settings(task, chosen, Scale::None));
            let (mut scaling, mut inner) = (learner(&own, None).unwrap(), learner(&plain, None).unwrap());
            scaling.learn(&raw, 0..examples.len()).unwrap();
            inner.learn(&by_hand, 0..examples.len()).unwrap();
            let (found, wanted) = (model(&*scaling, &own), model(&*inner, &plain));
            let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
            let weights = |model: &Model| model.scorer.weights().unwrap().to_vec();
            assert!(close(&weights(&found), &weights(&wanted)), "{task:?} {chosen:?} {dense}");
            assert!(weights(&found).iter().any(|w| *w != 0.0));
            assert_eq!(found.scaling.kind(), Scale::Standard);
            assert_eq!(found.scaling.shift().is_some(), dense);
            // The model scores raw rows: those of the last example as the learner saw them.
            let last = examples.last().unwrap().clone();
            let (own, other) = (found.scores(&raw).unwrap(), wanted.scores(&by_hand).unwrap());
            let outputs = found.scorer.outputs();
            let last = last.start * outputs..last.end * outputs;
            assert!(close(&own[last.clone()], &other[last]), "{task:?} {chosen:?} {dense}");
        }
    }
}

#[test]
fn a_stream_that_is_saved_and_continued_has_the_same_bytes() {
    for (task, pairs, chosen) in CASES {
        for dense in [true, false] {
            let (raw, examples) = data(task, pairs, matrix(&cells(), dense));
            // A first rate is found on later examples, so that it is given here.
            let chosen: Vec<(&str, &str)> = match chosen {
                [] if task != Task::Multilabel && task != Task::Compare => vec![("rate", "0.1")],
                given => given.to_vec(),
            };
            let own = settings(task, &chosen, Scale::Standard);
            let mut whole = learner(&own, None).unwrap();
            whole.learn(&raw, 0..examples.len()).unwrap();
            let mut parts = learner(&own, None).unwrap();
            for range in [0..9, 9..10, 10..25, 25..examples.len()] {
                parts.learn(&raw, range).unwrap();
                let saved = model(&*parts, &own);
                parts = learner(&own, Some(&saved)).unwrap();
            }
            let bytes = |learner: &dyn Learner| learner.model(&own, None, None).unwrap().to_bytes().unwrap();
            assert!(bytes(&*whole) == bytes(&*parts), "{task:?} {chosen:?} {dense}");
        }
    }
}

#[test]
fn rows_that_are_only_looked_at_are_not_counted() {
    // The first rate is found on all rows, and the first call learns from ten of them.
    let (raw, _) = data(Task::Classify, false, matrix(&cells(), true));
    let own = settings(Task::Classify, &[], Scale::Standard);
    let (mut whole, mut parts) = (learner(&own, None).unwrap(), learner(&own, None).unwrap());
    whole.learn(&raw, 0..ROWS).unwrap();
    parts.learn(&raw, 0..10).unwrap();
    parts.learn(&raw, 10..ROWS).unwrap();
    let bytes = |learner: &dyn Learner| learner.model(&own, None, None).unwrap().to_bytes().unwrap();
    assert!(bytes(&*whole) == bytes(&*parts));
}

#[test]
fn other_settings_continue_with_the_moments_and_other_models_have_none() {
    let (raw, examples) = data(Task::Classify, false, matrix(&cells(), false));
    let own = settings(Task::Classify, &[("rate", "0.1")], Scale::Standard);
    let mut first = learner(&own, None).unwrap();
    first.learn(&raw, 0..examples.len()).unwrap();
    let saved = model(&*first, &own);
    let other = settings(Task::Classify, &[("rate", "0.01")], Scale::Standard);
    let mut second = learner(&other, Some(&saved)).unwrap();
    assert_eq!((second.seen(), second.features()), (0, COLS));
    second.learn(&raw, 0..1).unwrap();
    let counts = |model: &Model| model.online.as_ref().unwrap().counts("scale-rows").unwrap().to_vec();
    assert_eq!(counts(&model(&*second, &other)), [ROWS as u64 + 1, 0]);

    let plain = settings(Task::Classify, &[("rate", "0.1")], Scale::None);
    let mut bare = learner(&plain, None).unwrap();
    bare.learn(&raw, 0..examples.len()).unwrap();
    let error = learner(&own, Some(&model(&*bare, &plain))).err().unwrap();
    assert!(error.code() == Code::BadSetting && error.message().contains("no running means"), "{error}");
    // Without the setting, the scaling would be multiplied into the weights, and several classes have no such form.
    assert_eq!(learner(&plain, Some(&saved)).err().unwrap().code(), Code::BadSetting);
    let min_max = Settings { scale: Scale::MinMax, ..plain };
    let error = learner(&min_max, None).err().unwrap();
    assert!(error.code() == Code::BadSetting && error.message().contains("has not seen yet"), "{error}");

    let mut damaged = saved.clone();
    damaged.online.as_mut().unwrap().put_counts("scale-rows", vec![1, 0]);
    assert!(damaged.to_bytes().is_err());
    let mut moved = saved;
    moved.online.as_mut().unwrap().put_counts("scale-rows", vec![ROWS as u64 + 1, 0]);
    assert_eq!(learner(&own, Some(&moved)).err().unwrap().code(), Code::DamagedModel);
}
