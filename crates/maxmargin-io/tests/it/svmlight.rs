//! Reading svmlight text.

use maxmargin::data::{Matrix, Targets};
use maxmargin::error::{Code, Error};
use maxmargin_io::svmlight::{read_stream, read_text};
use maxmargin_io::{Loaded, ModelFeatures, Precision, ReadOptions};
use proptest::prelude::*;

fn read(text: &str) -> Loaded {
    read_text("t.txt", text.as_bytes(), &ReadOptions::default()).expect("reads")
}

fn error(text: &[u8]) -> Error {
    read_text("t.txt", text, &ReadOptions::default()).expect_err("must be refused")
}

fn rows(matrix: &Matrix) -> Vec<Vec<(usize, f64)>> {
    (0..matrix.rows())
        .map(|row| {
            let mut entries = Vec::new();
            matrix.each_in_row(row, |column, value| {
                if value != 0.0 {
                    entries.push((column, value));
                }
            });
            entries
        })
        .collect()
}

#[test]
fn a_row_has_a_target_features_and_a_comment() {
    let loaded = read("1 1:0.5 7:-2e-1 # note\r\n# all comment\n\n-1\t3:4\t\n0\n");
    assert_eq!(loaded.data.targets().real().unwrap(), &[1.0, -1.0, 0.0]);
    assert_eq!(loaded.facts.index_base, Some(1));
    assert_eq!(rows(loaded.data.matrix()), vec![vec![(0, 0.5), (6, f64::from(-0.2f32))], vec![(2, 4.0)], vec![]]);
}

