//! Successful training: what is printed, what is saved, what scripts may rely on.

use crate::bad_input::{bzip2, gzip, zstd};
use crate::demo::assert_self_contained;
use crate::workbench::{Workbench, number, stable};

#[test]
fn a_ranker_goes_the_whole_way() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm --validation search-test.txt");
    assert_eq!(bench.ok("predict m.mm search-test.txt").stdout.lines().count(), rows(&bench, "search-test.txt"));
    bench.ok("evaluate m.mm search-test.txt --metric ndcg@10,map").shows("ndcg@10").shows("map");
    bench.ok("verify m.mm search.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("squared-hinge").shows("largest weights");
}

#[test]
fn a_classifier_goes_the_whole_way() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm --validation text-test.txt --metric accuracy,auc").shows("held out");
    assert_eq!(bench.ok("predict m.mm text-test.txt").stdout.lines().count(), 600);
    bench.ok("evaluate m.mm text-test.txt").shows("accuracy").shows("auc");
    bench.ok("verify m.mm text.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("hinge").shows("intercept").shows("classes");
}

#[test]
fn cutting_planes_go_the_whole_way() {
    let bench = Workbench::with_text();
    let trained = bench.json("train classify text.txt -o m.mm --solver cutting-plane --tolerance 1e-2");
    assert_eq!((&trained["solver"], &trained["converged"]), (&"cutting-plane".into(), &true.into()));
    bench.ok("verify m.mm text.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("dual variables stored");
    bench.ok("train classify text.txt -o bare.mm --solver cutting-plane --tolerance 1e-2 --no-witness -q");
    assert!(bench.read("bare.mm").len() < bench.read("m.mm").len());
    bench.ok("inspect bare.mm").shows("saved without its witness");
    bench.ok("verify bare.mm text.txt").shows("the bound is not proved");
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm --solver cutting-plane");
    bench.ok("verify m.mm search.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("cuts stored");
}

#[test]
fn training_says_what_it_found_and_what_to_do_next() {
    let bench = Workbench::new();
    bench.write("tiny.txt", "2 qid:a 1:1 2:0.5\n0 qid:a 1:0\n1 qid:b 2:1\n1 qid:b 1:1\n");
    let ran = bench.ok("train rank tiny.txt -o m.mm");
    let _stable = stable();
    insta::assert_snapshot!(ran.stderr, @r"
    tiny.txt   svmlight, 1-based · 4 rows × 2 features · 2 queries, 1 with a single grade ignored · 1 pair · [time]
     pass     objective       gap      time
        0      1.0000e0     1.0e0 [time]
        1     2.8571e-1         0 [time]
        2     2.8571e-1         0 [time]
    ");
    insta::assert_snapshot!(ran.stdout, @r"
    converged: objective 0.285714, proven optimal to rounding
    C = 1, lambda = 1.000e0, 1 constraint, solver newton, chosen
    saved m.mm ([size])          next: maxmargin evaluate m.mm test-data
    ");
}

#[test]
fn json_is_one_object_with_what_scripts_rely_on() {
    for (bench, line) in [
        (Workbench::with_search(), "train rank search.txt -o m.mm --validation search-test.txt"),
        (Workbench::with_text(), "train classify text.txt -o m.mm --holdout 0.25"),
    ] {
        let trained = bench.json(line);
        let gap = number(&trained, "gap");
        assert!(number(&trained, "lower_bound") <= number(&trained, "objective"));
        assert!((0.0..=1e-3).contains(&gap), "{trained}");
        assert_eq!(trained["converged"], true);
        assert!(number(&trained, "constraints") >= 100.0);
        assert!(trained["passes"].is_u64());
        assert!(number(&trained["seconds"], "load") >= 0.0 && number(&trained["seconds"], "train") >= 0.0);
        assert!(trained["held_out"]["metrics"].as_object().is_some_and(|metrics| !metrics.is_empty()));
        let inspected = bench.json("inspect m.mm");
        for field in ["objective", "lower_bound", "gap", "constraints", "converged", "passes"] {
            assert_eq!(inspected[field], trained[field], "{field}");
        }
    }
}

#[test]
fn quiet_says_nothing_and_json_can_be_quiet_too() {
    let bench = Workbench::with_search();
    let ran = bench.ok("train rank search.txt -o m.mm --quiet");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let ran = bench.ok("train rank search.txt -o m.mm --quiet --json");
    assert_eq!(ran.stderr, "");
    ran.object();
    let ran = bench.run("train rank nothing.txt -o m.mm --quiet --json");
    ran.failed(2, "MM0101");
}

#[test]
fn a_run_that_does_not_converge_says_so_and_still_ends_well() {
    let bench = Workbench::with_text();
    let ran = bench.ok("train classify text.txt -o m.mm -c 1000 --max-passes 2 --tolerance 1e-9");
    ran.shows("NOT converged after 2 passes").shows("--max-passes 100");
    let trained = bench.json("train classify text.txt -o m.mm -c 1000 --max-passes 2 --tolerance 1e-9");
    assert_eq!(trained["converged"], false);
    assert!(number(&trained, "gap") > 1e-9);
    bench.ok("verify m.mm text.txt");
    bench.ok("inspect m.mm").shows("NOT converged");
}

#[test]
fn compressed_and_piped_input_equals_plain_input() {
    let bench = Workbench::with_search();
    let plain = bench.read("search.txt");
    bench.ok("train rank search.txt -o plain.mm -q");
    let expected = bench.read("plain.mm");
    for (file, packed) in [("p.gz", gzip(&plain)), ("p.bz2", bzip2(&plain)), ("p.zst", zstd(&plain))] {
        bench.write(file, &packed);
        bench.ok(&format!("train rank {file} -o packed.mm -q"));
        assert_eq!(bench.read("packed.mm"), expected, "{file}");
        bench.run_with_input("train rank - -o piped.mm -q", packed).succeeded();
        assert_eq!(bench.read("piped.mm"), expected, "{file} on standard input");
    }
    bench.run_with_input("train rank - -o piped.mm", plain.clone()).succeeded().says("standard input");
    assert_eq!(bench.read("piped.mm"), expected);
    let two_members = [gzip(&plain[..1000]), gzip(&plain[1000..])].concat();
    bench.write("two.gz", two_members).ok("train rank two.gz -o two.mm -q");
    assert_eq!(bench.read("two.mm"), expected);
    let windows = String::from_utf8(plain).expect("text").replace('\n', "\r\n");
    bench.write("windows.txt", windows).ok("train rank windows.txt -o windows.mm -q");
    assert_eq!(bench.read("windows.mm"), expected);
}

#[test]
fn empty_standard_input_is_refused() {
    let bench = Workbench::new();
    bench.run_with_input("train rank - -o m.mm", "").failed(2, "MM0201").says("standard input");
    bench.run_with_input("train rank - -o m.mm", "1 qid:1 1:x\n").failed(2, "MM0203").marks("standard input:1:11", "x");
    assert!(bench.files().is_empty());
}

#[test]
fn side_files_say_groups_and_weights() {
    let bench = Workbench::new();
    bench.write("inline.txt", "2 qid:1 cost:2 1:1\n0 qid:1 cost:1 2:1\n1 qid:2 cost:1 1:2\n0 qid:2 cost:3 2:2 3:1\n");
    bench.write("beside.txt", "2 1:1\n0 2:1\n1 1:2\n0 2:2 3:1\n");
    bench.write("beside.txt.query", "2\n2\n").write("beside.txt.weight", "2\n1\n1\n3\n");
    let inline = bench.json("train rank inline.txt -o inline.mm");
    let beside = bench.json("train rank beside.txt -o beside.mm");
    assert_eq!(inline["objective"], beside["objective"]);
    assert_eq!(bench.json("inspect inline.mm")["weights"], bench.json("inspect beside.mm")["weights"]);
}

#[test]
fn a_report_is_self_contained() {
    let bench = Workbench::with_text();
    let line = "train classify text.txt -o m.mm --validation text-test.txt --report report.html";
    bench.ok(line).says("wrote report.html");
    assert_self_contained(&bench.text("report.html"));
    bench.ok("evaluate m.mm text-test.txt --report evaluation.html").says("wrote evaluation.html");
    assert_self_contained(&bench.text("evaluation.html"));
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm --report report.html -q");
    assert_self_contained(&bench.text("report.html"));
}

#[test]
fn uneven_scales_are_pointed_out() {
    let bench = Workbench::new();
    bench.write("uneven.txt", "1 qid:1 1:0.001 2:1000\n0 qid:1 1:0.002 2:5000\n");
    bench.ok("train rank uneven.txt -o m.mm").says("feature scales differ").says("--scale standard");
}

fn rows(bench: &Workbench, file: &str) -> usize {
    bench.text(file).lines().filter(|line| !line.starts_with('#')).count()
}
