//! [`Clicks`]: simulated users who click on ranked lists of graded results.
//!
//! An impression takes a random query and one of the logging policies, which are scores of all rows, and shows the highest
//! rows of the query. With probability `swap`, the first result changes places with another one. Then a user acts:
//!
//! - **Position-based**: place k is looked at with probability (1/k)^eta, and a result that is looked at is clicked if it
//!   attracts.
//! - **Cascade**: the user reads from the top, clicks the first result that attracts, and stops.
//! - **Dependent-click**: the user reads from the top, clicks whatever attracts, and after a click goes on with
//!   probability 1/2.
//!
//! A result attracts with probability `noise` + (1 − `noise`)(2^grade − 1)/(2^highest − 1), or, with a relevant grade, always
//! from that grade on and with probability `noise` below it. With trust, a user who looks at place k also clicks with
//! probability trust / k without being attracted.
//!
//! References: Joachims, Swaminathan & Schnabel, WSDM 2017; Craswell et al., WSDM 2008 (cascade); Guo, Liu & Wang, WSDM
//! 2009 (dependent click); Agarwal et al., WWW 2019 (trust).

use super::require;
use crate::clicks::{ClickLog, LogBuilder};
use crate::data::Dataset;
use crate::error::{Code, Error, Result};
use crate::parallel;
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// How a user reads a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum User {
    /// Places are looked at by chance, whatever stands there.
    #[default]
    Position,
    /// From the top to the first click.
    Cascade,
    /// From the top, possibly on after a click.
    DependentClick,
}

impl User {
    /// All users.
    pub const ALL: [User; 3] = [User::Position, User::Cascade, User::DependentClick];

    /// The name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            User::Position => "position",
            User::Cascade => "cascade",
            User::DependentClick => "dependent-click",
        }
    }
}

/// The settings of simulated clicks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClickSettings {
    /// Number of lists shown.
    pub impressions: u64,
    /// The length of a list at most.
    pub length: usize,
    /// How users read.
    pub user: User,
    /// The exponent of the position bias.
    pub eta: f64,
    /// How likely a result attracts that is not relevant.
    pub noise: f64,
    /// The grade from which a result always attracts, if grades do not attract by degrees.
    pub relevant_grade: Option<f64>,
    /// How likely the first place is clicked out of trust alone.
    pub trust: f64,
    /// How likely the first result is swapped with another one.
    pub swap: f64,
    /// The seed.
    pub seed: u64,
}

impl Default for ClickSettings {
    fn default() -> ClickSettings {
        ClickSettings {
            impressions: 10_000,
            length: 10,
            user: User::Position,
            eta: 1.0,
            noise: 0.1,
            relevant_grade: None,
            trust: 0.0,
            swap: 0.0,
            seed: 1,
        }
    }
}

/// The random stream of this generator.
const LISTS: u64 = 0x636c_6963_0001;

/// Simulated lists with clicks; see the top of the file.
pub struct Clicks<'a> {
    settings: ClickSettings,
    data: &'a Dataset,
    attracts: Vec<f64>,
    /// The rows of each query in the order of each policy.
    orders: Vec<Vec<Vec<u32>>>,
}

/// A result of a simulated list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The row.
    pub row: u32,
    /// The place, from 1.
    pub position: u32,
    /// Whether it was clicked.
    pub clicked: bool,
}