#[test]
fn scattered_queries_are_brought_together() {
    let loaded = read("2 qid:b 1:1\n1 qid:a 1:2\n0 qid:b 1:3 # d3\n");
    let groups = loaded.data.groups().unwrap();
    assert_eq!(groups.names().iter().collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(loaded.data.targets().real().unwrap(), &[2.0, 0.0, 1.0]);
    assert_eq!(loaded.data.input_order().unwrap(), &[0, 2, 1]);
}

#[test]
fn costs_become_weights_and_default_to_one() {
    let loaded = read("1 1:1\n1 cost:2.5 1:1\n1 1:1\n");
    assert_eq!(loaded.data.weights().unwrap(), &[1.0, 2.5, 1.0]);
}

#[test]
fn letor_comments_name_the_documents() {
    let loaded =
        read("2 qid:1 1:1 2:0.000 #docid = GX0 inc = 1 prob = 0.1\n0 qid:1 1:0 2:1 #docid = GX1 inc = 1 prob = 0.1\n");
    assert_eq!(loaded.data.row_ids().unwrap().iter().collect::<Vec<_>>(), ["GX0", "GX1"]);
    assert!(loaded.data.matrix().is_dense());
}

#[test]
fn several_labels_make_sets() {
    let loaded = read("1,12,3 1:1\n 2:1\n3 1:2\n");
    let Targets::Sets { names, starts, codes } = loaded.data.targets() else { panic!("sets") };
    assert_eq!(names.iter().collect::<Vec<_>>(), ["1", "3", "12"]);
    assert_eq!((&starts[..], &codes[..]), (&[0, 3, 3, 4][..], &[0, 1, 2, 1][..]));
}

#[test]
fn a_label_has_one_name_however_it_is_spelt() {
    let loaded = read("01,2.0 1:1\n1 1:1\n+2 1:1\n");
    let Targets::Sets { names, .. } = loaded.data.targets() else { panic!("sets") };
    assert_eq!(names.iter().collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn a_label_given_twice_is_one_label() {
    assert_eq!(read("2,2 1:1\n5 1:1\n").data.targets().real().unwrap(), &[2.0, 5.0]);
}

#[test]
fn the_index_base_is_detected() {
    assert_eq!(read("1 0:1 5:1\n1 1:2\n").facts.index_base, Some(0));
    assert_eq!(read("1 3:1 5:1\n1 0:2\n").facts.index_base, Some(0));
    assert_eq!(read("1 0:1 5:1\n1 1:2\n").data.cols(), 6);
    assert_eq!(read("1 1:1 5:1\n1 1:2\n").data.cols(), 5);
    let mixed = error(b"1 1:1 2:1\n-1 0:1 1:2\n");
    assert_eq!((mixed.code(), mixed.place().unwrap().line), (Code::BadIndex, Some(2)));
    let options = ReadOptions { index_base: Some(0), ..ReadOptions::default() };
    assert_eq!(read_text("t", b"1 1:1 2:1\n-1 0:1 1:2\n", &options).unwrap().data.cols(), 3);
    let options = ReadOptions { index_base: Some(1), ..ReadOptions::default() };
    assert!(read_text("t", b"1 0:1\n", &options).is_err());
}

#[test]
fn data_to_score_get_the_models_columns() {
    let features = ModelFeatures { count: 9, names: None, index_base: Some(0) };
    let options = ReadOptions { features: Some(features), ..ReadOptions::default() };
    let loaded = read_text("t", b"0 1:1\n", &options).unwrap();
    assert_eq!((loaded.data.cols(), rows(loaded.data.matrix())), (9, vec![vec![(1, 1.0)]]));
}

#[test]
fn large_indices_widen_the_storage() {
    assert!(matches!(read("1 1:1 65536:1\n").data.matrix(), Matrix::Csr16F32(_)));
    let wide = read("1 1:1 9:1\n1 1:1 65537:1\n1 2:3\n");
    assert!(matches!(wide.data.matrix(), Matrix::Csr32F32(_)));
    assert_eq!(rows(wide.data.matrix())[2], vec![(1, 3.0)]);
    assert_eq!(read("1 4294967295:1\n").data.cols(), 4_294_967_295);
    let options = ReadOptions { precision: Precision::F64, ..ReadOptions::default() };
    let double = read_text("t", b"1 3:0.1\n", &options).unwrap();
    assert_eq!(rows(double.data.matrix()), vec![vec![(2, 0.1)]]);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let cases: &[(&[u8], Code, u64, Option<u64>)] = &[
        (b"1 1:1\n1 2:abc 3:1\n", Code::BadValue, 2, Some(5)),
        (b"1 1:nan\n", Code::NotFinite, 1, Some(5)),
        (b"1 1:inf\n", Code::NotFinite, 1, Some(5)),
        (b"1 1:1e39\n", Code::NotFinite, 1, Some(5)),
        (b"nan 1:1\n", Code::NotFinite, 1, Some(1)),
        (b"spam 1:1\n", Code::BadTarget, 1, Some(1)),
        (b"1:1 2:1\n", Code::BadTarget, 1, Some(1)),
        (b"1,,2 1:1\n", Code::BadTarget, 1, Some(3)),
        (b"1 2:1 1:1\n", Code::IndexOrder, 1, Some(7)),
        (b"1 2:1 2:1\n", Code::IndexOrder, 1, Some(7)),
        (b"1 4294967296:1\n", Code::BadIndex, 1, Some(3)),
        (b"1 99999999999999999999999:1\n", Code::BadIndex, 1, Some(3)),
        (b"1 -1:1\n", Code::BadIndex, 1, Some(3)),
        (b"1 1.5:1\n", Code::BadIndex, 1, Some(3)),
        (b"1 x:1\n", Code::BadIndex, 1, Some(3)),
        (b"1 5\n", Code::BadToken, 1, Some(3)),
        (b"1 1:\n", Code::BadValue, 1, Some(5)),
        (b"1 1: 2\n", Code::BadValue, 1, Some(5)),
        (b"1 :1\n", Code::BadIndex, 1, Some(3)),
        (b"1 qid: 1:1\n", Code::BadAnnotation, 1, Some(3)),
        (b"1 cost:-1 1:1\n", Code::BadWeight, 1, Some(8)),
        (b"1 1:1 qid:3\n", Code::BadAnnotation, 1, Some(7)),
        (b"1 qid:1 1:1\n1 1:1\n", Code::MixedGroups, 2, Some(3)),
        (b"1 1:1\n1 0:1\n", Code::BadIndex, 2, Some(3)),
        (b"1 \0\x01\x02\n", Code::NotText, 1, Some(3)),
    ];
    for (text, code, line, column) in cases {
        let error = error(text);
        let place = error.place().expect("a place");
        let shown = String::from_utf8_lossy(text);
        assert_eq!((error.code(), place.line, place.column), (*code, Some(*line), *column), "{shown}");
        assert!(error.remedy().is_some(), "{shown}");
    }
    assert_eq!(error(b"").code(), Code::NoRows);
    assert_eq!(error(b"# nothing\n\n").code(), Code::NoRows);
}

#[test]
fn the_first_error_of_many_is_reported_with_its_line() {
    let mut text = "1 1:1 2:2\n".repeat(900_000);
    text.push_str("1 1:x\n");
    text.push_str(&"1 1:1 2:2\n".repeat(300_000));
    text.push_str("1 1:y\n");
    let error = error(text.as_bytes());
    assert_eq!(error.place().unwrap().line, Some(900_001));
    let streamed = read_stream("t", text.as_bytes(), &ReadOptions::default()).expect_err("refused");
    assert_eq!(streamed.place().unwrap().line, Some(900_001));
}

#[test]
fn a_file_of_many_blocks_reads_alike_from_memory_and_stream() {
    let mut text = String::new();
    for row in 0..200_000u64 {
        text.push_str(&format!("{} qid:{} ", row % 3, row / 7));
        for column in 0..row % 9 {
            text.push_str(&format!("{}:{} ", 1 + column * (1 + row % 11), (row * 31 + column) as f64 / 64.0));
        }
        text.push('\n');
    }
    text.pop();
    let whole = read(&text);
    let streamed = read_stream("t", text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(whole.data.rows(), 200_000);
    assert_eq!(whole.data.hash().unwrap(), streamed.data.hash().unwrap());
    assert_eq!(whole.data.groups().unwrap().len(), 200_000usize.div_ceil(7));
}

proptest! {
    #[test]
    fn printed_rows_come_back(
        rows_in in prop::collection::vec((any::<f64>(), prop::collection::btree_map(1..70_000u32, any::<f32>(), 0..12)), 1..40),
    ) {
        let mut text = String::new();
        for (target, features) in &rows_in {
            prop_assume!(target.is_finite() && features.values().all(|value| value.is_finite()));
            text.push_str(&format!("{target:e}"));
            for (index, value) in features {
                text.push_str(&format!(" {index}:{value}"));
            }
            text.push('\n');
        }
        let loaded = read(&text);
        let targets: Vec<f64> = rows_in.iter().map(|row| row.0).collect();
        prop_assert_eq!(loaded.data.targets().real().unwrap(), &targets[..]);
        for (found, (_, features)) in rows(loaded.data.matrix()).iter().zip(&rows_in) {
            let expected: Vec<(usize, f64)> = features.iter().filter(|(_, v)| **v != 0.0)
                .map(|(&index, &value)| (index as usize - 1, f64::from(value))).collect();
            prop_assert_eq!(found, &expected);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[0-9a-z:.#, \n\t+-]{0,120}") {
        let _ = read_text("t", text.as_bytes(), &ReadOptions::default());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_text("t", &bytes, &ReadOptions::default());
    }
}
