//! All connections to sources, and the statements that manage them.
//!
//! # START SLAVE
//! If neither thread is running, both begin where the position and the relay log say
//! ([`begin`](crate::begin)). If one is running, the other joins it.
//!
//! # Lock order
//! `connections` is held for look-ups only. The `control` lock of a connection is held for a whole statement.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use cohort_base::{ConnectionId, Gtid};
use cohort_binlog::GtidState;
use cohort_binlog::event::Event;
use cohort_config::VarId;
use cohort_exec::{
    Database, ReplicaControl, ReplicaThreads, ReplicaUntil, SourceName, SourceOption, SourceReport,
    check_domains,
};
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Value, Warning};
use cohort_vfs::SharedFs;
use parking_lot::Mutex;

use crate::applier::SqlThread;
use crate::budget::QueueBudget;
use crate::connection::{Connection, Io, IoRunning, ThreadError};
use crate::flusher::Flusher;
use crate::owners::Owners;
use crate::place::{RelayPlace, SourcePlace, number_of};
use crate::receiver::{Receiver, current_position};
use crate::relay::{Relay, relay_error};
use crate::replica_log::ReplicaLog;
use crate::settings::{SourceSettings, UseGtid};
use crate::state::{Change, REPLICATION, StateStore};

/// Stack size of appliers, which run statements.
const APPLIER_STACK_BYTES: usize = 8 << 20;
/// Stack size of receivers.
const RECEIVER_STACK_BYTES: usize = 1 << 20;
/// Maximum time that a shutdown waits for the threads.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Interval of checks whether a wait is to end.
const STEP: Duration = Duration::from_millis(20);

/// The parts of the server that replication needs.
pub struct ReplicaParts {
    pub db: Arc<Database>,
    pub state: Arc<StateStore>,
    pub fs: SharedFs,
    pub datadir: PathBuf,
    pub log: ReplicaLog,
    /// Assigns connection ids for the process list.
    pub next_id: Box<dyn Fn() -> ConnectionId + Send + Sync>,
}

/// The replica side of a server.
pub struct Replicas {
    parts: ReplicaParts,
    pub(crate) state: Arc<StateStore>,
    connections: Mutex<BTreeMap<String, Arc<Connection>>>,
    flusher: Arc<Flusher>,
    budget: Arc<QueueBudget>,
    owners: Arc<Owners>,
    is_closing: AtomicBool,
}

/// Error 1198.
fn must_stop(name: &str) -> SqlError {
    SqlError::slave_must_stop(name)
}

fn note(code: ErrorCode, text: impl Into<String>) -> Warning {
    Warning { level: Level::Note, error: SqlError::new(code, text) }
}

impl Replicas {
    /// Opens the connections of all known sources, without starting any thread.
    pub fn open(parts: ReplicaParts) -> Result<Arc<Replicas>, String> {
        let flusher = Flusher::start(Arc::clone(&parts.db.commit), Arc::clone(&parts.state));
        let flusher = flusher.map_err(|e| format!("cannot start a thread: {e}"))?;
        let names: Vec<String> = parts.state.ordered(|state| state.sources.keys().cloned().collect());
        let replicas = Replicas {
            state: Arc::clone(&parts.state),
            parts,
            connections: Mutex::default(),
            flusher,
            budget: Arc::default(),
            owners: Arc::default(),
            is_closing: AtomicBool::new(false),
        };
        replicas.state.ordered(|state| {
            for gtid in state.gtids.values() {
                replicas.parts.db.commit.raise_gtid(gtid.domain, gtid.seq_no);
            }
        });
        for name in names {
            replicas.connect(&name).map_err(|e| e.message)?;
        }
        Ok(Arc::new(replicas))
    }

