//! Bradley and Terry's model of comparisons, with Davidson's extension for ties (Davidson, On extending the
//! Bradley–Terry model to accommodate ties in paired comparison experiments, Journal of the American Statistical
//! Association 65, 1970).
//!
//! With log-strengths θ, z = θ_right − θ_left and η = log ν, where ν measures how common ties are:
//!
//! ```text
//! P(right), P(left), P(tie)  ∝  exp(z/2), exp(−z/2), exp(η)
//! min over θ, η    ½‖θ‖² + C · Σ_p weight_p · −log P(outcome_p)
//! ```
//! The logarithm of a sum of exponentials of linear functions is convex, so the minimum is unique. The ridge keeps the
//! strength of items that won or lost every game finite, and it makes items that never met comparable. C = 100 makes
//! the ridge small. η is free, as all thresholds are: a penalty would pull it to 0, where items of equal strength tie
//! as often as one of them wins. With ties and decided games η has a minimum. Without ties, ν is 0 and η is left out.
//! With nothing but ties, ν is infinite: every game ends in a tie for certain, and all strengths are 0.
//!
//! The solver is Newton's method ([`Newton`]), with exact steps for few items and conjugate gradients for many. It
//! stops at a relative gap that the gradient proves: the objective is 1-strongly convex in θ, so with the best η it is
//! at most ½‖gradient‖² above its minimum. Each product in a step costs a pass over the pairs. Rao and Kupper's model
//! of ties is not offered.

use super::{Game, games};
use crate::data::{Outcome, Pairs};
use crate::error::Result;
use crate::run::{Cancel, Observer};
use crate::solve::{CurvedRisk, Newton, Preconditioner, Risk, Stop, TracePoint};

/// With at most this many coordinates, the whole Hessian is formed.
const EXACT: usize = 300;

/// How to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BradleyTerrySettings {
    /// The weight of the data relative to the ridge.
    pub c: f64,
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The largest number of steps.
    pub max_passes: u64,
}

impl Default for BradleyTerrySettings {
    fn default() -> BradleyTerrySettings {
        BradleyTerrySettings { c: 100.0, tolerance: 1e-9, max_passes: 200 }
    }
}

/// The fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct BradleyTerry {
    /// The log-strength θ of each row.
    pub strengths: Vec<f64>,
    /// η: two items of equal strength tie exp(η) times as often as one of them wins. `None` without ties, infinite if all
    /// games are ties.
    pub ties: Option<f64>,
    /// The objective.
    pub objective: f64,
    /// A lower bound for the objective of any strengths.
    pub lower_bound: f64,
    /// Number of passes.
    pub passes: u64,
    /// Why it stopped.
    pub stop: Stop,
    /// The progress of the fit.
    pub trace: Vec<TracePoint>,
}

impl BradleyTerry {
    /// The probabilities of left, tie and right for a difference θ_right − θ_left, in the order of [`Outcome::ALL`].
    pub fn probabilities(&self, difference: f64) -> [f64; 3] {
        let Shares { left, tie, right, .. } = shares(difference, self.ties);
        [left, tie, right]
    }
}

