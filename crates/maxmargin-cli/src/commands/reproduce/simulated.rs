//! The simulation of the support vector comparison machine: three hidden patterns, several numbers of pairs, three
//! methods.
//!
//! For each seed, equal numbers of training and validation pairs are drawn, and 10,000 test pairs. A 10 × 10 grid of C
//! and width is trained with the Gaussian kernel. The setting with the lowest zero-one error on the validation pairs is
//! tested; among equal ones, that with the largest area under the curve. The grid is that of the authors' code, C from
//! 0.1 to 100,000 and γ from 2⁻⁸ to 2⁴, or with `--placed apart` that of the slides, C from 0.001 to 1,000 and γ from
//! 2⁻⁷ to 2⁴.
//!
//! Published: Venuto, Hocking, Sphanurattana & Sugiyama, Support vector comparison machines (2014), test error in per
//! cent.

use super::Row;
use crate::args::ReproduceArguments;
use crate::console::Console;
use crate::format;
use crate::report::{Axis, LinePlot, Report, Series, Table};
use maxmargin::error::{Code, Error, Result};
use maxmargin::kernel::{KernelKind, KernelSettings};
use maxmargin::metric::Metric;
use maxmargin::model::Answers;
use maxmargin::parallel;
use maxmargin::run::{Cancel, Silent};
use maxmargin::select::{CrossValidation, Grid};
use maxmargin::settings::{Method, Settings, Solver, Task};
use maxmargin::simulate::{ComparisonSettings, Comparisons, Pattern, Placed};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The methods compared, in the order of the published table.
const METHODS: [Method; 3] = [Method::Rank, Method::Rank2, Method::Compare];

/// Numbers of pairs in the published table.
const PAIRS: [u64; 4] = [50, 100, 200, 400];

/// Pattern, then errors of rank, rank2 and compare by number of pairs, then that of the hidden score itself.
type Published = (Pattern, [[f64; 4]; 3], f64);

const PUBLISHED: [Published; 3] = [
    (
        Pattern::LargestNorm,
        [[22.31, 21.45, 17.90, 15.11], [21.83, 17.74, 15.37, 14.50], [19.68, 15.61, 12.62, 10.60]],
        7.41,
    ),
    (
        Pattern::OneNorm,
        [[23.86, 21.65, 19.02, 16.18], [22.93, 16.93, 14.73, 12.70], [19.90, 16.05, 12.47, 10.14]],
        6.29,
    ),
    (Pattern::TwoNorm, [[18.07, 13.13, 13.16, 10.74], [15.38, 13.74, 11.77, 11.05], [11.92, 9.91, 10.20, 8.36]], 7.09),
];

/// Number of test pairs.
const TESTED: u64 = 10_000;

/// The random streams of a seed: for training, validation and testing.
const LEARN: u64 = 0;
const CHOOSE: u64 = 1;
const TEST: u64 = 2;

/// The time between two lines of progress.
const EVERY: Duration = Duration::from_secs(5);

/// One fit of a grid: error and area under the curve on the test pairs, in per cent.
#[derive(Clone, Copy, Debug)]
struct Tested {
    error: f64,
    area: f64,
}

/// A pattern and a number of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    pattern: Pattern,
    pairs: u64,
}

impl Place {
    fn published(&self, method: Method, placed: Placed) -> Option<f64> {
        let (_, methods, _) = PUBLISHED.iter().find(|(pattern, ..)| *pattern == self.pattern)?;
        let at = METHODS.iter().position(|other| *other == method)?;
        let place = PAIRS.iter().position(|pairs| *pairs == self.pairs)?;
        (placed == Placed::Near).then(|| methods[at][place])
    }

    fn as_json(&self) -> serde_json::Value {
        json!({ "norm": self.pattern.name(), "n": self.pairs })
    }
}

/// The grid of a description.
fn candidates(method: Method, placed: Placed) -> Result<Vec<Settings>> {
    let (costs, widths) = match placed {
        Placed::Near => (Grid::spaced(0.1, 1e5, 10)?, Grid::spaced(2f64.powi(-8), 2f64.powi(4), 10)?),
        Placed::Apart => (Grid::spaced(1e-3, 1e3, 10)?, Grid::spaced(2f64.powi(-7), 2f64.powi(4), 10)?),
    };
    let kernel = KernelSettings { kind: KernelKind::Gaussian, ..KernelSettings::default() };
    let usual = Settings::new(Task::Compare).with_method(method);
    let settings = Settings { kernel, max_passes: Solver::Smo.default_passes(), ..usual };
    Ok(widths.widths(&settings).iter().flat_map(|settings| costs.candidates(settings)).collect())
}

