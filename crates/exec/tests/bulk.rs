//! COM_STMT_BULK_EXECUTE: one prepared statement for many rows.

mod support;

use cohort_exec::Session;
use cohort_protocol::Parameter;
use cohort_types::{ErrorCode, SqlError, Value};
use support::{TextSink, database, run, session};

type Row = Result<Vec<Parameter>, SqlError>;

fn row(values: &[i64]) -> Row {
    Ok(values.iter().map(|value| Parameter::Value(Value::Int(*value))).collect())
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
    // Atomic, both outside of a transaction and in one.
    let failing = || vec![row(&[4, 40]), row(&[1, 99])];
    assert!(bulk(&mut session, insert, failing()).contains("1062"));
    assert!(all(&mut session).ends_with("3:30"), "{}", all(&mut session));
    run(&mut session, "BEGIN");
    run(&mut session, "INSERT INTO t VALUES (7, 70)");
    assert!(bulk(&mut session, insert, failing()).contains("1062"));
    assert_eq!(bulk(&mut session, insert, vec![row(&[8, 80])]), "");
    run(&mut session, "COMMIT");
    assert!(all(&mut session).ends_with("3:30,7:70,8:80"), "{}", all(&mut session));
    // A row that cannot be decoded is an error of the statement.
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
    assert!(bulk(&mut session, "SELECT ?", vec![row(&[1])]).contains("1295"));
}

#[test]
fn returning_of_many_rows_is_one_result() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL)");
    let insert = "INSERT INTO t (v) VALUES (?) RETURNING id, v * 2";
    let rows = || vec![row(&[10]), row(&[20]), row(&[30])];
    assert_eq!(bulk(&mut session, insert, rows()), "id\tv * 2\n1\t20\n2\t40\n3\t60");
    let duplicate = "INSERT INTO t VALUES (?, 0) RETURNING id";
    let failed = bulk(&mut session, duplicate, vec![row(&[7]), row(&[1])]);
    assert!(failed.contains("1062"), "{failed}");
    assert_eq!(all(&mut session), "GROUP_CONCAT(id, ':', v ORDER BY id)\n1:10,2:20,3:30");
    let delete = "DELETE FROM t WHERE id = ? RETURNING v";
    assert_eq!(bulk(&mut session, delete, vec![row(&[3]), row(&[9]), row(&[1])]), "v\n30\n10");
    assert!(all(&mut session).ends_with("2:20"));
}

#[test]
fn of_the_numbers_of_many_rows_the_first_counts() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT UNIQUE)");
    for (insert, first) in [
        ("INSERT INTO t (v) VALUES (?)", "1"),
        ("INSERT INTO t (v) VALUES (? + 10) RETURNING id", "4"),
        ("INSERT IGNORE INTO t (v) VALUES (? + 11)", "9"),
    ] {
        bulk(&mut session, insert, vec![row(&[1]), row(&[2]), row(&[3])]);
        assert_eq!(run(&mut session, "SELECT LAST_INSERT_ID()").lines().last(), Some(first), "{insert}");
    }
    let failing =
        bulk(&mut session, "INSERT INTO t (v) VALUES (? + 20)", vec![row(&[1]), row(&[2]), row(&[1])]);
    assert!(failing.contains("1062"), "{failing}");
    assert_eq!(run(&mut session, "SELECT LAST_INSERT_ID()").lines().last(), Some("10"));
}

