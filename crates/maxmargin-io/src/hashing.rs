//! [`Hashing`]: features that have names and no dictionary. The hash of a name chooses its column.
//!
//! ```text
//! h      = XXH3_64bits(name), seed 0, over the bytes of the name
//! column = the low BITS bits of h
//! sign   = −1 if the highest bit of h is set, +1 otherwise
//! ```
//! A feature adds sign · value to its column. Names that share a column are added up; since signs are independent of
//! columns, the products of two rows are right on average (Weinberger, Dasgupta, Langford, Smola and Attenberg, Feature
//! hashing for large scale multitask learning, ICML 2009). The names are:
//!
//! - in text, what stands before the last colon of a token, as it is written; numbers are names too;
//! - in a table, `column` for a cell that is a number, which is the value, and `column=cell` with the value 1 for a cell
//!   that is a word.

use crate::cells::Problem;
use crate::options::{Loaded, Missing, ReadOptions};
use maxmargin::data::Value;
use maxmargin::error::{Code, Error, Result};
use maxmargin::wording::counted;
use xxhash_rust::xxh3::xxh3_64;

/// See the top of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    bits: u32,
}

/// The column of a name, and whether its values are added with the opposite sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The column, counted from 0.
    pub column: u32,
    /// Whether values change their sign.
    pub negative: bool,
}

impl Hashing {
    /// The most bits. A model has a weight for every column.
    pub const MOST_BITS: u32 = 27;

    /// Hashing into 2^`bits` columns.
    pub fn new(bits: u32) -> Result<Hashing> {
        if (1..=Hashing::MOST_BITS).contains(&bits) {
            return Ok(Hashing { bits });
        }
        Err(Error::new(Code::BadSetting, format!("names cannot be hashed into 2^{bits} columns"))
            .help(format!("give ⟦hash⟧ a number of bits from 1 to {}, such as 22", Hashing::MOST_BITS)))
    }

    /// The number of columns.
    pub fn columns(self) -> usize {
        1 << self.bits
    }

    /// The column of a name, and its sign.
    #[inline]
    pub fn spot(self, name: &[u8]) -> Spot {
        let hash = xxh3_64(name);
        Spot { column: (hash & ((1 << self.bits) - 1)) as u32, negative: hash >> 63 == 1 }
    }

    /// `features hashed into 4,194,304 columns`
    pub(crate) fn note(self) -> String {
        format!("features hashed into {}", counted(self.columns() as u64, "column", "columns"))
    }

    /// Refuses data that were stored before, unless they have been hashed in the same way.
    pub(crate) fn check_stored(loaded: Loaded, options: &ReadOptions) -> Result<Loaded> {
        let Some(hashing) = options.hash else { return Ok(loaded) };
        let (file, cols) = (&loaded.facts.file, loaded.data.cols());
        if cols == hashing.columns() {
            return Ok(loaded);
        }
        let message = format!(
            "features are to be hashed into {} columns, and the file holds {} without names",
            hashing.columns(),
            counted(cols as u64, "feature", "features")
        );
        Err(Error::new(Code::BadSetting, message)
            .in_file(file)
            .help("give text or a table, or convert it with the same ⟦hash⟧ first"))
    }
}

/// The entries of one row, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct HashedRow {
    entries: Vec<(u32, f64)>,
}

impl HashedRow {
    #[inline]
    pub(crate) fn push(&mut self, spot: Spot, value: f64) {
        self.entries.push((spot.column, if spot.negative { -value } else { value }));
    }

    /// Appends the row with its columns in order, each once, and empties it. Returns the number of entries, or none if a
    /// sum is too large for a number.
    #[inline]
    pub(crate) fn finish<V: Value>(&mut self, indices: &mut Vec<u32>, values: &mut Vec<V>) -> Option<u32> {
        self.entries.sort_unstable_by_key(|entry| entry.0);
        let (before, mut finite) = (values.len(), true);
        for same in self.entries.chunk_by(|a, b| a.0 == b.0) {
            let value = V::narrow(same.iter().map(|entry| entry.1).sum());
            finite &= value.wide().is_finite();
            indices.push(same[0].0);
            values.push(value);
        }
        self.entries.clear();
        finite.then_some((values.len() - before) as u32)
    }
}

/// Some rows of a table.
#[derive(Debug, Default)]
pub(crate) struct HashedRows<V> {
    /// The number of entries of each row.
    pub(crate) lengths: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<V>,
    /// Number of missing cells.
    pub(crate) missing: u64,
}

/// The columns of a table whose features are hashed.
#[derive(Debug)]
pub(crate) struct HashedColumns {
    hashing: Hashing,
    /// Where numbers go, and `column=`, by feature.
    columns: Vec<(Spot, Vec<u8>)>,
    /// Whether a missing cell has no feature. Otherwise it is an error.
    lenient: bool,
}

/// A cell of a table, read from text or from a typed column.
pub(crate) enum HashedCell<'a> {
    Number(f64),
    Word(&'a [u8]),
}

