//! [`rated_pairs`]: comparisons with ties from items rated by people.
//!
//! Two items rated by the same person are a comparison. The higher rating wins; ratings that differ by no more than a
//! given amount are a tie. Ratings by different people are never compared. Which item is on the left is random, so that
//! nothing can be learned from the side. The cost is O(n) if each rating is in one pair, otherwise O(pairs).

use crate::data::Outcome;
use crate::error::Result;
use crate::random::Random;
use std::collections::HashSet;

/// The purpose of the random streams. Each user has one stream.
const PAIRING: u64 = 0x7061_6972_696e_6773;

/// One rating.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rated {
    /// The user, as a code from 0.
    pub user: u32,
    /// The item.
    pub item: u32,
    /// The rating.
    pub rating: f64,
}

/// Which pairs of a user's ratings are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairsPerUser {
    /// Shuffles the ratings and pairs them one after the other. Each rating is in one pair; with an odd number, the
    /// last rating is left out.
    #[default]
    Once,
    /// This many different random pairs, or all pairs if there are no more.
    Some(usize),
    /// All pairs.
    All,
}

/// How pairs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RatedSettings {
    /// Which pairs.
    pub pairs: PairsPerUser,
    /// Ratings that differ by at most this much are a tie.
    pub tie_within: f64,
    /// The seed of the order and the sides.
    pub seed: u64,
}

/// Two items that one user rated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatedPair {
    /// The user.
    pub user: u32,
    /// One item.
    pub left: u32,
    /// The other.
    pub right: u32,
    /// Which one is rated higher.
    pub outcome: Outcome,
}

