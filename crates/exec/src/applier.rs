//! [`Applier`]: a session that applies what a source has done, group by group.
//!
//! # The way of a group
//! ```text
//! begin(head) -> rows() | statement(), as the events come -> commit(redo)
//!            \-> anything fails: rollback(); nothing of it stays, and it may be begun again
//! ```
//! The caller's redo, in which it keeps how far it has come, travels in the group's own commit record: either
//! both are there after a crash or neither. A statement that commits by itself (DDL) takes it along
//! ([`Applier::ddl`]).
//!
//! # What is as on the source
//! Server id, GTID, times, SQL mode, character sets, time zone, generated numbers, seeds of RAND(), user
//! variables, the number of the connection. What is as here: row locks, the binlog's form of a change, the
//! XID.
//!
//! # Temporary tables
//! A statement has those of its connection on the source ([`SourceTemporaryTables`]), whichever applier runs
//! it.
//!
//! # Rows that no key finds
//! Events of one statement that change such rows wait for its last one, and are applied together (`held`).
//!
//! # Who waits for the flush
//! Nobody: a group is ordered, and the next one begins. The thread that runs the applier has another one
//! flush.

mod held;
mod xa;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cohort_base::Reservation;
use cohort_base::{Budget, CommitSeq, ConnectionId, DomainId, Gtid, ParticipantId, ServerId};
use cohort_binlog::event::{
    DecodeError, ExecuteLoadQuery, FileBlock, Intvar, IntvarKind, QueryEvent, Rand, RowsEvent, StatusVars,
    TableMap, UserVar, UserVarType, gtid_flags2, rows_flags,
};
use cohort_commit::GroupKind;
use cohort_config::{VarId, VarValue};
use cohort_engine::Redo;
use cohort_expr::SessionHooks;
use cohort_protocol::{ColumnMeta, OkInfo, ResultHead, ResultSink, StatusFlags};
use cohort_sql::ast::{CreateMode, Statement};
use cohort_types::{Charset, Collation, Decimal, ErrorCode, SqlError, SqlResult, Str, Value};

use crate::account_tables;
use crate::dispatch::parse_charged;
use crate::session::Session;
use cohort_dml::apply_rows;
pub use cohort_dml::{ApplyRules, Conversions};
use cohort_plan::ParamSource;
use cohort_session::{Command, ConnectionInfo, Database, Job, Process, ProcessIdentity};
use cohort_table::{SourceTemporaryTables, SourceThread};
pub use cohort_trx::AllowsOutcome;
use cohort_trx::{BeginOptions, DetachedTrx, Isolation, OnceEnd};

/// What a group is, as its GTID event says.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupHead {
    /// None: the source has no GTIDs, the group gets one of this server's.
    pub gtid: Option<Gtid>,
    /// `flags2` of the GTID event.
    pub flags2: u8,
    /// Flags of the common header that are logged again.
    pub event_flags: u16,
    /// Where the group began.
    pub server: ServerId,
}

/// A group that is applied and has no place in the order yet. Dropping it undoes it.
pub struct FinishedGroup {
    trx: DetachedTrx,
    gtid: Option<Gtid>,
}

/// The end of a statement that is a group of its own.
#[derive(Debug)]
pub struct DdlEnd {
    /// The statement's own; the one that it would have had if it was not ordered because of that.
    pub outcome: SqlResult<()>,
    /// Its place, if it has one.
    pub ordered: Option<CommitSeq>,
    /// It has done all that it has to do, or nothing.
    pub is_whole: bool,
}

/// A session that applies events. Dropping it rolls back.
pub struct Applier {
    session: Session,
    process: Arc<Process>,
    head: GroupHead,
    /// The last statement's settings: most statements have those of the one before.
    status: Vec<u8>,
    /// Whether changes go to this server's own binary log.
    logs: bool,
    /// Files of LOAD DATA in statement format, by their numbers on the source, block by block.
    files: BTreeMap<u32, Vec<Vec<u8>>>,
    file_memory: Reservation,
    temporary: Arc<SourceTemporaryTables>,
    /// The connection whose temporary tables the session has.
    thread: SourceThread,
    /// Row events may wait for the end of their statement; those that do.
    holds: bool,
    held: Option<held::Held>,
    held_memory: Reservation,
}

