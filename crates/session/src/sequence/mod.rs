//! Sequences: one-row tables that generate numbers.
//!
//! # How a number is generated
//! The numbers of a sequence are cached in memory and shared by all sessions ([`Sequences`]). When the
//! numbers that the row has reserved are used up, a separate transaction reserves more. It locks the row,
//! writes it, logs it as MariaDB does (the row as inserted), and becomes durable before any of its numbers is
//! handed out. Like every commit it takes the server's write permit, after the row lock, so anything that
//! blocks commits blocks it, too. Hence no rollback takes a number back, and no crash hands out a number
//! twice.
//!
//! A session that finds a reserved number takes it without locking the row. A session that had to wait for
//! the row lock checks for reserved numbers again once it has the lock. The next reservation depends on the
//! row alone: the row lock is released when a reservation is ordered, and its numbers are added to the cache
//! slightly later, possibly after those of later reservations. The statement holds the metadata lock, so the
//! sequence cannot be dropped or altered meanwhile.
//!
//! # On failure
//! If a reservation fails, its numbers are not handed out: the cached numbers are forgotten, and the row is
//! read again.

mod definition;
mod reserved;

use std::sync::Arc;
use std::time::Duration;

use cohort_base::{CommitSeq, IndexId};
use cohort_binlog::Stamp;
use cohort_binlog::event::RowsKind;
use cohort_catalog::{Catalog, Table};
use cohort_commit::{BinlogPart, CommitRequest, GroupKind, GtidHints};
use cohort_config::VarId;
use cohort_engine::{ReadAt, Redo};
use cohort_expr::SequenceName;
use cohort_locks::{KillLevel, LockError, LockOwner, Part, RowMode, WaitLimit};
use cohort_table::OpenTable;
use cohort_trx::{commit_error, engine_error, image, lock_error};
use cohort_types::{Columns, SqlError, SqlResult, Value};
use definition::{Next, Set};
use reserved::Shared;

use crate::database::Database;
use crate::session_state::SessionState;

pub use definition::{Definition, Numbers};
pub(crate) use reserved::Sequences;

/// The row's key in the clustered index.
pub const ROW_KEY: [u8; 8] = 1_u64.to_be_bytes();

/// Returns the step that `increment by 0` stands for.
pub fn default_step(db: &Database) -> i64 {
    db.globals.uint(VarId::AutoIncrementIncrement) as i64
}

/// Finds the sequence of this name: error 4089 if it is not a sequence, 4091 if there is no such table.
pub fn find(session: &SessionState, catalog: &Catalog, sequence: SequenceName<'_>) -> SqlResult<Arc<Table>> {
    let SequenceName { schema, name, base_only } = sequence;
    let own = session.temporary.find(schema, name).filter(|_| !base_only);
    let found = own.or_else(|| catalog.table(schema, name).cloned());
    match found {
        Some(table) if table.is_sequence() => Ok(table),
        Some(_) => Err(SqlError::not_a_sequence(schema, name)),
        None if catalog.view(schema, name).is_some() => Err(SqlError::not_a_sequence(schema, name)),
        None => Err(SqlError::unknown_sequence(name)),
    }
}

/// One use of a sequence by a statement.
struct Use<'u> {
    session: &'u SessionState,
    table: Arc<OpenTable>,
    space: IndexId,
    owner: LockOwner,
}

/// Returns the next number.
pub(crate) fn next_value(session: &SessionState, sequence: SequenceName<'_>) -> SqlResult<i64> {
    let mut using = Use::open(session, sequence)?;
    let number = using.next()?;
    session.last_values.borrow_mut().insert(using.table.table().id, number);
    Ok(number)
}

/// Returns the number that this session took last.
pub(crate) fn last_value(session: &SessionState, sequence: SequenceName<'_>) -> SqlResult<Option<i64>> {
    let table = find(session, &session.db.catalog(), sequence)?;
    Ok(session.last_values.borrow().get(&table.id).copied())
}

/// Runs SETVAL. Returns false if the sequence is already past the number.
pub(crate) fn set_value(
    session: &SessionState,
    sequence: SequenceName<'_>,
    number: i64,
    is_used: bool,
    round: i64,
) -> SqlResult<bool> {
    Use::open(session, sequence)?.set(number, is_used, round)
}

