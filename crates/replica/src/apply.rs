//! Applies the events of groups through a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cohort_base::{CommitSeq, Gtid, ParticipantId, Reservation, ServerId};
use cohort_binlog::EventHeader;
use cohort_binlog::event::{
    DecodeError, Event, ExecuteLoadQuery, GtidEvent, QueryEvent, TableMap, XaXid, flags, gtid_flags_extra,
    gtid_flags2,
};
use cohort_config::{Globals, VarId};
use cohort_engine::Redo;
use cohort_exec::{AllowsOutcome, Applier, ApplyRules, FinishedGroup, GroupHead};
use cohort_exec::{message_without_secrets, without_secrets};
use cohort_types::{ErrorCode, SqlError, SqlMode};

use crate::connection::{Counts, ERROR_BYTES_MAX, ThreadError};
use crate::filter::Filter;
use crate::flusher::Flusher;
use crate::group::End;
use crate::place::SourcePlace;
use crate::state::{Change, REPLICATION};

/// Why a group could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyError {
    pub error: ThreadError,
    pub kind: Failure,
}

/// Pause between two attempts on a full disk.
pub const NO_SPACE_PAUSE: Duration = Duration::from_secs(1);

/// How to handle a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The thread was asked to end.
    Stopped,
    /// A conflict with another transaction: the group is rolled back and retried.
    Temporary,
    /// The disk is full: the group is retried until there is space.
    NoSpace,
    /// The failure needs manual intervention.
    Final,
}

impl ApplyError {
    /// Creates an error that needs manual intervention.
    pub fn fatal(number: u32, text: impl Into<String>) -> ApplyError {
        ApplyError { error: ThreadError::new(number, text), kind: Failure::Final }
    }
}

fn kind_of(error: &SqlError, retried: &[u16]) -> Failure {
    match error.code {
        ErrorCode::LockDeadlock | ErrorCode::LockWaitTimeout => Failure::Temporary,
        ErrorCode::DiskFull => Failure::NoSpace,
        ErrorCode::ConnectionKilled | ErrorCode::QueryInterrupted | ErrorCode::ServerShutdown => {
            Failure::Stopped
        }
        code if retried.contains(&code.number()) => Failure::Temporary,
        _ => Failure::Final,
    }
}

/// `slave_skip_errors`
#[derive(Clone, Debug, PartialEq, Eq)]
enum SkippedErrors {
    These(Vec<u16>),
    All,
}

/// The errors of `slave_skip_errors=ddl_exist_errors`.
const DDL_EXIST_ERRORS: [u16; 11] = [1007, 1008, 1050, 1051, 1054, 1060, 1061, 1068, 1091, 1094, 1146];

/// Errors of DROP TABLE and DROP SEQUENCE for a missing object.
const GONE: [u16; 2] = [1051, 4091];

impl SkippedErrors {
    fn of(globals: &Globals) -> SkippedErrors {
        let text = globals.text(VarId::SlaveSkipErrors);
        let mut codes = Vec::new();
        for word in text.as_deref().unwrap_or("").split(',').map(str::trim) {
            match word.to_ascii_lowercase().as_str() {
                "all" => return SkippedErrors::All,
                "ddl_exist_errors" => codes.extend(DDL_EXIST_ERRORS),
                number => codes.extend(number.parse::<u16>().ok()),
            }
        }
        SkippedErrors::These(codes)
    }

    fn is_empty(&self) -> bool {
        matches!(self, SkippedErrors::These(codes) if codes.is_empty())
    }

    fn has(&self, code: u16) -> bool {
        match self {
            SkippedErrors::These(codes) => codes.contains(&code),
            SkippedErrors::All => true,
        }
    }
}

/// Settings for applying, read when a thread starts.
#[derive(Clone, Debug)]
pub struct Rules {
    pub filter: Filter,
    pub rows: ApplyRules,
    skipped: SkippedErrors,
    /// `slave_transaction_retry_errors`: a group that fails with one of them is retried, as after a deadlock.
    retried: Vec<u16>,
    /// `slave_ddl_exec_mode=IDEMPOTENT`
    is_ddl_idempotent: bool,
    pub own_id: ServerId,
    /// Apply groups of this server that are missing in its binary log: it lost them when another server was
    /// promoted in its place.
    pub takes_back_lost: bool,
    /// `replicate_events_marked_for_skip` is not REPLICATE.
    skips_marked: bool,
    pub is_strict: bool,
}

