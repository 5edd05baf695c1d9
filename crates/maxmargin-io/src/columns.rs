//! [`Plan`]: the role of each column of a table. All table formats use it.
//!
//! A column is the target, the group, the weight or the row id if a flag says so or if it has a common name for that.
//! It is ignored if a flag says so. Otherwise it is a feature. A column that is a feature of the model keeps that role,
//! even if its name is a common name for another role.
//!
//! If pairs are expected, a table with columns `better.NAME` and `worse.NAME`, or `left.NAME`, `right.NAME` and
//! `outcome`, has two rows in each line. Only these columns are features: first those of the better or left row, then
//! the same ones of the worse or right row.

use crate::{Columns, Pairing, ReadOptions};
use maxmargin::error::{Code, Error, Result};
use maxmargin::suggest::nearest;
use maxmargin::wording::counted;
use std::collections::{HashMap, HashSet};

/// Names for the target, the usual one first.
pub(crate) const TARGET_NAMES: &[&str] = &["target", "label", "relevance", "grade", "y", "class"];
/// Names for the group.
pub(crate) const GROUP_NAMES: &[&str] =
    &["group", "qid", "query_id", "query", "group_id", "session_id", "session", "queryid"];
/// Names for the weight of a row.
pub(crate) const WEIGHT_NAMES: &[&str] = &["weight", "weights", "sample_weight", "cost"];
/// Names for the id of a row.
pub(crate) const ID_NAMES: &[&str] =
    &["id", "row_id", "rowid", "doc_id", "docid", "document_id", "item_id", "example_id"];

/// Names for the outcome of a comparison.
pub(crate) const OUTCOME_NAMES: &[&str] = &["outcome"];

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Target,
    Group,
    Weight,
    Id,
    Outcome,
    /// Whether rows have the label that the column is named after.
    Label,
    Feature,
    Ignored,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Target => "target",
            Role::Group => "group",
            Role::Weight => "weight",
            Role::Id => "id",
            Role::Outcome => "outcome",
            Role::Label => "label",
            Role::Feature => "feature",
            Role::Ignored => "ignored",
        }
    }
}

/// The role of each column, before the widths of list columns are known.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) names: Vec<String>,
    pub(crate) roles: Vec<Role>,
    pub(crate) notes: Vec<String>,
    /// The columns of labels, in the order in which they are named.
    labels: Vec<usize>,
    /// The prefixes of the two rows of a line, if it holds two.
    sides: Option<Sides>,
    /// The feature names of the model, if there is a model with names.
    #[cfg_attr(not(feature = "tables"), allow(dead_code))]
    model_names: Option<HashSet<String>>,
}

/// One feature and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub(crate) name: String,
    /// The column of the file.
    pub(crate) column: usize,
    /// The position inside the list, if the column holds lists.
    pub(crate) element: Option<usize>,
}

/// The role of each column, and the features in their final order.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) names: Vec<String>,
    pub(crate) target: Option<usize>,
    pub(crate) group: Option<usize>,
    pub(crate) weight: Option<usize>,
    pub(crate) id: Option<usize>,
    pub(crate) outcome: Option<usize>,
    /// The columns that say whether rows have a label.
    pub(crate) labels: Vec<usize>,
    pub(crate) features: Vec<Feature>,
    /// Whether a line holds two rows. The first half of the features then belongs to the first row, the second half to
    /// the second.
    pub(crate) sides: bool,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Number of features of a row: half of the table's if each line holds two items.
    pub(crate) fn features_a_row(&self) -> usize {
        if self.sides { self.features.len() / 2 } else { self.features.len() }
    }
}

/// The prefixes of the two rows of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    BetterWorse,
    LeftRight,
}

