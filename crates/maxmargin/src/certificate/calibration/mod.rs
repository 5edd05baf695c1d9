//! [`Calibration`]: from scores to probabilities.
//!
//! A calibration is fitted on scores of rows that the model did not learn from. Each map turns one number of a row into
//! a probability: a sigmoid (Platt) or steps with lines between them (isotonic). With two classes that share a score
//! there is one map. With a score for each class there is one for each class; its number is the distance of the score
//! from the largest of the others. With a score for each pair of classes there is one for each pair. The probabilities
//! of the maps are coupled so that those of a row sum to one. Ratings have one map for all cuts: from the distance of the
//! score to a cut, it gives the probability of a rank above the cut.

mod coupling;
mod isotonic;
mod platt;
mod reliability;

pub use coupling::coupled_pairs;
pub use isotonic::Steps;
pub use platt::Sigmoid;
pub(crate) use reliability::binned;
pub use reliability::{Bin, reliability_curve};

use crate::error::{Code, Error, Result};
use crate::parallel;
use serde::{Deserialize, Serialize};

/// How scores become probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probability {
    /// A sigmoid of the score (Platt).
    Platt,
    /// A function of the score that never falls.
    Isotonic,
}

impl Probability {
    /// Both of them.
    pub const ALL: [Probability; 2] = [Probability::Platt, Probability::Isotonic];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Probability::Platt => "platt",
            Probability::Isotonic => "isotonic",
        }
    }
}

/// What the scores of a row are, and how the probabilities of their maps become those of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// One score, that of the second of two classes.
    Complement,
    /// A score for each class; probabilities are divided by their sum.
    Normalised,
    /// A score for each pair of classes, in the order (0, 1), (0, 2), …, (1, 2), …; positive means the first one.
    Pairs,
    /// The distance of the score from each cut between neighbouring ranks. All of them have one map.
    Cuts,
}

impl Coupling {
    /// Number of scores of a row.
    pub fn outputs(self, classes: usize) -> usize {
        match self {
            Coupling::Complement => 1,
            Coupling::Normalised => classes,
            Coupling::Pairs => classes * classes.saturating_sub(1) / 2,
            Coupling::Cuts => classes.saturating_sub(1),
        }
    }

    /// Number of maps.
    fn maps(self, classes: usize) -> usize {
        if self == Coupling::Cuts { 1 } else { self.outputs(classes) }
    }
}

/// The map of one number to a probability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Map {
    /// A sigmoid.
    Sigmoid(Sigmoid),
    /// Steps with lines between them.
    Steps(Steps),
}

impl Map {
    /// The probability.
    pub fn probability(&self, number: f64) -> f64 {
        match self {
            Map::Sigmoid(sigmoid) => sigmoid.probability(number),
            Map::Steps(steps) => steps.probability(number),
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            Map::Sigmoid(sigmoid) => sigmoid.is_valid(),
            Map::Steps(steps) => steps.is_valid(),
        }
    }
}

/// How the scores of a model become probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Calibration {
    /// The kind of its maps.
    pub method: Probability,
    /// How their probabilities are coupled.
    pub coupling: Coupling,
    /// Number of classes.
    pub classes: usize,
    /// The maps: one for each score of a row, or one for all cuts.
    pub maps: Vec<Map>,
    /// Number of folds whose held-out scores it was fitted on; 0 if it was fitted on scores from elsewhere.
    #[serde(default)]
    pub folds: usize,
    /// Number of rows that it was fitted on.
    pub rows: u64,
    /// Number of rows left out, because no other fold had their class.
    #[serde(default)]
    pub left_out: u64,
    /// The probabilities of the predicted class on the rows that it was fitted on, in bins.
    #[serde(default)]
    pub bins: Vec<Bin>,
}

/// The scores that a calibration is fitted on.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// The scores of each row next to each other. A score that does not exist is not a number.
    pub scores: &'a [f64],
    /// The class of each row.
    pub codes: &'a [u32],
    /// How much each row counts.
    pub weights: Option<&'a [f64]>,
    /// Number of classes.
    pub classes: usize,
}

