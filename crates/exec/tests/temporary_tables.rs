//! Temporary tables and sessions, settings, privileges, the binary log, memory.
//! `crates/server/tests/whole/scripts/temporary_tables.sql` compares their statements with MariaDB's.

mod world;

use cohort_config::{VarId, VarValue};
use cohort_exec::ConnectionInfo;
use cohort_types::Collation;
use world::{Client, Server, disk, logged_queries};

fn info(client: &Client, user: &str) -> ConnectionInfo {
    ConnectionInfo {
        id: client.session.process().id(),
        user: user.to_owned(),
        host: "localhost".to_owned(),
        account: (user.to_owned(), "localhost".to_owned()),
        schema: Some("test".to_owned()),
        collation: Collation::UTF8MB4_GENERAL_CI,
        multi_statements: true,
        found_rows: false,
        encryption: None,
        is_local: true,
    }
}

const MISSING: &str = "ERROR 1146 (42S02): Table 'test.t' doesn't exist\n";

#[test]
fn they_are_a_sessions_own_and_end_with_it() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let (mut one, mut other) = (server.connect(), server.connect());
    for client in [&mut one, &mut other] {
        assert_eq!(client.run("SELECT * FROM t"), MISSING);
        client.ok("CREATE TEMPORARY TABLE t (a INT PRIMARY KEY)");
    }
    one.ok("INSERT INTO t VALUES (1)");
    other.ok("INSERT INTO t VALUES (1),(2)");
    assert_eq!(one.run("SELECT * FROM t"), "a\n1\n");
    assert_eq!(other.run("SELECT COUNT(*) FROM t"), "COUNT(*)\n2\n");
    let used = server.db.processes.memory().used();
    assert!(used > 0, "what they hold is charged");
    one.session.reset();
    assert_eq!(one.run("SELECT * FROM test.t"), MISSING);
    let user = info(&other, "root");
    other.session.change_user(user).expect("root may");
    assert_eq!(other.run("SELECT * FROM t"), MISSING);
    one.ok("CREATE TEMPORARY TABLE test.t (a INT)");
    one.ok("INSERT INTO test.t VALUES (1)");
    drop((one, other));
    assert_eq!(server.db.processes.memory().used(), 0, "nothing stays charged");
}

#[test]
fn nothing_of_them_is_logged_or_survives_a_crash() {
    let disk = disk();
    let mut server = Server::open(&disk).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE base (a INT)");
    let logged = logged_queries(&server, &disk).len();
    for statement in [
        "CREATE TEMPORARY TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT)",
        "INSERT INTO t (b) VALUES (1),(2)",
        "UPDATE t SET b = 3",
        "DELETE FROM t WHERE a = 2",
        "ALTER TABLE t ADD c INT",
        "CREATE INDEX x ON t (c)",
        "RENAME TABLE t TO u",
        "TRUNCATE u",
        "CREATE OR REPLACE TEMPORARY TABLE u SELECT 1 AS one",
        "DROP TABLE u",
        "CREATE TEMPORARY TABLE u (a INT)",
        "DROP TEMPORARY TABLE u",
    ] {
        client.ok(statement);
    }
    assert_eq!(logged_queries(&server, &disk).len(), logged);
    client.ok("CREATE TEMPORARY TABLE t (a INT, b INT)");
    client.ok("BEGIN");
    client.ok("INSERT INTO t VALUES (1, 1)");
    client.ok("INSERT INTO base SELECT a FROM t");
    client.ok("COMMIT");
    client.ok("CREATE TABLE made LIKE t");
    let queries = logged_queries(&server, &disk);
    let made = queries.last().expect("it was logged");
    assert!(made.starts_with("CREATE TABLE `made` (\n  `a` int(11)"), "a replica has no t: {made}");
    drop((client, server));
    let mut server = Server::open(&disk).expect("it comes up again");
    let mut client = server.connect();
    assert_eq!(client.run("SELECT * FROM t"), MISSING);
    assert_eq!(client.run("SELECT * FROM base"), "a\n1\n");
}

