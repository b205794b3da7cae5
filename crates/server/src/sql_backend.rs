//! The executor as the backend of connections.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cohort_base::{Budget, CommitSeq, ConnectionId, ReplyBarrier, ServerId};
use cohort_binlog::GtidState;
use cohort_binlog::event::Checksum;
use cohort_commit::{Coordinator, LogLayout};
use cohort_config::{Globals, Status, VarId, VarValue};
use cohort_engine::{Engine, EngineError, EngineSetting};
use cohort_exec::Origin;
use cohort_exec::{
    AccountUsages, BinlogCache, Client, ConnectionEvent, Database, DatabaseParts, ErrorLogRow, LogFiles,
    MemoryLimits, Process, ProcessIdentity, ReplicaControl, ReplicaRow, ServerCallbacks, StatementLog,
    WordList, parse_gtids, reset_error,
};
use cohort_locks::KillLevel;
use cohort_protocol::{ListedColumn, ParamText, Parameter, ResultSink, StatusFlags};
use cohort_replica::{ReplicaLog, ReplicaParts, ReplicaStatus, Replicas, StateStore, current_position};
use cohort_replication::Source;
use cohort_types::{Charset, Collation, ErrorCode, Level, Privilege, SqlError, SqlResult, Value};
use cohort_vfs::{SharedFile, World};

use crate::audit_log::{AuditLog, AuditStatus};
use crate::backend::{
    Backend, ConnectionInfo, Killed, MultiStatements, PreparedStatement, Session, SessionSettings, Wake,
};
use crate::binlog_expiry::BinlogExpiry;
use crate::error_log::ErrorLog;
use crate::event_scheduler::EventScheduler;
use crate::pool::Workers;
use crate::pool_dump::{PoolDump, PoolDumpStatus};
use crate::server_files::MachineFiles;
use crate::statement_log::StatementLogFiles;
use crate::storage::{self, Storage};
use crate::tls::{Tls, TlsStatus};
use crate::{flush_watch, semi_sync};

/// Running time of a statement after which the server checks whether its client is still connected, as in
/// MariaDB.
const LOST_AFTER: Duration = Duration::from_secs(5);

/// Executes SQL on the storage of a data directory.
pub struct SqlBackend {
    db: Arc<Database>,
    callbacks: Arc<Callbacks>,
    source: Option<Arc<Source>>,
    /// Persistent state of the replica side.
    state: Arc<StateStore>,
}

impl SqlBackend {
    /// Opens the database on top of open storage.
    pub fn new(
        storage: Storage,
        world: &World,
        globals: &Arc<Globals>,
        status: &Arc<Status>,
        log: &ErrorLog,
    ) -> SqlBackend {
        let commit = Arc::clone(&storage.commit);
        let state = Arc::clone(&storage.replica);
        let engines = storage.engines.clone();
        let spill = Some(Arc::clone(commit.spill_dir()));
        let db = cohort_exec::database(DatabaseParts {
            commit: storage.commit,
            engines: storage.engines,
            locks: storage.locks,
            catalog: storage.catalog,
            fs: world.fs.clone(),
            clock: world.clock.clone(),
            rng: world.rng.clone(),
            globals: Arc::clone(globals),
            status: Arc::clone(status),
            binlog_cache: BinlogCache { spill, ..BinlogCache::default() },
            virtual_tables: cohort_exec::information_schema(),
        });
        cohort_exec::run_programs(&db);
        db.memory_limits().set(sessions_memory_max(globals));
        let server_id = ServerId(globals.uint(VarId::ServerId) as u32);
        let source = commit.binlog_files().map(|files| {
            let semi_sync_log = semi_sync::log(log, &files);
            Arc::new(Source::new(Arc::clone(&commit), server_id, semi_sync_log))
        });
        if let Some(source) = &source {
            // Nothing waits yet that would have to be released.
            let _ = source.semi_sync().configure(semi_sync::options(globals));
            status.register(Box::new(semi_sync::SemiSyncStatus(Arc::clone(source))));
        }
        let log_files = Arc::new(StatementLogFiles::new(globals, log));
        let audit = AuditLog::new(globals, &db.audit, log);
        audit.start();
        status.register(Box::new(AuditStatus(Arc::clone(&audit))));
        let datadir = PathBuf::from(globals.text(VarId::Datadir).as_deref().unwrap_or_default());
        let pool_dump = Arc::new(PoolDump::new(
            engines.clone(),
            globals,
            (world.fs.clone(), world.clock.clone()),
            &datadir,
        ));
        status.register(Box::new(PoolDumpStatus(Arc::clone(&pool_dump))));
        let callbacks = Arc::new(Callbacks {
            source: source.clone(),
            log_files: Arc::clone(&log_files),
            audit,
            commit,
            engines,
            globals: Arc::clone(globals),
            memory: db.memory_limits(),
            routine_lines: Arc::clone(&db.routine_lines),
            pool_dump: Arc::clone(&pool_dump),
            log: log.clone(),
            stop: OnceLock::new(),
            restarts: AtomicBool::new(false),
            restart_obstacle: OnceLock::new(),
            workers: OnceLock::new(),
            tls: OnceLock::new(),
            replicas: OnceLock::new(),
        });
        *db.callbacks.write() = Some(callbacks.clone());
        cohort_exec::set_page_formats(&db);
        *db.files.write() = Some(Arc::new(MachineFiles { datadir, globals: Arc::clone(globals) }));
        *db.log_files.write() = Some(log_files);
        SqlBackend { db, callbacks, source, state }
    }

