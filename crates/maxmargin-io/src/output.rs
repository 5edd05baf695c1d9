//! The content of a table of a [`Dataset`] in any format: the names of its columns and the order of its rows.

use crate::columns::{GROUP_NAMES, ID_NAMES, TARGET_NAMES, WEIGHT_NAMES};
use maxmargin::data::{Dataset, Targets};
use std::borrow::Cow;
use std::collections::HashSet;

/// The column names of a table of these data: target, group, weight and id if they are known, then the features. If a
/// feature already has such a name, another common name is used.
pub(crate) fn column_names(data: &Dataset) -> (Vec<String>, Vec<String>) {
    let features: Vec<String> = match data.feature_names() {
        Some(names) => names.iter().map(|name| name.into_owned()).collect(),
        None => (1..=data.cols()).map(|feature| format!("f{feature}")).collect(),
    };
    let taken: HashSet<&str> = features.iter().map(String::as_str).collect();
    let free = |names: &[&str]| -> String {
        let free = names.iter().find(|name| !taken.contains(**name));
        free.map_or_else(|| format!("{}_of_row", names[0]), ToString::to_string)
    };
    let mut roles = Vec::new();
    if !matches!(data.targets(), Targets::Absent) {
        roles.push(free(TARGET_NAMES));
    }
    if data.groups().is_some() {
        roles.push(free(GROUP_NAMES));
    }
    if data.weights().is_some() {
        roles.push(free(WEIGHT_NAMES));
    }
    if data.row_ids().is_some() {
        roles.push(free(ID_NAMES));
    }
    (roles, features)
}

/// The stored rows in input order.
pub(crate) fn rows_in_input_order(data: &Dataset) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..data.rows()).collect();
    if data.input_order().is_some() {
        rows.sort_by_key(|&row| data.input_row(row));
    }
    rows
}

/// The group of a stored row.
pub(crate) fn group_name(data: &Dataset, row: usize) -> Cow<'_, str> {
    data.groups().map_or("".into(), |groups| {
        let after = groups.starts().partition_point(|&start| start <= row as u64);
        groups.names().get(after.saturating_sub(1))
    })
}

/// The labels of a row as one text, joined with commas.
pub(crate) fn label_text(targets: &Targets, row: usize) -> String {
    match targets {
        Targets::Absent => String::new(),
        Targets::Real(values) => values[row].to_string(),
        Targets::Labels { names, codes } => names.get(codes[row] as usize).into_owned(),
        Targets::Sets { names, starts, codes } => {
            let labels = &codes[starts[row] as usize..starts[row + 1] as usize];
            labels.iter().map(|&code| names.get(code as usize)).collect::<Vec<_>>().join(",")
        }
    }
}
