//! [`Comparisons`]: pairs of points. A hidden score decides which point is better, or that it is a tie.
//!
//! The simulation of the support vector comparison machine (Venuto, Hocking, Sphanurattana & Sugiyama 2014). A pair x,
//! x′ has the outcome t₁(r(x′) − r(x) + ε) with ε normal of spread ¼; t₁ gives a tie if its argument is within 1 of
//! zero. The hidden score r is the square of a norm ([`Pattern`]). Pairs are drawn until there are the requested
//! numbers of ties and of decided pairs. The published description and the published code differ in where points lie
//! ([`Placed`]); both are available.

use super::require;
use crate::data::{Dataset, Dense, Matrix, Names, Outcome, Pairs, Targets};
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The hidden score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// (Σ |x_j|)²
    #[serde(rename = "1")]
    OneNorm,
    /// Σ x_j²
    #[serde(rename = "2")]
    TwoNorm,
    /// max x_j²
    #[serde(rename = "inf")]
    LargestNorm,
    /// A hidden direction, which a linear model can learn.
    #[serde(rename = "linear")]
    Linear,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 4] = [Pattern::OneNorm, Pattern::TwoNorm, Pattern::LargestNorm, Pattern::Linear];

    /// The name used in flags and tables.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::OneNorm => "1",
            Pattern::TwoNorm => "2",
            Pattern::LargestNorm => "inf",
            Pattern::Linear => "linear",
        }
    }
}

/// Where points lie. The linear pattern has its own points, independent and normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placed {
    /// The first point is uniform in [−2, 2]ᵈ, the second one is near it: a normal step of spread ½ in each direction.
    /// The published table was made this way.
    #[default]
    Near,
    /// Both points are uniform in [−3, 3]ᵈ, as the slides say.
    Apart,
}

impl Placed {
    /// All placements.
    pub const ALL: [Placed; 2] = [Placed::Near, Placed::Apart];

    /// The name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Placed::Near => "near",
            Placed::Apart => "apart",
        }
    }
}

/// The settings of simulated comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComparisonSettings {
    /// Number of pairs.
    pub pairs: u64,
    /// Number of features of a point.
    pub features: usize,
    /// The share of ties.
    pub ties: f64,
    /// The hidden score.
    pub pattern: Pattern,
    /// Where points lie.
    pub placed: Placed,
    /// Spread of the noise on differences of the hidden score.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
    /// Which sample of the same hidden model: 0 for training, another number for test pairs.
    pub stream: u64,
}

impl Default for ComparisonSettings {
    fn default() -> ComparisonSettings {
        ComparisonSettings {
            pairs: 1000,
            features: 2,
            ties: 0.5,
            pattern: Pattern::TwoNorm,
            placed: Placed::Near,
            noise: 0.25,
            seed: 1,
            stream: 0,
        }
    }
}

/// The largest number of values made in memory.
const MOST_NUMBERS: u64 = 4_000_000_000;

/// Number of pairs made together, from one random stream.
const BLOCK: u64 = 1024;

/// After this many draws for one pair, the generator gives up: the noise or the number of features is too large.
const MOST_DRAWS: u64 = 100_000;

/// The spread of differences of a hidden linear score. With thresholds at ±1, about half of them are ties.
const LINEAR_SPREAD: f64 = 1.5;

/// The random streams of this generator.
const MODEL: u64 = 0x636f_6d70_0001;
const PAIRS: u64 = 0x636f_6d70_0002;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Comparisons {
    settings: ComparisonSettings,
    /// The hidden direction of the linear pattern.
    direction: Vec<f64>,
}

