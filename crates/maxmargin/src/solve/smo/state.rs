//! The state of the solver: all variables, and those that take part at present.
//!
//! **Narrowing.** A variable at an end of its box, whose gradient pushes it further out than any other could pull it
//! back, will hardly move again. With very many variables, these are left out: the problem over the others has shorter
//! kernel rows, of which more fit in the cache. The gradients of the variables left out are not updated until the
//! others have converged. Then all are updated with one kernel row for each variable that moved in between
//! ([`State::widen`]), and the rounds continue over all variables. In between, values use the old gradients of the
//! variables left out, so only values over all variables count (Joachims, Making large-scale SVM learning practical,
//! 1998).

use super::working_set::{Local, Selection};
use super::{Form, Gram, Scalars, Smo, Values, Variable, WORKING_SET, nu_group};
use crate::error::{Code, Error, Result};
use crate::kernel::{Element, RowCache, add_row};
use crate::loss::Loss;
use crate::parallel;
use crate::run::Cancel;
use crate::solve::overflow;
use crate::task::{Independent, Intercept};

/// Variables are summed and updated in chunks of this size. It is fixed, so the result does not depend on the number of
/// threads.
const CHUNK: usize = 1024;

/// A round takes this share of the variables, at least so many, and `WORKING_SET` at most.
const SHARE: usize = 8;
const LEAST_WORKING: usize = 64;

/// Kernel rows computed together when many are needed once.
const TOGETHER: usize = 256;

/// The problem is narrowed at most this often: at the limit of precision it would otherwise repeat forever.
const MOST_NARROWINGS: u32 = 8;

/// The minimum number of rounds over all variables before narrowing.
const ROUNDS_BETWEEN: u32 = 10;

/// The variables of the last round, and a buffer for the kernel values between those of a round.
struct Working<V> {
    places: Vec<usize>,
    buffer: Vec<V>,
}

impl<V> Working<V> {
    fn new() -> Working<V> {
        Working { places: Vec::new(), buffer: Vec::new() }
    }
}

pub(super) struct State<'a, V> {
    /// All variables, by block.
    variables: Vec<Variable>,
    /// m and cost of each block.
    margins: Vec<(f64, f64)>,
    loss: Loss,
    penalised: bool,
    groups: usize,
    gram: &'a dyn Gram<V>,
    cache: &'a mut RowCache<V>,
    working: Working<V>,
    narrowed: Option<Narrowed<'a, V>>,
    shrink_from: usize,
    cache_bytes: u64,
    narrowings: u32,
    rounds: u32,
    /// Kernel rows requested and computed by earlier narrowed problems.
    counted: (u64, u64),
}

/// The problem over some of the variables.
struct Narrowed<'a, V> {
    blocks: Vec<usize>,
    variables: Vec<Variable>,
    /// α of these variables when the others were left out.
    before: Vec<f64>,
    gram: Box<dyn Gram<V> + 'a>,
    cache: RowCache<V>,
    working: Working<V>,
}

