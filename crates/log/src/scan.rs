//! Reading records in order, and telling a torn tail from damage.
//!
//! A record is believed when header and payload are right and its generation is the one that wrote this part
//! of the log. The first place without such a record is the end of the log or damage. It is the end, with a
//! torn tail perhaps behind it, unless
//!
//! - it lies below an LSN that the control file knows to be hardened, or
//! - a whole header behind it, of the same generation, carries a mark beyond it: then a sync had returned
//!   that covered this place.
//!
//! The flusher sets the mark of the first record of every flush to the hardened LSN, so all but the last
//! flush before a crash is covered. Damage within that last flush cannot be told from a torn write by
//! anybody.

use std::sync::Arc;

use cohort_base::Lsn;

use crate::record::{ALIGN_BYTES, HEADER_BYTES, Header, LSN_AT};
use crate::segment::RESTORE;
use crate::segments::Segments;
use crate::{LogError, Record};

/// Read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Which generation wrote what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generations {
    /// The newest.
    pub current: u32,
    /// Everything from this LSN on was written by it.
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

/// What stands at the scanner's position.
enum Found {
    Record(Header),
    /// Bytes end before a record does.
    End,
    /// Something else, for this reason.
    Bad(&'static str),
}

/// A cursor over the stream.
pub(crate) struct Scanner {
    segments: Arc<Segments>,
    generations: Generations,
    /// Start of the next record.
    position: u64,
    /// The record before it.
    last: Option<Header>,
    /// Stream bytes from `buf_start` on; bytes before `position` are spent.
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

    /// Passes over the next record that ends at or below `limit`; [`Scanner::last`] then has it. If there is
    /// none, why; no reason when the bytes up to the limit are used up.
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

    /// The record that [`Scanner::advance`] has passed.
    pub fn last(&self) -> Record<'_> {
        let header = self.last.as_ref().expect("advance found one");
        let start = (header.lsn + HEADER_BYTES - self.buf_start) as usize;
        let payload = &self.buf[start..start + header.payload_bytes as usize];
        Record { lsn: Lsn(header.lsn), end: Lsn(self.position), kind: header.kind, payload }
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

    /// The next `n` bytes, none if the limit comes before.
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

    /// Decides about the place where [`Scanner::advance`] found no record: `Ok` if it is the end of the log.
    pub fn judge(&self, hardened: u64, what: Option<&'static str>) -> Result<(), LogError> {
        let place = self.position;
        if place < hardened || (what.is_some() && self.hardened_later(place)?) {
            let what = what.unwrap_or("records are missing");
            let (file, offset) = self.segments.place_of(place);
            return Err(LogError::Corrupt { file, offset, what, cure: RESTORE });
        }
        Ok(())
    }

    /// Whether a header of this generation behind `place` says that `place` was hardened.
    fn hardened_later(&self, place: u64) -> Result<bool, LogError> {
        let salt = self.segments.geometry.salt;
        let mut buf = vec![0; CHUNK_BYTES];
        let mut start = place + ALIGN_BYTES;
        loop {
            let got = self.segments.read_at(&mut buf, start)?;
            let Some(last) = got.checked_sub(HEADER_BYTES as usize) else { return Ok(false) };
            // A header holds its own LSN: the cheapest test goes over all places, mostly zeros, first.
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
