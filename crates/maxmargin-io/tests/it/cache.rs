//! The cache file: what is written is read back, and all damage is detected.

use maxmargin::data::{Csr, Dataset, Dense, Groups, Index, Matrix, Names, Targets, Value};
use maxmargin::error::{Code, Result};
use maxmargin_io::{Facts, Format, Loaded, cache};
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The content of a sample. Everything else follows from the seed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seed: u64,
    rows: usize,
    cols: usize,
    layout: usize,
    targets: usize,
    /// One bit each: groups, weights, feature names, row ids, input order, fill values, index base.
    parts: u32,
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }

    fn real(&mut self) -> f64 {
        self.next() as f64 / 65_536.0 - 16_384.0
    }
}

fn sparse<I: Index, V: Value>(numbers: &mut Numbers, rows: usize, cols: usize) -> Csr<I, V> {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..rows {
        for column in 0..cols {
            if numbers.below(3) == 0 {
                indices.push(I::from_position(column));
                values.push(V::narrow(numbers.real()));
            }
        }
        starts.push(indices.len() as u64);
    }
    Csr::new(starts, indices, values, cols).expect("valid")
}

fn dense<V: Value>(numbers: &mut Numbers, rows: usize, cols: usize) -> Dense<V> {
    let values: Vec<V> = (0..rows * cols).map(|_| V::narrow(numbers.real())).collect();
    Dense::new(values, rows, cols).expect("valid")
}

impl Sample {
    fn make(self) -> Loaded {
        let Sample { rows, cols, .. } = self;
        let mut numbers = Numbers(self.seed);
        let numbers = &mut numbers;
        let matrix = match self.layout {
            0 => Matrix::DenseF32(dense(numbers, rows, cols)),
            1 => Matrix::DenseF64(dense(numbers, rows, cols)),
            2 => Matrix::Csr16F32(sparse(numbers, rows, cols)),
            3 => Matrix::Csr32F32(sparse(numbers, rows, cols)),
            4 => Matrix::Csr16F64(sparse(numbers, rows, cols)),
            _ => Matrix::Csr32F64(sparse(numbers, rows, cols)),
        };
        let labels: Names = ["ant", "bee", "", "zebra"].into_iter().collect();
        let targets = match self.targets {
            0 => Targets::Absent,
            1 => Targets::Real((0..rows).map(|_| numbers.real()).collect::<Vec<_>>().into()),
            2 => Targets::Labels {
                names: labels,
                codes: (0..rows).map(|_| numbers.below(4) as u32).collect::<Vec<_>>().into(),
            },
            _ => {
                let (mut starts, mut codes) = (vec![0], Vec::new());
                for _ in 0..rows {
                    codes.extend((0..4).filter(|_| numbers.below(2) == 0));
                    starts.push(codes.len() as u64);
                }
                Targets::Sets { names: labels, starts: starts.into(), codes: codes.into() }
            }
        };
        let has = |part: u32| self.parts >> part & 1 == 1;
        let mut data = Dataset::new(matrix, targets).expect("valid");
        if has(0) {
            let mut starts = vec![0];
            while starts[starts.len() - 1] < rows as u64 {
                starts.push((starts[starts.len() - 1] + 1 + numbers.below(4) as u64).min(rows as u64));
            }
            let names = (1..starts.len()).map(|group| format!("query {group}")).collect();
            data = data.with_groups(Groups::new(starts, names).expect("valid")).expect("fits");
        }
        if has(1) {
            let weights: Vec<f64> = (0..rows).map(|_| numbers.below(5) as f64 / 2.0).collect();
            data = data.with_weights(weights).expect("fits");
        }
        if has(2) {
            let names = (0..cols).map(|column| format!("feature {column} é")).collect();
            data = data.with_feature_names(names).expect("fits");
        }
        if has(3) {
            let ids = (0..rows).map(|row| "x".repeat(row % 4)).collect();
            data = data.with_row_ids(ids).expect("fits");
        }
        if has(4) {
            data = data.with_input_order((0..rows as u64).rev().collect::<Vec<_>>()).expect("fits");
        }
        let facts = Facts {
            file: "somewhere.csv".to_string(),
            format: Some(Format::Csv),
            index_base: has(6).then_some(1),
            notes: vec!["target `relevance`".to_string(), "3 cells filled".to_string()],
            fill: has(5).then(|| (0..cols).map(|_| numbers.real() / 3.0).collect()),
            ..Facts::default()
        };
        Loaded { data, facts }
    }
}

fn bytes_of(loaded: &Loaded) -> Vec<u8> {
    let mut bytes = Vec::new();
    cache::write(loaded, &mut bytes).expect("written");
    bytes
}

