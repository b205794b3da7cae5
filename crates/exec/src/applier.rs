//! [`Applier`]: a session that applies the transactions of a source, group by group.
//!
//! # Steps of a group
//! ```text
//! begin(head) -> rows() | statement(), for each event -> commit(redo)
//!            \-> any step fails: rollback(); the group has no effect and may be applied again
//! ```
//! The caller passes redo with its position in the source's log. It is part of the group's own commit record:
//! after a crash both are there, or neither. A statement that commits by itself (DDL) commits that redo, too
//! ([`Applier::ddl`]).
//!
//! # Context
//! Taken from the source: server id, GTID, times, SQL mode, character sets, time zone, generated numbers,
//! seeds of RAND(), user variables, connection id. This server's own: row locks, the binlog format of a
//! change, the XID.
//!
//! # Temporary tables
//! A statement uses the temporary tables of its connection on the source ([`SourceTemporaryTables`]),
//! independent of the applier that runs it.
//!
//! # Row events without a usable key
//! Row events of one statement whose rows no key can find are collected until the statement's last one, and
//! applied together (`held`).
//!
//! # Flush
//! No applier waits for the flush: as soon as a group is ordered, the next one begins. The thread that runs
//! the applier leaves the flush to another thread.

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
use cohort_catalog::AccountName;
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
use cohort_session::{Command, ConnectionInfo, Database, EventKind, Job, Origin, Process, ProcessIdentity};
use cohort_table::{SourceTemporaryTables, SourceThread};
pub use cohort_trx::AllowsOutcome;
use cohort_trx::{BeginOptions, DetachedTrx, Isolation, OnceEnd};

/// Properties of a group from its GTID event.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupHead {
    /// `None` if the source has no GTIDs: the group gets one of this server's.
    pub gtid: Option<Gtid>,
    /// `flags2` of the GTID event.
    pub flags2: u8,
    /// Flags of the common header that are copied to the own binlog.
    pub event_flags: u16,
    /// The server where the group was executed first.
    pub server: ServerId,
}

/// An applied group that is not ordered yet. Dropping it rolls it back.
pub struct FinishedGroup {
    trx: DetachedTrx,
    gtid: Option<Gtid>,
}

/// The outcome of a statement that is a group of its own.
#[derive(Debug)]
pub struct DdlEnd {
    /// The statement's outcome. If it was not ordered because `allows` rejected the outcome, the rejected
    /// one.
    pub outcome: SqlResult<()>,
    /// Its CommitSeq, if it was ordered.
    pub ordered: Option<CommitSeq>,
    /// Whether the statement is complete, or had no effect.
    pub is_whole: bool,
}

/// A session that applies events. Dropping it rolls back.
pub struct Applier {
    session: Session,
    process: Arc<Process>,
    head: GroupHead,
    /// The last statement's settings. Most statements have the same ones as the previous statement.
    status: Vec<u8>,
    /// Whether changes are written to this server's own binary log.
    logs: bool,
    /// Files of LOAD DATA in statement format, by their ids on the source, as lists of blocks.
    files: BTreeMap<u32, Vec<Vec<u8>>>,
    file_memory: Reservation,
    temporary: Arc<SourceTemporaryTables>,
    /// The source's connection whose temporary tables the session uses.
    thread: SourceThread,
    /// Whether row events may be collected until the end of their statement.
    holds: bool,
    held: Option<held::Held>,
    held_memory: Reservation,
}

/// A sink for a statement's outcome. Rows are discarded.
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

/// Tables of the schema mysql whose row events are skipped, because they are views of the catalog here.
/// MariaDB's event scheduler logs the deletion of a row of mysql.event if the event leaves a transaction
/// open.
const OF_SOURCE: [&[u8]; 6] =
    [b"event", b"help_category", b"help_keyword", b"help_relation", b"help_topic", b"proc"];

/// A job without text and parameters.
const NO_JOB: Job<'static> =
    Job { text: &[], param_at: &[], params: &[], source: ParamSource::Literals, more: false };

