//! Oracles of the user: the optimum of a classifier, bytes at any number of threads, very long joint features, errors, and
//! the checks, each with an oracle or a structure that fails it.

use crate::classes::numbered;
use crate::made::Numbers;
use maxmargin::data::{Dataset, Labels, Scale};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, OwnSettings, Regularisation, Settings, Solver};
use maxmargin::structured::{Examples, Features, Oracle, Plane, Rescale, Scores, Structure, not_an_output};
use maxmargin::task::{Intercept, Multiclass};
use maxmargin::testing::{check_oracle, check_structure};
use maxmargin::train::train;
use maxmargin::wish::Margin;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const SOLVERS: [Solver; 3] = [Solver::FrankWolfe, Solver::NSlack, Solver::CuttingPlane];

/// What an oracle does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The search returns the first class, or the next one after the truth.
    SearchFirst,
    SearchNext,
    SlackFirst,
    PredictFirst,
    LossAtTruth,
    LossNegative,
    LossAbove,
    FeatureLong,
    FeatureNan,
    FeatureChanges,
    SearchChanges,
    PredictChanges,
    /// An output that is decoded to another one, or to none.
    DecodedToOther,
    NotDecoded,
    Fails,
}

/// Several classes as outputs: Ψ has the features at the places of the class.
struct Classes {
    classes: u32,
    features: usize,
    fault: Fault,
    calls: AtomicUsize,
}

/// A class. Number 5 is not decoded, and number 4 is decoded to another one.
#[derive(Clone, Debug, PartialEq)]
struct Class(u32);

impl maxmargin::structured::Encoded for Class {
    fn encode(&self, numbers: &mut Vec<u32>) {
        numbers.push(self.0);
    }

    fn decode(numbers: &[u32]) -> Option<Class> {
        u32::decode(numbers).filter(|number| *number != 5).map(|number| Class(if number == 4 { 3 } else { number }))
    }
}

impl Classes {
    fn new(classes: u32, features: usize) -> Classes {
        Classes { classes, features, fault: Fault::None, calls: AtomicUsize::new(0) }
    }

    fn best(&self, value: impl Fn(&Class) -> Result<f64>) -> Result<Class> {
        let mut best = (f64::NEG_INFINITY, Class(0));
        for class in (0..self.classes).map(Class) {
            let value = value(&class)?;
            best = if value > best.0 { (value, class) } else { best };
        }
        Ok(best.1)
    }

    fn odd(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % 2 == 1
    }
}

impl Oracle for Classes {
    type Input = Vec<f64>;
    type Output = Class;

    fn joint_feature(&self, x: &Vec<f64>, y: &Class, features: &mut Features) -> Result<()> {
        features.add_all(y.0 as usize * self.features, x);
        match self.fault {
            Fault::FeatureLong if y.0 == 1 => features.add(self.classes as usize * self.features, 1.0),
            Fault::FeatureNan if y.0 == 1 => features.add(3, f64::NAN),
            Fault::FeatureChanges if self.odd() => features.add(0, 1.0),
            _ => {}
        }
        Ok(())
    }

    fn loss(&self, truth: &Class, y: &Class) -> Result<f64> {
        Ok(match (self.fault, truth == y) {
            (Fault::LossAtTruth, true) => 0.25,
            (Fault::LossNegative, false) => -1.0,
            (Fault::LossAbove, false) => 2.0,
            (_, same) => f64::from(u8::from(!same)),
        })
    }

    fn most_violated(&self, x: &Vec<f64>, truth: &Class, w: &[f64]) -> Result<Class> {
        match self.fault {
            Fault::SearchFirst => Ok(Class(0)),
            Fault::SearchNext | Fault::LossNegative => Ok(Class((truth.0 + 1) % self.classes)),
            Fault::SearchChanges => Ok(Class(u32::from(self.odd()))),
            Fault::DecodedToOther => Ok(Class(4)),
            Fault::NotDecoded => Ok(Class(5)),
            Fault::Fails => Err(Error::new(Code::BadValue, "the oracle is out of order")),
            _ => self.best(|y| Ok(self.loss(truth, y)? + self.score(x, y, w)?)),
        }
    }

