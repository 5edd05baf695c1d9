//! The parsed command line. The flags for the settings of tasks and of reading are not here: they are made from the
//! declarations of the settings, see `flags.rs` and `for_task.rs`.

use crate::clicks::ClickArguments;
use crate::flags::{DataArguments, named};
use crate::for_task::{ForTask, Learns};
use clap::builder::{ArgPredicate, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use maxmargin::clicks::{Estimator, Rule};
use maxmargin::settings::{Chosen, Setting, Task};
use maxmargin::simulate::{Pattern, Placed, User};
use maxmargin::wish::COMMON;
use maxmargin::wording::Size;
use maxmargin_io::{Format, RUN};
use std::time::Duration;

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
    /// Print only results and errors
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
    /// Print more; give it twice for even more
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Common options")]
    pub(crate) verbose: u8,
    /// Number of threads; the result does not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Common options")]
    pub(crate) threads: Option<u16>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Learn a model from data
    #[command(subcommand)]
    Train(ForTask<TrainArguments>),
    /// Learn from a stream, one example at a time, in constant memory
    #[command(subcommand)]
    Learn(ForTask<LearnArguments>),
    /// Score rows with a model, one line per row in input order
    Predict(PredictArguments),
    /// List items by score, best first, with shared ranks for ties and optional intervals
    RankItems(RankItemsArguments),
    /// Measure a model on data with known targets
    Evaluate(EvaluateArguments),
    /// Find the best C, and the best kernel width, by cross-validation
    #[command(subcommand)]
    Tune(ForTask<TuneArguments>),
    /// Show what a model is: settings, certificate, largest weights
    Inspect(InspectArguments),
    /// Recompute a model's objective and lower bound from the training data
    Verify(VerifyArguments),
    /// Make a kernel model smaller: fewer support vectors, nearly the same scores
    Compact(CompactArguments),
    /// Convert data from one format to another
    Convert(ConvertArguments),
    /// Turn games or ratings into pairs with features, for `train compare`
    Features(FeaturesArguments),
    /// Turn a log of clicks into pairs of a better and a worse result
    Preferences(PreferencesArguments),
    /// Estimate from a log of clicks how likely each position is looked at
    Propensity(PropensityArguments),
    /// Generate data of any size for experiments
    Simulate(SimulateArguments),
    /// Repeat a published experiment and show our numbers beside the published ones
    Reproduce(ReproduceArguments),
    /// Explain an error code
    Explain(ExplainArguments),
    /// Print completions for a shell
    Completions(CompletionsArguments),
    /// Take the tour: simulate, train, evaluate and write report.html
    Demo(DemoArguments),
}

/// `train`
#[derive(Args, Clone, Debug)]
pub(crate) struct TrainArguments {
    /// The training data; `-` is standard input
    #[arg(
        required = false,
        required_unless_present = "clicks",
        default_value_if("clicks", ArgPredicate::IsPresent, "")
    )]
    pub(crate) file: String,
    /// Learn from explicit pairs: FILE is a table with columns better,worse or left,right,outcome, optionally weight
    /// and group, and its pairs name rows of ITEMS
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Learning from clicks.
    #[command(flatten)]
    pub(crate) click: ClickArguments,
    /// Where to save the model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Data to measure the model on, during and after training
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    pub(crate) validation: Option<String>,
    /// Metrics for held-out data, separated by commas; the first one is shown while training
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// Take settings from a TOML file; flags win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
    /// Continue from this model of structured outputs, such as rankings by their metric, trained on the same data: only C,
    /// the solver and when to stop may differ
    #[arg(long, value_name = "MODEL")]
    pub(crate) from: Option<String>,
    /// On Ctrl-C save the best model so far instead of nothing
    #[arg(long)]
    pub(crate) keep_partial: bool,
    /// Save the model without the proof of its lower bound: the file is smaller, but `verify` checks only the objective
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

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Every {
    /// After this many examples.
    Examples(u64),
    /// After this time.
    Time(Duration),
}

/// Parses `10000`, `30s` or `5min`.
fn every(text: &str) -> Result<Every, String> {
    let times = [("ms", 0.001), ("min", 60.0), ("s", 1.0), ("h", 3600.0)];
    let time = times.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        (number > 0.0 && number < 1e9).then(|| Every::Time(Duration::from_secs_f64(number * seconds)))
    });
    let count = || text.parse::<u64>().ok().filter(|count| *count > 0).map(Every::Examples);
    time.or_else(count).ok_or_else(|| "expected a positive number of examples, or a time such as 30s".to_string())
}

