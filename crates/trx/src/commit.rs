//! COMMIT: from active to ordered. Everything that can fail happens before the coordinator's `order` (I6).

use std::sync::Arc;

use cohort_base::{CommitSeq, ParticipantId};
use cohort_binlog::event::QueryEvent;
use cohort_commit::{BinlogPart, CommitRequest, GroupKind, GtidHints};
use cohort_config::VarId;
use cohort_engine::{Redo, RedoFiles};
use cohort_locks::{MetadataKey, MetadataMode, Part, RowMode, WaitPolicy, WritePermit};
use cohort_table::{AUTO_INCREMENT_SPACE, OpenTable};
use cohort_types::{SqlError, SqlResult};

use crate::active::{Active, TemporaryChanges};
use crate::binlog::LogMark;
use crate::errors::{commit_error, engine_error};
use crate::session_counts::Counted;
use crate::session_trx::SessionTrx;
use crate::settings::BinlogSettings;

/// A transaction that is handed from one session to another.
pub struct DetachedTrx {
    active: Box<Active>,
    binlog: BinlogSettings,
    timestamp: u32,
}

/// Contents of the commit of a DDL statement.
#[derive(Debug, Default)]
pub struct DdlCommit {
    /// Redo of participants that are not engines: the catalog.
    pub redo: Vec<(ParticipantId, Redo)>,
    /// Its event, unless it must not be logged.
    pub event: Option<QueryEvent>,
    /// Flags of the event's header.
    pub event_flags: u16,
    /// The statement has written rows that are logged, so its events form a transaction.
    pub has_rows: bool,
    /// Error with which the statement ends although it commits the part that succeeded.
    pub failed: Option<SqlError>,
    /// The statement continues and commits more: attached redo waits for its last commit.
    pub is_part: bool,
}

/// End of the statement that commits.
#[derive(Clone, Copy, Default)]
struct Ending<'e> {
    failed: Option<&'e SqlError>,
    is_part: bool,
}

/// Says whether `read_only` refuses a commit of an account that is not exempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOnly {
    Binds,
    /// Not refused, as in MariaDB: XA PREPARE, and logged statements that change nothing permanent, such as
    /// FLUSH and statements about temporary tables.
    Passes,
}

impl SessionTrx {
    /// COMMIT. Returns the CommitSeq, or `None` if the transaction wrote nothing. The reply must be held
    /// until [`SessionTrx::hold_until`]. After an error the transaction is rolled back.
    #[inline]
    pub fn commit(&mut self) -> SqlResult<Option<CommitSeq>> {
        debug_assert!(!self.is_inside(), "the outermost statement commits");
        self.check_no_branch()?;
        if self.active.is_none() {
            return Ok(None);
        }
        self.commit_as(GroupKind::Transaction)
    }