    /// Starts the threads of all configured connections, at server start.
    pub fn start_all(&self) {
        for connection in self.all() {
            let threads = ReplicaThreads { io: true, sql: true };
            if let Err(error) = self.start_one(&connection, threads, &ReplicaUntil::Never) {
                self.parts.log.error(&connection.name, format_args!("{}", error.message));
            }
        }
    }

    /// Stops all threads, at shutdown. Ordered commits are flushed by the server's own last flush.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        // An applier may be waiting for a semi-synchronous replica.
        self.parts.db.commit.leave_gates();
        let all = self.all();
        all.iter().for_each(|connection| connection.ask_to_stop(true, true));
        let end = Instant::now() + STOP_PATIENCE;
        for connection in all {
            if !connection.await_end(true, true, end.saturating_duration_since(Instant::now())) {
                let text = format_args!("Replication threads did not end in time");
                self.parts.log.error(&connection.name, text);
            }
        }
        self.flusher.stop();
    }

    /// Returns all connections, sorted by name.
    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        self.connections.lock().values().cloned().collect()
    }

    pub(crate) fn db(&self) -> &Arc<Database> {
        &self.parts.db
    }

    /// Returns the settings of a connection.
    pub(crate) fn settings(&self, name: &str) -> SourceSettings {
        self.state.ordered(|state| state.sources.get(name).cloned()).unwrap_or_default()
    }

    fn find(&self, name: &str) -> SqlResult<Arc<Connection>> {
        self.connections.lock().get(name).cloned().ok_or_else(|| match name {
            "" => SqlError::master_host_not_set(),
            name => SqlError::no_master_connection(name),
        })
    }

    /// Returns the connection of this name, and creates it if needed.
    fn connect(&self, name: &str) -> SqlResult<Arc<Connection>> {
        if let Some(known) = self.connections.lock().get(name) {
            return Ok(Arc::clone(known));
        }
        let relay = self.open_relay_log(name)?;
        let mut connections = self.connections.lock();
        let made = || Connection::new(name.to_owned(), relay);
        Ok(Arc::clone(connections.entry(name.to_owned()).or_insert_with(made)))
    }

    pub(crate) fn fs(&self) -> &SharedFs {
        &self.parts.fs
    }

    pub(crate) fn datadir(&self) -> &Path {
        &self.parts.datadir
    }

    pub(crate) fn log(&self) -> &ReplicaLog {
        &self.parts.log
    }

    fn runs(connection: &Connection) -> (bool, bool) {
        let io = connection.io.lock().running != IoRunning::No;
        (io, connection.sql.lock().is_running)
    }

    fn check_stopped(connection: &Connection) -> SqlResult<()> {
        match Replicas::runs(connection) {
            (false, false) => Ok(()),
            _ => Err(must_stop(&connection.name)),
        }
    }

    /// Starts threads. Returns false if all of them were running.
    fn start_one(
        &self,
        connection: &Arc<Connection>,
        threads: ReplicaThreads,
        until: &ReplicaUntil,
    ) -> SqlResult<bool> {
        let _control = connection.control.lock();
        if self.is_closing.load(Ordering::SeqCst) {
            return Err(SqlError::server_shutdown());
        }
        let settings = self.settings(&connection.name);
        if settings.host.is_empty() {
            return Err(SqlError::master_host_not_set());
        }
        if matches!(until, ReplicaUntil::Gtid(_)) && settings.use_gtid == UseGtid::No {
            return Err(SqlError::until_needs_gtid());
        }
        let (io_runs, sql_runs) = Replicas::runs(connection);
        if matches!(until, ReplicaUntil::Gtid(_)) && (sql_runs || threads.io && io_runs) {
            return Err(SqlError::slave_running());
        }
        if !io_runs && !sql_runs {
            self.set_start_positions(connection, &settings, Relay::MayStay)?;
        }
        let (starts_io, starts_sql) = (threads.io && !io_runs, threads.sql && !sql_runs);
        connection.arm(starts_io, starts_sql);
        if starts_sql {
            let mut sql = connection.sql.lock();
            sql.is_running = true;
            sql.cured();
            sql.until = until.clone();
            drop(sql);
            self.spawn_sql(connection, &settings)?;
        }
        if starts_io {
            let mut io = connection.io.lock();
            io.running = IoRunning::Preparing;
            io.error = ThreadError::default();
            drop(io);
            let until = match until {
                ReplicaUntil::Gtid(until) if starts_sql => Some(until.clone()),
                _ => None,
            };
            self.spawn_io(connection, &settings, until)?;
        }
        Ok(starts_io || starts_sql)
    }

    /// Returns the GTID state of the binary log.
    pub(crate) fn logged(&self) -> GtidState {
        self.parts.db.commit.binlog_status().map(|(_, gtids)| gtids).unwrap_or_default()
    }

    /// Checks whether a position lies before this server's own transactions: errors 1947 and 1948 in GTID
    /// strict mode, warnings otherwise.
    fn behind_own_log(&self, position: &[Gtid]) -> SqlResult<Vec<SqlError>> {
        let overrides = "If MASTER_GTID_POS=CURRENT_POS is used, the binlog position will override the new value of \
             @@gtid_slave_pos";
        let is_strict = self.parts.db.globals.flag(VarId::GtidStrictMode);
        let mut warnings = Vec::new();
        let mut lacks_domain = false;
        let logged = self.logged().position();
        for own in logged.into_iter().filter(|gtid| gtid.server.0 == self.own_id()) {
            let error = match position.iter().find(|gtid| gtid.domain == own.domain) {
                None if !lacks_domain => {
                    lacks_domain = true;
                    SqlError::gtid_domain_missing(own.domain, own, overrides)
                }
                Some(given) if given.seq_no < own.seq_no => {
                    SqlError::gtid_older_than_binlog(given, own, overrides)
                }
                _ => continue,
            };
            if is_strict {
                return Err(error);
            }
            warnings.push(error);
        }
        Ok(warnings)
    }

    pub(crate) fn own_id(&self) -> u32 {
        self.parts.db.globals.uint(VarId::ServerId) as u32
    }

    /// Allocates the ids of `slave_parallel_threads` workers.
    fn worker_ids(&self) -> Vec<ConnectionId> {
        let threads = self.parts.db.globals.uint(VarId::SlaveParallelThreads);
        (0..threads).map(|_| (self.parts.next_id)()).collect()
    }

    fn spawn_sql(&self, connection: &Arc<Connection>, settings: &SourceSettings) -> SqlResult<()> {
        let thread = SqlThread {
            connection: Arc::clone(connection),
            settings: settings.clone(),
            db: Arc::clone(&self.parts.db),
            state: Arc::clone(&self.state),
            flusher: Arc::clone(&self.flusher),
            budget: Arc::clone(&self.budget),
            owners: Arc::clone(&self.owners),
            id: (self.parts.next_id)(),
            worker_ids: self.worker_ids(),
            log: self.parts.log.clone(),
        };
        let own = Arc::clone(connection);
        let clock = self.parts.db.clock.clone();
        let run = move || {
            if catch_unwind(AssertUnwindSafe(|| thread.run())).is_err() {
                let now_us = clock.wall_us();
                let mut sql = own.sql.lock();
                sql.failed(hit_a_bug(), now_us);
                sql.applier_id = None;
                sql.is_running = false;
                sql.processes.clear();
                drop(sql);
                own.notify();
            }
        };
        let spawned = Builder::new().name("slave-sql".to_owned()).stack_size(APPLIER_STACK_BYTES).spawn(run);
        spawned.map(drop).map_err(|error| {
            connection.sql.lock().is_running = false;
            no_thread(&error)
        })
    }

    fn spawn_io(
        &self,
        connection: &Arc<Connection>,
        settings: &SourceSettings,
        until: Option<Vec<Gtid>>,
    ) -> SqlResult<()> {
        let thread = Receiver {
            connection: Arc::clone(connection),
            settings: settings.clone(),
            db: Arc::clone(&self.parts.db),
            id: (self.parts.next_id)(),
            log: self.parts.log.clone(),
            until,
        };
        let own = Arc::clone(connection);
        let run = move || {
            if catch_unwind(AssertUnwindSafe(|| thread.run())).is_err() {
                let mut io = own.io.lock();
                io.error = hit_a_bug();
                io.running = IoRunning::No;
                io.socket = None;
                drop(io);
                own.notify();
            }
        };
        let spawned = Builder::new().name("slave-io".to_owned()).stack_size(RECEIVER_STACK_BYTES).spawn(run);
        spawned.map(drop).map_err(|error| {
            connection.io.lock().running = IoRunning::No;
            no_thread(&error)
        })
    }

    /// Stops threads. Returns false if none of them was running. At return their ordered commits are flushed.
    fn stop_one(&self, connection: &Arc<Connection>, threads: ReplicaThreads) -> bool {
        let _control = connection.control.lock();
        let (io_runs, sql_runs) = Replicas::runs(connection);
        let (stops_io, stops_sql) = (threads.io && io_runs, threads.sql && sql_runs);
        if !stops_io && !stops_sql {
            return false;
        }
        connection.ask_to_stop(stops_io, stops_sql);
        // A thread that has just started may have missed the first kill.
        while !connection.await_end(stops_io, stops_sql, Duration::from_millis(100)) {
            connection.ask_to_stop(stops_io, stops_sql);
        }
        self.flusher.flush();
        true
    }

    fn chosen(&self, name: &SourceName) -> SqlResult<Vec<Arc<Connection>>> {
        match name {
            SourceName::One(name) => Ok(vec![self.find(name)?]),
            SourceName::All => Ok(self.all()),
        }
    }

    pub(crate) fn commit(&self, changes: &[Change]) -> SqlResult<()> {
        self.parts.db.commit_redo(REPLICATION, Change::redo(changes))
    }

    /// Refuses to change variables that running threads have already read: error 1198.
    pub fn check_settable(&self, id: VarId) -> SqlResult<()> {
        match id.canonical() {
            VarId::SlaveParallelThreads
            | VarId::SlaveDomainParallelThreads
            | VarId::GtidIgnoreDuplicates
            | VarId::ReplicateDoDb
            | VarId::ReplicateDoTable
            | VarId::ReplicateIgnoreDb
            | VarId::ReplicateIgnoreTable
            | VarId::ReplicateRewriteDb
            | VarId::ReplicateWildDoTable
            | VarId::ReplicateWildIgnoreTable
            | VarId::ReplicateEventsMarkedForSkip => {
                self.all().iter().try_for_each(|connection| Replicas::check_stopped(connection))
            }
            _ => Ok(()),
        }
    }

    /// SET GLOBAL sql_slave_skip_counter, for the default connection.
    pub fn set_skip_counter(&self, events: u64) -> SqlResult<()> {
        let connection = self.find("")?;
        let mut sql = connection.sql.lock();
        if sql.is_running {
            return Err(must_stop(&connection.name));
        }
        sql.skip_counter = events;
        Ok(())
    }
}

