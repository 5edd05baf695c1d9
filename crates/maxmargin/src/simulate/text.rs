//! [`Text`]: two classes of documents as sparse unit rows, similar to the RCV1 news corpus.
//!
//! The model and its limits:
//! - Words follow Zipf's law: the number of documents with a word falls roughly as the inverse of its rank (slope −0.95
//!   between ranks 100 and 10,000). The law is flattened at the top (Mandelbrot's shift) because stop words are assumed
//!   to be removed: the most common word is in a third of all documents. Which columns are frequent is random, as in an
//!   alphabetical vocabulary.
//! - A document has a log-normal length (distinct words), and one main and one side topic out of up to a hundred. Some
//!   topics are far more common than others. A quarter of the words come from the general vocabulary, the others from
//!   the topics, so that words are correlated and repeat as in real text.
//! - A value is (1 + ln count) · ln(1 / share of documents with the word). Rows have unit Euclidean length, and values
//!   are multiples of 1e-7, so that text files show at most seven digits.
//! - The label is the sign of a hidden linear score with normal noise, relative to a threshold; a few labels are
//!   flipped. Three words in ten have a hidden weight, and the weights of one topic tend to have the same sign. No
//!   linear model is without error, and rare words make learning slow: with the default settings, the error of a linear
//!   support vector machine with C = 1 on new documents is 6 to 8 % after 20,000 rows and 5 to 6 % after 400,000,
//!   depending on the seed.
//! - There is no word order, no drift over time and there are no near-duplicates, unlike in real news.

use super::{Block, Generator, log_normal_count, quantile, require};
use crate::error::Result;
use crate::parallel;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The settings of simulated text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextSettings {
    /// Number of documents.
    pub rows: u64,
    /// Number of words in the vocabulary.
    pub features: usize,
    /// Mean number of distinct words in a document. Rows get somewhat shorter if this is close to `features`.
    pub nonzeros: usize,
    /// Spread of the noise on the hidden score, as a multiple of the spread of the score itself.
    pub noise: f64,
    /// Share of labels that are flipped.
    pub flip: f64,
    /// Share of documents in the positive class.
    pub positive: f64,
    /// The seed.
    pub seed: u64,
    /// Which sample of the same hidden model: 0 for training, another number for test rows.
    pub stream: u64,
}

impl Default for TextSettings {
    fn default() -> TextSettings {
        TextSettings {
            rows: 20_000,
            features: 47_000,
            nonzeros: 78,
            noise: 0.1,
            flip: 0.01,
            positive: 0.5,
            seed: 1,
            stream: 0,
        }
    }
}

const ROWS_PER_BLOCK: u64 = 1024;
/// Zipf–Mandelbrot: the word of rank r (from 0) has weight (r + 1 + SHIFT)^−EXPONENT.
const EXPONENT: f64 = 1.2;
const SHIFT: f64 = 20.0;
/// The same for the words of one topic.
const TOPIC_SHIFT: f64 = 4.0;
/// Shares of the words that come from the main and from the side topic. The other words are general.
const MAIN_TOPIC: f64 = 0.6;
const SIDE_TOPIC: f64 = 0.15;
/// Spread of the logarithm of the document length.
const LENGTH_SPREAD: f64 = 0.55;
/// Share of words with a hidden weight.
const RELEVANT: f64 = 0.3;
/// Values are whole multiples of 1 / GRID.
const GRID: f64 = 1e7;
/// Number of pilot blocks. They serve to place the threshold between the classes.
const PILOT_BLOCKS: u64 = 8;

/// The random streams of this generator.
const MODEL: u64 = 0x7465_7874_0001;
const PILOT: u64 = 0x7465_7874_0002;
const ROWS: u64 = 0x7465_7874_0003;

/// A generator of labelled documents; see [`TextSettings`].
#[derive(Clone, Debug)]
pub struct Text {
    settings: TextSettings,
    words: Alias,
    topics: Alias,
    /// Word slots of a topic. The word in slot s of topic t has rank s · topics + (t + s) mod topics.
    slots: Alias,
    topic_count: usize,
    column_of_rank: Vec<u32>,
    rarity_of_rank: Vec<f64>,
    weights: Vec<f64>,
    threshold: f64,
    noise_spread: f64,
}

