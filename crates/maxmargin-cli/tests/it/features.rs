//! Games and ratings become pairs with features.

use crate::workbench::{Workbench, number};
use std::collections::BTreeMap;

const GAMES: &str = "date,white,black,result\n\
    2024-01-01,Ann,Bob,1-0\n2024-01-01,Cid,Ann,1/2-1/2\n2024-01-05,Bob,Cid,0-1\n2024-02-05,Ann,Cid,1-0\n2024-02-05,Ann,Bob,NA\n";

/// The rows of a table by the names of its columns.
fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| names.iter().map(|name| name.to_string()).zip(line.split(',').map(str::to_string)).collect())
        .collect()
}

fn value(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().expect("a number")
}

#[test]
fn games_know_what_was_known_before_their_date() {
    let bench = Workbench::new();
    bench.write("games.csv", GAMES);
    bench
        .ok("features games games.csv -o wide.csv --keep-ids")
        .says("4 games · 3 players · 1 without a result left out")
        .says("players `white` and `black`")
        .says("result column `result`")
        .says("wrote wide.csv   4 rows: 2 left, 1 tie, 1 right");
    let rows = table(&bench.text("wide.csv"));
    assert_eq!(rows.len(), 4);
    // Two games on the same day do not affect each other's features.
    for row in &rows[..2] {
        for side in ["left", "right"] {
            assert_eq!(value(row, &format!("{side}.games")), 0.0);
            assert_eq!(value(row, &format!("{side}.elo")), 1200.0);
            assert_eq!(value(row, &format!("{side}.glicko_deviation")), 350.0);
        }
        assert_eq!((value(row, "left.first"), value(row, "right.first")), (1.0, 0.0));
    }
    assert_eq!(rows[1]["outcome"], "tie");
    // Bob lost to Ann, and Cid drew with her; all three had the same rating.
    assert_eq!((value(&rows[2], "left.elo"), value(&rows[2], "right.elo")), (1180.0, 1200.0));
    assert_eq!((value(&rows[2], "left.losses"), value(&rows[2], "right.draws")), (1.0, 1.0));
    assert_eq!(value(&rows[2], "left.days_since_last"), 4.0);
    assert_eq!(rows[2]["outcome"], "right");
    assert_eq!((rows[3]["left_player"].as_str(), rows[3]["date"].as_str()), ("Ann", "2024-02-05"));
    assert_eq!(value(&rows[3], "left.days_since_last"), 35.0);
    assert_eq!((value(&rows[3], "left.win_rate"), value(&rows[3], "left.draw_rate")), (0.5, 0.5));
    // Cid, at 1200, beat Bob at 1180.
    assert_eq!(value(&rows[3], "right.score_against_lower"), 1.0);
    assert_eq!(value(&rows[3], "right.score_against_higher"), 0.5);
    assert_eq!(value(&rows[3], "right.opponent_difference"), -10.0);
}

#[test]
fn a_later_result_changes_no_earlier_row() {
    let bench = Workbench::new();
    bench.write("games.csv", GAMES).write("other.csv", GAMES.replace("Bob,Cid,0-1", "Bob,Cid,1-0"));
    bench.ok("features games games.csv -o a.csv");
    bench.ok("features games other.csv -o b.csv");
    let (one, other) = (bench.text("a.csv"), bench.text("b.csv"));
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    assert_eq!(one[..3], other[..3]);
    assert_ne!(one[4], other[4]);
}

#[test]
fn warm_up_games_are_learned_from_and_not_written() {
    let bench = Workbench::new();
    bench.write("games.csv", GAMES);
    bench.ok("features games games.csv -o all.csv");
    bench.ok("features games games.csv -o late.csv --from 2024-01-02 --to 2024-01-31");
    let (all, late) = (bench.text("all.csv"), bench.text("late.csv"));
    let (all, late): (Vec<&str>, Vec<&str>) = (all.lines().collect(), late.lines().collect());
    assert_eq!(late, [all[0], all[3]]);
    bench.refused("features games games.csv -o x.csv --from 7", "MM0402").says("a date such as 2024-05-31");
}

