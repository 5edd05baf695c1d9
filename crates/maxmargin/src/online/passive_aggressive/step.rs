//! [`Steps`]: the change of the weights for one batch of rows. See the top of `mod.rs` for the rules.

use super::Rule;
use super::box_quadratic::{BoxQuadratic, one, two};
use crate::data::Rows;
use crate::online::linear::LinearPoint;
use crate::wish::Variant;

/// Rows whose margin is 1 up to rounding, as it is after a step, have no loss. A joint step depends on who takes part.
const RIGHT: f64 = 1.0 - 1e-12;

/// A row of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) row: usize,
    /// 1 or −1.
    pub(crate) sign: f64,
    /// Multiplies C.
    pub(crate) weight: f64,
    /// ‖x‖², without the constant feature.
    pub(crate) square: f64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    /// How much the dual rose. It never falls.
    pub(crate) dual: f64,
    /// Whether the rows contradict each other, so that no weights reach all margins; only with [`Variant::Pa`].
    pub(crate) contradiction: bool,
    /// Mistakes as the rule counts them, see `bounds.rs`.
    pub(crate) mistakes: u32,
    /// The least that such a mistake adds to the dual.
    pub(crate) least: f64,
}

impl Default for Change {
    fn default() -> Change {
        Change { dual: 0.0, contradiction: false, mistakes: 0, least: f64::INFINITY }
    }
}

impl Change {
    fn include(&mut self, other: Change) {
        self.dual += other.dual;
        self.contradiction |= other.contradiction;
        self.mistakes += other.mistakes;
        self.least = self.least.min(other.least);
    }

    /// A batch with a mistake that adds at least this much.
    fn mistaken(self, least: f64) -> Change {
        Change { mistakes: 1, least, ..self }
    }

    /// A batch whose rows contradict each other.
    fn contradictory(mistaken: bool) -> Change {
        let change = Change { contradiction: true, ..Change::default() };
        if mistaken { change.mistaken(0.0) } else { change }
    }
}

/// The direction of a joint step.
struct Along {
    violation: f64,
    square: f64,
    most: f64,
    /// For a mistake, the least violation that it can have.
    mistake: Option<f64>,
}

/// The unlimited step for a violation, infinite for a direction of length zero.
#[inline(always)]
fn gain(violation: f64, square: f64) -> f64 {
    if square > 0.0 { violation / square } else { f64::INFINITY }
}

/// The settings of a step, and its work buffers.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    pub(crate) rule: Rule,
    pub(crate) variant: Variant,
    pub(crate) c: f64,
    /// The square of the constant feature: 1 with an intercept, else 0.
    pub(crate) constant: f64,
    /// As long as the weights, and all zeros between steps.
    scratch: Vec<f64>,
    /// y·w·x of each row.
    margins: Vec<f64>,
    chosen: Vec<Member>,
    gram: Vec<f64>,
    losses: Vec<f64>,
    most: Vec<f64>,
    alpha: Vec<f64>,
    quadratic: BoxQuadratic,
}

impl Steps {
    pub(crate) fn new(rule: Rule, variant: Variant, c: f64, intercept: bool) -> Steps {
        Steps {
            rule,
            variant,
            c,
            constant: f64::from(u8::from(intercept)),
            scratch: Vec::new(),
            margins: Vec::new(),
            chosen: Vec::new(),
            gram: Vec::new(),
            losses: Vec::new(),
            most: Vec::new(),
            alpha: Vec::new(),
            quadratic: BoxQuadratic::default(),
        }
    }

    /// The limit of α, and what is added to the diagonal.
    #[inline(always)]
    fn limits(&self, weight: f64) -> (f64, f64) {
        match self.variant {
            Variant::Pa => (f64::INFINITY, 0.0),
            Variant::PaI => (self.c * weight, 0.0),
            Variant::PaIi => (f64::INFINITY, 0.5 / (self.c * weight)),
        }
    }

