//! Reading data and models for a command, and saying what was found.

use crate::args::DataArguments;
use crate::console::Console;
use crate::format;
use crate::preferences::Preferences;
use crate::settings::{Reading, scoring_options};
use maxmargin::data::{Dataset, Groups, Names};
use maxmargin::error::{Code, Error, Result};
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{Settings, Task};
use maxmargin_io::{Columns, Facts, Found, Items, Loaded, Missing, ModelFeatures, Pairing, ReadOptions, read_pairs};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Data, and how long they took.
pub(crate) struct Timed {
    pub(crate) loaded: Loaded,
    pub(crate) seconds: f64,
}

/// Reads data; rows become one group where that is asked for.
pub(crate) fn load(file: &str, options: &ReadOptions, one_group: bool) -> Result<Timed> {
    let start = Instant::now();
    let mut loaded = maxmargin_io::read(file, options)?;
    if one_group && loaded.data.groups().is_none() {
        let rows = loaded.data.rows();
        loaded.data = loaded.data.with_groups(Groups::one(rows))?;
    }
    Ok(Timed { loaded, seconds: start.elapsed().as_secs_f64() })
}

/// Rows, or pairs and the items that they name.
pub(crate) struct Gathered {
    /// What was found in the file itself, and the data as a whole.
    pub(crate) timed: Timed,
    /// The items, where they stand in a file of their own.
    pub(crate) items: Option<(Timed, Arc<Items>)>,
}

impl Gathered {
    /// Where the features come from.
    pub(crate) fn features(&self) -> &Timed {
        self.items.as_ref().map_or(&self.timed, |(items, _)| items)
    }

    /// Whether the items are known by nothing but their ids, and each is a feature.
    pub(crate) fn items_are_features(&self) -> bool {
        let data = &self.timed.loaded.data;
        let named = data.row_ids().map(Names::parts);
        let compared = self.items.is_none() && data.pairs().is_some();
        compared && named.is_some() && named == data.feature_names().map(Names::parts)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.timed.seconds + self.items.as_ref().map_or(0.0, |(items, _)| items.seconds)
    }

    /// Says what was found. `extra` stands for queries and pairs where they are known already.
    pub(crate) fn describe(&self, console: &Console, preferences: Option<&Preferences>, extra: &[String]) {
        match (&self.items, preferences) {
            (None, None) => describe(console, &self.timed, extra),
            (None, Some(preferences)) => describe(console, &self.timed, &preferences.parts()),
            (Some((items, _)), preferences) => {
                describe(console, items, &[]);
                let facts = &self.timed.loaded.facts;
                let mut parts = vec![format!("{}   {}", facts.file, source(facts))];
                parts.extend(preferences.iter().flat_map(|preferences| preferences.parts()));
                parts.push(format::seconds(self.timed.seconds));
                console.say(&parts.join(" · "));
                facts.notes.iter().for_each(|note| console.say(&format!("   {note}")));
            }
        }
    }
}

/// The task that reads and lists its rows the same way: graded rows are a ranker's, whatever equal grades say.
pub(crate) fn reads_like(settings: &Settings) -> Task {
    if settings.ties_from_grades { Task::Rank } else { settings.task }
}

/// The pairs that a task looks for in a file without items of their own.
pub(crate) fn pairing_of(task: Task) -> Pairing {
    match task {
        Task::Rank => Pairing::Sides,
        Task::Compare => Pairing::Comparisons,
        Task::Classify | Task::OneClass => Pairing::None,
    }
}

