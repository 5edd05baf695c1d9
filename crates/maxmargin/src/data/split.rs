//! Splits of a data set into parts for training and testing: one held-out part, or folds.
//!
//! A split is a list of row numbers; [`Dataset::subset`] makes a data set from one. Groups are never divided. Without
//! groups but with classes, the split is stratified: every part gets its share of each class, up to one row.

use super::{Dataset, Groups, Targets};
use crate::error::{Code, Error, Result};
use crate::random::Random;
use crate::wording::counted;

/// Numeric targets with at most this many distinct values count as classes.
const MOST_CLASSES: usize = 32;

/// The random streams of the splits. No other part of the crate uses these numbers.
const HOLDOUT: u64 = 0x686f_6c64;
const FOLDS: u64 = 0x666f_6c64;

/// Splits rows into those to train on and those held out, both ascending.
///
/// `fraction` is the share of rows to hold out, between 0 and 1. Groups are never divided, so the share is met as
/// closely as the random order of the groups allows. Without groups, the same share of each class is held out, up to
/// one row.
pub fn holdout(data: &Dataset, fraction: f64, seed: u64) -> Result<(Vec<usize>, Vec<usize>)> {
    check_fraction(fraction)?;
    let mut random = Random::new(seed, HOLDOUT, 0);
    let mut held_out = match data.groups() {
        Some(groups) => {
            enough(groups.len(), 2, "query", "queries")?;
            hold_out_groups(groups, fraction, &mut random)
        }
        None => {
            enough(data.rows(), 2, "row", "rows")?;
            hold_out_rows(strata(data), data.rows(), fraction, &mut random)
        }
    };
    held_out.sort_unstable();
    Ok((complement(&held_out, data.rows()), held_out))
}

/// The data to train on and the data held out. For pairs, whole groups of pairs are held out, and both parts keep all
/// rows. Otherwise rows are held out as in [`holdout`].
pub fn hold_out(data: &Dataset, fraction: f64, seed: u64) -> Result<(Dataset, Dataset)> {
    let Some(pairs) = data.pairs() else {
        let (kept, held_out) = holdout(data, fraction, seed)?;
        return Ok((data.subset(&kept)?, data.subset(&held_out)?));
    };
    check_fraction(fraction)?;
    let mut random = Random::new(seed, HOLDOUT, 0);
    let mut held_out = match pairs.groups() {
        Some((codes, names)) => {
            enough(names.len(), 2, "group", "groups")?;
            let (groups, order) = Groups::from_keys(codes, names.clone())?;
            in_order(hold_out_groups(&groups, fraction, &mut random), order.as_deref())
        }
        None => {
            enough(pairs.len(), 2, "pair", "pairs")?;
            hold_out_rows(vec![(0..pairs.len()).collect()], pairs.len(), fraction, &mut random)
        }
    };
    held_out.sort_unstable();
    let part = |listed: &[usize]| data.clone().with_pairs(pairs.select(listed));
    Ok((part(&complement(&held_out, pairs.len()))?, part(&held_out)?))
}

/// Splits rows into `count` folds of nearly equal size: the rows of each fold's test part, ascending. Every row is in
/// exactly one fold.
///
/// Groups are never divided. They are assigned from the largest to the smallest, each to the fold with the fewest rows;
/// the seed orders groups of equal size. Without groups, the rows of each class are dealt to the folds in random order.
/// For pairs, the pairs are split, and the lists hold pair numbers.
pub fn folds(data: &Dataset, count: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    if count < 2 {
        let folds = counted(count as u64, "fold", "folds");
        return Err(Error::new(Code::BadSetting, format!("{folds} cannot be held out in turn"))
            .help("ask for at least 2 folds"));
    }
    let mut random = Random::new(seed, FOLDS, count as u64);
    let mut folds = match (data.pairs(), data.groups()) {
        (Some(pairs), _) => match pairs.groups() {
            Some((codes, names)) => {
                enough(names.len(), count, "group", "groups")?;
                let (groups, order) = Groups::from_keys(codes, names.clone())?;
                let dealt = deal_groups(&groups, count, &mut random);
                dealt.into_iter().map(|fold| in_order(fold, order.as_deref())).collect()
            }
            None => {
                enough(pairs.len(), count, "pair", "pairs")?;
                deal_rows(vec![(0..pairs.len()).collect()], count, &mut random)
            }
        },
        (None, Some(groups)) => {
            enough(groups.len(), count, "query", "queries")?;
            deal_groups(groups, count, &mut random)
        }
        (None, None) => {
            enough(data.rows(), count, "row", "rows")?;
            deal_rows(strata(data), count, &mut random)
        }
    };
    for fold in &mut folds {
        fold.sort_unstable();
    }
    Ok(folds)
}