    /// Reads the dictionary that new passwords are checked against, if there is one.
    pub fn read_words(&self) -> Result<(), String> {
        let name = self.db.globals.text(VarId::CracklibPasswordCheckDictionary).unwrap_or_default();
        if name.is_empty() {
            return Ok(());
        }
        let cannot = |why: &dyn std::fmt::Display| {
            format!("Can't read the words of cracklib_password_check_dictionary, '{name}': {why}")
        };
        let text = std::fs::read(&*name).map_err(|e| cannot(&e))?;
        let words = WordList::new(&text).ok_or_else(|| cannot(&"the file is too large"))?;
        // A second server with the same backend keeps the words of the first.
        let _ = self.db.words.set(words);
        Ok(())
    }

    /// Returns the buffer pool dump and load at stop and start.
    pub fn pool_dump(&self) -> &PoolDump {
        &self.callbacks.pool_dump
    }

    /// Sets the function that SHUTDOWN calls; once, when the server runs.
    pub fn on_shutdown(&self, stop: Box<dyn Fn() + Send + Sync>) {
        // A second server with the same backend is stopped through the first.
        let _ = self.callbacks.stop.set(stop);
    }

    /// Sets the function that finds what prevents a new start of this program; once, when the server runs.
    pub fn on_restart(&self, obstacle: Box<dyn Fn() -> Option<String> + Send + Sync>) {
        let _ = self.callbacks.restart_obstacle.set(obstacle);
    }

    /// Returns whether the server starts again after the stop that was requested.
    pub fn restarts(&self) -> bool {
        self.callbacks.restarts.load(Ordering::Acquire)
    }

    /// Sets the worker pool, whose limits SET GLOBAL changes; once, when the server runs.
    pub fn set_workers(&self, workers: Arc<Workers>) {
        // A second server with the same backend keeps that of the first.
        let _ = self.callbacks.workers.set(workers);
    }

    /// Returns the resource usage of accounts, which their limits are checked against.
    pub fn account_usages(&self) -> Arc<AccountUsages> {
        Arc::clone(&self.db.account_usages)
    }

    /// Sets the TLS configuration that FLUSH SSL reloads; once, when the server runs.
    pub fn on_flush_ssl(&self, tls: Option<Arc<Tls>>) {
        self.db.status.register(Box::new(TlsStatus(tls.clone())));
        if let Some(tls) = tls {
            // A second server with the same backend keeps that of the first.
            let _ = self.callbacks.tls.set(tls);
        }
    }