/// Reads the data of a task: rows, or pairs over the items of another file, or two items in each row of a table.
pub(crate) fn gather(
    file: &str,
    items: Option<&str>,
    options: &ReadOptions,
    one_group: bool,
    task: Task,
) -> Result<Gathered> {
    let Some(items_file) = items else {
        let pairing = pairing_of(task);
        let timed = load(file, &ReadOptions { pairing, ..options.clone() }, one_group)?;
        return Ok(Gathered { timed, items: None });
    };
    if !matches!(task, Task::Rank | Task::Compare) {
        return Err(Error::new(Code::BadSetting, "pairs of items are for rankers, and this is a classifier")
            .help("leave --items out, or use `train rank` or `train compare`"));
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
pub(crate) fn load_items(items_file: &str, options: &ReadOptions) -> Result<(Timed, Arc<Items>)> {
    // Pairs have weights and groups; items have ids, targets and columns to leave out.
    let of_items = |columns: &Columns| Columns { weight: None, group: None, ..columns.clone() };
    let start = Instant::now();
    let options_of_items = ReadOptions {
        format: None,
        columns: of_items(&options.columns),
        remembered: of_items(&options.remembered),
        pairing: Pairing::ItemRows,
        ..options.clone()
    };
    let loaded = maxmargin_io::read(items_file, &options_of_items)?;
    let index = Arc::new(Items::new(&loaded)?);
    Ok((Timed { loaded, seconds: start.elapsed().as_secs_f64() }, index))
}

/// How a table of pairs is read whose items are in a file of their own.
pub(crate) fn pair_options(options: &ReadOptions) -> ReadOptions {
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

/// Reads pairs over items that were read before.
pub(crate) fn load_pairs(file: &str, items: &Arc<Items>, options: &ReadOptions) -> Result<Timed> {
    let start = Instant::now();
    let loaded = read_pairs(file, Arc::clone(items), &pair_options(options))?;
    Ok(Timed { loaded, seconds: start.elapsed().as_secs_f64() })
}

/// The options for data that are judged beside others: the same features, read the same way.
pub(crate) fn options_like(options: &ReadOptions, data: &Dataset, facts: &Facts) -> ReadOptions {
    let mut options = options.clone();
    options.features = Some(ModelFeatures {
        count: data.cols(),
        names: data.feature_names().map(|names| names.iter().map(|name| name.into_owned()).collect()),
        index_base: facts.index_base,
    });
    if let Some(fill) = &facts.fill {
        options.missing = Missing::Fill(fill.clone());
    }
    options
}

/// Reads rows, or pairs, for a model to be measured on, the way its training data were read.
pub(crate) fn gather_for(
    model: &Model,
    file: &str,
    items: Option<&str>,
    data: &DataArguments,
    cancel: &Cancel,
) -> Result<Gathered> {
    let (options, one_group) = scoring_options(model, &data.read, data.input_format, cancel)?;
    let gathered = gather(file, items, &options, one_group, reads_like(&model.settings))
        .map_err(|error| asking_for_pairs(error, model))?;
    expect_features(&gathered.timed, model.features(), items.unwrap_or(file))?;
    Ok(gathered)
}

/// Where a model that compares gets a file without pairs: says what to give it.
pub(crate) fn asking_for_pairs(error: Error, model: &Model) -> Error {
    let none = match error.code() {
        Code::NoSuchColumn => error.message().starts_with("a table of pairs needs"),
        Code::UnknownFormat => error.message().starts_with("pairs are a table"),
        _ => false,
    };
    if !none || model.decoder.threshold().is_none() {
        return error;
    }
    let pairs = match Reading::of(model).is_ok_and(|reading| reading.items_are_features) {
        true => "a table of pairs with columns `left`, `right` and `outcome`, which name items",
        false => {
            "a table of pairs, with both items in a row as columns `left.NAME` and `right.NAME`, or with columns `left` and \
             `right` that name rows of --items FILE; and `outcome`, unless it is to be predicted"
        }
    };
    error.help(format!("the model compares, so give {pairs}; `maxmargin rank-items` scores single items"))
}

/// New data may have fewer features than were learned from, but not more.
pub(crate) fn expect_features(timed: &Timed, known: usize, file: &str) -> Result<()> {
    let found = timed.loaded.data.cols();
    if found <= known {
        return Ok(());
    }
    Err(Error::new(
        Code::TooManyFeatures,
        format!("the data have {}, and the model knows {known}", format::counted(found as u64, "feature", "features")),
    )
    .in_file(file)
    .help("score data made like the training data; `maxmargin inspect MODEL` shows what the model knows"))
}

/// Reads a model file.
pub(crate) fn load_model(file: &str) -> Result<Model> {
    let bytes = maxmargin_io::read_whole(file)?;
    Model::from_bytes(&bytes).map_err(|error| {
        let advised = error.remedy().is_some();
        let error = error.in_file(file);
        if advised { error } else { error.help("a model file is what `maxmargin train … -o MODEL` writes") }
    })
}

/// Refuses to write a result over what it is made from: a slip that would cost the user data or model.
pub(crate) fn ensure_apart(output: &str, inputs: &[&str]) -> Result<()> {
    let real = |file: &str| std::fs::canonicalize(file).ok().filter(|path| path.is_file());
    match real(output) {
        Some(path) if inputs.iter().any(|input| real(input).as_ref() == Some(&path)) => {
            Err(Error::new(Code::OutputUnwritable, format!("`{output}` is read here, and would be replaced"))
                .in_file(output)
                .help("name another file for the output"))
        }
        _ => Ok(()),
    }
}

/// Refuses to put data and the one JSON object on the same standard output.
pub(crate) fn refuse_json(console: &Console) -> Result<()> {
    if !console.json() {
        return Ok(());
    }
    Err(Error::new(Code::Usage, "--json needs standard output, which the data would go to")
        .help("write the data to a file with -o FILE"))
}

/// Refuses to write two results to one file.
pub(crate) fn ensure_different(outputs: &[Option<&String>]) -> Result<()> {
    // Files that do not exist yet are the same where their folder and name are.
    let place = |file: &str| {
        let path = Path::new(file);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (std::fs::canonicalize(folder).ok(), path.file_name().map(ToOwned::to_owned))
    };
    let named: Vec<&String> = outputs.iter().copied().flatten().collect();
    let twice =
        named.iter().enumerate().find(|(at, output)| named[..*at].iter().any(|other| place(other) == place(output)));
    match twice {
        Some((_, output)) => Err(Error::new(Code::OutputUnwritable, format!("`{output}` is named for two results"))
            .in_file(output.as_str())
            .help("name a file for each")),
        None => Ok(()),
    }
}

/// The files that a command reads, to notice that somebody changed one meanwhile.
pub(crate) struct Stamps<'a>(Vec<(&'a String, Stamp)>);

impl<'a> Stamps<'a> {
    pub(crate) fn of(files: [Option<&'a String>; 2]) -> Stamps<'a> {
        Stamps(files.into_iter().flatten().map(|file| (file, Stamp::of(file))).collect())
    }

    /// An error where one of them is another one now.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.iter().try_for_each(|(file, stamp)| stamp.check(file))
    }
}

/// The size and time of a file, to notice that somebody changed it while it was read: a mapped file is read all along.
pub(crate) struct Stamp(Option<(u64, std::time::SystemTime)>);

impl Stamp {
    pub(crate) fn of(file: &str) -> Stamp {
        let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file);
        Stamp(metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?))))
    }

    /// An error where the file is another one now.
    pub(crate) fn check(&self, file: &str) -> Result<()> {
        if self.0.is_none() || Stamp::of(file).0 == self.0 {
            return Ok(());
        }
        Err(Error::new(Code::FileShrank, "the file was changed while it was read; nothing was saved")
            .in_file(file)
            .help("keep data files unchanged while a command reads them, then run it again"))
    }
}

