//! `train tree`: bracketed trees and plain sentences; from a file to a proven model and its trees.

use crate::workbench::{Workbench, number, skipped};
use std::path::PathBuf;

/// Sentences whose words tell their trees, with traces, function tags and tops.
fn text(sentences: std::ops::Range<u32>) -> String {
    let mut text = String::new();
    for sentence in sentences {
        let name = ["Ada", "Grace", "Alan", "Kurt"][(sentence % 4) as usize];
        let verb = ["met", "saw", "called"][(sentence % 3) as usize];
        let place = ["Turin", "London"][(sentence % 2) as usize];
        let tree = match sentence % 4 {
            0 => format!("(S (NP-SBJ (NNP {name})) (VP (VBD {verb}) (NP (PRP them))) (. .))"),
            1 => format!(
                "(S (NP-SBJ-1 (PRP they)) (VP (VBD {verb}) (NP (NNP {name}))\n    (PP-LOC (IN in) (NP (NNP {place})))) (. .))"
            ),
            2 => format!(
                "(S (NP-SBJ (NP (NNP {name})) (PP (IN of) (NP (NNP {place})))) (VP (VBD {verb}) (NP (PRP them))) (. .))"
            ),
            _ => format!("(S (NP-SBJ (PRP they)) (VP (VBD {verb}) (NP (NNP {name})) (NP-TMP (-NONE- *T*-1))) (. .))"),
        };
        text.push_str(&format!("( {tree} )\n"));
    }
    text
}

/// The trees that are to be predicted, one in a line.
fn printed(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.replace("\n   ", "").lines().map(str::to_string).collect();
    let plain = |line: &String| {
        let tree = line.trim_start_matches("( ").trim_end_matches(" )");
        let tree = tree.replace(" (NP-TMP (-NONE- *T*-1))", "");
        ["NP-SBJ-1", "NP-SBJ"].iter().fold(tree, |tree, tag| tree.replace(tag, "NP")).replace("PP-LOC", "PP")
    };
    lines.iter().map(plain).collect()
}

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("train.mrg", text(0..48)).write("test.mrg", text(100..124));
    bench
}

const TRAIN: &str = "train tree train.mrg -o m.mm";

#[test]
fn bracketed_trees_are_learned_proven_and_predicted() {
    let bench = bench();
    let ran = bench.ok(&format!("{TRAIN} --report r.html --json"));
    let object = ran.object();
    assert_eq!((object["converged"].as_bool(), number(&object, "constraints")), (Some(true), 48.0), "{object}");
    let _ = ran.says("trees · 240 rows").says("48 sentences").says("5 tags, 4 labels");
    bench.ok("verify m.mm train.mrg").shows("the certificate holds");
    let measured = bench.json("evaluate m.mm test.mrg --report e.html --interval");
    for metric in ["labelled-f1", "labelled-precision", "labelled-recall", "exact-match", "tag-accuracy"] {
        assert_eq!(number(&measured, metric), 1.0, "{metric}: {measured}");
    }
    assert_eq!(number(&measured, "unparsed"), 0.0);
    let wanted = printed(&text(100..124));
    bench.ok("predict m.mm test.mrg -o own.txt");
    assert_eq!(bench.text("own.txt").lines().collect::<Vec<_>>(), wanted);
    // Plain sentences of the same words, with empty lines.
    let words = |tree: &String| -> String {
        let parts: Vec<&str> = tree.split(')').filter_map(|part| part.rsplit_once(' ')).map(|cut| cut.1).collect();
        parts.iter().filter(|word| !word.starts_with('(')).copied().collect::<Vec<&str>>().join(" ")
    };
    let plain: Vec<String> = wanted.iter().map(words).collect();
    bench.write("plain.txt", format!("\n{}\n\n", plain.join("\r\n")));
    bench.ok("predict m.mm plain.txt -o other.txt");
    let lines: Vec<String> = [vec![String::new()], wanted.clone(), vec![String::new()]].concat();
    assert_eq!(bench.text("other.txt").lines().collect::<Vec<_>>(), lines);
    // What is predicted reads back as the same trees.
    assert_eq!(number(&bench.json("evaluate m.mm own.txt"), "exact-match"), 1.0);
    let shown = bench.json("inspect m.mm");
    assert!(!shown["shared"]["rules"].as_array().expect("rules").is_empty());
    bench.ok("inspect m.mm").shows("VP → VBD VP|VBD").shows("NP begins").shows("5 tags, 4 labels");
    assert!(bench.text("r.html").contains("</html>") && bench.text("e.html").contains("labelled-f1"));
}