impl Applier {
    /// Creates a session of "system user" with the given id in the process list. `logs`: `log_slave_updates`.
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
        let session = Session::with_origin(Arc::clone(db), info, Arc::clone(&process), Origin::Source);
        let mut session = session.inspect_err(|_| db.processes.remove(id))?;
        process.set_command(command, db.clock.wall_us());
        // Settings for clients do not apply to transactions that the source has already executed.
        let vars = &mut session.state.settings.vars;
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

    /// Returns its row of the process list.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Reserves memory for the uncompressed form of an event. The reservation is kept as long as that form.
    pub fn reserve_to_unpack(&self, bytes: Result<u64, DecodeError>) -> SqlResult<Option<Reservation>> {
        cohort_dml::reserve_to_unpack(&self.session.state.db.globals, self.process.memory(), bytes)
    }

    /// Applies the settings of session and group to the transaction.
    fn obey(&mut self) {
        self.session.state.refresh();
        self.session.apply_settings();
        let settings = &mut self.session.trx.settings;
        // Rows that a search has locked and that do not match are unlocked.
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

    /// Begins a group, after rolling back an unfinished one. `in_transaction`: it may have several
    /// statements.
    pub fn begin(&mut self, head: GroupHead, in_transaction: bool) -> SqlResult<()> {
        self.rollback();
        // An earlier KILL QUERY was meant for another group.
        self.session.state.kill.clear_query();
        self.head = head;
        self.holds = false;
        self.obey();
        if in_transaction {
            self.session.trx.begin(BeginOptions::default())?;
        }
        Ok(())
    }

    /// Rolls back the group.
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
        self.session.state.settings.clock_override =
            Some(i64::from(timestamp) * 1_000_000 + i64::from(micros));
    }

    /// Applies the row changes of one event. `annotation` is the text of their statement, or empty.
    pub fn rows(
        &mut self,
        map: &TableMap,
        rows: &RowsEvent,
        annotation: &[u8],
        timestamp: u32,
        rules: &ApplyRules,
    ) -> SqlResult<()> {
        if map.db[..] == *b"mysql" && OF_SOURCE.contains(&&map.table[..]) {
            let table = String::from_utf8_lossy(&map.table);
            log::warn!(
                "Slave SQL: changes of rows of mysql.{table} are not applied: repeat them here by statements about \
                 programs or events"
            );
            return Ok(());
        }
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
        self.session.begin_frame();
        self.session.set_kind(EventKind::ROWS);
        let kept = rows_flags::NO_FOREIGN_KEY_CHECKS | rows_flags::RELAXED_UNIQUE_CHECKS;
        self.session.trx.settings.binlog.rows_flags = rows.flags & kept;
        let job = Job { text: annotation, ..NO_JOB };
        let outcome = self.session.with_context(&job, |ctx| {
            ctx.annotate();
            apply_rows(ctx, map, rows, rules).map_err(corrupt)
        });
        self.session.work.error = outcome.as_ref().err().map_or(0, SqlError::number);
        self.session.end_frame(b"");
        self.session.settle();
        outcome
    }