impl<'a, V: Element> State<'a, V> {
    pub(super) fn new<T: Independent>(
        settings: &Smo,
        task: &T,
        gram: &'a dyn Gram<V>,
        cache: &'a mut RowCache<V>,
    ) -> Result<State<'a, V>> {
        let loss = task.loss();
        let penalised = settings.intercept == Intercept::Penalised;
        let free = settings.intercept == Intercept::Free;
        let diagonal = gram.diagonal();
        let blocks = task.blocks();
        let mut variables = Vec::with_capacity(blocks);
        let mut margins = Vec::with_capacity(blocks);
        for (block, &own) in diagonal.iter().enumerate().take(blocks) {
            let c = task.constraint(block);
            let taken = match settings.intercept {
                Intercept::None => true,
                Intercept::Free => c.threshold.abs() == 1.0,
                Intercept::Penalised => c.threshold == c.coefficient && c.threshold.abs() == 1.0,
            };
            if !taken && c.cost > 0.0 {
                return Err(odd_threshold(c.threshold));
            }
            let extra = if loss == Loss::SquaredHinge { 0.5 / c.cost } else { 0.0 };
            let own = own + if penalised { c.threshold * c.threshold } else { 0.0 };
            let (sign, group, margin) = match settings.form {
                Form::Costs => {
                    (if free { c.threshold } else { 0.0 }, if free { task.cut(block) as u16 } else { 0 }, c.margin)
                }
                Form::Nu => (1.0, u16::from(nu_group(settings.intercept, &c).1), 0.0),
            };
            variables.push(Variable {
                alpha: 0.0,
                gradient: -margin,
                limit: if c.cost > 0.0 { loss.dual_limit(c.cost) } else { 0.0 },
                coefficient: c.coefficient,
                sign,
                group,
                own,
                diagonal: if c.cost > 0.0 { extra } else { 0.0 },
            });
            margins.push((margin, c.cost));
        }
        if variables.iter().any(|variable| !variable.own.is_finite() && variable.limit > 0.0) {
            return Err(overflow());
        }
        let grouped = variables.iter().any(|variable| variable.sign != 0.0);
        let last = variables.iter().map(|variable| usize::from(variable.group)).max().unwrap_or(0);
        Ok(State {
            variables,
            margins,
            loss,
            penalised,
            groups: if grouped { last + 1 } else { 0 },
            gram,
            cache,
            working: Working::new(),
            narrowed: None,
            shrink_from: settings.shrink_from,
            cache_bytes: settings.cache_bytes,
            narrowings: 0,
            rounds: 0,
            counted: (0, 0),
        })
    }

    /// Sets all variables to a point and updates the gradients.
    pub(super) fn begin(&mut self, alpha: &[f64], cancel: &Cancel) -> Result<()> {
        let moved: Vec<(usize, f64)> = self
            .variables
            .iter_mut()
            .zip(alpha)
            .enumerate()
            .filter_map(|(block, (variable, &alpha))| {
                let change = alpha.clamp(0.0, variable.limit) - variable.alpha;
                variable.alpha += change;
                (change != 0.0).then_some((block, change))
            })
            .collect();
        self.catch_up(&moved, None, cancel)
    }

    /// Whether all variables take part.
    pub(super) fn is_whole(&self) -> bool {
        self.narrowed.is_none()
    }

    pub(super) fn selection(&self) -> Selection {
        match &self.narrowed {
            Some(narrowed) => Selection::of(&narrowed.variables, self.groups),
            None => Selection::of(&self.variables, self.groups),
        }
    }

    pub(super) fn alphas(&self) -> impl Iterator<Item = f64> {
        self.variables.iter().map(|variable| variable.alpha)
    }

    /// Kernel rows requested, and how many of these were computed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (asked, computed) = self.cache.counts();
        (asked + self.counted.0, computed + self.counted.1)
    }

    /// Σ α t
    pub(super) fn pull<T: Independent>(&self, task: &T) -> f64 {
        self.variables
            .iter()
            .enumerate()
            .map(|(block, variable)| variable.alpha * task.constraint(block).threshold)
            .sum()
    }

    /// a_i s_i of a block, plus t_i b if the threshold is penalised, from its gradient.
    fn reached(&self, block: usize) -> f64 {
        let variable = &self.variables[block];
        variable.gradient + self.margins[block].0 - variable.diagonal * variable.alpha
    }

    pub(super) fn all_reached(&self) -> Vec<f64> {
        (0..self.variables.len()).map(|block| self.reached(block)).collect()
    }

    /// ‖Σ α a φ‖² counts as zero below this, because of the rounding of kernel values.
    pub(super) fn nothing(&self) -> f64 {
        let share = if size_of::<V>() == size_of::<f32>() { 1e-6 } else { 1e-10 };
        share * self.variables.iter().map(|variable| variable.alpha * variable.own).sum::<f64>()
    }

    /// Primal and dual value. `cuts` holds the free scalars if there are several.
    pub(super) fn values<T: Independent>(&self, task: &T, scalars: Scalars, cuts: &[f64]) -> Values {
        const CHUNK: usize = 4096;
        let blocks = self.variables.len();
        let parts: Vec<[f64; 3]> = parallel::map(blocks.div_ceil(CHUNK), |chunk| {
            let mut sums = [0.0; 3];
            for block in chunk * CHUNK..((chunk + 1) * CHUNK).min(blocks) {
                let variable = &self.variables[block];
                let ((margin, cost), reached) = (self.margins[block], self.reached(block));
                let margin = scalars.margin.unwrap_or(margin);
                let scalar = match cuts {
                    [] => scalars.threshold,
                    cuts => cuts.get(task.cut(block)).copied().unwrap_or(0.0),
                };
                let threshold = task.constraint(block).threshold * scalar;
                sums[0] += variable.alpha * reached;
                sums[1] += variable.alpha * margin - self.loss.dual_cost(variable.alpha, cost);
                sums[2] += cost * self.loss.value(margin - reached - threshold);
            }
            sums
        });
        let mut total = [0.0; 3];
        parts.iter().for_each(|part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part));
        let [square, gain, losses] = total;
        Values { primal: 0.5 * square + losses, dual: gain - 0.5 * square, square }
    }

    /// One round over the variables that take part.
    pub(super) fn round(&mut self, selection: &Selection, cancel: &Cancel) {
        let rule = Rule { groups: self.groups, penalised: self.penalised };
        let Some(narrowed) = &mut self.narrowed else {
            self.rounds += 1;
            return rule.round(selection, &mut self.variables, &mut self.working, self.gram, self.cache, cancel);
        };
        let Narrowed { blocks, variables, gram, cache, working, .. } = narrowed;
        rule.round(selection, variables, working, gram.as_ref(), cache, cancel);
        blocks.iter().zip(variables).for_each(|(&block, variable)| self.variables[block] = *variable);
    }

    /// Leaves out the variables at rest if that pays off. Returns whether it did.
    pub(super) fn narrow(&mut self, selection: &Selection) -> bool {
        let many = self.is_whole() && self.variables.len() >= self.shrink_from;
        if !many || self.narrowings >= MOST_NARROWINGS || self.rounds < ROUNDS_BETWEEN {
            return false;
        }
        let blocks = selection.restless(&self.variables);
        // A problem of half the size has kernel rows half as long.
        if blocks.len() * 2 > self.variables.len() {
            return false;
        }
        (self.narrowings, self.rounds) = (self.narrowings + 1, 0);
        self.cache.clear();
        self.working.places.clear();
        let variables: Vec<Variable> = blocks.iter().map(|&block| self.variables[block]).collect();
        let before = variables.iter().map(|variable| variable.alpha).collect();
        let gram = self.gram.restricted(&blocks);
        let cache = Smo::cache(blocks.len(), self.cache_bytes);
        self.narrowed = Some(Narrowed { blocks, variables, before, gram, cache, working: Working::new() });
        true
    }

    /// Lets all variables take part again.
    pub(super) fn widen(&mut self, cancel: &Cancel) -> Result<()> {
        let Some(Narrowed { blocks, variables, before, cache, .. }) = self.narrowed.take() else { return Ok(()) };
        let (asked, computed) = cache.counts();
        self.counted = (self.counted.0 + asked, self.counted.1 + computed);
        drop(cache);
        let moved: Vec<(usize, f64)> = blocks
            .iter()
            .zip(variables.iter().zip(&before))
            .filter_map(|(&block, (variable, before))| {
                let change = variable.alpha - before;
                (change != 0.0).then_some((block, change))
            })
            .collect();
        let mut current = vec![false; self.variables.len()];
        blocks.iter().for_each(|&block| current[block] = true);
        self.catch_up(&moved, Some(&current), cancel)
    }

    /// Updates the gradients after blocks have moved, except for those that are `current`. After a cancel it returns an
    /// error, since values from outdated gradients would be wrong.
    fn catch_up(&mut self, moved: &[(usize, f64)], current: Option<&[bool]>, cancel: &Cancel) -> Result<()> {
        for moved in moved.chunks(TOGETHER) {
            cancel.check()?;
            let blocks: Vec<usize> = moved.iter().map(|entry| entry.0).collect();
            self.cache.prepare(&blocks, |missing, outs| self.gram.fill(missing, outs));
            let kept: Vec<f64> = match current {
                Some(_) => self.variables.iter().map(|variable| variable.gradient).collect(),
                None => Vec::new(),
            };
            add_moved(&mut self.variables, moved, self.cache, self.penalised);
            if let Some(current) = current {
                for ((variable, kept), current) in self.variables.iter_mut().zip(kept).zip(current) {
                    variable.gradient = if *current { kept } else { variable.gradient };
                }
            }
        }
        // After a cancel, the last kernel rows may not have been filled.
        cancel.check_wanted()
    }
}

