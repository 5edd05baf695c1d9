//! The witnesses of columns in a model file.
//!
//! - `columns.kinds`: one byte a column, 0 for the weights, 1 for a dual point, 2 for a width, 3 for cuts;
//! - `columns.counts`: four numbers a column: dual variables, those at the limit, those with another value, and cuts;
//! - `columns.rows`: for each dual point the numbers of the variables at the limit, and then of the others;
//! - `columns.values`: for each column its limit and values, its width, or the multipliers and points of its cuts.

use crate::solve::{ColumnWitness, Cut, SparseDual};

/// The tensors of a list of witnesses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Packed {
    pub(super) kinds: Vec<u8>,
    pub(super) counts: Vec<u64>,
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<f64>,
}

impl Packed {
    pub(super) fn of(columns: &[ColumnWitness]) -> Packed {
        let mut packed = Packed::default();
        for column in columns {
            let (kind, counts) = match column {
                ColumnWitness::Weights => (0, [0; 4]),
                ColumnWitness::Dual(SparseDual { blocks, limit, at_limit, inside, values }) => {
                    packed.rows.extend(at_limit.iter().chain(inside));
                    packed.values.push(*limit);
                    packed.values.extend(values);
                    (1, [*blocks, at_limit.len(), inside.len(), 0])
                }
                ColumnWitness::Rounded(width) => {
                    packed.values.push(*width);
                    (2, [0; 4])
                }
                ColumnWitness::Cuts(cuts) => {
                    packed.values.extend(cuts.iter().map(|cut| cut.multiplier));
                    packed.values.extend(cuts.iter().flat_map(|cut| &cut.point));
                    (3, [0, 0, cuts.first().map_or(0, |cut| cut.point.len()), cuts.len()])
                }
            };
            packed.kinds.push(kind);
            packed.counts.extend(counts.map(|count| count as u64));
        }
        packed
    }

    /// The witnesses; none if the tensors do not fit together.
    pub(super) fn unpacked(&self) -> Option<Vec<ColumnWitness>> {
        let (mut rows, mut values) = (&self.rows[..], &self.values[..]);
        fn take<'a, T>(from: &mut &'a [T], count: u64) -> Option<&'a [T]> {
            let (taken, rest) = from.split_at_checked(usize::try_from(count).ok()?)?;
            *from = rest;
            Some(taken)
        }
        let (counts, rest) = self.counts.as_chunks::<4>();
        if counts.len() != self.kinds.len() || !rest.is_empty() {
            return None;
        }
        let mut columns = Vec::with_capacity(self.kinds.len());
        for (kind, &[blocks, at_limit, inside, cuts]) in self.kinds.iter().zip(counts) {
            columns.push(match kind {
                0 => ColumnWitness::Weights,
                1 => {
                    let limit = *take(&mut values, 1)?.first()?;
                    let at_limit = take(&mut rows, at_limit)?.to_vec();
                    let within = take(&mut rows, inside)?.to_vec();
                    let blocks = usize::try_from(blocks).ok()?;
                    // A small file may claim any number of variables.
                    u32::try_from(blocks).ok()?;
                    if at_limit.iter().chain(&within).any(|&block| block as usize >= blocks) {
                        return None;
                    }
                    let values = take(&mut values, inside)?.to_vec();
                    ColumnWitness::Dual(SparseDual { blocks, limit, at_limit, inside: within, values })
                }
                2 => ColumnWitness::Rounded(*take(&mut values, 1)?.first()?),
                3 => {
                    let multipliers = take(&mut values, cuts)?;
                    let points = take(&mut values, cuts.checked_mul(inside)?)?;
                    let length = usize::try_from(inside).ok().filter(|length| *length > 0)?;
                    let of = |(point, &multiplier): (&[f64], &f64)| Cut { point: point.to_vec(), multiplier };
                    ColumnWitness::Cuts(points.chunks(length).zip(multipliers).map(of).collect())
                }
                _ => return None,
            });
        }
        (rows.is_empty() && values.is_empty()).then_some(columns)
    }
}

/// Whether witnesses can belong to columns with so many rows, and weights with so many constants.
pub(super) fn fits(columns: &[ColumnWitness], outputs: usize, rows: u64, numbers: usize) -> bool {
    let one = |column: &ColumnWitness| match column {
        ColumnWitness::Weights => true,
        ColumnWitness::Dual(sparse) => sparse.blocks as u64 <= rows && sparse.limit.is_finite(),
        ColumnWitness::Rounded(width) => width.is_finite() && *width > 0.0,
        ColumnWitness::Cuts(cuts) => !cuts.is_empty() && cuts.iter().all(|cut| cut.point.len() == numbers),
    };
    columns.len() == outputs && columns.iter().all(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn witnesses_are_packed_and_unpacked() {
        let dual = SparseDual::of(&[0.0, 2.0, 2.0, 0.5, 0.0, 2.0]).expect("few");
        assert_eq!((dual.limit, &dual.at_limit[..], &dual.inside[..]), (2.0, &[1, 2, 5][..], &[3][..]));
        assert_eq!(dual.to_dense().expect("whole"), [0.0, 2.0, 2.0, 0.5, 0.0, 2.0]);
        let cut = |point: [f64; 2], multiplier| Cut { point: point.to_vec(), multiplier };
        let columns = vec![
            ColumnWitness::Weights,
            ColumnWitness::Dual(dual),
            ColumnWitness::Rounded(0.25),
            ColumnWitness::Cuts(vec![cut([1.0, 2.0], 0.25), cut([3.0, 4.0], 0.75)]),
            ColumnWitness::Dual(SparseDual::default()),
        ];
        let packed = Packed::of(&columns);
        assert_eq!(packed.unpacked().expect("whole"), columns);
        assert!(fits(&columns, 5, 6, 2) && !fits(&columns, 5, 5, 2) && !fits(&columns, 4, 6, 2));
        assert!(!fits(&columns, 5, 6, 3));
        for spoil in [
            |packed: &mut Packed| packed.values.truncate(packed.values.len() - 1),
            |packed: &mut Packed| packed.rows.push(0),
            |packed: &mut Packed| packed.kinds[0] = 9,
            |packed: &mut Packed| packed.counts[4] = 3,
            |packed: &mut Packed| packed.counts[15] = u64::MAX,
            |packed: &mut Packed| packed.counts.truncate(packed.counts.len() - 1),
        ] {
            let mut spoiled = Packed::of(&columns);
            spoil(&mut spoiled);
            assert_eq!(spoiled.unpacked(), None);
        }
    }
}