impl Sides {
    /// The sides of a table, if lines with two items are possible. Features may also be called `left.eye` and
    /// `right.eye`, so if lines may also hold single rows, a table has pairs only if it has an outcome.
    pub(crate) fn find(names: &[String], options: &ReadOptions) -> Option<Sides> {
        let outcome_needed = match options.pairing {
            Pairing::Sides => true,
            Pairing::Comparisons => false,
            Pairing::None | Pairing::ItemRows | Pairing::Of(_) => return None,
        };
        let has_outcome = names.iter().any(|name| OUTCOME_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)));
        [Sides::BetterWorse, Sides::LeftRight].into_iter().find(|sides| {
            sides.prefixes().iter().all(|side| names.iter().any(|name| name.starts_with(side)))
                && (*sides == Sides::BetterWorse || has_outcome || !outcome_needed)
        })
    }

    /// The prefixes of the columns of the two rows.
    fn prefixes(self) -> [&'static str; 2] {
        match self {
            Sides::BetterWorse => ["better.", "worse."],
            Sides::LeftRight => ["left.", "right."],
        }
    }

    /// The name of a column without its side.
    #[cfg(feature = "tables")]
    fn without(self, name: &str) -> &str {
        self.prefixes().iter().find_map(|side| name.strip_prefix(side)).unwrap_or(name)
    }
}