#[test]
fn a_row_may_have_defaults_and_columns_that_stay() {
    use Parameter::{Default, Ignore};
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL DEFAULT 7)");
    let int = |value| Parameter::Value(Value::Int(value));
    let rows =
        vec![Ok(vec![int(1), int(10)]), Ok(vec![int(2), Default]), Ok(vec![int(3), Ignore]), row(&[4, 40])];
    assert_eq!(bulk(&mut session, "INSERT INTO t VALUES (?, ?)", rows), "");
    assert!(all(&mut session).ends_with("1:10,2:7,3:7,4:40"), "{}", all(&mut session));
    let rows = vec![Ok(vec![Ignore, int(1)]), Ok(vec![Default, int(4)]), row(&[20, 2])];
    assert_eq!(bulk(&mut session, "UPDATE t SET v = ? WHERE id = ?", rows), "");
    assert!(all(&mut session).ends_with("1:10,2:20,3:7,4:7"), "{}", all(&mut session));
    let duplicate = "INSERT INTO t VALUES (?, 1) ON DUPLICATE KEY UPDATE v = ?";
    assert_eq!(bulk(&mut session, duplicate, vec![Ok(vec![int(1), Default]), Ok(vec![int(2), Ignore])]), "");
    assert!(all(&mut session).ends_with("1:7,2:7,3:7,4:7"), "{}", all(&mut session));
    for sql in
        ["INSERT INTO t VALUES (? + 1, 1)", "UPDATE t SET v = 1 WHERE id = ?", "DELETE FROM t WHERE id = ?"]
    {
        let said = bulk(&mut session, sql, vec![Ok(vec![Default])]);
        assert!(said.contains("4032"), "{sql}: {said}");
    }
    // More patterns of absent values than cached statement variants.
    run(
        &mut session,
        "CREATE TABLE w (a INT DEFAULT 1, b INT DEFAULT 2, c INT DEFAULT 3, d INT DEFAULT 4, e INT DEFAULT 5)",
    );
    let of = |bits: u32| Ok((0..5).map(|n| if bits >> n & 1 == 1 { Default } else { int(0) }).collect());
    let rows = (0..64).map(|bits| of(bits % 32)).collect();
    assert_eq!(bulk(&mut session, "INSERT INTO w VALUES (?, ?, ?, ?, ?)", rows), "");
    let sums = "SELECT COUNT(*), SUM(a), SUM(b), SUM(c), SUM(d), SUM(e) FROM w";
    assert_eq!(run(&mut session, sums).lines().last(), Some("64\t32\t64\t96\t128\t160"));
    let before = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";
    assert!(run(&mut session, before).contains('0'), "no prepared statement is left");
    // The SQL equivalents.
    run(&mut session, "PREPARE s FROM 'UPDATE t SET v = ? WHERE id = 3'");
    run(&mut session, "SET @n = 33");
    run(&mut session, "EXECUTE s USING @n");
    run(&mut session, "EXECUTE s USING IGNORE");
    assert!(all(&mut session).contains("3:33"));
    run(&mut session, "EXECUTE s USING DEFAULT");
    run(&mut session, "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (9, ?)' USING DEFAULT");
    assert!(all(&mut session).ends_with("3:7,4:7,9:7"), "{}", all(&mut session));
    assert!(run(&mut session, "EXECUTE IMMEDIATE 'SELECT ? + 1' USING DEFAULT").contains("4032"));
}

#[test]
fn the_conditions_of_all_rows_are_returned() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id TINYINT, v INT)");
    run(&mut session, "SET sql_mode = ''");
    let rows = || vec![row(&[1000, 1]), row(&[2, 2]), row(&[3000, 3])];
    assert_eq!(bulk(&mut session, "INSERT INTO t VALUES (?, ?)", rows()), "");
    let warnings = run(&mut session, "SHOW WARNINGS");
    let lines: Vec<&str> = warnings.lines().filter(|line| line.contains("1264")).collect();
    assert_eq!(lines.len(), 2, "{warnings}");
    assert!(lines[0].ends_with("at row 1") && lines[1].ends_with("at row 3"), "{warnings}");
    run(&mut session, "GET DIAGNOSTICS CONDITION 2 @n = ROW_NUMBER");
    assert_eq!(run(&mut session, "SELECT @n").lines().last(), Some("3"));
    // Each row of parameters inserts two rows.
    let twice = vec![row(&[1, 1]), row(&[2000, 1])];
    assert_eq!(bulk(&mut session, "INSERT INTO t VALUES (?, ?), (9000, 1)", twice), "");
    let warnings = run(&mut session, "SHOW WARNINGS");
    for (at, line) in [2, 3, 4].iter().zip(warnings.lines().filter(|line| line.contains("1264"))) {
        assert!(line.ends_with(&format!("at row {at}")), "{warnings}");
    }
    // Five rows, then one.
    assert_eq!(bulk(&mut session, "UPDATE t SET id = ? WHERE v = ?", rows()), "");
    assert_eq!(run(&mut session, "SELECT @@warning_count").lines().last(), Some("6"));
    run(&mut session, "SET max_error_count = 1");
    assert_eq!(bulk(&mut session, "INSERT INTO t VALUES (?, ?)", rows()), "");
    assert_eq!(run(&mut session, "SELECT @@warning_count").lines().last(), Some("2"));
    // The next statement has only its own warnings.
    run(&mut session, "INSERT INTO t VALUES (1, 1)");
    assert_eq!(run(&mut session, "SELECT @@warning_count").lines().last(), Some("0"));
}

#[test]
fn bulk_execution_without_parameter_rows_is_refused() {
    let db = database();
    let mut session = session(&db, 1);
    run(&mut session, "CREATE TABLE t (id INT)");
    for sql in
        ["INSERT INTO t SELECT ?", "REPLACE INTO t SELECT ? FROM t", "DELETE t FROM t, t u WHERE t.id = ?"]
    {
        let said = bulk(&mut session, sql, vec![row(&[1])]);
        assert!(said.contains("1295"), "{sql}: {said}");
    }
}
