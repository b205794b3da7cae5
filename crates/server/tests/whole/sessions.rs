//! Transactions, locks and limits of sessions over real connections.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::raw::RawClient;
use crate::support::{Cohort, error_code, rows};

fn run(client: &mut Conn, sql: &str) {
    client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn all(client: &mut Conn, statements: &[&str]) {
    statements.iter().for_each(|sql| run(client, sql));
}

/// Starts a server with `test.t`: ids 1 to 3, each value ten times its id.
fn with_rows(folder: &tempfile::TempDir, options: &[&str]) -> Cohort {
    let server = Cohort::start(folder.path(), "data", options);
    run(&mut server.in_test(), "CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    run(&mut server.in_test(), "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    server
}

#[test]
fn auto_increment_savepoints_and_the_rollback_of_statements_survive_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.in_test();
    all(
        &mut client,
        &[
            "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE)",
            "INSERT INTO a (v) VALUES (1), (2), (3)",
            "INSERT INTO a VALUES (100, 100)",
            "DELETE FROM a WHERE id = 100",
            "BEGIN",
            "INSERT INTO a (v) VALUES (4)",
            "SAVEPOINT one",
            "UPDATE a SET v = v + 10",
            "SAVEPOINT two",
            "DELETE FROM a",
            "ROLLBACK TO two",
            "RELEASE SAVEPOINT two",
        ],
    );
    assert_eq!(error_code(client.query_drop("INSERT INTO a (v) VALUES (50), (11)")), 1062);
    assert_eq!(error_code(client.query_drop("ROLLBACK TO two")), 1305);
    let expected = "1\t11\n2\t12\n3\t13\n101\t14\n";
    assert_eq!(rows(&mut client, "SELECT * FROM a ORDER BY id"), expected);
    run(&mut client, "COMMIT");
    server.kill_and_restart();
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, "SELECT * FROM a ORDER BY id"), expected);
    run(&mut client, "INSERT INTO a (v) VALUES (1000)");
    // As in MariaDB, the numbers of the failed statement are lost.
    let next: i32 = client.query_first("SELECT LAST_INSERT_ID()").expect("a row").expect("one");
    assert!((102..=104).contains(&next), "{next}");
}

#[test]
fn isolation_levels_show_what_they_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_rows(&folder, &[]);
    let (mut writer, mut reader) = (server.in_test(), server.in_test());
    let seen = |reader: &mut Conn| rows(reader, "SELECT v FROM t WHERE id = 1").trim().to_owned();

    run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    run(&mut writer, "UPDATE t SET v = 11 WHERE id = 1");
    assert_eq!(seen(&mut reader), "10", "REPEATABLE READ keeps its snapshot");
    let locking = rows(&mut reader, "SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE");
    assert_eq!(locking, "11\n", "a locking read sees the newest row");
    assert_eq!(seen(&mut reader), "10");
    run(&mut reader, "UPDATE t SET v = v + 1 WHERE id = 1");
    assert_eq!(seen(&mut reader), "12", "its own write over the newest row");
    run(&mut reader, "ROLLBACK");
    assert_eq!(seen(&mut reader), "11");

    all(&mut reader, &["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"]);
    assert_eq!(seen(&mut reader), "11");
    all(&mut writer, &["BEGIN", "UPDATE t SET v = 15 WHERE id = 1"]);
    assert_eq!(seen(&mut reader), "11", "no session sees what is not committed");
    run(&mut writer, "COMMIT");
    assert_eq!(seen(&mut reader), "15", "READ COMMITTED sees each commit");
    run(&mut reader, "COMMIT");

    all(&mut reader, &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN"]);
    assert_eq!(seen(&mut reader), "15");
    run(&mut writer, "SET innodb_lock_wait_timeout = 1");
    assert_eq!(error_code(writer.query_drop("UPDATE t SET v = 16 WHERE id = 1")), 1205);
    run(&mut reader, "COMMIT");
    run(&mut writer, "UPDATE t SET v = 16 WHERE id = 1");

    run(&mut reader, "START TRANSACTION READ ONLY");
    assert_eq!(error_code(reader.query_drop("UPDATE t SET v = 0")), 1792);
    run(&mut reader, "COMMIT");
}

