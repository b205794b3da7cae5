//! What statements ask of the replica side: the seam between the executor and the replica.

use std::time::Duration;

use cohort_base::{ConnectionId, Gtid};
use cohort_sql::ast::{ChangeMaster, Expr, Literal, SlaveControl, Statement};
use cohort_types::{ErrorCode, SqlError, SqlResult, Value, Warning};

use crate::dispatch::Job;
use crate::session::Session;
use cohort_plan::not_supported;

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

fn no_replica() -> SqlError {
    SqlError::new(
        ErrorCode::BadSlave,
        "The server is not configured as slave; fix in config file or with CHANGE MASTER TO",
    )
}

impl Session {
    /// Runs a statement about replication; false if it is none.
    pub(crate) fn run_replication(&mut self, statement: &Statement, job: &Job<'_>) -> SqlResult<bool> {
        let control = self.state.db.replica.read().clone();
        let control = || control.clone().ok_or_else(no_replica);
        let notes = match statement {
            Statement::ChangeMaster(change) => {
                let name = self.source_name(change.connection.as_deref());
                let options = self.source_options(change, job)?;
                control()?.change_master(&name, &options)?
            }
            Statement::StartSlave(start) => {
                let until = self.until(start, job)?;
                control()?.start(&self.source_names(start), threads(start), &until)?
            }
            Statement::StopSlave(stop) => control()?.stop(&self.source_names(stop), threads(stop))?,
            Statement::ResetSlave { connection, all } => {
                let name = self.source_name(connection.as_deref());
                control()?.reset(&name, *all)?;
                Vec::new()
            }
            _ => return Ok(false),
        };
        for note in notes {
            self.diagnostics.push(note);
        }
        Ok(true)
    }

    /// The connection named, or `default_master_connection`.
    fn source_name(&self, named: Option<&str>) -> String {
        let default = || self.state.vars.text(cohort_config::VarId::DefaultMasterConnection);
        named.map_or_else(|| default().as_deref().unwrap_or("").to_owned(), str::to_owned).to_lowercase()
    }

    fn source_names(&self, control: &SlaveControl) -> SourceName {
        match control.all {
            true => SourceName::All,
            false => SourceName::One(self.source_name(control.connection.as_deref())),
        }
    }

    fn source_options(&mut self, change: &ChangeMaster, job: &Job<'_>) -> SqlResult<Vec<SourceOption>> {
        change
            .options
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.option_value(value, job)?)))
            .collect()
    }

    fn option_value(&mut self, value: &Expr, job: &Job<'_>) -> SqlResult<Value> {
        match value {
            Expr::Literal(Literal { value, .. }) => Ok(value.clone()),
            other => self.eval_alone(other, job),
        }
    }

    fn until(&mut self, start: &SlaveControl, job: &Job<'_>) -> SqlResult<ReplicaUntil> {
        if start.until.is_empty() {
            return Ok(ReplicaUntil::Never);
        }
        let (mut master, mut relay, mut gtid) = ((None, None), (None, None), None);
        for (name, value) in &start.until {
            let value = self.option_value(value, job)?;
            let number =
                || value.to_int(&mut cohort_types::NoWarnings).and_then(|n| u64::try_from(n.wide()).ok());
            match name.as_str() {
                "MASTER_LOG_FILE" => master.0 = Some(value.to_text()),
                "MASTER_LOG_POS" => master.1 = number(),
                "RELAY_LOG_FILE" => relay.0 = Some(value.to_text()),
                "RELAY_LOG_POS" => relay.1 = number(),
                "MASTER_GTID_POS" => {
                    let position = parse_gtids(&value.to_text())?;
                    check_domains(&position)?;
                    gtid = Some(position);
                }
                other => return Err(not_supported(&format!("START SLAVE UNTIL {other}"))),
            }
        }
        match (master, relay, gtid) {
            ((None, None), (None, None), Some(gtids)) => Ok(ReplicaUntil::Gtid(gtids)),
            ((Some(file), Some(position)), (None, None), None) => Ok(ReplicaUntil::Master(file, position)),
            ((None, None), (Some(file), Some(position)), None) => Ok(ReplicaUntil::Relay(file, position)),
            _ => Err(SqlError::new(
                ErrorCode::BadSlaveUntilCond,
                "Incorrect parameter or combination of parameters for START SLAVE UNTIL",
            )),
        }
    }
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
pub(crate) fn parse_gtids(text: &str) -> SqlResult<Vec<Gtid>> {
    Gtid::parse_list(text)
        .map_err(|_| SqlError::new(ErrorCode::IncorrectGtidState, "Could not parse GTID list"))
}

fn threads(control: &SlaveControl) -> ReplicaThreads {
    let both = !control.io_thread && !control.sql_thread;
    ReplicaThreads { io: control.io_thread || both, sql: control.sql_thread || both }
}
