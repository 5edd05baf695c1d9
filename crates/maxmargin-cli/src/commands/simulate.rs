//! `maxmargin simulate KIND -o FILE`

use crate::args::{SimulateArguments, SimulateKind};
use crate::console::Console;
use crate::format;
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin::simulate::{
    ComparisonSettings, Comparisons, Generator, Pattern, Search, SearchSettings, Tagged, TaggedSettings, Text,
    TextSettings,
};
use maxmargin_io::atomic::ensure_writable;
use maxmargin_io::svmlight::{SvmlightWriteOptions, write_blocks};
use maxmargin_io::{Facts, Format, Loaded, output_format, write, write_text_file};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(arguments: &SimulateArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    if arguments.kind == SimulateKind::Clicks {
        refuse_misplaced(arguments)?;
        return super::simulate_clicks::run(arguments, console, cancel);
    }
    let to = output_format(&arguments.output, arguments.to)?;
    ensure_writable(Path::new(&arguments.output))?;
    refuse_misplaced(arguments)?;
    let start = Instant::now();
    if arguments.kind == SimulateKind::Compare {
        let defaults = ComparisonSettings::default();
        let comparisons = Comparisons::new(ComparisonSettings {
            pairs: arguments.pairs.unwrap_or(defaults.pairs),
            features: arguments.features.unwrap_or(defaults.features),
            ties: arguments.ties.unwrap_or(defaults.ties),
            pattern: arguments.norm.unwrap_or(defaults.pattern),
            placed: arguments.placed.unwrap_or(defaults.placed),
            noise: arguments.noise.unwrap_or(defaults.noise),
            seed: arguments.seed,
            stream: u64::from(arguments.stream),
        })?;
        let data = comparisons.to_dataset()?;
        cancel.check()?;
        write(&Loaded { data, facts: Facts::default() }, &arguments.output, to, cancel)?;
        return say(arguments, console, to, comparisons.settings().features, start.elapsed().as_secs_f64());
    }
    if arguments.kind == SimulateKind::Multilabel {
        let defaults = TaggedSettings::default();
        let tagged = Tagged::new(TaggedSettings {
            rows: arguments.rows.unwrap_or(defaults.rows),
            features: arguments.features.unwrap_or(defaults.features),
            labels: arguments.labels.unwrap_or(defaults.labels),
            noise: arguments.noise.unwrap_or(defaults.noise),
            seed: arguments.seed,
            stream: u64::from(arguments.stream),
        })?;
        let data = tagged.to_dataset()?;
        cancel.check()?;
        write(&Loaded { data, facts: Facts::default() }, &arguments.output, to, cancel)?;
        return say(arguments, console, to, tagged.settings().features, start.elapsed().as_secs_f64());
    }
    let generator = generator(arguments)?;
    if to == Format::Svmlight {
        let options = SvmlightWriteOptions { cancel: cancel.clone(), ..SvmlightWriteOptions::default() };
        write_text_file(&arguments.output, |out| write_blocks(&*generator, out, &options))?;
    } else {
        let loaded = Loaded { data: generator.to_dataset()?, facts: Facts::default() };
        cancel.check()?;
        write(&loaded, &arguments.output, to, cancel)?;
    }
    say(arguments, console, to, generator.features(), start.elapsed().as_secs_f64())
}

/// Prints what was written, and the next step.
fn say(arguments: &SimulateArguments, console: &Console, to: Format, features: usize, seconds: f64) -> Result<()> {
    let bytes = std::fs::metadata(&arguments.output).map(|metadata| metadata.len()).unwrap_or(0);
    let file = format::shell_word(&arguments.output);
    let next = match arguments.kind {
        _ if arguments.stream > 0 => format!("maxmargin evaluate model.mm {}", file),
        SimulateKind::Search => format!("maxmargin train rank {} -o model.mm", file),
        SimulateKind::Clicks => format!("maxmargin propensity {}", file),
        SimulateKind::Multilabel => format!("maxmargin train multilabel {} -o model.mm", file),
        SimulateKind::Text => format!("maxmargin train classify {} -o model.mm", file),
        SimulateKind::Compare if arguments.norm == Some(Pattern::Linear) => {
            format!("maxmargin train compare {} -o model.mm", file)
        }
        SimulateKind::Compare => format!("maxmargin train compare {} --kernel gaussian -c 100 -o model.mm", file),
    };
    console.say(&format!(
        "wrote {}   {to} · {} · {}          next: {next}",
        arguments.output,
        format::bytes(bytes),
        format::seconds(seconds)
    ));
    console.object(|| json!({ "output": arguments.output, "features": features, "bytes": bytes, "seconds": seconds }))
}

