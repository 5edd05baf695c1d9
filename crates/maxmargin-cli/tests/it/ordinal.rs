//! `train ordinal`: from a table with ratings to a proven model, evaluated, tuned and used.

use crate::workbench::{Workbench, number};

/// Rows with ratings 1, 2, 3 and 5, and a test file in which some have rating 4.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let file = |rows: std::ops::Range<u32>, strange: bool| {
        let mut text = String::from("stars,x,y,z\n");
        for row in rows {
            let class = (row % 4) as usize;
            let noise = |step: u32| f64::from((row * step) % 13) / 13.0 - 0.5;
            let (x, y) = (class as f64 + noise(7), 0.5 * class as f64 - noise(5));
            let stars = if strange && row % 10 < 2 { 4 } else { [1, 2, 3, 5][class] };
            text.push_str(&format!("{stars},{x},{y},{}\n", noise(3)));
        }
        text
    };
    bench.write("train.csv", file(0..160, false)).write("test.csv", file(1000..1040, false));
    bench.write("strange.csv", file(1000..1040, true));
    bench.write("words.csv", "stars,x\ngood,1\nbad,2\ngood,3\n");
    bench
}

const TRAIN: &str = "train ordinal train.csv --target stars -o m.mm";

#[test]
fn ratings_are_learned_in_every_form_verified_and_predicted() {
    let bench = bench();
    for more in [
        "",
        "--form explicit",
        "--form explicit --loss squared-hinge --class-weight balanced",
        "--loss logistic --scale standard",
        "--solver cutting-plane",
        "--kernel gaussian",
        "--kernel gaussian --form explicit --loss squared-hinge",
        "--kernel gaussian --approximate nystrom:30",
    ] {
        let object = bench.json(&format!("{TRAIN} {more} --report r.html"));
        assert_eq!(object["converged"], true, "{more}");
        let constraints = if more.contains("explicit") { 240.0 } else { 480.0 };
        assert_eq!(number(&object, "constraints"), constraints, "{more}");
        bench.json("verify m.mm train.csv");
        let measured = bench.json("evaluate m.mm test.csv --report e.html");
        assert!(number(&measured, "mae") < 0.4, "{more}: {measured}");
        assert!(number(&measured, "accuracy") > 0.7, "{more}");
        assert!(bench.text("r.html").contains("</html>") && bench.text("e.html").contains("rank 5"));
    }
    bench.ok("predict m.mm test.csv -o predicted.txt");
    let predicted = bench.text("predicted.txt");
    let first: Vec<&str> = predicted.lines().next().expect("a line").split('\t').collect();
    assert_eq!((predicted.lines().count(), first.len()), (40, 2));
    assert!(["1", "2", "3", "5"].contains(&first[0]) && first[1].parse::<f64>().is_ok(), "{first:?}");
}

#[test]
fn the_ranks_and_cuts_are_told() {
    let bench = bench();
    bench
        .ok(TRAIN)
        .shows("4 ranks, 1 to 5, with cuts at")
        .says("4 ranks: 1 (40 rows), 2 (40 rows), 3 (40 rows), 5 (40 rows)");
    bench.ok("inspect m.mm").shows("4 ranks, 1 to 5, with cuts at");
    let object = bench.json("inspect m.mm");
    assert_eq!(object["ranks"], serde_json::json!([1.0, 2.0, 3.0, 5.0]));
    assert_eq!(object["cuts"].as_array().map(Vec::len), Some(3));
}

#[test]
fn ranks_the_model_does_not_know_are_counted_and_wrong() {
    let bench = bench();
    bench.ok(TRAIN);
    bench.ok("evaluate m.mm strange.csv").shows("mae").shows("accuracy").says("8 rows have ranks");
    let strange = bench.json("evaluate m.mm strange.csv");
    assert_eq!(number(&strange, "unknown_labels"), 8.0);
    assert!(number(&strange, "accuracy") <= 0.8);
    // Orders are those of the scores.
    bench.ok("evaluate m.mm test.csv --metric rmse,accuracy,mae --interval");
}

#[test]
fn ratings_are_tuned_and_held_out() {
    let bench = bench();
    let tuned = bench.json("tune ordinal train.csv --target stars --grid 0.001:1:3 --folds 4 -o t.mm");
    assert!(tuned.to_string().contains("mae"), "{tuned}");
    assert!(number(&bench.json("evaluate t.mm test.csv"), "mae") < 0.4);
    bench.ok(&format!("{TRAIN} --holdout 0.25")).shows("mae");
    bench.ok(&format!("{TRAIN} --validation test.csv --metric accuracy"));
}

#[test]
fn what_is_no_rating_is_refused() {
    let bench = bench();
    bench.refused("train ordinal words.csv --target stars -o m.mm", "MM0202").says("train classify");
    bench.refused(&format!("{TRAIN} --form explicit --solver cutting-plane"), "MM0402").says("--form implicit");
    bench.refused(&format!("{TRAIN} --kernel gaussian --loss logistic"), "MM0401").says("--approximate");
    bench.refused(&format!("{TRAIN} --class-weight 4=2"), "MM0312");
    bench.run(&format!("{TRAIN} --solver sgd")).failed(2, "MM0401");
}
