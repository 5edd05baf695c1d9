//! Kernels at the command line: nu, one class, graded rows, tuned widths, compacted models, kernel values from a file.

use crate::workbench::{Workbench, close, number};
use serde_json::Value;

#[test]
fn a_share_finds_its_own_c_and_the_model_says_both() {
    let bench = Workbench::with_text();
    let trained = bench.json("train classify text.txt -o m.mm --kernel gaussian --nu 0.4");
    assert_eq!(trained["converged"], true);
    assert_eq!(number(&trained, "nu"), 0.4);
    let c = number(&trained, "c");
    bench.ok("verify m.mm text.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("nu = 0.4, which makes C =");
    // The same model with that C.
    let again = bench.json(&format!("train classify text.txt -o c.mm --kernel gaussian -c {c}"));
    assert!(close(number(&again, "objective"), number(&trained, "objective"), 3e-3), "{trained} {again}");
    assert!(again["nu"].is_null());
    bench.refused("train classify text.txt -o x.mm --nu 0.4 -c 1", "MM0405");
    bench.refused("train classify text.txt -o x.mm --nu 1.5", "MM0402").says("above 0 and at most 1");
    bench.refused("train classify text.txt -o x.mm --nu 0.4 --loss squared-hinge", "MM0402").says("hinge");
    bench.refused("train classify text.txt -o x.mm --nu 0.4 --solver newton", "MM0402").says("not --nu");
    bench.refused("tune classify text.txt --nu 0.4", "MM0402").says("nothing to tune");
    assert!(!bench.files().contains("x.mm"));
    bench.ok("inspect m.mm --settings").shows("nu = 0.4");
}

#[test]
fn one_class_tells_typical_rows_from_outliers() {
    let bench = Workbench::new();
    let mut rows = String::from("kind,x,y\n");
    (0..60).for_each(|at| rows.push_str(&format!("good,{},{}\n", f64::from(at % 8) / 8.0, f64::from(at % 7) / 7.0)));
    bench.write("seen.csv", &rows);
    bench.write("new.csv", "kind,x,y\ngood,0.4,0.5\nbad,9,9\nworse,-8,3\n");
    let trained = bench.json("train one-class seen.csv -o m.mm --kernel gaussian --target kind");
    assert_eq!((number(&trained, "nu"), trained["converged"].clone()), (0.1, Value::Bool(true)));
    bench.ok("verify m.mm seen.csv").shows("the certificate holds");
    let lines = bench.ok("predict m.mm new.csv").stdout;
    let labels: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(labels, ["good", "outlier", "outlier"]);
    let measured = bench.json("evaluate m.mm new.csv");
    assert_eq!((number(&measured, "accuracy"), number(&measured, "auc")), (1.0, 1.0));
    bench.ok("inspect m.mm").shows("one-class").shows("`good` where the score is positive, else `outlier`");
    bench.refused("train one-class seen.csv -o x.mm --target kind --class-weight balanced", "MM0402");
    bench.refused("train one-class seen.csv -o x.mm --target kind --loss logistic", "MM0402");
    bench.refused("train one-class seen.csv -o x.mm --target kind --intercept free", "MM0402");
    bench.refused("tune one-class seen.csv --target kind", "MM0402").says("no labels");
}

#[test]
fn features_that_no_row_learned_from_shows_can_be_announced() {
    let bench = Workbench::new();
    bench.write("seen.txt", "1 1:0.5 2:1\n1 1:0.6 2:0.9\n1 1:0.4 2:1.1\n");
    bench.write("new.txt", "1 1:0.5 2:1\n-1 1:0.5 4:3\n");
    bench.ok("train one-class seen.txt -o short.mm --kernel gaussian");
    bench.refused("predict short.mm new.txt", "MM0306");
    bench.ok("train one-class seen.txt -o m.mm --kernel gaussian --least-features 4");
    bench.ok("verify m.mm seen.txt").shows("the certificate holds");
    let lines = bench.ok("predict m.mm new.txt").stdout;
    let labels: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(labels, ["1", "-1"]);
}

#[test]
fn a_share_that_leaves_no_margin_is_an_error_with_a_page() {
    let bench = Workbench::new();
    bench.write("items.csv", "id,a\nx,1\ny,2\n");
    bench.write("pairs.csv", "better,worse\nx,y\ny,x\n");
    bench.refused("train rank pairs.csv --items items.csv -o m.mm --nu 0.2", "MM0322").says("weights are zero");
    bench.ok("explain MM0322").shows("larger `--nu`");
}

#[test]
fn graded_rows_are_ranked_through_a_kernel() {
    let bench = Workbench::with_search();
    let trained =
        bench.json("train rank search.txt -o m.mm --kernel gaussian --scale standard --validation search-test.txt");
    assert_eq!((trained["converged"].clone(), trained["solver"].clone()), (Value::Bool(true), "newton".into()));
    bench.ok("verify m.mm search.txt").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("the vectors suffice");
    assert!(number(&bench.json("evaluate m.mm search-test.txt --metric ndcg@10"), "ndcg@10") > 0.5);
    bench.refused("train rank search.txt -o x.mm --kernel gaussian --loss hinge", "MM0401").says("squared hinge");
}

#[test]
fn widths_are_tuned_with_c_and_shown() {
    let bench = Workbench::with_text();
    let line = "tune classify text.txt --kernel gaussian --grid 0.1,10 --gamma-grid 0.1,1,100 --folds 3 -o m.mm --report r.html";
    let tuned = bench.json(line);
    assert_eq!(tuned["rows"].as_array().map(Vec::len), Some(6));
    let best = number(&tuned["best"], "gamma");
    assert_eq!(number(&bench.json("inspect m.mm")["kernel"]["kernel"]["gaussian"], "gamma"), best);
    bench.ok("verify m.mm text.txt").shows("the certificate holds");
    assert!(bench.text("r.html").contains("over C and gamma"));
    let shown = bench.ok("tune classify text.txt --kernel gaussian --grid 1 --folds 3");
    assert!(shown.stdout.contains("gamma =") && shown.stdout.contains("--gamma "), "{}", shown.stdout);
    bench.refused("tune classify text.txt --gamma-grid 1,2", "MM0402").says("no gamma");
    bench.refused("tune classify text.txt --kernel gaussian --gamma-grid 0", "MM0402");
    bench.refused("tune classify text.txt --kernel gaussian --gamma-grid 1,2 --gamma 1", "MM0405");
}

#[test]
fn a_model_is_compacted_and_says_how_near_it_stays() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm --kernel gaussian");
    let whole = number(&bench.json("evaluate m.mm text-test.txt"), "accuracy");
    let small = bench.json("compact m.mm -o s.mm --vectors 40");
    assert_eq!(number(&small["vectors"], "after"), 40.0);
    assert!(number(&small, "distance") < number(&small, "norm"));
    assert!(number(&bench.json("evaluate s.mm text-test.txt"), "accuracy") > whole - 0.1);
    bench.ok("inspect s.mm").shows("40, compacted from");
    bench.refused("verify s.mm text.txt", "MM0401").says("compacted");
    bench.ok("compact m.mm -o d.mm").shows("scores differ by at most");
    bench.ok("train classify text.txt -o l.mm");
    bench.refused("compact l.mm -o x.mm", "MM0401").says("is linear");
    bench.refused("compact m.mm -o x.mm --distance -1", "MM0402");
    bench.refused("compact m.mm -o x.mm --distance 2", "MM0402");
    let all = bench.json("compact m.mm -o all.mm --vectors 100000");
    assert_eq!((number(&all, "distance"), &all["vectors"]["before"]), (0.0, &all["vectors"]["after"]));
    bench.ok("train classify text.txt -o g.mm --kernel sigmoid --max-passes 50").shows("no bound can be proven");
    bench.refused("compact g.mm -o x.mm", "MM0401").says("definite");
    bench.refused("compact m.mm -o m.mm", "MM0108");
    bench.refused("compact none.mm -o x.mm", "MM0101");
    assert!(!bench.files().contains("x.mm"));
}

