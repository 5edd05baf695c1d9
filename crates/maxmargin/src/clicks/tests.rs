//! Logs, preferences, propensities and joins against brute force.

use super::*;
use crate::data::{Dataset, Dense, Groups, Matrix, Targets};
use crate::run::Cancel;
use crate::simulate::{ClickSettings, Clicks};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Row = (u8, u8, u8, u64, bool);

fn log_of(rows: &[Row]) -> Result<ClickLog> {
    let mut builder = LogBuilder::default();
    for (query, session, item, position, clicked) in rows {
        let names = [query, session, item].map(|name| name.to_string());
        let ids = [names[0].as_bytes(), names[1].as_bytes(), names[2].as_bytes()];
        builder.push(ids, Some(*position), *clicked, None).map_err(BadEvent::error)?;
    }
    builder.finish()
}

/// Rows 0, 1, 2, … of one query, in lists of their own order: item i of query q has the single feature i.
fn features(queries: usize, items: usize) -> Dataset {
    let rows = queries * items;
    let values = (0..rows).map(|row| (row % items) as f64).collect::<Vec<_>>();
    let matrix = Matrix::DenseF64(Dense::new(values, rows, 1).expect("dense"));
    let starts: Vec<u64> = (0..=queries).map(|query| (query * items) as u64).collect();
    let names = (0..queries).map(|query| query.to_string()).collect::<Vec<_>>();
    Dataset::new(matrix, Targets::Absent)
        .and_then(|data| data.with_groups(Groups::new(starts, names.iter().collect()).expect("groups")))
        .and_then(|data| {
            data.with_row_ids((0..rows).map(|row| (row % items).to_string()).collect::<Vec<_>>().iter().collect())
        })
        .expect("data")
}

/// Impressions with distinct places and items, so that rows are known without merging.
fn impressions() -> impl Strategy<Value = Vec<Row>> {
    let list = (0..3u8, prop::collection::vec((0..6u8, any::<bool>()), 1..6));
    prop::collection::vec(list, 1..12).prop_map(|lists| {
        let mut rows = Vec::new();
        for (session, (query, list)) in lists.into_iter().enumerate() {
            let mut seen = BTreeSet::new();
            for (item, clicked) in list {
                if seen.insert(item) {
                    rows.push((query, session as u8, item, seen.len() as u64, clicked));
                }
            }
        }
        rows
    })
}

