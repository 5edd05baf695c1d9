//! [`Variant`]: the rules by which different programs compute the same list metric.

use std::fmt;

/// The rule for gain, discount, relevance and ties. The table in [`crate::metric`] compares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Exponential gain, 1 / log2(1 + position), ties averaged.
    #[default]
    Standard,
    /// The LETOR 4 evaluation tool.
    Letor,
    /// The evaluation tool of the Microsoft learning-to-rank data sets.
    Mslr,
    /// trec_eval.
    Trec,
    /// scikit-learn.
    Sklearn,
}

/// How rows with equal scores are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The earlier line first.
    LineOrder,
    /// The later line first.
    ReverseLineOrder,
    /// Every order is equally likely, and the metric is the mean over them.
    Averaged,
}

impl Variant {
    /// All variants, the default first.
    pub const ALL: &'static [Variant] =
        &[Variant::Standard, Variant::Letor, Variant::Mslr, Variant::Trec, Variant::Sklearn];

    /// The name after the colon.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Standard => "standard",
            Variant::Letor => "letor",
            Variant::Mslr => "mslr",
            Variant::Trec => "trec",
            Variant::Sklearn => "sklearn",
        }
    }

    /// The variant in one line.
    pub fn description(self) -> &'static str {
        match self {
            Variant::Standard => "gain 2^grade-1, discount 1/log2(1+position), ties averaged",
            Variant::Letor => "the LETOR 4 tool: positions 1 and 2 undiscounted, short lists add 0, ties by line",
            Variant::Mslr => "as letor, but relevant means grade 2 or more",
            Variant::Trec => "trec_eval: gain = grade, discount 1/log2(1+position), ties by reverse line",
            Variant::Sklearn => "scikit-learn: gain = grade, discount 1/log2(1+position), ties averaged",
        }
    }

    /// The lowest grade that counts as relevant.
    pub(crate) fn relevant_from(self) -> f64 {
        if self == Variant::Mslr { 2.0 } else { 1.0 }
    }

    pub(crate) fn ties(self) -> Ties {
        match self {
            Variant::Letor | Variant::Mslr => Ties::LineOrder,
            Variant::Trec => Ties::ReverseLineOrder,
            Variant::Standard | Variant::Sklearn => Ties::Averaged,
        }
    }

    /// The discount at a position counted from 1.
    pub(crate) fn discount(self, position: usize) -> f64 {
        let position = position as f64;
        match self {
            Variant::Letor | Variant::Mslr => {
                if position <= 2.0 {
                    1.0
                } else {
                    1.0 / position.log2()
                }
            }
            _ => 1.0 / (1.0 + position).log2(),
        }
    }

    /// The gain of a grade. `highest` is the highest grade of the list. If gains would overflow, all gains of the list
    /// are divided by the same number, which does not change their ratios.
    pub(crate) fn gain(self, grade: f64, highest: f64) -> f64 {
        let grade = grade.max(0.0);
        match self {
            Variant::Trec | Variant::Sklearn => {
                if highest > 1e200 {
                    grade / highest
                } else {
                    grade
                }
            }
            _ => {
                if highest > 512.0 {
                    (grade - highest).exp2() - (-highest).exp2()
                } else {
                    grade.exp2() - 1.0
                }
            }
        }
    }

    /// Whether NDCG@K is 0 for a list of fewer than K rows.
    pub(crate) fn short_lists_add_nothing(self) -> bool {
        matches!(self, Variant::Letor | Variant::Mslr)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
