//! The format of a record.
//!
//! ```text
//!  0  u32  CRC-32C of bytes 4..32, seeded with the log's salt
//!  4  u32  payload length
//!  8  u64  LSN of the record
//! 16  u32  CRC-32C of payload and padding, seeded with the log's salt
//! 20  u32  low 24 bits: generation; high 8 bits: kind
//! 24  u64  mark: everything below this LSN was durable when the record was written
//! 32       payload, then zeros up to a multiple of 8
//! ```
//!
//! The header has its own checksum. So a length is used only if it is right, and the mark of a record whose
//! payload is torn still proves what was durable before it. Stale contents of a recycled segment or a copied
//! file are not mistaken for a record, because salt (one per log) or LSN differ. Stale records that a crash
//! left after the log's end are recognized by their generation (one per start of the server).

use cohort_base::{Lsn, Reader};

/// Size of the header.
pub(crate) const HEADER_BYTES: u64 = 32;
/// Offset of the LSN in the header.
pub(crate) const LSN_AT: usize = 8;
/// Alignment of records.
pub(crate) const ALIGN_BYTES: u64 = 8;
/// Upper limit of generations, exclusive.
pub(crate) const GENERATION_END: u32 = 1 << 24;

/// Kind of a record's payload. The users of the log define the numbers, which are stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKind(pub u8);

/// A record read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// LSN where it starts.
    pub lsn: Lsn,
    /// LSN where the next record starts.
    pub end: Lsn,
    /// Kind of the payload.
    pub kind: RecordKind,
    /// The whole payload.
    pub payload: &'a [u8],
}

/// Returns the size of a record in the log: header, payload, padding.
pub(crate) fn record_bytes(payload_bytes: u64) -> u64 {
    HEADER_BYTES + payload_bytes.next_multiple_of(ALIGN_BYTES)
}

/// Returns the zeros after a payload of this size.
pub(crate) fn padding(payload_bytes: u64) -> &'static [u8] {
    const ZEROS: [u8; ALIGN_BYTES as usize] = [0; ALIGN_BYTES as usize];
    &ZEROS[..(payload_bytes.next_multiple_of(ALIGN_BYTES) - payload_bytes) as usize]
}

/// Returns the checksum of a payload given in parts, with its padding.
pub(crate) fn payload_crc(salt: u32, parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().map(|p| p.len() as u64).sum();
    let crc = parts.iter().fold(salt, |crc, part| crc32c::crc32c_append(crc, part));
    crc32c::crc32c_append(crc, padding(bytes))
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub payload_bytes: u32,
    pub lsn: u64,
    pub payload_crc: u32,
    pub generation: u32,
    pub kind: RecordKind,
    pub mark: u64,
}

impl Header {
    pub fn encode(&self, salt: u32) -> [u8; HEADER_BYTES as usize] {
        debug_assert!(self.generation < GENERATION_END);
        let mut out = [0; HEADER_BYTES as usize];
        out[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        out[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        out[16..20].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[20..24].copy_from_slice(&(self.generation | u32::from(self.kind.0) << 24).to_le_bytes());
        out[24..32].copy_from_slice(&self.mark.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, &out[4..]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes a header. Returns `None` unless `bytes` starts with a header that was written at this LSN of
    /// this log.
    pub fn decode(bytes: &[u8], salt: u32, lsn: u64) -> Option<Header> {
        let mut r = Reader::new(bytes.get(..HEADER_BYTES as usize)?);
        let crc = r.u32().ok()?;
        let payload_bytes = r.u32().ok()?;
        // Compared first, because it is the cheapest test and scans for records after a torn tail depend on
        // its speed.
        if r.u64().ok()? != lsn {
            return None;
        }
        let payload_crc = r.u32().ok()?;
        let generation_kind = r.u32().ok()?;
        let mark = r.u64().ok()?;
        (crc32c::crc32c_append(salt, &bytes[4..HEADER_BYTES as usize]) == crc).then_some(Header {
            payload_bytes,
            lsn,
            payload_crc,
            generation: generation_kind & (GENERATION_END - 1),
            kind: RecordKind((generation_kind >> 24) as u8),
            mark,
        })
    }

    /// Returns the size of the whole record.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(u64::from(self.payload_bytes))
    }

    /// Returns whether `body` (payload and padding) matches the header.
    pub fn matches(&self, salt: u32, body: &[u8]) -> bool {
        body.len() as u64 == self.record_bytes() - HEADER_BYTES
            && crc32c::crc32c_append(salt, body) == self.payload_crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            payload_bytes: 5,
            lsn: 4096,
            payload_crc: payload_crc(7, &[b"he", b"llo"]),
            generation: 3,
            kind: RecordKind(200),
            mark: 88,
        }
    }

    #[test]
    fn a_record_is_these_bytes() {
        let hex: String = header().encode(7).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "b1968f5e050000000010000000000000b7e85a6a030000c85800000000000000");
        assert_eq!(record_bytes(5), 40);
    }

    #[test]
    fn only_the_right_place_and_log_decode() {
        let bytes = header().encode(7);
        assert_eq!(Header::decode(&bytes, 7, 4096), Some(header()));
        assert_eq!(Header::decode(&bytes, 8, 4096), None, "another log");
        assert_eq!(Header::decode(&bytes, 7, 4104), None, "another place");
        assert_eq!(Header::decode(&bytes[..31], 7, 4096), None, "cut");
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&bad, 7, 4096), None, "bit {bit}");
        }
        assert!(header().matches(7, b"hello\0\0\0"));
        assert!(!header().matches(7, b"hello\0\0\x01"), "padding counts");
        assert!(!header().matches(7, b"hello"));
    }
}
