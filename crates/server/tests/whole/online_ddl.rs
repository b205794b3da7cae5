//! Statements that change a table while others use it: writers go on while indexes are built, readers while
//! rows are copied, and nothing that they did is missing afterwards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::scale::{Dice, long_or};
use crate::support::{Cohort, error_code, rows};

const ROWS: u32 = 60_000;
const WRITERS: u64 = 3;

fn filled(server: &Cohort) {
    let mut client = server.in_test();
    let table = "CREATE TABLE t (id INT PRIMARY KEY, v INT, u BIGINT NOT NULL, w VARCHAR(40))";
    client.query_drop(table).expect("made");
    let rows =
        format!("INSERT INTO t SELECT seq, seq % 97, seq * 10, CONCAT('word ', seq) FROM seq_1_to_{ROWS}");
    client.query_drop(rows).expect("filled");
}

/// One transaction of a writer; `own` tells writers apart, so that no two give one value of `u`.
fn write(client: &mut Conn, dice: &mut Dice, own: u64, n: u64) -> mysql::Result<()> {
    let id = dice.below(ROWS as usize) + 1;
    let fresh = 1_000_000_000 * (own + 1) + n * 10;
    match dice.below(6) {
        0 => client.query_drop(format!("INSERT INTO t VALUES ({}, {n}, {fresh}, 'new')", fresh / 10)),
        1 => client.query_drop(format!("DELETE FROM t WHERE id = {id}")),
        2 => client.query_drop(format!("UPDATE t SET v = {}, w = 'changed {n}' WHERE id = {id}", n % 97)),
        3 => client.query_drop(format!("UPDATE t SET u = {fresh} WHERE id = {id}")),
        // A row that comes and goes, and one that changes and does not.
        4 => {
            client.query_drop("BEGIN")?;
            client.query_drop(format!("INSERT INTO t VALUES ({}, {n}, {fresh}, 'gone')", fresh / 10))?;
            client.query_drop(format!("UPDATE t SET v = -1 WHERE id = {id}"))?;
            client.query_drop("ROLLBACK")
        }
        // One row gives its unique value to another.
        _ => {
            client.query_drop("BEGIN")?;
            let moved: Option<u64> =
                client.query_first(format!("SELECT u FROM t WHERE id = {id} FOR UPDATE"))?;
            if let Some(u) = moved {
                client.query_drop(format!("DELETE FROM t WHERE id = {id}"))?;
                client.query_drop(format!("INSERT INTO t VALUES ({}, {n}, {u}, 'heir')", fresh / 10))?;
            }
            client.query_drop("COMMIT")
        }
    }
}

/// Ends the threads of a scope, also when a check fails.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What every index says, and CHECK TABLE, are one.
fn check(client: &mut Conn) {
    let checked: Vec<(String, String, String, String)> = client.query("CHECK TABLE t").expect("checked");
    assert!(checked.iter().all(|line| line.3 == "OK"), "{checked:?}");
    let by = |index: &str, what: &str| {
        format!("SELECT {what} FROM t FORCE INDEX ({index}) WHERE {index} IS NOT NULL")
    };
    let sums = "COUNT(*), SUM(v), SUM(u)";
    let wanted = rows(client, &format!("SELECT {sums} FROM t IGNORE INDEX (v, u)"));
    assert_eq!(rows(client, &by("v", sums)), wanted);
    assert_eq!(rows(client, &by("u", sums)), wanted);
}

