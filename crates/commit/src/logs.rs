//! The logs of a server: one for all, or one for each engine.
//!
//! # Concepts
//! - [`LogLayout`] is chosen when a data directory is created, and stored in it: in the payload of the
//!   coordinator's log, `log/`, which every layout has.
//! - *shared*: `log/` is the one log. It holds whole transactions, including their binlog bytes, and decides
//!   (I2).
//! - *separate*: each engine has its own log, `log.engine-N/`, and the binlog decides (`separate.rs`). `log/`
//!   holds the redo of the participants that are not engines (catalog, a replica's position, prepared XA
//!   branches), and the decisions about transactions that are not in the binlog.
//!
//! Only the implementations of [`Logs`] (`shared.rs`, `separate.rs`) and the start (`open.rs`,
//! `open_logs.rs`, the two recoveries) know the layout. The pipeline, the coordinator and the checkpoints
//! know one [`Logs`].

use std::fmt;
use std::path::{Path, PathBuf};

use cohort_base::{BinlogPos, CommitSeq, Lsn, ParticipantId};
use cohort_binlog::{Batch, BinlogFileWriter, Stream, StreamOut};
use cohort_log::{Log, LogError, LogReservation, LogStats};

use crate::error::{CommitError, FlushError};
use crate::record::{self, EngineLogs};
use crate::request::{CommitRequest, SpilledRedo, Trx};
use crate::reservations::TrxReservations;
use crate::rotation_reserve::RotationReserve;

/// The number of logs, and the one that decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLayout {
    /// One log for the binlog and all engines.
    #[default]
    Shared,
    /// A log for each engine, with the binlog as the coordinator's record.
    Separate,
}

impl LogLayout {
    /// Returns the value of the setting `log_layout`.
    pub fn name(self) -> &'static str {
        match self {
            LogLayout::Shared => "shared",
            LogLayout::Separate => "separate",
        }
    }
}

impl fmt::Display for LogLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the directory of the coordinator's log.
pub fn main_dir(datadir: &Path) -> PathBuf {
    datadir.join("log")
}

/// Returns the directory of an engine's log in the separate layout.
pub fn engine_dir(datadir: &Path, engine: ParticipantId) -> PathBuf {
    datadir.join(format!("log.engine-{}", engine.0))
}

/// Ends of the logs while the order stage is held and everything ordered is durable: recovery can start
/// there.
pub struct Marks {
    pub main: Lsn,
    /// One for each engine's log in the separate layout.
    pub engines: Vec<(ParticipantId, Lsn)>,
}

impl Marks {
    /// Returns the end of the log that has the participant's redo.
    pub fn of(&self, participant: ParticipantId) -> Lsn {
        let own = self.engines.iter().find(|(id, _)| *id == participant);
        own.map_or(self.main, |(_, lsn)| *lsn)
    }
}

/// The logs of a server, open for appending, as its commit path uses them. There is one implementation for
/// each layout: [`crate::shared::SharedLog`] and [`crate::separate::SeparateLogs`].
pub trait Logs: Send + Sync {
    /// Returns the layout.
    fn layout(&self) -> LogLayout;

    /// Returns whether a group is durable only once the files of the binlog are synced.
    fn is_decided_by_binlog(&self) -> bool;

    /// Returns whether the coordinator's log gets the bytes of the binlog.
    fn has_binlog_bytes(&self) -> bool {
        true
    }

    /// Returns the coordinator's log.
    fn main(&self) -> &Log;

    /// Returns the log that has the participant's redo.
    fn log_of(&self, participant: ParticipantId) -> &Log;

    /// Returns all logs, the coordinator's first.
    fn each(&self) -> Vec<&Log>;

    /// Reserves space for the records of a transaction, at prepare. `reserve` reserves in one log.
    fn reserve(&self, of: &LogNeeds<'_>, reserve: Reserve<'_>) -> Result<TrxReservations, CommitError>;