#[test]
fn other_solvers_and_settings_give_proven_models_too() {
    let bench = bench();
    let usual = bench.json(&format!("{TRAIN} --tolerance 1e-4"));
    for solver in ["n-slack", "cutting-plane"] {
        let other = bench.json(&format!("train tree train.mrg --solver {solver} --tolerance 1e-4 -o o.mm"));
        let (own, other) = (number(&usual, "objective"), number(&other, "objective"));
        assert!((own - other).abs() < 3e-4 * own, "{solver}: {own} {other}");
        bench.ok("verify o.mm train.mrg").shows("the certificate holds");
    }
    bench.ok("train tree train.mrg --solver sgd --max-passes 20 -o s.mm");
    assert!(number(&bench.json("evaluate s.mm test.mrg"), "labelled-f1") > 0.9);
    bench.ok("train tree train.mrg --margin hard -o h.mm");
    bench.ok("verify h.mm train.mrg").shows("the certificate holds");
    bench.json("train tree train.mrg --siblings 0 --parents --loss-scale length -c 10 -o p.mm");
    bench.ok("verify p.mm train.mrg").shows("the certificate holds");
    assert_eq!(number(&bench.json("evaluate p.mm test.mrg"), "exact-match"), 1.0);
    // Two threads and one make the same bytes.
    bench.json("train tree train.mrg --threads 1 -o one.mm");
    bench.json("train tree train.mrg --threads 2 -o two.mm");
    assert_eq!(bench.read("one.mm"), bench.read("two.mm"));
}

#[test]
fn settings_are_chosen_over_folds_of_whole_sentences() {
    let bench = bench();
    let tuned = bench.json("tune tree train.mrg --grid 0.01:1:3 --folds 3 -o m.mm");
    assert_eq!(tuned["metric"], "labelled-f1");
    bench.ok("verify m.mm train.mrg").shows("the certificate holds");
    assert_eq!(number(&bench.json("evaluate m.mm test.mrg"), "labelled-f1"), 1.0);
    bench.ok(&format!("{TRAIN} --holdout 0.2")).shows("held out (20 % of train.mrg, 9 sentences)");
    bench.ok(&format!("{TRAIN} --validation test.mrg")).shows("labelled-f1");
    bench.write("t.txt", "word\nsuffix(2)\n");
    bench.ok("train tree train.mrg --templates t.txt -o t.mm").says("features");
    bench.ok("verify t.mm train.mrg").shows("the certificate holds");
}

#[test]
fn long_sentences_are_left_out_of_training_and_still_predicted() {
    let bench = bench();
    bench.ok(&format!("{TRAIN} --max-words 5")).says("with more than 5 words left out");
    bench.ok("verify m.mm train.mrg").shows("the certificate holds");
    bench.ok("evaluate m.mm test.mrg").says("with more than 5 words left out");
    bench.ok("predict m.mm test.mrg -o own.txt");
    assert_eq!(bench.text("own.txt").lines().filter(|line| !line.is_empty()).count(), 24);
}

#[test]
fn targets_that_are_pieces_of_trees_work_in_every_format() {
    let bench = bench();
    bench.ok("convert train.mrg -o rows.mmd");
    let (of_text, of_cache) = (bench.json(TRAIN), bench.json("train tree rows.mmd -o c.mm"));
    assert_eq!(number(&of_text, "objective"), number(&of_cache, "objective"));
    bench.write("rows.csv", "s,y,a,b\n1,(S(A*),1,0\n1,(B*)),0,1\n2,(T(A*),1,0\n2,(A*)),1,0\n");
    bench.json("train tree rows.csv --group s --target y -c 10 -o t.mm");
    bench.ok("predict t.mm rows.csv").shows("(S (A *) (B *))\n(T (A *) (A *))");
    bench.write("bad.csv", "s,y,a,b\n1,(S(A*),1,0\n1,(B*),0,1\n");
    let _ = bench.refused("train tree bad.csv --group s --target y -o x.mm", "MM0242").says("sentence `1`");
}

