//! One connection's state. Commands run to completion on the calling thread, one after the other; replies go
//! into a [`ResultSink`]; the reply of a commit must be held back until [`Session::hold_until`] is published
//! (I4, I5).

use std::sync::Arc;

use cohort_base::{CommitSeq, Hold};
use cohort_config::{Counter, VarId};
use cohort_locks::{KillLevel, Party};
use cohort_protocol::{OkInfo, ResultSink, StatusFlags};
use cohort_session::ConnectionInfo;
use cohort_types::{Charset, Collation, ErrorCode, Privilege, SqlError, SqlResult, Value};
use hashbrown::HashMap;

use crate::handler::OpenHandler;
use crate::kept::Kept;
use crate::prepared::PreparedStatements;
use crate::session_log::{PlanNotes, Work};
use cohort_session::{
    Changed, Command, ConnectionEvent, Database, Diagnostics, Process, Restraint, SessionState,
    check_client_charset,
};
use cohort_table::TemporaryTables;
use cohort_trx::SessionTrx;

/// A connection's session. Dropping it rolls back.
pub struct Session {
    /// What statements keep for all sessions.
    pub(crate) kept: Arc<Kept>,
    pub(crate) state: SessionState,
    pub(crate) trx: SessionTrx,
    pub(crate) process: Arc<Process>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) prepared: PreparedStatements,
    /// What HANDLER has opened, by its name in lower case.
    pub(crate) handlers: HashMap<String, OpenHandler>,
    /// Literals of the running statement; kept for its memory.
    pub(crate) literals: Vec<Value>,
    /// What the running statement has done so far, for the logs.
    pub(crate) work: Work,
    /// The text that EXECUTE has run, in whose place the audit log tells it.
    pub(crate) executed_text: Option<Arc<[u8]>>,
    /// What it will have to say about its plan.
    pub(crate) plan_notes: PlanNotes,
    /// The wall clock at the last look: a statement looks when it begins and when it has ended, and all that
    /// want to know its time share these looks.
    pub(crate) clock_us: u64,
}

impl Session {
    /// A session of an authenticated user, which the logs are told of. `process` is his entry in
    /// `Database::processes`.
    pub fn new(db: Arc<Database>, info: ConnectionInfo, process: Arc<Process>) -> SqlResult<Session> {
        let session = Session::of_nobody(db, info, process)?;
        session.state.audit_connection(ConnectionEvent::Connect, 0);
        if session.state.db.globals.flag(VarId::GeneralLog) {
            session.log_connect("Connect");
        }
        Ok(session)
    }

    /// The same for a thread of the server's own.
    pub(crate) fn of_nobody(
        db: Arc<Database>,
        info: ConnectionInfo,
        process: Arc<Process>,
    ) -> SqlResult<Session> {
        check_client_charset(info.collation)?;
        let kept = Kept::of(&db);
        let kill = process.kill_flag().clone();
        let mut trx = SessionTrx::new(Arc::clone(&db.env), kill.clone(), process.counts().clone());
        trx.show_at(Arc::clone(process.gauge()));
        trx.look_for_kills_at(Arc::clone(process.hold()));
        trx.charge_to(Arc::clone(process.memory()));
        let (pace, memory) = (Arc::clone(trx.client()), Arc::clone(process.memory()));
        let state = SessionState::new(db, info, kill, pace, memory, shared_by(&trx));
        let mut state = state;
        state.adopt_account()?;
        if let Some(schema) = &state.info.schema {
            check_enterable(&state, schema)?;
        }
        process.set_schema(state.info.schema.as_deref());
        let mut session = Session {
            kept,
            state,
            trx,
            process,
            diagnostics: Diagnostics::default(),
            prepared: PreparedStatements::default(),
            handlers: HashMap::new(),
            literals: Vec::new(),
            work: Work::default(),
            executed_text: None,
            plan_notes: PlanNotes::default(),
            clock_us: 0,
        };
        session.bind_writer();
        session.apply_settings();
        Ok(session)
    }

    /// Has `read_only` go by the account, and the role, that the session has now.
    pub(crate) fn bind_writer(&mut self) {
        self.trx.set_writer(self.state.writer());
    }

    /// Whether the connection is to be closed: KILL was used on it.
    pub fn is_killed(&self) -> bool {
        self.state.kill.killed() == Some(KillLevel::Connection)
    }

    /// Replies produced so far may leave only when this position is published.
    pub fn hold_until(&self) -> CommitSeq {
        self.trx.hold_until()
    }

    /// Where whoever sends replies looks at that.
    pub fn hold(&self) -> &Arc<Hold> {
        self.trx.hold()
    }

    /// What all sessions share.
    pub fn database(&self) -> &Arc<Database> {
        &self.state.db
    }

    /// The connection in the process list.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The session's variables.
    pub fn vars(&self) -> &cohort_config::SessionVars {
        &self.state.vars
    }

