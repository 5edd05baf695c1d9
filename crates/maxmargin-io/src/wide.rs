//! Pairs as a table with two items per row: `left.NAME …, right.NAME …, outcome[, weight][, group]`, the same form that
//! is read.

use crate::atomic::refused_write;
use crate::cells;
use maxmargin::data::{Dataset, Pairs};
use maxmargin::error::Result;
use std::io::Write;

/// The prefixes of the columns of the left and of the right item.
const SIDES: [&str; 2] = ["left.", "right."];

/// The columns of the features: those of the left item, followed by those of the right one.
pub(crate) fn feature_columns(data: &Dataset) -> Vec<String> {
    let name = |feature: usize| match data.feature_names() {
        Some(names) => names.get(feature).into_owned(),
        None => format!("f{}", feature + 1),
    };
    SIDES.iter().flat_map(|side| (0..data.cols()).map(move |feature| format!("{side}{}", name(feature)))).collect()
}

/// The columns of the pair, which come after these.
pub(crate) fn pair_columns(pairs: &Pairs) -> Vec<&'static str> {
    let weight = pairs.weights().map(|_| "weight");
    let group = pairs.groups().map(|_| "group");
    [Some("outcome"), weight, group].into_iter().flatten().collect()
}

/// Writes pairs as text, with each value in the shortest form that parses as the same value.
pub(crate) fn write_csv(data: &Dataset, pairs: &Pairs, delimiter: u8, out: &mut dyn Write) -> Result<()> {
    let failed = |error: csv::Error| refused_write(&error.into());
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).buffer_capacity(1 << 17).from_writer(out);
    let features = feature_columns(data);
    let others = pair_columns(pairs);
    writer.write_record(features.iter().map(String::as_str).chain(others)).map_err(failed)?;
    data.matrix().check(0..data.rows())?;
    let double = data.matrix().is_double();
    let mut cells = vec![0.0f64; 2 * data.cols()];
    let mut text = Vec::new();
    for pair in 0..pairs.len() {
        fill_cells(data, pairs, pair, &mut cells);
        for &value in &cells {
            text.clear();
            cells::print(value, double, &mut text);
            writer.write_field(&text).map_err(failed)?;
        }
        writer.write_field(pairs.outcome(pair).name()).map_err(failed)?;
        if let Some(weights) = pairs.weights() {
            text.clear();
            cells::print(weights[pair], true, &mut text);
            writer.write_field(&text).map_err(failed)?;
        }
        if let Some((codes, names)) = pairs.groups() {
            writer.write_field(names.get_bytes(codes[pair] as usize)).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    writer.flush().map_err(|error| refused_write(&error))
}

/// The features of both items of a pair.
fn fill_cells(data: &Dataset, pairs: &Pairs, pair: usize, cells: &mut [f64]) {
    cells.fill(0.0);
    let (left, right) = cells.split_at_mut(data.cols());
    data.matrix().each_in_row(pairs.left()[pair] as usize, |column, value| left[column] = value);
    data.matrix().each_in_row(pairs.right()[pair] as usize, |column, value| right[column] = value);
}

#[cfg(feature = "tables")]
mod typed {
    use super::*;
    use crate::record_batch::block_rows;
    use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema, SchemaRef};
    use maxmargin::error::{Code, Error};
    use std::ops::Range;
    use std::sync::Arc;

    /// The columns with their types.
    pub(crate) fn schema_of(data: &Dataset, pairs: &Pairs) -> SchemaRef {
        let value = if data.matrix().is_double() { DataType::Float64 } else { DataType::Float32 };
        let features = feature_columns(data).into_iter().map(|name| Field::new(name, value.clone(), false));
        let others = pair_columns(pairs).into_iter().map(|name| {
            let data_type = if name == "weight" { DataType::Float64 } else { DataType::Utf8 };
            Field::new(name, data_type, false)
        });
        Arc::new(Schema::new(features.chain(others).collect::<Vec<_>>()))
    }

    /// The pairs as batches.
    pub(crate) fn batches<'a>(
        data: &'a Dataset,
        pairs: &'a Pairs,
        schema: &SchemaRef,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + 'a> {
        data.matrix().check(0..data.rows())?;
        let size = block_rows(schema.fields().len());
        let schema = Arc::clone(schema);
        Ok((0..pairs.len())
            .step_by(size)
            .map(move |start| batch_of(data, pairs, &schema, start..(start + size).min(pairs.len()))))
    }

    fn batch_of(data: &Dataset, pairs: &Pairs, schema: &SchemaRef, range: Range<usize>) -> Result<RecordBatch> {
        let mut values = vec![vec![0.0f64; range.len()]; 2 * data.cols()];
        let mut cells = vec![0.0; 2 * data.cols()];
        for (at, pair) in range.clone().enumerate() {
            fill_cells(data, pairs, pair, &mut cells);
            cells.iter().zip(&mut values).for_each(|(cell, column)| column[at] = *cell);
        }
        let double = data.matrix().is_double();
        let mut columns: Vec<ArrayRef> = values
            .into_iter()
            .map(|values| -> ArrayRef {
                if double {
                    Arc::new(Float64Array::from(values))
                } else {
                    // Exact: the values were widened from f32.
                    Arc::new(
                        values
                            .into_iter()
                            .map(|value| value as f32)
                            .collect::<Vec<_>>()
                            .into_iter()
                            .collect::<Float32Array>(),
                    )
                }
            })
            .collect();
        columns.push(Arc::new(StringArray::from_iter_values(range.clone().map(|pair| pairs.outcome(pair).name()))));
        if let Some(weights) = pairs.weights() {
            columns.push(Arc::new(Float64Array::from(weights[range.clone()].to_vec())));
        }
        if let Some((codes, names)) = pairs.groups() {
            columns.push(Arc::new(StringArray::from_iter_values(range.map(|pair| names.get(codes[pair] as usize)))));
        }
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| Error::new(Code::Internal, error.to_string()))
    }
}

#[cfg(feature = "tables")]
pub(crate) use typed::{batches, schema_of};