#[test]
fn results_come_as_words_signs_scores_goals_and_names() {
    let bench = Workbench::new();
    let ways = [
        "left,right,outcome\na,b,left\nb,a,tie\na,b,right\n",
        "left,right,outcome\na,b,-1\nb,a,0\na,b,1\n",
        "left,right,score\na,b,1\nb,a,0.5\na,b,0\n",
        "left,right,left_score,right_score\na,b,3,1\nb,a,2,2\na,b,0,1\n",
        "left,right,winner\na,b,a\nb,a,tie\na,b,b\n",
    ];
    let outcomes: Vec<String> = ways
        .iter()
        .map(|way| {
            bench.write("games.csv", way);
            bench.ok("features games games.csv -o wide.csv").says("no date column");
            let text = bench.text("wide.csv");
            assert!(!text.contains("since_last"));
            text
        })
        .collect();
    assert!(outcomes.iter().all(|text| *text == outcomes[0]), "{outcomes:?}");
    assert_eq!(
        table(&outcomes[0]).iter().map(|row| row["outcome"].as_str()).collect::<Vec<_>>(),
        ["left", "tie", "right"]
    );
    bench.write("games.csv", "left,right,outcome\na,b,1\nb,a,0\n");
    bench.refused("features games games.csv -o w.csv", "MM0235").says("--result-as score");
    bench.ok("features games games.csv -o wide.csv --result-as score");
    assert_eq!(table(&bench.text("wide.csv"))[1]["outcome"], "right");
    bench.ok("features games games.csv -o wide.csv --result-as sign");
    assert_eq!(table(&bench.text("wide.csv"))[1]["outcome"], "tie");
}

#[test]
fn neutral_ground_has_no_first_player() {
    let bench = Workbench::new();
    bench.write("games.csv", "home_team,away_team,home_score,away_score,neutral\na,b,1,0,FALSE\na,b,1,0,TRUE\n");
    bench.ok("features games games.csv -o wide.csv");
    let rows = table(&bench.text("wide.csv"));
    assert_eq!((value(&rows[0], "left.first"), value(&rows[1], "left.first")), (1.0, 0.0));
}

#[test]
fn games_that_cannot_be_used_are_refused_with_their_place() {
    let bench = Workbench::new();
    let head = "date,left,right,outcome\n2024-05-31,a,b,left\n";
    for (line, code, words) in [
        ("2024-05-30,a,b,left", "MM0236", "earlier than the one before it"),
        ("31.05.2024,a,b,left", "MM0214", "this is not a date"),
        ("7,a,b,left", "MM0214", "written differently from those above"),
        (",a,b,left", "MM0212", "the date is missing"),
        ("2024-05-31,a,,left", "MM0212", "the player is missing"),
        ("2024-05-31,a,a,left", "MM0232", "plays against itself"),
        ("2024-05-31,a,b,won", "MM0235", "not understood"),
    ] {
        bench.write("games.csv", format!("{head}{line}\n"));
        bench.refused("features games games.csv -o wide.csv", code).says(words).says("games.csv:3:");
    }
    bench.write("games.csv", "a,b,outcome\nx,y,left\n");
    bench.refused("features games games.csv -o wide.csv", "MM0213").says("--left COLUMN");
    bench.refused("features games games.csv -o wide.csv --left z", "MM0213").says("no column `z`");
    bench.write("games.csv", "left,right,outcome\nx,y,NA\n");
    bench.refused("features games games.csv -o wide.csv", "MM0201");
    bench.refused("features games games.csv -o wide.parquet", "MM0104");
    assert!(!bench.path("wide.csv").exists());
}

const RATINGS: &str = "user,item,rating\nu,a,5\nu,b,3\nu,c,3\nu,d,1\nv,a,2\nv,b,4\nv,c,4.5\n";

#[test]
fn ratings_of_a_user_become_pairs_of_ids() {
    let bench = Workbench::new();
    bench.write("ratings.csv", RATINGS);
    let object = bench.json("features ratings ratings.csv -o pairs.csv");
    assert_eq!((number(&object, "pairs"), number(&object, "users")), (3.0, 2.0));
    bench.ok("features ratings ratings.csv -o all.csv --pairs-per-user all --tie-within 0.5");
    let rating: BTreeMap<(String, String), f64> =
        table(RATINGS).iter().map(|row| ((row["user"].clone(), row["item"].clone()), value(row, "rating"))).collect();
    let rows = table(&bench.text("all.csv"));
    assert_eq!(rows.len(), 9);
    for row in &rows {
        let of = |side: &str| rating[&(row["group"].clone(), row[side].clone())];
        let difference = of("right") - of("left");
        let expected = if difference.abs() <= 0.5 {
            "tie"
        } else if difference > 0.0 {
            "right"
        } else {
            "left"
        };
        assert_eq!(row["outcome"], expected);
    }
    let again = bench.text("all.csv");
    bench.ok("features ratings ratings.csv -o all.csv --pairs-per-user all --tie-within 0.5 --threads 1");
    assert_eq!(bench.text("all.csv"), again);
    bench.refused("features ratings ratings.csv -o x.csv --pairs-per-user none", "MM0402");
    bench.refused("features ratings ratings.csv -o x.csv --tie-within -1", "MM0402");
    bench.write("ratings.csv", "user,item,rating\nu,a,good\n");
    bench.refused("features ratings ratings.csv -o x.csv", "MM0214").says("ratings.csv:2:5");
}