    fn most_violated_by_slack(&self, x: &Vec<f64>, truth: &Class, w: &[f64]) -> Result<Class> {
        if self.fault == Fault::SlackFirst {
            return Ok(Class(0));
        }
        let right = self.score(x, truth, w)?;
        self.best(|y| Ok(self.loss(truth, y)? * (1.0 + self.score(x, y, w)? - right)))
    }

    fn predict(&self, x: &Vec<f64>, w: &[f64]) -> Result<Class> {
        match self.fault {
            Fault::PredictFirst => Ok(Class(0)),
            Fault::PredictChanges => Ok(Class(u32::from(self.odd()))),
            _ => self.best(|y| self.score(x, y, w)),
        }
    }

    fn largest_loss(&self) -> Option<f64> {
        Some(1.0)
    }
}

/// The rows of a data set as inputs, and the codes of its classes as outputs.
fn classes(data: &Dataset, fault: Fault) -> Result<Examples<Classes>> {
    let labels = Labels::find(data.targets())?;
    let codes = labels.codes(data.targets())?.iter().map(|&code| Class(code)).collect();
    let inputs = (0..data.rows()).map(|row| {
        let mut values = vec![0.0; data.cols()];
        data.matrix().each_in_row(row, |column, value| values[column] = value);
        values
    });
    let oracle = Classes { fault, ..Classes::new(labels.len() as u32, data.cols()) };
    Examples::new(oracle, labels.len() * data.cols(), inputs.collect(), codes)
}

fn own(c: f64, solver: Solver) -> Settings {
    let own = Settings::of(OwnSettings::named("classes"));
    Settings { regularisation: Regularisation::C(c), tolerance: 1e-6, max_passes: 3000, solver, ..own }
}

#[test]
fn several_classes_as_an_oracle_have_the_optimum_of_the_joint_classifier() {
    let data = numbered(150, 4, 3, 7);
    for c in [0.01, 1.0] {
        let joint = ClassifySettings {
            intercept: Intercept::None,
            multiclass: Some(Multiclass::Joint),
            ..ClassifySettings::default()
        };
        let settings = Settings { regularisation: Regularisation::C(c), tolerance: 1e-8, ..Settings::of(joint) };
        let joint = train(&data, &settings, None, &mut Silent, &Cancel::new()).expect("trains").model;
        let expected = joint.certificate.objective;
        for solver in SOLVERS {
            for rescale in Rescale::ALL {
                // With losses of 0 and 1, both forms of constraints are the same.
                let examples = classes(&data, Fault::None).expect("examples");
                let task = OwnSettings { rescale, ..OwnSettings::named("classes") };
                let settings = Settings { task: task.into(), ..own(c, solver) };
                let model = examples.train(&settings, &mut Silent, &Cancel::new()).expect("trains").model;
                let (found, bound) = (model.certificate.objective, model.certificate.lower_bound.expect("a bound"));
                assert!(found >= expected * (1.0 - 1e-7) && bound <= expected * (1.0 + 1e-7), "{solver:?} {c}");
                assert!(model.certificate.converged && found <= expected * (1.0 + 1e-5), "{solver:?} {c}");
                let loaded = Model::from_bytes(&model.to_bytes().expect("bytes")).expect("loads");
                examples.verify(&loaded, &Cancel::new()).expect("the certificate holds");
            }
        }
    }
}

