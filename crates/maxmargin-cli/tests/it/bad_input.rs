//! Data that cannot be trained on, scored or converted: each is refused with a code, the position and a remedy.

use crate::workbench::Workbench;
use std::io::Write;

/// Runs every command that reads data on the same bad file.
fn refused_everywhere(content: impl AsRef<[u8]>, code: &str, check: impl Fn(crate::workbench::Ran)) {
    let bench = Workbench::new();
    bench.write("good.txt", "1 qid:1 1:1 2:3\n0 qid:1 1:2\n");
    bench.ok("train rank good.txt -o rank.mm -q");
    bench.ok("train classify good.txt -o classify.mm -q");
    bench.write("bad.txt", content);
    for line in [
        "train rank bad.txt -o m.mm",
        "train classify bad.txt -o m.mm --report report.html",
        "train rank good.txt --validation bad.txt -o m.mm",
        "predict rank.mm bad.txt",
        "predict classify.mm bad.txt -o scores.txt",
        "evaluate rank.mm bad.txt --per-query queries.tsv",
        "verify rank.mm bad.txt",
        "convert bad.txt -o out.mmd",
        "convert bad.txt -o out.csv",
    ] {
        check(bench.refused(line, code));
    }
}

#[test]
fn an_empty_file() {
    refused_everywhere("", "MM0201", |ran| drop(ran.says("the file is empty").says("\n   bad.txt\n")));
}

#[test]
fn only_comments() {
    refused_everywhere("# nothing\n\n   \n# here\n", "MM0201", |ran| drop(ran.says("only comments and blank lines")));
}

#[test]
fn not_a_number_and_infinity() {
    for token in ["NaN", "nan", "inf", "-inf", "Infinity", "1e999", "3.5e38"] {
        refused_everywhere(format!("1 qid:1 1:0.5\n0 qid:1 1:0.5 2:{token} 3:1\n"), "MM0204", |ran| {
            ran.marks("bad.txt:2:17", token);
        });
    }
}

