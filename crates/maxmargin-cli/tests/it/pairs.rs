//! Pairs of a better and a worse item: from files to a proven model, and all errors on the way.

use crate::workbench::{Workbench, close, number};

const ITEMS: &str = "id,height,weight\na,1,2\nb,2,1\nc,3,5\nd,0.5,0.2\n";
const PAIRS: &str = "better,worse,weight,judge\nc,a,2,x\nc,b,1,x\na,d,1,y\nb,d,3,y\n";

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("items.csv", ITEMS).write("pairs.csv", PAIRS);
    bench
}

const TRAIN: &str = "train rank pairs.csv --items items.csv -o m.mm";

#[test]
fn pairs_are_learned_with_every_loss_and_weighting_and_verified() {
    let bench = bench();
    for loss in ["hinge", "squared-hinge", "logistic"] {
        for way in ["slack", "margin", "replicate"] {
            if (loss, way) == ("logistic", "margin") {
                bench.refused(&format!("{TRAIN} --loss {loss} --pair-weight-as {way}"), "MM0402");
                continue;
            }
            let object = bench.json(&format!("{TRAIN} --loss {loss} --pair-weight-as {way}"));
            assert_eq!(object["converged"], true);
            assert_eq!(number(&object, "constraints"), if way == "replicate" { 7.0 } else { 4.0 });
            let verified = bench.json("verify m.mm pairs.csv --items items.csv");
            assert!(close(number(&verified, "objective"), number(&object, "objective"), 1e-12));
            std::fs::remove_file(bench.path("m.mm")).expect("written");
        }
    }
}

#[test]
fn what_was_found_is_said() {
    let bench = bench();
    bench.write("pairs.csv", format!("{PAIRS}a,c,1,z\nd,a,1,z\nd,b,1,z\n"));
    let ran = bench.ok(&format!("{TRAIN} --report r.html"));
    let ran = ran
        .says("7 pairs over 4 items · 3 contradicted · 1 preference cycle")
        .says("items by their ids")
        .says("weight column `weight`")
        .says("unused columns ignored: `judge`")
        .says("3 contradictions (6 pairs): the same two items in both orders, so every scoring function violates a weight of at least 3")
        .says("1 preference cycle (4 items, 7 pairs of weight 10 among them): no scoring function satisfies all of these pairs");
    ran.shows("next: maxmargin evaluate m.mm test-data --items items.csv");
    assert!(bench.text("r.html").contains("no scoring function satisfies all of these"));
    let pairs = &bench.json(TRAIN)["pairs"];
    assert_eq!(number(pairs, "count"), 7.0);
    assert_eq!(number(pairs, "contradictions"), 3.0);
    assert_eq!(number(pairs, "contradicted_weight"), 3.0);
    assert_eq!(number(pairs, "cyclic_groups"), 1.0);
    assert_eq!(pairs["consistent"], false);
    bench.write("pairs.csv", PAIRS);
    assert_eq!(bench.json(TRAIN)["pairs"]["consistent"], true);
}

#[test]
fn a_model_of_pairs_scores_items_and_is_measured_on_pairs() {
    let bench = bench();
    bench.ok(TRAIN);
    let scores = bench.ok("predict m.mm items.csv").stdout;
    let scores: Vec<f64> = scores.lines().map(|line| line.parse().expect("a score")).collect();
    assert!(scores[2] > scores[0] && scores[2] > scores[1] && scores[0] > scores[3] && scores[1] > scores[3]);
    assert_eq!(number(&bench.json("evaluate m.mm pairs.csv --items items.csv"), "pair-accuracy"), 1.0);
    // A weight of 3 against one of 1. Two items with equal scores count half.
    bench.write("items2.csv", "id,height,weight\na,1,2\nb,1,2\nc,3,5\n");
    bench.write("pairs2.csv", "better,worse,weight\nc,a,3\na,c,1\na,b,4\n");
    let object = bench.json("evaluate m.mm pairs2.csv --items items2.csv --interval --report e.html");
    assert_eq!(number(&object, "pair-accuracy"), (3.0 + 2.0) / 8.0);
    assert!(object["pair-accuracy interval"].is_array());
    assert!(bench.text("e.html").contains("Better minus worse"));
    // Items with targets are evaluated by their targets as before.
    bench.write("graded.csv", "id,target,qid,height,weight\na,1,q,1,2\nb,0,q,0.5,0.2\n");
    assert_eq!(number(&bench.json("evaluate m.mm graded.csv --metric map"), "map"), 1.0);
    bench.refused("evaluate m.mm pairs.csv --items items.csv --metric ndcg@10", "MM0305");
}

