//! Stochastic solvers at the command line: what they print, what they do not claim, and what they refuse.

use crate::workbench::{Workbench, number};

#[test]
fn a_stochastic_classifier_goes_the_whole_way_and_claims_no_bound() {
    let bench = Workbench::with_text();
    for solver in ["sgd", "averaged-sgd", "pegasos"] {
        let ran = bench.ok(&format!("train classify text.txt -o m.mm --solver {solver} --report report.html"));
        ran.shows("finished 20 passes: objective")
            .shows("no bound proven")
            .shows("leave --solver out to get a proven bound");
        assert!(bench.text("report.html").contains("no bound proven"));
        let trained = bench.json(&format!("train classify text.txt -o m.mm --solver {solver}"));
        assert!(trained["lower_bound"].is_null() && trained["gap"].is_null(), "{trained}");
        assert_eq!((&trained["converged"], &trained["stopped"]), (&false.into(), &"finished".into()));
        assert_eq!((&trained["passes"], &trained["solver"]), (&20.into(), &solver.into()));
        let found = bench.json("verify m.mm text.txt");
        assert_eq!(found["objective"], trained["objective"]);
        assert!(found["lower_bound"].is_null() && found["unproved"].is_null(), "{found}");
        bench.ok("verify m.mm text.txt").shows("the objective agrees; the model claims no bound");
        bench.ok("inspect m.mm").shows("unknown, after 20 passes").shows("the solver proves no bound");
        bench.ok("evaluate m.mm text-test.txt").shows("accuracy");
    }
}

#[test]
fn a_stochastic_ranker_takes_hinge_and_squared_hinge() {
    let bench = Workbench::with_search();
    let certified = number(&bench.json("train rank search.txt -o m.mm -c 0.01"), "objective");
    for flags in ["", "--sample pairs --batch 4 --project", "--schedule inverse-square-root"] {
        let trained = bench.json(&format!("train rank search.txt -o m.mm -c 0.01 --solver averaged-sgd {flags}"));
        let reached = number(&trained, "objective");
        assert!(reached >= 0.999 * certified && reached < 1.2 * certified, "{flags}: {reached} {certified}");
        bench.ok("verify m.mm search.txt").shows("the objective agrees");
    }
    bench.ok("train rank search.txt -o m.mm --loss hinge --solver sgd --sample queries").shows("no bound proven");
    bench.ok("verify m.mm search.txt").shows("the objective agrees");
    bench.refused("train rank search.txt -o m.mm2 --loss logistic --solver sgd", "MM0401");
}

#[test]
fn steps_that_lead_nowhere_keep_zero_and_say_so() {
    let bench = Workbench::new();
    let rows: String = (0..200)
        .map(|row| format!("{} 1:{} 2:{}e9\n", if row % 2 == 0 { 1 } else { -1 }, row % 7, (row * row) % 11))
        .collect();
    bench.write("uneven.txt", rows);
    let line = "train classify uneven.txt -o m.mm --solver pegasos --loss hinge";
    let warned = bench.ok(line);
    warned.shows("NO GAIN in 20 passes: no weights were better than all zeros").shows("--scale standard");
    let trained = bench.json(line);
    assert_eq!((&trained["stopped"], &trained["converged"]), (&"no gain".into(), &false.into()), "{trained}");
    assert!(number(&trained, "objective") <= 200.0, "{trained}");
    bench.ok("verify m.mm uneven.txt").shows("the objective agrees");
    bench.ok(&format!("{line} --scale standard")).shows("finished 20 passes");
}

#[test]
fn early_stopping_says_what_it_did() {
    let bench = Workbench::with_text();
    let line = "train classify text.txt -o m.mm --solver sgd -c 100 --max-passes 60";
    let trained = bench.json(&format!("{line} --early-stopping validation --holdout 0.3"));
    assert_eq!(trained["stopped"], "early stopping", "{trained}");
    assert!(number(&trained, "passes") < 57.0);
    bench.ok("verify m.mm text.txt").shows("the objective agrees");
    bench
        .ok(&format!("{line} --early-stopping validation --validation text-test.txt"))
        .shows("stopped early, best on held-out data after");
    bench.ok(&format!("{line} --early-stopping subsamples")).shows("the number that was best on two samples");
    bench
        .refused("train classify text.txt -o n.mm --solver sgd --early-stopping validation", "MM0402")
        .says("--holdout 0.2 or --validation FILE");
}

#[test]
fn training_may_end_within_the_first_pass() {
    let bench = Workbench::with_text();
    let line = "train classify text.txt -o m.mm --lambda 1e-4 --early-stopping validation --holdout 0.3";
    for solver in ["sgd", "averaged-sgd", "pegasos"] {
        let trained = bench.json(&format!("{line} --solver {solver} --judge-every 30"));
        let share = number(&trained["read"], "share");
        assert!(share > 0.0 && share < 3.0, "{trained}");
        let again = bench.json(&format!("{line} --solver {solver} --judge-every 30 --threads 1"));
        assert_eq!((&trained["objective"], &trained["read"]), (&again["objective"], &again["read"]));
        bench.ok(&format!("{line} --solver {solver} --judge-every 30")).shows("% of a pass");
        bench.ok("verify m.mm text.txt").shows("the objective agrees");
    }
    bench.refused("train classify text.txt -o n.mm --solver sgd --judge-every 30", "MM0402").says("nothing is judged");
    let other = "train classify text.txt -o n.mm --judge-every 30 --early-stopping validation --holdout 0.3";
    bench.refused(other, "MM0402").says("stochastic solvers");
}

