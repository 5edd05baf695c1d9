//! Side files: group sizes in `FILE.query` and weights in `FILE.weight`, for data whose rows have none.

use crate::options::Loaded;
use maxmargin::data::{Dataset, Groups, Names};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::wording::counted;
use std::path::{Path, PathBuf};

/// Group sizes from `FILE.query` and weights from `FILE.weight`, if such files are next to the data and the rows
/// themselves have no groups or weights.
pub(crate) fn add_side_files(path: &Path, mut loaded: Loaded) -> Result<Loaded> {
    let mut sides = SideFiles::find(path)?;
    loaded.data = sides.add(loaded.data)?;
    loaded.facts.notes.extend(sides.finish()?);
    Ok(loaded)
}

/// The side files of data that are read completely or in blocks.
#[derive(Default)]
pub(crate) struct SideFiles {
    query: Option<Side>,
    weight: Option<Side>,
    /// Number of rows so far.
    rows: usize,
}

/// A side file and the position in it.
struct Side {
    name: String,
    numbers: Vec<f64>,
    /// The next group or row.
    next: usize,
    /// Number of rows of that group that were already used.
    taken: usize,
    /// Whether the rows themselves have this information.
    ignored: bool,
}

impl Side {
    fn new((name, lines): (String, Vec<SideLine>)) -> Side {
        Side { name, numbers: lines.into_iter().map(|line| line.number).collect(), next: 0, taken: 0, ignored: false }
    }
}

impl SideFiles {
    /// The side files of a file.
    pub(crate) fn find(path: &Path) -> Result<SideFiles> {
        let query = side_file(path, "query")?;
        if let Some((side, sizes)) = &query {
            let bad =
                |size: &&SideLine| size.number < 1.0 || size.number.fract() != 0.0 || size.number > 4_294_967_295.0;
            if let Some(SideLine { line, text, .. }) = sizes.iter().find(bad) {
                let message = format!("the group size `{text}` is not a positive whole number");
                return Err(side_error(side, *line, text, message, "how many rows the group has"));
            }
        }
        let weight = side_file(path, "weight")?;
        if let Some((side, weights)) = &weight
            && let Some(SideLine { line, text, .. }) = weights.iter().find(|weight| weight.number < 0.0)
        {
            let message = format!("the weight `{text}` is negative");
            return Err(side_error(side, *line, text, message, "the weight of a row, zero or more"));
        }
        Ok(SideFiles { query: query.map(Side::new), weight: weight.map(Side::new), rows: 0 })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.query.is_none() && self.weight.is_none()
    }

    /// Gives the next rows their groups and weights. Groups that continue after these rows are cut.
    pub(crate) fn add(&mut self, mut data: Dataset) -> Result<Dataset> {
        let rows = data.rows();
        if let Some(side) = &mut self.query {
            side.ignored |= data.groups().is_some();
            let (mut starts, mut names) = (vec![0u64], Vec::new());
            let mut left = rows;
            while left > 0 && side.next < side.numbers.len() && !side.ignored {
                let size = side.numbers[side.next] as usize - side.taken;
                let here = size.min(left);
                names.push((side.next + 1).to_string());
                starts.push((rows - left + here) as u64);
                left -= here;
                if here == size {
                    (side.next, side.taken) = (side.next + 1, 0);
                } else {
                    side.taken += here;
                }
            }
            // Too few sizes are reported at the end, when both numbers are known.
            if !side.ignored && left == 0 {
                data = data.with_groups(Groups::new(starts, names.into_iter().collect::<Names>())?)?;
            }
        }
        if let Some(side) = &mut self.weight {
            side.ignored |= data.weights().is_some();
            let next = side.next;
            side.next += rows;
            if !side.ignored && side.next <= side.numbers.len() {
                let stored: Vec<f64> = (0..rows).map(|row| side.numbers[next + data.input_row(row)]).collect();
                data = data.with_weights(stored)?;
            }
        }
        self.rows += rows;
        Ok(data)
    }