#[test]
fn a_server_that_is_read_only_has_them() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE TABLE base (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT SELECT, INSERT, CREATE TEMPORARY TABLES ON test.* TO u@localhost");
    server.db.globals.put(VarId::ReadOnly, &VarValue::text("ON"));
    let mut client = server.connect_as("u", "localhost");
    client.ok("USE test");
    let refused = client.run("INSERT INTO base VALUES (1)");
    assert!(refused.starts_with("ERROR 1290"), "{refused}");
    for statement in [
        "CREATE TEMPORARY TABLE t (a INT)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t SELECT a + 1 FROM t",
        "UPDATE t SET a = a + 1",
        "ALTER TABLE t ADD b INT",
        "TRUNCATE t",
        "RENAME TABLE t TO base",
        "INSERT INTO base VALUES (1, 2)",
        "SELECT * FROM base FOR UPDATE",
        "DROP TEMPORARY TABLE base",
    ] {
        client.ok(statement);
    }
    let refused = client.run("INSERT INTO base VALUES (1)");
    assert!(refused.starts_with("ERROR 1290"), "{refused}");
}

#[test]
fn the_creator_of_a_temporary_table_has_all_privileges_on_it() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE TABLE base (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT CREATE TEMPORARY TABLES ON test.* TO u@localhost");
    let mut client = server.connect_as("u", "localhost");
    client.ok("USE test");
    for (statement, error) in [
        ("CREATE TABLE t (a INT)", "ERROR 1142 (42000): CREATE command denied"),
        ("CREATE TEMPORARY TABLE mysql.t (a INT)", "ERROR 1044 (42000): Access denied"),
        ("CREATE TEMPORARY TABLE t LIKE base", "ERROR 1142 (42000): SELECT command denied"),
        ("CREATE TEMPORARY TABLE t SELECT * FROM base", "ERROR 1142 (42000): SELECT command denied"),
        ("DROP TEMPORARY TABLE nix", "ERROR 1051 (42S02): Unknown table 'test.nix'"),
        ("DROP TABLE nix", "ERROR 1142 (42000): DROP command denied"),
    ] {
        let answer = client.run(statement);
        assert!(answer.starts_with(error), "{statement}: {answer}");
    }
    for statement in [
        "CREATE TEMPORARY TABLE base (a INT, b INT DEFAULT 5)",
        "INSERT INTO base (a) VALUES (1),(2)",
        "UPDATE base SET b = a WHERE a = 2",
        "DELETE FROM base WHERE a = 1",
        "SHOW CREATE TABLE base",
        "SHOW COLUMNS FROM base",
        "ALTER TABLE base ADD KEY (b), RENAME TO other",
        "DROP TABLE other",
    ] {
        client.ok(statement);
    }
    assert!(client.run("SELECT * FROM base").starts_with("ERROR 1142"));
}

#[test]
fn prepared_statements_find_the_table_that_is_meant_now() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let (mut client, mut other) = (server.connect(), server.connect());
    client.ok("CREATE TABLE t (a INT)");
    client.ok("INSERT INTO t VALUES (1)");
    let id = client.session.prepare(b"SELECT * FROM t").expect("it is there").id;
    for _ in 0..2 {
        assert_eq!(client.execute(id, &[]), "a\n1\n");
        client.ok("CREATE TEMPORARY TABLE t (x CHAR(3), y INT)");
        assert_eq!(client.execute(id, &[]), "x | y\n");
        client.ok("INSERT INTO t VALUES ('own', 2)");
        assert_eq!(client.execute(id, &[]), "x | y\nown | 2\n");
        assert_eq!(client.run("SELECT * FROM t"), "x | y\nown | 2\n");
        assert_eq!(other.run("SELECT * FROM t"), "a\n1\n", "plans of a session stay there");
        client.ok("DROP TEMPORARY TABLE t");
    }
    assert_eq!(client.execute(id, &[]), "a\n1\n");
    assert_eq!(client.run("SELECT * FROM t"), "a\n1\n");
}

