//! [`SessionTrx`]: begin, statement, rollback.

use std::sync::Arc;

use cohort_base::{Budget, CommitSeq, ParticipantId, ReplyBarrier, Reservation};
use cohort_catalog::Table;
use cohort_commit::ClientCommits;
use cohort_config::VarId;
use cohort_engine::{EngineTrx, Redo};
use cohort_locks::{KillFlag, LockOwner, Part, Party};
use cohort_table::{OpenTable, RowChange, TemporaryTables};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::active::{Active, ActiveParts, Ends};
use crate::binlog::StatementLog;
use crate::branch::{SessionXa, xa_error_for};
use crate::env::TrxEnv;
use crate::held_locks::SessionLocks;
use crate::session_counts::{Counted, SessionCounts};
use crate::settings::{AccessMode, Isolation, TrxSettings};
use crate::stats::TrxStats;
use crate::writer::Writer;

/// A session's transaction: the running one, or the resources for the next one.
pub struct SessionTrx {
    pub(crate) env: Arc<TrxEnv>,
    pub(crate) kill: KillFlag,
    /// The session as a node of the wait-for graph.
    pub(super) party: Arc<Party>,
    /// The account on whose behalf it commits.
    pub(super) writer: Writer,
    /// Counters of the connection.
    pub(crate) counts: Arc<SessionCounts>,
    /// Transaction statistics for other sessions.
    pub(super) trx_stats: Arc<TrxStats>,
    /// `Clock::monotonic_ns` after which the running statement fails with 1969 (`max_statement_time`).
    pub(crate) deadline_ns: Option<u64>,
    /// Budget to which the transactions' memory is charged.
    pub(super) memory: Arc<Budget>,
    /// Values of session variables.
    pub settings: TrxSettings,
    pub(super) active: Option<Box<Active>>,
    /// The XA transaction that the session works in.
    pub(super) xa: Option<Box<SessionXa>>,
    /// Reply barrier; other threads check it.
    pub(super) hold: Arc<ReplyBarrier>,
    /// The session's newest ordered transaction.
    pub(super) last_ordered: CommitSeq,
    /// Start of the running statement in seconds since 1970.
    pub(super) statement_timestamp: u32,
    /// The running statement changes rows.
    pub(super) is_writing: bool,
    /// Number of statements that run inside the running one, each in the one before.
    pub(super) inner_depth: u16,
    /// Number of savepoints that the running function or trigger does not see.
    pub(super) savepoints_from: usize,
    /// The error of an inner statement, with which the running one must fail.
    pub(super) inner_failure: Option<Box<InnerFailure>>,
    /// A cleared transaction for reuse. Allocating its components would be noticeable in a point select.
    pub(super) spare: Option<Box<Active>>,
    /// Components of earlier transactions for reuse.
    pub(super) spare_engines: Vec<Option<Box<dyn EngineTrx>>>,
    pub(super) spare_log: Option<StatementLog>,
    /// Text of the running statement for its row events; empty for none.
    pub(super) annotation: Vec<u8>,
    /// Redo of participants that are not engines, attached to the next commit.
    pub(super) attached: Vec<(ParticipantId, Redo)>,
    /// Redo of the statement's bulk loads, for its next commit.
    pub(super) loads: Vec<(ParticipantId, Redo)>,
    /// The running statement of a source, which commits once.
    pub(super) once: Option<Box<Once>>,
    /// Temporary tables of the session.
    pub(crate) temporary: Arc<TemporaryTables>,
    /// Locks of LOCK TABLES, FLUSH TABLES WITH READ LOCK and BACKUP.
    pub(super) session_locks: Option<Box<SessionLocks>>,
    /// An empty set of an earlier XA transaction for reuse.
    pub(super) spare_session_locks: Option<Box<SessionLocks>>,
    /// Commit history of the connection, for the group-commit policy.
    pub(super) client: Arc<ClientCommits>,
}

/// Options of BEGIN or START TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeginOptions {
    /// READ ONLY or READ WRITE; `None` uses the session's variables.
    pub access_mode: Option<AccessMode>,
    /// WITH CONSISTENT SNAPSHOT.
    pub consistent_snapshot: bool,
}

