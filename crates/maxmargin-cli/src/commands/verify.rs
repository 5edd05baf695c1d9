//! `maxmargin verify MODEL FILE`

use crate::args::VerifyArguments;
use crate::clicks::{ClickArguments, gather_clicks};
use crate::commands::train::proven;
use crate::console::Console;
use crate::format;
use crate::loading::describe_gathered;
use crate::preferences::Preferences;
use maxmargin::data::hold_out;
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin_io::{Reading, gather_for, load_model, scoring_options};
use serde_json::json;

/// Explains an error if a part was held out: data that cannot be split again are not the training data, and the counts
/// are those of the remaining part.
fn without_held_out(error: Error, fraction: Option<f64>) -> Error {
    let Some(fraction) = fraction else { return error };
    let message = match error.code() {
        Code::TooFewToSplit => format!("these are not the data the model was trained on: {}", error.raw_message()),
        Code::OtherData => error.raw_message().to_string(),
        _ => return error,
    };
    let share = format::significant(100.0 * fraction, 3);
    Error::new(Code::OtherData, message).help(format!(
        "give `verify` the file that the model was trained on, read with the same settings; {share} % of it was held \
         out in training, and `verify` leaves that part out too"
    ))
}

pub(crate) fn run(arguments: &VerifyArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let model = load_model(&arguments.model)?;
    let (read, format) = (arguments.data.read()?, arguments.data.input_format);
    let gathered = match (Reading::of(&model)?.clicks, arguments.clicks.is_empty()) {
        (Some(known), false) => {
            let (options, one_group) = scoring_options(&model, &read, format, cancel)?;
            let clicks = ClickArguments { clicks: arguments.clicks.clone(), ..ClickArguments::default() };
            gather_clicks(console, &clicks, &arguments.file, &options, Some(known), one_group)?.gathered
        }
        (Some(_), true) => {
            return Err(Error::new(Code::OtherData, "the model was trained on a log of clicks, and none is given")
                .in_file(&arguments.file)
                .help("give the features and the log: maxmargin verify MODEL FILE --clicks LOG"));
        }
        (None, false) => {
            return Err(Error::new(Code::OtherData, "the model was not trained on a log of clicks")
                .in_file(&arguments.clicks[0])
                .help("leave --clicks out"));
        }
        (None, true) => {
            let gathered = gather_for(&model, &arguments.file, arguments.items.as_deref(), &read, format, cancel)?;
            describe_gathered(console, &gathered, Preferences::of(&gathered.timed.loaded.data).as_ref(), &[]);
            gathered
        }
    };
    let at_file = |error: maxmargin::Error| error.in_file(&arguments.file);
    let unchanged = gathered.timed.loaded.facts.stamps;
    let mut data = gathered.timed.loaded.data;
    // The part that was held out of the training file is held out again. The split depends only on the data and the
    // seed. Rows and pairs are split differently, so data of the wrong kind are not split; the error is reported below.
    let same_kind = model.certificate.pairs.is_some() == data.pairs().is_some();
    let fraction = Reading::of(&model)?.holdout.filter(|_| same_kind);
    if let Some(fraction) = fraction {
        data = hold_out(&data, fraction, model.settings.seed)
            .map_err(|error| at_file(without_held_out(error, Some(fraction))))?
            .0;
    }
    let found = model.verify_until(&data, cancel).map_err(|error| at_file(without_held_out(error, fraction)));
    // A disagreement may come from another process that changed the file.
    let found = unchanged.check().and(found)?;
    let claimed = &model.certificate;
    console.object(|| {
        json!({
            "agrees": true,
            "objective": found.objective,
            "lower_bound": found.lower_bound,
            "gap": found.gap(),
            "claimed": { "objective": claimed.objective, "lower_bound": claimed.lower_bound, "gap": claimed.gap() },
            "unproved": found.unproved,
        })
    })?;
    if console.talks() {
        let real = |value: f64| format::significant(value, 12);
        console.show(&format!("{:<13}{:>22}{:>22}", "", "recomputed", "in the model"))?;
        console.show(&format!("{:<13}{:>22}{:>22}", "objective", real(found.objective), real(claimed.objective)))?;
        let or_none = |value: Option<f64>| value.map_or("none".to_string(), real);
        console.show(&format!(
            "{:<13}{:>22}{:>22}",
            "lower bound",
            or_none(found.lower_bound),
            or_none(claimed.lower_bound)
        ))?;
        let gap = |value: Option<f64>| value.map_or("unknown".to_string(), format::gap);
        console.show(&format!("{:<13}{:>22}{:>22}", "gap", gap(found.gap()), gap(claimed.gap())))?;
    }
    match (found.unproved, found.gap()) {
        (Some(why), _) => console.show(&format!("the objective agrees; the bound is not proved: {why}")),
        (None, Some(gap)) if gap >= 1.0 => {
            console.show("the certificate holds, but its lower bound is only 0: train for more passes")
        }
        (None, Some(gap)) => console.show(&format!("the certificate holds: {}", proven(gap))),
        (None, None) => console.show("the objective agrees; the model claims no bound"),
    }
}