#[test]
fn rows_beyond_the_memory_limit_spill_or_are_refused() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let folder = tempfile::tempdir().expect("a folder");
    server.db.globals.put(VarId::Tmpdir, &VarValue::text(&folder.path().display().to_string()));
    let mut client = server.connect();
    client.ok("SET tmp_table_size = 16384, max_session_mem_used = 4000000");
    client.ok("CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b LONGTEXT)");
    for n in 0..40 {
        client.ok(&format!("INSERT INTO t VALUES ({n}, REPEAT('{}', 300000))", n % 10));
    }
    assert_eq!(
        client.run("SELECT COUNT(*), SUM(LENGTH(b)), SUM(b = REPEAT(a % 10, 300000)) FROM t"),
        "COUNT(*) | SUM(LENGTH(b)) | SUM(b = REPEAT(a % 10, 300000))\n40 | 12000000 | 40\n"
    );
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "the file has no name");
    client.ok("BEGIN");
    client.ok("UPDATE t SET b = 'short'");
    client.ok("ROLLBACK");
    assert_eq!(client.run("SELECT SUM(LENGTH(b)) FROM t"), "SUM(LENGTH(b))\n12000000\n");
    client.ok("CREATE TEMPORARY TABLE keys_only (a BIGINT PRIMARY KEY)");
    let full = client.run("INSERT INTO keys_only SELECT seq FROM seq_1_to_100000");
    assert!(full.starts_with("ERROR 1290") || full.starts_with("ERROR 1041"), "{full}");
    assert_eq!(client.run("SELECT COUNT(*) FROM keys_only"), "COUNT(*)\n0\n");
}

/// A temporary table gives no privileges on the table that it hides.
#[test]
fn a_table_hidden_by_a_temporary_one_keeps_its_privileges() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut root = server.connect();
    for sql in [
        "CREATE DATABASE mine",
        "CREATE DATABASE victim",
        "CREATE TABLE victim.t (a INT)",
        "CREATE VIEW victim.v AS SELECT 1 x",
        "CREATE USER guest@localhost",
        "GRANT CREATE TEMPORARY TABLES ON mine.* TO guest@localhost",
        "GRANT LOCK TABLES ON victim.* TO guest@localhost",
    ] {
        root.ok(sql);
    }
    let mut guest = server.connect_as("guest", "localhost");
    for name in ["t", "v"] {
        guest.ok("CREATE TEMPORARY TABLE mine.x (a INT)");
        guest.ok(&format!("RENAME TABLE mine.x TO victim.{name}"));
    }
    for sql in [
        "RENAME TABLE victim.t TO victim.t1, victim.t TO mine.stolen",
        "DROP VIEW victim.v",
        "CREATE OR REPLACE VIEW victim.v AS SELECT 3",
        "CREATE VIEW victim.w AS SELECT 3",
        "SHOW CREATE VIEW victim.v",
    ] {
        let answer = guest.run(sql);
        assert!(answer.starts_with("ERROR 1142 "), "{sql}: {answer}");
    }
    guest.ok("LOCK TABLES victim.t READ");
    root.ok("INSERT INTO victim.t VALUES (1)");
    guest.ok("UNLOCK TABLES");
    assert!(root.run("SELECT COUNT(*) FROM victim.t").ends_with("\n1\n"));
}

#[test]
fn cached_plans_notice_a_recreated_temporary_table() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TEMPORARY TABLE t (a INT)");
    client.ok("INSERT INTO t VALUES (1), (2)");
    client.ok("PREPARE s FROM 'SELECT COUNT(*) FROM t'");
    client.ok("PREPARE i FROM 'INSERT INTO t VALUES (3)'");
    assert!(client.run("EXECUTE s").ends_with("\n2\n"));
    client.ok("EXECUTE i");
    client.run("OPTIMIZE TABLE t");
    assert!(client.run("EXECUTE s").ends_with("\n3\n"));
    client.ok("EXECUTE i");
    assert!(client.run("SELECT COUNT(*) FROM t").ends_with("\n4\n"));
}
