//! What a user can set about training: one serde struct shared by the command, the model file and other front ends.

use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::kernel::{KernelKind, KernelSettings};
use crate::loss::Loss;
use crate::solve::{EarlyStopping, Sample, Schedule};
use crate::task::{ClassWeight, Intercept, PairWeight, PairWeightAs};
use serde::{Deserialize, Serialize};

/// What is to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Tell two classes apart.
    Classify,
    /// Order the rows of each group.
    Rank,
    /// Tell which of two rows is better, or that neither is.
    Compare,
    /// Tell rows like the ones seen from others.
    OneClass,
}

impl Task {
    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Task::Classify => "classify",
            Task::Rank => "rank",
            Task::Compare => "compare",
            Task::OneClass => "one-class",
        }
    }
}

/// How comparisons are learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Ties are data: scores and the threshold that tells ties are learned together.
    #[default]
    Compare,
    /// Ties say nothing to the scores.
    Rank,
    /// A tie says that either is better; what is decided counts twice.
    Rank2,
    /// Elo's ratings.
    Elo,
    /// Glickman's ratings with deviations.
    Glicko,
    /// Strengths of Bradley and Terry, with Davidson's ties.
    BradleyTerry,
    /// TrueSkill with a draw margin.
    Trueskill,
}

impl Method {
    /// Every method there is.
    pub const ALL: [Method; 7] = [
        Method::Compare,
        Method::Rank,
        Method::Rank2,
        Method::Elo,
        Method::Glicko,
        Method::BradleyTerry,
        Method::Trueskill,
    ];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Method::Compare => "compare",
            Method::Rank => "rank",
            Method::Rank2 => "rank2",
            Method::Elo => "elo",
            Method::Glicko => "glicko",
            Method::BradleyTerry => "bradley-terry",
            Method::Trueskill => "trueskill",
        }
    }

    /// Whether it rates items by their ids alone.
    pub fn is_rating(self) -> bool {
        matches!(self, Method::Elo | Method::Glicko | Method::BradleyTerry | Method::Trueskill)
    }
}

/// How it is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// The one that suits task, loss and data.
    #[default]
    Auto,
    /// Dual coordinate descent.
    DualCoordinateDescent,
    /// Newton's method, exact or with conjugate gradients.
    Newton,
    /// The hard margin as a quadratic program: every margin is reached, or there is no model. Loss and regularisation
    /// play no part.
    QuadraticProgram,
    /// The largest margin of comparisons in function values, as a linear program. Loss and regularisation play no part.
    LinearProgram,
    /// Cutting planes with exact line search.
    CuttingPlane,
    /// A primal-dual interior point, for hinge and squared hinge: few steps, each of rows times features squared.
    InteriorPoint,
    /// Stochastic gradient descent.
    Sgd,
    /// Stochastic gradient descent with averaged weights.
    AveragedSgd,
    /// Pegasos: stochastic steps of length 1/(λt).
    Pegasos,
    /// Sequential minimal optimisation over kernel values.
    Smo,
    /// The same one row after the other, in one pass: LaSVM.
    Lasvm,
    /// Passive-aggressive steps over a stream of comparisons: see [`crate::online`].
    PassiveAggressive,
}