impl Text {
    /// Checks the settings and draws the vocabulary and the hidden model.
    pub fn new(settings: TextSettings) -> Result<Text> {
        let TextSettings { rows, features, nonzeros, noise, flip, positive, seed, .. } = settings;
        require(rows >= 1, "⟦rows⟧", rows, "at least 1")?;
        require((2..=100_000_000).contains(&features), "⟦features⟧", features, "between 2 and 100,000,000")?;
        require((1..=features).contains(&nonzeros), "⟦nonzeros⟧", nonzeros, "between 1 and the number of features")?;
        require(noise >= 0.0 && noise.is_finite(), "⟦noise⟧", noise, "a number that is not negative")?;
        require((0.0..0.5).contains(&flip), "`flip`", flip, "at least 0 and below 0.5")?;
        require(positive > 0.0 && positive < 1.0, "⟦positive⟧", positive, "between 0 and 1")?;

        let mut random = Random::new(seed, MODEL, 0);
        let topic_count = (features / 200).clamp(1, 100);
        let slot_count = features / topic_count;
        let zipf = |count: usize, shift: f64| -> Vec<f64> {
            (0..count).map(|rank| (rank as f64 + 1.0 + shift).powf(-EXPONENT)).collect()
        };
        let word_weights = zipf(features, SHIFT);
        let topic_weights = zipf(topic_count, 2.0);
        let slot_weights = zipf(slot_count, TOPIC_SHIFT);
        let mut column_of_rank: Vec<u32> = (0..features as u32).collect();
        random.shuffle(&mut column_of_rank);

        let total = |weights: &[f64]| weights.iter().sum::<f64>();
        let (word_total, topic_total, slot_total) = (total(&word_weights), total(&topic_weights), total(&slot_weights));
        // Neighbouring topics, which are about equally common, have opposite signs.
        let leanings: Vec<f64> = (0..topic_count)
            .map(|topic| if topic % 2 == 0 { 1.0 } else { -1.0 } * (1.0 + 0.3 * random.normal()))
            .collect();
        let mut rarity_of_rank = Vec::with_capacity(features);
        let mut weights = vec![0.0; features];
        for rank in 0..features {
            let slot = rank / topic_count;
            let topic = topic_of(rank, topic_count);
            let general = (1.0 - MAIN_TOPIC - SIDE_TOPIC) * word_weights[rank] / word_total;
            let topical = if slot < slot_count {
                (MAIN_TOPIC + SIDE_TOPIC) * topic_weights[topic] / topic_total * slot_weights[slot] / slot_total
            } else {
                0.0
            };
            // About a quarter of the words of a document are repetitions.
            let expected = 1.3 * nonzeros as f64 * (general + topical);
            rarity_of_rank.push((-(-(-expected).exp_m1()).ln()).max(0.05));
            if random.chance(RELEVANT) {
                weights[column_of_rank[rank] as usize] = leanings[topic] + 0.5 * random.normal();
            }
        }

        let mut text = Text {
            settings,
            words: Alias::new(&word_weights),
            topics: Alias::new(&topic_weights),
            slots: Alias::new(&slot_weights),
            topic_count,
            column_of_rank,
            rarity_of_rank,
            weights,
            threshold: 0.0,
            noise_spread: 0.0,
        };
        text.calibrate();
        Ok(text)
    }

    /// Scales the hidden weights so that the score has unit spread, and places the threshold so that the classes have
    /// their shares.
    fn calibrate(&mut self) {
        let pilot: Vec<(f64, f64)> = parallel::map(PILOT_BLOCKS as usize, |number| {
            let mut random = Random::new(self.settings.seed, PILOT, number as u64);
            let (mut scratch, mut block) = (Scratch::default(), Block::default());
            (0..ROWS_PER_BLOCK)
                .map(|_| (self.document(&mut random, &mut scratch, &mut block), random.normal()))
                .collect::<Vec<_>>()
        })
        .concat();
        let count = pilot.len() as f64;
        let mean = pilot.iter().map(|pair| pair.0).sum::<f64>() / count;
        let spread = (pilot.iter().map(|pair| (pair.0 - mean).powi(2)).sum::<f64>() / count).sqrt();
        let scale = if spread > 0.0 { 1.0 / spread } else { 1.0 };
        self.weights.iter_mut().for_each(|weight| *weight *= scale);
        self.noise_spread = self.settings.noise;
        let mut noisy: Vec<f64> =
            pilot.iter().map(|&(score, normal)| score * scale + self.noise_spread * normal).collect();
        noisy.sort_unstable_by(f64::total_cmp);
        // Flips move the share towards one half. This is compensated here.
        let TextSettings { flip, positive, .. } = self.settings;
        let before_flips = ((positive - flip) / (1.0 - 2.0 * flip)).clamp(0.0, 1.0);
        self.threshold = quantile(&noisy, 1.0 - before_flips);
    }

