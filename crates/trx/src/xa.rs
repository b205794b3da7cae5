//! XA transactions in a session: its branch from XA START on, and the end of prepared branches.
//!
//! # States
//! ```text
//! Active --XA END--> Idle --XA PREPARE--> Prepared --XA COMMIT, XA ROLLBACK--> none
//!   ^----RESUME-------|  \--XA COMMIT ONE PHASE, XA ROLLBACK----------------> none
//!   \----a deadlock, or another error that rolls back all--> RollbackOnly --XA ROLLBACK, XA COMMIT--> none
//! ```
//! Up to `Idle` the branch is the session's active transaction; it commits in one phase like any other. XA
//! PREPARE takes its locks out of the transaction and converts its writes into a record. It then commits that
//! record, the binlog events and the auto-increment counters, with locks of its own. From then on the server
//! owns the branch (`cohort_commit::XaBranches`). The session can end it while the session lives, afterwards
//! any other session can. The end is a commit of the writes under the locks that the branch still holds.
//!
//! # Checks
//! Every operation that ends or begins a transaction calls [`SessionTrx::check_no_branch`]. From `Idle` on
//! the session may lock no table (`session_locks.rs`), so statements without tables still work.
//!
//! # On failure
//! A PREPARE that is refused rolls back the branch. An end that is refused leaves the branch prepared. The
//! client gets the reason, not only the refusal.
//!
//! # Memory
//! The rows noted until PREPARE, and the redo of both phases, are charged to the session. The data of a
//! prepared branch is charged to the server only, because the branch outlives its session.

use std::sync::Arc;

use cohort_base::{Budget, ParticipantId, Reservation};
use cohort_binlog::event::{QueryEvent, XaXid, flags};
use cohort_commit::{
    BinlogPart, CommitRequest, GroupKind, GtidHints, ReaderEnd, XA, XaBody, XaBodyBuilder, XaHeld, XaListed,
    XaTaken, XaTaker, end_redo, is_same_branch,
};
use cohort_config::VarId;
use cohort_engine::Redo;
use cohort_locks::{MetadataKey, Part, WaitLimit};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::active::{Ends, TemporaryChanges};
use crate::binlog::StatementLog;
use crate::branch::{SessionXa, XaEnding, XaState};
use crate::errors::{commit_error, rmfail};
use crate::session_counts::Counted;
use crate::session_trx::SessionTrx;
use crate::xa_record::{lock_bytes, record_bytes_expected};

/// Returns error 1440.
fn duplicate() -> SqlError {
    SqlError::xid_exists()
}

fn rolled_back(code: ErrorCode) -> SqlError {
    let text = match code {
        ErrorCode::XaRbdeadlock => "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected",
        ErrorCode::XaRbtimeout => "XA_RBTIMEOUT: Transaction branch was rolled back: took too long",
        _ => "XA_RBROLLBACK: Transaction branch was rolled back",
    };
    SqlError::new(code, text)
}

impl SessionTrx {
    /// Sets the time of a statement that changes no rows, in seconds since 1970.
    pub fn set_statement_time(&mut self, timestamp: u32) {
        self.statement_timestamp = timestamp;
    }

    /// Returns the state of the session's branch, if it works in one.
    pub fn branch_state(&self) -> Option<XaState> {
        self.xa.as_ref().map(|xa| xa.state)
    }

    /// Returns whether the session works in the branch of this name.
    pub fn is_in_branch(&self, xid: &XaXid) -> bool {
        self.branch_name().is_some_and(|own| is_same_branch(own, xid))
    }

    /// Returns the name of the branch that the session works in.
    pub fn branch_name(&self) -> Option<&XaXid> {
        self.xa.as_ref().map(|xa| &xa.xid)
    }

