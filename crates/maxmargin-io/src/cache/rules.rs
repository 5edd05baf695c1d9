//! Rules for the content in addition to the checksums, so that later uses cannot fail. The writer refuses whatever the
//! reader would refuse.
//!
//! The loops over large arrays collect violations without an early exit, so that compilers can vectorise them. The
//! position of a violation is searched for only if there is one.

use crate::mapped::Plain;
use maxmargin::data::{Index, Names, Outcome, Targets, Value};
use maxmargin::parallel;

/// `Ok`, or a description of what is wrong.
pub(super) type Verdict = Result<(), String>;

/// Number of elements that one thread checks at a time.
const CHUNK: usize = 1 << 16;

/// A stored number that may be infinite or NaN.
pub(super) trait Float: Value + Plain {
    /// Whether all values are finite. Violations are collected in the width of the number, which fills the vector
    /// lanes.
    fn all_finite(values: &[Self]) -> bool;
}

impl Float for f32 {
    fn all_finite(values: &[f32]) -> bool {
        values.iter().fold(0, |offences, value| offences | u32::from(!value.is_finite())) == 0
    }
}

impl Float for f64 {
    fn all_finite(values: &[f64]) -> bool {
        values.iter().fold(0, |offences, value| offences | u64::from(!value.is_finite())) == 0
    }
}

fn expect_all<T: Sync>(values: &[T], holds: impl Fn(&T) -> bool + Sync, what: impl Fn(usize) -> String) -> Verdict {
    let chunk_holds = |chunk: &[T]| chunk.iter().fold(0, |offences, value| offences | u64::from(!holds(value))) == 0;
    let chunks: Vec<&[T]> = values.chunks(CHUNK).collect();
    if parallel::all(chunks.len(), 1, |chunk| chunk_holds(chunks[chunk])) {
        return Ok(());
    }
    Err(what(values.iter().position(|value| !holds(value)).unwrap_or_default()))
}

fn rises(starts: &[u64]) -> bool {
    let pairs = starts.iter().zip(starts.iter().skip(1));
    pairs.fold(0, |offences, (before, after)| offences | u64::from(before > after)) == 0
}

/// Whether starts, or a part of them, rise within `0..=entries`.
pub(super) fn starts_rise(starts: &[u64], entries: u64) -> bool {
    rises(starts) && starts.last().is_some_and(|&last| last <= entries)
}

/// Whether the indices of each row increase and stay below `limit`. `starts` must rise (see [`starts_rise`]) and cover
/// exactly `indices`: the first of these has the entry number `starts[0]`.
pub(super) fn rows_increase<I: Index>(starts: &[u64], indices: &[I], limit: usize) -> bool {
    let Some(&first) = starts.first() else {
        return indices.is_empty();
    };
    // Within a row, every index must be greater than the one before. A loop over all entries counts where this fails,
    // without looking at rows. All these places must be between the last entry of a row and the first of the next.
    let mut falls_between_rows = 0;
    let mut below_limit = true;
    let mut previous = first;
    for &start in &starts[1..] {
        if start == previous {
            continue;
        }
        let from = (previous - first) as usize;
        let to = (start - first) as usize;
        // In an increasing row, the last index is the largest.
        below_limit &= indices[to - 1].position() < limit;
        falls_between_rows += u64::from(from > 0 && indices[from - 1] >= indices[from]);
        previous = start;
    }
    (previous - first) as usize == indices.len() && below_limit && falls(indices) == falls_between_rows
}

/// Number of neighbouring entries that do not increase.
fn falls<I: Index>(indices: &[I]) -> u64 {
    let Some((_, after)) = indices.split_first() else {
        return 0;
    };
    // Counting in the width of a narrow index keeps all vector lanes busy. A chunk is too short to overflow it.
    after
        .chunks(32_768)
        .zip(indices.chunks(32_768))
        .map(|(after, before)| {
            let count = after.iter().zip(before).fold(0u16, |count, (a, b)| count.wrapping_add(u16::from(b >= a)));
            u64::from(count)
        })
        .sum()
}

/// The ends of names must rise and stay within the bytes.
pub(super) fn names(names: &Names) -> Verdict {
    let (bytes, ends) = names.parts();
    if ends.is_empty() || starts_rise(ends, bytes.len() as u64) {
        return Ok(());
    }
    Err("a name ends before it begins or after the last byte".to_string())
}

/// Groups must not be empty and must cover all rows.
pub(super) fn group_starts(starts: &[u64], rows: u64) -> Verdict {
    let pairs = starts.iter().zip(starts.iter().skip(1));
    let strict = pairs.fold(0, |offences, (before, after)| offences | u64::from(before >= after)) == 0;
    if starts.first() == Some(&0) && starts.last() == Some(&rows) && strict {
        return Ok(());
    }
    Err(format!("they do not increase from 0 to {rows}"))
}

