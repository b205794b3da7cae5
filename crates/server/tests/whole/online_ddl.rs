//! Online DDL: writers continue while indexes are built, and while rows are copied if each new row depends on
//! its old row alone; readers continue during any copy. No concurrent change may be lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::scale::{Dice, long_or};
use crate::support::{Cohort, Ends, error_code, rows};

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

/// Runs one transaction of a writer. `own` identifies the writer, so that no two writers create the same
/// value of `u`.
fn write(client: &mut Conn, dice: &mut Dice, own: u64, n: u64) -> mysql::Result<()> {
    let id = dice.below(ROWS as usize) + 1;
    let fresh = 1_000_000_000 * (own + 1) + n * 10;
    match dice.below(6) {
        0 => client.query_drop(format!("INSERT INTO t VALUES ({}, {n}, {fresh}, 'new')", fresh / 10)),
        1 => client.query_drop(format!("DELETE FROM t WHERE id = {id}")),
        2 => client.query_drop(format!("UPDATE t SET v = {}, w = 'changed {n}' WHERE id = {id}", n % 97)),
        3 => client.query_drop(format!("UPDATE t SET u = {fresh} WHERE id = {id}")),
        // A row that is inserted and rolled back, and a change that is rolled back.
        4 => {
            client.query_drop("BEGIN")?;
            client.query_drop(format!("INSERT INTO t VALUES ({}, {n}, {fresh}, 'gone')", fresh / 10))?;
            client.query_drop(format!("UPDATE t SET v = -1 WHERE id = {id}"))?;
            client.query_drop("ROLLBACK")
        }
        // One row passes its unique value to another.
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

/// Checks that all indexes agree with each other, and runs CHECK TABLE.
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
                        // A deadlock between two writers; the victim's transaction was rolled back.
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
            // This changes the catalog's description of `t`.
            let dropped = scope.spawn(|| {
                let mut client = server.in_test();
                client.query_drop("DO SLEEP(0.1)").expect("slept");
                client.query_drop("DROP TABLE child").expect("dropped");
            });
            let before = done.load(Ordering::Relaxed);
            let began = Instant::now();
            let options = if round % 2 == 0 { ", ALGORITHM=INPLACE, LOCK=NONE" } else { "" };
            let keys = format!("ALTER TABLE t ADD KEY v (v), ADD UNIQUE KEY u (u){options}");
            client.query_drop(keys).expect("built concurrently with writers");
            slowest = slowest.max(began.elapsed());
            dropped.join().expect("no panic");
            meanwhile += done.load(Ordering::Relaxed) - before;
            // Use the indexes for a while before they are checked.
            client.query_drop("DO SLEEP(0.05)").expect("slept");
            client.query_drop("LOCK TABLES t WRITE").expect("locked");
            check(&mut client);
            client.query_drop("UNLOCK TABLES").expect("unlocked");
            client.query_drop("ALTER TABLE t DROP KEY v, DROP KEY u, LOCK=NONE").expect("dropped");
        }
    });
    assert!(meanwhile > 100, "{meanwhile} transactions during builds of at most {slowest:?}");
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
    client.query_drop("ALTER TABLE t ADD KEY v (v)").expect("there are no writers any more");
}

/// Rows by `id`: the expected contents of rows that only one writer changes.
type Own = BTreeMap<u64, (i64, u64, String)>;