#[test]
fn hard_margins_and_stochastic_steps_learn_from_an_oracle() {
    let inputs: Vec<Vec<f64>> =
        (0..30).map(|at| (0..3).map(|column| f64::from(u8::from(at % 3 == column))).collect()).collect();
    let outputs: Vec<Class> = (0..30).map(|at| Class(at % 3)).collect();
    let examples = |outputs| Examples::new(Classes::new(3, 3), 9, inputs.clone(), outputs).expect("examples");
    let separable = examples(outputs.clone());
    let hard = Settings { margin: Margin::Hard, ..own(1.0, Solver::Auto) };
    let model = separable.train(&hard, &mut Silent, &Cancel::new()).expect("trains").model;
    // Each class needs w_own − w_other = 1 in its feature: 2/3 and twice −1/3.
    assert!(model.certificate.converged && (model.certificate.objective - 1.0).abs() < 1e-6, "{:?}", model.certificate);
    separable.verify(&model, &Cancel::new()).expect("the certificate holds");
    let mut mistaken = outputs;
    mistaken[7] = Class(0);
    let error = examples(mistaken).train(&hard, &mut Silent, &Cancel::new()).expect_err("a contradiction");
    assert_eq!(error.code(), Code::NotSeparable, "{error}");

    let soft = separable.train(&own(1.0, Solver::Auto), &mut Silent, &Cancel::new()).expect("trains").model;
    for solver in [Solver::AveragedSgd, Solver::Pegasos] {
        let settings = Settings { max_passes: 200, ..own(1.0, solver) };
        let model = separable.train(&settings, &mut Silent, &Cancel::new()).expect("trains").model;
        let (found, best) = (model.certificate.objective, soft.certificate.objective);
        assert!(found >= best * (1.0 - 1e-5) && found <= 1.15 * best, "{solver:?}: {found} {best}");
        separable.verify(&model, &Cancel::new()).expect("the objective holds");
    }
}

#[test]
fn a_weight_of_two_is_an_example_that_is_there_twice() {
    let data = numbered(60, 3, 3, 2);
    let twice = data.select(&(0..60).chain(0..30).collect::<Vec<usize>>()).expect("rows");
    let twice = classes(&twice, Fault::None).expect("examples");
    let weights = (0..60).map(|row| if row < 30 { 2.0 } else { 1.0 }).collect();
    let weighted = classes(&data, Fault::None).expect("examples").with_weights(weights).expect("weights");
    let of = |examples: &Examples<Classes>| {
        examples.train(&own(0.5, Solver::Auto), &mut Silent, &Cancel::new()).expect("trains").model.certificate
    };
    let (a, b) = (of(&twice), of(&weighted));
    assert!((a.objective - b.objective).abs() < 1e-5 * a.objective, "{a:?} {b:?}");
    for weights in [vec![1.0; 59], vec![-1.0; 60], vec![f64::NAN; 60]] {
        let error = classes(&data, Fault::None).expect("examples").with_weights(weights).expect_err("bad weights");
        assert_eq!(error.code(), Code::BadWeight);
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let data = numbered(600, 5, 3, 4);
    for solver in SOLVERS {
        let bytes = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| {
                let examples = classes(&data, Fault::None).expect("examples");
                let settings = Settings { tolerance: 1e-3, ..own(0.1, solver) };
                let trained = examples.train(&settings, &mut Silent, &Cancel::new()).expect("trains");
                trained.model.to_bytes().expect("bytes")
            })
        };
        assert_eq!(bytes(1), bytes(3), "{solver:?}");
    }
}

