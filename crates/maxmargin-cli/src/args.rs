//! The parsed command line. The flags for the settings of tasks and of reading are not here: they are made from the
//! declarations of the settings, see `flags.rs` and `for_task.rs`.

use crate::flags::{DataArguments, named};
use crate::for_task::{ForTask, Learns};
use clap::{Args, Parser, Subcommand, ValueEnum};
use maxmargin::settings::{Chosen, Setting, Task};
use maxmargin::simulate::{Pattern, Placed};
use maxmargin::wish::COMMON;
use maxmargin::wording::Size;
use maxmargin_io::{Format, RUN};

/// Learn to rank and classify with large margins, with a proof of how close to optimal the result is.
#[derive(Debug, Parser)]
#[command(name = "maxmargin", version, max_term_width = 110, after_help = START)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: Common,
}

const START: &str = "\
Start here:
  maxmargin demo                                      a tour on built-in data, writes report.html
  maxmargin train rank train.txt -o model.mm          learn to order the rows of each query
  maxmargin train rank pairs.csv --items items.csv -o model.mm   learn from pairs of a better and a worse item
  maxmargin evaluate model.mm test.txt                how good is it?
  maxmargin tune rank train.txt -o model.mm           learn with the C that works best
  maxmargin explain MM0203                            what an error means";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Put one JSON object on standard output and everything else on standard error
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Say nothing but results and errors
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
    /// Say more; twice for even more
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Common options")]
    pub(crate) verbose: u8,
    /// Threads to use; all cores unless given. The result does not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Common options")]
    pub(crate) threads: Option<u16>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Learn a model from data
    #[command(subcommand)]
    Train(ForTask<TrainArguments>),
    /// Learn from a stream, one example after the other, in memory that does not grow with it
    #[command(subcommand)]
    Learn(ForTask<LearnArguments>),
    /// Score rows with a model, one line a row in input order
    Predict(PredictArguments),
    /// List items by score, best first, with ranks that ties share and intervals
    RankItems(RankItemsArguments),
    /// Measure a model on data with known targets
    Evaluate(EvaluateArguments),
    /// Find the C, and the width of a kernel, that work best, by cross-validation
    #[command(subcommand)]
    Tune(ForTask<TuneArguments>),
    /// Show what a model is: settings, certificate, largest weights
    Inspect(InspectArguments),
    /// Recompute a model's objective and lower bound from the training data
    Verify(VerifyArguments),
    /// Make a kernel model smaller: fewer support vectors that score nearly the same
    Compact(CompactArguments),
    /// Turn data from one format into another
    Convert(ConvertArguments),
    /// Turn games or ratings into pairs with features to learn a comparison from
    Features(FeaturesArguments),
    /// Make data of any size to try things on
    Simulate(SimulateArguments),
    /// Repeat a published experiment and lay our numbers beside the published ones
    Reproduce(ReproduceArguments),
    /// Say more about an error code
    Explain(ExplainArguments),
    /// Print completions for a shell
    Completions(CompletionsArguments),
    /// Take the tour: simulate, train, evaluate and write report.html
    Demo(DemoArguments),
}

/// `train`
#[derive(Args, Debug)]
pub(crate) struct TrainArguments {
    /// The training data; `-` is standard input
    pub(crate) file: String,
    /// Learn from explicit pairs: FILE is a table with columns better,worse or left,right,outcome, and weight and group where
    /// there are any, that name rows of this file
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Where to save the model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Data to measure the model on while and after it is trained
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    pub(crate) validation: Option<String>,
    /// Metrics for held-out data, separated by commas; the first one is shown while training
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// Take settings from a TOML file; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// On Ctrl-C save the best model so far instead of nothing
    #[arg(long)]
    pub(crate) keep_partial: bool,
    /// Save without what proves the lower bound: a smaller file, which `verify` can check only in part
    #[arg(long)]
    pub(crate) no_witness: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

impl Learns for TrainArguments {
    const NAME: &'static str = "train";

    fn settings(task: Task) -> Vec<&'static Setting> {
        task.profile().all_settings().chain(RUN).collect()
    }

    fn left_out(task: Task) -> Vec<&'static Setting> {
        COMMON.iter().filter(|setting| task.profile().without.contains(&setting.name)).collect()
    }
}