/// Trains a grid, chooses the setting with the lowest error on the validation pairs, and tests it.
fn test(place: Place, seed: u64, method: Method, placed: Placed, cancel: &Cancel) -> Result<Tested> {
    let made = |stream: u64, pairs: u64| {
        let usual = ComparisonSettings::default();
        Comparisons::new(ComparisonSettings { pairs, pattern: place.pattern, placed, seed, stream, ..usual })?
            .to_dataset()
    };
    let (learned, judged, tested) = (made(LEARN, place.pairs)?, made(CHOOSE, place.pairs)?, made(TEST, TESTED)?);
    let both = learned.followed_by(&judged)?;
    let pairs = place.pairs as usize;
    let part = (pairs..2 * pairs).collect();
    let validation = CrossValidation { folds: 1, seed, metrics: vec![Metric::Error, Metric::Auc] };
    let tuned = validation.run_on(&both, vec![part], &candidates(method, placed)?, &mut Silent, cancel)?;
    let model = tuned.refit(tuned.best, &learned, None, &mut Silent, cancel)?.model;
    let answers = Answers::new(&model, &tested)?;
    let value = |metric: Metric| Ok::<f64, Error>(100.0 * answers.evaluate(&metric)?.value);
    Ok(Tested { error: value(Metric::Error)?, area: value(Metric::Auc)? })
}

pub(super) fn run(
    arguments: &ReproduceArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let patterns = arguments.norm.iter().map(|name| pattern(name)).collect::<Result<Vec<Pattern>>>()?;
    let places: Vec<Place> = patterns
        .iter()
        .flat_map(|&pattern| arguments.pairs.iter().map(move |&pairs| Place { pattern, pairs }))
        .collect();
    if let Some(pairs) = arguments.pairs.iter().find(|pairs| !(4..=100_000).contains(*pairs)) {
        return Err(Error::new(Code::BadSetting, format!("--pairs {pairs} is out of range"))
            .help("give numbers of training pairs from 4 to 100000, such as --pairs 50,100,200,400"));
    }
    let (seeds, placed) = (arguments.seeds, arguments.placed);
    // The largest jobs start first, so that the last ones are short.
    let mut jobs: Vec<(Place, u64, Method)> = Vec::new();
    for &place in &places {
        let of_seed = |seed: u64| METHODS.map(|method| (place, arguments.seed + seed, method));
        jobs.extend((0..seeds).flat_map(of_seed));
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(jobs[at].0.pairs));
    let done = AtomicUsize::new(0);
    let told = std::sync::Mutex::new(Instant::now());
    let found: Vec<(usize, Result<Tested>)> = parallel::map_each(order, |_, at| {
        let (place, seed, method) = jobs[at];
        let tested = test(place, seed, method, placed, cancel);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(mut told) = told.try_lock()
            && told.elapsed() >= EVERY
        {
            *told = Instant::now();
            console.say(&format!("{done} of {} grids of 100 models learned", jobs.len()));
        }
        (at, tested)
    });
    let mut tested: Vec<Option<Tested>> = vec![None; jobs.len()];
    for (at, found) in found {
        tested[at] = Some(found?);
    }
    let values = |place: Place, method: Method, value: fn(&Tested) -> f64| -> Vec<f64> {
        let own = jobs.iter().zip(&tested).filter(|((other, _, by), _)| *other == place && *by == method);
        own.filter_map(|(_, tested)| tested.as_ref().map(value)).collect()
    };
    let mut rows = Vec::new();
    for &place in &places {
        for method in METHODS {
            let errors = values(place, method, |tested| tested.error);
            rows.push(Row::mean(place.as_json(), method.name(), "error", &errors, place.published(method, placed)));
            let areas = values(place, method, |tested| tested.area);
            rows.push(Row::mean(place.as_json(), method.name(), "auc", &areas, None));
        }
    }
    show(&rows, &places, seeds, console)?;
    sections(report, &rows, &patterns, arguments);
    Ok(rows)
}

