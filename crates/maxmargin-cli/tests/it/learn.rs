//! `learn compare`: learning from a stream, saving, continuing and interrupting.

use crate::workbench::{Workbench, number};
use std::fmt::Write as _;

/// Pairs of players: the one with the higher number is better, neighbours tie, and there are some surprises.
fn games(pairs: u64, players: u64) -> Vec<String> {
    let mut state = 88u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..pairs)
        .map(|_| {
            let (left, right) = (next(players), next(players - 1));
            let right = if right >= left { right + 1 } else { right };
            let surprise = next(10) == 0;
            let outcome = match right.abs_diff(left) {
                0..=3 => "tie",
                _ if (right > left) != surprise => "right",
                _ => "left",
            };
            format!("p{left},p{right},{outcome}")
        })
        .collect()
}

fn table(lines: &[String]) -> String {
    format!("left,right,outcome\n{}\n", lines.join("\n"))
}

/// The same as rows with the features of both sides.
fn wide(lines: &[String]) -> String {
    let mut text = "left.strength,left.luck,right.strength,right.luck,outcome\n".to_string();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let strength = |player: &str| player[1..].parse::<f64>().expect("a number") / 10.0;
        let (left, right) = (strength(fields[0]), strength(fields[1]));
        let _ = writeln!(text, "{left},{},{right},{},{}", (left * 7.0) % 1.0, (right * 7.0) % 1.0, fields[2]);
    }
    text
}

