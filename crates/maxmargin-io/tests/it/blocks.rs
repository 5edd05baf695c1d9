//! Data read in blocks equal the data read as a whole.

use maxmargin::data::Dataset;
use maxmargin::error::{Code, Error};
use maxmargin::run::Cancel;
use maxmargin_io::{
    Block, BlockOptions, Format, Found, Missing, ModelFeatures, ReadOptions, Step, read, read_blocks, write,
};
use std::path::PathBuf;
use tempfile::TempDir;

/// A row of a block: its position in the input, its query, its id, its features.
type Row = (u64, Option<String>, Option<String>, Vec<(usize, f64)>);

fn rows(data: &Dataset, first_row: u64) -> Vec<Row> {
    let mut shown: Vec<Row> = (0..data.rows())
        .map(|row| {
            let mut entries = Vec::new();
            data.matrix().each_in_row(row, |column, value| {
                if value != 0.0 {
                    entries.push((column, value));
                }
            });
            let query = data.groups().map(|groups| {
                let group = groups.starts().partition_point(|&start| start <= row as u64) - 1;
                groups.names().get(group).into_owned()
            });
            let id = data.row_ids().map(|ids| ids.get(row).into_owned());
            (first_row + data.input_row(row) as u64, query, id, entries)
        })
        .collect();
    shown.sort_by_key(|row| row.0);
    shown
}

fn options(features: usize) -> ReadOptions {
    let features = ModelFeatures { count: features, names: None, index_base: Some(1) };
    ReadOptions { features: Some(features), ..ReadOptions::default() }
}

/// What was returned, block by block, and how often reading started again.
struct Taken {
    blocks: Vec<Vec<Row>>,
    again: usize,
    found: Result<Found, Error>,
}

fn take(file: &str, options: &ReadOptions, blocks: &BlockOptions) -> Taken {
    let (mut taken, mut again) = (Vec::new(), 0);
    let work = |block: &Block| Ok(rows(&block.data, block.first_row));
    let found = read_blocks(file, options, blocks, &work, &mut |step| {
        match step {
            Step::Block(rows) => taken.push(rows),
            Step::Again => {
                taken.clear();
                again += 1;
            }
        }
        Ok(())
    });
    Taken { blocks: taken, again, found }
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn name(&self, file: &str) -> String {
        self.path(file).display().to_string()
    }

    fn write(&self, file: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(file), content).expect("written");
        self.name(file)
    }

    /// The same data in every format.
    fn in_all_formats(&self, text: &str) -> Vec<String> {
        let plain = self.write("data.txt", text);
        let loaded = read(&plain, &options(4)).expect("reads");
        let mut files = vec![plain];
        for (file, format) in [
            ("data.txt.gz", Format::Svmlight),
            ("data.svm.zst", Format::Svmlight),
            ("data.csv", Format::Csv),
            ("data.tsv.gz", Format::Tsv),
            ("data.parquet", Format::Parquet),
            ("data.arrow", Format::Arrow),
            ("data.mmd", Format::Mmd),
        ] {
            write(&loaded, &self.name(file), format, &Cancel::new()).expect("writes");
            files.push(self.name(file));
        }
        files
    }
}

fn graded(queries: &[&str]) -> String {
    queries
        .iter()
        .enumerate()
        .map(|(row, query)| {
            format!("{} qid:{query} 1:{} {}3:0.{row} 4:1 # doc{row}\n", row % 3, row + 1, ["", "2:7 "][row % 2])
        })
        .collect()
}

const QUERIES: [&str; 13] = ["a", "a", "b", "c", "c", "c", "c", "c", "c", "d", "e", "e", "f"];

#[test]
fn blocks_of_any_size_hold_the_rows_of_the_file_in_every_format() {
    let folder = Folder::new();
    for file in folder.in_all_formats(&graded(&QUERIES)) {
        let whole = read(&file, &options(4)).expect("reads");
        whole.data.matrix().check(0..whole.data.rows()).expect("sound");
        for bytes in [1, 40, 200, 1 << 20] {
            for whole_groups in [false, true] {
                let blocks = BlockOptions { whole_groups, bytes, ..BlockOptions::default() };
                let taken = take(&file, &options(4), &blocks);
                let found = taken.found.expect("reads");
                assert_eq!(taken.blocks.concat(), rows(&whole.data, 0), "{file} in {bytes}");
                assert_eq!((found.rows, found.cols, found.groups), (13, 4, Some(6)), "{file} in {bytes}");
                assert_eq!(found.facts, whole.facts, "{file}");
                assert_eq!(taken.again, 0);
                assert!(bytes > 1 || taken.blocks.len() >= 6, "{file}: {} blocks", taken.blocks.len());
                if whole_groups {
                    let queries: Vec<&Row> = taken.blocks.iter().filter_map(|block| block.first()).collect();
                    let distinct: std::collections::HashSet<_> = queries.iter().map(|row| &row.1).collect();
                    assert_eq!(distinct.len(), queries.len(), "{file} in {bytes}: no query is in two blocks");
                }
            }
        }
    }
}