impl SessionTrx {
    /// Returns a session without a transaction.
    pub fn new(env: Arc<TrxEnv>, kill: KillFlag, counts: Arc<SessionCounts>) -> SessionTrx {
        let memory = Budget::of_session(&env.memory);
        SessionTrx {
            temporary: env.temporary_tables(Arc::clone(&memory)),
            env,
            kill,
            party: Party::new(),
            writer: Writer::default(),
            counts,
            trx_stats: Arc::default(),
            deadline_ns: None,
            settings: TrxSettings::default(),
            active: None,
            xa: None,
            hold: Arc::default(),
            last_ordered: CommitSeq(0),
            statement_timestamp: 0,
            is_writing: false,
            inner_depth: 0,
            savepoints_from: 0,
            inner_failure: None,
            spare: None,
            spare_engines: Vec::new(),
            spare_log: None,
            client: Arc::default(),
            annotation: Vec::new(),
            attached: Vec::new(),
            loads: Vec::new(),
            once: None,
            session_locks: None,
            spare_session_locks: None,
            memory,
        }
    }

    /// Returns the resources shared by the transactions of all sessions.
    #[inline]
    pub fn env(&self) -> &Arc<TrxEnv> {
        &self.env
    }

    /// Returns the session as a node of the wait-for graph, for its other lock owners to join.
    pub fn party(&self) -> &Arc<Party> {
        &self.party
    }

    /// Returns whether the session may hold locks in addition to those of its transaction: of LOCK TABLES, of
    /// GET_LOCK, of a prepared branch.
    pub fn has_other_locks(&self) -> bool {
        self.party.has_others()
    }

    /// Sets the account on whose behalf it commits from now on.
    pub fn set_writer(&mut self, writer: Writer) {
        self.writer = writer;
    }

    /// Returns a new lock owner of the session.
    pub(super) fn new_owner(&self, part: Part) -> LockOwner {
        let mut owner = self.env.locks.owner(self.env.trx_ids.next());
        owner.join(&self.party, part);
        owner
    }

    /// Returns the session's temporary tables.
    #[inline]
    pub fn temporary(&self) -> &Arc<TemporaryTables> {
        &self.temporary
    }

    /// Returns the connection's counters.
    #[inline]
    pub fn counts(&self) -> &Arc<SessionCounts> {
        &self.counts
    }

    /// Counts rows that the statement reads in a table, by an index or by a scan of the whole table. Off by
    /// default.
    #[inline]
    pub fn count_read(&self, table: &OpenTable, index: Option<usize>, rows: u64) {
        if self.env.globals.flag(VarId::Userstat) {
            table.count_read(index, rows);
        }
    }

    /// Swaps the counters: statements are counted in `other` from now on, and `other` gets the previous ones.
    pub fn swap_counts(&mut self, other: &mut Arc<SessionCounts>) {
        std::mem::swap(&mut self.counts, other);
    }

    /// Sets the `Clock::monotonic_ns` at which the running statement fails with 1969.
    #[inline]
    pub fn set_deadline(&mut self, deadline_ns: Option<u64>) {
        self.deadline_ns = deadline_ns;
    }

    /// Sets the budget to which the transactions' memory is charged.
    pub fn charge_to(&mut self, memory: Arc<Budget>) {
        self.temporary.charge_to(Arc::clone(&memory));
        self.memory = memory;
        self.spare = None;
    }

    /// Returns an empty reservation in the session's memory budget.
    pub fn reservation(&self) -> Reservation {
        Reservation::new(Arc::clone(&self.memory))
    }

    /// Returns the position that must be published before the replies produced so far are sent (I4, I5).
    #[inline]
    pub fn hold_until(&self) -> CommitSeq {
        self.hold.until()
    }

    /// Returns the reply barrier, for other threads to check.
    pub fn hold(&self) -> &Arc<ReplyBarrier> {
        &self.hold
    }

    /// Returns the position up to which KILL has lifted the reply barrier.
    pub(super) fn acknowledged_early(&self) -> CommitSeq {
        self.hold.acknowledged_early()
    }

    /// Returns the session's newest ordered transaction.
    #[inline]
    pub fn last_ordered(&self) -> CommitSeq {
        self.last_ordered
    }

