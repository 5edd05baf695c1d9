//! `learn classify`: rows from a stream.

use crate::workbench::{Workbench, number};
use std::fmt::Write as _;

/// svmlight rows of two classes, told apart by the features 1 and 3.
fn mails(rows: u64, names: [&str; 2]) -> Vec<String> {
    let mut state = 42u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|_| {
            let (a, b, c) = (next(100), next(100), next(9000));
            let class = usize::from(a + 10 > b) ^ usize::from(next(12) == 0);
            format!("{} 1:{} 3:{} {}:1", names[class], a as f64 / 50.0, b as f64 / 50.0, 4 + c)
        })
        .collect()
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// The same as a table.
fn table(lines: &[String]) -> String {
    let mut text = "class,a,b\n".to_string();
    for line in lines {
        let fields: Vec<&str> = line.split([' ', ':']).collect();
        let _ = writeln!(text, "{},{},{}", fields[0], fields[2], fields[4]);
    }
    text
}

#[test]
fn a_stream_in_two_parts_gives_the_bytes_of_one() {
    let bench = Workbench::new();
    let lines = mails(9000, ["-1", "1"]);
    for (kind, make) in [("txt", text as fn(&[String]) -> String), ("csv", table)] {
        let target = if kind == "csv" { "--target class" } else { "" };
        bench
            .write(&format!("all.{kind}"), make(&lines))
            .write(&format!("first.{kind}"), make(&lines[..1230]))
            .write(&format!("rest.{kind}"), make(&lines[1230..]));
        for way in [
            "--rate 0.2",
            "--solver sgd --loss logistic --batch 10 --rate 0.1",
            "--solver pegasos --batch 3",
            "--intercept penalised --rate 0.1",
        ] {
            bench.ok(&format!("learn classify all.{kind} {target} -o whole.mm {way} -q"));
            bench.ok(&format!("learn classify first.{kind} {target} -o part.mm {way} -q"));
            bench.ok(&format!("learn classify rest.{kind} {target} --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind} {way}: the bytes differ");
            bench.ok(&format!("learn classify first.{kind} {target} -o part.mm {way} -q"));
            bench.ok(&format!("learn classify all.{kind} {target} --skip 1230 --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind} {way}: the bytes differ after --skip");
        }
    }
}

#[test]
fn a_stream_on_standard_input_is_learned_from_and_its_model_predicts() {
    let bench = Workbench::new();
    // svmlight takes numbers, tables also words.
    let all = table(&mails(8000, ["ham", "spam"]));
    bench.write("mails.csv", &all);
    bench.ok("learn classify mails.csv --target class -o file.mm -q");
    let ran = bench.run_with_input("learn classify - --target class -o stream.mm --json", all).succeeded();
    let said = ran.says("rows    error   recent").object();
    assert!(bench.read("file.mm") == bench.read("stream.mm"));
    assert_eq!(number(&said, "rows"), 8000.0);
    assert!(number(&said, "error") < 0.25 && number(&said, "auc") > 0.75, "{said}");
    let judged = bench.json("evaluate stream.mm mails.csv --metric accuracy");
    assert!(number(&judged, "accuracy") > 0.8, "{judged}");
    bench.ok("inspect stream.mm").shows("a stream of 8,000 rows");
    bench.refused("verify stream.mm mails.csv", "MM0401");
}

/// svmlight rows of four classes, ratings or lists: the target is the number of cuts below a noisy sum.
fn graded(rows: u64, list: Option<u64>) -> Vec<String> {
    let mut state = 7u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|row| {
            let (a, b, noise) = (next(100), next(100), next(30));
            let grade = [60, 100, 150].iter().filter(|&&cut| a + b + noise > cut).count();
            let list = list.map_or(String::new(), |size| format!(" qid:{}", row / size));
            format!("{grade}{list} 1:{} 3:{} 5:1", a as f64 / 50.0, b as f64 / 50.0)
        })
        .collect()
}

#[test]
fn every_task_is_learned_in_two_parts_with_the_bytes_of_one() {
    let bench = Workbench::new();
    let pairs: Vec<String> = mails(3000, ["1", "-1"])
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split([' ', ':']).collect();
            let (good, bad) = if fields[0] == "1" { (fields[2], fields[4]) } else { (fields[4], fields[2]) };
            format!("{bad},{good}")
        })
        .collect();
    let wide = |lines: &[String]| format!("better.x,worse.x\n{}\n", lines.join("\n"));
    let (classes, lists) = (graded(3000, None), graded(3000, Some(6)));
    type Make<'a> = &'a dyn Fn(&[String]) -> String;
    type Case<'a> = (&'a str, &'a str, &'a [String], Make<'a>, &'a [&'a str]);
    let cases: [Case<'_>; 4] = [
        (
            "classify",
            "txt",
            &classes,
            &text,
            &["", "--multiclass joint --solver passive-aggressive", "--loss logistic --batch 6 --rate 1"],
        ),
        (
            "ordinal",
            "txt",
            &classes,
            &text,
            &["", "--form explicit --solver pegasos", "--solver sgd --batch 6", "--solver passive-aggressive -c 0.01"],
        ),
        (
            "rank",
            "txt",
            &lists,
            &text,
            &["", "--solver sgd --loss hinge --rate 0.1 --batch 2", "--solver passive-aggressive --loss hinge"],
        ),
        ("rank", "csv", &pairs, &wide, &["", "--solver passive-aggressive", "--loss logistic --recalibrate 700"]),
    ];
    for (task, kind, lines, make, ways) in cases {
        // The cut is at a multiple of all batches and lists.
        bench
            .write(&format!("all.{kind}"), make(lines))
            .write(&format!("first.{kind}"), make(&lines[..1200]))
            .write(&format!("rest.{kind}"), make(&lines[1200..]));
        for way in ways {
            // A first rate that is found with later examples is the same only if these are there.
            let way = if way.contains("rate") || way.contains("passive") || way.contains("pegasos") {
                way.to_string()
            } else {
                format!("{way} --rate 0.05")
            };
            bench.ok(&format!("learn {task} all.{kind} -o whole.mm {way} -q"));
            bench.ok(&format!("learn {task} first.{kind} -o part.mm {way} -q"));
            if !way.contains("recalibrate") {
                bench.ok(&format!("learn {task} rest.{kind} --from part.mm -o part.mm -q"));
                assert!(bench.read("whole.mm") == bench.read("part.mm"), "{task} {kind} {way}: the bytes differ");
            }
            bench.ok("inspect whole.mm").shows("a stream of");
            // The most common class has a share of 0.42, and rank 2 is wrong by 0.69 on average.
            let (metric, limit) = match task {
                "classify" => ("accuracy", 0.75),
                "ordinal" => ("mae", 0.25),
                _ if kind == "txt" => ("ndcg@10", 0.95),
                _ => ("pair-accuracy", 0.75),
            };
            let value = number(&bench.json(&format!("evaluate whole.mm all.{kind} --metric {metric}")), metric);
            let good = if metric == "mae" { value < limit } else { value > limit };
            assert!(good, "{task} {kind} {way}: {metric} {value}");
        }
    }
}

