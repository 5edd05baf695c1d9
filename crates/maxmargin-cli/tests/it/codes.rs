//! `train classify` with output codes: from a matrix in a file to a proven model, its bound and its matrix.

use crate::workbench::{Workbench, number};

/// Rows of four classes around four corners.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let mut text = String::from("wind,x,y,z\n");
    for row in 0..160u32 {
        let class = (row % 4) as usize;
        let noise = |step: u32| f64::from((row * step) % 13) / 13.0 - 0.5;
        let (x, y) = ([1.0, 0.0, -1.0, 0.0][class] + noise(7), [0.0, 1.0, 0.0, -1.0][class] + noise(5));
        text.push_str(&format!("{},{x},{y},{}\n", ["east", "north", "west", "south"][class], noise(3)));
    }
    bench.write("train.csv", text);
    bench.write("code.txt", "# right, above\nnorth 0 +1 1\neast +1 0 -1\nsouth,0,-,+\nwest; -1; 0; -\n");
    bench
}

const TRAIN: &str = "train classify train.csv --target wind -o m.mm";

#[test]
fn every_code_is_learned_verified_and_bounded() {
    let bench = bench();
    for (more, columns) in [
        ("--multiclass one-vs-rest", 4),
        ("--multiclass one-vs-one", 6),
        ("--code exhaustive --decoding hamming", 7),
        ("--code random-dense:6 --loss logistic", 6),
        ("--multiclass code --code random-sparse:8 --loss squared-hinge --solver dual-coordinate-descent", 8),
        ("--code bch:5 --intercept penalised", 5),
        ("--code code.txt --class-weight balanced", 3),
    ] {
        let object = bench.json(&format!("{TRAIN} {more} --report r.html"));
        assert_eq!(object["converged"], true, "{more}");
        let verified = bench.json("verify m.mm train.csv");
        assert_eq!(number(&verified, "objective"), number(&object, "objective"), "{more}");
        let measured = bench.json("evaluate m.mm train.csv --report e.html");
        let error = number(&measured, "train-error");
        assert!((error - (1.0 - number(&measured, "accuracy"))).abs() < 1e-12, "{more}");
        assert!(error <= number(&measured, "bound"), "{more}");
        let inspected = bench.json("inspect m.mm");
        assert_eq!(inspected["code"]["columns"], columns, "{more}");
        assert_eq!(inspected["code"]["matrix"][3].as_array().expect("a row").len(), columns);
        assert_eq!(inspected["code"]["separation"], measured["separation"]);
        assert!(bench.text("r.html").contains("Output code") && bench.text("e.html").contains("row separation"));
        bench.ok("predict m.mm train.csv --all-scores -o scores.txt");
        let scores = bench.text("scores.txt");
        assert!(scores.lines().all(|line| line.split('\t').count() == 5), "{more}");
    }
    bench.ok("inspect m.mm").shows("row separation 1.5").shows("north").shows("-0-");
    bench.ok("inspect m.mm --settings").shows("code = ");
    let settings = bench.ok("inspect m.mm --settings").stdout.clone();
    bench.write("again.toml", settings);
    bench.ok("train classify train.csv --config again.toml -o again.mm");
    assert_eq!(bench.json("inspect again.mm")["code"], bench.json("inspect m.mm")["code"]);
    let tuned = bench.json(
        "tune classify train.csv --target wind --multiclass one-vs-one --metric accuracy --grid 0.1:10:3 -o t.mm",
    );
    assert!(tuned.is_object());
}

#[test]
fn codes_that_cannot_work_are_refused_with_the_reason() {
    let bench = bench();
    bench.refused(&format!("{TRAIN} --code missing.txt"), "MM0101").says("missing.txt");
    bench.write("equal.txt", "east,+,-\nnorth,+,-\nsouth,-,+\nwest,-,-\n");
    bench.refused(&format!("{TRAIN} --code equal.txt"), "MM0402").says("`east` and `north`");
    bench.write("zero.txt", "east,+,0\nnorth,-,0\n");
    bench.refused(&format!("{TRAIN} --code zero.txt"), "MM0402").says("column 2").says("zero.txt");
    bench.write("three.txt", "east,+,+\nnorth,-,+\nsouth,-,-\n");
    bench.refused(&format!("{TRAIN} --code three.txt"), "MM0312").says("`west`");
    bench.refused(&format!("{TRAIN} --multiclass code"), "MM0402").says("--code");
    bench.refused(&format!("{TRAIN} --code random-dense:1"), "MM0402").says("4 classes");
    bench.refused(&format!("{TRAIN} --multiclass one-vs-rest --kernel gaussian --loss logistic"), "MM0401");
    bench.refused("reproduce codes --data nowhere --seeds 1", "MM0405");
}
