//! Files that change while they are read.

use maxmargin::error::Code;
use maxmargin_io::{
    BadCell, BlockOptions, PairBlocks, Pairing, ReadOptions, TakeRecords, read, read_blocks, read_records,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    let name = path.display().to_string();
    (path, name)
}

/// Adds a row to the file when it receives the first one.
struct Changing(PathBuf, bool);

impl TakeRecords for Changing {
    fn choose(&mut self, _names: &[String]) -> maxmargin::Result<Vec<usize>> {
        Ok(vec![0])
    }

    fn take(&mut self, _cells: &[&[u8]], _row: Option<usize>) -> Result<(), BadCell> {
        if std::mem::take(&mut self.1) {
            append(&self.0, "3,4\n");
        }
        Ok(())
    }
}

#[test]
fn records_that_are_added_meanwhile_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, file) = written(&folder, "t.csv", "a,b\n1,2\n");
    let options = ReadOptions::default();
    read_records(&file, &options, &mut Changing(path.clone(), false)).expect("unchanged");
    let error = read_records(&file, &options, &mut Changing(path, true)).expect_err("changed");
    assert_eq!(error.code(), Code::FileShrank);
}

#[test]
fn rows_that_are_added_meanwhile_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text, more) in [("t.txt", "1 1:1\n-1 2:1\n", "1 1:2\n"), ("t.csv", "target,a\n1,2\n-1,3\n", "1,5\n")] {
        let (path, file) = written(&folder, name, text);
        let options = ReadOptions::default();
        let blocks = BlockOptions::default();
        read_blocks(&file, &options, &blocks, &|_| Ok(()), &mut |_| Ok(())).expect("unchanged");
        let work = |_: &maxmargin_io::Block| {
            append(&path, more);
            Ok(())
        };
        let error = read_blocks(&file, &options, &blocks, &work, &mut |_| Ok(())).expect_err("changed");
        assert_eq!((error.code(), error.place().map(|place| &place.file)), (Code::FileShrank, Some(&file)));
    }
}

#[test]
fn pairs_that_are_added_meanwhile_are_an_error_and_the_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, file) = written(&folder, "t.csv", "left,right,outcome\na,b,left\nb,c,tie\n");
    let options = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
    let mut blocks = PairBlocks::open(&file, &options, 1 << 20).expect("opened");
    blocks.next().expect("a block").expect("pairs");
    append(&path, "a,c,left\n");
    assert_eq!(blocks.next().expect("an end").expect_err("changed").code(), Code::FileShrank);
    assert!(blocks.next().is_none());
}

#[test]
fn what_was_read_completely_may_change_and_what_is_mapped_may_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, text_name) = written(&folder, "t.txt", "1 1:1\n-1 2:1\n");
    let loaded = read(&text_name, &ReadOptions::default()).expect("read");
    let (cache, cache_name) = written(&folder, "t.mmd", "");
    maxmargin_io::cache::save(&loaded, &cache).expect("written");
    append(&text, "1 1:2\n");
    loaded.facts.stamps.check().expect("it is in memory");
    let mapped = read(&cache_name, &ReadOptions::default()).expect("read");
    append(&cache, "more");
    let error = mapped.facts.stamps.check().expect_err("changed");
    assert_eq!(error.place().map(|place| &place.file), Some(&cache_name));
    let out = folder.path().join("out.csv").display().to_string();
    let error = maxmargin_io::write(&mapped, &out, maxmargin_io::Format::Csv, &Default::default());
    assert_eq!(error.expect_err("changed").code(), Code::FileShrank);
    assert!(!Path::new(&out).exists());
}
