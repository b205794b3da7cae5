//! Undo logs: the content that each write of a transaction replaced, packed contiguously.
//!
//! ```text
//! record  u8 flags (1 the write is a deletion, 2 there was an entry, 4 it had a value, 8 an overflow value)
//!         | u16 length of the key | u32 length of the value | u32 index | key | value
//! ```
//!
//! Records start at multiples of [`ALIGN`] in chunks. The chunks double in size up to [`CHUNK_BYTES_MAX`], so
//! the undo of one row is small and the undo of a million rows is never moved. Records never change.
//!
//! The [`Link`]s are stored separately from the chunks and stay in memory. Readers and writers can follow a
//! link, and readers can skip versions that they do not need, without access to the chunks. A chunk that is
//! complete can therefore be *spilled* to the undo file (`spill.rs`), and all chunks are *freed* when no view
//! needs their values (`prune.rs`).

use std::ops::Deref;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;
use smallvec::SmallVec;

use crate::spill::{SpilledBytes, SpilledExtent};
use crate::version_ref::{TrxNo, Undo, Value, VersionRef};

const CHUNK_BYTES_MIN: usize = 256;
const CHUNK_BYTES_MAX: usize = 8 << 20;
const ALIGN: usize = 8;
/// Number of bits of a position that hold the offset in the chunk.
const OFFSET_BITS: u32 = 20;
const CHUNKS_MAX: usize = 1 << (u32::BITS - OFFSET_BITS);
const HEADER: usize = 11;
/// Maximum size of one transaction's undo.
pub const UNDO_BYTES_MAX: u64 = (CHUNKS_MAX * CHUNK_BYTES_MAX) as u64;

const DELETES: u8 = 1;
const EXISTED: u8 = 2;
const VALUE: u8 = 4;
const OVERFLOW: u8 = 8;

/// Continuation of a chain below a write (`chain.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// CommitSeq at which the replaced version was written. `None` for an unresolved link; `below` is then
    /// the replaced version.
    pub seq: Option<CommitSeq>,
    /// The reference that the entry had before the write.
    pub older: VersionRef,
    /// Where a view continues that does not see the replaced version.
    pub below: VersionRef,
    pub end: End,
}

impl Link {
    /// Creates the link of a write that replaces an ordered version.
    pub fn over(older: VersionRef) -> Link {
        Link { seq: None, older, below: older, end: End::Far }
    }
}

/// How a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Not known: the chain may continue for any length.
    Far,
    /// At `below`: all views see the content that this write replaced, or no view needs it.
    Next,
    /// At `below`, like `Next`, and there was no previous content, or none that a view needs.
    Nothing,
}

/// Content of a key before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before<'u> {
    pub index: IndexId,
    pub key: &'u [u8],
    /// The write that this belongs to is a deletion.
    pub is_deletion: bool,
    /// An entry existed, possibly with a delete mark.
    pub existed: bool,
    /// `None` if all views see the content.
    pub link: Option<Link>,
    /// `None` if the key was deleted or did not exist.
    pub value: Option<&'u [u8]>,
    pub is_overflow: bool,
}

impl Before<'_> {
    /// Returns a copy without the key.
    pub fn to_undo(self) -> Undo {
        let value = self.value.map(|bytes| Value { is_overflow: self.is_overflow, bytes: bytes.into() });
        Undo { value, existed: self.existed, version: self.link.map(|link| link.older) }
    }

    fn len(&self) -> usize {
        let value = self.value.map_or(0, <[u8]>::len);
        (HEADER + self.key.len() + value).next_multiple_of(ALIGN)
    }
}

/// A sequence of contiguous records.
#[derive(Debug)]
enum Chunk {
    Memory(Vec<u8>),
    /// `has_values` states whether any write of the chunk replaced a value. If not, the chunk need not be
    /// read.
    Spilled {
        extent: Arc<SpilledExtent>,
        start: u32,
        len: u32,
        has_values: bool,
    },
}

/// Stands for an unknown CommitSeq.
const UNSETTLED: u64 = u64::MAX;

/// Link of a record in compact form. The fields are not nested, because nesting would need a quarter more
/// memory.
#[derive(Clone, Copy, Debug)]
struct Linked {
    /// [`UNSETTLED`] if not known.
    seq: u64,
    older_trx: u64,
    below_trx: u64,
    older_undo: u32,
    below_undo: u32,
    /// Position of the record.
    place: u32,
    end: End,
    /// The record's version is no longer reachable.
    has_ended: bool,
}

impl Linked {
    fn new(place: u32, link: Link) -> Linked {
        Linked {
            seq: link.seq.map_or(UNSETTLED, |seq| seq.0),
            older_trx: link.older.trx.0,
            below_trx: link.below.trx.0,
            older_undo: link.older.undo,
            below_undo: link.below.undo,
            place,
            end: link.end,
            has_ended: false,
        }
    }

