//! A transaction's undo: what each of its writes replaced, packed one behind the other.
//!
//! ```text
//! record  u8 flags (1 the write is a deletion, 2 there was an entry, 4 it had a value, 8 a long one)
//!         | u16 length of the key | u32 length of the value | u32 key space | key | value
//! ```
//!
//! Records begin at multiples of [`ALIGN`] in chunks that double in size up to [`CHUNK_BYTES_MAX`], so the
//! undo of one row takes little and that of a million is never moved. A record is never changed.
//!
//! The [`Link`]s lie beside the chunks and in memory: a reader goes past versions that it does not need,
//! and a writer learns where its link leads, without a look at them. So a chunk that takes no more records
//! may be
//! *spilled* into the undo file (`spill.rs`), and all of them are *freed* when no view needs a value of them
//! (`sweep.rs`).

use std::ops::Deref;
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId};
use cohort_engine::EngineError;
use smallvec::SmallVec;

use crate::spill::{SpilledBytes, SpilledExtent};
use crate::version::{TrxNo, Undo, Value, VersionRef};

const CHUNK_BYTES_MIN: usize = 256;
const CHUNK_BYTES_MAX: usize = 8 << 20;
const ALIGN: usize = 8;
/// Bits of a place that say where in its chunk a record is.
const OFFSET_BITS: u32 = 20;
const CHUNKS_MAX: usize = 1 << (u32::BITS - OFFSET_BITS);
const HEADER: usize = 11;
/// Most of what one transaction's undo takes.
pub const UNDO_BYTES_MAX: u64 = (CHUNKS_MAX * CHUNK_BYTES_MAX) as u64;

const DELETES: u8 = 1;
const EXISTED: u8 = 2;
const VALUE: u8 = 4;
const OVERFLOW: u8 = 8;

/// Where the chain goes on below a write (`chain.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// When the version that the write replaced was written. None: nobody has asked its record yet, and
    /// `below` is that version.
    pub seq: Option<CommitSeq>,
    /// The reference that stood in the entry before the write.
    pub older: VersionRef,
    /// Where a view goes on that does not see the replaced version.
    pub below: VersionRef,
    pub end: End,
}

impl Link {
    /// Of a write over a version that was ordered.
    pub fn over(older: VersionRef) -> Link {
        Link { seq: None, older, below: older, end: End::Far }
    }
}

/// What is known of a chain's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It may be anywhere.
    Far,
    /// At `below`: everybody sees what that write replaced, or no view needs it.
    Next,
    /// The same, and there was nothing, or nothing that a view needs.
    Nothing,
}

/// What stood under a key before a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before<'u> {
    pub index: IndexId,
    pub key: &'u [u8],
    /// The write that this belongs to is a deletion.
    pub is_deletion: bool,
    /// Whether there was an entry, if only one with a delete mark.
    pub existed: bool,
    /// None: everybody sees that.
    pub link: Option<Link>,
    /// None: it was deleted, or not there.
    pub value: Option<&'u [u8]>,
    pub is_overflow: bool,
}

impl Before<'_> {
    /// The same without the key, to be kept.
    pub fn to_undo(self) -> Undo {
        let value = self.value.map(|bytes| Value { is_overflow: self.is_overflow, bytes: bytes.into() });
        Undo { value, existed: self.existed, version: self.link.map(|link| link.older) }
    }

    fn len(&self) -> usize {
        let value = self.value.map_or(0, <[u8]>::len);
        (HEADER + self.key.len() + value).next_multiple_of(ALIGN)
    }
}

/// Some records, one behind the other.
#[derive(Debug)]
enum Chunk {
    Memory(Vec<u8>),
    /// `has_values`: a write of it replaced one; there is nothing to be read else.
    Spilled {
        extent: Arc<SpilledExtent>,
        start: u32,
        len: u32,
        has_values: bool,
    },
}

/// In place of the moment that a version was written at.
const UNSETTLED: u64 = u64::MAX;

/// A record's link as a log keeps it. Fields of its own: nested ones would take a quarter more.
#[derive(Clone, Copy, Debug)]
struct Linked {
    /// [`UNSETTLED`]: not known.
    seq: u64,
    older_trx: u64,
    below_trx: u64,
    older_undo: u32,
    below_undo: u32,
    /// The record's place.
    place: u32,
    end: End,
    /// No chain leads to the record's version any more.
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

