//! `maxmargin inspect MODEL`

use crate::args::InspectArguments;
use crate::clicks::inspected;
use crate::codes;
use crate::commands::train::{cuts_sentence, named_weights, regularisation, ties_sentence};
use crate::console::Console;
use crate::format;
use crate::label_sets;
use crate::sequences::{Shared, features_by_output, line, size_of};
use maxmargin::data::Labels;
use maxmargin::error::Result;
use maxmargin::model::{Decoder, Mapped, Model, Scorer};
use maxmargin::settings::{Method, Solver};
use maxmargin::solve::Witness;
use maxmargin_io::{Reading, SettingsFile, load_model};
use serde_json::{Value, json};

pub(crate) fn run(arguments: &InspectArguments, console: &Console) -> Result<()> {
    let model = load_model(&arguments.model)?;
    if arguments.settings {
        let settings = SettingsFile::of(&model)?;
        if console.json() {
            return console.object(|| json!(settings));
        }
        let toml = settings.to_toml()?;
        return console.write(|out| out.write_all(toml.as_bytes()));
    }
    let mut weights = named_weights(&model);
    let non_zero = weights.len();
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    weights.truncate(arguments.top);
    let shared = Shared::of(&model);
    if console.json() {
        return console.object(|| {
            let mut object = as_json(&model, non_zero, &weights);
            if let Some(shared) = &shared {
                object["shared"] = shared.as_json(arguments.top);
                object["by_tag"] = features_by_output(&model, base_of(&model), arguments.top)
                    .into_iter()
                    .map(|(tag, named)| {
                        let named =
                            named.into_iter().map(|(name, weight)| json!({ "feature": name, "weight": weight }));
                        (tag, json!(named.collect::<Vec<Value>>()))
                    })
                    .collect::<serde_json::Map<String, Value>>()
                    .into();
            }
            object
        });
    }
    for (name, value) in rows(&model, non_zero) {
        console.print(&format!("{name:<14}  {value}"))?;
    }
    for line in model.output_code().iter().flat_map(codes::table) {
        console.print(&line)?;
    }
    if model.scorer.weights().is_none() {
        return Ok(());
    }
    if let Some(shared) = &shared {
        return show_sequences(console, &model, shared, arguments.top);
    }
    show_weights(console, non_zero, &weights)
}

/// Weights that belong to no feature, and the features of each tag.
fn show_sequences(console: &Console, model: &Model, shared: &Shared, top: usize) -> Result<()> {
    for list in &shared.lists {
        console.print(&format!("{:<14}  {}", list.title, line(&list.named, top.min(OF_A_TAG))))?;
    }
    let of = if model.decoder.tags().is_some() { "tag" } else { "tag and border of phrases" };
    console.print(&format!("\nfeatures with the largest weights of each {of}"))?;
    for (output, named) in features_by_output(model, base_of(model), top.min(OF_A_TAG)) {
        console.print(&format!("  {:<12}  {}", format::shortened(&output, 12), line(&named, OF_A_TAG)))?;
    }
    Ok(())
}

/// Weights on a line.
const OF_A_TAG: usize = 5;

/// The number of bits of the columns that names are hashed into.
fn hash_of(model: &Model) -> Option<u32> {
    Reading::of(model).ok().and_then(|reading| reading.read.hash)
}

/// The number of the first feature, if features have no names.
fn base_of(model: &Model) -> usize {
    if hash_of(model).is_some() {
        return 0;
    }
    usize::from(Reading::of(model).ok().and_then(|reading| reading.index_base).unwrap_or(1))
}

