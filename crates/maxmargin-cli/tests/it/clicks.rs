//! Click logs: from simulated users to a proven ranker, preferences, propensities, and logs that are refused.

use crate::workbench::{Workbench, number};

/// Graded queries and clicks of three policies on them.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 150 --docs 8 --features 12 --seed 3 -o graded.txt");
    bench.ok(
        "simulate clicks --items graded.txt --rows 6000 --policies 3 --relevant-grade 1 --eta 1.5 --seed 5 -o clicks.csv",
    );
    bench
}

const TRAIN: &str = "train rank graded.txt --clicks clicks.csv --scale standard -c 0.001 -o m.mm";

#[test]
fn clicks_teach_a_ranker_with_a_proof() {
    let bench = bench();
    for more in ["", "--loss hinge", "--loss hinge --solver cutting-plane", "--clip 0.1", "--against candidates"] {
        let object = bench.json(&format!("{TRAIN} {more} --validation graded.txt"));
        assert_eq!(object["converged"], true, "{more}");
        assert_eq!(object["clicks"]["propensity"], "log");
        assert!(number(&object["held_out"]["metrics"], "ndcg@10") > 0.5, "{more}: {object}");
        let verified = bench.json("verify m.mm graded.txt --clicks clicks.csv");
        let (found, claimed) = (number(&verified, "objective"), number(&object, "objective"));
        assert!((found - claimed).abs() <= 1e-9 * claimed, "{more}");
        bench.ok("predict m.mm graded.txt -o scores.txt");
        assert_eq!(bench.text("scores.txt").lines().count(), bench.text("graded.txt").lines().count());
    }
    bench.ok("inspect m.mm").shows("propensities from log, against candidates results");
    bench.refused("verify m.mm graded.txt", "MM0309").says("--clicks LOG");
}

#[test]
fn features_may_come_by_item_and_logs_as_json_lines() {
    let bench = Workbench::new();
    bench.write("items.csv", "item,a,b\nx,1,0\ny,0,1\nz,1,1\n");
    let mut lines = String::new();
    for session in 0..20 {
        for (at, item) in ["x", "y", "z"].iter().enumerate() {
            let clicked = *item == "z" || (*item == "x" && session % 4 == 0);
            lines.push_str(&format!(
                "{{\"query\": \"q\", \"session\": {session}, \"item\": \"{item}\", \"position\": {}, \"clicked\": {clicked}}}\n",
                at + 1
            ));
        }
    }
    bench.write("log.jsonl", lines);
    let object = bench.json("train rank --clicks log.jsonl --items items.csv --propensity power:1 -o m.mm");
    assert_eq!(object["clicks"]["clicks"], 25);
    // x and z were clicked: each is compared with the two others.
    assert_eq!(number(&object, "constraints"), 4.0);
    bench.ok("predict m.mm items.csv -o scores.txt");
    let scores: Vec<f64> = bench.text("scores.txt").lines().map(|line| line.parse().expect("a score")).collect();
    assert!(scores[2] > scores[0] && scores[0] > scores[1], "{scores:?}");
    bench.json("verify m.mm items.csv --clicks log.jsonl");
}

#[test]
fn propensities_are_estimated_and_written() {
    let bench = bench();
    let object = bench.json("propensity clicks.csv -o curve.csv");
    let curve = object["curve"].as_array().expect("a curve");
    assert!(curve.len() >= 8, "{curve:?}");
    let second = number(&curve[1], "propensity");
    assert!((second - 0.5f64.powf(1.5)).abs() < 0.08, "{second}");
    assert!(number(&curve[1], "low") < second && second < number(&curve[1], "high"));
    bench.json(&format!("{TRAIN} --propensity curve.csv"));
    bench.ok(&format!("{TRAIN} --propensity estimate")).says("propensities estimated by harvest");
    bench.ok("inspect m.mm").shows("propensities from estimate");
    bench.json(&format!("{TRAIN} --propensity estimate:regression-em"));
    bench.refused(&format!("{TRAIN} --propensity estimate:guess"), "MM0402").says("harvest, swaps");
    bench.refused(&format!("{TRAIN} --propensity nothing.csv"), "MM0101").says("power:ETA");
}

#[test]
fn preferences_are_written_and_learned_from() {
    let bench = Workbench::new();
    bench.write(
        "log.csv",
        "query,session,item,position,clicked\nq,1,a,1,0\nq,1,b,2,1\nq,1,c,3,0\nq,2,a,1,0\nq,2,b,2,1\n",
    );
    bench.write("items.csv", "item,f\na,1\nb,2\nc,3\n");
    let object = bench.json("preferences log.csv -o pairs.csv");
    assert_eq!(object["upwards"], 1.0);
    assert_eq!(bench.text("pairs.csv"), "better,worse,weight,group\nb,a,2,q\n");
    bench.ok("preferences log.csv --rule every-unclicked -o pairs.csv");
    assert_eq!(bench.text("pairs.csv"), "better,worse,weight,group\nb,a,2,q\nb,c,1,q\n");
    let pairs = bench.json("train rank pairs.csv --items items.csv --id item -o pairs.mm");
    let direct = bench.json("train rank items.csv --clicks log.csv --preferences every-unclicked -o direct.mm");
    assert_eq!(number(&pairs, "objective"), number(&direct, "objective"));
    bench.json("verify direct.mm items.csv --clicks log.csv");
    bench
        .ok("train rank items.csv --clicks log.csv --preferences skip-above -o m.mm")
        .says("every preference puts a result over one shown above it")
        .shows("turns the shown order around");
    let kept = bench.json("train rank items.csv --clicks log.csv --preferences skip-above --keep-order 5 -o m.mm");
    assert_eq!(kept["clicks"]["turned_around"], false);
    bench.refused("preferences log.csv --rule earlier-click -o pairs.csv", "MM0304").says("every-unclicked");
}

