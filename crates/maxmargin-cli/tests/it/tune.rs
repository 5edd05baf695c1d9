//! `tune`: the table, the JSON object, the choice, the model, the report and what is refused.

use crate::workbench::{Workbench, number};
use serde_json::Value;

fn rows(tuned: &Value) -> &Vec<Value> {
    tuned["rows"].as_array().expect("rows")
}

#[test]
fn the_best_row_is_named_with_all_that_was_measured() {
    for (bench, line, values) in [
        (Workbench::with_text(), "tune classify text.txt --grid 0.01:1:5 --metric accuracy,auc,f1", 5),
        (Workbench::with_search(), "tune rank search.txt --folds 4 --metric ndcg@3,map,pair-accuracy", 20),
    ] {
        let tuned = bench.json(line);
        assert_eq!(rows(&tuned).len(), values);
        let folds = tuned["folds"].as_array().expect("folds").len();
        let best = rows(&tuned).iter().map(|row| number(row, "mean")).fold(0.0, f64::max);
        assert_eq!(number(&tuned["best"], "mean"), best, "{tuned}");
        assert_eq!(tuned["best"], tuned["best_mean"]);
        for (at, row) in rows(&tuned).iter().enumerate() {
            assert!(at == 0 || number(row, "c") > number(&rows(&tuned)[at - 1], "c"), "{tuned}");
            let held_out: Vec<f64> = row["folds"].as_array().expect("folds").iter().filter_map(Value::as_f64).collect();
            assert_eq!(held_out.len(), folds);
            let mean = held_out.iter().sum::<f64>() / folds as f64;
            assert!((mean - number(row, "mean")).abs() < 1e-12, "{row}");
            assert!(number(row, "standard_error") >= 0.0 && number(row, "gap") <= 1e-3, "{row}");
            assert!(row["converged"] == true && row["passes"].is_u64() && number(row, "seconds") >= 0.0, "{row}");
            assert!(number(row, "lambda") > 0.0);
            let names: Vec<&String> = row["metrics"].as_object().expect("metrics").keys().collect();
            assert_eq!(names.len(), 3, "{names:?}");
        }
        let row = &rows(&tuned)[tuned["best"]["row"].as_u64().expect("a number") as usize];
        assert_eq!(row["c"], tuned["best"]["c"]);
    }
}

#[test]
fn the_chosen_c_is_learned_from_all_rows_saved_and_proven() {
    for (bench, task, file) in
        [(Workbench::with_text(), "classify", "text"), (Workbench::with_search(), "rank", "search")]
    {
        let line = format!("tune {task} {file}.txt --scale standard --one-standard-error -o m.mm --report r.html");
        let tuned = bench.json(&line);
        let (chosen, best) = (&tuned["best"], &tuned["best_mean"]);
        assert_eq!(chosen, &tuned["one_standard_error"]);
        assert!(number(chosen, "c") <= number(best, "c"));
        assert!(number(chosen, "mean") >= number(best, "mean") - number(best, "standard_error"), "{tuned}");
        assert_eq!(tuned["model"]["converged"], true);
        let model = bench.json("inspect m.mm");
        assert_eq!(model["c"], chosen["c"], "{model}");
        bench.ok(&format!("verify m.mm {file}.txt")).shows("the certificate holds");
        bench.ok(&format!("evaluate m.mm {file}-test.txt"));
        let report = bench.text("r.html");
        for part in ["against C", "fold 5", "one standard error", "Passes", "Relative gap", "Settings", "Convergence"] {
            assert!(report.contains(part), "the report lacks `{part}`");
        }
    }
}

#[test]
fn the_next_command_repeats_the_settings() {
    let bench = Workbench::with_text();
    let flags = "--class-weight=-1=2,1=1 --loss squared-hinge --precision f64 --intercept penalised --seed 3";
    let ran = bench.ok(&format!("tune classify text.txt --grid 0.1,1 --folds 3 {flags}"));
    let next = ran.stdout.lines().find_map(|line| line.strip_prefix("next: maxmargin ")).expect("a next command");
    let trained = bench.json(next);
    assert!([0.1, 1.0].contains(&number(&trained, "c")), "{next}");
    let settings = bench.json("inspect model.mm --settings");
    assert_eq!(settings["train"]["class-weight"], "-1=2,1=1", "{next}");
    assert_eq!(settings["train"]["intercept"], "penalised");
    assert_eq!(settings["read"]["precision"], "f64");
}

