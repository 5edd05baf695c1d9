//! Inputs that another process changes while a command reads them. Each command waits for a pipe in the meantime: for
//! its input, or for the reader of its output.
#![cfg(unix)]

use crate::interrupt::{Running, start, wait_for};
use crate::workbench::{Workbench, skipped};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;

/// With a named pipe in place of the file. False if there are no named pipes here.
fn piped(bench: &Workbench, file: &str) -> bool {
    let made = Command::new("mkfifo").arg(bench.path(file)).status();
    let made = made.is_ok_and(|status| status.success());
    if !made {
        skipped("no named pipe can be made here");
    }
    made
}

/// The writing end of a pipe that a command has opened.
fn opened(bench: &Workbench, pipe: &str) -> File {
    wait_for("the other end of the pipe", || {
        let path = bench.path(pipe);
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()
    })
}

/// Overwrites a byte in the middle of a file. Its size stays the same.
fn change(bench: &Workbench, file: &str) {
    let file = OpenOptions::new().read(true).write(true).open(bench.path(file)).expect("a file");
    let middle = file.metadata().expect("there").len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).expect("inside");
    file.write_all_at(&[byte[0] ^ 1], middle).expect("written");
}

fn refused(bench: &Workbench, running: Running, line: &str, file: &str) {
    let ran = running.finish(line);
    assert_eq!(ran.exit, Some(1), "`{line}`: {}", ran.stderr);
    assert!(ran.stderr.contains("error[MM0106]: the file was changed while it was read"), "`{line}`: {}", ran.stderr);
    assert!(ran.stderr.contains(&format!("\n   {file}\n")), "`{line}`: {}", ran.stderr);
    let left = bench.files().into_iter().find(|left| left.starts_with("out") || left.starts_with('.'));
    assert_eq!(left, None, "`{line}` left something behind");
}

#[test]
fn commands_that_hold_a_mapped_file_notice_that_it_changes() {
    let bench = Workbench::new();
    let items: String = (0..400).map(|id| format!("{id},{},{}\n", id % 7, id % 11)).collect();
    bench.write("items.csv", format!("id,x,y\n{items}"));
    let pair = |left: i32| {
        let right = (left * 3 + 1) % 400;
        let outcome = ["right", "tie", "left"][((left % 7 - right % 7).signum() + 1) as usize];
        format!("{left},{right},{outcome}\n")
    };
    let pairs = format!("left,right,outcome\n{}", (0..400).map(pair).collect::<String>());
    bench.write("pairs.csv", &pairs);
    bench.ok("train compare pairs.csv --items items.csv -o m.mm -q");
    if !piped(&bench, "pipe.csv") {
        return;
    }
    for line in [
        "convert pipe.csv --items items.mmd -o out.csv",
        "predict m.mm pipe.csv --items items.mmd -o out.txt",
        "evaluate m.mm pipe.csv --items items.mmd --report out.html",
        "verify m.mm pipe.csv --items items.mmd",
        "rank-items m.mm --pairs pipe.csv --items items.mmd -o out.tsv --resamples 20",
        "learn compare pipe.csv --items items.mmd -o out.mm",
        "train compare pipe.csv --items items.mmd -o out.mm",
        "tune compare pipe.csv --items items.mmd --grid 1 -o out.mm",
        "train compare pairs.csv --items items.mmd --validation pipe.csv -o out.mm",
    ] {
        bench.ok("convert items.csv -o items.mmd -q");
        let running = start(&bench, line);
        let mut pipe = opened(&bench, "pipe.csv");
        change(&bench, "items.mmd");
        pipe.write_all(pairs.as_bytes()).expect("the command reads");
        drop(pipe);
        refused(&bench, running, line, "items.mmd");
    }
}

#[test]
fn commands_that_stream_a_file_notice_that_it_changes() {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 20000 --features 50 -o text.txt -q");
    bench.ok("convert text.txt -o text.mmd -q");
    bench.ok("convert text.txt -o other.mmd -q");
    bench.ok("convert text.txt -o text.csv -q");
    bench.ok("convert text.txt -o text.parquet -q");
    bench.ok("train classify text.txt -o m.mm -q --max-passes 1");
    for (line, file) in [
        ("predict m.mm text.txt", "text.txt"),
        ("predict m.mm text.csv", "text.csv"),
        ("predict m.mm text.parquet", "text.parquet"),
        ("predict m.mm text.mmd", "text.mmd"),
        ("convert other.mmd -o - --to svmlight", "other.mmd"),
    ] {
        // The output is larger than a pipe holds, so the command waits for a reader.
        let running = start(&bench, line);
        wait_for("the first line", || {
            use std::os::fd::AsRawFd;
            let output = running.child.stdout.as_ref().expect("a pipe").as_raw_fd();
            let mut waiting: libc::c_int = 0;
            // SAFETY: the call writes one number to the place given.
            let asked = unsafe { libc::ioctl(output, libc::FIONREAD, &mut waiting) };
            (asked == 0 && waiting > 0).then_some(())
        });
        change(&bench, file);
        refused(&bench, running, line, file);
    }
}

#[test]
fn a_stream_of_pairs_that_is_cut_short_is_no_end() {
    let bench = Workbench::new();
    let pairs: String = (0..200_000).map(|game| format!("a{},b{},left\n", game % 90, game % 77)).collect();
    bench.write("games.csv", format!("left,right,outcome\n{pairs}"));
    // The first snapshot shows that the command has begun to read.
    let running = start(&bench, "learn compare games.csv -o model.mm --snapshot-every 1000");
    wait_for("the first snapshot", || bench.path("model.mm").exists().then_some(()));
    let games = OpenOptions::new().write(true).open(bench.path("games.csv")).expect("a file");
    games.set_len(1_000_000).expect("it shrinks");
    refused(&bench, running, "learn compare games.csv", "games.csv");
}
