//! [`Groups`]: which rows belong together.

use super::{Buffer, Names};
use crate::error::{Code, Error, Result};
use std::ops::Range;

/// The groups (queries) of a data set: each a run of neighbouring rows with a name.
#[derive(Clone, Debug)]
pub struct Groups {
    starts: Buffer<u64>,
    names: Names,
}

impl Groups {
    /// Groups from the first row of each (followed by the number of rows) and their names.
    pub fn new(starts: impl Into<Buffer<u64>>, names: Names) -> Result<Groups> {
        let starts = starts.into();
        let valid = starts.first() == Some(&0)
            && starts.windows(2).all(|pair| pair[0] < pair[1])
            && starts.len() == names.len() + 1;
        if !valid {
            return Err(Error::new(Code::Internal, "group starts and names do not fit together"));
        }
        Ok(Groups { starts, names })
    }

    /// These groups, then those of other rows. Groups of both with the same name stay apart.
    pub(super) fn followed_by(&self, others: &Groups) -> Result<Groups> {
        let end = self.rows() as u64;
        let starts: Vec<u64> =
            self.starts.iter().copied().chain(others.starts[1..].iter().map(|start| end + start)).collect();
        let name = |groups: &Groups, group: usize| groups.names.get_bytes(group).to_vec();
        let own = (0..self.len()).map(|group| name(self, group));
        Groups::new(starts, own.chain((0..others.len()).map(|group| name(others, group))).collect())
    }

    /// Everything in one group.
    pub fn one(rows: usize) -> Groups {
        Groups { starts: vec![0, rows as u64].into(), names: ["all"].into_iter().collect() }
    }

    /// Groups from a key for each row, in any order. Returns the groups in order of first appearance, and the row order
    /// that makes them contiguous (`None` if they already are).
    pub fn from_keys(keys: &[u32], names: Names) -> Result<(Groups, Option<Vec<usize>>)> {
        let mut counts = vec![0u64; names.len()];
        let mut contiguous = true;
        for (row, &key) in keys.iter().enumerate() {
            contiguous &= row == 0 || key == keys[row - 1] || counts[key as usize] == 0;
            counts[key as usize] += 1;
        }
        let mut starts = Vec::with_capacity(names.len() + 1);
        let mut start = 0;
        starts.push(0);
        for &count in &counts {
            start += count;
            starts.push(start);
        }
        let order = (!contiguous).then(|| {
            let mut next: Vec<u64> = starts[..names.len()].to_vec();
            let mut order = vec![0usize; keys.len()];
            for (row, &key) in keys.iter().enumerate() {
                order[next[key as usize] as usize] = row;
                next[key as usize] += 1;
            }
            order
        });
        Ok((Groups::new(starts, names)?, order))
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Number of rows in all groups.
    pub fn rows(&self) -> usize {
        self.starts[self.len()] as usize
    }

    /// The rows of one group.
    #[inline]
    pub fn range(&self, group: usize) -> Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// The rows of each group in turn.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.len()).map(|group| self.range(group))
    }

    /// The groups of neighbouring rows, counted from the first of these. A group that crosses an end of the run is cut
    /// there.
    pub fn run(&self, rows: Range<usize>) -> Result<Groups> {
        if rows.is_empty() {
            return Groups::new(vec![0], Names::from_iter([""; 0]));
        }
        let first = self.starts.partition_point(|&start| start <= rows.start as u64) - 1;
        let end = self.starts.partition_point(|&start| start < rows.end as u64);
        let mut starts: Vec<u64> =
            self.starts[first..end].iter().map(|&start| start.saturating_sub(rows.start as u64)).collect();
        starts.push(rows.len() as u64);
        Groups::new(starts, self.names.run(first..end))
    }

    /// The first row of each group, followed by the number of rows.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The user's name for each group.
    pub fn names(&self) -> &Names {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_rows_cuts_the_groups_at_its_ends() {
        let groups = Groups::new(vec![0, 2, 5, 6], ["a", "bb", "c"].into_iter().collect()).expect("valid");
        for (rows, starts, names) in [
            (0..6, vec![0, 2, 5, 6], vec!["a", "bb", "c"]),
            (1..4, vec![0, 1, 3], vec!["a", "bb"]),
            (3..4, vec![0, 1], vec!["bb"]),
            (5..6, vec![0, 1], vec!["c"]),
            (2..2, vec![0], vec![]),
        ] {
            let run = groups.run(rows.clone()).expect("inside");
            assert_eq!(
                (run.starts(), run.names().iter().collect::<Vec<_>>()),
                (&starts[..], names.iter().map(|&n| n.into()).collect()),
                "{rows:?}"
            );
        }
    }

    #[test]
    fn scattered_rows_are_brought_together_in_order_of_first_appearance() {
        let names: Names = ["a", "b", "c"].into_iter().collect();
        let (groups, order) = Groups::from_keys(&[0, 1, 0, 2, 1], names.clone()).expect("valid");
        assert_eq!(order, Some(vec![0, 2, 1, 4, 3]));
        assert_eq!(groups.starts(), &[0, 2, 4, 5]);
        let (_, order) = Groups::from_keys(&[0, 0, 1, 2, 2], names).expect("valid");
        assert_eq!(order, None);
    }
}