#[test]
fn other_examples_and_altered_models_do_not_verify() {
    let data = numbered(40, 3, 3, 5);
    let examples = classes(&data, Fault::None).expect("examples");
    let model = examples.train(&own(1.0, Solver::Auto), &mut Silent, &Cancel::new()).expect("trains").model;
    // An input, a right output, or a weight that differs.
    let code = |examples: Examples<Classes>| examples.verify(&model, &Cancel::new()).expect_err("other data").code();
    assert_eq!(code(classes(&numbered(40, 3, 3, 6), Fault::None).expect("examples")), Code::OtherData);
    let mut outputs: Vec<Class> = (0..40).map(|example| examples.example(example).1.clone()).collect();
    outputs[7] = Class((outputs[7].0 + 1) % 3);
    let inputs = (0..40).map(|example| examples.example(example).0.clone()).collect();
    assert_eq!(code(Examples::new(Classes::new(3, 3), 9, inputs, outputs).expect("examples")), Code::OtherData);
    let weighted = classes(&data, Fault::None).expect("examples").with_weights(vec![2.0; 40]).expect("weights");
    assert_eq!(code(weighted), Code::OtherData);

    let mut altered = model.clone();
    let Some(maxmargin::solve::Witness::Outputs(dual)) = &mut altered.witness else { panic!("no witness") };
    dual.numbers[0] = 5;
    let error = examples.verify(&altered, &Cancel::new()).expect_err("an output that is none");
    assert_eq!(error.code(), Code::CertificateMismatch, "{error}");
    let loaded = Model::from_bytes(&model.to_bytes().expect("bytes")).expect("loads");
    examples.verify(&loaded, &Cancel::new()).expect("the certificate holds");
}

#[test]
fn settings_that_change_columns_are_refused() {
    let examples = classes(&numbered(30, 3, 3, 5), Fault::None).expect("examples");
    let scaled = Settings { scale: Scale::Standard, ..own(1.0, Solver::Auto) };
    let kernel = maxmargin::kernel::KernelSettings {
        kind: maxmargin::kernel::KernelKind::Gaussian,
        gamma: Some(1.0),
        ..Default::default()
    };
    let kernel = Settings { kernel, ..own(1.0, Solver::Auto) };
    for settings in [scaled, kernel, own(1.0, Solver::Newton)] {
        let error = examples.train(&settings, &mut Silent, &Cancel::new()).expect_err("does not apply");
        assert_eq!(error.code(), Code::Unsupported, "{error}");
    }
    let empty = Examples::new(Classes::new(3, 3), 9, Vec::new(), Vec::new()).expect("no examples");
    let error = empty.train(&own(1.0, Solver::Auto), &mut Silent, &Cancel::new()).expect_err("nothing to learn");
    assert_eq!(error.code(), Code::NoRows);
    let error = Examples::new(Classes::new(3, 3), 9, vec![vec![0.0; 3]], Vec::new()).expect_err("no outputs");
    assert_eq!(error.code(), Code::BadTarget);
    let error = Examples::new(Classes::new(3, 3), 0, vec![vec![0.0; 3]], vec![Class(0)]).expect_err("no features");
    assert_eq!(error.code(), Code::BadOracle);
}

#[test]
fn an_error_of_the_oracle_reaches_the_caller() {
    let data = numbered(40, 3, 3, 5);
    for solver in SOLVERS {
        for (fault, code, words) in [
            (Fault::Fails, Code::BadValue, "the oracle is out of order"),
            (Fault::LossNegative, Code::BadOracle, "the loss of an output is -1"),
            (Fault::NotDecoded, Code::BadOracle, "not decoded"),
        ] {
            let examples = classes(&data, fault).expect("right outputs");
            let error = examples.train(&own(1.0, solver), &mut Silent, &Cancel::new()).expect_err("fails");
            assert_eq!(error.code(), code, "{error}");
            assert!(error.message().contains(words), "{error}");
        }
    }
}

