//! Commands that learn. Each task is a subcommand with its own flags, made from the declared settings.
//!
//! The task may also come after flags, as in `train --loss logistic classify rows.txt`: [`parse`] moves it to the front
//! before the words are parsed.

use crate::args::Arguments;
use crate::flags::{DataArguments, chosen, text_of, with_flags, with_templates};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use maxmargin::data::{CodeChoice, NamedCode};
use maxmargin::error::{Code, Error, Result};
use maxmargin::settings::{Choice, Chosen, Input, Setting, Settings, Solver, Task, Value};
use maxmargin::solve::solvers_of;
use maxmargin::task::CostMatrix;
use maxmargin::wish::COMMON;
use maxmargin::wording::all_of;
use maxmargin_io::{READING, ReadSettings, SettingsFile, laid_over};
use std::ffi::{OsStr, OsString};

/// The arguments of a command that learns, apart from the settings of a task.
pub(crate) trait Learns: Args {
    /// The name of the command.
    const NAME: &'static str;
    /// Text after its help.
    const MORE: &'static str = "";
    /// Flags that are accepted only to tell the user what to do instead.
    const HIDDEN: &'static [&'static str] = &[];

    /// The settings that it takes for a task; empty if it cannot learn the task.
    fn settings(task: Task) -> Vec<&'static Setting>;

    /// Settings that a task does not use. They may be given their default value.
    fn left_out(_: Task) -> Vec<&'static Setting> {
        Vec::new()
    }

    /// Their defaults, if these depend on the task.
    fn usual(task: Task) -> Chosen {
        Settings::new(task).to_named().unwrap_or_default()
    }
}

/// The arguments of a command that learns a task.
#[derive(Clone, Debug)]
pub(crate) struct ForTask<A> {
    /// The task.
    pub(crate) task: Task,
    /// The settings given by flags.
    pub(crate) chosen: Chosen,
    /// How to read the data.
    pub(crate) data: DataArguments,
    /// The arguments that the command takes for every task.
    pub(crate) arguments: A,
}

impl<A: Learns> ForTask<A> {
    fn tasks() -> impl Iterator<Item = Task> {
        Task::ALL.into_iter().filter(|task| !A::settings(*task).is_empty())
    }

    fn command(task: Task) -> Command {
        let profile = task.profile();
        // Headings are in the order of declaration, even if a task adds settings below them.
        let mut settings = A::settings(task);
        settings.sort_by_key(|setting| COMMON.iter().position(|common| common.heading == setting.heading));
        let command = with_flags(A::augment_args(Command::new(profile.name)), &settings, &A::usual(task));
        let left_out = A::left_out(task);
        let command = with_flags(command, &left_out, &Chosen::new());
        let command =
            left_out.iter().fold(command, |command, setting| command.mut_arg(setting.name, |arg| arg.hide(true)));
        let command = with_solvers_of(task, command, &settings);
        let mut command = DataArguments::augment_args(command).about(profile.about);
        if !A::MORE.is_empty() {
            command = command.after_long_help(A::MORE);
        }
        // Tasks that learn from single rows do not take pairs of items.
        let items = matches!(profile.input, Input::Rows | Input::Sentences).then_some("items");
        let clicks: &[&str] = match task {
            Task::Rank => &[],
            _ => &["clicks", "propensity", "clip", "against", "preferences", "keep_order"],
        };
        A::HIDDEN.iter().copied().chain(items).chain(clicks.iter().copied()).fold(command, |command, name| {
            let known = command.get_arguments().any(|arg| arg.get_id() == name);
            if known { command.mut_arg(name, |arg| arg.hide(true)) } else { command }
        })
    }

    /// The settings from flags. Settings that are not given by flags are taken from the file at `config`.
    pub(crate) fn under(&self, config: Option<&str>) -> Result<(Chosen, ReadSettings)> {
        let file = match config {
            Some(file) => SettingsFile::read(file, A::NAME, self.task)?,
            None => SettingsFile::default(),
        };
        let mut train = laid_over(self.chosen.clone(), file.train, &A::settings(self.task));
        read_code(&mut train)?;
        read_costs(&mut train)?;
        let read = laid_over(self.data.chosen.clone(), file.read, &READING.iter().collect::<Vec<_>>());
        let mut read = with_templates(ReadSettings::named(&read)?)?;
        if self.task == Task::Multilabel && read.labels.is_empty() {
            // A cell of the target column holds a set.
            read.label_separator.get_or_insert_with(|| ",".to_string());
        }
        Ok((train, read))
    }
}