impl Rules {
    /// Reads the current variables.
    pub fn of(globals: &Globals) -> Rules {
        Rules {
            filter: Filter::of(globals),
            rows: ApplyRules::of(globals),
            skipped: SkippedErrors::of(globals),
            retried: {
                let list = globals.text(VarId::SlaveTransactionRetryErrors);
                let numbers = list.as_deref().unwrap_or("").split(',');
                numbers.filter_map(|number| number.trim().parse().ok()).collect()
            },
            is_ddl_idempotent: globals.uint(VarId::SlaveDdlExecMode) == 1,
            own_id: ServerId(globals.uint(VarId::ServerId) as u32),
            takes_back_lost: false,
            skips_marked: globals.uint(VarId::ReplicateEventsMarkedForSkip) != 0,
            is_strict: globals.flag(VarId::GtidStrictMode),
        }
    }
}

/// The applied position that a group's commit makes durable.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    pub gtid: Option<Gtid>,
    /// Name of the connection, and source log position after the group.
    pub name: String,
    pub place: SourcePlace,
}

impl Mark {
    fn attachment(&self) -> (ParticipantId, Redo) {
        let executed = Change::Executed {
            name: self.name.clone(),
            file: self.place.file.clone(),
            position: self.place.position,
        };
        let redo = match self.gtid {
            Some(gtid) => Change::redo(&[Change::Applied(gtid), executed]),
            None => Change::redo(&[executed]),
        };
        (REPLICATION, redo)
    }
}

/// Result of applying a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub seq: CommitSeq,
    /// Definitions may have changed: the next group begins when this one is published.
    pub is_ddl: bool,
}

/// Applies groups event by event.
pub struct GroupApplier {
    pub session: Applier,
    pub rules: Rules,
    skipped_errors: Arc<AtomicU64>,
    maps: Vec<Arc<TableMap>>,
    annotation: Vec<u8>,
    gtid: Option<Gtid>,
    flags2: u8,
    /// The XA transaction of which the group is one half.
    xid: Option<XaXid>,
    /// Nothing of the group is applied, but it counts as applied.
    is_passed_over: bool,
    /// The group may contain more than one statement.
    has_transaction: bool,
}

impl GroupApplier {
    /// Creates an applier with a session and rules.
    pub fn new(session: Applier, rules: Rules, counts: &Counts) -> GroupApplier {
        GroupApplier {
            session,
            rules,
            skipped_errors: Arc::clone(&counts.skipped_errors),
            maps: Vec::new(),
            annotation: Vec::new(),
            gtid: None,
            flags2: 0,
            xid: None,
            is_passed_over: false,
            has_transaction: false,
        }
    }

    /// Begins a group. `event` is `None` for a source without GTIDs. Rolls back an unfinished group.
    pub fn begin(
        &mut self,
        header: &EventHeader,
        event: Option<(&GtidEvent, Gtid)>,
        has_transaction: bool,
        passes_over: bool,
    ) -> Result<(), ApplyError> {
        self.maps.clear();
        self.annotation.clear();
        self.gtid = event.map(|(_, gtid)| gtid);
        self.flags2 = event.map_or(0, |(event, _)| event.flags2);
        self.has_transaction = has_transaction;
        let is_own = header.server_id == self.rules.own_id
            && !(self.rules.takes_back_lost && self.gtid.is_some_and(|gtid| self.session.lost(gtid)));
        let is_marked = self.rules.skips_marked && header.flags & flags::SKIP_REPLICATION != 0;
        // Of a two-phase ALTER only a successful end is applied.
        let half = gtid_flags_extra::START_ALTER | gtid_flags_extra::ROLLBACK_ALTER;
        let is_half = event.is_some_and(|(event, _)| event.flags_extra & half != 0);
        self.is_passed_over = passes_over || is_own || is_marked || is_half;
        let head = GroupHead {
            gtid: self.gtid,
            flags2: self.flags2,
            event_flags: header.flags & flags::SKIP_REPLICATION,
            server: header.server_id,
        };
        self.session.begin(head, has_transaction).map_err(|error| self.plain_error(&error))?;
        if self.rules.skipped.is_empty() {
            self.session.allow_holding();
        }
        let xa = gtid_flags2::PREPARED_XA | gtid_flags2::COMPLETED_XA;
        self.xid = event.filter(|_| self.flags2 & xa != 0).and_then(|(event, _)| event.xid.clone());
        match &self.xid {
            Some(xid) if self.flags2 & gtid_flags2::PREPARED_XA != 0 && !self.is_passed_over => {
                self.session.name_branch(xid).map_err(|error| self.plain_error(&error))
            }
            _ => Ok(()),
        }
    }

