//! Click logs from files: tables, JSON lines, UBI and the form of Yandex.
//!
//! | form | recognised by | what it holds |
//! |---|---|---|
//! | table | CSV, TSV, Parquet, Arrow with named columns | query, session, item, position, clicked, propensity |
//! | JSON lines | an object in each line | the same names as keys |
//! | UBI | JSON lines with `query_response_hit_ids` or `action_name` | what was shown for a query; what was done |
//! | Yandex | a third field `Q` or `C`, split at tabs | `session time Q query region items…`, `session time C item` |
//!
//! [`read_clicks`] takes one file or several: UBI keeps queries and events apart. `session` may be missing; each query is
//! then one list.
//!
//! **UBI.** A `query_id` names one list; the query is its `user_query`, and the results are its hits in order. Events of the
//! action `click` are clicks, those of `impression` and `view` say that a result was shown at `position.ordinal`; other
//! actions are counted and left out. Nested objects and keys with dots (`event_attributes.position.ordinal`) are read alike,
//! and the mapping whose `position` has only `x` and `y` needs the queries for positions.
//!
//! **Yandex.** A click is on the latest list of its session that shows the item. The lines of a session stand together and
//! in the order of time.

use crate::source::{Compression, open, read_error};
use crate::stamps::Stamps;
use crate::{BadCell, ReadOptions, TakeRecords, read_records};
use maxmargin::clicks::{BadEvent, ClickLog, LogBuilder};
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::wording::counted;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;

const QUERY: &[&str] = &["query", "query_id", "qid", "user_query"];
const SESSION: &[&str] = &["session", "session_id", "impression", "impression_id", "search_id"];
const ITEM: &[&str] =
    &["item", "item_id", "document", "document_id", "doc", "doc_id", "docid", "object_id", "url", "id"];
const POSITION: &[&str] = &["position", "rank", "place"];
const CLICKED: &[&str] = &["clicked", "click", "is_click"];
const PROPENSITY: &[&str] = &["propensity", "examination"];
/// The names of each value of an event, in the order in which events are read.
const VALUES: [&[&str]; 6] = [QUERY, SESSION, ITEM, POSITION, CLICKED, PROPENSITY];

/// Bytes at the beginning by which the form is recognised.
const FIRST_BYTES: usize = 1 << 16;

/// A line may not be longer.
const LONGEST_LINE: u64 = 64 << 20;

/// A log and what was found while reading it.
pub struct LoadedClicks {
    /// The log.
    pub log: ClickLog,
    /// Short findings.
    pub notes: Vec<String>,
    /// Detects changes of the files.
    pub stamps: Stamps,
}

/// Reads the files of one log.
pub fn read_clicks(files: &[String], options: &ReadOptions) -> Result<LoadedClicks> {
    let mut reader = Reader { builder: LogBuilder::default(), ubi: Ubi::default(), notes: Vec::new() };
    let mut stamps = Stamps::default();
    for file in files {
        stamps.extend(&reader.read(file, options)?);
    }
    let Reader { mut builder, ubi, mut notes } = reader;
    ubi.finish(&mut builder, &mut notes)?;
    let file = files.first().map(String::as_str).unwrap_or_default();
    if builder.is_empty() {
        return Err(Error::new(Code::NoRows, "the log has no events").in_file(file).help("give a log with events"));
    }
    let log = builder.finish().map_err(|error| error.in_file(file))?;
    notes.extend(findings(&log));
    Ok(LoadedClicks { log, notes, stamps })
}

/// What is unusual about a log.
fn findings(log: &ClickLog) -> Vec<String> {
    let facts = log.facts();
    let mut notes = Vec::new();
    let mut note = |count: u64, one: &str, many: &str| {
        if count > 0 {
            notes.push(counted(count, one, many));
        }
    };
    note(facts.without_click, "list without a click", "lists without a click");
    note(facts.all_clicked, "list in which everything was clicked", "lists in which everything was clicked");
    note(
        facts.single,
        "list of a single result, which teaches nothing",
        "lists of a single result, which teach nothing",
    );
    note(facts.never_clicked, "query without a click", "queries without a click");
    note(facts.shown_once, "query that was shown once", "queries that were shown once");
    note(
        facts.duplicates,
        "result shown twice in its list: the first place counts",
        "results shown twice in their list: the first place counts",
    );
    note(
        facts.never_shown,
        "click on a result that was not shown: left out",
        "clicks on results that were not shown: left out",
    );
    note(facts.gaps, "list with a gap in its positions", "lists with gaps in their positions");
    note(facts.shared_places, "list with two results at one place", "lists with two results at one place");
    if facts.from_zero {
        notes.push("positions count from 0: one was added to each".to_string());
    }
    if facts.clicks == 0 {
        notes.push("nothing was ever clicked".to_string());
    }
    notes
}