/// `learn`
#[derive(Args, Debug)]
pub(crate) struct LearnArguments {
    /// The stream: a table of pairs; `-` is standard input
    pub(crate) file: String,
    /// Pairs name rows of this file, in columns left,right,outcome[,weight]
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Where to save the model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Go on from this model: exactly where it stopped, if `learn` made it and nothing is set otherwise
    #[arg(long, value_name = "MODEL")]
    pub(crate) from: Option<String>,
    /// Pass over the first pairs of the stream: those that --from has learned already
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Save the model every so many pairs as well, each time as a whole
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) snapshot_every: Option<u64>,
}

impl Learns for LearnArguments {
    const NAME: &'static str = "learn";
    const MORE: &'static str = STREAM;

    fn settings(task: Task) -> Vec<&'static Setting> {
        task.profile().streamed.iter().collect()
    }

    fn usual(_: Task) -> Chosen {
        Chosen::new()
    }
}

const STREAM: &str = "\
A stream is not scaled: nothing is known of rows that are still to come. Bring features to a common size before, or go on
from a model of `train compare --scale standard`, whose scaling is multiplied into the weights. Every pair is predicted
before it is learned from: `error` is the share of wrong predictions since the beginning, `recent` that of the last 8,192.
Ctrl-C saves what was learned so far.";

/// `tune`
#[derive(Args, Debug)]
pub(crate) struct TuneArguments {
    /// The data; `-` is standard input
    pub(crate) file: String,
    /// Learn from pairs: FILE is a table with columns better,worse[,weight][,group] that name rows of ITEMS
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Judge settings on these rows or pairs instead of folds; the model is learned from FILE alone
    #[arg(long, value_name = "FILE", conflicts_with = "folds")]
    pub(crate) validation: Option<String>,
    /// Parts to hold out in turn, 2 or more; queries and groups of pairs stay whole, classes keep their shares
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) folds: usize,
    /// The values of C: LOW:HIGH:COUNT, evenly spaced on a log scale, or a list such as 0.1,1,10 [default: 20 values]
    #[arg(long, value_name = "VALUES", allow_hyphen_values = true)]
    pub(crate) grid: Option<String>,
    /// The values of a kernel's gamma, written like those of --grid [default: 5 values around the median of distances;
    /// with --gamma that one]
    #[arg(long, value_name = "VALUES", allow_hyphen_values = true, conflicts_with = "gamma")]
    pub(crate) gamma_grid: Option<String>,
    /// Metrics, separated by commas; the first decides [default: accuracy; ndcg@10 for rank, pair-accuracy for pairs]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// Take the smallest C within one standard error of the best instead of the best
    #[arg(long)]
    pub(crate) one_standard_error: bool,
    /// Learn from all rows with the chosen C, and save the model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: Option<String>,
    /// Take settings from a TOML file; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Save without what proves the lower bound: a smaller file, which `verify` can check only in part
    #[arg(long, requires = "output")]
    pub(crate) no_witness: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

impl Learns for TuneArguments {
    const NAME: &'static str = "tune";
    const MORE: &'static str = GRID;
    const HIDDEN: &'static [&'static str] = &["c", "lambda", "nu", "early-stopping", "holdout", "memory"];

    fn settings(task: Task) -> Vec<&'static Setting> {
        TrainArguments::settings(task)
    }

    fn left_out(task: Task) -> Vec<&'static Setting> {
        TrainArguments::left_out(task)
    }
}

const GRID: &str = "\
The default grid: 20 values of C, evenly spaced on a log scale. For classify C is the weight of a row, from 1e-4 to
100. For rank it is the weight of a pair, of which there may be few or billions: there the values are those with
lambda = 1 / (C * pairs) from 10 down to 1e-6. With a kernel there are 6 values of C (classify: from 0.01 to 1000) for
each of 5 widths; folds then share kernel rows, and a setting without hope is left after half of them. Each fit stops at --tolerance like any other, and starts at the
solution for the value before.";

/// `predict`
#[derive(Args, Debug)]
pub(crate) struct PredictArguments {
    /// The model
    pub(crate) model: String,
    /// The rows to score, or the pairs to compare; `-` is standard input
    pub(crate) file: String,
    /// The items that pairs name, where the model compares and the items are in a file of their own
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Where to write; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// `lines`: score; label and score; or outcome, scores of left and right, and how far from the threshold; `trec`: a
    /// TREC run
    #[arg(long, value_enum, default_value = "lines")]
    pub(crate) format: PredictFormat,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// What `predict` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictFormat {
    /// One line a row, tab-separated
    Lines,
    /// `query Q0 document rank score maxmargin`
    Trec,
}

