//! Parquet and Arrow: types, lists, nulls, damage and round trips.

use crate::tables::{any_data, assert_same, cells, labels};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array,
    Int8Array, Int64Array, LargeListArray, LargeStringArray, ListArray, RecordBatch, StringArray, StringViewArray,
    TimestampSecondArray, UInt64Array,
};
use maxmargin::data::Targets;
use maxmargin::error::{Code, Error};
use maxmargin_io::{Columns, Format, Loaded, Missing, Precision, ReadOptions, arrow, parquet};
use proptest::prelude::*;
use std::io::Write;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Parquet,
    File,
    Stream,
}

const KINDS: [Kind; 3] = [Kind::Parquet, Kind::File, Kind::Stream];

fn encode(kind: Kind, batches: &[RecordBatch]) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut bytes = Vec::new();
    match kind {
        Kind::Parquet => {
            let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, schema, None).expect("writer");
            batches.iter().for_each(|batch| writer.write(batch).expect("written"));
            writer.close().expect("closed");
        }
        Kind::File => {
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &schema).expect("writer");
            batches.iter().for_each(|batch| writer.write(batch).expect("written"));
            writer.finish().expect("closed");
        }
        Kind::Stream => {
            let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &schema).expect("writer");
            batches.iter().for_each(|batch| writer.write(batch).expect("written"));
            writer.finish().expect("closed");
        }
    }
    bytes
}

fn read_bytes(kind: Kind, bytes: &[u8], options: &ReadOptions) -> Result<Loaded, Error> {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(bytes).expect("written");
    match kind {
        Kind::Parquet => parquet::read("t.parquet", file.path(), options),
        Kind::File | Kind::Stream => arrow::read("t.arrow", file.path(), options),
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("a batch")
}

fn double() -> ReadOptions {
    ReadOptions { precision: Precision::F64, ..ReadOptions::default() }
}

#[test]
fn columns_of_every_type_of_number_are_features() {
    let decimal = Decimal128Array::from(vec![125, -50]).with_precision_and_scale(10, 2).expect("decimal");
    let first = batch(vec![
        ("i8", Arc::new(Int8Array::from(vec![-1, 2])) as ArrayRef),
        ("i64", Arc::new(Int64Array::from(vec![1 << 40, -3]))),
        ("u64", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("f32", Arc::new(Float32Array::from(vec![0.1, -0.0]))),
        ("f64", Arc::new(Float64Array::from(vec![0.1, 1e300]))),
        ("bool", Arc::new(BooleanArray::from(vec![true, false]))),
        ("decimal", Arc::new(decimal)),
    ]);
    for kind in KINDS {
        let loaded = read_bytes(kind, &encode(kind, &[first.clone(), first.clone()]), &double()).expect("valid");
        let row = [-1.0, 1099511627776.0, u64::MAX as f64, f64::from(0.1f32), 0.1, 1.0, 1.25];
        assert_eq!(cells(&loaded.data)[0], row, "{kind:?}");
        assert_eq!(cells(&loaded.data)[3], [2.0, -3.0, 0.0, -0.0, 1e300, 0.0, -0.5], "{kind:?}");
        assert_eq!(loaded.data.rows(), 4);
        assert!(loaded.facts.bytes.is_some_and(|bytes| bytes > 0));
        let expected = if matches!(kind, Kind::Parquet) { Format::Parquet } else { Format::Arrow };
        assert_eq!(loaded.facts.format, Some(expected));
        // 1e300 does not fit into f32.
        let error = read_bytes(kind, &encode(kind, std::slice::from_ref(&first)), &ReadOptions::default())
            .expect_err("too large");
        assert_eq!(error.code(), Code::NotFinite);
        assert!(error.message().contains("row 2") && error.message().contains("`f64`"), "{error}");
    }
}

#[test]
fn roles_take_numbers_and_text_of_any_encoding() {
    let dictionary: DictionaryArray<Int32Type> = vec!["good", "bad", "good"].into_iter().collect();
    let table = batch(vec![
        ("label", Arc::new(dictionary) as ArrayRef),
        ("qid", Arc::new(Int64Array::from(vec![7, 8, 7]))),
        ("id", Arc::new(LargeStringArray::from(vec![Some("x"), None, Some("z")]))),
        ("weight", Arc::new(Float32Array::from(vec![1.0, 0.5, 0.0]))),
        ("a", Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]))),
    ]);
    for kind in KINDS {
        let loaded =
            read_bytes(kind, &encode(kind, std::slice::from_ref(&table)), &ReadOptions::default()).expect("valid");
        let data = &loaded.data;
        assert_eq!(labels(data), ["good", "bad", "good"]);
        assert_eq!(data.groups().expect("groups").names().iter().collect::<Vec<_>>(), ["7", "8"]);
        assert_eq!(data.input_order(), Some(&[0, 2, 1][..]));
        assert_eq!(data.row_ids().expect("ids").iter().collect::<Vec<_>>(), ["x", "z", ""]);
        assert_eq!(data.weights(), Some(&[1.0, 0.0, 0.5][..]));
        assert_eq!(cells(data), [[1.0], [2.0], [3.0]]);
    }
    let numbers = batch(vec![
        ("y", Arc::new(StringViewArray::from(vec!["1", "2.5"])) as ArrayRef),
        ("a", Arc::new(Float32Array::from(vec![1.0, 2.0]))),
    ]);
    let loaded = read_bytes(Kind::File, &encode(Kind::File, &[numbers]), &ReadOptions::default()).expect("valid");
    assert_eq!(loaded.data.targets().real().expect("numbers"), [1.0, 2.5]);
    let booleans = batch(vec![
        ("y", Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef),
        ("a", Arc::new(Float32Array::from(vec![1.0, 2.0]))),
    ]);
    let loaded = read_bytes(Kind::File, &encode(Kind::File, &[booleans]), &ReadOptions::default()).expect("valid");
    assert_eq!(labels(&loaded.data), ["true", "false"]);
}

