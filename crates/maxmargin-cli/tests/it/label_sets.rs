//! `train multilabel`: from files with sets of labels to a proven model, evaluated, tuned, inspected and used.

use crate::workbench::{Workbench, number};

/// Rows with up to three labels, one for each feature that is large: as svmlight, as a table with a cell of labels, and
/// as a table with a column for each label.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let names = ["left", "right", "up"];
    let (mut svm, mut cells, mut columns) =
        (String::new(), String::from("x,y,z,tags\n"), String::from("x,y,z,left,right,up\n"));
    for row in 0..120u32 {
        let value = |step: u32| f64::from((row * step + row / 7) % 17) / 16.0;
        let values = [value(3), value(5), value(11)];
        let own: Vec<usize> = (0..3).filter(|&label| values[label] > 0.6).collect();
        let numbers: Vec<String> = own.iter().map(|label| (label + 1).to_string()).collect();
        let [x, y, z] = values;
        svm.push_str(&format!("{} 1:{x} 2:{y} 3:{z}\n", numbers.join(",")));
        let words: Vec<&str> = own.iter().map(|&label| names[label]).collect();
        cells.push_str(&format!("{x},{y},{z},\"{}\"\n", words.join(";")));
        let has = |label: usize| u8::from(own.contains(&label));
        columns.push_str(&format!("{x},{y},{z},{},{},{}\n", has(0), has(1), has(2)));
    }
    bench.write("train.svm", svm).write("cells.csv", cells).write("columns.csv", columns);
    bench
}

#[test]
fn sets_are_learned_in_every_form_verified_and_predicted() {
    let bench = bench();
    for more in [
        "",
        "--loss hinge",
        "--loss hinge --solver newton --intercept penalised",
        "--loss hinge --solver dual-coordinate-descent --intercept none --scale standard",
        "--loss hinge --kernel gaussian --gamma 2",
        "--approximate nystrom:30 --kernel gaussian --gamma 2",
        "--multilabel one-vs-rest",
        "--multilabel one-vs-rest --loss squared-hinge",
    ] {
        let object = bench.json(&format!("train multilabel train.svm -c 10 -o m.mm {more} --report r.html"));
        assert_eq!(object["converged"], true, "{more}");
        let verified = bench.json("verify m.mm train.svm");
        let (stated, found) = (number(&object, "objective"), number(&verified, "objective"));
        assert!((stated - found).abs() <= 1e-12 * stated, "{more}: {stated} is not {found}");
        let measured = bench.json("evaluate m.mm train.svm --report e.html");
        assert!(number(&measured, "label-ranking-average-precision") > 0.9, "{more}: {measured}");
        assert!(number(&measured, "ranking-loss") < 0.1 && number(&measured, "f1-micro") > 0.8, "{more}: {measured}");
        assert!(measured["by-label"]["2"]["f1"].as_f64().is_some_and(|f1| f1 > 0.7), "{more}");
        assert!(bench.text("r.html").contains("</html>") && bench.text("e.html").contains("</html>"));
        bench.ok("inspect m.mm").shows("task            multilabel");
    }
    bench.ok("predict m.mm train.svm -o predicted.txt");
    bench.ok("predict m.mm train.svm --all-scores -o scores.txt");
    for (one, all) in bench.text("predicted.txt").lines().zip(bench.text("scores.txt").lines()) {
        let (labels, scores) = one.split_once('\t').expect("two fields");
        let all: Vec<&str> = all.split('\t').collect();
        assert_eq!((all.len(), all[0]), (4, labels));
        let mut above: Vec<(f64, &str)> = Vec::new();
        for (score, name) in all[1..].iter().zip(["1", "2", "3"]) {
            let score: f64 = score.parse().expect("a number");
            if score > 0.0 {
                above.push((score, name));
            }
        }
        above.sort_by(|a, b| b.0.total_cmp(&a.0));
        assert_eq!(labels, above.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(","));
        assert_eq!(scores.split(',').filter(|score| !score.is_empty()).count(), above.len());
    }
    bench.refused("predict m.mm train.svm --format trec", "MM0401");
}

