//! [`Search`]: graded documents of search queries, similar to LETOR and MSLR.
//!
//! The model:
//! - A query has a log-normal number of documents. For each stream of evidence (title, body, URL, anchor, document,
//!   clicks) it has its own shift and scale, so scores of different queries are not on the same scale.
//! - A document has one hidden topicality, which the text streams share in part, and an authority. Half of all
//!   documents have no anchor text and most have no clicks; these columns are then zero.
//! - There are three kinds of columns: scores in [0, 1] with six decimals, counts with a heavy tail, and 0/1 flags.
//!   About every fourth column is nearly a copy of an earlier one, like BM25 and tf-idf.
//! - The hidden score is **linear** in the columns as they are written; [`Search::weights`] returns its weights. A
//!   share of the columns has weight zero. A query's offset (some queries have few good answers) and normal noise are
//!   added to the score, and thresholds turn the sum into a grade. With the default noise, the hidden weights
//!   themselves order 73 % of the pairs of documents with different grades correctly; no learner can do much better.
//! - Grades are skewed: 52, 32, 13, 2 and 1 per cent with five levels, 74, 20 and 6 per cent with three.

use super::{Block, Generator, log_normal_count, quantile, require};
use crate::error::Result;
use crate::parallel;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// The settings of simulated search results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Number of queries.
    pub queries: u64,
    /// Mean number of documents of a query.
    pub docs: usize,
    /// Number of columns.
    pub features: usize,
    /// Number of grades, counted from 0.
    pub levels: usize,
    /// Spread of the noise, as a multiple of the spread of the hidden score within a query.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
    /// Which sample of the same hidden model: 0 for training, another number for test queries.
    pub stream: u64,
}

impl Default for SearchSettings {
    fn default() -> SearchSettings {
        SearchSettings { queries: 1000, docs: 120, features: 136, levels: 5, noise: 1.5, seed: 1, stream: 0 }
    }
}

const QUERIES_PER_BLOCK: u64 = 16;
/// Spread of the logarithm of the number of documents.
const SIZE_SPREAD: f64 = 0.5;
/// Spread of a query's offset, as a multiple of the spread of the score within a query.
const OFFSET_SPREAD: f64 = 0.5;
/// Scores are whole multiples of 1 / GRID.
const GRID: f64 = 1e6;
/// The largest count; whole numbers up to here are exact in f32.
const LARGEST_COUNT: f64 = 1e7;
/// Number of pilot queries, and of documents in each. They serve to place the thresholds.
const PILOT_QUERIES: u64 = 1024;
const PILOT_DOCS: usize = 16;

/// The random streams of this generator.
const MODEL: u64 = 0x7365_6172_0001;
const PILOT: u64 = 0x7365_6172_0002;
const ROWS: u64 = 0x7365_6172_0003;

/// The source of the evidence in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stream {
    Title,
    Body,
    Url,
    Anchor,
    Document,
    Clicks,
}

use Stream::{Anchor, Body, Clicks, Document, Title, Url};

const STREAMS: [Stream; 6] = [Title, Body, Url, Anchor, Document, Clicks];

impl Stream {
    /// The share of the document's topicality in the stream's evidence.
    fn topicality(self) -> f64 {
        match self {
            Title => 0.7,
            Body => 0.8,
            Url => 0.4,
            Anchor => 0.6,
            Document => 0.1,
            Clicks => 0.6,
        }
    }

    /// The share of documents for which the stream is empty.
    fn missing(self) -> f64 {
        match self {
            Anchor => 0.5,
            Clicks => 0.7,
            _ => 0.0,
        }
    }
}

/// How evidence becomes a number.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// 1 / (1 + exp(centre − evidence)).
    Score { centre: f64 },
    /// exp(level + slope · evidence), rounded down.
    Count { level: f64, slope: f64 },
    /// Whether the evidence exceeds the threshold.
    Flag { threshold: f64 },
}

/// One column.
#[derive(Clone, Copy, Debug)]
struct Column {
    stream: Stream,
    kind: Kind,
    /// The column that this one nearly repeats.
    repeats: Option<usize>,
    /// The correlation with the stream's evidence, or with the repeated column.
    loading: f64,
    /// The spread of the column's own part: √(1 − loading²).
    own: f64,
}

impl Column {
    fn new(stream: Stream, kind: Kind, repeats: Option<usize>, loading: f64) -> Column {
        Column { stream, kind, repeats, loading, own: (1.0 - loading * loading).sqrt() }
    }
}