struct Reader {
    builder: LogBuilder,
    ubi: Ubi,
    notes: Vec<String>,
}

impl Reader {
    fn read(&mut self, file: &str, options: &ReadOptions) -> Result<Stamps> {
        if options.format.is_none() && file != "-" {
            let mut opened = open(file, Path::new(file))?;
            let stamps = Stamps::of_file(file, Path::new(file), &opened);
            let mut head = [0; 4];
            let known = read_up_to(&mut opened, &mut head).map_err(|error| read_error(&error).in_file(file))?;
            let rest: Chain<Cursor<Vec<u8>>, _> = Cursor::new(head[..known].to_vec()).chain(opened);
            let stream: Box<dyn Read + Send> = match Compression::of_content(&head[..known]) {
                Some(compression) => compression.decoder(rest).map_err(|error| error.in_file(file))?,
                None => Box::new(rest),
            };
            let mut stream = stream;
            let mut first = vec![0; FIRST_BYTES];
            let known = read_up_to(&mut stream, &mut first).map_err(|error| read_error(&error).in_file(file))?;
            first.truncate(known);
            let lines = BufReader::with_capacity(1 << 20, Cursor::new(first.clone()).chain(stream));
            let first = first.trim_ascii_start();
            let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let third = line.split(|byte| *byte == b'\t').nth(2);
            let read = if first.starts_with(b"{") {
                Some(self.json(file, lines, options))
            } else if third.is_some_and(|field| matches!(field.trim_ascii(), b"Q" | b"C")) {
                Some(self.yandex(file, lines, options))
            } else {
                None
            };
            if let Some(read) = read {
                return stamps.confirm(read).map(|()| stamps).map_err(|error| error.in_file(file));
            }
        }
        let mut table = Table { builder: &mut self.builder, names: Vec::new(), columns: [None; 6] };
        let facts = read_records(file, options, &mut table)?;
        self.notes.extend(facts.notes);
        Ok(facts.stamps)
    }

    /// A JSON object in each line.
    fn json(&mut self, file: &str, lines: impl BufRead, options: &ReadOptions) -> Result<()> {
        each_line(file, lines, options, |number, line| {
            let bad = |error: Error| error.at(of_line(file, number, line, 0..line.len(), "an event as a JSON object"));
            let value: Value = serde_json::from_slice(line).map_err(|error| {
                let column = error.column().saturating_sub(1);
                Error::new(Code::BadClickLog, format!("this line is not a JSON object: {error}"))
                    .at(of_line(file, number, line, column..column + 1, "one JSON object in each line"))
                    .help("write each event as one line, such as {\"query\": \"a\", \"item\": \"7\", \"position\": 1, \"clicked\": 0}")
            })?;
            let Value::Object(object) = value else {
                return Err(bad(Error::new(Code::BadClickLog, "this line is not a JSON object")
                    .help("write each event as an object in a line of its own")));
            };
            if let Some(taken) = self.ubi.take(&object) {
                return taken.map_err(bad);
            }
            let cells: Vec<String> = VALUES.iter().map(|names| text_of(&object, names)).collect();
            let present = |at: usize| Some(cells[at].as_bytes()).filter(|cell| !cell.is_empty());
            push(&mut self.builder, std::array::from_fn(present)).map_err(|(_, error)| bad(error))
        })
    }