    /// Opens the replica side, once, without starting it. `next_id` returns ids for its threads.
    pub fn open_replicas(
        &self,
        world: &World,
        datadir: &Path,
        log: &ErrorLog,
        next_id: Box<dyn Fn() -> ConnectionId + Send + Sync>,
    ) -> Result<Arc<Replicas>, String> {
        let log = log.clone();
        let write_line = move |level: Level, text: &std::fmt::Arguments<'_>| match level {
            Level::Error => log.error(*text),
            Level::Warning => log.warning(*text),
            Level::Note => log.note(*text),
        };
        let replicas = Replicas::open(ReplicaParts {
            db: Arc::clone(&self.db),
            state: Arc::clone(&self.state),
            fs: world.fs.clone(),
            datadir: datadir.to_owned(),
            log: ReplicaLog(Arc::new(write_line)),
            next_id,
        })?;
        self.db.status.register(Box::new(ReplicaStatus(Arc::clone(&replicas))));
        *self.db.replica.write() = Some(Arc::clone(&replicas) as _);
        // A second server with the same backend keeps those of the first.
        let _ = self.callbacks.replicas.set(Arc::clone(&replicas));
        Ok(replicas)
    }

    /// Reopens the statement logs at SIGHUP, because the files may have been renamed.
    pub fn reopen_statement_logs(&self) {
        self.callbacks.log_files.reopen(StatementLog::General);
        self.callbacks.log_files.reopen(StatementLog::Slow);
    }

    /// Frees orphans of a crash. Called before the first session. Returns the number of orphans.
    pub fn drop_orphans(&self) -> Result<usize, EngineError> {
        cohort_exec::drop_orphans(&self.db)
    }

    /// Reads when events have run last. Called before the first session.
    pub fn load_event_runs(&self) -> Result<(), EngineError> {
        self.db.event_runs.load(&*self.db.engines[0])
    }

    /// Returns the periodic purge of binary log files; see [`BinlogExpiry`].
    pub fn binlog_expiry(&self) -> BinlogExpiry {
        BinlogExpiry::new(&self.db.commit, &self.db.globals, &self.db.clock)
    }

    /// Starts the event scheduler, unless it is DISABLED. It ends when `stop` is set.
    pub fn start_events(
        &self,
        log: &ErrorLog,
        next_id: Box<dyn Fn() -> ConnectionId + Send + Sync>,
        stop: &Arc<AtomicBool>,
    ) -> std::io::Result<()> {
        let at_start = self.db.globals.value(VarId::EventScheduler);
        self.db.event_scheduler_at_start.get_or_init(|| at_start.clone());
        if at_start == VarValue::text("DISABLED") {
            return Ok(());
        }
        let scheduler = EventScheduler::new(&self.db, log.clone(), next_id, Arc::clone(stop));
        std::thread::Builder::new().name("events".into()).spawn(move || scheduler.run()).map(drop)
    }

    /// Returns the server's error log.
    pub fn error_log(&self) -> &ErrorLog {
        &self.callbacks.log
    }

    pub(crate) fn database(&self) -> &Arc<Database> {
        &self.db
    }

    /// Opens a session of the server itself: for `init_file`, or for the setup.
    pub fn connect_server(&self, info: ConnectionInfo, origin: Origin) -> Result<Box<dyn Session>, SqlError> {
        let open = |db, info, process| cohort_exec::Session::of_server(db, info, process, origin);
        self.open_session(info, Box::new(|| ()), open)
    }

    fn open_session(
        &self,
        info: ConnectionInfo,
        closer: Box<dyn Fn() + Send + Sync>,
        open: impl Fn(
            Arc<Database>,
            cohort_exec::ConnectionInfo,
            Arc<Process>,
        ) -> Result<cohort_exec::Session, SqlError>,
    ) -> Result<Box<dyn Session>, SqlError> {
        let now_us = self.db.clock.wall_us();
        let process = self.db.processes.register(info.id, identity(&info), now_us);
        let is_interactive = info.interactive;
        let session = match open(Arc::clone(&self.db), exec_info(&info), Arc::clone(&process)) {
            Ok(session) => session,
            Err(error) => {
                self.db.processes.remove(info.id);
                return Err(error);
            }
        };
        process.set_attributes(&info.attributes);
        process.set_closer(Some(Box::new(move |level| {
            if level == KillLevel::Connection {
                closer();
            }
        })));
        process.end_statement(now_us, CommitSeq(0));
        let settings = Cached::of(&session);
        let mut session = SqlSession { settings, session, process, is_interactive };
        session.adopt_timeout();
        Ok(Box::new(session))
    }

    /// Kills all running statements, because the server stops.
    pub fn kill_all(&self) {
        self.db.commit.leave_gates();
        self.db.processes.all().iter().for_each(|process| process.kill(KillLevel::Connection));
    }
}

