//! Parsing: newspaper sentences of at most 15 words (Marcus, Santorini & Marcinkiewicz 1993), files 0001–0159 to learn from
//! and 0160–0199 to test on, measured by labelled brackets.
//!
//! The baseline is the grammar of largest likelihood, read off the same trees with the same symbols: the weight of a rule is
//! the logarithm of its relative frequency, and that of a word with a tag is ln P(tag | word) − ln P(tag). Where a word is
//! rare, P(tag | word) leans on words that occur once with the same ending and shape:
//!
//! ```text
//! P(tag | word) = (count(word, tag) + P(tag | ending and shape)) / (count(word) + 1)
//! ```

use super::Row;
use super::codes::folder_of;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::{Dataset, Groups, Names};
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::model::{Answers, Decoder, Grammar};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Input, Regularisation, Settings, TreeSettings};
use maxmargin::structured::{LossScale, Trees, trees_of};
use maxmargin::train::train;
use maxmargin_io::{Loaded, ReadSettings, gather, options_like};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

const FILES: [&str; 2] = ["treebank/train.mrg.gz", "treebank/test.mrg.gz"];

/// Longer sentences are left out.
const WORDS: u32 = 15;

/// The weight of the loss, and the relative gap to stop at.
const C: f64 = 0.1;
const TOLERANCE: f64 = 0.02;

/// Remembers every part of a phrase: the rules are those of the trees themselves.
const ALL_SIBLINGS: u32 = 99;

/// Tags of words that occur once, by ending and shape, so that no tag is impossible.
const LEAST_SHARE: f64 = 1e-4;

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let folder = folder_of(arguments, "the sentences are real data", "treebank")?;
    let files = FILES.map(|file| Path::new(&folder).join(file).to_string_lossy().into_owned());
    let read = ReadSettings { max_words: Some(WORDS), ..ReadSettings::default() };
    let options = read.options(None, cancel)?;
    let learned = gather(&files[0], None, &options, false, Input::Sentences)?.timed.loaded;
    let options = options_like(&options, &learned.data, &learned.facts);
    let tested = gather(&files[1], None, &options, false, Input::Sentences)?.timed.loaded;
    let sentences = |loaded: &Loaded| format::count(loaded.data.groups().map_or(0, Groups::len) as u64);
    console.show(&format!(
        "sentences of at most {WORDS} words: {} to train on, {} to test on, {} features",
        sentences(&learned),
        sentences(&tested),
        format::count(learned.data.cols() as u64)
    ))?;
    let (mut rows, mut table) = (Vec::new(), Vec::new());
    let mut add = |method: &'static str, siblings: u32, answers: &Answers<'_>| -> Result<()> {
        let setting = setting(method, siblings);
        let mut cells = vec![method.to_string(), siblings.to_string()];
        for (metric, name) in METRICS {
            let value = 100.0 * answers.evaluate(&metric)?.value;
            cells.push(format::fixed(value, 2));
            rows.push(row(setting.clone(), method, name, value));
        }
        console.show(&line(&cells))?;
        table.push(cells);
        Ok(())
    };
    console.show(&line(&HEADER.map(String::from)))?;
    let task = TreeSettings::default();
    for siblings in [task.siblings, ALL_SIBLINGS] {
        let likeliest = TreeSettings { siblings, ..task.clone() };
        let trees = Trees::on(&learned.data, likeliest.markov(), LossScale::Token, None)?;
        let grammar = trees.grammar();
        let shared = grammar.relative_frequencies(trees.derivations());
        let scores = Lexicon::of(&learned, grammar)?.scores(&tested, grammar)?;
        let decoder = Decoder::Tree { grammar: Box::new(grammar.clone()), shared };
        add("grammar", siblings, &Answers::of_scores(scores, &decoder, &tested.data)?)?;
        cancel.check()?;
    }
    let settings =
        Settings { regularisation: Regularisation::C(C), tolerance: TOLERANCE, ..Settings::of(task.clone()) };
    let began = Instant::now();
    let model = train(&learned.data, &settings, None, &mut Silent, cancel)?.model;
    let seconds = began.elapsed().as_secs_f64();
    add("svm", task.siblings, &Answers::new(&model, &tested.data)?)?;
    rows.push(row(setting("svm", task.siblings), "svm", "seconds", seconds));
    let gap = model.certificate.gap().map_or("–".to_string(), format::gap);
    console.show(&format!("trained in {}, gap {gap}, C = {C}", format::seconds(seconds)))?;
    report.table("treebank", HEADER.map(String::from).to_vec(), table);
    Ok(rows)
}