/// The command with the solvers in its help that the task takes. Others are read too: an error then says what to do.
fn with_solvers_of(task: Task, command: Command, settings: &[&'static Setting]) -> Command {
    let names = Solver::ALL.map(Solver::name);
    let all = |setting: &&&Setting| matches!(setting.value, Value::Name(own) if own() == names);
    if settings.iter().find(|setting| setting.name == "solver").filter(all).is_none() {
        return command;
    }
    let taken = solvers_of(task);
    let values = Solver::ALL.map(|solver| PossibleValue::new(solver.name()).hide(!taken.contains(&solver)));
    command.mut_arg("solver", |arg| arg.value_parser(PossibleValuesParser::new(values)))
}

/// Replaces the name of a file with an output code by what it holds.
fn read_code(chosen: &mut Chosen) -> Result<()> {
    let Some(Choice::Text(code)) = chosen.get_mut("code") else { return Ok(()) };
    if CodeChoice::is_name(code) || code.contains('\n') {
        return Ok(());
    }
    let named = NamedCode::parse(&text_of(code, "an output code")?).map_err(|error| error.in_file(code.as_str()))?;
    *code = CodeChoice::Matrix(named).to_string();
    Ok(())
}

/// Replaces the name of a file with a cost matrix by what it holds.
fn read_costs(chosen: &mut Chosen) -> Result<()> {
    let Some(Choice::Text(costs)) = chosen.get_mut("cost-matrix") else { return Ok(()) };
    if costs.contains('\n') {
        return Ok(());
    }
    let text = text_of(costs, "a cost matrix")?;
    text.parse::<CostMatrix>().map_err(|error| error.in_file(costs.as_str()))?;
    *costs = text;
    Ok(())
}

impl<A: Learns> Subcommand for ForTask<A> {
    fn augment_subcommands(command: Command) -> Command {
        command
            .subcommand_value_name("TASK")
            .subcommand_help_heading("Tasks")
            .disable_help_subcommand(true)
            .after_help(format!("`maxmargin {} TASK --help` lists the flags of a task.", A::NAME))
            .subcommands(ForTask::<A>::tasks().map(ForTask::<A>::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        ForTask::<A>::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ForTask::<A>::tasks().any(|task| task.name() == name)
    }
}

impl<A: Learns> FromArgMatches for ForTask<A> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<ForTask<A>, clap::Error> {
        let found = matches.subcommand().and_then(|(name, matches)| {
            let task = ForTask::<A>::tasks().find(|task| task.name() == name)?;
            Some((task, matches))
        });
        let (task, matches) = found.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(ForTask {
            task,
            chosen: chosen(matches, &[A::settings(task), A::left_out(task)].concat()),
            data: DataArguments::from_arg_matches(matches)?,
            arguments: A::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = ForTask::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Why a command line was refused.
pub(crate) enum Refused {
    /// A message of the parser, which may be a help text.
    Usage(clap::Error),
    /// An error of this program.
    Error(Error),
}

/// Parses a command line, program name first.
pub(crate) fn parse(words: Vec<OsString>) -> std::result::Result<Arguments, Refused> {
    let whole = Arguments::command();
    let found = Found::in_line(&whole, &words);
    let words = match &found {
        Some(found) => found.task_first(words),
        None => words,
    };
    Arguments::try_parse_from(&words).map_err(|error| {
        let of_another = found.as_ref().and_then(|found| found.of_another_task(&error, &words));
        of_another.map_or(Refused::Usage(error), Refused::Error)
    })
}

/// A command that learns, found in a command line.
struct Found<'a> {
    /// The command.
    command: &'a Command,
    /// Its position among the words.
    at: usize,
    /// The position of its task.
    task: Option<usize>,
}

/// The subcommands of a command that are tasks.
fn tasks_of(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| Task::ALL.into_iter().any(|task| task.name() == sub.get_name()))
}

impl<'a> Found<'a> {
    fn in_line(whole: &'a Command, words: &[OsString]) -> Option<Found<'a>> {
        let common: Vec<&Arg> = whole.get_arguments().collect();
        let at = 1 + first_word(words.get(1..)?, &common, |_| true)?;
        let command = whole.find_subcommand(&words[at])?;
        tasks_of(command).next()?;
        let known: Vec<&Arg> = tasks_of(command).flat_map(Command::get_arguments).chain(common).collect();
        let rest = &words[at + 1..];
        // An unknown flag may be followed by a value. In that case the first task is used.
        let is_task = |word: &OsStr| tasks_of(command).any(|task| task.get_name() == word);
        let task = first_word(rest, &known, is_task).or_else(|| first_word(rest, &known, |_| true));
        Some(Found { command, at, task: task.map(|task| at + 1 + task) })
    }

    /// The words with the task directly after the command.
    fn task_first(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        if let Some(task) = self.task {
            let word = words.remove(task);
            words.insert(self.at + 1, word);
        }
        words
    }

    /// The error for a flag that belongs to another task, or if no task was named.
    fn of_another_task(&self, error: &clap::Error, words: &[OsString]) -> Option<Error> {
        let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
        if error.kind() != ErrorKind::UnknownArgument {
            return None;
        }
        let flag = flag.split('=').next().unwrap_or(flag);
        let name = self.command.get_name();
        if self.task.is_none() {
            let tasks: Vec<&str> = tasks_of(self.command).map(Command::get_name).collect();
            let message = format!("`{name}` needs a task: {}", tasks.join(", "));
            return Some(Error::new(Code::Usage, message).help(format!("such as `maxmargin {name} {}`", tasks[0])));
        }
        let task = words.get(self.at + 1)?.to_str()?;
        let others: Vec<String> = tasks_of(self.command)
            .filter(|other| other.get_arguments().any(|arg| !arg.is_hide_set() && is_flag(arg, flag)))
            .map(|other| format!("`{name} {}`", other.get_name()))
            .collect();
        if others.is_empty() {
            return None;
        }
        let message = format!("{flag} is not a flag of `{name} {task}`: it is for {}", all_of(&others));
        Some(Error::new(Code::BadSetting, message).help(format!("leave {flag} out, or use another task")))
    }
}

/// Whether an argument is written like this.
fn is_flag(arg: &Arg, written: &str) -> bool {
    match written.strip_prefix("--") {
        Some(name) => arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|names| names.contains(&name)),
        None => written.strip_prefix('-').is_some_and(|name| {
            let mut letters = name.chars();
            letters.next().is_some_and(|letter| arg.get_short() == Some(letter)) && letters.next().is_none()
        }),
    }
}

/// The position of the first word that is wanted and is neither a flag nor the value of one. If all flags are known,
/// only the first such word is considered.
fn first_word(words: &[OsString], known: &[&Arg], wanted: impl Fn(&OsStr) -> bool) -> Option<usize> {
    let takes_value = |flag: &str| {
        let arg = known.iter().find(|arg| is_flag(arg, flag));
        arg.map(|arg| arg.get_action().takes_values())
    };
    let (mut at, mut sure) = (0, true);
    while let Some(word) = words.get(at) {
        let text = word.to_str().unwrap_or_default();
        let (known, value) = if let Some(flag) = text.strip_prefix("--") {
            match flag {
                "" | "help" | "version" => (Some(false), false),
                _ => (takes_value(text.split('=').next().unwrap_or(text)), !flag.contains('=')),
            }
        } else if text.len() > 1 && text.starts_with('-') {
            of_letters(text, &takes_value)
        } else if wanted(word) {
            return Some(at);
        } else if sure {
            return None;
        } else {
            (Some(false), false)
        };
        sure &= known.is_some();
        at += if known == Some(true) && value { 2 } else { 1 };
    }
    None
}

/// For letters after one dash, such as `-qc`: whether they are known and the last takes a value, and whether that value
/// is the next word.
fn of_letters(text: &str, takes_value: &impl Fn(&str) -> Option<bool>) -> (Option<bool>, bool) {
    let mut letters = text[1..].chars().peekable();
    while let Some(letter) = letters.next() {
        match takes_value(&format!("-{letter}")) {
            Some(true) => return (Some(true), letters.peek().is_none()),
            Some(false) => {}
            None => return ((letter == 'h' || letter == 'V').then_some(false), false),
        }
    }
    (Some(false), false)
}
