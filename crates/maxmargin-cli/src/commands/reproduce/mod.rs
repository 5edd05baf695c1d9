//! `maxmargin reproduce EXPERIMENT`

mod chunking;
mod clicks;
mod codes;
mod descent;
mod label_sets;
mod letor;
mod letters;
mod paired;
mod real;
mod simulated;
mod treebank;
mod weights;

use crate::args::{Experiment, ReproduceArguments};
use crate::commands::train::{ensure_results, write_report};
use crate::console::Console;
use crate::format;
use crate::report::Report;
use maxmargin::error::Result;
use maxmargin::run::Cancel;
use serde_json::{Value, json};

/// One number of a published table, or one without a published counterpart.
struct Row {
    /// The varied setting, for `--json`.
    setting: Value,
    method: &'static str,
    metric: &'static str,
    ours: f64,
    standard_error: f64,
    seeds: u64,
    published: Option<f64>,
}

impl Row {
    /// The mean of the values over several seeds.
    fn mean(setting: Value, method: &'static str, metric: &'static str, values: &[f64], published: Option<f64>) -> Row {
        let summary = maxmargin::select::OverFolds::new(values.to_vec());
        let (ours, standard_error) = (summary.mean, summary.standard_error);
        Row { setting, method, metric, ours, standard_error, seeds: values.len() as u64, published }
    }

    /// `11.42 ± 0.15`
    fn cell(&self) -> String {
        format!("{} ± {}", format::fixed(self.ours, 2), format::fixed(self.standard_error, 2))
    }

    fn as_json(&self) -> Value {
        json!({
            "setting": self.setting,
            "method": self.method,
            "metric": self.metric,
            "ours": self.ours,
            "standard_error": self.standard_error,
            "seeds": self.seeds,
            "published": self.published,
        })
    }
}

pub(crate) fn run(arguments: &ReproduceArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    ensure_results(&[arguments.report.as_ref()], &[])?;
    let title = match arguments.experiment {
        Experiment::Codes => return codes::run(arguments, console, cancel),
        Experiment::Compare => "Comparing with ties: ours beside the published table",
        Experiment::Letor => "Rankings of LETOR data: ours beside the published results",
        Experiment::Weights => "Weights of rows in three ways",
        Experiment::Letters => "Handwritten words as sequences of letters",
        Experiment::Pa => "Passive-aggressive steps on streams",
        Experiment::Sgd => "Stochastic gradient descent on text",
        Experiment::Chunking => "Phrases of sentences as sequences of tags",
        Experiment::Clicks => "Learning from clicks: ways to undo the position bias",
        Experiment::Treebank => "Trees of sentences: a trained grammar beside the one of largest likelihood",
    };
    let mut report = Report::new(title);
    report.subtitle(format!("maxmargin {}", env!("CARGO_PKG_VERSION")));
    let mut rows = match arguments.experiment {
        Experiment::Letor => letor::run(arguments, &mut report, console, cancel)?,
        Experiment::Weights => weights::run(arguments, &mut report, console, cancel)?,
        Experiment::Letters => letters::run(arguments, &mut report, console, cancel)?,
        Experiment::Chunking => chunking::run(arguments, &mut report, console, cancel)?,
        Experiment::Pa => {
            let mut rows = paired::run(arguments, &mut report, console, cancel)?;
            rows.extend(label_sets::run(arguments, &mut report, console, cancel)?);
            rows
        }
        Experiment::Sgd => descent::run(arguments, &mut report, console, cancel)?,
        Experiment::Clicks => clicks::run(arguments, &mut report, console, cancel)?,
        Experiment::Treebank => treebank::run(arguments, &mut report, console, cancel)?,
        _ if arguments.real_only => Vec::new(),
        _ => simulated::run(arguments, &mut report, console, cancel)?,
    };
    if let (Experiment::Compare, Some(folder)) = (arguments.experiment, &arguments.data) {
        rows.extend(real::run(folder, arguments.seeds, &mut report, console, cancel)?);
    }
    if let Some(file) = &arguments.report {
        write_report(&report, file)?;
        console.say(&format!("wrote {file}"));
    }
    console.object(|| json!({ "rows": rows.iter().map(Row::as_json).collect::<Vec<_>>() }))
}