impl Backend for SqlBackend {
    fn connect(
        &self,
        info: ConnectionInfo,
        closer: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Box<dyn Session>, SqlError> {
        self.open_session(info, closer, cohort_exec::Session::new)
    }

    fn acknowledged(&self) -> CommitSeq {
        self.db.commit.acknowledged()
    }

    fn when_acknowledged(&self, seq: CommitSeq, wake: Arc<dyn Wake>) -> bool {
        self.db.commit.when_acknowledged(seq, Arc::new(Relay(wake)))
    }

    fn end_if_lost(&self, id: ConnectionId, is_lost: &dyn Fn() -> bool) {
        let Some(process) = self.db.processes.get(id) else { return };
        if process.is_dispensable(self.db.clock.wall_us(), LOST_AFTER) && is_lost() {
            process.kill(KillLevel::Connection);
        }
    }

    fn source(&self) -> Option<Arc<Source>> {
        self.source.clone()
    }

    fn note_refused(&self, event: ConnectionEvent, client: Client<'_>, error: &SqlError) {
        let (db, wall_us) = (&self.db, self.db.clock.wall_us());
        db.log_refused(client.id, (client.user, client.host), error);
        db.audit.connection(&db.globals, (event, wall_us), client, ("", error.number()));
        if event == ConnectionEvent::FailedConnect {
            let end = (ConnectionEvent::Disconnect, wall_us);
            db.audit.connection(&db.globals, end, client, ("", 0));
        }
    }

    fn temporary_file(&self) -> Result<SharedFile, SqlError> {
        self.db.temporary_file()
    }

    fn lead(&self) {
        self.db.commit.lead();
    }

    fn lead_later(&self) {
        self.db.commit.lead_later();
    }

    fn flush_ns(&self) -> u64 {
        self.db.commit.group_commit().flush_ns()
    }

    fn has_queued(&self) -> bool {
        self.db.commit.has_queued()
    }

    fn wait_acknowledged(&self, seq: CommitSeq) -> bool {
        self.db.commit.wait_acknowledged(seq).is_ok()
    }
}

/// Adapts a connection's waiter to the commit path's trait.
struct Relay(Arc<dyn Wake>);

impl cohort_commit::Wake for Relay {
    fn acknowledged(self: Arc<Self>) {
        Arc::clone(&self.0).acknowledged();
    }