    fn is_unsettled(&self) -> bool {
        self.seq == UNSETTLED && !self.has_ended
    }

    fn link(&self) -> Link {
        Link {
            seq: (self.seq != UNSETTLED).then_some(CommitSeq(self.seq)),
            older: VersionRef { trx: TrxNo(self.older_trx), undo: self.older_undo },
            below: VersionRef { trx: TrxNo(self.below_trx), undo: self.below_undo },
            end: self.end,
        }
    }
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Memory(bytes) => bytes.len(),
            Chunk::Spilled { len, .. } => *len as usize,
        }
    }

    /// Returns the bytes from `from` on: all of them for a chunk in memory, otherwise at least `len` if there
    /// are that many.
    fn read(&self, from: usize, len: usize) -> Result<ChunkBytes<'_>, EngineError> {
        match self {
            Chunk::Memory(bytes) => Ok(ChunkBytes::Memory(&bytes[from..])),
            Chunk::Spilled { extent, start, len: whole, .. } => {
                let len = len.min(*whole as usize - from);
                Ok(ChunkBytes::Spilled(extent.read(*start as usize + from, len)?))
            }
        }
    }
}

/// Bytes of a chunk.
enum ChunkBytes<'c> {
    Memory(&'c [u8]),
    Spilled(SpilledBytes),
}

impl Deref for ChunkBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            ChunkBytes::Memory(bytes) => bytes,
            ChunkBytes::Spilled(bytes) => bytes,
        }
    }
}

/// The records of one transaction, oldest first.
#[derive(Debug, Default)]
pub struct UndoLog {
    /// Most transactions have only one chunk.
    chunks: SmallVec<[Chunk; 1]>,
    /// Links of the records that have one, in order. Two are stored inline, which is enough for most
    /// transactions: they write a row and an entry of an index. A separate allocation would no longer be in
    /// the caches when the record is dropped.
    links: SmallVec<[Linked; 2]>,
    /// Number of leading chunks that are spilled.
    spilled: usize,
    memory_bytes: usize,
    /// Number of live versions: all that were written except those that have ended.
    live: u64,
    /// The chunks were freed.
    is_bare: bool,
}

/// Position between two records, and data read from the undo file.
#[derive(Debug, Default)]
pub struct Cursor {
    chunk: usize,
    at: usize,
    /// Content of the current chunk if it is spilled.
    read: Option<Vec<u8>>,
}

