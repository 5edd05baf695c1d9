//! Ctrl-C, and files that change while they are read.
#![cfg(unix)]

use crate::workbench::{Ran, Workbench, skipped};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Far more than any test has time for.
const ENDLESS: &str = "-c 100000 --tolerance 1e-15 --max-passes 1000000000";

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 20000 --features 5000 --noise 2 -o text.txt -q");
    bench
}

fn start(bench: &Workbench, line: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("maxmargin"))
        .args(line.split_whitespace())
        .current_dir(bench.folder())
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

fn interrupt(child: &Child) {
    let process = libc::pid_t::try_from(child.id()).expect("a process id");
    // SAFETY: the process is our child and has not been waited for, so that the id is still its own.
    assert_eq!(unsafe { libc::kill(process, libc::SIGINT) }, 0);
}

/// Starts a line, interrupts it once it says `sign`, and collects what it said.
fn interrupted_at(bench: &Workbench, line: &str, sign: &str) -> Ran {
    let mut child = start(bench, line);
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut stderr = String::new();
    while !stderr.contains(sign) {
        assert!(said.read_line(&mut stderr).expect("text") > 0, "`{line}` never said `{sign}`:\n{stderr}");
    }
    interrupt(&child);
    let asked = std::time::Instant::now();
    said.read_to_string(&mut stderr).expect("text");
    let mut output = child.wait_with_output().expect("it ends");
    assert!(asked.elapsed().as_secs_f64() < 5.0, "it took {:?} to end", asked.elapsed());
    output.stderr = stderr.into_bytes();
    Ran::of(line, &output)
}

#[test]
fn an_interrupted_training_leaves_nothing() {
    let bench = bench();
    let before = bench.files();
    let line = format!("train classify text.txt -o m.mm --report r.html {ENDLESS}");
    interrupted_at(&bench, &line, "objective").failed(1, "MM0107").says("--keep-partial");
    assert_eq!(bench.files(), before);
}

#[test]
fn an_interrupted_training_keeps_what_it_has_on_request() {
    let bench = bench();
    let line = format!("train classify text.txt -o m.mm --keep-partial --json {ENDLESS}");
    let ran = interrupted_at(&bench, &line, "objective");
    let trained = ran.succeeded().object();
    assert_eq!(trained["converged"], false);
    assert_eq!(trained["stopped"], "interrupted");
    let inspected = bench.json("inspect m.mm");
    assert_eq!(inspected["converged"], false);
    bench.ok("predict m.mm text.txt -q -o scores.txt");
    bench.ok("verify m.mm text.txt");
}

#[test]
fn an_interrupted_simulation_leaves_nothing() {
    let bench = Workbench::new();
    let child = start(&bench, "simulate text --rows 1000000000 -o endless.txt");
    // The temporary file is there once it writes.
    while bench.files().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    interrupt(&child);
    Ran::of("simulate text", &child.wait_with_output().expect("it ends")).failed(1, "MM0107");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn a_silent_standard_input_can_be_interrupted() {
    let bench = Workbench::new();
    let mut child = start(&bench, "train classify - -o m.mm");
    let input = child.stdin.take();
    // Long enough for handlers to be in place and for the reader to wait.
    std::thread::sleep(std::time::Duration::from_millis(500));
    interrupt(&child);
    let ran = Ran::of("train classify -", &child.wait_with_output().expect("it ends"));
    drop(input);
    ran.failed(1, "MM0107");
    assert!(bench.files().is_empty());
}

#[test]
fn a_mapped_file_that_shrinks_is_explained() {
    let bench = bench();
    bench.ok("convert text.txt -o cache.mmd -q");
    let pipe = bench.path("vali.txt");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        skipped("no named pipe can be made here");
        return;
    }
    // The command has mapped the cache once it opens the pipe; nothing has touched most of it by then.
    let child = start(&bench, "train classify cache.mmd --validation vali.txt -o m.mm -q");
    let rows = std::fs::OpenOptions::new().write(true).open(&pipe).expect("the command opens the other end");
    let cache = std::fs::OpenOptions::new().write(true).open(bench.path("cache.mmd")).expect("a cache");
    cache.set_len(4096).expect("it shrinks");
    std::io::Write::write_all(&mut &rows, b"1 1:1\n-1 2:1\n").expect("the command reads");
    drop(rows);
    let ran = Ran::of("train", &child.wait_with_output().expect("it ends"));
    ran.failed(1, "MM0106");
    assert!(!bench.path("m.mm").exists());
}
