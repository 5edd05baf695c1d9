//! CSV, TSV, Parquet and Arrow: what is read, what is refused and how, and that writing is the inverse of reading.

use maxmargin::data::{Dataset, Targets};
use maxmargin::error::{Code, Error};
use maxmargin_io::{Columns, Format, Loaded, Missing, ModelFeatures, Precision, ReadOptions, csv};
use proptest::prelude::*;

fn read(text: &str) -> Result<Loaded, Error> {
    read_with(text, &ReadOptions { precision: Precision::F64, ..ReadOptions::default() })
}

fn read_with(text: &str, options: &ReadOptions) -> Result<Loaded, Error> {
    csv::read("t.csv", text.as_bytes(), b',', options)
}

pub(crate) fn cells(data: &Dataset) -> Vec<Vec<f64>> {
    let order: Vec<Vec<f64>> = (0..data.rows())
        .map(|row| {
            let mut cells = vec![0.0; data.cols()];
            data.matrix().each_in_row(row, |column, value| cells[column] = value);
            cells
        })
        .collect();
    data.to_input_order(order)
}

pub(crate) fn labels(data: &Dataset) -> Vec<String> {
    match data.targets() {
        Targets::Labels { names, codes } => {
            data.to_input_order(codes.iter().map(|&code| names.get(code as usize).into_owned()).collect())
        }
        other => panic!("words expected, found {other:?}"),
    }
}

/// The code, `line:column`, the marked token and the whole text of an error.
#[track_caller]
fn failure(text: &str) -> (Code, String, String, String) {
    describe(&read(text).expect_err("refused"))
}

fn describe(error: &Error) -> (Code, String, String, String) {
    let place = error.place().expect("errors have a place");
    let at = match (place.line, place.column) {
        (Some(line), Some(column)) => format!("{line}:{column}"),
        _ => String::new(),
    };
    let token = place
        .excerpt
        .as_ref()
        .map(|excerpt| excerpt.text.chars().skip(excerpt.start).take(excerpt.length).collect())
        .unwrap_or_default();
    (error.code(), at, token, error.to_string())
}