fn vectors(rows: &[Option<Vec<f32>>]) -> Vec<Option<Vec<Option<f32>>>> {
    rows.iter().map(|row| row.as_ref().map(|row| row.iter().map(|&value| Some(value)).collect())).collect()
}

#[test]
fn lists_are_dense_vectors() {
    use arrow_array::types::Float32Type;
    let rows = vectors(&[Some(vec![1.0, 2.0]), None, Some(vec![5.0, 6.0])]);
    let arrays: [ArrayRef; 3] = [
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone())),
        Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone())),
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2)),
    ];
    for array in arrays {
        let table = batch(vec![("v", array.slice(1, 2)), ("x", Arc::new(Int64Array::from(vec![7, 8])))]);
        let table = [batch(vec![("v", array.slice(0, 1)), ("x", Arc::new(Int64Array::from(vec![6])))]), table];
        for kind in KINDS {
            let options = ReadOptions { missing: Missing::Zero, ..ReadOptions::default() };
            let loaded = read_bytes(kind, &encode(kind, &table), &options).expect("valid");
            assert_eq!(cells(&loaded.data), [[1.0, 2.0, 6.0], [0.0, 0.0, 7.0], [5.0, 6.0, 8.0]], "{kind:?}");
            let names = loaded.data.feature_names().expect("names").iter().map(|n| n.into_owned()).collect::<Vec<_>>();
            assert_eq!(names, ["v[0]", "v[1]", "x"]);
            let error = read_bytes(kind, &encode(kind, &table), &ReadOptions::default()).expect_err("a missing list");
            assert_eq!(error.code(), Code::MissingValue);
            assert!(error.message().contains("row 2"), "{error}");
        }
    }
    let rows = vectors(&[Some(vec![1.0, 2.0]), Some(vec![1.0])]);
    let ragged = batch(vec![("v", Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows)) as ArrayRef)]);
    for kind in KINDS {
        let error = read_bytes(kind, &encode(kind, std::slice::from_ref(&ragged)), &ReadOptions::default())
            .expect_err("ragged");
        assert_eq!(error.code(), Code::BadTable);
        assert!(error.message().contains("row 2") && error.message().contains("`v`"), "{error}");
    }
}

#[test]
fn nulls_and_not_a_number_are_missing_cells() {
    let table = batch(vec![
        ("y", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0])) as ArrayRef),
        ("a", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN)]))),
        ("b", Arc::new(Int64Array::from(vec![Some(1), Some(4), None]))),
    ]);
    for kind in KINDS {
        let bytes = encode(kind, std::slice::from_ref(&table));
        let error = read_bytes(kind, &bytes, &ReadOptions::default()).expect_err("missing");
        assert_eq!(error.code(), Code::MissingValue);
        assert!(error.message().contains("row 2") && error.message().contains("`a`"), "{error}");
        let options = ReadOptions { missing: Missing::Mean, ..ReadOptions::default() };
        let loaded = read_bytes(kind, &bytes, &options).expect("valid");
        assert_eq!(cells(&loaded.data), [[1.0, 1.0], [1.0, 4.0], [1.0, 2.5]]);
        assert_eq!(loaded.facts.fill, Some(vec![1.0, 2.5]));
    }
    let table = batch(vec![
        ("y", Arc::new(Float64Array::from(vec![Some(1.0), None])) as ArrayRef),
        ("a", Arc::new(Float64Array::from(vec![1.0, 1.0]))),
    ]);
    let error = read_bytes(Kind::Parquet, &encode(Kind::Parquet, &[table]), &double()).expect_err("no target");
    assert!(error.message().contains("target is missing in row 2"), "{error}");
}