fn as_json(model: &Model, non_zero: usize, weights: &[(String, f64)]) -> Value {
    let certificate = &model.certificate;
    let soft = !model.settings.is_hard_margin();
    json!({
        "task": model.settings.task.name(),
        "version": model.version,
        "features": model.features(),
        "hash": hash_of(model),
        "non_zero_weights": non_zero,
        "intercept": model.scorer.intercept(),
        "intercepts": (model.scorer.outputs() > 1).then(|| model.scorer.intercepts()),
        "classes": classes(model),
        "code": model.output_code().as_ref().map(codes::as_json),
        "probabilities": model.calibration.as_ref().map(|calibration| json!({
            "method": calibration.method,
            "folds": calibration.folds,
            "rows": calibration.rows,
            "left_out": calibration.left_out,
        })),
        "labels": model.decoder.label_sets().map(|(labels, _)| labels.names()),
        "threshold": model.decoder.threshold(),
        "cuts": model.decoder.cuts().map(|(cuts, _)| cuts),
        "ranks": model.decoder.cuts().and_then(|(_, ranks)| ranks.values()),
        "objective": certificate.objective,
        "lower_bound": certificate.lower_bound,
        "gap": certificate.gap(),
        "converged": certificate.converged,
        "constraints": certificate.constraints,
        "passes": certificate.passes,
        "solver": certificate.solver.map(Solver::name),
        "c": soft.then_some(certificate.c),
        "lambda": soft.then_some(certificate.lambda),
        "pairs": certificate.pairs,
        "rows": certificate.rows,
        "data_hash": format!("{:016x}", certificate.data_hash),
        "settings": serde_json::to_value(&model.settings).unwrap_or_default(),
        "kernel": match &model.scorer {
            Scorer::Linear { .. } => Value::Null,
            Scorer::Expansion(expansion) => json!({ "kernel": expansion.kernel, "vectors": expansion.count() }),
            Scorer::Mapped(Mapped { map, .. }) => json!({
                "kernel": map.kernel(),
                "approximate": model.settings.kernel.approximate,
                "mapped_features": map.features(),
            }),
        },
        "clicks": Reading::of(model).ok().and_then(|reading| reading.clicks),
        "weights": weights.iter().map(|(name, weight)| json!({ "feature": name, "weight": weight })).collect::<Vec<_>>(),
    })
}

/// The lines to show, each a name and a value.
fn rows(model: &Model, non_zero: usize) -> Vec<(&'static str, String)> {
    let (settings, certificate) = (&model.settings, &model.certificate);
    let features = format::count(model.features() as u64);
    let mut rows = vec![
        ("task", settings.task.name().to_string()),
        ("trained by", format!("maxmargin {}", model.version)),
        (
            "features",
            match &model.scorer {
                Scorer::Linear { outputs, .. } if *outputs > 1 => {
                    let of = match &model.decoder {
                        Decoder::Sequence { .. } => "tags",
                        Decoder::Sets { .. } => "labels",
                        Decoder::Tree { .. } => "tags and borders",
                        _ => "classes",
                    };
                    format!("{features}, {} in all {of}", format::counted(non_zero as u64, "weight", "weights"))
                }
                Scorer::Linear { .. } => format!("{features}, {} with a weight", format::count(non_zero as u64)),
                Scorer::Expansion(_) | Scorer::Mapped(_) => features,
            },
        ),
    ];
    if let Some(bits) = hash_of(model) {
        rows.push(("names", format!("hashed into {} columns", format::count(1 << bits))));
    }
    if let Some(classes) = model.decoder.classes() {
        let (negative, positive) = (&classes.negative, &classes.positive);
        rows.push(("classes", format!("`{positive}` where the score is positive, else `{negative}`")));
    }
    if let Some(labels) = model.decoder.labels() {
        rows.push(("classes", listed(labels)));
    }
    if let Some((labels, calibrated)) = model.decoder.label_sets() {
        rows.push(("labels", label_sets::listed(labels, calibrated)));
    }
    if let Some(tags) = model.decoder.tags() {
        rows.push(("tags", tags_listed(tags)));
    }
    rows.extend(model.decoder.grammar().map(|grammar| ("grammar", size_of(grammar))));
    rows.extend(model.output_code().iter().flat_map(codes::rows));
    if let Some((cuts, ranks)) = model.decoder.cuts() {
        rows.push(("cuts", cuts_sentence(cuts, ranks)));
    }
    if let Some(threshold) = model.decoder.threshold() {
        rows.extend(settings.method().map(|method| ("method", method.name().to_string())));
        rows.push(("ties", ties_sentence(model, threshold)));
    }
    if let Some(intercept) = model.scorer.intercept() {
        rows.push(("intercept", format::significant(intercept, 6)));
    } else if !model.scorer.intercepts().is_empty() {
        let each = match &model.decoder {
            Decoder::Code(_) => "column",
            Decoder::Sets { .. } => "label",
            _ => "class",
        };
        rows.push(("intercept", format!("one for each {each}")));
    }
    rows.extend(kernel_rows(model));
    if let Some(clicks) = Reading::of(model).ok().and_then(|reading| reading.clicks) {
        rows.extend(inspected(&clicks));
    }
    let cost = regularisation(model);
    let loss = match settings.method().filter(|method| method.is_rating()) {
        Some(Method::BradleyTerry) => "likelihood of the outcomes",
        // The other ratings minimise nothing.
        Some(_) => "none",
        None if settings.is_hard_margin() => "none",
        None => settings.loss.name(),
    };
    rows.push(("loss", format!("{loss}, {cost}")));
    rows.extend(probabilities(model).map(|told| ("probabilities", told)));
    rows.push(("scaling", settings.scale.name().to_string()));
    let minimised = !settings.is_rating() || certificate.lower_bound.is_some();
    let objective = format::significant(certificate.objective, 8);
    let told = if minimised { objective } else { format!("{objective}, the share of pairs predicted wrongly") };
    rows.push(("objective", told));
    rows.push((
        "lower bound",
        certificate.lower_bound.map_or("none".to_string(), |bound| format::significant(bound, 8)),
    ));
    let state = if certificate.converged { "converged" } else { "NOT converged" };
    let passes = format::counted(certificate.passes, "pass", "passes");
    rows.push((
        "gap",
        match certificate.gap() {
            Some(gap) => format!("{}, {state} after {passes}", format::gap(gap)),
            None => format!("unknown, after {passes}"),
        },
    ));
    rows.push(("proof", proof(model).to_string()));
    rows.push(("training data", training_data(model)));
    rows
}

