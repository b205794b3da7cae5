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
//! Sessions, engines and the pipeline do not know the layout. Four places do: the reservation of log space at
//! prepare ([`TrxReservations`]), write and harden (`env.rs`, `separate.rs`), checkpoints ([`Logs::marks`]),
//! and the start (`open.rs`).

use std::fmt;
use std::path::{Path, PathBuf};

use cohort_base::{Lsn, ParticipantId};
use cohort_log::{Log, LogError, LogReservation, LogStats};

use crate::separate::SeparateLogs;

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

/// The logs, open for appending.
pub enum Logs {
    Shared(Log),
    Separate(Box<SeparateLogs>),
}

/// Log reservations of a transaction, made at prepare (I6).
pub enum TrxReservations {
    /// For its one record; taken when the record is written.
    Shared(Option<LogReservation>),
    Separate {
        /// For each of its PREPARE records, with the log's index in [`SeparateLogs`].
        parts: Vec<(usize, LogReservation)>,
        /// For the DECIDED record; `None` if the binlog decides.
        decision: Option<LogReservation>,
    },
}

impl Default for TrxReservations {
    /// Returns the state after use: nothing reserved.
    fn default() -> TrxReservations {
        TrxReservations::Shared(None)
    }
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

impl Logs {
    /// Returns the layout.
    pub fn layout(&self) -> LogLayout {
        match self {
            Logs::Shared(_) => LogLayout::Shared,
            Logs::Separate(_) => LogLayout::Separate,
        }
    }

    /// Returns the coordinator's log.
    pub fn main(&self) -> &Log {
        match self {
            Logs::Shared(log) => log,
            Logs::Separate(logs) => logs.main(),
        }
    }

    /// Returns the logs of the separate layout. Returns `None` in the shared layout.
    pub fn separate(&self) -> Option<&SeparateLogs> {
        match self {
            Logs::Shared(_) => None,
            Logs::Separate(logs) => Some(logs),
        }
    }

    /// Returns all logs, the coordinator's first.
    fn each(&self) -> Vec<&Log> {
        match self {
            Logs::Shared(log) => vec![log],
            Logs::Separate(logs) => logs.each().collect(),
        }
    }

    /// Returns the counters of all logs together.
    pub fn stats(&self) -> LogStats {
        match self {
            Logs::Shared(log) => log.stats(),
            Logs::Separate(logs) => logs.each().map(Log::stats).fold(LogStats::default(), add),
        }
    }

    /// Returns the counters of the log that has the participant's redo.
    pub fn stats_of(&self, participant: ParticipantId) -> LogStats {
        self.log_of(participant).stats()
    }

    /// Returns the log that has the participant's redo.
    pub fn log_of(&self, participant: ParticipantId) -> &Log {
        match self {
            Logs::Shared(log) => log,
            Logs::Separate(logs) => logs.log_of(participant),
        }
    }

    /// Returns the error that has stopped one of the logs, if any.
    pub fn poisoned(&self) -> Option<LogError> {
        self.each().into_iter().find_map(Log::poisoned)
    }

    /// Returns the largest number of bytes that one of the logs retains for recovery.
    pub fn retained_bytes_max(&self) -> u64 {
        self.each().into_iter().map(|log| log.appended().0 - log.retained().0).max().unwrap_or(0)
    }

    /// Returns the ends of the logs. The order stage is held and everything ordered is durable.
    pub fn marks(&self) -> Marks {
        let main = self.main().hardened();
        assert_eq!(main, self.main().appended(), "the order stage is held and the log hardened (I3)");
        Marks { main, engines: self.separate().map_or(Vec::new(), SeparateLogs::engine_marks) }
    }

    /// Sets whether segments prepared from now on are written through the page cache.
    pub fn set_buffered(&self, buffered: bool) {
        self.each().into_iter().for_each(|log| log.set_buffered(buffered));
    }

    /// Closes all logs, the coordinator's last.
    pub fn close(&self) -> Result<(), LogError> {
        self.each().into_iter().rev().try_for_each(Log::close)
    }
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
    }
}
