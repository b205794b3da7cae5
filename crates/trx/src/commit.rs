//! COMMIT: from active to ordered. Everything that can fail does so before the coordinator's `order` (I6).

use std::sync::Arc;

use cohort_base::{CommitSeq, ParticipantId};
use cohort_binlog::event::QueryEvent;
use cohort_commit::{BinlogPart, CommitRequest, GroupKind, GtidHints};
use cohort_config::VarId;
use cohort_engine::{Redo, RedoFiles};
use cohort_locks::{MetadataMode, NameKey, Part, RowMode, WritePermit};
use cohort_table::{AUTO_INCREMENT_SPACE, OpenTable};
use cohort_types::{SqlError, SqlResult};

use crate::active::{Active, TemporaryChanges};
use crate::binlog::LogMark;
use crate::errors::{commit_error, engine_error};
use crate::locking::WaitPolicy;
use crate::session_counts::Counted;
use crate::session_trx::SessionTrx;
use crate::settings::BinlogSettings;

/// A transaction between two sessions.
pub struct DetachedTrx {
    active: Box<Active>,
    binlog: BinlogSettings,
    timestamp: u32,
}

/// What a DDL statement commits.
#[derive(Debug, Default)]
pub struct DdlCommit {
    /// Redo of participants that are no engines: the catalog.
    pub redo: Vec<(ParticipantId, Redo)>,
    /// Its event, unless it is not to be logged.
    pub event: Option<QueryEvent>,
    /// Flags of the event's header.
    pub event_flags: u16,
    /// The statement has written rows, which are logged: its events are a transaction.
    pub has_rows: bool,
    /// The error that the statement ends with, although it commits what worked.
    pub failed: Option<SqlError>,
    /// The statement goes on, and commits more: what is attached waits for its last commit.
    pub is_part: bool,
}

/// The end of the statement that commits.
#[derive(Clone, Copy, Default)]
struct Ending<'e> {
    failed: Option<&'e SqlError>,
    is_part: bool,
}

/// Whether `read_only` refuses a commit of an account that is not exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnly {
    Binds,
    /// As in MariaDB: XA PREPARE, and statements that are logged and change nothing that lasts, such as FLUSH
    /// and those about temporary tables.
    Passes,
}

impl SessionTrx {
    /// COMMIT: the transaction's place in the order, or None if it wrote nothing. The reply must be held
    /// until [`SessionTrx::hold_until`]. After an error the transaction is rolled back.
    #[inline]
    pub fn commit(&mut self) -> SqlResult<Option<CommitSeq>> {
        self.check_no_branch()?;
        if self.active.is_none() {
            return Ok(None);
        }
        self.commit_as(GroupKind::Transaction)
    }

