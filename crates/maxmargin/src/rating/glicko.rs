//! Glicko (Glickman, Parameter estimation in large dynamic paired comparison experiments, Applied Statistics 48, 1999).
//!
//! A player has a rating r and a deviation RD, which start at 1500 and 350. RD grows with time and shrinks with games:
//!
//! ```text
//! before a period:  RD ← min(√(RD² + c²·t), 350)            t periods since the last one
//! g(RD) = 1/√(1 + 3q²RD²/π²),   E_j = 1/(1 + 10^(−g(RD_j)(r − r_j)/400)),   q = ln 10 / 400
//! 1/d²  = q² Σ_j weight_j · g(RD_j)² E_j (1 − E_j)
//! r  ← r + q/(1/RD² + 1/d²) · Σ_j weight_j · g(RD_j)(s_j − E_j),     RD ← 1/√(1/RD² + 1/d²)
//! ```
//! over the games j of a period, all with the values before the period. A weight of n counts as n games with the same
//! outcome. There is one update per period and no stopping rule. Nothing is minimised, so there is no bound.

use super::{Game, games};
use crate::data::Pairs;
use std::f64::consts::{LN_10, PI};

/// q of the paper.
const Q: f64 = LN_10 / 400.0;

/// How deviations start and grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlickoSettings {
    /// The deviation of a new player, and the largest deviation of any player.
    pub deviation: f64,
    /// c of the paper: how fast the deviation grows, per square root of a period.
    pub growth: f64,
}

