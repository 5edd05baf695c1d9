//! [`Problem`]: what is to be learned from given data, with its costs.

use crate::data::{Dataset, Outcome, Subset};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::model::Decoder;
use crate::settings::{Method, Regularisation, Settings, Task};
use crate::solve::Start;
use crate::task::{
    Binary, Classes, Comparison, GradedComparison, Independent, Intercept, Objective, OneClass, PairWeight,
    PairWeightAs, Ranking, TiesAs,
};
use crate::wording::{count, counted};

/// The task in the form its solvers take.
pub(crate) enum Tasks {
    Binary(Binary, Classes),
    Ranking(Ranking),
    /// Comparisons of all pairs of graded rows.
    Graded(GradedComparison),
    Pairs(Comparison),
    OneClass(OneClass, Classes),
}

pub(crate) struct Problem {
    pub(crate) task: Tasks,
    /// 0 where the margin is hard, like lambda.
    pub(crate) c: f64,
    pub(crate) lambda: f64,
    /// The total weight of all blocks where C is 1.
    total: f64,
    pub(crate) hard: bool,
    /// Whether differences of scores are compared with a threshold.
    pub(super) compares: bool,
    /// What the rows are called.
    pub(super) data: Dataset,
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
            "use --method rank, which learns scores alone, or give pairs of which some are ties",
        ),
        _ => return Ok(()),
    };
    Err(Error::new(Code::NoThreshold, message).help(help))
}

fn counted_ties(ties: u64) -> String {
    if ties == 1 { "the only pair is a tie".to_string() } else { format!("all {} pairs are ties", count(ties)) }
}

impl Problem {
    pub(crate) fn new(data: &Dataset, settings: &Settings) -> Result<Problem> {
        Problem::on(data, settings, None)
    }

