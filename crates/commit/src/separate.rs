//! The classical layout: a log for each engine, with the binlog as the coordinator's record.
//!
//! # Purpose
//! A commit takes two consecutive flushes, whatever the number of engines: all logs concurrently, then the
//! binlog. A group that needs a DECIDED record (below) takes a third. The layout is for installations with
//! binlog and data on separate devices, and is the baseline for measuring the shared layout.
//!
//! Each engine has a log. The *coordinator's log*, number 0, holds the redo of the other participants (the
//! catalog, replica positions, XA branches), transactions without redo, and DECIDED records.
//!
//! # Outline
//! ```text
//! prepare (session):    build redo and keep it in memory; reserve space in each log that gets a part of it
//! order:                as in the shared layout
//! write (leader):       for each member in CommitSeq order: assign positions to its binlog bytes, in memory,
//!                       append a PREPARE record to each log that has redo of it;
//!                       with an archive, append a copy of it to the coordinator's log
//! sync (leader):        sync all logs that have something new, concurrently
//! decide (`decision`):  write the binlog bytes to their file, sync it            <- the decision
//!                       if the group ends with members that are not in the binlog:
//!                           DECIDED record to the coordinator's log, sync it     <- their decision
//! durable, publish, acknowledge: as in the shared layout
//! ```
//! While the binlog decides a group, the next one may be written to the logs and synced there ([`Overlap`]).
//! A group that needs a DECIDED record excludes that: no record of a later group may precede it, because
//! recovery cuts a log at the first undecided record.
//!
//! # Concepts
//! - **PREPARE** records are appended by the leader, not by the session. So each log is in CommitSeq order
//!   (I1), and the undecided records after a crash are at the end of each log. A PREPARE record names all
//!   logs that hold a part of the transaction, and the end of its events in the binlog.
//! - **The decision**: a transaction is committed once its last binlog event is synced. The binlog bytes are
//!   *written*, not only synced, after the engines' logs are synced, because the kernel may write them to
//!   disk at any time. The binlog's contents decide about all earlier members too, with or without binlog
//!   events: the members of a group form a prefix. Only members after the last logged one need a DECIDED
//!   record.
//! - **Undecided** after a crash are at most the members of two groups, at the end of each log.
//! - **COMMIT marks**: there is no COMMIT record. Each PREPARE record has the CommitSeq up to which
//!   everything was decided when it was written, and a checkpoint has this for everything before it. The
//!   marks distinguish a binlog that was cut or lost from one that never had the events.
//! - **Early release stays safe** (I5): a transaction that depended on an undecided one has a later
//!   CommitSeq, and recovery keeps a prefix.
//!
//! # The archive
//! An archive needs one stream, in which a transaction is one record. So with `archive_to` the coordinator's
//! log also gets what the one log of the shared layout gets: a COMMIT record of each transaction with all its
//! redo and its binlog bytes, BINLOG records, and TIME records. It is the stream that `archive` sends, with
//! one mark, one chain and one timeline. The COMMIT records decide nothing: recovery cuts them off together
//! with the PREPARE records of their transaction, and otherwise ignores them. BINLOG records are not ignored:
//! the log gets them before the binlog does, and recovery completes the binlog from them. Only a backup to
//! which an archive was applied is recovered from COMMIT records (`separate_recovery.rs`).
//!
//! # States of a transaction after a crash
//! ```text
//! nowhere --write, flush--> in some or all logs --binlog synced--> decided --checkpoint--> in engine files
//! \--------- undecided: cut from all logs before the server opens ---------/
//! ```
//!
//! # Invariants
//! - I1: only the leader appends PREPARE records, only the holder of `decision` writes binlog files, and only
//!   a thread that holds both appends DECIDED records.
//! - I2: the binlog decides, and DECIDED records decide about transactions that are not in it. Recovery keeps
//!   the longest decided prefix (`separate_recovery.rs`).
//! - I3: engine files hold decided redo only: a checkpoint begins with the order stage held, after all
//!   ordered transactions are decided. Readers of the binlog get synced bytes, not bytes that are only
//!   written.
//! - I4: `decide` returns when the group is decided. Every log is durable beyond the group's records before:
//!   `sync` compares LSNs, and no option can skip that.
//! - I6: after a failed write or sync of any of the files the server ends. If there is no space for the
//!   binlog, the thread that decides waits and retries, and `prepare` refuses meanwhile: nothing was lost,
//!   and nothing can be undone. A server that is being stopped does not wait and ends as after a failure: no
//!   client got an OK, and the next start cuts the undecided transactions.
//! - I7: binlog files from that of the last checkpoint on are kept; the marks of everything before are
//!   durable. BINLOG_CHECKPOINT events name the first file that is kept.
//!
//! # Lock order
//! `leader`, `decision` (of the pipeline) > the stream > the writer of the binlog files.
//!
//! # Missing
//! - STOP SLAVE waits, as in MariaDB, for transactions of the replica that wait for disk space for the
//!   binlog.
//! - Transactions that no replica has cannot be cut (`init_rpl_role=SLAVE`): a start that would have to cut
//!   them is refused.
//! - Binlog checksums cannot be switched off.
//! - With an archive everything is written twice, in the coordinator's log and in those of the engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, Lsn, ParticipantId};
use cohort_binlog::{Batch, BinlogError, BinlogFileWriter, Stream, StreamOut};
use cohort_log::{Log, LogError, LogReservation};

