//! What flags and settings files say, merged and checked. One struct serves as flags, as TOML and as what a model keeps.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use maxmargin::data::Scale;
use maxmargin::error::{Code, Error, Excerpt, Place, Result};
use maxmargin::kernel::{Approximation, KernelKind, KernelSettings};
use maxmargin::loss::Loss;
use maxmargin::model::Model;
use maxmargin::run::Cancel;
use maxmargin::settings::{Method, Online, Regularisation, Settings, Solver, Stochastic, Task};
use maxmargin::solve::{EarlyStopping, Sample, Schedule};
use maxmargin::task::{ClassWeight, Intercept, PairWeight, PairWeightAs};
use maxmargin_io::{Columns, Format, Missing, ModelFeatures, Pairing, Precision, ReadOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A parser for the kebab-case names of a serde enum.
pub(crate) fn named<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}

/// How to learn.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TrainSettings {
    /// How comparisons are learned from: with ties as data, without them, each tie as two contradictions, or by ratings
    /// [default: compare]
    #[arg(long, value_parser = named::<Method>(Method::ALL.map(Method::name)), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<Method>,
    /// What a violated margin costs; hinge for classify and compare, squared-hinge for rank unless given
    #[arg(long, value_parser = named::<Loss>(Loss::ALL.map(Loss::name)), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loss: Option<Loss>,
    /// The weight of the sum of losses against ½‖w‖² [default: 1]
    #[arg(
        short,
        value_name = "C",
        allow_negative_numbers = true,
        conflicts_with_all = ["lambda", "nu"],
        help_heading = "Learning"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) c: Option<f64>,
    /// The same in the mean form: lambda = 1 / (C · n)
    #[arg(long, value_name = "L", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lambda: Option<f64>,
    /// Instead of -c: the largest share of rows or pairs that may miss the margin; the C for it is found. Hinge loss, by
    /// kernels and the linear one among them [default for one-class: 0.1]
    #[arg(
        long,
        value_name = "NU",
        allow_negative_numbers = true,
        conflicts_with = "lambda",
        help_heading = "Learning"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nu: Option<f64>,
    /// How to solve it; `quadratic-program` makes a hard margin, without -c and --loss [default: auto]
    #[arg(long, value_parser = named::<Solver>(Solver::ALL.map(Solver::name)), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) solver: Option<Solver>,
    /// How to scale features, learned on the training data and kept in the model [default: none]
    #[arg(long, value_parser = named::<Scale>(Scale::ALL.map(Scale::name)), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scale: Option<Scale>,
    /// The constant term of a classifier, or the threshold of a comparison [default: free]
    #[arg(long, value_parser = named::<Intercept>(["none", "free", "penalised"]), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) intercept: Option<Intercept>,
    /// How two rows are compared: `linear` learns weights, the others a sum over support vectors [default: linear]
    #[arg(long, value_parser = named::<KernelKind>(KernelKind::ALL.map(KernelKind::name)), help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kernel: Option<KernelKind>,
    /// γ of the kernel, as in exp(−γ‖x − z‖²); found on a sample of the rows unless given
    #[arg(long, value_name = "G", allow_negative_numbers = true, help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gamma: Option<f64>,
    /// The power of the polynomial kernel, (γ x·z + r)^d [default: 3]
    #[arg(long, value_name = "D", help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) degree: Option<u32>,
    /// r of the polynomial and the sigmoid kernel [default: 0]
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) coef0: Option<f64>,
    /// Map the rows so that any linear solver learns with the kernel, nearly: nystrom:M, kernel values with M random rows, or
    /// fourier:D, D random waves (gaussian kernel only); what is lost is measured and shown
    #[arg(long, value_name = "MAP", help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approximate: Option<Approximation>,
    /// Memory for kernel rows, such as 2GiB; it changes the time alone [default: 4GiB]
    #[arg(long, value_name = "SIZE", help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_cache: Option<Size>,
    /// The most support vectors, for --solver sgd or pegasos: the lightest are merged; as many as come unless given
    #[arg(long, value_name = "N", help_heading = KERNEL)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<u32>,
    /// Weights of the classes: `balanced`, or LABEL=W,LABEL=W
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class_weight: Option<String>,
    /// How much each pair of a ranking counts: alike, as a share of its query, or by the difference of its grades
    /// [default: equal]
    #[arg(long, value_parser = named::<PairWeight>(PairWeight::ALL.map(PairWeight::name)), help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair_weight: Option<PairWeight>,
    /// For compare: learn from all pairs of graded rows within each query, equal grades being ties
    #[arg(long, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ties_from_grades: bool,
    /// The label that counts as positive; the larger one unless given
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) positive: Option<String>,
    /// What the weight of a pair does: multiply the slack, be the margin, or be a number of copies [default: slack]
    #[arg(long, value_parser = named::<PairWeightAs>(PairWeightAs::ALL.map(PairWeightAs::name)), value_name = "WAY", help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair_weight_as: Option<PairWeightAs>,
    /// Stop at this relative gap between objective and lower bound [default: 1e-3]
    #[arg(long, value_name = "GAP", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tolerance: Option<f64>,
    /// The most passes over the data [default: 1000; 20 for sgd, averaged-sgd and pegasos, which make them all; 1 for lasvm]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_passes: Option<u64>,
    /// Seeds everything random: the same seed gives the same bytes [default: 0]
    #[arg(long, value_name = "S", help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// Hold out this share of the rows (whole queries) or pairs (whole groups) to measure the model on
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holdout: Option<f64>,
    /// What only the stochastic solvers take.
    #[command(flatten)]
    #[serde(default, skip_serializing_if = "StochasticSettings::is_empty")]
    pub(crate) stochastic: StochasticSettings,
    /// Stay within this much memory, such as 4GiB; the features of a .mmd file are then read a block at a time where
    /// they do not fit
    #[arg(long, value_name = "SIZE", help_heading = "Learning")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Size>,
}