fn pattern(name: &str) -> Result<Pattern> {
    let known = Pattern::ALL.into_iter().filter(|pattern| *pattern != Pattern::Linear);
    known.into_iter().find(|pattern| pattern.name() == name).ok_or_else(|| {
        Error::new(Code::BadSetting, format!("--norm `{name}` is not one of the published patterns"))
            .help("the patterns are 1, 2 and inf")
    })
}

/// The row of a method's errors.
fn error_of(rows: &[Row], place: Place, method: Method) -> Option<&Row> {
    rows.iter().find(|row| row.setting == place.as_json() && row.method == method.name() && row.metric == "error")
}

fn show(rows: &[Row], places: &[Place], seeds: u64, console: &Console) -> Result<()> {
    console.show(&format!("test error in per cent, mean of {seeds} seeds ± standard error; published beside it"))?;
    let mut header = format!("{:>5}{:>6}", "norm", "n");
    METHODS.iter().for_each(|method| header.push_str(&format!("{:>17}{:>8}", method.name(), "")));
    console.show(header.trim_end())?;
    for &place in places {
        let mut line = format!("{:>5}{:>6}", place.pattern.name(), place.pairs);
        for method in METHODS {
            let Some(row) = error_of(rows, place, method) else { continue };
            let published = row.published.map_or("–".to_string(), |published| format::fixed(published, 2));
            line.push_str(&format!("{:>17}{published:>8}", row.cell()));
        }
        console.show(&line)?;
    }
    Ok(())
}

fn sections(report: &mut Report, rows: &[Row], patterns: &[Pattern], arguments: &ReproduceArguments) {
    let mut header = vec!["norm".to_string(), "pairs".to_string()];
    for method in METHODS {
        header.extend([method.name().to_string(), "published".to_string()]);
    }
    let mut table = Vec::new();
    for &pattern in patterns {
        let places: Vec<Place> = arguments.pairs.iter().map(|&pairs| Place { pattern, pairs }).collect();
        let of = |method: Method| places.iter().filter_map(move |&place| Some((place, error_of(rows, place, method)?)));
        let mut plot = LinePlot::new(Axis::log("training pairs"), Axis::linear("test error, %"));
        for method in METHODS {
            let points = of(method).map(|(place, row)| (place.pairs as f64, row.ours)).collect();
            let band = of(method)
                .map(|(place, row)| (place.pairs as f64, row.ours - row.standard_error, row.ours + row.standard_error));
            plot = plot.series(Series::new(method.name(), points).markers().band(band.collect()));
            let published: Vec<(f64, f64)> =
                of(method).filter_map(|(place, row)| Some((place.pairs as f64, row.published?))).collect();
            if !published.is_empty() {
                plot = plot.series(Series::new(format!("{} published", method.name()), published).dashed());
            }
        }
        if let Some((_, _, least)) = PUBLISHED.iter().find(|(other, ..)| *other == pattern) {
            plot = plot.rule(*least, "the hidden score itself, published");
        }
        report.plot(
            format!("Error against pairs, {}-norm", pattern.name()),
            "Mean over the seeds with a band of one standard error on either side.",
            plot,
        );
        table.extend(places.iter().map(|&place| {
            let mut cells = vec![pattern.name().to_string(), place.pairs.to_string()];
            for method in METHODS {
                let row = error_of(rows, place, method);
                cells.push(row.map_or_else(String::new, Row::cell));
                let published = row.and_then(|row| row.published);
                cells.push(published.map_or("–".to_string(), |published| format::fixed(published, 2)));
            }
            cells
        }));
    }
    report.table_with_choice("Test error in per cent", Table { header, rows: table, highlight: None });
    report.facts(
        "How it was measured",
        vec![
            ("seeds".to_string(), arguments.seeds.to_string()),
            ("models of a grid".to_string(), "10 values of C × 10 widths".to_string()),
            ("chosen by".to_string(), "smallest zero-one error on an equal number of validation pairs".to_string()),
            ("tested on".to_string(), format!("{} pairs, half of them ties", format::count(TESTED))),
            ("points".to_string(), arguments.placed.name().to_string()),
        ],
    );
}
