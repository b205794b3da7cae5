//! A transaction's undo: what each of its writes replaced, packed one behind the other.
//!
//! ```text
//! record  u8 flags (1 the write is a deletion, 2 there was an entry, 4 it had a value, 8 a long one,
//!         16 a version reference, 32 a skip) | u16 length of the key | u32 length of the value
//!         | u32 key space | u64 transaction, u32 place in its undo (with a version reference)
//!         | u64 transaction, u32 place, u32 its depth, u32 own depth (with a skip) | key | value
//! ```
//!
//! Records begin at multiples of [`ALIGN`] in chunks that double in size up to [`CHUNK_BYTES_MAX`], so the
//! undo of one row takes little and that of a million is never moved. A record is never changed.
//!
//! A chunk that takes no more records may be *spilled* into the undo file (`spill.rs`). Its records are read
//! from there by the reader that needs one. The references and skips stay in memory ([`Link`]): a reader goes
//! past versions that it does not need, and a writer learns where its skip leads, without a look at the file.

use std::borrow::Cow;
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_engine::EngineError;

use crate::spill::SpilledExtent;
use crate::version::{Skip, TrxNo, Undo, Value, VersionRef};

const CHUNK_BYTES_MIN: usize = 256;
const CHUNK_BYTES_MAX: usize = 8 << 20;
const ALIGN: usize = 8;
/// Bits of a place that say where in its chunk a record is.
const OFFSET_BITS: u32 = 20;
const CHUNKS_MAX: usize = 1 << (u32::BITS - OFFSET_BITS);
const HEADER: usize = 11;
const REFERENCE: usize = 12;
const SKIP: usize = 20;
/// Most of what one transaction's undo takes.
pub const UNDO_BYTES_MAX: u64 = (CHUNKS_MAX * CHUNK_BYTES_MAX) as u64;

const DELETES: u8 = 1;
const EXISTED: u8 = 2;
const VALUE: u8 = 4;
const OVERFLOW: u8 = 8;
const REFERRED: u8 = 16;
const SKIPS: u8 = 32;

/// What stood under a key before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before<'u> {
    pub index: IndexId,
    pub key: &'u [u8],
    /// The write that this belongs to is a deletion.
    pub is_deletion: bool,
    /// Whether there was an entry, if only one with a delete mark.
    pub existed: bool,
    /// Who wrote that; none: everybody sees it.
    pub version: Option<VersionRef>,
    /// A way past many older versions; none: there is at most this one.
    pub skip: Option<Skip>,
    /// None: it was deleted, or not there.
    pub value: Option<&'u [u8]>,
    pub is_overflow: bool,
}

impl Before<'_> {
    /// The same without the key, to be kept.
    pub fn to_undo(self) -> Undo {
        let value = self.value.map(|bytes| Value { is_overflow: self.is_overflow, bytes: bytes.into() });
        Undo { value, existed: self.existed, version: self.version }
    }

    fn len(&self) -> usize {
        let reference = if self.version.is_some() { REFERENCE } else { 0 };
        let skip = if self.skip.is_some() { SKIP } else { 0 };
        let value = self.value.map_or(0, <[u8]>::len);
        (HEADER + reference + skip + self.key.len() + value).next_multiple_of(ALIGN)
    }
}

/// Some records, one behind the other.
#[derive(Debug)]
enum Chunk {
    Memory(Vec<u8>),
    Spilled { extent: Arc<SpilledExtent>, start: u32, len: u32, links: Links },
}

/// Where the chain goes on below a spilled record. Fields of its own: nested ones would take half as much
/// again.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    trx: u64,
    skip_trx: u64,
    /// The record's place in its chunk, in units of [`ALIGN`].
    at: u32,
    undo: u32,
    skip_undo: u32,
    skip_to_depth: u32,
    /// 0: there is no skip.
    skip_depth: u32,
}

/// Those of a chunk's records that have one, in order.
pub type Links = Box<[Link]>;

impl Link {
    fn new(at: usize, version: VersionRef, skip: Option<Skip>) -> Link {
        let skip = skip.unwrap_or(Skip { to: VersionRef { trx: TrxNo(0), undo: 0 }, to_depth: 0, depth: 0 });
        Link {
            trx: version.trx.0,
            skip_trx: skip.to.trx.0,
            at: (at / ALIGN) as u32,
            undo: version.undo,
            skip_undo: skip.to.undo,
            skip_to_depth: skip.to_depth,
            skip_depth: skip.depth,
        }
    }

    fn version(&self) -> VersionRef {
        VersionRef { trx: TrxNo(self.trx), undo: self.undo }
    }

    fn skip(&self) -> Option<Skip> {
        let to = VersionRef { trx: TrxNo(self.skip_trx), undo: self.skip_undo };
        (self.skip_depth > 0).then_some(Skip { to, to_depth: self.skip_to_depth, depth: self.skip_depth })
    }
}

