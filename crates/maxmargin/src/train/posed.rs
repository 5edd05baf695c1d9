//! [`Posed`]: a problem with its costs, and how each task becomes a problem.

use super::partition::Tally;
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels, Outcome, Subset, Targets};
use crate::error::{Code, Error, Result};
use crate::loss::Loss;
use crate::settings::{
    ClassifySettings, CompareSettings, Method, RankSettings, Regularisation, Settings, TaskSettings,
};
use crate::solve::{ByBlock, ByColumn, ByDual, ByOracle, ByPart, ByRank, Problem, ProblemShape, Start};
use crate::structured::{ClassMeasure, Labellings, OrderScore, RankMeasure, Rankings, Sequences, Trees, tags_of};
use crate::task::{
    Abilities, Binary, COLUMNS, Classes, ClickRanking, Columns, Comparison, GradedComparison, Intercept, JOINT, Joint,
    LearningTask, Multilabel, OneClass, Ordinal, OrdinalForm, OrdinalSettings, PairWeight, Ranking, Separation,
    TargetsAre, TiesAs, WeightAs,
};
use crate::wish::Solver;
use crate::wording::{count, counted};

/// Makes problems from data: implemented by the tasks of this crate, and by yours.
pub trait Poses: Sync {
    /// The problem of learning from all rows, or from some of them, with C = 1: the other rows have cost zero.
    fn pose(&self, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>>;

    /// What must be known of all rows before a part of them can be posed, found on one part. Tallies of several parts
    /// are merged by adding them up.
    fn tally(&self, part: &Dataset, settings: &Settings) -> Result<Tally> {
        let posed = or_nothing(self.pose(part, settings, None))?;
        Ok(Tally { total: posed.map_or(0.0, |problem| problem.task().total_cost()), ..Tally::default() })
    }

    /// The problem of a part of the data with C = 1, given the tally of all of them; none where it has no constraint.
    fn pose_part(&self, part: &Dataset, settings: &Settings, _whole: &Tally) -> Result<Option<Box<dyn Problem>>> {
        or_nothing(self.pose(part, settings, None))
    }

    /// The total weight of the loss at C = 1, of all parts.
    fn total(&self, _settings: &Settings, whole: &Tally) -> Result<f64> {
        Ok(whole.total)
    }
}

/// None where there is nothing to learn from: a part of the data may have no pairs.
fn or_nothing(posed: Result<Box<dyn Problem>>) -> Result<Option<Box<dyn Problem>>> {
    match posed {
        Err(error) if error.code() == Code::NoPairs => Ok(None),
        posed => posed.map(Some),
    }
}

/// The tasks of this crate, by their settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

/// A problem with its costs.
pub(crate) struct Posed {
    pub(crate) problem: Box<dyn Problem>,
    /// 0 for a hard margin, like lambda.
    pub(crate) c: f64,
    pub(crate) lambda: f64,
    /// The total weight of all blocks at C = 1.
    total: f64,
    pub(crate) hard: bool,
}

/// The total weight of what is called `what`, or an error if it is zero or not usable.
pub(super) fn positive_total(total: f64, what: &str) -> Result<f64> {
    // Its inverse, from which lambda is computed, must be finite too.
    if total > 0.0 && total.is_finite() && total.recip().is_finite() {
        return Ok(total);
    }
    if total == 0.0 {
        return Err(Error::new(Code::BadWeight, format!("all weights are zero, so no {what} counts"))
            .help(format!("give at least one {what} a weight above zero")));
    }
    Err(Error::new(Code::BadWeight, format!("the weights add up to {total:e}, which is out of range"))
        .help("give weights around 1: only their ratios matter, if C is chosen to fit"))
}

/// Ties and decided pairs that have a weight.
fn outcomes(data: &Dataset) -> (u64, u64) {
    let Some(pairs) = data.pairs() else { return (0, 0) };
    let weighing = (0..pairs.len()).filter(|&pair| pairs.weight(pair) > 0.0);
    weighing.fold((0, 0), |(ties, decided), pair| match pairs.outcome(pair) {
        Outcome::Tie => (ties + 1, decided),
        _ => (ties, decided + 1),
    })
}

/// Refuses comparisons from which no threshold, or nothing at all, can be learned.
pub(super) fn check_outcomes(data: &Dataset, method: Method) -> Result<()> {
    check_counts(outcomes(data), method)
}

fn check_counts((ties, decided): (u64, u64), method: Method) -> Result<()> {
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
            "use ⟦method=rank⟧, which learns scores alone, or give pairs of which some are ties",
        ),
        _ => return Ok(()),
    };
    Err(Error::new(Code::NoThreshold, message).help(help))
}

