//! How data are read: the settings, and what a model stores about them for data to be scored.
//!
//! The settings are declared in [`READING`], like those of training. The command makes its flags from these
//! declarations. Settings files, model files and other programs use [`ReadSettings`] with the same names.

use crate::gather::input_of;
use crate::{Columns, Format, Hashing, Missing, ModelFeatures, Pairing, Precision, ReadOptions, Templates};
use maxmargin::clicks::{Against, Propensity, Rule};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{Chosen, Input, Setting, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// The heading of these settings in the help of the command.
const HEADING: &str = "Reading data";

const fn column(name: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        heading: HEADING,
        aliases: &[],
        help,
        placeholder: "COLUMN",
        value: Value::Parsed(|_| Ok(())),
        place: name,
    }
}

/// The settings of reading data.
pub const READING: &[Setting] = &[
    Setting {
        name: "precision",
        heading: HEADING,
        aliases: &[],
        help: "How to store values: f32, correctly rounded from the text, or f64 [default: f32]",
        placeholder: "",
        value: Value::Name(|| vec!["f32", "f64"]),
        place: "precision",
    },
    column("target", "The table column that holds the target"),
    column("group", "The table column that holds the query"),
    column("weight", "The table column that holds the weight of a row"),
    column("id", "The table column that holds the id of a row"),
    Setting {
        name: "ignore",
        heading: HEADING,
        aliases: &[],
        help: "Table columns to leave out, separated by commas",
        placeholder: "COLUMNS",
        value: Value::Words,
        place: "ignore",
    },
    Setting {
        name: "labels",
        heading: HEADING,
        aliases: &[],
        help: "Table columns that hold 1 where a row has the label of this name, and 0 elsewhere, separated by commas",
        placeholder: "COLUMNS",
        value: Value::Words,
        place: "labels",
    },
    Setting {
        name: "label-separator",
        heading: HEADING,
        aliases: &[],
        help: "What separates the labels in a cell of the target column; with it, an empty cell has no label [default for \
               label sets: a comma]",
        placeholder: "CHARACTER",
        value: Value::Parsed(|text| separator(text).map(drop)),
        place: "label-separator",
    },
    Setting {
        name: "missing",
        heading: HEADING,
        aliases: &[],
        help: "What to use in place of an empty cell of a table; without it, an empty cell is an error",
        placeholder: "",
        value: Value::Name(|| vec!["error", "zero", "mean"]),
        place: "missing",
    },
    Setting {
        name: "index-base",
        heading: HEADING,
        aliases: &[],
        help: "Whether the features of an svmlight file count from 0 or from 1; detected if not given",
        placeholder: "0|1",
        value: Value::Whole(0, 1),
        place: "index-base",
    },
    Setting {
        name: "least-features",
        heading: HEADING,
        aliases: &[],
        help: "The least number of features of an svmlight file, for files whose last features are zero in all rows",
        placeholder: "N",
        value: Value::Whole(1, 1 << 27),
        place: "least-features",
    },
    Setting {
        name: "hash",
        heading: HEADING,
        aliases: &[],
        help: "Features have names, and a hash of the name chooses one of 2^BITS columns; 22 suits most texts. Words of \
               svmlight text (`name:value` or `name`) and cells of tables are hashed",
        placeholder: "BITS",
        value: Value::Whole(1, Hashing::MOST_BITS as u64),
        place: "hash",
    },
    Setting {
        name: "templates",
        heading: HEADING,
        aliases: &[],
        help: "A file of templates that make the features of text in columns; they are kept in the model",
        placeholder: "FILE",
        value: Value::Parsed(|_| Ok(())),
        place: "templates",
    },
    Setting {
        name: "least-count",
        heading: HEADING,
        aliases: &[],
        help: "Leave out features of ⟦templates⟧ that occur in fewer rows than this [default: 1]",
        placeholder: "N",
        value: Value::Whole(1, u32::MAX as u64),
        place: "least-count",
    },
    Setting {
        name: "max-words",
        heading: HEADING,
        aliases: &[],
        help: "Leave out sentences with more words than this from bracketed trees",
        placeholder: "N",
        value: Value::Whole(1, u32::MAX as u64),
        place: "max-words",
    },
    Setting {
        name: "one-group",
        heading: HEADING,
        aliases: &[],
        help: "Rank all rows as one list, or tag them as one sequence",
        placeholder: "",
        value: Value::Switch,
        place: "one-group",
    },
];

/// The character that separates labels.
fn separator(text: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() || *byte == b' ' => Ok(*byte),
        _ => Err(Error::new(Code::BadSetting, format!("`{text}` is not one character"))
            .help("give one character that separates labels, such as `,` or `;`")),
    }
}