/// Takes a statement's outcome; rows are for nobody.
#[derive(Default)]
struct Outcome {
    error: Option<SqlError>,
}

impl ResultSink for Outcome {
    fn start(&mut self, _: &[ColumnMeta], _: ResultHead) {}
    fn row(&mut self, _: &[Value]) {}
    fn finish(&mut self, _: StatusFlags, _: u16) {}
    fn ok(&mut self, _: &OkInfo<'_>) {}
    fn error(&mut self, error: &SqlError) {
        self.error = Some(error.clone());
    }
    fn is_dead(&self) -> bool {
        false
    }
}

/// Characters of a skipped statement in the error log.
const SKIPPED_TEXT_MAX: usize = 200;

/// Nothing to compute, nothing to tell.
const NO_JOB: Job<'static> =
    Job { text: &[], param_at: &[], params: &[], source: ParamSource::Literals, more: false };

impl Applier {
    /// A session of "system user", in the process list under this number. `logs`: `log_slave_updates`.
    pub fn new(
        db: &Arc<Database>,
        id: ConnectionId,
        command: Command,
        logs: bool,
        temporary: Arc<SourceTemporaryTables>,
    ) -> SqlResult<Applier> {
        let identity = ProcessIdentity { user: "system user".to_owned(), ..ProcessIdentity::default() };
        let process = db.processes.register(id, identity, db.clock.wall_us());
        let info = ConnectionInfo {
            id,
            user: String::new(),
            host: String::new(),
            account: (String::new(), String::new()),
            schema: None,
            collation: Collation::UTF8MB4_GENERAL_CI,
            multi_statements: false,
            found_rows: false,
            encryption: None,
            is_local: true,
        };
        let session = Session::new_internal(Arc::clone(db), info, Arc::clone(&process));
        let mut session = session.inspect_err(|_| db.processes.remove(id))?;
        process.set_command(command, db.clock.wall_us());
        session.state.is_applier = true;
        session.bind_writer();
        // What is meant for clients does not hold for what has happened elsewhere.
        let vars = &mut session.state.vars;
        vars.put(VarId::Autocommit, &VarValue::Bool(true));
        vars.put(VarId::TransactionReadOnly, &VarValue::Bool(false));
        vars.put(VarId::SqlSafeUpdates, &VarValue::Bool(false));
        vars.put(VarId::MaxStatementTime, &VarValue::Double(0.0));
        vars.put(VarId::CompletionType, &VarValue::UInt(0));
        let file_memory = Reservation::new(Arc::clone(process.memory()));
        let held_memory = Reservation::new(Arc::clone(process.memory()));
        let mut applier = Applier {
            session,
            process,
            head: GroupHead::default(),
            status: Vec::new(),
            logs,
            files: BTreeMap::new(),
            file_memory,
            temporary,
            thread: (ServerId(0), 0),
            holds: false,
            held: None,
            held_memory,
        };
        applier.obey();
        Ok(applier)
    }

    /// Its row of the process list.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Memory for a compressed event, to be kept as long as its plain form.
    pub fn room_to_unpack(&self, bytes: Result<u64, DecodeError>) -> SqlResult<Option<Reservation>> {
        cohort_dml::room_to_unpack(&self.session.state.db.globals, self.process.memory(), bytes)
    }

    /// Hands the settings of session and group to the transaction.
    fn obey(&mut self) {
        self.session.state.refresh();
        self.session.apply_settings();
        let settings = &mut self.session.trx.settings;
        // Rows that a search met and did not want are not kept locked.
        settings.isolation = Isolation::ReadCommitted;
        settings.is_flushed_elsewhere = true;
        let binlog = &mut settings.binlog;
        binlog.on &= self.logs;
        binlog.as_text = false;
        binlog.server = self.head.server;
        binlog.event_flags = self.head.event_flags;
        if let Some(gtid) = self.head.gtid {
            binlog.domain = DomainId(gtid.domain.0);
            binlog.seq_no = Some(gtid.seq_no);
            binlog.allow_parallel = self.head.flags2 & gtid_flags2::ALLOW_PARALLEL != 0;
            binlog.source_waited = self.head.flags2 & gtid_flags2::WAITED != 0;
        } else {
            binlog.seq_no = None;
            binlog.source_waited = false;
        }
    }