#[test]
fn bad_rows_are_left_out_and_written_with_their_reason() {
    let bench = Workbench::new();
    let (good, mut bad) = (mails(400, ["-1", "1"]), mails(400, ["-1", "1"]));
    for (place, line) in [(0, "1 1:x"), (77, "spam 1:1"), (78, "1 5:1 3:1"), (403, "1 2:nan")] {
        bad.insert(place, line.to_string());
    }
    bench.write("good.txt", text(&good)).write("bad.txt", text(&bad));
    bench.ok("learn classify good.txt -o good.mm -q");
    bench.refused("learn classify bad.txt -o bad.mm", "MM0203");
    let said = bench.json("learn classify bad.txt -o bad.mm --skip-bad left.txt");
    assert!(bench.read("good.mm") == bench.read("bad.mm"), "the same rows give the same model");
    assert_eq!((number(&said, "bad"), number(&said, "rows")), (4.0, 400.0));
    let left = String::from_utf8(bench.read("left.txt")).expect("text");
    let lines: Vec<&str> = left.lines().collect();
    assert!(lines.len() == 8 && lines[0].starts_with("# bad.txt:1:") && lines[1] == "1 1:x", "{left}");
    assert!(lines[2].starts_with("# bad.txt:78:") && lines[4].starts_with("# bad.txt:79:"), "{left}");
    assert!(lines[6].starts_with("# bad.txt:404:") && lines[7] == "1 2:nan", "{left}");
    // Tables: a cell that is no number, and a row with another number of fields.
    let good = table(&good);
    let bad = good.replacen("class,a,b\n", "class,a,b\n1,x,2\n1,2\n", 1) + "-1,1,2,3\n";
    bench.write("good.csv", &good).write("bad.csv", bad);
    bench.ok("learn classify good.csv --target class -o good.mm -q");
    let said = bench.json("learn classify bad.csv --target class -o bad.mm --skip-bad left.txt");
    assert!(bench.read("good.mm") == bench.read("bad.mm"));
    assert_eq!(number(&said, "bad"), 3.0);
    assert!(String::from_utf8(bench.read("left.txt")).expect("text").contains("1,x,2\n"));
    bench.refused("learn classify bad.csv --target class -o bad.mm --skip-bad bad.csv", "MM0108");
}

