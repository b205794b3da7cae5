//! The active transaction: all state that ends with COMMIT or ROLLBACK.

use std::sync::Arc;

use cohort_base::{BinlogPos, CommitSeq, ParticipantId, Reservation};
use cohort_engine::{EngineTrx, ReadView, Redo, Savepoint};
use cohort_locks::LockOwner;
use cohort_table::{OpenTable, TemporaryRows};
use cohort_types::SqlResult;

use crate::binlog::{LogMark, StatementLog};
use crate::settings::{AccessMode, Isolation};

/// Event that ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// COMMIT or ROLLBACK.
    Explicitly,
    /// The end of the statement that began it.
    WithStatement,
}

/// A session's running transaction.
pub(crate) struct Active {
    pub(crate) ends: Ends,
    pub(crate) isolation: Isolation,
    pub(crate) access_mode: AccessMode,
    /// Taken at the first plain read; under READ COMMITTED dropped after each statement.
    pub(crate) view: Option<ReadView>,
    /// End of the binary log as seen by the view.
    pub(crate) view_binlog_end: BinlogPos,
    /// Indexed like `TrxEnv::engines`.
    pub(crate) engines: Vec<Option<Box<dyn EngineTrx>>>,
    /// Number of engines with redo. After them comes the session's own store of temporary tables.
    durable: usize,
    /// Redo of engines that have finished their writes before the commit. Dropped before the locks are
    /// released, like writes that engines have installed.
    pub(crate) prepared: Vec<(ParticipantId, Redo)>,
    pub(crate) locks: LockOwner,
    /// Newest transaction that unlocked searches may have observed, by a row or by the absence of one.
    pub(crate) searched: CommitSeq,
    /// It has advanced auto-increment counters to values of its own, so ids generated later may depend on it.
    pub(crate) has_passed_counters: bool,
    pub(crate) log: StatementLog,
    pub(crate) savepoints: Vec<NamedSavepoint>,
    /// Tables whose auto-increment counter this transaction must make durable.
    pub(crate) counters: Vec<Arc<OpenTable>>,
    /// Start of the running statement.
    pub(crate) statement: Mark,
    /// Number of marks, within a statement or around several, to which a rollback is possible.
    pub(crate) marks_held: usize,
    /// Engines have installed a part of its writes (`parts.rs`).
    pub(crate) has_parts: bool,
    /// Memory of writes, locks, and binlog events. Kept while the writes are converted to redo, which is no
    /// larger.
    memory: Reservation,
}

/// Components of a new transaction.
pub(crate) struct ActiveParts {
    /// Number of engines with redo.
    pub(crate) durable: usize,
    pub(crate) engines: Vec<Option<Box<dyn EngineTrx>>>,
    pub(crate) locks: LockOwner,
    pub(crate) log: StatementLog,
    pub(crate) memory: Reservation,
}

/// Changes of temporary tables; dropping this undoes them.
pub(crate) struct TemporaryChanges(Box<dyn EngineTrx>);

impl TemporaryChanges {
    /// Keeps the changes, after the transaction is committed.
    pub(crate) fn keep(mut self) {
        self.0.prepare().expect("a store in memory has nothing to write");
    }
}

/// A position in the transaction, for a rollback.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// Per engine; `None`, or a missing entry, if the engine had not begun.
    pub(crate) engines: Vec<Option<Savepoint>>,
    log: LogMark,
}

/// A named savepoint; names compare case-insensitively.
#[derive(Clone, Debug)]
pub(crate) struct NamedSavepoint {
    pub(crate) name: String,
    pub(crate) mark: Mark,
}

impl Active {
    pub(crate) fn new(
        ends: Ends,
        isolation: Isolation,
        access_mode: AccessMode,
        parts: ActiveParts,
    ) -> Active {
        let ActiveParts { durable, engines, locks, log, memory } = parts;
        Active {
            ends,
            isolation,
            access_mode,
            view: None,
            view_binlog_end: BinlogPos::default(),
            engines,
            durable,
            prepared: Vec::new(),
            locks,
            searched: CommitSeq(0),
            has_passed_counters: false,
            log,
            savepoints: Vec::new(),
            counters: Vec::new(),
            statement: Mark::default(),
            marks_held: 0,
            has_parts: false,
            memory,
        }
    }

    /// Drops the engine transactions that have written. Those that have only read can be reused and stay.
    pub(crate) fn drop_writers(&mut self) {
        for slot in &mut self.engines {
            slot.take_if(|engine| !engine.is_read_only());
        }
    }

    /// Begins a transaction, reusing one that was cleared ([`Active::clear`]).
    pub(crate) fn begin(&mut self, ends: Ends, isolation: Isolation, access_mode: AccessMode) {
        (self.ends, self.isolation, self.access_mode) = (ends, isolation, access_mode);
    }

