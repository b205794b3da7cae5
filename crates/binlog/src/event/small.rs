//! The events of a few fields.
//!
//! ```text
//! ROTATE 4              position u64 | file name to the end
//! INTVAR 5              kind u8 (1 LAST_INSERT_ID, 2 INSERT_ID) | value u64
//! RAND 13               seed1 u64 | seed2 u64
//! INCIDENT 26           number u16 | message len8 string
//! HEARTBEAT 27          file name to the end; never in a file
//! ANNOTATE_ROWS 160     SQL text to the end
//! BINLOG_CHECKPOINT 161 length u32 | file name
//! START_ENCRYPTION 164  scheme u8 | key version u32 | nonce [12]
//! ```

use cohort_base::{Reader, Write};

use super::DecodeError;

/// The next file, and where its events start (always 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotate {
    /// Offset of the first event.
    pub position: u64,
    /// File name without directory.
    pub name: Vec<u8>,
}

impl Rotate {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Rotate, DecodeError> {
        Ok(Rotate { position: r.u64()?, name: rest(r)? })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.position);
        out.extend_from_slice(&self.name);
    }
}

/// Which number an [`Intvar`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntvarKind {
    /// What LAST_INSERT_ID() gives.
    LastInsertId,
    /// The first AUTO_INCREMENT value.
    InsertId,
}

/// A number that the next statement uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intvar {
    /// Which one.
    pub kind: IntvarKind,
    /// The number.
    pub value: u64,
}

impl Intvar {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Intvar, DecodeError> {
        let kind = match r.u8()? {
            1 => IntvarKind::LastInsertId,
            2 => IntvarKind::InsertId,
            _ => return Err(DecodeError::BadValue("unknown kind of an Intvar event")),
        };
        Ok(Intvar { kind, value: r.u64()? })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(match self.kind {
            IntvarKind::LastInsertId => 1,
            IntvarKind::InsertId => 2,
        });
        out.put_u64(self.value);
    }
}

/// Seeds of RAND().
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rand {
    /// First seed.
    pub seed1: u64,
    /// Second seed.
    pub seed2: u64,
}

impl Rand {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Rand, DecodeError> {
        Ok(Rand { seed1: r.u64()?, seed2: r.u64()? })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.seed1);
        out.put_u64(self.seed2);
    }
}

/// Something could not be logged; replicas stop here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// 1: lost events.
    pub number: u16,
    /// What happened; at most 255 bytes.
    pub message: Vec<u8>,
}

impl Incident {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Incident, DecodeError> {
        Ok(Incident { number: r.u16()?, message: r.len8_bytes()?.to_vec() })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.number);
        out.put_u8(self.message.len() as u8);
        out.extend_from_slice(&self.message);
    }
}

/// "Still there" for a replica that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The source's current file.
    pub name: Vec<u8>,
}

impl Heartbeat {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Heartbeat, DecodeError> {
        Ok(Heartbeat { name: rest(r)? })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
    }
}

/// The statement behind the row events that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotate {
    /// SQL text.
    pub sql: Vec<u8>,
}

impl Annotate {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Annotate, DecodeError> {
        Ok(Annotate { sql: rest(r)? })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sql);
    }
}

/// Crash recovery of a server with two-phase commit starts at this file. Ours recovers from its log; the
/// event names the file it stands in, so that tools know that older ones may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogCheckpoint {
    /// File name without directory.
    pub name: Vec<u8>,
}

impl BinlogCheckpoint {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<BinlogCheckpoint, DecodeError> {
        let len = r.u32()?;
        Ok(BinlogCheckpoint { name: r.bytes(len as usize)?.to_vec() })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.name.len() as u32);
        out.extend_from_slice(&self.name);
    }
}

/// The events behind this one are encrypted; they cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartEncryption {
    /// 1.
    pub scheme: u8,
    /// Version of the key.
    pub key_version: u32,
    /// Per file.
    pub nonce: [u8; 12],
}

impl StartEncryption {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<StartEncryption, DecodeError> {
        Ok(StartEncryption { scheme: r.u8()?, key_version: r.u32()?, nonce: r.array()? })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.scheme);
        out.put_u32(self.key_version);
        out.extend_from_slice(&self.nonce);
    }
}

fn rest(r: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    Ok(r.bytes(r.remaining())?.to_vec())
}