/// What the solvers sgd, averaged-sgd and pegasos take.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StochasticSettings {
    /// How steps shrink: bottou is E/(1 + lambda·E·t), inverse-square-root E/√t, inverse E/t [default: bottou]
    #[arg(long, value_parser = named::<Schedule>(Schedule::ALL.map(Schedule::name)), help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<Schedule>,
    /// The first rate of the schedule; found on a sample of the data unless given
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    /// Rows or pairs a step [default: 1]
    #[arg(long, value_name = "N", help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<u32>,
    /// Keep the weights in the ball of radius 1/√lambda, in which the optimum lies
    #[arg(long, help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) project: bool,
    /// Stop once held-out data get worse and keep the best model (validation), or find the number of passes on two samples
    /// of the training data (subsamples) [default: none]
    #[arg(long, value_parser = named::<EarlyStopping>(EarlyStopping::ALL.map(EarlyStopping::name)), help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) early_stopping: Option<EarlyStopping>,
    /// What is equally likely when a ranker draws pairs: every pair, or every query, which is for --pair-weight per-query
    /// [default: pairs]
    #[arg(long, value_parser = named::<Sample>(Sample::ALL.map(Sample::name)), help_heading = STOCHASTIC)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sample: Option<Sample>,
}

const KERNEL: &str = "Kernels";

const STOCHASTIC: &str = "Stochastic solvers (sgd, averaged-sgd, pegasos)";

impl StochasticSettings {
    fn is_empty(&self) -> bool {
        *self == StochasticSettings::default()
    }

    /// What differs from the defaults.
    fn of(settings: &Stochastic) -> StochasticSettings {
        let defaults = Stochastic::default();
        StochasticSettings {
            schedule: settings.schedule,
            rate: settings.rate,
            batch: Some(settings.batch).filter(|batch| *batch != defaults.batch),
            project: settings.project,
            early_stopping: Some(settings.early_stopping).filter(|stopping| *stopping != defaults.early_stopping),
            sample: settings.sample,
        }
    }

    fn or(self, other: StochasticSettings) -> StochasticSettings {
        StochasticSettings {
            schedule: self.schedule.or(other.schedule),
            rate: self.rate.or(other.rate),
            batch: self.batch.or(other.batch),
            project: self.project || other.project,
            early_stopping: self.early_stopping.or(other.early_stopping),
            sample: self.sample.or(other.sample),
        }
    }