/// `rank-items`
#[derive(Args, Debug)]
#[command(after_long_help = RANKS)]
pub(crate) struct RankItemsArguments {
    /// The model
    pub(crate) model: String,
    /// The items to rank; those of --items unless given, or the model's own where they have no features
    #[arg(value_name = "ITEMS")]
    pub(crate) file: Option<String>,
    /// Where to write; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Add 95 % intervals, by learning again from resamples of these, the pairs the model was learned from
    #[arg(long, value_name = "PAIRS")]
    pub(crate) pairs: Option<String>,
    /// The items that the pairs name, where they are in a file of their own
    #[arg(long, value_name = "ITEMS", requires = "pairs")]
    pub(crate) items: Option<String>,
    /// Resamples for the intervals
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub(crate) resamples: u32,
    /// Seeds the resampling
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

const RANKS: &str = "\
A line an item, tab-separated: rank, id, score, and with --pairs the low and the high end of the interval. The rank is 1
and the number of items that are better by more than the threshold for ties: by score, or, with --pairs, by the low end
of the interval of the difference. Pairs say nothing about a constant added to all scores: intervals are those of scores
whose mean over the items is that of the model's.";

/// `evaluate`
#[derive(Args, Debug)]
pub(crate) struct EvaluateArguments {
    /// The model
    pub(crate) model: String,
    /// Rows with known targets, or pairs; `-` is standard input
    pub(crate) file: String,
    /// Measure on explicit pairs: FILE is a table with columns better,worse that name rows of this file
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Metrics, separated by commas, such as ndcg@10,map or auc; NAME:VARIANT picks a variant
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// Add a 95 % bootstrap interval to each metric
    #[arg(long)]
    pub(crate) interval: bool,
    /// Resamples for the interval
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub(crate) resamples: u32,
    /// Seeds the resampling
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write a table with the metrics of each query
    #[arg(long, value_name = "FILE")]
    pub(crate) per_query: Option<String>,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// `inspect`
#[derive(Args, Debug)]
pub(crate) struct InspectArguments {
    /// The model
    pub(crate) model: String,
    /// How many of the largest weights to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print the settings as TOML, for --config
    #[arg(long)]
    pub(crate) settings: bool,
}

/// `verify`
#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    /// The model
    pub(crate) model: String,
    /// The data it was trained on
    pub(crate) file: String,
    /// The items, where it was trained on pairs that name them
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// `compact`
#[derive(Args, Debug)]
pub(crate) struct CompactArguments {
    /// The model
    pub(crate) model: String,
    /// Where to save the smaller one
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Keep at most so many support vectors [default: a tenth, where --distance is not given either]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) vectors: Option<u32>,
    /// Stop once the scores are this near, as a share of the model's norm [default: 0.01, where --vectors is not given
    /// either]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) distance: Option<f64>,
}

/// `convert`
#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The data; `-` is standard input
    pub(crate) file: String,
    /// Where to write; the extension tells the format
    #[arg(long, short, value_name = "FILE", required_unless_present = "check")]
    pub(crate) output: Option<String>,
    /// The format to write, where the extension does not tell
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Stay within this much memory, such as 4GiB, where svmlight text becomes a .mmd file: larger text is read twice
    /// instead of held in memory [default: half of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// The items that the pairs in FILE name: both are written as one table with two items a row
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Verify every block of a .mmd file instead of writing anything
    #[arg(long, conflicts_with_all = ["output", "to"])]
    pub(crate) check: bool,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// `features`
#[derive(Args, Debug)]
pub(crate) struct FeaturesArguments {
    /// What the features are made of
    #[command(subcommand)]
    pub(crate) kind: FeaturesKind,
}

/// What features can be made of.
#[derive(Debug, Subcommand)]
pub(crate) enum FeaturesKind {
    /// Games in order of time become rows with what was known about both players before
    #[command(after_long_help = GAMES)]
    Games(GamesArguments),
    /// Ratings of items by users become pairs of items that one user rated
    #[command(after_long_help = RATINGS)]
    Ratings(RatingsArguments),
}

const GAMES: &str = "\
Each game becomes a row with `left.NAME` and `right.NAME` for each feature, and `outcome` (left, right or tie):
elo, glicko, glicko_deviation, games, wins, draws, losses, win_rate, draw_rate, loss_rate, score_against_higher,
score_against_lower, opponent_difference, days_since_last, and first (1 for the left player, who moves first or is at
home, 0 for the right one and for both on neutral ground). All of it is what was known before the date of the game:
games of one date do not see each other.

Columns are found by common names (home_team and away_team, white and black, ...) where no flag names them. A result is
left, right or tie (also win words such as home, white, draw, 1-0), the name of the winner, -1, 0 or 1 (1 says that
right is better), or the score 1, 0.5 or 0 of the left player; two columns of scores or goals will do as well. Games
without a result are left out and counted.";

const RATINGS: &str = "\
A user's two ratings are a comparison: the higher one is better, and ratings that differ by --tie-within at most are a
tie. Which item is left is drawn at random. With --items the output has `left.NAME` and `right.NAME` for each feature
of the items, `outcome`, and the user as `group`; without it the ids of the items as `left` and `right`.

What is said about a user is the same on both sides, so that it cancels in r(right) - r(left) of a linear model:
--users alone serves kernels. --cross makes the product of each feature of the user with each feature of the item,
which lets a linear model weigh items differently for different users.";

/// `features games`
#[derive(Args, Debug)]
pub(crate) struct GamesArguments {
    /// A table with a row a game, earlier games first; `-` is standard input
    pub(crate) file: String,
    /// Where to write, .csv or .tsv, also with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// The column of the left player
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) left: Option<String>,
    /// The column of the right player
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) right: Option<String>,
    /// The column of the result
    #[arg(long, value_name = "COLUMN", help_heading = "Columns", conflicts_with_all = ["left_score", "right_score"])]
    pub(crate) result: Option<String>,
    /// What numbers in it mean, where they do not tell: `score` of the left player, or `sign` -1, 0, 1 with 1 for right
    #[arg(long, value_enum, value_name = "MEANING", help_heading = "Columns")]
    pub(crate) result_as: Option<ResultAs>,
    /// The column of the left player's score or goals, instead of a result
    #[arg(long, value_name = "COLUMN", help_heading = "Columns", requires = "right_score")]
    pub(crate) left_score: Option<String>,
    /// The column of the right player's
    #[arg(long, value_name = "COLUMN", help_heading = "Columns", requires = "left_score")]
    pub(crate) right_score: Option<String>,
    /// The column of the date, such as 2024-05-31, or of a number that grows with time
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) date: Option<String>,
    /// The column that says where nobody moves first or is at home
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) neutral: Option<String>,
    /// Write games from this date on; earlier ones are learned from all the same
    #[arg(long, value_name = "DATE", allow_negative_numbers = true)]
    pub(crate) from: Option<String>,
    /// Write games up to this date
    #[arg(long, value_name = "DATE", allow_negative_numbers = true)]
    pub(crate) to: Option<String>,
    /// Write the columns left_player, right_player and date too; leave them out of the features with --ignore
    #[arg(long)]
    pub(crate) keep_ids: bool,
    /// Elo's factor K [default: FIDE's rule, 40, 20 or 10]
    #[arg(long, value_name = "K")]
    pub(crate) elo_factor: Option<f64>,
    /// Growth of Glicko's deviation, by the root of a day or of a numbered period [default: 8.1 for dates, which makes a
    /// new player of an old one in five years, 63.2 for numbers; 0 without dates]
    #[arg(long, value_name = "C")]
    pub(crate) growth: Option<f64>,
    /// The format of the data where it is not recognised
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) input_format: Option<Format>,
}

