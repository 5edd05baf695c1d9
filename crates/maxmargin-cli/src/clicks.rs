//! Learning from click logs: the flags, the log joined with features, and what is said about it.

use crate::console::Console;
use crate::flags::named;
use crate::format;
use crate::loading::{describe_facts, say_notes};
use clap::Args;
use maxmargin::clicks::{
    Against, ClickLog, Clipping, Curve, Estimate, Estimator, Joined, Keyed, Propensity, Rule, estimate, learning_lists,
    learning_pairs, reversed_share,
};
use maxmargin::data::{Dataset, Pairs};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin_io::{
    BadCell, ClickReading, Columns, Gathered, Loaded, LoadedClicks, Pairing, ReadOptions, TakeRecords, load,
    read_clicks, read_records,
};
use serde_json::{Value, json};
use std::time::Instant;

/// `train rank --clicks`
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClickArguments {
    /// Learn from clicks: LOG has columns query,session,item,position,clicked[,propensity], as a table or JSON lines; FILE
    /// holds the features of each query and item, or of each item; give it twice for queries and events of UBI
    #[arg(long, value_name = "LOG", help_heading = "Clicks")]
    pub(crate) clicks: Vec<String>,
    /// How likely the place of a click is looked at: `log` (the log's own column), a table with columns
    /// position,propensity, `power:ETA`, or `estimate`, `estimate:swaps`, `estimate:regression-em` [default: log where the
    /// log has them, else power:1]
    #[arg(long, value_name = "log|FILE|power:ETA|estimate", help_heading = "Clicks", requires = "clicks")]
    pub(crate) propensity: Option<String>,
    /// Raise propensities below this to it: fewer clicks decide, but what is shown low is learned as less relevant
    #[arg(long, value_name = "LOWEST", help_heading = "Clicks", requires = "clicks")]
    pub(crate) clip: Option<f64>,
    /// What a clicked result is compared with: the list that was shown, or all rows of its query in FILE [default: shown]
    #[arg(long, help_heading = "Clicks", requires = "clicks", value_parser = named::<Against>(Against::ALL.map(Against::name)))]
    pub(crate) against: Option<Against>,
    /// Learn from preferences that clicks show by this rule, without propensities
    #[arg(long, value_name = "RULE", help_heading = "Clicks", requires = "clicks", conflicts_with_all = ["propensity", "clip", "against"], value_parser = named::<Rule>(Rule::ALL.map(Rule::name)))]
    pub(crate) preferences: Option<Rule>,
    /// With --preferences: prefer each result to the next one shown, by this weight, so that the shown order is not turned
    /// around
    #[arg(long, value_name = "WEIGHT", help_heading = "Clicks", requires = "preferences")]
    pub(crate) keep_order: Option<f64>,
}

impl ClickArguments {
    /// Whether a log is given.
    pub(crate) fn given(&self) -> bool {
        !self.clicks.is_empty()
    }

    /// What a model stores about how it learned from clicks.
    fn reading(
        &self,
        log: &ClickLog,
        features: &Keyed<'_>,
        cancel: &Cancel,
    ) -> Result<(ClickReading, Option<Estimate>)> {
        let mut reading = ClickReading {
            clip: self.clip,
            against: self.against.unwrap_or_default(),
            rule: self.preferences,
            keep_order: self.keep_order.unwrap_or(0.0),
            ..ClickReading::default()
        };
        if self.preferences.is_some() {
            return Ok((reading, None));
        }
        let usual = if log.has_propensities() { "log" } else { "power:1" };
        let wish = self.propensity.as_deref().unwrap_or(usual);
        reading.source = wish.to_string();
        let (propensity, found) = propensity_of(wish, log, Some(features), cancel)?;
        reading.propensity = Some(propensity);
        if let Some(found) = &found {
            reading.intervals = found.positions.iter().map(|place| place.interval).collect();
        }
        Ok((reading, found))
    }
}

