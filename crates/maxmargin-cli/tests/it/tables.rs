//! Tables: roles of columns, words as labels, quotes, and empty cells.

use crate::workbench::{Workbench, number};

const GOOD: &str = "label,a,b\nx,1,2\ny,3,1\nx,0,4\ny,5,0\n";

#[test]
fn empty_cells_are_refused_by_name() {
    let bench = Workbench::new();
    bench.write("t.csv", "label,a,b\nx,1,2\ny,,3\n");
    insta::assert_snapshot!(bench.refused("train classify t.csv -o m.mm", "MM0212").stderr, @r"
    error[MM0212]: a value is missing: column `a`, this cell is empty
       t.csv:3:3
       y,,3
         ^ expected a finite decimal number such as 0.25 or 1e-3
       help: fill such cells with --missing zero or --missing mean, or leave the column out with --ignore a
       `maxmargin explain MM0212` says more
    ");
    for word in ["NA", "NaN", "null", "?"] {
        bench.write("t.csv", format!("label,a,b\nx,1,2\ny,{word},3\n"));
        bench.refused("train classify t.csv -o m.mm", "MM0212").marks("t.csv:3:3", word);
        bench.refused("convert t.csv -o out.mmd", "MM0212");
    }
    bench.write("t.csv", "label,a,b\nx,1,2\n,2,3\n");
    bench.refused("train classify t.csv -o m.mm", "MM0212").says("t.csv:3:1");
    bench.write("t.csv", "label,qid,b\n1,1,2\n0,,3\n");
    bench.refused("train rank t.csv -o m.mm", "MM0208").says("t.csv:3:3");
}

#[test]
fn cells_that_are_no_numbers_are_refused() {
    let bench = Workbench::new();
    bench.write("t.csv", "label,a,b\nx,1,2\ny,3,zz\n");
    bench.refused("train classify t.csv -o m.mm", "MM0214").marks("t.csv:3:5", "zz").says("column `b`");
    bench.write("t.csv", "label,a,b\nx,1,2\ny,3,inf\n");
    bench.refused("train classify t.csv -o m.mm", "MM0204").marks("t.csv:3:5", "inf");
    bench.write("t.tsv", "label\ta\tb\nx\t1\t2\ny\t3\tzz\n");
    bench.refused("train classify t.tsv -o m.mm", "MM0214").says("t.tsv:3:5");
    bench.write("t.csv", "label,weight,b\nx,1,2\ny,-3,1\n");
    bench.refused("train classify t.csv -o m.mm", "MM0219").marks("t.csv:3:3", "-3");
}

#[test]
fn ragged_tables_and_open_quotes_are_refused() {
    let bench = Workbench::new();
    bench.write("t.csv", "label,a,b\nx,1,2\ny,3\n");
    bench.refused("train classify t.csv -o m.mm", "MM0215").says("this row has 2 fields").says("t.csv:3:4");
    bench.write("t.csv", "label,a,b\nx,1,2\ny,3,4,5\n");
    bench.refused("train classify t.csv -o m.mm", "MM0215").says("this row has 4 fields").says("t.csv:3:");
    bench.write("t.csv", "label,a,b\nx,1,2\ny,3,\"zz\n");
    bench.refused("train classify t.csv -o m.mm", "MM0215").says("a quote opens here").says("t.csv:3:5");
    bench.write("t.csv", "label,a,a\nx,1,2\n");
    bench.refused("train classify t.csv -o m.mm", "MM0215").says("`a`");
}

#[test]
fn empty_tables_are_refused() {
    let bench = Workbench::new();
    bench.write("t.csv", "").refused("train classify t.csv -o m.mm", "MM0201");
    bench.write("t.csv", "label,a\n").refused("train classify t.csv -o m.mm", "MM0201").says("no rows");
    bench.write("t.csv", "label\nx\ny\n").refused("train classify t.csv -o m.mm", "MM0215");
    bench.write("t.csv", "a,b\n1,2\n3,4\n").refused("train classify t.csv -o m.mm", "MM0305");
}

#[test]
fn unknown_columns_get_a_suggestion() {
    let bench = Workbench::new();
    bench.write("t.csv", GOOD).write("t.txt", "1 1:1\n0 1:2\n");
    for flag in ["target", "group", "weight", "id", "ignore"] {
        bench
            .refused(&format!("train classify t.csv -o m.mm --{flag} lable"), "MM0213")
            .says(&format!("--{flag} lable"))
            .says("did you mean `label`? the columns are `label`, `a`, `b`");
    }
    bench.refused("train classify t.txt -o m.mm --target label", "MM0402").says("this file is svmlight");
}

#[test]
fn roles_are_found_by_name_and_said() {
    let bench = Workbench::new();
    bench.write("t.csv", "docid,qid,relevance,\"f, 1\",f2\nd1,q1,2,1,0\nd2,q1,0,0,1\nd3,q2,1,1,1\nd4,q2,0,0,2\n");
    let ran = bench.ok("train rank t.csv -o m.mm");
    let _ = ran.says("`relevance`").says("`qid`").says("`docid`").says("4 rows × 2 features · 2 queries");
}

#[test]
fn labels_may_be_words_and_fields_may_be_quoted() {
    let bench = Workbench::new();
    let table = "\"what is it\",\"length, cm\",n\n\"a \"\"cat\"\"\",1,2\ndog,3,1\n\"a \"\"cat\"\"\",0,4\ndog,5,0\n";
    bench.write("t.csv", table);
    let mut command = bench.command("train classify t.csv -o m.mm -q --target");
    assert!(command.arg("what is it").output().expect("it runs").status.success());
    let labels: Vec<String> = bench
        .ok("predict m.mm t.csv")
        .stdout
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().to_string())
        .collect();
    assert_eq!(labels, ["a \"cat\"", "dog", "a \"cat\"", "dog"]);
}