impl<'u> Use<'u> {
    fn open(session: &'u SessionState, sequence: SequenceName<'_>) -> SqlResult<Use<'u>> {
        let db = &session.db;
        let table = find(session, &db.catalog(), sequence)?;
        let table = match table.is_temporary() {
            true => session.temporary.open(&table),
            false => db.open_table(&table)?,
        };
        let (space, mut owner) = (table.rows.id, db.locks.owner(db.trx_ids.next()));
        owner.join(&session.party, Part::Side);
        Ok(Use { session, table, space, owner })
    }

    fn next(&mut self) -> SqlResult<i64> {
        if let Some(number) = self.reserved()? {
            return Ok(number);
        }
        self.lock_row()?;
        // The previous lock holder may have reserved enough.
        if let Some(number) = self.reserved()? {
            return Ok(number);
        }
        let mut ahead = self.of_row()?;
        match ahead.numbers.take() {
            Next::Reserved(_) => unreachable!("nothing that the row has reserved is left"),
            Next::ToReserve(number) => self.reserve(ahead).map(|()| number),
            Next::RunOut => Err(self.run_out()),
        }
    }

    fn set(&mut self, number: i64, is_used: bool, round: i64) -> SqlResult<bool> {
        self.lock_row()?;
        let set = self.with_numbers(|shared| {
            let mut ahead = *shared;
            let set = ahead.numbers.set(number, is_used, round);
            if set == Set::Done {
                *shared = ahead;
            }
            set
        })?;
        if set != Set::ToReserve {
            return self.outcome(set);
        }
        let mut ahead = self.of_row()?;
        match ahead.numbers.set(number, is_used, round) {
            Set::Done | Set::ToReserve => self.reserve(ahead).map(|()| true),
            other => self.outcome(other),
        }
    }

    fn outcome(&self, set: Set) -> SqlResult<bool> {
        match set {
            Set::RunOut => Err(self.run_out()),
            Set::Passed => Ok(false),
            Set::Done | Set::ToReserve => Ok(true),
        }
    }

    fn run_out(&self) -> SqlError {
        let name = &self.table.table().name;
        SqlError::sequence_run_out(&name.schema, &name.table)
    }

    /// Takes a reserved number once its reservation is acknowledged.
    fn reserved(&self) -> SqlResult<Option<i64>> {
        let db = &self.session.db;
        let Some((number, by)) = db.sequences.take_reserved(self.space) else { return Ok(None) };
        if db.commit.acknowledged() < by {
            self.await_reserved(by)?;
        }
        Ok(Some(number))
    }

    /// Waits until the reserving transaction is acknowledged; then its numbers may be handed out. The wait
    /// may be for a replica, so the process list shows it, and KILL ends it.
    fn await_reserved(&self, by: CommitSeq) -> SqlResult<()> {
        let (db, session) = (&self.session.db, self.session);
        if let Some(process) = db.processes.get(session.info.id).filter(|_| !session.identity.is_applier) {
            process.hold_until(by);
        }
        let goes_on = || session.kill.killed().is_none();
        if db.commit.wait_acknowledged_while(by, &goes_on).map_err(commit_error)? {
            return Ok(());
        }
        Err(lock_error(LockError::Killed(session.kill.killed().unwrap_or(KillLevel::Query))))
    }

    fn lock_row(&mut self) -> SqlResult<()> {
        if self.space.is_temporary() {
            return Ok(());
        }
        let session = self.session;
        let wait = self.wait(VarId::InnodbLockWaitTimeout);
        let locks = &session.db.locks;
        let mode = RowMode::Exclusive;
        let locked = locks.lock_row(&mut self.owner, self.space, &ROW_KEY, mode, wait, &session.kill);
        locked.map(drop).map_err(lock_error)
    }

    fn wait(&self, setting: VarId) -> WaitLimit {
        WaitLimit::For(Duration::from_secs(self.session.settings.vars.uint(setting)))
    }

    /// Calls `use_them` with the cached numbers, or with those read from the row. The row must be locked.
    fn with_numbers<R>(&self, use_them: impl FnOnce(&mut Shared) -> R) -> SqlResult<R> {
        let db = &self.session.db;
        let read = match db.sequences.numbers(self.space) {
            Some(_) => None,
            None => Some(self.of_row()?),
        };
        let used = db.sequences.with(self.space, read, use_them);
        // Only DDL removes them, and this statement holds the metadata lock.
        used.ok_or_else(|| SqlError::unknown_sequence(&self.table.table().name.table))
    }

    /// Reads the row: no number is left of those reserved earlier. The row must be locked.
    fn of_row(&self) -> SqlResult<Shared> {
        let definition = read(self.session, &self.table)?;
        let numbers = Numbers::new(definition, default_step(&self.session.db));
        Ok(Shared { numbers, reserved_by: CommitSeq(0) })
    }

    /// Stores the reservation in the row, in its own transaction, and then publishes the numbers to other
    /// sessions.
    fn reserve(&mut self, mut shared: Shared) -> SqlResult<()> {
        let db = Arc::clone(&self.session.db);
        let row = shared.numbers.definition.to_row();
        let mut bytes = Vec::new();
        self.table.layout.encode(&row, &mut bytes).map_err(|e| self.table.row_error(e))?;
        let Some(engine) = db.engines.get(self.table.engine.0) else {
            let mut rows = self.session.temporary.rows().bulk_load(self.space);
            rows.add(&ROW_KEY, &bytes).map_err(engine_error)?;
            db.sequences.forget(self.space);
            db.sequences.add(self.space, shared);
            return Ok(());
        };
        if let Some(why) = db.commit.refusal() {
            return Err(commit_error(cohort_commit::CommitError::DiskFull(why)));
        }
        let wait = self.wait(VarId::LockWaitTimeout);
        let permit = db.permit_commit(&mut self.owner, &self.session.writer(), wait, &self.session.kill)?;
        let binlog = self.event(&row)?;
        let mut trx = engine.begin();
        trx.put(self.space, &ROW_KEY, &bytes).map_err(engine_error)?;
        let redo: Redo = trx.prepare().map_err(engine_error)?;
        let locks = std::mem::replace(&mut self.owner, db.locks.owner(db.trx_ids.next()));
        let request = CommitRequest { redo: vec![(engine.id(), redo)], binlog, locks, permit, client: None };
        let prepared = db.commit.prepare(request).map_err(|(error, _)| commit_error(error))?;
        // The row lock is released at the order stage. Its next holder must read the row, not outdated cached
        // numbers.
        db.sequences.forget(self.space);
        let seq = db.commit.order(prepared);
        shared.reserved_by = seq;
        db.commit.await_ordered(seq);
        db.sequences.add(self.space, shared);
        self.await_reserved(seq)
    }

    /// Returns the binary log event: the row as inserted.
    fn event(&self, row: &[Value]) -> SqlResult<Option<BinlogPart>> {
        let (db, settings) = (&self.session.db, self.session.log.binlog.borrow().clone());
        // A reservation made while applying a source's statement is not a transaction of this server.
        if !settings.on
            || self.session.identity.is_applier
            || !db.binlog_filter.lets_pass(&self.table.table().name.schema)
        {
            return Ok(None);
        }
        let timestamp = (self.session.settings.env.now_micros / 1_000_000) as u32;
        let mut cache = db.new_binlog_cache();
        let stamp = Stamp { timestamp, server_id: settings.server, flags: settings.event_flags };
        cache.begin_statement(stamp, None);
        cache.table_map(&self.table.map);
        let mut bytes = Vec::new();
        self.table.append_image(row, &mut bytes)?;
        let row = image(RowsKind::Write, settings.rows_flags, &self.table.all_columns, &bytes);
        let broken = |_| SqlError::binlog_row_failed();
        cache.row(self.table.map.table_id, &row).map_err(broken)?;
        cache.end_statement().map_err(broken)?;
        let events = cache.seal().map_err(broken)?;
        Ok(Some(BinlogPart {
            xa: None,
            events,
            kind: GroupKind::Transaction,
            domain: settings.domain,
            server: settings.server,
            seq_no: None,
            hints: GtidHints {
                has_waited: true,
                is_alone: !settings.allow_parallel,
                event_flags: settings.event_flags,
            },
            timestamp,
        }))
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.session.db.locks.release_all(&mut self.owner);
    }
}

/// Reads the definition from the newest version of the row.
pub fn read(session: &SessionState, table: &OpenTable) -> SqlResult<Definition> {
    let db = &session.db;
    let trx = match db.engines.get(table.engine.0) {
        Some(engine) => engine.begin(),
        None => session.temporary.rows().begin(),
    };
    let (mut bytes, mut row) = (Vec::new(), Vec::new());
    trx.get(ReadAt::Latest, table.rows.id, &ROW_KEY, &mut bytes).map_err(engine_error)?;
    table.decode(&bytes, &Columns::All, &mut row)?;
    let name = &table.table().name;
    Definition::of_row(&row).ok_or_else(|| SqlError::sequence_invalid_data(&name.schema, &name.table))
}
