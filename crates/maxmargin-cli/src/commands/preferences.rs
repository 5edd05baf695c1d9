//! `maxmargin preferences LOG -o pairs.csv --rule RULE` and `maxmargin propensity LOG -o curve.csv`

use crate::args::{PreferencesArguments, PropensityArguments};
use crate::clicks::{curve_json, curve_lines, say_log};
use crate::console::Console;
use crate::format;
use crate::loading::{ensure_apart, ensure_for_data};
use maxmargin::clicks::{Estimator, Keyed, estimate, preferences, reversed_share};
use maxmargin::error::Result;
use maxmargin::run::Cancel;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{
    Columns, Format, LoadedClicks, Pairing, ReadOptions, load, output_format, read_clicks, write_records,
};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

fn log_of(files: &[String], console: &Console, cancel: &Cancel) -> Result<LoadedClicks> {
    let start = Instant::now();
    let options = ReadOptions { cancel: cancel.clone(), ..ReadOptions::default() };
    let loaded = read_clicks(files, &options)?;
    say_log(console, &files.join(" "), &loaded.log, &loaded.notes, start.elapsed().as_secs_f64());
    Ok(loaded)
}

/// Where a table goes, and its format.
fn output(output: &str, inputs: &[String], console: &Console) -> Result<Format> {
    if output == "-" {
        ensure_for_data(console)?;
        return Ok(Format::Csv);
    }
    let to = output_format(output, None)?;
    ensure_writable(Path::new(output))?;
    ensure_apart(output, &inputs.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(to)
}

pub(crate) fn run(arguments: &PreferencesArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let to = output(&arguments.output, &arguments.logs, console)?;
    let LoadedClicks { log, stamps, .. } = log_of(&arguments.logs, console, cancel)?;
    let found =
        preferences(&log, arguments.rule, arguments.keep_order).map_err(|error| error.in_file(&arguments.logs[0]))?;
    let upwards = reversed_share(&log, arguments.rule);
    stamps.check()?;
    write_records(&arguments.output, to, cancel, |out| {
        ["better", "worse", "weight", "group"].iter().try_for_each(|name| out.text(name))?;
        out.end()?;
        for preference in &found {
            out.text(log.items().get_bytes(preference.better as usize))?;
            out.text(log.items().get_bytes(preference.worse as usize))?;
            out.number(preference.weight)?;
            out.text(log.queries().get_bytes(preference.query as usize))?;
            out.end()?;
        }
        Ok(())
    })?;
    if upwards == 1.0 && arguments.keep_order == 0.0 {
        console.say(
            "   every preference puts a result over one shown above it: a model that turns the shown order around satisfies \
             them all; --keep-order WEIGHT guards against that",
        );
    }
    if arguments.output != "-" {
        console.say(&format!(
            "wrote {}   {}          next: maxmargin train rank {} --items ITEMS -o model.mm",
            arguments.output,
            format::counted(found.len() as u64, "preference", "preferences"),
            format::shell_word(&arguments.output)
        ));
    }
    console.object(|| {
        json!({
            "output": arguments.output,
            "rule": arguments.rule.name(),
            "preferences": found.len(),
            "weight": found.iter().map(|preference| preference.weight).sum::<f64>(),
            "upwards": upwards,
            "clicks": log.facts().clicks,
            "lists": log.facts().impressions,
        })
    })
}

/// `maxmargin propensity`
pub(crate) fn run_propensity(arguments: &PropensityArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let output = match arguments.output.as_deref() {
        Some(file) => Some((file, output(file, &arguments.logs, console)?)),
        None => None,
    };
    let features = match &arguments.items {
        Some(file) => {
            let remembered = Columns { id: Some("item".to_string()), ..Columns::default() };
            let read = arguments.data.read()?;
            let options = read.options(arguments.data.input_format, cancel)?;
            Some(load(file, &ReadOptions { pairing: Pairing::None, remembered, ..options }, read.one_group)?)
        }
        None => None,
    };
    let LoadedClicks { log, stamps, .. } = log_of(&arguments.logs, console, cancel)?;
    let keyed = features.as_ref().map(|features| Keyed::new(&features.loaded.data)).transpose()?;
    let estimator = arguments.method.unwrap_or(Estimator::Harvest);
    let found = estimate(&log, estimator, keyed.as_ref(), cancel).map_err(|error| error.in_file(&arguments.logs[0]))?;
    stamps.check()?;
    if let Some((file, to)) = output {
        write_records(file, to, cancel, |out| {
            ["position", "propensity", "low", "high", "shown", "clicks"].iter().try_for_each(|name| out.text(name))?;
            out.end()?;
            for place in &found.positions {
                out.number(f64::from(place.position))?;
                let cells = [place.value, place.interval.map(|ends| ends.0), place.interval.map(|ends| ends.1)];
                for cell in cells {
                    match cell {
                        Some(value) => out.number(value)?,
                        None => out.text("")?,
                    }
                }
                out.number(place.shown as f64)?;
                out.number(place.clicks as f64)?;
                out.end()?;
            }
            Ok(())
        })?;
    }
    for line in curve_lines(&found)? {
        console.show(&line)?;
    }
    console.object(|| json!({ "method": estimator.name(), "moved": found.moved, "curve": curve_json(&found) }))
}