impl Calibration {
    /// Fits its maps.
    pub fn fit(method: Probability, coupling: Coupling, scored: Scored<'_>) -> Result<Calibration> {
        let Scored { scores, codes, weights, classes } = scored;
        let outputs = coupling.outputs(classes);
        if classes < 2 || scores.len() != codes.len() * outputs || weights.is_some_and(|own| own.len() != codes.len()) {
            return Err(Error::new(Code::Internal, "scores and classes of a calibration do not fit together"));
        }
        if codes.iter().any(|&code| code as usize >= classes) || scores.iter().any(|score| score.is_infinite()) {
            return Err(Error::new(Code::Internal, "a calibration has a class or a score out of range"));
        }
        let pairs = if coupling == Coupling::Pairs { pairs_of(classes) } else { Vec::new() };
        let leaders: Vec<Option<Leader>> = scores.chunks_exact(outputs).map(|own| coupling.leader(own)).collect();
        let maps = parallel::map(coupling.maps(classes), |output| {
            let mut sample = Sample::default();
            for (row, own) in scores.chunks_exact(outputs).enumerate() {
                let class = codes[row] as usize;
                let weight = weights.map_or(1.0, |weights| weights[row]);
                if coupling == Coupling::Cuts && weight > 0.0 {
                    let known = own.iter().enumerate().filter(|(_, number)| !number.is_nan());
                    known.for_each(|(cut, &number)| sample.push(number, class > cut, weight));
                    continue;
                }
                let positive = match coupling {
                    Coupling::Complement => class == 1,
                    Coupling::Normalised => class == output,
                    Coupling::Pairs if class != pairs[output].0 && class != pairs[output].1 => continue,
                    Coupling::Pairs => class == pairs[output].0,
                    // A row that weighs nothing.
                    Coupling::Cuts => continue,
                };
                let number = number(own, output, leaders[row].as_ref());
                if !number.is_nan() && weight > 0.0 {
                    sample.push(number, positive, weight);
                }
            }
            match method {
                Probability::Platt => Map::Sigmoid(Sigmoid::fit(&sample)),
                Probability::Isotonic => Map::Steps(Steps::fit(&sample)),
            }
        });
        let rows = codes.len() as u64;
        let mut found = Calibration { method, coupling, classes, maps, folds: 0, rows, left_out: 0, bins: Vec::new() };
        found.bins = found.reliability(scored);
        Ok(found)
    }

    /// The reliability of the predicted class, by the largest score, on rows that have all their scores.
    fn reliability(&self, scored: Scored<'_>) -> Vec<Bin> {
        const BINS: usize = 10;
        let outputs = self.coupling.outputs(self.classes);
        let (mut probabilities, mut right, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (row, own) in scored.scores.chunks_exact(outputs).enumerate() {
            if own.iter().any(|score| score.is_nan()) {
                continue;
            }
            let shares = self.of_row(own);
            let best = (0..shares.len()).fold(0, |best, class| if shares[class] > shares[best] { class } else { best });
            probabilities.push(shares[best]);
            right.push(scored.codes[row] as usize == best);
            weights.push(scored.weights.map_or(1.0, |weights| weights[row]));
        }
        binned(&probabilities, &right, BINS, |row| weights[row])
    }

    /// The probabilities of all classes for each row, given the scores of the rows next to each other.
    pub fn probabilities(&self, scores: &[f64]) -> Vec<f64> {
        let outputs = self.coupling.outputs(self.classes);
        let rows = scores.len() / outputs;
        parallel::collect(rows, 64, |row| self.of_row(&scores[row * outputs..(row + 1) * outputs])).concat()
    }

    fn of_row(&self, scores: &[f64]) -> Vec<f64> {
        let leader = self.coupling.leader(scores);
        let share = |output: usize| self.maps[output].probability(number(scores, output, leader.as_ref()));
        match self.coupling {
            Coupling::Complement => {
                let second = share(0);
                vec![1.0 - second, second]
            }
            Coupling::Normalised => {
                let shares: Vec<f64> = (0..self.classes).map(share).collect();
                let sum: f64 = shares.iter().sum();
                match sum > 0.0 {
                    true => shares.iter().map(|share| share / sum).collect(),
                    // All of them underflowed.
                    false => vec![1.0 / self.classes as f64; self.classes],
                }
            }
            Coupling::Pairs => coupled_pairs(self.classes, &(0..self.maps.len()).map(share).collect::<Vec<_>>()),
            Coupling::Cuts => {
                let shares = of_cuts(scores.iter().map(|&number| self.maps[0].probability(number)));
                match self.method {
                    Probability::Platt => shares,
                    // Where steps are flat, a rank would have no share at all.
                    Probability::Isotonic => at_least(shares, 1.0 / (self.rows as f64 + 2.0)),
                }
            }
        }
    }

    /// Whether its parts fit together, as in a file that is not damaged.
    pub(crate) fn is_valid(&self) -> bool {
        self.classes >= 2
            && (self.coupling != Coupling::Complement || self.classes == 2)
            && self.maps.len() == self.coupling.maps(self.classes)
            && self.maps.iter().all(Map::is_valid)
            && self.bins.iter().all(|bin| [bin.weight, bin.probability, bin.share].iter().all(|part| part.is_finite()))
    }
}

/// The probabilities of ranks, given those of a rank above each cut, which never rise from cut to cut.
pub(crate) fn of_cuts(above: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut before = 1.0;
    let mut shares: Vec<f64> = above
        .map(|above| {
            let above = above.min(before);
            let share = before - above;
            before = above;
            share
        })
        .collect();
    shares.push(before);
    shares
}

/// Raises small shares to a least one, and divides by their sum.
fn at_least(shares: Vec<f64>, least: f64) -> Vec<f64> {
    let sum: f64 = shares.iter().map(|share| share.max(least)).sum();
    shares.into_iter().map(|share| share.max(least) / sum).collect()
}

/// The class with the largest score of a row, this score, and the largest of the others. A score that does not exist is
/// not a number.
#[derive(Clone, Copy, Debug)]
struct Leader {
    class: usize,
    score: f64,
    next: f64,
}

impl Leader {
    fn of(scores: &[f64]) -> Leader {
        let mut found = Leader { class: 0, score: f64::NAN, next: f64::NAN };
        for (class, &score) in scores.iter().enumerate().filter(|(_, score)| !score.is_nan()) {
            if found.score.is_nan() || score > found.score {
                found = Leader { class, score, next: found.score };
            } else {
                // f64::max ignores a score that does not exist.
                found.next = found.next.max(score);
            }
        }
        found
    }
}

impl Coupling {
    /// The leader of a row, if the numbers of the maps are distances from the largest of the other scores.
    fn leader(self, scores: &[f64]) -> Option<Leader> {
        (self == Coupling::Normalised).then(|| Leader::of(scores))
    }
}

/// The number of a row that a map takes.
fn number(scores: &[f64], output: usize, leader: Option<&Leader>) -> f64 {
    match leader {
        None => scores[output],
        Some(leader) if leader.class == output => scores[output] - leader.next,
        Some(leader) => scores[output] - leader.score,
    }
}

/// All pairs of classes, the first one ascending, then the second.
pub(crate) fn pairs_of(classes: usize) -> Vec<(usize, usize)> {
    (0..classes).flat_map(|first| (first + 1..classes).map(move |second| (first, second))).collect()
}

/// Numbers with their outcomes and weights.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    numbers: Vec<f64>,
    positive: Vec<bool>,
    weights: Vec<f64>,
}

