//! The end of the log in memory: what was appended and is not hardened yet.
//!
//! Records are copied to the end of one buffer that starts at a block border. A flush takes the buffer up to
//! the first claim that is not filled, pads it to whole blocks, and leaves a second buffer with what remains:
//! the last, partly filled block (so that the next flush rewrites it with the same prefix) and whatever
//! follows.

use std::collections::BTreeSet;

use crate::record::{HEADER_BYTES, Header, padding, record_bytes};
use crate::segment::BLOCK_BYTES;

/// A buffer larger than this is not kept for the next flush.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The buffer. Everything in it is under the log's tail lock.
pub(crate) struct Tail {
    /// LSN of the first byte of `buf`; a block border.
    base: u64,
    buf: Vec<u8>,
    /// Up to here a flush has taken the bytes.
    taken: u64,
    /// Starts of claims that are not filled.
    unfilled: BTreeSet<u64>,
    pub records: u64,
    pub record_bytes: u64,
}

/// What a flush writes: whole blocks.
pub(crate) struct Batch {
    pub base: u64,
    pub bytes: Vec<u8>,
    /// Hardened up to here once it is written and synced.
    pub end: u64,
}

impl Tail {
    /// `block` is what the last block holds up to `end`.
    pub fn new(end: u64, block: Vec<u8>) -> Tail {
        let base = end - block.len() as u64;
        assert_eq!(base % BLOCK_BYTES, 0, "the tail starts at a block border");
        Tail { base, buf: block, taken: end, unfilled: BTreeSet::new(), records: 0, record_bytes: 0 }
    }

    pub fn end(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    /// Appends a whole record.
    pub fn append(&mut self, header: &Header, salt: u32, parts: &[&[u8]]) {
        debug_assert_eq!(header.lsn, self.end());
        self.buf.extend_from_slice(&header.encode(salt));
        parts.iter().for_each(|part| self.buf.extend_from_slice(part));
        self.buf.extend_from_slice(padding(u64::from(header.payload_bytes)));
        self.count(header.record_bytes());
    }

    /// Makes place for a record that comes later. Answers its start.
    pub fn claim(&mut self, payload_bytes: u64) -> u64 {
        let start = self.end();
        let bytes = record_bytes(payload_bytes);
        self.buf.resize(self.buf.len() + bytes as usize, 0);
        self.unfilled.insert(start);
        self.count(bytes);
        start
    }

    /// Copies bytes into the claim that covers them.
    pub fn copy_in(&mut self, lsn: u64, bytes: &[u8]) {
        let start = (lsn - self.base) as usize;
        self.buf[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// The claim is complete.
    pub fn filled(&mut self, start: u64) {
        self.unfilled.remove(&start);
    }

    fn count(&mut self, bytes: u64) {
        self.records += 1;
        self.record_bytes += bytes;
    }

    /// Takes all that is complete, nothing if there is none. `spare` becomes the buffer of what remains.
    pub fn take(&mut self, mut spare: Vec<u8>, salt: u32) -> Result<Batch, Vec<u8>> {
        let end = self.unfilled.first().copied().unwrap_or(self.end());
        if end == self.taken {
            return Err(spare);
        }
        self.mark_first(salt);
        let kept_from = end - end % BLOCK_BYTES;
        spare.clear();
        spare.extend_from_slice(&self.buf[(kept_from - self.base) as usize..]);
        let mut bytes = std::mem::replace(&mut self.buf, spare);
        bytes.truncate((end - self.base) as usize);
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
        let batch = Batch { base: self.base, bytes, end };
        self.base = kept_from;
        self.taken = end;
        Ok(batch)
    }

    /// Lets the first record of the flush say that all before it is hardened: one flush runs at a time, so it
    /// is.
    fn mark_first(&mut self, salt: u32) {
        let start = (self.taken - self.base) as usize;
        let bytes = &mut self.buf[start..start + HEADER_BYTES as usize];
        let mut header =
            Header::decode(bytes, salt, self.taken).expect("a record starts where the last flush ended");
        header.mark = self.taken;
        bytes.copy_from_slice(&header.encode(salt));
    }
}

impl Batch {
    /// Its buffer, for the flush after the next.
    pub fn into_spare(self) -> Vec<u8> {
        if self.bytes.capacity() > KEPT_BYTES_MAX { Vec::new() } else { self.bytes }
    }
}
