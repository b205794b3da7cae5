//! XA transactions of a complete server: killed with SIGKILL and aborted at every stage of prepare and
//! commit, under load, and followed by replicas of MariaDB and Cohort.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::{Cohort, Maria, wait_until};

/// Returns whether all statements succeeded.
fn run(client: &mut Conn, statements: &[String]) -> bool {
    statements.iter().all(|statement| client.query_drop(statement).is_ok())
}

fn prepare(client: &mut Conn, name: &str, changes: &[&str]) -> bool {
    let mut statements = vec![format!("XA START '{name}'")];
    statements.extend(changes.iter().map(|change| (*change).to_owned()));
    statements.extend([format!("XA END '{name}'"), format!("XA PREPARE '{name}'")]);
    run(client, &statements)
}

fn prepared(server: &Cohort) -> BTreeSet<String> {
    let listed = server.sql("XA RECOVER");
    listed.lines().filter_map(|line| line.split('\t').nth(3).map(str::to_owned)).collect()
}

/// Prepares a branch in a session that then ends. Returns false if the server is gone.
fn prepare_alone(server: &Cohort, name: &str, change: &str) -> bool {
    let client = Conn::new(server.options());
    client.is_ok_and(|mut client| prepare(&mut client, name, &[change]))
}

/// Ends a branch as soon as its session is gone. Returns false if the server is gone.
fn end_elsewhere(server: &Cohort, statement: &str) -> bool {
    let Ok(mut client) = Conn::new(server.options()) else { return false };
    loop {
        match client.query_drop(statement) {
            Ok(()) => return true,
            Err(mysql::Error::MySqlError(error)) if error.code == 1397 => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Err(_) => return false,
        }
    }
}

/// Returns whether the row is locked.
fn is_locked(server: &Cohort, row: &str) -> bool {
    server.sql(&format!("SELECT * FROM test.t WHERE {row} FOR UPDATE SKIP LOCKED")).is_empty()
}

const STAGES: [&str; 5] = ["prepare", "order", "flush", "publish", "acknowledge"];

/// The server aborts before and after every stage of PREPARE, PREPARE, COMMIT, ROLLBACK. Acknowledged
/// statements must be in effect afterwards; the unacknowledged one must be in effect completely or not at
/// all.
#[test]
fn an_abort_at_every_stage_leaves_each_half_or_not() {
    let scratch = tempfile::tempdir().expect("a folder");
    let start = |failpoint: Option<String>| match failpoint {
        Some(point) => Cohort::start_failing(scratch.path(), "data", &["--log-bin"], &point),
        None => Cohort::start(scratch.path(), "data", &["--log-bin"]),
    };
    let mut server = start(None);
    server.sql("CREATE TABLE test.t (id INT PRIMARY KEY, k INT); INSERT INTO test.t VALUES (1, 0), (2, 0)");
    server.stop();
    let points = STAGES.iter().flat_map(|stage| [format!("before:{stage}"), format!("after:{stage}")]);
    let is_long = std::env::var_os("COHORT_LONG_TESTS").is_some();
    for (n, point) in points.enumerate() {
        for count in 1..=4 {
            if !is_long && (n + count) % 2 == 1 {
                continue;
            }
            let what = format!("{point}:{count}");
            let mut server = start(Some(what.clone()));
            let steps: [&dyn Fn() -> bool; 4] = [
                &|| prepare_alone(&server, "a", "UPDATE test.t SET k = k + 1 WHERE id = 1"),
                &|| prepare_alone(&server, "b", "UPDATE test.t SET k = k + 1 WHERE id = 2"),
                &|| end_elsewhere(&server, "XA COMMIT 'a'"),
                &|| end_elsewhere(&server, "XA ROLLBACK 'b'"),
            ];
            let done = steps.iter().take_while(|step| step()).count();
            // A server that has not failed yet is killed.
            server.kill();
            let mut server = start(None);
            let state = |server: &Cohort| {
                let k = server.sql("SELECT k FROM test.t WHERE id = 1");
                (prepared(server).into_iter().collect::<Vec<_>>().join(","), k == "1")
            };
            let found = state(&server);
            let states = [("", false), ("a", false), ("a,b", false), ("b", true), ("", true)];
            let states = states.map(|(names, is_set)| (names.to_owned(), is_set));
            let next = (done + 1).min(4);
            assert!(found == states[done] || found == states[next], "{what}: {found:?} after {done} steps");
            for name in prepared(&server) {
                let id = if name == "a" { 1 } else { 2 };
                assert!(is_locked(&server, &format!("id = {id}")), "{what}");
                server.sql(&format!("XA ROLLBACK '{name}'"));
            }
            assert_eq!(server.sql("SELECT k FROM test.t WHERE id = 2"), "0", "{what}");
            server.sql("UPDATE test.t SET k = 0");
            server.stop();
        }
    }
}

/// The state of a branch as known to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Prepared,
    Committed,
    RolledBack,
}