impl Solver {
    /// Every solver of data at hand. [`Solver::PassiveAggressive`] is for streams alone.
    pub const ALL: [Solver; 12] = [
        Solver::Auto,
        Solver::DualCoordinateDescent,
        Solver::Newton,
        Solver::CuttingPlane,
        Solver::InteriorPoint,
        Solver::QuadraticProgram,
        Solver::LinearProgram,
        Solver::Sgd,
        Solver::AveragedSgd,
        Solver::Pegasos,
        Solver::Smo,
        Solver::Lasvm,
    ];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Solver::Auto => "auto",
            Solver::DualCoordinateDescent => "dual-coordinate-descent",
            Solver::Newton => "newton",
            Solver::QuadraticProgram => "quadratic-program",
            Solver::LinearProgram => "linear-program",
            Solver::CuttingPlane => "cutting-plane",
            Solver::InteriorPoint => "interior-point",
            Solver::Sgd => "sgd",
            Solver::AveragedSgd => "averaged-sgd",
            Solver::Pegasos => "pegasos",
            Solver::Smo => "smo",
            Solver::Lasvm => "lasvm",
            Solver::PassiveAggressive => "passive-aggressive",
        }
    }

    /// Whether it makes a hard margin, which knows neither loss nor regularisation.
    pub fn is_hard_margin(self) -> bool {
        matches!(self, Solver::QuadraticProgram | Solver::LinearProgram)
    }

    /// Whether it learns from one random constraint after the other. Such a solver proves no bound, and makes the passes
    /// it is told to.
    pub fn is_stochastic(self) -> bool {
        matches!(self, Solver::Sgd | Solver::AveragedSgd | Solver::Pegasos)
    }

    /// Whether it solves the dual problem over kernel values, the linear kernel among them.
    pub fn is_kernel_dual(self) -> bool {
        matches!(self, Solver::Smo | Solver::Lasvm)
    }

    /// The passes a run gets unless told: plenty for a solver that stops by itself, a few for one that does not.
    pub fn default_passes(self) -> u64 {
        match self {
            Solver::Smo => 100_000,
            Solver::Lasvm | Solver::PassiveAggressive => 1,
            _ if self.is_stochastic() => 20,
            _ => 1000,
        }
    }
}

/// What only the stochastic solvers take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Stochastic {
    /// How the length of the steps falls; that of Bottou unless given. Pegasos has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The first rate η₀; found on a sample unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Constraints a step.
    pub batch: u32,
    /// Whether weights are kept within ‖w‖ ≤ 1/√λ, where the optimum is.
    pub project: bool,
    /// How the number of passes is found.
    pub early_stopping: EarlyStopping,
    /// What is equally likely when a ranker draws pairs; pairs unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

impl Default for Stochastic {
    fn default() -> Stochastic {
        Stochastic {
            schedule: None,
            rate: None,
            batch: 1,
            project: false,
            early_stopping: EarlyStopping::None,
            sample: None,
        }
    }
}

impl Stochastic {
    /// The flags of what is set.
    fn flags(&self) -> Vec<&'static str> {
        let set = [
            (self.schedule.is_some(), "--schedule"),
            (self.rate.is_some(), "--rate"),
            (self.batch != 1, "--batch"),
            (self.project, "--project"),
            (self.early_stopping != EarlyStopping::None, "--early-stopping"),
            (self.sample.is_some(), "--sample"),
        ];
        set.into_iter().filter_map(|(set, flag)| set.then_some(flag)).collect()
    }

    fn validate(&self, task: Task, solver: Solver) -> Result<()> {
        let flags = self.flags();
        if let (Some(flag), false) = (flags.first(), solver.is_stochastic()) {
            return Err(Error::new(
                Code::BadSetting,
                format!("{flag} is for the stochastic solvers, and the solver is `{}`", solver.name()),
            )
            .help(match *flag {
                "--schedule" | "--rate" => format!("add --solver averaged-sgd or sgd, or leave {flag} out"),
                _ => format!("add --solver averaged-sgd, sgd or pegasos, or leave {flag} out"),
            }));
        }
        if solver == Solver::Pegasos
            && let Some(flag) = flags.iter().find(|flag| matches!(**flag, "--schedule" | "--rate"))
        {
            return Err(Error::new(Code::BadSetting, format!("{flag} does not apply: Pegasos takes steps of 1/(λt)"))
                .help(format!("leave {flag} out, or use --solver averaged-sgd")));
        }
        if let Some(rate) = self.rate
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Error::new(Code::BadSetting, format!("--rate is {rate}, and must be a positive number"))
                .help("a first rate such as 0.1; left out, one is found on a sample"));
        }
        if self.batch == 0 {
            return Err(Error::new(Code::BadSetting, "--batch is 0, and must be a whole number from 1 on")
                .help("the rows or pairs that a step learns from, such as 1 or 32"));
        }
        if task != Task::Rank && self.sample.is_some() {
            return Err(Error::new(Code::BadSetting, "--sample is for rankers: it says how pairs are drawn")
                .help("leave --sample out, or use `train rank`"));
        }
        Ok(())
    }
}

