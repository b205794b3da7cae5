//! Columns added, dropped and moved instantly: concurrently with writers, across crashes, in both engines and
//! in the binary log; and the statements for which MariaDB does so, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::binlog_exchange::{binlog_files, feed, played};
use crate::scale::{Dice, long_or};
use crate::support::{Cohort, Ends, Maria, error_code, rows};

/// `TABLE` of the statements, and a row of it.
const PLAIN: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, c VARCHAR(20), k1 INT, k2 INT, k3 INT, \
     e INT, f INT CHECK (f > 0), KEY i1 (k1), KEY i2 (k1, k2), KEY i3 (k3))",
    "INSERT INTO t (id, a, b, f) VALUES (1, 2, 3, 4)",
];
const GENERATED: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, c VARCHAR(20), s INT AS (a + 1) STORED, e INT)",
    "INSERT INTO t (id, a) VALUES (1, 2)",
];
const VIRTUAL: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, c VARCHAR(20), v INT AS (a + 1) VIRTUAL, e INT)",
    "INSERT INTO t (id, a) VALUES (1, 2)",
];
const WORDS: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, w TEXT, x TEXT, FULLTEXT (w))",
    "INSERT INTO t VALUES (1, 2, 'word', 'x')",
];
const KEYLESS: [&str; 2] = ["CREATE TABLE t (a INT, b INT, c INT)", "INSERT INTO t VALUES (1, 2, 3)"];

/// Statements that MariaDB executes or refuses under the same clauses and with the same text.
const SAME: &[([&str; 2], &[&str])] = &[
    (
        PLAIN,
        &[
            "ADD n INT",
            "ADD n INT FIRST",
            "ADD n INT AFTER a",
            "ADD n INT NOT NULL DEFAULT 5 AFTER id",
            "ADD n DATETIME DEFAULT CURRENT_TIMESTAMP FIRST",
            "ADD n INT CHECK (n > 0) FIRST",
            "DROP a",
            "DROP b",
            "DROP c",
            "DROP f",
            "DROP k3",
            "DROP id",
            "DROP k1",
            "DROP k2",
            "DROP e, DROP c",
            "DROP e, ADD e INT",
            "DROP e, ADD e VARCHAR(10) FIRST",
            "DROP e, ADD KEY (b)",
            "ADD n INT FIRST, ADD KEY (b)",
            "ADD n INT FIRST, ADD KEY (n)",
            "ADD n INT, ADD KEY (n)",
            "ADD UNIQUE KEY (b), DROP e",
            "ADD KEY (b)",
            "DROP KEY i1",
            "DROP k2, DROP KEY i2",
            "DROP KEY i2, DROP k2, ADD KEY (k1)",
            "DROP e, DROP KEY i1",
            "ADD n INT FIRST, DROP KEY i1",
            "MODIFY e INT FIRST",
            "MODIFY e INT AFTER a",
            "MODIFY c VARCHAR(20) FIRST",
            "MODIFY b INT NOT NULL DEFAULT 3 AFTER c",
            "MODIFY id INT NOT NULL AFTER a",
            "MODIFY k1 INT FIRST",
            "CHANGE e ee INT FIRST",
            "CHANGE e ee INT",
            "CHANGE b bb INT NOT NULL AFTER e",
            "CHANGE k2 kk INT FIRST",
            "MODIFY e BIGINT FIRST",
            "MODIFY b INT FIRST",
            "MODIFY c VARCHAR(10) FIRST",
            "MODIFY e INT COMMENT 'x' FIRST",
            "MODIFY e INT INVISIBLE FIRST",
            "MODIFY f INT CHECK (f > 0) FIRST",
            "MODIFY f INT FIRST",
            "DROP e, COMMENT='x'",
            "DROP e, ENGINE=InnoDB",
            "DROP e, FORCE",
            "ADD n INT FIRST, FORCE",
            "DROP e, RENAME TO t2",
            "DROP e, RENAME COLUMN a TO aa",
            "DROP e, ALTER b SET DEFAULT 4",
            "DROP PRIMARY KEY, DROP e",
            "DROP e, AUTO_INCREMENT=5",
            "ADD n INT FIRST, DROP e, MODIFY c VARCHAR(20) AFTER b",
        ],
    ),
    (
        GENERATED,
        &[
            "ADD n INT FIRST",
            "DROP e",
            "DROP s",
            "MODIFY e INT FIRST",
            "MODIFY a INT FIRST",
            "DROP s, ADD n INT FIRST",
            "DROP e, ADD KEY (a)",
            "MODIFY s INT AS (a + 1) STORED FIRST",
            "CHANGE s ss INT AS (a + 1) STORED",
            "RENAME COLUMN s TO ss",
            "ADD n INT AS (a + 2) STORED",
            "ADD n INT DEFAULT (a + 1)",
            "DROP e, ADD CHECK (a > 0)",
        ],
    ),
    (
        VIRTUAL,
        &[
            "ADD n INT",
            "ADD n INT FIRST",
            "DROP e",
            "DROP c",
            "DROP v",
            "DROP v, DROP e",
            "DROP c, FORCE",
            "DROP c, ADD n INT AFTER a",
            "DROP c, ADD KEY (a)",
            "DROP e, ADD KEY (a)",
            "DROP v, ADD n INT",
            "DROP v, MODIFY a INT FIRST",
            "MODIFY a INT FIRST",
            "MODIFY e INT FIRST",
            "MODIFY v INT AS (a + 1) VIRTUAL FIRST",
            "CHANGE v ss INT AS (a + 1) VIRTUAL",
            "CHANGE v ss INT AS (a + 1) VIRTUAL, DROP e",
        ],
    ),
    (
        WORDS,
        &[
            "ADD n INT",
            "ADD n INT FIRST",
            "DROP a",
            "DROP w",
            "DROP x",
            "MODIFY w TEXT FIRST",
            "MODIFY a INT FIRST",
            "DROP KEY w, DROP a",
        ],
    ),
    (
        KEYLESS,
        &["ADD n INT FIRST", "DROP a", "MODIFY b INT FIRST", "DROP a, DROP b", "DROP a, ADD PRIMARY KEY (b)"],
    ),
];