/// How to read data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ReadSettings {
    /// How values are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// The column of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The column of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The column of the weight of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The column of the id of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Columns to leave out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Columns of labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What separates labels in a cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_separator: Option<String>,
    /// What replaces an empty cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether the features of an svmlight file count from 0 or from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_base: Option<u8>,
    /// The minimum number of features of an svmlight file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_features: Option<u32>,
    /// The binary logarithm of the number of columns that names are hashed into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<u32>,
    /// The text of the templates for text in columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<String>,
    /// The file that they come from, for messages.
    #[serde(skip)]
    pub templates_file: Option<String>,
    /// The least number of rows with a feature of a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_count: Option<u32>,
    /// The largest number of words of a sentence with a tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_words: Option<u32>,
    /// Whether all rows form one list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_group: bool,
}

impl ReadSettings {
    /// The settings that are chosen by name. The others are unset.
    pub fn named(chosen: &Chosen) -> Result<ReadSettings> {
        let mut object = Map::new();
        for (name, choice) in chosen {
            let setting = READING
                .iter()
                .find(|setting| setting.name == name)
                .ok_or_else(|| Error::new(Code::BadSetting, format!("`{name}` is not a setting for reading data")))?;
            object.insert(setting.place.to_string(), setting.checked(choice)?);
        }
        from_object(object)
    }

    /// These settings. Unset ones are taken from `other`.
    pub fn or(self, other: ReadSettings) -> Result<ReadSettings> {
        let file = if self.templates.is_some() { &self.templates_file } else { &other.templates_file };
        let mut object = as_object(&other)?;
        object.extend(as_object(&self)?);
        Ok(ReadSettings { templates_file: file.clone(), ..from_object(object)? })
    }

    fn columns(&self) -> Columns {
        Columns {
            target: self.target.clone(),
            group: self.group.clone(),
            weight: self.weight.clone(),
            id: self.id.clone(),
            ignore: self.ignore.clone(),
            labels: self.labels.clone(),
        }
    }

    /// The options of the reader.
    pub fn options(&self, format: Option<Format>, cancel: &Cancel) -> Result<ReadOptions> {
        let missing = match self.missing.as_deref() {
            None | Some("error") => Missing::Error,
            Some("zero") => Missing::Zero,
            Some("mean") => Missing::Mean,
            Some(other) => {
                return Err(Error::new(Code::BadSetting, format!("missing = `{other}` is not known"))
                    .help("use error, zero or mean"));
            }
        };
        let file = self.templates_file.as_deref().unwrap_or("templates");
        let templates = self.templates.as_ref().map(|text| Templates::parse(text, file)).transpose()?;
        let hash = self.hash.map(Hashing::new).transpose()?;
        if hash.is_some() && (self.index_base.is_some() || self.least_features.is_some()) {
            return Err(Error::new(Code::BadSetting, "with ⟦hash⟧ features have names, and no numbers")
                .help("leave ⟦index-base⟧ and ⟦least-features⟧ out, or ⟦hash⟧"));
        }
        Ok(ReadOptions {
            hash,
            templates: templates.map(Arc::new),
            least_count: self.least_count.unwrap_or(1),
            text_columns: None,
            sentences: false,
            max_words: self.max_words,
            format,
            precision: self.precision.unwrap_or_default(),
            columns: self.columns(),
            remembered: Columns::default(),
            missing,
            features: None,
            features_grow: false,
            index_base: self.index_base,
            steady: false,
            live: false,
            follow: false,
            bad_rows: None,
            least_features: self.least_features.map_or(0, |least| least as usize),
            label_separator: self.label_separator.as_deref().map(separator).transpose()?,
            pairing: Pairing::None,
            outcomes_optional: false,
            cancel: cancel.clone(),
        })
    }
}

fn as_object(settings: &impl Serialize) -> Result<Map<String, Json>> {
    match serde_json::to_value(settings) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(Error::new(Code::Internal, error.to_string())),
    }
}

fn from_object<T: DeserializeOwned>(object: Map<String, Json>) -> Result<T> {
    serde_json::from_value(Json::Object(object)).map_err(|error| Error::new(Code::BadSetting, error.to_string()))
}

/// What a model stores about how its data were read, for data to be scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reading {
    /// The settings.
    #[serde(default)]
    pub read: ReadSettings,
    /// The detected index base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_base: Option<u8>,
    /// The values used for missing cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Vec<f64>>,
    /// The share that was held out of the training data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<f64>,
    /// The number of columns of text in columns, without the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_columns: Option<usize>,
    /// Whether the features are the items themselves, which have only ids.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub items_are_features: bool,
    /// How the model learned from clicks, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clicks: Option<ClickReading>,
}

