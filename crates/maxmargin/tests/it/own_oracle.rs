//! An oracle of the user with only the public interface: search results that cover much and repeat little.
//! docs/own-oracle.md shows this file.

use crate::made::Numbers;
use maxmargin::error::{Code, Result};
use maxmargin::model::Model;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{OwnSettings, Regularisation, Settings, Solver};
use maxmargin::structured::{Examples, Features, Oracle, Rescale};
use maxmargin::testing::check_oracle;
use std::collections::{BTreeMap, BTreeSet};

// -- the oracle: at most 60 lines --
/// Chooses some of the documents that a search found, given their words and, in training, their topics as bits.
struct Diverse {
    words: Vec<Vec<u32>>,
    topics: Vec<u64>,
    chosen: u32,
}

const LEVELS: usize = 4; // Words are told apart by how common they are among the documents found.

impl Diverse {
    /// How many of the documents have each word.
    fn counts(&self, documents: &[u32]) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        let words = documents.iter().flat_map(|&document| &self.words[document as usize]);
        words.for_each(|&word| *counts.entry(word).or_default() += 1);
        counts
    }

    /// The best of all choices, tried one after the other. This is exact, and meant for few documents.
    fn best(&self, found: &[u32], value: impl Fn(&Vec<u32>) -> Result<f64>) -> Result<Vec<u32>> {
        let mut best = (f64::NEG_INFINITY, Vec::new());
        for set in (0u32..1 << found.len()).filter(|set| set.count_ones() == self.chosen) {
            let choice = (0..found.len()).filter(|at| set >> at & 1 == 1).map(|at| found[at]).collect();
            let value = value(&choice)?;
            best = if value > best.0 { (value, choice) } else { best };
        }
        Ok(best.1)
    }
}

impl Oracle for Diverse {
    type Input = Vec<u32>;
    type Output = Vec<u32>;

    /// For each level of words, how many are covered, and how many times they are repeated.
    fn joint_feature(&self, x: &Vec<u32>, y: &Vec<u32>, features: &mut Features) -> Result<()> {
        let found = self.counts(x);
        for (word, times) in self.counts(y) {
            let level = LEVELS * found[&word] / (x.len() + 1);
            features.add(level, 1.0);
            features.add(LEVELS + level, (times - 1) as f64);
        }
        Ok(())
    }

    /// The share of the topics of the right choice that are not covered.
    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> Result<f64> {
        let topics = |choice: &[u32]| choice.iter().fold(0, |all, &document| all | self.topics[document as usize]);
        let right = topics(truth);
        Ok(f64::from((right & !topics(y)).count_ones()) / f64::from(right.count_ones().max(1)))
    }

    fn most_violated(&self, x: &Vec<u32>, truth: &Vec<u32>, w: &[f64]) -> Result<Vec<u32>> {
        self.best(x, |y| Ok(self.loss(truth, y)? + self.score(x, y, w)?))
    }

    fn predict(&self, x: &Vec<u32>, w: &[f64]) -> Result<Vec<u32>> {
        self.best(x, |y| self.score(x, y, w))
    }
}
// -- the end of the oracle --

const FOUND: usize = 7;

