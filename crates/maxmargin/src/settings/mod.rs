//! The settings of training: one serde struct shared by the command, the model file and other front ends.
//!
//! [`Settings`] holds the settings that every task has and, in [`Settings::task`], those of one task. Front ends use
//! names ([`Settings::named`]). The names, their help texts and ranges are declared once ([`crate::wish::Setting`]).

mod format_1;
mod named;

pub(crate) use format_1::{decoder_of_format_1, settings_of_format_1};

pub use crate::task::{
    ClassifySettings, CompareSettings, Input, Method, Multilabel, MultilabelSettings, OrdinalForm, OrdinalSettings,
    OwnSettings, Profile, RankSettings, SequenceSettings, Task, TaskSettings, TreeSettings,
};
pub use crate::wish::{Choice, Chosen, Regularisation, Setting, Solver, Stochastic, Value};

use crate::certificate::{Decoder, Probability};
use crate::data::{Dataset, Scale};
use crate::error::{Code, Error, Result};
use crate::kernel::{KernelKind, KernelSettings};
use crate::loss::Loss;
use crate::task::{Abilities, Intercept};
use crate::wish::{EarlyStopping, Margin, Wish};
use serde::{Deserialize, Serialize};

/// All settings that affect the model trained on given data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// The task and its own settings.
    pub task: TaskSettings,
    /// What a violated margin costs.
    pub loss: Loss,
    /// The solver.
    pub solver: Solver,
    /// Whether a margin may be missed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub margin: Margin,
    /// How features are scaled.
    pub scale: Scale,
    /// The relative gap at which training stops.
    pub tolerance: f64,
    /// The largest number of passes.
    pub max_passes: u64,
    /// The time in seconds after which training stops, at the end of a pass; none by default. Two runs with a limit need
    /// not make the same number of passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    /// Whether the solution is polished to the last digits, whatever that costs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub polish: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The weight of the loss.
    pub regularisation: Regularisation,
    /// The settings of the stochastic solvers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stochastic: Stochastic,
    /// The kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kernel: KernelSettings,
}