    /// Learns from a batch of rows of positive weight. `margins` says y·w·x for each of them, if it is known.
    #[inline(always)]
    pub(crate) fn step<R: Rows>(&mut self, rows: &R, batch: &[Member], point: &mut LinearPoint) -> Change {
        if self.rule == Rule::Sequential || self.rule == Rule::Single {
            return self.one_by_one(rows, batch, point);
        }
        self.scratch.resize(point.features(), 0.0);
        if self.rule == Rule::Auc && batch.len() > 2 {
            return self.pair_by_pair(rows, batch, point);
        }
        self.margins.clear();
        for member in batch {
            self.margins.push(member.sign * point.score(rows, member.row));
        }
        match self.rule {
            Rule::Dca => self.optimum(rows, batch, point),
            Rule::SingleSlack => self.average_margin(rows, batch, point),
            _ => {
                self.choose(batch);
                let chosen = std::mem::take(&mut self.chosen);
                let change = self.joint(rows, &chosen, point);
                self.chosen = chosen;
                change
            }
        }
    }

    /// Which rows step together, with their margins in front.
    #[inline(always)]
    fn choose(&mut self, batch: &[Member]) {
        self.chosen.clear();
        let mut kept = 0;
        let mut take = |margins: &mut Vec<f64>, chosen: &mut Vec<Member>, at: usize| {
            chosen.push(batch[at]);
            margins[kept] = margins[at];
            kept += 1;
        };
        match self.rule {
            Rule::MaxViolators => {
                let worst = |sign: f64| {
                    let of_class = (0..batch.len()).filter(|&at| batch[at].sign == sign && self.margins[at] < RIGHT);
                    of_class.min_by(|&a, &b| self.margins[a].total_cmp(&self.margins[b]))
                };
                let (positive, negative) = (worst(1.0), worst(-1.0));
                let (first, second) = match (positive, negative) {
                    (Some(positive), Some(negative)) => (Some(positive.min(negative)), Some(positive.max(negative))),
                    (one, other) => (one.or(other), None),
                };
                for at in first.into_iter().chain(second) {
                    take(&mut self.margins, &mut self.chosen, at);
                }
            }
            Rule::CorrectMistakes => {
                for at in 0..batch.len() {
                    if self.margins[at] < RIGHT {
                        take(&mut self.margins, &mut self.chosen, at);
                    }
                }
            }
            _ => self.chosen.extend_from_slice(batch),
        }
    }