/// The propensities that a word names.
fn propensity_of(
    wish: &str,
    log: &ClickLog,
    features: Option<&Keyed<'_>>,
    cancel: &Cancel,
) -> Result<(Propensity, Option<Estimate>)> {
    if wish == "log" {
        return Ok((Propensity::Log, None));
    }
    if let Some(eta) = wish.strip_prefix("power:") {
        let eta: f64 = eta.parse().map_err(|_| {
            Error::new(Code::BadSetting, format!("`{eta}` is not an exponent")).help("write a number, such as power:1")
        })?;
        return Ok((Propensity::Curve(Curve::power(eta, log.positions())?), None));
    }
    if let Some(estimator) = estimator_of(wish) {
        let found = estimate(log, estimator, features, cancel)?;
        return Ok((Propensity::Curve(found.curve()?.0), Some(found)));
    }
    if wish.starts_with("estimate:") {
        let names = Estimator::ALL.map(Estimator::name).join(", ");
        return Err(Error::new(Code::BadSetting, format!("`{wish}` is no way to estimate propensities"))
            .help(format!("write estimate, or estimate: and one of {names}")));
    }
    let curve = read_curve(wish, cancel)?;
    curve.check().map_err(|error| error.in_file(wish))?;
    Ok((Propensity::Curve(curve), None))
}

fn estimator_of(wish: &str) -> Option<Estimator> {
    let name = match wish {
        "estimate" => Estimator::Harvest.name(),
        wish => wish.strip_prefix("estimate:")?,
    };
    Estimator::ALL.into_iter().find(|estimator| estimator.name() == name)
}

/// A table of propensities by position.
#[derive(Default)]
struct CurveTable {
    values: Vec<Option<f64>>,
}

impl TakeRecords for CurveTable {
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>> {
        let find = |wanted: &[&str]| {
            let found = wanted.iter().find_map(|name| names.iter().position(|own| own.eq_ignore_ascii_case(name)));
            found.ok_or_else(|| {
                Error::new(Code::NoSuchColumn, format!("a table of propensities needs a column `{}`", wanted[0]))
                    .help("give columns position and propensity")
            })
        };
        Ok(vec![find(&["position", "rank", "place"])?, find(&["propensity", "examination"])?])
    }

    fn take(&mut self, cells: &[&[u8]], row: Option<usize>) -> std::result::Result<(), BadCell> {
        let text = |at: usize| std::str::from_utf8(cells[at]).unwrap_or_default();
        let at_row = row.map(|row| format!(" in row {row}")).unwrap_or_default();
        let bad = |column: usize, code: Code, expected: &str| BadCell {
            column,
            error: Error::new(code, format!("`{}` is not {expected}{at_row}", text(column)))
                .help("give each position, from 1, and how likely it is looked at"),
            expected: expected.to_string(),
        };
        let place = text(0).parse::<usize>().ok().filter(|place| (1..=1_000_000).contains(place));
        let place = place.ok_or_else(|| bad(0, Code::BadClickLog, "a position from 1"))?;
        // Positions that are not known may stand in the table without a value.
        if cells[1].is_empty() {
            return Ok(());
        }
        let value = text(1).parse::<f64>().ok().filter(|value| *value > 0.0 && *value <= 1.0);
        let value = value.ok_or_else(|| bad(1, Code::BadPropensity, "a probability above 0 and up to 1"))?;
        if self.values.len() < place {
            self.values.resize(place, None);
        }
        self.values[place - 1] = Some(value);
        Ok(())
    }
}

fn read_curve(file: &str, cancel: &Cancel) -> Result<Curve> {
    let mut table = CurveTable::default();
    let options = ReadOptions { cancel: cancel.clone(), ..ReadOptions::default() };
    read_records(file, &options, &mut table).map_err(|error| {
        if error.code() == Code::FileNotFound {
            return error
                .help("--propensity takes log, power:ETA, estimate, or a table with columns position,propensity");
        }
        error
    })?;
    Ok(Curve { values: table.values })
}

/// Data learned from clicks, and what is known about them.
pub(crate) struct Clicked {
    pub(crate) gathered: Gathered,
    pub(crate) reading: ClickReading,
    estimate: Option<Estimate>,
    clipping: Clipping,
    /// The share of preferences that put a result over one shown above it.
    upwards: Option<f64>,
    clicks: u64,
    lists: u64,
    /// Neighbouring results of the shown lists, the upper one first, as rows of the features.
    shown: Option<(Dataset, Pairs)>,
}

/// The column of a table of features that names items, if no other one is named.
pub(crate) const ITEM_COLUMN: &str = "item";

/// Options for a table of features that are joined with a log.
fn feature_options(options: &ReadOptions) -> ReadOptions {
    let id = options.remembered.id.clone().or_else(|| Some(ITEM_COLUMN.to_string()));
    let remembered = Columns { id, ..options.remembered.clone() };
    ReadOptions { pairing: Pairing::None, remembered, ..options.clone() }
}

