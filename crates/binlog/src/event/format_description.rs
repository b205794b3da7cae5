//! FORMAT_DESCRIPTION (15): the first event of a file; defines how the others are framed.
//!
//! ```text
//! version u16 = 4 | server_version char[50] | created u32 | header_len u8 = 19 |
//! post-header length of types 1..=171, u8 each | checksum algorithm u8
//! ```
//!
//! This event itself always has a checksum, regardless of the algorithm. `created` is the server's start time
//! in the first file after a start (replicas then drop their temporary tables) and 0 in later files.

use cohort_base::{Reader, Write};

use super::{Checksum, DecodeError, EventType, HEADER_LEN};

/// Length of the version text, padded with zeros.
const VERSION_LEN: usize = 50;

/// Lengths of the fixed parts of the bodies of types 1..=171, as MariaDB 10.11 writes them.
pub const POST_HEADER_LENGTHS: [u8; 171] = post_header_lengths();

const fn post_header_lengths() -> [u8; 171] {
    let known: [(u8, u8); 34] = [
        (1, 56),
        (2, 13),
        (4, 8),
        (6, 18),
        (8, 4),
        (9, 4),
        (10, 4),
        (11, 4),
        (12, 18),
        (15, 228),
        (17, 4),
        (18, 26),
        (19, 8),
        (23, 8),
        (24, 8),
        (25, 8),
        (26, 2),
        (30, 10),
        (31, 10),
        (32, 10),
        (39, 10),
        (40, 10),
        (41, 10),
        (161, 4),
        (162, 19),
        (163, 4),
        (165, 13),
        (166, 8),
        (167, 8),
        (168, 8),
        (169, 10),
        (170, 10),
        (171, 10),
        (160, 0),
    ];
    let mut lengths = [0; 171];
    let mut i = 0;
    while i < known.len() {
        lengths[known[i].0 as usize - 1] = known[i].1;
        i += 1;
    }
    lengths
}

/// Types whose fixed parts are decoded here. Does not contain MySQL's types, which use some of the numbers
/// for other events.
const READ_HERE: [EventType; 21] = [
    EventType::QUERY,
    EventType::ROTATE,
    EventType::BEGIN_LOAD_QUERY,
    EventType::EXECUTE_LOAD_QUERY,
    EventType::TABLE_MAP,
    EventType::WRITE_ROWS_V1,
    EventType::UPDATE_ROWS_V1,
    EventType::DELETE_ROWS_V1,
    EventType::WRITE_ROWS_V2,
    EventType::UPDATE_ROWS_V2,
    EventType::DELETE_ROWS_V2,
    EventType::BINLOG_CHECKPOINT,
    EventType::GTID,
    EventType::GTID_LIST,
    EventType::QUERY_COMPRESSED,
    EventType::WRITE_ROWS_COMPRESSED_V1,
    EventType::UPDATE_ROWS_COMPRESSED_V1,
    EventType::DELETE_ROWS_COMPRESSED_V1,
    EventType::WRITE_ROWS_COMPRESSED,
    EventType::UPDATE_ROWS_COMPRESSED,
    EventType::DELETE_ROWS_COMPRESSED,
];

/// A format description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatDescription {
    /// For instance `10.11.19-MariaDB-log`; at most 50 bytes. Tools search for "MariaDB" in it.
    pub server_version: Vec<u8>,
    /// Start time of the server, or 0.
    pub created: u32,
    /// Lengths of the fixed parts of the bodies, indexed by type - 1.
    pub post_header_lengths: Vec<u8>,
    /// Checksum algorithm of the events after this one.
    pub checksum: Checksum,
}

impl FormatDescription {
    /// Returns a format description of this server.
    pub fn new(server_version: &str, created: u32, checksum: Checksum) -> FormatDescription {
        let mut version = server_version.as_bytes().to_vec();
        version.truncate(VERSION_LEN);
        FormatDescription {
            server_version: version,
            created,
            post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
            checksum,
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<FormatDescription, DecodeError> {
        if r.u16()? != 4 {
            return Err(DecodeError::BadValue("binlog version is not 4"));
        }
        let version = r.bytes(VERSION_LEN)?;
        let used = version.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        let created = r.u32()?;
        if usize::from(r.u8()?) != HEADER_LEN {
            return Err(DecodeError::BadValue("header length is not 19"));
        }
        let lengths = r.bytes(r.remaining().checked_sub(1).ok_or(DecodeError::Truncated)?)?;
        let checksum =
            Checksum::from_u8(r.u8()?).ok_or(DecodeError::BadValue("unknown checksum algorithm"))?;
        Ok(FormatDescription {
            server_version: version[..used].to_vec(),
            created,
            post_header_lengths: lengths.to_vec(),
            checksum,
        })
    }

    /// Returns a type that this server decodes but whose fixed part has another length there, so that it
    /// would be misread. Types after the end of the list do not occur.
    pub fn differing_type(&self) -> Option<EventType> {
        let lengths = self.post_header_lengths.iter().zip(&POST_HEADER_LENGTHS).zip(1..);
        let mut differing =
            lengths.filter(|((theirs, ours), _)| theirs != ours).map(|(_, kind)| EventType(kind));
        differing.find(|kind| READ_HERE.contains(kind))
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(4);
        let mut version = [0; VERSION_LEN];
        let used = self.server_version.len().min(VERSION_LEN);
        version[..used].copy_from_slice(&self.server_version[..used]);
        out.extend_from_slice(&version);
        out.put_u32(self.created);
        out.put_u8(HEADER_LEN as u8);
        out.extend_from_slice(&self.post_header_lengths);
        out.put_u8(self.checksum as u8);
    }
}
