//! Statements inside statements: what they undo, what they commit, what is logged.

use cohort_optimize::ReadMode;
use cohort_trx::{AfterFailure, BeginOptions, Isolation, SessionTrx};
use cohort_types::{ErrorCode, SqlError, SqlResult};

use crate::test_world::{database, disk, insert, put, read, row, rows, session, statement};
use crate::tests::kinds_of_events;

const SNAPSHOT: ReadMode = ReadMode::Snapshot;

/// Runs a statement inside the running one.
fn inside<T>(
    trx: &mut SessionTrx,
    after: AfterFailure,
    work: impl FnOnce(&mut SessionTrx) -> SqlResult<T>,
) -> SqlResult<T> {
    let outer = trx.inner_begin(after)?;
    let outcome = work(trx);
    trx.inner_end(outer, outcome)
}

fn error(code: ErrorCode) -> SqlError {
    SqlError::new(code, "raised by the test")
}

/// Inserts rows 1 and 3 in a statement, and row 2 in a statement inside it, which ends with `inner`. The
/// outer statement drops the error of the inner one.
fn nested(trx: &mut SessionTrx, after: AfterFailure, inner: Option<ErrorCode>) -> SqlResult<()> {
    statement(trx, |trx| {
        if let Some(text) = trx.annotation() {
            text.extend_from_slice(b"SELECT f()");
        }
        put(trx, &row(1, 1, 0))?;
        let outcome = inside(trx, after, |trx| {
            assert!(trx.annotation().is_none(), "the text of the outer statement stays");
            put(trx, &row(2, 2, 0))?;
            inner.map_or(Ok(()), |code| Err(error(code)))
        });
        assert_eq!(outcome.err().map(|error| error.code), inner);
        put(trx, &row(3, 3, 0))
    })
}

#[test]
fn an_inner_statement_is_undone_alone_or_with_the_outer_one() {
    use AfterFailure::{Fail, MayContinue};
    use ErrorCode::{DupEntry, LockDeadlock};
    const WHOLE: [&str; 4] = ["ANNOTATE", "TABLE_MAP", "WRITE", "XID"];
    // With a mark, the events before it have ended, and the table is announced again.
    const MARKED: [&str; 6] = ["ANNOTATE", "TABLE_MAP", "WRITE", "TABLE_MAP", "WRITE", "XID"];
    // Behaviour after a failure, error of the inner statement, error of the outer one; ids in the table
    // without and with an earlier row 9 of the transaction.
    let cases: &[(AfterFailure, Option<ErrorCode>, Option<ErrorCode>, &[i64], &[i64])] = &[
        (Fail, None, None, &[1, 2, 3], &[1, 2, 3, 9]),
        (MayContinue, None, None, &[1, 2, 3], &[1, 2, 3, 9]),
        (MayContinue, Some(DupEntry), None, &[1, 3], &[1, 3, 9]),
        (Fail, Some(DupEntry), Some(DupEntry), &[], &[9]),
        (Fail, Some(LockDeadlock), Some(LockDeadlock), &[], &[]),
        (MayContinue, Some(LockDeadlock), Some(LockDeadlock), &[], &[]),
    ];
    for (after, inner, outer, alone, within) in cases {
        for (is_in_transaction, expected) in [(false, alone), (true, within)] {
            let context = format!("{after:?} {inner:?} {is_in_transaction}");
            let disk = disk();
            let db = database(&disk);
            let mut trx = session(&db);
            if is_in_transaction {
                trx.begin(BeginOptions::default()).expect("begins");
                insert(&mut trx, &row(9, 9, 0)).expect("inserts");
            }
            let outcome = nested(&mut trx, *after, *inner);
            assert_eq!(outcome.err().map(|error| error.code), *outer, "{context}");
            assert!(!trx.is_inside());
            if *inner == Some(LockDeadlock) {
                assert!(!trx.in_transaction(), "{context}: rolled back");
            }
            trx.commit().expect("commits");
            db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
            let ids: Vec<_> = rows(&mut session(&db), 0, SNAPSHOT).expect("reads");
            let wanted: Vec<_> = expected.iter().map(|id| row(*id, *id, 0)).collect();
            assert_eq!(ids, wanted, "{context}");
            let events = kinds_of_events(&disk, &db);
            let logged: &[&str] = match (outer, after) {
                (Some(_), _) => &[],
                (None, Fail) => &WHOLE,
                (None, MayContinue) => &MARKED,
            };
            if !is_in_transaction {
                assert_eq!(events, logged, "{context}");
            }
            insert(&mut trx, &row(20, 20, 0)).expect("the session continues");
        }
    }
}

