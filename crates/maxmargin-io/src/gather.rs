//! The data of a task from files: rows, or pairs and the items that they name.

use crate::reading::{ReadSettings, Reading, scoring_options};
use crate::trees::TEMPLATES;
use crate::{Columns, Facts, Format, Items, Loaded, Missing, ModelFeatures, Pairing, ReadOptions, read, read_pairs};
use maxmargin::data::{Dataset, Groups, Names};
use maxmargin::error::{Code, Error, Mark, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{Input, Settings};
use maxmargin::wording::counted;
use std::sync::Arc;
use std::time::Instant;

/// Data, and the time it took to read them.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The data.
    pub loaded: Loaded,
    /// Seconds.
    pub seconds: f64,
}

/// Reads data. With `one_group`, all rows become one group.
pub fn load(file: &str, options: &ReadOptions, one_group: bool) -> Result<Timed> {
    let start = Instant::now();
    let mut loaded = read(file, options)?;
    if one_group && loaded.data.groups().is_none() {
        let rows = loaded.data.rows();
        loaded.data = loaded.data.with_groups(Groups::one(rows))?;
    }
    Ok(Timed { loaded, seconds: start.elapsed().as_secs_f64() })
}

/// Rows, or pairs and the items that they name.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The findings about the file itself, and the complete data.
    pub timed: Timed,
    /// The items, if they are in a separate file.
    pub items: Option<(Timed, Arc<Items>)>,
}

impl Gathered {
    /// The data that the features come from.
    pub fn features(&self) -> &Timed {
        self.items.as_ref().map_or(&self.timed, |(items, _)| items)
    }

    /// Whether the items have only ids, so that each item is one feature.
    pub fn items_are_features(&self) -> bool {
        let data = &self.timed.loaded.data;
        let named = data.row_ids().map(Names::parts);
        let compared = self.items.is_none() && data.pairs().is_some();
        compared && named.is_some() && named == data.feature_names().map(Names::parts)
    }

    /// The total reading time.
    pub fn seconds(&self) -> f64 {
        self.timed.seconds + self.items.as_ref().map_or(0.0, |(items, _)| items.seconds)
    }

    /// What a model stores about how these data were read.
    pub fn reading(&self, mut read: ReadSettings, holdout: Option<f64>) -> Reading {
        let facts = &self.features().loaded.facts;
        if facts.format == Some(Format::Trees) {
            // The usual templates may be others in another version.
            read.templates.get_or_insert_with(|| TEMPLATES.to_string());
        }
        Reading {
            read,
            index_base: facts.index_base,
            fill: facts.fill.clone(),
            holdout,
            text_columns: facts.text_columns,
            items_are_features: self.items_are_features(),
            clicks: None,
        }
    }
}

/// The input of these settings. For graded rows it is that of a ranker, even if equal grades are ties.
pub fn input_of(settings: &Settings) -> Input {
    if settings.ties_from_grades() { Input::Ranked } else { settings.task.task().profile().input }
}

/// The kind of pairs to expect in a file without a separate file of items.
pub fn pairing_of(input: Input) -> Pairing {
    match input {
        Input::Ranked => Pairing::Sides,
        Input::Compared => Pairing::Comparisons,
        Input::Rows | Input::Sentences => Pairing::None,
    }
}

/// The options for the main file of a task.
pub fn options_for(options: &ReadOptions, input: Input) -> ReadOptions {
    let sentences = input == Input::Sentences;
    ReadOptions { pairing: pairing_of(input), sentences, ..options.clone() }
}

/// Reads the input of a task: rows, pairs over the items of another file, or tables with two items in each row.
pub fn gather(
    file: &str,
    items: Option<&str>,
    options: &ReadOptions,
    one_group: bool,
    input: Input,
) -> Result<Gathered> {
    let Some(items_file) = items else {
        let timed = load(file, &options_for(options, input), one_group)?;
        return Ok(Gathered { timed, items: None });
    };
    if matches!(input, Input::Rows | Input::Sentences) {
        return Err(Error::new(Code::BadSetting, "pairs of items are for rankers, and this is a classifier")
            .help("leave ⟦items⟧ out, or use `train rank` or `train compare`"));
    }
    if file == "-" && items_file == "-" {
        return Err(Error::new(Code::Usage, "pairs and items cannot both come from standard input")
            .help("put one of them into a file"));
    }
    let (items, index) = load_items(items_file, options)?;
    let timed = load_pairs(file, &index, options)?;
    Ok(Gathered { timed, items: Some((items, index)) })
}

