//! Tests of rows, locks, transactions and their binlog events, on the reference engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cohort_base::CommitSeq;
use cohort_catalog::{CatalogChange, Table};
use cohort_engine::{Batch, KeyRange, ReadAt, ScanRequest};
use cohort_locks::KillFlag;
use cohort_optimize::ReadMode;
use cohort_trx::{BeginOptions, Isolation, SessionTrx, TrxEnv, WaitPolicy};
use cohort_types::{ErrorCode, Value};
use cohort_vfs::SharedFs;

use crate::test_world::{
    all_of, change, database, disk, insert, point, row, rows, session, session_with, statement,
};
use crate::write::TableWriter;

const SNAPSHOT: ReadMode = ReadMode::Snapshot;
const FOR_UPDATE: ReadMode = ReadMode::LockExclusive(WaitPolicy::Wait);

#[test]
fn all_indexes_find_the_rows_after_inserts_updates_and_deletes() {
    let db = database(&disk());
    let mut trx = session(&db);
    for values in [row(1, 30, 7), row(2, 20, 0), row(3, 10, 9)] {
        insert(&mut trx, &values).expect("inserts");
    }
    assert_eq!(rows(&mut trx, 1, SNAPSHOT).expect("reads"), [row(3, 10, 9), row(2, 20, 0), row(1, 30, 7)]);
    let moved = change(&mut trx, point(2), |_| true, |_| Some(row(8, 40, 1))).expect("updates");
    let gone = change(&mut trx, all_of(1), |r| r[1] == Value::Int(10), |_| None).expect("deletes");
    assert_eq!((moved, gone), (1, 1));
    for (index, expected) in [(0, [1, 8]), (1, [1, 8]), (2, [8, 1])] {
        let found = rows(&mut trx, index, FOR_UPDATE).expect("reads");
        let ids: Vec<_> = found.iter().map(|r| r[0].clone()).collect();
        assert_eq!(ids, expected.map(Value::Int), "index {index}");
    }
}

#[test]
fn a_duplicate_names_its_key_and_leaves_nothing() {
    let db = database(&disk());
    let mut trx = session(&db);
    insert(&mut trx, &row(1, 1, 5)).expect("inserts");
    let error = insert(&mut trx, &row(1, 2, 6)).expect_err("same id");
    assert_eq!(error.message, "Duplicate entry '1' for key 'PRIMARY'");
    let error = insert(&mut trx, &row(2, 2, 5)).expect_err("same u");
    assert_eq!((error.code, &*error.message), (ErrorCode::DupEntry, "Duplicate entry '5' for key 'u'"));
    assert_eq!(rows(&mut trx, 1, SNAPSHOT).expect("reads"), [row(1, 1, 5)]);
    insert(&mut trx, &row(2, 2, 0))
        .and_then(|()| insert(&mut trx, &row(3, 3, 0)))
        .expect("NULLs do not collide");
}

#[test]
fn a_failed_statement_is_undone_alone_and_its_transaction_goes_on() {
    let db = database(&disk());
    let mut trx = session(&db);
    trx.begin(BeginOptions::default()).expect("begins");
    insert(&mut trx, &row(1, 1, 1)).expect("inserts");
    insert(&mut trx, &row(2, 2, 2)).expect("inserts");
    // The first row gets k = 9 and u = 5; the second fails with a duplicate.
    let error =
        change(&mut trx, all_of(0), |_| true, |r| Some(vec![r[0].clone(), Value::Int(9), Value::Int(5)]));
    assert_eq!(error.expect_err("both u = 5").code, ErrorCode::DupEntry);
    trx.savepoint("a", || {
        cohort_binlog::event::QueryEvent::new(1, &Default::default(), b"", b"SAVEPOINT `a`")
    })
    .expect("sets");
    insert(&mut trx, &row(3, 3, 3)).expect("inserts");
    trx.rollback_to("A").expect("exists");
    assert_eq!(trx.rollback_to("b").expect_err("does not").code, ErrorCode::SpDoesNotExist);
    assert_eq!(rows(&mut trx, 1, SNAPSHOT).expect("reads"), [row(1, 1, 1), row(2, 2, 2)]);
    let seq = trx.commit().expect("commits").expect("wrote");
    assert_eq!(trx.hold_until(), seq);
    let mut other = session(&db);
    db.commit.wait_acknowledged(seq).expect("runs");
    assert_eq!(rows(&mut other, 0, SNAPSHOT).expect("reads").len(), 2);
}

