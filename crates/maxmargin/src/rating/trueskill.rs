//! TrueSkill for two players (Herbrich, Minka & Graepel, TrueSkill: a Bayesian skill rating system, NIPS 2006).
//!
//! Skills are normal, N(μ, σ²), and start at N(25, (25/3)²). In a game, a player performs as N(skill, β²). The higher
//! performance wins, and it is a draw if they differ by at most ε. After a game, each skill becomes the normal
//! distribution closest to the posterior, with t = (μ_winner − μ_loser)/c, e = ε/c, c² = 2β² + σ_winner² + σ_loser²:
//!
//! ```text
//! μ ← μ ± σ²/c · v(t, e),    σ² ← σ² (1 − σ²/c² · w(t, e))
//! win:   v = φ(t−e)/Φ(t−e)                                   w = v·(v + t − e)
//! draw:  v = (φ(−e−t) − φ(e−t)) / (Φ(e−t) − Φ(−e−t))          w = v² + ((e−t)φ(e−t) + (e+t)φ(e+t)) / (Φ(e−t) − Φ(−e−t))
//! ```
//! Before a game τ² is added to σ², so that skills can change. ε follows from the share p of draws in the data, as if
//! all players were equal: p = 2Φ(ε/(√2·β)) − 1. Densities divided by tails are computed as Mills' ratios, which do not
//! underflow. There is one update per game, no stopping rule and no bound. The weight of a game has no effect, except
//! that games of weight 0 are left out.

use super::games;
use super::normal::{mills, quantile_of_upper_tail};
use crate::data::{Outcome, Pairs};

/// The mean of a new player.
const START: f64 = 25.0;

/// The distribution of skills and performances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueskillSettings {
    /// σ of a new player.
    pub deviation: f64,
    /// β: the spread of a performance around the skill.
    pub performance: f64,
    /// τ: how much a skill changes between games.
    pub change: f64,
}

impl Default for TrueskillSettings {
    /// The values of the paper: 25/3, 25/6 and 25/300.
    fn default() -> TrueskillSettings {
        TrueskillSettings { deviation: START / 3.0, performance: START / 6.0, change: START / 300.0 }
    }
}

/// The mean skill of each row after all pairs, one game after the other, minus the starting value of 25.
pub fn trueskill(pairs: &Pairs, rows: usize, settings: &TrueskillSettings) -> Vec<f64> {
    let (mut played, mut draws) = (0u64, 0u64);
    for game in games(pairs) {
        played += 1;
        draws += u64::from(game.outcome == Outcome::Tie);
    }
    // If all games are draws, the margin would be infinite. A slightly smaller share avoids that.
    let share = (draws as f64 / played.max(1) as f64).min(1.0 - 1e-6);
    let margin = quantile_of_upper_tail((1.0 - share) / 2.0) * std::f64::consts::SQRT_2 * settings.performance;
    let mut skills = vec![(0.0, settings.deviation * settings.deviation); rows];
    for game in games(pairs) {
        let (winner, loser) = match game.outcome {
            Outcome::Left | Outcome::Tie => (game.left as usize, game.right as usize),
            Outcome::Right => (game.right as usize, game.left as usize),
        };
        let variance = [winner, loser].map(|player| skills[player].1 + settings.change * settings.change);
        let c = (2.0 * settings.performance * settings.performance + variance[0] + variance[1]).sqrt();
        let (t, e) = ((skills[winner].0 - skills[loser].0) / c, margin / c);
        let (v, w) = if game.outcome == Outcome::Tie { draw(t, e) } else { win(t, e) };
        for (player, variance, sign) in [(winner, variance[0], 1.0), (loser, variance[1], -1.0)] {
            skills[player].0 += sign * variance / c * v;
            skills[player].1 = variance * (1.0 - variance / (c * c) * w);
        }
    }
    skills.into_iter().map(|(mean, _)| mean).collect()
}

/// v and w of a win.
fn win(t: f64, e: f64) -> (f64, f64) {
    let x = t - e;
    // Φ(x) is the upper tail at −x, and φ is even.
    let v = 1.0 / mills(-x);
    // Far below zero, v + x is lost to rounding. In exact arithmetic w is always between 0 and 1.
    (v, (v * (v + x)).clamp(0.0, 1.0))
}

