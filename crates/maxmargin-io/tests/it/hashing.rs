//! Features with names, whose hash chooses their columns.

use maxmargin::data::{Dataset, Matrix, Targets};
use maxmargin::error::{Code, Error};
use maxmargin::run::Cancel;
use maxmargin_io::svmlight::{read_stream, read_text};
use maxmargin_io::{Format, Hashing, Loaded, Missing, Pairing, Precision, ReadOptions, RowBlocks, csv, read, write};
use std::collections::BTreeMap;
use std::io::Write as _;

const BITS: u32 = 6;

fn options() -> ReadOptions {
    ReadOptions { hash: Some(Hashing::new(BITS).expect("valid")), ..ReadOptions::default() }
}

/// The rows of names and values, by the definition.
fn by_hand(rows: &[&[(&str, f64)]]) -> Vec<BTreeMap<usize, f64>> {
    let hashing = Hashing::new(BITS).expect("valid");
    let row = |names: &&[(&str, f64)]| {
        let mut sums = BTreeMap::new();
        names.iter().for_each(|(name, value)| {
            let spot = hashing.spot(name.as_bytes());
            *sums.entry(spot.column as usize).or_insert(0.0) += if spot.negative { -value } else { *value };
        });
        sums.retain(|_, value| *value != 0.0);
        sums
    };
    rows.iter().map(row).collect()
}

fn found(matrix: &Matrix) -> Vec<BTreeMap<usize, f64>> {
    matrix.check(0..matrix.rows()).expect("valid");
    assert_eq!(matrix.cols(), 1 << BITS);
    assert!(!matrix.is_dense());
    let row = |row| {
        let (mut sums, mut last) = (BTreeMap::new(), None);
        matrix.each_in_row(row, |column, value| {
            assert!(last.is_none_or(|last| last < column), "columns rise");
            last = Some(column);
            if value != 0.0 {
                sums.insert(column, value);
            }
        });
        sums
    };
    (0..matrix.rows()).map(row).collect()
}

fn text(text: &str) -> Result<Loaded, Error> {
    read_text("t.txt", text.as_bytes(), &options())
}

fn table(text: &str, options: &ReadOptions) -> Result<Loaded, Error> {
    csv::read("t.csv", text.as_bytes(), b',', options)
}

const WORDS: &str = "1 good film good:2 # first\n-1 qid:7 a:b:0.5 http://x:-1 \n0 cost:2 3:0.25 17 #\n1\n";

#[test]
fn words_of_text_add_their_values_to_the_columns_of_their_hashes() {
    let words = WORDS.replace("qid:7 ", "");
    let wanted = by_hand(&[
        &[("good", 1.0), ("film", 1.0), ("good", 2.0)],
        &[("a:b", 0.5), ("http://x", -1.0)],
        &[("3", 0.25), ("17", 1.0)],
        &[],
    ]);
    let loaded = text(&words).expect("reads");
    assert_eq!(found(loaded.data.matrix()), wanted);
    assert_eq!(loaded.data.targets().real().expect("numbers"), &[1.0, -1.0, 0.0, 1.0]);
    assert_eq!(loaded.data.weights().expect("weights"), &[1.0, 1.0, 2.0, 1.0]);
    assert_eq!(loaded.facts.index_base, None);
    assert!(loaded.facts.notes.contains(&"features hashed into 64 columns".to_string()), "{:?}", loaded.facts.notes);
    let streamed = read_stream("t.txt", words.as_bytes(), &options()).expect("reads");
    assert_eq!(found(streamed.data.matrix()), wanted);
    let wide = ReadOptions { precision: Precision::F64, ..options() };
    assert_eq!(found(read_text("t.txt", words.as_bytes(), &wide).expect("reads").data.matrix()), wanted);
    // The last line may lack its line end, and long text is cut into parts.
    let long = words.repeat(40_000);
    let rows = found(text(long.trim_end()).expect("reads").data.matrix());
    assert!(rows.chunks(4).all(|rows| rows == wanted));
}

#[test]
fn blocks_of_a_stream_are_the_rows_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.txt");
    std::fs::write(&file, WORDS.replace("qid:7 ", "").repeat(500)).expect("written");
    let name = file.to_str().expect("a name");
    let whole = read(name, &options()).expect("reads");
    for steady in [false, true] {
        let options = ReadOptions { steady, ..options() };
        let blocks: Vec<Dataset> =
            RowBlocks::open(name, &options, 777).expect("opens").collect::<Result<_, _>>().expect("reads");
        assert!(blocks.len() > 10);
        let rows: Vec<_> = blocks.iter().flat_map(|block| found(block.matrix())).collect();
        assert_eq!(rows, found(whole.data.matrix()));
    }
}

#[test]
fn label_sets_and_empty_rows_are_read_beside_words() {
    let loaded = text("sport,news ball goal\n \n news press\n  goal\n").expect("reads");
    assert_eq!(found(loaded.data.matrix()).len(), 3);
    let Targets::Sets { .. } = loaded.data.targets() else { panic!("label sets") };
    assert_eq!(found(loaded.data.matrix())[2], by_hand(&[&[("goal", 1.0)]])[0]);
    // With a blank in front a row has no label, whatever its first word is.
    assert_eq!(found(loaded.data.matrix())[1], by_hand(&[&[("news", 1.0), ("press", 1.0)]])[0]);
}