/// Runs many clients that transfer between rows, each transfer an XA transaction that leaves a mark. Returns
/// the known state of each branch when the server is gone.
fn load(server: &Cohort, round: u64, stop: &AtomicBool) -> BTreeMap<String, (Known, bool)> {
    let client = |n: u64| {
        let mut known = BTreeMap::new();
        let (mut own, mut other) = (server.client(), server.client());
        for turn in 0.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let name = format!("{round}-{n}-{turn}");
            let commits = !(turn + n).is_multiple_of(3);
            known.insert(name.clone(), (Known::Nothing, commits));
            let changes = [
                format!("UPDATE test.money SET amount = amount - 1 WHERE id = {}", (turn * 7 + n) % 20),
                format!("UPDATE test.money SET amount = amount + 1 WHERE id = {}", 20 + (turn * 3 + n) % 20),
                format!("INSERT INTO test.mark VALUES ('{name}')"),
            ];
            let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
            if !prepare(&mut own, &name, &changes) {
                break;
            }
            known.insert(name.clone(), (Known::Prepared, commits));
            let verb = if commits { "COMMIT" } else { "ROLLBACK" };
            // Some branches are ended by another connection.
            let ender = match turn % 4 {
                0 => {
                    if own.reset().is_err() {
                        break;
                    }
                    &mut other
                }
                _ => &mut own,
            };
            if ender.query_drop(format!("XA {verb} '{name}'")).is_err() {
                break;
            }
            known.insert(name, (if commits { Known::Committed } else { Known::RolledBack }, commits));
        }
        known
    };
    std::thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> = (0..6).map(|n| scope.spawn(move || client(n))).collect();
        clients.into_iter().flat_map(|it| it.join().expect("a client")).collect()
    })
}

#[test]
fn sigkill_under_load_loses_no_prepared_transaction() {
    let mut server = Cohort::new(&["--log-bin", "--innodb-lock-wait-timeout=5"]);
    server.sql("CREATE TABLE test.money (id INT PRIMARY KEY, amount INT); CREATE TABLE test.mark (name VARCHAR(40) PRIMARY KEY)");
    let rows: Vec<String> = (0..40).map(|id| format!("({id}, 100)")).collect();
    server.sql(&format!("INSERT INTO test.money VALUES {}", rows.join(", ")));
    let rounds = if std::env::var_os("COHORT_LONG_TESTS").is_some() { 20 } else { 3 };
    let mut prepared_seen = 0;
    for round in 0..rounds {
        let stop = AtomicBool::new(false);
        let pid = server.pid();
        let known = std::thread::scope(|scope| {
            let (server, stop) = (&server, &stop);
            let clients = scope.spawn(move || load(server, round, stop));
            std::thread::sleep(std::time::Duration::from_millis(700 + 150 * (round % 4)));
            support::run("kill", &["-9", &pid.to_string()]);
            stop.store(true, Ordering::SeqCst);
            clients.join().expect("the load")
        });
        server.kill();
        server.restart();
        let open = prepared(&server);
        prepared_seen += open.len();
        let marks = |server: &Cohort| -> BTreeSet<String> {
            server.sql("SELECT name FROM test.mark").lines().map(str::to_owned).collect()
        };
        let before = marks(&server);
        for (name, (known, commits)) in &known {
            let (is_open, is_marked) = (open.contains(name), before.contains(name));
            let is_right = match known {
                Known::Nothing => !is_marked,
                // COMMIT or ROLLBACK may have been on its way.
                Known::Prepared => is_open || (*commits == is_marked),
                Known::Committed => !is_open && is_marked,
                Known::RolledBack => !is_open && !is_marked,
            };
            assert!(is_right, "round {round}: {name} is {known:?}, open {is_open}, marked {is_marked}");
        }
        for (n, name) in open.iter().enumerate() {
            server.sql(&format!("XA {} '{name}'", if n % 2 == 0 { "COMMIT" } else { "ROLLBACK" }));
        }
        let after = marks(&server);
        for (n, name) in open.iter().enumerate() {
            assert_eq!(after.contains(name), n % 2 == 0, "round {round}: {name}");
        }
        assert_eq!(server.sql("SELECT SUM(amount) FROM test.money"), "4000", "round {round}");
        assert!(prepared(&server).is_empty());
        // No row is still locked.
        server.sql("UPDATE test.money SET amount = amount");
    }
    assert!(prepared_seen > 0, "no transaction was caught between its halves");
}

/// Larger than a log record may be: its prepare record, and the redo of its commit, are stored in files.
#[test]
fn a_branch_of_many_mebibytes_outlives_the_server() {
    const ROWS: usize = 24;
    let mut server = Cohort::new(&["--log-bin"]);
    server.sql("CREATE TABLE test.t (id INT PRIMARY KEY, v LONGBLOB)");
    let inserts: Vec<String> =
        (0..ROWS).map(|id| format!("INSERT INTO test.t VALUES ({id}, REPEAT('x', 1048576))")).collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    assert!(prepare(&mut server.client(), "large", &inserts));
    assert!(prepare(&mut server.client(), "other", &[&inserts[0].replace("(0,", "(1000,")]));
    for _ in 0..2 {
        server.kill_and_restart();
        assert_eq!(prepared(&server).len(), 2);
        assert_eq!(server.sql("SELECT COUNT(*) FROM test.t"), "0");
    }
    // A clean stop makes a checkpoint, so the branches are then read from their file.
    server.stop();
    server.restart();
    assert!(end_elsewhere(&server, "XA COMMIT 'large'"));
    assert!(end_elsewhere(&server, "XA ROLLBACK 'other'"));
    for _ in 0..2 {
        let found = server.sql("SELECT COUNT(*), SUM(LENGTH(v)), MAX(id) FROM test.t");
        assert_eq!(found, format!("{ROWS}\t{}\t{}", ROWS << 20, ROWS - 1));
        assert!(prepared(&server).is_empty());
        server.kill_and_restart();
    }
}

