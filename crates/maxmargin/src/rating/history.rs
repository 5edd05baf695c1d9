//! [`History`]: what is known about players before a game, as features for comparisons.
//!
//! Games come in periods, in order of time. The features of a game use only earlier periods, so that they never contain
//! the result to be predicted. [`Elo`] and [`Glicko`] ratings are updated once per period. The cost is O(1) per game.

use super::{Elo, EloFactor, Game, Glicko, GlickoSettings};
use crate::data::Outcome;

/// The features of a player, in the order of [`History::features`]:
///
/// - `elo`, `glicko` and `glicko_deviation`: 1200, 1500 and 350 for a new player;
/// - `games`, `wins`, `draws`, `losses` so far, and `win_rate`, `draw_rate`, `loss_rate` as shares of the games, 0
///   without games;
/// - `score_against_higher`, `score_against_lower`: the mean score (1, ½ or 0) in games against opponents with a higher
///   or lower Elo at that time, ½ without such games;
/// - `opponent_difference`: the mean of the opponent's Elo minus the player's own at that time, 0 without games;
/// - `since_last`: days, or numbered periods, since the last game, 0 without games.
pub const HISTORY_FEATURES: [&str; 14] = [
    "elo",
    "glicko",
    "glicko_deviation",
    "games",
    "wins",
    "draws",
    "losses",
    "win_rate",
    "draw_rate",
    "loss_rate",
    "score_against_higher",
    "score_against_lower",
    "opponent_difference",
    "since_last",
];

/// How the ratings are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistorySettings {
    /// How much a game changes an Elo rating.
    pub factor: EloFactor,
    /// How Glicko's deviations start, and how they grow per square root of the unit of time.
    pub glicko: GlickoSettings,
}

/// A sum of scores and their number.
#[derive(Clone, Copy, Debug, Default)]
struct Scores {
    sum: f64,
    count: f64,
}

