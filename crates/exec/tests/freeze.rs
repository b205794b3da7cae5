//! Locks that block commits must block all of them: SET GLOBAL read_only, FLUSH TABLES WITH READ LOCK, BACKUP
//! STAGE BLOCK_COMMIT. After their replies nothing may be added to the binary log by statements that were
//! already running.

mod world;

use std::thread;
use std::time::{Duration, Instant};

use world::{Client, Server};

const SLEEPS: Duration = Duration::from_millis(150);

/// Creates a server with a table and a sequence, an administrator's session, and an account without global
/// privileges.
fn server() -> (Server, Client) {
    let mut server = Server::open(&world::disk()).expect("an empty disk opens");
    let mut root = server.connect();
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE SEQUENCE s NOCACHE",
        "CREATE USER u@localhost",
        "GRANT ALL ON test.* TO u@localhost",
    ] {
        root.ok(statement);
    }
    (server, root)
}

fn user(server: &mut Server) -> Client {
    let mut user = server.connect_as("u", "localhost");
    user.ok("USE test");
    user.ok("SET lock_wait_timeout = 60");
    user
}

fn position(root: &mut Client) -> String {
    root.run("SHOW MASTER STATUS")
}

#[track_caller]
fn refused(client: &mut Client, statement: &str, code: &str) {
    let answer = client.run(statement);
    assert!(answer.starts_with(&format!("ERROR {code}")), "{statement}: {answer}");
}

/// Statements that are running, but have not committed, when the server becomes read-only.
const RUNNING: &[&str] = &[
    "UPDATE t SET v = 7 WHERE id = 1 AND SLEEP(0.5) = 0",
    "INSERT INTO t SELECT 10 + SLEEP(0.5), 1",
    "SELECT SLEEP(0.5), NEXTVAL(s)",
    "SELECT SLEEP(0.5), SETVAL(s, 500)",
    "CREATE TABLE c AS SELECT SLEEP(0.5) AS x",
];

#[test]
fn nothing_commits_after_the_reply_of_set_read_only() {
    let (mut server, mut root) = server();
    for statement in RUNNING {
        let mut client = user(&mut server);
        let running = thread::spawn(move || client.run(statement));
        thread::sleep(SLEEPS);
        root.ok("SET GLOBAL read_only = 1");
        let frozen = position(&mut root);
        let answer = running.join().expect("no panic");
        assert_eq!(position(&mut root), frozen, "{statement}: {answer}");
        assert!(answer.starts_with("ERROR 1290") || statement.starts_with("CREATE"), "{statement}: {answer}");
        root.ok("SET GLOBAL read_only = 0");
    }
    root.ok("DROP TABLE IF EXISTS c");
    assert_eq!(root.run("SELECT * FROM t"), "id | v\n1 | 1\n2 | 2\n");
}

#[test]
fn nothing_commits_by_another_way_under_read_only() {
    let (mut server, mut root) = server();
    for ends in [
        "COMMIT",
        "BEGIN",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "SET autocommit = 1",
        "LOCK TABLES t READ",
        "FLUSH TABLES",
    ] {
        let mut client = user(&mut server);
        root.ok("GRANT RELOAD, LOCK TABLES ON *.* TO u@localhost");
        client.ok("SET autocommit = 0");
        client.ok("UPDATE t SET v = 7 WHERE id = 1");
        root.ok("SET GLOBAL read_only = 1");
        let frozen = position(&mut root);
        refused(&mut client, ends, "1290");
        assert_eq!(position(&mut root), frozen, "{ends}");
        client.run("UNLOCK TABLES");
        assert_eq!(client.run("SELECT v FROM t WHERE id = 1"), "v\n1\n", "{ends}: it is rolled back");
        client.ok("COMMIT");
        root.ok("SET GLOBAL read_only = 0");
    }
}