    /// The settings.
    pub fn settings(&self) -> &TextSettings {
        &self.settings
    }

    /// The hidden weight of each word. Before noise and flips, a document is positive if the weighted sum of its values
    /// is at least [`Text::threshold`].
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The hidden score that a positive document must reach.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Adds the features of one document to the block and returns its hidden score.
    fn document(&self, random: &mut Random, scratch: &mut Scratch, block: &mut Block) -> f64 {
        let length = log_normal_count(self.settings.nonzeros, LENGTH_SPREAD, random.normal());
        let length = length.min(self.settings.features);
        let topics = [self.topics.draw(random.bits()), self.topics.draw(random.bits())];
        scratch.clear(length);
        // With a small vocabulary, the last words of a document could take very many draws.
        for _ in 0..16 * length + 64 {
            let source = random.uniform();
            let rank = if source >= MAIN_TOPIC + SIDE_TOPIC {
                self.words.draw(random.bits())
            } else {
                let topic = topics[usize::from(source >= MAIN_TOPIC)];
                let slot = self.slots.draw(random.bits());
                slot * self.topic_count + (topic + slot) % self.topic_count
            };
            scratch.add(rank as u32);
            if scratch.words.len() == length {
                break;
            }
        }
        let mut squares = 0.0;
        scratch.entries.clear();
        for &(rank, count) in &scratch.words {
            let frequency = if count == 1 { 1.0 } else { 1.0 + f64::from(count).ln() };
            let weight = frequency * self.rarity_of_rank[rank as usize];
            squares += weight * weight;
            scratch.entries.push((self.column_of_rank[rank as usize], weight));
        }
        scratch.entries.sort_unstable_by_key(|entry| entry.0);
        let scale = GRID / squares.sqrt();
        let mut score = 0.0;
        for &(column, weight) in &scratch.entries {
            let value = ((weight * scale).round().max(1.0) / GRID) as f32;
            block.indices.push(column);
            block.values.push(value);
            score += self.weights[column as usize] * f64::from(value);
        }
        block.ends.push(block.values.len());
        score
    }
}

impl Generator for Text {
    fn features(&self) -> usize {
        self.settings.features
    }

    fn feature_names(&self) -> Option<Vec<String>> {
        None
    }

    fn blocks(&self) -> u64 {
        self.settings.rows.div_ceil(ROWS_PER_BLOCK)
    }

    fn block(&self, number: u64) -> Block {
        let first = number.saturating_mul(ROWS_PER_BLOCK);
        let rows = self.settings.rows.saturating_sub(first).min(ROWS_PER_BLOCK) as usize;
        let mut random = Random::new(self.settings.seed, ROWS.wrapping_add(self.settings.stream << 32), number);
        let mut scratch = Scratch::default();
        let entries = rows * (self.settings.nonzeros + self.settings.nonzeros / 8);
        let mut block = Block {
            targets: Vec::with_capacity(rows),
            group_ids: Vec::new(),
            ends: Vec::with_capacity(rows),
            indices: Vec::with_capacity(entries),
            values: Vec::with_capacity(entries),
        };
        for _ in 0..rows {
            let score = self.document(&mut random, &mut scratch, &mut block);
            let noisy = score + self.noise_spread * random.normal();
            let positive = (noisy >= self.threshold) != random.chance(self.settings.flip);
            block.targets.push(if positive { 1.0 } else { -1.0 });
        }
        block
    }
}

/// The topic of the word with a given rank.
fn topic_of(rank: usize, topic_count: usize) -> usize {
    let (slot, place) = (rank / topic_count, rank % topic_count);
    (place + topic_count - slot % topic_count) % topic_count
}

/// Draws from a fixed discrete distribution in constant time (Walker's alias method, Vose's construction).
#[derive(Clone, Debug)]
struct Alias {
    /// For each cell: the chance, out of 2³², to stay in it, and the cell to go to otherwise.
    cells: Vec<(u32, u32)>,
}