impl Roles {
    /// Assigns a role to each column.
    pub(crate) fn find(names: Vec<String>, options: &ReadOptions) -> Result<Roles> {
        let mut first_of = HashMap::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            if name.is_empty() {
                continue;
            }
            if let Some(before) = first_of.insert(name.as_str(), column) {
                return Err(Error::new(
                    Code::BadTable,
                    format!("columns {} and {} are both named `{name}`", before + 1, column + 1),
                )
                .help("give each column a name of its own; the first line of the file must hold the names"));
            }
        }
        let mut roles = vec![Role::Feature; names.len()];
        let mut notes = Vec::new();
        let asked = &asked(options, &first_of);
        for name in &asked.ignore {
            roles[find(name, &names, &first_of, "ignore")?] = Role::Ignored;
        }
        let labels = label_columns(asked, &names, &first_of, &mut roles)?;
        if !labels.is_empty() {
            notes.push(counted(labels.len() as u64, "label column", "label columns"));
        }
        let model_names: Option<HashSet<String>> = options
            .features
            .as_ref()
            .and_then(|features| features.names.as_ref())
            .map(|names| names.iter().cloned().collect());
        let sides = Sides::find(&names, options);
        // The target of a left and a right item is the outcome.
        let (target, outcome) = match sides {
            Some(Sides::LeftRight) => (&None, &asked.target),
            _ => (&asked.target, &None),
        };
        for (role, setting, wanted, common) in [
            (Role::Target, "target", target, TARGET_NAMES),
            (Role::Group, "group", &asked.group, GROUP_NAMES),
            (Role::Weight, "weight", &asked.weight, WEIGHT_NAMES),
            (Role::Id, "id", &asked.id, ID_NAMES),
            (Role::Outcome, "target", outcome, OUTCOME_NAMES),
        ] {
            let unused = match role {
                Role::Outcome => sides != Some(Sides::LeftRight),
                Role::Weight => matches!(options.pairing, Pairing::ItemRows),
                Role::Target => sides.is_some() || !labels.is_empty(),
                Role::Id => sides.is_some(),
                _ => false,
            };
            let column = match wanted {
                Some(name) => Some(find(name, &names, &first_of, setting)?),
                None if unused => None,
                None => {
                    // A column that another flag uses is skipped here.
                    let claimed = |name: &str| {
                        [&asked.target, &asked.group, &asked.weight, &asked.id]
                            .iter()
                            .any(|other| other.as_deref() == Some(name))
                    };
                    let candidates: Vec<usize> = (0..names.len())
                        .filter(|&column| {
                            let name = names[column].as_str();
                            roles[column] == Role::Feature
                                && common.iter().any(|common| name.eq_ignore_ascii_case(common))
                                // If a line holds two items, the names of features start with a side.
                                && (sides.is_some() || !model_names.as_ref().is_some_and(|names| names.contains(name)))
                                && !claimed(name)
                        })
                        .collect();
                    if let [first, second, ..] = candidates[..] {
                        return Err(ambiguous(role, setting, &names[first], &names[second]));
                    }
                    candidates.first().copied()
                }
            };
            let Some(column) = column else { continue };
            if roles[column] != Role::Feature {
                return Err(Error::new(
                    Code::BadSetting,
                    format!("column `{}` cannot be both {} and {}", names[column], roles[column].name(), role.name()),
                )
                .help("name a different column for each role"));
            }
            roles[column] = role;
            notes.push(format!("{} column `{}`", role.name(), names[column]));
        }
        for (column, name) in names.iter().enumerate() {
            if name.is_empty() && roles[column] == Role::Feature {
                // This is how tables written with an unnamed row index look.
                roles[column] = Role::Ignored;
                notes.push(format!("column {} has no name: ignored", column + 1));
            } else if roles[column] == Role::Feature
                && is_index(name)
                && !model_names.as_ref().is_some_and(|names| names.contains(name))
            {
                roles[column] = Role::Ignored;
                notes.push(format!("column `{name}` is a row index written by pandas: ignored"));
            }
        }
        if sides.is_none() {
            refuse_lone_pairs(&names, &roles, model_names.as_ref(), options)?;
        }
        if sides == Some(Sides::LeftRight) && !roles.contains(&Role::Outcome) && !options.outcomes_optional {
            return Err(no_outcome());
        }
        Ok(Roles { names, roles, notes, labels, sides, model_names })
    }

    /// Whether the content of a column is needed. `is_list` is true for a column of lists, whose features are named by
    /// their position.
    #[cfg(feature = "tables")]
    pub(crate) fn needed(&self, column: usize, is_list: bool) -> bool {
        match self.roles[column] {
            Role::Ignored => false,
            Role::Feature if !is_list => {
                let name = self.names[column].as_str();
                let name = self.sides.map_or(name, |sides| sides.without(name));
                self.model_names.as_ref().is_none_or(|names| names.contains(name))
            }
            _ => true,
        }
    }

    /// Lists the features. `widths` gives the length of the lists of each column (`None` for plain cells).
    pub(crate) fn plan(self, widths: &[Option<usize>], options: &ReadOptions) -> Result<Plan> {
        let Roles { names, roles, mut notes, labels, sides, .. } = self;
        let mut features = Vec::new();
        for (column, name) in names.iter().enumerate() {
            if roles[column] != Role::Feature {
                continue;
            }
            match widths[column] {
                None => features.push(Feature { name: name.clone(), column, element: None }),
                Some(width) => features.extend((0..width).map(|element| Feature {
                    name: format!("{name}[{element}]"),
                    column,
                    element: Some(element),
                })),
            }
        }
        let mut partners = Vec::new();
        if let Some(sides) = sides {
            (features, partners) = split_sides(features, sides, &mut notes)?;
        }
        if let (Some(model), None) = (&options.features, options.hash) {
            match &model.names {
                Some(wanted) => features = match_names(features, wanted, &mut notes)?,
                None => match_count(features.len(), model.count)?,
            }
        }
        if sides.is_some() {
            features = with_partners(features, partners)?;
        }
        if features.is_empty() && names.len() == 1 {
            return Err(Error::new(
                Code::BadTable,
                format!("the table has one column only, `{}`", shortened(&names[0])),
            )
            .help("columns are separated by a comma, a semicolon, a tab or a bar: use one of these"));
        }
        if features.is_empty() {
            return Err(Error::new(Code::BadTable, "no column is left as a feature")
                .help("check ⟦target⟧, ⟦group⟧, ⟦weight⟧, ⟦id⟧ and ⟦ignore⟧ against the columns of the file"));
        }
        if u32::try_from(features.len()).is_err() {
            return Err(Error::new(Code::BadTable, format!("{} features are too many", features.len())));
        }
        let at = |role: Role| roles.iter().position(|&other| other == role);
        Ok(Plan {
            target: at(Role::Target),
            group: at(Role::Group),
            weight: at(Role::Weight),
            id: at(Role::Id),
            outcome: at(Role::Outcome),
            labels,
            names,
            features,
            sides: sides.is_some(),
            notes,
        })
    }
}