    /// Runs a statement of a transaction. Returns the statement's error. `replaces`: CREATE TABLE replaces an
    /// existing table (`slave_ddl_exec_mode`).
    pub fn statement(
        &mut self,
        event: &QueryEvent,
        db: &[u8],
        timestamp: u32,
        replaces: bool,
    ) -> SqlResult<()> {
        self.apply_held()?;
        let _room = self.reserve_to_unpack(event.inflated_bytes())?;
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

    /// Discards the generated numbers and seeds of a statement that has run, or is skipped.
    pub fn forget_context(&mut self) {
        self.session.state.next_random.set(None);
        self.session.trx.settings.insert_id = 0;
    }

    fn run(&mut self, sql: &[u8], replaces: bool) -> SqlResult<()> {
        let mut outcome = Outcome::default();
        self.session.look_at_clock();
        self.session.begin_frame();
        self.session.run_text(sql, false, &mut outcome);
        self.session.end_frame(sql);
        // No reply is held.
        self.session.settle();
        match outcome.error {
            None => Ok(()),
            Some(error) if error.code == ErrorCode::TableExists => self.replace(sql, error, replaces),
            Some(error) => Err(error),
        }
    }

    /// Runs CREATE TABLE again, as CREATE OR REPLACE TABLE. Returns the error `before` for any other
    /// statement. A temporary table that already exists was made by this group before it was restarted: the
    /// source had none.
    fn replace(&mut self, sql: &[u8], before: SqlError, replaces: bool) -> SqlResult<()> {
        let mut syntax = Reservation::new(Arc::clone(self.session.process.memory()));
        let mut parsed = parse_charged(sql, &self.session.state.settings.parse, &mut syntax)?;
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

    /// Runs a definition within a transaction: CREATE TABLE .. SELECT of a source that logs rows. Here it
    /// commits by itself, so it may remain after a crash; the group is then restarted and replaces it. It is
    /// logged with the rows that follow.
    fn definition_inside(&mut self, sql: &[u8], replaces: bool) -> SqlResult<()> {
        let mut syntax = Reservation::new(Arc::clone(self.session.process.memory()));
        let parsed = parse_charged(sql, &self.session.state.settings.parse, &mut syntax)?;
        // Changes to the rows of MariaDB's account tables change accounts here.
        let is_about_accounts = account_tables::changed_by(&self.session.state, &parsed.statement).is_some();
        if !is_about_accounts && !cohort_session::commits_implicitly(&parsed.statement) {
            return self.run(sql, replaces);
        }
        let binlog = &mut self.session.trx.settings.binlog;
        let (logs, number) = (std::mem::replace(&mut binlog.on, false), binlog.seq_no.take());
        let outcome = self.run(sql, replaces);
        let binlog = &mut self.session.trx.settings.binlog;
        (binlog.on, binlog.seq_no) = (logs, number);
        // A replica of this server must not apply it in parallel.
        binlog.allow_parallel = false;
        outcome?;
        // The rows that follow need the definition.
        self.session.trx.await_own()?;
        self.session.trx.begin(BeginOptions::default())?;
        let text = String::from_utf8_lossy(sql);
        let event = cohort_ddl::query_event(&self.session.state, &text);
        self.session.trx.log_text(event)
    }

    /// Runs a statement that is a group of its own and commits by itself. It is ordered once, with the
    /// caller's redo and an outcome that `allows` accepts, or it has no effect.
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
        // The statement had nothing to do, or does not commit by itself.
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

    /// Commits the group: its changes and the caller's redo are ordered as one transaction.
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

    /// Raises the GTID counter, so that this server's own numbers follow those applied, logged or not.
    fn count_on(&self) {
        if let Some(gtid) = self.head.gtid {
            self.session.state.db.commit.raise_gtid(gtid.domain, gtid.seq_no);
        }
    }

    /// Detaches the applied group, which is not ordered yet. Dropping it rolls it back.
    pub fn finish(&mut self) -> SqlResult<FinishedGroup> {
        self.apply_held()?;
        let gtid = self.head.gtid;
        self.session.trx.detach_transaction().map(|trx| FinishedGroup { trx, gtid })
    }

    /// Commits a group that another applier has finished, with the caller's redo.
    pub fn commit_finished(
        &mut self,
        group: FinishedGroup,
        attached: (ParticipantId, Redo),
    ) -> SqlResult<CommitSeq> {
        // Roll back a group that was begun here.
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

    /// Returns whether this server wrote a transaction and lost it: its binary log ends before this number of
    /// its domain and server. If the log has no transaction of both, another server may use this server's id.
    /// In that case only a semi-synchronous replica, which may have been a source that lost everything,
    /// assumes a loss.
    pub fn lost(&self, gtid: Gtid) -> bool {
        let db = &self.session.state.db;
        let logged = db.commit.binlog_status();
        logged.is_some_and(|(_, gtids)| match gtids.seq_no(gtid.domain, gtid.server) {
            Some(newest) => newest < gtid.seq_no,
            None => db.globals.flag(VarId::RplSemiSyncSlaveEnabled),
        })
    }

    /// Waits until the engines have applied the last ordered transaction.
    pub fn await_ordered(&self) {
        let trx = &self.session.trx;
        self.session.state.db.commit.await_ordered(trx.last_ordered());
    }

    /// Waits until the last ordered transaction is published, or the applier has to end.
    pub fn await_published(&self) {
        // A KILL QUERY was meant for an earlier statement.
        while self.session.trx.await_own().is_err_and(|error| error.code == ErrorCode::QueryInterrupted) {
            self.session.state.kill.clear_query();
        }
    }

    /// Adds a block to a file that a LOAD DATA of the group will load.
    pub fn add_to_file(&mut self, block: &FileBlock) -> SqlResult<()> {
        self.file_memory.grow((block.block.len() + size_of::<Vec<u8>>()) as u64)?;
        self.files.entry(block.file_id).or_default().push(block.block.clone());
        Ok(())
    }

    fn forget_files(&mut self) {
        self.files.clear();
        self.file_memory.shrink(self.file_memory.used());
    }

    /// Runs LOAD DATA of a file that was received. Returns the statement's error.
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
        self.session.state.received_file.set(Some(Box::new(blocks)));
        let outcome = self.statement(&query, db, timestamp, false);
        self.session.state.received_file.set(None);
        self.forget_files();
        outcome
    }

    /// Sets INSERT_ID or LAST_INSERT_ID of the next statement.
    pub fn set_intvar(&mut self, event: &Intvar) {
        match event.kind {
            IntvarKind::InsertId => self.session.trx.settings.insert_id = event.value,
            IntvarKind::LastInsertId => self.session.state.settings.env.last_insert_id = event.value,
        }
    }

    /// Sets the seeds of RAND() of the next statement.
    pub fn set_seeds(&mut self, event: &Rand) {
        let seeds = (event.seed1 & 0xffff_ffff) << 32 | event.seed2 & 0xffff_ffff;
        self.session.state.next_random.set(Some(seeds));
    }

    /// Sets a user variable of the next statement.
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

    /// Sets the session's state to that on the source when the statement ran there.
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

    /// Converts a text to utf8mb4, in which statements are parsed here. If it is logged again, its event has
    /// that character set.
    fn in_utf8<'s>(&mut self, sql: Cow<'s, [u8]>) -> SqlResult<Cow<'s, [u8]>> {
        let charset = self.session.state.settings.client_collation.charset();
        if sql.is_ascii() || matches!(charset, Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary) {
            return Ok(sql);
        }
        let mut text = Vec::new();
        let decoded = charset.decode(&sql, &mut text);
        decoded.map_err(|at| SqlError::invalid_statement_text(charset.name(), at))?;
        let state = &mut self.session.state;
        state.settings.client_collation = Collation::UTF8MB4_GENERAL_CI;
        state.settings.vars.put(VarId::CharacterSetClient, &VarValue::text(Charset::Utf8mb4.name()));
        self.status.clear();
        self.obey();
        Ok(Cow::Owned(text))
    }