#[test]
fn locking_reads_timeouts_and_deadlocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_rows(&folder, &[]);
    let (mut one, mut two, mut three) = (server.in_test(), server.in_test(), server.in_test());
    for client in [&mut one, &mut two, &mut three] {
        run(client, "SET innodb_lock_wait_timeout = 1");
    }
    run(&mut one, "BEGIN");
    assert_eq!(rows(&mut one, "SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE"), "10\n");
    run(&mut two, "BEGIN");
    assert_eq!(rows(&mut two, "SELECT v FROM t WHERE id = 1 LOCK IN SHARE MODE"), "10\n");
    run(&mut two, "UPDATE t SET v = 21 WHERE id = 2");
    let begun = Instant::now();
    assert_eq!(error_code(two.query_drop("SELECT v FROM t WHERE id = 1 FOR UPDATE")), 1205);
    assert!((900..5000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert_eq!(error_code(three.query_drop("SELECT v FROM t WHERE id = 2 FOR UPDATE NOWAIT")), 1205);
    // Only the statement was rolled back: the transaction still has its change and its locks.
    assert_eq!(rows(&mut two, "SELECT v FROM t WHERE id = 2"), "21\n");
    run(&mut two, "COMMIT");
    run(&mut one, "COMMIT");
    assert_eq!(rows(&mut one, "SELECT v FROM t WHERE id = 2"), "21\n");

    for client in [&mut one, &mut two] {
        run(client, "SET innodb_lock_wait_timeout = 50");
    }
    run(&mut one, "SET GLOBAL innodb_print_all_deadlocks = ON");
    all(&mut one, &["BEGIN", "UPDATE t SET v = 1 WHERE id = 1"]);
    all(&mut two, &["BEGIN", "UPDATE t SET v = 2 WHERE id = 2"]);
    let first = std::thread::spawn(move || {
        let result = one.query_drop("UPDATE t SET v = 1 WHERE id = 2");
        (one, result)
    });
    let second = two.query_drop("UPDATE t SET v = 2 WHERE id = 1");
    let begun = Instant::now();
    let (mut one, first) = {
        if second.is_ok() {
            run(&mut two, "COMMIT");
        }
        first.join().expect("no panic")
    };
    assert!(begun.elapsed() < Duration::from_secs(10), "a deadlock is seen at once");
    assert!(first.is_ok() != second.is_ok(), "one of them is the victim: {first:?} {second:?}");
    let victim = if first.is_err() { first } else { second };
    assert_eq!(error_code(victim), 1213);
    let log = server.log();
    assert!(log.contains(", rolled back\nUPDATE t SET v = "), "{log}");
    run(&mut one, "COMMIT");
    run(&mut two, "COMMIT");
    let left = rows(&mut one, "SELECT v FROM t WHERE id < 3 ORDER BY id");
    assert!(left == "1\n1\n" || left == "2\n2\n", "the whole of the victim was rolled back: {left}");
}

#[test]
fn kill_ends_what_runs_what_waits_and_what_sleeps() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_rows(&folder, &[]);
    let mut killer = server.in_test();
    let numbers: Vec<String> = (0..1000).map(|n| format!("({n})")).collect();
    run(&mut killer, "CREATE TABLE n (v INT)");
    run(&mut killer, &format!("INSERT INTO n VALUES {}", numbers.join(",")));
    let endless = "SELECT COUNT(*) FROM n a, n b, n c WHERE a.v + b.v + c.v = -1";
    for (kill, sql, code) in [
        ("KILL QUERY", endless, 1317),
        ("KILL", endless, 1927),
        ("KILL QUERY", "UPDATE n a SET v = v + SLEEP(0.01)", 1317),
        ("KILL HARD QUERY", "SELECT SLEEP(60)", 1317),
    ] {
        let mut victim = server.in_test();
        let id = victim.connection_id();
        let running = std::thread::spawn(move || (victim.query_drop(sql), victim));
        std::thread::sleep(Duration::from_millis(300));
        let listed = rows(&mut killer, "SHOW FULL PROCESSLIST");
        assert!(listed.contains(sql), "{listed}");
        let begun = Instant::now();
        run(&mut killer, &format!("{kill} {id}"));
        let (result, mut victim) = running.join().expect("no panic");
        assert!(begun.elapsed() < Duration::from_secs(5), "{sql}: {:?}", begun.elapsed());
        let error = result.expect_err("killed").to_string();
        assert!(
            error.contains(&code.to_string()) || (code == 1927 && error.contains("os error")),
            "{sql}: {error}"
        );
        assert_eq!(victim.query_drop("SELECT 1").is_ok(), code == 1317);
    }
    assert_eq!(rows(&mut killer, "SELECT SUM(v) FROM n"), "499500\n", "the UPDATE was undone");

    // Many long statements do not keep others from connecting.
    let busy: Vec<_> = ["SELECT SLEEP(60)", endless]
        .into_iter()
        .cycle()
        .take(16)
        .map(|sql| {
            let mut client = server.in_test();
            (client.connection_id(), std::thread::spawn(move || client.query_drop(sql)))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    assert_eq!(rows(&mut server.in_test(), "SELECT 1"), "1\n");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for (id, _) in &busy {
        run(&mut killer, &format!("KILL {id}"));
    }
    assert!(busy.into_iter().all(|(_, client)| client.join().expect("no panic").is_err()));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn limits_of_time_number_and_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_rows(&folder, &["--max-connections=10", "--max-allowed-packet=40M"]);
    let mut sleeper = server.in_test();
    all(&mut sleeper, &["SET wait_timeout = 1", "BEGIN", "UPDATE t SET v = 0 WHERE id = 1"]);
    std::thread::sleep(Duration::from_millis(2500));
    assert!(sleeper.query_drop("SELECT 1").is_err());
    drop(sleeper);
    let mut client = server.in_test();
    assert_eq!(
        rows(&mut client, "SELECT v FROM t WHERE id = 1 FOR UPDATE"),
        "10\n",
        "rolled back, lock free"
    );

    // The slot beyond the limit is for a privileged account.
    let more: Vec<Conn> = (0..10).map(|_| server.in_test()).collect();
    assert_eq!(error_code(Conn::new(server.options())), 1040);
    drop(more);
    let end = Instant::now() + Duration::from_secs(10);
    while Conn::new(server.options()).is_err() {
        assert!(Instant::now() < end, "places are given back");
    }

    let long = |n: usize| server.options().db_name(Some("test")).max_allowed_packet(Some(n));
    let mut client = Conn::new(long(64 << 20)).expect("a connection");
    run(&mut client, "CREATE TABLE big (id INT PRIMARY KEY, b LONGBLOB)");
    let bytes: Vec<u8> = (0..(33_usize << 20) + 7).map(|n| ((n * 31) >> 3) as u8).collect();
    client.exec_drop("INSERT INTO big VALUES (?, ?)", (1, &bytes)).expect("a packet of three parts");
    let back: Vec<u8> =
        client.exec_first("SELECT b FROM big WHERE id = ?", (1,)).expect("a row").expect("one");
    assert!(back == bytes);
    let back: Vec<u8> = client.query_first("SELECT b FROM big").expect("a row").expect("one");
    assert!(back == bytes);
    // Sent in advance as chunks: a value that is too long is refused, not truncated.
    let too_long = vec![7_u8; 41 << 20];
    assert_eq!(error_code(client.exec_drop("INSERT INTO big VALUES (?, ?)", (2, too_long))), 1105);
    // The connection ends here, whatever the client is doing.
    assert!(client.query_drop(format!("SELECT '{}'", "x".repeat(41 << 20))).is_err());
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, "SELECT COUNT(*) FROM big"), "1\n");
}

