//! Held-out data that a stream is judged by.

use crate::args::LearnArguments;
use crate::commands::evaluate;
use crate::console::Console;
use crate::loading::describe;
use maxmargin::error::{Code, Error, Result};
use maxmargin::metric::Metric;
use maxmargin::model::Model;
use maxmargin::settings::{Settings, Task};
use maxmargin::stream::Judge;
use maxmargin_io::{ModelFeatures, ReadOptions, input_of, load, options_for};

/// The judge of a stream, and the name of its metric.
pub(super) struct HeldOut {
    pub(super) judge: Judge<'static>,
    pub(super) metric: String,
}

/// Reads the held-out data, if there are any, with the options of the stream. The columns of a stream are then matched to
/// theirs by name. `pairs` says whether pairs name items.
pub(super) fn held_out(
    arguments: &LearnArguments,
    settings: &Settings,
    options: &mut ReadOptions,
    (pairs, one_group): (bool, bool),
    console: &Console,
) -> Result<Option<HeldOut>> {
    let Some(file) = &arguments.validation else { return Ok(None) };
    if pairs {
        let message = "pairs that name items are judged by their own stream";
        return Err(Error::new(Code::BadSetting, message).help("leave ⟦validation⟧ out"));
    }
    let input = input_of(settings);
    let known = options.features.as_ref().and_then(|features| features.index_base);
    // As in the stream, unless the index base is given, column j is the feature with index j.
    let index_base = options.index_base.or(known).or(Some(0));
    let timed = load(file, &options_for(&ReadOptions { index_base, ..options.clone() }, input), one_group)?;
    describe(console, &timed, &[]);
    let data = timed.loaded.data;
    if let (None, Some(names)) = (&options.features, data.feature_names()) {
        let names = names.iter().map(|name| name.into_owned()).collect();
        options.features = Some(ModelFeatures { count: data.cols(), names: Some(names), index_base: None });
    }
    let metric = match (&arguments.metric, settings.task.task()) {
        (Some(name), _) => Metric::parse(name.trim())?,
        (None, Task::Classify) => Metric::parse("accuracy")?,
        (None, Task::Multilabel) => Metric::parse("label-ranking-average-precision")?,
        (None, Task::Ordinal) => Metric::Mae,
        (None, _) => {
            let usual = evaluate::metrics(&[], input, data.pairs().is_some())?.into_iter().next();
            usual.ok_or_else(|| Error::new(Code::Internal, "the task has no usual metric"))?
        }
    };
    evaluate::check_metrics(settings, &data, &data, std::slice::from_ref(&metric))
        .map_err(|error| error.in_file(file))?;
    let (name, higher_is_better, features) = (file.clone(), metric.higher_is_better(), data.cols());
    let said = metric.to_string();
    let measure = move |model: &Model| evaluate::value(model, &data, &metric).map_err(|error| error.in_file(&name));
    Ok(Some(HeldOut { judge: Judge { measure: Box::new(measure), higher_is_better, features }, metric: said }))
}