/// What only learning from a stream takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Online {
    /// How readily passive-aggressive steps move the threshold, beside the weights: κ, 0 for one that stays.
    pub kappa: f64,
}

impl Default for Online {
    fn default() -> Online {
        Online { kappa: 1.0 }
    }
}

/// How much the loss weighs against the size of the weights: one quantity, said in one of two ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regularisation {
    /// The weight of the **sum** of losses.
    C(f64),
    /// The mean form: `lambda = 1 / (C · n)`, n the total weight of all blocks.
    Lambda(f64),
    /// The largest share of the blocks that may miss the margin, and the least that are support vectors: the C at which
    /// that holds is found in training. Until then it is the share that stands for lambda.
    Nu(f64),
}

impl Regularisation {
    /// The weight of the sum, given the total block weight.
    pub fn c(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => c,
            Regularisation::Lambda(lambda) | Regularisation::Nu(lambda) => 1.0 / (lambda * total_weight),
        }
    }

    /// The mean form, given the total block weight.
    pub fn lambda(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => 1.0 / (c * total_weight),
            Regularisation::Lambda(lambda) | Regularisation::Nu(lambda) => lambda,
        }
    }

    /// Whether C is found in training.
    pub fn is_nu(self) -> bool {
        matches!(self, Regularisation::Nu(_))
    }
}

/// Everything that decides what is learned from given data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// What is to be learned.
    pub task: Task,
    /// How comparisons are learned from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: Method,
    /// What a violated margin costs.
    pub loss: Loss,
    /// How it is learned.
    #[serde(default)]
    pub solver: Solver,
    /// How features are scaled.
    #[serde(default)]
    pub scale: Scale,
    /// The constant term of a classifier.
    #[serde(default)]
    pub intercept: Intercept,
    /// The label that counts as positive, where the order of the labels shall not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
    /// The relative gap to stop at.
    pub tolerance: f64,
    /// The most passes to make.
    pub max_passes: u64,
    /// Seeds everything random.
    pub seed: u64,
    /// The weight of the loss.
    pub regularisation: Regularisation,
    /// How much each class counts.
    #[serde(default)]
    pub class_weight: ClassWeight,
    /// What the weights of explicit pairs do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pair_weight_as: PairWeightAs,
    /// How much each pair of a ranking counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pair_weight: PairWeight,
    /// Whether comparisons are all pairs of graded rows within queries, equal grades being ties.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ties_from_grades: bool,
    /// What only the stochastic solvers take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stochastic: Stochastic,
    /// The kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kernel: KernelSettings,
    /// What only learning from a stream takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub online: Online,
}

/// The share of rows that a one-class model leaves outside unless told.
const USUAL_NU: f64 = 0.1;

