//! [`Subset`]: some of the rows of a data set, over the shared matrix. A fold learns from one; no feature is copied.

/// Which rows count. Rows of one group are in together or out together wherever a task compares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subset {
    kept: Vec<bool>,
    count: usize,
}

impl Subset {
    /// All of `rows` rows but the listed ones.
    pub fn without(held_out: &[usize], rows: usize) -> Subset {
        let mut kept = vec![true; rows];
        held_out.iter().for_each(|&row| kept[row] = false);
        let count = kept.iter().filter(|&&kept| kept).count();
        Subset { kept, count }
    }

    /// Whether a row counts.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.kept[row]
    }

    /// How many rows count.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Whether a row counts where the absence of a subset stands for all rows.
#[inline]
pub(crate) fn counts(subset: Option<&Subset>, row: usize) -> bool {
    subset.is_none_or(|subset| subset.contains(row))
}