#[test]
fn classes_are_declared_or_come_up() {
    let bench = Workbench::new();
    bench.write("one.txt", "1 1:1\n1 2:1\n");
    bench.write("two.txt", "0 1:1\n1 2:1\n");
    bench.refused("learn classify one.txt -o model.mm", "MM0301");
    bench.ok("learn classify one.txt --classes 0,1 -o model.mm -q");
    bench.ok("learn classify two.txt --from model.mm -o model.mm -q");
    bench.write("three.txt", "0 1:1\n1 2:1\n7 2:1\n");
    bench.ok("learn classify three.txt -o three.mm -q");
    bench.ok("inspect three.mm").shows("`7`");
    bench.refused("learn classify three.txt --classes 0,1 -o new.mm", "MM0312").says("`7` of row 3");
    bench.refused("learn classify two.txt --classes 0 -o new.mm", "MM0402");
}

#[test]
fn settings_that_no_stream_can_follow_are_refused() {
    let bench = Workbench::new();
    bench.write("two.txt", "0 1:1\n1 2:1\n");
    bench.write("pairs.csv", "left,right,outcome\na,b,left\n");
    for (line, code) in [
        ("two.txt -c 1", "MM0402"),
        ("two.txt --solver newton", "MM0405"),
        ("two.txt --solver pegasos --rate 0.1", "MM0402"),
        ("two.txt --class-weight balanced", "MM0402"),
        ("two.txt --batch 0", "MM0402"),
        ("two.txt --lambda 0", "MM0402"),
        ("nowhere.txt", "MM0101"),
    ] {
        bench.refused(&format!("learn classify {line} -o model.mm"), code);
    }
}

#[cfg(unix)]
mod ended {
    use super::*;
    use crate::workbench::PATIENCE;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    fn start(bench: &Workbench, line: &str) -> Child {
        Command::new(assert_cmd::cargo::cargo_bin!("maxmargin"))
            .args(line.split_whitespace())
            .current_dir(bench.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts")
    }

    /// The rows that a model has seen; 0 if there is none, or if it is being replaced at this moment.
    fn seen(bench: &Workbench, file: &str) -> u64 {
        let said = Command::new(assert_cmd::cargo::cargo_bin!("maxmargin"))
            .args(["inspect", file, "--json"])
            .current_dir(bench.folder())
            .output()
            .expect("the command starts");
        let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        said["rows"].as_u64().unwrap_or(0)
    }

    /// Kills a run at random moments, each time continuing from the last snapshot, until it has been killed this often.
    fn survives(way: &str, after: usize) {
        let bench = Workbench::new();
        bench.write("all.txt", text(&mails(60_000, ["-1", "1"])));
        bench.ok(&format!("learn classify all.txt -o whole.mm {way} -q"));
        let (mut state, mut kills) = (99u64, 0);
        while kills < after {
            let learned = seen(&bench, "part.mm");
            let from = if learned > 0 { format!("--skip {learned} --from part.mm") } else { String::new() };
            // From where the last one was killed, with a snapshot every few rows.
            let mut running =
                start(&bench, &format!("learn classify all.txt {from} -o part.mm {way} --snapshot-every 300 -q"));
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_micros(2_000 + (state >> 33) % 30_000));
            let ended = running.try_wait().expect("a child").is_some();
            running.kill().expect("it runs");
            running.wait().expect("it ends");
            kills += 1;
            if ended {
                assert!(bench.read("whole.mm") == bench.read("part.mm"), "{way}");
                std::fs::remove_file(bench.path("part.mm")).expect("a model");
            }
        }
        let learned = seen(&bench, "part.mm");
        let from = if learned > 0 { format!("--skip {learned} --from part.mm") } else { String::new() };
        bench.ok(&format!("learn classify all.txt {from} -o part.mm {way} -q"));
        assert!(bench.read("whole.mm") == bench.read("part.mm"), "{way}");
    }