    /// Sets the statistics object that other sessions read.
    pub fn show_at(&mut self, trx_stats: Arc<TrxStats>) {
        self.trx_stats = trx_stats;
    }

    /// Sets the reply barrier, which KILL may lift.
    pub fn look_for_kills_at(&mut self, hold: Arc<ReplyBarrier>) {
        self.hold = hold;
    }

    /// Returns whether the running transaction is READ ONLY.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.access_mode == AccessMode::ReadOnly)
    }

    /// Returns whether a transaction is open that outlives the statement: the status flag IN_TRANS.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.active.as_ref().is_some_and(|a| a.ends == Ends::Explicitly) || self.xa.is_some()
    }

    /// Returns the characteristics with which another transaction would be like the running one, or else the
    /// next one.
    pub fn characteristics(&self) -> (Option<Isolation>, Option<AccessMode>) {
        match self.active.as_ref().filter(|active| active.ends == Ends::Explicitly) {
            Some(active) => (Some(active.isolation), Some(active.access_mode)),
            None => (self.settings.next_isolation, self.settings.next_access_mode),
        }
    }

    /// Returns whether SET TRANSACTION has set characteristics of the next transaction.
    pub fn has_next_characteristics(&self) -> bool {
        self.settings.next_isolation.is_some() || self.settings.next_access_mode.is_some()
    }

    /// Clears the characteristics set by SET TRANSACTION.
    pub fn forget_next_characteristics(&mut self) {
        (self.settings.next_isolation, self.settings.next_access_mode) = (None, None);
    }

    /// Returns the id of the running transaction; 0 without one.
    #[inline]
    pub fn transaction_id(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.locks.trx().0)
    }

    /// Returns `autocommit`.
    #[inline]
    pub fn autocommit(&self) -> bool {
        self.settings.autocommit
    }

    /// SET autocommit: switching it on commits the open transaction.
    pub fn set_autocommit(&mut self, on: bool) -> SqlResult<()> {
        if on && !self.settings.autocommit {
            self.commit()?;
        }
        self.settings.autocommit = on;
        Ok(())
    }

    /// BEGIN, START TRANSACTION: commits an open transaction first.
    pub fn begin(&mut self, options: BeginOptions) -> SqlResult<()> {
        self.commit()?;
        let mode = options.access_mode;
        self.start(Ends::Explicitly, mode);
        if options.consistent_snapshot && self.active_mut().isolation.keeps_view() {
            self.read_view()?;
        }
        Ok(())
    }

    /// ROLLBACK. Nothing of the transaction is logged.
    pub fn rollback(&mut self) {
        self.note_branch_undone(ErrorCode::XaRbrollback);
        self.rollback_active();
    }

    pub(super) fn rollback_active(&mut self) {
        if let Some(active) = self.active.take() {
            self.counts.count(Counted::Rollback);
            self.recycle(active);
        }
    }

    /// Commits before DDL and other statements with an implicit commit.
    pub fn commit_implicitly(&mut self) -> SqlResult<()> {
        // An earlier statement may have failed after a load.
        self.loads.clear();
        self.commit().map(|_| ())
    }

    /// Starts a statement; its binlog events get `timestamp`, in seconds since 1970. If there is no
    /// transaction, one starts when the statement first needs it.
    #[inline]
    pub fn statement_begin(&mut self, timestamp: u32) {
        debug_assert!(!self.is_inside(), "an inner statement begins with inner_begin");
        self.statement_timestamp = timestamp;
        self.is_writing = false;
        if let Some(active) = &mut self.active {
            if !active.isolation.keeps_view() {
                active.view = None;
            }
            active.log.statement_begin(timestamp);
            active.mark_statement();
        }
    }

    /// Ends a statement: commits it under autocommit, or undoes it after an error. Rolls back the whole
    /// transaction after a deadlock, or if the statement met a row newer than its view
    /// (`innodb_snapshot_isolation`).
    pub fn statement_end<T>(&mut self, outcome: SqlResult<T>) -> SqlResult<T> {
        debug_assert!(!self.is_inside(), "the inner statements have ended");
        // The statement fails if an inner one failed without a mark, even if its error was dropped.
        let outcome = match self.inner_failure.take() {
            Some(failure) => outcome.and(Err(failure.error)),
            None => outcome,
        };
        let Some(active) = &mut self.active else { return outcome };
        if !active.isolation.keeps_view() {
            // Between two statements the view would prevent engines from freeing old versions.
            active.view = None;
        }
        match outcome {
            Ok(value) => {
                if let Err(error) = active.log.statement_end() {
                    self.undo_failed(&error);
                    return Err(error);
                }
                match active.ends {
                    Ends::WithStatement => drop(self.commit()?),
                    // The end of a statement inside a transaction counts too.
                    Ends::Explicitly => {
                        self.counts.count(Counted::Commit);
                        if let Err(error) = self.install_after_statement() {
                            self.rollback();
                            return Err(error);
                        }
                    }
                }
                Ok(value)
            }
            Err(error) => {
                self.mark_observed();
                self.undo_failed(&error);
                Err(error)
            }
        }
    }

    fn undo_failed(&mut self, error: &SqlError) {
        let is_whole = self.undoes_transaction(error);
        let undone = match &mut self.active {
            Some(active) if active.ends == Ends::Explicitly && !is_whole => active.rollback_statement(),
            _ => {
                self.note_branch_undone(xa_error_for(error.code));
                return self.rollback();
            }
        };
        // The binlog cache cannot be truncated: it would log changes that the engines do not have.
        if undone.is_err() {
            self.rollback();
        }
    }

    /// Returns whether the error rolls back the whole transaction.
    pub(super) fn undoes_transaction(&self, error: &SqlError) -> bool {
        match error.code {
            _ if error.keeps_transaction() => false,
            ErrorCode::LockDeadlock | ErrorCode::CheckRead => true,
            ErrorCode::LockWaitTimeout => self.settings.rollback_on_timeout,
            _ => false,
        }
    }

    /// Raises the reply barrier for rows that were not durable when they were locked: the client may learn of
    /// them now (I5). Called by reads, by errors, by statements that change nothing, and at the end of a
    /// transaction without writes of its own.
    #[inline]
    pub fn mark_observed(&self) {
        if let Some(active) = &self.active {
            self.hold.raise(active.has_seen());
        }
    }

    /// Records that the newest rows were searched without locks: the result depends on all transactions
    /// ordered so far (I5).
    #[inline]
    pub fn note_search(&mut self) {
        let (env, active, _) = self.parts();
        active.searched = active.searched.max(env.commit.placed());
    }

    /// Returns the table's codecs and counters.
    #[inline]
    pub fn open_table(&self, table: &Arc<Table>) -> SqlResult<Arc<OpenTable>> {
        if table.is_temporary() {
            return Ok(self.temporary.open(table));
        }
        self.env.open_table(table)
    }

    /// Keeps the rows of CREATE TEMPORARY TABLE .. SELECT, even if the transaction is rolled back.
    pub fn keep_temporary_rows(&mut self) {
        let rows = self.temporary.rows();
        self.active_mut().keep_temporary_rows(&rows);
    }

    /// Records a changed row, which adds to the rollback cost when a deadlock victim is chosen.
    #[inline]
    pub fn note_changed_row(&mut self, table: &OpenTable, change: RowChange) {
        self.active_mut().locks.add_weight(1);
        self.trx_stats.changed_row();
        if self.env.globals.flag(VarId::Userstat) {
            table.count_change(change);
        }
    }

    /// Replaces the temporary tables. The running transaction has not used any yet.
    pub fn use_temporary(&mut self, tables: Arc<TemporaryTables>) {
        let place = self.env.temporary_store().0;
        let transactions = self.active.iter_mut().chain(&mut self.spare);
        let engines = transactions.map(|transaction| &mut transaction.engines);
        for slots in engines.chain([&mut self.spare_engines]) {
            slots.truncate(place);
        }
        self.temporary = tables;
    }

    /// COM_RESET_CONNECTION and COM_CHANGE_USER: rolls back, drops temporary tables, releases LOCK TABLES and
    /// resets the settings, including those for the next transaction or statement. The reply barrier stays.
    pub fn reset(&mut self) {
        self.leave_branch();
        self.rollback();
        self.temporary.clear();
        self.spare = None;
        self.spare_engines.clear();
        self.release_session_locks();
        self.settings = TrxSettings::default();
        (self.inner_depth, self.savepoints_from, self.inner_failure) = (0, 0, None);
        self.deadline_ns = None;
        self.annotation.clear();
        self.detach();
    }

    /// Returns the connection's commit history for the group-commit policy.
    pub fn client(&self) -> &Arc<ClientCommits> {
        &self.client
    }

    /// Returns whether the transaction, running or about to start, outlives the statement.
    #[inline]
    pub(super) fn lasts(&self) -> bool {
        self.active.as_ref().map_or(!self.settings.autocommit, |a| a.ends == Ends::Explicitly)
    }

    pub(super) fn active(&self) -> Option<&Active> {
        self.active.as_deref()
    }

    /// Returns the running transaction; starts one if there is none.
    #[inline]
    pub(crate) fn active_mut(&mut self) -> &mut Active {
        self.parts().1
    }

    /// Returns the environment, the running transaction (started if there is none) and the kill flag as
    /// separate borrows. Cloning the shared references would cost more than the work in between.
    #[inline]
    pub(super) fn parts(&mut self) -> (&TrxEnv, &mut Active, &KillFlag) {
        if self.active.is_none() {
            let is_alone = self.settings.autocommit || self.xa.is_some();
            let ends = if is_alone { Ends::WithStatement } else { Ends::Explicitly };
            self.start(ends, None);
        }
        (&self.env, self.active.as_deref_mut().expect("started above"), &self.kill)
    }

    pub(super) fn start(&mut self, ends: Ends, access_mode: Option<AccessMode>) {
        // The session's last transaction must be ordered before this one starts, even if its client has no
        // reply yet.
        self.env.commit.await_ordered(self.last_ordered);
        // The statement continues after a commit of its own (an implicit one), possibly with a lock wait.
        if !self.settings.is_flushed_elsewhere && self.env.commit.acknowledged() < self.last_ordered {
            self.env.commit.lead();
        }
        let isolation = self.settings.next_isolation.take().unwrap_or(self.settings.isolation);
        let next_mode = self.settings.next_access_mode.take();
        let access_mode = access_mode.or(next_mode).unwrap_or(self.settings.access_mode);
        let mut active = match self.spare.take() {
            Some(mut spare) => {
                spare.begin(ends, isolation, access_mode);
                spare
            }
            None => Box::new(Active::new(ends, isolation, access_mode, self.new_parts())),
        };
        active.log.statement_begin(self.statement_timestamp);
        self.trx_stats.begin(active.locks.trx(), isolation, access_mode);
        self.active = Some(active);
    }

    fn new_parts(&mut self) -> ActiveParts {
        ActiveParts {
            durable: self.env.engines.len(),
            engines: std::mem::take(&mut self.spare_engines),
            locks: self.new_owner(Part::Transaction),
            log: self.spare_log.take().unwrap_or_else(|| StatementLog::new(self.env.new_binlog_cache())),
            memory: Reservation::new(Arc::clone(&self.memory)),
        }
    }

    /// Ends a transaction that needs no further work, and keeps its memory.
    pub(super) fn recycle(&mut self, mut active: Box<Active>) {
        self.trx_stats.end();
        self.hold.raise(active.has_seen());
        // Parts that engines have installed are undone before others get the rows.
        active.prepared.clear();
        active.drop_writers();
        // Rollback cost and predecessors belong to one transaction: an owner that locked rows is not reused.
        let is_as_new = active.locks.is_as_new();
        self.env.locks.release_all(&mut active.locks);
        active.clear();
        if is_as_new {
            self.spare = Some(active);
        } else {
            let Active { engines, log, .. } = *active;
            self.spare_engines = engines;
            self.spare_log = Some(log);
        }
    }
}

/// The failure of an inner statement, with which the outer one must fail.
pub(crate) struct InnerFailure {
    pub(crate) error: SqlError,
    pub is_transaction_undone: bool,
}

/// Returns whether a statement that ends with this error number (0 for none) may be ordered.
pub type AllowsOutcome = Box<dyn Fn(u16) -> bool + Send>;

/// The running applied statement.
pub(super) struct Once {
    pub allows: AllowsOutcome,
    pub ordered: Option<CommitSeq>,
    pub refused: Option<SqlResult<()>>,
}
