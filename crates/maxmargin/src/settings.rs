//! What a user can set about training: one serde struct shared by the command, the model file and other front ends.

use crate::data::Scale;
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
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
}

impl Task {
    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Task::Classify => "classify",
            Task::Rank => "rank",
        }
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
    /// Cutting planes with exact line search.
    CuttingPlane,
}

impl Solver {
    /// Every solver there is.
    pub const ALL: [Solver; 5] =
        [Solver::Auto, Solver::DualCoordinateDescent, Solver::Newton, Solver::CuttingPlane, Solver::QuadraticProgram];

    /// The name used in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Solver::Auto => "auto",
            Solver::DualCoordinateDescent => "dual-coordinate-descent",
            Solver::Newton => "newton",
            Solver::QuadraticProgram => "quadratic-program",
            Solver::CuttingPlane => "cutting-plane",
        }
    }

    /// Whether it makes a hard margin, which knows neither loss nor regularisation.
    pub fn is_hard_margin(self) -> bool {
        self == Solver::QuadraticProgram
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
}

impl Regularisation {
    /// The weight of the sum, given the total block weight.
    pub fn c(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => c,
            Regularisation::Lambda(lambda) => 1.0 / (lambda * total_weight),
        }
    }

    /// The mean form, given the total block weight.
    pub fn lambda(self, total_weight: f64) -> f64 {
        match self {
            Regularisation::C(c) => 1.0 / (c * total_weight),
            Regularisation::Lambda(lambda) => lambda,
        }
    }
}

/// Everything that decides what is learned from given data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// What is to be learned.
    pub task: Task,
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
}

/// For settings that are written only where they were chosen: files of earlier versions have none of them.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Settings {
    /// The defaults for a task.
    pub fn new(task: Task) -> Settings {
        Settings {
            task,
            loss: match task {
                Task::Classify => Loss::Hinge,
                Task::Rank => Loss::SquaredHinge,
            },
            solver: Solver::Auto,
            scale: Scale::None,
            intercept: match task {
                Task::Classify => Intercept::Free,
                Task::Rank => Intercept::None,
            },
            positive: None,
            tolerance: 1e-3,
            max_passes: 1000,
            seed: 0,
            regularisation: Regularisation::C(1.0),
            class_weight: ClassWeight::Equal,
            pair_weight_as: PairWeightAs::Slack,
            pair_weight: PairWeight::Equal,
        }
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
        match self.regularisation {
            Regularisation::C(c) => positive("-c", c)?,
            Regularisation::Lambda(lambda) => positive("--lambda", lambda)?,
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(Error::new(
                Code::BadSetting,
                format!("--tolerance is {}, and must be zero or a positive number", self.tolerance),
            )
            .help("the relative gap to stop at, such as 1e-3"));
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
        if self.task == Task::Classify && self.pair_weight_as != PairWeightAs::Slack {
            return Err(Error::new(Code::BadSetting, "weights of pairs belong to rankers")
                .help("leave --pair-weight-as out, or use `train rank`"));
        }
        if self.task != Task::Rank && self.pair_weight != PairWeight::Equal {
            return Err(Error::new(Code::BadSetting, "pair weights belong to rankers")
                .help("leave --pair-weight out, or use `train rank`"));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_files() {
        for solver in Solver::ALL {
            assert_eq!(serde_json::to_value(solver).expect("JSON"), solver.name());
        }
        for scale in Scale::ALL {
            assert_eq!(serde_json::to_value(scale).expect("JSON"), scale.name());
        }
        for weight in PairWeight::ALL {
            assert_eq!(serde_json::to_value(weight).expect("JSON"), weight.name());
        }
        for task in [Task::Classify, Task::Rank] {
            assert_eq!(serde_json::to_value(task).expect("JSON"), task.name());
        }
    }
}
