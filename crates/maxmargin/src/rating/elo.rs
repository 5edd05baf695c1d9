//! Elo's rating system (Elo, The rating of chessplayers, past and present, 1978).
//!
//! ```text
//! E = 1 / (1 + 10^(−(R − R_opponent)/400)),    R ← R + K · (S − E)
//! ```
//! with the score S = 1 for a win, ½ for a tie and 0 for a loss. Every player starts at 1200. The weight of a game
//! multiplies K. K is fixed or follows FIDE: 40 for the first 30 games, then 20, and 10 once a player has reached 2400.
//! There is one update per game and no stopping rule. Nothing is minimised, so there is no bound.

use super::{Game, games};
use crate::data::Pairs;

/// Once a rating reaches this value, FIDE's factor stays at 10.
const MASTER: f64 = 2400.0;

/// How much a game changes a rating.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum EloFactor {
    /// FIDE's rule: 40 for the first 30 games, then 20, and 10 once a player has reached 2400.
    #[default]
    Fide,
    /// The same factor for every player.
    Fixed(f64),
}

impl EloFactor {
    fn of(self, player: &Player) -> f64 {
        match self {
            EloFactor::Fixed(factor) => factor,
            EloFactor::Fide if player.reached_master => 10.0,
            EloFactor::Fide if player.games < 30 => 40.0,
            EloFactor::Fide => 20.0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Player {
    rating: f64,
    games: u64,
    reached_master: bool,
}

impl Player {
    const NEW: Player = Player { rating: Elo::START, games: 0, reached_master: false };
}

/// The current ratings of the players.
#[derive(Clone, Debug)]
pub struct Elo {
    factor: EloFactor,
    players: Vec<Player>,
    changes: Vec<(usize, f64)>,
}

impl Elo {
    /// The rating of a new player.
    pub const START: f64 = 1200.0;

    /// The ratings before the first game.
    pub fn new(players: usize, factor: EloFactor) -> Elo {
        Elo { factor, players: vec![Player::NEW; players], changes: Vec::new() }
    }

    /// The rating of a player minus 1200, the rating of a new player.
    pub fn rating(&self, player: usize) -> f64 {
        self.players[player].rating - Elo::START
    }

    /// Adds games played at the same time: each update uses the ratings before all of them.
    pub fn play(&mut self, games: &[Game]) {
        self.changes.clear();
        for game in games {
            for (player, opponent, score) in game.sides() {
                let difference = self.players[opponent].rating - self.players[player].rating;
                let expected = 1.0 / (1.0 + 10f64.powf(difference / 400.0));
                let factor = self.factor.of(&self.players[player]) * game.weight;
                self.changes.push((player, factor * (score - expected)));
            }
        }
        for &(at, change) in &self.changes {
            let player = &mut self.players[at];
            player.rating += change;
            player.games += 1;
        }
        for &(at, _) in &self.changes {
            let player = &mut self.players[at];
            player.reached_master |= player.rating >= MASTER;
        }
    }
}

/// The Elo rating of each row after all pairs, one game after the other, minus the starting value of 1200.
pub fn elo(pairs: &Pairs, rows: usize, factor: EloFactor) -> Vec<f64> {
    let mut elo = Elo::new(rows, factor);
    for game in games(pairs) {
        elo.play(&[game]);
    }
    (0..rows).map(|row| elo.rating(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Outcome;

    fn game(left: u32, right: u32, outcome: Outcome) -> Game {
        Game { left, right, outcome, weight: 1.0 }
    }

    #[test]
    fn a_win_between_equals_moves_both_by_half_the_factor() {
        let mut elo = Elo::new(2, EloFactor::Fixed(32.0));
        elo.play(&[game(0, 1, Outcome::Right)]);
        assert_eq!((elo.rating(0), elo.rating(1)), (-16.0, 16.0));
    }

    #[test]
    fn four_hundred_points_make_ten_to_one() {
        let mut elo = Elo::new(2, EloFactor::Fixed(32.0));
        elo.players[0].rating = 1600.0;
        elo.play(&[game(0, 1, Outcome::Tie)]);
        assert!((elo.rating(0) - (400.0 + 32.0 * (0.5 - 10.0 / 11.0))).abs() < 1e-12);
        assert!((elo.rating(1) - 32.0 * (0.5 - 1.0 / 11.0)).abs() < 1e-12);
    }

    #[test]
    fn the_factor_falls_after_thirty_games_and_at_2400_for_good() {
        let mut elo = Elo::new(2, EloFactor::Fide);
        for _ in 0..30 {
            assert_eq!(EloFactor::Fide.of(&elo.players[0]), 40.0);
            elo.play(&[game(0, 1, Outcome::Tie)]);
        }
        assert_eq!(EloFactor::Fide.of(&elo.players[0]), 20.0);
        elo.players[0].rating = 2399.0;
        elo.players[1].rating = 2399.0;
        elo.play(&[game(0, 1, Outcome::Left)]);
        assert_eq!(EloFactor::Fide.of(&elo.players[0]), 10.0);
        for _ in 0..9 {
            elo.play(&[game(0, 1, Outcome::Right)]);
        }
        assert!(elo.players[0].rating < MASTER);
        assert_eq!(EloFactor::Fide.of(&elo.players[0]), 10.0);
    }

    #[test]
    fn games_at_the_same_time_do_not_see_each_other() {
        let mut together = Elo::new(3, EloFactor::Fixed(20.0));
        together.play(&[game(0, 1, Outcome::Left), game(0, 2, Outcome::Left)]);
        assert_eq!(together.rating(0), 20.0);
        let mut after = Elo::new(3, EloFactor::Fixed(20.0));
        after.play(&[game(0, 1, Outcome::Left)]);
        after.play(&[game(0, 2, Outcome::Left)]);
        assert!(after.rating(0) < 20.0);
    }

    #[test]
    fn a_weight_multiplies_the_factor() {
        let pairs = Pairs::new(vec![0], vec![1]).expect("valid").with_weights(vec![0.5]).expect("valid");
        assert_eq!(elo(&pairs, 2, EloFactor::Fixed(20.0)), [5.0, -5.0]);
    }
}