    fn replies_to(&self) -> Option<ConnectionId> {
        Some(self.0.replies_to())
    }
}

fn identity(info: &ConnectionInfo) -> ProcessIdentity {
    ProcessIdentity {
        user: info.user.clone(),
        account: Some(info.account.0.clone()),
        host: info.peer.clone(),
        schema: info.schema.clone(),
    }
}

fn exec_info(info: &ConnectionInfo) -> cohort_exec::ConnectionInfo {
    cohort_exec::ConnectionInfo {
        id: info.id,
        user: info.user.clone(),
        host: info.host.clone(),
        account: info.account.clone(),
        schema: info.schema.clone(),
        collation: Collation::from_id(info.collation).unwrap_or(Collation::UTF8MB4_GENERAL_CI),
        multi_statements: info.multi_statements == MultiStatements::On,
        found_rows: info.found_rows,
        encryption: info.encryption.clone(),
        is_local: info.is_local,
    }
}

/// Settings that the connection reads around each command, cached until the session's variables change.
struct Cached {
    version: u64,
    settings: SessionSettings,
    packet_bytes_max: usize,
    idle_s_max: u64,
    /// Idle limits in a transaction, in one that has only read, and in one that has written.
    idle_transaction_s_max: u64,
    idle_reader_s_max: u64,
    idle_writer_s_max: u64,
}

impl Cached {
    fn of(session: &cohort_exec::Session) -> Cached {
        let vars = session.vars();
        let word = |id| match vars.value(id) {
            VarValue::Text(name) => name,
            _ => "".into(),
        };
        let settings = SessionSettings {
            results: session.results_collation(),
            params: ParamText {
                charset: Charset::by_name(&word(VarId::CharacterSetClient)).unwrap_or(Charset::Utf8mb4),
                collation: Collation::by_name(&word(VarId::CollationConnection))
                    .unwrap_or(Collation::UTF8MB4_GENERAL_CI),
            },
            cursor_bytes_max: vars.uint(VarId::TmpTableSize) as usize,
            write_s_max: vars.uint(VarId::NetWriteTimeout),
        };
        Cached {
            version: vars.version(),
            settings,
            packet_bytes_max: vars.uint(VarId::MaxAllowedPacket) as usize,
            idle_s_max: vars.uint(VarId::WaitTimeout),
            idle_transaction_s_max: vars.uint(VarId::IdleTransactionTimeout),
            idle_reader_s_max: vars.uint(VarId::IdleReadonlyTransactionTimeout),
            idle_writer_s_max: vars.uint(VarId::IdleWriteTransactionTimeout),
        }
    }
}

/// A session of the executor. Dropping it rolls back and removes it from the process list.
struct SqlSession {
    session: cohort_exec::Session,
    process: Arc<Process>,
    settings: Cached,
    /// interactive_timeout applies instead of wait_timeout.
    is_interactive: bool,
}

impl SqlSession {
    /// Applies interactive_timeout after the session's variables were reset.
    fn adopt_timeout(&mut self) {
        if !self.is_interactive {
            return self.refresh();
        }
        let timeout = self.session.vars().uint(VarId::InteractiveTimeout);
        self.session.put_variable(VarId::WaitTimeout, &VarValue::UInt(timeout));
        self.refresh();
    }

    fn refresh(&mut self) {
        if self.settings.version != self.session.vars().version() {
            self.settings = Cached::of(&self.session);
        }
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        self.process.set_closer(None);
        self.session.database().processes.remove(self.process.id());
    }
}

impl Session for SqlSession {
    fn memory(&self) -> Option<&Arc<Budget>> {
        Some(self.session.process().memory())
    }

    fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink) {
        self.session.query(sql, sink);
        self.refresh();
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedStatement, SqlError> {
        let info = self.session.prepare(sql)?;
        Ok(PreparedStatement {
            id: info.id,
            params: info.params,
            columns: info.columns,
            warnings: info.warnings,
        })
    }

    fn execute(&mut self, statement: u32, params: Vec<Value>, sink: &mut dyn ResultSink) {
        self.session.execute(statement, &params, sink);
        self.refresh();
    }

    fn execute_bulk(
        &mut self,
        statement: u32,
        rows: &mut dyn Iterator<Item = Result<Vec<Parameter>, SqlError>>,
        sink: &mut dyn ResultSink,
    ) {
        self.session.execute_bulk(statement, rows, sink);
        self.refresh();
    }

    fn begin_fetch(&mut self, statement: u32) {
        self.session.begin_fetch(statement);
    }

    fn end_fetch(&mut self) {
        self.session.end_fetch();
    }

    fn check_interrupt(&self) -> Result<(), SqlError> {
        self.session.check_interrupt()
    }

    fn close_statement(&mut self, statement: u32) {
        self.session.close_statement(statement);
    }

    fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink) {
        self.session.init_db(schema, sink);
    }

    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ListedColumn>, SqlError> {
        self.session.field_list(table, wildcard)
    }

    fn reset(&mut self) {
        self.session.reset();
        self.adopt_timeout();
    }

    fn change_user(&mut self, info: ConnectionInfo) -> Result<(), SqlError> {
        self.session.change_user(exec_info(&info))?;
        let identity = identity(&info);
        let processes = &self.session.database().processes;
        processes.settle_sums(&self.process);
        processes.count_login(&identity);
        self.process.set_identity(identity);
        self.process.set_attributes(&info.attributes);
        self.is_interactive = info.interactive;
        self.adopt_timeout();
        Ok(())
    }

