//! COM_STMT_BULK_EXECUTE: one prepared statement for many rows.

mod support;

use cohort_exec::Session;
use cohort_types::{ErrorCode, SqlError, Value};
use support::{TextSink, database, run, session};

type Row = Result<Vec<Value>, SqlError>;

fn row(values: &[i64]) -> Row {
    Ok(values.iter().map(|value| Value::Int(*value)).collect())
}

fn bulk(session: &mut Session, sql: &str, rows: Vec<Row>) -> String {
    let id = session.prepare(sql.as_bytes()).expect("prepared").id;
    let mut sink = TextSink::default();
    session.execute_bulk(id, &mut rows.into_iter(), &mut sink);
    session.close_statement(id);
    let db = session.database().clone();
    db.commit.wait_acknowledged(session.hold_until()).expect("the log is in memory");
    sink.text.trim().to_owned()
}

fn all(session: &mut Session) -> String {
    run(session, "SELECT GROUP_CONCAT(id, ':', v ORDER BY id) FROM t").trim().to_owned()
}

#[test]
fn an_insert_of_many_rows_is_one_statement() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL)");
    let insert = "INSERT INTO t VALUES (?, ?)";
    assert_eq!(bulk(&mut session, insert, vec![row(&[1, 10]), row(&[2, 20]), row(&[3, 30])]), "");
    assert_eq!(run(&mut session, "SELECT ROW_COUNT()").lines().last(), Some("3"));
    assert!(all(&mut session).contains("1:10,2:20,3:30"));
    // All or nothing: outside of a transaction, and within one.
    let failing = || vec![row(&[4, 40]), row(&[1, 99])];
    assert!(bulk(&mut session, insert, failing()).contains("1062"));
    assert!(all(&mut session).ends_with("3:30"), "{}", all(&mut session));
    run(&mut session, "BEGIN");
    run(&mut session, "INSERT INTO t VALUES (7, 70)");
    assert!(bulk(&mut session, insert, failing()).contains("1062"));
    assert_eq!(bulk(&mut session, insert, vec![row(&[8, 80])]), "");
    run(&mut session, "COMMIT");
    assert!(all(&mut session).ends_with("3:30,7:70,8:80"), "{}", all(&mut session));
    // A row that cannot be read is an error of the statement.
    let bad = SqlError::new(ErrorCode::WrongArguments, "bad");
    assert!(bulk(&mut session, insert, vec![row(&[9, 90]), Err(bad)]).contains("1210"));
    assert!(all(&mut session).ends_with("8:80"));
}

#[test]
fn an_update_of_many_rows_is_a_statement_for_each() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)");
    run(&mut session, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    let update = "UPDATE t SET id = ? WHERE id = ?";
    let said = bulk(&mut session, update, vec![row(&[11, 1]), row(&[3, 2]), row(&[13, 3])]);
    assert!(said.contains("1062"), "{said}");
    assert!(all(&mut session).ends_with("2:2,3:3,11:1"), "what came before the failure stays");
    let delete = "DELETE FROM t WHERE id = ?";
    assert_eq!(bulk(&mut session, delete, vec![row(&[2]), row(&[3])]), "");
    assert!(all(&mut session).ends_with("11:1"));
    for sql in
        ["SELECT ?", "INSERT INTO t VALUES (?, 1) RETURNING id", "DELETE FROM t WHERE id = ? RETURNING id"]
    {
        assert!(bulk(&mut session, sql, vec![row(&[1])]).contains("1295"), "{sql}");
    }
}
