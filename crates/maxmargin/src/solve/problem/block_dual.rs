//! [`BlockDual`]: the block dual of a task, for callers that do not know which task it is.

use super::{Expanded, Run, Stated, Values, class_expansion};
use crate::certificate::ClassDual;
use crate::data::Design;
use crate::error::Result;
use crate::run::{Cancel, Observer};
use crate::solve::class_digits::{ClassDigits, class_digits};
use crate::solve::{
    AgainstOwn, ClassBlocks, Machine, Solution, Start, certified_by_classes, dual_of_classes, objective_of_classes,
};
use crate::task::{Intercept, Roundable};

/// See the top of the file. A point is its weights and its constants.
pub trait BlockDual: Sync {
    /// Number of scores per row.
    fn scores_of_a_row(&self) -> usize;

    /// Solves for weights.
    fn solve_by_blocks(
        &self,
        solver: &ClassBlocks,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution>;

    /// The objective of a point.
    fn objective_by_rows(
        &self,
        design: &Design,
        point: (&[f64], &[f64]),
        rule: Intercept,
        cancel: &Cancel,
    ) -> Result<f64>;

    /// The lower bound that a dual point proves.
    fn bound_of(&self, design: &Design, dual: &ClassDual, rule: Intercept, cancel: &Cancel) -> Result<f64>;

    /// A feasible dual point near a point.
    fn dual_near(
        &self,
        design: &Design,
        point: (&[f64], &[f64]),
        rule: Intercept,
        cancel: &Cancel,
    ) -> Result<ClassDual>;

    /// The solution to the last digits, if there is one.
    fn last_digits(&self, design: &Design, rule: Intercept, cancel: &Cancel) -> Result<Option<ClassDigits>>;

    /// Solves with a kernel.
    fn solve_through_kernel(&self, rule: Intercept, machine: &mut Machine, run: &mut Run<'_>) -> Result<Solution>;

    /// Objective and bound of a kernel model.
    fn certify_through_kernel(
        &self,
        rule: Intercept,
        expanded: &Expanded<'_>,
        stated: &Stated<'_>,
        cancel: &Cancel,
    ) -> Result<Values>;
}

impl<T: AgainstOwn + Roundable> BlockDual for T {
    fn scores_of_a_row(&self) -> usize {
        self.scores()
    }

    fn solve_by_blocks(
        &self,
        solver: &ClassBlocks,
        design: &Design,
        start: Option<&Start>,
        observer: &mut dyn Observer,
        cancel: &Cancel,
    ) -> Result<Solution> {
        solver.solve(self, design, start, observer, cancel)
    }

    fn objective_by_rows(
        &self,
        design: &Design,
        point: (&[f64], &[f64]),
        rule: Intercept,
        cancel: &Cancel,
    ) -> Result<f64> {
        objective_of_classes(self, design, point, rule, cancel)
    }

    fn bound_of(&self, design: &Design, dual: &ClassDual, rule: Intercept, cancel: &Cancel) -> Result<f64> {
        certified_by_classes(self, design, dual, rule, cancel)
    }

    fn dual_near(
        &self,
        design: &Design,
        point: (&[f64], &[f64]),
        rule: Intercept,
        cancel: &Cancel,
    ) -> Result<ClassDual> {
        dual_of_classes(self, design, point, rule, cancel)
    }

    fn last_digits(&self, design: &Design, rule: Intercept, cancel: &Cancel) -> Result<Option<ClassDigits>> {
        class_digits(self, design, rule, cancel)
    }

    fn solve_through_kernel(&self, rule: Intercept, machine: &mut Machine, run: &mut Run<'_>) -> Result<Solution> {
        class_expansion::solve(self, rule, machine, run)
    }

    fn certify_through_kernel(
        &self,
        rule: Intercept,
        expanded: &Expanded<'_>,
        stated: &Stated<'_>,
        cancel: &Cancel,
    ) -> Result<Values> {
        class_expansion::certify(self, rule, expanded, stated, cancel)
    }
}