    fn set_multi_statements(&mut self, multi: MultiStatements) {
        self.session.set_multi_statements(multi == MultiStatements::On);
    }

    fn check_password(&self) -> Result<(), SqlError> {
        self.session.check_password()
    }

    fn may_shut_down(&mut self) -> Result<(), SqlError> {
        self.session.check_global_privilege(Privilege::Shutdown)
    }

    fn may_reload(&mut self) -> Result<(), SqlError> {
        self.session.check_global_privilege(Privilege::Reload)
    }

    fn may_debug(&mut self) -> Result<(), SqlError> {
        self.session.check_global_privilege(Privilege::Super)
    }

    fn may_replicate(&mut self) -> Result<(), SqlError> {
        self.session.check_global_privilege(Privilege::ReplicationSlave)
    }

    fn user_variable(&self, name: &str) -> Option<String> {
        let value = self.session.user_variable(name)?;
        (!value.is_null()).then(|| value.to_text())
    }

    fn skips_marked_events(&self) -> bool {
        self.session.vars().flag(VarId::SkipReplication)
    }

    fn show_dump(&self, state: &'static str) {
        if self.process.command() != cohort_exec::Command::BinlogDump {
            let now_us = self.session.database().clock.wall_us();
            self.process.set_command(cohort_exec::Command::BinlogDump, now_us);
        }
        self.process.set_state(state);
    }

    #[inline]
    fn settings(&self) -> SessionSettings {
        self.settings.settings
    }

    #[inline]
    fn packet_bytes_max(&self) -> usize {
        self.settings.packet_bytes_max
    }

    #[inline]
    fn idle_s_max(&self) -> u64 {
        let Cached { idle_s_max, idle_transaction_s_max, idle_reader_s_max, idle_writer_s_max, .. } =
            self.settings;
        let is_bounded = idle_transaction_s_max | idle_reader_s_max | idle_writer_s_max;
        if is_bounded == 0 || !self.session.is_in_transaction() {
            return idle_s_max;
        }
        let by_kind = if self.session.has_written() { idle_writer_s_max } else { idle_reader_s_max };
        [idle_transaction_s_max, by_kind].into_iter().find(|seconds| *seconds > 0).unwrap_or(idle_s_max)
    }

    fn status(&self) -> StatusFlags {
        self.session.status()
    }

    fn hold(&self) -> &Arc<ReplyBarrier> {
        self.session.hold()
    }

    fn settle(&mut self) -> bool {
        self.session.settle()
    }

    fn write_log(&mut self) {
        self.session.write_held_entries();
    }

    fn killed(&self) -> Killed {
        if self.session.is_killed() { Killed::Connection } else { Killed::No }
    }
}

/// Returns `sessions_memory_max`, or half of the available memory if it is 0.
fn sessions_memory_max(globals: &Globals) -> u64 {
    match globals.uint(VarId::SessionsMemoryMax) {
        0 => crate::machine::memory_bytes() / 2,
        bytes => bytes,
    }
}

/// Server callbacks: variables that other components compute or react to.
struct Callbacks {
    commit: Arc<Coordinator>,
    engines: Vec<Arc<dyn Engine>>,
    source: Option<Arc<Source>>,
    log_files: Arc<StatementLogFiles>,
    audit: Arc<AuditLog>,
    globals: Arc<Globals>,
    memory: MemoryLimits,
    routine_lines: Arc<cohort_observe::RoutineLines>,
    pool_dump: Arc<PoolDump>,
    log: ErrorLog,
    tls: OnceLock<Arc<Tls>>,
    stop: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The stop is a restart.
    restarts: AtomicBool,
    restart_obstacle: OnceLock<Box<dyn Fn() -> Option<String> + Send + Sync>>,
    workers: OnceLock<Arc<Workers>>,
    /// Set when the replica side is open.
    replicas: OnceLock<Arc<Replicas>>,
}

impl Callbacks {
    fn configure(&self, setting: EngineSetting) {
        self.engines.iter().for_each(|engine| engine.configure(setting));
    }
}