/// Error text of a refused CHANGE MASTER.
fn would_lose(promised: &str) -> String {
    format!(
        "CHANGE MASTER would remove transactions that are acknowledged to the source and are not applied: \
         {promised}. START SLAVE SQL_THREAD applies them, RESET SLAVE gives them up"
    )
}

/// Warning text for transactions that SET GLOBAL gtid_slave_pos removed.
fn removed_with_position(promised: &str) -> String {
    format!(
        "The relay log was removed with transactions that are acknowledged to the source and were not \
         applied: {promised}"
    )
}

fn hit_a_bug() -> ThreadError {
    ThreadError::new(
        1105,
        "The thread hit a bug in the server; see the message of the panic in the error log",
    )
}

fn no_thread(error: &std::io::Error) -> SqlError {
    SqlError::cannot_create_thread(error)
}

impl ReplicaControl for Replicas {
    fn change_master(&self, name: &str, options: &[SourceOption]) -> SqlResult<Vec<Warning>> {
        // Invalid options must not create the connection, so they are checked first.
        let mut asked = self.settings(name);
        let net_timeout_s = self.parts.db.globals.uint(VarId::SlaveNetTimeout);
        asked.change(options, net_timeout_s)?;
        asked.demotes(options)?;
        if let Some(why) = asked.wrong_domains() {
            self.parts.log.error(name, format_args!("CHANGE MASTER: {why}"));
            return Err(SqlError::master_info_not_initialized(name));
        }
        let is_new = !self.connections.lock().contains_key(name);
        let connection = self.connect(name)?;
        let _control = connection.control.lock();
        Replicas::check_stopped(&connection)?;
        // Read again under the lock: an applier may have advanced before it stopped.
        let before = self.settings(name);
        let mut settings = before.clone();
        let notes = settings.change(options, net_timeout_s)?;
        // Files left by an unknown connection of this name do not belong to this one.
        let is_known = self.state.ordered(|state| state.sources.contains_key(name));
        let relay = match is_known && settings.goes_on_from(&before, options) {
            true => Relay::MayStay,
            false => Relay::Goes,
        };
        if relay == Relay::Goes && is_known {
            if let Some(promised) = self.promised(&connection, &before)? {
                return Err(SqlError::master_info_refused(&would_lose(&promised)));
            }
            // The files are removed before the settings change, so that after a crash no file can be
            // attributed to the new source.
            self.set_start_positions(&connection, &before, Relay::Goes)?;
        }
        let mut changes =
            vec![Change::Source { name: name.to_owned(), settings: Box::new(settings.clone()) }];
        if settings.demotes(options)? {
            // Transactions that this server wrote as a source count as applied.
            let logged = self.logged();
            let applied: Vec<Gtid> = self.state.ordered(|state| state.gtids.values().copied().collect());
            let position = current_position(&applied, &logged, self.own_id()).position();
            changes.extend(position.into_iter().map(Change::Applied));
        }
        if let Err(error) = self.commit(&changes) {
            if is_new {
                self.connections.lock().remove(name);
            }
            return Err(error);
        }
        connection.sql.lock().cured();
        connection.io.lock().error = ThreadError::default();
        match (self.set_start_positions(&connection, &settings, relay), relay) {
            // The settings are already changed. START SLAVE reports the same error again.
            (Err(error), Relay::MayStay) => self.parts.log.error(name, format_args!("{}", error.message)),
            (begun, _) => begun?,
        }
        Ok(notes)
    }