/// What couples the variables, in addition to kernel values.
#[derive(Clone, Copy)]
struct Rule {
    groups: usize,
    penalised: bool,
}

impl Rule {
    /// Solves the problem over a working set, and updates all gradients.
    fn round<V: Element>(
        self,
        selection: &Selection,
        variables: &mut [Variable],
        working: &mut Working<V>,
        gram: &dyn Gram<V>,
        cache: &mut RowCache<V>,
        cancel: &Cancel,
    ) {
        let Working { places, buffer } = working;
        // Of few variables, a large set would ask for kernel rows that nothing needs.
        let most = (variables.len() / SHARE).clamp(LEAST_WORKING, WORKING_SET);
        *places = selection.working_set(places, variables, most);
        cache.prepare(places, |missing, outs| gram.fill(missing, outs));
        if cancel.is_raised() {
            return;
        }
        let mut local = Local::new(places, variables, cache, self.penalised, std::mem::take(buffer));
        local.solve(self.groups, selection.violation, cancel);
        let moved: Vec<(usize, f64)> = local
            .alphas()
            .filter_map(|(at, alpha)| {
                let variable = &mut variables[at];
                let change = alpha - variable.alpha;
                variable.alpha = alpha;
                (change != 0.0).then_some((at, change))
            })
            .collect();
        *buffer = local.into_buffer();
        add_moved(variables, &moved, cache, self.penalised);
    }
}

