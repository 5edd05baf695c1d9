//! What the command says about output codes: the matrix, its distances, and the bound beside the error.

use crate::format;
use crate::report::Report;
use maxmargin::data::{Dataset, OutputCode};
use maxmargin::error::Result;
use maxmargin::model::{CodeDecoder, CodeError, Model};
use serde_json::{Value, json};

/// Codes with at most so many classes and columns are shown whole.
const SHOWN: usize = 32;

/// Correlations are computed for at most this many columns.
const COMPARED: usize = 512;

/// `45 columns, row separation 23`
pub(crate) fn summary(decoder: &CodeDecoder) -> String {
    let columns = format::counted(decoder.code.columns() as u64, "column", "columns");
    format!("{columns}, row separation {}", format::significant(decoder.separation(), 6))
}

/// The lines of `inspect`, each a name and a value.
pub(crate) fn rows(decoder: &CodeDecoder) -> Vec<(&'static str, String)> {
    let code = &decoder.code;
    let kind = match code {
        OutputCode::OneVsRest { .. } => "one-vs-rest, ",
        OutputCode::OneVsOne { .. } => "one-vs-one, ",
        OutputCode::Matrix(_) => "",
    };
    let mut rows = vec![("code", format!("{kind}{}", summary(decoder)))];
    rows.push(("decoding", decoder.decoding.name().to_string()));
    rows.push(("sides", balance(code)));
    if let Some((mean, largest)) = correlations(code) {
        let (mean, largest) = (format::fixed(mean, 3), format::fixed(largest, 3));
        rows.push(("redundancy", format!("mean |correlation| of two columns {mean}, largest {largest}")));
    }
    rows.extend(notes(decoder).into_iter().map(|note| ("note", note)));
    rows
}

/// How many classes columns put on each side.
fn balance(code: &OutputCode) -> String {
    let columns = code.columns();
    let (mut positive, mut negative) = (0u64, 0u64);
    match code {
        OutputCode::OneVsRest { classes } => (positive, negative) = (*classes as u64, (classes * (classes - 1)) as u64),
        OutputCode::OneVsOne { .. } => (positive, negative) = (columns as u64, columns as u64),
        OutputCode::Matrix(_) => (0..columns).for_each(|column| {
            code.each_in_column(column, |_, side| *(if side > 0 { &mut positive } else { &mut negative }) += 1);
        }),
    }
    let mean = |count: u64| format::significant(count as f64 / columns.max(1) as f64, 3);
    format!("{} classes on the positive and {} on the negative side, in the mean", mean(positive), mean(negative))
}

/// The mean and the largest absolute correlation of two columns, if there are not too many.
fn correlations(code: &OutputCode) -> Option<(f64, f64)> {
    let columns = code.columns();
    if !(2..=COMPARED).contains(&columns) {
        return None;
    }
    let (mut sum, mut largest, mut count) = (0.0, 0.0f64, 0.0);
    for a in 1..columns {
        for b in 0..a {
            let correlation = code.correlation(a, b).abs();
            (sum, largest, count) = (sum + correlation, largest.max(correlation), count + 1.0);
        }
    }
    Some((sum / count, largest))
}

/// What is redundant in a code.
pub(crate) fn notes(decoder: &CodeDecoder) -> Vec<String> {
    let mut notes = Vec::new();
    if let [(column, earlier), more @ ..] = &decoder.code.repeated_columns()[..] {
        let others = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        let (column, earlier) = (column + 1, earlier + 1);
        notes.push(format!("column {column} asks the same as column {earlier}, or the opposite{others}"));
    }
    if let (OutputCode::Matrix(_), [(a, b), ..]) = (&decoder.code, &decoder.code.opposite_rows()[..]) {
        let (a, b) = (decoder.labels.name(*a), decoder.labels.name(*b));
        notes
            .push(format!("`{a}` and `{b}` have opposite rows: a column that is wrong about one speaks for the other"));
    }
    notes
}

/// The matrix and the distances of its rows as text, if the code is small.
pub(crate) fn table(decoder: &CodeDecoder) -> Vec<String> {
    let CodeDecoder { labels, code, .. } = decoder;
    if code.classes() > SHOWN || code.columns() > 4 * SHOWN {
        return Vec::new();
    }
    let width = labels.names().iter().map(|name| name.chars().count().min(24)).max().unwrap_or(0);
    let mut lines = vec![String::new(), "code, and the generalised Hamming distances of its rows".to_string()];
    for class in 0..code.classes() {
        let sign = |column: usize| match code.entry(class, column) {
            1 => '+',
            -1 => '-',
            _ => '0',
        };
        let signs: String = (0..code.columns()).map(sign).collect();
        let distances = (0..class).map(|other| format::significant(code.distance(class, other), 4));
        let distances = distances.collect::<Vec<_>>().join(" ");
        lines.push(format!("  {:<width$}  {signs}  {distances}", format::shortened(labels.name(class), 24)));
    }
    lines
}