#[test]
fn a_stream_in_two_parts_gives_the_bytes_of_one() {
    let lines = games(9000, 40);
    let features: String =
        (0..40).map(|player| format!("p{player},{},{}\n", player as f64 / 10.0, player % 3)).collect();
    let bench = Workbench::new();
    bench.write("items.csv", format!("id,strength,luck\n{features}"));
    for (name, make) in [("games", table as fn(&[String]) -> String), ("wide", wide), ("games-items", table)] {
        let items = if name.ends_with("items") { "--items items.csv" } else { "" };
        bench
            .write("all.csv", make(&lines))
            .write("first.csv", make(&lines[..1234]))
            .write("rest.csv", make(&lines[1234..]));
        for way in
            ["", "--solver sgd --loss logistic", "--solver averaged-sgd --rate 0.05", "--loss squared-hinge -c 0.01"]
        {
            bench.ok(&format!("learn compare all.csv {items} -o whole.mm {way} -q"));
            bench.ok(&format!("learn compare first.csv {items} -o part.mm {way} -q"));
            bench.ok(&format!("learn compare rest.csv {items} --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{name} {way}: the bytes differ");
            // The same from the whole file, skipping the pairs that were already used.
            bench.ok(&format!("learn compare first.csv {items} -o part.mm {way} -q"));
            bench.ok(&format!("learn compare all.csv {items} --skip 1234 --from part.mm -o part.mm -q"));
            assert!(bench.read("whole.mm") == bench.read("part.mm"), "{name} {way}: the bytes differ after --skip");
        }
    }
}

#[test]
fn a_stream_on_standard_input_is_learned_from() {
    let bench = Workbench::new();
    let text = table(&games(5000, 40));
    bench.write("games.csv", &text);
    bench.ok("learn compare games.csv -o file.mm -q");
    let ran = bench.run_with_input("learn compare - -o stream.mm --json", text).succeeded();
    let said = ran.says("pairs    error   recent").object();
    assert!(bench.read("file.mm") == bench.read("stream.mm"));
    assert_eq!((number(&said, "pairs"), number(&said, "features")), (5000.0, 40.0));
    assert!(number(&said, "error") < 0.35 && number(&said, "auc") > 0.6, "{said}");
    assert!(number(&said, "auc_resolution") < 0.05 && number(&said, "threshold") >= 1.0, "{said}");
    let counted: f64 = said["confusion"]
        .as_array()
        .expect("rows")
        .iter()
        .flat_map(|row| row.as_array().expect("a row"))
        .filter_map(|n| n.as_f64())
        .sum();
    assert_eq!(counted, 5000.0);
}

#[test]
fn items_that_come_up_later_are_learned_too() {
    let bench = Workbench::new();
    bench.write("first.csv", "left,right,outcome\na,b,right\nb,a,left\n");
    bench.write("second.csv", "left,right,outcome\nb,c,right\nc,a,left\n");
    bench.ok("learn compare first.csv -o model.mm -q");
    let said = bench.json("learn compare second.csv --from model.mm -o model.mm");
    assert_eq!((number(&said, "pairs"), number(&said, "features")), (4.0, 3.0));
}

#[test]
fn streams_of_one_kind_of_outcome_say_so() {
    let bench = Workbench::new();
    bench.write("ties.csv", "left,right,outcome\na,b,tie\nb,c,0\n");
    bench.write("none.csv", "left,right,outcome\na,b,left\nb,c,-1\n");
    for solver in ["passive-aggressive", "sgd", "averaged-sgd"] {
        bench.ok(&format!("learn compare ties.csv -o ties.mm --solver {solver}")).says("only ties were seen");
        bench.ok(&format!("learn compare none.csv -o none.mm --solver {solver}")).says("no ties were seen");
    }
}

#[test]
fn bad_input_is_refused_and_leaves_nothing_behind() {
    let bench = Workbench::new();
    bench.write("games.csv", table(&games(50, 8)));
    bench.write("outcome.csv", "left,right,outcome\na,b,left\na,b,perhaps\n");
    bench.write("itself.csv", "left,right,outcome\na,a,left\n");
    bench.write("missing.csv", "left,right,outcome\na,,left\n");
    bench.write("nan.csv", "left.x,right.x,outcome\n1,2,left\n1,nan,left\n");
    bench.write("empty.csv", "left,right,outcome\n");
    bench.write("rows.txt", "1 1:1\n-1 1:2\n");
    bench.write("zero.csv", "left,right,outcome,weight\na,b,left,0\n");
    bench.write("items.csv", "id,x\na,1\nb,2\n");
    for (file, code) in [
        ("outcome.csv", "MM0235"),
        ("itself.csv", "MM0232"),
        ("missing.csv", "MM0212"),
        ("nan.csv", "MM0212"),
        ("empty.csv", "MM0201"),
        ("rows.txt", "MM0104"),
        ("zero.csv", "MM0304"),
        ("nowhere.csv", "MM0101"),
        ("games.csv --items items.csv", "MM0231"),
        ("games.csv --from rows.txt", "MM0501"),
        ("games.csv -c 0", "MM0402"),
        ("games.csv -c -1", "MM0402"),
        ("games.csv --kappa nan", "MM0402"),
        ("games.csv --lambda 1", "MM0402"),
        ("games.csv --rate 1", "MM0402"),
        ("games.csv --solver sgd -c 1", "MM0402"),
        ("games.csv --solver sgd --rate 1e9", "MM0402"),
        ("games.csv --loss logistic", "MM0402"),
        ("games.csv --solver newton", "MM0405"),
        ("games.csv --snapshot-every 0", "MM0405"),
    ] {
        bench.refused(&format!("learn compare {file} -o model.mm"), code);
    }
    bench.refused("learn compare games.csv -o games.csv", "MM0108");
    bench.ok("learn compare games.csv -o model.mm -q");
    bench.refused("verify model.mm games.csv", "MM0401");
    bench.ok("inspect model.mm").shows("a stream of 50 pairs");
}

#[test]
fn numbers_that_overflow_are_an_error_and_no_model() {
    let bench = Workbench::new();
    bench.write("large.csv", format!("left.x,right.x,outcome\n{}", "0,3e38,left\n0,3e38,right\n".repeat(50)));
    bench.refused("learn compare large.csv --solver sgd --loss squared-hinge --rate 100 -o model.mm", "MM0407");
    bench.write("tiny.csv", "left,right,outcome,weight\na,b,left,5e-324\n");
    bench.refused("learn compare tiny.csv -o model.mm", "MM0407").says("5e-324");
    bench.write("games.csv", "left,right,outcome\na,b,left\nb,c,left\na,c,tie\n");
    bench.refused("learn compare games.csv -c 1e308 -o model.mm", "MM0407").says("1e308");
}

#[cfg(unix)]
mod ended {
    use super::*;
    use crate::workbench::PATIENCE;
    use std::io::Write;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    fn start(bench: &Workbench, line: &str) -> Child {
        Command::new(assert_cmd::cargo::cargo_bin!("maxmargin"))
            .args(line.split_whitespace())
            .current_dir(bench.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts")
    }

    fn wait_for_file(bench: &Workbench, file: &str) {
        let start = Instant::now();
        while !bench.path(file).exists() {
            assert!(start.elapsed() < PATIENCE, "{file} never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_snapshot_outlives_a_kill_and_leads_to_the_same_model() {
        let lines = games(40_000, 50);
        let bench = Workbench::new();
        bench.write("all.csv", table(&lines));
        bench.ok("learn compare all.csv -o whole.mm -q");
        let mut running = start(&bench, "learn compare - -o part.mm --snapshot-every 1000 -q");
        let mut input = running.stdin.take().expect("a pipe");
        // The pipe stays open: the command is waiting for more when it is killed.
        input.write_all(table(&lines[..30_000]).as_bytes()).expect("it reads");
        wait_for_file(&bench, "part.mm");
        running.kill().expect("it runs");
        running.wait().expect("it ends");
        drop(input);
        let learned = bench.json("inspect part.mm")["pairs"].as_u64().expect("pairs");
        assert!(learned >= 1000 && learned.is_multiple_of(1000), "{learned}");
        bench.ok(&format!("learn compare all.csv --skip {learned} --from part.mm -o part.mm -q"));
        assert!(bench.read("whole.mm") == bench.read("part.mm"));
    }

    #[test]
    fn ctrl_c_saves_what_was_learned_even_where_the_stream_is_silent() {
        let lines = games(40_000, 50);
        let bench = Workbench::new();
        bench.write("all.csv", table(&lines));
        bench.ok("learn compare all.csv -o whole.mm -q");
        let mut running = start(&bench, "learn compare - -o part.mm --snapshot-every 1000");
        let mut input = running.stdin.take().expect("a pipe");
        input.write_all(table(&lines[..30_000]).as_bytes()).expect("it reads");
        wait_for_file(&bench, "part.mm");
        let process = libc::pid_t::try_from(running.id()).expect("a process id");
        // SAFETY: no memory is touched. The process is our child and is waited for after this.
        assert_eq!(unsafe { libc::kill(process, libc::SIGINT) }, 0);
        let output = running.wait_with_output().expect("it ends");
        drop(input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("interrupted: the model has learned from"), "{said}");
        let learned = bench.json("inspect part.mm")["pairs"].as_u64().expect("pairs");
        bench.ok(&format!("learn compare all.csv --skip {learned} --from part.mm -o part.mm -q"));
        assert!(bench.read("whole.mm") == bench.read("part.mm"));
    }
}