    fn start(
        &self,
        name: &SourceName,
        threads: ReplicaThreads,
        until: &ReplicaUntil,
    ) -> SqlResult<Vec<Warning>> {
        let mut notes = Vec::new();
        for connection in self.chosen(name)? {
            let started = self.start_one(&connection, threads, until)?;
            match (name, started) {
                (SourceName::One(_), false) => {
                    notes.push(note(ErrorCode::SlaveWasRunning, "Slave is already running"));
                }
                (SourceName::All, true) => {
                    notes.push(note(ErrorCode::SlaveStarted, format!("SLAVE '{}' started", connection.name)));
                }
                _ => {}
            }
        }
        Ok(notes)
    }

    fn stop(&self, name: &SourceName, threads: ReplicaThreads) -> SqlResult<Vec<Warning>> {
        let mut notes = Vec::new();
        // Without a default connection there is nothing to stop.
        let chosen = match name {
            SourceName::One(name) if name.is_empty() => self.find(name).into_iter().collect(),
            name => self.chosen(name)?,
        };
        if chosen.is_empty() && *name != SourceName::All {
            notes.push(note(ErrorCode::SlaveWasNotRunning, "Slave already has been stopped"));
        }
        for connection in chosen {
            let stopped = self.stop_one(&connection, threads);
            match (name, stopped) {
                (SourceName::One(_), false) => {
                    notes.push(note(ErrorCode::SlaveWasNotRunning, "Slave already has been stopped"));
                }
                (SourceName::All, true) => {
                    notes.push(note(ErrorCode::SlaveStopped, format!("SLAVE '{}' stopped", connection.name)));
                }
                _ => {}
            }
        }
        Ok(notes)
    }

