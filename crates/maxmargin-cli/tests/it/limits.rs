//! Limits of the machine: memory, threads, killed processes, a closed standard output, and small files that claim much.
#![cfg(target_os = "linux")]

use crate::interrupt::{signal, start, wait_until_it_writes};
use crate::workbench::{Ran, Workbench};
use std::process::Command;

/// Runs a line of the shell in which `maxmargin` is the command.
fn shell(bench: &Workbench, line: &str) -> Ran {
    let program = assert_cmd::cargo::cargo_bin!("maxmargin").display().to_string();
    let mut command = Command::new("sh");
    command.args(["-c", &line.replace("maxmargin", &program)]).current_dir(bench.folder()).env("NO_COLOR", "1");
    Ran::of(line, &command.output().expect("a shell"))
}

/// Runs a command that may have this many kilobytes of memory.
fn within(bench: &Workbench, kilobytes: u32, line: &str) -> Ran {
    // One pool of memory for all threads: more of them would take more addresses on some machines than on others.
    shell(bench, &format!("ulimit -v {kilobytes} && MALLOC_ARENA_MAX=1 exec maxmargin {line} --threads 2"))
}

#[test]
fn too_little_memory_is_an_error_and_leaves_nothing() {
    let bench = Workbench::new();
    bench.ok("simulate text --rows 60000 --features 3000 --nonzeros 60 -o text.txt -q");
    bench.ok("train classify text.txt -o m.mm --max-passes 1 -q");
    let before = bench.files();
    for line in [
        "train classify text.txt -o out.mm",
        "tune classify text.txt -o out.mm",
        "evaluate m.mm text.txt",
        "convert text.txt -o out.mmd",
        "simulate text --rows 1000000000000 -o out.mmd",
    ] {
        within(&bench, 105_000, line).failed(1, "MM0109").says("there is not enough memory");
        assert_eq!(bench.files(), before, "`{line}` left something behind");
    }
    // A file that is larger than the limit cannot even be mapped, and its path is right.
    let ran = within(&bench, 80_000, "train classify text.txt -o out.mm").failed(1, "MM0109");
    assert!(ran.stderr.contains("text.txt\n") && !ran.stderr.contains("path"), "{}", ran.stderr);
}

#[test]
fn too_many_threads_for_the_memory_are_refused_with_advice() {
    let bench = Workbench::new();
    bench.write("data.txt", "1 1:1\n-1 2:1\n");
    let ran = shell(&bench, "ulimit -v 500000 && exec maxmargin train classify data.txt -o m.mm --threads 1024");
    ran.failed(2, "MM0402").says("the threads could not be started").says("--threads 2");
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o m.mm -q");
    for line in [
        "predict m.mm text.txt",
        "convert text.txt -o - --to csv",
        "inspect m.mm",
        "evaluate m.mm text.txt --json",
        "explain MM0103",
    ] {
        shell(&bench, &format!("exec maxmargin {line} >&-")).failed(1, "MM0103").says("standard output is closed");
    }
    // Nothing is lost if nothing is printed, or if nobody wants it.
    shell(&bench, "exec maxmargin predict m.mm text.txt -o scores.txt >&-").succeeded();
    shell(&bench, "exec maxmargin predict m.mm text.txt > /dev/null").succeeded();
    shell(&bench, "exec maxmargin predict m.mm text.txt 1<> /dev/null").succeeded();
}

#[test]
fn no_signal_leaves_a_file_behind_and_a_later_run_removes_what_others_left() {
    let bench = Workbench::new();
    for ending in [libc::SIGQUIT, libc::SIGKILL, libc::SIGABRT] {
        let running = start(&bench, "simulate text --rows 1000000000 -o endless.txt");
        wait_until_it_writes(&running);
        signal(running.child.id(), ending);
        assert_eq!(running.finish("simulate text").exit, None);
        assert!(bench.files().is_empty(), "{:?}", bench.files());
    }
    bench.write(".maxmargin-0123456789ab.tmp", "half").write(".maxmargin-notes.tmp", "of the user");
    bench.ok("simulate text --rows 10 -o small.txt -q");
    assert_eq!(bench.files().into_iter().collect::<Vec<_>>(), [".maxmargin-notes.tmp", "small.txt"]);
}

#[test]
fn few_rows_of_very_many_features_take_little_memory() {
    let bench = Workbench::new();
    bench.write("wide.txt", "1 1:1 134217728:1\n-1 2:1 134217727:1\n1 1:0.5 134217728:1\n-1 2:0.5 3:1\n");
    for solver in ["", "--solver lasvm"] {
        let line = format!("train classify wide.txt --kernel gaussian {solver} -o m.mm -q");
        // One number for each feature is a gigabyte.
        within(&bench, 2_500_000, &line).succeeded();
        assert!(bench.read("m.mm").len() < 4096);
        within(&bench, 400_000, "predict m.mm wide.txt").succeeded().shows("-1\t-");
    }
}

#[test]
fn a_line_without_end_is_refused_before_memory_is_full() {
    let bench = Workbench::new();
    // Frames one after the other are one stream: 4 GiB of text in less than a megabyte.
    let endless = |byte: u8| {
        let frame = zstd::encode_all(&vec![byte; 64 << 20][..], 1).expect("compressed");
        frame.repeat(64)
    };
    bench.write("row.txt.zst", endless(b'1'));
    assert!(bench.read("row.txt.zst").len() < 1 << 20);
    within(&bench, 900_000, "train classify row.txt.zst -o m.mm").failed(2, "MM0204");
    bench.write("comment.txt.zst", endless(b'#'));
    within(&bench, 900_000, "train classify comment.txt.zst -o m.mm").failed(2, "MM0221").says("128 MiB");
    bench.write("table.csv.zst", endless(b'a'));
    within(&bench, 900_000, "learn compare table.csv.zst -o m.mm").failed(2, "MM0221").says("32 MiB");
    bench.write("commas.csv.zst", endless(b','));
    within(&bench, 900_000, "train classify commas.csv.zst -o m.mm").failed(2, "MM0221");
    assert!(!bench.path("m.mm").exists());
}

#[test]
fn devices_without_end_are_no_models_and_no_settings() {
    let bench = Workbench::with_text();
    bench.refused("inspect /dev/zero", "MM0501");
    bench.refused("predict /dev/urandom text.txt", "MM0501");
    bench.refused("train classify text.txt -o m.mm --config /dev/zero", "MM0102");
}
