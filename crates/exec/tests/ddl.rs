//! Golden SQL scripts of `tests/ddl_scripts`; `UPDATE_GOLDEN=1` rewrites them.

mod world;

use std::path::Path;

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ddl_scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(dir)
        .expect("the scripts are there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .collect();
    scripts.sort();
    for script in scripts {
        world::run_script(&script);
    }
}

#[test]
fn an_account_does_what_it_was_granted() {
    let mut server = world::Server::open(&world::disk()).expect("opens");
    let mut root = server.connect();
    for statement in [
        "CREATE USER u1@localhost",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (a INT PRIMARY KEY)",
        "CREATE TABLE test.t (a INT PRIMARY KEY)",
        "GRANT SELECT, INSERT, CREATE ON app.* TO u1@localhost",
    ] {
        root.ok(statement);
    }
    let mut user = server.connect_as("u1", "localhost");
    user.ok("INSERT INTO app.t VALUES (1)");
    user.ok("SELECT * FROM app.t");
    user.ok("CREATE TABLE app.u (a INT)");
    let mut refused = |sql: &str, number: &str| {
        let answer = user.run(sql);
        assert!(answer.starts_with(&format!("ERROR {number} ")), "{sql}: {answer}");
    };
    refused("UPDATE app.t SET a = 2", "1142");
    refused("DELETE FROM app.t", "1142");
    refused("SELECT * FROM test.t", "1142");
    refused("SELECT * FROM app.t JOIN test.t USING (a)", "1142");
    refused("INSERT INTO app.t SELECT * FROM test.t", "1142");
    refused("DROP TABLE app.t", "1142");
    refused("ALTER TABLE app.t ADD b INT", "1142");
    refused("DROP DATABASE app", "1044");
    refused("CREATE DATABASE mine", "1044");
    refused("CREATE USER u2", "1227");
    refused("GRANT SELECT ON app.* TO root@localhost", "1044");
    refused("SHOW BINARY LOGS", "1227");
    refused("FLUSH BINARY LOGS", "1227");
    assert_eq!(user.run("SHOW DATABASES"), "Database\napp\ninformation_schema\n");
    root.ok("REVOKE INSERT ON app.* FROM u1@localhost");
    assert!(user.run("INSERT INTO app.t VALUES (2)").starts_with("ERROR 1142 "));
    root.ok("GRANT ALL ON *.* TO u1@localhost");
    user.ok("INSERT INTO app.t VALUES (2)");
    root.ok("DROP USER u1@localhost");
    assert!(user.run("SELECT * FROM app.t").starts_with("ERROR 1142 "));
}