use crate::error::{CommitError, FlushError};
use crate::logs::{Decision, LogLayout, LogNeeds, Logs, Marks, Member, Reserve, Written, main_mark};
use crate::record::{self, EngineLogs, Pair};
use crate::request::Trx;
use crate::reservations::TrxReservations;
use crate::rotation_reserve::RotationReserve;
use crate::shared::append_commit;
use crate::syncer::Syncer;

/// Number of the coordinator's log in PREPARE records; an engine's log has the number of its participant.
pub const COORDINATOR: u8 = 0;
/// Pause before a leader that found no space for the binlog retries.
const SPACE_PAUSE: Duration = Duration::from_millis(20);

/// A log and its owner.
struct OwnLog {
    /// `None` for the coordinator's log.
    engine: Option<ParticipantId>,
    log: Arc<Log>,
    /// Thread that flushes this log while the leader flushes another; `None` without threads.
    syncer: Option<Syncer>,
    /// Number of flushes by leaders.
    group_syncs: AtomicU64,
}

/// The logs of the separate layout.
pub struct SeparateLogs {
    pair: Pair,
    /// The coordinator's log first.
    logs: Vec<OwnLog>,
    /// CommitSeq up to which everything is decided; written under `decision`.
    decided: AtomicU64,
    /// Groups overlap.
    overlaps: AtomicBool,
    /// The server is about to stop: no thread waits for disk space any more.
    is_stopping: AtomicBool,
    /// `binlog_group_commit_sync_engine=OFF`: sessions also sync the engines' logs at prepare.
    is_synced_each: AtomicBool,
}

impl SeparateLogs {
    /// Takes open logs: the coordinator's, and those of the engines.
    pub fn new(
        pair: Pair,
        main: Log,
        engines: Vec<(ParticipantId, Log)>,
        decided: CommitSeq,
        has_threads: bool,
    ) -> SeparateLogs {
        let own = |engine: Option<ParticipantId>, log: Log| {
            let log = Arc::new(log);
            let syncer = has_threads.then(|| Syncer::start(Arc::clone(&log)));
            OwnLog { engine, log, syncer, group_syncs: AtomicU64::new(0) }
        };
        let main = own(None, main);
        let engines = engines.into_iter().map(|(engine, log)| own(Some(engine), log));
        SeparateLogs {
            pair,
            logs: std::iter::once(main).chain(engines).collect(),
            decided: AtomicU64::new(decided.0),
            overlaps: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_synced_each: AtomicBool::new(false),
        }
    }

    /// Returns the log of this index (see [`TrxReservations`]).
    fn at(&self, place: usize) -> &Log {
        &self.logs[place].log
    }

    fn place_of(&self, participant: ParticipantId) -> usize {
        self.logs.iter().position(|own| own.engine == Some(participant)).unwrap_or(0)
    }

    fn number(&self, place: usize) -> u8 {
        self.logs[place].engine.map_or(COORDINATOR, |engine| engine.0)
    }

    /// Returns the engines' logs.
    fn engines(&self) -> impl Iterator<Item = (ParticipantId, &Log)> {
        self.logs.iter().filter_map(|own| Some((own.engine?, &*own.log)))
    }

    /// Returns the durable ends of the engines' logs. While the order stage is held, there is no PREPARE
    /// record after them.
    fn engine_marks(&self) -> Vec<(ParticipantId, Lsn)> {
        self.engines().map(|(engine, log)| (engine, log.durable_end())).collect()
    }