/// The error for a constraint of a user's own task that the groups of SMO cannot represent.
fn odd_threshold(threshold: f64) -> Error {
    let message =
        format!("a constraint takes the free scalar {threshold} times, and kernel solvers take it 1 or −1 times");
    Error::new(Code::Unsupported, message).help("leave ⟦kernel⟧ out, or give the task no free scalar")
}

/// Adds the moves to all gradients, as multiples of cached kernel rows.
fn add_moved<V: Element>(variables: &mut [Variable], moved: &[(usize, f64)], cache: &RowCache<V>, penalised: bool) {
    let steps: Vec<(usize, f64)> = moved.iter().map(|&(at, change)| (at, change * variables[at].coefficient)).collect();
    // With a penalised threshold, t t' = a a' is added to every kernel value, and a is ±1.
    let pull: f64 = if penalised { steps.iter().map(|&(_, step)| step).sum() } else { 0.0 };
    parallel::chunks(variables, CHUNK, |chunk, variables| {
        let start = chunk * CHUNK;
        let mut sums = [pull; CHUNK];
        for &(at, step) in &steps {
            add_row(&mut sums[..variables.len()], step, &cache.row(at)[start..]);
        }
        for (variable, sum) in variables.iter_mut().zip(&sums) {
            variable.gradient += variable.coefficient * sum;
        }
    });
    for &(at, change) in moved {
        let variable = &mut variables[at];
        variable.gradient += variable.diagonal * change;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::run::Silent;
    use crate::solve::Stop;
    use crate::task::Constraint;

    /// Two clouds of points on a line.
    struct Clouds {
        places: Vec<f64>,
        signs: Vec<f64>,
        cost: f64,
    }

    impl Independent for Clouds {
        fn blocks(&self) -> usize {
            self.places.len()
        }

        fn loss(&self) -> Loss {
            Loss::Hinge
        }

        fn constraint(&self, row: usize) -> Constraint {
            let coefficient = self.signs[row];
            Constraint { row, against: None, coefficient, threshold: coefficient, margin: 1.0, cost: self.cost }
        }
    }

    /// Gaussian kernel values between places.
    struct Near(Vec<f64>);

    impl Gram<f64> for Near {
        fn diagonal(&self) -> Vec<f64> {
            vec![1.0; self.0.len()]
        }

        fn fill(&self, blocks: &[usize], outs: Vec<&mut [f64]>) {
            for (&block, out) in blocks.iter().zip(outs) {
                let at = self.0[block];
                out.iter_mut().zip(&self.0).for_each(|(out, other)| *out = (-20.0 * (at - other) * (at - other)).exp());
            }
        }

        fn restricted(&self, blocks: &[usize]) -> Box<dyn Gram<f64> + '_> {
            Box::new(Near(blocks.iter().map(|&block| self.0[block]).collect()))
        }
    }

    #[test]
    fn narrowing_changes_the_steps_and_not_the_optimum() {
        let mut random = Random::new(3, 1, 0);
        let signs: Vec<f64> = (0..2400).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let places: Vec<f64> = signs.iter().map(|sign| 2.0 * sign + 4.0 * (random.uniform() - 0.4)).collect();
        let mut ways = 0;
        for (form, cost) in [(Form::Costs, 10.0), (Form::Nu, 1.0 / (0.2 * 2400.0))] {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised] {
                let task = Clouds { places: places.clone(), signs: signs.clone(), cost };
                let gram = Near(places.clone());
                let run = |shrink_from: usize| {
                    let tolerance = 3e-4;
                    let cache_bytes = 64 << 20;
                    let smo = Smo { tolerance, max_passes: 2000, intercept, form, cache_bytes, shrink_from };
                    let mut cache = Smo::cache(task.blocks(), cache_bytes);
                    smo.solve(&task, &gram, &mut cache, None, &mut Silent, &Cancel::new()).expect("solves")
                };
                let (whole, narrowed) = (run(usize::MAX), run(100));
                assert_eq!((whole.stop, narrowed.stop), (Stop::Converged, Stop::Converged), "{form:?} {intercept:?}");
                ways += u32::from(whole.weights != narrowed.weights);
                let apart = (whole.objective - narrowed.objective).abs() / whole.objective;
                let more = if form == Form::Nu { 20.0 } else { 2.0 };
                assert!(apart <= more * 3e-4, "{form:?} {intercept:?} {apart}");
            }
        }
        assert!(ways >= 2, "no problem was narrowed");
    }

    #[test]
    fn a_start_at_the_optimum_needs_no_round() {
        let mut random = Random::new(4, 1, 0);
        let signs: Vec<f64> = (0..300).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let places: Vec<f64> = signs.iter().map(|sign| sign + 3.0 * (random.uniform() - 0.5)).collect();
        let task = Clouds { places: places.clone(), signs, cost: 1.0 };
        let gram = Near(places);
        let smo = Smo {
            tolerance: 1e-4,
            max_passes: 1000,
            intercept: Intercept::Free,
            form: Form::Costs,
            cache_bytes: 1 << 20,
            shrink_from: usize::MAX,
        };
        let cancel = Cancel::new();
        let cold = smo.solve(&task, &gram, &mut Smo::cache(300, 1 << 20), None, &mut Silent, &cancel).expect("solves");
        let warm = smo
            .solve(&task, &gram, &mut Smo::cache(300, 1 << 20), Some(&cold.weights), &mut Silent, &cancel)
            .expect("solves");
        assert!(cold.passes > 0 && warm.passes == 0);
        assert!((cold.objective - warm.objective).abs() < 1e-9 * cold.objective);
    }
}
