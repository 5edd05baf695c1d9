//! Converts svmlight text to a cache in constant memory, for files larger than memory. One pass over the text finds the
//! sizes of all sections; a second pass fills them, each at its own position in the file. The bytes equal those of
//! [`super::save`].

use super::layout::{BLOCK, Kind, Layout, Section, Shape, Storage, TargetKind, header_checksum};
use super::read::StoredFacts;
use crate::atomic::{WriteError, write_atomically};
use crate::blocks::Source;
use crate::mapped::as_bytes;
use crate::options::{Facts, Format, ModelFeatures, Precision, ReadOptions};
use crate::read::{Content, Input};
use crate::sides::SideFiles;
use crate::source::open;
use crate::svmlight::{Stored, Survey, SvmlightBlocks};
use maxmargin::data::{BlockHash, Dataset, Matrix};
use maxmargin::error::{Code, Error, Result};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Number of bytes of text that are read together.
const TEXT: usize = 2 << 20;

/// What was written.
#[derive(Clone, Debug)]
pub struct Streamed {
    /// The findings.
    pub facts: Facts,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
}

/// Writes svmlight text to a cache file without holding it in memory; `-` is standard input. Returns `None`, and writes
/// nothing, if that is not possible: the data have another format or side files, their queries are scattered, rows have
/// several labels, or the output is not a regular file.
pub fn stream(file: &str, options: &ReadOptions, output: &Path) -> Result<Option<Streamed>> {
    let regular = output.symlink_metadata().map_or(true, |metadata| metadata.is_file());
    if !Path::new(file).is_file() || !regular {
        return Ok(None);
    }
    let input = Input::open(file, options)?;
    let without_sides = match &input.path {
        Some(path) => SideFiles::find(path)?.is_empty(),
        None => true,
    };
    if input.format != Format::Svmlight || !without_sides {
        return Ok(None);
    }
    // A compressed file is decompressed to a temporary one.
    let input = input.spooled()?;
    let made = match options.precision {
        Precision::F32 => stream_as::<f32>(&input, options, output),
        Precision::F64 => stream_as::<f64>(&input, options, output),
    };
    made.map_err(|error| options.cancel.check().and_then(|()| input.stamps.confirm(Ok(()))).err().unwrap_or(error))
}

fn stream_as<V: Stored>(input: &Input, options: &ReadOptions, output: &Path) -> Result<Option<Streamed>> {
    let Content::File(spot) = &input.content else { return Ok(None) };
    let file = &*input.file;
    let Some(survey) = Survey::take::<V>(file, open(file, spot.path())?, TEXT, options)? else { return Ok(None) };
    let options = ReadOptions {
        index_base: Some(survey.base),
        features: Some(ModelFeatures { count: survey.cols, names: None, index_base: Some(survey.base) }),
        ..options.clone()
    };
    let blocks = SvmlightBlocks::<V, _>::new(file, open(file, spot.path())?, TEXT, &options);
    let Some(blocks) = blocks else { return Ok(None) };
    let mut blocks = blocks.in_layout(survey.dense);
    write_atomically(output, |out| -> std::result::Result<(), WriteError> {
        out.flush()?;
        fill(out.get_mut(), &survey, &mut blocks, size_of::<V>() as u64, &options)?;
        // The second pass must have read what the first one measured.
        Ok(input.stamps.confirm(Ok(()))?)
    })?;
    let mut facts = blocks.facts();
    facts.compression = input.compression.map(|compression| compression.name());
    facts.bytes = input.bytes;
    Ok(Some(Streamed { facts, rows: survey.rows, cols: survey.cols }))
}