#[test]
fn kernel_values_come_from_a_file_as_libsvm_writes_them() {
    let bench = Workbench::new();
    // exp(−(i − j)²/8) between eight points on a line, labelled by their side of the middle.
    let value = |i: i32, j: i32| (-f64::from((i - j) * (i - j)) / 8.0).exp();
    let row = |label: &str, number: usize, at: i32| {
        let values: Vec<String> = (0..8).map(|j| format!("{}:{}", j + 1, value(at, j))).collect();
        format!("{label} 0:{number} {}\n", values.join(" "))
    };
    let table: String = (0..8).map(|i| row(if i < 4 { "-1" } else { "+1" }, i as usize + 1, i)).collect();
    bench.write("k.svm", &table);
    let trained = bench.json("train classify k.svm -o m.mm --kernel precomputed");
    assert_eq!(trained["converged"], true);
    bench.ok("verify m.mm k.svm").shows("the certificate holds");
    // New rows: their kernel values with the training rows.
    bench.write("new.svm", row("+1", 1, 7) + &row("-1", 2, 0));
    let lines = bench.ok("predict m.mm new.svm").stdout;
    let labels: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(labels, ["1", "-1"]);
    bench
        .refused("train classify k.svm -o x.mm --kernel precomputed --holdout 0.3", "MM0402")
        .says("no rows can be held out");
    bench.write("crooked.svm", table.replacen("2:0.88", "2:0.11", 1));
    bench.refused("train classify crooked.svm -o x.mm --kernel precomputed", "MM0402").says("must be symmetric");
    bench.write("short.svm", table.lines().take(5).collect::<Vec<_>>().join("\n") + "\n");
    bench.refused("train classify short.svm -o x.mm --kernel precomputed", "MM0402").says("square");
}