#[test]
fn the_check_names_what_is_wrong_with_an_oracle() {
    let data = numbered(40, 3, 3, 5);
    assert_eq!(check_oracle(&classes(&data, Fault::None).expect("examples")), Ok(()));
    for (fault, words) in [
        (Fault::SearchFirst, "most_violated returns [0]"),
        (Fault::SearchNext, "which is worse than the truth"),
        (Fault::SlackFirst, "most_violated_by_slack returns [0]"),
        (Fault::PredictFirst, "predict returns [0] with score"),
        (Fault::LossAtTruth, "the loss of the truth is 0.25, and must be 0"),
        (Fault::LossNegative, "the loss of an output is -1"),
        (Fault::LossAbove, "is 2, and the largest is 1"),
        (Fault::FeatureChanges, "joint_feature changes its answer"),
        (Fault::SearchChanges, "most_violated changes its answer"),
        (Fault::PredictChanges, "predict changes its answer"),
        (Fault::DecodedToOther, "an output is encoded as [4], and once decoded as [3]"),
        (Fault::NotDecoded, "an output is encoded as [5], and not decoded"),
        (Fault::Fails, "most_violated fails: the oracle is out of order"),
    ] {
        // With two classes, the next one is the only wrong one.
        let data = if fault == Fault::SearchNext { &numbered(40, 3, 2, 5) } else { &data };
        let said = check_oracle(&classes(data, fault).expect("examples")).expect_err("a fault");
        assert!(said.contains(words) && said.starts_with("example "), "{fault:?}: {said}");
    }
    // What is wrong at the truth is found as soon as there are examples.
    for (fault, words) in [
        (Fault::FeatureLong, "has an entry 9, and the entries are 0 to 8"),
        (Fault::FeatureNan, "entry 3 of its joint"),
    ] {
        let error = classes(&data, fault).expect_err("a fault");
        assert_eq!(error.code(), Code::BadOracle);
        assert!(error.message().contains(words), "{error}");
    }
}

/// One of a million features is set for each position and label of a short text.
struct Long {
    /// The weights that searches were prepared for.
    prepared: Mutex<Vec<f64>>,
}

const LONG: usize = 1_000_000;

impl Long {
    fn entry(at: usize, letter: u32, label: bool) -> usize {
        (at * 7919 + letter as usize * 104_729 + usize::from(label) * 500_009) % LONG
    }

    fn search(x: &[u32], truth: Option<&Vec<u32>>, w: &[f64]) -> Vec<u32> {
        let best = x.iter().enumerate().map(|(at, &letter)| {
            let value = |label: bool| {
                let missed = truth.map_or(0.0, |truth| f64::from(u8::from(truth[at] != u32::from(label))));
                missed + w[Long::entry(at, letter, label)]
            };
            u32::from(value(true) > value(false))
        });
        best.collect()
    }
}

impl Oracle for Long {
    type Input = Vec<u32>;
    type Output = Vec<u32>;

    fn joint_feature(&self, x: &Vec<u32>, y: &Vec<u32>, features: &mut Features) -> Result<()> {
        (0..x.len()).for_each(|at| features.add(Long::entry(at, x[at], y[at] == 1), 1.0));
        Ok(())
    }

    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> Result<f64> {
        Ok(truth.iter().zip(y).filter(|(a, b)| a != b).count() as f64)
    }

    fn most_violated(&self, x: &Vec<u32>, truth: &Vec<u32>, w: &[f64]) -> Result<Vec<u32>> {
        assert_eq!(self.prepared.lock().expect("no panic")[..8], w[..8], "searched at weights without notice");
        Ok(Long::search(x, Some(truth), w))
    }

    fn predict(&self, x: &Vec<u32>, w: &[f64]) -> Result<Vec<u32>> {
        Ok(Long::search(x, None, w))
    }

    fn prepare(&self, w: &[f64]) -> Result<()> {
        *self.prepared.lock().expect("no panic") = w[..8].to_vec();
        Ok(())
    }
}

