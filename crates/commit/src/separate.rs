//! The classical layout: a log for each engine, and the binlog as the coordinator's record.
//!
//! # Purpose
//! Two flushes deep, whatever the number of engines: all engines' logs at once, then the binlog. It serves
//! those who want binlog and data on devices of their own, and shows what the one log saves.
//!
//! # Outline
//! ```text
//! prepare (session):    redo is built and kept in memory; room in each log that gets a part of it
//! order:                as in every layout
//! write (leader):       for each member in CommitSeq order: its binlog bytes get their places in memory,
//!                       a PREPARE record goes to each log that has redo of it
//! sync (leader):        sync all logs that have something new, at once
//! decide (decider):     write the binlog bytes to their file, sync it            <- the decision
//!                       if the group ends with members that are not in the binlog:
//!                           DECIDED record to the coordinator's log, sync it     <- their decision
//! hardened, publish, acknowledge: as in every layout
//! ```
//! While a group is decided by the binlog, the next one may be written to the logs and synced there
//! ([`Overlap`]). A group that needs a DECIDED record keeps the others away: records of a
//! later group must not lie before it, because recovery cuts a log at the first one that is undecided.
//!
//! # Concepts
//! - **PREPARE** is appended by the leader, not by the session: so each log is in CommitSeq order (I1), and
//!   what is undecided after a crash is the end of each log. It names all logs that hold a part of the
//!   transaction, and where its events end in the binlog.
//! - **The decision** about a transaction is its last event in a synced binlog file. The binlog bytes are
//!   *written*, not only synced, after the engines' logs are synced: the kernel may write them at any time.
//!   What the binlog holds decides about all members before it too, logged or not: a group's members are one
//!   prefix. Only members behind the last logged one need a DECIDED record.
//! - **Undecided** after a crash are the members of two groups at most, the end of each log.
//! - **COMMIT marks** are lazy: each PREPARE says up to which CommitSeq all was decided when it was written,
//!   and a checkpoint says so for everything before it. With them a binlog that was cut or lost is told from
//!   one that never had the events.
//! - **Early release stays safe** (I5): what depended on an undecided transaction has a later CommitSeq, and
//!   recovery keeps a prefix.
//!
//! # States of a transaction after a crash
//! ```text
//! nowhere --write, harden--> in some logs, in all logs --binlog synced--> decided --checkpoint--> durable
//! \----------------- undecided: cut from all logs before the server opens ---/
//! ```
//!
//! # Invariants
//! - I1: only the leader appends PREPARE records, only the decider writes binlog files, and only the thread
//!   that is both appends DECIDED records.
//! - I2: the binlog decides, DECIDED records decide about what is not in it; recovery keeps the longest
//!   prefix that is decided (`separate_recovery.rs`).
//! - I3: engine files hold decided redo only: a checkpoint begins with the order stage held and everything
//!   ordered decided. Readers of the binlog get what is synced, not what is written.
//! - I4: `decide` returns when the group is decided. Every log is hardened beyond the group's records; the
//!   leader compares LSNs, no option can leave that out.
//! - I6: after a failed write or sync of any of the files the server ends. Without space for the binlog the
//!   decider waits and tries again, and `prepare` refuses meanwhile: nothing was lost, and nothing can be
//!   taken back. A server that is told to stop waits no longer and ends as after a failure: nobody was told
//!   OK, and the next start cuts what is undecided.
//! - I7: binlog files from the one of the last checkpoint on are kept, because the marks of everything before
//!   are durable; BINLOG_CHECKPOINT events tell which one that is.
//!
//! # Lock order
//! `leader`, `decider` (the pipeline's) > the stream > the writer of the binlog files.
//!
//! # Missing
//! - STOP SLAVE waits, as in MariaDB, for transactions of the replica that wait for space for the binlog.
//! - Transactions that a replica never had cannot be cut (`init_rpl_role=SLAVE`): a start that would have to
//!   is refused.
//! - Binlog checksums cannot be switched off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId};
use cohort_binlog::{Batch, BinlogError, StreamOut};
use cohort_log::{Log, LogError, Room};

use crate::binlog::{Binlog, add_to_batch};
use crate::env::{ServerEnv, Written};
use crate::error::HardenError;
use crate::logs::Rooms;
use crate::record;
use crate::request::{CommitRequest, SpilledRedo, Trx};
use crate::stage::Ordered;
use crate::syncer::Syncer;

/// The coordinator's log, as PREPARE records name it; engines' logs have their participant's number.
pub const COORDINATOR: u8 = 0;
/// Between two attempts of a leader that finds no space for the binlog.
const SPACE_PAUSE: Duration = Duration::from_millis(20);

