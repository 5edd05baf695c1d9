//! Tests on real data, if they are in the folder `$MAXMARGIN_DATA`.

use crate::workbench::{Workbench, close, number, skipped};
use std::path::PathBuf;

/// The path of a file; `None`, with a message, if it is missing.
pub(crate) fn data(file: &str) -> Option<String> {
    let folder = std::env::var_os("MAXMARGIN_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let path = folder.join(file);
    if path.is_file() {
        return Some(path.display().to_string());
    }
    skipped(&format!("there is no {}; set MAXMARGIN_DATA to the folder of the real data", path.display()));
    None
}

#[test]
fn mq2008_is_ranked_to_the_optimum() {
    let parts: Option<Vec<String>> =
        ["S1", "S2", "S3", "S5"].iter().map(|part| data(&format!("mq2008/{part}.txt.gz"))).collect();
    let Some(parts) = parts else { return };
    let bench = Workbench::new();
    // Gzip members one after the other are one file.
    let train: Vec<u8> = parts[..3].iter().flat_map(|part| std::fs::read(part).expect("readable")).collect();
    bench.write("train.txt.gz", train);
    let ran = bench.ok("train rank train.txt.gz --loss squared-hinge -c 256 --tolerance 1e-6 -o m.mm --json");
    let trained = ran.object();
    assert_eq!(trained["converged"], true);
    assert!(number(&trained, "gap") <= 1e-6, "{trained}");
    // The optimum that L-BFGS finds over the 52,325 listed pairs.
    assert!(close(number(&trained, "objective"), 7_565_689.628_842, 1e-9), "{trained}");
    assert_eq!((trained["rows"].as_u64(), trained["features"].as_u64()), (Some(9630), Some(46)));
    assert_eq!(trained["constraints"], 52_325);
    let _ = ran.says("svmlight, gzip, 1-based · 9,630 rows × 46 features · 471 queries, ");
    let measured = bench.json(&format!("evaluate m.mm {} --metric ndcg@10:letor,map:letor", parts[3]));
    assert!(number(&measured, "ndcg@10:letor") > 0.15 && number(&measured, "map:letor") > 0.4, "{measured}");
    bench.ok("verify m.mm train.txt.gz").shows("the certificate holds");
}

#[test]
fn a9a_is_classified() {
    let (Some(train), Some(test)) = (data("a9a/a9a.gz"), data("a9a/a9a.t.gz")) else { return };
    let bench = Workbench::new();
    let trained = bench.json(&format!("train classify {train} -o m.mm"));
    assert_eq!(trained["converged"], true, "{trained}");
    assert_eq!((trained["rows"].as_u64(), trained["features"].as_u64()), (Some(32_561), Some(123)));
    let measured = bench.json(&format!("evaluate m.mm {test}"));
    assert!(number(&measured, "accuracy") > 0.845, "{measured}");
}

#[test]
fn ratings_of_five_sets_are_learned_to_the_optimum() {
    for (set, largest) in [("abalone_ord", 0.56), ("bostonhousing_ord", 0.3), ("machine_ord", 0.5), ("auto_ord", 0.5)] {
        let Some(file) = data(&format!("ordinal/{set}.svm.gz")) else { return };
        for form in ["implicit", "explicit"] {
            for loss in ["hinge", "squared-hinge"] {
                let context = format!("{set}, {form}, {loss}");
                let bench = Workbench::new();
                let wanted = format!("--form {form} --loss {loss} --scale standard --tolerance 1e-6");
                let trained = bench.json(&format!("train ordinal {file} -o m.mm {wanted}"));
                assert!(number(&trained, "gap") <= 1e-6, "{context}: {trained}");
                bench.ok(&format!("verify m.mm {file}")).shows("the certificate holds");
                let measured = bench.json(&format!("evaluate m.mm {file}"));
                assert!(number(&measured, "mae") <= largest + 0.03, "{context}: {measured}");
            }
        }
    }
}

#[test]
fn a_path_over_c_is_followed_on_mq2008_and_a9a() {
    let (Some(queries), Some(rows)) = (data("mq2008/S1.txt.gz"), data("a9a/a9a.t.gz")) else { return };
    let bench = Workbench::new();
    let tuned = bench.json(&format!("tune rank {queries} --metric ndcg@10:letor,map:letor -o m.mm"));
    let rows_of = |tuned: &serde_json::Value| tuned["rows"].as_array().expect("rows").clone();
    assert_eq!(rows_of(&tuned).len(), 20);
    assert!(rows_of(&tuned).iter().all(|row| row["converged"] == true && number(row, "gap") <= 1e-3), "{tuned}");
    assert!(number(&tuned["best"], "mean") > 0.15, "{tuned}");
    bench.ok(&format!("verify m.mm {queries}")).shows("the certificate holds");
    let tuned = bench.json(&format!("tune classify {rows} --grid 1e-3:1:4 --folds 3 --metric accuracy,auc"));
    assert!(number(&tuned["best"], "mean") > 0.845, "{tuned}");
    assert_eq!(tuned["folds"], serde_json::json!([5427, 5427, 5427]));
}

#[test]
fn rcv1_is_classified() {
    let (Some(train), Some(test)) = (data("rcv1/rcv1_binary_train.svm.gz"), data("rcv1/rcv1_binary_test.svm.gz"))
    else {
        return;
    };
    let bench = Workbench::new();
    let trained = bench.json(&format!("train classify {train} -o m.mm"));
    assert_eq!(trained["converged"], true, "{trained}");
    assert!(number(&bench.json(&format!("evaluate m.mm {test}")), "accuracy") > 0.95);
}

#[test]
fn group_sizes_stand_in_a_side_file() {
    let (Some(train), Some(test)) = (data("lambdarank_sample/rank.train.gz"), data("lambdarank_sample/rank.test.gz"))
    else {
        return;
    };
    let bench = Workbench::new();
    bench
        .ok(&format!("train rank {train} --validation {test} -o m.mm"))
        .says("201 queries")
        .says("rank.train.query")
        .says("rank.test.query")
        .shows("converged");
    assert!(number(&bench.json(&format!("evaluate m.mm {test}")), "ndcg@10") > 0.65);
}

#[test]
fn a_large_table_is_ranked_by_block() {
    let Some(table) = data("protein_homology/protein.csv.gz") else { return };
    let bench = Workbench::new();
    let columns = "--group block --target target --ignore example";
    let ran = bench.ok(&format!("train rank {table} {columns} --scale standard -o m.mm --json"));
    let trained = ran.object();
    assert_eq!(trained["converged"], true, "{trained}");
    assert_eq!((trained["rows"].as_u64(), trained["features"].as_u64()), (Some(145_751), Some(74)));
    let _ = ran.says("153 queries");
}

#[test]
fn uneven_features_are_scaled() {
    let names = ["train", "test"].map(|part| data(&format!("mslr_sample/msn1.fold1.{part}.5k.txt.gz")));
    let [Some(train), Some(test)] = names else { return };
    let bench = Workbench::new();
    bench.ok(&format!("train rank {train} -o raw.mm")).says("feature scales differ");
    let trained = bench.json(&format!("train rank {train} --scale standard -o m.mm"));
    assert_eq!(trained["converged"], true, "{trained}");
    assert!(number(&bench.json(&format!("evaluate m.mm {test}")), "ndcg@10") > 0.25);
}

#[test]
fn real_games_become_features_without_a_flag() {
    for (file, rows, players) in
        [("football/results.csv.gz", 40_000.0, 200.0), ("chess2010/training_data.csv.gz", 65_000.0, 7000.0)]
    {
        let Some(path) = data(file) else { continue };
        let bench = Workbench::new();
        let object = bench.json(&format!("features games {path} -o wide.csv"));
        assert!(number(&object, "rows") > rows && number(&object, "players") > players, "{object}");
        // The home side, or white, wins more often than it loses.
        assert!(number(&object["outcomes"], "left") > number(&object["outcomes"], "right"));
        assert!(number(&object["outcomes"], "tie") > 0.2 * rows);
    }
}

#[test]
#[cfg(unix)]
fn whole_orders_of_mq2008_are_ranked_as_well_as_published() {
    let Some(part) = data("mq2008/S1.txt.gz") else { return };
    let bench = Workbench::new();
    let folder = PathBuf::from(part).parent().expect("a folder").canonicalize().expect("it exists");
    std::os::unix::fs::symlink(folder, bench.path("mq2008")).expect("a link");
    let ran = bench.ok("reproduce letor --data . --json").says("ohsumed/S1.txt.gz: not found, skipped");
    let object = ran.object();
    let of = |method: &str| {
        let rows = object["rows"].as_array().expect("rows").iter();
        let mut own = rows.filter(|row| row["method"] == method && row["metric"] == "map");
        let row = own.next().expect("a row");
        assert_eq!((&row["setting"]["data"], row["seeds"].as_u64()), (&"mq2008".into(), Some(5)));
        (row["ours"].as_f64().expect("a number"), row["published"].as_f64())
    };
    let (by_order, by_pairs) = (of("svm-map"), of("rank-svm"));
    assert!(by_order.0 >= 0.4646 && by_order.1.is_none(), "{by_order:?}");
    assert!(by_pairs.0 >= 0.4646 && by_pairs.1 == Some(0.4696), "{by_pairs:?}");
}
