//! The positions of everything in a cache file. The writer computes a [`Layout`] from the lengths of the sections. The
//! reader computes it again from the stored lengths and accepts nothing else.

use xxhash_rust::xxh3::Xxh3;

/// The first bytes of every cache file. The line ends reveal a transfer that treated the file as text.
pub const MAGIC: [u8; 8] = *b"\x89MMD\r\n\x1a\n";

/// The highest version of the format that is written and read. Data without pairs are written as version 1, which has
/// no sections for pairs, so that older programs can read them.
pub const VERSION: u32 = 2;

/// Number of bytes covered by one checksum.
pub(super) const BLOCK: u64 = 1 << 20;

const ALIGNMENT: u64 = 64;
const PAGE: u64 = 4096;
/// Sections of at least this size start on a new page.
const LARGE: u64 = 1 << 16;

const CHECKSUM_AT: usize = 16;
const TABLE_AT: usize = 80;
const ENTRY_BYTES: usize = 24;

/// The limit of the largest index type.
const MOST_COLUMNS: u64 = 1 << 32;

/// An enum whose numbers are stored and whose names are shown.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $number:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum $name { $($variant = $number,)* }

        impl $name {
            pub(super) fn of_number(number: u32) -> Option<$name> {
                match number { $($number => Some($name::$variant),)* _ => None }
            }

            pub(super) fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

numbered! {
    /// The content of a section. The numbers are stored, and sections are in the order of the numbers.
    Kind {
        Facts = 1, "findings";
        Fill = 2, "fill values";
        FeatureNameBytes = 3, "feature names";
        FeatureNameEnds = 4, "ends of feature names";
        GroupStarts = 5, "group starts";
        GroupNameBytes = 6, "group names";
        GroupNameEnds = 7, "ends of group names";
        LabelNameBytes = 8, "label names";
        LabelNameEnds = 9, "ends of label names";
        TargetValues = 10, "targets";
        LabelCodes = 11, "labels";
        SetStarts = 12, "starts of label sets";
        SetCodes = 13, "label sets";
        Weights = 14, "weights";
        RowIdBytes = 15, "row ids";
        RowIdEnds = 16, "ends of row ids";
        InputOrder = 17, "input order";
        Starts = 18, "row starts";
        Indices = 19, "indices";
        Values = 20, "values";
        PairLeft = 21, "left rows of pairs";
        PairRight = 22, "right rows of pairs";
        PairOutcomes = 23, "outcomes of pairs";
        PairWeights = 24, "weights of pairs";
        PairGroups = 25, "groups of pairs";
        PairGroupNameBytes = 26, "group names of pairs";
        PairGroupNameEnds = 27, "ends of group names of pairs";
    }
}

numbered! {
    /// How the matrix is stored.
    Storage {
        DenseF32 = 1, "dense, f32";
        DenseF64 = 2, "dense, f64";
        Csr16F32 = 3, "sparse, u16 index, f32";
        Csr32F32 = 4, "sparse, u32 index, f32";
        Csr16F64 = 5, "sparse, u16 index, f64";
        Csr32F64 = 6, "sparse, u32 index, f64";
    }
}

impl Storage {
    pub(super) fn is_dense(self) -> bool {
        matches!(self, Storage::DenseF32 | Storage::DenseF64)
    }

    fn value_bytes(self) -> u32 {
        if matches!(self, Storage::DenseF32 | Storage::Csr16F32 | Storage::Csr32F32) { 4 } else { 8 }
    }

    fn index_bytes(self) -> u32 {
        if matches!(self, Storage::Csr16F32 | Storage::Csr16F64) { 2 } else { 4 }
    }
}

/// What is stored for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind {
    Absent = 0,
    Real = 1,
    Labels = 2,
    Sets = 3,
}

impl TargetKind {
    fn of_number(number: u32) -> Option<TargetKind> {
        [TargetKind::Absent, TargetKind::Real, TargetKind::Labels, TargetKind::Sets].get(number as usize).copied()
    }
}

impl Kind {
    fn element_bytes(self, storage: Storage) -> u32 {
        match self {
            Kind::Facts | Kind::FeatureNameBytes | Kind::GroupNameBytes | Kind::LabelNameBytes | Kind::RowIdBytes => 1,
            Kind::PairOutcomes | Kind::PairGroupNameBytes => 1,
            Kind::LabelCodes | Kind::SetCodes | Kind::PairLeft | Kind::PairRight | Kind::PairGroups => 4,
            Kind::Indices => storage.index_bytes(),
            Kind::Values => storage.value_bytes(),
            _ => 8,
        }
    }
}