impl Alias {
    fn new(weights: &[f64]) -> Alias {
        let count = weights.len();
        let mean = weights.iter().sum::<f64>() / count as f64;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut cells: Vec<(u32, u32)> = (0..count as u32).map(|cell| (u32::MAX, cell)).collect();
        let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..count).partition(|&cell| shares[cell] < 1.0);
        while let (Some(&poor), Some(&rich)) = (low.last(), high.last()) {
            low.pop();
            cells[poor] = ((shares[poor] * 4_294_967_296.0) as u32, rich as u32);
            shares[rich] -= 1.0 - shares[poor];
            if shares[rich] < 1.0 {
                high.pop();
                low.push(rich);
            }
        }
        Alias { cells }
    }

    #[inline]
    fn draw(&self, bits: u64) -> usize {
        let cell = (((bits >> 32) * self.cells.len() as u64) >> 32) as usize;
        let (stay, other) = self.cells[cell];
        if (bits as u32) < stay { cell } else { other as usize }
    }
}

/// Counts the words of one document in an open-addressed table that fits into the first-level cache.
#[derive(Default)]
struct Scratch {
    /// Position in `words` plus one, or zero if free.
    table: Vec<u32>,
    shift: u32,
    words: Vec<(u32, u32)>,
    entries: Vec<(u32, f64)>,
}

impl Scratch {
    fn clear(&mut self, length: usize) {
        let size = (4 * length).next_power_of_two();
        self.table.clear();
        self.table.resize(size, 0);
        self.shift = 64 - size.trailing_zeros();
        self.words.clear();
    }