    /// A group begins; what an unfinished one did is undone. `in_transaction`: it may have more than one
    /// statement.
    pub fn begin(&mut self, head: GroupHead, in_transaction: bool) -> SqlResult<()> {
        self.rollback();
        // A KILL QUERY from before was meant for another group.
        self.session.state.kill.clear_query();
        self.head = head;
        self.holds = false;
        self.obey();
        if in_transaction {
            self.session.trx.begin(BeginOptions::default())?;
        }
        Ok(())
    }

    /// Undoes what the group did so far.
    pub fn rollback(&mut self) {
        self.forget_files();
        self.forget_held();
        self.session.trx.detach();
        self.session.trx.leave_branch();
        self.session.trx.rollback();
    }

    /// Fails if the thread was killed.
    pub fn check_killed(&self) -> SqlResult<()> {
        self.session.trx.check_killed()
    }

    fn set_clock(&mut self, timestamp: u32, micros: u32) {
        self.session.state.clock_override = Some(i64::from(timestamp) * 1_000_000 + i64::from(micros));
    }

    /// Row changes of one event. `annotation` is the statement behind them, or empty.
    pub fn rows(
        &mut self,
        map: &TableMap,
        rows: &RowsEvent,
        annotation: &[u8],
        timestamp: u32,
        rules: &ApplyRules,
    ) -> SqlResult<()> {
        match self.hold(map, rows, annotation, timestamp, rules)? {
            true => Ok(()),
            false => self.apply_rows(map, rows, annotation, timestamp, rules),
        }
    }

    fn apply_rows(
        &mut self,
        map: &TableMap,
        rows: &RowsEvent,
        annotation: &[u8],
        timestamp: u32,
        rules: &ApplyRules,
    ) -> SqlResult<()> {
        self.set_clock(timestamp, 0);
        self.session.look_at_clock();
        self.session.begin_command();
        let kept = rows_flags::NO_FOREIGN_KEY_CHECKS | rows_flags::RELAXED_UNIQUE_CHECKS;
        self.session.trx.settings.binlog.rows_flags = rows.flags & kept;
        let job = Job { text: annotation, ..NO_JOB };
        self.session.with_context(&job, |ctx| {
            ctx.annotate();
            apply_rows(ctx, map, rows, rules).map_err(corrupt)
        })
    }

    /// A statement of a transaction. The error is its own.
    /// `replaces`: CREATE TABLE takes the place of a table that is there (`slave_ddl_exec_mode`).
    pub fn statement(
        &mut self,
        event: &QueryEvent,
        db: &[u8],
        timestamp: u32,
        replaces: bool,
    ) -> SqlResult<()> {
        self.apply_held()?;
        let _room = self.room_to_unpack(event.inflated_bytes())?;
        let sql = event.plain_sql().map_err(|e| SqlError::new(ErrorCode::UnknownError, e.to_string()))?;
        self.adopt_context(event, db, timestamp)?;
        let sql = self.in_utf8(sql)?;
        let may_define = may_define(&sql) || may_be_about_accounts(&sql, db);
        let outcome = match self.session.trx.in_transaction() && may_define {
            true => self.definition_inside(&sql, replaces),
            false => self.run(&sql, replaces),
        };
        self.temporary.keep(self.thread, self.session.trx.temporary());
        self.forget_context();
        outcome
    }

    /// Gives the session the temporary tables of a connection of the source.
    fn use_temporary_of(&mut self, thread: SourceThread) {
        self.thread = thread;
        if self.temporary.is_empty() && self.session.trx.temporary().is_empty() {
            return;
        }
        let tables = self.temporary.of(thread, || {
            let db = &self.session.state.db;
            db.temporary_tables(Budget::of_session(db.processes.memory()))
        });
        if !Arc::ptr_eq(&tables, self.session.trx.temporary()) {
            self.session.trx.use_temporary(Arc::clone(&tables));
            self.session.state.temporary = tables;
        }
    }

    /// The statement that generated numbers and seeds were meant for has run, or does not run here.
    pub fn forget_context(&mut self) {
        self.session.state.next_random.set(None);
        self.session.trx.settings.insert_id = 0;
    }