/// Reads log and features and joins them. A model that learned from clicks says how in `known`.
pub(crate) fn gather_clicks(
    console: &Console,
    arguments: &ClickArguments,
    features_file: &str,
    options: &ReadOptions,
    known: Option<ClickReading>,
    one_group: bool,
) -> Result<Clicked> {
    let features = load(features_file, &feature_options(options), one_group)?;
    let start = Instant::now();
    let log_options = ReadOptions { cancel: options.cancel.clone(), ..ReadOptions::default() };
    let LoadedClicks { log, notes, stamps } = read_clicks(&arguments.clicks, &log_options)?;
    let data = &features.loaded.data;
    let keyed = Keyed::new(data).map_err(|error| error.in_file(features_file))?;
    describe_facts(console, &features.loaded.facts, data.rows() as u64, data.cols(), &[], features.seconds);
    say_log(console, &arguments.clicks.join(" "), &log, &notes, start.elapsed().as_secs_f64());
    let in_log = |error: Error| error.in_file(&arguments.clicks[0]);
    let (reading, found) = match known {
        Some(known) => (known, None),
        None => arguments.reading(&log, &keyed, &options.cancel).map_err(in_log)?,
    };
    let joined =
        match (reading.rule, &reading.propensity) {
            (Some(rule), _) => learning_pairs(&log, &keyed, rule, reading.keep_order),
            (None, Some(propensity)) => learning_lists(&log, &keyed, propensity, reading.clip, reading.against),
            (None, None) => Err(Error::new(Code::DamagedModel, "the model does not say which propensities it used")
                .help("train it again")),
        };
    let Joined { data: learned, unknown, lists, clipping } = joined.map_err(in_log)?;
    if unknown > 0 {
        let what = if reading.rule.is_some() {
            format::counted(unknown, "preference", "preferences")
        } else {
            format::counted(unknown, "shown result", "shown results")
        };
        console.say(&format!("   {what} without features left out"));
    }
    let upwards = reading.rule.map(|rule| reversed_share(&log, rule));
    let shown = neighbours(&log, &keyed)?;
    let (seconds, mut facts) = (features.seconds + start.elapsed().as_secs_f64(), features.loaded.facts.clone());
    facts.stamps.extend(&stamps);
    let timed = maxmargin_io::Timed { loaded: Loaded { data: learned, facts }, seconds };
    let clicked = Clicked {
        gathered: Gathered { timed, items: None },
        reading,
        estimate: found,
        clipping,
        upwards,
        clicks: log.facts().clicks,
        lists,
        shown,
    };
    clicked.say(console)?;
    Ok(clicked)
}

/// Prints what is in a log.
pub(crate) fn say_log(console: &Console, name: &str, log: &ClickLog, notes: &[String], seconds: f64) {
    let facts = log.facts();
    console.say(&format!(
        "{name}   {} · {} · {} · {} · {}",
        format::counted(facts.events, "event", "events"),
        format::counted(facts.impressions, "list shown", "lists shown"),
        format::counted(facts.clicks, "click", "clicks"),
        format::counted(log.queries().len() as u64, "query", "queries"),
        format::seconds(seconds)
    ));
    say_notes(console, notes);
}

/// Most couples of neighbours that are looked at to see whether a model turns the shown order around.
const MOST_NEIGHBOURS: usize = 100_000;

/// Neighbouring results, the upper one first.
fn neighbours(log: &ClickLog, features: &Keyed<'_>) -> Result<Option<(Dataset, Pairs)>> {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    'lists: for list in log.impressions() {
        for pair in log.events()[list].windows(2).filter(|pair| pair[0].position < pair[1].position) {
            let row = |at: usize| features.find(log, pair[at].query, pair[at].item);
            if let Some((above, below)) = row(0).zip(row(1)).filter(|(above, below)| above != below) {
                upper.push(above as u32);
                lower.push(below as u32);
            }
            if upper.len() == MOST_NEIGHBOURS {
                break 'lists;
            }
        }
    }
    if upper.is_empty() { Ok(None) } else { Ok(Some((features.data().clone(), Pairs::new(upper, lower)?))) }
}

/// Above this share of neighbours in the other order, a model has turned the shown order around.
const TURNED: f64 = 0.9;

impl Clicked {
    fn say(&self, console: &Console) -> Result<()> {
        let Clipping { limit, clicks, lost } = self.clipping;
        if let Some(limit) = limit {
            console.say(&format!(
                "   clipping at {} changed {} and took away {} % of the weight of all clicks: what was shown low is learned as \
                 less relevant than it is",
                format::significant(limit, 3),
                format::counted(clicks, "click", "clicks"),
                format::significant(100.0 * lost, 3)
            ));
        }
        if let Some(found) = &self.estimate {
            for line in curve_lines(found)? {
                console.say(&format!("   {line}"));
            }
        }
        if self.upwards == Some(1.0) && self.reading.keep_order == 0.0 {
            console.say(
                "   every preference puts a result over one shown above it: turning the shown order around satisfies them \
                 all; --keep-order WEIGHT guards against that, and --preferences every-unclicked has preferences both ways",
            );
        }
        Ok(())
    }