    /// Checks that both fit the number of rows, and returns notes about them.
    pub(crate) fn finish(self) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(Side { name, numbers, ignored, .. }) = self.query {
            let total: u64 = numbers.iter().map(|&size| size as u64).sum();
            if ignored {
                notes.push(format!("{name} ignored: rows carry their query"));
            } else if total != self.rows as u64 {
                return Err(Error::new(
                    Code::SideFileMismatch,
                    format!(
                        "the group sizes add up to {total}, and the data have {}",
                        counted(self.rows as u64, "row", "rows")
                    ),
                )
                .in_file(&name)
                .help(
                    "give one size per line, adding up to the number of rows; remove the file if it belongs to other \
                     data",
                ));
            } else {
                notes.push(format!("groups from {name}"));
            }
        }
        if let Some(Side { name, numbers, ignored, .. }) = self.weight {
            if ignored {
                notes.push(format!("{name} ignored: rows carry their weight"));
            } else if numbers.len() != self.rows {
                return Err(Error::new(
                    Code::SideFileMismatch,
                    format!(
                        "{} for {}",
                        counted(numbers.len() as u64, "weight", "weights"),
                        counted(self.rows as u64, "row", "rows")
                    ),
                )
                .in_file(&name)
                .help(
                    "give one weight per line, as many as there are rows; remove the file if it belongs to other data",
                ));
            } else {
                notes.push(format!("weights from {name}"));
            }
        }
        Ok(notes)
    }
}

/// A line of a side file.
struct SideLine {
    /// Counted from 0.
    line: usize,
    text: String,
    number: f64,
}

/// All side files that belong to a file and exist.
pub fn side_files(path: &Path) -> Vec<PathBuf> {
    ["query", "weight"]
        .iter()
        .filter_map(|kind| candidates(path, kind).into_iter().find(|file| file.exists()))
        .collect()
}

/// The names that a side file may have. For `data.txt.gz` it is `data.txt.query` or `data.txt.gz.query`.
fn candidates(path: &Path, kind: &str) -> Vec<PathBuf> {
    let with = |path: &Path| PathBuf::from(format!("{}.{kind}", path.display()));
    let mut candidates = vec![with(path)];
    if path.extension().is_some_and(|extension| ["gz", "bz2", "zst"].iter().any(|known| extension == *known)) {
        candidates.push(with(&path.with_extension("")));
    }
    candidates
}

/// The numbers of a side file, one per line, if there is one.
fn side_file(path: &Path, kind: &str) -> Result<Option<(String, Vec<SideLine>)>> {
    let Some(found) = candidates(path, kind).into_iter().find(|candidate| candidate.exists()) else { return Ok(None) };
    let name = found.display().to_string();
    if !found.is_file() {
        return Err(Error::new(Code::FileUnreadable, "the side file is not a regular file")
            .in_file(&name)
            .help("give it another name, or put one number per line into a file of this name"));
    }
    let text = std::fs::read_to_string(&found).map_err(|error| {
        Error::new(Code::FileUnreadable, format!("the side file cannot be read: {error}"))
            .in_file(&name)
            .help("correct it, or remove it if it belongs to other data")
    })?;
    let mut numbers = Vec::new();
    for (line, token) in text.lines().enumerate() {
        let token = token.trim();
        if token.is_empty() {
            continue;
        }
        match token.parse::<f64>() {
            Ok(number) if number.is_finite() => numbers.push(SideLine { line, text: token.to_string(), number }),
            _ => {
                let message = format!("`{}` is not a number", shortened(token));
                return Err(side_error(&name, line, token, message, "one number per line"));
            }
        }
    }
    Ok(Some((name, numbers)))
}

fn side_error(file: &str, line: usize, token: &str, message: String, expected: &str) -> Error {
    let excerpt = Excerpt::of_line(token.as_bytes(), 0..token.len(), format!("expected {expected}"));
    Error::new(Code::SideFileMismatch, message)
        .at(Place { file: file.to_string(), line: Some(line as u64 + 1), column: Some(1), excerpt: Some(excerpt) })
        .help("a side file has one number per line; remove it if it belongs to other data")
}

fn shortened(token: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = token.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if token.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
