//! Sequences from data to model: the objective against a list of all sequences of tags, certificates, bytes, held-out
//! sequences, tags that the model does not know.

use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Targets, complement, folds};
use maxmargin::error::Code;
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Regularisation, SequenceSettings, Settings, Solver, Task};
use maxmargin::structured::LossScale;
use maxmargin::train::train;

/// Sequences of the tags B-X, I-X and O, whose features alone do not tell them apart.
fn sequences(count: usize, seed: u64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let (mut values, mut codes, mut starts) = (Vec::new(), Vec::new(), vec![0u64]);
    for _ in 0..count {
        let mut tag = 2;
        for _ in 0..1 + (5.0 * numbers.next()) as usize {
            let next = numbers.next();
            tag = match tag {
                2 if next < 0.5 => 0,
                0 | 1 if next < 0.6 => 1,
                _ => 2,
            };
            values.extend((0..3).map(|column| f64::from(u8::from(column == tag)) + 2.0 * (numbers.next() - 0.5)));
            codes.push(tag);
        }
        starts.push(codes.len() as u64);
    }
    let rows = codes.len();
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 3).expect("whole rows"));
    let names: Names = (0..count).map(|group| format!("s{group}")).collect();
    let tags: Names = ["B-X", "I-X", "O"].into_iter().collect();
    let targets =
        Targets::Labels { names: tags, codes: codes.into_iter().map(|code| code as u32).collect::<Vec<_>>().into() };
    let data = Dataset::new(matrix, targets).expect("valid");
    data.with_groups(Groups::new(starts, names).expect("rising")).expect("valid")
}

fn settings(c: f64, loss_scale: LossScale) -> Settings {
    let usual = Settings::of(SequenceSettings { loss_scale });
    Settings { regularisation: Regularisation::C(c), tolerance: 1e-5, ..usual }
}

fn trained(data: &Dataset, settings: &Settings) -> Model {
    train(data, settings, None, &mut Silent, &Cancel::new()).expect("trains").model
}

/// The objective of a model by its definition, over all sequences of tags.
fn objective(model: &Model, data: &Dataset, c: f64, scale: LossScale) -> f64 {
    let Decoder::Sequence { shared, tags } = &model.decoder else { panic!("no sequence") };
    let count = tags.len();
    let weights = model.scorer.weights().expect("weights");
    let squares: f64 = weights.iter().chain(shared).map(|weight| weight * weight).sum();
    let scores = model.scores(data).expect("scores");
    let truth = tags.codes(data.targets()).expect("known");
    let value = |rows: &std::ops::Range<usize>, own: &[u32]| {
        let own: Vec<usize> = own.iter().map(|&tag| tag as usize).collect();
        let mut sum = shared[count + own[0]] + shared[2 * count + own[own.len() - 1]];
        for (row, &tag) in rows.clone().zip(&own) {
            sum += scores[row * count + tag] + shared[tag];
        }
        sum + own.windows(2).map(|pair| shared[3 * count + pair[0] * count + pair[1]]).sum::<f64>()
    };
    let mut losses = 0.0;
    for rows in data.groups().expect("groups").ranges() {
        let right = &truth[rows.clone()];
        let own_score = value(&rows, right);
        let (mut worst, mut own) = (0.0f64, vec![0u32; rows.len()]);
        loop {
            let wrong = own.iter().zip(right).filter(|(a, b)| a != b).count() as f64;
            let loss = if scale == LossScale::Token { wrong } else { wrong / rows.len() as f64 };
            worst = worst.max(loss + value(&rows, &own) - own_score);
            let Some(place) = own.iter().rposition(|tag| (*tag as usize) + 1 < count) else { break };
            own[place] += 1;
            own[place + 1..].fill(0);
        }
        losses += worst;
    }
    0.5 * squares + c * losses
}

#[test]
fn the_objective_is_that_of_the_definition_and_solvers_agree() {
    let data = sequences(60, 3);
    for (c, scale) in [(0.05, LossScale::Token), (1.0, LossScale::Length)] {
        let mut found = Vec::new();
        for solver in [Solver::Auto, Solver::NSlack, Solver::CuttingPlane] {
            let settings = Settings { solver, max_passes: 3000, ..settings(c, scale) };
            let model = trained(&data, &settings);
            let certificate = &model.certificate;
            assert!(certificate.converged && certificate.constraints == 60, "{solver:?}: {certificate:?}");
            let own = objective(&model, &data, c, scale);
            assert!((own - certificate.objective).abs() < 1e-9 * own, "{solver:?} {own} {certificate:?}");
            found.push((certificate.lower_bound.expect("a bound"), certificate.objective));
            let bytes = model.to_bytes().expect("bytes");
            let loaded = Model::from_bytes(&bytes).expect("loads");
            assert_eq!(loaded.to_bytes().expect("bytes"), bytes);
            assert_eq!(loaded.predict(&data).expect("tags"), model.predict(&data).expect("tags"));
            loaded.verify(&data).expect("the certificate holds");
        }
        let highest = found.iter().map(|own| own.0).fold(0.0, f64::max);
        let lowest = found.iter().map(|own| own.1).fold(f64::INFINITY, f64::min);
        assert!(highest <= lowest * (1.0 + 1e-9), "{found:?}");
    }
}

#[test]
fn lambda_is_the_mean_form() {
    let data = sequences(40, 4);
    let by_c = trained(&data, &settings(0.5, LossScale::Length));
    let mean =
        Settings { regularisation: Regularisation::Lambda(1.0 / (0.5 * 40.0)), ..settings(1.0, LossScale::Length) };
    let by_lambda = trained(&data, &mean);
    assert!((by_c.certificate.objective - by_lambda.certificate.objective).abs() < 1e-4 * by_c.certificate.objective);
    assert!((by_lambda.certificate.c - 0.5).abs() < 1e-12);
}

