//! Click logs: what was shown where, what was clicked, and how to learn from it without learning the places.
//!
//! A log has one event for each result that was shown: query, session, item, position, and whether it was clicked. The
//! events of one query and session are an *impression*: one list, shown once. [`LogBuilder`] takes events in any order, and
//! [`ClickLog`] holds them sorted, so that the same events in another order are the same log. What is unusual is counted
//! in [`LogFacts`]; what makes no sense is an error.
//!
//! - [`Propensity`], [`Curve`]: how likely the place of a click is to be looked at.
//! - [`estimate`](estimate()): that curve from the log itself.
//! - [`Rule`]: which preferences a list with clicks shows.
//! - [`learning_lists`], [`learning_pairs`]: the log joined with features, ready for training.
//!
//! An event takes 32 bytes, and each distinct query and item its name and about 100 bytes. Sessions are kept as numbers of
//! 64 bits made from their names: two sessions of one query that get the same number, which one of 2⁶⁴ / sessions² logs
//! would have, would be taken for one.

mod curve;
mod estimate;
mod join;
mod preferences;
mod regression;

pub use curve::{Clipping, Curve, Propensity};
pub use estimate::{Estimate, Estimator, PositionEstimate, estimate};
pub use join::{Against, Joined, Keyed, learning_lists, learning_pairs};
pub use preferences::{Preference, Rule, preferences, reversed_share};

use crate::data::Names;
use crate::error::{Code, Error, Result};
use rayon::slice::ParallelSliceMut;
use std::collections::HashMap;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// A result that was shown, or a click on one that was not.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The session, as a number made from its name.
    pub session: u64,
    /// The propensity that the log gives; NaN where it gives none.
    pub propensity: f64,
    /// The query, an index into [`ClickLog::queries`].
    pub query: u32,
    /// The item, an index into [`ClickLog::items`].
    pub item: u32,
    /// The place in the list, from 1.
    pub position: u32,
    /// Whether it was clicked.
    pub clicked: bool,
}

/// The position of an event without one.
const NOWHERE: u32 = u32::MAX;

/// Lists are not longer than this.
pub const MOST_POSITIONS: u32 = 1_000_000;

/// What is found in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// Events read.
    pub events: u64,
    /// Lists shown.
    pub impressions: u64,
    /// Clicks that count.
    pub clicks: u64,
    /// Lists without a click.
    pub without_click: u64,
    /// Lists in which everything was clicked.
    pub all_clicked: u64,
    /// Lists of a single result.
    pub single: u64,
    /// Queries that were shown once.
    pub shown_once: u64,
    /// Queries without a click.
    pub never_clicked: u64,
    /// Events of a result that its list already had: the first place counts, and a click on any of them.
    pub duplicates: u64,
    /// Clicks on results that were not shown: they are left out.
    pub never_shown: u64,
    /// Lists with a gap in their positions.
    pub gaps: u64,
    /// Lists with two results at one place.
    pub shared_places: u64,
    /// Whether positions counted from 0; one was then added to each.
    pub from_zero: bool,
}

/// A log of clicks, sorted by query, session and position.
#[derive(Clone, Debug)]
pub struct ClickLog {
    events: Vec<Event>,
    queries: Names,
    items: Names,
    facts: LogFacts,
}

/// Names that get numbers in the order of their first use.
#[derive(Debug, Default)]
struct Interned {
    bytes: Vec<u8>,
    ends: Vec<u64>,
    numbers: HashMap<u64, Vec<u32>>,
}

impl Interned {
    fn get(&self, number: u32) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number as usize - 1] as usize };
        &self.bytes[start..self.ends[number as usize] as usize]
    }

    fn number(&mut self, name: &[u8]) -> u32 {
        let hash = xxh3_64(name);
        let found = self.numbers.get(&hash).and_then(|same| same.iter().copied().find(|&at| self.get(at) == name));
        found.unwrap_or_else(|| {
            let number = self.ends.len() as u32;
            self.bytes.extend_from_slice(name);
            self.ends.push(self.bytes.len() as u64);
            self.numbers.entry(hash).or_default().push(number);
            number
        })
    }

    /// The names in order, and the place of each number in that order.
    fn sorted(&self) -> (Names, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.ends.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.get(a).cmp(self.get(b)));
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &number)| places[number as usize] = place as u32);
        (order.iter().map(|&number| self.get(number)).collect(), places)
    }
}

/// Collects the events of a log, in any order.
#[derive(Debug, Default)]
pub struct LogBuilder {
    events: Vec<Event>,
    queries: Interned,
    items: Interned,
    lowest: Option<u32>,
}

/// Why an event cannot be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BadEvent {
    /// A propensity that is no number above 0 and up to 1.
    Propensity(f64),
    /// A position above [`MOST_POSITIONS`].
    Position(u64),
    /// A result without a click and without a position: nothing is known about it.
    NoPosition,
}

impl BadEvent {
    /// The error, whose place is added by the reader.
    pub fn error(self) -> Error {
        match self {
            BadEvent::Propensity(value) => Error::new(
                Code::BadPropensity,
                format!("the propensity {value} is not a probability above 0 and up to 1"),
            )
            .help("a result that is never looked at cannot be clicked; correct the value, or estimate propensities instead"),
            BadEvent::Position(value) => {
                Error::new(Code::BadClickLog, format!("position {value} is beyond {MOST_POSITIONS}"))
                    .help("give the place of the result in its list, from 1")
            }
            BadEvent::NoPosition => Error::new(
                Code::BadClickLog,
                "the event has neither a position nor a click, so it says nothing",
            )
            .help("give the place of the result in its list, from 1"),
        }
    }
}