#[test]
fn types_that_are_no_features_are_named() {
    let table = batch(vec![
        ("a", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef),
        ("when", Arc::new(TimestampSecondArray::from(vec![1]))),
        ("text", Arc::new(StringArray::from(vec!["hello"]))),
    ]);
    for kind in KINDS {
        let bytes = encode(kind, std::slice::from_ref(&table));
        let error = read_bytes(kind, &bytes, &ReadOptions::default()).expect_err("a time");
        assert_eq!(error.code(), Code::BadColumnType);
        assert!(error.message().contains("`when`") && error.message().contains("Timestamp"), "{error}");
        let columns = Columns { ignore: vec!["when".into(), "text".into()], ..Columns::default() };
        let loaded = read_bytes(kind, &bytes, &ReadOptions { columns, ..ReadOptions::default() }).expect("valid");
        assert_eq!(cells(&loaded.data), [[1.0]]);
    }
}

#[test]
fn typed_columns_are_hashed_like_text() {
    use maxmargin_io::{Hashing, csv};
    let options = ReadOptions { hash: Some(Hashing::new(5).expect("valid")), ..ReadOptions::default() };
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), Some(-2.0), Some(0.0)]));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["red", "12", "blue"]));
    let coded: ArrayRef = Arc::new(vec!["a", "b", "a"].into_iter().collect::<DictionaryArray<Int32Type>>());
    let targets: ArrayRef = Arc::new(Int64Array::from(vec![1, 0, 1]));
    let columns = vec![("x", numbers), ("n", whole), ("colour", words), ("kind", coded), ("target", targets)];
    let batch = batch(columns);
    let text = "x,n,colour,kind,target\n0.5,7,red,a,1\n-2,8,12,b,0\n0,9,blue,a,1\n";
    let wanted = csv::read("t.csv", text.as_bytes(), b',', &options).expect("reads");
    for kind in KINDS {
        let loaded = read_bytes(kind, &encode(kind, &[batch.clone(), batch.slice(1, 2)]), &options).expect("reads");
        assert_eq!(loaded.data.cols(), 32);
        let first = loaded.data.subset(&[0, 1, 2]).expect("rows");
        assert_eq!(first.hash().expect("valid"), wanted.data.hash().expect("valid"), "{kind:?}");
        let last = loaded.data.subset(&[3, 4]).expect("rows");
        assert_eq!(last.hash().ok(), wanted.data.subset(&[1, 2]).expect("rows").hash().ok(), "{kind:?}");
    }
    let lists: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<arrow_array::types::Float32Type, _, _>(
        vec![Some(vec![Some(1.0), Some(2.0)]), None],
        2,
    ));
    let targets: ArrayRef = Arc::new(Int64Array::from(vec![1, 0]));
    let bytes = encode(Kind::Parquet, &[self::batch(vec![("v", lists), ("target", targets)])]);
    assert_eq!(read_bytes(Kind::Parquet, &bytes, &options).expect_err("no list").code(), Code::MissingValue);
    let lenient = ReadOptions { missing: Missing::Zero, ..options.clone() };
    let loaded = read_bytes(Kind::Parquet, &bytes, &lenient).expect("reads");
    let wanted = csv::read("t.csv", "v[0],v[1],target\n1,2,1\n,,0\n".as_bytes(), b',', &lenient).expect("reads");
    assert_eq!(loaded.data.hash().expect("valid"), wanted.data.hash().expect("valid"));
}

#[test]
fn tables_without_rows_are_refused() {
    let table = batch(vec![("a", Arc::new(Float64Array::from(Vec::<f64>::new())) as ArrayRef)]);
    for kind in KINDS {
        let error = read_bytes(kind, &encode(kind, std::slice::from_ref(&table)), &ReadOptions::default())
            .expect_err("no rows");
        assert_eq!(error.code(), Code::NoRows);
    }
}

