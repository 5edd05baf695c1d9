//! Training within a memory budget.

use crate::workbench::{Workbench, close, number};

/// The smallest accepted budget, taken from the error message for a smaller one.
fn least_budget(bench: &Workbench, line: &str) -> String {
    let refused = bench.refused(&format!("{line} --memory 1MiB"), "MM0408");
    let (_, advice) = refused.stderr.split_once("give --memory ").expect("advice");
    advice.split_whitespace().next().expect("a size").to_string()
}

#[test]
fn a_ranker_of_data_larger_than_the_budget_has_the_same_bytes() {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 1200 --docs 60 --features 60 --seed 3 -o search.mmd -q");
    for settings in ["", "--scale standard", "--scale unit-rows", "--one-group --max-passes 3"] {
        let line = format!("train rank search.mmd {settings}");
        bench.ok(&format!("{line} -o whole.mm -q"));
        let budget = least_budget(&bench, &format!("{line} -o m.mm"));
        bench.ok(&format!("{line} -o m.mm --memory {budget}")).says("a block at a time");
        assert!(bench.read("m.mm") == bench.read("whole.mm"), "`{line}` within {budget}");
        std::fs::remove_file(bench.path("m.mm")).expect("it is there");
    }
    let plenty = bench.ok("train rank search.mmd -o m.mm --memory 100GiB");
    assert!(!plenty.stderr.contains("a block at a time"));
}

#[test]
fn a_classifier_of_data_larger_than_the_budget_has_the_same_optimum_and_a_certificate_that_holds() {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 45000 --features 3000 --nonzeros 40 --seed 3 -o text.mmd -q");
    for settings in ["", "--loss squared-hinge", "--scale max-abs", "--intercept penalised"] {
        let line = format!("train classify text.mmd {settings}");
        let whole = bench.json(&format!("{line} -o whole.mm"));
        let budget = least_budget(&bench, &format!("{line} -o m.mm"));
        let limited = bench.json(&format!("{line} -o m.mm --memory {budget}"));
        for (one, other) in [(&whole, &limited), (&limited, &whole)] {
            assert!(number(one, "lower_bound") <= number(other, "objective"), "{whole} {limited}");
        }
        assert_eq!(limited["converged"], true);
        assert!(close(number(&whole, "objective"), number(&limited, "objective"), 2e-3));
        bench.ok("verify m.mm text.mmd");
        bench.ok(&format!("{line} -o again.mm --memory {budget} --threads 1 -q"));
        assert!(bench.read("again.mm") == bench.read("m.mm"), "threads change nothing");
        std::fs::remove_file(bench.path("m.mm")).expect("it is there");
        std::fs::remove_file(bench.path("again.mm")).expect("it is there");
    }
}

#[test]
fn stochastic_classifiers_read_blocks_and_stochastic_rankers_are_refused_with_a_reason() {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 45000 --features 3000 --nonzeros 40 --seed 3 -o text.mmd -q");
    for solver in ["sgd", "averaged-sgd --scale max-abs", "pegasos --loss squared-hinge"] {
        let line = format!("train classify text.mmd --solver {solver} --max-passes 5");
        let whole = bench.json(&format!("{line} -o whole.mm"));
        let budget = least_budget(&bench, &format!("{line} -o m.mm"));
        let limited = bench.json(&format!("{line} -o m.mm --memory {budget}"));
        assert!(close(number(&whole, "objective"), number(&limited, "objective"), 0.05), "{whole} {limited}");
        bench.ok("verify m.mm text.mmd");
        bench.ok(&format!("{line} -o again.mm --memory {budget} --threads 1 -q"));
        assert!(bench.read("again.mm") == bench.read("m.mm"), "threads change nothing");
        std::fs::remove_file(bench.path("m.mm")).expect("it is there");
        std::fs::remove_file(bench.path("again.mm")).expect("it is there");
    }
    bench.ok("simulate search --queries 600 --docs 60 --features 60 --seed 3 -o search.mmd -q");
    let refused = bench.refused("train rank search.mmd -o m.mm --solver sgd --memory 1MiB", "MM0408");
    refused.says("`sgd` draws pairs from all queries at random").says("leave --solver out");
}

#[test]
fn text_larger_than_the_budget_is_to_be_converted_first() {
    let bench = Workbench::with_search();
    let advised = bench.refused("train rank search.txt -o m.mm --memory 4KiB", "MM0408").says("convert");
    assert!(advised.stderr.contains("search.txt"));
    // A cache would not help if the memory needed apart from the features is already too large.
    let line = "train rank search.txt -o m.mm";
    let refused = bench.refused(&format!("{line} --memory 800kB"), "MM0408").says("the budget is 781 KiB");
    assert!(!refused.stderr.contains("convert"), "{}", refused.stderr);
    let budget = least_budget(&bench, line);
    bench.ok(&format!("{line} --memory {budget} -q"));
    std::fs::remove_file(bench.path("m.mm")).expect("it is there");
    bench.ok("convert search-test.txt -o test.mmd -q");
    bench.ok("train rank search.txt -o m.mm --memory 1GiB --validation test.mmd -q");
    bench.ok("train rank search.txt -o m.mm --memory 1GiB --holdout 0.2 -q");
    std::fs::remove_file(bench.path("m.mm")).expect("it is there");
    bench.refused("train rank search.txt -o m.mm --memory 10MiB --holdout 0.2", "MM0408").says("--validation");
    bench.refused("train rank test.mmd -o m.mm --validation search.txt --memory 4KiB", "MM0408");
}

#[test]
fn a_budget_is_a_size_from_a_flag_or_a_file_and_no_part_of_the_model() {
    let bench = Workbench::with_search();
    for wrong in ["lots", "-1GiB", "0", "4GG"] {
        bench.refused(&format!("train rank search.txt -o m.mm --memory={wrong}"), "MM0405").says("4GiB");
    }
    bench.ok("train rank search.txt -o plain.mm -q");
    bench.write("settings.toml", "[train]\nmemory = \"2GiB\"\n");
    bench.ok("train rank search.txt -o m.mm --config settings.toml -q");
    assert!(bench.read("m.mm") == bench.read("plain.mm"));
    let settings = bench.ok("inspect m.mm --settings").stdout;
    assert!(!settings.contains("memory"), "{settings}");
    bench.write("settings.toml", "[train]\nmemory = \"4KiB\"\n");
    bench.ok("train rank search.txt -o m.mm --config settings.toml --memory 1GB -q");
    std::fs::remove_file(bench.path("m.mm")).expect("it is there");
    bench.refused("train rank search.txt -o m.mm --config settings.toml", "MM0408");
    bench.write("settings.toml", "[train]\nmemory = \"much\"\n");
    bench.refused("train rank search.txt -o m.mm --config settings.toml", "MM0404").says("4GiB");
}