/// Turns positions in grouped order into the original numbers, if the numbers were reordered.
fn in_order(places: Vec<usize>, order: Option<&[usize]>) -> Vec<usize> {
    match order {
        Some(order) => places.into_iter().map(|at| order[at]).collect(),
        None => places,
    }
}

/// The rows below `rows` that are not in an ascending list, ascending. If the list is a fold, these are its training
/// rows.
pub fn complement(listed: &[usize], rows: usize) -> Vec<usize> {
    let mut rest = Vec::with_capacity(rows.saturating_sub(listed.len()));
    let mut listed = listed.iter().copied().peekable();
    for row in 0..rows {
        if listed.next_if_eq(&row).is_none() {
            rest.push(row);
        }
    }
    rest
}

fn check_fraction(fraction: f64) -> Result<()> {
    if fraction > 0.0 && fraction < 1.0 {
        return Ok(());
    }
    Err(Error::new(Code::BadSetting, format!("cannot hold out the fraction {fraction} of the rows"))
        .help("give a fraction between 0 and 1, such as 0.2"))
}

fn enough(found: usize, needed: usize, one: &str, many: &str) -> Result<()> {
    if found >= needed {
        return Ok(());
    }
    let found = counted(found as u64, one, many);
    Err(Error::new(Code::TooFewToSplit, format!("{found} cannot be split into {needed} parts"))
        .help(format!("at least {needed} {many} are needed; give held-out data as a file of their own instead")))
}

/// The rows of each class, or all rows in one list if there are no classes.
fn strata(data: &Dataset) -> Vec<Vec<usize>> {
    let mut strata = Vec::new();
    match data.targets() {
        Targets::Labels { names, codes } => {
            strata.resize(names.len(), Vec::new());
            for (row, &code) in codes.iter().enumerate() {
                strata[code as usize].push(row);
            }
        }
        Targets::Real(values) => {
            if let Some(classes) = few_distinct(values) {
                strata.resize(classes.len(), Vec::new());
                for (row, value) in values.iter().enumerate() {
                    strata[classes.partition_point(|class| class < value)].push(row);
                }
            }
        }
        Targets::Absent | Targets::Sets { .. } => {}
    }
    strata.retain(|rows| !rows.is_empty());
    if strata.is_empty() { vec![(0..data.rows()).collect()] } else { strata }
}

/// The distinct values, ascending, if there are few of them. NaN cannot be ordered, so targets with a NaN are never
/// classes.
fn few_distinct(values: &[f64]) -> Option<Vec<f64>> {
    let mut distinct: Vec<f64> = Vec::with_capacity(MOST_CLASSES);
    for &value in values {
        let position = distinct.partition_point(|&seen| seen < value);
        if distinct.get(position) == Some(&value) {
            continue;
        }
        if distinct.len() == MOST_CLASSES || value.is_nan() {
            return None;
        }
        distinct.insert(position, value);
    }
    Some(distinct)
}

fn hold_out_groups(groups: &Groups, fraction: f64, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    random.shuffle(&mut order);
    let wanted = fraction * groups.rows() as f64;
    // Take the first groups of the random order, up to the size closest to the wanted one. Choosing groups that fit
    // would favour small groups.
    let mut held_out = Vec::new();
    for &group in &order[..groups.len() - 1] {
        let (before, rows) = (held_out.len() as f64, groups.range(group));
        if before > 0.0 && (before + rows.len() as f64 - wanted).abs() >= (before - wanted).abs() {
            break;
        }
        held_out.extend(rows);
    }
    held_out
}