    /// Returns the index of each log that gets a part of the transaction, with the payload bytes it needs. A
    /// transaction without redo has its part in the coordinator's log.
    fn needs(&self, of: &LogNeeds<'_>) -> Vec<(usize, u64)> {
        let mut needs: Vec<(usize, u64)> = Vec::with_capacity(2);
        for ((id, redo), spilled) in of.request.redo.iter().zip(of.spilled) {
            let place = self.place_of(*id);
            let of_redo = record::redo_bytes_max(redo, spilled.as_ref());
            match needs.iter_mut().find(|(at, _)| *at == place) {
                Some((_, bytes)) => *bytes += of_redo,
                None => needs.push((place, of_redo + record::OVERHEAD_BYTES)),
            }
        }
        if needs.is_empty() {
            needs.push((0, record::OVERHEAD_BYTES));
        }
        needs
    }

    /// Appends the transaction's PREPARE records, for the leader.
    fn append_prepare(
        &self,
        &Member { seq, end, .. }: &Member<'_>,
        parts: Vec<(usize, LogReservation)>,
        trx: &Trx,
        payload: &mut Vec<u8>,
    ) {
        let numbers: Vec<u8> = parts.iter().map(|(place, _)| self.number(*place)).collect();
        let decided = CommitSeq(self.decided.load(Ordering::Relaxed));
        for (place, reservation) in parts {
            payload.clear();
            let head = record::PrepareHead { seq, xid: trx.xid, decided, end, logs: &numbers };
            record::encode_prepare(&head, trx, |id| self.place_of(id) == place, payload);
            self.at(place).append(reservation, record::PREPARE, &[payload]);
        }
    }

    /// Writes and syncs binlog bytes; at return their transactions are decided. Waits if there is no disk
    /// space, unless the server is about to stop.
    fn write_binlog(&self, files: &BinlogFileWriter, batch: &Batch) -> Result<(), FlushError> {
        loop {
            match files.write_synced(batch) {
                Err(BinlogError::NoSpace { .. }) if !self.is_stopping.load(Ordering::Relaxed) => {
                    std::thread::sleep(SPACE_PAUSE);
                }
                written => return written.map_err(FlushError::binlog),
            }
        }
    }
}

impl Logs for SeparateLogs {
    fn layout(&self) -> LogLayout {
        LogLayout::Separate
    }

    fn is_decided_by_binlog(&self) -> bool {
        true
    }

    fn has_binlog_bytes(&self) -> bool {
        self.main().is_archived()
    }

    fn main(&self) -> &Log {
        &self.logs[0].log
    }

    fn log_of(&self, participant: ParticipantId) -> &Log {
        self.at(self.place_of(participant))
    }

    fn each(&self) -> Vec<&Log> {
        self.logs.iter().map(|own| &*own.log).collect()
    }

    fn reserve(&self, of: &LogNeeds<'_>, reserve: Reserve<'_>) -> Result<TrxReservations, CommitError> {
        let mut parts = Vec::with_capacity(2);
        for (place, bytes) in self.needs(of) {
            parts.push((place, reserve(self.at(place), bytes)?));
        }
        let decision = match of.is_logged {
            true => None,
            false => Some(reserve(self.main(), record::OVERHEAD_BYTES)?),
        };
        let archive = match self.main().is_archived() {
            true => Some(reserve(self.main(), of.commit_bytes_max(true))?),
            false => None,
        };
        Ok(TrxReservations::Separate { parts, decision, archive })
    }

    /// For `binlog_group_commit_sync_engine=OFF`: syncs each engine's log to which the transaction is going
    /// to write. Durability does not depend on this: the leader syncs the logs in any case.
    fn sync_at_prepare(&self, reserved: &TrxReservations) -> Result<(), LogError> {
        let TrxReservations::Separate { parts, .. } = reserved else { return Ok(()) };
        if !self.is_synced_each.load(Ordering::Relaxed) {
            return Ok(());
        }
        for (place, _) in parts.iter().filter(|(place, _)| self.logs[*place].engine.is_some()) {
            let log = self.at(*place);
            log.append(log.reserve(0)?, record::NOTE, &[]);
            log.flush()?;
        }
        Ok(())
    }

    fn append(&self, member: &Member<'_>, trx: &mut Trx, buffer: &mut Vec<u8>) -> Option<Decision> {
        let TrxReservations::Separate { parts, decision, archive } = std::mem::take(&mut trx.reserved) else {
            unreachable!("reserved at prepare (I6)")
        };
        self.append_prepare(member, parts, trx, buffer);
        if let Some(reservation) = archive {
            append_commit(self.main(), reservation, member, trx, buffer);
        }
        // An event in the binlog decides about its own transaction and all earlier ones.
        let reservation =
            if member.end.is_some() { None } else { Some(decision.expect("reserved at prepare (I6)")) };
        Some(Decision { last: member.seq, reservation })
    }

