//! Prints what was read, and keeps outputs from overwriting inputs.

use crate::console::Console;
use crate::dialect::Flags;
use crate::format;
use crate::preferences::Preferences;
use crate::sequences::{SENTENCES, SEQUENCES};
use crate::standard_output::ensure_open;
use maxmargin::error::{Code, Error, Result};
use maxmargin::wording::render;
use maxmargin_io::{Facts, Format, Found, Gathered, Loaded, Timed, side_files};
use std::path::Path;

/// Prints what was found. `extra` describes queries and pairs, if they are already known.
pub(crate) fn describe_gathered(
    console: &Console,
    gathered: &Gathered,
    preferences: Option<&Preferences>,
    extra: &[String],
) {
    match (&gathered.items, preferences) {
        (None, None) => describe(console, &gathered.timed, extra),
        (None, Some(preferences)) => describe(console, &gathered.timed, &preferences.parts()),
        (Some((items, _)), preferences) => {
            describe(console, items, &[]);
            let facts = &gathered.timed.loaded.facts;
            let mut parts = vec![format!("{}   {}", facts.file, source(facts))];
            parts.extend(preferences.iter().flat_map(|preferences| preferences.parts()));
            parts.push(format::seconds(gathered.timed.seconds));
            console.say(&parts.join(" · "));
            say_notes(console, &facts.notes);
        }
    }
}

/// Refuses to overwrite an input with a result, because the user would lose data or a model.
pub(crate) fn ensure_apart(output: &str, inputs: &[&str]) -> Result<()> {
    let real = |file: &Path| std::fs::canonicalize(file).ok().filter(|path| path.is_file());
    let read = |input: &&str| {
        let path = Path::new(input);
        side_files(path).into_iter().chain([path.to_path_buf()]).filter_map(|file| real(&file)).collect::<Vec<_>>()
    };
    match real(Path::new(output)) {
        Some(path) if inputs.iter().flat_map(read).any(|input| input == path) => {
            Err(Error::new(Code::OutputUnwritable, format!("`{output}` is also an input, and would be overwritten"))
                .in_file(output)
                .help("name another file for the output"))
        }
        _ => Ok(()),
    }
}

/// Refuses to write data to a standard output that is closed or that the JSON object goes to.
pub(crate) fn ensure_for_data(console: &Console) -> Result<()> {
    ensure_open()?;
    if !console.json() {
        return Ok(());
    }
    Err(Error::new(Code::Usage, "--json and the data cannot both be written to standard output")
        .help("write the data to a file with -o FILE"))
}

/// Refuses to write two results to one file.
pub(crate) fn ensure_different(outputs: &[Option<&String>]) -> Result<()> {
    // Files that do not exist yet are the same if their folder and name are.
    let place = |file: &str| {
        let path = Path::new(file);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (std::fs::canonicalize(folder).ok(), path.file_name().map(ToOwned::to_owned))
    };
    let named: Vec<&String> = outputs.iter().copied().flatten().collect();
    let twice =
        named.iter().enumerate().find(|(at, output)| named[..*at].iter().any(|other| place(other) == place(output)));
    match twice {
        Some((_, output)) => Err(Error::new(Code::OutputUnwritable, format!("`{output}` is named for two outputs"))
            .in_file(output.as_str())
            .help("name a file for each")),
        None => Ok(()),
    }
}

/// Prints what was found in a file: `train.txt   svmlight, 1-based · 9,630 rows × 46 features · …`.
pub(crate) fn describe(console: &Console, timed: &Timed, extra: &[String]) {
    let Timed { loaded: Loaded { data, facts }, seconds } = timed;
    let mut extra = extra.to_vec();
    if extra.is_empty() {
        let noun = noun_of_groups(facts);
        extra.extend(data.groups().map(|groups| format::counted(groups.len() as u64, noun.0, noun.1)));
    }
    describe_facts(console, facts, data.rows() as u64, data.cols(), &extra, *seconds);
    tracing::info!(layout = data.matrix().layout(), bytes = data.matrix().bytes(), "stored");
}

/// What a group of rows is called: the sequences of text in columns and sentences with trees are no queries.
fn noun_of_groups(facts: &Facts) -> (&'static str, &'static str) {
    match facts.format {
        Some(Format::Columns) => SEQUENCES,
        Some(Format::Trees) => SENTENCES,
        _ => ("query", "queries"),
    }
}

/// The same for data that were read in blocks. `noun` is what the model calls a group, if it takes groups.
pub(crate) fn describe_blocks(
    console: &Console,
    found: &Found,
    noun: Option<(&'static str, &'static str)>,
    seconds: f64,
) {
    let noun = noun.unwrap_or_else(|| noun_of_groups(&found.facts));
    let queries = found.groups.map(|groups| format::counted(groups, noun.0, noun.1));
    describe_facts(console, &found.facts, found.rows, found.cols, queries.as_slice(), seconds);
}

/// The same for given numbers.
pub(crate) fn describe_facts(console: &Console, facts: &Facts, rows: u64, cols: usize, extra: &[String], seconds: f64) {
    let mut parts = vec![format!("{}   {}", facts.file, source(facts))];
    parts.push(format!(
        "{} × {}",
        format::counted(rows, "row", "rows"),
        format::counted(cols as u64, "feature", "features")
    ));
    parts.extend(extra.iter().cloned());
    parts.push(format::seconds(seconds));
    console.say(&parts.join(" · "));
    say_notes(console, &facts.notes);
}

/// Says what a reader found, a line for each note.
pub(crate) fn say_notes(console: &Console, notes: &[String]) {
    notes.iter().for_each(|note| console.say(&format!("   {}", render(note, &Flags))));
}

fn source(facts: &Facts) -> String {
    let mut words = Vec::new();
    words.extend(facts.format.map(|format| format.to_string()));
    words.extend(facts.compression.map(str::to_string));
    words.extend(facts.index_base.map(|base| format!("{base}-based")));
    words.join(", ")
}
