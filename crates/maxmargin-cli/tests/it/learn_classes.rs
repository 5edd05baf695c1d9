//! `learn classify`: rows from a stream.

use crate::workbench::{Workbench, number};
use std::fmt::Write as _;

/// svmlight rows of two classes, told apart by the features 1 and 3.
fn mails(rows: u64, names: [&str; 2]) -> Vec<String> {
    let mut state = 42u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|_| {
            let (a, b, c) = (next(100), next(100), next(9000));
            let class = usize::from(a + 10 > b) ^ usize::from(next(12) == 0);
            format!("{} 1:{} 3:{} {}:1", names[class], a as f64 / 50.0, b as f64 / 50.0, 4 + c)
        })
        .collect()
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// The same as a table.
fn table(lines: &[String]) -> String {
    let mut text = "class,a,b\n".to_string();
    for line in lines {
        let fields: Vec<&str> = line.split([' ', ':']).collect();
        let _ = writeln!(text, "{},{},{}", fields[0], fields[2], fields[4]);
    }
    text
}

#[test]
fn a_stream_in_two_parts_gives_the_bytes_of_one() {
    let bench = Workbench::new();
    let lines = mails(9000, ["-1", "1"]);
    for (kind, make) in [("txt", text as fn(&[String]) -> String), ("csv", table)] {
        let target = if kind == "csv" { "--target class" } else { "" };
        bench
            .write(&format!("all.{kind}"), make(&lines))
            .write(&format!("first.{kind}"), make(&lines[..1230]))
            .write(&format!("rest.{kind}"), make(&lines[1230..]));
        for way in
            ["", "--solver sgd --loss logistic --batch 10", "--solver pegasos --batch 3", "--intercept penalised"]
        {
            bench.ok(&format!("learn classify all.{kind} {target} -o whole.mm {way} -q"));
            bench.ok(&format!("learn classify first.{kind} {target} -o part.mm {way} -q"));
            bench.ok(&format!("learn classify rest.{kind} {target} --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind} {way}: the bytes differ");
            bench.ok(&format!("learn classify first.{kind} {target} -o part.mm {way} -q"));
            bench.ok(&format!("learn classify all.{kind} {target} --skip 1230 --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind} {way}: the bytes differ after --skip");
        }
    }
}

#[test]
fn a_stream_on_standard_input_is_learned_from_and_its_model_predicts() {
    let bench = Workbench::new();
    // svmlight takes numbers, tables also words.
    let all = table(&mails(8000, ["ham", "spam"]));
    bench.write("mails.csv", &all);
    bench.ok("learn classify mails.csv --target class -o file.mm -q");
    let ran = bench.run_with_input("learn classify - --target class -o stream.mm --json", all).succeeded();
    let said = ran.says("rows    error   recent").object();
    assert!(bench.read("file.mm") == bench.read("stream.mm"));
    assert_eq!(number(&said, "rows"), 8000.0);
    assert!(number(&said, "error") < 0.25 && number(&said, "auc") > 0.75, "{said}");
    let judged = bench.json("evaluate stream.mm mails.csv --metric accuracy");
    assert!(number(&judged, "accuracy") > 0.8, "{judged}");
    bench.ok("inspect stream.mm").shows("a stream of 8,000 rows");
    bench.refused("verify stream.mm mails.csv", "MM0401");
}

#[test]
fn classes_are_declared_or_come_up() {
    let bench = Workbench::new();
    bench.write("one.txt", "1 1:1\n1 2:1\n");
    bench.write("two.txt", "0 1:1\n1 2:1\n");
    bench.refused("learn classify one.txt -o model.mm", "MM0301");
    bench.ok("learn classify one.txt --classes 0,1 -o model.mm -q");
    bench.ok("learn classify two.txt --from model.mm -o model.mm -q");
    bench.write("three.txt", "0 1:1\n1 2:1\n7 2:1\n");
    bench.refused("learn classify three.txt --classes 0,1 -o new.mm", "MM0312").says("`7` of row 3");
    bench.refused("learn classify two.txt --classes 0 -o new.mm", "MM0402");
}

#[test]
fn settings_that_no_stream_can_follow_are_refused() {
    let bench = Workbench::new();
    bench.write("two.txt", "0 1:1\n1 2:1\n");
    bench.write("pairs.csv", "left,right,outcome\na,b,left\n");
    for (line, code) in [
        ("two.txt -c 1", "MM0402"),
        ("two.txt --solver newton", "MM0405"),
        ("two.txt --solver pegasos --rate 0.1", "MM0402"),
        ("two.txt --class-weight balanced", "MM0402"),
        ("two.txt --batch 0", "MM0402"),
        ("two.txt --lambda 0", "MM0402"),
        ("nowhere.txt", "MM0101"),
    ] {
        bench.refused(&format!("learn classify {line} -o model.mm"), code);
    }
}
