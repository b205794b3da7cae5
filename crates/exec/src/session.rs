//! One connection's session. Commands run to completion on the calling thread, one after the other, and write
//! their replies into a [`ResultSink`]. The reply of a commit must be held back until [`Session::hold_until`]
//! is published (I4, I5).

use std::sync::Arc;

use cohort_base::{CommitSeq, ReplyBarrier};
use cohort_config::{Counter, VarId};
use cohort_locks::{KillLevel, Party};
use cohort_protocol::{OkInfo, ResultSink, StatusFlags};
use cohort_session::{
    AccountLimits, Changed, Command, ConnectionEvent, ConnectionInfo, Database, Diagnostics, EventKind,
    Origin, Process, SessionState, check_client_charset,
};
use cohort_table::TemporaryTables;
use cohort_trx::{PlanCounts, SessionTrx};
use cohort_types::{Charset, Collation, ErrorCode, Privilege, SqlError, SqlResult, Value};
use hashbrown::HashMap;

use crate::frame::{Frame, Pending, RememberedTexts};
use crate::log_settings::LogSettings;
use crate::open_handler::OpenHandler;
use crate::prepared_statements::PreparedStatements;
use crate::program::running::RunningPrograms;
use crate::shared_caches::SharedCaches;
use crate::work::{SlowEntry, SlowNotes, Work};

/// A connection's session. Dropping it rolls back the open transaction.
pub struct Session {
    /// Statement caches shared by all sessions.
    pub(crate) caches: Arc<SharedCaches>,
    pub(crate) state: SessionState,
    pub(crate) trx: SessionTrx,
    pub(crate) process: Arc<Process>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) prepared: PreparedStatements,
    /// Tables opened by HANDLER, by lower-case name.
    pub(crate) handlers: HashMap<String, OpenHandler>,
    pub(crate) programs: RunningPrograms,
    /// Literals of the running statement; reused to save allocations.
    pub(crate) literals: Vec<Value>,
    /// Measurements of the running statement.
    pub(crate) frame: Frame,
    /// Counters of plans at its begin.
    pub(crate) plan_counts: PlanCounts,
    /// Statements whose replies are held.
    pub(crate) pending: Vec<Pending>,
    /// Entries of the slow log, with their durations, that are not written yet.
    pub(crate) slow_entries: Vec<(SlowEntry, u64)>,
    /// Digests of texts that were parsed.
    pub(crate) remembered: RememberedTexts,
    /// Results of the running statement so far, for the logs.
    pub(crate) work: Work,
    /// Text that EXECUTE has run; the audit log shows it instead of the EXECUTE statement.
    pub(crate) executed_text: Option<Arc<[u8]>>,
    /// Plan information of the running statement, for the slow log.
    pub(crate) slow_notes: Option<Box<SlowNotes>>,
    pub(crate) log_settings: LogSettings,
    /// Wall-clock time of the last reading. The clock is read at the start and at the end of each statement;
    /// all code that needs these times shares the readings.
    pub(crate) clock_us: u64,
}

impl Session {
    /// Creates the session of an authenticated user and logs the connection. `process` is the connection's
    /// entry in `Database::processes`.
    pub fn new(db: Arc<Database>, info: ConnectionInfo, process: Arc<Process>) -> SqlResult<Session> {
        let session = Session::with_origin(db, info, process, Origin::Client)?;
        session.state.audit_connection(ConnectionEvent::Connect, 0);
        if session.state.db.globals.flag(VarId::GeneralLog) {
            session.log_connect("Connect");
        }
        Ok(session)
    }

    /// Creates the session that runs the statements of `init_file`, or those of the server's setup: it has
    /// all privileges and no limits.
    pub fn of_server(
        db: Arc<Database>,
        info: ConnectionInfo,
        process: Arc<Process>,
        origin: Origin,
    ) -> SqlResult<Session> {
        Session::with_origin(db, info, process, origin)
    }

