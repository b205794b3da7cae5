//! The payloads of log records.
//!
//! ```text
//! COMMIT (kind 1)
//! 0   8  CommitSeq
//! 8   8  XID
//! 16  8  CommitSeq up to which groups had passed the publish gate when this was written; its own while no gate is on
//! 24  n  number of redos (lenenc), each:
//!          u8 participant | u8 0 | lenenc length | bytes          redo in the record
//!          u8 participant | u8 1 | lenenc string name | u64 bytes | u32 CRC-32C     redo in a spill file
//! ..  n  binlog chunk list (cohort_binlog), then the bytes of its inline chunks up to the end of the record
//!
//! BINLOG (kind 2): binlog chunk list and bytes alone: the head of a file, a rotation, a stop
//!
//! RELEASED (kind 3): u64 CommitSeq up to which groups may be published without having been seen by a replica
//!
//! CHECKPOINT, the payload in the log's control file
//! 0   4  version 3; version 2 ends behind the participants, version 1 behind the base path
//! 4   8  last CommitSeq
//! 12  8  next XID
//! 20  4  binlog file that is synced, 0 for none
//! 24  8  offset up to which it is synced
//! 32  n  lenenc string: base path of the binlog
//! ..  n  number of participants (lenenc), each: u8 participant | u64 LSN up to which it was durable
//! ..  4  number with which the binlog begins anew: all files of it are to be removed; 0 if none are
//! ```

use std::num::NonZeroU32;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Reader, Truncated, Write, Xid};
use cohort_binlog::{Chunk, StreamOut};
use cohort_log::RecordKind;

use crate::request::{SpilledRedo, Trx};

/// A transaction.
pub const COMMIT: RecordKind = RecordKind(1);
/// Bytes of the binlog that belong to no transaction.
pub const BINLOG: RecordKind = RecordKind(2);
/// Replicas are no longer waited for.
pub const RELEASED: RecordKind = RecordKind(3);

const CHECKPOINT_VERSION: u32 = 3;

/// Most bytes that a record has beside redo and binlog bytes, per redo and in all.
pub const OVERHEAD_BYTES: u64 = 512;

/// Redo as a record holds it.
#[derive(Debug, PartialEq, Eq)]
pub enum RedoRef<'a> {
    Inline(&'a [u8]),
    Spilled(SpilledRedo),
}

/// A COMMIT record.
#[derive(Debug)]
pub struct Commit<'a> {
    pub seq: CommitSeq,
    pub xid: Xid,
    /// Up to here groups had passed the publish gate.
    pub released: CommitSeq,
    pub redo: Vec<(ParticipantId, RedoRef<'a>)>,
    pub chunks: Vec<Chunk>,
    /// Bytes of the inline chunks.
    pub binlog: &'a [u8],
}

/// Writes a COMMIT record but for the binlog bytes, which the caller appends.
pub fn encode_commit(seq: CommitSeq, released: CommitSeq, trx: &Trx, chunks: &[Chunk], out: &mut Vec<u8>) {
    let inline = trx.request.redo.iter().zip(&trx.spilled).filter(|(_, spilled)| spilled.is_none());
    out.reserve(HEAD_BYTES + inline.map(|((_, redo), _)| redo.bytes.len()).sum::<usize>());
    out.put_u64(seq.0);
    out.put_u64(trx.xid.0);
    out.put_u64(released.0);
    out.put_lenenc(trx.request.redo.len() as u64);
    for ((participant, redo), spilled) in trx.request.redo.iter().zip(&trx.spilled) {
        out.put_u8(participant.0);
        match spilled {
            None => {
                out.put_u8(0);
                out.put_lenenc_bytes(&redo.bytes);
            }
            Some(file) => {
                out.put_u8(1);
                out.put_lenenc_bytes(file.name.as_bytes());
                out.put_u64(file.bytes);
                out.put_u32(file.crc);
            }
        }
    }
    StreamOut::encode_chunks(chunks, out);
}

/// Room for what a commit record holds beside the redo, as a rule.
const HEAD_BYTES: usize = 128;

/// Reads a COMMIT record.
pub fn decode_commit(payload: &[u8]) -> Result<Commit<'_>, Truncated> {
    let mut r = Reader::new(payload);
    let (seq, xid, released) = (CommitSeq(r.u64()?), Xid(r.u64()?), CommitSeq(r.u64()?));
    let mut redo = Vec::new();
    for _ in 0..r.lenenc()? {
        let participant = ParticipantId(r.u8()?);
        redo.push((participant, decode_redo(&mut r)?));
    }
    let chunks = StreamOut::decode_chunks(&mut r)?;
    Ok(Commit { seq, xid, released, redo, chunks, binlog: r.rest() })
}

fn decode_redo<'a>(r: &mut Reader<'a>) -> Result<RedoRef<'a>, Truncated> {
    match r.u8()? {
        0 => Ok(RedoRef::Inline(r.lenenc_bytes()?)),
        1 => {
            let name = String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)?;
            Ok(RedoRef::Spilled(SpilledRedo { name, bytes: r.u64()?, crc: r.u32()? }))
        }
        _ => Err(Truncated),
    }
}

