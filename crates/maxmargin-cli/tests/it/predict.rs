//! What `predict` writes, line by line.

use crate::workbench::Workbench;

/// A ranker with one feature: its score is a positive multiple of the feature.
fn one_feature() -> Workbench {
    let bench = Workbench::new();
    bench.write("train.txt", "1 qid:1 1:1\n0 qid:1 1:0\n1 qid:2 1:2\n0 qid:2 1:1\n");
    bench.ok("train rank train.txt -o rank.mm -q");
    bench
}

#[test]
fn a_score_a_line_in_input_order_with_scattered_queries() {
    let bench = one_feature();
    let values = [3.0, -1.0, 2.5, 0.0, 7.0, 0.5];
    let queries = ["b", "a", "b", "c", "a", "b"];
    let rows: String = values.iter().zip(queries).map(|(value, query)| format!("0 qid:{query} 1:{value}\n")).collect();
    bench.write("scattered.txt", rows);
    let ran = bench.ok("predict rank.mm scattered.txt");
    let scores: Vec<f64> = ran.stdout.lines().map(|line| line.parse().expect("a score alone")).collect();
    let weight = scores[0] / values[0];
    assert!(weight > 0.0);
    for (score, value) in scores.iter().zip(values) {
        assert!((score - weight * value).abs() < 1e-12, "{scores:?}");
    }
    bench.ok("predict rank.mm scattered.txt -o scores.txt").says("wrote scores.txt: 6 rows");
    assert_eq!(bench.text("scores.txt"), ran.stdout);
    bench.ok("predict rank.mm scattered.txt -o scores.txt.gz -q");
    bench.run_with_input("predict rank.mm - -q", bench.read("scattered.txt")).succeeded().shows(&ran.stdout);
}

#[test]
fn a_label_and_a_score_a_line() {
    let bench = Workbench::new();
    bench.write("train.csv", "kind,x\ngood,1\nbad,-1\ngood,2\nbad,-2\n").write("test.csv", "x\n5\n-5\n0.1\n");
    bench.ok("train classify train.csv --target kind --positive good -o m.mm -q");
    let ran = bench.ok("predict m.mm test.csv");
    let lines: Vec<(&str, f64)> = ran
        .stdout
        .lines()
        .map(|line| line.split_once('\t').expect("a tab"))
        .map(|(label, score)| (label, score.parse().expect("a score")))
        .collect();
    assert_eq!(lines.iter().map(|(label, _)| *label).collect::<Vec<_>>(), ["good", "bad", "good"]);
    assert!(lines.iter().all(|(label, score)| (*score > 0.0) == (*label == "good")));
}

#[test]
fn a_trec_run_lists_documents_best_first() {
    let bench = one_feature();
    bench.write("test.csv", "qid,docid,f1\nq one,d1,0\nq2,d2,3\nq one,d3,2\nq2,d4,5\nq one,d5,1\n");
    bench.write("test.txt", "0 qid:7 1:1\n0 qid:8 1:1\n0 qid:7 1:2\n");
    bench.write("plain.txt", "0 1:1\n0 1:2\n");
    let run = bench.ok("predict rank.mm test.csv --format trec --id docid --input-format csv").stdout;
    let fields: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    let order: Vec<String> = fields.iter().map(|f| format!("{} {} {} {} {}", f[0], f[1], f[2], f[3], f[5])).collect();
    assert_eq!(
        order,
        [
            "q_one Q0 d3 1 maxmargin",
            "q_one Q0 d5 2 maxmargin",
            "q_one Q0 d1 3 maxmargin",
            "q2 Q0 d4 1 maxmargin",
            "q2 Q0 d2 2 maxmargin"
        ]
    );
    bench.ok("predict rank.mm test.txt --format trec").shows("7 Q0 row3 1 ").shows("8 Q0 row2 1 ");
    bench.refused("predict rank.mm plain.txt --format trec", "MM0303").says("--one-group");
}