#[test]
fn a_million_features_cost_what_their_entries_cost() {
    let mut numbers = Numbers::new(8);
    let inputs: Vec<Vec<u32>> = (0..2000).map(|_| (0..6).map(|_| (8.0 * numbers.next()) as u32).collect()).collect();
    let outputs: Vec<Vec<u32>> = inputs
        .iter()
        .map(|x| x.iter().map(|letter| u32::from((letter % 2 == 1) != (numbers.next() < 0.1))).collect())
        .collect();
    let examples = Examples::new(Long { prepared: Mutex::default() }, LONG, inputs, outputs).expect("examples");
    let began = std::time::Instant::now();
    let settings = Settings { tolerance: 1e-3, ..own(0.1, Solver::Auto) };
    let trained = examples.train(&settings, &mut Silent, &Cancel::new()).expect("trains");
    assert!(trained.model.certificate.converged);
    // A walk over all features a step would take minutes.
    let seconds = began.elapsed().as_secs_f64();
    assert!(seconds < 20.0, "{seconds} seconds");
    examples.verify(&trained.model, &Cancel::new()).expect("the certificate holds");
    let weights = trained.model.scorer.weights().expect("weights");
    let (x, y) = (vec![1, 2, 3, 4, 5, 6], vec![1, 0, 1, 0, 1, 0]);
    assert_eq!(examples.oracle().predict(&x, weights).expect("an output"), y);
}

/// What a structure does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slip {
    None,
    RowsOverlap,
    SlopesOutOfRange,
    SlopesOutOfOrder,
    SlopeNan,
    NotTheBest,
    LossNegative,
    Changes,
    Weight,
}

/// Which row of an example is the best one, which was its first row.
struct Top {
    slip: Slip,
    calls: AtomicUsize,
}

impl Structure for Top {
    fn examples(&self) -> usize {
        5
    }

    fn rows(&self, example: usize) -> Range<usize> {
        if self.slip == Slip::RowsOverlap { example * 3..example * 3 + 4 } else { example * 4..example * 4 + 4 }
    }

    fn shared(&self) -> usize {
        1
    }

    fn weight(&self, _: usize) -> f64 {
        if self.slip == Slip::Weight { -1.0 } else { 1.0 }
    }

    fn most_violated(&self, _: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        let value = |row: usize| at.rows[row] + if row > 0 { 1.0 + at.shared[0] } else { 0.0 };
        let mut best = (0..4).fold(0, |best, row| if value(row) > value(best) { row } else { best });
        if self.slip == Slip::NotTheBest && at.shared[0] > 0.0 {
            best = 3;
        }
        if self.slip == Slip::Changes {
            best = self.calls.fetch_add(1, Ordering::Relaxed) % 4;
        }
        *output = vec![best as u32];
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        plane.clear();
        match output {
            [0] => {}
            [row @ 1..4] => {
                plane.loss = if self.slip == Slip::LossNegative { -1.0 } else { 1.0 };
                plane.rows = vec![(0, -1.0), (*row, 1.0)];
                plane.shared = vec![(0, 1.0)];
            }
            _ => return Err(not_an_output(example, "there are four rows")),
        }
        match self.slip {
            Slip::SlopesOutOfRange => plane.rows.push((4, 1.0)),
            Slip::SlopesOutOfOrder => plane.rows.reverse(),
            Slip::SlopeNan => plane.shared.iter_mut().for_each(|entry| entry.1 = f64::NAN),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn the_check_names_what_is_wrong_with_a_structure() {
    for (slip, words) in [
        (Slip::None, None),
        (Slip::RowsOverlap, Some("example 1 has rows 3..7, and the rows up to 4 belong to earlier ones")),
        (Slip::SlopesOutOfRange, Some("a row slope of")),
        (Slip::SlopesOutOfOrder, Some("the row slopes of [1] do not rise in position")),
        (Slip::SlopeNan, Some("a shared slope of")),
        (Slip::NotTheBest, Some("most_violated returns [3] with")),
        (Slip::LossNegative, Some("the loss of [1] is -1, and must be zero or more")),
        (Slip::Changes, Some("most_violated changes its answer at")),
        (Slip::Weight, Some("the weight of example 0 is -1")),
    ] {
        let said = check_structure(&Top { slip, calls: AtomicUsize::new(0) });
        match (said, words) {
            (Ok(()), None) => {}
            (Err(said), Some(words)) => assert!(said.contains(words), "{slip:?}: {said}"),
            (said, _) => panic!("{slip:?}: {said:?}"),
        }
    }
}