/// A folder with one file in it.
fn stored(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data.mmd");
    std::fs::write(&path, bytes).expect("written");
    (folder, path)
}

/// Everything that a reader could do with a file: opens it and reads all parts.
fn open_and_touch_everything(path: &Path) -> Result<Loaded> {
    let loaded = cache::open("data.mmd", path)?;
    let data = &loaded.data;
    data.matrix().check(0..data.rows())?;
    for row in 0..data.rows() {
        data.matrix().each_in_row(row, |column, value| assert!(column < data.cols() && value.is_finite()));
        data.input_row(row);
    }
    let plain = data.clone().with_hash(0);
    data.targets().select(&(0..data.rows()).collect::<Vec<_>>());
    plain.select(&(0..data.rows()).collect::<Vec<_>>())?.hash()?;
    data.to_input_order(vec![0; data.rows()]);
    let names = [data.feature_names(), data.row_ids(), data.groups().map(Groups::names)];
    names.into_iter().flatten().for_each(|names| assert_eq!(names.iter().count(), names.len()));
    Ok(loaded)
}

fn same_sparse<I: Index, V: Value>(a: &Csr<I, V>, b: &Csr<I, V>) {
    assert_eq!(a.starts(), b.starts());
    assert_eq!(a.indices(), b.indices());
    assert_eq!(a.values(), b.values());
}

fn assert_same(a: &Dataset, b: &Dataset) {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    match (a.matrix(), b.matrix()) {
        (Matrix::DenseF32(a), Matrix::DenseF32(b)) => assert_eq!(a.values(), b.values()),
        (Matrix::DenseF64(a), Matrix::DenseF64(b)) => assert_eq!(a.values(), b.values()),
        (Matrix::Csr16F32(a), Matrix::Csr16F32(b)) => same_sparse(a, b),
        (Matrix::Csr32F32(a), Matrix::Csr32F32(b)) => same_sparse(a, b),
        (Matrix::Csr16F64(a), Matrix::Csr16F64(b)) => same_sparse(a, b),
        (Matrix::Csr32F64(a), Matrix::Csr32F64(b)) => same_sparse(a, b),
        (a, b) => panic!("{} came back as {}", a.layout(), b.layout()),
    }
    match (a.targets(), b.targets()) {
        (Targets::Absent, Targets::Absent) => {}
        (Targets::Real(a), Targets::Real(b)) => assert_eq!(**a, **b),
        (Targets::Labels { names: a, codes: c }, Targets::Labels { names: b, codes: d }) => {
            assert!(a == b && **c == **d);
        }
        (Targets::Sets { names: a, starts: s, codes: c }, Targets::Sets { names: b, starts: t, codes: d }) => {
            assert!(a == b && **s == **t && **c == **d)
        }
        (a, b) => panic!("{a:?} came back as {b:?}"),
    }
    assert_eq!(a.groups().map(Groups::starts), b.groups().map(Groups::starts));
    assert_eq!(a.groups().map(Groups::names), b.groups().map(Groups::names));
    assert_eq!(a.weights(), b.weights());
    assert_eq!(a.feature_names(), b.feature_names());
    assert_eq!(a.row_ids(), b.row_ids());
    assert_eq!(a.input_order(), b.input_order());
    assert_eq!(a.hash().expect("valid"), b.hash().expect("valid"));
}