#[test]
fn a_best_value_at_the_end_of_the_grid_is_pointed_out() {
    let bench = Workbench::with_search();
    let two = bench.json("tune rank search.txt --grid 1e-9,1");
    assert_eq!(two["best"]["edge"], "highest", "{two}");
    bench.ok("tune rank search.txt --grid 1e-9,1").shows("the largest that was tried").shows("try --grid 1e-1:1e3:20");
    let one = bench.json("tune rank search.txt --grid 1");
    assert_eq!(one["best"]["edge"], Value::Null);
}

#[test]
fn the_table_marks_the_chosen_row_and_slow_settings() {
    let bench = Workbench::with_text();
    let ran = bench.ok("tune classify text.txt --grid 0.1,1,10 --folds 3 --max-passes 1 --tolerance 1e-9");
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with('→')).count(), 1, "{}", ran.stdout);
    let _ = ran.shows("3 settings did not converge").shows("best: C = ");
    assert!(bench.ok("tune classify text.txt --grid 1 --folds 3 -q").stdout.starts_with("best: C = 1"));
}

#[test]
fn threads_change_nothing_but_the_times() {
    let bench = Workbench::with_text();
    let run = |threads: u8| {
        let mut tuned = bench.json(&format!("tune classify text.txt --grid 0.1,1,10 --threads {threads} -o m.mm"));
        tuned["seconds"].take();
        tuned["rows"].as_array_mut().expect("rows").iter_mut().for_each(|row| drop(row["seconds"].take()));
        (tuned, bench.read("m.mm"))
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn settings_come_from_a_file_but_for_what_is_to_be_found() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -c 7 --loss squared-hinge --scale standard -o m.mm -q");
    bench.write("settings.toml", bench.ok("inspect m.mm --settings").stdout);
    let tuned = bench.json("tune classify text.txt --config settings.toml --grid 0.1,1 -o tuned.mm");
    let model = bench.json("inspect tuned.mm --settings");
    assert_eq!(model["train"]["loss"], "squared-hinge");
    assert_eq!(model["train"]["c"], tuned["best"]["c"]);
    bench.refused("tune rank text.txt --config settings.toml", "MM0404").says("`tune rank`");
}

#[test]
fn what_cannot_be_tuned_is_refused_before_or_after_reading() {
    let bench = Workbench::with_text();
    for grid in ["", "0", "x", "1:2", "2:1:3", "1,-2", "1:10:1", "1:inf:3", "-1"] {
        let ran = bench.command("tune classify text.txt").arg(format!("--grid={grid}")).output().expect("it starts");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{grid}: {said}");
        assert!(
            said.contains("error[MM0402]") && said.contains("0.1,1,10")
                || said.contains("write a grid from low to high"),
            "{grid}: {said}"
        );
    }
    bench.refused("tune classify text.txt --folds 1", "MM0402").says("at least 2 folds");
    bench.refused("tune classify text.txt --folds 601", "MM0311").says("600 rows").says("--folds");
    bench.refused("tune classify text.txt -c 1", "MM0402").says("--grid 0.1,1,10");
    bench.refused("tune classify text.txt --lambda 1", "MM0402");
    bench.refused("tune classify text.txt --holdout 0.2", "MM0402").says("each fold");
    bench.refused("tune classify text.txt --metric acuracy", "MM0403").says("accuracy");
    bench.refused("tune classify text.txt --metric ndcg@10", "MM0303");
    bench.refused("tune classify text.txt -o m.mm --report m.mm", "MM0108");
    bench.refused("tune classify text.txt -o text.txt", "MM0108");
    bench.refused("tune rank text.txt", "MM0303");
    bench.refused("tune classify absent.txt", "MM0101");
    bench.write("one.txt", "1 1:1\n".to_string() + &"-1 1:0.5\n".repeat(20));
    bench.refused("tune classify one.txt --folds 3", "MM0301").says("fold ").says("fewer folds");
    bench.write("same.txt", "1 1:1\n".repeat(20));
    bench.refused("tune classify same.txt --folds 3", "MM0301").says("every row has the same class");
    bench.write("few.txt", "1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n0 qid:2 1:3\n");
    bench.refused("tune rank few.txt --folds 3", "MM0311").says("2 queries");
}

#[test]
fn rows_are_judged_on_a_validation_file_as_models_trained_apart_are() {
    for (bench, task, files, metric) in [
        (Workbench::with_text(), "classify", ("text.txt", "text-test.txt"), "accuracy"),
        (Workbench::with_search(), "rank", ("search.txt", "search-test.txt"), "map"),
    ] {
        let (train, test) = files;
        let line = format!("tune {task} {train} --validation {test} --grid 0.01,1 --metric {metric} --scale standard");
        let tuned = bench.json(&line);
        for row in rows(&tuned) {
            let c = number(row, "c");
            let trained = bench.json(&format!("train {task} {train} -c {c} --scale standard -o m.mm"));
            assert_eq!(number(row, "lambda"), number(&trained, "lambda"), "validation rows count in no total");
            let apart = bench.json(&format!("evaluate m.mm {test} --metric {metric}"));
            let (apart, found) = (number(&apart, metric), number(row, "mean"));
            // Both stop at a gap of 1e-3, from other starts.
            assert!((apart - found).abs() < 0.01, "{task} at {c}: {found}, and {apart} apart");
        }
    }
    let bench = Workbench::with_search();
    bench.write("words.csv", "label,x\nham,1\nspam,2\nham,3\nspam,4\n");
    bench.write("numbers.csv", "label,x\n0,1\n1,2\n0,3\n1,4\n");
    let mixed = bench.refused("tune classify words.csv --validation numbers.csv --grid 1", "MM0202");
    mixed.says("numbers.csv");
}

#[test]
fn comparisons_with_logistic_loss_are_tuned_by_log_loss() {
    let bench = Workbench::new();
    bench.ok("simulate compare --pairs 400 -o games.csv -q");
    let tuned = bench.json("tune compare games.csv --loss logistic --metric log-loss --grid 0.1,1");
    assert!(rows(&tuned).iter().all(|row| number(row, "mean") > 0.0 && number(row, "mean") < 1.2), "{tuned}");
    bench.refused("tune compare games.csv --loss squared-hinge --metric log-loss --grid 1", "MM0308").says("log-odds");
}

#[test]
fn settings_without_a_threshold_are_marked_and_end_only_what_needs_a_model() {
    let bench = Workbench::new();
    // Strengths 0 to 7: items next to each other tie, others do not.
    let games = (0..8i32).flat_map(|a| (0..8i32).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let clear: String = games
        .map(|(a, b)| {
            format!("i{a},i{b},{}\n", if a.abs_diff(b) <= 1 { "tie" } else { ["right", "left"][(a > b) as usize] })
        })
        .collect();
    bench.write("clear.csv", format!("left,right,outcome\n{}", clear.repeat(3)));
    let tuned = bench.json("tune compare clear.csv --grid 1e-5,1 -o m.mm");
    let marks: Vec<bool> = rows(&tuned).iter().map(|row| row["without_threshold"] == true).collect();
    assert_eq!(marks, [true, false], "{tuned}");
    assert_eq!(tuned["best"]["row"], 1);
    bench.ok("tune compare clear.csv --grid 1e-5").shows("no setting learns a threshold for ties");
    // The table stands, and there is no model.
    let ran = bench.run("tune compare clear.csv --grid 1e-5,2e-5 -o n.mm").shows("no threshold");
    assert_eq!((ran.exit, bench.path("n.mm").exists()), (Some(2), false));
    ran.says("error[MM0323]: none of the 2 settings learns a threshold for ties").says("--tolerance");
}
