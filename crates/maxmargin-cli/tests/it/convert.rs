//! Conversion from any format to any other gives the same data.

use crate::workbench::Workbench;

fn hash(bench: &Workbench, task: &str, file: &str) -> String {
    bench.ok(&format!("train {task} {file} -o hashed.mm -q --max-passes 1"));
    bench.json("inspect hashed.mm")["data_hash"].as_str().expect("a hash").to_string()
}

#[test]
fn every_format_holds_the_same_data() {
    for (bench, task, file) in
        [(Workbench::with_search(), "rank", "search.txt"), (Workbench::with_text(), "classify", "text.txt")]
    {
        let expected = hash(&bench, task, file);
        for output in
            ["out.svm", "out.mmd", "out.csv", "out.tsv", "out.parquet", "out.arrow", "out.csv.gz", "out.txt.zst"]
        {
            bench.ok(&format!("convert {file} -o {output}")).says(&format!("wrote {output}"));
            assert_eq!(hash(&bench, task, output), expected, "{task} {output}");
            bench.ok(&format!("convert {output} -o back.mmd -q"));
            assert_eq!(hash(&bench, task, "back.mmd"), expected, "{task} {output} and back");
        }
        bench.ok("convert out.parquet -o again.txt -q");
        assert_eq!(hash(&bench, task, "again.txt"), expected);
    }
}

#[test]
fn models_are_the_same_whatever_the_format() {
    let bench = Workbench::with_text();
    bench.ok("train classify text.txt -o text.mm -q");
    bench.ok("convert text.txt -o cache.mmd -q");
    bench.ok("train classify cache.mmd -o cache.mm -q");
    let weights = |model: &str| bench.json(&format!("inspect {model}"))["weights"].clone();
    assert_eq!(weights("text.mm"), weights("cache.mm"));
    bench.ok("verify text.mm cache.mmd").shows("the certificate holds");
    assert_eq!(bench.ok("predict text.mm cache.mmd").stdout, bench.ok("predict text.mm text.txt").stdout);
}

#[test]
fn words_and_numbers_survive_a_round_trip() {
    let bench = Workbench::new();
    let table = "label,weight,id,x,\"y, quoted\"\nham,1,a,0.1,-2\n\"s\"\"pam\",2,b,1e-30,0\nham,1.5,c,3,4\n";
    bench.write("in.csv", table);
    let expected = hash(&bench, "classify", "in.csv");
    for output in ["out.csv", "out.tsv", "out.parquet", "out.arrow", "out.mmd"] {
        bench.ok(&format!("convert in.csv -o {output} -q"));
        assert_eq!(hash(&bench, "classify", output), expected, "{output}");
    }
}

#[test]
fn a_format_is_written_by_name_or_on_request() {
    let bench = Workbench::with_search();
    let object = bench.json("convert search.txt -o data --to mmd");
    assert_eq!(object["format"], "mmd");
    assert_eq!(bench.json("convert data --check")["sound"], true);
    bench.run_with_input("convert - -o piped.mmd -q", bench.read("search.txt")).succeeded();
    assert_eq!(bench.read("piped.mmd"), bench.read("data"));
}

#[test]
fn a_check_tells_sound_from_damaged() {
    let bench = Workbench::with_text();
    bench.ok("convert text.txt -o cache.mmd -q");
    bench.ok("convert cache.mmd --check").shows("cache.mmd is intact").shows("600 rows × 200 features");
    let sound = bench.read("cache.mmd");
    let mut step = 1;
    for at in (0..sound.len()).step_by(sound.len() / 23) {
        let mut damaged = sound.clone();
        damaged[at] ^= step;
        step = if step == 128 { 1 } else { step * 2 };
        bench.write("damaged.mmd", &damaged);
        let ran = bench.run("convert damaged.mmd --check");
        let code = if ran.stderr.contains("MM0218") { "MM0218" } else { "MM0217" };
        ran.failed(2, code).says("damaged.mmd");
    }
    for length in [0, 3, 8, 100, sound.len() / 2, sound.len() - 1] {
        bench.write("damaged.mmd", &sound[..length]);
        bench.refused("convert damaged.mmd --check", "MM0217");
        let ran = bench.run("train classify damaged.mmd -o m.mm");
        assert_eq!(ran.exit, Some(2), "{}", ran.stderr);
    }
    bench.refused("convert text.txt --check", "MM0217");
}

#[test]
fn a_damaged_block_is_noticed_when_it_is_used() {
    let bench = Workbench::with_text();
    bench.ok("convert text.txt -o cache.mmd -q");
    let mut bytes = bench.read("cache.mmd");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bench.write("cache.mmd", bytes);
    bench.refused("train classify cache.mmd -o m.mm", "MM0217").says("cache.mmd");
    bench.refused("convert cache.mmd -o out.txt", "MM0217").says("cache.mmd");
}

#[test]
fn text_larger_than_memory_becomes_the_same_cache() {
    let bench = Workbench::new();
    bench.ok("simulate search --queries 500 --docs 40 --features 30 --seed 3 -o dense.txt -q");
    bench.ok("simulate text --rows 8000 --features 100000 --nonzeros 60 --seed 3 -o wide.txt -q");
    bench.ok("simulate text --rows 3000 --features 5000 --nonzeros 60 --seed 3 -o narrow.txt.gz -q");
    assert!(bench.read("dense.txt").len() > 3 << 20, "several blocks");
    let costs: String =
        (0..90_000).map(|row| format!("{} cost:{} 0:1 3:{row} # id{row}\n", row % 2, row % 3)).collect();
    bench.write("odd.txt", format!("{costs}1 1:1 # last"));
    for file in ["dense.txt", "wide.txt", "narrow.txt.gz", "odd.txt"] {
        for precision in ["f32", "f64"] {
            bench.ok(&format!("convert {file} --precision {precision} -o whole.mmd"));
            bench.ok(&format!("convert {file} --precision {precision} -o streamed.mmd --memory 64KiB"));
            bench.ok("convert --check streamed.mmd");
            assert!(bench.read("streamed.mmd") == bench.read("whole.mmd"), "{file}, {precision}");
        }
    }
    bench.write("scattered.txt", "1 qid:a 1:1\n0 qid:b 1:2\n0 qid:a 1:3\n");
    bench.write("sets.txt", "1,2 1:1\n3 1:2\n");
    for file in ["scattered.txt", "sets.txt"] {
        bench.ok(&format!("convert {file} -o whole.mmd"));
        bench.ok(&format!("convert {file} -o streamed.mmd --memory 4b"));
        assert!(bench.read("streamed.mmd") == bench.read("whole.mmd"), "{file}");
    }
    let bad = bench.text("odd.txt").replacen("3:50000 ", "3:x ", 1);
    bench.write("bad.txt", bad);
    let whole = bench.refused("convert bad.txt -o new.mmd", "MM0203");
    let streamed = bench.refused("convert bad.txt -o new.mmd --memory 64KiB", "MM0203");
    assert_eq!(streamed.error(), whole.error());
}
