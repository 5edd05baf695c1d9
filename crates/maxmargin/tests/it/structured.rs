//! Structured outputs through every solver: several classes and a chain of tags as structures of the user's own, against
//! the joint classifier and a list of all outputs.

use crate::classes::numbered;
use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Groups, Labels, Matrix, Names, Subset, Targets};
use maxmargin::error::{Code, Result};
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::{Decoder, Model, Scorer};
use maxmargin::run::{Cancel, Event, Observer, Silent};
use maxmargin::settings::{ClassifySettings, OwnSettings, Regularisation, Settings, Solver, Stochastic};
use maxmargin::solve::{ByOracle, Problem, Stop};
use maxmargin::structured::{Plane, Rescale, Scores, Structure, not_an_output};
use maxmargin::task::{Intercept, Multiclass};
use maxmargin::train::{Poses, train, train_own};
use maxmargin::wish::Margin;
use std::ops::{ControlFlow, Range};

const SOLVERS: [Solver; 3] = [Solver::FrankWolfe, Solver::NSlack, Solver::CuttingPlane];

/// Tags of the rows of a group, with a score for each pair of neighbouring tags. All outputs are tried, and one row makes
/// a classifier.
struct Tags {
    starts: Vec<usize>,
    codes: Vec<u32>,
    tags: u32,
    transitions: bool,
}

impl Tags {
    fn truth(&self, example: usize) -> &[u32] {
        &self.codes[self.rows(example)]
    }

    fn each_output(&self, example: usize, mut visit: impl FnMut(&[u32])) {
        let mut output = vec![0; self.truth(example).len()];
        loop {
            visit(&output);
            let Some(place) = output.iter().rposition(|tag| *tag + 1 < self.tags) else { return };
            output[place] += 1;
            output[place + 1..].fill(0);
        }
    }

    fn worst(&self, example: usize, at: Scores<'_>, value: impl Fn(&Plane) -> f64) -> Vec<u32> {
        let (mut best, mut found, mut plane) = (f64::NEG_INFINITY, Vec::new(), Plane::default());
        self.each_output(example, |output| {
            self.plane(example, output, &mut plane).expect("an output");
            let own = value(&plane);
            if own > best {
                (best, found) = (own, output.to_vec());
            }
        });
        let _ = at;
        found
    }
}

impl Structure for Tags {
    fn examples(&self) -> usize {
        self.starts.len() - 1
    }

    fn rows(&self, example: usize) -> Range<usize> {
        self.starts[example]..self.starts[example + 1]
    }

    fn outputs(&self) -> usize {
        self.tags as usize
    }

    fn shared(&self) -> usize {
        if self.transitions { (self.tags * self.tags) as usize } else { 0 }
    }

    fn most_violated(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        *output = self.worst(example, at, |plane| plane.value(at));
        Ok(())
    }

    fn most_violated_by_slack(&self, example: usize, at: Scores<'_>, output: &mut Vec<u32>) -> Result<()> {
        *output = self.worst(example, at, |plane| plane.loss * (1.0 + plane.product(at)));
        Ok(())
    }

    fn plane(&self, example: usize, output: &[u32], plane: &mut Plane) -> Result<()> {
        let truth = self.truth(example);
        if output.len() != truth.len() || output.iter().any(|tag| *tag >= self.tags) {
            return Err(not_an_output(example, "a tag is unknown"));
        }
        plane.clear();
        for (row, (own, right)) in output.iter().zip(truth).enumerate() {
            let first = row as u32 * self.tags;
            plane.rows.extend([(first + own, 1.0), (first + right, -1.0)]);
            plane.loss += f64::from(u8::from(own != right));
        }
        if self.transitions {
            for (own, right) in output.windows(2).zip(truth.windows(2)) {
                let of = |pair: &[u32]| pair[0] * self.tags + pair[1];
                plane.shared.extend([(of(own), 1.0), (of(right), -1.0)]);
            }
        }
        plane.tidy();
        Ok(())
    }
}