#[test]
fn words_that_cannot_be_read_are_errors_with_their_place() {
    for (line, code, column) in [
        ("1 word:x", Code::BadValue, 8),
        ("1 word:", Code::BadValue, 8),
        ("1 word:inf", Code::NotFinite, 8),
        ("1 a :2", Code::BadIndex, 5),
        ("1 a qid:3", Code::BadAnnotation, 5),
        ("1 a cost:3", Code::BadAnnotation, 5),
        ("1 a\0b", Code::NotText, 3),
        ("1 a:3e38 a:3e38", Code::NotFinite, 3),
        ("good word:2", Code::BadTarget, 1),
    ] {
        let error = text(&format!("1 fine\n{line}\n")).expect_err(line);
        let place = error.place().expect("a place");
        assert_eq!((error.code(), place.line, place.column), (code, Some(2), Some(column)), "{line}: {error}");
    }
    let error = read_text("t.txt", b"1 word:2\n", &ReadOptions::default()).expect_err("numbers are needed");
    assert!(error.remedy().is_some_and(|help| help.contains("hash")), "{error:?}");
}

#[test]
fn cells_are_hashed_with_the_names_of_their_columns() {
    let rows = "target,colour,size,note\n1,red,2.5,\"a, b\"\n-1, blue ,0,3\n1,red,-1,true\n";
    let wanted = by_hand(&[
        &[("colour=red", 1.0), ("size", 2.5), ("note=a, b", 1.0)],
        &[("colour=blue", 1.0), ("note", 3.0)],
        &[("colour=red", 1.0), ("size", -1.0), ("note", 1.0)],
    ]);
    let loaded = table(rows, &options()).expect("reads");
    assert_eq!(found(loaded.data.matrix()), wanted);
    assert!(loaded.data.feature_names().is_none());
    // The order of columns does not matter, nor do columns that never have a value.
    let turned = "note,empty,size,colour,target\n\"a, b\",0,2.5,red,1\n3,0,0,blue,-1\ntrue,0,-1,red,1\n";
    assert_eq!(found(table(turned, &options()).expect("reads").data.matrix()), wanted);
}

#[test]
fn empty_cells_are_errors_or_left_out() {
    let rows = "target,colour,size\n1,red,2\n-1,,3\n";
    let error = table(rows, &options()).expect_err("an empty cell");
    assert_eq!((error.code(), error.place().and_then(|place| place.line)), (Code::MissingValue, Some(3)));
    let lenient = ReadOptions { missing: Missing::Zero, ..options() };
    let loaded = table(rows, &lenient).expect("reads");
    assert_eq!(found(loaded.data.matrix())[1], by_hand(&[&[("size", 3.0)]])[0]);
    assert_eq!(loaded.facts.fill, None);
    assert!(loaded.facts.notes.contains(&"1 missing cell filled with nothing".to_string()), "{:?}", loaded.facts.notes);
    let mean = ReadOptions { missing: Missing::Mean, ..options() };
    assert_eq!(table(rows, &mean).expect_err("no mean").code(), Code::BadSetting);
    let infinite = table("target,x\n1,inf\n", &options()).expect_err("infinite");
    assert_eq!(infinite.code(), Code::NotFinite);
}

#[test]
fn both_items_of_a_line_share_the_names_of_their_features() {
    let options = ReadOptions { pairing: Pairing::Sides, ..options() };
    let rows = "better.colour,worse.colour,better.size,worse.size\nred,blue,1,2\n";
    let loaded = table(rows, &options).expect("reads");
    assert_eq!(loaded.data.pairs().expect("pairs").len(), 1);
    let wanted = by_hand(&[&[("colour=red", 1.0), ("size", 1.0)], &[("colour=blue", 1.0), ("size", 2.0)]]);
    assert_eq!(found(loaded.data.matrix()), wanted);
    let ids = table("left,right,outcome\na,b,tie\n", &ReadOptions { pairing: Pairing::Comparisons, ..options });
    assert_eq!(ids.expect_err("items are features").code(), Code::BadSetting);
}

#[test]
fn stored_data_are_taken_if_they_were_hashed_in_the_same_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a name").to_string();
    let loaded = text("1 good film\n-1 bad\n").expect("reads");
    write(&loaded, &path("t.mmd"), Format::Mmd, &Cancel::new()).expect("written");
    assert_eq!(found(read(&path("t.mmd"), &options()).expect("reads").data.matrix()), found(loaded.data.matrix()));
    let other = ReadOptions { hash: Some(Hashing::new(5).expect("valid")), ..ReadOptions::default() };
    let error = read(&path("t.mmd"), &other).expect_err("other columns");
    assert!(error.message().contains("32 columns") && error.message().contains("64 features"), "{error}");
    assert_eq!(RowBlocks::open(&path("t.mmd"), &other, 1 << 16).err().expect("other columns").code(), Code::BadSetting);
    std::fs::File::create(path("t.conll")).and_then(|mut file| file.write_all(b"a N\nb V\n")).expect("written");
    assert_eq!(read(&path("t.conll"), &options()).expect_err("text in columns").code(), Code::BadSetting);
}