/// Gives the columns of labels their role, in the order in which they are named.
fn label_columns(
    asked: &Columns,
    names: &[String],
    first_of: &HashMap<&str, usize>,
    roles: &mut [Role],
) -> Result<Vec<usize>> {
    let mut labels = Vec::new();
    for name in &asked.labels {
        let column = find(name, names, first_of, "labels")?;
        if roles[column] != Role::Feature {
            let message = format!("column `{name}` cannot be both {} and label", roles[column].name());
            return Err(Error::new(Code::BadSetting, message).help("name every label column once"));
        }
        roles[column] = Role::Label;
        labels.push(column);
    }
    if let (Some(target), false) = (&asked.target, labels.is_empty()) {
        let message = format!(
            "`{target}` is the target, and {} the labels",
            counted(labels.len() as u64, "column holds", "columns hold")
        );
        return Err(Error::new(Code::BadSetting, message).help("leave ⟦target⟧ or ⟦labels⟧ out"));
    }
    Ok(labels)
}

/// Refuses a table with two items in each row if rows with features are needed. The user probably forgot to name the
/// file with the items. Without this check, the error would be that the first id is not a number.
fn refuse_lone_pairs(
    names: &[String],
    roles: &[Role],
    model_names: Option<&HashSet<String>>,
    options: &ReadOptions,
) -> Result<()> {
    let takes_pairs = match options.pairing {
        Pairing::Sides => true,
        Pairing::None if options.features.is_some() => false,
        _ => return Ok(()),
    };
    let is_side = |wanted: &str| {
        (0..names.len()).any(|column| {
            roles[column] == Role::Feature
                && names[column].eq_ignore_ascii_case(wanted)
                && !model_names.is_some_and(|known| known.contains(&names[column]))
        })
    };
    let [left, right] = if is_side("better") && is_side("worse") {
        ["better", "worse"]
    } else if is_side("left") && is_side("right") && is_side("outcome") {
        ["left", "right"]
    } else {
        return Ok(());
    };
    if roles.contains(&Role::Target) {
        return Ok(());
    }
    let (message, help) = if takes_pairs {
        (
            "no file of items was given",
            format!(
                "name the file that holds the items with ⟦items=FILE⟧, or leave the two columns out with ⟦ignore={left},{right}⟧"
            ),
        )
    } else {
        (
            "rows with features are needed",
            "give the file that holds the items: this scores items, not pairs".to_string(),
        )
    };
    Err(Error::new(Code::NoItems, format!("the columns `{left}` and `{right}` name items, but {message}")).help(help))
}

/// The error for pairs of a left and a right item without an outcome.
pub(crate) fn no_outcome() -> Error {
    Error::new(Code::NoSuchColumn, "pairs of a left and a right item need a column `outcome`").help(
        "add it, with left, right or tie in each row (or −1, 0 or 1), or name it with ⟦target=COLUMN⟧; where one side is always the better one, call the sides `better` and `worse`",
    )
}

/// The features of the two rows of a line, without their prefixes. Columns of neither side are left out with a note.
fn split_sides(features: Vec<Feature>, sides: Sides, notes: &mut Vec<String>) -> Result<(Vec<Feature>, Vec<Feature>)> {
    let [first, second] = sides.prefixes();
    let (mut these, mut those, mut neither) = (Vec::new(), Vec::new(), Vec::new());
    for feature in features {
        if let Some(name) = feature.name.strip_prefix(first) {
            these.push(Feature { name: name.to_string(), ..feature });
        } else if let Some(name) = feature.name.strip_prefix(second) {
            those.push(Feature { name: name.to_string(), ..feature });
        } else {
            neither.push(format!("`{}`", feature.name));
        }
    }
    notes.push(format!(
        "a pair in each row: {} of a {} and a {} item",
        counted(these.len() as u64, "feature", "features"),
        first.trim_end_matches('.'),
        second.trim_end_matches('.'),
    ));
    if !neither.is_empty() {
        neither.truncate(5);
        notes.push(format!("columns that belong to neither item ignored: {}", neither.join(", ")));
    }
    let lone = |side: &str, these: &[Feature], those: &[Feature]| {
        let known: HashSet<&str> = those.iter().map(|feature| feature.name.as_str()).collect();
        these
            .iter()
            .find(|feature| !known.contains(feature.name.as_str()))
            .map(|feature| format!("{side}{}", feature.name))
    };
    match lone(first, &these, &those).or_else(|| lone(second, &those, &these)) {
        None => Ok((these, those)),
        Some(column) => Err(Error::new(Code::BadTable, format!("column `{column}` has no partner on the other side"))
            .help(format!("give every `{first}NAME` its `{second}NAME`, or leave the column out with ⟦ignore⟧"))),
    }
}

