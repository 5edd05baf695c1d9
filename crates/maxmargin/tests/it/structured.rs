//! Structured outputs through every solver: several classes and a chain of tags as structures of the user's own, against
//! the joint classifier and a list of all outputs.

use crate::classes::numbered;
use crate::made::Numbers;
use maxmargin::data::{Dataset, Dense, Groups, Labels, Matrix, Names, Subset, Targets};
use maxmargin::error::{Code, Result};
use maxmargin::loss::Loss;
use maxmargin::model::{Decoder, Model};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, OwnSettings, Regularisation, Settings, Solver};
use maxmargin::solve::{ByOracle, Problem};
use maxmargin::structured::{Plane, Rescale, Scores, Structure, not_an_output};
use maxmargin::task::{Intercept, Multiclass};
use maxmargin::train::{Poses, train, train_own};
use std::ops::Range;

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
    let own = Settings::of(OwnSettings { name: "tags".to_string() });
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
    let mut numbers = Numbers::new(seed);
    let (mut values, mut tags, mut starts) = (Vec::new(), Vec::new(), vec![0u64]);
    for _ in 0..count {
        let mut tag = (3.0 * numbers.next()) as u32;
        for _ in 0..1 + (4.0 * numbers.next()) as usize {
            tag = if numbers.next() < 0.8 { (tag + 1) % 3 } else { tag };
            values.extend((0..3).map(|column| f64::from(u8::from(column == tag)) + 2.0 * (numbers.next() - 0.5)));
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