#[test]
fn features_of_items_and_users_are_joined_or_multiplied() {
    let bench = Workbench::new();
    bench
        .write("ratings.csv", RATINGS)
        .write("items.csv", "id,sweet,fat,note\na,1,2,x\nb,3,4,y\nc,5,6,z\nd,7,8,w\n")
        .write("users.csv", "id,age\nu,10\nv,20\n");
    let line = "features ratings ratings.csv --items items.csv --users users.csv --ignore note -o wide.csv";
    bench.ok(line);
    let rows = table(&bench.text("wide.csv"));
    for row in &rows {
        let age = if row["group"] == "u" { 10.0 } else { 20.0 };
        assert_eq!((value(row, "left.user.age"), value(row, "right.user.age")), (age, age));
        assert_eq!(value(row, "left.fat"), value(row, "left.sweet") + 1.0);
    }
    bench.ok(&format!("{line} --cross"));
    for row in table(&bench.text("wide.csv")) {
        let age = if row["group"] == "u" { 10.0 } else { 20.0 };
        assert_eq!(value(&row, "right.sweet*age"), value(&row, "right.sweet") * age);
        assert!(!row.contains_key("left.user.age"));
    }
    bench.write("items.csv", "id,sweet\na,1\nb,3\nc,5\n");
    bench.refused("features ratings ratings.csv --items items.csv -o wide.csv", "MM0231").says("`d`");
}

#[test]
fn pairs_without_features_are_rated_by_every_method() {
    let bench = Workbench::new();
    bench.write(
        "pairs.csv",
        "left,right,outcome\na,b,left\nb,c,left\na,c,left\nc,a,right\nb,a,right\nb,c,tie\na,b,tie\nc,d,left\nd,a,right\n",
    );
    for method in ["elo", "glicko", "bradley-terry", "trueskill"] {
        let object = bench.json(&format!("train compare pairs.csv --method {method} -o m.mm"));
        assert_eq!(object["lower_bound"].is_null(), method != "bradley-terry", "{object}");
        bench.ok("verify m.mm pairs.csv");
        let said = bench.ok("predict m.mm pairs.csv").stdout;
        let first: Vec<&str> = said.lines().next().expect("a line").split('\t').collect();
        let (left, right): (f64, f64) = (first[1].parse().expect("a score"), first[2].parse().expect("a score"));
        assert!(left > right, "{method}: {said}");
        bench.refused(&format!("tune compare pairs.csv --method {method}"), "MM0402");
    }
    bench.write("items.csv", "id,x\na,1\nb,2\nc,3\nd,4\n");
    bench
        .refused("train compare pairs.csv --items items.csv --method elo -o n.mm", "MM0401")
        .says("these items have features");
}

#[test]
fn what_games_become_is_learned_from() {
    let bench = Workbench::new();
    let results = ["left", "tie", "right", "left", "tie"];
    let games: String = (0..60)
        .map(|game| format!("{},p{},p{},{}\n", game / 3, game % 7, (game % 7 + 1 + game % 5) % 7, results[game % 5]))
        .collect();
    bench.write("games.csv", format!("day,left,right,outcome\n{games}"));
    bench.ok("features games games.csv -o wide.csv --from 5 --keep-ids");
    bench.ok("train compare wide.csv --method rank --scale standard --ignore left_player,right_player,date -o m.mm");
}

#[test]
fn numbers_that_overflow_are_not_written() {
    let bench = Workbench::new();
    bench.write("ratings.csv", "user,item,rating\nu,a,1\nu,b,2\n");
    bench.write("users.csv", "id,age\nu,1e300\n");
    bench.write("items.csv", "id,price\na,1e300\nb,1\n");
    let line = "features ratings ratings.csv --items items.csv --users users.csv --cross -o pairs.csv";
    bench.refused(line, "MM0407").says("too large");
}

#[test]
fn tables_of_items_and_users_name_their_ids_by_a_flag() {
    let bench = Workbench::new();
    bench.write("r.csv", "user,item,rating\nu,a,1\nu,b,2\nv,a,3\nv,b,1\n");
    bench.write("items.csv", "id,price\na,1\nb,2\n").write("users.csv", "person,age\nu,30\nv,40\n");
    let line = "features ratings r.csv --items items.csv --users users.csv --cross -o w.csv";
    bench.refused(line, "MM0214").says("column `person`");
    bench.write("numbered.csv", "number,age\n1,30\n2,40\n");
    let without = "features ratings r.csv --items items.csv --users numbered.csv -o w.csv";
    bench.refused(without, "MM0213").says("name the column with --id COLUMN");
    bench.ok(&format!("{line} --id person -q"));
    assert!(bench.text("w.csv").starts_with("left.price,left.price*age,"), "{}", bench.text("w.csv"));
    bench.write("users.csv", "id,label,class\nu,1,2\nv,3,4\n");
    bench.refused(line, "MM0215").says("--ignore NAMES");
}
