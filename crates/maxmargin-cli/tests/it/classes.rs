//! `train classify` with several classes: from words as labels to a proven model, evaluated, tuned and used.

use crate::workbench::{Workbench, number};

/// Rows of four classes around four corners, and a test file with a label that the training file does not have.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let file = |rows: std::ops::Range<u32>, strange: u32| {
        let mut text = String::from("wind,x,y,z\n");
        for row in rows {
            let class = (row % 4) as usize;
            let noise = |step: u32| f64::from((row * step) % 13) / 13.0 - 0.5;
            let (x, y) = ([1.0, 0.0, -1.0, 0.0][class] + noise(7), [0.0, 1.0, 0.0, -1.0][class] + noise(5));
            let label = if row % 10 < strange { "calm" } else { ["east", "north", "west", "south"][class] };
            text.push_str(&format!("{label},{x},{y},{}\n", noise(3)));
        }
        text
    };
    bench.write("train.csv", file(0..160, 0)).write("test.csv", file(1000..1040, 0));
    bench.write("strange.csv", file(1000..1040, 2));
    bench
}

const TRAIN: &str = "train classify train.csv --target wind -o m.mm";

#[test]
fn words_are_learned_in_every_form_verified_and_predicted() {
    let bench = bench();
    for more in [
        "",
        "--loss squared-hinge",
        "--loss logistic",
        "--multiclass weston-watkins",
        "--solver cutting-plane --intercept penalised",
        "--intercept none --scale standard",
        "--intercept penalised --class-weight balanced",
    ] {
        let object = bench.json(&format!("{TRAIN} {more} --report r.html"));
        assert_eq!(object["converged"], true, "{more}");
        assert_eq!(number(&object, "constraints"), 160.0 * 3.0);
        let verified = bench.json("verify m.mm train.csv");
        assert_eq!(number(&verified, "objective"), number(&object, "objective"), "{more}");
        let measured = bench.json("evaluate m.mm test.csv --report e.html");
        assert!(number(&measured, "accuracy") > 0.8, "{more}");
        assert!(number(&measured, "f1-macro") > 0.8, "{more}");
        assert!(bench.text("r.html").contains("</html>") && bench.text("e.html").contains("</html>"));
    }
    bench.ok("predict m.mm test.csv -o predicted.txt");
    let predicted = bench.text("predicted.txt");
    let first: Vec<&str> = predicted.lines().next().expect("a line").split('\t').collect();
    assert_eq!((predicted.lines().count(), first.len(), first[0]), (40, 2, "east"));
    bench.ok("predict m.mm test.csv --all-scores -o scores.txt");
    for (one, all) in predicted.lines().zip(bench.text("scores.txt").lines()) {
        let (label, score) = one.split_once('\t').expect("two fields");
        let all: Vec<&str> = all.split('\t').collect();
        assert_eq!((all.len(), all[0]), (5, label));
        let class = ["east", "north", "south", "west"].iter().position(|name| *name == label).expect("a class");
        assert_eq!(all[1 + class], score);
    }
    bench.refused("predict m.mm test.csv --format trec", "MM0401").says("one for each class");
}

#[test]
fn labels_the_model_does_not_know_are_counted_and_wrong() {
    let bench = bench();
    bench.ok(TRAIN);
    let known = bench.json("evaluate m.mm test.csv");
    assert!(known.get("unknown_labels").is_none());
    bench.ok("evaluate m.mm strange.csv").shows("accuracy").shows("f1-macro").says("8 rows have labels");
    let strange = bench.json("evaluate m.mm strange.csv");
    assert_eq!(number(&strange, "unknown_labels"), 8.0);
    assert!(number(&strange, "accuracy") <= 0.8);
    bench.ok("evaluate m.mm strange.csv --metric accuracy --interval");
}

#[test]
fn inspect_lists_the_classes_and_names_weights_by_class() {
    let bench = bench();
    bench.ok(TRAIN);
    bench
        .ok("inspect m.mm")
        .shows("4, the one with the largest score: `east`, `north`, `south`, `west`")
        .shows("one for each class")
        .shows("x for `east`");
    let object = bench.json("inspect m.mm");
    assert_eq!(object["classes"], serde_json::json!(["east", "north", "south", "west"]));
    assert_eq!(object["intercepts"].as_array().map(Vec::len), Some(4));
}

#[test]
fn several_classes_are_tuned_and_held_out() {
    let bench = bench();
    let tuned = bench.json("tune classify train.csv --target wind --grid 0.001:1:3 --folds 4 -o t.mm");
    assert!(tuned.to_string().contains("accuracy"), "{tuned}");
    assert!(number(&bench.json("evaluate t.mm test.csv"), "accuracy") > 0.8);
    bench.ok(&format!("{TRAIN} --holdout 0.25")).shows("f1-macro");
    bench.ok(&format!("{TRAIN} --validation test.csv --metric accuracy"));
}

#[test]
fn what_several_classes_have_not_is_refused() {
    let bench = bench();
    bench.refused(&format!("{TRAIN} --positive east"), "MM0302").says("there are 4 classes");
    bench.refused(&format!("{TRAIN} --multiclass joint --loss squared-hinge"), "MM0402").says("weston-watkins");
    bench.refused(&format!("{TRAIN} --holdout 0.25 --metric f1"), "MM0302");
    bench.refused(&format!("{TRAIN} --holdout 0.25 --metric log-loss"), "MM0308");
    bench.run(&format!("{TRAIN} --holdout 0.25 --metric auc,log-loss --probability platt")).shows("log-loss");
    bench.run(&format!("{TRAIN} --kernel gaussian --solver lasvm")).failed(2, "MM0401");
    bench.run(&format!("{TRAIN} --kernel gaussian --loss logistic")).failed(2, "MM0401");
}

#[test]
fn a_cost_matrix_is_read_from_its_file_and_kept_in_the_model() {
    let bench = Workbench::new();
    let mut rows = String::from("label,p,q\n");
    for row in 0..30 {
        let class = row % 3;
        rows.push_str(&format!("{},{},{}\n", ["a", "b", "c"][class], class as f64 + 0.07 * row as f64, row % 7));
    }
    bench.write("rows.csv", &rows).write("costs.csv", "label,a,b,c\na,0,1,4\nb,1,0,2\nc,1,1,0\n");
    let train = "train classify rows.csv -o m.mm --cost-matrix costs.csv";
    bench.ok(train);
    bench.ok("verify m.mm rows.csv");
    assert!(number(&bench.json("evaluate m.mm rows.csv"), "cost") >= 0.0);
    bench.write("costs.csv", "label,a,b,c\na,0,1,4\nb,1,3,2\nc,1,1,0\n");
    bench.refused(train, "MM0402").says("line 3, column 3").says("costs.csv");
    bench.refused("train classify rows.csv -o m.mm --cost-matrix nowhere.csv", "MM0101").says("nowhere.csv");
    bench.refused("train classify rows.csv -o m.mm --margin hard -c 2", "MM0402").says("--margin");
    bench.refused("train classify rows.csv -o m.mm --margin hard --loss logistic", "MM0402").says("--loss");
    bench.refused("train one-class rows.csv -o m.mm --margin hard", "MM0402").says("--margin");
}
