//! Flags made from declared settings. The name, help, heading and values of each flag come from its [`Setting`].

use crate::dialect::Flags;
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use maxmargin::error::{Code, Error, Result};
use maxmargin::settings::{Choice, Chosen, Setting, Value};
use maxmargin::wording::{Size, render};
use maxmargin_io::{Format, READING, ReadSettings, alone, read_whole};
use serde::de::DeserializeOwned;

/// A parser for the kebab-case names of a serde enum.
pub(crate) fn named<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}

/// The command with a flag for each setting. `usual` gives the defaults that the help text does not mention.
pub(crate) fn with_flags(command: Command, settings: &[&'static Setting], usual: &Chosen) -> Command {
    let flag = |setting: &&'static Setting| {
        // Settings at the same path are one quantity, so only one of them may be given.
        let others = settings.iter().filter(|other| other.name != setting.name && alone(other) == alone(setting));
        flag(setting, usual.get(setting.name)).conflicts_with_all(others.map(|other| other.name))
    };
    command.args(settings.iter().map(flag))
}

fn flag(setting: &'static Setting, usual: Option<&Choice>) -> Arg {
    let arg = Arg::new(setting.name).help_heading(setting.heading).aliases(setting.aliases.iter().copied());
    let arg = match setting.name {
        // The only flag with a single letter.
        "c" => arg.short('c'),
        name => arg.long(name),
    };
    let help = render(setting.help, &Flags);
    let arg = match usual.filter(|_| !help.contains("[default")) {
        Some(usual) => arg.help(format!("{help} [default: {usual}]")),
        None => arg.help(help.into_owned()),
    };
    let arg = match setting.placeholder {
        "" => arg.value_name(setting.name.to_uppercase().replace('-', "_")),
        placeholder => arg.value_name(placeholder),
    };
    match setting.value {
        Value::Name(names) => arg.value_parser(PossibleValuesParser::new(names())),
        Value::Switch => arg.action(ArgAction::SetTrue),
        Value::Number(_) => arg.value_parser(clap::value_parser!(f64)).allow_negative_numbers(true),
        Value::Whole(..) => arg.value_parser(clap::value_parser!(u64)),
        Value::Size => arg.value_parser(ValueParser::new(|text: &str| text.parse::<Size>())),
        Value::Parsed(_) => arg,
        Value::Words => arg.value_delimiter(',').action(ArgAction::Append),
        // Labels may start with a minus.
        Value::Label | Value::ClassWeights => arg.allow_hyphen_values(true),
    }
}

/// The settings given by flags.
pub(crate) fn chosen(matches: &ArgMatches, settings: &[&'static Setting]) -> Chosen {
    let one = |setting: &&'static Setting| {
        let name = setting.name;
        let choice = match setting.value {
            Value::Switch => Choice::Switch(matches.get_flag(name).then_some(true)?),
            Value::Number(_) => Choice::Number(*matches.get_one::<f64>(name)?),
            Value::Whole(..) => Choice::Whole(*matches.get_one::<u64>(name)?),
            Value::Size => Choice::Text(matches.get_one::<Size>(name)?.to_string()),
            Value::Words => Choice::Words(matches.get_many::<String>(name)?.cloned().collect()),
            Value::Name(_) | Value::Parsed(_) | Value::Label | Value::ClassWeights => {
                Choice::Text(matches.get_one::<String>(name)?.clone())
            }
        };
        Some((name.to_string(), choice))
    };
    settings.iter().filter_map(one).collect()
}

/// Options of commands that read data.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataArguments {
    /// The settings of reading, by name.
    pub(crate) chosen: Chosen,
    /// The format of the data, if it is not detected.
    pub(crate) input_format: Option<Format>,
}

impl DataArguments {
    /// The settings of reading.
    pub(crate) fn read(&self) -> Result<ReadSettings> {
        with_templates(ReadSettings::named(&self.chosen)?)
    }
}

/// The same settings with the text of templates in place of the name of their file.
pub(crate) fn with_templates(mut read: ReadSettings) -> Result<ReadSettings> {
    let Some(templates) = read.templates.as_mut().filter(|templates| !templates.contains('\n')) else {
        return Ok(read);
    };
    let mut text = text_of(templates, "a file of templates")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    read.templates_file = Some(std::mem::replace(templates, text));
    Ok(read)
}

/// The text of a small file.
pub(crate) fn text_of(file: &str, what: &str) -> Result<String> {
    String::from_utf8(read_whole(file)?)
        .map_err(|_| Error::new(Code::NotText, format!("{what} is text in UTF-8")).in_file(file))
}

const INPUT_FORMAT: &str = "input-format";

impl Args for DataArguments {
    fn augment_args(command: Command) -> Command {
        let format = Arg::new(INPUT_FORMAT)
            .long(INPUT_FORMAT)
            .value_name("FORMAT")
            .value_parser(named::<Format>(Format::ALL.map(Format::name)))
            .help_heading("Reading data")
            .help("The format of the data, if it is not recognised");
        with_flags(command, &READING.iter().collect::<Vec<_>>(), &Chosen::new()).arg(format)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DataArguments::augment_args(command)
    }
}

impl FromArgMatches for DataArguments {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<DataArguments, clap::Error> {
        Ok(DataArguments {
            chosen: chosen(matches, &READING.iter().collect::<Vec<_>>()),
            input_format: matches.get_one::<Format>(INPUT_FORMAT).copied(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = DataArguments::from_arg_matches(matches)?;
        Ok(())
    }
}
