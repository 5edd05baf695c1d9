//! Where output goes: results, messages, and one JSON object.

use crate::workbench::Workbench;

#[test]
fn every_command_has_one_json_object_and_is_quiet_on_request() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.ok("convert search.txt -o cache.mmd -q");
    for line in [
        "simulate search --queries 3 -o small.txt",
        "simulate text --rows 30 --features 10 -o small.txt",
        "train rank search.txt -o n.mm",
        "predict m.mm search.txt -o scores.txt",
        "evaluate m.mm search.txt",
        "inspect m.mm",
        "inspect m.mm --settings",
        "verify m.mm search.txt",
        "convert search.txt -o out.csv",
        "convert cache.mmd --check",
        "explain",
        "explain MM0101",
    ] {
        bench.json(line);
        let ran = bench.ok(&format!("{line} --quiet --json"));
        assert_eq!(ran.stderr, "", "{line}");
        ran.object();
        assert_eq!(bench.ok(&format!("{line} --quiet")).stderr, "", "{line}");
    }
}

#[test]
fn verbose_says_more_on_standard_error() {
    let bench = Workbench::with_search();
    let plain = bench.ok("train rank search.txt -o m.mm");
    let verbose = bench.ok("train rank search.txt -o m.mm -v");
    assert!(verbose.stderr.lines().count() > plain.stderr.lines().count());
    assert_eq!(verbose.stdout, plain.stdout);
}

#[test]
fn simulated_data_depend_on_seed_and_stream_alone() {
    let bench = Workbench::new();
    for kind in ["search --queries 20", "text --rows 500"] {
        bench.ok(&format!("simulate {kind} --seed 9 -o one.txt -q"));
        bench.ok(&format!("simulate {kind} --seed 9 -o two.txt -q --threads 1"));
        assert_eq!(bench.read("one.txt"), bench.read("two.txt"));
        bench.ok(&format!("simulate {kind} --seed 9 --stream 1 -o two.txt -q"));
        assert_ne!(bench.read("one.txt"), bench.read("two.txt"));
        bench.ok(&format!("simulate {kind} --seed 10 -o two.txt -q"));
        assert_ne!(bench.read("one.txt"), bench.read("two.txt"));
    }
    bench.ok("simulate text --rows 500 -o plain.txt -q");
    assert_eq!(bench.text("plain.txt").lines().filter(|line| !line.starts_with('#')).count(), 500);
}

#[test]
fn simulated_data_come_in_every_format() {
    let bench = Workbench::new();
    for output in ["s.txt", "s.txt.gz", "s.csv", "s.tsv", "s.parquet", "s.arrow", "s.mmd"] {
        bench.ok(&format!("simulate search --queries 20 --docs 8 --features 4 --seed 2 -o {output} -q"));
        bench.ok(&format!("train rank {output} -o m.mm -q"));
        let hash = bench.json("inspect m.mm")["data_hash"].clone();
        bench.ok("train rank s.txt -o m.mm -q");
        assert_eq!(bench.json("inspect m.mm")["data_hash"], hash, "{output}");
    }
}

#[test]
fn escapes_in_the_users_text_do_not_reach_the_terminal() {
    let bench = Workbench::new();
    bench.write("a.csv", "label,x,y\u{9b}2J\n1,2,z\n0,1,2\n");
    let ran = bench.run("train classify a.csv -o m.mm");
    assert!(ran.stderr.contains("y\u{fffd}2J") && !ran.stderr.contains('\u{9b}'), "{:?}", ran.stderr);
    bench.write("b.csv", "label,x\u{9b}2J\n1,2\n0,1\n");
    bench.ok("train classify b.csv -o m.mm -q");
    let shown = bench.ok("inspect m.mm");
    assert!(!shown.stdout.contains('\u{9b}') && !shown.stderr.contains('\u{9b}'), "{:?}", shown.stdout);
    let usage = bench.run("train classify b.csv -o m.mm --input-format \u{1b}[2J");
    assert!(!usage.stderr.contains('\u{1b}'), "{:?}", usage.stderr);
}

#[test]
fn quiet_keeps_what_was_asked_for() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    for (line, kept) in [
        ("train rank search.txt --holdout 0.25 -o n.mm", "held out (25 % of search.txt"),
        ("train rank search.txt --validation search-test.txt --metric mrr -o n.mm", "mrr "),
        ("tune rank search.txt --grid 0.1,1 --folds 2", "best: C = "),
        ("tune rank search.txt --grid 0.1,1 --folds 2 -o n.mm", "best: C = "),
        ("verify m.mm search.txt", "the certificate holds"),
        ("evaluate m.mm search-test.txt --metric mrr", "mrr"),
    ] {
        let ran = bench.ok(&format!("{line} --quiet"));
        assert_eq!(ran.stderr, "", "{line}");
        assert_eq!(ran.stdout.lines().count(), 1, "{line}: {}", ran.stdout);
        assert!(!ran.stdout.contains("next:"), "{line}");
        ran.shows(kept);
        let ran = bench.ok(&format!("{line} --quiet --json"));
        assert_eq!(ran.stderr, "", "{line}");
        ran.object();
    }
}