    /// The same for a transaction that runs, whatever it is in the binlog.
    pub(super) fn commit_as(&mut self, kind: GroupKind) -> SqlResult<Option<CommitSeq>> {
        self.counts.count(Counted::Commit);
        let writes = self.active.as_deref().is_some_and(Active::has_writes);
        let read_only = match kind {
            GroupKind::XaPrepare => ReadOnly::Passes,
            // What is logged without is about temporary tables.
            _ if writes => ReadOnly::Binds,
            _ => ReadOnly::Passes,
        };
        let permitted = match self.has_something_to_commit() {
            true => self.permit_commit(read_only).map(Some),
            // Counters alone are no change that a client asked for.
            false if !self.active_mut().counters.is_empty() => {
                let permitted = self.permit_commit(ReadOnly::Binds);
                if permitted.is_err() {
                    self.active_mut().counters.clear();
                }
                Ok(permitted.ok())
            }
            false => Ok(None),
        };
        let outcome = permitted.and_then(|permit| Ok((permit, self.persist_counters()?)));
        let mut active = self.active.take().expect("looked at above");
        let (permit, counters) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                self.recycle(active);
                return Err(error);
            }
        };
        let Some(permit) = permit else {
            active.take_temporary().into_iter().for_each(TemporaryChanges::keep);
            self.recycle(active);
            return Ok(None);
        };
        let seq = self.commit_active(active, Vec::new(), kind, permit, Ending::default())?;
        counters.iter().for_each(|(table, next)| table.auto_increment.note_persisted(*next));
        Ok(Some(seq))
    }

    pub fn has_something_to_commit(&self) -> bool {
        let writes = |active: &Active| active.has_writes() || !active.log.is_empty();
        !self.attached.is_empty() || self.active.as_deref().is_some_and(writes)
    }

    /// Has the next commit carry redo of a participant that is no engine, whatever statement that is; a
    /// commit that nothing else needs is asked for with [`SessionTrx::commit_attached`].
    pub fn attach(&mut self, participant: ParticipantId, redo: Redo) {
        self.attached.retain(|(id, _)| *id != participant);
        self.attached.push((participant, redo));
    }

    /// Whether something waits for the next commit.
    pub fn has_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Forgets what the next commit was to carry.
    pub fn detach(&mut self) {
        self.attached.clear();
        self.once = None;
    }

    /// Commits the running transaction, or one that does nothing, with what is attached.
    pub fn commit_attached(&mut self) -> SqlResult<Option<CommitSeq>> {
        self.active_mut();
        self.commit()
    }

    /// Ends a DDL statement: the catalog's redo, the writes of the running transaction (nothing but what the
    /// statement itself did: it began with [`SessionTrx::commit_implicitly`]) and the QUERY event become
    /// durable as one (I2).
    pub fn commit_ddl(&mut self, ddl: DdlCommit) -> SqlResult<CommitSeq> {
        self.check_no_branch()?;
        let allowed = self.lock_name(&NameKey::Global, MetadataMode::SharedWrite);
        let changes = ddl.has_rows || !ddl.redo.is_empty();
        let read_only = if changes { ReadOnly::Binds } else { ReadOnly::Passes };
        let permitted = allowed.and_then(|()| self.permit_commit(read_only));
        let kind = if ddl.has_rows { GroupKind::Transaction } else { GroupKind::Ddl };
        self.commit_ddl_if(permitted, ddl, kind)
    }

    /// Ends a statement that changes nothing but is logged; also under the session's own FLUSH TABLES WITH
    /// READ LOCK, and under `read_only`, which has refused those that it does not let pass.
    pub fn commit_logged(
        &mut self,
        event: QueryEvent,
        event_flags: u16,
        kind: GroupKind,
    ) -> SqlResult<CommitSeq> {
        self.check_no_branch()?;
        let permitted = self.permit_commit(ReadOnly::Passes);
        self.commit_ddl_if(
            permitted,
            DdlCommit { event: Some(event), event_flags, ..DdlCommit::default() },
            kind,
        )
    }

    fn commit_ddl_if(
        &mut self,
        permitted: SqlResult<WritePermit>,
        mut ddl: DdlCommit,
        kind: GroupKind,
    ) -> SqlResult<CommitSeq> {
        self.active_mut();
        let result = permitted.and_then(|permit| {
            match ddl.event.take() {
                Some(event) => self.log_query(event, ddl.event_flags)?,
                None => self.active_mut().log.statement_end()?,
            }
            Ok((permit, self.persist_counters()?))
        });
        let active = self.active.take().expect("begun above");
        let (permit, counters) = match result {
            Ok(result) => result,
            Err(error) => {
                self.recycle(active);
                return Err(error);
            }
        };
        let ending = Ending { failed: ddl.failed.as_ref(), is_part: ddl.is_part };
        let seq = self.commit_active(active, ddl.redo, kind, permit, ending)?;
        // A DDL statement goes on with what it has changed.
        self.env.commit.await_ordered(seq);
        counters.iter().for_each(|(table, next)| table.auto_increment.note_persisted(*next));
        Ok(seq)
    }

    /// Adds the text of a statement whose rows follow.
    pub fn log_ahead(&mut self, event: QueryEvent, flags: u16) -> SqlResult<()> {
        self.active_mut();
        self.log_query(event, flags)?;
        self.active_mut().log.statement_end()
    }

    /// Where the running transaction's events end.
    pub fn log_mark(&mut self) -> LogMark {
        self.active_mut().log.mark()
    }

    /// Forgets the events behind a mark.
    pub fn unlog(&mut self, mark: LogMark) -> SqlResult<()> {
        self.active_mut().log.truncate(mark)
    }

    /// Adds a statement of the running transaction as text, behind what it has logged.
    pub fn log_text(&mut self, event: QueryEvent) -> SqlResult<()> {
        self.active_mut();
        let flags = self.settings.binlog.event_flags;
        self.log_query(event, flags)
    }

    /// Adds a statement as text to the running transaction's events, if it is to be logged.
    pub(super) fn log_query(&mut self, mut event: QueryEvent, flags: u16) -> SqlResult<()> {
        let settings = &self.settings.binlog;
        let passes = std::str::from_utf8(&event.db).is_ok_and(|db| self.env.binlog_filter.lets_pass(db));
        if !settings.on || !passes {
            return Ok(());
        }
        if self.env.compression().is_some_and(|bytes_min| event.sql.len() >= bytes_min) {
            event.compress();
        }
        let active = self.active.as_mut().expect("the statement has begun the transaction");
        active.log.query(settings, flags, &event)
    }

    fn commit_active(
        &mut self,
        mut active: Box<Active>,
        mut redo: Vec<(ParticipantId, Redo)>,
        kind: GroupKind,
        permit: WritePermit,
        Ending { failed, is_part }: Ending<'_>,
    ) -> SqlResult<CommitSeq> {
        if !is_part && let Err(error) = self.check_once(failed) {
            self.recycle(active);
            return Err(error);
        }
        let temporary = active.take_temporary();
        // What was prepared before was written before.
        redo.append(&mut active.prepared);
        let files = &*self.env.commit;
        let prepared = self.prepare_engines(&mut active, &mut redo, files);
        let parts = prepared.and_then(|()| self.seal(&mut active, kind));
        let binlog = match parts {
            Ok(binlog) => binlog,
            Err(error) => {
                // What engines have installed is undone before its locks go.
                drop(redo);
                self.recycle(active);
                return Err(error);
            }
        };
        if !is_part {
            redo.append(&mut self.attached);
        }
        let is_in_sequence = self.env.globals.flag(VarId::GtidStrictMode)
            && binlog.as_ref().is_some_and(|part| part.seq_no.is_some());
        // Those that wrote have given their writes away.
        active.drop_writers();
        let Active { locks, engines, log, .. } = *active;
        self.spare_engines = engines;
        self.spare_log = Some(log);
        let prepared = match self.env.commit.prepare(CommitRequest {
            redo,
            binlog,
            locks,
            permit,
            client: (!self.settings.is_flushed_elsewhere).then(|| self.client.clone()),
        }) {
            Ok(prepared) => prepared,
            // The request is dropped, and its locks with it: rolled back.
            Err((error, _)) => return Err(commit_error(error)),
        };
        let seq = match is_in_sequence {
            true => self.env.commit.order_in_sequence(prepared).map_err(commit_error)?,
            false => self.env.commit.order(prepared),
        };
        temporary.into_iter().for_each(TemporaryChanges::keep);
        self.last_ordered = seq;
        if !is_part {
            self.note_once(seq);
        }
        self.gauge.committed(seq);
        // The thread that parks the reply calls `lead` afterwards, so that the flush finds the session among
        // those to tell.
        self.hold.raise(seq);
        Ok(seq)
    }

    fn prepare_engines(
        &self,
        active: &mut Active,
        redo: &mut Vec<(ParticipantId, Redo)>,
        files: &dyn RedoFiles,
    ) -> SqlResult<()> {
        for (at, slot) in active.engines.iter_mut().enumerate() {
            let Some(engine) = slot.as_mut().filter(|engine| !engine.is_read_only()) else { continue };
            let Some(durable) = self.env.engines.get(at) else { continue };
            let mut prepared = Vec::new();
            let done = engine.prepare_into(files, &mut prepared);
            redo.extend(prepared.into_iter().map(|redo| (durable.id(), redo)));
            done.map_err(engine_error)?;
            *slot = None;
        }
        Ok(())
    }

    /// Takes the running transaction out of the session: it is done but for its place in the order, which
    /// another session may ask for ([`SessionTrx::commit_detached`]). Its engines finish their writes now, as
    /// far as the commit has none to add. Dropped, it is rolled back.
    pub fn detach_transaction(&mut self) -> SqlResult<DetachedTrx> {
        self.active_mut();
        let mut active = self.active.take().expect("begun above");
        active.locks.leave();
        if active.counters.is_empty() {
            let mut prepared = std::mem::take(&mut active.prepared);
            let done = self.prepare_engines(&mut active, &mut prepared, &*self.env.commit);
            active.prepared = prepared;
            if let Err(error) = done {
                self.recycle(active);
                return Err(error);
            }
        }
        self.gauge.end();
        Ok(DetachedTrx { active, binlog: self.settings.binlog.clone(), timestamp: self.statement_timestamp })
    }

    /// Commits another session's transaction in its stead, with what is attached here.
    pub fn commit_detached(&mut self, detached: DetachedTrx) -> SqlResult<Option<CommitSeq>> {
        self.rollback();
        let own = std::mem::replace(&mut self.settings.binlog, detached.binlog);
        self.statement_timestamp = detached.timestamp;
        let mut active = detached.active;
        // The session has one transaction at a time.
        self.spare = None;
        active.locks.join(&self.party, Part::Transaction);
        self.active = Some(active);
        let committed = self.commit();
        self.settings.binlog = own;
        committed
    }

    fn seal(&mut self, active: &mut Active, kind: GroupKind) -> SqlResult<Option<BinlogPart>> {
        if active.log.is_empty() {
            return Ok(None);
        }
        let events = active.log.seal()?;
        let xid = self.branch_name().cloned();
        let settings = &mut self.settings.binlog;
        Ok(Some(BinlogPart {
            events,
            kind,
            xa: (kind == GroupKind::XaPrepare).then(|| xid.map(Box::new)).flatten(),
            domain: settings.domain,
            server: settings.server,
            seq_no: settings.seq_no.take(),
            hints: GtidHints {
                has_waited: active.locks.has_waited() || settings.source_waited,
                is_alone: !settings.allow_parallel,
                event_flags: settings.event_flags,
            },
            timestamp: self.statement_timestamp,
        }))
    }

    /// Writes the auto-increment counters that must outlive the rows they came from. Their lock comes last of
    /// all and is held from here to the order stage only, so its holder waits for nobody; and it keeps an
    /// older value from being ordered behind a newer one.
    fn persist_counters(&mut self) -> SqlResult<Vec<(Arc<OpenTable>, u64)>> {
        let tables = std::mem::take(&mut self.active_mut().counters);
        let mut written = Vec::with_capacity(tables.len());
        for table in tables {
            let key = table.table().id.0.to_be_bytes();
            self.lock_row(AUTO_INCREMENT_SPACE, &key, RowMode::Exclusive, WaitPolicy::Wait)?;
            let next = table.auto_increment.next();
            let engine = self.engine(table.engine);
            engine.put(AUTO_INCREMENT_SPACE, &key, &next.to_le_bytes()).map_err(engine_error)?;
            written.push((table, next));
        }
        Ok(written)
    }
}
