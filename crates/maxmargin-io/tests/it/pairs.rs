//! Pairs of items by id, and tables that hold a pair in each row.

use crate::tables::cells;
use maxmargin::data::{Dataset, Outcome};
use maxmargin::error::{Code, Error, Result};
use maxmargin::run::Cancel;
use maxmargin_io::{
    Block, BlockOptions, Columns, Format, Items, Loaded, Missing, ModelFeatures, PairBlocks, Pairing, ReadOptions,
    Step, cache, csv, read, read_blocks, read_pairs, svmlight, write as write_data,
};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

fn item_options() -> ReadOptions {
    ReadOptions { pairing: Pairing::ItemRows, ..ReadOptions::default() }
}

fn items() -> Arc<Items> {
    let text = "id,size,weight\na,1,10\nb,2,20\nc,3,30\n";
    Arc::new(Items::new(&csv::read("items.csv", text.as_bytes(), b',', &item_options()).unwrap()).unwrap())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    path.to_str().unwrap().to_string()
}

fn pairs(text: &str) -> Result<Loaded> {
    let folder = tempfile::tempdir().unwrap();
    read_pairs(&write(folder.path(), "pairs.csv", text.as_bytes()), items(), &ReadOptions::default())
}

fn ordered(data: &Dataset) -> Vec<(usize, usize)> {
    let pairs = data.pairs().expect("pairs");
    (0..pairs.len()).map(|pair| pairs.ordered(pair)).collect()
}

fn place(error: &Error) -> (Option<u64>, Option<u64>, String) {
    let place = error.place().expect("a place");
    let excerpt = place.excerpt.as_ref().expect("an excerpt");
    let token = excerpt.text.chars().skip(excerpt.start).take(excerpt.length).collect();
    (place.line, place.column, token)
}

#[test]
fn pairs_name_items_by_id_in_any_column_order() {
    let loaded = pairs("judge,worse,Weight,better,when\nx,b,2,a,1\ny,c, 0.5,b,2\nx, a ,1,\"c\",3\n").unwrap();
    assert_eq!(ordered(&loaded.data), [(0, 1), (1, 2), (2, 0)]);
    assert_eq!(loaded.data.pairs().unwrap().weights(), Some(&[2.0, 0.5, 1.0][..]));
    assert_eq!(loaded.data.pairs().unwrap().groups().map(|_| ()), None);
    assert!(loaded.facts.notes.iter().any(|note| note.contains("`judge`, `when`")), "{:?}", loaded.facts.notes);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "p.tsv", b"better\tworse\tjudge\na\tb\tx\nb\tc\ty\na\tc\tx\n");
    let columns = Columns { group: Some("judge".into()), ..Columns::default() };
    let loaded = read_pairs(&file, items(), &ReadOptions { columns, ..ReadOptions::default() }).unwrap();
    let (codes, names) = loaded.data.pairs().unwrap().groups().unwrap();
    assert_eq!((codes, names.len()), (&[0, 1, 0][..], 2));
}

fn outcomes(data: &Dataset) -> Vec<(u32, u32, Outcome)> {
    let pairs = data.pairs().expect("pairs");
    (0..pairs.len()).map(|pair| (pairs.left()[pair], pairs.right()[pair], pairs.outcome(pair))).collect()
}

#[test]
fn pairs_may_say_left_right_and_tie_in_words_or_signs() {
    let text = "Outcome,right,when,LEFT,weight\n TIE,b,1,a,2\n-1,c,2,b,1\n+1,a,3,c,1\nRight,a,4,b,1\n0.0,a,5,c,0\nleft,a,6,b,1\n";
    let loaded = pairs(text).unwrap();
    use Outcome::{Left, Right, Tie};
    assert_eq!(
        outcomes(&loaded.data),
        [(0, 1, Tie), (1, 2, Left), (2, 0, Right), (1, 0, Right), (2, 0, Tie), (1, 0, Left)]
    );
    let notes = &loaded.facts.notes;
    assert!(notes.iter().any(|note| note == "outcome column `Outcome`"), "{notes:?}");
    assert!(notes.iter().any(|note| note == "unused columns ignored: `when`"), "{notes:?}");
    let found = loaded.data.pairs().unwrap().consistency();
    // a and b: tied, b over a, a over b. The tie of c and a has weight 0.
    assert_eq!((found.ties, found.disputes, found.disputed_pairs, found.contradictions), (1, 1, 3, 1));
}