    /// Sessions with lists and clicks.
    fn yandex(&mut self, file: &str, lines: impl BufRead, options: &ReadOptions) -> Result<()> {
        // The lists of the current session: the query and its items.
        let mut session: Vec<u8> = Vec::new();
        let mut lists: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
        each_line(file, lines, options, |number, line| {
            let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').map(<[u8]>::trim_ascii).collect();
            let refuse = |message: &str| {
                Error::new(Code::BadClickLog, message.to_string())
                    .at(of_line(
                        file,
                        number,
                        line,
                        0..line.len(),
                        "session, time, and Q with a list or C with an item",
                    ))
                    .help("write `session time Q query region items…` or `session time C item`, split at tabs")
            };
            if session != fields[0] {
                session = fields[0].to_vec();
                lists.clear();
            }
            let name = |list: usize| [&session[..], b"#", list.to_string().as_bytes()].concat();
            let mut push = |query: &[u8], list: usize, item: &[u8], position: Option<u64>, clicked: bool| {
                let ids = [query, &name(list), item];
                self.builder
                    .push(ids, position, clicked, None)
                    .map_err(|bad| bad.error().at(of_line(file, number, line, 0..line.len(), "a place in the list")))
            };
            match fields.get(2).copied() {
                Some(b"Q") if fields.len() > 5 => {
                    let (query, items) = (fields[3].to_vec(), fields[5..].iter().map(|item| item.to_vec()).collect());
                    lists.push((query, items));
                    let (query, items) = &lists[lists.len() - 1];
                    let list = lists.len();
                    for (at, item) in items.iter().enumerate() {
                        push(query, list, item, Some(at as u64 + 1), false)?;
                    }
                    Ok(())
                }
                Some(b"C") if fields.len() == 4 => {
                    let shown = lists.iter().rposition(|(_, items)| items.iter().any(|item| item == fields[3]));
                    let list = shown
                        .or(lists.len().checked_sub(1))
                        .ok_or_else(|| refuse("this click comes before any list of its session"))?;
                    push(&lists[list].0.clone(), list + 1, fields[3], None, true)
                }
                _ => Err(refuse("this line is neither a list nor a click")),
            }
        })
    }
}

fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut known = 0;
    while known < buffer.len() {
        match input.read(&mut buffer[known..])? {
            0 => break,
            more => known += more,
        }
    }
    Ok(known)
}

/// The place of some bytes of a line.
fn of_line(file: &str, number: u64, line: &[u8], token: std::ops::Range<usize>, expected: &str) -> Place {
    Place {
        file: file.to_string(),
        line: Some(number),
        column: Some(token.start as u64 + 1),
        excerpt: Some(Excerpt::of_line(line, token, expected)),
    }
}

/// Calls `take` with the number and the bytes of each line that is not empty.
fn each_line(
    file: &str,
    mut lines: impl BufRead,
    options: &ReadOptions,
    mut take: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0u64);
    loop {
        line.clear();
        let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| read_error(&error).in_file(file))? == 0 {
            return Ok(());
        }
        number += 1;
        if line.len() as u64 >= LONGEST_LINE {
            return Err(Error::new(Code::BadClickLog, format!("line {number} is longer than 64 MiB"))
                .in_file(file)
                .help("write each event as a line of its own"));
        }
        if number.is_multiple_of(4096) {
            options.cancel.check()?;
        }
        let line = line.trim_ascii();
        if !line.is_empty() {
            take(number, line)?;
        }
    }
}

/// The text of the first of some keys that an object has; empty if it has none.
fn text_of(object: &Map<String, Value>, names: &[&str]) -> String {
    names.iter().find_map(|name| object.get(*name)).map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => String::from(if *value { "1" } else { "0" }),
        Value::String(text) => text.trim().to_string(),
        other => other.to_string(),
    }
}

/// A value at a path of keys, which may be nested objects or keys with dots.
fn at_path<'v>(object: &'v Map<String, Value>, path: &[&str]) -> Option<&'v Value> {
    (1..=path.len()).find_map(|length| {
        let value = object.get(&path[..length].join("."))?;
        match value {
            value if length == path.len() => Some(value),
            Value::Object(inner) => at_path(inner, &path[length..]),
            _ => None,
        }
    })
}

