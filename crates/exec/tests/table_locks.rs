//! LOCK TABLES and FLUSH TABLES WITH READ LOCK, with the errors of MariaDB 10.11.

mod world;

use world::{Client, Server};

/// Creates two tables and two connections with a metadata lock timeout of one second.
fn two_sessions() -> (Server, Client, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("CREATE TABLE one (id INT PRIMARY KEY)");
    a.ok("CREATE TABLE two (id INT PRIMARY KEY)");
    for session in [&mut a, &mut b] {
        session.ok("SET lock_wait_timeout = 1");
    }
    (server, a, b)
}

#[track_caller]
fn refused(client: &mut Client, statement: &str, code: &str) {
    let answer = client.run(statement);
    assert!(answer.starts_with(&format!("ERROR {code}")), "{statement}: {answer}");
}

#[test]
fn locked_tables_are_all_that_the_session_may_use() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("LOCK TABLES one READ");
    a.ok("SELECT * FROM one");
    a.ok("SELECT COUNT(*) FROM information_schema.tables");
    refused(&mut a, "SELECT * FROM two", "1100");
    refused(&mut a, "INSERT INTO one VALUES (1)", "1099");
    refused(&mut a, "INSERT INTO two VALUES (1)", "1100");
    refused(&mut a, "CREATE TABLE three (id INT)", "1100");
    for statement in ["DROP TABLE one", "ALTER TABLE one ADD b INT", "TRUNCATE one"] {
        refused(&mut a, statement, "1099");
    }
    refused(&mut a, "DROP TABLE two", "1100");
    refused(&mut a, "CREATE DATABASE other", "1192");
    refused(&mut a, "FLUSH TABLES WITH READ LOCK", "1192");
    // Other sessions may read and lock for reading, but no session may write.
    b.ok("SELECT * FROM one");
    b.ok("LOCK TABLES one READ");
    b.ok("UNLOCK TABLES");
    refused(&mut b, "INSERT INTO one VALUES (1)", "1205");
    b.ok("INSERT INTO two VALUES (1)");
    a.ok("UNLOCK TABLES");
    b.ok("INSERT INTO one VALUES (1)");
    refused(&mut a, "LOCK TABLES one WRITE, nosuch READ", "1146");
    a.ok("SELECT * FROM two");
}

#[test]
fn a_table_is_usable_under_the_aliases_it_was_locked_with_and_no_other() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("INSERT INTO one VALUES (1), (2)");
    a.ok("LOCK TABLES one AS x READ, one WRITE, two AS y WRITE");
    a.ok("SELECT * FROM one AS x");
    a.ok("SELECT * FROM one JOIN one x ON one.id = x.id");
    for (statement, alias) in [
        ("SELECT * FROM one AS z", "z"),
        ("SELECT * FROM one x JOIN one AS z", "z"),
        ("SELECT * FROM two", "two"),
        ("INSERT INTO two VALUES (1)", "two"),
        ("ALTER TABLE two ADD b INT", "two"),
    ] {
        let answer = a.run(statement);
        let expected = format!("Table '{alias}' was not locked with LOCK TABLES");
        assert!(answer.starts_with("ERROR 1100") && answer.contains(&expected), "{statement}: {answer}");
    }
    refused(&mut a, "UPDATE one AS x SET id = 3 WHERE id = 2", "1099");
    a.ok("UPDATE one SET id = 3 WHERE id = 2");
    a.ok("UPDATE two AS y SET id = 3");
    refused(&mut b, "SELECT * FROM one", "1205");
    refused(&mut a, "LOCK TABLES one READ, two y READ, one WRITE", "1066");
    a.ok("UNLOCK TABLES");
}

#[test]
fn a_ddl_statement_does_not_wait_for_the_transaction_that_it_commits() {
    let (_server, mut a, mut b) = two_sessions();
    for statement in [
        "CREATE INDEX i ON one (id)",
        "ALTER TABLE one ADD b INT",
        "TRUNCATE one",
        "RENAME TABLE one TO three",
        "DROP TABLE three",
        "DROP DATABASE test",
    ] {
        a.ok("BEGIN");
        let table = if statement == "DROP TABLE three" { "three" } else { "one" };
        if statement != "DROP DATABASE test" {
            a.ok(&format!("INSERT INTO {table} (id) VALUES ({})", statement.len()));
        }
        a.ok("REPLACE INTO two VALUES (1)");
        a.ok(statement);
    }
    refused(&mut b, "SELECT * FROM test.two", "1146");
}