    /// Syncs the logs that the transaction is going to write to, if the settings ask for it.
    fn sync_at_prepare(&self, reserved: &TrxReservations) -> Result<(), LogError> {
        let _ = reserved;
        Ok(())
    }

    /// Appends the records of a member of a group, for the leader. Returns the decision about the group if it
    /// ends with this member. `buffer` is reused for the members of a group.
    fn append(&self, member: &Member<'_>, trx: &mut Trx, buffer: &mut Vec<u8>) -> Option<Decision>;

    /// Begins a new file of the binlog if the current one is full. Returns its bytes. If log space is needed
    /// for that and none is reserved, a later group does it.
    fn rotate(
        &self,
        stream: &mut Stream,
        reserve: &RotationReserve,
        now_s: &dyn Fn() -> u32,
    ) -> Option<StreamOut>;

    /// Syncs everything that was appended before the call (I4).
    fn sync(&self) -> Result<(), LogError>;

    /// Returns whether the next group may be written and synced while this one is decided.
    fn overlaps(&self, written: &Written) -> bool {
        let _ = written;
        false
    }

    /// Makes a synced group durable, if it is not yet. `files` are those of the binlog.
    fn decide(&self, written: &mut Written, files: Option<&BinlogFileWriter>) -> Result<(), FlushError> {
        let _ = (written, files);
        Ok(())
    }

    /// Makes bytes of the binlog durable that belong to no transaction. `reservation` is the reservation in
    /// the coordinator's log if that gets them.
    fn flush_binlog(
        &self,
        files: &BinlogFileWriter,
        reservation: Option<LogReservation>,
        out: &StreamOut,
        batch: &Batch,
    ) -> Result<(), FlushError>;

    /// Refills the reservation for a change of the binlog file, if it needs log space.
    fn fill_rotation_reserve(&self, reserve: &RotationReserve) {
        let _ = reserve;
    }

    /// Returns the ends of the logs. The order stage is held and everything ordered is durable.
    fn marks(&self) -> Marks;

    /// Returns the part of a checkpoint about the engines' logs, if they have logs of their own.
    fn engine_logs(&self, marks: &Marks) -> Option<EngineLogs> {
        let _ = marks;
        None
    }

    /// Releases the engines' logs below the marks. The coordinator's log has the checkpoint already.
    fn release_engine_logs(&self, marks: &Marks) -> Result<(), LogError> {
        let _ = marks;
        Ok(())
    }

    /// Returns the number of syncs by leaders of the log that has the participant's redo; with one log, of
    /// all its syncs.
    fn group_syncs_of(&self, participant: ParticipantId) -> u64;

    /// Sets `binlog_group_commit_sync_engine`.
    fn set_group_sync(&self, is_on: bool) {
        let _ = is_on;
    }

    /// Sets whether a group is synced while the previous one is decided.
    fn set_overlap(&self, is_on: bool) {
        let _ = is_on;
    }

    /// Records that the server is about to stop: a write that finds no space fails from now on.
    fn note_stopping(&self) {}

    /// Returns the counters of all logs together.
    fn stats(&self) -> LogStats {
        self.each().into_iter().map(Log::stats).fold(LogStats::default(), add)
    }

    /// Returns the counters of the log that has the participant's redo.
    fn stats_of(&self, participant: ParticipantId) -> LogStats {
        self.log_of(participant).stats()
    }

    /// Returns the error that has stopped one of the logs, if any.
    fn poisoned(&self) -> Option<LogError> {
        self.each().into_iter().find_map(Log::poisoned)
    }

    /// Returns the largest number of bytes that one of the logs retains for recovery.
    fn retained_bytes_max(&self) -> u64 {
        self.each().into_iter().map(|log| log.appended().0 - log.retained().0).max().unwrap_or(0)
    }

    /// Sets whether segments prepared from now on are written through the page cache.
    fn set_buffered(&self, buffered: bool) {
        self.each().into_iter().for_each(|log| log.set_buffered(buffered));
    }

    /// Closes all logs, the coordinator's last.
    fn close(&self) -> Result<(), LogError> {
        self.each().into_iter().rev().try_for_each(Log::close)
    }
}

/// Reserves this number of payload bytes in a log.
pub type Reserve<'r> = &'r mut dyn FnMut(&Log, u64) -> Result<LogReservation, CommitError>;

/// A transaction that is going to need log space.
pub struct LogNeeds<'r> {
    pub request: &'r CommitRequest,
    /// For each element of its redo, its spill file.
    pub spilled: &'r [Option<SpilledRedo>],
    /// It gets events in the binlog.
    pub is_logged: bool,
}