impl UndoLog {
    /// Appends a record. Returns its position and the memory that the log allocated for it, or `None` if the
    /// log is full.
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
            self.chunks.push(Chunk::Memory(Vec::with_capacity(taken)));
            self.memory_bytes += taken;
        }
        let number = self.chunks.len() - 1;
        let Chunk::Memory(chunk) = &mut self.chunks[number] else { unreachable!("it has room") };
        let start = chunk.len();
        write(before, chunk);
        debug_assert!(chunk.len() <= start + len, "a record is longer than its length says");
        chunk.resize(start + len, 0);
        debug_assert_eq!(
            record_len(&chunk[start..]),
            len,
            "a length does not fit: later records are not found"
        );
        let place = place_of(number, start);
        debug_assert_eq!(place & ((1 << OFFSET_BITS) - 1), (start / ALIGN) as u32, "an offset does not fit");
        debug_assert!(self.links.last().is_none_or(|last| last.place < place), "links are searched in order");
        self.live += 1;
        self.links.extend(before.link.map(|link| Linked::new(place, link)));
        Some((place, taken))
    }

    /// Returns the memory use of the log.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Calls `look` with the record at a position that [`UndoLog::push`] returned. The record's chunk must
    /// not have been freed.
    pub fn at<R>(&self, place: u32, look: impl FnOnce(Before<'_>) -> R) -> Result<R, EngineError> {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize * ALIGN;
        let chunk = &self.chunks[(place >> OFFSET_BITS) as usize];
        let bytes = chunk.read(offset, HEADER)?;
        let len = record_len(&bytes);
        let bytes = if bytes.len() < len { chunk.read(offset, len)? } else { bytes };
        Ok(look(parse(&bytes, self.link_at(place))))
    }

    /// Returns the content before the write at a position. If the undo was freed, no view needs its value.
    pub fn undo_at(&self, place: u32) -> Result<Undo, EngineError> {
        if self.is_bare || self.has_value(place) == Some(false) {
            let version = self.link_at(place).map(|link| link.older);
            return Ok(Undo { value: None, existed: true, version });
        }
        self.at(place, |before| before.to_undo())
    }

    fn link_of(&self, place: u32) -> Option<usize> {
        self.links.binary_search_by_key(&place, |link| link.place).ok()
    }

    fn linked(&self, place: u32) -> Option<&Linked> {
        Some(&self.links[self.link_of(place)?])
    }

    fn linked_mut(&mut self, place: u32) -> Option<&mut Linked> {
        let n = self.link_of(place)?;
        Some(&mut self.links[n])
    }

    /// Returns the link of the record at a position.
    pub fn link_at(&self, place: u32) -> Option<Link> {
        self.linked(place).map(Linked::link)
    }

    /// Returns the targets of the unresolved links. Skips links of ended versions, whose targets may no
    /// longer exist.
    pub fn unsettled(&self) -> impl Iterator<Item = VersionRef> {
        self.links.iter().filter(|linked| linked.is_unsettled()).map(|linked| linked.link().older)
    }

    /// Resolves the links that [`UndoLog::unsettled`] returned: stores when their versions were written and
    /// how their chains end.
    pub fn resolve(&mut self, found: &mut impl Iterator<Item = (CommitSeq, End)>) {
        for linked in self.links.iter_mut().filter(|linked| linked.is_unsettled()) {
            let (seq, end) = found.next().expect("as many as were given");
            debug_assert_ne!(seq.0, UNSETTLED, "an undecided version was written over");
            (linked.seq, linked.end) = (seq.0, end);
        }
    }

    /// Returns the resolved links of live versions that skip no version and may still be shortened, with
    /// their positions.
    pub fn whole_links(&self) -> Vec<(u32, Link)> {
        let live = self.links.iter().filter(|linked| !linked.has_ended && linked.seq != UNSETTLED);
        let all = live.map(|linked| (linked.place, linked.link()));
        all.filter(|(_, link)| link.end == End::Far && link.older == link.below).collect()
    }

    /// Makes the chain continue at `below`, with `end` as its known end.
    pub fn shorten(&mut self, place: u32, below: VersionRef, end: End) {
        let linked = self.linked_mut(place).expect("what is shortened has a link");
        debug_assert!(linked.seq != UNSETTLED, "a chain is shortened whose versions are not known");
        debug_assert!(!linked.has_ended, "a chain is shortened that nothing leads to");
        linked.below_trx = below.trx.0;
        linked.below_undo = below.undo;
        linked.end = end;
    }

    /// Returns how a chain ends whose next version is the record at a position.
    pub fn end_below(&self, place: u32) -> End {
        match self.linked(place) {
            Some(_) => End::Far,
            None if self.has_value(place) == Some(false) => End::Nothing,
            None => End::Next,
        }
    }

    /// Records that the version at a position is no longer reachable. Must be called once for each version.
    pub fn end_version(&mut self, place: u32) {
        if let Some(linked) = self.linked_mut(place) {
            assert!(!linked.has_ended, "a version ends once");
            linked.has_ended = true;
        }
        self.live = self.live.checked_sub(1).expect("a version ends once");
    }

    /// Returns the number of live versions.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Returns whether the write at a position replaced a value, or `None` if that requires a read of the
    /// undo file. A freed value counts as none.
    pub fn has_value(&self, place: u32) -> Option<bool> {
        if self.is_bare {
            return Some(false);
        }
        match &self.chunks[(place >> OFFSET_BITS) as usize] {
            Chunk::Memory(bytes) => {
                Some(bytes[(place & ((1 << OFFSET_BITS) - 1)) as usize * ALIGN] & VALUE != 0)
            }
            Chunk::Spilled { has_values: false, .. } => Some(false),
            Chunk::Spilled { .. } => None,
        }
    }

    /// Returns whether `is_needed` holds for any value, given the CommitSeq at which it was written, or 0 if
    /// all views see it or the CommitSeq is unknown. Skips values that an ended version replaced: their links
    /// are never resolved. Spilled values are not read and count as needed.
    pub fn is_any_needed(&self, is_needed: &dyn Fn(CommitSeq) -> bool) -> bool {
        let mut links = self.links.iter().peekable();
        for (number, chunk) in self.chunks.iter().enumerate() {
            let bytes = match chunk {
                Chunk::Memory(bytes) => bytes,
                Chunk::Spilled { has_values: false, .. } => continue,
                Chunk::Spilled { .. } => return true,
            };
            let mut at = 0;
            while at < bytes.len() {
                let place = place_of(number, at);
                while links.next_if(|link| link.place < place).is_some() {}
                let link = links.peek().filter(|link| link.place == place);
                let has_ended = link.is_some_and(|link| link.has_ended);
                let seq = link.and_then(|link| link.link().seq).unwrap_or(CommitSeq(0));
                if bytes[at] & VALUE != 0 && !has_ended && is_needed(seq) {
                    return true;
                }
                at += record_len(&bytes[at..]);
            }
        }
        false
    }

    /// Returns whether part of the log is in the undo file.
    pub fn has_spilled(&self) -> bool {
        self.spilled > 0
    }

    /// Frees everything except the links. Returns the freed memory.
    pub fn free(&mut self) -> usize {
        self.is_bare = true;
        self.chunks = SmallVec::new();
        self.spilled = 0;
        self.leave()
    }

    /// Returns the log's memory and stops accounting for it, because the log is about to be dropped.
    pub fn leave(&mut self) -> usize {
        std::mem::take(&mut self.memory_bytes)
    }

    /// Returns the record after the cursor and advances the cursor.
    pub fn next<'u>(&'u self, cursor: &'u mut Cursor) -> Result<Option<Before<'u>>, EngineError> {
        while self.chunks.get(cursor.chunk).is_some_and(|chunk| chunk.len() == cursor.at) {
            *cursor = Cursor { chunk: cursor.chunk + 1, ..Cursor::default() };
        }
        let at = cursor.at;
        let bytes = match self.chunks.get(cursor.chunk) {
            None => return Ok(None),
            Some(Chunk::Memory(bytes)) => &bytes[at..],
            Some(Chunk::Spilled { extent, start, len, .. }) => {
                if cursor.read.is_none() {
                    cursor.read = Some(extent.read_all(*start as usize, *len as usize)?);
                }
                &cursor.read.as_ref().expect("read above")[at..]
            }
        };
        debug_assert!(record_len(bytes) <= bytes.len(), "a record ends beyond its chunk");
        cursor.at += record_len(bytes);
        Ok(Some(parse(bytes, self.link_at(place_of(cursor.chunk, at)))))
    }

    /// Returns the oldest chunk in memory that can be spilled. While the log grows, its last chunk cannot.
    pub fn to_spill(&self, grows: Grows) -> Option<&[u8]> {
        let kept = usize::from(grows == Grows::Yes);
        match self.chunks.get(self.spilled..self.chunks.len().saturating_sub(kept))?.first()? {
            Chunk::Memory(bytes) => Some(bytes),
            Chunk::Spilled { .. } => unreachable!("chunks are spilled in order"),
        }
    }

    /// Returns all chunks in memory of a log that does not grow.
    pub fn all_to_spill(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks[self.spilled..].iter().map(|chunk| match chunk {
            Chunk::Memory(bytes) => &**bytes,
            Chunk::Spilled { .. } => unreachable!("chunks are spilled in order"),
        })
    }

    /// Replaces the chunk that [`UndoLog::to_spill`] returned by its copy in the extent at `start`. Returns
    /// the freed memory, which is 0 if the log was freed meanwhile.
    pub fn spilled(&mut self, extent: &Arc<SpilledExtent>, start: u32) -> usize {
        if self.is_bare {
            return 0;
        }
        let chunk = &mut self.chunks[self.spilled];
        let Chunk::Memory(bytes) = &*chunk else { unreachable!("chunks are spilled in order") };
        let (len, freed) = (bytes.len() as u32, bytes.capacity());
        debug_assert!(self.memory_bytes >= freed, "memory of undo is counted too low");
        debug_assert!(len > 0, "a chunk without records is spilled");
        let has_values = flags_of(bytes).any(|flags| flags & VALUE != 0);
        *chunk = Chunk::Spilled { extent: extent.clone(), start, len, has_values };
        self.spilled += 1;
        self.memory_bytes -= freed;
        freed
    }
}