/// `learn`
#[derive(Args, Debug)]
pub(crate) struct LearnArguments {
    /// The stream: rows with targets, or a table of pairs for compare and rank; `-` is standard input
    pub(crate) file: String,
    /// Pairs name rows of this file, in columns left,right,outcome[,weight]
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Where to save the model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Continue from this model; exactly where it stopped, if `learn` made it and the settings are the same
    #[arg(long, value_name = "MODEL")]
    pub(crate) from: Option<String>,
    /// Skip the first N examples of the stream, those that the model of --from has already learned
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Also save the whole model after every N examples, or after a time such as 30s or 5min
    #[arg(long, value_name = "N|TIME", value_parser = every)]
    pub(crate) snapshot_every: Option<Every>,
    /// Held-out rows to judge the model on, for --early-stopping validation
    #[arg(long, value_name = "FILE")]
    pub(crate) validation: Option<String>,
    /// The metric of --validation [default: accuracy; mae for ordinal, ndcg@10 or pair-accuracy for rank]
    #[arg(long, value_name = "NAME", requires = "validation")]
    pub(crate) metric: Option<String>,
    /// Wait for more at the end of the file, which other programs append to; Ctrl-C or SIGTERM ends the run
    #[arg(long)]
    pub(crate) follow: bool,
    /// Leave out rows that cannot be read, count them, and write them with the reason to FILE [default: an error]
    #[arg(long, value_name = "FILE")]
    pub(crate) skip_bad: Option<String>,
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
--scale standard scales every row by the rows so far. A model of `train --scale standard` can be continued without it: its
scaling is multiplied into the weights. Every example is predicted before it is learned
from: `error` is the share of wrong predictions since the beginning, `recent` that of the last 8,192 examples. Ctrl-C saves what was learned so far.";

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
    /// Number of parts to hold out in turn, 2 or more; queries and groups of pairs stay whole, classes keep their
    /// shares
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
    /// Save the model without the proof of its lower bound: the file is smaller, but `verify` checks only the objective
    #[arg(long, requires = "output")]
    pub(crate) no_witness: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

impl Learns for TuneArguments {
    const NAME: &'static str = "tune";
    const MORE: &'static str = GRID;
    const HIDDEN: &'static [&'static str] =
        &["c", "lambda", "nu", "early-stopping", "judge-every", "holdout", "memory"];

    fn settings(task: Task) -> Vec<&'static Setting> {
        TrainArguments::settings(task)
    }

    fn left_out(task: Task) -> Vec<&'static Setting> {
        TrainArguments::left_out(task)
    }
}

const GRID: &str = "\
The default grid has 20 values of C, evenly spaced on a log scale. For classify, C is the weight of a row, and the grid
goes from 1e-4 to 100. For rank, C is the weight of a pair, and the number of pairs may be small or in the billions: the
grid is chosen so that lambda = 1 / (C * pairs) goes from 10 down to 1e-6. With a kernel there are 6 values of C (for
classify from 0.01 to 1000) for each of 5 widths. The folds then share kernel rows, and a setting that is clearly worse
is dropped after half of the folds. Each fit stops at --tolerance, and starts at the solution for the previous value.";

/// `predict`
#[derive(Args, Debug)]
pub(crate) struct PredictArguments {
    /// The model
    pub(crate) model: String,
    /// The rows to score, or the pairs to compare; `-` is standard input
    pub(crate) file: String,
    /// The items that the pairs name, if they are in a separate file (models that compare)
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// `lines`: the score; label and score; or outcome, both scores and the distance to the threshold. `trec`: a TREC
    /// run
    #[arg(long, value_enum, default_value = "lines")]
    pub(crate) format: PredictFormat,
    /// After the label, the score of every class in the order of `inspect` (models of several classes)
    #[arg(long)]
    pub(crate) all_scores: bool,
    /// After the label, the probability of every class in the order of `inspect`, the negative class first (models with
    /// probabilities)
    #[arg(long, conflicts_with = "all_scores")]
    pub(crate) probabilities: bool,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// What `predict` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictFormat {
    /// One line per row, tab-separated
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
    /// The items to rank [default: those of --items, or the model's own items if they have no features]
    #[arg(value_name = "ITEMS")]
    pub(crate) file: Option<String>,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Add 95 % intervals, by training again on resamples of the training pairs, given here
    #[arg(long, value_name = "PAIRS")]
    pub(crate) pairs: Option<String>,
    /// The items that the pairs name, if they are in a separate file
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
The output has one line per item, tab-separated: rank, id, score, and with --pairs the low and the high end of the
interval. The rank is 1 plus the number of items that are better by more than the threshold for ties. Items are compared
by score or, with --pairs, by the low end of the interval of the difference. Pairs do not determine a constant added to
all scores, so the scores of every resample are shifted to the mean score of the model over the items.";

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
    /// The log of clicks, if the model was trained on one; FILE then holds the features
    #[arg(long, value_name = "LOG")]
    pub(crate) clicks: Vec<String>,
    /// The items, if the model was trained on pairs that name them
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
    /// Where to save the smaller model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) output: String,
    /// Keep at most N support vectors [default: a tenth of them, if --distance is not given either]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) vectors: Option<u32>,
    /// Stop when the scores are this close to those of the model, as a share of its norm [default: 0.01, if --vectors
    /// is not given either]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) distance: Option<f64>,
}