    /// Rolls back the group.
    pub fn rollback(&mut self) {
        self.session.rollback();
    }

    /// Reserves memory for decompressing an event. Keep the reservation as long as the decompressed form.
    pub fn reserve_to_unpack(
        &self,
        bytes: Result<u64, DecodeError>,
    ) -> Result<Option<Reservation>, ApplyError> {
        self.session.reserve_to_unpack(bytes).map_err(|error| self.plain_error(&error))
    }

    /// Returns whether this is the XA END statement before the end of an XA transaction's first half.
    fn is_xa_end(&self, query: &QueryEvent) -> Result<bool, ApplyError> {
        let _room = self.reserve_to_unpack(query.inflated_bytes())?;
        Ok(query.plain_sql().is_ok_and(|sql| sql.starts_with(b"XA END ")))
    }

    fn kind_of(&self, error: &SqlError) -> Failure {
        kind_of(error, &self.rules.retried)
    }

    fn plain_error(&self, error: &SqlError) -> ApplyError {
        let number = u32::from(error.number());
        ApplyError { error: ThreadError::new(number, error.message.clone()), kind: self.kind_of(error) }
    }

    /// Applies an event of the group other than its last one.
    pub fn event(
        &mut self,
        header: &EventHeader,
        event: &Event,
        place: &SourcePlace,
    ) -> Result<(), ApplyError> {
        if self.is_passed_over {
            return Ok(());
        }
        match event {
            // Redundant: the end of the group implies it.
            Event::Query(query)
                if self.flags2 & gtid_flags2::PREPARED_XA != 0 && self.is_xa_end(query)? =>
            {
                Ok(())
            }
            Event::Annotate(annotation) => {
                self.annotation.clone_from(&annotation.sql);
                self.session.process().show_text(&self.annotation);
                Ok(())
            }
            Event::TableMap(map) => {
                let map = self.rules.filter.rewritten_map(map);
                self.maps.retain(|known| known.table_id != map.table_id);
                self.maps.push(map);
                Ok(())
            }
            Event::Rows(rows) => {
                let Some(at) = self.maps.iter().position(|map| map.table_id == rows.table_id) else {
                    // MariaDB ends a statement with a rows event without a table.
                    if rows.rows.is_empty() {
                        return Ok(());
                    }
                    return Err(corrupt("rows without a table map", place));
                };
                let map = &self.maps[at];
                let is_wanted = self.rules.filter.is_empty() || {
                    let (schema, table) =
                        (String::from_utf8_lossy(&map.db), String::from_utf8_lossy(&map.table));
                    self.rules.filter.passes_rows(&schema, &table)
                };
                if is_wanted {
                    let applied =
                        self.session.rows(map, rows, &self.annotation, header.timestamp, &self.rules.rows);
                    if let Err(error) = applied {
                        self.check_row_format(header, &error, at, place)?;
                    }
                    // Used once per statement: the text may be as large as all of its events together.
                    self.annotation.clear();
                }
                if rows.ends_statement() {
                    self.maps.clear();
                    self.annotation.clear();
                }
                Ok(())
            }
            Event::Query(query) => self.statement(header, query),
            Event::Intvar(intvar) => {
                self.session.set_intvar(intvar);
                Ok(())
            }
            Event::Rand(rand) => {
                self.session.set_seeds(rand);
                Ok(())
            }
            Event::UserVar(variable) => {
                self.session.set_user_variable(variable).map_err(|error| self.plain_error(&error))
            }
            Event::Incident(incident) => {
                let text = format!(
                    "The incident LOST_EVENTS occurred on the master. Message: {}",
                    String::from_utf8_lossy(&incident.message)
                );
                Err(ApplyError::fatal(1590, text))
            }
            Event::BeginLoadQuery(block) | Event::AppendBlock(block) => {
                self.session.add_to_file(block).map_err(|error| self.plain_error(&error))
            }
            Event::ExecuteLoadQuery(load) => self.load(header, load),
            // The statement failed on the source, so nothing loads the received data.
            Event::DeleteFile(_) => Ok(()),
            Event::Unknown(kind, _) if header.flags & flags::IGNORABLE == 0 => {
                Err(corrupt(&format!("an event of the unknown kind {}", kind.0), place))
            }
            // Events about the file or the connection, the marked ones of other servers, and the ends of
            // groups, which the caller processes.
            Event::Unknown(..)
            | Event::FormatDescription(_)
            | Event::GtidList(_)
            | Event::BinlogCheckpoint(_)
            | Event::Gtid(_)
            | Event::Rotate(_)
            | Event::Stop
            | Event::Heartbeat(_)
            | Event::StartEncryption(_)
            | Event::Xid(_)
            | Event::XaPrepare(_) => Ok(()),
        }
    }

