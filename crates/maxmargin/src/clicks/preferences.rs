//! Preferences from clicks: which pairs of results a list with clicks puts into order.
//!
//! | rule | a clicked result is better than |
//! |---|---|
//! | `skip-above` | each unclicked one above it |
//! | `last-click` | for the last clicked one only: each unclicked one above it |
//! | `earlier-click` | each clicked one above it |
//! | `skip-previous` | the one directly above it, if unclicked |
//! | `no-click-next` | the one directly below it, if unclicked |
//! | `every-unclicked` | each unclicked one of the list |
//!
//! The first four put results over others that were shown *above* them. A model that simply turns the shown order around
//! satisfies all of these: [`reversed_share`] finds that share, and `keep` adds preferences for the shown order as a guard.
//! Results at one place are not above each other.
//!
//! References: Joachims, Optimizing search engines using clickthrough data, KDD 2002; Radlinski & Joachims, Query chains,
//! KDD 2005 (the guard there is a constraint on features of the rank; here it is pairs, which need no such features).

use super::{ClickLog, Event};
use crate::error::{Code, Error, Result};
use std::collections::BTreeMap;

/// How clicks become preferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Click > skip above.
    SkipAbove,
    /// Last click > skip above.
    LastClick,
    /// Click > earlier click.
    EarlierClick,
    /// Click > skip previous.
    SkipPrevious,
    /// Click > no-click next.
    NoClickNext,
    /// Click > every unclicked result.
    EveryUnclicked,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 6] = [
        Rule::SkipAbove,
        Rule::LastClick,
        Rule::EarlierClick,
        Rule::SkipPrevious,
        Rule::NoClickNext,
        Rule::EveryUnclicked,
    ];

    /// The name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Rule::SkipAbove => "skip-above",
            Rule::LastClick => "last-click",
            Rule::EarlierClick => "earlier-click",
            Rule::SkipPrevious => "skip-previous",
            Rule::NoClickNext => "no-click-next",
            Rule::EveryUnclicked => "every-unclicked",
        }
    }

    /// Calls `found` with the better and the worse result of each preference of a list sorted by place.
    fn of_list(self, list: &[Event], mut found: impl FnMut(&Event, &Event)) {
        let last = list.iter().rposition(|event| event.clicked);
        // The nearest results above and below: the last and the first of their places where several share one.
        let above = |at: usize| list[..at].iter().rposition(|event| event.position < list[at].position);
        let below =
            |at: usize| list[at..].iter().position(|event| event.position > list[at].position).map(|by| at + by);
        for (at, clicked) in list.iter().enumerate().filter(|(_, event)| event.clicked) {
            let higher = list.iter().take_while(|event| event.position < clicked.position);
            match self {
                Rule::SkipAbove => higher.filter(|event| !event.clicked).for_each(|event| found(clicked, event)),
                Rule::LastClick if Some(at) == last => {
                    higher.filter(|event| !event.clicked).for_each(|event| found(clicked, event));
                }
                Rule::LastClick => {}
                Rule::EarlierClick => higher.filter(|event| event.clicked).for_each(|event| found(clicked, event)),
                Rule::SkipPrevious => {
                    above(at).filter(|&at| !list[at].clicked).iter().for_each(|&at| found(clicked, &list[at]));
                }
                Rule::NoClickNext => {
                    below(at).filter(|&at| !list[at].clicked).iter().for_each(|&at| found(clicked, &list[at]));
                }
                Rule::EveryUnclicked => {
                    list.iter().filter(|event| !event.clicked).for_each(|event| found(clicked, event));
                }
            }
        }
    }
}

/// That one result is better than another for a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preference {
    /// The query.
    pub query: u32,
    /// The better item.
    pub better: u32,
    /// The worse item.
    pub worse: u32,
    /// In how many lists, and what the guard adds.
    pub weight: f64,
}

/// The preferences of a log, each pair once, in the order of queries and items. With `keep`, every list also prefers each
/// result to the next one by this weight.
pub fn preferences(log: &ClickLog, rule: Rule, keep: f64) -> Result<Vec<Preference>> {
    if !(keep.is_finite() && keep >= 0.0) {
        return Err(Error::new(Code::BadSetting, format!("the weight {keep} of the shown order is not zero or more"))
            .help("give a weight such as 0.1, relative to one preference"));
    }
    let mut all = Vec::new();
    let mut of_query: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    let mut query = None;
    let mut close = |query: Option<u32>, of_query: &mut BTreeMap<(u32, u32), (u64, u64)>| {
        let Some(query) = query else { return };
        for (&(better, worse), &(lists, kept)) in of_query.iter() {
            all.push(Preference { query, better, worse, weight: lists as f64 + keep * kept as f64 });
        }
        of_query.clear();
    };
    for range in log.impressions() {
        let list = &log.events()[range];
        if query != Some(list[0].query) {
            close(query, &mut of_query);
            query = Some(list[0].query);
        }
        rule.of_list(list, |better, worse| of_query.entry((better.item, worse.item)).or_default().0 += 1);
        if keep > 0.0 {
            for pair in list.windows(2).filter(|pair| pair[0].position < pair[1].position) {
                of_query.entry((pair[0].item, pair[1].item)).or_default().1 += 1;
            }
        }
    }
    close(query, &mut of_query);
    if all.is_empty() {
        return Err(Error::new(Code::NoPairs, format!("no list shows a preference by the rule `{}`", rule.name()))
            .help("use the rule `every-unclicked`, which compares a click with all that was not clicked"));
    }
    Ok(all)
}

/// The share of the preferences of a rule, counted once for each list, that put a result over one shown above it. If all
/// do, turning the shown order around satisfies every one of them.
pub fn reversed_share(log: &ClickLog, rule: Rule) -> f64 {
    let (mut upwards, mut all) = (0u64, 0u64);
    for list in log.impressions() {
        rule.of_list(&log.events()[list], |better, worse| {
            all += 1;
            upwards += u64::from(better.position > worse.position);
        });
    }
    if all == 0 { 0.0 } else { upwards as f64 / all as f64 }
}