#[test]
fn a_connection_is_reset_changed_and_runs_many_statements_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = with_rows(&folder, &[]);
    let mut client = server.in_test();
    let dirty =
        ["SET @a = 1, SESSION sort_buffer_size = 100000, NAMES latin1", "BEGIN", "UPDATE t SET v = 0"];
    let is_clean = |client: &mut Conn| {
        assert_eq!(rows(client, "SELECT @a, @@character_set_client, @@in_transaction"), "NULL\tutf8mb4\t0\n");
        assert_eq!(rows(client, "SELECT SUM(v) FROM test.t FOR UPDATE"), "60\n");
    };
    all(&mut client, &dirty);
    client.reset().expect("reset");
    is_clean(&mut client);
    assert_eq!(rows(&mut client, "SELECT DATABASE()"), "test\n");
    run(&mut client, "CREATE USER other@localhost IDENTIFIED BY 'secret'");
    all(&mut client, &dirty);
    let other = mysql::ChangeUserOpts::default()
        .with_user(Some("other".to_owned()))
        .with_pass(Some("secret".to_owned()))
        .with_db_name(None);
    client.change_user(other).expect("another user");
    assert_eq!(rows(&mut client, "SELECT CURRENT_USER(), DATABASE()"), "other@localhost\tNULL\n");
    is_clean(&mut server.in_test());
    let wrong = OptsBuilder::from_opts(server.options()).user(Some("other")).pass(Some("wrong"));
    assert_eq!(error_code(Conn::new(wrong)), 1045);

    let mut client = server.in_test();
    let text = "INSERT INTO t VALUES (4, 40); SELECT v FROM t WHERE id = 4; SELECT 1, 2; UPDATE t SET v = 41 WHERE id = 4";
    assert_eq!(rows(&mut client, text), "40\n1\t2\n");
    let text = "INSERT INTO t VALUES (5, 50); INSERT INTO t VALUES (5, 50); INSERT INTO t VALUES (6, 60)";
    // The client library reports the first statement only.
    client.query_drop(text).expect("the first one is fine");
    assert_eq!(rows(&mut client, "SELECT MAX(id) FROM t"), "5\n", "nothing after the error runs");
}

