//! `maxmargin convert IN -o OUT`

use crate::args::ConvertArguments;
use crate::console::Console;
use crate::format;
use crate::loading::{describe, ensure_apart, load, refuse_json};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::{cache, output_format, write};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(arguments: &ConvertArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    if arguments.check {
        return check(&arguments.file, console);
    }
    let Some(output) = &arguments.output else {
        return Err(Error::new(Code::Usage, "no output was named").help("name it with -o FILE"));
    };
    let to = output_format(output, arguments.to)?;
    if output == "-" {
        refuse_json(console)?;
    } else {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &[&arguments.file])?;
    }
    let read = &arguments.data.read;
    let options = read.options(arguments.data.input_format, cancel)?;
    let timed = load(&arguments.file, &options, read.one_group)?;
    describe(console, &timed, &[]);
    let start = Instant::now();
    write(&timed.loaded, output, to, cancel)?;
    let seconds = start.elapsed().as_secs_f64();
    if output == "-" {
        return Ok(());
    }
    let bytes = std::fs::metadata(output).map(|metadata| metadata.len()).unwrap_or(0);
    console.say(&format!("wrote {output}   {to} · {} · {}", format::bytes(bytes), format::seconds(seconds)));
    console.object(|| {
        json!({
            "rows": timed.loaded.data.rows(),
            "features": timed.loaded.data.cols(),
            "output": output,
            "format": to.name(),
            "bytes": bytes,
            "seconds": { "load": timed.seconds, "write": seconds },
        })
    })
}

fn check(file: &str, console: &Console) -> Result<()> {
    let start = Instant::now();
    let report = cache::check(Path::new(file))?;
    let seconds = start.elapsed().as_secs_f64();
    console.show(&format!(
        "{file} is sound: version {}, {} × {}, {}, {} in {} blocks, {}",
        report.version,
        format::counted(report.rows, "row", "rows"),
        format::counted(report.cols, "feature", "features"),
        report.layout,
        format::bytes(report.bytes),
        format::count(report.blocks),
        format::seconds(seconds)
    ))?;
    console.object(|| {
        json!({
            "sound": true,
            "version": report.version,
            "rows": report.rows,
            "features": report.cols,
            "entries": report.entries,
            "bytes": report.bytes,
            "blocks": report.blocks,
            "seconds": seconds,
        })
    })
}
