//! Clients that send garbage, disconnect or demand too much: they get an error, others are not affected, and
//! no memory is lost.

use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::raw::{RawClient, login_response, packet};
use crate::scale::{Dice, long_or};
use crate::support::{Cohort, rows};

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn status(client: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> =
        client.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).expect("a row");
    row.expect("known").1
}

/// Waits until only the given client is connected.
fn alone(client: &mut Conn) {
    until("the connections are gone", || status(client, "Threads_connected") == 1);
}

#[test]
fn rubbish_is_an_error_for_its_sender_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY)").expect("made");
    let mut dice = Dice::new(11);
    let login = packet(1, &login_response());
    for round in 0..300 {
        let mut raw = RawClient::connect(&server);
        match round % 6 {
            // An incomplete login, or one with bytes changed.
            0 => raw.send(&login[..dice.below(login.len())]),
            1 => {
                let mut bytes = login.clone();
                (0..3).for_each(|_| {
                    let at = dice.below(bytes.len());
                    bytes[at] = dice.byte();
                });
                raw.send(&bytes);
            }
            2 => raw.send(&(0..dice.below(200)).map(|_| dice.byte()).collect::<Vec<u8>>()),
            // After the login, a packet that is shorter than announced.
            3 => {
                raw = RawClient::login(&server);
                raw.send(&[0xff, 0xff, 0xff, 0, 3, b'S']);
            }
            // A wrong sequence number.
            4 => {
                raw = RawClient::login(&server);
                raw.send(&packet(7, b"\x03SELECT 1"));
            }
            // Commands that do not exist or have invalid contents.
            _ => {
                raw = RawClient::login(&server);
                for _ in 0..5 {
                    let length = dice.below(40);
                    let payload: Vec<u8> = (0..=length).map(|_| dice.byte()).collect();
                    // Quit and shutdown would be valid.
                    if !matches!(payload[0], 1 | 8) {
                        raw.send(&packet(0, &payload));
                    }
                }
            }
        }
    }
    alone(&mut client);
    client.query_drop("INSERT INTO t VALUES (1)").expect("it works as before");
}

#[test]
fn garbage_instead_of_sql_is_answered_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))").expect("made");
    let words: Vec<&str> = "SELECT FROM WHERE t id v ( ) , * 'x' 1 -1 1e400 NULL AND OR NOT IN BETWEEN LIKE CASE WHEN THEN END \
         INSERT INTO VALUES UPDATE SET = < > <=> + / % GROUP BY HAVING COUNT(*) ORDER LIMIT 18446744073709551616 \
         INTERVAL DAY CAST AS DECIMAL(65,30) JOIN ON a. `b` @x := @@y /* /*! */ -- # \\ \" 0x b'2' _latin1 ; ? \u{0} ä"
        .split(' ')
        .collect();
    let mut dice = Dice::new(12);
    let mut errors = 0;
    for _ in 0..3000 {
        let length = 1 + dice.below(25);
        let sql: Vec<&str> = (0..length).map(|_| words[dice.below(words.len())]).collect();
        match client.query_drop(sql.join(" ")) {
            Ok(()) => {}
            Err(mysql::Error::MySqlError(_)) => errors += 1,
            Err(other) => panic!("{sql:?}: {other}"),
        }
    }
    assert!(errors > 2000, "{errors}");
    let deep = format!("SELECT {}1{}", "ABS(".repeat(100_000), ")".repeat(100_000));
    assert!(matches!(client.query_drop(deep), Err(mysql::Error::MySqlError(_))));
    let parentheses = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(client.query_first::<u8, _>(parentheses).expect("an answer"), Some(1));
    let mut raw = RawClient::login(&server);
    for _ in 0..50 {
        let bytes: Vec<u8> = (0..1 + dice.below(3000)).map(|_| dice.byte()).collect();
        raw.query(&bytes);
        assert_eq!(raw.payload().expect("an answer")[0], 0xff);
    }
    assert_eq!(rows(&mut client, "SELECT 1"), "1\n");
}

#[test]
fn clients_that_vanish_in_a_statement_or_a_commit_leave_nothing_half_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, half INT, KEY (half))").expect("made");
    client.query_drop("CREATE TABLE n (v INT)").expect("made");
    // The statement below takes some tenths of a second. The server need not notice the disconnect before it
    // ends.
    let numbers: Vec<String> = (0..200).map(|n| format!("({n})")).collect();
    client.query_drop(format!("INSERT INTO n VALUES {}", numbers.join(","))).expect("filled");
    for n in 0..150 {
        let mut raw = RawClient::login(&server);
        raw.query(b"USE test");
        raw.query(b"BEGIN");
        raw.query(format!("INSERT INTO t VALUES ({}, {n})", 2 * n).as_bytes());
        raw.query(format!("INSERT INTO t VALUES ({}, {n})", 2 * n + 1).as_bytes());
        match n % 3 {
            0 => raw.query(b"COMMIT"),
            1 => raw.query(b"SELECT COUNT(*) FROM n a, n b, n c WHERE a.v + b.v + c.v = -1"),
            _ => raw.send(&packet(0, b"\x03INSERT INTO t VALUES (99999")[..12]),
        }
        drop(raw);
    }
    alone(&mut client);
    let count = "SELECT COUNT(*) FROM t";
    let kept = rows(&mut client, count);
    assert_eq!(rows(&mut client, "SELECT half, COUNT(*) FROM t GROUP BY half HAVING COUNT(*) <> 2"), "");
    assert_eq!(rows(&mut client, "SELECT * FROM t WHERE half % 3 <> 0"), "");
    client.query_drop("UPDATE t SET half = half + 1000").expect("no lock was left");
    server.kill_and_restart();
    assert_eq!(rows(&mut server.in_test(), count), kept, "committed rows stay");
}

#[test]
fn ten_thousand_connections_leak_no_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Cohort::start(folder.path(), "data", &[]);
    let mut client = server.client();
    let round = |n: usize| {
        for _ in 0..n {
            let mut one = server.client();
            one.query_drop("SELECT 1").expect("answered");
        }
    };
    round(1000);
    alone(&mut client);
    let before = server.resident_kib();
    round(9000);
    alone(&mut client);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB were not given back, {before} KiB before");
}

#[test]
fn a_gibibyte_of_statements_on_one_connection_leaks_no_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let total: usize = long_or(1 << 30, 192 << 20);
    let server =
        Cohort::start(folder.path(), "data", &["--rocksdb-block-cache-size=8M", "--max-binlog-size=1G"]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, b MEDIUMBLOB)").expect("made");
    let fill = |client: &mut Conn, bytes: usize| {
        let value = "x".repeat(1 << 20);
        // Half of it in one transaction that is committed, which spills; the other half is rolled back.
        for end in ["COMMIT", "ROLLBACK"] {
            client.query_drop("BEGIN").expect("begun");
            for id in 0..bytes >> 21 {
                client.query_drop(format!("INSERT INTO t VALUES ({id}, '{value}')")).expect("written");
            }
            client.query_drop(end).expect(end);
            client.query_drop("DELETE FROM t").expect("emptied");
        }
    };
    fill(&mut client, total / 2);
    let before = server.resident_kib();
    fill(&mut client, total);
    drop(client);
    // Memory is freed at the next checkpoints, and the allocator returns pages after some seconds.
    let limit = before + (128 << 10);
    until(&format!("resident memory falls back to {before} KiB"), || server.resident_kib() < limit);
    assert_eq!(rows(&mut server.in_test(), "SELECT COUNT(*) FROM t"), "0\n");
}