const HALVES: [(&str, &str); 3] = [
    ("one", "INSERT INTO test.t VALUES (10, 10)"),
    ("two", "UPDATE test.t SET b = b + 1 WHERE a = 1"),
    ("three", "DELETE FROM test.t WHERE a = 2"),
];

/// Prepares three branches, commits one, rolls one back, and leaves one.
fn prepare_on(client: &dyn Fn() -> Conn) {
    for (name, change) in HALVES {
        assert!(prepare(&mut client(), name, &[change]), "{name}");
    }
    wait_until("the first session is gone", || client().query_drop("XA COMMIT 'one'").is_ok());
    client().query_drop("INSERT INTO test.t VALUES (20, 20)").expect("another row");
    wait_until("the second session is gone", || client().query_drop("XA ROLLBACK 'two'").is_ok());
    assert!(run(
        &mut client(),
        &["XA START 'x'", "INSERT INTO test.t VALUES (30, 30)", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"]
            .map(str::to_owned)
    ));
}

const TABLE: &str =
    "CREATE TABLE test.t (a INT PRIMARY KEY, b INT); INSERT INTO test.t VALUES (1, 1), (2, 2), (3, 3)";
const ROWS: &str = "SELECT GROUP_CONCAT(a, ':', b ORDER BY a) FROM test.t";
const BEFORE: &str = "1:1,2:2,3:3,10:10,20:20,30:30";
const AFTER: &str = "1:1,3:3,10:10,20:20,30:30";

#[test]
fn a_mariadb_replica_follows_both_halves_over_the_death_of_the_source() {
    let mut source = Cohort::new(&["--log-bin", "--server-id=1"]);
    let replica = Maria::new(&[]);
    source.sql(TABLE);
    replica.follow(source.port);
    prepare_on(&|| source.client());
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!((replica.sql(ROWS), source.sql(ROWS)), (BEFORE.to_owned(), BEFORE.to_owned()));
    assert!(replica.sql("XA RECOVER").contains("three"), "it is prepared there, too");
    source.kill_and_restart();
    assert_eq!(prepared(&source), BTreeSet::from(["three".to_owned()]));
    source.sql("XA COMMIT 'three'");
    replica.wait_for(&source.sql("SELECT @@gtid_binlog_pos"));
    assert_eq!((replica.sql(ROWS), source.sql(ROWS)), (AFTER.to_owned(), AFTER.to_owned()));
    assert_eq!(replica.sql("XA RECOVER"), "");
}

fn follows_mariadb(threads: u32) {
    let source = Maria::source(&["--binlog-format=ROW"]);
    let options = ["--log-bin", "--log-slave-updates", "--server-id=7", "--skip-slave-start"];
    let threads = format!("--slave-parallel-threads={threads}");
    let mut replica = Cohort::new(&[&options[..], &[&threads]].concat());
    let chained = Cohort::new(&["--log-bin", "--log-slave-updates", "--server-id=8", &threads]);
    let last = Maria::new(&["--server-id=9"]);
    replica.follow(source.port);
    chained.follow(replica.port);
    last.follow(chained.port);
    source.sql(TABLE);
    prepare_on(&|| source.client());
    replica.wait_for(&source.gtid_end());
    assert_eq!(replica.sql(ROWS), BEFORE);
    assert_eq!(prepared(&replica), BTreeSet::from(["three".to_owned()]));
    assert!(is_locked(&replica, "a = 2"), "it keeps its locks");
    // The second part reaches a replica that was killed between both.
    replica.kill();
    source.sql("XA COMMIT 'three'");
    source.sql("UPDATE test.t SET b = 33 WHERE a = 3");
    replica.restart();
    assert_eq!(prepared(&replica).len(), 1);
    replica.sql("START SLAVE");
    replica.wait_for(&source.gtid_end());
    chained.wait_for(&source.gtid_end());
    last.wait_for(&source.gtid_end());
    let rows = source.sql(ROWS);
    assert_eq!((replica.sql(ROWS), chained.sql(ROWS), last.sql(ROWS)), (rows.clone(), rows.clone(), rows));
    assert!(prepared(&replica).is_empty() && prepared(&chained).is_empty());
    assert_eq!(last.sql("XA RECOVER"), "");
}

#[test]
fn replicas_apply_both_halves_of_a_mariadb_source_and_pass_them_on() {
    follows_mariadb(0);
}

#[test]
fn so_do_they_with_threads() {
    follows_mariadb(3);
}
