//! Reading records in order, and distinguishing a torn tail from damage.
//!
//! A record is accepted if header and payload are valid and its generation is the one that wrote this part of
//! the log. The first position without such a record is the end of the log, possibly followed by a torn tail,
//! or damage. It is damage if
//!
//! - it is below an LSN that the control file knows to be durable, or
//! - a whole header after it, of the generation that wrote that part, has a mark beyond it: then a sync that
//!   covered this position had returned.
//!
//! The flusher sets the mark of the first record of every flush to the end of the durable part, so all
//! flushes before a crash except the last are covered. Damage within the last flush cannot be distinguished
//! from a torn write.

use std::sync::Arc;

use cohort_base::Lsn;

use crate::record::{ALIGN_BYTES, HEADER_BYTES, Header, LSN_AT};
use crate::segment::RESTORE;
use crate::segments::Segments;
use crate::{LogError, Record};

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

/// Generations that wrote the parts of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generations {
    /// The newest generation.
    pub current: u32,
    /// Everything from this LSN on was written by the newest generation.
    pub start: u64,
}

impl Generations {
    fn admit(self, header: &Header) -> bool {
        match header.lsn >= self.start {
            true => header.generation == self.current,
            false => header.generation < self.current,
        }
    }
}

/// Contents at the scanner's position.
enum Found {
    Record(Header),
    /// The limit was reached.
    End,
    /// No valid record, for this reason.
    Bad(&'static str),
}

/// A cursor over the stream.
pub(crate) struct Scanner {
    segments: Arc<Segments>,
    generations: Generations,
    /// Start of the next record.
    position: u64,
    /// Header of the previous record.
    last: Option<Header>,
    /// Stream bytes from `buf_start` on; bytes before `position` are already used.
    buf: Vec<u8>,
    buf_start: u64,
}

impl Scanner {
    pub fn new(segments: Arc<Segments>, generations: Generations, position: u64) -> Scanner {
        Scanner { segments, generations, position, last: None, buf: Vec::new(), buf_start: position }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves past the next record that ends at or below `limit`; [`Scanner::last`] then returns it. If there
    /// is none, the inner error is the reason, or `None` if the limit was reached.
    pub fn advance(&mut self, limit: u64) -> Result<Result<(), Option<&'static str>>, LogError> {
        match self.find(limit)? {
            Found::Record(header) => {
                self.position += header.record_bytes();
                self.last = Some(header);
                Ok(Ok(()))
            }
            Found::End => Ok(Err(None)),
            Found::Bad(what) => Ok(Err(Some(what))),
        }
    }

    /// Returns the record that [`Scanner::advance`] has moved past.
    pub fn last(&self) -> Record<'_> {
        let header = self.last.as_ref().expect("advance found one");
        let start = (header.lsn + HEADER_BYTES - self.buf_start) as usize;
        let payload = &self.buf[start..start + header.payload_bytes as usize];
        Record { lsn: Lsn(header.lsn), end: Lsn(self.position), kind: header.kind, payload }
    }

    /// Returns all bytes of that record, with header and padding.
    pub fn last_bytes(&self) -> &[u8] {
        let header = self.last.as_ref().expect("advance found one");
        &self.buf[(header.lsn - self.buf_start) as usize..(self.position - self.buf_start) as usize]
    }

    fn find(&mut self, limit: u64) -> Result<Found, LogError> {
        let salt = self.segments.geometry.salt;
        let position = self.position;
        if position >= limit {
            return Ok(Found::End);
        }
        let Some(bytes) = self.peek(HEADER_BYTES, limit)? else {
            return Ok(Found::Bad("the log ends inside a record header"));
        };
        let Some(header) = Header::decode(bytes, salt, position) else {
            return Ok(Found::Bad("there is no valid record header"));
        };
        if !self.generations.admit(&header) {
            return Ok(Found::Bad("the record is of another generation"));
        }
        let Some(bytes) = self.peek(header.record_bytes(), limit)? else {
            return Ok(Found::Bad("the log ends inside a record"));
        };
        match header.matches(salt, &bytes[HEADER_BYTES as usize..]) {
            true => Ok(Found::Record(header)),
            false => Ok(Found::Bad("the checksum of the record is wrong")),
        }
    }

    /// Returns the next `n` bytes. Returns `None` if the limit comes before.
    fn peek(&mut self, n: u64, limit: u64) -> Result<Option<&[u8]>, LogError> {
        if n > limit - self.position {
            return Ok(None);
        }
        let (start, n) = ((self.position - self.buf_start) as usize, n as usize);
        if self.buf.len() - start >= n {
            return Ok(Some(&self.buf[start..start + n]));
        }
        self.buf.drain(..start);
        self.buf_start = self.position;
        let have = self.buf.len();
        let want = (limit - self.position).min(n.max(CHUNK_BYTES) as u64) as usize;
        self.buf.resize(want, 0);
        let got = self.segments.read_at(&mut self.buf[have..], self.buf_start + have as u64)?;
        self.buf.truncate(have + got);
        if self.buf.capacity() > 8 * CHUNK_BYTES && want <= CHUNK_BYTES {
            self.buf.shrink_to(CHUNK_BYTES);
        }
        Ok(self.buf.get(..n))
    }

    /// Classifies the position where [`Scanner::advance`] found no record: returns `Ok` if it is the end of
    /// the log, an error if it is damaged.
    pub fn check_end(&self, durable: u64, what: Option<&'static str>) -> Result<(), LogError> {
        let place = self.position;
        if place < durable || (what.is_some() && self.durable_later(place)?) {
            let what = what.unwrap_or("records are missing");
            let (file, offset) = self.segments.place_of(place);
            return Err(LogError::Corrupt { file, offset, what, cure: RESTORE });
        }
        Ok(())
    }

    /// Returns whether a header after `place`, of an admitted generation, proves that `place` was durable.
    fn durable_later(&self, place: u64) -> Result<bool, LogError> {
        let salt = self.segments.geometry.salt;
        let mut buf = vec![0; CHUNK_BYTES];
        let mut start = place + ALIGN_BYTES;
        loop {
            let got = self.segments.read_at(&mut buf, start)?;
            let Some(last) = got.checked_sub(HEADER_BYTES as usize) else { return Ok(false) };
            // A header contains its own LSN. This cheapest test is applied first to all positions, which are
            // mostly zeros.
            let words = buf[LSN_AT..got].chunks_exact(ALIGN_BYTES as usize);
            let places = words.zip((start..).step_by(ALIGN_BYTES as usize));
            let candidates = places.filter(|(word, place)| **word == place.to_le_bytes());
            for at in candidates.map(|(_, place)| (place - start) as usize).filter(|at| *at <= last) {
                let bytes = &buf[at..at + HEADER_BYTES as usize];
                let header = Header::decode(bytes, salt, start + at as u64);
                if header.is_some_and(|h| h.mark > place && self.generations.admit(&h)) {
                    return Ok(true);
                }
            }
            if got < buf.len() {
                return Ok(false);
            }
            start += (last as u64 / ALIGN_BYTES + 1) * ALIGN_BYTES;
        }
    }
}
