//! Output codes on usps and letter: for each code the bound of the training error that follows from the losses of its
//! columns, beside the training error itself, and the error on the test rows.
//!
//! Every column is a linear classifier with the hinge and C = 1. Rows are decoded by the hinge loss, for which the bound
//! holds, and one-vs-one by votes as well.

use super::Row;
use crate::args::ReproduceArguments;
use crate::commands::train::write_report;
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::data::{CodeChoice, Dataset};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::CodeError;
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{ClassifySettings, Input, Settings};
use maxmargin::task::Multiclass;
use maxmargin::train::train;
use maxmargin_io::{ReadSettings, gather, options_like};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// The name of a data set, its training and its test rows.
const DATA: [(&str, &str, &str); 2] = [
    ("usps", "usps/usps.svm.gz", "usps/usps.t.svm.gz"),
    ("letter", "letter/letter.scale.gz", "letter/letter.scale.t.gz"),
];

const CODES: [&str; 6] = ["one-vs-rest", "one-vs-one", "random-dense", "random-sparse", "exhaustive", "bch"];

/// The variable that names the folder.
pub(super) const FOLDER: &str = "MAXMARGIN_DATA";

/// The folder with real data. `holds` names what it holds for this experiment.
pub(super) fn folder_of(arguments: &ReproduceArguments, why: &str, holds: &str) -> Result<String> {
    arguments.data.clone().or_else(|| std::env::var(FOLDER).ok()).ok_or_else(|| {
        Error::new(Code::Usage, format!("{why}, and no folder with data is named"))
            .help(format!("give --data FOLDER, or set {FOLDER}; the folder holds {holds}"))
    })
}

pub(super) fn run(arguments: &ReproduceArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let folder = folder_of(arguments, "the output codes are tried on real data", "usps and letter")?;
    let mut report = Report::new("Output codes: the bound beside the training error");
    report.subtitle(format!("maxmargin {}", env!("CARGO_PKG_VERSION")));
    let mut rows = Vec::new();
    for (name, learned, tested) in DATA {
        let [learned, tested] = [learned, tested].map(|file| Path::new(&folder).join(file));
        if !learned.exists() || !tested.exists() {
            console.say(&format!("{}: not found, skipped", learned.display()));
            continue;
        }
        let learned = read(&learned, None, cancel)?;
        let tested = read(&tested, Some(&learned), cancel)?;
        rows.extend(on(name, &learned, &tested, &mut report, console, cancel)?);
    }
    if let Some(file) = &arguments.report {
        write_report(&report, file)?;
        console.say(&format!("wrote {file}"));
    }
    console.object(|| json!({ "rows": rows.iter().map(Row::as_json).collect::<Vec<_>>() }))
}

/// The rows of a file, with as many features as others.
fn read(file: &Path, like: Option<&Dataset>, cancel: &Cancel) -> Result<Dataset> {
    let options = ReadSettings::default().options(None, cancel)?;
    let text = file.to_string_lossy().into_owned();
    let gathered = match like {
        None => gather(&text, None, &options, false, Input::Rows)?,
        Some(like) => {
            let first = gather(&text, None, &options, false, Input::Rows)?;
            let options = options_like(&options, like, &first.features().loaded.facts);
            gather(&text, None, &options, false, Input::Rows)?
        }
    };
    Ok(gathered.timed.loaded.data)
}

/// All codes on one data set.
fn on(
    name: &str,
    learned: &Dataset,
    tested: &Dataset,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<Vec<Row>> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    console.show(&format!("\n{name}: {} rows to train on, {} to test on", learned.rows(), tested.rows()))?;
    let header = ["code", "columns", "ρ", "bound", "training error", "test error", "seconds"].map(String::from);
    console.show(&line(&header))?;
    for code in CODES {
        let task = ClassifySettings {
            multiclass: Some(Multiclass::Code),
            code: Some(code.parse::<CodeChoice>()?),
            ..ClassifySettings::default()
        };
        let began = Instant::now();
        let trained = match train(learned, &Settings::of(task), None, &mut Silent, cancel) {
            Ok(trained) => trained,
            // The exhaustive code is for few classes.
            Err(error) if error.code() == Code::BadSetting => {
                console.say(&format!("{code}: {}", error.message()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let seconds = began.elapsed().as_secs_f64();
        let internal = || Error::new(Code::Internal, "the model has no code");
        let CodeError { error, bound, separation, columns } =
            trained.model.code_error(learned)?.ok_or_else(internal)?;
        let on_test = trained.model.code_error(tested)?.ok_or_else(internal)?.error;
        let method = trained.model.output_code().map_or("", |code| code.decoding.name());
        let setting = json!({ "data": name, "code": code, "columns": columns.len() });
        let figures = [("bound", bound), ("train-error", error), ("test-error", on_test), ("separation", separation)];
        rows.extend(figures.into_iter().chain([("seconds", seconds)]).map(|(metric, ours)| Row {
            setting: setting.clone(),
            method,
            metric,
            ours,
            standard_error: 0.0,
            seeds: 1,
            published: None,
        }));
        let cells = [
            code.to_string(),
            columns.len().to_string(),
            format::significant(separation, 5),
            format::fixed(bound, 4),
            format::fixed(error, 4),
            format::fixed(on_test, 4),
            format::fixed(seconds, 2),
        ];
        console.show(&line(&cells))?;
        lines.push(cells.to_vec());
    }
    report.table(name.to_string(), header.to_vec(), lines);
    Ok(rows)
}

fn line(cells: &[String; 7]) -> String {
    let [code, rest @ ..] = cells;
    rest.iter().fold(format!("{code:<14}"), |line, cell| format!("{line}{cell:>16}"))
}
