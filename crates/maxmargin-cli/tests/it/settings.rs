//! Settings files, and settings that repeat a run.

use crate::workbench::Workbench;

#[test]
fn printed_settings_repeat_the_run_to_the_byte() {
    for (bench, line) in [
        (Workbench::with_search(), "rank search.txt -c 3 --scale standard --seed 4 --tolerance 1e-5"),
        (Workbench::with_search(), "rank search.txt --lambda 0.001 --holdout 0.25 --precision f64"),
        (Workbench::with_text(), "classify text.txt --class-weight -1=2,1=1 --positive -1 --intercept penalised"),
        (Workbench::with_text(), "classify text.txt --class-weight balanced --loss squared-hinge --max-passes 50"),
    ] {
        bench.ok(&format!("train {line} -o first.mm -q"));
        bench.write("settings.toml", bench.ok("inspect first.mm --settings").stdout);
        let (task, rest) = line.split_once(' ').expect("a task");
        let file = rest.split(' ').next().expect("a file");
        bench.ok(&format!("train {task} {file} --config settings.toml -o second.mm -q"));
        assert_eq!(bench.read("first.mm"), bench.read("second.mm"), "{line}");
        let object = bench.json("inspect first.mm --settings");
        assert_eq!(object["task"], task);
    }
}

#[test]
fn a_settings_file_looks_like_this() {
    let bench = Workbench::with_search();
    bench.ok("train rank search.txt -c 0.5 -o m.mm -q --precision f64");
    insta::assert_snapshot!(bench.ok("inspect m.mm --settings").stdout, @r#"
    task = "rank"

    [train]
    loss = "squared-hinge"
    c = 0.5
    solver = "auto"
    scale = "none"
    tolerance = 0.001
    max-passes = 1000
    seed = 0

    [read]
    precision = "f64"
    "#);
}

#[test]
fn flags_win_over_the_settings_file() {
    let bench = Workbench::with_search();
    bench.write("settings.toml", "[train]\nc = 3.0\ntolerance = 1e-5\n");
    let trained = bench.json("train rank search.txt --config settings.toml -o m.mm");
    assert_eq!(trained["c"], 3.0);
    assert_eq!(bench.json("train rank search.txt --config settings.toml -c 2 -o m.mm")["c"], 2.0);
    let trained = bench.json("train rank search.txt --config settings.toml --lambda 0.5 -o m.mm");
    assert_eq!(trained["lambda"], 0.5);
}

#[test]
fn settings_files_of_before_are_read_as_before() {
    let bench = Workbench::new();
    bench.write("games.csv", "left,right,outcome\na,b,left\nb,c,tie\na,c,left\n");
    bench.ok("train compare games.csv --threshold penalised --seed 3 -o first.mm -q");
    for rule in ["intercept", "threshold"] {
        bench.write("settings.toml", format!("task = \"compare\"\n[train]\n{rule} = \"penalised\"\nseed = 3\n"));
        bench.ok("train compare games.csv --config settings.toml -o second.mm -q");
        assert_eq!(bench.read("first.mm"), bench.read("second.mm"), "{rule}");
    }
    bench.ok("train compare games.csv --intercept penalised --seed 3 -o third.mm -q");
    assert_eq!(bench.read("first.mm"), bench.read("third.mm"));
}

#[test]
fn wrong_settings_files_are_refused_with_their_place() {
    let bench = Workbench::with_search();
    let refused = |content: &str, code: &str| {
        bench.write("settings.toml", content);
        bench.refused("train rank search.txt -o m.mm --config settings.toml", code)
    };
    refused("[train]\nloss = \"squared-hinge\"\ntolerence = 1\n", "MM0404")
        .marks("settings.toml:3:1", "tolerence")
        .says("`tolerance`");
    refused("[train]\nloss = \"hing\"\n", "MM0404").marks("settings.toml:2:8", "\"hing\"");
    refused("[train]\nc = \"big\"\n", "MM0404").marks("settings.toml:2:5", "\"big\"");
    refused("[train\n", "MM0404").says("settings.toml:1:");
    // Values out of range are shown in the file too, and named as in the file.
    refused("[train]\nc = nan\n", "MM0402").marks("settings.toml:2:5", "nan").says("`c` is NaN");
    refused("[train]\napproximate = \"nystrom:x\"\n", "MM0402").marks("settings.toml:2:15", "\"nystrom:x\"");
    refused("c = 1\n[train]\n", "MM0404").marks("settings.toml:1:1", "c").says("belongs to the table [train]");
    refused("[train]\nbatch = 3\n[train.stochastic]\nbatch = 4\n", "MM0404").says("`batch` is set twice");
    refused("[train]\nc = ", "MM0404").says("settings.toml:2:");
    refused("[trian]\n", "MM0404").says("trian");
    refused("[train]\nc = 1.0\nlambda = 2.0\n", "MM0402").says("more than one of c, lambda and nu is set");
    refused("[train]\nc = -1.0\n", "MM0402");
    refused("[read]\nmissing = \"maybe\"\n", "MM0404")
        .marks("settings.toml:2:11", "\"maybe\"")
        .says("error, zero, mean");
    refused("[train]\nclass-weight = \"balanced\"\n", "MM0404")
        .marks("settings.toml:2:1", "class-weight")
        .says("it is for classify");
    refused("[train]\nmemory = 1.5\n", "MM0404").marks("settings.toml:2:10", "1.5");
    refused("[train]\nholdout = 1\n", "MM0402").says("between 0 and 1");
    refused("task = \"classify\"\n", "MM0404").says("the settings are for `classify`").says("settings.toml");
    bench.write("settings.toml", b"\xff\xfe\x00");
    bench.refused("train rank search.txt -o m.mm --config settings.toml", "MM0210");
    bench.refused("train rank search.txt -o m.mm --config setings.toml", "MM0101").says("did you mean settings.toml?");
    bench.refused("train rank search.txt -o m.mm --config .", "MM0102");
}