#[test]
fn repeatable_read_keeps_its_view_and_locking_reads_see_the_newest_row() {
    let db = database(&disk());
    let (mut reader, mut writer) = (session(&db), session(&db));
    insert(&mut writer, &row(1, 1, 0)).expect("inserts");
    db.commit.wait_acknowledged(writer.hold_until()).expect("runs");
    reader.begin(BeginOptions::default()).expect("begins");
    assert_eq!(rows(&mut reader, 0, SNAPSHOT).expect("reads"), [row(1, 1, 0)]);
    change(&mut writer, all_of(0), |_| true, |_| Some(row(1, 2, 0))).expect("updates");
    db.commit.wait_acknowledged(writer.hold_until()).expect("runs");
    assert_eq!(rows(&mut reader, 0, SNAPSHOT).expect("reads"), [row(1, 1, 0)]);
    assert_eq!(rows(&mut reader, 0, FOR_UPDATE).expect("reads"), [row(1, 2, 0)]);
    reader.rollback();
    reader.settings.isolation = Isolation::ReadCommitted;
    assert_eq!(rows(&mut reader, 0, SNAPSHOT).expect("reads"), [row(1, 2, 0)]);
}

#[test]
fn a_locked_row_is_waited_for_skipped_or_refused() {
    let db = database(&disk());
    let (mut holder, mut other) = (session(&db), session(&db));
    insert(&mut holder, &row(1, 1, 0)).and_then(|()| insert(&mut holder, &row(2, 2, 0))).expect("inserts");
    holder.begin(BeginOptions::default()).expect("begins");
    change(&mut holder, point(1), |_| true, |_| Some(row(1, 5, 0))).expect("updates");
    other.settings.isolation = Isolation::ReadCommitted;
    let skip = ReadMode::LockExclusive(WaitPolicy::SkipLocked);
    holder.settings.isolation = Isolation::ReadCommitted;
    assert!(rows(&mut other, 0, skip).expect("reads").len() <= 1);
    let refused = rows(&mut other, 0, ReadMode::LockShare(WaitPolicy::NoWait)).expect_err("locked");
    assert_eq!(refused.code, ErrorCode::LockWaitTimeout);
    let late = change(&mut other, all_of(0), |_| true, |_| None).expect_err("locked");
    assert_eq!(late.message, "Lock wait timeout exceeded; try restarting transaction");
    holder.commit().expect("commits");
    let found = rows(&mut other, 0, FOR_UPDATE).expect("reads");
    assert_eq!(found[0], row(1, 5, 0));
    // I5: the row it returned was ordered, maybe not durable, so the reply waits for it.
    assert!(other.hold_until() >= holder.hold_until() || db.commit.acknowledged() >= holder.hold_until());
}

#[test]
fn a_deadlock_rolls_its_victim_back_whole() {
    let db = database(&disk());
    let mut first = session(&db);
    insert(&mut first, &row(1, 1, 0)).and_then(|()| insert(&mut first, &row(2, 2, 0))).expect("inserts");
    let set = |trx: &mut SessionTrx, id: i64, k: i64| {
        change(trx, point(id), |_| true, move |_| Some(row(id, k, 0)))
    };
    let begin = || {
        let mut trx = session(&db);
        trx.settings.row_lock_wait = Duration::from_secs(20);
        trx.begin(BeginOptions::default()).map(|()| trx)
    };
    let (mut a, mut b) = (begin().expect("begins"), begin().expect("begins"));
    set(&mut a, 1, 10).and_then(|_| set(&mut b, 2, 10)).expect("no other transaction holds them");
    let outcomes = thread::scope(|scope| {
        let a = scope.spawn(|| {
            let outcome = set(&mut a, 2, 20);
            if outcome.is_ok() {
                a.commit().expect("commits");
            }
            outcome.map(|_| ())
        });
        let b = scope.spawn(|| {
            let outcome = set(&mut b, 1, 20);
            if outcome.is_ok() {
                b.commit().expect("commits");
            }
            outcome.map(|_| ())
        });
        [a.join().expect("no panic"), b.join().expect("no panic")]
    });
    let victims =
        outcomes.iter().filter(|o| o.as_ref().is_err_and(|e| e.code == ErrorCode::LockDeadlock)).count();
    assert_eq!(victims, 1, "{outcomes:?}");
}