const METRICS: [(Metric, &str); 5] = [
    (Metric::LabelledF1, "labelled-f1"),
    (Metric::LabelledPrecision, "labelled-precision"),
    (Metric::LabelledRecall, "labelled-recall"),
    (Metric::ExactMatch, "exact-match"),
    (Metric::TagAccuracy, "tag-accuracy"),
];

const HEADER: [&str; 7] = ["method", "siblings", "F1 %", "precision", "recall", "exact", "tags"];

fn line(cells: &[String]) -> String {
    let parts: Vec<String> = cells.iter().map(|cell| format!("{cell:<10}")).collect();
    parts.join(" ").trim_end().to_string()
}

fn setting(method: &str, siblings: u32) -> Value {
    let c = (method == "svm").then_some(C);
    json!({ "data": "treebank", "words": WORDS, "siblings": siblings, "c": c })
}

fn row(setting: Value, method: &'static str, metric: &'static str, ours: f64) -> Row {
    Row { setting, method, metric, ours, standard_error: 0.0, seeds: 1, published: None }
}

/// Shares of tags: of each word, of rare words by ending and shape, and of all words.
struct Lexicon {
    words: HashMap<String, Vec<f64>>,
    rare: HashMap<(String, String), Vec<f64>>,
    all_rare: Vec<f64>,
    all: Vec<f64>,
}

/// The last letters of a word, and the classes of its characters without repetition.
fn ending_and_shape(word: &str) -> (String, String) {
    let last: Vec<char> = word.chars().rev().take(2).collect();
    let class = |c: char| match c {
        c if c.is_uppercase() => 'X',
        c if c.is_alphabetic() => 'x',
        c if c.is_numeric() => 'd',
        other => other,
    };
    let mut shape: Vec<char> = word.chars().map(class).collect();
    shape.dedup();
    (last.into_iter().rev().collect(), shape.into_iter().collect())
}

fn words_of(loaded: &Loaded) -> Result<&Names> {
    loaded.facts.words.as_deref().ok_or_else(|| Error::new(Code::Internal, "the words of sentences are not known"))
}

impl Lexicon {
    fn of(learned: &Loaded, grammar: &Grammar) -> Result<Lexicon> {
        let words = words_of(learned)?;
        let none = || vec![0.0; grammar.tags().len()];
        let mut lexicon = Lexicon { words: HashMap::new(), rare: HashMap::new(), all_rare: none(), all: none() };
        let place = |tag: &String| grammar.tags().binary_search(tag).unwrap_or_default();
        let tags = tags_of(&learned.data)?;
        for (row, tag) in tags.iter().enumerate() {
            let own = lexicon.words.entry(words.get(row).into_owned()).or_insert_with(none);
            own[place(tag)] += 1.0;
            lexicon.all[place(tag)] += 1.0;
        }
        for (word, counts) in lexicon.words.iter().filter(|(_, counts)| counts.iter().sum::<f64>() == 1.0) {
            let own = lexicon.rare.entry(ending_and_shape(word)).or_insert_with(none);
            for (tag, count) in counts.iter().enumerate() {
                own[tag] += count;
                lexicon.all_rare[tag] += count;
            }
        }
        Ok(lexicon)
    }

    /// The score of each word for each tag. Borders and splits score nothing.
    fn scores(&self, tested: &Loaded, grammar: &Grammar) -> Result<Vec<f64>> {
        let words = words_of(tested)?;
        let outputs = grammar.outputs();
        let mut scores = vec![0.0; tested.data.rows() * outputs];
        let sum = |counts: &[f64]| counts.iter().sum::<f64>().max(1.0);
        let known = sum(&self.all);
        for (row, own) in scores.chunks_exact_mut(outputs).enumerate() {
            let word = words.get(row);
            let rare = self.rare.get(&ending_and_shape(&word)).unwrap_or(&self.all_rare);
            let of_rare = sum(rare);
            let counts = self.words.get(word.as_ref());
            let of_word = counts.map_or(0.0, |counts| counts.iter().sum::<f64>());
            for (tag, score) in own[..grammar.tags().len()].iter_mut().enumerate() {
                let tag_share = self.all[tag] / known;
                let share = (1.0 - LEAST_SHARE) * rare[tag] / of_rare + LEAST_SHARE * tag_share;
                let count = counts.map_or(0.0, |counts| counts[tag]);
                *score = ((count + share) / (of_word + 1.0)).ln() - tag_share.ln();
            }
        }
        Ok(scores)
    }
}

/// The true tag of each word.
fn tags_of(data: &Dataset) -> Result<Vec<String>> {
    Ok(trees_of(data, None)?.into_iter().flatten().flat_map(|tree| tree.tags).collect())
}
