//! Settings from Python: a JSON object with the task and the names of the command's flags.

use maxmargin::error::{Code, Error, Result};
use maxmargin::settings::{Choice, Chosen, Settings, Task};

/// The task, and the settings chosen by name.
fn named(text: &str) -> Result<(Task, Chosen)> {
    let bad = |error: serde_json::Error| Error::new(Code::BadSetting, error.to_string());
    let mut chosen: Chosen = serde_json::from_str(text).map_err(bad)?;
    let task = match chosen.remove("task") {
        Some(Choice::Text(name)) => serde_json::from_value(name.into()).map_err(bad)?,
        _ => return Err(Error::new(Code::BadSetting, "the settings name no task")),
    };
    Ok((task, chosen))
}

/// The settings for training.
pub(crate) fn parse(text: &str) -> Result<Settings> {
    let (task, chosen) = named(text)?;
    Settings::named(task, &chosen)
}

/// The settings for learning from a stream.
pub(crate) fn parse_streamed(text: &str) -> Result<Settings> {
    let (task, chosen) = named(text)?;
    Settings::streamed(task, &chosen, None)
}