/// The code for `inspect --json`.
pub(crate) fn as_json(decoder: &CodeDecoder) -> Value {
    let CodeDecoder { code, decoding, .. } = decoder;
    let small = code.classes() <= SHOWN && code.columns() <= 4 * SHOWN;
    let row = |class| (0..code.columns()).map(|column| code.entry(class, column)).collect::<Vec<_>>();
    let distances = |class| (0..code.classes()).map(|other| code.distance(class, other)).collect::<Vec<_>>();
    json!({
        "columns": code.columns(),
        "separation": decoder.separation(),
        "decoding": decoding.name(),
        "matrix": small.then(|| (0..code.classes()).map(row).collect::<Vec<_>>()),
        "distances": small.then(|| (0..code.classes()).map(distances).collect::<Vec<_>>()),
        "redundancy": correlations(code).map(|(mean, largest)| json!({ "mean": mean, "largest": largest })),
    })
}

/// The bound beside the error.
pub(crate) fn bound_sentence(code: &CodeError, trained_on: bool) -> String {
    let CodeError { error, bound, separation, columns } = code;
    let mean = columns.iter().sum::<f64>() / columns.len().max(1) as f64;
    let what = if trained_on { "training error" } else { "error" };
    format!(
        "output code: {what} {}, at most {} by the losses of the columns (row separation {}); columns err on {} of their \
         rows in the mean",
        format::percent(*error),
        format::fixed(*bound, 4),
        format::significant(*separation, 6),
        format::percent(mean),
    )
}

/// Adds bound and error to the values of `evaluate --json`.
pub(crate) fn add_bound(object: &mut Value, code: &CodeError, trained_on: bool) {
    object["bound"] = json!(code.bound);
    object["separation"] = json!(code.separation);
    object["column-errors"] = json!(code.columns);
    if trained_on {
        object["train-error"] = json!(code.error);
    }
}

/// The code in a report: its columns and the error of each. `spent` holds the passes and the seconds of the columns, if
/// they were just learned.
pub(crate) fn sections(report: &mut Report, model: &Model, data: &Dataset, spent: &[(u64, f64)]) -> Result<()> {
    let (Some(decoder), Some(found)) = (model.output_code(), model.code_error(data)?) else { return Ok(()) };
    let trained_on = data.rows() as u64 == model.certificate.rows && data.hash()? == model.certificate.data_hash;
    report.text("Output code", format!("{}. {}", summary(&decoder), bound_sentence(&found, trained_on)));
    let names = |column: usize, wanted: i8| {
        let mut names = Vec::new();
        decoder.code.each_in_column(column, |class, side| {
            if side == wanted {
                names.push(decoder.labels.name(class));
            }
        });
        let more = if names.len() > 8 { format!(", and {} more", names.len() - 8) } else { String::new() };
        format!("{}{more}", names.iter().take(8).copied().collect::<Vec<_>>().join(", "))
    };
    let mut worst: Vec<usize> = (0..found.columns.len()).collect();
    worst.sort_by(|&a, &b| found.columns[b].total_cmp(&found.columns[a]).then(a.cmp(&b)));
    let row = |&column: &usize| {
        let error = format::percent(found.columns[column]);
        let mut row = vec![(column + 1).to_string(), names(column, 1), names(column, -1), error];
        if let Some((passes, seconds)) = spent.get(column) {
            let weights = model.scorer.weights().unwrap_or_default().iter();
            let size = weights.skip(column).step_by(found.columns.len()).filter(|weight| **weight != 0.0).count();
            row.extend([format::count(size as u64), format::count(*passes), format::seconds(*seconds)]);
        }
        row
    };
    let more: &[&str] = if spent.is_empty() { &[] } else { &["weights", "passes", "time"] };
    report.table(
        "Columns, those with the most errors first",
        ["column", "positive", "negative", "errors"].iter().chain(more).map(ToString::to_string).collect(),
        worst.iter().take(100).map(row).collect(),
    );
    Ok(())
}
