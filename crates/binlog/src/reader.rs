//! Reads the events of one file, also of the file that is being written.
//!
//! A reader is always between two events. An event that is not complete yet (the file is being written, or
//! the caller's limit is inside the event) reads as the end of the file; a later call continues at the same
//! offset.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_vfs::{OpenMode, SharedFile, SharedFs};

use crate::BinlogError;
use crate::event::{
    Checksum, DecodeError, Event, EventHeader, EventType, FormatDescription, HEADER_LEN, MAGIC, SharedBytes,
    split_event,
};

/// Minimum size of a read.
const READ_BYTES: usize = 256 << 10;

/// An event with its offset.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Offset of the first byte.
    pub offset: u64,
    /// The common header.
    pub header: EventHeader,
    /// Header, body and checksum.
    pub bytes: Arc<[u8]>,
}

impl RawEvent {
    /// Returns the offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Returns the bytes between header and checksum.
    pub fn body(&self, checksum: Checksum) -> Result<SharedBytes, DecodeError> {
        let end = self.bytes.len().checked_sub(checksum.len()).filter(|end| *end >= HEADER_LEN);
        let end = end.ok_or(DecodeError::Truncated)?;
        Ok(SharedBytes::from(Arc::clone(&self.bytes)).part(HEADER_LEN..end))
    }
}

/// An event that the reader passed.
pub(crate) struct Passed {
    /// Offset of the first byte.
    pub offset: u64,
    pub header: EventHeader,
    /// The whole event, if the caller wanted it.
    pub raw: Option<RawEvent>,
}

impl Passed {
    /// Returns the offset after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.header.event_len)
    }
}

/// Sequential reader of the events of a file.
pub struct EventReader {
    file: SharedFile,
    path: PathBuf,
    format: FormatDescription,
    /// Offset of the next event.
    offset: u64,
    limit: u64,
    /// Length of the file when last checked.
    file_len: u64,
    /// Bytes of the file, starting at `buf_at`.
    buf: Vec<u8>,
    buf_at: u64,
}

impl EventReader {
    /// Opens a file and reads its format description. The first event that the reader returns is that format
    /// description.
    pub fn open(fs: &SharedFs, path: &Path) -> Result<EventReader, BinlogError> {
        let file = fs.open(path, OpenMode::Read).map_err(|e| BinlogError::io("open", path, e))?;
        let mut reader = EventReader {
            file,
            path: path.to_owned(),
            format: FormatDescription::new("", 0, Checksum::Crc32),
            offset: 0,
            limit: u64::MAX,
            file_len: 0,
            buf: Vec::new(),
            buf_at: 0,
        };
        if reader.window(MAGIC.len())? != Some(&MAGIC[..]) {
            return Err(reader.corrupt(DecodeError::BadValue("a binary log file starts with fe 'bin'")));
        }
        let first = MAGIC.len() as u64;
        reader.seek(first);
        let raw = reader.next_event()?.ok_or_else(|| reader.corrupt(DecodeError::Truncated))?;
        match reader.decode(&raw) {
            Ok(Event::FormatDescription(format)) => reader.format = format,
            Ok(_) => {
                reader.seek(first);
                return Err(reader.corrupt(DecodeError::BadValue("the first event is no format description")));
            }
            Err(what) => return Err(BinlogError::corrupt(path, first, what)),
        }
        reader.seek(first);
        Ok(reader)
    }

    /// Returns the format description, which says how events are framed.
    pub fn format(&self) -> &FormatDescription {
        &self.format
    }

    /// Returns the offset of the next event.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Continues at this offset, which must be the start of an event; the first event is at 4.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Treats bytes from this offset on as not written yet (the end of the durable bytes). Without a limit
    /// the end of the file counts.
    pub fn set_limit(&mut self, offset: u64) {
        self.limit = offset;
    }

