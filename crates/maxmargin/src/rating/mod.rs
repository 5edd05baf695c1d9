//! Ratings of items from the games they played, and the threshold that turns any rating into a comparison with ties.
//!
//! A pair of [`Pairs`](crate::data::Pairs) is a game: two rows met, and the left or the right one won, or neither.
//! Games are used in the order of the pairs. A rating is one number per row. It is larger for better rows, and 0 for a
//! row that never played, so that ratings can be used as weights of indicator features.
//!
//! | function | method | effect of a pair's weight |
//! |---|---|---|
//! | [`elo`] | Elo, with FIDE's factors or a fixed one | multiplies the factor K |
//! | [`glicko`] | Glicko: a rating and its uncertainty | counts as this many games with the same outcome |
//! | [`trueskill`] | TrueSkill for two players, with draws | none, except that a pair of weight 0 is left out |
//! | [`bradley_terry`] | Davidson's model with ties, by maximum likelihood with a small ridge | multiplies its log-likelihood |
//!
//! [`best_threshold`] finds how far apart two scores must be for one item to count as better. [`History`] gives what is
//! known about players before each game, as features. [`rated_pairs`] makes comparisons from ratings by people.

mod bradley_terry;
mod elo;
mod glicko;
mod history;
mod normal;
mod rated;
mod threshold;
mod trueskill;

pub use bradley_terry::{BradleyTerry, BradleyTerrySettings, bradley_terry};
pub use elo::{Elo, EloFactor, elo};
pub use glicko::{Glicko, GlickoSettings, glicko};
pub use history::{HISTORY_FEATURES, History, HistorySettings};
pub(crate) use normal::quantile_of_upper_tail;
pub use rated::{PairsPerUser, Rated, RatedPair, RatedSettings, rated_pairs};
pub use threshold::{Threshold, best_threshold};
pub use trueskill::{TrueskillSettings, trueskill};

use crate::data::{Outcome, Pairs};

/// A game of two players.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Game {
    /// One of them.
    pub left: u32,
    /// The other.
    pub right: u32,
    /// Who won.
    pub outcome: Outcome,
    /// The weight of the game. Its effect depends on the method.
    pub weight: f64,
}

impl Game {
    /// The game of a pair.
    fn of(pairs: &Pairs, pair: usize) -> Game {
        let (left, right) = (pairs.left()[pair], pairs.right()[pair]);
        Game { left, right, outcome: pairs.outcome(pair), weight: pairs.weight(pair) }
    }

    /// Both players with their opponents and scores: 1 for a win, ½ for a tie, 0 for a loss.
    fn sides(&self) -> [(usize, usize, f64); 2] {
        let score = (1.0 - f64::from(self.outcome.sign())) / 2.0;
        let (left, right) = (self.left as usize, self.right as usize);
        [(left, right, score), (right, left, 1.0 - score)]
    }
}

/// The games of all pairs with positive weight, in order.
fn games(pairs: &Pairs) -> impl Iterator<Item = Game> {
    (0..pairs.len()).map(|pair| Game::of(pairs, pair)).filter(|game| game.weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Cancel, Silent};

    /// Games of five players as pairs, and the same pairs with the sides swapped.
    fn both_ways() -> (Pairs, Pairs) {
        let games = [
            (0, 1, Outcome::Left),
            (2, 1, Outcome::Tie),
            (3, 0, Outcome::Right),
            (2, 3, Outcome::Left),
            (0, 2, Outcome::Tie),
            (1, 3, Outcome::Right),
            (0, 1, Outcome::Left),
        ];
        let pairs = |swap: bool| {
            let (mut left, mut right): (Vec<u32>, Vec<u32>) = games.iter().map(|game| (game.0, game.1)).unzip();
            let mut outcomes: Vec<Outcome> = games.iter().map(|game| game.2).collect();
            if swap {
                std::mem::swap(&mut left, &mut right);
                outcomes = outcomes.iter().map(|outcome| Outcome::of_sign(-outcome.sign())).collect();
            }
            Pairs::new(left, right).expect("valid").with_outcomes(outcomes).expect("valid")
        };
        (pairs(false), pairs(true))
    }

    fn every_method(pairs: &Pairs) -> Vec<Vec<f64>> {
        let likelihood = bradley_terry(pairs, 5, &BradleyTerrySettings::default(), &mut Silent, &Cancel::new());
        vec![
            elo(pairs, 5, EloFactor::default()),
            elo(pairs, 5, EloFactor::Fixed(32.0)),
            glicko(pairs, 5, &GlickoSettings::default()),
            trueskill(pairs, 5, &TrueskillSettings::default()),
            likelihood.expect("it converges").strengths,
        ]
    }

    #[test]
    fn which_side_a_player_is_on_changes_no_rating() {
        let (pairs, swapped) = both_ways();
        for (one, other) in every_method(&pairs).iter().zip(every_method(&swapped)) {
            for (a, b) in one.iter().zip(&other) {
                assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn turning_all_outcomes_around_turns_all_ratings_around() {
        let (pairs, _) = both_ways();
        let turned: Vec<Outcome> = (0..pairs.len()).map(|pair| Outcome::of_sign(-pairs.outcome(pair).sign())).collect();
        let turned = pairs.clone().with_outcomes(turned).expect("valid");
        for (one, other) in every_method(&pairs).iter().zip(every_method(&turned)) {
            for (a, b) in one.iter().zip(&other) {
                assert!((a + b).abs() <= 1e-8 * a.abs().max(1.0), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn who_never_played_is_rated_zero_and_games_of_weight_zero_are_none() {
        let (pairs, _) = both_ways();
        for ratings in every_method(&pairs) {
            assert_eq!(ratings.len(), 5);
            assert_eq!(ratings[4], 0.0);
            // Player 0 won two games and lost none against player 1.
            assert!(ratings[0] > ratings[1], "{ratings:?}");
        }
        let mut weights = vec![1.0; pairs.len()];
        weights[2] = 0.0;
        let weighted = pairs.clone().with_weights(weights).expect("valid");
        let fewer = pairs.select(&[0, 1, 3, 4, 5, 6]);
        for (one, other) in every_method(&weighted).iter().zip(every_method(&fewer)) {
            for (a, b) in one.iter().zip(&other) {
                assert!((a - b).abs() <= 1e-8 * a.abs().max(1.0), "{one:?} {other:?}");
            }
        }
    }
}
