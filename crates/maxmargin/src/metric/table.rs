//! [`ClassTable`]: true against predicted classes, with the precision, recall and F1 of each class.

use super::Judged;
use super::classes::Tally;
use std::collections::BTreeMap;

/// The weight of the rows for each true and predicted class. Only the pairs that occur take space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassTable {
    classes: usize,
    cells: BTreeMap<(u32, u32), f64>,
}

/// A class that was predicted for rows of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confused {
    /// The true class.
    pub truth: usize,
    /// The predicted class.
    pub predicted: usize,
    /// The weight of these rows.
    pub weight: f64,
}

/// How well one class is told from the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByClass {
    /// Of the rows predicted to be of the class, the share that is; 0 if there are none.
    pub precision: f64,
    /// Of the rows of the class, the share predicted to be; 0 if there are none.
    pub recall: f64,
    /// The harmonic mean of the two.
    pub f1: f64,
    /// The weight of the rows of the class.
    pub support: f64,
    /// The weight of the rows predicted to be of the class.
    pub predicted: f64,
}

impl ClassTable {
    /// Counts rows by their true and predicted class, all below `classes`. Without weights each row counts 1.
    pub fn new(truth: &[u32], predicted: &[u32], weights: Option<&[f64]>, classes: usize) -> ClassTable {
        let mut cells = BTreeMap::new();
        for (row, (&truth, &predicted)) in truth.iter().zip(predicted).enumerate() {
            *cells.entry((truth, predicted)).or_insert(0.0) += weights.map_or(1.0, |weights| weights[row]);
        }
        ClassTable { classes, cells }
    }

    /// The same for judged rows; `None` if they have no true and predicted classes.
    pub fn of(judged: &Judged<'_>) -> Option<ClassTable> {
        match (judged.truth, judged.predictions) {
            (super::Truth::Classes { codes, count, .. }, Some(predicted)) => {
                Some(ClassTable::new(codes, predicted, judged.weights, count))
            }
            _ => None,
        }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The weight of the rows of a true and a predicted class.
    pub fn get(&self, truth: usize, predicted: usize) -> f64 {
        self.cells.get(&(truth as u32, predicted as u32)).copied().unwrap_or(0.0)
    }

    /// All cells that are not empty, in the order of the true class.
    pub fn cells(&self) -> impl Iterator<Item = Confused> + '_ {
        self.cells.iter().map(|(&(truth, predicted), &weight)| Confused {
            truth: truth as usize,
            predicted: predicted as usize,
            weight,
        })
    }

    /// The wrong predictions, the most common first; equal ones in the order of the classes.
    pub fn confusions(&self) -> Vec<Confused> {
        let mut found: Vec<Confused> = self.cells().filter(|cell| cell.truth != cell.predicted).collect();
        found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        found
    }

    /// The figures of each class.
    pub fn by_class(&self) -> Vec<ByClass> {
        let mut tallies = vec![Tally::default(); self.classes];
        for cell in self.cells() {
            tallies[cell.truth].truth += cell.weight;
            tallies[cell.predicted].predicted += cell.weight;
            if cell.truth == cell.predicted {
                tallies[cell.truth].right += cell.weight;
            }
        }
        let figures = |tally: &Tally| ByClass {
            precision: tally.precision(),
            recall: tally.recall(),
            f1: tally.f1(),
            support: tally.truth,
            predicted: tally.predicted,
        };
        tallies.iter().map(figures).collect()
    }
}