/// What the numbers of a result mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultAs {
    /// 1, 0.5 or 0 for the left player
    Score,
    /// -1 left, 0 tie, 1 right
    Sign,
}

/// `features ratings`
#[derive(Args, Debug)]
pub(crate) struct RatingsArguments {
    /// A table with columns user, item and rating; `-` is standard input
    pub(crate) file: String,
    /// Where to write, .csv or .tsv, also with .gz or .zst
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// A table of the items, with an id and features
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// A table of the users, with an id and features
    #[arg(long, value_name = "USERS", requires = "items")]
    pub(crate) users: Option<String>,
    /// Make products of the features of user and item, which linear models need
    #[arg(long, requires = "users")]
    pub(crate) cross: bool,
    /// Columns of ITEMS and USERS that are no features, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "items")]
    pub(crate) ignore: Vec<String>,
    /// Pairs of each user: a number, or `all` [default: each rating is part of one pair]
    #[arg(long, value_name = "N")]
    pub(crate) pairs_per_user: Option<String>,
    /// Ratings that differ by this much at most are a tie
    #[arg(long, value_name = "E", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) tie_within: f64,
    /// Seeds which ratings meet and which one is left
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The column of the user
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) user: Option<String>,
    /// The column of the item
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) item: Option<String>,
    /// The column of the rating
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) rating: Option<String>,
    /// The format of the ratings where it is not recognised
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) input_format: Option<Format>,
}