    /// ‖Σ_i share_i x_i‖² with the constant feature. `share` includes the sign.
    #[inline(always)]
    fn square_of_sum<R: Rows>(&mut self, rows: &R, members: &[Member], share: impl Fn(&Member) -> f64) -> f64 {
        let constant = members.iter().map(&share).sum::<f64>();
        if let [member] = members {
            let share = share(member);
            return share * share * (member.square + self.constant);
        }
        for member in members {
            rows.axpy(member.row, share(member), &mut self.scratch);
        }
        let (mut lanes, mut lane) = ([0.0; 4], 0);
        for member in members {
            rows.each(member.row, |column, _| {
                if let Some(slot) = self.scratch.get_mut(column) {
                    let value = std::mem::take(slot);
                    lanes[lane & 3] += value * value;
                    lane += 1;
                }
            });
        }
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) + self.constant * constant * constant
    }

    /// A joint step for the given rows, whose margins are the first ones.
    #[inline(always)]
    fn joint<R: Rows>(&mut self, rows: &R, members: &[Member], point: &mut LinearPoint) -> Change {
        let violation = members.len() as f64 - self.margins[..members.len()].iter().sum::<f64>();
        if violation <= 0.0 {
            return Change::default();
        }
        let (mut most, mut soft) = (f64::INFINITY, 0.0);
        for member in members {
            let limits = self.limits(member.weight);
            (most, soft) = (limits.0.min(most), soft + limits.1);
        }
        let square = self.square_of_sum(rows, members, |member| member.sign) + soft;
        let margins = &self.margins[..members.len()];
        let mistake = match self.rule {
            Rule::Auc => (violation >= members.len() as f64).then_some(members.len() as f64),
            _ => margins.iter().any(|&margin| margin <= 0.0).then_some(1.0),
        };
        self.move_along(rows, members, Along { violation, square, most, mistake }, point, |member| member.sign)
    }

    /// The single slack: the average margin, in which rows count by their weights.
    #[inline(always)]
    fn average_margin<R: Rows>(&mut self, rows: &R, batch: &[Member], point: &mut LinearPoint) -> Change {
        let total: f64 = batch.iter().map(|member| member.weight).sum();
        let shares = batch.iter().map(|member| member.weight / total);
        let violation = 1.0 - shares.zip(&self.margins).map(|(share, margin)| share * margin).sum::<f64>();
        if violation <= 0.0 {
            return Change::default();
        }
        let (most, soft) = self.limits(total / batch.len() as f64);
        let share = |member: &Member| member.sign * member.weight / total;
        let square = self.square_of_sum(rows, batch, share) + soft;
        let mistake = (violation >= 1.0).then_some(1.0);
        self.move_along(rows, batch, Along { violation, square, most, mistake }, point, share)
    }

    /// w += a · Σ_i share_i x_i, with the best a between 0 and `most`.
    #[inline(always)]
    fn move_along<R: Rows>(
        &self,
        rows: &R,
        members: &[Member],
        Along { violation, square, most, mistake }: Along,
        point: &mut LinearPoint,
        share: impl Fn(&Member) -> f64,
    ) -> Change {
        let Some(a) = one(violation, square, most) else {
            return Change::contradictory(mistake.is_some());
        };
        for member in members {
            let step = a * share(member);
            point.add(rows, member.row, step);
            point.move_constant(0, step);
        }
        let change = Change { dual: a * (violation - 0.5 * a * square), ..Change::default() };
        match mistake {
            Some(least) => change.mistaken(0.5 * least * gain(least, square).min(most)),
            None => change,
        }
    }

    /// A step for a single row whose margin y·w·x is known.
    #[inline(always)]
    pub(crate) fn single<R: Rows>(&self, rows: &R, member: Member, margin: f64, point: &mut LinearPoint) -> Change {
        let violation = 1.0 - margin;
        if violation <= 0.0 {
            return Change::default();
        }
        let (most, soft) = self.limits(member.weight);
        let square = member.square + self.constant + soft;
        let mistake = (violation >= 1.0).then_some(1.0);
        self.move_along(rows, &[member], Along { violation, square, most, mistake }, point, |member| member.sign)
    }

    #[inline(always)]
    fn one_by_one<R: Rows>(&mut self, rows: &R, batch: &[Member], point: &mut LinearPoint) -> Change {
        let mut all = Change::default();
        for member in batch {
            let margin = member.sign * point.score(rows, member.row);
            all.include(self.single(rows, *member, margin, point));
        }
        all
    }

    /// `pa-auc` for more than two rows: positive and negative rows stand in turn.
    fn pair_by_pair<R: Rows>(&mut self, rows: &R, batch: &[Member], point: &mut LinearPoint) -> Change {
        let mut all = Change::default();
        for pair in batch.chunks_exact(2).filter(|pair| pair[0].sign != pair[1].sign) {
            self.margins.clear();
            for member in pair {
                self.margins.push(member.sign * point.score(rows, member.row));
            }
            all.include(self.joint(rows, pair, point));
        }
        all
    }

    /// The optimum of the dual.
    #[inline(always)]
    fn optimum<R: Rows>(&mut self, rows: &R, batch: &[Member], point: &mut LinearPoint) -> Change {
        if self.margins.iter().all(|&margin| margin >= 1.0) {
            return Change::default();
        }
        if let [first, second] = batch {
            return self.optimum_of_two(rows, [*first, *second], point);
        }
        let n = batch.len();
        self.fill_gram(rows, batch);
        self.losses.clear();
        self.losses.extend(self.margins.iter().map(|margin| 1.0 - margin));
        self.alpha.clear();
        self.alpha.resize(n, 0.0);
        if !self.quadratic.maximise(&self.gram, &self.losses, &self.most, &mut self.alpha) {
            return Change::contradictory(self.mistake_of(batch).is_some());
        }
        let mut dual = 0.0;
        for (i, member) in batch.iter().enumerate() {
            let products = self.gram[i * n..(i + 1) * n].iter().zip(&self.alpha).map(|(k, a)| k * a).sum::<f64>();
            dual += self.alpha[i] * (self.losses[i] - 0.5 * products);
            let step = self.alpha[i] * member.sign;
            if step != 0.0 {
                point.add(rows, member.row, step);
                point.move_constant(0, step);
            }
        }
        let change = Change { dual, ..Change::default() };
        self.mistake_of(batch).map_or(change, |least| change.mistaken(least))
    }

    /// For a batch with a mistake, the least that the optimum adds to the dual: as much as the best of the single steps.
    #[inline(always)]
    fn mistake_of(&self, batch: &[Member]) -> Option<f64> {
        let mut best: Option<f64> = None;
        for (member, &margin) in batch.iter().zip(&self.margins) {
            if margin <= 0.0 {
                let (most, soft) = self.limits(member.weight);
                let least = 0.5 * gain(1.0, member.square + self.constant + soft).min(most);
                best = Some(best.map_or(least, |best| best.max(least)));
            }
        }
        best
    }

    #[inline(always)]
    fn optimum_of_two<R: Rows>(&mut self, rows: &R, batch: [Member; 2], point: &mut LinearPoint) -> Change {
        let [first, second] = batch;
        let limits = [self.limits(first.weight), self.limits(second.weight)];
        let b = [1.0 - self.margins[0], 1.0 - self.margins[1]];
        let k12 = first.sign * second.sign * (self.product(rows, first.row, second.row) + self.constant);
        let (k11, k22) = (first.square + self.constant + limits[0].1, second.square + self.constant + limits[1].1);
        let Some(alpha) = two(b, [k11, k22, k12], [limits[0].0, limits[1].0]) else {
            return Change::contradictory(self.mistake_of(&batch).is_some());
        };
        for (member, alpha) in batch.iter().zip(alpha) {
            let step = alpha * member.sign;
            if step != 0.0 {
                point.add(rows, member.row, step);
                point.move_constant(0, step);
            }
        }
        let [a, c] = alpha;
        let dual = a * (b[0] - 0.5 * k11 * a) + c * (b[1] - 0.5 * k22 * c) - k12 * a * c;
        let change = Change { dual, ..Change::default() };
        self.mistake_of(&batch).map_or(change, |least| change.mistaken(least))
    }

    /// x_i · x_j
    #[inline(always)]
    fn product<R: Rows>(&mut self, rows: &R, first: usize, second: usize) -> f64 {
        rows.axpy(first, 1.0, &mut self.scratch);
        let product = rows.dot(second, &self.scratch);
        self.clear(rows, first);
        product
    }

    #[inline(always)]
    fn clear<R: Rows>(&mut self, rows: &R, row: usize) {
        rows.each(row, |column, _| {
            if let Some(slot) = self.scratch.get_mut(column) {
                *slot = 0.0;
            }
        });
    }

    /// The Gram matrix of y_i x_i with what PA-II adds to its diagonal, and the limits of α.
    fn fill_gram<R: Rows>(&mut self, rows: &R, batch: &[Member]) {
        let n = batch.len();
        self.gram.clear();
        self.gram.resize(n * n, 0.0);
        self.most.clear();
        for (i, first) in batch.iter().enumerate() {
            let (most, soft) = self.limits(first.weight);
            self.most.push(most);
            self.gram[i * n + i] = first.square + self.constant + soft;
            rows.axpy(first.row, 1.0, &mut self.scratch);
            for (j, second) in batch.iter().enumerate().skip(i + 1) {
                let product = rows.dot(second.row, &self.scratch) + self.constant;
                let product = first.sign * second.sign * product;
                (self.gram[i * n + j], self.gram[j * n + i]) = (product, product);
            }
            self.clear(rows, first.row);
        }
    }
}