impl Sample {
    pub(crate) fn push(&mut self, number: f64, positive: bool, weight: f64) {
        self.numbers.push(number);
        self.positive.push(positive);
        self.weights.push(weight);
    }

    /// The total weights of negatives and positives.
    fn totals(&self) -> [f64; 2] {
        let mut totals = [0.0; 2];
        for (positive, weight) in self.positive.iter().zip(&self.weights) {
            totals[usize::from(*positive)] += weight;
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn scored(classes: usize, outputs: usize, rows: usize) -> (Vec<f64>, Vec<u32>) {
        let mut random = Random::new(7, 1, 0);
        let codes: Vec<u32> = (0..rows).map(|_| random.below(classes as u64) as u32).collect();
        let scores = (0..rows * outputs).map(|_| random.normal()).collect();
        (scores, codes)
    }

    #[test]
    fn probabilities_of_every_coupling_sum_to_one_and_follow_the_scores() {
        let all = [(Coupling::Complement, 2), (Coupling::Normalised, 4), (Coupling::Pairs, 4), (Coupling::Cuts, 4)];
        for (coupling, classes) in all {
            let outputs = coupling.outputs(classes);
            let (mut scores, codes) = scored(classes, outputs, 400);
            let pairs = pairs_of(classes);
            for (row, own) in scores.chunks_exact_mut(outputs).enumerate() {
                let class = codes[row] as usize;
                match coupling {
                    Coupling::Complement => own[0] += 2.0 * (class as f64) - 1.0,
                    Coupling::Normalised => own[class] += 1.5,
                    Coupling::Pairs => own.iter_mut().zip(&pairs).for_each(|(score, pair)| {
                        *score += f64::from(u8::from(pair.0 == class)) - f64::from(u8::from(pair.1 == class));
                    }),
                    Coupling::Cuts => {
                        let score = 1.5 * class as f64 + own[0];
                        own.iter_mut().enumerate().for_each(|(cut, own)| *own = score - 1.5 * cut as f64 - 0.75);
                    }
                }
            }
            for method in Probability::ALL {
                let scored = Scored { scores: &scores, codes: &codes, weights: None, classes };
                let found = Calibration::fit(method, coupling, scored).expect("fits");
                assert!(found.is_valid() && found.maps.len() == coupling.maps(classes));
                let probabilities = found.probabilities(&scores);
                let mut loss = 0.0;
                for (row, own) in probabilities.chunks_exact(classes).enumerate() {
                    assert!((own.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{own:?}");
                    assert!(own.iter().all(|share| (0.0..=1.0).contains(share)), "{own:?}");
                    loss -= own[codes[row] as usize].max(1e-300).ln() / codes.len() as f64;
                }
                assert!(loss < 0.9 * (classes as f64).ln(), "{coupling:?} {method:?} {loss}");
                assert!((found.bins.iter().map(|bin| bin.weight).sum::<f64>() - 400.0).abs() < 1e-9);
                let text = serde_json::to_string(&found).expect("JSON");
                assert_eq!(serde_json::from_str::<Calibration>(&text).expect("read back"), found);
            }
        }
    }

    #[test]
    fn numbers_are_distances_from_the_largest_of_the_other_scores() {
        let none = f64::NAN;
        for scores in
            [&[1.0, 3.0, 2.0][..], &[2.0, 2.0, 1.0], &[none, 1.0, none], &[none; 3], &[-1.0, none, 4.0], &[5.0]]
        {
            let leader = Coupling::Normalised.leader(scores);
            for output in 0..scores.len() {
                let others = scores.iter().enumerate().filter(|(other, _)| *other != output);
                let expected = scores[output] - others.map(|(_, score)| *score).fold(f64::NAN, f64::max);
                let found = number(scores, output, leader.as_ref());
                assert!(found == expected || (found.is_nan() && expected.is_nan()), "{scores:?} {output}");
            }
        }
    }

    #[test]
    fn many_classes_take_time_in_proportion_to_their_number() {
        // A scan of all scores for each of them would be 3.2e10 steps.
        const CLASSES: usize = 20_000;
        let scores: Vec<f64> = (0..CLASSES).map(|class| (class * 7919 % CLASSES) as f64).collect();
        let map = Map::Sigmoid(Sigmoid { slope: 1.0, offset: 0.0 });
        let (maps, coupling) = (vec![map; CLASSES], Coupling::Normalised);
        let many = Calibration {
            method: Probability::Platt,
            coupling,
            classes: CLASSES,
            maps,
            folds: 0,
            rows: 0,
            left_out: 0,
            bins: Vec::new(),
        };
        let began = std::time::Instant::now();
        let found = many.probabilities(&scores.repeat(80));
        assert!((found.iter().sum::<f64>() - 80.0).abs() < 1e-6);
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    #[test]
    fn ranks_share_what_is_left_between_their_cuts() {
        let found = of_cuts([0.9, 0.6, 0.7, 0.1].into_iter());
        let expected = [0.1, 0.3, 0.0, 0.5, 0.1];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
        // All cuts together are one sample of two classes.
        let numbers = [0.5, -1.0, 1.5, 0.2, -0.4, -2.0, f64::NAN, 0.3];
        let scored =
            Scored { scores: &numbers, codes: &[1, 2, 0, 1], weights: Some(&[1.0, 2.0, 1.0, 3.0]), classes: 3 };
        let found = Calibration::fit(Probability::Platt, Coupling::Cuts, scored).expect("fits");
        let (numbers, codes) = ([0.5, -1.0, 1.5, 0.2, -0.4, -2.0, 0.3], [1, 0, 1, 1, 0, 0, 0]);
        let weights = Some(&[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 3.0][..]);
        let pairs = Scored { scores: &numbers, codes: &codes, weights, classes: 2 };
        let two = Calibration::fit(Probability::Platt, Coupling::Complement, pairs).expect("fits");
        assert_eq!(found.maps, two.maps);
    }

    #[test]
    fn scores_that_do_not_exist_are_left_out() {
        let scores = [1.0, 0.0, f64::NAN, 0.0, 1.0, 0.2, 0.5, 0.0, 1.0, 0.1, 2.0, 0.0];
        let scored = Scored { scores: &scores, codes: &[0, 1, 2, 1], weights: None, classes: 3 };
        let found = Calibration::fit(Probability::Platt, Coupling::Normalised, scored).expect("fits");
        assert!(found.probabilities(&[1.0, 0.0, 0.5]).iter().all(|share| share.is_finite()));
        let short = Scored { scores: &scores[..4], ..scored };
        assert!(Calibration::fit(Probability::Platt, Coupling::Normalised, short).is_err());
    }
}