impl ServerCallbacks for Callbacks {
    fn variable(&self, id: VarId) -> Option<VarValue> {
        let gtids = || self.commit.binlog_status().map(|(_, gtids)| gtids);
        match id {
            VarId::GtidBinlogPos => {
                Some(VarValue::text(&gtids().map_or(String::new(), |gtids| gtids.position_text())))
            }
            VarId::GtidSlavePos | VarId::GtidCurrentPos => {
                let applied = self.replicas.get().map_or_else(Vec::new, |replicas| replicas.applied());
                let position = match id {
                    VarId::GtidSlavePos => GtidState::from_list(&applied),
                    _ => {
                        let own_id = self.globals.uint(VarId::ServerId) as u32;
                        current_position(&applied, &gtids().unwrap_or_default(), own_id)
                    }
                };
                Some(VarValue::text(&position.position_text()))
            }
            VarId::GtidBinlogState => {
                Some(VarValue::text(&gtids().map_or(String::new(), |gtids| gtids.to_string())))
            }
            _ => None,
        }
    }

    fn check_settable(&self, id: VarId) -> SqlResult<()> {
        if id == VarId::GtidBinlogState {
            return match self.commit.binlog_status() {
                None => Err(SqlError::no_binary_logging()),
                Some((_, gtids)) if !gtids.list().is_empty() => Err(SqlError::binlog_must_be_empty()),
                Some(_) => Ok(()),
            };
        }
        self.replicas.get().map_or(Ok(()), |replicas| replicas.check_settable(id))
    }

    fn replicas(&self) -> Vec<ReplicaRow> {
        let hosts = self.source.as_ref().map_or_else(Vec::new, |source| source.hosts());
        let row = |host: cohort_replication::source::ReplicaHost| ReplicaRow {
            server_id: host.server_id,
            host: host.host,
            port: host.port,
        };
        hosts.into_iter().map(row).collect()
    }

    fn is_waiting_for_replicas(&self, seq: CommitSeq) -> bool {
        self.source.as_ref().is_some_and(|source| source.semi_sync().is_waiting(seq))
    }

    fn stop_waiting_for_replicas(
        &self,
        seq: CommitSeq,
        own: Option<CommitSeq>,
        client: ConnectionId,
        before_reply: &dyn Fn(),
    ) {
        if let Some(source) = &self.source {
            source.semi_sync().give_up(seq, own, client, before_reply);
        }
    }

    fn reload_tls(&self) -> SqlResult<()> {
        let reloaded = self.tls.get().map_or(Ok(()), |tls| tls.reload());
        reloaded.map_err(|error| {
            SqlError::new(ErrorCode::UnknownError, format!("Failed to refresh SSL, error: {error}"))
        })
    }

    fn error_log(&self) -> Vec<ErrorLogRow> {
        self.log.kept()
    }

    fn open_files(&self) -> u64 {
        crate::descriptors::open_now()
    }

    fn request_stop(&self) {
        if let Some(stop) = self.stop.get() {
            stop();
        }
    }

    fn restart_obstacle(&self) -> Option<String> {
        self.restart_obstacle.get().and_then(|obstacle| obstacle())
    }

    fn request_restart(&self) {
        self.restarts.store(true, Ordering::Release);
        self.request_stop();
    }