    #[test]
    fn a_hundred_kills_at_random_moments_lead_to_the_same_model() {
        survives("--rate 0.1 --batch 3", 100);
    }

    #[test]
    fn kills_do_not_change_what_rows_are_scaled_by() {
        survives("--rate 0.1 --batch 3 --scale standard", 25);
    }

    #[test]
    fn kills_do_not_change_where_a_stream_stops() {
        survives("--rate 0.1 --batch 3 --early-stopping validation --judge-every 1500", 25);
    }

    #[test]
    fn a_file_that_grows_is_followed_until_the_end_is_asked_for() {
        let bench = Workbench::new();
        let lines = mails(2400, ["-1", "1"]);
        for (kind, make) in [("txt", text as fn(&[String]) -> String), ("csv", table)] {
            let way = if kind == "csv" { "--target class --rate 0.1" } else { "--rate 0.1" };
            let file = format!("grows.{kind}");
            bench.write(&file, make(&lines[..800])).write(&format!("all.{kind}"), make(&lines));
            bench.ok(&format!("learn classify all.{kind} -o whole.mm {way} -q"));
            let mut running =
                start(&bench, &format!("learn classify {file} -o part.mm {way} --follow --snapshot-every 100 -q"));
            let begun = Instant::now();
            let wait = |rows: u64| {
                while seen(&bench, "part.mm") < rows {
                    assert!(begun.elapsed() < PATIENCE, "{rows} rows never came");
                    std::thread::sleep(Duration::from_millis(20));
                }
            };
            wait(800);
            let more = make(&lines[800..]);
            let more = if kind == "csv" { more.split_once('\n').expect("a header").1 } else { &more };
            let mut open = OpenOptions::new().append(true).open(bench.path(&file)).expect("the file");
            // The end of a line comes later than its beginning.
            let (first, rest) = more.split_at(more.len() / 2);
            open.write_all(first.as_bytes()).expect("it is written");
            wait(1000);
            open.write_all(rest.as_bytes()).expect("it is written");
            wait(2400);
            let process = libc::pid_t::try_from(running.id()).expect("a process id");
            // SAFETY: no memory is touched. The process is our child and is waited for after this.
            assert_eq!(unsafe { libc::kill(process, libc::SIGTERM) }, 0);
            assert!(running.wait().expect("it ends").success());
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind}");
            std::fs::remove_file(bench.path("part.mm")).expect("a model");
        }
    }
}

#[test]
fn rows_are_scaled_by_the_rows_so_far_on_request() {
    let bench = Workbench::new();
    // The second feature is a thousand times as large as the first.
    let lines: Vec<String> = mails(6000, ["-1", "1"])
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split([' ', ':']).collect();
            format!("{} 1:{} 3:{}e3", fields[0], fields[2], fields[4])
        })
        .collect();
    bench.write("all.txt", text(&lines)).write("all.csv", table(&lines));
    for (kind, target) in [("txt", ""), ("csv", "--target class")] {
        let error =
            |way: &str| number(&bench.json(&format!("learn classify all.{kind} {target} -o m.mm {way}")), "error");
        assert!(error("--scale standard") < 0.2, "{kind}: {}", error("--scale standard"));
        assert!(error("") > 0.4, "{kind}: {}", error(""));
        bench.ok(&format!("learn classify all.{kind} {target} -o m.mm --scale standard -q"));
        let judged = bench.json(&format!("evaluate m.mm all.{kind} --metric accuracy"));
        assert!(number(&judged, "accuracy") > 0.8, "{kind}: {judged}");
        bench.ok("inspect m.mm").shows("standard");
    }
    bench.refused("learn classify all.txt -o n.mm --scale min-max", "MM0405");
    bench.ok("learn classify all.txt -o plain.mm -q");
    bench.refused("learn classify all.txt --from plain.mm -o n.mm --scale standard", "MM0402").says("no running means");
}