/// Changes the writer's own rows until the end, in transactions of which some are rolled back.
fn keep_own_rows(server: &Cohort, ends: &AtomicBool, done: &AtomicU64, own: u64) -> Own {
    let (mut client, mut dice) = (server.in_test(), Dice::new(own + 77));
    let mine = (1..=u64::from(ROWS)).filter(|id| id % WRITERS == own);
    let mut rows: Own = mine.map(|id| (id, (id as i64 % 97, id * 10, format!("word {id}")))).collect();
    for n in 0.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let before = rows.clone_of_some(&mut dice);
        let mut after = before.clone();
        let fresh = 1_000_000 + (n * 10 + dice.below(10) as u64) * WRITERS + own;
        let mut statements = Vec::new();
        for (&id, row) in &before {
            match dice.below(5) {
                0 => {
                    statements.push(format!("DELETE FROM t WHERE id = {id}"));
                    after.remove(&id);
                }
                1 => {
                    statements
                        .push(format!("UPDATE t SET v = {n} % 1000, w = 'changed {n}' WHERE id = {id}"));
                    after.insert(id, (n as i64 % 1000, row.1, format!("changed {n}")));
                }
                2 => {
                    let u = fresh * 1000 + id % 1000;
                    statements.push(format!("UPDATE t SET u = {u} WHERE id = {id}"));
                    after.insert(id, (row.0, u, row.2.clone()));
                }
                // The row gets another key.
                3 if !rows.contains_key(&fresh) && !after.contains_key(&fresh) => {
                    statements.push(format!("UPDATE t SET id = {fresh} WHERE id = {id}"));
                    let row = after.remove(&id).expect("it is there");
                    after.insert(fresh, row);
                }
                _ => {}
            }
        }
        if !rows.contains_key(&fresh) && !after.contains_key(&fresh) {
            statements.push(format!("INSERT INTO t VALUES ({fresh}, 5, {}, 'new')", fresh * 7_000_000));
            after.insert(fresh, (5, fresh * 7_000_000, "new".to_owned()));
        }
        let end = if dice.below(4) == 0 { "ROLLBACK" } else { "COMMIT" };
        match client.query_drop(format!("BEGIN; {}; {end}", statements.join("; "))) {
            Ok(()) if end == "COMMIT" => {
                before.keys().for_each(|id| drop(rows.remove(id)));
                rows.extend(after);
            }
            Ok(()) => {}
            // A deadlock between two writers; the victim's transaction was rolled back.
            Err(mysql::Error::MySqlError(error)) if error.code == 1213 => {
                client.query_drop("ROLLBACK").expect("nothing is left");
            }
            Err(error) => panic!("{error}: {statements:?}"),
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    rows
}

trait SomeOf {
    fn clone_of_some(&self, dice: &mut Dice) -> Self;
}

impl SomeOf for Own {
    /// Returns a few adjacent rows.
    fn clone_of_some(&self, dice: &mut Dice) -> Own {
        let from = dice.below(ROWS as usize) as u64;
        self.range(from..).take(3).map(|(id, row)| (*id, row.clone())).collect()
    }
}

#[test]
fn writers_go_on_while_rows_are_copied() {
    const CHANGES: [&str; 9] = [
        "ALTER TABLE t FORCE",
        "ALTER TABLE t MODIFY v INT NOT NULL DEFAULT 3, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (u), ADD UNIQUE KEY id (id), LOCK=NONE",
        "ALTER TABLE t ADD KEY v (v), FORCE, LOCK=NONE",
        "OPTIMIZE TABLE t",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP KEY id, DROP KEY v, LOCK=NONE",
        "ALTER TABLE t MODIFY v INT",
        "ALTER TABLE t PAGE_COMPRESSED=1",
        "ALTER TABLE t PAGE_COMPRESSED=0, LOCK=NONE",
    ];
    let server = Cohort::new(&[]);
    filled(&server);
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut meanwhile = [0; CHANGES.len()];
    let wanted: Own = std::thread::scope(|scope| {
        let (server, ends, done) = (&server, &ends, &done);
        let writers: Vec<_> =
            (0..WRITERS).map(|own| scope.spawn(move || keep_own_rows(server, ends, done, own))).collect();
        {
            let _ends = Ends(ends);
            let mut client = server.in_test();
            for _ in 0..long_or(20, 1) {
                for (change, meanwhile) in CHANGES.iter().zip(&mut meanwhile) {
                    let before = done.load(Ordering::Relaxed);
                    client.query_drop(change).unwrap_or_else(|error| panic!("{change}: {error}"));
                    *meanwhile += done.load(Ordering::Relaxed) - before;
                    client.query_drop("DO SLEEP(0.05)").expect("slept");
                }
            }
        }
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    let mut client = server.in_test();
    let found: Own = client
        .query_map("SELECT id, v, u, w FROM t", |(id, v, u, w)| (id, (v, u, w)))
        .expect("read")
        .into_iter()
        .collect();
    let differs = |id: &&u64| found.get(*id) != wanted.get(*id);
    let wrong: Vec<_> = found.keys().chain(wanted.keys()).filter(differs).take(5).collect();
    assert!(wrong.is_empty(), "rows {wrong:?}");
    let checked: Vec<(String, String, String, String)> = client.query("CHECK TABLE t").expect("checked");
    assert!(checked.iter().all(|line| line.3 == "OK"), "{checked:?}");
    assert!(meanwhile.iter().all(|count| *count > 5), "{meanwhile:?} transactions during the copies");
}

/// The copy is discarded, and the table stays as it was.
#[test]
fn a_row_that_the_copy_may_not_hold_ends_it() {
    let server = Cohort::new(&[]);
    filled(&server);
    let mut client = server.in_test();
    for (change, row, code) in [
        ("MODIFY v INT NOT NULL", "NULL, 5", 1265),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (u), ADD KEY (id)", "1, 10", 1062),
    ] {
        std::thread::scope(|scope| {
            let copy = format!("ALTER TABLE t {change}, LOCK=NONE");
            let copying = scope.spawn(|| server.in_test().query_drop(copy));
            let began = Instant::now();
            let mut come = 0;
            while !copying.is_finished() && began.elapsed() < Duration::from_secs(60) {
                let id = 1_000_000 + come;
                client.query_drop(format!("INSERT INTO t VALUES ({id}, {row}, 'odd')")).expect("it may come");
                come += 1;
            }
            assert!(come > 0, "the copy was over before a row came");
            assert_eq!(error_code(copying.join().expect("no panic")), code, "{change}");
        });
        client.query_drop("DELETE FROM t WHERE w = 'odd'").expect("deleted");
    }
    let kept = rows(&mut client, "SELECT COUNT(*), MAX(id), COUNT(v), SUM(u) FROM t");
    let sum = u64::from(ROWS) * u64::from(ROWS + 1) * 5;
    assert_eq!(kept.trim_end(), format!("{ROWS}\t{ROWS}\t{ROWS}\t{sum}"));
}

/// A row gets another primary key in the source, but not in the copy. Another transaction takes its old key,
/// and is still open when both rows are read. Two rows of the source then seem to be the same row of the
/// copy.
#[test]
fn a_row_whose_old_key_is_taken_keeps_its_entries_in_the_copy() {
    const CHANGE: &str = "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (u), ADD UNIQUE (id), LOCK=NONE";
    for (end, wanted) in [("ROLLBACK", ROWS), ("COMMIT", ROWS + 1)] {
        let server = Cohort::new(&[]);
        filled(&server);
        let (mut writer, mut other) = (server.in_test(), server.in_test());
        writer.query_drop("ALTER TABLE t ADD KEY (v)").expect("an index");
        std::thread::scope(|scope| {
            let copying = scope.spawn(|| server.in_test().query_drop(CHANGE));
            let state = |client: &mut Conn, wanted: &str| {
                let began = Instant::now();
                let asked = format!(
                    "SELECT COUNT(*) FROM information_schema.processlist \
                     WHERE info LIKE 'ALTER TABLE t DROP%' AND state = '{wanted}'"
                );
                while client.query_first::<u32, _>(&asked).expect("asked") != Some(1) {
                    assert!(began.elapsed() < Duration::from_secs(60), "the copy is never at {wanted}");
                }
            };
            state(&mut writer, "copy to tmp table");
            writer.query_drop("UPDATE t SET id = 1000000 WHERE id = 1").expect("moved");
            other.query_drop("BEGIN; INSERT INTO t VALUES (1, 500, 5, 'other')").expect("its key is free");
            state(&mut writer, "Waiting for table metadata lock");
            other.query_drop(end).expect("decided");
            copying.join().expect("no panic").expect("copied");
        });
        for index in ["PRIMARY", "id", "v"] {
            let column = if index == "PRIMARY" { "u" } else { index };
            let count = format!("SELECT COUNT(*) FROM t FORCE INDEX ({index}) WHERE {column} >= 0");
            assert_eq!(writer.query_first::<u32, _>(count).expect("counted"), Some(wanted), "{end} {index}");
        }
        let moved = rows(&mut writer, "SELECT id, v, u FROM t FORCE INDEX (v) WHERE v = 1 AND u = 10");
        assert_eq!(moved.trim_end(), "1000000\t1\t10");
        let checked: Vec<(String, String, String, String)> =
            writer.query("CHECK TABLE t EXTENDED").expect("checked");
        assert!(checked.iter().all(|line| line.3 == "OK"), "{checked:?}");
    }
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
        "FORCE, LOCK=SHARED",
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
    // At its end the statement waits for a transaction that has read the table; here it times out.
    client.query_drop("BEGIN; SELECT COUNT(*) FROM t WHERE id = 1").expect("read");
    let mut impatient = server.in_test();
    impatient.query_drop("SET lock_wait_timeout = 1").expect("set");
    assert_eq!(error_code(impatient.query_drop("ALTER TABLE t FORCE")), 1205);
    client.query_drop("COMMIT").expect("committed");
    impatient.query_drop("ALTER TABLE t FORCE").expect("changed");
    for refused in ["MODIFY v BIGINT, LOCK=NONE", "FORCE, ALGORITHM=COPY, LOCK=NONE"] {
        assert_eq!(error_code(client.query_drop(format!("ALTER TABLE t {refused}"))), 1846, "{refused}");
    }
    for refused in
        ["ADD KEY (v), ALGORITHM=INSTANT", "MODIFY v BIGINT, ALGORITHM=NOCOPY", "FORCE, ALGORITHM=INSTANT"]
    {
        let code = error_code(client.query_drop(format!("ALTER TABLE t {refused}")));
        assert!(matches!(code, 1845 | 1846), "{refused}: {code}");
    }
}