impl<'a> Clicks<'a> {
    /// Prepares users of graded rows. A policy is a score for every row; there is at least one.
    pub fn new(settings: ClickSettings, data: &'a Dataset, policies: &[Vec<f64>]) -> Result<Clicks<'a>> {
        let ClickSettings { impressions, length, eta, noise, trust, swap, .. } = settings;
        require(impressions >= 1, "⟦rows⟧", impressions, "at least 1")?;
        require(length >= 1, "`length`", length, "at least 1")?;
        require(eta >= 0.0 && eta.is_finite(), "`eta`", eta, "a number that is not negative")?;
        for (name, value) in [("⟦noise⟧", noise), ("`trust`", trust), ("`swap`", swap)] {
            require((0.0..=1.0).contains(&value), name, value, "between 0 and 1")?;
        }
        let groups = data.groups().ok_or_else(|| {
            Error::new(Code::NoGroups, "users click on lists of queries, and the rows have no queries")
                .help("add qid:ID to the rows, or name the column with ⟦group⟧")
        })?;
        let grades = data.targets().real()?;
        let highest = grades.iter().copied().fold(0.0, f64::max);
        let attracts = grades.iter().map(|&grade| match settings.relevant_grade {
            Some(relevant) if grade >= relevant => 1.0,
            Some(_) => noise,
            None if highest > 0.0 => noise + (1.0 - noise) * (grade.exp2() - 1.0).max(0.0) / (highest.exp2() - 1.0),
            None => noise,
        });
        let ordered = |scores: &Vec<f64>| {
            let of_query = |range: std::ops::Range<usize>| {
                let mut rows: Vec<u32> = range.map(|row| row as u32).collect();
                rows.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
                rows
            };
            groups.ranges().map(of_query).collect()
        };
        let orders = policies.iter().map(ordered).collect();
        Ok(Clicks { attracts: attracts.collect(), orders, settings, data })
    }

    /// How likely each place is looked at, for users to whom only the place matters.
    pub fn examination(&self) -> Option<Vec<f64>> {
        let places = self.orders.iter().flatten().map(Vec::len).max().unwrap_or(0).min(self.settings.length);
        let of = |place: usize| ((place + 1) as f64).powf(-self.settings.eta);
        (self.settings.user == User::Position).then(|| (0..places).map(of).collect())
    }

    /// The settings.
    pub fn settings(&self) -> &ClickSettings {
        &self.settings
    }

    /// The query and the results of the impression with the given number, always the same ones.
    pub fn impression(&self, number: u64) -> (usize, Vec<Shown>) {
        let settings = &self.settings;
        let mut random = Random::new(settings.seed, LISTS, number);
        let policy = &self.orders[random.below(self.orders.len() as u64) as usize];
        let query = random.below(policy.len() as u64) as usize;
        let mut rows = policy[query].clone();
        rows.truncate(settings.length);
        if rows.len() > 1 && random.chance(settings.swap) {
            let other = 1 + random.below(rows.len() as u64 - 1) as usize;
            rows.swap(0, other);
        }
        let mut reading = true;
        let list = rows.iter().enumerate().map(|(at, &row)| {
            let place = (at + 1) as f64;
            let looks = match settings.user {
                User::Position => random.chance(place.powf(-settings.eta)),
                User::Cascade | User::DependentClick => reading,
            };
            let attracted = random.chance(self.attracts[row as usize]) | random.chance(settings.trust / place);
            let clicked = looks && attracted;
            if clicked {
                reading = match settings.user {
                    User::Cascade => false,
                    User::DependentClick => random.chance(0.5),
                    User::Position => true,
                };
            }
            Shown { row, position: at as u32 + 1, clicked }
        });
        (query, list.collect())
    }

    /// The name of a row as an item: its id, or the number of the row in the input, from 1.
    pub fn item(&self, row: u32) -> Vec<u8> {
        match self.data.row_ids() {
            Some(ids) => ids.get_bytes(row as usize).trim_ascii().to_vec(),
            None => (self.data.input_row(row as usize) + 1).to_string().into_bytes(),
        }
    }

    /// The name of a query.
    pub fn query(&self, query: usize) -> &[u8] {
        self.data.groups().map_or(b"", |groups| groups.names().get_bytes(query))
    }

    /// All impressions as a log, with the true propensities if there are such.
    pub fn to_log(&self) -> Result<ClickLog> {
        let curve = self.examination();
        let lists = parallel::map(self.settings.impressions as usize, |number| self.impression(number as u64));
        let mut builder = LogBuilder::default();
        for (number, (query, list)) in lists.into_iter().enumerate() {
            let session = number.to_string();
            for Shown { row, position, clicked } in list {
                let propensity = curve.as_ref().map(|curve| curve[position as usize - 1]);
                let ids = [self.query(query), session.as_bytes(), &self.item(row)];
                builder.push(ids, Some(u64::from(position)), clicked, propensity).map_err(|bad| bad.error())?;
            }
        }
        builder.finish()
    }
}