/// The features of the first row of a line, followed by the same ones of the second row.
fn with_partners(mut features: Vec<Feature>, partners: Vec<Feature>) -> Result<Vec<Feature>> {
    let mut by_name: HashMap<String, Feature> =
        partners.into_iter().map(|feature| (feature.name.clone(), feature)).collect();
    let partners: Option<Vec<Feature>> = features.iter().map(|feature| by_name.remove(&feature.name)).collect();
    features.extend(partners.ok_or_else(|| Error::new(Code::Internal, "a feature of one side only"))?);
    Ok(features)
}

fn ambiguous(role: Role, setting: &str, first: &str, second: &str) -> Error {
    let help = if setting.is_empty() {
        "leave one out with ⟦ignore=NAME⟧".to_string()
    } else {
        format!(
            "say which with ⟦{setting}=NAME⟧ (the other then counts as a feature), or leave one out with ⟦ignore=NAME⟧"
        )
    };
    Error::new(Code::BadTable, format!("both `{first}` and `{second}` could be the {}", role.name())).help(help)
}

/// The columns named by the user, and those remembered by a model that this file has.
pub(crate) fn asked(options: &ReadOptions, index: &HashMap<&str, usize>) -> Columns {
    let (asked, remembered) = (&options.columns, &options.remembered);
    let present = |name: &String| index.contains_key(name.as_str());
    let one = |asked: &Option<String>, remembered: &Option<String>| {
        asked.clone().or_else(|| remembered.clone().filter(present))
    };
    let mut ignored: Vec<String> = if asked.ignore.is_empty() {
        remembered.ignore.iter().filter(|name| present(name)).cloned().collect()
    } else {
        asked.ignore.clone()
    };
    // Labels of some rows are not those of all: a file with a part of the columns has no labels.
    let whole = asked.labels.is_empty() && asked.target.is_none() && remembered.labels.iter().all(present);
    let labels = if whole { remembered.labels.clone() } else { asked.labels.clone() };
    if labels.is_empty() {
        ignored.extend(remembered.labels.iter().filter(|name| present(name)).cloned());
    }
    Columns {
        target: one(&asked.target, &remembered.target),
        group: one(&asked.group, &remembered.group),
        weight: one(&asked.weight, &remembered.weight),
        id: one(&asked.id, &remembered.id),
        ignore: ignored,
        labels,
    }
}

/// The features in the model's order. Columns that the model does not have are left out with a note.
fn match_names(features: Vec<Feature>, wanted: &[String], notes: &mut Vec<String>) -> Result<Vec<Feature>> {
    let mut given: HashMap<String, Feature> =
        features.into_iter().map(|feature| (feature.name.clone(), feature)).collect();
    let mut ordered = Vec::with_capacity(wanted.len());
    for name in wanted {
        match given.remove(name) {
            Some(feature) => ordered.push(feature),
            None => {
                let left: Vec<&str> = given.keys().map(String::as_str).collect();
                let close = nearest(name, left.iter().copied())
                    .map(|close| format!("; did you mean `{close}`?"))
                    .unwrap_or_default();
                return Err(Error::new(
                    Code::FeatureNames,
                    format!("the model was trained with feature `{name}`, and the file has no such column{close}"),
                )
                .help("add the column, or rename the one that holds this feature"));
            }
        }
    }
    if !given.is_empty() {
        let mut extra: Vec<&Feature> = given.values().collect();
        extra.sort_by_key(|feature| (feature.column, feature.element));
        let shown: Vec<String> = extra.iter().map(|feature| format!("`{}`", feature.name)).collect();
        let (noun, list) = match shown.len() {
            1 => ("column", shown.join(", ")),
            2..=5 => ("columns", shown.join(", ")),
            _ => ("columns", format!("{}, …", shown[..5].join(", "))),
        };
        notes.push(format!("{} {noun} unknown to the model ignored: {list}", shown.len()));
    }
    Ok(ordered)
}