#[test]
fn columns_find_their_roles_by_name() {
    let loaded = read("qid,label,a,weight,b,id\nq7,1,0.5,2,1e3,x\nq8,0,-1,0.5,0,y\nq7,2,3,1,4,z\n").expect("valid");
    let data = &loaded.data;
    assert_eq!(cells(data), [[0.5, 1000.0], [-1.0, 0.0], [3.0, 4.0]]);
    assert_eq!(data.to_input_order(data.targets().real().expect("numbers").to_vec()), [1.0, 0.0, 2.0]);
    assert_eq!(data.to_input_order(data.weights().expect("weights").to_vec()), [2.0, 0.5, 1.0]);
    let groups = data.groups().expect("groups");
    assert_eq!(groups.starts(), [0, 2, 3]);
    assert_eq!(groups.names().iter().collect::<Vec<_>>(), ["q7", "q8"]);
    assert_eq!(data.row_ids().expect("ids").iter().collect::<Vec<_>>(), ["x", "z", "y"]);
    assert_eq!(data.feature_names().expect("names").iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(loaded.facts.format, Some(Format::Csv));
    for note in ["target column `label`", "group column `qid`", "weight column `weight`", "id column `id`"] {
        assert!(loaded.facts.notes.iter().any(|found| found == note), "{note}: {:?}", loaded.facts.notes);
    }
}

#[test]
fn data_without_a_target_can_be_read() {
    let loaded = read("a,b\n1,2\n").expect("valid");
    assert!(matches!(loaded.data.targets(), Targets::Absent));
    assert!(loaded.data.groups().is_none() && loaded.data.weights().is_none() && loaded.data.row_ids().is_none());
}

#[test]
fn targets_are_words_as_soon_as_one_of_them_is() {
    let loaded = read("y,a\n1.0,1\n02,1\nspam,1\n1.0,1\n").expect("valid");
    assert_eq!(labels(&loaded.data), ["1.0", "02", "spam", "1.0"]);
    let Targets::Labels { names, .. } = loaded.data.targets() else { panic!("words") };
    assert_eq!(names.iter().collect::<Vec<_>>(), ["02", "1.0", "spam"]);
}

#[test]
fn quotes_line_breaks_byte_order_mark_and_crlf_are_understood() {
    let text = "\u{feff}\"label\",\"a \"\"x\"\"\",b\r\n\"ham, or\nspam\",1,\"2\"\r\n\r\nspam,3,4";
    let loaded = read(text).expect("valid");
    assert_eq!(labels(&loaded.data), ["ham, or\nspam", "spam"]);
    assert_eq!(cells(&loaded.data), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(loaded.data.feature_names().expect("names").get(0), "a \"x\"");
}

#[test]
fn booleans_count_as_one_and_zero() {
    assert_eq!(cells(&read("a,b\ntrue,False\n0,1\n").expect("valid").data), [[1.0, 0.0], [0.0, 1.0]]);
}

#[test]
fn a_word_among_numbers_is_shown_with_its_place() {
    let (code, at, token, text) = failure("y,a,name\n1,2,0\n0,1,abc\n");
    assert_eq!((code, at.as_str(), token.as_str()), (Code::BadCell, "3:5", "abc"));
    assert!(text.contains("`name`") && text.contains("`abc`") && text.contains("`ignore = \"name\"`"), "{text}");
}

#[test]
fn places_are_right_after_quoted_line_breaks_empty_lines_and_crlf() {
    let (code, at, token, _) =
        failure("y,id,a\r\n\"1\",\"two\r\nlines\",5\r\n\r\n\r\n1,\"three\r\n\r\nlines\",\"oops\"\r\n");
    assert_eq!((code, at.as_str(), token.as_str()), (Code::BadCell, "8:8", "\"oops\""));
    let (_, at, token, _) = failure("y,a,id\n1,x y,\"a\nb\"\n");
    assert_eq!((at.as_str(), token.as_str()), ("2:3", "x y"));
}

#[test]
fn places_are_right_far_into_a_long_file() {
    let mut text = String::from("y,a,id\n");
    for row in 0..300_000 {
        text.push_str(if row == 250_001 { "1,bad,\"x\"\n" } else { "1,0.25,\"a \"\"quoted\"\" id\"\n" });
    }
    let (code, at, token, _) = failure(&text);
    assert_eq!((code, at.as_str(), token.as_str()), (Code::BadCell, "250003:3", "bad"));
}

#[test]
fn of_several_bad_cells_the_first_is_shown() {
    let mut text = String::from("y,w,a\n");
    text.push_str(&"1,1,1\n".repeat(1000));
    text.push_str("1,1,first\n,1,1\n");
    text.push_str(&"1,1,later\n".repeat(100));
    let (_, at, token, _) = failure(&text);
    assert_eq!((at.as_str(), token.as_str()), ("1002:5", "first"));
    let (code, at, ..) = failure("y,a\n1,1\n1,x\n1,1,1\n");
    assert_eq!((code, at.as_str()), (Code::BadCell, "3:3"));
}

#[test]
fn missing_cells_are_refused_with_a_remedy() {
    for cell in ["", "NA", "NaN", "nan", "null", "?"] {
        let (code, at, _, text) = failure(&format!("y,a,b\n1,2,3\n1,{cell},3\n"));
        assert_eq!((code, at.as_str()), (Code::MissingValue, "3:3"), "{cell}");
        assert!(
            text.contains("`a`") && text.contains("`missing = \"zero\"`") && text.contains("`missing = \"mean\"`"),
            "{text}"
        );
    }
}

#[test]
fn missing_cells_are_filled_where_asked() {
    let text = "y,a,b\n1,2,\n1,NA,3\n1,6,4\n";
    let with = |missing| read_with(text, &ReadOptions { missing, ..ReadOptions::default() }).expect("valid");
    let zero = with(Missing::Zero);
    assert_eq!(cells(&zero.data), [[2.0, 0.0], [0.0, 3.0], [6.0, 4.0]]);
    let mean = with(Missing::Mean);
    assert_eq!(cells(&mean.data), [[2.0, 3.5], [4.0, 3.0], [6.0, 4.0]]);
    assert_eq!(mean.facts.fill, Some(vec![4.0, 3.5]));
    assert!(mean.facts.notes.contains(&"2 missing cells filled with the column's mean".to_string()));
    let fill = with(Missing::Fill(vec![-1.0, -2.0]));
    assert_eq!(cells(&fill.data), [[2.0, -2.0], [-1.0, 3.0], [6.0, 4.0]]);
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let (code, at, token, _) = failure("y,a\n1,-inf\n");
    assert_eq!((code, at.as_str(), token.as_str()), (Code::NotFinite, "2:3", "-inf"));
    assert_eq!(failure("y,a\ninf,1\n").0, Code::NotFinite);
    let error = read_with("y,a\n1,1e39\n", &ReadOptions::default()).expect_err("too large for f32");
    assert_eq!(error.code(), Code::NotFinite);
    assert!(error.to_string().contains("`precision = \"f64\"`"));
    assert!(read("y,a\n1,1e39\n").is_ok());
}

#[test]
fn targets_groups_and_weights_must_be_there() {
    let (code, at, _, text) = failure("y,a\n1,1\n,1\n");
    assert_eq!((code, at.as_str()), (Code::MissingValue, "3:1"));
    assert!(text.contains("target") && text.contains("`ignore = \"y\"`"), "{text}");
    assert_eq!(failure("qid,a\nx,1\n,1\n").0, Code::MixedGroups);
    for weight in ["-1", "inf", "", "heavy", "nan"] {
        let (code, at, _, text) = failure(&format!("weight,a\n1,1\n{weight},1\n"));
        assert_eq!((code, at.as_str()), (Code::BadWeight, "3:1"), "{weight}: {text}");
    }
}

#[test]
fn rows_of_another_length_are_refused() {
    let (code, at, token, text) = failure("y,a\n1,2\n1,2,3\n");
    assert_eq!((code, at.as_str(), token.as_str()), (Code::BadTable, "3:5", "3"));
    assert!(text.contains("3 fields") && text.contains("2 columns"), "{text}");
    let (code, at, ..) = failure("y,a\n1\n1,2\n");
    assert_eq!((code, at.as_str()), (Code::BadTable, "2:2"));
}

#[test]
fn a_quote_that_never_closes_is_shown_where_it_opens() {
    for text in ["y,a\n1,2\n1,\"2\n1,2\n1,2\n", "a,id\n1,x\n1,\"y\n1,2\n"] {
        let (code, at, _, text) = failure(text);
        assert_eq!((code, at.as_str()), (Code::BadTable, "3:3"), "{text}");
        assert!(text.contains("quote"), "{text}");
    }
}

#[test]
fn headers_are_checked() {
    assert_eq!(failure("").0, Code::NoRows);
    assert_eq!(failure("\n\n").0, Code::NoRows);
    assert_eq!(failure("y,a\n").0, Code::NoRows);
    assert_eq!(failure("y,a").0, Code::NoRows);
    let (code, .., text) = failure("a,b,a\n1,2,3\n");
    assert_eq!(code, Code::BadTable);
    assert!(text.contains("columns 1 and 3 are both named `a`"), "{text}");
    let (code, at, _, text) = failure("0.5,1.5,3\n1,2,3\n");
    assert_eq!((code, at.as_str()), (Code::BadTable, "1:1"));
    assert!(text.contains("names"), "{text}");
    let error = csv::read("t.csv", &b"a,b\xff\n1,2\n"[..], b',', &ReadOptions::default()).expect_err("no text");
    assert_eq!(describe(&error).0, Code::NotText);
}

#[test]
fn a_column_that_is_not_there_is_refused_with_the_nearest() {
    let columns = Columns { target: Some("grde".into()), ..Columns::default() };
    let error = read_with("a,grade\n1,2\n", &ReadOptions { columns, ..ReadOptions::default() }).expect_err("none");
    assert_eq!(error.code(), Code::NoSuchColumn);
    assert!(error.to_string().contains("did you mean `grade`") && error.to_string().contains("t.csv"), "{error}");
}

#[test]
fn the_features_of_a_model_are_taken_in_its_order() {
    let features = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        Some(ModelFeatures { count: names.len(), names: Some(names), index_base: None })
    };
    let text = "c,junk,a,y\n3,what,1,0\n";
    let options = ReadOptions { features: features(&["a", "c"]), ..ReadOptions::default() };
    let loaded = read_with(text, &options).expect("valid");
    assert_eq!(cells(&loaded.data), [[1.0, 3.0]]);
    assert!(loaded.facts.notes.iter().any(|note| note.contains("`junk`")), "{:?}", loaded.facts.notes);
    let options = ReadOptions { features: features(&["a", "b"]), ..ReadOptions::default() };
    assert_eq!(read_with(text, &options).expect_err("missing").code(), Code::FeatureNames);
    let positional = |count| ReadOptions {
        features: Some(ModelFeatures { count, ..ModelFeatures::default() }),
        ..ReadOptions::default()
    };
    assert!(read_with("a,b\n1,2\n", &positional(2)).is_ok());
    assert_eq!(read_with("a,b\n1,2\n", &positional(1)).expect_err("more").code(), Code::TooManyFeatures);
    assert_eq!(read_with("a,b\n1,2\n", &positional(3)).expect_err("fewer").code(), Code::FeatureNames);
}

#[test]
fn a_raised_flag_stops_the_reader() {
    let options = ReadOptions::default();
    options.cancel.raise();
    assert_eq!(read_with("a\n1\n", &options).expect_err("stopped").code(), Code::Interrupted);
}

#[test]
fn errors_of_the_input_keep_their_meaning() {
    struct Broken(bool);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other(Error::new(Code::DamagedArchive, "cut short")));
            }
            buffer[..8].copy_from_slice(b"y,a\n1,2\n");
            Ok(8)
        }
    }
    let error = csv::read("t.csv", Broken(false), b',', &ReadOptions::default()).expect_err("broken");
    assert_eq!((error.code(), &*error.message()), (Code::DamagedArchive, "cut short"));
}