/// How data become the problem.
struct Tagging {
    transitions: bool,
    rescale: Rescale,
}

impl Poses for Tagging {
    fn pose(&self, data: &Dataset, _: &Settings, _: Option<&Subset>) -> Result<Box<dyn Problem>> {
        let labels = Labels::find(data.targets())?;
        let starts = match data.groups() {
            Some(groups) => (0..=groups.len()).map(|at| groups.starts()[at] as usize).collect(),
            None => (0..=data.rows()).collect(),
        };
        let codes = labels.codes(data.targets())?.to_vec();
        let tags = labels.len() as u32;
        let structure = Tags { starts, codes, tags, transitions: self.transitions };
        let meaning = |shared: &[f64]| Decoder::Score { free: shared.to_vec() };
        Ok(Box::new(ByOracle::new(Box::new(structure), "sequence", Box::new(meaning)).rescaled(self.rescale)))
    }
}

fn own(c: f64, solver: Solver) -> Settings {
    let own = Settings::of(OwnSettings::named("tags"));
    Settings {
        regularisation: Regularisation::C(c),
        tolerance: 1e-6,
        max_passes: 3000,
        solver,
        loss: Loss::Hinge,
        ..own
    }
}

/// Short sequences of three tags, whose next tag depends on the last.
fn sequences(count: usize, seed: u64) -> Dataset {
    noisy_sequences(count, seed, 2.0)
}

/// The same with noise of a given width. Without it, features tell the tags.
fn noisy_sequences(count: usize, seed: u64, noise: f64) -> Dataset {
    let mut numbers = Numbers::new(seed);
    let (mut values, mut tags, mut starts) = (Vec::new(), Vec::new(), vec![0u64]);
    for _ in 0..count {
        let mut tag = (3.0 * numbers.next()) as u32;
        for _ in 0..1 + (4.0 * numbers.next()) as usize {
            tag = if numbers.next() < 0.8 { (tag + 1) % 3 } else { tag };
            values.extend((0..3).map(|column| f64::from(u8::from(column == tag)) + noise * (numbers.next() - 0.5)));
            tags.push(f64::from(tag));
        }
        starts.push(tags.len() as u64);
    }
    let rows = tags.len();
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 3).expect("whole rows"));
    let names: Names = (0..count).map(|group| format!("s{group}")).collect();
    let groups = Groups::new(starts, names).expect("rising");
    Dataset::new(matrix, Targets::Real(tags.into())).expect("valid").with_groups(groups).expect("valid")
}

#[test]
fn several_classes_as_a_structure_have_the_optimum_of_the_joint_classifier() {
    let data = numbered(120, 4, 3, 7);
    for c in [0.01, 1.0, 30.0] {
        let joint = ClassifySettings {
            intercept: Intercept::None,
            multiclass: Some(Multiclass::Joint),
            ..ClassifySettings::default()
        };
        let settings = Settings { regularisation: Regularisation::C(c), tolerance: 1e-8, ..Settings::of(joint) };
        let joint =
            train(&data, &settings, None, &mut Silent, &Cancel::new()).expect("trains").model.certificate.objective;
        for solver in SOLVERS {
            let tagging = Tagging { transitions: false, rescale: Rescale::Margin };
            let trained = train_own(&tagging, &data, &own(c, solver), &mut Silent, &Cancel::new()).expect("trains");
            let certificate = &trained.model.certificate;
            let bound = certificate.lower_bound.expect("a bound");
            assert!(certificate.converged, "{solver:?} {c}: {certificate:?}");
            assert!(bound <= joint * (1.0 + 1e-7) && certificate.objective >= joint * (1.0 - 1e-7), "{solver:?} {c}");
        }
    }
}

