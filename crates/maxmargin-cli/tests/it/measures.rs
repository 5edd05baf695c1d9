//! `--optimize`: measures of whole orders and of all labels, from a file to a proven model, evaluated, tuned and used.

use crate::workbench::{Workbench, number};

#[test]
fn a_ranker_of_whole_orders_is_trained_verified_evaluated_and_inspected() {
    let bench = Workbench::with_search();
    for measure in ["map", "ndcg@5", "auc", "p@3", "mrr", "map:mslr"] {
        let train = format!("train rank search.txt --scale standard --optimize {measure} -o m.mm");
        let object = bench.json(&format!("{train} --validation search-test.txt --report r.html"));
        assert_eq!(object["converged"], true, "{object}");
        // One constraint for each query that has a wrong order, and not one for each pair.
        assert!(number(&object, "constraints") <= 40.0, "{object}");
        let first = if measure == "auc" { "pair-accuracy" } else { measure };
        assert!(object["held_out"]["metrics"][first].as_f64().is_some_and(|value| value > 0.3), "{object}");
        assert!(bench.text("r.html").contains("</html>"));
        bench.ok("verify m.mm search.txt").shows("the certificate holds");
        bench.json("evaluate m.mm search-test.txt").get(first).expect("the optimised measure");
        bench.ok("inspect m.mm --settings").shows(&format!("optimize = \"{measure}\""));
    }
    // The settings of the model give the same bytes again.
    let settings = bench.ok("inspect m.mm --settings");
    bench.write("settings.toml", &settings.stdout);
    bench.ok("train rank search.txt --config settings.toml -o again.mm");
    assert_eq!(bench.read("m.mm"), bench.read("again.mm"));
}

#[test]
fn what_is_left_out_and_what_is_a_bound_is_said() {
    let bench = Workbench::new();
    let mut text = String::new();
    for query in 0..6 {
        for row in 0..5 {
            // The last two queries have a single kind of rows.
            let grade = match query {
                4 => 0,
                5 => 2,
                _ => row % 3,
            };
            text.push_str(&format!("{grade} qid:{query} 1:{} 2:{}\n", row % 3, (row * 7 + query) % 5));
        }
    }
    bench.write("rows.txt", text);
    bench
        .ok("train rank rows.txt --optimize ndcg@3 -o m.mm")
        .says("6 queries, 2 left out, all of whose orders are equally good")
        .says("the loss is an upper bound of 1 - ndcg@3");
    let ran = bench.ok("train rank rows.txt --optimize map -o m.mm");
    assert!(!ran.stderr.contains("upper bound"), "{}", ran.stderr);
    bench.refused("train rank rows.txt --optimize p@5 -o n.mm", "MM0304");
}

#[test]
fn c_is_chosen_by_the_measure_that_is_optimised() {
    let bench = Workbench::with_search();
    let tune = "tune rank search.txt --scale standard --optimize map --grid 0.01,1,100";
    let object = bench.json(&format!("{tune} --validation search-test.txt -o m.mm"));
    assert_eq!(object["metric"], "map", "{object}");
    bench.ok("verify m.mm search.txt");
    bench.ok(&format!("{tune} --folds 3")).shows("map");
}

#[test]
fn a_classifier_of_all_rows_is_trained_verified_evaluated_and_used() {
    let bench = Workbench::with_text();
    for measure in ["f1", "prbep", "p@50", "auc", "error"] {
        let train = format!("train classify text.txt --optimize {measure} -c 0.1 --tolerance 1e-2 -o m.mm");
        let object = bench.json(&format!("{train} --validation text-test.txt"));
        assert_eq!(object["converged"], true, "{object}");
        let first = measure;
        assert!(object["held_out"]["metrics"][first].is_number(), "{object}");
        bench.ok("verify m.mm text.txt").shows("the certificate holds");
        bench.ok("predict m.mm text-test.txt -o predicted.txt");
        assert_eq!(bench.text("predicted.txt").lines().count(), bench.text("text-test.txt").lines().count());
    }
    bench.ok("train classify text.txt --optimize auc -c 0.1 --tolerance 1e-2 -o m.mm").says("is not trained");
}

#[test]
fn what_a_measure_does_not_take_is_refused() {
    let bench = Workbench::with_search();
    bench.write("items.csv", "id,x\na,1\nb,2\nc,3\n").write("pairs.csv", "better,worse\na,b\nb,c\n");
    for (flags, code) in [
        ("rank search.txt --optimize mpa", "MM0402"),
        ("rank search.txt --optimize map --loss squared-hinge", "MM0402"),
        ("rank search.txt --optimize map --pair-weight per-query", "MM0402"),
        ("rank search.txt --order-score sum", "MM0402"),
        ("rank pairs.csv --items items.csv --optimize map", "MM0402"),
        ("classify search.txt --optimize f1 --intercept free", "MM0402"),
        ("classify search.txt --optimize f1 --probability platt", "MM0402"),
        ("classify search.txt --optimize f1", "MM0302"),
    ] {
        bench.refused(&format!("train {flags} -o m.mm"), code).says("help: ");
    }
}