fn counted_ties(ties: u64) -> String {
    if ties == 1 { "the only pair is a tie".to_string() } else { format!("all {} pairs are ties", count(ties)) }
}

/// Names of what comparisons are tallied by.
const TIES: &str = "ties";
const DECIDED: &str = "decided";

/// The tally of comparisons, given the weights of ties and of decided pairs.
fn of_outcomes((ties, decided): (f64, f64), total: f64) -> Tally {
    Tally { weights: [(TIES.to_string(), ties), (DECIDED.to_string(), decided)].into(), words: true, total }
}

impl Poses for BuiltIn {
    fn pose(&self, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Box<dyn Problem>> {
        self.made(data, settings, subset, true)
    }

    fn tally(&self, part: &Dataset, settings: &Settings) -> Result<Tally> {
        match &settings.task {
            TaskSettings::Classify(_) | TaskSettings::Ordinal(_) => {
                if let TaskSettings::Ordinal(_) = settings.task {
                    // Ranks are numbers.
                    part.targets().real()?;
                }
                let (part, _) = settings.task.weight_as().split(part)?;
                let (weights, words) = Classes::tally(part.targets(), part.weights())?;
                Ok(Tally { weights, words, total: 0.0 })
            }
            TaskSettings::Compare(task) if task.ties_from_grades => {
                match GradedComparison::of_part(part, settings.loss) {
                    Ok(graded) => Ok(of_outcomes(graded.outcome_weights(), graded.total_cost())),
                    Err(error) if error.code() == Code::NoPairs => Ok(of_outcomes((0.0, 0.0), 0.0)),
                    Err(error) => Err(error),
                }
            }
            TaskSettings::Compare(_) => {
                let posed = or_nothing(self.made(part, settings, None, false))?;
                let (ties, decided) = outcomes(part);
                let total = posed.map_or(0.0, |problem| problem.task().total_cost());
                Ok(of_outcomes((ties as f64, decided as f64), total))
            }
            _ => {
                let posed = or_nothing(self.made(part, settings, None, false))?;
                Ok(Tally { total: posed.map_or(0.0, |problem| problem.task().total_cost()), ..Tally::default() })
            }
        }
    }

    fn pose_part(&self, part: &Dataset, settings: &Settings, whole: &Tally) -> Result<Option<Box<dyn Problem>>> {
        match &settings.task {
            TaskSettings::Classify(ClassifySettings { optimize: Some(measure), .. }) => {
                let message = format!("`{measure}` is a measure of all rows, and no sum over parts of them");
                Err(Error::new(Code::Unsupported, message).help("learn from all rows at once, or leave ⟦optimize⟧ out"))
            }
            TaskSettings::Classify(task) => {
                let (classes, shares) = classes_of(task, whole)?;
                let intercept = task.intercept != Intercept::None;
                let (part, margins) = task.weight_as.split(part)?;
                let unit = Binary::of_part(&part, &classes, shares, settings.loss, intercept)?.with_margins(margins);
                Ok(Some(Box::new(ByBlock::new(unit, task.intercept, settings.abilities(false)))))
            }
            TaskSettings::Ordinal(task) => {
                if task.form == OrdinalForm::Explicit {
                    let message = "the order of the cuts of the explicit form is not part of a sum over parts";
                    return Err(Error::new(Code::Unsupported, message)
                        .help("use ⟦form=implicit⟧, or learn from all rows at once"));
                }
                let (ranks, shares, _) = ranks_of(task, whole)?;
                let (part, margins) = task.weight_as.split(part)?;
                let unit = Ordinal::of_part(&part, &ranks, &shares, task.form, settings.loss)?.with_margins(margins);
                Ok(Some(Box::new(ByRank::new(unit, settings.abilities(false), settings))))
            }
            _ => or_nothing(self.made(part, settings, None, false)),
        }
    }

    fn total(&self, settings: &Settings, whole: &Tally) -> Result<f64> {
        match &settings.task {
            TaskSettings::Classify(task) => {
                let (classes, (negative, positive)) = classes_of(task, whole)?;
                let (negatives, positives) = classes.weights(&whole.weights);
                let (negatives, positives) = (negative * negatives, positive * positives);
                if negatives + positives > 0.0 && (negatives == 0.0 || positives == 0.0) {
                    let label = if negatives == 0.0 { &classes.negative } else { &classes.positive };
                    return Err(without_weight(label, None));
                }
                Ok(negatives + positives)
            }
            TaskSettings::Ordinal(task) => {
                let (_, shares, totals) = ranks_of(task, whole)?;
                Ok(shares.iter().zip(totals).map(|(share, total)| share * total).sum())
            }
            TaskSettings::Compare(task) => {
                let weight = |name: &str| whole.weights.get(name).copied().unwrap_or_default();
                // Weights of pairs of grades may be fractions; what matters is whether there are any.
                let count = |weight: f64| weight.ceil() as u64;
                let method = if task.ties_from_grades { Method::Compare } else { task.method };
                check_counts((count(weight(TIES)), count(weight(DECIDED))), method)?;
                Ok(whole.total)
            }
            _ => Ok(whole.total),
        }
    }
}

/// The classes that a tally names, and their weights.
fn classes_of(task: &ClassifySettings, whole: &Tally) -> Result<(Classes, (f64, f64))> {
    let classes = Classes::of_tally(&whole.weights, whole.words, task.positive.as_deref())?;
    let shares = task.class_weight.shares(&classes, || classes.weights(&whole.weights))?;
    Ok((classes, shares))
}

/// The ranks that a tally names, the weight of each, and the total weight of its rows.
fn ranks_of(task: &OrdinalSettings, whole: &Tally) -> Result<(Labels, Vec<f64>, Vec<f64>)> {
    let number = |(name, weight): (&String, &f64)| name.parse::<f64>().ok().map(|value| (value, *weight));
    let mut found: Vec<(f64, f64)> = whole.weights.iter().filter_map(number).collect();
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let ranks = Labels::ranks(&Targets::Real(found.iter().map(|rank| rank.0).collect::<Vec<_>>().into()))?;
    let totals: Vec<f64> = found.iter().map(|rank| rank.1).collect();
    let shares = task.class_weight.of_labels(&ranks, &totals)?;
    Ok((ranks, shares, totals))
}

impl BuiltIn {
    /// The problem of all rows, or of a part of them (`whole` is false), whose comparisons may all be ties, or all
    /// decided.
    fn made(
        &self,
        data: &Dataset,
        settings: &Settings,
        subset: Option<&Subset>,
        whole: bool,
    ) -> Result<Box<dyn Problem>> {
        let abilities = settings.abilities(data.pairs().is_some());
        Ok(match &settings.task {
            TaskSettings::Classify(task) => {
                let labels = Labels::find(data.targets())?;
                if let Some(measure) = task.optimize {
                    return Ok(Box::new(labellings(data, (task, &labels), measure, subset)?));
                }
                if let Some((code, decoder)) = task.columns(&labels, settings.loss, settings.seed)? {
                    let parts = (&labels, code, decoder);
                    let (data, margins) = task.weight_as.split(data)?;
                    let columns = Columns::on(&data, parts, &task.class_weight, settings.loss, task.intercept, subset)?;
                    let columns = columns.with_margins(margins);
                    positive_total(columns.total_cost(), "row")?;
                    return Ok(Box::new(ByColumn::new(columns, COLUMNS)));
                }
                match task.several(labels.len()) {
                    true => Box::new(joint_classifier(data, task, &labels, settings, subset)?),
                    false => Box::new(classifier(data, task, settings.loss, abilities, subset)?),
                }
            }
            TaskSettings::Rank(RankSettings { optimize: Some(measure), order_score, .. }) => {
                Box::new(orders(data, *measure, *order_score, subset)?)
            }
            TaskSettings::Rank(task) if data.pairs().is_some() => {
                let pairs = ranker_of_pairs(data, task, settings.loss, subset)?;
                Box::new(ByBlock::new(merged(pairs, data, settings), Intercept::None, abilities))
            }
            TaskSettings::Rank(task) if task.targets_are == TargetsAre::Clicks => {
                let per_query = task.pair_weight == PairWeight::PerQuery;
                let clicks = ClickRanking::on(data, settings.loss, per_query, 1.0, subset)?;
                Box::new(ByPart::new(clicks, Intercept::None).with_abilities(abilities))
            }
            TaskSettings::Rank(task) => Box::new(ranker(data, task, settings.loss, abilities, subset)?),
            TaskSettings::Compare(task) if task.ties_from_grades => {
                Box::new(comparison_by_grades(data, task, settings.loss, abilities, subset, whole)?)
            }
            TaskSettings::Compare(task) => {
                refuse_part(subset)?;
                if whole {
                    check_outcomes(data, task.method)?;
                }
                let pairs = merged(comparison(data, task, settings.loss)?, data, settings);
                let rule = if task.learns_threshold() { task.threshold } else { Intercept::None };
                Box::new(ByBlock::new(pairs, rule, abilities))
            }
            TaskSettings::Own(task) => {
                let message = format!("`{}` is a user-defined task", task.name);
                return Err(Error::new(Code::Unsupported, message)
                    .help("use the program that trained it: the code of the task is not in the model file"));
            }
            TaskSettings::Ordinal(task) => {
                let (data, margins) = task.weight_as.split(data)?;
                let unit = Ordinal::on(&data, task.form, &task.class_weight, settings.loss, subset)?;
                let unit = unit.with_margins(margins);
                positive_total(unit.total_cost(), "row")?;
                Box::new(ByRank::new(unit, abilities, settings))
            }
            TaskSettings::Multilabel(task) => {
                let labels = Labels::of_sets(data.targets())?;
                let rule = task.intercept;
                if task.multilabel == Multilabel::OneVsRest {
                    let columns = Columns::of_sets(data, &labels, settings.loss, rule, subset)?;
                    positive_total(columns.total_cost(), "row")?;
                    return Ok(Box::new(ByColumn::new(columns, abilities)));
                }
                if settings.solver == Solver::CuttingPlane && rule == Intercept::Free {
                    return Err(free_planes("label sets"));
                }
                let task = Separation::on(data, &labels, settings.loss, rule != Intercept::None, subset)?;
                positive_total(task.total_cost(), "row")?;
                Box::new(ByPart::new(task, rule).with_abilities(abilities))
            }
            TaskSettings::Sequence(task) => {
                let tags = tags_of(data)?;
                let sequences = Sequences::on(data, &tags, task.loss_scale, subset)?;
                let meaning = move |shared: &[f64]| Decoder::Sequence { tags: tags.clone(), shared: shared.to_vec() };
                Box::new(ByOracle::new(Box::new(sequences), "sequence", Box::new(meaning)))
            }
            TaskSettings::Tree(task) => {
                let trees = Trees::on(data, task.markov(), task.loss_scale, subset)?;
                let grammar = Box::new(trees.grammar().clone());
                let meaning = move |shared: &[f64]| Decoder::Tree { grammar: grammar.clone(), shared: shared.to_vec() };
                Box::new(ByOracle::new(Box::new(trees), "sentence", Box::new(meaning)))
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
    let ClassifySettings { intercept, positive, class_weight, .. } = task;
    let classes = Classes::find(data.targets(), positive.as_deref())?;
    let (data, margins) = task.weight_as.split(data)?;
    let unit = Binary::on(&data, &classes, class_weight, loss, *intercept != Intercept::None, subset)?;
    let unit = unit.with_margins(margins);
    positive_total(unit.total_cost(), "row")?;
    if let Some(label) = unit.class_without_weight(&classes) {
        return Err(without_weight(label, subset));
    }
    Ok(ByBlock::new(unit, *intercept, abilities))
}

/// All rows of two classes at once.
fn labellings(
    data: &Dataset,
    (task, labels): (&ClassifySettings, &Labels),
    measure: ClassMeasure,
    subset: Option<&Subset>,
) -> Result<ByOracle> {
    if labels.len() > 2 {
        let message = format!("`{measure}` is a measure of two classes, and there are {}", labels.len());
        return Err(Error::new(Code::TooManyClasses, message).help("leave ⟦optimize⟧ out, or keep two classes"));
    }
    let classes = Classes::find(data.targets(), task.positive.as_deref())?;
    let constant = task.intercept != Intercept::None;
    let structure = Labellings::on(data, &classes, measure, constant, subset)?;
    let meaning = move |_: &[f64]| Decoder::Sign(classes.clone());
    let problem = ByOracle::new(Box::new(structure), "row", Box::new(meaning));
    Ok(if constant { problem.adding_shared() } else { problem })
}

/// The orders of graded rows.
fn orders(data: &Dataset, measure: RankMeasure, score: OrderScore, subset: Option<&Subset>) -> Result<ByOracle> {
    if data.pairs().is_some() {
        let message = format!("these are explicit pairs, and `{measure}` judges the whole order of graded rows");
        return Err(
            Error::new(Code::BadSetting, message).help("leave ⟦optimize⟧ out, or give rows with grades and query ids")
        );
    }
    let structure = Rankings::on(data, measure, score, subset)?;
    Ok(ByOracle::new(Box::new(structure), "query", Box::new(|_| Decoder::Rank)))
}

fn joint_classifier(
    data: &Dataset,
    task: &ClassifySettings,
    labels: &Labels,
    settings: &Settings,
    subset: Option<&Subset>,
) -> Result<ByPart<Joint>> {
    let loss = settings.loss;
    let form = task.multiclass(loss).joint_form(loss)?;
    if let Some(positive) = &task.positive {
        let message = format!("`{positive}` is to be positive, and there are {} classes", labels.len());
        return Err(Error::new(Code::TooManyClasses, message).help("leave ⟦positive⟧ out, or keep two classes"));
    }
    if settings.solver == Solver::CuttingPlane && task.intercept == Intercept::Free {
        return Err(free_planes("several classes"));
    }
    let constants = task.intercept != Intercept::None;
    let (data, margins) = task.weight_as.split(data)?;
    let costs = task.cost_matrix.as_ref().map(|matrix| matrix.of_classes(labels)).transpose()?;
    let joint = Joint::on(&data, labels, &task.class_weight, (form, loss), constants, subset)?;
    let joint = joint.with_margins(margins).with_costs(costs);
    positive_total(joint.total_cost(), "row")?;
    Ok(ByPart::new(joint, task.intercept).with_abilities(JOINT))
}

/// The error for cutting planes over several scores with free constants: a number added to all constants changes no loss,
/// and the planes do not bear that.
fn free_planes(what: &str) -> Error {
    let message = format!("cutting planes do not solve {what} with free constants");
    Error::new(Code::Unsupported, message).help("leave ⟦solver⟧ out, or use ⟦intercept=penalised⟧")
}

/// The error for a class none of whose rows counts.
fn without_weight(label: &str, subset: Option<&Subset>) -> Error {
    let message = match subset {
        None => format!("all rows of class `{label}` have weight zero"),
        Some(_) => format!("no row of class `{label}` is left to learn from"),
    };
    Error::new(Code::SingleClass, message)
        .help("a classifier needs rows of two classes; give these rows, or their class, a weight above zero")
}

/// For explicit pairs, a part to learn from is a separate data set, not a subset.
fn refuse_part(subset: Option<&Subset>) -> Result<()> {
    match subset {
        Some(_) => {
            Err(Error::new(Code::Internal, "explicit pairs are learned from in part by a data set of their own"))
        }
        None => Ok(()),
    }
}

fn ranker_of_pairs(data: &Dataset, task: &RankSettings, loss: Loss, subset: Option<&Subset>) -> Result<Comparison> {
    if task.pair_weight != PairWeight::Equal {
        return Err(Error::new(Code::BadSetting, "explicit pairs have weights of their own, and no queries or grades")
            .help("leave ⟦pair-weight⟧ out; ⟦weight-as⟧ sets how the weights of pairs are used"));
    }
    refuse_part(subset)?;
    Comparison::new(data, TiesAs::Nothing, task.weight_as, loss, 1.0)
}

/// A pair of graded rows has two weights, and its margin can take neither.
fn refuse_graded_margins(weight_as: WeightAs) -> Result<()> {
    if weight_as != WeightAs::Margin {
        return Ok(());
    }
    let message = "these rows are graded: each pair has the weights of two rows, and a margin takes one";
    Err(Error::new(Code::BadSetting, message)
        .help("leave ⟦weight-as⟧ out, or list the pairs in a file and name the rows with ⟦items⟧"))
}

fn ranker(
    data: &Dataset,
    task: &RankSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
) -> Result<ByPart<Ranking>> {
    refuse_graded_margins(task.weight_as)?;
    let (data, _) = task.weight_as.split(data)?;
    let data = &*data;
    let task = Ranking::on(data, loss, task.pair_weight, 1.0, subset)?;
    Ok(ByPart::new(task, Intercept::None).with_abilities(abilities))
}

fn comparison_by_grades(
    data: &Dataset,
    task: &CompareSettings,
    loss: Loss,
    abilities: Abilities,
    subset: Option<&Subset>,
    whole: bool,
) -> Result<ByPart<GradedComparison>> {
    if data.pairs().is_some() {
        return Err(Error::new(Code::BadSetting, "these are explicit pairs, whose outcomes already include ties")
            .help("leave ⟦ties-from-grades⟧ out, or give graded rows"));
    }
    refuse_graded_margins(task.weight_as)?;
    let (data, _) = task.weight_as.split(data)?;
    let data = &*data;
    let graded = match whole {
        true => GradedComparison::on(data, loss, 1.0, subset)?,
        false => GradedComparison::of_part(data, loss)?,
    };
    Ok(ByPart::new(graded, task.threshold).with_abilities(abilities))
}

/// Merges equal pairs, except for solvers that draw one pair at a time: they would take large steps for a few. With a
/// kernel, pairs whose weights are margins stay apart: folds share kernel values, and held-out pairs have weight 0.
fn merged(pairs: Comparison, data: &Dataset, settings: &Settings) -> Comparison {
    let one_at_a_time = settings.solver.is_stochastic() || settings.solver == Solver::Lasvm;
    if one_at_a_time || (settings.expands() && pairs.weights_are_margins()) {
        return pairs;
    }
    pairs.with_equal_pairs_merged(data.rows())
}

fn comparison(data: &Dataset, task: &CompareSettings, loss: Loss) -> Result<Comparison> {
    let ties_as = match task.method {
        Method::Compare => TiesAs::Threshold,
        Method::Rank2 => TiesAs::Contradiction,
        _ => TiesAs::Nothing,
    };
    Ok(Comparison::new(data, ties_as, task.weight_as, loss, 1.0)?.telling_ties())
}

impl Posed {
    /// The problem of learning from all rows.
    pub(crate) fn new(poses: &dyn Poses, data: &Dataset, settings: &Settings) -> Result<Posed> {
        Posed::on(poses, data, settings, None)
    }

    /// The problem of learning from some of the rows: the others have cost zero, and the total weight leaves them out.
    pub(crate) fn on(poses: &dyn Poses, data: &Dataset, settings: &Settings, subset: Option<&Subset>) -> Result<Posed> {
        let hard = settings.is_hard_margin();
        let mut problem = poses.pose(data, settings, subset)?;
        // With cost 1, the total cost is the total weight of the blocks, by which the mean form of the regularisation
        // divides.
        let total = positive_total(problem.task().total_cost(), problem.task().unit())?;
        // A constraint of a hard margin counts or does not; the size of its cost is not used.
        let c = if hard { 1.0 } else { settings.regularisation.c(total) };
        problem.task_mut().set_cost(c);
        let (c, lambda) = if hard { (0.0, 0.0) } else { (c, settings.regularisation.lambda(total)) };
        Ok(Posed { problem, c, lambda, total, hard })
    }

    /// What the task states about itself.
    pub(crate) fn task(&self) -> &dyn LearningTask {
        self.problem.task()
    }

    /// Sets another weight of the loss, for the next fit of a path.
    pub(crate) fn set_regularisation(&mut self, regularisation: Regularisation) {
        (self.c, self.lambda) = (regularisation.c(self.total), regularisation.lambda(self.total));
        self.problem.task_mut().set_cost(self.c);
    }

    /// Whether it is proven that constant scores are as good as any, within the tolerance: this happens for a
    /// comparison, and for label sets, with the hinge on outcomes too uncertain for it. Without a bound the objective itself has to show it.
    pub(crate) fn learned_nothing(&self, settings: &Settings, objective: f64, lower_bound: Option<f64>) -> bool {
        let sets = matches!(settings.task, TaskSettings::Multilabel(_));
        if settings.loss != Loss::Hinge || !(sets || self.problem.rule() == Intercept::Free) || self.hard {
            return false;
        }
        let Some(trivial) = self.task().cost_of_equal_scores() else { return false };
        match lower_bound {
            Some(bound) => bound >= trivial * (1.0 - settings.tolerance),
            None => objective >= trivial * (1.0 - 1e-6),
        }
    }

    /// Whether a start has the same size as this problem, and only finite numbers.
    pub(super) fn takes(&self, start: &Start, features: usize, expands: bool) -> bool {
        let ProblemShape { outputs, free: scalars, blocks, kernel_numbers } = self.problem.shape();
        let Start { weights, thresholds: free, dual, classes, outputs: _, cuts, width: _ } = start;
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        // Expansions start from their dual variables alone.
        let (numbers, scalars, blocks) =
            if expands { (0, 0, kernel_numbers) } else { (features * outputs, scalars, blocks) };
        // A barrier keeps the threshold above zero, so the start must be above zero too.
        let inside = !self.problem.abilities().barrier || free.iter().all(|threshold| *threshold > 0.0);
        let dim = features * outputs + self.problem.shape().free;
        inside
            && cuts.iter().flatten().all(|cut| cut.point.len() == dim && finite(&cut.point))
            && weights.len() == numbers
            && free.len() == scalars
            && dual.as_ref().is_none_or(|dual| dual.len() == blocks && finite(dual))
            && classes
                .as_ref()
                .is_none_or(|dual| !expands && dual.is_sound(self.problem.shape().kernel_numbers, outputs))
            && finite(weights)
            && finite(free)
    }

    /// Refuses constants that no model holds.
    pub(super) fn check_outputs(&self) -> Result<()> {
        let ProblemShape { outputs, free, .. } = self.problem.shape();
        if self.task().adds_free() && ![0, 1, outputs].contains(&free) {
            let message = format!("{free} free scalars are added to {outputs} scores a row");
            return Err(Error::new(Code::Unsupported, message)
                .help("let the task have one free scalar for each score, or one for all of them"));
        }
        Ok(())
    }

    /// Refuses values outside the range of double precision.
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