impl Comparisons {
    /// A generator with these settings, or an error if they are out of range.
    pub fn new(settings: ComparisonSettings) -> Result<Comparisons> {
        let ComparisonSettings { pairs, features, ties, noise, seed, .. } = settings;
        require((1..=u64::from(u32::MAX) / 2).contains(&pairs), "⟦pairs⟧", pairs, "from 1 to 2,147,483,647")?;
        require((1..=1 << 20).contains(&features), "⟦features⟧", features, "from 1 to 1,048,576")?;
        let numbers = 2 * pairs.saturating_mul(features as u64);
        require(numbers <= MOST_NUMBERS, "⟦pairs⟧", pairs, "so few that the two rows of all pairs fit into 16 GB")?;
        require((0.0..=1.0).contains(&ties), "⟦ties⟧", ties, "a share from 0 to 1")?;
        require(noise.is_finite() && noise >= 0.0, "⟦noise⟧", noise, "zero or a positive number")?;
        let mut random = Random::new(seed, MODEL, 0);
        let mut direction: Vec<f64> = (0..features).map(|_| random.normal()).collect();
        let length = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
        // The difference of two normal points has twice the variance of one.
        let scale = LINEAR_SPREAD / (length * 2f64.sqrt()).max(f64::MIN_POSITIVE);
        direction.iter_mut().for_each(|value| *value *= scale);
        Ok(Comparisons { settings, direction })
    }

    /// The settings.
    pub fn settings(&self) -> &ComparisonSettings {
        &self.settings
    }

    /// The hidden score of a point.
    pub fn score(&self, point: &[f32]) -> f64 {
        let sizes = point.iter().map(|&value| f64::from(value).abs());
        match self.settings.pattern {
            Pattern::OneNorm => sizes.sum::<f64>().powi(2),
            Pattern::TwoNorm => sizes.map(|size| size * size).sum(),
            Pattern::LargestNorm => sizes.fold(0.0, f64::max).powi(2),
            Pattern::Linear => {
                point.iter().zip(&self.direction).map(|(&value, weight)| f64::from(value) * weight).sum()
            }
        }
    }

    /// The error of the hidden score on its own pairs: it knows everything except the noise.
    pub fn least_error(&self) -> Result<f64> {
        let data = self.to_dataset()?;
        let (Some(pairs), Matrix::DenseF32(points)) = (data.pairs(), data.matrix()) else { return Ok(0.0) };
        let wrong = (0..pairs.len()).filter(|&pair| {
            let [left, right] = [pairs.left(), pairs.right()].map(|side| self.score(points.row(side[pair] as usize)));
            outcome(right - left) != pairs.outcome(pair)
        });
        Ok(wrong.count() as f64 / pairs.len() as f64)
    }

    /// All pairs in memory, each as two rows: the left point and the right one.
    pub fn to_dataset(&self) -> Result<Dataset> {
        let ComparisonSettings { pairs, features, .. } = self.settings;
        let mut values = vec![0.0f32; 2 * pairs as usize * features];
        let mut outcomes = vec![Outcome::Tie; pairs as usize];
        let blocks = values.chunks_mut(2 * BLOCK as usize * features).zip(outcomes.chunks_mut(BLOCK as usize));
        parallel::try_each_of(blocks.collect(), |number, (values, outcomes)| {
            self.fill(number as u64, values, outcomes)
        })?;
        let rows = 2 * pairs as u32;
        let sides = Pairs::new((0..rows).step_by(2).collect::<Vec<_>>(), (1..rows).step_by(2).collect::<Vec<_>>())?;
        let names: Names = (1..=features).map(|feature| format!("x{feature}")).collect();
        let matrix = Matrix::DenseF32(Dense::new(values, rows as usize, features)?);
        Dataset::new(matrix, Targets::Absent)?.with_feature_names(names)?.with_pairs(sides.with_outcomes(outcomes)?)
    }