fn assert_round_trip(sample: Sample) {
    let original = sample.make();
    let bytes = bytes_of(&original);
    let (_folder, path) = stored(&bytes);
    let read = open_and_touch_everything(&path).expect("sound");
    assert_same(&original.data, &read.data);
    assert_eq!(
        read.facts,
        Facts {
            file: "data.mmd".to_string(),
            format: Some(Format::Mmd),
            bytes: Some(bytes.len() as u64),
            ..original.facts.clone()
        }
    );
    let report = cache::check(&path).expect("sound");
    assert_eq!((report.rows, report.cols), (sample.rows as u64, sample.cols as u64));
    assert_eq!((report.entries, report.layout), (read.data.matrix().entries(), read.data.matrix().layout()));
    assert_eq!((report.bytes, report.version), (bytes.len() as u64, 1));
    assert_eq!(bytes_of(&read), bytes, "writing what was read gives the same file");
    // The stored hash equals the hash of the stored values.
    let values = Dataset::new(read.data.matrix().clone(), read.data.targets().clone()).expect("fits");
    if sample.parts & 3 == 0 {
        assert_eq!(values.hash().expect("valid"), original.data.hash().expect("valid"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_is_written_comes_back(
        seed in any::<u64>(),
        rows in 0usize..40,
        cols in 0usize..30,
        layout in 0usize..6,
        targets in 0usize..4,
        parts in 0u32..128,
    ) {
        assert_round_trip(Sample { seed, rows, cols, layout, targets, parts });
    }
}

#[test]
fn sections_of_several_blocks_come_back() {
    for layout in 0..6 {
        assert_round_trip(Sample { seed: 3, rows: 5000, cols: 300, layout, targets: layout % 4, parts: 127 });
    }
}

fn small(layout: usize, targets: usize) -> Sample {
    Sample { seed: 11, rows: 7, cols: 5, layout, targets, parts: 127 }
}

fn assert_refused(path: &Path, what: &str) {
    for error in [cache::check(path).err(), open_and_touch_everything(path).err()] {
        let error = error.unwrap_or_else(|| panic!("{what} passed"));
        assert!(matches!(error.code(), Code::DamagedCache | Code::CacheVersion), "{what}: {error}");
        assert!(error.place().is_some(), "{what}: {error}");
    }
}

/// Changes one byte of a stored file while `look` runs.
fn with_change(path: &Path, bytes: &[u8], at: usize, look: impl FnOnce()) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("opened");
    let put = |byte: u8| {
        (&file).seek(SeekFrom::Start(at as u64)).expect("there");
        (&file).write_all(&[byte]).expect("written");
    };
    put(bytes[at] ^ 1 << (at % 8));
    look();
    put(bytes[at]);
}

#[test]
fn a_change_of_any_byte_of_a_small_file_is_found() {
    for (layout, targets) in [(0, 1), (2, 2), (5, 3)] {
        let bytes = bytes_of(&small(layout, targets).make());
        let (_folder, path) = stored(&bytes);
        for at in 0..bytes.len() {
            let what = format!("layout {layout}, byte {at} of {}", bytes.len());
            with_change(&path, &bytes, at, || assert_refused(&path, &what));
        }
        cache::check(&path).expect("sound again");
    }
}

#[test]
fn a_change_in_any_page_of_a_larger_file_is_found() {
    for layout in [0, 3] {
        let sample = Sample { seed: 5, rows: 9000, cols: 100, layout, targets: 1, parts: 127 };
        let bytes = bytes_of(&sample.make());
        assert!(bytes.len() > 5 << 19, "several blocks");
        let (_folder, path) = stored(&bytes);
        for at in (0..bytes.len()).step_by(4096).chain([bytes.len() - 1]) {
            with_change(&path, &bytes, at, || assert_refused(&path, &format!("layout {layout}, byte {at}")));
        }
        cache::check(&path).expect("sound again");
    }
}

#[test]
fn a_file_of_any_other_length_is_refused() {
    let bytes = bytes_of(&small(2, 3).make());
    let (_folder, path) = stored(&bytes);
    for length in (0..bytes.len()).rev() {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
        file.set_len(length as u64).expect("cut");
        assert_refused(&path, &format!("{length} bytes"));
    }
    for more in [1, 8, 64, 4096] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        let (_folder, path) = stored(&longer);
        assert_refused(&path, &format!("{more} bytes more"));
    }
}

#[test]
fn damage_is_named_by_section_and_byte() {
    let sample = Sample { seed: 5, rows: 9000, cols: 100, layout: 0, targets: 1, parts: 0 };
    let mut bytes = bytes_of(&sample.make());
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let (_folder, path) = stored(&bytes);
    let opened = cache::open("data.mmd", &path).expect("damage in the middle is not met when opening");
    opened.data.matrix().check(0..100).expect("the first rows are sound");
    let error = opened.data.matrix().check(0..9000).expect_err("damaged");
    assert_eq!(error.code(), Code::DamagedCache);
    assert!(error.message().contains("`values`") && error.message().contains("at byte"), "{error}");
    assert_eq!(error.place().map(|place| place.file.as_str()), Some("data.mmd"));
    assert!(opened.data.matrix().check(0..9000).is_err(), "damage does not go away");
    opened.data.matrix().check(8000..9000).expect("the last rows are sound");
}

#[test]
fn a_newer_version_is_told_from_damage() {
    let mut bytes = bytes_of(&small(0, 1).make());
    bytes[8] = 3;
    let (_folder, path) = stored(&bytes);
    let error = cache::open("data.mmd", &path).expect_err("newer");
    assert_eq!(error.code(), Code::CacheVersion);
    assert!(error.message().contains("version 3"), "{error}");
}

#[test]
fn many_readers_may_meet_in_the_same_file() {
    let sample = Sample { seed: 9, rows: 9000, cols: 100, layout: 2, targets: 1, parts: 127 };
    let original = sample.make();
    let (_folder, path) = stored(&bytes_of(&original));
    let shared = cache::open("data.mmd", &path).expect("sound");
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let (shared, original, path) = (&shared.data, &original.data, &path);
            scope.spawn(move || {
                let own = cache::open("data.mmd", path).expect("sound").data;
                for data in [shared, &own] {
                    for part in 0..90 {
                        let first = (part * 7 + reader * 11) % 90 * 100;
                        data.matrix().check(first..first + 100).expect("sound");
                        let mut sums = [0.0, 0.0];
                        for row in first..first + 100 {
                            data.matrix().each_in_row(row, |_, value| sums[0] += value);
                            original.matrix().each_in_row(row, |_, value| sums[1] += value);
                        }
                        assert_eq!(sums[0], sums[1]);
                    }
                }
            });
        }
    });
    assert_same(&original.data, &shared.data);
}