    fn run(&mut self, sql: &[u8], replaces: bool) -> SqlResult<()> {
        let mut outcome = Outcome::default();
        self.session.look_at_clock();
        self.session.run_text(sql, false, &mut outcome);
        match outcome.error {
            None => Ok(()),
            Some(error) if error.code == ErrorCode::TableExists => self.replace(sql, error, replaces),
            Some(error) if error.code == ErrorCode::NotSupportedYet && self.skips(sql) => self.pass_on(sql),
            Some(error) => Err(error),
        }
    }

    /// Returns whether a statement is one that `slave_skip_stored_programs` is about.
    fn skips(&self, sql: &[u8]) -> bool {
        let state = &self.session.state;
        state.db.globals.flag(VarId::SlaveSkipStoredPrograms)
            && cohort_sql::defines_program(sql, state.parse.mode)
    }

    /// Logs a definition of a stored program without running it. The binary log has no gap, so that the
    /// source can follow this server later.
    fn pass_on(&mut self, sql: &[u8]) -> SqlResult<()> {
        let text = String::from_utf8_lossy(sql);
        let begin: String = text.chars().take(SKIPPED_TEXT_MAX).collect();
        log::warn!(
            "Slave SQL: a statement about a stored program was skipped (slave_skip_stored_programs): {}",
            begin.replace('\n', " ")
        );
        self.session.begin_command();
        let job = Job { text: sql, ..NO_JOB };
        self.session.with_context(&job, |ctx| cohort_ddl::log_statement(ctx, GroupKind::Ddl))
    }

    /// CREATE TABLE once more, as CREATE OR REPLACE TABLE. `before` is the error if it is anything else. A
    /// temporary table that is in the way is what a group made before it was begun again: the source had
    /// none.
    fn replace(&mut self, sql: &[u8], before: SqlError, replaces: bool) -> SqlResult<()> {
        let mut syntax = Reservation::new(Arc::clone(self.session.process.memory()));
        let mut parsed = parse_charged(sql, &self.session.state.parse, &mut syntax)?;
        let Statement::CreateTable(create) = &mut parsed.statement else { return Err(before) };
        if !replaces && !create.temporary {
            return Err(before);
        }
        create.mode = CreateMode::OrReplace;
        self.session.look_at_clock();
        self.session.begin_command();
        let job = Job { text: sql, ..NO_JOB };
        self.session.run_statement(&parsed.statement, &job, None, &mut Outcome::default())
    }

    /// A definition inside of a transaction: CREATE TABLE .. SELECT of a source that logs rows. It commits by
    /// itself here, so a crash may leave it behind: the group then begins once more, and replaces it. It is
    /// logged with the rows that follow.
    fn definition_inside(&mut self, sql: &[u8], replaces: bool) -> SqlResult<()> {
        let mut syntax = Reservation::new(Arc::clone(self.session.process.memory()));
        let parsed = parse_charged(sql, &self.session.state.parse, &mut syntax)?;
        // Rows of MariaDB's accounts are accounts here.
        let is_about_accounts = account_tables::changed_by(&self.session.state, &parsed.statement).is_some();
        if !is_about_accounts && !cohort_sql::commits_implicitly(&parsed.statement) {
            return self.run(sql, replaces);
        }
        let binlog = &mut self.session.trx.settings.binlog;
        let (logs, number) = (std::mem::replace(&mut binlog.on, false), binlog.seq_no.take());
        let outcome = self.run(sql, replaces);
        let binlog = &mut self.session.trx.settings.binlog;
        (binlog.on, binlog.seq_no) = (logs, number);
        // The next applier of it does so alone.
        binlog.allow_parallel = false;
        outcome?;
        // The rows that follow find the definition.
        self.session.trx.await_own()?;
        self.session.trx.begin(BeginOptions::default())?;
        let text = String::from_utf8_lossy(sql);
        let event = cohort_ddl::query_event(&self.session.state, &text);
        self.session.trx.log_text(event)
    }

