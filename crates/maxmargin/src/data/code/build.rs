//! How codes are made: at random, of all columns there are, and from codes for noisy channels.

use super::galois::{Bch, LARGEST_DEGREE};
use super::{CodeMatrix, MOST_COLUMNS, OutputCode};
use crate::error::{Code, Error, Result};
use crate::random::Random;
use std::collections::HashSet;

/// Above this number of classes the exhaustive code has too many columns.
const MOST_EXHAUSTIVE: usize = 14;

/// The purpose of the random numbers.
const PURPOSE: u64 = 0x00C0_DE00;

/// How many random codes are drawn at most, and about how many comparisons of entries that may take.
const DRAWS: usize = 100;
const WORK: usize = 2_000_000_000;

/// How often a column that is not new is drawn again.
const TRIES: usize = 50;

fn bad<T>(message: String, help: &str) -> Result<T> {
    Err(Error::new(Code::BadSetting, message).help(help))
}

/// The number of bits that tell so many classes apart.
fn bits(classes: usize) -> usize {
    classes.saturating_sub(1).checked_ilog2().map_or(1, |bits| bits as usize + 1)
}

/// How many columns without zeros there are that ask different things.
fn different(classes: usize) -> usize {
    if classes > 60 { usize::MAX } else { (1 << (classes - 1)) - 1 }
}

/// The number of columns, given or `factor` times the logarithm of the number of classes.
fn number(classes: usize, columns: Option<u32>, factor: f64, name: &str) -> Result<usize> {
    let usual = ((factor * (classes as f64).log2()).ceil() as usize).min(different(classes));
    let columns = columns.map_or(usual, |columns| columns as usize);
    let least = bits(classes);
    if columns < least {
        return bad(
            format!("{columns} columns cannot tell {classes} classes apart"),
            &format!("give at least {least}, such as ⟦code={name}:{}⟧", usual.max(least)),
        );
    }
    if columns > MOST_COLUMNS {
        return bad(
            format!("a code of {columns} columns, and at most {MOST_COLUMNS} are possible"),
            "give fewer columns",
        );
    }
    Ok(columns)
}

/// How many codes of this size are drawn.
fn draws(classes: usize, columns: usize) -> usize {
    let work = classes.saturating_mul(classes).saturating_mul(columns.div_ceil(64));
    (WORK / work.max(1)).clamp(1, DRAWS)
}

/// The matrix with the most columns and, of these, the largest separation, of those that can be used.
fn best_of(count: usize, draw: impl Fn(u64) -> Option<CodeMatrix>) -> Option<CodeMatrix> {
    let mut best: Option<((usize, f64), OutputCode)> = None;
    for number in 0..count {
        let Some(code) = draw(number as u64).map(OutputCode::Matrix) else { continue };
        let separation = code.separation();
        let quality = (code.columns(), separation);
        if separation > 0.0 && best.as_ref().is_none_or(|(largest, _)| quality > *largest) {
            best = Some((quality, code));
        }
    }
    match best {
        Some((_, OutputCode::Matrix(matrix))) => Some(matrix),
        _ => None,
    }
}

/// From columns to rows; none if two rows are equal.
fn of_columns(columns: &[Vec<i8>], classes: usize) -> Option<CodeMatrix> {
    let rows: Vec<Vec<i8>> = (0..classes).map(|class| columns.iter().map(|column| column[class]).collect()).collect();
    let matrix = CodeMatrix::new(&rows).ok()?;
    matrix.check(|class| class.to_string()).ok()?;
    Some(matrix)
}

/// The column with its first sign positive: columns that ask the same or the opposite become equal.
fn normal(column: &[i8]) -> Vec<i8> {
    let first = column.iter().copied().find(|&entry| entry != 0).unwrap_or(1);
    column.iter().map(|entry| entry * first).collect()
}

/// Columns drawn at random: 0 with probability `zeros`, and else + or − with the same probability.
fn random_columns(classes: usize, columns: usize, zeros: f64, random: &mut Random) -> Vec<Vec<i8>> {
    let mut seen = HashSet::new();
    let draw = |random: &mut Random| -> Vec<i8> {
        let mut entry = || {
            if random.chance(zeros) {
                0
            } else if random.chance(0.5) {
                1
            } else {
                -1
            }
        };
        (0..classes).map(|_| entry()).collect()
    };
    (0..columns)
        .map(|_| {
            let mut found: Option<Vec<i8>> = None;
            for _ in 0..TRIES {
                let column = draw(random);
                if !(column.contains(&1) && column.contains(&-1)) {
                    continue;
                }
                let new = seen.insert(normal(&column));
                found = Some(column);
                if new {
                    break;
                }
            }
            // With few classes a draw may have one sign only, time and again.
            found.unwrap_or_else(|| {
                let mut column = vec![0; classes];
                (column[0], column[classes - 1]) = (1, -1);
                column
            })
        })
        .collect()
}

