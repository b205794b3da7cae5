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
//! Of the separate layout (`separate.rs`):
//!
//! PREPARE (kind 4), in each log that has redo of the transaction, or in the coordinator's if it has none
//! 0   8  CommitSeq
//! 8   8  XID
//! 16  8  CommitSeq up to which all was decided when this was written
//! 24  4  binlog file behind its last event, 0 if it is not in the binlog
//! 28  8  offset there
//! 36  n  logs that have a part of it (lenenc), each: u8 number, 0 the coordinator's, else the engine's participant
//! ..  n  redos as in COMMIT, those of this log
//!
//! DECIDED (kind 5), in the coordinator's log: u64 CommitSeq up to which all is decided
//!
//! NOTE (kind 6), in an engine's log: nothing; what `binlog_group_commit_sync_engine=OFF` syncs
//!
//! CHECKPOINT, the payload in the control file of the one log, or of the coordinator's
//! 0   4  version 4 of the separate layout; of the shared one 3; version 2 ends behind the participants, version 1 behind the base path
//! 4   8  last CommitSeq
//! 12  8  next XID
//! 20  4  binlog file that is synced, 0 for none
//! 24  8  offset up to which it is synced
//! 32  n  lenenc string: base path of the binlog
//! ..  n  number of participants (lenenc), each: u8 participant | u64 LSN up to which it was durable
//! ..  4  number with which the binlog begins anew: all files of it are to be removed; 0 if none are
//! version 4:
//! ..  8  pair: the same in all logs of the data directory
//! ..  n  number of engines' logs (lenenc), each: u8 participant | u64 LSN where recovery starts in it
//!
//! Payload in the control file of an engine's log: u32 1 | u64 pair | u8 participant
//! ```

use std::num::NonZeroU32;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Reader, Truncated, Write, Xid};
use cohort_binlog::{Chunk, StreamOut};
use cohort_engine::Redo;
use cohort_log::RecordKind;

use crate::request::{SpilledRedo, Trx};
use crate::separate::Pair;

/// A transaction.
pub const COMMIT: RecordKind = RecordKind(1);
/// Bytes of the binlog that belong to no transaction.
pub const BINLOG: RecordKind = RecordKind(2);
/// Replicas are no longer waited for.
pub const RELEASED: RecordKind = RecordKind(3);
/// A transaction's part of one log, to be decided elsewhere.
pub const PREPARE: RecordKind = RecordKind(4);
/// What is not in the binlog is decided.
pub const DECIDED: RecordKind = RecordKind(5);
/// Something to sync.
pub const NOTE: RecordKind = RecordKind(6);

const SHARED_VERSION: u32 = 3;
const SEPARATE_VERSION: u32 = 4;
const ENGINE_VERSION: u32 = 1;

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
        put_redo(*participant, redo, spilled.as_ref(), out);
    }
    StreamOut::encode_chunks(chunks, out);
}

/// Most bytes that redo takes in a record.
pub fn redo_bytes_max(redo: &Redo, spilled: Option<&SpilledRedo>) -> u64 {
    let inline = if spilled.is_none() { redo.bytes.len() as u64 } else { 0 };
    inline + OVERHEAD_BYTES
}

#[inline]
fn put_redo(participant: ParticipantId, redo: &Redo, spilled: Option<&SpilledRedo>, out: &mut Vec<u8>) {
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

/// What a PREPARE record holds before the redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareHead<'a> {
    pub seq: CommitSeq,
    pub xid: Xid,
    /// Up to here all was decided.
    pub decided: CommitSeq,
    /// Behind its last event in the binlog; none if it has no events there.
    pub end: Option<BinlogPos>,
    /// The logs that have a part of it.
    pub logs: &'a [u8],
}

/// Writes a PREPARE record with the redo of those participants whose redo is in this log.
pub fn encode_prepare(
    head: &PrepareHead<'_>,
    trx: &Trx,
    is_here: impl Fn(ParticipantId) -> bool,
    out: &mut Vec<u8>,
) {
    out.put_u64(head.seq.0);
    out.put_u64(head.xid.0);
    out.put_u64(head.decided.0);
    let end = head.end.unwrap_or_default();
    out.put_u32(end.file);
    out.put_u64(end.offset);
    out.put_lenenc_bytes(head.logs);
    let redo = || trx.request.redo.iter().zip(&trx.spilled).filter(|((id, _), _)| is_here(*id));
    out.put_lenenc(redo().count() as u64);
    redo().for_each(|((participant, redo), spilled)| put_redo(*participant, redo, spilled.as_ref(), out));
}

