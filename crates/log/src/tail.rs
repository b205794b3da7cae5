//! The end of the log in memory: what was appended and is not hardened yet.
//!
//! Records are copied to the end of one buffer that starts at a block border. A flush takes the buffer, pads
//! it to whole blocks, and leaves a second buffer with the last, partly filled block, so that the next flush
//! rewrites it with the same prefix.

use crate::record::{HEADER_BYTES, Header, padding};
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
        Tail { base, buf: block, taken: end, records: 0, record_bytes: 0 }
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

    fn count(&mut self, bytes: u64) {
        self.records += 1;
        self.record_bytes += bytes;
    }

    /// Takes all that was appended since the last call, which must be something. `spare` becomes the buffer
    /// of what remains.
    pub fn take(&mut self, mut spare: Vec<u8>, salt: u32) -> Batch {
        let end = self.end();
        assert!(end > self.taken, "a flush that finds nothing new takes nothing");
        self.mark_first(salt);
        let kept_from = end - end % BLOCK_BYTES;
        spare.clear();
        spare.extend_from_slice(&self.buf[(kept_from - self.base) as usize..]);
        let mut bytes = std::mem::replace(&mut self.buf, spare);
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
        let batch = Batch { base: self.base, bytes, end };
        self.base = kept_from;
        self.taken = end;
        batch
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
