//! `maxmargin features ratings RATINGS [--items ITEMS] [--users USERS] -o WIDE`: pairs of items rated by the same user.

use super::{Codes, Header, in_row, next, output, shown};
use crate::args::RatingsArguments;
use crate::console::Console;
use crate::format;
use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error, Result};
use maxmargin::rating::{PairsPerUser, Rated, RatedSettings, rated_pairs};
use maxmargin::run::Cancel;
use maxmargin_io::{
    BadCell, Columns, Items, Pairing, Precision, ReadOptions, TakeRecords, read, read_records, write_records,
};
use serde_json::json;
use std::time::Instant;

const USER: &[&str] = &["user", "user_id", "userid", "person", "person_id", "judge", "rater", "worker", "reviewer"];
const ITEM: &[&str] =
    &["item", "item_id", "itemid", "movie", "movie_id", "movieid", "product", "product_id", "book_id"];
const RATING: &[&str] = &["rating", "score", "stars", "grade", "value"];

pub(crate) fn run(arguments: &RatingsArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    let settings = settings(arguments)?;
    let inputs: Vec<&str> = [Some(&arguments.file), arguments.items.as_ref(), arguments.users.as_ref()]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    if inputs.iter().filter(|input| **input == "-").count() > 1 {
        return Err(Error::new(Code::Usage, "only one of the tables can come from standard input")
            .help("put the others into files"));
    }
    let to = output(&arguments.output, &inputs, console)?;
    let start = Instant::now();
    let options = ReadOptions { format: arguments.input_format, cancel: cancel.clone(), ..ReadOptions::default() };
    let mut ratings = Ratings::new(arguments);
    let facts = read_records(&arguments.file, &options, &mut ratings)?;
    let items = arguments.items.as_ref().map(|file| Described::read(file, arguments, cancel)).transpose()?;
    let users = arguments.users.as_ref().map(|file| Described::read(file, arguments, cancel)).transpose()?;
    let item_rows = items.as_ref().map(|items| items.rows_of(&ratings.items, "item")).transpose()?;
    let user_rows = users.as_ref().map(|users| users.rows_of(&ratings.users, "user")).transpose()?;
    let load = start.elapsed().as_secs_f64();
    console.say(&format!(
        "{}   {} of {} by {} · {}",
        facts.file,
        format::counted(ratings.rated.len() as u64, "rating", "ratings"),
        format::counted(ratings.items.len() as u64, "item", "items"),
        format::counted(ratings.users.len() as u64, "user", "users"),
        format::seconds(load)
    ));
    let start = Instant::now();
    let (mut pairs, mut ties) = (0u64, 0u64);
    write_records(&arguments.output, to, cancel, |out| {
        let sides = match (&items, &item_rows) {
            (Some(items), Some(rows)) => {
                Some(Sides { items, rows, users: users.as_ref().zip(user_rows.as_deref()), cross: arguments.cross })
            }
            _ => None,
        };
        match &sides {
            None => {
                out.text("left")?;
                out.text("right")?;
            }
            Some(sides) => {
                for side in ["left.", "right."] {
                    for name in sides.names() {
                        out.text(format!("{side}{name}"))?;
                    }
                }
            }
        }
        out.text("outcome")?;
        out.text("group")?;
        out.end()?;
        let mut values = Vec::new();
        rated_pairs(&ratings.rated, &settings, |pair| {
            for item in [pair.left, pair.right] {
                match &sides {
                    None => out.text(&ratings.items.names[item as usize])?,
                    Some(sides) => {
                        sides.values(item as usize, pair.user as usize, &mut values);
                        values.iter().try_for_each(|value| out.number(*value))?;
                    }
                }
            }
            out.text(pair.outcome.name())?;
            out.text(&ratings.users.names[pair.user as usize])?;
            pairs += 1;
            ties += u64::from(pair.outcome == maxmargin::data::Outcome::Tie);
            out.end()
        })?;
        if pairs == 0 {
            return Err(
                Error::new(Code::NoPairs, "no user rated two items").help("check which columns are user and item")
            );
        }
        Ok(())
    })?;
    if arguments.output == "-" {
        return Ok(());
    }
    let seconds = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&arguments.output).map(|metadata| metadata.len()).unwrap_or(0);
    console.say(&format!(
        "wrote {}   {}, {} · {} · {}{}",
        arguments.output,
        format::counted(pairs, "pair", "pairs"),
        format::counted(ties, "tie", "ties"),
        format::bytes(bytes),
        format::seconds(seconds),
        next(&arguments.output, "", pairs - ties, ties),
    ));
    console.object(|| {
        json!({
            "ratings": ratings.rated.len(),
            "items": ratings.items.len(),
            "users": ratings.users.len(),
            "pairs": pairs,
            "ties": ties,
            "output": arguments.output,
            "bytes": bytes,
            "seconds": { "load": load, "write": seconds },
        })
    })
}

fn settings(arguments: &RatingsArguments) -> Result<RatedSettings> {
    let tie_within = arguments.tie_within;
    if !(tie_within.is_finite() && tie_within >= 0.0) {
        return Err(Error::new(Code::BadSetting, format!("--tie-within {tie_within} is not a number of zero or more"))
            .help("give the largest difference of two ratings that counts as a tie"));
    }
    let pairs = match arguments.pairs_per_user.as_deref() {
        None => PairsPerUser::Once,
        Some("all") => PairsPerUser::All,
        Some(text) => match text.parse() {
            Ok(most) if most > 0 => PairsPerUser::Some(most),
            _ => {
                return Err(Error::new(
                    Code::BadSetting,
                    format!("--pairs-per-user {text} is neither a number nor `all`"),
                )
                .help("give a whole number of 1 or more, or `all`"));
            }
        },
    };
    Ok(RatedSettings { pairs, tie_within, seed: arguments.seed })
}