    fn resolve(&self) -> Stochastic {
        let defaults = Stochastic::default();
        Stochastic {
            schedule: self.schedule,
            rate: self.rate,
            batch: self.batch.unwrap_or(defaults.batch),
            project: self.project,
            early_stopping: self.early_stopping.unwrap_or(defaults.early_stopping),
            sample: self.sample,
        }
    }
}

/// How to read data.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReadSettings {
    /// How to store values: f32, correctly rounded from the text, or f64 [default: f32]
    #[arg(long, value_parser = named::<Precision>(["f32", "f64"]), help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<Precision>,
    /// The table column that holds the target
    #[arg(long, value_name = "COLUMN", help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// The table column that holds the query
    #[arg(long, value_name = "COLUMN", help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The table column that holds the weight of a row
    #[arg(long, value_name = "COLUMN", help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<String>,
    /// The table column that holds the id of a row
    #[arg(long, value_name = "COLUMN", help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Table columns to leave out, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignore: Vec<String>,
    /// What to take for an empty cell of a table; without it an empty cell is an error
    #[arg(long, value_parser = ["error", "zero", "mean"], help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<String>,
    /// Whether the features of an svmlight file count from 0 or from 1; detected unless given
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1), help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index_base: Option<u8>,
    /// The features of an svmlight file, where the last are zero in all rows: at least so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 27), help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) least_features: Option<u32>,
    /// Rank all rows as one list
    #[arg(long, help_heading = "Reading data")]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) one_group: bool,
}

/// A settings file: what `inspect --settings` prints and `--config` takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SettingsFile {
    /// The task, as a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<Task>,
    /// How to learn.
    #[serde(default)]
    pub(crate) train: TrainSettings,
    /// How to read.
    #[serde(default)]
    pub(crate) read: ReadSettings,
}

/// What a model keeps of how its data were read, for data to be scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Reading {
    /// The settings.
    #[serde(default)]
    pub(crate) read: ReadSettings,
    /// The index base that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index_base: Option<u8>,
    /// What stood in for missing cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fill: Option<Vec<f64>>,
    /// The share that was held out of the training data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holdout: Option<f64>,
    /// Whether the features are the items themselves, known by nothing but their ids.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) items_are_features: bool,
}

impl Reading {
    /// What a model keeps, or nothing where it was trained on arrays.
    pub(crate) fn of(model: &Model) -> Result<Reading> {
        model.reading.as_deref().map_or(Ok(Reading::default()), |text| {
            serde_json::from_str(text).map_err(|error| {
                Error::new(Code::DamagedModel, format!("how the model's data were read: {error}"))
                    .help("copy the model again or train it again")
            })
        })
    }

    /// As the text a model keeps.
    pub(crate) fn to_text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }
}

/// Where to find out how a settings file looks.
const EXAMPLE: &str = "`maxmargin inspect MODEL --settings` prints a settings file that works";

