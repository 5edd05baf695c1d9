//! Settings files: TOML with the settings of a run by name. `inspect --settings` prints such a file, and `--config`
//! reads it.
//!
//! ```toml
//! task = "rank"
//!
//! [train]
//! c = 0.5
//!
//! [train.stochastic]
//! batch = 8
//!
//! [read]
//! precision = "f64"
//! ```

use crate::reading::{READING, ReadSettings, Reading};
use crate::source::read_whole;
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::model::Model;
use maxmargin::settings::{Choice, Chosen, Setting, Task, Value};
use maxmargin::suggest::nearest;
use maxmargin::wish::{COMMON, Range};
use maxmargin::wording::Size;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::ops::Range as Span;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The settings of a run apart from those of the model: how it evaluates and how much memory it may use.
pub const RUN: &[Setting] = &[
    Setting {
        name: "holdout",
        heading: "Learning",
        aliases: &[],
        help: "Hold out this share of the rows (whole queries) or pairs (whole groups) to measure the model on",
        placeholder: "FRACTION",
        value: Value::Number(Range::Fraction),
        place: "holdout",
    },
    Setting {
        name: "memory",
        heading: "Learning",
        aliases: &[],
        help: "Memory limit, such as 4GiB; if the features of a .mmd file do not fit, they are read a block at a time",
        placeholder: "SIZE",
        value: Value::Size,
        place: "memory",
    },
];

/// The name of the nested table of stochastic settings.
const STOCHASTIC: &str = "stochastic";

/// Where to find an example of a settings file.
const EXAMPLE: &str = "`maxmargin inspect MODEL --settings` prints a settings file that works";

/// The content of a settings file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsFile {
    /// The task, which is checked against the command.
    pub task: Option<Task>,
    /// Settings of training: those of the task and of [`RUN`].
    pub train: Chosen,
    /// Settings of reading: those of [`READING`].
    pub read: Chosen,
}

/// The share of the data to hold out, and the memory that a run may use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunSettings {
    /// The share of the data to hold out.
    pub holdout: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

impl RunSettings {
    /// Removes the settings of the run from the chosen ones.
    pub fn taken_from(chosen: &mut Chosen) -> Result<RunSettings> {
        let mut take = |name: &str| {
            let setting = RUN.iter().find(|setting| setting.name == name);
            match setting.zip(chosen.remove(name)) {
                Some((setting, choice)) => setting.checked(&choice).map(Some),
                None => Ok(None),
            }
        };
        let (holdout, memory) = (take("holdout")?, take("memory")?);
        Ok(RunSettings {
            holdout: holdout.and_then(|value| value.as_f64()),
            memory: memory.and_then(|value| value.as_u64()),
        })
    }
}

impl SettingsFile {
    /// Reads a TOML file with the settings of a task. `command` is what the user typed; messages use it.
    pub fn read(file: &str, command: &str, task: Task) -> Result<SettingsFile> {
        let text = String::from_utf8(read_whole(file)?)
            .map_err(|_| Error::new(Code::NotText, "a settings file is text in UTF-8").in_file(file).help(EXAMPLE))?;
        let parser = Parser { file, text: &text, task };
        let found = parser.parse()?;
        if let Some(other) = found.task.filter(|other| *other != task) {
            return Err(Error::new(
                Code::BadConfig,
                format!("the settings are for `{}`, and this is `{command} {}`", other.name(), task.name()),
            )
            .in_file(file)
            .help(format!("use `{command} {}`, or leave the task out of the settings file", other.name())));
        }
        Ok(found)
    }

    /// The file that repeats a model's training.
    pub fn of(model: &Model) -> Result<SettingsFile> {
        let reading = Reading::of(model)?;
        let mut train = model.settings.to_named()?;
        if let Some(holdout) = reading.holdout {
            train.insert("holdout".to_string(), Choice::Number(holdout));
        }
        Ok(SettingsFile { task: Some(model.settings.task.task()), train, read: named(&reading.read)? })
    }

    /// As TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }

    /// The settings of the task in the order in which they are written: those of all tasks first.
    fn declared(task: Option<Task>) -> Vec<&'static Setting> {
        let of_all = |setting: &&Setting| COMMON.iter().any(|common| common.name == setting.name);
        let (mut first, own): (Vec<&Setting>, Vec<&Setting>) = match task {
            Some(task) => task.profile().all_settings().partition(of_all),
            None => (COMMON.iter().collect(), Vec::new()),
        };
        first.extend(own);
        first.extend(RUN);
        first
    }
}

/// Merges two sets of choices. `said` wins, also over other settings at the same path.
pub fn laid_over(said: Chosen, kept: Chosen, known: &[&Setting]) -> Chosen {
    let place = |name: &String| {
        let setting = known.iter().find(|setting| setting.name == name);
        setting.map_or(name.clone(), |setting| alone(setting).to_string())
    };
    let taken: Vec<String> = said.keys().map(place).collect();
    let kept = kept.into_iter().filter(|(name, _)| !taken.contains(&place(name)));
    kept.chain(said.clone()).collect()
}