    fn reset(&self, name: &str, all: bool) -> SqlResult<()> {
        if name.is_empty() && !self.connections.lock().contains_key(name) {
            return Ok(());
        }
        let connection = self.find(name)?;
        let _control = connection.control.lock();
        Replicas::check_stopped(&connection)?;
        if let Ok(Some(promised)) = self.promised(&connection, &self.settings(name)) {
            let text = format_args!(
                "RESET SLAVE removes transactions that are acknowledged to the source and are not \
                 applied: {promised}"
            );
            self.parts.log.warning(name, text);
        }
        // Done first, so that a crash leaves no relay log after another position.
        self.set_start_positions(&connection, &self.settings(name), Relay::Goes)?;
        if all {
            self.commit(&[Change::Forget { name: name.to_owned() }])?;
            self.connections.lock().remove(name);
            return connection.relay.remove().map_err(relay_error);
        }
        let mut settings = self.settings(name);
        (settings.file, settings.position) = (String::new(), 4);
        self.commit(&[Change::Source { name: name.to_owned(), settings: Box::new(settings.clone()) }])?;
        let master_server_id = connection.io.lock().master_server_id;
        *connection.io.lock() = Io { master_server_id, ..Io::default() };
        *connection.sql.lock() = Default::default();
        self.set_start_positions(&connection, &settings, Relay::Goes)?;
        // Shown as in MariaDB until the next start.
        connection.io.lock().gtids = GtidState::default();
        connection
            .sql
            .lock()
            .begin_at(RelayPlace::default(), SourcePlace { position: 0, ..SourcePlace::default() });
        Ok(())
    }

