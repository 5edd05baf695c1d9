//! Ctrl-C, and files that change while they are read.
#![cfg(unix)]

use crate::workbench::{PATIENCE, Ran, Workbench, skipped};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Settings that take far longer than any test.
const ENDLESS: &str = "-c 100000 --tolerance 1e-15 --max-passes 1000000000";

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 20000 --features 5000 --noise 2 -o text.txt -q");
    bench
}

/// A command that is killed if it runs too long, so that no test can hang.
pub(crate) struct Running {
    pub(crate) child: Child,
    _ended: Sender<()>,
}

impl Running {
    fn interrupt(&self) {
        signal(self.child.id(), libc::SIGINT);
    }

    pub(crate) fn finish(self, line: &str) -> Ran {
        Ran::of(line, &self.child.wait_with_output().expect("it ends"))
    }
}

pub(crate) fn signal(process: u32, signal: libc::c_int) {
    let process = libc::pid_t::try_from(process).expect("a process id");
    // SAFETY: no memory is touched. The process is our child and is waited for after this.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// Polls until the result is there.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a command that prints nothing has written some of its output.
pub(crate) fn wait_until_it_writes(running: &Running) {
    let written = format!("/proc/{}/io", running.child.id());
    if !std::path::Path::new(&written).exists() {
        std::thread::sleep(Duration::from_secs(1));
        return;
    }
    wait_for("the first megabyte", || {
        let table = std::fs::read_to_string(&written).ok()?;
        let bytes = table.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse::<u64>().ok()?;
        (bytes > 1 << 20).then_some(())
    });
}

pub(crate) fn start(bench: &Workbench, line: &str) -> Running {
    let child = Command::new(assert_cmd::cargo::cargo_bin!("maxmargin"))
        .args(line.split_whitespace())
        .current_dir(bench.folder())
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let process = child.id();
    let (_ended, ends) = channel();
    std::thread::spawn(move || {
        if ends.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            signal(process, libc::SIGKILL);
        }
    });
    Running { child, _ended }
}

/// Starts a line, interrupts it once it prints `sign`, and collects its output.
fn interrupted_at(bench: &Workbench, line: &str, sign: &str) -> Ran {
    let mut running = start(bench, line);
    let mut said = BufReader::new(running.child.stderr.take().expect("a pipe"));
    let mut stderr = String::new();
    while !stderr.contains(sign) {
        assert!(said.read_line(&mut stderr).expect("text") > 0, "`{line}` never said `{sign}`:\n{stderr}");
    }
    running.interrupt();
    let asked = Instant::now();
    said.read_to_string(&mut stderr).expect("text");
    let ran = running.finish(line);
    assert!(asked.elapsed().as_secs_f64() < 5.0, "it took {:?} to end", asked.elapsed());
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ran { stderr, ..ran }
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
fn an_interrupted_tuning_leaves_nothing() {
    let bench = bench();
    let before = bench.files();
    let endless = "--grid 1e5 --tolerance 1e-15 --max-passes 1000000000";
    let line = format!("tune classify text.txt -o m.mm --report r.html {endless}");
    interrupted_at(&bench, &line, "20,000 rows").failed(1, "MM0107");
    assert_eq!(bench.files(), before);
}

#[test]
fn an_interrupted_simulation_leaves_nothing() {
    let bench = Workbench::new();
    let running = start(&bench, "simulate text --rows 1000000000 -o endless.txt");
    wait_until_it_writes(&running);
    // The file has no name before it is complete, where the system has such files.
    #[cfg(target_os = "linux")]
    assert!(bench.files().is_empty(), "{:?}", bench.files());
    running.interrupt();
    running.finish("simulate text").failed(1, "MM0107");
    assert!(bench.files().is_empty(), "{:?}", bench.files());
}

#[test]
fn a_standard_input_that_falls_silent_can_be_interrupted() {
    let bench = Workbench::new();
    let mut running = start(&bench, "train classify - -o m.mm");
    let mut input = running.child.stdin.take().expect("a pipe");
    // This is more than a pipe holds. Once all of it is written, the command is reading, and then it waits.
    input.write_all("1 1:1\n-1 2:1\n".repeat(100_000).as_bytes()).expect("the command reads");
    running.interrupt();
    let ran = running.finish("train classify -");
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
    // The command has mapped the cache when it opens the pipe. It has not read most of the cache by then.
    let running = start(&bench, "train classify cache.mmd --validation vali.txt -o m.mm -q");
    // Without O_NONBLOCK, this would wait forever for a command that has already failed.
    let rows = wait_for("the other end of the pipe", || {
        std::fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&pipe).ok()
    });
    let cache = std::fs::OpenOptions::new().write(true).open(bench.path("cache.mmd")).expect("a cache");
    cache.set_len(4096).expect("it shrinks");
    (&rows).write_all(b"1 1:1\n-1 2:1\n").expect("the command reads");
    drop(rows);
    running.finish("train").failed(1, "MM0106");
    assert!(!bench.path("m.mm").exists());
}