fn answer(client: &mut Conn, [table, row]: [&str; 2], alter: &str) -> String {
    for sql in ["DROP TABLE IF EXISTS t, t2", table, row] {
        client.query_drop(sql).expect(sql);
    }
    match client.query_drop(alter) {
        Ok(()) => "done".to_owned(),
        Err(mysql::Error::MySqlError(error)) => format!("{}: {}", error.code, error.message),
        Err(other) => panic!("{alter}: {other}"),
    }
}

fn clauses() -> Vec<(&'static str, &'static str)> {
    let algorithms =
        ["", ", ALGORITHM=INSTANT", ", ALGORITHM=NOCOPY", ", ALGORITHM=INPLACE", ", ALGORITHM=COPY"];
    let locks = ["", ", LOCK=NONE", ", LOCK=SHARED", ", LOCK=EXCLUSIVE"];
    let all = algorithms.into_iter().flat_map(|algorithm| locks.map(|lock| (algorithm, lock)));
    let few = |(n, _): &(usize, _)| long_or(true, [4, 5, 8, 12, 17].contains(n));
    all.enumerate().filter(few).map(|(_, clauses)| clauses).collect()
}

#[test]
fn clauses_are_refused_as_mariadb_does() {
    let (ours, theirs) = (Cohort::new(&[]), Maria::new(&[]));
    let (mut ours, mut theirs) = (ours.in_test(), theirs.client());
    theirs.query_drop("CREATE DATABASE IF NOT EXISTS test; USE test").expect("made");
    let mut wrong = Vec::new();
    for (table, actions) in SAME {
        for action in *actions {
            for (algorithm, lock) in clauses() {
                let alter = format!("ALTER TABLE t {action}{algorithm}{lock}");
                let (here, there) = (answer(&mut ours, *table, &alter), answer(&mut theirs, *table, &alter));
                if here != there {
                    wrong.push(format!("{alter}\n  here:  {here}\n  there: {there}\n"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Changes of `t`, in order.
const CHANGES: &[&str] = &[
    "ADD x VARCHAR(30) DEFAULT 'old rows' FIRST",
    "DROP v",
    "ADD v BIGINT NOT NULL DEFAULT 7 AFTER id",
    "MODIFY w VARCHAR(40) AFTER id",
    "ADD y DECIMAL(20,5), ADD z TEXT AFTER x",
    "ADD KEY v (v), DROP u",
    "MODIFY id INT NOT NULL FIRST, CHANGE x xx VARCHAR(30) DEFAULT 'other' AFTER z",
    "ADD u DATETIME(3) DEFAULT '2024-01-01' FIRST, DROP y",
    "DROP z, ADD z INT UNSIGNED DEFAULT 9 AFTER u",
    "MODIFY g BIGINT AS (id + 1) STORED FIRST",
    "DROP KEY v, MODIFY v BIGINT NOT NULL DEFAULT 8 FIRST, ADD KEY w (w, v)",
    "DROP xx, ADD UNIQUE KEY (z, id)",
];

/// Returns a change of some rows whose columns exist in every version of `t`.
fn write(dice: &mut Dice, n: usize) -> String {
    let id = dice.below(60);
    match dice.below(5) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        1 => format!("UPDATE t SET w = CONCAT('changed ', {n}) WHERE id BETWEEN {id} AND {id} + 3"),
        2 => format!("REPLACE INTO t (w, id) VALUES (NULL, {id}), (REPEAT('long ', 8), {id} + 60)"),
        3 => format!("UPDATE IGNORE t SET id = id + 1000 WHERE id = {id}"),
        _ => format!("INSERT IGNORE INTO t (id, w) SELECT seq, seq FROM seq_{id}_to_70"),
    }
}

fn content(client: &mut Conn) -> String {
    let columns = "SELECT column_name, ordinal_position, column_type, column_key \
                   FROM information_schema.columns \
                   WHERE table_schema = 'shop' AND table_name = 't' ORDER BY 2";
    rows(client, columns) + &rows(client, "SELECT * FROM shop.t ORDER BY id")
}

fn engines(client: &mut Conn) -> Vec<String> {
    let known: Vec<(String, String)> =
        client.query("SELECT engine, support FROM information_schema.engines").expect("rows");
    let ours = ["InnoDB", "ROCKSDB"];
    let is_ours = |engine: &str| ours.iter().any(|ours| ours.eq_ignore_ascii_case(engine));
    known
        .into_iter()
        .filter(|(engine, support)| is_ours(engine) && support != "NO")
        .map(|(engine, _)| engine)
        .collect()
}

/// Both servers have the same contents after every statement, and our binary log has the same effect on a
/// MariaDB and on another Cohort.
#[test]
fn a_table_that_changes_is_mariadbs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut source = Cohort::start(folder.path(), "source", &[]);
    let theirs = Maria::new(&["--innodb-instant-alter-column-allowed=never"]);
    let all = engines(&mut source.client());
    assert!(!all.is_empty());
    for engine in all {
        let (mut ours, mut theirs) = (source.client(), theirs.client());
        let made = "CREATE OR REPLACE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT, \
                    u BIGINT, w VARCHAR(40), g BIGINT AS (id + 1) STORED)";
        ours.query_drop(format!("{made} ENGINE={engine}")).expect("made");
        theirs.query_drop(made).expect("made");
        let mut dice = Dice::new(11);
        for (n, change) in CHANGES.iter().enumerate() {
            for _ in 0..8 {
                let write = write(&mut dice, n);
                ours.query_drop(&write).expect(&write);
                theirs.query_drop(&write).expect(&write);
            }
            if n % 4 == 3 {
                drop(ours);
                source.kill_and_restart();
                ours = source.client();
                ours.query_drop("USE shop").expect("there");
            }
            let algorithm = match *change {
                change if change.contains("STORED") => "",
                change if change.contains("ADD KEY") || change.contains("UNIQUE") => ", ALGORITHM=INPLACE",
                _ => ", ALGORITHM=INSTANT",
            };
            ours.query_drop(format!("ALTER TABLE t {change}{algorithm}")).expect(change);
            theirs.query_drop(format!("ALTER TABLE t {change}")).expect(change);
            assert_eq!(content(&mut ours), content(&mut theirs), "{engine}: {change}");
            let checked = rows(&mut ours, "CHECK TABLE shop.t");
            assert!(checked.ends_with("\tOK\n"), "{checked}");
        }
        let expected = content(&mut ours);
        let script = played(&binlog_files(&mut ours, &source.datadir));
        let copy = Cohort::start(folder.path(), &format!("copy_{engine}"), &[]);
        feed(&["--host=127.0.0.1", &format!("--port={}", copy.port)], &script);
        assert_eq!(content(&mut copy.client()), expected, "{engine}");
        let follower = Maria::new(&[]);
        let script = String::from_utf8(script).expect("ASCII").replace("ENGINE=ROCKSDB", "ENGINE=InnoDB");
        feed(&["--socket", follower.socket.to_str().expect("ASCII")], script.as_bytes());
        assert_eq!(content(&mut follower.client()), expected, "{engine}");
    }
}

#[test]
fn writers_and_readers_meet_columns_that_move() {
    const ACCOUNTS: usize = 300;
    let server = Cohort::new(&[]);
    let mut client = server.in_test();
    client
        .query_drop("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL, w INT NOT NULL, KEY (v))")
        .expect("made");
    client
        .query_drop(format!("INSERT INTO t SELECT seq, 100, -100 FROM seq_1_to_{ACCOUNTS}"))
        .expect("filled");
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for own in 0..3 {
            let (server, ends, done) = (&server, &ends, &done);
            scope.spawn(move || {
                let (mut client, mut dice) = (server.in_test(), Dice::new(own + 3));
                while !ends.load(Ordering::Relaxed) {
                    let (id, other) = (dice.below(ACCOUNTS) + 1, dice.below(ACCOUNTS) + 1);
                    // The amount that one row loses is added to another; the two columns of a row always have
                    // opposite values.
                    let moved = (|| {
                        client.query_drop("BEGIN")?;
                        client.exec_drop("UPDATE t SET v = v - 1, w = w + 1 WHERE id = ?", (id,))?;
                        client.exec_drop("UPDATE t SET w = w - 1, v = v + 1 WHERE id = ?", (other,))?;
                        client.query_drop("COMMIT")
                    })();
                    match moved {
                        Err(mysql::Error::MySqlError(error)) if error.code == 1213 => {}
                        other => other.expect("written"),
                    }
                    let sum: Option<(i64, i64, i64)> =
                        client.exec_first("SELECT SUM(v), SUM(w), SUM(v + w <> 0) FROM t", ()).expect("read");
                    let all = 100 * ACCOUNTS as i64;
                    assert_eq!(sum, Some((all, -all, 0)));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ends = Ends(&ends);
        for round in 0..long_or(400, 40) {
            for change in [
                "ADD x INT DEFAULT 5 FIRST",
                "MODIFY w INT NOT NULL FIRST",
                "DROP x",
                "MODIFY v INT NOT NULL FIRST",
            ] {
                client.query_drop(format!("ALTER TABLE t {change}, ALGORITHM=INSTANT")).expect(change);
            }
            if round % 10 == 9 {
                client.query_drop("ALTER TABLE t FORCE").expect("copied");
            }
            client.query_drop("DO SLEEP(0.01)").expect("slept");
        }
    });
    assert!(done.load(Ordering::Relaxed) > 50);
    let checked = rows(&mut client, "CHECK TABLE t");
    assert!(checked.ends_with("\tOK\n"), "{checked}");
    assert_eq!(error_code(client.query_drop("ALTER TABLE t DROP v, DROP w, DROP id")), 1090);
}