impl HashedColumns {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>, hashing: Hashing, missing: &Missing) -> Result<Self> {
        if let Missing::Mean | Missing::Fill(_) = missing {
            return Err(Error::new(
                Code::BadSetting,
                "an empty cell has no mean to stand for where features are hashed",
            )
            .help("use ⟦missing=zero⟧, which leaves such cells out"));
        }
        let columns = names.map(|name| (hashing.spot(name.as_bytes()), format!("{name}=").into_bytes()));
        Ok(HashedColumns { hashing, columns: columns.collect(), lenient: *missing == Missing::Zero })
    }

    /// Number of features in a line of the table.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Hashes the cells of a line as rows of `features` cells each. `cell` reads one. The error names the cell.
    pub(crate) fn line<'c, V: Value>(
        &self,
        features: usize,
        out: &mut HashedRows<V>,
        row: &mut HashedRow,
        mut cell: impl FnMut(usize) -> std::result::Result<HashedCell<'c>, Problem>,
    ) -> std::result::Result<(), (usize, Problem)> {
        let mut name = Vec::new();
        for start in (0..self.len()).step_by(features.max(1)) {
            let end = (start + features).min(self.len());
            for (at, (spot, prefix)) in self.columns[start..end].iter().enumerate() {
                match cell(start + at) {
                    Ok(HashedCell::Number(0.0)) => {}
                    Ok(HashedCell::Number(value)) => row.push(*spot, value),
                    Ok(HashedCell::Word(word)) => {
                        name.clear();
                        name.extend_from_slice(prefix);
                        name.extend_from_slice(word);
                        row.push(self.hashing.spot(&name), 1.0);
                    }
                    Err(Problem::Missing) if self.lenient => out.missing += 1,
                    Err(problem) => return Err((start + at, problem)),
                }
            }
            let length = row.finish(&mut out.indices, &mut out.values);
            out.lengths.push(length.ok_or((start, Problem::NotFinite))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_always_has_the_same_column_and_sign() {
        // The reference values of XXH3_64bits with seed 0.
        assert_eq!(xxh3_64(b""), 0x2D06_8005_38D3_94C2);
        let hashing = Hashing::new(22).expect("valid");
        for name in ["word", "other", "a:b", "x=y", "17"] {
            let hash = xxh3_64(name.as_bytes());
            let spot = hashing.spot(name.as_bytes());
            assert_eq!(u64::from(spot.column), hash % (1 << 22));
            assert_eq!(spot.negative, (hash as i64) < 0);
        }
        assert_eq!(hashing.columns(), 4_194_304);
    }

    #[test]
    fn only_some_numbers_of_bits_are_possible() {
        assert!(Hashing::new(1).is_ok() && Hashing::new(Hashing::MOST_BITS).is_ok());
        for bits in [0, Hashing::MOST_BITS + 1, 64] {
            assert_eq!(Hashing::new(bits).expect_err("refused").code(), Code::BadSetting);
        }
    }

    #[test]
    fn names_spread_over_columns_and_signs() {
        let hashing = Hashing::new(8).expect("valid");
        let mut counts = [[0u32; 2]; 256];
        (0..25_600).for_each(|word| {
            let spot = hashing.spot(format!("word{word}").as_bytes());
            counts[spot.column as usize][usize::from(spot.negative)] += 1;
        });
        // 50 are expected in each, with a deviation of 7.
        assert!(counts.iter().flatten().all(|&count| (15..=90).contains(&count)), "{counts:?}");
    }

    #[test]
    fn products_of_hashed_rows_are_right_on_average() {
        // Two rows of twenty words share five of them, so their product is 5 whatever the columns are.
        let product = |bits: u32, trial: usize| {
            let hashing = Hashing::new(bits).expect("valid");
            let row = |words: std::ops::Range<usize>| {
                let mut sums = vec![0.0; hashing.columns()];
                words.for_each(|word| {
                    let spot = hashing.spot(format!("{trial}.{word}").as_bytes());
                    sums[spot.column as usize] += if spot.negative { -1.0 } else { 1.0 };
                });
                sums
            };
            row(0..20).iter().zip(&row(15..35)).map(|(a, b): (&f64, &f64)| a * b).sum::<f64>()
        };
        for bits in [3, 5, 16] {
            let mean = (0..4_000).map(|trial| product(bits, trial)).sum::<f64>() / 4_000.0;
            assert!((mean - 5.0).abs() < 0.5, "{bits} bits: {mean}");
        }
    }

    #[test]
    fn entries_of_one_column_are_added_up_in_order_of_columns() {
        let mut row = HashedRow::default();
        let at = |column, negative| Spot { column, negative };
        for (spot, value) in [(at(7, false), 1.0), (at(3, true), 2.0), (at(7, false), 0.5), (at(3, false), 2.0)] {
            row.push(spot, value);
        }
        let (mut indices, mut values) = (vec![9], vec![9.0f32]);
        assert_eq!(row.finish(&mut indices, &mut values), Some(2));
        assert_eq!((indices, values), (vec![9, 3, 7], vec![9.0, 0.0, 1.5]));
        row.push(at(1, false), f64::from(f32::MAX));
        row.push(at(1, false), f64::from(f32::MAX));
        assert_eq!(row.finish::<f32>(&mut Vec::new(), &mut Vec::new()), None);
    }
}