/// Passes on the pairs of each user, with users in the order of their codes. An item that a user rated twice is never
/// paired with itself.
pub fn rated_pairs(
    ratings: &[Rated],
    settings: &RatedSettings,
    mut take: impl FnMut(RatedPair) -> Result<()>,
) -> Result<()> {
    let mut order: Vec<u32> = (0..ratings.len() as u32).collect();
    // The sort is stable: the ratings of a user stay in file order.
    order.sort_by_key(|&at| ratings[at as usize].user);
    for own in order.chunk_by_mut(|&a, &b| ratings[a as usize].user == ratings[b as usize].user) {
        let user = ratings[own[0] as usize].user;
        let mut random = Random::new(settings.seed, PAIRING, u64::from(user));
        let mut hand = |random: &mut Random, a: u32, b: u32| {
            let (a, b) = if random.chance(0.5) { (b, a) } else { (a, b) };
            let (left, right) = (ratings[a as usize], ratings[b as usize]);
            if left.item == right.item {
                return Ok(());
            }
            let outcome = compare(left.rating, right.rating, settings.tie_within);
            take(RatedPair { user, left: left.item, right: right.item, outcome })
        };
        let count = own.len() as u64;
        let all = count * (count - 1) / 2;
        match settings.pairs {
            PairsPerUser::Once => {
                random.shuffle(own);
                for pair in own.chunks_exact(2) {
                    hand(&mut random, pair[0], pair[1])?;
                }
            }
            PairsPerUser::Some(most) if (most as u64) < all => {
                for index in sample(&mut random, all, most as u64) {
                    let (a, b) = pair_at(index);
                    hand(&mut random, own[a], own[b])?;
                }
            }
            PairsPerUser::Some(_) | PairsPerUser::All => {
                for b in 1..own.len() {
                    for a in 0..b {
                        hand(&mut random, own[a], own[b])?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Which of two ratings is higher.
fn compare(left: f64, right: f64, tie_within: f64) -> Outcome {
    // Ratings such as 0.3 and 0.2 differ by slightly less or more than 0.1. The slack keeps rounding from deciding.
    let slack = 4.0 * f64::EPSILON * left.abs().max(right.abs());
    crate::data::outcome_of(right - left, tie_within + slack)
}

/// Different random numbers below `all`, in the order drawn (Floyd's method).
fn sample(random: &mut Random, all: u64, count: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    (all - count..all)
        .map(|last| {
            let drawn = random.below(last + 1);
            let drawn = if seen.contains(&drawn) { last } else { drawn };
            seen.insert(drawn);
            drawn
        })
        .collect()
}

/// The pair a < b with b(b − 1)/2 + a = index.
fn pair_at(index: u64) -> (usize, usize) {
    let mut b = ((1.0 + (1.0 + 8.0 * index as f64).sqrt()) / 2.0) as u64;
    // The root is rounded.
    while b * (b - 1) / 2 > index {
        b -= 1;
    }
    while (b + 1) * b / 2 <= index {
        b += 1;
    }
    ((index - b * (b - 1) / 2) as usize, b as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratings(users: u32, items: u32) -> Vec<Rated> {
        let mut random = Random::new(2, 0, 0);
        let mut ratings: Vec<Rated> = (0..users * items)
            .map(|at| Rated { user: at % users, item: at / users, rating: random.below(5) as f64 })
            .collect();
        random.shuffle(&mut ratings);
        ratings
    }

    fn made(ratings: &[Rated], settings: &RatedSettings) -> Vec<RatedPair> {
        let mut pairs = Vec::new();
        let taken = rated_pairs(ratings, settings, |pair| {
            pairs.push(pair);
            Ok(())
        });
        taken.expect("nothing refuses");
        pairs
    }

    fn rating(ratings: &[Rated], user: u32, item: u32) -> f64 {
        ratings.iter().find(|rated| (rated.user, rated.item) == (user, item)).expect("rated").rating
    }

    #[test]
    fn outcomes_are_those_of_the_ratings_and_sides_are_drawn() {
        let ratings = ratings(20, 9);
        for tie_within in [0.0, 1.0] {
            let pairs = made(&ratings, &RatedSettings { pairs: PairsPerUser::All, tie_within, seed: 1 });
            assert_eq!(pairs.len(), 20 * 36);
            for pair in &pairs {
                let (left, right) = (rating(&ratings, pair.user, pair.left), rating(&ratings, pair.user, pair.right));
                let expected = if (left - right).abs() <= tie_within { 0 } else { (right - left).signum() as i8 };
                assert_eq!(pair.outcome.sign(), expected);
            }
            let wins = |outcome| pairs.iter().filter(|pair| pair.outcome == outcome).count() as f64;
            let (left, right) = (wins(Outcome::Left), wins(Outcome::Right));
            assert!((left / (left + right) - 0.5).abs() < 0.1, "{left} {right}");
        }
    }

    #[test]
    fn each_rating_is_part_of_one_pair() {
        let ratings = ratings(6, 9);
        let pairs = made(&ratings, &RatedSettings::default());
        for user in 0..6 {
            let mut items: Vec<u32> =
                pairs.iter().filter(|pair| pair.user == user).flat_map(|pair| [pair.left, pair.right]).collect();
            items.sort_unstable();
            items.dedup();
            assert_eq!(items.len(), 8);
        }
        assert_eq!(made(&ratings, &RatedSettings::default()), pairs);
        assert_ne!(made(&ratings, &RatedSettings { seed: 7, ..RatedSettings::default() }), pairs);
    }

    #[test]
    fn so_many_pairs_are_all_different() {
        let ratings = ratings(3, 6);
        for (most, expected) in [(1, 1), (7, 7), (14, 14), (15, 15), (99, 15)] {
            let settings = RatedSettings { pairs: PairsPerUser::Some(most), ..RatedSettings::default() };
            let pairs = made(&ratings, &settings);
            assert_eq!(pairs.len(), 3 * expected);
            let different: HashSet<(u32, u32, u32)> =
                pairs.iter().map(|pair| (pair.user, pair.left.min(pair.right), pair.left.max(pair.right))).collect();
            assert_eq!(different.len(), pairs.len());
        }
    }

    #[test]
    fn an_item_rated_twice_is_not_compared_with_itself() {
        let twice = [Rated { user: 0, item: 4, rating: 1.0 }, Rated { user: 0, item: 4, rating: 2.0 }];
        assert!(made(&twice, &RatedSettings { pairs: PairsPerUser::All, ..RatedSettings::default() }).is_empty());
    }

    #[test]
    fn rounding_makes_no_difference_of_equal_steps() {
        assert_eq!(compare(0.1, 0.2, 0.1), Outcome::Tie);
        assert_eq!(compare(0.7, 0.8, 0.1), Outcome::Tie);
        assert_eq!(compare(0.7, 0.81, 0.1), Outcome::Right);
        assert_eq!(compare(4.5, 4.0, 0.0), Outcome::Left);
    }

    #[test]
    fn pairs_are_numbered_without_gaps() {
        let mut index = 0;
        for b in 1..60 {
            for a in 0..b {
                assert_eq!(pair_at(index), (a, b));
                index += 1;
            }
        }
        let (a, b) = pair_at(u64::from(u32::MAX) * u64::from(u32::MAX - 1) / 2 - 1);
        assert_eq!((a, b), (u32::MAX as usize - 2, u32::MAX as usize - 1));
    }
}