fn fill(
    out: &mut File,
    survey: &Survey,
    blocks: &mut dyn Source,
    value_bytes: u64,
    options: &ReadOptions,
) -> std::result::Result<(), WriteError> {
    let facts = StoredFacts { index_base: Some(survey.base), notes: Vec::new() };
    let facts = serde_json::to_vec(&facts).map_err(std::io::Error::from)?;
    let (rows, narrow) = (survey.rows as u64, survey.cols <= usize::from(u16::MAX) + 1);
    let storage = match (survey.dense, narrow, value_bytes) {
        (true, _, 4) => Storage::DenseF32,
        (true, _, _) => Storage::DenseF64,
        (false, true, 4) => Storage::Csr16F32,
        (false, true, _) => Storage::Csr16F64,
        (false, false, 4) => Storage::Csr32F32,
        (false, false, _) => Storage::Csr32F64,
    };
    let entries = if survey.dense { rows * survey.cols as u64 } else { survey.entries as u64 };
    let mut lengths = vec![(Kind::Facts, facts.len() as u64)];
    if let Some((starts, names)) = &survey.groups {
        lengths.push((Kind::GroupStarts, size_of_val(&starts[..]) as u64));
        lengths.push((Kind::GroupNameBytes, names.parts().0.len() as u64));
        lengths.push((Kind::GroupNameEnds, size_of_val(names.parts().1) as u64));
    }
    lengths.push((Kind::TargetValues, rows * 8));
    if survey.with_weights {
        lengths.push((Kind::Weights, rows * 8));
    }
    if let Some(bytes) = survey.id_bytes {
        lengths.extend([(Kind::RowIdBytes, bytes), (Kind::RowIdEnds, rows * 8)]);
    }
    if !survey.dense {
        lengths.push((Kind::Starts, (rows + 1) * 8));
        lengths.push((Kind::Indices, entries * if narrow { 2 } else { 4 }));
    }
    lengths.push((Kind::Values, entries * value_bytes));
    let shape = Shape { storage, targets: TargetKind::Real, rows, cols: survey.cols as u64, entries, hash: 0 };
    let layout =
        Layout::plan(shape, &lengths).map_err(|what| Error::new(Code::Internal, format!("a cache of text: {what}")))?;
    let mut places = Places { out, sections: layout.sections.iter().map(Place::new).collect() };
    places.put(Kind::Facts, &facts)?;
    if let Some((starts, names)) = &survey.groups {
        places.put(Kind::GroupStarts, as_bytes(starts))?;
        places.put(Kind::GroupNameBytes, names.parts().0)?;
        places.put(Kind::GroupNameEnds, as_bytes(names.parts().1))?;
    }
    if !survey.dense {
        places.put(Kind::Starts, &0u64.to_le_bytes())?;
    }
    let mut hash = BlockHash::new(rows, survey.groups.as_ref().map(|(starts, _)| &starts[..]));
    let (mut row, mut entry, mut id_end) = (0, 0, 0);
    loop {
        options.cancel.check()?;
        let batch = blocks.next();
        for data in &batch.blocks {
            hash.add(data)?;
            row += data.rows();
            rows_of(data, survey, &mut places, &mut entry, &mut id_end)?;
        }
        match batch.failure {
            Some(failure) => return Err(failure.into()),
            None if batch.ended => break,
            None => {}
        }
    }
    if row != survey.rows {
        return Err(changed().into());
    }
    let mut checksums = Vec::with_capacity(layout.blocks as usize);
    for section in 0..places.sections.len() {
        places.end(section)?;
        checksums.append(&mut places.sections[section].checksums);
    }
    let header = Layout { shape: Shape { hash: hash.finish(), ..shape }, ..layout.clone() }.encode();
    let index = as_bytes(&checksums);
    out.seek(SeekFrom::Start(layout.index_offset))?;
    out.write_all(index)?;
    out.write_all(&xxh3_64_with_seed(index, header_checksum(&header)).to_le_bytes())?;
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header)?;
    Ok(())
}

/// The error for a file that changed after the first pass.
fn changed() -> Error {
    Error::new(Code::FileShrank, "the file was changed while it was read; nothing was saved")
        .help("keep data files unchanged while a command reads them, then run it again")
}

