//! Comparisons with ties: from files to a proven model and to ranked items, and all errors on the way.

use crate::workbench::{Workbench, close, number};
use serde_json::Value;

const ITEMS: &str = "id,x,y\na,0,1\nb,1,0\nc,2,2\nd,2.1,1.8\ne,4,1\nf,3.9,1.1\n";
const PAIRS: &str = "left,right,outcome\na,b,right\nb,c,right\nd,c,tie\nc,e,right\nf,e,tie\ne,a,left\nf,b,left\nc,d,tie\nd,f,right\na,d,right\n";
const GAMES: &str = "left,right,outcome,day\nlions,bears,left,1\nlions,owls,left,1\nbears,owls,tie,2\nowls,wolves,left,2\nlions,wolves,left,3\n\
bears,wolves,left,3\nwolves,owls,tie,4\nlions,bears,tie,4\nbears,owls,left,5\nlions,owls,left,5\n";

/// With `pairs.csv` and `test.csv`, two items per row, from one hidden score.
fn simulated(norm: &str) -> Workbench {
    let bench = Workbench::new();
    bench.ok(&format!("simulate compare --norm {norm} --pairs 300 -o pairs.csv -q"));
    bench.ok(&format!("simulate compare --norm {norm} --pairs 300 --stream 1 -o test.csv -q"));
    bench
}

