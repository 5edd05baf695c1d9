//! What other programs that carry the command share with it, so that their files are the command's.

use crate::commands::train;
use crate::loading::{gather, load_model as read_model};
use crate::settings::{ReadSettings, Reading};
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::Task;
use maxmargin_io::{Facts, Precision};

/// Data as the command reads them for a task.
#[derive(Clone, Debug)]
pub struct Read {
    /// The data.
    pub data: Dataset,
    /// What was found about them.
    pub facts: Facts,
    /// What a model keeps of how they were read.
    pub reading: String,
}

/// Reads data for a task; pairs name rows of `items` where that is given. `settings` is an object of JSON with the flags of
/// the command that say how data are read, without their dashes.
pub fn read(file: &str, items: Option<&str>, task: Task, settings: &str, cancel: &Cancel) -> Result<Read> {
    let settings: ReadSettings = serde_json::from_str(settings)
        .map_err(|error| Error::new(Code::BadSetting, format!("how to read the data: {error}")))?;
    let gathered = gather(file, items, &settings.options(None, cancel)?, settings.one_group, task)?;
    let facts = gathered.features().loaded.facts.clone();
    let reading = Reading {
        read: settings,
        index_base: facts.index_base,
        fill: facts.fill.clone(),
        holdout: None,
        items_are_features: gathered.items_are_features(),
    };
    Ok(Read { data: gathered.timed.loaded.data, facts, reading: reading.to_text()? })
}

/// What a model trained on arrays keeps: files with such rows are read as the command reads any, and svmlight indices count
/// from 1 where columns have no names. `double` says that the arrays held eight bytes a value, as files then do.
pub fn reading_of_arrays(named: bool, double: bool) -> Result<String> {
    let read = ReadSettings { precision: double.then_some(Precision::F64), ..ReadSettings::default() };
    Reading { read, index_base: (!named).then_some(1), ..Reading::default() }.to_text()
}

/// Reads a model file.
pub fn load_model(file: &str) -> Result<Model> {
    read_model(file)
}

/// Writes a model file as a whole or not at all; returns its size.
pub fn save_model(model: &Model, file: &str) -> Result<u64> {
    train::save(model, file)
}