/// Fits the model to all pairs.
pub fn bradley_terry(
    pairs: &Pairs,
    rows: usize,
    settings: &BradleyTerrySettings,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<BradleyTerry> {
    let mut risk = Davidson::new(pairs, rows, settings.c);
    if risk.ties && !risk.decided {
        return Ok(BradleyTerry {
            strengths: vec![0.0; rows],
            ties: Some(f64::INFINITY),
            objective: 0.0,
            lower_bound: 0.0,
            passes: 0,
            stop: Stop::Converged,
            trace: Vec::new(),
        });
    }
    let newton = Newton { tolerance: settings.tolerance, max_passes: settings.max_passes };
    let solution = newton.solve(&mut risk, rows, None, observer, cancel)?;
    Ok(BradleyTerry {
        strengths: solution.weights,
        ties: solution.thresholds.first().copied(),
        objective: solution.objective,
        lower_bound: solution.lower_bound.unwrap_or(0.0),
        passes: solution.passes,
        stop: solution.stop,
        trace: solution.trace,
    })
}

/// The probabilities of the three outcomes, and the logarithm of their normalising constant.
struct Shares {
    left: f64,
    tie: f64,
    right: f64,
    log_sum: f64,
}

fn shares(z: f64, eta: Option<f64>) -> Shares {
    let tie = eta.unwrap_or(f64::NEG_INFINITY);
    if tie == f64::INFINITY {
        return Shares { left: 0.0, tie: 1.0, right: 0.0, log_sum: tie };
    }
    let most = (z.abs() / 2.0).max(tie);
    let [left, tie, right] = [-z / 2.0 - most, tie - most, z / 2.0 - most].map(f64::exp);
    let sum = left + tie + right;
    Shares { left: left / sum, tie: tie / sum, right: right / sum, log_sum: most + sum.ln() }
}

/// The objective as a function of (θ, η).
struct Davidson {
    games: Vec<Game>,
    rows: usize,
    c: f64,
    /// Whether η is a coordinate: whether any game that counts is a tie.
    ties: bool,
    /// Whether any game that counts is decided.
    decided: bool,
    /// The point of the last evaluation, and the line from it.
    point: Vec<f64>,
    direction: Vec<f64>,
    /// Second derivatives of each game there: by z, by z and η, by η.
    curvatures: Vec<[f64; 3]>,
}

impl Davidson {
    fn new(pairs: &Pairs, rows: usize, c: f64) -> Davidson {
        let games: Vec<Game> = games(pairs).collect();
        let any = |tied: bool| games.iter().any(|game| game.weight > 0.0 && (game.outcome == Outcome::Tie) == tied);
        let (ties, decided) = (any(true), any(false));
        Davidson { games, rows, c, ties, decided, point: Vec::new(), direction: Vec::new(), curvatures: Vec::new() }
    }

    fn eta(&self, w: &[f64]) -> Option<f64> {
        self.ties.then(|| w[self.rows])
    }

    /// The loss of a game, its slopes by z and η, and the probabilities.
    fn loss(game: &Game, z: f64, eta: Option<f64>) -> (f64, f64, f64, Shares) {
        let shares = shares(z, eta);
        let sign = f64::from(game.outcome.sign());
        let tied = if game.outcome == Outcome::Tie { 1.0 } else { 0.0 };
        let chosen = sign * z / 2.0 + tied * eta.unwrap_or(0.0);
        (shares.log_sum - chosen, (shares.right - shares.left - sign) / 2.0, shares.tie - tied, shares)
    }
}

fn difference(game: &Game, w: &[f64]) -> f64 {
    w[game.right as usize] - w[game.left as usize]
}

fn square(w: &[f64]) -> f64 {
    w.iter().map(|w| w * w).sum()
}

impl Risk for Davidson {
    fn dim(&self) -> usize {
        self.rows + usize::from(self.ties)
    }

    fn penalised(&self) -> usize {
        self.rows
    }

    fn evaluate(&mut self, w: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let eta = self.eta(w);
        gradient.copy_from_slice(w);
        gradient[self.rows..].fill(0.0);
        let mut value = 0.0;
        self.curvatures.clear();
        for game in &self.games {
            let (loss, by_z, by_eta, Shares { left, tie, right, .. }) = Davidson::loss(game, difference(game, w), eta);
            let cost = self.c * game.weight;
            value += cost * loss;
            gradient[game.right as usize] += cost * by_z;
            gradient[game.left as usize] -= cost * by_z;
            if self.ties {
                gradient[self.rows] += cost * by_eta;
            }
            let lean = (right - left) / 2.0;
            let curvature = [(left + right) / 4.0 - lean * lean, -lean * tie, tie * (1.0 - tie)];
            self.curvatures.push(curvature.map(|curvature| cost * curvature));
        }
        self.point.clear();
        self.point.extend_from_slice(w);
        Ok(value + square(&w[..self.rows]) / 2.0)
    }

    fn line(&mut self, direction: &[f64]) -> Result<()> {
        self.direction.clear();
        self.direction.extend_from_slice(direction);
        Ok(())
    }

    fn along(&mut self, step: f64) -> Result<(f64, f64)> {
        let w: Vec<f64> = self.point.iter().zip(&self.direction).map(|(point, way)| point + step * way).collect();
        let eta = self.eta(&w);
        let eta_way = if self.ties { self.direction[self.rows] } else { 0.0 };
        let (mut value, mut slope) = (0.0, 0.0);
        for game in &self.games {
            let (loss, by_z, by_eta, _) = Davidson::loss(game, difference(game, &w), eta);
            let cost = self.c * game.weight;
            value += cost * loss;
            slope += cost * (by_z * difference(game, &self.direction) + by_eta * eta_way);
        }
        let strengths = &w[..self.rows];
        let along: f64 = strengths.iter().zip(&self.direction).map(|(w, way)| w * way).sum();
        Ok((value + square(strengths) / 2.0, slope + along))
    }
}

impl CurvedRisk for Davidson {
    fn has_exact_hessian(&self) -> bool {
        self.dim() <= EXACT
    }

    fn hessian(&mut self) -> Result<Vec<f64>> {
        let dim = self.dim();
        let mut hessian = vec![0.0; dim * dim];
        for at in 0..self.rows {
            hessian[at * dim + at] = 1.0;
        }
        for (game, [zz, ze, ee]) in self.games.iter().zip(&self.curvatures) {
            let (left, right) = (game.left as usize, game.right as usize);
            hessian[left * dim + left] += zz;
            hessian[right * dim + right] += zz;
            hessian[left * dim + right] -= zz;
            hessian[right * dim + left] -= zz;
            if self.ties {
                let eta = self.rows;
                for (row, sign) in [(right, 1.0), (left, -1.0)] {
                    hessian[row * dim + eta] += sign * ze;
                    hessian[eta * dim + row] += sign * ze;
                }
                hessian[eta * dim + eta] += ee;
            }
        }
        Ok(hessian)
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) -> Result<()> {
        out.copy_from_slice(direction);
        out[self.rows..].fill(0.0);
        let eta_way = if self.ties { direction[self.rows] } else { 0.0 };
        for (game, [zz, ze, ee]) in self.games.iter().zip(&self.curvatures) {
            let way = difference(game, direction);
            let by_z = zz * way + ze * eta_way;
            out[game.right as usize] += by_z;
            out[game.left as usize] -= by_z;
            if self.ties {
                out[self.rows] += ze * way + ee * eta_way;
            }
        }
        Ok(())
    }

    fn preconditioner(&mut self) -> Result<Preconditioner> {
        let mut diagonal = vec![1.0; self.dim()];
        diagonal[self.rows..].fill(0.0);
        for (game, [zz, _, ee]) in self.games.iter().zip(&self.curvatures) {
            diagonal[game.left as usize] += zz;
            diagonal[game.right as usize] += zz;
            if self.ties {
                diagonal[self.rows] += ee;
            }
        }
        Ok(Preconditioner::Diagonal(diagonal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::run::Silent;

    fn fit(pairs: &Pairs, rows: usize, settings: BradleyTerrySettings) -> BradleyTerry {
        bradley_terry(pairs, rows, &settings, &mut Silent, &Cancel::new()).expect("it converges")
    }

    fn random_pairs(rows: u64, count: usize, ties: bool) -> Pairs {
        let mut random = Random::new(5, 0, 0);
        let (mut left, mut right, mut outcomes, mut weights) = (vec![], vec![], vec![], vec![]);
        while left.len() < count {
            let (a, b) = (random.below(rows) as u32, random.below(rows) as u32);
            if a == b {
                continue;
            }
            // The larger number tends to win.
            let sign = if ties && random.chance(0.3) {
                0
            } else if random.chance(0.7) == (b > a) {
                1
            } else {
                -1
            };
            left.push(a);
            right.push(b);
            outcomes.push(Outcome::of_sign(sign));
            weights.push(random.uniform() * 2.0);
        }
        Pairs::new(left, right)
            .expect("valid")
            .with_outcomes(outcomes)
            .expect("valid")
            .with_weights(weights)
            .expect("valid")
    }

    /// The objective from its definition.
    fn objective(pairs: &Pairs, c: f64, theta: &[f64], eta: Option<f64>) -> f64 {
        let strength = |row: u32| theta[row as usize].exp();
        let nu = eta.map_or(0.0, f64::exp);
        let ridge: f64 = theta.iter().map(|theta| theta * theta / 2.0).sum();
        let loss: f64 = (0..pairs.len())
            .map(|pair| {
                let (left, right) = (strength(pairs.left()[pair]), strength(pairs.right()[pair]));
                let tie = nu * (left * right).sqrt();
                let chosen = match pairs.outcome(pair) {
                    Outcome::Left => left,
                    Outcome::Right => right,
                    Outcome::Tie => tie,
                };
                -pairs.weight(pair) * (chosen / (left + right + tie)).ln()
            })
            .sum();
        ridge + c * loss
    }

    #[test]
    fn value_gradient_line_and_curvature_are_those_of_the_definition() {
        for ties in [true, false] {
            let (rows, c) = (6, 3.0);
            let pairs = random_pairs(rows as u64, 25, ties);
            let mut risk = Davidson::new(&pairs, rows, c);
            let dim = risk.dim();
            assert_eq!(dim, rows + usize::from(ties));
            let mut random = Random::new(9, 0, 0);
            let w: Vec<f64> = (0..dim).map(|_| random.normal()).collect();
            let way: Vec<f64> = (0..dim).map(|_| random.normal()).collect();
            let at = |w: &[f64]| objective(&pairs, c, &w[..rows], ties.then(|| w[rows]));
            let moved =
                |way: &[f64], step: f64| -> Vec<f64> { w.iter().zip(way).map(|(w, way)| w + step * way).collect() };
            let mut gradient = vec![0.0; dim];
            let value = risk.evaluate(&w, &mut gradient).expect("a value");
            assert!((value - at(&w)).abs() < 1e-10 * value);
            let step = 1e-5;
            for (axis, &found) in gradient.iter().enumerate() {
                let unit: Vec<f64> = (0..dim).map(|other| f64::from(u8::from(other == axis))).collect();
                let slope = (at(&moved(&unit, step)) - at(&moved(&unit, -step))) / (2.0 * step);
                assert!((slope - found).abs() < 1e-6 * slope.abs().max(1.0), "{slope} {found}");
            }
            risk.line(&way).expect("a line");
            let (value, slope) = risk.along(0.7).expect("a value");
            assert!((value - at(&moved(&way, 0.7))).abs() < 1e-10 * value);
            let expected = (at(&moved(&way, 0.7 + step)) - at(&moved(&way, 0.7 - step))) / (2.0 * step);
            assert!((slope - expected).abs() < 1e-6 * expected.abs().max(1.0));
            // The Hessian from central differences of gradients, compared as a matrix and as a product.
            let (mut product, mut above, mut below) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
            risk.hessian_times(&way, &mut product).expect("a product");
            let hessian = risk.hessian().expect("a Hessian");
            let Ok(Preconditioner::Diagonal(diagonal)) = risk.preconditioner() else { panic!("a diagonal") };
            risk.evaluate(&moved(&way, step), &mut above).expect("a value");
            risk.evaluate(&moved(&way, -step), &mut below).expect("a value");
            for row in 0..dim {
                let change = (above[row] - below[row]) / (2.0 * step);
                assert!((product[row] - change).abs() < 1e-6 * change.abs().max(1.0));
                let whole: f64 = hessian[row * dim..][..dim].iter().zip(&way).map(|(a, b)| a * b).sum();
                assert!((product[row] - whole).abs() < 1e-10 * whole.abs().max(1.0));
                assert_eq!(diagonal[row], hessian[row * dim + row]);
            }
        }
    }

    #[test]
    fn few_and_many_items_end_at_a_proven_minimum() {
        for (rows, count) in [(20, 200), (EXACT as u64 + 200, 5000)] {
            let pairs = random_pairs(rows, count, true);
            let found = fit(&pairs, rows as usize, BradleyTerrySettings::default());
            assert_eq!(found.stop, Stop::Converged);
            assert!(found.lower_bound <= found.objective);
            assert!(found.objective - found.lower_bound <= 1e-9 * found.objective);
        }
    }

    #[test]
    fn two_items_have_the_odds_of_their_games() {
        // Six wins, two losses, four ties: without a ridge, exp(θ) and ν follow from these numbers.
        let outcomes = [vec![Outcome::Left; 6], vec![Outcome::Right; 2], vec![Outcome::Tie; 4]].concat();
        let pairs = Pairs::new(vec![0; 12], vec![1; 12]).expect("valid").with_outcomes(outcomes).expect("valid");
        let found = fit(&pairs, 2, BradleyTerrySettings { c: 1e9, ..BradleyTerrySettings::default() });
        let [left, tie, right] = found.probabilities(found.strengths[1] - found.strengths[0]);
        for (found, share) in [(left, 0.5), (tie, 1.0 / 3.0), (right, 1.0 / 6.0)] {
            assert!((found - share).abs() < 1e-4, "{found} {share}");
        }
        assert!((found.strengths[0] + found.strengths[1]).abs() < 1e-4);
    }

    #[test]
    fn the_share_of_ties_is_fitted_exactly_at_any_cost() {
        // By the slope in η, the expected number of ties is the observed number, whatever the ridge does to strengths.
        let outcomes = [vec![Outcome::Left; 1], vec![Outcome::Right; 1], vec![Outcome::Tie; 18]].concat();
        let pairs = Pairs::new(vec![0; 20], vec![1; 20]).expect("valid").with_outcomes(outcomes).expect("valid");
        for c in [1e-3, 0.1, 1.0, 100.0] {
            let found = fit(&pairs, 2, BradleyTerrySettings { c, ..BradleyTerrySettings::default() });
            assert!((found.probabilities(0.0)[1] - 0.9).abs() < 1e-6, "C = {c}: {:?}", found.probabilities(0.0));
            assert_eq!(found.stop, Stop::Converged);
        }
    }

    #[test]
    fn ties_alone_are_certain_and_ties_of_no_weight_do_not_count() {
        let outcomes = vec![Outcome::Tie, Outcome::Tie, Outcome::Left];
        let pairs = |weights| {
            let pairs = Pairs::new(vec![0, 1, 0], vec![1, 2, 2]).expect("valid");
            pairs.with_outcomes(outcomes.clone()).and_then(|pairs| pairs.with_weights(weights)).expect("valid")
        };
        let certain = fit(&pairs(vec![1.0, 2.0, 0.0]), 3, BradleyTerrySettings::default());
        assert_eq!((certain.strengths.as_slice(), certain.objective), ([0.0; 3].as_slice(), 0.0));
        assert_eq!(certain.probabilities(0.3), [0.0, 1.0, 0.0]);
        let never = fit(&pairs(vec![0.0, 0.0, 1.0]), 3, BradleyTerrySettings::default());
        assert!(never.ties.is_none());
        assert!(never.strengths[0] > never.strengths[2]);
    }

    #[test]
    fn an_item_that_won_everything_stays_finite() {
        let pairs = Pairs::new(vec![0, 0, 1], vec![1, 2, 2]).expect("valid");
        let found = fit(&pairs, 3, BradleyTerrySettings::default());
        assert!(found.ties.is_none());
        assert!(found.strengths[0] > found.strengths[1] && found.strengths[1] > found.strengths[2]);
        assert!(found.strengths[0] < 20.0);
    }
}