    /// Returns whether the open transaction has changed anything.
    pub fn has_written(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.has_writes() || !active.log.is_empty())
    }

    /// Returns whether a branch, the session's own or a prepared one, has changed anything.
    pub fn has_branch_written(&self, xid: &XaXid) -> bool {
        let is_running = self.is_in_branch(xid) && self.branch_state() != Some(XaState::Prepared);
        match is_running {
            true => self.has_written(),
            false => self.env.commit.xa().has_written(xid),
        }
    }

    /// Returns error 1399 if the transaction that would end or begin is a branch.
    pub(crate) fn check_no_branch(&self) -> SqlResult<()> {
        match &self.xa {
            // A separate statement, while the branch is prepared.
            Some(_) if self.active.as_ref().is_some_and(|active| active.ends == Ends::WithStatement) => {
                Ok(())
            }
            Some(xa) => Err(rmfail(xa.state.name())),
            None => Ok(()),
        }
    }

    fn set_branch_state(&mut self, state: XaState) {
        if let Some(xa) = &mut self.xa {
            xa.state = state;
        }
        self.refuse_tables((state != XaState::Active).then(|| state.name()));
    }

    /// Returns error 1400 inside a transaction of the session, with which work of a branch must not mix.
    pub fn check_outside(&self) -> SqlResult<()> {
        let is_outside = self.has_locked_tables() || self.in_transaction();
        if is_outside { Err(outside()) } else { Ok(()) }
    }

    /// XA START. Error 1440 if the name is in use.
    pub fn start_branch(&mut self, xid: XaXid) -> SqlResult<()> {
        self.commit()?;
        let branches = Arc::clone(self.env.commit.xa());
        if !branches.begin(&xid) {
            self.hold_for_branches();
            return Err(duplicate());
        }
        self.start(Ends::Explicitly, None);
        let memory = Reservation::new(Arc::clone(&self.memory));
        self.xa = Some(Box::new(SessionXa::new(xid, branches, memory)));
        Ok(())
    }

    /// Turns the running transaction, which has done nothing yet, into a branch. Error 1440 as for XA START.
    pub fn name_branch(&mut self, xid: XaXid) -> SqlResult<()> {
        let branches = Arc::clone(self.env.commit.xa());
        if !branches.begin(&xid) {
            return Err(duplicate());
        }
        let memory = Reservation::new(Arc::clone(&self.memory));
        self.xa = Some(Box::new(SessionXa::new(xid, branches, memory)));
        Ok(())
    }

    /// Implements XA END.
    pub fn suspend_branch(&mut self) {
        self.set_branch_state(XaState::Idle);
    }

    /// Implements XA START .. RESUME.
    pub fn resume_branch(&mut self) {
        self.set_branch_state(XaState::Active);
    }

    /// Records that the session's transaction was rolled back. If it was a branch, only XA ROLLBACK and XA
    /// COMMIT are possible from now on.
    pub(super) fn note_branch_undone(&mut self, answer: ErrorCode) {
        if matches!(self.branch_state(), Some(XaState::Active | XaState::Idle)) {
            self.set_branch_state(XaState::RollbackOnly(answer));
        }
    }

    /// Makes the session leave its branch; rolls the branch back unless it is prepared.
    pub fn leave_branch(&mut self) {
        if let Some(xa) = self.xa.take() {
            self.rollback_active();
            drop(xa);
            self.refuse_tables(None);
        }
    }

    /// XA COMMIT .. ONE PHASE of the session's own branch.
    pub fn commit_branch_at_once(&mut self) -> SqlResult<()> {
        self.refuse_tables(None);
        let xa = self.xa.take();
        let committed = self.commit();
        drop(xa);
        committed.map(drop)
    }

    /// Ends a branch that was rolled back, and returns the error for its XA COMMIT.
    pub fn answer_rolled_back(&mut self, code: ErrorCode) -> SqlError {
        self.leave_branch();
        rolled_back(code)
    }

    /// XA PREPARE: from here on the branch survives the end of the session and of the server. The reply must
    /// be held like that of a commit. An error has rolled back the branch. `end` builds the XA END of the
    /// binlog.
    pub fn prepare_branch(&mut self, end: impl FnOnce(&XaXid) -> QueryEvent) -> SqlResult<()> {
        self.try_prepare_branch(end).inspect_err(|_| self.leave_branch())
    }

    /// Like [`SessionTrx::prepare_branch`], but after an error the caller must leave the branch, which rolls
    /// it back.
    pub fn try_prepare_branch(&mut self, end: impl FnOnce(&XaXid) -> QueryEvent) -> SqlResult<()> {
        let xa = self.xa.as_mut().expect("asked in a branch");
        let (xid, rows, row_bytes) = (xa.xid.clone(), std::mem::take(&mut xa.rows), xa.row_bytes);
        // The memory of the commit is charged to the session, that of the prepared branch to the server.
        let mut redo_memory = Reservation::new(Arc::clone(&self.memory));
        let mut memory = Reservation::new(Budget::of_session(&self.env.memory));
        let active = self.active.as_ref().expect("a branch that is not prepared has a transaction");
        let expected = record_bytes_expected(active, rows.len(), row_bytes);
        redo_memory.grow(expected as u64)?;
        memory.grow((expected + lock_bytes(active)) as u64)?;
        let builder = self.record_branch(active, &xid, &rows, expected)?;
        drop(rows);
        redo_memory.resize(builder.size_bytes() as u64)?;
        memory.resize((builder.size_bytes() + lock_bytes(active)) as u64)?;
        let active = self.active.as_mut().expect("looked at above");
        let is_logged = !active.log.is_empty();
        if is_logged {
            active.log.statement_end()?;
            active.log.xa_prepare(&self.settings.binlog, &end(&xid), &xid)?;
        }
        let has_work = is_logged || active.has_writes() || !active.counters.is_empty();
        if !has_work && self.attached.is_empty() {
            self.prepare_reader(builder, memory);
            return Ok(());
        }
        // Only the record is written now; the branch's own locks stay with the branch.
        let durable = self.env.engines.len();
        for slot in active.engines.iter_mut().take(durable) {
            slot.take_if(|trx| !trx.is_read_only());
        }
        active.savepoints.clear();
        let temporary = active.take_temporary();
        let mut own = self.env.locks.owner(self.env.trx_ids.next());
        own.inherit_from(&active.locks);
        let mut locks = std::mem::replace(&mut active.locks, own);
        // Until the commit is done, and as long as the branch has a session, a request that waits for the
        // branch waits for the session.
        locks.join(&self.party, Part::Side);
        active.locks.join(&self.party, Part::Transaction);
        self.attach(XA, builder.redo());
        let committed = self.commit_as(GroupKind::XaPrepare);
        self.detach_from_commit();
        let seq = committed?.expect("there is redo");
        self.env.commit.await_ordered(seq);
        self.env.commit.xa().keep(&xid, XaHeld { locks, memory });
        self.note_prepared(temporary);
        Ok(())
    }

    /// Prepares a branch that has only read, without a commit. What it has read may not be durable yet (I5).
    fn prepare_reader(&mut self, builder: XaBodyBuilder, memory: Reservation) {
        let Some(mut active) = self.active.take() else { return };
        let temporary = active.take_temporary();
        self.hold.raise(active.has_seen());
        let own = self.env.locks.owner(self.env.trx_ids.next());
        let mut locks = std::mem::replace(&mut active.locks, own);
        locks.join(&self.party, Part::Side);
        active.locks.join(&self.party, Part::Transaction);
        self.recycle(active);
        self.env.commit.xa().keep_reader(builder.body(), XaHeld { locks, memory });
        self.note_prepared(temporary);
    }

    fn note_prepared(&mut self, temporary: Option<TemporaryChanges>) {
        if let Some(xa) = &mut self.xa {
            xa.temporary = temporary;
        }
        self.set_branch_state(XaState::Prepared);
    }

    /// Removes the attachment that a refused commit has left.
    fn detach_from_commit(&mut self) {
        self.attached.retain(|(id, _)| *id != XA);
    }

    /// XA COMMIT or XA ROLLBACK of a prepared branch: the session's own, or one without a session. Returns
    /// false if there is no such branch. After an error the branch is prepared as before.
    pub fn end_branch(
        &mut self,
        xid: &XaXid,
        ending: XaEnding,
        event: impl FnOnce(&XaXid) -> QueryEvent,
    ) -> SqlResult<bool> {
        let is_own = self.branch_state() == Some(XaState::Prepared) && self.is_in_branch(xid);
        let taker = if is_own { XaTaker::Owner } else { XaTaker::Other };
        let branches = Arc::clone(self.env.commit.xa());
        match branches.end_reader(xid, taker) {
            Some(ReaderEnd::Done(held)) => {
                drop(held);
                self.forget_own_branch(ending);
                return Ok(true);
            }
            Some(ReaderEnd::WasRolledBack) => return Err(rolled_back(ErrorCode::XaRbrollback)),
            None => {}
        }
        let Some(taken) = branches.take(xid, taker) else {
            // Its end may be ordered but not durable.
            self.hold_for_branches();
            return Ok(false);
        };
        match self.try_end_branch(taken, ending, event) {
            Ok(()) => {
                if is_own {
                    self.forget_own_branch(ending);
                }
                Ok(true)
            }
            Err((error, mut held)) => {
                match taker {
                    XaTaker::Owner => held.locks.join(&self.party, Part::Side),
                    XaTaker::Other => held.locks.leave(),
                }
                branches.give_back(xid, held, taker);
                Err(error)
            }
        }
    }

    /// Removes the session's branch, which has ended.
    fn forget_own_branch(&mut self, ending: XaEnding) {
        if let Some(mut xa) = self.xa.take() {
            xa.is_over = true;
            let temporary = xa.temporary.take().filter(|_| ending == XaEnding::Commit);
            temporary.into_iter().for_each(TemporaryChanges::keep);
        }
        self.refuse_tables(None);
        self.rollback_active();
    }

    /// Ends a taken branch. On failure returns its locks: nothing of it is ordered.
    #[allow(clippy::result_large_err)] // the locks go back to their branch
    fn try_end_branch(
        &mut self,
        taken: XaTaken,
        ending: XaEnding,
        event: impl FnOnce(&XaXid) -> QueryEvent,
    ) -> Result<(), (SqlError, XaHeld)> {
        let XaTaken { body, held } = taken;
        let XaHeld { mut locks, memory } = held;
        let wait = WaitLimit::For(self.settings.metadata_lock_wait);
        locks.join(&self.party, Part::Side);
        let permit = match self.env.permit_commit(&mut locks, &self.writer, wait, &self.kill) {
            Ok(permit) => permit,
            Err(error) => {
                self.env.locks.unlock_name(&mut locks, &MetadataKey::Global);
                return Err((error, XaHeld { locks, memory }));
            }
        };
        // Held until the writes are in the engines.
        let mut redo_memory = Reservation::new(Arc::clone(&self.memory));
        let parts = self.ending_parts(&body, ending, event, &mut redo_memory);
        let (redo, binlog) = match parts {
            Ok(parts) => parts,
            Err(error) => {
                self.env.locks.unlock_name(&mut locks, &MetadataKey::Global);
                return Err((error, XaHeld { locks, memory }));
            }
        };
        let is_in_sequence = self.env.globals.flag(VarId::GtidStrictMode)
            && binlog.as_ref().is_some_and(|part| part.seq_no.is_some());
        let client = (!self.settings.is_flushed_elsewhere).then(|| self.client.clone());
        let prepared = self.env.commit.prepare(CommitRequest { redo, binlog, locks, permit, client });
        let ordered = prepared.and_then(|prepared| match is_in_sequence {
            true => self.env.commit.order_in_sequence_or_return(prepared),
            false => Ok(self.env.commit.order(prepared)),
        });
        let seq = match ordered {
            Ok(seq) => seq,
            Err((error, request)) => {
                // Parts that engines have installed are undone before other transactions get the locks.
                let CommitRequest { redo, mut locks, .. } = *request;
                drop(redo);
                self.env.locks.unlock_name(&mut locks, &MetadataKey::Global);
                return Err((commit_error(error), XaHeld { locks, memory }));
            }
        };
        self.counts.count(match ending {
            XaEnding::Commit => Counted::Commit,
            XaEnding::Rollback => Counted::Rollback,
        });
        self.attached.clear();
        self.last_ordered = self.last_ordered.max(seq);
        self.hold.raise(seq);
        self.env.commit.await_ordered(seq);
        // Until here the branch's keys counted for the counters of tables that were opened meanwhile.
        drop(body);
        Ok(())
    }

    /// Returns the redo and the binlog events of a branch's end.
    fn ending_parts(
        &mut self,
        body: &XaBody,
        ending: XaEnding,
        event: impl FnOnce(&XaXid) -> QueryEvent,
        memory: &mut Reservation,
    ) -> SqlResult<(Vec<(ParticipantId, Redo)>, Option<BinlogPart>)> {
        let mut redo = match ending {
            XaEnding::Commit => self.redo_of_branch(body, memory)?,
            XaEnding::Rollback => Vec::new(),
        };
        redo.push((XA, end_redo(&body.head().xid)));
        redo.extend(self.attached.iter().cloned());
        let settings = &mut self.settings.binlog;
        if !body.head().is_logged || !settings.on {
            return Ok((redo, None));
        }
        let spare = self.spare_log.take();
        let mut log = spare.unwrap_or_else(|| StatementLog::new(self.env.new_binlog_cache()));
        log.statement_begin(self.statement_timestamp);
        log.query(settings, flags::SUPPRESS_USE | settings.event_flags, &event(&body.head().xid))?;
        log.statement_end()?;
        let events = log.seal()?;
        self.spare_log = Some(log);
        let part = BinlogPart {
            events,
            kind: GroupKind::XaEnd,
            xa: Some(Box::new(body.head().xid.clone())),
            domain: settings.domain,
            server: settings.server,
            seq_no: settings.seq_no.take(),
            hints: GtidHints {
                has_waited: settings.source_waited,
                is_alone: !settings.allow_parallel,
                event_flags: settings.event_flags,
            },
            timestamp: self.statement_timestamp,
        };
        Ok((redo, Some(part)))
    }

    /// Returns the branches for XA RECOVER. The list shows branches whose prepare or end is ordered, so the
    /// reply is held until that is durable (I5).
    pub fn show_branches(&mut self) -> Vec<XaListed> {
        let listed = self.env.commit.xa().list();
        self.hold_for_branches();
        listed
    }

    /// Raises the reply barrier before the client learns which branches exist, or that one does not: that
    /// must be durable when the reply is sent (I5).
    fn hold_for_branches(&mut self) {
        self.hold.raise(self.env.commit.placed());
    }
}

/// Returns error 1400.
pub fn outside() -> SqlError {
    SqlError::xa_outside()
}
