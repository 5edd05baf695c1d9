//! `train sequence`: text in columns with templates, tables and svmlight rows; from a file to a proven model and its tags.

use crate::workbench::{Workbench, number};

/// Sentences whose tags the words and their neighbours tell.
fn text(sentences: std::ops::Range<u32>) -> String {
    let mut text = String::new();
    for sentence in sentences {
        let name = ["Ada", "Grace", "Alan", "Kurt"][(sentence % 4) as usize];
        let verb = ["met", "saw", "called"][(sentence % 3) as usize];
        match sentence % 5 {
            0 => text.push_str(&format!("{name} NN B-PER\nLovelace NN I-PER\n{verb} VB O\n")),
            1 => text.push_str(&format!("they PR O\n{verb} VB O\n{name} NN B-PER\n")),
            2 => text.push_str(&format!("Turin NN B-LOC\n{verb} VB O\n{name} NN B-PER\nLovelace NN I-PER\n")),
            3 => text.push_str("in IN O\nTurin NN B-LOC\n"),
            _ => text.push_str("nobody PR O\nspoke VB O\n"),
        }
        text.push('\n');
    }
    text
}

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("train.conll", text(0..60)).write("test.conll", text(100..130));
    bench.write("t.txt", "# words\nword[-1..1]\ncol1[-1]*col1\nsuffix(2)\nshape\n");
    bench
}

const TRAIN: &str = "train sequence train.conll --templates t.txt -o m.mm";

#[test]
fn text_in_columns_is_learned_proven_and_tagged() {
    let bench = bench();
    let ran = bench.ok(&format!("{TRAIN} --report r.html --json"));
    let object = ran.object();
    assert_eq!((object["converged"].as_bool(), number(&object, "constraints")), (Some(true), 60.0), "{object}");
    let _ = ran.says("columns · 168 rows").says("60 sequences").says("4 tags");
    bench.ok("verify m.mm train.conll").shows("the certificate holds");
    let measured = bench.json("evaluate m.mm test.conll --report e.html");
    for metric in ["span-f1", "token-accuracy", "sequence-accuracy"] {
        assert_eq!(number(&measured, metric), 1.0, "{metric}: {measured}");
    }
    assert_eq!(number(&measured["by-class"]["B-PER"], "recall"), 1.0);
    assert!(bench.text("e.html").contains("B-LOC"));
    // Raw columns with the tag, without it, with other line ends and more empty lines.
    let tagged = bench.text("test.conll");
    let raw: String =
        tagged.lines().map(|line| format!("{}\r\n", line.rsplit_once(' ').map_or("", |cut| cut.0))).collect();
    bench.write("raw.txt", format!("\n{raw}\n\nTurin NN"));
    let tags = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once(' ').map_or("", |cut| cut.1).to_string()).collect()
    };
    bench.ok("predict m.mm test.conll -o own.txt");
    assert_eq!(bench.text("own.txt").lines().collect::<Vec<_>>(), tags(&tagged));
    bench.ok("predict m.mm raw.txt -o other.txt");
    let wanted = [vec![String::new()], tags(&tagged), vec![String::new(), String::new(), "B-LOC".to_string()]].concat();
    assert_eq!(bench.text("other.txt").lines().collect::<Vec<_>>(), wanted);
    let shown = bench.json("inspect m.mm");
    assert_eq!(shown["classes"], serde_json::json!(["B-LOC", "B-PER", "I-PER", "O"]));
    assert!(!shown["by_tag"]["O"].as_array().expect("features").is_empty());
    bench.ok("inspect m.mm").shows("B-PER → I-PER").shows("word=Turin");
    assert!(bench.text("r.html").contains("</html>"));
}