#[test]
fn scattered_queries_stay_in_input_order_and_come_again_where_they_are_needed_whole() {
    let folder = Folder::new();
    let scattered = ["a", "b", "a", "c", "c", "b", "d"];
    for file in folder.in_all_formats(&graded(&scattered)) {
        let whole = read(&file, &options(4)).expect("reads");
        whole.data.matrix().check(0..whole.data.rows()).expect("sound");
        for bytes in [1, 100] {
            let mut blocks = BlockOptions { bytes, ..BlockOptions::default() };
            let lines = take(&file, &options(4), &blocks);
            assert_eq!(lines.blocks.concat(), rows(&whole.data, 0), "{file}");
            blocks.whole_groups = true;
            let grouped = take(&file, &options(4), &blocks);
            assert_eq!(grouped.blocks, [rows(&whole.data, 0)], "{file}: as one block");
            assert_eq!(grouped.found.expect("reads").groups, Some(4));
            // A cache knows in advance that its rows were moved.
            assert_eq!(grouped.again, usize::from(!file.ends_with(".mmd")), "{file}");
        }
    }
}

#[test]
fn ids_that_a_later_row_lacks_are_none_where_queries_are_whole() {
    let folder = Folder::new();
    let text = graded(&QUERIES).replace(" # doc11", "");
    let file = folder.write("t.txt", text);
    let taken = take(&file, &options(4), &BlockOptions { whole_groups: true, bytes: 1, ..BlockOptions::default() });
    assert_eq!(taken.again, 1);
    assert!(taken.blocks.concat().iter().all(|row| row.2.is_none()));
}

#[test]
fn an_error_is_that_of_the_whole_file_at_its_line() {
    let folder = Folder::new();
    let good = graded(&QUERIES);
    let all = folder.write("good.txt", &good);
    let line = |number: usize, wrong: &str| -> String {
        let lines: Vec<&str> = good.lines().collect();
        [&lines[..number - 1], &[wrong], &lines[number..]].concat().join("\n") + "\n"
    };
    for (wrong, code, at) in [
        ("1 qid:c 1:0.5 2:x", Code::BadValue, (7, 17)),
        ("1 qid:c 2:0.5 1:1", Code::IndexOrder, (7, 15)),
        ("1 qid:c 0:0.5", Code::BadIndex, (7, 9)),
        ("1 1:0.5", Code::MixedGroups, (7, 3)),
    ] {
        let file = folder.write("bad.txt", line(7, wrong));
        let whole = read(&file, &options(4)).expect_err("wrong");
        for bytes in [1, 60, 1 << 20] {
            let taken = take(&file, &options(4), &BlockOptions { bytes, ..BlockOptions::default() });
            let error = taken.found.expect_err("wrong");
            assert_eq!(error.code(), code);
            assert_eq!(format!("{error:?}"), format!("{whole:?}"), "{wrong} in {bytes}");
            let place = error.place().expect("a place");
            assert_eq!((place.line, place.column), (Some(at.0), Some(at.1)));
            if bytes == 1 {
                let before = taken.blocks.concat();
                assert!((3..=6).contains(&before.len()), "what stands before is handed out");
                assert_eq!(before, rows(&read(&all, &options(4)).expect("reads").data, 0)[..before.len()]);
            }
        }
    }
    let table = "a,b\n1,2\n3,4\n5,6\n7,x\n";
    let file = folder.write("bad.csv", table);
    let whole = read(&file, &options(2)).expect_err("wrong");
    let taken = take(&file, &options(2), &BlockOptions { bytes: 1, ..BlockOptions::default() });
    assert_eq!(format!("{:?}", taken.found.expect_err("wrong")), format!("{whole:?}"));
    assert_eq!(taken.blocks.concat().len(), 3);
}

#[test]
fn files_without_rows_are_refused_as_before() {
    let folder = Folder::new();
    for (file, content) in [("a.txt", ""), ("b.txt", "# nothing\n\n"), ("c.csv", ""), ("d.csv", "x,z\n")] {
        let file = folder.write(file, content);
        let whole = read(&file, &options(2)).expect_err("empty");
        let error = take(&file, &options(2), &BlockOptions::default()).found.expect_err("empty");
        assert_eq!((error.code(), error.message()), (whole.code(), whole.message()), "{file}");
    }
}

