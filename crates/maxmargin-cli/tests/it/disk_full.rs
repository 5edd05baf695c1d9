//! Writing to a full disk: exit code 1, a clear error, no file left behind.

use crate::workbench::{Ran, Workbench, skipped};
use std::process::Command;

fn program() -> std::path::PathBuf {
    assert_cmd::cargo::cargo_bin!("maxmargin").to_path_buf()
}

/// Commands whose output does not fit, and the file each would write.
const OUTPUTS: [(&str, &str); 7] = [
    ("train classify text.txt -o full/m.mm -q", "m.mm"),
    ("train rank search.txt -o m.mm --report full/report.html -q", "report.html"),
    ("simulate text --rows 5000 -o full/big.txt -q", "big.txt"),
    ("simulate text --rows 5000 -o full/big.txt.gz -q", "big.txt.gz"),
    ("convert text.txt -o full/out.mmd -q", "out.mmd"),
    ("convert text.txt -o full/out.csv -q", "out.csv"),
    ("convert text.txt -o full/out.parquet -q", "out.parquet"),
];

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 3000 --features 2000 -o text.txt -q");
    bench.ok("simulate search --queries 40 --docs 12 --features 8 -o search.txt -q");
    std::fs::create_dir(bench.path("full")).expect("a folder");
    bench
}

/// Runs a line in a shell that first runs `limit`, and lists what is left in `full`.
fn run_limited(bench: &Workbench, shell: &[&str], limit: &str, line: &str) -> Ran {
    let script = format!("{limit}\n\"$0\" {line}\nexit=$?\nls -A full > left\nexit $exit");
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).arg(program()).current_dir(bench.folder()).env("NO_COLOR", "1");
    Ran::of(line, &command.output().expect("a shell"))
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let bench = bench();
    let shell = ["unshare", "--mount", "sh", "-c"];
    let mount = "mount -t tmpfs -o size=16k tmpfs full || exit 77";
    let possible = Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success());
    if !possible || run_limited(&bench, &shell, mount, "--version").exit != Some(0) {
        skipped("no small file system can be mounted here");
        return;
    }
    for (line, file) in OUTPUTS {
        run_limited(&bench, &shell, mount, line).failed(1, "MM0103").says(file);
        assert_eq!(bench.text("left"), "", "`{line}`");
    }
}

#[test]
fn a_file_size_limit_is_named_and_nothing_is_left() {
    let bench = bench();
    for (line, file) in OUTPUTS {
        // The limit counts blocks of 512 or 1024 bytes.
        run_limited(&bench, &["sh", "-c"], "ulimit -f 8", line).failed(1, "MM0103").says(file);
        assert_eq!(bench.text("left"), "", "`{line}`");
    }
}

#[test]
fn a_device_without_room_is_named() {
    if !std::path::Path::new("/dev/full").exists() {
        skipped("there is no /dev/full here");
        return;
    }
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    for line in ["train rank search.txt -o /dev/full -q", "predict m.mm search.txt -o /dev/full"] {
        bench.run(line).failed(1, "MM0103").says("no space left on device").says("/dev/full");
    }
    for line in ["predict m.mm search.txt", "inspect m.mm --json", "evaluate m.mm search.txt", "explain"] {
        run_limited_stdout(&bench, line).failed(1, "MM0103").says("standard output could not be written");
    }
}

fn run_limited_stdout(bench: &Workbench, line: &str) -> Ran {
    let mut command = Command::new("sh");
    let script = format!("exec \"$0\" {line} > /dev/full");
    command.arg("-c").arg(script).arg(program()).current_dir(bench.folder()).env("NO_COLOR", "1");
    Ran::of(line, &command.output().expect("a shell"))
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 400 --docs 50 --features 3 -o big.txt -q");
    bench.ok("train rank big.txt -o m.mm -q");
    for line in ["predict m.mm big.txt", "convert big.txt --to svmlight -o -", "convert big.txt --to csv -o -"] {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -o pipefail; \"$0\" {line} -q | head -n 1")]).arg(program());
        let Ok(output) = command.current_dir(bench.folder()).output() else {
            skipped("there is no bash here");
            return;
        };
        let ran = Ran::of(line, &output).succeeded();
        assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""), "{line}");
    }
}