/// Where probabilities come from, if there are any.
fn probabilities(model: &Model) -> Option<String> {
    let Some(calibration) = &model.calibration else {
        return model.has_probabilities().then(|| "those of the logistic loss".to_string());
    };
    let (method, rows) = (calibration.method.name(), format::counted(calibration.rows, "row", "rows"));
    let left_out = match calibration.left_out {
        0 => String::new(),
        one => format!(
            "; {} of a class that no other fold has",
            format::counted(one, "row is left out:", "rows are left out:")
        ),
    };
    Some(format!("{method}, fitted on {rows} of {} held-out folds{left_out}", calibration.folds))
}

/// The lines about a kernel.
fn kernel_rows(model: &Model) -> Vec<(&'static str, String)> {
    match &model.scorer {
        Scorer::Linear { .. } => Vec::new(),
        Scorer::Expansion(expansion) => {
            let vectors = format::count(expansion.count() as u64);
            let vectors = match (&model.compacted, model.settings.kernel.budget) {
                (Some(compacted), _) => format!("{vectors}, compacted from {}", format::count(compacted.vectors)),
                (None, Some(budget)) => format!("{vectors} of a budget of {}", format::count(u64::from(budget))),
                (None, None) => vectors,
            };
            vec![("kernel", format::kernel(&expansion.kernel, true)), ("vectors", vectors)]
        }
        Scorer::Mapped(Mapped { map, .. }) => {
            vec![("kernel", format!("{}, by {}", format::kernel(&map.kernel(), true), format::feature_map(map)))]
        }
    }
}

/// A description of the training data.
fn training_data(model: &Model) -> String {
    let certificate = &model.certificate;
    if let Some(progress) = model.progress() {
        let ties = model.compared().map(|compared| format::counted(compared.ties(), "tie", "ties"));
        let error = progress.metrics.first().map(|metric| (metric.name, metric.all.unwrap_or(0.0)));
        return format!(
            "a stream of {}{}, progressive {}",
            format::counted(progress.examples, progress.unit.0, progress.unit.1),
            ties.map_or(String::new(), |ties| format!(", {ties}")),
            error.map_or(String::new(), |(name, value)| format!("{name} {}", format::fixed(value, 4))),
        );
    }
    let data = match certificate.pairs {
        None => format::counted(certificate.rows, "row", "rows"),
        Some(pairs) => format!(
            "{} of {}",
            format::counted(pairs, "pair", "pairs"),
            format::counted(certificate.rows, "item", "items")
        ),
    };
    let constraints = format::counted(certificate.constraints, "constraint", "constraints");
    format!("{data}, {constraints}, hash {:016x}", certificate.data_hash)
}