/// Writes the rows of a block to their positions.
fn rows_of(
    data: &Dataset,
    survey: &Survey,
    places: &mut Places<'_>,
    entry: &mut u64,
    id_end: &mut u64,
) -> std::result::Result<(), WriteError> {
    places.put(Kind::TargetValues, as_bytes(data.targets().real()?))?;
    if survey.with_weights {
        match data.weights() {
            Some(weights) => places.put(Kind::Weights, as_bytes(weights))?,
            None => places.put(Kind::Weights, as_bytes(&vec![1.0f64; data.rows()]))?,
        }
    }
    if survey.id_bytes.is_some() {
        let ids = data.row_ids().ok_or_else(changed)?;
        let (bytes, ends) = ids.parts();
        places.put(Kind::RowIdBytes, bytes)?;
        places.put(Kind::RowIdEnds, as_bytes(&ends.iter().map(|end| *id_end + end).collect::<Vec<u64>>()))?;
        *id_end += bytes.len() as u64;
    }
    macro_rules! sparse {
        ($csr:expr) => {{
            let starts: Vec<u64> = $csr.starts().iter().skip(1).map(|start| *entry + start).collect();
            *entry += $csr.indices().len() as u64;
            places.put(Kind::Starts, as_bytes(&starts))?;
            places.put(Kind::Indices, as_bytes($csr.indices()))?;
            places.put(Kind::Values, as_bytes($csr.values()))
        }};
    }
    match data.matrix() {
        Matrix::DenseF32(dense) => places.put(Kind::Values, as_bytes(dense.values())),
        Matrix::DenseF64(dense) => places.put(Kind::Values, as_bytes(dense.values())),
        Matrix::Csr16F32(csr) => sparse!(csr),
        Matrix::Csr32F32(csr) => sparse!(csr),
        Matrix::Csr16F64(csr) => sparse!(csr),
        Matrix::Csr32F64(csr) => sparse!(csr),
    }
}

/// The sections of a file while they are being filled in parallel.
struct Places<'a> {
    out: &'a mut File,
    sections: Vec<Place>,
}

/// The current position in a section.
struct Place {
    section: Section,
    written: u64,
    state: Xxh3,
    /// Bytes left in the current block.
    room: u64,
    checksums: Vec<u64>,
}

impl Place {
    fn new(section: &Section) -> Place {
        Place { section: *section, written: 0, state: Xxh3::new(), room: BLOCK, checksums: Vec::new() }
    }

    fn end_block(&mut self) {
        self.checksums.push(self.state.digest());
        self.state.reset();
        self.room = BLOCK;
    }
}

impl Places<'_> {
    fn put(&mut self, kind: Kind, bytes: &[u8]) -> std::result::Result<(), WriteError> {
        let Some(at) = self.sections.iter().position(|place| place.section.kind == kind) else {
            return Err(changed().into());
        };
        if self.sections[at].written + bytes.len() as u64 > self.sections[at].section.bytes {
            return Err(changed().into());
        }
        self.append(at, bytes)
    }

    fn append(&mut self, at: usize, bytes: &[u8]) -> std::result::Result<(), WriteError> {
        let place = &mut self.sections[at];
        self.out.seek(SeekFrom::Start(place.section.offset + place.written))?;
        self.out.write_all(bytes)?;
        place.written += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(place.room as usize));
            place.state.update(now);
            place.room -= now.len() as u64;
            if place.room == 0 {
                place.end_block();
            }
            rest = later;
        }
        Ok(())
    }

    /// Fills the gap after a section, which must be complete.
    fn end(&mut self, at: usize) -> std::result::Result<(), WriteError> {
        let section = self.sections[at].section;
        if self.sections[at].written != section.bytes {
            return Err(changed().into());
        }
        self.append(at, &[0; 4096][..(section.span - section.bytes) as usize])?;
        let place = &mut self.sections[at];
        if place.room < BLOCK {
            place.end_block();
        }
        Ok(())
    }
}