    /// The problem of learning from some of the rows: the others cost nothing, and the total weight leaves them out.
    pub(crate) fn on(data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Problem> {
        // With cost 1 the blocks' total weight shows, which the mean form of the regularisation divides by.
        let hard = settings.solver.is_hard_margin();
        let problem = |task: Tasks, c: f64, total: f64| {
            let (c, lambda) = if hard { (0.0, 0.0) } else { (c, settings.regularisation.lambda(total)) };
            let compares = settings.task == Task::Compare;
            Problem { task, c, lambda, total, hard, compares, data: data.clone() }
        };
        // A constraint of a hard margin counts or does not; what it costs plays no part.
        let cost = |total: f64| if hard { 1.0 } else { settings.regularisation.c(total) };
        match settings.task {
            Task::Classify => {
                let classes = Classes::find(data.targets(), settings.positive.as_deref())?;
                let has_threshold = settings.intercept != Intercept::None;
                let unit = Binary::on(data, &classes, &settings.class_weight, settings.loss, has_threshold, subset)?;
                let total = positive_total(unit.total_cost(), "row")?;
                if let Some(label) = unit.class_without_weight(&classes) {
                    let message = match subset {
                        None => format!("no row of class `{label}` counts: their weights are zero"),
                        Some(_) => format!("no row of class `{label}` is left to learn from"),
                    };
                    return Err(Error::new(Code::SingleClass, message).help(
                        "a classifier needs rows of two classes; give these rows, or their class, a weight above zero",
                    ));
                }
                let c = cost(total);
                Ok(problem(Tasks::Binary(unit.with_cost(c), classes), c, total))
            }
            Task::OneClass => {
                let task = OneClass::on(data, subset);
                let total = positive_total(task.total_cost(), "row")?;
                let c = cost(total);
                Ok(problem(Tasks::OneClass(task.with_cost(c), OneClass::names(data.targets())), c, total))
            }
            Task::Compare if settings.ties_from_grades => {
                if data.pairs().is_some() {
                    return Err(Error::new(
                        Code::BadSetting,
                        "these are explicit pairs, which say themselves what is a tie",
                    )
                    .help("leave --ties-from-grades out, or give graded rows"));
                }
                let task = GradedComparison::on(data, settings.loss, 1.0, subset)?;
                let total = positive_total(task.total_cost(), "pair")?;
                let c = cost(total);
                Ok(problem(Tasks::Graded(task.with_cost(c)), c, total))
            }
            Task::Compare => {
                if subset.is_some() {
                    return Err(Error::new(
                        Code::Internal,
                        "explicit pairs are learned from in part by a data set of their own",
                    ));
                }
                let ties_as = match settings.method {
                    Method::Compare => TiesAs::Threshold,
                    Method::Rank2 => TiesAs::Contradiction,
                    _ => TiesAs::Nothing,
                };
                check_outcomes(data, settings.method)?;
                let task = Comparison::new(data, ties_as, settings.pair_weight_as, settings.loss, 1.0)?;
                let total = positive_total(task.total_cost(), "pair")?;
                let c = cost(total);
                Ok(problem(Tasks::Pairs(task.with_cost(c)), c, total))
            }
            Task::Rank if data.pairs().is_some() && settings.pair_weight != PairWeight::Equal => {
                Err(Error::new(Code::BadSetting, "explicit pairs have weights of their own, and no queries or grades")
                    .help("leave --pair-weight out; --pair-weight-as says what the weights of the pairs do"))
            }
            Task::Rank if data.pairs().is_some() && subset.is_some() => {
                Err(Error::new(Code::Internal, "explicit pairs are learned from in part by a data set of their own"))
            }
            Task::Rank if data.pairs().is_some() => {
                let task = Comparison::new(data, TiesAs::Nothing, settings.pair_weight_as, settings.loss, 1.0)?;
                let total = positive_total(task.total_cost(), "pair")?;
                let c = cost(total);
                Ok(problem(Tasks::Pairs(task.with_cost(c)), c, total))
            }
            Task::Rank if settings.pair_weight_as != PairWeightAs::default() => {
                Err(Error::new(Code::BadSetting, "these rows are graded, and it is explicit pairs that have weights")
                    .help("leave --pair-weight-as out, or list the pairs in a file and name the rows with --items"))
            }
            Task::Rank => {
                let ranking = Ranking::on(data, settings.loss, settings.pair_weight, 1.0, subset)?;
                let total = positive_total(ranking.total_cost(), "pair")?;
                let c = cost(total);
                Ok(problem(Tasks::Ranking(ranking.with_cost(c)), c, total))
            }
        }
    }

    /// Sets another weight of the loss: a step along a path.
    pub(crate) fn set_regularisation(&mut self, regularisation: Regularisation) {
        (self.c, self.lambda) = (regularisation.c(self.total), regularisation.lambda(self.total));
        match &mut self.task {
            Tasks::Binary(task, _) => task.set_cost(self.c),
            Tasks::Ranking(task) => task.set_cost(self.c),
            Tasks::Graded(task) => task.set_cost(self.c),
            Tasks::Pairs(task) => task.set_cost(self.c),
            Tasks::OneClass(task, _) => task.set_cost(self.c),
        }
    }

    /// Whether it is proven that no scores are better than ones that are all the same, by more than the tolerance: a
    /// comparison with the hinge on outcomes too uncertain for it. Without a bound the objective itself has to show it.
    pub(crate) fn learned_nothing(&self, settings: &Settings, objective: f64, lower_bound: Option<f64>) -> bool {
        if settings.loss != Loss::Hinge || settings.intercept != Intercept::Free || self.hard {
            return false;
        }
        // With equal scores the best threshold is 1, where every decided pair costs 2, or −1, where each constraint of a
        // tie does.
        let (decided, tied) = match &self.task {
            Tasks::Pairs(task) if self.compares => task.costs_by_kind(),
            Tasks::Graded(task) => task.costs_by_kind(),
            _ => return false,
        };
        let trivial = 2.0 * decided.min(tied);
        match lower_bound {
            Some(bound) => bound >= trivial * (1.0 - settings.tolerance),
            None => objective >= trivial * (1.0 - 1e-6),
        }
    }

    /// Whether a start has as many numbers as this problem, and only such as are finite.
    pub(super) fn takes(&self, start: &Start, features: usize, expands: bool) -> bool {
        let (blocks, thresholds) = match &self.task {
            Tasks::Binary(task, _) => (task.blocks(), Objective::thresholds(task)),
            Tasks::Pairs(task) => (task.blocks(), Objective::thresholds(task)),
            Tasks::OneClass(task, _) => (task.blocks(), 0),
            // Through a kernel it starts from one number a row.
            Tasks::Ranking(_) => (if expands { self.data.rows() } else { 0 }, 0),
            Tasks::Graded(task) => (0, Objective::thresholds(task)),
        };
        let Start { weights, thresholds: free, dual, width: _ } = start;
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        // Expansions start from their dual variables alone.
        let (features, thresholds) = if expands { (0, 0) } else { (features, thresholds) };
        // A barrier keeps the threshold above zero, and so must a start.
        let inside = match &self.task {
            Tasks::Pairs(task) if task.barrier() > 0.0 => free.iter().all(|threshold| *threshold > 0.0),
            _ => true,
        };
        inside
            && weights.len() == features
            && free.len() == thresholds
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

    /// What scores mean; comparisons by a threshold.
    pub(crate) fn decoder(&self, threshold: f64) -> Decoder {
        if self.compares {
            return match &self.task {
                Tasks::Pairs(task) if task.barrier() > 0.0 => Decoder::Likelihood { threshold },
                _ => Decoder::Compare { threshold },
            };
        }
        match &self.task {
            Tasks::Binary(_, classes) => Decoder::Sign(classes.clone()),
            Tasks::OneClass(_, classes) => Decoder::OneClass(classes.clone()),
            Tasks::Ranking(_) | Tasks::Graded(_) | Tasks::Pairs(_) => Decoder::Rank,
        }
    }

    /// Ties with a second constraint, where there are any.
    pub(super) fn ties(&self) -> Option<u64> {
        match &self.task {
            Tasks::Pairs(task) => Some(task.second_constraints()).filter(|ties| *ties > 0),
            Tasks::Binary(..) | Tasks::Ranking(_) | Tasks::Graded(_) | Tasks::OneClass(..) => None,
        }
    }

    pub(crate) fn constraints(&self) -> u64 {
        match &self.task {
            Tasks::Binary(task, _) => task.constraints(),
            Tasks::Ranking(task) => task.pairs(),
            Tasks::Graded(task) => task.constraints(),
            Tasks::Pairs(task) => task.constraints(),
            Tasks::OneClass(task, _) => task.constraints(),
        }
    }
}