    #[inline]
    fn add(&mut self, rank: u32) {
        let mask = self.table.len() - 1;
        let mut place = (u64::from(rank).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize;
        loop {
            match self.table[place] {
                0 => {
                    self.words.push((rank, 1));
                    self.table[place] = self.words.len() as u32;
                    return;
                }
                word if self.words[word as usize - 1].0 == rank => {
                    self.words[word as usize - 1].1 += 1;
                    return;
                }
                _ => place = (place + 1) & mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::on_threads;
    use super::*;
    use crate::data::Dataset;
    use crate::error::Code;

    fn make(settings: TextSettings) -> (Text, Dataset) {
        let text = Text::new(settings).expect("valid");
        let data = text.to_dataset().expect("valid");
        (text, data)
    }

    #[test]
    fn rows_have_unit_length_and_the_mean_number_of_words_asked_for() {
        let (_, data) = make(TextSettings { rows: 4000, ..TextSettings::default() });
        assert_eq!((data.rows(), data.cols()), (4000, 47_000));
        for row in 0..data.rows() {
            let mut squares = 0.0;
            data.matrix().each_in_row(row, |_, value| {
                assert!(value > 0.0);
                squares += value * value;
            });
            assert!((squares - 1.0).abs() < 1e-5, "row {row}: {squares}");
        }
        let mean = data.matrix().entries() as f64 / 4000.0;
        assert!((mean - 78.0).abs() < 2.5, "{mean} words a row");
    }

    #[test]
    fn values_have_seven_decimals_at_most() {
        let (_, data) = make(TextSettings { rows: 200, ..TextSettings::default() });
        for row in 0..data.rows() {
            data.matrix().each_in_row(row, |_, value| {
                let shown = (value as f32).to_string();
                assert!(shown.len() <= "0.1234567".len(), "{shown}");
            });
        }
    }

    #[test]
    fn word_frequencies_follow_zipfs_law() {
        let (_, data) = make(TextSettings { rows: 20_000, ..TextSettings::default() });
        let mut documents = vec![0u32; data.cols()];
        for row in 0..data.rows() {
            data.matrix().each_in_row(row, |column, _| documents[column] += 1);
        }
        documents.sort_unstable_by(|a, b| b.cmp(a));
        assert!(documents[0] < 12_000, "the commonest word is in {} of 20,000 documents", documents[0]);
        // The least-squares slope of log frequency over log rank in the middle of the range.
        let points: Vec<(f64, f64)> = (100..10_000)
            .step_by(50)
            .map(|rank| ((rank as f64 + 1.0).ln(), f64::from(documents[rank]).max(0.5).ln()))
            .collect();
        let count = points.len() as f64;
        let (mean_x, mean_y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / count, sum.1 + p.1 / count));
        let covariance: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
        let variance: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
        let slope = covariance / variance;
        assert!((-1.1..-0.85).contains(&slope), "slope {slope}");
    }

    #[test]
    fn classes_have_the_share_asked_for() {
        for (positive, flip) in [(0.5, 0.01), (0.1, 0.05), (0.8, 0.0)] {
            let settings = TextSettings { rows: 10_000, features: 5000, positive, flip, ..TextSettings::default() };
            let (_, data) = make(settings);
            let targets = data.targets().real().expect("numbers");
            assert!(targets.iter().all(|target| target.abs() == 1.0));
            let share = targets.iter().filter(|&&target| target > 0.0).count() as f64 / 10_000.0;
            assert!((share - positive).abs() < 0.03, "{share} instead of {positive}");
        }
    }

    #[test]
    fn without_noise_the_hidden_model_explains_every_label() {
        let settings = TextSettings { rows: 3000, features: 5000, noise: 0.0, flip: 0.0, ..TextSettings::default() };
        let (text, data) = make(settings);
        let mut scores = vec![0.0; 3000];
        data.matrix().scores(0..3000, text.weights(), &mut scores);
        let targets = data.targets().real().expect("numbers");
        let wrong = scores.iter().zip(targets).filter(|&(&score, &y)| (score >= text.threshold()) != (y > 0.0)).count();
        // Sums in another order may only differ at the threshold itself.
        assert!(wrong <= 1, "{wrong} rows");
        assert!(text.weights().iter().filter(|&&weight| weight != 0.0).count() < 1700);
    }

    /// Test error of the L1 support vector machine with an augmented constant, by dual coordinate descent.
    fn svm_test_error(train: &Dataset, test: &Dataset, cost: f64, passes: usize) -> f64 {
        let targets = train.targets().real().expect("numbers");
        let (mut w, mut alpha) = (vec![0.0; train.cols()], vec![0.0; train.rows()]);
        let mut bias = 0.0;
        let mut order: Vec<usize> = (0..train.rows()).collect();
        let mut random = Random::new(5, 0, 0);
        for _ in 0..passes {
            random.shuffle(&mut order);
            for &row in &order {
                let mut score = [0.0];
                train.matrix().scores(row..row + 1, &w, &mut score);
                let gradient = targets[row] * (score[0] + bias) - 1.0;
                let new = (alpha[row] - gradient / 2.0f64).clamp(0.0, cost);
                let step = (new - alpha[row]) * targets[row];
                alpha[row] = new;
                if step != 0.0 {
                    train.matrix().accumulate(row..row + 1, &[step], &mut w);
                    bias += step;
                }
            }
        }
        let mut scores = vec![0.0; test.rows()];
        test.matrix().scores(0..test.rows(), &w, &mut scores);
        let targets = test.targets().real().expect("numbers");
        let wrong = scores.iter().zip(targets).filter(|&(score, y)| (score + bias) * y <= 0.0).count();
        wrong as f64 / test.rows() as f64
    }

    fn learning_error(rows: usize, settings: TextSettings, passes: usize) -> f64 {
        let test_rows = 10_000;
        let (_, data) = make(TextSettings { rows: (rows + test_rows) as u64, ..settings });
        let train = data.select(&(0..rows).collect::<Vec<_>>()).expect("valid");
        let test = data.select(&(rows..rows + test_rows).collect::<Vec<_>>()).expect("valid");
        svm_test_error(&train, &test, 1.0, passes)
    }

    #[test]
    fn a_linear_svm_errs_about_as_often_as_on_real_news() {
        let error = learning_error(20_000, TextSettings::default(), 8);
        assert!((0.05..0.1).contains(&error), "test error {error}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = TextSettings::default;
        for settings in [
            TextSettings { rows: 0, ..base() },
            TextSettings { features: 1, ..base() },
            TextSettings { nonzeros: 0, ..base() },
            TextSettings { nonzeros: 47_001, ..base() },
            TextSettings { noise: f64::NAN, ..base() },
            TextSettings { flip: 0.5, ..base() },
            TextSettings { positive: 1.0, ..base() },
        ] {
            assert_eq!(Text::new(settings).expect_err("out of range").code(), Code::BadSetting);
        }
    }

    #[test]
    fn the_smallest_settings_work() {
        let settings = TextSettings { rows: 3, features: 2, nonzeros: 2, ..TextSettings::default() };
        let (_, data) = on_threads(1, || make(settings));
        assert_eq!((data.rows(), data.cols()), (3, 2));
    }

    #[test]
    fn the_alias_table_draws_by_weight() {
        let alias = Alias::new(&[1.0, 0.0, 5.0, 2.0]);
        let mut random = Random::new(1, 0, 0);
        let mut counts = [0i32; 4];
        for _ in 0..80_000 {
            counts[alias.draw(random.bits())] += 1;
        }
        for (count, expected) in counts.into_iter().zip([10_000, 0, 50_000, 20_000]) {
            assert!((count - expected).abs() < 600, "{counts:?}");
        }
    }
}
