//! Models saved by earlier versions always load, keep their meaning, and give the same predictions.
//!
//! `golden/README.md` says how the files were made.

use maxmargin::data::{Dataset, Dense, Groups, Matrix, Names, Outcome, Pairs, Scale, Targets};
use maxmargin::error::Code;
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Decoder, Model};
use maxmargin::online::ComparisonLearner;
use maxmargin::settings::{
    ClassifySettings, CompareSettings, Method, RankSettings, Regularisation, Settings, Solver, Stochastic, Task,
};
use maxmargin::task::{ClassWeight, Intercept, OneClassSettings, PairWeight, PairWeightAs};
use maxmargin::train::Verification;
use std::path::Path;

/// Another machine may sum three or twelve numbers in another order.
const ROUNDING: f64 = 1e-9;

fn bytes(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines(file: &str, separator: char) -> Vec<Vec<String>> {
    let text = String::from_utf8(bytes(file)).unwrap();
    text.lines().map(|line| line.split(separator).map(str::to_string).collect()).collect()
}

/// A column of a table, by its name.
fn column(file: &str, name: &str) -> Vec<String> {
    let lines = lines(file, ',');
    let at = lines[0].iter().position(|title| title == name).unwrap();
    lines[1..].iter().map(|cells| cells[at].clone()).collect()
}

fn numbers(file: &str, name: &str) -> Vec<f64> {
    column(file, name).iter().map(|cell| cell.parse().unwrap()).collect()
}

/// The items with three features, and nothing else.
fn rows() -> Dataset {
    let columns = ["a", "b", "c"].map(|name| numbers("items.csv", name));
    let count = columns[0].len();
    let values: Vec<f32> = (0..count).flat_map(|row| columns.each_ref().map(|values| values[row] as f32)).collect();
    let matrix = Matrix::DenseF32(Dense::new(values, count, 3).unwrap());
    Dataset::new(matrix, Targets::Absent).unwrap()
}

fn labelled() -> Dataset {
    let codes: Vec<u32> = column("items.csv", "class").iter().map(|class| u32::from(class == "spam")).collect();
    rows().with_targets(Targets::Labels { names: ["ham", "spam"].into_iter().collect(), codes: codes.into() }).unwrap()
}

fn graded() -> Dataset {
    let queries = column("items.csv", "query");
    let starts = (0..=queries.len()).filter(|&row| row == 0 || queries.get(row) != queries.get(row - 1));
    let starts: Vec<u64> = starts.map(|row| row as u64).collect();
    let names: Names = starts[..starts.len() - 1].iter().map(|&row| queries[row as usize].clone()).collect();
    let data = rows().with_targets(Targets::Real(numbers("items.csv", "grade").into())).unwrap();
    data.with_groups(Groups::new(starts, names).unwrap()).unwrap()
}

/// The pairs over items in a given order.
fn pairs(ids: &[String]) -> Pairs {
    let places = |name: &str| -> Vec<u32> {
        column("pairs.csv", name).iter().map(|id| ids.iter().position(|other| other == id).unwrap() as u32).collect()
    };
    let outcomes: Vec<Outcome> = column("pairs.csv", "outcome").iter().map(|name| outcome(name)).collect();
    let pairs = Pairs::new(places("left"), places("right")).unwrap();
    pairs.with_outcomes(outcomes).unwrap().with_weights(numbers("pairs.csv", "weight")).unwrap()
}

fn outcome(name: &str) -> Outcome {
    let named = [Outcome::Left, Outcome::Tie, Outcome::Right].into_iter().find(|outcome| outcome.name() == name);
    named.unwrap_or_else(|| panic!("`{name}` is no outcome"))
}

fn compared() -> Dataset {
    rows().with_pairs(pairs(&column("items.csv", "id"))).unwrap()
}

/// Items without features, known only from their games, in order of appearance.
fn games() -> Dataset {
    let mut ids: Vec<String> = Vec::new();
    let sides = column("pairs.csv", "left").into_iter().zip(column("pairs.csv", "right"));
    for id in sides.flat_map(|(left, right)| [left, right]) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let rows: Vec<Vec<(usize, f64)>> = (0..ids.len()).map(|item| vec![(item, 1.0)]).collect();
    let data = Dataset::new(Matrix::from_rows(&rows, ids.len()).unwrap(), Targets::Absent).unwrap();
    data.with_pairs(pairs(&ids)).unwrap()
}

/// A model: the name of its file, its training data, and its settings.
type Case = (&'static str, Dataset, Settings);

/// One or more models for each task. Every setting that format 1 stored in the flat list is in one of them.
fn cases() -> Vec<Case> {
    let weights = [("ham", 1.0), ("spam", 2.0)].map(|(label, weight)| (label.to_string(), weight));
    let classify = ClassifySettings {
        intercept: Intercept::Penalised,
        positive: Some("ham".to_string()),
        class_weight: ClassWeight::ByLabel(weights.into()),
        multiclass: None,
        probability: None,
    };
    let queries = RankSettings { pair_weight: PairWeight::PerQuery, ..RankSettings::default() };
    let margins = RankSettings { pair_weight_as: PairWeightAs::Margin, ..RankSettings::default() };
    let usual = CompareSettings::default;
    let penalised = CompareSettings { threshold: Intercept::Penalised, ..usual() };
    let rank2 = CompareSettings { method: Method::Rank2, pair_weight_as: PairWeightAs::Replicate, ..usual() };
    let grades = CompareSettings { ties_from_grades: true, ..usual() };
    let rated = CompareSettings { method: Method::BradleyTerry, ..usual() };
    let gaussian = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    vec![
        (
            "classify",
            labelled(),
            Settings { loss: Loss::SquaredHinge, scale: Scale::Standard, ..Settings::of(classify) },
        ),
        ("rank", graded(), Settings::of(queries)),
        (
            "rank_pairs",
            compared(),
            Settings {
                stochastic: Stochastic { rate: Some(0.5), ..Stochastic::default() },
                ..Settings::of(margins).with_solver(Solver::AveragedSgd)
            },
        ),
        ("compare", compared(), Settings { regularisation: Regularisation::C(0.5), ..Settings::of(penalised) }),
        ("compare_rank2", compared(), Settings::of(rank2)),
        ("compare_grades", graded(), Settings { regularisation: Regularisation::Lambda(0.05), ..Settings::of(grades) }),
        ("compare_bradley_terry", games(), Settings::of(rated)),
        (
            "one_class",
            rows(),
            Settings {
                kernel: gaussian,
                regularisation: Regularisation::Nu(0.25),
                ..Settings::of(OneClassSettings::default())
            },
        ),
    ]
}

/// Ten pairs of a stream, and how they were learned.
fn stream() -> Case {
    let task = CompareSettings { kappa: 0.5, ..CompareSettings::default() };
    let regularisation = Regularisation::C(0.25);
    let settings = Settings { regularisation, ..Settings::of(task).with_solver(Solver::PassiveAggressive) };
    ("stream", compared(), settings)
}

/// Compares predictions with those of the program that made the file: scores, labels and scores, or outcomes and both
/// scores.
fn assert_predicts(model: &Model, data: &Dataset, file: &str) {
    let predicted = lines(&format!("predicted/{file}.tsv"), '\t');
    let scores = model.scores(data).unwrap();
    let close = |score: f64, cell: &str| {
        let expected: f64 = cell.parse().unwrap();
        assert!((score - expected).abs() <= ROUNDING, "{file}: {score} and not {expected}");
    };
    if model.decoder.threshold().is_some() {
        let by_grades = || pairs(&column("items.csv", "id"));
        let pairs = data.pairs().cloned().unwrap_or_else(by_grades);
        assert_eq!(predicted.len(), pairs.len(), "{file}");
        for (pair, cells) in predicted.iter().enumerate() {
            let [left, right] = [pairs.left(), pairs.right()].map(|places| scores[places[pair] as usize]);
            close(left, &cells[1]);
            close(right, &cells[2]);
            assert_eq!(model.decoder.outcome(left, right), Some(outcome(&cells[0])), "{file}: pair {pair}");
        }
        return;
    }
    assert_eq!(predicted.len(), scores.len(), "{file}");
    for (&score, cells) in scores.iter().zip(&predicted) {
        let (expected, label) = cells.split_last().unwrap();
        close(score, expected);
        assert_eq!(model.decoder.label(score).is_some(), !label.is_empty(), "{file}");
        // Support vectors lie at the border, where rounding decides the side.
        if let (Some(label), true) = (label.first(), score.abs() > ROUNDING) {
            assert_eq!(model.decoder.label(score), Some(label.as_str()), "{file}: {score}");
        }
    }
}

/// What a file verifies to. The objective of Bradley and Terry's model once had a penalty on the share of ties, so its
/// file states another one.
fn verified(model: &Model, data: &Dataset, name: &str) -> Option<Verification> {
    match model.verify(data) {
        Ok(_) if name == "compare_bradley_terry" => panic!("{name}: the penalty is back"),
        Err(error) if name == "compare_bradley_terry" => {
            assert_eq!(error.code(), Code::CertificateMismatch);
            None
        }
        found => Some(found.unwrap_or_else(|error| panic!("{name}: {error}"))),
    }
}

#[test]
fn files_of_format_1_keep_their_settings_verify_and_predict_as_they_did() {
    for (name, data, settings) in cases() {
        let model = Model::from_bytes(&bytes(&format!("format_1/{name}.mm"))).unwrap();
        assert_eq!(model.settings, settings, "{name}");
        assert_eq!(model.version, "0.1.0", "{name}");
        let certificate = &model.certificate;
        assert_eq!(certificate.data_hash, data.hash().unwrap(), "{name}");
        assert_eq!(certificate.converged, !settings.solver.is_stochastic(), "{name}");
        if let Some(found) = verified(&model, &data, name) {
            assert!((found.objective - certificate.objective).abs() <= ROUNDING * certificate.objective, "{name}");
            assert_eq!(found.lower_bound.is_some(), certificate.lower_bound.is_some(), "{name}");
        }
        assert_predicts(&model, &data, name);
    }
}

#[test]
fn files_of_format_1_answer_in_the_ways_of_their_tasks() {
    for (name, _, settings) in cases().into_iter().chain([stream()]) {
        let model = Model::from_bytes(&bytes(&format!("format_1/{name}.mm"))).unwrap();
        let classes = |negative: &str, positive: &str| {
            let found = model.decoder.classes().unwrap();
            assert_eq!((found.negative.as_str(), found.positive.as_str()), (negative, positive), "{name}");
        };
        match (settings.task.task(), &model.decoder) {
            (Task::Classify, Decoder::Sign(_)) => classes("spam", "ham"),
            (Task::OneClass, Decoder::Border(_)) => classes("-1", "1"),
            (Task::Rank, Decoder::Rank) => {}
            (Task::Compare, Decoder::Compare { threshold }) => assert!(*threshold > 0.0, "{name}"),
            (_, decoder) => panic!("{name}: {decoder:?}"),
        }
    }
}

#[test]
fn files_of_format_2_load_verify_and_are_what_files_of_format_1_become() {
    for (name, data, settings) in cases() {
        let (old, new) = (bytes(&format!("format_1/{name}.mm")), bytes(&format!("format_2/{name}.mm")));
        assert!(says(&old, 1) && says(&new, 2), "{name}");
        let model = Model::from_bytes(&new).unwrap();
        assert_eq!(model.settings, settings, "{name}");
        verified(&model, &data, name);
        assert_predicts(&model, &data, name);
        for loaded in [model, Model::from_bytes(&old).unwrap()] {
            assert!(loaded.to_bytes().unwrap() == new, "{name}");
        }
    }
}

#[test]
fn a_file_with_several_scores_a_row_loads_and_scores_as_it_did() {
    let file = bytes("format_2/own_scores.mm");
    let model = Model::from_bytes(&file).unwrap();
    assert!(model.to_bytes().unwrap() == file);
    assert_eq!((model.scorer.outputs(), model.features(), model.scorer.intercepts().len()), (3, 5, 3));
    let zeros = Matrix::DenseF64(Dense::new(vec![0.0; 5], 1, 5).unwrap());
    let scores = model.scores(&Dataset::new(zeros, Targets::Absent).unwrap()).unwrap();
    let shift = model.scaling.shift().unwrap();
    let factor = model.scaling.factor().unwrap();
    let weights = model.scorer.weights().unwrap();
    for (output, score) in scores.iter().enumerate() {
        let terms = (0..5).map(|feature| -shift[feature] * factor[feature] * weights[feature * 3 + output]);
        let expected = terms.sum::<f64>() + model.scorer.intercepts()[output];
        assert!((score - expected).abs() < ROUNDING, "{output}: {score} is not {expected}");
    }
}

/// Whether a file says that it is of this format.
fn says(file: &[u8], version: u32) -> bool {
    let words = format!(r#"\"format-version\":{version},"#);
    file.windows(words.len()).any(|part| part == words.as_bytes())
}

#[test]
fn a_stream_that_format_1_put_down_is_learned_to_its_end() {
    let (name, data, settings) = stream();
    let model = Model::from_bytes(&bytes(&format!("format_1/{name}.mm"))).unwrap();
    assert_eq!(model.settings, settings);
    assert_predicts(&model, &data, name);
    assert_eq!(model.verify(&data).expect_err("claims no bound").code(), Code::Unsupported);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(says(&again.to_bytes().unwrap(), 2));
    for model in [model, again] {
        let mut learner = ComparisonLearner::from_model(&model, &settings).unwrap();
        assert_eq!(learner.progress().pairs(), 10, "where it stopped");
        learner.learn(&data, 10..16).unwrap();
        let whole = learner.model(&settings, None, None).unwrap();
        assert_predicts(&whole, &data, "whole_stream");
        // The result equals that of learning without a break.
        let mut learner = ComparisonLearner::new(&settings).unwrap();
        learner.learn(&data, 0..16).unwrap();
        assert_eq!(learner.model(&settings, None, None).unwrap().to_bytes().unwrap(), whole.to_bytes().unwrap());
    }
}

#[test]
fn a_file_of_a_format_to_come_is_refused_by_its_number() {
    let file = bytes("format_2/rank.mm");
    let (from, to) = (br#"\"format-version\":2,"#, br#"\"format-version\":3,"#);
    let at = file.windows(from.len()).position(|part| part == from).unwrap();
    let mut newer = file.clone();
    newer[at..at + to.len()].copy_from_slice(to);
    let error = Model::from_bytes(&newer).expect_err("a format of the future");
    assert_eq!(error.code(), Code::ModelVersion);
    assert!(error.message().contains("format version 3") && error.message().contains("up to 2"), "{error}");
    assert!(error.remedy().is_some());
}
