//! [`Witness`]: what proves a lower bound.

/// What proves the lower bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// The weights alone: the loss is smooth, and `½‖gradient‖²` bounds the distance to the optimum.
    Weights,
    /// A feasible dual point, with one variable per block.
    Dual(Vec<f64>),
    /// A feasible dual point of several classes, with a variable for each row and class.
    Classes(ClassDual),
    /// The weights, and the width over which the kink of the hinge is smoothed to get a dual point.
    Rounded(f64),
    /// Cuts that bound the loss from below: where each was made, and its multiplier.
    Cuts(Vec<Cut>),
}

/// A dual point of several classes: for each row, the other classes whose variable is above zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassDual {
    /// Where the entries of each row begin, and where those of the last one end.
    pub starts: Vec<u64>,
    /// The class of each entry, rising within a row.
    pub classes: Vec<u32>,
    /// The variable of each entry.
    pub values: Vec<f64>,
}

impl ClassDual {
    /// The entries of a row: class and variable.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        self.classes[range.clone()].iter().zip(&self.values[range]).map(|(&class, &value)| (class as usize, value))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether the parts fit together and all numbers are finite.
    pub fn is_whole(&self) -> bool {
        self.starts.first() == Some(&0)
            && self.starts.is_sorted()
            && self.starts.last().copied() == Some(self.values.len() as u64)
            && self.classes.len() == self.values.len()
            && self.values.iter().all(|value| value.is_finite())
    }
}

/// A cut that a bound uses: where it was made, and its multiplier.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The weights and the free scalars.
    pub point: Vec<f64>,
    /// Its share of the bound; the shares add up to one.
    pub multiplier: f64,
}