/// The columns with fixed names: name, stream, kind, repeated column, loading, and the sign of the hidden weight.
type Named = (&'static str, Stream, Kind, Option<usize>, f64, f64);
const NAMED: [Named; 16] = [
    ("bm25_title", Title, Kind::Score { centre: 0.5 }, None, 0.90, 1.0),
    ("bm25_body", Body, Kind::Score { centre: 0.0 }, None, 0.90, 1.0),
    ("bm25_url", Url, Kind::Score { centre: 1.0 }, None, 0.80, 1.0),
    ("bm25_anchor", Anchor, Kind::Score { centre: 0.5 }, None, 0.85, 1.0),
    ("bm25_document", Body, Kind::Score { centre: 0.1 }, Some(1), 0.98, 1.0),
    ("tfidf_title", Title, Kind::Score { centre: 0.6 }, Some(0), 0.97, 1.0),
    ("tfidf_body", Body, Kind::Score { centre: 0.2 }, Some(1), 0.97, 1.0),
    ("matched_terms_title", Title, Kind::Count { level: 0.5, slope: 0.4 }, None, 0.80, 1.0),
    ("matched_terms_body", Body, Kind::Count { level: 0.9, slope: 0.4 }, None, 0.80, 1.0),
    ("exact_match_title", Title, Kind::Flag { threshold: 1.0 }, None, 0.75, 1.0),
    ("title_length", Document, Kind::Count { level: 2.0, slope: 0.4 }, None, 0.10, 0.0),
    ("body_length", Document, Kind::Count { level: 6.0, slope: 1.0 }, None, 0.10, 0.0),
    ("url_depth", Url, Kind::Count { level: 0.8, slope: 0.5 }, None, 0.20, -1.0),
    ("pagerank", Document, Kind::Count { level: 5.0, slope: 1.2 }, None, 0.85, 1.0),
    ("inlinks", Document, Kind::Count { level: 3.0, slope: 1.4 }, Some(13), 0.90, 1.0),
    ("clicks", Clicks, Kind::Count { level: 1.5, slope: 1.2 }, None, 0.80, 1.0),
];

/// A generator of graded search results; see [`SearchSettings`].
#[derive(Clone, Debug)]
pub struct Search {
    settings: SearchSettings,
    columns: Vec<Column>,
    weights: Vec<f64>,
    thresholds: Vec<f64>,
}

impl Search {
    /// Checks the settings and draws the columns and the hidden model.
    pub fn new(settings: SearchSettings) -> Result<Search> {
        let SearchSettings { queries, docs, features, levels, noise, seed, .. } = settings;
        require((1..=1 << 48).contains(&queries), "⟦queries⟧", queries, "at least 1")?;
        require((1..=10_000_000).contains(&docs), "⟦docs⟧", docs, "between 1 and 10,000,000")?;
        require((1..=1_000_000).contains(&features), "⟦features⟧", features, "between 1 and 1,000,000")?;
        require((2..=16).contains(&levels), "`levels`", levels, "between 2 and 16")?;
        require(noise >= 0.0 && noise.is_finite(), "⟦noise⟧", noise, "a number that is not negative")?;

        let mut random = Random::new(seed, MODEL, 0);
        let mut columns = Vec::with_capacity(features);
        let mut weights = Vec::with_capacity(features);
        for number in 0..features {
            let (column, sign) = match NAMED.get(number) {
                Some(&(_, stream, kind, repeats, loading, sign)) => (Column::new(stream, kind, repeats, loading), sign),
                None => draw_column(&columns, &mut random),
            };
            // Heavy tails would otherwise let a single column decide the top grades.
            let importance = match column.kind {
                Kind::Score { .. } => 1.0,
                Kind::Count { .. } => 0.25,
                Kind::Flag { .. } => 0.5,
            };
            columns.push(column);
            weights.push(sign * importance * (0.2 + random.normal().abs()));
        }
        let mut search = Search { settings, columns, weights, thresholds: Vec::new() };
        search.calibrate();
        Ok(search)
    }

    /// Scales the hidden weights: each weight is relative to the spread of its column within a query, and the score has
    /// unit spread there. Then places the thresholds so that the grades have their shares.
    fn calibrate(&mut self) {
        let spreads = self.column_spreads();
        for (weight, spread) in self.weights.iter_mut().zip(spreads) {
            *weight = if spread > 1e-9 { *weight / spread } else { 0.0 };
        }
        let (mut scores, spread) = self.pilot_scores();
        let scale = if spread > 1e-9 { 1.0 / spread } else { 1.0 };
        self.weights.iter_mut().for_each(|weight| *weight *= scale);
        let mut random = Random::new(self.settings.seed, PILOT, u64::MAX);
        for query in scores.chunks_mut(PILOT_DOCS) {
            let offset = OFFSET_SPREAD * random.normal();
            for score in query {
                *score = *score * scale + offset + self.settings.noise * random.normal();
            }
        }
        scores.sort_unstable_by(f64::total_cmp);
        let mut below = 0.0;
        let shares = grade_shares(self.settings.levels);
        for share in &shares[..shares.len() - 1] {
            below += share;
            self.thresholds.push(quantile(&scores, below));
        }
    }

    /// The spread of each column around its mean within a query.
    fn column_spreads(&self) -> Vec<f64> {
        // The blocks do not depend on the number of threads, and their sums are added in order.
        let parts: Vec<Vec<f64>> = parallel::map(16, |part| {
            let mut squares = vec![0.0; self.columns.len()];
            for query in 0..4 {
                let documents = self.pilot_query(part as u64 * 4 + query);
                for (column, sum) in squares.iter_mut().enumerate() {
                    let values = || documents.chunks(self.columns.len()).map(|row| f64::from(row[column]));
                    let mean = values().sum::<f64>() / PILOT_DOCS as f64;
                    *sum += values().map(|value| (value - mean).powi(2)).sum::<f64>();
                }
            }
            squares
        });
        let degrees = (64 * (PILOT_DOCS - 1)) as f64;
        (0..self.columns.len())
            .map(|column| (parts.iter().map(|part| part[column]).sum::<f64>() / degrees).sqrt())
            .collect()
    }

    /// The hidden scores of the pilot queries and their spread within a query.
    fn pilot_scores(&self) -> (Vec<f64>, f64) {
        let scores: Vec<f64> = parallel::map(PILOT_QUERIES as usize, |query| {
            let documents = self.pilot_query(query as u64);
            documents.chunks(self.columns.len()).map(|row| self.score(row)).collect::<Vec<_>>()
        })
        .concat();
        let mut squares = 0.0;
        for query in scores.chunks(PILOT_DOCS) {
            let mean = query.iter().sum::<f64>() / PILOT_DOCS as f64;
            squares += query.iter().map(|score| (score - mean).powi(2)).sum::<f64>();
        }
        let degrees = PILOT_QUERIES as f64 * (PILOT_DOCS - 1) as f64;
        (scores, (squares / degrees).sqrt())
    }

    fn pilot_query(&self, query: u64) -> Vec<f32> {
        let mut random = Random::new(self.settings.seed, PILOT, query);
        let context = QueryContext::draw(&mut random);
        let mut evidence = vec![0.0; self.columns.len()];
        let mut documents = vec![0.0; PILOT_DOCS * self.columns.len()];
        for row in documents.chunks_mut(self.columns.len()) {
            self.document(&context, &mut random, &mut evidence, row);
        }
        documents
    }

    fn score(&self, row: &[f32]) -> f64 {
        row.iter().zip(&self.weights).map(|(&value, weight)| f64::from(value) * weight).sum()
    }

    /// The settings.
    pub fn settings(&self) -> &SearchSettings {
        &self.settings
    }

    /// The hidden weight of each column. Grades are made from this linear score after adding offset and noise.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The score needed for each grade from 1 on.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// Draws all columns of one document.
    fn document(&self, query: &QueryContext, random: &mut Random, evidence: &mut [f64], row: &mut [f32]) {
        let topicality = random.normal();
        let mut streams = [0.0; STREAMS.len()];
        let mut missing = [false; STREAMS.len()];
        for stream in STREAMS {
            let share = stream.topicality();
            streams[stream as usize] = share * topicality + (1.0 - share * share).sqrt() * random.normal();
            missing[stream as usize] = random.chance(stream.missing());
        }
        for (number, column) in self.columns.iter().enumerate() {
            let stream = column.stream as usize;
            let source = column.repeats.map_or(streams[stream], |other| evidence[other]);
            evidence[number] = column.loading * source + column.own * random.normal();
            if missing[stream] {
                row[number] = 0.0;
                continue;
            }
            let shown = query.scales[stream] * evidence[number] + query.shifts[stream];
            row[number] = match column.kind {
                Kind::Score { centre } => (((GRID / (1.0 + (centre - shown).exp())).round()) / GRID) as f32,
                Kind::Count { level, slope } => {
                    (level + slope * shown.min(4.0)).exp().min(LARGEST_COUNT).floor() as f32
                }
                Kind::Flag { threshold } => f32::from(u8::from(shown > threshold)),
            };
        }
    }
}

/// A column without a fixed name, and the sign of its hidden weight.
fn draw_column(columns: &[Column], random: &mut Random) -> (Column, f64) {
    let sign = match random.uniform() {
        draw if draw < 0.35 => 0.0,
        draw if draw < 0.85 => 1.0,
        _ => -1.0,
    };
    if random.chance(0.25) && !columns.is_empty() {
        let other = random.below(columns.len() as u64) as usize;
        let Column { stream, kind, .. } = columns[other];
        return (Column::new(stream, kind, Some(other), 0.95 + 0.045 * random.uniform()), sign);
    }
    let stream = STREAMS[random.below(STREAMS.len() as u64) as usize];
    let kind = match random.uniform() {
        draw if draw < 0.55 => Kind::Score { centre: random.normal() },
        draw if draw < 0.88 => Kind::Count { level: 4.0 * random.uniform(), slope: 0.4 + 0.9 * random.uniform() },
        _ => Kind::Flag { threshold: 0.5 + random.uniform() },
    };
    (Column::new(stream, kind, None, 0.2 + 0.7 * random.uniform()), sign)
}

/// The share of each grade.
fn grade_shares(levels: usize) -> Vec<f64> {
    match levels {
        2 => vec![0.85, 0.15],
        3 => vec![0.74, 0.20, 0.06],
        5 => vec![0.52, 0.32, 0.13, 0.02, 0.01],
        _ => {
            let weights: Vec<f64> = (0..levels).map(|grade| 0.5f64.powi(grade as i32)).collect();
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect()
        }
    }
}

/// What the documents of one query share.
struct QueryContext {
    shifts: [f64; STREAMS.len()],
    scales: [f64; STREAMS.len()],
}

impl QueryContext {
    fn draw(random: &mut Random) -> QueryContext {
        let mut context = QueryContext { shifts: [0.0; STREAMS.len()], scales: [1.0; STREAMS.len()] };
        for stream in STREAMS {
            context.shifts[stream as usize] = 0.5 * random.normal();
            context.scales[stream as usize] = (0.25 * random.normal()).exp();
        }
        context
    }
}

impl Generator for Search {
    fn features(&self) -> usize {
        self.columns.len()
    }

    fn feature_names(&self) -> Option<Vec<String>> {
        let name =
            |number: usize| NAMED.get(number).map_or_else(|| format!("f{}", number + 1), |column| column.0.to_string());
        Some((0..self.columns.len()).map(name).collect())
    }

    fn blocks(&self) -> u64 {
        self.settings.queries.div_ceil(QUERIES_PER_BLOCK)
    }

    fn block(&self, number: u64) -> Block {
        let first = number.saturating_mul(QUERIES_PER_BLOCK);
        let last = first.saturating_add(QUERIES_PER_BLOCK).min(self.settings.queries);
        let mut random = Random::new(self.settings.seed, ROWS.wrapping_add(self.settings.stream << 32), number);
        let mut block = Block::default();
        let mut evidence = vec![0.0; self.columns.len()];
        let mut row = vec![0.0; self.columns.len()];
        for query in first..last {
            let documents = log_normal_count(self.settings.docs, SIZE_SPREAD, random.normal());
            let offset = OFFSET_SPREAD * random.normal();
            let context = QueryContext::draw(&mut random);
            for _ in 0..documents {
                self.document(&context, &mut random, &mut evidence, &mut row);
                let total = self.score(&row) + offset + self.settings.noise * random.normal();
                let grade = self.thresholds.iter().filter(|&&threshold| total >= threshold).count();
                block.targets.push(grade as f64);
                block.group_ids.push(query + 1);
                for (column, &value) in row.iter().enumerate() {
                    if value != 0.0 {
                        block.indices.push(column as u32);
                        block.values.push(value);
                    }
                }
                block.ends.push(block.values.len());
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::error::Code;

    fn make(settings: SearchSettings) -> (Search, Dataset) {
        let search = Search::new(settings).expect("valid");
        let data = search.to_dataset().expect("valid");
        (search, data)
    }

    fn column(data: &Dataset, name: &str) -> Vec<f64> {
        let position = data.feature_names().expect("named").position(name).expect("known");
        let mut values = vec![0.0; data.rows()];
        for (row, value) in values.iter_mut().enumerate() {
            data.matrix().each_in_row(row, |column, found| {
                if column == position {
                    *value = found;
                }
            });
        }
        values
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let count = a.len() as f64;
        let (mean_a, mean_b) = (a.iter().sum::<f64>() / count, b.iter().sum::<f64>() / count);
        let sum =
            |x: &[f64], mx: f64, y: &[f64], my: f64| x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>();
        sum(a, mean_a, b, mean_b) / (sum(a, mean_a, a, mean_a) * sum(b, mean_b, b, mean_b)).sqrt()
    }

    #[test]
    fn grades_are_skewed_as_in_the_benchmark_collections() {
        for (levels, shares) in [(5, &[0.52, 0.32, 0.13, 0.02, 0.01][..]), (3, &[0.74, 0.20, 0.06]), (2, &[0.85, 0.15])]
        {
            let settings = SearchSettings { queries: 600, docs: 40, features: 30, levels, ..SearchSettings::default() };
            let (_, data) = make(settings);
            let grades = data.targets().real().expect("numbers");
            for (grade, &share) in shares.iter().enumerate() {
                let found =
                    grades.iter().filter(|&&target| target == grade as f64).count() as f64 / grades.len() as f64;
                assert!((found - share).abs() < 0.005 + 0.06 * share, "grade {grade} of {levels}: {found}");
            }
            assert!(grades.iter().all(|&grade| grade < levels as f64));
        }
    }

    #[test]
    fn query_sizes_vary_around_their_mean() {
        let (_, data) = make(SearchSettings { queries: 1000, docs: 50, features: 3, ..SearchSettings::default() });
        let groups = data.groups().expect("queries");
        assert_eq!(groups.len(), 1000);
        assert_eq!(groups.names().get(999), "1000");
        let mean = data.rows() as f64 / 1000.0;
        assert!((mean - 50.0).abs() < 3.0, "{mean} documents a query");
        let sizes = || groups.ranges().map(|range| range.len());
        assert!(sizes().min().expect("some") < 25 && sizes().max().expect("some") > 120);
    }

    #[test]
    fn columns_are_of_their_kinds() {
        let (_, data) = make(SearchSettings { queries: 50, docs: 40, features: 20, ..SearchSettings::default() });
        assert!(column(&data, "bm25_title").iter().all(|value| (0.0..=1.0).contains(value)));
        assert!(column(&data, "exact_match_title").iter().all(|&value| value == 0.0 || value == 1.0));
        let pagerank = column(&data, "pagerank");
        assert!(pagerank.iter().all(|value| *value >= 0.0 && value.fract() == 0.0));
        let mut sorted = pagerank.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(quantile(&sorted, 0.99) > 10.0 * quantile(&sorted, 0.5), "the tail is heavy");
        assert!(correlation(&column(&data, "bm25_title"), &column(&data, "tfidf_title")) > 0.9);
        assert_eq!(data.feature_names().expect("named").get(16), "f17");
        let anchor = column(&data, "bm25_anchor");
        let empty = anchor.iter().filter(|&&value| value == 0.0).count() as f64 / anchor.len() as f64;
        assert!((empty - 0.5).abs() < 0.05, "{empty}");
    }

    #[test]
    fn the_hidden_weights_order_documents_within_a_query() {
        for (noise, least) in [(0.0, 0.999), (1.5, 0.7)] {
            let settings = SearchSettings { queries: 100, docs: 30, noise, ..SearchSettings::default() };
            let (search, data) = make(settings);
            let mut scores = vec![0.0; data.rows()];
            data.matrix().scores(0..data.rows(), search.weights(), &mut scores);
            let grades = data.targets().real().expect("numbers");
            let (mut right, mut pairs) = (0.0, 0.0);
            for range in data.groups().expect("queries").ranges() {
                for better in range.clone() {
                    for worse in range.clone().filter(|&worse| grades[worse] < grades[better]) {
                        pairs += 1.0;
                        right += f64::from(u8::from(scores[better] > scores[worse]));
                    }
                }
            }
            assert!(right / pairs > least, "noise {noise}: {}", right / pairs);
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let base = SearchSettings::default;
        for settings in [
            SearchSettings { queries: 0, ..base() },
            SearchSettings { docs: 0, ..base() },
            SearchSettings { features: 0, ..base() },
            SearchSettings { levels: 1, ..base() },
            SearchSettings { levels: 17, ..base() },
            SearchSettings { noise: -1.0, ..base() },
            SearchSettings { noise: f64::INFINITY, ..base() },
        ] {
            assert_eq!(Search::new(settings).expect_err("out of range").code(), Code::BadSetting);
        }
    }

    #[test]
    fn one_query_of_one_document_with_one_column_works() {
        let (_, data) = make(SearchSettings { queries: 1, docs: 1, features: 1, ..SearchSettings::default() });
        assert_eq!((data.rows() >= 1, data.cols()), (true, 1));
    }
}