    /// Commits the running transaction as an event group of this kind.
    pub(super) fn commit_as(&mut self, kind: GroupKind) -> SqlResult<Option<CommitSeq>> {
        self.counts.count(Counted::Commit);
        let writes = self.active.as_deref().is_some_and(Active::has_writes);
        let read_only = match kind {
            GroupKind::XaPrepare => ReadOnly::Passes,
            // Events without writes are about temporary tables.
            _ if writes => ReadOnly::Binds,
            _ => ReadOnly::Passes,
        };
        let permitted = match self.has_something_to_commit() {
            true => self.permit_commit(read_only).map(Some),
            // The client did not request a change of the counters, so a refusal only drops it.
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

    /// Attaches redo of a participant that is not an engine to the next commit, whichever statement makes it.
    /// If no other commit is expected, call [`SessionTrx::commit_attached`].
    pub fn attach(&mut self, participant: ParticipantId, redo: Redo) {
        self.attached.retain(|(id, _)| *id != participant);
        self.attached.push((participant, redo));
    }

    /// Adds the redo of a bulk load to the next commit, which must be that of the definition.
    pub fn attach_load(&mut self, engine: ParticipantId, redo: Vec<Redo>) {
        self.loads.extend(redo.into_iter().map(|redo| (engine, redo)));
    }

    /// Returns whether redo is attached to the next commit.
    pub fn has_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    /// Removes the redo attached to the next commit.
    pub fn detach(&mut self) {
        self.attached.clear();
        self.once = None;
    }

    /// Commits the running transaction, or an empty one, with the attached redo.
    pub fn commit_attached(&mut self) -> SqlResult<Option<CommitSeq>> {
        self.active_mut();
        self.commit()
    }

    /// Ends a DDL statement: the catalog's redo, the writes of the running transaction and the QUERY event
    /// become durable atomically (I2). The transaction contains only writes of the statement itself, which
    /// began with [`SessionTrx::commit_implicitly`].
    pub fn commit_ddl(&mut self, ddl: DdlCommit) -> SqlResult<CommitSeq> {
        self.check_no_branch()?;
        let allowed = self.lock_metadata(&MetadataKey::Global, MetadataMode::SharedWrite);
        let changes = ddl.has_rows || !ddl.redo.is_empty();
        let read_only = if changes { ReadOnly::Binds } else { ReadOnly::Passes };
        let permitted = allowed.and_then(|()| self.permit_commit(read_only));
        let kind = if ddl.has_rows { GroupKind::Transaction } else { GroupKind::Ddl };
        self.commit_ddl_if(permitted, ddl, kind)
    }

    /// Ends a statement that changes nothing but is logged. It is allowed under the session's own FLUSH
    /// TABLES WITH READ LOCK, and under `read_only`, which has refused other statements before.
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
        // A DDL statement continues with what it has changed.
        self.env.commit.await_ordered(seq);
        counters.iter().for_each(|(table, next)| table.auto_increment.note_persisted(*next));
        Ok(seq)
    }

    /// Logs the text of a statement before its rows.
    pub fn log_ahead(&mut self, event: QueryEvent, flags: u16) -> SqlResult<()> {
        self.active_mut();
        self.log_query(event, flags)?;
        self.active_mut().log.statement_end()
    }

    /// Returns the end of the running transaction's events.
    pub fn log_mark(&mut self) -> LogMark {
        self.active_mut().log.mark()
    }

    /// Removes the events after a mark.
    pub fn unlog(&mut self, mark: LogMark) -> SqlResult<()> {
        self.active_mut().log.truncate(mark)
    }

    /// Logs a statement of the running transaction as text, after its earlier events.
    pub fn log_text(&mut self, event: QueryEvent) -> SqlResult<()> {
        self.active_mut();
        let flags = self.settings.binlog.event_flags;
        self.log_query(event, flags)
    }

    /// Logs a statement as text in the running transaction, unless logging is off or filtered.
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
        // A load precedes all writes of its indexes.
        redo.append(&mut self.loads);
        // Redo that was prepared earlier was written earlier.
        redo.append(&mut active.prepared);
        let files = &*self.env.commit;
        let prepared = self.prepare_engines(&mut active, &mut redo, files);
        let parts = prepared.and_then(|()| self.seal(&mut active, kind));
        let binlog = match parts {
            Ok(binlog) => binlog,
            Err(error) => {
                // Parts that engines have installed are undone before the locks are released.
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
        // Engine transactions that wrote have handed over their writes.
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
            // The request is dropped with its locks: rolled back.
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
        self.trx_stats.committed(seq);
        // The thread that parks the reply calls `lead` afterwards, so that the flush finds this session among
        // those to notify.
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

    /// Takes the running transaction out of the session. Only its order is missing, which another session may
    /// request ([`SessionTrx::commit_detached`]). Its engines finish their writes now, unless the commit adds
    /// more. Dropping it rolls it back.
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
        self.trx_stats.end();
        Ok(DetachedTrx { active, binlog: self.settings.binlog.clone(), timestamp: self.statement_timestamp })
    }

    /// Commits another session's transaction on its behalf, with what is attached here.
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

    /// Writes the auto-increment counters that must outlive the rows they came from. Their lock is taken last
    /// and held only until the order stage, so its holder waits for no other transaction. The lock prevents
    /// an older value from being ordered after a newer one.
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