    fn adopt_settings(&mut self, from: &StatusVars) -> SqlResult<()> {
        let state = &mut self.session.state;
        // CURRENT_USER and CURRENT_ROLE mean those of the source's session. A role is an invoker without a
        // host.
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let invoker = from.invoker.as_ref().map(|(user, host)| (text(user), text(host)));
        let (account, role) = match invoker.unwrap_or_default() {
            (role, host) if host.is_empty() && !role.is_empty() => (AccountName::default(), Some(role)),
            account => (account, None),
        };
        state.info.account = account;
        state.settings.env.current_role.clone_from(&role);
        state.identity.role = role;
        let vars = &mut state.settings.vars;
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
            state.settings.client_collation = put(vars, client, &[CharacterSetClient], &[])?;
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

/// Converts an error of BINLOG statements about a malformed event to error 1610, which replication uses.
fn corrupt(error: SqlError) -> SqlError {
    match error.code {
        ErrorCode::Parse => SqlError::corrupt_event(),
        _ => error,
    }
}

/// Returns whether a text may be a statement that commits by itself: it is not a change of rows.
fn may_define(sql: &[u8]) -> bool {
    let begins =
        |word: &str| sql.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
    !["INSERT", "UPDATE", "DELETE", "REPLACE", "SAVEPOINT", "ROLLBACK", "RELEASE"].into_iter().any(begins)
}

/// Returns whether a change of rows may concern a table of accounts.
fn may_be_about_accounts(sql: &[u8], db: &[u8]) -> bool {
    db == b"mysql" || sql.windows(5).any(|word| word.eq_ignore_ascii_case(b"mysql"))
}

fn unknown_collation(id: u16) -> SqlError {
    SqlError::charset_not_compiled(id)
}