    /// The collation of character_set_results; `None` is NULL.
    pub fn results_collation(&self) -> Option<Collation> {
        self.state.results_collation()
    }

    /// A variable that the server sets on the session's behalf.
    pub fn put_variable(&mut self, id: cohort_config::VarId, value: &cohort_config::VarValue) {
        self.state.vars.put(id, value);
    }

    /// User and host of the account that let the user in.
    pub fn account(&self) -> &(String, String) {
        &self.state.info.account
    }

    /// `@name`; `None` if it was never set.
    pub fn user_variable(&self, name: &str) -> Option<Value> {
        // It may hold what was read in rows that are not hardened (I5).
        self.trx.reveal();
        self.state.user_variables.borrow().get(&name.to_lowercase()).cloned()
    }

    /// Whether the account has a privilege everywhere; error 1227.
    pub fn check_global_privilege(&self, privilege: Privilege) -> SqlResult<()> {
        cohort_session::access::check_global(&self.state, privilege)
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.trx.in_transaction()
    }

    /// Whether the open transaction has changed something.
    pub fn has_written(&self) -> bool {
        self.trx.has_written()
    }

    /// State of the session, for answers to commands that run no statement.
    pub fn status(&self) -> StatusFlags {
        status_of(&self.trx, &self.state)
    }

    /// What decides how texts are decoded: the client's character set, and whether a backslash escapes.
    fn reading(&self) -> (Charset, bool) {
        (self.state.parse.client, self.state.parse.mode.no_backslash_escapes)
    }

    /// COM_QUERY: one or more results. Each statement is read as those before it have set.
    pub fn query(&mut self, sql: &[u8], sink: &mut dyn ResultSink) {
        let (mut sent, mut reading) = (sql, self.reading());
        let mut decoded = match self.state.decoded(sent) {
            Ok(decoded) => decoded,
            Err(error) => return self.fail(&error, sink),
        };
        let sql = &*decoded;
        // What SHOW PROCESSLIST and others tell ends with the statement, not behind it.
        let is_behind = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let end = sql.iter().rposition(|byte| !is_behind(byte)).map_or(0, |last| last + 1);
        self.begin_process(Command::Query, &sql[..end]);
        // A text of comments alone is answered with OK; played back binlogs send such.
        let is_comment = sql.iter().any(|byte| !byte.is_ascii_whitespace() && *byte != b';');
        let (mut at, mut any) = (0, false);
        loop {
            let rest = &decoded[at..];
            let Some((range, next)) = cohort_sql::next_statement(rest, self.state.parse.mode) else { break };
            let text = &rest[range];
            let after = &rest[next.min(rest.len())..];
            let more = cohort_sql::next_statement(after, self.state.parse.mode).is_some();
            if more && !self.state.info.multi_statements {
                let near = String::from_utf8_lossy(&after[..after.len().min(80)]).into_owned();
                self.fail(&cohort_session::syntax_error(&near), sink);
                any = true;
                break;
            }
            any = true;
            let watch = self.watch("Query", text);
            let succeeded = self.run_text(text, more, sink);
            self.profiled(watch, rest);
            self.watched(watch, text, (&[], &[]));
            if !succeeded || !more {
                break;
            }
            // The next statement may run for long, or wait: what is ordered does not wait for it.
            self.state.db.commit.lead();
            self.look_at_clock();
            at += next;
            if self.reading() != reading {
                sent = behind_semicolons(sent, decoded[..at].iter().filter(|byte| **byte == b';').count());
                reading = self.reading();
                decoded = match self.state.decoded(sent) {
                    Ok(decoded) => decoded,
                    Err(error) => {
                        self.fail(&error, sink);
                        break;
                    }
                };
                at = 0;
            }
        }
        if !any && is_comment {
            sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
        } else if !any {
            self.fail(&SqlError::new(ErrorCode::EmptyQuery, "Query was empty"), sink);
        }
        self.end_process();
    }

    /// A command begins.
    pub(crate) fn begin_process(&mut self, command: Command, text: &[u8]) {
        self.look_at_clock();
        let query_id = self.state.db.processes.next_query_id();
        self.process.begin_statement(command, (text, self.state.parse.mode), self.clock_us, query_id);
    }

    /// It has ended; the caller has looked at the clock since.
    pub(crate) fn end_process(&self) {
        self.process.end_statement(self.clock_us, self.trx.hold_until());
    }

    /// Notes the time, for what begins or ends now.
    pub(crate) fn look_at_clock(&mut self) {
        self.clock_us = self.state.db.clock.wall_us();
    }

    /// COM_INIT_DB.
    pub fn init_db(&mut self, schema: &str, sink: &mut dyn ResultSink) {
        if self.state.db.globals.flag(VarId::GeneralLog) {
            self.log_general("Init DB", schema.as_bytes());
        }
        match self.use_schema(schema) {
            Ok(()) => {
                self.state.tell_changes(sink);
                sink.ok(&OkInfo { status: self.status(), ..OkInfo::default() });
            }
            Err(error) => self.fail(&error, sink),
        }
    }