#[test]
fn a_file_is_described() {
    let bench = bench();
    let ran = bench.ok("train multilabel train.svm -o m.mm");
    let _ = ran.says("3 labels, ");
    let shown = bench.ok("evaluate m.mm train.svm");
    let _ = shown.shows("each label");
}

#[test]
fn tables_hold_sets_in_cells_or_in_columns() {
    let bench = bench();
    let from = |flags: &str| {
        let object = bench.json(&format!("train multilabel {flags} -o m.mm --holdout 0.25"));
        assert_eq!(object["converged"], true, "{flags}");
        number(&object, "objective")
    };
    let cells = from("cells.csv --target tags --label-separator ;");
    let columns = from("columns.csv --labels left,right,up");
    assert!((cells - columns).abs() < 1e-9 * cells, "{cells} {columns}");
    // The model remembers how to read such data.
    bench.ok("evaluate m.mm columns.csv");
    bench.write("new.csv", "x,y,z\n1,0,1\n0,0,0\n");
    bench.ok("predict m.mm new.csv -o predicted.txt");
    assert_eq!(bench.text("predicted.txt").lines().count(), 2);
    // A cache and a table keep the sets, and the hash of the data.
    for (from, flags, to) in [
        ("cells.csv", "--target tags --label-separator ;", "kept.mmd"),
        ("columns.csv", "--labels left,right,up", "kept.mmd"),
        ("train.svm", "", "kept.csv"),
    ] {
        bench.ok(&format!("convert {from} {flags} -o {to}"));
        let object = bench.json(&format!("train multilabel {from} {flags} -o a.mm"));
        let again = bench.json(&format!("train multilabel {to} -o b.mm"));
        assert_eq!(number(&object, "objective"), number(&again, "objective"), "{from} {to}");
        bench.ok(&format!("verify a.mm {to}"));
        std::fs::remove_file(bench.path(to)).expect("there");
    }
}

#[test]
fn cells_that_are_no_labels_are_refused() {
    let bench = bench();
    bench.write("half.csv", "x,a,b\n1,0,1\n2,0.5,0\n").write("empty.csv", "x,tags\n1,a;b\n2,a;;b\n");
    bench.refused("train multilabel half.csv --labels a,b -o m.mm", "MM0202").says("neither 0 nor 1");
    bench
        .refused("train multilabel empty.csv --target tags --label-separator ; -o m.mm", "MM0202")
        .says("a label is empty");
    bench.refused("train multilabel half.csv --labels a,c -o m.mm", "MM0213").says("no column `c`");
    bench.refused("train multilabel half.csv --labels a,b --target x -o m.mm", "MM0402");
    bench.refused("train multilabel half.csv --target a --label-separator ab -o m.mm", "MM0402");
}

#[test]
fn labels_too_uncertain_for_the_hinge_are_said_to_teach_nothing() {
    let bench = Workbench::new();
    let mut text = String::new();
    for row in 0..80 {
        let x = f64::from(row % 40) / 40.0;
        text.push_str(&format!("{} 1:{x}\n", if row < 40 { "1,3" } else { "2,3" }));
        text.push_str(&format!("{} 1:{x}\n", if row < 40 { "2" } else { "1" }));
    }
    bench.write("train.svm", text);
    let ran = bench.ok("train multilabel train.svm --loss hinge -o m.mm");
    let ran = ran.shows("NOTHING learned");
    let _ = ran.shows("--loss logistic");
    assert_eq!(bench.json("train multilabel train.svm --loss hinge -o m.mm")["learned_nothing"], true);
    assert!(bench.json("train multilabel train.svm -o m.mm").get("learned_nothing").is_none());
}

