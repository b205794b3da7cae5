//! The payloads of log records.
//!
//! ```text
//! COMMIT (kind 1)
//! 0   8  CommitSeq
//! 8   8  XID
//! 16  8  last CommitSeq past the publish gate when this was written; its own while no gate is on
//! 24  n  number of redos (lenenc), each:
//!          u8 participant | u8 0 | lenenc length | bytes          redo in the record
//!          u8 participant | u8 1 | lenenc string name | u64 bytes | u32 CRC-32C     redo in a spill file
//! ..  n  binlog chunk list (cohort_binlog), then the bytes of its inline chunks up to the end of the record
//!
//! BINLOG (kind 2): binlog chunk list and bytes alone: the head of a file, a rotation, a stop
//!
//! RELEASED (kind 3): u64 last CommitSeq whose group may be published although no replica has it
//!
//! In the separate layout (`separate.rs`):
//!
//! PREPARE (kind 4), in each log that has redo of the transaction, or in the coordinator's if it has none
//! 0   8  CommitSeq
//! 8   8  XID
//! 16  8  CommitSeq up to which everything was decided when this was written
//! 24  4  binlog file in which its last event ends, 0 if it is not in the binlog
//! 28  8  offset of that end
//! 36  n  logs that have a part of it (lenenc), each: u8 0 for the coordinator's, else the participant
//! ..  n  redos as in COMMIT, those in this log
//!
//! DECIDED (kind 5), in the coordinator's log: u64 CommitSeq up to which everything is decided
//!
//! COMMIT and BINLOG, in the coordinator's log, only with an archive: copies of the whole transaction and of
//! the other binlog bytes, for the archive
//!
//! NOTE (kind 6), in an engine's log: empty, written to be synced for `binlog_group_commit_sync_engine=OFF`
//!
//! TIME (kind 7): u64 microseconds since 1970, at the head of a flush group, only with an archive
//!
//! CHECKPOINT, the payload in the control file of the one log, or of the coordinator's
//! 0   4  version: 4 in the separate layout, 3 in the shared one; 2 ends after the participants, 1 after the base;
//!        6 and 5 instead of 4 and 3 once an archive was applied
//! 4   8  last CommitSeq
//! 12  8  next XID
//! 20  4  binlog file that is synced, 0 for none
//! 24  8  offset up to which it is synced
//! 32  n  lenenc string: base path of the binlog
//! ..  n  number of participants (lenenc), each: u8 participant | u64 LSN up to which it was durable
//! ..  4  reset mark: number of the first file after a reset, which removes all others; 0 without a reset
//! version 4:
//! ..  8  pair: the same in all logs of the data directory
//! ..  n  number of engines' logs (lenenc), each: u8 participant | u64 LSN where recovery starts in it
//! versions 5 and 6:
//! ..  8  LSN of the one log, or of the coordinator's, from which on it is that of the archive
//! ..  n  number of parts whose binlog bytes belong to files of another name (lenenc), each: u64 from | u64 to
//!
//! Payload in the control file of an engine's log: u32 1 | u64 pair | u8 participant
//! ```

use std::num::NonZeroU32;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId, Reader, Truncated, Write, Xid};
use cohort_binlog::{Chunk, StreamOut};
use cohort_engine::Redo;
use cohort_log::{Log, LogReservation, RecordKind};

use crate::request::{SpilledRedo, Trx};

/// A transaction.
pub const COMMIT: RecordKind = RecordKind(1);
/// Binlog bytes that belong to no transaction.
pub const BINLOG: RecordKind = RecordKind(2);
/// Replicas are no longer waited for.
pub const RELEASED: RecordKind = RecordKind(3);
/// The part of a transaction in one log, to be decided by another record or the binlog.
pub const PREPARE: RecordKind = RecordKind(4);
/// The decision about transactions that are not in the binlog.
pub const DECIDED: RecordKind = RecordKind(5);
/// An empty record, written to have something to sync.
pub const NOTE: RecordKind = RecordKind(6);