#[test]
fn pairs_come_from_standard_input_and_are_held_out_by_group() {
    let bench = bench();
    let line = "train rank - --items items.csv -o m.mm --group judge --holdout 0.5 --seed 1 --json";
    let object = bench.run_with_input(line, PAIRS).succeeded().object();
    assert_eq!(number(&object, "constraints"), 2.0);
    assert!(object["held_out"]["metrics"]["pair-accuracy"].is_number(), "{object}");
    bench.run_with_input("verify m.mm - --items items.csv", PAIRS).succeeded();
    bench.run_with_input("train rank - --items - -o n.mm", PAIRS).failed(2, "MM0405");
    bench.write("more.csv", "better,worse\nc,d\n");
    let object = bench.json(&format!("{TRAIN} --validation more.csv"));
    assert_eq!(object["held_out"]["metrics"]["pair-accuracy"], 1.0);
}

#[test]
fn both_items_in_one_row_are_found_without_a_flag() {
    let bench = bench();
    bench.write(
        "wide.csv",
        "better.height,better.weight,worse.height,worse.weight,weight\n\
         3,5,1,2,2\n3,5,2,1,1\n1,2,0.5,0.2,1\n2,1,0.5,0.2,3\n",
    );
    let wide = bench.json("train rank wide.csv -o w.mm --tolerance 1e-9");
    bench.ok("train rank wide.csv -o w.mm --tolerance 1e-9").says("8 rows × 2 features · 4 pairs over 8 items");
    let named = bench.json(&format!("{TRAIN} --tolerance 1e-9"));
    assert!(close(number(&wide, "objective"), number(&named, "objective"), 1e-8));
    bench.ok("verify w.mm wide.csv");
    assert_eq!(number(&bench.json("evaluate w.mm wide.csv"), "pair-accuracy"), 1.0);
    assert_eq!(number(&bench.json("evaluate m.mm wide.csv"), "pair-accuracy"), 1.0);
    bench.ok("predict w.mm items.csv");
    bench.refused("verify m.mm items.csv", "MM0309").says("their items with --items").says("explicit pairs");
    bench.write("lone.csv", "better.a,worse.b\n1,2\n");
    bench.refused("train rank lone.csv -o x.mm", "MM0215").says("`better.a` has no partner");
}

#[test]
fn wrong_pairs_and_items_are_refused_at_their_place() {
    let bench = bench();
    let refused = |pairs: &str, code: &str| {
        bench.write("pairs.csv", pairs);
        bench.refused(TRAIN, code)
    };
    refused("better,worse\nc,a\nc,aa\n", "MM0231").marks("pairs.csv:3:3", "aa").says("no item has the id `aa`");
    refused("better,worse\nc,c\n", "MM0232").marks("pairs.csv:2:3", "c");
    refused("better,worse\nc,\n", "MM0212").says("pairs.csv:2:3");
    refused("better,worse,weight\nc,a,x\n", "MM0219").marks("pairs.csv:2:5", "x");
    refused("better,worse\n", "MM0201");
    refused("good,bad\nc,a\n", "MM0213").says("`good`, `bad`");
    refused("better,worse,weight\nc,a,0\n", "MM0219");
    bench.write("pairs.csv", "better,worse,weight\nc,a,1.5\n");
    bench.refused(&format!("{TRAIN} --pair-weight-as replicate"), "MM0219").says("pair 1 (`c` over `a`)");
    bench.write("pairs.csv", PAIRS).write("items.csv", "id,x\na,1\nb,2\na,3\n");
    bench.refused(TRAIN, "MM0233").says("rows 1 and 3 both have the id `a`").says("items.csv");
    bench.write("items.csv", "name,x\n1,1\n2,2\n");
    bench.refused(TRAIN, "MM0213").says("--id COLUMN");
    bench.refused("train classify pairs.csv --items items.csv -o m.mm", "MM0402");
    bench.refused("train one-class pairs.csv -o m.mm --pair-weight-as margin", "MM0402");
    bench.refused("train rank pairs.csv --items nowhere.csv -o m.mm", "MM0101");
    bench.write("items.txt", "0 1:1\n0 1:2\n").write("pairs.csv", "better,worse\n1,3\n");
    bench.refused("train rank pairs.csv --items items.txt -o m.mm", "MM0231").says("its 2 rows are named by number");
    bench.refused("train rank items.txt --items items.txt -o m.mm", "MM0104").says("pairs are a table");
}