#[test]
fn json_and_scores_do_not_share_standard_output() {
    let bench = one_feature();
    bench.refused("predict rank.mm train.txt --json", "MM0405").says("-o FILE");
    let object = bench.json("predict rank.mm train.txt -o scores.txt");
    assert_eq!(object["rows"], 4);
    assert_eq!(object["output"], "scores.txt");
}

#[test]
fn targets_are_not_needed_to_score_a_table() {
    let bench = Workbench::new();
    bench.write("train.csv", "grade,query,x,y\n1,a,1,0\n0,a,0,1\n2,b,3,1\n1,b,1,1\n");
    bench.ok("train rank train.csv --target grade --group query -o m.mm -q");
    bench.write("new.csv", "y,unused,x\n0,9,1\n1,9,2\n");
    let ran = bench.ok("predict m.mm new.csv").says("unused");
    assert_eq!(ran.stdout.lines().count(), 2);
    assert_eq!(bench.ok("predict m.mm new.csv --missing zero --precision f64").stdout, ran.stdout);
    bench.write("lacking.csv", "y\n1\n");
    bench.refused("predict m.mm lacking.csv", "MM0307").says("`x`");
}

/// About ten megabytes of text, which are several blocks, and a model for them.
fn several_blocks() -> Workbench {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 400 --docs 100 --features 40 --seed 3 -o search.txt -q");
    assert!(bench.read("search.txt").len() > 8 << 20, "several blocks");
    bench
}

#[test]
fn blocks_of_rows_give_the_same_lines_in_every_format_and_at_any_number_of_threads() {
    let bench = several_blocks();
    bench.ok("train rank search.txt -o m.mm --scale standard -q");
    let expected = bench.ok("predict m.mm search.txt --threads 1").stdout;
    assert!(expected.lines().count() > 20_000);
    for file in ["search.mmd", "search.csv", "search.parquet", "search.arrow", "search.txt.zst"] {
        bench.ok(&format!("convert search.txt -o {file} -q"));
        assert!(bench.ok(&format!("predict m.mm {file} --threads 3")).stdout == expected, "{file}");
    }
    bench.ok("predict m.mm search.txt -o scores.txt").says("400 queries").says("wrote scores.txt: ");
    assert!(bench.text("scores.txt") == expected);
    let piped = bench.run_with_input("predict m.mm - -q", bench.read("search.txt")).succeeded();
    assert!(piped.stdout == expected);
}

#[test]
fn whole_queries_are_scaled_and_ranked_wherever_blocks_end() {
    let bench = several_blocks();
    bench.ok("train rank search.txt -o m.mm --scale min-max-per-query -q");
    bench.ok("convert search.txt -o search.mmd -q");
    // Odd rows after even ones, so that every query is in two places.
    let text = bench.text("search.txt");
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let odd_last: Vec<&str> = rows.iter().step_by(2).chain(rows.iter().skip(1).step_by(2)).copied().collect();
    bench.write("scattered.txt", odd_last.join("\n"));
    let lines = bench.ok("predict m.mm search.txt").stdout;
    assert!(bench.ok("predict m.mm search.mmd").stdout == lines);
    let scattered = bench.ok("predict m.mm scattered.txt").stdout;
    let in_order: Vec<&str> = lines.lines().collect();
    let even_then_odd: Vec<&str> =
        in_order.iter().step_by(2).chain(in_order.iter().skip(1).step_by(2)).copied().collect();
    assert!(scattered.lines().collect::<Vec<_>>() == even_then_odd);
    let run = bench.ok("predict m.mm search.txt --format trec").stdout;
    assert_eq!(run.lines().count(), in_order.len());
    bench.ok("predict m.mm search.mmd --format trec -o run.txt -q");
    assert!(bench.text("run.txt") == run);
    let piped = bench.run_with_input("predict m.mm - --format trec -q", bench.read("scattered.txt")).succeeded();
    let sorted = |run: &str| {
        let mut fields: Vec<Vec<String>> = run
            .lines()
            .map(|line| line.split(' ').enumerate().filter(|(at, _)| *at != 2).map(|(_, f)| f.to_string()).collect())
            .collect();
        fields.sort();
        fields
    };
    assert!(sorted(&piped.stdout) == sorted(&run), "queries, ranks and scores do not depend on the order of rows");
}

