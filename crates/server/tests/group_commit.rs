//! Group commit in the binlog: a shared commit id, hints for replicas, counters.

mod support;

use std::sync::{Arc, Barrier};

use mysql::Conn;
use mysql::prelude::Queryable;
use support::Cohort;

/// Returns `Event_type` and `Info` of the events of the newest file.
fn events(client: &mut Conn) -> Vec<(String, String)> {
    let logs: Vec<(String, u64)> = client.query("SHOW BINARY LOGS").expect("lists");
    let newest = &logs.last().expect("there is one").0;
    let rows: Vec<(String, u64, String, u64, u64, String)> =
        client.query(format!("SHOW BINLOG EVENTS IN '{newest}'")).expect("lists");
    rows.into_iter().map(|(_, _, kind, _, _, info)| (kind, info)).collect()
}

fn status(client: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> = client.query_first(format!("SHOW STATUS LIKE '{name}'")).expect("shows");
    row.expect("it is known").1
}

/// Starts clients at the same time, each of which inserts its own rows.
fn insert_at_once(server: &Cohort, clients: usize, rows: usize) {
    let start = Arc::new(Barrier::new(clients));
    let threads: Vec<_> = (0..clients)
        .map(|n| {
            let (mut client, start) = (server.client(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                for row in 0..rows {
                    let sql = format!("INSERT INTO test.t VALUES ({})", n * 1000 + row);
                    client.query_drop(sql).expect("inserts");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("ends"));
}

#[test]
fn clients_that_commit_together_share_a_commit_id() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let server = Cohort::start(
        scratch.path(),
        "data",
        &["--binlog-commit-wait-usec=5000", "--binlog-commit-wait-count=50", "--server-id=3"],
    );
    let mut client = server.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY)").expect("creates");
    insert_at_once(&server, 4, 10);
    let events = events(&mut client);
    let cid = |info: &str| {
        let (gtid, cid) = info.strip_prefix("BEGIN GTID ")?.split_once(" cid=")?;
        gtid.starts_with("0-3-").then(|| cid.parse::<u64>().expect("a number"))
    };
    let ids: Vec<Option<u64>> =
        events.iter().filter(|(kind, _)| kind == "Gtid").map(|(_, info)| cid(info)).collect();
    assert_eq!(ids.len(), 1 + 40);
    let together = |four: &[Option<u64>]| four[0].is_some() && four.iter().all(|id| *id == four[0]);
    assert!(ids.windows(4).any(together), "no four transactions share a commit id: {ids:?}");
    let at = events.iter().position(|(_, info)| cid(info).is_some()).expect("some have one");
    let kinds: Vec<&str> = events[at..at + 5].iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["Gtid", "Annotate_rows", "Table_map", "Write_rows_v1", "Xid"]);
    let (annotation, commit) = (&events[at + 1].1, &events[at + 4].1);
    assert!(annotation.starts_with("INSERT INTO test.t VALUES ("), "{annotation}");
    assert!(commit.starts_with("COMMIT /* xid="), "{commit}");
    assert!(status(&mut client, "Binlog_group_commit_trigger_timeout") > 0, "fifty never came");
    assert_eq!(status(&mut client, "Binlog_group_commit_trigger_count"), 0);
    client
        .query_drop("SET GLOBAL binlog_commit_wait_count = 2, GLOBAL binlog_commit_wait_usec = 2000000")
        .expect("sets");
    client.query_drop("TRUNCATE test.t").expect("empties");
    insert_at_once(&server, 2, 5);
    assert!(status(&mut client, "Binlog_group_commit_trigger_count") > 0, "two came");
}

#[test]
fn lock_waits_are_marked_and_settings_take_effect_at_runtime() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let server = Cohort::start(scratch.path(), "data", &["--binlog-ignore-db=other"]);
    let (mut first, mut second) = (server.client(), server.client());
    first.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY, v INT)").expect("creates");
    first.query_drop("INSERT INTO test.t VALUES (1, 0)").expect("inserts");
    first.query_drop("BEGIN").expect("begins");
    first.query_drop("UPDATE test.t SET v = v + 1").expect("updates");
    let waiting = std::thread::spawn(move || {
        second.query_drop("UPDATE test.t SET v = v + 10").expect("updates in the end");
        second
    });
    while status(&mut first, "Innodb_row_lock_current_waits") == 0 {
        std::thread::yield_now();
    }
    first.query_drop("COMMIT").expect("commits");
    drop(waiting.join().expect("ends"));
    for statement in [
        "CREATE DATABASE other",
        "CREATE TABLE other.o (id INT PRIMARY KEY)",
        "INSERT INTO other.o VALUES (1)",
        "SET GLOBAL binlog_checksum = NONE",
        "SET GLOBAL max_binlog_size = 4096",
    ] {
        first.query_drop(statement).expect(statement);
    }
    insert_rows(&mut first, 60);
    let logs: Vec<(String, u64)> = first.query("SHOW BINARY LOGS").expect("lists");
    assert!(logs.len() >= 4, "{logs:?}");
    let sums: Option<(String, String)> =
        first.query_first("SHOW VARIABLES LIKE 'binlog_checksum'").expect("shows");
    assert_eq!(sums.expect("it is known").1, "NONE");
    let printed = |name: &str| {
        let output = std::process::Command::new("mariadb-binlog")
            .arg("--no-defaults")
            .arg(scratch.path().join("data").join(name))
            .output()
            .expect("mariadb-binlog is installed");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = printed(&logs[0].0);
    let waited: Vec<&str> = text.lines().filter(|line| line.contains("trans waited")).collect();
    assert_eq!(waited.len(), 1, "{text}");
    let all: String = logs.iter().map(|(name, _)| printed(name)).collect();
    assert!(!all.contains("CREATE DATABASE other") && !all.contains("`other`.`o`"), "it was to be ignored");
    let master: Option<(String, u64, String, String)> =
        first.query_first("SHOW MASTER STATUS").expect("shows");
    assert_eq!(master.expect("the binlog is on").3, "other");
    first.query_drop("SET GLOBAL max_binlog_total_size = 4096").expect("sets");
    for _ in 0..100 {
        let left: Vec<(String, u64)> = first.query("SHOW BINARY LOGS").expect("lists");
        if left.len() <= 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the old files stay");
}

fn insert_rows(client: &mut Conn, rows: usize) {
    for row in 0..rows {
        client.query_drop(format!("INSERT INTO test.t VALUES ({}, 0)", row + 100)).expect("inserts");
    }
}