#[test]
fn a_hard_margin_is_found_or_refused_with_its_proof() {
    let bench = bench();
    let hard = format!("{TRAIN} --solver quadratic-program");
    let object = bench.json(&hard);
    assert_eq!((object["converged"].as_bool(), object["c"].is_null()), (Some(true), true));
    bench.ok(&hard).shows("separable: objective").shows("hard margin, 4 constraints");
    bench.ok("verify m.mm pairs.csv --items items.csv").shows("the certificate holds");
    bench.ok("inspect m.mm").shows("none, hard margin").shows("4 pairs of 4 items, 4 constraints");
    // A training can be repeated from the settings of its model.
    let settings = bench.ok("inspect m.mm --settings").stdout;
    bench.write("again.toml", settings);
    bench.ok("train rank pairs.csv --items items.csv -o again.mm --config again.toml");
    assert_eq!(bench.read("again.mm"), bench.read("m.mm"));
    std::fs::remove_file(bench.path("m.mm")).expect("written");
    for flag in ["-c 1", "--lambda 0.1", "--loss hinge"] {
        bench.refused(&format!("{hard} {flag}"), "MM0402").says(flag.split(' ').next().expect("a flag"));
    }
    bench.write("pairs.csv", format!("{PAIRS}a,c,1,z\n"));
    bench.refused(&hard, "MM0320").says("3 pairs contradict each other").says("`a` over `c`").says("soft margin");
    bench.write("rows.csv", "label,x\nyes,1\nno,0\nyes,0.5\n");
    bench.ok("train classify rows.csv -o c.mm --solver quadratic-program");
    bench.ok("verify c.mm rows.csv");
    bench.write("rows.csv", "label,x\nyes,1\nno,0.7\nyes,0.5\n");
    bench.refused("train classify rows.csv -o d.mm --solver quadratic-program", "MM0320").says("3 rows prove it");
    bench.write("graded.txt", "1 qid:1 1:1\n0 qid:1 1:2\n");
    bench.refused("train rank graded.txt -o g.mm --solver quadratic-program", "MM0401");
}

#[test]
fn graded_rows_still_take_their_one_loss() {
    let bench = Workbench::with_search();
    bench.refused("train rank search.txt -o m.mm --loss logistic", "MM0401").says("explicit pairs");
    bench.refused("train rank search.txt -o m.mm --pair-weight-as margin", "MM0402").says("these rows are graded");
}

#[test]
fn items_that_were_forgotten_are_asked_for() {
    let bench = bench();
    bench.ok(TRAIN);
    for line in
        ["train rank pairs.csv -o x.mm", "tune rank pairs.csv", "verify m.mm pairs.csv", "evaluate m.mm pairs.csv"]
    {
        bench.refused(line, "MM0234").says("pairs.csv").says("with --items FILE");
    }
    bench.refused("predict m.mm pairs.csv", "MM0234").says("give the file that holds the items");
    // A model with features of these names still reads them, and so does a graded table.
    bench.write("odd.csv", "better,worse,target,qid\n1,2,0,a\n2,1,1,a\n0.5,3,0,a\n");
    bench.ok("train rank odd.csv -o odd.mm");
    bench.write("bare.csv", "better,worse\n1,2\n");
    bench.ok("predict odd.mm bare.csv");
    bench.refused("train rank bare.csv -o bare.mm --ignore better", "MM0305");
}