/// The path that only one of several settings may use: `regularisation` for `regularisation.(c)`.
pub fn alone(setting: &Setting) -> &'static str {
    setting.place.split_once(".(").map_or(setting.place, |(place, _)| place)
}

/// Settings of reading by name.
pub fn named(read: &ReadSettings) -> Result<Chosen> {
    let internal = |error: serde_json::Error| Error::new(Code::Internal, error.to_string());
    let value = serde_json::to_value(read).map_err(internal)?;
    serde_json::from_value(value).map_err(internal)
}

/// Values of one table, in the order of the declarations.
struct Ordered<'a> {
    chosen: &'a Chosen,
    settings: Vec<&'static Setting>,
    /// The settings in a nested table.
    inner: Vec<&'static Setting>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for setting in &self.settings {
            if let Some(choice) = self.chosen.get(setting.name) {
                map.serialize_entry(setting.name, choice)?;
            }
        }
        if self.inner.iter().any(|setting| self.chosen.contains_key(setting.name)) {
            let inner = Ordered { chosen: self.chosen, settings: self.inner.clone(), inner: Vec::new() };
            map.serialize_entry(STOCHASTIC, &inner)?;
        }
        map.end()
    }
}

fn is_stochastic(setting: &&Setting) -> bool {
    setting.place.split_once('.').is_some_and(|(table, _)| table == STOCHASTIC)
}

impl Serialize for SettingsFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(task) = self.task {
            map.serialize_entry("task", task.name())?;
        }
        let (inner, settings) = SettingsFile::declared(self.task).into_iter().partition(is_stochastic);
        map.serialize_entry("train", &Ordered { chosen: &self.train, settings, inner })?;
        let settings = READING.iter().collect();
        map.serialize_entry("read", &Ordered { chosen: &self.read, settings, inner: Vec::new() })?;
        map.end()
    }
}

/// A settings file while it is being read.
struct Parser<'a> {
    file: &'a str,
    text: &'a str,
    task: Task,
}