impl LogBuilder {
    /// Adds an event. A click without a position is one on a result that was not shown.
    pub fn push(
        &mut self,
        [query, session, item]: [&[u8]; 3],
        position: Option<u64>,
        clicked: bool,
        propensity: Option<f64>,
    ) -> std::result::Result<(), BadEvent> {
        if let Some(value) = propensity.filter(|value| !(*value > 0.0 && *value <= 1.0)) {
            return Err(BadEvent::Propensity(value));
        }
        let position = match position {
            Some(place) if place > u64::from(MOST_POSITIONS) => return Err(BadEvent::Position(place)),
            Some(place) => {
                let place = place as u32;
                self.lowest = Some(self.lowest.map_or(place, |lowest| lowest.min(place)));
                place
            }
            None if clicked => NOWHERE,
            None => return Err(BadEvent::NoPosition),
        };
        self.events.push(Event {
            session: xxh3_64(session),
            propensity: propensity.unwrap_or(f64::NAN),
            query: self.queries.number(query),
            item: self.items.number(item),
            position,
            clicked,
        });
        Ok(())
    }

    /// Number of events so far.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The log.
    pub fn finish(self) -> Result<ClickLog> {
        let LogBuilder { mut events, queries, items, lowest } = self;
        let mut facts = LogFacts { events: events.len() as u64, ..LogFacts::default() };
        facts.from_zero = lowest == Some(0);
        let ((queries, of_query), (items, of_item)) = (queries.sorted(), items.sorted());
        for event in &mut events {
            event.query = of_query[event.query as usize];
            event.item = of_item[event.item as usize];
            if facts.from_zero && event.position != NOWHERE {
                event.position += 1;
            }
        }
        // Results of one list come together, each with its first place, and a click on it first.
        let by_item = |event: &Event| (event.query, event.session, event.item, event.position, !event.clicked);
        events.par_sort_unstable_by(|a, b| {
            let order = by_item(a).cmp(&by_item(b));
            order.then_with(|| a.propensity.total_cmp(&b.propensity))
        });
        events.dedup_by(|next, kept| {
            let same = (next.query, next.session, next.item) == (kept.query, kept.session, kept.item);
            if same {
                // A click is often logged apart from the result that was shown.
                facts.duplicates += u64::from(next.position != NOWHERE);
                kept.clicked |= next.clicked;
                if kept.propensity.is_nan() {
                    kept.propensity = next.propensity;
                }
            }
            same
        });
        let all = events.len();
        events.retain(|event| event.position != NOWHERE);
        facts.never_shown = (all - events.len()) as u64;
        if events.is_empty() {
            return Err(Error::new(Code::BadClickLog, "the log shows no result at a position")
                .help("give a row for each result that was shown: query, session, item, position, clicked"));
        }
        events.par_sort_unstable_by_key(|event| (event.query, event.session, event.position, event.item));
        let mut log = ClickLog { events, queries, items, facts };
        log.count();
        Ok(log)
    }
}

impl ClickLog {
    /// Fills in the facts about lists.
    fn count(&mut self) {
        let mut facts = std::mem::take(&mut self.facts);
        let (mut query, mut shown, mut clicked) = (None, 0, 0);
        let end_of_query = |facts: &mut LogFacts, shown: &mut u64, clicked: &mut u64| {
            facts.shown_once += u64::from(*shown == 1);
            facts.never_clicked += u64::from(*shown > 0 && *clicked == 0);
            (*shown, *clicked) = (0, 0);
        };
        for list in self.impressions() {
            let events = &self.events[list];
            if query != Some(events[0].query) {
                end_of_query(&mut facts, &mut shown, &mut clicked);
                query = Some(events[0].query);
            }
            let clicks = events.iter().filter(|event| event.clicked).count();
            shown += 1;
            clicked += clicks as u64;
            facts.impressions += 1;
            facts.clicks += clicks as u64;
            facts.without_click += u64::from(clicks == 0);
            facts.all_clicked += u64::from(clicks == events.len());
            facts.single += u64::from(events.len() == 1);
            let first_gap = events[0].position > 1;
            let gap = |pair: &[Event]| pair[1].position > pair[0].position + 1;
            facts.gaps += u64::from(first_gap || events.windows(2).any(gap));
            facts.shared_places += u64::from(events.windows(2).any(|pair| pair[0].position == pair[1].position));
        }
        end_of_query(&mut facts, &mut shown, &mut clicked);
        self.facts = facts;
    }

    /// The results of each list, by place.
    pub fn impressions(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        std::iter::from_fn(move || {
            let first = self.events.get(start)?;
            let same = |event: &&Event| event.query == first.query && event.session == first.session;
            let list = start..start + self.events[start..].iter().take_while(same).count();
            start = list.end;
            Some(list)
        })
    }

    /// All events, sorted by query, session and position.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The names of queries, in order.
    pub fn queries(&self) -> &Names {
        &self.queries
    }

    /// The names of items, in order.
    pub fn items(&self) -> &Names {
        &self.items
    }

    /// What was found.
    pub fn facts(&self) -> &LogFacts {
        &self.facts
    }

    /// The last position.
    pub fn positions(&self) -> u32 {
        self.events.iter().map(|event| event.position).max().unwrap_or(0)
    }

    /// Whether a click has a propensity of its own.
    pub fn has_propensities(&self) -> bool {
        self.events.iter().any(|event| !event.propensity.is_nan())
    }
}

#[cfg(test)]
mod tests;
