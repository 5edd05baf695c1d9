//! Metrics, tables and intervals.

use crate::workbench::{Workbench, close, number};

#[test]
fn json_maps_metric_names_to_values() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    let names =
        "ndcg@10,map,mrr,p@5,err@10,kendall-tau,pair-accuracy,mean-ndcg:letor,ndcg@5:trec,ndcg@5:sklearn,ndcg@5:mslr";
    let object = bench.json(&format!("evaluate m.mm search-test.txt --metric {names}"));
    let object = object.as_object().expect("an object");
    assert_eq!(object.len(), names.split(',').count());
    for name in names.split(',') {
        let value = object[name].as_f64().unwrap_or_else(|| panic!("{name}"));
        assert!((-1.0..=1.0).contains(&value), "{name} {value}");
    }
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm -q");
    let object = bench.json("evaluate m.mm text-test.txt --metric accuracy,error,f1,f1-macro,auc");
    assert!((number(&object, "accuracy") + number(&object, "error") - 1.0).abs() < 1e-12);
    assert!(number(&object, "auc") > 0.7, "{object}");
}

#[test]
fn the_default_variant_is_named() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.ok("evaluate m.mm search-test.txt").shows("ndcg@10 (variant ").shows("map (variant ");
}

#[test]
fn an_interval_holds_the_value_and_depends_on_the_seed_alone() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    let line = "evaluate m.mm search-test.txt --metric ndcg@10 --interval --resamples 100";
    let one = bench.ok(&format!("{line} --seed 3")).stdout;
    assert_eq!(one, bench.ok(&format!("{line} --seed 3 --threads 1")).stdout);
    bench.json(&format!("{line} --seed 3"));
}

#[test]
fn the_table_of_queries_averages_to_the_metric() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    let object = bench.json("evaluate m.mm search-test.txt --metric ndcg@10,map --per-query queries.tsv");
    let table = bench.text("queries.tsv");
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split('\t').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 40);
    let column = header.iter().position(|name| name.starts_with("ndcg@10")).expect("a column for the metric");
    let values: Vec<f64> = rows.iter().filter_map(|row| row[column].parse().ok()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!(close(mean, number(&object, "ndcg@10"), 1e-6), "{mean} {object}");
}

#[test]
fn a_table_of_queries_needs_queries() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm -q");
    bench.refused("evaluate m.mm text-test.txt --per-query queries.tsv", "MM0308").says("--per-query goes with");
}

#[test]
fn data_without_targets_cannot_be_evaluated() {
    let bench = Workbench::new();
    bench.write("train.csv", "label,x\na,1\nb,2\n").write("test.csv", "x\n1\n2\n");
    bench.ok("train classify train.csv -o m.mm -q");
    bench.refused("evaluate m.mm test.csv", "MM0305").says("test.csv");
}

#[test]
fn ranking_metrics_need_queries() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.write("plain.txt", "1 1:1\n0 2:1\n");
    let ran = bench.run("evaluate m.mm plain.txt --metric ndcg@10");
    let code = if ran.stderr.contains("MM0303") { "MM0303" } else { "MM0308" };
    ran.failed(2, code);
}

#[test]
fn log_loss_is_refused_where_scores_are_no_log_odds() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o hinge.mm -q");
    bench.refused("evaluate hinge.mm text-test.txt --metric log-loss", "MM0308").says("--loss logistic");
    bench.ok("train classify text.txt --loss logistic -o odds.mm -q");
    assert!(number(&bench.json("evaluate odds.mm text-test.txt --metric log-loss"), "log-loss") > 0.0);
    bench.write("games.csv", "left,right,outcome\na,b,left\nb,c,tie\nc,a,right\na,c,left\nb,a,tie\n");
    for method in ["elo", "glicko", "trueskill", "bradley-terry"] {
        bench.ok(&format!("train compare games.csv --method {method} -o rated.mm -q"));
        bench.refused("evaluate rated.mm games.csv --metric log-loss", "MM0308");
    }
}