/// Ratings while they are being read.
struct Ratings<'a> {
    arguments: &'a RatingsArguments,
    names: Vec<String>,
    users: Codes,
    items: Codes,
    rated: Vec<Rated>,
}

impl<'a> Ratings<'a> {
    fn new(arguments: &'a RatingsArguments) -> Ratings<'a> {
        let (users, items) = (Codes::default(), Codes::default());
        Ratings { arguments, names: Vec::new(), users, items, rated: Vec::new() }
    }
}

impl TakeRecords for Ratings<'_> {
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>> {
        let header = Header::new(names);
        let RatingsArguments { user, item, rating, .. } = self.arguments;
        let columns = vec![
            header.need("--user", user.as_ref(), USER, "the user")?,
            header.need("--item", item.as_ref(), ITEM, "the item")?,
            header.need("--rating", rating.as_ref(), RATING, "the rating")?,
        ];
        self.names = columns.iter().map(|&column| header.name(column).to_string()).collect();
        Ok(columns)
    }

    fn take(&mut self, cells: &[&[u8]], row: Option<usize>) -> std::result::Result<(), BadCell> {
        if let Some(column) = cells.iter().position(|cell| cell.is_empty()) {
            let message = format!("a cell is missing{}: column `{}`", in_row(row), self.names[column]);
            let error = Error::new(Code::MissingValue, message).help("give user, item and rating in every row");
            return Err(BadCell { column, error, expected: "a value".to_string() });
        }
        let number = std::str::from_utf8(cells[2]).ok().and_then(|text| text.parse::<f64>().ok());
        let Some(rating) = number.filter(|rating| rating.is_finite()) else {
            let found = shown(cells[2]);
            let message = format!("this rating is not a number{}: column `{}`, `{found}`", in_row(row), self.names[2]);
            let error =
                Error::new(Code::BadCell, message).help("correct the cell, or name another column with --rating");
            return Err(BadCell { column: 2, error, expected: "a finite number".to_string() });
        };
        self.rated.push(Rated { user: self.users.code(cells[0]), item: self.items.code(cells[1]), rating });
        Ok(())
    }
}

/// A table of items or users with features.
struct Described {
    file: String,
    data: Dataset,
    index: Items,
    names: Vec<String>,
}

impl Described {
    fn read(file: &str, arguments: &RatingsArguments, cancel: &Cancel) -> Result<Described> {
        let options = ReadOptions {
            pairing: Pairing::ItemRows,
            precision: Precision::F64,
            // A column that only the other table has is not an error.
            remembered: Columns { id: arguments.id.clone(), ignore: arguments.ignore.clone(), ..Columns::default() },
            cancel: cancel.clone(),
            ..ReadOptions::default()
        };
        let loaded = read(file, &options).map_err(|error| {
            // This command has no flags for the target and the group of a row.
            let remedy = error.raw_remedy().unwrap_or_default();
            let unknown = ["⟦target", "⟦group"].iter().any(|flag| remedy.contains(flag));
            if unknown { error.help("leave columns that are not features out with --ignore NAMES") } else { error }
        })?;
        let index = Items::new(&loaded)?;
        let data = loaded.data;
        let names = (0..data.cols()).map(|column| match data.feature_names() {
            Some(names) => names.get(column).into_owned(),
            None => format!("f{}", column + 1),
        });
        Ok(Described { file: file.to_string(), names: names.collect(), index, data })
    }

    /// The row of each code.
    fn rows_of(&self, codes: &Codes, what: &str) -> Result<Vec<usize>> {
        codes
            .names
            .iter()
            .map(|name| {
                self.index.find(name).map(|row| row as usize).ok_or_else(|| {
                    Error::new(Code::UnknownItem, format!("the {what} `{}` has no row in this table", shown(name)))
                        .in_file(&self.file)
                        .help(format!("add a row with its id for every {what} in the ratings"))
                })
            })
            .collect()
    }

    fn row(&self, row: usize) -> Vec<f64> {
        let mut values = vec![0.0; self.names.len()];
        self.data.matrix().each_in_row(row, |column, value| values[column] = value);
        values
    }
}

/// The features of one side of a pair.
struct Sides<'a> {
    items: &'a Described,
    rows: &'a [usize],
    users: Option<(&'a Described, &'a [usize])>,
    cross: bool,
}

impl Sides<'_> {
    fn names(&self) -> Vec<String> {
        let mut names = self.items.names.clone();
        if let Some((users, _)) = self.users {
            if self.cross {
                for user in &users.names {
                    names.extend(self.items.names.iter().map(|item| format!("{item}*{user}")));
                }
            } else {
                names.extend(users.names.iter().map(|name| format!("user.{name}")));
            }
        }
        names
    }

    fn values(&self, item: usize, user: usize, values: &mut Vec<f64>) {
        values.clear();
        let of_item = self.items.row(self.rows[item]);
        values.extend_from_slice(&of_item);
        if let Some((users, rows)) = self.users {
            let of_user = users.row(rows[user]);
            if self.cross {
                values.extend(of_user.iter().flat_map(|user| of_item.iter().map(move |item| item * user)));
            } else {
                values.extend(of_user);
            }
        }
    }
}