/// `simulate`
#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// What to make
    #[arg(value_enum)]
    pub(crate) kind: SimulateKind,
    /// Where to write; the extension tells the format
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// Rows (text; for search the queries follow from it)
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Queries (search)
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    pub(crate) queries: Option<u64>,
    /// Mean rows a query (search)
    #[arg(long, value_name = "N")]
    pub(crate) docs: Option<usize>,
    /// Pairs (compare)
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    pub(crate) pairs: Option<u64>,
    /// The hidden score: the square of a norm, 1, 2 or inf, or a linear one (compare) [default: 2]
    #[arg(long, value_name = "NORM", value_parser = named::<Pattern>(Pattern::ALL.map(Pattern::name)))]
    pub(crate) norm: Option<Pattern>,
    /// The share of ties (compare) [default: 0.5]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ties: Option<f64>,
    /// Where points lie: the second near the first, or both anywhere (compare) [default: near]
    #[arg(long, value_parser = named::<Placed>(Placed::ALL.map(Placed::name)))]
    pub(crate) placed: Option<Placed>,
    /// Features
    #[arg(long, value_name = "N")]
    pub(crate) features: Option<usize>,
    /// Mean non-zero features a row (text)
    #[arg(long, value_name = "N")]
    pub(crate) nonzeros: Option<usize>,
    /// Noise on the true score
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) noise: Option<f64>,
    /// Seeds the hidden model and the rows: the same seed gives the same bytes
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Other rows from the same hidden model: 0 to train on, 1 to test on, …
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) stream: u32,
    /// The format to write, where the extension does not tell
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
}

/// What can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateKind {
    /// Graded queries, as in LETOR and MSLR
    Search,
    /// Sparse unit rows of two classes with Zipf features, as in RCV1
    Text,
    /// Pairs of points of which a hidden score says which is better, or that neither is
    Compare,
}

/// `reproduce`
#[derive(Args, Debug)]
pub(crate) struct ReproduceArguments {
    /// Which experiment
    #[arg(value_enum)]
    pub(crate) experiment: Experiment,
    /// Repetitions with other seeds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub(crate) seeds: u64,
    /// Numbers of training pairs, separated by commas
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [50, 100, 200, 400])]
    pub(crate) pairs: Vec<u64>,
    /// Hidden patterns, separated by commas
    #[arg(long, value_name = "NORMS", value_delimiter = ',', default_values_t = ["inf".to_string(), "1".to_string(), "2".to_string()])]
    pub(crate) norm: Vec<String>,
    /// Where points lie: `near` as in the published code and table, `apart` as on the slides
    #[arg(long, value_parser = named::<Placed>(Placed::ALL.map(Placed::name)), default_value = "near")]
    pub(crate) placed: Placed,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A folder with real comparisons to judge all methods on too: football/results.csv.gz, chess2010/training_data.csv.gz,
    /// recipes/pairs.csv and items.csv, as far as they are there
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<String>,
    /// Leave the simulation out
    #[arg(long, requires = "data")]
    pub(crate) real_only: bool,
    /// Write an HTML report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Comparing with ties: the simulation of the support vector comparison machine
    Compare,
}

/// `explain`
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The code, such as MM0203; all codes are listed where it is left out
    pub(crate) code: Option<String>,
}

/// `completions`
#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `demo`
#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Where the report goes
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub(crate) report: String,
    /// Where data and models go
    #[arg(long, value_name = "FOLDER", default_value = "maxmargin-demo")]
    pub(crate) folder: String,
    /// Seeds the data
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