/// Line, column and excerpt of a range of bytes.
fn place_in(file: &str, text: &str, span: std::ops::Range<usize>) -> Place {
    let start = span.start.min(text.len());
    let line_start = text.as_bytes()[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line = text.as_bytes()[line_start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    let token = start - line_start..span.end.saturating_sub(line_start).min(line.len());
    Place {
        file: file.to_string(),
        line: Some(text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1),
        column: Some((start - line_start) as u64 + 1),
        excerpt: Some(Excerpt::of_line(line, token, "here")),
    }
}

impl SettingsFile {
    /// Reads a TOML file.
    pub(crate) fn read(file: &str) -> Result<SettingsFile> {
        let text = String::from_utf8(maxmargin_io::read_whole(file)?)
            .map_err(|_| Error::new(Code::NotText, "a settings file is text in UTF-8").in_file(file).help(EXAMPLE))?;
        toml::from_str(&text).map_err(|error| {
            Error::new(Code::BadConfig, error.message().trim().replace('\n', " "))
                .at(error.span().map_or(Place::file(file), |span| place_in(file, &text, span)))
                .help(EXAMPLE)
        })
    }

    /// What flags say, and where they say nothing what the file at `config` says.
    pub(crate) fn under(
        train: &TrainSettings,
        read: &ReadSettings,
        config: Option<&str>,
        command: &str,
        task: Task,
    ) -> Result<(TrainSettings, ReadSettings)> {
        let file = config.map_or(Ok(SettingsFile::default()), SettingsFile::read)?;
        if let Some(other) = file.task.filter(|other| *other != task) {
            return Err(Error::new(
                Code::BadConfig,
                format!("the settings are for `{}`, and this is `{command} {}`", other.name(), task.name()),
            )
            .in_file(config.unwrap_or_default())
            .help(format!("use `{command} {}`, or leave the task out of the settings file", other.name())));
        }
        Ok((train.clone().or(file.train), read.clone().or(file.read)))
    }

    /// The file that repeats a model's training.
    pub(crate) fn of(model: &Model) -> Result<SettingsFile> {
        let settings = &model.settings;
        let reading = Reading::of(model)?;
        let (c, lambda, nu) = match settings.regularisation {
            Regularisation::C(c) => (Some(c), None, None),
            Regularisation::Lambda(lambda) => (None, Some(lambda), None),
            Regularisation::Nu(nu) => (None, None, Some(nu)),
        };
        let class_weight = match &settings.class_weight {
            ClassWeight::Equal => None,
            ClassWeight::Balanced => Some("balanced".to_string()),
            ClassWeight::ByLabel(weights) => {
                Some(weights.iter().map(|(label, weight)| format!("{label}={weight}")).collect::<Vec<_>>().join(","))
            }
        };
        let soft = !settings.solver.is_hard_margin();
        Ok(SettingsFile {
            task: Some(settings.task),
            train: TrainSettings {
                method: Some(settings.method).filter(|method| *method != Method::default()),
                loss: soft.then_some(settings.loss),
                c: c.filter(|_| soft),
                lambda: lambda.filter(|_| soft),
                nu: nu.filter(|_| soft),
                solver: Some(settings.solver),
                scale: Some(settings.scale),
                intercept: match settings.task {
                    Task::Classify => Some(settings.intercept),
                    Task::Compare => Some(settings.intercept).filter(|rule| *rule == Intercept::Penalised),
                    Task::Rank | Task::OneClass => None,
                },
                class_weight,
                pair_weight: Some(settings.pair_weight).filter(|weight| *weight != PairWeight::Equal),
                ties_from_grades: settings.ties_from_grades,
                positive: settings.positive.clone(),
                pair_weight_as: Some(settings.pair_weight_as).filter(|way| *way != PairWeightAs::default()),
                tolerance: Some(settings.tolerance),
                max_passes: Some(settings.max_passes),
                seed: Some(settings.seed),
                holdout: reading.holdout,
                stochastic: StochasticSettings::of(&settings.stochastic),
                kernel: Some(settings.kernel.kind).filter(|kind| *kind != KernelKind::Linear),
                gamma: settings.kernel.gamma,
                degree: settings.kernel.degree,
                coef0: settings.kernel.coef0,
                approximate: settings.kernel.approximate,
                budget: settings.kernel.budget,
                // How much memory there was is nothing about the model.
                memory: None,
                kernel_cache: None,
            },
            read: reading.read,
        })
    }

    /// As TOML.
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }
}

impl TrainSettings {
    /// Fills what is not set from `other`.
    pub(crate) fn or(self, other: TrainSettings) -> TrainSettings {
        let regularised = self.c.is_some() || self.lambda.is_some() || self.nu.is_some();
        TrainSettings {
            method: self.method.or(other.method),
            loss: self.loss.or(other.loss),
            c: if regularised { self.c } else { other.c },
            lambda: if regularised { self.lambda } else { other.lambda },
            nu: if regularised { self.nu } else { other.nu },
            solver: self.solver.or(other.solver),
            scale: self.scale.or(other.scale),
            intercept: self.intercept.or(other.intercept),
            class_weight: self.class_weight.or(other.class_weight),
            pair_weight: self.pair_weight.or(other.pair_weight),
            ties_from_grades: self.ties_from_grades || other.ties_from_grades,
            positive: self.positive.or(other.positive),
            pair_weight_as: self.pair_weight_as.or(other.pair_weight_as),
            tolerance: self.tolerance.or(other.tolerance),
            max_passes: self.max_passes.or(other.max_passes),
            seed: self.seed.or(other.seed),
            holdout: self.holdout.or(other.holdout),
            stochastic: self.stochastic.or(other.stochastic),
            kernel: self.kernel.or(other.kernel),
            gamma: self.gamma.or(other.gamma),
            degree: self.degree.or(other.degree),
            coef0: self.coef0.or(other.coef0),
            approximate: self.approximate.or(other.approximate),
            kernel_cache: self.kernel_cache.or(other.kernel_cache),
            budget: self.budget.or(other.budget),
            memory: self.memory.or(other.memory),
        }
    }

    /// The library's settings.
    pub(crate) fn resolve(&self, task: Task) -> Result<Settings> {
        let method = self.method.unwrap_or_default();
        let defaults = Settings::new(task);
        let defaults = if task == Task::Compare { defaults.with_method(method) } else { defaults };
        let hard = self.solver.is_some_and(Solver::is_hard_margin);
        let given = [
            ("-c", self.c.is_some()),
            ("--lambda", self.lambda.is_some()),
            ("--nu", self.nu.is_some()),
            ("--loss", self.loss.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| hard && *given) {
            return Err(Error::new(
                Code::BadSetting,
                format!("{flag} says what a missed margin costs, and a hard margin misses none"),
            )
            .help(format!("leave {flag} out, or use a soft margin: leave --solver out")));
        }
        let regularisation = match (self.c, self.lambda, self.nu) {
            (Some(c), None, None) => Regularisation::C(c),
            (None, Some(lambda), None) => Regularisation::Lambda(lambda),
            (None, None, Some(nu)) => Regularisation::Nu(nu),
            (None, None, None) => defaults.regularisation,
            _ => {
                return Err(Error::new(
                    Code::BadSetting,
                    "of c, lambda and nu more than one is set, and they are one quantity",
                )
                .help("keep one of them"));
            }
        };
        if let Some(holdout) = self.holdout
            && !(holdout > 0.0 && holdout < 1.0)
        {
            return Err(Error::new(Code::BadSetting, format!("--holdout is {holdout}, and must lie between 0 and 1"))
                .help("a share of the rows such as 0.2"));
        }
        let solver = self.solver.unwrap_or(defaults.solver);
        let kernel = KernelSettings {
            kind: self.kernel.unwrap_or_default(),
            gamma: self.gamma,
            degree: self.degree,
            coef0: self.coef0,
            approximate: self.approximate,
            custom: None,
            cache: self.kernel_cache.map(|size| size.0),
            budget: self.budget,
        };
        // Rounds over kernel values are many and short.
        let by_weights = !kernel.is_exact() && !regularisation.is_nu() && task != Task::OneClass;
        let passes = if by_weights || solver != Solver::Auto { solver } else { Solver::Smo }.default_passes();
        let settings = Settings {
            task,
            method,
            // A share that may miss the margin, and a margin that none may miss, are of the hinge loss.
            loss: self.loss.unwrap_or(if hard || regularisation.is_nu() { Loss::Hinge } else { defaults.loss }),
            solver,
            scale: self.scale.unwrap_or(defaults.scale),
            intercept: self.intercept.unwrap_or(defaults.intercept),
            pair_weight: self.pair_weight.unwrap_or_default(),
            ties_from_grades: self.ties_from_grades,
            positive: self.positive.clone(),
            tolerance: self.tolerance.unwrap_or(defaults.tolerance),
            max_passes: self.max_passes.unwrap_or(passes),
            seed: self.seed.unwrap_or(defaults.seed),
            regularisation,
            class_weight: self.class_weight.as_deref().map_or(Ok(ClassWeight::Equal), parse_class_weight)?,
            stochastic: self.stochastic.resolve(),
            pair_weight_as: self.pair_weight_as.unwrap_or_default(),
            kernel,
            online: Online::default(),
        };
        settings.validate()?;
        Ok(settings)
    }
}

fn parse_class_weight(text: &str) -> Result<ClassWeight> {
    if text == "balanced" {
        return Ok(ClassWeight::Balanced);
    }
    let mut weights = BTreeMap::new();
    for part in text.split(',') {
        let parsed =
            part.rsplit_once('=').and_then(|(label, weight)| Some((label, weight.trim().parse::<f64>().ok()?)));
        let Some((label, weight)) = parsed else {
            return Err(Error::new(Code::BadSetting, format!("`{part}` is not a class weight"))
                .help("write --class-weight balanced, or LABEL=W,LABEL=W such as spam=5,ham=1"));
        };
        weights.insert(label.trim().to_string(), weight);
    }
    Ok(ClassWeight::ByLabel(weights))
}

impl ReadSettings {
    /// Fills what is not set from `other`.
    pub(crate) fn or(self, other: ReadSettings) -> ReadSettings {
        ReadSettings {
            precision: self.precision.or(other.precision),
            target: self.target.or(other.target),
            group: self.group.or(other.group),
            weight: self.weight.or(other.weight),
            id: self.id.or(other.id),
            ignore: if self.ignore.is_empty() { other.ignore } else { self.ignore },
            missing: self.missing.or(other.missing),
            index_base: self.index_base.or(other.index_base),
            least_features: self.least_features.or(other.least_features),
            one_group: self.one_group || other.one_group,
        }
    }

    fn columns(&self) -> Columns {
        Columns {
            target: self.target.clone(),
            group: self.group.clone(),
            weight: self.weight.clone(),
            id: self.id.clone(),
            ignore: self.ignore.clone(),
        }
    }

    /// What the reader is asked for.
    pub(crate) fn options(&self, format: Option<Format>, cancel: &Cancel) -> Result<ReadOptions> {
        let missing = match self.missing.as_deref() {
            None | Some("error") => Missing::Error,
            Some("zero") => Missing::Zero,
            Some("mean") => Missing::Mean,
            Some(other) => {
                return Err(Error::new(Code::BadSetting, format!("missing = `{other}` is not known"))
                    .help("use error, zero or mean"));
            }
        };
        Ok(ReadOptions {
            format,
            precision: self.precision.unwrap_or_default(),
            columns: self.columns(),
            remembered: Columns::default(),
            missing,
            features: None,
            features_grow: false,
            index_base: self.index_base,
            least_features: self.least_features.map_or(0, |least| least as usize),
            pairing: Pairing::None,
            outcomes_optional: false,
            cancel: cancel.clone(),
        })
    }
}

/// What the reader is asked for where a model will score the data: the model's own way of reading, flags winning.
pub(crate) fn scoring_options(
    model: &Model,
    flags: &ReadSettings,
    format: Option<Format>,
    cancel: &Cancel,
) -> Result<(ReadOptions, bool)> {
    let reading = Reading::of(model)?;
    let remembered = reading.read.columns();
    let settings = flags.clone().or(reading.read);
    let mut options = settings.options(format, cancel)?;
    // Columns given by flag must be there; those the model remembers may be missing.
    options.columns = flags.columns();
    options.remembered = remembered;
    if let Some(fill) = reading.fill {
        options.missing = Missing::Fill(fill);
    }
    options.features = Some(ModelFeatures {
        count: model.features(),
        names: model.feature_names.as_ref().map(|names| names.iter().map(|name| name.into_owned()).collect()),
        index_base: reading.index_base,
    });
    Ok((options, settings.one_group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units_and_printed_back() {
        for (text, bytes) in [
            ("4GiB", 4 << 30),
            ("512 MiB", 512 << 20),
            ("1.5gib", 3 << 29),
            ("2GB", 2_000_000_000),
            ("10kb", 10_000),
            ("64KiB", 64 << 10),
            ("1000000", 1_000_000),
            ("7b", 7),
        ] {
            let size: Size = text.parse().expect(text);
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse::<Size>(), Ok(size), "{size}");
        }
        assert_eq!(Size(3 << 29).to_string(), "1536MiB");
        for text in ["", "GiB", "-1GiB", "0", "4G iB", "nan", "1e30", "4 gigs", "0.1"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
