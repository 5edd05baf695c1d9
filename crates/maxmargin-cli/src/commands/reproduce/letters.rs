//! Handwritten words: letters by their pixels and by the letters beside them (Taskar, Guestrin & Koller 2003). Words come
//! in ten folds; training is on fold 0 and testing on the others, or the other way round.
//!
//! ```text
//! objective = λ/2 ‖w‖² + mean over words of the largest loss + score − score of the truth
//! ```
//! with the share of wrong letters as loss. Beside it, a classifier that sees each letter alone, at the same λ: the joint
//! classifier of all letters with a bias each, λ/2 ‖w‖² + mean over letters of the hinge.

use super::Row;
use super::codes::folder_of;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::{Csr, Dataset, Groups, Matrix, Names, Targets};
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::model::Answers;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, Regularisation, SequenceSettings, Settings};
use maxmargin::structured::LossScale;
use maxmargin::task::{Intercept, Multiclass};
use maxmargin::train::train;
use maxmargin_io::{BadCell, ReadOptions, TakeRecords, read_records};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

const FILE: &str = "ocr_letters/letters.tsv.gz";

/// Pixels of a letter.
const PIXELS: usize = 128;

/// The weights of regularisation, with the relative gap to stop at: the optima are known to about this.
const LAMBDAS: [(f64, f64); 2] = [(0.01, 1e-5), (0.001, 1e-4)];

/// The letters of all words in the order of the file.
#[derive(Default)]
struct Letters {
    pixels: Vec<Vec<u32>>,
    letters: Vec<String>,
    words: Vec<String>,
    folds: Vec<String>,
}

const COLUMNS: [&str; 4] = ["word_id", "fold", "letter", "pixels"];

impl TakeRecords for Letters {
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>> {
        let place = |wanted: &str| {
            let found = names.iter().position(|name| name.trim_start_matches('#').starts_with(wanted));
            found.ok_or_else(|| Error::new(Code::NoSuchColumn, format!("there is no column `{wanted}`")))
        };
        COLUMNS.iter().map(|name| place(name)).collect()
    }

    fn take(&mut self, cells: &[&[u8]], _: Option<usize>) -> std::result::Result<(), BadCell> {
        let text = |at: usize| String::from_utf8_lossy(cells[at]).into_owned();
        if cells[3].len() != PIXELS || cells[3].iter().any(|pixel| !b"01".contains(pixel)) {
            let error = Error::new(Code::BadCell, "these are no pixels");
            return Err(BadCell { column: 3, error, expected: format!("expected {PIXELS} times 0 or 1") });
        }
        let dark = (0u32..).zip(cells[3]).filter(|(_, pixel)| **pixel == b'1').map(|(place, _)| place);
        self.pixels.push(dark.collect());
        self.words.push(text(0));
        self.folds.push(text(1));
        self.letters.push(text(2));
        Ok(())
    }
}