/// Reads the items that pairs name.
pub fn load_items(items_file: &str, options: &ReadOptions) -> Result<(Timed, Arc<Items>)> {
    // Pairs have weights and groups; items have ids, targets and ignored columns.
    let of_items = |columns: &Columns| Columns { weight: None, group: None, ..columns.clone() };
    let start = Instant::now();
    let options_of_items = ReadOptions {
        format: None,
        columns: of_items(&options.columns),
        remembered: of_items(&options.remembered),
        pairing: Pairing::ItemRows,
        ..options.clone()
    };
    let loaded = read(items_file, &options_of_items)?;
    let index = Arc::new(Items::new(&loaded)?);
    Ok((Timed { loaded, seconds: start.elapsed().as_secs_f64() }, index))
}

/// The options for a table of pairs whose items are in a separate file.
pub fn pair_options(options: &ReadOptions) -> ReadOptions {
    let of_pairs = |columns: &Columns| Columns {
        weight: columns.weight.clone(),
        group: columns.group.clone(),
        ..Columns::default()
    };
    ReadOptions {
        columns: of_pairs(&options.columns),
        remembered: of_pairs(&options.remembered),
        features: None,
        ..options.clone()
    }
}

/// Reads pairs over items that are already read.
pub fn load_pairs(file: &str, items: &Arc<Items>, options: &ReadOptions) -> Result<Timed> {
    let start = Instant::now();
    let loaded = read_pairs(file, Arc::clone(items), &pair_options(options))?;
    Ok(Timed { loaded, seconds: start.elapsed().as_secs_f64() })
}

/// The options for data to be evaluated together with others: the same features, read in the same way.
pub fn options_like(options: &ReadOptions, data: &Dataset, facts: &Facts) -> ReadOptions {
    let mut options = options.clone();
    options.features = Some(ModelFeatures {
        count: data.cols(),
        names: data.feature_names().map(|names| names.iter().map(|name| name.into_owned()).collect()),
        index_base: facts.index_base,
    });
    if let Some(fill) = &facts.fill {
        options.missing = Missing::Fill(fill.clone());
    }
    options.text_columns = facts.text_columns;
    options
}

/// Reads rows or pairs for evaluating a model, in the same way as its training data.
pub fn gather_for(
    model: &Model,
    file: &str,
    items: Option<&str>,
    settings: &ReadSettings,
    format: Option<Format>,
    cancel: &Cancel,
) -> Result<Gathered> {
    let (options, one_group) = scoring_options(model, settings, format, cancel)?;
    let gathered = gather(file, items, &options, one_group, input_of(&model.settings))
        .map_err(|error| asking_for_pairs(error, model))?;
    expect_features(&gathered.timed, model.features(), items.unwrap_or(file))?;
    if items.is_none() {
        expect_known_items(model, &gathered.timed.loaded.data).map_err(|error| error.in_file(file))?;
    }
    Ok(gathered)
}

/// Adds a remedy to the error if a model that compares gets a file without pairs.
pub fn asking_for_pairs(error: Error, model: &Model) -> Error {
    if error.mark() != Some(Mark::NoTableOfPairs) || model.decoder.threshold().is_none() {
        return error;
    }
    let pairs = match Reading::of(model).is_ok_and(|reading| reading.items_are_features) {
        true => "a table of pairs with columns `left`, `right` and `outcome`, which name items",
        false => {
            "a table of pairs, with both items in a row as columns `left.NAME` and `right.NAME`, or with columns `left` and \
             `right` that name rows of ⟦items=FILE⟧; and `outcome`, unless it is to be predicted"
        }
    };
    error.help(format!("the model compares items, so give {pairs}; `maxmargin rank-items` scores single items"))
}

/// Returns an error if the model knows none of the ids, because the items are then in another file.
pub fn expect_known_items(model: &Model, data: &Dataset) -> Result<()> {
    if model.decoder.threshold().is_none() || data.pairs().is_none() || data.matrix().entries() > 0 || data.cols() == 0
    {
        return Ok(());
    }
    Err(Error::new(Code::NoItems, "the model knows none of the items that these pairs name")
        .help("name the file that holds the items with ⟦items=FILE⟧, or give pairs of items the model was trained on"))
}

/// New data may have fewer features than the training data, but not more.
pub fn expect_features(timed: &Timed, known: usize, file: &str) -> Result<()> {
    let found = timed.loaded.data.cols();
    if found <= known {
        return Ok(());
    }
    Err(Error::new(
        Code::TooManyFeatures,
        format!("the data have {}, but the model knows only {known}", counted(found as u64, "feature", "features")),
    )
    .in_file(file)
    .help("give data prepared like the training data; `maxmargin inspect MODEL` describes the model"))
}