#[test]
fn tables_and_svmlight_rows_with_groups_are_sequences_too() {
    let bench = bench();
    bench.ok("convert train.conll --templates t.txt -o rows.mmd");
    let of_text = bench.json(TRAIN);
    let of_cache = bench.json("train sequence rows.mmd -o c.mm");
    assert_eq!(number(&of_text, "objective"), number(&of_cache, "objective"));
    // Rows of a sequence lie apart, and are in order.
    let mut rows = String::from("word,place,tag,a,b\n");
    for place in 0..3 {
        for word in 0..40 {
            let tag = ["x", "y", "z"][(word + place) % 3];
            let known = if place == 0 { (word % 3) as f64 } else { 0.5 };
            rows.push_str(&format!(
                "w{word},{place},{tag},{},{}\n",
                f64::from(u8::from(known == 1.0)),
                f64::from(u8::from(known == 2.0))
            ));
        }
    }
    bench.write("rows.csv", rows);
    let table = "rows.csv --group word --target tag --ignore place";
    let object = bench.json(&format!("train sequence {table} -c 10 --loss-scale length -o t.mm"));
    assert_eq!(number(&object, "constraints"), 40.0);
    assert_eq!(number(&bench.json("evaluate t.mm rows.csv"), "sequence-accuracy"), 1.0);
    bench.ok("predict t.mm rows.csv -o tags.txt");
    let tags: Vec<String> = bench.text("tags.txt").lines().map(str::to_string).collect();
    assert_eq!((tags.len(), tags[0].as_str(), tags[1].as_str(), tags[40].as_str()), (120, "x", "y", "y"));
    bench.write("rows.svm", "1 qid:a 1:1\n2 qid:a 2:1\n1 qid:b 1:1\n2 qid:b 2:1\n");
    bench.json("train sequence rows.svm -o s.mm");
    bench.ok("predict s.mm rows.svm").shows("1\n2\n1\n2");
}

#[test]
fn settings_are_chosen_over_folds_of_whole_sequences() {
    let bench = bench();
    let tuned = bench.json("tune sequence train.conll --templates t.txt --grid 0.01:1:3 --folds 3 -o m.mm");
    assert_eq!(tuned["metric"], "span-f1");
    bench.ok("verify m.mm train.conll").shows("the certificate holds");
    assert_eq!(number(&bench.json("evaluate m.mm test.conll"), "span-f1"), 1.0);
    bench
        .ok(&format!("{TRAIN} --holdout 0.2 --loss-scale length --lambda 0.01"))
        .shows("held out (20 % of train.conll, 13 sequences)");
    bench.write("s.toml", "[train]\nc = 0.5\n[read]\ntemplates = \"t.txt\"\nleast-count = 20\n");
    bench.ok("train sequence train.conll --config s.toml -o c.mm").says("features in rows are rare and left out");
    bench.ok("verify c.mm train.conll").shows("the certificate holds");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let bench = bench();
    bench
        .write("bad.txt", "word\n  wrd[1]\n")
        .write("wide.txt", "word\nsuffix(2, col7)\n")
        .write("none.txt", "# nothing\n");
    bench.write("ragged.conll", "a B\nb x I\n").write("empty.conll", "\n\n").write("alone.conll", "a O\nb O\n");
    let refused = |line: &str, code: &str, words: &str| {
        let _ = bench.refused(line, code).says(words);
    };
    refused("train sequence train.conll --templates bad.txt -o x.mm", "MM0241", "bad.txt:2:3");
    refused("train sequence train.conll --templates wide.txt -o x.mm", "MM0241", "wide.txt:2:1");
    refused("train sequence train.conll --templates none.txt -o x.mm", "MM0241", "no template");
    refused("train sequence train.conll --templates no.txt -o x.mm", "MM0101", "no.txt");
    refused("train sequence train.conll -o x.mm", "MM0402", "--templates");
    refused("train sequence ragged.conll --templates t.txt -o x.mm", "MM0215", "ragged.conll:2");
    refused("train sequence empty.conll --templates t.txt -o x.mm", "MM0201", "empty.conll");
    bench.write("one.txt", "word\n");
    refused("train sequence alone.conll --templates one.txt -o x.mm", "MM0301", "`O`");
    bench.write("rows.csv", "y,a\n1,2\n2,3\n");
    refused("train sequence rows.csv --target y -o x.mm", "MM0303", "sequence");
    refused("train sequence train.conll --templates t.txt --loss logistic -o x.mm", "MM0402", "--loss");
    bench.json(TRAIN);
    refused("predict m.mm train.conll --format trec", "MM0401", "tags");
    refused("evaluate m.mm train.conll --metric auc", "MM0302", "auc");
    // A tag that the model does not know is counted, and its span is missed.
    let strange = bench.text("test.conll").replacen("spoke VB O", "spoke VB B-NEW", 1);
    bench.write("strange.conll", strange);
    let ran = bench.ok("evaluate m.mm strange.conll --json");
    assert_eq!(number(&ran.object(), "unknown_labels"), 1.0);
    assert!(number(&ran.object(), "span-f1") < 1.0 && number(&ran.object(), "token-accuracy") < 1.0);
    let _ = ran.says("1 row has a tag that the model does not know");
}
