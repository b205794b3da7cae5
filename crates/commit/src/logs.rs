//! The logs of a server: one for all, or one for each engine.
//!
//! # Concepts
//! - [`LogLayout`] is chosen when a data directory is made and stands in it: in the payload of the
//!   coordinator's log, `log/`, which every layout has.
//! - *shared*: `log/` is the one log. It holds whole transactions, binlog bytes included, and decides (I2).
//! - *separate*: each engine has a log of its own, `log.engine-N/`, and the binlog decides (`separate.rs`).
//!   `log/` holds the redo of the participants that are no engines (catalog, a replica's position, prepared
//!   XA branches), and the decisions about what is not in the binlog.
//!
//! Sessions, engines and the pipeline do not know the layout. It shows in four places: room at prepare
//! ([`Rooms`]), write and harden (`env.rs`, `separate.rs`), checkpoints ([`Logs::marks`]), and the start
//! (`open.rs`).

use std::fmt;
use std::path::{Path, PathBuf};

use cohort_base::{Lsn, ParticipantId};
use cohort_log::{Log, LogError, LogStats, Room};

use crate::separate::SeparateLogs;

/// How many logs there are, and which of them decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLayout {
    /// One log for the binlog and all engines.
    #[default]
    Shared,
    /// A log for each engine, with the binlog as the coordinator's record.
    Separate,
}

impl LogLayout {
    /// As the setting `log_layout` spells it.
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

/// The coordinator's log.
pub fn main_dir(datadir: &Path) -> PathBuf {
    datadir.join("log")
}

/// The log of an engine in the separate layout.
pub fn engine_dir(datadir: &Path, engine: ParticipantId) -> PathBuf {
    datadir.join(format!("log.engine-{}", engine.0))
}

/// The logs, open for appending.
pub enum Logs {
    Shared(Log),
    Separate(Box<SeparateLogs>),
}

/// Room for what a transaction writes, promised at prepare (I6).
pub enum Rooms {
    /// For its one record; taken when that is written.
    Shared(Option<Room>),
    Separate {
        /// For each of its PREPARE records, by the log's place.
        parts: Vec<(usize, Room)>,
        /// For the decision, unless the binlog decides.
        decision: Option<Room>,
    },
}

impl Default for Rooms {
    /// Nothing; what is left when it was used.
    fn default() -> Rooms {
        Rooms::Shared(None)
    }
}

/// Where the logs end while the order stage is held and all that is ordered is hardened: recovery can start
/// there.
pub struct Marks {
    pub main: Lsn,
    /// Of each engine's log in the separate layout.
    pub engines: Vec<(ParticipantId, Lsn)>,
}

impl Marks {
    /// The place in the log that has the participant's redo.
    pub fn of(&self, participant: ParticipantId) -> Lsn {
        let own = self.engines.iter().find(|(id, _)| *id == participant);
        own.map_or(self.main, |(_, lsn)| *lsn)
    }
}

impl Logs {
    /// The layout.
    pub fn layout(&self) -> LogLayout {
        match self {
            Logs::Shared(_) => LogLayout::Shared,
            Logs::Separate(_) => LogLayout::Separate,
        }
    }

    /// The coordinator's log.
    pub fn main(&self) -> &Log {
        match self {
            Logs::Shared(log) => log,
            Logs::Separate(logs) => logs.main(),
        }
    }

    /// The logs, if each engine has its own.
    pub fn separate(&self) -> Option<&SeparateLogs> {
        match self {
            Logs::Shared(_) => None,
            Logs::Separate(logs) => Some(logs),
        }
    }

    /// All of them, the coordinator's first.
    fn each(&self) -> Vec<&Log> {
        match self {
            Logs::Shared(log) => vec![log],
            Logs::Separate(logs) => logs.each().collect(),
        }
    }

    /// Counters of all together.
    pub fn stats(&self) -> LogStats {
        match self {
            Logs::Shared(log) => log.stats(),
            Logs::Separate(logs) => logs.each().map(Log::stats).fold(LogStats::default(), add),
        }
    }

    /// Counters of the log that has the participant's redo.
    pub fn stats_of(&self, participant: ParticipantId) -> LogStats {
        self.log_of(participant).stats()
    }

    /// The log that has the participant's redo.
    pub fn log_of(&self, participant: ParticipantId) -> &Log {
        match self {
            Logs::Shared(log) => log,
            Logs::Separate(logs) => logs.log_of(participant),
        }
    }

    /// Whether a failure has stopped one of them, and which.
    pub fn poisoned(&self) -> Option<LogError> {
        self.each().into_iter().find_map(Log::poisoned)
    }

    /// The most that one of them holds for recovery.
    pub fn retained_bytes_max(&self) -> u64 {
        self.each().into_iter().map(|log| log.appended().0 - log.retained().0).max().unwrap_or(0)
    }

    /// The order stage is held and what is ordered is hardened.
    pub fn marks(&self) -> Marks {
        let main = self.main().hardened();
        assert_eq!(main, self.main().appended(), "the order stage is held and the log hardened (I3)");
        Marks { main, engines: self.separate().map_or(Vec::new(), SeparateLogs::engine_marks) }
    }

    /// Whether segments that are made ready from now on are written through the page cache.
    pub fn set_buffered(&self, buffered: bool) {
        self.each().into_iter().for_each(|log| log.set_buffered(buffered));
    }

    /// Closes them, the coordinator's last.
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