#[test]
fn set_read_only_waits_as_flush_tables_with_read_lock_does() {
    let (mut server, mut root) = server();
    let mut holder = server.connect();
    // LOCK TABLES .. WRITE includes a server-wide write lock.
    holder.ok("LOCK TABLES t WRITE");
    root.ok("SET lock_wait_timeout = 1");
    refused(&mut root, "SET GLOBAL read_only = 1", "1205");
    assert_eq!(root.run("SELECT @@read_only"), "@@read_only\n0\n");
    holder.ok("UNLOCK TABLES");
    for (takes, gives_back) in [
        ("LOCK TABLES t READ", "UNLOCK TABLES"),
        ("BEGIN", "ROLLBACK"),
        ("BACKUP STAGE START", "BACKUP STAGE END"),
        ("XA START 'x'", "XA END 'x'"),
    ] {
        root.ok(takes);
        refused(&mut root, "SET GLOBAL read_only = 1", "1192");
        refused(&mut root, "SET GLOBAL read_only = 0", "1192");
        root.ok(gives_back);
    }
    root.ok("XA ROLLBACK 'x'");
    // The session's own global read lock suffices, and is kept.
    root.ok("FLUSH TABLES WITH READ LOCK");
    root.ok("SET GLOBAL read_only = 1");
    root.ok("SET GLOBAL read_only = 0");
    holder.ok("SET lock_wait_timeout = 1");
    refused(&mut holder, "INSERT INTO t VALUES (3, 3)", "1205");
    root.ok("UNLOCK TABLES");
    holder.ok("INSERT INTO t VALUES (3, 3)");
}

#[test]
fn read_only_admin_counts_when_the_commit_comes() {
    let (mut server, mut root) = server();
    root.ok("CREATE ROLE keeper");
    root.ok("GRANT READ ONLY ADMIN ON *.* TO keeper");
    root.ok("GRANT keeper TO u@localhost");
    let mut client = user(&mut server);
    client.ok("CREATE TEMPORARY TABLE own (id INT)");
    for (role, answer) in [("keeper", "OK"), ("NONE", "ERROR 1290")] {
        client.ok("BEGIN");
        client.ok("UPDATE t SET v = v + 1 WHERE id = 1");
        client.ok("INSERT INTO own VALUES (1)");
        root.ok("SET GLOBAL read_only = 1");
        client.ok(&format!("SET ROLE {role}"));
        let answered = client.run("COMMIT");
        assert!(answered.starts_with(answer), "{role}: {answered}");
        root.ok("SET GLOBAL read_only = 0");
    }
    root.ok("SET GLOBAL read_only = 1");
    client.ok("INSERT INTO own VALUES (2)");
    root.ok("INSERT INTO t VALUES (9, 9)");
    root.ok("SET GLOBAL read_only = 0");
    assert_eq!(root.run("SELECT v FROM t WHERE id = 1"), "v\n2\n");
}

/// The internal transaction of a sequence is blocked like any other commit.
#[test]
fn sequences_wait_while_commits_are_kept_out() {
    let (mut server, mut root) = server();
    for (keeps_out, lets_in) in [
        (&["FLUSH TABLES WITH READ LOCK"][..], "UNLOCK TABLES"),
        (&["BACKUP STAGE START", "BACKUP STAGE BLOCK_COMMIT"][..], "BACKUP STAGE END"),
    ] {
        let set = format!("SELECT SLEEP(0.4), SETVAL(s, {})", 1000 * lets_in.len());
        for statement in ["SELECT SLEEP(0.4), NEXTVAL(s)".to_owned(), set] {
            let mut client = user(&mut server);
            let text = statement.clone();
            let running = thread::spawn(move || client.run(&text));
            thread::sleep(SLEEPS);
            keeps_out.iter().for_each(|statement| root.ok(statement));
            let frozen = position(&mut root);
            let until = Instant::now() + Duration::from_millis(700);
            while Instant::now() < until {
                assert_eq!(position(&mut root), frozen, "{keeps_out:?} {statement}");
                thread::sleep(Duration::from_millis(50));
            }
            assert!(!running.is_finished(), "{keeps_out:?} {statement}");
            root.ok(lets_in);
            let answer = running.join().expect("no panic");
            assert!(!answer.contains("ERROR"), "{statement}: {answer}");
            assert_ne!(position(&mut root), frozen, "{statement}");
        }
    }
    // A session with write-locked tables already holds the server's lock.
    root.ok("LOCK TABLES t WRITE, s WRITE");
    root.ok("SELECT NEXTVAL(s)");
    root.ok("UNLOCK TABLES");
}