#[test]
fn solvers_of_sequences_agree_and_their_models_verify() {
    let data = sequences(60, 3);
    for rescale in Rescale::ALL {
        let tagging = Tagging { transitions: true, rescale };
        for c in [0.02, 1.0] {
            let mut found = Vec::new();
            for solver in SOLVERS {
                let settings = own(c, solver);
                let trained = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
                let certificate = &trained.model.certificate;
                assert!(certificate.converged, "{solver:?} {c} {rescale:?}: {certificate:?}");
                found.push((certificate.objective, certificate.lower_bound.expect("a bound")));
                let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
                loaded.verify_own(&tagging, &data, &Cancel::new()).expect("the certificate holds");
            }
            let highest = found.iter().map(|own| own.1).fold(0.0, f64::max);
            let lowest = found.iter().map(|own| own.0).fold(f64::INFINITY, f64::min);
            assert!(highest <= lowest * (1.0 + 1e-9), "{found:?}");
        }
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let data = sequences(80, 5);
    let tagging = Tagging { transitions: true, rescale: Rescale::Margin };
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let settings = own(0.5, Solver::FrankWolfe);
            let trained = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
            trained.model.to_bytes().expect("bytes")
        })
    };
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn an_altered_output_or_multiplier_does_not_verify() {
    let data = sequences(30, 9);
    let tagging = Tagging { transitions: true, rescale: Rescale::Margin };
    let trained = train_own(&tagging, &data, &own(0.5, Solver::FrankWolfe), &mut Silent, &Cancel::new());
    let model = trained.expect("trains").model;
    let Some(maxmargin::solve::Witness::Outputs(dual)) = &model.witness else { panic!("no witness of outputs") };
    for change in 0..3 {
        let mut altered = dual.clone();
        match change {
            0 => altered.numbers[0] = 7,
            1 => altered.values[0] += 10.0,
            _ => altered.starts[1] = u64::MAX,
        }
        let mut model = model.clone();
        model.witness = Some(maxmargin::solve::Witness::Outputs(altered));
        let error = model.verify_own(&tagging, &data, &Cancel::new()).expect_err("an altered witness");
        assert_eq!(error.code(), Code::CertificateMismatch, "{change}: {error}");
    }
}

fn through(kernel: KernelSettings, settings: Settings) -> Settings {
    Settings { kernel, ..settings }
}

#[test]
fn a_kernel_of_products_gives_the_optimum_of_weights() {
    let data = sequences(40, 11);
    let products = KernelSettings {
        kind: KernelKind::Polynomial,
        degree: Some(1),
        gamma: Some(1.0),
        coef0: Some(0.0),
        ..KernelSettings::default()
    };
    for rescale in Rescale::ALL {
        let tagging = Tagging { transitions: true, rescale };
        for c in [0.05, 2.0] {
            let of = |settings: Settings| {
                let trained = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
                assert!(trained.model.certificate.converged, "{c} {rescale:?}: {:?}", trained.model.certificate);
                let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
                loaded.verify_own(&tagging, &data, &Cancel::new()).expect("the certificate holds");
                let certificate = trained.model.certificate;
                (certificate.lower_bound.expect("a bound"), certificate.objective)
            };
            let weights = of(own(c, Solver::FrankWolfe));
            for solver in [Solver::Auto, Solver::NSlack] {
                let found = of(through(products.clone(), own(c, solver)));
                let (low, high) = (weights.0.max(found.0), weights.1.min(found.1));
                assert!(low <= high * (1.0 + 1e-9), "{solver:?} {c} {rescale:?}: {weights:?} {found:?}");
            }
        }
    }
}

#[test]
fn kernel_models_of_structures_depend_neither_on_threads_nor_on_the_cache() {
    let data = sequences(60, 13);
    let tagging = Tagging { transitions: true, rescale: Rescale::Margin };
    let bytes = |threads: usize, cache: Option<u64>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let kernel =
            KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), cache, ..KernelSettings::default() };
        pool.install(|| {
            let settings = through(kernel, own(0.5, Solver::FrankWolfe));
            let trained = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
            assert!(trained.model.certificate.converged);
            trained.model.verify_own(&tagging, &data, &Cancel::new()).expect("the certificate holds");
            trained.model.to_bytes().expect("bytes")
        })
    };
    assert_eq!(bytes(1, None), bytes(3, None));
    assert_eq!(bytes(1, None), bytes(1, Some(1)));
}