#[test]
fn pairs_that_are_all_left_are_pairs_of_better_and_worse() {
    let said = pairs("left,right,outcome\na,b,left\nc,b,-1\n").unwrap();
    let known = pairs("better,worse\na,b\nc,b\n").unwrap();
    assert_eq!(said.data.pairs().unwrap().outcomes(), None);
    assert_eq!(said.data.hash().unwrap(), known.data.hash().unwrap());
    // Columns better and worse take precedence over all others.
    let both = pairs("left,right,outcome,better,worse\na,b,tie,c,a\n").unwrap();
    assert_eq!(ordered(&both.data), [(2, 0)]);
    assert_eq!(both.data.pairs().unwrap().outcomes(), None);
}

#[test]
fn outcomes_may_be_missing_where_pairs_are_only_scored() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "p.csv", b"left,right\na,b\nc,b\n");
    assert_eq!(read_pairs(&file, items(), &ReadOptions::default()).expect_err("needed").code(), Code::NoSuchColumn);
    let optional = ReadOptions { outcomes_optional: true, ..ReadOptions::default() };
    assert_eq!(ordered(&read_pairs(&file, items(), &optional).unwrap().data), [(0, 1), (2, 1)]);
    let text = "left.x,right.x\n1,2\n";
    let scored = ReadOptions { pairing: Pairing::Comparisons, ..optional };
    assert_eq!(cells(&wide(text, &scored).unwrap().data), [[1.0], [2.0]]);
    let error = wide(text, &ReadOptions { outcomes_optional: false, ..scored }).expect_err("needed");
    assert_eq!(error.code(), Code::NoSuchColumn);
    assert!(error.message().contains("`outcome`"), "{error}");
}

#[test]
fn a_table_with_a_left_and_a_right_side_holds_two_rows_a_line() {
    let text = "right.b,outcome,left.a,note,right.a,left.b,Weight\n1,tie,2,hi,4,5,3\n6,1,7,yo,9,0,8\n";
    for pairing in [Pairing::Sides, Pairing::Comparisons] {
        let loaded = wide(text, &ReadOptions { pairing, ..ReadOptions::default() }).unwrap();
        assert_eq!(cells(&loaded.data), [[2.0, 5.0], [4.0, 1.0], [7.0, 0.0], [9.0, 6.0]]);
        assert_eq!(outcomes(&loaded.data), [(0, 1, Outcome::Tie), (2, 3, Outcome::Right)]);
        assert_eq!(loaded.data.pairs().unwrap().weights(), Some(&[3.0, 8.0][..]));
        assert!(loaded.facts.notes.iter().any(|note| note.contains("2 features of a left and a right item")));
    }
    // Without an outcome, columns called left.eye and right.eye are features of single rows.
    let eyes = wide("left.eye,right.eye,target\n1,2,0\n3,4,1\n", &sides()).unwrap();
    assert_eq!((eyes.data.cols(), eyes.data.pairs().is_none()), (2, true));
    let error = wide("left.a,right.b,outcome\n1,2,tie\n", &sides()).expect_err("lone");
    assert!(error.remedy().unwrap().contains("`left.NAME`"), "{error}");
    let error = wide("left.a,right.a,outcome,Outcome\n1,2,tie,tie\n", &sides()).expect_err("twice");
    assert!(error.message().contains("could be the outcome"), "{error}");
}

fn comparisons(text: &str, model: Option<&[&str]>) -> Result<Loaded> {
    let features = model.map(|names| ModelFeatures {
        count: names.len(),
        names: Some(names.iter().map(ToString::to_string).collect()),
        index_base: None,
    });
    wide(text, &ReadOptions { pairing: Pairing::Comparisons, features, ..ReadOptions::default() })
}