    fn rotate(
        &self,
        stream: &mut Stream,
        reserve: &RotationReserve,
        now_s: &dyn Fn() -> u32,
    ) -> Option<StreamOut> {
        if self.has_binlog_bytes() {
            return reserve.rotate(self.main(), stream, now_s);
        }
        if !stream.wants_rotation() {
            return None;
        }
        let mut out = StreamOut::default();
        stream.rotate(&mut out, now_s());
        Some(out)
    }

    /// Syncs the logs concurrently.
    fn sync(&self) -> Result<(), LogError> {
        let appended: Vec<Lsn> = self.logs.iter().map(|own| own.log.appended()).collect();
        let mut due = (0..self.logs.len()).filter(|place| self.at(*place).durable_end() < appended[*place]);
        let Some(own) = due.next() else { return Ok(()) };
        let others: Vec<usize> = due.collect();
        for place in others.iter().copied().chain([own]) {
            self.logs[place].group_syncs.fetch_add(1, Ordering::Relaxed);
        }
        let ask = |place: &usize| self.logs[*place].syncer.as_ref().map(|syncer| syncer.ask());
        let asked: Vec<_> = others.iter().map(ask).collect();
        let mut done = self.at(own).flush().map(drop);
        for (place, asked) in others.iter().zip(asked) {
            let synced = match asked {
                Some(answer) => answer.wait(),
                None => self.at(*place).flush(),
            };
            done = done.and(synced.map(drop));
        }
        done?;
        let is_behind = |place: usize| self.at(place).durable_end() < appended[place];
        assert!(
            !(0..self.logs.len()).any(is_behind),
            "a flush makes all that was appended before it durable (I4)"
        );
        Ok(())
    }

    fn overlaps(&self, written: &Written) -> bool {
        let needs_record = written.decision.as_ref().is_none_or(|decision| decision.reservation.is_some());
        self.overlaps.load(Ordering::Relaxed) && !needs_record
    }

    /// Writes and syncs the binlog bytes, and decides about the members that are not in them.
    fn decide(&self, written: &mut Written, files: Option<&BinlogFileWriter>) -> Result<(), FlushError> {
        if let (Some(files), Some(bytes)) = (files, &written.binlog)
            && !bytes.batch.chunks.is_empty()
        {
            self.write_binlog(files, &bytes.batch)?;
        }
        let Decision { last, reservation } =
            written.decision.take().expect("a group is written once, and decided once");
        if let Some(reservation) = reservation {
            self.main().append(reservation, record::DECIDED, &[&last.0.to_le_bytes()]);
            self.main().flush().map_err(FlushError::Log)?;
        }
        self.decided.store(last.0, Ordering::Relaxed);
        Ok(())
    }

    fn flush_binlog(
        &self,
        files: &BinlogFileWriter,
        reservation: Option<LogReservation>,
        out: &StreamOut,
        batch: &Batch,
    ) -> Result<(), FlushError> {
        if let Some(reservation) = reservation {
            record::append_binlog_record(self.main(), reservation, out);
            self.main().flush().map_err(FlushError::Log)?;
        }
        self.write_binlog(files, batch)
    }

    fn fill_rotation_reserve(&self, reserve: &RotationReserve) {
        if self.has_binlog_bytes() {
            reserve.fill(self.main());
        }
    }

    fn marks(&self) -> Marks {
        Marks { main: main_mark(self.main()), engines: self.engine_marks() }
    }

    fn engine_logs(&self, marks: &Marks) -> Option<EngineLogs> {
        Some(EngineLogs { pair: self.pair, from: marks.engines.clone() })
    }

    fn release_engine_logs(&self, marks: &Marks) -> Result<(), LogError> {
        for (engine, log) in self.engines() {
            log.checkpoint(marks.of(engine), &record::encode_engine_log(self.pair, engine))?;
        }
        Ok(())
    }

    fn group_syncs_of(&self, participant: ParticipantId) -> u64 {
        self.logs[self.place_of(participant)].group_syncs.load(Ordering::Relaxed)
    }

    fn set_group_sync(&self, is_on: bool) {
        self.is_synced_each.store(!is_on, Ordering::Relaxed);
    }

    fn set_overlap(&self, is_on: bool) {
        self.overlaps.store(is_on, Ordering::Relaxed);
    }

    fn note_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}