    /// A statement that is a group of its own and commits by itself. It is ordered once, with the caller's
    /// redo and an outcome that `allows` accepts, or nothing of it is.
    pub fn ddl(
        &mut self,
        event: &QueryEvent,
        db: &[u8],
        timestamp: u32,
        replaces: bool,
        attached: (ParticipantId, Redo),
        allows: AllowsOutcome,
    ) -> DdlEnd {
        self.session.trx.attach_once(attached.0, attached.1, allows);
        let mut outcome = self.statement(event, db, timestamp, replaces);
        // It found nothing to do, or does not commit by itself.
        if outcome.is_ok() && self.session.trx.has_attached() {
            outcome = self.session.trx.commit_attached().map(drop);
        }
        let seq = match self.session.trx.end_once() {
            OnceEnd::Ordered(seq) => Some(seq),
            OnceEnd::Open => None,
            OnceEnd::Refused(refused) => {
                outcome = refused;
                None
            }
            OnceEnd::Twice(seq) => {
                debug_assert!(false, "an applied statement commits twice");
                let text = "A statement of the source has committed, and would commit more than that here";
                outcome = Err(SqlError::new(ErrorCode::UnknownError, text));
                self.rollback();
                return DdlEnd { outcome, ordered: Some(seq), is_whole: false };
            }
        };
        match seq {
            Some(_) => self.count_on(),
            None => self.rollback(),
        }
        DdlEnd { outcome, ordered: seq, is_whole: true }
    }

    /// Ends the group: what it did and the caller's redo are ordered as one.
    pub fn commit(&mut self, attached: (ParticipantId, Redo)) -> SqlResult<CommitSeq> {
        self.apply_held()?;
        self.session.trx.attach(attached.0, attached.1);
        let committed = self.session.trx.commit_attached();
        if committed.is_err() {
            self.rollback();
        }
        committed?;
        self.count_on();
        Ok(self.session.trx.last_ordered())
    }

    /// Own numbers come behind those that were applied, logged or not.
    fn count_on(&self) {
        if let Some(gtid) = self.head.gtid {
            self.session.state.db.commit.raise_gtid(gtid.domain, gtid.seq_no);
        }
    }

    /// The group is done but for its place in the order. Dropped, it is undone.
    pub fn finish(&mut self) -> SqlResult<FinishedGroup> {
        self.apply_held()?;
        let gtid = self.head.gtid;
        self.session.trx.detach_transaction().map(|trx| FinishedGroup { trx, gtid })
    }

    /// Gives a group that some applier finished its place in the order, with the caller's redo.
    pub fn commit_finished(
        &mut self,
        group: FinishedGroup,
        attached: (ParticipantId, Redo),
    ) -> SqlResult<CommitSeq> {
        // First what a begun group here would bring.
        self.rollback();
        self.session.trx.attach(attached.0, attached.1);
        let committed = self.session.trx.commit_detached(group.trx);
        if committed.is_err() {
            self.rollback();
        }
        committed?;
        if let Some(gtid) = group.gtid {
            self.session.state.db.commit.raise_gtid(gtid.domain, gtid.seq_no);
        }
        Ok(self.session.trx.last_ordered())
    }

    /// Whether this server wrote a transaction and lost it: its binary log ends before this number of its
    /// domain and server. If it has none of them, somebody else may use this server's id; only a
    /// semi-synchronous replica, which may have been a source that lost all, believes it then.
    pub fn lost(&self, gtid: Gtid) -> bool {
        let db = &self.session.state.db;
        let logged = db.commit.binlog_status();
        logged.is_some_and(|(_, gtids)| match gtids.seq_no(gtid.domain, gtid.server) {
            Some(newest) => newest < gtid.seq_no,
            None => db.globals.flag(VarId::RplSemiSyncSlaveEnabled),
        })
    }

    /// At return the engines have applied what was ordered last.
    pub fn await_ordered(&self) {
        let trx = &self.session.trx;
        self.session.state.db.commit.await_ordered(trx.last_ordered());
    }

    /// At return what was ordered last is published, or the applier is to end.
    pub fn await_published(&self) {
        // A KILL QUERY was meant for what ran before.
        while self.session.trx.await_own().is_err_and(|error| error.code == ErrorCode::QueryInterrupted) {
            self.session.state.kill.clear_query();
        }
    }

    /// A block of a file that a LOAD DATA of the group is going to load.
    pub fn add_to_file(&mut self, block: &FileBlock) -> SqlResult<()> {
        self.file_memory.grow((block.block.len() + size_of::<Vec<u8>>()) as u64)?;
        self.files.entry(block.file_id).or_default().push(block.block.clone());
        Ok(())
    }

    fn forget_files(&mut self) {
        self.files.clear();
        self.file_memory.shrink(self.file_memory.used());
    }