#[test]
fn words_where_numbers_should_be() {
    for token in ["abc", "0x10", "1,5", "1..2", "--1", "1e", ""] {
        refused_everywhere(format!("1 qid:1 1:0.5\n0 qid:1 1:{token} 3:1\n"), "MM0203", |ran| {
            let marked = if token.is_empty() { " " } else { token };
            ran.marks("bad.txt:2:11", marked).says("expected a finite decimal number");
        });
    }
    let bench = Workbench::new();
    bench.write("broken.txt", "2 qid:18 1:0.3 2:0.5\n2 qid:18 1:0.3 2:abc 3:0.9\n");
    insta::assert_snapshot!(bench.refused("train rank broken.txt -o m.mm", "MM0203").stderr, @r"
    error[MM0203]: this feature value is not a number
       broken.txt:2:18
       2 qid:18 1:0.3 2:abc 3:0.9
                        ^^^ expected a finite decimal number such as 0.25 or 1e-3
       help: correct the value or drop the row
       `maxmargin explain MM0203` says more
    ");
}

#[test]
fn tokens_that_are_no_features() {
    refused_everywhere("1 qid:1 1:0.5\n0 qid:1 7 2:1\n", "MM0207", |ran| drop(ran.marks("bad.txt:2:9", "7")));
    refused_everywhere("1 qid:1 1:0.5\nmaybe qid:1 2:1\n", "MM0202", |ran| drop(ran.marks("bad.txt:2:1", "maybe")));
    refused_everywhere("1 qid:1 cost:-2 1:1\n0 qid:1 1:1\n", "MM0219", |ran| drop(ran.marks("bad.txt:1:14", "-2")));
    refused_everywhere("1 qid: 1:1\n0 qid:1 1:1\n", "MM0209", |ran| drop(ran.says("bad.txt:1:")));
}

#[test]
fn zero_based_rows_among_one_based_ones() {
    let bench = Workbench::new();
    bench.write("bad.txt", "1 qid:1 1:0.5 5:1\n0 qid:1 0:1 2:3\n");
    for task in ["rank", "classify"] {
        bench
            .refused(&format!("train {task} bad.txt --index-base 1 -o m.mm"), "MM0205")
            .says("feature index 0")
            .says("bad.txt:2")
            .says("--index-base 0");
    }
    bench.ok("train rank bad.txt --index-base 0 -o m.mm").says("0-based");
}

#[test]
fn indices_that_decrease_or_repeat() {
    refused_everywhere("1 qid:1 1:0.5 5:1\n0 qid:1 3:1 2:3\n", "MM0206", |ran| {
        ran.marks("bad.txt:2:13", "2").says("feature index 2 follows 3");
    });
    refused_everywhere("1 qid:1 1:0.5 5:1\n0 qid:1 3:1 3:3\n", "MM0206", |ran| {
        ran.marks("bad.txt:2:13", "3").says("feature index 3 is repeated");
    });
}

#[test]
fn indices_beyond_what_can_be_stored() {
    for token in ["4294967297", "18446744073709551617", "99999999999999999999999"] {
        refused_everywhere(format!("1 qid:1 1:0.5\n0 qid:1 {token}:1\n"), "MM0205", |ran| {
            ran.marks("bad.txt:2:9", token);
        });
    }
    refused_everywhere("1 qid:1 1:0.5\n0 qid:1 -1:1\n", "MM0205", |ran| drop(ran.marks("bad.txt:2:9", "-1")));
}

#[test]
fn query_ids_on_some_rows_only() {
    refused_everywhere("1 qid:1 1:0.5\n0 qid:1 1:1\n1 1:2\n0 qid:1 1:3\n", "MM0208", |ran| {
        ran.says("bad.txt:3").says("line 1 has a query id, and line 3 has none");
    });
    refused_everywhere("1 1:0.5\n0 qid:1 1:1\n", "MM0208", |ran| drop(ran.says("bad.txt:1")));
}

#[test]
fn one_class_and_measurements_are_refused_and_three_classes_are_not() {
    let bench = Workbench::new();
    bench.write("one.txt", "1 1:0.5\n1 2:1\n").write("three.txt", "1 1:1\n2 1:2\n3 1:3\n");
    bench.write("three.csv", "label,x\nhigh,1\nlow,2\nmiddle,3\n");
    bench.refused("train classify one.txt -o m.mm", "MM0301").says("every row has the same class, `1`");
    let measured: String = (0..200).map(|row| format!("{} 1:1\n", 0.37 * f64::from(row))).collect();
    bench.write("measured.txt", measured);
    bench.refused("train classify measured.txt -o m.mm", "MM0302").says("which are no classes");
    bench.ok("train classify three.txt -o three.mm");
    bench.ok("train classify three.csv -o words.mm");
}

#[test]
fn a_query_with_one_grade_is_counted_and_reported() {
    let bench = Workbench::new();
    bench.write("graded.txt", "1 qid:1 1:0.5 5:1\n0 qid:1 3:1\n3 qid:2 1:1\n3 qid:2 1:1\n2 qid:3 1:1\n");
    bench
        .ok("train rank graded.txt -o m.mm")
        .says("3 queries, 2 with a single grade ignored · 1 pair")
        .shows("1 constraint,");
}

#[test]
fn nothing_to_rank() {
    let bench = Workbench::new();
    bench.write("flat.txt", "1 qid:1 1:0.5\n1 qid:1 3:1\n3 qid:2 1:1\n");
    bench.refused("train rank flat.txt -o m.mm", "MM0304").says("flat.txt");
}

#[test]
fn ranking_without_queries_names_the_flag() {
    let bench = Workbench::new();
    bench.write("plain.txt", "1 1:0.5\n0 1:1\n2 1:3\n");
    insta::assert_snapshot!(bench.refused("train rank plain.txt -o m.mm", "MM0303").error(), @r"
    error[MM0303]: ranking compares rows of the same query, and the rows have no query ids
       plain.txt
       help: add qid:ID to the rows, name the column with --group, or rank all rows as one list with --one-group
       `maxmargin explain MM0303` says more
    ");
    bench.ok("train rank plain.txt -o m.mm --one-group").says("1 query · 3 pairs");
    // The model remembers the setting.
    bench.ok("evaluate m.mm plain.txt --metric ndcg@10");
}

#[test]
fn compressed_files_that_end_early() {
    let bench = Workbench::with_search();
    let plain = bench.read("search.txt");
    for (file, packed) in [("cut.gz", gzip(&plain)), ("cut.bz2", bzip2(&plain)), ("cut.zst", zstd(&plain))] {
        for part in [packed.len() / 2, packed.len() - 3, 12] {
            bench.write(file, &packed[..part]);
            bench.refused(&format!("train rank {file} -o m.mm"), "MM0105").says(&format!("\n   {file}\n"));
            bench.refused(&format!("convert {file} -o out.mmd"), "MM0105");
        }
        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        bench.write(file, &damaged);
        bench.refused(&format!("train rank {file} -o m.mm"), "MM0105");
    }
    bench.write("table.csv.gz", &gzip(b"label,x\na,1\nb,2\na,3\n")[..20]);
    bench.refused("train classify table.csv.gz -o m.mm", "MM0105");
}

#[test]
fn binary_junk() {
    let mut state = 1u64;
    let junk: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(5000)
    .collect();
    refused_everywhere(&junk, "MM0210", |ran| drop(ran.says("help: known formats are svmlight")));
    let without_zero: Vec<u8> = junk.into_iter().filter(|&byte| byte != 0).collect();
    refused_everywhere(without_zero, "MM0210", |_| ());
}

#[test]
fn a_directory_and_a_missing_file() {
    let bench = Workbench::with_search();
    std::fs::create_dir(bench.path("folder")).expect("a folder");
    bench.refused("train rank folder -o m.mm", "MM0102").says("this is a directory");
    bench.refused("train rank serach.txt -o m.mm", "MM0101").says("did you mean search.txt?");
    bench.refused("train rank nowhere/search.txt -o m.mm", "MM0101").says("the folder nowhere does not exist");
    bench.refused("convert nothing.txt -o out.mmd", "MM0101");
    bench.ok("train rank search.txt -o m.mm -q");
    bench.refused("predict m.mm folder -o scores.txt", "MM0102");
    bench.refused("predict n.mm search.txt", "MM0101").says("did you mean m.mm?");
    bench.refused("inspect folder", "MM0102");
    bench.refused("train rank search.txt --validation vali.txt -o other.mm", "MM0101").says("vali.txt");
}

#[test]
fn a_model_or_an_unknown_file_in_place_of_data() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.refused("train rank m.mm -o n.mm", "MM0104").says("this is a model file, and data are needed");
    bench.write("words.unknown", "what may this be\n");
    bench.refused("train rank words.unknown -o n.mm", "MM0104").says("--input-format");
    bench.write("false.parquet", "1 qid:1 1:1\n");
    bench.refused("train rank false.parquet -o n.mm", "MM0104").says("the name says parquet");
}

#[test]
fn side_files_that_do_not_fit() {
    let bench = Workbench::new();
    bench.write("data.txt", "1 1:1\n0 1:2\n1 1:3\n");
    for (sizes, said) in [("2\n2\n", "add up to 4"), ("", "add up to 0")] {
        bench.write("data.txt.query", sizes);
        bench.refused("train rank data.txt -o m.mm", "MM0211").says(said).says("data.txt.query");
    }
    for wrong in ["x", "1.5", "-1", "0", "inf", "5000000000"] {
        bench.write("data.txt.query", format!("2\n{wrong}\n"));
        bench.refused("train rank data.txt -o m.mm", "MM0211").marks("data.txt.query:2:1", wrong);
    }
    bench.write("data.txt.query", "3\n").write("data.txt.weight", "1\n-1\n1\n");
    bench.refused("train rank data.txt -o m.mm", "MM0211").marks("data.txt.weight:2:1", "-1");
    bench.write("data.txt.weight", "1\n1\n");
    bench.refused("train rank data.txt -o m.mm", "MM0211").says("2 weights for 3 rows");
    bench.write("data.txt.weight", "1\n1\n2\n");
    bench.ok("train rank data.txt -o m.mm").says("groups from data.txt.query").says("weights from data.txt.weight");
}

#[test]
fn more_features_than_the_model_has() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.write("wide.txt", "1 qid:1 1:1\n0 qid:1 9:1\n");
    for command in ["predict", "evaluate", "verify"] {
        bench.refused(&format!("{command} m.mm wide.txt"), "MM0306").says("wide.txt");
    }
    bench.refused("train rank search.txt --validation wide.txt -o n.mm", "MM0306");
    bench.write("narrow.txt", "1 qid:1 1:1\n0 qid:1 2:1\n");
    bench.ok("evaluate m.mm narrow.txt");
}

#[test]
fn labels_the_model_does_not_know() {
    let bench = Workbench::new();
    bench.write("train.csv", "label,x\nham,1\nspam,2\n").write("test.csv", "label,x\nham,1\neggs,2\n");
    bench.ok("train classify train.csv -o m.mm -q");
    bench.refused("evaluate m.mm test.csv", "MM0312").says("eggs");
    assert_eq!(bench.ok("predict m.mm test.csv").stdout.lines().count(), 2);
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).expect("memory")
}

#[test]
fn damaged_tables_are_errors_without_the_words_of_a_panic() {
    let bench = Workbench::with_search();
    for format in ["arrow", "parquet"] {
        bench.ok(&format!("convert search.txt -o good.{format} -q"));
        let good = bench.read(&format!("good.{format}"));
        for step in 0..40 {
            let mut bad = good.clone();
            let at = good.len() - 1 - step * good.len() / 40;
            bad[at] ^= 0x55;
            bench.write(&format!("bad.{format}"), bad);
            let ran = bench.run(&format!("inspect bad.{format}"));
            assert!(!ran.stderr.contains("panicked"), "{format}, byte {at}: {}", ran.stderr);
        }
    }
}