    /// Ends the group. `event` is its last event.
    pub fn end(
        &mut self,
        header: &EventHeader,
        event: &Event,
        end: End,
        mark: &Mark,
    ) -> Result<Done, ApplyError> {
        if let (End::Statement, Event::Query(query), false) = (end, event, self.is_passed_over) {
            return self.ddl(header, query, mark);
        }
        if end == End::Xa && !self.is_passed_over {
            return self.xa(header, event, mark);
        }
        self.before_commit(header, event, end, &mark.place)?;
        let committed = self.session.commit(mark.attachment());
        let seq = committed.map_err(|error| self.plain_error(&error))?;
        self.session.process().show_text(&[]);
        Ok(Done { seq, is_ddl: false })
    }

    /// Applies one half of an XA transaction.
    fn xa(&mut self, header: &EventHeader, event: &Event, mark: &Mark) -> Result<Done, ApplyError> {
        let Some(xid) = self.xid.clone() else {
            return Err(corrupt("half of an XA transaction without its name", &mark.place));
        };
        let (at, attached) = (header.timestamp, mark.attachment());
        const HALVES: u8 = gtid_flags2::PREPARED_XA | gtid_flags2::COMPLETED_XA;
        let done = match (event, self.flags2 & HALVES) {
            (Event::XaPrepare(_), gtid_flags2::PREPARED_XA) => self.session.prepare_branch(at, attached),
            (Event::Query(query), gtid_flags2::COMPLETED_XA) => {
                let _room = self.reserve_to_unpack(query.inflated_bytes())?;
                let sql = query.plain_sql().map_err(|what| ApplyError::fatal(1594, what.to_string()))?;
                self.session.process().show_text(&sql);
                let commits = sql.starts_with(b"XA COMMIT ");
                if !commits && !sql.starts_with(b"XA ROLLBACK ") {
                    return Err(corrupt(
                        "an XA transaction that neither commits nor rolls back",
                        &mark.place,
                    ));
                }
                self.session.end_branch(&xid, commits, at, attached)
            }
            _ => return Err(corrupt("an XA transaction with another end", &mark.place)),
        };
        let seq = done.map_err(|error| self.plain_error(&error))?;
        self.session.process().show_text(&[]);
        Ok(Done { seq, is_ddl: false })
    }

    fn before_commit(
        &mut self,
        header: &EventHeader,
        event: &Event,
        end: End,
        place: &SourcePlace,
    ) -> Result<(), ApplyError> {
        if !self.is_passed_over {
            match (end, event) {
                (End::Statement, other) => self.event(header, other, place)?,
                (End::Rollback, _) => {
                    self.rollback();
                    let head = GroupHead {
                        gtid: self.gtid,
                        flags2: self.flags2,
                        event_flags: 0,
                        server: header.server_id,
                    };
                    self.session.begin(head, true).map_err(|error| self.plain_error(&error))?;
                }
                (End::Commit | End::Xa, _) => {}
            }
        }
        Ok(())
    }

    /// Finishes a transactional group except for ordering it.
    pub fn finish(
        &mut self,
        header: &EventHeader,
        event: &Event,
        end: End,
        place: &SourcePlace,
    ) -> Result<FinishedGroup, ApplyError> {
        self.before_commit(header, event, end, place)?;
        self.session.process().show_text(&[]);
        self.session.finish().map_err(|error| self.plain_error(&error))
    }

    /// Orders a group that any applier has finished.
    pub fn commit_finished(&mut self, group: FinishedGroup, mark: &Mark) -> Result<Done, ApplyError> {
        let committed = self.session.commit_finished(group, mark.attachment());
        let seq = committed.map_err(|error| self.plain_error(&error))?;
        Ok(Done { seq, is_ddl: false })
    }