#[test]
fn counters_continue_after_a_restart_and_removed_rows() {
    let disk = disk();
    let next = |remove: Option<i64>| {
        let db = database(&disk);
        let mut trx = session(&db);
        if let Some(id) = remove {
            change(&mut trx, point(id), |_| true, |_| None).expect("deletes");
        }
        let next = statement(&mut trx, |trx| {
            let table = trx.env().catalog().table("d", "t").expect("made").clone();
            let table = trx.open_table(&table)?;
            trx.auto_increment_next(&table)
        });
        db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
        db.commit.close().expect("closes");
        next.expect("reads")
    };
    {
        let db = database(&disk);
        let mut trx = session(&db);
        (1..=5).try_for_each(|id| insert(&mut trx, &row(id, 0, 0))).expect("inserts");
        db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
        db.commit.close().expect("closes");
    }
    assert_eq!(next(None), Some(6), "from the index");
    assert_eq!(next(Some(5)), Some(6), "the first touch of the table removes its last row");
    assert_eq!(next(Some(4)), Some(6), "and the next one after a restart too");
    assert_eq!(next(None), Some(6));
}

#[test]
fn the_binlog_contains_exactly_the_changes() {
    let disk = disk();
    let db = database(&disk);
    let mut trx = session(&db);
    insert(&mut trx, &row(1, 1, 1)).expect("inserts");
    trx.begin(BeginOptions::default()).expect("begins");
    trx.annotation().expect("rows are logged").extend_from_slice(b"UPDATE t SET k = 2");
    change(&mut trx, all_of(0), |_| true, |_| Some(row(1, 2, 1))).expect("updates");
    insert(&mut trx, &row(1, 2, 2)).expect_err("is there");
    trx.commit().expect("commits");
    trx.begin(BeginOptions::default()).expect("begins");
    change(&mut trx, all_of(0), |_| true, |_| None).expect("deletes");
    trx.rollback();
    db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
    assert_eq!(
        kinds_of_events(&disk, &db),
        ["TABLE_MAP", "WRITE", "XID", "ANNOTATE", "TABLE_MAP", "UPDATE", "XID"]
    );
}

/// Returns the kinds of row events, and of the events around them, of all binlog files.
pub(crate) fn kinds_of_events(disk: &SharedFs, db: &Arc<TrxEnv>) -> Vec<&'static str> {
    use cohort_binlog::EventReader;
    use cohort_binlog::event::{Event, RowsKind};
    let read = db.commit.with_binlog_files(|files| {
        let mut kinds = Vec::new();
        for &number in files.numbers() {
            let mut reader = EventReader::open(disk, &files.name().path(number)).expect("opens");
            while let Some(raw) = reader.next_event().expect("reads") {
                kinds.push(match reader.decode(&raw).expect("decodes") {
                    Event::TableMap(_) => "TABLE_MAP",
                    Event::Annotate(_) => "ANNOTATE",
                    Event::Xid(_) => "XID",
                    Event::Rows(rows) => {
                        assert!(rows.ends_statement());
                        match rows.kind {
                            RowsKind::Write => "WRITE",
                            RowsKind::Update => "UPDATE",
                            RowsKind::Delete => "DELETE",
                        }
                    }
                    _ => continue,
                });
            }
        }
        kinds
    });
    read.expect("the binlog is on").expect("written")
}

