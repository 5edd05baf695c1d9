//! `maxmargin predict MODEL FILE`

use crate::args::{PredictArguments, PredictFormat};
use crate::console::Console;
use crate::format;
use crate::loading::{describe, ensure_apart, load_for, load_model, refuse_json, scores};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin_io::atomic::ensure_writable;
use rayon::prelude::*;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Rows formatted together.
const CHUNK: usize = 16 * 1024;

pub(crate) fn run(arguments: &PredictArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let model = load_model(&arguments.model)?;
    match arguments.output.as_deref() {
        None | Some("-") => refuse_json(console)?,
        Some(output) => {
            ensure_writable(Path::new(output))?;
            ensure_apart(output, &[&arguments.model, &arguments.file])?;
        }
    }
    let timed = load_for(&model, &arguments.file, &arguments.data, cancel)?;
    describe(console, &timed, &[]);
    let data = &timed.loaded.data;
    let start = Instant::now();
    let stored = scores(&model, data, &arguments.file)?;
    let lines = match arguments.format {
        PredictFormat::Lines => plain(&model, &data.to_input_order(stored)),
        PredictFormat::Trec => trec(data, &stored, &arguments.file)?,
    };
    let seconds = start.elapsed().as_secs_f64();
    cancel.check()?;
    let write = |out: &mut dyn Write| lines.iter().try_for_each(|chunk| out.write_all(chunk.as_bytes()));
    match arguments.output.as_deref() {
        None | Some("-") => console.write(write)?,
        Some(file) => {
            maxmargin_io::write_text_file(file, |out| write(out).map_err(maxmargin_io::atomic::refused_write))?;
            console.say(&format!(
                "wrote {file}: {} in {}",
                format::counted(data.rows() as u64, "row", "rows"),
                format::seconds(seconds)
            ));
        }
    }
    console.object(|| {
        json!({
            "rows": data.rows(),
            "output": arguments.output,
            "seconds": { "load": timed.seconds, "predict": seconds },
        })
    })
}

/// Score, or label and score, a line.
fn plain(model: &Model, scores: &[f64]) -> Vec<String> {
    scores
        .par_chunks(CHUNK)
        .map(|scores| {
            let mut text = String::with_capacity(24 * scores.len());
            for &score in scores {
                if let Some(label) = model.decoder.label(score) {
                    text.push_str(&format::one_field(label));
                    text.push('\t');
                }
                let _ = writeln!(text, "{score}");
            }
            text
        })
        .collect()
}

/// `query Q0 document rank score maxmargin`, best first within each query.
fn trec(data: &Dataset, scores: &[f64], file: &str) -> Result<Vec<String>> {
    let groups = data.groups().ok_or_else(|| {
        Error::new(Code::NoGroups, "a TREC run lists documents by query, and the rows have no query ids")
            .in_file(file)
            .help("add qid:ID to the rows, name the column with --group, or use --one-group")
    })?;
    let lines = (0..groups.len())
        .into_par_iter()
        .map(|group| {
            let range = groups.range(group);
            let query = word(&groups.names().get(group));
            let mut order: Vec<usize> = range.collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let mut text = String::new();
            for (rank, row) in order.into_iter().enumerate() {
                let document = match data.row_ids() {
                    Some(ids) => word(&ids.get(row)),
                    None => format!("row{}", data.input_row(row) + 1),
                };
                let _ = writeln!(text, "{query} Q0 {document} {} {} maxmargin", rank + 1, scores[row]);
            }
            text
        })
        .collect();
    Ok(lines)
}

/// Fields of a run are separated by blanks, so none may hold one.
fn word(name: &str) -> String {
    if name.is_empty() { "_".to_string() } else { name.split_whitespace().collect::<Vec<_>>().join("_") }
}