    /// LOAD DATA of a file that has come. The error is its own.
    pub fn load(&mut self, event: &ExecuteLoadQuery, db: &[u8], timestamp: u32) -> SqlResult<()> {
        let sql = &event.query.sql;
        let bad = || SqlError::new(ErrorCode::UnknownError, "A LOAD DATA event does not decode");
        let before = sql.get(..event.name_start as usize).ok_or_else(bad)?;
        let after = sql.get(event.name_end as usize..).ok_or_else(bad)?;
        let blocks = self.files.remove(&event.file_id).ok_or_else(bad)?;
        let name: &[u8] = match event.duplicates {
            1 => b" INFILE 'source' IGNORE INTO ",
            2 => b" INFILE 'source' REPLACE INTO ",
            _ => b" INFILE 'source' INTO ",
        };
        let query = QueryEvent { sql: [before, name, after].concat(), ..event.query.clone() };
        self.session.state.received_file.set(Some(blocks));
        let outcome = self.statement(&query, db, timestamp, false);
        self.session.state.received_file.set(None);
        self.forget_files();
        outcome
    }

    /// INSERT_ID or LAST_INSERT_ID of the next statement.
    pub fn set_intvar(&mut self, event: &Intvar) {
        match event.kind {
            IntvarKind::InsertId => self.session.trx.settings.insert_id = event.value,
            IntvarKind::LastInsertId => self.session.state.env.last_insert_id = event.value,
        }
    }

    /// Seeds of the next statement's RAND().
    pub fn set_seeds(&mut self, event: &Rand) {
        let seeds = (event.seed1 & 0xffff_ffff) << 32 | event.seed2 & 0xffff_ffff;
        self.session.state.next_random.set(Some(seeds));
    }

    /// A user variable of the next statement.
    pub fn set_user_variable(&mut self, event: &UserVar) -> SqlResult<()> {
        let bad = || SqlError::new(ErrorCode::UnknownError, "User variable of an event does not decode");
        let value = match &event.value {
            None => Value::Null,
            Some(value) => {
                let bytes = value.bytes.as_slice();
                let eight = || bytes.try_into().map(u64::from_le_bytes).map_err(|_| bad());
                match value.kind {
                    UserVarType::Real => Value::Double(f64::from_bits(eight()?)),
                    UserVarType::Int if value.flags.unwrap_or(0) & 1 != 0 => Value::UInt(eight()?),
                    UserVarType::Int => Value::Int(eight()? as i64),
                    UserVarType::Decimal => {
                        let [precision, scale, digits @ ..] = bytes else { return Err(bad()) };
                        Value::Decimal(Decimal::read_packed(*precision, *scale, digits).ok_or_else(bad)?)
                    }
                    UserVarType::String => {
                        let id = u16::try_from(value.collation).map_err(|_| bad())?;
                        let collation = Collation::from_id(id).ok_or_else(|| unknown_collation(id))?;
                        let mut text = Vec::new();
                        collation.charset().decode(bytes, &mut text).map_err(|_| bad())?;
                        Value::Str(Str { bytes: text, collation })
                    }
                }
            }
        };
        let name = String::from_utf8_lossy(&event.name);
        SessionHooks::set_user_variable(&self.session.state, &name, value)
    }

    /// Makes the session as the source's was when the statement ran there.
    fn adopt_context(&mut self, event: &QueryEvent, db: &[u8], timestamp: u32) -> SqlResult<()> {
        let vars = event.status_vars().map_err(|e| SqlError::new(ErrorCode::UnknownError, e.to_string()))?;
        self.set_clock(timestamp, vars.hrnow.unwrap_or(0));
        self.use_temporary_of((self.head.server, event.thread_id));
        let state = &mut self.session.state;
        state.info.id = ConnectionId(event.thread_id.into());
        let db = String::from_utf8_lossy(db);
        if state.current_schema.as_deref().unwrap_or("") != db {
            state.current_schema = (!db.is_empty()).then(|| db.as_ref().into());
            self.process.set_schema(state.current_schema.as_deref());
        }
        if self.status != event.status || event.status.is_empty() {
            self.adopt_settings(&vars)?;
            self.status.clone_from(&event.status);
        }
        self.obey();
        Ok(())
    }