/// A statement planned before a DDL statement may present the older description at any time.
#[test]
fn a_table_version_never_goes_back() {
    let db = database(&disk());
    let trx = session(&db);
    let old = db.catalog().table("d", "t").expect("is there").clone();
    let opened = trx.open_table(&old).expect("opens");
    let mut new = Table::clone(&old);
    new.comment = "changed".to_owned();
    db.catalog.replay(|catalog| catalog.apply(CommitSeq(9), vec![CatalogChange::PutTable(new)]));
    let new = db.catalog().table("d", "t").expect("is there").clone();
    let current = trx.open_table(&new).expect("opens");
    let late = trx.open_table(&old).expect("opens");
    assert_eq!(late.table().comment, "");
    assert!(Arc::ptr_eq(&trx.open_table(&new).expect("opens"), &current), "the older did not replace it");
    // All versions that write into one index share one counter.
    assert!(Arc::ptr_eq(&opened.auto_increment, &current.auto_increment));
    assert!(Arc::ptr_eq(&late.auto_increment, &current.auto_increment));
}

#[test]
fn a_row_id_that_is_taken_is_passed_over() {
    let db = database(&disk());
    let mut trx = session(&db);
    // Versions that are not in the catalog: the worst case, because each has a counter of its own.
    let stranger = || Arc::new(Table::clone(db.catalog().table("d", "bare").expect("is there")));
    let mut writers = [stranger(), stranger()].map(|t| TableWriter::open(&mut trx, &t).expect("opens"));
    let values = vec![Value::Int(1); writers[0].table().columns().len()];
    for n in [0, 1, 0, 0, 1] {
        writers[n].insert(&mut trx, &values).expect("inserts").expect("no duplicate");
        trx.commit().expect("commits");
    }
    let open = writers[0].table().clone();
    let mut batch = Batch::default();
    let engine = trx.engine(open.engine);
    engine
        .scan(&ScanRequest::forward(ReadAt::Latest, open.rows.id, &KeyRange::default(), 10), &mut batch)
        .expect("reads");
    assert_eq!(batch.len(), 5);
}

#[test]
fn an_idle_read_committed_transaction_keeps_no_view() {
    let db = database(&disk());
    let mut trx = session(&db);
    for (isolation, keeps) in [(Isolation::ReadCommitted, false), (Isolation::RepeatableRead, true)] {
        trx.settings.isolation = isolation;
        trx.begin(BeginOptions::default()).expect("begins");
        rows(&mut trx, 1, SNAPSHOT).expect("reads");
        assert_eq!(trx.has_view_before(CommitSeq(u64::MAX)), keeps, "{isolation:?} between two statements");
        trx.rollback();
    }
}

#[test]
fn a_view_is_not_older_than_what_the_transaction_has_changed() {
    let db = database(&disk());
    let (mut first, mut second) = (session(&db), session(&db));
    insert(&mut first, &row(1, 0, 0)).and_then(|()| insert(&mut first, &row(2, 0, 0))).expect("inserts");
    db.commit.wait_acknowledged(first.hold_until()).expect("runs");
    // Ordered, but not flushed.
    first.begin(BeginOptions::default()).expect("begins");
    for id in [1, 2] {
        change(&mut first, point(id), |_| true, |_| Some(row(id, 5, 0))).expect("updates");
    }
    first.commit().expect("commits");
    second.begin(BeginOptions::default()).expect("begins");
    change(&mut second, point(1), |_| true, |old| Some(vec![old[0].clone(), Value::Int(6), Value::Null]))
        .expect("follows it");
    assert_eq!(rows(&mut second, 0, SNAPSHOT).expect("reads"), [row(1, 6, 0), row(2, 5, 0)]);
}

/// A replica that acknowledges only when the test allows it.
#[derive(Default)]
struct Held(AtomicBool);

impl cohort_commit::ReplicaGate for Held {
    fn made_durable(&self, _: cohort_base::BinlogPos, _: CommitSeq, _: u64) {}

    fn is_on(&self) -> bool {
        true
    }

    fn restarted(&self) {}

