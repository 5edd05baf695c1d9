//! Replays the stored inputs of the fuzz targets.

use maxmargin_io::fuzzing;
use std::path::Path;

fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/kept").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 2, "{} holds too little", folder.display());
    for file in files {
        body(&std::fs::read(&file).unwrap());
    }
}

#[test]
fn svmlight_inputs_hold() {
    replay("svmlight", fuzzing::svmlight);
}

#[test]
fn table_inputs_hold() {
    replay("csv", fuzzing::csv);
}

#[test]
fn column_inputs_hold() {
    replay("columns", fuzzing::columns);
}

#[test]
fn tree_inputs_hold() {
    replay("trees", fuzzing::trees);
}

#[test]
fn pair_inputs_hold() {
    replay("pairs", fuzzing::pairs);
}

#[test]
fn cache_inputs_hold() {
    replay("cache", fuzzing::cache);
}

#[test]
fn parquet_inputs_hold() {
    replay("parquet", fuzzing::parquet);
}

#[test]
fn arrow_inputs_hold() {
    replay("arrow", fuzzing::arrow);
}

#[test]
fn model_inputs_hold() {
    replay("model", fuzzing::model);
}