/// State of a log: open for more records, or complete.
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
            | flag(before.is_overflow, OVERFLOW),
    );
    out.extend_from_slice(&(before.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&before.index.0.to_le_bytes());
    out.extend_from_slice(before.key);
    out.extend_from_slice(value);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn place_of(chunk: usize, at: usize) -> u32 {
    ((chunk as u32) << OFFSET_BITS) | (at / ALIGN) as u32
}

/// Returns the lengths of key and value.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    (usize::from(u16::from_le_bytes([bytes[1], bytes[2]])), u32_at(bytes, 3) as usize)
}

fn record_len(bytes: &[u8]) -> usize {
    let (key, value) = lengths(bytes);
    (HEADER + key + value).next_multiple_of(ALIGN)
}

/// Returns the flags of contiguous records.
fn flags_of(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let flags = *rest.first()?;
        rest = &rest[record_len(rest)..];
        Some(flags)
    })
}

fn parse(bytes: &[u8], link: Option<Link>) -> Before<'_> {
    let (key_len, value_len) = lengths(bytes);
    let flags = bytes[0];
    let (key, value) = bytes[HEADER..HEADER + key_len + value_len].split_at(key_len);
    Before {
        index: IndexId(u32_at(bytes, 7)),
        key,
        is_deletion: flags & DELETES != 0,
        existed: flags & EXISTED != 0,
        link,
        value: (flags & VALUE != 0).then_some(value),
        is_overflow: flags & OVERFLOW != 0,
    }
}