/// Searches with seven documents each. A document is about one or two of five topics and has words of them; words that are
/// rare among the documents say nothing.
fn searches(count: usize, seed: u64) -> (Diverse, Vec<Vec<u32>>) {
    let mut numbers = Numbers::new(seed);
    let mut below = |count: usize| (numbers.next() * count as f64) as u32;
    let (mut words, mut topics, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
    for search in 0..count as u32 {
        for _ in 0..FOUND {
            let own: BTreeSet<u32> = (0..1 + below(2)).map(|_| search * 5 + below(5)).collect();
            let common = own.iter().flat_map(|topic| [topic * 2, topic * 2 + 1]).filter(|word| word % 7 > 0);
            // Many rare words make a document long, not useful.
            let rare = (0..below(9)).map(|_| 1_000_000 + below(1_000_000));
            words.push(common.chain(rare).collect());
            topics.push(own.iter().fold(0, |bits, topic| bits | 1 << (topic % 5)));
        }
        inputs.push((0..FOUND as u32).map(|document| search * FOUND as u32 + document).collect());
    }
    (Diverse { words, topics, chosen: 3 }, inputs)
}

/// How many topics a choice covers.
fn covered(oracle: &Diverse, choice: &[u32]) -> u32 {
    choice.iter().fold(0, |all, &document| all | oracle.topics[document as usize]).count_ones()
}

/// The first choice that covers the most topics.
fn right(oracle: &Diverse, found: &[u32]) -> Vec<u32> {
    oracle.best(found, |choice| Ok(f64::from(covered(oracle, choice)))).expect("documents")
}

fn examples(count: usize, seed: u64) -> Examples<Diverse> {
    let (oracle, inputs) = searches(count, seed);
    let outputs = inputs.iter().map(|found| right(&oracle, found)).collect();
    Examples::new(oracle, 2 * LEVELS, inputs, outputs).expect("examples")
}

fn settings(solver: Solver) -> Settings {
    let own = Settings::of(OwnSettings::named("diverse"));
    Settings { regularisation: Regularisation::C(1.0), tolerance: 1e-3, max_passes: 2000, solver, ..own }
}

#[test]
fn an_oracle_of_the_users_own_trains_verifies_saves_and_predicts() {
    let examples = examples(60, 1);
    assert_eq!(check_oracle(&examples), Ok(()));
    let trained = examples.train(&settings(Solver::Auto), &mut Silent, &Cancel::new()).expect("trains");
    let certificate = &trained.model.certificate;
    assert!(certificate.converged && certificate.gap().is_some_and(|gap| gap <= 1e-3), "{certificate:?}");
    assert_eq!((certificate.constraints, certificate.rows, trained.model.features()), (60, 60, 2 * LEVELS));

    // Saved, loaded, verified: the file does not contain the code of the oracle.
    let loaded = Model::from_bytes(&trained.model.to_bytes().expect("bytes")).expect("loads");
    let found = examples.verify(&loaded, &Cancel::new()).expect("the certificate holds");
    assert_eq!((found.objective, found.lower_bound), (certificate.objective, certificate.lower_bound));

    // New searches: the choices cover nearly as many topics as the best ones, and more than the longest documents do.
    let (oracle, inputs) = searches(200, 2);
    let weights = loaded.scorer.weights().expect("weights of the joint features");
    let (mut own, mut best, mut longest) = (0, 0, 0);
    for found in &inputs {
        own += covered(&oracle, &oracle.predict(found, weights).expect("a choice"));
        best += covered(&oracle, &right(&oracle, found));
        let mut by_length = found.clone();
        by_length.sort_by_key(|&document| std::cmp::Reverse(oracle.words[document as usize].len()));
        longest += covered(&oracle, &by_length[..3]);
    }
    assert!(
        f64::from(own) > 0.9 * f64::from(best) && f64::from(longest) <= 0.85 * f64::from(best),
        "{own} {longest} of {best}"
    );
}

#[test]
fn the_search_of_the_example_is_the_best_of_all_subsets() {
    let examples = examples(20, 3);
    let (oracle, mut numbers) = (examples.oracle(), Numbers::new(4));
    for round in 0..10 {
        let w: Vec<f64> = (0..2 * LEVELS).map(|_| numbers.next() - 0.5).collect();
        for example in 0..examples.len() {
            let (found, truth) = examples.example(example);
            let value = |y: &Vec<u32>, loss: f64| {
                loss * oracle.loss(truth, y).expect("a loss") + oracle.score(found, y, &w).expect("a score")
            };
            let (mut violated, mut highest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
            for a in 0..FOUND {
                for b in a + 1..FOUND {
                    for c in b + 1..FOUND {
                        let choice = vec![found[a], found[b], found[c]];
                        violated = violated.max(value(&choice, 1.0));
                        highest = highest.max(value(&choice, 0.0));
                    }
                }
            }
            let own = oracle.most_violated(found, truth, &w).expect("a choice");
            assert!((value(&own, 1.0) - violated).abs() < 1e-12, "{round} {example}");
            let own = oracle.predict(found, &w).expect("a choice");
            assert!((value(&own, 0.0) - highest).abs() < 1e-12, "{round} {example}");
        }
    }
}

#[test]
fn all_solvers_agree_on_the_example() {
    let examples = examples(15, 5);
    let mut found = Vec::new();
    for solver in [Solver::FrankWolfe, Solver::NSlack, Solver::CuttingPlane] {
        let trained = examples.train(&settings(solver), &mut Silent, &Cancel::new()).expect("trains");
        let certificate = &trained.model.certificate;
        assert!(certificate.converged, "{solver:?} {certificate:?}");
        examples.verify(&trained.model, &Cancel::new()).expect("the certificate holds");
        found.push((certificate.objective, certificate.lower_bound.expect("a bound")));
    }
    let highest = found.iter().map(|own| own.1).fold(0.0, f64::max);
    let lowest = found.iter().map(|own| own.0).fold(f64::INFINITY, f64::min);
    assert!(highest <= lowest * (1.0 + 1e-9), "{found:?}");
    // Slack rescaling needs a search that the example does not have.
    let own = OwnSettings { rescale: Rescale::Slack, ..OwnSettings::named("diverse") };
    let error = examples.train(&Settings::of(own), &mut Silent, &Cancel::new()).expect_err("no such search");
    assert_eq!(error.code(), Code::Unsupported);
}

#[test]
fn training_continues_from_a_model_and_proves_the_same_optimum() {
    let examples = examples(30, 6);
    // A run that ends early is never worse than the model that it continues from.
    for seed in 0..8 {
        let short = |passes| Settings { max_passes: passes, tolerance: 0.0, seed, ..settings(Solver::FrankWolfe) };
        let first = examples.train(&short(1 + seed % 3), &mut Silent, &Cancel::new()).expect("trains");
        let start = first.model.start_for(examples.data(), &short(1)).expect("a start");
        let next = examples.train_from(&short(1), Some(&start), None, &mut Silent, &Cancel::new()).expect("trains");
        assert!(next.model.certificate.objective <= first.model.certificate.objective, "{seed}");
        examples.verify(&next.model, &Cancel::new()).expect("the certificate holds");
    }
    for solver in [Solver::FrankWolfe, Solver::CuttingPlane] {
        let rough = Settings { tolerance: 0.1, ..settings(solver) };
        let first = examples.train(&rough, &mut Silent, &Cancel::new()).expect("trains");
        let fine = Settings { tolerance: 1e-6, ..settings(solver) };
        let start = first.model.start_for(examples.data(), &fine).expect("a start");
        let resumed = examples.train_from(&fine, Some(&start), None, &mut Silent, &Cancel::new()).expect("trains");
        let anew = examples.train(&fine, &mut Silent, &Cancel::new()).expect("trains");
        // Nothing that was found is searched for again.
        assert!(resumed.trace[0].objective < anew.trace[0].objective, "{solver:?}");
        assert!(resumed.trace[0].lower_bound > anew.trace[0].lower_bound, "{solver:?}: {:?}", resumed.trace);
        let (resumed, anew) = (resumed.model.certificate, anew.model.certificate);
        assert!(resumed.converged && anew.converged, "{solver:?}");
        assert!((resumed.objective - anew.objective).abs() <= 2e-6 * anew.objective, "{resumed:?} {anew:?}");
    }
}

/// Keeps what a run was judged by.
#[derive(Default)]
struct Judged(Vec<f64>);

impl maxmargin::run::Observer for Judged {
    fn report(&mut self, event: &maxmargin::run::Event<'_>) -> std::ops::ControlFlow<()> {
        if let maxmargin::run::Event::Pass { held_out, .. } = event {
            self.0.push(held_out.expect("judged"));
        }
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn held_out_examples_stop_the_training_at_their_best_pass() {
    use maxmargin::solve::{EarlyStopping, Stop};
    use maxmargin::train::HeldOut;
    let (examples, (_, others)) = (examples(20, 7), searches(40, 8));
    let truths: Vec<Vec<u32>> = {
        let (oracle, inputs) = searches(40, 8);
        inputs.iter().map(|found| right(&oracle, found)).collect()
    };
    let judge = Examples::new(searches(40, 8).0, 2 * LEVELS, others.clone(), truths.clone()).expect("examples");
    let measure = |model: &Model| judge.mean_loss(model.scorer.weights()?, &others, &truths).ok();
    let mut settings = Settings { regularisation: Regularisation::C(100.0), ..settings(Solver::FrankWolfe) };
    settings.stochastic.early_stopping = EarlyStopping::Validation;
    let mut judged = Judged::default();
    let held_out = HeldOut { measure: &measure, higher_is_better: false };
    let trained = examples.train_from(&settings, None, Some(held_out), &mut judged, &Cancel::new()).expect("trains");
    let least = judged.0.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(measure(&trained.model), Some(least), "{:?}", judged.0);
    assert_eq!(trained.stop, Stop::EarlyStopped);

    // The mean loss of its own inputs, one by one.
    let weights = trained.model.scorer.weights().expect("weights");
    let losses = others.iter().zip(&truths).map(|(x, y)| {
        let found = judge.oracle().predict(x, weights).expect("a choice");
        judge.oracle().loss(y, &found).expect("a loss")
    });
    assert!((losses.sum::<f64>() / 40.0 - least).abs() < 1e-12);
    let error = examples.train(&settings, &mut Silent, &Cancel::new()).expect_err("nothing to judge by");
    assert_eq!(error.code(), Code::BadSetting);
}

#[test]
fn the_guide_shows_this_oracle_and_it_is_short() {
    let (here, guide) = (include_str!("own_oracle.rs"), include_str!("../../../../docs/own-oracle.md"));
    for line in here.lines().filter(|line| line.starts_with("use maxmargin::")) {
        assert!(guide.contains(line), "the guide lacks `{line}`");
    }
    let (_, rest) = here.split_once("// -- the oracle: at most 60 lines --\n").expect("a beginning");
    let (oracle, _) = rest.split_once("// -- the end of the oracle --").expect("an end");
    assert!(oracle.lines().count() <= 60, "{} lines", oracle.lines().count());
    assert!(guide.contains(oracle.trim_end()), "docs/own-oracle.md does not show the oracle of this file");
}
