//! The active transaction: all that ends with COMMIT or ROLLBACK.

use std::sync::Arc;

use cohort_base::{BinlogPos, CommitSeq, ParticipantId, Reservation};
use cohort_engine::{EngineTrx, ReadView, Redo, Savepoint};
use cohort_locks::LockOwner;
use cohort_table::{OpenTable, TemporaryRows};
use cohort_types::SqlResult;

use crate::binlog::{LogMark, StatementLog};
use crate::settings::{AccessMode, Isolation};

/// What ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// COMMIT or ROLLBACK.
    Explicitly,
    /// The statement that began it.
    WithStatement,
}

/// A session's running transaction.
pub(crate) struct Active {
    pub(crate) ends: Ends,
    pub(crate) isolation: Isolation,
    pub(crate) access_mode: AccessMode,
    /// Taken at the first plain read; under READ COMMITTED forgotten after each statement.
    pub(crate) view: Option<ReadView>,
    /// Where the binary log ends in it.
    pub(crate) view_binlog_end: BinlogPos,
    /// By the engine's place in `Database::engines`.
    pub(crate) engines: Vec<Option<Box<dyn EngineTrx>>>,
    /// How many of them have redo; behind them is the session's own store of temporary tables.
    durable: usize,
    /// Redo of engines that have finished their writes before the commit. Goes before the locks do, as what
    /// engines have in place does.
    pub(crate) prepared: Vec<(ParticipantId, Redo)>,
    pub(crate) locks: LockOwner,
    /// The newest transaction that unlocked searches for rows may have seen, or missed rows by.
    pub(crate) searched: CommitSeq,
    /// It has moved counters to values of its own: ids that they give it tell of those.
    pub(crate) has_passed_counters: bool,
    pub(crate) log: StatementLog,
    pub(crate) savepoints: Vec<NamedSavepoint>,
    /// Tables whose auto-increment counter this transaction must make durable.
    pub(crate) counters: Vec<Arc<OpenTable>>,
    /// Where the running statement began.
    pub(crate) statement: Mark,
    /// Marks within a statement, or around several, that may be gone back to.
    pub(crate) marks_held: usize,
    /// Engines have installed some of its writes (`parts.rs`).
    pub(crate) has_parts: bool,
    /// Writes, locks, and events for the binary log. Held while the writes become redo, which is no longer
    /// than they are.
    memory: Reservation,
}

/// What a transaction is made of.
pub(crate) struct ActiveParts {
    /// Of the engines, how many have redo.
    pub(crate) durable: usize,
    pub(crate) engines: Vec<Option<Box<dyn EngineTrx>>>,
    pub(crate) locks: LockOwner,
    pub(crate) log: StatementLog,
    pub(crate) memory: Reservation,
}

/// Changes of temporary tables, which are undone when this is dropped.
pub(crate) struct TemporaryChanges(Box<dyn EngineTrx>);

impl TemporaryChanges {
    /// The transaction is committed.
    pub(crate) fn keep(mut self) {
        self.0.prepare().expect("a store in memory has nothing to write");
    }
}

/// A place in the transaction to go back to.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// Per engine; an engine beyond the end, or None, had not begun.
    pub(crate) engines: Vec<Option<Savepoint>>,
    log: LogMark,
}

/// A savepoint with its name; names compare case-insensitively.
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

    /// Drops what engines hold of it; one that has read only is as good as new and stays.
    pub(crate) fn drop_writers(&mut self) {
        for slot in &mut self.engines {
            slot.take_if(|engine| !engine.is_read_only());
        }
    }

    /// Begins a transaction with what another has left ([`Active::clear`]).
    pub(crate) fn begin(&mut self, ends: Ends, isolation: Isolation, access_mode: AccessMode) {
        (self.ends, self.isolation, self.access_mode) = (ends, isolation, access_mode);
    }

    /// Forgets the transaction, which has given back its locks: what is left is as good as new.
    pub(crate) fn clear(&mut self) {
        let Active {
            ends: _,
            isolation: _,
            access_mode: _,
            view,
            view_binlog_end,
            // What read only is as good as new; the caller has taken out the others.
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

    /// Charges what it keeps in memory. Returns how much of that are writes.
    pub(crate) fn charge(&mut self) -> SqlResult<usize> {
        let writes: usize = self.engines.iter().flatten().map(|engine| engine.memory_bytes()).sum();
        let locks = self.locks.row_lock_bytes() + self.locks.claim_bytes();
        self.memory.resize((writes + locks + self.log.memory_bytes()) as u64)?;
        Ok(writes)
    }

    /// What it kept in memory when it was charged last.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.memory.used()
    }

    /// What must be hardened before the client may learn what this transaction has read under locks (I5).
    pub(crate) fn has_seen(&self) -> CommitSeq {
        self.locks.depends_on().max(self.searched)
    }

    /// Whether any engine holds a write. Temporary tables do not count: nothing of them is logged.
    pub(crate) fn has_writes(&self) -> bool {
        let durable = &self.engines[..self.engines.len().min(self.durable)];
        !self.prepared.is_empty() || durable.iter().flatten().any(|engine| !engine.is_read_only())
    }

    /// Takes what has changed temporary tables out of the transaction: its caller says whether that
    /// stays.
    pub(crate) fn take_temporary(&mut self) -> Option<TemporaryChanges> {
        let slot = self.engines.get_mut(self.durable)?;
        let has_changes = slot.as_ref().is_some_and(|trx| !trx.is_read_only());
        slot.take_if(|_| has_changes).map(TemporaryChanges)
    }

    /// What the running statement has put into temporary tables stays, whatever becomes of the transaction.
    pub(crate) fn keep_temporary_rows(&self, rows: &TemporaryRows) {
        let mark = self.statement.engines.get(self.durable).copied().flatten();
        rows.keep_behind(mark.unwrap_or(Savepoint(0)));
    }

    /// The place reached so far.
    pub(crate) fn mark(&mut self) -> Mark {
        let mut mark = Mark { engines: Vec::new(), log: self.log.mark() };
        self.renew(&mut mark);
        mark
    }

    /// Notes the beginning of a statement; reuses the memory of the one before.
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

    /// The engines' part of a place, which may lie within a statement.
    pub(crate) fn engine_marks(&mut self) -> impl Iterator<Item = Option<Savepoint>> {
        // A write set that is still empty needs no savepoint: dropping it undoes the same.
        self.engines.iter_mut().map(|engine| match engine {
            Some(engine) if !engine.is_read_only() => Some(engine.savepoint()),
            _ => None,
        })
    }

    /// Undoes what was written since the mark; locks stay.
    pub(crate) fn rollback_to(&mut self, mark: &Mark) -> SqlResult<()> {
        self.rollback_engines(&mark.engines);
        self.log.truncate(mark.log)
    }

    /// The same for what the engines hold; the binlog was told nothing of it.
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