    /// Resets a transaction that has released its locks, so that it can be reused.
    pub(crate) fn clear(&mut self) {
        let Active {
            ends: _,
            isolation: _,
            access_mode: _,
            view,
            view_binlog_end,
            // Engine transactions that only read can be reused; the caller has removed the others.
            engines: _,
            durable: _,
            prepared,
            locks: _,
            searched,
            has_passed_counters,
            log,
            savepoints,
            counters,
            statement,
            marks_held,
            has_parts,
            memory,
        } = self;
        *view = None;
        *view_binlog_end = BinlogPos::default();
        prepared.clear();
        *searched = CommitSeq(0);
        *has_passed_counters = false;
        log.clear();
        savepoints.clear();
        counters.clear();
        statement.log = LogMark::default();
        statement.engines.clear();
        *marks_held = 0;
        *has_parts = false;
        memory.shrink(u64::MAX);
    }

    /// Charges the memory that it uses. Returns the bytes of its writes.
    pub(crate) fn charge(&mut self) -> SqlResult<usize> {
        let writes: usize = self.engines.iter().flatten().map(|engine| engine.memory_bytes()).sum();
        let locks = self.locks.row_lock_bytes() + self.locks.claim_bytes();
        self.memory.resize((writes + locks + self.log.memory_bytes()) as u64)?;
        Ok(writes)
    }

    /// Returns the memory at the last charge.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.memory.used()
    }

    /// Returns the transaction that must be durable before the client may learn what this transaction has
    /// read under locks (I5).
    pub(crate) fn has_seen(&self) -> CommitSeq {
        self.locks.depends_on().max(self.searched)
    }

    /// Returns whether any engine has writes. Temporary tables do not count, because they are not logged.
    pub(crate) fn has_writes(&self) -> bool {
        let durable = &self.engines[..self.engines.len().min(self.durable)];
        !self.prepared.is_empty() || durable.iter().flatten().any(|engine| !engine.is_read_only())
    }

    /// Takes the changes of temporary tables out of the transaction. The caller decides whether they are
    /// kept.
    pub(crate) fn take_temporary(&mut self) -> Option<TemporaryChanges> {
        let slot = self.engines.get_mut(self.durable)?;
        let has_changes = slot.as_ref().is_some_and(|trx| !trx.is_read_only());
        slot.take_if(|_| has_changes).map(TemporaryChanges)
    }

    /// Keeps the rows that the running statement has written to temporary tables, even if the transaction is
    /// rolled back.
    pub(crate) fn keep_temporary_rows(&self, rows: &TemporaryRows) {
        let mark = self.statement.engines.get(self.durable).copied().flatten();
        rows.keep_behind(mark.unwrap_or(Savepoint(0)));
    }

    /// Returns the current position.
    pub(crate) fn mark(&mut self) -> Mark {
        let mut mark = Mark { engines: Vec::new(), log: self.log.mark() };
        self.renew(&mut mark);
        mark
    }

    /// Records the start of a statement, reusing the memory of the previous mark.
    pub(crate) fn mark_statement(&mut self) {
        let mut mark = std::mem::take(&mut self.statement);
        self.renew(&mut mark);
        self.statement = mark;
    }

    fn renew(&mut self, mark: &mut Mark) {
        mark.log = self.log.mark();
        mark.engines.clear();
        mark.engines.extend(self.engine_marks());
    }

    /// Returns the engines' savepoints at the current position, which may be within a statement.
    pub(crate) fn engine_marks(&mut self) -> impl Iterator<Item = Option<Savepoint>> {
        // An empty write set needs no savepoint: dropping it has the same effect.
        self.engines.iter_mut().map(|engine| match engine {
            Some(engine) if !engine.is_read_only() => Some(engine.savepoint()),
            _ => None,
        })
    }

    /// Undoes the writes since the mark; locks are kept.
    pub(crate) fn rollback_to(&mut self, mark: &Mark) -> SqlResult<()> {
        self.rollback_engines(&mark.engines);
        self.log.truncate(mark.log)
    }

    /// Like [`Active::rollback_to`], but only for the engines: nothing of it was logged.
    pub(crate) fn rollback_engines(&mut self, marks: &[Option<Savepoint>]) {
        for (at, slot) in self.engines.iter_mut().enumerate() {
            let Some(engine) = slot else { continue };
            match marks.get(at).copied().flatten() {
                Some(savepoint) => engine.rollback_to(savepoint),
                None if engine.is_read_only() => {}
                None => *slot = None,
            }
        }
    }

    /// Undoes the running statement.
    pub(crate) fn rollback_statement(&mut self) -> SqlResult<()> {
        let mark = std::mem::take(&mut self.statement);
        self.rollback_to(&mark)
    }
}