/// The links of a chunk that is about to be spilled.
pub fn links_of(chunk: &[u8]) -> Links {
    let (mut links, mut at) = (Vec::new(), 0);
    while at < chunk.len() {
        let before = parse(&chunk[at..]);
        links.extend(before.version.map(|version| Link::new(at, version, before.skip)));
        at += record_len(&chunk[at..]);
    }
    links.into_boxed_slice()
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Memory(bytes) => bytes.len(),
            Chunk::Spilled { len, .. } => *len as usize,
        }
    }

    /// Its bytes from `from` on: all of them when they are in memory, else at least `len` if there are so
    /// many.
    fn read(&self, from: usize, len: usize) -> Result<Cow<'_, [u8]>, EngineError> {
        match self {
            Chunk::Memory(bytes) => Ok(Cow::Borrowed(&bytes[from..])),
            Chunk::Spilled { extent, start, len: whole, .. } => {
                let len = len.min(*whole as usize - from);
                Ok(Cow::Owned(extent.read(*start as usize + from, len)?))
            }
        }
    }
}

/// The records of one transaction, oldest first.
#[derive(Debug, Default)]
pub struct UndoLog {
    chunks: Vec<Chunk>,
    /// Chunks before this one are spilled.
    spilled: usize,
    memory_bytes: usize,
}

/// A place between two records, with what was read behind it.
#[derive(Debug, Default)]
pub struct Cursor {
    chunk: usize,
    at: usize,
    /// The spilled chunk that it stands in.
    read: Option<Vec<u8>>,
}