#[test]
fn auto_takes_one_plane_for_all_examples_where_weights_are_few() {
    let data = sequences(30, 31);
    let tagging = Tagging { transitions: true, rescale: Rescale::Margin };
    let few = train_own(&tagging, &data, &own(0.5, Solver::Auto), &mut Silent, &Cancel::new()).expect("trains");
    assert_eq!(few.solver, Solver::CuttingPlane);
    let kernel = KernelSettings { kind: KernelKind::Gaussian, gamma: Some(0.5), ..KernelSettings::default() };
    let settings = through(kernel, own(0.5, Solver::Auto));
    let kernel = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
    assert_eq!(kernel.solver, Solver::FrankWolfe);
}

/// What a run reports.
#[derive(Default)]
struct Heard {
    bounds: Vec<f64>,
    searches: Option<(u64, f64)>,
    rounds: Option<(u64, u64, Option<f64>, f64)>,
}

impl Observer for Heard {
    fn report(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Pass { lower_bound, .. } => self.bounds.extend(lower_bound),
            Event::Searches { calls, seconds } => self.searches = Some((*calls, *seconds)),
            Event::Rounds { rounds, planes, most, square, .. } => {
                self.rounds = Some((*rounds, *planes, *most, *square));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn bounds_never_fall_and_searches_and_rounds_are_counted() {
    let data = sequences(50, 17);
    for rescale in Rescale::ALL {
        let tagging = Tagging { transitions: true, rescale };
        let tight = Settings { tolerance: 1e-7, ..own(0.3, Solver::CuttingPlane) };
        let best = train_own(&tagging, &data, &tight, &mut Silent, &Cancel::new()).expect("trains").model.certificate;
        for solver in SOLVERS {
            let mut heard = Heard::default();
            let settings = Settings { tolerance: 1e-3, ..own(0.3, solver) };
            let trained = train_own(&tagging, &data, &settings, &mut heard, &Cancel::new()).expect("trains");
            assert!(heard.bounds.is_sorted() && !heard.bounds.is_empty(), "{solver:?}");
            assert!(heard.bounds.iter().all(|bound| *bound <= best.objective), "{solver:?}: {:?}", heard.bounds);
            let (calls, _) = heard.searches.expect("searches are counted");
            // At least one for each example and pass.
            assert!(calls >= 50 * trained.model.certificate.passes, "{solver:?}: {calls}");
            assert_eq!(heard.rounds.is_some(), solver != Solver::FrankWolfe);
            if let Some((rounds, planes, most, square)) = heard.rounds {
                let count = if solver == Solver::NSlack { planes } else { rounds };
                assert!(square > 0.0 && count as f64 <= most.expect("a gap"), "{solver:?}: {count} {most:?}");
            }
        }
    }
}

#[test]
fn stochastic_steps_come_near_the_optimum_on_any_number_of_threads() {
    let data = sequences(60, 19);
    for rescale in Rescale::ALL {
        let tagging = Tagging { transitions: true, rescale };
        let best = train_own(&tagging, &data, &own(0.2, Solver::FrankWolfe), &mut Silent, &Cancel::new());
        let best = best.expect("trains").model.certificate;
        let zero = 0.2 * data.rows() as f64;
        for (solver, batch, project) in
            [(Solver::Sgd, 1, false), (Solver::AveragedSgd, 3, true), (Solver::Pegasos, 1, true)]
        {
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
                let stochastic = Stochastic { batch, project, ..Stochastic::default() };
                let settings = Settings { max_passes: 60, stochastic, ..own(0.2, solver) };
                let trained = pool.install(|| train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()));
                trained.expect("trains").model
            };
            let model = run(1);
            assert_eq!(model.to_bytes().expect("bytes"), run(3).to_bytes().expect("bytes"), "{solver:?}");
            let own = &model.certificate;
            assert!(own.lower_bound.is_none() && model.witness.is_none());
            let lowest = best.lower_bound.expect("a bound");
            assert!(own.objective >= lowest, "{solver:?}: {} {lowest}", own.objective);
            let share = (own.objective - lowest) / (zero - lowest);
            assert!(share < 0.05, "{solver:?} {rescale:?}: {share} of what there is to gain is left");
            model.verify_own(&tagging, &data, &Cancel::new()).expect("the objective holds");
        }
    }
}

fn hard() -> Settings {
    Settings { margin: Margin::Hard, ..own(1.0, Solver::Auto) }
}

#[test]
fn the_hard_margin_is_the_limit_of_the_soft_one_and_that_of_several_classes() {
    let data = noisy_sequences(25, 23, 0.6);
    for rescale in Rescale::ALL {
        for transitions in [false, true] {
            let tagging = Tagging { transitions, rescale };
            let trained = train_own(&tagging, &data, &hard(), &mut Silent, &Cancel::new()).expect("separable");
            let certificate = &trained.model.certificate;
            assert!(certificate.converged && trained.solver == Solver::QuadraticProgram, "{certificate:?}");
            let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
            loaded.verify_own(&tagging, &data, &Cancel::new()).expect("the certificate holds");
            let soft = train_own(&tagging, &data, &own(1e5, Solver::FrankWolfe), &mut Silent, &Cancel::new());
            let soft = soft.expect("trains").model.certificate;
            assert!(soft.converged, "{soft:?}");
            let (low, high) = (soft.lower_bound.expect("a bound"), soft.objective);
            assert!(certificate.objective >= low * (1.0 - 1e-9), "{certificate:?} {soft:?}");
            assert!(certificate.lower_bound.expect("a bound") <= high * (1.0 + 1e-9), "{certificate:?} {soft:?}");
            let mut altered = loaded.clone();
            if let Scorer::Linear { weights, .. } = &mut altered.scorer {
                weights.iter_mut().for_each(|weight| *weight *= 0.99);
            }
            altered.verify_own(&tagging, &data, &Cancel::new()).expect_err("margins are missed");
        }
    }
}

#[test]
fn examples_that_contradict_each_other_are_named() {
    // Rows 1 and 3 are equal, and their tags differ.
    let matrix = Matrix::DenseF64(Dense::new(vec![1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 3, 2).expect("whole rows"));
    let data = Dataset::new(matrix, Targets::Real(vec![0.0, 1.0, 2.0].into())).expect("valid");
    let tagging = Tagging { transitions: false, rescale: Rescale::Margin };
    let error = train_own(&tagging, &data, &hard(), &mut Silent, &Cancel::new()).expect_err("a contradiction");
    assert_eq!(error.code(), Code::NotSeparable);
    let message = error.to_string();
    assert!(message.contains("row 1") && message.contains("row 3") && !message.contains("row 2"), "{message}");
}

#[test]
fn a_time_limit_ends_a_run_with_a_model_that_verifies() {
    let data = sequences(60, 29);
    let tagging = Tagging { transitions: true, rescale: Rescale::Margin };
    for solver in [Solver::FrankWolfe, Solver::NSlack, Solver::CuttingPlane, Solver::AveragedSgd] {
        let settings = Settings { tolerance: 0.0, max_seconds: Some(1e-9), ..own(0.5, solver) };
        let trained = train_own(&tagging, &data, &settings, &mut Silent, &Cancel::new()).expect("trains");
        assert_eq!(trained.stop, Stop::TimeLimit, "{solver:?}");
        assert!(!trained.model.certificate.converged);
        trained.model.verify_own(&tagging, &data, &Cancel::new()).expect("the certificate holds");
    }
}