/// `convert`
#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The data; `-` is standard input
    pub(crate) file: String,
    /// Where to write; the extension determines the format
    #[arg(long, short, value_name = "FILE", required_unless_present = "check")]
    pub(crate) output: Option<String>,
    /// The format to write, if the extension does not determine it
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Memory limit for turning svmlight text into a .mmd file, such as 4GiB; larger text is read twice instead of held
    /// in memory [default: half of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Size>,
    /// The items that the pairs in FILE name; the output is one table with two items per row
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
    /// Turn games, in order of time, into rows with what was known about both players before each game
    #[command(after_long_help = GAMES)]
    Games(GamesArguments),
    /// Turn ratings of items by users into pairs of items rated by the same user
    #[command(after_long_help = RATINGS)]
    Ratings(RatingsArguments),
}

const GAMES: &str = "\
Each game becomes a row with `left.NAME` and `right.NAME` for each feature, and `outcome` (left, right or tie):
elo, glicko, glicko_deviation, games, wins, draws, losses, win_rate, draw_rate, loss_rate, score_against_higher,
score_against_lower, opponent_difference, days_since_last, and first (1 for the left player, who moves first or is at
home, 0 for the right one and for both on neutral ground). The features use only what was known before the date of the
game: games of the same date do not affect each other.

Columns that no flag names are found by common names (home_team and away_team, white and black, ...). A result is left,
right or tie (or a word such as home, white, draw or 1-0), the name of the winner, -1, 0 or 1 (1 means that right is
better), or the score 1, 0.5 or 0 of the left player. Two columns of scores or goals work too. Games without a result
are left out, and their number is printed.";

const RATINGS: &str = "\
Two ratings of one user are a comparison: the higher one is better, and ratings that differ by at most --tie-within are
a tie. The left item is chosen at random. With --items, the output has `left.NAME` and `right.NAME` for each feature of
the items, `outcome`, and the user as `group`. Without --items, it has the ids of the items as `left` and `right`.

The features of a user are the same on both sides, so they cancel in r(right) - r(left) of a linear model: --users alone
helps only with a kernel. --cross makes the product of each feature of the user with each feature of the item, so that a
linear model can weight items differently for different users.";