    fn status(&self, name: &SourceName) -> SqlResult<Vec<Vec<Value>>> {
        let connections = match name {
            SourceName::One(name) if name.is_empty() => self.find(name).into_iter().collect(),
            name => self.chosen(name)?,
        };
        Ok(connections.iter().map(|connection| self.status_of(connection)).collect())
    }

    fn reports(&self) -> Vec<SourceReport> {
        self.all().iter().map(|connection| self.report_of(connection)).collect()
    }

    fn again(&self) -> Vec<String> {
        let sources = self.state.ordered(|state| state.sources.clone());
        sources.iter().map(|(name, settings)| settings.statement(name)).collect()
    }

    fn relay_events(
        &self,
        name: &str,
        log: Option<&str>,
        from: u64,
        most: usize,
        ask: &mut dyn FnMut(usize) -> SqlResult<()>,
    ) -> SqlResult<Vec<Vec<Value>>> {
        let no_log = |what: &str| SqlError::show_binlog_events_failed(what);
        let connection = match self.find(name) {
            Err(_) if name.is_empty() => return Ok(Vec::new()),
            found => found?,
        };
        let relay = &connection.relay;
        let number = match log {
            Some(log) => relay.find(log).ok_or_else(|| no_log("Could not find target log"))?,
            None => match relay.first() {
                Some(number) => number,
                None => return Ok(Vec::new()),
            },
        };
        let mut reader = relay.read_file(number).map_err(|e| no_log(&e.to_string()))?;
        let mut rows = Vec::new();
        while rows.len() < most {
            let Some(raw) = reader.next_event().map_err(|e| no_log(&e.to_string()))? else { break };
            if raw.offset < from {
                ask(0)?;
                continue;
            }
            let event = reader.decode(&raw).map_err(|e| no_log(&e.to_string()))?;
            let inflated = match &event {
                Event::Query(query) => query.inflated_bytes().map_err(|e| no_log(&e.to_string()))?,
                _ => 0,
            };
            ask(inflated as usize)?;
            let info = event.info(&raw.header).map_err(|e| no_log(&e.to_string()))?;
            ask(info.len().saturating_sub(inflated as usize))?;
            rows.push(vec![
                Value::text(relay.file_name(number)),
                Value::UInt(raw.offset),
                Value::text(raw.header.kind.name()),
                Value::Int(raw.header.server_id.0.into()),
                Value::UInt(raw.header.log_pos.into()),
                Value::text(String::from_utf8_lossy(&info)),
            ]);
        }
        Ok(rows)
    }