fn match_count(found: usize, expected: usize) -> Result<()> {
    let columns = counted(found as u64, "feature column", "feature columns");
    let message = format!("the file has {columns}, and the model was trained with {expected}");
    let help = "the model knows its features by position only: give the same columns in the same order, \
                and leave out others with ⟦ignore=NAME⟧";
    match found.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::new(Code::TooManyFeatures, message).help(help)),
        std::cmp::Ordering::Less => Err(Error::new(Code::FeatureNames, message).help(help)),
    }
}

/// Whether a column has a name that pandas gives to the row index: `Unnamed: 0` after reading a CSV file with an index,
/// `__index_level_0__` in Parquet.
fn is_index(name: &str) -> bool {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    name.strip_prefix("Unnamed: ").is_some_and(number)
        || name.strip_prefix("__index_level_").and_then(|rest| rest.strip_suffix("__")).is_some_and(number)
}

/// The start of a long name.
fn shortened(name: &str) -> String {
    const SHOWN: usize = 40;
    if name.chars().count() <= SHOWN { name.to_string() } else { name.chars().take(SHOWN).chain(['…']).collect() }
}

/// The column with this name, or an error that suggests the nearest name and lists the existing ones.
fn find(name: &str, names: &[String], index: &HashMap<&str, usize>, setting: &str) -> Result<usize> {
    if let Some(&column) = index.get(name) {
        return Ok(column);
    }
    const SHOWN: usize = 20;
    let mut list: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        list.push(format!("… ({} in all)", names.len()));
    }
    let close = match name.parse::<usize>() {
        Ok(_) => "columns are named, not numbered: ".to_string(),
        Err(_) => nearest(name, names.iter().map(String::as_str))
            .map(|close| format!("did you mean `{close}`? "))
            .unwrap_or_default(),
    };
    Err(Error::new(Code::NoSuchColumn, format!("⟦{setting}⟧ {name}: there is no column `{name}`"))
        .help(format!("{close}the columns are {}", list.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelFeatures;

    fn plan(names: &[&str], options: &ReadOptions) -> Result<Plan> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let widths = vec![None; names.len()];
        Roles::find(names, options)?.plan(&widths, options)
    }

    fn feature_names(plan: &Plan) -> Vec<&str> {
        plan.features.iter().map(|feature| feature.name.as_str()).collect()
    }

    #[test]
    fn common_names_find_their_roles_and_say_so() {
        let plan = plan(&["QID", "a", "Label", "sample_weight", "b", "docid"], &ReadOptions::default()).expect("valid");
        assert_eq!((plan.target, plan.group, plan.weight, plan.id), (Some(2), Some(0), Some(3), Some(5)));
        assert_eq!(feature_names(&plan), ["a", "b"]);
        assert_eq!(
            plan.notes,
            ["target column `Label`", "group column `QID`", "weight column `sample_weight`", "id column `docid`"]
        );
    }

    #[test]
    fn flags_come_before_common_names() {
        let columns =
            Columns { target: Some("a".into()), ignore: vec!["id".into(), "qid".into()], ..Columns::default() };
        let plan = plan(&["qid", "a", "label", "id"], &ReadOptions { columns, ..ReadOptions::default() }).expect("ok");
        assert_eq!((plan.target, plan.group, plan.id), (Some(1), None, None));
        assert_eq!(feature_names(&plan), ["label"]);
    }

    #[test]
    fn an_unknown_column_is_named_with_the_nearest_one() {
        let columns = Columns { group: Some("quary".into()), ..Columns::default() };
        let error = plan(&["x", "Query", "y"], &ReadOptions { columns, ..ReadOptions::default() }).expect_err("none");
        assert_eq!(error.code(), Code::NoSuchColumn);
        let help = error.remedy().expect("there is help");
        assert!(help.contains("did you mean `Query`") && help.contains("`x`, `Query`, `y`"), "{help}");
    }

    #[test]
    fn two_columns_that_could_be_the_target_are_refused() {
        let error = plan(&["x", "label", "class"], &ReadOptions::default()).expect_err("ambiguous");
        assert!(error.message().contains("`label`") && error.message().contains("`class`"));
        let columns = Columns { ignore: vec!["class".into()], ..Columns::default() };
        assert!(plan(&["x", "label", "class"], &ReadOptions { columns, ..ReadOptions::default() }).is_ok());
    }

    #[test]
    fn one_column_cannot_serve_twice() {
        let columns = Columns { target: Some("q".into()), group: Some("q".into()), ..Columns::default() };
        let error = plan(&["x", "q"], &ReadOptions { columns, ..ReadOptions::default() }).expect_err("twice");
        assert_eq!(error.code(), Code::BadSetting);
    }

    #[test]
    fn duplicate_and_missing_names_are_noticed() {
        assert_eq!(plan(&["x", "x"], &ReadOptions::default()).expect_err("duplicate").code(), Code::BadTable);
        assert_eq!(plan(&["label"], &ReadOptions::default()).expect_err("no feature").code(), Code::BadTable);
        let indexed = plan(&["", "x", "label"], &ReadOptions::default()).expect("valid");
        assert_eq!(feature_names(&indexed), ["x"]);
        assert!(indexed.notes.contains(&"column 1 has no name: ignored".to_string()));
        for name in ["Unnamed: 0", "__index_level_0__"] {
            let indexed = plan(&[name, "x", "label"], &ReadOptions::default()).expect("valid");
            assert_eq!(feature_names(&indexed), ["x"]);
            assert!(
                indexed.notes.iter().any(|note| note.contains(name) && note.contains("pandas")),
                "{:?}",
                indexed.notes
            );
        }
        let named = plan(&["Unnamed: x", "label"], &ReadOptions::default()).expect("valid");
        assert_eq!(feature_names(&named), ["Unnamed: x"]);
    }

    fn model(names: &[&str]) -> ReadOptions {
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let features = ModelFeatures { count: names.len(), names: Some(names), index_base: None };
        ReadOptions { features: Some(features), ..ReadOptions::default() }
    }

    #[test]
    fn a_models_features_are_matched_by_name_in_its_order() {
        let plan = plan(&["b", "extra", "label", "weight", "a"], &model(&["a", "weight", "b"])).expect("valid");
        assert_eq!(plan.features.iter().map(|feature| feature.column).collect::<Vec<_>>(), [4, 3, 0]);
        assert_eq!((plan.target, plan.weight), (Some(2), None));
        assert!(plan.notes.contains(&"1 column unknown to the model ignored: `extra`".to_string()));
    }

    #[test]
    fn a_feature_of_the_model_that_is_missing_is_named() {
        let error = plan(&["b", "label", "a_1"], &model(&["a1", "b"])).expect_err("missing");
        assert_eq!(error.code(), Code::FeatureNames);
        assert!(error.message().contains("`a1`") && error.message().contains("`a_1`"), "{error}");
    }

    #[test]
    fn features_without_names_must_agree_in_number() {
        let options = |count| ReadOptions {
            features: Some(ModelFeatures { count, ..ModelFeatures::default() }),
            ..ReadOptions::default()
        };
        assert!(plan(&["a", "b"], &options(2)).is_ok());
        assert_eq!(plan(&["a", "b"], &options(1)).expect_err("more").code(), Code::TooManyFeatures);
        assert_eq!(plan(&["a", "b"], &options(3)).expect_err("fewer").code(), Code::FeatureNames);
    }

    #[test]
    fn list_columns_become_numbered_features() {
        let names = vec!["x".to_string(), "v".to_string()];
        let options = ReadOptions::default();
        let plan = Roles::find(names, &options).expect("ok").plan(&[None, Some(3)], &options).expect("ok");
        assert_eq!(feature_names(&plan), ["x", "v[0]", "v[1]", "v[2]"]);
    }
}
