//! Ratings: ordinal regression. One score a row, and a cut between each two neighbouring ranks.
//!
//! ```text
//! min  ½‖w‖² + Σ_i C_i Σ_{k in K(y_i)} loss(m_i − t_ik (w·x_i − b_k)),   t_ik = +1 where y_i > k, else −1
//!
//! implicit  K(y) = all cuts            (all thresholds)
//! explicit  K(y) = the cuts next to y  (immediate thresholds)        s.t.  b_1 ≤ … ≤ b_{r−1}
//! ```
//! There are r ranks; y_i is the number of the row's rank from 0 on, and cut b_k lies between ranks k and k + 1, k = 0
//! … r − 2. The margin m_i is 1, or 0 for the logistic loss. C_i is C times the row's weight times the weight of its
//! rank, and 0 for rows left out. With [`super::WeightAs::Margin`] the row's weight is m_i instead, at all its cuts. The
//! cuts are free. A row has the rank whose number is the number of cuts that its score reaches.
//!
//! With the implicit form an optimum has its cuts in order, because every cut separates the same rows but for those of
//! one rank, whose margins do not matter: a row that changes to the other side only pushes the cut up. The explicit form
//! counts only the two cuts next to a row, and the order of the cuts is a constraint of its own: where it binds,
//! neighbouring cuts are equal ([`crate::solve::PartTask::next_tied`]). The implicit form bounds the absolute error of
//! the rank, the explicit form the share of wrong ranks.
//!
//! Parts are runs of rows, because rows do not interact. Cost of an evaluation: one dot product a row, and at most r − 1
//! violations that read no features.
//!
//! References: Chu & Keerthi, Support vector ordinal regression, Neural Computation 19 (2007); Shashua & Levin, Ranking
//! with large margin principle, NIPS 15 (2002); Rennie & Srebro, Loss functions for preference levels, IJCAI (2005).

mod cuts;
mod objective;
mod settings;

pub(crate) use cuts::{AtCuts, Shares as CutShares};
pub(in crate::task) use settings::PROFILE;
pub use settings::{OrdinalForm, OrdinalSettings};

use super::class_rows::ClassRows;
use super::{ClassWeight, Constraint, Independent, LearningTask};
use crate::certificate::Decoder;
use crate::data::{Dataset, Labels, Subset};
use crate::error::{Code, Error, Result};
use crate::loss::{Curve, Loss};
use std::ops::Range;
use std::sync::Arc;

/// Number of rows in a part.
const PART: usize = 1024;

/// What keeps the cuts in order.
#[derive(Clone, Debug, PartialEq)]
enum Order {
    /// Nothing: every cut is free.
    Free,
    /// The cuts must be in order.
    Constrained,
    /// Cuts are tied together: each is equal to the first of its group, whose number is given.
    Tied(Arc<[u32]>),
}

/// The task: the rank and the weight of each row.
#[derive(Clone, Debug)]
pub struct Ordinal {
    codes: Arc<[u32]>,
    /// The row's weight times that of its rank; 0 if the row is left out. `None` if all weights are 1.
    weights: Option<Arc<[f64]>>,
    /// The margin of each row at all its cuts; `None` if all margins are that of the loss.
    margins: Option<Arc<[f64]>>,
    ranks: Arc<Labels>,
    form: OrdinalForm,
    order: Order,
    loss: Loss,
    curve: Curve,
    c: f64,
}

impl Ordinal {
    /// The task with C = 1 over all rows, or over some of them: the others cost nothing.
    pub fn on(
        data: &Dataset,
        form: OrdinalForm,
        rank_weight: &ClassWeight,
        loss: Loss,
        subset: Option<&Subset>,
    ) -> Result<Ordinal> {
        let ranks = Labels::ranks(data.targets())?;
        let rows = ClassRows::on(data, &ranks, rank_weight, subset)?;
        if rows.have_a_single_class() {
            let message = "the rows that count all have the same rank";
            return Err(Error::new(Code::SingleClass, message)
                .help("ratings need rows of two ranks; give rows of other ranks a weight above zero"));
        }
        Ok(Ordinal::of_rows(rows, &ranks, form, loss))
    }

    /// A part of a larger data set: ranks and their weights are those of the whole.
    pub(crate) fn of_part(
        data: &Dataset,
        ranks: &Labels,
        shares: &[f64],
        form: OrdinalForm,
        loss: Loss,
    ) -> Result<Ordinal> {
        let codes = ranks.codes(data.targets())?;
        Ok(Ordinal::of_rows(ClassRows::with_shares(data, codes, shares, None), ranks, form, loss))
    }

    fn of_rows(rows: ClassRows, ranks: &Labels, form: OrdinalForm, loss: Loss) -> Ordinal {
        Ordinal {
            weights: rows.weights,
            margins: None,
            codes: rows.codes,
            ranks: Arc::new(ranks.clone()),
            form,
            order: if form == OrdinalForm::Explicit { Order::Constrained } else { Order::Free },
            loss,
            curve: Curve::Sharp(loss),
            c: 1.0,
        }
    }

