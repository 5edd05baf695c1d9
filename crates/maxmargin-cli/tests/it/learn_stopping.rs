//! `learn --early-stopping`: streams that end when they do not get better any more.

use crate::workbench::{Workbench, number};

/// Rows of two classes: the first feature decides, with noise.
fn rows(count: usize) -> Vec<String> {
    let mut state = 17u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..count)
        .map(|_| {
            let (a, b) = (next(100), next(100));
            let class = if (a + next(30) > b + 15) != (next(10) == 0) { "1" } else { "-1" };
            format!("{class} 1:0.{a:02} 3:0.{b:02} {}:1", 4 + next(50))
        })
        .collect()
}

#[test]
fn reading_ends_within_the_first_pass_and_the_share_is_told() {
    let bench = Workbench::new();
    let lines = rows(30_000);
    bench.write("all.txt", lines.join("\n") + "\n");
    let way = "--rate 0.1 --early-stopping validation --judge-every 500";
    let ran = bench.run(&format!("learn classify all.txt -o whole.mm {way} --json")).succeeded();
    let said = ran.says("% of all.txt: mean loss").says("is the third no better than").object();
    assert_eq!((&said["stopped"], said["judged_by"].as_str()), (&true.into(), Some("loss")));
    let (seen, share) = (number(&said, "rows"), number(&said, "share"));
    assert!(seen < 29_000.0 && seen % 500.0 == 0.0, "{said}");
    let text = lines[..seen as usize].iter().map(|line| line.len() + 1).sum::<usize>() as f64;
    let all = lines.iter().map(|line| line.len() + 1).sum::<usize>() as f64;
    assert!((share - text / all).abs() < 0.01, "{share} {}", text / all);
    assert_eq!(number(&said, "judgements"), seen / 500.0);
    assert_eq!(number(&said, "best_at"), seen - 1500.0);
    // The model is that of the rows that were read.
    bench.write("some.txt", lines[..seen as usize].join("\n") + "\n");
    bench.ok("learn classify some.txt -o some.mm --rate 0.1 -q");
    let weights = |model: &str| bench.json(&format!("inspect {model}"))["weights"].clone();
    assert_eq!(weights("whole.mm"), weights("some.mm"));
    // In two parts, it stops at the same row; once it has stopped, nothing more is learned.
    bench.write("first.txt", lines[..1230].join("\n")).write("rest.txt", lines[1230..].join("\n"));
    bench.ok(&format!("learn classify first.txt -o part.mm {way} -q"));
    bench.ok("learn classify rest.txt --from part.mm -o part.mm -q");
    assert!(bench.read("whole.mm") == bench.read("part.mm"));
    bench.ok("learn classify all.txt --from part.mm -o part.mm").says("stopped after");
    assert!(bench.read("whole.mm") == bench.read("part.mm"));
    // A stream that gets better until its end says so.
    bench.ok(&format!("learn classify first.txt -o part.mm {way}")).says("read to the end: mean loss");
    let late = "--early-stopping validation --judge-every 5000";
    bench.ok(&format!("learn classify first.txt -o part.mm {late}")).says("never judged");
}

#[test]
fn held_out_rows_judge_a_stream_of_text_tables_and_lists() {
    let bench = Workbench::new();
    let lines = rows(12_000);
    let table = |lines: &[String]| {
        let cells = lines.iter().map(|line| {
            let fields: Vec<&str> = line.split([' ', ':']).collect();
            format!("{},{},{}", fields[0], fields[2], fields[4])
        });
        format!("class,a,b\n{}\n", cells.collect::<Vec<_>>().join("\n"))
    };
    let turned = |lines: &[String]| {
        let cells = lines.iter().map(|line| {
            let fields: Vec<&str> = line.split([' ', ':']).collect();
            format!("{},{},{}", fields[4], fields[0], fields[2])
        });
        format!("b,class,a\n{}\n", cells.collect::<Vec<_>>().join("\n"))
    };
    let lists = |lines: &[String]| {
        let rows = lines.iter().enumerate().map(|(row, line)| line.replacen(' ', &format!(" qid:{} ", row / 10), 1));
        rows.collect::<Vec<_>>().join("\n")
    };
    bench
        .write("all.txt", lines[..10_000].join("\n"))
        .write("held.txt", lines[10_000..].join("\n"))
        .write("all.csv", table(&lines[..10_000]))
        .write("held.csv", turned(&lines[10_000..]))
        .write("all.svm", lists(&lines[..10_000]))
        .write("held.svm", lists(&lines[10_000..]));
    for (task, kind, more, judged_by, unit) in [
        ("classify", "txt", "", "accuracy", "rows"),
        ("classify", "txt", "--metric auc --solver pa", "auc", "rows"),
        ("classify", "csv", "--target class", "accuracy", "rows"),
        ("classify", "csv", "--target class --scale standard", "accuracy", "rows"),
        ("ordinal", "txt", "", "mae", "rows"),
        ("rank", "svm", "", "ndcg@10", "lists"),
    ] {
        let every = if unit == "lists" { 20 } else { 200 };
        let way = format!("{more} --early-stopping validation --judge-every {every} --validation held.{kind}");
        let said = bench.json(&format!("learn {task} all.{kind} -o m.mm {way}"));
        assert_eq!((said["judged_by"].as_str(), &said["stopped"]), (Some(judged_by), &true.into()), "{way}: {said}");
        assert!(number(&said, unit) < if unit == "lists" { 900.0 } else { 9_000.0 }, "{said}");
        // The last result is what `evaluate` says about the model.
        let metric = judged_by;
        let again = bench.json(&format!("evaluate m.mm held.{kind} --metric {metric}"));
        assert!((number(&again, metric) - number(&said, "last")).abs() < 1e-9, "{way}: {said} {again}");
    }
}

#[test]
fn what_cannot_stop_a_stream_is_refused() {
    let bench = Workbench::new();
    let lines = rows(50);
    bench.write("all.txt", lines.join("\n")).write("items.csv", "id,x\na,1\nb,2\n");
    bench.write("pairs.csv", "better,worse\na,b\n");
    let refused = |command: &str, words: &str| {
        bench.refused(command, "MM0402").says(words);
    };
    refused("learn classify all.txt -o m.mm --early-stopping subsamples", "`train` with a solver");
    refused("learn classify all.txt -o m.mm --judge-every 10", "nothing is judged");
    refused("learn classify all.txt -o m.mm --validation all.txt", "nothing asks for that");
    let way = "--early-stopping validation";
    refused(&format!("learn rank pairs.csv --items items.csv -o m.mm {way} --validation pairs.csv"), "own stream");
    bench.refused(&format!("learn classify all.txt -o m.mm {way} --validation gone.txt"), "MM0101");
    bench.refused(&format!("learn classify all.txt -o m.mm {way} --validation all.txt --metric nonsense"), "MM0403");
    bench.refused(&format!("learn classify all.txt -o all.txt {way} --validation all.txt"), "MM0108");
}