    /// The text in the character set that statements are read in here; its event says so when it is logged
    /// again.
    fn in_utf8<'s>(&mut self, sql: Cow<'s, [u8]>) -> SqlResult<Cow<'s, [u8]>> {
        let charset = self.session.state.client_collation.charset();
        if sql.is_ascii() || matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary) {
            return Ok(sql);
        }
        let mut text = Vec::new();
        charset.decode(&sql, &mut text).map_err(|at| {
            let what = format!("Invalid {} character string in a statement, at byte {at}", charset.name());
            SqlError::new(ErrorCode::InvalidCharacterString, what)
        })?;
        let state = &mut self.session.state;
        state.client_collation = Collation::UTF8MB4_GENERAL_CI;
        state.vars.put(VarId::CharacterSetClient, &VarValue::text(Charset::Utf8mb4.name()));
        self.status.clear();
        self.obey();
        Ok(Cow::Owned(text))
    }

    fn adopt_settings(&mut self, from: &StatusVars) -> SqlResult<()> {
        let state = &mut self.session.state;
        let vars = &mut state.vars;
        let flags2 = from.flags2.unwrap_or(0);
        for (id, value) in [
            (VarId::SqlAutoIsNull, flags2 & 0x4000 != 0),
            (VarId::ForeignKeyChecks, flags2 & 0x400_0000 == 0),
            (VarId::UniqueChecks, flags2 & 0x800_0000 == 0),
            (VarId::ExplicitDefaultsForTimestamp, flags2 & 0x100_0000 != 0),
        ] {
            vars.put(id, &VarValue::Bool(value));
        }
        vars.put(VarId::SqlMode, &VarValue::UInt(from.sql_mode.unwrap_or(0)));
        vars.put(VarId::LcTimeNames, &VarValue::UInt(0));
        vars.put(VarId::LcTimeNames, &VarValue::UInt(from.lc_time_names.unwrap_or(0).into()));
        let (increment, offset) = from.auto_increment.unwrap_or((1, 1));
        vars.put(VarId::AutoIncrementIncrement, &VarValue::UInt(increment.into()));
        vars.put(VarId::AutoIncrementOffset, &VarValue::UInt(offset.into()));
        if let Some(zone) = &from.time_zone {
            vars.put(VarId::TimeZone, &VarValue::text(&String::from_utf8_lossy(zone)));
        } else {
            vars.put(VarId::TimeZone, &VarId::TimeZone.setting().default_value());
        }
        let put = |vars: &mut cohort_config::SessionVars, id: u16, charset: &[VarId], collation: &[VarId]| {
            let found = Collation::from_id(id).ok_or_else(|| unknown_collation(id))?;
            charset.iter().for_each(|&var| vars.put(var, &VarValue::text(found.charset().name())));
            collation.iter().for_each(|&var| vars.put(var, &VarValue::text(found.name())));
            Ok::<Collation, SqlError>(found)
        };
        if let Some([client, connection, server]) = from.charset {
            use VarId::*;
            state.client_collation = put(vars, client, &[CharacterSetClient], &[])?;
            put(vars, connection, &[CharacterSetConnection], &[CollationConnection])?;
            put(vars, server, &[CharacterSetServer], &[CollationServer])?;
        }
        Ok(())
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        self.rollback();
        self.session.state.db.processes.remove(self.process.id());
    }
}

/// What BINLOG statements call malformed is error 1610 of a source.
fn corrupt(error: SqlError) -> SqlError {
    match error.code {
        ErrorCode::Parse => {
            SqlError::new(ErrorCode::SlaveCorruptEvent, "Corrupted replication event was detected")
        }
        _ => error,
    }
}

/// Whether a text may be a statement that commits by itself: it is no change of rows.
fn may_define(sql: &[u8]) -> bool {
    let begins =
        |word: &str| sql.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
    !["INSERT", "UPDATE", "DELETE", "REPLACE", "SAVEPOINT", "ROLLBACK", "RELEASE"].into_iter().any(begins)
}

/// Whether a change of rows may be one of a table of accounts.
fn may_be_about_accounts(sql: &[u8], db: &[u8]) -> bool {
    db == b"mysql" || sql.windows(5).any(|word| word.eq_ignore_ascii_case(b"mysql"))
}

fn unknown_collation(id: u16) -> SqlError {
    let text = format!("Character set '#{id}' is not a compiled character set");
    SqlError::new(ErrorCode::UnknownCharacterSet, text)
}