/// `features games`
#[derive(Args, Debug)]
pub(crate) struct GamesArguments {
    /// A table with one row per game, earlier games first; `-` is standard input
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
    /// What numbers in the result column mean, if it is unclear: `score` of the left player, or `sign` -1, 0 or 1,
    /// where 1 is a win of the right player
    #[arg(long, value_enum, value_name = "MEANING", help_heading = "Columns")]
    pub(crate) result_as: Option<ResultAs>,
    /// The column of the left player's score or goals, instead of a result
    #[arg(long, value_name = "COLUMN", help_heading = "Columns", requires = "right_score")]
    pub(crate) left_score: Option<String>,
    /// The column of the right player's score or goals
    #[arg(long, value_name = "COLUMN", help_heading = "Columns", requires = "left_score")]
    pub(crate) right_score: Option<String>,
    /// The column of the date, such as 2024-05-31, or of a number that grows with time
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) date: Option<String>,
    /// The column that marks games in which neither player moves first or is at home
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub(crate) neutral: Option<String>,
    /// Write only games from this date on; earlier games still count in the features
    #[arg(long, value_name = "DATE", allow_negative_numbers = true)]
    pub(crate) from: Option<String>,
    /// Write only games up to this date
    #[arg(long, value_name = "DATE", allow_negative_numbers = true)]
    pub(crate) to: Option<String>,
    /// Write the columns left_player, right_player and date too; leave them out of the features with --ignore
    #[arg(long)]
    pub(crate) keep_ids: bool,
    /// Elo's factor K [default: FIDE's rule, 40, 20 or 10]
    #[arg(long, value_name = "K")]
    pub(crate) elo_factor: Option<f64>,
    /// Growth of Glicko's deviation per square root of a day, or of a numbered period [default: 8.1 for dates, with
    /// which an absent player counts as new after five years; 63.2 for numbers; 0 without dates]
    #[arg(long, value_name = "C")]
    pub(crate) growth: Option<f64>,
    /// The format of the data, if it is not recognised
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
    /// Multiply the features of user and item; linear models need these products
    #[arg(long, requires = "users")]
    pub(crate) cross: bool,
    /// The column of ITEMS and of USERS that holds the id [default: `id`, or another common name]
    #[arg(long, value_name = "COLUMN", requires = "items")]
    pub(crate) id: Option<String>,
    /// Columns of ITEMS and USERS that are not features, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', requires = "items")]
    pub(crate) ignore: Vec<String>,
    /// Number of pairs per user, or `all` [default: each rating is part of one pair]
    #[arg(long, value_name = "N")]
    pub(crate) pairs_per_user: Option<String>,
    /// Ratings that differ by at most this much are a tie
    #[arg(long, value_name = "E", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) tie_within: f64,
    /// Seeds the random choice of pairs and of the left item
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
    /// The format of the ratings, if it is not recognised
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) input_format: Option<Format>,
}

/// `preferences`
#[derive(Args, Debug)]
pub(crate) struct PreferencesArguments {
    /// The log: columns query,session,item,position,clicked, as a table or JSON lines; two files for UBI
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<String>,
    /// Where to write the pairs: better,worse,weight,group
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// What a clicked result is better than
    #[arg(long, value_parser = named::<Rule>(Rule::ALL.map(Rule::name)), default_value = Rule::SkipAbove.name())]
    pub(crate) rule: Rule,
    /// Also prefer each result to the next one shown, by this weight, so that the shown order is not turned around
    #[arg(long, value_name = "WEIGHT", default_value_t = 0.0)]
    pub(crate) keep_order: f64,
}

/// `propensity`
#[derive(Args, Debug)]
pub(crate) struct PropensityArguments {
    /// The log: columns query,session,item,position,clicked, as a table or JSON lines; two files for UBI
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<String>,
    /// How to estimate [default: harvest]
    #[arg(long, value_parser = estimators())]
    pub(crate) method: Option<Estimator>,
    /// Features of each query and item, or of each item, for regression-em
    #[arg(long, value_name = "ITEMS")]
    pub(crate) items: Option<String>,
    /// Write a table with columns position,propensity,low,high,shown,clicks, which --propensity reads
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// How to read.
    #[command(flatten)]
    pub(crate) data: DataArguments,
}

/// The names of estimators.
fn estimators() -> impl TypedValueParser<Value = Estimator> {
    PossibleValuesParser::new(Estimator::ALL.map(Estimator::name))
        .map(|name| Estimator::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Estimator::Harvest))
}

/// `simulate`
#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    /// What to make
    #[arg(value_enum)]
    pub(crate) kind: SimulateKind,
    /// Where to write; the extension determines the format
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// Number of rows (text, multilabel; for search it determines the number of queries)
    #[arg(long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Number of queries (search)
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    pub(crate) queries: Option<u64>,
    /// Mean number of rows per query (search)
    #[arg(long, value_name = "N")]
    pub(crate) docs: Option<usize>,
    /// Number of pairs (compare)
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    pub(crate) pairs: Option<u64>,
    /// The hidden score: the square of the 1-, 2- or inf-norm, or linear (compare) [default: 2]
    #[arg(long, value_name = "NORM", value_parser = named::<Pattern>(Pattern::ALL.map(Pattern::name)))]
    pub(crate) norm: Option<Pattern>,
    /// Number of labels (multilabel)
    #[arg(long, value_name = "N")]
    pub(crate) labels: Option<usize>,
    /// The share of ties (compare) [default: 0.5]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ties: Option<f64>,
    /// Where the points of a pair lie: the second near the first, or both anywhere (compare) [default: near]
    #[arg(long, value_parser = named::<Placed>(Placed::ALL.map(Placed::name)))]
    pub(crate) placed: Option<Placed>,
    /// Number of features
    #[arg(long, value_name = "N")]
    pub(crate) features: Option<usize>,
    /// Mean number of non-zero features per row (text)
    #[arg(long, value_name = "N")]
    pub(crate) nonzeros: Option<usize>,
    /// Noise on the true score
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) noise: Option<f64>,
    /// Seeds the hidden model and the rows: the same seed gives the same bytes
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Makes other rows from the same hidden model, for example 0 to train on and 1 to test on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) stream: u32,
    /// The format to write, if the extension does not determine it
    #[arg(long, value_parser = named::<Format>(Format::ALL.map(Format::name)), value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Clicks on lists.
    #[command(flatten)]
    pub(crate) clicks: SimulateClicks,
}