    /// USE.
    pub(crate) fn use_schema(&mut self, schema: &str) -> SqlResult<()> {
        check_enterable(&self.state, schema)?;
        self.state.current_schema = Some(schema.into());
        self.state.note_change(Changed::Schema);
        self.process.set_schema(Some(schema));
        self.state.refresh();
        Ok(())
    }

    /// The current database was dropped.
    pub(crate) fn leave_schema(&mut self) {
        self.state.current_schema = None;
        self.state.note_change(Changed::SchemaDropped);
        self.process.set_schema(None);
        self.state.refresh();
    }

    /// COM_RESET_CONNECTION: everything but the user and the current database is as in a new session, so that
    /// no setting is forgotten.
    pub fn reset(&mut self) {
        let schema = self.state.current_schema.take();
        self.begin_anew(schema);
    }

    /// COM_CHANGE_USER, after the new user was let in: as a new session of his. An error ends the connection.
    pub fn change_user(&mut self, info: ConnectionInfo) -> SqlResult<()> {
        check_client_charset(info.collation)?;
        self.state.info = info;
        // Nothing of the old account stays: neither what it held nor what bound it.
        (self.state.role, self.state.restraint) = (None, None);
        *self.state.access.borrow_mut() = None;
        let schema: Option<Arc<str>> = self.state.info.schema.as_deref().map(Arc::from);
        self.begin_anew(schema.clone());
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

    /// Makes everything that belongs to the session anew. The transaction is rolled back.
    fn begin_anew(&mut self, schema: Option<Arc<str>>) {
        self.trx.reset();
        let old = &self.state;
        let (db, info) = (Arc::clone(&old.db), old.info.clone());
        let (kill, pace, memory) =
            (old.kill.clone(), Arc::clone(&old.pace), Arc::clone(self.process.memory()));
        // What binds the account goes on to bind it, and its role stays.
        let (restraint, role) = (self.state.restraint.take(), self.state.role.take());
        self.state = SessionState::new(db, info, kill, pace, memory, shared_by(&self.trx));
        (self.state.restraint, self.state.role) = (restraint, role);
        self.state.current_schema = schema;
        self.bind_writer();
        self.state.apply_limits();
        self.state.refresh();
        self.prepared = PreparedStatements::default();
        self.handlers.clear();
        self.diagnostics = Diagnostics::default();
        self.apply_settings();
    }

    /// Error 1820 while the account's password has expired: for commands that run no statement.
    pub fn check_password(&self) -> SqlResult<()> {
        self.state.restraint.as_ref().map_or(Ok(()), Restraint::check_password)
    }

    /// COM_SET_OPTION.
    pub fn set_multi_statements(&mut self, on: bool) {
        self.state.info.multi_statements = on;
    }

    /// Notes an error and sends it.
    pub(crate) fn fail(&mut self, error: &SqlError, sink: &mut dyn ResultSink) {
        if error.code == ErrorCode::StatementTimeout {
            self.state.db.status.count(Counter::MaxStatementTimeExceeded);
        }
        // The text of an error may tell what was read in rows that are not hardened (I5).
        self.trx.reveal();
        self.diagnostics.set_error(error);
        self.work.error = error.code as u16;
        self.state.env.row_count = -1;
        sink.error(error);
    }
}

/// State of a session, for clients.
pub(crate) fn status_of(trx: &SessionTrx, session: &SessionState) -> StatusFlags {
    let mode = &session.parse.mode;
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

/// Errors 1044 when the account may not know of a schema, and else 1049 when it is not there.
fn check_enterable(session: &SessionState, schema: &str) -> SqlResult<()> {
    cohort_session::access::may_enter(session, schema)?;
    let db = &session.db;
    let known = db.virtual_tables.has_schema(schema) || db.catalog().schemas.contains_key(schema);
    let error = || SqlError::new(ErrorCode::BadDb, format!("Unknown database '{schema}'"));
    if known { Ok(()) } else { Err(error()) }
}

/// What stands behind so many semicolons, which are the same byte in every character set of clients.
fn behind_semicolons(sent: &[u8], count: usize) -> &[u8] {
    let mut places = sent.iter().enumerate().filter(|(_, byte)| **byte == b';').map(|(place, _)| place + 1);
    let from = count.checked_sub(1).map_or(Some(0), |last| places.nth(last));
    &sent[from.unwrap_or(sent.len())..]
}

/// State that a session and its transactions share.
fn shared_by(trx: &SessionTrx) -> (Arc<TemporaryTables>, Arc<Party>) {
    (Arc::clone(trx.temporary()), Arc::clone(trx.party()))
}
