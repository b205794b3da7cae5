//! Sequences: tables of one row that give numbers.
//!
//! # How a number is given
//! A sequence's numbers lie in memory, shared by all sessions ([`Sequences`]). When those that the row has
//! reserved are used up, a transaction of its own has the row reserve more: it locks the row, writes it, is
//! logged as MariaDB logs it (the row as inserted), and is hardened before a number of it is told to anybody.
//! It holds the server's lock as every commit does, behind the row's: what keeps commits out keeps it out.
//! So no rollback takes a number back, and no crash gives one twice.
//!
//! A session that finds numbers left takes one without a lock on the row. One that waits for it looks
//! again when it has it. What is reserved next goes by the row alone: its lock goes when a reservation is
//! ordered, and its numbers come into memory a moment later, perhaps behind those of later ones. The name is
//! locked by the statement, so that nobody drops or alters the sequence meanwhile.
//!
//! # On failure
//! What cannot be reserved is not given: the numbers in memory are forgotten, and read from the row again.

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

/// The clustered key of the row.
pub const ROW_KEY: [u8; 8] = 1_u64.to_be_bytes();

/// What `increment by 0` goes by.
pub fn default_step(db: &Database) -> i64 {
    db.globals.uint(VarId::AutoIncrementIncrement) as i64
}

/// A table that is a sequence: error 4089, 4091 when there is none of the name.
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

/// One use of a sequence by a statement of a session.
struct Use<'u> {
    session: &'u SessionState,
    table: Arc<OpenTable>,
    space: IndexId,
    owner: LockOwner,
}

/// The next number.
pub(crate) fn next_value(session: &SessionState, sequence: SequenceName<'_>) -> SqlResult<i64> {
    let mut using = Use::open(session, sequence)?;
    let number = using.next()?;
    session.last_values.borrow_mut().insert(using.table.table().id, number);
    Ok(number)
}

/// The number that this session was given last.
pub(crate) fn last_value(session: &SessionState, sequence: SequenceName<'_>) -> SqlResult<Option<i64>> {
    let table = find(session, &session.db.catalog(), sequence)?;
    Ok(session.last_values.borrow().get(&table.id).copied())
}

/// SETVAL: false when the sequence has gone further.
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
        let (space, mut owner) = (table.indexes[0].id, db.locks.owner(db.trx_ids.next()));
        owner.join(&session.party, Part::Side);
        Ok(Use { session, table, space, owner })
    }

    fn next(&mut self) -> SqlResult<i64> {
        if let Some(number) = self.reserved()? {
            return Ok(number);
        }
        self.lock_row()?;
        // The row's former holder may have reserved enough.
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

    /// A number that may be told.
    fn reserved(&self) -> SqlResult<Option<i64>> {
        let db = &self.session.db;
        let Some((number, by)) = db.sequences.take_reserved(self.space) else { return Ok(None) };
        if db.commit.acknowledged() < by {
            self.await_reserved(by)?;
        }
        Ok(Some(number))
    }

    /// Waits until what has reserved numbers is safe: they may be given then. It may wait for a replica, so
    /// the process list says so, and KILL ends it.
    fn await_reserved(&self, by: CommitSeq) -> SqlResult<()> {
        let (db, session) = (&self.session.db, self.session);
        if let Some(process) = db.processes.get(session.info.id).filter(|_| !session.is_applier) {
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
        WaitLimit::For(Duration::from_secs(self.session.vars.uint(setting)))
    }

    /// Shows the numbers in memory, or those of the row, to `use_them`. The row is locked.
    fn with_numbers<R>(&self, use_them: impl FnOnce(&mut Shared) -> R) -> SqlResult<R> {
        let db = &self.session.db;
        let read = match db.sequences.numbers(self.space) {
            Some(_) => None,
            None => Some(self.of_row()?),
        };
        let used = db.sequences.with(self.space, read, use_them);
        // Only a DDL statement takes them away, and the name is locked.
        used.ok_or_else(|| SqlError::unknown_sequence(&self.table.table().name.table))
    }

    /// What the row says: nothing that it has reserved is left. The row is locked.
    fn of_row(&self) -> SqlResult<Shared> {
        let definition = read(self.session, &self.table)?;
        let numbers = Numbers::new(definition, default_step(&self.session.db));
        Ok(Shared { numbers, reserved_by: CommitSeq(0) })
    }

    /// Has the row say what the numbers say, in a transaction of its own; then others may use them.
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
        // The row's lock goes at the order stage: its next holder must find the numbers.
        db.sequences.forget(self.space);
        let seq = db.commit.order(prepared);
        shared.reserved_by = seq;
        db.commit.await_ordered(seq);
        db.sequences.add(self.space, shared);
        self.await_reserved(seq)
    }

    /// What the binary log gets: the row as inserted.
    fn event(&self, row: &[Value]) -> SqlResult<Option<BinlogPart>> {
        let (db, settings) = (&self.session.db, self.session.binlog.borrow().clone());
        // What a source's statement reserves here is no transaction of this server's.
        if !settings.on
            || self.session.is_applier
            || !db.binlog_filter.lets_pass(&self.table.table().name.schema)
        {
            return Ok(None);
        }
        let timestamp = (self.session.env.now_micros / 1_000_000) as u32;
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

/// What the newest row says.
pub fn read(session: &SessionState, table: &OpenTable) -> SqlResult<Definition> {
    let db = &session.db;
    let trx = match db.engines.get(table.engine.0) {
        Some(engine) => engine.begin(),
        None => session.temporary.rows().begin(),
    };
    let (mut bytes, mut row) = (Vec::new(), Vec::new());
    trx.get(ReadAt::Latest, table.indexes[0].id, &ROW_KEY, &mut bytes).map_err(engine_error)?;
    table.decode(&bytes, &Columns::All, &mut row)?;
    let name = &table.table().name;
    Definition::of_row(&row).ok_or_else(|| SqlError::sequence_invalid_data(&name.schema, &name.table))
}
