//! `train compare --ties-from-grades`: from graded lists to a proven model, evaluated and used on lists and on pairs.

use crate::workbench::{Workbench, number};

/// Forty queries of nine rows with three grades, which two features nearly determine.
fn bench() -> Workbench {
    let bench = Workbench::new();
    let mut lists = String::new();
    for query in 0..40u32 {
        for row in 0..9u32 {
            let grade = row % 3;
            let noise = f64::from((query * 31 + row * 17) % 13) / 13.0;
            let other = f64::from((query * 7 + row * 5) % 11) / 11.0;
            lists.push_str(&format!("{grade} qid:{query} 1:{} 2:{other}\n", f64::from(grade) + 0.8 * noise));
        }
    }
    bench.write("lists.txt", lists);
    bench.write("wide.csv", "left.1,left.2,right.1,right.2,outcome\n2.1,0.1,0.2,0.3,left\n0.1,0.5,0.2,0.5,tie\n");
    bench
}

const TRAIN: &str = "train compare lists.txt --ties-from-grades -o m.mm";

#[test]
fn graded_lists_teach_scores_and_a_threshold() {
    let bench = bench();
    for more in ["", "--loss squared-hinge", "--solver cutting-plane", "--loss squared-hinge --intercept penalised"] {
        let object = bench.json(&format!("{TRAIN} {more}"));
        assert_eq!(object["converged"], true, "{more}");
        // 27 decided pairs per query, and 9 ties with two constraints each.
        assert_eq!(number(&object, "constraints"), 40.0 * 45.0);
        assert!(number(&object, "threshold") > 0.0);
        let verified = bench.json("verify m.mm lists.txt");
        assert_eq!(number(&verified, "objective"), number(&object, "objective"));
        std::fs::remove_file(bench.path("m.mm")).expect("written");
    }
    bench.ok(TRAIN).says("1,440 pairs").says("360 ties");
}

#[test]
fn such_a_model_ranks_rows_and_compares_pairs() {
    let bench = bench();
    bench.ok(&format!("{TRAIN} --holdout 0.25")).shows("ndcg@10");
    assert!(number(&bench.json("evaluate m.mm lists.txt --report r.html"), "ndcg@10") > 0.9);
    let scores = bench.ok("predict m.mm lists.txt -o scores.txt");
    drop(scores);
    assert_eq!(bench.text("scores.txt").lines().count(), 360);
    assert!(bench.text("scores.txt").lines().all(|line| line.parse::<f64>().is_ok()));
    bench.ok("predict m.mm lists.txt --format trec -o run.txt");
    assert_eq!(bench.text("run.txt").lines().count(), 360);
    bench.ok("predict m.mm wide.csv -o outcomes.txt");
    let outcomes: Vec<String> =
        bench.text("outcomes.txt").lines().filter_map(|line| Some(line.split('\t').next()?.to_string())).collect();
    assert_eq!(outcomes, ["left", "tie"]);
    assert_eq!(number(&bench.json("evaluate m.mm wide.csv --metric error"), "error"), 0.0);
}

#[test]
fn what_grades_cannot_do_is_refused() {
    let bench = bench();
    bench.refused("train rank lists.txt --ties-from-grades -o m.mm", "MM0402");
    bench.refused(&format!("{TRAIN} --method rank"), "MM0402");
    bench.refused(&format!("{TRAIN} --items lists.txt"), "MM0402");
    bench.refused(&format!("{TRAIN} --pair-weight per-query"), "MM0402");
    bench.refused(&format!("{TRAIN} --kernel gaussian"), "MM0401");
    bench.refused(&format!("{TRAIN} --solver sgd"), "MM0401");
    bench.refused(&format!("{TRAIN} --loss logistic"), "MM0401");
    bench.refused("train compare wide.csv --ties-from-grades -o m.mm", "MM0402");
    bench.write("same.txt", "1 qid:1 1:1\n1 qid:1 1:2\n2 qid:2 1:1\n2 qid:2 1:3\n");
    bench.refused("train compare same.txt --ties-from-grades -o m.mm", "MM0323");
    bench.write("apart.txt", "1 qid:1 1:1\n2 qid:1 1:2\n1 qid:2 1:1\n2 qid:2 1:3\n");
    bench.refused("train compare apart.txt --ties-from-grades -o m.mm", "MM0323");
    bench.write("bare.txt", "1 1:1\n2 1:2\n");
    bench.refused("train compare bare.txt --ties-from-grades -o m.mm", "MM0303");
}
