//! The cache `.mmd`: a data set in its memory layout, mapped in milliseconds at any size.
//!
//! # The file
//!
//! Little-endian throughout. A header of 64-byte multiples is followed by the sections, each at a multiple of 64 bytes
//! (large ones at a multiple of a page), and by the block index:
//!
//! ```text
//! header     0 magic   8 version u32   12 header bytes u32   16 checksum of the rest of the header u64
//!           24 file bytes u64   32 rows u64   40 columns u64   48 entries u64   56 data hash u64
//!           64 layout u32   68 kind of targets u32   72 number of sections u32   76 zero u32
//!           80 for each section: kind u32, bytes of an element u32, offset u64, bytes u64; zeros to the end
//! sections  in the order of their kinds, zeros between them
//! index     xxh3-64 of each block u64, then xxh3-64 of these, seeded with the checksum of the header
//! ```
//!
//! Version 2 has sections for pairs, version 1 has none; data without pairs are written as version 1. A section and the
//! zeros after it are cut into blocks of 1 MiB, so every byte of the file has a checksum. The content depends only on
//! the data: the same data give the same bytes.
//!
//! # What is verified when
//!
//! [`open`] verifies the header, the block index, the parts that describe columns and groups (names of features and
//! labels, group starts, fill values, findings), and pairs. The rest, which is as large as the data, is verified before
//! its first use: [`Matrix::check`](maxmargin::data::Matrix::check) verifies what is stored for each row (targets,
//! weights, ids, names of groups, input order) on its first call, and the matrix block by block as rows are needed.
//! Callers therefore call `matrix().check(rows)` before they use targets, weights or features. Damaged bytes that were
//! not checked can at worst give wrong numbers or a clean panic: memory safety never depends on the content. [`check`]
//! verifies everything at once.

mod layout;
mod read;
mod rules;
mod stream;
mod write;

pub use layout::{MAGIC, VERSION};
pub use read::{CheckReport, check, open};
pub use stream::{Streamed, stream};
pub use write::{save, write};