    fn rotate_relay_logs(&self) -> SqlResult<()> {
        for connection in self.all() {
            connection.rotates_relay.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn applied(&self) -> Vec<Gtid> {
        let published = self.parts.db.commit.read_view().seq();
        self.state.published(published, |state| state.gtids.values().copied().collect())
    }

    fn set_applied(&self, position: &str) -> SqlResult<Vec<SqlError>> {
        let gtids = Gtid::parse_list(position).map_err(|_| SqlError::malformed_gtid_list())?;
        check_domains(&gtids)?;
        let all = self.all();
        let _controls: Vec<_> = all.iter().map(|connection| connection.control.lock()).collect();
        all.iter().try_for_each(|connection| Replicas::check_stopped(connection))?;
        let mut warnings = self.behind_own_log(&gtids)?;
        let follow_by_gtid =
            |connection: &&Arc<Connection>| self.settings(&connection.name).use_gtid != UseGtid::No;
        for connection in all.iter().filter(follow_by_gtid) {
            let promised = self.promised(connection, &self.settings(&connection.name));
            if let Some(lost) = promised.unwrap_or_else(|error| Some(error.message)) {
                warnings.push(SqlError::new(ErrorCode::UnknownError, removed_with_position(&lost)));
            }
        }
        let forget_received = || {
            all.iter().filter(follow_by_gtid).try_for_each(|connection| {
                self.set_start_positions(connection, &self.settings(&connection.name), Relay::Goes)
            })
        };
        // Done before the position changes, so that a crash leaves no relay log after another position.
        forget_received()?;
        let mut changes = vec![Change::NoGtids];
        changes.extend(gtids.iter().copied().map(Change::Applied));
        self.commit(&changes)?;
        gtids.iter().for_each(|gtid| self.parts.db.commit.raise_gtid(gtid.domain, gtid.seq_no));
        forget_received()?;
        Ok(warnings)
    }

    fn await_change(&self, most: Duration) {
        std::thread::sleep(most.min(STEP));
    }

    fn wait_for_file_position(
        &self,
        name: &str,
        file: &str,
        position: u64,
        timeout: Option<Duration>,
        ask: &mut dyn FnMut(Duration) -> SqlResult<()>,
    ) -> SqlResult<Option<i64>> {
        let Ok(connection) = self.find(name) else { return Ok(None) };
        if file.rsplit_once('.').is_none_or(|(_, number)| number.parse::<u64>().is_err()) {
            return Ok(None);
        }
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let wanted = (number_of(file), position);
        let mut waited = 0;
        loop {
            {
                let published = self.parts.db.commit.read_view().seq();
                let mut sql = connection.sql.lock();
                if !sql.is_running {
                    return Ok(None);
                }
                let executed = &sql.shown.at(published).source;
                let here = (number_of(&executed.file), executed.position);
                if !executed.file.is_empty() && here >= wanted {
                    return Ok(Some(waited));
                }
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(Some(-1));
            }
            ask(STEP)?;
            waited += 1;
        }
    }
}