impl Default for GlickoSettings {
    /// 350 as in the paper, and no growth.
    fn default() -> GlickoSettings {
        GlickoSettings { deviation: 350.0, growth: 0.0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Player {
    rating: f64,
    deviation: f64,
    /// The time of the last game.
    time: f64,
    /// Sums over the games of the period: 1/d², and the change of the rating.
    information: f64,
    pull: f64,
}

/// The current ratings of the players.
#[derive(Clone, Debug)]
pub struct Glicko {
    settings: GlickoSettings,
    players: Vec<Player>,
}

impl Glicko {
    /// The rating of a new player.
    pub const START: f64 = 1500.0;

    /// The ratings before the first game.
    pub fn new(players: usize, settings: GlickoSettings) -> Glicko {
        let new =
            Player { rating: Glicko::START, deviation: settings.deviation, time: 0.0, information: 0.0, pull: 0.0 };
        Glicko { settings, players: vec![new; players] }
    }

    /// The rating of a player minus 1500, the rating of a new player.
    pub fn rating(&self, player: usize) -> f64 {
        self.players[player].rating - Glicko::START
    }

    /// The deviation of a player at a time: its value after the last games, plus the growth since then.
    pub fn deviation(&self, player: usize, time: f64) -> f64 {
        let Player { deviation, time: last, .. } = self.players[player];
        let grown = deviation * deviation + self.settings.growth * self.settings.growth * (time - last).max(0.0);
        grown.sqrt().min(self.settings.deviation)
    }

    /// Adds the games of one period. The time is counted in periods and must not decrease.
    pub fn play(&mut self, games: &[Game], time: f64) {
        for player in games.iter().flat_map(|game| [game.left, game.right]) {
            let player = player as usize;
            self.players[player].deviation = self.deviation(player, time);
            self.players[player].time = time;
        }
        for game in games {
            for (player, opponent, score) in game.sides() {
                let Player { rating, deviation, .. } = self.players[opponent];
                let g = 1.0 / (1.0 + 3.0 * (Q * deviation / PI).powi(2)).sqrt();
                let player = &mut self.players[player];
                let expected = 1.0 / (1.0 + 10f64.powf(g * (rating - player.rating) / 400.0));
                player.information += game.weight * (Q * g).powi(2) * expected * (1.0 - expected);
                player.pull += game.weight * g * (score - expected);
            }
        }
        for player in games.iter().flat_map(|game| [game.left, game.right]) {
            // A player with several games is updated once: the second time, its sums are zero.
            let player = &mut self.players[player as usize];
            let precision = 1.0 / (player.deviation * player.deviation) + player.information;
            player.rating += Q / precision * player.pull;
            player.deviation = 1.0 / precision.sqrt();
            (player.information, player.pull) = (0.0, 0.0);
        }
    }
}

/// The Glicko rating of each row after all pairs, minus the starting value of 1500. A run of pairs of one group is a
/// rating period; without groups, each pair is one.
pub fn glicko(pairs: &Pairs, rows: usize, settings: &GlickoSettings) -> Vec<f64> {
    let mut glicko = Glicko::new(rows, *settings);
    let mut period = Vec::new();
    let mut time = 0.0;
    match pairs.groups() {
        None => {
            for game in games(pairs) {
                time += 1.0;
                glicko.play(&[game], time);
            }
        }
        Some((groups, _)) => {
            let mut pair = 0;
            while pair < pairs.len() {
                let end = (pair..pairs.len()).find(|&next| groups[next] != groups[pair]).unwrap_or(pairs.len());
                period.clear();
                period.extend((pair..end).map(|pair| Game::of(pairs, pair)).filter(|game| game.weight > 0.0));
                time += 1.0;
                glicko.play(&period, time);
                pair = end;
            }
        }
    }
    (0..rows).map(|row| glicko.rating(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Outcome;

    fn set(glicko: &mut Glicko, player: usize, rating: f64, deviation: f64) {
        (glicko.players[player].rating, glicko.players[player].deviation) = (rating, deviation);
    }

    #[test]
    fn the_example_of_the_paper_comes_out() {
        let mut glicko = Glicko::new(4, GlickoSettings::default());
        for (player, rating, deviation) in
            [(0, 1500.0, 200.0), (1, 1400.0, 30.0), (2, 1550.0, 100.0), (3, 1700.0, 300.0)]
        {
            set(&mut glicko, player, rating, deviation);
        }
        let game = |right, outcome| Game { left: 0, right, outcome, weight: 1.0 };
        glicko.play(&[game(1, Outcome::Left), game(2, Outcome::Right), game(3, Outcome::Right)], 0.0);
        assert!((glicko.rating(0) + Glicko::START - 1464.1).abs() < 0.1, "{}", glicko.rating(0));
        assert!((glicko.deviation(0, 0.0) - 151.4).abs() < 0.05, "{}", glicko.deviation(0, 0.0));
    }

    #[test]
    fn thirty_periods_make_an_old_player_a_new_one() {
        // The value of c in the paper.
        let mut glicko = Glicko::new(2, GlickoSettings { growth: 63.2, ..GlickoSettings::default() });
        set(&mut glicko, 0, 1500.0, 50.0);
        assert!((glicko.deviation(0, 1.0) - (2500.0f64 + 63.2 * 63.2).sqrt()).abs() < 1e-9);
        assert!((glicko.deviation(0, 30.0) - 350.0).abs() < 0.5);
        assert_eq!(glicko.deviation(0, 300.0), 350.0);
    }

    #[test]
    fn a_weight_is_so_many_games_of_the_period() {
        let game = |weight| Game { left: 0, right: 1, outcome: Outcome::Left, weight };
        let mut weighted = Glicko::new(2, GlickoSettings::default());
        weighted.play(&[game(3.0)], 0.0);
        let mut repeated = Glicko::new(2, GlickoSettings::default());
        repeated.play(&[game(1.0); 3], 0.0);
        for player in 0..2 {
            assert!((weighted.rating(player) - repeated.rating(player)).abs() < 1e-9);
            assert!((weighted.deviation(player, 0.0) - repeated.deviation(player, 0.0)).abs() < 1e-9);
        }
    }

    #[test]
    fn pairs_of_one_group_are_a_period() {
        let pairs = Pairs::new(vec![0, 0, 1], vec![1, 2, 2]).expect("valid");
        let grouped = pairs.clone().with_groups(vec![0, 0, 1], ["may", "june"].into_iter().collect()).expect("valid");
        let ratings = glicko(&grouped, 3, &GlickoSettings::default());
        let mut by_hand = Glicko::new(3, GlickoSettings::default());
        by_hand.play(&[Game::of(&pairs, 0), Game::of(&pairs, 1)], 1.0);
        by_hand.play(&[Game::of(&pairs, 2)], 2.0);
        assert_eq!(ratings, (0..3).map(|player| by_hand.rating(player)).collect::<Vec<_>>());
        assert_ne!(ratings, glicko(&pairs, 3, &GlickoSettings::default()));
    }
}