#[test]
fn sentences_without_a_tree_of_the_grammar_get_a_flat_one() {
    let bench = bench();
    bench.write("two.mrg", "(S (A a) (B b))\n(S (B b) (A a))\n").write("three.txt", "a b a\na b\n");
    bench.json("train tree two.mrg -o m.mm");
    let ran = bench.ok("predict m.mm three.txt");
    let ran = ran.shows("(S (A a) (B b) (A a))\n(S (A a) (B b))");
    let _ = ran.says("the grammar has no tree for 1 sentence: a flat tree stands in for it");
    // The words of text in columns are in its first column.
    bench.write("columns.conll", "a\n(b\n\na\nb\n");
    bench.ok("predict m.mm columns.conll").shows("(A a)").shows("-LRB-b").shows("(S (A a) (B b))");
    bench.write("strange.mrg", "(S (A a) (X (B b) (C c)))\n(S (A a) (B b))\n");
    let ran = bench.ok("evaluate m.mm strange.mrg --json");
    assert_eq!((number(&ran.object(), "unparsed"), number(&ran.object(), "unknown_labels")), (1.0, 2.0));
    assert!(number(&ran.object(), "labelled-f1") < 1.0);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let bench = bench();
    bench.write("open.mrg", "(S (A a)\n(B b)").write("bare.mrg", "(S (A a)\n  dog)").write("none.mrg", "\n");
    bench.write("plain.txt", "The dog barks\n").write("tags.mrg", "(A a)\n(B b)\n").write("wide.txt", "col1\n");
    bench.refused("train tree open.mrg -o x.mm", "MM0242").marks("open.mrg:1:1", "(S");
    bench.refused("train tree bare.mrg -o x.mm", "MM0242").marks("bare.mrg:2:3", "dog");
    let refused = |line: &str, code: &str, words: &str| {
        let _ = bench.refused(line, code).says(words);
    };
    refused("train tree none.mrg -o x.mm", "MM0201", "none.mrg");
    refused("train tree plain.txt -o x.mm", "MM0242", "plain.txt:1:1");
    refused("train tree tags.mrg -o x.mm", "MM0242", "no phrases");
    refused("train tree train.mrg --max-words 1 -o x.mm", "MM0201", "more than 1 word");
    refused("train tree train.mrg --templates wide.txt -o x.mm", "MM0241", "wide.txt:1:1");
    refused("train tree train.mrg --target y -o x.mm", "MM0402", "--target");
    refused("train tree train.mrg --loss logistic -o x.mm", "MM0402", "--loss");
    refused("train sequence train.mrg --templates wide.txt -o x.mm", "MM0241", "wide.txt");
    bench.json(TRAIN);
    refused("predict m.mm train.mrg --format trec", "MM0401", "parses");
    refused("evaluate m.mm plain.txt", "MM0242", "no parts of bracketed trees");
    refused("evaluate m.mm train.mrg --metric auc", "MM0302", "auc");
}

#[test]
fn a_trained_grammar_is_better_than_the_likeliest_one() {
    let data = std::env::var_os("MAXMARGIN_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    if !data.join("treebank/train.mrg.gz").is_file() {
        return skipped(&format!("there is no treebank in {}", data.display()));
    }
    let bench = Workbench::new();
    let rows = bench.json(&format!("reproduce treebank --data {}", data.display()));
    let value = |method: &str| {
        let rows = rows["rows"].as_array().expect("rows").iter();
        let own = rows.filter(|row| row["method"] == method && row["metric"] == "labelled-f1");
        own.map(|row| number(row, "ours")).fold(0.0, f64::max)
    };
    assert!(value("grammar") > 60.0 && value("svm") >= value("grammar") + 3.0, "{rows}");
}