impl Letters {
    /// The words of some folds.
    fn of_folds(&self, chosen: impl Fn(&str) -> bool) -> Result<Dataset> {
        let rows: Vec<usize> = (0..self.words.len()).filter(|&row| chosen(&self.folds[row])).collect();
        let (mut starts, mut indices) = (vec![0u64], Vec::new());
        for &row in &rows {
            indices.extend(self.pixels[row].iter().map(|&pixel| pixel as u16));
            starts.push(indices.len() as u64);
        }
        let ones = vec![1f32; indices.len()];
        let matrix = Matrix::Csr16F32(Csr::new(starts, indices, ones, PIXELS)?);
        let tags: Names = ('a'..='z').map(|letter| letter.to_string()).collect();
        let code = |row: &usize| {
            let letter = self.letters[*row].bytes().next().filter(u8::is_ascii_lowercase);
            letter.map(|letter| u32::from(letter - b'a')).ok_or_else(|| {
                Error::new(Code::BadTarget, format!("`{}` is no letter from a to z", self.letters[*row])).in_file(FILE)
            })
        };
        let codes: Vec<u32> = rows.iter().map(code).collect::<Result<_>>()?;
        let mut groups = vec![0u64];
        let mut names: Vec<&str> = Vec::new();
        for (at, &row) in rows.iter().enumerate() {
            if at == 0 || self.words[row] != self.words[rows[at - 1]] {
                groups.extend((at > 0).then_some(at as u64));
                names.push(&self.words[row]);
            }
        }
        groups.push(rows.len() as u64);
        let data = Dataset::new(matrix, Targets::Labels { names: tags, codes: codes.into() })?;
        data.with_groups(Groups::new(groups, names.into_iter().collect())?)
    }
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let file = Path::new(&folder_of(arguments, "handwritten words are real data", "ocr_letters")?).join(FILE);
    let mut letters = Letters::default();
    let options = ReadOptions { cancel: cancel.clone(), ..ReadOptions::default() };
    read_records(&file.to_string_lossy(), &options, &mut letters)?;
    let mut rows = Vec::new();
    for (name, first) in [("fold-0", true), ("folds-1-9", false)] {
        let learned = letters.of_folds(|fold| (fold == "0") == first)?;
        let tested = letters.of_folds(|fold| (fold == "0") != first)?;
        let words = |data: &Dataset| format::count(data.groups().map_or(0, Groups::len) as u64);
        let note = format!("{} words to train on, {} to test on", words(&learned), words(&tested));
        console.show(&format!("\n{name}: {note}"))?;
        let header = ["lambda", "objective", "gap", "letter error, %", "seconds"].map(String::from);
        console.show(&line("method", &header))?;
        let mut table = Vec::new();
        for (lambda, tolerance) in LAMBDAS {
            let task = SequenceSettings { loss_scale: LossScale::Length };
            let regularisation = Regularisation::Lambda(lambda);
            let settings = Settings { regularisation, tolerance, max_passes: 10_000, ..Settings::of(task) };
            let began = Instant::now();
            let model = train(&learned, &settings, None, &mut Silent, cancel)?.model;
            let seconds = began.elapsed().as_secs_f64();
            // In the mean form the objective is divided by C · words.
            let objective = lambda * model.certificate.objective;
            let error = letter_error(&model, &tested)?;
            let setting = json!({ "train": name, "lambda": lambda });
            rows.push(row(setting.clone(), "sequence", "objective", objective));
            rows.push(row(setting.clone(), "sequence", "letter-error", error));
            rows.push(row(setting, "sequence", "seconds", seconds));
            let gap = model.certificate.gap().map_or("–".to_string(), format::gap);
            let cells = [
                format::significant(lambda, 3),
                format::fixed(objective, 6),
                gap,
                format::fixed(error, 2),
                format::fixed(seconds, 1),
            ];
            console.show(&line("sequence", &cells))?;
            table.push([&["sequence".to_string()], &cells[..]].concat());
            let began = Instant::now();
            let error = alone(&learned, &tested, lambda, cancel)?;
            let setting = json!({ "train": name, "lambda": lambda });
            rows.push(row(setting, "multiclass", "letter-error", error));
            let seconds = format::fixed(began.elapsed().as_secs_f64(), 1);
            let none = || "–".to_string();
            let cells = [format::significant(lambda, 3), none(), none(), format::fixed(error, 2), seconds];
            console.show(&line("multiclass", &cells))?;
            table.push([&["multiclass".to_string()], &cells[..]].concat());
        }
        report.text(name.to_string(), note);
        report.table(name.to_string(), [&["method".to_string()], &header[..]].concat(), table);
    }
    Ok(rows)
}

fn row(setting: serde_json::Value, method: &'static str, metric: &'static str, ours: f64) -> Row {
    Row { setting, method, metric, ours, standard_error: 0.0, seeds: 1, published: None }
}

/// The share of wrong letters, in per cent.
fn letter_error(model: &maxmargin::model::Model, tested: &Dataset) -> Result<f64> {
    Ok(100.0 * Answers::new(model, tested)?.evaluate(&Metric::Error)?.value)
}

/// The error of a classifier of single letters.
fn alone(learned: &Dataset, tested: &Dataset, lambda: f64, cancel: &Cancel) -> Result<f64> {
    let task = ClassifySettings {
        multiclass: Some(Multiclass::Joint),
        intercept: Intercept::Penalised,
        ..ClassifySettings::default()
    };
    let settings = Settings { regularisation: Regularisation::Lambda(lambda), ..Settings::of(task) };
    letter_error(&train(learned, &settings, None, &mut Silent, cancel)?.model, tested)
}

fn line(method: &str, cells: &[String; 5]) -> String {
    cells.iter().fold(format!("{method:<12}"), |line, cell| format!("{line}{cell:>17}"))
}
