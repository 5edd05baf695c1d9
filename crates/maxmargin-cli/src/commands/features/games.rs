//! `maxmargin features games GAMES -o WIDE`: each game with what was known about both players before it.

use super::calendar::When;
use super::{Codes, Header, in_row, next, output, plain, shown};
use crate::args::{GamesArguments, ResultAs};
use crate::console::Console;
use crate::format;
use maxmargin::data::Outcome;
use maxmargin::error::{Code, Error, Result};
use maxmargin::rating::{EloFactor, Game, GlickoSettings, HISTORY_FEATURES, History, HistorySettings};
use maxmargin::run::Cancel;
use maxmargin_io::{BadCell, Facts, ReadOptions, TakeRecords, read_records, write_records};
use serde_json::json;
use std::time::Instant;

const LEFT: &[&str] = &[
    "left",
    "left_player",
    "home",
    "home_team",
    "hometeam",
    "white",
    "white_player",
    "player_1",
    "player1",
    "team_1",
    "team1",
    "player_a",
    "team_a",
    "model_a",
];
const RIGHT: &[&str] = &[
    "right",
    "right_player",
    "away",
    "away_team",
    "awayteam",
    "black",
    "black_player",
    "player_2",
    "player2",
    "team_2",
    "team2",
    "player_b",
    "team_b",
    "model_b",
];
const RESULT: &[&str] = &["outcome", "result", "winner", "score"];
const LEFT_SCORE: &[&str] = &["left_score", "home_score", "home_goals", "white_score", "score_1", "score1", "score_a"];
const RIGHT_SCORE: &[&str] =
    &["right_score", "away_score", "away_goals", "black_score", "score_2", "score2", "score_b"];
const DATE: &[&str] = &["date", "day", "time", "timestamp", "month", "period", "week", "season", "year"];
const NEUTRAL: &[&str] = &["neutral", "neutral_ground", "neutral_venue"];

/// Growth of Glicko's deviation per square root of a numbered period, and per square root of a day. A deviation of 50
/// becomes that of a new player in thirty periods, as in Glickman's paper, where these are five years.
const GROWTH: f64 = 63.2;
const GROWTH_BY_DAY: f64 = 8.1;

pub(crate) fn run(arguments: &GamesArguments, console: &Console, cancel: &Cancel) -> Result<()> {
    for (flag, value) in [("--elo-factor", arguments.elo_factor), ("--growth", arguments.growth)] {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
            return Err(Error::new(Code::BadSetting, format!("{flag} {value} is not a number of zero or more"))
                .help(format!("leave {flag} out, or give a number of zero or more")));
        }
    }
    let to = output(&arguments.output, &[&arguments.file], console)?;
    let start = Instant::now();
    let (season, facts) = read(arguments, cancel)?;
    let games = season.resolve(arguments.result_as).map_err(|error| error.in_file(&facts.file))?;
    if games.is_empty() {
        return Err(Error::new(Code::NoRows, "there is no game with a result").in_file(&facts.file).help(
            "a table of games has a line of column names, then one line per game with two players and a result",
        ));
    }
    let window = season.window(arguments)?;
    let load = start.elapsed().as_secs_f64();
    season.describe(console, &facts, &games, load);
    let start = Instant::now();
    let mut written = Written::default();
    write_records(&arguments.output, to, cancel, |out| {
        let mut names: Vec<&str> = HISTORY_FEATURES.to_vec();
        // Without dates, the time since the last game is not known.
        names.truncate(names.len() - usize::from(season.kind.is_none()));
        let known = names.len();
        if let (Some(When::Day(_)), Some(last)) = (season.kind, names.last_mut()) {
            *last = "days_since_last";
        }
        if arguments.keep_ids {
            out.text("left_player")?;
            out.text("right_player")?;
            if season.kind.is_some() {
                out.text("date")?;
            }
        }
        for side in ["left.", "right."] {
            for name in names.iter().chain(&["first"]) {
                out.text(format!("{side}{name}"))?;
            }
        }
        out.text("outcome")?;
        out.end()?;
        let mut history = History::new(season.players.len(), &season.settings(arguments));
        for period in games.chunk_by(|a, b| a.time == b.time && season.kind.is_some()) {
            let time = period[0].time;
            for played in period.iter().filter(|_| window.0 <= time && time <= window.1) {
                let Game { left, right, outcome, .. } = played.game;
                if arguments.keep_ids {
                    out.text(&season.players.names[left as usize])?;
                    out.text(&season.players.names[right as usize])?;
                    if season.kind.is_some() {
                        out.text(&season.dates.names[season.date_of[played.row] as usize])?;
                    }
                }
                for (player, first) in [(left, !played.neutral), (right, false)] {
                    for value in &history.features(player as usize, time)[..known] {
                        out.number(*value)?;
                    }
                    out.number(f64::from(u8::from(first)))?;
                }
                out.text(outcome.name())?;
                out.end()?;
                written.count(outcome);
            }
            let together: Vec<Game> = period.iter().map(|played| played.game).collect();
            history.play(&together, time);
        }
        Ok(())
    })?;
    written.say(console, arguments, &season, &games, (load, start.elapsed().as_secs_f64()))
}