#[test]
fn ubi_and_yandex_logs_are_read() {
    let bench = Workbench::new();
    bench.write("items.csv", "item,f\na,1\nb,2\nc,3\n");
    bench.write(
        "queries.jsonl",
        "{\"query_id\":\"1\",\"user_query\":\"shoes\",\"query_response_hit_ids\":[\"a\",\"b\",\"c\"]}\n",
    );
    bench.write(
        "events.jsonl",
        "{\"action_name\":\"click\",\"query_id\":\"1\",\"event_attributes\":{\"object\":{\"object_id\":\"b\"},\"position\":{\"ordinal\":2}}}\n\
         {\"action_name\":\"click\",\"query_id\":\"1\",\"event_attributes.object.object_id\":\"c\",\"event_attributes.position\":{\"x\":1,\"y\":2}}\n\
         {\"action_name\":\"purchase\",\"query_id\":\"1\",\"event_attributes\":{\"object\":{\"object_id\":\"b\"}}}\n\
         {\"action_name\":\"click\",\"query_id\":\"1\",\"event_attributes\":{\"object\":{\"object_id\":\"d\"}}}\n",
    );
    let object =
        bench.json("train rank items.csv --clicks events.jsonl --clicks queries.jsonl --propensity power:1 -o m.mm");
    assert_eq!(object["clicks"]["clicks"], 2);
    bench
        .ok("train rank items.csv --clicks events.jsonl --clicks queries.jsonl --propensity power:1 -o m.mm")
        .says("1 event with another action left out")
        .says("1 click on a result that was not shown");
    bench.write("yandex.tsv", "7\t0\tQ\tshoes\t5\ta\tb\tc\n7\t3\tC\tc\n7\t9\tQ\tboots\t5\tb\ta\n7\t12\tC\tb\n");
    let object = bench.json("preferences yandex.tsv --rule every-unclicked -o pairs.csv");
    assert_eq!((object["clicks"].as_u64(), object["lists"].as_u64()), (Some(2), Some(2)));
    assert_eq!(bench.text("pairs.csv"), "better,worse,weight,group\nb,a,1,boots\nc,a,1,shoes\nc,b,1,shoes\n");
    bench.write("late.tsv", "7\t0\tQ\tshoes\t5\ta\tb\n8\t3\tC\tc\n");
    bench.refused("preferences late.tsv -o pairs.csv", "MM0251").says("before any list");
}

#[test]
fn logs_that_make_no_sense_are_refused_with_their_place() {
    let bench = Workbench::new();
    bench.write("items.csv", "item,f\na,1\nb,2\n");
    let train = |log: &str| {
        bench.write("log.csv", log);
        "train rank items.csv --clicks log.csv -o m.mm"
    };
    let head = "query,session,item,position,clicked,propensity\n";
    for bad in ["0", "1.5", "-1"] {
        bench.refused(train(&format!("{head}q,1,a,1,1,{bad}\nq,1,b,2,0,\n")), "MM0252").marks("log.csv:2:11", bad);
    }
    bench.refused(train(&format!("{head}q,1,a,two,1,1\n")), "MM0251").marks("log.csv:2:7", "two");
    bench.refused(train(&format!("{head}q,1,a,1,maybe,1\n")), "MM0251").marks("log.csv:2:9", "maybe");
    bench.refused(train("query,item,position\nq,a,1\n"), "MM0213").says("`clicked`");
    bench.refused(train(&format!("{head}q,1,a,1,0,\nq,1,b,2,0,\n")), "MM0304").says("no list has a click");
    bench.refused(train(&format!("{head}q,1,a,1,1,0.5\nq,2,b,1,1,1\n")), "MM0304");
    bench.refused(train(&format!("{head}q,1,a,1,1,0.5\nq,1,b,2,1,\n")), "MM0252").says("no propensity");
    bench.refused(train(&format!("{head}q,1,x,1,1,1\nq,1,y,2,0,\n")), "MM0231").says("looked up by item");
    bench.ok(train("query,session,item,position,clicked\nq,1,a,0,1\nq,1,b,1,0\n")).says("positions count from 0");
    bench.refused("train rank --clicks log.csv -o m.mm", "MM0405").says("FEATURES");
    bench.refused("train rank items.csv --clicks log.csv --holdout 0.2 -o m.mm", "MM0402").says("--validation");
    bench.refused("train classify items.csv --clicks log.csv -o m.mm", "MM0402");
    bench.refused("train rank items.csv --clicks log.csv --pair-weight grade-gap -o m.mm", "MM0402");
}
