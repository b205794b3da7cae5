//! `Handler_%` of SHOW STATUS: per session, for the server, and after FLUSH STATUS.

mod world;

use world::{Client, Server};

/// Returns the `Handler_%` counters that are not 0, as `read_key=1`.
fn handlers(client: &mut Client, scope: &str) -> String {
    let answer = client.run(&format!("SHOW {scope} STATUS LIKE 'Handler_%'"));
    let counts = answer.lines().skip(1).filter_map(|line| line.strip_prefix("Handler_")?.split_once(" | "));
    let counts = counts.filter(|(_, count)| *count != "0").map(|(name, count)| format!("{name}={count}"));
    counts.collect::<Vec<_>>().join(" ")
}

/// Expected values are recorded from MariaDB 10.11 with InnoDB, except for `commit` after writes, which
/// MariaDB also counts for its binary log.
#[test]
fn handler_counters_are_mariadbs() {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut c = server.connect();
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY (a), UNIQUE KEY (b))");
    c.ok("INSERT INTO t VALUES (1,1,1),(2,1,2),(3,2,3),(4,2,4),(5,3,5)");
    for (statement, expected) in [
        ("SELECT * FROM t WHERE id = 3", "commit=1 read_key=1"),
        ("SELECT * FROM t WHERE id = 99", "commit=1 read_key=1"),
        ("SELECT * FROM t", "commit=1 read_rnd_next=6"),
        ("SELECT * FROM t FORCE INDEX (a) WHERE a = 1", "commit=1 read_key=1 read_next=2"),
        ("SELECT * FROM t WHERE id BETWEEN 2 AND 3", "commit=1 read_key=1 read_next=2"),
        ("SELECT * FROM t ORDER BY id DESC", "commit=1 read_last=1 read_prev=5"),
        ("SELECT a FROM t FORCE INDEX (a) ORDER BY a", "commit=1 read_first=1 read_next=5"),
        ("SELECT * FROM t WHERE id IN (1, 2, 9)", "commit=1 read_key=3"),
        ("UPDATE t SET b = b + 10 WHERE id = 1", "commit=1 read_key=1 update=1"),
        ("UPDATE t SET b = b WHERE id = 1", "commit=1 read_key=1"),
        ("DELETE FROM t WHERE id = 1", "commit=1 delete=1 read_key=1"),
        ("INSERT INTO t VALUES (6,1,6),(7,1,7)", "commit=1 write=2"),
        ("INSERT IGNORE INTO t VALUES (6,1,6)", "commit=1 write=1"),
        ("INSERT INTO t VALUES (6,1,6)", "rollback=1 write=1"),
        (
            "INSERT INTO t VALUES (6,1,6) ON DUPLICATE KEY UPDATE a = 77",
            "commit=1 read_key=1 update=1 write=1",
        ),
        ("SELECT 1", ""),
    ] {
        c.ok("FLUSH STATUS");
        c.run(statement);
        assert_eq!(handlers(&mut c, ""), expected, "{statement}");
    }
    c.ok("FLUSH STATUS");
    c.ok("BEGIN");
    c.ok("SELECT * FROM t WHERE id = 2");
    c.ok("SAVEPOINT x");
    c.ok("ROLLBACK TO x");
    c.ok("ROLLBACK");
    let expected = "commit=1 read_key=1 rollback=1 savepoint=1 savepoint_rollback=1";
    assert_eq!(handlers(&mut c, "SESSION"), expected);
    let mut other = server.connect();
    assert_eq!(handlers(&mut other, ""), "");
    let all = handlers(&mut other, "GLOBAL");
    assert!(all.contains("write=10") && all.contains("delete=1"), "{all}");
}
