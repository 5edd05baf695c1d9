//! Wrong flags, metrics and names: a code, a suggestion, exit code 2.

use crate::workbench::Workbench;

#[test]
fn a_wrong_flag_gets_a_suggestion() {
    let bench = Workbench::with_search();
    bench
        .refused("train rank search.txt -o m.mm --toleranse 1e-3", "MM0405")
        .says("help: a similar argument exists: '--tolerance'");
    bench.refused("trian rank search.txt -o m.mm", "MM0405").says("help: a similar subcommand exists: 'train'");
    bench.refused("train ranks search.txt -o m.mm", "MM0405").says("help: a similar subcommand exists: 'rank'");
    bench.refused("train rank search.txt -o m.mm --loss hing", "MM0405").says("help: a similar value exists: 'hinge'");
    bench.refused("train rank search.txt -o m.mm -c abc", "MM0405").says("invalid value 'abc' for '-c <C>'");
    bench.refused("train rank search.txt -o m.mm --threads 0", "MM0405").says("0 is not in 1..=1024");
    bench.refused("train rank search.txt", "MM0405").says("--output <MODEL>");
    bench.refused("convert search.txt", "MM0405").says("--output <FILE>");
    bench.refused("train rank search.txt -o m.mm -c 1 --lambda 1", "MM0405").says("cannot be used with");
    bench.refused("train rank search.txt -o m.mm --holdout 0.1 --validation search.txt", "MM0405");
}

#[test]
fn every_task_has_its_own_flags() {
    let bench = Workbench::with_search();
    let shows = |line: &str, flag: &str| bench.ok(line).stdout.contains(flag);
    for command in ["train", "tune"] {
        for (task, own, others) in [
            ("classify", "--class-weight", "--pair-weight"),
            ("rank", "--pair-weight", "--class-weight"),
            ("compare", "--threshold", "--nu"),
            ("one-class", "--gamma", "--loss <"),
        ] {
            let line = format!("{command} {task} --help");
            assert!(shows(&line, own) && shows(&line, "--seed") && shows(&line, "--index-base"), "{line}");
            assert!(!shows(&line, others), "{line}");
        }
    }
    assert!(
        shows("learn compare --help", "--kappa") && shows("learn --help", "rank") && !shows("learn --help", "sequence")
    );
    assert!(shows("train rank --help", "--items") && !shows("train classify --help", "--items"));
    assert!(shows("train rank --help", "[default: squared-hinge]"));
    bench
        .refused("train rank search.txt -o m.mm --class-weight balanced", "MM0402")
        .says("--class-weight is not a flag of `train rank`: it is for `train classify`");
    bench.refused("train --pair-weight=equal classify search.txt -o m.mm", "MM0402").says("`train rank`");
    bench.refused("train classify search.txt -o m.mm --method rank", "MM0402").says("`train compare`");
}

#[test]
fn the_task_may_stand_behind_flags() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -c 2 --loss hinge --solver newton -o first.mm -q");
    for line in [
        "train -c 2 --loss hinge rank search.txt --solver newton -o second.mm -q",
        "-q train -qc2 --loss=hinge -o second.mm --solver newton rank search.txt",
        "--threads 2 train -o second.mm -vc 2 rank --loss hinge search.txt --solver newton -q",
        "train --config rank --loss hinge -c 2 rank search.txt --solver newton -o second.mm -q",
    ] {
        bench.write("rank", "[train]\nloss = \"squared-hinge\"\n");
        bench.ok(line);
        assert_eq!(bench.read("first.mm"), bench.read("second.mm"), "{line}");
    }
    bench.write("games.csv", "left,right,outcome\na,b,left\nb,c,tie\na,c,left\n");
    bench.ok("train --method rank compare games.csv -o games.mm -q");
    bench.ok("learn -c 1 compare games.csv -o stream.mm -q");
    bench.ok("tune --folds 2 --grid 1,2 rank search.txt -q");
    bench.refused("train --toleranse 1 rank search.txt -o m.mm", "MM0405").says("'--tolerance'");
    bench.refused("train --loss hinge ranks search.txt -o m.mm", "MM0405").says("'rank'");
    bench.refused("train -c 1", "MM0405").says("`train` needs a task: classify, rank");
}