/// Reads a RELEASED record.
pub fn decode_released(payload: &[u8]) -> Result<CommitSeq, Truncated> {
    Ok(CommitSeq(Reader::new(payload).u64()?))
}

/// Where recovery starts, beside the LSN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    pub last_seq: CommitSeq,
    pub next_xid: Xid,
    pub binlog_synced: BinlogPos,
    /// Empty with the binlog off.
    pub binlog_base: String,
    /// Up to where each was durable then; none in a checkpoint of version 1.
    pub durable: Vec<(ParticipantId, Lsn)>,
    /// RESET MASTER is under way: the files of the binlog do not count any more, and the next one has this
    /// number.
    pub binlog_restart: Option<NonZeroU32>,
}

impl Checkpoint {
    /// The payload for the log's control file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(CHECKPOINT_VERSION);
        out.put_u64(self.last_seq.0);
        out.put_u64(self.next_xid.0);
        out.put_u32(self.binlog_synced.file);
        out.put_u64(self.binlog_synced.offset);
        out.put_lenenc_bytes(self.binlog_base.as_bytes());
        out.put_lenenc(self.durable.len() as u64);
        for (participant, lsn) in &self.durable {
            out.put_u8(participant.0);
            out.put_u64(lsn.0);
        }
        out.put_u32(self.binlog_restart.map_or(0, NonZeroU32::get));
        out
    }

    /// Reads the payload; a new log has none.
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, Truncated> {
        if payload.is_empty() {
            return Ok(Checkpoint { next_xid: Xid(1), ..Checkpoint::default() });
        }
        let mut r = Reader::new(payload);
        let version = r.u32()?;
        if !(1..=CHECKPOINT_VERSION).contains(&version) {
            return Err(Truncated);
        }
        let mut checkpoint = Checkpoint {
            last_seq: CommitSeq(r.u64()?),
            next_xid: Xid(r.u64()?),
            binlog_synced: BinlogPos { file: r.u32()?, offset: r.u64()? },
            binlog_base: String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)?,
            durable: Vec::new(),
            binlog_restart: None,
        };
        if version > 1 {
            for _ in 0..r.lenenc()? {
                checkpoint.durable.push((ParticipantId(r.u8()?), Lsn(r.u64()?)));
            }
        }
        if version > 2 {
            checkpoint.binlog_restart = NonZeroU32::new(r.u32()?);
        }
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use cohort_vfs::{Rng, SeededRng};

    use super::*;

    #[test]
    fn checkpoints_round_trip_and_reject_what_is_cut() {
        let checkpoint = Checkpoint {
            last_seq: CommitSeq(7),
            next_xid: Xid(9),
            binlog_synced: BinlogPos { file: 3, offset: 4711 },
            binlog_base: "binlog".to_owned(),
            durable: vec![(ParticipantId(0), Lsn(7)), (ParticipantId(1), Lsn(4096))],
            binlog_restart: NonZeroU32::new(12),
        };
        let bytes = checkpoint.encode();
        assert_eq!(Checkpoint::decode(&bytes), Ok(checkpoint.clone()));
        let mut old = bytes[..bytes.len() - 4].to_vec();
        old[0] = 2;
        let checkpoint = Checkpoint { binlog_restart: None, ..checkpoint };
        assert_eq!(Checkpoint::decode(&old), Ok(checkpoint.clone()));
        let mut older = bytes[..bytes.len() - 23].to_vec();
        older[0] = 1;
        assert_eq!(Checkpoint::decode(&older), Ok(Checkpoint { durable: Vec::new(), ..checkpoint }));
        for len in 1..bytes.len() {
            assert!(Checkpoint::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn garbage_is_no_commit_record() {
        for len in 0..64 {
            let bytes: Vec<u8> = (0..len).map(|n| (n * 37 + 11) as u8).collect();
            assert!(decode_commit(&bytes).is_err());
        }
    }

    /// A record's checksum says that it is whole, not that we wrote it: whatever it holds gives a record or
    /// an error.
    #[test]
    fn any_payload_is_decoded_or_refused() {
        const SEED: u64 = 22;
        let rng = SeededRng::new(SEED);
        let mut whole = Vec::new();
        whole.put_u64(7);
        whole.put_u64(8);
        whole.put_u64(6);
        whole.put_lenenc(2);
        whole.extend_from_slice(&[1, 0]);
        whole.put_lenenc_bytes(b"redo of an engine");
        whole.extend_from_slice(&[0, 1]);
        whole.put_lenenc_bytes(b"redo-1-2");
        whole.put_u64(4711);
        whole.put_u32(42);
        StreamOut::encode_chunks(&[], &mut whole);
        whole.extend_from_slice(b"binlog bytes");
        assert_eq!(decode_commit(&whole).expect("well-formed").redo.len(), 2);
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            bytes.truncate(1 + rng.below(bytes.len() as u64) as usize);
            // Only that it returns.
            let _ = decode_commit(&bytes);
            let _ = Checkpoint::decode(&bytes);
            let _ = decode_released(&bytes);
        }
    }
}
