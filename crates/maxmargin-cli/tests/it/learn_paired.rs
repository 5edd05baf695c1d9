//! `learn classify --solver pa…`: passive-aggressive steps, alone and in balanced batches.

use crate::workbench::{Workbench, number};

const SOLVERS: [&str; 7] =
    ["pa", "pa-dca", "pa-sequential", "pa-auc", "pa-max-violators", "pa-correct-mistakes", "pa-single-slack"];

/// svmlight rows, of which one in `one_in` is positive.
fn alarms(rows: u64, one_in: u64) -> Vec<String> {
    let mut state = 7u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|row| {
            let positive = row % one_in == one_in - 1;
            let shift = if positive { 60 } else { 0 };
            let (a, b) = (next(100) + shift, next(100));
            format!("{} 1:{} 2:{} {}:1", i32::from(positive), a as f64 / 50.0, b as f64 / 50.0, 3 + next(40))
        })
        .collect()
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

#[test]
fn a_stream_in_two_parts_gives_the_bytes_of_one() {
    let bench = Workbench::new();
    let lines = alarms(3000, 20);
    bench
        .write("all.txt", text(&lines))
        .write("first.txt", text(&lines[..1231]))
        .write("rest.txt", text(&lines[1231..]));
    for solver in SOLVERS {
        let ways = match solver {
            "pa" => ["", "--pa-variant pa-2 --average-from 100"],
            _ => ["--reservoir 5", "--batch 6 --pa-variant pa-2 --average-from 0 --intercept none"],
        };
        for way in ways {
            let way = format!("--solver {solver} -c 0.3 {way}");
            bench.ok(&format!("learn classify all.txt -o whole.mm {way} -q"));
            bench.ok(&format!("learn classify first.txt -o part.mm {way} -q"));
            bench.ok("learn classify rest.txt --from part.mm -o part.mm -q");
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{way}: the bytes differ");
        }
    }
}

#[test]
fn the_bounds_are_shown_and_hold() {
    let bench = Workbench::new();
    bench.write("alarms.txt", text(&alarms(6000, 50)));
    for solver in SOLVERS {
        let ran = bench.ok(&format!("learn classify alarms.txt -o model.mm --solver {solver} --json"));
        let said = ran.says("auc-loss-bound    mistakes     allowed").object();
        let loss = 1.0 - number(&said, "auc");
        assert!(loss <= number(&said, "auc-loss-bound") + 1e-9, "{solver}: {said}");
        let sum = number(&said, "error-positive") + number(&said, "error-negative");
        assert!((sum - number(&said, "auc-loss-bound")).abs() < 1e-12);
        assert!(number(&said, "mistakes") <= number(&said, "mistake_bound") + 1e-6, "{solver}: {said}");
        assert_eq!(said["rows_kept"].is_null(), solver == "pa");
        let judged = bench.json("evaluate model.mm alarms.txt --metric auc");
        assert!(number(&judged, "auc") > 0.75, "{solver}: {judged}");
    }
}

#[test]
fn balanced_batches_find_more_of_a_rare_class() {
    let bench = Workbench::new();
    bench.write("alarms.txt", text(&alarms(8000, 200)));
    let missed = |solver: &str| {
        let said = bench.json(&format!("learn classify alarms.txt -o model.mm --solver {solver} -q"));
        number(&said, "error-positive")
    };
    let alone = missed("pa");
    for solver in ["pa-dca", "pa-sequential", "pa-correct-mistakes"] {
        assert!(missed(solver) < alone, "{solver}");
    }
}

#[test]
fn a_class_that_never_comes_and_rows_of_zeros_are_handled_and_said() {
    let bench = Workbench::new();
    bench.write("one.txt", "1 1:1\n".repeat(20)).write("zeros.txt", "0\n1\n".repeat(20));
    bench.ok("learn classify one.txt --classes 0,1 --solver pa-dca -o model.mm").says("rows of one class came alone");
    bench.ok("learn classify one.txt --classes 0,1 --solver pa -o model.mm");
    for variant in ["pa", "pa-1", "pa-2"] {
        for solver in SOLVERS {
            let line = format!("zeros.txt --solver {solver} --pa-variant {variant} --intercept none -o model.mm");
            let said = bench.json(&format!("learn classify {line}"));
            let contradictory = variant == "pa" && number(&said, "contradictions") > 0.0;
            assert_eq!(contradictory, variant == "pa", "{line}: {said}");
        }
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let bench = Workbench::new();
    bench.write("two.txt", "0 1:1\n1 2:1\n");
    for (line, code) in [
        ("--solver pa --batch 2", "MM0402"),
        ("--solver pa --reservoir 10", "MM0402"),
        ("--solver pa-dca --batch 3", "MM0402"),
        ("--solver pa-dca --batch 20 --reservoir 4", "MM0402"),
        ("--solver pa-dca --lambda 1e-4", "MM0402"),
        ("--solver pa-dca --rate 0.1", "MM0402"),
        ("--solver pa-dca --loss logistic", "MM0402"),
        ("--solver averaged-sgd --pa-variant pa-2", "MM0402"),
        ("--solver sgd --reservoir 10", "MM0402"),
        ("--solver pa-dca -c 0", "MM0402"),
    ] {
        bench.refused(&format!("learn classify two.txt {line} -o model.mm"), code);
    }
    bench.refused("train classify two.txt --solver pa-dca -o model.mm", "MM0405");
}