#[test]
fn wide_tables_of_zeros_are_stored_sparse() {
    let header: Vec<String> = (0..100).map(|column| format!("c{column}")).collect();
    let mut text = header.join(",") + "\n";
    for row in 0..20 {
        let cells: Vec<&str> = (0..100).map(|column| if column == row { "1.5" } else { "0" }).collect();
        text.push_str(&(cells.join(",") + "\n"));
    }
    let loaded = read_with(&text, &ReadOptions::default()).expect("valid");
    assert_eq!(loaded.data.matrix().layout(), "sparse, u16 index, f32");
    assert_eq!(loaded.data.matrix().entries(), 20);
}

/// A table with any content: the precision that reads it back unchanged, and the data themselves.
pub(crate) fn any_data() -> impl Strategy<Value = (Dataset, Precision)> {
    let word = "[a-z \"',;\n\t]{0,5}x";
    (1usize..40, prop_oneof![3 => 1usize..6, 1 => 65usize..90], any::<bool>(), any::<bool>()).prop_flat_map(
        move |(rows, cols, double, sparse)| {
            (
                prop::collection::vec(
                    (any::<u64>(), 0u8..10).prop_map(move |(bits, kind)| match kind {
                        0..=5 if sparse => 0.0,
                        0 => -0.0,
                        1..=4 => (bits % 1000) as f64 / 8.0,
                        _ if double => f64::from_bits(bits),
                        _ => f64::from(f32::from_bits(bits as u32)),
                    }),
                    rows * cols,
                ),
                prop::option::of(prop::collection::vec(0u8..4, rows)),
                prop::option::of(prop::collection::vec(word, rows)),
                prop::option::of(prop::collection::vec(0.0f64..1e9, rows)),
                0u8..3,
                prop::collection::vec((any::<i32>(), word), rows),
            )
                .prop_map(move |(cells, groups, ids, weights, kind, targets)| {
                    let mut text = csv_text(&cells, cols, double, kind, &targets);
                    if let Some(groups) = &groups {
                        text.add("qid", groups.iter().map(|group| format!("q \"{group}")).collect());
                    }
                    if let Some(ids) = ids {
                        text.add("id", ids);
                    }
                    if let Some(weights) = weights {
                        text.add("weight", weights.iter().map(f64::to_string).collect());
                    }
                    let precision = if double { Precision::F64 } else { Precision::F32 };
                    let options = ReadOptions { precision, ..ReadOptions::default() };
                    (read_with(&text.print(), &options).expect("valid").data, precision)
                })
        },
    )
}