/// Targets must be finite, and every label must have a name.
pub(super) fn targets(targets: &Targets) -> Verdict {
    match targets {
        Targets::Absent => Ok(()),
        Targets::Real(values) => {
            expect_all(values, |value| value.is_finite(), |row| format!("the target of row {row} is {}", values[row]))
        }
        Targets::Labels { names: labels, codes } => {
            names(labels)?;
            let limit = labels.len() as u64;
            expect_all(codes, |&code| u64::from(code) < limit, |row| format!("the label of row {row} has no name"))
        }
        Targets::Sets { names: labels, starts, codes } => {
            names(labels)?;
            let framed = starts.first() == Some(&0)
                && starts.last() == Some(&(codes.len() as u64))
                && starts_rise(starts, codes.len() as u64);
            if framed && rows_increase(starts, codes, labels.len()) {
                return Ok(());
            }
            Err("the labels of some row do not increase or have no name".to_string())
        }
    }
}

/// Weights must be finite and not negative.
pub(super) fn weights(weights: &[f64]) -> Verdict {
    expect_all(
        weights,
        |&weight| (0.0..f64::INFINITY).contains(&weight),
        |row| format!("the weight of row {row} is {}", weights[row]),
    )
}

/// Pairs must name two different rows that exist.
pub(super) fn pairs(left: &[u32], right: &[u32], rows: u64) -> Verdict {
    for side in [left, right] {
        expect_all(
            side,
            |&row| u64::from(row) < rows,
            |pair| format!("pair {pair} names row {} of {rows}", side[pair]),
        )?;
    }
    match left.iter().zip(right).position(|(left, right)| left == right) {
        None => Ok(()),
        Some(pair) => Err(format!("pair {pair} compares row {} with itself", left[pair])),
    }
}

/// Every number must be an outcome.
pub(super) fn outcomes(numbers: &[u8]) -> Result<Vec<Outcome>, String> {
    let known = |number: u8| Outcome::ALL.into_iter().find(|outcome| *outcome as u8 == number);
    let outcomes: Option<Vec<Outcome>> = numbers.iter().map(|&number| known(number)).collect();
    outcomes.ok_or_else(|| "there is no such outcome".to_string())
}

/// Every code must have a name.
pub(super) fn pair_groups(codes: &[u32], groups: &Names) -> Verdict {
    names(groups)?;
    let limit = groups.len() as u64;
    expect_all(codes, |&code| u64::from(code) < limit, |pair| format!("the group of pair {pair} has no name"))
}

/// Every position must exist.
pub(super) fn input_order(order: &[u64], rows: u64) -> Verdict {
    expect_all(order, |&position| position < rows, |row| format!("row {row} claims position {} of {rows}", order[row]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows_increase_slowly(rows: &[Vec<u16>], limit: usize) -> bool {
        rows.iter().all(|row| {
            row.windows(2).all(|pair| pair[0] < pair[1]) && row.last().is_none_or(|&last| usize::from(last) < limit)
        })
    }

    fn frame(rows: &[Vec<u16>], first: u64) -> (Vec<u64>, Vec<u16>) {
        let mut starts = vec![first];
        for row in rows {
            starts.push(starts[starts.len() - 1] + row.len() as u64);
        }
        (starts, rows.concat())
    }

    proptest! {
        #[test]
        fn counting_falls_finds_what_looking_at_each_row_finds(
            mut rows in prop::collection::vec(prop::collection::vec(0u16..12, 0..5), 0..8),
            sort in any::<bool>(),
            first in 0u64..3,
        ) {
            if sort {
                for row in &mut rows {
                    row.sort_unstable();
                    row.dedup();
                }
            }
            let (starts, indices) = frame(&rows, first);
            prop_assert_eq!(rows_increase(&starts, &indices, 11), rows_increase_slowly(&rows, 11));
        }
    }

    #[test]
    fn falls_across_chunks_are_counted() {
        let indices: Vec<u16> = (0..100_000u32).map(|i| (i % 32_768) as u16).collect();
        assert_eq!(falls(&indices), 3);
        let falling: Vec<u32> = (0..100_000).rev().collect();
        assert_eq!(falls(&falling), 99_999);
    }

    #[test]
    fn one_bad_number_among_many_is_found_and_named() {
        let mut values = vec![1.0f64; 200_000];
        assert_eq!(weights(&values), Ok(()));
        values[150_000] = -0.5;
        assert_eq!(weights(&values), Err("the weight of row 150000 is -0.5".to_string()));
        values[150_000] = f64::NAN;
        assert!(weights(&values).is_err() && targets(&Targets::Real(values.clone().into())).is_err());
        assert!(
            !f64::all_finite(&values) && !f32::all_finite(&[1.0, f32::INFINITY]) && f32::all_finite(&[f32::MAX, -0.0])
        );
    }

    #[test]
    fn labels_without_a_name_are_refused() {
        let labels: Names = ["a", "b"].into_iter().collect();
        let coded = |codes: Vec<u32>| targets(&Targets::Labels { names: labels.clone(), codes: codes.into() });
        assert!(coded(vec![0, 1, 1]).is_ok() && coded(vec![0, 2]).is_err());
        let sets = |starts: Vec<u64>, codes: Vec<u32>| {
            targets(&Targets::Sets { names: labels.clone(), starts: starts.into(), codes: codes.into() })
        };
        assert!(sets(vec![0, 2, 2], vec![0, 1]).is_ok());
        assert!(sets(vec![0, 2, 2], vec![1, 0]).is_err());
        assert!(sets(vec![0, 1, 2], vec![0, 2]).is_err());
        assert!(sets(vec![0, 3, 2], vec![0, 1]).is_err());
        assert!(sets(vec![1, 1, 2], vec![0, 1]).is_err());
    }
}