    /// Reads the next event and verifies its checksum. Returns `None` at the end, or if the event is not
    /// complete yet: a later call continues at the same offset.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>, BinlogError> {
        let offset = self.offset;
        let Some(head) = self.window(HEADER_LEN)? else { return Ok(None) };
        let header = EventHeader::decode(head).map_err(|what| self.corrupt(what))?;
        let checksum = self.checksum_of(header.kind);
        let Some(bytes) = self.event_bytes(header.event_len as usize)? else { return Ok(None) };
        split_event(&bytes, checksum).map_err(|what| self.corrupt(what))?;
        self.offset += bytes.len() as u64;
        Ok(Some(RawEvent { offset, header, bytes }))
    }

    /// Like [`EventReader::next_event`], for a caller that wants few of the events: the others are verified
    /// inside the buffer and not copied.
    pub(crate) fn pass_event(
        &mut self,
        is_wanted: impl Fn(EventType) -> bool,
    ) -> Result<Option<Passed>, BinlogError> {
        let offset = self.offset;
        let Some(head) = self.window(HEADER_LEN)? else { return Ok(None) };
        let header = EventHeader::decode(head).map_err(|what| self.corrupt(what))?;
        let len = header.event_len as usize;
        if is_wanted(header.kind) || len >= READ_BYTES {
            let raw = self.next_event()?;
            return Ok(raw.map(|raw| Passed { offset, header, raw: Some(raw) }));
        }
        let checksum = self.checksum_of(header.kind);
        let Some(bytes) = self.window(len)? else { return Ok(None) };
        let verified = split_event(bytes, checksum).map(drop);
        verified.map_err(|what| self.corrupt(what))?;
        self.offset += len as u64;
        Ok(Some(Passed { offset, header, raw: None }))
    }

    /// Returns the checksum algorithm of an event. The format description defines it for the other events,
    /// and always has a checksum itself.
    fn checksum_of(&self, kind: EventType) -> Checksum {
        match kind {
            EventType::FORMAT_DESCRIPTION => Checksum::Crc32,
            _ => self.format.checksum,
        }
    }

    /// Decodes an event of this file.
    pub fn decode(&self, raw: &RawEvent) -> Result<Event, DecodeError> {
        Event::decode_shared(raw.header.kind, &raw.body(self.checksum_of(raw.header.kind))?)
    }

    /// Returns the bytes of the event at the current offset, `None` if it is not complete. A large event is
    /// read directly, not through the buffer.
    fn event_bytes(&mut self, len: usize) -> Result<Option<Arc<[u8]>>, BinlogError> {
        let end = self.offset.saturating_add(len as u64);
        let in_buf = end <= self.buf_at + self.buf.len() as u64;
        if in_buf || len < READ_BYTES {
            return Ok(self.window(len)?.map(Arc::from));
        }
        if end > self.limit || end > self.file_len && end > self.file_len()? {
            return Ok(None);
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        let room = Arc::get_mut(&mut bytes).expect("no other thread has it yet");
        let got = self.file.read_at(room, self.offset);
        let got = got.map_err(|e| BinlogError::io("read", &self.path, e))?;
        Ok((got == len).then_some(bytes))
    }

    /// Returns the current length of the file.
    pub fn file_len(&mut self) -> Result<u64, BinlogError> {
        self.file_len = self.file.len().map_err(|e| BinlogError::io("read", &self.path, e))?;
        Ok(self.file_len)
    }

    /// Returns `len` bytes from the current offset, `None` if they are not all available.
    fn window(&mut self, len: usize) -> Result<Option<&[u8]>, BinlogError> {
        let end = self.offset.saturating_add(len as u64);
        let in_buf = self.offset >= self.buf_at && end <= self.buf_at + self.buf.len() as u64;
        if end > self.limit {
            return Ok(None);
        }
        if !in_buf {
            // Allocate only for bytes that exist, even if a damaged header says otherwise.
            if end > self.file_len && end > self.file_len()? {
                return Ok(None);
            }
            let until = self.file_len.min(self.limit).min(self.offset + len.max(READ_BYTES) as u64);
            self.buf.resize((until - self.offset) as usize, 0);
            let got = self.file.read_at(&mut self.buf, self.offset);
            let got = got.map_err(|e| BinlogError::io("read", &self.path, e))?;
            self.buf.truncate(got);
            self.buf_at = self.offset;
            if got < len {
                return Ok(None);
            }
        }
        let from = (self.offset - self.buf_at) as usize;
        Ok(Some(&self.buf[from..from + len]))
    }

    fn corrupt(&self, what: DecodeError) -> BinlogError {
        BinlogError::corrupt(&self.path, self.offset, what)
    }
}