#[test]
fn of_a_transaction_and_a_ddl_statement_that_wait_for_each_other_the_statement_goes_on() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("SET lock_wait_timeout = 30");
    b.ok("SET lock_wait_timeout = 30");
    a.ok("BEGIN");
    a.ok("INSERT INTO two VALUES (1), (2), (3)");
    // The metadata locks of both tables are taken one after the other, and the transaction holds the second.
    let ddl = std::thread::spawn(move || b.run("RENAME TABLE one TO three, two TO four"));
    std::thread::sleep(std::time::Duration::from_millis(100));
    refused(&mut a, "INSERT INTO one VALUES (1)", "1213");
    assert!(!ddl.join().expect("no panic").contains("1213"));
    assert_eq!(a.run("SELECT COUNT(*) FROM four"), "COUNT(*)\n0\n");
}

#[test]
fn a_write_lock_keeps_others_out_and_lets_the_session_do_everything() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("LOCK TABLES one WRITE, two READ");
    a.ok("INSERT INTO one VALUES (1)");
    a.ok("INSERT INTO one SELECT id + 10 FROM two UNION SELECT 11");
    a.ok("ALTER TABLE one ADD b INT DEFAULT 7");
    a.ok("UPDATE one SET b = 8 WHERE id = 1");
    refused(&mut b, "SELECT * FROM one", "1205");
    b.ok("SELECT * FROM two");
    a.ok("START TRANSACTION");
    a.ok("COMMIT");
    assert_eq!(b.run("SELECT * FROM one ORDER BY id"), "id | b\n1 | 8\n11 | 7\n");
}

#[test]
fn under_the_global_read_lock_nothing_is_written_and_nothing_commits() {
    let (server, mut a, mut b) = two_sessions();
    b.ok("BEGIN");
    b.ok("INSERT INTO one VALUES (1)");
    a.ok("FLUSH TABLES WITH READ LOCK");
    let before = server.db.commit.binlog_status().expect("the binlog is on").0;
    a.ok("SELECT * FROM one");
    for statement in [
        "INSERT INTO one VALUES (2)",
        "DELETE FROM one",
        "SELECT * FROM one FOR UPDATE",
        "CREATE TABLE three (a INT)",
        "LOCK TABLES one WRITE",
    ] {
        refused(&mut a, statement, "1223");
    }
    refused(&mut b, "INSERT INTO one VALUES (3)", "1205");
    refused(&mut b, "CREATE TABLE three (a INT)", "1205");
    b.ok("SELECT * FROM two");
    assert_eq!(server.db.commit.binlog_status().expect("the binlog is on").0, before);
    a.ok("UNLOCK TABLES");
    b.ok("INSERT INTO one VALUES (3)");
    b.ok("BEGIN");
    b.ok("INSERT INTO one VALUES (4)");
    a.ok("FLUSH TABLES WITH READ LOCK");
    refused(&mut b, "COMMIT", "1205");
    a.ok("UNLOCK TABLES");
    assert_eq!(
        a.run("SELECT COUNT(*) FROM one WHERE id = 4"),
        "COUNT(*)\n0\n",
        "its transaction was rolled back"
    );
    a.ok("FLUSH TABLES one WITH READ LOCK");
    refused(&mut a, "INSERT INTO one VALUES (5)", "1099");
    refused(&mut a, "SELECT * FROM two", "1100");
    drop(a);
    b.ok("INSERT INTO one VALUES (5)");
}

#[test]
fn a_waiter_for_the_session_does_not_block_it() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("LOCK TABLES one WRITE");
    b.ok("SET lock_wait_timeout = 20");
    let waiting = std::thread::spawn(move || b.ok("FLUSH TABLES WITH READ LOCK"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!waiting.is_finished());
    a.ok("INSERT INTO one VALUES (1)");
    a.ok("ALTER TABLE one ADD b INT");
    a.ok("UNLOCK TABLES");
    waiting.join().expect("it gets the lock in the end");
}