struct Text {
    names: Vec<String>,
    columns: Vec<Vec<String>>,
}

impl Text {
    fn add(&mut self, name: &str, cells: Vec<String>) {
        self.names.push(name.to_string());
        self.columns.push(cells);
    }

    fn print(&self) -> String {
        let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
        let mut text = self.names.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        for row in 0..self.columns[0].len() {
            let cells: Vec<String> = self.columns.iter().map(|column| quoted(&column[row])).collect();
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }
}

fn csv_text(cells: &[f64], cols: usize, double: bool, kind: u8, targets: &[(i32, String)]) -> Text {
    let mut text = Text { names: Vec::new(), columns: Vec::new() };
    for column in 0..cols {
        let values = cells.chunks(cols).map(|row| match row[column] {
            value if !value.is_finite() => "1".to_string(),
            value if double => value.to_string(),
            value => (value as f32).to_string(),
        });
        text.add(&format!("x, \"{column}\""), values.collect());
    }
    match kind {
        0 => {}
        1 => text.add("target", targets.iter().map(|(number, _)| (f64::from(*number) / 7.0).to_string()).collect()),
        _ => text.add("target", targets.iter().map(|(_, word)| word.clone()).collect()),
    }
    text
}

/// Panics if two data sets differ in any way.
#[track_caller]
pub(crate) fn assert_same(left: &Dataset, right: &Dataset) {
    let bits = |data: &Dataset| -> Vec<Vec<u64>> {
        cells(data).into_iter().map(|row| row.into_iter().map(f64::to_bits).collect()).collect()
    };
    assert_eq!(left.matrix().layout(), right.matrix().layout());
    assert_eq!(bits(left), bits(right));
    match (left.targets(), right.targets()) {
        (Targets::Absent, Targets::Absent) => {}
        (Targets::Real(left), Targets::Real(right)) => assert_eq!(&left[..], &right[..]),
        (Targets::Labels { names, codes }, Targets::Labels { names: other_names, codes: other_codes }) => {
            assert_eq!((names, &codes[..]), (other_names, &other_codes[..]));
        }
        (left, right) => panic!("{left:?} and {right:?}"),
    }
    assert_eq!(
        left.groups().map(|groups| groups.starts().to_vec()),
        right.groups().map(|groups| groups.starts().to_vec())
    );
    assert_eq!(left.groups().map(|groups| groups.names()), right.groups().map(|groups| groups.names()));
    assert_eq!(left.weights(), right.weights());
    assert_eq!(left.row_ids(), right.row_ids());
    assert_eq!(left.feature_names(), right.feature_names());
    assert_eq!(left.input_order(), right.input_order());
    assert_eq!(left.hash().expect("hash"), right.hash().expect("hash"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn writing_text_and_reading_it_back_changes_no_bit((data, precision) in any_data()) {
        let options = ReadOptions { precision, ..ReadOptions::default() };
        for delimiter in [b',', b'\t', b';'] {
            let mut text = Vec::new();
            csv::write(&data, delimiter, &mut text).expect("written");
            let back = csv::read("t", &text[..], delimiter, &options).expect("valid").data;
            assert_same(&data, &back);
        }
    }
}

#[test]
fn features_without_names_are_numbered_from_one() {
    let matrix = maxmargin::data::Matrix::from_rows(&[vec![(0, 1.5), (1, 2.0)]], 2).expect("valid");
    let data = Dataset::new(matrix, Targets::Real(vec![1.0].into())).expect("valid");
    let mut text = Vec::new();
    csv::write(&data, b',', &mut text).expect("written");
    assert_eq!(String::from_utf8_lossy(&text), "target,f1,f2\n1,1.5,2\n");
}

#[test]
fn label_sets_are_written_joined_with_commas() {
    let matrix = maxmargin::data::Matrix::from_rows(&[vec![(0, 1.5)], vec![(0, 2.0)]], 1).expect("valid");
    let targets = Targets::Sets {
        names: ["a", "b", "c"].into_iter().collect(),
        starts: vec![0, 2, 3].into(),
        codes: vec![0, 2, 1].into(),
    };
    let data = Dataset::new(matrix, targets).expect("valid");
    let mut text = Vec::new();
    csv::write(&data, b',', &mut text).expect("written");
    assert_eq!(String::from_utf8_lossy(&text), "target,f1\n\"a,c\",1.5\nb,2\n");
}

#[test]
fn the_protein_table_is_read_whole() {
    let root = std::env::var_os("MAXMARGIN_DATA").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        std::path::PathBuf::from,
    );
    let path = root.join("protein_homology/protein.csv.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: {} is not there", path.display());
        return;
    };
    let columns = Columns { group: Some("block".into()), id: Some("example".into()), ..Columns::default() };
    let options = ReadOptions { columns, ..ReadOptions::default() };
    let input = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
    let loaded = csv::read("protein.csv.gz", input, b',', &options).expect("valid");
    let data = &loaded.data;
    assert_eq!((data.rows(), data.cols()), (145_751, 74));
    assert_eq!(data.groups().expect("groups").len(), 153);
    assert_eq!(data.matrix().layout(), "dense, f32");
    assert!(loaded.facts.notes.contains(&"group column `block`".to_string()));
}