#[test]
fn help_and_version_are_results() {
    let bench = Workbench::new();
    bench.ok("--help").shows("maxmargin demo").shows("train").shows("--json");
    bench.ok("train --help").shows("classify").shows("one-class").shows("`maxmargin train TASK --help`");
    bench.ok("train rank --help").shows("--keep-partial").shows("squared-hinge");
    assert!(bench.ok("--version").stdout.starts_with("maxmargin "));
    let bare = bench.run("");
    assert_eq!((bare.exit, bare.stdout.as_str()), (Some(2), ""));
    bare.says("Start here:");
}

#[test]
fn settings_out_of_range() {
    let bench = Workbench::with_search();
    for (flags, said) in [
        ("-c 0", "-c is 0"),
        ("-c -1", "-c is -1"),
        ("-c inf", "-c is inf"),
        ("-c NaN", "-c is NaN"),
        ("--lambda 0", "lambda is 0"),
        ("--tolerance -1", "tolerance is -1"),
        ("--tolerance NaN", "tolerance is NaN"),
        ("--holdout 1.5", "--holdout is 1.5"),
        ("--holdout -0.5", "--holdout is -0.5"),
    ] {
        bench.refused(&format!("train rank search.txt -o m.mm {flags}"), "MM0402").says(said);
    }
    bench
        .refused("train classify search.txt -o m.mm --class-weight heavy", "MM0402")
        .says("`heavy` is not a class weight");
    bench.refused("train rank search.txt -o m.mm --loss logistic", "MM0401");
    bench.refused("train rank search.txt -o m.mm --solver dual-coordinate-descent", "MM0401");
    bench.refused("simulate search --nonzeros 3 -o out.txt", "MM0402").says("simulate text");
    bench.refused("simulate text --queries 3 -o out.txt", "MM0402").says("simulate search");
    bench.refused("simulate text --features 3 --nonzeros 4 -o out.txt", "MM0402");
}

#[test]
fn a_wrong_metric_gets_a_suggestion() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    bench.refused("evaluate m.mm search.txt --metric ndgc@10", "MM0403").says("did you mean `ndcg@10`?");
    bench.refused("evaluate m.mm search.txt --metric map,ndcg@0", "MM0403").says("`0` is not a number of positions");
    bench.refused("evaluate m.mm search.txt --metric ndcg@10:foo", "MM0403").says("letor");
    bench.refused("train rank search.txt -o n.mm --metric foo", "MM0403").says("the metrics are accuracy");
    bench.refused("evaluate m.mm search.txt --metric accuracy", "MM0308").says("metrics that fit");
}

#[test]
fn an_output_that_cannot_be_written() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -o m.mm -q");
    for line in [
        "train rank search.txt -o nowhere/m.mm",
        "train rank search.txt -o search.txt/m.mm",
        "train rank search.txt -o .",
        "train rank search.txt -o n.mm --report nowhere/report.html",
        "predict m.mm search.txt -o nowhere/scores.txt",
        "evaluate m.mm search.txt --per-query nowhere/queries.tsv",
        "evaluate m.mm search.txt --report search.txt/report.html",
        "convert search.txt -o nowhere/out.mmd",
        "simulate text --rows 10 -o nowhere/out.txt",
    ] {
        bench.refused(line, "MM0108");
    }
    let before = (bench.read("search.txt"), bench.read("m.mm"));
    for line in [
        "train rank search.txt -o search.txt",
        "train rank search.txt -o n.mm --report ./search.txt",
        "predict m.mm search.txt -o search.txt",
        "predict m.mm search.txt -o m.mm",
        "evaluate m.mm search.txt --report m.mm",
    ] {
        bench.refused(line, "MM0108").says("is also an input, and would be overwritten");
    }
    assert_eq!((bench.read("search.txt"), bench.read("m.mm")), before);
    bench.refused("convert search.txt -o out.unknown", "MM0104").says("--to FORMAT");
    bench.refused("convert search.txt -o out.mmd.gz", "MM0104").says("leave the .gz or .zst off");
}