impl Scores {
    fn mean(self, without: f64) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { without }
    }

    fn push(&mut self, score: f64) {
        self.sum += score;
        self.count += 1.0;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Player {
    wins: f64,
    draws: f64,
    losses: f64,
    against_higher: Scores,
    against_lower: Scores,
    opponents: Scores,
    last: Option<f64>,
}

/// All players and their games so far.
#[derive(Clone, Debug)]
pub struct History {
    elo: Elo,
    glicko: Glicko,
    players: Vec<Player>,
}

impl History {
    /// The state before the first game.
    pub fn new(players: usize, settings: &HistorySettings) -> History {
        History {
            elo: Elo::new(players, settings.factor),
            glicko: Glicko::new(players, settings.glicko),
            players: vec![Player::default(); players],
        }
    }

    /// What is known about a player at a time. The time must not be before the last games.
    pub fn features(&self, player: usize, time: f64) -> [f64; HISTORY_FEATURES.len()] {
        let Player { wins, draws, losses, against_higher, against_lower, opponents, last } = self.players[player];
        let games = wins + draws + losses;
        let share = |count: f64| if games > 0.0 { count / games } else { 0.0 };
        [
            Elo::START + self.elo.rating(player),
            Glicko::START + self.glicko.rating(player),
            self.glicko.deviation(player, time),
            games,
            wins,
            draws,
            losses,
            share(wins),
            share(draws),
            share(losses),
            against_higher.mean(0.5),
            against_lower.mean(0.5),
            opponents.mean(0.0),
            last.map_or(0.0, |last| time - last),
        ]
    }

    /// Adds the games of a period. All updates use the state before the period.
    pub fn play(&mut self, games: &[Game], time: f64) {
        for game in games {
            for (player, opponent, score) in game.sides() {
                let above = self.elo.rating(opponent) - self.elo.rating(player);
                let player = &mut self.players[player];
                if game.outcome == Outcome::Tie {
                    player.draws += 1.0;
                } else if score > 0.5 {
                    player.wins += 1.0;
                } else {
                    player.losses += 1.0;
                }
                if above > 0.0 {
                    player.against_higher.push(score);
                } else if above < 0.0 {
                    player.against_lower.push(score);
                }
                player.opponents.push(above);
                player.last = Some(time);
            }
        }
        self.elo.play(games);
        self.glicko.play(games, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const PLAYERS: u64 = 7;

    /// Forty games over twelve periods at irregular times.
    fn season(seed: u64) -> Vec<(f64, Game)> {
        let mut random = Random::new(seed, 0, 0);
        let mut time = -3.0;
        (0..40)
            .map(|_| {
                if random.chance(0.3) {
                    time += (1 + random.below(9)) as f64;
                }
                let left = random.below(PLAYERS) as u32;
                let right = (left + 1 + random.below(PLAYERS - 1) as u32) % PLAYERS as u32;
                let outcome = Outcome::ALL[random.below(3) as usize];
                (time, Game { left, right, outcome, weight: 1.0 })
            })
            .collect()
    }

    const SETTINGS: HistorySettings =
        HistorySettings { factor: EloFactor::Fide, glicko: GlickoSettings { deviation: 350.0, growth: 10.0 } };

    /// The features of both players of every game.
    fn walk(season: &[(f64, Game)]) -> Vec<[[f64; 14]; 2]> {
        let mut history = History::new(PLAYERS as usize, &SETTINGS);
        let mut rows = Vec::new();
        for period in season.chunk_by(|a, b| a.0 == b.0) {
            let time = period[0].0;
            for (_, game) in period {
                rows.push([game.left, game.right].map(|player| history.features(player as usize, time)));
            }
            let games: Vec<Game> = period.iter().map(|(_, game)| *game).collect();
            history.play(&games, time);
        }
        rows
    }

    /// The features of a player, computed anew from all games of earlier periods.
    fn from_scratch(season: &[(f64, Game)], player: u32, now: f64) -> [f64; 14] {
        // Ratings before a time, by replaying all earlier games.
        let replay = |before: f64| {
            let (mut elo, mut glicko) =
                (Elo::new(PLAYERS as usize, SETTINGS.factor), Glicko::new(PLAYERS as usize, SETTINGS.glicko));
            let earlier: Vec<(f64, Game)> = season.iter().filter(|(time, _)| *time < before).copied().collect();
            for period in earlier.chunk_by(|a, b| a.0 == b.0) {
                let games: Vec<Game> = period.iter().map(|(_, game)| *game).collect();
                elo.play(&games);
                glicko.play(&games, period[0].0);
            }
            (elo, glicko)
        };
        let (elo, glicko) = replay(now);
        let own: Vec<(f64, f64, f64)> = season
            .iter()
            .filter(|(time, game)| *time < now && (game.left == player || game.right == player))
            .map(|(time, game)| {
                let won = if game.left == player { Outcome::Left } else { Outcome::Right };
                let score = if game.outcome == Outcome::Tie { 0.5 } else { f64::from(u8::from(game.outcome == won)) };
                let opponent = if game.left == player { game.right } else { game.left };
                let (then, _) = replay(*time);
                (*time, score, then.rating(opponent as usize) - then.rating(player as usize))
            })
            .collect();
        let count = |score: f64| own.iter().filter(|game| game.1 == score).count() as f64;
        let mean = |values: Vec<f64>, without: f64| {
            if values.is_empty() { without } else { values.iter().sum::<f64>() / values.len() as f64 }
        };
        let share = |score: f64| if own.is_empty() { 0.0 } else { count(score) / own.len() as f64 };
        [
            1200.0 + elo.rating(player as usize),
            1500.0 + glicko.rating(player as usize),
            glicko.deviation(player as usize, now),
            own.len() as f64,
            count(1.0),
            count(0.5),
            count(0.0),
            share(1.0),
            share(0.5),
            share(0.0),
            mean(own.iter().filter(|game| game.2 > 0.0).map(|game| game.1).collect(), 0.5),
            mean(own.iter().filter(|game| game.2 < 0.0).map(|game| game.1).collect(), 0.5),
            mean(own.iter().map(|game| game.2).collect(), 0.0),
            own.last().map_or(0.0, |game| now - game.0),
        ]
    }

    #[test]
    fn features_are_those_of_all_earlier_games() {
        for seed in 0..5 {
            let season = season(seed);
            for (row, (time, game)) in walk(&season).iter().zip(&season) {
                for (features, player) in row.iter().zip([game.left, game.right]) {
                    let expected = from_scratch(&season, player, *time);
                    for (feature, (found, expected)) in features.iter().zip(&expected).enumerate() {
                        assert!((found - expected).abs() < 1e-9, "{}: {found} {expected}", HISTORY_FEATURES[feature]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_result_is_known_to_later_periods_alone() {
        let season = season(1);
        let rows = walk(&season);
        for changed in 0..season.len() {
            let mut other = season.clone();
            let outcome = other[changed].1.outcome;
            other[changed].1.outcome = if outcome == Outcome::Left { Outcome::Right } else { Outcome::Left };
            for ((before, after), (time, _)) in rows.iter().zip(walk(&other)).zip(&season) {
                assert!(*time > season[changed].0 || *before == after);
            }
        }
    }
}
