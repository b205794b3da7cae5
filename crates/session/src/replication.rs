//! What statements ask of the replica side: the seam between the executor and the replica.

use std::time::Duration;

use cohort_base::{ConnectionId, Gtid};
use cohort_types::{ErrorCode, SqlError, SqlResult, Value, Warning};

/// Which connections a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    /// One; empty is the default one.
    One(String),
    All,
}

/// An option of CHANGE MASTER: its name in upper case, and its value.
pub type SourceOption = (String, Value);

/// Which threads START and STOP are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaThreads {
    pub io: bool,
    pub sql: bool,
}

/// START SLAVE UNTIL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplicaUntil {
    #[default]
    Never,
    /// File and position of the source.
    Master(String, u64),
    /// File and position of the relay log.
    Relay(String, u64),
    Gtid(Vec<Gtid>),
}

/// What a thread that applies has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplierReport {
    /// In the list of processes; None: it does not run.
    pub id: Option<ConnectionId>,
    /// What stopped it; 0 is nothing.
    pub error_number: u32,
    pub error_text: String,
    /// When, in microseconds; 0 is never.
    pub error_at_us: u64,
    /// The transaction that it began last.
    pub seen: Option<Gtid>,
    /// How often that was begun again.
    pub retries: u64,
    /// How long it waited for work.
    pub idle_s: u64,
}

/// What is configured for a source, and how applying its transactions goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    pub name: String,
    pub host: String,
    pub port: u16,
    pub user: String,
    /// As SHOW SLAVE STATUS prints it.
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
    /// Transactions that were begun again.
    pub retried: u64,
    pub is_applying: bool,
    pub applier: ApplierReport,
    pub workers: Vec<ApplierReport>,
}

/// The replica side of a server.
pub trait ReplicaControl: Send + Sync {
    /// CHANGE MASTER; what came to mind is the statement's notes.
    fn change_master(&self, name: &str, options: &[SourceOption]) -> SqlResult<Vec<Warning>>;

    /// START SLAVE.
    fn start(
        &self,
        name: &SourceName,
        threads: ReplicaThreads,
        until: &ReplicaUntil,
    ) -> SqlResult<Vec<Warning>>;

    /// STOP SLAVE; at return they have stopped.
    fn stop(&self, name: &SourceName, threads: ReplicaThreads) -> SqlResult<Vec<Warning>>;

    /// RESET SLAVE [ALL].
    fn reset(&self, name: &str, all: bool) -> SqlResult<()>;

    /// The values of SHOW SLAVE STATUS, a row per connection, in the order of its columns; with the three
    /// columns before and those behind that SHOW ALL SLAVES STATUS has.
    fn status(&self, name: &SourceName) -> SqlResult<Vec<Vec<Value>>>;

    /// What `performance_schema` says of each connection.
    fn reports(&self) -> Vec<SourceReport>;

    /// SHOW RELAYLOG EVENTS: Log_name, Pos, Event_type, Server_id, End_log_pos, Info. `ask` is called for
    /// each event, with the bytes that its row has beside the fixed ones, and may end it.
    fn relay_events(
        &self,
        name: &str,
        log: Option<&str>,
        from: u64,
        most: usize,
        ask: &mut dyn FnMut(usize) -> SqlResult<()>,
    ) -> SqlResult<Vec<Vec<Value>>>;

    /// FLUSH RELAY LOGS.
    fn rotate_relay_logs(&self) -> SqlResult<()>;

    /// gtid_slave_pos: what is applied and published.
    fn applied(&self) -> Vec<Gtid>;

    /// SET GLOBAL gtid_slave_pos. Answers what the client is to be warned of.
    fn set_applied(&self, position: &str) -> SqlResult<Vec<SqlError>>;

    /// Waits a moment for `applied` to change.
    fn await_change(&self, most: Duration);

    /// MASTER_POS_WAIT: how many transactions were waited for; None if no applier runs, or it stopped;
    /// Some(-1) after the time. `ask` is called now and then and may end the wait.
    fn wait_for_file_position(
        &self,
        name: &str,
        file: &str,
        position: u64,
        timeout: Option<Duration>,
        ask: &mut dyn FnMut(Duration) -> SqlResult<()>,
    ) -> SqlResult<Option<i64>>;
}

/// A position has one GTID of each domain: error 1943.
pub fn check_domains(position: &[Gtid]) -> SqlResult<()> {
    for (n, gtid) in position.iter().enumerate() {
        if let Some(other) = position[..n].iter().find(|other| other.domain == gtid.domain) {
            let text = format!("GTID {gtid} and {other} conflict (duplicate domain id {})", gtid.domain);
            return Err(SqlError::new(ErrorCode::DuplicateGtidDomain, text));
        }
    }
    Ok(())
}

/// Error 1941.
pub fn parse_gtids(text: &str) -> SqlResult<Vec<Gtid>> {
    Gtid::parse_list(text)
        .map_err(|_| SqlError::new(ErrorCode::IncorrectGtidState, "Could not parse GTID list"))
}
