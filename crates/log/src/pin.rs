//! Copying a log while it is appended to, for backups.
//!
//! A pin ([`LogPin`]) keeps the segments from where recovery starts; checkpoints release only what no pin
//! needs. The holder copies record by record, and with each call of [`LogPin::copy`] the pin moves to the end
//! of what was copied. So a pin holds little more of the log than was written since that call. At the end
//! [`LogPin::finish`] adds what is missing in the files of the copy: heads of segments, the last block of
//! each, and the control file, which names the copy's end. Blocks before and after the records stay holes,
//! which the first opening of the copy fills.
//!
//! The control file of the copy says that the log was closed at this end. So an opening of the copy reads
//! exactly the records up to it, and reports any that is missing or damaged. It also says that this is a
//! copy: its first opening begins a new timeline.

use std::path::PathBuf;
use std::sync::Arc;

use cohort_base::Lsn;

use crate::control::{self, State};
use crate::reader::LogReader;
use crate::segment::{self, BLOCK_BYTES};
use crate::shared::Shared;
use crate::{LogError, Record};

/// Bytes of records that are written at a time.
const WRITE_BYTES: usize = 1 << 20;
/// Maximum bytes before the begin of a copy that it has, too: a restore compares them with the archive, so
/// that the log of another server is not appended even if nothing was logged during the copy.
const EARLIER_BYTES_MAX: u64 = 64 << 10;

/// Bytes for a file of a copy.
pub struct LogFile<'b> {
    /// Name in the directory of the log.
    pub name: PathBuf,
    pub offset: u64,
    pub bytes: &'b [u8],
}

/// Receiver of a copy: of each record, and of the bytes of the files.
pub trait LogCopy<E: From<LogError>> {
    /// Receives a record before its bytes.
    fn record(&mut self, record: &Record<'_>) -> Result<(), E>;
    /// Receives bytes of a file, each byte once.
    fn write(&mut self, file: &LogFile<'_>) -> Result<(), E>;
}

/// A pin of a log, with the position up to which it was copied.
pub struct LogPin {
    shared: Arc<Shared>,
    number: u64,
    from: u64,
    reader: LogReader,
    /// Bytes before the begin, in its segment.
    earlier: Vec<u8>,
}

impl LogPin {
    pub(crate) fn new(shared: Arc<Shared>) -> LogPin {
        let (number, from) = {
            let mut pins = shared.space.pins.lock();
            let from = shared.space.retained.load(std::sync::atomic::Ordering::Acquire);
            pins.next += 1;
            let number = pins.next;
            pins.from.insert(number, from);
            (number, from)
        };
        let reader = LogReader::new(Arc::clone(&shared), Lsn(from)).expect("pinned");
        let start = shared.segments.geometry.start_of(shared.segments.geometry.segment_of(from));
        let mut earlier = vec![0; (from - start).min(EARLIER_BYTES_MAX) as usize];
        let begin = from - earlier.len() as u64;
        // Without them there is less to compare.
        let got = shared.segments.read_at(&mut earlier, begin).unwrap_or(0);
        if got < earlier.len() {
            earlier.clear();
        }
        LogPin { shared, number, from, reader, earlier }
    }

    /// Returns where the copy begins.
    pub fn from(&self) -> Lsn {
        Lsn(self.from)
    }

    /// Returns the end of what was copied.
    pub fn position(&self) -> Lsn {
        self.reader.position()
    }

    /// Returns the end of the durable part of the log.
    pub fn durable_end(&self) -> Lsn {
        Lsn(self.shared.durable.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Copies durable records up to `until`, the end of a record, but not many more than `bytes_max` bytes.
    /// Releases the segments before. Returns whether it has reached `until` or the end of the durable part.
    pub fn copy<E: From<LogError>>(
        &mut self,
        until: Lsn,
        bytes_max: u64,
        to: &mut impl LogCopy<E>,
    ) -> Result<bool, E> {
        let begin = self.position().0;
        let mut bytes: Vec<u8> = Vec::new();
        let mut written = begin;
        let is_done = loop {
            if self.position() >= until {
                break true;
            }
            if self.position().0 - begin >= bytes_max {
                break false;
            }
            match self.reader.next()? {
                None => break true,
                Some(record) => to.record(&record)?,
            }
            bytes.extend_from_slice(self.reader.last_bytes());
            if bytes.len() >= WRITE_BYTES {
                written = self.write(written, &bytes, to)?;
                bytes.clear();
            }
        };
        self.write(written, &bytes, to)?;
        let position = self.position().0;
        self.shared.space.pins.lock().from.insert(self.number, position);
        self.shared.release()?;
        Ok(is_done)
    }

    /// Writes stream bytes at an LSN into the segments' files. Returns the LSN after them.
    fn write<E: From<LogError>>(&self, lsn: u64, bytes: &[u8], to: &mut impl LogCopy<E>) -> Result<u64, E> {
        let geometry = self.shared.segments.geometry;
        let (mut at, mut rest) = (lsn, bytes);
        while !rest.is_empty() {
            let segment = geometry.segment_of(at);
            let here = (geometry.start_of(segment + 1) - at).min(rest.len() as u64) as usize;
            let (bytes, after) = rest.split_at(here);
            to.write(&LogFile { name: segment::name_of(segment), offset: geometry.offset_of(at), bytes })?;
            (at, rest) = (at + here as u64, after);
        }
        Ok(at)
    }

    /// Completes the files of the copy, whose log ends where it was copied to and has this payload in its
    /// control file.
    pub fn finish<E: From<LogError>>(&self, payload: Vec<u8>, to: &mut impl LogCopy<E>) -> Result<(), E> {
        let (geometry, cut) = (self.shared.segments.geometry, self.position().0);
        let (from, block) = (self.from, BLOCK_BYTES);
        // A log that ends at the border of a segment does not need the next one.
        let first = geometry.segment_of(from);
        let segments = first..geometry.segment_of(cut) + u64::from(!cut.is_multiple_of(geometry.capacity()));
        for segment in segments {
            let name = segment::name_of(segment);
            let head = segment::header(geometry, segment);
            to.write(&LogFile { name: name.clone(), offset: 0, bytes: &head })?;
            let (start, end) = (geometry.start_of(segment), geometry.start_of(segment + 1));
            if segment == first {
                self.write(from - self.earlier.len() as u64, &self.earlier, to)?;
            }
            // The file gets its length.
            let last = cut.clamp(start, end).max(end - block);
            let zeros = &[0; BLOCK_BYTES as usize][..(end - last) as usize];
            to.write(&LogFile { name, offset: block + last - start, bytes: zeros })?;
        }
        let state = State {
            sequence: 0,
            segment_bytes: geometry.segment_bytes,
            salt: geometry.salt,
            generation: self.shared.generations.current,
            generation_start: self.shared.generations.start,
            from,
            durable: cut,
            clean: true,
            payload,
            is_copy: true,
            archived: None,
            timelines: self.shared.control.lock().state.timelines.clone(),
        };
        to.write(&LogFile { name: control::NAME.into(), offset: 0, bytes: &state.file() })
    }
}

impl Drop for LogPin {
    fn drop(&mut self) {
        self.shared.space.pins.lock().from.remove(&self.number);
        // After an error the log is poisoned, and the next use of it says so.
        let _ = self.shared.release();
    }
}