/// Recorded from MariaDB 10.11.
#[test]
fn definitions_of_programs_need_privileges() {
    let mut server = world::Server::open(&world::disk()).expect("opens");
    let mut root = server.connect();
    for statement in [
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE DATABASE d5",
        "CREATE TABLE d5.t (a INT)",
        "CREATE PROCEDURE d5.p() SELECT 1",
        "CREATE FUNCTION d5.f() RETURNS INT NO SQL RETURN 1",
        "CREATE EVENT d5.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
        "CREATE TRIGGER d5.tr BEFORE INSERT ON d5.t FOR EACH ROW SET @a = 1",
        "CREATE USER u2@localhost, u3@localhost",
        "GRANT CREATE ROUTINE ON d5.* TO u2@localhost",
        "GRANT EXECUTE ON PROCEDURE d5.p TO u3@localhost",
        "GRANT ALTER ROUTINE ON FUNCTION d5.f TO u3@localhost WITH GRANT OPTION",
        "GRANT EVENT, TRIGGER, SELECT ON d5.* TO u3@localhost",
    ] {
        root.ok(statement);
    }
    let mut clients = [server.connect_as("u2", "localhost"), server.connect_as("u3", "localhost")];
    for (sql, expected) in [
        ("CREATE PROCEDURE d5.mine() SELECT 1", ["", "1044"]),
        ("CREATE PROCEDURE test.mine() SELECT 1", ["1044", "1044"]),
        ("CREATE OR REPLACE PROCEDURE d5.p() SELECT 1", ["1370", "1044"]),
        ("CREATE OR REPLACE PROCEDURE d5.mine() SELECT 2", ["", "1044"]),
        ("CREATE DEFINER=root@localhost PROCEDURE d5.zz() SELECT 1", ["1227", "1044"]),
        ("ALTER PROCEDURE d5.p COMMENT 'x'", ["1370", "1370"]),
        ("ALTER PROCEDURE d5.mine COMMENT 'x'", ["", "1370"]),
        ("ALTER FUNCTION d5.f COMMENT 'x'", ["1370", ""]),
        ("DROP PROCEDURE d5.p", ["1370", "1370"]),
        ("DROP PROCEDURE IF EXISTS d5.nop", ["1370", "1370"]),
        ("GRANT ALTER ROUTINE ON FUNCTION d5.f TO u2@localhost", ["1370", ""]),
        ("GRANT EXECUTE ON FUNCTION d5.f TO u2@localhost", ["1370", "1370"]),
        ("CREATE EVENT d5.mine ON SCHEDULE EVERY 1 DAY DO SELECT 1", ["1044", ""]),
        ("ALTER EVENT d5.e DISABLE", ["1044", ""]),
        ("DROP EVENT d5.nop", ["1044", "1539"]),
        ("CREATE TRIGGER d5.mine AFTER INSERT ON d5.t FOR EACH ROW SET @a = 1", ["1142", ""]),
        ("CREATE TRIGGER d5.mine AFTER INSERT ON d5.nope FOR EACH ROW SET @a = 1", ["1142", "1146"]),
        ("DROP TRIGGER d5.nop", ["1360", "1360"]),
        ("DROP TRIGGER d5.tr", ["1142", ""]),
        ("SHOW TRIGGERS FROM d5", ["", ""]),
        ("SHOW EVENTS FROM d5", ["1044", ""]),
        ("SHOW CREATE PROCEDURE d5.mine", ["", "1305"]),
        ("SHOW CREATE EVENT d5.e", ["1044", ""]),
        ("SHOW CREATE TRIGGER d5.mine", ["1227", ""]),
        ("SELECT * FROM mysql.proc", ["1142", "1142"]),
        ("DROP PROCEDURE d5.mine", ["", "1370"]),
    ] {
        for (client, expected) in clients.iter_mut().zip(expected) {
            let answer = client.run(sql);
            let number = answer.strip_prefix("ERROR ").and_then(|rest| rest.split(' ').next());
            assert_eq!(number.unwrap_or(""), expected, "{sql}: {answer}");
        }
    }
    let [u2, u3] = &mut clients;
    let names = "SELECT ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'd5'";
    assert_eq!(u3.run(names), "ROUTINE_NAME | ROUTINE_DEFINITION\nf | NULL\np | NULL\n", "bodies are hidden");
    u2.ok("CREATE FUNCTION d5.mine() RETURNS INT NO SQL RETURN 7");
    let bodies = "ROUTINE_NAME | ROUTINE_DEFINITION\nf | NULL\nmine | RETURN 7\np | NULL\n";
    assert_eq!(u2.run(names), bodies);
    let grants = u2.run("SHOW GRANTS");
    let own = "GRANT EXECUTE, ALTER ROUTINE ON FUNCTION `d5`.`mine` TO `u2`@`localhost`";
    assert!(grants.contains(own), "{grants}");
    root.ok("SET GLOBAL log_bin_trust_function_creators = 0");
    root.ok("GRANT ALL ON test.* TO u3@localhost");
    root.ok("CREATE TABLE test.t (a INT)");
    for sql in [
        "CREATE FUNCTION test.g() RETURNS INT NO SQL RETURN 1",
        "CREATE TRIGGER test.g BEFORE INSERT ON test.t FOR EACH ROW SET @a = 1",
    ] {
        assert!(u3.run(sql).starts_with("ERROR 1419 "), "{sql}");
    }
    assert!(root.run("CREATE FUNCTION test.g() RETURNS INT RETURN 1").starts_with("ERROR 1418 "));
}

#[test]
fn a_second_session_waits_for_ddl_and_sees_its_outcome() {
    let mut server = world::Server::open(&world::disk()).expect("opens");
    let (mut a, mut b) = (server.connect(), server.connect());
    a.ok("CREATE TABLE t (a INT PRIMARY KEY)");
    a.ok("BEGIN");
    a.ok("SELECT * FROM t");
    b.ok("SET lock_wait_timeout = 1");
    assert!(b.run("ALTER TABLE t ADD b INT").starts_with("ERROR 1205 "));
    a.ok("COMMIT");
    b.ok("ALTER TABLE t ADD b INT");
    a.ok("INSERT INTO t VALUES (1, 2)");
    assert_eq!(b.run("SELECT * FROM t"), "a | b\n1 | 2\n");
    // A failed statement must leave no lock, even without autocommit.
    b.ok("SET autocommit = 0");
    assert!(b.run("ALTER TABLE t ADD b INT").starts_with("ERROR 1060 "));
    a.ok("DROP TABLE t");
}

#[test]
fn a_large_table_is_copied_and_indexed_in_runs() {
    let mut server = world::Server::open(&world::disk()).expect("opens");
    let mut client = server.connect();
    client.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(40))");
    client.ok("INSERT INTO t (k, c) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')");
    for _ in 0..9 {
        client.ok("INSERT INTO t (k, c) SELECT k + 7, CONCAT(c, 'x') FROM t");
    }
    let before = client.run("CHECKSUM TABLE t");
    client.ok("CREATE INDEX ck ON t (c, k)");
    client.ok("ALTER TABLE t FORCE");
    assert_eq!(client.run("CHECKSUM TABLE t"), before);
    assert_eq!(
        client.run("CHECK TABLE t"),
        "Table | Op | Msg_type | Msg_text\ntest.t | check | status | OK\n"
    );
    assert!(client.run("CREATE UNIQUE INDEX uk ON t (k)").starts_with("ERROR 1062 "));
}