/// If a command-line client is killed while its statement waits, the statement ends and its locks are
/// released.
#[test]
fn a_statement_that_only_waits_ends_with_its_client() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let waiting = |sql: &str| {
        let mut command = std::process::Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--execute", sql]);
        command.arg(format!("--socket={}", server.socket.display()));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().expect("the client starts")
    };
    let mut client = server.client();
    let mut count = |state: &str| -> u64 {
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = '{state}'");
        client.query_first(sql).expect("answered").expect("a row")
    };
    let mut until = |state: &str, wanted: u64| {
        let end = Instant::now() + Duration::from_secs(30);
        while count(state) != wanted {
            assert!(Instant::now() < end, "{state}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let mut sleeper = waiting("SELECT GET_LOCK('a', 0), SLEEP(1000)");
    until("User sleep", 1);
    let mut waiter = waiting("SELECT GET_LOCK('b', 0), GET_LOCK('a', 1000)");
    until("User lock", 1);
    for child in [&mut waiter, &mut sleeper] {
        child.kill().expect("killed");
        child.wait().expect("gone");
    }
    let lock = "SELECT GET_LOCK('a', 30) + GET_LOCK('b', 30)";
    let got: u64 = server.client().query_first(lock).expect("answered").expect("a row");
    assert_eq!(got, 2);
}

/// Returns the only row of a single-column result, as sent.
fn sent_row(raw: &mut RawClient) -> Vec<u8> {
    // The number of columns, the column, its end, the row, the end.
    let mut packets: Vec<Vec<u8>> = (0..5).map(|_| raw.payload().expect("a packet")).collect();
    packets.swap_remove(3)
}

/// In a multi-statement text, each result has the character set in effect when it begins.
#[test]
fn rows_come_in_the_character_set_of_their_statement() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut raw = RawClient::login(&server);
    let (latin1, utf8) = (b"\x01\xe9".to_vec(), b"\x02\xc3\xa9".to_vec());
    raw.query(
        "SELECT 'é'; SET character_set_results = latin1; SELECT 'é'; SET STATEMENT character_set_results = utf8mb4 \
         FOR SELECT 'é'; SELECT 'é'; SET NAMES utf8mb4; SELECT 'é'"
            .as_bytes(),
    );
    let ok = |raw: &mut RawClient| assert_eq!(raw.payload().expect("an answer")[0], 0);
    assert_eq!(sent_row(&mut raw), utf8);
    ok(&mut raw);
    assert_eq!(sent_row(&mut raw), latin1, "SET within the text");
    assert_eq!(sent_row(&mut raw), utf8, "for one statement");
    assert_eq!(sent_row(&mut raw), latin1, "after it");
    ok(&mut raw);
    assert_eq!(sent_row(&mut raw), utf8, "SET NAMES within the text");
}