    fn global_changed(&self, id: VarId) -> SqlResult<Vec<SqlError>> {
        match id.canonical() {
            id if id.setting().name.starts_with("server_audit_") => {
                let warnings = self.audit.configure(id).into_iter();
                return Ok(warnings.map(|text| SqlError::plugin_warning(&text)).collect());
            }
            VarId::AdaptiveFlushGroups | VarId::BinlogCommitWaitCount | VarId::BinlogCommitWaitUsec => {
                self.commit.group_commit().set_options(storage::group_commit_options(&self.globals));
            }
            VarId::GtidSlavePos => {
                if let Some(replicas) = self.replicas.get() {
                    let position = self.globals.text(id);
                    return replicas.set_applied(position.as_deref().unwrap_or(""));
                }
            }
            VarId::GtidBinlogState => {
                let list = self.globals.text(id);
                let state = GtidState::from_list(&parse_gtids(list.as_deref().unwrap_or(""))?);
                self.commit.set_gtid_state(state).map_err(reset_error)?;
            }
            VarId::SqlSlaveSkipCounter => {
                if let Some(replicas) = self.replicas.get() {
                    replicas.set_skip_counter(self.globals.uint(id))?;
                }
            }
            VarId::GeneralLogFile => self.log_files.reopen(StatementLog::General),
            VarId::SlowQueryLogFile => self.log_files.reopen(StatementLog::Slow),
            VarId::InnodbLogFileBuffering => self.commit.set_log_buffered(self.globals.flag(id)),
            VarId::SlowFlushWarningMs => flush_watch::apply_threshold(&self.commit, &self.globals),
            VarId::RplSemiSyncMasterEnabled
            | VarId::RplSemiSyncMasterTimeout
            | VarId::RplSemiSyncMasterWaitPoint
            | VarId::RplSemiSyncMasterWaitNoSlave => {
                if let Some(source) = &self.source {
                    let configured = source.semi_sync().configure(semi_sync::options(&self.globals));
                    configured.map_err(|e| SqlError::new(ErrorCode::UnknownError, e.to_string()))?;
                }
            }
            VarId::ArchiveSync | VarId::ArchiveSyncTimeout => {
                if !self.commit.set_archive_sync(storage::archive_sync(&self.globals)) {
                    self.globals.put(VarId::ArchiveSync, &VarValue::Bool(false));
                    return Err(SqlError::new(ErrorCode::UnknownError, storage::SYNC_WITHOUT_ARCHIVE));
                }
            }
            VarId::CohortRoutineLines => self.routine_lines.clear(),
            VarId::SessionsMemoryMax => self.memory.set(sessions_memory_max(&self.globals)),
            VarId::InnodbBufferPoolSize => {
                self.configure(EngineSetting::PoolBytes(self.globals.uint(id) as usize));
            }
            VarId::InnodbBufferPoolDumpNow
            | VarId::InnodbBufferPoolLoadNow
            | VarId::InnodbBufferPoolLoadAbort => self.pool_dump.ordered(id),
            VarId::InnodbRollbackSegments => {
                self.configure(EngineSetting::RollbackSegments(self.globals.uint(id) as usize));
            }
            VarId::InnodbCompressionAlgorithm | VarId::InnodbCompressionLevel => {
                storage::compression(&self.globals).into_iter().for_each(|setting| self.configure(setting));
            }
            VarId::ThreadPoolMaxThreads | VarId::ThreadPoolIdleTimeout => {
                if let Some(workers) = self.workers.get() {
                    let total_max = self.globals.uint(VarId::ThreadPoolMaxThreads) as usize;
                    let idle = self.globals.uint(VarId::ThreadPoolIdleTimeout);
                    workers.set_limits(total_max, Duration::from_secs(idle));
                }
            }
            VarId::CheckpointBytesMax => self.commit.set_checkpoint_bytes_max(self.globals.uint(id)),
            VarId::EarlyLockRelease => self.commit.set_early_release(self.globals.flag(id)),
            VarId::MaxBinlogSize => self.commit.set_binlog_file_bytes_max(self.globals.uint(id)),
            VarId::BinlogGroupCommitSyncEngine => self.commit.set_group_sync(self.globals.flag(id)),
            VarId::BinlogGroupCommitOverlap => self.commit.set_group_overlap(storage::overlap(&self.globals)),
            VarId::BinlogChecksum
                if self.commit.layout() == LogLayout::Separate
                    && storage::checksum(&self.globals) == Checksum::None =>
            {
                self.globals.put(id, &VarValue::text("CRC32"));
                let what = "binlog_checksum=NONE is not supported with log_layout=separate: recovery finds the end of \
                            the binary log by its checksums";
                return Err(SqlError::new(ErrorCode::UnknownError, what));
            }
            VarId::BinlogChecksum => {
                let rotated = self.commit.set_binlog_checksum(storage::checksum(&self.globals));
                rotated.map_err(|e| SqlError::new(ErrorCode::UnknownError, e.to_string()))?;
            }
            other => debug_assert!(false, "{other:?} acts in the server, and is not applied"),
        }
        Ok(Vec::new())
    }
}
