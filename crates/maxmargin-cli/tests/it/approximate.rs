//! `--approximate` as a user types it.

use crate::workbench::{Workbench, number};

#[test]
fn a_mapped_kernel_goes_the_whole_way() {
    for (bench, task, file, metric) in [
        (Workbench::with_text(), "classify", "text", "accuracy"),
        (Workbench::with_search(), "rank", "search", "ndcg@10"),
    ] {
        for map in ["nystrom:60", "fourier:80"] {
            let line = format!("train {task} {file}.txt --kernel gaussian --approximate {map} --scale max-abs -o m.mm");
            bench.ok(&line).shows("kernel gaussian, gamma").shows("kernel values off by");
            bench.ok(&format!("verify m.mm {file}.txt")).shows("the certificate holds");
            bench.ok("inspect m.mm").shows(if map == "nystrom:60" {
                "landmarks (nystrom)"
            } else {
                "80 random features (fourier)"
            });
            let settings = bench.ok("inspect m.mm --settings").stdout;
            assert!(settings.contains(&format!("approximate = \"{map}\"")), "{settings}");
            let first = bench.read("m.mm");
            bench.write("again.toml", settings);
            bench.ok(&format!("train {task} {file}.txt --config again.toml -o again.mm"));
            assert!(bench.read("again.mm") == first, "its settings repeat a model");
            let evaluated = bench.json(&format!("evaluate m.mm {file}-test.txt --metric {metric}"));
            assert!(evaluated.to_string().contains(metric), "{evaluated}");
            bench.ok(&format!("predict m.mm {file}-test.txt -o scores.txt"));
            assert!(!bench.text("scores.txt").contains("NaN"));
            bench.ok(&format!(
                "tune {task} {file}.txt --kernel gaussian --approximate {map} --grid 0.1,1 --folds 3 -o t.mm"
            ));
            bench.ok(&format!("verify t.mm {file}.txt"));
        }
    }
}

#[test]
fn what_is_lost_stands_in_the_json() {
    let bench = Workbench::with_text();
    let trained = bench.json("train classify text.txt --kernel gaussian --approximate nystrom:1000 --seed 2 -o m.mm");
    let kernel = &trained["kernel"];
    assert_eq!(kernel["approximate"], "nystrom:1000");
    assert_eq!(number(kernel, "mapped_features"), 600.0);
    assert!(number(&kernel["loss"], "kernel_error") < 1e-5, "{kernel}");
    let compared = &kernel["loss"]["compared"];
    assert_eq!((number(compared, "learned"), number(compared, "judged")), (300.0, 300.0));
    let difference = number(compared, "approximate") - number(compared, "exact");
    assert_eq!(number(compared, "difference"), difference);
    bench.ok("train classify text.txt --kernel gaussian --approximate nystrom:1000 -o m.mm").shows("all 600 rows used");
    let ranked = Workbench::with_search();
    let line = "train rank search.txt --kernel gaussian --approximate fourier:50 -o m.mm";
    assert_eq!(ranked.json(line)["kernel"]["loss"]["compared"]["metric"], "pair-accuracy");
    let trained = ranked.json(&format!("{line} --loss hinge"));
    assert!(trained["kernel"]["loss"]["not_compared"].is_string(), "{trained}");
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_is_read() {
    let bench = Workbench::new();
    for (flags, help) in [
        ("--approximate nystrom:100", "--kernel gaussian"),
        ("--kernel polynomial --approximate fourier:100", "nystrom"),
        ("--kernel gaussian --approximate nystrom:0", "nystrom:1000"),
        ("--kernel gaussian --approximate fourier:4000000000", "fourier:2000"),
        ("--kernel gaussian --approximate nystrom:50 --solver smo", "--approximate"),
        ("--kernel gaussian --approximate nystrom:50 --kernel-cache 1GiB", "--kernel-cache"),
        ("--kernel gaussian --approximate nystrom:50 --nu 0.5", "--nu"),
        ("--kernel gaussian --solver cutting-plane", "--approximate nystrom:1000"),
    ] {
        bench.refused(&format!("train classify missing.txt {flags} -o m.mm"), "MM0402").says(help);
    }
    let ran = bench.run("train classify missing.txt --kernel gaussian --approximate taylor:5 -o m.mm");
    assert!(ran.exit == Some(2) && ran.stderr.contains("nystrom:1000"), "{}", ran.stderr);
}

#[test]
fn a_budget_that_mapped_rows_do_not_fit_into_is_refused_with_the_remedy() {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 20000 --features 300 --nonzeros 20 --seed 3 -o text.mmd -q");
    let line = "train classify text.mmd --kernel gaussian --gamma 0.5 --approximate nystrom:300";
    bench.refused(&format!("{line} --memory 60MiB -o m.mm"), "MM0408").says("fewer landmarks").says("--memory");
    bench.ok(&format!("{line} -o whole.mm -q"));
    bench.ok(&format!("{line} -o m.mm --memory 2GiB -q"));
    assert!(bench.read("m.mm") == bench.read("whole.mm"));
}