/// Adds an event given as text. The error comes with the number of the value.
fn push(builder: &mut LogBuilder, cells: [Option<&[u8]>; 6]) -> std::result::Result<(), (usize, Error)> {
    let [query, session, item, position, clicked, propensity] = cells;
    let missing = |at: usize| {
        let error = Error::new(Code::MissingValue, format!("the event has no {}", VALUES[at][0]));
        (at, error.help("give query, item, position and clicked for every event"))
    };
    let unread = |at: usize, cell: &[u8], expected: &str| {
        let found = crate::cells::clipped(&String::from_utf8_lossy(cell));
        let error = Error::new(Code::BadClickLog, format!("`{found}` is not {expected}: `{}`", VALUES[at][0]));
        (at, error.help("correct the value; positions are whole numbers, and clicked is 0 or 1"))
    };
    let query = query.ok_or_else(|| missing(0))?;
    let item = item.ok_or_else(|| missing(2))?;
    let clicked = match clicked.ok_or_else(|| missing(4))?.to_ascii_lowercase().as_slice() {
        b"1" | b"true" | b"yes" | b"1.0" => true,
        b"0" | b"false" | b"no" | b"0.0" => false,
        other => return Err(unread(4, other, "0 or 1")),
    };
    let position = match position {
        None => None,
        Some(cell) => {
            let text = std::str::from_utf8(cell).ok();
            let whole = text.and_then(|text| text.strip_suffix(".0").unwrap_or(text).parse::<u64>().ok());
            Some(whole.ok_or_else(|| unread(3, cell, "a whole number of zero or more"))?)
        }
    };
    let propensity = match propensity {
        None => None,
        Some(cell) => {
            let number = std::str::from_utf8(cell).ok().and_then(|text| text.parse::<f64>().ok());
            Some(number.ok_or_else(|| unread(5, cell, "a number"))?)
        }
    };
    builder.push([query, session.unwrap_or_default(), item], position, clicked, propensity).map_err(|bad| {
        let at = if matches!(bad, BadEvent::Propensity(_)) { 5 } else { 3 };
        (at, bad.error())
    })
}

/// A table of events.
struct Table<'a> {
    builder: &'a mut LogBuilder,
    names: Vec<String>,
    /// The place of each value among the chosen columns.
    columns: [Option<usize>; 6],
}

impl TakeRecords for Table<'_> {
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>> {
        let found = |wanted: &[&str]| {
            wanted.iter().find_map(|wanted| names.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted)))
        };
        let mut chosen = Vec::new();
        for (at, wanted) in VALUES.iter().enumerate() {
            match found(wanted) {
                Some(column) => {
                    self.columns[at] = Some(chosen.len());
                    chosen.push(column);
                }
                // Session and propensity may be missing.
                None if at == 1 || at == 5 => {}
                None => {
                    let shown: Vec<String> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
                    return Err(Error::new(
                        Code::NoSuchColumn,
                        format!("a click log needs a column `{}`", wanted[0]),
                    )
                    .help(format!(
                        "name the columns query, session, item, position and clicked, and propensity if there is one; the columns are {}",
                        shown.join(", ")
                    )));
                }
            }
        }
        self.names = chosen.iter().map(|&column| names[column].clone()).collect();
        Ok(chosen)
    }

    fn take(&mut self, cells: &[&[u8]], row: Option<usize>) -> std::result::Result<(), BadCell> {
        let present = |at: usize| self.columns[at].map(|column| cells[column]).filter(|cell| !cell.is_empty());
        push(self.builder, std::array::from_fn(present)).map_err(|(at, error)| {
            let column = self.columns[at].unwrap_or(0);
            let error = match row {
                Some(row) => {
                    let message = format!("{} in row {row}, column `{}`", error.raw_message(), self.names[column]);
                    Error::new(error.code(), message).help(error.raw_remedy().unwrap_or_default())
                }
                None => error,
            };
            BadCell { column, error, expected: expected(at).to_string() }
        })
    }
}

fn expected(at: usize) -> &'static str {
    match at {
        3 => "a place in the list, from 1",
        4 => "0 or 1",
        5 => "a probability above 0 and up to 1",
        _ => "a name",
    }
}

/// What an event of UBI says.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    Click,
    Shown,
}

/// The query of a list, and its hits as numbers of names.
type UbiList = (Box<[u8]>, Vec<u32>);

/// Queries and events of UBI, joined at the end.
#[derive(Default)]
struct Ubi {
    /// For each `query_id`: the query and the hits in order, as numbers of names.
    lists: HashMap<Box<[u8]>, UbiList>,
    names: HashMap<Box<[u8]>, u32>,
    /// List, item, position and action of each event, and the query where the event names it.
    events: Vec<(u32, u32, Option<u32>, Action)>,
    /// The query that an event of a list names.
    asked: HashMap<u32, Box<[u8]>>,
    others: u64,
}