#[test]
fn threads_and_names_of_sequences_do_not_change_a_byte() {
    let data = sequences(150, 6);
    let bytes = |threads: usize, data: &Dataset| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| trained(data, &settings(0.3, LossScale::Token)).to_bytes().expect("bytes"))
    };
    let one = bytes(1, &data);
    assert_eq!(one, bytes(3, &data));
    let starts = data.groups().expect("groups").starts().to_vec();
    let names: Names = (0..starts.len() - 1).map(|group| format!("other{group}")).collect();
    let renamed = data.with_groups(Groups::new(starts, names).expect("rising")).expect("valid");
    assert_eq!(one, bytes(2, &renamed));
}

#[test]
fn altered_weights_of_transitions_do_not_verify() {
    let data = sequences(30, 8);
    let model = trained(&data, &settings(0.5, LossScale::Token));
    for place in [0, 4, 7, 12] {
        let mut altered = model.clone();
        if let Decoder::Sequence { shared, .. } = &mut altered.decoder {
            shared[place] += 0.5;
        }
        let error = altered.verify(&data).expect_err("altered");
        assert_eq!(error.code(), Code::CertificateMismatch, "{place}");
    }
    let mut cut = model;
    if let Decoder::Sequence { shared, .. } = &mut cut.decoder {
        shared.pop();
    }
    assert!(cut.to_bytes().is_err());
}

#[test]
fn tags_that_the_model_does_not_know_are_wrong_and_their_spans_are_missed() {
    let data = sequences(80, 2);
    let model = trained(&data, &settings(1.0, LossScale::Token));
    let (truth, names) = match data.targets() {
        Targets::Labels { names, codes } => (codes.to_vec(), names.clone()),
        _ => panic!("words"),
    };
    let value = |data: &Dataset, metric: Metric| {
        Answers::new(&model, data).expect("answers").evaluate(&metric).expect("defined").value
    };
    let (known, f1) = (value(&data, Metric::TokenAccuracy), value(&data, Metric::SpanF1));
    assert!(known > 0.6 && f1 > 0.4 && f1 < 1.0, "{known} {f1}");
    assert_eq!(known, value(&data, Metric::Accuracy));
    // The first O becomes a span of a type of its own.
    let place = truth.iter().position(|&code| code == 2).expect("an O");
    let mut codes = truth;
    codes[place] = 3;
    let names: Names = names.iter().map(|name| name.into_owned()).chain(["B-Y".to_string()]).collect();
    let other = Dataset::new(data.matrix().clone(), Targets::Labels { names, codes: codes.into() }).expect("valid");
    let other = other.with_groups(data.groups().expect("groups").clone()).expect("valid");
    let answers = Answers::new(&model, &other).expect("answers");
    assert_eq!((answers.unknown, answers.known()), (1, 3));
    assert!(value(&other, Metric::SpanF1) < f1 && value(&other, Metric::TokenAccuracy) <= known);
}

#[test]
fn rows_without_sequences_and_one_tag_are_refused() {
    let data = sequences(20, 1);
    let bare = Dataset::new(data.matrix().clone(), data.targets().clone()).expect("valid");
    let asked = |data: &Dataset, settings: &Settings| {
        train(data, settings, None, &mut Silent, &Cancel::new()).expect_err("refused").code()
    };
    let usual = Settings::new(Task::Sequence);
    assert_eq!(asked(&bare, &usual), Code::NoGroups);
    let model = trained(&data, &usual);
    assert_eq!(model.predict(&bare).expect_err("no sequences").code(), Code::NoGroups);
    let same = Dataset::new(data.matrix().clone(), Targets::Real(vec![1.0; data.rows()].into())).expect("valid");
    let same = same.with_groups(data.groups().expect("groups").clone()).expect("valid");
    assert_eq!(asked(&same, &usual), Code::SingleClass);
    assert_eq!(asked(&data, &usual.clone().with_solver(Solver::Newton)), Code::Unsupported);
}

#[test]
fn folds_hold_out_whole_sequences() {
    let data = sequences(60, 5);
    let usual = Settings { tolerance: 1e-3, ..Settings::new(Task::Sequence) };
    let grid = Grid::of(vec![0.01, 1.0]).expect("values");
    let metrics = vec![Metric::SpanF1, Metric::SequenceAccuracy];
    let search = CrossValidation { folds: 3, seed: 4, metrics: metrics.clone() };
    let tuned = search.run(&data, &grid.candidates(&usual), &mut Silent, &Cancel::new()).expect("tunes");
    let held_out = folds(&data, 3, 4).expect("folds");
    for (row, c) in tuned.rows.iter().zip([0.01, 1.0]) {
        for (at, own) in held_out.iter().enumerate() {
            let rest = data.subset(&complement(own, data.rows())).expect("the others");
            let kept = data.subset(own).expect("the fold");
            let learned = |group: &str| rest.groups().expect("groups").names().iter().any(|name| name == group);
            assert!(!kept.groups().expect("groups").names().iter().any(|name| learned(&name)));
            assert_eq!(kept.groups().map(Groups::len), Some(20));
            let model = trained(&rest, &Settings { tolerance: 1e-3, ..settings(c, LossScale::Token) });
            let value = Answers::new(&model, &kept).expect("answers").evaluate(&metrics[1]).expect("defined").value;
            // Fits of folds stop within the same gap, not at the same point.
            assert!((value - row.metrics[1].folds[at]).abs() <= 0.1, "{c} {at}: {value} {:?}", row.metrics[1]);
        }
    }
    let model = tuned.refit(tuned.best, &data, None, &mut Silent, &Cancel::new()).expect("trains").model;
    model.verify(&data).expect("the certificate holds");
}
