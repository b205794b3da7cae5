//! Appending and flushing.

use cohort_base::Lsn;

use crate::{LogError, LogStats, Record, RecordKind};

/// The bytes a record occupies in the log, header and padding included: `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte.
    pub start: Lsn,
    /// Behind its last byte, where the next record starts. The record is hardened when `hardened() >= end`.
    pub end: Lsn,
}

/// A promise that one record of up to the asked size fits. Given back when dropped.
pub struct Room {}

/// A place in the log, given but not filled yet.
pub struct Claim {}

impl Claim {
    /// Where the record stands.
    pub fn span(&self) -> Span {
        todo!()
    }
}

/// The log, open for appending. All methods may be called from any thread.
pub struct Log {}

impl Log {
    /// Makes sure that a record with this many payload bytes fits. May wait for a segment to be made ready.
    pub fn reserve(&self, _payload_bytes: u64) -> Result<Room, LogError> {
        todo!()
    }

    /// Appends a record whose payload is the parts in a row. Never fails, never does I/O.
    ///
    /// # Panics
    /// When the parts are longer than the room.
    pub fn append(&self, _room: Room, _kind: RecordKind, _parts: &[&[u8]]) -> Span {
        todo!()
    }

    /// [`Log::append`] for several records in a row, under one lock acquisition.
    pub fn append_all<'a>(
        &self,
        _records: impl IntoIterator<Item = (Room, RecordKind, &'a [&'a [u8]])>,
    ) -> Vec<Span> {
        todo!()
    }

    /// Gives the next place in the log to a record of exactly this payload size, to be filled by [`Log::fill`]: the
    /// order is decided here, in nanoseconds; the copying happens outside the caller's lock.
    ///
    /// A claim that is never filled stops the log for ever, so it must not be dropped (that panics).
    pub fn claim(&self, _room: Room, _kind: RecordKind, _payload_bytes: u64) -> Claim {
        todo!()
    }

    /// Fills a claim with its payload: the parts in a row.
    pub fn fill(&self, _claim: Claim, _parts: &[&[u8]]) -> Span {
        todo!()
    }

    /// Hardens what was appended (and filled) before the call: one write, one sync. Answers up to where the log is
    /// hardened now. One thread flushes at a time; who comes meanwhile waits, and finds his records hardened or
    /// flushes them. A claim not filled yet ends the flush: what follows it is left for the next one.
    ///
    /// A failure poisons the log.
    pub fn flush(&self) -> Result<Lsn, LogError> {
        todo!()
    }

    /// Up to here the log survives a crash.
    pub fn hardened(&self) -> Lsn {
        todo!()
    }

    /// Where the next record will stand.
    pub fn appended(&self) -> Lsn {
        todo!()
    }

    /// Where the retained log starts: the `from` of the last checkpoint.
    pub fn retained(&self) -> Lsn {
        todo!()
    }

    /// Whether a failure has stopped the log, and which.
    pub fn poisoned(&self) -> Option<LogError> {
        todo!()
    }

    /// Reads hardened records from `from`, which must be the start of one (or the end of the log).
    pub fn read(&self, _from: Lsn) -> Result<LogReader, LogError> {
        todo!()
    }

    /// Makes durable that recovery starts at `from` with this payload; then releases the segments wholly below.
    pub fn checkpoint(&self, _from: Lsn, _payload: &[u8]) -> Result<(), LogError> {
        todo!()
    }

    /// Flushes, and records where the log ends, so that any damage is found at the next start. No appends after.
    pub fn close(&self) -> Result<(), LogError> {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        todo!()
    }
}

/// Reads hardened records in order; goes on where it stopped when there are more.
pub struct LogReader {}

impl LogReader {
    /// The next hardened record; none when all have been read (ask again later).
    #[allow(clippy::should_implement_trait)] // the record borrows from self
    pub fn next(&mut self) -> Result<Option<Record<'_>>, LogError> {
        todo!()
    }

    /// Start of the record that `next` reads next.
    pub fn position(&self) -> Lsn {
        todo!()
    }
}
