//! `maxmargin simulate clicks --items GRADED -o LOG`: the log, and beside it `LOG.truth.json` with what is true about it.

use crate::args::SimulateArguments;
use crate::console::Console;
use crate::format;
use crate::loading::ensure_apart;
use maxmargin::data::{Dataset, Scale};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::{Cancel, Silent};
use maxmargin::settings::{Settings, Task};
use maxmargin::simulate::{ClickSettings, Clicks, Shown};
use maxmargin::train::train;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{Pairing, ReadOptions, output_format, read, write_records, write_text_file};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// A policy is trained on one of so many parts of the queries.
const PARTS: usize = 100;

/// Queries at least that a policy is trained on.
const FEWEST: usize = 5;

/// The scores of rankers that are each trained on a few of the graded queries: the `number`-th part of them, and on more
/// where these teach nothing.
pub(crate) fn policies(data: &Dataset, count: usize, cancel: &Cancel) -> Result<Vec<Vec<f64>>> {
    let groups = data.groups().ok_or_else(|| {
        Error::new(Code::NoGroups, "lists are shown for queries, and the rows have none")
            .help("add qid:ID to the rows, or name the column with --group")
    })?;
    let queries = groups.len();
    let each = queries.div_ceil(PARTS).max(FEWEST).min(queries);
    let of_policy = |number: usize| {
        let mut taken = each;
        loop {
            let first = number * each;
            let chosen: Vec<usize> = (first..first + taken).map(|at| at % queries).collect();
            let mut rows = Vec::new();
            let mut keys = Vec::new();
            for (key, &query) in chosen.iter().enumerate() {
                let range = groups.range(query);
                keys.extend(range.clone().map(|_| key as u32));
                rows.extend(range);
            }
            let names = chosen.iter().map(|&query| groups.names().get_bytes(query)).collect();
            let few = data.select(&rows)?.with_group_keys(&keys, names)?;
            let settings = Settings { scale: Scale::Standard, ..Settings::new(Task::Rank) };
            match train(&few, &settings, None, &mut Silent, cancel) {
                Ok(trained) => return trained.model.scores(data),
                // All results of these queries have one grade.
                Err(error) if error.code() == Code::NoPairs && taken < queries => taken = (2 * taken).min(queries),
                Err(error) => return Err(error),
            }
        }
    };
    (0..count).map(of_policy).collect()
}

pub(crate) fn run(arguments: &SimulateArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let of_clicks = &arguments.clicks;
    let Some(items) = &of_clicks.items else {
        return Err(Error::new(Code::Usage, "users click on graded rows, and none are given").help(
            "maxmargin simulate search -o graded.txt, then maxmargin simulate clicks --items graded.txt -o clicks.csv",
        ));
    };
    let to = output_format(&arguments.output, arguments.to)?;
    let truth = format!("{}.truth.json", arguments.output);
    for output in [&arguments.output, &truth] {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &[items.as_str()])?;
    }
    let start = Instant::now();
    let options = ReadOptions { pairing: Pairing::None, cancel: cancel.clone(), ..ReadOptions::default() };
    let data = read(items, &options)?.data;
    let count = of_clicks.policies.unwrap_or(1);
    if count == 0 {
        return Err(Error::new(Code::BadSetting, "--policies 0 shows nothing").help("give 1 or more"));
    }
    let scores = policies(&data, count, cancel).map_err(|error| error.in_file(items.as_str()))?;
    let usual = ClickSettings::default();
    let settings = ClickSettings {
        impressions: arguments.rows.unwrap_or(usual.impressions),
        length: of_clicks.length.unwrap_or(usual.length),
        user: of_clicks.user.unwrap_or(usual.user),
        eta: of_clicks.eta.unwrap_or(usual.eta),
        noise: arguments.noise.unwrap_or(usual.noise),
        relevant_grade: of_clicks.relevant_grade,
        trust: of_clicks.trust.unwrap_or(usual.trust),
        swap: of_clicks.swap.unwrap_or(usual.swap),
        seed: arguments.seed,
    };
    let users = Clicks::new(settings, &data, &scores).map_err(|error| error.in_file(items.as_str()))?;
    let curve = users.examination();
    let mut clicks = 0u64;
    write_records(&arguments.output, to, cancel, |out| {
        for name in ["query", "session", "item", "position", "clicked"] {
            out.text(name)?;
        }
        curve.iter().try_for_each(|_| out.text("propensity"))?;
        out.end()?;
        for number in 0..users.settings().impressions {
            let (query, list) = users.impression(number);
            let session = (number + 1).to_string();
            for Shown { row, position, clicked } in list {
                clicks += u64::from(clicked);
                out.text(users.query(query))?;
                out.text(&session)?;
                out.text(users.item(row))?;
                out.number(f64::from(position))?;
                out.text(if clicked { "1" } else { "0" })?;
                curve.iter().try_for_each(|curve| out.number(curve[position as usize - 1]))?;
                out.end()?;
            }
        }
        Ok(())
    })?;
    let known = json!({
        "settings": users.settings(),
        "policies": count,
        "examination": curve,
        "clicks": clicks,
        "items": items,
    });
    write_text_file(&truth, |out| {
        let text = serde_json::to_string_pretty(&known).unwrap_or_default();
        writeln!(out, "{text}").map_err(|error| maxmargin_io::atomic::refused_write(&error))
    })?;
    let bytes = std::fs::metadata(&arguments.output).map(|metadata| metadata.len()).unwrap_or(0);
    console.say(&format!(
        "wrote {}   {} · {} · {} · {} · the truth is in {truth}          next: maxmargin train rank {} --clicks {} -o model.mm",
        arguments.output,
        format::counted(users.settings().impressions, "list", "lists"),
        format::counted(clicks, "click", "clicks"),
        format::bytes(bytes),
        format::seconds(start.elapsed().as_secs_f64()),
        format::shell_word(items),
        format::shell_word(&arguments.output),
    ));
    console.object(|| json!({ "output": arguments.output, "truth": truth, "clicks": clicks, "bytes": bytes }))
}
