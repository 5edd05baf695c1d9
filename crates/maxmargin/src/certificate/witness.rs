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
    /// Cuts that bound the loss from below: where each was made, and its multiplier.
    Cuts(Vec<Cut>),
    /// A feasible dual point of a joint problem over several classes.
    Classes(ClassDual),
    /// One witness for each of several independent problems, the columns of an output code.
    Columns(Vec<ColumnWitness>),
    /// A feasible dual point of structured outputs.
    Outputs(OutputDual),
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

/// A feasible dual point of a joint problem over several classes: for each row the classes m other than its own whose
/// variable α_m is above zero. The coefficient of class m is −α_m, and that of the row's own class the sum of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassDual {
    /// Where the entries of each row start, and where those of the last row end.
    pub starts: Vec<u64>,
    /// The class of each entry, in rising order within a row.
    pub classes: Vec<u32>,
    /// α of each entry.
    pub values: Vec<f64>,
}

impl ClassDual {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The entries of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let (classes, values) = self.lists(row);
        classes.iter().zip(values).map(|(&class, &value)| (class as usize, value))
    }

    /// The classes and the variables of a row.
    pub(crate) fn lists(&self, row: usize) -> (&[u32], &[f64]) {
        let own = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.classes[own.clone()], &self.values[own])
    }

    /// The same for each row in turn.
    pub(crate) fn all_lists(&self) -> impl Iterator<Item = (&[u32], &[f64])> {
        (0..self.rows()).map(|row| self.lists(row))
    }

    /// Adds the entries of one more row.
    pub fn push(&mut self, entries: impl Iterator<Item = (usize, f64)>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for (class, value) in entries {
            self.classes.push(class as u32);
            self.values.push(value);
        }
        self.starts.push(self.classes.len() as u64);
    }

    /// Whether the parts fit together, for this many rows and classes: a row names each class at most once, in order.
    pub(crate) fn is_sound(&self, rows: usize, classes: usize) -> bool {
        let (entries, starts) = (self.classes.len(), &self.starts);
        let rising =
            |own: &[u32]| own.is_sorted_by(|a, b| a < b) && own.iter().all(|&class| (class as usize) < classes);
        entries == self.values.len()
            && starts.len() == rows + 1
            && starts.first() == Some(&0)
            && starts.last() == Some(&(entries as u64))
            && starts.is_sorted()
            && self.values.iter().all(|value| value.is_finite() && *value >= 0.0)
            && self.all_lists().all(|(own, _)| rising(own))
    }
}

/// A feasible dual point of structured outputs: for each example the outputs other than the truth whose variable is above
/// zero. The meaning of the numbers of an output belongs to the task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputDual {
    /// Where the outputs of each example start, and where those of the last example end.
    pub starts: Vec<u64>,
    /// Where the numbers of each output start, and where those of the last output end.
    pub bounds: Vec<u64>,
    /// The numbers of all outputs, one after the other.
    pub numbers: Vec<u32>,
    /// α of each output.
    pub values: Vec<f64>,
}

impl OutputDual {
    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The outputs of an example, each with its variable.
    pub fn of_example(&self, example: usize) -> impl Iterator<Item = (&[u32], f64)> {
        let own = self.starts[example] as usize..self.starts[example + 1] as usize;
        own.map(|at| (&self.numbers[self.bounds[at] as usize..self.bounds[at + 1] as usize], self.values[at]))
    }

    /// Adds the outputs of one more example.
    pub fn push<'o>(&mut self, outputs: impl Iterator<Item = (&'o [u32], f64)>) {
        if self.starts.is_empty() {
            self.starts.push(0);
            self.bounds.push(0);
        }
        for (numbers, value) in outputs {
            self.numbers.extend_from_slice(numbers);
            self.bounds.push(self.numbers.len() as u64);
            self.values.push(value);
        }
        self.starts.push(self.values.len() as u64);
    }

    /// Whether the parts fit together, for this many examples.
    pub(crate) fn is_sound(&self, examples: usize) -> bool {
        let rises = |bounds: &[u64], count: usize, end: usize| {
            bounds.len() == count + 1
                && bounds.first() == Some(&0)
                && bounds.last() == Some(&(end as u64))
                && bounds.is_sorted()
        };
        rises(&self.starts, examples, self.values.len())
            && rises(&self.bounds, self.values.len(), self.numbers.len())
            && self.values.iter().all(|value| value.is_finite() && *value >= 0.0)
    }
}