    /// Changes the weight of the loss.
    pub fn with_cost(self, c: f64) -> Ordinal {
        Ordinal { c, ..self }
    }

    /// The same with a margin for each row, for a loss that has a margin.
    pub fn with_margins(self, margins: Option<Arc<[f64]>>) -> Ordinal {
        Ordinal { margins, ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Number of cuts between ranks.
    pub fn cuts(&self) -> usize {
        self.ranks.len() - 1
    }

    /// The number of a row's rank.
    #[inline]
    pub(crate) fn rank(&self, row: usize) -> usize {
        self.codes[row] as usize
    }

    /// The weight of a row's loss.
    #[inline]
    pub(crate) fn cost(&self, row: usize) -> f64 {
        self.c * self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The margin of a row at all its cuts.
    #[inline]
    pub(crate) fn margin(&self, row: usize) -> f64 {
        self.margins.as_ref().map_or(self.loss.margin(), |margins| margins[row])
    }

    /// The cuts that count for a rank.
    #[inline]
    pub(crate) fn counted(&self, rank: usize) -> Range<usize> {
        match self.form {
            OrdinalForm::Implicit => 0..self.cuts(),
            OrdinalForm::Explicit => rank.saturating_sub(1)..(rank + 1).min(self.cuts()),
        }
    }

    /// The free scalar that holds a cut: its own, or that of the first cut that it is tied to.
    #[inline]
    pub(crate) fn holder(&self, cut: usize) -> usize {
        match &self.order {
            Order::Tied(first) => first[cut] as usize,
            Order::Free | Order::Constrained => cut,
        }
    }

    /// The cut and t of a block. Block `slot · rows + row` is a constraint of the row: of the cut with that number, or
    /// in the explicit form of the cut below its rank (slot 0) and above it (slot 1).
    #[inline]
    pub(crate) fn of_block(&self, block: usize) -> (usize, f64) {
        let (slot, row) = (block / self.len(), block % self.len());
        let rank = self.rank(row);
        let cut = match self.form {
            OrdinalForm::Implicit => slot,
            // A row of the lowest or the highest rank has one constraint, whose block counts once.
            OrdinalForm::Explicit if rank == 0 => 0,
            OrdinalForm::Explicit if rank == self.cuts() => rank - 1,
            OrdinalForm::Explicit => rank + slot - 1,
        };
        (cut, if rank > cut { 1.0 } else { -1.0 })
    }

    /// Whether the cuts must be in order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.order == Order::Constrained
    }

    /// The same task with cuts tied together in place of their order, given the first cut of the group of each.
    pub(crate) fn tied(&self, first: Vec<u32>) -> Ordinal {
        let order = if first.iter().zip(0..).all(|(first, own)| *first == own) {
            Order::Free
        } else {
            Order::Tied(first.into())
        };
        Ordinal { order, ..self.clone() }
    }

    /// Sets every cut to the one that it is tied to.
    pub(crate) fn spread(&self, cuts: &mut [f64]) {
        for cut in 0..cuts.len() {
            cuts[cut] = cuts[self.holder(cut)];
        }
    }
}

impl LearningTask for Ordinal {
    fn set_cost(&mut self, c: f64) {
        self.c = c;
    }

    fn total_cost(&self) -> f64 {
        (0..self.len()).map(|row| self.cost(row)).sum()
    }

    fn constraints(&self) -> u64 {
        let rows = (0..self.len()).filter(|&row| self.cost(row) > 0.0);
        rows.map(|row| self.counted(self.rank(row)).len() as u64).sum()
    }

    fn second_copies(&self) -> Option<(usize, Arc<[u32]>)> {
        let rows = self.len();
        Some((rows, (rows..self.blocks()).map(|block| (block % rows) as u32).collect()))
    }

    fn decoder(&self, free: &[f64]) -> Decoder {
        // Rounding may leave two cuts that should be equal in the wrong order.
        let mut cuts = free.to_vec();
        cuts.sort_unstable_by(f64::total_cmp);
        Decoder::Cuts { cuts, ranks: Labels::clone(&self.ranks) }
    }
}

impl Independent for Ordinal {
    fn blocks(&self) -> usize {
        let slots = match self.form {
            OrdinalForm::Implicit => self.cuts(),
            OrdinalForm::Explicit => self.cuts().min(2),
        };
        self.len() * slots
    }

    fn loss(&self) -> Loss {
        self.loss
    }

    fn constraint(&self, block: usize) -> Constraint {
        let (row, (_, side)) = (block % self.len(), self.of_block(block));
        let rank = self.rank(row);
        // The second block of a row with one constraint.
        let twice = self.form == OrdinalForm::Explicit && block >= self.len() && (rank == 0 || rank == self.cuts());
        Constraint {
            row,
            against: None,
            coefficient: side,
            threshold: -side,
            margin: self.margin(row),
            cost: if twice { 0.0 } else { self.cost(row) },
        }
    }

    fn cut(&self, block: usize) -> usize {
        self.holder(self.of_block(block).0)
    }

    fn cuts(&self) -> usize {
        Ordinal::cuts(self)
    }
}