impl UndoLog {
    /// Adds a record. Returns its place and the bytes of memory that the log has taken for it; none: a
    /// transaction holds no more.
    pub fn push(&mut self, before: &Before<'_>) -> Option<(u32, usize)> {
        let len = before.len();
        let mut taken = 0;
        let has_room = |chunk: &Chunk| match chunk {
            Chunk::Memory(bytes) => bytes.capacity() - bytes.len() >= len,
            Chunk::Spilled { .. } => false,
        };
        if !self.chunks.last().is_some_and(has_room) {
            if self.chunks.len() == CHUNKS_MAX {
                return None;
            }
            let usual = CHUNK_BYTES_MIN << self.chunks.len().saturating_sub(1).min(15);
            taken = usual.min(CHUNK_BYTES_MAX).max(len);
            if self.chunks.is_empty() {
                // Most transactions have one or two.
                self.chunks.reserve_exact(1);
            }
            self.chunks.push(Chunk::Memory(Vec::with_capacity(taken)));
            self.memory_bytes += taken;
        }
        let number = self.chunks.len() - 1;
        let Chunk::Memory(chunk) = &mut self.chunks[number] else { unreachable!("it has room") };
        let start = chunk.len();
        write(before, chunk);
        chunk.resize(start + len, 0);
        Some((((number as u32) << OFFSET_BITS) | (start / ALIGN) as u32, taken))
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Looks at the record at a place that [`UndoLog::push`] returned.
    pub fn at<R>(&self, place: u32, look: impl FnOnce(Before<'_>) -> R) -> Result<R, EngineError> {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize * ALIGN;
        let chunk = &self.chunks[(place >> OFFSET_BITS) as usize];
        let bytes = chunk.read(offset, HEADER)?;
        let len = record_len(&bytes);
        let bytes = if bytes.len() < len { chunk.read(offset, len)? } else { bytes };
        Ok(look(parse(&bytes)))
    }

    /// Where the chain goes on below the record at a place, and the way past it.
    pub fn link_at(&self, place: u32) -> (Option<VersionRef>, Option<Skip>) {
        let (chunk, at) = (&self.chunks[(place >> OFFSET_BITS) as usize], place & ((1 << OFFSET_BITS) - 1));
        match chunk {
            Chunk::Memory(bytes) => {
                let before = parse(&bytes[at as usize * ALIGN..]);
                (before.version, before.skip)
            }
            Chunk::Spilled { links, .. } => match links.binary_search_by_key(&at, |link| link.at) {
                Ok(n) => (Some(links[n].version()), links[n].skip()),
                Err(_) => (None, None),
            },
        }
    }

    /// The record behind the cursor, which moves on.
    pub fn next<'u>(&'u self, cursor: &'u mut Cursor) -> Result<Option<Before<'u>>, EngineError> {
        while self.chunks.get(cursor.chunk).is_some_and(|chunk| chunk.len() == cursor.at) {
            *cursor = Cursor { chunk: cursor.chunk + 1, ..Cursor::default() };
        }
        let at = cursor.at;
        let bytes = match self.chunks.get(cursor.chunk) {
            None => return Ok(None),
            Some(Chunk::Memory(bytes)) => &bytes[at..],
            Some(spilled) => {
                if cursor.read.is_none() {
                    cursor.read = Some(spilled.read(0, spilled.len())?.into_owned());
                }
                &cursor.read.as_ref().expect("read above")[at..]
            }
        };
        cursor.at += record_len(bytes);
        Ok(Some(parse(bytes)))
    }

    /// The oldest chunk in memory, if it can be spilled: while records are still added, the last one stays.
    pub fn to_spill(&self, grows: Grows) -> Option<&[u8]> {
        let kept = usize::from(grows == Grows::Yes);
        match self.chunks.get(self.spilled..self.chunks.len().saturating_sub(kept))?.first()? {
            Chunk::Memory(bytes) => Some(bytes),
            Chunk::Spilled { .. } => unreachable!("chunks are spilled in order"),
        }
    }

    /// All chunks in memory of a log that does not grow.
    pub fn all_to_spill(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks[self.spilled..].iter().map(|chunk| match chunk {
            Chunk::Memory(bytes) => &**bytes,
            Chunk::Spilled { .. } => unreachable!("chunks are spilled in order"),
        })
    }

    /// The chunk that [`UndoLog::to_spill`] gave stands in the extent from `start` on. Returns the bytes of
    /// memory that are free, but for the links.
    pub fn spilled(&mut self, extent: &Arc<SpilledExtent>, start: u32, links: Links) -> usize {
        let chunk = &mut self.chunks[self.spilled];
        let Chunk::Memory(bytes) = &*chunk else { unreachable!("chunks are spilled in order") };
        let (len, freed) = (bytes.len() as u32, bytes.capacity());
        *chunk = Chunk::Spilled { extent: extent.clone(), start, len, links };
        self.spilled += 1;
        self.memory_bytes -= freed;
        freed
    }
}

/// Whether records are still added to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grows {
    Yes,
    No,
}

fn write(before: &Before<'_>, out: &mut Vec<u8>) {
    let value = before.value.unwrap_or(&[]);
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.push(
        flag(before.is_deletion, DELETES)
            | flag(before.existed, EXISTED)
            | flag(before.value.is_some(), VALUE)
            | flag(before.is_overflow, OVERFLOW)
            | flag(before.version.is_some(), REFERRED)
            | flag(before.skip.is_some(), SKIPS),
    );
    out.extend_from_slice(&(before.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&before.index.0.to_le_bytes());
    let put_reference = |out: &mut Vec<u8>, version: VersionRef| {
        out.extend_from_slice(&version.trx.0.to_le_bytes());
        out.extend_from_slice(&version.undo.to_le_bytes());
    };
    if let Some(version) = before.version {
        put_reference(out, version);
    }
    if let Some(skip) = before.skip {
        put_reference(out, skip.to);
        out.extend_from_slice(&skip.to_depth.to_le_bytes());
        out.extend_from_slice(&skip.depth.to_le_bytes());
    }
    out.extend_from_slice(before.key);
    out.extend_from_slice(value);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn reference_at(bytes: &[u8], at: usize) -> VersionRef {
    let trx = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    VersionRef { trx: TrxNo(trx), undo: u32_at(bytes, at + 8) }
}

/// Bytes before the key, and those of the key and the value.
fn lengths(bytes: &[u8]) -> (usize, usize, usize) {
    let flags = bytes[0];
    let reference = if flags & REFERRED != 0 { REFERENCE } else { 0 };
    let skip = if flags & SKIPS != 0 { SKIP } else { 0 };
    let key = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
    (HEADER + reference + skip, key, u32_at(bytes, 3) as usize)
}

fn record_len(bytes: &[u8]) -> usize {
    let (head, key, value) = lengths(bytes);
    (head + key + value).next_multiple_of(ALIGN)
}

fn parse(bytes: &[u8]) -> Before<'_> {
    let (head, key_len, value_len) = lengths(bytes);
    let flags = bytes[0];
    let version = (flags & REFERRED != 0).then(|| reference_at(bytes, HEADER));
    let skip = (flags & SKIPS != 0).then(|| {
        let at = head - SKIP;
        let (to_depth, depth) = (u32_at(bytes, at + REFERENCE), u32_at(bytes, at + REFERENCE + 4));
        Skip { to: reference_at(bytes, at), to_depth, depth }
    });
    let (key, value) = bytes[head..head + key_len + value_len].split_at(key_len);
    Before {
        index: IndexId(u32_at(bytes, 7)),
        key,
        is_deletion: flags & DELETES != 0,
        existed: flags & EXISTED != 0,
        version,
        skip,
        value: (flags & VALUE != 0).then_some(value),
        is_overflow: flags & OVERFLOW != 0,
    }
}