/// A log and whose it is.
struct OwnLog {
    /// None: the coordinator's.
    engine: Option<ParticipantId>,
    log: Arc<Log>,
    /// Flushes it while the leader flushes another.
    syncer: Option<Syncer>,
    /// Flushes by leaders.
    group_syncs: AtomicU64,
}

/// What is to be decided about a group beside its binlog bytes.
pub struct Decision {
    last: CommitSeq,
    /// For the DECIDED record; none if the group's last member is in the binlog.
    room: Option<Room>,
}

/// What tells that logs belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair(pub u64);

/// `binlog_group_commit_overlap`: whether the logs are synced for a group while the binlog is synced for the
/// one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    Off,
    On,
    /// If the binlog is on a device of its own. On one device the two syncs only wait for each other, and
    /// groups are half as large.
    Auto,
}

/// The logs of the separate layout.
pub struct SeparateLogs {
    pair: Pair,
    /// The coordinator's first.
    logs: Vec<OwnLog>,
    /// All up to here is decided; written by the decider.
    decided: AtomicU64,
    /// Whether groups overlap.
    overlaps: AtomicBool,
    /// The server is about to stop: nobody waits for space any more.
    is_stopping: AtomicBool,
    /// `binlog_group_commit_sync_engine=OFF`: sessions sync the engines' logs at prepare too.
    is_synced_each: AtomicBool,
}

impl SeparateLogs {
    /// Over open logs; the engines' are not the coordinator's.
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

    /// What each log's control file says.
    pub fn pair(&self) -> Pair {
        self.pair
    }

    /// The coordinator's.
    pub fn main(&self) -> &Log {
        &self.logs[0].log
    }

    /// By its place in [`Rooms`].
    pub fn at(&self, place: usize) -> &Log {
        &self.logs[place].log
    }

    /// The one that has the participant's redo.
    pub fn log_of(&self, participant: ParticipantId) -> &Log {
        self.at(self.place_of(participant))
    }

    /// Flushes of that one by leaders.
    pub fn group_syncs_of(&self, participant: ParticipantId) -> u64 {
        self.logs[self.place_of(participant)].group_syncs.load(Ordering::Relaxed)
    }

    fn place_of(&self, participant: ParticipantId) -> usize {
        self.logs.iter().position(|own| own.engine == Some(participant)).unwrap_or(0)
    }

    fn number(&self, place: usize) -> u8 {
        self.logs[place].engine.map_or(COORDINATOR, |engine| engine.0)
    }

    /// All, the coordinator's first.
    pub fn each(&self) -> impl Iterator<Item = &Log> {
        self.logs.iter().map(|own| &*own.log)
    }

    /// The engines', by engine.
    pub fn engines(&self) -> impl Iterator<Item = (ParticipantId, &Log)> {
        self.logs.iter().filter_map(|own| Some((own.engine?, &*own.log)))
    }

    /// Where the engines' logs are hardened to: no PREPARE lies behind while the order stage is held.
    pub fn engine_marks(&self) -> Vec<(ParticipantId, Lsn)> {
        self.engines().map(|(engine, log)| (engine, log.hardened())).collect()
    }

    /// `binlog_group_commit_sync_engine`; off, sessions sync the engines' logs at prepare too.
    pub fn set_group_sync(&self, is_on: bool) {
        self.is_synced_each.store(!is_on, Ordering::Relaxed);
    }

    /// Whether a group is synced while the one before it is decided.
    pub fn set_overlap(&self, is_on: bool) {
        self.overlaps.store(is_on, Ordering::Relaxed);
    }

    /// The server is about to stop: what finds no space from here on fails.
    pub fn note_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the next group may be written and synced while this one is decided.
    pub fn overlaps(&self, written: &Written) -> bool {
        let needs_record = written.decision.as_ref().is_none_or(|decision| decision.room.is_some());
        self.overlaps.load(Ordering::Relaxed) && !needs_record
    }

