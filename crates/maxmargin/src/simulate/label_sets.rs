//! [`Tagged`]: rows with sets of labels, each of which follows a hidden direction.
//!
//! A row x has normal features of spread 1/√d. Label l has a hidden direction of independent normal numbers, which shares
//! half of its square with that of the label before it, so that neighbouring labels often come together. A row has the
//! label if score + noise exceeds a border, with the score normal of spread 1. Borders are set so that the first label is
//! common and the last one is rare: the share of label l falls from 40 % to 4 % by equal factors. Rows may have no label.

use super::require;
use crate::data::{Dataset, Dense, Matrix, Targets};
use crate::error::Result;
use crate::parallel;
use crate::random::Random;
use crate::rating::quantile_of_upper_tail;
use serde::{Deserialize, Serialize};

/// The settings of simulated label sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaggedSettings {
    /// Number of rows.
    pub rows: u64,
    /// Number of features.
    pub features: usize,
    /// Number of labels.
    pub labels: usize,
    /// Spread of the noise on the score of a label.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
    /// Which sample of the same hidden model: 0 for training, another number for test rows.
    pub stream: u64,
}

impl Default for TaggedSettings {
    fn default() -> TaggedSettings {
        TaggedSettings { rows: 1000, features: 40, labels: 12, noise: 0.3, seed: 1, stream: 0 }
    }
}

/// Rows made together, from one random stream.
const BLOCK: usize = 1024;

/// The largest number of values made in memory.
const MOST_NUMBERS: u64 = 4_000_000_000;

/// The shares of rows with the first and with the last label.
const COMMON: f64 = 0.4;
const RARE: f64 = 0.04;

/// The random streams of this generator.
const MODEL: u64 = 0x7461_6767_0001;
const ROWS: u64 = 0x7461_6767_0002;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Tagged {
    settings: TaggedSettings,
    /// The direction of each label, one after the other.
    directions: Vec<f64>,
    /// The border of each label.
    borders: Vec<f64>,
}

impl Tagged {
    /// A generator with these settings, or an error if they are out of range.
    pub fn new(settings: TaggedSettings) -> Result<Tagged> {
        let TaggedSettings { rows, features, labels, noise, seed, .. } = settings;
        require((1..=u64::from(u32::MAX)).contains(&rows), "⟦rows⟧", rows, "from 1 to 4,294,967,295")?;
        require((1..=1 << 20).contains(&features), "⟦features⟧", features, "from 1 to 1,048,576")?;
        require((1..=1 << 12).contains(&labels), "⟦labels⟧", labels, "from 1 to 4,096")?;
        require((0.0..=1e6).contains(&noise), "⟦noise⟧", noise, "from 0 to 1,000,000")?;
        let numbers = rows.saturating_mul(features as u64);
        require(numbers <= MOST_NUMBERS, "rows times features", numbers, "at most 4,000,000,000")?;
        let mut random = Random::new(seed, MODEL, 0);
        let mut directions: Vec<f64> = Vec::with_capacity(labels * features);
        for label in 0..labels {
            for column in 0..features {
                let own = random.normal();
                let before = if label > 0 { directions[(label - 1) * features + column] } else { own };
                directions.push(if label > 0 { 0.5f64.sqrt() * (own + before) } else { own });
            }
        }
        let spread = noise.hypot(1.0);
        let border = |label: usize| {
            let place = if labels > 1 { label as f64 / (labels - 1) as f64 } else { 0.0 };
            spread * quantile_of_upper_tail(COMMON * (RARE / COMMON).powf(place))
        };
        Ok(Tagged { borders: (0..labels).map(border).collect(), settings, directions })
    }

    /// The settings.
    pub fn settings(&self) -> &TaggedSettings {
        &self.settings
    }

    /// All rows in memory.
    pub fn to_dataset(&self) -> Result<Dataset> {
        let TaggedSettings { rows, features, labels, .. } = self.settings;
        let rows = rows as usize;
        let blocks = parallel::map(rows.div_ceil(BLOCK), |block| self.block(block, BLOCK.min(rows - block * BLOCK)));
        let (mut values, mut starts, mut codes) = (Vec::with_capacity(rows * features), vec![0u64], Vec::new());
        for (own, sets) in blocks {
            values.extend(own);
            for set in sets {
                codes.extend(set);
                starts.push(codes.len() as u64);
            }
        }
        let names = (1..=labels).map(|label| label.to_string()).collect();
        let targets = Targets::Sets { names, starts: starts.into(), codes: codes.into() };
        Dataset::new(Matrix::DenseF32(Dense::new(values, rows, features)?), targets)
    }

    /// The features and the labels of the rows of a block.
    fn block(&self, number: usize, rows: usize) -> (Vec<f32>, Vec<Vec<u32>>) {
        let TaggedSettings { features, noise, seed, stream, .. } = self.settings;
        let mut random = Random::new(seed, ROWS ^ (stream << 32), number as u64);
        let size = 1.0 / (features as f64).sqrt();
        let (mut values, mut sets) = (Vec::with_capacity(rows * features), Vec::with_capacity(rows));
        for _ in 0..rows {
            let row: Vec<f32> = (0..features).map(|_| (size * random.normal()) as f32).collect();
            let has = |(label, direction): (usize, &[f64])| {
                let score: f64 = row.iter().zip(direction).map(|(x, w)| f64::from(*x) * w).sum();
                (score + noise * random.normal() > self.borders[label]).then_some(label as u32)
            };
            sets.push(self.directions.chunks_exact(features).enumerate().filter_map(has).collect());
            values.extend(row);
        }
        (values, sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::tests::on_threads;

    #[test]
    fn the_same_seed_gives_the_same_rows_on_any_number_of_threads() {
        let tagged = Tagged::new(TaggedSettings { rows: 3000, ..TaggedSettings::default() }).expect("valid");
        let hash = |threads: usize| on_threads(threads, || tagged.to_dataset().expect("rows").hash().expect("hash"));
        assert_eq!(hash(1), hash(4));
        let other = Tagged::new(TaggedSettings { rows: 3000, stream: 1, ..TaggedSettings::default() }).expect("valid");
        assert_ne!(hash(1), other.to_dataset().expect("rows").hash().expect("hash"));
    }

    #[test]
    fn labels_have_the_shares_that_the_header_claims() {
        let settings = TaggedSettings { rows: 40_000, labels: 5, features: 300, ..TaggedSettings::default() };
        let data = Tagged::new(settings).expect("valid").to_dataset().expect("rows");
        let Targets::Sets { codes, .. } = data.targets() else { panic!("sets") };
        for (label, share) in [(0, 0.4), (2, 0.1265), (4, 0.04)] {
            let found = codes.iter().filter(|&&code| code == label).count() as f64 / 40_000.0;
            assert!((found / share - 1.0).abs() < 0.25, "{label}: {found}");
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for settings in [
            TaggedSettings { labels: 0, ..TaggedSettings::default() },
            TaggedSettings { rows: 0, ..TaggedSettings::default() },
            TaggedSettings { noise: -1.0, ..TaggedSettings::default() },
        ] {
            assert!(Tagged::new(settings).is_err());
        }
    }
}