/// The sizes that everything else must agree with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) storage: Storage,
    pub(super) targets: TargetKind,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) entries: u64,
    pub(super) hash: u64,
}

/// One section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Section {
    pub(super) kind: Kind,
    element: u32,
    pub(super) offset: u64,
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Bytes up to the next section.
    pub(super) span: u64,
    /// The position of its first block in the index.
    pub(super) first_block: u64,
}

impl Section {
    /// Number of values in the section.
    pub(super) fn count(&self) -> u64 {
        self.bytes / u64::from(self.element)
    }

    /// Number of blocks in the section, counted from its own start.
    pub(super) fn blocks(&self) -> u64 {
        self.span.div_ceil(BLOCK)
    }
}

/// The whole file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    pub(super) sections: Vec<Section>,
    pub(super) header_bytes: u64,
    pub(super) index_offset: u64,
    pub(super) blocks: u64,
    pub(super) file_bytes: u64,
}

/// Why bytes are not a valid layout.
#[derive(Debug, PartialEq)]
pub(super) enum Problem {
    /// Another version wrote them.
    Version(u32),
    /// They are damaged, with a description.
    Damaged(String),
}

impl From<String> for Problem {
    fn from(what: String) -> Problem {
        Problem::Damaged(what)
    }
}

fn up_to_multiple(bytes: u64, alignment: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(alignment)
}

fn alignment_of(bytes: u64) -> u64 {
    if bytes >= LARGE { PAGE } else { ALIGNMENT }
}

impl Layout {
    /// Places sections of the given lengths in bytes, or says why they cannot belong to a data set of this shape.
    pub(super) fn plan(shape: Shape, lengths: &[(Kind, u64)]) -> Result<Layout, String> {
        check_lengths(&shape, lengths)?;
        Layout::place(shape, lengths).ok_or_else(|| "its lengths are too large".to_string())
    }

    /// `None` if a sum overflows 64 bits.
    fn place(shape: Shape, lengths: &[(Kind, u64)]) -> Option<Layout> {
        let mut end = (TABLE_AT + ENTRY_BYTES * lengths.len()) as u64;
        let mut sections: Vec<Section> = Vec::with_capacity(lengths.len());
        for &(kind, bytes) in lengths {
            let offset = up_to_multiple(end, alignment_of(bytes))?;
            sections.push(Section {
                kind,
                element: kind.element_bytes(shape.storage),
                offset,
                bytes,
                span: 0,
                first_block: 0,
            });
            end = offset.checked_add(bytes)?;
        }
        let index_offset = up_to_multiple(end, ALIGNMENT)?;
        let mut blocks = 0;
        let mut next = index_offset;
        for section in sections.iter_mut().rev() {
            section.span = next - section.offset;
            next = section.offset;
        }
        for section in &mut sections {
            section.first_block = blocks;
            blocks += section.blocks();
        }
        let file_bytes = index_offset.checked_add(blocks.checked_mul(8)?)?.checked_add(8)?;
        if shape.rows > file_bytes {
            // Rows without columns take no space, so nothing else would limit their number.
            return None;
        }
        Some(Layout { shape, sections, header_bytes: next, index_offset, blocks, file_bytes })
    }

