//! The format of a record.
//!
//! ```text
//!  0  u32  CRC-32C of bytes 4..32, seeded with the log's salt
//!  4  u32  payload length
//!  8  u64  LSN: where the record stands
//! 16  u32  CRC-32C of payload and padding, seeded with the log's salt
//! 20  u32  low 24 bits: generation; high 8 bits: kind
//! 24  u64  mark: everything below this LSN was hardened when the record was written
//! 32       payload, then zeros up to a multiple of 8
//! ```
//!
//! The header has a checksum of its own, so that a length is believed only when it is right, and so that the
//! mark of a record whose payload is torn still tells what was hardened before it. The salt (of the log) and
//! the LSN keep what a recycled segment or a copied file held before from being taken for a record; the
//! generation (of the start of the server) does so for what a crash left behind the end.

use cohort_base::{Lsn, Reader};

/// Size of the header.
pub(crate) const HEADER_BYTES: u64 = 32;
/// Where the header has its LSN.
pub(crate) const LSN_AT: usize = 8;
/// Records start at multiples of this.
pub(crate) const ALIGN_BYTES: u64 = 8;
/// Generations are below this.
pub(crate) const GENERATION_END: u32 = 1 << 24;

/// What a record's payload is; the numbers belong to the users of the log and are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKind(pub u8);

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where the next one starts.
    pub end: Lsn,
    /// What the payload is.
    pub kind: RecordKind,
    /// The payload, all of it.
    pub payload: &'a [u8],
}

/// Size of a record in the log: header, payload, padding.
pub(crate) fn record_bytes(payload_bytes: u64) -> u64 {
    HEADER_BYTES + payload_bytes.next_multiple_of(ALIGN_BYTES)
}

/// Zeros behind a payload of this size.
pub(crate) fn padding(payload_bytes: u64) -> &'static [u8] {
    const ZEROS: [u8; ALIGN_BYTES as usize] = [0; ALIGN_BYTES as usize];
    &ZEROS[..(payload_bytes.next_multiple_of(ALIGN_BYTES) - payload_bytes) as usize]
}

/// Checksum of a payload given in parts, with its padding.
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

    /// None unless `bytes` starts with a header that was written at this very LSN of this log.
    pub fn decode(bytes: &[u8], salt: u32, lsn: u64) -> Option<Header> {
        let mut r = Reader::new(bytes.get(..HEADER_BYTES as usize)?);
        let crc = r.u32().ok()?;
        let payload_bytes = r.u32().ok()?;
        // Compared first: it is the cheapest test, and scans for records behind a torn tail live on it.
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

    /// Whole size of the record.
    pub fn record_bytes(&self) -> u64 {
        record_bytes(u64::from(self.payload_bytes))
    }

    /// Whether `body` (payload and padding) is what the header speaks of.
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
