//! Reads the events of one file.
use std::path::Path;

use cohort_vfs::SharedFs;

use crate::BinlogError;
use crate::event::{DecodeError, Event, EventHeader, FormatDescription};

/// An event with its place.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Offset of its first byte.
    pub offset: u64,
    /// The common header.
    pub header: EventHeader,
    /// Header, body and checksum.
    pub bytes: Vec<u8>,
}

impl RawEvent {
    /// Behind the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Reads a file from front to back.
pub struct EventReader {}

impl EventReader {
    /// Opens a file and reads its format description.
    pub fn open(_fs: &SharedFs, _path: &Path) -> Result<EventReader, BinlogError> {
        todo!()
    }

    /// How events are framed.
    pub fn format(&self) -> &FormatDescription {
        todo!()
    }

    /// The next event starts here. 4 is the first one.
    pub fn seek(&mut self, _offset: u64) {
        todo!()
    }

    /// Bytes from here on are not there yet (end of what is hardened). Without a limit it is the end of the file.
    pub fn set_limit(&mut self, _offset: u64) {
        todo!()
    }

    /// The next event with its checksum verified; `None` at the end or when the rest is not there yet: then asking
    /// again later goes on at the same place.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>, BinlogError> {
        todo!()
    }

    /// Decodes an event of this file.
    pub fn decode(&self, _raw: &RawEvent) -> Result<Event, DecodeError> {
        todo!()
    }
}