#[test]
fn c_is_tuned_on_pairs_that_are_held_out_with_their_groups() {
    let bench = bench();
    let lines = |count: usize| -> String {
        (0..count)
            .map(|at| format!("{},{},{}\n", ["c", "c", "a", "b"][at % 4], ["a", "b", "d", "d"][at % 4], at % 5))
            .collect()
    };
    bench.write("many.csv", format!("better,worse,judge\n{}", lines(40)));
    for loss in ["squared-hinge", "hinge"] {
        let line = format!("tune rank many.csv --items items.csv --group judge --folds 5 -o t.mm --loss {loss}");
        let tuned = bench.json(&line);
        assert_eq!(tuned["folds"], serde_json::json!([8, 8, 8, 8, 8]), "a judge a fold");
        assert_eq!(tuned["metric"], "pair-accuracy");
        assert_eq!((number(&tuned["best"], "mean"), number(&tuned["pairs"], "count")), (1.0, 40.0));
        assert_eq!(number(&tuned["model"], "constraints"), 40.0);
        bench.ok("verify t.mm many.csv --items items.csv --group judge").shows("the certificate holds");
    }
    let ran = bench.ok("tune rank many.csv --items items.csv --grid 0.1,1 --scale standard --report t.html");
    ran.shows("over 5 folds").shows("next: maxmargin train rank many.csv --items items.csv -c 0.1 -o model.mm");
    assert!(bench.text("t.html").contains("pairs held out by each fold"));
    bench.refused("tune rank many.csv --items items.csv --group judge --folds 6", "MM0311").says("5 groups");
    bench.refused("tune rank many.csv --items items.csv --metric ndcg@10", "MM0305");
    bench.refused("tune classify many.csv --items items.csv", "MM0402");
}

#[test]
fn verify_says_what_differs_between_pairs() {
    let bench = bench();
    bench.ok(&format!("{TRAIN} --holdout 0.25"));
    bench.ok("verify m.mm pairs.csv --items items.csv");
    let verify = |pairs: &str| {
        bench.write("other.csv", pairs);
        bench.refused("verify m.mm other.csv --items items.csv", "MM0309")
    };
    verify("better,worse\nc,a\n").says("1 pair cannot be split").says("25 % of it was held out");
    verify("better,worse\nc,a\nc,b\n").says("1 pair here, 3 there");
    verify(&PAIRS.replace("b,d,3", "b,d,4").replace("c,a,2", "c,a,3"))
        .says("the same number of items and pairs, but other values");
    bench.write("items2.csv", format!("{ITEMS}e,1,1\n"));
    bench.refused("verify m.mm pairs.csv --items items2.csv", "MM0309").says("5 items here, 4 there");
    bench.refused("verify m.mm items.csv", "MM0309").says("trained on explicit pairs").says("their items with --items");
    bench.write("graded.csv", "target,qid,height,weight\n1,q,1,2\n0,q,2,1\n");
    bench.ok("train rank graded.csv -o g.mm");
    bench.refused("verify g.mm pairs.csv --items items.csv", "MM0309").says("these are explicit pairs");
}

#[test]
fn weights_that_cannot_be_reckoned_with_are_said_to_be_so() {
    let bench = bench();
    bench.write("pairs.csv", "better,worse,weight\nc,a,1e300\nc,b,1\n");
    bench
        .refused(&format!("{TRAIN} --pair-weight-as replicate"), "MM0219")
        .says("the weight of pair 1 (`c` over `a`) is 1e300")
        .says("4,294,967,295 times");
    bench.refused(&format!("{TRAIN} --pair-weight-as margin"), "MM0407").says("weights");
    bench.write("pairs.csv", "better,worse,weight\nc,a,1e308\nc,b,1e308\n");
    bench.refused(TRAIN, "MM0219").says("the weights add up to inf");
    bench.write("pairs.csv", "better,worse,weight\nc,a,0\nc,b,0\n");
    bench.refused(TRAIN, "MM0219").says("all weights are zero, so no pair counts").says("2 of weight 0");
    // The singular and the plural of the message.
    bench.write("pairs.csv", "better,worse\nc,a\na,c\n");
    bench.ok(TRAIN).says("violates at least 1 pair");
    bench.write("pairs.csv", "better,worse\nc,a\na,c\nb,d\nd,b\n");
    bench.ok(TRAIN).says("violates at least 2 pairs");
}