/// For settings that are written only where they were chosen: files of earlier versions have none of them.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// The defaults for a task.
    pub fn new(task: Task) -> Settings {
        Settings {
            task,
            method: Method::Compare,
            loss: match task {
                Task::Classify | Task::Compare | Task::OneClass => Loss::Hinge,
                Task::Rank => Loss::SquaredHinge,
            },
            solver: Solver::Auto,
            scale: Scale::None,
            intercept: match task {
                Task::Classify | Task::Compare => Intercept::Free,
                Task::Rank | Task::OneClass => Intercept::None,
            },
            positive: None,
            tolerance: 1e-3,
            max_passes: if task == Task::OneClass { Solver::Smo } else { Solver::Auto }.default_passes(),
            seed: 0,
            regularisation: match task {
                Task::Classify | Task::Rank | Task::Compare => Regularisation::C(1.0),
                Task::OneClass => Regularisation::Nu(USUAL_NU),
            },
            class_weight: ClassWeight::Equal,
            pair_weight_as: PairWeightAs::Slack,
            pair_weight: PairWeight::Equal,
            ties_from_grades: false,
            stochastic: Stochastic::default(),
            kernel: KernelSettings::default(),
            online: Online::default(),
        }
    }

    /// The same for a given solver, with the passes it gets unless told.
    pub fn with_solver(self, solver: Solver) -> Settings {
        Settings { solver, max_passes: solver.default_passes(), ..self }
    }

    /// The same by a given method of comparing, which alone learns its threshold together with the scores.
    pub fn with_method(self, method: Method) -> Settings {
        let intercept = if method == Method::Compare { Intercept::Free } else { Intercept::None };
        Settings { method, intercept, ..self }
    }

    /// Refuses values outside their range.
    pub fn validate(&self) -> Result<()> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                return Ok(());
            }
            Err(Error::new(Code::BadSetting, format!("{name} is {value}, and must be a positive number"))
                .help(format!("give {name} a value such as 1 or 0.01")))
        };
        if self.task == Task::OneClass {
            if self.loss != Loss::Hinge {
                return Err(
                    Error::new(Code::BadSetting, "a one-class model is of the hinge loss").help("leave --loss out")
                );
            }
            if !matches!(self.solver, Solver::Auto | Solver::Smo | Solver::Lasvm) {
                return Err(Error::new(
                    Code::BadSetting,
                    format!("a one-class model is not learned by `{}`", self.solver.name()),
                )
                .help("leave --solver out"));
            }
            if self.intercept != Intercept::None {
                return Err(Error::new(
                    Code::BadSetting,
                    "a one-class model has no intercept: its border is where the score is 1",
                )
                .help("leave --intercept out"));
            }
            if self.class_weight != ClassWeight::Equal || self.positive.is_some() {
                return Err(Error::new(
                    Code::BadSetting,
                    "class weights and a positive class belong to classifiers of two classes",
                )
                .help("leave --class-weight and --positive out, or use `train classify`"));
            }
        }
        match self.regularisation {
            Regularisation::C(c) => positive("-c", c)?,
            Regularisation::Lambda(lambda) => positive("--lambda", lambda)?,
            Regularisation::Nu(nu) if nu > 0.0 && nu <= 1.0 => {}
            Regularisation::Nu(nu) => {
                return Err(Error::new(Code::BadSetting, format!("--nu is {nu}, and must be above 0 and at most 1"))
                    .help("the share that may miss the margin, such as 0.1"));
            }
        }
        if self.regularisation.is_nu() && self.loss != Loss::Hinge {
            return Err(Error::new(
                Code::BadSetting,
                format!("--nu is of the hinge loss, and the loss is {}", self.loss.name()),
            )
            .help("add --loss hinge, or use -c instead of --nu"));
        }
        if self.regularisation.is_nu() && !matches!(self.solver, Solver::Auto | Solver::Smo) {
            return Err(Error::new(
                Code::BadSetting,
                format!("`{}` takes -c or --lambda, and not --nu", self.solver.name()),
            )
            .help("leave --solver out, or use -c instead of --nu"));
        }
        if self.regularisation.is_nu() && self.pair_weight_as == PairWeightAs::Margin {
            return Err(Error::new(
                Code::BadSetting,
                "with --nu all margins are the same, and weights cannot set them",
            )
            .help("leave --pair-weight-as out, or use -c instead of --nu"));
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(Error::new(
                Code::BadSetting,
                format!("--tolerance is {}, and must be zero or a positive number", self.tolerance),
            )
            .help("the relative gap to stop at, such as 1e-3"));
        }
        self.stochastic.validate(self.task, self.solver)?;
        self.kernel.validate()?;
        if self.kernel.cache.is_some()
            && self.kernel.kind == KernelKind::Linear
            && !self.solver.is_kernel_dual()
            && !self.regularisation.is_nu()
        {
            return Err(Error::new(Code::BadSetting, "--kernel-cache is for kernels, and weights need none")
                .help("leave --kernel-cache out, or name a --kernel"));
        }
        let by_kernel_values = [
            (self.solver == Solver::Smo, "--solver smo"),
            (self.solver == Solver::Lasvm, "--solver lasvm"),
            (self.kernel.cache.is_some(), "--kernel-cache"),
            (self.task == Task::OneClass, "a one-class model"),
            (self.regularisation.is_nu(), "--nu"),
        ];
        if let (Some(_), Some((_, what))) = (self.kernel.approximate, by_kernel_values.iter().find(|(set, _)| *set)) {
            return Err(Error::new(
                Code::BadSetting,
                format!("{what} is for kernel values, and --approximate maps rows"),
            )
            .help("leave --approximate out, or learn a classifier or ranker with -c"));
        }
        self.validate_kernel_solver()?;
        if self.kernel.kind == KernelKind::Precomputed && self.scale != Scale::None {
            return Err(Error::new(Code::BadSetting, "precomputed kernel values are no features that could be scaled")
                .help("leave --scale out, or scale the features before the kernel is computed"));
        }
        if self.solver.is_stochastic() && self.max_passes == 0 {
            return Err(Error::new(Code::BadSetting, "--max-passes is 0, and nothing would be learned")
                .help(format!("`{}` makes as many passes as it is told: give 1 or more", self.solver.name())));
        }
        if let ClassWeight::ByLabel(weights) = &self.class_weight {
            for (label, &weight) in weights {
                if !(weight.is_finite() && weight >= 0.0) {
                    return Err(Error::new(
                        Code::BadSetting,
                        format!("the weight of class `{label}` is {weight}, and must be zero or a positive number"),
                    ));
                }
            }
        }
        if self.solver.is_hard_margin() && self.class_weight != ClassWeight::Equal {
            return Err(Error::new(Code::BadSetting, "a hard margin has no costs that classes could weigh")
                .help("leave --class-weight out, or use a soft margin: leave --solver out"));
        }
        if self.solver == Solver::Lasvm && self.max_passes == 0 {
            return Err(Error::new(Code::BadSetting, "--max-passes is 0, and nothing would be learned")
                .help("one pass is what `lasvm` is for: leave --max-passes out"));
        }
        self.validate_comparison()?;
        self.validate_stream()?;
        if !matches!(self.task, Task::Rank | Task::Compare) && self.pair_weight_as != PairWeightAs::Slack {
            return Err(Error::new(Code::BadSetting, "weights of pairs belong to rankers and comparisons")
                .help("leave --pair-weight-as out, or use `train rank` or `train compare`"));
        }
        if self.task != Task::Rank && self.pair_weight != PairWeight::Equal {
            return Err(Error::new(Code::BadSetting, "pair weights belong to rankers")
                .help("leave --pair-weight out, or use `train rank`"));
        }
        if self.stochastic.sample == Some(Sample::Queries) && self.pair_weight == PairWeight::GradeGap {
            return Err(Error::new(
                Code::BadSetting,
                "--sample queries lets every query count the same, which --pair-weight grade-gap does not",
            )
            .help("leave --sample out, or use --pair-weight per-query"));
        }
        if self.task == Task::Rank {
            if self.intercept != Intercept::None {
                return Err(Error::new(Code::BadSetting, "a ranker has no intercept: only score differences count")
                    .help("leave --intercept out"));
            }
            if self.class_weight != ClassWeight::Equal || self.positive.is_some() {
                return Err(Error::new(Code::BadSetting, "class weights and a positive class belong to classifiers")
                    .help("leave --class-weight and --positive out, or use `train classify`"));
            }
        }
        Ok(())
    }

    /// Refuses what does not go with comparisons, and a method without them.
    fn validate_comparison(&self) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let compares = self.task == Task::Compare && self.method == Method::Compare;
        if self.solver == Solver::LinearProgram && !compares {
            return bad(
                "the linear program is for comparisons with a threshold".to_string(),
                "use --solver quadratic-program for a hard margin, or `train compare`",
            );
        }
        if self.solver == Solver::LinearProgram && self.intercept == Intercept::Penalised {
            return bad("the linear program holds the threshold at 1".to_string(), "leave --intercept out");
        }
        if self.ties_from_grades && !compares {
            return bad(
                "--ties-from-grades learns scores together with the threshold for ties".to_string(),
                "use `train compare` without --method, or leave --ties-from-grades out",
            );
        }
        if self.ties_from_grades && self.pair_weight_as != PairWeightAs::default() {
            return bad(
                "it is explicit pairs that have weights, and grades have none".to_string(),
                "leave --pair-weight-as out; rows may have weights, and a pair counts their product",
            );
        }
        if self.task != Task::Compare {
            return if self.method == Method::default() {
                Ok(())
            } else {
                bad("a --method belongs to comparisons".to_string(), "leave --method out, or use `train compare`")
            };
        }
        let name = self.method.name();
        if self.method == Method::Compare && self.intercept == Intercept::None {
            return bad(
                "a comparison without a threshold knows no ties".to_string(),
                "leave --intercept out, or use --method rank",
            );
        }
        if self.method != Method::Compare && self.intercept != Intercept::None {
            return bad(
                format!("`{name}` finds its threshold after the scores, and does not penalise it"),
                "leave --intercept out",
            );
        }
        if self.intercept == Intercept::Penalised && self.loss == Loss::Logistic {
            return bad(
                "the logistic loss keeps the threshold above zero by itself".to_string(),
                "leave --intercept out, or use --loss hinge or squared-hinge",
            );
        }
        if self.intercept == Intercept::Penalised && (self.kernel.is_exact() || self.solver.is_kernel_dual()) {
            return bad("through a kernel the threshold is free".to_string(), "leave --intercept out, or --kernel");
        }
        if self.class_weight != ClassWeight::Equal || self.positive.is_some() {
            return bad(
                "class weights and a positive class belong to classifiers".to_string(),
                "leave --class-weight and --positive out; pairs have weights of their own",
            );
        }
        if self.regularisation.is_nu() {
            return bad("--nu is for classifiers and rankers".to_string(), "use -c instead");
        }
        if self.method.is_rating() && (self.loss != Loss::Hinge || self.pair_weight_as != PairWeightAs::Slack) {
            return bad(
                format!("`{name}` has neither a loss nor margins to choose"),
                "leave --loss and --pair-weight-as out, or use --method compare",
            );
        }
        let costs = matches!(self.regularisation, Regularisation::C(c) if c == 1.0);
        if self.method.is_rating() && self.method != Method::BradleyTerry && !costs {
            return bad(format!("`{name}` has no C"), "leave -c and --lambda out");
        }
        if self.method.is_rating()
            && (self.solver != Solver::Auto || self.kernel != KernelSettings::default() || self.scale != Scale::None)
        {
            return bad(
                format!("`{name}` rates items by who met whom, and knows neither features nor solvers"),
                "leave --solver, --kernel and --scale out, or use --method compare",
            );
        }
        Ok(())
    }

    /// Refuses what does not go with passive-aggressive steps.
    fn validate_stream(&self) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if self.solver != Solver::PassiveAggressive {
            return if self.online == Online::default() {
                Ok(())
            } else {
                bad(
                    format!("--kappa is for passive-aggressive steps, and the solver is `{}`", self.solver.name()),
                    "leave --kappa or --solver out",
                )
            };
        }
        if (self.task, self.method) != (Task::Compare, Method::Compare) || self.kernel != KernelSettings::default() {
            return bad(
                "passive-aggressive steps learn weights from a stream of comparisons".to_string(),
                "use `maxmargin learn compare`, or leave --solver out",
            );
        }
        if self.loss == Loss::Logistic {
            return bad(
                "passive-aggressive steps are of the hinge or the squared hinge".to_string(),
                "leave --loss out, or use --solver averaged-sgd",
            );
        }
        if !matches!(self.regularisation, Regularisation::C(_)) {
            return bad("passive-aggressive steps take -c, and not --lambda".to_string(), "use -c instead");
        }
        if !(self.online.kappa.is_finite() && self.online.kappa >= 0.0) {
            return bad(
                format!("--kappa is {}, and must be zero or a positive number", self.online.kappa),
                "give --kappa a value such as 1, or 0 for a threshold that stays",
            );
        }
        Ok(())
    }

    /// Refuses a kernel that the solver does not take, and what only some solvers take beside a kernel.
    fn validate_kernel_solver(&self) -> Result<()> {
        let (kind, solver) = (self.kernel.kind, self.solver);
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if self.kernel.budget.is_some() && !(self.kernel.is_exact() && solver.is_stochastic()) {
            return bad(
                "--budget limits the support vectors of stochastic steps through a kernel".to_string(),
                "add --solver sgd and a --kernel such as gaussian, or leave --budget out",
            );
        }
        if !self.kernel.is_exact() {
            return Ok(());
        }
        let by_rows = !matches!(kind, KernelKind::Precomputed | KernelKind::Custom);
        match solver {
            Solver::Auto | Solver::Smo | Solver::Newton => Ok(()),
            Solver::Lasvm | Solver::Sgd | Solver::Pegasos if !by_rows => bad(
                format!(
                    "`{}` computes kernel values itself, and the {} kernel is not one of its own",
                    solver.name(),
                    kind.name()
                ),
                "leave --solver out, or use another --kernel",
            ),
            Solver::Lasvm => Ok(()),
            Solver::Sgd | Solver::Pegasos if self.stochastic.project => bad(
                "--project keeps weights in a ball, and kernels have none".to_string(),
                "leave --project out, or --kernel",
            ),
            Solver::Sgd | Solver::Pegasos if self.stochastic.early_stopping != EarlyStopping::None => bad(
                "--early-stopping is for weights, and kernels have none".to_string(),
                "leave --early-stopping out and give --max-passes",
            ),
            Solver::Sgd if self.stochastic.schedule.is_some() && self.stochastic.rate.is_none() => bad(
                "a --schedule needs a first rate, which is not searched for under kernels".to_string(),
                "give --rate too, or leave --schedule out: steps are then 1/(λt)",
            ),
            Solver::Sgd | Solver::Pegasos => Ok(()),
            Solver::AveragedSgd => bad(
                format!("averages of {} kernels would keep the support vectors of every step", kind.name()),
                "use --solver sgd, which keeps the last function, or leave --kernel out",
            ),
            _ => bad(
                format!("`{}` learns weights, and the {} kernel has none", solver.name(), kind.name()),
                "leave --solver out, or add --approximate nystrom:1000, which gives it weights",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_files() {
        for solver in Solver::ALL.into_iter().chain([Solver::PassiveAggressive]) {
            assert_eq!(serde_json::to_value(solver).expect("JSON"), solver.name());
        }
        for schedule in Schedule::ALL {
            assert_eq!(serde_json::to_value(schedule).expect("JSON"), schedule.name());
        }
        for stopping in EarlyStopping::ALL {
            assert_eq!(serde_json::to_value(stopping).expect("JSON"), stopping.name());
        }
        for sample in Sample::ALL {
            assert_eq!(serde_json::to_value(sample).expect("JSON"), sample.name());
        }
        for scale in Scale::ALL {
            assert_eq!(serde_json::to_value(scale).expect("JSON"), scale.name());
        }
        for weight in PairWeight::ALL {
            assert_eq!(serde_json::to_value(weight).expect("JSON"), weight.name());
        }
        for method in Method::ALL {
            assert_eq!(serde_json::to_value(method).expect("JSON"), method.name());
        }
        for task in [Task::Classify, Task::Rank, Task::Compare, Task::OneClass] {
            assert_eq!(serde_json::to_value(task).expect("JSON"), task.name());
        }
    }
}