#[test]
fn an_error_in_the_third_block_names_its_line_and_leaves_no_file() {
    let bench = several_blocks();
    bench.ok("train rank search.txt -o m.mm -q");
    let mut text = bench.text("search.txt");
    let at = text[5 << 20..].find('\n').expect("a line") + (5 << 20) + 1;
    let line = text[..at].lines().count() + 1;
    text.insert_str(at, "1 qid:9 1:0.5 2:1,5\n");
    bench.write("bad.txt", text);
    let before = bench.files();
    let ran = bench.run("predict m.mm bad.txt -o scores.txt").failed(2, "MM0203");
    ran.marks(&format!("bad.txt:{line}:17"), "1,5");
    assert_eq!(bench.files(), before, "nothing half written");
    let ran = bench.run("predict m.mm bad.txt");
    assert_eq!(ran.exit, Some(2));
    let whole = bench.ok("predict m.mm search.txt").stdout;
    assert!(!ran.stdout.is_empty() && whole.starts_with(&ran.stdout), "the scores of the blocks before stand there");
}

#[test]
fn text_is_scored_alike_whether_the_model_knows_its_index_base_or_not() {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 5 --features 12 -o plain.mmd -q");
    bench.ok("train rank plain.mmd -o plain.mm -q");
    bench.ok("simulate search --queries 5 --features 12 --stream 1 -o plain.txt -q");
    let known = bench.ok("predict plain.mm plain.txt --index-base 1 -q").stdout;
    assert_eq!(bench.ok("predict plain.mm plain.txt -q").stdout, known);
    bench.run_with_input("predict plain.mm - -q", bench.read("plain.txt")).succeeded().shows(&known);
    // A file that counts from 0 is detected, as a file and in a pipe.
    let shifted: String = String::from_utf8(bench.read("plain.txt"))
        .expect("text")
        .lines()
        .map(|line| {
            let words = line.split(' ').map(|word| match word.split_once(':') {
                Some((index, value)) if index != "qid" => {
                    format!("{}:{value}", index.parse::<u32>().expect("an index") - 1)
                }
                _ => word.to_string(),
            });
            words.collect::<Vec<_>>().join(" ") + "\n"
        })
        .collect();
    bench.write("shifted.txt", &shifted);
    assert_eq!(bench.ok("predict plain.mm shifted.txt").says("0-based").stdout, known);
    bench.run_with_input("predict plain.mm - -q", shifted).succeeded().shows(&known);
}

#[test]
fn a_side_file_that_is_read_is_not_overwritten() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm -q");
    bench.write("text.txt.weight", "1\n".repeat(600));
    bench.refused("predict m.mm text.txt -o text.txt.weight", "MM0108").says("also an input");
    std::fs::remove_file(bench.path("text.txt.weight")).expect("removed");
    std::fs::create_dir(bench.path("text.txt.weight")).expect("a folder");
    bench.refused("train classify text.txt -o n.mm", "MM0102").says("text.txt.weight");
}

#[test]
fn scores_that_overflow_are_an_error_and_nothing_is_written() {
    let bench = Workbench::new();
    bench.write("small.txt", "1 1:1 2:0.5\n-1 1:-1 2:0.25\n1 1:2 2:1\n-1 1:-3 2:0.5\n");
    bench.write("large.txt", "1 1:1e150 2:1\n");
    let train = "train classify small.txt --kernel polynomial --degree 3 --precision f64 -o m.mm -q";
    bench.ok(train);
    bench.refused("predict m.mm large.txt -o scores.txt", "MM0407").says("not a finite number");
}
