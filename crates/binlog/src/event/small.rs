//! Events with few fields.
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

/// ROTATE: the next file, and the offset of its first event (always 4).
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

/// Meaning of the number in an [`Intvar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntvarKind {
    /// Value of LAST_INSERT_ID().
    LastInsertId,
    /// First AUTO_INCREMENT value.
    InsertId,
}

/// INTVAR: a number that the next statement uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intvar {
    /// Meaning of the number.
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

/// RAND: seeds of RAND().
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

/// INCIDENT: events could not be logged; replicas stop here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// 1: lost events.
    pub number: u16,
    /// Description; at most 255 bytes.
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

/// HEARTBEAT: keeps the connection to an idle replica alive.
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

/// ANNOTATE_ROWS: the text of the statement that caused the following row events.
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

/// BINLOG_CHECKPOINT: the file where crash recovery of a server with two-phase commit starts. This server
/// recovers from its log. It writes the name of the current file, so that tools know that older files may be
/// removed.
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

/// START_ENCRYPTION: the following events are encrypted and cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartEncryption {
    /// Always 1.
    pub scheme: u8,
    /// Version of the key.
    pub key_version: u32,
    /// Nonce of the file.
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
