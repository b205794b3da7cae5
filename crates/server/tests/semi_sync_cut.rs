//! A source is killed before any replica has acknowledged, and restarts as a future replica
//! (`init_rpl_role=SLAVE`): transactions that it never acknowledged are truncated from the binary log and the
//! engine alike.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use support::{Cohort, wait_until};

const WAITS: [&str; 5] = [
    "--rpl-semi-sync-master-enabled=1",
    "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
    "--rpl-semi-sync-master-wait-no-slave=1",
    "--rpl-semi-sync-master-timeout=3600000",
    "--gtid-domain-id=3",
];

/// Returns the rows and the binary log's GTID position, read by another connection.
fn state(server: &Cohort) -> (Vec<u64>, String) {
    let mut client = server.client();
    let rows = client.query("SELECT id FROM test.t ORDER BY id").expect("answers");
    let position = client.query_first("SELECT @@gtid_binlog_pos").expect("answers").expect("one row");
    (rows, position)
}

/// Starts three commits that wait for a replica that does not exist, and kills the server.
fn killed_while_waiting(scratch: &Path) {
    let mut server = Cohort::start(scratch, "data", &WAITS);
    let writers: Vec<_> = (10..13)
        .map(|id| {
            let mut client = server.client();
            std::thread::spawn(move || client.query_drop(format!("INSERT INTO test.t VALUES ({id})")))
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(20);
    while !state(&server).1.starts_with("3-1-5") {
        assert!(Instant::now() < end, "three transactions are durable: {:?}", state(&server));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(state(&server).0, [1], "no session reads what no replica has (AFTER_SYNC)");
    server.signal("-KILL");
    server.exit_code();
    for writer in writers {
        assert!(writer.join().expect("no panic").is_err(), "no client got OK");
    }
}

fn set_up(scratch: &Path) {
    let server = Cohort::start(scratch, "data", &WAITS[4..]);
    let mut client = server.client();
    client.query_drop("CREATE TABLE test.t (id INT PRIMARY KEY)").expect("creates");
    client.query_drop("INSERT INTO test.t VALUES (1)").expect("inserts");
}

#[test]
fn unreleased_commits_are_cut_only_from_a_future_replica() {
    for (role, rows, position) in [("MASTER", vec![1, 10, 11, 12], "3-1-5"), ("SLAVE", vec![1], "3-1-2")] {
        let scratch = tempfile::tempdir().expect("temporary directory");
        set_up(scratch.path());
        killed_while_waiting(scratch.path());
        let server = Cohort::start(scratch.path(), "data", &[WAITS[4], &format!("--init-rpl-role={role}")]);
        assert_eq!(state(&server), (rows, position.to_owned()), "{role}");
        // The server continues from there, and another restart changes nothing.
        server.client().query_drop("INSERT INTO test.t VALUES (20)").expect("inserts");
        let after = state(&server);
        drop(server);
        let server = Cohort::start(scratch.path(), "data", &[WAITS[4], "--init-rpl-role=SLAVE"]);
        assert_eq!(state(&server), after, "{role}");
    }
}

#[test]
fn acknowledged_commits_of_a_killed_client_are_not_cut() {
    for point in ["AFTER_SYNC", "AFTER_COMMIT"] {
        let scratch = tempfile::tempdir().expect("temporary directory");
        set_up(scratch.path());
        let wait_point = format!("--rpl-semi-sync-master-wait-point={point}");
        let options = [WAITS[0], &wait_point, WAITS[2], WAITS[3], WAITS[4]];
        let mut server = Cohort::start(scratch.path(), "data", &options);
        let mut inserts = Vec::new();
        for id in [10, 11] {
            let mut client = server.client();
            let connection = client.connection_id();
            let insert =
                std::thread::spawn(move || client.query_drop(format!("INSERT INTO test.t VALUES ({id})")));
            inserts.push((connection, insert));
            let waits = format!("SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {connection}");
            let mut watcher = server.client();
            wait_until("it does not wait", || {
                let state: Option<String> = watcher.query_first(&waits).expect("answers");
                state.is_some_and(|state| state.contains("semi-sync"))
            });
        }
        let (last, last_insert) = inserts.pop().expect("two");
        server.client().query_drop(format!("KILL QUERY {last}")).expect("killed");
        last_insert.join().expect("no panic").expect("gets OK");
        // With AFTER_COMMIT the other commit keeps waiting.
        server.signal("-KILL");
        server.exit_code();
        let (_, first_insert) = inserts.pop().expect("one");
        assert_eq!(first_insert.join().expect("no panic").is_ok(), point == "AFTER_SYNC");
        let server = Cohort::start(scratch.path(), "data", &[WAITS[4], "--init-rpl-role=SLAVE"]);
        assert_eq!(state(&server).0, [1, 10, 11], "{point}");
    }
}