/// The time at which the records that follow were written.
pub const TIME: RecordKind = RecordKind(7);
/// Size of its payload.
pub const TIME_BYTES: u64 = 8;

const SHARED_VERSION: u32 = 3;
const SEPARATE_VERSION: u32 = 4;
/// Difference between the version of a checkpoint with [`Checkpoint::restored`] and that without.
const RESTORED_STEP: u32 = 2;
const ENGINE_VERSION: u32 = 1;

/// Maximum bytes of a record in addition to redo and binlog bytes, per redo and for the record itself.
pub const OVERHEAD_BYTES: u64 = 512;

/// Redo in a record.
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
    /// Last CommitSeq whose group had passed the publish gate.
    pub released: CommitSeq,
    pub redo: Vec<(ParticipantId, RedoRef<'a>)>,
    pub chunks: Vec<Chunk>,
    /// Bytes of the inline chunks.
    pub binlog: &'a [u8],
}

/// Encodes a COMMIT record without the binlog bytes, which the caller appends.
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

/// Returns the maximum bytes of a redo in a record.
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

/// Head of a PREPARE record, which precedes the redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareHead<'a> {
    pub seq: CommitSeq,
    pub xid: Xid,
    /// CommitSeq up to which everything was decided.
    pub decided: CommitSeq,
    /// End of its last event in the binlog; `None` if it has no events there.
    pub end: Option<BinlogPos>,
    /// Numbers of the logs that have a part of it.
    pub logs: &'a [u8],
}

/// Encodes a PREPARE record with the redo of the participants for which `is_here` returns true.
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

/// Decodes a PREPARE record.
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

/// Encodes the payload in the control file of an engine's log.
pub fn encode_engine_log(pair: Pair, engine: ParticipantId) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(ENGINE_VERSION);
    out.put_u64(pair.0);
    out.put_u8(engine.0);
    out
}

/// Decodes the payload in the control file of an engine's log.
pub fn decode_engine_log(payload: &[u8]) -> Result<(Pair, ParticipantId), Truncated> {
    let mut r = Reader::new(payload);
    match r.u32()? {
        ENGINE_VERSION => Ok((Pair(r.u64()?), ParticipantId(r.u8()?))),
        _ => Err(Truncated),
    }
}

/// Usual maximum size of the fields of a commit record other than redo.
const HEAD_BYTES: usize = 128;

/// Decodes a COMMIT record.
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

/// Decodes a TIME record.
pub fn decode_time(payload: &[u8]) -> Result<u64, Truncated> {
    Reader::new(payload).u64()
}

/// Decodes a RELEASED or DECIDED record, or the CommitSeq of a COMMIT record.
pub fn decode_seq(payload: &[u8]) -> Result<CommitSeq, Truncated> {
    Ok(CommitSeq(Reader::new(payload).u64()?))
}

/// The payload of a checkpoint: the state where recovery starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    pub last_seq: CommitSeq,
    pub next_xid: Xid,
    pub binlog_synced: BinlogPos,
    /// Empty with the binlog off.
    pub binlog_base: String,
    /// LSN up to which each participant was durable at the checkpoint; empty in a checkpoint of version 1.
    pub durable: Vec<(ParticipantId, Lsn)>,
    /// A reset of the binlog is in progress: the existing files are invalid, and the next one has this
    /// number.
    pub binlog_restart: Option<NonZeroU32>,
    /// Only in the separate layout.
    pub separate: Option<EngineLogs>,
    /// Only in a restored backup, until its first start has recovered it.
    pub restored: Option<Restored>,
}

/// The part of the log that an archive has added to a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// LSN where it begins, in the one log or in the coordinator's.
    pub from: Lsn,
    /// Ranges of LSNs whose binlog bytes belong to files of another name: the server changed `log_bin`.
    pub other_binlogs: Vec<(Lsn, Lsn)>,
}

/// The engines' logs that the coordinator's log names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLogs {
    pub pair: Pair,
    /// LSN where recovery starts in each log.
    pub from: Vec<(ParticipantId, Lsn)>,
}