/// The lines of a tab-separated output.
fn lines(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

fn real(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

#[test]
fn simulated_pairs_are_trained_predicted_evaluated_and_verified() {
    let bench = simulated("2");
    let trained = bench.json("train compare pairs.csv --kernel gaussian -c 100 --gamma 0.5 -o m.mm --report r.html");
    assert_eq!(trained["converged"], true);
    assert!(bench.text("r.html").contains("Level curves"));
    let verified = bench.json("verify m.mm pairs.csv");
    assert!(close(number(&verified, "objective"), number(&trained, "objective"), 1e-9));
    let found = bench.json("evaluate m.mm test.csv --report e.html");
    assert!(number(&found, "error") < 0.35, "{found}");
    assert!(bench.text("e.html").contains("Level curves"));
    // The confusion table agrees with the error and with the output of predict.
    let outcomes = ["left", "tie", "right"];
    let cell = |truth: &str, said: &str| number(&found["confusion"][truth], said);
    let wrong: f64 = outcomes
        .iter()
        .flat_map(|truth| outcomes.iter().filter(move |said| *said != truth).map(move |said| cell(truth, said)))
        .sum();
    assert!(close(wrong / 300.0, number(&found, "error"), 1e-12));
    let predicted = lines(&bench.ok("predict m.mm test.csv").stdout);
    for said in outcomes {
        let counted = predicted.iter().filter(|line| line[0] == said).count() as f64;
        assert_eq!(outcomes.iter().map(|truth| cell(truth, said)).sum::<f64>(), counted);
    }
    bench.ok("evaluate m.mm test.csv").shows("truth  said left  said tie  said right");
}

#[test]
fn swapping_the_sides_turns_every_answer_round() {
    let bench = simulated("2");
    bench.ok("train compare pairs.csv --kernel gaussian -c 10 --gamma 0.5 -o m.mm");
    let text = bench.text("test.csv");
    let swapped: String = text
        .lines()
        .enumerate()
        .map(|(at, line)| {
            let cells: Vec<&str> = line.split(',').collect();
            let outcome = match (at, cells[4]) {
                (0, name) => name,
                (_, "left") => "right",
                (_, "right") => "left",
                (_, tie) => tie,
            };
            let (left, right) = (&cells[..2], &cells[2..4]);
            let sides = if at == 0 { [left, right].concat() } else { [right, left].concat() };
            format!("{},{outcome}\n", sides.join(","))
        })
        .collect();
    bench.write("swapped.csv", swapped);
    let straight = lines(&bench.ok("predict m.mm test.csv").stdout);
    let round = lines(&bench.ok("predict m.mm swapped.csv").stdout);
    for (one, other) in straight.iter().zip(&round) {
        let turned = match one[0].as_str() {
            "left" => "right",
            "right" => "left",
            tie => tie,
        };
        assert_eq!(turned, other[0]);
        for (here, there) in [(1, 2), (2, 1), (3, 3)] {
            assert!((real(&one[here]) - real(&other[there])).abs() < 1e-9, "{one:?} and {other:?}");
        }
    }
    assert_eq!(
        number(&bench.json("evaluate m.mm test.csv"), "error"),
        number(&bench.json("evaluate m.mm swapped.csv"), "error")
    );
}

#[test]
fn the_three_forms_of_the_same_pairs_give_the_same_model() {
    let bench = Workbench::new();
    bench.write("items.csv", ITEMS).write("pairs.csv", PAIRS);
    let named = bench.json("train compare pairs.csv --items items.csv -o named.mm -c 10 --tolerance 1e-9");
    bench.ok("convert pairs.csv --items items.csv -o wide.csv -q");
    let wide = bench.json("train compare wide.csv -o wide.mm -c 10 --tolerance 1e-9");
    assert!(close(number(&named, "objective"), number(&wide, "objective"), 1e-7));
    assert!(close(number(&named, "threshold"), number(&wide, "threshold"), 1e-3));
    let order = |text: &str| -> Vec<String> { lines(text).into_iter().map(|line| line[1].clone()).collect() };
    let by_name = order(&bench.ok("rank-items named.mm items.csv").stdout);
    assert_eq!(by_name, order(&bench.ok("rank-items wide.mm items.csv").stdout));
    // Without features, every item is a feature.
    bench.ok("train compare pairs.csv -o own.mm -c 10");
    let mut own = order(&bench.ok("rank-items own.mm").stdout);
    own.sort();
    assert_eq!(own, ["a", "b", "c", "d", "e", "f"]);
    bench.refused("rank-items wide.mm", "MM0405").says("no items are given");
}

#[test]
fn items_are_ranked_with_ties_that_share_ranks_for_every_method() {
    let bench = Workbench::new();
    bench.write("games.csv", GAMES);
    for method in ["compare", "rank", "rank2", "elo", "glicko", "bradley-terry", "trueskill"] {
        bench.ok(&format!("train compare games.csv --method {method} -o m.mm"));
        let object = bench.json("rank-items m.mm");
        let threshold = number(&object, "threshold");
        let items: Vec<&Value> = object["items"].as_array().expect("a list").iter().collect();
        assert_eq!(items.len(), 4);
        let scores: Vec<f64> = items.iter().map(|item| number(item, "score")).collect();
        assert!(scores.windows(2).all(|two| two[0] >= two[1]), "{method}: {scores:?}");
        for (item, score) in items.iter().zip(&scores) {
            let better = scores.iter().filter(|other| **other - score > threshold).count();
            assert_eq!(number(item, "rank"), 1.0 + better as f64, "{method}");
        }
        let listed = lines(&bench.ok("rank-items m.mm").stdout);
        assert_eq!(listed[0].len(), 3);
        assert_eq!(real(&listed[0][2]), scores[0]);
        std::fs::remove_file(bench.path("m.mm")).expect("written");
    }
}

#[test]
fn intervals_are_the_same_at_any_number_of_threads_and_in_any_output() {
    let bench = Workbench::new();
    bench.write("games.csv", GAMES).write("items.csv", ITEMS).write("pairs.csv", PAIRS);
    bench.ok("train compare games.csv --method bradley-terry -o games.mm -c 1");
    bench.ok("train compare pairs.csv --items items.csv -o pairs.mm -c 10");
    bench.write("preferences.csv", "better,worse\nc,a\ne,c\ne,b\nf,a\nf,d\nd,b\n");
    bench.ok("train rank preferences.csv --items items.csv -o rank.mm");
    for line in [
        "rank-items games.mm --pairs games.csv",
        "rank-items pairs.mm --pairs pairs.csv --items items.csv",
        "rank-items rank.mm --pairs preferences.csv --items items.csv",
    ] {
        let line = format!("{line} --resamples 40 --seed 3");
        let ran = bench.ok(&format!("{line} --threads 1")).says("centred on the mean over the items");
        assert_eq!(ran.stdout, bench.ok(&format!("{line} --threads 3")).stdout);
        bench.ok(&format!("{line} -o ranked.tsv"));
        assert_eq!(ran.stdout, bench.text("ranked.tsv"));
        for cells in lines(&ran.stdout) {
            assert_eq!(cells.len(), 5);
            let (low, high) = (real(&cells[3]), real(&cells[4]));
            assert!(low <= high, "{cells:?}");
        }
        let object = bench.json(&line);
        let resamples = &object["resamples"];
        assert_eq!(number(resamples, "learned") + number(resamples, "failed"), 40.0);
    }
    bench.write("fewer.csv", PAIRS.replace("a,d,right\n", ""));
    bench
        .ok("rank-items pairs.mm --pairs fewer.csv --items items.csv --resamples 20")
        .says("these are not the training pairs");
}

#[test]
fn a_stream_a_classifier_and_the_wrong_file_have_no_intervals() {
    let bench = Workbench::with_text();
    bench.write("games.csv", GAMES).write("items.csv", ITEMS);
    bench.ok("train classify text.txt -o classes.mm");
    bench.refused("rank-items classes.mm text.txt", "MM0402").says("is a classifier");
    bench.ok("train compare games.csv -o games.mm -c 10");
    bench.refused("rank-items games.mm --items items.csv", "MM0405");
    bench.refused("rank-items games.mm -o games.mm", "MM0108");
    bench.ok("learn compare games.csv -o stream.mm");
    assert_eq!(lines(&bench.ok("rank-items stream.mm").stdout).len(), 4);
    bench.refused("rank-items stream.mm --pairs games.csv", "MM0401").says("from a stream");
}

#[test]
fn data_without_pairs_are_refused_with_what_to_give() {
    let bench = simulated("linear");
    bench.write("items.csv", ITEMS).write("rows.txt", "1 1:2 2:3\n0 1:1\n").write("games.csv", GAMES);
    bench.ok("train compare pairs.csv -o m.mm -c 1 --loss logistic");
    for command in ["evaluate", "predict"] {
        bench.refused(&format!("{command} m.mm items.csv"), "MM0213").says("`left.NAME` and `right.NAME`");
        bench
            .refused(&format!("{command} m.mm rows.txt"), "MM0104")
            .says("the model compares items, so give a table of pairs");
    }
    bench.ok("train compare games.csv -o own.mm -c 10");
    bench.refused("evaluate own.mm items.csv", "MM0213").says("`left`, `right` and `outcome`, which name items");
}

#[test]
fn probabilities_are_measured_where_the_loss_has_them() {
    let bench = simulated("linear");
    bench.ok("train compare pairs.csv -o m.mm -c 1 --loss logistic");
    assert!(number(&bench.json("evaluate m.mm test.csv"), "log-loss") > 0.0);
    bench.ok("train compare pairs.csv -o h.mm -c 1 --loss logistic --method rank");
    assert!(bench.json("evaluate h.mm test.csv").get("log-loss").is_none());
}

#[test]
fn pairs_of_equal_items_that_are_decided_are_counted() {
    let bench = Workbench::new();
    bench
        .write("items.csv", ITEMS.replace("d,2.1,1.8", "d,2,2"))
        .write("pairs.csv", format!("{PAIRS}c,d,left\nd,c,left\n"));
    let line = "train compare pairs.csv --items items.csv -o m.mm -c 10";
    bench.ok(line).says("2 decided pairs compare two items with the same features: no score can tell them apart");
    assert_eq!(number(&bench.json(line)["pairs"], "indistinct"), 2.0);
    bench.write("pairs.csv", format!("{PAIRS}c,d,left\n"));
    bench.ok(line).says("1 decided pair compares two items with the same features");
    // Items without features are always distinct, whatever their names.
    let own = bench.json("train compare pairs.csv -o own.mm -c 10");
    assert_eq!(number(&own["pairs"], "indistinct"), 0.0);
}

#[test]
fn hostile_comparisons_are_refused_at_their_place() {
    let bench = Workbench::new();
    bench.write("items.csv", ITEMS);
    let refused = |pairs: &str, code: &str| {
        bench.write("pairs.csv", pairs);
        bench.refused("train compare pairs.csv --items items.csv -o m.mm", code)
    };
    refused("left,right,outcome\na,b,left\na,z,left\n", "MM0231").says("`z`");
    refused("left,right,outcome\na,b,left\na,a,tie\n", "MM0232").says("with itself");
    refused("left,right,outcome\na,b,left\na,c,draw\n", "MM0235").says("`draw`");
    refused("left,right,outcome\na,b,left\nb,c,right\n", "MM0323").says("none of the 2 pairs is a tie");
    refused("left,right,outcome\na,b,tie\nb,c,tie\n", "MM0323").says("all 2 pairs are ties");
}

#[test]
fn a_report_of_comparisons_speaks_of_pairs_and_draws_the_line_of_guesses() {
    let bench = simulated("linear");
    bench.ok("train compare pairs.csv -o m.mm -q");
    bench.ok("evaluate m.mm test.csv --metric error,auc,pair-accuracy --report r.html -q");
    let page = bench.text("r.html");
    assert!(page.contains("fraction of pairs whose outcome is predicted wrongly"));
    assert!(page.contains("guessing gives 0.25") && page.contains("fraction of decided pairs in the right order"));
    assert!(page.contains("ties called decided") && page.contains("right for half of the decided pairs"));
    for other in ["fraction of rows", "of a query", "false positive rate", "true positive rate"] {
        assert!(!page.contains(other), "{other}");
    }
}

#[test]
fn rating_models_are_inspected_without_a_loss_they_do_not_have() {
    let bench = Workbench::new();
    bench.write("g.csv", "left,right,outcome\na,b,left\nb,c,left\na,c,tie\nc,a,right\nb,a,right\nc,b,tie\n");
    for method in ["elo", "glicko", "trueskill", "bradley-terry"] {
        bench.ok(&format!("train compare g.csv --method {method} -o m.mm -q"));
        let ran = bench.ok("inspect m.mm");
        assert!(!ran.stdout.contains("hinge") && !ran.stdout.contains("without its witness"), "{}", ran.stdout);
        let told = if method == "bradley-terry" { "likelihood of the outcomes" } else { "predicted wrongly" };
        ran.shows(told);
    }
}

#[test]
fn a_threshold_of_rounding_is_not_shown_as_a_number() {
    let bench = Workbench::new();
    // Equal records in another order: the strengths of a and b differ by rounding, if at all.
    let mut games = String::from("left,right,outcome\n");
    for (one, other) in [("a", "b"), ("c", "d"), ("a", "c"), ("b", "d"), ("a", "d"), ("b", "c")] {
        let outcome = if matches!((one, other), ("a", "b") | ("c", "d")) { "tie" } else { "left" };
        games.push_str(&format!("{one},{other},{outcome}\n"));
    }
    bench.write("g.csv", games);
    let ran = bench.ok("train compare g.csv --method bradley-terry -o m.mm");
    ran.shows("a tie only where scores are equal up to rounding");
    bench.ok("inspect m.mm").shows("equal up to rounding");
    bench.ok("evaluate m.mm g.csv --report r.html -q");
    assert!(bench.text("r.html").contains("predicts a tie only where scores are equal"));
}
