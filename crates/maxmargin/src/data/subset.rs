//! [`Subset`]: some of the rows of a data set. A fold trains on a subset, so that no feature is copied.

/// Which rows are included. If a task compares the rows of a group, all or none of them are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subset {
    kept: Vec<bool>,
    count: usize,
}

impl Subset {
    /// All rows below `rows` except the listed ones.
    pub fn without(held_out: &[usize], rows: usize) -> Subset {
        let mut kept = vec![true; rows];
        held_out.iter().for_each(|&row| kept[row] = false);
        let count = kept.iter().filter(|&&kept| kept).count();
        Subset { kept, count }
    }

    /// Whether a row is included.
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.kept[row]
    }

    /// Number of included rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no row is included.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Whether a row is included. Without a subset, every row is.
#[inline]
pub(crate) fn counts(subset: Option<&Subset>, row: usize) -> bool {
    subset.is_none_or(|subset| subset.contains(row))
}