impl Ubi {
    fn number(&mut self, name: &[u8]) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry(name.into()).or_insert(next)
    }

    /// Takes a query or an event of UBI; none if the object is neither.
    fn take(&mut self, object: &Map<String, Value>) -> Option<Result<()>> {
        if let Some(hits) = object.get("query_response_hit_ids") {
            return Some(self.query(object, hits));
        }
        let action = object.get("action_name")?;
        Some(self.event(object, &text(action)))
    }

    fn query(&mut self, object: &Map<String, Value>, hits: &Value) -> Result<()> {
        let (id, query) = (text_of(object, &["query_id"]), text_of(object, &["user_query"]));
        let (false, false, Value::Array(hits)) = (id.is_empty(), query.is_empty(), hits) else {
            return Err(Error::new(
                Code::BadClickLog,
                "this query lacks its `query_id`, its `user_query` or its list of hits",
            )
            .help("give all three; the hits are a list of ids in the order shown"));
        };
        let hits = hits.iter().map(|hit| self.number(text(hit).as_bytes())).collect();
        self.lists.insert(id.as_bytes().into(), (query.as_bytes().into(), hits));
        Ok(())
    }

    fn event(&mut self, object: &Map<String, Value>, action: &str) -> Result<()> {
        let action = match action {
            "click" => Action::Click,
            "impression" | "view" => Action::Shown,
            _ => {
                self.others += 1;
                return Ok(());
            }
        };
        let id = text_of(object, &["query_id"]);
        let item = at_path(object, &["event_attributes", "object", "object_id"]).map(text).unwrap_or_default();
        if id.is_empty() || item.is_empty() {
            return Err(Error::new(
                Code::BadClickLog,
                "this event lacks its `query_id` or its `event_attributes.object.object_id`",
            )
            .help("an event is joined with its query by `query_id`, and names its result by `object_id`"));
        }
        let position = at_path(object, &["event_attributes", "position", "ordinal"]).and_then(Value::as_u64);
        let (list, item) = (self.number(id.as_bytes()), self.number(item.as_bytes()));
        let query = text_of(object, &["user_query"]);
        if !query.is_empty() {
            self.asked.entry(list).or_insert_with(|| query.as_bytes().into());
        }
        let position = position.map(|position| u32::try_from(position).unwrap_or(u32::MAX));
        self.events.push((list, item, position, action));
        Ok(())
    }

    /// Adds everything to a log.
    fn finish(self, builder: &mut LogBuilder, notes: &mut Vec<String>) -> Result<()> {
        let mut names: Vec<&[u8]> = vec![b""; self.names.len()];
        self.names.iter().for_each(|(name, &number)| names[number as usize] = name);
        for (id, (query, hits)) in &self.lists {
            for (at, &hit) in hits.iter().enumerate() {
                builder
                    .push([query, id, names[hit as usize]], Some(at as u64 + 1), false, None)
                    .map_err(BadEvent::error)?;
            }
        }
        let (mut unplaced, mut unnamed) = (0, 0);
        for &(list, item, position, action) in &self.events {
            let id = names[list as usize];
            let known = self.lists.get(id);
            let query = known.map(|(query, _)| query).or_else(|| self.asked.get(&list));
            let Some(query) = query else {
                unnamed += 1;
                continue;
            };
            // The hits of a query say where its results were shown.
            let place = position.filter(|_| known.is_none()).map(u64::from);
            if place.is_none() && action == Action::Shown {
                unplaced += u64::from(known.is_none());
                continue;
            }
            let ids = [&query[..], id, names[item as usize]];
            builder.push(ids, place, action == Action::Click, None).map_err(BadEvent::error)?;
        }
        let mut note = |count: u64, one: &str, many: &str| {
            if count > 0 {
                notes.push(counted(count, one, many));
            }
        };
        note(self.others, "event with another action left out", "events with other actions left out");
        note(unnamed, "event of an unknown query left out", "events of unknown queries left out");
        note(unplaced, "shown result without a position left out", "shown results without positions left out");
        Ok(())
    }
}