    /// The share of neighbouring results that a model puts in the other order, and whether that is nearly all.
    pub(crate) fn turned(&self, model: &maxmargin::model::Model) -> Result<Option<(f64, bool)>> {
        let Some((data, pairs)) = &self.shown else { return Ok(None) };
        let scores = model.scores(data)?;
        let turned = (0..pairs.len()).filter(|&at| {
            let (upper, lower) = pairs.ordered(at);
            scores[lower] > scores[upper]
        });
        let share = turned.count() as f64 / pairs.len() as f64;
        Ok(Some((share, share > TURNED)))
    }

    /// For `--json`.
    pub(crate) fn as_json(&self, turned: Option<(f64, bool)>) -> Value {
        json!({
            "clicks": self.clicks,
            "lists": self.lists,
            "propensity": (!self.reading.source.is_empty()).then_some(&self.reading.source),
            "preferences": self.reading.rule.map(Rule::name),
            "clipped_clicks": self.clipping.clicks,
            "clipped_weight": self.clipping.lost,
            "upwards": self.upwards,
            "turned": turned.map(|turned| turned.0),
            "turned_around": turned.map(|turned| turned.1),
            "curve": self.estimate.as_ref().map(curve_json),
        })
    }
}

/// The curve as a list of objects.
pub(crate) fn curve_json(found: &Estimate) -> Value {
    let place = |place: &maxmargin::clicks::PositionEstimate| {
        json!({
            "position": place.position,
            "propensity": place.value,
            "low": place.interval.map(|interval| interval.0),
            "high": place.interval.map(|interval| interval.1),
            "shown": place.shown,
            "clicks": place.clicks,
        })
    };
    found.positions.iter().map(place).collect()
}

/// The curve in words.
pub(crate) fn curve_lines(found: &Estimate) -> Result<Vec<String>> {
    let known: Vec<String> = found
        .positions
        .iter()
        .filter_map(|place| {
            let value = format::significant(place.value?, 3);
            Some(match place.interval {
                Some((low, high)) => format!(
                    "{}: {value} ({} to {})",
                    place.position,
                    format::significant(low, 3),
                    format::significant(high, 3)
                ),
                None => format!("{}: {value}", place.position),
            })
        })
        .take(12)
        .collect();
    let mut lines = vec![
        format!(
            "propensities estimated by {} from {} shown at more than one place",
            found.estimator.name(),
            format::counted(found.moved, "result", "results")
        ),
        format!("position: propensity (95 % interval)   {}", known.join(", ")),
    ];
    let filled = found.curve()?.1;
    if !filled.is_empty() {
        let shown: Vec<String> = filled.iter().take(10).map(u32::to_string).collect();
        lines.push(format!(
            "the log does not tell the propensity of positions {}{}: they take that of the next known place above",
            shown.join(", "),
            if filled.len() > 10 { " and others" } else { "" }
        ));
    }
    Ok(lines)
}

/// Lines for `inspect` about the clicks that a model learned from.
pub(crate) fn inspected(reading: &ClickReading) -> Vec<(&'static str, String)> {
    if let Some(rule) = reading.rule {
        return vec![("clicks", format!("preferences by the rule {}", rule.name()))];
    }
    let clip = reading.clip.map(|clip| format!(", clipped at {}", format::significant(clip, 3))).unwrap_or_default();
    let against = reading.against.name();
    let mut rows = vec![("clicks", format!("propensities from {}{clip}, against {against} results", reading.source))];
    if let Some(Propensity::Curve(curve)) = &reading.propensity {
        let place = |(at, value): (usize, &Option<f64>)| {
            let value = format::significant((*value)?, 3);
            let interval = reading.intervals.get(at).copied().flatten();
            let interval = interval
                .map(|(low, high)| format!(" ({} to {})", format::significant(low, 3), format::significant(high, 3)))
                .unwrap_or_default();
            Some(format!("{}: {value}{interval}", at + 1))
        };
        let known: Vec<String> = curve.values.iter().enumerate().filter_map(place).take(12).collect();
        rows.push(("propensity", known.join(", ")));
    }
    rows
}
