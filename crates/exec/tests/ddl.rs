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