    /// Makes the pairs of a block. The number of its ties depends on the block number, so that the total share is
    /// right.
    fn fill(&self, number: u64, values: &mut [f32], outcomes: &mut [Outcome]) -> Result<()> {
        let ComparisonSettings { features, ties, noise, seed, stream, .. } = self.settings;
        let mut random = Random::new(seed, PAIRS, stream << 40 | number);
        let ties_before = |pairs: u64| (ties * pairs as f64).round() as u64;
        let (first, count) = (number * BLOCK, outcomes.len() as u64);
        let mut ties_left = ties_before(first + count) - ties_before(first);
        let mut decided_left = count - ties_left;
        let mut draws = 0;
        for (points, place) in values.chunks_exact_mut(2 * features).zip(outcomes) {
            loop {
                let (left, right) = points.split_at_mut(features);
                self.draw(&mut random, left, right);
                let drawn = outcome(self.score(right) - self.score(left) + noise * random.normal());
                let left = if drawn == Outcome::Tie { &mut ties_left } else { &mut decided_left };
                if *left > 0 {
                    (*left, *place, draws) = (*left - 1, drawn, 0);
                    break;
                }
                draws += 1;
                if draws >= MOST_DRAWS {
                    let kind = if ties_left > 0 { "ties" } else { "decided pairs" };
                    return Err(Error::new(
                        Code::BadSetting,
                        format!("⟦ties⟧ is {ties}, and these settings produce hardly any {kind}"),
                    )
                    .help("try fewer ⟦features⟧, less ⟦noise⟧, or ⟦ties⟧ nearer to one half"));
                }
            }
        }
        Ok(())
    }

    fn draw(&self, random: &mut Random, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let (one, other) = match (self.settings.pattern, self.settings.placed) {
                (Pattern::Linear, _) => (random.normal(), random.normal()),
                (_, Placed::Near) => {
                    let one = 4.0 * random.uniform() - 2.0;
                    (one, one + 0.5 * random.normal())
                }
                (_, Placed::Apart) => (6.0 * random.uniform() - 3.0, 6.0 * random.uniform() - 3.0),
            };
            (*left, *right) = (one as f32, other as f32);
        }
    }
}

/// t₁
fn outcome(difference: f64) -> Outcome {
    crate::data::outcome_of(difference, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::tests::on_threads;

    fn made(settings: ComparisonSettings) -> Dataset {
        Comparisons::new(settings).and_then(|comparisons| comparisons.to_dataset()).expect("valid")
    }

    #[test]
    fn shares_of_ties_are_as_asked_and_threads_change_nothing() {
        for (pairs, ties, expected) in [(50, 0.5, 25), (3000, 0.1, 300), (7, 1.0, 7), (2049, 0.0, 0)] {
            let settings = ComparisonSettings { pairs, ties, ..ComparisonSettings::default() };
            let data = made(settings.clone());
            assert_eq!(data.pairs().expect("pairs").ties(), expected);
            assert_eq!(data.rows() as u64, 2 * pairs);
            let hash = on_threads(2, || made(settings.clone()).hash().expect("valid"));
            assert_eq!(hash, data.hash().expect("valid"));
            let other = ComparisonSettings { stream: 1, ..settings };
            assert_ne!(made(other).hash().expect("valid"), hash);
        }
    }

    #[test]
    fn the_hidden_score_errs_as_often_as_published() {
        // Published for 10,000 pairs: 7.41, 6.29 and 7.09 per cent.
        for (pattern, published) in [(Pattern::LargestNorm, 7.41), (Pattern::OneNorm, 6.29), (Pattern::TwoNorm, 7.09)] {
            let settings = ComparisonSettings { pairs: 40_000, pattern, ..ComparisonSettings::default() };
            let error = 100.0 * Comparisons::new(settings).and_then(|made| made.least_error()).expect("valid");
            assert!((error - published).abs() < 1.0, "{pattern:?}: {error} and {published}");
        }
    }

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        let refused = |settings: ComparisonSettings| {
            Comparisons::new(settings).and_then(|made| made.to_dataset()).expect_err("refused").code()
        };
        let usual = ComparisonSettings::default;
        assert_eq!(refused(ComparisonSettings { ties: 1.5, ..usual() }), Code::BadSetting);
        assert_eq!(refused(ComparisonSettings { pairs: 0, ..usual() }), Code::BadSetting);
        assert_eq!(refused(ComparisonSettings { noise: f64::NAN, ..usual() }), Code::BadSetting);
        // With this much noise there are no ties.
        assert_eq!(refused(ComparisonSettings { pairs: 3, ties: 1.0, noise: 1e9, ..usual() }), Code::BadSetting);
    }
}