    /// Creates a session without logging a connection.
    pub(crate) fn with_origin(
        db: Arc<Database>,
        info: ConnectionInfo,
        process: Arc<Process>,
        origin: Origin,
    ) -> SqlResult<Session> {
        check_client_charset(info.collation)?;
        let caches = SharedCaches::of(&db);
        let kill = process.kill_flag().clone();
        let mut trx = SessionTrx::new(Arc::clone(&db.env), kill.clone(), process.counts().clone());
        trx.show_at(Arc::clone(process.trx_stats()));
        process.set_party(Arc::clone(trx.party()));
        trx.look_for_kills_at(Arc::clone(process.hold()));
        trx.charge_to(Arc::clone(process.memory()));
        let (group_commit, memory) = (Arc::clone(trx.client()), Arc::clone(process.memory()));
        let mut state = SessionState::new(db, info, kill, group_commit, memory, shared_by(&trx), origin);
        state.adopt_account()?;
        if let Some(schema) = &state.info.schema {
            check_enterable(&state, schema)?;
        }
        process.set_schema(state.info.schema.as_deref());
        let mut session = Session {
            caches,
            state,
            trx,
            process,
            diagnostics: Diagnostics::default(),
            prepared: PreparedStatements::default(),
            handlers: HashMap::new(),
            programs: RunningPrograms::default(),
            literals: Vec::new(),
            frame: Frame::default(),
            plan_counts: PlanCounts::default(),
            pending: Vec::new(),
            slow_entries: Vec::new(),
            remembered: RememberedTexts::default(),
            work: Work::default(),
            executed_text: None,
            slow_notes: None,
            log_settings: LogSettings::UNKNOWN,
            clock_us: 0,
        };
        session.bind_writer();
        session.apply_settings();
        Ok(session)
    }

    /// Applies `read_only` according to the privileges of the session's current account and role.
    pub(crate) fn bind_writer(&mut self) {
        self.trx.set_writer(self.state.writer());
    }

    /// Returns true if KILL was used on the connection, which must then be closed.
    pub fn is_killed(&self) -> bool {
        self.state.kill.killed() == Some(KillLevel::Connection)
    }

    /// Replies produced so far may be sent only after this position is published.
    pub fn hold_until(&self) -> CommitSeq {
        self.trx.hold_until()
    }

    /// Returns the reply barrier, which code that sends replies must check.
    pub fn hold(&self) -> &Arc<ReplyBarrier> {
        self.trx.hold()
    }

    /// Returns the database that all sessions share.
    pub fn database(&self) -> &Arc<Database> {
        &self.state.db
    }

    /// Returns the connection's entry in the process list.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Returns the session's variables.
    pub fn vars(&self) -> &cohort_config::SessionVars {
        &self.state.settings.vars
    }

    /// Returns the collation of character_set_results, `None` if it is NULL.
    pub fn results_collation(&self) -> Option<Collation> {
        self.state.results_collation()
    }

    /// Sets a variable on the session's behalf.
    pub fn put_variable(&mut self, id: cohort_config::VarId, value: &cohort_config::VarValue) {
        self.state.settings.vars.put(id, value);
    }

    /// Returns user and host of the account used for authentication.
    pub fn account(&self) -> &(String, String) {
        &self.state.info.account
    }

    /// Returns `@name`, `None` if it was never set.
    pub fn user_variable(&self, name: &str) -> Option<Value> {
        // The value may derive from rows that are not durable yet (I5).
        self.trx.mark_observed();
        self.state.user_variables.borrow().get(&name.to_lowercase()).cloned()
    }

    /// Checks that the account has a global privilege. Error 1227 if not.
    pub fn check_global_privilege(&self, privilege: Privilege) -> SqlResult<()> {
        cohort_session::access::check_global(&self.state, privilege)
    }

