//! Purge of old binary log files, by age (`binlog_expire_logs_seconds`) and by total size
//! (`max_binlog_total_size`).
//!
//! A round checks the files when the log has switched to a new file, when a global variable was set, and
//! otherwise every ten minutes. A file that is held back is reported once per holder and file.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cohort_commit::{Coordinator, PurgeError, PurgeRule, Purged};
use cohort_config::{Globals, VarId};
use cohort_vfs::SharedClock;

use crate::error_log::ErrorLog;

/// Time between two rounds.
const ROUND_EVERY: Duration = Duration::from_secs(1);
/// Number of rounds without a change after which the files are checked anyway.
const ROUNDS_IDLE_MAX: u32 = 600;

/// State of the periodic purge.
pub struct BinlogExpiry {
    commit: Weak<Coordinator>,
    globals: Arc<Globals>,
    clock: SharedClock,
    /// File and generation of variables at the last check.
    seen: (u32, u64),
    rounds_idle: u32,
    logged: Option<String>,
}

/// Result of a round, for the error log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Number of removed files.
    pub removed: usize,
    /// Reason why other files were not removed.
    pub warning: Option<String>,
}

impl BinlogExpiry {
    /// Creates the purge. It ends when the coordinator is dropped.
    pub fn new(commit: &Arc<Coordinator>, globals: &Arc<Globals>, clock: &SharedClock) -> BinlogExpiry {
        BinlogExpiry {
            commit: Arc::downgrade(commit),
            globals: Arc::clone(globals),
            clock: Arc::clone(clock),
            seen: (0, 0),
            rounds_idle: 0,
            logged: None,
        }
    }

    /// Runs rounds until the server ends.
    pub fn run(mut self, log: &ErrorLog) {
        while let Some(round) = self.round() {
            if round.removed > 0 {
                log.note(format_args!("{} old binary log files were removed", round.removed));
            }
            if let Some(warning) = round.warning {
                log.warning(format_args!("{warning}"));
            }
            std::thread::sleep(ROUND_EVERY);
        }
    }

    /// Runs one round. Returns `None` if the coordinator was dropped.
    pub fn round(&mut self) -> Option<Round> {
        let commit = self.commit.upgrade()?;
        let Some((position, _)) = commit.binlog_status() else { return Some(Round::default()) };
        let now = (position.file, self.globals.generation());
        self.rounds_idle += 1;
        if now == self.seen && self.rounds_idle < ROUNDS_IDLE_MAX {
            return Some(Round::default());
        }
        (self.seen, self.rounds_idle) = (now, 0);
        let mut round = Round::default();
        let mut held_back = None;
        for rule in self.rules() {
            match self.purge(&commit, rule) {
                Ok(Purged { files, held_back: held }) => {
                    round.removed += files.len();
                    held_back = held_back.or(held);
                }
                Err(error) => {
                    round.warning = Some(format!("Cannot remove old binary log files: {error}"));
                    return Some(round);
                }
            }
        }
        let text = held_back.map(|held| {
            format!("Binary log files from '{}' on are not purged: {} needs them", held.file, held.by)
        });
        if text != self.logged {
            round.warning.clone_from(&text);
            self.logged = text;
        }
        Some(round)
    }

    fn rules(&self) -> Vec<PurgeRule> {
        let mut rules = Vec::new();
        let (keep_s, now_s) =
            (self.globals.uint(VarId::BinlogExpireLogsSeconds), self.clock.wall_us() / 1_000_000);
        if keep_s > 0 && keep_s < now_s {
            rules.push(PurgeRule::ClosedBefore((now_s - keep_s) as u32));
        }
        match self.globals.uint(VarId::MaxBinlogTotalSize) {
            0 => {}
            bytes => rules.push(PurgeRule::TotalBytes(bytes)),
        }
        rules
    }

    fn purge(&self, commit: &Coordinator, rule: PurgeRule) -> Result<Purged, PurgeError> {
        let needed = self.globals.uint(VarId::SlaveConnectionsNeededForPurge) as usize;
        let connected = commit.binlog_readers();
        if connected >= needed {
            return commit.purge_binlog(rule);
        }
        let Some(file) = commit.first_to_purge(rule)? else { return Ok(Purged::default()) };
        let by = format!("slave_connections_needed_for_purge={needed}, with {connected} replicas connected,");
        Ok(Purged { files: Vec::new(), held_back: Some(cohort_commit::HeldBack { file, by }) })
    }
}
