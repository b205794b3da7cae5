//! Runs: writes of one index in ascending key order, stored contiguously. A statement that writes a whole
//! table produces such writes.
//!
//! ```text
//! record  u32 length of full key | u32 length of value, or u32::MAX for a deletion | full key | value
//! ```
//!
//! Records are stored in chunks that never move. A million records therefore use little more memory than
//! their bytes, and each chunk is freed as soon as its writes were consumed.

/// Capacity of a chunk. Only a record larger than this makes a chunk larger.
const CHUNK_BYTES: usize = 64 << 10;
const HEADER_BYTES: usize = 8;
const DELETED: u32 = u32::MAX;

/// One write: a full key, and its value or `None` if the key is deleted.
pub(crate) type Write<'r> = (&'r [u8], Option<&'r [u8]>);

/// Position of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    chunk: usize,
    record: usize,
}

/// Contiguous records. Never empty, except during construction.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl Chunk {
    fn get(&self, record: usize) -> Write<'_> {
        let bytes = &self.bytes[self.starts[record] as usize..];
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let (key_len, value_len) = (u32_at(0) as usize, u32_at(4));
        let (key, rest) = bytes[HEADER_BYTES..].split_at(key_len);
        (key, (value_len != DELETED).then(|| &rest[..value_len as usize]))
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes.len() + bytes <= self.bytes.capacity()
    }

    /// Returns its writes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Write<'_>> {
        (0..self.starts.len()).map(|record| self.get(record))
    }
}

/// Writes in ascending key order.
#[derive(Debug, Default)]
pub(crate) struct Run {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Run {
    /// Returns the number of writes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the key is greater than all others.
    pub(crate) fn is_behind(&self, key: &[u8]) -> bool {
        self.last().is_none_or(|(last, _)| last < key)
    }

    /// Returns the write with the largest key.
    pub(crate) fn last(&self) -> Option<Write<'_>> {
        self.chunks.last().map(|chunk| chunk.get(chunk.starts.len() - 1))
    }

    /// Appends a write whose key is greater than all others.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        debug_assert!(self.is_behind(key));
        let bytes = HEADER_BYTES + key.len() + value.map_or(0, <[u8]>::len);
        if self.chunks.last().is_none_or(|chunk| !chunk.has_room(bytes)) {
            if let Some(full) = self.chunks.last_mut() {
                full.starts.shrink_to_fit();
            }
            let bytes = Vec::with_capacity(CHUNK_BYTES.max(bytes));
            self.chunks.push(Chunk { bytes, starts: Vec::new() });
        }
        let chunk = self.chunks.last_mut().expect("made above");
        chunk.starts.push(chunk.bytes.len() as u32);
        chunk.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        chunk.bytes.extend_from_slice(&value.map_or(DELETED, |value| value.len() as u32).to_le_bytes());
        chunk.bytes.extend_from_slice(key);
        chunk.bytes.extend_from_slice(value.unwrap_or(&[]));
        self.len += 1;
    }

    /// Removes the last write. Returns the bytes of its key and value.
    pub(crate) fn pop(&mut self) -> usize {
        let chunk = self.chunks.last_mut().expect("a write was pushed");
        let start = chunk.starts.pop().expect("no chunk is empty") as usize;
        let bytes = chunk.bytes.len() - start - HEADER_BYTES;
        chunk.bytes.truncate(start);
        if chunk.starts.is_empty() {
            self.chunks.pop();
        }
        self.len -= 1;
        bytes
    }

    /// Returns the position of the first write whose key is not less than `key`.
    pub(crate) fn seek(&self, key: &[u8]) -> Place {
        let next = self.chunks.partition_point(|chunk| chunk.get(0).0 <= key);
        let Some(chunk) = next.checked_sub(1) else { return Place::default() };
        let of_chunk = &self.chunks[chunk];
        let (mut low, mut high) = (0, of_chunk.starts.len());
        while low < high {
            let middle = (low + high) / 2;
            match of_chunk.get(middle).0 < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        match low == of_chunk.starts.len() {
            true => Place { chunk: next, record: 0 },
            false => Place { chunk, record: low },
        }
    }

    /// Returns the write of `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let (found, value) = self.get(self.seek(key))?;
        (found == key).then_some(value)
    }

    fn get(&self, place: Place) -> Option<Write<'_>> {
        self.chunks.get(place.chunk).map(|chunk| chunk.get(place.record))
    }

    fn next(&self, place: Place) -> Place {
        match place.record + 1 < self.chunks[place.chunk].starts.len() {
            true => Place { record: place.record + 1, ..place },
            false => Place { chunk: place.chunk + 1, record: 0 },
        }
    }

    fn before(&self, place: Place) -> Place {
        match place.record.checked_sub(1) {
            Some(record) => Place { record, ..place },
            None => {
                let chunk = place.chunk - 1;
                Place { chunk, record: self.chunks[chunk].starts.len() - 1 }
            }
        }
    }

    /// Returns the writes from `start` (inclusive) to `end` (exclusive).
    pub(crate) fn range(&self, start: &[u8], end: &[u8]) -> Range<'_> {
        let (from, to) = (self.seek(start), self.seek(end));
        Range { run: self, from, to: to.max(from) }
    }

    /// Returns all writes.
    pub(crate) fn all(&self) -> Range<'_> {
        Range { run: self, from: Place::default(), to: Place { chunk: self.chunks.len(), record: 0 } }
    }

    /// Returns the chunks in order, so that the caller can free them one by one.
    pub(crate) fn into_chunks(self) -> impl Iterator<Item = Chunk> {
        self.chunks.into_iter()
    }
}

/// A double-ended range of a run's writes.
pub(crate) struct Range<'r> {
    run: &'r Run,
    from: Place,
    to: Place,
}

impl<'r> Iterator for Range<'r> {
    type Item = Write<'r>;

    fn next(&mut self) -> Option<Write<'r>> {
        if self.from >= self.to {
            return None;
        }
        let at = self.from;
        self.from = self.run.next(at);
        self.run.get(at)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from >= self.to {
            return None;
        }
        self.to = self.run.before(self.to);
        self.run.get(self.to)
    }
}