#[test]
fn a_deadlock_with_a_transaction_is_the_sessions_to_solve() {
    let (_server, mut a, mut b) = two_sessions();
    for session in [&mut a, &mut b] {
        session.ok("SET lock_wait_timeout = 20");
    }
    b.ok("BEGIN");
    b.ok("INSERT INTO two VALUES (1)");
    let waiting = std::thread::spawn(move || a.ok("LOCK TABLES one READ, two READ"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    b.ok("INSERT INTO one VALUES (1)");
    assert!(!waiting.is_finished());
    b.ok("COMMIT");
    waiting.join().expect("it gets the locks in the end");
}

#[test]
fn a_transaction_that_waits_for_a_row_does_not_keep_a_backup_waiting() {
    let (_server, mut a, mut b) = two_sessions();
    b.ok("INSERT INTO one VALUES (1)");
    b.ok("BEGIN");
    b.ok("UPDATE one SET id = 2 WHERE id = 1");
    a.ok("FLUSH TABLES WITH READ LOCK");
    a.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    assert_eq!(a.run("SELECT * FROM one"), "id\n1\n");
    refused(&mut b, "COMMIT", "1205");
    a.ok("UNLOCK TABLES");
    b.ok("INSERT INTO one VALUES (3)");
}

#[test]
fn unlock_tables_ends_a_transaction_only_after_lock_tables() {
    let (_server, mut a, _b) = two_sessions();
    a.ok("BEGIN");
    a.ok("INSERT INTO one VALUES (1)");
    a.ok("UNLOCK TABLES");
    a.ok("ROLLBACK");
    assert_eq!(a.run("SELECT COUNT(*) FROM one"), "COUNT(*)\n0\n");
    a.ok("SET autocommit = 0");
    a.ok("LOCK TABLES one WRITE");
    a.ok("INSERT INTO one VALUES (1)");
    a.ok("UNLOCK TABLES");
    a.ok("ROLLBACK");
    assert_eq!(a.run("SELECT COUNT(*) FROM one"), "COUNT(*)\n1\n");
}

#[test]
fn max_statement_time_ends_waits_for_rows_and_names_and_sleep() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("INSERT INTO one VALUES (1)");
    b.ok("SET lock_wait_timeout = 60, max_statement_time = 0.2");
    a.ok("BEGIN");
    a.ok("UPDATE one SET id = 2");
    refused(&mut b, "DELETE FROM one", "1969");
    refused(&mut b, "DROP TABLE one", "1969");
    refused(&mut b, "SELECT SLEEP(5)", "1969");
    a.ok("COMMIT");
    b.ok("LOCK TABLES one WRITE");
}

/// Regression: DDL and LOCK TABLES accepted WAIT n and NOWAIT, but used the session's timeout.
#[test]
fn a_statement_may_say_how_long_it_waits() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("INSERT INTO one VALUES (1)");
    b.ok("SET lock_wait_timeout = 100, innodb_lock_wait_timeout = 100");
    a.ok("BEGIN");
    a.ok("UPDATE one SET id = 2");
    let began = std::time::Instant::now();
    for statement in [
        "ALTER TABLE one NOWAIT ADD b INT",
        "ALTER TABLE one WAIT 0 ADD KEY (id)",
        "CREATE INDEX i ON one (id) NOWAIT",
        "DROP TABLE one NOWAIT",
        "TRUNCATE TABLE one NOWAIT",
        "RENAME TABLE one NOWAIT TO three",
        "LOCK TABLES one READ NOWAIT",
        "OPTIMIZE TABLE two, one NOWAIT",
        "SELECT * FROM one FOR UPDATE NOWAIT",
        "SELECT * FROM one FOR UPDATE WAIT 0",
        "SELECT * FROM one LOCK IN SHARE MODE WAIT 1",
        "ALTER TABLE one WAIT 1 ADD b INT",
    ] {
        let answer = b.run(statement);
        assert!(answer.contains("1205"), "{statement}: {answer}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(50), "{:?}", began.elapsed());
    a.ok("COMMIT");
    assert!(
        b.run("SELECT @@lock_wait_timeout, @@innodb_lock_wait_timeout").trim_end().ends_with("100 | 100")
    );
    b.ok("ALTER TABLE one NOWAIT ADD b INT");
    b.ok("SELECT * FROM one FOR UPDATE WAIT 3");
}

/// A statement that cannot be planned waits for a concurrent change of its tables, then uses the new
/// definitions.
#[test]
fn statements_without_a_plan_wait_for_definitions() {
    let (mut server, mut a, mut b) = two_sessions();
    a.ok("INSERT INTO one VALUES (1)");
    refused(&mut b, "SELECT more FROM one", "1054");
    b.ok("BEGIN");
    refused(&mut b, "SELECT * FROM three", "1146");
    refused(&mut b, "SELECT more FROM one", "1054");
    // The refused statements must leave no locks.
    a.ok("CREATE TABLE three (id INT)");
    a.ok("DROP TABLE three");
    b.ok("COMMIT");
    for (statement, change, answer) in [
        ("SELECT id, more FROM one", "ALTER TABLE one ADD more INT DEFAULT 7", "id | more\n1 | 7\n"),
        ("INSERT INTO one VALUES (2, 3, 4)", "ALTER TABLE one ADD another INT", ""),
        ("UPDATE one SET later = 5 WHERE id = 2", "ALTER TABLE one ADD later INT", ""),
        ("SELECT id FROM (SELECT id, gone FROM one) d", "DROP TABLE one", "ERROR 1146"),
    ] {
        a.ok("LOCK TABLES one WRITE");
        let mut c = server.connect();
        c.ok("SET lock_wait_timeout = 60");
        let waiting = std::thread::spawn(move || c.run(statement));
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!waiting.is_finished(), "{statement}");
        a.ok(change);
        a.ok("UNLOCK TABLES");
        let reply = waiting.join().expect("no panic");
        assert!(
            reply.starts_with(answer) && (!answer.is_empty() || !reply.contains("ERROR")),
            "{statement}: {reply}"
        );
    }
    // The lock timeout of one second limits this wait, too.
    a.ok("LOCK TABLES two WRITE");
    refused(&mut b, "SELECT more FROM two", "1205");
}

/// Starts statements in separate sessions, each of which waits for a lock on `one`, then releases the lock.
/// Returns their results.
fn behind_a_lock_on_one<const N: usize>(
    server: &mut Server,
    holder: &mut Client,
    statements: [&'static str; N],
) -> [String; N] {
    holder.ok("LOCK TABLES one WRITE");
    let waiting = statements.map(|statement| {
        let mut session = server.connect();
        session.ok("SET lock_wait_timeout = 60");
        let waiting = std::thread::spawn(move || session.run(statement));
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!waiting.is_finished(), "{statement}");
        waiting
    });
    holder.ok("UNLOCK TABLES");
    waiting.map(|waiting| waiting.join().expect("no panic"))
}

#[test]
fn a_writer_of_rows_it_reads_blocks_ddl() {
    let (mut server, mut a, mut b) = two_sessions();
    b.ok("INSERT INTO two VALUES (1), (2)");
    a.ok("INSERT INTO one VALUES (2)");
    let [inserted, altered] = behind_a_lock_on_one(
        &mut server,
        &mut a,
        [
            "INSERT INTO two SELECT two.id + 10 FROM two JOIN one ON one.id = two.id",
            "ALTER TABLE two ADD x INT DEFAULT 5",
        ],
    );
    assert!(!inserted.contains("ERROR") && !altered.contains("ERROR"), "{inserted}{altered}");
    assert_eq!(b.run("SELECT id, x FROM two ORDER BY id"), "id | x\n1 | 5\n2 | 5\n12 | 5\n");
}

#[test]
fn a_query_gets_out_of_the_way_of_a_ddl_statement() {
    let (mut server, mut a, mut b) = two_sessions();
    b.ok("INSERT INTO two VALUES (1), (2)");
    a.ok("INSERT INTO one VALUES (2)");
    for query in [
        "SELECT two.id FROM two JOIN one ON one.id = two.id",
        "SELECT two.id FROM two WHERE id IN (SELECT id FROM one)",
    ] {
        let [swapped, found] = behind_a_lock_on_one(
            &mut server,
            &mut a,
            ["RENAME TABLE one TO other, two TO one, other TO two", query],
        );
        assert!(!swapped.contains("ERROR"), "{swapped}");
        assert_eq!(found, "id\n2\n", "{query}");
    }
    // A transaction that has used tables keeps its locks and becomes the deadlock victim, as in MariaDB.
    b.ok("BEGIN");
    b.ok("SELECT * FROM two");
    a.ok("LOCK TABLES one WRITE");
    let mut c = server.connect();
    c.ok("SET lock_wait_timeout = 60");
    let swap = std::thread::spawn(move || c.run("RENAME TABLE one TO other, two TO one, other TO two"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    a.ok("UNLOCK TABLES");
    b.ok("SET lock_wait_timeout = 60");
    refused(&mut b, "SELECT * FROM one", "1213");
    assert!(!swap.join().expect("no panic").contains("ERROR"));
}

/// A table that LOCK TABLES has not locked is refused immediately, even if another session has locked it or
/// the server. Statements that LOCK TABLES refuses in any case return 1192, as in MariaDB.
#[test]
fn under_lock_tables_a_refusal_waits_for_nothing() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("CREATE SEQUENCE s");
    a.ok("CREATE VIEW v AS SELECT * FROM one");
    a.ok("SET lock_wait_timeout = 50");
    let began = std::time::Instant::now();
    for others in ["FLUSH TABLES WITH READ LOCK", "LOCK TABLES two WRITE"] {
        a.ok("LOCK TABLES one READ");
        b.ok(others);
        for (statement, code) in [
            ("INSERT INTO one VALUES (9)", "1099"),
            ("UPDATE one SET id = 3", "1099"),
            ("ALTER TABLE one ADD x INT", "1099"),
            ("TRUNCATE one", "1099"),
            ("DROP TABLE one", "1099"),
            ("SELECT * FROM two", "1100"),
            ("INSERT INTO two VALUES (9)", "1100"),
            ("ALTER TABLE two ADD x INT", "1100"),
            ("DROP TABLE two", "1100"),
            ("TRUNCATE two", "1100"),
            ("CREATE TABLE three (id INT)", "1100"),
            ("SELECT * FROM nosuch", "1100"),
            ("DELETE FROM nosuch", "1100"),
            ("SELECT NEXTVAL(s)", "1100"),
            ("CREATE USER u", "1100"),
            ("RENAME TABLE one TO three", "1192"),
            ("CREATE VIEW w AS SELECT 1", "1192"),
            ("DROP VIEW v", "1192"),
            ("HANDLER one OPEN", "1192"),
            ("CREATE DATABASE other", "1192"),
            ("FLUSH TABLES two WITH READ LOCK", "1192"),
        ] {
            refused(&mut a, statement, code);
        }
        a.ok("SELECT * FROM one");
        b.ok("UNLOCK TABLES");
        a.ok("UNLOCK TABLES");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

/// Each lock is valid for one use in a statement.
#[test]
fn a_lock_serves_one_use_of_its_alias() {
    let (_server, mut a, _b) = two_sessions();
    a.ok("INSERT INTO one VALUES (1), (2)");
    a.ok("CREATE VIEW v AS SELECT x.id FROM one AS x JOIN one AS y ON x.id = y.id");
    a.ok("LOCK TABLES one WRITE");
    for statement in [
        "INSERT INTO one SELECT id + 10 FROM one",
        "SELECT * FROM one WHERE id IN (SELECT id FROM one)",
        "SELECT * FROM one UNION SELECT * FROM one",
        "DELETE FROM one WHERE id IN (SELECT id FROM one)",
    ] {
        refused(&mut a, statement, "1100");
    }
    a.ok("INSERT INTO one VALUES (3)");
    a.ok("UPDATE one SET id = id + 10 WHERE id > 2");
    a.ok("LOCK TABLES one WRITE, one AS x READ");
    a.ok("INSERT INTO one SELECT id + 30 FROM one AS x");
    a.ok("DELETE FROM one WHERE id IN (SELECT id FROM one AS x) AND id > 10");
    refused(&mut a, "SELECT * FROM one AS x UNION SELECT * FROM one AS x", "1100");
    // A view may use a table several times.
    a.ok("LOCK TABLES v READ");
    assert_eq!(a.run("SELECT COUNT(*) FROM v"), "COUNT(*)\n2\n");
    a.ok("UNLOCK TABLES");
}

/// Dropping or renaming a table releases its lock; without any table left, LOCK TABLES ends.
#[test]
fn dropped_and_renamed_tables_are_no_longer_locked() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("LOCK TABLES one WRITE, two WRITE");
    a.ok("DROP TABLE one");
    refused(&mut a, "CREATE TABLE one (id INT)", "1100");
    a.ok("SELECT * FROM two");
    b.ok("CREATE TABLE one (id INT PRIMARY KEY)");
    a.ok("DROP TABLE two");
    a.ok("CREATE TABLE two (id INT PRIMARY KEY)");
    a.ok("LOCK TABLES one WRITE, two READ");
    a.ok("ALTER TABLE one RENAME three");
    for name in ["one", "three"] {
        refused(&mut a, &format!("SELECT * FROM {name}"), "1100");
    }
    a.ok("SELECT * FROM two");
    b.ok("SELECT * FROM three");
    a.ok("LOCK TABLES three WRITE");
    a.ok("ALTER TABLE three RENAME four");
    refused(&mut a, "SELECT * FROM four", "1100");
    a.ok("UNLOCK TABLES");
    a.ok("ALTER TABLE four RENAME one, ADD v INT");
    a.ok("SELECT v FROM one");
}

/// NOWAIT and WAIT n apply to metadata locks, too.
#[test]
fn locking_reads_that_do_not_wait_do_not_wait_for_names() {
    let (_server, mut a, mut b) = two_sessions();
    a.ok("LOCK TABLES one WRITE");
    b.ok("SET lock_wait_timeout = 50");
    let began = std::time::Instant::now();
    for lock in ["FOR UPDATE NOWAIT", "FOR UPDATE WAIT 0", "LOCK IN SHARE MODE NOWAIT"] {
        refused(&mut b, &format!("SELECT * FROM one {lock}"), "1205");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    a.ok("UNLOCK TABLES");
    b.ok("SELECT * FROM one FOR UPDATE NOWAIT");
}