/// The result in a cell. The meaning of numbers is known only once all of them are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Known(Outcome),
    MinusOne,
    Zero,
    Half,
    One,
}

/// A game as read: its number among the games with a result, its time, and whether a player moved first.
#[derive(Clone, Copy)]
struct Played {
    row: usize,
    game: Game,
    time: f64,
    neutral: bool,
}

/// All games with a result.
struct Season<'a> {
    arguments: &'a GamesArguments,
    places: Places,
    players: Codes,
    sides: Vec<(u32, u32)>,
    said: Vec<Said>,
    times: Vec<f64>,
    neutral: Vec<bool>,
    /// The dates as text, in case the user wants to keep them.
    dates: Codes,
    date_of: Vec<u32>,
    /// The kind of the dates, if there are any.
    kind: Option<When>,
    skipped: u64,
    /// The roles of the columns.
    notes: Vec<String>,
}

/// The positions of the cells of a game among those that are read.
#[derive(Default)]
struct Places {
    names: Vec<String>,
    /// The names of the sides in the header: a result may say `home_team` or `model_a`.
    sides: [String; 2],
    scores: bool,
    date: Option<usize>,
    neutral: Option<usize>,
}

fn read<'a>(arguments: &'a GamesArguments, cancel: &Cancel) -> Result<(Season<'a>, Facts)> {
    let options = ReadOptions { format: arguments.input_format, cancel: cancel.clone(), ..ReadOptions::default() };
    let mut season = Season::new(arguments);
    let facts = read_records(&arguments.file, &options, &mut season)?;
    Ok((season, facts))
}

/// Chooses which columns to read, and the positions of the cells of a game among them.
fn choose(names: &[String], arguments: &GamesArguments) -> Result<(Vec<usize>, Places, Vec<String>)> {
    let header = Header::new(names);
    let left = header.need("--left", arguments.left.as_ref(), LEFT, "the left player")?;
    let right = header.need("--right", arguments.right.as_ref(), RIGHT, "the right player")?;
    if left == right {
        return Err(Error::new(Code::BadSetting, format!("column `{}` cannot be both players", header.name(left)))
            .help("name two columns with --left and --right"));
    }
    let mut columns = vec![left, right];
    let mut notes = vec![format!("players `{}` and `{}`", header.name(left), header.name(right))];
    let result = header.find("--result", arguments.result.as_ref(), &[])?;
    let scores = match (&result, &arguments.left_score) {
        (Some(_), _) => None,
        _ => header.find("--left-score", arguments.left_score.as_ref(), LEFT_SCORE)?.zip(header.find(
            "--right-score",
            arguments.right_score.as_ref(),
            RIGHT_SCORE,
        )?),
    };
    match scores {
        Some((left, right)) => {
            columns.extend([left, right]);
            notes.push(format!("result by the scores `{}` and `{}`", header.name(left), header.name(right)));
        }
        None => {
            let result = header.need("--result", arguments.result.as_ref(), RESULT, "the result")?;
            columns.push(result);
            notes.push(format!("result column `{}`", header.name(result)));
        }
    }
    let mut optional = |flag: &str, asked: Option<&String>, common: &[&str], role: &str| -> Result<Option<usize>> {
        let found = header.find(flag, asked, common)?;
        Ok(found.map(|column| {
            columns.push(column);
            notes.push(format!("{role} column `{}`", header.name(column)));
            columns.len() - 1
        }))
    };
    let date = optional("--date", arguments.date.as_ref(), DATE, "date")?;
    let neutral = optional("--neutral", arguments.neutral.as_ref(), NEUTRAL, "neutral")?;
    if date.is_none() {
        notes.push("no date column: games count as played one after the other, in the order of the rows".to_string());
    }
    let sides = [left, right].map(|column| plain(header.name(column)));
    let read = columns.iter().map(|&column| header.name(column).to_string()).collect();
    Ok((columns, Places { names: read, sides, scores: scores.is_some(), date, neutral }, notes))
}

