//! Model files: damaged ones, and the output of `verify` and `inspect` for valid ones.

use crate::workbench::{Workbench, close, number};

#[test]
fn a_model_cut_short_is_refused_everywhere() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o sound.mm -q");
    let sound = bench.read("sound.mm");
    for length in [0, 1, 7, 8, 9, 100, sound.len() / 2, sound.len() - 8, sound.len() - 1] {
        bench.write("cut.mm", &sound[..length]);
        let code = if length < 100 { None } else { Some("MM0502") };
        for line in [
            "inspect cut.mm",
            "inspect cut.mm --settings",
            "predict cut.mm search.txt -o scores.txt",
            "evaluate cut.mm search.txt",
            "verify cut.mm search.txt",
        ] {
            match code {
                Some(code) => drop(bench.refused(line, code).says("cut.mm")),
                None => {
                    let ran = bench.run(line);
                    let code = if ran.stderr.contains("MM0501") { "MM0501" } else { "MM0502" };
                    ran.failed(2, code);
                }
            }
        }
    }
}

#[test]
fn a_changed_byte_is_noticed_wherever_it_is() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o sound.mm -q");
    let sound = bench.read("sound.mm");
    for at in (0..sound.len()).step_by(sound.len() / 40) {
        for bit in [1, 0x20] {
            let mut changed = sound.clone();
            changed[at] ^= bit;
            bench.write("changed.mm", &changed);
            let ran = bench.run("inspect changed.mm");
            let code = ["MM0501", "MM0502", "MM0503"].into_iter().find(|code| ran.stderr.contains(code));
            ran.failed(2, code.unwrap_or("MM0502")).says("changed.mm");
        }
    }
}

#[test]
fn other_files_are_no_models() {
    let bench = Workbench::with_search();
    bench.refused("inspect search.txt", "MM0501").says("search.txt");
    bench.write("header.mm", [&u64::MAX.to_le_bytes()[..], b"{}"].concat());
    bench.refused("inspect header.mm", "MM0501");
    bench.write("false.mm", [&2u64.to_le_bytes()[..], b"{}"].concat());
    bench.refused("inspect false.mm", "MM0501");
}

#[test]
fn verify_recomputes_the_certificate() {
    let bench = Workbench::with_text();
    for flags in
        ["", "--loss squared-hinge", "--intercept none", "--intercept penalised", "--scale standard", "--holdout 0.2"]
    {
        bench.ok(&format!("train classify text.txt -o m.mm -q {flags}"));
        let found = bench.json("verify m.mm text.txt");
        assert_eq!(found["agrees"], true, "{flags}");
        for field in ["objective", "lower_bound"] {
            assert!(close(number(&found, field), number(&found["claimed"], field), 1e-9), "{flags}: {found}");
        }
        assert!(found["unproved"].is_null(), "{flags}: {found}");
    }
}

#[test]
fn verify_on_other_data_is_refused() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.refused("verify m.mm search-test.txt", "MM0309").says("search-test.txt").says("not the data");
    let mut rows: Vec<String> = bench.text("search.txt").lines().map(str::to_string).collect();
    let last = rows.last_mut().expect("rows");
    *last = last.replacen(":0.", ":0.1", 1);
    bench.write("changed.txt", rows.join("\n") + "\n");
    bench.refused("verify m.mm changed.txt", "MM0309");
}

#[test]
fn a_model_without_a_witness_is_verified_in_part() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o whole.mm -q");
    bench.ok("train classify text.txt -o small.mm -q --no-witness");
    assert!(bench.read("small.mm").len() < bench.read("whole.mm").len());
    bench.ok("inspect small.mm").shows("saved without its witness");
    bench.ok("verify small.mm text.txt").shows("the objective agrees; the bound is not proved");
    let found = bench.json("verify small.mm text.txt");
    assert!(found["unproved"].is_string() && found["lower_bound"].is_null(), "{found}");
    assert_eq!(bench.ok("predict small.mm text.txt").stdout, bench.ok("predict whole.mm text.txt").stdout);
}

#[test]
fn inspect_names_weights_as_the_table_did() {
    let bench = Workbench::new();
    bench.write("t.csv", "label,age,\"height, cm\"\nyes,1,2\nno,-1,5\nyes,2,1\nno,-2,4\n");
    bench.ok("train classify t.csv -o m.mm -q");
    bench.ok("inspect m.mm").shows("age").shows("height, cm").shows("`yes` where the score is positive, else `no`");
    assert_eq!(bench.json("inspect m.mm --top 1")["weights"].as_array().expect("weights").len(), 1);
}

#[test]
fn an_old_model_is_replaced_as_a_whole_or_not_at_all() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    let before = bench.read("m.mm");
    bench.write("bad.txt", "1 qid:1 1:x\n");
    bench.refused("train rank bad.txt -o m.mm", "MM0203");
    assert_eq!(bench.read("m.mm"), before);
    bench.ok("train rank search.txt -c 3 -o m.mm -q");
    assert_ne!(bench.read("m.mm"), before);
    assert_eq!(bench.files().len(), 4, "{:?}", bench.files());
}

#[test]
fn a_certificate_that_proves_nothing_is_not_praised() {
    let bench = Workbench::new();
    bench.write("rows.txt", "1 1:1\n0 1:2\n1 1:3\n0 1:0.5\n");
    bench.ok("train classify rows.txt -o m.mm --max-passes 0 --solver dual-coordinate-descent");
    let ran = bench.ok("verify m.mm rows.txt").shows("lower bound is only 0");
    assert!(!ran.stdout.contains("of the optimum"), "{}", ran.stdout);
}