#[test]
fn items_without_features_are_features_themselves() {
    let text = "left,right,outcome,group\nbob,ann,tie,x\n ann ,zoë,right,y\nzoë,bob,left,x\n";
    let loaded = comparisons(text, None).unwrap();
    let names = |names: &maxmargin::data::Names| names.iter().map(|name| name.into_owned()).collect::<Vec<_>>();
    assert_eq!(names(loaded.data.row_ids().unwrap()), ["bob", "ann", "zoë"]);
    assert_eq!(names(loaded.data.feature_names().unwrap()), ["bob", "ann", "zoë"]);
    assert_eq!(cells(&loaded.data), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    assert_eq!(loaded.data.matrix().layout(), "sparse, u16 index, f32");
    assert_eq!(outcomes(&loaded.data), [(0, 1, Outcome::Tie), (1, 2, Outcome::Right), (2, 0, Outcome::Left)]);
    assert_eq!(loaded.data.pairs().unwrap().groups().unwrap().0, [0, 1, 0]);
    // Columns better and worse are accepted too.
    assert_eq!(ordered(&comparisons("better,worse\nx,y\n", None).unwrap().data), [(0, 1)]);
}

#[test]
fn a_model_knows_items_by_the_names_of_its_features() {
    let text = "left,right,outcome\nnew,c,tie\na,new,left\nc,other,1\n";
    let loaded = comparisons(text, Some(&["a", "b", "c"])).unwrap();
    assert_eq!(cells(&loaded.data), [[0.0; 3], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0; 3]]);
    assert_eq!(loaded.data.row_ids().unwrap().iter().collect::<Vec<_>>(), ["new", "c", "a", "other"]);
    assert_eq!(loaded.data.feature_names().unwrap().iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    let notes = &loaded.facts.notes;
    assert!(notes.iter().any(|note| note == "2 items the model has not seen: they score 0"), "{notes:?}");
    let nameless = ModelFeatures { count: 3, names: None, index_base: Some(1) };
    let options = ReadOptions { pairing: Pairing::Comparisons, features: Some(nameless), ..ReadOptions::default() };
    assert_eq!(wide(text, &options).expect_err("no names").code(), Code::FeatureNames);
}

#[test]
fn many_items_without_features_get_wide_indices() {
    let mut text = String::from("left,right,outcome\n");
    (0..70_000).for_each(|item| text.push_str(&format!("i{item},i{},tie\n", item + 1)));
    let loaded = comparisons(&text, None).unwrap();
    assert_eq!(loaded.data.matrix().layout(), "sparse, u32 index, f32");
    assert_eq!((loaded.data.rows(), loaded.data.cols()), (70_001, 70_001));
    let mut entries = Vec::new();
    loaded.data.matrix().each_in_row(69_999, |column, value| entries.push((column, value)));
    assert_eq!(entries, [(69_999, 1.0)]);
}

#[test]
fn wrong_comparisons_are_refused_at_their_place() {
    for (text, code, line, column, token) in [
        ("left,right,outcome\na,b,tie\na,c,draw\n", Code::BadOutcome, 3, 5, "draw"),
        ("left,right,outcome\na,b,\n", Code::BadOutcome, 2, 5, ""),
        ("left,right,outcome\na,b,2\n", Code::BadOutcome, 2, 5, "2"),
        ("left,right,outcome\na,a,tie\n", Code::PairWithItself, 2, 3, "a"),
        ("left,right,outcome\n ,a,tie\n", Code::MissingValue, 2, 1, ""),
        ("outcome,left.x,right.x\nlost,1,2\n", Code::BadOutcome, 2, 1, "lost"),
    ] {
        let error = comparisons(text, None).expect_err(text);
        assert_eq!(error.code(), code, "{text} {error}");
        let (found_line, found_column, found) = place(&error);
        assert_eq!((found_line, found_column), (Some(line), Some(column)), "{text}");
        assert_eq!(found.trim(), token, "{text}");
        assert!(error.remedy().is_some(), "{text}");
    }
    assert_eq!(pairs("left,right,outcome\na,b,0.5\n").expect_err("half").code(), Code::BadOutcome);
    assert_eq!(pairs("left,right,outcome\na,zz,tie\n").expect_err("unknown").code(), Code::UnknownItem);
    assert_eq!(comparisons("left,right,outcome\n", None).expect_err("empty").code(), Code::NoRows);
    let error = comparisons("left,outcome\na,tie\n", None).expect_err("one side");
    assert!(error.message().contains("needs a column `right`"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "p.csv", b"left,right,outcome\na,\xff,tie\n");
    let options = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
    assert_eq!(read(&file, &options).expect_err("no text").code(), Code::NotText);
    // Rankers need the items.
    assert_eq!(wide("left,right,outcome\na,b,tie\n", &sides()).expect_err("no items").code(), Code::NoItems);
}

/// Comparisons in typed columns: outcomes as integers, floats or words.
#[cfg(feature = "tables")]
#[test]
fn outcomes_of_any_type_are_understood() {
    use Outcome::{Left, Right, Tie};
    use arrow_array::{ArrayRef, Float32Array, Int8Array, Int64Array, RecordBatch, StringArray, UInt8Array};
    let folder = tempfile::tempdir().unwrap();
    let kinds: Vec<(ArrayRef, Vec<Outcome>)> = vec![
        (Arc::new(Int8Array::from(vec![-1, 0, 1])), vec![Left, Tie, Right]),
        (Arc::new(Float32Array::from(vec![1.0, -0.0, -1.0])), vec![Right, Tie, Left]),
        (Arc::new(UInt8Array::from(vec![1, 0, 0])), vec![Right, Tie, Tie]),
        (Arc::new(StringArray::from(vec!["Tie", "1", "left "])), vec![Tie, Right, Left]),
    ];
    for (at, (outcome, expected)) in kinds.into_iter().enumerate() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("left", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("right", Arc::new(StringArray::from(vec!["2", "3", "1"]))),
            ("outcome", outcome),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = write(folder.path(), &format!("{at}.parquet"), &bytes);
        let options = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
        let loaded = read(&file, &options).unwrap();
        let found: Vec<Outcome> = outcomes(&loaded.data).into_iter().map(|pair| pair.2).collect();
        assert_eq!(found, expected, "{at}");
        assert_eq!(loaded.data.row_ids().unwrap().iter().collect::<Vec<_>>(), ["1", "2", "3"]);
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("left.x", Arc::new(Int64Array::from(vec![1, 2]))),
        ("right.x", Arc::new(Float32Array::from(vec![3.0, 4.0]))),
        ("outcome", Arc::new(Float32Array::from(vec![1.0, 0.25]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let error = read(&write(folder.path(), "w.arrow", &bytes), &sides()).expect_err("a quarter");
    assert_eq!(error.code(), Code::BadOutcome);
    assert!(error.message().contains("in row 2: column `outcome`, `0.25`"), "{error}");
}

#[test]
fn what_is_called_weight_is_a_feature_of_an_item() {
    let loaded = pairs("better,worse\na,b\n").unwrap();
    assert_eq!(loaded.data.weights(), None);
    assert_eq!(loaded.data.cols(), 2);
    assert_eq!(cells(&loaded.data)[2], [3.0, 30.0]);
}

#[test]
fn the_hash_depends_on_pairs_and_not_on_where_they_stood() {
    let loaded = pairs("better,worse\na,b\nb,c\n").unwrap();
    let again = pairs("worse,better\nb,a\nc,b\n").unwrap();
    let other = pairs("better,worse\na,b\nc,b\n").unwrap();
    assert_eq!(loaded.data.hash().unwrap(), again.data.hash().unwrap());
    assert_ne!(loaded.data.hash().unwrap(), other.data.hash().unwrap());
}

#[test]
fn wrong_pairs_are_refused_at_their_place() {
    for (text, code, line, column, token) in [
        ("better,worse\na,b\nb,zz\n", Code::UnknownItem, 3, 3, "zz"),
        ("better,worse\n\"q\",b\n", Code::UnknownItem, 2, 1, "\"q\""),
        ("better,worse\na,b\nc,c\n", Code::PairWithItself, 3, 3, "c"),
        ("better,worse\na,\n", Code::MissingValue, 2, 3, ""),
        ("better,worse,weight\na,b,-1\n", Code::BadWeight, 2, 5, "-1"),
        ("better,worse,weight\na,b,heavy\n", Code::BadWeight, 2, 5, "heavy"),
        ("better,worse,group\na,b,\n", Code::MixedGroups, 2, 5, ""),
    ] {
        let error = pairs(text).expect_err(text);
        assert_eq!(error.code(), code, "{text} {error}");
        let (found_line, found_column, found) = place(&error);
        assert_eq!((found_line, found_column), (Some(line), Some(column)), "{text}");
        assert_eq!(found.trim(), token, "{text}");
        assert!(error.remedy().is_some(), "{text}");
    }
    assert_eq!(pairs("better,worse\n").expect_err("empty").code(), Code::NoRows);
    let error = pairs("winner,loser\na,b\n").expect_err("other names");
    assert_eq!(error.code(), Code::NoSuchColumn);
    assert!(error.remedy().unwrap().contains("`winner`, `loser`"), "{error}");
}

#[test]
fn an_unknown_id_is_answered_with_the_nearest_one() {
    let text = "id,x\napple,1\npear,2\n";
    let items = Items::new(&csv::read("fruit.csv", text.as_bytes(), b',', &item_options()).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "p.csv", b"better,worse\npear,aple\n");
    let error = read_pairs(&file, Arc::new(items), &ReadOptions::default()).expect_err("unknown");
    assert!(error.remedy().unwrap().starts_with("did you mean `apple`?"), "{error}");
}

#[test]
fn items_must_be_told_apart() {
    let twice = csv::read("items.csv", "id,x\na,1\nb,2\na,3\n".as_bytes(), b',', &item_options()).unwrap();
    let error = Items::new(&twice).expect_err("twice");
    assert_eq!(error.code(), Code::DuplicateId);
    assert!(error.message().contains("rows 1 and 3 both have the id `a`"), "{error}");
    let nameless = csv::read("items.csv", "x,z\n1,2\n".as_bytes(), b',', &item_options()).unwrap();
    assert_eq!(Items::new(&nameless).expect_err("no ids").code(), Code::NoSuchColumn);
}

#[test]
fn svmlight_items_go_by_their_comment_or_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let by_number = write(folder.path(), "n.csv", b"better,worse\n3,1\n2,3\n");
    let by_id = write(folder.path(), "i.csv", b"better,worse\nz,x\ny,z\n");
    let plain = svmlight::read_text("i.txt", b"0 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n", &item_options()).unwrap();
    let named = svmlight::read_text("i.txt", b"0 1:1 # x\n0 1:2 # y\n0 1:3 # z\n", &item_options()).unwrap();
    // The rows of a query are moved together: row 3 of the file is stored second.
    let numbered = Arc::new(Items::new(&plain).unwrap());
    let loaded = read_pairs(&by_number, Arc::clone(&numbered), &ReadOptions::default()).unwrap();
    assert_eq!(ordered(&loaded.data), [(1, 0), (2, 1)]);
    assert!(loaded.facts.notes[0].contains("number of their row"), "{:?}", loaded.facts.notes);
    let loaded = read_pairs(&by_id, Arc::new(Items::new(&named).unwrap()), &ReadOptions::default()).unwrap();
    assert_eq!(ordered(&loaded.data), [(2, 0), (1, 2)]);
    for wrong in ["0", "4", "-1", "1.0", "x"] {
        let file = write(folder.path(), "w.csv", format!("better,worse\n1,{wrong}\n").as_bytes());
        let error = read_pairs(&file, Arc::clone(&numbered), &ReadOptions::default()).expect_err(wrong);
        assert_eq!(error.code(), Code::UnknownItem, "{wrong}");
    }
}

#[test]
fn every_kind_of_table_gives_the_same_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let text = "better,worse,weight,group\n1,2,0.5,x\n3,1,2,y\n2,3,1,x\n";
    let item_text = "id,x\n1,5\n2,6\n3,7\n";
    let items = Items::new(&csv::read("items.csv", item_text.as_bytes(), b',', &item_options()).unwrap()).unwrap();
    let items = Arc::new(items);
    let expected = {
        let file = write(folder.path(), "p.csv", text.as_bytes());
        read_pairs(&file, Arc::clone(&items), &ReadOptions::default()).unwrap().data.hash().unwrap()
    };
    let compressed = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
    let mut files = vec![
        write(folder.path(), "p.tsv", text.replace(',', "\t").as_bytes()),
        write(folder.path(), "p.csv.zst", &compressed),
    ];
    #[cfg(feature = "tables")]
    files.extend(typed(folder.path()));
    for file in files {
        let loaded = read_pairs(&file, Arc::clone(&items), &ReadOptions::default()).unwrap();
        assert_eq!(loaded.data.hash().unwrap(), expected, "{file}");
    }
    let svm = write(folder.path(), "p.svm", b"1 1:2\n");
    assert_eq!(read_pairs(&svm, items, &ReadOptions::default()).expect_err("no table").code(), Code::UnknownFormat);
}

/// The same pairs with ids as integers and weights as floats.
#[cfg(feature = "tables")]
fn typed(folder: &Path) -> Vec<String> {
    use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("better", Arc::new(Int64Array::from(vec![1, 3, 2]))),
        ("worse", Arc::new(StringArray::from(vec!["2", "1", "3"]))),
        ("weight", Arc::new(Float32Array::from(vec![0.5, 2.0, 1.0]))),
        ("group", Arc::new(StringArray::from(vec!["x", "y", "x"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let (mut parquet, mut arrow) = (Vec::new(), Vec::new());
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut parquet, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut arrow, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    vec![write(folder, "p.parquet", &parquet), write(folder, "p.arrow", &arrow)]
}

fn sides() -> ReadOptions {
    ReadOptions { pairing: Pairing::Sides, ..ReadOptions::default() }
}

fn wide(text: &str, options: &ReadOptions) -> Result<Loaded> {
    let folder = tempfile::tempdir().unwrap();
    read(&write(folder.path(), "wide.csv", text.as_bytes()), options)
}

#[test]
fn a_table_with_both_sides_holds_two_rows_a_line() {
    let text = "worse.b,better.a,note,weight,worse.a,better.b,judge\n1,2,hi,3,4,5,x\n6,7,yo,8,9,0,y\n";
    let loaded = wide(text, &sides()).unwrap();
    assert_eq!(cells(&loaded.data), [[2.0, 5.0], [4.0, 1.0], [7.0, 0.0], [9.0, 6.0]]);
    assert_eq!(ordered(&loaded.data), [(0, 1), (2, 3)]);
    assert_eq!(loaded.data.pairs().unwrap().weights(), Some(&[3.0, 8.0][..]));
    assert_eq!(loaded.data.feature_names().unwrap().iter().collect::<Vec<_>>(), ["a", "b"]);
    assert!(loaded.facts.notes.iter().any(|note| note.contains("2 features of a better and a worse item")));
    assert!(loaded.facts.notes.iter().any(|note| note.contains("`note`, `judge`")), "{:?}", loaded.facts.notes);
    // Sides are not detected if pairs are not wanted.
    assert!(wide("worse.a,better.a\n1,2\n", &ReadOptions::default()).unwrap().data.pairs().is_none());
}

#[test]
fn sparse_sides_are_cut_like_dense_ones() {
    let features = 50;
    let names = |side: &str| (0..features).map(|f| format!("{side}.f{f}")).collect::<Vec<_>>().join(",");
    let mut text = format!("{},{}\n", names("better"), names("worse"));
    let cell =
        |row: usize, column: usize| if (row * 31 + column * 7).is_multiple_of(13) { row + column + 1 } else { 0 };
    for row in 0..40 {
        let line: Vec<String> = (0..2 * features).map(|column| cell(row, column).to_string()).collect();
        text.push_str(&line.join(","));
        text.push('\n');
    }
    let loaded = wide(&text, &sides()).unwrap();
    assert!(!loaded.data.matrix().is_dense());
    let found = cells(&loaded.data);
    assert_eq!(found.len(), 80);
    for (at, row) in found.iter().enumerate() {
        for (column, &value) in row.iter().enumerate() {
            assert_eq!(value, cell(at / 2, column + features * (at % 2)) as f64);
        }
    }
}

#[test]
fn sides_must_match_each_other_and_the_model() {
    let error = wide("better.a,worse.b\n1,2\n", &sides()).expect_err("lone");
    assert_eq!(error.code(), Code::BadTable);
    assert!(error.message().contains("`better.a`"), "{error}");
    let mean = ReadOptions { missing: Missing::Mean, ..sides() };
    assert_eq!(wide("better.a,worse.a\n1,\n", &mean).expect_err("means").code(), Code::BadSetting);
    let fill = ReadOptions { missing: Missing::Fill(vec![9.0]), ..sides() };
    assert_eq!(cells(&wide("better.a,worse.a\n1,\n", &fill).unwrap().data), [[1.0], [9.0]]);
    let model = |names: &[&str]| ReadOptions {
        features: Some(ModelFeatures {
            count: names.len(),
            names: Some(names.iter().map(ToString::to_string).collect()),
            index_base: None,
        }),
        ..sides()
    };
    let text = "better.a,worse.a,better.b,worse.b\n1,2,3,4\n";
    assert_eq!(cells(&wide(text, &model(&["b", "a"])).unwrap().data), [[3.0, 1.0], [4.0, 2.0]]);
    assert_eq!(cells(&wide(text, &model(&["b"])).unwrap().data), [[3.0], [4.0]]);
    assert_eq!(wide(text, &model(&["z"])).expect_err("missing").code(), Code::FeatureNames);
    // A feature called weight has a side. A weight without a side is that of the pair.
    let loaded = wide("better.weight,worse.weight,weight\n1,2,3\n", &model(&["weight"])).unwrap();
    assert_eq!(loaded.data.pairs().unwrap().weights(), Some(&[3.0][..]));
}

/// Pairs with ties, weights and groups over a few hundred items, by id.
fn many_pairs(pairs: usize) -> String {
    let mut text = String::from("left,right,outcome,weight,group\n");
    for pair in 0..pairs {
        let (left, right) = (pair * 7919 % 311, (pair * 104_729 + 1) % 311);
        let right = if left == right { (right + 1) % 311 } else { right };
        text.push_str(&format!("i{left},i{right},{},{},g{}\n", pair as i64 % 3 - 1, 1 + pair % 4, pair / 10));
    }
    text
}

/// The content of each pair: ids, outcome, weight, group and the entries of its rows.
type Told = (String, String, Outcome, f64, Option<String>, [Vec<(usize, f64)>; 2]);

fn told(data: &Dataset) -> Vec<Told> {
    let pairs = data.pairs().expect("pairs");
    let entries = |row: u32| {
        let mut entries = Vec::new();
        data.matrix().each_in_row(row as usize, |column, value| entries.push((column, value)));
        entries
    };
    (0..pairs.len())
        .map(|pair| {
            let (left, right) = (pairs.left()[pair], pairs.right()[pair]);
            let name = |row: u32| data.row_ids().map_or(String::new(), |ids| ids.get(row as usize).into_owned());
            let group = pairs.groups().map(|(codes, names)| names.get(codes[pair] as usize).into_owned());
            (name(left), name(right), pairs.outcome(pair), pairs.weight(pair), group, [entries(left), entries(right)])
        })
        .collect()
}

fn stored_items() -> Arc<Items> {
    let mut text = String::from("id,x,y\n");
    (0..311).for_each(|item| text.push_str(&format!("i{item},{},{}\n", item * item % 97, 1.0 / (1.0 + item as f64))));
    Arc::new(Items::new(&csv::read("items.csv", text.as_bytes(), b',', &item_options()).unwrap()).unwrap())
}

#[test]
fn blocks_of_pairs_are_the_whole_piece_by_piece() {
    let folder = tempfile::tempdir().unwrap();
    let text = many_pairs(3000);
    let plain = write(folder.path(), "pairs.csv", text.as_bytes());
    let packed = write(folder.path(), "pairs.csv.zst", &zstd::stream::encode_all(text.as_bytes(), 3).unwrap());
    let over_items = ReadOptions { pairing: Pairing::Of(stored_items()), ..ReadOptions::default() };
    let alone = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
    let wide_file = folder.path().join("wide.tsv").to_str().unwrap().to_string();
    write_data(&read(&plain, &over_items).unwrap(), &wide_file, Format::Tsv, &Cancel::default()).unwrap();
    let mut cases = vec![(&plain, &over_items), (&packed, &over_items), (&plain, &alone), (&packed, &alone)];
    cases.push((&wide_file, &alone));
    for (file, options) in cases {
        let whole = read(file, options).unwrap();
        let mut blocks = PairBlocks::open(file, options, 4096).unwrap();
        let (mut found, mut count, mut columns) = (Vec::new(), 0, 0);
        for block in &mut blocks {
            let block = block.unwrap();
            assert!(block.cols() >= columns, "columns are never taken back");
            columns = block.cols();
            count += 1;
            found.extend(told(&block));
        }
        assert!(count > 10, "{file}: {count} blocks");
        assert_eq!(columns, whole.data.cols());
        assert_eq!(found, told(&whole.data), "{file}");
        assert_eq!(blocks.pairs(), 3000);
        assert_eq!(blocks.facts().notes, whole.facts.notes, "{file}");
        assert_eq!(blocks.items().as_ref(), whole.data.feature_names().filter(|_| whole.data.cols() == 311));
        // The same with the function that works on several blocks at a time.
        let mut lines = Vec::new();
        let work = |block: &Block| Ok((block.first_row, told(&block.data)));
        let options_of_blocks = BlockOptions { bytes: 4096, ..BlockOptions::default() };
        let totals = read_blocks(file, options, &options_of_blocks, &work, &mut |step| {
            let Step::Block((first, told)) = step else { panic!("once") };
            assert_eq!(first, lines.len() as u64);
            lines.extend(told);
            Ok(())
        });
        assert_eq!(totals.unwrap().rows, 3000);
        assert_eq!(lines, found, "{file}");
    }
}

#[test]
fn blocks_name_the_line_of_a_bad_pair_and_hand_out_what_stands_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = many_pairs(2000);
    text.push_str("i1,i2,win,1,g\n");
    let file = write(folder.path(), "pairs.csv", text.as_bytes());
    let options = ReadOptions { pairing: Pairing::Comparisons, ..ReadOptions::default() };
    let mut blocks = PairBlocks::open(&file, &options, 4096).unwrap();
    let outcome: Result<Vec<Dataset>> = (&mut blocks).collect();
    let error = outcome.expect_err("win");
    assert_eq!((error.code(), place(&error).0), (Code::BadOutcome, Some(2002)));
    assert!(blocks.pairs() > 1500 && blocks.next().is_none());
    let empty = write(folder.path(), "empty.csv", b"left,right,outcome\n");
    let error = PairBlocks::open(&empty, &options, 4096).unwrap().next().unwrap().expect_err("empty");
    assert_eq!(error.code(), Code::NoRows);
    let rows = write(folder.path(), "rows.csv", b"target,x\n1,2\n");
    let sides = sides();
    let error = PairBlocks::open(&rows, &sides, 4096).unwrap().next().unwrap().expect_err("rows");
    assert_eq!(error.code(), Code::NoPairs);
}

#[test]
fn a_model_keeps_its_columns_in_every_block() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "pairs.csv", many_pairs(1000).as_bytes());
    let names = vec!["i9".to_string(), "i4".to_string()];
    let features = Some(ModelFeatures { count: 2, names: Some(names), index_base: None });
    let options = ReadOptions { pairing: Pairing::Comparisons, features, ..ReadOptions::default() };
    let mut blocks = PairBlocks::open(&file, &options, 2048).unwrap();
    for block in &mut blocks {
        let block = block.unwrap();
        assert_eq!(block.cols(), 2);
        for (left, .., [entries, _]) in told(&block) {
            let expected = match left.as_str() {
                "i9" => vec![(0, 1.0)],
                "i4" => vec![(1, 1.0)],
                _ => vec![],
            };
            assert_eq!(entries, expected, "{left}");
        }
    }
    assert!(blocks.facts().notes.iter().any(|note| note.contains("309 items the model has not seen")));
}

#[test]
fn two_items_a_row_survive_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "pairs.csv", many_pairs(500).as_bytes());
    let options = ReadOptions { pairing: Pairing::Of(stored_items()), ..ReadOptions::default() };
    let pairs = read(&file, &options).unwrap();
    let mut names = vec!["wide.csv", "wide.tsv.gz"];
    if cfg!(feature = "tables") {
        names.extend(["wide.parquet", "wide.arrow"]);
    }
    let mut hashes = Vec::new();
    for name in names {
        let wide = folder.path().join(name).to_str().unwrap().to_string();
        write_data(&pairs, &wide, Format::of_name(name).unwrap(), &Cancel::default()).unwrap();
        let loaded = read(&wide, &sides()).unwrap();
        assert_eq!((loaded.data.rows(), loaded.data.pairs().unwrap().len()), (1000, 500), "{name}");
        // Ids are left out. Wide tables are dense, so zeros are entries.
        let filled = |told: Vec<Told>| {
            let entries = |row: Vec<(usize, f64)>| row.into_iter().filter(|e| e.1 != 0.0).collect::<Vec<_>>();
            told.into_iter().map(|t| (t.2, t.3, t.4, t.5.map(entries))).collect::<Vec<_>>()
        };
        assert_eq!(filled(told(&loaded.data)), filled(told(&pairs.data)), "{name}");
        let cached = folder.path().join(format!("{name}.mmd"));
        cache::save(&loaded, &cached).unwrap();
        assert_eq!(cache::check(&cached).unwrap().version, 2);
        let again = read(cached.to_str().unwrap(), &sides()).unwrap();
        again.data.matrix().check(0..again.data.rows()).unwrap();
        assert_eq!(told(&again.data), told(&loaded.data), "{name}");
        assert_eq!(again.data.computed_hash().unwrap(), loaded.data.hash().unwrap());
        let cached = cached.to_str().unwrap().to_string();
        let sides = sides();
        let blocks: Result<Vec<Dataset>> = PairBlocks::open(&cached, &sides, 4096).unwrap().collect();
        assert_eq!(blocks.unwrap().iter().flat_map(told).collect::<Vec<_>>(), told(&loaded.data));
        hashes.push(loaded.data.hash().unwrap());
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]));
    let error = write_data(&pairs, folder.path().join("w.svm").to_str().unwrap(), Format::Svmlight, &Cancel::default());
    assert_eq!(error.expect_err("no place").code(), Code::BadSetting);
}

#[test]
fn damaged_pairs_of_a_cache_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = wide("left.x,right.x,outcome,group\n1,2,tie,a\n3,4,right,b\n", &sides()).unwrap();
    let path = folder.path().join("w.mmd");
    cache::save(&loaded, &path).unwrap();
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x41;
        std::fs::write(&path, &bytes).unwrap();
        assert!(cache::check(&path).is_err(), "byte {at}");
    }
}
