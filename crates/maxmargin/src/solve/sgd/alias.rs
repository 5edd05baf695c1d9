//! [`Alias`]: draws a cell with a probability in exact proportion to its whole-number weight, in constant time.
//!
//! Each of the N columns has the height of the mean weight. It holds a part of its own cell below and a part of one
//! other cell above (Walker 1977; Vose, A linear algorithm for generating random numbers with a given distribution,
//! 1991). All heights are multiplied by N, so that they stay whole numbers and nothing is rounded.

use crate::random::Random;

/// See the top of the file.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    /// The height up to which a column is its own cell, and the cell above.
    columns: Vec<(u64, u32)>,
    total: u64,
}

impl Alias {
    /// A table over weights, whose sum must be positive and below 2⁶⁴; at most 2³² of them.
    pub(super) fn new(weights: &[u64]) -> Alias {
        let total: u64 = weights.iter().sum();
        let count = weights.len() as u128;
        let mut height: Vec<u128> = weights.iter().map(|&weight| u128::from(weight) * count).collect();
        let (mut low, mut high): (Vec<u32>, Vec<u32>) =
            (0..weights.len() as u32).partition(|&cell| height[cell as usize] < u128::from(total));
        let mut columns: Vec<(u64, u32)> = (0..weights.len() as u32).map(|cell| (total, cell)).collect();
        while let Some(&above) = high.last()
            && let Some(below) = low.pop()
        {
            let own = height[below as usize];
            columns[below as usize] = (own as u64, above);
            height[above as usize] -= u128::from(total) - own;
            if height[above as usize] < u128::from(total) {
                high.pop();
                low.push(above);
            }
        }
        Alias { columns, total }
    }

    /// Draws a cell.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let column = random.below(self.columns.len() as u64) as usize;
        let (own, above) = self.columns[column];
        if random.below(self.total) < own { column } else { above as usize }
    }

    /// The share of each cell in the table. All cells together have columns · total.
    #[cfg(test)]
    pub(super) fn shares(&self) -> Vec<u128> {
        let mut shares = vec![0; self.columns.len()];
        for (column, &(own, above)) in self.columns.iter().enumerate() {
            shares[column] += u128::from(own);
            shares[above as usize] += u128::from(self.total - own);
        }
        shares
    }
}
