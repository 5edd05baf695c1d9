//! `maxmargin demo`: the tour. Every step is a command that the user could type, and it is shown as one.

use crate::args::{Arguments, Command, DemoArguments};
use crate::commands::{evaluate, simulate, train};
use crate::console::Console;
use crate::format;
use crate::progress::ProgressTable;
use crate::report::Report;
use clap::Parser;
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin::settings::{Regularisation, Settings, Task};
use maxmargin::train::HeldOut;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{Loaded, ReadSettings, Reading, input_of, load, options_like, save_model};
use serde_json::json;
use std::path::Path;

/// One half of the tour: a task on simulated data.
struct Stop {
    title: &'static str,
    story: &'static str,
    task: Task,
    simulate: &'static str,
    test: &'static str,
    c: f64,
    name: &'static str,
    /// Tables hold the names of their features, which the report shows.
    extension: &'static str,
}

const STOPS: [Stop; 2] = [
    Stop {
        title: "A search ranker",
        story: "Queries with graded documents, as a search team judges them. The ranker learns weights such that better \
                grades score higher within each query, over all pairs of different grades at once.",
        task: Task::Rank,
        simulate: "search --queries 300 --docs 60 --features 40",
        test: "search --queries 100 --docs 60 --features 40",
        c: 1e-3,
        name: "search",
        extension: "csv",
    },
    Stop {
        title: "A text classifier",
        story: "Sparse documents of two classes with word frequencies as in real text. The classifier is a linear support \
                vector machine with a free intercept.",
        task: Task::Classify,
        simulate: "text --rows 8000 --features 20000 --nonzeros 60",
        test: "text --rows 3000 --features 20000 --nonzeros 60",
        c: 1.0,
        name: "text",
        extension: "txt",
    },
];

pub(crate) fn run(arguments: &DemoArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    ensure_writable(Path::new(&arguments.report))?;
    std::fs::create_dir_all(&arguments.folder).map_err(|error| {
        Error::new(Code::OutputUnwritable, format!("the folder cannot be created: {error}"))
            .in_file(&arguments.folder)
            .help("name another one with --folder")
    })?;
    let mut report = Report::new("maxmargin: the tour");
    report.subtitle("Two models, trained, verified and measured on simulated data");
    let mut results = Vec::new();
    for stop in &STOPS {
        console.say(&format!("\n{}", stop.title));
        results.push(visit(stop, arguments, &mut report, console, cancel)?);
    }
    report.code(
        "Where to go from here",
        "maxmargin train rank your-data.txt -o model.mm --validation your-other-data.txt\n\
         maxmargin inspect model.mm\nmaxmargin verify model.mm your-data.txt\nmaxmargin predict model.mm new.txt -o scores.txt",
    );
    train::write_report(&report, &arguments.report)?;
    console.say("");
    console.show(&format!(
        "wrote {}: open it in a browser; data and models are in {}/",
        arguments.report, arguments.folder
    ))?;
    console.object(|| json!({ "report": arguments.report, "folder": arguments.folder, "models": results }))
}

fn visit(
    stop: &Stop,
    arguments: &DemoArguments,
    report: &mut Report,
    console: &Console,
    cancel: &Cancel,
) -> Result<serde_json::Value> {
    let path = |end: &str| Path::new(&arguments.folder).join(format!("{}{end}", stop.name)).display().to_string();
    let data_path = |part: &str| path(&format!("-{part}.{}", stop.extension));
    let (train_file, test_file, model_file) = (data_path("train"), data_path("test"), path(".mm"));
    // Both use the hidden model of the seed; the test rows are another sample from it.
    for (what, file, stream) in [(stop.simulate, &train_file, 0), (stop.test, &test_file, 1)] {
        let line = format!("maxmargin simulate {what} --seed {} --stream {stream} -o {file}", arguments.seed);
        console.say(&format!("$ {line}"));
        let parsed = Arguments::try_parse_from(line.split(' '))
            .map_err(|error| Error::new(Code::Internal, format!("the tour's own command: {error}")))?;
        if let Command::Simulate(simulate_arguments) = &parsed.command {
            simulate::run(simulate_arguments, &Console::silent(), cancel)?;
        }
    }
    let settings = Settings { regularisation: Regularisation::C(stop.c), ..Settings::new(stop.task) };
    let next = format!("maxmargin train {} {train_file} -o {model_file} -c {}", stop.task.name(), stop.c);
    console.say(&format!("$ {next}"));
    let options = ReadSettings::default().options(None, cancel)?;
    let Loaded { data, facts } = load(&train_file, &options, false)?.loaded;
    let test = load(&test_file, &options_like(&options, &data, &facts), false)?.loaded.data;

    let metrics = evaluate::metrics(&[], input_of(&settings), false)?;
    let judge = |model: &maxmargin::model::Model| evaluate::value(model, &test, &metrics[0]).ok();
    let mut progress = ProgressTable::new(console, Some(metrics[0].to_string()), settings.tolerance);
    let held_out = HeldOut { measure: &judge, higher_is_better: metrics[0].higher_is_better() };
    let trained = maxmargin::train::train(&data, &settings, Some(held_out), &mut progress, cancel);
    progress.finish();
    let mut trained = trained?;
    cancel.check()?;
    trained.model.reading = Some(Reading { index_base: facts.index_base, ..Reading::default() }.to_text()?);
    console.say(&train::verdict(&trained, false).1);
    save_model(&trained.model, &model_file)?;

    let next = format!("maxmargin evaluate {model_file} {test_file} --interval");
    console.say(&format!("$ {next}"));
    let measured = evaluate::measure(&trained.model, &test, &metrics, Some((200, arguments.seed)))?;
    for row in &measured {
        console.say(&format!("  {}", row.sentence()));
    }
    let shape = format!(
        "{} of {} to train on, {} to test on.",
        format::counted(data.rows() as u64, "row", "rows"),
        format::counted(data.cols() as u64, "feature", "features"),
        format::counted(test.rows() as u64, "row", "rows")
    );
    report.text(stop.title, format!("{}\n\n{shape}", stop.story));
    train::training_sections(report, &trained, false);
    evaluate::report_sections(
        report,
        &trained.model,
        &test,
        &format!("{}-test.{}", stop.name, stop.extension),
        &measured,
    )?;
    Ok(json!({
        "task": stop.task.name(),
        "gap": trained.model.certificate.gap(),
        "converged": trained.model.certificate.converged,
        "metrics": evaluate::as_json(&measured),
    }))
}
