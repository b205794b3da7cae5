//! The common header, the checksum and the framing of an event. For the format see the parent module.

use cohort_base::{Reader, ServerId, Write};

use super::{DecodeError, EventType};

/// The first four bytes of a file.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];
/// Length of the common header.
pub const HEADER_LEN: usize = 19;
/// Length of the checksum.
pub const CHECKSUM_LEN: usize = 4;
/// Maximum length of an event: twice the largest packet (1 GiB), for before and after image, and some
/// reserve.
pub const EVENT_LEN_MAX: u32 = 0x8000_0000 + 0x10_0000;

/// Flags of the common header.
pub mod flags {
    /// In a format description: the file is being written, or was when the server died.
    pub const IN_USE: u16 = 0x1;
    /// The statement uses temporary tables of its session.
    pub const THREAD_SPECIFIC: u16 = 0x4;
    /// The statement does not depend on the current database.
    pub const SUPPRESS_USE: u16 = 0x8;
    /// Artificial event, created for a replica; not in the file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// Written by a replica's receiver.
    pub const RELAY_LOG: u16 = 0x40;
    /// Readers that do not know the event may skip it.
    pub const IGNORABLE: u16 = 0x80;
    /// `@@skip_replication` was set.
    pub const SKIP_REPLICATION: u16 = 0x8000;
}

/// Checksum algorithm of events. The number is the one in the format description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Checksum {
    /// `binlog_checksum=NONE`
    None = 0,
    /// `binlog_checksum=CRC32`
    Crc32 = 1,
}

impl Checksum {
    /// Converts the number in a format description.
    pub fn from_u8(number: u8) -> Option<Checksum> {
        match number {
            0 => Some(Checksum::None),
            1 => Some(Checksum::Crc32),
            _ => None,
        }
    }

    /// Returns the bytes that it adds to an event.
    pub fn len(self) -> usize {
        match self {
            Checksum::None => 0,
            Checksum::Crc32 => CHECKSUM_LEN,
        }
    }

    /// Returns whether it adds no bytes.
    pub fn is_empty(self) -> bool {
        self == Checksum::None
    }
}

/// The common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// Start of the statement in seconds since 1970.
    pub timestamp: u32,
    /// Kind of event.
    pub kind: EventType,
    /// The server that first logged the event.
    pub server_id: ServerId,
    /// Length including header and checksum.
    pub event_len: u32,
    /// Position after the event, modulo 2^32; 0 in artificial events.
    pub log_pos: u32,
    /// See [`flags`].
    pub flags: u16,
}

impl EventHeader {
    /// Decodes the first [`HEADER_LEN`] bytes of an event, and checks that the length is possible.
    pub fn decode(bytes: &[u8]) -> Result<EventHeader, DecodeError> {
        let mut r = Reader::new(bytes);
        let header = EventHeader {
            timestamp: r.u32()?,
            kind: EventType(r.u8()?),
            server_id: ServerId(r.u32()?),
            event_len: r.u32()?,
            log_pos: r.u32()?,
            flags: r.u16()?,
        };
        if (header.event_len as usize) < HEADER_LEN || header.event_len > EVENT_LEN_MAX {
            return Err(DecodeError::BadLength(header.event_len));
        }
        Ok(header)
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..4].copy_from_slice(&self.timestamp.to_le_bytes());
        bytes[4] = self.kind.0;
        bytes[5..9].copy_from_slice(&self.server_id.0.to_le_bytes());
        bytes[9..13].copy_from_slice(&self.event_len.to_le_bytes());
        bytes[13..17].copy_from_slice(&self.log_pos.to_le_bytes());
        bytes[17..19].copy_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// Appends a header whose length and position [`finish_event`] fills in later. Returns its start.
pub fn begin_event(
    out: &mut Vec<u8>,
    kind: EventType,
    timestamp: u32,
    server_id: ServerId,
    flags: u16,
) -> usize {
    let start = out.len();
    EventHeader { timestamp, kind, server_id, event_len: 0, log_pos: 0, flags }.encode(out);
    start
}

/// Completes the event at `start`, whose place in the file is `file_offset`: length, end position, checksum.
/// Returns the file offset after the event.
pub fn finish_event(out: &mut Vec<u8>, start: usize, file_offset: u64, checksum: Checksum) -> u64 {
    let len = out.len() - start + checksum.len();
    let len = u32::try_from(len).expect("the transaction cache bounds every event (I6)");
    let end = file_offset + u64::from(len);
    out[start + 9..start + 13].copy_from_slice(&len.to_le_bytes());
    out[start + 13..start + 17].copy_from_slice(&(end as u32).to_le_bytes());
    if checksum == Checksum::Crc32 {
        let crc = crc_of_event(&out[start..]);
        out.put_u32(crc);
    }
    end
}

/// Computes the checksum of header and body.
pub fn crc_of_event(event: &[u8]) -> u32 {
    if event[4] == EventType::FORMAT_DESCRIPTION.0 && event[17] & (flags::IN_USE as u8) != 0 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&event[..17]);
        crc.update(&[event[17] & !(flags::IN_USE as u8)]);
        crc.update(&event[18..]);
        return crc.finalize();
    }
    crc32fast::hash(event)
}

/// Splits a complete event into header and body. Verifies its length and checksum.
pub fn split_event(event: &[u8], checksum: Checksum) -> Result<(EventHeader, &[u8]), DecodeError> {
    let header = EventHeader::decode(event)?;
    let len = header.event_len as usize;
    if len < HEADER_LEN + checksum.len() {
        return Err(DecodeError::BadLength(header.event_len));
    }
    let event = event.get(..len).ok_or(DecodeError::Truncated)?;
    let (covered, stored) = event.split_at(len - checksum.len());
    if let Ok(stored) = stored.try_into().map(u32::from_le_bytes) {
        let computed = crc_of_event(covered);
        if stored != computed {
            return Err(DecodeError::BadChecksum { stored, computed });
        }
    }
    Ok((header, &covered[HEADER_LEN..]))
}