fn hold_out_rows(mut strata: Vec<Vec<usize>>, rows: usize, fraction: f64, random: &mut Random) -> Vec<usize> {
    let wanted = ((fraction * rows as f64).round() as usize).clamp(1, rows - 1);
    let ideal = |stratum: &Vec<usize>| fraction * stratum.len() as f64;
    let mut counts: Vec<usize> = strata.iter().map(|stratum| ideal(stratum).floor() as usize).collect();
    // Rounding down leaves some rows over. They go to the classes that lost most by rounding. A class that would have
    // nothing left to train on comes last.
    let mut by_loss: Vec<usize> = (0..strata.len()).collect();
    let rank = |class: usize| {
        let emptied = counts[class] + 1 >= strata[class].len();
        (emptied, counts[class] as f64 - ideal(&strata[class]))
    };
    by_loss.sort_by(|&a, &b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let missing = wanted.saturating_sub(counts.iter().sum());
    for &class in by_loss.iter().take(missing) {
        counts[class] = (counts[class] + 1).min(strata[class].len());
    }
    let mut held_out = Vec::with_capacity(wanted);
    for (stratum, &count) in strata.iter_mut().zip(&counts) {
        random.shuffle(stratum);
        held_out.extend_from_slice(&stratum[..count]);
    }
    held_out
}

fn deal_groups(groups: &Groups, count: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    random.shuffle(&mut order);
    order.sort_by_key(|&group| std::cmp::Reverse(groups.range(group).len()));
    let mut folds = vec![Vec::new(); count];
    for group in order {
        if let Some(fold) = folds.iter_mut().min_by_key(|fold| fold.len()) {
            fold.extend(groups.range(group));
        }
    }
    folds
}

fn deal_rows(strata: Vec<Vec<usize>>, count: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut folds = vec![Vec::new(); count];
    // Dealing continues at the fold where the previous class stopped, so that the folds differ by at most one row.
    let mut next = 0;
    for mut stratum in strata {
        random.shuffle(&mut stratum);
        for row in stratum {
            folds[next].push(row);
            next = (next + 1) % count;
        }
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::super::{Dense, Matrix, Names};
    use super::*;
    use proptest::prelude::*;

    fn plain(targets: Targets, rows: usize) -> Dataset {
        let values: Vec<f32> = (0..rows).map(|row| row as f32).collect();
        Dataset::new(Matrix::DenseF32(Dense::new(values, rows, 1).expect("valid")), targets).expect("valid")
    }

    fn with_classes(classes: &[u32], as_words: bool) -> Dataset {
        let targets = if as_words {
            let names: Names = (0..8).map(|class| format!("class{class}")).collect();
            Targets::Labels { names, codes: classes.to_vec().into() }
        } else {
            Targets::Real(classes.iter().map(|&class| f64::from(class)).collect::<Vec<_>>().into())
        };
        plain(targets, classes.len())
    }

    fn with_groups(sizes: &[usize]) -> Dataset {
        let mut starts = vec![0u64];
        for &size in sizes {
            starts.push(starts[starts.len() - 1] + size as u64);
        }
        let names = (0..sizes.len()).map(|group| format!("q{group}")).collect();
        plain(Targets::Absent, sizes.iter().sum())
            .with_groups(Groups::new(starts, names).expect("valid"))
            .expect("valid")
    }

    fn assert_partition(parts: &[Vec<usize>], rows: usize) {
        let mut all: Vec<usize> = parts.iter().flatten().copied().collect();
        assert!(parts.iter().all(|part| part.is_sorted() && !part.is_empty()));
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
    }

    fn assert_groups_whole(parts: &[Vec<usize>], groups: &Groups) {
        for range in groups.ranges() {
            let homes = parts.iter().filter(|part| part.binary_search(&range.start).is_ok()).count();
            assert_eq!(homes, 1);
            for part in parts {
                let inside = part.iter().filter(|&row| range.contains(row)).count();
                assert!(inside == 0 || inside == range.len());
            }
        }
    }

    fn in_class(part: &[usize], classes: &[u32], class: u32) -> f64 {
        part.iter().filter(|&&row| classes[row] == class).count() as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_row_is_in_one_fold_and_classes_keep_their_shares(
            classes in prop::collection::vec(0u32..5, 2..120), count in 2usize..8, seed: u64, as_words: bool,
        ) {
            let data = with_classes(&classes, as_words);
            prop_assume!(classes.len() >= count);
            let parts = folds(&data, count, seed).expect("enough rows");
            assert_partition(&parts, classes.len());
            let sizes = || parts.iter().map(Vec::len);
            prop_assert!(sizes().max().expect("some") - sizes().min().expect("some") <= 1);
            for class in 0..5 {
                let ideal = classes.iter().filter(|&&c| c == class).count() as f64 / count as f64;
                prop_assert!(parts.iter().all(|part| (in_class(part, &classes, class) - ideal).abs() < 1.0));
            }
            prop_assert_eq!(&parts, &folds(&data, count, seed).expect("enough rows"));
            prop_assert_eq!(&parts, &folds(&with_classes(&classes, !as_words), count, seed).expect("enough rows"));
        }

        #[test]
        fn the_held_out_part_has_its_share_of_each_class(
            classes in prop::collection::vec(0u32..5, 2..120), fraction in 0.01f64..0.99, seed: u64,
        ) {
            let data = with_classes(&classes, true);
            let (train, held_out) = holdout(&data, fraction, seed).expect("enough rows");
            let ideal = (fraction * classes.len() as f64).round().clamp(1.0, classes.len() as f64 - 1.0);
            prop_assert_eq!(held_out.len() as f64, ideal);
            for class in 0..5 {
                let ideal = fraction * classes.iter().filter(|&&c| c == class).count() as f64;
                prop_assert!((in_class(&held_out, &classes, class) - ideal).abs() <= 1.0);
            }
            prop_assert_eq!((&train, &held_out), {
                let again = holdout(&data, fraction, seed).expect("enough rows");
                (&again.0.clone(), &again.1.clone())
            });
            assert_partition(&[train, held_out], classes.len());
        }

        #[test]
        fn groups_stay_whole_in_folds_and_folds_are_balanced(
            sizes in prop::collection::vec(1usize..30, 2..60), count in 2usize..8, seed: u64,
        ) {
            prop_assume!(sizes.len() >= count);
            let data = with_groups(&sizes);
            let parts = folds(&data, count, seed).expect("enough groups");
            assert_partition(&parts, data.rows());
            assert_groups_whole(&parts, data.groups().expect("groups"));
            // The last group of the fullest fold was assigned when that fold was the emptiest.
            let largest = *sizes.iter().max().expect("some");
            let rows = || parts.iter().map(Vec::len);
            prop_assert!(rows().max().expect("some") - rows().min().expect("some") <= largest);
            prop_assert_eq!(&parts, &folds(&data, count, seed).expect("enough groups"));
        }

        #[test]
        fn groups_stay_whole_in_a_held_out_part(
            sizes in prop::collection::vec(1usize..30, 2..60), fraction in 0.01f64..0.99, seed: u64,
        ) {
            let data = with_groups(&sizes);
            let (train, held_out) = holdout(&data, fraction, seed).expect("enough groups");
            let parts = [train, held_out];
            assert_partition(&parts, data.rows());
            assert_groups_whole(&parts, data.groups().expect("groups"));
            let largest = *sizes.iter().max().expect("some") as f64;
            prop_assert!((parts[1].len() as f64 - fraction * data.rows() as f64).abs() <= largest);
        }
    }

    #[test]
    fn another_seed_gives_another_split() {
        let data = with_classes(&[0, 1].repeat(50), true);
        assert_ne!(holdout(&data, 0.3, 1).expect("valid"), holdout(&data, 0.3, 2).expect("valid"));
        assert_ne!(folds(&data, 3, 1).expect("valid"), folds(&data, 3, 2).expect("valid"));
        let data = with_groups(&[3; 40]);
        assert_ne!(holdout(&data, 0.3, 1).expect("valid"), holdout(&data, 0.3, 2).expect("valid"));
        assert_ne!(folds(&data, 3, 1).expect("valid"), folds(&data, 3, 2).expect("valid"));
    }

    #[test]
    fn a_rare_class_keeps_a_row_to_train_on() {
        let mut classes = vec![0; 40];
        classes.extend([1, 2, 3]);
        let data = with_classes(&classes, true);
        for seed in 0..50 {
            let (train, _) = holdout(&data, 0.4, seed).expect("valid");
            assert!((1..4).all(|class| in_class(&train, &classes, class) == 1.0));
        }
    }

    #[test]
    fn real_targets_with_many_values_are_no_classes() {
        let values: Vec<f64> = (0..100).map(|row| f64::from(row).sqrt()).collect();
        assert_eq!(strata(&plain(Targets::Real(values.into()), 100)).len(), 1);
        let values = vec![1.0, f64::NAN, 2.0, f64::NAN];
        assert_eq!(strata(&plain(Targets::Real(values.into()), 4)).len(), 1);
        let values = vec![0.0, -0.0, 2.0, 1.0];
        assert_eq!(strata(&plain(Targets::Real(values.into()), 4)).len(), 3);
    }

    #[test]
    fn impossible_splits_are_refused_with_the_fitting_code() {
        let data = with_classes(&[0, 1, 0], true);
        for fraction in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(holdout(&data, fraction, 0).expect_err("out of range").code(), Code::BadSetting);
        }
        assert_eq!(folds(&data, 1, 0).expect_err("one fold").code(), Code::BadSetting);
        assert_eq!(folds(&data, 4, 0).expect_err("four folds of three rows").code(), Code::TooFewToSplit);
        let data = with_groups(&[10]);
        let error = holdout(&data, 0.5, 0).expect_err("one query");
        assert_eq!(error.code(), Code::TooFewToSplit);
        assert!(error.message().contains("1 query"), "{error}");
        assert_eq!(folds(&data, 2, 0).expect_err("one query").code(), Code::TooFewToSplit);
        let empty = plain(Targets::Absent, 0);
        assert_eq!(holdout(&empty, 0.5, 0).expect_err("no rows").code(), Code::TooFewToSplit);
    }

    #[test]
    fn folds_of_groups_become_data_sets_with_groups() {
        let data = with_groups(&[3, 1, 4, 1, 5, 9]);
        let parts = folds(&data, 3, 7).expect("enough groups");
        for part in &parts {
            let test = data.subset(part).expect("whole groups");
            let train = data.subset(&complement(part, data.rows())).expect("whole groups");
            let count = |data: &Dataset| data.groups().expect("kept").len();
            assert_eq!(count(&test) + count(&train), 6);
            assert_eq!(test.rows() + train.rows(), data.rows());
        }
    }
}