impl Checkpoint {
    /// Encodes the payload for the log's control file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let version = if self.separate.is_some() { SEPARATE_VERSION } else { SHARED_VERSION };
        out.put_u32(version + if self.restored.is_some() { RESTORED_STEP } else { 0 });
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
        if let Some(restored) = &self.restored {
            out.put_u64(restored.from.0);
            out.put_lenenc(restored.other_binlogs.len() as u64);
            for (from, to) in &restored.other_binlogs {
                out.put_u64(from.0);
                out.put_u64(to.0);
            }
        }
        out
    }

    /// Decodes the payload, which is empty in a new log.
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, Truncated> {
        if payload.is_empty() {
            return Ok(Checkpoint { next_xid: Xid(1), ..Checkpoint::default() });
        }
        let mut r = Reader::new(payload);
        let version = r.u32()?;
        if !(1..=SEPARATE_VERSION + RESTORED_STEP).contains(&version) {
            return Err(Truncated);
        }
        let is_restored = version > SEPARATE_VERSION;
        let version = if is_restored { version - RESTORED_STEP } else { version };
        let mut checkpoint = Checkpoint {
            last_seq: CommitSeq(r.u64()?),
            next_xid: Xid(r.u64()?),
            binlog_synced: BinlogPos { file: r.u32()?, offset: r.u64()? },
            binlog_base: String::from_utf8(r.lenenc_bytes()?.to_vec()).map_err(|_| Truncated)?,
            durable: Vec::new(),
            binlog_restart: None,
            separate: None,
            restored: None,
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
        if is_restored {
            let (from, mut other_binlogs) = (Lsn(r.u64()?), Vec::new());
            for _ in 0..r.lenenc()? {
                other_binlogs.push((Lsn(r.u64()?), Lsn(r.u64()?)));
            }
            checkpoint.restored = Some(Restored { from, other_binlogs });
        }
        Ok(checkpoint)
    }

    /// Returns whether the binlog bytes of a record belong to files of another name.
    pub fn is_of_other_binlog(&self, lsn: Lsn) -> bool {
        let others = self.restored.iter().flat_map(|restored| &restored.other_binlogs);
        others.into_iter().any(|(from, to)| (*from..*to).contains(&lsn))
    }
}

/// Random number that all logs of one data directory have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair(pub u64);

/// Appends a BINLOG record.
pub fn append_binlog_record(log: &Log, reservation: LogReservation, out: &StreamOut) {
    let mut head = Vec::new();
    StreamOut::encode_chunks(&out.chunks, &mut head);
    log.append(reservation, BINLOG, &[&head, &out.bytes]);
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
            restored: None,
        };
        let logs = EngineLogs { pair: Pair(99), from: vec![(ParticipantId(1), Lsn(8192))] };
        let separate = Checkpoint { separate: Some(logs), ..checkpoint.clone() };
        let bytes = separate.encode();
        assert_eq!(Checkpoint::decode(&bytes), Ok(separate));
        (1..bytes.len()).for_each(|len| assert!(Checkpoint::decode(&bytes[..len]).is_err()));
        for layout in [Checkpoint::decode(&bytes).expect("decoded above"), checkpoint.clone()] {
            let restored = Some(Restored { from: Lsn(70), other_binlogs: vec![(Lsn(0), Lsn(90))] });
            let restored = Checkpoint { restored, ..layout };
            let bytes = restored.encode();
            assert_eq!(Checkpoint::decode(&bytes), Ok(restored));
            (1..bytes.len()).for_each(|len| assert!(Checkpoint::decode(&bytes[..len]).is_err()));
        }
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

    /// A record's checksum proves that it is whole, not that this server wrote it: any bytes decode to a
    /// record or an error.
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
            // Checks only that each call returns.
            let _ = decode_commit(&bytes);
            let _ = decode_prepare(&bytes);
            let _ = decode_engine_log(&bytes);
            let _ = Checkpoint::decode(&bytes);
            let _ = decode_seq(&bytes);
        }
    }
}