/// The random code with the largest separation of some draws.
pub(super) fn random(classes: usize, columns: Option<u32>, sparse: bool, seed: u64) -> Result<CodeMatrix> {
    let (factor, zeros, name) = if sparse { (15.0, 0.5, "random-sparse") } else { (10.0, 0.0, "random-dense") };
    let columns = number(classes, columns, factor, name)?;
    let purpose = PURPOSE + u64::from(sparse);
    let draw = |number: u64| {
        let mut random = Random::new(seed, purpose, number);
        of_columns(&random_columns(classes, columns, zeros, &mut random), classes)
    };
    match best_of(draws(classes, columns), draw) {
        Some(matrix) => Ok(matrix),
        None => bad(
            format!("no random code of {columns} columns was found that tells all {classes} classes apart"),
            &format!("give more columns, such as ⟦code={name}:{}⟧, or another ⟦seed⟧", 2 * columns),
        ),
    }
}

/// Every column that asks something new.
pub(super) fn exhaustive(classes: usize) -> Result<CodeMatrix> {
    if classes > MOST_EXHAUSTIVE {
        return bad(
            format!("the exhaustive code of {classes} classes has 2^{} - 1 columns", classes - 1),
            &format!("it is for at most {MOST_EXHAUSTIVE} classes; use ⟦code=bch⟧ or ⟦code=random-dense⟧"),
        );
    }
    let columns = different(classes);
    // The first class is always positive. In column j the others are the bits of j, never all of them positive.
    let rows: Vec<Vec<i8>> = (0..classes)
        .map(|class| {
            let positive = |column: usize| class == 0 || column >> (class - 1) & 1 == 1;
            (0..columns).map(|column| if positive(column) { 1 } else { -1 }).collect()
        })
        .collect();
    CodeMatrix::new(&rows)
}

/// Words of a code for noisy channels, cut to the number of columns.
pub(super) fn bch(classes: usize, columns: Option<u32>, seed: u64) -> Result<CodeMatrix> {
    let wanted = number(classes, columns, 10.0, "bch")?;
    let needed = bits(classes);
    let mut degree = 4;
    while degree < LARGEST_DEGREE && ((1usize << degree) - 1 < wanted || (1usize << degree) - 1 < 2 * needed) {
        degree += 1;
    }
    let length = (1usize << degree) - 1;
    // Without a wish, all columns of the code that ask something new.
    let wanted = if columns.is_some() { wanted } else { length };
    let Some(code) = Bch::with_messages(degree, needed).filter(|_| wanted <= length) else {
        return bad(
            format!("there is no code of {wanted} columns for {classes} classes here: the longest has {length}"),
            "give fewer columns, or use ⟦code=random-dense⟧",
        );
    };
    let draw = |number: u64| {
        let mut random = Random::new(seed, PURPOSE + 2, number);
        let words = words(&code, classes, &mut random)?;
        let mut seen = HashSet::new();
        let all = (0..code.length).map(|place| -> Vec<i8> { words.iter().map(|word| word[place]).collect() });
        let useful = all.filter(|column| column.contains(&1) && column.contains(&-1));
        let columns: Vec<Vec<i8>> = useful.filter(|column| seen.insert(normal(column))).take(wanted).collect();
        of_columns(&columns, classes)
    };
    debug_assert!(code.distance > 0);
    match best_of(draws(classes, length), draw) {
        Some(matrix) => Ok(matrix),
        None => bad(
            format!("no code of {wanted} columns was found that tells all {classes} classes apart"),
            "give more columns, or another ⟦seed⟧",
        ),
    }
}

/// Words of different messages drawn at random.
fn words(code: &Bch, classes: usize, random: &mut Random) -> Option<Vec<Vec<i8>>> {
    let mut messages: HashSet<Vec<bool>> = HashSet::new();
    let mut words = Vec::with_capacity(classes);
    // If nearly all messages are needed, they are listed instead.
    let mut listed: Vec<u64> = Vec::new();
    if code.bits() <= bits(classes) + 1 {
        listed.extend(0..1u64 << code.bits());
        random.shuffle(&mut listed);
    }
    let mut tries = 0;
    while words.len() < classes {
        let message: Vec<bool> = match listed.pop() {
            Some(number) => (0..code.bits()).map(|bit| number >> bit & 1 == 1).collect(),
            None => (0..code.bits()).map(|_| random.chance(0.5)).collect(),
        };
        tries += 1;
        if tries > 100 * classes + 1000 {
            return None;
        }
        if messages.insert(message.clone()) {
            words.push(code.word(&message).into_iter().map(|set| if set { 1 } else { -1 }).collect());
        }
    }
    Some(words)
}