/// How a log of clicks became data to learn from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClickReading {
    /// How propensities were asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The propensities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propensity: Option<Propensity>,
    /// 95 % intervals of estimated propensities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Option<(f64, f64)>>,
    /// The lowest propensity that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// What a clicked result is compared with.
    #[serde(default)]
    pub against: Against,
    /// The rule by which clicks became preferences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// The weight of the shown order among preferences.
    #[serde(default)]
    pub keep_order: f64,
}

impl Reading {
    /// What a model stores; the default if it was trained on arrays.
    pub fn of(model: &Model) -> Result<Reading> {
        model.reading.as_deref().map_or(Ok(Reading::default()), |text| {
            serde_json::from_str(text).map_err(|error| {
                Error::new(Code::DamagedModel, format!("the model's settings for reading data are not valid: {error}"))
                    .help("copy the model again or train it again")
            })
        })
    }

    /// What a model trained on arrays stores. Files with such rows are read as usual, and svmlight indices count from 1
    /// if columns have no names. `double` says that the arrays had eight bytes per value; files are then read the same
    /// way.
    pub fn of_arrays(named: bool, double: bool) -> Reading {
        let read = ReadSettings { precision: double.then_some(Precision::F64), ..ReadSettings::default() };
        Reading { read, index_base: (!named).then_some(1), ..Reading::default() }
    }

    /// The text that a model stores.
    pub fn to_text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }
}

/// The options of the reader for data to be scored: the model's own, overridden by `settings`. Also returns whether all
/// rows form one list.
pub fn scoring_options(
    model: &Model,
    settings: &ReadSettings,
    format: Option<Format>,
    cancel: &Cancel,
) -> Result<(ReadOptions, bool)> {
    let reading = Reading::of(model)?;
    if let Some(bits) = settings.hash.filter(|bits| reading.read.hash != Some(*bits)) {
        let (message, help) = match reading.read.hash {
            Some(own) => {
                (format!("the model hashes features into 2^{own} columns, and ⟦hash⟧ is {bits}"), "leave it out")
            }
            None => ("the model knows its features by name or number, and no hash".to_string(), "leave ⟦hash⟧ out"),
        };
        return Err(Error::new(Code::BadSetting, message).help(help));
    }
    let remembered = reading.read.columns();
    let merged = settings.clone().or(reading.read)?;
    let mut options = merged.options(format, cancel)?;
    // Columns named by the user must exist; columns remembered by the model may be missing.
    options.columns = settings.columns();
    options.remembered = remembered;
    if let Some(fill) = reading.fill {
        options.missing = Missing::Fill(fill);
    }
    options.text_columns = reading.text_columns;
    options.sentences = input_of(&model.settings) == Input::Sentences;
    options.features = Some(ModelFeatures {
        count: model.features(),
        names: model.feature_names.as_ref().map(|names| names.iter().map(|name| name.into_owned()).collect()),
        index_base: reading.index_base,
    });
    Ok((options, merged.one_group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use maxmargin::settings::Choice;

    #[test]
    fn every_setting_that_is_declared_is_one_of_the_struct() {
        for setting in READING {
            let choice = match setting.value {
                Value::Name(names) => Choice::Text(names()[0].to_string()),
                Value::Switch => Choice::Switch(true),
                Value::Whole(low, _) => Choice::Whole(low),
                _ if setting.name == "label-separator" => Choice::Text(";".to_string()),
                _ => Choice::Text("column".to_string()),
            };
            let read = ReadSettings::named(&Chosen::from([(setting.name.to_string(), choice)])).expect(setting.name);
            assert_ne!(read, ReadSettings::default(), "{}", setting.name);
        }
        let all = as_object(&ReadSettings {
            precision: Some(Precision::F64),
            target: Some(String::new()),
            group: Some(String::new()),
            weight: Some(String::new()),
            id: Some(String::new()),
            ignore: vec![String::new()],
            labels: vec![String::new()],
            label_separator: Some(String::new()),
            missing: Some(String::new()),
            index_base: Some(1),
            least_features: Some(1),
            hash: Some(1),
            templates: Some(String::new()),
            templates_file: Some("not kept".to_string()),
            least_count: Some(1),
            max_words: Some(1),
            one_group: true,
        });
        assert_eq!(all.expect("an object").len(), READING.len());
    }

    #[test]
    fn texts_can_refer_to_every_setting() {
        for setting in READING.iter().chain(crate::settings_file::RUN) {
            assert!(maxmargin::wording::NAMES.contains(&setting.name), "{} is not in the list of names", setting.name);
        }
    }

    #[test]
    fn what_is_said_wins_over_what_is_kept() {
        let said = ReadSettings { target: Some("y".into()), ..ReadSettings::default() };
        let kept = ReadSettings { target: Some("z".into()), one_group: true, ..ReadSettings::default() };
        let both = said.or(kept).expect("settings");
        assert_eq!((both.target.as_deref(), both.one_group), (Some("y"), true));
    }
}