impl Parser<'_> {
    fn bad(&self, message: impl Into<String>, span: Span<usize>) -> Error {
        Error::new(Code::BadConfig, message).at(self.place(span)).help(EXAMPLE)
    }

    /// Line, column and excerpt for a range of bytes.
    fn place(&self, span: Span<usize>) -> Place {
        let bytes = self.text.as_bytes();
        let start = span.start.min(bytes.len());
        let line_start = bytes[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = bytes[line_start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        let token = start - line_start..span.end.saturating_sub(line_start).min(line.len());
        Place {
            file: self.file.to_string(),
            line: Some(bytes[..start].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1),
            column: Some((start - line_start) as u64 + 1),
            excerpt: Some(Excerpt::of_line(line, token, "here")),
        }
    }

    fn parse(&self) -> Result<SettingsFile> {
        let whole = DeTable::parse(self.text).map_err(|error| {
            let place = error.span().map_or(Place::file(self.file), |span| self.place(span));
            Error::new(Code::BadConfig, error.message().trim().replace('\n', " ")).at(place).help(EXAMPLE)
        })?;
        let mut found = SettingsFile::default();
        let mut tables = Vec::new();
        for (key, value) in whole.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("task", DeValue::String(name)) => {
                    let task = Task::ALL.into_iter().find(|task| task.name() == name.as_ref());
                    let unknown = || {
                        let names: Vec<&str> = Task::ALL.into_iter().map(Task::name).collect();
                        self.bad(format!("the task `{name}` is not one of {}", names.join(", ")), value.span())
                    };
                    found.task = Some(task.ok_or_else(unknown)?);
                }
                ("task", _) => return Err(self.bad("the task is a name, such as \"rank\"", value.span())),
                ("train" | "read", DeValue::Table(table)) => tables.push((key.get_ref().as_ref(), table)),
                ("train" | "read", _) => {
                    let message = format!("`{0}` is a table, which begins with [{0}]", key.get_ref());
                    return Err(self.bad(message, value.span()));
                }
                (name, _) => {
                    let inside = |settings: &[&Setting]| settings.iter().any(|setting| setting.name == name);
                    let (train, read) = (SettingsFile::declared(Some(self.task)), READING.iter().collect::<Vec<_>>());
                    for (table, settings) in [("train", train), ("read", read)] {
                        if inside(&settings) {
                            let message = format!("`{name}` belongs to the table [{table}]");
                            return Err(self.bad(message, key.span()).help(format!("write it below a line [{table}]")));
                        }
                    }
                    return Err(self.unknown(key, &["task", "train", "read"]));
                }
            }
        }
        // A file for another task is reported first, before its settings are checked.
        if found.task.is_some_and(|task| task != self.task) {
            return Ok(found);
        }
        let declared = SettingsFile::declared(Some(self.task));
        for (name, table) in tables {
            match name {
                "train" => self.take(table, &declared, &mut found.train)?,
                _ => self.take(table, &READING.iter().collect::<Vec<_>>(), &mut found.read)?,
            }
        }
        Ok(found)
    }

    /// Reads the settings of a table, which may hold the stochastic ones in a nested table.
    fn take(&self, table: &DeTable<'_>, known: &[&Setting], chosen: &mut Chosen) -> Result<()> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let stochastic: Vec<&Setting> = known.iter().copied().filter(is_stochastic).collect();
            if let (STOCHASTIC, DeValue::Table(inner)) = (name, value.get_ref())
                && known.len() > READING.len()
            {
                self.take(inner, &stochastic, chosen)?;
                continue;
            }
            let setting = known.iter().find(|setting| setting.name == name || setting.aliases.contains(&name));
            let Some(setting) = setting else {
                return Err(self.unknown(key, &known.iter().map(|setting| setting.name).collect::<Vec<_>>()));
            };
            let choice = self.choice(setting, value)?;
            setting.checked(&choice).map_err(|error| {
                let placed = Error::new(error.code(), error.message()).at(self.place(value.span()));
                match error.remedy() {
                    Some(remedy) => placed.help(remedy),
                    None => placed,
                }
            })?;
            if chosen.insert(setting.name.to_string(), choice).is_some() {
                return Err(self.bad(format!("`{}` is set twice", setting.name), key.span()));
            }
        }
        Ok(())
    }

    /// A value of the kind that a setting needs.
    fn choice(&self, setting: &Setting, value: &Spanned<DeValue<'_>>) -> Result<Choice> {
        let bad = |wanted: String| Err(self.bad(format!("`{}` must be {wanted}", setting.name), value.span()));
        match (setting.value, value.get_ref()) {
            (Value::Name(names), DeValue::String(text)) if names().contains(&text.as_ref()) => {
                Ok(Choice::Text(text.to_string()))
            }
            (Value::Name(names), _) => bad(format!("one of {}", names().join(", "))),
            (Value::Switch, DeValue::Boolean(on)) => Ok(Choice::Switch(*on)),
            (Value::Switch, _) => bad("true or false".to_string()),
            (Value::Number(_), DeValue::Float(number)) => match number.as_str().replace('_', "").parse() {
                Ok(number) => Ok(Choice::Number(number)),
                Err(_) => bad("a number".to_string()),
            },
            (Value::Number(_), DeValue::Integer(number)) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Ok(Choice::Number(number as f64)),
                    Err(_) => bad("a number".to_string()),
                }
            }
            (Value::Number(_), _) => bad("a number".to_string()),
            (Value::Whole(..) | Value::Size | Value::Label, DeValue::Integer(number)) => {
                match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Ok(Choice::Whole(number)),
                    Err(_) if matches!(setting.value, Value::Label) => Ok(Choice::Text(number.as_str().to_string())),
                    Err(_) => bad("a whole number, zero or above".to_string()),
                }
            }
            (Value::Whole(..), _) => bad("a whole number".to_string()),
            (Value::Size, DeValue::String(text)) => match text.parse::<Size>() {
                Ok(size) => Ok(Choice::Text(size.to_string())),
                Err(why) => bad(format!("a size: {why}")),
            },
            (Value::Size, _) => bad("a size such as \"4GiB\"".to_string()),
            (Value::Parsed(_) | Value::Label | Value::ClassWeights | Value::Words, DeValue::String(text)) => {
                Ok(Choice::Text(text.to_string()))
            }
            (Value::Words, DeValue::Array(words)) => {
                let texts = words.iter().map(|word| word.get_ref().as_str().map(str::to_string));
                texts
                    .collect::<Option<_>>()
                    .map_or_else(|| bad("a list of names".to_string()), |it| Ok(Choice::Words(it)))
            }
            (Value::Words, _) => bad("a list of names".to_string()),
            (Value::Parsed(_) | Value::Label | Value::ClassWeights, _) => bad("text in quotes".to_string()),
        }
    }

    /// The error for an unknown name. It names the task that has the setting, or the nearest known name.
    fn unknown(&self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) -> Error {
        let name = key.get_ref().as_ref();
        let others: Vec<&str> = Task::ALL
            .into_iter()
            .filter(|other| *other != self.task && other.profile().setting(name).is_some())
            .map(Task::name)
            .collect();
        let error = match &others[..] {
            [] => self.bad(format!("`{name}` is not known here"), key.span()),
            others => {
                let task = self.task.name();
                self.bad(
                    format!("`{name}` is not a setting of `{task}`: it is for {}", others.join(" and ")),
                    key.span(),
                )
            }
        };
        match nearest(name, known).filter(|_| others.is_empty()) {
            Some(similar) => error.help(format!("did you mean `{similar}`? {EXAMPLE}")),
            None => error,
        }
    }
}