    fn holds(&self, _: cohort_commit::Gate, _: cohort_base::BinlogPos) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_wait_for_a_view_frees_its_worker_and_checks_for_kill() {
    let db = database(&disk());
    let gate = Arc::new(Held::default());
    db.commit.set_replica_gate(gate.clone());
    let kill = KillFlag::default();
    let (mut first, mut second) = (session(&db), session_with(&db, kill.clone()));
    insert(&mut first, &row(1, 0, 0)).expect("inserts");
    db.commit.wait_acknowledged(first.hold_until()).expect("runs");
    gate.0.store(true, Ordering::SeqCst);
    change(&mut first, point(1), |_| true, |_| Some(row(1, 5, 0))).expect("updates");
    second.begin(BeginOptions::default()).expect("begins");
    change(&mut second, point(1), |_| true, |_| Some(row(1, 6, 0))).expect("follows it");
    let clear = kill.clone();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = thread::spawn(move || {
        let killed = rows(&mut second, 0, SNAPSHOT).expect_err("the view is held back");
        sender.send(killed.code).expect("the receiver exists");
        clear.clear_query();
        rows(&mut second, 0, SNAPSHOT).expect("reads")
    });
    assert!(
        receiver.recv_timeout(Duration::from_millis(50)).is_err(),
        "the view must show what it has changed"
    );
    kill.kill(cohort_locks::KillLevel::Query);
    let code = receiver.recv_timeout(Duration::from_secs(60)).expect("KILL ends the wait");
    assert_eq!(code, ErrorCode::QueryInterrupted);
    gate.0.store(false, Ordering::SeqCst);
    db.commit.gate_opened();
    assert_eq!(reader.join().expect("no panic"), [row(1, 6, 0)]);
}

#[test]
fn a_scanned_range_takes_no_rows_until_it_is_released() {
    let db = database(&disk());
    let (mut reader, mut writer) = (session(&db), session(&db));
    insert(&mut writer, &row(1, 10, 0)).and_then(|()| insert(&mut writer, &row(2, 20, 0))).expect("inserts");
    reader.begin(BeginOptions::default()).expect("begins");
    assert_eq!(rows(&mut reader, 1, FOR_UPDATE).expect("reads").len(), 2);
    for values in [row(3, 15, 0), row(3, 5, 0), row(3, 99, 0)] {
        let late = insert(&mut writer, &values).expect_err("the whole index is locked");
        assert_eq!(late.code, ErrorCode::LockWaitTimeout);
    }
    reader.commit().expect("commits");
    insert(&mut writer, &row(3, 15, 0)).expect("is free");
    // The reader waits for an uncommitted row, and does not find it after its rollback.
    writer.begin(BeginOptions::default()).expect("begins");
    insert(&mut writer, &row(4, 17, 0)).expect("inserts");
    let late = rows(&mut reader, 1, FOR_UPDATE).expect_err("a row is being inserted");
    assert_eq!(late.code, ErrorCode::LockWaitTimeout);
    let skipped = rows(&mut reader, 1, ReadMode::LockShare(WaitPolicy::SkipLocked)).expect("passes");
    assert_eq!(skipped.len(), 3);
    writer.rollback();
    assert_eq!(rows(&mut reader, 1, FOR_UPDATE).expect("reads").len(), 3);
}

#[test]
fn ranges_hold_over_many_batches() {
    let db = database(&disk());
    let (mut reader, mut writer) = (session(&db), session(&db));
    for id in 1..=1500 {
        insert(&mut writer, &row(id * 2, id % 7, 0)).expect("inserts");
    }
    reader.begin(BeginOptions::default()).expect("begins");
    for index in [0, 1] {
        assert_eq!(rows(&mut reader, index, FOR_UPDATE).expect("reads").len(), 1500);
    }
    writer.settings.row_lock_wait = Duration::from_millis(1);
    for id in (1..3001).step_by(2) {
        let late = insert(&mut writer, &row(id, 3, 0)).expect_err("it is locked");
        assert_eq!(late.code, ErrorCode::LockWaitTimeout, "{id}");
    }
    reader.rollback();
    insert(&mut writer, &row(1, 3, 0)).expect("is free");
    assert_eq!(db.locks.stats().range_holders, 0);
}