/// v and w of a draw.
fn draw(t: f64, e: f64) -> (f64, f64) {
    // Below this, the two ends of the interval are too close for their tails to differ.
    const POINT: f64 = 1e-6;
    if e < POINT {
        // The limit: the difference of the performances is known exactly.
        return (-t, 1.0);
    }
    // For t ≥ 0 everything is divided by φ(t − e), the larger of the two densities.
    let (a, b) = (t.abs() - e, t.abs() + e);
    let ratio = (-2.0 * t.abs() * e).exp();
    let interval = mills(a) - ratio * mills(b);
    let v = -(1.0 - ratio) / interval;
    let w = v * v + (b * ratio - a) / interval;
    (v * t.signum(), w.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::normal::{density, upper_tail};
    use super::*;

    /// Mean and variance of a difference D ~ N(t, 1) known to lie in an interval, by the trapezoidal rule: v is the
    /// shift of the mean, and w is the reduction of the variance.
    fn truncated(t: f64, low: f64, high: f64) -> (f64, f64) {
        let (low, high) = (low.max(t - 40.0), high.min(t + 40.0));
        let steps = 400_000;
        let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
        for step in 0..=steps {
            let x = low + (high - low) * f64::from(step) / f64::from(steps) - t;
            let weight = density(x) * if step == 0 || step == steps { 0.5 } else { 1.0 };
            mass += weight;
            mean += weight * x;
            square += weight * x * x;
        }
        let mean = mean / mass;
        (mean, 1.0 - (square / mass - mean * mean))
    }

    #[test]
    fn shifts_are_those_of_the_truncated_normal_distribution() {
        for (t, e) in [(0.0, 0.5), (1.3, 0.5), (-2.0, 0.7), (3.0, 0.01), (-4.0, 1.5)] {
            let ((v, w), (mean, lost)) = (win(t, e), truncated(t, e, f64::INFINITY));
            assert!((v - mean).abs() < 1e-5 && (w - lost).abs() < 1e-5, "win {t} {e}: {v} {mean} {w} {lost}");
            let ((v, w), (mean, lost)) = (draw(t, e), truncated(t, -e, e));
            assert!((v - mean).abs() < 1e-5 && (w - lost).abs() < 1e-5, "draw {t} {e}: {v} {mean} {w} {lost}");
        }
    }

    #[test]
    fn formulas_of_the_paper_agree_where_nothing_underflows() {
        for (t, e) in [(0.4, 0.3), (-1.2, 0.6)] {
            let lower = |x: f64| upper_tail(-x);
            let (v, _) = win(t, e);
            assert!((v - density(t - e) / lower(t - e)).abs() < 1e-12);
            let span = lower(e - t) - lower(-e - t);
            let (v, w) = draw(t, e);
            let expected = (density(-e - t) - density(e - t)) / span;
            assert!((v - expected).abs() < 1e-12);
            let second = ((e - t) * density(e - t) + (e + t) * density(e + t)) / span;
            assert!((w - (expected * expected + second)).abs() < 1e-12);
        }
    }

    #[test]
    fn absurd_surprises_stay_finite() {
        for t in [-1e6, -50.0, 50.0, 1e6] {
            for e in [0.0, 1e-9, 1e-3, 1.0, 5.0] {
                for (v, w) in [win(t, e), draw(t, e)] {
                    assert!(v.is_finite() && (0.0..=1.0).contains(&w), "{t} {e}: {v} {w}");
                }
            }
        }
        // The loser was better by fifty deviations, so the means meet.
        assert!((win(-50.0, 0.0).0 - 50.0).abs() < 0.1);
        assert!((draw(50.0, 1.0).0 + 49.0).abs() < 0.1);
    }

    #[test]
    fn a_first_win_moves_both_as_by_hand() {
        // c² = 2(25/6)² + 2((25/3)² + (25/300)²), no draws, t = 0: v = φ(0)/Φ(0) = 2/√(2π).
        let pairs = Pairs::new(vec![0], vec![1]).expect("valid");
        let ratings = trueskill(&pairs, 3, &TrueskillSettings::default());
        let variance: f64 = (25.0f64 / 3.0).powi(2) + (25.0f64 / 300.0).powi(2);
        let c = (2.0 * (25.0f64 / 6.0).powi(2) + 2.0 * variance).sqrt();
        let shift = variance / c * 2.0 / (2.0 * std::f64::consts::PI).sqrt();
        assert!((ratings[0] - shift).abs() < 1e-9 && (ratings[1] + shift).abs() < 1e-9, "{ratings:?}");
        assert!((ratings[0] - 4.205).abs() < 0.01);
    }
}
