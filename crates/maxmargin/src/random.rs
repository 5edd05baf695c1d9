//! [`Random`]: seeded random numbers whose sequence never changes.
//!
//! The bits come from xoshiro256++. Uniform and normal deviates and shuffles are implemented here, because libraries
//! may change theirs, and a seed must give the same data in every version.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::f64::consts::TAU;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    bits: Xoshiro256PlusPlus,
    spare_normal: Option<f64>,
}

/// 2⁻⁵³, the spacing of the uniform deviates.
const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

impl Random {
    /// The stream for a purpose (each use of a seed has its own number) and for a block within that purpose.
    pub(crate) fn new(seed: u64, purpose: u64, block: u64) -> Random {
        // Each step is a bijection of its last argument, so two blocks of one seed never share a stream.
        let state = scramble(scramble(scramble(seed) ^ purpose) ^ block);
        Random { bits: Xoshiro256PlusPlus::seed_from_u64(state), spare_normal: None }
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.bits.next_u64()
    }

    /// Uniform in [0, 1).
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT
    }

    /// True with the given probability.
    #[inline]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A whole number below `count`, which must not be zero. The bias is below count / 2⁶⁴.
    #[inline]
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        debug_assert!(count > 0);
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// Normal with mean 0 and variance 1 (Box and Muller's method, both halves used).
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        // In (0, 1], so that the logarithm is finite.
        let radius = (-2.0 * (((self.bits() >> 11) + 1) as f64 * UNIT).ln()).sqrt();
        let (sine, cosine) = (TAU * self.uniform()).sin_cos();
        self.spare_normal = Some(radius * sine);
        radius * cosine
    }

    /// Puts the items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// A bijective scramble of 64 bits (one step of SplitMix64).
#[inline(always)]
pub(crate) fn scramble(value: u64) -> u64 {
    let mut value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_deviates_have_mean_zero_variance_one_and_light_tails() {
        let mut random = Random::new(1, 0, 0);
        let draws: Vec<f64> = (0..200_000).map(|_| random.normal()).collect();
        let count = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / count;
        let outside = draws.iter().filter(|x| x.abs() > 1.959_964).count() as f64 / count;
        assert!(mean.abs() < 0.01, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.02, "variance {variance}");
        assert!((outside - 0.05).abs() < 0.003, "outside {outside}");
    }

    #[test]
    fn blocks_and_purposes_have_streams_of_their_own() {
        let first = |seed, purpose, block| Random::new(seed, purpose, block).bits();
        let draws = [first(1, 0, 0), first(1, 0, 1), first(1, 1, 0), first(2, 0, 0)];
        for (position, draw) in draws.iter().enumerate() {
            assert!(!draws[..position].contains(draw));
        }
        assert_eq!(first(1, 0, 0), draws[0]);
    }

    #[test]
    fn a_shuffle_reaches_every_order_about_equally_often() {
        let mut random = Random::new(3, 0, 0);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|&count: &i32| (count - 1000).abs() < 150), "{counts:?}");
    }
}