#[test]
fn the_rule_for_empty_cells_is_kept_in_the_model() {
    let bench = Workbench::new();
    bench.write("train.csv", "label,a,b\nx,1,2\ny,,1\nx,4,4\ny,7,0\n");
    bench
        .write("holes.csv", "label,a,b\nx,,2\n")
        .write("mean.csv", "label,a,b\nx,4,2\n")
        .write("zero.csv", "label,a,b\nx,0,2\n");
    for (rule, filled) in [("mean", "mean.csv"), ("zero", "zero.csv")] {
        bench.ok(&format!("train classify train.csv --missing {rule} -o m.mm -q"));
        let holes = bench.ok("predict m.mm holes.csv").stdout;
        assert_eq!(holes, bench.ok(&format!("predict m.mm {filled}")).stdout, "{rule}");
        bench.ok("evaluate m.mm holes.csv --metric accuracy");
        bench.ok("verify m.mm train.csv");
    }
    bench.write("whole.csv", GOOD).ok("train classify whole.csv -o m.mm -q");
    bench.refused("predict m.mm holes.csv", "MM0212").says("holes.csv:2:3");
}

#[test]
fn weights_of_a_table_count() {
    let bench = Workbench::new();
    bench.write("weighted.csv", "label,weight,a\nx,2,1\ny,1,3\nx,1,2\n");
    bench.write("repeated.csv", "label,a\nx,1\nx,1\ny,3\nx,2\n");
    let one = number(&bench.json("train classify weighted.csv -o m.mm --tolerance 1e-9"), "objective");
    let other = number(&bench.json("train classify repeated.csv -o m.mm --tolerance 1e-9"), "objective");
    assert!((one - other).abs() < 1e-8, "{one} {other}");
}

#[test]
fn columns_may_be_separated_by_semicolons_tabs_or_bars() {
    let bench = Workbench::new();
    bench.write("comma.csv", GOOD);
    let expected = bench.json("train classify comma.csv -o m.mm");
    for (delimiter, told) in [(";", "columns separated by `;`"), ("|", "columns separated by `|`"), ("\t", "tsv")] {
        bench.write("t.csv", GOOD.replace(',', delimiter));
        let ran = bench.ok("train classify t.csv -o m.mm --json").says(told);
        assert_eq!(ran.object()["objective"], expected["objective"], "{delimiter}");
        bench.ok("predict m.mm t.csv -o scores.txt -q");
        let piped = bench.run_with_input("train classify - -o m.mm --json", GOOD.replace(',', delimiter)).succeeded();
        assert_eq!(piped.object()["objective"], expected["objective"], "{delimiter}");
    }
    bench.write("t.csv", "\"age\";\"job, if any\";\"y\"\n30;\"1\";no\n40;2;yes\n");
    bench.ok("train classify t.csv -o m.mm").says("columns separated by `;`").says("target column `y`");
    bench.write("t.csv", "a;y\n1,5;1\n2;0\n");
    bench
        .refused("train classify t.csv -o m.mm", "MM0214")
        .says("write decimals with a point")
        .marks("t.csv:2:1", "1,5");
    bench.write("t.csv", "a b y\n1 2 1\n2 1 0\n");
    bench.refused("train classify t.csv -o m.mm", "MM0214").says("separated by a comma, a semicolon");
}

#[test]
fn no_first_row_of_a_table_without_names_is_lost() {
    let bench = Workbench::new();
    for text in ["1,2\n0,1\n1,3\n0,0.5\n", "1,0.5\n0,1\n", "1,male,adult\n0,female,adult\n", "1;0;2\n0;1;1\n"] {
        bench.write("t.csv", text);
        let ran = bench.refused("train classify t.csv --target 1 -o m.mm", "MM0215");
        ran.says("no header?").says("such as `target,f1,f2`").marks("t.csv:1:1", "1");
    }
    bench.write("t.csv", GOOD);
    bench.refused("train classify t.csv --target 1 -o m.mm", "MM0213").says("columns are named, not numbered");
    // Numbers of columns that pandas writes are names.
    bench.write("t.csv", "0,1,2,3\n1,5,6,7\n0,3,4,5\n");
    let ran = bench.ok("train classify t.csv --target 0 -o m.mm --json").says("the first line numbers the columns");
    assert_eq!(number(&ran.object(), "rows"), 2.0);
}
