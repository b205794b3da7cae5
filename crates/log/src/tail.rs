//! The end of the log in memory: appended records that are not durable yet.
//!
//! Records are copied to the end of one buffer that starts at a block border. A flush takes the buffer and
//! pads it to whole blocks. It leaves a second buffer with the last, partly filled block, so that the next
//! flush rewrites this block with the same prefix.

use crate::record::{HEADER_BYTES, Header, padding};
use crate::segment::BLOCK_BYTES;

/// Maximum capacity of a buffer that is kept for a later flush.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The buffer and its counters, protected by the log's tail lock.
pub(crate) struct Tail {
    /// LSN of the first byte of `buf`; a block border.
    base: u64,
    buf: Vec<u8>,
    /// LSN up to which flushes have taken the bytes.
    taken: u64,
    pub records: u64,
    pub record_bytes: u64,
}

/// The whole blocks that a flush writes.
pub(crate) struct Batch {
    pub base: u64,
    pub bytes: Vec<u8>,
    /// End of the durable part once the batch is written and synced.
    pub end: u64,
}

impl Tail {
    /// Makes a tail that ends at `end`; `block` has the contents of the last block up to there.
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

    /// Takes everything appended since the last call, which must not be empty. `spare` becomes the buffer for
    /// the remainder.
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

    /// Sets the mark of the flush's first record: everything before it is durable, because only one flush
    /// runs at a time.
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
    /// Returns its buffer, for the flush after the next.
    pub fn into_spare(self) -> Vec<u8> {
        if self.bytes.capacity() > KEPT_BYTES_MAX { Vec::new() } else { self.bytes }
    }
}