    /// The section of a kind, if there is one.
    pub(super) fn section(&self, kind: Kind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// The lowest version that has all these sections.
    pub(super) fn version(&self) -> u32 {
        if self.section(Kind::PairLeft).is_some() { 2 } else { 1 }
    }

    /// The bytes up to the first section.
    pub(super) fn encode(&self) -> Vec<u8> {
        let shape = &self.shape;
        let mut header = Vec::with_capacity(self.header_bytes as usize);
        header.extend(MAGIC);
        header.extend(self.version().to_le_bytes());
        header.extend((self.header_bytes as u32).to_le_bytes());
        header.extend(0u64.to_le_bytes());
        for number in [self.file_bytes, shape.rows, shape.cols, shape.entries, shape.hash] {
            header.extend(number.to_le_bytes());
        }
        for number in [shape.storage as u32, shape.targets as u32, self.sections.len() as u32, 0] {
            header.extend(number.to_le_bytes());
        }
        for section in &self.sections {
            header.extend((section.kind as u32).to_le_bytes());
            header.extend(section.element.to_le_bytes());
            header.extend(section.offset.to_le_bytes());
            header.extend(section.bytes.to_le_bytes());
        }
        header.resize(self.header_bytes as usize, 0);
        let checksum = header_checksum(&header);
        header[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Reads the header of a file without trusting it. The checksum is verified first. Then the layout is computed
    /// again from the shape and the lengths, and must equal the stored one.
    pub(super) fn decode(file: &[u8]) -> Result<Layout, Problem> {
        let cut_short = || Problem::Damaged(format!("it has {} bytes and ends within its header", file.len()));
        if !file.starts_with(&MAGIC) {
            return Err(if file.is_empty() {
                Problem::Damaged("it is empty".to_string())
            } else if MAGIC.starts_with(file) {
                cut_short()
            } else {
                Problem::Damaged("it does not begin like a cache file".to_string())
            });
        }
        let u32_at = |at: usize| -> Result<u32, Problem> {
            let bytes = file.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(cut_short)?;
            Ok(u32::from_le_bytes(bytes))
        };
        let u64_at = |at: usize| -> Result<u64, Problem> {
            let bytes = file.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).ok_or_else(cut_short)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let version = u32_at(8)?;
        if version > VERSION {
            return Err(Problem::Version(version));
        }
        let header = file.get(..u32_at(12)? as usize).ok_or_else(cut_short)?;
        if version == 0 || header.len() < TABLE_AT || !sound(header_checksum(header), u64_at(CHECKSUM_AT)?) {
            return Err(Problem::Damaged("its header does not match its checksum".to_string()));
        }
        let unknown =
            |what: &str, number: u32| Problem::Damaged(format!("its header names an unknown {what}, {number}"));
        let (storage, targets) = (u32_at(64)?, u32_at(68)?);
        let shape = Shape {
            storage: Storage::of_number(storage).ok_or_else(|| unknown("layout", storage))?,
            targets: TargetKind::of_number(targets).ok_or_else(|| unknown("kind of targets", targets))?,
            rows: u64_at(32)?,
            cols: u64_at(40)?,
            entries: u64_at(48)?,
            hash: u64_at(56)?,
        };
        let count = u32_at(72)? as usize;
        if count > (header.len() - TABLE_AT) / ENTRY_BYTES {
            return Err(Problem::Damaged("its section table is longer than its header".to_string()));
        }
        let mut lengths = Vec::with_capacity(count);
        for entry in (0..count).map(|entry| TABLE_AT + entry * ENTRY_BYTES) {
            let kind = u32_at(entry)?;
            lengths.push((Kind::of_number(kind).ok_or_else(|| unknown("section", kind))?, u64_at(entry + 16)?));
        }
        let layout = Layout::plan(shape, &lengths)?;
        if layout.file_bytes != file.len() as u64 {
            let how = if layout.file_bytes > file.len() as u64 { "was cut short" } else { "has grown" };
            return Err(Problem::Damaged(format!(
                "it {how}: its header says {} bytes, and there are {}",
                layout.file_bytes,
                file.len()
            )));
        }
        // Offsets, element sizes and the zeros after the table must be exactly what the writer would have written.
        if layout.encode() != header {
            return Err(Problem::Damaged("its section table does not fit the sizes it gives".to_string()));
        }
        Ok(layout)
    }
}

/// Whether a checksum is the stored one. A fuzzer cannot guess it, and an attacker can compute it.
pub(super) fn sound(checksum: u64, stored: u64) -> bool {
    checksum == stored || cfg!(fuzzing)
}

/// The checksum over a header, without its own field.
pub(super) fn header_checksum(header: &[u8]) -> u64 {
    let mut state = Xxh3::new();
    state.update(&header[..CHECKSUM_AT]);
    state.update(&header[CHECKSUM_AT + 8..]);
    state.digest()
}

/// Checks that exactly the sections for a data set of this shape exist, each with the right length.
fn check_lengths(shape: &Shape, lengths: &[(Kind, u64)]) -> Result<(), String> {
    if !lengths.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return Err("its sections are not in order".to_string());
    }
    if shape.cols > MOST_COLUMNS {
        return Err(format!("it has {} columns, more than an index can name", shape.cols));
    }
    for &(kind, bytes) in lengths {
        if bytes % u64::from(kind.element_bytes(shape.storage)) != 0 {
            return Err(format!("the length of its {} is not a multiple of their size", kind.name()));
        }
    }
    let count = |kind: Kind| {
        let (_, bytes) = lengths.iter().find(|(other, _)| *other == kind)?;
        Some(bytes / u64::from(kind.element_bytes(shape.storage)))
    };
    let has = |kind: Kind| count(kind).is_some();
    let expect = |kind: Kind, wanted: Option<u64>| {
        if count(kind) == wanted {
            return Ok(());
        }
        let shown = |count: Option<u64>| count.map_or("none".to_string(), |count| count.to_string());
        Err(format!("its {}: {} are there and {} are needed", kind.name(), shown(count(kind)), shown(wanted)))
    };
    let both = |bytes: Kind, ends: Kind| {
        if has(bytes) == has(ends) { Ok(()) } else { Err(format!("its {} are not complete", bytes.name())) }
    };
    let when = |condition: bool, count: u64| condition.then_some(count);
    let optional = |kind: Kind, wanted: u64| expect(kind, when(has(kind), wanted));
    let (rows, targets) = (shape.rows, shape.targets);
    let rows_and_end = rows.checked_add(1).ok_or("it has too many rows")?;
    if !has(Kind::Facts) {
        return Err("its findings are missing".to_string());
    }
    both(Kind::FeatureNameBytes, Kind::FeatureNameEnds)?;
    optional(Kind::FeatureNameEnds, shape.cols)?;
    both(Kind::GroupNameBytes, Kind::GroupNameEnds)?;
    let groups = count(Kind::GroupNameEnds);
    expect(Kind::GroupStarts, groups.and_then(|groups| groups.checked_add(1)))?;
    both(Kind::RowIdBytes, Kind::RowIdEnds)?;
    optional(Kind::RowIdEnds, rows)?;
    optional(Kind::Weights, rows)?;
    optional(Kind::InputOrder, rows)?;

    both(Kind::LabelNameBytes, Kind::LabelNameEnds)?;
    if has(Kind::LabelNameEnds) != matches!(targets, TargetKind::Labels | TargetKind::Sets) {
        return Err("its label names do not match its targets".to_string());
    }
    expect(Kind::TargetValues, when(targets == TargetKind::Real, rows))?;
    expect(Kind::LabelCodes, when(targets == TargetKind::Labels, rows))?;
    expect(Kind::SetStarts, when(targets == TargetKind::Sets, rows_and_end))?;
    if has(Kind::SetCodes) != (targets == TargetKind::Sets) {
        return Err("its label sets do not match its targets".to_string());
    }

    let pairs = count(Kind::PairLeft);
    for kind in [Kind::PairOutcomes, Kind::PairWeights, Kind::PairGroups] {
        expect(kind, pairs.filter(|_| has(kind)))?;
    }
    expect(Kind::PairRight, pairs)?;
    both(Kind::PairGroupNameBytes, Kind::PairGroupNameEnds)?;
    both(Kind::PairGroups, Kind::PairGroupNameEnds)?;

    let dense = shape.storage.is_dense();
    if dense && rows.checked_mul(shape.cols) != Some(shape.entries) {
        return Err(format!("{} values cannot be {rows} rows of {}", shape.entries, shape.cols));
    }
    expect(Kind::Starts, when(!dense, rows_and_end))?;
    expect(Kind::Indices, when(!dense, shape.entries))?;
    expect(Kind::Values, Some(shape.entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse() -> Shape {
        Shape { storage: Storage::Csr16F32, targets: TargetKind::Real, rows: 3, cols: 9, entries: 50_000, hash: 7 }
    }

    fn lengths() -> Vec<(Kind, u64)> {
        vec![
            (Kind::Facts, 20),
            (Kind::TargetValues, 24),
            (Kind::Starts, 32),
            (Kind::Indices, 100_000),
            (Kind::Values, 200_000),
        ]
    }

    #[test]
    fn sections_tile_the_file_and_large_ones_start_on_a_page() {
        let layout = Layout::plan(sparse(), &lengths()).expect("valid");
        assert_eq!(layout.header_bytes, layout.sections[0].offset);
        for pair in layout.sections.windows(2) {
            assert_eq!(pair[0].offset + pair[0].span, pair[1].offset);
        }
        let last = layout.sections.last().expect("there");
        assert_eq!(last.offset + last.span, layout.index_offset);
        assert!(layout.sections.iter().all(|section| section.offset % 64 == 0));
        assert!(layout.sections[3..].iter().all(|section| section.offset % 4096 == 0));
    }

    #[test]
    fn what_is_encoded_is_decoded_and_the_length_must_agree() {
        let layout = Layout::plan(sparse(), &lengths()).expect("valid");
        let mut file = layout.encode();
        file.resize(layout.file_bytes as usize, 0);
        assert_eq!(Layout::decode(&file), Ok(layout));
        file.push(0);
        assert!(matches!(Layout::decode(&file), Err(Problem::Damaged(what)) if what.contains("grown")));
        file.truncate(5000);
        assert!(matches!(Layout::decode(&file), Err(Problem::Damaged(what)) if what.contains("cut short")));
    }

    #[test]
    fn pairs_make_it_version_two_and_nothing_else_does() {
        let mut lengths = lengths();
        let plain = Layout::plan(sparse(), &lengths).expect("valid");
        assert_eq!((plain.version(), plain.encode()[8]), (1, 1));
        lengths.extend([(Kind::PairLeft, 8), (Kind::PairRight, 8), (Kind::PairOutcomes, 2)]);
        let paired = Layout::plan(sparse(), &lengths).expect("valid");
        let mut file = paired.encode();
        assert_eq!(file[8], 2);
        file.resize(paired.file_bytes as usize, 0);
        assert_eq!(Layout::decode(&file).as_ref(), Ok(&paired));
        // A version without pairs cannot have written them.
        file[8] = 1;
        let checksum = header_checksum(&file[..paired.header_bytes as usize]);
        file[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(Layout::decode(&file), Err(Problem::Damaged(_))));
        file[8] = 3;
        assert_eq!(Layout::decode(&file), Err(Problem::Version(3)));
    }

    #[test]
    fn lengths_that_do_not_fit_the_shape_are_refused() {
        fn refused(change: impl FnOnce(&mut Shape, &mut Vec<(Kind, u64)>)) {
            let (mut shape, mut lengths) = (sparse(), lengths());
            change(&mut shape, &mut lengths);
            Layout::plan(shape, &lengths).expect_err("refused");
        }
        refused(|shape, _| shape.rows = 4);
        refused(|shape, _| shape.rows = u64::MAX);
        refused(|shape, _| shape.entries = u64::MAX);
        refused(|shape, _| shape.cols = u64::MAX);
        refused(|shape, _| shape.targets = TargetKind::Labels);
        refused(|shape, _| shape.storage = Storage::DenseF32);
        refused(|_, lengths| lengths[1].1 = 25);
        refused(|_, lengths| lengths[1].1 = 32);
        refused(|_, lengths| lengths.swap(0, 1));
        refused(|_, lengths| lengths.insert(1, (Kind::GroupStarts, 16)));
        refused(|_, lengths| lengths.insert(1, (Kind::FeatureNameBytes, 3)));
        refused(|_, lengths| lengths.push((Kind::PairLeft, 8)));
        refused(|_, lengths| lengths.extend([(Kind::PairLeft, 8), (Kind::PairRight, 4)]));
        refused(|_, lengths| lengths.extend([(Kind::PairLeft, 8), (Kind::PairRight, 8), (Kind::PairOutcomes, 3)]));
        refused(|_, lengths| lengths.extend([(Kind::PairLeft, 8), (Kind::PairRight, 8), (Kind::PairGroups, 8)]));
        refused(|_, lengths| lengths.push((Kind::PairWeights, 0)));
        for (missing, _) in lengths() {
            refused(|_, lengths| lengths.retain(|&(kind, _)| kind != missing));
        }
        refused(|_, lengths| lengths[0].1 = u64::MAX);
    }

    #[test]
    fn rows_without_any_content_cannot_be_many() {
        let shape = |rows| Shape {
            storage: Storage::DenseF32,
            targets: TargetKind::Absent,
            rows,
            cols: 0,
            entries: 0,
            hash: 0,
        };
        let lengths = [(Kind::Facts, 2), (Kind::Values, 0)];
        assert!(Layout::plan(shape(3), &lengths).is_ok());
        assert!(Layout::plan(shape(1 << 60), &lengths).is_err());
    }
}