impl LogNeeds<'_> {
    /// Returns the maximum payload bytes of a COMMIT record, with those of a TIME record if `has_time`.
    pub fn commit_bytes_max(&self, has_time: bool) -> u64 {
        let redo = self.request.redo.iter().zip(self.spilled);
        let of_redo = redo.map(|((_, redo), spilled)| record::redo_bytes_max(redo, spilled.as_ref()));
        let mut bytes = record::OVERHEAD_BYTES + of_redo.sum::<u64>();
        if has_time {
            bytes += record::OVERHEAD_BYTES;
        }
        if let Some(part) = &self.request.binlog {
            bytes += Stream::trx_bytes_max(&part.events) + record::OVERHEAD_BYTES;
        }
        bytes
    }
}

/// A member of a group that is being written.
pub struct Member<'o> {
    pub seq: CommitSeq,
    /// The newest transaction that is known to have passed the publish gate once this member is durable.
    pub released: CommitSeq,
    /// Its bytes in the binlog.
    pub out: &'o StreamOut,
    /// The position after them. `None` if it has none.
    pub end: Option<BinlogPos>,
    /// The time to log before it, in microseconds since 1970.
    pub time_us: Option<u64>,
}

/// The decision about a group, to be made after its binlog bytes are synced.
pub struct Decision {
    pub last: CommitSeq,
    /// Reservation for the DECIDED record; `None` if the group's last member is in the binlog.
    pub reservation: Option<LogReservation>,
}

/// A group's state between its write and its decision.
pub struct Written {
    /// `None` with the binlog off.
    pub(crate) binlog: Option<BinlogBytes>,
    /// The decision yet to be made; `None` with one log.
    pub(crate) decision: Option<Decision>,
    /// When the leader began to sync.
    pub(crate) began_ns: u64,
}

/// The binlog bytes of a group, with those of its file change.
pub(crate) struct BinlogBytes {
    pub batch: Batch,
    /// The position after them.
    pub end: BinlogPos,
}

/// Returns the end of the coordinator's log for [`Logs::marks`].
pub fn main_mark(main: &Log) -> Lsn {
    let end = main.durable_end();
    assert_eq!(end, main.appended(), "the order stage is held and the log durable (I3)");
    end
}

fn add(sum: LogStats, one: LogStats) -> LogStats {
    LogStats {
        flushes: sum.flushes + one.flushes,
        syncs: sum.syncs + one.syncs,
        records: sum.records + one.records,
        record_bytes: sum.record_bytes + one.record_bytes,
        written_bytes: sum.written_bytes + one.written_bytes,
        sync_ns_total: sum.sync_ns_total + one.sync_ns_total,
        sync_ns_max: sum.sync_ns_max.max(one.sync_ns_max),
        sync_ns_last: sum.sync_ns_last.max(one.sync_ns_last),
        segments_created: sum.segments_created + one.segments_created,
        segments_recycled: sum.segments_recycled + one.segments_recycled,
        reserve_waits: sum.reserve_waits + one.reserve_waits,
        pinned_bytes: sum.pinned_bytes + one.pinned_bytes,
    }
}

/// `binlog_group_commit_overlap`: sync the logs for a group while the binlog is synced for the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    Off,
    On,
    /// On if the binlog is on its own device. On one device the two syncs only wait for each other, and
    /// groups are half as large.
    Auto,
}