proptest! {
    #[test]
    fn the_order_of_events_does_not_matter(rows in impressions(), seed in any::<u64>()) {
        let mut shuffled = rows.clone();
        crate::random::Random::new(seed, 1, 1).shuffle(&mut shuffled);
        // Missing propensities are no numbers, which equal nothing.
        let shown = |rows: &[Row]| {
            let log = log_of(rows).expect("a log");
            (format!("{:?}", log.events()), log.queries().clone(), log.items().clone(), log.facts().clone())
        };
        prop_assert_eq!(shown(&rows), shown(&shuffled));
    }

    #[test]
    fn preferences_equal_the_rules_by_definition(rows in impressions()) {
        let log = log_of(&rows).expect("a log");
        for rule in Rule::ALL {
            let mut expected: std::collections::BTreeMap<(String, String, String), f64> = Default::default();
            for &(query, session, better, place, clicked) in &rows {
                let list: Vec<&Row> = rows.iter().filter(|row| (row.0, row.1) == (query, session)).collect();
                let last = list.iter().filter(|row| row.4).map(|row| row.3).max();
                for row in list.iter().filter(|_| clicked) {
                    let (above, unclicked) = (row.3 < place, !row.4);
                    let prefers = match rule {
                        Rule::SkipAbove => above && unclicked,
                        Rule::LastClick => above && unclicked && last == Some(place),
                        Rule::EarlierClick => above && row.4,
                        Rule::SkipPrevious => row.3 + 1 == place && unclicked,
                        Rule::NoClickNext => row.3 == place + 1 && unclicked,
                        Rule::EveryUnclicked => unclicked,
                    };
                    if prefers {
                        *expected.entry((query.to_string(), better.to_string(), row.2.to_string())).or_default() += 1.0;
                    }
                }
            }
            match preferences(&log, rule, 0.0) {
                Ok(found) => {
                    let found: std::collections::BTreeMap<_, _> = found.iter().map(|preference| {
                        let name = |names: &Names, at: u32| names.get(at as usize).into_owned();
                        let key = (
                            name(log.queries(), preference.query),
                            name(log.items(), preference.better),
                            name(log.items(), preference.worse),
                        );
                        (key, preference.weight)
                    }).collect();
                    prop_assert_eq!(found, expected);
                }
                Err(error) => {
                    prop_assert!(expected.is_empty());
                    prop_assert_eq!(error.code(), Code::NoPairs);
                }
            }
            let upwards = matches!(rule, Rule::SkipAbove | Rule::LastClick | Rule::EarlierClick | Rule::SkipPrevious);
            if upwards && !expected_is_empty(&log, rule) {
                prop_assert_eq!(reversed_share(&log, rule), 1.0);
            }
        }
    }

    #[test]
    fn merged_lists_weigh_as_much_as_all_clicks_one_by_one(rows in impressions()) {
        let (log, data) = (log_of(&rows).expect("a log"), features(3, 6));
        let keyed = Keyed::new(&data).expect("keys");
        let propensity = Propensity::Curve(Curve::power(1.0, log.positions()).expect("a curve"));
        let scores: Vec<f64> = (0..18).map(|row| ((row * 7 + 3) % 11) as f64 / 4.0).collect();
        let hinge = |i: usize, j: usize| (1.0 - scores[i] + scores[j]).max(0.0);
        let mut expected = 0.0;
        for &(query, session, item, place, _) in rows.iter().filter(|row| row.4) {
            let own = usize::from(query) * 6 + usize::from(item);
            for other in rows.iter().filter(|row| (row.0, row.1) == (query, session) && row.2 != item) {
                expected += place as f64 * hinge(own, usize::from(query) * 6 + usize::from(other.2));
            }
        }
        match learning_lists(&log, &keyed, &propensity, None, Against::Shown) {
            Ok(joined) => {
                let targets = joined.data.targets().real().expect("numbers");
                // The feature of a row and the name of its list say which row of the features it is.
                let mut found = 0.0;
                let groups = joined.data.groups().expect("lists");
                for (group, range) in groups.ranges().enumerate() {
                    let name = groups.names().get(group).into_owned();
                    let query: usize = name.split('/').next().and_then(|name| name.parse().ok()).expect("a query");
                    let row_of = |row: usize| {
                        let mut item = 0.0;
                        joined.data.matrix().each_in_row(row, |_, value| item = value);
                        query * 6 + item as usize
                    };
                    for i in range.clone() {
                        for j in range.clone().filter(|j| *j != i) {
                            found += targets[i] * hinge(row_of(i), row_of(j));
                        }
                    }
                }
                prop_assert!((found - expected).abs() <= 1e-9 * (1.0 + expected), "{found} {expected}");
            }
            Err(error) => {
                prop_assert_eq!(error.code(), Code::NoPairs);
                prop_assert_eq!(expected, 0.0);
            }
        }
    }
}

fn expected_is_empty(log: &ClickLog, rule: Rule) -> bool {
    preferences(log, rule, 0.0).is_err()
}

#[test]
fn what_is_unusual_is_counted() {
    let mut builder = LogBuilder::default();
    let mut push = |query: &str, session: &str, item: &str, place: Option<u64>, clicked: bool| {
        builder.push([query, session, item].map(str::as_bytes), place, clicked, None).expect("valid");
    };
    // A gap, a result shown twice, a click that is logged apart, and one on a result that was not shown.
    push("a", "1", "x", Some(0), false);
    push("a", "1", "y", Some(2), false);
    push("a", "1", "y", Some(3), false);
    push("a", "1", "y", None, true);
    push("a", "1", "z", None, true);
    // Everything clicked, a single result, nothing clicked, two results at one place.
    push("b", "2", "x", Some(0), true);
    push("c", "3", "x", Some(1), false);
    push("c", "3", "y", Some(1), false);
    let log = builder.finish().expect("a log");
    let facts = log.facts();
    assert_eq!((facts.events, facts.impressions, facts.clicks), (8, 3, 2));
    assert_eq!((facts.duplicates, facts.never_shown, facts.gaps, facts.shared_places), (1, 1, 2, 1));
    assert_eq!((facts.all_clicked, facts.single, facts.without_click, facts.never_clicked), (1, 1, 1, 1));
    assert_eq!((facts.shown_once, facts.from_zero), (3, true));
    assert_eq!(log.events().iter().map(|event| event.position).collect::<Vec<_>>(), [1, 3, 1, 2, 2]);
}

#[test]
fn impossible_events_are_refused() {
    let mut builder = LogBuilder::default();
    let ids = [&b"q"[..], b"s", b"i"];
    for propensity in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
        assert!(matches!(builder.push(ids, Some(1), true, Some(propensity)), Err(BadEvent::Propensity(_))));
    }
    assert_eq!(builder.push(ids, None, false, None), Err(BadEvent::NoPosition));
    assert_eq!(builder.push(ids, Some(1 << 40), false, None), Err(BadEvent::Position(1 << 40)));
    assert!(builder.is_empty());
}

