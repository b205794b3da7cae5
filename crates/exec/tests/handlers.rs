//! HANDLER across transactions and sessions. `crates/server/tests/whole/scripts/handlers.sql` compares its
//! results with MariaDB's.

mod world;

use world::{Server, disk};

#[test]
fn a_place_outlives_its_row_and_ends_with_the_session() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let (mut client, mut other) = (server.connect(), server.connect());
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT INVISIBLE)");
    client.ok("INSERT INTO t (a) VALUES (1),(2),(3)");
    client.ok("HANDLER t OPEN");
    assert_eq!(client.run("HANDLER t READ FIRST"), "a\n1\n");
    other.ok("DELETE FROM t WHERE a < 3");
    assert_eq!(client.run("HANDLER t READ NEXT"), "a\n3\n");
    assert_eq!(client.run("HANDLER t READ NEXT"), "a\n");
    let unknown = "ERROR 1109 (42S02): Unknown table 't' in HANDLER\n";
    assert_eq!(other.run("HANDLER t READ FIRST"), unknown);
    client.session.reset();
    assert_eq!(client.run("HANDLER t READ FIRST"), unknown);
}

#[test]
fn temporary_tables_and_prepared_statements_may_be_handled() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut client = server.connect();
    client.ok("CREATE TEMPORARY TABLE t (a INT, b INT, KEY (b))");
    client.ok("INSERT INTO t VALUES (1, 9), (2, 8), (3, 8)");
    client.ok("HANDLER t OPEN AS h");
    client.ok("PREPARE s FROM 'HANDLER h READ b >= (?) LIMIT 9'");
    client.ok("SET @b = 8");
    assert_eq!(client.run("EXECUTE s USING @b"), "a | b\n2 | 8\n3 | 8\n1 | 9\n");
    assert_eq!(client.run("HANDLER h READ b PREV WHERE a = 2"), "a | b\n2 | 8\n");
    client.ok("DROP TABLE t");
    assert!(client.run("HANDLER h READ FIRST").starts_with("ERROR 1109"));
}

#[test]
fn handler_open_needs_the_select_privilege() {
    let mut server = Server::open(&disk()).expect("an empty disk opens");
    let mut root = server.connect();
    root.ok("CREATE TABLE t (a INT)");
    root.ok("CREATE USER u@localhost");
    root.ok("GRANT INSERT ON test.* TO u@localhost");
    let mut client = server.connect_as("u", "localhost");
    let answer = client.run("HANDLER test.t OPEN");
    assert!(answer.starts_with("ERROR 1142 (42000): SELECT command denied"), "{answer}");
}