/// `simulate clicks`
#[derive(Args, Debug)]
#[command(next_help_heading = "Clicks")]
pub(crate) struct SimulateClicks {
    /// The graded rows that are shown, such as those of `simulate search`
    #[arg(long, value_name = "FILE")]
    pub(crate) items: Option<String>,
    /// Results of a list at most [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) length: Option<usize>,
    /// How users read a list [default: position]
    #[arg(long, value_parser = named::<User>(User::ALL.map(User::name)))]
    pub(crate) user: Option<User>,
    /// Place k is looked at with probability (1/k)^ETA [default: 1]
    #[arg(long, value_name = "ETA")]
    pub(crate) eta: Option<f64>,
    /// Results of this grade and above attract always, others by --noise alone [default: grades attract by degrees]
    #[arg(long, value_name = "GRADE")]
    pub(crate) relevant_grade: Option<f64>,
    /// How likely the first place is clicked out of trust alone [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub(crate) trust: Option<f64>,
    /// How likely the first result of a list is swapped with another one [default: 0]
    #[arg(long, value_name = "SHARE")]
    pub(crate) swap: Option<f64>,
    /// Number of rankers that show results, each trained on another hundredth of the queries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) policies: Option<usize>,
}

/// What can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateKind {
    /// Graded queries, as in LETOR and MSLR
    Search,
    /// Sparse unit rows of two classes with Zipf features, as in RCV1
    Text,
    /// Pairs of points; a hidden score decides which is better, or that they tie
    Compare,
    /// Rows with sets of labels
    Multilabel,
    /// A log of clicks on the graded rows of --items
    Clicks,
}

/// `reproduce`
#[derive(Args, Debug)]
pub(crate) struct ReproduceArguments {
    /// Which experiment
    #[arg(value_enum)]
    pub(crate) experiment: Experiment,
    /// Number of repetitions, each with another seed
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
    /// A folder with real data. `compare` tests all methods on football/results.csv.gz, chess2010/training_data.csv.gz, and
    /// recipes/pairs.csv with items.csv; `codes` needs usps and letter, `letor` mq2008 and ohsumed, `letters` ocr_letters,
    /// `chunking` conll2000, `treebank` treebank, `sgd` rcv1, `clicks` mq2008 and mslr_sample, `pa` spoken_digits, ohsumed,
    /// mq2008, protein_homology, reuters_modapte and rcv1 [these: MAXMARGIN_DATA if it is set]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<String>,
    /// Leave the simulation out
    #[arg(long, requires = "data")]
    pub(crate) real_only: bool,
    /// Number of simulated training rows of `sgd`; by default as many as in the published table
    #[arg(long, value_name = "N", default_value_t = 781_265, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub(crate) rows: u64,
    /// Write an HTML report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<String>,
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Comparing with ties: the simulation of the support vector comparison machine
    Compare,
    /// Output codes on usps and letter: the bound of the training error beside the error, for each code
    Codes,
    /// Rankings of LETOR data: the ranking SVM and the SVM for mean average precision, on MQ2008 and OHSUMED
    Letor,
    /// Weights of rows in three ways: as slack, as margins, as copies
    Weights,
    /// Handwritten words: letters as sequences, beside a classifier of single letters
    Letters,
    /// Phrases of newspaper sentences: the F1 of spans with feature templates
    Chunking,
    /// Passive-aggressive steps on streams: every rule on simulated rows with a rare class, spoken digits, LETOR, proteins,
    /// and label sets of news
    Pa,
    /// Stochastic gradient descent on RCV1 and simulated text: cost, error and time of each solver, subsampling, schedules
    Sgd,
    /// Learning from clicks: propensities true, estimated and clipped, preferences, and neither, beside the true grades
    Clicks,
    /// Trees of newspaper sentences: a trained grammar beside the one of largest likelihood
    Treebank,
}

/// `explain`
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The code, such as MM0203; without it, all codes are listed
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