    /// Its bytes from `from` on: all of them when they are in memory, else at least `len` if there are so
    /// many.
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
    /// Most transactions have one.
    chunks: SmallVec<[Chunk; 1]>,
    /// Those of the records that have one, in order. Most transactions have no more: they write a row and an
    /// index' entry, and an allocation of its own would be in no cache when the record is dropped.
    links: SmallVec<[Linked; 2]>,
    /// Chunks before this one are spilled.
    spilled: usize,
    memory_bytes: usize,
    /// Versions that a chain leads to: all that were written, but for those that were ended.
    living: u64,
    /// The chunks were freed.
    is_bare: bool,
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
            self.chunks.push(Chunk::Memory(Vec::with_capacity(taken)));
            self.memory_bytes += taken;
        }
        let number = self.chunks.len() - 1;
        let Chunk::Memory(chunk) = &mut self.chunks[number] else { unreachable!("it has room") };
        let start = chunk.len();
        write(before, chunk);
        chunk.resize(start + len, 0);
        let place = place_of(number, start);
        self.living += 1;
        self.links.extend(before.link.map(|link| Linked::new(place, link)));
        Some((place, taken))
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Looks at the record at a place that [`UndoLog::push`] returned, whose chunk was not freed.
    pub fn at<R>(&self, place: u32, look: impl FnOnce(Before<'_>) -> R) -> Result<R, EngineError> {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize * ALIGN;
        let chunk = &self.chunks[(place >> OFFSET_BITS) as usize];
        let bytes = chunk.read(offset, HEADER)?;
        let len = record_len(&bytes);
        let bytes = if bytes.len() < len { chunk.read(offset, len)? } else { bytes };
        Ok(look(parse(&bytes, self.link_at(place))))
    }

    /// What stood there before the write at a place. If that was freed, no view needs a value of it.
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

    /// Where the chain goes on below the record at a place.
    pub fn link_at(&self, place: u32) -> Option<Link> {
        self.linked(place).map(Linked::link)
    }

    /// Where its links lead that are not settled. Those of versions that have ended may lead nowhere, and
    /// stay as they are.
    pub fn unsettled(&self) -> impl Iterator<Item = VersionRef> {
        self.links.iter().filter(|linked| linked.is_unsettled()).map(|linked| linked.link().older)
    }

    /// Keeps when the versions were written that [`UndoLog::unsettled`] gave, and how their chains end.
    pub fn settle(&mut self, found: &mut impl Iterator<Item = (CommitSeq, End)>) {
        for linked in self.links.iter_mut().filter(|linked| linked.is_unsettled()) {
            let (seq, end) = found.next().expect("as many as were given");
            (linked.seq, linked.end) = (seq.0, end);
        }
    }

    /// The settled links that go past nothing and may, with their places; of versions that a chain leads to.
    pub fn whole_links(&self) -> Vec<(u32, Link)> {
        let living = self.links.iter().filter(|linked| !linked.has_ended && linked.seq != UNSETTLED);
        let all = living.map(|linked| (linked.place, linked.link()));
        all.filter(|(_, link)| link.end == End::Far && link.older == link.below).collect()
    }

    /// Lets the chain go on further down, where it ends so.
    pub fn shorten(&mut self, place: u32, below: VersionRef, end: End) {
        let linked = self.linked_mut(place).expect("what is shortened has a link");
        linked.below_trx = below.trx.0;
        linked.below_undo = below.undo;
        linked.end = end;
    }

    /// How a chain ends that goes on below the record at a place.
    pub fn end_below(&self, place: u32) -> End {
        match self.linked(place) {
            Some(_) => End::Far,
            None if self.has_value(place) == Some(false) => End::Nothing,
            None => End::Next,
        }
    }

    /// No chain leads to the version of the record at a place any more. To be told once of each.
    pub fn end_version(&mut self, place: u32) {
        if let Some(linked) = self.linked_mut(place) {
            assert!(!linked.has_ended, "a version ends once");
            linked.has_ended = true;
        }
        self.living = self.living.checked_sub(1).expect("a version ends once");
    }

    /// Versions that a chain leads to.
    pub fn living(&self) -> u64 {
        self.living
    }

    /// Whether the write at a place replaced a value; none: that stands in the undo file. What was freed
    /// counts for nothing.
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

    /// Whether a value is needed, by when it was written; 0: all views see it, or nobody knows. What a
    /// version replaced that has ended is not: its link is never settled. What stands in the undo file is not
    /// looked at and counts as needed.
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

    /// Whether some of it is in the undo file.
    pub fn has_spilled(&self) -> bool {
        self.spilled > 0
    }

    /// Frees all but the links. Returns the bytes of memory that are free.
    pub fn free(&mut self) -> usize {
        self.is_bare = true;
        self.chunks = SmallVec::new();
        self.spilled = 0;
        self.leave()
    }

    /// The log goes, and its memory counts no more. Returns how much that was.
    pub fn leave(&mut self) -> usize {
        std::mem::take(&mut self.memory_bytes)
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
            Some(Chunk::Spilled { extent, start, len, .. }) => {
                if cursor.read.is_none() {
                    cursor.read = Some(extent.read_all(*start as usize, *len as usize)?);
                }
                &cursor.read.as_ref().expect("read above")[at..]
            }
        };
        cursor.at += record_len(bytes);
        Ok(Some(parse(bytes, self.link_at(place_of(cursor.chunk, at)))))
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
    /// memory that are free: none if the log was freed meanwhile.
    pub fn spilled(&mut self, extent: &Arc<SpilledExtent>, start: u32) -> usize {
        if self.is_bare {
            return 0;
        }
        let chunk = &mut self.chunks[self.spilled];
        let Chunk::Memory(bytes) = &*chunk else { unreachable!("chunks are spilled in order") };
        let (len, freed) = (bytes.len() as u32, bytes.capacity());
        let has_values = flags_of(bytes).any(|flags| flags & VALUE != 0);
        *chunk = Chunk::Spilled { extent: extent.clone(), start, len, has_values };
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

/// Bytes of the key and of the value.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    (usize::from(u16::from_le_bytes([bytes[1], bytes[2]])), u32_at(bytes, 3) as usize)
}

fn record_len(bytes: &[u8]) -> usize {
    let (key, value) = lengths(bytes);
    (HEADER + key + value).next_multiple_of(ALIGN)
}

/// The flags of records that lie one behind the other.
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
