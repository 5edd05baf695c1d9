//! `--hash`: features with names and no dictionary.

use crate::workbench::{Workbench, number};
use std::fmt::Write as _;

/// Rows of words. The class is told by how many words are `good` and `bad`; most words are noise.
fn reviews(rows: u64, table: bool) -> Vec<String> {
    let mut state = 5u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (0..rows)
        .map(|_| {
            let class = next(2);
            let tone = if next(10) == 0 { 1 - class } else { class };
            let word = ["awful", "lovely"][tone as usize];
            if table {
                return format!("{},{word},film{},{}", ["no", "yes"][class as usize], next(500), next(50));
            }
            let mut line = format!("{} {word}", ["-1", "1"][class as usize]);
            (0..8).for_each(|_| {
                let _ = write!(line, " word{}:{}", next(3000), 1 + next(2));
            });
            line
        })
        .collect()
}

const HEADER: &str = "liked,tone,film,length\n";

#[test]
fn a_model_of_hashed_words_reads_all_later_data_the_same_way() {
    let bench = Workbench::new();
    let (lines, cells) = (reviews(4000, false), reviews(4000, true));
    bench
        .write("all.txt", lines.join("\n"))
        .write("first.txt", lines[..1700].join("\n"))
        .write("rest.txt", lines[1700..].join("\n"))
        .write("all.csv", format!("{HEADER}{}\n", cells.join("\n")))
        .write("first.csv", format!("{HEADER}{}\n", cells[..1700].join("\n")))
        .write("rest.csv", format!("{HEADER}{}\n", cells[1700..].join("\n")));
    for (kind, target) in [("txt", ""), ("csv", "--target liked")] {
        let command = format!("learn classify all.{kind} {target} --hash 16 --rate 0.2 -o whole.mm");
        let said = bench.json(&command);
        assert_eq!(number(&said, "features"), 65536.0);
        assert!(number(&said, "error") < 0.2, "{said}");
        // No later command names the number of bits.
        bench.ok(&format!("learn classify first.{kind} {target} --hash 16 --rate 0.2 -o part.mm -q"));
        bench.ok(&format!("learn classify rest.{kind} --from part.mm -o part.mm -q"));
        assert!(bench.read("whole.mm") == bench.read("part.mm"), "{kind}: the bytes differ");
        let judged = bench.json(&format!("evaluate whole.mm rest.{kind} --metric accuracy"));
        assert!(number(&judged, "accuracy") > 0.85, "{judged}");
        let predicted = bench.ok(&format!("predict whole.mm rest.{kind}"));
        assert_eq!(predicted.stdout.lines().count(), 2300);
        bench.ok("inspect whole.mm").shows("hashed into 65,536 columns");
        // The same options are those of `train`, and its certificate is proven again from the words.
        bench.ok(&format!("train classify all.{kind} {target} --hash 16 -c 0.01 -o trained.mm -q"));
        bench.ok(&format!("verify trained.mm all.{kind}"));
        let judged = bench.json(&format!("evaluate trained.mm rest.{kind} --metric accuracy"));
        assert!(number(&judged, "accuracy") > 0.85, "{judged}");
    }
    bench.ok("convert all.txt --hash 16 -o all.mmd");
    bench.ok("verify trained.mm all.csv");
    bench.ok("train classify all.txt --hash 16 -c 0.01 -o text.mm -q");
    bench.ok("verify text.mm all.mmd");
}

#[test]
fn other_hashes_than_that_of_the_model_are_refused() {
    let bench = Workbench::new();
    bench.write("words.txt", reviews(300, false).join("\n")).write("numbers.txt", "1 1:2\n-1 2:1\n1 3:1\n");
    bench.ok("learn classify words.txt --hash 12 -o hashed.mm -q");
    bench.ok("learn classify numbers.txt -o plain.mm -q");
    let refused = |command: &str, shown: &str| {
        bench.refused(command, "MM0402").says(shown);
    };
    refused("predict hashed.mm words.txt --hash 13", "2^12 columns, and --hash is 13");
    refused("learn classify words.txt --from hashed.mm --hash 13 -o next.mm", "2^12 columns");
    refused("evaluate plain.mm words.txt --hash 12", "knows its features by name or number");
    refused("learn classify numbers.txt --from plain.mm --hash 12 -o next.mm", "knows its features");
    refused("learn classify words.txt --hash 12 --index-base 1 -o next.mm", "leave --index-base");
    bench.refused("learn classify words.txt --hash 28 -o next.mm", "MM0402").says("from 1 to 27");
    bench.refused("learn classify words.txt --hash 0 -o next.mm", "MM0402");
    bench.refused("learn classify words.txt -o next.mm", "MM0207").says("--hash 22");
    bench.ok("convert numbers.txt -o numbers.mmd");
    refused("predict hashed.mm numbers.mmd", "hashed into 4096 columns");
    bench.ok("predict hashed.mm words.txt --hash 12");
    assert!(!bench.files().contains("next.mm"));
}