impl TakeRecords for Season<'_> {
    fn choose(&mut self, names: &[String]) -> Result<Vec<usize>> {
        let columns;
        (columns, self.places, self.notes) = choose(names, self.arguments)?;
        Ok(columns)
    }

    /// Adds a game, or leaves it out if it has no result.
    fn take(&mut self, cells: &[&[u8]], row: Option<usize>) -> std::result::Result<(), BadCell> {
        let places = &self.places;
        let at = || in_row(row);
        let bad = |column: usize, code: Code, message: String, help: &str, expected: &str| BadCell {
            column,
            error: Error::new(code, message).help(help),
            expected: expected.to_string(),
        };
        let name = |column: usize| format!("column `{}`, `{}`", places.names[column], shown(cells[column]));
        let number = |column: usize| {
            let text = std::str::from_utf8(cells[column]).ok();
            text.and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite()).ok_or_else(|| {
                let message = format!("this score is not a number{}: {}", at(), name(column));
                bad(column, Code::BadCell, message, "correct the cell", "a number")
            })
        };
        if cells[2].is_empty() || (places.scores && cells[3].is_empty()) {
            self.skipped += 1;
            return Ok(());
        }
        for column in [0, 1] {
            if cells[column].is_empty() {
                let message = format!("the player is missing{}: column `{}`", at(), places.names[column]);
                return Err(bad(column, Code::MissingValue, message, "name both players, or drop the game", "a name"));
            }
        }
        let (left, right) = (cells[0], cells[1]);
        if left == right {
            let message = format!("`{}` plays against itself{}", shown(left), at());
            return Err(bad(
                1,
                Code::PairWithItself,
                message,
                "drop the game: it carries no information",
                "another player",
            ));
        }
        let said = if places.scores {
            let (left, right) = (number(2)?, number(3)?);
            Said::Known(maxmargin::metric::outcome_of(right - left, 0.0))
        } else {
            said(cells[2], [left, right], &places.sides).ok_or_else(|| {
                let message = format!("this result is not understood{}: {}", at(), name(2));
                let help = "write left, right or tie; -1, 0 or 1; the score 1, 0.5 or 0 of the left player; or the winner's name";
                bad(2, Code::BadOutcome, message, help, "a result")
            })?
        };
        let time = match places.date {
            None => self.times.len() as f64,
            Some(column) => {
                let problem = |code: Code, what: &str, help: &str, expected: &str| {
                    bad(column, code, format!("{what}{}: {}", at(), name(column)), help, expected)
                };
                if cells[column].is_empty() {
                    let help = "give every game a date, or drop those without";
                    return Err(problem(Code::MissingValue, "the date is missing", help, "a date"));
                }
                let Some(when) = When::parse(cells[column]) else {
                    let help = "write dates like 2024-05-31, or use a number that grows with time";
                    return Err(problem(Code::BadCell, "this is not a date", help, "a date or a number"));
                };
                let kind = *self.kind.get_or_insert(when);
                if !kind.same_kind(when) {
                    let help = "write all dates in the same way";
                    return Err(problem(
                        Code::BadCell,
                        "this date is written differently from those above",
                        help,
                        kind.example(),
                    ));
                }
                let before = self.times.last().copied().unwrap_or(f64::NEG_INFINITY);
                if when.value() < before {
                    let help = "sort the table by its dates, earliest first: features are what was known before a game";
                    return Err(problem(
                        Code::OutOfOrder,
                        "this game is earlier than the one before it",
                        help,
                        "a later date",
                    ));
                }
                self.date_of.push(self.dates.code(cells[column]));
                when.value()
            }
        };
        let neutral = match places.neutral {
            None => false,
            Some(column) => match plain(&String::from_utf8_lossy(cells[column])).as_str() {
                "true" | "t" | "yes" | "y" | "1" => true,
                "false" | "f" | "no" | "n" | "0" | "" => false,
                _ => {
                    let message = format!("this is neither yes nor no{}: {}", at(), name(column));
                    return Err(bad(column, Code::BadCell, message, "write TRUE or FALSE", "TRUE or FALSE"));
                }
            },
        };
        let sides = (self.players.code(left), self.players.code(right));
        self.sides.push(sides);
        self.said.push(said);
        self.times.push(time);
        self.neutral.push(neutral);
        Ok(())
    }
}