    /// Waits until the next group sees the changes of this one.
    pub fn await_done(&self, done: Done, flusher: &Flusher) {
        if done.is_ddl {
            // The next group reads the published definitions.
            self.session.await_published();
        } else {
            self.session.await_ordered();
            flusher.note(done.seq);
        }
    }

    /// Fails if the thread was killed.
    pub fn check_killed(&self) -> Result<(), ApplyError> {
        self.session.check_killed().map_err(|error| self.plain_error(&error))
    }

    /// Returns whether the group counts as DDL, and whether it could be rolled back.
    pub fn kind(&self) -> (bool, bool) {
        (self.flags2 & gtid_flags2::DDL != 0, self.flags2 & gtid_flags2::TRANSACTIONAL != 0)
    }

    fn schema_of<'q>(&self, query: &'q QueryEvent) -> std::borrow::Cow<'q, str> {
        let there = String::from_utf8_lossy(&query.db);
        match self.rules.filter.rewritten(&there) {
            same if same == there => there,
            other => other.to_owned().into(),
        }
    }

    fn passes(&self, query: &QueryEvent, schema: &str, sql: &[u8]) -> Result<bool, ApplyError> {
        if self.rules.filter.is_empty() {
            return Ok(true);
        }
        let vars = query.status_vars().map_err(|what| ApplyError::fatal(1594, what.to_string()))?;
        let mode = SqlMode(vars.sql_mode.unwrap_or(0));
        Ok(self.rules.filter.passes_statement(schema, sql, mode))
    }

    fn statement(&mut self, header: &EventHeader, query: &QueryEvent) -> Result<(), ApplyError> {
        let schema = self.schema_of(query);
        let _room = self.reserve_to_unpack(query.inflated_bytes())?;
        let sql = query.plain_sql().map_err(|what| ApplyError::fatal(1594, what.to_string()))?;
        if !self.passes(query, &schema, &sql)? {
            self.session.forget_context();
            return Ok(());
        }
        self.session.process().show_text(&sql);
        match self.session.statement(query, schema.as_bytes(), header.timestamp, self.rules.is_ddl_idempotent)
        {
            outcome if !is_expected(query, &outcome) => {
                self.check_statement_format(query, &schema, &sql, outcome)
            }
            _ => Ok(()),
        }
    }

    fn load(&mut self, header: &EventHeader, load: &ExecuteLoadQuery) -> Result<(), ApplyError> {
        let schema = self.schema_of(&load.query);
        if !self.passes(&load.query, &schema, &load.query.sql)? {
            return Ok(());
        }
        self.session.process().show_text(&load.query.sql);
        let outcome = self.session.load(load, schema.as_bytes(), header.timestamp);
        match is_expected(&load.query, &outcome) {
            true => Ok(()),
            false => self.check_statement_format(&load.query, &schema, &load.query.sql, outcome),
        }
    }

    /// Applies a statement that is the whole group.
    fn ddl(&mut self, header: &EventHeader, query: &QueryEvent, mark: &Mark) -> Result<Done, ApplyError> {
        let schema = self.schema_of(query);
        let _room = self.reserve_to_unpack(query.inflated_bytes())?;
        let sql = query.plain_sql().map_err(|what| ApplyError::fatal(1594, what.to_string()))?;
        if self.passes(query, &schema, &sql)? {
            self.session.process().show_text(&sql);
            let end = self.session.ddl(
                query,
                schema.as_bytes(),
                header.timestamp,
                self.rules.is_ddl_idempotent,
                mark.attachment(),
                self.allowed_outcomes(query),
            );
            let is_harmless = end.outcome.as_ref().is_err_and(|error| self.is_harmless(error.number()));
            match end.ordered {
                Some(seq) if end.is_whole => {
                    if let Err(error) = &end.outcome
                        && !is_harmless
                        && error.number() != query.error
                    {
                        // Counts the error if it is skipped. Any other error comes from waiting for the disk.
                        self.is_skipped(self.kind_of(error), error.number());
                    }
                    self.session.process().show_text(&[]);
                    return Ok(Done { seq, is_ddl: true });
                }
                _ if is_harmless || is_expected(query, &end.outcome) => {}
                _ => self.check_statement_format(query, &schema, &sql, end.outcome)?,
            }
        }
        let committed = self.session.commit(mark.attachment());
        let seq = committed.map_err(|error| self.plain_error(&error))?;
        self.session.process().show_text(&[]);
        Ok(Done { seq, is_ddl: true })
    }

    /// Returns whether the error is harmless with `slave_ddl_exec_mode=IDEMPOTENT`: the object to drop does
    /// not exist.
    fn is_harmless(&self, number: u16) -> bool {
        self.rules.is_ddl_idempotent && GONE.contains(&number)
    }

    /// Returns the outcomes with which a statement may commit: that of its event, and errors that are
    /// skipped.
    fn allowed_outcomes(&self, query: &QueryEvent) -> AllowsOutcome {
        let (named, skipped) = (query.error, self.rules.skipped.clone());
        let passes_gone = self.rules.is_ddl_idempotent;
        Box::new(move |number| match number {
            number if number == named => true,
            0 => skipped.has(named),
            number => skipped.has(number) || passes_gone && GONE.contains(&number),
        })
    }

    /// Handles a statement that ended differently than on the source.
    fn check_statement_format(
        &self,
        query: &QueryEvent,
        schema: &str,
        sql: &[u8],
        outcome: Result<(), SqlError>,
    ) -> Result<(), ApplyError> {
        let text = sql;
        let sql = without_secrets(text, None);
        let sql = String::from_utf8_lossy(&sql[..sql.len().min(ERROR_BYTES_MAX)]);
        let Err(error) = outcome else {
            let text = format!(
                "Query caused different errors on master and slave. Error on master: message (format)='' error code={}; \
                 Error on slave:actual message='no error', error code=0. Default database:'{schema}'. Query:'{sql}'",
                query.error
            );
            return Err(ApplyError::fatal(0, text));
        };
        let kind = self.kind_of(&error);
        if self.is_skipped(kind, error.number()) {
            return Ok(());
        }
        let message = message_without_secrets(&error.message, text, None);
        let text = format!("Error '{message}' on query. Default database: '{schema}'. Query: '{sql}'");
        Err(ApplyError { error: ThreadError::new(error.number().into(), text), kind })
    }

    fn is_skipped(&self, kind: Failure, number: u16) -> bool {
        let is_skipped = kind == Failure::Final && self.rules.skipped.has(number);
        if is_skipped {
            self.skipped_errors.fetch_add(1, Ordering::Relaxed);
        }
        is_skipped
    }

    fn check_row_format(
        &self,
        header: &EventHeader,
        error: &SqlError,
        map: usize,
        place: &SourcePlace,
    ) -> Result<(), ApplyError> {
        let kind = self.kind_of(error);
        let number = error.number();
        if self.is_skipped(kind, number) {
            return Ok(());
        }
        let map = &self.maps[map];
        let handler = match error.code {
            ErrorCode::KeyNotFound => "HA_ERR_KEY_NOT_FOUND",
            ErrorCode::DupEntry => "HA_ERR_FOUND_DUPP_KEY",
            ErrorCode::SlaveCorruptEvent => "HA_ERR_CORRUPT_EVENT",
            ErrorCode::LockWaitTimeout => "HA_ERR_LOCK_WAIT_TIMEOUT",
            ErrorCode::LockDeadlock => "HA_ERR_LOCK_DEADLOCK",
            _ => "",
        };
        let handler = match handler {
            "" => String::new(),
            name => format!(" handler error {name};"),
        };
        let text = format!(
            "Could not execute {} event on table {}.{}; {}, Error_code: {number};{handler} the event's master log {}, \
             end_log_pos {}",
            header.kind.name(),
            String::from_utf8_lossy(&map.db),
            String::from_utf8_lossy(&map.table),
            error.message,
            place.file,
            header.log_pos
        );
        Err(ApplyError { error: ThreadError::new(number.into(), text), kind })
    }
}

/// Returns whether a statement ended as on the source.
fn is_expected(query: &QueryEvent, outcome: &Result<(), SqlError>) -> bool {
    match outcome {
        Ok(()) => query.error == 0,
        Err(error) => query.error != 0 && error.number() == query.error,
    }
}

fn corrupt(what: &str, place: &SourcePlace) -> ApplyError {
    let text = format!(
        "Relay log read failure: Could not parse relay log event entry ({what}, before {} position {}).",
        place.file, place.position
    );
    ApplyError::fatal(1594, text)
}