    /// Returns true if a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.trx.in_transaction()
    }

    /// Returns true if the open transaction has changed data.
    pub fn has_written(&self) -> bool {
        self.trx.has_written()
    }

    /// Returns the status flags for replies to commands that run no statement.
    pub fn status(&self) -> StatusFlags {
        status_of(&self.trx, &self.state)
    }

    /// Returns the settings that decoding depends on: the client's character set, and NO_BACKSLASH_ESCAPES.
    fn reading(&self) -> (Charset, bool) {
        (self.state.settings.parse.client, self.state.settings.parse.mode.no_backslash_escapes)
    }

    /// Runs COM_QUERY, with one or more results. Settings made by one statement apply to the parsing of the
    /// next.
    pub fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink) {
        // As in MariaDB, semicolons and spaces around the text are no part of any statement.
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
        let start = sql.iter().position(|byte| !is_space(byte)).unwrap_or(sql.len());
        let end =
            sql.iter().rposition(|byte| !is_space(byte) && *byte != b';').map_or(start, |last| last + 1);
        let (mut sent, mut reading) = (&sql[start..end.max(start)], self.reading());
        let mut decoded = match self.state.decoded(sent) {
            Ok(decoded) => decoded,
            Err(error) => {
                return self.count_failed(EventKind::UNPARSED, |session| session.fail(&error, sink));
            }
        };
        let sql = &*decoded;
        self.begin_process(Command::Query, sql);
        // A text that consists of comments alone gets an OK; replayed binary logs contain such texts.
        let is_comment = sql.iter().any(|byte| !byte.is_ascii_whitespace() && *byte != b';');
        let (mut at, mut any) = (0, false);
        loop {
            let rest = &decoded[at..];
            let Some((range, next)) = self.next_statement(rest) else { break };
            let text = &rest[range];
            let after = &rest[next.min(rest.len())..];
            let more = cohort_sql::has_statement(after, self.state.settings.parse.mode);
            if more && !self.state.info.multi_statements {
                let near = String::from_utf8_lossy(&after[..after.len().min(80)]).into_owned();
                let error = cohort_session::syntax_error(&near);
                self.count_failed(EventKind::UNPARSED, |session| session.fail(&error, sink));
                any = true;
                break;
            }
            any = true;
            let mut watch = self.watch("Query", text);
            if at > 0 {
                watch.replied = sink.bytes();
            }
            let succeeded = self.run_text(text, more, sink);
            self.profiled(watch, rest);
            self.watched(watch, text, (&[], &[]), sink);
            if !succeeded || !more {
                break;
            }
            // The next statement may run or wait for a long time: transactions ordered so far are flushed
            // before it.
            self.state.db.commit.lead();
            self.look_at_clock();
            at += next;
            if self.reading() != reading {
                sent = behind_semicolons(sent, decoded[..at].iter().filter(|byte| **byte == b';').count());
                reading = self.reading();
                decoded = match self.state.decoded(sent) {
                    Ok(decoded) => decoded,
                    Err(error) => {
                        self.count_failed(EventKind::UNPARSED, |session| session.fail(&error, sink));
                        break;
                    }
                };
                at = 0;
            }
        }
        if !any && is_comment {
            sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
        } else if !any {
            let kind = EventKind::of(Counter::ComEmptyQuery);
            self.count_failed(kind, |session| session.fail(&SqlError::empty_query(), sink));
        }
        self.end_process();
    }

    /// Records the start of a command in the process list.
    pub(crate) fn begin_process(&mut self, command: Command, text: &[u8]) {
        // The reply to the previous command has left.
        self.settle();
        if !self.slow_entries.is_empty() {
            self.write_held_entries();
        }
        self.look_at_clock();
        let query_id = self.state.db.processes.next_query_id();
        self.process.begin_statement(
            command,
            (text, self.state.settings.parse.mode),
            self.clock_us,
            query_id,
        );
    }

    /// Records the end of a command. The caller has read the clock.
    pub(crate) fn end_process(&self) {
        self.process.end_statement(self.clock_us, self.trx.hold_until());
    }

    /// Reads the wall clock into `clock_us`.
    pub(crate) fn look_at_clock(&mut self) {
        self.clock_us = self.state.db.clock.wall_us();
    }

    /// Runs COM_INIT_DB.
    pub fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink) {
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Init DB", schema.as_bytes());
        }
        match self.use_schema(schema) {
            Ok(()) => {
                self.state.send_changes(sink);
                sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
            }
            Err(error) => self.fail(&error, sink),
        }
    }

    /// Runs USE.
    pub(crate) fn use_schema(&mut self, schema: &str) -> SqlResult<()> {
        check_enterable(&self.state, schema)?;
        self.state.set_schema(Some(schema.into()));
        self.state.note_change(Changed::Schema);
        self.process.set_schema(Some(schema));
        self.state.refresh();
        Ok(())
    }

    /// Clears the current database after it was dropped.
    pub(crate) fn leave_schema(&mut self) {
        self.state.set_schema(None);
        self.state.note_change(Changed::SchemaDropped);
        self.process.set_schema(None);
        self.state.refresh();
    }

    /// Runs COM_RESET_CONNECTION: re-creates the state of a new session except for user and current database,
    /// so that no setting survives.
    pub fn reset(&mut self) {
        let schema = self.state.current_schema.take();
        self.begin_again(schema);
    }

    /// Runs COM_CHANGE_USER after the new user is authenticated, with the state of a new session. An error
    /// closes the connection.
    pub fn change_user(&mut self, info: ConnectionInfo) -> SqlResult<()> {
        check_client_charset(info.collation)?;
        self.state.info = info;
        // Neither privileges nor resource limits of the old account may survive.
        (self.state.identity.role, self.state.identity.account_limits) = (None, None);
        *self.state.identity.access.borrow_mut() = None;
        let schema: Option<Arc<str>> = self.state.info.schema.as_deref().map(Arc::from);
        self.begin_again(schema.clone());
        self.state.adopt_account()?;
        self.bind_writer();
        if let Some(schema) = &schema {
            check_enterable(&self.state, schema)?;
        }
        self.process.set_schema(schema.as_deref());
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_connect("Change user");
        }
        self.state.audit_connection(ConnectionEvent::ChangeUser, 0);
        Ok(())
    }

    /// Rolls back the transaction and re-creates all session state.
    fn begin_again(&mut self, schema: Option<Arc<str>>) {
        self.trx.reset();
        let old = &self.state;
        let (db, info) = (Arc::clone(&old.db), old.info.clone());
        let (kill, group_commit, memory) =
            (old.kill.clone(), Arc::clone(&old.group_commit), Arc::clone(self.process.memory()));
        // The account's resource limits and role stay in force.
        let (account_limits, role) =
            (self.state.identity.account_limits.take(), self.state.identity.role.take());
        let shared = shared_by(&self.trx);
        self.state = SessionState::new(db, info, kill, group_commit, memory, shared, Origin::Client);
        self.log_settings = LogSettings::UNKNOWN;
        (self.state.identity.account_limits, self.state.identity.role) = (account_limits, role);
        self.state.set_schema(schema);
        self.bind_writer();
        self.state.apply_limits();
        self.state.refresh();
        self.prepared = PreparedStatements::default();
        self.handlers.clear();
        self.diagnostics = Diagnostics::default();
        self.apply_settings();
    }

    /// Error 1820 if the account's password has expired: for commands that run no statement.
    pub fn check_password(&self) -> SqlResult<()> {
        self.state.identity.account_limits.as_ref().map_or(Ok(()), AccountLimits::check_password)
    }

    /// Runs COM_SET_OPTION.
    pub fn set_multi_statements(&mut self, on: bool) {
        self.state.info.multi_statements = on;
    }

    /// Records an error and sends it.
    pub(crate) fn fail(&mut self, error: &SqlError, sink: &mut dyn ResultSink) {
        if error.code == ErrorCode::StatementTimeout {
            self.state.db.status.count(Counter::MaxStatementTimeExceeded);
        }
        // The error message may reveal values of rows that are not durable yet (I5).
        self.trx.mark_observed();
        self.diagnostics.set_error(error);
        self.work.error = error.number();
        self.state.settings.env.row_count = -1;
        sink.error(error);
    }
}