#[test]
fn a_mapped_file_stays_readable_while_it_is_replaced() {
    let (first, second) = (small(2, 1).make(), small(0, 1).make());
    let (_folder, path) = stored(&[]);
    cache::save(&first, &path).expect("saved");
    let read = cache::open("data.mmd", &path).expect("sound");
    cache::save(&second, &path).expect("saved");
    read.data.matrix().check(0..7).expect("the old file is still mapped");
    assert_same(&first.data, &read.data);
    assert_same(&second.data, &open_and_touch_everything(&path).expect("sound").data);
}

#[test]
fn data_that_could_not_be_read_back_are_not_written() {
    let refused = |data: Dataset| {
        let loaded = Loaded { data, facts: Facts::default() };
        assert!(cache::write(&loaded, &mut Vec::new()).is_err());
    };
    let matrix = || Matrix::DenseF64(Dense::new(vec![1.0, 2.0], 2, 1).expect("valid"));
    let with_targets = |targets| Dataset::new(matrix(), targets).expect("valid");
    refused(with_targets(Targets::Real(vec![1.0, f64::NAN].into())));
    refused(with_targets(Targets::Labels { names: ["a"].into_iter().collect(), codes: vec![0, 1].into() }));
    refused(with_targets(Targets::Absent).with_weights(vec![1.0, -1.0]).expect("fits"));
    refused(with_targets(Targets::Absent).with_input_order(vec![0, 2]).expect("fits"));
    let infinite = Matrix::DenseF32(Dense::new(vec![1.0, f32::INFINITY], 2, 1).expect("valid"));
    refused(Dataset::new(infinite, Targets::Absent).expect("valid"));
}

/// The data of the golden file. It was written once and must always load.
fn golden() -> Sample {
    Sample { seed: 2026, rows: 12, cols: 6, layout: 2, targets: 3, parts: 127 }
}

#[test]
fn the_golden_file_of_version_1_still_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/v1.mmd");
    let read = open_and_touch_everything(&path).expect("sound");
    let original = golden().make();
    assert_same(&original.data, &read.data);
    assert_eq!((read.facts.notes, read.facts.fill), (original.facts.notes.clone(), original.facts.fill.clone()));
    assert_eq!(read.facts.index_base, Some(1));
    assert_eq!(bytes_of(&original), std::fs::read(&path).expect("read"), "the same data give the same bytes");
}

#[test]
#[cfg(target_os = "linux")]
fn rows_that_are_given_back_leave_memory_and_can_be_read_again() {
    use maxmargin::data::{Dataset, Dense, Matrix, Targets};
    use maxmargin_io::{Facts, Loaded};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large-enough.mmd");
    let (rows, cols) = (4096, 512);
    let values: Vec<f32> = (0..rows * cols).map(|at| at as f32).collect();
    let dense = Dense::new(values, rows, cols).expect("valid");
    let data = Dataset::new(Matrix::DenseF32(dense), Targets::Absent).expect("valid");
    maxmargin_io::cache::save(&Loaded { data, facts: Facts::default() }, &path).expect("saved");
    let resident = || -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux");
        let (_, after) = maps.split_once("large-enough.mmd").expect("mapped");
        let (_, after) = after.split_once("Rss:").expect("a field");
        after.split_whitespace().next().expect("a number").parse().expect("kilobytes")
    };
    let matrix = maxmargin_io::cache::open("it", &path).expect("opens").data.matrix().clone();
    matrix.check(0..rows).expect("sound");
    assert!(resident() > 8000, "8 MiB are in memory");
    matrix.will_need(0..rows);
    matrix.release(0..rows / 2);
    assert!((4000..5000).contains(&resident()), "half of them went: {}", resident());
    matrix.release(rows / 2..rows);
    assert!(resident() < 300, "{}", resident());
    matrix.each_in_row(17, |column, value| assert_eq!(value, (17 * cols + column) as f64));
    let limited = matrix.limited(1 << 20);
    limited.check(0..rows).expect("sound");
    assert!(limited.is_limited() && resident() < 300, "{}", resident());
}