#[test]
fn writers_go_on_while_indexes_are_built() {
    let server = Cohort::new(&[]);
    filled(&server);
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut meanwhile, mut slowest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        for own in 0..WRITERS {
            let (server, ends, done) = (&server, &ends, &done);
            scope.spawn(move || {
                let (mut client, mut dice) = (server.in_test(), Dice::new(own + 7));
                for n in 0.. {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    match write(&mut client, &mut dice, own, n) {
                        // Two writers have met; a victim's transaction is gone.
                        Err(mysql::Error::MySqlError(error)) if error.code == 1213 => {}
                        other => other.expect("written"),
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = Ends(&ends);
        let mut client = server.in_test();
        for round in 0..long_or(60, 6) {
            client.query_drop("CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES t (id))").expect("made");
            // The catalog's description of `t` is made anew by this.
            let dropped = scope.spawn(|| {
                let mut client = server.in_test();
                client.query_drop("DO SLEEP(0.1)").expect("slept");
                client.query_drop("DROP TABLE child").expect("dropped");
            });
            let before = done.load(Ordering::Relaxed);
            let began = Instant::now();
            let options = if round % 2 == 0 { ", ALGORITHM=INPLACE, LOCK=NONE" } else { "" };
            let keys = format!("ALTER TABLE t ADD KEY v (v), ADD UNIQUE KEY u (u){options}");
            client.query_drop(keys).expect("built beside writers");
            slowest = slowest.max(began.elapsed());
            dropped.join().expect("no panic");
            meanwhile += done.load(Ordering::Relaxed) - before;
            // A moment of life with the indexes before they are looked at.
            client.query_drop("DO SLEEP(0.05)").expect("slept");
            client.query_drop("LOCK TABLES t WRITE").expect("locked");
            check(&mut client);
            client.query_drop("UNLOCK TABLES").expect("unlocked");
            client.query_drop("ALTER TABLE t DROP KEY v, DROP KEY u, LOCK=NONE").expect("dropped");
        }
    });
    assert!(meanwhile > 100, "{meanwhile} transactions beside builds of at most {slowest:?}");
}

#[test]
fn an_index_has_what_its_session_wrote_just_before() {
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    client.query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT, u BIGINT, w INT)").expect("made");
    for n in 0..40 {
        let written =
            format!("INSERT INTO t VALUES ({n}, {n}, {n}, {n}); ALTER TABLE t ADD KEY v (v), ADD KEY u (u)");
        client.query_drop(format!("LOCK TABLES t WRITE; {written}; UNLOCK TABLES")).expect("built");
        check(&mut client);
        client.query_drop("ALTER TABLE t DROP KEY v, DROP KEY u").expect("dropped");
    }
}

#[test]
fn a_value_that_comes_twice_while_a_unique_key_is_built_refuses_it() {
    let server = Cohort::new(&[]);
    filled(&server);
    let mut client = server.in_test();
    std::thread::scope(|scope| {
        let builder =
            scope.spawn(|| server.in_test().query_drop("ALTER TABLE t ADD UNIQUE KEY u (u), LOCK=NONE"));
        let began = Instant::now();
        let mut twice = 0;
        while !builder.is_finished() && began.elapsed() < Duration::from_secs(60) {
            let id = 1_000_000 + twice;
            client
                .query_drop(format!("INSERT INTO t VALUES ({id}, 1, 10, 'twice')"))
                .expect("no key refuses it");
            twice += 1;
        }
        assert!(twice > 0, "the build was over before a row came");
        assert_eq!(error_code(builder.join().expect("no panic")), 1062);
    });
    assert_eq!(rows(&mut client, "SHOW KEYS FROM t WHERE key_name = 'u'"), "");
}

#[test]
fn a_build_keeps_no_more_of_what_others_change_than_it_may() {
    let server = Cohort::new(&["--innodb-online-alter-log-max-size=65536"]);
    filled(&server);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.in_test();
            while !ends.load(Ordering::Relaxed) {
                client.query_drop("UPDATE t SET v = v + 1").expect("changed");
            }
        });
        let _ends = Ends(&ends);
        let mut client = server.in_test();
        let began = Instant::now();
        let refused = loop {
            match client.query_drop("ALTER TABLE t ADD KEY v (v)") {
                Ok(()) => client.query_drop("ALTER TABLE t DROP KEY v").expect("dropped"),
                refused => break error_code(refused),
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no build met a statement");
        };
        assert_eq!(refused, 1799);
    });
    let mut client = server.in_test();
    assert_eq!(rows(&mut client, "SHOW KEYS FROM t WHERE key_name = 'v'"), "");
    client.query_drop("ALTER TABLE t ADD KEY v (v)").expect("nobody writes any more");
}

#[test]
fn readers_go_on_while_rows_are_copied() {
    let server = Cohort::new(&[]);
    filled(&server);
    let mut client = server.in_test();
    let mut meanwhile = 0;
    for change in [
        "MODIFY v BIGINT",
        "MODIFY v INT",
        "ADD x INT FIRST, ALGORITHM=COPY",
        "DROP x, ALGORITHM=COPY",
        "FORCE",
    ] {
        std::thread::scope(|scope| {
            let change = scope.spawn(|| server.in_test().query_drop(format!("ALTER TABLE t {change}")));
            while !change.is_finished() {
                let count: Option<u32> =
                    client.query_first("SELECT COUNT(*) FROM t WHERE id <= 10").expect("read");
                assert_eq!(count, Some(10));
                meanwhile += 1;
            }
            change.join().expect("no panic").expect("changed");
        });
    }
    assert!(meanwhile > 50, "{meanwhile} reads");
    // Whoever reads within a transaction is waited for at the end, not at the beginning of the next one.
    client.query_drop("BEGIN; SELECT COUNT(*) FROM t WHERE id = 1").expect("read");
    let mut impatient = server.in_test();
    impatient.query_drop("SET lock_wait_timeout = 1").expect("set");
    assert_eq!(error_code(impatient.query_drop("ALTER TABLE t FORCE")), 1205);
    client.query_drop("COMMIT").expect("committed");
    impatient.query_drop("ALTER TABLE t FORCE").expect("changed");
    for refused in ["MODIFY v BIGINT, LOCK=NONE", "FORCE, LOCK=NONE"] {
        assert_eq!(error_code(client.query_drop(format!("ALTER TABLE t {refused}"))), 1846, "{refused}");
    }
    for refused in
        ["ADD KEY (v), ALGORITHM=INSTANT", "MODIFY v BIGINT, ALGORITHM=NOCOPY", "FORCE, ALGORITHM=INSTANT"]
    {
        let code = error_code(client.query_drop(format!("ALTER TABLE t {refused}")));
        assert!(matches!(code, 1845 | 1846), "{refused}: {code}");
    }
}