#[test]
fn c_is_tuned_by_a_metric_of_sets() {
    let bench = bench();
    let tuned = bench.json("tune multilabel train.svm --folds 3 -o m.mm");
    assert_eq!(tuned["metric"], "label-ranking-average-precision", "{tuned}");
    let tuned = bench.json("tune multilabel train.svm --folds 3 --metric f1-micro --multilabel one-vs-rest");
    assert!(number(&tuned["best"], "c") > 0.0, "{tuned}");
    bench.refused("tune multilabel train.svm --folds 3 --metric accuracy", "MM0308");
}

#[test]
fn other_tasks_say_what_takes_sets() {
    let bench = bench();
    bench.refused("train classify train.svm -o m.mm", "MM0220").says("train multilabel");
}

#[test]
fn a_stream_of_sets_in_two_parts_gives_the_bytes_of_one() {
    let bench = bench();
    bench.ok("simulate multilabel --rows 1200 --labels 5 --seed 3 -o all.svm -q");
    let all = String::from_utf8(bench.read("all.svm")).expect("text");
    let lines: Vec<&str> = all.lines().collect();
    let part = |lines: &[&str]| lines.join("\n") + "\n";
    bench.write("first.svm", part(&lines[..480])).write("rest.svm", part(&lines[480..]));
    for way in [
        "",
        "--step two-labels -c 0.01",
        "--solver averaged-sgd --rate 0.1",
        "--solver sgd --loss hinge --rate 0.1 --batch 4 --intercept free",
        "--solver pegasos --loss hinge --lambda 1e-3 --intercept none",
        "--solver averaged-sgd --multilabel one-vs-rest --loss squared-hinge --rate 0.05",
    ] {
        let said = bench.json(&format!("learn multilabel all.svm -o whole.mm {way}"));
        assert_eq!(number(&said, "rows"), 1200.0, "{way}");
        assert_eq!(said["bound of 1 - average precision"].is_null(), way.contains("solver"), "{way}: {said}");
        bench.ok(&format!("learn multilabel first.svm -o part.mm {way} -q"));
        bench.ok("learn multilabel rest.svm --from part.mm -o part.mm -q");
        assert!(bench.read("whole.mm") == bench.read("part.mm"), "{way}: the bytes differ");
        let measured = bench.json("evaluate whole.mm all.svm");
        assert!(number(&measured, "label-ranking-average-precision") > 0.85, "{way}: {measured}");
        bench.ok("inspect whole.mm").shows("a stream of 1,200 rows");
        bench.ok("predict whole.mm all.svm -o out.txt -q");
    }
    // The rate is found on the first rows.
    bench.ok("learn multilabel all.svm --solver averaged-sgd -o model.mm -q");
    bench.refused("verify model.mm all.svm", "MM0401");
    // A batch model is continued from its weights.
    bench.ok("train multilabel first.svm -o batch.mm -q");
    bench.ok("learn multilabel rest.svm --from batch.mm -o model.mm").says("continuing from the weights of batch.mm");
}

#[test]
fn streams_of_sets_with_other_labels_or_settings_are_refused() {
    let bench = bench();
    bench.write("sets.svm", "1,2 1:1\n 1:2\n2 2:1\n");
    bench.ok("learn multilabel sets.svm --classes 1,2,never -o model.mm -q");
    bench.ok("inspect model.mm").shows("never");
    bench.refused("learn multilabel sets.svm --classes 1,3 -o model.mm", "MM0312").says("`2` of row 1");
    bench.write("empty.svm", " 1:1\n 2:1\n");
    bench.refused("learn multilabel empty.svm -o model.mm", "MM0301");
    for (line, code) in [
        ("--loss logistic", "MM0402"),
        ("--lambda 1e-4", "MM0402"),
        ("--multilabel one-vs-rest", "MM0402"),
        ("--solver sgd --loss squared-hinge", "MM0402"),
        ("--solver sgd --step two-labels", "MM0402"),
        ("--solver sgd -c 1", "MM0402"),
        ("--solver pegasos --rate 0.1", "MM0402"),
        ("--solver newton", "MM0405"),
    ] {
        bench.refused(&format!("learn multilabel sets.svm {line} -o model.mm"), code);
    }
}