#[test]
fn many_blocks_keep_their_order() {
    let rows = 50_000i64;
    let table = batch(vec![
        ("y", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        ("a", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row * 2)))),
        ("b", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 2.0)))),
    ]);
    for kind in KINDS {
        let loaded = read_bytes(kind, &encode(kind, std::slice::from_ref(&table)), &double()).expect("valid");
        let Targets::Real(targets) = loaded.data.targets() else { panic!("numbers") };
        assert!(targets.iter().enumerate().all(|(row, &target)| target == row as f64));
        assert!(
            cells(&loaded.data)
                .iter()
                .enumerate()
                .all(|(row, cells)| cells[..] == [row as f64 * 2.0, row as f64 / 2.0])
        );
    }
}

#[test]
fn damaged_files_are_refused_without_a_panic() {
    let table = batch(vec![
        ("label", Arc::new(StringArray::from(vec!["good", "bad", "good"])) as ArrayRef),
        ("a", Arc::new(Float64Array::from(vec![Some(1.0), None, Some(2.0)]))),
        ("b", Arc::new(Int64Array::from(vec![1, 2, 3]))),
    ]);
    for kind in KINDS {
        let whole = encode(kind, std::slice::from_ref(&table));
        for bytes in [&b""[..], b"PAR1", b"ARROW1\0\0", b"hello, world\n1,2\n", &whole[..whole.len() / 2]] {
            let error = read_bytes(kind, bytes, &ReadOptions::default()).expect_err("damaged");
            assert_eq!(error.code(), Code::BadTable, "{error}");
            assert!(error.place().is_some());
        }
        // The result may be data or an error, but not a panic.
        let options = ReadOptions { missing: Missing::Zero, ..ReadOptions::default() };
        let step = if std::env::var_os("MAXMARGIN_THOROUGH").is_some() { 1 } else { 13 };
        for at in (0..whole.len()).step_by(step) {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                let _ = read_bytes(kind, &bytes, &options);
            }
        }
    }
}

/// Replaces a number wherever it is in the bytes.
fn forged(bytes: &[u8], from: u64, to: u64) -> Vec<u8> {
    let (from, mut bytes) = (from.to_le_bytes(), bytes.to_vec());
    let places: Vec<usize> = (0..bytes.len() - 8).filter(|&at| bytes[at..at + 8] == from).collect();
    assert!(!places.is_empty(), "the number is stored");
    places.into_iter().for_each(|at| bytes[at..at + 8].copy_from_slice(&to.to_le_bytes()));
    bytes
}

#[test]
fn a_small_file_cannot_claim_much_memory() {
    const ROWS: usize = 12_345;
    let numbers = Float64Array::from(vec![0.5; ROWS]);
    let table = batch(vec![("target", Arc::new(numbers.clone()) as ArrayRef), ("a", Arc::new(numbers))]);
    let schema = table.schema();
    for (codec, of_file) in [
        (arrow_ipc::CompressionType::ZSTD, true),
        (arrow_ipc::CompressionType::ZSTD, false),
        (arrow_ipc::CompressionType::LZ4_FRAME, true),
    ] {
        let options = arrow_ipc::writer::IpcWriteOptions::default().try_with_compression(Some(codec)).expect("a codec");
        let mut bytes = Vec::new();
        if of_file {
            let mut writer =
                arrow_ipc::writer::FileWriter::try_new_with_options(&mut bytes, &schema, options).expect("writer");
            writer.write(&table).expect("written");
            writer.finish().expect("closed");
        } else {
            let mut writer =
                arrow_ipc::writer::StreamWriter::try_new_with_options(&mut bytes, &schema, options).expect("writer");
            writer.write(&table).expect("written");
            writer.finish().expect("closed");
        }
        assert!(bytes.len() < 4096, "{}", bytes.len());
        let read = |bytes: &[u8]| read_bytes(Kind::File, bytes, &ReadOptions::default());
        assert_eq!(read(&bytes).expect("sound").data.rows(), ROWS);
        let error = read(&forged(&bytes, ROWS as u64 * 8, 4 << 30)).expect_err("four gigabytes");
        assert!(error.message().contains("which no compression can"), "{error}");
        let error = read(&forged(&bytes, ROWS as u64, 1 << 40)).expect_err("many rows");
        assert!(error.message().contains("claims 1099511627776 rows"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn writing_columns_and_reading_them_back_changes_no_bit((data, precision) in any_data()) {
        let options = ReadOptions { precision, ..ReadOptions::default() };
        let mut bytes = Vec::new();
        parquet::write(&data, &mut bytes).expect("written");
        assert_same(&data, &read_bytes(Kind::Parquet, &bytes, &options).expect("valid").data);
        bytes.clear();
        arrow::write(&data, &mut bytes).expect("written");
        assert_same(&data, &read_bytes(Kind::File, &bytes, &options).expect("valid").data);
    }
}