    /// What the transaction needs in each log that gets a part of it: place and payload bytes. One without
    /// redo has its part in the coordinator's.
    pub fn needs(&self, request: &CommitRequest, spilled: &[Option<SpilledRedo>]) -> Vec<(usize, u64)> {
        let mut needs: Vec<(usize, u64)> = Vec::with_capacity(2);
        for ((id, redo), spilled) in request.redo.iter().zip(spilled) {
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

    /// `binlog_group_commit_sync_engine=OFF`: a sync of each engine's log that the transaction is going to
    /// write to. It makes nothing durable that matters: the leader's own sync does.
    pub fn sync_each(&self, places: impl Iterator<Item = usize>) -> Result<(), LogError> {
        if !self.is_synced_each.load(Ordering::Relaxed) {
            return Ok(());
        }
        for place in places.filter(|place| self.logs[*place].engine.is_some()) {
            let log = self.at(place);
            log.append(log.reserve(0)?, record::NOTE, &[]);
            log.flush()?;
        }
        Ok(())
    }

    /// The leader appends the transaction's PREPARE records; `end` is where its events end in the binlog.
    /// Returns the room for a decision, if it brought one.
    fn append_prepare(&self, seq: CommitSeq, end: Option<BinlogPos>, trx: &mut Trx) -> Option<Room> {
        let Rooms::Separate { parts, decision } = std::mem::take(&mut trx.rooms) else {
            unreachable!("reserved at prepare (I6)")
        };
        let numbers: Vec<u8> = parts.iter().map(|(place, _)| self.number(*place)).collect();
        let decided = CommitSeq(self.decided.load(Ordering::Relaxed));
        let mut payload = Vec::new();
        for (place, room) in parts {
            payload.clear();
            let head = record::PrepareHead { seq, xid: trx.xid, decided, end, logs: &numbers };
            record::encode_prepare(&head, trx, |id| self.place_of(id) == place, &mut payload);
            self.at(place).append(room, record::PREPARE, &[&payload]);
        }
        decision
    }

    /// Syncs all logs that have something new, at once. What was appended before the call is hardened at
    /// return.
    pub fn sync_all(&self) -> Result<(), LogError> {
        let appended: Vec<Lsn> = self.each().map(Log::appended).collect();
        let mut due = (0..self.logs.len()).filter(|place| self.at(*place).hardened() < appended[*place]);
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
        let is_behind = |place: usize| self.at(place).hardened() < appended[place];
        assert!(!(0..self.logs.len()).any(is_behind), "a flush hardens all that was appended before it (I4)");
        Ok(())
    }

    /// The group's binlog bytes are synced: decides about what is not in them.
    fn decide(&self, Decision { last, room }: Decision) -> Result<(), LogError> {
        if let Some(room) = room {
            self.main().append(room, record::DECIDED, &[&last.0.to_le_bytes()]);
            self.main().flush()?;
        }
        self.decided.store(last.0, Ordering::Relaxed);
        Ok(())
    }
}

impl ServerEnv {
    /// [`crate::CommitEnv::write`] of the separate layout.
    pub(crate) fn write_separate(&self, logs: &SeparateLogs, group: &mut [Ordered<Trx>]) -> Written {
        let ids = ServerEnv::commit_ids(group);
        let mut stream = self.binlog.as_ref().map(|binlog| binlog.stream.lock());
        let (mut out, mut batch) = (StreamOut::default(), Batch::default());
        let mut decision = None;
        for (ordered, commit_id) in group.iter_mut().zip(ids) {
            out.clear();
            let seq = ordered.seq();
            if let Some(stream) = &mut stream {
                ServerEnv::stream_trx(stream, ordered.get(), commit_id, &mut out);
            }
            let end = stream.as_ref().filter(|_| !out.chunks.is_empty()).map(|stream| stream.position());
            let room = logs.append_prepare(seq, end, ordered.get_mut());
            // What is in the binlog decides about all before it, and itself.
            let room = if end.is_some() { None } else { Some(room.expect("reserved at prepare (I6)")) };
            decision = Some(Decision { last: seq, room });
            self.keep_spilled(seq, ordered.get());
            add_to_batch(&mut batch, &out);
        }
        if let Some(stream) = stream.as_mut().filter(|stream| stream.wants_rotation()) {
            out.clear();
            stream.rotate(&mut out, self.now_s());
            add_to_batch(&mut batch, &out);
        }
        Written { binlog: stream.map(|stream| self.binlog_bytes(&stream, batch)), decision, began_ns: 0 }
    }

    /// [`crate::CommitEnv::decide`] of the separate layout.
    pub(crate) fn decide_separate(
        &self,
        logs: &SeparateLogs,
        written: &mut Written,
    ) -> Result<(), HardenError> {
        if let (Some(binlog), Some(bytes)) = (&self.binlog, &written.binlog)
            && !bytes.batch.chunks.is_empty()
        {
            write_binlog(logs, binlog, &bytes.batch).map_err(HardenError::binlog)?;
        }
        let decision = written.decision.take().expect("a group is written once, and decided once");
        logs.decide(decision).map_err(HardenError::Log)
    }
}

/// Writes and syncs bytes of the binlog: what they hold is decided at return. Without space it waits, unless
/// the server is about to stop.
pub fn write_binlog(logs: &SeparateLogs, binlog: &Binlog, batch: &Batch) -> Result<(), BinlogError> {
    loop {
        match binlog.files.write_synced(batch) {
            Err(BinlogError::NoSpace { .. }) if !logs.is_stopping.load(Ordering::Relaxed) => {
                std::thread::sleep(SPACE_PAUSE);
            }
            written => return written,
        }
    }
}