/// Says what was found in a file: `train.txt   svmlight, 1-based · 9,630 rows × 46 features · …`.
pub(crate) fn describe(console: &Console, timed: &Timed, extra: &[String]) {
    let Timed { loaded: Loaded { data, facts }, seconds } = timed;
    let mut extra = extra.to_vec();
    if extra.is_empty() {
        extra.extend(data.groups().map(|groups| format::counted(groups.len() as u64, "query", "queries")));
    }
    describe_facts(console, facts, data.rows() as u64, data.cols(), &extra, *seconds);
    tracing::info!(layout = data.matrix().layout(), bytes = data.matrix().bytes(), "stored");
}

/// The same for data that were read block by block.
pub(crate) fn describe_blocks(console: &Console, found: &Found, seconds: f64) {
    let queries = found.groups.map(|groups| format::counted(groups, "query", "queries"));
    describe_facts(console, &found.facts, found.rows, found.cols, queries.as_slice(), seconds);
}

/// The same, said of figures.
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
    for note in &facts.notes {
        console.say(&format!("   {note}"));
    }
}

fn source(facts: &Facts) -> String {
    let mut words = Vec::new();
    words.extend(facts.format.map(|format| format.to_string()));
    words.extend(facts.compression.map(str::to_string));
    words.extend(facts.index_base.map(|base| format!("{base}-based")));
    words.join(", ")
}