/// For settings that are written only if they differ from the default.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// The defaults for a task.
    pub fn new(task: Task) -> Settings {
        Settings::of(task.settings())
    }

    /// The defaults for a task with given task settings.
    pub fn of(task: impl Into<TaskSettings>) -> Settings {
        let task = task.into();
        let profile = task.task().profile();
        // Measures of whole outputs are defined for the hinge loss.
        let loss = if task.optimized().is_some() { Loss::Hinge } else { profile.loss };
        let settings = Settings {
            task,
            loss,
            solver: Solver::Auto,
            margin: Margin::Soft,
            scale: Scale::None,
            tolerance: 1e-3,
            max_passes: 0,
            max_seconds: None,
            polish: false,
            seed: 0,
            regularisation: profile.regularisation,
            stochastic: Stochastic::default(),
            kernel: KernelSettings::default(),
        };
        Settings { max_passes: settings.usual_passes(), ..settings }
    }

    /// The default number of passes. Rounds over kernel values are many and short.
    pub fn usual_passes(&self) -> u64 {
        if self.solver == Solver::Auto && self.expands() { Solver::Smo } else { self.solver }.default_passes()
    }

    /// Changes the solver, and sets the passes to the default of that solver.
    pub fn with_solver(self, solver: Solver) -> Settings {
        Settings { solver, max_passes: solver.default_passes(), ..self }
    }

    /// Changes the rule for the free scalar, if the task has one: the constant term of a classifier, or the threshold
    /// of a comparison.
    pub fn with_free(self, rule: Intercept) -> Settings {
        Settings { task: self.task.with_free(rule), ..self }
    }

    /// Changes the method of a comparison. Other tasks have none.
    pub fn with_method(self, method: Method) -> Settings {
        match self.task {
            TaskSettings::Compare(task) => {
                Settings { task: TaskSettings::Compare(CompareSettings { method, ..task }), ..self }
            }
            _ => self,
        }
    }

    /// The settings other than those of the task.
    pub fn wish(&self) -> Wish<'_> {
        let &Settings { loss, solver, scale, regularisation, ref stochastic, ref kernel, .. } = self;
        Wish { loss, solver, hard: self.is_hard_margin(), scale, regularisation, stochastic, kernel }
    }

    /// Whether every margin must be reached: there is then neither a loss nor a weight of the loss.
    pub fn is_hard_margin(&self) -> bool {
        self.margin == Margin::Hard || self.solver.is_hard_margin()
    }

    /// The setting that asks for a hard margin, as a reference.
    fn hardened_by(&self) -> &'static str {
        if self.margin == Margin::Hard { "⟦margin⟧" } else { "⟦solver⟧" }
    }

    /// The rule for the free scalar: the constant term, or the threshold of a comparison.
    pub fn free(&self) -> Intercept {
        self.task.free()
    }

    /// The settings of a comparison, if the task is one.
    pub fn comparison(&self) -> Option<&CompareSettings> {
        match &self.task {
            TaskSettings::Compare(task) => Some(task),
            _ => None,
        }
    }

    /// How scores become probabilities, if that is to be fitted.
    pub fn probability(&self) -> Option<Probability> {
        match &self.task {
            TaskSettings::Classify(task) => task.probability,
            TaskSettings::Ordinal(task) => task.probability,
            _ => None,
        }
    }

    /// The method of a comparison; `None` for other tasks.
    pub fn method(&self) -> Option<Method> {
        self.comparison().map(|task| task.method)
    }

    /// Whether a comparison learns from all pairs of graded rows.
    pub fn ties_from_grades(&self) -> bool {
        self.comparison().is_some_and(|task| task.ties_from_grades)
    }

    /// Whether the method is a rating of items from their games.
    pub fn is_rating(&self) -> bool {
        self.comparison().is_some_and(|task| task.method.is_rating())
    }

    /// Whether it is a task of a user's own, of which only the problem itself knows what solves it.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.task, TaskSettings::Own(_))
    }

    /// What the task offers to solvers. `pairs` says whether it learns from explicit pairs.
    pub fn abilities(&self, pairs: bool) -> Abilities {
        self.task.abilities(self.loss, pairs)
    }

    /// The meaning of the scores of a model trained on these data. Free scalars that are not yet learned are set to 1.
    pub fn decoder(&self, data: &Dataset) -> Result<Decoder> {
        self.task.decoder(data, self.loss, self.seed)
    }

    /// Whether the model will be a sum over support vectors instead of weights.
    pub fn expands(&self) -> bool {
        self.kernel.is_exact()
            || self.regularisation.is_nu()
            || !self.abilities(false).weights
            || self.solver.is_kernel_dual()
    }

    /// Checks that values are in range and that the settings fit together.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        let wish = self.wish();
        self.task.refuse(&wish)?;
        let bad = |message: String, help: String| Err(Error::new(Code::BadSetting, message).help(help));
        let nu = self.regularisation.is_nu();
        if nu && self.loss != Loss::Hinge {
            return bad(
                format!("⟦nu⟧ needs the hinge loss, and the loss is {}", self.loss.name()),
                "add ⟦loss=hinge⟧, or use ⟦c⟧ instead of ⟦nu⟧".to_string(),
            );
        }
        if nu && !matches!(self.solver, Solver::Auto | Solver::Smo) {
            return bad(
                format!("`{}` takes ⟦c⟧ or ⟦lambda⟧, and not ⟦nu⟧", self.solver.name()),
                "leave ⟦solver⟧ out, or use ⟦c⟧ instead of ⟦nu⟧".to_string(),
            );
        }
        if self.solver == Solver::LinearProgram && !self.abilities(true).threshold {
            return bad(
                "the linear program is for comparisons with a threshold".to_string(),
                "use ⟦solver=quadratic-program⟧ for a hard margin, or `train compare`".to_string(),
            );
        }
        let untouched = self.max_passes == 0 && (self.solver.is_stochastic() || self.solver == Solver::Lasvm);
        if untouched {
            return bad(
                "⟦max-passes⟧ is 0, and nothing would be learned".to_string(),
                format!("`{}` makes exactly this number of passes: give 1 or more", self.solver.name()),
            );
        }
        self.validate_margin()?;
        self.validate_polish()?;
        self.validate_stochastic()?;
        self.kernel.validate()?;
        self.validate_kernel()?;
        self.validate_kernel_solver()?;
        self.validate_stream()
    }

    /// Refuses a hard margin beside settings that have none.
    fn validate_margin(&self) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if self.margin == Margin::Soft {
            return Ok(());
        }
        if self.solver != Solver::Auto && !self.solver.is_hard_margin() {
            return bad(
                format!("`{}` lets margins be missed at a cost, and a hard margin allows none", self.solver.name()),
                "leave ⟦solver⟧ or ⟦margin⟧ out",
            );
        }
        if self.loss != Loss::Hinge {
            return bad(
                format!("a hard margin is the limit of the hinge loss, and the loss is {}", self.loss.name()),
                "leave ⟦loss⟧ or ⟦margin⟧ out",
            );
        }
        if self.regularisation.is_nu() {
            return bad(
                "⟦nu⟧ lets margins be missed, and a hard margin allows none".to_string(),
                "leave one of them out",
            );
        }
        if self.expands() {
            let message = "a hard margin is learned as weights of the features, and a kernel model has none";
            return bad(message.to_string(), "leave ⟦margin⟧ out, or add ⟦approximate=nystrom:1000⟧");
        }
        Ok(())
    }

    /// Refuses polishing where there is nothing to polish.
    fn validate_polish(&self) -> Result<()> {
        let why = if !self.polish {
            return Ok(());
        } else if self.is_rating() {
            "a rating is not a solution of the solvers".to_string()
        } else if self.regularisation.is_nu() {
            "the form with ⟦nu⟧ has none to polish".to_string()
        } else if self.margin == Margin::Hard {
            "a hard margin has no loss to polish".to_string()
        } else if !self.is_own() && self.abilities(false).structured {
            "structured outputs have none to polish".to_string()
        } else if !self.solver.can_be_polished() {
            format!("that of `{}` cannot be polished", self.solver.name())
        } else {
            return Ok(());
        };
        Err(Error::new(Code::BadSetting, format!("⟦polish⟧ finds the last digits of a solution, and {why}"))
            .help("leave ⟦polish⟧ out"))
    }

    /// Checks that the solver accepts the stochastic settings.
    fn validate_stochastic(&self) -> Result<()> {
        let bad = |message: String, help: String| Err(Error::new(Code::BadSetting, message).help(help));
        let given = self.stochastic.given();
        // A stream checks the rest.
        if self.solver.is_paired() {
            return Ok(());
        }
        if let Some(name) = given.iter().find(|name| matches!(**name, "pa-variant" | "reservoir" | "average-from")) {
            return bad(
                format!("⟦{name}⟧ is for passive-aggressive steps, and the solver is `{}`", self.solver.name()),
                format!("use ⟦solver=pa-dca⟧ on a stream, or leave ⟦{name}⟧ out"),
            );
        }
        if self.stochastic.judge_every.is_some() && self.stochastic.early_stopping != EarlyStopping::Validation {
            return bad(
                "⟦judge-every⟧ says how often to judge, and without ⟦early-stopping=validation⟧ nothing is judged"
                    .to_string(),
                "add ⟦early-stopping=validation⟧, or leave ⟦judge-every⟧ out".to_string(),
            );
        }
        // Structured outputs stop by held-out data with any solver. Of a user's own task only the problem knows.
        let structured = self.is_own() || self.abilities(false).structured;
        let aggressive = self.solver == Solver::PassiveAggressive;
        let stops =
            |name: &str| name == "early-stopping" && (structured || aggressive) || name == "judge-every" && aggressive;
        let alien = given.iter().find(|name| !stops(name));
        if let (Some(name), false) = (alien, self.solver.is_stochastic()) {
            let solvers = if matches!(*name, "schedule" | "rate") { "or sgd" } else { ", sgd or pegasos" };
            return bad(
                format!("⟦{name}⟧ is for the stochastic solvers, and the solver is `{}`", self.solver.name()),
                format!("add ⟦solver=averaged-sgd⟧ {solvers}, or leave ⟦{name}⟧ out").replace(" ,", ","),
            );
        }
        if let (Solver::Pegasos, Some(name)) =
            (self.solver, given.iter().find(|name| matches!(**name, "schedule" | "rate")))
        {
            return bad(
                format!("⟦{name}⟧ does not apply: Pegasos takes steps of 1/(λt)"),
                format!("leave ⟦{name}⟧ out, or use ⟦solver=averaged-sgd⟧"),
            );
        }
        let profile = self.task.task().profile();
        let streamed = |name: &&&str| profile.streamed.iter().any(|setting| setting.name == **name);
        if let Some(name) = given.iter().find(|name| profile.setting(name).is_none() && !streamed(name)) {
            return bad(
                format!("⟦{name}⟧ is not a setting of `{}`", profile.name),
                format!("leave ⟦{name}⟧ out, or use another task"),
            );
        }
        Ok(())
    }

    /// Refuses settings that contradict the kernel or have no effect without one.
    fn validate_kernel(&self) -> Result<()> {
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        let nu = self.regularisation.is_nu();
        if self.kernel.cache.is_some() && !self.expands() && self.kernel.kind == KernelKind::Linear {
            return bad(
                "⟦kernel-cache⟧ is for kernels, and a linear model has none".to_string(),
                "leave ⟦kernel-cache⟧ out, or name a ⟦kernel⟧",
            );
        }
        let by_kernel_values = [
            (self.solver == Solver::Smo, "⟦solver=smo⟧"),
            (self.solver == Solver::Lasvm, "⟦solver=lasvm⟧"),
            (self.kernel.cache.is_some(), "⟦kernel-cache⟧"),
            (nu, "⟦nu⟧"),
        ];
        if let (Some(_), Some((_, what))) = (self.kernel.approximate, by_kernel_values.iter().find(|(set, _)| *set)) {
            return bad(
                format!("{what} needs exact kernel values, and ⟦approximate⟧ replaces them"),
                if nu { "leave ⟦approximate⟧ out, or use ⟦c⟧ instead" } else { "leave one of them out" },
            );
        }
        if self.kernel.kind == KernelKind::Precomputed && self.scale != Scale::None {
            return bad(
                "precomputed kernel values are not features and cannot be scaled".to_string(),
                "leave ⟦scale⟧ out, or scale the features before the kernel is computed",
            );
        }
        Ok(())
    }

    /// Refuses settings that do not fit passive-aggressive steps.
    fn validate_stream(&self) -> Result<()> {
        let bad = |message: &str, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if self.solver != Solver::PassiveAggressive {
            return Ok(());
        }
        let learns = match &self.task {
            TaskSettings::Compare(task) => task.learns_threshold(),
            TaskSettings::Classify(_)
            | TaskSettings::Rank(_)
            | TaskSettings::Ordinal(_)
            | TaskSettings::Multilabel(_) => true,
            _ => false,
        };
        if !learns || self.kernel != KernelSettings::default() {
            return bad(
                "passive-aggressive steps learn weights of features from a stream",
                "use `maxmargin learn`, or leave ⟦solver⟧ out",
            );
        }
        if self.loss == Loss::Logistic {
            return bad(
                "passive-aggressive steps need the hinge or the squared hinge loss",
                "leave ⟦loss⟧ out, or use ⟦solver=averaged-sgd⟧",
            );
        }
        if !matches!(self.regularisation, Regularisation::C(_)) {
            return bad("passive-aggressive steps take ⟦c⟧, and not ⟦lambda⟧", "use ⟦c⟧ instead");
        }
        Ok(())
    }

    /// Refuses a kernel that the solver does not accept, and settings that only some kernel solvers accept.
    fn validate_kernel_solver(&self) -> Result<()> {
        let (kind, solver) = (self.kernel.kind, self.solver);
        let bad = |message: String, help: &str| Err(Error::new(Code::BadSetting, message).help(help));
        if self.kernel.budget.is_some() && !(self.kernel.is_exact() && solver.is_stochastic()) {
            return bad(
                "⟦budget⟧ limits the support vectors of stochastic steps through a kernel".to_string(),
                "add ⟦solver=sgd⟧ and a ⟦kernel⟧ such as gaussian, or leave ⟦budget⟧ out",
            );
        }
        if !self.kernel.is_exact() {
            return Ok(());
        }
        let by_rows = !matches!(kind, KernelKind::Precomputed | KernelKind::Custom);
        match solver {
            Solver::Auto | Solver::Smo | Solver::Newton | Solver::FrankWolfe | Solver::NSlack => Ok(()),
            Solver::Lasvm | Solver::Sgd | Solver::Pegasos if !by_rows => bad(
                format!(
                    "`{}` computes kernel values itself, and does not support the {} kernel",
                    solver.name(),
                    kind.name()
                ),
                "leave ⟦solver⟧ out, or use another ⟦kernel⟧",
            ),
            Solver::Lasvm => Ok(()),
            Solver::Sgd | Solver::Pegasos if self.stochastic.project => bad(
                "⟦project⟧ keeps weights in a ball, and a kernel model has no weights".to_string(),
                "leave ⟦project⟧ out, or ⟦kernel⟧",
            ),
            _ if self.stochastic.early_stopping != EarlyStopping::None => bad(
                "⟦early-stopping⟧ is for linear models, not for kernels".to_string(),
                "leave ⟦early-stopping⟧ out and give ⟦max-passes⟧",
            ),
            Solver::Sgd if self.stochastic.schedule.is_some() && self.stochastic.rate.is_none() => bad(
                "a ⟦schedule⟧ needs a first rate, which is not found automatically with a kernel".to_string(),
                "give ⟦rate⟧ too, or leave ⟦schedule⟧ out: steps are then 1/(λt)",
            ),
            Solver::Sgd | Solver::Pegasos => Ok(()),
            Solver::AveragedSgd => bad(
                format!("averaging with the {} kernel would keep the support vectors of every step", kind.name()),
                "use ⟦solver=sgd⟧, which keeps the last function, or leave ⟦kernel⟧ out",
            ),
            _ => bad(
                format!("`{}` learns weights, and a model with the {} kernel has none", solver.name(), kind.name()),
                "leave ⟦solver⟧ out, or add ⟦approximate=nystrom:1000⟧, which gives it weights",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::PairWeight;
    use crate::wish::{Sample, Schedule};

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
        for margin in Margin::ALL {
            assert_eq!(serde_json::to_value(margin).expect("JSON"), margin.name());
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
        for task in Task::ALL {
            assert_eq!(serde_json::to_value(task).expect("JSON"), task.name());
        }
    }
}