#[test]
fn an_index_base_that_nobody_knows_is_found_in_a_pass_of_its_own() {
    let folder = Folder::new();
    let tiny = BlockOptions { bytes: 1, ..BlockOptions::default() };
    let unknown = ReadOptions::default();
    for (text, base) in [("1 0:1 1:2\n0 1:1\n1 0:3\n", 0), ("1 1:1 2:2\n0 2:1\n1 1:3\n", 1)] {
        let plain = folder.write("t.txt", text);
        let whole = read(&plain, &unknown).expect("reads");
        let compressed = folder.name("t.txt.gz");
        write(&whole, &compressed, Format::Svmlight, &Cancel::new()).expect("writes");
        for path in [plain, compressed] {
            let taken = take(&path, &unknown, &tiny);
            assert!(taken.blocks.len() > 1, "{path}: read by blocks all the same");
            assert_eq!(taken.blocks.concat(), rows(&whole.data, 0));
            assert_eq!(taken.found.expect("reads").facts.index_base, Some(base));
        }
    }
    // Features from 1 on until the last row starts at 0, a row without a query, no rows: the same errors as for a whole
    // file.
    for text in ["1 1:1\n0 1:1\n1 0:3\n", "1 qid:1 1:1\n1 1:1\n", "# nothing\n", "1 1:1\n1 1:x\n"] {
        let path = folder.write("bad.txt", text);
        let whole = read(&path, &unknown).expect_err("wrong");
        let taken = take(&path, &unknown, &tiny);
        assert_eq!(format!("{:?}", taken.found.expect_err("wrong")), format!("{whole:?}"));
        assert!(taken.blocks.is_empty(), "nothing is handed out before the first pass is over");
    }
}

#[test]
fn what_takes_all_rows_to_know_is_read_as_one_block() {
    let folder = Folder::new();
    let tiny = BlockOptions { bytes: 1, ..BlockOptions::default() };
    let table = folder.write("t.csv", "x,z\n1,2\n,3\n5,4\n");
    let mean = ReadOptions { missing: Missing::Mean, ..ReadOptions::default() };
    let taken = take(&table, &mean, &tiny);
    assert_eq!(taken.blocks.len(), 1, "the mean is that of all rows");
    assert_eq!(taken.blocks[0][1].3, [(0, 3.0), (1, 3.0)]);
    let zero = ReadOptions { missing: Missing::Zero, ..ReadOptions::default() };
    let taken = take(&table, &zero, &tiny);
    assert_eq!(taken.blocks.len(), 3);
    assert_eq!(taken.found.expect("reads").facts.notes, ["1 missing cell filled with zero"]);
    let groups = BlockOptions { whole_groups: true, one_group: true, ..tiny };
    let taken = take(&table, &zero, &groups);
    assert_eq!(taken.blocks.len(), 1);
    assert!(taken.blocks[0].iter().all(|row| row.1.as_deref() == Some("all")));
}

#[test]
fn side_files_reach_over_blocks_and_must_fit_at_the_end() {
    let folder = Folder::new();
    let file = folder.write("t.txt", "0 1:1\n0 1:2\n0 1:3\n0 1:4\n0 1:5\n");
    folder.write("t.txt.query", "3\n2\n");
    folder.write("t.txt.weight", "1\n2\n3\n4\n5\n");
    let tiny = BlockOptions { bytes: 1, whole_groups: true, ..BlockOptions::default() };
    let taken = take(&file, &options(1), &tiny);
    assert_eq!(taken.blocks.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
    let notes = taken.found.expect("reads").facts.notes;
    assert_eq!(notes, read(&file, &options(1)).expect("reads").facts.notes);
    for (kind, content) in [("query", "3\n1\n"), ("query", "3\n3\n"), ("weight", "1\n2\n"), ("query", "3\n-1\n")] {
        folder.write("t.txt.query", "3\n2\n");
        folder.write("t.txt.weight", "1\n2\n3\n4\n5\n");
        folder.write(&format!("t.txt.{kind}"), content);
        let whole = read(&file, &options(1)).expect_err("does not fit");
        let error = take(&file, &options(1), &tiny).found.expect_err("does not fit");
        assert_eq!(format!("{error:?}"), format!("{whole:?}"), "{kind}: {content}");
    }
}

#[test]
fn a_result_that_is_refused_and_a_raised_flag_end_the_reading() {
    let folder = Folder::new();
    let file = folder.write("t.txt", graded(&QUERIES));
    let tiny = BlockOptions { bytes: 1, ..BlockOptions::default() };
    let mut put = 0;
    let error = read_blocks(&file, &options(4), &tiny, &|_: &Block| Ok(()), &mut |_| {
        put += 1;
        Err(Error::new(Code::WriteFailed, "full"))
    });
    assert_eq!((error.expect_err("refused").code(), put), (Code::WriteFailed, 1));
    let cancelled = options(4);
    cancelled.cancel.raise();
    assert_eq!(take(&file, &cancelled, &tiny).found.expect_err("stopped").code(), Code::Interrupted);
}