#[test]
fn a_dropped_error_fails_the_statements_up_to_a_mark() {
    use ErrorCode::{DupEntry, LockDeadlock};
    for (code, goes_on) in [(DupEntry, true), (LockDeadlock, false)] {
        let db = database(&disk());
        let mut trx = session(&db);
        let outcome = statement(&mut trx, |trx| {
            put(trx, &row(1, 1, 0))?;
            let middle = inside(trx, AfterFailure::MayContinue, |trx| {
                put(trx, &row(2, 2, 0))?;
                let innermost = inside(trx, AfterFailure::Fail, |_| Err::<(), _>(error(code)));
                assert!(innermost.is_err(), "and the caller drops it");
                let next = inside(trx, AfterFailure::MayContinue, |_| -> SqlResult<()> { unreachable!() });
                assert_eq!(next.expect_err("must fail already").code, code);
                Ok(())
            });
            assert_eq!(middle.expect_err("of the innermost").code, code);
            let next = inside(trx, AfterFailure::Fail, |trx| put(trx, &row(3, 3, 0)));
            assert_eq!(next.is_ok(), goes_on);
            Ok(())
        });
        assert_eq!(outcome.map_err(|error| error.code), if goes_on { Ok(()) } else { Err(code) });
        db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
        let left = rows(&mut session(&db), 0, SNAPSHOT).expect("reads");
        let expected = if goes_on { vec![row(1, 1, 0), row(3, 3, 0)] } else { Vec::new() };
        assert_eq!(left, expected, "{code:?}");
    }
}

#[test]
fn an_inner_statement_reads_with_the_view_of_the_outer_one() {
    let db = database(&disk());
    let (mut reader, mut writer) = (session(&db), session(&db));
    reader.settings.isolation = Isolation::ReadCommitted;
    insert(&mut writer, &row(1, 1, 0)).expect("inserts");
    db.commit.wait_acknowledged(writer.hold_until()).expect("runs");
    reader.begin(BeginOptions::default()).expect("begins");
    statement(&mut reader, |reader| {
        assert_eq!(read(reader, 0, SNAPSHOT)?.len(), 1);
        insert(&mut writer, &row(2, 2, 0))?;
        db.commit.wait_acknowledged(writer.hold_until()).expect("runs");
        for after in [AfterFailure::Fail, AfterFailure::MayContinue] {
            let found = inside(reader, after, |reader| read(reader, 0, SNAPSHOT))?;
            assert_eq!(found.len(), 1, "{after:?}");
        }
        Ok(())
    })
    .expect("reads");
    assert_eq!(rows(&mut reader, 0, SNAPSHOT).expect("reads").len(), 2);
}

#[test]
fn an_inner_statement_commits_nothing_under_autocommit() {
    let db = database(&disk());
    let mut trx = session(&db);
    statement(&mut trx, |trx| {
        inside(trx, AfterFailure::Fail, |trx| put(trx, &row(1, 1, 0)))?;
        assert_eq!(rows(&mut session(&db), 0, SNAPSHOT)?.len(), 0);
        assert!(trx.in_transaction() || trx.has_written());
        Ok(())
    })
    .expect("inserts");
    db.commit.wait_acknowledged(trx.hold_until()).expect("runs");
    assert_eq!(rows(&mut session(&db), 0, SNAPSHOT).expect("reads").len(), 1);
}