#[test]
fn clipping_says_what_it_takes_away() {
    let log = log_of(&[(1, 1, 1, 1, true), (1, 1, 2, 4, true), (1, 1, 3, 5, false)]).expect("a log");
    let propensity = Propensity::Curve(Curve::power(1.0, 5).expect("a curve"));
    let (weights, clipping) = propensity.weights(&log, None).expect("weights");
    assert_eq!((weights, clipping.lost), (vec![1.0, 4.0, 0.0], 0.0));
    let (weights, clipping) = propensity.weights(&log, Some(0.5)).expect("weights");
    assert_eq!((weights, clipping.clicks), (vec![1.0, 2.0, 0.0], 1));
    assert!((clipping.lost - 0.4).abs() < 1e-12);
    for limit in [0.0, -1.0, 1.5, f64::NAN] {
        assert_eq!(propensity.weights(&log, Some(limit)).expect_err("no limit").code(), Code::BadSetting);
    }
    assert_eq!(Propensity::Log.weights(&log, None).expect_err("none").code(), Code::BadPropensity);
}

/// A log over 400 queries of 8 results with known grades, by two policies.
fn simulated(settings: ClickSettings) -> (Dataset, ClickLog) {
    let (queries, items) = (400, 8);
    let data = features(queries, items);
    let grades: Vec<f64> = (0..queries * items).map(|row| ((row * 2654435761) >> 7) as f64 % 3.0).collect();
    let data = data.with_targets(Targets::Real(grades.into())).expect("grades");
    let policy = |seed: usize| (0..queries * items).map(|row| ((row * seed) % 97) as f64).collect::<Vec<f64>>();
    let log = Clicks::new(settings, &data, &[policy(31), policy(57), policy(83)]).expect("users").to_log();
    (data, log.expect("a log"))
}

#[test]
fn the_estimated_curve_is_the_true_one() {
    let settings = ClickSettings { impressions: 150_000, eta: 1.0, ..ClickSettings::default() };
    let (data, log) = simulated(settings);
    let keyed = Keyed::new(&data).expect("keys");
    for estimator in [Estimator::Harvest, Estimator::Swaps] {
        let found = estimate(&log, estimator, Some(&keyed), &Cancel::new()).expect("a curve");
        let mut outside = 0;
        for place in &found.positions {
            let (value, truth) = (place.value.expect("known"), 1.0 / f64::from(place.position));
            let error = (value / truth - 1.0).abs();
            assert!(error < 0.1, "{estimator:?} at {}: {value} for {truth}", place.position);
            let (low, high) = place.interval.expect("an interval");
            assert!(low <= value && value <= high);
            outside += usize::from(!(low <= truth && truth <= high));
        }
        assert!(outside <= 2, "{estimator:?}: {outside} intervals miss the truth");
        assert!(found.curve().expect("a curve").1.is_empty());
    }
    // Without features, relevance of each result is a number of its own.
    let found = estimate(&log, Estimator::RegressionEm, None, &Cancel::new()).expect("a curve");
    for place in &found.positions {
        let (value, truth) = (place.value.expect("known"), 1.0 / f64::from(place.position));
        assert!((value / truth - 1.0).abs() < 0.15, "at {}: {value} for {truth}", place.position);
    }
}

#[test]
fn places_that_cannot_be_compared_have_no_estimate() {
    // One policy: every result always stands at its place.
    let log =
        log_of(&[(1, 1, 1, 1, true), (1, 1, 2, 2, false), (1, 2, 1, 1, false), (1, 2, 2, 2, true)]).expect("a log");
    let found = estimate(&log, Estimator::Harvest, None, &Cancel::new()).expect("an answer");
    assert_eq!(found.moved, 0);
    assert!(found.positions.iter().all(|place| place.value.is_none()));
    assert_eq!(found.curve().expect_err("unknown").code(), Code::BadPropensity);
}

#[test]
fn users_click_as_they_read() {
    use crate::simulate::User;
    let run = |user: User| {
        let (_, log) =
            simulated(ClickSettings { impressions: 5_000, user, trust: 0.2, swap: 0.3, ..ClickSettings::default() });
        log
    };
    let cascade = run(User::Cascade);
    assert!(cascade.impressions().all(|list| cascade.events()[list].iter().filter(|event| event.clicked).count() <= 1));
    let dependent = run(User::DependentClick);
    let several = |log: &ClickLog| {
        log.impressions()
            .filter(|list| log.events()[list.clone()].iter().filter(|event| event.clicked).count() > 1)
            .count()
    };
    assert!(several(&dependent) > 500);
    assert!(!dependent.has_propensities() && run(User::Position).has_propensities());
}
