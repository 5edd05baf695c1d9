//! What must not change the result: threads, the order of rows, the names of queries.

use crate::workbench::{Workbench, close, number};
use serde_json::Value;

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 200 --docs 30 --features 20 -o search.txt -q");
    bench.ok("simulate text --rows 5000 --features 3000 -o text.txt -q");
    for line in [
        "rank search.txt",
        "rank search.txt --scale standard -c 10 --tolerance 1e-8 --precision f64",
        "rank search.txt --scale min-max-per-query --holdout 0.2",
        "classify text.txt",
        "classify text.txt --loss squared-hinge --intercept penalised --tolerance 1e-5",
        "classify text.txt --loss squared-hinge --solver newton",
    ] {
        bench.ok(&format!("train {line} --threads 1 -o one.mm -q"));
        for threads in [2, 3] {
            bench.ok(&format!("train {line} --threads {threads} -o more.mm -q"));
            assert_eq!(bench.read("one.mm"), bench.read("more.mm"), "{line} --threads {threads}");
        }
    }
}

fn metrics_agree(one: &Value, other: &Value) {
    let (one, other) = (one.as_object().expect("an object"), other.as_object().expect("an object"));
    for (name, value) in one {
        match (value.as_f64(), other[name].as_f64()) {
            (Some(value), Some(twin)) => assert!(close(value, twin, 1e-6), "{name}: {value} and {twin}"),
            _ => assert_eq!(value, &other[name], "{name}"),
        }
    }
}

/// The rows in an order that scatters the queries.
fn scattered(text: &str) -> String {
    let rows: Vec<&str> = text.lines().collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    order.into_iter().map(|row| format!("{}\n", rows[row])).collect()
}

#[test]
fn the_order_of_rows_and_the_names_of_queries_do_not_matter_to_a_ranker() {
    let bench = Workbench::with_search();
    bench.write("scattered.txt", scattered(&bench.text("search.txt")));
    bench.write("scattered-test.txt", scattered(&bench.text("search-test.txt")));
    bench.write("renamed.txt", bench.text("search.txt").replace("qid:", "qid:query-"));
    let first = bench.json("train rank search.txt -o first.mm --tolerance 1e-8");
    let measured = bench.json("evaluate first.mm search-test.txt");
    metrics_agree(&measured, &bench.json("evaluate first.mm scattered-test.txt"));
    for file in ["scattered.txt", "renamed.txt"] {
        let other = bench.json(&format!("train rank {file} -o other.mm --tolerance 1e-8"));
        assert!(close(number(&first, "objective"), number(&other, "objective"), 2e-8), "{first} {other}");
        assert_eq!(first["constraints"], other["constraints"]);
        metrics_agree(&measured, &bench.json("evaluate other.mm search-test.txt"));
    }
}

#[test]
fn the_order_of_rows_does_not_matter_to_a_classifier() {
    let bench = Workbench::with_text();
    bench.write("scattered.txt", scattered(&bench.text("text.txt")));
    bench.write("scattered-test.txt", scattered(&bench.text("text-test.txt")));
    for loss in ["hinge", "squared-hinge"] {
        let line = |file: &str, model: &str| format!("train classify {file} --loss {loss} -o {model} --tolerance 1e-7");
        let first = bench.json(&line("text.txt", "first.mm"));
        let other = bench.json(&line("scattered.txt", "other.mm"));
        assert!(close(number(&first, "objective"), number(&other, "objective"), 2e-7), "{first} {other}");
        let measured = bench.json("evaluate first.mm text-test.txt");
        metrics_agree(&measured, &bench.json("evaluate first.mm scattered-test.txt"));
    }
}
