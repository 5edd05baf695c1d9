//! [`Witness`]: what proves a lower bound.

/// What proves the lower bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// The weights alone: the loss is smooth, and `½‖gradient‖²` bounds the distance to the optimum.
    Weights,
    /// A feasible dual point, with one variable per block.
    Dual(Vec<f64>),
    /// The weights, and the width over which the kink of the hinge is smoothed to get a dual point.
    Rounded(f64),
    /// A feasible dual point of a joint problem over several classes.
    Classes(ClassDual),
    /// Cuts that bound the loss from below: where each was made, and its multiplier.
    Cuts(Vec<Cut>),
    /// One witness for each of several independent problems, the columns of an output code.
    Columns(Vec<ColumnWitness>),
}

/// What proves the bound of one column. Dual points take as much memory as they have values apart from zero and one
/// limit.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnWitness {
    /// The weights of the column alone.
    Weights,
    /// A feasible dual point.
    Dual(SparseDual),
    /// The weights of the column, and the width over which the hinge is smoothed.
    Rounded(f64),
    /// Cuts.
    Cuts(Vec<Cut>),
}

/// Dual variables, most of which are zero or at one and the same limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseDual {
    /// Number of variables.
    pub blocks: usize,
    /// The most common value apart from zero.
    pub limit: f64,
    /// The blocks with this value, ascending.
    pub at_limit: Vec<u32>,
    /// The blocks with other values, ascending.
    pub inside: Vec<u32>,
    /// Their values.
    pub values: Vec<f64>,
}

impl SparseDual {
    /// The same variables, stored compactly; none for more variables than can be numbered.
    pub fn of(alpha: &[f64]) -> Option<SparseDual> {
        u32::try_from(alpha.len()).ok()?;
        // Sorting is used instead of a hash table, which would take several times the memory of the variables.
        let mut bits: Vec<u64> = alpha.iter().filter(|&&value| value != 0.0).map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        let runs = bits.chunk_by(|a, b| a == b).filter(|run| run.len() > 1);
        let limit = runs.max_by_key(|run| (run.len(), run[0])).map_or(0.0, |run| f64::from_bits(run[0]));
        let mut sparse = SparseDual { blocks: alpha.len(), limit, ..SparseDual::default() };
        for (block, &value) in alpha.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            if value == limit {
                sparse.at_limit.push(block as u32);
            } else {
                sparse.inside.push(block as u32);
                sparse.values.push(value);
            }
        }
        Some(sparse)
    }

    /// All variables; none if they do not fit together.
    pub fn to_dense(&self) -> Option<Vec<f64>> {
        let mut alpha = vec![0.0; self.blocks];
        if self.inside.len() != self.values.len() {
            return None;
        }
        for &block in &self.at_limit {
            *alpha.get_mut(block as usize)? = self.limit;
        }
        for (&block, &value) in self.inside.iter().zip(&self.values) {
            *alpha.get_mut(block as usize)? = value;
        }
        Some(alpha)
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

/// Dual variables of a joint problem over several classes: for each row, those of other classes that are above zero.
/// The row adds −α_m times its features to the weights of such a class m, and their sum to those of its own class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassDual {
    /// Where the variables of each row start, and their number at the end.
    pub starts: Vec<u64>,
    /// The classes, in rising order within a row.
    pub classes: Vec<u32>,
    /// The variables.
    pub values: Vec<f64>,
}

impl ClassDual {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The classes and the variables of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let own = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.classes[own.clone()], &self.values[own])
    }

    /// The same for each row in turn.
    pub fn of_rows(&self) -> impl Iterator<Item = (&[u32], &[f64])> {
        (0..self.rows()).map(|row| self.row(row))
    }

    /// Whether the lists fit together: every row has classes below `classes` in rising order, and finite variables.
    pub(crate) fn is_sound(&self, classes: usize) -> bool {
        let ends = self.starts.first() == Some(&0) && self.starts.last() == Some(&(self.values.len() as u64));
        ends && self.starts.windows(2).all(|pair| pair[0] <= pair[1])
            && self.classes.len() == self.values.len()
            && self.values.iter().all(|value| value.is_finite() && *value >= 0.0)
            && self.of_rows().all(|(own, _)| {
                own.windows(2).all(|pair| pair[0] < pair[1]) && own.last().is_none_or(|&last| (last as usize) < classes)
            })
    }
}
