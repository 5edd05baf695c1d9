//! Settings in model files of format 1: flat, with the settings of all tasks at the same level.
//!
//! The conversion is one-way: files of format 1 are read, but only the newest format is written.

use serde_json::{Map, Value, json};

/// Converts settings to the newest format.
pub(crate) fn settings_of_format_1(old: &Value) -> Value {
    let Some(old) = old.as_object() else { return old.clone() };
    let mut new: Map<String, Value> = old.clone();
    let mut take = |name: &str| new.remove(name);
    let kind = take("task").unwrap_or_default();
    let (intercept, online) = (take("intercept"), take("online"));
    let (method, ties) = (take("method"), take("ties-from-grades"));
    let (positive, class_weight) = (take("positive"), take("class-weight"));
    let (pair_weight, pair_weight_as) = (take("pair-weight"), take("pair-weight-as"));
    let kappa = online.as_ref().and_then(|online| online.get("kappa")).cloned();
    let parts: Vec<(&str, Option<Value>)> = match kind.as_str() {
        Some("classify") => vec![("intercept", intercept), ("positive", positive), ("class-weight", class_weight)],
        Some("rank") => vec![("pair-weight", pair_weight), ("pair-weight-as", pair_weight_as)],
        Some("compare") => vec![
            ("method", method),
            // Methods that choose their threshold later had none.
            ("threshold", intercept.filter(|rule| rule != "none")),
            ("pair-weight-as", pair_weight_as),
            ("ties-from-grades", ties),
            ("kappa", kappa),
        ],
        _ => Vec::new(),
    };
    let mut task = Map::from_iter([("kind".to_string(), kind)]);
    task.extend(parts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    // These could be omitted.
    for (name, usual) in [("solver", "auto"), ("scale", "none")] {
        new.entry(name).or_insert_with(|| json!(usual));
    }
    new.insert("task".to_string(), Value::Object(task));
    Value::Object(new)
}

/// Converts a decoder to the newest format.
pub(crate) fn decoder_of_format_1(old: &Value) -> Value {
    match old.get("one-class") {
        Some(classes) => json!({ "border": classes }),
        None => old.clone(),
    }
}
