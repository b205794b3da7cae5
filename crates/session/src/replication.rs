//! The interface between statements and the replica side.

use std::time::Duration;

use cohort_base::{ConnectionId, Gtid};
use cohort_types::{SqlError, SqlResult, Value, Warning};

/// The connections that a statement applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// One connection; the empty name is the default connection.
    One(String),
    All,
}

/// An option of CHANGE MASTER: its name in upper case, and its value.
pub type SourceOption = (String, Value);

/// The threads that START SLAVE and STOP SLAVE apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaThreads {
    pub io: bool,
    pub sql: bool,
}

/// The condition of START SLAVE UNTIL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplicaUntil {
    #[default]
    Never,
    /// File and position in the source's binary log.
    Master(String, u64),
    /// File and position in the relay log.
    Relay(String, u64),
    Gtid(Vec<Gtid>),
}

/// The status of an applier thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplierReport {
    /// Its id in the process list, or `None` if it is not running.
    pub id: Option<ConnectionId>,
    /// The error that stopped it; 0 if none.
    pub error_number: u32,
    pub error_text: String,
    /// The time of the error in microseconds; 0 if none.
    pub error_at_us: u64,
    /// The transaction that it started last.
    pub seen: Option<Gtid>,
    /// How often that transaction was retried.
    pub retries: u64,
    /// How long it was idle.
    pub idle_s: u64,
}

/// The configuration of a source, and the status of its applier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    pub name: String,
    pub host: String,
    pub port: u16,
    pub user: String,
    /// As shown by SHOW SLAVE STATUS.
    pub use_gtid: &'static str,
    pub is_encrypted: bool,
    pub verifies_name: bool,
    pub ca: String,
    pub capath: String,
    pub cert: String,
    pub cipher: String,
    pub key: String,
    pub crl: String,
    pub crlpath: String,
    pub connect_retry_s: u32,
    pub retries_max: u32,
    pub heartbeat: Duration,
    pub ignore_server_ids: Vec<u32>,
    pub do_domain_ids: Vec<u32>,
    pub ignore_domain_ids: Vec<u32>,
    pub delay_s: u32,
    pub remaining_delay_s: Option<u64>,
    /// The number of transactions that were retried.
    pub retried: u64,
    pub is_applying: bool,
    pub applier: ApplierReport,
    pub workers: Vec<ApplierReport>,
}

/// The replica side of a server.
pub trait ReplicaControl: Send + Sync {
    /// Runs CHANGE MASTER. Returns notes for the client.
    fn change_master(&self, name: &str, options: &[SourceOption]) -> SqlResult<Vec<Warning>>;

    /// Runs START SLAVE.
    fn start(
        &self,
        name: &SourceName,
        threads: ReplicaThreads,
        until: &ReplicaUntil,
    ) -> SqlResult<Vec<Warning>>;

    /// Runs STOP SLAVE. Returns after the threads have stopped.
    fn stop(&self, name: &SourceName, threads: ReplicaThreads) -> SqlResult<Vec<Warning>>;

    /// Runs RESET SLAVE [ALL].
    fn reset(&self, name: &str, all: bool) -> SqlResult<()>;

    /// Returns the rows of SHOW SLAVE STATUS, one per connection, with the columns in order. Each row
    /// includes the leading and trailing columns that only SHOW ALL SLAVES STATUS has.
    fn status(&self, name: &SourceName) -> SqlResult<Vec<Vec<Value>>>;

    /// Returns the configuration and status of each connection, for `performance_schema`.
    fn reports(&self) -> Vec<SourceReport>;

    /// Returns statements that make the same connections again in another data directory, with their
    /// passwords. They continue by GTID, because file positions belong to the rows of this directory.
    fn again(&self) -> Vec<String>;

    /// Returns the rows of SHOW RELAYLOG EVENTS: Log_name, Pos, Event_type, Server_id, End_log_pos, Info.
    /// Calls `ask` for each event with the size of its variable-length columns; an error from `ask` ends the
    /// listing.
    fn relay_events(
        &self,
        name: &str,
        log: Option<&str>,
        from: u64,
        most: usize,
        ask: &mut dyn FnMut(usize) -> SqlResult<()>,
    ) -> SqlResult<Vec<Vec<Value>>>;

    /// Rotates the relay logs, for FLUSH RELAY LOGS.
    fn rotate_relay_logs(&self) -> SqlResult<()>;

    /// Returns gtid_slave_pos: the position that is applied and published.
    fn applied(&self) -> Vec<Gtid>;

    /// Sets gtid_slave_pos. Returns warnings for the client.
    fn set_applied(&self, position: &str) -> SqlResult<Vec<SqlError>>;

    /// Waits for `applied` to change, for at most `most`.
    fn await_change(&self, most: Duration);

    /// Waits for a position, for MASTER_POS_WAIT. Returns how many transactions it waited for, `None` if no
    /// applier is running or it stopped, and `Some(-1)` after the timeout. `ask` is called at intervals; an
    /// error from it ends the wait.
    fn wait_for_file_position(
        &self,
        name: &str,
        file: &str,
        position: u64,
        timeout: Option<Duration>,
        ask: &mut dyn FnMut(Duration) -> SqlResult<()>,
    ) -> SqlResult<Option<i64>>;
}

/// Checks that a position has at most one GTID per domain: error 1943.
pub fn check_domains(position: &[Gtid]) -> SqlResult<()> {
    for (n, gtid) in position.iter().enumerate() {
        if let Some(other) = position[..n].iter().find(|other| other.domain == gtid.domain) {
            return Err(SqlError::duplicate_gtid_domain(gtid, other, gtid.domain));
        }
    }
    Ok(())
}

/// Parses a GTID list: error 1941.
pub fn parse_gtids(text: &str) -> SqlResult<Vec<Gtid>> {
    Gtid::parse_list(text).map_err(|_| SqlError::malformed_gtid_list())
}