/// Returns the status flags of a session.
pub(crate) fn status_of(trx: &SessionTrx, session: &SessionState) -> StatusFlags {
    let mode = &session.settings.parse.mode;
    [
        (trx.in_transaction(), StatusFlags::IN_TRANS),
        (trx.in_transaction() && trx.is_read_only(), StatusFlags::IN_TRANS_READONLY),
        (trx.autocommit(), StatusFlags::AUTOCOMMIT),
        (mode.no_backslash_escapes, StatusFlags::NO_BACKSLASH_ESCAPES),
        (mode.ansi_quotes, StatusFlags::ANSI_QUOTES),
    ]
    .into_iter()
    .fold(StatusFlags::default(), |flags, (is_set, flag)| if is_set { flags.with(flag) } else { flags })
}

/// Error 1044 if the account must not know of the schema, otherwise 1049 if it does not exist.
fn check_enterable(session: &SessionState, schema: &str) -> SqlResult<()> {
    cohort_session::access::may_enter(session, schema)?;
    let db = &session.db;
    let known = db.virtual_tables.has_schema(schema) || db.catalog().schemas.contains_key(schema);
    let error = || SqlError::unknown_database(schema);
    if known { Ok(()) } else { Err(error()) }
}

/// Returns the text after `count` semicolons, which are the same byte in every client character set.
fn behind_semicolons(sent: &[u8], count: usize) -> &[u8] {
    let mut places = sent.iter().enumerate().filter(|(_, byte)| **byte == b';').map(|(place, _)| place + 1);
    let from = count.checked_sub(1).map_or(Some(0), |last| places.nth(last));
    &sent[from.unwrap_or(sent.len())..]
}

/// Returns the state that a session shares with its transactions.
fn shared_by(trx: &SessionTrx) -> (Arc<TemporaryTables>, Arc<Party>) {
    (Arc::clone(trx.temporary()), Arc::clone(trx.party()))
}
