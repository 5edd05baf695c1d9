//! [`Posed`]: a problem with its costs, and the list of tasks that problems are made of.

use crate::data::{Dataset, Outcome, Subset};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{
    ClassifySettings, CompareSettings, Method, RankSettings, Regularisation, Settings, TaskSettings,
};
use crate::solve::{ByBlock, ByDual, ByPart, Problem, ProblemShape, Start};
use crate::task::{
    Abilities, Binary, Classes, Comparison, GradedComparison, Intercept, LearningTask, OneClass, PairWeight,
    PairWeightAs, Ranking, TiesAs,
};
use crate::wording::{count, counted};

/// Makes problems of data: implemented by the tasks of this crate, and by yours.
pub trait Poses: Sync {
    /// The problem of learning from all rows, or from some of them, with C = 1: the others cost nothing.
    fn pose(&self, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>>;
}

/// The tasks of this crate, by their settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

/// A problem with its costs.
pub(crate) struct Posed {
    pub(crate) problem: Box<dyn Problem>,
    /// 0 where the margin is hard, like lambda.
    pub(crate) c: f64,
    pub(crate) lambda: f64,
    /// The total weight of all blocks where C is 1.
    total: f64,
    pub(crate) hard: bool,
}

/// The total weight of what is called `what`, or an error where nothing counts or the sum is no use.
pub(super) fn positive_total(total: f64, what: &str) -> Result<f64> {
    // Its inverse, which lambda is made of, must be a number too.
    if total > 0.0 && total.is_finite() && total.recip().is_finite() {
        return Ok(total);
    }
    if total == 0.0 {
        return Err(Error::new(Code::BadWeight, format!("no {what} counts: all weights are zero"))
            .help(format!("give at least one {what} a weight above zero")));
    }
    Err(Error::new(
        Code::BadWeight,
        format!("the weights add up to {total:e}, which is beyond what can be reckoned with"),
    )
    .help("give weights around 1: only their ratios matter, once C is chosen to fit"))
}

/// Refuses comparisons among which no threshold can be learned, or nothing at all.
pub(super) fn check_outcomes(data: &Dataset, method: Method) -> Result<()> {
    let Some(pairs) = data.pairs() else { return Ok(()) };
    let (mut ties, mut decided) = (0u64, 0u64);
    let weighing = (0..pairs.len()).filter(|&pair| pairs.weight(pair) > 0.0);
    weighing.for_each(|pair| if pairs.outcome(pair) == Outcome::Tie { ties += 1 } else { decided += 1 });
    let (message, help) = match (ties, decided) {
        (0, 0) => return Ok(()),
        (ties, 0) => (
            format!(
                "{}, and none says which item is better: nothing can be learned from ties alone",
                counted_ties(ties)
            ),
            "give pairs of which some are decided",
        ),
        (0, decided) if method == Method::Compare => (
            format!("none of the {} is a tie, so that no threshold can be learned", counted(decided, "pair", "pairs")),
            "use [[method=rank]], which learns scores alone, or give pairs of which some are ties",
        ),
        _ => return Ok(()),
    };
    Err(Error::new(Code::NoThreshold, message).help(help))
}

fn counted_ties(ties: u64) -> String {
    if ties == 1 { "the only pair is a tie".to_string() } else { format!("all {} pairs are ties", count(ties)) }
}

impl Poses for BuiltIn {
    fn pose(&self, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>> {
        let abilities = settings.abilities(data.pairs().is_some());
        Ok(match &settings.task {
            TaskSettings::Classify(task) => Box::new(classifier(data, task, settings.loss, abilities, subset)?),
            TaskSettings::Rank(task) if data.pairs().is_some() => {
                Box::new(ranker_of_pairs(data, task, settings.loss, abilities, subset)?)
            }
            TaskSettings::Rank(task) => Box::new(ranker(data, task, settings.loss, abilities, subset)?),
            TaskSettings::Compare(task) if task.ties_from_grades => {
                Box::new(comparison_by_grades(data, task, settings.loss, abilities, subset)?)
            }
            TaskSettings::Compare(task) => Box::new(comparison(data, task, settings.loss, abilities, subset)?),
            TaskSettings::Own(task) => {
                let message = format!("`{}` is a task of the user's own", task.name);
                return Err(Error::new(Code::Unsupported, message)
                    .help("give the code of the task: `train_own`, `verify_own` and `run_own` take it"));
            }
            TaskSettings::OneClass(_) => {
                Box::new(ByDual::new(OneClass::on(data, subset), Intercept::None).with_abilities(abilities))
            }
        })
    }
}

fn classifier(
    data: &Dataset,
    task: &ClassifySettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByBlock<Binary>> {
    let ClassifySettings { intercept, positive, class_weight } = task;
    let classes = Classes::find(data.targets(), positive.as_deref())?;
    let unit = Binary::on(data, &classes, class_weight, loss, *intercept != Intercept::None, subset)?;
    positive_total(unit.total_cost(), "row")?;
    if let Some(label) = unit.class_without_weight(&classes) {
        let message = match subset {
            None => format!("no row of class `{label}` counts: their weights are zero"),
            Some(_) => format!("no row of class `{label}` is left to learn from"),
        };
        return Err(Error::new(Code::SingleClass, message)
            .help("a classifier needs rows of two classes; give these rows, or their class, a weight above zero"));
    }
    Ok(ByBlock::new(unit, *intercept, abilities))
}

/// Explicit pairs are learned from in part by a data set of their own.
fn refuse_part(subset: Option<&Subset>) -> Result<()> {
    match subset {
        Some(_) => {
            Err(Error::new(Code::Internal, "explicit pairs are learned from in part by a data set of their own"))
        }
        None => Ok(()),
    }
}

fn ranker_of_pairs(
    data: &Dataset,
    task: &RankSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByBlock<Comparison>> {
    if task.pair_weight != PairWeight::Equal {
        return Err(Error::new(Code::BadSetting, "explicit pairs have weights of their own, and no queries or grades")
            .help("leave [[pair-weight]] out; [[pair-weight-as]] says what the weights of the pairs do"));
    }
    refuse_part(subset)?;
    let task = Comparison::new(data, TiesAs::Nothing, task.pair_weight_as, loss, 1.0)?;
    Ok(ByBlock::new(task, Intercept::None, abilities))
}

fn ranker(
    data: &Dataset,
    task: &RankSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByPart<Ranking>> {
    if task.pair_weight_as != PairWeightAs::default() {
        return Err(Error::new(Code::BadSetting, "these rows are graded, and it is explicit pairs that have weights")
            .help("leave [[pair-weight-as]] out, or list the pairs in a file and name the rows with [[items]]"));
    }
    let task = Ranking::on(data, loss, task.pair_weight, 1.0, subset)?;
    Ok(ByPart::new(task, Intercept::None).with_abilities(abilities))
}

fn comparison_by_grades(
    data: &Dataset,
    task: &CompareSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByPart<GradedComparison>> {
    if data.pairs().is_some() {
        return Err(Error::new(Code::BadSetting, "these are explicit pairs, which say themselves what is a tie")
            .help("leave [[ties-from-grades]] out, or give graded rows"));
    }
    let graded = GradedComparison::on(data, loss, 1.0, subset)?;
    Ok(ByPart::new(graded, task.threshold).with_abilities(abilities))
}

fn comparison(
    data: &Dataset,
    task: &CompareSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByBlock<Comparison>> {
    refuse_part(subset)?;
    let ties_as = match task.method {
        Method::Compare => TiesAs::Threshold,
        Method::Rank2 => TiesAs::Contradiction,
        _ => TiesAs::Nothing,
    };
    check_outcomes(data, task.method)?;
    let rule = if task.learns_threshold() { task.threshold } else { Intercept::None };
    let pairs = Comparison::new(data, ties_as, task.pair_weight_as, loss, 1.0)?;
    Ok(ByBlock::new(pairs.telling_ties(), rule, abilities))
}

impl Posed {
    /// The problem of learning from all rows.
    pub(crate) fn new(poses: &dyn Poses, data: &Dataset, settings: &Settings) -> Result<Posed> {
        Posed::on(poses, data, settings, None)
    }

    /// The problem of learning from some of the rows: the others cost nothing, and the total weight leaves them out.
    pub(crate) fn on(poses: &dyn Poses, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Posed> {
        let hard = settings.solver.is_hard_margin();
        let mut problem = poses.pose(data, settings, subset)?;
        // With cost 1 the blocks' total weight shows, which the mean form of the regularisation divides by.
        let total = positive_total(problem.task().total_cost(), problem.task().unit())?;
        // A constraint of a hard margin counts or does not; what it costs plays no part.
        let c = if hard { 1.0 } else { settings.regularisation.c(total) };
        problem.task_mut().set_cost(c);
        let (c, lambda) = if hard { (0.0, 0.0) } else { (c, settings.regularisation.lambda(total)) };
        Ok(Posed { problem, c, lambda, total, hard })
    }

    /// What the task says of itself.
    pub(crate) fn task(&self) -> &dyn LearningTask {
        self.problem.task()
    }

    /// Sets another weight of the loss: a step along a path.
    pub(crate) fn set_regularisation(&mut self, regularisation: Regularisation) {
        (self.c, self.lambda) = (regularisation.c(self.total), regularisation.lambda(self.total));
        self.problem.task_mut().set_cost(self.c);
    }

    /// Whether it is proven that no scores are better than ones that are all the same, by more than the tolerance: a
    /// comparison with the hinge on outcomes too uncertain for it. Without a bound the objective itself has to show it.
    pub(crate) fn learned_nothing(&self, settings: &Settings, objective: f64, lower_bound: Option<f64>) -> bool {
        if settings.loss != Loss::Hinge || self.problem.rule() != Intercept::Free || self.hard {
            return false;
        }
        let Some(trivial) = self.task().cost_of_equal_scores() else { return false };
        match lower_bound {
            Some(bound) => bound >= trivial * (1.0 - settings.tolerance),
            None => objective >= trivial * (1.0 - 1e-6),
        }
    }

    /// Whether a start has as many numbers as this problem, and only such as are finite.
    pub(super) fn takes(&self, start: &Start, features: usize, expands: bool) -> bool {
        let ProblemShape { outputs, free: scalars, blocks, kernel_numbers } = self.problem.shape();
        let Start { weights, thresholds: free, dual, width: _ } = start;
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        // Expansions start from their dual variables alone.
        let (numbers, scalars, blocks) =
            if expands { (0, 0, kernel_numbers) } else { (features * outputs, scalars, blocks) };
        // A barrier keeps the threshold above zero, and so must a start.
        let inside = !self.problem.abilities().barrier || free.iter().all(|threshold| *threshold > 0.0);
        inside
            && weights.len() == numbers
            && free.len() == scalars
            && dual.as_ref().is_none_or(|dual| dual.len() == blocks && finite(dual))
            && finite(weights)
            && finite(free)
    }

    /// Refuses what double precision does not hold.
    pub(crate) fn check_range(&self) -> Result<()> {
        let in_range = self.c.is_finite() && self.c > 0.0 && self.lambda.is_finite() && self.lambda > 0.0;
        if in_range || self.hard {
            return Ok(());
        }
        Err(Error::new(
            Code::BadSetting,
            format!("C = {:e} and lambda = {:e} are too extreme for double precision", self.c, self.lambda),
        )
        .help("give C or lambda a value such as 1 or 0.01"))
    }
}