fn show_weights(console: &Console, non_zero: usize, weights: &[(String, f64)]) -> Result<()> {
    if weights.is_empty() {
        return console.print("\nall weights are zero");
    }
    console.print(&format!("\nlargest weights ({} of {})", weights.len(), format::count(non_zero as u64)))?;
    let width = weights.iter().map(|(name, _)| name.chars().count().min(48)).max().unwrap_or(0);
    let largest = weights[0].1.abs();
    let values = format::alike(&weights.iter().map(|(_, weight)| *weight).collect::<Vec<_>>(), 5);
    let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
    for ((name, weight), value) in weights.iter().zip(values) {
        let bar = "█".repeat((weight.abs() / largest * 24.0).round() as usize);
        let sign = if *weight < 0.0 { "−" } else { "+" };
        console.print(&format!("  {:<width$}  {value:>value_width$}  {sign}{bar}", format::shortened(name, 48)))?;
    }
    Ok(())
}

/// The labels that scores stand for: the negative and the positive one, or those of several classes in their order.
fn classes(model: &Model) -> Option<Vec<&str>> {
    match (model.decoder.classes(), model.decoder.labels().or(model.decoder.tags())) {
        (Some(classes), _) => Some(vec![&classes.negative, &classes.positive]),
        (None, labels) => labels.map(|labels| labels.names().iter().map(String::as_str).collect()),
    }
}

/// `4: `B-NP`, `I-NP`, …`
fn tags_listed(tags: &Labels) -> String {
    const SHOWN: usize = 12;
    let names = tags.names().iter().take(SHOWN).map(|name| format!("`{}`", format::shortened(name, 24)));
    let more = if tags.len() > SHOWN { ", …" } else { "" };
    format!("{}: {}{more}", format::count(tags.len() as u64), names.collect::<Vec<_>>().join(", "))
}

/// `4, the one with the largest score: `a`, `b`, …`
fn listed(labels: &Labels) -> String {
    const SHOWN: usize = 6;
    let names = labels.names().iter().take(SHOWN).map(|name| format!("`{}`", format::shortened(name, 24)));
    let more = if labels.len() > SHOWN { ", …" } else { "" };
    let count = format::count(labels.len() as u64);
    format!("{count}, the one with the largest score: {}{more}", names.collect::<Vec<_>>().join(", "))
}

fn proof(model: &Model) -> &'static str {
    if model.compacted.is_some() {
        "belongs to the model before it was compacted"
    } else if model.online.is_some() {
        "none: the stream was not stored, so nothing can be recomputed"
    } else if model.settings.is_rating() && model.certificate.lower_bound.is_some() {
        "the pairs suffice; `maxmargin verify` rates them again and recomputes the bound"
    } else if model.settings.is_rating() {
        "ratings have no bound; `maxmargin verify` rates the pairs again"
    } else if model.certificate.lower_bound.is_none() {
        "the solver proves no bound; `maxmargin verify` recomputes the objective"
    } else if let Some(Witness::Cuts(_)) = &model.witness {
        "cuts stored; `maxmargin verify` recomputes the bound"
    } else if let Some(Witness::Columns(_)) = &model.witness {
        "stored for each column; `maxmargin verify` recomputes the bound"
    } else if let Some(Witness::Rounded(_)) = &model.witness {
        "the weights and a width suffice; `maxmargin verify` recomputes the bound"
    } else if model.witness.is_some() {
        "dual variables stored; `maxmargin verify` recomputes the bound"
    } else if model.proved_by_weights() && matches!(model.scorer, Scorer::Expansion(_)) {
        "the vectors suffice; `maxmargin verify` recomputes the bound"
    } else if model.proved_by_weights() {
        "the weights suffice; `maxmargin verify` recomputes the bound"
    } else {
        "saved without its witness; `maxmargin verify` can check the objective only"
    }
}
