//! `maxmargin convert IN -o OUT`

use crate::args::ConvertArguments;
use crate::console::Console;
use crate::format;
use crate::loading::{describe_facts, describe_gathered, ensure_apart, ensure_for_data};
use crate::preferences::Preferences;
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin::settings::Input;
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::cache::{self, Streamed};
use maxmargin_io::{Format, Gathered, ReadOptions, gather, load, output_format, write};
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
        ensure_for_data(console)?;
    } else {
        ensure_writable(Path::new(output))?;
        ensure_apart(output, &[&arguments.file[..]].into_iter().chain(arguments.items.as_deref()).collect::<Vec<_>>())?;
    }
    let read = arguments.data.read()?;
    let options = read.options(arguments.data.input_format, cancel)?;
    let start = Instant::now();
    let budget = arguments.memory.map(|size| size.0).or_else(half_of_memory);
    let streamed = match maxmargin_io::stored_size(&arguments.file, &options)?.zip(budget) {
        Some((bytes, budget))
            if bytes > budget && to == Format::Mmd && output != "-" && !read.one_group && arguments.items.is_none() =>
        {
            cache::stream(&arguments.file, &options, Path::new(output))?
        }
        _ => None,
    };
    if let Some(Streamed { facts, rows, cols }) = streamed {
        let seconds = start.elapsed().as_secs_f64();
        describe_facts(console, &facts, rows as u64, cols, &[], seconds);
        return written(console, output, to, (rows, cols), (seconds, 0.0));
    }
    let gathered = gather_any(arguments, to, &options, read.one_group)?;
    describe_gathered(console, &gathered, Preferences::of(&gathered.timed.loaded.data).as_ref(), &[]);
    let timed = &gathered.timed;
    let start = Instant::now();
    write(&timed.loaded, output, to, cancel)?;
    let seconds = start.elapsed().as_secs_f64();
    if output == "-" {
        return Ok(());
    }
    let data = &timed.loaded.data;
    written(console, output, to, (data.rows(), data.cols()), (timed.seconds, seconds))
}

/// Reads rows. Reads pairs if their items are given or if each row holds two items.
fn gather_any(arguments: &ConvertArguments, to: Format, options: &ReadOptions, one_group: bool) -> Result<Gathered> {
    let file = arguments.file.as_str();
    let plainly = || Ok(Gathered { timed: load(file, options, one_group)?, items: None });
    if to == Format::Svmlight && arguments.items.is_none() {
        // This format can hold the columns only as features, whatever their names are.
        return plainly();
    }
    match gather(file, arguments.items.as_deref(), options, one_group, Input::Ranked) {
        // Pairs by number without items are read as an ordinary table.
        Err(error) if error.code() == Code::NoItems && file != "-" => plainly(),
        gathered => gathered,
    }
}

/// Half of the machine's memory, if the system reports it.
fn half_of_memory() -> Option<u64> {
    #[cfg(unix)]
    // SAFETY: `sysconf` only looks values up.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    #[cfg(not(unix))]
    let (pages, page) = (-1i64, -1i64);
    Some(u64::try_from(pages).ok()?.saturating_mul(u64::try_from(page).ok()?) / 2)
}

/// Prints what was written.
fn written(
    console: &Console,
    output: &str,
    to: Format,
    (rows, cols): (usize, usize),
    (load, seconds): (f64, f64),
) -> Result<()> {
    let bytes = std::fs::metadata(output).map(|metadata| metadata.len()).unwrap_or(0);
    console.say(&format!("wrote {output}   {to} · {} · {}", format::bytes(bytes), format::seconds(seconds)));
    console.object(|| {
        json!({
            "rows": rows,
            "features": cols,
            "output": output,
            "format": to.name(),
            "bytes": bytes,
            "seconds": { "load": load, "write": seconds },
        })
    })
}

fn check(file: &str, console: &Console) -> Result<()> {
    let start = Instant::now();
    let report = cache::check(Path::new(file))?;
    let seconds = start.elapsed().as_secs_f64();
    console.show(&format!(
        "{file} is intact: version {}, {} × {}, {}, {} in {} blocks, {}",
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