/// Refuses flags that belong to other kinds.
fn refuse_misplaced(arguments: &SimulateArguments) -> Result<()> {
    let (search, text, compare) = ([SimulateKind::Search], [SimulateKind::Text], [SimulateKind::Compare]);
    let multilabel = [SimulateKind::Multilabel];
    let rows = [SimulateKind::Search, SimulateKind::Text, SimulateKind::Multilabel, SimulateKind::Clicks];
    let clicks = [SimulateKind::Clicks];
    let of_clicks = &arguments.clicks;
    let flags: [(&str, bool, &[SimulateKind], &str); 17] = [
        ("--items", of_clicks.items.is_some(), &clicks, "clicks"),
        ("--length", of_clicks.length.is_some(), &clicks, "clicks"),
        ("--user", of_clicks.user.is_some(), &clicks, "clicks"),
        ("--eta", of_clicks.eta.is_some(), &clicks, "clicks"),
        ("--relevant-grade", of_clicks.relevant_grade.is_some(), &clicks, "clicks"),
        ("--trust", of_clicks.trust.is_some(), &clicks, "clicks"),
        ("--swap", of_clicks.swap.is_some(), &clicks, "clicks"),
        ("--policies", of_clicks.policies.is_some(), &clicks, "clicks"),
        ("--labels", arguments.labels.is_some(), &multilabel, "multilabel"),
        ("--nonzeros", arguments.nonzeros.is_some(), &text, "text"),
        ("--queries", arguments.queries.is_some(), &search, "search"),
        ("--docs", arguments.docs.is_some(), &search, "search"),
        (
            "--rows",
            arguments.rows.is_some(),
            &rows,
            "search`, `simulate text`, `simulate multilabel` and `simulate clicks",
        ),
        ("--pairs", arguments.pairs.is_some(), &compare, "compare"),
        ("--norm", arguments.norm.is_some(), &compare, "compare"),
        ("--ties", arguments.ties.is_some(), &compare, "compare"),
        ("--placed", arguments.placed.is_some(), &compare, "compare"),
    ];
    match flags.iter().find(|(_, given, kinds, _)| *given && !kinds.contains(&arguments.kind)) {
        Some((flag, _, _, kind)) => Err(Error::new(Code::BadSetting, format!("{flag} belongs to `simulate {kind}`"))
            .help(format!("leave {flag} out"))),
        None => Ok(()),
    }
}

fn generator(arguments: &SimulateArguments) -> Result<Box<dyn Generator>> {
    Ok(match arguments.kind {
        SimulateKind::Search => {
            let defaults = SearchSettings::default();
            let docs = arguments.docs.unwrap_or(defaults.docs);
            let queries = arguments.rows.map(|rows| rows.div_ceil(docs.max(1) as u64));
            Box::new(Search::new(SearchSettings {
                queries: arguments.queries.or(queries).unwrap_or(defaults.queries),
                docs,
                features: arguments.features.unwrap_or(defaults.features),
                noise: arguments.noise.unwrap_or(defaults.noise),
                seed: arguments.seed,
                stream: u64::from(arguments.stream),
                ..defaults
            })?)
        }
        SimulateKind::Text | SimulateKind::Compare | SimulateKind::Multilabel | SimulateKind::Clicks => {
            let defaults = TextSettings::default();
            let features = arguments.features.unwrap_or(defaults.features);
            Box::new(Text::new(TextSettings {
                rows: arguments.rows.unwrap_or(defaults.rows),
                features,
                // With few features, a row cannot have as many words as the default.
                nonzeros: arguments.nonzeros.unwrap_or(defaults.nonzeros.min(features.div_ceil(2))),
                noise: arguments.noise.unwrap_or(defaults.noise),
                seed: arguments.seed,
                stream: u64::from(arguments.stream),
                ..defaults
            })?)
        }
    })
}