/// A PREPARE record: its head and its redo.
pub type Prepare<'a> = (PrepareHead<'a>, Vec<(ParticipantId, RedoRef<'a>)>);

/// Reads a PREPARE record.
pub fn decode_prepare(payload: &[u8]) -> Result<Prepare<'_>, Truncated> {
    let mut r = Reader::new(payload);
    let (seq, xid, decided) = (CommitSeq(r.u64()?), Xid(r.u64()?), CommitSeq(r.u64()?));
    let end = BinlogPos { file: r.u32()?, offset: r.u64()? };
    let logs = r.lenenc_bytes()?;
    let redo = decode_redos(&mut r)?;
    if !r.is_empty() || logs.is_empty() {
        return Err(Truncated);
    }
    Ok((PrepareHead { seq, xid, decided, end: (end.file > 0).then_some(end), logs }, redo))
}

/// The payload in the control file of an engine's log.
pub fn encode_engine_log(pair: Pair, engine: ParticipantId) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(ENGINE_VERSION);
    out.put_u64(pair.0);
    out.put_u8(engine.0);
    out
}

/// Whose log it is, and what it belongs to.
pub fn decode_engine_log(payload: &[u8]) -> Result<(Pair, ParticipantId), Truncated> {
    let mut r = Reader::new(payload);
    match r.u32()? {
        ENGINE_VERSION => Ok((Pair(r.u64()?), ParticipantId(r.u8()?))),
        _ => Err(Truncated),
    }
}

/// Room for what a commit record holds beside the redo, as a rule.
const HEAD_BYTES: usize = 128;

/// Reads a COMMIT record.
pub fn decode_commit(payload: &[u8]) -> Result<Commit<'_>, Truncated> {
    let mut r = Reader::new(payload);
    let (seq, xid, released) = (CommitSeq(r.u64()?), Xid(r.u64()?), CommitSeq(r.u64()?));
    let redo = decode_redos(&mut r)?;
    let chunks = StreamOut::decode_chunks(&mut r)?;
    Ok(Commit { seq, xid, released, redo, chunks, binlog: r.rest() })
}

fn decode_redos<'a>(r: &mut Reader<'a>) -> Result<Vec<(ParticipantId, RedoRef<'a>)>, Truncated> {
    let mut redo = Vec::new();
    for _ in 0..r.lenenc()? {
        let participant = ParticipantId(r.u8()?);
        redo.push((participant, decode_redo(r)?));
    }
    Ok(redo)
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

/// Reads a RELEASED or DECIDED record.
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
    /// Of the separate layout.
    pub separate: Option<EngineLogs>,
}

/// The engines' logs, as the coordinator's names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLogs {
    pub pair: Pair,
    /// Where recovery starts in each.
    pub from: Vec<(ParticipantId, Lsn)>,
}

impl Checkpoint {
    /// The payload for the log's control file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(if self.separate.is_some() { SEPARATE_VERSION } else { SHARED_VERSION });
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
        if let Some(logs) = &self.separate {
            out.put_u64(logs.pair.0);
            out.put_lenenc(logs.from.len() as u64);
            for (engine, lsn) in &logs.from {
                out.put_u8(engine.0);
                out.put_u64(lsn.0);
            }
        }
        out
    }

    /// Reads the payload; a new log has none.
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, Truncated> {
        if payload.is_empty() {
            return Ok(Checkpoint { next_xid: Xid(1), ..Checkpoint::default() });
        }
        let mut r = Reader::new(payload);
        let version = r.u32()?;
        if !(1..=SEPARATE_VERSION).contains(&version) {
            return Err(Truncated);
        }
        let mut checkpoint = Checkpoint {
            last_seq: CommitSeq(r.u64()?),
            next_xid: Xid(r.u64()?),
            binlog_synced: BinlogPos { file: r.u32()?, offset: r.u64()? },
            binlog_base: String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)?,
            durable: Vec::new(),
            binlog_restart: None,
            separate: None,
        };
        if version > 1 {
            for _ in 0..r.lenenc()? {
                checkpoint.durable.push((ParticipantId(r.u8()?), Lsn(r.u64()?)));
            }
        }
        if version > 2 {
            checkpoint.binlog_restart = NonZeroU32::new(r.u32()?);
        }
        if version == SEPARATE_VERSION {
            let (pair, mut from) = (Pair(r.u64()?), Vec::new());
            for _ in 0..r.lenenc()? {
                from.push((ParticipantId(r.u8()?), Lsn(r.u64()?)));
            }
            checkpoint.separate = Some(EngineLogs { pair, from });
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
            separate: None,
        };
        let logs = EngineLogs { pair: Pair(99), from: vec![(ParticipantId(1), Lsn(8192))] };
        let separate = Checkpoint { separate: Some(logs), ..checkpoint.clone() };
        let bytes = separate.encode();
        assert_eq!(Checkpoint::decode(&bytes), Ok(separate));
        (1..bytes.len()).for_each(|len| assert!(Checkpoint::decode(&bytes[..len]).is_err()));
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
            let _ = decode_prepare(&bytes);
            let _ = decode_engine_log(&bytes);
            let _ = Checkpoint::decode(&bytes);
            let _ = decode_released(&bytes);
        }
    }
}