impl<'a> Season<'a> {
    fn new(arguments: &'a GamesArguments) -> Season<'a> {
        Season {
            arguments,
            places: Places::default(),
            players: Codes::default(),
            sides: Vec::new(),
            said: Vec::new(),
            times: Vec::new(),
            neutral: Vec::new(),
            dates: Codes::default(),
            date_of: Vec::new(),
            kind: None,
            skipped: 0,
            notes: Vec::new(),
        }
    }

    /// The games, once the meaning of numeric results is known.
    fn resolve(&self, asked: Option<ResultAs>) -> Result<Vec<Played>> {
        let has = |said: Said| self.said.contains(&said);
        let meaning = match (asked, has(Said::MinusOne), has(Said::Half)) {
            (Some(meaning), ..) => Some(meaning),
            (None, true, false) => Some(ResultAs::Sign),
            (None, false, true) => Some(ResultAs::Score),
            (None, true, true) => {
                return Err(Error::new(Code::BadOutcome, "the results have both -1 and 0.5")
                    .help("use -1, 0 and 1 with 1 for the right player, or the score 1, 0.5 or 0 of the left player"));
            }
            (None, false, false) => None,
        };
        if meaning.is_none() && (has(Said::Zero) || has(Said::One)) {
            return Err(Error::new(Code::BadOutcome, "results of only 0 and 1 can mean two things").help(
                "give --result-as score if 1 is a win of the left player, or --result-as sign if 0 is a tie and 1 a \
                 win of the right player",
            ));
        }
        let outcome = |said: Said| match (said, meaning) {
            (Said::Known(outcome), _) => Some(outcome),
            (Said::MinusOne, Some(ResultAs::Sign)) | (Said::One, Some(ResultAs::Score)) => Some(Outcome::Left),
            (Said::Zero, Some(ResultAs::Sign)) | (Said::Half, Some(ResultAs::Score)) => Some(Outcome::Tie),
            (Said::One, Some(ResultAs::Sign)) | (Said::Zero, Some(ResultAs::Score)) => Some(Outcome::Right),
            _ => None,
        };
        let misread = || {
            Error::new(Code::BadOutcome, "a result does not fit --result-as")
                .help("leave --result-as out, or check the results")
        };
        (0..self.said.len())
            .map(|row| {
                let (left, right) = self.sides[row];
                let outcome = outcome(self.said[row]).ok_or_else(misread)?;
                let game = Game { left, right, outcome, weight: 1.0 };
                Ok(Played { row, game, time: self.times[row], neutral: self.neutral[row] })
            })
            .collect()
    }

    /// The first and the last time to write.
    fn window(&self, arguments: &GamesArguments) -> Result<(f64, f64)> {
        let bound = |flag: &str, asked: &Option<String>, open: f64| -> Result<f64> {
            let Some(text) = asked else { return Ok(open) };
            let Some(kind) = self.kind else {
                return Err(Error::new(Code::BadSetting, format!("{flag} needs a date column"))
                    .help(format!("name it with --date COLUMN, or leave {flag} out")));
            };
            match When::parse(text.as_bytes()) {
                Some(when) if when.same_kind(kind) => Ok(when.value()),
                _ => Err(Error::new(
                    Code::BadSetting,
                    format!("{flag} `{text}` is not written like the dates of the games"),
                )
                .help(format!("give {}", kind.example()))),
            }
        };
        Ok((bound("--from", &arguments.from, f64::NEG_INFINITY)?, bound("--to", &arguments.to, f64::INFINITY)?))
    }

    fn settings(&self, arguments: &GamesArguments) -> HistorySettings {
        let growth = match self.kind {
            None => 0.0,
            Some(When::Day(_)) => GROWTH_BY_DAY,
            Some(When::Number(_)) => GROWTH,
        };
        let growth = arguments.growth.unwrap_or(growth);
        HistorySettings {
            factor: arguments.elo_factor.map_or(EloFactor::Fide, EloFactor::Fixed),
            glicko: GlickoSettings { growth, ..GlickoSettings::default() },
        }
    }

    /// Prints what was found.
    fn describe(&self, console: &Console, facts: &Facts, games: &[Played], seconds: f64) {
        let kind = [facts.format.map(|format| format.name()), facts.compression];
        let kind: Vec<&str> = kind.into_iter().flatten().collect();
        let mut parts = vec![
            format!("{}   {}", facts.file, kind.join(", ")),
            format::counted(games.len() as u64, "game", "games"),
            format::counted(self.players.len() as u64, "player", "players"),
        ];
        if self.skipped > 0 {
            parts.push(format!("{} without a result left out", format::count(self.skipped)));
        }
        parts.push(format::seconds(seconds));
        console.say(&parts.join(" · "));
        for note in &self.notes {
            console.say(&format!("   {note}"));
        }
    }
}

/// The result in a cell, without knowing the others. `names` are those of the players, `sides` those of their columns.
fn said(cell: &[u8], names: [&[u8]; 2], sides: &[String; 2]) -> Option<Said> {
    let text = std::str::from_utf8(cell).ok()?;
    if let Ok(number) = text.parse::<f64>() {
        return [(-1.0, Said::MinusOne), (0.0, Said::Zero), (0.5, Said::Half), (1.0, Said::One)]
            .into_iter()
            .find(|(known, _)| *known == number)
            .map(|(_, said)| said);
    }
    let word = plain(text);
    let outcome = match (text, word.as_str()) {
        ("1-0", _) => Outcome::Left,
        ("0-1", _) => Outcome::Right,
        ("1/2-1/2" | "½-½", _) => Outcome::Tie,
        (_, "left" | "home" | "white") => Outcome::Left,
        (_, "right" | "away" | "black") => Outcome::Right,
        (_, word) if word.starts_with("tie") || word.starts_with("draw") => Outcome::Tie,
        (_, word) if word == sides[0] => Outcome::Left,
        (_, word) if word == sides[1] => Outcome::Right,
        _ if cell == names[0] => Outcome::Left,
        _ if cell == names[1] => Outcome::Right,
        _ => return None,
    };
    Some(Said::Known(outcome))
}

/// What was written.
#[derive(Default)]
struct Written {
    left: u64,
    tie: u64,
    right: u64,
}

impl Written {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Left => self.left += 1,
            Outcome::Tie => self.tie += 1,
            Outcome::Right => self.right += 1,
        }
    }

    fn say(
        &self,
        console: &Console,
        arguments: &GamesArguments,
        season: &Season<'_>,
        games: &[Played],
        (load, write): (f64, f64),
    ) -> Result<()> {
        if arguments.output == "-" {
            return Ok(());
        }
        let rows = self.left + self.tie + self.right;
        let bytes = std::fs::metadata(&arguments.output).map(|metadata| metadata.len()).unwrap_or(0);
        let ignored = match (arguments.keep_ids, season.kind) {
            (false, _) => "",
            (true, Some(_)) => " --ignore left_player,right_player,date",
            (true, None) => " --ignore left_player,right_player",
        };
        console.say(&format!(
            "wrote {}   {}: {} left, {}, {} right · {} · {}{}",
            arguments.output,
            format::counted(rows, "row", "rows"),
            format::count(self.left),
            format::counted(self.tie, "tie", "ties"),
            format::count(self.right),
            format::bytes(bytes),
            format::seconds(write),
            next(&arguments.output, &format!("{ignored} --scale standard"), self.left + self.right, self.tie),
        ));
        console.object(|| {
            json!({
                "games": games.len(),
                "players": season.players.len(),
                "skipped": season.skipped,
                "rows": rows,
                "outcomes": { "left": self.left, "tie": self.tie, "right": self.right },
                "output": arguments.output,
                "bytes": bytes,
                "seconds": { "load": load, "write": write },
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_understood_in_many_words() {
        let sides = ["model_a".to_string(), "model_b".to_string()];
        let said = |text: &str| said(text.as_bytes(), [b"Ann", b"Bob"], &sides);
        for (outcome, texts) in [
            (Outcome::Left, ["left", "Home", "WHITE", "1-0", "model_a", "Ann"]),
            (Outcome::Right, ["right", "away", "Black", "0-1", "Model_B", "Bob"]),
            (Outcome::Tie, ["tie", "Draw", "drawn", "1/2-1/2", "½-½", "tie (bothbad)"]),
        ] {
            for text in texts {
                assert_eq!(said(text), Some(Said::Known(outcome)), "{text}");
            }
        }
        assert_eq!(said("1.0"), Some(Said::One));
        assert_eq!(said("-1"), Some(Said::MinusOne));
        for wrong in ["2", "0.7", "Carl", "won"] {
            assert_eq!(said(wrong), None, "{wrong}");
        }
    }
}