#[test]
fn slopes_of_very_different_size_stall_cutting_planes_and_are_said_to() {
    let bench = Workbench::new();
    bench.write("far.txt", "-1 1:0.7 2:412622975972\n-1 1:0.14 2:548502080605\n1 1:2.38 2:311389244568\n");
    bench.ok("train classify far.txt -o m.mm --loss squared-hinge --solver cutting-plane");
    bench.ok("verify m.mm far.txt");
}

#[test]
fn small_features_that_separate_are_no_proof_of_a_contradiction() {
    let bench = Workbench::new();
    bench.write("small.txt", "1 1:1e-12\n1 1:2e-12\n-1 1:-1e-12\n-1 1:-2e-12\n");
    bench.refused("train classify small.txt -o m.mm --solver quadratic-program", "MM0321");
    bench.write("mixed.txt", "1 1:1\n1 1:2\n-1 1:1.5\n-1 1:-2\n");
    bench.refused("train classify mixed.txt -o m.mm --solver quadratic-program", "MM0320");
}

#[test]
fn one_of_a_thing_is_said_in_the_singular() {
    let bench = Workbench::new();
    bench.write("one.txt", "1 1:1\n0 1:2\n1 1:3\n0 1:0.5\n").write("none.txt", "1 3:1\n");
    bench.ok("train classify one.txt -o m.mm").says("4 rows × 1 feature ");
    bench.refused("tune classify one.txt --folds 1", "MM0402").says("1 fold cannot");
    bench.refused("tune classify one.txt --grid 1:2:1", "MM0402").says("1 value from");
    bench.write("wide.csv", "better.x,worse.x\n1,0\n2,1\n");
    bench.ok("train rank wide.csv -o w.mm").says("1 feature of a better and a worse item");
    bench.write("ragged.csv", "x\n1,2\n");
    bench.refused("convert ragged.csv -o r.svm", "MM0215").says("this row has 2 fields, and the table has 1 column");
    bench.write("q.txt", "1 qid:1 1:1\n0 qid:1 1:0\n0 qid:2 1:1\n0 qid:2 1:0\n");
    bench.ok("train rank q.txt -o q.mm -q");
    bench.ok("evaluate q.mm q.txt --metric map").says("1 of 2 queries has no relevant row and counts as 0");
}

#[test]
fn names_of_the_users_own_are_shown_as_they_are() {
    let bench = Workbench::new();
    bench.write("a.csv", "label,[[c]],[[loss=hinge]]\n1,2,x\n0,1,2\n");
    bench.refused("train classify a.csv --target [[target]] -o m.mm", "MM0213").says("`[[c]]`").says("`[[target]]`");
    bench.refused("train classify a.csv --target label -o m.mm", "MM0214").says("`[[loss=hinge]]`");
}

#[test]
fn weights_and_maps_that_are_none_are_refused_in_the_words_of_the_command() {
    let bench = Workbench::new();
    bench.write("a.csv", "label,x\n1,2\n0,1\n");
    let twice = bench.refused("train classify a.csv --class-weight 1=2,1=3 -o m.mm", "MM0402");
    twice.says("class `1` is given two weights");
    bench
        .refused("train classify a.csv --class-weight 1=nan,0=1 -o m.mm", "MM0402")
        .says("the weight of class `1` is NaN");
    let map = "train classify a.csv --kernel gaussian --approximate nystrom:99999999999 -o m.mm";
    let refused = bench.refused(map, "MM0402").says("--approximate nystrom:1000");
    assert!(!refused.stderr.contains("MM0402:"), "{}", refused.stderr);
}