#[test]
fn stochastic_settings_are_refused_where_they_do_not_apply() {
    let bench = Workbench::with_text();
    let refused = |flags: &str, words: &str| {
        bench.refused(&format!("train classify text.txt -o m.mm {flags}"), "MM0402").says(words);
    };
    refused("--rate 1", "--rate is for the stochastic solvers, and the solver is `auto`");
    refused("--solver newton --loss squared-hinge --batch 2", "--batch is for the stochastic solvers");
    refused("--solver pegasos --rate 1", "Pegasos takes steps of 1/(λt)");
    refused("--solver pegasos --schedule constant", "Pegasos takes steps of 1/(λt)");
    refused("--solver sgd --rate 0", "--rate is 0");
    refused("--solver sgd --rate -1", "--rate is -1");
    refused("--solver sgd --batch 0", "--batch is 0");
    refused("--solver sgd --sample pairs", "--sample is not a flag of `train classify`: it is for `train rank`");
    bench.refused("train classify text.txt -o m.mm --solver sgd --schedule slow", "MM0405").says("bottou");
    // A step length that makes the weights diverge gives an error, not a model.
    let ran = bench.run("train classify text.txt -o m.mm --solver sgd --loss squared-hinge --rate 1e300");
    ran.failed(2, "MM0407").says("--rate");
}

#[test]
fn stochastic_settings_repeat_a_run_from_a_file() {
    let bench = Workbench::with_search();
    let flags = "--solver averaged-sgd --schedule inverse --rate 0.25 --batch 3 --project --sample queries";
    bench.ok(&format!("train rank search.txt -o first.mm -q --max-passes 4 {flags}"));
    let settings = bench.ok("inspect first.mm --settings").stdout;
    assert!(settings.contains("[train.stochastic]\nschedule = \"inverse\"\nrate = 0.25\nbatch = 3\n"), "{settings}");
    bench.write("settings.toml", settings);
    bench.ok("train rank search.txt --config settings.toml -o second.mm -q");
    assert_eq!(bench.read("first.mm"), bench.read("second.mm"));
    bench.ok("train rank search.txt --config settings.toml --batch 1 -o third.mm -q");
    assert_ne!(bench.read("first.mm"), bench.read("third.mm"));
    bench.write("settings.toml", "[train.stochastic]\nbach = 3\n");
    bench.refused("train rank search.txt -o m.mm --config settings.toml", "MM0404").says("`batch`");
}

#[test]
fn the_first_rate_is_shown_and_given_to_machines() {
    let bench = Workbench::with_text();
    let line = "train classify text.txt -o m.mm --solver sgd --max-passes 2";
    let found = bench.json(line)["rate"].as_f64().expect("a rate");
    assert!(found > 0.0 && found.log2().fract() == 0.0, "a power of two: {found}");
    bench.ok(line).shows(&format!("solver sgd, first rate {found} found on a sample"));
    let given = format!("{line} --rate 0.3");
    assert_eq!(bench.json(&given)["rate"], 0.3);
    let ran = bench.ok(&given);
    ran.shows("solver sgd, first rate 0.3");
    assert!(bench.json(&line.replace("sgd", "pegasos"))["rate"].is_null(), "pegasos has none");
    assert!(bench.json("train classify text.txt -o m.mm")["rate"].is_null(), "nor has any other solver");
}

#[test]
fn settings_that_would_learn_nothing_or_something_else_are_refused() {
    let bench = Workbench::with_search();
    bench
        .refused("train rank search.txt -o m.mm --solver sgd --max-passes 0", "MM0402")
        .says("nothing would be learned");
    bench.refused("train rank search.txt -o m.mm --solver sgd --batch 0", "MM0402").says("from 1 on");
    let queries = "train rank search.txt -o m.mm --solver sgd --max-passes 1 --sample queries";
    bench.refused(&format!("{queries} --pair-weight grade-gap"), "MM0402").says("every query the same weight");
    bench.ok(queries).says("--pair-weight per-query so that they agree");
    let agreed = bench.ok(&format!("{queries} --pair-weight per-query"));
    assert!(!agreed.stderr.contains("so that they agree"), "{}", agreed.stderr);
    bench.write("items.csv", "id,x\na,1\nb,2\n").write("pairs.csv", "better,worse\nb,a\n");
    bench
        .refused("train rank pairs.csv --items items.csv -o m.mm --solver sgd --sample queries", "MM0402")
        .says("explicit pairs have none");
}
